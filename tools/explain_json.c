/* SPDX-License-Identifier: Apache-2.0 */
/* explain_json.c: an explanation for programs: an object a line, as docs/explain.md defines them. */
#include "tools/explain.h"
#include "tools/tools.h"

#include <string.h>

void explain_json_pair(struct weft_text *text, const char *key, const char *string)
{
    weft_text_format(text, ",\"%s\":", key);
    weft_json_string(text, string);
}

static void add_number(struct weft_text *text, const char *key, double number)
{
    weft_text_format(text, ",\"%s\":%.17g", key, number);
}

static void add_remark(struct weft_text *text, const struct weft_remark *remark)
{
    weft_text_add(text, "{\"who\":");
    weft_json_string(text, remark->who);
    explain_json_pair(text, "verdict", remark->verdict);
    explain_json_pair(text, "where", remark->where);
    explain_json_pair(text, "reason", remark->reason);
}

static void print_summary(const struct explain *e, struct weft_text *text)
{
    struct explain_pass pass;
    weft_text_add(text, "{\"kind\":\"model\"");
    explain_json_pair(text, "file", e->path);
    add_number(text, "nodes_read", e->from->live_nodes);
    add_number(text, "nodes_planned", e->to->live_nodes);
    add_number(text, "steps", e->plan->steps);
    add_number(text, "fallbacks", e->plan->fallbacks);
    add_number(text, "relayouts", e->plan->relayouts);
    add_number(text, "rewrites", (double)e->to->root->rewrites);
    add_number(text, "estimate_ps", (double)explain_estimate_ps(e));
    weft_text_add(text, "}\n");
    for (uint32_t i = 0; explain_pass_at(e, i, &pass); i++) {
        weft_text_add(text, "{\"kind\":\"pass\"");
        explain_json_pair(text, "pass", pass.name);
        add_number(text, "runs", pass.runs);
        add_number(text, "rewrites", (double)pass.rewrites);
        add_number(text, "ns", (double)pass.ns);
        weft_text_add(text, ",\"refused\":[");
        bool first = true;
        for (uint32_t r = 0; r < e->to->root->remarks; r++) {
            const struct weft_remark *remark = &e->to->root->remark[r];
            const bool refused = strcmp(remark->verdict, "refused") == 0 && explain_is_by(remark, pass.name);
            const uint32_t count = refused ? explain_count_like(e, r) : 0;
            if (!count)
                continue;
            weft_text_add(text, first ? "" : ",");
            struct weft_remark common = *remark;
            common.reason = count > 1 ? explain_common_reason(e, remark->reason) : remark->reason;
            add_remark(text, &common);
            add_number(text, "count", count);
            weft_text_add(text, "}");
            first = false;
        }
        weft_text_add(text, "]}\n");
    }
    for (uint32_t i = 0; i < e->to->root->remarks; i++) {
        const struct weft_remark *remark = &e->to->root->remark[i];
        if (remark->where && remark->where[0] == '%')
            continue;
        weft_text_add(text, "{\"kind\":\"remark\",\"remark\":");
        add_remark(text, remark);
        weft_text_add(text, "}}\n");
    }
}

static void print_values(const struct explain *e, const struct weft_graph *graph, const char **label, weft_node n,
                         struct weft_text *text)
{
    const struct weft_node_info *info = &graph->node[n.id];
    weft_text_add(text, "{\"op\":");
    weft_json_string(text, weft_ops[info->op].name);
    weft_text_add(text, ",\"values\":[");
    for (uint32_t i = 0; i < info->results; i++) {
        weft_text_add(text, i ? ",{\"name\":" : "{\"name\":");
        weft_json_string(text, label[info->first_result + i]);
        explain_json_pair(text, "type", explain_type(e, graph, weft_result(graph, n, i)));
        weft_text_add(text, "}");
    }
    weft_text_add(text, "]");
}

void explain_json_place(const struct weft_plan_note *plan, struct weft_text *text)
{
    if (plan && plan->kernel)
        explain_json_pair(text, "kernel", plan->kernel);
    for (uint32_t i = 0; plan && i < plan->count; i++)
        explain_json_pair(text, plan->key[i], plan->value[i]);
}

static void print_relayouts(const struct explain *e, struct weft_text *text)
{
    struct explain_relayout r = {0};
    while (explain_next_relayout(e, &r)) {
        weft_text_add(text, "{\"kind\":\"relayout\"");
        explain_json_pair(text, "value", r.pair->to_label[r.record->from.id]);
        explain_json_pair(text, "as", r.pair->to_label[r.record->to.id]);
        explain_json_pair(text, "body", r.pair->inside);
        explain_json_pair(text, "from", r.from);
        explain_json_pair(text, "to", r.to);
        add_number(text, "bytes", r.bytes);
        add_number(text, "ps", (double)r.record->ps);
        add_number(text, "share", r.share);
        weft_text_format(text, ",\"once\":%s", r.record->once ? "true" : "false");
        explain_json_pair(text, "for", r.record->wanted);
        explain_json_place(r.pair->to->node[weft_def(r.pair->to, r.record->to).id].plan, text);
        weft_text_add(text, "}\n");
    }
}

static void print_final(const struct explain *e, const struct explain_pair *pair, weft_node n, struct weft_text *text)
{
    struct explain_group group;
    const bool is_member = explain_group_of(e, pair, n, &group);
    print_values(e, pair->to, pair->to_label, n, text);
    if (is_member) {
        if (group.kernel[0])
            explain_json_pair(text, "kernel", group.kernel);
        explain_json_pair(text, "group", group.name);
        explain_json_pair(text, "group_value", group.value);
    } else if (explain_kernel(e, pair, n)[0]) {
        explain_json_pair(text, "note", explain_kernel(e, pair, n));
    }
    explain_json_place(pair->to->node[n.id].plan, text);
    const struct explain_cost cost = explain_cost_of(e, pair->to, n);
    if (cost.known)
        add_number(text, "operations", cost.operations);
    if (cost.known && !is_member)
        add_number(text, "bytes", cost.bytes);
    const struct weft_plan *const plan = is_member ? NULL : weft_plan_of(e->plan, pair->to);
    if (plan)
        explain_choices_json(e, plan, weft_unit_of(&plan->units, n), text);
    weft_text_add(text, "}");
}

static void print_origin(const struct explain *e, const struct explain_origin *origin, struct weft_text *text)
{
    const struct explain_pair *pair = &e->pair[origin->pair];
    weft_text_add(text, "{\"kind\":\"node\"");
    explain_json_pair(text, "node", origin->name);
    explain_json_pair(text, "body", pair->inside);
    explain_json_pair(text, "fate", explain_fates[origin->fate]);
    weft_text_add(text, ",\"source\":[");
    for (uint32_t n = origin->source; n; n = pair->next_source[n]) {
        weft_text_add(text, n == origin->source ? "" : ",");
        print_values(e, pair->from, pair->from_label, (weft_node){.id = n}, text);
        weft_text_add(text, "}");
    }
    weft_text_add(text, "],\"now\":[");
    for (uint32_t n = origin->final; n; n = pair->next_final[n]) {
        weft_text_add(text, n == origin->final ? "" : ",");
        print_final(e, pair, (weft_node){.id = n}, text);
    }
    weft_text_add(text, "],\"remarks\":[");
    for (uint32_t r = origin->remark; r; r = e->next_remark[r - 1]) {
        weft_text_add(text, r == origin->remark ? "" : ",");
        add_remark(text, &e->to->root->remark[r - 1]);
        weft_text_add(text, "}");
    }
    weft_text_add(text, "]}\n");
}

void explain_print_json(const struct explain *e, const struct explain_origin *only, struct weft_text *text)
{
    print_summary(e, text);
    print_relayouts(e, text);
    explain_groups_json(e, only, text);
    for (uint32_t i = 0; i < e->origins; i++)
        if (!only || &e->origin[i] == only)
            print_origin(e, &e->origin[i], text);
    if (e->measured)
        explain_measured_json(e, text);
}
