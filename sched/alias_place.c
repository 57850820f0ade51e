/* SPDX-License-Identifier: Apache-2.0 */
/* alias_place.c: layouts of views, and the places that operands have in results. */
#include "sched/alias.h"

#include <string.h>

struct weft_layout weft_own_layout(const struct weft_graph *g, weft_val v)
{
    struct weft_layout layout = weft_layout_of(g, v);
    if (layout.kind != WEFT_STORED)
        return weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.offset = weft_dim_of(0);
    return layout;
}

bool weft_is_moved(const struct weft_graph *g, weft_node n)
{
    return weft_is_view(g, n) || (n.id && weft_opcode_of(g, n) == WEFT_OP_relayout);
}

weft_val weft_moved_from(const struct weft_graph *g, weft_val v)
{
    for (weft_node n = weft_def(g, v); weft_is_moved(g, n); n = weft_def(g, v))
        v = weft_operand(g, n, 0);
    return v;
}

/* --- views -------------------------------------------------------------------------------------------------------- */

/* Index maps of views that are none of the reshapes: along each axis of the operand, one axis of the result or none. */
struct shown {
    int axis[WEFT_MAX_RANK];       /* of the result; -1: one element is repeated along any other */
    weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    bool cuts;                     /* some elements are left out */
    bool renames;                  /* axes of the result are other ones than those of the operand */
};

/* False where a reshape mixes axes. */
static bool find_shown(const struct weft_graph *g, weft_node n, struct shown *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_operand(g, n, 0)), *to = weft_type_of(g, weft_result(g, n, 0));
    struct weft_index_map map;
    if (weft_opcode_of(g, n) == WEFT_OP_reshape || !weft_index_map(g, (struct weft_pin){.node = n}, &map))
        return false;
    ret->cuts = false;
    ret->renames = type->rank != to->rank;
    for (int i = 0; i < map.rank; i++) {
        const struct weft_index *at = &map.at[i];
        ret->axis[i] = at->terms ? at->term[0].axis : -1;
        ret->start[i] = at->base;
        ret->step[i] = at->terms ? at->term[0].step : weft_dim_of(1);
        ret->cuts |= at->terms && (weft_index_axis(at) < 0 ||
                                   !weft_dim_same(type->extent[i], to->extent[at->term[0].axis]));
        ret->renames |= ret->axis[i] != i;
    }
    return true;
}

bool weft_view_layout(const struct weft_graph *g, weft_node n, const struct weft_layout *from, struct weft_layout *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_operand(g, n, 0)), *to = weft_type_of(g, weft_result(g, n, 0));
    struct shown shown;
    bool view = false;
    if (weft_dtype_bits(type->dtype) < 8)
        return false;
    if (!find_shown(g, n, &shown))
        view = weft_layout_reshape(g->dims, from, type, to, ret);
    else if (shown.cuts)
        view = !shown.renames && weft_layout_slice(g->dims, from, type, shown.start, shown.step, ret);
    else if (weft_op_of(g, n)->traits & WEFT_BIJECTIVE)
        view = weft_layout_untranspose(from, shown.axis, ret);
    else
        view = weft_layout_broadcast(g->dims, from, type, to, shown.axis, ret);
    weft_dim stride[WEFT_MAX_RANK];
    if (!view || weft_layout_logical_strides(g->dims, ret, to, stride))
        return view;
    /* A reshape may yield a view with split axes. Kernels of weft's do not read these; where the result is stated to
     * lie just so, kernels of the caller's do. */
    const struct weft_layout own = weft_own_layout(g, weft_result(g, n, 0));
    return weft_layout_equal(g->dims, &own, ret, to);
}

bool weft_viewed_layout(const struct weft_graph *g, weft_node n, const struct weft_layout *to, struct weft_layout *ret)
{
    struct shown shown;
    return find_shown(g, n, &shown)
               ? weft_layout_transpose(to, shown.axis, ret)
               : weft_layout_reshape(g->dims, to, weft_type_of(g, weft_result(g, n, 0)),
                                     weft_type_of(g, weft_operand(g, n, 0)), ret);
}

bool weft_same_places(const struct weft_graph *g, const struct weft_type *type, const struct weft_layout *a,
                      const struct weft_layout *b)
{
    weft_dim one[WEFT_MAX_RANK], two[WEFT_MAX_RANK];
    if (!weft_layout_logical_strides(g->dims, a, type, one) || !weft_layout_logical_strides(g->dims, b, type, two))
        return false;
    bool same = weft_dim_same(a->offset, b->offset);
    for (int i = 0; same && i < type->rank; i++)
        same = weft_dim_is(type->extent[i], 1) || weft_dim_same(one[i], two[i]);
    return same;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* A padding that adds on all sides, or nothing; cut elements have no place in the result. */
static bool pads_only(const struct weft_graph *g, weft_node n)
{
    if (weft_attr_find(g, n, WEFT_ATTR_form))
        return false;
    for (unsigned i = 0; i < 2u * weft_type_of(g, weft_result(g, n, 0))->rank; i++) {
        int64_t low, high;
        weft_dim_range(g->dims, weft_attr_at(g, n, WEFT_ATTR_pad, i), &low, &high);
        if (low < 0)
            return false;
    }
    return true;
}

bool weft_is_update(const struct weft_graph *g, weft_node n)
{
    if (!(weft_op_of(g, n)->traits & WEFT_UPDATE))
        return false;
    const bool replaces = !weft_attr_spec_find(weft_opcode_of(g, n), WEFT_ATTR_form);
    return replaces || strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "none") == 0 ||
           weft_type_of(g, weft_result(g, n, 0))->dtype == WEFT_F32;
}

/* A bitcast is elementwise, but done by a copy. */
static bool is_elementwise(const struct weft_graph *g, weft_node n)
{
    return (weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) && weft_opcode_of(g, n) != WEFT_OP_bitcast;
}

uint32_t weft_places_in(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    if (g->node[n.id].results != 1 || weft_dtype_bits(weft_type_of(g, weft_result(g, n, 0))->dtype) < 8)
        return 0;
    if (op == WEFT_OP_concat || is_elementwise(g, n))
        return g->node[n.id].operands;
    return op == WEFT_OP_pad ? pads_only(g, n) : weft_is_update(g, n);
}

/* Where element 0 of the operand is in the result: the operand's map says it the other way round. */
bool weft_place_in(const struct weft_graph *g, weft_node n, uint32_t operand, weft_dim along,
                   const struct weft_layout *result, struct weft_layout *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    const int op = weft_opcode_of(g, n);
    *ret = *result;
    if (op != WEFT_OP_pad && op != WEFT_OP_concat)
        return weft_dtype_bits(type->dtype) == weft_dtype_bits(weft_type_of(g, weft_operand(g, n, operand))->dtype);
    struct weft_index_map map;
    weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    if (!weft_index_map_behind(g, (struct weft_pin){n, .index = operand}, along, &map))
        return false;
    for (int i = 0; i < map.rank; i++) {
        start[i] = weft_dim_sub(g->dims, weft_dim_of(0), map.at[i].base);
        step[i] = weft_dim_of(1);
    }
    return weft_layout_slice(g->dims, result, type, start, step, ret);
}
