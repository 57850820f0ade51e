/* SPDX-License-Identifier: Apache-2.0 */
/* grad_weight.c: bands, tiles and parts of the gradient of a convolution's weights, and what is gathered for them. */
#include "kernels/grad_weight/grad_winograd.h"
#include "kernels/gemm/gemm.h"
#include "kernels/walk.h"

#include <string.h>

static const struct weft_grad_weight_level *const levels[] = {
#define GRAD_WEIGHT(level, cpu) &weft_grad_weight_level__##level,
#include "kernels/grad_weight/grad_weight.def"
};

const struct weft_grad_weight_level *weft_grad_weight_level_of(uint32_t cpu)
{
    const struct weft_grad_weight_level *best = levels[0];
    for (size_t i = 1; i < sizeof levels / sizeof levels[0]; i++)
        if (!(levels[i]->cpu & ~cpu))
            best = levels[i];
    return best;
}

const char *weft_grad_weight_name(const struct weft_grad_weight *g)
{
    const struct weft_grad_weight_level *const level = weft_grad_weight_level_of(g->cpu);
    return g->winograd ? level->winograd_name : level->name;
}

uint32_t weft_grad_weight_cpu(const struct weft_grad_weight *g) { return weft_grad_weight_level_of(g->cpu)->cpu; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t volume(const int64_t *extent) { return extent[0] * extent[1] * extent[2]; }

/* --- bands -------------------------------------------------------------------------------------------------------- */

/* Whole rows, unless they are long; rows of one image, unless it has few terms. */
struct weft_grad_band weft_grad_weight_band(const struct weft_grad_weight *g)
{
    const int64_t whole[4] = {g->images, g->out[0], g->out[1], g->out[2]};
    struct weft_grad_band band = {.extent = {1, 1, 1, 1}};
    band.extent[3] = whole[3] <= 2 * WEFT_GRAD_TERMS ? larger(whole[3], 1) : WEFT_GRAD_TERMS;
    int64_t terms = band.extent[3];
    for (int i = 2; i >= 0 && band.extent[i + 1] == whole[i + 1]; i--) {
        band.extent[i] = larger(1, smaller(whole[i], WEFT_GRAD_TERMS / terms));
        terms *= band.extent[i];
    }
    return band;
}

/* --- what a problem is cut into ----------------------------------------------------------------------------------- */

/* Lanes of the outer loop's turn share x; each of its panels has lanes of dy; each group of rows is a tile. */
struct cut {
    const struct weft_grad_weight_level *level;
    bool own;                        /* lanes are groups, else results of a group */
    bool in_place;                   /* x is read where it lies */
    int64_t turns, panels, rows, groups_of_rows, units; /* rows: channels and taps */
    struct weft_grad_band band;
    int64_t step[3], length[3], reach[3]; /* of a copy of x: elements of x from one to the next; so many along an axis;
                                           * from a term to the next */
    int64_t x_floats, dy_floats;     /* of a band */
};

static bool reads_padding(const struct weft_grad_weight *g)
{
    bool any = false;
    for (int i = 0; i < 3; i++)
        any = any || g->pad[i] > 0 ||
              (g->out[i] - 1) * g->stride[i] + (g->taps[i] - 1) * g->dilation[i] + 1 - g->pad[i] > g->in[i];
    return any;
}

static double filled(int64_t n, int64_t size) { return (double)n / (double)(pieces(n, size) * size); }

/* Lanes of their own need a load for each multiply-add: 7 of 6 the time. */
static bool has_own(const struct weft_grad_weight *g, int64_t columns)
{
    return g->groups > 1 && 6 * filled(g->groups, columns) > 7 * filled(larger(g->o, 1), columns);
}

static struct cut cut_of(const struct weft_grad_weight *g)
{
    struct cut c = {.level = weft_grad_weight_level_of(g->cpu), .band = weft_grad_weight_band(g),
                    .rows = g->c * volume(g->taps)};
    const int64_t columns = c.level->columns;
    c.own = has_own(g, columns);
    c.in_place = !c.own && !reads_padding(g) && (g->x_stride[4] == 1 || g->x_stride[1] == 1);
    c.turns = c.own ? pieces(g->groups, columns) : g->groups;
    c.panels = c.own ? g->o : pieces(g->o, columns);
    c.groups_of_rows = pieces(c.rows, c.level->rows);
    c.units = c.turns * c.panels * c.groups_of_rows;
    c.dy_floats = c.band.extent[0] * volume(c.band.extent + 1) * columns;
    c.x_floats = c.band.extent[0] * g->c * (c.own ? columns : 1);
    for (int i = 0; i < 3; i++) { /* of an axis with a single tap only what the terms read is copied */
        const bool single = g->taps[i] == 1;
        c.step[i] = single ? g->stride[i] : 1;
        c.reach[i] = single ? 1 : g->stride[i];
        c.length[i] = (c.band.extent[i + 1] - 1) * c.reach[i] + (g->taps[i] - 1) * g->dilation[i] + 1;
        c.x_floats *= c.length[i];
    }
    c.x_floats = c.in_place ? 0 : c.x_floats;
    return c;
}

static int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

double weft_grad_weight_products(const struct weft_grad_weight *g)
{
    if (g->winograd)
        return weft_grad_winograd_products(g);
    const struct cut c = cut_of(g);
    return (double)(c.turns * c.panels * c.level->columns) * (double)c.rows * (double)g->images *
           (double)volume(g->out);
}

void weft_grad_weight_prepare(struct weft_grad_weight *g, int workers)
{
    enum { PRODUCTS = 8 }; /* in the time of moving a byte */
    g->winograd = weft_grad_winograd_pays(g);
    g->shared = 0;
    if (g->winograd) {
        weft_grad_winograd_prepare(g, workers);
        return;
    }
    const struct cut c = cut_of(g);
    const int32_t most = weft_parts_for((int64_t)(weft_grad_weight_products(g) / PRODUCTS), workers);
    g->parts = c.units < 1 ? 1 : c.units < most ? (int32_t)c.units : most;
    g->units = larger(1, pieces(c.units, g->parts));
    g->scratch = (size_t)(aligned(c.x_floats) + aligned(c.dy_floats) + g->units * c.level->rows * c.level->columns) *
                 sizeof(float);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

struct run {
    const struct weft_grad_weight *g;
    const struct cut *cut;
    const struct weft_gemm_kernel *mover;
    const float *x, *dy;
    float *x_copy, *dy_copy, *sum;
    int64_t first[4], extent[4];     /* of the band: images, depths, rows, columns of dy */
    struct weft_grad_walk walk;
    const float *from;               /* what tiles count their places from */
    int64_t channel, tap[3];         /* steps between such places */
};

/* Elements [first, first + step, …) of x along an axis: which of `length` lie inside. */
static void inside_of(int64_t first, int64_t step, int64_t length, int64_t extent, int64_t *ret_begin, int64_t *ret_end)
{
    const int64_t begin = first < 0 ? pieces(-first, step) : 0;
    const int64_t end = first < extent ? pieces(extent - first, step) : 0;
    *ret_begin = smaller(begin, length);
    *ret_end = larger(*ret_begin, smaller(end, length));
}

/* A row of an image's copy, of all channels in [channel, end). */
static void copy_row(const struct run *r, int64_t turn, float *to, const float *from, int64_t step, int64_t columns,
                     int64_t channel, int64_t end)
{
    const struct weft_grad_weight *const g = r->g;
    const int64_t lanes = r->cut->level->columns;
    if (!r->cut->own) {
        weft_gemm_gather(r->mover, to + channel * r->channel, r->channel, from + channel * g->x_stride[1],
                         g->x_stride[1], step, end - channel, columns);
        return;
    }
    for (int64_t c = channel; c < end; c++)
        weft_gemm_gather(r->mover, to + c * r->channel, lanes, from + c * g->x_stride[1], step, g->c * g->x_stride[1],
                         columns, smaller(lanes, g->groups - turn * lanes));
}

/* Channels [channel, end) of the band's part of x, zeros where windows see padding. */
static void copy_x(const struct run *r, int64_t turn, int64_t channel, int64_t end)
{
    const struct weft_grad_weight *const g = r->g;
    const struct cut *const c = r->cut;
    const int64_t lanes = c->own ? c->level->columns : 1;
    const int64_t plane = c->length[1] * c->length[2] * lanes;
    int64_t first[3], begin[3], past[3];
    bool whole = !c->own || (turn + 1) * lanes <= g->groups;
    for (int i = 0; i < 3; i++) {
        first[i] = r->first[i + 1] * g->stride[i] - g->pad[i];
        inside_of(first[i], c->step[i], c->length[i], g->in[i], &begin[i], &past[i]);
        whole = whole && begin[i] == 0 && past[i] == c->length[i];
    }
    const float *const x = r->x + turn * (c->own ? lanes : 1) * g->c * g->x_stride[1];
    for (int64_t n = 0; n < r->extent[0]; n++) {
        float *const image = r->x_copy + n * r->walk.step[0];
        if (!whole)
            memset(image + channel * r->channel, 0, (size_t)((end - channel) * r->channel) * sizeof(float));
        for (int64_t d = begin[0]; d < past[0]; d++)
            for (int64_t h = begin[1]; h < past[1]; h++)
                copy_row(r, turn, image + d * plane + (h * c->length[2] + begin[2]) * lanes,
                         x + (r->first[0] + n) * g->x_stride[0] + (first[0] + d * c->step[0]) * g->x_stride[2] +
                             (first[1] + h * c->step[1]) * g->x_stride[3] +
                             (first[2] + begin[2] * c->step[2]) * g->x_stride[4],
                         c->step[2] * g->x_stride[4], past[2] - begin[2], channel, end);
    }
}

/* The band's part of dy as [term][lane]. Lanes beyond the last are zero. */
static void copy_dy(const struct run *r, int64_t turn, int64_t panel)
{
    const struct weft_grad_weight *const g = r->g;
    const struct cut *const c = r->cut;
    const int64_t columns = c->level->columns, *const stride = g->dy_stride;
    const int64_t lane = c->own ? g->o * stride[1] : stride[1];
    const int64_t lanes = smaller(columns, c->own ? g->groups - turn * columns : g->o - panel * columns);
    const int64_t result = c->own ? turn * columns * g->o + panel : turn * g->o + panel * columns;
    const bool joined = stride[3] == r->extent[3] * stride[4]; /* rows are one */
    const int64_t rows = joined ? 1 : r->extent[2], terms = joined ? r->extent[2] * r->extent[3] : r->extent[3];
    float *to = r->dy_copy;
    if (lanes < columns)
        memset(to, 0, (size_t)(r->extent[0] * volume(r->extent + 1) * columns) * sizeof(float));
    for (int64_t n = 0; n < r->extent[0]; n++)
        for (int64_t d = 0; d < r->extent[1]; d++)
            for (int64_t h = 0; h < rows; h++, to += terms * columns)
                weft_gemm_gather(r->mover, to, columns,
                                 r->dy + result * stride[1] + (r->first[0] + n) * stride[0] +
                                     (r->first[1] + d) * stride[2] + (r->first[2] + h) * stride[3] +
                                     r->first[3] * stride[4],
                                 stride[4], lane, terms, lanes);
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Where tiles of this band find x: in place, or in its copy. */
static void place_x(struct run *r)
{
    const struct weft_grad_weight *const g = r->g;
    const struct cut *const c = r->cut;
    const int64_t lanes = c->own ? c->level->columns : 1;
    int64_t step[3] = {c->length[1] * c->length[2] * lanes, c->length[2] * lanes, lanes};
    r->channel = volume(c->length) * lanes;
    r->walk.step[0] = g->c * r->channel;
    if (c->in_place) {
        r->channel = g->x_stride[1];
        r->walk.step[0] = g->x_stride[0];
        memcpy(step, g->x_stride + 2, sizeof step);
    }
    memcpy(r->walk.extent, r->extent, sizeof r->walk.extent);
    r->from = c->in_place ? r->x + r->first[0] * g->x_stride[0] : r->x_copy;
    for (int i = 0; i < 3; i++) {
        r->walk.step[i + 1] = (c->in_place ? g->stride[i] : c->reach[i]) * step[i];
        r->tap[i] = g->dilation[i] * step[i];
        if (c->in_place)
            r->from += r->first[i + 1] * r->walk.step[i + 1];
    }
}

/* The place of a channel and a tap, by steps along axes: divisions for each would take a quarter of a tile's time. */
struct place {
    int64_t tap[3], at;
};

static struct place place_of(const struct weft_grad_weight *g, int64_t row, const int64_t step[3], int64_t channel)
{
    struct place p = {.at = row / volume(g->taps) * channel};
    int64_t rest = row % volume(g->taps);
    for (int axis = 2; axis >= 0; rest /= g->taps[axis], axis--) {
        p.tap[axis] = rest % g->taps[axis];
        p.at += p.tap[axis] * step[axis];
    }
    return p;
}

static void next_place(const struct weft_grad_weight *g, struct place *p, const int64_t step[3], int64_t channel)
{
    for (int axis = 2; axis >= 0; axis--) {
        p->at += step[axis];
        if (++p->tap[axis] < g->taps[axis])
            return;
        p->at -= g->taps[axis] * step[axis];
        p->tap[axis] = 0;
    }
    p->at += channel;
}

/* Tiles [begin, end) of one panel; sums of the first are at `sum`. */
static void add_tiles(const struct run *r, int64_t turn, int64_t begin, int64_t end, float *sum, bool more)
{
    const struct weft_grad_weight *const g = r->g;
    const struct cut *const c = r->cut;
    const struct weft_grad_weight_level *const level = c->level;
    const float *const x = r->from + (c->in_place ? turn * g->c * g->x_stride[1] : 0);
    struct place next = place_of(g, begin * level->rows, r->tap, r->channel);
    for (int64_t tile = begin; tile < end; tile++, sum += level->rows * level->columns) {
        const int rows = (int)smaller(level->rows, c->rows - tile * level->rows);
        int64_t at[WEFT_GRAD_ROWS];
        for (int i = 0; i < rows; i++, next_place(g, &next, r->tap, r->channel))
            at[i] = next.at;
        level->tile[c->own][rows - 1](&r->walk, x, at, r->dy_copy, sum, more);
    }
}

/* Units [begin, end) of the band. */
static void add_band(const struct run *r, int64_t begin, int64_t end, bool more)
{
    const struct cut *const c = r->cut;
    const int64_t taps = volume(r->g->taps), each = c->panels * c->groups_of_rows;
    float *sum = r->sum;
    int64_t turn = -1;
    while (begin < end) {
        const int64_t panel = begin / c->groups_of_rows, tile = begin % c->groups_of_rows;
        const int64_t tiles = smaller(c->groups_of_rows - tile, end - begin);
        if (panel / c->panels != turn) {
            turn = panel / c->panels;
            const bool several = smaller(end, (turn + 1) * each) - begin > tiles; /* panels of this turn */
            const int64_t past = smaller((tile + tiles) * c->level->rows, c->rows);
            if (!c->in_place)
                copy_x(r, turn, several ? 0 : tile * c->level->rows / taps, several ? r->g->c : pieces(past, taps));
        }
        copy_dy(r, turn, panel % c->panels);
        add_tiles(r, turn, tile, tile + tiles, sum, more);
        sum += tiles * c->level->rows * c->level->columns;
        begin += tiles;
    }
}

/* The sums of units [begin, end) to where they belong. */
static void store(const struct run *r, float *dw, int64_t begin, int64_t end)
{
    const struct weft_grad_weight *const g = r->g;
    const struct cut *const c = r->cut;
    const int64_t columns = c->level->columns, *const stride = g->dw_stride;
    const float *sum = r->sum;
    for (int64_t unit = begin; unit < end; unit++, sum += c->level->rows * columns) {
        const int64_t panel = unit / c->groups_of_rows, turn = panel / c->panels, place = panel % c->panels;
        const int64_t first = unit % c->groups_of_rows * c->level->rows;
        const int64_t lanes = smaller(columns, c->own ? g->groups - turn * columns : g->o - place * columns);
        const int64_t result = c->own ? turn * columns * g->o + place : turn * g->o + place * columns;
        const int64_t rows = smaller(c->level->rows, c->rows - first), step = (c->own ? g->o : 1) * stride[0];
        struct place next = place_of(g, first, stride + 2, stride[1]);
        for (int64_t row = 0; row < rows; row++, next_place(g, &next, stride + 2, stride[1]))
            for (int64_t lane = 0; lane < lanes; lane++)
                dw[result * stride[0] + next.at + lane * step] = sum[row * columns + lane];
    }
}

static void run_units(struct run *r, float *dw, int64_t begin, int64_t end)
{
    const struct weft_grad_weight *const g = r->g;
    const int64_t whole[4] = {g->images, g->out[0], g->out[1], g->out[2]}, *const step = r->cut->band.extent;
    bool more = false;
    int64_t *const at = r->first;
    for (at[0] = 0; at[0] < whole[0]; at[0] += step[0])
        for (at[1] = 0; at[1] < whole[1]; at[1] += step[1])
            for (at[2] = 0; at[2] < whole[2]; at[2] += step[2])
                for (at[3] = 0; at[3] < whole[3]; at[3] += step[3], more = true) {
                    for (int i = 0; i < 4; i++)
                        r->extent[i] = smaller(step[i], whole[i] - at[i]);
                    place_x(r);
                    add_band(r, begin, end, more);
                }
    if (!more)
        memset(r->sum, 0, (size_t)((end - begin) * r->cut->level->rows * r->cut->level->columns) * sizeof(float));
    store(r, dw, begin, end);
}

void weft_grad_weight_run(const struct weft_grad_weight *g, float *dw, const float *x, const float *dy, void *scratch,
                          void *shared, int part, int parts)
{
    if (g->winograd) {
        weft_grad_winograd_run(g, dw, x, dy, scratch, shared, part, parts);
        return;
    }
    const struct cut c = cut_of(g);
    struct run r = {.g = g, .cut = &c, .mover = weft_gemm_find(g->cpu), .x = x, .dy = dy, .x_copy = scratch};
    r.dy_copy = r.x_copy + aligned(c.x_floats);
    r.sum = r.dy_copy + aligned(c.dy_floats);
    int64_t begin, end;
    weft_share(c.units, 1, part, parts, &begin, &end);
    for (; begin < end; begin += g->units)
        run_units(&r, dw, begin, smaller(end, begin + g->units));
}
