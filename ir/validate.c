/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: every rule that a graph must keep, checked from scratch.
 *
 * Nothing that the graph stores about itself is believed: types are inferred again, use lists are counted against
 * the operand slots, elements of integer tensors are computed anew. So a pass that edits wrongly is found at once,
 * and not where a later pass trips over it. All findings are collected; a walk goes on as long as the links
 * themselves can be trusted.
 *
 * Here: order, uses, groups, returns, bodies. The rules about one node and one value are in validate_node.c. */
#include "ir/parse.h"
#include "ir/validate.h"

#include <stdlib.h>
#include <string.h>

/* --- order -------------------------------------------------------------------------------------------------------- */

/* False if the list of nodes is broken, so that nothing can be walked. */
static bool check_order(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    uint32_t count = 0;
    weft_node previous = WEFT_NO_NODE;
    for (weft_node n = g->first; n.id; previous = n, n = g->node[n.id].next) {
        if (n.id >= g->nodes || v->position[n.id]) {
            weft_found(v, previous, "the list of nodes runs to node %u, which %s", n.id,
                       n.id >= g->nodes ? "does not exist" : "it has visited already");
            return false;
        }
        v->position[n.id] = ++count;
        if (g->node[n.id].dead)
            weft_found(v, n, "an erased node is still in the list");
        if (g->node[n.id].previous.id != previous.id)
            weft_found(v, n, "the link back from a node does not lead to the node before it");
    }
    if (g->last.id != previous.id)
        weft_found(v, previous, "the last node of the list is not the graph's last");
    if (g->live_nodes != count)
        weft_found(v, WEFT_NO_NODE, "the graph counts %u live nodes, its list has %u", g->live_nodes, count);
    if (g->analyses & WEFT_ORDER)
        for (weft_node n = g->first; n.id && g->node[n.id].next.id; n = g->node[n.id].next)
            if (g->position[n.id] >= g->position[g->node[n.id].next.id])
                weft_found(v, n, "the cached order is out of date");
    return true;
}

/* --- uses --------------------------------------------------------------------------------------------------------- */

/* Returns in a value's list, or one more than there can be if the list is broken. */
static uint32_t listed_returns(const struct weft_graph *g, weft_val value)
{
    uint32_t count = 0, previous = 0;
    for (uint32_t at = g->value[value.id].first_return; at; at = g->ret[at - 1].next) {
        if (at > g->returns || count > g->returns || !weft_is(g->ret[at - 1].value, value) ||
            g->ret[at - 1].previous != previous)
            return g->returns + 1;
        previous = at;
        count++;
    }
    return count;
}

/* Counts each slot that a live node owns; what lists and counters say must come to the same. */
static void check_uses(struct weft_validator *v, const uint32_t *slots_of)
{
    const struct weft_graph *g = v->graph;
    for (uint32_t id = 1; id < g->values; id++) {
        const weft_val value = {.id = id};
        uint32_t count = 0, previous = 0;
        uint32_t at = g->value[id].first_use;
        for (; at && at <= g->slots && count <= slots_of[id]; at = g->slot[at - 1].next) {
            const struct weft_operand *slot = &g->slot[at - 1];
            if (slot->value.id != id || slot->previous != previous || slot->node.id >= g->nodes ||
                !v->position[slot->node.id])
                break;
            previous = at;
            count++;
        }
        if (at || count != slots_of[id] || g->value[id].uses != count)
            weft_found(v, g->value[id].def, "the uses of %s are wrong: %u counted, %u found, %u in its list",
                       weft_text_of(v, value), g->value[id].uses, slots_of[id], count);
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_groups(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    bool *closed = weft_new(v->arena, bool, g->groups + 1);
    uint32_t group = 0;
    weft_foreach_node(g, n) {
        const uint32_t next = weft_node_of(g, n)->group;
        if (next == group || next >= g->groups)
            continue;
        closed[group] = true;
        group = next;
        if (group && closed[group])
            weft_found(v, n, "group @%s is torn: its nodes are not neighbours", g->group[group].name);
    }
    const char **names = weft_new(v->arena, const char *, g->groups + 1);
    uint32_t count = 0;
    for (uint32_t i = 1; i < g->groups; i++)
        if (g->group[i].name)
            names[count++] = g->group[i].name;
    if (count > 1)
        qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            weft_found(v, WEFT_NO_NODE, "two groups are called @%s", names[i]);
}

static void check_static(struct weft_validator *v, weft_val value)
{
    const struct weft_value *const info = weft_value_of(v->graph, value);
    if (info->is_static && !info->is_param)
        weft_found(v, info->def, "%s is static, but no parameter", weft_text_of(v, value));
    else if (info->is_static && info->is_mut)
        weft_found(v, WEFT_NO_NODE, "parameter %s is mut and static", weft_text_of(v, value));
    else if (info->is_static && v->graph->parent)
        weft_found(v, WEFT_NO_NODE, "a body cannot have static parameters, like %s", weft_text_of(v, value));
}

static void check_returns(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    if (g->returns == 0)
        weft_found(v, WEFT_NO_NODE, "graph @%s returns nothing", g->name);
    uint32_t *returned = weft_new(v->arena, uint32_t, g->values);
    uint32_t *renewed = weft_new(v->arena, uint32_t, g->values);
    for (uint32_t i = 0; i < g->returns; i++) {
        const struct weft_return_slot *slot = &g->ret[i];
        if (!weft_validate_defined(v, slot->value, WEFT_NO_NODE))
            continue;
        returned[slot->value.id]++;
        if (!slot->mut.id)
            continue;
        if (slot->mut.id >= g->values || !g->value[slot->mut.id].is_mut) {
            weft_found(v, WEFT_NO_NODE, "%s gets a new value, but is not a mut parameter", weft_text_of(v, slot->mut));
            continue;
        }
        if (++renewed[slot->mut.id] == 2)
            weft_found(v, WEFT_NO_NODE, "mut parameter %s gets two new values", weft_text_of(v, slot->mut));
        if (!weft_type_same(weft_type_of(g, slot->mut), weft_type_of(g, slot->value)))
            weft_found(v, WEFT_NO_NODE, "the new value of mut parameter %s is %s, but the parameter is %s",
                       weft_text_of(v, slot->mut), weft_type_text(v, weft_type_of(g, slot->value)),
                       weft_type_text(v, weft_type_of(g, slot->mut)));
    }
    for (uint32_t i = 1; i < g->values; i++) {
        const weft_val value = {.id = i};
        if (g->value[i].returns != returned[i])
            weft_found(v, g->value[i].def, "%s counts %u returns, but has %u", weft_text_of(v, value),
                       g->value[i].returns, returned[i]);
        else if (listed_returns(g, value) != returned[i])
            weft_found(v, g->value[i].def, "the list of the returns of %s is wrong", weft_text_of(v, value));
        if (g->value[i].is_mut && !g->value[i].is_param)
            weft_found(v, g->value[i].def, "%s is mut, but no parameter", weft_text_of(v, value));
        else if (g->value[i].is_mut && g->parent)
            weft_found(v, WEFT_NO_NODE, "a body cannot have mut parameters, like %s", weft_text_of(v, value));
        else if (g->value[i].is_mut && !renewed[i])
            weft_found(v, WEFT_NO_NODE, "mut parameter %s has no new value: return mut %s = …", weft_text_of(v, value),
                       weft_text_of(v, value));
        check_static(v, value);
    }
}

static void check_graph(struct weft_validator *v);

/* The last node that uses each body, by the body's index. */
static weft_node *find_holders(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    weft_node *holder = weft_new(v->arena, weft_node, g->bodies);
    weft_foreach_node(g, n)
        for (unsigned a = 0; a < weft_node_of(g, n)->attrs; a++) {
            const struct weft_attr *attr = &weft_node_of(g, n)->attr[a];
            if (attr->kind == WEFT_ATTR_GRAPH && weft_is_body(g, attr->graph))
                holder[attr->graph->index] = n;
        }
    return holder;
}

static void check_body_names(struct weft_validator *v, const weft_node *holder)
{
    const struct weft_graph *g = v->graph;
    struct weft_parse_names names = {0};
    for (uint32_t i = 0; i < g->bodies; i++) {
        const char *name = g->body[i]->name;
        if (!holder[i].id)
            continue;
        if (weft_parse_names_find(&names, (struct weft_word){name, strlen(name)}))
            weft_found(v, holder[i], "two bodies are called @%s", name);
        else
            weft_parse_names_add(v->arena, &names, name, i + 1);
    }
}

/* Bodies that no node uses are left over from edits, and never printed. */
static void check_bodies(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    const struct weft_validator outer = *v;
    if (g->bodies == 0)
        return;
    const weft_node *holder = find_holders(v);
    check_body_names(v, holder);
    for (uint32_t i = 0; i < g->bodies; i++) {
        const struct weft_graph *body = g->body[i];
        if (!holder[i].id)
            continue;
        if (body->root != g->root || body->parent != g || body->depth > WEFT_MAX_DEPTH) {
            weft_found(v, holder[i], "body @%s does not know its parent", body->name);
            continue;
        }
        v->graph = body;
        v->anchor = outer.anchor.id ? outer.anchor : holder[i];
        check_graph(v);
        v->graph = g;
        v->anchor = outer.anchor;
        v->position = outer.position;
    }
}

static void check_graph(struct weft_validator *v)
{
    const struct weft_graph *g = v->graph;
    v->position = weft_new(v->arena, uint32_t, g->nodes + 1);
    uint32_t *slots_of = weft_new(v->arena, uint32_t, g->values + 1);
    if (!check_order(v))
        return;
    bool right = true;
    for (uint32_t i = 0; i < g->params; i++) {
        if (!weft_validate_defined(v, g->param[i], WEFT_NO_NODE))
            return;
        weft_validate_value(v, g->param[i], WEFT_NO_NODE);
    }
    weft_foreach_node(g, n)
        right &= weft_validate_node(v, n, slots_of);
    if (right) {
        check_uses(v, slots_of);
        weft_foreach_node(g, n)
            weft_validate_types(v, n);
        weft_node where;
        const char *message = weft_find_data_error(g, v->arena, &where);
        if (message)
            weft_found(v, where, "%s", message);
    }
    check_groups(v);
    check_returns(v);
    check_bodies(v);
}

uint32_t weft_find_errors(const struct weft_graph *graph, struct weft_arena *arena, struct weft_finding **ret)
{
    struct weft_validator v = {.top = graph, .graph = graph, .arena = arena};
    check_graph(&v);
    *ret = v.finding;
    return v.findings;
}

bool weft_validate_graph(const struct weft_graph *graph)
{
    struct weft_arena *scratch = &graph->root->scratch;
    const bool own = weft_arena_is_empty(scratch); /* between passes nobody else has anything in it */
    struct weft_finding *finding;
    const uint32_t count = weft_find_errors(graph, scratch, &finding);
    for (uint32_t i = 0; i < count; i++) {
        const weft_node node = finding[i].node;
        const struct weft_place place = {.file = graph->root->file, .line = node.id ? graph->node[node.id].line : 0,
                                         .column = node.id ? 1 : 0};
        weft_error(graph->context, WEFT_ERR_INVALID, &place, "%s", finding[i].message);
    }
    if (own)
        weft_arena_empty(scratch);
    return count == 0;
}

static int validate_protected(void *arg)
{
    weft_validate_graph(arg);
    return WEFT_OK;
}

int weft_validate(struct weft_graph *graph)
{
    return graph ? weft_protected_graph(graph, validate_protected, graph) : WEFT_ERR_ARGUMENT;
}
