/* SPDX-License-Identifier: Apache-2.0 */
/* import_window.c: matrix products, convolutions and windows.
 *
 * A contraction of weft has no bias: Gemm's C and Conv's B become `bcast` and `add`, the one form that later passes
 * know. */
#include "onnx/window.h"

#include <string.h>

/* --- products ----------------------------------------------------------------------------------------------------- */

static weft_val product(struct onnx_op *op, weft_val a, weft_val b, bool trans_a, bool trans_b)
{
    const struct weft_attr attrs[] = {weft_attr_of_int(WEFT_ATTR_trans_a, trans_a),
                                      weft_attr_of_int(WEFT_ATTR_trans_b, trans_b)};
    return weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){a, b}, 2, attrs, NULL);
}

/* Rows of all batches against one matrix: [… m k] · [k n] is one product of [(…*m) k]. */
static weft_val flat_product(struct onnx_op *op, weft_val a, weft_val b)
{
    struct weft_type type = weft_onnx_type(op, a);
    weft_dim rows = weft_dim_of(1);
    for (unsigned i = 0; i + 1 < type.rank; i++)
        rows = weft_dim_mul(op->graph->dims, rows, type.extent[i]);
    const weft_dim flat[] = {rows, type.extent[type.rank - 1]};
    const weft_val result = product(op, weft_onnx_reshape(op, a, 2, flat), b, false, false);
    type.extent[type.rank - 1] = weft_onnx_type(op, result).extent[1];
    return weft_onnx_reshape(op, result, type.rank, type.extent);
}

/* Leading axes of both operands repeated to their common shape. */
static weft_val batched_product(struct onnx_op *op, weft_val a, weft_val b)
{
    const struct weft_type types[] = {weft_onnx_type(op, a), weft_onnx_type(op, b)};
    const unsigned rank = types[0].rank > types[1].rank ? types[0].rank : types[1].rank;
    weft_val operands[] = {a, b};
    struct weft_type shape = {.rank = (uint8_t)rank};
    for (unsigned i = 0; i + 2 < rank; i++) {
        shape.extent[i] = weft_dim_of(1);
        for (unsigned k = 0; k < 2; k++)
            if (i + types[k].rank >= rank)
                shape.extent[i] = weft_onnx_join(op, shape.extent[i], types[k].extent[i + types[k].rank - rank]);
    }
    for (unsigned k = 0; k < 2 && !op->failed; k++) {
        memcpy(shape.extent + rank - 2, types[k].extent + types[k].rank - 2, 2 * sizeof *shape.extent);
        operands[k] = weft_onnx_broadcast(op, operands[k], &shape);
    }
    return product(op, operands[0], operands[1], false, false);
}

/* numpy's matmul: a vector on the left is a row, one on the right a column, and the axis that this adds goes again. */
weft_val weft_onnx_matmul(struct onnx_op *op, weft_val a, weft_val b)
{
    struct weft_type left = weft_onnx_type(op, a), right = weft_onnx_type(op, b);
    const bool row = left.rank == 1, column = right.rank == 1;
    if (left.rank == 0 || right.rank == 0)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input has no axes");
    if (op->failed)
        return WEFT_NO_VALUE;
    if (row)
        a = weft_onnx_reshape(op, a, 2, (const weft_dim[]){weft_dim_of(1), left.extent[0]});
    if (column)
        b = weft_onnx_reshape(op, b, 2, (const weft_dim[]){right.extent[0], weft_dim_of(1)});
    const unsigned rank_a = row ? 2 : left.rank, rank_b = column ? 2 : right.rank;
    weft_val result = rank_b == 2 && rank_a > 2    ? flat_product(op, a, b)
                      : rank_a == 2 && rank_b == 2 ? product(op, a, b, false, false)
                                                   : batched_product(op, a, b);
    const struct weft_type type = weft_onnx_type(op, result);
    weft_dim extent[WEFT_MAX_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < type.rank; i++)
        if (!(row && i + 2 == type.rank) && !(column && i + 1 == type.rank))
            extent[rank++] = type.extent[i];
    return weft_onnx_reshape(op, result, rank, extent);
}

static void import_matmul(struct onnx_op *op)
{
    op->output[0] = weft_onnx_matmul(op, weft_onnx_input(op, 0), weft_onnx_input(op, 1));
}

static weft_val scaled(struct onnx_op *op, weft_val x, double factor)
{
    return factor == 1 ? x : weft_onnx_binary(op, WEFT_OP_mul, x, weft_onnx_scalar_like(op, x, factor));
}

/* alpha * A' * B' + beta * C */
static void import_gemm(struct onnx_op *op)
{
    const weft_val a = weft_onnx_input(op, 0), b = weft_onnx_input(op, 1);
    const double alpha = weft_onnx_real(op, "alpha", 1), beta = weft_onnx_real(op, "beta", 1);
    const bool trans_a = weft_onnx_int(op, "transA", 0) != 0, trans_b = weft_onnx_int(op, "transB", 0) != 0;
    if (op->importer->opset < 7)
        weft_onnx_ignore(op, "broadcast"); /* C is always repeated where it has to be */
    if (weft_onnx_type(op, a).rank != 2 || weft_onnx_type(op, b).rank != 2)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "A and B must be matrices");
    weft_val result = scaled(op, product(op, a, b, trans_a, trans_b), alpha);
    if (weft_onnx_has(op, 2) && beta != 0) {
        const struct weft_type shape = weft_onnx_type(op, result);
        const weft_val c = weft_onnx_broadcast(op, scaled(op, weft_onnx_input(op, 2), beta), &shape);
        result = weft_onnx_binary(op, WEFT_OP_add, result, c);
    }
    op->output[0] = result;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

void weft_onnx_read_list(struct onnx_op *op, const char *name, unsigned count, int64_t low, int64_t *ret)
{
    unsigned given;
    const int64_t *list = weft_onnx_ints(op, name, &given);
    if (list && given != count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s has %u elements instead of %u", name, given, count);
    for (unsigned i = 0; list && i < count && !op->failed; i++) {
        if (list[i] < low || list[i] > INT32_MAX)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s has an impossible element %lld", name,
                           (long long)list[i]);
        ret[i] = list[i];
    }
}

/* SAME_*: as many windows as strides fit into the axis, with the padding that this takes; an odd one goes behind
 * (UPPER) or before (LOWER). With stride 1 that does not depend on the extent. */
static void pad_to_same(struct onnx_op *op, struct onnx_window *window, const weft_dim *extent, bool lower)
{
    struct weft_dims *dims = op->graph->dims;
    for (unsigned i = 0; i < window->axes; i++) {
        const int64_t reach = (window->kernel[i] - 1) * window->dilation[i], stride = window->stride[i];
        weft_dim total = weft_dim_of(reach);
        if (stride != 1) {
            const weft_dim last = weft_dim_mul(
                dims, weft_dim_of(stride),
                weft_dim_sub(dims, weft_dim_ceil_div(dims, extent[i], weft_dim_of(stride)), weft_dim_of(1)));
            total = weft_onnx_max(op, weft_dim_sub(dims, weft_dim_add(dims, last, weft_dim_of(reach + 1)), extent[i]),
                                  weft_dim_of(0));
        }
        const weft_dim less = weft_dim_div(dims, total, weft_dim_of(2)), more = weft_dim_sub(dims, total, less);
        window->pad[i] = lower ? more : less;
        window->pad[window->axes + i] = lower ? less : more;
    }
}

void weft_onnx_read_window(struct onnx_op *op, const struct weft_type *type, const weft_dim *kernel,
                           struct onnx_window *ret)
{
    if (type->rank < 3)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input of %u axes has no spatial ones", type->rank);
    if (op->failed)
        return;
    *ret = (struct onnx_window){.axes = type->rank - 2u};
    int64_t pads[2 * WEFT_MAX_RANK] = {0};
    for (unsigned i = 0; i < ret->axes; i++)
        ret->stride[i] = ret->dilation[i] = 1;
    weft_onnx_read_list(op, "kernel_shape", ret->axes, 1, ret->kernel);
    weft_onnx_read_list(op, "strides", ret->axes, 1, ret->stride);
    weft_onnx_read_list(op, "pads", 2 * ret->axes, 0, pads);
    if (kernel || op->importer->opset >= 10)
        weft_onnx_read_list(op, "dilations", ret->axes, 1, ret->dilation);
    const int automatic = weft_onnx_word(op, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER");
    for (unsigned i = 0; i < ret->axes && !op->failed; i++) {
        if (kernel && ret->kernel[i] && !weft_dim_is(kernel[i], ret->kernel[i]))
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute kernel_shape is not the shape of the weights");
        else if (kernel && weft_dim_is_constant(kernel[i]))
            ret->kernel[i] = weft_dim_value(kernel[i]);
        if (ret->kernel[i] < 1 && (!kernel || automatic >= 2))
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute kernel_shape is missing");
    }
    for (unsigned i = 0; i < 2 * ret->axes; i++)
        ret->pad[i] = weft_dim_of(automatic ? 0 : pads[i]);
    if (automatic >= 2 && !op->failed)
        pad_to_same(op, ret, type->extent + 2, /* lower= */ automatic == 3);
}

unsigned weft_onnx_window_attrs(struct onnx_op *op, const struct onnx_window *window, struct weft_attr attrs[3])
{
    attrs[0] = weft_attr_of_ints(op->graph, WEFT_ATTR_stride, window->axes, window->stride);
    attrs[1] = weft_attr_of_dims(WEFT_ATTR_pad, 2 * window->axes, window->pad);
    attrs[2] = weft_attr_of_ints(op->graph, WEFT_ATTR_dilation, window->axes, window->dilation);
    return 3;
}

weft_val weft_onnx_conv(struct onnx_op *op, weft_val x, weft_val w)
{
    const struct weft_type type = weft_onnx_type(op, x), weights = weft_onnx_type(op, w);
    const int64_t groups = weft_onnx_int(op, "group", 1);
    struct onnx_window window = {0};
    if (weights.rank != type.rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the weights have %u axes for an input of %u", weights.rank, type.rank);
    if (groups < 1 || groups > INT32_MAX)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute group is %lld", (long long)groups);
    weft_onnx_read_window(op, &type, weights.extent + 2, &window);
    if (op->failed)
        return WEFT_NO_VALUE;
    struct weft_attr attrs[4];
    const unsigned count = weft_onnx_window_attrs(op, &window, attrs);
    attrs[count] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    return weft_onnx_make(op, WEFT_OP_conv, 2, (const weft_val[]){x, w}, count + 1, attrs, NULL);
}

weft_val weft_onnx_add_bias(struct onnx_op *op, weft_val result, weft_val bias)
{
    const struct weft_type shape = weft_onnx_type(op, result);
    if (weft_onnx_type(op, bias).rank != 1)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the bias must have one axis");
    return weft_onnx_binary(op, WEFT_OP_add, result,
                            weft_onnx_broadcast_axes(op, bias, &shape, 1, (const unsigned[]){1}));
}

static void import_conv(struct onnx_op *op)
{
    const weft_val result = weft_onnx_conv(op, weft_onnx_input(op, 0), weft_onnx_input(op, 1));
    op->output[0] = weft_onnx_has(op, 2) ? weft_onnx_add_bias(op, result, op->input[2]) : result;
}

/* --- transposed and deformed convolutions ------------------------------------------------------------------------- */

/* A wanted extent says how much to pad: half before, half behind, and an odd one behind (SAME_UPPER) or before. More
 * than there is goes behind the result. */
static void pad_to_extent(struct onnx_op *op, struct onnx_window *window, unsigned i, weft_dim natural, weft_dim wanted,
                          bool upper, weft_dim *out_pad)
{
    struct weft_dims *dims = op->graph->dims;
    const weft_dim zero = weft_dim_of(0), missing = weft_dim_sub(dims, natural, wanted);
    const weft_dim total = weft_onnx_max(op, missing, zero);
    const weft_dim less = weft_dim_div(dims, total, weft_dim_of(2)), more = weft_dim_sub(dims, total, less);
    window->pad[i] = upper ? less : more;
    window->pad[window->axes + i] = upper ? more : less;
    *out_pad = weft_dim_add(dims, *out_pad, weft_dim_sub(dims, total, missing));
}

/* Fills in the padding of a transposed convolution; false if the attributes are wrong. */
static bool read_spreading(struct onnx_op *op, const struct weft_type *x, const struct weft_type *w,
                           struct onnx_window *ret, weft_dim *out_pad)
{
    struct weft_dims *dims = op->graph->dims;
    const weft_dim one = weft_dim_of(1);
    *ret = (struct onnx_window){.axes = x->rank - 2u};
    int64_t pads[2 * WEFT_MAX_RANK] = {0}, extra[WEFT_MAX_RANK] = {0}, wanted[WEFT_MAX_RANK] = {0};
    for (unsigned i = 0; i < ret->axes; i++)
        ret->stride[i] = ret->dilation[i] = 1;
    weft_onnx_read_list(op, "kernel_shape", ret->axes, 1, ret->kernel);
    weft_onnx_read_list(op, "strides", ret->axes, 1, ret->stride);
    weft_onnx_read_list(op, "dilations", ret->axes, 1, ret->dilation);
    weft_onnx_read_list(op, "pads", 2 * ret->axes, 0, pads);
    weft_onnx_read_list(op, "output_padding", ret->axes, 0, extra);
    weft_onnx_read_list(op, "output_shape", ret->axes, 1, wanted);
    const int automatic = weft_onnx_word(op, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER");
    for (unsigned i = 0; i < ret->axes && !op->failed; i++) {
        const weft_dim taps = w->extent[2 + i], stride = weft_dim_of(ret->stride[i]);
        if (ret->kernel[i] && !weft_dim_is(taps, ret->kernel[i]))
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute kernel_shape is not the shape of the weights");
        ret->pad[i] = weft_dim_of(automatic ? 0 : pads[i]);
        ret->pad[ret->axes + i] = weft_dim_of(automatic ? 0 : pads[ret->axes + i]);
        out_pad[i] = weft_dim_of(extra[i]);
        if (!wanted[i] && automatic < 2)
            continue;
        const weft_dim reach = weft_dim_mul(dims, weft_dim_sub(dims, taps, one), weft_dim_of(ret->dilation[i]));
        const weft_dim steps = weft_dim_mul(dims, weft_dim_sub(dims, x->extent[2 + i], one), stride);
        const weft_dim natural =
            weft_dim_add(dims, weft_dim_add(dims, steps, reach), weft_dim_of(1 + extra[i]));
        const weft_dim extent = wanted[i] ? weft_dim_of(wanted[i]) : weft_dim_mul(dims, x->extent[2 + i], stride);
        pad_to_extent(op, ret, i, natural, extent, automatic == 2, &out_pad[i]);
    }
    return !op->failed;
}

static void import_conv_transpose(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_type x = weft_onnx_type(op, operands[0]), w = weft_onnx_type(op, operands[1]);
    struct onnx_window window;
    weft_dim out_pad[WEFT_MAX_RANK];
    if (!op->failed && (x.rank < 3 || w.rank != x.rank))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the weights have %u axes for an input of %u", w.rank, x.rank);
    const int64_t groups = weft_onnx_int(op, "group", 1);
    if (op->failed || !read_spreading(op, &x, &w, &window, out_pad))
        return;
    struct weft_attr attrs[5];
    unsigned count = weft_onnx_window_attrs(op, &window, attrs);
    attrs[count++] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    attrs[count++] = weft_attr_of_dims(WEFT_ATTR_out_pad, window.axes, out_pad);
    const weft_val result = weft_onnx_make(op, WEFT_OP_conv_transpose, 2, operands, count, attrs, NULL);
    op->output[0] = weft_onnx_has(op, 2) ? weft_onnx_add_bias(op, result, op->input[2]) : result;
}

static void import_deform_conv(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1), weft_onnx_input(op, 2),
                                 weft_onnx_has(op, 4) ? op->input[4] : WEFT_NO_VALUE};
    const struct weft_type x = weft_onnx_type(op, operands[0]), w = weft_onnx_type(op, operands[1]);
    struct onnx_window window = {0};
    if (w.rank != x.rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the weights have %u axes for an input of %u", w.rank, x.rank);
    const int64_t groups = weft_onnx_int(op, "group", 1), offset_groups = weft_onnx_int(op, "offset_group", 1);
    weft_onnx_read_window(op, &x, w.extent + 2, &window);
    if (op->failed)
        return;
    struct weft_attr attrs[5];
    unsigned count = weft_onnx_window_attrs(op, &window, attrs);
    attrs[count++] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    attrs[count++] = weft_attr_of_int(WEFT_ATTR_offset_groups, offset_groups);
    const weft_val result =
        weft_onnx_make(op, WEFT_OP_deform_conv, weft_onnx_has(op, 4) ? 4 : 3, operands, count, attrs, NULL);
    op->output[0] = weft_onnx_has(op, 3) ? weft_onnx_add_bias(op, result, op->input[3]) : result;
}

const struct onnx_row weft_onnx_window[] = {
    {"Conv", 1, 2, 3, 0, import_conv},
    {"ConvTranspose", 1, 2, 3, 0, import_conv_transpose},
    {"DeformConv", 19, 3, 5, 0, import_deform_conv},
    {"Gemm", 1, 3, 3, 0, import_gemm},
    {"Gemm", 11, 2, 3, 0, import_gemm},
    {"MatMul", 1, 2, 2, 0, import_matmul},
    {0},
};
