/* SPDX-License-Identifier: Apache-2.0 */
/* model_type.c: what a model says about the type of an input or a result. Tensors are read, others only named: weft has
 * no values that are none. */
#include "onnx/message.h"

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
            dim->symbol = weft_onnx_string(&wire, &field);
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
bool weft_onnx_read_value(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value)
{
    struct weft_wire wire = weft_wire_open(message);
    struct weft_wire_field field;
    while (weft_wire_next(&wire, &field))
        if (field.number == 1)
            value->name = weft_onnx_string(&wire, &field);
        else if (field.number == 2 && !read_type(reader, weft_wire_bytes(&wire, &field), value))
            return false;
    return weft_onnx_finish(reader, &wire);
}
