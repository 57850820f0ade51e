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
 * else reads as one on pieces, anything else by a slice. A reshape between the concat and the op is passed: one that
 * keeps the axis on its parts; one that merges the axis with others, as that of pairs that are turned, behind the op.
 * The op is then computed in the shape of the concat, and what else it reads is split into that shape, which is a view:
 *
 *   %c: f32[N,4,2] = concat %a, %b axis=2                 %t: f32[N,4,1] = slice (reshape %s) … both halves of pairs
 *   %r: f32[N,8] = reshape %c                             %p: f32[N,4,1] = mul %a, %t
 *   %y: f32[N,8] = mul %r, %s                        →    %q: f32[N,4,1] = mul %b, %u
 *                                                         %y: f32[N,8] = reshape (concat %p, %q axis=2)
 *
 * It pays if all parts are views, or made by elementwise ops or reductions for the concat alone; the smaller of two may
 * be something else (a product), which then has a step behind it that it had not before. Where nothing makes the parts
 * and rows of what is computed are reduced, it does not: one group reads the parts and stores no row. Keeps every bit.
 *
 * Why not before layouts are chosen: what is read in pieces is read several times, and the search for layouts takes
 * twenty times as long on graphs with so many ways around.
 * Needs: layouts; concats of concats one (split_concat). Before fuse, whose groups the pieces are for.
 * Not done: concats with several readers; paddings; reductions along other axes behind it; parts in other orders of
 * axes than the whole. */
#include "passes/sink_concat.h"

#include <math.h>

enum { LEAST_RUN = 16, MOST_ROUNDS = 8 }; /* elements of a part side by side */

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

/* Is the reader's shape that of the concat with axes in a row merged into one, that of the parts among them? */
static bool find_merged(const struct weft_graph *g, const struct weft_type *concat, unsigned axis,
                        const struct weft_type *reader, struct weft_parts *ret)
{
    unsigned m = 0, behind = 0;
    if (reader->rank >= concat->rank)
        return false;
    while (m < reader->rank && weft_dim_same(reader->extent[m], concat->extent[m]))
        m++;
    while (behind < reader->rank - m && weft_dim_same(reader->extent[reader->rank - 1 - behind],
                                                      concat->extent[concat->rank - 1 - behind]))
        behind++;
    ret->merged = m;
    ret->from = m;
    ret->split = concat->rank - m - behind;
    return m + behind + 1 == reader->rank && m <= axis && axis < m + ret->split;
}

static bool find_parts(const struct weft_graph *g, weft_val v, struct weft_parts *ret)
{
    const struct weft_type *type = weft_type_of(g, v);
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
        g->node[def.id].operands > WEFT_PARTS_MOST || weft_is_decided(g, def))
        return false;
    const unsigned from = (unsigned)weft_attr_int(g, def, WEFT_ATTR_axis);
    *ret = (struct weft_parts){.count = g->node[def.id].operands,
                               .axis = same_axis(g, weft_type_of(g, whole), from, type)};
    if (ret->axis == type->rank) {
        if (!find_merged(g, weft_type_of(g, whole), from, type, ret))
            return false;
        type = weft_type_of(g, whole);
        ret->axis = from;
    }
    ret->whole = *type;
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

/* Is what is computed, through elementwise ops alone, reduced along this axis? */
static bool is_reduced(const struct weft_graph *g, weft_val v, unsigned axis, int depth)
{
    bool reduced = false;
    for (uint32_t use = g->value[v.id].first_use; use && depth > 0 && !reduced; use = g->slot[use - 1].next) {
        const weft_node n = g->slot[use - 1].node;
        const struct weft_attr *const axes = weft_attr_find(g, n, WEFT_ATTR_axes);
        const uint32_t traits = weft_op_of(g, n)->traits;
        for (unsigned i = 0; traits & WEFT_REDUCTION && axes && i < axes->count; i++)
            reduced |= weft_dim_is(axes->integers[i], axis);
        if (traits & WEFT_ELEMENTWISE)
            reduced |= is_reduced(g, weft_result(g, n, 0), axis, depth - 1);
    }
    return reduced;
}

/* Would one group read all parts where they are, and reduce rows of what it computes? */
static bool is_for_group(const struct weft_graph *g, weft_node n, const struct weft_parts *parts)
{
    bool made = false;
    for (unsigned i = 0; i < parts->count; i++) {
        const weft_node def = weft_def(g, parts->part[i]);
        made |= def.id && !weft_is_const(g, parts->part[i]) && !weft_is_view(g, def);
    }
    return !made && !parts->split && parts->layout.axis[parts->layout.axes - 1].axis == (int)parts->axis &&
           is_reduced(g, weft_result(g, n, 0), parts->axis, WEFT_PARTS_DEPTH);
}

/* Elements of the whole side by side for each one along the axis, as it lies. */
static double run_of(const struct weft_graph *g, const struct weft_parts *parts)
{
    double run = 1;
    for (int i = parts->layout.axes; i-- > 0 && parts->layout.axis[i].axis != (int)parts->axis;)
        run *= (double)weft_dim_hint(g->dims, parts->whole.extent[parts->layout.axis[i].axis]);
    return run;
}

/* At most one part gains nothing, and is no more than half. */
static bool pays(const struct weft_graph *g, const struct weft_parts *parts)
{
    unsigned idle = 0;
    double whole = 0, gained = 0, least = INFINITY;
    for (unsigned i = 0; i < parts->count; i++) {
        const double extent = (double)weft_dim_hint(g->dims, parts->type[i].extent[parts->axis]);
        const bool gain = gains(g, parts->part[i]);
        whole += extent;
        gained += gain ? extent : 0;
        idle += !gain;
        least = extent < least ? extent : least;
    }
    return run_of(g, parts) * least >= LEAST_RUN && idle <= (parts->count == 2) && 2 * gained >= whole;
}

/* Does a part lie as the whole does, so that it is read as fast? */
static bool lies_alike(const struct weft_graph *g, weft_val part, const struct weft_type *type,
                       const struct weft_layout *whole)
{
    const struct weft_layout from = weft_layout_of(g, part), b = *whole;
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

/* --- the rule ----------------------------------------------------------------------------------------------------- */

static weft_val compute_on_parts(struct weft_rewriting *r, weft_node n, unsigned at, const struct weft_parts *parts)
{
    struct weft_graph *const g = r->graph;
    const weft_val whole = weft_result(g, n, 0);
    weft_val result[WEFT_PARTS_MOST], operand[3];
    for (unsigned i = 0; i < parts->count; i++) {
        for (unsigned k = 0; k < g->node[n.id].operands; k++)
            operand[k] = k == at ? weft_parts_reshape(r, parts->part[i], &parts->type[i])
                                 : weft_parts_piece(r, weft_operand(g, n, k), parts, i, WEFT_PARTS_DEPTH);
        result[i] = weft_rebuild_elementwise(&r->build, n, operand, &parts->type[i]);
        weft_parts_store_in(g, result[i], &parts->layout);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, parts->axis);
    const weft_val all = weft_build(&r->build, WEFT_OP_concat, parts->count, result, 1, &axis, NULL);
    weft_parts_store_in(g, all, &parts->layout);
    if (!weft_parts_is_split(g, parts, whole))
        return all;
    return weft_parts_store_like(g, weft_build_reshape(&r->build, all, weft_type_of(g, whole)), whole);
}

/* NULL, or why it is better computed on the whole. Finds the layout. */
static const char *check(const struct weft_graph *g, weft_node n, unsigned at, struct weft_parts *parts)
{
    const weft_val whole = weft_result(g, n, 0);
    bool alike = weft_is_dense(g, whole) && weft_parts_layout(g, parts, whole, &parts->layout);
    if (alike && !pays(g, parts))
        return "not on parts: they are short, or made by other kernels";
    if (alike && is_for_group(g, n, parts))
        return "not on parts: rows of it are reduced, by a group that reads the parts";
    for (unsigned i = 0; i < parts->count && alike; i++)
        alike = lies_alike(g, parts->part[i], &parts->type[i], &parts->layout);
    for (unsigned k = 0; k < g->node[n.id].operands && alike; k++)
        alike = k == at || weft_parts_has_pieces(g, weft_operand(g, n, k), parts, WEFT_PARTS_DEPTH);
    return alike ? NULL : "not on parts: their layouts differ";
}

static weft_val elementwise_of_concat(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    struct weft_parts parts;
    if (!weft_parts_is_elementwise(g, n) || g->node[n.id].operands > 3)
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
