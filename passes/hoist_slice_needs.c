/* SPDX-License-Identifier: Apache-2.0 */
/* hoist_slice_needs: which part of its operands an op needs for a part of its result. The contract: hoist_slice.h. */
#include "passes/hoist_slice.h"

#include <string.h>

bool weft_part_is_whole(const struct weft_type *type, const struct weft_cut *cut, int i)
{
    return weft_dim_is(cut->start[i], 0) && weft_dim_same(cut->end[i], type->extent[i]) && weft_dim_is(cut->step[i], 1);
}

/* --- what of operands is needed ----------------------------------------------------------------------------------- */

bool weft_part_contracts(const struct weft_graph *g, weft_node n)
{
    return (weft_op_of(g, n)->traits & (WEFT_CONTRACTION | WEFT_RECURRENT)) == WEFT_CONTRACTION;
}

bool weft_part_is_computed(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    const bool computes = weft_op_of(g, n)->traits & (WEFT_ELEMENTWISE | WEFT_REDUCTION) || op == WEFT_OP_matmul ||
                          op == WEFT_OP_conv || op == WEFT_OP_attention;
    if (op == WEFT_OP_max_pool_index) /* its results are places in the whole */
        return false;
    return (computes || op == WEFT_OP_bcast || op == WEFT_OP_transpose) && g->node[n.id].results == 1 &&
           g->node[n.id].operands <= WEFT_PART_OPERANDS && !weft_is_decided(g, n);
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
        if (weft_part_is_whole(type, cut, i))
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
static bool cut_windows(struct weft_graph *g, weft_node n, unsigned i, const struct weft_cut *cut,
                        struct weft_part_needs *ret)
{
    struct weft_dims *const dims = g->dims;
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, 0));
    const unsigned at = i + 2, spatial = (unsigned)from->rank - 2;
    const bool is_conv = weft_opcode_of(g, n) == WEFT_OP_conv;
    if (!weft_dim_at_most(dims, weft_dim_add(dims, cut->start[at], weft_dim_of(1)), cut->end[at])) /* no window fits */
        return false;
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
                        const struct weft_cut *cut, struct weft_part_needs *ret)
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

/* Attention without heads is no op. */
static bool keeps_heads(struct weft_graph *g, weft_node n, const struct weft_cut *cut)
{
    const struct weft_type *const type = weft_type_of(g, weft_result(g, n, 0));
    return weft_opcode_of(g, n) != WEFT_OP_attention || weft_part_is_whole(type, cut, 1) ||
           weft_dim_at_most(g->dims, weft_dim_add(g->dims, cut->start[1], weft_dim_of(1)), cut->end[1]);
}

bool weft_part_find_needs(struct weft_graph *g, weft_node n, const struct weft_cut *cut, struct weft_part_needs *ret)
{
    int8_t cut_axis[WEFT_SPACE_AXES];
    ret->pads = false;
    if (!weft_part_is_computed(g, n) || !find_cut_axes(g, n, cut, cut_axis) || !keeps_heads(g, n, cut))
        return false;
    const bool by_row = weft_opcode_of(g, n) == WEFT_OP_attention && weft_attr_int(g, n, WEFT_ATTR_causal);
    const bool grouped = weft_opcode_of(g, n) == WEFT_OP_conv && weft_attr_int(g, n, WEFT_ATTR_groups) != 1;
    const struct weft_type *const type = weft_type_of(g, weft_result(g, n, 0));
    bool known = (!by_row || weft_part_is_whole(type, cut, 2)) && (!grouped || weft_part_is_whole(type, cut, 1));
    const unsigned pads = has_windows(g, n) ? 2u * ((unsigned)weft_type_of(g, weft_operand(g, n, 0))->rank - 2) : 0;
    for (unsigned i = 0; i < pads; i++)
        ret->pad[i] = weft_attr_at(g, n, WEFT_ATTR_pad, i);
    for (uint32_t k = 0; k < g->node[n.id].operands && known; k++)
        known = cut_operand(g, n, k, cut_axis, cut, ret);
    return known && (weft_opcode_of(g, n) == WEFT_OP_bcast || has_axes_from_operands(g, n, cut_axis));
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
    return weft_dim_divides(dims, own_before, before, &run) && weft_dim_same(step, from->extent[i]) &&
           weft_dim_same(end, to->extent[axis]) &&
           weft_dim_at_most(dims, ret->end[i], step);
}

bool weft_part_reshaped(struct weft_graph *g, weft_node reshape, const struct weft_cut *cut, struct weft_cut *ret)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, reshape, 0));
    const struct weft_type *const to = weft_type_of(g, weft_result(g, reshape, 0));
    bool done = has_elements(g, from) && !weft_is_decided(g, reshape);
    weft_cut_all(from, ret);
    for (int axis = 0; axis < to->rank && done; axis++) {
        if (weft_part_is_whole(to, cut, axis))
            continue;
        done = false;
        for (int i = 0; i < from->rank && !done; i++) {
            if (weft_dim_is(from->extent[i], 1) || !weft_part_is_whole(from, ret, i))
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
