/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: what a product computes (slices, lanes), and the choice of the loops that do.
 *
 * Loops are chosen from extents, strides and cache sizes, never from a list of shapes:
 *
 *   A      is read in place, six rows at a time, when k is its unit stride; else a band of mc rows is copied to
 *          scratch.
 *   B      is read from panels of columns. They are packed ahead (constants), copied to scratch nc columns at a time
 *          (columns that are not contiguous, or enough rows to pay for the copy), or B is read in place. Wide tiles
 *          copy the panel behind theirs while they sum (gemm_copy.h): then there are two blocks, and k is cut so that
 *          both stay in the second-level cache.
 *          Up to eight rows multiply by columns that are lines along k as they turn them in registers.
 *   kc     A panel of kc x columns stays in the second-level cache while all rows pass it: so k is cut only where half
 *          of that cache would not hold one, since each cut reads and writes C once more. Of a constant B in wide
 *          panels that cache also holds the next panel, which is prefetched, and the band of A: there k is cut where
 *          those three would take more than two thirds of it.
 *   few rows, B in place   kc is eight: eight rows of B are read side by side, from end to end, which is what memory is
 *          fastest at, while the rows of C stay in the second-level cache.
 *   few rows, panels   One panel after the other is read to its end, and the second tile finds it in the second-level
 *          cache: pieces as short as the first-level cache are too short for memory to reach its speed.
 *   small elements of B   A packed constant whose numbers are all of a type smaller than f32
 *          (weft_gemm_wants_small). Up to sixteen rows read it as it is (gemm_small.c); for more, blocks of it are
 *          converted to scratch.
 *   short k   The bands of rows are one tile high, so that C is written from end to end, and B is read in place. Where
 *          C is larger than the second-level cache, bands are taller and its lines are prefetched instead (gemm.h),
 *          which is worth 5 to 20 % of the time while they are in no cache: then a panel of B stays in the first-level
 *          cache. With 16 terms and less there is no time to prefetch, and writing from end to end is faster by a
 *          third; so it is with the narrower panels of AVX2.
 *
 * C is written along its columns. A C whose unit stride runs along rows is the transposed product, which is the same
 * chains, so prepare exchanges the operands (`swapped`); so it does for a handful of columns of results. A C with no
 * unit stride goes through a tile on the stack. */
#include "kernels/gemm/gemm_bands.h"

#include <assert.h>

enum {
    CACHE = 1 << 20, LEAST_CACHE = 128 << 10, MOST_CACHE = 4 << 20, /* bytes of second-level cache: within_cache */
    BAND_ROWS = 192, /* of packed A: with BAND_DEPTH, 384 KiB beside the panel of B */
    BAND_DEPTH = 512,
    SPREAD_DEPTH = 1024, /* of a B whose next panel tiles copy */
    BAND_COLUMNS = 1024, /* of packed B where A is packed too, and would be once more for each block */
    PLACE_ROWS = 96,     /* of A in place: with most of a panel they stay in the second-level cache */
    MOST_PLACE_ROWS = 192,
    PACK_ROWS = 200,     /* from so many rows on, packing a panel of B costs less than reading it in place */
    PACK_FAR = 48,       /* the same where there are more than PACK_K terms: */
    PACK_K = 1024,       /* terms from which a panel in place, a few lines of each page, has no room in that cache */
    PACK_FLOATS = 32 << 10, /* a smaller B of short k stays near in place */
    FEW_ROWS = 12,
    EXPANDED = 4 << 10,  /* floats: half of the first-level cache */
    STREAMED = 2 << 20,  /* floats of B from which memory and not the third-level cache is what counts */
    STREAM_COLUMNS = 512,
    STREAMS = 8,         /* rows of B side by side: more than hardware follows are slower */
    NARROW_STREAMS = 128, /* by AVX2's panels of 16 columns, which meet all of C as often as there are blocks */
    STREAM_ROWS = 4,     /* up to which AVX2's narrow panels are read as fast as hardware fetches them: 30 GB/s from
                          * memory on a Zen 3, 20 where tiles prefetch every line of the next one */
    WAYS_COLUMNS = 32,
    SHORT_K = 128,
    THIN_K = 16,
    FLAT_COLUMNS = 24,
    FLAT_ROWS = 4,
    FAR = 256 << 10,     /* floats: more than the second-level cache */
    FETCH_K = 256,       /* terms up to which a C larger than the caches takes longer than the product: see "short k" */
    FETCH_FLOATS = 128 << 10, /* of A, which all panels of such a product read */
    NARROW_COLUMNS = 6,
    NARROW_ROWS = 16,    /* for each column, but no more than for four */
    LINES_K = 32,
    SHORT_LINES_K = 8,   /* the same for SHORT_LINES_ROWS, at which a copy of B is dear, */
    SHORT_LINES_ROWS = 4,
    SHORT_LINES_EACH = 4, /* but no less than so many for each of them */
    LINES_COLUMNS = 8,   /* packed as lines: a B that a handful of dot products may want */
    HEADER = 64,         /* bytes of shared memory before the partial sums: how many parts are done */
    SLICE_UNITS = 16,    /* blocks of 8 x 64 results below which k is cut */
    SLICE_LEAST = 4096,
    SLICE_K = 1024,
    SLICES_MOST = 64,
    LANES_K = 32,        /* terms below which one chain is as fast */
    LANES_BLOCK_K = 512, /* the same for a block of dot products */
    LANES_BLOCK = 8,
    PAGE_FLOATS = 1024,  /* rows of B in place that hardware does not prefetch: each is in another page */
    AHEAD_FLOATS = 128 << 10, /* half of the second-level cache: a smaller B is not prefetched, nor a smaller C */
    NEAR_FLOATS = 170 << 10, /* of a band of A, a panel and the next one, two thirds of the second-level cache: with
                              * more, k is cut so that they are at most NEAR_BLOCK */
    NEAR_BLOCK = 112 << 10,
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

const char *weft_gemm_name(const struct weft_gemm *gemm) { return gemm->kernel->name; }

uint32_t weft_gemm_cpu(const struct weft_gemm *gemm) { return gemm->kernel->cpu; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* What was measured with a second-level cache of 1 MiB, for the one that there is. */
int64_t weft_gemm_within_cache(const struct weft_gemm *g, int64_t measured)
{
    const int64_t cache = g->cache == 0           ? CACHE
                          : g->cache < LEAST_CACHE ? LEAST_CACHE
                          : g->cache > MOST_CACHE  ? MOST_CACHE
                                                   : (int64_t)g->cache;
    return measured * cache / CACHE;
}
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }
static int64_t rounded(int64_t x, int64_t to) { return larger(1, weft_pieces(x, to)) * to; }

/* --- what is computed: by extents and strides alone --- */

int32_t weft_gemm_slices(const struct weft_gemm *g)
{
    const int64_t most = g->one_chain ? 1 : g->max_slices > 0 ? smaller(g->max_slices, SLICES_MOST) : SLICES_MOST;
    const int64_t units = weft_pieces(g->m, 8) * weft_pieces(g->n, 64);
    if (g->batch != 1 || g->k < SLICE_LEAST || units > SLICE_UNITS || units < 1)
        return 1;
    return (int32_t)smaller(most, g->k / SLICE_K);
}

int32_t weft_gemm_lanes(const struct weft_gemm *g)
{
    if (g->one_chain || g->prologue_a || g->prologue_b || g->a_col != 1 || g->b_row != 1 || g->k < LANES_K)
        return 1;
    if (g->m == 1 && g->n == 1)
        return 32;
    if (g->m == 1 || g->n == 1)
        return 8;
    return g->m <= LANES_BLOCK && g->n <= LANES_BLOCK && g->k >= LANES_BLOCK_K ? 32 : 1;
}

/* --- the loops --- */

/* C is a column, or lies by columns. */
static bool is_column(const struct weft_gemm *g)
{
    return g->kernel->code->transpose && g->m > 1 && (g->n == 1 || (g->c_row == 1 && g->c_col != 1));
}

/* Few columns and many rows of A, which are better turned than multiplied by vectors that are mostly empty. */
static bool is_narrow(const struct weft_gemm *g)
{
    return g->kernel->code->lines && g->n > 1 && g->n <= NARROW_COLUMNS && g->kernel->code->lines[g->n - 1] &&
           g->m >= NARROW_ROWS * smaller(g->n, 4) && g->k >= LINES_K && g->a_col == 1 && !g->prologue_a &&
           !g->prologue_b; /* pieces of A would be made with strides */
}

/* Panels of few columns are packed as lines when a run with few rows wants dot products: whatever m is, since one pack
 * serves all m. */
static bool few_lines(const struct weft_gemm *g)
{
    return g->n == 1 || (g->n <= LINES_COLUMNS && g->b_row == 1 && !g->one_chain);
}

static struct weft_packing packing_of(const struct weft_gemm *g)
{
    const bool lines = is_column(g) || few_lines(g);
    struct weft_packing packing = weft_gemm_packing(g->kernel, lines ? WEFT_PACK_LINES : WEFT_PACK_PANELS, g->k, g->n);
    if (g->b_small)
        packing.dtype = g->b_small;
    return packing;
}

bool weft_gemm_packs_one_way(const struct weft_gemm *gemm)
{
    return few_lines(gemm) || !gemm->kernel->code->transpose; /* or it follows from is_column */
}

/* Whether tiles turn columns of B, which lie along k. */
static bool is_lines(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    weft_gemm_lines_fn *const *const tiles = g->kernel->code->lines;
    const int64_t least = l->m <= SHORT_LINES_ROWS ? larger(SHORT_LINES_K, SHORT_LINES_EACH * l->m) : LINES_K;
    return tiles && l->m > 0 && l->m <= WEFT_GEMM_ROWS && tiles[l->m - 1] && l->k >= least && l->b_row == 1 &&
           l->b_col != 1 && !l->b_panels && (!weft_gemm_makes_a(g) || l->made) && !weft_gemm_makes_b(g);
}

/* The product as the loops see it: operands exchanged if swapped, a packed operand as the array it is. Strides along an
 * extent of one are free and set to what suits the loops. */
static struct weft_gemm_loops oriented(const struct weft_gemm *g)
{
    const bool lines = g->b_packed && (g->packing.order == WEFT_PACK_LINES || g->kernel->columns == 1);
    const bool panel = g->b_packed && !lines && g->swapped; /* of a few columns: the only one */
    const int64_t b_row = lines ? 1 : panel ? g->kernel->columns : g->b_row;
    const int64_t b_col = lines ? g->k : panel ? 1 : g->b_col;
    struct weft_gemm_loops l = {
        .m = g->m, .n = g->n, .k = g->k, .a_batch = g->a_batch, .a_row = g->a_row, .a_col = g->a_col,
        .b_batch = g->b_batch, .b_row = b_row, .b_col = b_col, .c_batch = g->c_batch, .c_row = g->c_row,
        .c_col = g->c_col, .bias_row = g->bias_row, .bias_col = g->bias_col, .r_batch = g->r_batch, .r_row = g->r_row,
        .r_col = g->r_col,
        .b_panels = g->b_packed && !lines && !panel, .expands = g->b_packed && g->b_small};
    if (g->swapped) {
        l.m = g->n, l.n = g->m;
        l.a_batch = g->b_batch, l.a_row = b_col, l.a_col = b_row;
        l.b_batch = g->a_batch, l.b_row = g->a_col, l.b_col = g->a_row;
        l.c_row = g->c_col, l.c_col = g->c_row;
        l.bias_row = g->bias_col, l.bias_col = g->bias_row;
        l.r_row = g->r_col, l.r_col = g->r_row;
    }
    if (l.k == 1)
        l.a_col = 1;
    if (l.n == 1)
        l.c_col = l.r_col = 1;
    if (l.n == 1 && g->lanes == 1)
        l.b_col = 1;
    l.made = weft_gemm_makes_a(g) && g->kernel->code->transpose && l.m <= WEFT_GEMM_SMALL_MOST;
    if (weft_gemm_makes_a(g)) { /* what A would be in memory does not count */
        l.a_batch = 0, l.a_col = 1;
        l.a_row = l.made ? weft_gemm_band_row(&l) : l.k;
    }
    if (weft_gemm_makes_b(g))
        l.b_col = 1, l.b_row = g->kernel->columns;
    return l;
}

/* Is a pack of smaller elements read as it is? */
bool weft_gemm_reads_small(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    return l->expands && l->m <= WEFT_GEMM_SMALL_MOST && l->a_col == 1;
}

/* Rows of a tile: as many as the registers hold beside the vectors of a row, but in place no more than the ways of the
 * first-level cache leave room for, where rows lie a multiple of 4 KiB apart and B is more than two lines wide. Four
 * where little depth meets much memory: low tiles look further ahead into rows that are too short for hardware to
 * fetch, and write C from end to end, which is what it is fastest at. */
static int64_t tile_rows(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    const struct weft_gemm_kernel *const kernel = g->kernel;
    if (l->b_lines)
        return l->m;
    const int64_t columns = larger(1, smaller(l->n, kernel->columns));
    if (weft_gemm_reads_small(g, l))
        return larger(1, l->m);
    int64_t rows = WEFT_GEMM_ROWS;
    if (l->a_row % 1024 == 0 && l->k >= 1024 && l->n > WAYS_COLUMNS)
        rows = kernel->rows;
    const int64_t moved = g->batch * (l->m * l->n + l->k * (l->m + l->n));
    if (l->k <= SHORT_K && l->n > FLAT_COLUMNS && (moved > weft_gemm_within_cache(g, FAR) || l->k <= THIN_K) &&
        kernel->columns == WEFT_GEMM_COLUMNS)
        rows = FLAT_ROWS;
    while (!weft_gemm_tile(kernel, l->k, rows, columns))
        rows--;
    return rows;
}

/* Of A in place: what the second-level cache holds beside a panel of a constant B and the next one, within bounds. */
static int64_t place_rows(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    const int64_t terms = larger(1, smaller(l->k, l->kc)), panels = 2 * g->kernel->columns;
    if (!l->b_panels || g->kernel->columns != WEFT_GEMM_COLUMNS)
        return PLACE_ROWS;
    return larger(PLACE_ROWS, smaller(MOST_PLACE_ROWS, weft_gemm_within_cache(g, NEAR_BLOCK) / terms - panels));
}

/* Few rows by a B in place: is k cut into short blocks, so that rows of B are read from end to end and not panel by
 * panel? Each block reads and writes all of C, which AVX2's narrow panels take 2 to 4 times as long for where B is
 * narrower than a page or near. */
static bool streams(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    if (g->kernel->columns != WEFT_GEMM_COLUMNS)
        return l->n >= PAGE_FLOATS && l->n * l->k > STREAMED;
    return l->n * l->k > STREAMED || (l->m <= 2 && l->n > STREAM_COLUMNS);
}

/* Terms of a block where A is in place. */
static int64_t place_depth(const struct weft_gemm *g, const struct weft_gemm_loops *l)
{
    const int64_t near = PLACE_ROWS + 2 * g->kernel->columns;
    return l->b_panels && g->kernel->columns == WEFT_GEMM_COLUMNS &&
                   near * l->k > weft_gemm_within_cache(g, NEAR_FLOATS)
               ? weft_gemm_within_cache(g, NEAR_BLOCK) / near
               : weft_gemm_within_cache(g, g->kernel->depth);
}

/* What tiles prefetch (gemm_ahead.c), of operands that are copied as `l` says. */
static void choose_prefetches(const struct weft_gemm *g, struct weft_gemm_loops *l)
{
    const struct weft_gemm_kernel *kernel = g->kernel;
    const bool far_b = l->k * l->n > weft_gemm_within_cache(g, AHEAD_FLOATS);
    l->pages = !l->b_panels && !l->pack_b && !l->b_lines && l->b_col == 1 && l->b_row >= PAGE_FLOATS &&
               kernel->columns == WEFT_GEMM_COLUMNS && l->k >= WEFT_AHEAD_TERMS;
    l->ahead = (l->b_panels || l->pages) && !l->expands && l->n > kernel->columns &&
               (l->m > STREAM_ROWS || kernel->columns == WEFT_GEMM_COLUMNS) && far_b;
    l->fetches_source = l->pack_b && !l->expands && !weft_gemm_makes_b(g) && (l->b_col == 1 || l->b_row == 1) &&
                        l->k >= WEFT_AHEAD_TERMS && far_b;
    l->prefetch_c = l->c_col == 1 && !l->aside && !l->b_lines && l->k > THIN_K &&
                    kernel->columns == WEFT_GEMM_COLUMNS &&
                    (l->ahead || g->batch * l->m * l->n > weft_gemm_within_cache(g, AHEAD_FLOATS));
}

static void choose_blocks(const struct weft_gemm *g, struct weft_gemm_loops *l)
{
    const struct weft_gemm_kernel *kernel = g->kernel;
    const bool strided = l->b_col != 1 && !l->b_panels;
    const bool few = l->m <= FEW_ROWS;
    const bool makes_band = weft_gemm_makes_a(g) && !l->made; /* once for all columns, and so in blocks of k */
    l->pack_a = l->a_col != 1 || makes_band;
    const bool pays = l->m >= (l->k > PACK_K ? PACK_FAR : PACK_ROWS) && l->b_row > 2 * kernel->columns;
    l->pack_b = (strided && !l->b_lines) || l->expands || weft_gemm_makes_b(g) ||
                (!l->b_panels && pays && (l->k > SHORT_K || l->k * l->n > PACK_FLOATS));
    /* Few terms and a C that no near cache holds. */
    const bool flat_far = l->c_col == 1 && !l->aside && l->k > THIN_K && l->k <= FETCH_K && l->n > kernel->columns &&
                 g->batch * l->m * l->n > weft_gemm_within_cache(g, FAR) && kernel->columns == WEFT_GEMM_COLUMNS;
    l->spreads = l->pack_b && !l->expands && !weft_gemm_makes_b(g) && (l->b_col == 1 || l->b_row == 1) &&
                 kernel->columns == WEFT_GEMM_COLUMNS && l->n > kernel->columns && !l->aside;
    choose_prefetches(g, l);
    l->mc = l->m, l->nc = l->pack_b ? kernel->columns : l->n;
    l->kc = weft_gemm_within_cache(g, kernel->depth);
    if (l->b_lines) {
        l->mc = l->m;
    } else if (l->expands && !makes_band) {
        l->mc = l->pack_a ? BAND_ROWS : place_rows(g, l);
        l->kc = EXPANDED / kernel->columns;
    } else if (makes_band) { /* as in place, but for a band as large as a copied one at most */
        const int64_t band = weft_gemm_within_cache(g, BAND_ROWS * BAND_DEPTH);
        l->kc = place_depth(g, l);
        l->mc = smaller(place_rows(g, l), larger(l->rows, band / larger(1, smaller(l->k, l->kc))));
        l->nc = l->pack_b ? BAND_COLUMNS : l->n;
    } else if (few && !l->b_panels && !l->pack_b && streams(g, l)) {
        l->kc = kernel->columns == WEFT_GEMM_COLUMNS ? STREAMS : NARROW_STREAMS;
    } else if (few && l->b_panels) {
        l->nc = kernel->columns;
    } else if (l->pack_a && !(few && strided)) {
        l->mc = BAND_ROWS, l->kc = weft_gemm_within_cache(g, smaller(kernel->depth, BAND_DEPTH));
        l->nc = l->pack_b ? BAND_COLUMNS : l->n;
    } else {
        l->kc = place_depth(g, l);
        if (l->spreads) /* two panels stay there */
            l->kc = smaller(l->kc, weft_gemm_within_cache(g, SPREAD_DEPTH));
        l->mc = l->k > SHORT_K || l->pack_b ? place_rows(g, l)
                : flat_far                  ? weft_gemm_within_cache(g, FETCH_FLOATS) / larger(1, l->k)
                                            : l->rows;
    }
    l->mc = g->block_m ? g->block_m : l->mc;
    l->nc = rounded(smaller(g->block_n ? g->block_n : l->nc, l->n), kernel->columns);
    l->kc = g->block_k ? g->block_k : l->kc;
    if (l->aside)
        l->kc = l->k; /* sums have no place to wait for the next block */
    const int64_t longest = larger(1, g->slices > 1 ? weft_pieces(l->k, g->slices) : l->k);
    l->kc = larger(1, weft_pieces(longest, weft_pieces(longest, larger(1, l->kc))));
    l->mc = rounded(smaller(l->mc, l->m), l->rows);
    l->two_blocks = l->spreads && l->nc == kernel->columns;
}

struct weft_gemm_space weft_gemm_space_of(const struct weft_gemm *g, int64_t row)
{
    const struct weft_gemm_loops *const l = &g->loops;
    const int64_t columns = g->kernel->columns, last = l->n - (l->units[2] - 1) * columns;
    return (struct weft_gemm_space){.extent = {l->units[0], l->units[1], l->units[2]}, .weight = {0, row, columns},
                                    .last = l->n > 0 ? (double)last / (double)columns : 1};
}

static void choose_parts(struct weft_gemm *g, int workers)
{
    struct weft_gemm_loops *l = &g->loops;
    const int64_t columns = g->kernel->columns;
    l->units[0] = g->slices > 1 ? g->slices : g->batch;
    l->units[1] = weft_pieces(l->m, l->rows);
    l->units[2] = weft_pieces(l->n, columns);
    const double flops = 2.0 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
    g->parts = weft_gemm_parts(flops, l->units[0] * l->units[1] * l->units[2], workers);
    /* Where C is written from end to end, parts that share its rows would fetch each other's lines ahead. */
    const bool by_rows = l->k <= SHORT_K && l->mc == l->rows;
    const struct weft_gemm_space space = weft_gemm_space_of(g, by_rows ? 2 * columns : l->rows);
    weft_gemm_grid(&space, g->parts, l->cut);
    const bool packs = l->pack_a || l->pack_b || l->made; /* parts that share a panel would each pack it */
    if (!weft_gemm_share_pixels(g, flops, l->cut) && g->takes_turns && !packs)
        weft_gemm_take_turns(flops, l->units, (int64_t[]){0, l->rows, columns}, l->cut);
    if (g->grid[0] > 0) {
        for (int d = 0; d < 3; d++)
            l->cut[d] = g->grid[d == 0 || !g->swapped ? d : 3 - d];
    }
    g->parts = l->cut[0] * l->cut[1] * l->cut[2];
    l->least = l->m / larger(1, l->units[1]), l->spare = l->m % larger(1, l->units[1]);
    /* Bands of a part are as high as each other: a low one would read all of B for a few tiles. */
    const int64_t tiles = weft_pieces(l->units[1], larger(1, l->cut[1])), most = larger(1, l->mc / l->rows);
    l->band = larger(1, weft_pieces(tiles, larger(1, weft_pieces(tiles, most))));
}

/* The tiles of a product that needs nothing else. */
static void choose_tiles(const struct weft_gemm *g, struct weft_gemm_loops *l)
{
    l->plain = g->kernel->code->transpose && g->lanes == 1 && g->slices == 1 && !g->scaled &&
               weft_gemm_hands_bands(g) && !l->pack_a && !l->pack_b && !l->b_lines && l->c_col == 1 &&
               l->kc >= l->k && l->m > 0 && l->n > 0;
    for (int last = 0; l->plain && last < 2; last++) {
        const int64_t columns = last ? l->n % g->kernel->columns : smaller(l->n, g->kernel->columns);
        for (int spare = 0; columns > 0 && spare < 2; spare++) {
            if (spare == 0 || l->spare > 0)
                l->tile[last][spare] = weft_gemm_tile(g->kernel, l->k, l->least + spare, columns);
        }
    }
}

void weft_gemm_prepare(struct weft_gemm *gemm, int workers)
{
    assert(!gemm->b_packed || (gemm->batch == 1 && !gemm->prologue_b));
    assert(!gemm->b_small || gemm->b_packed);
    gemm->kernel = weft_gemm_find(gemm->cpu);
    gemm->slices = weft_gemm_slices(gemm);
    gemm->lanes = weft_gemm_lanes(gemm);
    gemm->swapped = is_column(gemm) || is_narrow(gemm);
    gemm->packing = packing_of(gemm);
    gemm->loops = oriented(gemm);
    struct weft_gemm_loops *l = &gemm->loops;
    l->b_lines = is_lines(gemm, l);
    l->rows = gemm->kernel->code->transpose ? tile_rows(gemm, l) : 1;
    l->aside = gemm->scaled && gemm->beta != 0;
    choose_blocks(gemm, l);
    choose_parts(gemm, workers);
    choose_tiles(gemm, l);
    const int64_t floats = !gemm->kernel->code->transpose ? weft_gemm_plain_size(gemm)
                                                          : weft_gemm_band_size(l) + weft_gemm_block_size(l);
    gemm->scratch = gemm->lanes > 1 ? 0 : (size_t)floats * sizeof(float);
    const int64_t sums = gemm->slices * aligned(gemm->m * gemm->n);
    gemm->shared = gemm->slices > 1 ? HEADER + (size_t)sums * sizeof(float) : 0;
}

float *weft_gemm_partial(const struct weft_gemm *gemm, void *shared, int64_t slice)
{
    return (float *)((char *)shared + HEADER) + slice * aligned(gemm->m * gemm->n);
}
