/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_head.c: which nodes are heads of groups, and what is said of groups with one. The contract: epilogue.h. */
#include "sched/epilogue.h"

bool weft_epilogue_takes(const struct weft_graph *g, weft_node n)
{
    return weft_select_kind(weft_opcode_of(g, n))->traits & WEFT_STEP_FINISHES && weft_step_is_f32(g, n);
}

bool weft_epilogue_has_bands(const struct weft_graph *g, weft_node n)
{
    return n.id && weft_select_kind(weft_opcode_of(g, n))->traits & WEFT_STEP_BANDS;
}

bool weft_epilogue_is_in(const struct weft_graph *g, const struct weft_unit *unit)
{
    bool any = false;
    weft_node n = unit->first;
    for (uint32_t i = 0; i < unit->nodes && unit->nodes > 1; i++, n = g->node[n.id].next)
        any |= weft_epilogue_takes(g, n);
    return any;
}

const char *weft_group_fit_say(const struct weft_members *m, const struct weft_group_fit *group, const char *format)
{
    return weft_arena_format(m->arena, format,
                             weft_epilogue_has_bands(m->graph, group->head) ? "window" : "contraction");
}

const char *weft_group_fit_name(const struct weft_graph *g, const struct weft_group_fit *group,
                                struct weft_arena *arena)
{
    weft_node *const node = weft_new(arena, weft_node, group->befores + 1 + group->fit.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->befores; i++)
        node[count++] = group->before[i];
    node[count++] = group->head;
    for (uint32_t p = 0; p < group->fit.count; p++)
        node[count++] = group->fit.node[p];
    return weft_lower_name(g, node, count, arena);
}

void weft_group_fit_show_head(const struct weft_graph *g, struct weft_group_fit *ret)
{
    ret->fit = (struct weft_fit){.node = ret->rest};
    ret->out = weft_result(g, ret->head, 0);
    ret->outs = 1;
    ret->raw = true;
    for (int d = 0; d < WEFT_MAX_RANK; d++)
        ret->axis[d] = (int8_t)d;
}
