/* SPDX-License-Identifier: Apache-2.0 */
/* direct.h: the form DIRECT, an implicit product of matrices: X[pixels,K] · W[K,o] without an X in memory.
 *
 * A tile is a few pixels by a panel of results o. It reads each number of x through the pixel's pointer and the tap's
 * offset, so pixels may lie anywhere, strides and dilation cost nothing, and channels may be neighbours or planes.
 * Where taps in the padding are read, bands of rows are copied with the padding written out; else x is read in place.
 * So a number is copied once or twice, and not once for each tap as in COLUMNS.
 *
 * Vectors run along o. Where y has planes, blocks of pixels are computed beside each other in scratch and turned.
 *
 * Results whose windows have the same taps inside of x make areas, rectangles of pixels whose tiles leave out the other
 * taps (conv.h says why they may). An area costs a list of taps, and tiles of its own: prepare chooses the axes along
 * which taps are left out, all of them only where that is worth it. */
#ifndef WEFT_DIRECT_H
#define WEFT_DIRECT_H

#include "kernels/conv/conv.h"

enum {
    WEFT_DIRECT_BLOCK = 96, /* pixels that are turned together; a vector of them may be read behind the last */
    WEFT_DIRECT_DEPTH = 2048, /* of a panel of weights that passes the pixels at a time: half a megabyte */
};

struct weft_direct {
    bool in_place;
    int64_t rows;              /* of y that a band serves at most; they have one index along axis 0 */
    int64_t groups, group;     /* of the band: groups of neighbouring rows; its depth is kernel[0] */
    int64_t columns;
    int64_t channel, at[3];    /* strides in floats of what is read, x or the band; at[0] from tap to tap */
    int64_t tap_row;           /* floats from a row of taps to the next */
    int64_t band_size, block_size, list_size;
};
/* For areas that leave out taps along the axes `skips`. */
struct weft_direct weft_direct_plan(const struct weft_conv *conv, const struct weft_conv_shape *s, int32_t skips);

/* Results of an axis by what they see: class i, results [first[i], first[i + 1]), sees the taps [from[i], to[i]). */
enum { WEFT_DIRECT_CLASSES = 12 };
struct weft_direct_axis {
    bool exact; /* no class has taps in the padding */
    int64_t count, first[WEFT_DIRECT_CLASSES + 1], from[WEFT_DIRECT_CLASSES], to[WEFT_DIRECT_CLASSES];
};
/* Along axis d. One class that sees all taps unless `exact`, and where there would be too many. */
struct weft_direct_axis weft_direct_axis(const struct weft_conv_shape *s, int d, bool exact);
/* Sets `skips` to the axes along which it pays to leave out taps, and `direct` to what that takes with the vectors of
 * the descriptor's kernel; nothing is done where that is known. */
void weft_direct_weigh(struct weft_conv *conv, const struct weft_conv_shape *s);

/* Columns of a row that parts of their own are worth; rows are only cut where there are not enough of them. */
enum { WEFT_DIRECT_PIECE = 64 };

/* Panels of results: as even as whole vectors of `lanes` allow. Returns how many there are. */
struct weft_direct_panel {
    int64_t first, columns, width; /* width: with what rounds it up to vectors */
};
static inline int64_t weft_direct_panels(const struct weft_gemm_kernel *kernel, int64_t o)
{
    return weft_pieces(o, kernel->columns);
}
static inline struct weft_direct_panel weft_direct_panel(const struct weft_gemm_kernel *kernel, int64_t o, int64_t i)
{
    const int64_t vectors = weft_pieces(o, kernel->lanes), panels = weft_direct_panels(kernel, o);
    const int64_t first = weft_cut_evenly(vectors, panels, i) * kernel->lanes,
                  width = weft_cut_evenly(vectors, panels, i + 1) * kernel->lanes - first;
    return (struct weft_direct_panel){first, o - first < width ? o - first : width, width};
}
/* Floats of the weights of a group, o results of so many terms: panels [tap][channel][width], the last one filled with
 * zeros. Behind them are flags: for each part that packed, 1 if what it packed is finite, else
 * 0; and 1 for parts that there were not. */
static inline int64_t weft_direct_flags(const struct weft_gemm_kernel *kernel, int64_t o, int64_t terms)
{
    return weft_pieces(o, kernel->lanes) * kernel->lanes * terms;
}
static inline int64_t weft_direct_weights(const struct weft_gemm_kernel *kernel, int64_t o, int64_t terms)
{
    return weft_direct_flags(kernel, o, terms) + WEFT_CONV_PACK_PARTS;
}
/* Are all packed weights of a group finite? */
bool weft_direct_are_finite(const struct weft_gemm_kernel *kernel, int64_t o, int64_t terms, const float *pack);

/* A part that packs: it goes over all taps of all panels, and packs those that are its own, [begin, end). */
struct weft_direct_packing {
    float *to, *flag;
    int64_t next, begin, end;
};
void weft_direct_pack_begin(struct weft_direct_packing *d, const struct weft_packing *packing, float *pack, int part,
                            int parts);
/* The next tap of a panel, [channel][width]; `from`: of its first result and channel. */
void weft_direct_pack_tap(struct weft_direct_packing *d, const struct weft_packing *packing,
                          const struct weft_direct_panel *panel, const weft_loose_f32 *from,
                          const struct weft_conv_weights *at);
void weft_direct_pack(const struct weft_packing *packing, float *pack, const weft_loose_f32 *w,
                      const struct weft_conv_weights *at, int part, int parts);

#endif
