/* SPDX-License-Identifier: Apache-2.0 */
/* program_widen.h: what a plan's groups compute of 16 bits, node by node: the text of a graph with groups becomes one
 * without, where nodes of groups compute in f32 between casts (codegen/widths.h). Comparisons stay as they are.
 *
 *   fuse @mul_tanh {                                  %in_4_0: f32[9] = cast %x
 *     %h: bf16[9] = mul %x, %y                        %in_4_3: f32[9] = cast %y
 *     %t: bf16[9] = tanh %h             →             %wide_h: f32[9] = mul %in_4_0, %in_4_3
 *   }                                                 %h: bf16[9] = cast %wide_h
 *                                                     %wide_t: f32[9] = tanh %wide_h
 *                                                     %t: bf16[9] = cast %wide_t */
#ifndef WEFT_TEST_PROGRAM_WIDEN_H
#define WEFT_TEST_PROGRAM_WIDEN_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WIDEN_NAMES = 512, WIDEN_BYTES = 1 << 20 };

struct widen_value {
    char name[24], dtype[8], form[112]; /* "v1", "bf16", "[5,N]{1 0}" */
    int group;                          /* that computes it, or 0 */
    bool constant;
};
struct widen {
    struct widen_value value[WIDEN_NAMES];
    int values, line, group, groups;
    bool any;              /* numbers of 16 bits in a group */
    char to[WIDEN_BYTES];
    size_t length;
};

static inline void widen_add(struct widen *w, const char *text, size_t length)
{
    assert_true(w->length + length < sizeof w->to);
    memcpy(w->to + w->length, text, length);
    w->length += length;
    w->to[w->length] = 0;
}

static inline void widen_say(struct widen *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void widen_say(struct widen *w, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert_true(length >= 0 && (size_t)length < sizeof text);
    widen_add(w, text, (size_t)length);
}

static inline size_t widen_word(const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    return length;
}

static inline bool widen_is_half(const struct widen_value *v)
{
    return !strcmp(v->dtype, "f16") || !strcmp(v->dtype, "bf16");
}

/* "%v1: bf16[5,N]{1 0}", from behind the %; returns what follows. What stays in registers lies row-major. */
static inline const char *widen_type(struct widen *w, const char *at)
{
    assert_true(w->values < WIDEN_NAMES);
    struct widen_value *const v = &w->value[w->values++];
    v->constant = false;
    const size_t name = widen_word(at), dtype = widen_word(at + name + 2);
    snprintf(v->name, sizeof v->name, "%.*s", (int)name, at);
    snprintf(v->dtype, sizeof v->dtype, "%.*s", (int)dtype, at + name + 2);
    at += name + 2 + dtype;
    const char *end = strchr(at, ']') + 1;
    const size_t extents = (size_t)(end - at);
    end = *end == '{' ? strchr(end, '}') + 1 : end;
    const bool hidden = !strncmp(at + extents, "{-}", 3);
    snprintf(v->form, sizeof v->form, "%.*s", (int)(hidden ? extents : (size_t)(end - at)), at);
    v->group = w->group;
    return end;
}

static inline const struct widen_value *widen_find(const struct widen *w, const char *name, size_t length)
{
    for (int i = w->values; i-- > 0;)
        if (strlen(w->value[i].name) == length && !strncmp(w->value[i].name, name, length))
            return &w->value[i];
    return NULL;
}

/* The operands of a node of a group, with the names of wide ones; `says` as well what widens those from elsewhere. */
static inline void widen_operands(struct widen *w, const char *at, const char *end, bool says)
{
    for (int k = 0; at < end; k++) {
        const size_t length = *at == '%' ? widen_word(at + 1) : 0;
        const struct widen_value *const v = length ? widen_find(w, at + 1, length) : NULL;
        if (v && widen_is_half(v) && v->group == w->group) {
            if (!says)
                widen_say(w, "%%wide_%s", v->name);
        } else if (v && widen_is_half(v) && says) {
            widen_say(w, "  %%in_%d_%d: f32%s = cast %%%s\n", w->line, k, v->form, v->name);
        } else if (v && widen_is_half(v)) {
            widen_say(w, "%%in_%d_%d", w->line, k);
        } else if (!says) {
            widen_add(w, at, length + 1);
        }
        at += length + 1;
    }
}

/* What stays in registers is folded in the order of what it is made of: it lies as the first operand of its rank that
 * is not row-major. */
static inline void widen_layout(const struct widen *w, struct widen_value *v, const char *at, const char *end)
{
    int commas = 0;
    for (const char *c = v->form; *c; c++)
        commas += *c == ',';
    for (; at < end && !strchr(v->form, '{'); at++) {
        const struct widen_value *const in = *at == '%' ? widen_find(w, at + 1, widen_word(at + 1)) : NULL;
        const char *const layout = in ? strchr(in->form, '{') : NULL;
        int rank = 0;
        for (const char *c = in ? in->form : ""; *c; c++)
            rank += *c == ',';
        if (layout && rank == commas)
            snprintf(v->form + strlen(v->form), sizeof v->form - strlen(v->form), "%s", layout);
    }
}

/* Does the node compare two values that are no constants? */
static inline bool widen_compares(const struct widen *w, const char *op, const char *end)
{
    static const char *const words[] = {"eq ", "ne ", "lt ", "le ", "gt ", "ge "};
    bool compares = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        compares |= !strncmp(op, words[i], strlen(words[i]));
    for (const char *at = op; at < end && compares; at++) {
        const struct widen_value *const v = *at == '%' ? widen_find(w, at + 1, widen_word(at + 1)) : NULL;
        compares = !v || !v->constant;
    }
    return compares;
}

static inline void widen_node(struct widen *w, const char *at, const char *end)
{
    const char *const op = widen_type(w, at + 1) + strlen(" = ");
    const char *const shown = strchr(at, '{');
    struct widen_value v = w->value[--w->values]; /* an operand of the same name would be an older one */
    if (shown && shown < op && !strncmp(shown, "{-}", 3))
        widen_layout(w, &v, op, end);
    const bool half = widen_is_half(&v), casts = !strncmp(op, "cast ", 5);
    if (widen_compares(w, op, end)) {
        widen_say(w, "  %%%s: %s%s = %.*s\n", v.name, v.dtype, v.form, (int)(end - op), op);
        w->value[w->values++] = v;
        return;
    }
    widen_operands(w, op, end, true);
    widen_say(w, "  %%%s%s: %s%s = ", half && !casts ? "wide_" : "", v.name, half && !casts ? "f32" : v.dtype, v.form);
    const size_t before = w->length;
    widen_operands(w, op, end, false);
    w->any |= half || strstr(w->to + before, "wide_") || strstr(w->to + before, "%in_");
    widen_add(w, "\n", 1);
    if (half && casts)
        widen_say(w, "  %%wide_%s: f32%s = cast %%%s\n", v.name, v.form, v.name);
    else if (half)
        widen_say(w, "  %%%s: %s%s = cast %%wide_%s\n", v.name, v.dtype, v.form, v.name);
    w->value[w->values++] = v;
}

/* NULL if no group has numbers of 16 bits: then its nodes compute what the group does. */
static inline const char *widen_groups(struct widen *w, const char *text)
{
    *w = (struct widen){.line = 0};
    for (; *text; w->line++) {
        const char *const newline = strchr(text, '\n'), *const at = text + strspn(text, " ");
        const char *const note = strstr(at, " ! ");
        const char *const end = note && note < newline ? note : newline;
        if (!strncmp(at, "fuse ", 5)) {
            w->group = ++w->groups;
        } else if (*at == '}' && w->group) {
            w->group = 0;
        } else if (*at == '%' && w->group) {
            widen_node(w, at, end);
        } else {
            for (const char *name = at; !strncmp(at, "graph", 5) && (name = strchr(name, '%')); name++)
                if (name[1 + widen_word(name + 1)] == ':')
                    widen_type(w, name + 1);
            if (*at == '%') {
                const char *const op = widen_type(w, at + 1);
                w->value[w->values - 1].constant = !strncmp(op, " = const ", 9);
            }
            widen_add(w, text, (size_t)(end - text));
            widen_add(w, "\n", 1);
        }
        text = newline + 1;
    }
    return w->any ? w->to : NULL;
}

#endif
