/* SPDX-License-Identifier: Apache-2.0 */
/* format_kernel.c: what kernels cost that know two orders: row-major and channels-last; and what is put together.
 *
 *   %p = max_pool %y      taps of p · rate, by whether its rows fill a vector
 *   %c = concat %p, %q    in place: nothing where pieces are long; writing with gaps where they are short
 *                         (channels-last); a copy where they are shorter than a cache line, or live elsewhere
 *   %d = pad %c           the same, and what is filled between two pieces
 *
 * The kernel itself decides by more than is looked at here, when sizes are known; what matters is which order is
 * faster, and by how much beside a conversion. */
#include "sched/format.h"

#include <string.h>

/* Bytes of a piece that is moved by elements below, that is copied below, and that is written at full speed from. */
enum { SINGLE_RUN = 16, COPIED_RUN = 64, LONG_RUN = 4096 };

static int64_t extent_at(const struct weft_graph *g, weft_val v, int axis)
{
    const int64_t extent = weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
    return extent > 0 ? extent : 0;
}

/* --- windows and resizes ------------------------------------------------------------------------------------------ */

static int64_t pool_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    int64_t extent[WEFT_MAX_RANK], kernel[WEFT_MAX_RANK];
    enum weft_price price;
    for (int i = 0; i < type->rank; i++) {
        const int64_t hint = weft_dim_hint(g->dims, type->extent[i]);
        extent[i] = hint > 0 ? hint : 0;
        kernel[i] = i < 2 ? 1 : weft_dim_hint(g->dims, weft_attr_at(g, n, WEFT_ATTR_kernel, (unsigned)(i - 2)));
    }
    const double taps = weft_step_pool_taps(type->rank, extent, kernel + 2, last, f->target->cpu, &price);
    return weft_format_rate_ps(f, taps, price);
}

/* What a run of neighbours takes besides them, in elements: a row of a row-major result, a pixel of one that is
 * channels-last. `usual` is how long runs are where the price is measured. */
enum { REPEATED_ROW = 256, REPEATED_PIXEL = 8 };

static double repeat_waste(int64_t run, double usual, double more)
{
    return (1 + more / (double)(run > 0 ? run : 1)) / (1 + more / usual);
}

static double row_waste(const struct weft_graph *g, weft_val result)
{
    return repeat_waste(extent_at(g, result, weft_type_of(g, result)->rank - 1), WEFT_REPEAT_COLUMNS, REPEATED_ROW);
}

static double pixel_waste(const struct weft_graph *g, weft_val result)
{
    return repeat_waste(extent_at(g, result, 1), WEFT_REPEAT_CHANNELS, REPEATED_PIXEL);
}

static bool repeats(const struct weft_graph *g, weft_node n)
{
    return strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0;
}

static int64_t resize_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const struct weft_graph *g = f->graph;
    const weft_val result = weft_result(g, n, 0);
    const double waste = !repeats(g, n) ? 1 : last ? pixel_waste(g, result) : row_waste(g, result);
    const enum weft_price first = repeats(g, n) ? WEFT_PRICE_repeat_first : WEFT_PRICE_blend_first;
    return weft_format_rate_ps(f, (double)weft_format_elements(g, result) * waste, first + last);
}

int64_t weft_format_kernel_ps(const struct weft_formats *f, weft_node n, bool last)
{
    int64_t (*const ps)(const struct weft_formats *, weft_node, bool) =
        weft_opcode_of(f->graph, n) == WEFT_OP_resize ? resize_ps : pool_ps;
    const int64_t first = ps(f, n, false);
    return last ? weft_format_doubted_ps(first, ps(f, n, true)) : first;
}

/* --- concats and paddings ----------------------------------------------------------------------------------------- */

/* Bytes of a piece: what lies inside of the axis that is joined or padded, in the result's order. 0: it is moved by
 * elements. */
static int64_t piece_bytes(const struct weft_graph *g, struct weft_pin operand, uint32_t result)
{
    const weft_val from = weft_pin_value(g, operand);
    const struct weft_type *type = weft_type_of(g, from);
    const struct weft_layout layout = weft_layout_at(g, result, type->rank);
    const bool is_last = operand.index + 1 == g->node[operand.node.id].operands;
    struct weft_index_map map;
    double piece = 1;
    if (!weft_index_map_behind(g, operand, weft_dim_of(0), &map))
        return 0;
    for (int i = layout.axes - 1; i >= 0; i--) {
        const struct weft_axis *axis = &layout.axis[i];
        const int64_t extent = weft_dim_hint(g->dims, type->extent[axis->axis]);
        const int64_t digit = (extent + axis->div - 1) / axis->div;
        piece *= (double)(axis->mod && axis->mod < digit ? axis->mod : digit);
        const bool cut = map.at[axis->axis].border && !axis->mod; /* the result has more along it */
        if (cut && extent % axis->div && !is_last)
            return 0; /* what follows begins within a block */
        if (cut)
            break;
    }
    const double most = 1e15;
    return weft_dtype_bytes(type->dtype, (int64_t)(piece < most ? piece : most));
}

/* sched/alias.h: parameters, constants and results have places of their own. */
static bool lives_elsewhere(const struct weft_graph *g, weft_val v)
{
    while (weft_is_view(g, weft_def(g, v))) {
        const int op = weft_def_opcode(g, v);
        if (op == WEFT_OP_slice || op == WEFT_OP_bcast)
            return true;
        v = weft_operand(g, weft_def(g, v), 0);
    }
    return g->value[v.id].is_param || weft_is_const(g, v) || g->value[v.id].returns;
}

enum { LIVES_ELSEWHERE = 1, IS_ELEMENTWISE = 2 };

uint32_t weft_format_piece_kind(const struct weft_graph *g, weft_val v)
{
    const bool is_elementwise = weft_op_of(g, weft_def(g, v))->traits & WEFT_ELEMENTWISE;
    return (lives_elsewhere(g, v) ? LIVES_ELSEWHERE : 0) | (is_elementwise ? IS_ELEMENTWISE : 0);
}

enum { BORDER = 4 }; /* what lies between two pieces is filled in a quarter of a call */

static int64_t border_ps(const struct weft_formats *f, int64_t bytes, int64_t piece)
{
    return weft_format_rate_ps(f, piece > 0 ? (double)bytes / (double)piece / BORDER : 0, WEFT_PRICE_strip_call);
}

int64_t weft_format_join_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val from = weft_pin_value(g, operand);
    const struct weft_format_list *list = &f->list[from.id];
    const bool is_copy = g->value[from.id].is_param && g->value[from.id].uses == 1 && list->is_fact &&
                         layout != list->layout[0]; /* a relayout, which may be computed in place */
    const int64_t bytes = weft_format_bytes(f, from), piece = piece_bytes(g, operand, result);
    const uint32_t kind = weft_format_piece_kind(g, from);
    const int64_t borders = weft_opcode_of(g, operand.node) == WEFT_OP_pad ? border_ps(f, bytes, piece) : 0;
    /* convolutions and windows write rows in any case */
    if (piece >= COPIED_RUN && (is_copy || !(kind & LIVES_ELSEWHERE)))
        return borders + (piece >= LONG_RUN || !(kind & IS_ELEMENTWISE)
                              ? 0 : weft_format_extra_ps(f, WEFT_PRICE_write_private, bytes, WEFT_PRICE_access_gaps));
    return borders + (piece < SINGLE_RUN ? weft_format_move_ps(f, bytes, WEFT_PRICE_convert_general_near)
                                         : weft_format_runs_ps(f, bytes, piece));
}
