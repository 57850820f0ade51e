/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_ahead.c: what the tiles of a product prefetch for those behind them, into the second-level cache.
 *
 *   B packed ahead, larger than half of L2    the next panel
 *   B in place, its rows pages apart          the next panel, a line of each row by each tile
 *   B copied (fetches_source)                 the same of the next copy's source: a panel of B, unless tiles copy it
 *                                             (gemm_copy.h), or a band of A
 *   else, and behind the last panel           what the worker reads first in its next step
 *
 * Copies from memory would take 8 % of the time of products of 512 x 512 x 512 (Zen 4). An A that is copied beside a B
 * that is not is not prefetched. */
#include "kernels/gemm/gemm_ahead.h"

static const struct weft_gemm_wanted nothing = {.form = WEFT_WANT_NOTHING};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static struct weft_gemm_wanted piece(const float *data, int64_t floats)
{
    return (struct weft_gemm_wanted){.form = data ? WEFT_WANT_PIECE : WEFT_WANT_NOTHING, .data = data,
                                     .floats = floats};
}

/* `rows` lie `step` floats apart, and of each so many floats are wanted: a track is one line of every row, which the
 * turns of a tile share out. */
static struct weft_gemm_wanted tracks(const float *data, int64_t floats, int64_t rows, int64_t step, int64_t k)
{
    const int64_t lines = weft_pieces(rows, weft_pieces(k, WEFT_AHEAD_TERMS));
    if (lines > WEFT_AHEAD_MOST)
        return nothing;
    return (struct weft_gemm_wanted){.form = WEFT_WANT_TRACKS, .data = data, .step = step, .lines = lines,
                                     .tracks = weft_pieces(floats, WEFT_AHEAD_LINE)};
}

bool weft_gemm_ask(const struct weft_gemm_loops *l, const struct weft_gemm_wanted *wanted, int64_t k, int64_t t,
                   int64_t tiles, bool from_c, struct weft_gemm_last *ret)
{
    ret->ahead = NULL;
    if (wanted->form == WEFT_WANT_TRACKS) {
        ret->ahead_step = wanted->step, ret->ahead_lines = wanted->lines;
        ret->ahead = t < wanted->tracks ? wanted->data + t * WEFT_AHEAD_LINE : NULL;
    } else if (wanted->form == WEFT_WANT_PIECE) {
        ret->ahead_step = WEFT_AHEAD_LINE;
        ret->ahead = weft_ahead(wanted->data, wanted->floats, k / WEFT_AHEAD_TERMS, t, tiles, &ret->ahead_lines);
    }
    ret->prefetch_c = l->prefetch_c && !from_c;
    return ret->ahead || ret->prefetch_c;
}

/* k terms from `depth` on of the panel of B at a column, where it lies: as rows, or as columns from end to end. */
static struct weft_gemm_wanted panel(const struct weft_gemm_work *w, int64_t column, int64_t depth, int64_t k)
{
    const struct weft_gemm_loops *const l = w->l;
    const float *const data = w->b + depth * l->b_row + column * l->b_col;
    const int64_t columns = smaller(w->gemm->kernel->columns, l->n - column);
    return l->b_col == 1 ? tracks(data, columns, k, l->b_row, k) : tracks(data, k, columns, l->b_col, k);
}

/* The band of A behind this one, if it is copied from columns that lie from end to end. */
static struct weft_gemm_wanted next_band(const struct weft_gemm_work *w, const struct weft_gemm_block *of)
{
    const struct weft_gemm_loops *const l = w->l;
    if (!w->band || l->a_row != 1 || weft_gemm_makes_a(w->gemm))
        return nothing;
    const int64_t row = weft_gemm_row_of(w, of->tile_end);
    const int64_t end = weft_gemm_row_of(w, smaller(of->tile_end + l->band, w->tile_end));
    return tracks(w->a + row + of->depth * l->a_col, end - row, of->k, l->a_col, of->k);
}

/* Is this the last band of the last block of k: does nothing of this product come behind these columns? */
static bool is_last(const struct weft_gemm_work *w, const struct weft_gemm_block *of)
{
    return of->tile_end == w->tile_end && of->depth + of->k == w->k_end;
}

/* What the worker reads first in its next step, */
static struct weft_gemm_wanted next_step(const struct weft_gemm_work *w)
{
    return piece(w->data->prefetch.data, w->data->prefetch.floats);
}

/* and panel j's share of that, where each panel of a block prefetches one. */
static struct weft_gemm_wanted next_step_share(const struct weft_gemm_work *w, const struct weft_gemm_block *of,
                                               int64_t j)
{
    const struct weft_prefetch *const all = &w->data->prefetch;
    const int64_t whole = w->gemm->kernel->columns, lines = weft_pieces(all->floats, WEFT_AHEAD_LINE);
    const int64_t panels = weft_pieces(of->column_end - of->column, whole), number = (j - of->column) / whole;
    const int64_t begin = weft_cut(lines, panels, number), end = weft_cut(lines, panels, number + 1);
    return all->data ? piece(all->data + begin * WEFT_AHEAD_LINE, (end - begin) * WEFT_AHEAD_LINE) : nothing;
}

/* B is copied, and too large for half of L2: while panel j is multiplied, tiles prefetch the source of the next copy,
 * which is the next panel of this block (by the first band, which copies them), the next band of A, or the first panel
 * of the next block. Of a panel that tiles copy, the copy prefetches the source. */
static struct weft_gemm_wanted next_copy(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t j)
{
    const struct weft_gemm_loops *const l = w->l;
    const int64_t next = j + w->gemm->kernel->columns;
    int64_t column, depth;
    const bool copies = of->tile == of->first_tile, more = weft_gemm_block_behind(w, of, &column, &depth);
    const bool ends = of->tile_end == w->tile_end && !more;
    if (!l->spreads && next < of->column_end && copies)
        return panel(w, next, of->depth, of->k);
    if (ends) /* a panel that had another one to prefetch left this to the last */
        return copies && !l->spreads ? next_step(w) : next_step_share(w, of, j);
    if (next < of->column_end)
        return nothing;
    if (of->tile_end < w->tile_end)
        return next_band(w, of);
    return !l->two_blocks ? panel(w, column, depth, smaller(l->kc, w->k_end - depth)) : nothing;
}

/* The next panel of a B that is packed, be it the first one again for the next band or block of k; behind the last one
 * what is behind the part's columns, since workers have parts side by side. */
static struct weft_gemm_wanted next_packed(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t j)
{
    const struct weft_gemm_loops *const l = w->l;
    const int64_t whole = w->gemm->kernel->columns, terms = of->depth * whole, floats = of->k * whole;
    if (j + whole < of->column_end)
        return piece(w->b + (j + whole) * l->k + terms, floats);
    if (of->tile_end < w->tile_end)
        return piece(w->b + of->column * l->k + terms, floats);
    if (!is_last(w, of))
        return piece(w->b + of->column * l->k + terms + floats, floats);
    if (w->data->prefetch.data)
        return next_step(w);
    return of->column_end < l->n ? piece(w->b + of->column_end * l->k + w->k_begin * whole, floats) : nothing;
}

struct weft_gemm_wanted weft_gemm_want(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t j)
{
    const struct weft_gemm_loops *const l = w->l;
    const int64_t next = j + w->gemm->kernel->columns;
    if (l->fetches_source)
        return next_copy(w, of, j);
    if (l->ahead && l->pages)
        return next < of->column_end ? panel(w, next, of->depth, of->k) : nothing;
    if (l->ahead)
        return next_packed(w, of, j);
    return is_last(w, of) ? next_step_share(w, of, j) : nothing;
}
