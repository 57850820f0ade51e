/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_lanes.c: dot products: rows and columns of results, and handfuls, of operands whose unit stride is k.
 *
 * A row of results is computed a panel's width at a time: from columns of B side by side, or from packed panels, where
 * each lane has vectors of sums, one for each column, and all k of one residue go there. */
#include "kernels/gemm/gemm.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Columns [column, column + columns) of row i for the terms [k, k_end). */
static void run_row(const struct weft_gemm *g, const float *a, const float *b, float *to, int64_t column,
                    int64_t columns, int64_t k, int64_t k_end)
{
    const struct weft_gemm_loops *l = &g->loops;
    const struct weft_gemm_code *code = g->kernel->code;
    if (l->b_panels)
        code->panel_dots(k_end - k, a + k, b + column * l->k + k * g->kernel->columns, to, columns);
    else
        (g->lanes == 8 ? code->dots : code->long_dots)(k_end - k, a + k, b + column * l->b_col + k, l->b_col, to,
                                                       columns);
}

void weft_gemm_run_lanes(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    const bool finish = l->c_col != 1 || weft_gemm_unfinished(gemm, data);
    /* A handful of columns stays in the first-level cache while the rows pass. */
    const int64_t whole = gemm->kernel->columns, step = gemm->lanes == 8 ? whole : 4;
    const int64_t row = begin[1] * l->rows, row_end = smaller(l->m, end[1] * l->rows);
    for (int64_t n = begin[0]; n < end[0]; n++) {
        const int64_t batch = sliced ? 0 : n, k = sliced ? weft_cut(l->k, gemm->slices, n) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, n + 1) : l->k;
        const float *const a = data->a + batch * l->a_batch, *const b = data->b + batch * l->b_batch;
        float *const c = sliced ? weft_gemm_partial(gemm, data->shared, n) : data->c + n * l->c_batch;
        for (int64_t j = begin[2] * whole; j < smaller(l->n, end[2] * whole); j += step) {
            const int64_t columns = smaller(step, l->n - j);
            for (int64_t i = row; i < row_end; i++) {
                float aside[WEFT_GEMM_COLUMNS];
                float *const to = sliced ? c + i * l->n + j : finish ? aside : c + i * l->c_row + j;
                run_row(gemm, a + i * l->a_row, b, to, j, columns, k, k_end);
                if (!sliced && finish)
                    weft_gemm_finish(gemm, data, aside, WEFT_GEMM_COLUMNS, batch, i, 1, j, columns);
                if (!sliced)
                    weft_gemm_hand(gemm, data, batch, i, 1, j, columns);
            }
        }
    }
}
