/* SPDX-License-Identifier: Apache-2.0 */
/* group_price.c: the kernel of a group, and whether it takes less time than its nodes one by one. */
#include "sched/group.h"

#include "sched/select.h"

/* Of a concat, how much is copied: pieces that are computed in their places take nothing. */
static double copied_of(const struct weft_grouping *g, weft_node n)
{
    const struct weft_graph *const graph = g->graph;
    const weft_val result = weft_result(graph, n, 0);
    double all = 0, copied = 0;
    for (uint32_t k = 0; k < graph->node[n.id].operands; k++) {
        const double bytes = (double)weft_format_bytes(&g->formats, weft_operand(graph, n, k));
        all += bytes;
        copied += weft_format_in_place(graph, (struct weft_pin){n, .index = k}, graph->value[result.id].layout) ? 0
                                                                                                               : bytes;
    }
    return all > 0 ? copied / all : 0;
}

/* What the nodes take one by one. */
static int64_t price_alone(const struct weft_grouping *g, const struct weft_cluster *cluster)
{
    struct weft_graph *graph = g->graph;
    int64_t ps = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_node n = cluster->node[i];
        const weft_val result = weft_result(graph, n, 0);
        weft_val in[WEFT_MEMBER_INS];
        if (weft_is_view(graph, n))
            continue;
        const struct weft_unit unit = {.first = n, .last = n, .nodes = 1, .ins = graph->node[n.id].operands, .outs = 1,
                                       .in = in, .out = &result};
        for (uint32_t k = 0; k < unit.ins; k++)
            in[k] = weft_operand(graph, n, k);
        const struct weft_choices *choices = graph->node[n.id].choices; /* as layouts were chosen, if they were */
        if (!choices)
            choices = weft_format_first_choice(&g->formats, g->symbols, &unit);
        const double part = weft_opcode_of(graph, n) == WEFT_OP_concat ? copied_of(g, n) : 1;
        ps += choices && choices->count ? (int64_t)(part * (double)choices->choice[0].ps) : 0;
    }
    return ps;
}

/* A concat all of whose parts are computed in their places takes nothing: a group that looks them up saves nothing. */
static const char *refuse_in_place(const struct weft_grouping *g, const struct weft_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_node n = cluster->node[i];
        if (weft_opcode_of(g->graph, n) == WEFT_OP_concat && copied_of(g, n) == 0)
            return weft_arena_format(g->formats.arena, "would look up a concat all of whose %lld bytes are computed in "
                                     "their places", (long long)weft_format_bytes(&g->formats,
                                                                                  weft_result(g->graph, n, 0)));
    }
    return NULL;
}

/* What others read of it, in memory that its step keeps. */
static weft_val *list_outs(const struct weft_grouping *g, const struct weft_group_fit *group, uint32_t *ret_count)
{
    const struct weft_fit *const fit = &group->fit;
    weft_val *const out = weft_new(g->formats.arena, weft_val, fit->count + 2);
    *ret_count = 0;
    if (group->head.id && group->raw)
        out[(*ret_count)++] = weft_result(g->graph, group->head, 0);
    for (uint32_t p = 0; p < fit->count; p++)
        if (fit->member[p].out && !weft_is_view(g->graph, fit->node[p]))
            out[(*ret_count)++] = weft_result(g->graph, fit->node[p], 0);
    if (group->fold.id)
        out[(*ret_count)++] = weft_result(g->graph, group->fold, 0);
    return out;
}

static const char *choose(struct weft_grouping *g, const struct weft_cluster *cluster,
                          const struct weft_choices **ret_choices, int64_t *ret_ps)
{
    struct weft_group_fit group;
    const struct weft_fit *const fit = &group.fit;
    struct weft_step step;
    weft_val where;
    uint32_t outs;
    const char *const misfit = weft_group_fit_find(g->members, cluster->node, cluster->count, &group, &where);
    weft_assert(!misfit); /* it was joined for that */
    const weft_val *const out = list_outs(g, &group, &outs);
    const struct weft_scheduling scheduling = {g->graph, g->target, g->formats.arena};
    if (!weft_select_fitting(&scheduling, g->members, &group, outs, out, &step))
        return step.why;
    *ret_choices = weft_format_choice_of(&g->formats, g->symbols, &step);
    if (!*ret_choices)
        return "no kernel takes these layouts";
    *ret_ps = (*ret_choices)->choice[0].ps + (int64_t)(fit->simple_ns * 1e3 / g->target->threads);
    return NULL;
}

void weft_group_price(struct weft_grouping *g, struct weft_cluster *cluster)
{
    if (cluster->priced)
        return;
    cluster->priced = true;
    cluster->alone = price_alone(g, cluster);
    cluster->ps = cluster->alone;
    if (cluster->count < 2)
        return;
    int64_t ps;
    cluster->why = refuse_in_place(g, cluster);
    cluster->why = cluster->why ? cluster->why : choose(g, cluster, &cluster->choices, &ps);
    if (cluster->why)
        return;
    if (ps >= cluster->alone)
        cluster->why = weft_arena_format(g->formats.arena, "as one they would take %.3f us, one by one %.3f us",
                                         (double)ps * 1e-6, (double)cluster->alone * 1e-6);
    else
        cluster->ps = ps;
}
