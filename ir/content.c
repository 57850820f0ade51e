/* SPDX-License-Identifier: Apache-2.0 */
/* content.c: elements of small integer and bool tensors as expressions over the symbols.
 *
 *   %s: i64[2] = extents value=[N C]           content [N, C]
 *   %n: i64[1] = slice %s start=[0] end=[1]    content [N]
 *   %m: i64[1] = mul %n, %two                  content [2*N]
 *
 * Exported networks compute shapes with ordinary ops. With the elements known as expressions, whoever imports or
 * rewrites such a graph reads the extents of a reshape off its operand, for all sizes at once, and the shape subgraph
 * dies unused. The graph keeps the elements of tensors of up to WEFT_MAX_CONTENT; of larger ones they are computed for
 * whoever asks and has the operands' (weft_content_fill).
 *
 * A content is known wholly or not at all: an operation that could wrap around in its type, truncate a negative
 * quotient or depend on the order of two extents is unknown unless the ranges of the symbols decide it. So is all in
 * whose computation a number left the 62 bits of expressions, where the tensor's 64 bits would go on or wrap. One thing
 * is taken on trust: that 64-bit sums and products of symbols do not overflow, since extents have to fit into memory
 * together. Who replaces the computation, instead of reading a shape off it, looks at the range (fold_shape). */
#include "ir/infer.h"

#include <string.h>

struct content {
    struct weft_graph *graph;
    struct weft_dims *dims;
    weft_node node;
    const struct weft_type *type; /* of the result */
    int64_t count;                /* elements of the result */
    weft_dim *element;
    const weft_dim *const *operand; /* elements of the operands, or NULL: those that the graph keeps */
};

static const weft_dim *of_operand(const struct content *c, unsigned i)
{
    return c->operand ? c->operand[i] : weft_value_of(c->graph, weft_operand(c->graph, c->node, i))->content;
}

static const struct weft_type *operand_type(const struct content *c, unsigned i)
{
    return weft_type_of(c->graph, weft_operand(c->graph, c->node, i));
}

/* --- single elements: false where unknown ------------------------------------------------------------------ */

/* Does the result's type hold d for all sizes? Of 64 bits only constants are looked at: see above. */
static bool fits(const struct content *c, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(c->dims, d, &low, &high);
    if (weft_dim_is_constant(d) && (low < -(INT64_C(1) << 60) || low > INT64_C(1) << 60))
        return false;
    const int dtype = c->type->dtype;
    const unsigned bits = weft_dtype_bits(dtype);
    if (dtype == WEFT_BOOL)
        return low >= 0 && high <= 1;
    if (!weft_dtype_is_signed(dtype))
        return low >= 0 && (bits == 64 || high < INT64_C(1) << bits);
    return bits == 64 || (low >= -(INT64_C(1) << (bits - 1)) && high < INT64_C(1) << (bits - 1));
}

/* The sign of d, if it is the same for all sizes. */
static bool sign_of(const struct content *c, weft_dim d, int *ret)
{
    int64_t low, high;
    weft_dim_range(c->dims, d, &low, &high);
    *ret = low > 0 ? 1 : high < 0 ? -1 : 0;
    return *ret != 0 || (low == 0 && high == 0);
}

static bool not_negative(const struct content *c, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(c->dims, d, &low, &high);
    return low >= 0;
}

static weft_dim negated(const struct content *c, weft_dim d) { return weft_dim_sub(c->dims, weft_dim_of(0), d); }

/* Quotient that truncates towards zero. An integer divided by 0 is 0, so a divisor that may be 0 cannot be cancelled:
 * 2*N*C / N is 2*C only where N is not 0. */
static bool divide(const struct content *c, weft_dim a, weft_dim b, weft_dim *ret)
{
    int sign;
    if (!sign_of(c, b, &sign) || sign == 0)
        return false;
    if (sign < 0) {
        a = negated(c, a);
        b = negated(c, b);
    }
    if (not_negative(c, a))
        *ret = weft_dim_div(c->dims, a, b);
    else if (not_negative(c, negated(c, a)))
        *ret = negated(c, weft_dim_div(c->dims, negated(c, a), b));
    else
        return weft_dim_divides(c->dims, a, b, ret);
    return true;
}

static bool remainder_of(const struct content *c, weft_dim a, weft_dim b, weft_dim *ret)
{
    const bool truncated = strcmp(weft_attr_word(c->graph, c->node, WEFT_ATTR_form), "trunc") == 0;
    int sign;
    if (!sign_of(c, b, &sign) || sign == 0)
        return false;
    if (!truncated && sign > 0) {
        *ret = weft_dim_mod(c->dims, a, b);
        return true;
    }
    weft_dim quotient;
    if (!divide(c, a, b, &quotient) || (!truncated && !not_negative(c, negated(c, a))))
        return false;
    *ret = weft_dim_sub(c->dims, a, weft_dim_mul(c->dims, quotient, b));
    return true;
}

static weft_dim extreme(const struct content *c, weft_dim a, weft_dim b, bool larger)
{
    const weft_dim difference = weft_dim_sub(c->dims, a, b);
    if (not_negative(c, difference))
        return larger ? a : b;
    if (not_negative(c, negated(c, difference)))
        return larger ? b : a;
    return larger ? weft_dim_max(c->dims, a, b) : weft_dim_min(c->dims, a, b);
}

static bool compare(const struct content *c, int op, weft_dim a, weft_dim b, weft_dim *ret)
{
    const weft_dim difference = weft_dim_sub(c->dims, a, b);
    int64_t low, high;
    weft_dim_range(c->dims, difference, &low, &high);
    bool yes, no;
    switch (op) {
    case WEFT_OP_eq: yes = low == 0 && high == 0; no = low > 0 || high < 0; break;
    case WEFT_OP_ne: yes = low > 0 || high < 0; no = low == 0 && high == 0; break;
    case WEFT_OP_lt: yes = high < 0; no = low >= 0; break;
    case WEFT_OP_le: yes = high <= 0; no = low > 0; break;
    case WEFT_OP_gt: yes = low > 0; no = high <= 0; break;
    case WEFT_OP_ge: yes = low >= 0; no = high < 0; break;
    default: return false;
    }
    *ret = weft_dim_of(yes);
    return yes || no;
}

static bool absolute(const struct content *c, weft_dim a, weft_dim *ret)
{
    *ret = not_negative(c, a) ? a : negated(c, a);
    return not_negative(c, *ret);
}

static bool unary(const struct content *c, int op, weft_dim a, weft_dim *ret)
{
    int sign;
    switch (op) {
    case WEFT_OP_abs: return absolute(c, a, ret);
    case WEFT_OP_neg: *ret = negated(c, a); return true;
    case WEFT_OP_relu: *ret = extreme(c, a, weft_dim_of(0), true); return true;
    case WEFT_OP_not: *ret = weft_dim_of(weft_dim_is(a, 0)); return weft_dim_is_constant(a);
    case WEFT_OP_sign:
        if (!sign_of(c, a, &sign))
            return false;
        *ret = weft_dim_of(sign);
        return true;
    default: return false;
    }
}

static bool binary(const struct content *c, int op, weft_dim a, weft_dim b, weft_dim *ret)
{
    switch (op) {
    case WEFT_OP_add: *ret = weft_dim_add(c->dims, a, b); return true;
    case WEFT_OP_sub: *ret = weft_dim_sub(c->dims, a, b); return true;
    case WEFT_OP_mul: *ret = weft_dim_mul(c->dims, a, b); return true;
    case WEFT_OP_div: return divide(c, a, b, ret);
    case WEFT_OP_floor_div:
        *ret = weft_dim_is_constant(b) && weft_dim_value(b) > 0 ? weft_dim_div(c->dims, a, b) : weft_dim_of(0);
        return weft_dim_is_constant(b) && weft_dim_value(b) > 0;
    case WEFT_OP_mod: return remainder_of(c, a, b, ret);
    case WEFT_OP_min: *ret = extreme(c, a, b, false); return true;
    case WEFT_OP_max: *ret = extreme(c, a, b, true); return true;
    case WEFT_OP_eq: case WEFT_OP_ne: case WEFT_OP_lt: case WEFT_OP_le: case WEFT_OP_gt: case WEFT_OP_ge:
        return compare(c, op, a, b, ret);
    case WEFT_OP_and: *ret = weft_dim_of(!weft_dim_is(a, 0) && !weft_dim_is(b, 0)); break;
    case WEFT_OP_or: *ret = weft_dim_of(!weft_dim_is(a, 0) || !weft_dim_is(b, 0)); break;
    case WEFT_OP_xor: *ret = weft_dim_of(weft_dim_is(a, 0) != weft_dim_is(b, 0)); break;
    default: return false;
    }
    return weft_dim_is_constant(a) && weft_dim_is_constant(b);
}

/* --- whole tensors ----------------------------------------------------------------------------------------- */

static bool fill_elementwise(struct content *c, int op, unsigned operands)
{
    const weft_dim *a = of_operand(c, 0), *b = operands > 1 ? of_operand(c, 1) : NULL;
    const weft_dim *other = operands > 2 ? of_operand(c, 2) : NULL;
    for (int64_t i = 0; i < c->count; i++) {
        bool known;
        if (op == WEFT_OP_select) {
            c->element[i] = weft_dim_is(a[i], 0) ? other[i] : b[i];
            known = weft_dim_is_constant(a[i]) || weft_dim_same(b[i], other[i]);
        } else if (op == WEFT_OP_cast && c->type->dtype == WEFT_BOOL) {
            known = compare(c, WEFT_OP_ne, a[i], weft_dim_of(0), &c->element[i]);
        } else if (op == WEFT_OP_cast || op == WEFT_OP_reshape || op == WEFT_OP_relayout) {
            c->element[i] = a[i];
            known = true;
        } else {
            known = operands == 1 ? unary(c, op, a[i], &c->element[i]) : binary(c, op, a[i], b[i], &c->element[i]);
        }
        if (!known)
            return false;
    }
    return true;
}

static bool fill_const(struct content *c)
{
    const struct weft_constant *constant = weft_node_of(c->graph, c->node)->constant;
    if (constant->kind == WEFT_CONST_RANDOM || (constant->kind == WEFT_CONST_BLOB && !constant->blob->data))
        return false;
    const void *data = constant->kind == WEFT_CONST_BLOB ? (const char *)constant->blob->data + constant->offset : NULL;
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t value = data                ? weft_load_integer(c->type->dtype, data, i)
                              : constant->integer ? constant->splat
                                                  : (int64_t)constant->real;
        if (value < -(INT64_C(1) << 60) || value > INT64_C(1) << 60)
            return false;
        c->element[i] = weft_dim_of(c->type->dtype == WEFT_BOOL ? value != 0 : value);
    }
    return true;
}

static void split_index(const struct weft_type *type, int64_t place, int64_t *ret_index)
{
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        ret_index[axis] = place % weft_dim_value(type->extent[axis]);
        place /= weft_dim_value(type->extent[axis]);
    }
}

static int64_t join_index(const struct weft_type *type, const int64_t *index)
{
    int64_t place = 0;
    for (int axis = 0; axis < type->rank; axis++)
        place = place * weft_dim_value(type->extent[axis]) + index[axis];
    return place;
}

static bool fill_iota(struct content *c)
{
    const int64_t axis = weft_attr_int(c->graph, c->node, WEFT_ATTR_axis);
    for (int64_t i = 0; i < c->count; i++) {
        int64_t index[WEFT_MAX_RANK];
        split_index(c->type, i, index);
        c->element[i] = weft_dim_of(index[axis]);
    }
    return true;
}

/* Where result elements of a view or a flip stand in the operand says their index map (ir/index.h). */
static bool fill_moved(struct content *c)
{
    const struct weft_type *from = operand_type(c, 0);
    struct weft_index_map map;
    if (!weft_index_map(c->graph, (struct weft_pin){.node = c->node}, &map))
        return false;
    for (int axis = 0; axis < map.rank; axis++)
        if (!weft_dim_is_constant(map.at[axis].base))
            return false;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t index[WEFT_MAX_RANK], place[WEFT_MAX_RANK];
        split_index(c->type, i, index);
        for (int axis = 0; axis < map.rank; axis++) {
            place[axis] = weft_index_at(c->dims, &map.at[axis], NULL, index);
            if (place[axis] < 0 || place[axis] >= weft_dim_value(from->extent[axis]))
                return false;
        }
        c->element[i] = of_operand(c, 0)[join_index(from, place)];
    }
    return true;
}

static bool fill_concat(struct content *c, unsigned operands)
{
    const int64_t axis = weft_attr_int(c->graph, c->node, WEFT_ATTR_axis);
    int64_t before = 0;
    for (unsigned operand = 0; operand < operands; operand++) {
        const struct weft_type *from = operand_type(c, operand);
        const int64_t count = weft_dim_value(weft_type_elements(c->dims, from));
        for (int64_t i = 0; i < count; i++) {
            int64_t index[WEFT_MAX_RANK];
            split_index(from, i, index);
            index[axis] += before;
            c->element[join_index(c->type, index)] = of_operand(c, operand)[i];
        }
        before += weft_dim_value(from->extent[axis]);
    }
    return true;
}

static bool fill_gather(struct content *c)
{
    const struct weft_type *from = operand_type(c, 0), *by = operand_type(c, 1);
    const int axis = (int)weft_attr_int(c->graph, c->node, WEFT_ATTR_axis);
    const int64_t extent = weft_dim_value(from->extent[axis]);
    for (int64_t i = 0; i < c->count; i++) {
        int64_t index[WEFT_MAX_RANK], place[WEFT_MAX_RANK];
        split_index(c->type, i, index);
        const weft_dim chosen = of_operand(c, 1)[join_index(by, index + axis)];
        const int64_t at = weft_dim_value(chosen) + (weft_dim_value(chosen) < 0 ? extent : 0);
        if (!weft_dim_is_constant(chosen) || at < 0 || at >= extent)
            return false;
        for (int other = 0; other < from->rank; other++)
            place[other] = other < axis ? index[other] : other == axis ? at : index[other - 1 + by->rank];
        c->element[i] = of_operand(c, 0)[join_index(from, place)];
    }
    return true;
}

static bool fill_reduce(struct content *c, int op)
{
    const struct weft_type *from = operand_type(c, 0);
    const struct weft_attr *axes = weft_attr_find(c->graph, c->node, WEFT_ATTR_axes);
    const bool keepdims = weft_attr_int(c->graph, c->node, WEFT_ATTR_keepdims);
    bool reduced[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < axes->count; i++)
        reduced[weft_dim_value(axes->integers[i])] = true;
    for (int64_t i = 0; i < c->count; i++)
        c->element[i] = weft_dim_of(op == WEFT_OP_prod);
    const int64_t terms = weft_dim_value(weft_type_elements(c->dims, from));
    for (int64_t i = 0; i < terms; i++) {
        int64_t index[WEFT_MAX_RANK], kept[WEFT_MAX_RANK];
        split_index(from, i, index);
        int rank = 0;
        bool first = true; /* of those that become one element */
        for (int axis = 0; axis < from->rank; axis++) {
            if (!reduced[axis] || keepdims)
                kept[rank++] = reduced[axis] ? 0 : index[axis];
            first &= !reduced[axis] || index[axis] == 0;
        }
        const int64_t place = join_index(c->type, kept);
        const weft_dim term = of_operand(c, 0)[i];
        weft_dim *sum = &c->element[place];
        if (op == WEFT_OP_sum)
            *sum = weft_dim_add(c->dims, *sum, term);
        else if (op == WEFT_OP_prod)
            *sum = weft_dim_mul(c->dims, *sum, term);
        else
            *sum = first ? term : extreme(c, *sum, term, op == WEFT_OP_reduce_max);
    }
    return terms > 0 || c->count == 0 || op == WEFT_OP_sum || op == WEFT_OP_prod;
}

static bool fill(struct content *c, int op, unsigned operands)
{
    switch (op) {
    case WEFT_OP_const: return fill_const(c);
    case WEFT_OP_extents:
        for (int64_t i = 0; i < c->count; i++)
            c->element[i] = weft_attr_at(c->graph, c->node, WEFT_ATTR_value, (unsigned)i);
        return true;
    case WEFT_OP_iota: return fill_iota(c);
    case WEFT_OP_flip: return fill_moved(c);
    case WEFT_OP_concat: return fill_concat(c, operands);
    case WEFT_OP_gather: return fill_gather(c);
    case WEFT_OP_sum: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min: return fill_reduce(c, op);
    case WEFT_OP_reshape: case WEFT_OP_relayout: return fill_elementwise(c, op, operands);
    default: break;
    }
    if (weft_ops[op].traits & WEFT_VIEW)
        return fill_moved(c);
    return (weft_ops[op].traits & WEFT_ELEMENTWISE) && fill_elementwise(c, op, operands);
}

static bool is_countable(struct weft_dims *dims, const struct weft_type *type)
{
    const bool integers = weft_dtype_is_int(type->dtype) && !weft_dtype_is_storage_only(type->dtype);
    return (integers || type->dtype == WEFT_BOOL) && weft_type_is_constant(type) &&
           weft_dim_is_constant(weft_type_elements(dims, type));
}

static bool compute(struct content *c)
{
    const struct weft_node_info *info = weft_node_of(c->graph, c->node);
    c->dims = c->graph->dims;
    c->type = weft_type_of(c->graph, weft_result(c->graph, c->node, 0));
    c->count = weft_dim_value(weft_type_elements(c->dims, c->type));
    weft_dims_try(c->dims);
    const bool known = fill(c, info->op, info->operands);
    if (weft_dims_tried(c->dims) || weft_dims_saturated(c->dims) || !known)
        return false;
    for (int64_t i = 0; i < c->count; i++)
        if (!fits(c, c->element[i]))
            return false;
    return true;
}

bool weft_content_fill(struct weft_graph *graph, weft_node node, const weft_dim *const *operand, weft_dim *element)
{
    struct content c = {.graph = graph, .node = node, .element = element, .operand = operand};
    return weft_node_of(graph, node)->results == 1 &&
           is_countable(graph->dims, weft_type_of(graph, weft_result(graph, node, 0))) && compute(&c);
}

bool weft_content_compute(struct weft_graph *graph, weft_node node, weft_dim *element, int64_t *ret_count)
{
    const struct weft_node_info *info = weft_node_of(graph, node);
    if (info->results != 1)
        return false;
    const struct weft_type *type = weft_type_of(graph, weft_result(graph, node, 0));
    if (!is_countable(graph->dims, type) ||
        weft_dim_value(weft_type_elements(graph->dims, type)) > WEFT_MAX_CONTENT)
        return false;
    for (unsigned i = 0; i < info->operands; i++)
        if (!weft_value_of(graph, weft_operand(graph, node, i))->content)
            return false;
    struct content c = {.graph = graph, .node = node, .element = element};
    if (!compute(&c))
        return false;
    *ret_count = c.count;
    return true;
}

const weft_dim *weft_content_of(struct weft_graph *graph, weft_node node)
{
    weft_dim element[WEFT_MAX_CONTENT];
    int64_t count;
    if (!weft_content_compute(graph, node, element, &count))
        return NULL;
    weft_dim *kept = weft_new(graph->arena, weft_dim, count ? count : 1);
    memcpy(kept, element, (size_t)count * sizeof *kept);
    return kept;
}
