/* SPDX-License-Identifier: Apache-2.0 */
/* group_join.c: which nodes go together. The rules: group.h. */
#include "sched/group.h"

#include <string.h>

enum { MOST_VISITS = 512, SMALL_BYTES = 64 << 10 };

/* --- ways around -------------------------------------------------------------------------------------------------- */

struct search {
    struct weft_grouping *g;
    uint32_t from, to;      /* clusters */
    weft_node *open;
    uint32_t count, capacity, visited;
    bool found;
};

static bool is_view(const struct weft_grouping *g, weft_node n) { return n.id && weft_is_view(g->graph, n); }

/* Behind views: who makes it; none for a parameter. */
static weft_node maker_of(const struct weft_grouping *g, weft_val v)
{
    weft_node n = weft_def(g->graph, v);
    while (is_view(g, n))
        n = weft_def(g->graph, weft_operand(g->graph, n, 0));
    return n;
}

/* The operands of a node, for a search that goes back from `to` and looks for `from`. */
static void open_operands(struct search *s, weft_node n, bool direct)
{
    struct weft_grouping *const g = s->g;
    for (uint32_t i = 0; i < g->graph->node[n.id].operands; i++) {
        const weft_node maker = maker_of(g, weft_operand(g->graph, n, i));
        if (!maker.id || g->visit[maker.id] == g->visits)
            continue;
        const uint32_t of = g->of[maker.id];
        if (of == s->to && of)
            continue;
        if (of == s->from && of) {
            s->found |= !direct;
            continue;
        }
        const uint32_t last = of ? g->cluster[of].last : g->position[maker.id];
        if (last < g->cluster[s->from].first)
            continue;
        g->visit[maker.id] = g->visits;
        s->open = weft_grow(g->arena, s->open, &s->capacity, s->count + 1, sizeof *s->open);
        s->open[s->count++] = maker;
        s->visited++;
    }
}

/* Does something outside of both need `from`, that `to` needs? Also where that is too far to see. */
static bool goes_around(struct weft_grouping *g, uint32_t from, uint32_t to)
{
    struct search s = {.g = g, .from = from, .to = to};
    g->visits++;
    for (uint32_t i = 0; i < g->cluster[to].count; i++)
        open_operands(&s, g->cluster[to].node[i], /* direct= */ true);
    while (s.count > 0 && !s.found && s.visited < MOST_VISITS) {
        const weft_node n = s.open[--s.count];
        const uint32_t of = g->of[n.id];
        if (!of)
            open_operands(&s, n, false);
        for (uint32_t i = 0; of && i < g->cluster[of].count; i++)
            open_operands(&s, g->cluster[of].node[i], false);
    }
    return s.found || s.visited >= MOST_VISITS;
}

/* --- the union ---------------------------------------------------------------------------------------------------- */

struct list {
    weft_node *node;
    uint32_t count, capacity;
};

/* In order of execution, each once. */
static void insert(const struct weft_grouping *g, struct list *list, weft_node n)
{
    list->node = weft_grow(g->arena, list->node, &list->capacity, list->count + 1, sizeof *list->node);
    uint32_t at = list->count;
    while (at > 0 && g->position[list->node[at - 1].id] > g->position[n.id])
        at--;
    if (at > 0 && list->node[at - 1].id == n.id)
        return;
    memmove(list->node + at + 1, list->node + at, (list->count - at) * sizeof *list->node);
    list->node[at] = n;
    list->count++;
}

/* Views between nodes of the union. */
static void insert_views(const struct weft_grouping *g, struct list *list, uint32_t a, uint32_t b, weft_node reader)
{
    for (uint32_t i = 0; i < g->graph->node[reader.id].operands; i++) {
        const weft_val v = weft_operand(g->graph, reader, i);
        const uint32_t of = g->of[maker_of(g, v).id];
        if (of == 0 || (of != a && of != b))
            continue;
        for (weft_node n = weft_def(g->graph, v); is_view(g, n); n = weft_def(g->graph, weft_operand(g->graph, n, 0)))
            insert(g, list, n);
    }
}

static struct list unite(const struct weft_grouping *g, uint32_t a, uint32_t b)
{
    struct list list = {.count = 0};
    const uint32_t both[] = {a, b};
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < g->cluster[both[k]].count; i++) {
            insert(g, &list, g->cluster[both[k]].node[i]);
            insert_views(g, &list, a, b, g->cluster[both[k]].node[i]);
        }
    return list;
}

/* --- does it pay? ------------------------------------------------------------------------------------------------- */

static double points_of(const struct weft_grouping *g, const struct weft_fit *fit, uint16_t axes)
{
    double points = 1;
    for (uint32_t i = 0; i < fit->axes.axes; i++)
        if (axes >> i & 1)
            points *= (double)weft_dim_hint(g->graph->dims, fit->axes.extent[i]);
    return points;
}

/* Rows are what workers share out; a fold by itself may be cut into slices instead. */
static const char *check_rows(const struct weft_grouping *g, const struct weft_fit *fit)
{
    const double rows = points_of(g, fit, fit->outer), elements = points_of(g, fit, fit->all);
    const bool few = fit->axes.folded && rows < 2 * g->target->threads && elements * 4 > SMALL_BYTES;
    return few ? "would have too few rows for the workers" : NULL;
}

static const char *check(struct weft_grouping *g, uint32_t a, uint32_t b, const struct list *list, weft_val *where)
{
    struct weft_fit fit;
    const char *why = weft_fit_find(g->members, list->node, list->count, &fit, where);
    if (!why)
        why = check_rows(g, &fit);
    if (!why && (goes_around(g, a, b) || goes_around(g, b, a)))
        why = "something else needs the one and is needed by the other";
    return why;
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static void join(struct weft_grouping *g, uint32_t a, uint32_t b, const struct list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        g->of[list->node[i].id] = a;
    g->cluster[a] = (struct weft_cluster){.node = list->node, .count = list->count,
                                          .first = g->position[list->node[0].id],
                                          .last = g->position[list->node[list->count - 1].id]};
    g->cluster[b].count = 0;
}

static void try_join(struct weft_grouping *g, weft_node reader, weft_val operand)
{
    const weft_node maker = maker_of(g, operand);
    const uint32_t a = g->of[maker.id], b = g->of[reader.id];
    if (a == 0 || a == b || g->cluster[a].fixed)
        return;
    const struct list list = unite(g, a, b);
    weft_val where;
    const char *const why = check(g, a, b, &list, &where);
    if (!why) {
        join(g, a, b, &list);
        return;
    }
    weft_add_remark(g->graph, g->who, weft_result(g->graph, reader, 0), "refused", "not joined with %s: %s %s",
                    weft_value_text(g->graph, weft_result(g->graph, maker, 0)), weft_value_text(g->graph, where), why);
}

void weft_group_join(struct weft_grouping *g)
{
    const struct weft_graph *graph = g->graph;
    weft_foreach_node(graph, n)
        if (g->of[n.id] && !is_view(g, n) && !g->cluster[g->of[n.id]].fixed)
            for (uint32_t i = 0; i < graph->node[n.id].operands; i++)
                try_join(g, n, weft_operand(graph, n, i));
}
