/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_ahead.h: what the tiles of a product prefetch for those behind them, for gemm_tiles.c alone. */
#ifndef WEFT_GEMM_AHEAD_H
#define WEFT_GEMM_AHEAD_H

#include "kernels/gemm/gemm_copy.h"

/* Where the panels of this block are, and the copy of the one behind that tiles make, if there is one. */
struct weft_gemm_copies {
    float *panels;
    struct weft_gemm_copy next;
};

/* What is at hand inside a block. a: element (row, depth); b: element (depth, column) of its panel. */
struct weft_gemm_work {
    const struct weft_gemm *gemm;
    const struct weft_gemm_data *data;
    const struct weft_gemm_loops *l;
    int64_t batch;
    float *c;                       /* of this product, or the slice's partial sums */
    int64_t c_row, c_col;
    const float *a, *b;             /* of this product */
    float *band, *block;            /* scratch, or NULL where the operand is read in place */
    struct weft_gemm_copies *copies; /* or NULL where B is read in place */
    bool finish, in_tile;           /* sums differ from results; a tile makes results of them in registers */
    bool hand;                      /* to the epilogue */
    struct weft_gemm_last last;     /* of the first row and column */
    int64_t tile_end, column_end, k_begin, k_end;
};

/* A block of columns [column, column_end) and k terms from `depth` on, and the tiles [tile, tile_end) of a band in it;
 * first_tile: of its first band. */
struct weft_gemm_block {
    int64_t column, column_end, depth, k;
    int64_t first_tile, tile, tile_end;
};

/* The block behind this one: false if it is the last. */
static inline bool weft_gemm_block_behind(const struct weft_gemm_work *w, const struct weft_gemm_block *of,
                                          int64_t *ret_column, int64_t *ret_depth)
{
    const bool deeper = of->depth + of->k < w->k_end;
    *ret_column = deeper ? of->column : of->column_end;
    *ret_depth = deeper ? of->depth + of->k : w->k_begin;
    return *ret_column < w->column_end;
}

/* The first row of a tile. */
static inline int64_t weft_gemm_row_of(const struct weft_gemm_work *w, int64_t tile)
{
    return tile * w->l->least + (tile < w->l->spare ? tile : w->l->spare);
}

/* What the tiles of a panel ask for together. PIECE: `floats` from data on, each tile for an equal part. TRACKS: tile
 * t, if t < tracks, for so many lines each WEFT_AHEAD_TERMS terms, `step` floats apart, from data + t·WEFT_AHEAD_LINE
 * on; where there are fewer tiles than tracks, nobody asks for the last ones. */
struct weft_gemm_wanted {
    enum { WEFT_WANT_NOTHING, WEFT_WANT_PIECE, WEFT_WANT_TRACKS } form;
    const float *data;
    int64_t floats;
    int64_t tracks, step, lines;
};

/* While the tiles of a band meet the panel of columns from j on. */
struct weft_gemm_wanted weft_gemm_want(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t j);
/* Tells tile t of `tiles`, which sums k terms, its share, and to prefetch its rows of C, unless it begins by reading
 * them (from_c). False: it asks for nothing. */
bool weft_gemm_ask(const struct weft_gemm_loops *l, const struct weft_gemm_wanted *wanted, int64_t k, int64_t t,
                   int64_t tiles, bool from_c, struct weft_gemm_last *ret);

/* --- gemm_scratch.c --- */

/* Of a block: sees to it that the rows of A of a band, and the panel of B at a column, are in scratch memory. The first
 * band sees to all panels. */
void weft_gemm_fill_band(const struct weft_gemm_work *w, const struct weft_gemm_block *of);
void weft_gemm_fill_panel(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t column);

#endif
