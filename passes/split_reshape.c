/* SPDX-License-Identifier: Apache-2.0 */
/* split_reshape: what stands between two reshapes runs over the axes that the first of them merges.
 *
 *   %r: f32[1,8,2048] = reshape %x                        %r: f32[1,8,4,16,32] = reshape %x
 *   %m: f32[1,8] = mean %r axes=[2]                       %p: f32[1,8,4] = mean %r axes=[3 4]
 *   %b: f32[1,8,2048] = bcast %m dims=[0 1]          →    %m: f32[1,8] = mean %p axes=[2]
 *   %d: f32[1,8,2048] = sub %r, %b                        %b: f32[1,8,4,16,32] = bcast %m dims=[0 1]
 *   %y: f32[1,32,16,32] = reshape %d                      %d: f32[1,8,4,16,32] = sub %r, %b
 *                                                         %y: f32[1,32,16,32] = reshape %d
 *
 * This is how exporters write a group norm of pictures [1,32,16,32]. The reshapes on the left are views of row-major
 * pictures only; those on the right split an axis and put it together again, which is a view in every order of axes.
 *
 * Both shapes are cut to digits: the coarsest extents of which each axis of both is a run. A region is all that is
 * reached from such a reshape through elementwise ops; it is rewritten if it ends in reductions and reshapes whose
 * axes are runs of digits too, and if all that comes in from aside is a constant of equal elements, a bcast, or another
 * reshape that digits refine. So every reshape that is left splits or merges only.
 *
 * A reduction over whole axes of %x and over pieces of others is done in two steps, the whole axes first, so that
 * neighbours in memory are not taken a piece at a time. Sums are then added in another order.
 *
 * Why not take apart each merge by itself: one reader that needs the merged axes would pay for it with a copy where the
 * picture is not row-major.
 * Needs: nothing.
 * Not done: regions with contractions, scans or slices; extents of cut axes that are symbols. */
#include "passes/passes.h"

static const char who[] = "split_reshape";

struct digits {
    int count;
    weft_dim extent[WEFT_MAX_RANK];
    bool whole[WEFT_MAX_RANK];     /* an axis of what is reshaped, not a piece of one */
    int first[WEFT_MAX_RANK + 1];  /* of the axes of the coarse shape */
};

struct region {
    struct weft_graph *graph;
    struct weft_arena *arena;
    struct digits digits;
    struct weft_type coarse;       /* dtype aside */
    weft_val *member;              /* values of the coarse shape, in order of discovery */
    uint32_t members, member_capacity;
    weft_node *node;               /* elementwise, reductions, reshapes at the end; each once */
    uint32_t nodes, node_capacity;
    bool closes;                   /* there is such a reshape */
};

struct splitting {
    struct weft_graph *graph;
    struct region region;
    uint32_t *seen;                /* by value: number of the region that reached it */
    uint32_t *node_seen;           /* the same by node */
    weft_val *fine;                /* by value of the region: what it is over digits */
    uint32_t number;
    uint32_t values, nodes;        /* of the graph as it came: what is built on the way has no place in these arrays */
    bool changed;
};

static uint32_t seen(const struct splitting *s, weft_val v) { return v.id < s->values ? s->seen[v.id] : 0; }

/* --- digits ------------------------------------------------------------------------------------------------------- */

static bool add_digit(struct digits *d, weft_dim extent, bool whole)
{
    if (d->count == WEFT_MAX_RANK)
        return false;
    d->extent[d->count] = extent;
    d->whole[d->count++] = whole;
    return true;
}

/* Cuts the axes of both shapes, from the outermost, where those of the other begin. */
static bool cut(const struct weft_type *fine, const struct weft_type *coarse, struct digits *d)
{
    *d = (struct digits){0};
    int i = 0;
    weft_dim left = {0}; /* of axis i, while it is in pieces */
    bool fresh = true;
    for (int k = 0; k < coarse->rank; k++) {
        weft_dim wanted = coarse->extent[k];
        d->first[k] = d->count;
        if (weft_dim_is(wanted, 1) && !add_digit(d, wanted, true))
            return false;
        while (!weft_dim_is(wanted, 1)) {
            while (fresh && i < fine->rank && weft_dim_is(fine->extent[i], 1))
                i++;
            if (i == fine->rank)
                return false;
            const weft_dim have = fresh ? fine->extent[i] : left;
            const bool known = weft_dim_is_constant(have) && weft_dim_is_constant(wanted);
            const int64_t h = known ? weft_dim_value(have) : 0, w = known ? weft_dim_value(wanted) : 0;
            if (weft_dim_same(have, wanted)) {
                if (!add_digit(d, have, fresh))
                    return false;
                wanted = weft_dim_of(1), fresh = true, i++;
            } else if (h > w && w > 0 && h % w == 0) {
                if (!add_digit(d, wanted, false))
                    return false;
                left = weft_dim_of(h / w), wanted = weft_dim_of(1), fresh = false;
            } else if (w > h && h > 0 && w % h == 0) {
                if (!add_digit(d, have, fresh))
                    return false;
                wanted = weft_dim_of(w / h), fresh = true, i++;
            } else {
                return false;
            }
        }
    }
    d->first[coarse->rank] = d->count;
    return fresh;
}

/* Does an axis of the coarse shape hold several digits? */
static bool merges(const struct digits *d, int rank)
{
    for (int k = 0; k < rank; k++)
        if (d->first[k + 1] - d->first[k] > 1)
            return true;
    return false;
}

/* Is each axis of the type a run of digits? */
static bool is_of_runs(const struct weft_graph *g, const struct digits *d, const struct weft_type *type)
{
    int at = 0;
    for (int k = 0; k < type->rank; k++) {
        weft_dim product = weft_dim_of(1);
        while (!weft_dim_same(product, type->extent[k])) {
            if (at == d->count)
                return false;
            product = weft_dim_mul(g->dims, product, d->extent[at++]);
        }
        while (at < d->count && weft_dim_is(d->extent[at], 1))
            at++;
    }
    return at == d->count;
}

static struct weft_type fine_type(const struct region *r, int dtype)
{
    struct weft_type type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)r->digits.count};
    for (int i = 0; i < r->digits.count; i++)
        type.extent[i] = r->digits.extent[i];
    return type;
}

/* --- the region --------------------------------------------------------------------------------------------------- */

static bool has_shape(const struct region *r, weft_val v)
{
    const struct weft_type *type = weft_type_of(r->graph, v);
    bool same = type->rank == r->coarse.rank;
    for (int i = 0; same && i < type->rank; i++)
        same = weft_dim_same(type->extent[i], r->coarse.extent[i]);
    return same;
}

/* A reduction over axes that it lists. */
static bool is_reduction(int op)
{
    return (weft_ops[op].traits & WEFT_REDUCTION) && weft_attr_spec_find(op, WEFT_ATTR_axes);
}

static void add_member(struct splitting *s, weft_val v)
{
    struct region *r = &s->region;
    s->seen[v.id] = s->number;
    r->member = weft_grow(r->arena, r->member, &r->member_capacity, r->members + 1, sizeof *r->member);
    r->member[r->members++] = v;
}

/* A user of a member: part of the region, or the end of it in vain. */
static bool add_user(struct splitting *s, weft_node n)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    const int op = weft_opcode_of(g, n);
    const weft_val result = weft_result(g, n, 0);
    if (n.id >= s->nodes || weft_is_decided(g, n) || g->node[n.id].attrs > WEFT_REBUILD_ATTRS ||
        g->node[n.id].operands > WEFT_MAX_RANK)
        return false;
    if (s->node_seen[n.id] == s->number)
        return true;
    s->node_seen[n.id] = s->number;
    r->node = weft_grow(r->arena, r->node, &r->node_capacity, r->nodes + 1, sizeof *r->node);
    r->node[r->nodes++] = n;
    if (op == WEFT_OP_reshape) {
        r->closes = true;
        return is_of_runs(g, &r->digits, weft_type_of(g, result));
    }
    if (is_reduction(op))
        return true;
    if (!(weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || !has_shape(r, result) || g->value[result.id].returns ||
        seen(s, result))
        return false;
    add_member(s, result);
    return true;
}

/* May this operand come in from aside? */
static bool may_enter(const struct splitting *s, weft_val v)
{
    const struct weft_graph *g = s->graph;
    struct weft_element element;
    if (seen(s, v) == s->number || (weft_is_const(g, v) && weft_const_splat(g, v, &element)))
        return true;
    const weft_node def = weft_def(g, v);
    const int op = def.id ? weft_opcode_of(g, def) : WEFT_OP_NONE;
    if (op == WEFT_OP_reshape)
        return is_of_runs(g, &s->region.digits, weft_type_of(g, weft_operand(g, def, 0)));
    return op == WEFT_OP_bcast;
}

/* All that is reached from the result of a reshape; false if it cannot be rewritten. */
static bool find_region(struct splitting *s, weft_node reshape)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    const weft_val seed = weft_result(g, reshape, 0);
    r->coarse = *weft_type_of(g, seed);
    r->members = r->nodes = 0;
    r->closes = false;
    if (seen(s, seed) || g->value[seed.id].returns || weft_is_decided(g, reshape) ||
        !cut(weft_type_of(g, weft_operand(g, reshape, 0)), &r->coarse, &r->digits) ||
        !merges(&r->digits, r->coarse.rank))
        return false;
    s->number++;
    add_member(s, seed);
    bool good = true;
    for (uint32_t i = 0; good && i < r->members; i++)
        for (uint32_t slot = g->value[r->member[i].id].first_use; good && slot; slot = g->slot[slot - 1].next)
            good = add_user(s, g->slot[slot - 1].node);
    for (uint32_t i = 0; good && i < r->nodes; i++)
        for (unsigned k = 0; good && k < g->node[r->node[i].id].operands; k++)
            good = may_enter(s, weft_operand(g, r->node[i], k));
    return good && r->closes;
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

/* A bcast over digits: axes of its operand that hold several are split first. */
static weft_val fine_bcast(struct region *r, struct weft_builder *b, weft_node bcast)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, bcast, 0);
    const struct weft_type from = *weft_type_of(g, x);
    struct weft_type split = {.dtype = from.dtype};
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        const int k = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, (unsigned)i));
        for (int d = r->digits.first[k]; d < r->digits.first[k + 1]; d++) {
            axis[split.rank] = d;
            split.extent[split.rank++] =
                weft_dim_same(from.extent[i], r->coarse.extent[k]) ? r->digits.extent[d] : weft_dim_of(1);
        }
    }
    const weft_val operand = split.rank == from.rank ? x : weft_build_reshape(b, x, &split);
    const struct weft_type type = fine_type(r, from.dtype);
    return weft_build_bcast(b, operand, &type, axis);
}

/* An operand over digits. */
static weft_val refine(struct splitting *s, struct weft_builder *b, weft_val v)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    struct weft_element element;
    if (seen(s, v) == s->number)
        return s->fine[v.id];
    const struct weft_type type = fine_type(r, weft_type_of(g, v)->dtype);
    if (weft_is_const(g, v) && weft_const_splat(g, v, &element))
        return weft_build_element(b, &type, &element);
    const weft_node def = weft_def(g, v);
    return weft_opcode_of(g, def) == WEFT_OP_bcast ? fine_bcast(r, b, def)
                                                   : weft_build_reshape(b, weft_operand(g, def, 0), &type);
}

/* Reduces those digits of %x that `take` has; `left` is what %x still has of all. */
static weft_val reduce(struct region *r, struct weft_builder *b, weft_node n, weft_val x, const bool *take, bool *left)
{
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    int place = 0;
    for (int d = 0; d < r->digits.count; d++) {
        if (!left[d])
            continue;
        if (take[d])
            axis[axes++] = place, left[d] = false;
        place++;
    }
    if (!axes)
        return x;
    return weft_rebuild_reduction(b, n, x, axes, axis);
}

/* Whole axes first; in one step where a second would round to 16 bits in between. */
static weft_val fine_reduction(struct splitting *s, struct weft_builder *b, weft_node n)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    bool taken[WEFT_MAX_RANK] = {false}, whole[WEFT_MAX_RANK] = {false}, left[WEFT_MAX_RANK];
    const weft_val x = refine(s, b, weft_operand(g, n, 0));
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    const bool narrow = weft_dtype_bits(weft_type_of(g, x)->dtype) < 32;
    for (uint32_t i = 0; i < axes->count; i++)
        for (int k = (int)weft_dim_value(axes->integers[i]), d = r->digits.first[k]; d < r->digits.first[k + 1]; d++)
            taken[d] = true, whole[d] = r->digits.whole[d] || narrow;
    for (int d = 0; d < r->digits.count; d++)
        left[d] = true;
    weft_val y = reduce(r, b, n, x, whole, left);
    y = reduce(r, b, n, y, taken, left);
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    return weft_type_same(weft_type_of(g, y), &type) ? y : weft_build_reshape(b, y, &type);
}

static weft_val fine_elementwise(struct splitting *s, struct weft_builder *b, weft_node n)
{
    struct weft_graph *g = s->graph;
    const unsigned operands = g->node[n.id].operands;
    weft_val operand[WEFT_MAX_RANK];
    for (unsigned i = 0; i < operands; i++)
        operand[i] = refine(s, b, weft_operand(g, n, i));
    const struct weft_type type = fine_type(&s->region, weft_type_of(g, weft_result(g, n, 0))->dtype);
    return weft_rebuild_elementwise(b, n, operand, &type);
}

static void rewrite(struct splitting *s, weft_node reshape)
{
    struct region *r = &s->region;
    struct weft_graph *g = s->graph;
    const weft_val seed = weft_result(g, reshape, 0);
    const struct weft_type type = fine_type(r, weft_type_of(g, seed)->dtype);
    if (!weft_permit(g, who, seed))
        return;
    weft_add_remark(g, who, seed, "done", "%u nodes run over the axes that this merges", r->nodes);
    weft_sort_nodes(g, r->arena, r->node, r->nodes);
    s->fine[seed.id] = weft_build_reshape(&(struct weft_builder){g, reshape}, weft_operand(g, reshape, 0), &type);
    for (uint32_t i = 0; i < r->nodes; i++) {
        const weft_node n = r->node[i];
        const weft_val result = weft_result(g, n, 0);
        struct weft_builder b = {g, n};
        if (weft_opcode_of(g, n) == WEFT_OP_reshape) {
            const struct weft_type to = *weft_type_of(g, result);
            weft_substitute(g, result, weft_build_reshape(&b, refine(s, &b, weft_operand(g, n, 0)), &to));
        } else if (is_reduction(weft_opcode_of(g, n))) {
            weft_substitute(g, result, fine_reduction(s, &b, n));
        } else {
            s->fine[result.id] = fine_elementwise(s, &b, n);
        }
    }
    for (uint32_t i = r->nodes; i-- > 0;)
        weft_erase_unused(g, r->node[i]);
    weft_erase_unused(g, reshape);
    s->changed = true;
}

bool weft_pass_split_reshape(struct weft_graph *graph, const struct weft_target *target)
{
    struct weft_arena *arena = &graph->root->scratch;
    struct splitting s = {.graph = graph, .region = {.graph = graph, .arena = arena},
                          .seen = weft_new(arena, uint32_t, graph->values),
                          .node_seen = weft_new(arena, uint32_t, graph->nodes),
                          .fine = weft_new(arena, weft_val, graph->values),
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
