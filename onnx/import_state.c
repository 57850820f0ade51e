/* SPDX-License-Identifier: Apache-2.0 */
/* import_state.c: ops that hand a state from call to call.
 *
 *   CausalConvWithState: x [n, c, l] behind the k - 1 positions of the last call (zeros in the first one), through a
 *   convolution of each channel with its own k taps; the last k - 1 positions are the state for the next call. */
#include "onnx/import.h"

static weft_val concatenate(struct onnx_op *op, weft_val first, weft_val second, unsigned axis)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_onnx_make(op, WEFT_OP_concat, 2, (const weft_val[]){first, second}, 1, &attr, NULL);
}

/* The last `count` positions along axis 2. */
static weft_val last_positions(struct onnx_op *op, weft_val x, weft_dim count)
{
    const struct weft_type type = weft_onnx_type(op, x);
    const weft_dim start[] = {weft_dim_of(0), weft_dim_of(0), weft_dim_sub(op->graph->dims, type.extent[2], count)};
    return weft_onnx_slice(op, x, start, type.extent, NULL);
}

static void import_causal_conv(struct onnx_op *op)
{
    enum { NO_ACTIVATION };
    const weft_val x = weft_onnx_input(op, 0), w = weft_onnx_input(op, 1);
    struct weft_type past = weft_onnx_type(op, x);
    const struct weft_type weights = weft_onnx_type(op, w);
    const int activation = weft_onnx_word(op, "activation", "none silu swish");
    if (!op->failed && (past.rank != 3 || weights.rank != 3 || !weft_dim_is_constant(weights.extent[0])))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input and weights must have 3 axes, and a known number of channels");
    if (op->failed)
        return;
    const weft_dim kept = weft_dim_sub(op->graph->dims, weights.extent[2], weft_dim_of(1));
    past.extent[2] = kept;
    const weft_val state = weft_onnx_has(op, 3) ? op->input[3] : weft_onnx_splat(op, &past, 0);
    const weft_val all = concatenate(op, state, x, 2);
    const struct weft_attr groups = weft_attr_of_int(WEFT_ATTR_groups, weft_dim_value(weights.extent[0]));
    weft_val result = weft_onnx_make(op, WEFT_OP_conv, 2, (const weft_val[]){all, w}, 1, &groups, NULL);
    if (weft_onnx_has(op, 2)) {
        const struct weft_type shape = weft_onnx_type(op, result);
        const weft_val bias = weft_onnx_broadcast_axes(op, op->input[2], &shape, 1, (const unsigned[]){1});
        result = weft_onnx_binary(op, WEFT_OP_add, result, bias);
    }
    op->output[0] = activation == NO_ACTIVATION ? result : weft_onnx_unary(op, WEFT_OP_silu, result);
    if (op->outputs > 1)
        op->output[1] = last_positions(op, all, kept);
}

const struct onnx_row weft_onnx_state[] = {
    {"CausalConvWithState", 27, 2, 4, 0, import_causal_conv},
    {0},
};
