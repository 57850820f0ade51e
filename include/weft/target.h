/* SPDX-License-Identifier: Apache-2.0 */
/* target.h: the caller's kernels: layouts for a framework that computes by itself. */
#ifndef WEFT_PUBLIC_TARGET_H
#define WEFT_PUBLIC_TARGET_H

#include "weft/custom.h"
#include "weft/read.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A framework with kernels of its own describes them, lets weft choose layouts and a kernel for each node, and has the
 * result planned. Worked examples: examples/own_kernels.c chooses and reads the graph back; examples/own_plan.c walks
 * through a plan by itself; examples/own_run.c has weft run it.
 *
 * A target of the caller's is the context's target plus the caller's kernels. With it, `propagate_memory_format`
 * chooses one of the kernels that fit a node; for a node that none fits, it uses weft's own costs. The graph then
 * names a node's kernel right of `!` and has `relayout` nodes where data must be converted. Relayouts of constants are
 * done once, before the first run, and count as free.
 *
 * weft_compile with such a target makes a plan. Order of steps, places in the arena, views, results in the memory of
 * others and relayouts are those that the plan tells (weft_plan_step, weft_plan_step_operand, weft_plan_block). Either
 * the caller walks through the steps, or weft_run does, if every kernel that the plan uses has a `run`. Nodes that no
 * kernel of the caller's fits are weft's, fused as always; weft_target_restrict changes that. */

/* An array as a kernel of the caller's finds it. */
struct weft_kernel_array {
    void *data;                      /* the first element */
    int32_t dtype, rank;
    int64_t extent[WEFT_MAX_RANK];
    int64_t stride[WEFT_MAX_RANK];   /* in elements; 0 for an axis that is split, and for a repeated one */
    int32_t split;                   /* 1: an axis is split, so that only `storage` says where elements are */
    int32_t storage_axes;
    struct weft_storage_axis storage[WEFT_MAX_STORAGE]; /* from the outermost to the innermost */
    int64_t bytes;                   /* from the first element to the end of the last, what fills up blocks included */
};

/* One call of weft_kernel.run: part `part` of the work of a node, or of a group that names the kernel. */
struct weft_kernel_call {
    size_t size;
    const struct weft_graph *graph;  /* of the plan; weft_node_attribute may be called here, by any thread */
    weft_node node;                  /* of a group the first */
    const char *where;               /* the name of the value that is computed, "y" */
    const struct weft_kernel_array *operand; /* read-only, in the layouts that were asked for */
    size_t operands;                 /* of a group: what it reads from outside, each once */
    const struct weft_kernel_array *result;
    size_t results;                  /* of a group: what others read */
    int32_t part, parts;             /* from 0 to parts - 1; in any order, may be at the same time */
    int32_t worker, workers;         /* who does it, from 0, and how many there are at most */
    void *scratch;                   /* of this worker alone, 64-byte aligned, weft_kernel.scratch bytes */
    const int64_t *sizes;            /* for weft_call_extent */
    char *message;                   /* filled by the function on error: what went wrong */
    size_t message_bytes;
};
/* An extent of the planned graph, such as an element of a list attribute, for the sizes of this call. Any thread.
 * WEFT_ERR_ARGUMENT if it is none of this graph's. */
WEFT_API int weft_call_extent(const struct weft_kernel_call *call, weft_dim extent, int64_t *ret_extent);

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
    /* Computes part call->part, for weft_run: by any of its threads, several at a time. Returns 0, or another number
     * for an error: then the run ends with WEFT_ERR_CUSTOM, and its message names node and kernel. Of weft's functions
     * it may call weft_node_read, weft_node_attribute and weft_call_extent. NULL: the caller walks through plans
     * himself, and weft_run of one that uses the kernel gives WEFT_ERR_UNSUPPORTED. `user` and what these functions
     * need must live as long as plans that use the kernel. */
    int (*run)(void *user, const struct weft_kernel_call *call);
    /* Into how many parts the work is cut for arrays of these sizes (data is NULL), where `call->workers` could do
     * them; asked whenever sizes are new, by any thread. NULL or less than 1: one. */
    int32_t (*parts)(void *user, const struct weft_kernel_call *call);
    /* How many bytes of scratch memory each worker needs for that. NULL: none. */
    size_t (*scratch)(void *user, const struct weft_kernel_call *call);
    /* May its first result be written over operand i, if that lies the same and nobody reads it later? NULL: no. */
    bool (*in_place)(void *user, const struct weft_graph *graph, weft_node node, size_t i);
};
/* Creates a target like the context's, without kernels yet, for graphs of this context. */
WEFT_API int weft_target_create(struct weft_context *context, struct weft_target **ret_target);
WEFT_API void weft_target_destroy(struct weft_target *target);
/* Adds a kernel; strings are copied. A name can be used once. */
WEFT_API int weft_target_add(struct weft_target *target, const struct weft_kernel *kernel);
/* What plans for the target may contain besides its kernels. WEFT_TARGET_OWN_ONLY: nothing that computes. A node that
 * none of its kernels fits makes weft_compile fail with WEFT_ERR_UNSUPPORTED, with a message for each such node, and
 * steps that are not the caller's only convert layouts: relayouts (in the place of a reshape that is no view, too), and
 * results that are copied. 0, as in a new target: weft's kernels compute the rest. Other flags: WEFT_ERR_ARGUMENT. */
#define WEFT_TARGET_OWN_ONLY 1u
WEFT_API int weft_target_restrict(struct weft_target *target, uint32_t flags);

#ifdef __cplusplus
}
#endif
#endif
