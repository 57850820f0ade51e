/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: which value has a name: a table of open addressing in the graph's arena, at most half full.
 *
 * A renamed value leaves its entry behind, which leads to no name any more; such entries go when the table grows. An
 * erased node leaves its results' names in the table too: they may be taken over, and until then nobody finds them. */
#include "ir/ir.h"

#include <string.h>

/* The hash stands beside the value: names that are not the one looked for are passed over without being read, and a
 * larger table is filled without reading any. */
struct weft_name_slot {
    uint32_t value; /* 0: free */
    uint32_t hash;
};

uint32_t weft_hash_name(const char *text, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

/* The slot that holds the name, or the free one where it would go. */
static struct weft_name_slot *name_slot(const struct weft_graph *g, const char *name, size_t length, uint32_t hash)
{
    uint32_t i = hash & (g->name_slots - 1);
    for (;; i = (i + 1) & (g->name_slots - 1)) {
        struct weft_name_slot *slot = &g->names[i];
        if (!slot->value)
            return slot;
        if (slot->hash != hash)
            continue;
        const char *other = g->value[slot->value].name;
        if (other && strncmp(other, name, length) == 0 && other[length] == '\0')
            return slot;
    }
}

static void grow_names(struct weft_graph *g)
{
    if (g->name_count * 2 < g->name_slots)
        return;
    const uint32_t old_slots = g->name_slots;
    const struct weft_name_slot *old = g->names;
    const uint32_t slots = old_slots ? old_slots * 2 : 64;
    g->names = weft_new(g->arena, struct weft_name_slot, slots);
    g->name_slots = slots; /* only now: memory may be refused */
    g->name_count = 0;
    for (uint32_t i = 0; i < old_slots; i++) {
        if (!old[i].value || !g->value[old[i].value].name)
            continue;
        uint32_t to = old[i].hash & (g->name_slots - 1);
        while (g->names[to].value)
            to = (to + 1) & (g->name_slots - 1);
        g->names[to] = old[i];
        g->name_count++;
    }
}

static bool is_live(const struct weft_graph *g, weft_val v)
{
    const weft_node def = g->value[v.id].def;
    return !def.id || !g->node[def.id].dead;
}

weft_val weft_value_find(const struct weft_graph *graph, const char *name, size_t length)
{
    if (!graph->name_slots)
        return WEFT_NO_VALUE;
    const weft_val found = {.id = name_slot(graph, name, length, weft_hash_name(name, length))->value};
    return found.id && is_live(graph, found) ? found : WEFT_NO_VALUE;
}

weft_val weft_value_find_heir(const struct weft_graph *graph, const char *name, size_t length)
{
    if (!graph->name_slots)
        return WEFT_NO_VALUE;
    weft_val found = {.id = name_slot(graph, name, length, weft_hash_name(name, length))->value};
    for (uint32_t i = graph->formers; i-- > 0 && !found.id;)
        if (strncmp(graph->former[i].name, name, length) == 0 && graph->former[i].name[length] == '\0')
            found = graph->former[i].value;
    while (found.id && !is_live(graph, found))
        found = graph->value[found.id].heir;
    return found;
}

void weft_drop_name(struct weft_graph *graph, weft_val value)
{
    const char *name = graph->value[value.id].name;
    if (!name)
        return;
    graph->former = weft_grow(graph->arena, graph->former, &graph->former_capacity, graph->formers + 1,
                              sizeof *graph->former);
    graph->former[graph->formers++] = (struct weft_former_name){name, value};
    graph->value[value.id].name = NULL;
}

void weft_note_scope(struct weft_graph *graph, const char *node, const char *path)
{
    struct weft_graph *const root = graph->root;
    root->scope = weft_grow(root->arena, root->scope, &root->scope_capacity, root->scopes + 1, sizeof *root->scope);
    root->scope[root->scopes++] = (struct weft_scope_note){weft_arena_copy(root->arena, node, strlen(node)),
                                                           weft_arena_copy(root->arena, path, strlen(path))};
}

void weft_move_name(struct weft_graph *graph, weft_val from, weft_val to)
{
    const char *name = graph->value[from.id].name;
    const size_t bytes = strlen(name);
    struct weft_name_slot *slot = name_slot(graph, name, bytes, weft_hash_name(name, bytes));
    weft_assert(slot->value == from.id);
    slot->value = to.id;
    graph->value[from.id].name = NULL;
    graph->value[to.id].name = name;
}

void weft_set_name(struct weft_graph *graph, weft_val value, const char *name, size_t length)
{
    grow_names(graph);
    const char *text = weft_arena_copy(graph->arena, name, length);
    if (!*text) /* a model may call a value "" or "\0…": it is numbered */
        return;
    for (uint32_t suffix = 1;; suffix++) {
        const size_t bytes = strlen(text);
        const uint32_t hash = weft_hash_name(text, bytes);
        struct weft_name_slot *slot = name_slot(graph, text, bytes, hash);
        const weft_val owner = {.id = slot->value};
        if (!owner.id || weft_is(owner, value) || !is_live(graph, owner)) {
            graph->name_count += !owner.id;
            if (owner.id)
                graph->value[owner.id].name = NULL;
            *slot = (struct weft_name_slot){.value = value.id, .hash = hash};
            graph->value[value.id].name = text;
            return;
        }
        text = weft_arena_format(graph->arena, "%.*s.%u", (int)length, name, suffix);
    }
}
