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
 * that want the same. Every op reads and writes every layout, so each single change is legal by itself. Views have the
 * storage of their operand, and so an order that follows from it.
 *
 * The promise to the caller stays: a result whose layout is required gets it, by a relayout if need be; a parameter or
 * result that says {?} is stored as suits the graph. What all promises together cost is a remark. An intermediate value
 * keeps a layout that the graph requires of it; hints and proposals are weighed like all else.
 * Needs: nothing. Keeps: nothing. Graphs that are grouped or planned already are left alone.
 * Not done: padded rows (pad_strides), splits into blocks as wishes of weft's own, packing of constants. */
#include "ir/parse.h"
#include "passes/passes.h"
#include "sched/format.h"

static const char who[] = "propagate_memory_format";

enum { NOTEWORTHY_PS = 1000 };

struct placing {
    struct weft_graph *graph;
    struct weft_formats formats;
    struct note *note;          /* remarks to be, until values have their last numbers */
    uint32_t notes, note_capacity;
    uint32_t *stored;           /* by value: the layout that it really has */
    uint32_t values;            /* of the graph before this pass added some */
    struct copy *copy;          /* relayouts so far */
    uint32_t *first_copy;       /* by value: index + 1 */
    uint32_t copies, capacity;
    bool changed;
};

struct copy {
    uint32_t layout, next;
    weft_val of, value;
    weft_val reader;            /* result of the first node that reads it; of a promise, the value itself */
    bool promised;              /* a result of the graph */
    uint32_t readers;
    int64_t saves;              /* ps: what they would pay more for reading the value as it is */
};

struct note {
    weft_val value;
    const char *verdict, *text;
};

/* What was decided about one node was decided for the layouts that its neighbours have. */
static bool is_ready(struct weft_graph *g)
{
    weft_foreach_node(g, n) {
        if (!g->node[n.id].group && !g->node[n.id].plan)
            continue;
        weft_refuse(g, who, g->node[n.id].results ? weft_result(g, n, 0) : WEFT_NO_VALUE,
                    "all layouts stay as they are: this node %s",
                    g->node[n.id].group ? "is in a group" : "has a plan already");
        return false;
    }
    return g->returns > 0;
}

static struct weft_layout layout_at(const struct weft_graph *g, uint32_t layout, weft_val v)
{
    return weft_layout_at(g, layout, weft_type_of(g, v)->rank);
}

static bool is_promised(const struct placing *p, weft_val v)
{
    const struct weft_graph *g = p->graph;
    uint32_t promised;
    for (uint32_t slot = g->value[v.id].first_return; slot; slot = g->ret[slot - 1].next)
        if (!g->ret[slot - 1].mut.id && weft_format_promised(&p->formats, slot - 1, &promised))
            return true;
    return false;
}

static const char *layout_text(const struct placing *p, weft_val v, uint32_t layout)
{
    struct weft_text text = {.context = p->graph->context, .arena = p->formats.arena};
    const struct weft_layout shown = layout_at(p->graph, layout, v);
    weft_layout_print(p->graph->dims, &shown, &text);
    return layout ? text.data : "row-major";
}

/* A layout, and whose kernel writes it if that is not weft's. */
static const char *choice_text(const struct placing *p, weft_val v, uint32_t layout, const struct weft_format_own *own)
{
    const char *const text = layout_text(p, v, layout);
    return own ? weft_arena_format(p->formats.arena, "%s by %s", text, own->kernel->name) : text;
}

static void note(struct placing *p, weft_val v, const char *verdict, const char *text)
{
    p->note = weft_grow(p->formats.arena, p->note, &p->note_capacity, p->notes + 1, sizeof *p->note);
    p->note[p->notes++] = (struct note){v, verdict, text};
}

/* Who wanted a relayout, and why: "conv %y and 2 more, which would take 40.000 us more without". */
static const char *wanted_text(const struct placing *p, const struct copy *copy, const char **label)
{
    struct weft_graph *g = p->graph;
    const char *more = copy->readers > 1 ? weft_arena_format(g->arena, " and %u more", copy->readers - 1) : "";
    struct weft_text name = {.context = g->context, .arena = g->arena};
    const weft_val of = copy->promised ? copy->value : copy->reader;
    if (g->value[of.id].name || !g->node[weft_def(g, of).id].name)
        weft_text_name(&name, '%', label[of.id]);
    else
        weft_text_add(&name, g->node[weft_def(g, of).id].name); /* better than a number */
    if (copy->promised)
        return weft_arena_format(g->arena, "result %s, which is promised so%s%s", name.data, more[0] ? "," : "", more);
    const char *op = weft_ops[weft_def_opcode(g, copy->reader)].name;
    if (copy->saves >= WEFT_LABEL_NEVER)
        return weft_arena_format(g->arena, "%s %s%s, which cannot read it as it is", op, name.data, more);
    return weft_arena_format(g->arena, "%s %s%s, which would take %.3f us more without", op, name.data, more,
                             (double)copy->saves * 1e-6);
}

static void write_conversions(struct placing *p, const char **label)
{
    struct weft_graph *g = p->graph;
    g->conversions = 0;
    g->conversion = weft_new(g->arena, struct weft_conversion_record, p->copies);
    for (uint32_t i = 0; i < p->copies; i++) {
        const struct copy *copy = &p->copy[i];
        const struct weft_conversion_record record = {
            .from = copy->of, .to = copy->value, .once = weft_is_const(g, copy->of),
            .ps = weft_format_convert_ps(&p->formats, copy->of, p->stored[copy->of.id], copy->layout),
            .wanted = wanted_text(p, copy, label)};
        g->conversion[g->conversions++] = record;
        weft_add_remark_at(g, who, label[copy->of.id], "converted", "from %s to %s, %.3f us%s, for %s",
                           layout_text(p, copy->of, p->stored[copy->of.id]), layout_text(p, copy->of, copy->layout),
                           (double)record.ps * 1e-6, record.once ? " once" : "", record.wanted);
    }
}

/* A value without a name is called by its number, which relayouts move. */
static void write_notes(struct placing *p)
{
    p->graph->format_ps = p->formats.cost;
    if (p->notes + p->copies == 0)
        return;
    const char **label = weft_value_labels(p->graph, p->formats.arena);
    for (uint32_t i = 0; i < p->notes; i++)
        weft_add_remark_at(p->graph, who, label[p->note[i].value.id], p->note[i].verdict, "%s", p->note[i].text);
    write_conversions(p, label);
}

/* Says what was chosen, and what the best other choice would have cost. */
static void explain(struct placing *p, weft_val v)
{
    const struct weft_formats *f = &p->formats;
    if (f->second[v.id] == f->written[v.id] && f->second_own[v.id] == f->chosen[v.id])
        return;
    struct weft_format_known *known =
        WEFT_RECALL(f, WEFT_RECALL_TEXT, f->written[v.id], (uint64_t)(uintptr_t)f->chosen[v.id],
                    (uint64_t)f->written_ps[v.id], f->second[v.id], (uint64_t)(uintptr_t)f->second_own[v.id],
                    (uint64_t)f->second_ps[v.id]);
    if (!known->answer)
        known->answer = weft_arena_format(f->arena, "%s, %.3f us to write and read; %s would cost %.3f us more",
                                          choice_text(p, v, f->written[v.id], f->chosen[v.id]),
                                          (double)f->written_ps[v.id] * 1e-6,
                                          choice_text(p, v, f->second[v.id], f->second_own[v.id]),
                                          (double)f->second_ps[v.id] * 1e-6);
    note(p, v, "stored", known->answer);
}

/* The node runs in this kernel of the caller's. */
static void take_kernel(struct placing *p, weft_node n)
{
    const weft_val v = weft_result(p->graph, n, 0);
    if (!p->formats.chosen[v.id] || !weft_permit(p->graph, who, v))
        return;
    weft_set_plan(p->graph, n, p->formats.chosen[v.id]->kernel->name, 0, NULL, NULL);
    p->changed = true;
}

static void set_layout(struct placing *p, weft_val v, uint32_t layout)
{
    struct weft_graph *g = p->graph;
    p->stored[v.id] = layout;
    if (g->value[v.id].layout == layout || !weft_permit(g, who, v))
        return;
    g->value[v.id].layout = layout;
    p->changed = true;
}

/* A view is stored as its operand is read. What a broadcast adds has no place, so any order will do. */
static uint32_t view_layout(struct placing *p, weft_node n, weft_val v)
{
    struct weft_graph *g = p->graph;
    const struct weft_pin operand = {.node = n}, result = {.node = n, .result = true};
    const struct weft_layout from = layout_at(g, p->formats.read[g->node[n.id].first_operand], weft_operand(g, n, 0));
    struct weft_layout view;
    if (weft_opcode_of(g, n) == WEFT_OP_bcast ||
        !weft_carry_layout(g, operand, &from, result, WEFT_NEW_OUTERMOST, &view))
        return p->formats.written[v.id];
    return weft_intern_layout(g, &view, weft_type_of(g, v));
}

/* What operand `i` of a node costs more to read as it is stored than in this layout. */
static int64_t saved_ps(const struct placing *p, weft_node n, uint32_t i, uint32_t layout)
{
    const struct weft_pin pin = {.node = n, .index = i};
    const weft_val v = weft_operand(p->graph, n, i), result = weft_result(p->graph, n, 0);
    const uint32_t written = p->formats.written[result.id];
    if (p->formats.chosen[result.id])
        return WEFT_LABEL_NEVER;
    return weft_format_read_ps(&p->formats, pin, p->stored[v.id], written) -
           weft_format_read_ps(&p->formats, pin, layout, written);
}

/* A relayout of the value, right behind it; it has no reader yet. */
static struct copy *add_copy(struct placing *p, weft_val v, uint32_t layout)
{
    struct weft_graph *g = p->graph;
    const weft_node def = weft_def(g, v);
    struct weft_builder b = {.graph = g, .before = def.id ? g->node[def.id].next : g->first};
    const weft_val copy = weft_build_unary(&b, WEFT_OP_relayout, v);
    g->value[copy.id].layout = layout;
    p->copy = weft_grow(p->formats.arena, p->copy, &p->capacity, p->copies + 1, sizeof *p->copy);
    p->copy[p->copies] = (struct copy){.layout = layout, .next = p->first_copy[v.id], .of = v, .value = copy};
    p->first_copy[v.id] = ++p->copies;
    p->changed = true;
    return &p->copy[p->copies - 1];
}

/* The value in this layout: itself, or a relayout of it, which all share that want the same. `reader` is a result of
 * the node that does, or the value itself where it is promised so; `saves`: what it would pay more. */
static weft_val value_in(struct placing *p, weft_val v, uint32_t layout, weft_val reader, int64_t saves)
{
    if (p->stored[v.id] == layout)
        return v;
    uint32_t i = p->first_copy[v.id];
    while (i && p->copy[i - 1].layout != layout)
        i = p->copy[i - 1].next;
    if (!i && !weft_permit(p->graph, who, v))
        return v;
    struct copy *copy = i ? &p->copy[i - 1] : add_copy(p, v, layout);
    if (copy->readers++ == 0) {
        copy->reader = reader;
        copy->promised = weft_is(reader, v);
    }
    copy->saves = weft_label_add(copy->saves, saves);
    return copy->value;
}

/* A padding that only takes away is a slice that has not been written as one. */
static bool is_cut(const struct weft_graph *g, weft_node n)
{
    const struct weft_attr *pad = weft_opcode_of(g, n) == WEFT_OP_pad ? weft_attr_find(g, n, WEFT_ATTR_pad) : NULL;
    bool adds = !pad || weft_attr_find(g, n, WEFT_ATTR_form);
    for (uint32_t i = 0; !adds && i < pad->count; i++)
        adds = !weft_dim_is_constant(pad->integers[i]) || weft_dim_value(pad->integers[i]) > 0;
    return !adds;
}

static bool is_view(const struct weft_graph *g, weft_node n)
{
    return n.id && ((weft_op_of(g, n)->traits & WEFT_VIEW) || is_cut(g, n));
}

/* A returned view that may lie anywhere, of a parameter, of another result, or of all of a value: the plan finds out
 * where (runtime/home.c), and any layout that is stated here might make it a copy. */
static bool stays_open(const struct placing *p, weft_val v)
{
    const struct weft_graph *g = p->graph;
    bool whole = true;
    if (!g->value[v.id].returns || weft_layout_of(g, v).kind != WEFT_UNDECIDED)
        return false;
    for (weft_node n = weft_def(g, v); is_view(g, n); n = weft_def(g, v)) {
        const int op = weft_opcode_of(g, n);
        whole &= op == WEFT_OP_transpose || op == WEFT_OP_reshape;
        v = weft_operand(g, n, 0);
    }
    return whole || g->value[v.id].is_param || g->value[v.id].returns;
}

static void place_results(struct placing *p, weft_node n)
{
    struct weft_graph *g = p->graph;
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        const bool follows = weft_op_of(g, n)->traits & WEFT_VIEW;
        const uint32_t layout = follows ? view_layout(p, n, v) : p->formats.written[v.id];
        if (weft_opcode_of(g, n) == WEFT_OP_const)
            continue;
        explain(p, v);
        /* the layout of the value is the promise, until another takes its place */
        if (is_promised(p, v) || (is_view(g, n) && stays_open(p, v))) {
            p->stored[v.id] = layout;
            continue;
        }
        set_layout(p, v, layout);
    }
}

/* The value was returned in the layout that is promised; now that is a relayout of it, unless it is the same. */
static void place_return(struct placing *p, uint32_t i)
{
    struct weft_graph *g = p->graph;
    const weft_val v = g->ret[i].value;
    uint32_t promised;
    if (v.id >= p->values) /* came here with an earlier slot */
        return;
    if (g->ret[i].mut.id || g->value[v.id].is_param || !weft_format_promised(&p->formats, i, &promised) ||
        p->stored[v.id] == promised)
        return;
    const weft_val copy = value_in(p, v, promised, v, 0);
    if (weft_is(copy, v))
        return;
    for (uint32_t k = 0; k < g->returns; k++)
        if (weft_is(g->ret[k].value, v) && !g->ret[k].mut.id)
            weft_replace_return(g, k, copy);
    if (g->value[v.id].name)
        weft_move_name(g, v, copy); /* the caller knows the result by it */
    g->value[v.id].layout = p->stored[v.id];
}

/* Relayouts of the graph as it came that find their operand stored as they would store it. */
static void drop_idle_relayouts(struct placing *p)
{
    struct weft_graph *g = p->graph;
    for (weft_node n = g->first, next; n.id; n = next) {
        next = g->node[n.id].next;
        const weft_val from = weft_opcode_of(g, n) == WEFT_OP_relayout ? weft_operand(g, n, 0) : WEFT_NO_VALUE;
        const weft_val to = from.id ? weft_result(g, n, 0) : WEFT_NO_VALUE;
        if (!to.id || to.id >= p->values || from.id >= p->values || g->value[to.id].returns)
            continue;
        if (p->stored[from.id] != p->stored[to.id] || !weft_permit(g, who, to))
            continue;
        weft_replace_uses(g, to, from);
        weft_erase_node(g, n);
        p->changed = true;
    }
}

static void place(struct placing *p)
{
    struct weft_graph *g = p->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        p->stored[g->param[i].id] = g->value[g->param[i].id].layout;
        if (weft_format_is_open(g, i)) {
            explain(p, g->param[i]);
            set_layout(p, g->param[i], p->formats.written[g->param[i].id]);
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
            const uint32_t layout = p->formats.read[g->node[n.id].first_operand + i];
            const weft_val other = v.id < p->values && layout != p->stored[v.id]
                                       ? value_in(p, v, layout, weft_result(g, n, 0), saved_ps(p, n, i, layout))
                                       : v;
            if (!weft_is(other, v))
                weft_replace_operand(g, n, i, other);
        }
        if (n.id == last.id)
            break;
    }
    for (uint32_t i = 0; i < g->returns; i++)
        place_return(p, i);
    drop_idle_relayouts(p);
}

static const char *cost_text(const struct placing *p, int64_t ps)
{
    return ps < WEFT_LABEL_NEVER ? weft_arena_format(p->formats.arena, "%.3f us", (double)ps * 1e-6) : "not possible";
}

static weft_val first_promised(const struct placing *p)
{
    uint32_t promised, i = 0;
    while (!weft_format_promised(&p->formats, i, &promised))
        i++;
    return p->graph->ret[i].value;
}

/* What promises cost, and what was weighed where there was something to choose. */
static void say_costs(struct placing *p)
{
    const struct weft_formats *f = &p->formats;
    if (f->free_cost + NOTEWORTHY_PS < f->cost)
        weft_add_remark(p->graph, who, first_promised(p), "promised",
                        "the layouts that are promised for results cost %.3f us",
                        (double)(f->cost - f->free_cost) * 1e-6);
    if (f->row_major == f->cost && f->channels_last == f->cost)
        return;
    weft_add_remark(p->graph, who, WEFT_NO_VALUE, "weighed", "%s as chosen, %s row-major throughout, %s channels-last; "
                    "prices: %s", cost_text(p, f->cost), cost_text(p, f->row_major), cost_text(p, f->channels_last),
                    weft_prices_of(f->target)->from);
}

bool weft_pass_propagate_memory_format(struct weft_graph *graph, const struct weft_target *target)
{
    if (!is_ready(graph))
        return false;
    struct placing p = {.graph = graph, .values = graph->values};
    weft_formats_collect(&p.formats, graph, target, &graph->root->scratch);
    weft_formats_choose(&p.formats);
    say_costs(&p);
    if (p.formats.bound < p.formats.cost)
        weft_add_remark(graph, who, graph->ret[0].value, "bounded",
                        "this choice costs %.3f us, and none less than %.3f",
                        (double)p.formats.cost * 1e-6, (double)p.formats.bound * 1e-6);
    p.stored = weft_new(p.formats.arena, uint32_t, graph->values);
    p.first_copy = weft_new(p.formats.arena, uint32_t, graph->values);
    if (p.formats.cost <= p.formats.row_major) /* more only where tables were too large */
        place(&p);
    write_notes(&p);
    return weft_progress(graph, p.changed, 0);
}
