/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h: what of a graph the caller's own code computes, and how that goes through memory: custom functions, and
 * kernels of a target (weft_demand). */
#ifndef WEFT_CALLER_H
#define WEFT_CALLER_H

#include "sched/target.h"

struct weft_caller_walk {
    const char *name;  /* of the function or kernel */
    int along;         /* the axis along which it goes element by element, or -1 */
    uint32_t align;    /* bytes; 0: any address */
    bool strides;      /* any strides will do */
    bool packed;       /* only this layout will do: of functions; what kernels ask for is in the graph already */
    struct weft_layout layout;
};
/* Of operand i of a node, or for i = operands + k of result k: false where weft's own kernels compute the node. The
 * kernel of a target is the one right of `!`, or without a plan the first that fits. */
bool weft_caller_walk_of(const struct weft_target *target, struct weft_graph *graph, weft_node node, uint32_t i,
                         struct weft_caller_walk *ret);

#endif
