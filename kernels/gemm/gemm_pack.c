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

bool weft_packing_same(const struct weft_packing *a, const struct weft_packing *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct weft_packing weft_gemm_packing(const struct weft_gemm_kernel *kernel, enum weft_pack_order order, int64_t k,
                                      int64_t n)
{
    return (struct weft_packing){.order = order, .dtype = WEFT_K_F32,
                                 .kernel = order == WEFT_PACK_PANELS ? kernel - weft_gemm_kernels : 0,
                                 .groups = 1, .o = n, .c = k, .taps = {1, 1, 1}};
}

static int64_t panel_of(const struct weft_packing *p) { return weft_packing_kernel(p)->columns; }

int64_t weft_gemm_packed_size(const struct weft_packing *p)
{
    return p->order == WEFT_PACK_LINES ? p->o * p->c : weft_pieces(p->o, panel_of(p)) * panel_of(p) * p->c;
}

size_t weft_gemm_pack_bytes(const struct weft_gemm *gemm)
{
    return (size_t)weft_gemm_packed_size(&gemm->packing) * sizeof(float);
}

/* Rows from `first` to before `end` of the panels [columns / panel][k][panel] of B, the last one filled with zeros. */
static void pack_panels(const struct weft_packing *packing, const struct weft_gemm_kernel *by, float *pack,
                        const weft_loose_f32 *b, int64_t b_row, int64_t b_col, int64_t columns, int64_t first,
                        int64_t end)
{
    const int64_t whole = panel_of(packing);
    for (int64_t j = 0; j < columns; j += whole, pack += packing->c * whole) {
        const int64_t width = smaller(whole, columns - j);
        weft_gemm_gather(by, pack + first * whole, whole, b + first * b_row + j * b_col, b_row, b_col, end - first,
                         width);
        for (int64_t p = first; width < whole && p < end; p++)
            memset(pack + p * whole + width, 0, (size_t)(whole - width) * sizeof *pack);
    }
}

void weft_gemm_pack_as(const struct weft_packing *packing, const struct weft_gemm_kernel *by, float *pack,
                       const weft_loose_f32 *b, int64_t b_row, int64_t b_col, int part, int parts)
{
    const int64_t n = packing->o, k = packing->c;
    const bool by_columns = b_col >= b_row, lines = packing->order == WEFT_PACK_LINES;
    const int64_t unit = by_columns && !lines ? panel_of(packing) : 1;
    const int64_t extent = by_columns ? n : k, units = weft_pieces(extent, unit);
    const int64_t first = smaller(extent, units * part / parts * unit);
    const int64_t end = smaller(extent, units * (part + 1) / parts * unit);
    if (first == end)
        return;
    if (lines && by_columns)
        weft_gemm_gather(by, pack + first * k, k, b + first * b_col, b_col, b_row, end - first, k);
    else if (lines)
        weft_gemm_gather(by, pack + first, k, b + first * b_row, b_col, b_row, n, end - first);
    else if (by_columns)
        pack_panels(packing, by, pack + first * k, b + first * b_col, b_row, b_col, end - first, 0, k);
    else
        pack_panels(packing, by, pack, b, b_row, b_col, n, first, end);
}

void weft_gemm_pack_part(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int part, int parts)
{
    weft_gemm_pack_as(&g->packing, g->kernel, pack, b, g->b_row, g->b_col, part, parts);
}

void weft_gemm_pack(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b)
{
    weft_gemm_pack_part(gemm, pack, b, 0, 1);
}
