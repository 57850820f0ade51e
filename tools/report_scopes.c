/* SPDX-License-Identifier: Apache-2.0 */
/* report_scopes.c: the scopes of a plan, and its layers that repeat, for the page of weft report:
 *
 *   scope  {"name": "layer.0", "full": "encoder.layer.0", "unlike": "unlike …", "items": […],
 *           "repeats": [{"name": "layer.0 … layer.11", "first": 2, "count": 12, "period": 1, "copies": 12}]}
 *   unit   {"name": "query", "op": "matmul", "group": "matmul_add", "values": ["linear", …]}
 *
 * What is known before the run is in none of them. `drawn` names for each value of a layer that is not drawn the one
 * that stands for it. */
#include "tools/report.h"
#include "tools/explain.h"
#include "tools/tools.h"

#include "viz/scopes.h"

struct printer {
    const struct weft_scopes *tree;
    const char **label;
    struct weft_text *text;
};

static void print_unit(const struct printer *p, const struct weft_scope_item *item)
{
    const struct weft_graph *const g = p->tree->graph;
    const struct weft_node_info *const info = weft_node_of(g, item->node[0]);
    weft_text_add(p->text, "{\"name\":");
    weft_json_string(p->text, item->name);
    explain_json_pair(p->text, "full", item->full);
    explain_json_pair(p->text, "op", weft_op_of(g, item->node[0])->name);
    if (info->group)
        explain_json_pair(p->text, "group", g->group[info->group].name);
    weft_text_add(p->text, ",\"values\":[");
    bool first = true;
    for (uint32_t i = 0; i < item->nodes; i++)
        for (unsigned r = 0; r < weft_node_of(g, item->node[i])->results; r++) {
            weft_text_add(p->text, first ? "" : ",");
            weft_json_string(p->text, p->label[weft_result(g, item->node[i], r).id]);
            first = false;
        }
    weft_text_add(p->text, "]}");
}

/* Scopes are at most 64 deep (viz/scopes.c). */
static void print_scope(const struct printer *p, uint32_t s, const struct weft_scope_item *as)
{
    const struct weft_name_scope *const scope = &p->tree->scope[s];
    weft_text_add(p->text, "{\"name\":");
    weft_json_string(p->text, as ? as->name : "");
    explain_json_pair(p->text, "full", scope->full);
    if (as && as->difference)
        explain_json_pair(p->text, "unlike", as->difference);
    weft_text_add(p->text, ",\"items\":[");
    for (uint32_t i = 0; i < scope->items; i++) {
        weft_text_add(p->text, i ? ",\n" : "");
        if (scope->item[i].scope)
            print_scope(p, scope->item[i].scope, &scope->item[i]);
        else
            print_unit(p, &scope->item[i]);
    }
    weft_text_add(p->text, "],\"repeats\":[");
    bool first = true;
    for (uint32_t i = 0; i < p->tree->repeats; i++) {
        const struct weft_repeat *const r = &p->tree->repeat[i];
        if (r->scope != s)
            continue;
        weft_text_add(p->text, first ? "{\"name\":" : ",{\"name\":");
        weft_json_string(p->text, weft_repeat_name(p->tree, r));
        weft_text_format(p->text, ",\"first\":%u,\"count\":%u,\"period\":%u,\"copies\":%u}", r->first, r->count,
                         r->period, r->copies);
        first = false;
    }
    weft_text_add(p->text, "]}");
}

static void print_drawn(const struct printer *p)
{
    const struct weft_graph *const g = p->tree->graph;
    bool first = true;
    weft_text_add(p->text, "{");
    weft_foreach_node(g, n) {
        const weft_node drawn = p->tree->stand_in[n.id];
        for (unsigned r = 0; drawn.id != n.id && r < weft_node_of(g, n)->results; r++) {
            weft_text_add(p->text, first ? "" : ",");
            weft_json_string(p->text, p->label[weft_result(g, n, r).id]);
            weft_text_add(p->text, ":");
            weft_json_string(p->text, p->label[weft_result(g, drawn, r).id]);
            first = false;
        }
    }
    weft_text_add(p->text, "}");
}

void report_print_scopes(const struct weft_graph *graph, struct weft_arena *arena, struct weft_text *text)
{
    bool *const skipped = weft_new(arena, bool, graph->nodes + 1);
    struct weft_scopes tree = {.graph = graph, .arena = arena, .skipped = skipped,
                               .text = weft_value_texts(graph, arena)};
    const struct printer p = {&tree, weft_value_labels(graph, arena), text};
    weft_scopes_skip_known(graph, skipped);
    weft_scopes_build(&tree);
    weft_scopes_repeat(&tree, NULL, 0);
    weft_text_add(text, "{\"tree\":");
    print_scope(&p, 0, NULL);
    weft_text_add(text, ",\"drawn\":");
    print_drawn(&p);
    weft_text_add(text, "}");
}
