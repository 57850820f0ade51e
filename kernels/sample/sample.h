/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h: what the files of the sampling family share. The public side is in kernels.h.
 *
 *   x f32[n,c,h,w], grid f32[n,p,q,2]:  y[n,c,p,q] = sum over the four elements around (p, q) of weight · element
 *
 * Points are taken up to WEFT_SAMPLE_POINTS at a time. Where they lie and what their elements weigh is found for a
 * vector of points at once and in double, as the plain kernel does (kernels/plain/grid.c); the weights are rounded to
 * f32, and so are products before they are added, so that all levels give the same bits. Then come the channels: one
 * plane after the other, a vector of points at a time, or the contiguous channels of one point after the other.
 *
 * All four elements of a point lie in the image: its *place* is that of the upper left one of four that do, which is
 * moved at the borders, and weights go with it. What lies outside, and what weighs nothing, is left out of the sum: it
 * may be infinite or NaN. */
#ifndef WEFT_SAMPLE_H
#define WEFT_SAMPLE_H

#include "kernels/kernels.h"
#include "kernels/plain/shared.h"

enum { WEFT_SAMPLE_POINTS = 256, WEFT_SAMPLE_TAPS = 4 };

/* Points of one image. Those behind the last one, up to whole vectors, have place 0 and weights of 0. */
struct weft_sample_points {
    int count;
    bool whole;                              /* no weight of the `count` points is 0 */
    _Alignas(64) int64_t place[WEFT_SAMPLE_POINTS];
    _Alignas(64) float weight[WEFT_SAMPLE_TAPS][WEFT_SAMPLE_POINTS]; /* upper left, upper right, lower left and right */
};

/* Along one axis, rows first. */
struct weft_sample_axis {
    struct weft_k_sampling how;
    int64_t extent, stride;                  /* extent >= 1 */
};

static inline int weft_sample_taps(const struct weft_sample_axis *axis)
{
    return axis->how.form == WEFT_K_NEAREST ? 1 : WEFT_SAMPLE_TAPS;
}

/* What a point's four elements are apart, and where channels of both arrays are, in elements. */
struct weft_sample_channels {
    int taps;                                /* 4, or 1: the nearest */
    int64_t tap[WEFT_SAMPLE_TAPS];
    int64_t count, in, out, out_point;
    bool pairs;                              /* left and right are neighbours in memory */
};

struct weft_sample_level {
    const char *name;
    uint32_t cpu;
    /* Places and weights of n points whose coordinates are coordinate[axis][point]; both rows have room for whole
     * vectors, and are overwritten. */
    void (*find)(const struct weft_sample_axis axis[2], double coordinate[2][WEFT_SAMPLE_POINTS], int n,
                 struct weft_sample_points *points);
    /* y[c · out + i · out_point] of all points i and channels c. */
    void (*planes)(const struct weft_sample_channels *how, const struct weft_sample_points *points, float *y,
                   const float *x);
    /* The same where channels of both arrays lie side by side. */
    void (*pixels)(const struct weft_sample_channels *how, const struct weft_sample_points *points, float *y,
                   const float *x);
};
#define SAMPLE(level, cpu) extern const struct weft_sample_level weft_sample_level__##level;
#include "kernels/sample/sample.def"

#endif
