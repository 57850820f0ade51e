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
#include "passes/split_concat.h"

#include <string.h>

enum { MOST_VIEWS = 8, MOST_ROUNDS = 64, MOST_DEPTH = 8, MOST_OPERANDS = 4 };

/* What an op needs of its operands. */
struct needs {
    struct weft_cut cut[MOST_OPERANDS];
    bool pads;                       /* windows have other borders then */
    weft_dim pad[2 * WEFT_MAX_RANK];
};
/* From a slice through views to the op whose result is cut. */
struct way {
    weft_node op;
    struct weft_cut cut;             /* of its result */
    weft_node view[MOST_VIEWS];      /* from the slice on */
    struct weft_type type[MOST_VIEWS]; /* of what is left of them */
    int views;
};

/* --- cuts --------------------------------------------------------------------------------------------------------- */

static bool is_whole(const struct weft_type *type, const struct weft_cut *cut, int i)
{
    return weft_dim_is(cut->start[i], 0) && weft_dim_same(cut->end[i], type->extent[i]) && weft_dim_is(cut->step[i], 1);
}

static struct weft_type type_of_cut(struct weft_graph *g, const struct weft_type *whole, const struct weft_cut *cut)
{
    struct weft_type type = *whole;
    for (int i = 0; i < type.rank; i++) {
        const weft_dim reach = weft_dim_sub(g->dims, cut->end[i], cut->start[i]);
        type.extent[i] = is_whole(whole, cut, i) ? type.extent[i] : weft_dim_ceil_div(g->dims, reach, cut->step[i]);
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

/* --- what of operands is needed ----------------------------------------------------------------------------------- */

static bool is_contraction(const struct weft_graph *g, weft_node n)
{
    return (weft_op_of(g, n)->traits & (WEFT_CONTRACTION | WEFT_RECURRENT)) == WEFT_CONTRACTION;
}

static bool takes_part(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    const bool computes = weft_op_of(g, n)->traits & (WEFT_ELEMENTWISE | WEFT_REDUCTION) || op == WEFT_OP_matmul ||
                          op == WEFT_OP_conv || op == WEFT_OP_attention;
    if (op == WEFT_OP_max_pool_index) /* its results are places in the whole */
        return false;
    return (computes || op == WEFT_OP_bcast || op == WEFT_OP_transpose) && g->node[n.id].results == 1 &&
           g->node[n.id].operands <= MOST_OPERANDS && !weft_is_decided(g, n);
}

/* Which dimension of the result is cut along each axis of the op's space; -1: none. False where that is not said. */
static bool find_cut_axes(const struct weft_graph *g, weft_node n, const struct weft_cut *cut, int8_t *ret)
{
    const struct weft_type *const type = weft_type_of(g, weft_result(g, n, 0));
    struct weft_space space;
    struct weft_index_map map;
    memset(ret, -1, WEFT_SPACE_AXES);
    bool known = weft_index_space(g, n, &space) && weft_index_map(g, (struct weft_pin){n, .result = true}, &map);
    for (int i = 0; i < type->rank && known; i++) {
        const int axis = weft_index_axis(&map.at[i]);
        if (is_whole(type, cut, i))
            continue;
        known = axis >= 0 && space.axis[axis].role == WEFT_AXIS_PARALLEL;
        if (known)
            ret[axis] = (int8_t)i;
    }
    return known;
}

/* So many elements of a window's operand are missing on one side. False: for some sizes only. */
static bool find_missing(struct weft_dims *dims, weft_dim missing, weft_dim *ret)
{
    int64_t low, high;
    weft_dim_range(dims, missing, &low, &high);
    *ret = high <= 0 ? weft_dim_of(0) : missing;
    return high <= 0 || weft_dim_is_constant(missing);
}

static bool has_windows(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    return op == WEFT_OP_conv || op == WEFT_OP_max_pool || op == WEFT_OP_mean_pool;
}

/* Neighbouring windows along spatial axis i: from the first element of the first one to the last one of the last. */
static bool cut_windows(struct weft_graph *g, weft_node n, unsigned i, const struct weft_cut *cut, struct needs *ret)
{
    struct weft_dims *const dims = g->dims;
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, 0));
    const unsigned at = i + 2, spatial = (unsigned)from->rank - 2;
    const bool is_conv = weft_opcode_of(g, n) == WEFT_OP_conv;
    if (!has_windows(g, n) || !weft_dim_is(cut->step[at], 1) || (!is_conv && weft_attr_int(g, n, WEFT_ATTR_ceil)))
        return false;
    const weft_dim taps = is_conv ? weft_type_of(g, weft_operand(g, n, 1))->extent[at]
                                  : weft_attr_at(g, n, WEFT_ATTR_kernel, i);
    const weft_dim stride = weft_attr_at(g, n, WEFT_ATTR_stride, i), one = weft_dim_of(1);
    const weft_dim reach = weft_dim_mul(dims, weft_attr_at(g, n, WEFT_ATTR_dilation, i), weft_dim_sub(dims, taps, one));
    const weft_dim before = weft_attr_at(g, n, WEFT_ATTR_pad, i), last = weft_dim_sub(dims, cut->end[at], one);
    const weft_dim start = weft_dim_sub(dims, weft_dim_mul(dims, cut->start[at], stride), before);
    weft_dim end = weft_dim_sub(dims, weft_dim_mul(dims, last, stride), before);
    end = weft_dim_add(dims, weft_dim_add(dims, end, reach), one);
    weft_dim *const less = &ret->pad[i], *const more = &ret->pad[spatial + i];
    if (!find_missing(dims, weft_dim_sub(dims, weft_dim_of(0), start), less) ||
        !find_missing(dims, weft_dim_sub(dims, end, from->extent[at]), more))
        return false;
    ret->pads = true;
    ret->cut[0].start[at] = weft_dim_add(dims, start, *less);
    ret->cut[0].end[at] = weft_dim_sub(dims, end, *more);
    return weft_dim_at_most(dims, weft_dim_add(dims, ret->cut[0].start[at], one), ret->cut[0].end[at]);
}

static bool cut_operand(struct weft_graph *g, weft_node n, uint32_t k, const int8_t *cut_axis,
                        const struct weft_cut *cut, struct needs *ret)
{
    const struct weft_type *const type = weft_type_of(g, weft_result(g, n, 0));
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, k));
    struct weft_cut *const own = &ret->cut[k];
    struct weft_index_map map;
    bool known = weft_index_map(g, (struct weft_pin){n, .index = k}, &map) && weft_dtype_bits(from->dtype) >= 8;
    weft_cut_all(from, own);
    for (int i = 0; i < map.rank && known; i++)
        for (int t = 0; t < map.at[i].terms && known; t++) {
            const int at = cut_axis[map.at[i].term[t].axis];
            if (at < 0)
                continue;
            if (weft_index_axis(&map.at[i]) < 0) {
                known = k == 0 && i >= 2 && at == i && cut_windows(g, n, (unsigned)i - 2, cut, ret);
                continue;
            }
            known = weft_dim_same(from->extent[i], type->extent[at]);
            own->start[i] = cut->start[at];
            own->end[i] = cut->end[at];
            own->step[i] = cut->step[at];
        }
    return known;
}

/* Is each axis that is cut one of an operand, too? Else an attribute says how long it is (the size of roi_align). */
static bool has_axes_from_operands(const struct weft_graph *g, weft_node n, const int8_t *cut_axis)
{
    uint32_t missing = 0;
    for (int axis = 0; axis < WEFT_SPACE_AXES; axis++)
        missing |= cut_axis[axis] >= 0 ? 1u << axis : 0;
    for (uint32_t k = 0; k < g->node[n.id].operands; k++) {
        struct weft_index_map map;
        if (!weft_index_map(g, (struct weft_pin){n, .index = k}, &map))
            return false;
        for (int i = 0; i < map.rank; i++)
            for (int t = 0; t < map.at[i].terms; t++)
                missing &= ~(1u << map.at[i].term[t].axis);
    }
    return missing == 0;
}

static bool cut_operands(struct weft_graph *g, weft_node n, const struct weft_cut *cut, struct needs *ret)
{
    int8_t cut_axis[WEFT_SPACE_AXES];
    ret->pads = false;
    if (!takes_part(g, n) || !find_cut_axes(g, n, cut, cut_axis))
        return false;
    const bool by_row = weft_opcode_of(g, n) == WEFT_OP_attention && weft_attr_int(g, n, WEFT_ATTR_causal);
    bool known = !by_row || is_whole(weft_type_of(g, weft_result(g, n, 0)), cut, 2);
    const unsigned pads = has_windows(g, n) ? 2u * ((unsigned)weft_type_of(g, weft_operand(g, n, 0))->rank - 2) : 0;
    for (unsigned i = 0; i < pads; i++)
        ret->pad[i] = weft_attr_at(g, n, WEFT_ATTR_pad, i);
    for (uint32_t k = 0; k < g->node[n.id].operands && known; k++)
        known = cut_operand(g, n, k, cut_axis, cut, ret);
    return known && (weft_opcode_of(g, n) == WEFT_OP_bcast || has_axes_from_operands(g, n, cut_axis));
}

/* The op once more, on those parts. */
static weft_val rebuild(struct weft_builder *b, weft_node n, const weft_val *operand, const struct weft_type *type,
                        const struct needs *needs)
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

/* --- through reshapes --------------------------------------------------------------------------------------------- */

static weft_dim product(struct weft_dims *dims, const struct weft_type *type, int from, int to)
{
    weft_dim all = weft_dim_of(1);
    for (int i = from; i < to; i++)
        all = weft_dim_mul(dims, all, type->extent[i]);
    return all;
}

static bool has_elements(const struct weft_graph *g, const struct weft_type *type)
{
    int64_t low = 1, high;
    for (int i = 0; i < type->rank && low > 0; i++)
        weft_dim_range(g->dims, type->extent[i], &low, &high);
    return low > 0;
}

/* Axis `axis` of the result, which is cut, as axis i of what is reshaped: this one holds it, with all axes of the
 * result that it is split into, or is one of those that it merges. */
static bool cut_axis_through(struct weft_dims *dims, const struct weft_type *from, int i, const struct weft_type *to,
                             int axis, const struct weft_cut *cut, struct weft_cut *ret)
{
    const weft_dim start = cut->start[axis], end = cut->end[axis], step = cut->step[axis];
    const weft_dim before = product(dims, to, 0, axis), own_before = product(dims, from, 0, i);
    const weft_dim behind = product(dims, to, axis + 1, to->rank), own_behind = product(dims, from, i + 1, from->rank);
    const bool one = weft_dim_is(weft_dim_sub(dims, end, start), 1), dense = weft_dim_is(step, 1);
    weft_dim run;
    ret->step[i] = weft_dim_of(1);
    if (weft_dim_same(before, own_before) && weft_dim_same(behind, own_behind)) {
        ret->start[i] = start;
        ret->end[i] = end;
        ret->step[i] = step;
        return true;
    }
    if (dense && weft_dim_same(before, own_before) && weft_dim_divides(dims, behind, own_behind, &run)) {
        ret->start[i] = weft_dim_mul(dims, start, run);
        ret->end[i] = weft_dim_mul(dims, end, run);
        return true;
    }
    if (dense && weft_dim_same(before, own_before) && weft_dim_divides(dims, own_behind, behind, &run))
        return weft_dim_divides(dims, start, run, &ret->start[i]) && weft_dim_divides(dims, end, run, &ret->end[i]);
    if (!weft_dim_same(behind, own_behind))
        return false;
    if (one && weft_dim_divides(dims, before, own_before, &run)) { /* one index out of those that are merged */
        ret->start[i] = start;
        ret->end[i] = from->extent[i];
        ret->step[i] = to->extent[axis];
        return true;
    }
    ret->start[i] = start;
    ret->end[i] = weft_dim_add(dims, start, weft_dim_of(1));
    return weft_dim_same(step, from->extent[i]) && weft_dim_same(end, to->extent[axis]) &&
           weft_dim_at_most(dims, ret->end[i], step);
}

static bool cut_reshaped(struct weft_graph *g, weft_node reshape, const struct weft_cut *cut, struct weft_cut *ret)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, reshape, 0));
    const struct weft_type *const to = weft_type_of(g, weft_result(g, reshape, 0));
    bool done = has_elements(g, from) && !weft_is_decided(g, reshape);
    weft_cut_all(from, ret);
    for (int axis = 0; axis < to->rank && done; axis++) {
        if (is_whole(to, cut, axis))
            continue;
        done = false;
        for (int i = 0; i < from->rank && !done; i++) {
            if (weft_dim_is(from->extent[i], 1) || !is_whole(from, ret, i))
                continue;
            done = cut_axis_through(g->dims, from, i, to, axis, cut, ret);
            if (!done) {
                ret->start[i] = weft_dim_of(0);
                ret->end[i] = from->extent[i];
                ret->step[i] = weft_dim_of(1);
            }
        }
    }
    return done;
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
static enum maker maker_of_contraction(const struct weft_graph *g, weft_node n, bool cuts, const struct needs *needs)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, 0));
    bool whole = true;
    for (int i = 2; i < from->rank && cuts && weft_opcode_of(g, n) == WEFT_OP_conv; i++)
        whole &= is_whole(from, &needs->cut[0], i);
    return !cuts ? WHOLE_CONTRACTION : whole ? CUT_CONTRACTION : NO_CONTRACTION;
}

/* Of a value that nobody else reads. */
static enum maker find_maker(struct weft_graph *g, weft_val v, weft_node reader, const struct weft_cut *cut, int depth)
{
    const weft_node def = weft_def(g, v);
    struct needs needs;
    if (!def.id || depth == 0 || weft_is_const(g, v) || !is_read_by_one(g, v, reader))
        return NO_CONTRACTION;
    if (weft_opcode_of(g, def) == WEFT_OP_reshape) {
        const weft_val x = weft_operand(g, def, 0);
        if (cut_reshaped(g, def, cut, &needs.cut[0]))
            return find_maker(g, x, def, &needs.cut[0], depth - 1);
        return weft_def(g, x).id && is_contraction(g, weft_def(g, x)) ? WHOLE_CONTRACTION : NO_CONTRACTION;
    }
    const bool cuts = cut_operands(g, def, cut, &needs);
    if (is_contraction(g, def))
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
static const char *check(struct weft_graph *g, const struct way *way, const struct needs *needs)
{
    const struct weft_type *const type = weft_type_of(g, weft_result(g, way->op, 0));
    unsigned apart = 0; /* operands of which elements that lie apart would be read */
    enum maker most = is_contraction(g, way->op) ? maker_of_contraction(g, way->op, true, needs) : NO_CONTRACTION;
    for (uint32_t k = 0; k < g->node[way->op.id].operands; k++) {
        const weft_val v = weft_operand(g, way->op, k);
        const int last = weft_type_of(g, v)->rank - 1;
        apart += last >= 0 && !weft_is_const(g, v) && !weft_dim_is(needs->cut[k].step[last], 1);
        const enum maker maker = find_maker(g, v, way->op, &needs->cut[k], MOST_DEPTH);
        if (maker == WHOLE_CONTRACTION && !is_contraction(g, way->op))
            return "not in front of what computes it: a contraction that cannot be cut is finished so";
        most = maker > most && maker == CUT_CONTRACTION ? maker : most;
    }
    if (most == NO_CONTRACTION && !is_half(g, type, &way->cut))
        return "not in front of what computes it: more than half is read";
    return apart > 1 ? "not in front of what computes it: elements would lie apart in several operands" : NULL;
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
            return takes_part(g, ret->op);
        struct needs needs;
        if (ret->views == MOST_VIEWS || !(op == WEFT_OP_reshape ? cut_reshaped(g, ret->op, &cut, &needs.cut[0])
                                                                : cut_operands(g, ret->op, &cut, &needs)))
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
    struct needs needs;
    bool all = true;
    for (int i = 0; i < whole.rank; i++)
        all &= is_whole(&whole, cut, i);
    if (all)
        return v;
    if (weft_const_splat(g, v, &element))
        return weft_build_element(&r->build, &part, &element);
    if (def.id && weft_opcode_of(g, def) == WEFT_OP_bcast && cut_operands(g, def, cut, &needs)) {
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
    struct needs needs;
    if (!weft_slice_is_safe(g, n) || !find_way(g, n, &way) || !cut_operands(g, way.op, &way.cut, &needs))
        return WEFT_NO_VALUE;
    const char *const why = check(g, &way, &needs);
    if (why)
        weft_refuse(g, r->pass, weft_result(g, n, 0), "%s", why);
    if (why || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val operand[MOST_OPERANDS];
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
