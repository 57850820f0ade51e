/* SPDX-License-Identifier: Apache-2.0 */
/* explain_group.c: groups, each explained once: what its one kernel moves, computes and is predicted to take.
 *
 *   now %y: f32[128,768] = add; in group @matmul_add, by weft_gemm_f32_6x16__avx2
 *     group @matmul_add of 3 nodes: at=out0+0 parts=2 weights=packed; 151.2 M operations, 2.8 MB read, 393.2 kB written
 *     choices of group, best first:
 *       …
 *
 * Bytes and operations of a group are no sums over its nodes: what passes from node to node is in no memory, and two
 * nodes that read one value read it once. They are counted as `weft opt --print=stats` counts them. */
#include "tools/explain.h"
#include "tools/tools.h"

#include <string.h>

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* Are the sizes that are asked for those that the plan was made for? Times are predicted for the latter alone. */
static bool is_at_hints(const struct explain *e, const struct weft_plan *plan)
{
    return memcmp(plan->hint, e->symbols, weft_symbol_count(plan->graph->dims) * sizeof *e->symbols) == 0;
}

/* Sizes of --size may make values larger than memory can be, of which no kernel is prepared. The plan's own were tried
 * when it was made. */
static bool is_too_large(const struct explain *e, const struct weft_plan *plan)
{
    if (is_at_hints(e, plan))
        return false;
    struct weft_frame *const frame = weft_frame_new(plan, e->symbols, NULL);
    if (!frame)
        weft_out_of_memory(e->context);
    const bool too_large = frame->too_large.id != 0;
    weft_frame_free(plan, frame);
    return too_large;
}

void explain_count_groups(const struct explain *e, struct explain_pair *pair)
{
    struct weft_plan *const plan = (struct weft_plan *)weft_plan_of(e->plan, pair->to);
    if (!plan || pair->to->groups < 2 || is_too_large(e, plan))
        return;
    uint32_t count;
    const struct weft_unit_counts *const counts = weft_plan_count_units(plan, e->symbols, e->arena, &count);
    pair->counts = weft_new(e->arena, const struct weft_unit_counts *, plan->units.count);
    for (uint32_t i = 0; i < count; i++)
        pair->counts[plan->step[counts[i].step].unit] = &counts[i];
}

/* --- one group ---------------------------------------------------------------------------------------------------- */

bool explain_group_of(const struct explain *e, const struct explain_pair *pair, weft_node node,
                      struct explain_group *ret)
{
    const struct weft_plan *const plan = weft_plan_of(e->plan, pair->to);
    const struct weft_unit *const unit = plan ? weft_unit_of(&plan->units, node) : NULL;
    if (!unit || unit->nodes < 2)
        return false;
    const struct weft_group *const group = &pair->to->group[unit->group];
    const bool has_kernel = group->plan && group->plan->kernel;
    *ret = (struct explain_group){.unit = unit, .plan = plan, .name = group->name, .note = group->plan,
                                  .kernel = has_kernel ? group->plan->kernel : "",
                                  .value = pair->to_label[weft_unit_value(&plan->units, unit).id],
                                  .counts = pair->counts ? pair->counts[unit->position] : NULL};
    return true;
}

bool explain_is_last_shown(const struct explain_pair *pair, const struct explain_group *group, weft_node node)
{
    const struct weft_units *const units = &group->plan->units;
    for (uint32_t n = pair->next_final[node.id]; n; n = pair->next_final[n])
        if (units->of[n] == group->unit->position)
            return false;
    return true;
}

static void add_counts_text(const struct explain_group *group, struct weft_text *text)
{
    if (!group->counts)
        return;
    weft_text_add(text, "; ");
    explain_add_amount(text, (double)group->counts->flops, " operations, ", " operations, ");
    explain_add_amount(text, (double)group->counts->read, " B read, ", "B read, ");
    explain_add_amount(text, (double)group->counts->written, " B written", "B written");
}

void explain_group_text(const struct explain *e, const struct explain_group *group, bool with_choices,
                        struct weft_text *text)
{
    weft_text_format(text, "    group @%s of %u nodes:", group->name, group->unit->nodes);
    for (uint32_t i = 0; group->note && i < group->note->count; i++)
        weft_text_format(text, " %s=%s", group->note->key[i], group->note->value[i]);
    add_counts_text(group, text);
    const int64_t predicted_ps = explain_predicted_ps(group->plan, group->unit, e->arena);
    if (predicted_ps > 0 && is_at_hints(e, group->plan))
        weft_text_format(text, "; predicted %.1f us", (double)predicted_ps * 1e-6);
    weft_text_add(text, "\n");
    if (with_choices)
        explain_unit_choices(group->plan, group->unit, e->arena, text);
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void add_members(const struct explain_pair *pair, const struct explain_group *group, struct weft_text *text)
{
    weft_node n = group->unit->first;
    weft_text_add(text, ",\"members\":[");
    for (uint32_t i = 0; i < group->unit->nodes; i++, n = pair->to->node[n.id].next) {
        weft_text_add(text, i ? ",{\"op\":" : "{\"op\":");
        weft_json_string(text, weft_op_of(pair->to, n)->name);
        if (pair->to->node[n.id].results)
            explain_json_pair(text, "value", pair->to_label[weft_result(pair->to, n, 0).id]);
        weft_text_add(text, "}");
    }
    weft_text_add(text, "]");
}

static void print_group(const struct explain *e, const struct explain_pair *pair, const struct explain_group *group,
                        struct weft_text *text)
{
    weft_text_add(text, "{\"kind\":\"group\"");
    explain_json_pair(text, "group", group->name);
    explain_json_pair(text, "value", group->value);
    explain_json_pair(text, "body", pair->inside);
    explain_json_place(group->note, text);
    add_members(pair, group, text);
    if (group->counts)
        weft_text_format(text, ",\"operations\":%lld,\"bytes_read\":%lld,\"bytes_written\":%lld",
                         (long long)group->counts->flops, (long long)group->counts->read,
                         (long long)group->counts->written);
    if (is_at_hints(e, group->plan))
        weft_text_format(text, ",\"predicted_ps\":%lld",
                         (long long)explain_predicted_ps(group->plan, group->unit, e->arena));
    explain_choices_json(e, group->plan, group->unit, text);
    weft_text_add(text, "}\n");
}

static void print_groups_of(const struct explain *e, const struct explain_pair *pair, struct weft_text *text)
{
    const struct weft_plan *const plan = weft_plan_of(e->plan, pair->to);
    for (uint32_t i = 1; plan && i < plan->units.count; i++) {
        struct explain_group group;
        if (explain_group_of(e, pair, plan->units.unit[i].first, &group))
            print_group(e, pair, &group, text);
    }
}

void explain_groups_json(const struct explain *e, const struct explain_origin *only, struct weft_text *text)
{
    for (uint32_t i = 0; !only && i < e->pairs; i++)
        print_groups_of(e, &e->pair[i], text);
    const struct explain_pair *const pair = only ? &e->pair[only->pair] : NULL;
    for (uint32_t n = only ? only->final : 0; n; n = pair->next_final[n]) {
        struct explain_group group;
        if (explain_group_of(e, pair, (weft_node){.id = n}, &group) &&
            explain_is_last_shown(pair, &group, (weft_node){.id = n}))
            print_group(e, pair, &group, text);
    }
}
