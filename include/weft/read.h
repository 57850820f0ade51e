/* SPDX-License-Identifier: Apache-2.0 */
/* read.h: what a graph holds, node by node and value by value, and how wide a value can be read. */
#ifndef WEFT_PUBLIC_READ_H
#define WEFT_PUBLIC_READ_H

#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs and results in order; none (id 0) if there is no i-th. Counts are 0 if the graph is NULL. */
WEFT_API size_t weft_graph_params(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_param(const struct weft_graph *graph, size_t i);
WEFT_API size_t weft_graph_returns(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_return(const struct weft_graph *graph, size_t i);
/* The next node in execution order; for none the first node, after the last node none. Nodes of a body belong to the
 * body's graph. */
WEFT_API weft_node weft_next_node(const struct weft_graph *graph, weft_node node);

struct weft_node_facts {
    size_t size;           /* set by the caller */
    const char *op;        /* "conv" */
    const char *kernel;    /* the name right of `!`, or NULL */
    const char *group;     /* the name of the group `fuse @group { … }` that it is in, or NULL */
    size_t operands, results;
    const char *in;        /* "%c": it is computed in that value's memory (pass mark_aliases), or NULL */
    const char *group_kernel; /* the name right of the group's `!`, or NULL */
};
WEFT_API int weft_node_read(const struct weft_graph *graph, weft_node node, struct weft_node_facts *ret_facts);
/* None (id 0) beyond the last. */
WEFT_API weft_val weft_node_operand(const struct weft_graph *graph, weft_node node, size_t i);
WEFT_API weft_val weft_node_result(const struct weft_graph *graph, weft_node node, size_t i);
/* An attribute by its name: as the node states it, else its default; a list that is not stated has count 0. An integer
 * that depends on a symbol is given at the symbol's hint. WEFT_ERR_ARGUMENT if the op has no such attribute, or the
 * node does not state it and it has no default. */
WEFT_API int weft_node_attribute(const struct weft_graph *graph, weft_node node, const char *name,
                                 struct weft_attribute *ret_attribute);

/* How a value is stored: storage axes from the outermost to the innermost. A storage axis is a logical axis, or a part
 * of a split one: for index i along logical axis `axis` its index is (i / div) % mod, or i / div if mod is 0. NCHW16c
 * stores channels as one axis with div 16 and, innermost, one with mod 16. */
#define WEFT_MAX_STORAGE 16
struct weft_storage_axis {
    int32_t axis, reserved;
    int64_t div, mod;
    int64_t stride;        /* in elements, with symbols at their hints */
};
struct weft_value_facts {
    size_t size;           /* set by the caller */
    const char *name;      /* without %; NULL: it has a number only */
    weft_node node;        /* the node that computes it; none: an input */
    int32_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
    int64_t hint[WEFT_MAX_RANK]; /* the extents with symbols at their hints */
    int32_t decided;       /* 0: any layout will do ({?}), and there are no storage axes */
    int32_t storage_axes;
    struct weft_storage_axis storage[WEFT_MAX_STORAGE];
    int64_t offset;        /* of the first element, in elements */
    size_t uses;           /* how many operands and results of the graph are this value */
    int32_t constant;      /* enum weft_constant_state */
};
enum weft_constant_state {
    WEFT_CONSTANT_NONE = 0, /* the value is no constant */
    WEFT_CONSTANT_STORED,   /* its elements lie in memory or in a mapped file */
    WEFT_CONSTANT_SPLAT,    /* all elements are one number */
    WEFT_CONSTANT_RANDOM,   /* elements follow from a seed */
    WEFT_CONSTANT_GIVEN_UP  /* of a plan's graph: kernels have packed them, and nothing else was kept */
};
WEFT_API int weft_value_read(const struct weft_graph *graph, weft_val value, struct weft_value_facts *ret_facts);

/* Elements of a constant, also of one that a pass has folded, dense row-major. As weft_evaluate's outputs: if
 * `tensor->data` is set, it has room for all of them; if it is NULL, memory is allocated, which the caller frees with
 * weft_tensor_free. The rest of the tensor is filled in. WEFT_ERR_ARGUMENT: no constant, or extents with symbols;
 * WEFT_ERR_INVALID: WEFT_CONSTANT_GIVEN_UP. */
WEFT_API int weft_constant_read(const struct weft_graph *graph, weft_val value, struct weft_tensor *tensor);
/* An extent as the graph prints it, "N*(H/2 + 1)", to be freed with weft_free_text. */
WEFT_API int weft_extent_text(const struct weft_graph *graph, weft_dim extent, char **ret_text);
/* An extent for given sizes of symbols; symbols that are not given have their hints. */
struct weft_size {
    const char *symbol;
    int64_t value;
};
WEFT_API int weft_extent_at(const struct weft_graph *graph, weft_dim extent, const struct weft_size *sizes,
                            size_t count, int64_t *ret_extent);

/* --- access: how wide a value can be read or written -------------------------------------------------------------- */

/* May a kernel load k elements of a value at once? Suppose that it walks the value `along` in storage order, k
 * elements at a time, and needs elements of `value`, through the ops between the two. A block of k is good if the
 * elements of `value` that it needs are k neighbours in memory, in rising order, starting at a multiple of k; or if it
 * needs none (padding). If several paths of ops lead from one value to the other, each must be good. A reduction of at
 * most 16 terms counts as that many paths. Longer reductions, contractions and scans are loops of their own: no path
 * leads through them. Symbols count at their hints. */
struct weft_access {
    size_t size;
    weft_val value;
    weft_val along;         /* the value that is walked; none (id 0): `value` itself */
    uint32_t axes;          /* bit i: blocks extend along axis i of `along`; these must be its innermost axes; 0: all */
    uint32_t align;         /* known alignment of the value's buffer in bytes; 0: see `width` */
    int64_t offset;         /* elements from that aligned address to the first element */
};
struct weft_access_width {
    size_t size;            /* set by the caller */
    int64_t width;          /* the largest power of two k, at most 16 bytes, for which all blocks are good and aligned.
                             * Alignment is what `align` says, else the layout's align=; else 64 bytes where weft
                             * allocates, and the element size for a parameter */
    int64_t inner;          /* the largest k for which all blocks are good, with offsets as if the value were dense */
};
/* WEFT_ERR_ARGUMENT if no such path leads from one value to the other. Both numbers are 0 if one of the values has no
 * elements. A width that is returned is safe; it is 1 where finding more would take too long. */
WEFT_API int weft_access(const struct weft_graph *graph, const struct weft_access *access,
                         struct weft_access_width *ret_width);

#ifdef __cplusplus
}
#endif
#endif
