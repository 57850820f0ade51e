/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: the engine of `fuse`: which nodes may be in a group, and what becomes of groups that were joined. */
#include "sched/group.h"

#include "sched/format.h"
#include "sched/select.h"

#include <string.h>

/* --- who takes part ----------------------------------------------------------------------------------------------- */

/* A node whose kernel somebody named, or that is in a group already, stays as it is. Views alone are no kernel. */
static bool takes_part(const struct weft_grouping *g, weft_node n)
{
    const struct weft_node_info *info = &g->graph->node[n.id];
    const uint8_t kind = weft_member_of(g->members, n)->kind;
    return !info->group && !(info->plan && info->plan->kernel) &&
           (kind == WEFT_MEMBER_MAP || kind == WEFT_MEMBER_FOLD);
}

static void open_cluster(struct weft_grouping *g, weft_node n, bool fixed)
{
    weft_node *const node = weft_new(g->arena, weft_node, 1);
    *node = n;
    g->cluster[g->clusters] = (struct weft_cluster){node, 1, g->position[n.id], g->position[n.id], fixed, NULL};
    g->of[n.id] = g->clusters++;
}

/* The next node of a group that is there already. */
static void extend_cluster(struct weft_grouping *g, weft_node n)
{
    struct weft_cluster *const cluster = &g->cluster[g->clusters - 1];
    weft_node *const node = weft_new(g->arena, weft_node, cluster->count + 1);
    memcpy(node, cluster->node, cluster->count * sizeof *node);
    node[cluster->count++] = n;
    cluster->node = node;
    cluster->last = g->position[n.id];
    g->of[n.id] = g->clusters - 1;
}

static void open_clusters(struct weft_grouping *g)
{
    uint32_t position = 0, group = 0;
    bool sized = true; /* behind what finds sizes in data, the order of steps has to stay */
    g->clusters = 1;
    weft_foreach_node(g->graph, n) {
        const uint32_t before = group;
        group = g->graph->node[n.id].group;
        g->position[n.id] = position++;
        sized = sized && !(weft_op_of(g->graph, n)->traits & WEFT_DATA);
        if (group && group == before)
            extend_cluster(g, n);
        else if (group || (sized && takes_part(g, n)))
            open_cluster(g, n, group != 0);
    }
}

/* --- what becomes of them ----------------------------------------------------------------------------------------- */

struct forming {
    struct weft_grouping *g;
    struct weft_formats formats;
    const int64_t *symbols;
    uint32_t in_registers;  /* the layout {-} */
};

/* What the nodes take one by one. */
static int64_t price_alone(const struct forming *f, const struct weft_cluster *cluster)
{
    struct weft_graph *graph = f->g->graph;
    int64_t ps = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_node n = cluster->node[i];
        const weft_val result = weft_result(graph, n, 0);
        weft_val in[WEFT_FORM_INS];
        if (weft_is_view(graph, n))
            continue;
        const struct weft_unit unit = {.first = n, .last = n, .nodes = 1, .ins = graph->node[n.id].operands, .outs = 1,
                                       .in = in, .out = &result};
        for (uint32_t k = 0; k < unit.ins; k++)
            in[k] = weft_operand(graph, n, k);
        const struct weft_choices *choices = graph->node[n.id].choices; /* as layouts were chosen, if they were */
        if (!choices)
            choices = weft_format_first_choice(&f->formats, f->symbols, &unit);
        ps += choices && choices->count ? choices->choice[0].ps : 0;
    }
    return ps;
}

/* What others read of it, in memory that its step keeps. */
static weft_val *list_outs(const struct weft_grouping *g, const struct weft_fit *fit, uint32_t *ret_count)
{
    weft_val *const out = weft_new(g->graph->arena, weft_val, fit->count);
    *ret_count = 0;
    for (uint32_t p = 0; p < fit->count; p++)
        if (fit->member[p].out && !weft_is_view(g->graph, fit->node[p]))
            out[(*ret_count)++] = weft_result(g->graph, fit->node[p], 0);
    return out;
}

static const char *name_of(const struct forming *f, const struct weft_cluster *cluster)
{
    const struct weft_graph *graph = f->g->graph;
    struct weft_text text = {.context = graph->context, .arena = graph->arena};
    uint32_t words = 0;
    for (uint32_t i = 0; i < cluster->count && words < 4; i++)
        if (!weft_is_view(graph, cluster->node[i]))
            weft_text_format(&text, "%s%s", words++ ? "_" : "", weft_op_of(graph, cluster->node[i])->name);
    return text.data;
}

/* Its kernel, and whether it pays; else its nodes stay alone. */
static void choose(const struct forming *f, struct weft_cluster *cluster)
{
    struct weft_grouping *const g = f->g;
    const weft_val last = weft_result(g->graph, cluster->node[cluster->count - 1], 0);
    struct weft_fit fit;
    struct weft_step step;
    weft_val where;
    const char *why = weft_fit_find(g->members, cluster->node, cluster->count, &fit, &where);
    weft_assert(!why); /* it was joined for that */
    uint32_t outs;
    const weft_val *const out = list_outs(g, &fit, &outs);
    const struct weft_scheduling scheduling = {g->graph, g->target, g->graph->arena};
    const int64_t alone = price_alone(f, cluster);
    why = weft_select_fitting(&scheduling, g->members, &fit, outs, out, &step) ? NULL : step.why;
    cluster->choices = why ? NULL : weft_format_choice_of(&f->formats, f->symbols, &step);
    if (!why && !cluster->choices)
        why = "no kernel takes them as they lie";
    if (!why && cluster->choices->choice[0].ps >= alone)
        why = weft_arena_format(g->graph->arena, "as one they would take %.3f us, one by one %.3f us",
                                (double)cluster->choices->choice[0].ps * 1e-6, (double)alone * 1e-6);
    if (!why && weft_permit(g->graph, g->who, last)) {
        weft_add_remark(g->graph, g->who, last, "formed", "group of %u nodes: as one %.3f us, one by one %.3f us",
                        cluster->count, (double)cluster->choices->choice[0].ps * 1e-6, (double)alone * 1e-6);
        return;
    }
    if (why)
        weft_add_remark(g->graph, g->who, last, "refused", "group of %u nodes: %s", cluster->count, why);
    for (uint32_t i = 0; i < cluster->count; i++)
        g->of[cluster->node[i].id] = 0;
    cluster->count = 0;
}

static void form(const struct forming *f, const struct weft_cluster *cluster)
{
    struct weft_graph *graph = f->g->graph;
    const bool formed =
        weft_form_group(graph, cluster->node[0], cluster->node[cluster->count - 1], name_of(f, cluster));
    weft_assert(formed); /* they stand next to each other */
    const struct weft_step *const step = &cluster->choices->choice[0].step;
    graph->node[cluster->node[0].id].choices = cluster->choices;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_val v = weft_result(graph, cluster->node[i], 0);
        bool out = false;
        for (uint32_t k = 0; k < step->outs; k++)
            out |= weft_is(step->out[k], v);
        if (!out)
            graph->value[v.id].layout = f->in_registers;
    }
}

bool weft_group_nodes(struct weft_graph *graph, const struct weft_target *target, const char *who)
{
    struct weft_arena *const arena = &graph->root->scratch;
    struct weft_grouping g = {.graph = graph, .target = target, .arena = arena, .who = who,
                              .members = weft_members_open(graph, target->cpu, arena),
                              .position = weft_new(arena, uint32_t, graph->nodes),
                              .of = weft_new(arena, uint32_t, 2 * graph->nodes), /* room for copies of views */
                              .cluster = weft_new(arena, struct weft_cluster, graph->nodes + 1),
                              .visit = weft_new(arena, uint32_t, graph->nodes),
                              .text = weft_value_texts(graph, arena)};
    struct forming f = {.g = &g, .formats = {.graph = graph, .target = target, .arena = graph->arena},
                        .symbols = weft_hint_symbols(graph, arena)};
    bool any = false;
    open_clusters(&g);
    weft_group_join(&g);
    for (uint32_t c = 1; c < g.clusters; c++)
        if (g.cluster[c].count > 1 && !g.cluster[c].fixed) {
            choose(&f, &g.cluster[c]);
            any |= g.cluster[c].count > 1;
        }
    if (!any)
        return false;
    const struct weft_layout hidden = {.kind = WEFT_REGISTER};
    const struct weft_type scalar = {.dtype = WEFT_F32};
    f.in_registers = weft_intern_layout(graph, &hidden, &scalar);
    weft_group_bring_together(&g);
    for (uint32_t c = 1; c < g.clusters; c++)
        if (g.cluster[c].count > 1 && !g.cluster[c].fixed)
            form(&f, &g.cluster[c]);
    return true;
}
