/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_const: a scatter into a uniform constant is a choice or a padding.
 *
 *   %k: f32[N,9] = const value=0                        %p: f32[9] = iota axis=0
 *   %y: f32[N,9] = scatter_elements %k, %i, %u axis=1   %c: bool[N,9] = eq %p repeated, %i cast and repeated
 *                                                  →    %y: f32[N,9] = select %c, %u repeated, %k
 *
 * Here %i and %u are [N,1]: a line of the result has one element that is replaced, so each result says for itself
 * which number it is. Reads, writes and threads are then those of an elementwise op, which may be fused with what comes
 * behind it, where a scatter is a fill and a second sweep. The conditions, and why:
 *
 *   - the operand is one number everywhere, or the untouched elements would have to be read;
 *   - the indices have extent 1 along the axis and all of the operand's extents elsewhere. So no two of them meet in
 *     one element, and none is left out; which of two updates wins, and how sums add up, is not asked. A scatter_nd of
 *     one index into the first axis is the same;
 *   - negative indices count from the end, so the extent is added to them, in 64 bits, where no index type overflows.
 *     An index that lies outside equals no place, and updates nothing, as it should. An unsigned index of 2^63 or more
 *     is negative then, and lies outside as well. Places below 2^24 are compared as f32, which has each of them, and
 *     in which a vector has twice as many: an index that f32 does not have lies outside, and is rounded to one that
 *     does;
 *   - a `form` computes the update from the number first: the same op, on the small shape of the updates.
 *
 * Where the indices are known and count s, s + 1, … along the axis for all lines alike, the updates lie in the result
 * as a block: a padding, of which nothing is copied if the updates are computed in place. The same goes for a dynamic
 * update at known starts.
 *
 * Keeps every bit. Needs: constants found (fold_const).
 * Not done: a one_hot by known numbers, which the scatter kernel writes in one pass; blocks of scatter_nd along several
 * axes; operands that are not uniform. */
#include "passes/split_concat.h"

#include <string.h>

#define MOST_INDICES 65536

/* One element of an index that is said by its line: i + n where i is negative. */
static weft_val place_of_index(struct weft_builder *b, weft_val index, weft_dim extent)
{
    struct weft_graph *g = b->graph;
    const bool sign = weft_dtype_is_signed(weft_type_of(g, index)->dtype);
    const weft_val wide =
        weft_type_of(g, index)->dtype == WEFT_I64 ? index : weft_build_cast(b, index, WEFT_I64);
    if (!sign)
        return wide;
    const struct weft_type type = *weft_type_of(g, wide), scalar = {.dtype = WEFT_I64};
    const struct weft_type one = {.dtype = WEFT_I64, .rank = 1, .extent = {weft_dim_of(1)}};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_value, 1, &extent);
    const weft_val length = weft_dim_is_constant(extent)
                                ? weft_build_splat(b, &type, (double)weft_dim_value(extent))
                                : weft_build_bcast(b, weft_build_reshape(b, weft_build(b, WEFT_OP_extents, 0, NULL, 1,
                                                                                       &attr, &one), &scalar),
                                                   &type, NULL);
    const weft_val from_end[] = {weft_build_binary(b, WEFT_OP_lt, wide, weft_build_splat(b, &type, 0)),
                                 weft_build_binary(b, WEFT_OP_add, wide, length), wide};
    return weft_build(b, WEFT_OP_select, 3, from_end, 0, NULL, NULL);
}

/* The type in which places along an axis are compared. */
static enum weft_dtype type_of_places(weft_dim extent)
{
    enum { EXACT = 1 << 24 };
    return weft_dim_is_constant(extent) && weft_dim_value(extent) <= EXACT ? WEFT_F32 : WEFT_I64;
}

/* Where the axis counts what the index says, the update, and elsewhere the number. `index` and `update` are of the
 * result's rank, with extent 1 where they are repeated. */
static weft_val choose(struct weft_builder *b, const struct weft_type *type, int axis, weft_val index, weft_val update,
                       const struct weft_element *number)
{
    int place[WEFT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        place[i] = i;
    const enum weft_dtype dtype = type_of_places(type->extent[axis]);
    const struct weft_type line = {.dtype = dtype, .rank = 1, .extent = {type->extent[axis]}};
    struct weft_type places = *type;
    places.dtype = dtype;
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, 0);
    const weft_val counts =
        weft_build_bcast(b, weft_build(b, WEFT_OP_iota, 0, NULL, 1, &attr, &line), &places, &axis);
    weft_val wanted = place_of_index(b, index, type->extent[axis]);
    if (dtype != WEFT_I64)
        wanted = weft_build_cast(b, wanted, dtype);
    wanted = weft_build_bcast(b, wanted, &places, place);
    const weft_val choice[] = {weft_build_binary(b, WEFT_OP_eq, counts, wanted),
                               weft_build_bcast(b, update, type, place), weft_build_element(b, type, number)};
    return weft_build(b, WEFT_OP_select, 3, choice, 0, NULL, NULL);
}

/* What the update leaves in its place. */
static weft_val combine(struct weft_builder *b, const char *form, weft_val update, const struct weft_element *number)
{
    static const struct {
        const char *form;
        int op;
    } ops[] = {{"add", WEFT_OP_add}, {"mul", WEFT_OP_mul}, {"min", WEFT_OP_min}, {"max", WEFT_OP_max}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(form, ops[i].form) == 0) {
            const weft_val old = weft_build_element(b, weft_type_of(b->graph, update), number);
            return weft_build_binary(b, ops[i].op, old, update);
        }
    return update;
}

/* A uniform operand 0 of elements that have an address. */
static bool is_uniform(const struct weft_graph *g, weft_node n, struct weft_element *ret)
{
    const weft_val x = weft_operand(g, n, 0);
    return weft_dtype_bits(weft_type_of(g, x)->dtype) >= 8 && weft_const_splat(g, x, ret);
}

static weft_val pad_to(struct weft_rewriting *r, const struct weft_type *type, weft_val update, const weft_dim *start,
                       const struct weft_element *number)
{
    struct weft_graph *g = r->graph;
    const struct weft_type small = *weft_type_of(g, update), scalar = {.dtype = type->dtype};
    weft_dim pad[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < type->rank; i++) {
        pad[i] = start[i];
        pad[type->rank + i] =
            weft_dim_sub(g->dims, type->extent[i], weft_dim_add(g->dims, start[i], small.extent[i]));
    }
    const weft_val both[] = {update, weft_build_element(&r->build, &scalar, number)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type->rank, pad);
    return weft_build(&r->build, WEFT_OP_pad, 2, both, 1, &attr, NULL);
}

/* An index, counted from the start of an axis of this extent; outside of it -1. */
static int64_t load_index(int dtype, const void *data, int64_t i, int64_t extent)
{
    int64_t at = weft_load_integer(dtype, data, i);
    if (at < 0 && at >= -extent && weft_dtype_is_signed(dtype))
        at += extent;
    return at >= 0 && at < extent ? at : -1;
}

/* Do constant indices count start, start + 1, … along the axis, the same in all lines, within `extent`? */
static bool is_block(struct weft_graph *g, weft_val index, unsigned axis, weft_dim extent, int64_t *ret_start)
{
    const struct weft_type *type = weft_type_of(g, index);
    if (!weft_is_const(g, index) || !weft_type_is_constant(type) || !weft_dim_is_constant(extent))
        return false;
    const int64_t count = weft_dim_value(weft_type_elements(g->dims, type)), limit = weft_dim_value(extent);
    if (count < 1 || count > MOST_INDICES)
        return false;
    const void *data = weft_elements(g, index);
    const int64_t start = load_index(type->dtype, data, 0, limit), length = weft_dim_value(type->extent[axis]);
    int64_t inner = 1;
    for (unsigned i = axis + 1; i < type->rank; i++)
        inner *= weft_dim_value(type->extent[i]);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = load_index(type->dtype, data, i, limit);
        if (at < 0 || at != start + i / inner % length)
            return false;
    }
    *ret_start = start;
    return true;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

static weft_val elements(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val index = weft_operand(g, n, 1), update = weft_operand(g, n, 2);
    const struct weft_type type = *weft_type_of(g, weft_operand(g, n, 0)), lines = *weft_type_of(g, index);
    const unsigned axis = (unsigned)weft_attr_int(g, n, WEFT_ATTR_axis);
    const char *form = weft_attr_word(g, n, WEFT_ATTR_form);
    struct weft_element number;
    int64_t start;
    if (!is_uniform(g, n, &number))
        return WEFT_NO_VALUE;
    if (strcmp(form, "none") == 0 && is_block(g, index, axis, type.extent[axis], &start)) {
        weft_dim at[WEFT_MAX_RANK] = {weft_dim_of(0)};
        at[axis] = weft_dim_of(start);
        return weft_rewrite_begin(r) ? pad_to(r, &type, update, at, &number) : WEFT_NO_VALUE;
    }
    for (unsigned i = 0; i < type.rank; i++)
        if (i == axis ? !weft_dim_is(lines.extent[i], 1) : !weft_dim_same(lines.extent[i], type.extent[i]))
            return WEFT_NO_VALUE;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return choose(&r->build, &type, (int)axis, index, combine(&r->build, form, update, &number), &number);
}

/* The first axis alone is indexed: one row of the operand for each index. */
static weft_val rows(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val index = weft_operand(g, n, 1), update = weft_operand(g, n, 2);
    const struct weft_type type = *weft_type_of(g, weft_operand(g, n, 0)), from = *weft_type_of(g, index);
    const char *form = weft_attr_word(g, n, WEFT_ATTR_form);
    struct weft_element number;
    int64_t start;
    if (from.rank < 1 || type.rank < 1 || !weft_dim_is(from.extent[from.rank - 1], 1) || !is_uniform(g, n, &number))
        return WEFT_NO_VALUE;
    if (!weft_type_is_constant(&from))
        return WEFT_NO_VALUE;
    const weft_dim count = weft_type_elements(g->dims, &from);
    const bool block = from.rank == 2 && strcmp(form, "none") == 0 && is_block(g, index, 0, type.extent[0], &start);
    if ((!block && !weft_dim_is(count, 1)) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    struct weft_type row = type, single = {.dtype = from.dtype, .rank = type.rank};
    row.extent[0] = count;
    for (unsigned i = 0; i < type.rank; i++)
        single.extent[i] = weft_dim_of(1);
    const weft_val shaped = weft_build_reshape(&r->build, update, &row);
    weft_dim at[WEFT_MAX_RANK] = {weft_dim_of(0)};
    if (block) {
        at[0] = weft_dim_of(start);
        return pad_to(r, &type, shaped, at, &number);
    }
    const weft_val combined = combine(&r->build, form, shaped, &number);
    return choose(&r->build, &type, 0, weft_build_reshape(&r->build, index, &single), combined, &number);
}

static weft_val update_known(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val update = weft_operand(g, n, 1), starts = weft_operand(g, n, 2);
    const struct weft_type type = *weft_type_of(g, weft_operand(g, n, 0)), small = *weft_type_of(g, update);
    const weft_dim *content = weft_value_of(g, starts)->content;
    struct weft_element number;
    if (!content || !is_uniform(g, n, &number))
        return WEFT_NO_VALUE;
    for (unsigned i = 0; i < type.rank; i++)
        if (!weft_dim_at_most(g->dims, weft_dim_of(0), content[i]) ||
            !weft_dim_at_most(g->dims, weft_dim_add(g->dims, content[i], small.extent[i]), type.extent[i]))
            return WEFT_NO_VALUE; /* it would be moved inwards */
    return weft_rewrite_begin(r) ? pad_to(r, &type, update, content, &number) : WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"elements", WEFT_OP_scatter_elements, elements,     "indices are distinct, and all other elements are equal"},
    {"rows",     WEFT_OP_scatter_nd,       rows,         "indices are distinct, and all other elements are equal"},
    {"update",   WEFT_OP_dynamic_update,   update_known, "its start is known, and all other elements are equal"},
};

bool weft_pass_scatter_const(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules(graph, "scatter_const", sets, 1);
}
