/* SPDX-License-Identifier: Apache-2.0 */
/* places.h: which elements of an axis a result is made of, for the evaluator and for whoever runs kernels. */
#ifndef WEFT_PLACES_H
#define WEFT_PLACES_H

#include "ir/ir.h"

/* Index of the element that stands at index i of a padded axis by a form of `pad`, or -1 for the pad value. */
int64_t weft_pad_source(const char *form, int64_t i, int64_t extent);

/* In the order of the words in ops.def. */
enum weft_resize_form { WEFT_RESIZE_NEAREST, WEFT_RESIZE_LINEAR, WEFT_RESIZE_CUBIC };
enum weft_resize_coordinates {
    WEFT_RESIZE_HALF_PIXEL, WEFT_RESIZE_HALF_PIXEL_SYMMETRIC, WEFT_RESIZE_PYTORCH_HALF_PIXEL,
    WEFT_RESIZE_ALIGN_CORNERS, WEFT_RESIZE_ASYMMETRIC, WEFT_RESIZE_TF_HALF_PIXEL, WEFT_RESIZE_CROP
};
enum weft_resize_nearest { WEFT_RESIZE_PREFER_FLOOR, WEFT_RESIZE_PREFER_CEIL, WEFT_RESIZE_FLOOR, WEFT_RESIZE_CEIL };

/* p / q, q >= 1. */
struct weft_fraction {
    int64_t p, q;
};
/* The fraction with the least denominator that rounds to x at so many binary digits (53: f64, 24: f32); if x has more,
 * at 53. Of no more than 2^40, and 0 where x is below 2^-40 (fraction.c). */
struct weft_fraction weft_fraction_of(double x, int digits);

/* One axis. Result i stands at (first + step · i) / unit among the elements of the operand, exactly. */
struct weft_resize {
    uint8_t form, coordinates, nearest;
    bool antialias, exclude;
    double cubic;
    double shrink; /* what distances are multiplied by, at most 1 */
    int64_t in, out;
    int64_t taps; /* elements that a result is made of */
    int64_t first, step, unit;
};
void weft_resize_read(const struct weft_graph *graph, weft_node node, int axis, int64_t in, int64_t out,
                      struct weft_resize *ret);
/* Does every element along the axis stay where it is, for all sizes? The extent is kept, the factor is 1, and neither
 * half an element nor a region moves it. */
bool weft_resize_keeps(const struct weft_graph *graph, weft_node node, int axis);
/* The index floor((first + step * i) / over), over 1 or more, in lowest terms. */
struct weft_floored {
    int64_t first, step, over;
};
/* Of a resize to nearest elements: is result i the element at such an index for all sizes that the axis may have, and
 * is that never outside? So it is for whole factors, and for sizes that are known. */
bool weft_resize_floors(const struct weft_graph *graph, weft_node node, int axis, struct weft_floored *ret);
/* The `taps` elements of result i and their weights. Indices lie within the operand, which is not empty. False: the
 * place lies outside and takes the fill. */
bool weft_resize_tabulate(const struct weft_resize *resize, int64_t i, int64_t *index, double *weight);

#endif
