/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: custom ops: the caller's functions. */
#ifndef WEFT_PUBLIC_CUSTOM_H
#define WEFT_PUBLIC_CUSTOM_H

#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `%y: f32[N] = custom %a, %b function=NAME parameters=[0.5]` calls the function that is registered as NAME. Worked
 * example: examples/custom.c. What weft asks of a function:
 *  - Its result depends on operands and parameters only. weft may merge equal calls and drop unused ones; it makes none
 *    while it compiles a graph.
 *  - `run`, `layout` and `cost` may be called by several threads at once, for one node or many; `type` only by the
 *    thread that uses the context. weft passes `user` on; it must live as long as anything made from the context.
 *  - It may not call weft on the context, except weft_extent and weft_extent_combine in `type`. */

/* Input and output of the function `type`. */
struct weft_custom_type {
    int32_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
};
struct weft_custom_types {
    size_t size;
    struct weft_graph *graph;               /* for weft_extent_combine */
    const struct weft_custom_type *operand;
    size_t operands;
    const double *parameter;
    size_t parameters;
    struct weft_custom_type result;         /* filled by the function */
    char *message;                          /* filled by the function if it refuses: why */
    size_t message_bytes;
};

/* One call of `run`. Tensors have the layouts that `layout` requires. */
struct weft_custom_call {
    size_t size;
    const char *where;                      /* the name of the value that is computed, "%y" */
    const struct weft_tensor *operand;      /* read-only */
    size_t operands;
    struct weft_tensor *result;             /* the function fills its data */
    const double *parameter;
    size_t parameters;
    char *message;                          /* filled by the function on error: what went wrong */
    size_t message_bytes;
};

/* How a function or kernel reads an operand or writes a result, beyond its layout.
 * `along`: it walks this axis element by element before it goes to the next column. If the strides of that walk make
 * cache lines evict each other, weft may store rows a cache line longer (pass pad_strides), where the layout allows any
 * strides.
 * `align`: the address of the first element must be a multiple of so many bytes, a power of two up to 4096. An operand
 * that is not known to be aligned is copied, by pass align_buffers or for the call; a result of a function is copied
 * after the call; for a result of a kernel weft only leaves a remark. Values out of range count as no demand. */
struct weft_demand {
    size_t size;
    int32_t along; /* an axis; -1: as stored */
    int32_t align; /* 0: any address */
};

struct weft_custom {
    size_t size;
    const char *name;                       /* a letter, then letters, digits and _; up to 63 */
    void *user;                             /* passed to all functions below */
    int32_t least_operands, most_operands;  /* most_operands -1: any number */
    /* Computes the result. Returns 0, or another number for an error: then the run ends with WEFT_ERR_CUSTOM, and its
     * message names the node. */
    int (*run)(void *user, const struct weft_custom_call *call);
    /* Sets the type of the result, always the same for the same operands. Returns 0, or another number if operands or
     * parameters are wrong. NULL: the node states the type. */
    int (*type)(void *user, struct weft_custom_types *types);
    /* The layout that operand i, or for i = operands the result, must have. True: packed, with the axes in `ret_order`
     * from the outermost to the innermost. False: any strides will do, also 0 for a repeated axis. NULL: everything is
     * packed row-major. Values in other layouts are copied, by relayouts that pass propagate_memory_format inserts, or
     * within the call where the pass did not know. */
    bool (*layout)(void *user, size_t i, size_t operands, int rank, int *ret_order);
    /* The cost of a call, given tensors without data: arithmetic operations, and bytes read and written. NULL:
     * unknown. */
    void (*cost)(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes);
    /* Sets further demands on operand i, or for i = operands on the result, if there are any. NULL: none. */
    void (*demand)(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret_demand);
};
/* Registers a function with a context for good; strings are copied. Call it before graphs that use the function are
 * evaluated or compiled: without it they can be read, printed and changed, but not run. A name can be used once. */
WEFT_API int weft_register(struct weft_context *context, const struct weft_custom *custom);

#ifdef __cplusplus
}
#endif
#endif
