/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tiles.c: blocks and packing around the tiles.
 *
 *   for each product of the batch, or slice of k:
 *     for each block of nc columns, for each block of kc terms:    B's block is copied to scratch, or read where it is
 *       for each band of mc rows:                                  A's band is copied to scratch, or read where it is
 *         for each panel of columns, for each tile of rows:        C stays in registers over the block of k
 *
 * Lines of a residual are not asked for ahead of a tile: in the way of the first loads of A and B they cost more (of
 * 3136 x 96 x 384 4 %, of 3136 x 64 x 256 10 %) than the tile waits for them in the end.
 *
 * With bands of one tile the last two loops change places in effect; with one band and all columns the panel of B stays
 * in the second-level cache while all rows of A pass it. */
#include "kernels/gemm/gemm.h"

#include <assert.h>

enum {
    FAR_K = 256,
    LINES = 4,
    LINE = 16, /* floats */
    NEAR_RESULTS = 1 << 16, /* that an epilogue gets at a time: long lines in the second-level cache cost it less than
                             * short ones in the first */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* What is at hand inside a block. a: element (row, depth); b: element (depth, column) of its panel. */
struct work {
    const struct weft_gemm *gemm;
    const struct weft_gemm_data *data;
    const struct weft_gemm_loops *l;
    int64_t batch;
    float *c;                       /* of this product, or the slice's partial sums */
    int64_t c_row, c_col;
    const float *a, *b;             /* of this product */
    float *band, *block;            /* scratch, or NULL where the operand is read in place */
    bool finish, in_tile;           /* sums differ from results; a tile makes results of them in registers */
    bool hand;                      /* to the epilogue */
    struct weft_gemm_last last;     /* of the first row and column */
    int64_t tile_end, column_end, k_begin, k_end;
};

/* The first row of a tile. */
static int64_t row_of(const struct work *w, int64_t tile)
{
    return tile * w->l->least + smaller(tile, w->l->spare);
}

/* What the tile at a place is to do with its sums: written to `to`, or NULL. */
static inline const struct weft_gemm_last *last_at(const struct work *w, struct weft_gemm_last *to, int64_t row,
                                                   int64_t column)
{
    const struct weft_gemm_last *const l = &w->last;
    if (!w->in_tile)
        return NULL;
    to->bias = l->bias ? l->bias + row * l->bias_row + column * l->bias_col : NULL;
    to->residual = l->residual ? l->residual + w->batch * w->l->r_batch + row * l->residual_row + column : NULL;
    return to;
}

static void run_tile(const struct work *w, int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row,
                     float *c, int64_t c_row, int64_t rows, int64_t columns, bool from_c,
                     const struct weft_gemm_last *last)
{
    const struct weft_gemm_kernel *const kernel = w->gemm->kernel;
    if (!w->l->b_lines) {
        weft_gemm_tile(kernel, w->l->k, rows, columns)(k, a, a_row, b, b_row, c, c_row, columns, from_c, last);
        return;
    }
    for (int64_t j = 0; j < columns; j += kernel->lanes)
        kernel->code->lines[rows - 1](k, a, a_row, b + j * w->l->b_col, w->l->b_col, c + j, c_row,
                                      smaller(kernel->lanes, columns - j), from_c);
}

/* A tile that C cannot hold as it is: no unit stride, or beta needs the old values. */
static void run_tile_aside(const struct work *w, int64_t depth, int64_t k, const float *a, int64_t a_row,
                           const float *b, int64_t b_row, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    float aside[WEFT_GEMM_ROWS][WEFT_GEMM_COLUMNS];
    float *const c = w->c + row * w->c_row + column * w->c_col;
    const bool from_c = depth > w->k_begin;
    for (int64_t i = 0; from_c && i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            aside[i][j] = c[i * w->c_row + j * w->c_col];
    }
    run_tile(w, k, a, a_row, b, b_row, aside[0], WEFT_GEMM_COLUMNS, rows, columns, from_c, NULL);
    if (w->finish && depth + k == w->k_end) {
        weft_gemm_finish(w->gemm, w->data, aside[0], WEFT_GEMM_COLUMNS, w->batch, row, rows, column, columns);
        return;
    }
    if (w->c_row == 1) {
        weft_gemm_gather(w->gemm->kernel, c, w->c_col, aside[0], 1, WEFT_GEMM_COLUMNS, columns, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            c[i * w->c_row + j * w->c_col] = aside[i][j];
    }
}

/* The beginnings of the rows that the next tile reads: hardware sees them only once they have been missed, and each
 * row is another page. */
static void approach(const float *a, int64_t a_row, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int line = 0; line < LINES; line++)
            __builtin_prefetch(a + i * a_row + LINE * line);
    }
}

/* Tells tile `t` of `tiles` what to prefetch while it makes its sums of k terms: its share of `next`, and its rows of
 * C, unless it begins by reading them (from_c). Of a panel in place, whose rows are pages apart, each tile prefetches
 * another line of all rows. False: nothing. */
static bool plan_prefetch(const struct weft_gemm_loops *l, struct weft_gemm_last *to, int64_t k, int64_t t,
                          int64_t tiles, const struct weft_prefetch *next, bool from_c)
{
    if (l->ahead && l->pages) {
        to->ahead_step = l->b_row, to->ahead_lines = WEFT_AHEAD_TERMS;
        to->ahead = next->data && t * WEFT_AHEAD_LINE < WEFT_GEMM_COLUMNS ? next->data + t * WEFT_AHEAD_LINE : NULL;
    } else {
        to->ahead_step = WEFT_AHEAD_LINE;
        to->ahead = weft_ahead(next->data, next->floats, k / WEFT_AHEAD_TERMS, t, tiles, &to->ahead_lines);
    }
    to->prefetch_c = l->prefetch_c && !from_c;
    return to->ahead || to->prefetch_c;
}

/* One panel of columns by the tiles of a band. a: the band's first row at the block's depth. The epilogue gets the
 * tiles of a taller band some at a time; a low one is not done with its rows yet. */
static void run_panel(const struct work *w, int64_t tile, int64_t tile_end, const float *a, int64_t a_row,
                      const float *b, int64_t b_row, const struct weft_prefetch *next, int64_t column, int64_t depth,
                      int64_t k)
{
    const int64_t whole = w->gemm->kernel->columns, columns = smaller(whole, w->column_end - column);
    const bool aside = w->c_col != 1 || (w->finish && w->l->aside), last = depth + k == w->k_end;
    const bool hand = w->hand && last && tile_end - tile > 1;
    const int64_t first = row_of(w, tile);
    int64_t handed = first;
    struct weft_gemm_last end = w->last;
    for (int64_t t = tile, i = first; t < tile_end; t++) {
        const int64_t rows = w->l->least + (t < w->l->spare);
        const float *at = a + (i - first) * a_row;
        float *c = w->c + i * w->c_row + column;
        if (!w->band && k >= FAR_K && t + 1 < tile_end)
            approach(at + rows * a_row, a_row, w->l->least);
        if (aside) {
            run_tile_aside(w, depth, k, at, a_row, b, b_row, i, rows, column, columns);
        } else {
            const struct weft_gemm_last *ending = last ? last_at(w, &end, i, column) : NULL;
            struct weft_gemm_last only = {.ahead = NULL}, *const to = ending ? &end : &only;
            const bool from_c = depth > w->k_begin;
            if (plan_prefetch(w->l, to, k, t - tile, tile_end - tile, next, from_c))
                ending = to;
            run_tile(w, k, at, a_row, b, b_row, c, w->c_row, rows, columns, from_c, ending);
            if (w->finish && last)
                weft_gemm_finish(w->gemm, w->data, c, w->c_row, w->batch, i, rows, column, columns);
        }
        i += rows;
        if (hand && (t + 1 == tile_end || (i - handed) * columns >= WEFT_HANDED_RESULTS)) {
            weft_gemm_hand(w->gemm, w->data, w->batch, handed, i - handed, column, columns);
            handed = i;
        }
    }
}

/* Rows [row, row_end) of A for a block of k: copied to the band, or made there. */
static void pack_band(const struct work *w, int64_t row, int64_t row_end, int64_t depth, int64_t k)
{
    const struct weft_gemm *g = w->gemm;
    const struct weft_gemm_piece piece = {.data = w->band, .row = weft_gemm_band_row(w->l), .column = 1,
                                          .rows = row_end - row, .columns = k, .batch = w->batch, .first_row = row,
                                          .first_column = depth};
    if (weft_gemm_makes_a(g))
        weft_gemm_call_hook(g, weft_gemm_makes_a(g), w->data->user, piece);
    else
        weft_gemm_gather(g->kernel, piece.data, piece.row, w->a + row * w->l->a_row + depth * w->l->a_col, w->l->a_row,
                         w->l->a_col, piece.rows, piece.columns);
}

/* Copies columns [column, column_end) of B for a block of k to panels of `k` rows; of a packed B of smaller elements,
 * converts them; or makes them. */
static void pack_block(const struct work *w, int64_t column, int64_t column_end, int64_t depth, int64_t k)
{
    const struct weft_gemm *g = w->gemm;
    const int64_t whole = g->kernel->columns;
    weft_gemm_hook *const hook = weft_gemm_makes_b(g);
    for (int64_t j = column; j < column_end; j += whole) {
        float *const panel = w->block + (j - column) * k;
        const int64_t columns = smaller(whole, column_end - j);
        if (w->l->expands) {
            weft_gemm_widen(g, panel, weft_gemm_small_at(g, w->b, j * w->l->k + depth * whole), k * whole);
            continue;
        }
        if (!hook)
            weft_gemm_gather(g->kernel, panel, whole, w->b + depth * w->l->b_row + j * w->l->b_col, w->l->b_row,
                             w->l->b_col, k, columns);
        else
            weft_gemm_call_hook(g, hook, w->data->user,
                                (struct weft_gemm_piece){.data = panel, .row = whole, .column = 1, .rows = k,
                                                         .columns = columns, .batch = w->batch, .first_row = depth,
                                                         .first_column = j});
    }
}

/* Piece `piece` of so many. */
static struct weft_prefetch piece_of(const struct weft_prefetch *all, int64_t piece, int64_t pieces)
{
    const int64_t lines = weft_pieces(all->floats, WEFT_AHEAD_LINE);
    const int64_t begin = weft_cut(lines, pieces, piece), end = weft_cut(lines, pieces, piece + 1);
    return (struct weft_prefetch){.data = all->data ? all->data + begin * WEFT_AHEAD_LINE : NULL,
                                  .floats = (end - begin) * WEFT_AHEAD_LINE};
}

/* What the tiles of panel j of columns [column, column_end) prefetch, up to tile_end, for a block of k: the next panel
 * of a large B, be it the first one again for the next band or block of k. Behind the last one, and instead of panels
 * of a small B: what the caller says the worker reads in its next step; or what is behind the part's columns, since
 * workers have parts side by side. */
static struct weft_prefetch panel_prefetch(const struct work *w, int64_t tile_end, int64_t j, int64_t column,
                                           int64_t column_end, int64_t depth, int64_t k)
{
    const struct weft_gemm_loops *const l = w->l;
    const struct weft_prefetch *const next_step = &w->data->prefetch;
    const int64_t whole = w->gemm->kernel->columns, terms = depth * whole;
    const bool last = tile_end == w->tile_end && depth + k == w->k_end;
    if (!l->ahead)
        return last ? piece_of(next_step, (j - column) / whole, weft_pieces(column_end - column, whole))
                    : (struct weft_prefetch){.data = NULL};
    if (j + whole < column_end)
        return (struct weft_prefetch){w->b + (l->pages ? j + whole + depth * l->b_row : (j + whole) * l->k + terms),
                                      k * whole};
    if (l->pages)
        return (struct weft_prefetch){.data = NULL};
    if (tile_end < w->tile_end)
        return (struct weft_prefetch){w->b + column * l->k + terms, k * whole};
    if (!last)
        return (struct weft_prefetch){w->b + column * l->k + terms + k * whole, k * whole};
    const float *const behind = column_end < l->n ? w->b + column_end * l->k + w->k_begin * whole : NULL;
    return next_step->data ? *next_step : (struct weft_prefetch){behind, k * whole};
}

/* Columns [column, column_end) by all rows of the box, for one block of k. */
static void run_block(const struct work *w, int64_t tile, int64_t column, int64_t column_end, int64_t depth, int64_t k)
{
    const struct weft_gemm_loops *l = w->l;
    const int64_t whole = w->gemm->kernel->columns, band = smaller(l->band, w->tile_end - tile);
    /* Of bands of one tile many are handed over together, or a band in pieces. */
    const bool wide = l->rows * (column_end - column) >= WEFT_HANDED_RESULTS;
    int64_t waiting = row_of(w, tile); /* the first row that is finished and not handed over */
    if (w->block)
        pack_block(w, column, column_end, depth, k);
    for (int64_t t = tile; t < w->tile_end; t += band) {
        const int64_t t_end = smaller(t + band, w->tile_end), row = row_of(w, t);
        const float *a = w->a + row * l->a_row + depth;
        if (w->band) {
            pack_band(w, row, row_of(w, t_end), depth, k);
            a = w->band;
        }
        const bool hand = w->hand && depth + k == w->k_end && t_end - t == 1;
        waiting = band > 1 ? row : waiting;
        for (int64_t j = column, handed = j; j < column_end; j += whole) {
            const float *const b = w->block      ? w->block + (j - column) * k
                                   : l->b_panels ? w->b + j * l->k + depth * whole
                                                 : w->b + depth * l->b_row + j * l->b_col;
            const struct weft_prefetch next = panel_prefetch(w, t_end, j, column, column_end, depth, k);
            run_panel(w, t, t_end, a, w->band ? weft_gemm_band_row(l) : l->a_row, b,
                      w->block || l->b_panels ? whole : l->b_row, &next, j, depth, k);
            const int64_t j_end = smaller(j + whole, column_end), rows = row_of(w, t_end) - row;
            if (hand && wide && (j_end == column_end || (j_end - handed) * rows >= WEFT_HANDED_RESULTS)) {
                weft_gemm_hand(w->gemm, w->data, w->batch, row, rows, handed, j_end - handed);
                handed = j_end;
            }
        }
        const int64_t row_end = row_of(w, t_end), results = (row_end - waiting) * (column_end - column);
        if (hand && !wide && (t_end == w->tile_end || results >= WEFT_HANDED_RESULTS)) {
            weft_gemm_hand(w->gemm, w->data, w->batch, waiting, row_end - waiting, column, column_end - column);
            waiting = row_end;
        }
    }
}

/* The tiles from `tile` and the columns from `column` on. Once where there are no terms: the sums are 0. */
static void run_product(const struct work *w, int64_t tile, int64_t column)
{
    const struct weft_gemm_loops *l = w->l;
    for (int64_t j = column; j < w->column_end; j += l->nc) {
        const int64_t j_end = smaller(j + l->nc, w->column_end);
        int64_t depth = w->k_begin;
        do {
            const int64_t length = smaller(l->kc, w->k_end - depth);
            run_block(w, tile, j, j_end, depth, length);
            depth += length;
        } while (depth < w->k_end);
    }
}

static struct weft_gemm_last last_of(const struct weft_gemm *gemm, const struct weft_gemm_data *data)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    return (struct weft_gemm_last){.bias = data->bias, .bias_row = l->bias_row, .bias_col = l->bias_col,
                                   .residual = gemm->residual ? data->residual : NULL, .residual_row = l->r_row,
                                   .clamp = gemm->clamp};
}
bool weft_gemm_ends_in_tile(const struct weft_gemm *gemm)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    return (l->bias_col == 0 || l->bias_col == 1) && (!gemm->residual || l->r_col == 1) && !gemm->scaled &&
           !l->b_lines && l->c_col == 1;
}

/* Tiles and nothing else, since small products are over in the time that it takes to ask what else there may be. */
void weft_gemm_run_plainly(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                           const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const int64_t whole = gemm->kernel->columns, column = begin[2] * whole, column_end = smaller(l->n, end[2] * whole);
    const int64_t b_row = l->b_panels ? whole : l->b_row, b_step = l->b_panels ? l->k : 1;
    const int64_t first = begin[1] * l->least + smaller(begin[1], l->spare);
    struct weft_gemm_last end_of_tile = last_of(gemm, data);
    const bool prefetches = l->ahead || l->prefetch_c || data->prefetch.data;
    const struct weft_gemm_last *const last = weft_gemm_unfinished(gemm, data) || prefetches ? &end_of_tile : NULL;
    for (int64_t n = begin[0]; n < end[0]; n++) {
        const float *const a = data->a + n * l->a_batch, *const b = data->b + n * l->b_batch;
        float *const c = data->c + n * l->c_batch;
        const struct work w = {.gemm = gemm, .data = data, .l = l, .b = b, .tile_end = end[1], .k_end = l->k};
        for (int64_t t = begin[1], t_end, row = first, i = first; t < end[1]; t = t_end, row = i) {
            t_end = smaller(t + l->band, end[1]);
            for (int64_t j = column, handed = column; j < column_end; j += whole) {
                const int64_t columns = smaller(whole, column_end - j);
                weft_gemm_tile_fn *const *const tile = l->tile[columns < whole];
                const struct weft_prefetch none = {.data = NULL};
                const struct weft_prefetch next =
                    prefetches ? panel_prefetch(&w, t_end, j, column, column_end, 0, l->k) : none;
                i = row;
                for (int64_t u = t; u < t_end; u++) {
                    if (prefetches)
                        plan_prefetch(l, &end_of_tile, l->k, u - t, t_end - t, &next, false);
                    const bool spare = u < l->spare;
                    if (data->bias)
                        end_of_tile.bias = data->bias + i * l->bias_row + j * l->bias_col;
                    if (gemm->residual)
                        end_of_tile.residual = data->residual + n * l->r_batch + i * l->r_row + j;
                    tile[spare](l->k, a + i * l->a_row, l->a_row, b + j * b_step, b_row, c + i * l->c_row + j,
                                l->c_row, columns, false, last);
                    i += l->least + spare;
                }
                const int64_t waiting = j + columns - handed;
                if (gemm->epilogue && (j + columns == column_end || waiting * (i - row) >= NEAR_RESULTS)) {
                    weft_gemm_hand(gemm, data, n, row, i - row, handed, waiting);
                    handed = j + columns;
                }
            }
        }
    }
}

void weft_gemm_run_tiles(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3])
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const bool sliced = gemm->slices > 1;
    assert(gemm->kernel->columns <= WEFT_GEMM_COLUMNS);
    struct work w = {
        .gemm = gemm, .data = data, .l = l, .c_row = sliced ? l->n : l->c_row, .c_col = sliced ? 1 : l->c_col,
        .finish = !sliced && weft_gemm_unfinished(gemm, data), .hand = !sliced && gemm->epilogue,
        .tile_end = end[1], .column_end = smaller(l->n, end[2] * gemm->kernel->columns),
        .last = last_of(gemm, data),
    };
    if (w.finish && weft_gemm_ends_in_tile(gemm))
        w.in_tile = true, w.finish = false;
    if (l->pack_a)
        w.band = data->scratch;
    if (l->pack_b)
        w.block = (float *)data->scratch + weft_gemm_band_size(l);
    for (int64_t n = begin[0]; n < end[0]; n++) {
        w.batch = sliced ? 0 : n;
        w.c = sliced ? weft_gemm_partial(gemm, data->shared, n) : data->c + n * l->c_batch;
        w.a = data->a + w.batch * l->a_batch, w.b = data->b + w.batch * l->b_batch;
        w.k_end = sliced ? weft_cut(l->k, gemm->slices, n + 1) : l->k;
        w.k_begin = sliced ? weft_cut(l->k, gemm->slices, n) : 0;
        run_product(&w, begin[1], begin[2] * gemm->kernel->columns);
    }
}
