/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_pack.c: copies of operands in the order in which tiles read them, and the constant B that is packed ahead.
 *
 * A pack serves any number of rows of A: panels where tiles run along the columns of B, lines where B is read as A is
 * (the transposed product), or where it has so few columns that dot products want it. */
#include "kernels/gemm/gemm.h"

#include <string.h>

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void weft_gemm_gather(const struct weft_gemm_kernel *kernel, float *to, int64_t to_row, const weft_loose_f32 *from,
                      int64_t from_row, int64_t from_column, int64_t rows, int64_t columns)
{
    if (from_row == 1 && from_column != 1 && kernel->code->transpose) {
        kernel->code->transpose(to, to_row, from, from_column, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (from_column == 1) {
            memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
            continue;
        }
        for (int64_t j = 0; j < columns; j++)
            to[i * to_row + j] = from[i * from_row + j * from_column];
    }
}

int64_t weft_gemm_panels_size(const struct weft_gemm_kernel *kernel, int64_t k, int64_t columns)
{
    return weft_pieces(columns, kernel->columns) * kernel->columns * k;
}

size_t weft_gemm_pack_bytes(const struct weft_gemm *g)
{
    const int64_t lines = g->n * g->k, panels = weft_gemm_panels_size(g->kernel, g->k, g->n);
    return (size_t)(g->pack_form == WEFT_GEMM_LINES ? lines : panels) * sizeof(float);
}

/* Rows from `first` to before `end` of the panels [columns / panel][k][panel] of B, the last one filled with zeros. */
static void pack_panels(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int64_t columns, int64_t first,
                        int64_t end)
{
    const int64_t whole = g->kernel->columns;
    for (int64_t j = 0; j < columns; j += whole, pack += g->k * whole) {
        const int64_t width = smaller(whole, columns - j);
        weft_gemm_gather(g->kernel, pack + first * whole, whole, b + first * g->b_row + j * g->b_col, g->b_row,
                         g->b_col, end - first, width);
        for (int64_t p = first; width < whole && p < end; p++)
            memset(pack + p * whole + width, 0, (size_t)(whole - width) * sizeof *pack);
    }
}

void weft_gemm_pack_part(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int part, int parts)
{
    const bool by_columns = g->b_col >= g->b_row, lines = g->pack_form == WEFT_GEMM_LINES;
    const int64_t unit = by_columns && !lines ? g->kernel->columns : 1;
    const int64_t extent = by_columns ? g->n : g->k, units = weft_pieces(extent, unit);
    const int64_t first = smaller(extent, units * part / parts * unit);
    const int64_t end = smaller(extent, units * (part + 1) / parts * unit);
    if (first == end)
        return;
    if (lines && by_columns)
        weft_gemm_gather(g->kernel, pack + first * g->k, g->k, b + first * g->b_col, g->b_col, g->b_row, end - first,
                         g->k);
    else if (lines)
        weft_gemm_gather(g->kernel, pack + first, g->k, b + first * g->b_row, g->b_col, g->b_row, g->n, end - first);
    else if (by_columns)
        pack_panels(g, pack + first * g->k, b + first * g->b_col, end - first, 0, g->k);
    else
        pack_panels(g, pack, b, g->n, first, end);
}

void weft_gemm_pack(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b)
{
    weft_gemm_pack_part(gemm, pack, b, 0, 1);
}
