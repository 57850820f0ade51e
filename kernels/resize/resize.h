/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h: what the files of the resizing family share. The public side is in kernels.h.
 *
 *   out[o…, r, c, i] = Σ over l of C[c, l].weight · Σ over k of R[r, k].weight
 *                                                    · in[o…, R[r, k].place, C[c, l].place, i]
 *
 * f32; the inner sum is rounded before the outer one. Products are rounded before they are added, so that a level with
 * fused multiply-add gives the same bits as one without. Taps of weight 0 are left out of the tables, so an infinity
 * that has no part in a result leaves it alone. */
#ifndef WEFT_RESIZE_H
#define WEFT_RESIZE_H

#include "kernels/kernels.h"

/* to[i] = Σ over k < taps of weight[k] · from[place[k] + i] for i in [0, n); taps >= 1. */
typedef void (*weft_blend_row_fn)(float *to, const float *from, int64_t n, int64_t taps, const int64_t *place,
                                  const float *weight);

/* Results of a row of numbers (inner = 1) that lie side by side and have one tap or two each, a vector at a time: the
 * vector of the operand that begins at `base` holds all that they read, as it does where rows get longer or little
 * shorter. */
enum { WEFT_BLEND_LANES = 16 };
struct weft_blend_pairs {
    int64_t base;                     /* -1: it does not hold all, so that they are computed one by one */
    int32_t first[WEFT_BLEND_LANES], second[WEFT_BLEND_LANES]; /* elements from base */
    int32_t both[WEFT_BLEND_LANES];   /* -1: two taps, 0: one */
    float first_weight[WEFT_BLEND_LANES], second_weight[WEFT_BLEND_LANES];
};
struct weft_blend_level {
    const char *name;
    uint32_t cpu;
    int32_t lanes;                    /* results that a weft_blend_pairs stands for; 0: this level has none */
    weft_blend_row_fn row;
    /* out[i] for i < lanes. Reads a whole vector from `from` + base. */
    void (*pairs)(float *out, const float *from, const struct weft_blend_pairs *pairs);
};
#define RESIZE(level, cpu) extern const struct weft_blend_level weft_blend_level__##level;
#include "kernels/resize/resize.def"

#endif
