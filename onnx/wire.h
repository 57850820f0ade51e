/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h: the protobuf wire format, read in place.
 *
 * A message is a run of fields: a varint tag (number * 8 + wire type) and a payload. The reader walks the fields of one
 * message and hands out spans of the file for what is nested; it never descends by itself, allocates nothing, and never
 * looks outside its span. The first malformed byte ends the walk: `error` and `culprit` say what and where. */
#ifndef WEFT_ONNX_WIRE_H
#define WEFT_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_span {
    const uint8_t *data;
    size_t bytes;
};

enum weft_wire_type { WEFT_WIRE_VARINT = 0, WEFT_WIRE_FIXED64 = 1, WEFT_WIRE_BYTES = 2, WEFT_WIRE_FIXED32 = 5 };

struct weft_wire {
    const uint8_t *cursor, *end;
    const char *error;      /* constant text, or NULL */
    const uint8_t *culprit; /* where it was found */
};

struct weft_wire_field {
    uint32_t number;
    uint8_t type;          /* enum weft_wire_type */
    uint64_t integer;      /* of a varint */
    struct weft_span span; /* payload of the other types: 8, any number of, or 4 bytes */
    const uint8_t *at;     /* the tag */
};

struct weft_wire weft_wire_open(struct weft_span message);
/* The next field, or false at the end of the message and at an error. */
bool weft_wire_next(struct weft_wire *wire, struct weft_wire_field *ret_field);
/* Ends the walk with an error at `at`; the first one stays. Returns false. */
bool weft_wire_fail(struct weft_wire *wire, const uint8_t *at, const char *error);

/* The payload as what the schema says it is; another wire type is an error and yields zero. */
struct weft_span weft_wire_bytes(struct weft_wire *wire, const struct weft_wire_field *field);
int64_t weft_wire_integer(struct weft_wire *wire, const struct weft_wire_field *field);
float weft_wire_float(struct weft_wire *wire, const struct weft_wire_field *field);

/* One field of a repeated scalar, which writers may pack (all elements in one span) or not (one element a field).
 * `type` is the wire type of an element: WEFT_WIRE_VARINT, _FIXED32 or _FIXED64. */
struct weft_wire_list {
    struct weft_wire *wire;
    const uint8_t *cursor, *end;
    uint64_t single;
    uint8_t type;
    bool is_single;
};
struct weft_wire_list weft_wire_list(struct weft_wire *wire, const struct weft_wire_field *field, int type);
/* The next element as its bits (varints: all 64), or false at the end and at an error. */
bool weft_wire_list_next(struct weft_wire_list *list, uint64_t *ret_bits);

#endif
