/* SPDX-License-Identifier: Apache-2.0 */
/* range.c: which numbers can occur, in one walk in order of execution.
 *
 * What is known of a value is an interval of integers or nothing; floats are in it as long as they are whole and exact.
 * A rule computes the ends of the result from the ends of the operands in 64 bits. An end that overflows, or that the
 * result's type does not hold, wraps or rounds when it is computed, so then only the range of the type is left: that of
 * an integer, or nothing for a float.
 *
 * Why no fractions: what asks is casts and comparisons, and between whole numbers they are exact; a fraction would have
 * to be rounded outwards here as the kernels round it, or not be believed. */
#include "passes/range.h"

#include <math.h>
#include <string.h>

#define MAX_ELEMENTS 65536 /* of a constant, that are looked at */

static const struct weft_range unknown = {.whole = false};

static struct weft_range between(int64_t low, int64_t high)
{
    return (struct weft_range){.whole = true, .low = low, .high = high};
}

/* The ends of an integer type; u64 goes beyond what ends can say. */
static struct weft_range range_of_type(int dtype)
{
    const unsigned bits = weft_dtype_bits(dtype);
    if (dtype == WEFT_BOOL)
        return between(0, 1);
    if (!weft_dtype_is_int(dtype) || dtype == WEFT_U64)
        return unknown;
    if (weft_dtype_is_signed(dtype))
        return between(INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits));
    return between(0, (INT64_C(1) << bits) - 1);
}

/* Up to this power of two floats hold every integer. */
static int whole_bits(int dtype)
{
    switch (dtype) {
    case WEFT_F64: return 53;
    case WEFT_F32: return 24;
    case WEFT_F16: return 11;
    case WEFT_BF16: return 8;
    case WEFT_F8E4M3: return 4;
    default: return 3; /* f8e5m2 */
    }
}

bool weft_dtype_holds(int dtype, int64_t low, int64_t high)
{
    if (weft_dtype_is_float(dtype)) {
        const int64_t limit = INT64_C(1) << whole_bits(dtype);
        return low >= -limit && high <= limit;
    }
    if (dtype == WEFT_U64)
        return low >= 0;
    const struct weft_range all = range_of_type(dtype);
    return low >= all.low && high <= all.high;
}

static struct weft_range join(struct weft_range a, struct weft_range b)
{
    if (!a.whole || !b.whole)
        return unknown;
    return (struct weft_range){true, a.negative_zero || b.negative_zero, a.low < b.low ? a.low : b.low,
                               a.high > b.high ? a.high : b.high};
}

/* --- sources ---------------------------------------------------------------------------------------------------- */

struct ranging {
    struct weft_graph *graph;
    struct weft_range *range;  /* by value id */
    weft_node node;
    int op, dtype;             /* of the result */
};

static struct weft_range of_operand(const struct ranging *r, unsigned i)
{
    return r->range[weft_operand(r->graph, r->node, i).id];
}

static struct weft_range of_real(double x)
{
    if (!(fabs(x) <= 0x1p53) || x != floor(x))
        return unknown;
    struct weft_range range = between((int64_t)x, (int64_t)x);
    range.negative_zero = x == 0 && signbit(x);
    return range;
}

static struct weft_range of_number(int dtype, const void *data, int64_t i)
{
    if (weft_dtype_is_float(dtype))
        return of_real(weft_load_real(dtype, data, i));
    const int64_t x = weft_load_integer(dtype, data, i);
    return dtype == WEFT_U64 && x < 0 ? unknown : between(x, x);
}

static struct weft_range of_const(const struct ranging *r, weft_val result)
{
    struct weft_element element;
    if (weft_const_splat(r->graph, result, &element)) {
        if (!element.is_integer)
            return of_real(element.real);
        return r->dtype == WEFT_U64 && element.integer < 0 ? unknown : between(element.integer, element.integer);
    }
    const void *data = weft_const_data(r->graph, result);
    const weft_dim count = weft_type_elements(r->graph->dims, weft_type_of(r->graph, result));
    if (!data || !weft_dim_is_constant(count) || weft_dim_value(count) > MAX_ELEMENTS || weft_dim_is(count, 0))
        return unknown;
    struct weft_range range = of_number(r->dtype, data, 0);
    for (int64_t i = 1; i < weft_dim_value(count) && range.whole; i++)
        range = join(range, of_number(r->dtype, data, i));
    return range;
}

static int64_t highest(const struct ranging *r, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(r->graph->dims, d, &low, &high);
    return high;
}

/* Elements known as expressions: from the least to the greatest that one of them can be. */
static struct weft_range of_content(const struct ranging *r, weft_val result)
{
    const weft_dim *content = r->graph->value[result.id].content;
    const weft_dim count = weft_type_elements(r->graph->dims, weft_type_of(r->graph, result));
    struct weft_range range = unknown;
    for (int64_t i = 0; i < weft_dim_value(count); i++) {
        int64_t low, high;
        weft_dim_range(r->graph->dims, content[i], &low, &high);
        range = i == 0 ? between(low, high) : join(range, between(low, high));
    }
    return range.low > -WEFT_DIM_LIMIT && range.high < WEFT_DIM_LIMIT ? range : unknown;
}

static struct weft_range of_iota(const struct ranging *r, weft_val result)
{
    const weft_dim extent =
        weft_type_of(r->graph, result)->extent[weft_attr_int(r->graph, r->node, WEFT_ATTR_axis)];
    const int64_t last = highest(r, extent) - 1;
    return between(0, last > 0 ? last : 0);
}

/* --- arithmetic ------------------------------------------------------------------------------------------------- */

/* The least and greatest of the four combinations of ends, which is right for what is monotone in each operand. */
static struct weft_range combine(int op, struct weft_range a, struct weft_range b)
{
    struct weft_range range = unknown;
    for (int i = 0; i < 4; i++) {
        const int64_t x = i & 1 ? a.high : a.low, y = i & 2 ? b.high : b.low;
        int64_t z;
        if (op == WEFT_OP_add ? __builtin_add_overflow(x, y, &z)
            : op == WEFT_OP_sub ? __builtin_sub_overflow(x, y, &z)
                                : __builtin_mul_overflow(x, y, &z))
            return unknown;
        range = i == 0 ? between(z, z) : join(range, between(z, z));
    }
    /* a - b is -0 for -0 - 0; a sum for two -0 only; a product where one is 0 and the other has a sign. */
    range.negative_zero = op == WEFT_OP_add   ? a.negative_zero && b.negative_zero
                          : op == WEFT_OP_sub ? a.negative_zero
                                              : a.negative_zero || b.negative_zero || a.low < 0 || b.low < 0;
    return range;
}

static struct weft_range binary(const struct ranging *r, struct weft_range a, struct weft_range b)
{
    const bool is_int = weft_dtype_is_int(r->dtype);
    if (!a.whole || !b.whole)
        return unknown;
    const bool zero = a.negative_zero || b.negative_zero;
    switch (r->op) {
    case WEFT_OP_add: case WEFT_OP_sub: case WEFT_OP_mul: return combine(r->op, a, b);
    case WEFT_OP_min:
        return (struct weft_range){true, zero, a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
    case WEFT_OP_max:
        return (struct weft_range){true, zero, a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    case WEFT_OP_mod: /* of the sign of the divisor, or of both where the dividend is not negative */
        if (!is_int || b.low <= 0 ||
            (a.low < 0 && strcmp(weft_attr_word(r->graph, r->node, WEFT_ATTR_form), "trunc") == 0))
            return unknown;
        return between(0, b.high - 1);
    case WEFT_OP_div: case WEFT_OP_floor_div: /* towards zero or -1, where it gets no larger */
        return is_int && b.low > 0 ? between(a.low < 0 ? a.low : 0, a.high > 0 ? a.high : 0) : unknown;
    case WEFT_OP_bit_and: /* no more than the bits of one that is not negative */
        if (a.low < 0 && b.low < 0)
            return unknown;
        return between(0, a.low < 0 || (b.low >= 0 && b.high < a.high) ? b.high : a.high);
    case WEFT_OP_shift_right: return between(a.low < 0 ? a.low : 0, a.high > 0 ? a.high : 0);
    default: return unknown;
    }
}

static struct weft_range clamp(const struct ranging *r, struct weft_range a)
{
    const struct weft_attr *low = weft_attr_find(r->graph, r->node, WEFT_ATTR_low);
    const struct weft_attr *high = weft_attr_find(r->graph, r->node, WEFT_ATTR_high);
    const struct weft_range least = low ? of_real(low->real) : a, most = high ? of_real(high->real) : a;
    if (!a.whole || !least.whole || !most.whole)
        return unknown;
    if (low) {
        a.low = a.low > least.low ? a.low : least.low;
        a.high = a.high > least.low ? a.high : least.low;
    }
    if (high) {
        a.low = a.low < most.high ? a.low : most.high;
        a.high = a.high < most.high ? a.high : most.high;
    }
    a.negative_zero |= least.negative_zero || most.negative_zero;
    return a;
}

static struct weft_range unary(const struct ranging *r, struct weft_range a)
{
    if (!a.whole)
        return unknown;
    if (weft_ops[r->op].traits & WEFT_ROUNDING)
        return a;
    switch (r->op) {
    case WEFT_OP_cast: /* -0 has no place in an integer */
        a.negative_zero &= weft_dtype_is_float(r->dtype);
        return a;
    case WEFT_OP_neg:
        if (a.low == INT64_MIN)
            return unknown;
        return (struct weft_range){true, a.low <= 0 && a.high >= 0, -a.high, -a.low};
    case WEFT_OP_abs:
        if (a.low == INT64_MIN)
            return unknown;
        return between(a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, a.high > -a.low ? a.high : -a.low);
    case WEFT_OP_relu:
        return (struct weft_range){true, a.negative_zero, a.low > 0 ? a.low : 0, a.high > 0 ? a.high : 0};
    case WEFT_OP_sign:
        return (struct weft_range){true, a.negative_zero, (a.low > 0) - (a.low < 0), (a.high > 0) - (a.high < 0)};
    case WEFT_OP_clamp: return clamp(r, a);
    default: return unknown;
    }
}

/* --- whole tensors ---------------------------------------------------------------------------------------------- */

/* Terms that an element of the result is computed from, at most; INT64_MAX: beyond all bounds. */
static int64_t most_terms(const struct ranging *r)
{
    struct weft_space space;
    int64_t terms = 1;
    if (!weft_index_space(r->graph, r->node, &space))
        return INT64_MAX;
    for (int i = 0; i < space.axes; i++)
        if (space.axis[i].role == WEFT_AXIS_REDUCED &&
            __builtin_mul_overflow(terms, highest(r, space.axis[i].extent), &terms))
            return INT64_MAX;
    return terms;
}

static struct weft_range of_sum(const struct ranging *r, struct weft_range a)
{
    const int64_t terms = most_terms(r);
    int64_t low, high;
    if (!a.whole || !weft_dtype_is_int(r->dtype) || __builtin_mul_overflow(a.low < 0 ? a.low : 0, terms, &low) ||
        __builtin_mul_overflow(a.high > 0 ? a.high : 0, terms, &high))
        return unknown;
    return between(low, high);
}

/* An index along the one axis that is reduced; over nothing it is 0. */
static struct weft_range of_index(const struct ranging *r)
{
    const int64_t last = most_terms(r) - 1;
    return between(0, last > 0 ? last : 0);
}

static struct weft_range of_concat(const struct ranging *r)
{
    struct weft_range range = of_operand(r, 0);
    for (unsigned i = 1; i < r->graph->node[r->node.id].operands; i++)
        range = join(range, of_operand(r, i));
    return range;
}

static struct weft_range by_op(const struct ranging *r, weft_val result)
{
    const uint32_t traits = weft_ops[r->op].traits;
    if (traits & WEFT_VIEW)
        return of_operand(r, 0);
    switch (r->op) {
    case WEFT_OP_const: return of_const(r, result);
    case WEFT_OP_iota: return of_iota(r, result);
    case WEFT_OP_flip: case WEFT_OP_relayout: case WEFT_OP_dynamic_slice: return of_operand(r, 0);
    case WEFT_OP_concat: return of_concat(r);
    case WEFT_OP_pad: return join(of_operand(r, 0), of_operand(r, 1));
    case WEFT_OP_gather: case WEFT_OP_gather_elements: case WEFT_OP_gather_nd: case WEFT_OP_triangle:
        return join(of_operand(r, 0), between(0, 0));
    case WEFT_OP_one_hot: return of_operand(r, 1);
    case WEFT_OP_select: return join(of_operand(r, 1), of_operand(r, 2));
    case WEFT_OP_dynamic_update: return join(of_operand(r, 0), of_operand(r, 1));
    case WEFT_OP_sum: return of_sum(r, of_operand(r, 0));
    case WEFT_OP_arg_max: case WEFT_OP_arg_min: return of_index(r);
    default: break;
    }
    if (!(traits & WEFT_ELEMENTWISE))
        return unknown;
    const unsigned operands = r->graph->node[r->node.id].operands;
    return operands == 1   ? unary(r, of_operand(r, 0))
           : operands == 2 ? binary(r, of_operand(r, 0), of_operand(r, 1))
                           : unknown;
}

static struct weft_range of_result(struct ranging *r, weft_val result)
{
    r->dtype = weft_type_of(r->graph, result)->dtype;
    struct weft_range range = unknown;
    if (r->graph->value[result.id].content)
        range = of_content(r, result);
    else if (r->graph->node[r->node.id].results == 1)
        range = by_op(r, result);
    const bool fits = range.whole && weft_dtype_holds(r->dtype, range.low, range.high);
    return fits ? range : range_of_type(r->dtype);
}

struct weft_ranges weft_find_ranges(struct weft_graph *graph)
{
    struct ranging r = {.graph = graph, .range = weft_new(&graph->root->scratch, struct weft_range, graph->values)};
    for (uint32_t i = 0; i < graph->params; i++)
        r.range[graph->param[i].id] = range_of_type(weft_type_of(graph, graph->param[i])->dtype);
    weft_foreach_node(graph, n) {
        r.node = n;
        r.op = weft_opcode_of(graph, n);
        for (unsigned i = 0; i < graph->node[n.id].results; i++)
            r.range[weft_result(graph, n, i).id] = of_result(&r, weft_result(graph, n, i));
    }
    return (struct weft_ranges){graph, r.range, graph->values};
}

struct weft_range weft_range_of(const struct weft_ranges *ranges, weft_val value)
{
    if (value.id < ranges->values)
        return ranges->range[value.id];
    return range_of_type(weft_type_of(ranges->graph, value)->dtype);
}
