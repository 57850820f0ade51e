/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tiles.c: blocks and packing around the tiles.
 *
 *   for each product of the batch, or slice of k:
 *     for each block of nc columns, for each block of kc terms:
 *       for each band of mc rows:                                  A's band is copied to scratch, or read where it is
 *         for each panel of columns:                               B's panel is copied to scratch by the first band, or
 *           for each tile of rows:                                 read where it is; C stays in registers over kc terms
 *
 * Copies come from memory more slowly than products are computed: 8 % of the time of products of 512 x 512 x 512 whose
 * operands are in no cache (Zen 4). So tiles prefetch what is copied next.
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

/* What the tiles of a panel prefetch together: `floats` from data on, in equal pieces; or, with a step, each of the
 * first `tiles` tiles so many lines for each WEFT_AHEAD_TERMS terms, `step` floats apart, the next tile `across`
 * further. */
struct fetched {
    const float *data;              /* or NULL */
    int64_t floats, tiles, across, step, lines;
};

/* Lines that are side by side in memory, of each of many rows that are `step` floats apart: another tile prefetches
 * another line of all rows. */
static struct fetched lines_of_rows(const float *data, int64_t floats, int64_t step)
{
    return (struct fetched){.data = data, .tiles = weft_pieces(floats, LINE), .across = LINE, .step = step,
                            .lines = WEFT_AHEAD_TERMS};
}

static struct fetched in_one_piece(const struct weft_prefetch *all)
{
    return (struct fetched){.data = all->data, .floats = all->floats};
}

/* Tells tile `t` of `tiles` what to prefetch while it makes its sums of k terms: its share of `next`, and its rows of
 * C, unless it begins by reading them (from_c). False: nothing. */
static bool plan_prefetch(const struct weft_gemm_loops *l, struct weft_gemm_last *to, int64_t k, int64_t t,
                          int64_t tiles, const struct fetched *next, bool from_c)
{
    if (next->step != 0) {
        to->ahead_step = next->step, to->ahead_lines = next->lines;
        to->ahead = next->data && t < next->tiles ? next->data + t * next->across : NULL;
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
                      const float *b, int64_t b_row, const struct fetched *next, int64_t column, int64_t depth,
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

/* Copies the panel of columns [column, column_end) of B for a block of k; of a packed B of smaller elements, converts
 * it; or makes it. */
static void pack_panel(const struct work *w, float *panel, int64_t column, int64_t column_end, int64_t depth, int64_t k)
{
    const struct weft_gemm *g = w->gemm;
    const int64_t whole = g->kernel->columns, columns = column_end - column;
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

/* The rows or columns of B that pack_panel copies for k terms from `depth` on of a panel at `column`. Columns that lie
 * from end to end: a tile prefetches a line of each. */
static struct fetched source_of(const struct work *w, int64_t column, int64_t depth, int64_t k)
{
    const struct weft_gemm_loops *const l = w->l;
    const float *const data = w->b + depth * l->b_row + column * l->b_col;
    const int64_t columns = smaller(w->gemm->kernel->columns, l->n - column);
    if (l->b_col == 1)
        return lines_of_rows(data, columns, l->b_row);
    return (struct fetched){.data = data, .tiles = weft_pieces(k, LINE), .across = LINE, .step = l->b_col,
                            .lines = weft_pieces(columns * WEFT_AHEAD_TERMS, k)};
}

/* Piece `piece` of so many. */
static struct weft_prefetch piece_of(const struct weft_prefetch *all, int64_t piece, int64_t pieces)
{
    const int64_t lines = weft_pieces(all->floats, WEFT_AHEAD_LINE);
    const int64_t begin = weft_cut(lines, pieces, piece), end = weft_cut(lines, pieces, piece + 1);
    return (struct weft_prefetch){.data = all->data ? all->data + begin * WEFT_AHEAD_LINE : NULL,
                                  .floats = (end - begin) * WEFT_AHEAD_LINE};
}

/* A block of columns [column, column_end) and `k` terms from `depth` on, its first tile, and the tiles of a band. */
struct block {
    int64_t column, column_end, depth, k;
    int64_t first, tile, tile_end;
};

/* While panel j of a copied B is read, from the memory of a B that is in no near cache: the panel that is copied next,
 * in this block by the first band, else for the next one; or the next band of an A that is copied. */
static struct fetched copied_prefetch(const struct work *w, const struct block *of, int64_t j)
{
    const struct weft_gemm_loops *const l = w->l;
    const int64_t next = j + w->gemm->kernel->columns;
    if (next < of->column_end)
        return of->tile == of->first ? source_of(w, next, of->depth, of->k) : (struct fetched){.data = NULL};
    if (of->tile_end < w->tile_end) {
        const int64_t row = row_of(w, of->tile_end), end = row_of(w, smaller(of->tile_end + l->band, w->tile_end));
        return w->band && l->a_row == 1 && !weft_gemm_makes_a(w->gemm)
                   ? lines_of_rows(w->a + row + of->depth * l->a_col, end - row, l->a_col)
                   : (struct fetched){.data = NULL};
    }
    if (of->depth + of->k < w->k_end)
        return source_of(w, of->column, of->depth + of->k, of->k);
    return of->column_end < w->column_end ? source_of(w, of->column_end, w->k_begin, of->k)
                                          : in_one_piece(&w->data->prefetch);
}

/* What the tiles of panel j of a block prefetch: the next panel of a large B, be it the first one again for the next
 * band or block of k. Behind the last one, and instead of panels of a small B: what the caller says the worker reads in
 * its next step; or what is behind the part's columns, since workers have parts side by side. */
static struct fetched panel_prefetch(const struct work *w, const struct block *of, int64_t j)
{
    const struct weft_gemm_loops *const l = w->l;
    const struct weft_prefetch *const next_step = &w->data->prefetch;
    const int64_t whole = w->gemm->kernel->columns, terms = of->depth * whole, floats = of->k * whole;
    const bool last = of->tile_end == w->tile_end && of->depth + of->k == w->k_end;
    if (l->fetches_source)
        return copied_prefetch(w, of, j);
    if (!l->ahead) {
        const struct weft_prefetch piece =
            piece_of(next_step, (j - of->column) / whole, weft_pieces(of->column_end - of->column, whole));
        return last ? in_one_piece(&piece) : (struct fetched){.data = NULL};
    }
    if (l->pages)
        return j + whole < of->column_end ? source_of(w, j + whole, of->depth, of->k) : (struct fetched){.data = NULL};
    if (j + whole < of->column_end)
        return (struct fetched){w->b + (j + whole) * l->k + terms, floats};
    if (of->tile_end < w->tile_end)
        return (struct fetched){w->b + of->column * l->k + terms, floats};
    if (!last)
        return (struct fetched){w->b + of->column * l->k + terms + floats, floats};
    const float *const behind = of->column_end < l->n ? w->b + of->column_end * l->k + w->k_begin * whole : NULL;
    return next_step->data ? in_one_piece(next_step) : (struct fetched){behind, floats};
}

/* Columns [column, column_end) by all rows of the box, for one block of k. */
static void run_block(const struct work *w, int64_t tile, int64_t column, int64_t column_end, int64_t depth, int64_t k)
{
    const struct weft_gemm_loops *l = w->l;
    const int64_t whole = w->gemm->kernel->columns, band = smaller(l->band, w->tile_end - tile);
    /* Of bands of one tile many are handed over together, or a band in pieces. */
    const bool wide = l->rows * (column_end - column) >= WEFT_HANDED_RESULTS;
    int64_t waiting = row_of(w, tile); /* the first row that is finished and not handed over */
    for (int64_t t = tile; t < w->tile_end; t += band) {
        const int64_t t_end = smaller(t + band, w->tile_end), row = row_of(w, t);
        const float *a = w->a + row * l->a_row + depth;
        if (w->band) {
            pack_band(w, row, row_of(w, t_end), depth, k);
            a = w->band;
        }
        const bool hand = w->hand && depth + k == w->k_end && t_end - t == 1;
        const struct block now = {column, column_end, depth, k, tile, t, t_end};
        waiting = band > 1 ? row : waiting;
        for (int64_t j = column, handed = j; j < column_end; j += whole) {
            if (w->block && t == tile)
                pack_panel(w, w->block + (j - column) * k, j, smaller(j + whole, column_end), depth, k);
            const float *const b = w->block      ? w->block + (j - column) * k
                                   : l->b_panels ? w->b + j * l->k + depth * whole
                                                 : w->b + depth * l->b_row + j * l->b_col;
            const struct fetched next = panel_prefetch(w, &now, j);
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
                const struct block now = {column, column_end, 0, l->k, begin[1], t, t_end};
                const struct fetched next = prefetches ? panel_prefetch(&w, &now, j)
                                                       : (struct fetched){.data = NULL};
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
