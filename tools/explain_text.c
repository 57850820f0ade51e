/* SPDX-License-Identifier: Apache-2.0 */
/* explain_text.c: an explanation for people. First what the passes did and refused, then each node of the model:
 *
 *   Conv_3  conv, bcast, add  rewritten
 *     fold_batchnorm.conv done at %y: the factors go into the weights
 *     now %y: f32[1,8,6,6]{0 2 3 1} = conv by weft_igemm_… in 4 parts at arena+0; 41.5 k operations, 12.3 kB
 */
#include "tools/explain.h"
#include "tools/tools.h"

#include <string.h>

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* A line for each reason. False: the pass refused nothing. */
static bool print_refusals(const struct explain *e, const char *pass, struct weft_text *text)
{
    bool any = false;
    for (uint32_t i = 0; i < e->to->root->remarks; i++) {
        const struct weft_remark *remark = &e->to->root->remark[i];
        if (strcmp(remark->verdict, "refused") != 0 || !explain_is_by(remark, pass))
            continue;
        const uint32_t count = explain_count_like(e, i);
        if (count)
            weft_text_format(text, "    refused %u time%s by %s: %s\n", count, weft_tool_plural(count), remark->who,
                             count > 1 ? explain_common_reason(e, remark->reason) : remark->reason);
        any |= count > 0;
    }
    return any;
}

/* A line for each pass that did or refused something, and one for all others. */
static void print_passes(const struct explain *e, struct weft_text *text)
{
    struct weft_text idle = {.context = e->context, .arena = e->arena};
    struct explain_pass pass;
    uint32_t idles = 0;
    int64_t idle_ns = 0;
    for (uint32_t i = 0; explain_pass_at(e, i, &pass); i++) {
        struct weft_text refusals = {.context = e->context, .arena = e->arena};
        if (!print_refusals(e, pass.name, &refusals) && pass.rewrites == 0) {
            weft_text_format(&idle, "%s%s", idles++ ? ", " : "", pass.name);
            idle_ns += pass.ns;
            continue;
        }
        weft_text_format(text, "  %-23s %6lld rewrite%s in %u run%s, %.3f ms\n", pass.name, (long long)pass.rewrites,
                         weft_tool_plural(pass.rewrites), pass.runs, weft_tool_plural(pass.runs),
                         (double)pass.ns / 1e6);
        weft_text_addn(text, refusals.data, refusals.length);
    }
    if (idles)
        weft_text_format(text, "  %u pass%s changed nothing, %.3f ms: %s\n", idles, idles == 1 ? "" : "es",
                         (double)idle_ns / 1e6, idle.data);
}

static void print_summary(const struct explain *e, struct weft_text *text)
{
    weft_text_format(text, "%s: %u node%s read, %u planned as %u step%s, %d of them in the reference evaluator\n",
                     e->path, e->from->live_nodes, weft_tool_plural(e->from->live_nodes), e->to->live_nodes,
                     e->plan->steps, weft_tool_plural(e->plan->steps), e->plan->fallbacks);
    if (e->plan->has_records)
        weft_text_format(text,
                         "forms: %d of %d units run in the kernel that was expected when layouts were chosen\n",
                         e->plan->kernel_units - e->plan->unexpected_units, e->plan->kernel_units);
    weft_text_format(text, "passes: %lld rewrite%s\n", (long long)e->to->root->rewrites,
                     weft_tool_plural(e->to->root->rewrites));
    print_passes(e, text);
    for (uint32_t i = 0; i < e->to->root->remarks; i++)
        if (!e->to->root->remark[i].where || e->to->root->remark[i].where[0] != '%')
            weft_text_format(text, "%s %s: %s\n", e->to->root->remark[i].who, e->to->root->remark[i].verdict,
                             e->to->root->remark[i].reason);
}

static void print_place(const struct weft_plan_note *plan, struct weft_text *text)
{
    if (plan && plan->kernel)
        weft_text_format(text, " by %s", plan->kernel);
    for (uint32_t i = 0; plan && i < plan->count; i++)
        weft_text_format(text, " %s=%s", plan->key[i], plan->value[i]);
}

#define LEAST_US 0.0005 /* less would be printed as 0.000 */

/* "relayouts: 9 in a run, 4 of them inserted, 4.189 us; …", and what the others are. */
static void print_relayout_counts(const struct explain *e, struct weft_text *text)
{
    const struct explain_relayouts counts = explain_count_relayouts(e);
    const double estimate = (double)explain_estimate_ps(e) * 1e-6;
    struct explain_relayout r = {0};
    double sum = 0;
    while (explain_next_relayout(e, &r))
        sum += r.record->once ? 0 : (double)r.record->ps * 1e-6;
    weft_text_format(text, "relayouts: %d in a run", e->plan->relayouts);
    if (e->plan->relayouts)
        weft_text_format(text, ", %u of them inserted", counts.inserted);
    if (counts.inserted && estimate >= LEAST_US)
        weft_text_format(text, ", %.3f us", sum);
    if (counts.loaded)
        weft_text_format(text, "; %u inserted and done once", counts.loaded);
    if (estimate >= LEAST_US)
        weft_text_format(text, "; all layouts together are estimated to cost %.3f us\n", estimate);
    else
        weft_text_add(text, "; all layouts together are estimated to cost nothing\n");
    uint32_t others = 0;
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        if (counts.by_op[op])
            weft_text_format(text, "%s%u %s", others++ ? ", " : "  not inserted: ", counts.by_op[op],
                             weft_ops[op].name);
    if (counts.results)
        weft_text_format(text, "%s%u of results", others++ ? ", " : "  not inserted: ", counts.results);
    weft_text_add(text, others ? "\n" : "");
}

static void print_relayouts(const struct explain *e, struct weft_text *text)
{
    struct explain_relayout r = {0};
    print_relayout_counts(e, text);
    while (explain_next_relayout(e, &r)) {
        const weft_val from = r.record->from, to = r.record->to;
        weft_text_format(text, "  %%%s as %%%s%s%s: %s to %s, ", r.pair->to_label[from.id], r.pair->to_label[to.id],
                         r.pair->inside[0] ? " in body @" : "", r.pair->inside, r.from, r.to);
        explain_add_amount(text, r.bytes, " B, ", "B, ");
        weft_text_format(text, "%.3f us ", (double)r.record->ps * 1e-6);
        if (r.record->once)
            weft_text_add(text, "once,");
        else
            weft_text_format(text, "(%.1f %%),", 100 * r.share);
        print_place(r.pair->to->node[weft_def(r.pair->to, to).id].plan, text);
        weft_text_format(text, "; for %s\n", r.record->wanted);
    }
}

/* --- one node ----------------------------------------------------------------------------------------------------- */

/* A node of a group, and the group itself behind the node that ends it; if only one origin is shown, behind the last
 * of its nodes there, so that nothing is missed. */
static void print_member(const struct explain *e, const struct explain_pair *pair, weft_node n,
                         const struct explain_group *group, bool is_alone, struct weft_text *text)
{
    weft_text_format(text, "; in group @%s%s%s\n", group->name, group->kernel[0] ? ", by " : "", group->kernel);
    if (is_alone ? explain_is_last_shown(pair, group, n) : n.id == group->unit->last.id)
        explain_group_text(e, group, /* with_choices= */ is_alone, text);
}

static void print_final(const struct explain *e, const struct explain_pair *pair, weft_node n, bool is_alone,
                        struct weft_text *text)
{
    const struct weft_node_info *info = &pair->to->node[n.id];
    weft_text_add(text, "  now ");
    for (uint32_t i = 0; i < info->results; i++)
        weft_text_format(text, "%s%%%s: %s", i ? ", " : "", pair->to_label[info->first_result + i],
                         explain_type(e, pair->to, weft_result(pair->to, n, i)));
    weft_text_format(text, " = %s", weft_ops[info->op].name);
    struct explain_group group;
    if (explain_group_of(e, pair, n, &group)) {
        print_member(e, pair, n, &group, is_alone, text);
        return;
    }
    if (!info->plan) {
        weft_text_format(text, "; %s\n", explain_kernel(e, pair, n));
        return;
    }
    print_place(info->plan, text);
    if (explain_kernel(e, pair, n)[0])
        weft_text_format(text, " (%s)", explain_kernel(e, pair, n));
    const struct explain_cost cost = explain_cost_of(e, pair->to, n);
    if (!cost.known) {
        weft_text_add(text, "; cost unknown\n");
        return;
    }
    weft_text_add(text, "; ");
    explain_add_amount(text, cost.operations, " operations, ", " operations, ");
    explain_add_amount(text, cost.bytes, " B\n", "B\n");
}

/* Its ways of being computed, if it is no part of a group. */
static void print_choices(const struct explain *e, const struct explain_pair *pair, weft_node n, struct weft_text *text)
{
    const struct weft_plan *const plan = weft_plan_of(e->plan, pair->to);
    const struct weft_unit *const unit = plan ? weft_unit_of(&plan->units, n) : NULL;
    if (unit && unit->nodes < 2)
        explain_unit_choices(plan, unit, e->arena, text);
}

/* is_alone: it is all that is shown, with what there was to choose from. */
static void print_origin(const struct explain *e, const struct explain_origin *origin, bool is_alone,
                         struct weft_text *text)
{
    const struct explain_pair *pair = &e->pair[origin->pair];
    weft_text_format(text, "%s ", origin->name);
    for (uint32_t n = origin->source; n; n = pair->next_source[n])
        weft_text_format(text, "%s%s", n == origin->source ? " " : ", ", weft_ops[pair->from->node[n].op].name);
    weft_text_format(text, "  %s%s%s\n", explain_fates[origin->fate], pair->inside[0] ? "  in body @" : "",
                     pair->inside);
    for (uint32_t r = origin->remark; r; r = e->next_remark[r - 1]) {
        const struct weft_remark *remark = &e->to->root->remark[r - 1];
        const bool is_choice = strcmp(remark->who, "plan") == 0 && strcmp(remark->verdict, "chose") == 0;
        const bool is_drop = origin->fate == EXPLAIN_JOINED && strcmp(remark->verdict, "dropped") == 0;
        if (!is_choice && !is_drop)
            weft_text_format(text, "  %s %s at %s: %s\n", remark->who, remark->verdict, remark->where, remark->reason);
    }
    for (uint32_t n = origin->final; n; n = pair->next_final[n]) {
        print_final(e, pair, (weft_node){.id = n}, is_alone, text);
        if (is_alone)
            print_choices(e, pair, (weft_node){.id = n}, text);
    }
}

void explain_print_text(const struct explain *e, const struct explain_origin *only, struct weft_text *text)
{
    uint32_t unused = 0;
    print_summary(e, text);
    print_relayouts(e, text);
    for (uint32_t i = 0; i < e->origins; i++) {
        const struct explain_origin *const origin = &e->origin[i];
        const bool is_unused = explain_is_unused_constant(e, origin);
        unused += !only && is_unused;
        if (only ? origin == only : origin->fate != EXPLAIN_CONSTANT && !is_unused)
            print_origin(e, origin, /* is_alone= */ only, text);
    }
    if (unused)
        weft_text_format(text, "not listed: %u constant%s of the file that nothing uses any more\n", unused,
                         weft_tool_plural(unused));
    if (e->measured)
        explain_measured_text(e, text);
}
