/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_half.c: few rows by a packed B whose elements are f16 or bf16. What such a product waits for is B, so it takes
 * half of the time that it takes with floats. The chains are those of the tiles. */
#include "kernels/gemm/gemm.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void weft_gemm_run_half(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                        const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    const int64_t whole = gemm->kernel->columns, column_end = smaller(l->n, end[2] * whole);
    weft_gemm_half_fn *const(*const code)[WEFT_GEMM_HALF_ROWS] =
        gemm->b_half == WEFT_K_BF16 ? gemm->kernel->code->bf16 : gemm->kernel->code->f16;
    const int64_t groups = weft_pieces(l->m, WEFT_GEMM_HALF_ROWS), most = weft_pieces(l->m, groups);
    const int64_t step = (most < WEFT_GEMM_HALF_ROWS ? 2 : 1) * whole; /* the sums of four rows have no more room */
    float aside[WEFT_GEMM_HALF_ROWS * 2 * WEFT_GEMM_COLUMNS];
    if (begin[1] == end[1])
        return; /* rows are one unit, which another part has */
    for (int64_t slice = begin[0]; slice < end[0]; slice++) {
        const int64_t k = sliced ? weft_cut(l->k, gemm->slices, slice) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, slice + 1) : l->k;
        for (int64_t j = begin[2] * whole, handed = j; j < column_end; j += step) {
            const int64_t columns = smaller(step, column_end - j), panels = columns > whole ? 2 : 1;
            const float *const b = weft_gemm_half_at(data->b, j * l->k + k * whole);
            for (int64_t group = 0; group < groups; group++) { /* the first reads the panel, others find it near */
                const int64_t i = weft_cut(l->m, groups, group), rows = weft_cut(l->m, groups, group + 1) - i;
                code[panels - 1][rows - 1](k_end - k, data->a + i * l->a_row + k, l->a_row,
                                           (const uint16_t *)(const void *)b, whole * l->k, aside, panels * whole);
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
