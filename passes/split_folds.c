/* SPDX-License-Identifier: Apache-2.0 */
/* split_folds: a long sum down few columns is taken in pieces, and computes by itself what it sums.
 *
 *   %s: f32[1,32,256,256]{0 2 3 1} = sub %x, %b           %r: f32[1,32,16,16,256]{0 2 3 4 1} = reshape %x
 *   %q: f32[1,32,256,256]{0 2 3 1} = mul %s, %s           %s: f32[1,32,16,16,256]{0 2 3 4 1} = sub %r, %c
 *   %v: f32[1,32] = mean %q axes=[2 3]              →     %q: f32[1,32,16,16,256]{0 2 3 4 1} = mul %s, %s
 *                                                         %p: f32[1,32,16]{0 2 1} = mean %q axes=[3 4]
 *                                                         %v: f32[1,32] = mean %p axes=[2]
 *
 * A group goes over one box of points, and what workers share out are the points that are left of a fold: here 32,
 * which is a line of memory for each of two workers. So fuse leaves such a fold to a kernel of its own, which cuts it
 * into slices, and everything before it is stored. With pieces there are 16 times as many points.
 *
 * What is summed is computed once more for that (%s and %q have other readers, maybe), if it is cheap and of one value
 * of that size: then no more is read than before, and the readers of %s may compute it for themselves, too, so that
 * nobody stores it.
 *
 * Needs: layouts, since they say what is a column. Before fuse, which makes one kernel of it. Rounds elsewhere: sums
 * are added in pieces, always the same ones. Not done: open sizes, types other than f32, layouts with blocks or gaps,
 * extents that no number from 8 to 63 divides; rows shorter than a vector. */
#include "passes/passes.h"
#include "sched/group.h"

static const char who[] = "split_folds";

enum { LEAST_ROW = 16 }; /* fills the longest vector */
enum { LEAST_ELEMENTS = 64 << 10, PIECES = 16, LEAST_PIECES = WEFT_GROUP_COLUMNS / LEAST_ROW, LEAST_REPEATS = 16 };
enum { MOST_CHAIN = 16, MOST_OPERANDS = 3 };

struct splitting {
    struct weft_graph *graph;
    uint32_t nodes;                  /* of the graph as it came */
    weft_node fold;
    weft_val summed;
    struct weft_type whole, split;   /* of %q: as it is, and with one axis more */
    struct weft_layout layout, split_layout;
    int axis;                        /* the folded one that is split */
    bool folded[WEFT_MAX_RANK];
    weft_val chain[MOST_CHAIN], copy[MOST_CHAIN]; /* what is computed again, readers first */
    unsigned count;
    weft_val source, view;           /* the value of that size that it begins with, and its pieces */
};

/* --- the fold ----------------------------------------------------------------------------------------------------- */

static bool has_constant_size(const struct weft_type *type)
{
    bool constant = true;
    for (int i = 0; i < type->rank; i++)
        constant &= weft_dim_is_constant(type->extent[i]);
    return constant;
}

static int64_t pieces_of(int64_t extent)
{
    for (int64_t pieces = PIECES; pieces < extent && pieces < 4 * PIECES; pieces++)
        if (extent % pieces == 0)
            return pieces;
    for (int64_t pieces = PIECES - 1; pieces >= LEAST_PIECES; pieces--)
        if (extent % pieces == 0)
            return pieces;
    return 0;
}

/* Is it a long sum down few columns? Then the outermost of the axes that it takes is split. */
static bool find_fold(struct splitting *s)
{
    const struct weft_graph *g = s->graph;
    const int op = weft_opcode_of(g, s->fold);
    if ((op != WEFT_OP_sum && op != WEFT_OP_mean && op != WEFT_OP_reduce_max && op != WEFT_OP_reduce_min) ||
        weft_is_decided(g, s->fold) || g->node[s->fold.id].attrs > WEFT_REBUILD_ATTRS)
        return false;
    s->summed = weft_operand(g, s->fold, 0);
    s->whole = *weft_type_of(g, s->summed);
    s->layout = weft_layout_of(g, s->summed);
    if (s->whole.dtype != WEFT_F32 || weft_type_of(g, weft_result(g, s->fold, 0))->dtype != WEFT_F32 ||
        s->whole.rank == WEFT_MAX_RANK || !has_constant_size(&s->whole) || !weft_is_dense(g, s->summed))
        return false;
    const struct weft_attr *axes = weft_attr_find(g, s->fold, WEFT_ATTR_axes);
    for (uint32_t i = 0; i < axes->count; i++)
        s->folded[weft_dim_value(axes->integers[i])] = true;
    int64_t columns = 1, length = 1, row = 1; /* columns side by side in memory */
    s->axis = -1;
    for (int i = 0; i < s->layout.axes; i++) {
        const int axis = s->layout.axis[i].axis;
        const int64_t extent = weft_dim_value(s->whole.extent[axis]);
        if (extent == 1)
            continue;
        row = s->folded[axis] ? 1 : row * extent;
        *(s->folded[axis] ? &length : &columns) *= extent;
        if (s->folded[axis] && s->axis < 0)
            s->axis = axis;
    }
    return s->axis >= 0 && row >= LEAST_ROW && columns < WEFT_GROUP_COLUMNS && columns * length >= LEAST_ELEMENTS &&
           pieces_of(weft_dim_value(s->whole.extent[s->axis])) > 0;
}

static bool find_split(struct splitting *s)
{
    const int64_t extent = weft_dim_value(s->whole.extent[s->axis]), pieces = pieces_of(extent);
    s->split = (struct weft_type){.dtype = s->whole.dtype};
    for (int i = 0; i < s->whole.rank; i++) {
        s->split.extent[s->split.rank++] = i == s->axis ? weft_dim_of(pieces) : s->whole.extent[i];
        if (i == s->axis)
            s->split.extent[s->split.rank++] = weft_dim_of(extent / pieces);
    }
    return weft_layout_reshape(s->graph->dims, &s->layout, &s->whole, &s->split, &s->split_layout);
}

/* --- what it sums ------------------------------------------------------------------------------------------------- */

static bool is_cheap(const struct weft_graph *g, weft_node n)
{
    static const uint16_t cheap[] = {WEFT_OP_add, WEFT_OP_sub, WEFT_OP_mul,  WEFT_OP_min,
                                     WEFT_OP_max, WEFT_OP_neg, WEFT_OP_relu, WEFT_OP_abs};
    for (unsigned i = 0; n.id && i < sizeof cheap / sizeof cheap[0]; i++)
        if (weft_opcode_of(g, n) == cheap[i])
            return g->node[n.id].operands <= MOST_OPERANDS && g->node[n.id].attrs == 0;
    return false;
}

/* A bcast of little that does not go along the axis that is split. */
static bool is_little(const struct splitting *s, weft_val v)
{
    const struct weft_graph *g = s->graph;
    const weft_node def = weft_def(g, v);
    if (!def.id || weft_opcode_of(g, def) != WEFT_OP_bcast)
        return false;
    const struct weft_type *from = weft_type_of(g, weft_operand(g, def, 0));
    int64_t elements = LEAST_REPEATS;
    for (int i = 0; i < from->rank; i++) {
        elements *= weft_dim_value(from->extent[i]);
        if (weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_dims, (unsigned)i)) == s->axis)
            return false;
    }
    for (int i = 0; i < s->whole.rank; i++)
        elements /= weft_dim_value(s->whole.extent[i]);
    return elements == 0;
}

/* May others compute it, too? Then it need not be stored. A convolution reads it from memory, so does the caller. */
static bool is_for_kernels_of_several(const struct weft_graph *g, weft_val v)
{
    bool good = g->value[v.id].returns == 0;
    for (uint32_t slot = g->value[v.id].first_use; slot && good; slot = g->slot[slot - 1].next) {
        const uint32_t traits = weft_op_of(g, g->slot[slot - 1].node)->traits;
        good = traits & (WEFT_ELEMENTWISE | WEFT_REDUCTION);
    }
    return good;
}

static bool is_computed_again(const struct splitting *s, weft_val v)
{
    const struct weft_graph *g = s->graph;
    const weft_node def = weft_def(g, v);
    const struct weft_layout layout = weft_layout_of(g, v);
    return is_cheap(g, def) && !weft_is_decided(g, def) && weft_type_same(weft_type_of(g, v), &s->whole) &&
           weft_is_dense(g, v) && weft_layout_equal(g->dims, &layout, &s->layout, &s->whole) &&
           is_for_kernels_of_several(g, v);
}

static unsigned place_of(const struct splitting *s, weft_val v)
{
    unsigned i = 0;
    while (i < s->count && !weft_is(s->chain[i], v))
        i++;
    return i;
}

/* Down from what is summed; true if all of it comes from one value of that size. */
static bool find_chain(struct splitting *s)
{
    const struct weft_graph *g = s->graph;
    struct weft_element element;
    if (!is_computed_again(s, s->summed))
        return false;
    s->chain[s->count++] = s->summed;
    for (unsigned i = 0; i < s->count; i++) {
        const weft_node n = weft_def(g, s->chain[i]);
        for (uint32_t k = 0; k < g->node[n.id].operands; k++) {
            const weft_val v = weft_operand(g, n, k);
            if (place_of(s, v) < s->count || (weft_is_const(g, v) && weft_const_splat(g, v, &element)) ||
                is_little(s, v))
                continue;
            if (s->count < MOST_CHAIN && is_computed_again(s, v))
                s->chain[s->count++] = v;
            else if (!s->source.id || weft_is(s->source, v))
                s->source = v;
            else
                return false;
        }
    }
    return s->source.id && weft_type_same(weft_type_of(g, s->source), &s->whole) && weft_is_dense(g, s->source);
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

static void store_as(struct weft_graph *g, weft_val v, const struct weft_layout *layout)
{
    g->value[v.id].layout = weft_intern_layout(g, layout, weft_type_of(g, v));
}

static int split_axis(const struct splitting *s, int axis) { return axis + (axis > s->axis); }

/* What an earlier sum made of `x` by this op: a view in pieces, or a bcast along these axes. */
static weft_val made_before(const struct splitting *s, weft_val x, int op, const struct weft_type *type,
                            const int *axis)
{
    const struct weft_graph *g = s->graph;
    for (uint32_t slot = g->value[x.id].first_use; slot; slot = g->slot[slot - 1].next) {
        const weft_node n = g->slot[slot - 1].node;
        bool same = n.id >= s->nodes && weft_opcode_of(g, n) == op &&
                    weft_type_same(weft_type_of(g, weft_result(g, n, 0)), type);
        for (int i = 0; same && axis && i < weft_type_of(g, x)->rank; i++)
            same = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i)) == axis[i];
        if (same)
            return weft_result(g, n, 0);
    }
    return (weft_val){0};
}

static weft_val split_source(struct splitting *s, struct weft_builder *b, const struct weft_layout *layout)
{
    weft_val view = made_before(s, s->source, WEFT_OP_reshape, &s->split, NULL);
    if (!view.id) {
        view = weft_build_reshape(b, s->source, &s->split);
        store_as(s->graph, view, layout);
    }
    return view;
}

static weft_val split_operand(struct splitting *s, struct weft_builder *b, weft_val v)
{
    struct weft_graph *g = s->graph;
    struct weft_element element;
    const unsigned place = place_of(s, v);
    if (place < s->count || weft_is(v, s->source))
        return place < s->count ? s->copy[place] : s->view;
    struct weft_type type = s->split;
    type.dtype = weft_type_of(g, v)->dtype;
    if (weft_is_const(g, v) && weft_const_splat(g, v, &element))
        return weft_build_element(b, &type, &element);
    const weft_node def = weft_def(g, v);
    const weft_val x = weft_operand(g, def, 0);
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < weft_type_of(g, x)->rank; i++)
        axis[i] = split_axis(s, (int)weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_dims, (unsigned)i)));
    const weft_val before = made_before(s, x, WEFT_OP_bcast, &type, axis);
    return before.id ? before : weft_build_bcast(b, x, &type, axis);
}

/* Each behind what it reads; that stands further down in the chain, mostly. */
static weft_val copy_chain(struct splitting *s, struct weft_builder *b)
{
    struct weft_graph *g = s->graph;
    for (unsigned done = 0; done < s->count;)
        for (unsigned i = s->count; i-- > 0;) {
            const weft_node n = weft_def(g, s->chain[i]);
            bool ready = !s->copy[i].id;
            for (uint32_t k = 0; k < g->node[n.id].operands && ready; k++) {
                const unsigned at = place_of(s, weft_operand(g, n, k));
                ready = at == s->count || s->copy[at].id;
            }
            if (!ready)
                continue;
            const unsigned operands = g->node[n.id].operands;
            weft_val operand[MOST_OPERANDS];
            for (unsigned k = 0; k < operands; k++)
                operand[k] = split_operand(s, b, weft_operand(g, n, k));
            s->copy[i] = weft_build(b, weft_opcode_of(g, n), operands, operand, 0, NULL, NULL);
            store_as(g, s->copy[i], &s->split_layout);
            done++;
        }
    return s->copy[0];
}

/* All pieces, then these; the pieces lie as what they are of. */
static weft_val split_fold(const struct splitting *s, struct weft_builder *b, weft_val x)
{
    int64_t axis[WEFT_MAX_RANK], last = 0;
    unsigned axes = 0;
    int place[WEFT_MAX_RANK], order[WEFT_MAX_RANK], rank = 0;
    bool taken[WEFT_MAX_RANK] = {false};
    for (int i = 0; i < s->whole.rank; i++)
        taken[split_axis(s, i) + (i == s->axis)] = s->folded[i];
    for (int i = 0; i < s->split.rank; i++) {
        if (i == s->axis)
            last = rank;
        if (taken[i])
            axis[axes++] = i;
        else
            place[i] = rank++;
    }
    const weft_val pieces = weft_rebuild_reduction(b, s->fold, x, axes, axis);
    rank = 0;
    for (int i = 0; i < s->split_layout.axes; i++)
        if (!taken[s->split_layout.axis[i].axis])
            order[rank++] = place[s->split_layout.axis[i].axis];
    const struct weft_layout layout = weft_layout_order(rank, order);
    store_as(s->graph, pieces, &layout);
    return weft_rebuild_reduction(b, s->fold, pieces, 1, &last);
}

/* With what is a constant or repeated for it alone. */
static void erase_unused(struct weft_graph *g, weft_node n)
{
    weft_node beside[MOST_OPERANDS];
    unsigned count = 0;
    for (uint32_t k = 0; k < g->node[n.id].operands; k++) {
        const weft_val v = weft_operand(g, n, k);
        if (weft_is_const(g, v) || (weft_def(g, v).id && weft_opcode_of(g, weft_def(g, v)) == WEFT_OP_bcast))
            beside[count++] = weft_def(g, v);
    }
    weft_erase_unused(g, n);
    while (count-- > 0)
        if (count == 0 || beside[count].id != beside[0].id)
            weft_erase_unused(g, beside[count]);
}

static bool rewrite(struct splitting *s)
{
    struct weft_graph *g = s->graph;
    const weft_val result = weft_result(g, s->fold, 0);
    struct weft_builder b = {g, s->fold};
    struct weft_layout from = weft_layout_of(g, s->source), layout;
    if (!weft_layout_reshape(g->dims, &from, &s->whole, &s->split, &layout) || !weft_permit(g, who, result))
        return false;
    weft_add_remark(g, who, result, "done", "split into pieces, with the %u nodes before it", s->count);
    s->view = split_source(s, &b, &layout);
    weft_val y = split_fold(s, &b, copy_chain(s, &b));
    if (!weft_type_same(weft_type_of(g, y), weft_type_of(g, result))) {
        const struct weft_type type = *weft_type_of(g, result);
        y = weft_build_reshape(&b, y, &type);
    }
    g->value[y.id].layout = g->value[result.id].layout;
    weft_substitute(g, result, y);
    weft_erase_unused(g, s->fold);
    for (unsigned i = 0; i < s->count; i++)
        erase_unused(g, weft_def(g, s->chain[i]));
    return true;
}

bool weft_pass_split_folds(struct weft_graph *graph, const struct weft_target *target)
{
    const weft_node last = graph->last;
    const uint32_t nodes = graph->nodes;
    bool changed = false;
    for (weft_node n = graph->first, next; n.id; n = next) {
        next = n.id == last.id ? (weft_node){0} : graph->node[n.id].next;
        struct splitting s = {.graph = graph, .nodes = nodes, .fold = n};
        if ((weft_op_of(graph, n)->traits & WEFT_REDUCTION) && find_fold(&s) && find_split(&s) && find_chain(&s))
            changed |= rewrite(&s);
    }
    return changed;
}
