/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_copy.c: what tiles copy of a panel of B, and the rest. */
#include "kernels/gemm/gemm_copy.h"

enum {
    LINE = WEFT_COPY_LINE,
    MOST_PIECES = 8, /* every WEFT_AHEAD_TERMS terms: with more, tiles would wait */
    AHEAD_ROWS = 4,  /* that are prefetched in front of the one that is copied */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows of a block. */
static int64_t high(const struct weft_gemm_copy *copy) { return copy->transposes ? LINE : 1; }

void weft_gemm_copy_begin(struct weft_gemm_copy *copy, int64_t turns)
{
    copy->transposes = copy->from_row == 1 && copy->from_column != 1;
    const int64_t rows = high(copy), step = copy->transposes ? WEFT_COPY_ROWS : 0;
    copy->to = copy->panel, copy->from = copy->source, copy->piece = copy->block = 0;
    copy->pieces = copy->transposes ? LINE / WEFT_COPY_ROWS : 1, copy->blocks = copy->columns / LINE;
    copy->left = copy->rows / rows * copy->blocks * copy->pieces;
    copy->to_step = step * copy->to_row, copy->from_step = step * copy->from_row;
    copy->to_block = LINE - copy->pieces * copy->to_step;
    copy->from_block = LINE * copy->from_column - copy->pieces * copy->from_step;
    copy->to_rows = rows * copy->to_row - copy->blocks * LINE;
    copy->from_rows = rows * copy->from_row - copy->blocks * LINE * copy->from_column;
    copy->ahead = copy->transposes ? LINE : AHEAD_ROWS * copy->from_row;
    if (copy->left == 0)
        return;
    copy->every = turns > copy->left ? turns / copy->left : 1;
    copy->each = smaller(weft_pieces(copy->left, turns > 0 ? turns : 1), MOST_PIECES);
    copy->wait = copy->every;
}

static void gather(const struct weft_gemm_kernel *kernel, const struct weft_gemm_copy *copy, int64_t row,
                   int64_t row_end, int64_t column)
{
    if (row < row_end && column < copy->columns)
        weft_gemm_gather(kernel, copy->panel + row * copy->to_row + column, copy->to_row,
                         copy->source + row * copy->from_row + column * copy->from_column, copy->from_row,
                         copy->from_column, row_end - row, copy->columns - column);
}

void weft_gemm_copy_end(const struct weft_gemm_kernel *kernel, struct weft_gemm_copy *copy)
{
    /* Tiles have made all blocks of the first rows, some of the next ones, of which one may have been begun and is made
     * again here, and nothing where columns are no whole line. */
    const int64_t of_rows = copy->blocks * copy->pieces, all = copy->rows / high(copy) * of_rows;
    const int64_t row = of_rows > 0 ? (all - copy->left) / of_rows * high(copy) : 0;
    const int64_t row_end = smaller(row + high(copy), copy->rows);
    gather(kernel, copy, 0, row, copy->blocks * LINE);
    gather(kernel, copy, row, row_end, copy->block * LINE);
    gather(kernel, copy, row_end, copy->rows, 0);
    copy->left = 0;
}
