/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: messages of ONNX into structs.
 *
 * One function a message, a switch over field numbers each: they are fixed for ever by onnx.proto, and are named in
 * comments. Unknown fields are skipped, as protobuf asks: newer writers add some. As protobuf asks too, the last one of
 * a repeated occurrence of a single field wins. */
#include "onnx/model.h"

#include <string.h>

bool weft_onnx_finish(struct onnx_reader *reader, const struct weft_wire *wire)
{
    if (!wire->error)
        return true;
    weft_error(reader->context, WEFT_ERR_SYNTAX, &(struct weft_place){.file = reader->path},
               "not a readable ONNX file: at byte %zu, %s", (size_t)(wire->culprit - reader->start), wire->error);
    return false;
}

static struct onnx_string string_of(struct weft_wire *wire, const struct weft_wire_field *field)
{
    const struct weft_span span = weft_wire_bytes(wire, field);
    return (struct onnx_string){(const char *)span.data, span.bytes};
}

static void add_string(struct onnx_reader *reader, struct onnx_strings *list, struct onnx_string string)
{
    list->item = weft_grow(reader->arena, list->item, &list->capacity, list->count + 1, sizeof *list->item);
    list->item[list->count++] = string;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* StringStringEntryProto: key 1, value 2. */
static bool read_entry(struct onnx_reader *reader, struct weft_span message, struct onnx_string *ret_key,
                       struct onnx_string *ret_value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            *ret_key = string_of(&wire, &field);
        else if (field.number == 2)
            *ret_value = string_of(&wire, &field);
    return weft_onnx_finish(reader, &wire);
}

static bool read_external(struct onnx_reader *reader, struct weft_span message, struct onnx_tensor *tensor)
{
    struct onnx_string key = {0}, value = {0};
    if (!read_entry(reader, message, &key, &value))
        return false;
    if (onnx_is(key, "location"))
        tensor->location = value;
    else if (onnx_is(key, "offset"))
        tensor->offset = value;
    else if (onnx_is(key, "length"))
        tensor->length = value;
    return true; /* "checksum" and what else there may be: hints */
}

bool weft_onnx_read_tensor(struct onnx_reader *reader, struct weft_span message, struct onnx_tensor *ret_tensor)
{
    struct onnx_tensor tensor = {.message = message};
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    uint64_t bits;
    while (weft_wire_next(&wire, &field)) {
        switch (field.number) {
        case 1: /* dims */
            for (struct weft_wire_list list = weft_wire_list(&wire, &field, WEFT_WIRE_VARINT);
                 weft_wire_list_next(&list, &bits); tensor.rank++)
                if (tensor.rank < WEFT_MAX_RANK)
                    tensor.dim[tensor.rank] = (int64_t)bits;
            break;
        case 2: /* data_type */
            tensor.type = (int32_t)weft_wire_integer(&wire, &field);
            break;
        case 8: /* name */
            tensor.name = string_of(&wire, &field);
            break;
        case 9: /* raw_data */
            tensor.raw = weft_wire_bytes(&wire, &field);
            tensor.has_raw = true;
            break;
        case 13: /* external_data */
            if (!read_external(reader, weft_wire_bytes(&wire, &field), &tensor))
                return false;
            break;
        case 14: /* data_location */
            tensor.external = weft_wire_integer(&wire, &field) == 1;
            break;
        default: /* the typed fields are walked again when a constant is made */
            break;
        }
    }
    *ret_tensor = tensor;
    return weft_onnx_finish(reader, &wire);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void add_integers(struct onnx_reader *reader, struct weft_wire *wire, const struct weft_wire_field *field,
                         struct onnx_attribute *attribute)
{
    uint64_t bits;
    for (struct weft_wire_list list = weft_wire_list(wire, field, WEFT_WIRE_VARINT);
         weft_wire_list_next(&list, &bits);) {
        attribute->integers = weft_grow(reader->arena, attribute->integers, &attribute->capacity, attribute->count + 1,
                                        sizeof *attribute->integers);
        attribute->integers[attribute->count++] = (int64_t)bits;
    }
}

static void add_reals(struct onnx_reader *reader, struct weft_wire *wire, const struct weft_wire_field *field,
                      struct onnx_attribute *attribute)
{
    uint64_t bits;
    for (struct weft_wire_list list = weft_wire_list(wire, field, WEFT_WIRE_FIXED32);
         weft_wire_list_next(&list, &bits);) {
        const uint32_t word = (uint32_t)bits;
        attribute->reals = weft_grow(reader->arena, attribute->reals, &attribute->capacity, attribute->count + 1,
                                     sizeof *attribute->reals);
        memcpy(&attribute->reals[attribute->count++], &word, sizeof word);
    }
}

/* Field numbers of the payloads, and the type that each stands for. A file of IR version 1 states no type; a file that
 * puts several payloads into one attribute is wrong, and so is one whose stated type has another payload. */
static int type_of_payload(uint32_t number)
{
    switch (number) {
    case 2:
        return ONNX_FLOAT;
    case 3:
        return ONNX_INT;
    case 4:
        return ONNX_STRING;
    case 5:
        return ONNX_TENSOR;
    case 6:
        return ONNX_GRAPH;
    case 7:
        return ONNX_FLOATS;
    case 8:
        return ONNX_INTS;
    case 9:
        return ONNX_STRINGS;
    case 10:
    case 11:
    case 14:
    case 15:
    case 22:
    case 23:
        return ONNX_OTHER;
    default:
        return 0;
    }
}

static void read_payload(struct onnx_reader *reader, struct weft_wire *wire, const struct weft_wire_field *field,
                         struct onnx_attribute *attribute, int type)
{
    switch (type) {
    case ONNX_FLOAT:
        attribute->real = weft_wire_float(wire, field);
        break;
    case ONNX_INT:
        attribute->integer = weft_wire_integer(wire, field);
        break;
    case ONNX_STRING:
        attribute->string = string_of(wire, field);
        break;
    case ONNX_TENSOR:
    case ONNX_GRAPH:
        attribute->message = weft_wire_bytes(wire, field);
        break;
    case ONNX_FLOATS:
        add_reals(reader, wire, field, attribute);
        break;
    case ONNX_INTS:
        add_integers(reader, wire, field, attribute);
        break;
    case ONNX_STRINGS:
        add_string(reader, &attribute->strings, string_of(wire, field));
        break;
    default:
        break;
    }
}

static bool read_attribute(struct onnx_reader *reader, struct weft_span message, struct onnx_attribute *attribute)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    int payload = 0;
    int64_t stated = 0;
    while (weft_wire_next(&wire, &field)) {
        const int type = type_of_payload(field.number);
        if (type && payload && type != payload) {
            weft_wire_fail(&wire, field.at, "an attribute holds values of two kinds");
            break;
        }
        if (type)
            payload = type;
        if (field.number == 1) /* name */
            attribute->name = string_of(&wire, &field);
        else if (field.number == 20) /* type */
            stated = weft_wire_integer(&wire, &field);
        else if (field.number == 21) /* ref_attr_name */
            attribute->reference = string_of(&wire, &field);
        else if (type)
            read_payload(reader, &wire, &field, attribute, type);
    }
    if (!wire.error && payload && stated && stated < ONNX_OTHER && stated != payload)
        weft_wire_fail(&wire, message.data, "an attribute's type is not that of its value");
    attribute->is_reference = attribute->reference.length > 0;
    attribute->type = payload ? payload : stated && stated < ONNX_OTHER ? (int32_t)stated : ONNX_OTHER;
    return weft_onnx_finish(reader, &wire);
}

static bool read_node(struct onnx_reader *reader, struct weft_span message, struct onnx_node *node)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field)) {
        switch (field.number) {
        case 1:
            add_string(reader, &node->input, string_of(&wire, &field));
            break;
        case 2:
            add_string(reader, &node->output, string_of(&wire, &field));
            break;
        case 3:
            node->name = string_of(&wire, &field);
            break;
        case 4: /* op_type */
            node->op = string_of(&wire, &field);
            break;
        case 5: /* attribute */
            node->attribute = weft_grow(reader->arena, node->attribute, &node->attribute_capacity, node->attributes + 1,
                                        sizeof *node->attribute);
            if (!read_attribute(reader, weft_wire_bytes(&wire, &field), &node->attribute[node->attributes++]))
                return false;
            break;
        case 7:
            node->domain = string_of(&wire, &field);
            break;
        case 8:
            node->overload = string_of(&wire, &field);
            break;
        default:
            break;
        }
    }
    return weft_onnx_finish(reader, &wire);
}

/* --- types -------------------------------------------------------------------------------------------------------- */

/* TensorShapeProto.Dimension: dim_value 1, dim_param 2. */
static bool read_dim(struct onnx_reader *reader, struct weft_span message, struct onnx_dim *dim)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1) {
            dim->value = weft_wire_integer(&wire, &field);
            dim->has_value = true;
        } else if (field.number == 2) {
            dim->symbol = string_of(&wire, &field);
        }
    return weft_onnx_finish(reader, &wire);
}

/* TensorShapeProto: dim 1. */
static bool read_shape(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    value->has_shape = true;
    value->rank = 0;
    while (weft_wire_next(&wire, &field)) {
        if (field.number != 1)
            continue;
        struct onnx_dim dim = {0};
        if (!read_dim(reader, weft_wire_bytes(&wire, &field), &dim))
            return false;
        if (value->rank < WEFT_MAX_RANK)
            value->dim[value->rank] = dim;
        value->rank++;
    }
    return weft_onnx_finish(reader, &wire);
}

/* TypeProto.Tensor: elem_type 1, shape 2. */
static bool read_tensor_type(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    value->is_tensor = true;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            value->type = (int32_t)weft_wire_integer(&wire, &field);
        else if (field.number == 2 && !read_shape(reader, weft_wire_bytes(&wire, &field), value))
            return false;
    return weft_onnx_finish(reader, &wire);
}

/* TypeProto: tensor_type 1; the others are no tensors, and only named. */
static bool read_type(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value)
{
    static const char *const kinds[] = {[4] = "sequence", [5] = "map", [8] = "sparse", [9] = "optional"};
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number < sizeof kinds / sizeof *kinds && kinds[field.number])
            value->kind = kinds[field.number];
        else if (field.number == 1 && !read_tensor_type(reader, weft_wire_bytes(&wire, &field), value))
            return false;
    return weft_onnx_finish(reader, &wire);
}

/* ValueInfoProto: name 1, type 2. */
static bool read_value(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            value->name = string_of(&wire, &field);
        else if (field.number == 2 && !read_type(reader, weft_wire_bytes(&wire, &field), value))
            return false;
    return weft_onnx_finish(reader, &wire);
}

/* --- graphs and models -------------------------------------------------------------------------------------------- */

static bool read_member(struct onnx_reader *reader, struct weft_wire *wire, const struct weft_wire_field *field,
                        struct onnx_graph *graph)
{
    switch (field->number) {
    case 1: /* node */
        graph->node =
            weft_grow(reader->arena, graph->node, &graph->node_capacity, graph->nodes + 1, sizeof *graph->node);
        return read_node(reader, weft_wire_bytes(wire, field), &graph->node[graph->nodes++]);
    case 2: /* name */
        graph->name = string_of(wire, field);
        return true;
    case 5: /* initializer */
        graph->initializer = weft_grow(reader->arena, graph->initializer, &graph->initializer_capacity,
                                       graph->initializers + 1, sizeof *graph->initializer);
        return weft_onnx_read_tensor(reader, weft_wire_bytes(wire, field), &graph->initializer[graph->initializers++]);
    case 11: /* input */
        graph->input =
            weft_grow(reader->arena, graph->input, &graph->input_capacity, graph->inputs + 1, sizeof *graph->input);
        return read_value(reader, weft_wire_bytes(wire, field), &graph->input[graph->inputs++]);
    case 12: /* output */
        graph->output =
            weft_grow(reader->arena, graph->output, &graph->output_capacity, graph->outputs + 1, sizeof *graph->output);
        return read_value(reader, weft_wire_bytes(wire, field), &graph->output[graph->outputs++]);
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

/* OperatorSetIdProto: domain 1, version 2. */
static bool read_opset(struct onnx_reader *reader, struct weft_span message, struct onnx_string *ret_domain,
                       int64_t *ret_version)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            *ret_domain = string_of(&wire, &field);
        else if (field.number == 2)
            *ret_version = weft_wire_integer(&wire, &field);
    return weft_onnx_finish(reader, &wire);
}

static bool add_opset(struct onnx_reader *reader, struct weft_span message, struct onnx_model *model)
{
    struct weft_arena *arena = reader->arena;
    const uint32_t i = model->opsets++;
    model->domain = weft_grow(arena, model->domain, &model->opset_capacity, i + 1, sizeof *model->domain);
    model->opset = weft_grow(arena, model->opset, &model->version_capacity, i + 1, sizeof *model->opset);
    return read_opset(reader, message, &model->domain[i], &model->opset[i]);
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static bool read_function_member(struct onnx_reader *reader, struct weft_wire *wire,
                                 const struct weft_wire_field *field, struct onnx_function *function)
{
    struct weft_arena *arena = reader->arena;
    switch (field->number) {
    case 4:
        add_string(reader, &function->input, string_of(wire, field));
        return true;
    case 5:
        add_string(reader, &function->output, string_of(wire, field));
        return true;
    case 6: /* attribute: names without a default */
        add_string(reader, &function->required, string_of(wire, field));
        return true;
    case 7:
        function->node =
            weft_grow(arena, function->node, &function->node_capacity, function->nodes + 1, sizeof *function->node);
        return read_node(reader, weft_wire_bytes(wire, field), &function->node[function->nodes++]);
    case 9: { /* opset_import */
        const uint32_t i = function->opsets++;
        function->domain_of =
            weft_grow(arena, function->domain_of, &function->opset_capacity, i + 1, sizeof *function->domain_of);
        function->opset =
            weft_grow(arena, function->opset, &function->version_capacity, i + 1, sizeof *function->opset);
        return read_opset(reader, weft_wire_bytes(wire, field), &function->domain_of[i], &function->opset[i]);
    }
    case 11: /* attribute_proto: with a default */
        function->attribute = weft_grow(arena, function->attribute, &function->attribute_capacity,
                                        function->attributes + 1, sizeof *function->attribute);
        return read_attribute(reader, weft_wire_bytes(wire, field), &function->attribute[function->attributes++]);
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
            function->name = string_of(&wire, &field);
        else if (field.number == 10)
            function->domain = string_of(&wire, &field);
        else if (field.number == 13)
            function->overload = string_of(&wire, &field);
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
            if (!add_opset(reader, weft_wire_bytes(&wire, &field), ret_model))
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
