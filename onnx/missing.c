/* SPDX-License-Identifier: Apache-2.0 */
/* missing.c: ops that weft lacks. They do not end an import; they are counted, and reported together at its end. */
#include "onnx/import.h"

#include <stdio.h>
#include <string.h>

static void count(struct onnx_importer *importer, const struct onnx_node *node)
{
    struct weft_arena *arena = importer->reader.arena;
    const bool plain = onnx_is_default(node->domain);
    const char *key = weft_arena_format(arena, "%.*s%s%.*s", plain ? 0 : (int)node->domain.length, node->domain.data,
                                        plain ? "" : ".", (int)node->op.length, node->op.data);
    const struct onnx_string name = {key, strlen(key)};
    uint32_t i = weft_onnx_find_name(&importer->missing_op, name);
    if (i == ONNX_NO_NAME) {
        i = weft_onnx_add_name(arena, &importer->missing_op, name);
        importer->missing =
            weft_grow(arena, importer->missing, &importer->missing_capacity, i + 1, sizeof *importer->missing);
        importer->missing[i] = (struct onnx_missing){.first = weft_onnx_node_name(importer, node),
                                                     .opset = plain ? importer->opset : 0,
                                                     .domain = plain ? NULL : weft_onnx_text(importer, node->domain),
                                                     .op = weft_onnx_text(importer, node->op)};
    }
    importer->missing[i].count++;
}

void weft_onnx_report_missing(struct onnx_importer *importer)
{
    for (uint32_t i = 0; i < importer->missing_op.count; i++) {
        const struct onnx_missing *missing = &importer->missing[i];
        char opset[32] = "", remedy[320] = "";
        if (missing->opset)
            snprintf(opset, sizeof opset, " (opset %d)", missing->opset);
        if (missing->domain)
            snprintf(remedy, sizeof remedy, "; register a custom function for op \"%.100s\" of domain \"%.100s\" "
                     "(weft_register, or --custom F.so of the command)", missing->op, missing->domain);
        weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, NULL, "unsupported op %s%s: %u node%s, first \"%s\"%s",
                          importer->missing_op.item[i].data, opset, missing->count, missing->count == 1 ? "" : "s",
                          missing->first ? missing->first : "", remedy);
    }
}

bool weft_onnx_survey_node(struct onnx_importer *importer, const struct onnx_node *node)
{
    struct onnx_function *function = weft_onnx_function_of(importer, node);
    if (weft_onnx_custom_of(importer, node))
        return true; /* whose attributes hold no graphs */
    if (!weft_onnx_row_of(node, importer->opset) && function) {
        const struct onnx_graph body = {.node = function->node, .nodes = function->nodes};
        const bool known = function->surveyed;
        function->surveyed = true;
        return known || weft_onnx_survey(importer, &body);
    }
    if (!weft_onnx_row_of(node, importer->opset))
        count(importer, node);
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
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, NULL, "subgraphs are nested more than %d deep",
                                 WEFT_MAX_DEPTH);
    importer->depth++;
    bool readable = true;
    for (uint32_t i = 0; readable && i < graph->nodes; i++)
        readable = weft_onnx_survey_node(importer, &graph->node[i]);
    importer->depth--;
    return readable;
}
