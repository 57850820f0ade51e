/* SPDX-License-Identifier: Apache-2.0 */
/* canonicalize_repeat.c: the rules of canonicalize about what is repeated along axes.
 *
 *   %i: i64[B,H,M,N] = iota axis=2                   %i: i64[M] = iota axis=0
 *   %j: i64[B,H,M,N] = iota axis=3                   %a: i64[M,N] = bcast %i dims=[0]
 *   %m: bool[B,H,M,N] = le %j, %i                →   %j: i64[N] = iota axis=0
 *                                                    %b: i64[M,N] = bcast %j dims=[1]
 *                                                    %c: bool[M,N] = le %b, %a
 *                                                    %m: bool[B,H,M,N] = bcast %c dims=[2 3]
 *
 * Numbers along an axis are a line, which a broadcast repeats: a view of a few bytes, where the whole would be written
 * and read. And what an elementwise op computes from repeated operands is repeated itself, along the axes that none of
 * them has: it is computed once for all, below the broadcast. Masks and positions of attention, which exporters build
 * in the shape of the scores, so shrink to the axes that they depend on.
 *
 * A reshape merges the axis along which heads are repeated with the axis of their groups (grouped-query attention),
 * which no view can say. So ops on uniform constants go below such a reshape, and a product that reads one runs over
 * both axes:
 *
 *   %b: f32[4,3,N,64] = bcast %k dims=[0 2 3]        %b: f32[4,3,N,64] = bcast %k dims=[0 2 3]
 *   %r: f32[12,N,64] = reshape %b                    %a: f32[4,3,M,64] = reshape %q
 *   %s: f32[12,M,N] = matmul %q, %r trans_b=1    →   %p: f32[4,3,M,N] = matmul %a, %b trans_b=1
 *                                                    %s: f32[12,M,N] = reshape %p
 *
 * Every bit stays. An axis of extent 1 counts as one that nobody has. Why not reductions too: over a repeated axis a
 * sum is a product, which rounds elsewhere. */
#include "passes/passes.h"

static weft_val iota_line(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    const struct weft_type line = {.dtype = type.dtype, .rank = 1, .extent = {type.extent[axis]}};
    if (type.rank < 2 || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, 0);
    return weft_build_bcast(&r->build, weft_build(&r->build, WEFT_OP_iota, 0, NULL, 1, &along, &line), &type, &axis);
}

/* Marks the axes of the result along which an operand of a shape differs; false if that is not known of it. */
static bool mark_axes(const struct weft_graph *g, weft_val v, const struct weft_type *shape, bool *differs,
                      bool *ret_repeated)
{
    const weft_node def = weft_def(g, v);
    struct weft_element unused;
    struct weft_type type = *shape;
    type.dtype = weft_type_of(g, v)->dtype;
    if (!weft_type_same(weft_type_of(g, v), &type))
        return false;
    if (weft_const_splat(g, v, &unused))
        return true;
    if (weft_opcode_of(g, def) != WEFT_OP_bcast)
        return false;
    const struct weft_type *from = weft_type_of(g, weft_operand(g, def, 0));
    *ret_repeated = true;
    for (unsigned i = 0; i < from->rank; i++)
        if (!weft_dim_is(from->extent[i], 1))
            differs[weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_dims, i))] = true;
    return true;
}

/* The operand over the axes that are left; `place` says where each of the result's axes is among them. */
static weft_val shrunk(struct weft_rewriting *r, weft_val v, const struct weft_type *shape, const int *place)
{
    struct weft_graph *g = r->graph;
    struct weft_type type = *shape;
    struct weft_element element;
    type.dtype = weft_type_of(g, v)->dtype;
    if (weft_const_splat(g, v, &element))
        return weft_build_element(&r->build, &type, &element);
    const weft_node def = weft_def(g, v);
    weft_val x = weft_operand(g, def, 0);
    const struct weft_type from = *weft_type_of(g, x);
    struct weft_type kept = {.dtype = from.dtype};
    int axis[WEFT_MAX_RANK];
    bool in_order = true;
    for (unsigned i = 0; i < from.rank; i++) {
        if (weft_dim_is(from.extent[i], 1))
            continue;
        axis[kept.rank] = place[weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_dims, i))];
        in_order &= axis[kept.rank] == kept.rank;
        kept.extent[kept.rank++] = from.extent[i];
    }
    if (kept.rank != from.rank)
        x = weft_build_reshape(&r->build, x, &kept);
    return in_order && kept.rank == type.rank ? x : weft_build_bcast(&r->build, x, &type, axis);
}

static weft_val below_bcast(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    bool differs[WEFT_MAX_RANK] = {false}, repeated = false;
    if (!(weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || info->operands < 1 || info->operands > 3)
        return WEFT_NO_VALUE;
    for (unsigned i = 0; i < info->operands; i++)
        if (!mark_axes(g, weft_operand(g, n, i), &type, differs, &repeated))
            return WEFT_NO_VALUE;
    struct weft_type small = {.dtype = type.dtype};
    int place[WEFT_MAX_RANK], axis[WEFT_MAX_RANK];
    bool less = false;
    for (unsigned i = 0; i < type.rank; i++) {
        less |= !differs[i] && !weft_dim_is(type.extent[i], 1);
        if (!differs[i])
            continue;
        place[i] = small.rank;
        axis[small.rank] = (int)i;
        small.extent[small.rank++] = type.extent[i];
    }
    if (!repeated || !less || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const unsigned operands = info->operands;
    weft_val operand[3];
    for (unsigned i = 0; i < operands; i++)
        operand[i] = shrunk(r, weft_operand(g, n, i), &small, place);
    info = &g->node[n.id]; /* the table may have moved */
    const bool stated = weft_op_of(g, n)->traits & WEFT_STATED;
    const weft_val result = weft_build(&r->build, weft_opcode_of(g, n), operands, operand, info->attrs,
                                       info->attr, stated ? &small : NULL);
    return weft_build_bcast(&r->build, result, &type, axis);
}

/* The reshape that makes v, if it is one of repeated elements; else none. */
static weft_node reshape_of_bcast(const struct weft_graph *g, weft_val v)
{
    const weft_node reshape = weft_def(g, v);
    const bool right = weft_opcode_of(g, reshape) == WEFT_OP_reshape &&
                       weft_def_opcode(g, weft_operand(g, reshape, 0)) == WEFT_OP_bcast;
    return right ? reshape : WEFT_NO_NODE;
}

static weft_val below_reshape(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const unsigned operands = g->node[n.id].operands;
    if (!(weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || operands < 1 || operands > 3)
        return WEFT_NO_VALUE;
    weft_node reshape = WEFT_NO_NODE;
    struct weft_element element;
    unsigned slot = 0;
    for (unsigned i = 0; i < operands; i++) {
        const weft_node found = reshape_of_bcast(g, weft_operand(g, n, i));
        if (found.id ? reshape.id != 0 : !weft_const_splat(g, weft_operand(g, n, i), &element))
            return WEFT_NO_VALUE;
        if (found.id) {
            reshape = found;
            slot = i;
        }
    }
    if (!reshape.id || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    const struct weft_type from = *weft_type_of(g, weft_operand(g, reshape, 0));
    weft_val operand[3];
    for (unsigned i = 0; i < operands; i++) {
        struct weft_type split = from;
        split.dtype = weft_type_of(g, weft_operand(g, n, i))->dtype;
        operand[i] = i == slot ? weft_operand(g, reshape, 0)
                     : weft_const_splat(g, weft_operand(g, n, i), &element)
                         ? weft_build_element(&r->build, &split, &element)
                         : WEFT_NO_VALUE;
    }
    const struct weft_node_info *info = &g->node[n.id]; /* after building: the table may have moved */
    struct weft_type split = from;
    split.dtype = type.dtype;
    const bool stated = weft_op_of(g, n)->traits & WEFT_STATED;
    const weft_val result = weft_build(&r->build, weft_opcode_of(g, n), operands, operand, info->attrs,
                                       info->attr, stated ? &split : NULL);
    return weft_build_reshape(&r->build, result, &type);
}

/* Does a reshape merge axes p and p + 1 of this type, and nothing else? */
static bool merges_two(struct weft_graph *g, const struct weft_type *from, const struct weft_type *to, int p)
{
    if (from->rank != to->rank + 1 ||
        !weft_dim_same(weft_dim_mul(g->dims, from->extent[p], from->extent[p + 1]), to->extent[p]))
        return false;
    for (int i = 0; i < to->rank; i++)
        if (i != p && !weft_dim_same(from->extent[i < p ? i : i + 1], to->extent[i]))
            return false;
    return true;
}

/* With axis p as the two axes of `split`. */
static struct weft_type split_type(const struct weft_type *type, const struct weft_type *split, int p)
{
    struct weft_type ret = *type;
    ret.rank++;
    for (int i = ret.rank - 1; i > p + 1; i--)
        ret.extent[i] = type->extent[i - 1];
    ret.extent[p] = split->extent[p];
    ret.extent[p + 1] = split->extent[p + 1];
    return ret;
}

static weft_val product_of_repeated(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    for (unsigned slot = 0; slot < 2; slot++) {
        const weft_node reshape = reshape_of_bcast(g, weft_operand(g, n, slot));
        if (!reshape.id || type.rank == WEFT_MAX_RANK)
            continue;
        const struct weft_type from = *weft_type_of(g, weft_operand(g, reshape, 0));
        const struct weft_type to = *weft_type_of(g, weft_operand(g, n, slot));
        int p = 0;
        while (p < type.rank - 2 && !merges_two(g, &from, &to, p))
            p++;
        if (p >= type.rank - 2)
            continue;
        if (!weft_rewrite_begin(r))
            return WEFT_NO_VALUE;
        const weft_val other = weft_operand(g, n, 1 - slot);
        const struct weft_type split = split_type(weft_type_of(g, other), &from, p);
        const struct weft_type whole = split_type(&type, &from, p);
        weft_val operand[2];
        operand[slot] = weft_operand(g, reshape, 0);
        operand[1 - slot] = weft_build_reshape(&r->build, other, &split);
        const struct weft_node_info *info = &g->node[n.id]; /* the table may have moved */
        const bool stated = weft_op_of(g, n)->traits & WEFT_STATED;
        const weft_val product = weft_build(&r->build, WEFT_OP_matmul, 2, operand, info->attrs, info->attr,
                                            stated ? &whole : NULL);
        return weft_build_reshape(&r->build, product, &type);
    }
    return WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"iota_line",   WEFT_OP_iota, iota_line,   "it counts along one axis, and is repeated along the others"},
    {"below_bcast", WEFT_OP_NONE, below_bcast, "it is the same along these axes"},
    {"below_reshape", WEFT_OP_NONE, below_reshape, "it is computed of elements that are repeated"},
    {"product_of_repeated", WEFT_OP_matmul, product_of_repeated, "the operand is read without being repeated"},
};
const struct weft_rule_set weft_canonicalize_repeats = WEFT_RULE_SET(rules);
