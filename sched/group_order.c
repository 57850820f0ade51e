/* SPDX-License-Identifier: Apache-2.0 */
/* group_order.c: bringing the nodes of a group together. Clusters and nodes that stay alone are put in an order in
 * which each comes behind what it needs, and of those that may come next the one that stood first: so what is in no
 * cluster stays as it was, as far as that goes. */
#include "sched/group.h"

/* --- views that are read outside, too ----------------------------------------------------------------------------- */

static bool is_inside(const struct weft_grouping *g, weft_node n, uint32_t cluster) { return g->of[n.id] == cluster; }

static weft_node copy_view(struct weft_grouping *g, weft_node view, uint32_t cluster)
{
    struct weft_graph *graph = g->graph;
    struct weft_builder build = {graph, view};
    const struct weft_node_info info = graph->node[view.id];
    const weft_val operand = weft_operand(graph, view, 0), old = weft_result(graph, view, 0);
    const weft_val copy = weft_build(&build, info.op, 1, &operand, info.attrs, info.attr, weft_type_of(graph, old));
    for (uint32_t use = graph->value[old.id].first_use, next; use; use = next) {
        const weft_node reader = graph->slot[use - 1].node;
        next = graph->slot[use - 1].next;
        if (is_inside(g, reader, cluster))
            weft_replace_operand(graph, reader, use - 1 - graph->node[reader.id].first_operand, copy);
    }
    return weft_def(graph, copy);
}

static bool is_read_outside(const struct weft_grouping *g, weft_node n, uint32_t cluster)
{
    const struct weft_graph *graph = g->graph;
    const weft_val v = weft_result(graph, n, 0);
    bool outside = graph->value[v.id].returns > 0;
    for (uint32_t use = graph->value[v.id].first_use; use && !outside; use = graph->slot[use - 1].next)
        outside = !is_inside(g, graph->slot[use - 1].node, cluster);
    return outside;
}

/* From the last one on: the copy of a view that a view reads has that one's copy among its readers. */
static void copy_views(struct weft_grouping *g)
{
    for (uint32_t c = 1; c < g->clusters; c++)
        for (uint32_t i = g->cluster[c].fixed ? 0 : g->cluster[c].count; i-- > 0;) {
            weft_node *const node = &g->cluster[c].node[i];
            if (!weft_is_view(g->graph, *node) || !is_read_outside(g, *node, c))
                continue;
            const weft_node view = *node;
            *node = copy_view(g, view, c);
            g->of[node->id] = c;
            g->of[view.id] = 0;
        }
}

/* --- the order ---------------------------------------------------------------------------------------------------- */

/* Units: clusters by their number, then nodes that are alone. */
struct ordering {
    const struct weft_grouping *g;
    uint32_t *unit;         /* by node id */
    uint32_t *key;          /* by unit: position of its first node */
    uint32_t *needs;        /* by unit: operands that others have yet to make */
    uint32_t *heap, ready;  /* units that may come next, the least key on top */
    weft_node *alone;       /* by unit - clusters */
    uint32_t units;
    uint32_t *order, placed; /* units, as they will stand */
};

static void push(struct ordering *o, uint32_t unit)
{
    uint32_t at = o->ready++;
    for (; at > 0 && o->key[o->heap[(at - 1) / 2]] > o->key[unit]; at = (at - 1) / 2)
        o->heap[at] = o->heap[(at - 1) / 2];
    o->heap[at] = unit;
}

static uint32_t pop(struct ordering *o)
{
    const uint32_t top = o->heap[0], last = o->heap[--o->ready];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < o->ready; at = child) {
        child += child + 1 < o->ready && o->key[o->heap[child + 1]] < o->key[o->heap[child]];
        if (o->key[o->heap[child]] >= o->key[last])
            break;
        o->heap[at] = o->heap[child];
    }
    o->heap[at] = last;
    return top;
}

static const weft_node *nodes_of(const struct ordering *o, uint32_t unit, uint32_t *ret_count)
{
    const struct weft_grouping *g = o->g;
    *ret_count = unit < g->clusters ? g->cluster[unit].count : 1;
    return unit < g->clusters ? g->cluster[unit].node : &o->alone[unit - g->clusters];
}

static uint32_t find_units(struct ordering *o, const uint32_t *of)
{
    const struct weft_graph *graph = o->g->graph;
    uint32_t units = o->g->clusters, position = 0;
    weft_foreach_node(graph, n) {
        const uint32_t cluster = of[n.id];
        o->unit[n.id] = cluster ? cluster : units++;
        if (!cluster)
            o->alone[o->unit[n.id] - o->g->clusters] = n;
        if (o->key[o->unit[n.id]] == UINT32_MAX)
            o->key[o->unit[n.id]] = position;
        position++;
    }
    weft_foreach_node(graph, n)
        for (uint32_t i = 0; i < graph->node[n.id].operands; i++) {
            const weft_node def = weft_def(graph, weft_operand(graph, n, i));
            o->needs[o->unit[n.id]] += def.id && o->unit[def.id] != o->unit[n.id];
        }
    return units;
}

static void finish_node(struct ordering *o, weft_node n)
{
    const struct weft_graph *graph = o->g->graph;
    for (uint32_t r = 0; r < graph->node[n.id].results; r++)
        for (uint32_t use = graph->value[weft_result(graph, n, r).id].first_use; use; use = graph->slot[use - 1].next) {
            const uint32_t reader = o->unit[graph->slot[use - 1].node.id];
            if (reader != o->unit[n.id] && --o->needs[reader] == 0)
                push(o, reader);
        }
}

static void place(struct weft_graph *graph, weft_node n, weft_node *cursor)
{
    if (n.id == cursor->id)
        *cursor = graph->node[n.id].next;
    else
        weft_move_before(graph, n, *cursor);
}

/* Orders the units as far as they go. */
static void order_units(struct weft_grouping *g, struct ordering *ret)
{
    const struct weft_graph *graph = g->graph;
    uint32_t *const of = weft_new(g->arena, uint32_t, graph->nodes); /* also of copies */
    for (uint32_t c = 1; c < g->clusters; c++)
        for (uint32_t i = 0; g->cluster[c].count > 1 && i < g->cluster[c].count; i++)
            of[g->cluster[c].node[i].id] = c;
    const uint32_t most = g->clusters + graph->nodes;
    *ret = (struct ordering){.g = g, .unit = weft_new(g->arena, uint32_t, graph->nodes),
                             .key = weft_new(g->arena, uint32_t, most), .needs = weft_new(g->arena, uint32_t, most),
                             .heap = weft_new(g->arena, uint32_t, most), .order = weft_new(g->arena, uint32_t, most),
                             .alone = weft_new(g->arena, weft_node, graph->nodes)};
    for (uint32_t i = 0; i < most; i++)
        ret->key[i] = UINT32_MAX;
    ret->units = find_units(ret, of);
    for (uint32_t i = 1; i < ret->units; i++)
        if (ret->key[i] != UINT32_MAX && ret->needs[i] == 0)
            push(ret, i);
    while (ret->ready > 0) {
        uint32_t count;
        const uint32_t unit = pop(ret);
        ret->order[ret->placed++] = unit;
        const weft_node *const node = nodes_of(ret, unit, &count);
        for (uint32_t i = 0; i < count; i++)
            finish_node(ret, node[i]);
    }
}

/* A unit that has not been placed and that this one needs; every one that is left has some. */
static uint32_t needed_by(const struct ordering *o, uint32_t unit)
{
    const struct weft_graph *const graph = o->g->graph;
    uint32_t count;
    const weft_node *const node = nodes_of(o, unit, &count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < graph->node[node[i].id].operands; k++) {
            const weft_node def = weft_def(graph, weft_operand(graph, node[i], k));
            if (def.id && o->unit[def.id] != unit && o->needs[o->unit[def.id]] > 0)
                return o->unit[def.id];
        }
    return 0;
}

/* Joining looks only so far for ways around (group_join.c), and not through clusters whose nodes stand on both sides of
 * others: so two of them may need each other. Opens the smallest cluster of a circle; false: all units have a place. */
static bool open_circle(struct weft_grouping *g, const struct ordering *o)
{
    uint32_t unit = 0;
    for (uint32_t i = 1; i < o->units && !unit; i++)
        unit = o->key[i] != UINT32_MAX && o->needs[i] > 0 ? i : 0;
    if (!unit)
        return false;
    for (uint32_t i = 0; i < o->units; i++) /* by now on a circle */
        unit = needed_by(o, unit);
    uint32_t least = 0, at = unit;
    do {
        const bool opens = at < g->clusters && !g->cluster[at].fixed && g->cluster[at].count > 1;
        if (opens && (!least || g->cluster[at].count < g->cluster[least].count))
            least = at;
        at = needed_by(o, at);
    } while (at != unit);
    weft_assert(least);
    const weft_val where = weft_result(g->graph, g->cluster[least].node[0], 0);
    weft_add_remark(g->graph, g->who, where, "refused", "a group of %u nodes would need itself",
                    (unsigned)g->cluster[least].count);
    for (uint32_t i = 0; i < g->cluster[least].count; i++)
        g->of[g->cluster[least].node[i].id] = 0;
    g->cluster[least].count = 0;
    return true;
}

void weft_group_bring_together(struct weft_grouping *g)
{
    struct weft_graph *graph = g->graph;
    struct ordering o;
    copy_views(g);
    do
        order_units(g, &o);
    while (open_circle(g, &o));
    weft_node cursor = graph->first;
    for (uint32_t k = 0; k < o.placed; k++) {
        uint32_t count;
        const weft_node *const node = nodes_of(&o, o.order[k], &count);
        for (uint32_t i = 0; i < count; i++)
            place(graph, node[i], &cursor);
    }
    weft_assert(!cursor.id);
}
