/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h: the loops of windows that are compiled per CPU level (pool_level.c), and what they agree upon with pool.c.
 *
 * The order of a result's terms is the same in all forms: the taps along depth and height make one chain for each
 * column of the window (they start from the identity, as everything here), and the columns make one chain from the
 * first to the last. A sum so has at most (depth · height) + width rounding errors instead of their product, and what
 * columns have in common can be computed once. For maxima the order decides only which zero is kept. */
#ifndef WEFT_STRIP_POOL_H
#define WEFT_STRIP_POOL_H

#include "kernels/strip/fold.h"

enum {
    WEFT_POOL_LINE = 4096, /* columns that are folded at once */
    WEFT_POOL_COLUMNS = 64, /* columns of 64 channels that are folded at once */
    WEFT_POOL_PLANES = 16, /* planes that are folded side by side */
    WEFT_POOL_STRIP = 16   /* results of a strip at most; places for each tap in its table */
};

/* Taps that lie inside the array: how many, and their distances in elements; depth, height, width. */
struct weft_taps {
    int64_t count[3], step[3];
};

/* A row of results, the same in each plane: where it goes, the operand's first element that its columns are made of,
 * both in elements of their planes, the taps along depth and height and how many of them a mean counts. */
struct weft_pool_row {
    int64_t out, in;
    struct weft_taps taps;
    float counted;
};

/* Rows whose columns have the same places. The line of row r is at column + r · step; its columns are [left, left +
 * inside), and what is before and behind them is the identity. */
struct weft_pool_line {
    float *column, *phase, *count; /* lines, the same in phases, and how many taps along the row each result counts */
    int64_t left, inside, span, pitch, step, results;
    int64_t stride, taps, dilation;
    bool phased;
    /* Not NULL if rows go by strips (pool_strips.inc) of so many results: for each tap the places of the columns that
     * they want, counted from the strip's first. Rows of the operand then are given from their column 0 on; they have
     * `width` columns, and the first result's first tap is at column `first`. */
    const int32_t *index;
    int64_t strip, first, width, reach; /* reach: columns from a result's first tap to its last */
};

/* Rows of pixels whose channels are contiguous (pool_channels.inc); elements of the operand are counted from column 0.
 */
struct weft_pool_pixels {
    int64_t results, channels, in_step, out_step; /* steps from pixel to pixel */
    int64_t taps, stride, dilation, pad, width;   /* along the row; columns of the operand */
    const float *count;                           /* how many taps along the row each result counts */
    float *line; /* room for WEFT_POOL_COLUMNS columns of four vectors, if results are to share columns, or NULL */
};

struct weft_pool_loops {
    /* column[i] = op over depth and height of x[tap + i · step], for i in [0, n). */
    void (*columns)(int op, float *column, const float *x, const struct weft_taps *taps, int64_t step, int64_t n);
    /* phase[p · pitch + i] = column[i · stride + p] for all that lie in [0, n): results along a row then read their
     * operands side by side. The pitch is a multiple of 16; both arrays have room for stride · pitch. */
    void (*phases)(float *phase, int64_t pitch, const float *column, int64_t stride, int64_t n);
    /* out[i] = op over t in [0, taps) of column i · stride + t · dilation, columns in phases; a sum is divided by
     * counted · count[i]. */
    void (*slide)(int op, float *out, const float *phase, int64_t pitch, int64_t stride, int64_t taps, int64_t dilation,
                  int64_t n, const float *count, float counted);
    int32_t strip_columns; /* that a strip may see, or 0 */
    /* All three for so many rows that are contiguous in both arrays, with phases if the stride is not 1. Lines are made
     * one after another before results slide over them: a load that spans two stores waits until both are in the cache.
     */
    void (*rows)(int op, const struct weft_pool_line *line, float *out, const float *in,
                 const struct weft_pool_row *row, int64_t rows);
    /* A row of results over pixels. */
    void (*channels)(int op, const struct weft_pool_pixels *pixels, float *out, const float *in,
                     const struct weft_pool_row *row);
    /* ret[p] = (op over all taps of plane[p]) / divisor, for WEFT_POOL_PLANES planes whose rows are contiguous. */
    void (*planes)(int op, float *ret, const float *const *plane, const struct weft_taps *taps, float divisor);
};
extern const struct weft_pool_loops weft_pool_loops__ref, weft_pool_loops__avx2, weft_pool_loops__avx512;

/* --- pool.c: for bands (pool_band.h) ------------------------------------------------------------------------------ */

enum weft_pool_form { WEFT_POOL_ROWS, WEFT_POOL_CHANNELS, WEFT_POOL_PLANES_OF_ONE, WEFT_POOL_FORMS };
/* Which form takes these strides. */
enum weft_pool_form weft_pool_form(const struct weft_pool *pool);
/* What a part does: rows [at, end) of all planes, or of all images if channels lie side by side: then of channels
 * [channel, past) too. */
struct weft_pool_share {
    int64_t at, end, channel, past;
};
/* Empty where nothing is to be done. */
struct weft_pool_share weft_pool_share(const struct weft_pool *pool, enum weft_pool_form form, int part, int parts);
void weft_pool_run_share(const struct weft_pool *pool, enum weft_pool_form form, float *out, const float *in,
                         const struct weft_pool_share *share);
/* Parts of a pool with so many taps in all, or terms as long. */
int32_t weft_pool_parts(const struct weft_pool *pool, enum weft_pool_form form, int64_t taps, int workers);
int64_t weft_pool_taps(const struct weft_pool *pool);

/* A number of spatial axis i of three: depth, height, width; missing leading ones have `other`. */
static inline int64_t weft_pool_axis(const struct weft_pool *pool, const int64_t *list, int i, int64_t other)
{
    const int axis = i - (3 - pool->spatial);
    return axis >= 0 ? list[axis] : other;
}

#endif
