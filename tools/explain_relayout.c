/* SPDX-License-Identifier: Apache-2.0 */
/* explain_relayout.c: the relayouts that were put in so that values lie as their readers want them: which, for whom,
 * and at which price. */
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

int64_t explain_estimate_ps(const struct explain *e)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < e->pairs; i++)
        sum += e->pair[i].to->format_ps;
    return sum;
}

bool explain_relayout_at(const struct explain *e, uint32_t i, struct explain_relayout *ret)
{
    for (uint32_t p = 0; p < e->pairs; p++) {
        const struct weft_graph *graph = e->pair[p].to;
        for (uint32_t k = 0; k < graph->conversions; k++) {
            const struct weft_conversion_record *record = &graph->conversion[k];
            if (graph->node[weft_def(graph, record->to).id].dead || i-- > 0)
                continue;
            const double estimate = (double)explain_estimate_ps(e);
            *ret = (struct explain_relayout){.pair = &e->pair[p],
                                             .record = record,
                                             .from = layout_of(e, graph, record->from),
                                             .to = layout_of(e, graph, record->to),
                                             .bytes = bytes_of(e, graph, record->to)};
            if (!record->once && estimate > 0)
                ret->share = (double)record->ps / estimate;
            return true;
        }
    }
    return false;
}
