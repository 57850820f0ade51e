/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_scratch.c: the bands of A and the panels of B that are not read in place. A panel that is copied, and not made
 * or converted, the tiles of the one before have copied (gemm_copy.h). They could copy the next band of A, too: tried,
 * and no faster, since each of its columns is in another page. */
#include "kernels/gemm/gemm_ahead.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void weft_gemm_fill_band(const struct weft_gemm_work *w, const struct weft_gemm_block *of)
{
    const struct weft_gemm *g = w->gemm;
    const int64_t row = weft_gemm_row_of(w, of->tile), depth = of->depth;
    const struct weft_gemm_piece piece = {.data = w->band, .row = weft_gemm_band_row(w->l), .column = 1,
                                          .rows = weft_gemm_row_of(w, of->tile_end) - row, .columns = of->k,
                                          .batch = w->batch, .first_row = row, .first_column = depth};
    if (weft_gemm_makes_a(g))
        weft_gemm_call_hook(g, weft_gemm_makes_a(g), w->data->user, piece);
    else
        weft_gemm_gather(g->kernel, piece.data, piece.row, w->a + row * w->l->a_row + depth * w->l->a_col, w->l->a_row,
                         w->l->a_col, piece.rows, piece.columns);
}

/* Copies the panel of B at a column for a block of k; of a packed B of smaller elements, converts it; or makes it. */
static void pack_panel(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t column, float *panel)
{
    const struct weft_gemm *g = w->gemm;
    const int64_t whole = g->kernel->columns, columns = smaller(whole, of->column_end - column);
    const int64_t depth = of->depth, k = of->k;
    weft_gemm_hook *const hook = weft_gemm_makes_b(g);
    if (w->l->expands)
        weft_gemm_widen(g, panel, weft_gemm_small_at(g, w->b, column * w->l->k + depth * whole), k * whole);
    else if (!hook)
        weft_gemm_gather(g->kernel, panel, whole, w->b + depth * w->l->b_row + column * w->l->b_col, w->l->b_row,
                         w->l->b_col, k, columns);
    else
        weft_gemm_call_hook(g, hook, w->data->user,
                            (struct weft_gemm_piece){.data = panel, .row = whole, .column = 1, .rows = k,
                                                     .columns = columns, .batch = w->batch, .first_row = depth,
                                                     .first_column = column});
}

/* The panel behind the one at a column, by the tiles of this band, or of all where it is another block's. Nothing if
 * there is none, or none that can be copied yet. */
static void begin_panel(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t column)
{
    const struct weft_gemm_loops *const l = w->l;
    const int64_t whole = w->gemm->kernel->columns;
    int64_t next = column + whole, depth = of->depth, tiles = of->tile_end - of->tile;
    float *to = w->copies->panels + (next - of->column) * of->k;
    if (next >= of->column_end) {
        if (!l->two_blocks || !weft_gemm_block_behind(w, of, &next, &depth))
            return;
        to = w->block + (w->copies->panels == w->block ? weft_gemm_block_step(l) : 0), tiles = w->tile_end - of->tile;
    }
    w->copies->next = (struct weft_gemm_copy){.panel = to, .source = w->b + depth * l->b_row + next * l->b_col,
                                               .to_row = whole, .from_row = l->b_row, .from_column = l->b_col,
                                               .rows = smaller(l->kc, w->k_end - depth),
                                               .columns = smaller(whole, w->column_end - next)};
    weft_gemm_copy_begin(&w->copies->next, tiles * weft_pieces(of->k, WEFT_AHEAD_TERMS));
}

void weft_gemm_fill_panel(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t column)
{
    struct weft_gemm_copies *const c = w->copies;
    const bool copied = c->next.panel != NULL;
    if (column == of->column)
        c->panels = w->l->two_blocks && copied ? c->next.panel : w->block;
    if (copied)
        weft_gemm_copy_end(w->gemm->kernel, &c->next);
    else
        pack_panel(w, of, column, c->panels + (column - of->column) * of->k);
    c->next = (struct weft_gemm_copy){.panel = NULL};
    if (w->l->spreads)
        begin_panel(w, of, column);
}
