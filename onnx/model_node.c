/* SPDX-License-Identifier: Apache-2.0 */
/* model_node.c: NodeProto and AttributeProto into structs. */
#include "onnx/message.h"

#include <string.h>

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
        attribute->string = weft_onnx_string(wire, field);
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
        weft_onnx_add_string(reader, &attribute->strings, weft_onnx_string(wire, field));
        break;
    default:
        break;
    }
}

bool weft_onnx_read_attribute(struct onnx_reader *reader, struct weft_span message, struct onnx_attribute *attribute)
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
            attribute->name = weft_onnx_string(&wire, &field);
        else if (field.number == 20) /* type */
            stated = weft_wire_integer(&wire, &field);
        else if (field.number == 21) /* ref_attr_name */
            attribute->reference = weft_onnx_string(&wire, &field);
        else if (type)
            read_payload(reader, &wire, &field, attribute, type);
    }
    if (!wire.error && payload && stated && stated < ONNX_OTHER && stated != payload)
        weft_wire_fail(&wire, message.data, "an attribute's type is not that of its value");
    attribute->is_reference = attribute->reference.length > 0;
    attribute->type = payload ? payload : stated && stated < ONNX_OTHER ? (int32_t)stated : ONNX_OTHER;
    return weft_onnx_finish(reader, &wire);
}

/* One entry of metadata_props. */
static void read_metadata(struct weft_span message, struct onnx_node *node)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    struct onnx_string key = {0}, value = {0};
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            key = weft_onnx_string(&wire, &field);
        else if (field.number == 2)
            value = weft_onnx_string(&wire, &field);
    if (!wire.error && onnx_is(key, "pkg.torch.onnx.name_scopes")) /* wrong metadata is no reason to refuse a model */
        node->scopes = value;
}

bool weft_onnx_read_node(struct onnx_reader *reader, struct weft_span message, struct onnx_node *node)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field)) {
        switch (field.number) {
        case 1:
            weft_onnx_add_string(reader, &node->input, weft_onnx_string(&wire, &field));
            break;
        case 2:
            weft_onnx_add_string(reader, &node->output, weft_onnx_string(&wire, &field));
            break;
        case 3:
            node->name = weft_onnx_string(&wire, &field);
            break;
        case 4: /* op_type */
            node->op = weft_onnx_string(&wire, &field);
            break;
        case 5: /* attribute */
            node->attribute = weft_grow(reader->arena, node->attribute, &node->attribute_capacity, node->attributes + 1,
                                        sizeof *node->attribute);
            if (!weft_onnx_read_attribute(reader, weft_wire_bytes(&wire, &field), &node->attribute[node->attributes++]))
                return false;
            break;
        case 7:
            node->domain = weft_onnx_string(&wire, &field);
            break;
        case 8:
            node->overload = weft_onnx_string(&wire, &field);
            break;
        case 9: /* metadata_props */
            read_metadata(weft_wire_bytes(&wire, &field), node);
            break;
        default:
            break;
        }
    }
    return weft_onnx_finish(reader, &wire);
}
