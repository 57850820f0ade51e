/* SPDX-License-Identifier: Apache-2.0 */
/* validate_node.c: the rules about one node and about one value; see validate.c.
 *
 * Inference reports through the context. While it runs here its messages are caught instead of delivered. */
#include "ir/validate.h"

#include <stdio.h>
#include <string.h>

void weft_found(struct weft_validator *v, weft_node node, const char *format, ...)
{
    char message[900];
    const struct weft_graph *outer[WEFT_MAX_DEPTH + 1];
    unsigned depth = 0;
    struct weft_text text = {.context = v->graph->context, .arena = v->arena};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    for (const struct weft_graph *body = v->graph; body != v->top && depth < WEFT_MAX_DEPTH; body = body->parent)
        outer[depth++] = body;
    while (depth > 0)
        weft_text_format(&text, "in body @%s: ", outer[--depth]->name);
    weft_text_add(&text, message);
    v->finding = weft_grow(v->arena, v->finding, &v->capacity, v->findings + 1, sizeof *v->finding);
    v->finding[v->findings++] = (struct weft_finding){
        .node = v->graph != v->top ? v->anchor : node, .message = text.data};
}

const char *weft_text_of(const struct weft_validator *v, weft_val value)
{
    return value.id && value.id < v->graph->values ? weft_value_text(v->graph, value) : "a value that does not exist";
}

const char *weft_type_text(struct weft_validator *v, const struct weft_type *type)
{
    struct weft_text text = {.context = v->graph->context, .arena = v->arena};
    weft_type_print(v->graph->dims, type, &text);
    return text.data;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Defined at all, and before `user` (none: at the end of the graph)? */
bool weft_validate_defined(struct weft_validator *v, weft_val value, weft_node user)
{
    const struct weft_graph *g = v->graph;
    if (!value.id || value.id >= g->values) {
        weft_found(v, user, "an operand or result is no value of this graph");
        return false;
    }
    const weft_node def = g->value[value.id].def;
    if (!def.id) {
        const uint32_t index = g->value[value.id].result;
        const bool right = g->value[value.id].is_param && index < g->params && weft_is(g->param[index], value);
        if (!right)
            weft_found(v, user, "%s is neither a parameter nor the result of a node", weft_text_of(v, value));
        return right;
    }
    if (def.id >= g->nodes || !v->position[def.id])
        weft_found(v, user, "%s is a result of an erased node", weft_text_of(v, value));
    else if (user.id && v->position[def.id] >= v->position[user.id])
        weft_found(v, user, "%s is used before its definition", weft_text_of(v, value));
    else
        return true;
    return false;
}

static bool extents_can_be(const struct weft_graph *g, const struct weft_type *type)
{
    for (int i = 0; i < type->rank; i++) {
        int64_t low, high;
        if (weft_dim_is_constant(type->extent[i]) && weft_dim_value(type->extent[i]) >= 0)
            continue;
        weft_dim_range(g->dims, type->extent[i], &low, &high);
        if (high < 0)
            return false;
    }
    return true;
}

void weft_validate_value(struct weft_validator *v, weft_val value, weft_node node)
{
    const struct weft_graph *g = v->graph;
    const struct weft_value *info = &g->value[value.id];
    if (!weft_dtype_name(info->type.dtype) || info->type.rank > WEFT_MAX_RANK || !extents_can_be(g, &info->type)) {
        weft_found(v, node, "the type of %s is none", weft_text_of(v, value));
        return;
    }
    if (info->def.id >= g->nodes) {
        weft_found(v, node, "the node that makes %s does not exist", weft_text_of(v, value));
        return;
    }
    if (info->name && !weft_is(weft_value_find(g, info->name, strlen(info->name)), value))
        weft_found(v, node, "the name of %s is not its own", weft_text_of(v, value));
    if (info->layout >= g->root->layouts) {
        weft_found(v, node, "the layout of %s does not exist", weft_text_of(v, value));
        return;
    }
    if (info->layout == 0) /* row-major: the rest is about layouts that were chosen */
        return;
    const struct weft_layout layout = weft_layout_of(g, value);
    const char *message = layout.kind == WEFT_STORED ? weft_layout_check(&layout, &info->type) : NULL;
    if (message)
        weft_found(v, node, "the layout of %s: %s", weft_text_of(v, value), message);
    else if ((!info->is_param || info->is_mut || info->returns) &&
             weft_layout_overlaps(g->dims, &layout, &info->type))
        weft_found(v, node, "the layout of %s: elements share places, which is for parameters that are only read",
                   weft_text_of(v, value));
    if (layout.kind == WEFT_REGISTER && info->is_param)
        weft_found(v, node, "parameter %s must be stored: {-} is for values within a group", weft_text_of(v, value));
    else if (layout.kind == WEFT_REGISTER && (!node.id || !g->node[node.id].group))
        weft_found(v, node, "%s is {-}, but only a group keeps values in registers", weft_text_of(v, value));
    else if (layout.kind == WEFT_REGISTER && info->returns)
        weft_found(v, node, "%s is {-}, but the graph returns it", weft_text_of(v, value));
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void check_attrs(struct weft_validator *v, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(v->graph, node);
    const struct weft_attr_spec *spec = weft_ops[info->op].attrs;
    for (unsigned i = 0; i < info->attrs; i++) {
        const struct weft_attr *attr = &info->attr[i];
        if (attr->key >= WEFT_ATTR_COUNT || !weft_attr_spec_find(info->op, attr->key)) {
            weft_found(v, node, "%s has no such attribute", weft_ops[info->op].name);
            continue;
        }
        while (spec->key != WEFT_ATTR_NONE && spec->key != attr->key)
            spec++;
        if (spec->key == WEFT_ATTR_NONE) {
            weft_found(v, node, "attribute %s stands out of order or twice", weft_attr_names[attr->key]);
            return;
        }
        spec++;
        if (attr->kind != WEFT_ATTR_GRAPH)
            continue;
        if (!weft_is_body(v->graph, attr->graph))
            weft_found(v, node, "%s=@%s is no body of this graph", weft_attr_names[attr->key],
                       attr->graph ? attr->graph->name : "");
    }
}

static void check_constant(struct weft_validator *v, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(v->graph, node);
    const struct weft_constant *constant = info->constant;
    if ((info->op == WEFT_OP_const) != (constant != NULL)) {
        weft_found(v, node, "a const node, and no other, has elements");
        return;
    }
    if (!constant || constant->kind == WEFT_CONST_SPLAT)
        return;
    const struct weft_type *type = weft_type_of(v->graph, weft_result(v->graph, node, 0));
    const weft_dim count = weft_type_elements(v->graph->dims, type);
    if (!weft_dim_is_constant(count)) {
        weft_found(v, node, "a constant with symbolic extents can only be one number for all elements");
        return;
    }
    if (constant->kind != WEFT_CONST_BLOB)
        return;
    const uint64_t need = (uint64_t)weft_dtype_bytes(type->dtype, weft_dim_value(count));
    if (!constant->blob || constant->offset > constant->blob->bytes || need > constant->blob->bytes - constant->offset)
        weft_found(v, node, "the constant's bytes lie outside its memory");
    else if (constant->blob->given_up[0] && !constant->blob->planned)
        weft_found(v, node, "the constant's elements were packed when a plan was made, and given up");
}

static bool infer_quietly(struct weft_validator *v, struct weft_infer *infer, const char **ret_message)
{
    struct weft_context *context = v->graph->context;
    struct weft_caught caught = {.arena = v->arena};
    context->caught = &caught;
    const bool right = weft_infer_run(infer);
    context->caught = NULL;
    *ret_message = caught.message ? caught.message : "inference fails";
    return right;
}

void weft_validate_types(struct weft_validator *v, weft_node node)
{
    struct weft_graph *g = (struct weft_graph *)v->graph; /* inference interns extents, and changes nothing else */
    const struct weft_node_info *info = weft_node_of(g, node);
    weft_val *operand = v->operand =
        weft_grow(v->arena, v->operand, &v->operand_capacity, info->operands, sizeof *v->operand);
    v->result = weft_grow(v->arena, v->result, &v->result_capacity, info->results, sizeof *v->result);
    memset(v->result, 0, info->results * sizeof *v->result);
    for (unsigned i = 0; i < info->operands; i++)
        operand[i] = weft_operand(g, node, i);
    struct weft_infer infer = {.graph = g,
                               .op = info->op,
                               .operand = operand,
                               .operands = info->operands,
                               .attr = info->attr,
                               .attrs = info->attrs,
                               .result = v->result,
                               .results = info->results,
                               .place = &(struct weft_place){0},
                               .constant = info->constant};
    const bool is_stated = weft_ops[info->op].traits & WEFT_STATED;
    const unsigned stated = info->op == WEFT_OP_custom ? info->results : is_stated;
    for (unsigned i = 0; i < stated; i++)
        infer.result[i] = *weft_type_of(g, weft_result(g, node, i));
    const char *message;
    if (!infer_quietly(v, &infer, &message)) {
        weft_found(v, node, "%s", message);
        return;
    }
    for (unsigned i = 0; i < info->results; i++) {
        const weft_val result = weft_result(g, node, i);
        if (!weft_type_same(&infer.result[i], weft_type_of(g, result)))
            weft_found(v, node, "%s is %s, but %s of these operands is %s", weft_text_of(v, result),
                       weft_type_text(v, weft_type_of(g, result)), weft_ops[info->op].name,
                       weft_type_text(v, &infer.result[i]));
    }
    const weft_dim *stored = info->results == 1 ? weft_value_of(g, weft_result(g, node, 0))->content : NULL;
    if (!stored)
        return;
    weft_dim known[WEFT_MAX_CONTENT];
    int64_t count = 0;
    if (!weft_content_compute(g, node, known, &count) || memcmp(stored, known, (size_t)count * sizeof *known) != 0)
        weft_found(v, node, "the known elements of %s are out of date", weft_text_of(v, weft_result(g, node, 0)));
}

/* A value in registers is seen by its own group only. */
static void check_registers(struct weft_validator *v, weft_node node, weft_val operand)
{
    const struct weft_graph *g = v->graph;
    const weft_node def = weft_def(g, operand);
    const uint32_t layout = g->value[operand.id].layout;
    if (!def.id || !layout || layout >= g->root->layouts || g->root->layout[layout].kind != WEFT_REGISTER ||
        g->node[def.id].group == g->node[node.id].group)
        return;
    if (!g->node[def.id].group) /* wrong by itself: weft_validate_value says so */
        return;
    weft_found(v, node, "%s is {-}: it exists only within its group", weft_text_of(v, operand));
}

/* Everything about one node; false if its operands or results cannot be looked at. */
bool weft_validate_node(struct weft_validator *v, weft_node node, uint32_t *slots_of)
{
    const struct weft_graph *g = v->graph;
    const struct weft_node_info *info = weft_node_of(g, node);
    if (info->op == WEFT_OP_NONE || info->op >= WEFT_OP_COUNT || info->first_operand + info->operands > g->slots ||
        info->first_result + info->results > g->values) {
        weft_found(v, node, "the node's op, operands or results do not exist");
        return false;
    }
    bool right = true;
    for (unsigned i = 0; i < info->operands; i++) {
        const weft_val operand = weft_operand(g, node, i);
        if (g->slot[info->first_operand + i].node.id != node.id)
            weft_found(v, node, "the slot of operand %u belongs to another node", i);
        if (!weft_validate_defined(v, operand, node)) {
            right = false;
            continue;
        }
        slots_of[operand.id]++;
        check_registers(v, node, operand);
    }
    for (unsigned i = 0; i < info->results; i++) {
        const struct weft_value *result = &g->value[info->first_result + i];
        if (result->def.id != node.id || result->result != i || result->is_param)
            weft_found(v, node, "result %u does not know its node", i);
        weft_validate_value(v, weft_result(g, node, i), node);
    }
    if (info->group >= (g->groups ? g->groups : 1) || (info->group && !g->group[info->group].name))
        weft_found(v, node, "the node's group does not exist");
    check_attrs(v, node);
    check_constant(v, node);
    return right;
}
