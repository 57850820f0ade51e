/* SPDX-License-Identifier: Apache-2.0 */
/* import_quantize.c: quantised tensors, and products of them.
 *
 * Scales and zero points are repeated to the shape of what they scale. A product of quantised tensors is one of
 * integers: zero points are subtracted first, sums are i32 and exact, and the result is scaled once. */
#include "onnx/window.h"

/* --- scales ------------------------------------------------------------------------------------------------------- */

static bool comes_out_of_data(const struct weft_dims *dims, weft_dim d)
{
    for (uint32_t i = 0; i < weft_symbol_count(dims); i++)
        if (weft_symbol_at(dims, i)->data && weft_dim_mentions(dims, d, i))
            return true;
    return false;
}

/* The scale of the block that each element lies in. Of an extent that comes out of data the most that it can be is more
 * than there are blocks for, so that what is repeated cannot be cut to it. */
static weft_val taken_by_block(struct onnx_op *op, weft_val scale, weft_dim extent, unsigned axis, int64_t block)
{
    const struct weft_type line = {.dtype = WEFT_I64, .rank = 1, .extent = {extent}};
    const struct weft_attr first = weft_attr_of_int(WEFT_ATTR_axis, 0), along = weft_attr_of_int(WEFT_ATTR_axis, axis);
    const weft_val place = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &first, &line);
    const weft_val operands[] = {
        scale, weft_onnx_binary(op, WEFT_OP_div, place, weft_onnx_scalar_like(op, place, (double)block))};
    return weft_onnx_make(op, WEFT_OP_gather, 2, operands, 1, &along, NULL);
}

/* A scale for each block of elements along an axis, repeated over the blocks; the last block may be cut. */
static weft_val unblocked(struct onnx_op *op, weft_val scale, const struct weft_type *shape, unsigned axis,
                          int64_t block)
{
    struct weft_dims *dims = op->graph->dims;
    const struct weft_type type = weft_onnx_type(op, scale);
    struct weft_type wide = {.dtype = type.dtype, .rank = (uint8_t)(type.rank + 1)};
    weft_dim flat[WEFT_MAX_RANK], zero[WEFT_MAX_RANK];
    unsigned axes[WEFT_MAX_RANK];
    if (type.rank == WEFT_MAX_RANK || block < 1) {
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "blocks of %lld in %u axes", (long long)block, type.rank);
        return WEFT_NO_VALUE;
    }
    if (comes_out_of_data(dims, shape->extent[axis]))
        return taken_by_block(op, scale, shape->extent[axis], axis, block);
    for (unsigned i = 0; i < type.rank; i++) {
        const unsigned at = i + (i > axis);
        axes[i] = at;
        wide.extent[at] = flat[i] = type.extent[i];
        zero[i] = weft_dim_of(0);
    }
    wide.extent[axis + 1] = weft_dim_of(block);
    flat[axis] = weft_dim_mul(dims, type.extent[axis], weft_dim_of(block));
    const weft_val repeated = weft_onnx_broadcast_axes(op, scale, &wide, type.rank, axes);
    const weft_val whole = weft_onnx_reshape(op, repeated, type.rank, flat);
    return weft_dim_same(flat[axis], shape->extent[axis]) ? whole
                                                          : weft_onnx_slice(op, whole, zero, shape->extent, NULL);
}

/* Scale or zero point repeated to a shape: one for all, one for each index along an axis, or one for each block. */
static weft_val spread(struct onnx_op *op, weft_val value, const struct weft_type *shape, int64_t axis, int64_t block)
{
    const struct weft_type type = weft_onnx_type(op, value);
    if (op->failed)
        return WEFT_NO_VALUE;
    if (type.rank == 0 || (type.rank == 1 && weft_dim_is(type.extent[0], 1)))
        return weft_onnx_broadcast(op, value, shape);
    const unsigned at = weft_onnx_axis(op, axis, shape->rank);
    if (type.rank == 1 && shape->rank >= 1 && !block)
        return weft_onnx_broadcast_axes(op, value, shape, 1, &at);
    if (block && type.rank == shape->rank)
        return unblocked(op, value, shape, at, block);
    return weft_onnx_broadcast(op, value, shape);
}

/* --- to and from quantised types ---------------------------------------------------------------------------------- */

static int wider_of(struct onnx_op *op, weft_val x, weft_val scale)
{
    const int a = weft_onnx_type(op, x).dtype, b = weft_onnx_type(op, scale).dtype;
    return a == b && weft_dtype_is_float(a) ? a : a == WEFT_F64 || b == WEFT_F64 ? WEFT_F64 : WEFT_F32;
}

static int stated_dtype(struct onnx_op *op, const char *name)
{
    const int64_t to = weft_onnx_int(op, name, 0);
    const int dtype = to > 0 && to < INT32_MAX ? weft_onnx_dtype((int32_t)to) : 0;
    if (to && !dtype)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "type %s (%lld) is not supported",
                       weft_onnx_dtype_name(to < INT32_MAX ? (int32_t)to : 0), (long long)to);
    return dtype;
}

static weft_val quantize(struct onnx_op *op, weft_val x, weft_val scale, weft_val zero, int dtype)
{
    struct weft_type type = weft_onnx_type(op, x);
    type.dtype = (uint8_t)dtype;
    return weft_onnx_make(op, WEFT_OP_quantize, zero.id ? 3 : 2, (const weft_val[]){x, scale, zero}, 0, NULL, &type);
}

static void import_quantize(struct onnx_op *op)
{
    weft_val x = weft_onnx_input(op, 0), scale = weft_onnx_input(op, 1), zero = WEFT_NO_VALUE;
    const int64_t axis = weft_onnx_int(op, "axis", 1), block = weft_onnx_int(op, "block_size", 0);
    const bool saturate = weft_onnx_int(op, "saturate", 1) != 0;
    const int precision = stated_dtype(op, "precision");
    int dtype = stated_dtype(op, "output_dtype");
    const int stated = weft_onnx_has(op, 2) ? weft_onnx_type(op, op->input[2]).dtype : dtype ? dtype : WEFT_U8;
    if (dtype && dtype != stated)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute output_dtype is %s, but the zero point is %s",
                       weft_dtype_name(dtype), weft_dtype_name(stated));
    dtype = stated;
    const int wide = precision ? precision : wider_of(op, x, scale);
    x = weft_onnx_cast(op, x, wide);
    const struct weft_type shape = weft_onnx_type(op, x);
    scale = spread(op, weft_onnx_cast(op, scale, wide), &shape, axis, block);
    if (weft_onnx_has(op, 2))
        zero = spread(op, op->input[2], &shape, axis, block);
    if (saturate || (dtype != WEFT_F8E4M3 && dtype != WEFT_F8E5M2)) {
        op->output[0] = quantize(op, x, scale, zero, dtype);
        return;
    }
    struct weft_type to = shape;
    to.dtype = (uint8_t)dtype;
    const weft_val quotient = weft_onnx_binary(op, WEFT_OP_div, x, scale);
    const struct weft_attr overflow = weft_attr_of_int(WEFT_ATTR_saturate, 0);
    op->output[0] = weft_onnx_make(op, WEFT_OP_cast, 1, &quotient, 1, &overflow, &to);
}

static void import_dequantize(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type shape = weft_onnx_type(op, x);
    const int64_t axis = weft_onnx_int(op, "axis", 1), block = weft_onnx_int(op, "block_size", 0);
    const int dtype = stated_dtype(op, "output_dtype");
    weft_val operands[3] = {x, spread(op, weft_onnx_input(op, 1), &shape, axis, block)};
    if (weft_onnx_has(op, 2))
        operands[2] = spread(op, op->input[2], &shape, axis, block);
    const weft_val result =
        weft_onnx_make(op, WEFT_OP_dequantize, weft_onnx_has(op, 2) ? 3 : 2, operands, 0, NULL, NULL);
    op->output[0] = dtype ? weft_onnx_cast(op, result, dtype) : result;
}

/* Scale and zero point from the range of the data, which always holds 0. Of zeros alone the range is 0, and the scale
 * 1: any would do that one can divide by. */
static void import_dynamic_quantize(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type shape = weft_onnx_type(op, x);
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < shape.rank; i++)
        axes[i] = i;
    const weft_val least = weft_onnx_reduction(op, WEFT_OP_reduce_min, x, shape.rank, axes, false);
    const weft_val largest = weft_onnx_reduction(op, WEFT_OP_reduce_max, x, shape.rank, axes, false);
    const weft_val none = weft_onnx_scalar_like(op, least, 0);
    const weft_val low = weft_onnx_binary(op, WEFT_OP_min, least, none);
    const weft_val high = weft_onnx_binary(op, WEFT_OP_max, largest, none);
    const weft_val range = weft_onnx_binary(op, WEFT_OP_sub, high, low);
    const weft_val one = weft_onnx_scalar_like(op, range, 1), steps = weft_onnx_scalar_like(op, range, 255);
    const weft_val choice[] = {weft_onnx_binary(op, WEFT_OP_eq, range, none), one,
                               weft_onnx_binary(op, WEFT_OP_div, range, steps)};
    const weft_val scale = weft_onnx_make(op, WEFT_OP_select, 3, choice, 0, NULL, NULL);
    const weft_val zero = quantize(op, weft_onnx_binary(op, WEFT_OP_sub, none, low), scale, WEFT_NO_VALUE, WEFT_U8);
    const weft_val zeros = weft_onnx_broadcast(op, zero, &shape), scales = weft_onnx_broadcast(op, scale, &shape);
    op->output[0] = quantize(op, x, scales, zeros, WEFT_U8);
    if (op->outputs > 1)
        op->output[1] = scale;
    if (op->outputs > 2)
        op->output[2] = zero;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* x as i32, less its zero point; a vector of those runs along `axis`. */
static weft_val centred(struct onnx_op *op, weft_val x, unsigned zero, unsigned axis)
{
    const weft_val wide = weft_onnx_cast(op, x, WEFT_I32);
    if (!weft_onnx_has(op, zero))
        return wide;
    const struct weft_type shape = weft_onnx_type(op, wide);
    const weft_val offset = weft_onnx_cast(op, op->input[zero], WEFT_I32);
    return weft_onnx_binary(op, WEFT_OP_sub, wide, spread(op, offset, &shape, axis, 0));
}

static unsigned axis_from_end(struct onnx_op *op, weft_val x, unsigned from_end)
{
    const unsigned rank = weft_onnx_type(op, x).rank;
    return rank >= from_end ? rank - from_end : 0;
}

static weft_val integer_product(struct onnx_op *op, weft_val a, unsigned zero_a, weft_val b, unsigned zero_b)
{
    const weft_val left = centred(op, a, zero_a, axis_from_end(op, a, 2));
    return weft_onnx_matmul(op, left, centred(op, b, zero_b, axis_from_end(op, b, 1)));
}

static void import_matmul_integer(struct onnx_op *op)
{
    op->output[0] = integer_product(op, weft_onnx_input(op, 0), 2, weft_onnx_input(op, 1), 3);
}

static void import_conv_integer(struct onnx_op *op)
{
    const weft_val x = centred(op, weft_onnx_input(op, 0), 2, 1), w = centred(op, weft_onnx_input(op, 1), 3, 0);
    op->output[0] = weft_onnx_conv(op, x, w);
}

/* The exact sums times scale_a · scale_b / scale_result, then rounded; the scales' vectors run along their axes. */
static weft_val requantized(struct onnx_op *op, weft_val sum, const weft_val *scale, const unsigned *axis,
                            unsigned zero)
{
    const weft_val real = weft_onnx_cast(op, sum, WEFT_F32);
    const struct weft_type shape = weft_onnx_type(op, real);
    weft_val spreads[3];
    for (unsigned i = 0; i < 3; i++)
        spreads[i] = spread(op, weft_onnx_cast(op, scale[i], WEFT_F32), &shape, axis[i], 0);
    const weft_val factor =
        weft_onnx_binary(op, WEFT_OP_div, weft_onnx_binary(op, WEFT_OP_mul, spreads[0], spreads[1]), spreads[2]);
    const weft_val scaled = weft_onnx_binary(op, WEFT_OP_mul, real, factor);
    const weft_val offset = weft_onnx_input(op, zero);
    const weft_val offsets = spread(op, offset, &shape, axis[2], 0), one = weft_onnx_scalar_like(op, scaled, 1);
    return quantize(op, scaled, one, offsets, weft_onnx_type(op, offset).dtype);
}

static void import_qlinear_matmul(struct onnx_op *op)
{
    const weft_val a = weft_onnx_input(op, 0), b = weft_onnx_input(op, 3);
    const weft_val sum = integer_product(op, a, 2, b, 5);
    const weft_val scale[] = {weft_onnx_input(op, 1), weft_onnx_input(op, 4), weft_onnx_input(op, 6)};
    const unsigned row = axis_from_end(op, sum, 2), column = axis_from_end(op, sum, 1);
    op->output[0] = requantized(op, sum, scale, (const unsigned[]){row, column, row}, 7);
}

static void import_qlinear_conv(struct onnx_op *op)
{
    const weft_val x = centred(op, weft_onnx_input(op, 0), 2, 1), w = centred(op, weft_onnx_input(op, 3), 5, 0);
    weft_val sum = weft_onnx_conv(op, x, w);
    if (weft_onnx_has(op, 8))
        sum = weft_onnx_add_bias(op, sum, op->input[8]);
    const weft_val scale[] = {weft_onnx_input(op, 1), weft_onnx_input(op, 4), weft_onnx_input(op, 6)};
    op->output[0] = requantized(op, sum, scale, (const unsigned[]){1, 1, 1}, 7);
}

const struct onnx_row weft_onnx_quantize[] = {
    {"ConvInteger", 10, 2, 4, 0, import_conv_integer},
    {"DequantizeLinear", 10, 2, 3, 0, import_dequantize},
    {"DynamicQuantizeLinear", 11, 1, 1, 0, import_dynamic_quantize},
    {"MatMulInteger", 10, 2, 4, 0, import_matmul_integer},
    {"QLinearConv", 10, 8, 9, 0, import_qlinear_conv},
    {"QLinearMatMul", 10, 8, 8, 0, import_qlinear_matmul},
    {"QuantizeLinear", 10, 2, 3, 0, import_quantize},
    {0},
};
