/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat_slices.c: the rule of split_concat about a concat that is only taken apart again, in another way.
 *
 *   %a: f32[3,8] = slice %x start=[0 0] end=[3 8]         a window that is rolled along both axes: rows first
 *   %b: f32[5,8] = slice %x start=[3 0] end=[8 8]
 *   %c: f32[8,8] = concat %b, %a axis=0
 *   %d: f32[8,3] = slice %c start=[0 0] end=[8 3]         then columns
 *   %e: f32[8,5] = slice %c start=[0 3] end=[8 8]
 *   %y: f32[8,8] = concat %e, %d axis=1
 *
 * becomes a concat along columns of two concats along rows, of slices of %b and %a, that is of %x.
 *
 * The concat is a copy if its operands are views, and each slice of it is copied once more into the concat that reads
 * it. A slice of a concat is a concat of slices of its operands; as an operand of another concat that is no value of
 * its own: its pieces are copied into their places at once. So all is copied once, whatever number of rolls, merges of
 * windows and stacks of every second row stand behind each other.
 *
 * Each slice is rewritten by itself, but only if all readers of the concat are such slices, since it is there in any
 * case otherwise, and take no element twice. It pays where most of the concat would have been copied, and where the
 * bytes that are copied no more are worth the steps that are more. Two slices that their reader puts together as they
 * were are left to concat_neighbours. Keeps every bit.
 * Not done: pieces of open extent along the concat's axis; reshapes and transposes in between. */
#include "passes/split_concat.h"

/* Operands that are looked at; readers; bytes for which a step more is no loss: what is copied in the time that a step
 * takes by the prices of Zen 4 (`step` over `copy_private`, sched/prices.def), rounded. */
enum { MOST_OPERANDS = 8, MOST_READERS = 16, STEP_BYTES = 16 << 10, MOST_DEPTH = 4 };

static double elements_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_type *const type = weft_type_of(g, v);
    double elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= (double)weft_dim_hint(g->dims, type->extent[i]);
    return elements;
}

static bool is_whole_along(const struct weft_type *type, const struct weft_cut *cut, unsigned axis)
{
    return weft_dim_is(cut->start[axis], 0) && weft_dim_same(cut->end[axis], type->extent[axis]) &&
           weft_dim_is(cut->step[axis], 1);
}

/* What a slice takes of operand i, which begins at `before`, along the axis; false: nothing. Extents are numbers. */
static bool cut_operand(const struct weft_cut *cut, unsigned axis, int64_t before, int64_t extent, struct weft_cut *ret)
{
    const int64_t start = weft_dim_value(cut->start[axis]), step = weft_dim_value(cut->step[axis]);
    const int64_t end = weft_dim_value(cut->end[axis]);
    const int64_t first = start >= before ? start : start + (before - start + step - 1) / step * step;
    const int64_t last = end < before + extent ? end : before + extent;
    if (first >= last)
        return false;
    ret->start[axis] = weft_dim_of(first - before);
    ret->end[axis] = weft_dim_of(last - before);
    return true;
}

/* Slices of the operands that hold what is cut, in order: `ret_cut` of operand `ret_operand`, so many as it returns;
 * 0: not known, or nothing. */
static unsigned find_pieces(const struct weft_graph *g, weft_node concat, const struct weft_cut *cut,
                            struct weft_cut *ret_cut, unsigned *ret_operand)
{
    const unsigned axis = (unsigned)weft_attr_int(g, concat, WEFT_ATTR_axis);
    const struct weft_type *const type = weft_type_of(g, weft_result(g, concat, 0));
    const bool whole = is_whole_along(type, cut, axis);
    unsigned count = 0;
    int64_t before = 0;
    if (!whole && !(weft_dim_is_constant(cut->start[axis]) && weft_dim_is_constant(cut->end[axis]) &&
                    weft_dim_is_constant(cut->step[axis])))
        return 0;
    for (unsigned i = 0; i < g->node[concat.id].operands; i++) {
        const weft_dim extent = weft_type_of(g, weft_operand(g, concat, i))->extent[axis];
        if (!whole && !weft_dim_is_constant(extent))
            return 0;
        ret_cut[count] = *cut;
        ret_cut[count].end[axis] = whole ? extent : ret_cut[count].end[axis];
        ret_operand[count] = i;
        count += whole || cut_operand(cut, axis, before, weft_dim_value(extent), &ret_cut[count]);
        before += whole ? 0 : weft_dim_value(extent);
    }
    return count;
}

/* Is the slice one operand of a concat, and not next to one that it met before? */
static bool is_moved(const struct weft_graph *g, weft_node slice)
{
    const weft_val v = weft_result(g, slice, 0);
    if (!weft_has_one_use(g, v) || weft_is_decided(g, slice))
        return false;
    const weft_node reader = g->slot[g->value[v.id].first_use - 1].node;
    if (weft_opcode_of(g, reader) != WEFT_OP_concat)
        return false;
    const unsigned axis = (unsigned)weft_attr_int(g, reader, WEFT_ATTR_axis), rank = weft_type_of(g, v)->rank;
    for (unsigned k = 0; k + 1 < g->node[reader.id].operands; k++) {
        const weft_node a = weft_def(g, weft_operand(g, reader, k)), b = weft_def(g, weft_operand(g, reader, k + 1));
        struct weft_cut first, second;
        if ((a.id != slice.id && b.id != slice.id) || !a.id || !b.id || weft_opcode_of(g, a) != WEFT_OP_slice ||
            weft_opcode_of(g, b) != WEFT_OP_slice || !weft_is(weft_operand(g, a, 0), weft_operand(g, b, 0)))
            continue;
        weft_read_cut(g, a, &first);
        weft_read_cut(g, b, &second);
        if (weft_cuts_meet(&first, &second, rank, axis))
            return false;
    }
    return true;
}

/* The share of a concat that is copied into it: what is a view, or has other readers, also in concats that are its
 * operands. */
static double copied_of(const struct weft_graph *g, weft_node concat, int depth)
{
    double copied = 0;
    for (unsigned i = 0; i < g->node[concat.id].operands; i++) {
        const weft_val v = weft_operand(g, concat, i);
        const weft_node def = weft_def(g, v);
        if (!def.id || weft_is_view(g, def) || weft_is_const(g, v) || !weft_has_one_use(g, v) ||
            weft_opcode_of(g, def) == WEFT_OP_slice)
            copied += elements_of(g, v);
        else if (weft_opcode_of(g, def) == WEFT_OP_concat && depth > 0)
            copied += elements_of(g, v) * copied_of(g, def, depth - 1);
    }
    const double elements = elements_of(g, weft_result(g, concat, 0));
    return elements > 0 ? copied / elements : 0;
}

/* Do slices take all that is read of the concat, no element twice, and is that worth their pieces? */
static bool pays(struct weft_graph *g, weft_node concat)
{
    const weft_val whole = weft_result(g, concat, 0);
    struct weft_cut cut, piece[MOST_OPERANDS];
    unsigned operand[MOST_OPERANDS], readers = 0, pieces = 0;
    double taken = 0;
    if (g->value[whole.id].returns || weft_is_decided(g, concat) || g->node[concat.id].operands > MOST_OPERANDS)
        return false;
    for (uint32_t use = g->value[whole.id].first_use; use; use = g->slot[use - 1].next) {
        const weft_node n = g->slot[use - 1].node;
        if (weft_opcode_of(g, n) != WEFT_OP_slice || !weft_slice_is_safe(g, n) || readers++ == MOST_READERS ||
            !is_moved(g, n))
            return false;
        weft_read_cut(g, n, &cut);
        const unsigned count = find_pieces(g, concat, &cut, piece, operand);
        if (!count)
            return false;
        pieces += count;
        taken += elements_of(g, weft_result(g, n, 0));
    }
    const double elements = elements_of(g, whole), copied = copied_of(g, concat, MOST_DEPTH);
    const double bytes = copied * elements * weft_dtype_bits(weft_type_of(g, whole)->dtype) / 8;
    const unsigned before = readers + g->node[concat.id].operands;
    return taken <= elements && copied >= 0.5 && (pieces <= before || bytes >= (double)(pieces - before) * STEP_BYTES);
}

static weft_val slice_moved(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    const weft_node concat = weft_def(g, weft_operand(g, n, 0));
    struct weft_cut cut, piece_cut[MOST_OPERANDS];
    unsigned operand[MOST_OPERANDS];
    weft_val piece[MOST_OPERANDS];
    if (!concat.id || weft_opcode_of(g, concat) != WEFT_OP_concat || !pays(g, concat))
        return WEFT_NO_VALUE;
    weft_read_cut(g, n, &cut);
    const unsigned count = find_pieces(g, concat, &cut, piece_cut, operand);
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    for (unsigned i = 0; i < count; i++)
        piece[i] = weft_build_slice(&r->build, weft_operand(g, concat, operand[i]), &piece_cut[i]);
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, weft_attr_int(g, concat, WEFT_ATTR_axis));
    return count == 1 ? piece[0] : weft_build(&r->build, WEFT_OP_concat, count, piece, 1, &axis, NULL);
}

static const struct weft_rule rules[] = {
    {"slice_moved", WEFT_OP_slice, slice_moved, "the concat is only taken apart again"},
};
const struct weft_rule_set weft_split_concat_slices = WEFT_RULE_SET(rules);
