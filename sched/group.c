/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: the engine of `fuse`: which nodes may be in a group, and what becomes of groups that were joined. */
#include "sched/group.h"

#include "codegen/pointwise.h"
#include "sched/select.h"

/* --- who takes part ----------------------------------------------------------------------------------------------- */

/* Blocks have no strides for a group's kernel to walk. */
static bool touches_blocks(const struct weft_graph *g, weft_node n)
{
    bool any = false;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++)
        any |= weft_is_split(g, weft_operand(g, n, i));
    for (uint32_t i = 0; i < g->node[n.id].results; i++)
        any |= weft_is_split(g, weft_result(g, n, i));
    return any;
}

/* A node whose kernel somebody named, or that is in a group already, stays as it is. Views alone are no kernel. */
static bool takes_part(const struct weft_grouping *g, weft_node n)
{
    const struct weft_node_info *info = &g->graph->node[n.id];
    const uint8_t kind = weft_member_of(g->members, n)->kind;
    return !info->group && !(info->plan && info->plan->kernel) && !touches_blocks(g->graph, n) &&
           (kind == WEFT_MEMBER_MAP || kind == WEFT_MEMBER_FOLD || kind == WEFT_MEMBER_SCAN ||
            kind == WEFT_MEMBER_CHUNKS || kind == WEFT_MEMBER_LOOK_UP || weft_epilogue_takes(g->graph, n));
}

/* With room for the nodes of a group that is there already, or for one. */
static void open_cluster(struct weft_grouping *g, weft_node n)
{
    const uint32_t group = g->graph->node[n.id].group;
    uint32_t room = 1;
    for (weft_node next = g->graph->node[n.id].next; group && next.id && g->graph->node[next.id].group == group;
         next = g->graph->node[next.id].next)
        room++;
    g->cluster[g->clusters++] = (struct weft_cluster){
        .node = weft_new(g->arena, weft_node, room), .first = g->position[n.id], .fixed = group != 0};
}

/* To the cluster that was opened last. */
static void add_node(struct weft_grouping *g, weft_node n)
{
    struct weft_cluster *const cluster = &g->cluster[g->clusters - 1];
    cluster->node[cluster->count++] = n;
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
        const bool goes_on = group && group == before;
        if (!goes_on && (group || (sized && takes_part(g, n))))
            open_cluster(g, n);
        else if (!goes_on)
            continue;
        add_node(g, n);
    }
}

/* --- what becomes of them ----------------------------------------------------------------------------------------- */

static const char *name_of(const struct weft_graph *graph, const struct weft_cluster *cluster)
{
    struct weft_text text = {.context = graph->context, .arena = graph->arena};
    uint32_t words = 0;
    for (uint32_t i = 0; i < cluster->count && words < 4; i++)
        if (!weft_is_view(graph, cluster->node[i]))
            weft_text_format(&text, "%s%s", words++ ? "_" : "", weft_op_of(graph, cluster->node[i])->name);
    return text.data;
}

/* Its kernel, if that pays; else its nodes stay alone. */
static void choose(struct weft_grouping *g, struct weft_cluster *cluster)
{
    const weft_val last = weft_result(g->graph, cluster->node[cluster->count - 1], 0);
    cluster->priced = false; /* if it is, it is in memory that goes */
    weft_group_price(g, cluster);
    if (!cluster->why && weft_permit(g->graph, g->who, last)) {
        weft_add_remark_at(g->graph, g->who, g->label[last.id], "formed",
                           "group of %u nodes: as one %.3f us, one by one %.3f us", cluster->count,
                           (double)cluster->ps * 1e-6, (double)cluster->alone * 1e-6);
        return;
    }
    if (cluster->why)
        weft_add_remark_at(g->graph, g->who, g->label[last.id], "refused", "group of %u nodes: %s",
                           cluster->count, cluster->why);
    for (uint32_t i = 0; i < cluster->count; i++)
        g->of[cluster->node[i].id] = 0;
    cluster->count = 0;
}

static void form(struct weft_graph *graph, const struct weft_cluster *cluster, uint32_t in_registers)
{
    const bool formed =
        weft_form_group(graph, cluster->node[0], cluster->node[cluster->count - 1], name_of(graph, cluster));
    weft_assert(formed); /* they stand next to each other */
    const struct weft_step *const step = &cluster->choices->choice[0].step;
    graph->node[cluster->node[0].id].choices = cluster->choices;
    graph->node[step->node.id].choices = cluster->choices;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const weft_val v = weft_result(graph, cluster->node[i], 0);
        bool out = false;
        for (uint32_t k = 0; k < step->outs; k++)
            out |= weft_is(step->out[k], v);
        if (!out)
            graph->value[v.id].layout = in_registers;
    }
}

/* A fold of chunks that is in no group, with the reduction that finishes it: one reduction again. */
static bool rejoin_chunks(struct weft_grouping *g, weft_node n)
{
    struct weft_graph *const graph = g->graph;
    const weft_val partial = weft_result(graph, n, 0);
    const struct weft_value *const value = &graph->value[partial.id];
    const bool has_one_reader = !value->returns && value->first_use && !graph->slot[value->first_use - 1].next;
    if (g->cluster[g->of[n.id]].count > 1 || !has_one_reader)
        return false;
    const weft_node whole = graph->slot[value->first_use - 1].node;
    if (graph->node[n.id].plan || graph->node[whole.id].plan || graph->node[whole.id].group)
        return false;
    enum weft_reduce_op op = WEFT_K_MEAN;
    const struct weft_attr *const axes = weft_attr_find(graph, whole, WEFT_ATTR_axes);
    const int64_t axis = weft_attr_int(graph, n, WEFT_ATTR_axis);
    bool reduces = axes && weft_pointwise_fold(weft_opcode_of(graph, whole), &op) &&
                   op == weft_pointwise_chunks(graph, n) && g->cluster[g->of[whole.id]].count < 2;
    bool has_axis = false;
    for (unsigned i = 0; reduces && i < axes->count; i++)
        has_axis |= weft_dim_value(axes->integers[i]) == axis;
    const weft_val in = weft_operand(graph, n, 0);
    const int dtype = weft_type_of(graph, partial)->dtype;
    if (!weft_dtype_is_float(dtype)) /* chunks wrap around at their own width */
        reduces &= weft_type_of(graph, weft_result(graph, whole, 0))->dtype == dtype;
    if (!has_axis || !reduces || weft_type_of(graph, in)->dtype != dtype ||
        !weft_permit(graph, g->who, partial))
        return false;
    weft_add_remark(graph, g->who, partial, "refused", "no row reduction to fuse with: reduced without chunks");
    weft_replace_operand(graph, whole, 0, in);
    weft_erase_node(graph, n);
    return true;
}

static bool rejoin_all(struct weft_grouping *g)
{
    bool any = false;
    for (weft_node n = g->graph->first, next; n.id; n = next) {
        next = g->graph->node[n.id].next;
        if (weft_opcode_of(g->graph, n) == WEFT_OP_fold_chunks && !g->graph->node[n.id].group)
            any |= rejoin_chunks(g, n);
    }
    return any;
}

bool weft_group_nodes(struct weft_graph *graph, const struct weft_target *target, const char *who)
{
    struct weft_arena *const arena = &graph->root->scratch;
    struct weft_grouping g = {.graph = graph, .target = target, .arena = arena, .who = who,
                              .formats = {.graph = graph, .target = target, .arena = arena},
                              .symbols = weft_hint_symbols(graph, arena),
                              .members = weft_members_open(graph, target->cpu, arena),
                              .position = weft_new(arena, uint32_t, graph->nodes),
                              .of = weft_new(arena, uint32_t, 2 * graph->nodes), /* room for copies of views */
                              .cluster = weft_new(arena, struct weft_cluster, graph->nodes + 1),
                              .visit = weft_new(arena, uint32_t, graph->nodes),
                              .text = weft_value_texts(graph, arena),
                              .label = weft_value_labels(graph, arena)};
    bool any = false;
    open_clusters(&g);
    weft_group_join(&g);
    g.formats.arena = graph->arena;
    for (uint32_t c = 1; c < g.clusters; c++)
        if (g.cluster[c].count > 1 && !g.cluster[c].fixed) {
            choose(&g, &g.cluster[c]);
            any |= g.cluster[c].count > 1;
        }
    const bool rejoined = rejoin_all(&g);
    if (!any)
        return rejoined;
    const struct weft_layout hidden = {.kind = WEFT_REGISTER};
    const struct weft_type scalar = {.dtype = WEFT_F32};
    const uint32_t in_registers = weft_intern_layout(graph, &hidden, &scalar);
    weft_group_bring_together(&g);
    for (uint32_t c = 1; c < g.clusters; c++)
        if (g.cluster[c].count > 1 && !g.cluster[c].fixed)
            form(graph, &g.cluster[c], in_registers);
    return true;
}
