/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the tables that ops.def and attrs.def expand to, and look-ups in them. */
#include "ir/ir.h"
#include "ir/index_rules.h"
#include "ir/rules.h"

#include <string.h>

#define R(k) {.key = WEFT_ATTR_##k, .required = true}
#define O(k) {.key = WEFT_ATTR_##k}
#define D(k, value) {.key = WEFT_ATTR_##k, .has_default = true, .fallback = (value)}
#define W(k, first, others) {.key = WEFT_ATTR_##k, .has_default = true, .words = first " " others, .word = first}
#define END {.key = WEFT_ATTR_NONE}
#define OP(name, min, max, results, traits, infer, index, walked, ...) \
    static const struct weft_attr_spec attrs_##name[] = {__VA_ARGS__};
#include "ir/ops.def"
#undef OP
#undef R
#undef O
#undef D
#undef W
#undef END

const struct weft_op_info weft_ops[WEFT_OP_COUNT] = {
    [WEFT_OP_NONE] = {.name = "none", .attrs = (const struct weft_attr_spec[]){{.key = WEFT_ATTR_NONE}}},
#define OP(name, min, max, results, traits, infer, index, walked, ...) \
    [WEFT_OP_##name] = {#name, min, max, results, walked, traits, weft_infer_##infer, weft_index_##index, attrs_##name},
#include "ir/ops.def"
#undef OP
};

const char *const weft_attr_names[WEFT_ATTR_COUNT] = {
    "",
#define ATTR(name, kind, help) #name,
#include "ir/attrs.def"
#undef ATTR
};

const uint8_t weft_attr_kinds[WEFT_ATTR_COUNT] = {
    0,
#define ATTR(name, kind, help) WEFT_ATTR_##kind,
#include "ir/attrs.def"
#undef ATTR
};

/* About a hundred names: a linear search costs less than any structure that would have to be built and kept. */
static int find(const char *const *names, size_t stride, int count, const char *name, size_t length)
{
    for (int i = 1; i < count; i++) {
        const char *candidate = *(const char *const *)((const char *)names + (size_t)i * stride);
        if (length && *candidate == *name && strncmp(candidate, name, length) == 0 && candidate[length] == '\0')
            return i;
    }
    return 0;
}

int weft_opcode_find(const char *name, size_t length)
{
    return find(&weft_ops[0].name, sizeof weft_ops[0], WEFT_OP_COUNT, name, length);
}

int weft_attr_key_find(const char *name, size_t length)
{
    return find(weft_attr_names, sizeof weft_attr_names[0], WEFT_ATTR_COUNT, name, length);
}

const struct weft_attr_spec *weft_attr_spec_find(int opcode, int key)
{
    for (const struct weft_attr_spec *spec = weft_ops[opcode].attrs; spec->key != WEFT_ATTR_NONE; spec++)
        if (spec->key == key)
            return spec;
    return NULL;
}
