/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: blocking, packing and the cut into parts around the tiles.
 *
 *   for each product of the batch, each band of rows of A (all of them, where A is read in place), each block of k:
 *     for each panel of columns of B:          in place, packed ahead, or packed here into scratch
 *       for each tile of rows:                 C stays in registers over the block of k
 *
 * The panel stays in the second-level cache and the few rows of a tile in the first. k is cut only where a panel would
 * not fit, since each cut reads and writes C once more. A is read in place when k is its unit stride (six streams),
 * else a band of it is packed; B is packed when its columns are not contiguous, or when enough rows reuse the panel to
 * pay for the copy.
 *
 * C is written along its columns. A C whose unit stride runs along rows is the transposed product, which is the same
 * chains, so prepare exchanges the operands (`swapped`); a C with no unit stride goes through a small tile on the
 * stack.
 *
 * Parts are boxes of whole tiles in the space (product, tiles of rows, panels of columns), never pieces of k. */
#include "kernels/gemm/gemm.h"

#include <assert.h>
#include <string.h>

enum {
    BAND_ROWS = 192, /* of packed A: with BAND_DEPTH, 384 KiB beside the panel of B */
    BAND_DEPTH = 512,
    PACK_ROWS = 200, /* from so many rows on, packing a panel of B costs less than reading it in place */
    PART_FLOPS = 100000,
    ALIGN = 16, /* floats: a cache line */
};

const struct weft_gemm_kernel weft_gemm_kernels[] = {
#define WEFT_GEMM(name, cpu, rows, columns, lanes, depth) {#name, cpu, rows, columns, lanes, depth, &name},
#include "kernels/gemm/gemm.def"
};
const unsigned weft_gemm_kernel_count = sizeof weft_gemm_kernels / sizeof *weft_gemm_kernels;

const struct weft_gemm_kernel *weft_gemm_find(uint32_t cpu)
{
    unsigned i = weft_gemm_kernel_count - 1;
    while ((weft_gemm_kernels[i].cpu & ~cpu) != 0)
        i--;
    return &weft_gemm_kernels[i];
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t aligned(int64_t floats) { return (floats + ALIGN - 1) / ALIGN * ALIGN; }

/* --- parts --- */

void weft_gemm_grid(const int64_t extent[3], const int64_t weight[3], int parts, int ret_cut[3])
{
    double best = -1;
    for (int x = 1; x <= parts; x++) {
        for (int y = 1; parts % x == 0 && y <= parts / x; y++) {
            if (parts / x % y != 0)
                continue;
            const int cut[3] = {x, y, parts / x / y};
            double box = 1, surface = 0;
            for (int d = 0; d < 3; d++) {
                const double side = (double)weft_pieces(extent[d], cut[d]);
                box *= side;
                surface += side * (double)weight[d];
            }
            /* The surface only breaks ties: it is scaled to stay below one unit of volume. */
            const double cost = box + surface / (1 + surface);
            if (best < 0 || cost < best) {
                best = cost;
                memcpy(ret_cut, cut, sizeof cut);
            }
        }
    }
}

int32_t weft_gemm_parts(double flops, int64_t units, int workers)
{
    const double worth = flops / (PART_FLOPS / 2);
    if (flops < PART_FLOPS || units < 2 || workers < 2)
        return 1;
    const int64_t most = smaller(units, workers);
    return (int32_t)(worth < (double)most ? worth : (double)most);
}

/* --- packing --- */

void weft_gemm_gather(const struct weft_gemm_kernel *kernel, float *to, int64_t to_row, const weft_loose_f32 *from,
                      int64_t from_row, int64_t from_column, int64_t rows, int64_t columns)
{
    if (from_row == 1 && from_column != 1 && kernel->code->transpose) {
        kernel->code->transpose(to, to_row, from, from_column, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (from_column == 1) {
            memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
            continue;
        }
        for (int64_t j = 0; j < columns; j++)
            to[i * to_row + j] = from[i * from_row + j * from_column];
    }
}

int64_t weft_gemm_panels_size(const struct weft_gemm_kernel *kernel, int64_t k, int64_t columns)
{
    return weft_pieces(columns, kernel->columns) * kernel->columns * k;
}

/* Rows from `first` to before `end` of the panels [columns / panel][k][panel] of B, the last one filled with zeros. */
static void pack_panels(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int64_t columns, int64_t first,
                        int64_t end)
{
    const int64_t whole = g->kernel->columns;
    for (int64_t j = 0; j < columns; j += whole, pack += g->k * whole) {
        const int64_t width = smaller(whole, columns - j);
        weft_gemm_gather(g->kernel, pack + first * whole, whole, b + first * g->b_row + j * g->b_col, g->b_row,
                         g->b_col, end - first, width);
        for (int64_t p = first; width < whole && p < end; p++)
            memset(pack + p * whole + width, 0, (size_t)(whole - width) * sizeof *pack);
    }
}

/* --- preparation --- */

/* The product as the loops see it: operands exchanged if swapped, a packed operand as the dense array it is. Strides
 * along an extent of one are free and set to what suits the loops. */
static struct weft_gemm oriented(const struct weft_gemm *gemm)
{
    struct weft_gemm g = *gemm;
    if (gemm->swapped) {
        g.m = gemm->n, g.n = gemm->m;
        g.a_batch = gemm->b_batch, g.a_row = gemm->b_col, g.a_col = gemm->b_row;
        g.b_batch = gemm->a_batch, g.b_row = gemm->a_col, g.b_col = gemm->a_row;
        g.c_row = gemm->c_col, g.c_col = gemm->c_row;
        if (gemm->b_packed)
            g.a_row = g.k, g.a_col = 1;
        g.b_packed = false;
    }
    if (g.k == 1)
        g.a_col = 1;
    if (g.n == 1)
        g.b_col = g.c_col = 1;
    return g;
}

static bool packs_a(const struct weft_gemm *g) { return g->a_col != 1; }

static bool packs_b(const struct weft_gemm *g, int64_t rows)
{
    if (g->b_packed)
        return false;
    return g->b_col != 1 || (rows >= PACK_ROWS && g->b_row > 2 * g->kernel->columns);
}

/* Scratch of a part in floats, without and with the panel of B. */
static int64_t band_size(const struct weft_gemm *g)
{
    return packs_a(g) ? aligned(smaller(g->m, BAND_ROWS) * g->kc) : 0;
}
static int64_t panel_size(const struct weft_gemm *g)
{
    return packs_b(g, g->m) ? aligned(g->kc * g->kernel->columns) : 0;
}

void weft_gemm_prepare(struct weft_gemm *gemm, int workers)
{
    assert(!gemm->b_packed || gemm->batch == 1);
    gemm->kernel = weft_gemm_find(gemm->cpu);
    const bool rows_free = gemm->m == 1, columns_free = gemm->n == 1;
    gemm->swapped = gemm->kernel->code->transpose && (gemm->c_row == 1 || rows_free) &&
                    (columns_free ? gemm->a_row == 1 && gemm->a_col != 1 : gemm->c_col != 1 && !rows_free);
    struct weft_gemm g = oriented(gemm);
    const int64_t depth = packs_a(&g) ? smaller(g.kernel->depth, BAND_DEPTH) : g.kernel->depth;
    gemm->kc = larger(1, weft_pieces(g.k, larger(1, weft_pieces(g.k, depth))));
    g.kc = gemm->kc;
    gemm->scratch = (size_t)(band_size(&g) + panel_size(&g)) * sizeof(float);
    const int64_t units = g.batch * weft_pieces(g.m, g.kernel->rows) * weft_pieces(g.n, g.kernel->columns);
    gemm->parts = weft_gemm_parts(2.0 * (double)g.batch * (double)g.m * (double)g.n * (double)g.k, units, workers);
}

size_t weft_gemm_pack_bytes(const struct weft_gemm *gemm)
{
    const int64_t floats = gemm->swapped ? gemm->n * gemm->k : weft_gemm_panels_size(gemm->kernel, gemm->k, gemm->n);
    return (size_t)floats * sizeof(float);
}

void weft_gemm_pack_part(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int part, int parts)
{
    const bool by_columns = g->b_col >= g->b_row;
    const int64_t unit = by_columns && !g->swapped ? g->kernel->columns : 1;
    const int64_t extent = by_columns ? g->n : g->k, units = weft_pieces(extent, unit);
    const int64_t first = smaller(extent, units * part / parts * unit);
    const int64_t end = smaller(extent, units * (part + 1) / parts * unit);
    if (first == end)
        return;
    if (g->swapped && by_columns)
        weft_gemm_gather(g->kernel, pack + first * g->k, g->k, b + first * g->b_col, g->b_col, g->b_row, end - first,
                         g->k);
    else if (g->swapped)
        weft_gemm_gather(g->kernel, pack + first, g->k, b + first * g->b_row, g->b_col, g->b_row, g->n, end - first);
    else if (by_columns)
        pack_panels(g, pack + first * g->k, b + first * g->b_col, end - first, 0, g->k);
    else
        pack_panels(g, pack, b, g->n, first, end);
}

void weft_gemm_pack(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b)
{
    weft_gemm_pack_part(gemm, pack, b, 0, 1);
}

const char *weft_gemm_name(const struct weft_gemm *gemm) { return gemm->kernel->name; }

/* --- the loops --- */

/* A box of tiles of one product and the operands at hand. */
struct box {
    const struct weft_gemm *g;
    float *c;
    const float *a, *b;
    float *band, *panel;        /* scratch, or NULL where the operand is read in place */
    int64_t tile, tile_end;     /* of rows */
    int64_t column, column_end; /* multiples of the kernel's columns, except at the end */
};

static int64_t tile_row(const struct weft_gemm *g, int64_t tile)
{
    return weft_cut(g->m, weft_pieces(g->m, g->kernel->rows), tile);
}

/* One tile of a C without unit stride: by way of a dense tile. */
static void run_tile_aside(const struct weft_gemm *g, int64_t k, const float *a, int64_t a_row, const float *b,
                           int64_t b_row, float *c, int64_t rows, int64_t columns, bool from_c)
{
    float aside[WEFT_GEMM_ROWS][64];
    assert(g->kernel->columns <= 64);
    for (int64_t i = 0; from_c && i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            aside[i][j] = c[i * g->c_row + j * g->c_col];
    }
    weft_gemm_tile(g->kernel, rows, columns)(k, a, a_row, b, b_row, aside[0], 64, columns, from_c);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            c[i * g->c_row + j * g->c_col] = aside[i][j];
    }
}

/* Columns [j, j + columns) of a band of rows, for a block of k. `a` is the band's first row at the block's first
 * column. */
static void run_panel(const struct box *box, int64_t tile, int64_t tile_end, const float *a, int64_t a_row, int64_t j,
                      int64_t depth, int64_t depth_end)
{
    const struct weft_gemm *g = box->g;
    const int64_t width = g->kernel->columns, columns = smaller(width, box->column_end - j), k = depth_end - depth;
    const float *b = box->b + depth * g->b_row + j * g->b_col;
    int64_t b_row = g->b_row;
    if (g->b_packed) {
        b = box->b + j * g->k + depth * width;
        b_row = width;
    } else if (box->panel) {
        weft_gemm_gather(g->kernel, box->panel, width, b, g->b_row, g->b_col, k, columns);
        b = box->panel;
        b_row = width;
    }
    const int64_t first = tile_row(g, tile);
    for (int64_t t = tile; t < tile_end; t++) {
        const int64_t i = tile_row(g, t), rows = tile_row(g, t + 1) - i;
        const float *at = a + (i - first) * a_row;
        float *c = box->c + i * g->c_row + j * g->c_col;
        if (g->c_col == 1)
            weft_gemm_tile(g->kernel, rows, columns)(k, at, a_row, b, b_row, c, g->c_row, columns, depth > 0);
        else
            run_tile_aside(g, k, at, a_row, b, b_row, c, rows, columns, depth > 0);
    }
}

static void run_box(const struct box *box)
{
    const struct weft_gemm *g = box->g;
    const int64_t band = box->band ? BAND_ROWS / g->kernel->rows : box->tile_end - box->tile;
    for (int64_t tile = box->tile; tile < box->tile_end; tile += band) {
        const int64_t tile_end = smaller(box->tile_end, tile + band);
        const int64_t row = tile_row(g, tile), row_end = tile_row(g, tile_end);
        int64_t depth = 0;
        do { /* once for k = 0, which writes zeros */
            const int64_t depth_end = smaller(g->k, depth + g->kc);
            const float *a = box->a + row * g->a_row + depth * g->a_col;
            int64_t a_row = g->a_row;
            if (box->band) {
                a_row = depth_end - depth;
                weft_gemm_gather(g->kernel, box->band, a_row, a, g->a_row, g->a_col, row_end - row, a_row);
                a = box->band;
            }
            for (int64_t j = box->column; j < box->column_end; j += g->kernel->columns)
                run_panel(box, tile, tile_end, a, a_row, j, depth, depth_end);
            depth = depth_end;
        } while (depth < g->k);
    }
}

void weft_gemm_run(const struct weft_gemm *gemm, float *c, const float *a, const float *b, void *scratch, int part,
                   int parts)
{
    struct weft_gemm g = oriented(gemm);
    if (g.m == 0 || g.n == 0)
        return;
    if (gemm->swapped) {
        const float *exchanged = a;
        a = b, b = exchanged;
    }
    const int64_t extent[3] = {g.batch, weft_pieces(g.m, g.kernel->rows), weft_pieces(g.n, g.kernel->columns)};
    const int64_t weight[3] = {0, g.kernel->rows, g.kernel->columns};
    int cut[3];
    weft_gemm_grid(extent, weight, parts, cut);
    const int at[3] = {part / cut[2] / cut[1], part / cut[2] % cut[1], part % cut[2]};
    int64_t begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        begin[d] = weft_cut(extent[d], cut[d], at[d]);
        end[d] = weft_cut(extent[d], cut[d], at[d] + 1);
    }
    if (!g.kernel->code->transpose) {
        if (g.b_packed) /* panels of one column */
            g.b_row = 1, g.b_col = g.k;
        weft_gemm_plain(&g, c, a, b, begin, end);
        return;
    }
    const int64_t rows = tile_row(&g, end[1]) - tile_row(&g, begin[1]);
    struct box box = {
        .g = &g,
        .band = packs_a(&g) ? scratch : NULL,
        .panel = packs_b(&g, rows) ? (float *)scratch + band_size(&g) : NULL,
        .tile = begin[1],
        .tile_end = end[1],
        .column = begin[2] * g.kernel->columns,
        .column_end = smaller(g.n, end[2] * g.kernel->columns),
    };
    for (int64_t n = begin[0]; n < end[0]; n++) {
        box.c = c + n * g.c_batch, box.a = a + n * g.a_batch, box.b = b + n * g.b_batch;
        run_box(&box);
    }
}
