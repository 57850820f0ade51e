/* SPDX-License-Identifier: Apache-2.0 */
/* format_move.c: what it costs to move a value into another layout, or into another shape where that is no view.
 *
 *   %b = relayout %a       {0 1 2} to {1 0 2}      runs of axis 2: copied as they are
 *   %c = relayout %a       {0 1 2} to {2 0 1}      transposed by tiles
 *   %r = reshape %t        stored {0 2 1}          axes that are merged lie apart: a copy, of runs or transposed
 *
 * Which loops a copy takes is the copying kernel's choice, by all extents and strides; so it is asked, with sizes at
 * their hints, and each kind of loops has a price beside a plain copy. */
#include "sched/format.h"

#include "kernels/relayout/reshape.h"

static const enum weft_price price_of[] = {
    [WEFT_MOVE_TRANSPOSE] = WEFT_PRICE_convert_transpose_near, [WEFT_MOVE_DEAL] = WEFT_PRICE_convert_deal_near,
    [WEFT_MOVE_WEAVE] = WEFT_PRICE_convert_weave_near,         [WEFT_MOVE_NARROW] = WEFT_PRICE_convert_single_near,
    [WEFT_MOVE_OTHER] = WEFT_PRICE_convert_general_near,
};

/* A value in memory: the axes that `stored` does not have are repeated. */
struct side {
    const struct weft_type *type;
    const struct weft_layout *layout;
    uint32_t stored;
};

/* An axis as the kernel sees it, or several where it is split, outermost first; false where those are too many, or
 * where blocks are filled up, which is more elements than the value has. */
static bool add_digits(const struct weft_graph *g, const struct weft_type *type, const struct weft_layout *layout,
                       int axis, const int64_t *stride, int64_t *ret_extent, int64_t *ret_stride, int32_t *rank)
{
    int digit[WEFT_MAX_STORAGE], digits = 0;
    int64_t product = 1;
    for (int i = 0; i < layout->axes; i++) {
        int at = digits;
        if (layout->axis[i].axis != axis)
            continue;
        for (digits++; at > 0 && layout->axis[digit[at - 1]].div < layout->axis[i].div; at--)
            digit[at] = digit[at - 1];
        digit[at] = i;
    }
    for (int k = 0; k < digits; k++) {
        if (*rank == WEFT_K_RANK)
            return false;
        ret_extent[*rank] = weft_dim_hint(g->dims, weft_layout_axis_extent(g->dims, layout, digit[k], type));
        ret_stride[*rank] = stride[digit[k]];
        product *= ret_extent[(*rank)++];
    }
    return product == weft_dim_hint(g->dims, type->extent[axis]);
}

/* Extents in logical order, and strides. */
static bool see(const struct weft_graph *g, const struct side *side, int64_t *ret_extent, int64_t *ret_stride,
                int32_t *ret_rank)
{
    const struct weft_layout *layout = side->layout;
    int64_t stride[WEFT_MAX_STORAGE], step = 1;
    for (int i = layout->axes - 1; i >= 0; i--) {
        const bool is_stored = side->stored >> layout->axis[i].axis & 1;
        const int64_t extent = weft_dim_hint(g->dims, weft_layout_axis_extent(g->dims, layout, i, side->type));
        stride[i] = !is_stored ? 0 : layout->dense ? step : weft_dim_hint(g->dims, layout->stride[i]);
        step *= is_stored && extent > 0 ? extent : 1;
    }
    *ret_rank = 0;
    for (int axis = 0; axis < side->type->rank; axis++)
        if (!add_digits(g, side->type, layout, axis, stride, ret_extent, ret_stride, ret_rank))
            return false;
    return true;
}

/* Prices are of copies that are made over and over again. In a graph other steps come in between, and what is copied
 * has left the nearest caches, in part. */
enum { COLD = 130 }; /* % */

int64_t weft_format_move_ps(const struct weft_formats *f, int64_t bytes, enum weft_price near)
{
    const enum weft_price level = weft_format_level(f->target, WEFT_PRICE_copy_private, bytes);
    const double percent = (double)weft_price_of(f->target, near + (level != WEFT_PRICE_copy_private));
    return weft_format_rate_ps(f, (double)bytes * percent * COLD * 1e-4, level);
}

enum { LINE = 64 }; /* bytes of the runs that the price of lines is of */

/* What ends and begins with a run is the less the longer it is: of runs of two lines a quarter of what it is of one.
 * But no run costs twice what its elements would one by one. */
int64_t weft_format_runs_ps(const struct weft_formats *f, int64_t bytes, int64_t run)
{
    const double share = run > 0 ? (double)LINE / (double)run : LINE;
    const int64_t runs = weft_format_move_ps(f, bytes, WEFT_PRICE_convert_runs_near);
    const int64_t lines = weft_format_move_ps(f, bytes, WEFT_PRICE_convert_lines_near);
    const int64_t single = weft_format_move_ps(f, bytes, WEFT_PRICE_convert_general_near);
    const double ps = (double)runs + (lines > runs ? (double)(lines - runs) * share * share : 0);
    return ps < 2.0 * (double)single ? (int64_t)ps : 2 * single;
}

/* Blocks that are filled up are copied by digits (lower_blocks); what has not one shape on both sides is none of those.
 * */
static int64_t blocks_ps(const struct weft_formats *f, int64_t bytes, const struct side *from, const struct side *to)
{
    int64_t run;
    const enum weft_conversion kind =
        from->type != to->type ? WEFT_CONVERT_GENERAL
                               : weft_layout_conversion(f->graph->dims, from->layout, to->layout, to->type, &run);
    return kind == WEFT_CONVERT_RUNS ? weft_format_runs_ps(f, bytes, weft_dtype_bytes(to->type->dtype, run))
                                     : weft_format_move_ps(f, bytes, kind == WEFT_CONVERT_TRANSPOSE
                                                                         ? WEFT_PRICE_convert_transpose_near
                                                                         : WEFT_PRICE_convert_general_near);
}

static int64_t move_ps(const struct weft_formats *f, int64_t bytes, const struct side *from, const struct side *to)
{
    const struct weft_graph *g = f->graph;
    const unsigned bits = weft_dtype_bits(to->type->dtype);
    struct weft_reshape move = {.bytes = (int32_t)bits / 8, .cpu = f->target->cpu, .cache = f->target->l3};
    int64_t run;
    if (bits < 8) /* of whole bytes, in a line */
        return weft_format_move_ps(f, bytes, WEFT_PRICE_convert_runs_near);
    if (!see(g, from, move.in_extent, move.in_stride, &move.in_rank) ||
        !see(g, to, move.out_extent, move.out_stride, &move.out_rank))
        return blocks_ps(f, bytes, from, to);
    weft_reshape_prepare(&move, 1);
    const enum weft_move kind = weft_reshape_move(&move, &run);
    return kind == WEFT_MOVE_RUNS ? weft_format_runs_ps(f, bytes, run) : weft_format_move_ps(f, bytes, price_of[kind]);
}

/* Most values lie so: without a layout in between. */
static void row_major_strides(const struct weft_graph *g, weft_val value, int64_t *ret_stride)
{
    const struct weft_type *type = weft_type_of(g, value);
    const uint32_t stored = weft_format_stored_axes(g, value);
    int64_t step = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        const int64_t extent = weft_dim_hint(g->dims, type->extent[axis]);
        const bool is_stored = stored >> axis & 1;
        ret_stride[axis] = is_stored ? step : 0;
        step *= is_stored && extent > 0 ? extent : 1;
    }
}

bool weft_format_strides(const struct weft_formats *f, weft_val value, uint32_t number, int64_t *ret_stride)
{
    const struct weft_type *type = weft_type_of(f->graph, value);
    if (number == 0) {
        row_major_strides(f->graph, value, ret_stride);
        return true;
    }
    const struct weft_layout layout = weft_layout_at(f->graph, number, type->rank);
    const struct side side = {type, &layout, weft_format_stored_axes(f->graph, value)};
    int64_t extent[WEFT_K_RANK];
    int32_t rank;
    return layout.axes == type->rank && see(f->graph, &side, extent, ret_stride, &rank);
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

/* With all workers, however many there are: sums in another layout are added in another order, and the number of
 * workers may change no bit. */
int64_t weft_format_step_ps(const struct weft_formats *f)
{
    return 1000 * weft_price_of(f->target, WEFT_PRICE_step);
}

static int64_t bytes_of(const struct weft_formats *f, weft_val value)
{
    return weft_dtype_bytes(weft_type_of(f->graph, value)->dtype, weft_format_elements(f->graph, value));
}

int64_t weft_format_copy_ps(const struct weft_formats *f, weft_val value, const struct weft_layout *from,
                            weft_val result, const struct weft_layout *to)
{
    const struct side source = {weft_type_of(f->graph, value), from, weft_format_stored_axes(f->graph, value)};
    const struct side target = {weft_type_of(f->graph, result), to, UINT32_MAX};
    return weft_format_step_ps(f) + move_ps(f, bytes_of(f, result), &source, &target);
}

int64_t weft_format_relayout_ps(const struct weft_formats *f, weft_val value, const struct weft_layout *from,
                                const struct weft_layout *to)
{
    const int64_t bytes = bytes_of(f, value);
    if (!weft_layout_equal(f->graph->dims, from, to, weft_type_of(f->graph, value)))
        return weft_format_copy_ps(f, value, from, value, to);
    return weft_format_step_ps(f) +
           weft_format_rate_ps(f, (double)bytes, weft_format_level(f->target, WEFT_PRICE_copy_private, bytes));
}

static int64_t convert_ps(const struct weft_formats *f, weft_val value, uint32_t from, uint32_t to)
{
    const struct weft_type *type = weft_type_of(f->graph, value);
    const struct weft_layout a = weft_layout_at(f->graph, from, type->rank);
    const struct weft_layout b = weft_layout_at(f->graph, to, type->rank);
    return weft_layout_equal(f->graph->dims, &a, &b, type) ? 0 : weft_format_copy_ps(f, value, &a, value, &b);
}

int64_t weft_format_convert_ps(const struct weft_formats *f, weft_val value, uint32_t from, uint32_t to)
{
    if (from == to)
        return 0;
    struct weft_format_known *known = WEFT_RECALL(f, WEFT_RECALL_CONVERT, f->kind[value.id], from, to);
    if (!known->answer) {
        int64_t *ps = weft_new(f->arena, int64_t, 1);
        *ps = convert_ps(f, value, from, to);
        known->answer = ps;
    }
    return *(const int64_t *)known->answer;
}
