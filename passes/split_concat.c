/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat: what takes apart is a slice, what puts together is one concat, and what undoes the other is gone.
 *
 *   %a: f32[N,8] = slice %x start=[0 0] end=[N 8]
 *   %b: f32[N,8] = slice %x start=[0 8] end=[N 16]        %y: f32[N,16] = neg %z
 *   %c: f32[N,24] = concat %a, %b, %z axis=1         →    %c: f32[N,32] = concat %x, %z axis=1
 *   %d: f32[N,16] = slice %c start=[0 16] end=[N 32]
 *   %y: f32[N,16] = neg %d
 *
 * Here are the rules about slices; those about concats and paddings are in split_concat_join.c, about what is seen
 * through reshapes and transposes in split_concat_views.c, about concats that are taken apart in another way in
 * split_concat_slices.c; split_concat_parts.c finds parts of concats. A slice is a view and costs nothing, so:
 *
 *   - a gather by indices that are known and go up in equal steps is a slice, one by indices that count up along an
 *     axis of open extent too, and a dynamic slice at known starts;
 *   - a slice of a slice is one slice of what that one cuts;
 *   - a slice of a concat that lies within one operand is a slice of this operand, so that the concat need not be
 *     waited for; one that needs fewer operands than there are takes a smaller concat, unless others read the large
 *     one;
 *   - a slice of a padding that lies within what is padded is a slice of that; one that only takes away from borders
 *     makes them smaller.
 *
 * Sizes may be symbols: "within" then means for all their values, and a slice that might be an error for some sizes is
 * left to be one. Each rule looks at one node and its operands.
 * Keeps every bit. Needs: casts and reshapes merged, constants found (canonicalize, cancel_transpose, fold_const).
 * Not done: slices of several neighbouring operands where others read the concat; splits whose pieces go through the
 * same computation before they meet again; equal beginnings of two concats. */
#include "passes/split_concat.h"

#include <stdlib.h>

weft_val weft_build_slice(struct weft_builder *b, weft_val x, const struct weft_cut *cut)
{
    const unsigned rank = weft_type_of(b->graph, x)->rank;
    const struct weft_attr attrs[] = {weft_attr_of_dims(WEFT_ATTR_start, rank, cut->start),
                                      weft_attr_of_dims(WEFT_ATTR_end, rank, cut->end),
                                      weft_attr_of_dims(WEFT_ATTR_step, rank, cut->step)};
    return weft_build(b, WEFT_OP_slice, 1, &x, 3, attrs, NULL);
}

void weft_read_cut(const struct weft_graph *g, weft_node n, struct weft_cut *ret)
{
    const unsigned rank = weft_type_of(g, weft_operand(g, n, 0))->rank;
    for (unsigned i = 0; i < rank; i++) {
        ret->start[i] = weft_attr_at(g, n, WEFT_ATTR_start, i);
        ret->end[i] = weft_attr_at(g, n, WEFT_ATTR_end, i);
        ret->step[i] = weft_attr_at(g, n, WEFT_ATTR_step, i);
    }
}

void weft_cut_all(const struct weft_type *type, struct weft_cut *ret)
{
    for (unsigned i = 0; i < type->rank; i++) {
        ret->start[i] = weft_dim_of(0);
        ret->end[i] = type->extent[i];
        ret->step[i] = weft_dim_of(1);
    }
}

bool weft_cuts_meet(const struct weft_cut *a, const struct weft_cut *b, unsigned rank, unsigned axis)
{
    for (unsigned i = 0; i < rank; i++) {
        const bool along = i == axis;
        if (!weft_dim_same(a->step[i], b->step[i]) || (along && !weft_dim_is(a->step[i], 1)) ||
            !weft_dim_same(along ? a->end[i] : a->start[i], b->start[i]) ||
            (!along && !weft_dim_same(a->end[i], b->end[i])))
            return false;
    }
    return true;
}

bool weft_dim_at_most(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    int64_t low, high;
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b)) /* asked for each operand of wide concats */
        return weft_dim_value(a) <= weft_dim_value(b);
    weft_dims_try(dims); /* the difference may be beyond what expressions can say */
    weft_dim_range(dims, weft_dim_sub(dims, b, a), &low, &high);
    return !weft_dims_tried(dims) && low >= 0;
}

/* --- slices of slices --------------------------------------------------------------------------------------------- */

/* Element i of the outer one is element start + step·i of the inner one. */
static bool compose(struct weft_dims *dims, weft_dim length, const struct weft_cut *inner, const struct weft_cut *outer,
                    unsigned i, struct weft_cut *ret)
{
    const weft_dim step = inner->step[i];
    ret->start[i] = weft_dim_add(dims, inner->start[i], weft_dim_mul(dims, outer->start[i], step));
    ret->step[i] = weft_dim_mul(dims, outer->step[i], step);
    ret->end[i] = weft_dim_add(dims, inner->start[i], outer->end[i]);
    if (weft_dim_is(step, 1))
        return true;
    if (!weft_dim_is_constant(length))
        return false;
    const int64_t n = weft_dim_value(length); /* the end is right behind the last element */
    if (n == 0) { /* the outer one may begin behind all that there is */
        ret->start[i] = ret->end[i] = inner->start[i];
        ret->step[i] = weft_dim_of(1);
        return true;
    }
    const weft_dim reach = weft_dim_mul(dims, ret->step[i], weft_dim_of(n - 1));
    ret->end[i] = weft_dim_add(dims, weft_dim_add(dims, ret->start[i], reach), weft_dim_of(1));
    return true;
}

static weft_val slice_slice(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, inner) != WEFT_OP_slice || !weft_slice_is_safe(g, n) || !weft_slice_is_safe(g, inner))
        return WEFT_NO_VALUE;
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    struct weft_cut first, second, both;
    weft_read_cut(g, inner, &first);
    weft_read_cut(g, n, &second);
    for (unsigned i = 0; i < type->rank; i++)
        if (!compose(g->dims, type->extent[i], &first, &second, i, &both))
            return WEFT_NO_VALUE;
    return weft_rewrite_begin(r) ? weft_build_slice(&r->build, weft_operand(g, inner, 0), &both) : WEFT_NO_VALUE;
}

/* --- slices of concats -------------------------------------------------------------------------------------------- */

static weft_val slice_concat(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val whole = weft_operand(g, n, 0);
    const weft_node concat = weft_def(g, whole);
    if (weft_opcode_of(g, concat) != WEFT_OP_concat || !weft_slice_is_safe(g, n))
        return WEFT_NO_VALUE;
    const unsigned axis = (unsigned)weft_attr_int(g, concat, WEFT_ATTR_axis);
    struct weft_cut cut;
    struct weft_holders hold;
    weft_read_cut(g, n, &cut);
    if (!weft_find_holders(g, concat, axis, cut.start[axis], cut.end[axis], &hold))
        return WEFT_NO_VALUE;
    const unsigned count = hold.last - hold.first + 1;
    const bool fewer = count < g->node[concat.id].operands && weft_has_one_use(g, whole);
    if ((count > 1 && !fewer) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    cut.start[axis] = weft_dim_sub(g->dims, cut.start[axis], hold.before);
    cut.end[axis] = weft_dim_sub(g->dims, cut.end[axis], hold.before);
    weft_val source = weft_operand(g, concat, hold.first);
    if (count > 1) {
        weft_val *part = weft_arena_new(&g->root->scratch, count * sizeof *part);
        for (unsigned i = 0; i < count; i++)
            part[i] = weft_operand(g, concat, hold.first + i);
        const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
        source = weft_build(&r->build, WEFT_OP_concat, count, part, 1, &attr, NULL);
    }
    return weft_build_slice(&r->build, source, &cut);
}

/* --- slices of paddings ------------------------------------------------------------------------------------------- */

static weft_val slice_pad(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val padded = weft_operand(g, n, 0);
    const weft_node pad = weft_def(g, padded);
    if (weft_opcode_of(g, pad) != WEFT_OP_pad || !weft_slice_is_safe(g, n))
        return WEFT_NO_VALUE;
    const struct weft_type from = *weft_type_of(g, weft_operand(g, pad, 0)), *type = weft_type_of(g, padded);
    struct weft_cut cut;
    weft_read_cut(g, n, &cut);
    bool within = true, outside = weft_has_one_use(g, padded) && !weft_attr_find(g, pad, WEFT_ATTR_form);
    weft_dim less[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < from.rank; i++) {
        const weft_dim before = weft_attr_at(g, pad, WEFT_ATTR_pad, i),
                       after = weft_attr_at(g, pad, WEFT_ATTR_pad, from.rank + i),
                       behind = weft_dim_add(g->dims, before, from.extent[i]);
        within &= weft_dim_at_most(g->dims, before, cut.start[i]) && weft_dim_at_most(g->dims, cut.end[i], behind);
        outside &= weft_dim_at_most(g->dims, cut.start[i], before) && weft_dim_at_most(g->dims, behind, cut.end[i]) &&
                   weft_dim_is(cut.step[i], 1);
        less[i] = weft_dim_sub(g->dims, before, cut.start[i]);
        less[from.rank + i] = weft_dim_sub(g->dims, after, weft_dim_sub(g->dims, type->extent[i], cut.end[i]));
        cut.start[i] = weft_dim_sub(g->dims, cut.start[i], before);
        cut.end[i] = weft_dim_sub(g->dims, cut.end[i], before);
    }
    if ((!within && !outside) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val operands[] = {weft_operand(g, pad, 0), weft_operand(g, pad, 1)};
    if (within)
        return weft_build_slice(&r->build, operands[0], &cut);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * from.rank, less);
    return weft_build(&r->build, WEFT_OP_pad, 2, operands, 1, &attr, NULL);
}

/* --- indices that are known --------------------------------------------------------------------------------------- */

#define MOST_INDICES 4096

/* Element i of an integer value, if it is known: as an expression, or out of a constant. */
static bool known_index(const struct weft_graph *g, weft_val index, int64_t i, weft_dim *ret)
{
    const struct weft_value *value = weft_value_of(g, index);
    struct weft_element element;
    const void *data;
    if (value->content) {
        *ret = value->content[i];
        return !weft_dim_is_constant(*ret) || llabs(weft_dim_value(*ret)) < INT32_MAX;
    }
    if (!weft_const_splat(g, index, &element)) {
        data = weft_const_data(g, index);
        if (!data)
            return false;
        element.integer = weft_load_integer(value->type.dtype, data, i);
    }
    const bool huge = value->type.dtype == WEFT_U64 && element.integer < 0; /* it does not count from the end */
    if (huge || element.integer <= -INT32_MAX || element.integer >= INT32_MAX)
        return false;
    *ret = weft_dim_of(element.integer);
    return true;
}

/* Counted from the start of an axis of this extent, inside of it. */
static bool inside_axis(struct weft_dims *dims, weft_dim extent, weft_dim *index)
{
    int64_t low, high;
    weft_dim_range(dims, *index, &low, &high);
    if (high < 0)
        *index = weft_dim_add(dims, *index, extent);
    return weft_dim_at_most(dims, weft_dim_of(0), *index) &&
           weft_dim_at_most(dims, weft_dim_add(dims, *index, weft_dim_of(1)), extent) && (low >= 0 || high < 0);
}

/* Do the indices go up in equal steps within the axis? Then where they begin and end. */
static bool find_range(struct weft_graph *g, weft_val index, weft_dim extent, weft_dim *start, weft_dim *end,
                       weft_dim *step)
{
    const struct weft_type *type = weft_type_of(g, index);
    const int64_t count =
        weft_type_is_constant(type) ? weft_dim_value(weft_type_elements(g->dims, type)) : 0;
    weft_dim last;
    if (count < 1 || count > MOST_INDICES || !known_index(g, index, 0, start) || !inside_axis(g->dims, extent, start))
        return false;
    last = *start;
    *step = weft_dim_of(1);
    for (int64_t i = 1; i < count; i++) {
        weft_dim next;
        if (!known_index(g, index, i, &next) || !inside_axis(g->dims, extent, &next))
            return false;
        const weft_dim distance = weft_dim_sub(g->dims, next, last);
        if (i == 1)
            *step = distance;
        if (!weft_dim_is_constant(distance) || weft_dim_value(distance) < 1 || !weft_dim_same(distance, *step))
            return false;
        last = next;
    }
    *end = weft_dim_add(g->dims, last, weft_dim_of(1));
    return true;
}

/* The number that a value is for all indices, as an expression: a uniform constant, or one known element repeated. */
static bool known_number(const struct weft_graph *g, weft_val v, weft_dim *ret)
{
    const weft_node def = weft_def(g, v);
    if (weft_opcode_of(g, def) == WEFT_OP_bcast && weft_value_of(g, weft_operand(g, def, 0))->content) {
        const struct weft_type *type = weft_type_of(g, weft_operand(g, def, 0));
        return weft_dim_is(weft_type_elements(g->dims, type), 1) && known_index(g, weft_operand(g, def, 0), 0, ret);
    }
    struct weft_element unused;
    return weft_const_splat(g, v, &unused) && known_index(g, v, 0, ret);
}

/* Does a broadcast that repeats nothing keep its operand's elements in their order? */
static bool keeps_order(const struct weft_graph *g, weft_node bcast)
{
    const unsigned rank = weft_type_of(g, weft_operand(g, bcast, 0))->rank;
    for (unsigned i = 1; i < rank; i++)
        if (weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, i - 1)) >
            weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, i)))
            return false;
    return true;
}

#define MOST_STEPS 16 /* from the indices back to what counts */

/* The same for indices of open extents that count from a number on: an iota behind casts, reshapes and additions. */
static bool find_count(struct weft_graph *g, weft_val index, weft_dim extent, weft_dim *start, weft_dim *end)
{
    const weft_dim count = weft_type_elements(g->dims, weft_type_of(g, index));
    *start = weft_dim_of(0);
    for (int step = 0; step < MOST_STEPS; step++) {
        const weft_node def = weft_def(g, index);
        const int op = weft_opcode_of(g, def);
        const struct weft_type *type = weft_type_of(g, index);
        weft_dim shift = weft_dim_of(0);
        if (!weft_dtype_is_int(type->dtype) || weft_dtype_bits(type->dtype) < 32 ||
            !weft_dim_same(weft_type_elements(g->dims, type), count)) /* less wraps, or something is repeated */
            return false;
        if (op == WEFT_OP_iota) {
            *end = weft_dim_add(g->dims, *start, count);
            return weft_dim_same(type->extent[weft_attr_int(g, def, WEFT_ATTR_axis)], count) &&
                   weft_dim_at_most(g->dims, *end, weft_dim_of(INT32_MAX)) &&
                   weft_dim_at_most(g->dims, weft_dim_of(0), *start) && weft_dim_at_most(g->dims, *end, extent);
        }
        if (op == WEFT_OP_add ? !known_number(g, weft_operand(g, def, 1), &shift)
                              : op != WEFT_OP_cast && op != WEFT_OP_reshape &&
                                    (op != WEFT_OP_bcast || !keeps_order(g, def)))
            return false;
        *start = weft_dim_add(g->dims, *start, shift);
        index = weft_operand(g, def, 0);
    }
    return false;
}

static weft_val gather_range(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const unsigned axis = (unsigned)weft_attr_int(g, n, WEFT_ATTR_axis);
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0)), *from = weft_type_of(g, x);
    struct weft_cut cut;
    weft_cut_all(from, &cut);
    const weft_val index = weft_operand(g, n, 1);
    if (!find_range(g, index, from->extent[axis], &cut.start[axis], &cut.end[axis], &cut.step[axis])) {
        cut.step[axis] = weft_dim_of(1);
        if (!find_count(g, index, from->extent[axis], &cut.start[axis], &cut.end[axis]))
            return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val slice = weft_build_slice(&r->build, x, &cut);
    return weft_type_same(weft_type_of(g, slice), &type) ? slice : weft_build_reshape(&r->build, slice, &type);
}

static weft_val dynamic_slice_known(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0), starts = weft_operand(g, n, 1);
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0)), *from = weft_type_of(g, x);
    struct weft_cut cut;
    weft_cut_all(from, &cut);
    for (unsigned i = 0; i < type->rank; i++) {
        if (!known_index(g, starts, i, &cut.start[i]))
            return WEFT_NO_VALUE;
        cut.end[i] = weft_dim_add(g->dims, cut.start[i], type->extent[i]);
        if (!weft_dim_at_most(g->dims, weft_dim_of(0), cut.start[i]) ||
            !weft_dim_at_most(g->dims, cut.end[i], from->extent[i])) /* else it is moved inwards */
            return WEFT_NO_VALUE;
    }
    return weft_rewrite_begin(r) ? weft_build_slice(&r->build, x, &cut) : WEFT_NO_VALUE;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct weft_rule rules[] = {
    {"slice_slice",         WEFT_OP_slice,         slice_slice,         "two slices are one"},
    {"slice_concat",        WEFT_OP_slice,         slice_concat,        "the slice is within fewer operands"},
    {"slice_pad",           WEFT_OP_slice,         slice_pad,           "it takes no border, or from borders only"},
    {"gather_range",        WEFT_OP_gather,        gather_range,        "the indices go up in equal steps"},
    {"dynamic_slice_known", WEFT_OP_dynamic_slice, dynamic_slice_known, "it is known where it begins"},
};

bool weft_pass_split_concat(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules), weft_split_concat_joins, weft_split_concat_views,
                                         weft_split_concat_slices};
    return weft_apply_rules(graph, "split_concat", sets, 4);
}
