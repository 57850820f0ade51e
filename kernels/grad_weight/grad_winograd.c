/* SPDX-License-Identifier: Apache-2.0 */
/* grad_winograd.c: when Winograd's transform pays for the gradient of a convolution's weights, and its loops. */
#include "kernels/grad_weight/grad_winograd.h"
#include "kernels/gemm/gemm.h"
#include "kernels/walk.h"

#include <math.h>
#include <string.h>

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

enum {
    SIDE = 2, SEEN = 4,   /* rows and columns of a tile, and of x that it sees */
    TAPS = 9,
    LANES = 16,           /* of the widest vectors: channels of V are whole ones */
    CHANNELS = 64,        /* that are copied at a time, where they lie side by side; else LANES, in long lines */
    STAGGER = 16,         /* floats between points: else all of them fall into one set of the first-level cache */
    COUNTERS = 16,        /* in the first 64 bytes of what is shared: slices of a block that are done */
};

/* --- the rule ----------------------------------------------------------------------------------------------------- */

/* What one tile of one channel of x, or of dy, takes to copy and to transform, and what a pair of channels takes to
 * transform back, in multiply-adds of a product that runs at its peak. */
#define X_COST 140.0
#define DY_COST 120.0
#define BACK_COST 160.0
#define BAND_COST 4.0     /* to read and write one float of M, once a band or a slice */

static int64_t tiles_along(const struct weft_grad_weight *g, int axis) { return weft_pieces(g->out[axis], SIDE); }

/* Multiply-adds that a block of c channels by o results is worth, in all slices. */
static double block_cost(const struct weft_grad_weight *g, int64_t c, int64_t o)
{
    const struct weft_grad_winograd_cut cut = weft_grad_winograd_cut(g);
    const double tiles = (double)cut.whole[0] * (double)cut.whole[1] * (double)cut.whole[2];
    const double lanes = (double)(weft_pieces(c, LANES) * LANES), pairs = (double)c * (double)o;
    return tiles * (WEFT_GRAD_POINTS * pairs + X_COST * lanes + DY_COST * (double)o) +
           (double)(cut.bands + cut.slices) * WEFT_GRAD_POINTS * BAND_COST * pairs + BACK_COST * pairs;
}

bool weft_grad_winograd_pays(const struct weft_grad_weight *g)
{
    bool fits = g->winograd_permitted && g->taps[0] == 1 && g->in[0] == 1 && g->out[0] == 1 && g->pad[0] == 0 &&
                g->c >= LANES && g->o >= LANES;
    for (int i = 1; i < 3; i++)
        fits = fits && g->taps[i] == 3 && g->stride[i] == 1 && g->dilation[i] == 1;
    return fits && block_cost(g, g->c, g->o) <
                       TAPS * (double)(g->c * g->o) * (double)g->images * (double)(g->out[1] * g->out[2]);
}

/* Rows and columns of tiles that are few go together. */
struct weft_grad_winograd_cut weft_grad_winograd_cut(const struct weft_grad_weight *g)
{
    enum { PAIRS = 16 << 10, BANDS = 4 }; /* of a group without slices; of a slice, at least */
    struct weft_grad_winograd_cut cut = {.whole = {g->images, tiles_along(g, 1), tiles_along(g, 2)}, .bands = 1};
    int64_t most = WEFT_GRAD_TILES;
    for (int i = 2; i >= 0; i--) {
        cut.pieces[i] = weft_pieces(cut.whole[i], most);
        most = cut.pieces[i] > 1 ? 1 : most / larger(1, cut.whole[i]);
        cut.bands *= cut.pieces[i];
    }
    const int64_t slices = g->groups > 1 ? 1 : smaller(COUNTERS, PAIRS / (g->c * g->o));
    cut.slices = larger(1, smaller(slices, cut.bands / BANDS));
    return cut;
}

/* --- how the loops lie -------------------------------------------------------------------------------------------- */

/* Scratch: V [point][tile][c], W [point][panel][tile][columns], M [point][panel][c][columns], and what is copied of x
 * or dy, [row][column][channel], or made of M, [c][tap][columns]. Shared, where there are slices: counters, M of each
 * slice of each block. Strides and sizes are in floats. */
struct plan {
    const struct weft_grad_weight_level *level;
    const struct weft_gemm_kernel *mover;
    struct weft_grad_winograd_cut cut;
    int64_t panels;                 /* of a group */
    int64_t x_lanes, dy_lanes;      /* that are copied at a time */
    int64_t v_tile, v_point, w_panel, w_point, m_panel, m_point;
    int64_t x_row, dy_row;          /* of the copies */
    int64_t v_size, w_size, m_size, copy_size;
};

static struct plan plan_of(const struct weft_grad_weight *g)
{
    struct plan p = {.level = weft_grad_weight_level_of(g->cpu), .mover = weft_gemm_find(g->cpu),
                     .cut = weft_grad_winograd_cut(g)};
    const int64_t columns = p.level->columns;
    int64_t most[3];
    for (int i = 0; i < 3; i++)
        most[i] = weft_pieces(p.cut.whole[i], p.cut.pieces[i]);
    p.panels = weft_pieces(g->o, columns);
    const int64_t tiles = most[0] * most[1] * most[2], c = weft_pieces(g->c, g->c_blocks);
    const int64_t panels = weft_pieces(p.panels, g->o_blocks);
    p.v_tile = weft_pieces(c, LANES) * LANES;
    p.v_point = tiles * p.v_tile + STAGGER;
    p.w_panel = tiles * columns;
    p.w_point = panels * p.w_panel + STAGGER;
    p.m_panel = c * columns;
    p.m_point = panels * p.m_panel + STAGGER;
    p.x_lanes = g->x_stride[1] == 1 ? smaller(CHANNELS, p.v_tile) : LANES;
    p.dy_lanes = g->dy_stride[1] == 1 ? columns : smaller(columns, LANES);
    p.x_row = (SIDE * most[2] + SEEN - SIDE) * p.x_lanes + STAGGER;
    p.dy_row = SIDE * most[2] * p.dy_lanes + STAGGER;
    p.v_size = WEFT_GRAD_POINTS * p.v_point;
    p.w_size = WEFT_GRAD_POINTS * p.w_point;
    p.m_size = WEFT_GRAD_POINTS * p.m_point;
    p.copy_size = larger((SIDE * most[1] + SEEN - SIDE) * p.x_row,
                         larger(SIDE * most[1] * p.dy_row, p.level->rows * TAPS * columns));
    return p;
}

double weft_grad_winograd_products(const struct weft_grad_weight *g)
{
    return (double)g->groups * block_cost(g, g->c, g->o);
}

/* Blocks such that the part with the most units has the least to do. Their M is as large as a second-level cache: of
 * smaller ones x and dy would be copied and transformed more often, which takes longer than what leaves the cache. */
void weft_grad_winograd_prepare(struct weft_grad_weight *g, int workers)
{
    enum { PRODUCTS = 8, FLOATS = 256 << 10 }; /* multiply-adds in the time of moving a byte; of M */
    const int64_t columns = weft_grad_weight_level_of(g->cpu)->columns, panels = weft_pieces(g->o, columns);
    const int64_t slices = weft_grad_winograd_cut(g).slices;
    const int32_t parts = weft_parts_for((int64_t)(weft_grad_winograd_products(g) / PRODUCTS), workers);
    double best = INFINITY;
    for (int64_t i = 1; i <= panels; i++)
        for (int64_t j = 1; j <= weft_pieces(g->c, LANES / 2); j++) {
            const int64_t o = weft_pieces(panels, i) * columns, c = weft_pieces(g->c, j);
            const bool large = WEFT_GRAD_POINTS * c * o > FLOATS && (o > columns || c > LANES);
            const double turns = (double)weft_pieces(g->groups * i * j * slices, parts);
            const double cost = turns / (double)slices * block_cost(g, c, o);
            if (large || cost >= best || (slices > 1 && i * j > COUNTERS))
                continue;
            best = cost, g->o_blocks = i, g->c_blocks = j;
        }
    const int64_t blocks = g->groups * g->o_blocks * g->c_blocks;
    const struct plan p = plan_of(g);
    g->parts = (int32_t)smaller(blocks * slices, parts);
    g->scratch = (size_t)(p.v_size + p.w_size + p.m_size + p.copy_size) * sizeof(float);
    g->shared = slices > 1 ? (size_t)(COUNTERS + blocks * slices * p.m_size) * sizeof(float) : 0;
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

/* An image of x or dy: where its first channel begins; its extents; channels, rows, columns are so far apart. */
struct image {
    const float *data;
    int64_t rows, columns, channel, row, column;
};

/* Rows and columns of an image from (row, column) on, of `channels` channels, to [row][column][lane], zeros where there
 * is nothing. */
static void copy_box(const struct plan *p, const struct image *from, int64_t row, int64_t column, int64_t rows,
                     int64_t columns, int64_t channels, float *to, int64_t to_row, int64_t lanes)
{
    const int64_t begin = smaller(larger(-column, 0), columns);
    const int64_t end = larger(begin, smaller(columns, from->columns - column));
    for (int64_t r = row; r < row + rows; r++, to += to_row) {
        const bool inside = r >= 0 && r < from->rows;
        const int64_t left = inside && channels == lanes ? begin : columns, right = inside ? columns - end : 0;
        memset(to, 0, (size_t)(left * lanes) * sizeof *to);
        memset(to + end * lanes, 0, (size_t)(right * lanes) * sizeof *to);
        if (inside)
            weft_gemm_gather(p->mover, to + begin * lanes, lanes,
                             from->data + r * from->row + (column + begin) * from->column, from->column, from->channel,
                             end - begin, channels);
    }
}

/* --- a band of a block -------------------------------------------------------------------------------------------- */

struct block {
    int64_t first_c, c, first_o, o; /* channels of x, and of dy, within the group */
    int64_t begin[3], extent[3];    /* of the band: images, rows and columns of tiles */
    float *v, *w, *m, *copy;
};

static void make_v(const struct weft_grad_weight *g, const struct plan *p, const struct block *b, const float *x)
{
    const int64_t *const s = g->x_stride, rows = b->extent[1], columns = b->extent[2];
    for (int64_t c = 0; c < b->c; c += p->x_lanes) {
        const int64_t channels = smaller(p->x_lanes, b->c - c), lanes = weft_pieces(channels, LANES) * LANES;
        for (int64_t n = 0; n < b->extent[0]; n++) {
            const struct image image = {x + (b->begin[0] + n) * s[0] + (b->first_c + c) * s[1],
                                        g->in[1], g->in[2], s[1], s[3], s[4]};
            copy_box(p, &image, b->begin[1] * SIDE - g->pad[1], b->begin[2] * SIDE - g->pad[2],
                     rows * SIDE + SEEN - SIDE, columns * SIDE + SEEN - SIDE, channels, b->copy, p->x_row, lanes);
            for (int64_t r = 0; r < rows; r++)
                p->level->transform_x(b->copy + r * SIDE * p->x_row, p->x_row, lanes,
                                      b->v + (n * rows + r) * columns * p->v_tile + c, p->v_point, p->v_tile, columns,
                                      lanes);
        }
    }
}

/* Lanes beyond the last result are zeros. */
static void make_w(const struct weft_grad_weight *g, const struct plan *p, const struct block *b, const float *dy)
{
    const int64_t *const s = g->dy_stride, rows = b->extent[1], columns = b->extent[2], width = p->level->columns;
    for (int64_t o = 0; o < weft_pieces(b->o, width) * width; o += p->dy_lanes) {
        float *const to = b->w + o / width * p->w_panel + o % width;
        for (int64_t n = 0; n < b->extent[0]; n++) {
            const struct image image = {dy + (b->begin[0] + n) * s[0] + (b->first_o + o) * s[1],
                                        g->out[1], g->out[2], s[1], s[3], s[4]};
            copy_box(p, &image, b->begin[1] * SIDE, b->begin[2] * SIDE, rows * SIDE, columns * SIDE,
                     larger(0, smaller(p->dy_lanes, b->o - o)), b->copy, p->dy_row, p->dy_lanes);
            for (int64_t r = 0; r < rows; r++)
                p->level->transform_dy(b->copy + r * SIDE * p->dy_row, p->dy_row, p->dy_lanes,
                                       to + (n * rows + r) * columns * width, p->w_point, width, columns, p->dy_lanes);
        }
    }
}

static void add_products(const struct plan *p, const struct block *b, bool more)
{
    const struct weft_grad_weight_level *const level = p->level;
    const int64_t pieces = weft_pieces(b->c, level->rows), panels = weft_pieces(b->o, level->columns);
    const struct weft_grad_walk walk = {.extent = {1, 1, 1, b->extent[0] * b->extent[1] * b->extent[2]},
                                        .step = {0, 0, 0, p->v_tile}};
    int64_t at[WEFT_GRAD_ROWS];
    for (int i = 0; i < level->rows; i++)
        at[i] = i;
    for (int q = 0; q < WEFT_GRAD_POINTS; q++)
        for (int64_t j = 0; j < panels; j++)
            for (int64_t k = 0; k < pieces; k++) {
                const int64_t c = weft_cut(b->c, pieces, k), rows = weft_cut(b->c, pieces, k + 1) - c;
                level->tile[0][rows - 1](&walk, b->v + q * p->v_point + c, at, b->w + q * p->w_point + j * p->w_panel,
                                         b->m + q * p->m_point + j * p->m_panel + c * level->columns, more);
            }
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

/* Taps of some channels by the results of a panel to where they belong. */
static void store_taps(const struct weft_grad_weight *g, const struct plan *p, const float *taps, float *dw,
                       int64_t channels, int64_t results)
{
    const int64_t *const s = g->dw_stride, columns = p->level->columns;
    if (s[1] == TAPS && s[3] == 3 && s[4] == 1) {
        weft_gemm_gather(p->mover, dw, s[0], taps, 1, columns, results, channels * TAPS);
        return;
    }
    for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < TAPS; t++)
            for (int64_t o = 0; o < results; o++)
                dw[o * s[0] + c * s[1] + t / 3 * s[3] + t % 3 * s[4]] = taps[(c * TAPS + t) * columns + o];
}

static void finish_block(const struct weft_grad_weight *g, const struct plan *p, const struct block *b, float *dw)
{
    const int64_t columns = p->level->columns;
    const float *from = b->m;
    for (int64_t o = 0; o < b->o; o += columns, from += p->m_panel)
        for (int64_t c = 0; c < b->c; c += p->level->rows) {
            const int64_t rows = smaller(p->level->rows, b->c - c);
            p->level->taps(from + c * columns, p->m_point, b->copy, rows);
            store_taps(g, p, b->copy, dw + (b->first_o + o) * g->dw_stride[0] + (b->first_c + c) * g->dw_stride[1],
                       rows, smaller(columns, b->o - o));
        }
}

/* The bands of a slice to M. */
static void add_bands(const struct weft_grad_weight *g, const struct plan *p, struct block *b, const float *x,
                      const float *dy, int64_t slice)
{
    const int64_t *const whole = p->cut.whole, *const pieces = p->cut.pieces;
    const int64_t first = weft_cut(p->cut.bands, p->cut.slices, slice);
    for (int64_t band = first; band < weft_cut(p->cut.bands, p->cut.slices, slice + 1); band++) {
        const int64_t at[3] = {band / (pieces[1] * pieces[2]), band / pieces[2] % pieces[1], band % pieces[2]};
        for (int i = 0; i < 3; i++) {
            b->begin[i] = weft_cut(whole[i], pieces[i], at[i]);
            b->extent[i] = weft_cut(whole[i], pieces[i], at[i] + 1) - b->begin[i];
        }
        make_v(g, p, b, x);
        make_w(g, p, b, dy);
        add_products(p, b, band > first);
    }
}

/* Adds up slices, of which the first is at b->m, m_size apart. */
static void add_slices(const struct plan *p, const struct block *b, int64_t slices)
{
    for (int64_t q = 0; q < WEFT_GRAD_POINTS; q++)
        for (int64_t s = 1; s < slices; s++)
            p->mover->code->add(b->m + q * p->m_point, b->m + s * p->m_size + q * p->m_point, p->m_point - STAGGER);
}

/* Which channels a block has. */
static void place_block(const struct weft_grad_weight *g, const struct plan *p, struct block *b, int64_t block)
{
    const int64_t i = block / g->c_blocks % g->o_blocks, j = block % g->c_blocks, columns = p->level->columns;
    b->first_c = weft_cut(g->c, g->c_blocks, j);
    b->c = weft_cut(g->c, g->c_blocks, j + 1) - b->first_c;
    b->first_o = weft_cut(p->panels, g->o_blocks, i) * columns;
    b->o = smaller(g->o, weft_cut(p->panels, g->o_blocks, i + 1) * columns) - b->first_o;
}

void weft_grad_winograd_run(const struct weft_grad_weight *g, float *dw, const float *x, const float *dy, void *scratch,
                            void *shared, int part, int parts)
{
    const struct plan p = plan_of(g);
    const int64_t slices = p.cut.slices, blocks = g->o_blocks * g->c_blocks;
    int *const done = shared;
    struct block b = {.v = scratch};
    b.w = b.v + p.v_size, b.copy = b.w + p.w_size;
    int64_t begin, end;
    weft_share(g->groups * blocks * slices, 1, part, parts, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t block = unit / slices, group = block / blocks, slice = unit % slices;
        float *const sums = slices > 1 ? (float *)shared + COUNTERS + block * slices * p.m_size : b.copy + p.copy_size;
        place_block(g, &p, &b, block);
        b.m = sums + slice * p.m_size;
        add_bands(g, &p, &b, x + group * g->c * g->x_stride[1], dy + group * g->o * g->dy_stride[1], slice);
        if (slices > 1 && __atomic_add_fetch(&done[block], 1, __ATOMIC_ACQ_REL) < slices)
            continue;
        b.m = sums;
        add_slices(&p, &b, slices);
        finish_block(g, &p, &b, dw + group * g->o * g->dw_stride[0]);
        if (slices > 1)
            __atomic_store_n(&done[block], 0, __ATOMIC_RELEASE);
    }
}
