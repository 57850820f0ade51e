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

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Open addressing, at most half full. Groups that came by text or by a copy are entered when somebody asks. One that
 * was opened leaves an entry behind that leads to no name, until another takes its slot or the table grows. */
struct weft_group_slot {
    uint32_t group; /* 0: free */
    uint32_t hash;
};

static uint32_t hash_of(const char *name) { return weft_hash_name(name, strlen(name)); }

/* The group of that name, or 0. */
static uint32_t find_group(const struct weft_graph *g, const char *name)
{
    const uint32_t hash = hash_of(name);
    for (uint32_t i = hash & (g->group_slots - 1);; i = (i + 1) & (g->group_slots - 1)) {
        const struct weft_group_slot *slot = &g->group_names[i];
        const char *other = slot->group ? g->group[slot->group].name : NULL;
        if (!slot->group || (slot->hash == hash && other && strcmp(other, name) == 0))
            return slot->group;
    }
}

static void enter(struct weft_graph *g, uint32_t group)
{
    if (!g->group[group].name)
        return;
    const uint32_t hash = hash_of(g->group[group].name);
    uint32_t i = hash & (g->group_slots - 1);
    while (g->group_names[i].group && g->group[g->group_names[i].group].name)
        i = (i + 1) & (g->group_slots - 1);
    g->group_slots_used += !g->group_names[i].group;
    g->group_names[i] = (struct weft_group_slot){group, hash};
}

static void enter_all(struct weft_graph *g)
{
    const uint32_t missing = g->groups - g->named_groups;
    if (!g->group_slots || 2 * (g->group_slots_used + missing) > g->group_slots) {
        uint32_t slots = 64;
        while (slots < 4 * g->groups)
            slots *= 2;
        g->group_names = weft_new(g->arena, struct weft_group_slot, slots);
        g->group_slots = slots; /* only now: memory may be refused */
        g->group_slots_used = 0;
        g->named_groups = 1;
    }
    while (g->named_groups < g->groups)
        enter(g, g->named_groups++);
}

/* Of many groups of one name each gets the number behind the last one's. */
static const char *free_name(struct weft_graph *g, const char *name)
{
    enter_all(g);
    const uint32_t first = find_group(g, name);
    const char *found = name;
    while (first && (found == name || find_group(g, found)))
        found = weft_arena_format(&g->root->scratch, "%s.%u", name, ++g->group[first].namesakes + 1);
    return found;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

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
        graph->node[n.id].choices = NULL; /* they were for the node alone */
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
        graph->node[n.id].choices = NULL;
        for (uint32_t i = 0; i < graph->node[n.id].results; i++) {
            const weft_val v = weft_result(graph, n, i);
            if (weft_layout_of(graph, v).kind == WEFT_REGISTER)
                graph->value[v.id].layout = 0;
        }
    }
    graph->group[group] = (struct weft_group){0};
}

void weft_show_value(struct weft_graph *graph, weft_val value, uint32_t group)
{
    const weft_node def = weft_def(graph, value);
    if (!def.id || !graph->node[def.id].group || graph->node[def.id].group == group)
        return;
    weft_forget_choices(graph, def); /* the group may write a value more */
    if (weft_layout_of(graph, value).kind == WEFT_REGISTER)
        graph->value[value.id].layout = 0;
}

void weft_forget_choices(struct weft_graph *graph, weft_node node)
{
    graph->node[node.id].choices = NULL;
    if (graph->node[node.id].group)
        graph->node[weft_group_first(graph, node).id].choices = NULL;
}

void weft_label_group(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count,
                      const char *const *key, const char *const *value)
{
    weft_assert(graph->node[node.id].group);
    const struct weft_plan_note *note = weft_make_note(graph, kernel, count, key, value);
    graph->group[graph->node[node.id].group].plan = note;
}
