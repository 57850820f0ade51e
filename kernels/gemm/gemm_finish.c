/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_finish.c: from sums to results where a tile cannot do it in registers: alpha, beta, odd strides, sums of lanes
 * and slices; and handing results to the epilogue. */
#include "kernels/gemm/gemm.h"

bool weft_gemm_unfinished(const struct weft_gemm *gemm, const struct weft_gemm_data *data)
{
    return gemm->scaled || data->bias || gemm->residual || gemm->clamp.given;
}

void weft_gemm_call_hook(const struct weft_gemm *gemm, weft_gemm_hook *hook, void *user, struct weft_gemm_piece piece)
{
    if (gemm->swapped)
        piece = (struct weft_gemm_piece){.data = piece.data, .row = piece.column, .column = piece.row,
                                         .rows = piece.columns, .columns = piece.rows, .batch = piece.batch,
                                         .first_row = piece.first_column, .first_column = piece.first_row};
    hook(user, &piece);
}

void weft_gemm_finish(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const float *from,
                      int64_t from_row, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    float *const c = data->c + batch * l->c_batch + row * l->c_row + column * l->c_col;
    const struct weft_gemm_finish finish = {.scaled = gemm->scaled, .alpha = gemm->alpha, .beta = gemm->beta,
                                            .c_row = l->c_row, .c_col = l->c_col, .bias_row = l->bias_row,
                                            .bias_col = l->bias_col, .r_row = l->r_row, .r_col = l->r_col,
                                            .clamp = gemm->clamp};
    const float *const bias = data->bias ? data->bias + row * l->bias_row + column * l->bias_col : NULL;
    const float *const residual = gemm->residual ? data->residual + batch * l->r_batch + row * l->r_row +
                                                       column * l->r_col
                                                 : NULL;
    if (from != c || weft_gemm_unfinished(gemm, data))
        gemm->kernel->code->finish(&finish, c, from, from_row, bias, residual, rows, columns);
}

void weft_gemm_hand(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int64_t batch, int64_t row,
                    int64_t rows, int64_t column, int64_t columns)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    if (!gemm->epilogue)
        return;
    float *const c = data->c + batch * l->c_batch + row * l->c_row + column * l->c_col;
    weft_gemm_call_hook(gemm, gemm->epilogue, data->user,
                        (struct weft_gemm_piece){.data = c, .row = l->c_row, .column = l->c_col, .rows = rows,
                                                 .columns = columns, .batch = batch, .first_row = row,
                                                 .first_column = column});
}

void weft_gemm_add_slice(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int64_t slice)
{
    gemm->kernel->code->add(weft_gemm_partial(gemm, data->shared, 0), weft_gemm_partial(gemm, data->shared, slice),
                            gemm->m * gemm->n);
}

void weft_gemm_finish_slices(const struct weft_gemm *gemm, const struct weft_gemm_data *data)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const float *const sum = weft_gemm_partial(gemm, data->shared, 0);
    for (int64_t i = 0; i < l->m; i += WEFT_GEMM_ROWS) {
        const int64_t rows = l->m - i < WEFT_GEMM_ROWS ? l->m - i : WEFT_GEMM_ROWS;
        for (int64_t j = 0; j < l->n; j += WEFT_GEMM_COLUMNS) {
            const int64_t columns = l->n - j < WEFT_GEMM_COLUMNS ? l->n - j : WEFT_GEMM_COLUMNS;
            weft_gemm_finish(gemm, data, sum + i * l->n + j, l->n, 0, i, rows, j, columns);
        }
        weft_gemm_hand(gemm, data, 0, i, rows, 0, l->n);
    }
}
