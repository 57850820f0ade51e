/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_made.c: operands that are made in scratch memory (weft_gemm.prologue_a, prologue_b).
 *
 *   many rows of A   a band of rows for a block of k is made where it would be copied to otherwise, once for all
 *                    columns of a part (gemm_tiles.c)
 *   few rows of A    all of a part's are made before its loops begin, which read them as if they were in place: so
 *                    panels of B may still be read one after the other to the end, in elements smaller than f32, too
 *   B                a block of k for a panel of columns is made where it would be copied to, once for all rows of a
 *                    part
 *
 * A and B are what the loops call so: exchanged where the product is computed as its transpose. */
#include "kernels/gemm/gemm.h"

void weft_gemm_run_made(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                        const int64_t end[3], weft_gemm_loops_fn *run)
{
    const struct weft_gemm_loops *const l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    const int64_t row = begin[1] * l->least + (begin[1] < l->spare ? begin[1] : l->spare);
    const int64_t row_end = end[1] * l->least + (end[1] < l->spare ? end[1] : l->spare);
    for (int64_t n = begin[0]; n < end[0]; n++) {
        const int64_t k = sliced ? weft_cut(l->k, gemm->slices, n) : 0;
        const int64_t k_end = sliced ? weft_cut(l->k, gemm->slices, n + 1) : l->k;
        struct weft_gemm_data made = *data;
        float *const a = data->scratch;
        weft_gemm_call_hook(gemm, weft_gemm_makes_a(gemm), data->user,
                            (struct weft_gemm_piece){.data = a + row * l->a_row + k, .row = l->a_row, .column = 1,
                                                     .rows = row_end - row, .columns = k_end - k,
                                                     .batch = sliced ? 0 : n, .first_row = row, .first_column = k});
        made.a = a;
        run(gemm, &made, (int64_t[]){n, begin[1], begin[2]}, (int64_t[]){n + 1, end[1], end[2]});
    }
}

void weft_gemm_made_strides(const struct weft_gemm *gemm, int64_t *ret_row, int64_t *ret_column)
{
    const bool is_a = weft_gemm_makes_a(gemm), plain = !gemm->kernel->code->transpose;
    const int64_t each = plain ? gemm->k : is_a ? weft_gemm_band_row(&gemm->loops) : gemm->kernel->columns;
    const bool turned = gemm->swapped || (plain && !is_a); /* columns side by side are rows for the caller */
    *ret_row = turned ? 1 : each;
    *ret_column = turned ? each : 1;
}

double weft_gemm_made(const struct weft_gemm *gemm)
{
    const struct weft_gemm_loops *const l = &gemm->loops;
    if (!gemm->kernel->code->transpose)
        return gemm->prologue_b ? (double)l->m : 1;
    if (!weft_gemm_makes_a(gemm))
        return l->cut[1];
    const int64_t columns = weft_pieces(l->units[2], l->cut[2] > 0 ? l->cut[2] : 1) * gemm->kernel->columns;
    const int64_t most = columns < l->n ? columns : l->n;
    return (double)l->cut[2] * (double)(l->made || l->nc <= 0 ? 1 : weft_pieces(most, l->nc));
}

/* A row of a piece is a line, unless it goes on as the next one. */
double weft_gemm_made_lines(const struct weft_gemm *gemm)
{
    const struct weft_gemm_loops *const l = &gemm->loops;
    const double made = weft_gemm_made(gemm) * (double)gemm->batch;
    if (!gemm->kernel->code->transpose)
        return made * (double)(gemm->prologue_b ? l->n * l->k : l->m);
    if (weft_gemm_makes_b(gemm))
        return made * (double)l->k * (double)weft_pieces(l->n, gemm->kernel->columns);
    return made * (double)l->m * (double)(l->made ? 1 : weft_pieces(l->k, l->kc > 0 ? l->kc : 1));
}

double weft_gemm_made_pieces(const struct weft_gemm *gemm)
{
    const struct weft_gemm_loops *const l = &gemm->loops;
    const double made = weft_gemm_made(gemm) * (double)gemm->batch;
    if (!gemm->kernel->code->transpose)
        return made * (double)(gemm->prologue_b ? l->n : l->m);
    if (l->made)
        return made;
    const int64_t each = weft_gemm_makes_a(gemm) ? l->band * l->rows : gemm->kernel->columns;
    const int64_t all = weft_gemm_makes_a(gemm) ? l->m : l->n;
    return made * (double)weft_pieces(l->k, l->kc > 0 ? l->kc : 1) * (double)weft_pieces(all, each > 0 ? each : 1);
}
