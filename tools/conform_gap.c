/* SPDX-License-Identifier: Apache-2.0 */
/* conform_gap.c: which ops and element types of a model weft does not list.
 *
 * This looks at the model alone and not at what the importer said about it: a case is only skipped when an op has no
 * row in the importer's tables, or a value of a type that weft does not have goes through it. Whatever else is refused
 * is a failure. */
#include "tools/conform.h"

#include "onnx/import.h"

#include <stdio.h>
#include <string.h>

#define MAX_GAPS 64

struct gap {
    const char *op;
    size_t length;
    const char *dtype;
};

struct survey {
    struct onnx_reader *reader;
    struct onnx_importer importer; /* for its functions */
    int opset, depth;
    struct gap gap[MAX_GAPS];
    int gaps;
};

static void add_gap(struct survey *survey, struct onnx_string op, const char *dtype)
{
    for (int i = 0; i < survey->gaps; i++)
        if (survey->gap[i].length == op.length && memcmp(survey->gap[i].op, op.data, op.length) == 0 &&
            strcmp(survey->gap[i].dtype, dtype) == 0)
            return;
    if (survey->gaps < MAX_GAPS)
        survey->gap[survey->gaps++] = (struct gap){op.data, op.length, dtype};
}

static bool reads_or_writes(const struct onnx_node *node, struct onnx_string name)
{
    for (uint32_t i = 0; i < node->input.count; i++)
        if (onnx_same(node->input.item[i], name))
            return true;
    for (uint32_t i = 0; i < node->output.count; i++)
        if (onnx_same(node->output.item[i], name))
            return true;
    return false;
}

/* A value of a type that weft lacks counts against each op that touches it. */
static void add_type(struct survey *survey, const struct onnx_graph *graph, struct onnx_string name, const char *dtype)
{
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (reads_or_writes(&graph->node[i], name))
            add_gap(survey, graph->node[i].op, dtype);
}

static void check_values(struct survey *survey, const struct onnx_graph *graph, const struct onnx_value *value,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (value[i].kind)
            add_type(survey, graph, value[i].name, value[i].kind);
        else if (value[i].is_tensor && !weft_onnx_dtype(value[i].type))
            add_type(survey, graph, value[i].name, weft_onnx_dtype_name(value[i].type));
}

static bool survey_graph(struct survey *survey, const struct onnx_graph *graph);

/* Attributes that hold a graph, a tensor, or the number of an element type. */
static bool check_attribute(struct survey *survey, const struct onnx_node *node, const struct onnx_attribute *attribute)
{
    struct onnx_graph graph;
    struct onnx_tensor tensor;
    if (attribute->type == ONNX_GRAPH)
        return weft_onnx_read_graph(survey->reader, attribute->message, &graph) && survey_graph(survey, &graph);
    int32_t type = 1;
    if (attribute->type == ONNX_TENSOR) {
        if (!weft_onnx_read_tensor(survey->reader, attribute->message, &tensor))
            return false;
        type = tensor.type;
    } else if (attribute->type == ONNX_INT && attribute->integer > 0 &&
               (onnx_is(attribute->name, "to") || onnx_is(attribute->name, "dtype") ||
                onnx_is(attribute->name, "output_dtype"))) {
        type = (int32_t)attribute->integer;
    }
    if (!weft_onnx_dtype(type))
        add_gap(survey, node->op, weft_onnx_dtype_name(type));
    return true;
}

static bool survey_graph(struct survey *survey, const struct onnx_graph *graph)
{
    if (++survey->depth > WEFT_MAX_DEPTH)
        return false;
    check_values(survey, graph, graph->input, graph->inputs);
    check_values(survey, graph, graph->output, graph->outputs);
    for (uint32_t i = 0; i < graph->initializers; i++)
        if (!weft_onnx_dtype(graph->initializer[i].type))
            add_type(survey, graph, graph->initializer[i].name, weft_onnx_dtype_name(graph->initializer[i].type));
    bool readable = true;
    for (uint32_t i = 0; i < graph->nodes && readable; i++) {
        const struct onnx_node *node = &graph->node[i];
        if (!weft_onnx_row_of(node, survey->opset) && !weft_onnx_function_of(&survey->importer, node) &&
            !weft_onnx_custom_of(&survey->importer, node))
            add_gap(survey, node->op, "-");
        for (uint32_t k = 0; k < node->attributes && readable; k++)
            readable = check_attribute(survey, node, &node->attribute[k]);
    }
    survey->depth--;
    return readable;
}

int weft_conform_gaps(struct onnx_reader *reader, const struct onnx_model *model)
{
    struct survey survey = {.reader = reader,
                            .importer = {.reader = *reader, .model = *model},
                            .opset = (int)weft_onnx_opset_of(&model->opsets, 1)};
    const int opset = survey.opset;
    bool readable = weft_onnx_index_functions(&survey.importer) && survey_graph(&survey, &model->graph);
    for (uint32_t i = 0; i < model->functions && readable; i++) {
        const struct onnx_graph body = {.node = model->function[i].node, .nodes = model->function[i].nodes};
        survey.opset = (int)weft_onnx_opset_of(&model->function[i].opsets, opset);
        readable = survey_graph(&survey, &body);
    }
    if (!readable)
        return 0; /* the importer will say what is wrong */
    for (int i = 0; i < survey.gaps; i++)
        printf("skip %.*s %s\n", (int)survey.gap[i].length, survey.gap[i].op, survey.gap[i].dtype);
    return survey.gaps;
}
