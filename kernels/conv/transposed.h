/* SPDX-License-Identifier: Apache-2.0 */
/* transposed.h: the form TRANSPOSED: the adjoint of a convolution, without multiplying by the zeros between x.
 *
 * Result j of an axis sees x at i = (j + pad - t · dilation) / stride for those taps t for which that is whole. So
 * results j = q · stride + f of one phase f see the same taps, at q + delta(f, t): each phase is a convolution of
 * stride 1 over x, with its share of the taps, and all phases together have each tap once. The chain of a result is
 * that of conv.h over its phase's taps, with delta ascending along each axis; x is +0 outside.
 *
 * The loops are those of DIRECT over a band of x that all phases share. Taps that lie in the padding for a whole row
 * are left out. */
#ifndef WEFT_TRANSPOSED_H
#define WEFT_TRANSPOSED_H

#include "kernels/conv/direct.h"

struct weft_transposed {
    struct weft_conv_shape grid;  /* x, and one result for each q: what bands are made for */
    struct weft_direct direct;
};
struct weft_transposed weft_transposed_plan(const struct weft_conv *conv, const struct weft_conv_shape *s);

/* A phase: along each axis its taps see x at q + first + i·step, i in [0, taps). Of those, a row sees [from, to) along
 * the axes 0 and 1. `begin` is its first tap in a panel. */
struct weft_transposed_phase {
    int64_t taps[3], first[3], step[3], from[3], to[3], begin;
};
/* Fills in what the phase is along axis d, where it is number `phase`. */
void weft_transposed_along(const struct weft_conv_shape *s, int d, int64_t phase, struct weft_transposed_phase *ret);

/* Panels [panel][phase][tap of the phase][channel][width]: which taps are a phase's depends on the padding. */
void weft_transposed_pack(const struct weft_packing *packing, float *pack, const weft_loose_f32 *w,
                          const struct weft_conv_weights *at, int part, int parts);

#endif
