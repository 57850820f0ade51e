/* SPDX-License-Identifier: Apache-2.0 */
/* dead_results: drop results that nobody reads from nodes that have several.
 *
 *   graph @body(%i: i64[], %a: f32[4], %b: f32[4]) {        graph @body(%i: i64[], %b: f32[4]) {
 *     %a2: f32[4] = add %a, %b                                %b2: f32[4] = neg %b
 *     %b2: f32[4] = neg %b                                    return %b2
 *     return %a2, %b2                                   →   }
 *   }                                                       %r: f32[4] = loop %n, %y body=@body
 *   %q: f32[4], %r: f32[4] = loop %n, %x, %y body=@body     return %r
 *   return %r
 *
 * if      A result that is not read goes from both bodies, and with it what only it needed there: operands that
 *         neither body reads any more are not handed over.
 * loop    A collected result likewise; with the last of them goes the limit of trips that it sets, so the number of
 *         trips becomes the smaller one of both. A carried value goes if its result is not read and no other live
 *         value of the body depends on it: a value that only feeds itself is dead, so this is a search backwards from
 *         what is read, through the body and around the loop. A carried value that the body returns as it got it is no
 *         longer carried but handed to each trip, and whoever reads its result reads what the loop was given.
 * top_k   One largest element whose value is not read is an arg_max.
 * attention_sums   Without a reader of the sums it is an attention.
 * max_pool_index   Without a reader of the places it is a max_pool.
 *
 * A node cannot change its number of results, so a new one takes the place of the old one, with the same bodies. A body
 * that two nodes share stays as it is. One node is one rewrite; every bit of the results stays.
 * Node and bodies fit each other only before and after all of it, so refused memory must not end it in between: the new
 * node is made first, with outlines for bodies, and from there on nothing allocates.
 * Why not in dce: that looks at nodes, not into bodies, and is a page. Needs: nothing.
 * Not done: sort and unique have no form with fewer results; a loop whose trips are known not to happen. */
#include "passes/passes.h"

#include <string.h>

/* A control node and what of it stays. */
struct pruning {
    struct weft_graph *graph;
    weft_node node;
    struct weft_graph *body[2];   /* one of a loop, two of an if */
    unsigned bodies, first_param; /* operand 1 is this parameter of a body */
    unsigned operands, results;   /* without operand 0 */
    unsigned carried;             /* of a loop */
    bool *same;                   /* by carried value: a body returns it as it got it */
    bool *keep_result;            /* by result */
    bool *live[2];                /* by body and value id */
    bool *keep_operand;           /* by operand behind the first */
};

static bool is_read(const struct weft_graph *g, weft_val v) { return g->value[v.id].uses || g->value[v.id].returns; }

/* --- what is live ------------------------------------------------------------------------------------------------ */

struct search {
    struct pruning *p;
    unsigned body;
    weft_val *stack;    /* live values whose reasons have not been looked at; a value gets here once */
    uint32_t height;
};

static void reach(struct search *s, weft_val v)
{
    if (s->p->live[s->body][v.id])
        return;
    s->p->live[s->body][v.id] = true;
    s->stack[s->height++] = v;
}

/* A carried value that is read in a trip is what the trip before has returned. */
static void reach_around(struct search *s, const struct weft_value *param)
{
    struct pruning *p = s->p;
    const uint32_t i = param->result - p->first_param;
    if (param->result < p->first_param || i >= p->carried || p->same[i])
        return;
    p->keep_result[i] = true;
    reach(s, p->body[0]->ret[i].value);
}

static void find_live(struct pruning *p, unsigned which)
{
    struct weft_graph *body = p->body[which];
    struct search s = {.p = p, .body = which};
    p->live[which] = weft_new(&body->root->scratch, bool, body->values);
    s.stack = weft_new(&body->root->scratch, weft_val, body->values);
    for (unsigned i = 0; i < p->results; i++)
        if (p->keep_result[i])
            reach(&s, body->ret[i].value);
    while (s.height > 0) {
        const weft_val v = s.stack[--s.height];
        const weft_node def = weft_def(body, v);
        if (!def.id)
            reach_around(&s, &body->value[v.id]);
        for (unsigned i = 0; def.id && i < body->node[def.id].operands; i++)
            reach(&s, weft_operand(body, def, i));
    }
    for (unsigned i = 0; i < p->operands; i++)
        p->keep_operand[i] |= p->live[which][body->param[p->first_param + i].id];
}

/* --- the decision ------------------------------------------------------------------------------------------------ */

static bool node_is_live(const struct weft_graph *body, weft_node n, const bool *live)
{
    for (unsigned i = 0; i < body->node[n.id].results; i++)
        if (live[weft_result(body, n, i).id])
            return true;
    return false;
}

/* Results of the whole graph are not merged with its parameters: such a value stays carried. */
static void find_same(struct pruning *p, bool has_condition)
{
    const struct weft_graph *g = p->graph, *body = p->body[0];
    for (unsigned i = has_condition; i < p->carried; i++) {
        const weft_val result = weft_result(g, p->node, i);
        p->same[i] = weft_is(body->ret[i].value, body->param[p->first_param + i]) &&
                     (g->value[result.id].returns == 0 || g->root != g);
    }
}

/* Is there anything to drop? */
static bool decide(struct pruning *p)
{
    const struct weft_graph *g = p->graph;
    const bool is_loop = p->bodies == 1;
    const bool has_condition = is_loop && weft_attr_int(g, p->node, WEFT_ATTR_while) != 0;
    if (is_loop)
        find_same(p, has_condition);
    bool any = false, drops = false;
    for (unsigned i = 0; i < p->results; i++) {
        const bool same = i < p->carried && p->same[i];
        p->keep_result[i] = !same && (is_read(g, weft_result(g, p->node, i)) || (has_condition && i == 0));
        any |= is_read(g, weft_result(g, p->node, i));
        drops |= same;
    }
    if (!any) /* dce drops it as a whole */
        return false;
    for (unsigned b = 0; b < p->bodies; b++)
        find_live(p, b);
    for (unsigned i = 0; i < p->carried; i++)
        p->keep_operand[i] |= p->keep_result[i];
    for (unsigned i = 0; i < p->results; i++)
        drops |= !p->keep_result[i];
    for (unsigned i = 0; i < p->operands; i++)
        drops |= !p->keep_operand[i];
    return drops;
}

/* --- the rewrite ------------------------------------------------------------------------------------------------- */

/* What takes nothing but the types of a body that is still to be pruned: the new node is inferred from it. */
static struct weft_graph *outline(const struct pruning *p, unsigned which, const weft_val *param, uint32_t params)
{
    const struct weft_graph *body = p->body[which];
    struct weft_graph *stub = weft_graph_new_body(p->graph, body->name);
    struct weft_builder b = {.graph = stub};
    for (uint32_t i = 0; i < params; i++)
        weft_add_param(stub, NULL, weft_type_of(body, param[i]));
    for (unsigned i = 0; i < p->results; i++)
        if (p->keep_result[i])
            weft_add_return(stub, weft_build_splat(&b, weft_type_of(body, body->ret[i].value), 0), WEFT_NO_VALUE);
    return stub;
}

/* Allocates nothing: there is room for the returns, since there were more. */
static void prune_body(const struct pruning *p, unsigned which, weft_val *param, uint32_t params)
{
    struct weft_graph *body = p->body[which];
    weft_clear_returns(body);
    for (unsigned i = 0; i < p->results; i++) /* those behind the last that is kept are still in their places */
        if (p->keep_result[i])
            weft_add_return(body, body->ret[i].value, WEFT_NO_VALUE);
    body->returned = true;
    for (weft_node n = body->last, previous; n.id; n = previous) {
        previous = body->node[n.id].previous;
        if (!node_is_live(body, n, p->live[which]))
            weft_erase_node(body, n);
    }
    weft_keep_params(body, param, params);
}

/* Without what says how many are carried and how long the collection is, where that is clear or means nothing. */
static unsigned prune_attrs(const struct pruning *p, unsigned carried, bool captures, bool collects,
                            struct weft_attr *ret)
{
    const struct weft_node_info *info = weft_node_of(p->graph, p->node);
    unsigned count = 0;
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].key != WEFT_ATTR_carried && (info->attr[i].key != WEFT_ATTR_length || collects))
            ret[count++] = info->attr[i];
    if (captures)
        ret[count++] = weft_attr_of_int(WEFT_ATTR_carried, carried);
    return count;
}

/* A loop that collects ends when it has collected `length` elements. */
static weft_val limit_trips(const struct pruning *p, weft_val trips)
{
    struct weft_builder b = {p->graph, p->node};
    const struct weft_type type = {.dtype = WEFT_I64};
    const weft_dim length = weft_attr_dim(p->graph, p->node, WEFT_ATTR_length);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_value, 1, &length);
    return weft_build_binary(&b, WEFT_OP_min, trips, weft_build(&b, WEFT_OP_extents, 0, NULL, 1, &attr, &type));
}

/* Operands, and parameters of each body, in their new order: carried, no longer carried, handed over. */
struct order {
    weft_val *operand, *param[2];
    unsigned operands, params, carried;
};

static void add_param(const struct pruning *p, struct order *order, unsigned i)
{
    for (unsigned b = 0; b < p->bodies; b++)
        order->param[b][order->params] = p->body[b]->param[i];
    order->params++;
}

static void add_operand(const struct pruning *p, struct order *order, unsigned i)
{
    if (!p->keep_operand[i])
        return;
    order->operand[order->operands++] = weft_operand(p->graph, p->node, i + 1);
    add_param(p, order, p->first_param + i);
}

static struct order order_operands(const struct pruning *p)
{
    struct weft_arena *scratch = &p->graph->root->scratch;
    struct order order = {.operand = weft_new(scratch, weft_val, p->operands + 1)};
    for (unsigned b = 0; b < p->bodies; b++) /* the bodies keep them */
        order.param[b] = weft_new(p->graph->arena, weft_val, p->operands + 1);
    order.operand[order.operands++] = weft_operand(p->graph, p->node, 0);
    if (p->first_param == 1)
        add_param(p, &order, 0);
    for (unsigned i = 0; i < p->carried; i++)
        if (!p->same[i])
            add_operand(p, &order, i);
    order.carried = order.operands - 1;
    for (unsigned i = 0; i < p->carried; i++)
        if (p->same[i])
            add_operand(p, &order, i);
    for (unsigned i = p->carried; i < p->operands; i++)
        add_operand(p, &order, i);
    return order;
}

/* The node with what is kept of it, before the old one. Its bodies are outlines, the last of the graph's bodies. */
static weft_node build_pruned(const struct pruning *p, const struct order *order, bool collects,
                              struct weft_graph *outlines[2])
{
    struct weft_graph *g = p->graph;
    struct weft_attr *attr = weft_new(&g->root->scratch, struct weft_attr, g->node[p->node.id].attrs + 1);
    const bool captures = p->bodies == 1 && order->carried + 1 < order->operands;
    const unsigned attrs = prune_attrs(p, order->carried, captures, collects, attr);
    for (unsigned b = 0; b < p->bodies; b++) {
        outlines[b] = outline(p, b, order->param[b], order->params);
        for (unsigned i = 0; i < attrs; i++)
            if (attr[i].kind == WEFT_ATTR_GRAPH && attr[i].graph == p->body[b])
                attr[i].graph = outlines[b];
    }
    const weft_node new = weft_add_node(g, &(struct weft_node_spec){
        .op = weft_opcode_of(g, p->node), .operand = order->operand, .operands = order->operands, .attr = attr,
        .attrs = attrs, .before = p->node, .name = g->node[p->node.id].name,
        .place = {.line = g->node[p->node.id].line}});
    weft_assert(new.id);
    return new;
}

static void rewrite(struct pruning *p)
{
    struct weft_graph *g = p->graph;
    for (unsigned i = 0; i < p->carried; i++)
        if (p->same[i] && is_read(g, weft_result(g, p->node, i)))
            weft_substitute(g, weft_result(g, p->node, i), weft_operand(g, p->node, i + 1));
    unsigned kept = 0, collected = 0;
    for (unsigned i = 0; i < p->results; i++) {
        kept += p->keep_result[i];
        collected += p->keep_result[i] && i >= p->carried;
    }
    if (kept == 0) /* all that was read was there before the loop; dce drops it */
        return;
    struct order order = order_operands(p);
    if (p->bodies == 1 && p->results > p->carried && collected == 0)
        order.operand[0] = limit_trips(p, order.operand[0]);
    struct weft_graph *outlines[2];
    const weft_node new = build_pruned(p, &order, collected > 0, outlines);
    for (unsigned b = 0; b < p->bodies; b++) {
        prune_body(p, b, order.param[b], order.params);
        weft_replace_body(g, new, outlines[b], p->body[b]);
    }
    g->bodies -= p->bodies; /* the outlines have served */
    for (unsigned i = 0, to = 0; i < p->results; i++)
        if (p->keep_result[i])
            weft_substitute(g, weft_result(g, p->node, i), weft_result(g, new, to++));
    weft_erase_node(g, p->node);
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

static bool prune(struct weft_graph *graph, weft_node n, const uint32_t *mentions)
{
    struct weft_arena *scratch = &graph->root->scratch;
    const struct weft_node_info *info = weft_node_of(graph, n);
    struct pruning p = {.graph = graph, .node = n, .operands = info->operands - 1, .results = info->results};
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].kind == WEFT_ATTR_GRAPH) {
            p.body[p.bodies++] = info->attr[i].graph;
            if (mentions[info->attr[i].graph->index] != 1)
                return false;
        }
    const bool is_loop = weft_opcode_of(graph, n) == WEFT_OP_loop;
    p.first_param = is_loop;
    if (is_loop)
        p.carried = weft_attr_find(graph, n, WEFT_ATTR_carried) ? (unsigned)weft_attr_int(graph, n, WEFT_ATTR_carried)
                                                                : p.operands;
    p.same = weft_new(scratch, bool, p.carried + 1);
    p.keep_result = weft_new(scratch, bool, p.results + 1);
    p.keep_operand = weft_new(scratch, bool, p.operands + 1);
    if (!decide(&p) || !weft_permit(graph, "dead_results", weft_result(graph, n, 0)))
        return false;
    if (graph->value[info->first_result].name)
        weft_add_remark(graph, "dead_results", weft_result(graph, n, 0), "done",
                        "unread results are dropped, unchanging loop-carried values become operands");
    rewrite(&p);
    return true;
}

/* NaN beats all in both, and of equal elements both take the first. */
static bool choose_one(struct weft_graph *g, weft_node n)
{
    if (!weft_dim_is(weft_attr_dim(g, n, WEFT_ATTR_k), 1) || weft_attr_int(g, n, WEFT_ATTR_largest) == 0 ||
        is_read(g, weft_result(g, n, 0)) || !is_read(g, weft_result(g, n, 1)) ||
        !weft_permit(g, "dead_results", weft_result(g, n, 1)))
        return false;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_axis, weft_attr_int(g, n, WEFT_ATTR_axis)),
                                     weft_attr_of_int(WEFT_ATTR_keepdims, 1)};
    struct weft_builder b = {g, n};
    if (weft_value_of(g, weft_result(g, n, 1))->name)
        weft_add_remark(g, "dead_results", weft_result(g, n, 1), "done", "only the index is read");
    weft_substitute(g, weft_result(g, n, 1), weft_build(&b, WEFT_OP_arg_max, 1, &x, 2, attr, NULL));
    weft_erase_node(g, n);
    return true;
}

static bool drop_sums(struct weft_graph *g, weft_node n)
{
    const struct weft_node_info info = g->node[n.id];
    weft_val operand[4];
    if (!is_read(g, weft_result(g, n, 0)) || is_read(g, weft_result(g, n, 1)) ||
        !weft_permit(g, "dead_results", weft_result(g, n, 0)))
        return false;
    for (unsigned i = 0; i < info.operands; i++)
        operand[i] = weft_operand(g, n, i);
    struct weft_builder b = {g, n};
    if (weft_value_of(g, weft_result(g, n, 0))->name)
        weft_add_remark(g, "dead_results", weft_result(g, n, 0), "done", "nobody reads the sums of rows");
    const weft_val y = weft_build(&b, WEFT_OP_attention, info.operands, operand, info.attrs, info.attr, NULL);
    weft_substitute(g, weft_result(g, n, 0), y);
    weft_erase_node(g, n);
    return true;
}

static bool drop_places(struct weft_graph *g, weft_node n)
{
    const struct weft_node_info info = g->node[n.id];
    const weft_val x = weft_operand(g, n, 0);
    struct weft_attr attr[8];
    unsigned attrs = 0;
    if (!is_read(g, weft_result(g, n, 0)) || is_read(g, weft_result(g, n, 1)) ||
        !weft_permit(g, "dead_results", weft_result(g, n, 0)))
        return false;
    for (unsigned i = 0; i < info.attrs; i++)
        if (weft_attr_spec_find(WEFT_OP_max_pool, info.attr[i].key))
            attr[attrs++] = info.attr[i];
    struct weft_builder b = {g, n};
    if (weft_value_of(g, weft_result(g, n, 0))->name)
        weft_add_remark(g, "dead_results", weft_result(g, n, 0), "done", "nobody reads the places of maxima");
    weft_substitute(g, weft_result(g, n, 0), weft_build(&b, WEFT_OP_max_pool, 1, &x, attrs, attr, NULL));
    weft_erase_node(g, n);
    return true;
}

bool weft_pass_dead_results(struct weft_graph *graph, const struct weft_target *target)
{
    const uint32_t *mentions = weft_count_holders(graph);
    bool changed = false;
    weft_foreach_node(graph, n) {
        if (weft_is_decided(graph, n))
            continue;
        if (weft_op_of(graph, n)->traits & WEFT_CONTROL)
            changed |= prune(graph, n, mentions);
        else if (weft_opcode_of(graph, n) == WEFT_OP_top_k)
            changed |= choose_one(graph, n);
        else if (weft_opcode_of(graph, n) == WEFT_OP_attention_sums)
            changed |= drop_sums(graph, n);
        else if (weft_opcode_of(graph, n) == WEFT_OP_max_pool_index)
            changed |= drop_places(graph, n);
    }
    return changed;
}
