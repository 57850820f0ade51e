/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: messages of ONNX into structs: graphs, functions, models; beside it are tensors, nodes and types.
 *
 * One function a message, a switch over field numbers each: they are fixed for ever by onnx.proto, and are named in
 * comments. Unknown fields are skipped, as protobuf asks: newer writers add some. As protobuf asks too, the last one of
 * a repeated occurrence of a single field wins. */
#include "onnx/message.h"

#include <string.h>

bool weft_onnx_finish(struct onnx_reader *reader, const struct weft_wire *wire)
{
    if (!wire->error)
        return true;
    weft_error(reader->context, WEFT_ERR_SYNTAX, &(struct weft_place){.file = reader->path},
               "not a readable ONNX file: at byte %zu, %s%s", (size_t)(wire->culprit - reader->start), wire->error,
               wire->end == reader->end && strstr(wire->error, "runs past") ? ": has the file been cut short?" : "");
    return false;
}

struct onnx_string weft_onnx_string(struct weft_wire *wire, const struct weft_wire_field *field)
{
    const struct weft_span span = weft_wire_bytes(wire, field);
    return (struct onnx_string){(const char *)span.data, span.bytes};
}

void weft_onnx_add_string(struct onnx_reader *reader, struct onnx_strings *list, struct onnx_string string)
{
    list->item = weft_grow(reader->arena, list->item, &list->capacity, list->count + 1, sizeof *list->item);
    list->item[list->count++] = string;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static bool read_member(struct onnx_reader *reader, struct weft_wire *wire, const struct weft_wire_field *field,
                        struct onnx_graph *graph)
{
    switch (field->number) {
    case 1: /* node */
        graph->node =
            weft_grow(reader->arena, graph->node, &graph->node_capacity, graph->nodes + 1, sizeof *graph->node);
        return weft_onnx_read_node(reader, weft_wire_bytes(wire, field), &graph->node[graph->nodes++]);
    case 2: /* name */
        graph->name = weft_onnx_string(wire, field);
        return true;
    case 5: /* initializer */
        graph->initializer = weft_grow(reader->arena, graph->initializer, &graph->initializer_capacity,
                                       graph->initializers + 1, sizeof *graph->initializer);
        return weft_onnx_read_tensor(reader, weft_wire_bytes(wire, field), &graph->initializer[graph->initializers++]);
    case 11: /* input */
        graph->input =
            weft_grow(reader->arena, graph->input, &graph->input_capacity, graph->inputs + 1, sizeof *graph->input);
        return weft_onnx_read_value(reader, weft_wire_bytes(wire, field), &graph->input[graph->inputs++]);
    case 12: /* output */
        graph->output =
            weft_grow(reader->arena, graph->output, &graph->output_capacity, graph->outputs + 1, sizeof *graph->output);
        return weft_onnx_read_value(reader, weft_wire_bytes(wire, field), &graph->output[graph->outputs++]);
    case 15: /* sparse_initializer */
        graph->has_sparse = true;
        return true;
    default: /* value_info and the like: weft infers shapes itself */
        return true;
    }
}

bool weft_onnx_read_graph(struct onnx_reader *reader, struct weft_span message, struct onnx_graph *ret_graph)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    *ret_graph = (struct onnx_graph){0};
    while (weft_wire_next(&wire, &field))
        if (!read_member(reader, &wire, &field, ret_graph))
            return false;
    return weft_onnx_finish(reader, &wire);
}

/* --- opsets ------------------------------------------------------------------------------------------------------- */

/* OperatorSetIdProto: domain 1, version 2. */
static bool add_opset(struct onnx_reader *reader, struct weft_span message, struct onnx_opsets *list)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    struct onnx_opset opset = {.version = 0};
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            opset.domain = weft_onnx_string(&wire, &field);
        else if (field.number == 2)
            opset.version = weft_wire_integer(&wire, &field);
    list->item = weft_grow(reader->arena, list->item, &list->capacity, list->count + 1, sizeof *list->item);
    list->item[list->count++] = opset;
    return weft_onnx_finish(reader, &wire);
}

int64_t weft_onnx_opset_of(const struct onnx_opsets *opsets, int64_t otherwise)
{
    for (uint32_t i = 0; i < opsets->count; i++)
        if (onnx_is_default(opsets->item[i].domain))
            otherwise = opsets->item[i].version;
    return otherwise;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static bool read_function_member(struct onnx_reader *reader, struct weft_wire *wire,
                                 const struct weft_wire_field *field, struct onnx_function *function)
{
    struct weft_arena *arena = reader->arena;
    switch (field->number) {
    case 4:
        weft_onnx_add_string(reader, &function->input, weft_onnx_string(wire, field));
        return true;
    case 5:
        weft_onnx_add_string(reader, &function->output, weft_onnx_string(wire, field));
        return true;
    case 6: /* attribute: names without a default */
        weft_onnx_add_string(reader, &function->required, weft_onnx_string(wire, field));
        return true;
    case 7:
        function->node =
            weft_grow(arena, function->node, &function->node_capacity, function->nodes + 1, sizeof *function->node);
        return weft_onnx_read_node(reader, weft_wire_bytes(wire, field), &function->node[function->nodes++]);
    case 9: /* opset_import */
        return add_opset(reader, weft_wire_bytes(wire, field), &function->opsets);
    case 11: /* attribute_proto: with a default */
        function->attribute = weft_grow(arena, function->attribute, &function->attribute_capacity,
                                        function->attributes + 1, sizeof *function->attribute);
        return weft_onnx_read_attribute(reader, weft_wire_bytes(wire, field),
                                        &function->attribute[function->attributes++]);
    default:
        return true;
    }
}

static bool read_function(struct onnx_reader *reader, struct weft_span message, struct onnx_function *function)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field)) {
        if (field.number == 1)
            function->name = weft_onnx_string(&wire, &field);
        else if (field.number == 10)
            function->domain = weft_onnx_string(&wire, &field);
        else if (field.number == 13)
            function->overload = weft_onnx_string(&wire, &field);
        else if (!read_function_member(reader, &wire, &field, function))
            return false;
    }
    return weft_onnx_finish(reader, &wire);
}

static bool add_function(struct onnx_reader *reader, struct weft_span message, struct onnx_model *model)
{
    model->function = weft_grow(reader->arena, model->function, &model->function_capacity, model->functions + 1,
                                sizeof *model->function);
    return read_function(reader, message, &model->function[model->functions++]);
}

/* --- models ------------------------------------------------------------------------------------------------------- */

bool weft_onnx_read_model(struct onnx_reader *reader, struct weft_span file, struct onnx_model *ret_model)
{
    struct weft_wire wire = weft_wire_open(file);
    struct weft_wire_field field;
    struct weft_span graph = {0};
    *ret_model = (struct onnx_model){0};
    while (weft_wire_next(&wire, &field)) {
        switch (field.number) {
        case 1:
            ret_model->ir_version = weft_wire_integer(&wire, &field);
            break;
        case 7:
            graph = weft_wire_bytes(&wire, &field);
            ret_model->has_graph = true;
            break;
        case 8: /* opset_import */
            if (!add_opset(reader, weft_wire_bytes(&wire, &field), &ret_model->opsets))
                return false;
            break;
        case 25:
            if (!add_function(reader, weft_wire_bytes(&wire, &field), ret_model))
                return false;
            break;
        default: /* producer, documentation, metadata, training */
            break;
        }
    }
    if (!weft_onnx_finish(reader, &wire))
        return false;
    return !ret_model->has_graph || weft_onnx_read_graph(reader, graph, &ret_model->graph);
}
