/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: every rule that a graph must keep, checked from scratch.
 *
 * Nothing that the graph stores about itself is believed: types are inferred again, use lists are counted against
 * the operand slots, elements of integer tensors are computed anew. So a pass that edits wrongly is found at once,
 * and not where a later pass trips over it. All findings are collected; a walk goes on as long as the links
 * themselves can be trusted.
 *
 * Inference reports through the context. While it runs here its messages are caught instead of delivered. */
#include "ir/parse.h"
#include "ir/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct validator {
    const struct weft_graph *graph;
    struct weft_arena *arena;
    struct weft_finding *finding;
    uint32_t findings, capacity;
    uint32_t *position;      /* by node id: rank in the order, from 1; 0: not in it */
    const char *prefix;      /* "in body @then: " */
    weft_node anchor;        /* for findings in bodies: the node of the root that holds the body */
};

static void report(struct validator *v, weft_node node, const char *format, ...) WEFT_PRINTF(3, 4);
static void report(struct validator *v, weft_node node, const char *format, ...)
{
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    v->finding = weft_grow(v->arena, v->finding, &v->capacity, v->findings + 1, sizeof *v->finding);
    v->finding[v->findings++] = (struct weft_finding){
        .node = v->prefix[0] ? v->anchor : node, .message = weft_arena_format(v->arena, "%s%s", v->prefix, message)};
}

static const char *text_of(const struct validator *v, weft_val value)
{
    return value.id && value.id < v->graph->values ? weft_value_text(v->graph, value) : "a value that does not exist";
}

static const char *type_text(struct validator *v, const struct weft_type *type)
{
    struct weft_text text = {.context = v->graph->context, .arena = v->arena};
    weft_type_print(v->graph->dims, type, &text);
    return text.data;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* False if the list of nodes is broken, so that nothing can be walked. */
static bool check_order(struct validator *v)
{
    const struct weft_graph *g = v->graph;
    uint32_t count = 0;
    weft_node previous = WEFT_NO_NODE;
    for (weft_node n = g->first; n.id; previous = n, n = g->node[n.id].next) {
        if (n.id >= g->nodes || v->position[n.id]) {
            report(v, previous, "the list of nodes runs to node %u, which %s", n.id,
                   n.id >= g->nodes ? "does not exist" : "it has visited already");
            return false;
        }
        v->position[n.id] = ++count;
        if (g->node[n.id].dead)
            report(v, n, "an erased node is still in the list");
        if (g->node[n.id].previous.id != previous.id)
            report(v, n, "the link back from a node does not lead to the node before it");
    }
    if (g->last.id != previous.id)
        report(v, previous, "the last node of the list is not the graph's last");
    if (g->live_nodes != count)
        report(v, WEFT_NO_NODE, "the graph counts %u live nodes, its list has %u", g->live_nodes, count);
    if (g->analyses & WEFT_ORDER)
        for (weft_node n = g->first; n.id && g->node[n.id].next.id; n = g->node[n.id].next)
            if (g->position[n.id] >= g->position[g->node[n.id].next.id])
                report(v, n, "the cached order is out of date");
    return true;
}

/* --- values and uses ---------------------------------------------------------------------------------------------- */

/* Defined at all, and before `user` (none: at the end of the graph)? */
static bool check_defined(struct validator *v, weft_val value, weft_node user)
{
    const struct weft_graph *g = v->graph;
    if (!value.id || value.id >= g->values) {
        report(v, user, "an operand or result is no value of this graph");
        return false;
    }
    const weft_node def = g->value[value.id].def;
    if (!def.id) {
        const uint32_t index = g->value[value.id].result;
        const bool right = g->value[value.id].is_param && index < g->params && weft_is(g->param[index], value);
        if (!right)
            report(v, user, "%s is neither a parameter nor the result of a node", text_of(v, value));
        return right;
    }
    if (def.id >= g->nodes || !v->position[def.id])
        report(v, user, "%s is a result of an erased node", text_of(v, value));
    else if (user.id && v->position[def.id] >= v->position[user.id])
        report(v, user, "%s is used before its definition", text_of(v, value));
    else
        return true;
    return false;
}

/* Counts each slot that a live node owns; what lists and counters say must come to the same. */
static void check_uses(struct validator *v, const uint32_t *slots_of)
{
    const struct weft_graph *g = v->graph;
    for (uint32_t id = 1; id < g->values; id++) {
        const weft_val value = {id};
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
            report(v, g->value[id].def, "the uses of %s are wrong: %u counted, %u found, %u in its list",
                   text_of(v, value), g->value[id].uses, slots_of[id], count);
    }
}

static void check_value(struct validator *v, weft_val value, weft_node node)
{
    const struct weft_graph *g = v->graph;
    const struct weft_value *info = &g->value[value.id];
    if (!weft_dtype_name(info->type.dtype) || info->type.rank > WEFT_MAX_RANK || !weft_extents_can_be(g, &info->type)) {
        report(v, node, "the type of %s is none", text_of(v, value));
        return;
    }
    if (info->name && !weft_is(weft_value_find(g, info->name, strlen(info->name)), value))
        report(v, node, "the name of %s is not its own", text_of(v, value));
    if (info->layout >= g->root->layouts) {
        report(v, node, "the layout of %s does not exist", text_of(v, value));
        return;
    }
    const struct weft_layout layout = weft_layout_of(g, value);
    const char *message = info->layout && layout.kind == WEFT_STORED ? weft_layout_check(&layout, &info->type) : NULL;
    if (message)
        report(v, node, "the layout of %s: %s", text_of(v, value), message);
    if (layout.kind == WEFT_REGISTER && info->is_param)
        report(v, node, "parameter %s must be stored: {-} is for values within a group", text_of(v, value));
    else if (layout.kind == WEFT_REGISTER && (!node.id || !g->node[node.id].group))
        report(v, node, "%s is {-}, but only a group keeps values in registers", text_of(v, value));
    else if (layout.kind == WEFT_REGISTER && info->returns)
        report(v, node, "%s is {-}, but the graph returns it", text_of(v, value));
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void check_attrs(struct validator *v, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(v->graph, node);
    const struct weft_attr_spec *spec = weft_ops[info->op].attrs;
    for (unsigned i = 0; i < info->attrs; i++) {
        const struct weft_attr *attr = &info->attr[i];
        if (attr->key >= WEFT_ATTR_COUNT || !weft_attr_spec_find(info->op, attr->key)) {
            report(v, node, "%s has no such attribute", weft_ops[info->op].name);
            continue;
        }
        while (spec->key != WEFT_ATTR_NONE && spec->key != attr->key)
            spec++;
        if (spec->key == WEFT_ATTR_NONE) {
            report(v, node, "attribute %s stands out of order or twice", weft_attr_names[attr->key]);
            return;
        }
        spec++;
        if (attr->kind != WEFT_ATTR_GRAPH)
            continue;
        bool own = false;
        for (uint32_t body = 0; body < v->graph->bodies; body++)
            own = own || v->graph->body[body] == attr->graph;
        if (!own)
            report(v, node, "%s=@%s is no body of this graph", weft_attr_names[attr->key],
                   attr->graph ? attr->graph->name : "");
    }
}

static void check_constant(struct validator *v, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(v->graph, node);
    const struct weft_constant *constant = info->constant;
    if ((info->op == WEFT_OP_const) != (constant != NULL)) {
        report(v, node, "a const node, and no other, has elements");
        return;
    }
    if (!constant || constant->kind == WEFT_CONST_SPLAT)
        return;
    const struct weft_type *type = weft_type_of(v->graph, weft_result(v->graph, node, 0));
    const weft_dim count = weft_type_elements(v->graph->dims, type);
    if (!weft_dim_is_constant(count)) {
        report(v, node, "a constant with symbolic extents can only be one number for all elements");
        return;
    }
    if (constant->kind != WEFT_CONST_BLOB)
        return;
    const uint64_t need = (uint64_t)weft_dtype_bytes(type->dtype, weft_dim_value(count));
    if (!constant->blob || constant->offset > constant->blob->bytes || need > constant->blob->bytes - constant->offset)
        report(v, node, "the constant's bytes lie outside its memory");
}

/* Catches what inference says. */
struct caught {
    struct weft_arena *arena;
    const char *message;
};

static void catch_message(void *user, const struct weft_diagnostic *diagnostic)
{
    struct caught *caught = user;
    if (!caught->message)
        caught->message = weft_arena_format(caught->arena, "%s", diagnostic->message);
}

static bool infer_quietly(struct validator *v, struct weft_infer *infer, const char **ret_message)
{
    struct weft_context *context = v->graph->context;
    struct caught caught = {.arena = v->arena};
    const struct weft_context saved = *context;
    context->diagnose = catch_message;
    context->diagnose_user = &caught;
    context->errors = (struct weft_text){.context = context, .arena = v->arena};
    context->error_count = 0;
    const bool right = weft_infer_run(infer);
    context->diagnose = saved.diagnose;
    context->diagnose_user = saved.diagnose_user;
    context->errors = saved.errors;
    context->error_count = saved.error_count;
    context->error_status = saved.error_status;
    *ret_message = caught.message ? caught.message : "inference fails";
    return right;
}

static void check_types(struct validator *v, weft_node node)
{
    struct weft_graph *g = (struct weft_graph *)v->graph; /* inference interns extents, and changes nothing else */
    const struct weft_node_info *info = weft_node_of(g, node);
    weft_val *operand = weft_new(v->arena, weft_val, info->operands);
    for (unsigned i = 0; i < info->operands; i++)
        operand[i] = weft_operand(g, node, i);
    struct weft_infer infer = {.graph = g,
                               .op = info->op,
                               .operand = operand,
                               .operands = info->operands,
                               .attr = info->attr,
                               .attrs = info->attrs,
                               .result = weft_new(v->arena, struct weft_type, info->results),
                               .results = info->results,
                               .place = &(struct weft_place){0},
                               .constant = info->constant};
    if (weft_ops[info->op].traits & WEFT_STATED)
        infer.result[0] = *weft_type_of(g, weft_result(g, node, 0));
    const char *message;
    if (!infer_quietly(v, &infer, &message)) {
        report(v, node, "%s", message);
        return;
    }
    for (unsigned i = 0; i < info->results; i++) {
        const weft_val result = weft_result(g, node, i);
        if (!weft_type_same(&infer.result[i], weft_type_of(g, result)))
            report(v, node, "%s is %s, but %s of these operands is %s", text_of(v, result),
                   type_text(v, weft_type_of(g, result)), weft_ops[info->op].name, type_text(v, &infer.result[i]));
    }
    const weft_dim *stored = info->results == 1 ? weft_value_of(g, weft_result(g, node, 0))->content : NULL;
    const weft_dim *known = stored ? weft_content_of(g, node) : NULL;
    const int64_t count = stored ? weft_dim_value(weft_type_elements(g->dims, &infer.result[0])) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!known || !weft_dim_same(stored[i], known[i])) {
            report(v, node, "the known elements of %s are out of date", text_of(v, weft_result(g, node, 0)));
            break;
        }
}

/* A value in registers is seen by its own group only. */
static void check_registers(struct validator *v, weft_node node, weft_val operand)
{
    const struct weft_graph *g = v->graph;
    const weft_node def = weft_def(g, operand);
    if (!def.id || weft_layout_of(g, operand).kind != WEFT_REGISTER || g->node[def.id].group == g->node[node.id].group)
        return;
    report(v, node, "%s is {-}: it exists only within its group", text_of(v, operand));
}

/* Everything about one node; false if its operands or results cannot be looked at. */
static bool check_node(struct validator *v, weft_node node, uint32_t *slots_of)
{
    const struct weft_graph *g = v->graph;
    const struct weft_node_info *info = weft_node_of(g, node);
    if (info->op == WEFT_OP_NONE || info->op >= WEFT_OP_COUNT || info->first_operand + info->operands > g->slots ||
        info->first_result + info->results > g->values) {
        report(v, node, "the node's op, operands or results do not exist");
        return false;
    }
    bool right = true;
    for (unsigned i = 0; i < info->operands; i++) {
        const weft_val operand = weft_operand(g, node, i);
        if (g->slot[info->first_operand + i].node.id != node.id)
            report(v, node, "the slot of operand %u belongs to another node", i);
        if (!check_defined(v, operand, node)) {
            right = false;
            continue;
        }
        slots_of[operand.id]++;
        check_registers(v, node, operand);
    }
    for (unsigned i = 0; i < info->results; i++) {
        const struct weft_value *result = &g->value[info->first_result + i];
        if (result->def.id != node.id || result->result != i || result->is_param)
            report(v, node, "result %u does not know its node", i);
        check_value(v, weft_result(g, node, i), node);
    }
    if (info->group >= (g->groups ? g->groups : 1))
        report(v, node, "the node's group does not exist");
    check_attrs(v, node);
    check_constant(v, node);
    return right;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_groups(struct validator *v)
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
            report(v, n, "group @%s is torn: its nodes are not neighbours", g->group[group].name);
    }
    const char **names = weft_new(v->arena, const char *, g->groups + 1);
    for (uint32_t i = 1; i < g->groups; i++)
        names[i] = g->group[i].name;
    if (g->groups > 2)
        qsort(names + 1, g->groups - 1, sizeof *names, compare_names);
    for (uint32_t i = 2; i < g->groups; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            report(v, WEFT_NO_NODE, "two groups are called @%s", names[i]);
}

static void check_returns(struct validator *v)
{
    const struct weft_graph *g = v->graph;
    if (g->returns == 0)
        report(v, WEFT_NO_NODE, "graph @%s returns nothing", g->name);
    uint32_t *returned = weft_new(v->arena, uint32_t, g->values);
    uint32_t *renewed = weft_new(v->arena, uint32_t, g->values);
    for (uint32_t i = 0; i < g->returns; i++) {
        const struct weft_return_slot *slot = &g->ret[i];
        if (!check_defined(v, slot->value, WEFT_NO_NODE))
            continue;
        returned[slot->value.id]++;
        if (!slot->mut.id)
            continue;
        if (slot->mut.id >= g->values || !g->value[slot->mut.id].is_mut) {
            report(v, WEFT_NO_NODE, "%s gets a new value, but is not a mut parameter", text_of(v, slot->mut));
            continue;
        }
        if (++renewed[slot->mut.id] == 2)
            report(v, WEFT_NO_NODE, "mut parameter %s gets two new values", text_of(v, slot->mut));
        if (!weft_type_same(weft_type_of(g, slot->mut), weft_type_of(g, slot->value)))
            report(v, WEFT_NO_NODE, "the new value of mut parameter %s is %s, but the parameter is %s",
                   text_of(v, slot->mut), type_text(v, weft_type_of(g, slot->value)),
                   type_text(v, weft_type_of(g, slot->mut)));
    }
    for (uint32_t i = 1; i < g->values; i++) {
        const weft_val value = {i};
        if (g->value[i].returns != returned[i])
            report(v, g->value[i].def, "%s counts %u returns, but has %u", text_of(v, value), g->value[i].returns,
                   returned[i]);
        if (g->value[i].is_mut && !g->value[i].is_param)
            report(v, g->value[i].def, "%s is mut, but no parameter", text_of(v, value));
        else if (g->value[i].is_mut && g->parent)
            report(v, WEFT_NO_NODE, "a body cannot have mut parameters, like %s", text_of(v, value));
        else if (g->value[i].is_mut && !renewed[i])
            report(v, WEFT_NO_NODE, "mut parameter %s has no new value: return mut %s = …", text_of(v, value),
                   text_of(v, value));
    }
}

static void check_graph(struct validator *v);

static void check_bodies(struct validator *v)
{
    const struct weft_graph *g = v->graph;
    const struct validator outer = *v;
    for (uint32_t i = 0; i < g->bodies; i++) {
        struct weft_graph *body = g->body[i];
        weft_node holder = WEFT_NO_NODE;
        weft_foreach_node(g, n)
            for (unsigned a = 0; a < weft_node_of(g, n)->attrs; a++)
                if (weft_node_of(g, n)->attr[a].kind == WEFT_ATTR_GRAPH && weft_node_of(g, n)->attr[a].graph == body)
                    holder = n;
        if (!holder.id) /* left over from an edit; it is never printed */
            continue;
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(g->body[j]->name, body->name) == 0)
                report(v, holder, "two bodies are called @%s", body->name);
        if (body->root != g->root || body->parent != g || body->depth > WEFT_MAX_DEPTH) {
            report(v, holder, "body @%s does not know its parent", body->name);
            continue;
        }
        v->graph = body;
        v->prefix = weft_arena_format(v->arena, "%sin body @%s: ", outer.prefix, body->name);
        v->anchor = outer.prefix[0] ? outer.anchor : holder;
        check_graph(v);
        v->graph = g;
        v->prefix = outer.prefix;
        v->anchor = outer.anchor;
        v->position = outer.position;
    }
}

static void check_graph(struct validator *v)
{
    const struct weft_graph *g = v->graph;
    v->position = weft_new(v->arena, uint32_t, g->nodes + 1);
    uint32_t *slots_of = weft_new(v->arena, uint32_t, g->values + 1);
    if (!check_order(v))
        return;
    bool right = true;
    for (uint32_t i = 0; i < g->params; i++) {
        if (!check_defined(v, g->param[i], WEFT_NO_NODE))
            return;
        check_value(v, g->param[i], WEFT_NO_NODE);
    }
    weft_foreach_node(g, n)
        right &= check_node(v, n, slots_of);
    if (right) {
        check_uses(v, slots_of);
        weft_foreach_node(g, n)
            check_types(v, n);
        weft_node where;
        const char *message = weft_find_data_error(g, v->arena, &where);
        if (message)
            report(v, where, "%s", message);
    }
    check_groups(v);
    check_returns(v);
    check_bodies(v);
}

uint32_t weft_find_errors(const struct weft_graph *graph, struct weft_arena *arena, struct weft_finding **ret)
{
    struct validator v = {.graph = graph, .arena = arena, .prefix = ""};
    check_graph(&v);
    *ret = v.finding;
    return v.findings;
}

bool weft_validate_graph(const struct weft_graph *graph)
{
    struct weft_arena *scratch = &graph->root->scratch;
    const bool own = !scratch->chunk; /* between passes nobody else has anything in it */
    struct weft_finding *finding;
    const uint32_t count = weft_find_errors(graph, scratch, &finding);
    for (uint32_t i = 0; i < count; i++) {
        const weft_node node = finding[i].node;
        const struct weft_place place = {.file = graph->root->file, .line = node.id ? graph->node[node.id].line : 0,
                                         .column = node.id ? 1 : 0};
        weft_error(graph->context, WEFT_ERR_INVALID, &place, "%s", finding[i].message);
    }
    if (own)
        weft_arena_close(scratch);
    return count == 0;
}

static int validate_protected(void *arg)
{
    weft_validate_graph(arg);
    return WEFT_OK;
}

int weft_validate(struct weft_graph *graph) { return weft_protected_graph(graph, validate_protected, graph); }
