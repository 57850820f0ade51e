/* SPDX-License-Identifier: Apache-2.0 */
/* index_basic.c: index maps of ops whose results have the axes of their operands: elementwise ops, reductions, scans,
 * sorts, norms. */
#include "ir/index_rules.h"

/* Nothing is known: each element may depend on all. */
void weft_index_unknown(struct weft_indexing *r) { r->lost = true; }

/* Operands have the axes of the result; scalars have none. */
void weft_index_each(struct weft_indexing *r)
{
    weft_space_add_result(r);
    if (r->pin && !r->pin->result && r->map.rank)
        weft_index_as_result(r);
}

static bool is_reduced(const struct weft_indexing *r, int axis)
{
    const struct weft_attr *axes = weft_attr_find(r->graph, r->node, WEFT_ATTR_axes);
    if (!axes)
        return weft_attr_int(r->graph, r->node, WEFT_ATTR_axis) == axis;
    for (uint32_t i = 0; i < axes->count; i++)
        if (weft_dim_is(axes->integers[i], axis))
            return true;
    return false;
}

/*   %y: f32[8,4] = sum %x: f32[8,16,4] axes=[1]     space a0 in 8, reduced a1 in 16, a2 in 4
 *                                                   %y [a0, a2]   %x [a0, a1, a2] */
void weft_index_reduce(struct weft_indexing *r)
{
    const struct weft_type *type = weft_index_type(r, 0);
    const bool keep = weft_attr_int(r->graph, r->node, WEFT_ATTR_keepdims) != 0;
    for (int axis = 0, at = 0; axis < type->rank; axis++) {
        const bool reduced = is_reduced(r, axis);
        weft_space_add(r, type->extent[axis], reduced ? WEFT_AXIS_REDUCED : WEFT_AXIS_PARALLEL);
        if (weft_index_is_operand(r, 0))
            weft_index_is(r, axis, axis);
        else if (weft_index_is_result(r) && !reduced)
            weft_index_is(r, at, axis);
        else if (weft_index_is_result(r) && keep)
            r->map.at[at].kept = (uint8_t)(axis + 1);
        at += keep || !reduced;
    }
}

/*   %y: f32[3,4] = fold_chunks %x: f32[20,4] axis=0 chunk=8     space a0 in 3, a1 in 4, reduced a2 in 8
 *                                                               %y [a0, a1]   %x [8·a0 + a2, a1], skipped outside */
void weft_index_fold_chunks(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    const weft_dim chunk = weft_attr_dim(r->graph, r->node, WEFT_ATTR_chunk);
    weft_space_add_result(r);
    const int term = weft_space_add(r, chunk, WEFT_AXIS_REDUCED);
    if (!weft_index_is_operand(r, 0))
        return;
    for (int i = 0; i < weft_index_type(r, 0)->rank; i++)
        weft_index_term(r, i, i, i == axis ? chunk : weft_dim_of(1));
    weft_index_is(r, axis, term);
    r->map.at[axis].border = WEFT_BORDER_SKIPPED;
}

void weft_index_scan(struct weft_indexing *r)
{
    weft_index_each(r);
    r->space.axis[weft_attr_int(r->graph, r->node, WEFT_ATTR_axis)].role = WEFT_AXIS_SCANNED;
}

/* Along axes [first, end) each element of the results is computed from all of operand 0. */
static void whole(struct weft_indexing *r, int first, int end)
{
    const struct weft_type *type = weft_index_type(r, 0);
    weft_space_add_result(r);
    for (int axis = 0; axis < type->rank; axis++) {
        const bool inside = axis >= first && axis < end;
        const int own = inside ? weft_space_add_beside(r, type->extent[axis], axis) : axis;
        if (weft_index_is_operand(r, 0))
            weft_index_is(r, axis, own);
    }
}

/*   %y = softmax %x axis=1          space a0, a1, reduced a2 beside a1;  %y [a0, a1]  %x [a0, a2] */
void weft_index_line(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    whole(r, axis, axis + 1);
}

/* x [n, p], how many there were before; result [n, samples]. */
void weft_index_multinomial(struct weft_indexing *r)
{
    const int last = weft_index_type(r, 0)->rank - 1;
    whole(r, last, last + 1);
}

/* Sorted lines, and what is looked for in them. */
void weft_index_search_sorted(struct weft_indexing *r)
{
    const struct weft_type *lines = weft_index_type(r, 0);
    weft_space_add_result(r);
    const int own = weft_space_add_beside(r, lines->extent[lines->rank - 1], lines->rank - 1);
    if (r->pin && !r->pin->result)
        for (int i = 0; i < r->map.rank; i++)
            weft_index_is(r, i, r->pin->index == 0 && i == r->map.rank - 1 ? own : i);
}

/* Scales and shifts have the axes that are normalized. */
void weft_index_norm(struct weft_indexing *r)
{
    const int first = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    whole(r, first, weft_index_type(r, 0)->rank);
    if (r->pin && !r->pin->result && r->pin->index > 0)
        for (int i = 0; i < r->map.rank; i++)
            weft_index_is(r, i, first + i);
}

/* Scale, shift, mean and variance have the channels. */
void weft_index_batch_norm(struct weft_indexing *r)
{
    weft_space_add_result(r);
    if (weft_index_is_operand(r, 0))
        weft_index_as_result(r);
    else if (r->pin && !r->pin->result)
        weft_index_is(r, 0, 1);
}

/*   x [n, channels of all groups, …]: space a0, group a1, channel in it a2, …; reduced: channel and all behind it once
 *                                     more */
void weft_index_group_norm(struct weft_indexing *r)
{
    const struct weft_type *type = weft_index_type(r, 0);
    const weft_dim groups = weft_dim_of(weft_attr_int(r->graph, r->node, WEFT_ATTR_groups));
    const weft_dim inside = weft_dim_div(r->graph->dims, type->extent[1], groups);
    int at[WEFT_MAX_RANK], own[WEFT_MAX_RANK];
    at[0] = own[0] = weft_space_add(r, type->extent[0], WEFT_AXIS_PARALLEL);
    const int group = weft_space_add_factor(r, groups, WEFT_AXIS_PARALLEL);
    for (int i = 1; i < type->rank; i++)
        at[i] = i > 1       ? weft_space_add(r, type->extent[i], WEFT_AXIS_PARALLEL)
                : group < 0 ? weft_space_add(r, inside, WEFT_AXIS_PARALLEL)
                            : weft_space_add_factor(r, inside, WEFT_AXIS_PARALLEL);
    for (int i = 1; i < type->rank; i++)
        own[i] = at[i] < 0 ? -1 : weft_space_add_beside(r, i == 1 ? inside : type->extent[i], at[i]);
    if (!r->pin)
        return;
    const bool is_x = weft_index_is_operand(r, 0), is_scale = !r->pin->result && !is_x;
    for (int i = is_scale ? 1 : 0; i < (is_scale ? 2 : type->rank); i++) {
        const int to = is_scale ? 0 : i;
        if (i == 1)
            weft_index_term(r, to, group, inside);
        weft_index_is(r, to, is_x ? own[i] : at[i]);
    }
}
