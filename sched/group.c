/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: the engine of `fuse`: which nodes may be in a group, and what becomes of groups that were joined. */
#include "sched/group.h"

#include "sched/format.h"
#include "sched/select.h"

#include <string.h>

/* --- who takes part ----------------------------------------------------------------------------------------------- */

/* A node whose kernel somebody named, or that is in a group already, stays as it is. Ops of views alone are no kernel. */
static bool takes_part(const struct weft_grouping *g, weft_node n)
{
    const struct weft_node_info *info = &g->graph->node[n.id];
    const uint8_t kind = weft_member_of(g->members, n)->kind;
    return !info->group && !(info->plan && info->plan->kernel) &&
           (kind == WEFT_MEMBER_MAP || kind == WEFT_MEMBER_FOLD);
}

static void open_clusters(struct weft_grouping *g)
{
    uint32_t position = 0;
    bool sized = true; /* behind what finds sizes in data, the order of steps has to stay */
    g->clusters = 1;
    weft_foreach_node(g->graph, n) {
        g->position[n.id] = position++;
        sized = sized && !(weft_op_of(g->graph, n)->traits & WEFT_DATA);
        if (!sized || !takes_part(g, n))
            continue;
        weft_node *const node = weft_new(g->arena, weft_node, 1);
        *node = n;
        g->cluster[g->clusters] = (struct weft_cluster){node, 1, g->position[n.id], g->position[n.id]};
        g->of[n.id] = g->clusters++;
    }
}

/* --- what becomes of them ----------------------------------------------------------------------------------------- */

struct forming {
    struct weft_grouping *g;
    struct weft_formats formats;
    const int64_t *symbols;
    uint32_t in_registers;  /* the layout {-} */
};

/* What the nodes take one by one, and what they were recorded with. */
static int64_t price_alone(const struct forming *f, const struct weft_cluster *cluster, const struct weft_choices **kept)
{
    struct weft_graph *graph = f->g->graph;
    int64_t ps = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_node n = cluster->node[i];
        const weft_val result = weft_result(graph, n, 0);
        const struct weft_unit unit = {.first = n, .last = n, .nodes = 1, .ins = graph->node[n.id].operands, .outs = 1,
                                       .out = &result};
        struct weft_unit asked = unit;
        weft_val in[WEFT_FORM_INS];
        for (uint32_t k = 0; k < unit.ins; k++)
            in[k] = weft_operand(graph, n, k);
        asked.in = in;
        kept[i] = graph->node[n.id].choices;
        if (weft_is_view(graph, n))
            continue;
        const struct weft_choices *const choices =
            kept[i] ? kept[i] : weft_format_first_choice(&f->formats, f->symbols, &asked);
        ps += choices && choices->count ? choices->choice[0].ps : 0;
    }
    return ps;
}

static bool is_read_outside(const struct weft_graph *graph, weft_val v, uint32_t group)
{
    bool outside = graph->value[v.id].returns > 0;
    for (uint32_t use = graph->value[v.id].first_use; use && !outside; use = graph->slot[use - 1].next)
        outside = graph->node[graph->slot[use - 1].node.id].group != group;
    return outside;
}

/* The unit of a group that was formed. */
static struct weft_unit unit_of(const struct forming *f, const struct weft_cluster *cluster)
{
    const struct weft_graph *graph = f->g->graph;
    const uint32_t group = graph->node[cluster->node[0].id].group;
    struct weft_unit unit = {.first = cluster->node[0], .last = cluster->node[cluster->count - 1], .group = group,
                             .nodes = cluster->count};
    weft_val *const in = weft_new(f->g->arena, weft_val, cluster->count * WEFT_FORM_INS);
    weft_val *const out = weft_new(graph->arena, weft_val, cluster->count); /* which its step keeps */
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_node n = cluster->node[i];
        for (uint32_t k = 0; k < graph->node[n.id].operands; k++) {
            const weft_node def = weft_def(graph, weft_operand(graph, n, k));
            if (!def.id || graph->node[def.id].group != group)
                in[unit.ins++] = weft_operand(graph, n, k);
        }
        if (is_read_outside(graph, weft_result(graph, n, 0), group))
            out[unit.outs++] = weft_result(graph, n, 0);
    }
    unit.in = in;
    unit.out = out;
    return unit;
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

static void give_up(const struct forming *f, const struct weft_cluster *cluster, const struct weft_choices **kept,
                    const char *why)
{
    struct weft_graph *graph = f->g->graph;
    const weft_val where = weft_result(graph, cluster->node[cluster->count - 1], 0);
    weft_add_remark(graph, f->g->who, where, "opened", "group of %u nodes: %s", cluster->count, why);
    weft_open_group(graph, cluster->node[0]);
    for (uint32_t i = 0; i < cluster->count; i++)
        graph->node[cluster->node[i].id].choices = kept[i];
}

static void hide_values(const struct forming *f, const struct weft_cluster *cluster, const struct weft_unit *unit)
{
    struct weft_graph *graph = f->g->graph;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_val v = weft_result(graph, cluster->node[i], 0);
        bool out = false;
        for (uint32_t k = 0; k < unit->outs; k++)
            out |= weft_is(unit->out[k], v);
        if (!out)
            graph->value[v.id].layout = f->in_registers;
    }
}

static void form(const struct forming *f, const struct weft_cluster *cluster)
{
    struct weft_graph *graph = f->g->graph;
    const weft_val where = weft_result(graph, cluster->node[cluster->count - 1], 0);
    const struct weft_choices **const kept = weft_new(f->g->arena, const struct weft_choices *, cluster->count);
    const int64_t alone = price_alone(f, cluster, kept);
    const bool formed =
        weft_form_group(graph, cluster->node[0], cluster->node[cluster->count - 1], name_of(f, cluster));
    weft_assert(formed); /* they stand next to each other */
    const struct weft_unit unit = unit_of(f, cluster);
    const struct weft_choices *const choices = weft_format_first_choice(&f->formats, f->symbols, &unit);
    if (!choices) {
        give_up(f, cluster, kept, "no kernel takes them as they lie");
    } else if (choices->choice[0].ps >= alone) {
        give_up(f, cluster, kept,
                weft_arena_format(graph->arena, "as one they would take %.3f us, one by one %.3f us",
                                  (double)choices->choice[0].ps * 1e-6, (double)alone * 1e-6));
    } else {
        hide_values(f, cluster, &unit);
        graph->node[cluster->node[0].id].choices = choices;
        weft_add_remark(graph, f->g->who, where, "formed", "group of %u nodes: as one %.3f us, one by one %.3f us",
                        cluster->count, (double)choices->choice[0].ps * 1e-6, (double)alone * 1e-6);
    }
}

static uint32_t count_joined(const struct weft_grouping *g)
{
    uint32_t joined = 0;
    for (uint32_t c = 1; c < g->clusters; c++) {
        const struct weft_cluster *cluster = &g->cluster[c];
        if (cluster->count > 1 && !weft_permit(g->graph, g->who, weft_result(g->graph, cluster->node[0], 0))) {
            for (uint32_t i = 0; i < cluster->count; i++)
                g->of[cluster->node[i].id] = 0;
            g->cluster[c].count = 0;
        }
        joined += g->cluster[c].count > 1;
    }
    return joined;
}

bool weft_group_nodes(struct weft_graph *graph, const struct weft_target *target, const char *who)
{
    struct weft_arena *const arena = &graph->root->scratch;
    struct weft_grouping g = {.graph = graph, .target = target, .arena = arena, .who = who,
                              .members = weft_members_open(graph, target->cpu, arena),
                              .position = weft_new(arena, uint32_t, graph->nodes),
                              .of = weft_new(arena, uint32_t, 2 * graph->nodes), /* room for copies of views */
                              .cluster = weft_new(arena, struct weft_cluster, graph->nodes + 1),
                              .visit = weft_new(arena, uint32_t, graph->nodes)};
    open_clusters(&g);
    weft_group_join(&g);
    if (count_joined(&g) == 0)
        return false;
    weft_group_bring_together(&g);
    const struct weft_layout hidden = {.kind = WEFT_REGISTER};
    const struct weft_type scalar = {.dtype = WEFT_F32};
    const struct forming f = {.g = &g, .formats = {.graph = graph, .target = target, .arena = graph->arena},
                              .symbols = weft_hint_symbols(graph, arena),
                              .in_registers = weft_intern_layout(graph, &hidden, &scalar)};
    for (uint32_t c = 1; c < g.clusters; c++)
        if (g.cluster[c].count > 1)
            form(&f, &g.cluster[c]);
    return true;
}
