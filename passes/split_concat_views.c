/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat_views.c: the rules of split_concat about pieces that are seen through views, and paddings that cut.
 *
 *   %a: f32[4,2] = slice %x start=[0 0] end=[4 2]
 *   %b: f32[4,3] = slice %x start=[0 2] end=[4 5]          %s: f32[4,5] = slice %x start=[0 0] end=[4 5]
 *   %p: f32[2,2,2] = reshape %a                      →     %c: f32[2,2,5] = reshape %s
 *   %q: f32[2,2,3] = reshape %b
 *   %c: f32[2,2,5] = concat %p, %q axis=2
 *
 *   - a concat whose operands are the same reshapes and transposes of neighbouring slices of one value is these views
 *     of one slice: all of it costs nothing;
 *   - a padding that cuts is a padding of a slice, or a slice if it adds nothing;
 *   - a concat of equal parts that is split into these parts and then transposed (channels that are shuffled) is a
 *     concat along an axis of its own, so that it may lie as it will be transposed, and parts be computed there.
 *
 * All operands are followed at once, a view at a time. A transpose moves the axis along which they are put together. A
 * reshape keeps it if the axes outside of it hold as many elements before and after: then what one piece contributes to
 * the result stands together in both. Axes of extent 1 leave a choice, so the outermost such axis is tried for all
 * reshapes, then the innermost.
 * Not done: pieces of which only some are neighbours; pieces that go through the same computation. */
#include "passes/split_concat.h"

enum { MOST_VIEWS = 8 };

/* Operands on their way down to the slices. */
struct pieces {
    weft_val *value;
    unsigned count, axis;
    weft_dim extent;                 /* of all together along the axis */
    int views;
    struct {
        weft_node node;              /* that of the first operand */
        unsigned axis;
        weft_dim extent;
    } view[MOST_VIEWS];
};

static bool same_perm(const struct weft_graph *g, weft_node a, weft_node b)
{
    for (unsigned i = 0; i < weft_type_of(g, weft_result(g, a, 0))->rank; i++)
        if (!weft_dim_same(weft_attr_at(g, a, WEFT_ATTR_perm, i), weft_attr_at(g, b, WEFT_ATTR_perm, i)))
            return false;
    return true;
}

static bool same_but_along(const struct weft_type *a, const struct weft_type *b, unsigned axis)
{
    bool same = a->rank == b->rank;
    for (unsigned i = 0; same && i < a->rank; i++)
        same = i == axis || weft_dim_same(a->extent[i], b->extent[i]);
    return same;
}

static weft_dim product(struct weft_dims *dims, const struct weft_type *type, unsigned from, unsigned to)
{
    weft_dim all = weft_dim_of(1);
    for (unsigned i = from; i < to; i++)
        all = weft_dim_mul(dims, all, type->extent[i]);
    return all;
}

/* The axis of what is reshaped along which the pieces are put together, or WEFT_MAX_RANK. */
static unsigned axis_before(const struct weft_graph *g, const struct pieces *p, bool innermost)
{
    const weft_node first = weft_def(g, p->value[0]);
    const struct weft_type *from = weft_type_of(g, weft_operand(g, first, 0)), *to = weft_type_of(g, p->value[0]);
    const weft_dim outer = product(g->dims, to, 0, p->axis), inner = product(g->dims, to, p->axis, to->rank);
    unsigned found = WEFT_MAX_RANK;
    for (unsigned axis = 0; axis < from->rank && (innermost || found == WEFT_MAX_RANK); axis++) {
        bool fits = weft_dim_same(product(g->dims, from, 0, axis), outer) &&
                    weft_dim_same(product(g->dims, from, axis, from->rank), inner);
        for (unsigned i = 1; fits && i < p->count; i++)
            fits = same_but_along(from, weft_type_of(g, weft_operand(g, weft_def(g, p->value[i]), 0)), axis);
        found = fits ? axis : found;
    }
    return found;
}

static weft_dim extent_of_all(const struct weft_graph *g, const struct pieces *p)
{
    weft_dim sum = weft_dim_of(0);
    for (unsigned i = 0; i < p->count; i++)
        sum = weft_dim_add(g->dims, sum, weft_type_of(g, p->value[i])->extent[p->axis]);
    return sum;
}

/* Goes through one view, if all pieces have the same. */
static bool go_down(const struct weft_graph *g, struct pieces *p, bool innermost)
{
    const weft_node first = weft_def(g, p->value[0]);
    const int op = weft_opcode_of(g, first);
    if ((op != WEFT_OP_transpose && op != WEFT_OP_reshape) || p->views == MOST_VIEWS)
        return false;
    for (unsigned i = 1; i < p->count; i++) {
        const weft_node def = weft_def(g, p->value[i]);
        if (weft_opcode_of(g, def) != op || (op == WEFT_OP_transpose && !same_perm(g, first, def)))
            return false;
    }
    const unsigned axis = op == WEFT_OP_reshape
                              ? axis_before(g, p, innermost)
                              : (unsigned)weft_dim_value(weft_attr_at(g, first, WEFT_ATTR_perm, p->axis));
    if (axis == WEFT_MAX_RANK)
        return false;
    p->view[p->views].node = first;
    p->view[p->views].axis = p->axis;
    p->view[p->views++].extent = p->extent;
    for (unsigned i = 0; i < p->count; i++)
        p->value[i] = weft_operand(g, weft_def(g, p->value[i]), 0);
    p->axis = axis;
    p->extent = extent_of_all(g, p);
    return true;
}

/* Are all pieces neighbouring slices of one value? What they are together. */
static bool are_neighbours(struct weft_graph *g, const struct pieces *p, struct weft_cut *ret)
{
    const weft_node first = weft_def(g, p->value[0]);
    for (unsigned i = 0; i < p->count; i++) {
        const weft_node def = weft_def(g, p->value[i]);
        struct weft_cut next;
        if (weft_opcode_of(g, def) != WEFT_OP_slice || !weft_slice_is_safe(g, def) ||
            !weft_is(weft_operand(g, def, 0), weft_operand(g, first, 0)))
            return false;
        weft_read_cut(g, def, &next);
        if (i == 0)
            *ret = next;
        else if (!weft_cuts_meet(ret, &next, weft_type_of(g, p->value[i])->rank, p->axis))
            return false;
        ret->end[p->axis] = next.end[p->axis];
    }
    return true;
}

static weft_val build(struct weft_rewriting *r, const struct pieces *p, const struct weft_cut *cut)
{
    struct weft_graph *g = r->graph;
    weft_val v = weft_build_slice(&r->build, weft_operand(g, weft_def(g, p->value[0]), 0), cut);
    for (int k = p->views - 1; k >= 0; k--) {
        const weft_node node = p->view[k].node;
        struct weft_type type = *weft_type_of(g, weft_result(g, node, 0));
        type.extent[p->view[k].axis] = p->view[k].extent;
        int perm[WEFT_MAX_RANK];
        for (unsigned i = 0; i < type.rank && weft_opcode_of(g, node) == WEFT_OP_transpose; i++)
            perm[i] = (int)weft_dim_value(weft_attr_at(g, node, WEFT_ATTR_perm, i));
        v = weft_opcode_of(g, node) == WEFT_OP_transpose ? weft_build_transpose(&r->build, v, perm)
                                                         : weft_build_reshape(&r->build, v, &type);
    }
    return v;
}

static weft_val concat_views(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct pieces p = {.count = (unsigned)g->node[n.id].operands};
    if (p.count < 2)
        return WEFT_NO_VALUE;
    p.value = weft_arena_new(&g->root->scratch, p.count * sizeof *p.value);
    for (int innermost = 0; innermost < 2; innermost++) {
        struct weft_cut cut;
        for (unsigned i = 0; i < p.count; i++)
            p.value[i] = weft_operand(g, n, i);
        p.axis = (unsigned)weft_attr_int(g, n, WEFT_ATTR_axis);
        p.extent = extent_of_all(g, &p);
        p.views = 0;
        while (go_down(g, &p, innermost))
            ;
        if (p.views > 0 && are_neighbours(g, &p, &cut))
            return weft_rewrite_begin(r) ? build(r, &p, &cut) : WEFT_NO_VALUE;
    }
    return WEFT_NO_VALUE;
}

/* --- paddings that cut -------------------------------------------------------------------------------------------- */

static weft_val pad_cuts(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_type type = *weft_type_of(g, x);
    const weft_dim zero = weft_dim_of(0);
    weft_dim pad[2 * WEFT_MAX_RANK];
    struct weft_cut cut;
    bool cuts = false, adds = false;
    if (weft_attr_find(g, n, WEFT_ATTR_form))
        return WEFT_NO_VALUE;
    weft_cut_all(&type, &cut);
    for (unsigned side = 0; side < 2u * type.rank; side++) {
        const unsigned axis = side % type.rank;
        pad[side] = weft_attr_at(g, n, WEFT_ATTR_pad, side);
        if (weft_dim_at_most(g->dims, zero, pad[side])) {
            adds |= !weft_dim_is(pad[side], 0);
            continue;
        }
        if (!weft_dim_at_most(g->dims, pad[side], zero))
            return WEFT_NO_VALUE;
        if (side < type.rank)
            cut.start[axis] = weft_dim_sub(g->dims, zero, pad[side]);
        else
            cut.end[axis] = weft_dim_add(g->dims, type.extent[axis], pad[side]);
        pad[side] = zero;
        cuts = true;
    }
    for (unsigned axis = 0; axis < type.rank; axis++)
        if (!weft_dim_at_most(g->dims, cut.start[axis], cut.end[axis]))
            return WEFT_NO_VALUE;
    if (!cuts || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val inside = weft_build_slice(&r->build, x, &cut), both[] = {inside, weft_operand(g, n, 1)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
    return adds ? weft_build(&r->build, WEFT_OP_pad, 2, both, 1, &attr, NULL) : inside;
}

/* --- shuffled parts ----------------------------------------------------------------------------------------------- */

/* Does the reshape split the axis of a concat into one axis of parts, all alike, and one within a part? */
static bool splits_into_parts(const struct weft_graph *g, weft_node reshape, weft_node concat, unsigned axis)
{
    const struct weft_type *const to = weft_type_of(g, weft_result(g, reshape, 0));
    const struct weft_type *const from = weft_type_of(g, weft_result(g, concat, 0));
    const uint32_t parts = g->node[concat.id].operands;
    bool splits = to->rank == from->rank + 1 && parts > 1 && weft_dim_is(to->extent[axis], parts);
    for (int i = 0; i < from->rank && splits; i++)
        splits = i == (int)axis || weft_dim_same(from->extent[i], to->extent[i < (int)axis ? i : i + 1]);
    for (uint32_t k = 0; k < parts && splits; k++)
        splits = weft_dim_same(weft_type_of(g, weft_operand(g, concat, k))->extent[axis], to->extent[axis + 1]);
    return splits;
}

static weft_val transpose_parts(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    const weft_node reshape = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, reshape) != WEFT_OP_reshape || !weft_has_one_use(g, weft_operand(g, n, 0)) ||
        weft_is_decided(g, reshape))
        return WEFT_NO_VALUE;
    const weft_val whole = weft_operand(g, reshape, 0);
    const weft_node concat = weft_def(g, whole);
    if (weft_opcode_of(g, concat) != WEFT_OP_concat || !weft_has_one_use(g, whole) || weft_is_decided(g, concat))
        return WEFT_NO_VALUE;
    const unsigned axis = (unsigned)weft_attr_int(g, concat, WEFT_ATTR_axis), count = g->node[concat.id].operands;
    if (!splits_into_parts(g, reshape, concat, axis))
        return WEFT_NO_VALUE;
    struct weft_type type = *weft_type_of(g, weft_operand(g, n, 0));
    int perm[WEFT_MAX_RANK];
    bool apart = true;
    for (int i = 0; i < type.rank; i++) {
        perm[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, i));
        apart &= i == 0 || perm[i - 1] != (int)axis || perm[i] != (int)axis + 1;
    }
    if (!apart || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val *const part = weft_arena_new(&g->root->scratch, count * sizeof *part);
    type.extent[axis] = weft_dim_of(1);
    for (unsigned k = 0; k < count; k++)
        part[k] = weft_build_reshape(&r->build, weft_operand(g, concat, k), &type);
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_build_transpose(&r->build, weft_build(&r->build, WEFT_OP_concat, count, part, 1, &attr, NULL), perm);
}

static const struct weft_rule rules[] = {
    {"concat_views",    WEFT_OP_concat,    concat_views,    "the same views of neighbours are views of what they were"},
    {"pad_cuts",        WEFT_OP_pad,       pad_cuts,        "what it takes away is a slice"},
    {"transpose_parts", WEFT_OP_transpose, transpose_parts, "the parts are an axis of their own"},
};
const struct weft_rule_set weft_split_concat_views = WEFT_RULE_SET(rules);
