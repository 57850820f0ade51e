/* SPDX-License-Identifier: Apache-2.0 */
/* target.h: the caller's kernels: layouts for a framework that computes by itself. */
#ifndef WEFT_PUBLIC_TARGET_H
#define WEFT_PUBLIC_TARGET_H

#include "weft/custom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A framework with kernels of its own describes them, lets passes choose layouts and a kernel for each node, and reads
 * the graph back. Worked example: examples/own_kernels.c.
 *
 * A target of the caller's is the context's target plus the caller's kernels. With it, `propagate_memory_format`
 * chooses one of the kernels that fit a node; for a node that none fits, it uses weft's own costs. The graph then
 * names a node's kernel right of `!` and has `relayout` nodes where data must be converted. Relayouts of constants are
 * done once, before the first run, and count as free. weft cannot run such kernels: weft_compile refuses the target. */
struct weft_kernel {
    size_t size;
    const char *name;        /* letters, digits, _ and .; up to 63 */
    const char *op;          /* the op it computes, "conv" */
    void *user;              /* passed to all functions below, which may not change the graph */
    /* Can it compute this node? NULL: it can compute every node of its op. */
    bool (*fits)(void *user, const struct weft_graph *graph, weft_node node);
    /* The layout that operand i, or for i = operands + k result k, must have, as text: "{0 1/16 2 3 1%16}". Returning
     * NULL means any layout for an operand, row-major for a result. If the function is NULL: row-major everywhere. For
     * alignment see demand. */
    const char *(*layout)(void *user, const struct weft_graph *graph, weft_node node, size_t i);
    /* The time of a call in microseconds, without conversions, with symbols at their hints; not NULL. A kernel whose
     * cost is negative, NaN, or 10 seconds or more, or whose layouts cannot be parsed, is not used, and a remark says
     * so. */
    double (*cost)(void *user, const struct weft_graph *graph, weft_node node);
    /* Sets further demands on operand i, or for i = operands + k on result k. NULL: none. */
    void (*demand)(void *user, const struct weft_graph *graph, weft_node node, size_t i,
                   struct weft_demand *ret_demand);
};
/* Creates a target like the context's, without kernels yet, for graphs of this context. */
WEFT_API int weft_target_create(struct weft_context *context, struct weft_target **ret_target);
WEFT_API void weft_target_destroy(struct weft_target *target);
/* Adds a kernel; strings are copied. A name can be used once. */
WEFT_API int weft_target_add(struct weft_target *target, const struct weft_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
