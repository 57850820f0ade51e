/* SPDX-License-Identifier: Apache-2.0 */
/* alternative_price.c: what a small graph is predicted to take: the sum of its units, each by the first choice of its
 * list, after nodes that one kernel computes faster have been grouped on a copy. What is done once, when a plan is
 * made, takes nothing, nor do views. */
#include "passes/alternatives.h"

#include "passes/passes.h"
#include "sched/format.h"
#include "sched/select.h"

static bool is_done_once(const struct weft_graph *g, const struct weft_unit *unit)
{
    const weft_node n = unit->first;
    const bool copies = weft_opcode_of(g, n) == WEFT_OP_relayout && weft_is_const(g, weft_operand(g, n, 0));
    return unit->nodes == 1 && (g->node[n.id].constant || weft_is_view(g, n) || copies);
}

static int64_t price_unit(const struct weft_formats *f, const int64_t *symbols, const struct weft_unit *unit)
{
    const struct weft_graph *const g = f->graph;
    if (is_done_once(g, unit))
        return 0;
    const struct weft_target_kernel *const own = weft_target_kernel_noted(f->target, g, unit->first);
    if (own)
        return weft_target_kernel_ps(own, g, unit->first);
    const struct weft_choices *choices = g->node[unit->first.id].choices;
    if (!choices)
        choices = weft_format_first_choice(f, symbols, unit);
    return choices && choices->count ? choices->choice[0].ps : -1;
}

int64_t weft_alternative_price(const struct weft_graph *graph, const struct weft_target *target,
                               struct weft_graph **ret_copy, const char **ret_why)
{
    weft_graph_copy(graph, ret_copy);
    struct weft_graph *const g = *ret_copy;
    weft_pipeline_try(g, target, WEFT_PHASE_GROUP, WEFT_PHASE_GROUP);
    const struct weft_formats formats = {.graph = g, .target = target, .arena = g->arena};
    const int64_t *const symbols = weft_hint_symbols(g, g->arena);
    const struct weft_units units = weft_units_find(g, g->arena);
    int64_t ps = 0;
    for (uint32_t i = 1; i < units.count; i++) {
        const int64_t more = price_unit(&formats, symbols, &units.unit[i]);
        if (more < 0) {
            *ret_why = weft_op_of(g, units.unit[i].first)->name;
            return -1;
        }
        ps += more < INT64_MAX / 2 - ps ? more : 0;
    }
    return ps;
}
