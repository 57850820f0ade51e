/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.c: when Winograd's transforms pay, and how its loops lie in memory. */
#include "kernels/conv/winograd.h"

#include <math.h>

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- the rule ----------------------------------------------------------------------------------------------------- */

/* What one element costs in multiply-adds of a product that runs at its peak: through the transform of x, through that
 * of M, and a float of U that comes from memory. */
#define X_COST 80.0
#define M_COST 60.0
#define U_COST 8.0
#define SHARED_U_COST 16.0 /* where all cores read theirs at once */

static double tiles_of(const struct weft_conv_shape *s, int m)
{
    return (double)weft_pieces(s->out[1], m) * (double)weft_pieces(s->out[2], m);
}

/* Multiply-adds that the convolution of one image and group is worth. How many images there are does not count: weights
 * are packed for one formula, and an image alone gets the bits that it gets in a batch. */
static double cost(const struct weft_conv_shape *s, int m)
{
    const double c = (double)s->c, o = (double)s->o;
    if (m == 0)
        return 9 * c * o * ((double)s->pixels + U_COST);
    const double points = (m + 2) * (m + 2), share = points / 16;
    return points * c * o * (tiles_of(s, m) + U_COST) + tiles_of(s, m) * share * (X_COST * c + M_COST * o);
}

bool weft_winograd_fits(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    bool fits = conv->spatial == 2 && s->c >= 16 && s->o >= 8 && conv->arithmetic != WEFT_CONV_CHAIN && !s->adjoint;
    for (int d = 1; d < 3; d++)
        fits = fits && s->kernel[d] == 3 && s->stride[d] == 1 && s->dilation[d] == 1;
    return fits;
}

int weft_winograd_choose(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    if (!weft_winograd_fits(conv, s))
        return 0;
    int best = 0;
    const int most = conv->arithmetic == WEFT_CONV_F4 ? 4 : 2;
    for (int m = 2; m <= most; m += 2) {
        if (cost(s, m) < cost(s, best))
            best = m;
    }
    return best;
}

/* --- loops -------------------------------------------------------------------------------------------------------- */

enum {
    V_FLOATS = 128 << 10, /* of a block: it is read once a pass, so it may leave the second-level cache */
    LEAST_TILES = 48,     /* which a panel of weights has to meet before the next one is fetched */
    MOST_TILES = 96,
    SMALLEST_BLOCK = 12,
};

/* Tiles of a block at most that the caches should hold. */
static int64_t block_tiles(const struct weft_conv_shape *s, int m)
{
    const int64_t points = (m + 2) * (m + 2), fits = V_FLOATS / (points * weft_conv_aligned(s->c));
    return smaller(fits < LEAST_TILES ? LEAST_TILES : fits, MOST_TILES);
}

/* Multiply-adds that the part with the most work is worth. Parts that share a block each transform it; a pass of a
 * block reads its weights once, from a cache that all cores share. */
static double part_cost(const struct weft_conv_shape *s, int m, int64_t blocks, int64_t pass, int workers)
{
    const double points = (m + 2) * (m + 2), share = points / 16, c = (double)s->c, o = (double)pass;
    const double tiles = tiles_of(s, m) / (double)blocks;
    const int64_t images = s->n * s->groups, passes = weft_pieces(s->o, pass);
    const int64_t all = images < 1 ? blocks : images * blocks; /* plans are made for no image at all, too */
    const int64_t together = all < workers ? smaller(workers / all, passes) : 1; /* parts of one block */
    const double one = points * c * o * (tiles + SHARED_U_COST) + tiles * share * M_COST * o;
    return (double)weft_pieces(all, workers) *
           (tiles * share * X_COST * c + (double)weft_pieces(passes, together) * one);
}

/* Blocks are no larger than the caches hold, and as small as evens out the work of all parts. */
void weft_winograd_spread(struct weft_conv *conv, const struct weft_conv_shape *s, int m, int workers)
{
    const int64_t tiles = weft_pieces(s->out[1], m) * weft_pieces(s->out[2], m);
    const int64_t fewest = weft_pieces(tiles, block_tiles(s, m)), smallest = weft_pieces(tiles, SMALLEST_BLOCK);
    const int64_t most = smaller(fewest + 2 * workers, smallest < fewest ? fewest : smallest);
    double best = INFINITY;
    for (int64_t pass = WEFT_WINOGRAD_PASS; pass >= WEFT_WINOGRAD_LEAST; pass /= 2) {
        for (int64_t blocks = fewest; blocks <= most; blocks++) {
            const double cost = part_cost(s, m, blocks, pass, workers);
            if (cost < best)
                best = cost, conv->blocks = (int32_t)blocks, conv->pass = (int32_t)pass;
        }
    }
}

struct weft_winograd weft_winograd_plan(const struct weft_conv *conv, const struct weft_conv_shape *s, int m)
{
    const int64_t points = (m + 2) * (m + 2), columns = conv->gemm.kernel->columns;
    struct weft_winograd p = {.rows = weft_pieces(s->out[1], m), .columns = weft_pieces(s->out[2], m)};
    p.v_tile = weft_conv_aligned(s->c);
    p.blocks = conv->blocks;
    p.block = weft_pieces(p.rows * p.columns, p.blocks);
    p.pass = conv->pass;
    p.passes = weft_pieces(s->o, p.pass);
    p.v_point = p.block * p.v_tile + WEFT_WINOGRAD_STAGGER;
    p.m_point = p.block * WEFT_WINOGRAD_PASS + WEFT_WINOGRAD_STAGGER;
    p.band_row = WEFT_WINOGRAD_PIXELS * WEFT_WINOGRAD_CHANNELS + WEFT_WINOGRAD_STAGGER;
    p.v_size = points * p.v_point, p.m_size = points * p.m_point;
    p.band_size = (m + 2) * p.band_row;
    p.u_point = weft_winograd_u_point(s->c, columns);
    p.pass_size = points * p.u_point;
    return p;
}
