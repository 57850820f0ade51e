/* SPDX-License-Identifier: Apache-2.0 */
/* target.h: targets of the caller's, and the kernels that belong to them. */
#ifndef WEFT_TARGET_H
#define WEFT_TARGET_H

#include "ir/ir.h"

struct weft_target_kernel {
    struct weft_target_kernel *next;
    struct weft_kernel kernel; /* its names are the ones below */
    int opcode;
    char name[64];
};

/* Whether the kernel can compute the node. */
bool weft_target_kernel_fits(const struct weft_target_kernel *kernel, const struct weft_graph *graph, weft_node node);
/* The layout that the kernel asks of operand i, or of result i - operands, canonical. False where any will do. What
 * cannot be read as a layout of that value gives a message, and any layout. */
bool weft_target_kernel_layout(const struct weft_target_kernel *kernel, struct weft_graph *graph, weft_node node,
                               uint32_t i, struct weft_layout *ret, const char **ret_message);
/* Picoseconds of a call; -1 where the kernel says what is no cost: less than 0, ten seconds and more, or no number. */
int64_t weft_target_kernel_ps(const struct weft_target_kernel *kernel, const struct weft_graph *graph, weft_node node);

/* Will one of its kernels compute the node: does one fit, with layouts and a cost that can be? What they compute is
 * left whole by passes that open composites. */
bool weft_target_computes(const struct weft_target *target, struct weft_graph *graph, weft_node node);
/* Does it have a kernel for nodes of the op, or may weft compute them? */
bool weft_target_has(const struct weft_target *target, int opcode);
/* The target's kernel that stands right of the node's `!`, or of its group's; NULL: none does. */
const struct weft_target_kernel *weft_target_kernel_noted(const struct weft_target *target,
                                                          const struct weft_graph *graph, weft_node node);
/* A copy of the target's kernels, for a plan, which may outlive the target. */
struct weft_target_kernel *weft_target_copy_kernels(const struct weft_target *target, struct weft_arena *arena);

#endif
