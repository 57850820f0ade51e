/* SPDX-License-Identifier: Apache-2.0 */
/* import_control.c: If.
 *
 * A condition that is known while importing (exporters leave many: they test shapes) chooses its branch, whose nodes
 * then simply follow; the other branch is not even looked at. Otherwise both branches become bodies, and what they read
 * from outside becomes operands (scope.c). The depth of nesting is bounded, since this is where the import calls
 * itself. */
#include "onnx/import.h"

#include <string.h>

struct weft_graph *weft_onnx_new_body(struct onnx_op *op, const char *name)
{
    const char *candidate = name;
    for (unsigned i = 0, number = 0; i < op->graph->bodies; i++)
        if (strcmp(op->graph->body[i]->name, candidate) == 0) {
            candidate = weft_arena_format(op->importer->reader.arena, "%s.%u", name, ++number);
            i = UINT32_MAX; /* from the start, with the next name */
        }
    return weft_graph_new_body(op->graph, candidate);
}

static bool read_branch(struct onnx_op *op, const char *name, struct onnx_graph *ret)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_GRAPH);
    if (!attribute)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s is missing", name);
    if (op->failed || !weft_onnx_read_graph(&op->importer->reader, attribute->message, ret)) {
        op->failed = true;
        return false;
    }
    if (ret->outputs != op->outputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%s has %u outputs for %u of the node", name, ret->outputs, op->outputs);
    if (ret->inputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%s has inputs", name);
    return !op->failed;
}

void weft_onnx_import_body(struct onnx_op *op, struct onnx_scope *scope, const struct onnx_graph *branch, weft_val *ret)
{
    struct onnx_importer *importer = op->importer;
    if (importer->depth >= WEFT_MAX_DEPTH) {
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "subgraphs are nested more than %d deep", WEFT_MAX_DEPTH);
        return;
    }
    importer->depth++;
    if (!weft_onnx_declare(importer, scope, branch) || !weft_onnx_import_nodes(importer, scope, branch))
        op->failed = true;
    importer->depth--;
    for (uint32_t i = 0; i < branch->outputs && !op->failed; i++) {
        const struct onnx_entry *entry = weft_onnx_lookup(importer, scope, branch->output[i].name);
        if (!entry)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "output \"%s\" of its body is not defined",
                           weft_onnx_text(importer, branch->output[i].name));
        else if (!entry->value.id)
            op->failed = true; /* its error is recorded */
        else
            ret[i] = entry->value;
    }
}

static void inline_branch(struct onnx_op *op, bool condition)
{
    struct onnx_graph branch;
    weft_onnx_ignore(op, condition ? "else_branch" : "then_branch");
    struct onnx_scope scope = {.parent = op->scope, .graph = op->graph};
    if (read_branch(op, condition ? "then_branch" : "else_branch", &branch))
        weft_onnx_import_body(op, &scope, &branch, op->output);
}

static void return_values(struct weft_graph *body, unsigned count, const weft_val *values)
{
    for (unsigned i = 0; i < count; i++)
        weft_add_return(body, values[i], WEFT_NO_VALUE);
}

static void import_branches(struct onnx_op *op, weft_val condition)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    static const int keys[] = {WEFT_ATTR_then, WEFT_ATTR_else};
    struct onnx_captures captures = {0};
    struct onnx_scope scope[2];
    struct weft_attr attrs[2];
    uint32_t known[2] = {0};
    bool complete = true;
    for (unsigned i = 0; i < 2; i++) {
        struct onnx_graph branch;
        weft_val *values = weft_new(op->importer->reader.arena, weft_val, op->outputs);
        struct weft_graph *body = weft_onnx_new_body(op, i ? "else" : "then");
        op->failed = false; /* the other branch may have its own errors to tell */
        if (!body || !read_branch(op, names[i], &branch)) {
            complete = false;
            continue;
        }
        scope[i] = (struct onnx_scope){.parent = op->scope, .graph = body, .captures = &captures};
        weft_onnx_add_captured(op->importer, &scope[i], op->scope, 0);
        weft_onnx_import_body(op, &scope[i], &branch, values);
        complete = complete && !op->failed;
        known[i] = captures.count;
        if (!op->failed)
            return_values(body, op->outputs, values);
        attrs[i] = (struct weft_attr){.key = (uint8_t)keys[i], .kind = WEFT_ATTR_GRAPH, .graph = body};
    }
    op->failed = !complete;
    if (!complete)
        return;
    weft_onnx_add_captured(op->importer, &scope[0], op->scope, known[0]);
    weft_val *operands = weft_new(op->importer->reader.arena, weft_val, captures.count + 1);
    operands[0] = condition;
    for (uint32_t i = 0; i < captures.count; i++)
        operands[i + 1] = captures.outer[i];
    const weft_val first = weft_onnx_make(op, WEFT_OP_if, captures.count + 1, operands, 2, attrs, NULL);
    for (unsigned i = 0; i < op->outputs && !op->failed; i++)
        op->output[i] = (weft_val){.id = first.id + i};
}

/* Exporters write x.squeeze(axis) as an If that asks whether the extent is 1, with a Squeeze in one branch. Its
 * branches have different ranks, so no graph has both. */
static bool is_squeeze(struct onnx_op *op)
{
    struct onnx_graph branch;
    unsigned others = 0;
    bool squeezes = false;
    if (!read_branch(op, "then_branch", &branch))
        return false;
    for (uint32_t i = 0; i < branch.nodes; i++) {
        squeezes = squeezes || onnx_is(branch.node[i].op, "Squeeze");
        others += !onnx_is(branch.node[i].op, "Squeeze") && !onnx_is(branch.node[i].op, "Constant");
    }
    return squeezes && !others;
}

/* The condition is a == b of two sizes that are equal for some inputs: narrows the sizes to those. */
static bool make_equal(struct onnx_op *op, weft_val condition)
{
    weft_dim side[2];
    while (weft_def_opcode(op->graph, condition) == WEFT_OP_reshape ||
           weft_def_opcode(op->graph, condition) == WEFT_OP_cast)
        condition = weft_operand(op->graph, weft_def(op->graph, condition), 0);
    if (weft_def_opcode(op->graph, condition) != WEFT_OP_eq)
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (!weft_onnx_single(op, weft_operand(op->graph, weft_def(op->graph, condition), i), &side[i]))
            return false;
    const unsigned fixed = weft_dim_is_constant(side[0]) ? 0 : 1;
    return weft_dim_is_constant(side[fixed]) && weft_onnx_narrow(op, side[1 - fixed], weft_dim_value(side[fixed]));
}

static void import_if(struct onnx_op *op)
{
    weft_dim known;
    const weft_val condition = weft_onnx_reshape(op, weft_onnx_input(op, 0), 0, NULL);
    if (!op->failed && weft_onnx_type(op, condition).dtype != WEFT_BOOL)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the condition is not bool");
    if (op->failed)
        return;
    if (weft_onnx_single(op, condition, &known) && weft_dim_is_constant(known))
        inline_branch(op, !weft_dim_is(known, 0));
    else if (is_squeeze(op) && make_equal(op, condition))
        inline_branch(op, true);
    else
        import_branches(op, condition);
}

const struct onnx_row weft_onnx_control[] = {
    {"If", 1, 1, 1, 0, import_if},
    {0},
};
