/* SPDX-License-Identifier: Apache-2.0 */
/* strip.h: what the files of the strip family share. The public side is in kernels.h. */
#ifndef WEFT_STRIP_H
#define WEFT_STRIP_H

#include "kernels/kernels.h"

/* Tables end with a row whose name is NULL. The plain ones and casts are scalar C and exist once; those of rows are
 * scalar C that the compiler makes vectors of. */
extern const struct weft_strip_kernel weft_strip_table__ref[], weft_strip_table_rows__ref[];
extern const struct weft_strip_kernel weft_strip_table__avx2[], weft_strip_table_rows__avx2[];
extern const struct weft_strip_kernel weft_strip_table__avx512[], weft_strip_table_rows__avx512[];
extern const struct weft_strip_kernel weft_strip_table_cast_by__ref[], weft_strip_table_cast_by__avx2[],
                                      weft_strip_table_cast_by__avx512[];
extern const struct weft_strip_kernel weft_strip_table_plain__ref[], weft_strip_table_cast__ref[];

/* Kernel i of all levels, plain C first, or NULL past the end. */
const struct weft_strip_kernel *weft_strip_at(unsigned i);

/* Runs `fn`, which wants a unit stride of its result and strides 0 or 1 of `inputs` operands, on strides of any kind,
 * by way of buffers on the stack. `bytes`: element sizes, result first. */
void weft_strip_strided(const struct weft_strip_args *args, weft_strip_fn fn, int inputs,
                        const int8_t bytes[1 + WEFT_K_MAX_IN]);

/* --- map_joined.c ------------------------------------------------------------------------------------------------- */

/* Joins the innermost axes of a map, in the result's order, if they are short: 1 or 2 axes become one with the axis
 * around them. Sets what the map says of that; returns how many axes are gone. */
struct weft_k_axis; /* of kernels/walk.h */
int weft_map_join(struct weft_map *map, struct weft_k_axis *axes, int rank);
/* Runs args->n elements of the joined axis, beginning at number `first`. Of arrays that begin again or have gaps, args
 * has the place of element 0. */
void weft_map_run_joined(const struct weft_map *map, struct weft_strip_args *args, int64_t first);

#endif
