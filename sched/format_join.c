/* SPDX-License-Identifier: Apache-2.0 */
/* format_join.c: what is put together.
 *
 *   %c = concat %p, %q    in place: nothing where pieces are long; writing with gaps where they are short
 *                         (channels-last); a copy where they are shorter than a cache line, or live elsewhere
 *   %d = pad %c           the same, and what is filled between two pieces */
#include "sched/alias.h"
#include "sched/format.h"

/* Bytes of a piece that is moved by elements below, that is copied below, and that is written at full speed from. */
enum { SINGLE_RUN = 16, COPIED_RUN = 64, LONG_RUN = 4096 };

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

enum { LIVES_ELSEWHERE = 1, IS_ELEMENTWISE = 2 };

uint32_t weft_format_piece_kind(const struct weft_graph *g, weft_val v)
{
    const bool is_elementwise = weft_op_of(g, weft_def(g, v))->traits & WEFT_ELEMENTWISE;
    return (weft_alias_stays(g, v) ? LIVES_ELSEWHERE : 0) | (is_elementwise ? IS_ELEMENTWISE : 0);
}

bool weft_format_in_place(const struct weft_graph *g, struct weft_pin operand, uint32_t result)
{
    return piece_bytes(g, operand, result) >= COPIED_RUN &&
           !(weft_format_piece_kind(g, weft_pin_value(g, operand)) & LIVES_ELSEWHERE);
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
