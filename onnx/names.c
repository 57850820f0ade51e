/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: an open hash of the numbers of names, half empty at least. */
#include "onnx/names.h"

#include <string.h>
#include <xxhash.h>

/* Where the name stands, or the free place where it would. */
static uint32_t *slot_of(const struct onnx_names *names, struct onnx_string name)
{
    uint32_t i = (uint32_t)XXH3_64bits(name.data, name.length) & (names->slots - 1);
    while (names->slot[i] && !onnx_same(names->item[names->slot[i] - 1], name))
        i = (i + 1) & (names->slots - 1);
    return &names->slot[i];
}

uint32_t weft_onnx_find_name(const struct onnx_names *names, struct onnx_string name)
{
    return names->slots ? *slot_of(names, name) - 1 : ONNX_NO_NAME; /* 0 - 1 is ONNX_NO_NAME */
}

static void grow(struct weft_arena *arena, struct onnx_names *names)
{
    names->slots = names->slots ? 2 * names->slots : 16;
    names->slot = weft_new(arena, uint32_t, names->slots);
    for (uint32_t i = 0; i < names->count; i++)
        *slot_of(names, names->item[i]) = i + 1;
}

uint32_t weft_onnx_add_name(struct weft_arena *arena, struct onnx_names *names, struct onnx_string name)
{
    if (2 * (names->count + 1) > names->slots)
        grow(arena, names);
    *slot_of(names, name) = names->count + 1;
    names->item = weft_grow(arena, names->item, &names->capacity, names->count + 1, sizeof *names->item);
    names->item[names->count] = name;
    return names->count++;
}
