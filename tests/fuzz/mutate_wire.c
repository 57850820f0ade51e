/* SPDX-License-Identifier: Apache-2.0 */
/* mutate_wire.c: steps on ONNX models that keep them protobuf.
 *
 * The bytes are walked into a list of fields, each with its parent, by a table of which fields of ONNX are messages. A
 * step replaces one field by other bytes, and then the lengths of all messages around it are written anew, from the
 * inside out; parents stand before their children, so their places stay right meanwhile. What is no protobuf gets a
 * step of bytes, and every eighth step is one, so that broken lengths occur too. */
#include "tests/fuzz/fuzz.h"

#include "onnx/rows.h"

#include <string.h>

enum kind {
    LEAF, MODEL, OPSET, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE, VALUE, TYPE, TENSOR_TYPE, SHAPE, EXTENT, FUNCTION
};
enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };
enum { MOST_FIELDS = 1024, MOST_DEPTH = 24, MOST_BYTES = 256 };

static const struct { uint8_t owner, number, kind; } messages[] = {
    {MODEL, 7, GRAPH},     {MODEL, 8, OPSET},         {MODEL, 25, FUNCTION},   {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},    {GRAPH, 11, VALUE},        {GRAPH, 12, VALUE},      {GRAPH, 13, VALUE},
    {GRAPH, 15, SPARSE},   {NODE, 5, ATTRIBUTE},      {ATTRIBUTE, 5, TENSOR},  {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 11, GRAPH},  {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR},
    {VALUE, 2, TYPE},      {TYPE, 1, TENSOR_TYPE},    {TENSOR_TYPE, 2, SHAPE}, {SHAPE, 1, EXTENT},
    {FUNCTION, 7, NODE},   {FUNCTION, 9, OPSET},      {FUNCTION, 11, ATTRIBUTE},
};

struct field {
    size_t at, length_at, payload, end; /* length_at: of the length, where there is one */
    int parent;                         /* index, or -1 */
    uint8_t owner, kind, wire;
    uint32_t number;
};

struct model {
    uint8_t *data;
    size_t size, room;
    uint64_t *random;
    struct field field[MOST_FIELDS];
    int fields;
};

/* --- walking ------------------------------------------------------------------------------------------------------ */

static bool read_varint(const uint8_t *data, size_t end, size_t *at, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = data[(*at)++];
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static uint8_t kind_of(uint8_t owner, uint64_t number)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].owner == owner && messages[i].number == number)
            return messages[i].kind;
    return LEAF;
}

static bool read_field(const uint8_t *data, size_t end, size_t *at, struct field *field)
{
    uint64_t tag, length = 0;
    field->at = *at;
    if (!read_varint(data, end, at, &tag))
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->wire = tag & 7;
    field->length_at = field->payload = *at;
    if (field->wire == VARINT) {
        if (!read_varint(data, end, at, &length))
            return false;
        length = 0;
    } else if (field->wire == BYTES) {
        if (!read_varint(data, end, at, &length))
            return false;
        field->payload = *at;
    } else {
        length = field->wire == FIXED64 ? 8 : field->wire == FIXED32 ? 4 : UINT64_MAX;
    }
    if (length > end - *at)
        return false;
    *at += (size_t)length;
    field->end = *at;
    return true;
}

/* Fields of one message behind those that are known already; the walk is breadth first, so it does not recurse. */
static bool walk(struct model *m, int parent, uint8_t owner, size_t at, size_t end)
{
    while (at < end && m->fields < MOST_FIELDS) {
        struct field *field = &m->field[m->fields];
        if (!read_field(m->data, end, &at, field))
            return false;
        field->parent = parent;
        field->owner = owner;
        field->kind = field->wire == BYTES ? kind_of(owner, field->number) : LEAF;
        m->fields++;
    }
    return true;
}

static bool open_model(struct model *m)
{
    if (!walk(m, -1, MODEL, 0, m->size))
        return false;
    for (int i = 0; i < m->fields; i++)
        if (m->field[i].kind && !walk(m, i, m->field[i].kind, m->field[i].payload, m->field[i].end))
            m->field[i].kind = LEAF;
    return m->fields > 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static size_t write_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

/* Puts bytes in the place of [at, end), which lies in the payload of `parent`, and mends the lengths around it. */
static void replace(struct model *m, int parent, size_t at, size_t end, const uint8_t *bytes, size_t count)
{
    if (m->size - (end - at) + count + 10 * MOST_DEPTH > m->room)
        return;
    int64_t growth = (int64_t)count - (int64_t)(end - at);
    m->size = weft_fuzz_splice(m->data, m->size, m->room, at, end - at, bytes, count);
    for (int depth = 0; parent >= 0 && depth < MOST_DEPTH; parent = m->field[parent].parent, depth++) {
        const struct field *field = &m->field[parent];
        uint8_t length[10];
        const size_t old = field->payload - field->length_at;
        const size_t new = write_varint(length, (uint64_t)((int64_t)(field->end - field->payload) + growth));
        m->size = weft_fuzz_splice(m->data, m->size, m->room, field->length_at, old, length, new);
        growth += (int64_t)new - (int64_t)old;
    }
}

static void replace_payload(struct model *m, const struct field *field, const void *payload, size_t count)
{
    uint8_t bytes[MOST_BYTES + 10];
    size_t n = 0;
    if (count > MOST_BYTES)
        return;
    if (field->wire == BYTES)
        n = write_varint(bytes, count);
    memcpy(bytes + n, payload, count);
    replace(m, field->parent, field->length_at, field->end, bytes, n + count);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static const char *random_op(uint64_t *random)
{
    const char *domain;
    unsigned rows = 0;
    while (weft_onnx_row_at(rows, &domain))
        rows++;
    return weft_onnx_row_at(weft_fuzz_draw(random, rows), &domain)->name;
}

static void change_number(struct model *m, const struct field *field)
{
    static const int64_t numbers[] = {0, 1, 2, 3, 4, 6, 7, 9, 10, 11, 16, 17, 18, 19, 20, 22, -1, -2, 127, 1000, 65536,
                                      INT32_MAX, INT64_MAX, INT64_MIN};
    uint8_t bytes[10];
    const int64_t number = numbers[weft_fuzz_draw(m->random, sizeof numbers / sizeof *numbers)];
    replace_payload(m, field, bytes, write_varint(bytes, (uint64_t)number));
}

static void change_float(struct model *m, const struct field *field)
{
    static const float numbers[] = {0, 1, -1, 0.5f, 2, 1e-5f, 1e30f, -1e30f, 3.5f, 1e-40f};
    replace_payload(m, field, &numbers[weft_fuzz_draw(m->random, sizeof numbers / sizeof *numbers)], 4);
}

static void change_text(struct model *m, const struct field *field)
{
    static const char *const names[] = {
        "axis", "axes", "perm", "pads", "strides", "kernel_shape", "dilations", "group", "auto_pad", "keepdims", "to",
        "alpha", "beta", "epsilon", "mode", "value", "value_ints", "starts", "ends", "split", "num_outputs", "k",
        "largest", "direction", "body", "then_branch", "else_branch", "hidden_size", "equation", "blocksize", "shape",
        "SAME_UPPER", "VALID", "linear", "cubic", "nearest", "edge", "reflect", "wrap", "reverse", "bidirectional"};
    const char *text = field->owner == NODE && field->number == 4
                           ? random_op(m->random)
                           : names[weft_fuzz_draw(m->random, sizeof names / sizeof *names)];
    replace_payload(m, field, text, strlen(text));
}

/* Any field of the same kind, or none. */
static const struct field *another(const struct model *m, const struct field *field)
{
    const struct field *found = NULL;
    uint32_t count = 0;
    for (int i = 0; i < m->fields; i++) {
        const struct field *other = &m->field[i];
        const bool name = field->owner == NODE && other->owner == NODE && field->number <= 2 && other->number <= 2;
        if (other != field && (name || (other->owner == field->owner && other->number == field->number)) &&
            weft_fuzz_draw(m->random, ++count) == 0)
            found = other;
    }
    return found;
}

static void change_bytes(struct model *m, const struct field *field)
{
    uint8_t bytes[MOST_BYTES];
    const size_t count = field->end - field->payload;
    if (count > sizeof bytes)
        return;
    memcpy(bytes, m->data + field->payload, count);
    replace_payload(m, field, bytes, weft_fuzz_mutate_bytes(bytes, count, sizeof bytes, m->random));
}

/* Becomes a copy of another of its kind. */
static void copy_other(struct model *m, const struct field *field)
{
    uint8_t bytes[MOST_BYTES];
    const struct field *other = another(m, field);
    const size_t count = other ? other->end - other->payload : 0;
    if (!other || count > sizeof bytes || other->wire != field->wire)
        return;
    memcpy(bytes, m->data + other->payload, count);
    replace_payload(m, field, bytes, count);
}

/* The whole field once more, behind itself, or no more. */
static void repeat(struct model *m, const struct field *field)
{
    uint8_t bytes[2 * MOST_BYTES];
    const size_t count = field->end - field->at;
    if (count > sizeof bytes)
        return;
    memcpy(bytes, m->data + field->at, count);
    replace(m, field->parent, field->end, field->end, bytes, count);
}

size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    static struct model m;
    m.data = data;
    m.size = size;
    m.room = room;
    m.random = random;
    m.fields = 0;
    if (weft_fuzz_draw(random, 8) == 0 || !open_model(&m))
        return weft_fuzz_mutate_bytes(data, size, room, random);
    const struct field *field = &m.field[weft_fuzz_draw(random, (size_t)m.fields)];
    const uint32_t step = weft_fuzz_draw(random, 8);
    if (step == 0)
        repeat(&m, field);
    else if (step == 1)
        replace(&m, field->parent, field->at, field->end, NULL, 0);
    else if (step == 2)
        copy_other(&m, field);
    else if (field->wire == VARINT)
        change_number(&m, field);
    else if (field->wire == FIXED32)
        change_float(&m, field);
    else if (field->wire == BYTES && !field->kind && step == 3)
        change_bytes(&m, field);
    else if (field->wire == BYTES && !field->kind)
        change_text(&m, field);
    else
        copy_other(&m, field);
    return m.size;
}
