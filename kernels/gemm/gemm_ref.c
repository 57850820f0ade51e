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

/* A prologue sees single elements here. */
static float prepared(weft_gemm_hook *hook, void *user, float x, int64_t batch, int64_t row,
                      int64_t column)
{
    struct weft_gemm_piece piece = {.data = &x, .row = 1, .column = 1, .rows = 1, .columns = 1, .batch = batch,
                                    .first_row = row, .first_column = column};
    hook(user, &piece);
    return x;
}

static float sum_prepared(const struct weft_gemm *g, void *user, const float *x, const float *y, const int64_t at[3],
                          int64_t k, int64_t k_end)
{
    const struct weft_gemm_loops *l = &g->loops;
    float sum = 0;
    for (int64_t p = k; p < k_end; p++) {
        float u = x[p * l->a_col], v = y[p * l->b_row];
        if (g->prologue_a)
            u = prepared(g->prologue_a, user, u, at[0], at[1], p);
        if (g->prologue_b)
            v = prepared(g->prologue_b, user, v, at[0], p, at[2]);
        sum = fmaf(u, v, sum);
    }
    return sum;
}

void weft_gemm_run_plain(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1, hooks = gemm->prologue_a || gemm->prologue_b;
    for (int64_t n = begin[0]; n < end[0]; n++) {
        const int64_t batch = sliced ? 0 : n, k = sliced ? weft_cut(l->k, gemm->slices, n) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, n + 1) : l->k;
        for (int64_t i = begin[1]; i < end[1]; i++) {
            for (int64_t j = begin[2]; j < end[2]; j++) {
                const float *const x = data->a + batch * l->a_batch + i * l->a_row;
                const float *const y = data->b + batch * l->b_batch + j * l->b_col;
                const int64_t at[3] = {batch, i, j};
                const float sum = hooks ? sum_prepared(gemm, data->user, x, y, at, k, k_end)
                                        : sum_lanes(gemm, x, y, k, k_end);
                if (sliced) {
                    weft_gemm_partial(gemm, data->shared, n)[i * l->n + j] = sum;
                    continue;
                }
                weft_gemm_finish(gemm, data, &sum, 0, batch, i, 1, j, 1);
                weft_gemm_hand(gemm, data, batch, i, 1, j, 1);
            }
        }
    }
}

const struct weft_gemm_code weft_gemm_f32_1x1__ref = {.finish = finish, .add = add};
