/* SPDX-License-Identifier: Apache-2.0 */
/* window.h: what importers of convolutions, windows and products share (import_window.c). */
#ifndef WEFT_ONNX_WINDOW_H
#define WEFT_ONNX_WINDOW_H

#include "onnx/import.h"

struct onnx_window {
    unsigned axes;
    int64_t kernel[WEFT_MAX_RANK], stride[WEFT_MAX_RANK], dilation[WEFT_MAX_RANK];
    weft_dim pad[2 * WEFT_MAX_RANK];
};

/* A list of exactly `count` elements of at least `low`; `ret` stays as it is where the attribute is absent. */
void weft_onnx_read_list(struct onnx_op *op, const char *name, unsigned count, int64_t low, int64_t *ret);
/* Attributes that all windows share; `kernel` is known from the weights, or NULL. */
void weft_onnx_read_window(struct onnx_op *op, const struct weft_type *type, const weft_dim *kernel,
                           struct onnx_window *ret);
/* stride, pad and dilation; how many they are. */
unsigned weft_onnx_window_attrs(struct onnx_op *op, const struct onnx_window *window, struct weft_attr attrs[3]);

/* numpy's matmul of two values. */
weft_val weft_onnx_matmul(struct onnx_op *op, weft_val a, weft_val b);
/* x conv w with the node's attributes. */
weft_val weft_onnx_conv(struct onnx_op *op, weft_val x, weft_val w);
/* A vector added along axis 1. */
weft_val weft_onnx_add_bias(struct onnx_op *op, weft_val result, weft_val bias);

#endif
