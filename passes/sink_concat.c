/* SPDX-License-Identifier: Apache-2.0 */
/* sink_concat: what reads a concat element by element is computed on its parts, and put together behind that.
 *
 *   %c: f32[N,64] = concat %a, %b axis=1                  %t: f32[N,32] = slice %s start=[0 0] end=[N 32]
 *   %y: f32[N,64] = mul %c, %s                       →    %u: f32[N,32] = slice %s start=[0 32] end=[N 64]
 *                                                         %p: f32[N,32] = mul %a, %t
 *                                                         %q: f32[N,32] = mul %b, %u
 *                                                         %y: f32[N,64] = concat %p, %q axis=1
 *
 * A concat takes nothing where its parts are computed in its memory, but a part that is a view of something (half of a
 * vector that is turned, keys of earlier tokens) has to be copied there first, and what makes a part cannot go together
 * with what reads the whole, since they go over other points. On the parts, no copy is left, and each goes with what
 * comes before it; slices are views.
 *
 * What else the op reads is taken in pieces, too: a broadcast as one of fewer elements, an elementwise op that nobody
 * else reads as one on pieces, anything else by a slice. A reshape between the concat and the op that keeps the axis is
 * passed.
 *
 * It pays if all parts are views, or made by elementwise ops or reductions for the concat alone; the smaller of two may
 * be something else (a product), which then has a step behind it that it had not before. Keeps every bit.
 *
 * Why not before layouts are chosen: what is read in pieces is read several times, and the search for layouts takes
 * twenty times as long on graphs with so many ways around.
 * Needs: layouts; concats of concats one (split_concat). Before fuse, whose groups the pieces are for.
 * Not done: concats with several readers; paddings; reductions along other axes behind it; parts in other orders of
 * axes than the whole. */
#include "passes/split_concat.h"

#include <math.h>

enum { MOST_PARTS = 4, LEAST_RUN = 16, MOST_DEPTH = 6 }; /* elements of a part side by side; ops taken in pieces */
enum { MOST_ROUNDS = 8 };

struct parts {
    unsigned count, axis;         /* of the reader's type */
    weft_val part[MOST_PARTS];    /* before the reshape, if there is one */
    struct weft_type type[MOST_PARTS]; /* behind it */
};

static bool is_elementwise(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) && g->node[n.id].results == 1 &&
           !weft_is_decided(g, n);
}

static weft_dim elements_before(const struct weft_graph *g, const struct weft_type *type, unsigned axis)
{
    weft_dim product = weft_dim_of(1);
    for (unsigned i = 0; i < axis; i++)
        product = weft_dim_mul(g->dims, product, type->extent[i]);
    return product;
}

/* The axis of the other shape that is this one; its rank: there is none. */
static unsigned same_axis(const struct weft_graph *g, const struct weft_type *from, unsigned axis,
                          const struct weft_type *to)
{
    const weft_dim before = elements_before(g, from, axis);
    unsigned i = 0;
    while (i < to->rank && !(weft_dim_same(to->extent[i], from->extent[axis]) &&
                             weft_dim_same(elements_before(g, to, i), before)))
        i++;
    return i;
}

static bool find_parts(const struct weft_graph *g, weft_val v, struct parts *ret)
{
    const struct weft_type *const type = weft_type_of(g, v);
    weft_node def = weft_def(g, v);
    weft_val whole = v;
    if (!weft_has_one_use(g, v) || !def.id)
        return false;
    if (weft_opcode_of(g, def) == WEFT_OP_reshape) {
        whole = weft_operand(g, def, 0);
        def = weft_def(g, whole);
        if (!def.id || !weft_has_one_use(g, whole))
            return false;
    }
    if (weft_opcode_of(g, def) != WEFT_OP_concat || g->node[def.id].operands < 2 ||
        g->node[def.id].operands > MOST_PARTS || weft_is_decided(g, def))
        return false;
    const unsigned from = (unsigned)weft_attr_int(g, def, WEFT_ATTR_axis);
    *ret = (struct parts){.count = g->node[def.id].operands, .axis = same_axis(g, weft_type_of(g, whole), from, type)};
    if (ret->axis == type->rank)
        return false;
    for (unsigned i = 0; i < ret->count; i++) {
        ret->part[i] = weft_operand(g, def, i);
        ret->type[i] = *type;
        ret->type[i].extent[ret->axis] = weft_type_of(g, ret->part[i])->extent[from];
    }
    return true;
}

/* Does computing on it save a copy, or go together with what makes it? Through a reshape or a transpose that nobody
 * else reads, a part is made in its place. */
static bool gains(const struct weft_graph *g, weft_val part)
{
    const weft_node own = weft_def(g, part);
    weft_node def = own;
    while (def.id && weft_has_one_use(g, part) &&
           (weft_opcode_of(g, def) == WEFT_OP_reshape || weft_opcode_of(g, def) == WEFT_OP_transpose)) {
        part = weft_operand(g, def, 0);
        def = weft_def(g, part);
    }
    return !def.id || weft_is_const(g, part) || weft_is_view(g, def) ||
           (def.id == own.id && weft_has_one_use(g, part) &&
            (weft_op_of(g, def)->traits & (WEFT_ELEMENTWISE | WEFT_REDUCTION)));
}

/* At most one part gains nothing, and is no more than half. */
static bool pays(const struct weft_graph *g, const struct parts *parts)
{
    unsigned idle = 0;
    double whole = 0, gained = 0, least = INFINITY, run = 1;
    for (unsigned i = 0; i < parts->count; i++) {
        const double extent = (double)weft_dim_hint(g->dims, parts->type[i].extent[parts->axis]);
        const bool gain = gains(g, parts->part[i]);
        whole += extent;
        gained += gain ? extent : 0;
        idle += !gain;
        least = extent < least ? extent : least;
    }
    for (int i = (int)parts->axis + 1; i < parts->type[0].rank; i++)
        run *= (double)weft_dim_hint(g->dims, parts->type[0].extent[i]);
    return run * least >= LEAST_RUN && idle <= (parts->count == 2) && 2 * gained >= whole;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

/* In the order of axes in which the whole lies. */
static weft_val store_like(struct weft_graph *g, weft_val v, weft_val whole)
{
    const struct weft_layout layout = weft_layout_of(g, whole);
    int order[WEFT_MAX_RANK];
    for (int i = 0; i < layout.axes; i++)
        order[i] = layout.axis[i].axis;
    const struct weft_layout same = weft_layout_order(layout.axes, order);
    g->value[v.id].layout = weft_intern_layout(g, &same, weft_type_of(g, v));
    return v;
}

/* Does a part lie as the whole does, so that it is read as fast? */
static bool lies_alike(const struct weft_graph *g, weft_val part, const struct weft_type *type, weft_val whole)
{
    const struct weft_layout from = weft_layout_of(g, part), b = weft_layout_of(g, whole);
    struct weft_layout a = from;
    const struct weft_type *const own = weft_type_of(g, part);
    if (weft_opcode_of(g, weft_def(g, part)) == WEFT_OP_bcast)
        return weft_type_same(own, type);
    if (!weft_is_dense(g, part) ||
        (!weft_type_same(own, type) && !weft_layout_reshape(g->dims, &from, own, type, &a)) || a.axes != b.axes)
        return false;
    int i = 0, k = 0;
    for (; i < a.axes; i++) {
        if (weft_dim_is(type->extent[a.axis[i].axis], 1))
            continue;
        while (k < b.axes && weft_dim_is(type->extent[b.axis[k].axis], 1))
            k++;
        if (k == b.axes || a.axis[i].axis != b.axis[k++].axis)
            return false;
    }
    return true;
}

/* --- pieces of what else is read ---------------------------------------------------------------------------------- */

/* One slice, also of what is a slice already. */
static weft_val slice_of(struct weft_rewriting *r, weft_val v, const struct parts *parts, unsigned which, unsigned axis)
{
    struct weft_graph *const g = r->graph;
    const weft_node def = weft_def(g, v);
    weft_dim start = weft_dim_of(0);
    struct weft_cut cut;
    for (unsigned i = 0; i < which; i++)
        start = weft_dim_add(g->dims, start, parts->type[i].extent[parts->axis]);
    weft_cut_all(weft_type_of(g, v), &cut);
    if (def.id && weft_opcode_of(g, def) == WEFT_OP_slice && weft_slice_is_safe(g, def) && !weft_is_decided(g, def) &&
        weft_is_dense(g, weft_operand(g, def, 0)) && weft_dim_is(weft_attr_at(g, def, WEFT_ATTR_step, axis), 1)) {
        weft_read_cut(g, def, &cut);
        v = weft_operand(g, def, 0);
    }
    cut.start[axis] = weft_dim_add(g->dims, cut.start[axis], start);
    cut.end[axis] = weft_dim_add(g->dims, cut.start[axis], parts->type[which].extent[parts->axis]);
    return store_like(g, weft_build_slice(&r->build, v, &cut), v);
}

static weft_val bcast_piece(struct weft_rewriting *r, weft_node bcast, const struct parts *parts, unsigned which,
                            const struct weft_type *type)
{
    struct weft_graph *const g = r->graph;
    weft_val x = weft_operand(g, bcast, 0);
    const unsigned rank = weft_type_of(g, x)->rank;
    int axis[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        axis[i] = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, i));
    for (unsigned i = 0; i < rank; i++)
        if (axis[i] == (int)parts->axis && !weft_dim_is(weft_type_of(g, x)->extent[i], 1)) {
            x = slice_of(r, x, parts, which, i);
            break;
        }
    return store_like(g, weft_build_bcast(&r->build, x, type, axis), weft_result(g, bcast, 0));
}

static bool has_same_cuts(const struct weft_graph *g, weft_node n, const struct parts *parts)
{
    bool same = weft_opcode_of(g, n) == WEFT_OP_concat && g->node[n.id].operands == parts->count &&
                weft_attr_int(g, n, WEFT_ATTR_axis) == parts->axis;
    for (unsigned i = 0; i < parts->count && same; i++)
        same = weft_dim_same(weft_type_of(g, weft_operand(g, n, i))->extent[parts->axis],
                             parts->type[i].extent[parts->axis]);
    return same;
}

enum way { SPLAT, PART, BCAST, OPERATE, SLICE };

static enum way way_of(const struct weft_graph *g, weft_val v, const struct parts *parts, int depth)
{
    const weft_node def = weft_def(g, v);
    struct weft_element element;
    if (weft_const_splat(g, v, &element))
        return SPLAT;
    if (!def.id)
        return SLICE;
    if (has_same_cuts(g, def, parts))
        return PART;
    if (weft_opcode_of(g, def) == WEFT_OP_bcast && !weft_is_decided(g, def))
        return BCAST;
    const bool again = is_elementwise(g, def) && weft_has_one_use(g, v) && g->node[def.id].operands <= 3;
    return again && weft_is_dense(g, v) && depth > 0 ? OPERATE : SLICE;
}

/* Is all of it plain that would be cut? */
static bool has_pieces(const struct weft_graph *g, weft_val v, const struct parts *parts, int depth)
{
    const weft_node def = weft_def(g, v);
    const enum way way = way_of(g, v, parts, depth);
    bool has = way == SPLAT || way == PART || weft_is_dense(g, v);
    has &= way != BCAST || weft_is_dense(g, weft_operand(g, def, 0));
    for (unsigned k = 0; way == OPERATE && has && k < g->node[def.id].operands; k++)
        has = has_pieces(g, weft_operand(g, def, k), parts, depth - 1);
    return has;
}

static weft_val piece_of(struct weft_rewriting *r, weft_val v, const struct parts *parts, unsigned which, int depth)
{
    struct weft_graph *const g = r->graph;
    const weft_node def = weft_def(g, v);
    struct weft_type type = parts->type[which];
    struct weft_element element;
    weft_val operand[3];
    type.dtype = weft_type_of(g, v)->dtype;
    switch (way_of(g, v, parts, depth)) {
    case SPLAT:
        weft_const_splat(g, v, &element);
        return weft_build_element(&r->build, &type, &element);
    case PART:
        return weft_operand(g, def, which);
    case BCAST:
        return bcast_piece(r, def, parts, which, &type);
    case SLICE:
        return slice_of(r, v, parts, which, parts->axis);
    case OPERATE:
        for (unsigned k = 0; k < g->node[def.id].operands; k++)
            operand[k] = piece_of(r, weft_operand(g, def, k), parts, which, depth - 1);
    }
    return store_like(g, weft_rebuild_elementwise(&r->build, def, operand, &type), v);
}

/* --- the rule ----------------------------------------------------------------------------------------------------- */

static weft_val reshape_part(struct weft_rewriting *r, weft_val part, const struct weft_type *type)
{
    struct weft_graph *const g = r->graph;
    const struct weft_layout from = weft_layout_of(g, part);
    struct weft_layout layout;
    if (weft_type_same(weft_type_of(g, part), type))
        return part;
    const weft_val view = weft_build_reshape(&r->build, part, type);
    if (weft_layout_reshape(g->dims, &from, weft_type_of(g, part), type, &layout))
        g->value[view.id].layout = weft_intern_layout(g, &layout, type);
    return view;
}

static weft_val compute_on_parts(struct weft_rewriting *r, weft_node n, unsigned at, const struct parts *parts)
{
    struct weft_graph *const g = r->graph;
    const weft_val whole = weft_result(g, n, 0);
    weft_val result[MOST_PARTS], operand[3];
    for (unsigned i = 0; i < parts->count; i++) {
        for (unsigned k = 0; k < g->node[n.id].operands; k++)
            operand[k] = k == at ? reshape_part(r, parts->part[i], &parts->type[i])
                                 : piece_of(r, weft_operand(g, n, k), parts, i, MOST_DEPTH);
        result[i] = store_like(g, weft_rebuild_elementwise(&r->build, n, operand, &parts->type[i]), whole);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, parts->axis);
    return store_like(g, weft_build(&r->build, WEFT_OP_concat, parts->count, result, 1, &axis, NULL), whole);
}

/* NULL, or why it is better computed on the whole. */
static const char *check(const struct weft_graph *g, weft_node n, unsigned at, const struct parts *parts)
{
    const weft_val whole = weft_result(g, n, 0);
    if (!pays(g, parts))
        return "not on parts: they are short, or made by other kernels";
    bool alike = weft_is_dense(g, whole);
    for (unsigned i = 0; i < parts->count && alike; i++)
        alike = lies_alike(g, parts->part[i], &parts->type[i], whole);
    for (unsigned k = 0; k < g->node[n.id].operands && alike; k++)
        alike = k == at || has_pieces(g, weft_operand(g, n, k), parts, MOST_DEPTH);
    return alike ? NULL : "not on parts: their layouts differ";
}

static weft_val elementwise_of_concat(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    struct parts parts;
    if (!is_elementwise(g, n) || g->node[n.id].operands > 3)
        return WEFT_NO_VALUE;
    const int out = weft_type_of(g, weft_result(g, n, 0))->dtype;
    for (unsigned k = 0; k < g->node[n.id].operands; k++) {
        const weft_val v = weft_operand(g, n, k);
        if (!find_parts(g, v, &parts) || weft_dtype_bits(out) > weft_dtype_bits(weft_type_of(g, v)->dtype))
            continue;
        const char *const why = check(g, n, k, &parts);
        if (!why)
            return weft_rewrite_begin(r) ? compute_on_parts(r, n, k, &parts) : WEFT_NO_VALUE;
        weft_refuse(r->graph, r->pass, weft_result(g, n, 0), "%s", why);
    }
    return WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"elementwise_of_concat", WEFT_OP_NONE, elementwise_of_concat, "no part is copied"},
};

/* What has been taken in pieces is still there at first, and reads what it read. */
bool weft_pass_sink_concat(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    bool changed = false, again = true;
    for (int round = 0; again && round < MOST_ROUNDS; round++) {
        again = weft_apply_rules(graph, "sink_concat", sets, 1);
        if (again) {
            weft_pass_cse(graph, target);
            weft_pass_dce(graph, target);
        }
        changed |= again;
    }
    return changed;
}
