/* SPDX-License-Identifier: Apache-2.0 */
/* propagate_orders.c: custom functions get what they take in its order, and write theirs.
 *
 *   %s: f32[6,10] = slice %x …                             %s: f32[6,10] = slice %x …
 *   %y: f32[6,10] = custom %s function=f             →     %0: f32[6,10] = relayout %s
 *   %z: f32[6] = sum %y axes=[1]                           %y: f32[6,10]{1 0} = custom %0 function=f
 *                                                          %z: f32[6] = sum %y axes=[1]
 *
 * A function that takes an operand packed in one order gets a relayout of what does not lie so: a value in another
 * order, a slice, a repeated row; of a constant once. And it writes its result in its order, of which others read a
 * relayout where that is not the order that was decided.
 * The search has priced that (sched/format_custom.c) and mostly decided so. What it does not see are rows with gaps and
 * rows that are repeated, since its layouts are orders; nor is there a place for each wish in its lists; and where its
 * choice is not taken, nothing has been decided. So the graph is walked once more when all else is in place, by how
 * values really lie: a view as its operand does. A function that reads or writes what lies otherwise all the same is
 * given a copy for the call (ir/custom.c), an element at a time. */
#include "passes/propagate.h"
#include "sched/alias.h"

static const char who[] = "propagate_memory_format";

#define NO_LAYOUT UINT32_MAX /* no other was decided, or a relayout is gone */

struct ordering {
    struct weft_placing *placing;
    struct weft_graph *graph;
    const struct weft_layout **view; /* by value: how a view lies where its operand is */
    uint32_t *decided; /* by value: how others read a result that is written otherwise; or NO_LAYOUT */
};

static struct weft_layout places_of(const struct ordering *o, weft_val v)
{
    struct weft_layout layout = v.id < o->placing->values && o->view[v.id] ? *o->view[v.id]
                                                                          : weft_own_layout(o->graph, v);
    layout.offset = weft_dim_of(0); /* where it begins is another matter */
    return layout;
}

static void note_view(struct ordering *o, weft_node n)
{
    struct weft_graph *g = o->graph;
    const weft_val v = weft_result(g, n, 0);
    const struct weft_layout from = places_of(o, weft_operand(g, n, 0));
    struct weft_layout layout;
    if (!weft_view_layout(g, n, &from, &layout)) /* a copy, in memory of its own */
        return;
    struct weft_layout *kept = weft_new(o->placing->formats->arena, struct weft_layout, 1);
    *kept = layout;
    o->view[v.id] = kept;
}

/* Does the function take or write the value in this order only, and does it not lie so? */
static bool misses_order(const struct ordering *o, struct weft_pin pin, const struct weft_layout *stored,
                         uint32_t *ret_wanted)
{
    struct weft_graph *g = o->graph;
    const struct weft_type *type = weft_type_of(g, weft_pin_value(g, pin));
    if (weft_format_custom(o->placing->formats, pin, ret_wanted) != WEFT_WANTS_ORDER)
        return false;
    const struct weft_layout wanted = weft_layout_at(g, *ret_wanted, type->rank);
    return !weft_layout_equal(g->dims, stored, &wanted, type);
}

/* The operand lies so: is that since a relayout packs it? In the same order, that is no idle one. */
static void keep_packing(struct ordering *o, struct weft_pin pin, weft_val v)
{
    struct weft_placing *p = o->placing;
    if (v.id >= p->values || weft_def_opcode(o->graph, v) != WEFT_OP_relayout)
        return;
    const struct weft_layout from = places_of(o, weft_operand(o->graph, weft_def(o->graph, v), 0));
    uint32_t wanted;
    p->packs[v.id] |= misses_order(o, pin, &from, &wanted);
}

static void meet_operand(struct ordering *o, struct weft_pin pin)
{
    struct weft_placing *p = o->placing;
    struct weft_graph *g = o->graph;
    const weft_val v = weft_pin_value(g, pin), of = v.id < p->values ? v : p->copy[v.id - p->values].of;
    const struct weft_layout stored = places_of(o, v);
    uint32_t wanted;
    if (!misses_order(o, pin, &stored, &wanted)) {
        keep_packing(o, pin, v);
        return;
    }
    struct weft_converted *copy = weft_find_copy(p, of, wanted);
    if (!copy && !weft_permit(g, who, of))
        return;
    if (!copy) {
        const struct weft_layout from = places_of(o, of);
        const bool is_priced = weft_format_convert_ps(p->formats, of, p->stored[of.id], wanted) > 0;
        copy = weft_add_copy(p, of, p->stored[of.id], wanted, weft_result(g, pin.node, 0));
        copy->from = weft_intern_layout(g, &from, weft_type_of(g, of));
        copy->is_extra = !is_priced;
    }
    weft_count_reader(copy, weft_result(g, pin.node, 0), WEFT_LABEL_NEVER);
    weft_replace_operand(g, pin.node, pin.index, copy->value);
}

/* The relayouts of a value that is stored otherwise now: none into that layout, and all others from it. */
static void restore_copies(struct weft_placing *p, weft_val v)
{
    struct weft_graph *g = p->graph;
    struct weft_converted *idle = weft_find_copy(p, v, p->stored[v.id]);
    for (uint32_t i = p->first_copy[v.id]; i; i = p->copy[i - 1].next)
        if (weft_is(p->copy[i - 1].source, v))
            p->copy[i - 1].from = p->stored[v.id];
    if (!idle || g->value[idle->value.id].returns)
        return;
    weft_replace_uses(g, idle->value, v);
    weft_erase_node(g, weft_def(g, idle->value));
    idle->layout = NO_LAYOUT;
}

/* From here on others find the result in another order than was decided, or get a relayout. */
static void meet_result(struct ordering *o, struct weft_pin pin)
{
    struct weft_graph *g = o->graph;
    const weft_val v = weft_pin_value(g, pin);
    const struct weft_layout stored = weft_own_layout(g, v);
    const bool is_open = weft_layout_of(g, v).kind == WEFT_UNDECIDED;
    uint32_t wanted;
    if (!misses_order(o, pin, &stored, &wanted) || !weft_permit(g, who, v))
        return;
    if (!is_open)
        o->decided[v.id] = g->value[v.id].layout;
    g->value[v.id].layout = o->placing->stored[v.id] = wanted;
    g->value[v.id].stated = false;
    o->placing->changed = true;
    restore_copies(o->placing, v);
}

/* What reads a result as it was decided to lie. */
static void meet_reader(struct ordering *o, struct weft_pin pin)
{
    struct weft_placing *p = o->placing;
    struct weft_graph *g = o->graph;
    const weft_val v = weft_pin_value(g, pin);
    uint32_t wanted;
    if (v.id >= p->values || o->decided[v.id] == NO_LAYOUT || weft_opcode_of(g, pin.node) == WEFT_OP_relayout ||
        weft_format_custom(p->formats, pin, &wanted) == WEFT_WANTS_ORDER)
        return;
    const weft_val copy = weft_value_in(p, v, p->stored[v.id], o->decided[v.id], weft_result(g, pin.node, 0), 0);
    if (!weft_is(copy, v))
        weft_replace_operand(g, pin.node, pin.index, copy);
}

/* The caller is told a result as it was decided to lie, or the function writes it so after all. */
static void meet_return(struct ordering *o, uint32_t i)
{
    struct weft_placing *p = o->placing;
    struct weft_graph *g = o->graph;
    const weft_val v = g->ret[i].value;
    if (v.id >= p->values || o->decided[v.id] == NO_LAYOUT)
        return;
    const weft_val copy = weft_value_in(p, v, p->stored[v.id], o->decided[v.id], v, 0);
    if (weft_is(copy, v)) {
        g->value[v.id].layout = p->stored[v.id] = o->decided[v.id];
        return;
    }
    for (uint32_t k = i; k < g->returns; k++)
        if (weft_is(g->ret[k].value, v))
            weft_replace_return(g, k, copy);
    if (g->value[v.id].name)
        weft_move_name(g, v, copy);
}

static bool has_functions(const struct weft_graph *g)
{
    weft_foreach_node(g, n)
        if (weft_opcode_of(g, n) == WEFT_OP_custom)
            return true;
    return false;
}

void weft_place_orders(struct weft_placing *p)
{
    struct weft_graph *g = p->graph;
    if (!has_functions(g))
        return;
    struct ordering o = {.placing = p, .graph = g,
                         .view = weft_new(p->formats->arena, const struct weft_layout *, p->values),
                         .decided = weft_new(p->formats->arena, uint32_t, p->values)};
    for (uint32_t v = 0; v < p->values; v++)
        o.decided[v] = NO_LAYOUT;
    weft_foreach_node(g, n) {
        const bool is_function = weft_opcode_of(g, n) == WEFT_OP_custom;
        for (uint32_t i = 0; i < g->node[n.id].operands && g->node[n.id].results; i++) {
            meet_reader(&o, (struct weft_pin){.node = n, .index = i});
            if (is_function)
                meet_operand(&o, (struct weft_pin){.node = n, .index = i});
        }
        for (uint32_t i = 0; i < g->node[n.id].results && is_function; i++)
            meet_result(&o, (struct weft_pin){.node = n, .result = true, .index = i});
        if (weft_is_view(g, n))
            note_view(&o, n);
    }
    for (uint32_t i = 0; i < g->returns; i++)
        meet_return(&o, i);
}
