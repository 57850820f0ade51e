/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.h: 3x3 convolutions of stride 1 with 16 of 36 multiplications, Winograd's F(2x2,3x3), or 36 of 144, F(4x4).
 *
 * y is cut into tiles of m x m results, m 2 or 4. Each sees a = m + 2 rows and columns of X (x, +0 outside), and
 *
 *   V[i,j,c] = (Bt d B)[i,j]      d: the a x a values of channel c that the tile sees
 *   U[i,j,o,c] = (G w Gt)[i,j]    w: the 3 x 3 weights; in f64, rounded once
 *   M[i,j,o] = s(C),  s(0) = +0,  s(c + 1) = fma(V[i,j,c], U[i,j,o,c], s(c))
 *   y = (At M A)
 *
 * so there are a² products of matrices [tiles, C] · [C, o], one chain over c each. The transforms are sums in a fixed
 * order, Bt and At over the rows i before the columns j, with these lines for each (a product next to a sum is one
 * fused multiply-add, from left to right):
 *
 *   m = 2   Bt: d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *           At: d0 + (d1 + d2), (d1 - d2) - d3
 *   m = 4   Bt, with a = d4 - 4 d2, b = d3 - 4 d1, e = d4 - d2, f = 2 (d3 - d1):
 *               (4 d0 - 5 d2) + d4, a + b, a - b, e + f, e - f, (4 d1 - 5 d3) + d5
 *           At, with a = d1 + d2, b = d1 - d2, e = d3 + d4, f = d3 - d4:
 *               (d0 + a) + e, b + 2 f, a + 4 e, (b + 8 f) + d5
 *
 * That, and m, is all there is of the numeric signature: blocks, layouts, packing, parts and CPU level change no bit.
 * Chains are nine times shorter than those of conv.h, so F(2x2) has the smaller error of the two; F(4x4) has about five
 * times that of conv.h. Of a NaN in x F(2x2) makes NaNs where conv.h does, since a line's first and last operand reach
 * one result only, and the others both; of an Inf there it may make a NaN, and of numbers near the largest, whose sums
 * overflow, anything that is not finite. F(4x4) spreads all of them to the 4 x 4 results of a tile. Whoever wants
 * infinities where the formula of conv.h has them leaves `arithmetic` at WEFT_CONV_CHAIN.
 *
 * Whether it pays is a matter of sizes alone, so that the signature of a descriptor is the same everywhere. */
#ifndef WEFT_WINOGRAD_H
#define WEFT_WINOGRAD_H

#include "kernels/conv/conv.h"

enum {
    WEFT_WINOGRAD_PASS = 64,   /* results o that go from products to y at a time, at most; of U that lie together */
    WEFT_WINOGRAD_LEAST = 32,  /* or so many, for more parts */
    WEFT_WINOGRAD_POINTS = 36, /* a² at most */
    WEFT_WINOGRAD_SIDE = 6,    /* a at most */
    WEFT_WINOGRAD_PIXELS = 16, /* of a row that are transformed at a time */
    WEFT_WINOGRAD_CHANNELS = 64,
    WEFT_WINOGRAD_SHORT = 12, /* pixels: a row of y up to so long is one run, with x copied to the band. Tiles that see
                               * padding would be runs of their own beside those that read x in place: with 10 pixels
                               * that took 7 % longer */
    WEFT_WINOGRAD_STAGGER = 16, /* floats between points: else all of them fall into one set of the first-level cache */
    WEFT_WINOGRAD_TOGETHER = 16, /* results o whose weights are transformed at a time: a line of U for each point */
};

/* Is there any size of x and y at which the transforms may be chosen? */
bool weft_winograd_fits(const struct weft_conv *conv, const struct weft_conv_shape *s);
/* m: 2 or 4; or 0 where the chain is faster or nothing else is permitted. */
int weft_winograd_choose(const struct weft_conv *conv, const struct weft_conv_shape *s);
/* m of a form, 0 of those without transforms. */
static inline int weft_winograd_of(enum weft_conv_form form)
{
    return form == WEFT_CONV_WINOGRAD_2 ? 2 : form == WEFT_CONV_WINOGRAD_4 ? 4 : 0;
}

/* How the loops lie. Scratch: V [point][tile][c], M [point][tile][PASS], a band of x or y, packed weights. */
struct weft_winograd {
    int64_t rows, columns;      /* of tiles, in one image */
    int64_t block;              /* tiles of a block at most, and how many blocks cut an image */
    int64_t blocks, passes, pass; /* results of a pass */
    int64_t v_tile, v_point, m_point, band_row; /* strides in floats */
    int64_t v_size, m_size, band_size;
    int64_t u_point, pass_size; /* of U: from point to point, from pass to pass */
};
/* Decides how many blocks and how long passes there are for so many workers: conv->blocks and pass. */
void weft_winograd_spread(struct weft_conv *conv, const struct weft_conv_shape *s, int m, int workers);
/* Of a convolution for which that is decided. */
struct weft_winograd weft_winograd_plan(const struct weft_conv *conv, const struct weft_conv_shape *s, int m);

/* U of a group: [pass][point][panel][c][columns], columns from the next multiple of 16 behind o on left alone. Floats
 * of a point ([panel][c][columns] and a gap) for panels of so many columns. */
int64_t weft_winograd_u_point(int64_t c, int64_t columns);
static inline int weft_winograd_packed(const struct weft_packing *packing) /* m, or 0 */
{
    return packing->order == WEFT_PACK_WINOGRAD_2 ? 2 : packing->order == WEFT_PACK_WINOGRAD_4 ? 4 : 0;
}
int64_t weft_winograd_pass_size(const struct weft_packing *packing);   /* floats of a pass */
int64_t weft_winograd_packed_size(const struct weft_packing *packing); /* of a group */
/* Part `part` of `parts` of a group's U. */
void weft_winograd_pack(const struct weft_packing *packing, float *pack, const weft_loose_f32 *w,
                        const struct weft_conv_weights *at, int part, int parts);
/* U of one channel and WEFT_WINOGRAD_TOGETHER results for F(m x m): w[tap·TOGETHER + o] to to[point·step + o]. All
 * levels give the same bits. */
typedef void weft_winograd_points_fn(int m, const float *w, float *to, int64_t step);
weft_winograd_points_fn weft_winograd_points__ref, weft_winograd_points__avx2, weft_winograd_points__avx512;

#endif
