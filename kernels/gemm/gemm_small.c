/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_small.c: few rows by a packed B whose elements are smaller than f32: f16, bf16, i8 or u8. What such a product
 * waits for is B, so it takes as much less time as B has fewer bytes. The chains are those of the tiles. */
#include "kernels/gemm/gemm.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void weft_gemm_run_small(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    const int64_t whole = gemm->kernel->columns, column_end = smaller(l->n, end[2] * whole);
    weft_gemm_small_fn *const(*const code)[WEFT_GEMM_SMALL_ROWS] = gemm->kernel->code->small[gemm->b_small];
    const int64_t groups = weft_pieces(l->m, WEFT_GEMM_SMALL_ROWS), most = weft_pieces(l->m, groups);
    const int widest = most == WEFT_GEMM_SMALL_ROWS ? 0 /* the sums of four rows have no more room */
                       : code[2][most - 1]          ? 2 : 1;
    float aside[WEFT_GEMM_SMALL_ROWS * 2 * WEFT_GEMM_COLUMNS];
    if (begin[1] == end[1])
        return; /* rows are one unit, which another part has */
    for (int64_t slice = begin[0]; slice < end[0]; slice++) {
        const int64_t k = sliced ? weft_cut(l->k, gemm->slices, slice) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, slice + 1) : l->k;
        for (int64_t j = begin[2] * whole, handed = j, columns; j < column_end; j += columns) {
            const int64_t left = weft_pieces(column_end - j, whole);
            const int width = widest == 2 && left >= 4 ? 2 : widest >= 1 && left >= 2 ? 1 : 0, panels = 1 << width;
            columns = smaller(panels * whole, column_end - j);
            const float *const b = weft_gemm_small_at(gemm, data->b, j * l->k + k * whole);
            for (int64_t group = 0; group < groups; group++) { /* the first reads the panel, others find it near */
                const int64_t i = weft_cut(l->m, groups, group), rows = weft_cut(l->m, groups, group + 1) - i;
                code[width][rows - 1](k_end - k, data->a + i * l->a_row + k, l->a_row, b, whole * l->k, aside,
                                      panels * whole);
                if (sliced)
                    weft_gemm_gather(gemm->kernel, weft_gemm_partial(gemm, data->shared, slice) + i * l->n + j, l->n,
                                     aside, panels * whole, 1, rows, columns);
                else
                    weft_gemm_finish(gemm, data, aside, panels * whole, 0, i, rows, j, columns);
            }
            if (sliced)
                continue;
            if (j + columns == column_end || (j + columns - handed) * l->m >= WEFT_HANDED_RESULTS) {
                weft_gemm_hand(gemm, data, 0, 0, l->m, handed, j + columns - handed);
                handed = j + columns;
            }
        }
    }
}
