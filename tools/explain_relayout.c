/* SPDX-License-Identifier: Apache-2.0 */
/* explain_relayout.c: the relayouts that were inserted so that values are stored as their readers want them: which, for
 * whom, and at what cost. */
#include "tools/explain.h"

/* As planned. */
static const char *layout_of(const struct explain *e, const struct weft_graph *graph, weft_val value)
{
    struct weft_text text = {.context = e->context, .arena = e->arena};
    const bool stored = graph == e->to && e->plan->home[value.id].storage;
    const struct weft_layout layout = stored ? *e->plan->home[value.id].layout : weft_layout_of(graph, value);
    if (weft_layout_is_row_major(&layout))
        return "row-major";
    weft_layout_print(graph->dims, &layout, &text);
    return text.data;
}

static double bytes_of(const struct explain *e, const struct weft_graph *graph, weft_val value)
{
    const struct weft_type *type = weft_type_of(graph, value);
    double bytes = (double)weft_dtype_bits(type->dtype) / 8;
    for (int i = 0; i < type->rank; i++)
        bytes *= (double)weft_dim_evaluate(graph->dims, type->extent[i], e->symbols);
    return bytes;
}

/* Steps of a plan and of its bodies. */
static void count_steps(const struct explain *e, const struct weft_plan *plan, struct explain_relayouts *counts)
{
    const struct weft_graph *const graph = plan->graph;
    bool *const inserted = weft_new(e->arena, bool, graph->nodes);
    for (uint32_t i = 0; i < graph->conversions; i++)
        inserted[weft_def(graph, graph->conversion[i].to).id] = true;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *const step = &plan->step[i];
        if (!weft_step_is_relayout(step))
            continue;
        if (!step->node.id)
            counts->results++;
        else if (inserted[step->node.id])
            counts->inserted++;
        else
            counts->by_op[weft_opcode_of(graph, step->node)]++;
    }
    for (uint32_t i = 1; i < plan->controls; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            count_steps(e, plan->control[i].body[k], counts);
}

struct explain_relayouts explain_count_relayouts(const struct explain *e)
{
    struct explain_relayouts counts = {0};
    struct explain_relayout r = {0};
    count_steps(e, e->plan, &counts);
    while (explain_next_relayout(e, &r))
        counts.loaded += r.record->once;
    return counts;
}

int64_t explain_estimate_ps(const struct explain *e)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < e->pairs; i++)
        sum += e->pair[i].to->format_ps;
    return sum;
}

bool explain_next_relayout(const struct explain *e, struct explain_relayout *r)
{
    const double estimate = r->record ? r->estimate : (double)explain_estimate_ps(e);
    uint32_t p = r->record ? (uint32_t)(r->pair - e->pair) : 0;
    uint32_t k = r->record ? (uint32_t)(r->record - r->pair->to->conversion) + 1 : 0;
    for (; p < e->pairs; p++, k = 0) {
        const struct weft_graph *graph = e->pair[p].to;
        for (; k < graph->conversions; k++) {
            const struct weft_conversion_record *record = &graph->conversion[k];
            if (graph->node[weft_def(graph, record->to).id].dead)
                continue;
            *r = (struct explain_relayout){.pair = &e->pair[p],
                                           .record = record,
                                           .from = layout_of(e, graph, record->from),
                                           .to = layout_of(e, graph, record->to),
                                           .bytes = bytes_of(e, graph, record->to),
                                           .estimate = estimate};
            if (!record->once && estimate > 0)
                r->share = (double)record->ps / estimate;
            return true;
        }
    }
    return false;
}
