/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c: what PHASES copies, its cost, and its weights. */
#include "kernels/conv/phases.h"
#include "kernels/walk.h"

enum {
    BAND_FLOATS = 16 << 10,  /* a small part of the second-level cache */
    LARGE_FLOATS = 64 << 10, /* where else each row of y has a band of its own, and each row of x is copied for every
                              * row of y that sees it: 64 to 3 channels of 256x256 took twice the time (Zen 4) */
    NEAR_FLOATS = 7 << 10,   /* of what a row of y sees, which the first-level cache keeps from tap to tap */
    COLUMNS = 64,            /* of a piece, at least, where a row is cut */
    MOST_STEP = 4,           /* that vectors are dealt out by */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

bool weft_phases_fit(const struct weft_conv_shape *s)
{
    const bool along = !s->y_rows && (s->y_at[2] == 1 || s->out[2] == 1) && (s->x_at[2] == 1 || s->in[2] == 1);
    return along && (s->stride[2] <= 2 || s->stride[2] == MOST_STEP);
}

/* Vectors of pixels that `rows` rows take. */
static int64_t vectors_of(const struct weft_phases *p, int64_t rows, int64_t lanes, bool joined)
{
    return joined ? weft_pieces((rows - 1) * p->pitch + p->columns, lanes) : rows * weft_pieces(p->columns, lanes);
}

struct weft_phases weft_phases_plan(const struct weft_conv_shape *s, int64_t lanes)
{
    struct weft_phases p = {.pieces = 1};
    for (int d = 0; d < 2; d++) {
        p.dealt[d] = s->dilation[1 + d] == 1 ? smaller(s->kernel[1 + d], s->stride[1 + d]) : s->stride[1 + d];
        p.seen[d] = (s->kernel[1 + d] - 1) * s->dilation[1 + d] / s->stride[1 + d];
    }
    const int64_t phases = s->c * s->kernel[0] * p.dealt[0] * p.dealt[1], room = BAND_FLOATS / phases;
    const int64_t near = NEAR_FLOATS / phases / (1 + p.seen[0]) / lanes * lanes;
    const int64_t wide = larger((near - p.seen[1]) / lanes * lanes, COLUMNS);
    if (s->out[2] > wide)
        p.pieces = weft_pieces(s->out[2], wide);
    p.columns = p.pieces == 1 ? s->out[2] : weft_pieces(weft_pieces(s->out[2], p.pieces), lanes) * lanes;
    p.pieces = weft_pieces(s->out[2], p.columns);
    p.width = p.pitch = p.columns + p.seen[1];
    const int64_t rows = room / p.pitch - p.seen[0], most = LARGE_FLOATS / phases / p.pitch - p.seen[0];
    p.rows = smaller(s->out[1], larger(rows > 1 ? rows : most, 1));
    p.rows = weft_pieces(s->out[1], weft_pieces(s->out[1], p.rows));
    p.joined = p.pieces == 1 && vectors_of(&p, p.rows, lanes, true) < vectors_of(&p, p.rows, lanes, false);
    if (!p.joined)
        p.pitch = weft_conv_aligned(p.pitch);
    /* Behind a phase there is a vector that its last row may be written past and read past; phases an odd number of
     * lines apart do not meet in the first-level cache. */
    p.phase = (((p.rows + p.seen[0]) * p.pitch + WEFT_CONV_SLACK + 15) / 16 | 1) * 16;
    p.depth = p.dealt[0] * p.dealt[1] * p.phase;
    p.channel = s->kernel[0] * p.depth;
    p.band_size = s->c * p.channel;
    p.list_size = weft_conv_aligned(2 * s->k) + weft_conv_aligned(p.width + lanes) * s->stride[2]; /* and masks */
    return p;
}

/* Cycles, about: of a tile's beginning and end, of a row of x that is dealt out, and of a vector of it; what a
 * multiply-add takes where the second-level cache gives each term of a tile its lines. */
#define TILE_COST 60
#define ROW_COST  10
#define DEAL_COST 5
#define STEP_COST 14 /* at a step of two or four */
#define FAR_COST  1.3

double weft_phases_costs(const struct weft_conv_shape *s, int64_t lanes)
{
    const struct weft_phases p = weft_phases_plan(s, lanes);
    const int64_t bands = s->out[0] * weft_pieces(s->out[1], p.rows) * p.pieces, planes = s->c * s->kernel[0];
    const int64_t vectors = vectors_of(&p, p.rows, lanes, p.joined), rows = planes * p.dealt[0] * (p.rows + p.seen[0]);
    const int64_t near = planes * p.dealt[0] * p.dealt[1] * (1 + p.seen[0]) * p.pitch;
    const double work = (double)vectors * (double)s->o * (double)s->k * (near > NEAR_FLOATS ? FAR_COST : 1);
    const double tiles = (double)(weft_phases_tiles(lanes, s->o) * weft_pieces(vectors, 3));
    const double each = s->stride[2] == 1 ? DEAL_COST : STEP_COST;
    const double deal = (double)rows * (ROW_COST + each * (double)(weft_pieces(p.width, lanes) * s->stride[2]));
    return (double)bands * (work + TILE_COST * tiles + deal);
}

void weft_phases_pack(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                      const struct weft_conv_weights *at, int part, int parts)
{
    const int64_t tiles = weft_phases_tiles(weft_packing_kernel(p)->lanes, p->o), taps = weft_packing_taps(p);
    int64_t unit, past;
    weft_share(tiles * taps, 1, part, parts, &unit, &past);
    for (; unit < past; unit++) {
        const int64_t first = weft_cut(p->o, tiles, unit / taps), end = weft_cut(p->o, tiles, unit / taps + 1);
        int64_t tap[3];
        weft_conv_unravel(p->taps, unit % taps, tap);
        float *to = pack + (first * taps + unit % taps * (end - first)) * p->c;
        const weft_loose_f32 *from = w + weft_conv_offset(tap, at->tap);
        for (int64_t c = 0; c < p->c; c++) {
            for (int64_t o = first; o < end; o++)
                *to++ = from[o * at->o + c * at->c];
        }
    }
}
