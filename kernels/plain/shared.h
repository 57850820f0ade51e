/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h: what plain kernels and the reference evaluator compute by the same lines: where samples stand, how boxes
 * overlap, in which order equal things come. All in double, none knows a graph. A mistake here is in both, so that
 * comparing them does not show it: it shows beside torch (tests/numpy), and in ONNX's own tests. What either computes
 * besides, how it reads, sums up and stores, they have each for themselves. */
#ifndef WEFT_PLAIN_SHARED_H
#define WEFT_PLAIN_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/* --- grid_sample -------------------------------------------------------------------------------------------------- */

/* In the order of the words in ops.def. */
enum weft_k_form { WEFT_K_LINEAR, WEFT_K_NEAREST, WEFT_K_CUBIC };
enum weft_k_border { WEFT_K_ZEROS, WEFT_K_EDGE, WEFT_K_REFLECT };
#define WEFT_K_TAPS 4
struct weft_k_sampling {
    enum weft_k_form form;
    enum weft_k_border border;
    bool corners;
};
static inline int weft_k_taps(enum weft_k_form form)
{
    return form == WEFT_K_LINEAR ? 2 : form == WEFT_K_NEAREST ? 1 : WEFT_K_TAPS;
}
/* weft_k_sample_axis for any form and place. */
void weft_k_sample_any(const struct weft_k_sampling *sampling, int64_t extent, double g, int64_t *element,
                       double *weight);
/* The place x along an axis, mirrored at both ends as often as it takes to lie between them. */
double weft_k_reflect(const struct weft_k_sampling *sampling, int64_t extent, double x);
/* Where the coordinate g lies along an axis, in elements from the first one. */
static inline double weft_k_sample_place(const struct weft_k_sampling *sampling, double length, double g)
{
    return sampling->corners ? (g + 1) / 2 * (length - 1) : ((g + 1) * length - 1) / 2;
}
/* Elements and weights along one axis for the coordinate g in [-1, 1]; a NaN counts as -1. Element -1: outside, which
 * reads as 0. */
static inline void weft_k_sample_axis(const struct weft_k_sampling *sampling, int64_t extent, double g,
                                      int64_t *element, double *weight)
{
    const double x = weft_k_sample_place(sampling, (double)extent, g);
    if (sampling->form != WEFT_K_LINEAR || !(x >= 0 && x < (double)extent - 1)) {
        weft_k_sample_any(sampling, extent, g, element, weight);
        return;
    }
    element[0] = (int64_t)x, element[1] = element[0] + 1; /* as weft_k_sample_any, without its calls */
    weight[0] = 1 - (x - (double)element[0]), weight[1] = 1 - ((double)element[1] - x);
}

/* --- roi_align ---------------------------------------------------------------------------------------------------- */

/* Elements below and above a coordinate, and how near the upper one is; false where it is too far outside to count. */
bool weft_k_neighbours(double at, int64_t extent, int64_t *ret_low, int64_t *ret_high, double *ret_share);

/* --- nms ---------------------------------------------------------------------------------------------------------- */

struct weft_k_box {
    double low[2], high[2];
};
/* From two opposite corners in any order, or from its centre and its sides. */
struct weft_k_box weft_k_box_of(const double x[4], bool centre);
/* Does it overlap one of these by more than so much of what both cover? Boxes without an area overlap nothing. */
bool weft_k_box_overlaps(const struct weft_k_box *box, const struct weft_k_box *others, int64_t n, double limit);

/* --- orders and draws --------------------------------------------------------------------------------------------- */

/* The rows 0 to n - 1 in order: equal ones keep theirs. compare: < 0, 0, > 0. Both arrays have n elements. */
void weft_k_order(int64_t n, int (*compare)(const void *user, int64_t a, int64_t b), const void *user, bool descending,
                  int64_t *order, int64_t *scratch);
/* The first class whose running sum exceeds its share of the whole. */
int64_t weft_k_draw(const double *running, int64_t classes, double share);

#endif
