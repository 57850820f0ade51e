/* SPDX-License-Identifier: Apache-2.0 */
/* merge_axes: what stands between a reshape that splits axes and one that puts them together runs over whole axes.
 *
 *   %r: f32[1,8,4,16,32] = reshape %x                     %p: f32[1,32] = mean %x axes=[2 3]
 *   %p: f32[1,8,4] = mean %r axes=[3 4]                   %q: f32[1,8,4] = reshape %p
 *   %m: f32[1,8] = mean %p axes=[2]                       %m: f32[1,8] = mean %q axes=[2]
 *   %b: f32[1,8,4,16,32] = bcast %m dims=[0 1]       →    %e: f32[1,8,4] = bcast %m dims=[0 1]
 *   %d: f32[1,8,4,16,32] = sub %r, %b                     %f: f32[1,32] = reshape %e
 *   %y: f32[1,32,16,32] = reshape %d                      %b: f32[1,32,16,32] = bcast %f dims=[0 1]
 *                                                         %y: f32[1,32,16,32] = sub %x, %b
 *
 * A group norm: the number of a group of channels becomes one for each channel, which is little, and all that goes over
 * the picture has its axes. So nothing stands between it and what comes before and behind, which then are one kernel;
 * and where channels lie innermost, what goes along a row is a row of numbers, not one number for each four.
 *
 * A region is all that is reached from a reshape that splits axes through elementwise ops. It is rewritten if it ends
 * in reductions that take whole axes of what was split, and in reshapes to its shape, at least one of these, and if all
 * that comes in from aside is a constant of equal elements, another reshape of that shape, or a bcast of what has a
 * sixteenth of the elements or less once it is repeated along pieces of axes (its own elements do not count).
 *
 * Why not in fuse, where a group could go over the pieces: a row of 4 channels that have one factor is shorter than any
 * vector.
 * Needs: nothing. Keeps every bit. Not done: reductions over pieces of axes, regions with other ops. */
#include "passes/passes.h"

static const char who[] = "merge_axes";

enum { MOST_OPERANDS = 8, LEAST_REPEATS = 16 };

struct region {
    struct weft_type whole, split;   /* dtypes aside */
    int first[WEFT_MAX_RANK + 1];    /* of the axes of `split`: where those of axis k of `whole` begin */
    weft_val *member;                /* values of the split shape, in order of discovery */
    weft_node *node;                 /* elementwise, reductions, reshapes at the end; each once */
    uint32_t members, member_capacity, nodes, node_capacity, elementwise;
    bool closes;                     /* there is such a reshape */
};

struct merging {
    struct weft_graph *graph;
    struct weft_arena *arena;
    struct region region;
    uint32_t *seen, *node_seen;      /* by value, by node: number of the region that reached it */
    weft_val *merged;                /* by value of the region: what it is over whole axes */
    uint32_t number;
    uint32_t values, nodes;          /* of the graph as it came */
    bool changed;
};

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static bool has_shape(const struct weft_graph *g, weft_val v, const struct weft_type *shape)
{
    struct weft_type type = *shape;
    type.dtype = weft_type_of(g, v)->dtype;
    return weft_type_same(weft_type_of(g, v), &type);
}

/* Is each axis of `whole` a run of axes of `split`, and one of them of several? */
static bool find_runs(const struct weft_graph *g, struct region *r)
{
    int at = 0;
    bool splits = false;
    for (int k = 0; k < r->whole.rank; k++) {
        weft_dim product = weft_dim_of(1);
        int pieces = 0;
        r->first[k] = at;
        while (!weft_dim_same(product, r->whole.extent[k])) {
            if (at == r->split.rank)
                return false;
            pieces += !weft_dim_is(r->split.extent[at], 1);
            product = weft_dim_mul(g->dims, product, r->split.extent[at++]);
        }
        if (at == r->first[k] && at < r->split.rank && weft_dim_is(r->split.extent[at], 1))
            at++;
        splits |= pieces > 1;
    }
    while (at < r->split.rank && weft_dim_is(r->split.extent[at], 1))
        at++;
    r->first[r->whole.rank] = at;
    return splits && at == r->split.rank;
}

/* Which axis of the whole shape this one of the split shape is a piece of. */
static int run_of(const struct region *r, int axis)
{
    int k = 0;
    while (axis >= r->first[k + 1])
        k++;
    return k;
}

/* Which whole axes a reduction takes; false if it takes pieces of one. */
static bool find_taken(const struct weft_graph *g, const struct region *r, weft_node n, bool *taken)
{
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    bool piece[WEFT_MAX_RANK] = {false}, whole = true;
    for (uint32_t i = 0; i < axes->count; i++)
        piece[weft_dim_value(axes->integers[i])] = true;
    for (int k = 0; k < r->whole.rank && whole; k++) {
        taken[k] = r->first[k] < r->first[k + 1] && piece[r->first[k]];
        for (int i = r->first[k]; i < r->first[k + 1]; i++)
            whole &= piece[i] == taken[k];
    }
    return whole;
}

/* --- what is repeated along pieces -------------------------------------------------------------------------------- */

/* How a bcast of the split shape reads what it repeats: without axes of one element, which say nothing. */
struct repeat {
    struct weft_type operand, pieces, merged; /* as it is; over all pieces of the axes that it has; over these axes */
    int to_piece[WEFT_MAX_RANK], to_whole[WEFT_MAX_RANK];
    bool repeats;                    /* along pieces */
};

static void read_repeat(const struct weft_graph *g, const struct region *r, weft_node bcast, struct repeat *ret)
{
    const struct weft_type *from = weft_type_of(g, weft_operand(g, bcast, 0));
    int axis_of[WEFT_MAX_RANK], place[WEFT_MAX_RANK];
    bool touched[WEFT_MAX_RANK] = {false};
    *ret = (struct repeat){.operand.dtype = from->dtype, .pieces.dtype = from->dtype, .merged.dtype = from->dtype};
    for (int i = 0; i < from->rank; i++) {
        if (weft_dim_is(from->extent[i], 1))
            continue;
        axis_of[ret->operand.rank] = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, (unsigned)i));
        touched[run_of(r, axis_of[ret->operand.rank])] = true;
        ret->operand.extent[ret->operand.rank++] = from->extent[i];
    }
    for (int k = 0; k < r->whole.rank; k++) {
        if (!touched[k])
            continue;
        ret->to_whole[ret->merged.rank] = k;
        ret->merged.extent[ret->merged.rank++] = r->whole.extent[k];
        for (int i = r->first[k]; i < r->first[k + 1]; i++) {
            place[i] = ret->pieces.rank;
            ret->pieces.extent[ret->pieces.rank++] = r->split.extent[i];
        }
    }
    ret->repeats = ret->operand.rank != ret->pieces.rank;
    for (int i = 0; i < ret->operand.rank; i++) {
        ret->to_piece[i] = place[axis_of[i]];
        ret->repeats |= ret->to_piece[i] != i;
    }
}

static double elements(const struct weft_graph *g, const struct weft_type *type)
{
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= (double)weft_dim_hint(g->dims, type->extent[i]);
    return count;
}

static bool is_little(const struct weft_graph *g, const struct region *r, weft_node bcast)
{
    struct repeat repeat;
    read_repeat(g, r, bcast, &repeat);
    return !repeat.repeats || elements(g, &repeat.merged) * LEAST_REPEATS <= elements(g, &r->whole);
}

static weft_val merge_bcast(const struct merging *s, struct weft_builder *b, weft_node bcast)
{
    const struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    struct repeat repeat;
    weft_val x = weft_operand(g, bcast, 0);
    struct weft_type type = r->whole;
    read_repeat(g, r, bcast, &repeat);
    type.dtype = repeat.operand.dtype;
    if (!weft_type_same(weft_type_of(g, x), &repeat.operand))
        x = weft_build_reshape(b, x, &repeat.operand);
    if (repeat.repeats)
        x = weft_build_bcast(b, x, &repeat.pieces, repeat.to_piece);
    if (!weft_type_same(weft_type_of(g, x), &repeat.merged))
        x = weft_build_reshape(b, x, &repeat.merged);
    return weft_build_bcast(b, x, &type, repeat.to_whole);
}

/* --- the region --------------------------------------------------------------------------------------------------- */

static uint32_t seen(const struct merging *s, weft_val v) { return v.id < s->values ? s->seen[v.id] : 0; }

static void add_member(struct merging *s, weft_val v)
{
    struct region *r = &s->region;
    s->seen[v.id] = s->number;
    r->member = weft_grow(s->arena, r->member, &r->member_capacity, r->members + 1, sizeof *r->member);
    r->member[r->members++] = v;
}

/* A user of a member: part of the region, or the end of it in vain. */
static bool add_user(struct merging *s, weft_node n)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    if (n.id >= s->nodes || weft_is_decided(g, n) || g->node[n.id].attrs > WEFT_REBUILD_ATTRS ||
        g->node[n.id].operands > MOST_OPERANDS)
        return false;
    if (s->node_seen[n.id] == s->number)
        return true;
    const int op = weft_opcode_of(g, n);
    const weft_val result = weft_result(g, n, 0);
    s->node_seen[n.id] = s->number;
    r->node = weft_grow(s->arena, r->node, &r->node_capacity, r->nodes + 1, sizeof *r->node);
    r->node[r->nodes++] = n;
    if (op == WEFT_OP_reshape) {
        r->closes = true;
        return has_shape(g, result, &r->whole);
    }
    bool taken[WEFT_MAX_RANK];
    if ((weft_ops[op].traits & WEFT_REDUCTION) && weft_attr_spec_find(op, WEFT_ATTR_axes))
        return find_taken(g, r, n, taken);
    if (!(weft_ops[op].traits & WEFT_ELEMENTWISE) || !has_shape(g, result, &r->split) || g->value[result.id].returns ||
        seen(s, result))
        return false;
    r->elementwise++;
    add_member(s, result);
    return true;
}

/* May this operand come in from aside? */
static bool may_enter(const struct merging *s, weft_val v)
{
    const struct weft_graph *g = s->graph;
    const struct region *r = &s->region;
    struct weft_element element;
    if (seen(s, v) == s->number || (weft_is_const(g, v) && weft_const_splat(g, v, &element)))
        return true;
    const weft_node def = weft_def(g, v);
    const int op = def.id && has_shape(g, v, &r->split) ? weft_opcode_of(g, def) : WEFT_OP_NONE;
    return op == WEFT_OP_reshape ? has_shape(g, weft_operand(g, def, 0), &r->whole)
                                 : op == WEFT_OP_bcast && is_little(g, r, def);
}

/* All that is reached from the result of a reshape; false if it cannot be rewritten. */
static bool find_region(struct merging *s, weft_node reshape)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    const weft_val seed = weft_result(g, reshape, 0);
    r->whole = *weft_type_of(g, weft_operand(g, reshape, 0));
    r->split = *weft_type_of(g, seed);
    r->members = r->nodes = r->elementwise = 0;
    r->closes = false;
    if (seen(s, seed) || g->value[seed.id].returns || weft_is_decided(g, reshape) || !find_runs(g, r))
        return false;
    s->number++;
    add_member(s, seed);
    bool good = true;
    for (uint32_t i = 0; good && i < r->members; i++)
        for (uint32_t slot = g->value[r->member[i].id].first_use; good && slot; slot = g->slot[slot - 1].next)
            good = add_user(s, g->slot[slot - 1].node);
    good = good && r->closes && r->elementwise > 0;
    for (uint32_t i = 0; good && i < r->nodes; i++)
        for (unsigned k = 0; good && k < g->node[r->node[i].id].operands; k++)
            good = may_enter(s, weft_operand(g, r->node[i], k));
    return good;
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

/* An operand over whole axes. */
static weft_val merge_operand(const struct merging *s, struct weft_builder *b, weft_val v)
{
    struct weft_graph *g = s->graph;
    struct weft_element element;
    if (seen(s, v) == s->number)
        return s->merged[v.id];
    struct weft_type type = s->region.whole;
    type.dtype = weft_type_of(g, v)->dtype;
    if (weft_is_const(g, v) && weft_const_splat(g, v, &element))
        return weft_build_element(b, &type, &element);
    const weft_node def = weft_def(g, v);
    return weft_opcode_of(g, def) == WEFT_OP_bcast ? merge_bcast(s, b, def) : weft_operand(g, def, 0);
}

static weft_val merge_reduction(const struct merging *s, struct weft_builder *b, weft_node n)
{
    struct weft_graph *g = s->graph;
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    bool taken[WEFT_MAX_RANK];
    find_taken(g, &s->region, n, taken);
    for (int k = 0; k < s->region.whole.rank; k++)
        if (taken[k])
            axis[axes++] = k;
    const weft_val x = merge_operand(s, b, weft_operand(g, n, 0));
    const weft_val y = weft_rebuild_reduction(b, n, x, axes, axis);
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    return weft_type_same(weft_type_of(g, y), &type) ? y : weft_build_reshape(b, y, &type);
}

static weft_val merge_elementwise(const struct merging *s, struct weft_builder *b, weft_node n)
{
    struct weft_graph *g = s->graph;
    const unsigned operands = g->node[n.id].operands;
    weft_val operand[MOST_OPERANDS];
    for (unsigned i = 0; i < operands; i++)
        operand[i] = merge_operand(s, b, weft_operand(g, n, i));
    return weft_rebuild_elementwise(b, n, operand, &s->region.whole);
}

static void rewrite(struct merging *s, weft_node reshape)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    const weft_val seed = weft_result(g, reshape, 0);
    if (!weft_permit(g, who, seed))
        return;
    weft_add_remark(g, who, seed, "done", "%u nodes run over the axes that this splits", r->nodes);
    weft_sort_nodes(g, s->arena, r->node, r->nodes);
    s->merged[seed.id] = weft_operand(g, reshape, 0);
    for (uint32_t i = 0; i < r->nodes; i++) {
        const weft_node n = r->node[i];
        const weft_val result = weft_result(g, n, 0);
        struct weft_builder b = {g, n};
        if (weft_opcode_of(g, n) == WEFT_OP_reshape) { /* one that changes nothing may be returned */
            const struct weft_type to = *weft_type_of(g, result);
            weft_substitute(g, result, weft_build_reshape(&b, merge_operand(s, &b, weft_operand(g, n, 0)), &to));
        } else if (weft_op_of(g, n)->traits & WEFT_REDUCTION) {
            weft_substitute(g, result, merge_reduction(s, &b, n));
        } else {
            s->merged[result.id] = merge_elementwise(s, &b, n);
        }
    }
    for (uint32_t i = r->nodes; i-- > 0;)
        weft_erase_unused(g, r->node[i]);
    weft_erase_unused(g, reshape);
    s->changed = true;
}

bool weft_pass_merge_axes(struct weft_graph *graph, const struct weft_target *target)
{
    struct weft_arena *arena = &graph->root->scratch;
    struct merging s = {.graph = graph, .arena = arena,
                        .seen = weft_new(arena, uint32_t, graph->values),
                        .node_seen = weft_new(arena, uint32_t, graph->nodes),
                        .merged = weft_new(arena, weft_val, graph->values),
                        .values = graph->values, .nodes = graph->nodes};
    const weft_node last = graph->last;
    weft_foreach_node(graph, n) {
        if (n.id < s.nodes && weft_opcode_of(graph, n) == WEFT_OP_reshape && find_region(&s, n))
            rewrite(&s, n);
        if (n.id == last.id)
            break;
    }
    return s.changed;
}
