/* SPDX-License-Identifier: Apache-2.0 */
/* sink_concat_pieces.c: parts of what is read beside a concat, in the shape in which the parts of the concat are
 * computed, and in the order of axes in which the whole lies. */
#include "passes/sink_concat.h"

bool weft_parts_is_elementwise(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) && g->node[n.id].results == 1 &&
           !weft_is_decided(g, n);
}

/* In the order of axes of a layout. */
weft_val weft_parts_store_in(struct weft_graph *g, weft_val v, const struct weft_layout *layout)
{
    int order[WEFT_MAX_RANK];
    for (int i = 0; i < layout->axes; i++)
        order[i] = layout->axis[i].axis;
    const struct weft_layout same = weft_layout_order(layout->axes, order);
    g->value[v.id].layout = weft_intern_layout(g, &same, weft_type_of(g, v));
    return v;
}

weft_val weft_parts_store_like(struct weft_graph *g, weft_val v, weft_val other)
{
    const struct weft_layout layout = weft_layout_of(g, other);
    return weft_parts_store_in(g, v, &layout);
}

/* A value of the reader's shape, in the shape in which parts are computed. */
bool weft_parts_is_split(const struct weft_graph *g, const struct weft_parts *parts, weft_val v)
{
    return parts->split && weft_type_of(g, v)->rank != parts->whole.rank;
}

static struct weft_type type_of_split(const struct weft_graph *g, const struct weft_parts *parts, weft_val v)
{
    struct weft_type type = parts->whole;
    type.dtype = weft_type_of(g, v)->dtype;
    return type;
}

bool weft_parts_layout(const struct weft_graph *g, const struct weft_parts *parts, weft_val v, struct weft_layout *ret)
{
    const struct weft_type type = type_of_split(g, parts, v);
    const struct weft_layout from = weft_layout_of(g, v);
    *ret = from;
    return !weft_parts_is_split(g, parts, v) || weft_layout_reshape(g->dims, &from, weft_type_of(g, v), &type, ret);
}

/* One slice, also of what is a slice already. */
static weft_val slice_of(struct weft_rewriting *r, weft_val v, const struct weft_parts *parts, unsigned which,
                         unsigned axis)
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
    return weft_parts_store_like(g, weft_build_slice(&r->build, v, &cut), v);
}

weft_val weft_parts_reshape(struct weft_rewriting *r, weft_val part, const struct weft_type *type)
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

/* Do single elements of the parts take turns along what the reader sees as one axis? */
static bool takes_turns(const struct weft_parts *parts)
{
    bool single = parts->axis + 1 == parts->from + parts->split;
    for (unsigned i = 0; i < parts->count && single; i++)
        single = weft_dim_is(parts->type[i].extent[parts->axis], 1);
    return single;
}

/* Then a part of something else is a slice with steps; none where its extent cannot be said to be that of a part. The
 * graph has that slice already where the parts are slices of
 * the same value, as those of pairs that are turned are: all kernels that read both can be one. */
static weft_val each_of_them(struct weft_rewriting *r, weft_val v, const struct weft_parts *parts, unsigned which)
{
    struct weft_graph *const g = r->graph;
    struct weft_type type = parts->type[which];
    struct weft_cut cut;
    type.dtype = weft_type_of(g, v)->dtype;
    weft_cut_all(weft_type_of(g, v), &cut);
    cut.start[parts->merged] = weft_dim_of(which);
    cut.step[parts->merged] = weft_dim_of(parts->count);
    const weft_val slice = weft_parts_store_like(g, weft_build_slice(&r->build, v, &cut), v);
    weft_dim elements = weft_dim_of(1);
    for (unsigned i = parts->from; i < parts->from + parts->split; i++)
        elements = weft_dim_mul(g->dims, elements, type.extent[i]);
    return weft_dim_same(weft_type_of(g, slice)->extent[parts->merged], elements) ? weft_parts_reshape(r, slice, &type)
                                                                                  : WEFT_NO_VALUE;
}

/* A value in the shape in which parts are computed. */
static weft_val split(struct weft_rewriting *r, weft_val v, const struct weft_parts *parts)
{
    struct weft_graph *const g = r->graph;
    const weft_node def = weft_def(g, v);
    struct weft_layout layout;
    if (!weft_parts_is_split(g, parts, v))
        return v;
    const struct weft_type type = type_of_split(g, parts, v);
    const weft_val before = def.id && weft_opcode_of(g, def) == WEFT_OP_reshape ? weft_operand(g, def, 0) : v;
    if (weft_type_same(weft_type_of(g, before), &type) && weft_is_dense(g, before))
        return before;
    const bool is_view = weft_parts_layout(g, parts, v, &layout);
    const weft_val view = weft_build_reshape(&r->build, v, &type);
    return is_view ? weft_parts_store_in(g, view, &layout) : view;
}

/* What is broadcast, its axis number i split as axis `merged` is. */
static weft_val split_axis(struct weft_rewriting *r, weft_val x, const struct weft_parts *parts, unsigned i)
{
    struct weft_graph *const g = r->graph;
    const struct weft_type from = *weft_type_of(g, x);
    const struct weft_layout stored = weft_layout_of(g, x);
    struct weft_type type = from;
    struct weft_layout layout;
    type.rank = (uint8_t)(from.rank + parts->split - 1);
    for (unsigned k = i; k < type.rank; k++)
        type.extent[k] = k < i + parts->split ? parts->whole.extent[parts->from + k - i]
                                              : from.extent[k - parts->split + 1];
    const bool is_view = weft_layout_reshape(g->dims, &stored, &from, &type, &layout);
    const weft_val view = weft_build_reshape(&r->build, x, &type);
    return is_view ? weft_parts_store_in(g, view, &layout) : view;
}

/* The axes of a broadcast's operand in the shape in which parts are computed; the operand, split likewise. */
static weft_val split_bcast(struct weft_rewriting *r, weft_node bcast, const struct weft_parts *parts, int *axis)
{
    struct weft_graph *const g = r->graph;
    const weft_val whole = weft_result(g, bcast, 0), x = weft_operand(g, bcast, 0);
    const unsigned rank = weft_type_of(g, x)->rank;
    unsigned at = rank, to = 0;
    for (unsigned i = 0; i < rank; i++) {
        const int dim = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, i));
        const bool splits = weft_parts_is_split(g, parts, whole) && dim == (int)parts->merged &&
                            !weft_dim_is(weft_type_of(g, x)->extent[i], 1);
        const int behind = weft_parts_is_split(g, parts, whole) && dim > (int)parts->merged ? (int)parts->split - 1 : 0;
        at = splits ? i : at;
        for (unsigned k = 0; k < (splits ? parts->split : 1); k++)
            axis[to++] = dim + behind + (int)k;
    }
    return at < rank ? split_axis(r, x, parts, at) : x;
}

static weft_val bcast_piece(struct weft_rewriting *r, weft_node bcast, const struct weft_parts *parts, unsigned which,
                            const struct weft_type *type)
{
    struct weft_graph *const g = r->graph;
    int axis[WEFT_MAX_RANK];
    weft_val x = split_bcast(r, bcast, parts, axis);
    const unsigned rank = weft_type_of(g, x)->rank;
    for (unsigned i = 0; i < rank; i++)
        if (axis[i] == (int)parts->axis && !weft_dim_is(weft_type_of(g, x)->extent[i], 1)) {
            x = slice_of(r, x, parts, which, i);
            break;
        }
    return weft_parts_store_in(g, weft_build_bcast(&r->build, x, type, axis), &parts->layout);
}

static bool has_same_cuts(const struct weft_graph *g, weft_node n, const struct weft_parts *parts)
{
    bool same = weft_opcode_of(g, n) == WEFT_OP_concat && g->node[n.id].operands == parts->count &&
                weft_attr_int(g, n, WEFT_ATTR_axis) == parts->axis;
    for (unsigned i = 0; i < parts->count && same; i++)
        same = weft_dim_same(weft_type_of(g, weft_operand(g, n, i))->extent[parts->axis],
                             parts->type[i].extent[parts->axis]);
    return same;
}

/* The concat that a value is, of the same parts, if it is one. */
static weft_node find_same_cuts(const struct weft_graph *g, weft_val v, const struct weft_parts *parts)
{
    weft_node def = weft_def(g, v);
    if (weft_parts_is_split(g, parts, v)) {
        if (!def.id || weft_opcode_of(g, def) != WEFT_OP_reshape ||
            weft_parts_is_split(g, parts, weft_operand(g, def, 0)))
            return WEFT_NO_NODE;
        v = weft_operand(g, def, 0);
        def = weft_def(g, v);
        for (int i = 0; i < parts->whole.rank; i++)
            if (!weft_dim_same(weft_type_of(g, v)->extent[i], parts->whole.extent[i]))
                return WEFT_NO_NODE;
    }
    return def.id && has_same_cuts(g, def, parts) ? def : WEFT_NO_NODE;
}

enum way { SPLAT, PART, BCAST, OPERATE, SLICE };

static enum way way_of(const struct weft_graph *g, weft_val v, const struct weft_parts *parts, int depth)
{
    const weft_node def = weft_def(g, v);
    struct weft_element element;
    if (weft_const_splat(g, v, &element))
        return SPLAT;
    if (!def.id)
        return SLICE;
    if (find_same_cuts(g, v, parts).id)
        return PART;
    if (weft_opcode_of(g, def) == WEFT_OP_bcast && !weft_is_decided(g, def))
        return BCAST;
    const bool again = weft_parts_is_elementwise(g, def) && weft_has_one_use(g, v) && g->node[def.id].operands <= 3;
    return again && weft_is_dense(g, v) && depth > 0 ? OPERATE : SLICE;
}

/* Is all of it plain that would be cut? */
bool weft_parts_has_pieces(const struct weft_graph *g, weft_val v, const struct weft_parts *parts, int depth)
{
    const weft_node def = weft_def(g, v);
    const enum way way = way_of(g, v, parts, depth);
    struct weft_layout layout;
    bool has = way == SPLAT || way == PART || (weft_is_dense(g, v) && weft_parts_layout(g, parts, v, &layout));
    has &= way != BCAST || weft_is_dense(g, weft_operand(g, def, 0));
    for (unsigned k = 0; way == OPERATE && has && k < g->node[def.id].operands; k++)
        has = weft_parts_has_pieces(g, weft_operand(g, def, k), parts, depth - 1);
    return has;
}

weft_val weft_parts_piece(struct weft_rewriting *r, weft_val v, const struct weft_parts *parts, unsigned which,
                          int depth)
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
        return weft_operand(g, find_same_cuts(g, v, parts), which);
    case BCAST:
        return bcast_piece(r, def, parts, which, &type);
    case SLICE:
        operand[0] = weft_parts_is_split(g, parts, v) && takes_turns(parts) ? each_of_them(r, v, parts, which)
                                                                             : WEFT_NO_VALUE;
        return operand[0].id ? operand[0] : slice_of(r, split(r, v, parts), parts, which, parts->axis);
    case OPERATE:
        for (unsigned k = 0; k < g->node[def.id].operands; k++)
            operand[k] = weft_parts_piece(r, weft_operand(g, def, k), parts, which, depth - 1);
    }
    return weft_parts_store_in(g, weft_rebuild_elementwise(&r->build, def, operand, &type), &parts->layout);
}

