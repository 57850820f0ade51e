/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_grid.c: how a product is shared out: a box of whole tiles for each part.
 *
 * Boxes and not runs of tiles, since a part reads the rows of A and the columns of B that its box spans: a box of 8 x 8
 * tiles reads a quarter of what 64 tiles in a row of columns do. The grid need not use all parts: 30 x 30 tiles for 61
 * workers are 60 boxes of 5 x 3 rather than 61 of one row or less. */
#include "kernels/gemm/gemm.h"

#include <assert.h>
#include <string.h>

enum { PART_FLOPS = 200000 }; /* about 2 us of one core, which is what it takes to meet another one twice */

/* How long the first `units` units along axis 2 are. */
static double length(const struct weft_gemm_space *space, int64_t units)
{
    const int64_t all = space->extent[2];
    if (space->items)
        return (double)(weft_cut_evenly(space->items, all, units) * all) / (double)space->items;
    return (double)units - (units == all ? 1 - space->last : 0);
}

/* The longest of so many pieces of an axis, in units, as weft_gemm_box cuts it. A run with another number of parts than
 * was prepared asks in each part, so pieces are looked at one by one only where units differ. */
static double longest(const struct weft_gemm_space *space, int d, int pieces)
{
    const int64_t units = space->extent[d];
    const bool alike = units == 0 || (space->items ? space->items % units == 0 : space->last == 1);
    if (d < 2 || alike)
        return (double)weft_pieces(units, pieces);
    double most = 0, at = 0;
    for (int i = 1; i <= pieces; i++) {
        const double end = length(space, weft_cut_evenly(units, pieces, i));
        most = end - at > most ? end - at : most, at = end;
    }
    return most;
}

void weft_gemm_grid(const struct weft_gemm_space *space, int parts, int ret_cut[3])
{
    const int64_t *const extent = space->extent;
    double best = -1;
    for (int x = 1; x <= parts && (x <= extent[0] || x == 1); x++) {
        for (int y = 1; y <= parts / x && (y <= extent[1] || y == 1); y++) {
            const int most = parts / x / y;
            const int z = extent[2] < most ? extent[2] < 1 ? 1 : (int)extent[2] : most;
            const int cut[3] = {x, y, z};
            double box = 1, surface = 0;
            for (int d = 0; d < 3; d++) {
                const double side = longest(space, d, cut[d]);
                box *= side;
                surface += side * (double)space->weight[d];
            }
            /* The surface breaks ties, and what is next to one by a short unit: it stays below one unit of volume. */
            const double cost = box + surface / (1 + surface);
            if (best < 0 || cost < best) {
                best = cost;
                memcpy(ret_cut, cut, sizeof cut);
            }
        }
    }
}

bool weft_gemm_box(const int64_t extent[3], const int32_t cut[3], int part, int64_t ret_begin[3], int64_t ret_end[3])
{
    const int at[3] = {part / cut[2] / cut[1], part / cut[2] % cut[1], part % cut[2]};
    if (at[0] >= cut[0])
        return false;
    for (int d = 0; d < 3; d++) {
        ret_begin[d] = weft_cut_evenly(extent[d], cut[d], at[d]);
        ret_end[d] = weft_cut_evenly(extent[d], cut[d], at[d] + 1);
    }
    return true;
}

/* Parts that somebody has to wait for should not be long, and not be many: 5 to 10 us of one core, three of a worker.
 */
int32_t weft_gemm_turns(double flops, int32_t parts, int64_t units)
{
    enum { TURNS = 3, TURN_FLOPS = 1000000 };
    return parts > 1 && flops >= (double)TURN_FLOPS * TURNS * parts && units >= TURNS ? TURNS : 1;
}

struct weft_gemm_boxes weft_gemm_boxes(const struct weft_gemm_space *space, int parts, int turns)
{
    struct weft_gemm_boxes boxes = {.extent = {space->extent[0], space->extent[1], space->extent[2]}, .turns = turns};
    int64_t most = -1;
    assert(turns >= 1 && parts % turns == 0);
    weft_gemm_grid(space, parts / turns, boxes.cut);
    for (int d = 0; d < 3; d++) {
        const int64_t side = space->extent[d] / boxes.cut[d], fits = side >= turns ? INT64_MAX / 2 : 0;
        const int64_t rank = fits + side * space->weight[d];
        if (rank > most)
            most = rank, boxes.axis = d;
    }
    return boxes;
}

bool weft_gemm_box_of_turn(const struct weft_gemm_boxes *boxes, int part, int64_t ret_begin[3], int64_t ret_end[3])
{
    const int turns = boxes->turns, axis = boxes->axis;
    if (turns == 0 || !weft_gemm_box(boxes->extent, boxes->cut, part / turns, ret_begin, ret_end))
        return false;
    const int64_t begin = ret_begin[axis], units = ret_end[axis] - begin;
    ret_begin[axis] = begin + weft_cut_evenly(units, turns, part % turns);
    ret_end[axis] = begin + weft_cut_evenly(units, turns, part % turns + 1);
    return ret_begin[axis] < ret_end[axis];
}

/* Each box is cut across its longer side, so that what it reads most of is still read once. */
void weft_gemm_take_turns(double flops, const int64_t extent[3], const int64_t weight[3], int32_t cut[3])
{
    const int64_t rows = extent[1] / cut[1], columns = extent[2] / cut[2];
    const int d = columns * weight[2] >= rows * weight[1] ? 2 : 1;
    cut[d] *= weft_gemm_turns(flops, cut[0] * cut[1] * cut[2], d == 2 ? columns : rows);
}

int32_t weft_gemm_parts(double flops, int64_t units, int workers)
{
    const double worth = flops / (PART_FLOPS / 2);
    if (flops < PART_FLOPS || units < 2 || workers < 2)
        return 1;
    const int64_t most = units < workers ? units : workers;
    return (int32_t)(worth < (double)most ? worth : (double)most);
}

/* Do parts share pixels and nothing else? Where those are even, and more than what each part reads of the other
 * operand. Else it is as the grid says. */
static bool shares_pixels(const struct weft_gemm *g)
{
    const struct weft_gemm_loops *const l = &g->loops;
    const int axis = g->pixels == WEFT_GEMM_ROW_PIXELS ? 1 : 2;
    const int64_t units = l->units[axis], fullest = weft_pieces(units, g->parts) * g->parts;
    const int64_t pixels = axis == 1 ? l->m : l->n, others = axis == 1 ? l->n : l->m;
    return g->pixels != WEFT_GEMM_NO_PIXELS && !g->swapped && l->units[0] <= 1 && 10 * fullest <= 11 * units &&
           pixels >= 2 * others && (axis == 1 || others <= l->k);
}

bool weft_gemm_share_pixels(const struct weft_gemm *g, double flops, int32_t cut[3])
{
    if (!shares_pixels(g))
        return false;
    const int axis = g->pixels == WEFT_GEMM_ROW_PIXELS ? 1 : 2;
    cut[0] = cut[1] = cut[2] = 1;
    cut[axis] = g->parts * (g->takes_turns ? weft_gemm_turns(flops, g->parts, g->loops.units[axis] / g->parts) : 1);
    return true;
}
