/* SPDX-License-Identifier: Apache-2.0 */
/* phases.h: the form PHASES, for x and y in planes: W[o,K] · X[K,pixels] with vectors along the pixels and nothing
 * gathered.
 *
 * Bands of rows are copied with the padding written out, and their rows and columns dealt out by what their number
 * leaves when it is divided by the stride: phase (0, 1) at stride two has the even rows' odd columns. A tap lies in one
 * phase, and there neighbouring results read neighbouring numbers at every stride. So each number of x is copied once,
 * not once for each tap as in COLUMNS, and results are stored where they belong, not turned as in DIRECT.
 *
 * All phases have rows of one pitch, so that a tap is a constant offset for all pixels of a band: where rows of y do
 * not fill vectors, the pixels of a band run on from row to row (`joined`), over the few columns between, whose sums
 * nobody stores. A tile is some vectors of pixels by some results, whose weights lie beside each other.
 *
 * Pays for few channels: what the taps of a row see must stay in the first-level cache, since each tap passes all
 * channels before the next one does. */
#ifndef WEFT_PHASES_H
#define WEFT_PHASES_H

#include "kernels/conv/conv.h"

struct weft_phases {
    int64_t rows, columns; /* of y that a band serves at most */
    int64_t pieces;        /* of that many columns in a row of y */
    int64_t dealt[2];      /* phases along axes 1 and 2 that taps see, all or the first ones */
    int64_t seen[2];       /* rows and columns of a phase besides those of y */
    int64_t width, pitch;  /* floats of a row, used and in all */
    int64_t phase, depth, channel; /* floats of a phase, from tap to tap of axis 0, of a channel */
    int64_t band_size, list_size;
    bool joined;
};
struct weft_phases weft_phases_plan(const struct weft_conv_shape *s, int64_t lanes);

/* Results of a tile, and how many tiles o results take. Weights of a group: [tile][tap][channel][result]. */
static inline int64_t weft_phases_most(int64_t wide) { return wide == 8 ? 6 : 8; }
static inline int64_t weft_phases_tiles(int64_t wide, int64_t o) { return weft_pieces(o, weft_phases_most(wide)); }
void weft_phases_pack(const struct weft_packing *packing, float *pack, const weft_loose_f32 *w,
                      const struct weft_conv_weights *at, int part, int parts);

/* Whether the form takes the shape at all; what it costs an image of a group, in vectors of multiply-adds. */
bool weft_phases_fit(const struct weft_conv_shape *s);
double weft_phases_costs(const struct weft_conv_shape *s, int64_t lanes);

#endif
