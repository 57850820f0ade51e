/* SPDX-License-Identifier: Apache-2.0 */
/* names.h: names in the order in which they came, each found in constant time. Whoever keeps something for each name
 * keeps it in an array of its own, by the same numbers:
 *
 *     uint32_t i = weft_onnx_find_name(&names, name);
 *     if (i == ONNX_NO_NAME)
 *         i = weft_onnx_add_name(arena, &names, name);
 *     dim[i] = …
 *
 * Names are spans of the file and are not copied. */
#ifndef WEFT_ONNX_NAMES_H
#define WEFT_ONNX_NAMES_H

#include "onnx/model.h"

#define ONNX_NO_NAME UINT32_MAX

struct onnx_names {
    struct onnx_string *item;
    uint32_t count, capacity;
    uint32_t *slot; /* open hash, a power of two: number of the name + 1, or 0 */
    uint32_t slots;
};

/* The number of a name, or ONNX_NO_NAME. */
uint32_t weft_onnx_find_name(const struct onnx_names *names, struct onnx_string name);
/* Adds a name that is not there, and returns its number. */
uint32_t weft_onnx_add_name(struct weft_arena *arena, struct onnx_names *names, struct onnx_string name);

#endif
