/* SPDX-License-Identifier: Apache-2.0 */
/* cut.h: parts of an axis that numbers choose which are known at run time only: Slice, Split, TopK, Loop. */
#ifndef WEFT_ONNX_CUT_H
#define WEFT_ONNX_CUT_H

#include "onnx/import.h"

/* Extents come out of data in the outermost graph alone. */
bool weft_onnx_can_cut(const struct onnx_op *op);
/* An extent, and element `i` of a list of integers (or the scalar), as an i64[]. */
weft_val weft_onnx_extent(struct onnx_op *op, weft_dim extent);
weft_val weft_onnx_number_at(struct onnx_op *op, unsigned input, unsigned i);
/* The positions start, start + step, … in front of `end` in an axis, with ONNX's rules for Slice: i64[k], at most
 * `extent` of them. All three are i64[]; no step is 1. */
weft_val weft_onnx_positions(struct onnx_op *op, weft_dim extent, weft_val start, weft_val end, weft_val step);
/* x at these positions of an axis. */
weft_val weft_onnx_take(struct onnx_op *op, weft_val x, weft_val positions, unsigned axis);

#endif
