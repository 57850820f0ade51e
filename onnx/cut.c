/* SPDX-License-Identifier: Apache-2.0 */
/* cut.c: parts of an axis that numbers choose which are known at run time only.
 *
 * Whatever they are, no more than the axis is left of it, so the result has an extent that comes out of data and is
 * bounded by that of the axis: `compress` keeps the positions that are meant, and x is gathered there:
 *
 *     %all: i64[N] = iota axis=0
 *     …                                           start + step · i, where it lies in front of the end
 *     %position: i64[k1] = compress %place, %kept extent=[k1]        k1=data(N)
 *     %y: f32[k1,3] = gather %x, %position axis=0
 *
 * Elsewhere (repeats, new shapes, pads) nothing bounds the result, and the numbers have to be known. */
#include "onnx/cut.h"

static const struct weft_type scalar_type = {.dtype = WEFT_I64};

bool weft_onnx_can_cut(const struct onnx_op *op) { return !op->failed && op->graph == op->graph->root; }

weft_val weft_onnx_extent(struct onnx_op *op, weft_dim extent)
{
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &extent);
    return weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar_type);
}

static weft_val number(struct onnx_op *op, double value) { return weft_onnx_splat(op, &scalar_type, value); }

weft_val weft_onnx_number_at(struct onnx_op *op, unsigned input, unsigned i)
{
    const weft_val list = weft_onnx_cast(op, weft_onnx_input(op, input), WEFT_I64);
    const struct weft_type type = weft_onnx_type(op, list);
    if (!op->failed && type.rank > 1)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input %u has %d axes, but is a list", input, type.rank);
    if (op->failed || type.rank == 0)
        return list;
    const weft_dim start = weft_dim_of(i), end = weft_dim_of(i + 1);
    return weft_onnx_reshape(op, weft_onnx_slice(op, list, &start, &end, NULL), 0, NULL);
}

static weft_val choose(struct onnx_op *op, weft_val condition, weft_val yes, weft_val no)
{
    return weft_onnx_make(op, WEFT_OP_select, 3, (const weft_val[]){condition, yes, no}, 0, NULL, NULL);
}

static weft_val clamp(struct onnx_op *op, weft_val x, weft_val low, weft_val high)
{
    return weft_onnx_binary(op, WEFT_OP_min, weft_onnx_binary(op, WEFT_OP_max, x, low), high);
}

weft_val weft_onnx_positions(struct onnx_op *op, weft_dim extent, weft_val start, weft_val end, weft_val step)
{
    const weft_val size = weft_onnx_extent(op, extent), zero = number(op, 0), one = number(op, 1);
    const weft_val minus = number(op, -1);
    if (!step.id)
        step = one;
    /* A step beyond the axis is as good as one across it, and does not overflow. */
    const weft_val across = weft_onnx_binary(op, WEFT_OP_add, size, one);
    step = clamp(op, step, weft_onnx_unary(op, WEFT_OP_neg, across), across);
    const weft_val back = weft_onnx_binary(op, WEFT_OP_lt, step, zero);
    const weft_val low = choose(op, back, minus, zero);
    const weft_val high = weft_onnx_binary(op, WEFT_OP_add, size, low);
    weft_val *const bound[] = {&start, &end};
    for (unsigned i = 0; i < 2; i++) { /* from the back when negative, and cut to the axis */
        const weft_val negative = weft_onnx_binary(op, WEFT_OP_lt, *bound[i], zero);
        const weft_val moved = weft_onnx_binary(op, WEFT_OP_add, *bound[i], choose(op, negative, size, zero));
        *bound[i] = clamp(op, moved, i == 0 ? zero : low, high); /* only an end may stand in front of the axis */
    }
    const struct weft_type line = {.dtype = WEFT_I64, .rank = 1, .extent = {extent}};
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    weft_val place = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axis, &line);
    place = weft_onnx_binary(op, WEFT_OP_mul, place, weft_onnx_broadcast(op, step, &line));
    place = weft_onnx_binary(op, WEFT_OP_add, place, weft_onnx_broadcast(op, start, &line));
    /* Forwards places lie in front of the end, backwards behind it; with step 0, which ONNX forbids, nowhere. */
    const weft_val limit = weft_onnx_broadcast(op, end, &line);
    const weft_val before = weft_onnx_binary(op, WEFT_OP_lt, place, limit);
    const weft_val behind = weft_onnx_binary(op, WEFT_OP_gt, place, limit);
    const weft_val kept = choose(op, weft_onnx_broadcast(op, back, &line), behind, before);
    const weft_val moves = weft_onnx_broadcast(op, weft_onnx_binary(op, WEFT_OP_ne, step, zero), &line);
    const weft_val operand[] = {place, weft_onnx_binary(op, WEFT_OP_and, kept, moves)};
    struct weft_attr attrs[2] = {weft_attr_of_int(WEFT_ATTR_axis, 0)};
    return weft_onnx_make_sized(op, WEFT_OP_compress, 2, operand, extent, 1, attrs);
}

weft_val weft_onnx_take(struct onnx_op *op, weft_val x, weft_val positions, unsigned axis)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_onnx_make(op, WEFT_OP_gather, 2, (const weft_val[]){x, positions}, 1, &attr, NULL);
}
