/* SPDX-License-Identifier: Apache-2.0 */
/* function.c: functions of a model, put in place of the nodes that call them.
 *
 * A function sees nothing but its inputs and attributes: its names are a scope without a parent, in the graph of the
 * call, and its nodes follow there as if they had been written so. While they do, the call is on a stack: attributes
 * that refer to one of the function's are looked up in it, bodies of the function's nodes included, and a function that
 * is on the stack already calls itself, which ONNX forbids and no graph can hold. A function states its own opset. */
#include "onnx/import.h"

static bool same_domain(struct onnx_string a, struct onnx_string b)
{
    return (onnx_is_default(a) && onnx_is_default(b)) || onnx_same(a, b);
}

/* Functions of one name form a chain: they differ in domain or overload. */
static struct onnx_function *find_function(const struct onnx_importer *importer, struct onnx_string name,
                                           struct onnx_string domain, struct onnx_string overload)
{
    uint32_t i = weft_onnx_find_name(&importer->functions, name);
    struct onnx_function *function = i == ONNX_NO_NAME ? NULL : importer->function[i];
    while (function && !(same_domain(function->domain, domain) && onnx_same(function->overload, overload)))
        function = function->next;
    return function;
}

bool weft_onnx_index_functions(struct onnx_importer *importer)
{
    struct weft_arena *arena = importer->reader.arena;
    importer->function = weft_new(arena, struct onnx_function *, importer->model.functions + 1);
    for (uint32_t k = 0; k < importer->model.functions; k++) {
        struct onnx_function *function = &importer->model.function[k];
        if (find_function(importer, function->name, function->domain, function->overload))
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, function->name),
                                     "the model defines this function twice");
        uint32_t i = weft_onnx_find_name(&importer->functions, function->name);
        if (i == ONNX_NO_NAME)
            i = weft_onnx_add_name(arena, &importer->functions, function->name);
        function->next = importer->function[i];
        importer->function[i] = function;
    }
    return true;
}

struct onnx_function *weft_onnx_function_of(const struct onnx_importer *importer, const struct onnx_node *node)
{
    return find_function(importer, node->op, node->domain, node->overload);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static const struct onnx_attribute *find(const struct onnx_attribute *list, uint32_t count, struct onnx_string name)
{
    for (uint32_t i = 0; i < count; i++)
        if (onnx_same(list[i].name, name))
            return &list[i];
    return NULL;
}

struct onnx_node weft_onnx_resolve(struct onnx_importer *importer, const struct onnx_node *node)
{
    struct onnx_node result = *node;
    const struct onnx_call *call = importer->call;
    uint32_t references = 0;
    for (uint32_t i = 0; i < node->attributes; i++)
        references += node->attribute[i].is_reference;
    if (!references || !call)
        return result; /* a reference outside of a function is an error to whoever reads it */
    result.attribute = weft_new(importer->reader.arena, struct onnx_attribute, node->attributes);
    result.attributes = 0;
    for (uint32_t i = 0; i < node->attributes; i++) {
        const struct onnx_attribute *attribute = &node->attribute[i], *given = attribute;
        if (attribute->is_reference) {
            given = find(call->node->attribute, call->node->attributes, attribute->reference);
            if (!given)
                given = find(call->function->attribute, call->function->attributes, attribute->reference);
        }
        if (!given)
            continue; /* absent in the call, so absent here */
        result.attribute[result.attributes] = *given;
        result.attribute[result.attributes++].name = attribute->name;
    }
    return result;
}

/* Every attribute of a call belongs to the function; what the function does not name is left for an error. */
static void use_attributes(struct onnx_op *op, const struct onnx_function *function)
{
    for (uint32_t i = 0; i < op->node->attributes; i++) {
        struct onnx_attribute *attribute = &op->node->attribute[i];
        attribute->used = find(function->attribute, function->attributes, attribute->name) != NULL;
        for (uint32_t k = 0; k < function->required.count; k++)
            attribute->used = attribute->used || onnx_same(function->required.item[k], attribute->name);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

#define MAX_REPEATED (1u << 16)

bool weft_onnx_repeat(struct onnx_op *op, uint32_t nodes)
{
    op->importer->repeated += nodes + 1u;
    if (op->importer->repeated > MAX_REPEATED)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "functions and loops make more than %u nodes", MAX_REPEATED);
    return !op->failed;
}

static bool may_call(struct onnx_op *op, const struct onnx_function *function)
{
    for (const struct onnx_call *call = op->importer->call; call; call = call->outer)
        if (call->function == function) {
            weft_onnx_fail(op, WEFT_ERR_INVALID, "the function calls itself");
            return false;
        }
    if (op->importer->depth >= WEFT_MAX_DEPTH)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "functions are nested more than %d deep", WEFT_MAX_DEPTH);
    if (op->inputs > function->input.count || op->outputs > function->output.count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u inputs and %u outputs do not fit its function of %u and %u",
                       op->inputs, op->outputs, function->input.count, function->output.count);
    const int64_t opset = weft_onnx_opset_of(&function->opsets, op->importer->opset);
    if (opset < ONNX_MIN_OPSET || opset > ONNX_MAX_OPSET)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "its function uses opset %lld; weft reads %d to %d", (long long)opset,
                       ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    return !op->failed && weft_onnx_repeat(op, function->nodes);
}

static void take_outputs(struct onnx_op *op, struct onnx_scope *scope, const struct onnx_function *function)
{
    for (uint32_t i = 0; i < op->outputs && !op->failed; i++) {
        const struct onnx_string name = function->output.item[i];
        const struct onnx_entry *entry = weft_onnx_lookup(op->importer, scope, name);
        if (!op->node->output.item[i].length)
            continue;
        if (!entry)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "output \"%s\" of its function is not defined",
                           weft_onnx_text(op->importer, name));
        else if (!entry->value.id)
            op->failed = true; /* its error is recorded */
        else
            op->output[i] = entry->value;
    }
}

void weft_onnx_call(struct onnx_op *op, const struct onnx_function *function)
{
    struct onnx_importer *importer = op->importer;
    use_attributes(op, function);
    if (!may_call(op, function))
        return;
    struct onnx_scope scope = {.graph = op->graph};
    for (uint32_t i = 0; i < function->input.count; i++) {
        const bool given = weft_onnx_has(op, i);
        if (!weft_onnx_define(importer, &scope, function->input.item[i], NULL, given ? op->input[i] : WEFT_NO_VALUE))
            weft_onnx_fail(op, WEFT_ERR_INVALID, "its function has two inputs \"%s\"",
                           weft_onnx_text(importer, function->input.item[i]));
        else if (!given)
            weft_onnx_lookup(importer, &scope, function->input.item[i])->absent = true;
    }
    const struct onnx_call call = {.function = function, .node = op->node, .outer = importer->call};
    const struct onnx_graph body = {.node = function->node, .nodes = function->nodes};
    const int opset = importer->opset;
    importer->opset = (int)weft_onnx_opset_of(&function->opsets, opset);
    importer->call = &call;
    importer->depth++;
    importer->unnamed++;
    if (!op->failed && !weft_onnx_import_nodes(importer, &scope, &body))
        op->failed = true;
    importer->depth--;
    importer->unnamed--;
    importer->call = call.outer;
    importer->opset = opset;
    take_outputs(op, &scope, function);
}
