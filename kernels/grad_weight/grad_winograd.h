/* SPDX-License-Identifier: Apache-2.0 */
/* grad_winograd.h: gradients of the weights of 3x3 convolutions of stride 1 with 16 of 36 multiplications, Winograd's
 * F(3x3,2x2): the transpose of F(2x2,3x3), by which conv/winograd.h makes the results of such a convolution.
 *
 * dy is cut into tiles of 2 x 2. Each sees 4 x 4 values of x, and
 *
 *   V[i,j,c,t] = (Bt d B)[i,j]    d: the 4 x 4 values of channel c that tile t sees; +0 outside of x
 *   W[i,j,o,t] = (A e At)[i,j]    e: the 2 x 2 values of result o; +0 outside of dy
 *   M[i,j,c,o] = the sum over t of V[i,j,c,t] · W[i,j,o,t]
 *   dw[o,c] = (Gt M G)
 *
 * so there are 16 products of matrices [c, tiles] · [tiles, o]. The transforms are sums in a fixed order, Bt, A and Gt
 * over the rows i before the columns j, with these lines for each (h = 0.5 (d1 + d2)):
 *
 *   Bt: d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *   A:  d0, d0 + d1, d0 - d1, d1
 *   Gt: d0 + h, 0.5 (d1 - d2), h - d3
 *
 * The tiles of a sum are cut into bands: pieces of a row of tiles, rows of an image, or images; and the bands, where
 * there are few pairs of channels, into slices. Both follow from extents alone (weft_grad_winograd_cut). A band's tiles
 * make one chain of fused multiply-adds that begins with +0, in the order of images, rows, columns; the sums of a
 * slice's bands are added up in order, then the sums of slices. That is all there is of the numeric signature: blocks,
 * layouts, parts and CPU level change no bit.
 *
 * A chain has less than half as many terms as one of grad_weight.h has, and the numbers of a product are up to four
 * times as large as those of x and dy: errors are 0.8 to 1.3 times those of the formula. A NaN in dy makes NaNs where
 * the formula does, since each operand of a line of A reaches all results. One in x does so too, and may reach other
 * taps of its channel besides, also from a row or column next to what windows see, where sizes of dy are odd. Of an
 * Inf, and of numbers near the largest, whose sums overflow, NaNs may become where the formula has infinities.
 *
 * Whether it pays is a matter of sizes alone, so that the signature of a descriptor is the same everywhere.
 *
 * Units are blocks of M, some channels by some results, for the bands of a slice; parts share them. x and dy are copied
 * band by band with channels side by side, so that vectors run along channels whatever the order of the axes, and
 * transformed; the tiles of grad_weight.h then make the 16 products. Blocks of the same channels each transform them,
 * so that large blocks have less to transform; small ones are work for more parts. Whoever is last with a block adds up
 * its slices. */
#ifndef WEFT_GRAD_WINOGRAD_H
#define WEFT_GRAD_WINOGRAD_H

#include "kernels/grad_weight/grad_weight.h"

enum {
    WEFT_GRAD_POINTS = 16, /* (i, j) */
    WEFT_GRAD_TILES = 128, /* of a band, at most */
};

/* Is it permitted, possible and faster? */
bool weft_grad_winograd_pays(const struct weft_grad_weight *g);
/* Images, rows and columns of tiles; so many pieces are cut from each to make a band; slices of bands. */
struct weft_grad_winograd_cut {
    int64_t whole[3], pieces[3], bands, slices;
};
struct weft_grad_winograd_cut weft_grad_winograd_cut(const struct weft_grad_weight *g);

/* Of a descriptor for which that is decided: what weft_grad_weight_prepare, _run and _products do. */
void weft_grad_winograd_prepare(struct weft_grad_weight *g, int workers);
void weft_grad_winograd_run(const struct weft_grad_weight *g, float *dw, const float *x, const float *dy, void *scratch,
                            void *shared, int part, int parts);
double weft_grad_winograd_products(const struct weft_grad_weight *g);

#endif
