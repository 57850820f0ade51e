/* SPDX-License-Identifier: Apache-2.0 */
/* import.c: a model into a graph: checks, inputs, nodes in file order, results.
 *
 * Nodes are imported one by one in the order of the file, which ONNX requires to be topological. What cannot be
 * imported does not end the import: an op that weft lacks is counted, any other error is recorded, the outputs become
 * none, and nodes that read them are looked at only for whether their ops exist. So one attempt reports everything:
 * each error once, and every unsupported op with its count. Branches that are not taken (an `if` on a constant) are not
 * looked at at all. */
#include "onnx/import.h"

#include "ir/suggest.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *weft_onnx_text(struct onnx_importer *importer, struct onnx_string string)
{
    return weft_arena_copy(importer->reader.arena, string.length ? string.data : "", string.length);
}

bool weft_onnx_fail_at(struct onnx_importer *importer, int status, const char *where, const char *format, ...)
{
    char message[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    weft_error(importer->reader.context, status, &(struct weft_place){.file = importer->reader.path, .where = where},
               "%s", message);
    return false;
}

/* A node's name, or that of its first result. */
const char *weft_onnx_node_name(struct onnx_importer *importer, const struct onnx_node *node)
{
    if (node->name.length)
        return weft_onnx_text(importer, node->name);
    for (uint32_t i = 0; i < node->output.count; i++)
        if (node->output.item[i].length)
            return weft_onnx_text(importer, node->output.item[i]);
    return NULL;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* Values of the inputs. False if one of them is not there because its own import failed. */
static bool find_inputs(struct onnx_op *op, weft_val *input)
{
    const struct onnx_strings *names = &op->node->input;
    bool there = true;
    for (uint32_t i = 0; i < names->count; i++) {
        input[i] = WEFT_NO_VALUE;
        if (!names->item[i].length)
            continue;
        const struct onnx_entry *entry = weft_onnx_lookup(op->importer, op->scope, names->item[i]);
        if (entry && entry->absent)
            continue;
        if (!entry)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "its input \"%s\" is not defined before it",
                           weft_onnx_text(op->importer, names->item[i]));
        there = there && entry && entry->value.id;
        if (there)
            input[i] = entry->value;
        op->inputs = i + 1;
    }
    return there;
}

static void check_arity(struct onnx_op *op)
{
    const struct onnx_row *row = op->row;
    if (op->inputs < (unsigned)row->min_inputs || (row->max_inputs >= 0 && op->inputs > (unsigned)row->max_inputs))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u input%s not fit opset %d", op->inputs,
                       op->inputs == 1 ? " does" : "s do", op->importer->opset);
    if (!op->outputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the node has no outputs");
    for (uint32_t i = 0; i < op->node->attributes; i++)
        op->node->attribute[i].used = false;
}

static void check_attributes(struct onnx_op *op)
{
    for (uint32_t i = 0; !op->failed && i < op->node->attributes; i++) {
        const struct onnx_attribute *attribute = &op->node->attribute[i];
        for (uint32_t k = 0; k < i && !attribute->used; k++)
            if (onnx_same(op->node->attribute[k].name, attribute->name))
                weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s is given twice",
                               weft_onnx_text(op->importer, attribute->name));
        if (!attribute->used)
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s is not supported at opset %d",
                           weft_onnx_text(op->importer, attribute->name), op->importer->opset);
    }
}

/* Defines the outputs; values that the node made take their names. */
static void define_outputs(struct onnx_op *op, uint32_t first_value)
{
    const struct onnx_strings *names = &op->node->output;
    for (uint32_t i = 0; i < names->count; i++) {
        const struct onnx_string name = names->item[i];
        if (!name.length)
            continue;
        const weft_val value = op->failed ? WEFT_NO_VALUE : op->output[i];
        if (!op->failed && !value.id)
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "output %u is not supported", i);
        if (!weft_onnx_define(op->importer, op->scope, name, NULL, value))
            weft_onnx_fail(op, WEFT_ERR_INVALID, "its output \"%s\" is defined twice",
                           weft_onnx_text(op->importer, name));
        else if (!op->importer->unnamed && value.id >= first_value && !weft_value_of(op->graph, value)->name)
            weft_set_name(op->graph, value, name.data, name.length);
    }
}

static bool import_node(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_node *source)
{
    const struct weft_place outside = importer->reader.context->here;
    struct weft_arena *arena = importer->reader.arena;
    struct onnx_node resolved = weft_onnx_resolve(importer, source), *node = &resolved;
    const struct onnx_function *function = weft_onnx_function_of(importer, node);
    const struct weft_custom_entry *custom = weft_onnx_custom_of(importer, node);
    weft_val *input = weft_new(arena, weft_val, node->input.count + 1);
    struct onnx_op op = {.importer = importer,
                         .scope = scope,
                         .graph = scope->graph,
                         .node = node,
                         .row = weft_onnx_row_of(node, importer->opset),
                         .name = weft_onnx_node_name(importer, node),
                         .input = input,
                         .outputs = node->output.count,
                         .output = weft_new(arena, weft_val, node->output.count + 1)};
    importer->reader.context->here = (struct weft_place){.file = importer->reader.path, .where = op.name};
    weft_onnx_note_scopes(importer, node, op.name);
    const uint32_t first_value = scope->graph->values;
    const bool there = find_inputs(&op, input);
    bool readable = true;
    if ((!op.row && !function && !custom) || !there) {
        readable = weft_onnx_survey_node(importer, node);
        op.failed = true;
    } else if (custom) {
        weft_onnx_custom(&op, custom);
    } else if (!op.row) {
        weft_onnx_call(&op, function);
        check_attributes(&op);
    } else {
        check_arity(&op);
        if (!op.failed)
            op.row->import(&op);
        check_attributes(&op);
    }
    define_outputs(&op, first_value);
    importer->reader.context->here = outside;
    return readable;
}

bool weft_onnx_import_nodes(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (!import_node(importer, scope, &graph->node[i]))
            return false;
    return true;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

bool weft_onnx_declare(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    if (graph->has_sparse)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, weft_onnx_text(importer, graph->name),
                                 "sparse initializers are not supported");
    for (uint32_t i = 0; i < graph->initializers; i++)
        if (!weft_onnx_define(importer, scope, graph->initializer[i].name, &graph->initializer[i], WEFT_NO_VALUE))
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, graph->initializer[i].name),
                                     "the initializer is defined twice");
    return true;
}

enum { MOST_NAMED = 8 /* in a message */ };

/* Names those that can be fixed: neither weights, which old files list as inputs too, nor what is fixed already. */
static void no_such_input(struct onnx_importer *importer, const struct onnx_scope *scope,
                          const struct onnx_graph *graph, const char *name)
{
    struct weft_text names = {.context = importer->reader.context, .arena = importer->reader.arena};
    struct weft_suggest suggest;
    uint32_t count = 0;
    weft_suggest_open(&suggest, name, strlen(name));
    for (uint32_t i = 0; i < graph->inputs; i++) {
        if (weft_onnx_find_name(&scope->names, graph->input[i].name) != ONNX_NO_NAME)
            continue;
        const char *const known = weft_onnx_text(importer, graph->input[i].name);
        weft_suggest_offer(&suggest, known);
        if (count++ < MOST_NAMED)
            weft_text_format(&names, "%s%s", count > 1 ? ", " : "", known);
    }
    if (count > MOST_NAMED)
        weft_text_format(&names, " and %u more", count - MOST_NAMED);
    weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the model has no such input to fix; it has %s%s",
                      count ? names.data : "none", weft_suggest_text(&suggest, ""));
}

/* Inputs that the caller fixed become constants first: symbols in their shapes are numbers from then on. */
static void add_fixed_inputs(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    for (size_t k = 0; k < importer->fixeds; k++) {
        const struct weft_fixed_input *fixed = &importer->fixed[k];
        uint32_t i = 0;
        while (i < graph->inputs && !onnx_is(graph->input[i].name, fixed->name))
            i++;
        if (i == graph->inputs)
            no_such_input(importer, scope, graph, fixed->name);
        else if (weft_onnx_is_initializer(scope, graph->input[i].name))
            weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, fixed->name,
                              "the model has a value for this input, which is a constant as it is");
        else if (weft_onnx_find_name(&scope->names, graph->input[i].name) != ONNX_NO_NAME)
            weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, fixed->name, "the input is fixed already");
        else {
            const bool fits = weft_onnx_fits(importer, &graph->input[i], fixed->tensor);
            weft_onnx_define(importer, scope, graph->input[i].name, NULL,
                             fits ? weft_onnx_copy_constant(importer, scope->graph, fixed->tensor, fixed->name)
                                  : WEFT_NO_VALUE);
        }
    }
}

static bool is_fixed(const struct onnx_importer *importer, struct onnx_string name)
{
    size_t k = 0;
    while (k < importer->fixeds && !onnx_is(name, importer->fixed[k].name))
        k++;
    return k < importer->fixeds;
}

/* Inputs that are initializers too are defaults, which weft takes as constants: before IR version 4 all initializers
 * had to be listed as inputs. */
static void add_inputs(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    const bool defaults = scope->names.count > 0;
    add_fixed_inputs(importer, scope, graph);
    for (uint32_t i = 0; i < graph->inputs; i++) {
        const struct onnx_value *input = &graph->input[i];
        const char *name = weft_onnx_text(importer, input->name);
        struct weft_type type;
        if ((defaults && weft_onnx_is_initializer(scope, input->name)) || is_fixed(importer, input->name))
            continue;
        weft_val param = WEFT_NO_VALUE;
        if (weft_onnx_value_type(importer, input, &type))
            param = weft_add_param(scope->graph, name, &type);
        if (!weft_onnx_define(importer, scope, input->name, NULL, param))
            weft_onnx_fail_at(importer, WEFT_ERR_INVALID, name, "the input is defined twice");
    }
}

static bool add_results(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    if (!graph->outputs)
        return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, NULL, "the graph has no outputs");
    for (uint32_t i = 0; i < graph->outputs; i++) {
        const struct onnx_string name = graph->output[i].name;
        const struct onnx_entry *entry = weft_onnx_lookup(importer, scope, name);
        if (!entry)
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, name),
                                     "the output is not defined by any node");
        if (entry->absent)
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, name),
                                     "the output is an input that was not given");
        if (!entry->value.id)
            continue; /* its error is recorded, or an assumption noted */
        const struct weft_value *value = weft_value_of(scope->graph, entry->value);
        if (!value->is_param && !value->returns)
            weft_set_name(scope->graph, entry->value, name.data, name.length);
        weft_add_return(scope->graph, entry->value, WEFT_NO_VALUE);
    }
    return true;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static bool uses_default_domain(const struct onnx_graph *graph)
{
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (onnx_is_default(graph->node[i].domain))
            return true;
    return false;
}

static bool check_model(struct onnx_importer *importer)
{
    const struct onnx_model *model = &importer->model;
    if (!model->has_graph)
        return weft_onnx_fail_at(importer, WEFT_ERR_SYNTAX, NULL, "not an ONNX model: %s",
                                 importer->file->bytes == 0 ? "the file is empty" : "it has no graph");
    const int64_t unstated = INT64_MIN;
    int64_t opset = unstated;
    for (uint32_t i = 0; i < model->opsets.count; i++) {
        const struct onnx_opset *stated = &model->opsets.item[i];
        if (onnx_is_default(stated->domain) && opset != unstated && opset != stated->version)
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, NULL,
                                     "the model states two opsets, %" PRId64 " and %" PRId64, opset, stated->version);
        if (onnx_is_default(stated->domain))
            opset = stated->version;
    }
    if (opset == unstated && model->ir_version >= 3 && uses_default_domain(&model->graph))
        return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, NULL, "the model does not state its opset (opset_import)");
    opset = opset == unstated ? 1 : opset; /* files of the first days state none */
    if (opset < ONNX_MIN_OPSET || opset > ONNX_MAX_OPSET)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, NULL,
                                 "the model uses opset %" PRId64 "; weft reads %d to %d", opset, ONNX_MIN_OPSET,
                                 ONNX_MAX_OPSET);
    importer->opset = (int)opset;
    return weft_onnx_index_functions(importer);
}

/* One import from the start. False after an error; true with new assumptions: the graph is incomplete. */
static bool import_once(struct onnx_importer *importer)
{
    struct weft_graph *graph = importer->root;
    struct weft_context *context = graph->context;
    const int32_t errors = context->error_count;
    if (!weft_onnx_read_model(&importer->reader, (struct weft_span){importer->file->data, importer->file->bytes},
                              &importer->model) ||
        !check_model(importer))
        return false;
    const struct onnx_graph *source = &importer->model.graph;
    struct onnx_scope scope = {.graph = graph};
    graph->file = weft_arena_copy(graph->arena, importer->reader.path, strlen(importer->reader.path));
    if (source->name.length)
        graph->name = weft_arena_copy(graph->arena, weft_onnx_word_of(importer, source->name), source->name.length);
    if (!weft_onnx_declare(importer, &scope, source))
        return false;
    add_inputs(importer, &scope, source);
    if (!weft_onnx_import_nodes(importer, &scope, source))
        return false;
    weft_onnx_report_missing(importer);
    add_results(importer, &scope, source);
    return context->error_count == errors;
}

#define MAX_IMPORTS 64 /* of one model, each with narrower symbols than the one before */

bool weft_onnx_import(struct weft_context *context, struct weft_arena *scratch, const struct weft_onnx_source *source,
                      struct weft_graph **ret_graph)
{
    struct weft_blob *const file = source->file;
    struct onnx_assumptions assumptions = {.arena = scratch};
    for (int i = 0; i < MAX_IMPORTS; i++) {
        weft_graph_free(*ret_graph);
        *ret_graph = NULL;
        *ret_graph = weft_graph_new(context, "main");
        weft_graph_hold(*ret_graph, weft_blob_hold(file));
        struct onnx_importer importer = {
            .reader = {.context = context, .arena = scratch, .start = file->data,
                       .end = (const uint8_t *)file->data + file->bytes, .path = source->path,
                       .is_path = source->is_path,
                       .folder = source->folder},
            .assumptions = &assumptions,
            .root = *ret_graph,
            .file = file,
            .fixed = source->fixed,
            .fixeds = source->fixeds};
        const uint32_t known_before = assumptions.count;
        if (!import_once(&importer))
            return false;
        if (assumptions.count == known_before) {
            weft_onnx_report_assumptions(&assumptions, *ret_graph);
            return true;
        }
    }
    weft_error(context, WEFT_ERR_UNSUPPORTED, &(struct weft_place){.file = source->path},
               "the sizes that the model takes for granted could not be settled in %d imports", MAX_IMPORTS);
    return false;
}
