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
#define RESIZE(level, cpu)                                                                                             \
    void weft_blend_row__##level(float *to, const float *from, int64_t n, int64_t taps, const int64_t *place,          \
                                 const float *weight);
#include "kernels/resize/resize.def"

#endif
