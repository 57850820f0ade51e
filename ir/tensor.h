/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h: tensors with concrete extents and strides, in elements: what evaluator, importers, plans and tools pass to
 * one another. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "ir/graph.h"

/* Why a run ended early, other than for memory: whoever is first says so. Any thread. */
struct weft_failure {
    _Atomic bool claimed;
    int status;                  /* WEFT_OK: nothing was said */
    char message[400];
    const _Atomic bool *stop;    /* set by somebody else to end it; NULL: nobody does */
};
void weft_fail(struct weft_failure *failure, int status, const char *format, ...) WEFT_PRINTF(3, 4);

/* Strides of a packed row-major array. */
void weft_tensor_dense(struct weft_tensor *tensor);
/* Elements from the first to the last, or 0 if there are none. */
int64_t weft_tensor_span(const struct weft_tensor *tensor);
int64_t weft_tensor_count(const struct weft_tensor *tensor);
/* The same for sizes that no memory has; extents below 0 count as 0. */
double weft_tensor_elements(const struct weft_tensor *tensor);
size_t weft_tensor_bytes(const struct weft_tensor *tensor); /* packed, at least 1 */
/* Extents of a type for given symbols, as a packed tensor without data. Extents that come out negative count as 0. */
void weft_tensor_of(const struct weft_graph *graph, const struct weft_type *type, const int64_t *symbols,
                    struct weft_tensor *ret);

#define WEFT_WALK_TENSORS 6

/* Walks row-major over tensors of equal rank and extents, a run along the last axis at a time:
 *
 *   for (weft_walk_open(&walk, 2, tensors); !walk.done; weft_walk_next(&walk))
 *       … walk.run elements of tensor t: place[t], place[t] + step[t], …
 */
struct weft_walk {
    int tensors, outer; /* axes outside of the run */
    bool done;
    int64_t run, step[WEFT_WALK_TENSORS], place[WEFT_WALK_TENSORS];
    int64_t index[WEFT_MAX_RANK], extent[WEFT_MAX_RANK], stride[WEFT_WALK_TENSORS][WEFT_MAX_RANK];
};
void weft_walk_open(struct weft_walk *walk, int tensors, const struct weft_tensor *const *tensor);
void weft_walk_next(struct weft_walk *walk);

/* Copies all elements between tensors of equal dtype, rank and extents, from the given places on. */
void weft_tensor_copy(const struct weft_tensor *out, int64_t out_place, const struct weft_tensor *in, int64_t in_place);
/* n elements of equal dtype, each its own number of elements further. */
void weft_tensor_copy_run(const struct weft_tensor *out, int64_t out_place, int64_t out_step,
                          const struct weft_tensor *in, int64_t in_place, int64_t in_step, int64_t n);
/* Sets all elements to 0, from the given place on. */
void weft_tensor_clear(const struct weft_tensor *tensor, int64_t place);

/* array.c: a value of this type in a layout that is stored, for these sizes, without data. Any thread. */
void weft_array_of(const struct weft_dims *dims, const struct weft_type *type, const struct weft_layout *layout,
                   const int64_t *symbols, struct weft_kernel_array *ret);

#endif
