/* SPDX-License-Identifier: Apache-2.0 */
/* import_norm.c: normalisations.
 *
 * Those that networks spend time in are ops of weft: batch, layer, group and root-mean-square norms. The others are
 * written in ops that exist, and whatever of a norm's statistics is asked for as a result is computed beside it. */
#include "onnx/import.h"

#include <string.h>

static weft_val reduce(struct onnx_op *op, int opcode, weft_val x, unsigned axes, const unsigned *axis)
{
    return weft_onnx_reduction(op, opcode, x, axes, axis, /* keepdims= */ true);
}

/* x opcode y, with y repeated to x's shape. */
static weft_val with(struct onnx_op *op, int opcode, weft_val x, weft_val y)
{
    const struct weft_type shape = weft_onnx_type(op, x);
    return weft_onnx_binary(op, opcode, x, weft_onnx_broadcast(op, y, &shape));
}

static weft_val with_number(struct onnx_op *op, int opcode, weft_val x, double number)
{
    return weft_onnx_binary(op, opcode, x, weft_onnx_scalar_like(op, x, number));
}

/* Without its axes of extent 1, but for axis `keep`. */
static weft_val flattened(struct onnx_op *op, weft_val x, unsigned keep)
{
    const struct weft_type type = weft_onnx_type(op, x);
    return weft_onnx_reshape(op, x, 1, &type.extent[keep]);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* The mean and the variance over all axes but the channels', with extents of 1 there. */
static void channel_statistics(struct onnx_op *op, weft_val x, weft_val *ret_mean, weft_val *ret_variance)
{
    unsigned axes[WEFT_MAX_RANK], count = 0;
    for (unsigned axis = 0; axis < weft_onnx_type(op, x).rank; axis++)
        if (axis != 1)
            axes[count++] = axis;
    const weft_val mean = reduce(op, WEFT_OP_mean, x, count, axes);
    const weft_val difference = with(op, WEFT_OP_sub, x, mean);
    const weft_val square = weft_onnx_binary(op, WEFT_OP_mul, difference, difference);
    *ret_mean = flattened(op, mean, 1);
    *ret_variance = flattened(op, reduce(op, WEFT_OP_mean, square, count, axes), 1);
}

static weft_val blend(struct onnx_op *op, weft_val old, weft_val new, double momentum)
{
    const weft_val added = with_number(op, WEFT_OP_mul, new, 1 - momentum);
    return weft_onnx_binary(op, WEFT_OP_add, with_number(op, WEFT_OP_mul, old, momentum), added);
}

/* Scale, shift, mean and variance may have other types than the data, in which none of them is rounded: the norm is
 * computed in one that holds them all. */
static int batch_norm_dtype(struct onnx_op *op)
{
    int dtype = weft_onnx_type(op, weft_onnx_input(op, 0)).dtype;
    for (unsigned i = 1; i < 5; i++) {
        const int other = weft_onnx_type(op, weft_onnx_input(op, i)).dtype;
        if (weft_dtype_bits(other) > weft_dtype_bits(dtype))
            dtype = other;
        else if (other != dtype && weft_dtype_bits(other) == weft_dtype_bits(dtype))
            dtype = WEFT_F32; /* f16 and bf16 */
    }
    return dtype;
}

static void import_batch_norm(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const int dtype = batch_norm_dtype(op);
    const struct weft_attr epsilon = weft_attr_of_real(WEFT_ATTR_epsilon, weft_onnx_real(op, "epsilon", (double)1e-5f));
    const double momentum = weft_onnx_real(op, "momentum", (double)0.9f);
    if (op->importer->opset < 9 && weft_onnx_int(op, "spatial", 1) != 1)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute spatial is not 1");
    if (op->importer->opset < 7 && weft_onnx_int(op, "is_test", 0) == 0)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute is_test is not set: training before opset 14");
    const bool training = op->importer->opset >= 14 && weft_onnx_int(op, "training_mode", 0) != 0;
    weft_val operands[5];
    for (unsigned i = 0; i < 5; i++)
        operands[i] = weft_onnx_cast(op, weft_onnx_input(op, i), dtype);
    if (training && !op->failed) {
        weft_val statistics[2];
        channel_statistics(op, weft_onnx_widen(op, x), &statistics[0], &statistics[1]);
        for (unsigned i = 0; i < 2; i++) {
            const int wide = weft_onnx_type(op, op->input[3 + i]).dtype;
            operands[3 + i] = weft_onnx_cast(op, statistics[i], dtype);
            if (op->outputs > 1 + i)
                op->output[1 + i] = blend(op, op->input[3 + i], weft_onnx_cast(op, statistics[i], wide), momentum);
        }
    }
    op->output[0] = weft_onnx_cast(op, weft_onnx_make(op, WEFT_OP_batch_norm, 5, operands, 1, &epsilon, NULL),
                                   weft_onnx_type(op, x).dtype);
}

/* --- groups of channels ------------------------------------------------------------------------------------------- */

static weft_val group_norm(struct onnx_op *op, weft_val x, weft_val scale, weft_val bias, weft_dim groups)
{
    struct weft_attr attrs[] = {weft_attr_of_int(WEFT_ATTR_groups, 1),
                                weft_attr_of_real(WEFT_ATTR_epsilon, weft_onnx_real(op, "epsilon", (double)1e-5f))};
    attrs[0].integer = groups;
    return weft_onnx_make(op, WEFT_OP_group_norm, 3, (const weft_val[]){x, scale, bias}, 2, attrs, NULL);
}

/* Each channel is a group of its own. */
static void import_instance_norm(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type scale = weft_onnx_type(op, weft_onnx_input(op, 1));
    if (!op->failed && scale.rank != 1)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the scale has %u axes instead of 1", scale.rank);
    if (!op->failed)
        op->output[0] = group_norm(op, x, op->input[1], weft_onnx_input(op, 2), scale.extent[0]);
}

/* A number for each group, repeated for each channel of it. */
static weft_val per_channel(struct onnx_op *op, weft_val number, int64_t groups, weft_dim channels)
{
    weft_dim per_group;
    if (op->failed || !weft_dim_divides(op->graph->dims, channels, weft_dim_of(groups), &per_group)) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "num_groups does not divide the channels");
        return number;
    }
    const struct weft_type shape = {.rank = 2, .extent = {weft_dim_of(groups), per_group}};
    return weft_onnx_reshape(op, weft_onnx_broadcast_axes(op, number, &shape, 1, (const unsigned[]){0}), 1, &channels);
}

static void import_group_norm(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    weft_val scale = weft_onnx_input(op, 1), bias = weft_onnx_input(op, 2);
    const struct weft_type type = weft_onnx_type(op, x);
    const int64_t groups = weft_onnx_int(op, "num_groups", 0);
    if (!op->failed && (groups < 1 || type.rank < 2))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "num_groups is %lld for an input of %u axes", (long long)groups,
                       type.rank);
    if (op->failed)
        return;
    if (op->importer->opset >= 21) {
        weft_onnx_ignore(op, "stash_type"); /* every norm computes in f32 at least */
    } else {
        scale = per_channel(op, scale, groups, type.extent[1]);
        bias = per_channel(op, bias, groups, type.extent[1]);
    }
    op->output[0] = group_norm(op, x, scale, bias, weft_dim_of(groups));
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

struct layer {
    weft_val x;
    struct weft_type type, inner; /* of x; of what is normalised together */
    unsigned first;               /* axis */
    int statistics;               /* type of the mean and of the deviation */
    double epsilon;
};

static struct layer read_layer(struct onnx_op *op)
{
    struct layer layer = {.x = weft_onnx_input(op, 0)};
    layer.type = layer.inner = weft_onnx_type(op, layer.x);
    layer.first = weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), layer.type.rank);
    layer.epsilon = weft_onnx_real(op, "epsilon", (double)1e-5f);
    layer.statistics = weft_onnx_dtype((int32_t)weft_onnx_int(op, "stash_type", 1));
    if (!weft_dtype_is_float(layer.statistics))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute stash_type is not the type of a float");
    layer.inner.rank = (uint8_t)(layer.type.rank - layer.first);
    memmove(layer.inner.extent, layer.type.extent + layer.first, layer.inner.rank * sizeof *layer.inner.extent);
    return layer;
}

/* Does the value broadcast to what is normalised together? */
static bool is_inner(struct onnx_op *op, const struct layer *layer, weft_val value)
{
    const struct weft_type type = weft_onnx_type(op, value);
    bool fits = type.rank <= layer->inner.rank;
    for (unsigned i = 0; fits && i < type.rank; i++)
        fits = weft_dim_is(type.extent[i], 1) ||
               weft_dim_same(type.extent[i], layer->inner.extent[layer->inner.rank - type.rank + i]);
    return fits;
}

/* The norm with its scale and bias, as operands where they vary along the normalised axes only. */
static weft_val layer_norm(struct onnx_op *op, const struct layer *layer)
{
    const struct weft_attr attrs[] = {weft_attr_of_int(WEFT_ATTR_axis, layer->first),
                                      weft_attr_of_real(WEFT_ATTR_epsilon, layer->epsilon)};
    weft_val operands[3] = {layer->x};
    unsigned count = 1;
    while (count < 3 && weft_onnx_has(op, count) && is_inner(op, layer, op->input[count])) {
        operands[count] = weft_onnx_broadcast(op, op->input[count], &layer->inner);
        count++;
    }
    weft_val result = weft_onnx_make(op, op->row->opcode, count, operands, 2, attrs, NULL);
    for (unsigned i = count; i < 3; i++)
        if (weft_onnx_has(op, i))
            result = with(op, i == 1 ? WEFT_OP_mul : WEFT_OP_add, result, op->input[i]);
    return result;
}

static void import_layer_norm(struct onnx_op *op)
{
    const struct layer layer = read_layer(op);
    if (op->failed)
        return;
    op->output[0] = layer_norm(op, &layer);
    if (op->outputs < 2)
        return;
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < layer.inner.rank; i++)
        axes[i] = layer.first + i;
    weft_val wide = weft_onnx_widen(op, layer.x);
    wide = layer.statistics == WEFT_F64 ? weft_onnx_cast(op, wide, WEFT_F64) : wide;
    const weft_val mean = reduce(op, WEFT_OP_mean, wide, layer.inner.rank, axes);
    const weft_val difference = with(op, WEFT_OP_sub, wide, mean);
    const weft_val square = weft_onnx_binary(op, WEFT_OP_mul, difference, difference);
    const weft_val variance = reduce(op, WEFT_OP_mean, square, layer.inner.rank, axes);
    op->output[1] = weft_onnx_cast(op, mean, layer.statistics);
    if (op->outputs > 2)
        op->output[2] = weft_onnx_cast(
            op, weft_onnx_unary(op, WEFT_OP_rsqrt, with_number(op, WEFT_OP_add, variance, layer.epsilon)),
            layer.statistics);
}

static void import_rms_norm(struct onnx_op *op)
{
    const struct layer layer = read_layer(op);
    if (!op->failed)
        op->output[0] = layer_norm(op, &layer);
}

/* --- others ------------------------------------------------------------------------------------------------------- */

/* x over its norm along an axis; where the norm is 0, 0. */
static void import_lp_norm(struct onnx_op *op)
{
    const int dtype = weft_onnx_type(op, weft_onnx_input(op, 0)).dtype;
    const weft_val x = weft_onnx_widen(op, op->input[0]);
    const int64_t p = weft_onnx_int(op, "p", 2);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), weft_onnx_type(op, x).rank);
    if (p != 1 && p != 2)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute p is %lld instead of 1 or 2", (long long)p);
    const weft_val each =
        p == 1 ? weft_onnx_unary(op, WEFT_OP_abs, x) : weft_onnx_binary(op, WEFT_OP_mul, x, x);
    weft_val norm = reduce(op, WEFT_OP_sum, each, 1, &axis);
    if (p == 2)
        norm = weft_onnx_unary(op, WEFT_OP_sqrt, norm);
    const struct weft_type shape = weft_onnx_type(op, x);
    norm = weft_onnx_broadcast(op, norm, &shape);
    const weft_val zero = weft_onnx_scalar_like(op, norm, 0);
    const weft_val operands[] = {weft_onnx_binary(op, WEFT_OP_eq, norm, zero), zero,
                                 weft_onnx_binary(op, WEFT_OP_div, x, norm)};
    op->output[0] = weft_onnx_cast(op, weft_onnx_make(op, WEFT_OP_select, 3, operands, 0, NULL, NULL), dtype);
}

/* (x - mean) / (deviation + 1e-9) over some axes. */
static void import_mean_variance(struct onnx_op *op)
{
    static const int64_t usual[] = {0, 2, 3};
    const int dtype = weft_onnx_type(op, weft_onnx_input(op, 0)).dtype;
    const weft_val x = weft_onnx_widen(op, op->input[0]);
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned count, chosen = 0, axes[WEFT_MAX_RANK];
    bool reduced[WEFT_MAX_RANK] = {false};
    const int64_t *list = weft_onnx_ints(op, "axes", &count);
    for (unsigned i = 0; i < (list ? count : 3) && !op->failed; i++)
        reduced[weft_onnx_axis(op, list ? list[i] : usual[i], rank)] = true;
    for (unsigned axis = 0; axis < rank; axis++)
        if (reduced[axis])
            axes[chosen++] = axis;
    const weft_val difference = with(op, WEFT_OP_sub, x, reduce(op, WEFT_OP_mean, x, chosen, axes));
    const weft_val square = weft_onnx_binary(op, WEFT_OP_mul, difference, difference);
    const weft_val deviation = weft_onnx_unary(op, WEFT_OP_sqrt, reduce(op, WEFT_OP_mean, square, chosen, axes));
    op->output[0] =
        weft_onnx_cast(op, with(op, WEFT_OP_div, difference, with_number(op, WEFT_OP_add, deviation, 1e-9)), dtype);
}

/* x / (bias + alpha / size · Σ of the squares of `size` neighbouring channels)^beta. With the channels as an image's
 * rows, the sum over size is a mean over windows of size × 1 whose padding counts. */
static void import_lrn(struct onnx_op *op)
{
    const int dtype = weft_onnx_type(op, weft_onnx_input(op, 0)).dtype;
    const weft_val x = weft_onnx_widen(op, op->input[0]);
    const struct weft_type type = weft_onnx_type(op, x);
    const int64_t size = weft_onnx_int(op, "size", 0);
    const double alpha = weft_onnx_real(op, "alpha", (double)1e-4f), beta = weft_onnx_real(op, "beta", 0.75);
    const double bias = weft_onnx_real(op, "bias", 1);
    if (!op->failed && (type.rank < 3 || size < 1 || size > INT32_MAX))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute size is %lld for an input of %u axes", (long long)size,
                       type.rank);
    if (op->failed)
        return;
    weft_dim flat[4] = {type.extent[0], weft_dim_of(1), type.extent[1], weft_dim_of(1)};
    for (unsigned axis = 2; axis < type.rank; axis++)
        flat[3] = weft_dim_mul(op->graph->dims, flat[3], type.extent[axis]);
    const int64_t kernel[] = {size, 1}, pad[] = {(size - 1) / 2, 0, size / 2, 0};
    const struct weft_attr attrs[] = {weft_attr_of_ints(op->graph, WEFT_ATTR_kernel, 2, kernel),
                                      weft_attr_of_ints(op->graph, WEFT_ATTR_pad, 4, pad),
                                      weft_attr_of_int(WEFT_ATTR_count_pad, 1)};
    const weft_val square = weft_onnx_reshape(op, weft_onnx_binary(op, WEFT_OP_mul, x, x), 4, flat);
    const weft_val mean = weft_onnx_make(op, WEFT_OP_mean_pool, 1, &square, 3, attrs, NULL);
    const weft_val sum = weft_onnx_reshape(op, mean, type.rank, type.extent);
    const weft_val base = with_number(op, WEFT_OP_add, with_number(op, WEFT_OP_mul, sum, alpha), bias);
    op->output[0] =
        weft_onnx_cast(op, weft_onnx_binary(op, WEFT_OP_div, x, with_number(op, WEFT_OP_pow, base, beta)), dtype);
}

const struct onnx_row weft_onnx_norm[] = {
    {"BatchNormalization", 6, 5, 5, 0, import_batch_norm},
    {"GroupNormalization", 18, 3, 3, 0, import_group_norm},
    {"InstanceNormalization", 6, 3, 3, 0, import_instance_norm},
    {"LayerNormalization", 17, 2, 3, WEFT_OP_layer_norm, import_layer_norm},
    {"LpNormalization", 1, 1, 1, 0, import_lp_norm},
    {"LRN", 1, 1, 1, 0, import_lrn},
    {"MeanVarianceNormalization", 9, 1, 1, 0, import_mean_variance},
    {"RMSNormalization", 23, 2, 2, WEFT_OP_rms_norm, import_rms_norm},
    {0},
};
