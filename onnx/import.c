/* SPDX-License-Identifier: Apache-2.0 */
/* import.c: a model into a graph: checks, inputs, nodes in file order, results.
 *
 * Nodes are imported one by one in the order of the file, which ONNX requires to be topological. What cannot be
 * imported does not end the import: an op that weft lacks is counted, any other error is recorded, the outputs become
 * none, and nodes that read them are looked at only for whether their ops exist. So one attempt reports everything:
 * each error once, and every unsupported op with its count. Branches that are not taken (an `if` on a constant) are not
 * looked at at all. */
#include "onnx/import.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *weft_onnx_text(struct onnx_importer *importer, struct onnx_string string)
{
    return weft_arena_copy(importer->reader.arena, string.length ? string.data : "", string.length);
}

static bool fail(struct onnx_importer *importer, int status, const char *where, const char *format, ...)
    WEFT_PRINTF(4, 5);
static bool fail(struct onnx_importer *importer, int status, const char *where, const char *format, ...)
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

/* --- ops that weft lacks ------------------------------------------------------------------------------------------ */

static bool is_default_domain(struct onnx_string domain) { return domain.length == 0 || onnx_is(domain, "ai.onnx"); }

static bool same(struct onnx_string a, struct onnx_string b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* The latest row that an opset knows, if it is later than `found`. */
static const struct onnx_row *find_in(const struct onnx_row *table, struct onnx_string op, int opset,
                                      const struct onnx_row *found)
{
    for (const struct onnx_row *row = table; row->name; row++)
        if (row->name[0] == (op.length ? op.data[0] : '\0') && row->since <= opset &&
            (!found || row->since > found->since) && onnx_is(op, row->name))
            found = row;
    return found;
}

const struct onnx_row *weft_onnx_find(struct onnx_string op, int opset)
{
    static const struct onnx_row *const tables[] = {
        weft_onnx_activation,
        weft_onnx_attention,
        weft_onnx_control,
        weft_onnx_data,
        weft_onnx_elementwise,
        weft_onnx_fused,
        weft_onnx_index,
        weft_onnx_loop,
        weft_onnx_loss,
        weft_onnx_movement,
        weft_onnx_norm,
        weft_onnx_order,
        weft_onnx_pool,
        weft_onnx_quantize,
        weft_onnx_random,
        weft_onnx_recurrent,
        weft_onnx_reduce,
        weft_onnx_resize,
        weft_onnx_shape,
        weft_onnx_state,
        weft_onnx_transform,
        weft_onnx_window,
    };
    const struct onnx_row *found = NULL;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        found = find_in(tables[t], op, opset, found);
    return found;
}

static const struct onnx_row *row_of(const struct onnx_importer *importer, const struct onnx_node *node)
{
    if (onnx_is(node->domain, "com.microsoft"))
        return find_in(weft_onnx_microsoft, node->op, 1, NULL);
    return is_default_domain(node->domain) ? weft_onnx_find(node->op, importer->opset) : NULL;
}

/* A node's name, or that of its first result. */
static const char *name_of(struct onnx_importer *importer, const struct onnx_node *node)
{
    if (node->name.length)
        return weft_onnx_text(importer, node->name);
    for (uint32_t i = 0; i < node->output.count; i++)
        if (node->output.item[i].length)
            return weft_onnx_text(importer, node->output.item[i]);
    return NULL;
}

static void count_missing(struct onnx_importer *importer, const struct onnx_node *node)
{
    const struct onnx_string domain = is_default_domain(node->domain) ? (struct onnx_string){0} : node->domain;
    for (uint32_t i = 0; i < importer->missing_count; i++)
        if (same(importer->missing[i].op, node->op) && same(importer->missing[i].domain, domain)) {
            importer->missing[i].count++;
            return;
        }
    importer->missing = weft_grow(importer->reader.arena, importer->missing, &importer->missing_capacity,
                                  importer->missing_count + 1, sizeof *importer->missing);
    importer->missing[importer->missing_count++] =
        (struct onnx_missing){.domain = domain, .op = node->op, .first = name_of(importer, node), .count = 1};
}

static void report_missing(struct onnx_importer *importer)
{
    for (uint32_t i = 0; i < importer->missing_count; i++) {
        const struct onnx_missing *missing = &importer->missing[i];
        char opset[32] = "";
        if (!missing->domain.length)
            snprintf(opset, sizeof opset, " (opset %d)", importer->opset);
        fail(importer, WEFT_ERR_UNSUPPORTED, NULL, "unsupported op %s%s%s%s: %u node%s, first \"%s\"",
             weft_onnx_text(importer, missing->domain), missing->domain.length ? "." : "",
             weft_onnx_text(importer, missing->op), opset, missing->count, missing->count == 1 ? "" : "s",
             missing->first ? missing->first : "");
    }
}

static bool survey_node(struct onnx_importer *importer, const struct onnx_node *node)
{
    struct onnx_function *function = weft_onnx_function_of(&importer->model, node);
    if (!row_of(importer, node) && function) {
        const struct onnx_graph body = {.node = function->node, .nodes = function->nodes};
        const bool known = function->surveyed;
        function->surveyed = true;
        return known || weft_onnx_survey(importer, &body);
    }
    if (!row_of(importer, node))
        count_missing(importer, node);
    for (uint32_t i = 0; i < node->attributes; i++) {
        struct onnx_graph graph;
        if (node->attribute[i].type == ONNX_GRAPH &&
            (!weft_onnx_read_graph(&importer->reader, node->attribute[i].message, &graph) ||
             !weft_onnx_survey(importer, &graph)))
            return false;
    }
    return true;
}

bool weft_onnx_survey(struct onnx_importer *importer, const struct onnx_graph *graph)
{
    if (importer->depth >= WEFT_MAX_DEPTH)
        return fail(importer, WEFT_ERR_UNSUPPORTED, NULL, "subgraphs are nested more than %d deep", WEFT_MAX_DEPTH);
    importer->depth++;
    bool readable = true;
    for (uint32_t i = 0; readable && i < graph->nodes; i++)
        readable = survey_node(importer, &graph->node[i]);
    importer->depth--;
    return readable;
}

/* --- types of inputs ---------------------------------------------------------------------------------------------- */

/* A name as a word of weft's language: other bytes become '_'. */
static const char *word_of(struct onnx_importer *importer, struct onnx_string source)
{
    char *word = weft_arena_copy(importer->reader.arena, source.data, source.length);
    for (size_t i = 0; i < source.length; i++) {
        const char c = word[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || c < '0' || c > '9'))
            word[i] = '_';
    }
    return word;
}

/* Words that collide, with each other or with functions of extents, and extents without a name get a number. */
static weft_dim new_symbol(struct onnx_importer *importer, struct onnx_string source)
{
    struct weft_dims *dims = importer->root->dims;
    const char *word = source.length ? word_of(importer, source) : "d", *candidate = word;
    const bool plain = source.length && strcmp(word, "min") != 0 && strcmp(word, "max") != 0;
    weft_dim known;
    unsigned i = source.length ? 1 : importer->last_symbol + 1; /* not from the start each time */
    for (bool first = !plain; first || weft_symbol_find(dims, candidate, &known); i++, first = false)
        candidate = weft_arena_format(importer->reader.arena, source.length ? "%s_%u" : "%s%u", word, i);
    if (!source.length)
        importer->last_symbol = i - 1;
    return weft_symbol_add(dims, candidate, 0, INT32_MAX, 0);
}

static weft_dim symbol_of(struct onnx_importer *importer, struct onnx_string source)
{
    for (uint32_t i = 0; source.length && i < importer->symbols; i++)
        if (same(importer->symbol[i], source))
            return importer->symbol_dim[i];
    const weft_dim dim = new_symbol(importer, source);
    struct weft_arena *arena = importer->reader.arena;
    const uint32_t need = importer->symbols + 1;
    importer->symbol = weft_grow(arena, importer->symbol, &importer->symbol_capacity, need, sizeof *importer->symbol);
    importer->symbol_dim =
        weft_grow(arena, importer->symbol_dim, &importer->dim_capacity, need, sizeof *importer->symbol_dim);
    importer->symbol[importer->symbols] = source;
    importer->symbol_dim[importer->symbols++] = dim;
    return dim;
}

bool weft_onnx_value_type(struct onnx_importer *importer, const struct onnx_value *value, struct weft_type *ret_type)
{
    const char *name = weft_onnx_text(importer, value->name);
    if (!value->is_tensor)
        return fail(importer, WEFT_ERR_UNSUPPORTED, name, "the input is no tensor");
    const int dtype = weft_onnx_dtype(value->type);
    if (!dtype)
        return fail(importer, WEFT_ERR_UNSUPPORTED, name,
                    "the input has elements of type %s (%d), which are not supported",
                    weft_onnx_dtype_name(value->type), value->type);
    if (!value->has_shape)
        return fail(importer, WEFT_ERR_UNSUPPORTED, name, "the input has no shape");
    if (value->rank > WEFT_MAX_RANK)
        return fail(importer, WEFT_ERR_UNSUPPORTED, name, "the input has %u axes, more than %d", value->rank,
                    WEFT_MAX_RANK);
    *ret_type = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)value->rank};
    for (unsigned i = 0; i < value->rank; i++) {
        const struct onnx_dim *dim = &value->dim[i];
        const bool fixed = dim->has_value && dim->value > 0; /* exporters write 0 and -1 for what they do not know */
        if (fixed && dim->value > INT64_MAX / 128)
            return fail(importer, WEFT_ERR_INVALID, name, "extent %" PRId64 " of axis %u is too large", dim->value, i);
        ret_type->extent[i] = fixed ? weft_dim_of(dim->value) : symbol_of(importer, dim->symbol);
    }
    if (!weft_type_check_size(ret_type))
        return fail(importer, WEFT_ERR_INVALID, name, "the input has more elements than any memory holds");
    return true;
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
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u inputs do not fit opset %d", op->inputs, op->importer->opset);
    if (!op->outputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the node has no outputs");
    for (uint32_t i = 0; i < op->node->attributes; i++)
        op->node->attribute[i].used = false;
}

static void check_attributes(struct onnx_op *op)
{
    for (uint32_t i = 0; !op->failed && i < op->node->attributes; i++)
        if (!op->node->attribute[i].used)
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s is not supported at opset %d",
                           weft_onnx_text(op->importer, op->node->attribute[i].name), op->importer->opset);
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
    struct weft_arena *arena = importer->reader.arena;
    struct onnx_node resolved = weft_onnx_resolve(importer, source), *node = &resolved;
    const struct onnx_function *function = weft_onnx_function_of(&importer->model, node);
    weft_val *input = weft_new(arena, weft_val, node->input.count + 1);
    struct onnx_op op = {.importer = importer,
                         .scope = scope,
                         .graph = scope->graph,
                         .node = node,
                         .row = row_of(importer, node),
                         .name = name_of(importer, node),
                         .input = input,
                         .outputs = node->output.count,
                         .output = weft_new(arena, weft_val, node->output.count + 1)};
    const uint32_t first_value = scope->graph->values;
    const bool there = find_inputs(&op, input);
    bool readable = true;
    if ((!op.row && !function) || !there) {
        readable = survey_node(importer, node);
        op.failed = true;
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
        return fail(importer, WEFT_ERR_UNSUPPORTED, weft_onnx_text(importer, graph->name),
                    "sparse initializers are not supported");
    for (uint32_t i = 0; i < graph->initializers; i++)
        if (!weft_onnx_define(importer, scope, graph->initializer[i].name, &graph->initializer[i], WEFT_NO_VALUE))
            return fail(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, graph->initializer[i].name),
                        "the initializer is defined twice");
    return true;
}

static const struct weft_tensor *find_known(const struct onnx_importer *importer, const char *name)
{
    for (uint32_t i = 0; i < importer->knowns; i++)
        if (strcmp(importer->known[i].name, name) == 0)
            return importer->known[i].tensor;
    return NULL;
}

/* Inputs that are initializers too are defaults, which weft takes as constants: before IR version 4 all initializers
 * had to be listed as inputs. */
static void add_inputs(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    const uint32_t initializers = scope->count;
    for (uint32_t i = 0; i < graph->inputs; i++) {
        const struct onnx_value *input = &graph->input[i];
        const char *name = weft_onnx_text(importer, input->name);
        struct weft_type type;
        if (initializers && weft_onnx_is_initializer(scope, input->name))
            continue;
        weft_val param = WEFT_NO_VALUE;
        const struct weft_tensor *known = find_known(importer, name);
        if (known)
            param = weft_onnx_copy_constant(importer, scope->graph, known, name);
        else if (weft_onnx_value_type(importer, input, &type))
            param = weft_add_param(scope->graph, name, &type);
        if (!weft_onnx_define(importer, scope, input->name, NULL, param))
            fail(importer, WEFT_ERR_INVALID, name, "the input is defined twice");
    }
}

static bool add_results(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph)
{
    if (!graph->outputs)
        return fail(importer, WEFT_ERR_INVALID, NULL, "the graph has no outputs");
    for (uint32_t i = 0; i < graph->outputs; i++) {
        const struct onnx_string name = graph->output[i].name;
        const struct onnx_entry *entry = weft_onnx_lookup(importer, scope, name);
        if (!entry)
            return fail(importer, WEFT_ERR_INVALID, weft_onnx_text(importer, name),
                        "the output is not defined by any node");
        if (!entry->value.id)
            continue; /* its error is recorded */
        const struct weft_value *value = weft_value_of(scope->graph, entry->value);
        if (!value->is_param && !value->returns)
            weft_set_name(scope->graph, entry->value, name.data, name.length);
        weft_add_return(scope->graph, entry->value, WEFT_NO_VALUE);
    }
    return true;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static bool check_model(struct onnx_importer *importer)
{
    const struct onnx_model *model = &importer->model;
    if (!model->has_graph)
        return fail(importer, WEFT_ERR_SYNTAX, NULL, "not an ONNX model: it has no graph");
    int64_t opset = 1; /* files without opset_import are of the first days */
    for (uint32_t i = 0; i < model->opsets; i++)
        if (is_default_domain(model->domain[i]))
            opset = model->opset[i];
    if (opset < ONNX_MIN_OPSET || opset > ONNX_MAX_OPSET)
        return fail(importer, WEFT_ERR_UNSUPPORTED, NULL, "the model uses opset %" PRId64 "; weft reads %d to %d",
                    opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    importer->opset = (int)opset;
    return true;
}

bool weft_onnx_import(struct weft_graph *graph, struct weft_arena *scratch, struct weft_blob *file, const char *path,
                      const struct weft_onnx_known *known, uint32_t knowns)
{
    struct onnx_importer importer = {
        .reader = {.context = graph->context, .arena = scratch, .start = file->data, .path = path},
        .root = graph,
        .file = file,
        .known = known,
        .knowns = knowns};
    struct weft_context *context = graph->context;
    const int32_t errors = context->error_count;
    if (!weft_onnx_read_model(&importer.reader, (struct weft_span){file->data, file->bytes}, &importer.model) ||
        !check_model(&importer))
        return false;
    const struct onnx_graph *source = &importer.model.graph;
    struct onnx_scope scope = {.graph = graph};
    graph->file = weft_arena_copy(graph->arena, path, strlen(path));
    if (source->name.length)
        graph->name = weft_arena_copy(graph->arena, word_of(&importer, source->name), source->name.length);
    if (!weft_onnx_declare(&importer, &scope, source))
        return false;
    add_inputs(&importer, &scope, source);
    if (!weft_onnx_import_nodes(&importer, &scope, source))
        return false;
    report_missing(&importer);
    add_results(&importer, &scope, source);
    return context->error_count == errors;
}
