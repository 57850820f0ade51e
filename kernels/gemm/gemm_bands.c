/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_bands.c: which rows of C a part has, for who goes over rows once they are whole. In the caller's terms: of a
 * product that is computed transposed, the rows of C are columns of the loops. */
#include "kernels/gemm/gemm_bands.h"

static int row_axis(const struct weft_gemm *g) { return g->swapped ? 2 : 1; }

int32_t weft_gemm_row_parts(const struct weft_gemm *g)
{
    return g->slices > 1 ? 1 : g->loops.cut[3 - row_axis(g)]; /* who comes last adds the slices up, and has all rows */
}

int32_t weft_gemm_bands(const struct weft_gemm *g)
{
    return g->slices > 1 ? 1 : g->loops.cut[0] * g->loops.cut[row_axis(g)];
}

/* The first row of unit `unit` of the rows' axis. */
static int64_t row_at(const struct weft_gemm *g, int64_t unit)
{
    const struct weft_gemm_loops *const l = &g->loops;
    const int64_t each = g->swapped ? g->kernel->columns : l->rows;
    const int64_t row = g->swapped || g->lanes > 1 ? unit * each
                                                   : unit * l->least + (unit < l->spare ? unit : l->spare);
    return row < g->m ? row : g->m;
}

int32_t weft_gemm_band_of(const struct weft_gemm *g, int part)
{
    const int32_t *const cut = g->loops.cut;
    return g->slices > 1 ? 0 : g->swapped ? part / (cut[1] * cut[2]) * cut[2] + part % cut[2] : part / cut[2];
}

struct weft_gemm_band weft_gemm_band(const struct weft_gemm *g, int32_t band)
{
    const struct weft_gemm_loops *const l = &g->loops;
    const int axis = row_axis(g);
    const int32_t cut = l->cut[axis];
    if (g->slices > 1)
        return (struct weft_gemm_band){.batch_end = g->batch, .row_end = g->m};
    return (struct weft_gemm_band){.batch = weft_cut_evenly(l->units[0], l->cut[0], band / cut),
                                   .batch_end = weft_cut_evenly(l->units[0], l->cut[0], band / cut + 1),
                                   .row = row_at(g, weft_cut_evenly(l->units[axis], cut, band % cut)),
                                   .row_end = row_at(g, weft_cut_evenly(l->units[axis], cut, band % cut + 1))};
}

bool weft_gemm_hands_bands(const struct weft_gemm *g)
{
    const struct weft_gemm_loops *const l = &g->loops;
    const int64_t panels = weft_pieces(l->units[2], l->cut[2] > 0 ? l->cut[2] : 1), most = panels * g->kernel->columns;
    return !g->epilogue || l->band >= l->units[1] ||
           l->band * l->rows * (l->n < most ? l->n : most) >= WEFT_HANDED_RESULTS;
}

/* --- sharing out -------------------------------------------------------------------------------------------------- */

/* Parts along the batch and the rows alone, if the largest of them is hardly larger than the largest of any grid. Each
 * of several turns has so many tiles that B pays for being read once more. */
static bool cut_rows(const struct weft_gemm *g, int workers, int32_t ret_cut[3])
{
    enum { LARGER = 6, TURN_TILES = 8 }; /* per cent */
    const struct weft_gemm_loops *const l = &g->loops;
    const int rows = row_axis(g), columns = 3 - rows;
    const double flops = 2.0 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
    const int32_t parts = weft_gemm_parts(flops, l->units[0] * l->units[1] * l->units[2], workers);
    struct weft_gemm_space space = {{l->units[0], l->units[1], l->units[2]}, .weight = {0, 1, 1}, .last = 1};
    int64_t least = 1, most = 1;
    int32_t cut[3];
    if (weft_gemm_row_parts(g) == 1)
        return false; /* they have them already */
    weft_gemm_grid(&space, parts, cut);
    space.extent[columns] = 1;
    weft_gemm_grid(&space, parts, ret_cut);
    for (int d = 0; d < 3; d++) {
        least *= weft_pieces(l->units[d], cut[d]);
        most *= weft_pieces(l->units[d], ret_cut[d]);
    }
    if (most * 100 > least * (100 + LARGER))
        return false;
    const int64_t each = l->units[rows] / ret_cut[rows], turns = each / TURN_TILES;
    const int64_t wanted = weft_gemm_turns(flops, ret_cut[0] * ret_cut[1] * ret_cut[2], each);
    if (g->takes_turns && turns > 1 && (!l->pack_a || weft_gemm_makes_a(g)) && !l->pack_b)
        ret_cut[rows] *= (int32_t)(turns < wanted ? turns : wanted);
    return true;
}

void weft_gemm_prepare_rows(struct weft_gemm *g, int workers)
{
    int32_t cut[3];
    weft_gemm_prepare(g, workers);
    if (!cut_rows(g, workers, cut))
        return;
    for (int d = 0; d < 3; d++)
        g->grid[d == 0 || !g->swapped ? d : 3 - d] = cut[d];
    weft_gemm_prepare(g, workers);
}
