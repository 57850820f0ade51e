/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h: what the importers of attention share with those of ops beyond the standard (import_attention.c). */
#ifndef WEFT_ONNX_ATTENTION_H
#define WEFT_ONNX_ATTENTION_H

#include "onnx/import.h"

/* [n, s, h·d] → [n, h, s, d], and back. */
weft_val weft_onnx_split_heads(struct onnx_op *op, weft_val x, int64_t heads);
weft_val weft_onnx_join_heads(struct onnx_op *op, weft_val x);
/* Rotates pairs of the first `width` elements of the last axis; x has four axes, `position` is that of positions.
 * Operands cos and sin are [n, s, width / 2]. Width 0: the whole axis. */
weft_val weft_onnx_rotate(struct onnx_op *op, weft_val x, weft_val cosine, weft_val sine, unsigned position,
                          int64_t width, bool interleaved);

#endif
