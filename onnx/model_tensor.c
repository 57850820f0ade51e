/* SPDX-License-Identifier: Apache-2.0 */
/* model_tensor.c: TensorProto into a struct. What is known without its elements is read here; the elements are walked
 * when a constant is made (tensor.c), so that a file of many weights costs no more than their headers. */
#include "onnx/message.h"

/* StringStringEntryProto: key 1, value 2. */
static bool read_entry(struct onnx_reader *reader, struct weft_span message, struct onnx_string *ret_key,
                       struct onnx_string *ret_value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            *ret_key = weft_onnx_string(&wire, &field);
        else if (field.number == 2)
            *ret_value = weft_onnx_string(&wire, &field);
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
            tensor.name = weft_onnx_string(&wire, &field);
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
