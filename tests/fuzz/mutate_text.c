/* SPDX-License-Identifier: Apache-2.0 */
/* mutate_text.c: steps on the text of graphs that mostly lead to other graphs, and seldom to a mere mistake of
 * spelling.
 *
 * The text is cut into words: runs of letters, digits, `_` and `.`, with the sigil before them. A step replaces one
 * word by another of its kind (op, dtype, number, value, attribute), wherever it stands once or everywhere: `4` changed
 * in every shape at once is still a legal graph, changed in one place it seldom is. Other steps move whole lines, add
 * an attribute, or put a layout behind a type. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#define PICK(random, list) list[weft_fuzz_draw(random, sizeof(list) / sizeof(*list))]

struct text {
    uint8_t *data;
    size_t size, room;
    uint64_t *random;
};

struct word {
    size_t at, length;
};

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* --- finding words ------------------------------------------------------------------------------------------------ */

static bool is_op(const struct text *t, struct word w)
{
    return weft_opcode_find((const char *)t->data + w.at, w.length) > 0;
}

static bool is_key(const struct text *t, struct word w)
{
    return w.at + w.length < t->size && t->data[w.at + w.length] == '=' &&
           weft_attr_key_find((const char *)t->data + w.at, w.length) > 0;
}

static bool is_dtype(const struct text *t, struct word w)
{
    char name[16];
    if (w.length >= sizeof name)
        return false;
    memcpy(name, t->data + w.at, w.length);
    name[w.length] = '\0';
    return weft_dtype_from_name(name) != 0;
}

static bool is_number(const struct text *t, struct word w)
{
    const uint8_t c = t->data[w.at];
    return c >= '0' && c <= '9' && (w.at == 0 || t->data[w.at - 1] != '%');
}

static bool is_value(const struct text *t, struct word w) { return w.at > 0 && t->data[w.at - 1] == '%'; }

static bool is_plain(const struct text *t, struct word w)
{
    (void)t;
    return w.length > 0;
}

/* The next word at or behind *at, which moves behind it. */
static bool next_word(const struct text *t, size_t *at, struct word *ret)
{
    while (*at < t->size && !is_word(t->data[*at]))
        ++*at;
    ret->at = *at;
    while (*at < t->size && is_word(t->data[*at]))
        ++*at;
    ret->length = *at - ret->at;
    return ret->length > 0;
}

/* One word of that kind, each as likely as the others. */
static bool pick_word(const struct text *t, bool (*is)(const struct text *, struct word), struct word *ret)
{
    struct word w;
    uint32_t count = 0;
    for (size_t at = 0; next_word(t, &at, &w);)
        if (is(t, w) && weft_fuzz_draw(t->random, ++count) == 0)
            *ret = w;
    return count > 0;
}

/* --- replacing words ---------------------------------------------------------------------------------------------- */

static void splice(struct text *t, size_t at, size_t old, const char *with)
{
    t->size = weft_fuzz_splice(t->data, t->size, t->room, at, old, with, strlen(with));
}

/* Once, or wherever the same word stands. */
static void replace(struct text *t, struct word w, const char *with, bool everywhere)
{
    uint8_t old[64];
    if (!everywhere || w.length > sizeof old) {
        splice(t, w.at, w.length, with);
        return;
    }
    memcpy(old, t->data + w.at, w.length);
    struct word other;
    for (size_t at = 0; next_word(t, &at, &other);)
        if (other.length == w.length && memcmp(t->data + other.at, old, w.length) == 0 &&
            t->size - w.length + strlen(with) <= t->room) {
            splice(t, other.at, other.length, with);
            at = other.at + strlen(with);
        }
}

/* One op in three has as many operands as the old one. */
static void change_op(struct text *t)
{
    struct word w;
    if (!pick_word(t, is_op, &w))
        return;
    const struct weft_op_info *old = &weft_ops[weft_opcode_find((const char *)t->data + w.at, w.length)];
    const struct weft_op_info *new = old;
    for (int tries = 0; tries < 12 && (new == old || new->min_operands != old->min_operands); tries++)
        new = &weft_ops[1 + weft_fuzz_draw(t->random, WEFT_OP_COUNT - 1)];
    replace(t, w, new->name, /* everywhere= */ false);
}

static void change_dtype(struct text *t)
{
    struct word w;
    if (pick_word(t, is_dtype, &w))
        replace(t, w, weft_dtype_name(1 + (int)weft_fuzz_draw(t->random, WEFT_F8E5M2)), weft_fuzz_draw(t->random, 4));
}

static void change_number(struct text *t)
{
    static const char *const numbers[] = {
        "0", "1", "2", "3", "4", "5", "7", "8", "16", "17", "31", "63", "64", "65", "127", "128", "1000", "65536",
        "2147483647", "2147483648", "4611686018427387903", "9223372036854775807", "18446744073709551615", "1e30",
        "0.5", "1e-40", "N", "(N + 1)", "min(N, 3)"};
    struct word w;
    if (pick_word(t, is_number, &w))
        replace(t, w, PICK(t->random, numbers), weft_fuzz_draw(t->random, 2));
}

static void change_sign(struct text *t)
{
    struct word w;
    if (pick_word(t, is_number, &w))
        splice(t, w.at, 0, "-");
}

/* A word becomes a copy of another of its kind. */
static void copy_word(struct text *t, bool (*is)(const struct text *, struct word))
{
    struct word from, to;
    char copy[64];
    if (!pick_word(t, is, &from) || !pick_word(t, is, &to) || from.length >= sizeof copy)
        return;
    memcpy(copy, t->data + from.at, from.length);
    copy[from.length] = '\0';
    replace(t, to, copy, /* everywhere= */ false);
}

/* --- attributes and layouts --------------------------------------------------------------------------------------- */

static size_t line_end(const struct text *t, size_t at)
{
    const uint8_t *end = at < t->size ? memchr(t->data + at, '\n', t->size - at) : NULL;
    return end ? (size_t)(end - t->data) : t->size;
}

/* Of those that the op of some line has. */
static void add_attribute(struct text *t)
{
    static const char *const values[] = {"0", "1", "-1", "2", "[0]", "[1]", "[0 1]", "[1 0]", "[1 1]", "[1 1 1 1]",
                                         "[]", "[2 2]", "f32", "f64", "i32", "0.5", "inf", "nan", "nearest", "edge"};
    struct word w;
    char text[80];
    if (!pick_word(t, is_op, &w))
        return;
    const struct weft_attr_spec *spec =
        weft_ops[weft_opcode_find((const char *)t->data + w.at, w.length)].attrs;
    uint32_t count = 0;
    while (spec[count].key)
        count++;
    if (count == 0)
        return;
    spec += weft_fuzz_draw(t->random, count);
    const char *value = spec->words && weft_fuzz_draw(t->random, 2) ? spec->words : PICK(t->random, values);
    for (uint32_t skip = spec->words ? weft_fuzz_draw(t->random, 6) : 0; skip && strchr(value, ' '); skip--)
        value = strchr(value, ' ') + 1;
    const size_t length = *value == '[' ? strlen(value) : strcspn(value, " ");
    snprintf(text, sizeof text, " %s=%.*s", weft_attr_names[spec->key], (int)(length < 40 ? length : 40), value);
    splice(t, line_end(t, w.at), 0, text);
}

static void drop_attribute(struct text *t)
{
    struct word w;
    if (!pick_word(t, is_key, &w))
        return;
    size_t end = w.at + w.length + 1;
    const uint8_t stop = end < t->size && t->data[end] == '[' ? ']' : ' ';
    while (end < t->size && t->data[end] != '\n' && t->data[end] != stop)
        end++;
    end += stop == ']' && end < t->size && t->data[end] == ']';
    splice(t, w.at, end - w.at, "");
}

/* Behind a `]`, which mostly ends a type. */
static void add_layout(struct text *t)
{
    static const char *const layouts[] = {"{1 0}", "{0 1}", "{?}", "{-}", "{0 2 3 1}", "{0 1/2 2 3 1%2}", "{0/4 0%4}",
                                          "{0 1 | 8 1}", "{0 | 2}", "{0 align=64}", "{0 +4}", "{1 0 hint}", "{0 free}",
                                          "{0 1 | 0 1}", "{0}", "{}"};
    uint32_t count = 0;
    size_t found = 0;
    for (size_t at = 0; at < t->size; at++)
        if (t->data[at] == ']' && weft_fuzz_draw(t->random, ++count) == 0)
            found = at + 1;
    if (count)
        splice(t, found, 0, PICK(t->random, layouts));
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void pick_line(const struct text *t, size_t *ret_first, size_t *ret_end)
{
    size_t at = t->size ? weft_fuzz_draw(t->random, t->size) : 0;
    while (at > 0 && t->data[at - 1] != '\n')
        at--;
    *ret_first = at;
    const size_t end = line_end(t, at);
    *ret_end = end < t->size ? end + 1 : end;
}

/* A line is dropped, or copied to where another begins. */
static void move_line(struct text *t)
{
    size_t first, end, to, unused;
    uint8_t line[256];
    pick_line(t, &first, &end);
    pick_line(t, &to, &unused);
    if (end - first > sizeof line)
        return;
    memcpy(line, t->data + first, end - first);
    if (weft_fuzz_draw(t->random, 2)) {
        t->size = weft_fuzz_splice(t->data, t->size, t->room, first, end - first, NULL, 0);
        if (to > first)
            to -= end - first;
        if (weft_fuzz_draw(t->random, 2))
            return;
    }
    if (to <= t->size)
        t->size = weft_fuzz_splice(t->data, t->size, t->room, to, 0, line, end - first);
}

size_t weft_fuzz_mutate_text(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    struct text t = {.data = data, .size = size, .room = room, .random = random};
    switch (weft_fuzz_draw(random, 16)) {
    case 0: case 1: case 2: change_op(&t); break;
    case 3: case 4: change_dtype(&t); break;
    case 5: case 6: case 7: change_number(&t); break;
    case 8: change_sign(&t); break;
    case 9: copy_word(&t, is_value); break;
    case 10: copy_word(&t, is_plain); break;
    case 11: add_attribute(&t); break;
    case 12: drop_attribute(&t); break;
    case 13: add_layout(&t); break;
    case 14: move_line(&t); break;
    default: return weft_fuzz_mutate_bytes(data, size, room, random);
    }
    return t.size;
}
