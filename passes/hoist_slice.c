/* SPDX-License-Identifier: Apache-2.0 */
/* hoist_slice: of what is computed and then read in part only, that part is computed.
 *
 *   %p: f32[197,768] = matmul %a, %w                  %s: f32[1,768] = slice %a start=[0 0] end=[1 768]
 *   %q: f32[197,768] = add %p, %b                     %t: f32[1,768] = slice %b start=[0 0] end=[1 768]
 *   %y: f32[1,768] = slice %q start=[0 0]       →     %p: f32[1,768] = matmul %s, %w
 *                          end=[1 768]                %y: f32[1,768] = add %p, %t
 *
 * A model that looks at its first or last token only computes the whole last layer for it: products, norms and what
 * stands between them. A slice moves in front of the op that makes what it cuts, an op at a time, as far as each value
 * on the way is read by nobody else. Which part of its operands the op needs then, its index maps say (ir/index.h):
 * each axis that is cut has to be one axis of each operand that has it, as it stands, or none. Reshapes and transposes
 * on the way are passed if an op stands behind them that can be cut; a reshape keeps axes, takes one index out of
 * those that it merges, or splits what is cut in steps of that. A broadcast takes fewer elements. Several ops that need
 * the same part of a value share one slice, which is placed right behind the value, so that a residual that joins
 * again is passed, too; that takes a walk over the graph for each value of that kind.
 *
 * It pays where at most half is read: then reading that part of the operands and writing it is no more than writing
 * the whole. A contraction of fewer results takes less time in any case, and what stands between it and the slice can
 * be finished with what reads the slice; but one that cannot be cut (windows some steps apart) keeps what its kernel
 * finishes. Keeps the function; contractions of fewer rows may sum in another order.
 * Of neighbouring windows (convolutions, pools) what they reach over is read, with what is left of the padding.
 *
 * Before layouts are chosen, which they then are for what is left. Needs: equal slices one (cse), dead readers gone or
 * at least unread.
 * Not done: several parts that are less than the whole together; windows some steps apart; causal attention along its
 * rows; parts that the steps of a merged axis cannot say. */
#include "passes/hoist_slice.h"

enum { MOST_VIEWS = 8, MOST_ROUNDS = 64, MOST_DEPTH = 8 };

/* From a slice through views to the op whose result is cut. */
struct way {
    weft_node op;
    struct weft_cut cut;             /* of its result */
    weft_node view[MOST_VIEWS];      /* from the slice on */
    struct weft_type type[MOST_VIEWS]; /* of what is left of them */
    int views;
};

/* --- cuts --------------------------------------------------------------------------------------------------------- */

static struct weft_type type_of_cut(struct weft_graph *g, const struct weft_type *whole, const struct weft_cut *cut)
{
    struct weft_type type = *whole;
    for (int i = 0; i < type.rank; i++) {
        const weft_dim reach = weft_dim_sub(g->dims, cut->end[i], cut->start[i]);
        if (!weft_part_is_whole(whole, cut, i))
            type.extent[i] = weft_dim_ceil_div(g->dims, reach, cut->step[i]);
    }
    return type;
}

static bool same_cut(const struct weft_cut *a, const struct weft_cut *b, int rank)
{
    bool same = true;
    for (int i = 0; i < rank && same; i++)
        same = weft_dim_same(a->start[i], b->start[i]) && weft_dim_same(a->end[i], b->end[i]) &&
               weft_dim_same(a->step[i], b->step[i]);
    return same;
}

/* --- who reads ---------------------------------------------------------------------------------------------------- */

static bool is_unread(const struct weft_graph *g, weft_node n, int depth)
{
    bool unread = true;
    for (uint32_t k = 0; k < g->node[n.id].results && unread; k++) {
        const struct weft_value *const value = weft_value_of(g, weft_result(g, n, k));
        unread = !value->returns && (depth > 0 || !value->uses);
        for (uint32_t use = value->first_use; use && unread; use = g->slot[use - 1].next)
            unread = is_unread(g, g->slot[use - 1].node, depth - 1);
    }
    return unread;
}

/* What is left of earlier rewrites, and read by nobody, does not count. */
static bool is_read_by_one(const struct weft_graph *g, weft_val v, weft_node reader)
{
    bool one = !weft_value_of(g, v)->returns && !weft_is_required(g, v);
    for (uint32_t use = weft_value_of(g, v)->first_use; use && one; use = g->slot[use - 1].next)
        one = g->slot[use - 1].node.id == reader.id || is_unread(g, g->slot[use - 1].node, MOST_VIEWS);
    return one;
}

/* The op once more, on those parts. */
static weft_val rebuild(struct weft_builder *b, weft_node n, const weft_val *operand, const struct weft_type *type,
                        const struct weft_part_needs *needs)
{
    struct weft_graph *const g = b->graph;
    const struct weft_node_info *const info = &g->node[n.id];
    struct weft_attr attr[WEFT_REBUILD_ATTRS + 1];
    unsigned attrs = 0;
    if (!needs->pads)
        return weft_rebuild_elementwise(b, n, operand, type);
    weft_assert(info->attrs <= WEFT_REBUILD_ATTRS);
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].key != WEFT_ATTR_pad)
            attr[attrs++] = info->attr[i];
    attr[attrs++] = weft_attr_of_dims(WEFT_ATTR_pad, 2u * ((unsigned)type->rank - 2), needs->pad);
    return weft_build(b, info->op, info->operands, operand, attrs, attr, NULL);
}

/* --- does it pay? ------------------------------------------------------------------------------------------------- */

static bool is_half(struct weft_graph *g, const struct weft_type *whole, const struct weft_cut *cut)
{
    const struct weft_type part = type_of_cut(g, whole, cut);
    double share = 1;
    for (int i = 0; i < whole->rank; i++)
        share *= (double)weft_dim_hint(g->dims, part.extent[i]) / (double)weft_dim_hint(g->dims, whole->extent[i]);
    return share <= 0.5;
}

/* What makes a value, behind what its kernel may finish. */
enum maker { NO_CONTRACTION, CUT_CONTRACTION, WHOLE_CONTRACTION };

/* Can it be cut, and is nothing but borders left out of what its windows read? */
static enum maker maker_of_contraction(const struct weft_graph *g, weft_node n, bool cuts,
                                       const struct weft_part_needs *needs)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, 0));
    bool whole = true;
    for (int i = 2; i < from->rank && cuts && weft_opcode_of(g, n) == WEFT_OP_conv; i++)
        whole &= weft_part_is_whole(from, &needs->cut[0], i);
    return !cuts ? WHOLE_CONTRACTION : whole ? CUT_CONTRACTION : NO_CONTRACTION;
}

/* Of a value that nobody else reads. */
static enum maker find_maker(struct weft_graph *g, weft_val v, weft_node reader, const struct weft_cut *cut, int depth)
{
    const weft_node def = weft_def(g, v);
    struct weft_part_needs needs;
    if (!def.id || depth == 0 || weft_is_const(g, v) || !is_read_by_one(g, v, reader))
        return NO_CONTRACTION;
    if (weft_opcode_of(g, def) == WEFT_OP_reshape) {
        const weft_val x = weft_operand(g, def, 0);
        if (weft_part_reshaped(g, def, cut, &needs.cut[0]))
            return find_maker(g, x, def, &needs.cut[0], depth - 1);
        return weft_def(g, x).id && weft_part_contracts(g, weft_def(g, x)) ? WHOLE_CONTRACTION : NO_CONTRACTION;
    }
    const bool cuts = weft_part_find_needs(g, def, cut, &needs);
    if (weft_part_contracts(g, def))
        return maker_of_contraction(g, def, cuts, &needs);
    enum maker most = NO_CONTRACTION;
    if (!cuts || !(weft_op_of(g, def)->traits & (WEFT_ELEMENTWISE | WEFT_VIEW)))
        return most;
    for (uint32_t k = 0; k < g->node[def.id].operands; k++) {
        const enum maker maker = find_maker(g, weft_operand(g, def, k), def, &needs.cut[k], depth - 1);
        most = maker > most ? maker : most;
    }
    return most;
}

/* NULL, or why the op computes all of it. */
static const char *check(struct weft_graph *g, const struct way *way, const struct weft_part_needs *needs)
{
    const struct weft_type *const type = weft_type_of(g, weft_result(g, way->op, 0));
    unsigned apart = 0; /* operands of which elements that lie apart would be read */
    enum maker most = weft_part_contracts(g, way->op) ? maker_of_contraction(g, way->op, true, needs) : NO_CONTRACTION;
    for (uint32_t k = 0; k < g->node[way->op.id].operands; k++) {
        const weft_val v = weft_operand(g, way->op, k);
        const int last = weft_type_of(g, v)->rank - 1;
        apart += last >= 0 && !weft_is_const(g, v) && !weft_dim_is(needs->cut[k].step[last], 1);
        const enum maker maker = find_maker(g, v, way->op, &needs->cut[k], MOST_DEPTH);
        if (maker == WHOLE_CONTRACTION && !weft_part_contracts(g, way->op))
            return "not in front of what computes it: a contraction that cannot be cut is finished so";
        most = maker > most && maker == CUT_CONTRACTION ? maker : most;
    }
    if (most == NO_CONTRACTION && !is_half(g, type, &way->cut))
        return "not in front of what computes it: more than half is read";
    return apart > 1 ? "not in front of what computes it: several operands would be read with gaps" : NULL;
}

/* --- the rule ----------------------------------------------------------------------------------------------------- */

static bool find_way(struct weft_graph *g, weft_node slice, struct way *ret)
{
    weft_node reader = slice;
    weft_val v = weft_operand(g, slice, 0);
    ret->views = 0;
    weft_read_cut(g, slice, &ret->cut);
    for (;;) {
        const struct weft_cut cut = ret->cut;
        ret->op = weft_def(g, v);
        if (!ret->op.id || weft_is_const(g, v) || !is_read_by_one(g, v, reader))
            return false;
        const int op = weft_opcode_of(g, ret->op);
        if (op != WEFT_OP_reshape && op != WEFT_OP_transpose)
            return weft_part_is_computed(g, ret->op);
        struct weft_part_needs needs;
        if (ret->views == MOST_VIEWS || !(op == WEFT_OP_reshape ? weft_part_reshaped(g, ret->op, &cut, &needs.cut[0])
                                                                : weft_part_find_needs(g, ret->op, &cut, &needs)))
            return false;
        ret->type[ret->views] = type_of_cut(g, weft_type_of(g, v), &cut);
        ret->view[ret->views++] = reader = ret->op;
        ret->cut = needs.cut[0];
        v = weft_operand(g, ret->op, 0);
    }
}

/* A slice that is there, right behind what it cuts then. */
static weft_node find_slice(struct weft_graph *g, weft_val v, const struct weft_cut *cut, weft_node but)
{
    for (uint32_t use = weft_value_of(g, v)->first_use; use; use = g->slot[use - 1].next) {
        const weft_node n = g->slot[use - 1].node;
        struct weft_cut own;
        if (weft_opcode_of(g, n) != WEFT_OP_slice || n.id == but.id || weft_is_decided(g, n))
            continue;
        weft_read_cut(g, n, &own);
        if (same_cut(&own, cut, weft_type_of(g, v)->rank))
            return n;
    }
    return WEFT_NO_NODE;
}

static weft_val part_of(struct weft_rewriting *r, weft_val v, const struct weft_cut *cut)
{
    struct weft_graph *const g = r->graph;
    const struct weft_type whole = *weft_type_of(g, v), part = type_of_cut(g, &whole, cut);
    const weft_node def = weft_def(g, v);
    struct weft_element element;
    struct weft_part_needs needs;
    bool all = true;
    for (int i = 0; i < whole.rank; i++)
        all &= weft_part_is_whole(&whole, cut, i);
    if (all)
        return v;
    if (weft_const_splat(g, v, &element))
        return weft_build_element(&r->build, &part, &element);
    if (def.id && weft_opcode_of(g, def) == WEFT_OP_bcast && weft_part_find_needs(g, def, cut, &needs)) {
        const weft_val operand = part_of(r, weft_operand(g, def, 0), &needs.cut[0]);
        return weft_rebuild_elementwise(&r->build, def, &operand, &part);
    }
    const weft_node slice = find_slice(g, v, cut, r->node);
    if (!slice.id)
        return weft_build_slice(&r->build, v, cut);
    const weft_node first = def.id ? g->node[def.id].next : g->first;
    if (first.id != slice.id)
        weft_move_before(g, slice, first);
    return weft_result(g, slice, 0);
}

static weft_val slice_of_computed(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    struct way way;
    struct weft_part_needs needs;
    if (!weft_slice_is_safe(g, n) || !find_way(g, n, &way) || !weft_part_find_needs(g, way.op, &way.cut, &needs))
        return WEFT_NO_VALUE;
    const char *const why = check(g, &way, &needs);
    if (why)
        weft_refuse(g, r->pass, weft_result(g, n, 0), "%s", why);
    if (why || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val operand[WEFT_PART_OPERANDS];
    for (uint32_t k = 0; k < g->node[way.op.id].operands; k++)
        operand[k] = part_of(r, weft_operand(g, way.op, k), &needs.cut[k]);
    const struct weft_type type = type_of_cut(g, weft_type_of(g, weft_result(g, way.op, 0)), &way.cut);
    weft_val v = rebuild(&r->build, way.op, operand, &type, &needs);
    for (int i = way.views; i-- > 0;)
        v = weft_opcode_of(g, way.view[i]) == WEFT_OP_reshape
                ? weft_build_reshape(&r->build, v, &way.type[i])
                : weft_rebuild_elementwise(&r->build, way.view[i], &v, &way.type[i]);
    return v;
}

static const struct weft_rule rules[] = {
    {"slice_of_computed", WEFT_OP_slice, slice_of_computed, "only that part is read"},
};

/* What joins again behind several ops is passed in another walk, when all of them need one part of it. */
bool weft_pass_hoist_slice(struct weft_graph *graph, const struct weft_target *target)
{
    (void)target;
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    bool changed = false, again = true;
    for (int round = 0; again && round < MOST_ROUNDS; round++) {
        again = weft_apply_rules(graph, "hoist_slice", sets, 1);
        changed |= again;
    }
    return changed;
}
