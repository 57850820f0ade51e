/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_ref.c: the definition of a correct product: the formulas of gemm.h, one result after the other. */
#include "kernels/gemm/gemm.h"

#include <math.h>

/* The sum over the terms [k, k_end): `lanes` chains, added up by halves. */
static float sum_lanes(const struct weft_gemm *g, const float *x, const float *y, int64_t k, int64_t k_end)
{
    float lane[32] = {0};
    for (int64_t p = k; p < k_end; p++) {
        float *const s = &lane[(p - k) % g->lanes];
        *s = fmaf(x[p * g->loops.a_col], y[p * g->loops.b_row], *s);
    }
    for (int half = g->lanes / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    }
    return lane[0];
}

static void finish(const struct weft_gemm_finish *f, float *c, const float *from, int64_t from_row, const float *bias,
                   const float *residual, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            float *const to = c + i * f->c_row + j * f->c_col, s = from[i * from_row + j];
            float x = f->scaled ? f->alpha * s : s;
            if (f->scaled && f->beta != 0)
                x += f->beta * *to;
            x = bias ? x + bias[i * f->bias_row + j * f->bias_col] : x;
            x = residual ? x + residual[i * f->r_row + j * f->r_col] : x;
            *to = f->clamp.given ? weft_clamped(&f->clamp, x) : x;
        }
    }
}

static void add(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* What is made: a row of A, and behind it a column of B. */
int64_t weft_gemm_plain_size(const struct weft_gemm *g)
{
    return (g->prologue_a ? g->k : 0) + (g->prologue_b ? g->k : 0);
}

static void make_row(const struct weft_gemm *g, const struct weft_gemm_data *data, float *row, int64_t batch, int64_t i,
                     int64_t k, int64_t k_end)
{
    g->prologue_a(data->user, &(struct weft_gemm_piece){.data = row + k, .row = g->k, .column = 1, .rows = 1,
                                                        .columns = k_end - k, .batch = batch, .first_row = i,
                                                        .first_column = k});
}

static void make_column(const struct weft_gemm *g, const struct weft_gemm_data *data, float *column, int64_t batch,
                        int64_t j, int64_t k, int64_t k_end)
{
    g->prologue_b(data->user, &(struct weft_gemm_piece){.data = column + k, .row = 1, .column = g->k,
                                                        .rows = k_end - k, .columns = 1, .batch = batch,
                                                        .first_row = k, .first_column = j});
}

/* Row i of the results that a box has, for the terms [k, k_end) of product or slice n. */
static void run_row(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int64_t n, int64_t i,
                    const int64_t column[2], int64_t k, int64_t k_end)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    const int64_t batch = sliced ? 0 : n;
    float *const row = data->scratch, *const made = row + (gemm->prologue_a ? l->k : 0);
    if (gemm->prologue_a)
        make_row(gemm, data, row, batch, i, k, k_end);
    const float *const x = gemm->prologue_a ? row : data->a + batch * l->a_batch + i * l->a_row;
    for (int64_t j = column[0]; j < column[1]; j++) {
        if (gemm->prologue_b)
            make_column(gemm, data, made, batch, j, k, k_end);
        const float *const y = gemm->prologue_b ? made : data->b + batch * l->b_batch + j * l->b_col;
        const float sum = sum_lanes(gemm, x, y, k, k_end);
        if (sliced) {
            weft_gemm_partial(gemm, data->shared, n)[i * l->n + j] = sum;
            continue;
        }
        weft_gemm_finish(gemm, data, &sum, 0, batch, i, 1, j, 1);
        weft_gemm_hand(gemm, data, batch, i, 1, j, 1);
    }
}

void weft_gemm_run_plain(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    for (int64_t n = begin[0]; n < end[0]; n++) {
        const int64_t k = sliced ? weft_cut(l->k, gemm->slices, n) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, n + 1) : l->k;
        for (int64_t i = begin[1]; i < end[1]; i++)
            run_row(gemm, data, n, i, (int64_t[]){begin[2], end[2]}, k, k_end);
    }
}

const struct weft_gemm_code weft_gemm_f32_1x1__ref = {.finish = finish, .add = add};
