/* SPDX-License-Identifier: Apache-2.0 */
/* import_window.c: matrix products, convolutions and windows.
 *
 * A contraction of weft has no bias: Gemm's C and Conv's B become `bcast` and `add`, the one form that later passes
 * know. */
#include "onnx/import.h"

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
static void import_matmul(struct onnx_op *op)
{
    weft_val a = weft_onnx_input(op, 0), b = weft_onnx_input(op, 1);
    struct weft_type left = weft_onnx_type(op, a), right = weft_onnx_type(op, b);
    const bool row = left.rank == 1, column = right.rank == 1;
    if (left.rank == 0 || right.rank == 0)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input has no axes");
    if (op->failed)
        return;
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
    op->output[0] = weft_onnx_reshape(op, result, rank, extent);
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

struct window {
    unsigned axes;
    int64_t kernel[WEFT_MAX_RANK], stride[WEFT_MAX_RANK], dilation[WEFT_MAX_RANK];
    weft_dim pad[2 * WEFT_MAX_RANK];
};

static void read_list(struct onnx_op *op, const char *name, unsigned count, int64_t low, int64_t *ret)
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
static void pad_to_same(struct onnx_op *op, struct window *window, const weft_dim *extent, bool lower)
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

/* Attributes that all windows share; `kernel` is known from the weights, or NULL. */
static void read_window(struct onnx_op *op, const struct weft_type *type, const weft_dim *kernel, struct window *ret)
{
    if (type->rank < 3)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input of %u axes has no spatial ones", type->rank);
    if (op->failed)
        return;
    *ret = (struct window){.axes = type->rank - 2u};
    int64_t pads[2 * WEFT_MAX_RANK] = {0};
    for (unsigned i = 0; i < ret->axes; i++)
        ret->stride[i] = ret->dilation[i] = 1;
    read_list(op, "kernel_shape", ret->axes, 1, ret->kernel);
    read_list(op, "strides", ret->axes, 1, ret->stride);
    read_list(op, "pads", 2 * ret->axes, 0, pads);
    if (kernel || op->importer->opset >= 10)
        read_list(op, "dilations", ret->axes, 1, ret->dilation);
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

static unsigned window_attrs(struct onnx_op *op, const struct window *window, struct weft_attr attrs[3])
{
    attrs[0] = weft_attr_of_ints(op->graph, WEFT_ATTR_stride, window->axes, window->stride);
    attrs[1] = weft_attr_of_dims(WEFT_ATTR_pad, 2 * window->axes, window->pad);
    attrs[2] = weft_attr_of_ints(op->graph, WEFT_ATTR_dilation, window->axes, window->dilation);
    return 3;
}

static void import_conv(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0), w = weft_onnx_input(op, 1);
    const struct weft_type type = weft_onnx_type(op, x), weights = weft_onnx_type(op, w);
    const int64_t groups = weft_onnx_int(op, "group", 1);
    struct window window = {0};
    if (weights.rank != type.rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the weights have %u axes for an input of %u", weights.rank, type.rank);
    if (groups < 1 || groups > INT32_MAX)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute group is %lld", (long long)groups);
    read_window(op, &type, weights.extent + 2, &window);
    if (op->failed)
        return;
    struct weft_attr attrs[4];
    const unsigned count = window_attrs(op, &window, attrs);
    attrs[count] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    weft_val result = weft_onnx_make(op, WEFT_OP_conv, 2, (const weft_val[]){x, w}, count + 1, attrs, NULL);
    if (weft_onnx_has(op, 2)) {
        const struct weft_type shape = weft_onnx_type(op, result);
        if (weft_onnx_type(op, op->input[2]).rank != 1)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "the bias must have one axis");
        result = weft_onnx_binary(op, WEFT_OP_add, result,
                                  weft_onnx_broadcast_axes(op, op->input[2], &shape, (const unsigned[]){1}));
    }
    op->output[0] = result;
}

static void import_pool(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct window window = {0};
    read_window(op, &type, NULL, &window);
    if (op->failed)
        return;
    struct weft_attr attrs[6];
    unsigned count = window_attrs(op, &window, attrs);
    attrs[count++] = weft_attr_of_ints(op->graph, WEFT_ATTR_kernel, window.axes, window.kernel);
    if (op->importer->opset >= 10)
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_ceil, weft_onnx_int(op, "ceil_mode", 0) != 0);
    if (op->row->opcode == WEFT_OP_mean_pool)
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_count_pad, weft_onnx_int(op, "count_include_pad", 0) != 0);
    else if (weft_onnx_int(op, "storage_order", 0) != 0 && op->outputs > 1)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute storage_order is not 0");
    op->output[0] = weft_onnx_make(op, op->row->opcode, 1, &x, count, attrs, NULL);
}

static void import_global_pool(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned axes[WEFT_MAX_RANK], count = 0;
    for (unsigned axis = 2; axis < rank; axis++)
        axes[count++] = axis;
    if (!count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input of %u axes has no spatial ones", rank);
    op->output[0] = weft_onnx_reduction(op, op->row->opcode, x, count, axes, true);
}

const struct onnx_row weft_onnx_window[] = {
    {"AveragePool", 7, 1, 1, WEFT_OP_mean_pool, import_pool},
    {"Conv", 1, 2, 3, 0, import_conv},
    {"Gemm", 7, 3, 3, 0, import_gemm},
    {"Gemm", 11, 2, 3, 0, import_gemm},
    {"GlobalAveragePool", 1, 1, 1, WEFT_OP_mean, import_global_pool},
    {"GlobalMaxPool", 1, 1, 1, WEFT_OP_reduce_max, import_global_pool},
    {"MatMul", 1, 2, 2, 0, import_matmul},
    {"MaxPool", 1, 1, 1, WEFT_OP_max_pool, import_pool},
    {0},
};
