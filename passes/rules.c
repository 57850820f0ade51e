/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: the walk that passes made of local rules share, and what it means to put one value in the place of another.
 *
 * A rule looks at one node and the few behind its operands. The walk goes in order of execution, so operands are in
 * their final form when a node is looked at; after a rewrite it steps back to whatever was inserted and looks at that
 * first. One walk therefore reaches a fixed point of most rule sets, and its cost is linear in nodes plus rewrites.
 * Rules are found by opcode.
 *
 * Why not a pattern language: there are a few dozen rules, and a C function can be stepped through.
 *
 * What a caller sees of a graph is the names, types and layouts of its parameters and results. So a result is
 * never merged with a parameter or another result: the caller binds each to memory of its own, a copy is due
 * anyway, and the name would be lost. Inside bodies of `if` and `loop` nobody looks, and values merge freely. */
#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- substitution ----------------------------------------------------------------------------------------------- */

/* May the returns of `from` move to `to` as well? */
static bool can_move_returns(const struct weft_graph *graph, weft_val from, weft_val to)
{
    const struct weft_value *old = &graph->value[from.id], *new = &graph->value[to.id];
    if (old->returns == 0)
        return false;
    if (graph->root != graph)
        return true;
    if (new->is_param || new->returns)
        return false;
    /* A relayout says where its result lives; so does a kernel that has been chosen. */
    const bool placed = (weft_op_of(graph, new->def)->traits & WEFT_PLACEMENT) || weft_is_decided(graph, new->def);
    return old->layout == new->layout || !placed;
}

bool weft_can_substitute(const struct weft_graph *graph, weft_val from, weft_val to)
{
    return !weft_is(from, to) && (graph->value[from.id].uses > 0 || can_move_returns(graph, from, to));
}

void weft_substitute(struct weft_graph *graph, weft_val from, weft_val to)
{
    weft_assert(weft_type_same(weft_type_of(graph, from), weft_type_of(graph, to)));
    if (graph->value[from.id].returns > 0 && !can_move_returns(graph, from, to)) {
        while (graph->value[from.id].first_use) {
            const struct weft_operand *use = &graph->slot[graph->value[from.id].first_use - 1];
            const uint32_t slot = graph->value[from.id].first_use - 1;
            weft_replace_operand(graph, use->node, slot - graph->node[use->node.id].first_operand, to);
        }
        return;
    }
    const bool is_result = graph->value[from.id].returns > 0 && graph->root == graph;
    struct weft_value *new = &graph->value[to.id];
    const bool is_new = new->uses == 0 && new->returns == 0 && !new->is_param;
    if (is_result || is_new) /* what was built for this lives where the old value did */
        weft_take_layout(graph, to, from);
    else if (graph->value[from.id].stated && new->layout == graph->value[from.id].layout && !new->is_param)
        new->stated = true; /* what was required of the old value still is */
    if (is_result && graph->value[from.id].name)
        weft_drop_name(graph, to); /* it takes the result's */
    weft_replace_uses(graph, from, to);
}

void weft_erase_unused(struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = &graph->node[node.id];
    for (unsigned i = 0; i < info->results; i++)
        if (graph->value[info->first_result + i].uses || graph->value[info->first_result + i].returns)
            return;
    weft_erase_node(graph, node);
}

/* --- the walk --------------------------------------------------------------------------------------------------- */

#define MAX_RULES 160

/* Rules by opcode, as chains through the rows of all sets: chain[i] is the next row for the same opcode, + 1. Bodies
 * are many, and each has its walk: the root keeps the index for the run of one pass. */
struct weft_rule_index {
    const struct weft_rule *sets; /* the first rule of the first set, with the pass and its run: what it was made for */
    const char *pass;
    uint32_t run;
    unsigned count;
    const struct weft_rule *rule[MAX_RULES];
    bool several[MAX_RULES];
    uint8_t first[WEFT_OP_COUNT], last[WEFT_OP_COUNT], chain[MAX_RULES];
};

static bool is_skipped(const char *pass, const struct weft_rule *rule)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", pass, rule->name);
    return weft_environment_names("WEFT_SKIP", name, /* all= */ false);
}

static void make_index(struct weft_rule_index *index, const char *pass, const struct weft_rule_set *sets,
                       unsigned count)
{
    unsigned rules = 0;
    const bool skips = getenv("WEFT_SKIP");
    for (unsigned s = 0; s < count; s++)
        for (unsigned i = 0; i < sets[s].count; i++) {
            const struct weft_rule *rule = &sets[s].rule[i];
            if (skips && is_skipped(pass, rule))
                continue;
            weft_assert(rules < MAX_RULES);
            index->several[rules] = sets[s].several;
            index->rule[rules++] = rule;
            if (index->last[rule->op])
                index->chain[index->last[rule->op] - 1] = (uint8_t)rules;
            else
                index->first[rule->op] = (uint8_t)rules;
            index->last[rule->op] = (uint8_t)rules;
        }
}

static const struct weft_rule_index *index_for(struct weft_graph *root, const char *pass,
                                               const struct weft_rule_set *sets, unsigned count)
{
    struct weft_rule_index *index = root->rule_index;
    if (index && index->pass == pass && index->sets == sets->rule && index->count == count &&
        index->run == root->records + 1)
        return index;
    if (!index)
        index = root->rule_index = weft_new(root->arena, struct weft_rule_index, 1);
    *index = (struct weft_rule_index){.sets = sets->rule, .pass = pass, .run = root->records + 1, .count = count};
    make_index(index, pass, sets, count);
    return index;
}

bool weft_rewrite_begin(struct weft_rewriting *rewriting)
{
    weft_assert(!rewriting->permitted);
    struct weft_graph *graph = rewriting->graph;
    const weft_val result = weft_result(graph, rewriting->node, 0);
    char who[96];
    snprintf(who, sizeof who, "%s.%s", rewriting->pass, rewriting->rule->name);
    if (!weft_permit(graph, who, result))
        return false;
    rewriting->permitted = true;
    if (graph->value[result.id].name) /* what a rewrite made on the way has none, and nobody asks where it went */
        weft_add_remark(graph, who, result, "done", "%s", rewriting->rule->reason);
    return true;
}

/* Is the node all that stands between a result and a parameter or another result, although it changes nothing? */
static bool only_returns(const struct weft_graph *graph, weft_node node, weft_val value)
{
    const struct weft_value *other = &graph->value[value.id];
    return graph->value[weft_result(graph, node, 0).id].returns > 0 && (other->is_param || other->returns) &&
           !weft_is_view(graph, node) && !(weft_op_of(graph, node)->traits & WEFT_PLACEMENT);
}

weft_val weft_rewrite_to(struct weft_rewriting *rewriting, weft_val value)
{
    struct weft_graph *graph = rewriting->graph;
    const weft_val result = weft_result(graph, rewriting->node, 0);
    const bool moves = weft_can_substitute(graph, result, value);
    if ((!moves && !only_returns(graph, rewriting->node, value)) || !weft_rewrite_begin(rewriting))
        return WEFT_NO_VALUE;
    return moves ? value : weft_build_reshape(&rewriting->build, value, weft_type_of(graph, result));
}

/* Messages and explanations about what a rule has made point to where the old node came from. */
static void inherit_source(struct weft_graph *graph, weft_node old, uint32_t first_new)
{
    for (uint32_t id = first_new; id < graph->nodes; id++) {
        graph->node[id].name = graph->node[old.id].name;
        graph->node[id].line = graph->node[old.id].line;
    }
}

static bool try_chain(struct weft_rewriting *rewriting, const struct weft_rule_index *index, int op)
{
    struct weft_graph *graph = rewriting->graph;
    const weft_node node = rewriting->node;
    for (unsigned i = index->first[op]; i; i = index->chain[i - 1]) {
        if (graph->node[node.id].results != 1 && !index->several[i - 1])
            continue;
        rewriting->rule = index->rule[i - 1];
        rewriting->permitted = false;
        rewriting->build = (struct weft_builder){graph, node};
        const uint32_t first_new = graph->nodes;
        const weft_val to = rewriting->rule->apply(rewriting, node);
        if (!to.id)
            continue;
        weft_assert(rewriting->permitted);
        const weft_val result = weft_result(graph, node, 0);
        if (!weft_is(to, result)) {
            inherit_source(graph, node, first_new);
            weft_substitute(graph, result, to);
            weft_erase_unused(graph, node);
        }
        return true;
    }
    return false;
}

static bool is_open(const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = &graph->node[node.id];
    bool is_read = false;
    for (unsigned i = 0; i < info->results; i++)
        is_read |= graph->value[info->first_result + i].uses > 0 || graph->value[info->first_result + i].returns > 0;
    return is_read && !info->dead && !weft_is_decided(graph, node);
}

bool weft_apply_rules(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets, unsigned count)
{
    return weft_apply_rules_with(graph, pass, sets, count, NULL);
}

bool weft_apply_rules_with(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets, unsigned count,
                           const void *facts)
{
    return weft_apply_rules_unless(graph, pass, sets, count, facts, NULL, NULL);
}

bool weft_apply_rules_unless(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets,
                             unsigned count, const void *facts, weft_stays_fn *stays, const struct weft_target *target)
{
    const struct weft_rule_index *index = index_for(graph->root, pass, sets, count);
    struct weft_rewriting rewriting = {.graph = graph, .pass = pass, .facts = facts};
    /* Rules that undo each other are a broken invariant; without assertions the walk just ends. */
    uint64_t left = 64 * ((uint64_t)graph->live_nodes + 16);
    bool changed = false;
    const struct weft_place outside = graph->context->here;
    for (weft_node node = graph->first; node.id;) {
        const weft_node previous = graph->node[node.id].previous;
        rewriting.node = node;
        graph->context->here.where = graph->node[node.id].name ? graph->node[node.id].name : outside.where;
        const bool is_looked_at = is_open(graph, node) && !(stays && stays(target, graph, node));
        if (!is_looked_at || !(try_chain(&rewriting, index, weft_opcode_of(graph, node)) ||
                               try_chain(&rewriting, index, WEFT_OP_NONE))) {
            node = graph->node[node.id].next;
            continue;
        }
        changed = true;
        weft_assert(left > 0);
        if (left-- == 0)
            break;
        node = previous.id ? graph->node[previous.id].next : graph->first;
    }
    graph->context->here = outside;
    return changed;
}

/* --- questions, constants, remarks ------------------------------------------------------------------------------ */

bool weft_is_decided(const struct weft_graph *graph, weft_node node)
{
    return graph->node[node.id].plan || graph->node[node.id].group;
}

bool weft_is_dense(const struct weft_graph *graph, weft_val value)
{
    const struct weft_layout layout = weft_layout_of(graph, value);
    return layout.kind == WEFT_STORED && layout.dense && layout.axes == weft_type_of(graph, value)->rank;
}

bool weft_has_one_use(const struct weft_graph *graph, weft_val value)
{
    return graph->value[value.id].uses == 1 && graph->value[value.id].returns == 0;
}

int64_t weft_value_bytes(const struct weft_graph *graph, weft_val value)
{
    const struct weft_type *type = weft_type_of(graph, value);
    return weft_dtype_bytes(type->dtype, weft_dim_value(weft_type_elements(graph->dims, type)));
}

int64_t weft_constant_bytes(const struct weft_graph *graph, weft_val value)
{
    return weft_const_data(graph, value) ? weft_value_bytes(graph, value) : 0;
}

weft_val weft_build_number(struct weft_builder *b, const struct weft_type *type, const void *data)
{
    const bool integer = !weft_dtype_is_float(type->dtype);
    return weft_build_element(b, type, &(struct weft_element){
        .is_integer = integer,
        .real = integer ? 0 : weft_load_real(type->dtype, data, 0),
        .integer = integer ? weft_load_integer(type->dtype, data, 0) : 0});
}

const void *weft_elements(struct weft_graph *graph, weft_val constant)
{
    const void *data = weft_const_data(graph, constant);
    if (data)
        return data;
    const struct weft_type *type = weft_type_of(graph, constant);
    const int64_t n = weft_dim_value(weft_type_elements(graph->dims, type));
    void *packed = weft_arena_new(&graph->root->scratch, (size_t)weft_dtype_bytes(type->dtype, n));
    weft_const_write(graph, constant, packed);
    return packed;
}

void weft_read_reals(struct weft_graph *graph, weft_val constant, double *ret)
{
    const struct weft_type *type = weft_type_of(graph, constant);
    const int64_t n = weft_dim_value(weft_type_elements(graph->dims, type));
    const void *data = weft_elements(graph, constant);
    for (int64_t i = 0; i < n; i++)
        ret[i] = weft_load_real(type->dtype, data, i);
}

void weft_refuse(struct weft_graph *graph, const char *who, weft_val where, const char *format, ...)
{
    if (!graph->value[where.id].name)
        return;
    char reason[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const struct weft_graph *root = graph->root;
    const char *place = weft_value_text(graph, where);
    for (uint32_t i = root->remarks; i > 0 && i + 256 > root->remarks; i--) {
        const struct weft_remark *old = &root->remark[i - 1];
        if (strcmp(old->who, who) == 0 && strcmp(old->where, place) == 0 && strcmp(old->reason, reason) == 0)
            return;
    }
    weft_add_remark(graph, who, where, "refused", "%s", reason);
}
