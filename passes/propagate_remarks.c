/* SPDX-License-Identifier: Apache-2.0 */
/* propagate_remarks.c: what propagate_memory_format says: what was weighed, what each value would have cost otherwise,
 * and for whom something was converted. The verdicts are explained in docs/explain.md. */
#include "passes/propagate.h"

#include "ir/parse.h"

static const char who[] = "propagate_memory_format";

enum { NOTEWORTHY_PS = 1000 };
#define MOST_EXACT_PS 1000000000000000 /* as a double in microseconds, to much less than a picosecond */

static const char *layout_text(const struct weft_placing *p, weft_val v, uint32_t layout)
{
    if (layout == 0)
        return "row-major";
    struct weft_format_known *known = WEFT_RECALL(p->formats, WEFT_RECALL_TEXT, layout);
    if (!known->answer) {
        struct weft_text text = {.context = p->graph->context, .arena = p->formats->arena};
        const struct weft_layout shown = weft_layout_at(p->graph, layout, weft_type_of(p->graph, v)->rank);
        weft_layout_print(p->graph->dims, &shown, &text);
        known->answer = text.data;
    }
    return known->answer;
}

/* A layout, and whose kernel writes it if that is not weft's. */
static const char *choice_text(const struct weft_placing *p, weft_val v, uint32_t layout,
                               const struct weft_format_own *own)
{
    const char *const text = layout_text(p, v, layout);
    return own ? weft_arena_format(p->formats->arena, "%s by %s", text, own->kernel->name) : text;
}

static void note(struct weft_placing *p, weft_val v, const char *verdict, const char *text)
{
    p->note = weft_grow(p->formats->arena, p->note, &p->note_capacity, p->notes + 1, sizeof *p->note);
    p->note[p->notes++] = (struct weft_placing_note){v, verdict, text};
}

/* Who wanted a relayout, and why: "conv %y and 2 more, which would take 40.000 us more without". */
static const char *wanted_text(const struct weft_placing *p, const struct weft_converted *copy, const char **label)
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
        return weft_arena_format(g->arena, "result %s, whose layout is stated%s%s", name.data, more[0] ? "," : "",
                                 more);
    const char *op = weft_ops[weft_def_opcode(g, copy->reader)].name;
    if (copy->saves >= WEFT_LABEL_NEVER)
        return weft_arena_format(g->arena, "%s %s%s, which cannot read it as it is", op, name.data, more);
    return weft_arena_format(g->arena, "%s %s%s, which would take %.3f us more without", op, name.data, more,
                             (double)copy->saves * 1e-6);
}

static void write_conversions(struct weft_placing *p, const char **label)
{
    struct weft_graph *g = p->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->conversions; i++) /* what an earlier run put in, and is there still */
        if (!g->node[weft_def(g, g->conversion[i].to).id].dead)
            g->conversion[kept++] = g->conversion[i];
    g->conversions = kept;
    for (uint32_t i = 0; i < p->copies; i++) {
        const struct weft_converted *copy = &p->copy[i];
        if (g->node[weft_def(g, copy->value).id].dead)
            continue;
        const bool once = !copy->promised && weft_format_is_loaded(g, copy->of);
        const int64_t ps = weft_format_convert_ps(p->formats, copy->of, copy->from, copy->layout);
        const struct weft_conversion_record record = {.from = copy->source, .to = copy->value, .once = once,
                                                      .ps = once ? ps : weft_format_weighted(p->formats, ps),
                                                      .wanted = wanted_text(p, copy, label)};
        g->format_ps += copy->is_extra && !once ? record.ps : 0;
        weft_add_conversion(g, &record);
        weft_add_remark_at(g, who, label[copy->source.id], "converted", "from %s to %s, %.3f us%s, for %s",
                           layout_text(p, copy->of, copy->from), layout_text(p, copy->of, copy->layout),
                           (double)record.ps * 1e-6, record.once ? " once" : "", record.wanted);
    }
}

/* A value without a name is called by its number, which relayouts move. */
void weft_say_conversions(struct weft_placing *p)
{
    p->graph->format_ps = p->formats->cost;
    if (p->notes + p->copies == 0)
        return;
    const char **label = weft_value_labels(p->graph, p->formats->arena);
    for (uint32_t i = 0; i < p->notes; i++)
        weft_add_remark_at(p->graph, who, label[p->note[i].value.id], p->note[i].verdict, "%s", p->note[i].text);
    write_conversions(p, label);
}

/* "%.3f" of a double takes most of the time of a remark; only halves, which that may round either way, need it. */
static const char *us_text(const struct weft_placing *p, int64_t ps)
{
    const int64_t ns = (ps + 500) / 1000;
    if (ps < 0 || ps > MOST_EXACT_PS || ps % 1000 == 500)
        return weft_arena_format(p->formats->arena, "%.3f", (double)ps * 1e-6);
    return weft_arena_format(p->formats->arena, "%lld.%03lld", (long long)(ns / 1000), (long long)(ns % 1000));
}

/* Says what was chosen, and what the best other choice would have cost. What a broadcast repeats is not stored. */
void weft_say_stored(struct weft_placing *p, weft_val v)
{
    const struct weft_formats *f = p->formats;
    if ((f->second[v.id] == f->written[v.id] && f->second_own[v.id] == f->chosen[v.id]) ||
        weft_def_opcode(p->graph, v) == WEFT_OP_bcast)
        return;
    struct weft_format_known *known =
        WEFT_RECALL(f, WEFT_RECALL_TEXT, f->written[v.id], (uint64_t)(uintptr_t)f->chosen[v.id],
                    (uint64_t)f->written_ps[v.id], f->second[v.id], (uint64_t)(uintptr_t)f->second_own[v.id],
                    (uint64_t)f->second_ps[v.id]);
    const int64_t own = f->written_ps[v.id] < 500 ? 0 : f->written_ps[v.id]; /* what would be printed as 0.000 */
    if (!known->answer)
        known->answer = weft_arena_format(f->arena, "%s%s%s%s; %s would cost %s us more",
                                          choice_text(p, v, f->written[v.id], f->chosen[v.id]),
                                          own > 0 ? ", " : "", own > 0 ? us_text(p, own) : "",
                                          own > 0 ? " us to write and read" : "",
                                          choice_text(p, v, f->second[v.id], f->second_own[v.id]),
                                          us_text(p, f->second_ps[v.id]));
    note(p, v, "chose", known->answer);
}

/* Of ties, each candidate costs a few picoseconds more than the one before it: that is nothing. */
static const char *cost_text(const struct weft_placing *p, int64_t ps)
{
    return ps < NOTEWORTHY_PS / 2    ? "nothing"
           : ps < WEFT_LABEL_NEVER ? weft_arena_format(p->formats->arena, "%.3f us", (double)ps * 1e-6)
                                   : "not possible";
}

static weft_val first_promised(const struct weft_placing *p)
{
    uint32_t promised, i = 0;
    while (!weft_format_promised(p->formats, i, &promised))
        i++;
    return p->graph->ret[i].value;
}

/* What promises cost, and what was weighed where there was something to choose. */
void weft_say_costs(struct weft_placing *p)
{
    const struct weft_formats *f = p->formats;
    if (f->free_cost + NOTEWORTHY_PS < f->cost)
        weft_add_remark(p->graph, who, first_promised(p), "promised",
                        "the stated layouts of results cost %.3f us",
                        (double)(f->cost - f->free_cost) * 1e-6);
    if (f->bound < f->cost)
        weft_add_remark(p->graph, who, p->graph->ret[0].value, "bounded",
                        "this choice costs %.3f us, and none less than %.3f", (double)f->cost * 1e-6,
                        (double)f->bound * 1e-6);
    if (!f->weighs)
        return;
    /* Remarks beside this one have prices all the same: what other layouts would add. */
    const char *const free = f->cost < NOTEWORTHY_PS / 2
                                 ? " (no conversion, and no node slower than in other layouts)" : "";
    weft_add_remark(p->graph, who, WEFT_NO_VALUE, "weighed",
                    "%s as chosen%s, %s row-major throughout, %s channels-last; prices: %s", cost_text(p, f->cost),
                    free, cost_text(p, f->row_major), cost_text(p, f->channels_last),
                    weft_prices_of(f->target)->from);
}
