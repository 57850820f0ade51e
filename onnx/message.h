/* SPDX-License-Identifier: Apache-2.0 */
/* message.h: what the readers of ONNX's messages (model*.c) share. Each reads one message, adds to the struct that it
 * is given, and returns false after recording an error. */
#ifndef WEFT_ONNX_MESSAGE_H
#define WEFT_ONNX_MESSAGE_H

#include "onnx/model.h"

/* A field's bytes as a string: a span of the file. */
struct onnx_string weft_onnx_string(struct weft_wire *wire, const struct weft_wire_field *field);
void weft_onnx_add_string(struct onnx_reader *reader, struct onnx_strings *list, struct onnx_string string);

bool weft_onnx_read_attribute(struct onnx_reader *reader, struct weft_span message, struct onnx_attribute *attribute);
bool weft_onnx_read_node(struct onnx_reader *reader, struct weft_span message, struct onnx_node *node);
bool weft_onnx_read_value(struct onnx_reader *reader, struct weft_span message, struct onnx_value *value);

#endif
