/* SPDX-License-Identifier: Apache-2.0 */
/* import_shape.c: constants, and ops that make or change shapes.
 *
 * Shapes come as tensors. A value of the graph knows its elements where they are constants or follow from extents
 * (ir/content.c), so the subgraphs that exporters build around Shape are imported as ordinary nodes, their last value
 * tells this file the extents, and dce removes them when nothing else reads them. A shape that is computed from data is
 * refused. */
#include "onnx/import.h"

#include <math.h>
#include <string.h>

/* --- constants ---------------------------------------------------------------------------------------------------- */

static weft_val constant_of_attribute(struct onnx_op *op, const struct onnx_attribute *attribute)
{
    struct onnx_tensor tensor;
    if (!weft_onnx_read_tensor(&op->importer->reader, attribute->message, &tensor))
        return WEFT_NO_VALUE;
    return weft_onnx_constant(op->importer, op->graph, &tensor, op->name);
}

static weft_val constant_of_list(struct onnx_op *op, const struct onnx_attribute *attribute, bool list)
{
    struct weft_builder builder = {.graph = op->graph};
    const bool real = attribute->type == ONNX_FLOAT || attribute->type == ONNX_FLOATS;
    const struct weft_type type = {
        .dtype = real ? WEFT_F32 : WEFT_I64, .rank = list, .extent = {weft_dim_of(attribute->count)}};
    if (list)
        return weft_build_const(&builder, &type, real ? (const void *)attribute->reals : attribute->integers);
    return real ? weft_onnx_splat(op, &type, (double)attribute->real)
                : weft_build_const(&builder, &type, &attribute->integer);
}

static void import_constant(struct onnx_op *op)
{
    static const struct {
        const char *name;
        int type;
    } forms[] = {
        {"value_float", ONNX_FLOAT}, {"value_int", ONNX_INT}, {"value_floats", ONNX_FLOATS}, {"value_ints", ONNX_INTS}};
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, "value", ONNX_TENSOR);
    if (attribute)
        op->output[0] = constant_of_attribute(op, attribute);
    for (unsigned i = 0; !op->failed && !attribute && i < 4; i++) {
        attribute = weft_onnx_attribute(op, forms[i].name, forms[i].type);
        if (attribute)
            op->output[0] = constant_of_list(op, attribute, /* list= */ i >= 2);
    }
    if (!attribute)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                       "only attributes value, value_float(s) and value_int(s) are supported");
    op->failed = op->failed || !op->output[0].id; /* the tensor's own error is recorded */
}

/* Copies a list of known extents; extents are never negative. */
static bool to_shape(struct onnx_op *op, const weft_dim *elements, unsigned count, struct weft_type *ret)
{
    if (count > WEFT_MAX_RANK)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a shape of %u axes is more than %d", count, WEFT_MAX_RANK);
    for (unsigned i = 0; i < count && !op->failed; i++) {
        if (weft_dim_is_constant(elements[i]) && weft_dim_value(elements[i]) < 0)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "extent %lld is negative", (long long)weft_dim_value(elements[i]));
        ret->extent[i] = elements[i];
    }
    ret->rank = (uint8_t)count;
    return !op->failed;
}

static void import_constant_of_shape(struct onnx_op *op)
{
    unsigned count;
    struct weft_type type = {.dtype = WEFT_F32};
    struct weft_element value = {0};
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, "value", ONNX_TENSOR);
    const weft_dim *elements = weft_onnx_known(op, 0, "input", &count);
    if (!elements || !to_shape(op, elements, count, &type))
        return;
    if (attribute) {
        const weft_val single = constant_of_attribute(op, attribute);
        if (!single.id || !weft_const_splat(op->graph, single, &value)) {
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute value must be a tensor of one element");
            return;
        }
        type.dtype = weft_onnx_type(op, single).dtype;
    }
    value.is_integer = !weft_dtype_is_float(type.dtype);
    op->output[0] = weft_onnx_element(op, &type, &value);
}

/* --- extents as values -------------------------------------------------------------------------------------------- */

static weft_val extents_of(struct onnx_op *op, unsigned rank, unsigned count, const weft_dim *elements)
{
    const struct weft_type type = {.dtype = WEFT_I64, .rank = (uint8_t)rank, .extent = {weft_dim_of(count)}};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, count, elements);
    return weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &type);
}

/* start and end count from the back when negative, and are cut to the axes that there are. */
static void import_shape(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const int64_t rank = type.rank;
    int64_t start = weft_onnx_int(op, "start", 0), end = weft_onnx_int(op, "end", rank);
    start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    end = end < start ? start : end;
    op->output[0] = extents_of(op, 1, (unsigned)(end - start), type.extent + start);
}

static void import_size(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const weft_dim elements = weft_type_elements(op->graph->dims, &type);
    op->output[0] = extents_of(op, 0, 1, &elements);
}

/* --- reshape and its kin ------------------------------------------------------------------------------------------ */

/* The extent that -1 stands for. Factors that both shapes have are struck out first, so that N*C*H*W over N needs no
 * proof about N, which may be zero. */
static weft_dim remaining_extent(struct onnx_op *op, const struct weft_type *from, const struct weft_type *to,
                                 unsigned unknown)
{
    struct weft_dims *dims = op->graph->dims;
    weft_dim product = weft_dim_of(1), divisor = weft_dim_of(1), quotient = weft_dim_of(1);
    bool struck[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < to->rank; i++) {
        unsigned k = 0;
        while (i != unknown && k < from->rank && (struck[k] || !weft_dim_same(from->extent[k], to->extent[i])))
            k++;
        if (i == unknown)
            continue;
        if (k < from->rank)
            struck[k] = true;
        else
            divisor = weft_dim_mul(dims, divisor, to->extent[i]);
    }
    for (unsigned k = 0; k < from->rank; k++)
        if (!struck[k])
            product = weft_dim_mul(dims, product, from->extent[k]);
    if (weft_dim_is(divisor, 1))
        return product;
    if (weft_dim_is(divisor, 0) || !weft_dim_divides(dims, product, divisor, &quotient))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "the extent for -1 of the new shape cannot be found for all sizes");
    return quotient;
}

static void import_reshape(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    const bool keep_zero = weft_onnx_int(op, "allowzero", 0) != 0;
    unsigned count, unknown = WEFT_MAX_RANK;
    struct weft_type to = {.dtype = from.dtype};
    weft_dim *elements = weft_onnx_known(op, 1, "shape", &count);
    if (!elements)
        return;
    for (unsigned i = 0; i < count && i < WEFT_MAX_RANK; i++) {
        if (weft_dim_is(elements[i], -1)) {
            if (unknown != WEFT_MAX_RANK)
                weft_onnx_fail(op, WEFT_ERR_INVALID, "the new shape has two extents of -1");
            unknown = i;
            elements[i] = weft_dim_of(1);
        } else if (weft_dim_is(elements[i], 0) && !keep_zero) {
            if (i >= from.rank)
                weft_onnx_fail(op, WEFT_ERR_INVALID, "extent 0 of axis %u copies an axis that does not exist", i);
            else
                elements[i] = from.extent[i];
        }
    }
    if (!to_shape(op, elements, count, &to))
        return;
    if (unknown != WEFT_MAX_RANK)
        to.extent[unknown] = remaining_extent(op, &from, &to, unknown);
    struct weft_dims *dims = op->graph->dims;
    const weft_dim before = weft_type_elements(dims, &from), after = weft_type_elements(dims, &to);
    if (!op->failed && weft_dim_is(after, 0) && !weft_dim_is(before, 0) && weft_onnx_narrow(op, before, 0)) {
        op->output[0] = weft_onnx_splat(op, &to, 0); /* no elements are no elements, whatever the sizes that are left */
        return;
    }
    op->output[0] = weft_onnx_reshape(op, x, to.rank, to.extent);
}

/* The first element along an axis whose extent is 1 for the sizes that are left. */
static weft_val first_along(struct onnx_op *op, weft_val x, unsigned axis)
{
    struct weft_type type = weft_onnx_type(op, x);
    weft_dim start[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++)
        start[i] = weft_dim_of(0);
    type.extent[axis] = weft_dim_of(1);
    return weft_onnx_slice(op, x, start, type.extent, NULL);
}

static void import_squeeze(struct onnx_op *op)
{
    weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    bool dropped[WEFT_MAX_RANK];
    weft_dim extent[WEFT_MAX_RANK];
    unsigned rank = 0;
    const bool given = weft_onnx_axes(op, op->row->max_inputs == 2, from.rank, dropped);
    for (unsigned i = 0; i < from.rank && !op->failed; i++) {
        const bool is_one = weft_dim_is(from.extent[i], 1);
        if (given && dropped[i] && !is_one && weft_onnx_narrow(op, from.extent[i], 1))
            x = first_along(op, x, i);
        else if (given && dropped[i] && !is_one)
            weft_onnx_fail(op, weft_dim_is_constant(from.extent[i]) ? WEFT_ERR_INVALID : WEFT_ERR_UNSUPPORTED,
                           "axis %u is %s, which is not known to be 1", i, weft_onnx_dim_text(op, from.extent[i]));
        if (!given && !weft_dim_is_constant(from.extent[i]))
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                           "without axes, all extents must be known, but that of axis %u is not", i);
        if (given ? !dropped[i] : !is_one)
            extent[rank++] = from.extent[i];
    }
    op->output[0] = weft_onnx_reshape(op, x, rank, extent);
}

static void import_unsqueeze(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    unsigned count;
    const int64_t *axes = op->importer->opset < 13 ? weft_onnx_ints(op, "axes", &count)
                                                   : weft_onnx_known_ints(op, 1, "axes", &count);
    if (!axes || count > WEFT_MAX_RANK || from.rank + count > WEFT_MAX_RANK)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                       !axes ? "attribute axes is missing" : "the result would have too many axes");
    bool added[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const unsigned axis = weft_onnx_axis(op, axes[i], from.rank + count);
        if (added[axis])
            weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u is named twice", axis);
        added[axis] = true;
    }
    weft_dim extent[WEFT_MAX_RANK];
    for (unsigned i = 0, k = 0; i < from.rank + count && !op->failed; i++)
        extent[i] = added[i] ? weft_dim_of(1) : from.extent[k++];
    op->output[0] = weft_onnx_reshape(op, x, from.rank + count, extent);
}

static void import_flatten(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    const int64_t given = weft_onnx_int(op, "axis", 1);
    const unsigned axis = given == from.rank ? from.rank : weft_onnx_axis(op, given, from.rank);
    weft_dim extent[2] = {weft_dim_of(1), weft_dim_of(1)};
    for (unsigned i = 0; i < from.rank; i++)
        extent[i >= axis] = weft_dim_mul(op->graph->dims, extent[i >= axis], from.extent[i]);
    op->output[0] = weft_onnx_reshape(op, x, 2, extent);
}

static void import_expand(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    unsigned count;
    struct weft_type to = {0};
    const weft_dim *elements = weft_onnx_known(op, 1, "shape", &count);
    if (!elements || !to_shape(op, elements, count, &to))
        return;
    const unsigned rank = from.rank > to.rank ? from.rank : to.rank;
    struct weft_type shape = {.rank = (uint8_t)rank};
    for (unsigned i = 0; i < rank; i++) { /* the two shapes broadcast with each other */
        const weft_dim one = weft_dim_of(1);
        shape.extent[i] = weft_onnx_join(op, i + from.rank >= rank ? from.extent[i + from.rank - rank] : one,
                                         i + to.rank >= rank ? to.extent[i + to.rank - rank] : one);
    }
    op->output[0] = weft_onnx_broadcast(op, x, &shape);
}

/* --- ranges --------------------------------------------------------------------------------------------------------
 */

static bool is_number(struct onnx_op *op, weft_val value, double number)
{
    struct weft_element splat;
    return !op->failed && weft_const_splat(op->graph, value, &splat) && splat.real == number; /* small numbers */
}

/* start + i * delta: an index, scaled and moved. */
static weft_val scaled_index(struct onnx_op *op, const struct weft_type *type, weft_val start, weft_val delta)
{
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    weft_val result = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axis, type);
    if (!is_number(op, delta, 1)) {
        const weft_val steps = weft_onnx_broadcast(op, weft_onnx_reshape(op, delta, 0, NULL), type);
        result = weft_onnx_binary(op, WEFT_OP_mul, result, steps);
    }
    if (!is_number(op, start, 0)) {
        const weft_val first = weft_onnx_broadcast(op, weft_onnx_reshape(op, start, 0, NULL), type);
        result = weft_onnx_binary(op, WEFT_OP_add, result, first);
    }
    return result;
}

/* The number of elements of an integer range. */
static weft_dim count_integers(struct onnx_op *op)
{
    struct weft_dims *dims = op->graph->dims;
    const weft_dim start = weft_onnx_known_single(op, 0, "start"), limit = weft_onnx_known_single(op, 1, "limit");
    const int64_t delta = weft_onnx_known_int(op, 2, "delta");
    if (delta == 0)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input delta is 0");
    if (op->failed)
        return weft_dim_of(0);
    const weft_dim up = weft_dim_sub(dims, limit, start), down = weft_dim_sub(dims, start, limit);
    const weft_dim count = weft_dim_ceil_div(dims, delta > 0 ? up : down, weft_dim_of(delta > 0 ? delta : -delta));
    return weft_onnx_max(op, count, weft_dim_of(0));
}

/* A bound of a range of floats: a constant, or an integer that was cast. */
static bool float_bound(struct onnx_op *op, unsigned input, weft_dim *ret)
{
    weft_val value = op->input[input];
    struct weft_element splat;
    if (weft_const_splat(op->graph, value, &splat)) {
        *ret = weft_dim_of(fabs(splat.real) < 0x1p40 ? (int64_t)splat.real : 0);
        return splat.real == (double)weft_dim_value(*ret);
    }
    if (weft_def_opcode(op->graph, value) != WEFT_OP_cast || weft_dtype_bits(weft_onnx_type(op, value).dtype) < 32)
        return false;
    return weft_onnx_single(op, weft_operand(op->graph, weft_def(op->graph, value), 0), ret);
}

/* The same of floats: whole numbers, known as expressions, or constants. */
static weft_dim count_reals(struct onnx_op *op)
{
    struct weft_element bound[3];
    weft_dim whole[3];
    if (float_bound(op, 0, &whole[0]) && float_bound(op, 1, &whole[1]) && float_bound(op, 2, &whole[2]) &&
        weft_dim_is(whole[2], 1))
        return weft_onnx_max(op, weft_dim_sub(op->graph->dims, whole[1], whole[0]), weft_dim_of(0));
    static const char *const names[] = {"start", "limit", "delta"};
    for (unsigned i = 0; i < 3 && !op->failed; i++)
        if (!weft_const_splat(op->graph, weft_onnx_folded(op, op->input[i]), &bound[i]))
            weft_onnx_fail_unknown(op, i, names[i], "must be constant");
    if (op->failed)
        return weft_dim_of(0);
    const double count = ceil((bound[1].real - bound[0].real) / bound[2].real);
    if (!(count < 0x1p40))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a range from %g to %g by %g is impossible", bound[0].real,
                       bound[1].real, bound[2].real);
    return weft_dim_of(!op->failed && count > 0 ? (int64_t)count : 0);
}

static void import_range(struct onnx_op *op)
{
    const weft_val start = weft_onnx_input(op, 0), delta = weft_onnx_input(op, 2);
    weft_onnx_input(op, 1);
    struct weft_type type = {.dtype = weft_onnx_type(op, start).dtype, .rank = 1};
    if (op->failed)
        return;
    weft_onnx_ignore(op, "stash_type"); /* 16-bit types are computed in f32 in any case */
    type.extent[0] = weft_dtype_is_float(type.dtype) ? count_reals(op) : count_integers(op);
    const int dtype = type.dtype;
    if (dtype == WEFT_F16 || dtype == WEFT_BF16)
        type.dtype = WEFT_F32;
    const weft_val step = weft_onnx_cast(op, delta, type.dtype), first = weft_onnx_cast(op, start, type.dtype);
    op->output[0] = weft_onnx_cast(op, scaled_index(op, &type, first, step), dtype);
}

const struct onnx_row weft_onnx_shape[] = {
    {"Constant", 1, 0, 0, 0, import_constant},
    {"ConstantOfShape", 9, 1, 1, 0, import_constant_of_shape},
    {"Expand", 8, 2, 2, 0, import_expand},
    {"Flatten", 1, 1, 1, 0, import_flatten},
    {"Range", 11, 3, 3, 0, import_range},
    {"Reshape", 5, 2, 2, 0, import_reshape},
    {"Shape", 1, 1, 1, 0, import_shape},
    {"Size", 1, 1, 1, 0, import_size},
    {"Squeeze", 1, 1, 1, 0, import_squeeze},
    {"Squeeze", 13, 1, 2, 0, import_squeeze},
    {"Unsqueeze", 1, 1, 1, 0, import_unsqueeze},
    {"Unsqueeze", 13, 2, 2, 0, import_unsqueeze},
    {0},
};
