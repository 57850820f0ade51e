/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_type.h: what reduce.c asks of element types: how terms widen to what they are added up in, and how results
 * come back (reduce_type.c). */
#ifndef WEFT_STRIP_REDUCE_TYPE_H
#define WEFT_STRIP_REDUCE_TYPE_H

#include "kernels/strip/fold.h"

/* How reductions from one dtype to another compute. */
struct weft_reduce_type {
    enum weft_fold_kind kind;
    const struct weft_fold_loops *loops;
    int64_t in_bytes, out_bytes;
    bool widens;                          /* terms need converting */
    const struct weft_strip_kernel *cast; /* the one that converts floats, or NULL */
    const struct weft_strip_kernel *narrow; /* the same for results */
};
bool weft_reduce_type_of(int in_dtype, int out_dtype, uint32_t cpu, struct weft_reduce_type *ret);
/* n terms, `stride` elements apart, to n numbers side by side. */
void weft_reduce_load(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to, const void *from,
                      int64_t stride, int64_t n);
/* n numbers, divided if a mean is asked for, to results `stride` elements apart. */
void weft_reduce_store(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to, int64_t stride,
                       const void *from, int64_t n);
/* The result over no terms, as a number of the kind. */
void weft_reduce_nothing(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to);
/* The number that op leaves unchanged. */
void weft_reduce_identity(const struct weft_reduce_type *type, int op, void *to, int64_t n);

#endif
