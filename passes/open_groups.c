/* SPDX-License-Identifier: Apache-2.0 */
/* open_groups: groups that no kernel computes as one are opened.
 *
 *   fuse @rows {                                           %e: f32[8,64] = exp %x
 *     %e: f32[8,64]{-} = exp %x                      →     %s: f32[8,64] = flip %e axes=[1]
 *     %s: f32[8,64] = flip %e axes=[1]
 *   }
 *
 * Such a group is a wish that weft cannot grant; and nodes in groups are not rewritten, so that to leave it as it is
 * would cost more than nothing. Each group that is opened is a remark, which says what stands in the way.
 * A group of one node stays, since a kernel of that node is one of the group; so does a group whose note names a kernel
 * of the target's, which is the caller's to run.
 * Not in the pipeline: compiling runs it first, with or without passes, whatever WEFT_STOP_AFTER says; whoever runs
 * passes for kernels of their own keeps the groups. Needs: nothing. */
#include "passes/passes.h"
#include "sched/select.h"
#include "sched/target.h"

#include <string.h>

static const char who[] = "open_groups";
enum { MOST_OPS = 8 }; /* that a remark names */

static bool is_callers(const struct weft_target *target, const struct weft_plan_note *note)
{
    for (const struct weft_target_kernel *k = target->kernel; k && note && note->kernel; k = k->next)
        if (strcmp(note->kernel, k->name) == 0)
            return true;
    return false;
}

static const char *list_ops(struct weft_graph *g, weft_node first, weft_node last)
{
    struct weft_text text = {.context = g->context, .arena = &g->root->scratch};
    unsigned count = 0;
    for (weft_node n = first;; n = g->node[n.id].next) {
        if (count++ < MOST_OPS)
            weft_text_format(&text, "%s%s", count > 1 ? ", " : "", weft_op_of(g, n)->name);
        if (n.id == last.id)
            break;
    }
    if (count > MOST_OPS)
        weft_text_format(&text, " and %u more", count - MOST_OPS);
    return text.data;
}

bool weft_pass_open_groups(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = false;
    const struct weft_units units = weft_units_find(graph, &graph->root->scratch);
    const struct weft_scheduling scheduling = {graph, target, &graph->root->scratch};
    for (uint32_t i = 1; i < units.count; i++) {
        const weft_node n = units.unit[i].first, last = units.unit[i].last;
        const struct weft_group *group = &graph->group[units.unit[i].group];
        const weft_val where = graph->node[last.id].results ? weft_result(graph, last, 0) : WEFT_NO_VALUE;
        const char *const why = weft_select_refuses(&scheduling, &units.unit[i]);
        if (!why || is_callers(target, group->plan) || !weft_permit(graph, who, where))
            continue;
        weft_add_remark(graph, who, where, "opened", "group @%s (%s): no kernel computes these nodes as one: %s",
                        group->name, list_ops(graph, n, last), why);
        weft_open_group(graph, n);
        changed = true;
    }
    return changed;
}
