/* SPDX-License-Identifier: Apache-2.0 */
/* region.c: finding and rewriting what stands between two reshapes. The contract: region.h. */
#include "passes/region.h"

enum { MOST_OPERANDS = 8 };

struct region {
    struct weft_graph *graph;
    struct weft_arena *arena;
    const struct weft_region_pass *pass;
    void *user;
    weft_val *member;              /* values of its shape, in order of discovery */
    weft_node *node;               /* elementwise, reductions, reshapes at the end; each once */
    uint32_t members, member_capacity, nodes, node_capacity;
    bool closes;                   /* there is such a reshape */
    uint32_t *seen, *node_seen;    /* by value, by node: number of the region that reached it */
    weft_val *now;                 /* by value of the region: what stands for it */
    uint32_t number;
    uint32_t all_values, all_nodes; /* of the graph as it came: what is built on the way has no place in the arrays */
    bool changed;
};

static uint32_t seen(const struct region *r, weft_val v) { return v.id < r->all_values ? r->seen[v.id] : 0; }

static bool has_shape(const struct region *r, weft_val v)
{
    struct weft_type type = *r->pass->from(r->user);
    type.dtype = weft_type_of(r->graph, v)->dtype;
    return weft_type_same(weft_type_of(r->graph, v), &type);
}

/* A reduction over axes that it lists. */
static bool is_reduction(int op)
{
    return (weft_ops[op].traits & WEFT_REDUCTION) && weft_attr_spec_find(op, WEFT_ATTR_axes);
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static void add_member(struct region *r, weft_val v)
{
    r->seen[v.id] = r->number;
    r->member = weft_grow(r->arena, r->member, &r->member_capacity, r->members + 1, sizeof *r->member);
    r->member[r->members++] = v;
}

/* A user of a member: part of the region, or the end of it in vain. */
static bool add_user(struct region *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    if (n.id >= r->all_nodes || weft_is_decided(g, n) || g->node[n.id].attrs > WEFT_REBUILD_ATTRS ||
        g->node[n.id].operands > MOST_OPERANDS)
        return false;
    if (r->node_seen[n.id] == r->number)
        return true;
    const int op = weft_opcode_of(g, n);
    const weft_val result = weft_result(g, n, 0);
    r->node_seen[n.id] = r->number;
    r->node = weft_grow(r->arena, r->node, &r->node_capacity, r->nodes + 1, sizeof *r->node);
    r->node[r->nodes++] = n;
    if (op == WEFT_OP_reshape) {
        r->closes = true;
        return r->pass->ends(r->user, weft_type_of(g, result));
    }
    if (is_reduction(op))
        return r->pass->folds(r->user, n);
    if (!(weft_ops[op].traits & WEFT_ELEMENTWISE) || !has_shape(r, result) || g->value[result.id].returns ||
        seen(r, result))
        return false;
    add_member(r, result);
    return true;
}

static bool may_enter(const struct region *r, weft_val v)
{
    const struct weft_graph *const g = r->graph;
    struct weft_element element;
    if (seen(r, v) == r->number || (weft_is_const(g, v) && weft_const_splat(g, v, &element)))
        return true;
    const weft_node def = weft_def(g, v);
    const int op = def.id && has_shape(r, v) ? weft_opcode_of(g, def) : WEFT_OP_NONE;
    return (op == WEFT_OP_reshape || op == WEFT_OP_bcast) && r->pass->enters(r->user, def);
}

/* All that is reached from the result of a reshape; false if it cannot be rewritten. */
static bool find_region(struct region *r, weft_node reshape)
{
    struct weft_graph *const g = r->graph;
    const weft_val first = weft_result(g, reshape, 0);
    r->members = r->nodes = 0;
    r->closes = false;
    if (seen(r, first) || g->value[first.id].returns || weft_is_decided(g, reshape) || !r->pass->open(r->user, reshape))
        return false;
    r->number++;
    add_member(r, first);
    bool good = true;
    for (uint32_t i = 0; good && i < r->members; i++)
        for (uint32_t slot = g->value[r->member[i].id].first_use; good && slot; slot = g->slot[slot - 1].next)
            good = add_user(r, g->slot[slot - 1].node);
    good = good && r->closes && (r->members > 1 || !r->pass->elementwise);
    for (uint32_t i = 0; good && i < r->nodes; i++)
        for (unsigned k = 0; good && k < g->node[r->node[i].id].operands; k++)
            good = may_enter(r, weft_operand(g, r->node[i], k));
    return good;
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

static weft_val operand_now(struct region *r, struct weft_builder *b, weft_val v)
{
    struct weft_element element;
    if (seen(r, v) == r->number)
        return r->now[v.id];
    if (!weft_is_const(r->graph, v) || !weft_const_splat(r->graph, v, &element))
        return r->pass->bring(r->user, b, weft_def(r->graph, v));
    struct weft_type type = r->pass->to(r->user);
    type.dtype = weft_type_of(r->graph, v)->dtype;
    return weft_build_element(b, &type, &element);
}

/* What computes the result of a node at the end. */
static weft_val end_now(struct region *r, struct weft_builder *b, weft_node n)
{
    const struct weft_type type = *weft_type_of(r->graph, weft_result(r->graph, n, 0));
    const weft_val x = operand_now(r, b, weft_operand(r->graph, n, 0));
    if (weft_opcode_of(r->graph, n) == WEFT_OP_reshape) /* one that changes nothing may be returned */
        return weft_build_reshape(b, x, &type);
    const weft_val y = r->pass->fold(r->user, b, n, x);
    return weft_type_same(weft_type_of(r->graph, y), &type) ? y : weft_build_reshape(b, y, &type);
}

static weft_val elementwise_now(struct region *r, struct weft_builder *b, weft_node n)
{
    const struct weft_type type = r->pass->to(r->user);
    weft_val operand[MOST_OPERANDS];
    for (unsigned i = 0; i < r->graph->node[n.id].operands; i++)
        operand[i] = operand_now(r, b, weft_operand(r->graph, n, i));
    return weft_rebuild_elementwise(b, n, operand, &type);
}

static void rewrite(struct region *r, weft_node reshape)
{
    struct weft_graph *const g = r->graph;
    const weft_val first = weft_result(g, reshape, 0);
    if (!weft_permit(g, r->pass->name, first))
        return;
    weft_add_remark(g, r->pass->name, first, "done", "%u nodes run over the axes that this %s", r->nodes,
                    r->pass->does);
    weft_sort_nodes(g, r->arena, r->node, r->nodes);
    r->now[first.id] = r->pass->bring(r->user, &(struct weft_builder){g, reshape}, reshape);
    for (uint32_t i = 0; i < r->nodes; i++) {
        const weft_node n = r->node[i];
        const int op = weft_opcode_of(g, n);
        struct weft_builder b = {g, n};
        if (op == WEFT_OP_reshape || is_reduction(op))
            weft_substitute(g, weft_result(g, n, 0), end_now(r, &b, n));
        else
            r->now[weft_result(g, n, 0).id] = elementwise_now(r, &b, n);
    }
    for (uint32_t i = r->nodes; i-- > 0;)
        weft_erase_unused(g, r->node[i]);
    weft_erase_unused(g, reshape);
    r->changed = true;
}

bool weft_rewrite_regions(struct weft_graph *graph, const struct weft_region_pass *pass, void *user)
{
    struct weft_arena *const arena = &graph->root->scratch;
    struct region r = {.graph = graph, .arena = arena, .pass = pass, .user = user,
                       .seen = weft_new(arena, uint32_t, graph->values),
                       .node_seen = weft_new(arena, uint32_t, graph->nodes),
                       .now = weft_new(arena, weft_val, graph->values),
                       .all_values = graph->values, .all_nodes = graph->nodes};
    const weft_node last = graph->last;
    weft_foreach_node(graph, n) {
        if (n.id < r.all_nodes && weft_opcode_of(graph, n) == WEFT_OP_reshape && find_region(&r, n))
            rewrite(&r, n);
        if (n.id == last.id)
            break;
    }
    return r.changed;
}
