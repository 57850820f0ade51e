/* SPDX-License-Identifier: Apache-2.0 */
/* plain.h: what the files of this folder share. The public side is in kernels.h.
 *
 * The family for ops that models use seldom, or in types that they seldom have. A kernel is a plain loop over numbers
 * (number.h), in the order in which the reference evaluator computes, and so with its bits. What it computes falls into
 * units, mostly rows of the result, which depend on operands only; parts are ranges of units, so neither the number of
 * parts nor who runs them changes anything. Where results must be written in the order of the updates (scatter,
 * unpool), units are elements of the result, and each part looks at all updates and applies those that are its own.
 *
 *   triangle      units are rows; run() copies one side of the border and clears the other
 *
 * plain.def has a row for each op. */
#ifndef WEFT_PLAIN_H
#define WEFT_PLAIN_H

#include "kernels/plain/number.h"

struct weft_plain_kernel {
    const char *op, *name;
    int64_t (*units)(const struct weft_plain *plain);
    size_t (*scratch)(const struct weft_plain *plain); /* NULL: none */
    void (*run)(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end);
    void (*count)(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts); /* NULL: none */
};

typedef void weft_plain_run_fn(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                               int64_t end);
#define PLAIN(op, units, scratch, run, count) weft_plain_run_fn weft_plain_run_##run;
#include "kernels/plain/plain.def"
typedef size_t weft_plain_scratch_fn(const struct weft_plain *plain);
weft_plain_scratch_fn weft_plain_scratch_classes, weft_plain_scratch_matrix, weft_plain_scratch_turns,
    weft_plain_scratch_order, weft_plain_scratch_rows, weft_plain_scratch_boxes, weft_plain_scratch_plane;
typedef void weft_plain_count_fn(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts);
weft_plain_count_fn weft_plain_count_nonzero, weft_plain_count_compress, weft_plain_count_unique, weft_plain_count_nms;

int64_t weft_array_elements(const struct weft_array *array);
/* The index of element `i` along the first `axes` axes, row-major; no extent is 0. */
void weft_array_index(const struct weft_array *array, int axes, int64_t i, int64_t *ret);
/* The place that an index of the first `axes` axes begins at. */
static inline int64_t weft_array_place(const struct weft_array *array, int axes, const int64_t *index)
{
    int64_t place = 0;
    for (int axis = 0; axis < axes; axis++)
        place += index[axis] * array->stride[axis];
    return place;
}
/* The place of element i in row-major order. */
int64_t weft_array_seek(const struct weft_array *array, int64_t i);

/* Puts n rows of `width` numbers into order by their first difference, a NaN being the largest; equal ones stay as they
 * stand. `order` gets their indices; it and `scratch` have room for n (order.c). */
struct weft_plain_rows {
    int dtype;
    int64_t n, width;
    const union weft_k_number *number;
};
int weft_plain_compare(const struct weft_plain_rows *rows, int64_t a, int64_t b);
void weft_plain_order(const struct weft_plain_rows *rows, bool descending, int64_t *order, int64_t *scratch);

#endif
