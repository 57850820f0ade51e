/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tiles.c: blocks and packing around the tiles.
 *
 *   for each product of the batch, or slice of k:
 *     for each block of nc columns, for each block of kc terms:
 *       for each band of mc rows:                                  A's band is copied to scratch, or read where it is
 *         for each panel of columns:                               B's panel is copied to scratch by the first band, or
 *           for each tile of rows:                                 read where it is; C stays in registers over kc terms
 *
 * Tiles prefetch what is read, or copied, behind their panel (gemm_ahead.c); wide ones copy the panel behind theirs
 * (gemm_copy.h, gemm_scratch.c).
 *
 * Lines of a residual are not asked for ahead of a tile: in the way of the first loads of A and B they cost more (of
 * 3136 x 96 x 384 4 %, of 3136 x 64 x 256 10 %) than the tile waits for them in the end.
 *
 * With bands of one tile the last two loops change places in effect; with one band and all columns the panel of B stays
 * in the second-level cache while all rows of A pass it. */
#include "kernels/gemm/gemm_ahead.h"

#include <assert.h>

enum {
    FAR_K = 256,
    LINES = 4,
    LINE = 16, /* floats */
    NEAR_RESULTS = 1 << 16, /* that an epilogue gets at a time: long lines in the second-level cache cost it less than
                             * short ones in the first */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* What the tile at a place is to do with its sums: written to `to`, or NULL. */
static inline const struct weft_gemm_last *last_at(const struct weft_gemm_work *w, struct weft_gemm_last *to,
                                                   int64_t row, int64_t column)
{
    const struct weft_gemm_last *const l = &w->last;
    if (!w->in_tile)
        return NULL;
    to->bias = l->bias ? l->bias + row * l->bias_row + column * l->bias_col : NULL;
    to->residual = l->residual ? l->residual + w->batch * w->l->r_batch + row * l->residual_row + column : NULL;
    return to;
}

static void run_tile(const struct weft_gemm_work *w, int64_t k, const float *a, int64_t a_row, const float *b,
                     int64_t b_row, float *c, int64_t c_row, int64_t rows, int64_t columns, bool from_c,
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
static void run_tile_aside(const struct weft_gemm_work *w, int64_t depth, int64_t k, const float *a, int64_t a_row,
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

/* One panel of columns by the tiles of a band. a: the band's first row at the block's depth. The epilogue gets the
 * tiles of a taller band some at a time; a low one is not done with its rows yet. */
static void run_panel(const struct weft_gemm_work *w, const struct weft_gemm_block *of, int64_t column, const float *a,
                      int64_t a_row, const float *b, int64_t b_row, const struct weft_gemm_wanted *wanted)
{
    const int64_t whole = w->gemm->kernel->columns, columns = smaller(whole, w->column_end - column);
    const int64_t tile = of->tile, tile_end = of->tile_end, depth = of->depth, k = of->k;
    const bool aside = w->c_col != 1 || (w->finish && w->l->aside), last = depth + k == w->k_end;
    const bool hand = w->hand && last && tile_end - tile > 1;
    const int64_t first = weft_gemm_row_of(w, tile);
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
            if (weft_gemm_ask(w->l, wanted, k, t - tile, tile_end - tile, from_c, to))
                ending = to;
            if (w->copies && w->copies->next.left > 0)
                to->copy = &w->copies->next, ending = to;
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

/* The columns of a block by all rows of the box; its first band from `tile` on. */
static void run_block(const struct weft_gemm_work *w, struct weft_gemm_block of)
{
    const struct weft_gemm_loops *l = w->l;
    const int64_t whole = w->gemm->kernel->columns, band = smaller(l->band, w->tile_end - of.tile);
    /* Of bands of one tile many are handed over together, or a band in pieces. */
    const bool wide = l->rows * (of.column_end - of.column) >= WEFT_HANDED_RESULTS;
    int64_t waiting = weft_gemm_row_of(w, of.tile); /* the first row that is finished and not handed over */
    for (; of.tile < w->tile_end; of.tile += band) {
        of.tile_end = smaller(of.tile + band, w->tile_end);
        const int64_t row = weft_gemm_row_of(w, of.tile), row_end = weft_gemm_row_of(w, of.tile_end);
        const float *a = w->a + row * l->a_row + of.depth;
        if (w->band) {
            weft_gemm_fill_band(w, &of);
            a = w->band;
        }
        const bool hand = w->hand && of.depth + of.k == w->k_end && of.tile_end - of.tile == 1;
        waiting = band > 1 ? row : waiting;
        for (int64_t j = of.column, handed = j; j < of.column_end; j += whole) {
            if (w->block && of.tile == of.first_tile)
                weft_gemm_fill_panel(w, &of, j);
            const float *const b = w->block      ? w->copies->panels + (j - of.column) * of.k
                                   : l->b_panels ? w->b + j * l->k + of.depth * whole
                                                 : w->b + of.depth * l->b_row + j * l->b_col;
            const struct weft_gemm_wanted wanted = weft_gemm_want(w, &of, j);
            run_panel(w, &of, j, a, w->band ? weft_gemm_band_row(l) : l->a_row, b,
                      w->block || l->b_panels ? whole : l->b_row, &wanted);
            const int64_t j_end = smaller(j + whole, of.column_end);
            if (hand && wide &&
                (j_end == of.column_end || (j_end - handed) * (row_end - row) >= WEFT_HANDED_RESULTS)) {
                weft_gemm_hand(w->gemm, w->data, w->batch, row, row_end - row, handed, j_end - handed);
                handed = j_end;
            }
        }
        const int64_t columns = of.column_end - of.column, results = (row_end - waiting) * columns;
        if (hand && !wide && (of.tile_end == w->tile_end || results >= WEFT_HANDED_RESULTS)) {
            weft_gemm_hand(w->gemm, w->data, w->batch, waiting, row_end - waiting, of.column, columns);
            waiting = row_end;
        }
    }
}

/* The tiles from `tile` and the columns from `column` on. Once where there are no terms: the sums are 0. */
static void run_product(const struct weft_gemm_work *w, int64_t tile, int64_t column)
{
    const struct weft_gemm_loops *l = w->l;
    if (w->copies)
        *w->copies = (struct weft_gemm_copies){.panels = NULL};
    for (int64_t j = column; j < w->column_end; j += l->nc) {
        const int64_t j_end = smaller(j + l->nc, w->column_end);
        int64_t depth = w->k_begin;
        do {
            const int64_t length = smaller(l->kc, w->k_end - depth);
            run_block(w, (struct weft_gemm_block){.column = j, .column_end = j_end, .depth = depth, .k = length,
                                                  .first_tile = tile, .tile = tile});
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
        const struct weft_gemm_work w = {.gemm = gemm, .data = data, .l = l, .b = b, .tile_end = end[1], .k_end = l->k};
        for (int64_t t = begin[1], t_end, row = first, i = first; t < end[1]; t = t_end, row = i) {
            t_end = smaller(t + l->band, end[1]);
            for (int64_t j = column, handed = column; j < column_end; j += whole) {
                const int64_t columns = smaller(whole, column_end - j);
                weft_gemm_tile_fn *const *const tile = l->tile[columns < whole];
                struct weft_gemm_wanted wanted = {.form = WEFT_WANT_NOTHING};
                if (prefetches)
                    wanted = weft_gemm_want(&w, &(struct weft_gemm_block){.column = column, .column_end = column_end,
                                                                          .k = l->k, .tile = t, .tile_end = t_end}, j);
                i = row;
                for (int64_t u = t; u < t_end; u++) {
                    if (prefetches)
                        weft_gemm_ask(l, &wanted, l->k, u - t, t_end - t, false, &end_of_tile);
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
    struct weft_gemm_copies copies;
    struct weft_gemm_work w = {
        .gemm = gemm, .data = data, .l = l, .c_row = sliced ? l->n : l->c_row, .c_col = sliced ? 1 : l->c_col,
        .finish = !sliced && weft_gemm_unfinished(gemm, data), .hand = !sliced && gemm->epilogue,
        .tile_end = end[1], .column_end = smaller(l->n, end[2] * gemm->kernel->columns),
        .last = last_of(gemm, data), .copies = l->pack_b ? &copies : NULL,
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
