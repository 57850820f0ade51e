/* SPDX-License-Identifier: Apache-2.0 */
/* pool_grad.c: the gradient of maxima of windows.
 *
 * A plane of the result is cleared and then added to while it is in a near cache, window after window. Where channels
 * lie side by side an image takes the place of a plane, or some channels of it if there are fewer images than parts:
 * a few channels alone would leave most sets of a cache unused. Parts are planes, images or channels, so nobody else
 * adds there, and the order is the same in any number of parts.
 * Why not ask each element for the windows that contain it: with 3x3 windows at steps of 2 that is as many comparisons
 * as vectors can do in this time, and would need to know the windows. */
#include "kernels/strip/pool_grad.h"
#include "kernels/walk.h"

#include <string.h>

enum { GRAIN = 16 }; /* channels: a line of a cache, which parts must not share */

/* With exactly three spatial axes: depth, height, width. */
struct planes {
    const struct weft_pool_grad *grad;
    int64_t dx[3], dy[3], dx_step[3], dy_step[3], index_step[3];
    int64_t size;   /* places of a plane */
    int64_t joined; /* from place to place, if that is the same everywhere, or 0 */
};

static struct planes planes_of(const struct weft_pool_grad *grad)
{
    struct planes p = {.grad = grad};
    for (int i = 0; i < 3; i++) {
        const int axis = i - (3 - grad->spatial);
        const bool real = axis >= 0;
        p.dx[i] = real ? grad->dx_extent[axis] : 1;
        p.dy[i] = real ? grad->dy_extent[axis] : 1;
        p.dx_step[i] = real ? grad->dx_stride[2 + axis] : 0;
        p.dy_step[i] = real ? grad->dy_stride[2 + axis] : 0;
        p.index_step[i] = real ? grad->index_stride[2 + axis] : 0;
    }
    p.size = p.dx[0] * p.dx[1] * p.dx[2];
    p.joined = p.dx_step[2];
    if ((p.dx[1] > 1 && p.dx_step[1] != p.dx[2] * p.dx_step[2]) ||
        (p.dx[0] > 1 && p.dx_step[0] != p.dx[1] * p.dx[2] * p.dx_step[2]))
        p.joined = 0;
    return p;
}

void weft_pool_grad_prepare(struct weft_pool_grad *grad, int workers)
{
    const struct planes p = planes_of(grad);
    const int64_t elements = grad->n * grad->c * (p.size + 4 * p.dy[0] * p.dy[1] * p.dy[2]);
    const int32_t parts = weft_parts_for(4 * elements, workers);
    int64_t units = grad->n * grad->c;
    grad->block = 1;
    if (grad->dx_stride[1] == 1 && units > 0) {
        const int64_t shares = grad->n < parts ? (parts + grad->n - 1) / grad->n : 1; /* of an image */
        grad->block = ((grad->c + shares - 1) / shares + GRAIN - 1) / GRAIN * GRAIN;
        units = grad->n * ((grad->c + grad->block - 1) / grad->block);
    }
    grad->inside = grad->block > 1 && grad->dy_stride[1] == 1;
    grad->parts = units < 1 ? 1 : units < parts ? (int32_t)units : parts;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Elements of dy that are so far apart, as are the channels that they belong to and their places' numbers. */
struct line {
    int64_t n, dx, dy, index;
};

static int64_t place_in(const struct planes *p, int64_t place)
{
    return place / p->dx[2] / p->dx[1] * p->dx_step[0] + place / p->dx[2] % p->dx[1] * p->dx_step[1] +
           place % p->dx[2] * p->dx_step[2];
}

static inline __attribute__((always_inline)) void add_each(const struct planes *p, bool wide, int64_t joined,
                                                           struct line line, float *dx, const float *dy,
                                                           const void *index)
{
    const uint64_t size = (uint64_t)p->size;
    for (int64_t i = 0; i < line.n; i++) {
        const int64_t at = i * line.index;
        const int64_t place = wide ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
        if ((uint64_t)place < size)
            dx[i * line.dx + (joined ? place * joined : place_in(p, place))] += dy[i * line.dy];
    }
}

static void add_line(const struct planes *p, struct line line, float *dx, const float *dy, const void *index)
{
    const bool wide = p->grad->index_dtype == WEFT_K_I64;
    const struct line along = {line.n, 0, 1, 1}, across = {line.n, 1, 1, 1};
    if (!wide)
        add_each(p, false, p->joined, line, dx, dy, index);
    else if (p->joined == 1 && line.dx == 0 && line.dy == 1 && line.index == 1)
        add_each(p, true, 1, along, dx, dy, index);
    else if (p->joined && line.dx == 1 && line.dy == 1 && line.index == 1)
        add_each(p, true, p->joined, across, dx, dy, index);
    else
        add_each(p, true, p->joined, line, dx, dy, index);
}

/* --- planes ------------------------------------------------------------------------------------------------------- */

static void clear(const struct planes *p, float *dx, int64_t channels)
{
    const int64_t apart = p->grad->dx_stride[1];
    if ((channels == 1 && p->joined == 1) || (apart == 1 && p->joined == channels)) {
        memset(dx, 0, (size_t)(p->size * channels) * sizeof *dx);
        return;
    }
    for (int64_t z = 0; z < p->dx[0]; z++)
        for (int64_t y = 0; y < p->dx[1]; y++) {
            float *at = dx + z * p->dx_step[0] + y * p->dx_step[1];
            for (int64_t x = 0; x < p->dx[2]; x++, at += p->dx_step[2])
                for (int64_t c = 0; c < channels; c++)
                    at[c * apart] = 0;
        }
}

/* `channels` planes side by side. */
static void some_planes(const struct planes *p, float *dx, const float *dy, const char *index, int64_t channels)
{
    const struct weft_pool_grad *const g = p->grad;
    const int64_t bytes = g->index_dtype == WEFT_K_I64 ? 8 : 4;
    const struct line across = {channels, g->dx_stride[1], g->dy_stride[1], g->index_stride[1]};
    const struct line along = {p->dy[2], 0, p->dy_step[2], p->index_step[2]};
    clear(p, dx, channels);
    for (int64_t z = 0; z < p->dy[0]; z++)
        for (int64_t y = 0; y < p->dy[1]; y++) {
            const float *const row = dy + z * p->dy_step[0] + y * p->dy_step[1];
            const char *const places = index + (z * p->index_step[0] + y * p->index_step[1]) * bytes;
            for (int64_t c = 0; !g->inside && c < channels; c++)
                add_line(p, along, dx + c * g->dx_stride[1], row + c * g->dy_stride[1],
                         places + c * g->index_stride[1] * bytes);
            for (int64_t x = 0; g->inside && x < p->dy[2]; x++)
                add_line(p, across, dx, row + x * p->dy_step[2], places + x * p->index_step[2] * bytes);
        }
}

void weft_pool_grad_run(const struct weft_pool_grad *g, float *dx, const float *dy, const void *index, int part,
                        int parts)
{
    const struct planes p = planes_of(g);
    const int64_t blocks = (g->c + g->block - 1) / g->block, bytes = g->index_dtype == WEFT_K_I64 ? 8 : 4;
    int64_t at, end;
    weft_share(g->n * blocks, 1, part, parts, &at, &end);
    for (; at < end && p.size > 0; at++) {
        const int64_t n = at / blocks, c = at % blocks * g->block;
        some_planes(&p, dx + n * g->dx_stride[0] + c * g->dx_stride[1],
                    dy + n * g->dy_stride[0] + c * g->dy_stride[1],
                    (const char *)index + (n * g->index_stride[0] + c * g->index_stride[1]) * bytes,
                    g->c - c < g->block ? g->c - c : g->block);
    }
}

const char *weft_pool_grad_name(const struct weft_pool_grad *grad) { return "weft_pool_grad_f32__ref"; }
