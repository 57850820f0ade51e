/* SPDX-License-Identifier: Apache-2.0 */
/* public_edit.c: the edits of weft/edit.h: what the caller asks for is checked here, and done by edit.c. */
#include "ir/public.h"

#include <string.h>

struct edit {
    struct weft_graph *graph;
    weft_node node;
    weft_val from, to;
    size_t operand;
};

/* What has been decided for layouts and nodes as they are is not edited. */
static bool is_decided(const struct weft_graph *g, weft_node n)
{
    return g->node[n.id].plan || g->node[n.id].group;
}

static const char *name_of(const struct weft_graph *g, weft_node n)
{
    return g->node[n.id].results ? weft_value_text(g, weft_result(g, n, 0)) : g->name;
}

static int refuse_decided(const struct weft_graph *g, weft_node n)
{
    return weft_wrong(g->context, name_of(g, n),
                      "the node is in a group or has a kernel: what is decided is not edited");
}

static int check_value(const struct weft_graph *g, const char *what, weft_val v)
{
    return weft_value_is_in(g, v) ? WEFT_OK
                                  : weft_wrong(g->context, g->name, "%s is %s", what, weft_stranger(g, v));
}

static int check_node(struct weft_graph *g, weft_node n)
{
    if (!weft_node_is_in(g, n))
        return weft_wrong(g->context, g->name, "the node is none of this graph's, or was erased");
    return weft_uneditable(g) ? WEFT_ERR_ARGUMENT : is_decided(g, n) ? refuse_decided(g, n) : WEFT_OK;
}

/* Parameters are there before all nodes: 0. */
static uint32_t position_of(const struct weft_graph *g, weft_val v)
{
    const weft_node def = weft_def(g, v);
    return def.id ? g->position[def.id] + 1 : 0;
}

static int check_types(const struct weft_graph *g, weft_val from, weft_val to)
{
    return weft_type_same(weft_type_of(g, from), weft_type_of(g, to))
               ? WEFT_OK
               : weft_wrong(g->context, weft_value_text(g, to),
                            "its type is not that of the value that it is to replace");
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

static int set_operand(void *arg)
{
    const struct edit *e = arg;
    struct weft_graph *const g = e->graph;
    if (check_node(g, e->node) != WEFT_OK || check_value(g, "the value", e->to) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    const weft_node n = {.id = e->node.id};
    const weft_val to = {.id = e->to.id};
    if (e->operand >= g->node[n.id].operands)
        return weft_wrong(g->context, name_of(g, n), "the node has no operand %zu", e->operand);
    const weft_val from = weft_operand(g, n, (unsigned)e->operand);
    weft_require(g, WEFT_ORDER);
    if (check_types(g, from, to) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    if (position_of(g, to) > g->position[n.id])
        return weft_wrong(g->context, name_of(g, n), "%s is computed behind the node that is to read it",
                          weft_value_text(g, to));
    if (!weft_is(from, to))
        weft_replace_operand(g, n, (unsigned)e->operand, to);
    return WEFT_OK;
}

int weft_graph_set_operand(struct weft_graph *graph, weft_node node, size_t i, weft_val value)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    return weft_protected_graph(graph, set_operand,
                                &(struct edit){.graph = graph, .node = node, .operand = i, .to = value});
}

/* --- all uses ----------------------------------------------------------------------------------------------------- */

/* What a caller sees of a graph are its results: each has a name and a place of its own. */
static int check_returns(const struct weft_graph *g, weft_val from, weft_val to)
{
    const struct weft_value *const old = &g->value[from.id], *const new = &g->value[to.id];
    if (!old->returns || g->parent || (!new->is_param && !new->returns))
        return WEFT_OK;
    return weft_wrong(g->context, weft_value_text(g, from),
                      "the result cannot become %s, which is %s: insert a reshape of it", weft_value_text(g, to),
                      new->is_param ? "a parameter" : "another result");
}

static int check_readers(const struct weft_graph *g, weft_val from, uint32_t behind)
{
    for (uint32_t use = g->value[from.id].first_use; use; use = g->slot[use - 1].next) {
        const weft_node reader = g->slot[use - 1].node;
        if (g->position[reader.id] >= behind && is_decided(g, reader))
            return refuse_decided(g, reader);
    }
    return WEFT_OK;
}

static void replace_reads(struct weft_graph *g, weft_val from, weft_val to, uint32_t behind)
{
    for (uint32_t use = g->value[from.id].first_use, next; use; use = next) {
        const weft_node reader = g->slot[use - 1].node;
        next = g->slot[use - 1].next;
        if (g->position[reader.id] >= behind)
            weft_replace_operand(g, reader, use - 1 - g->node[reader.id].first_operand, to);
    }
}

static void replace_returns(struct weft_graph *g, weft_val from, weft_val to)
{
    if (g->value[from.id].returns == 0)
        return;
    weft_take_layout(g, to, from);
    while (g->value[from.id].first_return)
        weft_replace_return(g, g->value[from.id].first_return - 1, to);
    if (g->value[from.id].name) {
        weft_drop_name(g, to);
        weft_move_name(g, from, to);
    }
}

/* Who looks for a value that nobody reads any more finds the one that is read in its place (weft_plan_find). */
static void take_place(struct weft_graph *g, weft_val from, weft_val to)
{
    g->value[from.id].heir = to;
    g->value[to.id].heir = WEFT_NO_VALUE;
    if (g->value[from.id].name && !g->value[to.id].name && !g->value[from.id].is_param)
        weft_move_name(g, from, to);
}

static int replace(void *arg)
{
    const struct edit *e = arg;
    struct weft_graph *const g = e->graph;
    if (weft_uneditable(g) || check_value(g, "the value to be replaced", e->from) != WEFT_OK ||
        check_value(g, "the new value", e->to) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    const weft_val from = {.id = e->from.id}, to = {.id = e->to.id};
    if (weft_is(from, to))
        return weft_wrong(g->context, weft_value_text(g, from), "a value is not replaced by itself");
    weft_require(g, WEFT_ORDER);
    const uint32_t behind = position_of(g, to);
    if (check_types(g, from, to) != WEFT_OK || check_returns(g, from, to) != WEFT_OK ||
        check_readers(g, from, behind) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    const weft_node maker = weft_def(g, to);
    if (g->value[from.id].returns && maker.id && is_decided(g, maker)) /* it would have to write another layout */
        return refuse_decided(g, maker);
    replace_reads(g, from, to, behind);
    replace_returns(g, from, to);
    if (g->value[from.id].uses == 0)
        take_place(g, from, to);
    return WEFT_OK;
}

int weft_graph_replace(struct weft_graph *graph, weft_val from, weft_val to)
{
    return graph ? weft_protected_graph(graph, replace, &(struct edit){.graph = graph, .from = from, .to = to})
                 : WEFT_ERR_ARGUMENT;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static int erase(void *arg)
{
    const struct edit *e = arg;
    struct weft_graph *const g = e->graph;
    if (check_node(g, e->node) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    const weft_node n = {.id = e->node.id};
    if (weft_op_of(g, n)->traits & WEFT_DATA)
        return weft_wrong(g->context, name_of(g, n),
                          "the node defines a size, which types elsewhere may mention: it cannot be erased");
    for (unsigned i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        if (g->value[v.id].uses || g->value[v.id].returns)
            return weft_wrong(g->context, weft_value_text(g, v), "%s, so its node cannot be erased",
                              g->value[v.id].returns ? "it is a result of the graph" : "it is read");
    }
    weft_erase_node(g, n);
    return WEFT_OK;
}

int weft_graph_erase(struct weft_graph *graph, weft_node node)
{
    return graph ? weft_protected_graph(graph, erase, &(struct edit){.graph = graph, .node = node})
                 : WEFT_ERR_ARGUMENT;
}
