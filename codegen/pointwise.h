/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h: which strip kernel computes an elementwise node, and with which numbers (pointwise.c). */
#ifndef WEFT_POINTWISE_H
#define WEFT_POINTWISE_H

#include "ir/ir.h"
#include "kernels/kernels.h"

/* The best within `cpu`, or NULL: no strip kernel takes the op on these element types. */
const struct weft_strip_kernel *weft_pointwise_kernel(const struct weft_graph *graph, weft_node node, uint32_t cpu,
                                                      struct weft_arena *arena);
/* What the kernel calls p and q; 0 where it has none. */
void weft_pointwise_params(const struct weft_graph *graph, weft_node node, double param[2]);
/* The reduction of an op with the trait WEFT_REDUCTION that kernels/strip has loops for; false: it has none. */
bool weft_pointwise_fold(int opcode, enum weft_reduce_op *ret);
/* What an op with the trait WEFT_SCAN puts together. */
enum weft_reduce_op weft_pointwise_scan(int opcode);
/* What an elementwise op takes for a number besides reading and writing, on one worker: an estimate for who computes it
 * again. */
double weft_pointwise_ns(const struct weft_graph *graph, weft_node node);
/* How a fold_chunks folds. */
enum weft_reduce_op weft_pointwise_chunks(const struct weft_graph *graph, weft_node node);

#endif
