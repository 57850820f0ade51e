/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_copy.h: the copy of a panel of B that tiles make piece by piece while they sum, for the panel behind theirs.
 *
 * A copy as a whole keeps the multiply-add units waiting for 3 to 6 % of the time of a product of 512 x 512 x 512. A
 * tile of 6 x 64 leaves more than half of the slots for loads, and nearly all for stores, empty: a piece every
 * WEFT_AHEAD_TERMS terms takes some of them, and nothing waits as long as what it reads is in the second-level cache,
 * to which earlier pieces prefetch it. */
#ifndef WEFT_GEMM_COPY_H
#define WEFT_GEMM_COPY_H

#include "kernels/gemm/gemm.h"

enum { WEFT_COPY_LINE = 16 /* floats */, WEFT_COPY_ROWS = 4 };

/* to[i·to_row + j] = from[i·from_row + j·from_column], in blocks of a line of columns: a row in one piece, or, where it
 * transposes (from_row is 1), sixteen rows in pieces of four. Blocks go along columns. */
struct weft_gemm_copy {
    float *panel; /* where it begins; or NULL: there is no copy */
    const weft_loose_f32 *source;
    int64_t to_row, from_row, from_column, rows, columns;
    bool transposes;
    float *to; /* the next piece, and how many there are */
    const weft_loose_f32 *from;
    int64_t left;
    int64_t piece, pieces, block, blocks; /* piece of its block, and block of its rows */
    int64_t to_step, from_step;           /* from a piece to the next one of its block; in addition */
    int64_t to_block, from_block;         /* behind the last one of a block, */
    int64_t to_rows, from_rows;           /* and behind the last one of all columns */
    int64_t each, every, wait;            /* pieces, behind so many times WEFT_AHEAD_TERMS terms; till then */
    int64_t ahead;                        /* floats from a line to the one that is prefetched meanwhile */
};

/* Sets out to make a copy, whose members up to `columns` are given, while tiles take so many turns of WEFT_AHEAD_TERMS
 * terms. */
void weft_gemm_copy_begin(struct weft_gemm_copy *copy, int64_t turns);
/* What tiles have not come to, and the elements that are no whole pieces. */
void weft_gemm_copy_end(const struct weft_gemm_kernel *kernel, struct weft_gemm_copy *copy);

/* The next piece was made. */
static inline void weft_gemm_copy_next(struct weft_gemm_copy *copy)
{
    copy->left--;
    copy->to += copy->to_step, copy->from += copy->from_step;
    if (++copy->piece < copy->pieces)
        return;
    copy->piece = 0;
    copy->to += copy->to_block, copy->from += copy->from_block;
    if (++copy->block < copy->blocks)
        return;
    copy->block = 0;
    copy->to += copy->to_rows, copy->from += copy->from_rows;
}

#endif
