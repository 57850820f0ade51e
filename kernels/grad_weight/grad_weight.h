/* SPDX-License-Identifier: Apache-2.0 */
/* grad_weight.h: the family of the gradient of a convolution's weights, f32; kernels.h has the descriptor.
 *
 *   dw[o, c, t…] = sum over n, p… of dy[n, o, p…] · x[n, c, p·stride + t·dilation − pad…]
 *
 * The terms of a result are cut into *bands*: some images, or some rows of one image (weft_grad_weight_band), which
 * follow from extents alone. A band's terms make one chain of multiply-adds, image by image, depth by depth, row by
 * row; the sums of bands are added up in order. So every level and any number of parts give the same bits, and an error
 * grows with the terms of a band and with the number of bands, not with their product.
 *
 * A tile is `rows` pairs of a channel and a tap by `columns` *lanes*, over the terms of a band, with its sums in
 * registers. Lanes are results of a group side by side: dy is gathered as [term][lane], and x is read where it lies,
 * or, where windows reach into the padding, from a copy of the band with zeros around it. One number of x is so the
 * factor of all lanes: its order in memory does not matter, taps need no copies of their own, and channels fill no
 * vectors, of which an image has three. Where groups have few results, as depthwise, lanes are groups side by side: x
 * is then gathered with its lanes as dy is, and each lane has its own factor.
 *
 * Units are tiles, which parts share; a part gathers what its tiles read. */
#ifndef WEFT_GRAD_WEIGHT_H
#define WEFT_GRAD_WEIGHT_H

#include "kernels/kernels.h"

enum { WEFT_GRAD_ROWS = 12 };  /* of a tile, at most */
enum { WEFT_GRAD_TERMS = 320 }; /* of a band, about: their lanes stay in the first-level cache */

/* Images, depths, rows and columns of dy: how many of them make a band. */
struct weft_grad_band {
    int64_t extent[4];
};
struct weft_grad_band weft_grad_weight_band(const struct weft_grad_weight *g);

/* The terms of a band: so many along each axis, numbers of x so many floats apart. Those of dy lie one behind another.
 */
struct weft_grad_walk {
    int64_t extent[4], step[4];
};

/* sum[i · columns + l] = (more: that, +) the chain over all terms of x[at[i] (+ l, where lanes have factors of their
 * own)] · dy[l]. */
typedef void weft_grad_tile_fn(const struct weft_grad_walk *walk, const float *x, const int64_t *at, const float *dy,
                               float *sum, bool more);

/* The transforms of grad_winograd.h. Of a row of tiles, for `lanes` channels side by side, which are whole vectors:
 * to[point · to_point + tile · to_tile + lane], where row r and column p that the tiles see are at from[r · from_row +
 * p · from_column + lane]. */
typedef void weft_grad_transform_fn(const float *from, int64_t from_row, int64_t from_column, float *to,
                                    int64_t to_point, int64_t to_tile, int64_t tiles, int64_t lanes);
/* Back: of `rows` rows of M, at from[point · from_point + row · columns + lane], the nine taps, to[(row · 9 + tap) ·
 * columns + lane]. */
typedef void weft_grad_taps_fn(const float *from, int64_t from_point, float *to, int64_t rows);

struct weft_grad_weight_level {
    const char *name, *winograd_name;
    uint32_t cpu;
    int rows, columns;
    weft_grad_tile_fn *const *tile[2]; /* by whether lanes have factors of their own; by rows - 1 */
    weft_grad_transform_fn *transform_x, *transform_dy;
    weft_grad_taps_fn *taps;
};
const struct weft_grad_weight_level *weft_grad_weight_level_of(uint32_t cpu); /* the best */
#define GRAD_WEIGHT(level, cpu)                                                                                        \
    extern const struct weft_grad_weight_level weft_grad_weight_level__##level;                                        \
    weft_grad_transform_fn weft_grad_transform_x__##level, weft_grad_transform_dy__##level;                            \
    weft_grad_taps_fn weft_grad_taps__##level;
#include "kernels/grad_weight/grad_weight.def"

#endif
