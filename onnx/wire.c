/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: the protobuf wire format, as described on protobuf.dev under "Encoding".
 *
 * Lengths are 64-bit and compared with what is left, never added to a pointer first, so no length can wrap. Numbers are
 * put together from bytes: the file is unaligned, and little-endian on any machine. Groups (wire types 3 and 4) have
 * been deprecated since before ONNX existed, and are refused. */
#include "onnx/wire.h"

#include <string.h>

struct weft_wire weft_wire_open(struct weft_span message)
{
    return (struct weft_wire){.cursor = message.data,
                              .end = message.bytes ? message.data + message.bytes : message.data};
}

bool weft_wire_fail(struct weft_wire *wire, const uint8_t *at, const char *error)
{
    if (!wire->error) {
        wire->error = error;
        wire->culprit = at;
    }
    wire->cursor = wire->end;
    return false;
}

/* Ten bytes of seven bits hold 64; the tenth has room for one. */
static bool read_varint(struct weft_wire *wire, const uint8_t **cursor, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *at = *cursor;
    uint64_t value = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (at + i == end)
            return weft_wire_fail(wire, *cursor, "a number runs past the end of its message");
        const uint64_t byte = at[i];
        if (i == 9 && byte > 1)
            break;
        value |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *cursor = at + i + 1;
            *ret = value;
            return true;
        }
    }
    return weft_wire_fail(wire, *cursor, "a number is longer than 64 bits");
}

static uint64_t load_little(const uint8_t *data, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)data[i] << (8 * i);
    return value;
}

bool weft_wire_next(struct weft_wire *wire, struct weft_wire_field *ret_field)
{
    if (wire->cursor == wire->end)
        return false;
    struct weft_wire_field field = {.at = wire->cursor};
    uint64_t tag, length = 0;
    if (!read_varint(wire, &wire->cursor, wire->end, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > 536870911u) /* field numbers have 29 bits */
        return weft_wire_fail(wire, field.at, "a field has an impossible number");
    field.number = (uint32_t)(tag >> 3);
    field.type = tag & 7;
    switch (field.type) {
    case WEFT_WIRE_VARINT:
        if (!read_varint(wire, &wire->cursor, wire->end, &field.integer))
            return false;
        break;
    case WEFT_WIRE_FIXED64:
        length = 8;
        break;
    case WEFT_WIRE_FIXED32:
        length = 4;
        break;
    case WEFT_WIRE_BYTES:
        if (!read_varint(wire, &wire->cursor, wire->end, &length))
            return false;
        break;
    default:
        return weft_wire_fail(wire, field.at, "a field has a wire type that ONNX does not use");
    }
    if (length > (uint64_t)(wire->end - wire->cursor))
        return weft_wire_fail(wire, field.at, "a field runs past the end of its message");
    field.span = (struct weft_span){wire->cursor, (size_t)length};
    wire->cursor += length;
    *ret_field = field;
    return true;
}

struct weft_span weft_wire_bytes(struct weft_wire *wire, const struct weft_wire_field *field)
{
    if (field->type == WEFT_WIRE_BYTES)
        return field->span;
    weft_wire_fail(wire, field->at, "a field that holds bytes is encoded as a number");
    return (struct weft_span){field->at, 0};
}

int64_t weft_wire_integer(struct weft_wire *wire, const struct weft_wire_field *field)
{
    if (field->type == WEFT_WIRE_VARINT)
        return (int64_t)field->integer;
    weft_wire_fail(wire, field->at, "a field that holds an integer is encoded as something else");
    return 0;
}

float weft_wire_float(struct weft_wire *wire, const struct weft_wire_field *field)
{
    if (field->type != WEFT_WIRE_FIXED32) {
        weft_wire_fail(wire, field->at, "a field that holds a float is encoded as something else");
        return 0;
    }
    const uint32_t bits = (uint32_t)load_little(field->span.data, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct weft_wire_list weft_wire_list(struct weft_wire *wire, const struct weft_wire_field *field, int type)
{
    struct weft_wire_list list = {.wire = wire, .type = (uint8_t)type};
    if (field->type == WEFT_WIRE_BYTES) {
        list.cursor = field->span.data;
        list.end = field->span.data + field->span.bytes;
        if (type != WEFT_WIRE_VARINT && field->span.bytes % (type == WEFT_WIRE_FIXED32 ? 4 : 8))
            weft_wire_fail(wire, field->at, "a packed list ends within an element");
    } else if (field->type == type) {
        list.is_single = true;
        list.single =
            type == WEFT_WIRE_VARINT ? field->integer : load_little(field->span.data, (unsigned)field->span.bytes);
    } else {
        weft_wire_fail(wire, field->at, "an element of a list has the wrong wire type");
    }
    return list;
}

bool weft_wire_list_next(struct weft_wire_list *list, uint64_t *ret_bits)
{
    if (list->wire->error)
        return false;
    if (list->is_single) {
        list->is_single = false;
        *ret_bits = list->single;
        return true;
    }
    if (list->cursor == list->end)
        return false;
    if (list->type == WEFT_WIRE_VARINT)
        return read_varint(list->wire, &list->cursor, list->end, ret_bits);
    const unsigned bytes = list->type == WEFT_WIRE_FIXED32 ? 4 : 8;
    *ret_bits = load_little(list->cursor, bytes);
    list->cursor += bytes;
    return true;
}
