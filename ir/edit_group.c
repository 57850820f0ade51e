/* SPDX-License-Identifier: Apache-2.0 */
/* edit_group.c: forming, opening and labelling groups. What a group promises is said in build.h; the validator holds
 * every graph to it. A group that was opened leaves its number behind, without a name, so that those of others stay. */
#include "ir/ir.h"

#include <string.h>

weft_node weft_group_first(const struct weft_graph *g, weft_node node)
{
    const uint32_t group = g->node[node.id].group;
    weft_node before = g->node[node.id].previous;
    while (group && before.id && g->node[before.id].group == group) {
        node = before;
        before = g->node[node.id].previous;
    }
    return node;
}

weft_node weft_group_last(const struct weft_graph *g, weft_node node)
{
    const uint32_t group = g->node[node.id].group;
    weft_node next = g->node[node.id].next;
    while (group && next.id && g->node[next.id].group == group) {
        node = next;
        next = g->node[node.id].next;
    }
    return node;
}

static bool is_taken(const struct weft_graph *g, const char *name)
{
    for (uint32_t i = 1; i < g->groups; i++)
        if (g->group[i].name && strcmp(g->group[i].name, name) == 0)
            return true;
    return false;
}

static const char *free_name(struct weft_graph *g, const char *name)
{
    const char *found = name;
    for (unsigned number = 2; is_taken(g, found); number++)
        found = weft_arena_format(&g->root->scratch, "%s.%u", name, number);
    return found;
}

/* Does `last` follow `first`, and are all nodes from one to the other in no group? */
static bool is_free_run(const struct weft_graph *g, weft_node first, weft_node last)
{
    weft_node n = first;
    while (n.id && n.id != last.id && !g->node[n.id].group)
        n = g->node[n.id].next;
    return n.id && n.id == last.id && !g->node[n.id].group;
}

bool weft_form_group(struct weft_graph *graph, weft_node first, weft_node last, const char *name)
{
    if (!is_free_run(graph, first, last))
        return false;
    const uint32_t group = weft_add_group(graph, free_name(graph, name));
    for (weft_node n = first;; n = graph->node[n.id].next) {
        graph->node[n.id].group = group;
        if (n.id == last.id)
            return true;
    }
}

void weft_open_group(struct weft_graph *graph, weft_node node)
{
    const uint32_t group = graph->node[node.id].group;
    weft_assert(group);
    for (weft_node n = weft_group_first(graph, node); n.id && graph->node[n.id].group == group;
         n = graph->node[n.id].next) {
        graph->node[n.id].group = 0;
        for (uint32_t i = 0; i < graph->node[n.id].results; i++) {
            const weft_val v = weft_result(graph, n, i);
            if (weft_layout_of(graph, v).kind == WEFT_REGISTER)
                graph->value[v.id].layout = 0;
        }
    }
    graph->group[group] = (struct weft_group){0};
}

void weft_label_group(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count,
                      const char *const *key, const char *const *value)
{
    weft_assert(graph->node[node.id].group);
    const struct weft_plan_note *note = weft_make_note(graph, kernel, count, key, value);
    graph->group[graph->node[node.id].group].plan = note;
}
