/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c: asking custom functions and kernels of a target how they go through memory. */
#include "sched/caller.h"

#include "ir/custom.h"
#include "ir/public.h"

#include <string.h>

static const struct weft_target_kernel *kernel_of(const struct weft_target *target, const struct weft_graph *g,
                                                  weft_node n)
{
    const struct weft_plan_note *plan = g->node[n.id].plan;
    for (const struct weft_target_kernel *k = target->kernel; k; k = k->next)
        if (plan && plan->kernel ? strcmp(plan->kernel, k->name) == 0 : weft_target_kernel_fits(k, g, n))
            return k;
    return NULL;
}

static void ask_kernel(const struct weft_target_kernel *k, struct weft_graph *g, weft_node n, uint32_t i, int rank,
                       struct weft_caller_walk *ret)
{
    struct weft_demand demand = {.size = sizeof demand, .along = -1};
    struct weft_layout layout;
    const char *message = NULL;
    if (k->kernel.demand)
        k->kernel.demand(k->kernel.user, g, weft_node_out(g, n), i, &demand);
    demand = weft_demand_clean(demand, rank);
    *ret = (struct weft_caller_walk){.name = k->name, .along = demand.along, .align = (uint32_t)demand.align,
                                     .strides = !weft_target_kernel_layout(k, g, n, i, &layout, &message) && !message};
}

bool weft_caller_walk_of(const struct weft_target *target, struct weft_graph *g, weft_node n, uint32_t i,
                         struct weft_caller_walk *ret)
{
    const uint32_t operands = g->node[n.id].operands;
    const weft_val v = i < operands ? weft_operand(g, n, i) : weft_result(g, n, i - operands);
    const int rank = weft_type_of(g, v)->rank;
    if (weft_opcode_of(g, n) == WEFT_OP_custom) {
        const struct weft_custom_entry *entry = weft_custom_of(g, n);
        if (!entry)
            return false;
        const struct weft_demand demand = weft_custom_demand(entry, i, operands, rank);
        int order[WEFT_MAX_RANK];
        *ret = (struct weft_caller_walk){.name = entry->name, .along = demand.along, .align = (uint32_t)demand.align,
                                         .strides = weft_custom_takes_strides(entry, i, operands, rank),
                                         .packed = weft_custom_order(entry, i, operands, rank, order)};
        if (ret->packed)
            ret->layout = weft_layout_order(rank, order);
        return true;
    }
    const struct weft_target_kernel *k = kernel_of(target, g, n);
    if (k)
        ask_kernel(k, g, n, i, rank, ret);
    return k != NULL;
}
