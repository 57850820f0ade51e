/* SPDX-License-Identifier: Apache-2.0 */
/* propagate_memory_format: decide in which order every value is stored, and where orders change.
 *
 *   graph @f(%x: f32[32,64,25,25]{0 2 3 1}) {            graph @f(%x: f32[32,64,25,25]{0 2 3 1}) {
 *     %y: f32[32,64,25,25] = exp %x                →       %y: f32[32,64,25,25]{0 2 3 1} = exp %x
 *     %z: f32[32,64,25,25]{?} = relu %y                    %z: f32[32,64,25,25]{0 2 3 1} = relu %y
 *     return %z                                            return %z
 *   }                                                    }
 *
 * The choice is made for all values at once, by cost (sched/format.h). What remains to be done here: values get their
 * layouts; where a node reads another layout than was written a relayout is put behind the value, one for all readers
 * that want the same (propagate_copies.c). Every op reads and writes every layout, so each single change is legal by
 * itself. Views have the storage of their operand, and so an order that follows from it.
 *
 * The promise to the caller stays: a result whose layout is required gets it, by a relayout if need be; a parameter or
 * result that says {?} is stored as suits the graph. What all promises together cost is a remark. An intermediate value
 * keeps a layout that the graph requires of it; hints and proposals are weighed like all else. Constants lie as their
 * data does, row-major, whatever is said of them: readers that want another order have a relayout, which is done once.
 * Bodies of `if` and `loop` are chosen for together with the graph that runs them (sched/format_port.c).
 * A custom function gets and writes the order that it takes, whatever the search found (propagate_orders.c).
 * A node whose note names a kernel, its own or its group's, was decided for the layouts that are stated: it reads and
 * writes those. Another group is one for as long as no relayout falls between its nodes; then it is opened, and a
 * remark says so. What leaves a group is converted behind it. Needs: nothing.
 * Not done: padded rows (pad_strides), splits into blocks as wishes of weft's own, packing of constants. */
#include "passes/propagate.h"
#include "sched/alias.h"

static const char who[] = "propagate_memory_format";

static struct weft_layout layout_at(const struct weft_graph *g, uint32_t layout, weft_val v)
{
    return weft_layout_at(g, layout, weft_type_of(g, v)->rank);
}

/* Does the layout of a value say how the caller wants it? Of what a body returns it says how it is stored. */
static bool is_promised(const struct weft_placing *p, weft_val v)
{
    const struct weft_graph *g = p->graph;
    uint32_t promised;
    for (uint32_t slot = g->value[v.id].first_return; slot && !g->parent; slot = g->ret[slot - 1].next)
        if (!g->ret[slot - 1].mut.id && weft_format_promised(p->formats, slot - 1, &promised))
            return true;
    return false;
}

/* Does the note of its group say what computes the node? */
static bool is_by_group(const struct weft_graph *g, weft_node n)
{
    const uint32_t group = g->node[n.id].group;
    return group && g->group[group].plan && g->group[group].plan->kernel;
}

/* The node runs in this kernel of the caller's. */
static void take_kernel(struct weft_placing *p, weft_node n)
{
    const weft_val v = weft_result(p->graph, n, 0);
    const struct weft_plan_note *note = p->graph->node[n.id].plan;
    if (!p->formats->chosen[v.id] || (note && note->kernel) || is_by_group(p->graph, n) ||
        !weft_permit(p->graph, who, v))
        return;
    weft_set_plan(p->graph, n, p->formats->chosen[v.id]->kernel->name, 0, NULL, NULL);
    p->changed = true;
}

static void set_layout(struct weft_placing *p, weft_val v, uint32_t layout)
{
    struct weft_graph *g = p->graph;
    p->stored[v.id] = layout;
    p->in_registers[v.id] = weft_layout_of(g, v).kind == WEFT_REGISTER;
    if (g->value[v.id].layout == layout || p->in_registers[v.id] || !weft_permit(g, who, v))
        return;
    g->value[v.id].layout = layout;
    g->value[v.id].stated = false; /* of a view, or a result */
    p->changed = true;
}

/* A view is stored as its operand is read. What is repeated or has one index has no place, so that more orders than one
 * may say where it is: then it is the one that was chosen. */
static uint32_t view_layout(struct weft_placing *p, weft_node n, weft_val v)
{
    struct weft_graph *g = p->graph;
    const struct weft_pin operand = {.node = n}, result = {.node = n, .result = true};
    const uint32_t read = p->formats->read[g->node[n.id].first_operand], written = p->formats->written[v.id];
    const struct weft_layout from = layout_at(g, read, weft_operand(g, n, 0));
    struct weft_layout view;
    if (weft_opcode_of(g, n) == WEFT_OP_bcast || weft_format_read_ps(p->formats, operand, read, written) == 0 ||
        weft_format_is_copied(p->formats, operand, read) ||
        !weft_carry_layout(g, operand, &from, result, WEFT_NEW_OUTERMOST, &view))
        return p->formats->written[v.id];
    return weft_intern_layout(g, &view, weft_type_of(g, v));
}

/* What operand `i` of a node costs more to read as it is stored than in this layout. */
static int64_t saved_ps(const struct weft_placing *p, weft_node n, uint32_t i, uint32_t layout)
{
    const struct weft_pin pin = {.node = n, .index = i};
    const weft_val v = weft_operand(p->graph, n, i);
    weft_val result;
    const struct weft_formats *of = weft_format_handed_to(p->formats, n, i, &result);
    const uint32_t written = of->written[result.id];
    if (of->chosen[result.id])
        return WEFT_LABEL_NEVER;
    return weft_format_read_ps(p->formats, pin, p->stored[v.id], written) -
           weft_format_read_ps(p->formats, pin, layout, written);
}

static bool is_view(const struct weft_graph *g, weft_node n)
{
    return weft_is_view(g, n) || (n.id && weft_format_is_cut(g, n));
}

/* A returned view that may lie anywhere, of a parameter, of another result, or of all of a value: the plan finds out
 * where (plan/home.c), and any layout that is stated here might make it a copy. */
static bool stays_open(const struct weft_placing *p, weft_val v)
{
    const struct weft_graph *g = p->graph;
    bool whole = true;
    if (!g->value[v.id].returns || g->parent || weft_layout_of(g, v).kind != WEFT_UNDECIDED)
        return false;
    for (weft_node n = weft_def(g, v); is_view(g, n); n = weft_def(g, v)) {
        const int op = weft_opcode_of(g, n);
        whole &= op == WEFT_OP_transpose || op == WEFT_OP_reshape;
        v = weft_operand(g, n, 0);
    }
    return whole || g->value[v.id].is_param || g->value[v.id].returns;
}

static void place_results(struct weft_placing *p, weft_node n)
{
    struct weft_graph *g = p->graph;
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        const bool follows = weft_is_view(g, n);
        const uint32_t layout = follows ? view_layout(p, n, v) : p->formats->written[v.id];
        p->stored[v.id] = layout;
        if (weft_opcode_of(g, n) != WEFT_OP_const && layout == p->formats->written[v.id])
            weft_say_stored(p, v);
        /* the layout of the value is the promise, until another takes its place */
        if (!is_promised(p, v) && !(is_view(g, n) && stays_open(p, v)))
            set_layout(p, v, layout);
    }
}

/* Is an address all that is promised besides? Then the value, or what it is a view of, is computed there. */
static bool has_promised_places(const struct weft_placing *p, weft_val v, uint32_t promised)
{
    struct weft_graph *g = p->graph;
    const struct weft_layout stored = layout_at(g, p->stored[v.id], v), wanted = layout_at(g, promised, v);
    weft_val root = v;
    return weft_layout_equal(g->dims, &stored, &wanted, weft_type_of(g, v)) && !weft_alias_root(g, &root, NULL) &&
           !weft_is_const(g, root);
}

/* The value was returned in the layout that is promised; now that is a relayout of it, unless it is the same. */
static void place_return(struct weft_placing *p, uint32_t i)
{
    struct weft_graph *g = p->graph;
    const weft_val v = g->ret[i].value;
    uint32_t promised;
    if (v.id >= p->values) /* came here with an earlier slot */
        return;
    if (g->ret[i].mut.id || g->value[v.id].is_param || !weft_format_promised(p->formats, i, &promised) ||
        p->stored[v.id] == promised)
        return;
    if (has_promised_places(p, v, promised))
        return;
    const weft_val copy = weft_value_in(p, v, p->formats->given[i], promised, v, 0);
    if (weft_is(copy, v))
        return;
    for (uint32_t k = 0; k < g->returns; k++) {
        uint32_t other;
        if (weft_is(g->ret[k].value, v) && !g->ret[k].mut.id && weft_format_promised(p->formats, k, &other) &&
            other == promised) /* a body may promise one value in two layouts */
            weft_replace_return(g, k, copy);
    }
    if (g->value[v.id].name)
        weft_move_name(g, v, copy); /* the caller knows the result by it */
    g->value[v.id].layout = p->stored[v.id];
    g->value[v.id].stated = false; /* that was about the result */
}

/* Relayouts of the graph as it came that find their operand stored as they would store it, but for gaps that a function
 * does not take. */
static void drop_idle_relayouts(struct weft_placing *p)
{
    struct weft_graph *g = p->graph;
    for (weft_node n = g->first, next; n.id; n = next) {
        next = g->node[n.id].next;
        const weft_val from = weft_opcode_of(g, n) == WEFT_OP_relayout ? weft_operand(g, n, 0) : WEFT_NO_VALUE;
        const weft_val to = from.id ? weft_result(g, n, 0) : WEFT_NO_VALUE;
        if (!to.id || to.id >= p->values || from.id >= p->values || g->value[to.id].returns || p->packs[to.id] ||
            weft_is_decided(g, n))
            continue;
        if (p->stored[from.id] != p->stored[to.id] || !weft_permit(g, who, to))
            continue;
        g->value[from.id].stated |= g->value[to.id].stated && !g->value[from.id].is_param;
        weft_replace_uses(g, to, from);
        weft_erase_node(g, n);
        p->changed = true;
    }
}

static void place(struct weft_placing *p)
{
    struct weft_graph *g = p->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        p->stored[g->param[i].id] = g->value[g->param[i].id].layout;
        if (weft_format_is_open(g, i)) {
            weft_say_stored(p, g->param[i]);
            set_layout(p, g->param[i], p->formats->written[g->param[i].id]);
        }
    }
    weft_foreach_node(g, n) {
        place_results(p, n);
        if (g->node[n.id].results)
            take_kernel(p, n);
    }
    const weft_node last = g->last;
    for (weft_node n = g->first; n.id; n = g->node[n.id].next) {
        for (uint32_t i = 0; i < g->node[n.id].operands && weft_opcode_of(g, n) != WEFT_OP_relayout; i++) {
            const weft_val v = weft_operand(g, n, i);
            const uint32_t layout = p->formats->read[g->node[n.id].first_operand + i];
            const bool converts = v.id < p->values && layout != p->stored[v.id];
            const weft_val other = !converts ? v : weft_value_in(p, v, p->formats->written[v.id], layout,
                                                                 weft_result(g, n, 0), saved_ps(p, n, i, layout));
            if (!weft_is(other, v))
                weft_replace_operand(g, n, i, other);
        }
        if (n.id == last.id)
            break;
    }
    for (uint32_t i = 0; i < g->returns; i++)
        place_return(p, i);
}

/* What a plan, and whoever reads one, can compare with the kernel that computes it. */
static void record_forms(const struct weft_placing *p)
{
    const int64_t *const symbols = weft_hint_symbols(p->graph, p->formats->arena);
    const struct weft_units units = weft_units_find(p->graph, p->formats->arena);
    for (uint32_t i = 1; i < units.count; i++)
        p->graph->node[units.unit[i].first.id].choices = weft_format_first_choice(p->formats, symbols, &units.unit[i]);
}

/* All values stay as they are. */
static void leave(struct weft_placing *p)
{
    for (uint32_t v = 1; v < p->values; v++) {
        const int kind = weft_layout_of(p->graph, (weft_val){.id = v}).kind;
        p->stored[v] = kind == WEFT_STORED ? p->graph->value[v].layout : 0;
        p->in_registers[v] = kind == WEFT_REGISTER;
    }
}

/* Of the graph or one of its bodies. */
static bool place_all(struct weft_formats *formats, const struct weft_formats *top, bool chosen)
{
    struct weft_placing p = {.graph = formats->graph, .formats = formats, .values = formats->graph->values};
    if (formats == top)
        weft_say_costs(&p);
    p.stored = weft_new(formats->arena, uint32_t, p.values);
    p.first_copy = weft_new(formats->arena, uint32_t, p.values);
    p.in_registers = weft_new(formats->arena, bool, p.values);
    p.packs = weft_new(formats->arena, bool, p.values);
    if (chosen)
        place(&p);
    else
        leave(&p);
    weft_place_orders(&p);
    if (chosen)
        drop_idle_relayouts(&p);
    record_forms(&p);
    weft_say_conversions(&p);
    return p.changed;
}

bool weft_pass_propagate_memory_format(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = false;
    if (graph->parent || graph->returns == 0) /* bodies are chosen for with the graph */
        return false;
    struct weft_formats formats;
    weft_formats_collect(&formats, graph, target, &graph->root->scratch);
    weft_formats_choose(&formats);
    const bool skipped = weft_environment_names("WEFT_SKIP", "propagate_memory_format.choice", /* all= */ false);
    const bool chosen = formats.cost <= formats.row_major && !skipped; /* more only where tables were too large */
    if (skipped) { /* nothing is said of what is not taken */
        formats.weighs = false;
        formats.cost = formats.bound = formats.free_cost = formats.row_major;
    }
    for (uint32_t i = formats.count; i > 0; i--)
        changed |= place_all(formats.all[i - 1], &formats, chosen);
    return changed;
}
