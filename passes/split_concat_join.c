/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat_join.c: the rules of split_concat about concats and paddings.
 *
 *   - a concat that only another one along the same axis reads is a part of it (if others read it as well, it stays:
 *     a plan computes it inside the larger one, and it is not copied twice);
 *   - operands without elements are left out;
 *   - neighbours that are neighbouring slices of one value are one slice; neighbouring uniform constants of one number
 *     are one;
 *   - one value several times along an axis of extent 1 is a broadcast, which is a view;
 *   - a uniform constant at the beginning, at the end, or at both with the same number, is a padding of what is
 *     between;
 *   - a padding of a padding with the same number is one.
 *
 * Each rule goes through the operands of a concat once and makes all that it can of them. Where a padding could be a
 * concat, it is the padding that is wanted: convolutions and products can read borders that do not exist. */
#include "passes/split_concat.h"

#include <string.h>

static bool is_concat(const struct weft_graph *g, weft_node n) { return weft_opcode_of(g, n) == WEFT_OP_concat; }

static unsigned axis_of(const struct weft_graph *g, weft_node n)
{
    return (unsigned)weft_attr_int(g, n, WEFT_ATTR_axis);
}

static weft_dim extent_of(const struct weft_graph *g, weft_val v, unsigned axis)
{
    return weft_type_of(g, v)->extent[axis];
}

/* Puts a list of operands in the place of a concat's; one operand alone takes the place of the result. */
static weft_val concat_of(struct weft_rewriting *r, unsigned axis, unsigned count, const weft_val *operand)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_build(&r->build, WEFT_OP_concat, count, operand, 1, &attr, NULL);
}

static weft_val *new_list(struct weft_graph *g, unsigned count)
{
    return weft_arena_new(&g->root->scratch, (count ? count : 1) * sizeof(weft_val));
}

/* --- nested, empty ------------------------------------------------------------------------------------------------ */

static bool is_part(const struct weft_graph *g, weft_val v, unsigned axis)
{
    const weft_node def = weft_def(g, v);
    return is_concat(g, def) && axis_of(g, def) == axis && weft_has_one_use(g, v) && !weft_is_decided(g, def);
}

/* Is the one reader of this concat one that it is a part of? Then that one takes all at once: were each concat of a
 * chain to take the one before it, the last of n would be the n-th list of up to n operands. */
static bool has_whole(const struct weft_graph *g, weft_node n)
{
    const weft_val result = weft_result(g, n, 0);
    if (!weft_has_one_use(g, result))
        return false;
    const weft_node reader = g->slot[weft_value_of(g, result)->first_use - 1].node;
    return is_concat(g, reader) && is_part(g, result, axis_of(g, reader)) && !weft_is_decided(g, reader);
}

struct list {
    weft_val *value;
    uint32_t count, capacity;
};

static void append(struct weft_graph *g, struct list *list, weft_val v)
{
    list->value = weft_grow(&g->root->scratch, list->value, &list->capacity, list->count + 1, sizeof v);
    list->value[list->count++] = v;
}

/* Operands of a concat, the first one last. */
static void push_operands(struct weft_graph *g, struct list *stack, weft_node concat)
{
    for (unsigned i = g->node[concat.id].operands; i > 0; i--)
        append(g, stack, weft_operand(g, concat, i - 1));
}

static weft_val concat_concat(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_value *result = weft_value_of(g, weft_result(g, n, 0));
    const unsigned axis = axis_of(g, n);
    bool nested = false;
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        nested |= is_part(g, weft_operand(g, n, i), axis);
    const bool unread = result->uses == 0 && result->returns == 0; /* left behind in an old chain */
    if (!nested || unread || has_whole(g, n) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    struct list parts = {0}, stack = {0};
    push_operands(g, &stack, n);
    while (stack.count > 0) {
        const weft_val v = stack.value[--stack.count];
        if (is_part(g, v, axis))
            push_operands(g, &stack, weft_def(g, v));
        else
            append(g, &parts, v);
    }
    return concat_of(r, axis, parts.count, parts.value);
}

static weft_val concat_empty(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const unsigned axis = axis_of(g, n), operands = g->node[n.id].operands;
    unsigned full = 0;
    for (unsigned i = 0; i < operands; i++)
        full += !weft_dim_is(extent_of(g, weft_operand(g, n, i), axis), 0);
    if (full == operands || full == 0 || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val *list = new_list(g, full);
    unsigned at = 0;
    for (unsigned i = 0; i < operands; i++)
        if (!weft_dim_is(extent_of(g, weft_operand(g, n, i), axis), 0))
            list[at++] = weft_operand(g, n, i);
    return concat_of(r, axis, at, list);
}

/* --- neighbours --------------------------------------------------------------------------------------------------- */

/* What a run of operands is: a slice of one value, or one number, or neither. */
struct run {
    weft_val value;      /* the operand, if it is alone */
    unsigned count;
    weft_val source;     /* of slices, or none */
    struct weft_cut cut;
    bool uniform;
    struct weft_element element;
    weft_dim extent;     /* along the axis */
};

static struct run run_of(struct weft_graph *g, weft_val v, unsigned axis)
{
    struct run run = {.value = v, .count = 1, .extent = extent_of(g, v, axis)};
    const weft_node def = weft_def(g, v);
    run.uniform = weft_const_splat(g, v, &run.element);
    if (weft_opcode_of(g, def) == WEFT_OP_slice && weft_slice_is_safe(g, def)) {
        run.source = weft_operand(g, def, 0);
        weft_read_cut(g, def, &run.cut);
    }
    return run;
}

static bool same_element(const struct weft_element *a, const struct weft_element *b)
{
    return a->is_integer ? a->integer == b->integer : memcmp(&a->real, &b->real, sizeof a->real) == 0;
}

static bool goes_on(const struct weft_graph *g, const struct run *run, const struct run *next, unsigned axis)
{
    if (run->uniform && next->uniform)
        return same_element(&run->element, &next->element);
    return run->source.id && weft_is(run->source, next->source) &&
           weft_cuts_meet(&run->cut, &next->cut, weft_type_of(g, run->source)->rank, axis);
}

static weft_val build_run(struct weft_rewriting *r, const struct run *run, unsigned axis)
{
    if (run->count == 1)
        return run->value;
    if (!run->uniform)
        return weft_build_slice(&r->build, run->source, &run->cut);
    struct weft_type type = *weft_type_of(r->graph, run->value);
    type.extent[axis] = run->extent;
    return weft_build_element(&r->build, &type, &run->element);
}

static weft_val concat_neighbours(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const unsigned axis = axis_of(g, n), operands = g->node[n.id].operands;
    struct run *runs = weft_arena_new(&g->root->scratch, operands * sizeof *runs);
    unsigned count = 0;
    for (unsigned i = 0; i < operands; i++) {
        const struct run next = run_of(g, weft_operand(g, n, i), axis);
        struct run *run = count ? &runs[count - 1] : NULL;
        if (!run || !goes_on(g, run, &next, axis)) {
            runs[count++] = next;
            continue;
        }
        run->count++;
        run->cut.end[axis] = next.cut.end[axis];
        run->extent = weft_dim_add(g->dims, run->extent, next.extent);
    }
    if (count == operands || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val *list = new_list(g, count);
    for (unsigned i = 0; i < count; i++)
        list[i] = build_run(r, &runs[i], axis);
    return count == 1 ? list[0] : concat_of(r, axis, count, list);
}

static weft_val concat_same(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const unsigned axis = axis_of(g, n);
    const weft_val x = weft_operand(g, n, 0);
    struct weft_type type = *weft_type_of(g, x);
    if (g->node[n.id].operands < 2 || !weft_dim_is(type.extent[axis], 1))
        return WEFT_NO_VALUE;
    for (unsigned i = 1; i < g->node[n.id].operands; i++)
        if (!weft_is(weft_operand(g, n, i), x))
            return WEFT_NO_VALUE;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_type to = *weft_type_of(g, weft_result(g, n, 0));
    int place[WEFT_MAX_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < to.rank; i++)
        if (i != axis) {
            place[rank] = (int)i;
            type.extent[rank++] = to.extent[i];
        }
    type.rank = (uint8_t)rank;
    return weft_build_bcast(&r->build, weft_build_reshape(&r->build, x, &type), &to, place);
}

/* --- paddings ----------------------------------------------------------------------------------------------------- */

static weft_val concat_pad(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const unsigned axis = axis_of(g, n), operands = g->node[n.id].operands;
    const weft_val first = weft_operand(g, n, 0), last = weft_operand(g, n, operands - 1);
    struct weft_element before, after;
    const bool front = weft_const_splat(g, first, &before);
    const bool back = weft_const_splat(g, last, &after);
    if (front && back && !same_element(&before, &after)) /* two paddings would move more than one concat */
        return WEFT_NO_VALUE;
    const unsigned body = operands - front - back;
    if ((!front && !back) || operands < 2 || body == 0 || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val *list = new_list(g, body);
    for (unsigned i = 0; i < body; i++)
        list[i] = weft_operand(g, n, i + front);
    weft_dim pad[2 * WEFT_MAX_RANK];
    const struct weft_type type = *weft_type_of(g, first), scalar = {.dtype = type.dtype};
    for (unsigned i = 0; i < 2u * type.rank; i++)
        pad[i] = weft_dim_of(0);
    pad[axis] = front ? extent_of(g, first, axis) : weft_dim_of(0);
    pad[type.rank + axis] = back ? extent_of(g, last, axis) : weft_dim_of(0);
    const weft_val inside = body == 1 ? list[0] : concat_of(r, axis, body, list);
    const weft_val both[] = {inside, weft_build_element(&r->build, &scalar, front ? &before : &after)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
    return weft_build(&r->build, WEFT_OP_pad, 2, both, 1, &attr, NULL);
}

static bool same_number(const struct weft_graph *g, weft_val a, weft_val b)
{
    struct weft_element one, two;
    return weft_is(a, b) || (weft_const_splat(g, a, &one) && weft_const_splat(g, b, &two) && same_element(&one, &two));
}

/* None of both may cut: what one cuts the other would add again. */
static weft_val pad_pad(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, inner) != WEFT_OP_pad || weft_attr_find(g, n, WEFT_ATTR_form) ||
        weft_attr_find(g, inner, WEFT_ATTR_form) || !same_number(g, weft_operand(g, n, 1), weft_operand(g, inner, 1)))
        return WEFT_NO_VALUE;
    const unsigned sides = 2u * weft_type_of(g, weft_result(g, n, 0))->rank;
    weft_dim pad[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < sides; i++) {
        const weft_dim a = weft_attr_at(g, inner, WEFT_ATTR_pad, i), b = weft_attr_at(g, n, WEFT_ATTR_pad, i);
        if (!weft_dim_at_most(g->dims, weft_dim_of(0), a) || !weft_dim_at_most(g->dims, weft_dim_of(0), b))
            return WEFT_NO_VALUE;
        pad[i] = weft_dim_add(g->dims, a, b);
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val both[] = {weft_operand(g, inner, 0), weft_operand(g, n, 1)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, sides, pad);
    return weft_build(&r->build, WEFT_OP_pad, 2, both, 1, &attr, NULL);
}

static const struct weft_rule rules[] = {
    {"concat_concat",     WEFT_OP_concat, concat_concat,     "nobody else reads the inner one"},
    {"concat_empty",      WEFT_OP_concat, concat_empty,      "these operands have no elements"},
    {"concat_neighbours", WEFT_OP_concat, concat_neighbours, "these operands were neighbours before"},
    {"concat_same",       WEFT_OP_concat, concat_same,       "it repeats one value"},
    {"concat_pad",        WEFT_OP_concat, concat_pad,        "what it adds is one number"},
    {"pad_pad",           WEFT_OP_pad,    pad_pad,           "both add the same number"},
};
const struct weft_rule_set weft_split_concat_joins = WEFT_RULE_SET(rules);
