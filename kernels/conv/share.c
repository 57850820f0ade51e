/* SPDX-License-Identifier: Apache-2.0 */
/* share.c: what the parts of COLUMNS, DIRECT, PHASES, TRANSPOSED and WINOGRAD share out: units, which are blocks
 * or rows of pixels of all groups and images, by inner pieces, which are tiles, panels or passes of the results of one.
 *
 * Where both cuts are as even, parts share what is read less of: those that share x also turn, gather or transform it
 * once each, and write neighbours in y. */
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/share.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Inner pieces are of `width` results each, but for the last, or of `vectors` in all; of neither: all alike. */
struct sharing {
    int64_t units, inner, width, vectors;
};

static enum weft_conv_form form_of(const struct weft_conv *conv) { return weft_conv_kernels[conv->form].form; }

/* DIRECT: its rows of y are in so many pieces, of which each is a unit. */
static struct sharing sharing_of(const struct weft_conv *conv, const struct weft_conv_shape *s, int64_t pieces)
{
    const struct weft_gemm_kernel *const kernel = conv->gemm.kernel;
    const enum weft_conv_form form = form_of(conv);
    const int64_t images = s->groups * s->n, slices = s->out[0] * s->out[1];
    struct sharing by = {0};
    if (form == WEFT_CONV_COLUMNS) {
        by.units = weft_conv_blocks(s, kernel->columns), by.inner = weft_pieces(s->o, kernel->rows);
    } else if (form == WEFT_CONV_DIRECT) {
        by.units = images * slices * pieces, by.inner = weft_direct_panels(kernel, s->o);
        by.vectors = weft_pieces(s->o, kernel->lanes);
    } else if (form == WEFT_CONV_PHASES) {
        by.units = images * slices * weft_phases_plan(s, kernel->lanes).pieces;
        by.inner = weft_phases_tiles(kernel->lanes, s->o);
    } else if (form == WEFT_CONV_TRANSPOSED) {
        const struct weft_transposed plan = weft_transposed_plan(conv, s);
        by.units = images * plan.grid.out[0] * plan.grid.out[1], by.inner = weft_direct_panels(kernel, s->o);
        by.vectors = weft_pieces(s->o, kernel->lanes);
    } else if (weft_winograd_of(form)) {
        const struct weft_winograd plan = weft_winograd_plan(conv, s, weft_winograd_of(form));
        by.units = images * plan.blocks, by.inner = plan.passes, by.width = plan.pass;
    }
    return by;
}

static int64_t most_pieces(const struct weft_conv_shape *s) { return weft_pieces(s->out[2], WEFT_DIRECT_PIECE); }
/* As many pieces of a row as give each part some, where there are too few rows. Parts that have different panels of one
 * piece each turn or copy what it sees, so panels count beside rows only where weights are more than x. */
static int64_t pieces_for(const struct weft_conv *conv, const struct weft_conv_shape *s, int parts)
{
    if (form_of(conv) != WEFT_CONV_DIRECT)
        return 1;
    const bool less_x = s->c * s->in[0] * s->in[1] * s->in[2] < s->o * s->k;
    const struct sharing whole = sharing_of(conv, s, 1);
    const int64_t all = whole.units * (less_x ? whole.inner : 1);
    return all > 0 && all < parts ? smaller(weft_pieces(parts, all), most_pieces(s)) : 1;
}

int64_t weft_conv_share_units(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    const struct sharing by = sharing_of(conv, s, most_pieces(s));
    return by.units * by.inner;
}

struct weft_conv_share weft_conv_share(const struct weft_conv *conv, const struct weft_conv_shape *s, int parts,
                                       int turns)
{
    const int64_t pieces = pieces_for(conv, s, parts);
    const struct sharing by = sharing_of(conv, s, pieces);
    const int64_t x = s->n * s->groups * s->c * s->in[0] * s->in[1] * s->in[2], w = s->o * s->k;
    if (by.units == 0 || by.inner == 0)
        return (struct weft_conv_share){.pieces = 1, .parts = parts};
    const struct weft_gemm_space space = {
        .extent = {by.units, 1, by.inner}, .weight = {weft_pieces(x, by.units), 0, weft_pieces(w, by.inner)},
        .last = by.width ? (double)(s->o - (by.inner - 1) * by.width) / (double)by.width : 1,
        .items = by.vectors};
    return (struct weft_conv_share){.boxes = weft_gemm_boxes(&space, parts, turns), .pieces = pieces, .parts = parts};
}

struct weft_conv_share weft_conv_share_of(const struct weft_conv *conv, const struct weft_conv_shape *s, int parts)
{
    return parts == conv->share.parts ? conv->share : weft_conv_share(conv, s, parts, 1);
}

bool weft_conv_share_box(const struct weft_conv_share *share, int part, int64_t ret_unit[2], int64_t ret_inner[2])
{
    int64_t begin[3], end[3];
    if (!weft_gemm_box_of_turn(&share->boxes, part, begin, end))
        return false;
    ret_unit[0] = begin[0], ret_unit[1] = end[0];
    ret_inner[0] = begin[2], ret_inner[1] = end[2];
    return true;
}
