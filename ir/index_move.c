/* SPDX-License-Identifier: Apache-2.0 */
/* index_move.c: index maps of ops that move elements: views, concat and pad, gathers and scatters. */
#include "ir/index_rules.h"

#include <string.h>

/* What comes out of the elements of an operand, along one axis. */
static void by_data(struct weft_indexing *r, int at, unsigned operand) { r->map.at[at].data = (uint8_t)(operand + 1); }

static void skips(struct weft_indexing *r, int at) { r->map.at[at].border = WEFT_BORDER_SKIPPED; }

/* --- views -------------------------------------------------------------------------------------------------------- */

void weft_index_transpose(struct weft_indexing *r)
{
    weft_space_add_result(r);
    if (weft_index_is_operand(r, 0))
        for (int i = 0; i < r->map.rank; i++)
            weft_index_is(r, weft_index_attr(r, WEFT_ATTR_perm, i), i);
}

/* An axis of extent 1 that is repeated has index 0. */
void weft_index_bcast(struct weft_indexing *r)
{
    const struct weft_type *from = weft_index_type(r, 0), *to = weft_index_result_type(r);
    weft_space_add_result(r);
    for (int i = 0; i < from->rank && weft_index_is_operand(r, 0); i++) {
        const int axis = weft_index_attr(r, WEFT_ATTR_dims, i);
        if (!weft_dim_is(from->extent[i], 1) || weft_dim_is(to->extent[axis], 1))
            weft_index_is(r, i, axis);
    }
}

void weft_index_slice(struct weft_indexing *r)
{
    weft_space_add_result(r);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++) {
        weft_index_offset(r, i, weft_index_attr_dim(r, WEFT_ATTR_start, i));
        weft_index_term(r, i, i, weft_index_attr_dim(r, WEFT_ATTR_step, i));
    }
}

/* --- movement ----------------------------------------------------------------------------------------------------- */

void weft_index_concat(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    weft_space_add_result(r);
    if (!r->pin || r->pin->result)
        return;
    weft_index_as_result(r);
    weft_index_offset(r, axis, weft_dim_sub(r->graph->dims, weft_dim_of(0), r->behind));
    if (r->graph->node[r->node.id].operands > 1)
        skips(r, axis);
}

/*   %y: f32[6] = pad %x: f32[4], %v pad=[1 1]       %y [a0]   %x [a0 - 1 ?]   %v [] */
void weft_index_pad(struct weft_indexing *r)
{
    static const char *const form[] = {"constant", "edge", "reflect", "wrap"};
    const char *word = weft_attr_word(r->graph, r->node, WEFT_ATTR_form);
    weft_space_add_result(r);
    if (!weft_index_is_operand(r, 0))
        return;
    weft_index_as_result(r);
    for (int i = 0; i < r->map.rank; i++) {
        const weft_dim before = weft_index_attr_dim(r, WEFT_ATTR_pad, i);
        const weft_dim after = weft_index_attr_dim(r, WEFT_ATTR_pad, r->map.rank + i);
        if (weft_dim_is(before, 0) && weft_dim_is(after, 0))
            continue;
        weft_index_offset(r, i, weft_dim_sub(r->graph->dims, weft_dim_of(0), before));
        for (int f = 0; f < 4; f++)
            if (strcmp(word, form[f]) == 0)
                r->map.at[i].border = (uint8_t)(WEFT_BORDER_SKIPPED + f);
    }
}

void weft_index_flip(struct weft_indexing *r)
{
    const struct weft_attr *axes = weft_attr_find(r->graph, r->node, WEFT_ATTR_axes);
    uint32_t flipped = 0;
    weft_space_add_result(r);
    for (uint32_t i = 0; i < axes->count; i++)
        flipped |= 1u << weft_dim_value(axes->integers[i]);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++) {
        const bool turns = flipped >> i & 1;
        weft_index_term(r, i, i, weft_dim_of(turns ? -1 : 1));
        if (turns)
            weft_index_offset(r, i, weft_dim_sub(r->graph->dims, r->space.axis[i].extent, weft_dim_of(1)));
    }
}

/* The diagonal is the last axis of the result. */
void weft_index_diagonal(struct weft_indexing *r)
{
    const int first = weft_index_attr(r, WEFT_ATTR_axes, 0), second = weft_index_attr(r, WEFT_ATTR_axes, 1);
    weft_space_add_result(r);
    for (int i = 0, at = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++)
        weft_index_is(r, i, i == first || i == second ? r->map.rank - 2 : at++);
}

/* --- gathers: an index that is an element of another operand ------------------------------------------------------ */

/*   %y = gather %x, %i axis=1       x has the axes of i in the place of its axis:   %x [a0, @1, a3]   %i [a1, a2] */
void weft_index_gather(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis), indices = weft_index_type(r, 1)->rank;
    weft_space_add_result(r);
    if (weft_index_is_operand(r, 1))
        for (int i = 0; i < indices; i++)
            weft_index_is(r, i, axis + i);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++)
        if (i != axis)
            weft_index_is(r, i, i < axis ? i : i - 1 + indices);
        else
            by_data(r, i, 1);
}

void weft_index_gather_elements(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    weft_space_add_result(r);
    for (int i = 0; i < r->map.rank && r->pin && !r->pin->result; i++)
        if (r->pin->index == 1 || i != axis)
            weft_index_is(r, i, i);
        else
            by_data(r, i, 1);
}

/* Some rows stand in reverse order: the index follows the axis, and lengths. */
void weft_index_reverse_sequence(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    weft_space_add_result(r);
    if (weft_index_is_operand(r, 1))
        weft_index_is(r, 0, (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_batch_axis));
    if (!weft_index_is_operand(r, 0))
        return;
    weft_index_as_result(r);
    r->map.at[axis].is_near = true;
    by_data(r, axis, 1);
}

/*   x [b…, k axes that are looked up, rest…]; indices [b…, q…, k]; result [b…, q…, rest…] */
void weft_index_gather_nd(struct weft_indexing *r)
{
    const struct weft_type *indices = weft_index_type(r, 1);
    const int batch = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_batch), outer = indices->rank - 1;
    const int looked_up = (int)weft_dim_value(indices->extent[outer]);
    weft_space_add_result(r);
    const int component = weft_space_add(r, indices->extent[outer], WEFT_AXIS_REDUCED);
    if (weft_index_is_operand(r, 1))
        for (int i = 0; i <= outer; i++)
            weft_index_is(r, i, i < outer ? i : component);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++)
        if (i >= batch && i < batch + looked_up)
            by_data(r, i, 1);
        else
            weft_index_is(r, i, i < batch ? i : i - batch - looked_up + outer);
}

/* The two numbers of operand 1 are read at each point. */
void weft_index_one_hot(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    weft_space_add_result(r);
    const int which = weft_space_add(r, weft_dim_of(2), WEFT_AXIS_REDUCED);
    if (weft_index_is_operand(r, 1))
        weft_index_is(r, 0, which);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 0); i++)
        weft_index_is(r, i, i < axis ? i : i + 1);
}

/* Any of the updates along the axis may be the one that an element takes. */
void weft_index_scatter_elements(struct weft_indexing *r)
{
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    const struct weft_type *x = weft_index_type(r, 0), *indices = weft_index_type(r, 1);
    weft_space_add_result(r);
    const int own = weft_space_add_beside(r, indices->extent[axis], axis);
    for (int i = 0; i < r->map.rank && r->pin && !r->pin->result; i++) {
        weft_index_is(r, i, r->pin->index > 0 && i == axis ? own : i);
        if (r->pin->index > 0 && i != axis && !weft_dim_same(x->extent[i], indices->extent[i]))
            skips(r, i);
    }
}

/*   x [k axes that are looked up, rest…]; indices [q…, k]; updates [q…, rest…] */
void weft_index_scatter_nd(struct weft_indexing *r)
{
    const struct weft_type *indices = weft_index_type(r, 1);
    const int outer = indices->rank - 1, looked_up = (int)weft_dim_value(indices->extent[outer]);
    int own[WEFT_MAX_RANK];
    weft_space_add_result(r);
    for (int i = 0; i <= outer; i++)
        own[i] = weft_space_add(r, indices->extent[i], WEFT_AXIS_REDUCED);
    for (int i = 0; i < r->map.rank && r->pin && !r->pin->result; i++)
        weft_index_is(r, i, r->pin->index == 0 ? i
                            : r->pin->index == 1 || i < outer ? own[i] : i - outer + looked_up);
}

/* Starts are all read at each point. */
static void parts(struct weft_indexing *r, unsigned part, unsigned starts)
{
    weft_space_add_result(r);
    const int own = weft_space_add(r, weft_index_type(r, starts)->extent[0], WEFT_AXIS_REDUCED);
    if (weft_index_is_operand(r, starts))
        weft_index_is(r, 0, own);
    else if (r->pin && !r->pin->result)
        weft_index_as_result(r);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, part); i++)
        by_data(r, i, starts);
}

void weft_index_dynamic_slice(struct weft_indexing *r) { parts(r, 0, 1); }

void weft_index_dynamic_update(struct weft_indexing *r)
{
    parts(r, 1, 2);
    for (int i = 0; i < r->map.rank && weft_index_is_operand(r, 1); i++)
        skips(r, i);
}

/* Nothing is known of where an element of x goes. */
void weft_index_unpool(struct weft_indexing *r)
{
    weft_space_add_result(r);
    r->lost = r->pin && !r->pin->result;
}
