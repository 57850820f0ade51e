/* SPDX-License-Identifier: Apache-2.0 */
/* parse_values.c: lists of named values, as values.c prints them: with=[axis=1 mode="fast" table=f32[2][1 2]]. */
#include "ir/parse.h"

#include <string.h>

/* A number: real if it has a point or an exponent, or is inf or nan. */
static bool parse_number(struct weft_parser *p, struct weft_custom_value *ret)
{
    const struct weft_word word = weft_parse_token(p);
    ret->kind = WEFT_CUSTOM_INTEGER;
    if (word.length > 0 && weft_parse_integer(word, &ret->integer))
        return true;
    ret->kind = WEFT_CUSTOM_REAL;
    ret->integer = 0;
    if (weft_read_real(word, &ret->real))
        return true;
    if (word.length == 0)
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected a number, a text, a list or an array");
    return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "'%.*s' is no number; texts stand in double quotes",
                           (int)word.length, word.text);
}

static bool parse_text(struct weft_parser *p, const char **ret)
{
    struct weft_word word;
    if (!weft_parse_string(p, &word))
        return false;
    *ret = weft_parse_copy(p, word);
    return true;
}

static bool too_long(struct weft_parser *p, const char *at)
{
    return weft_parse_fail(p, at, WEFT_ERR_INVALID, "a list of a named value has at most %d elements", WEFT_MOST_ARRAY);
}

static bool parse_texts(struct weft_parser *p, const char *at, struct weft_custom_value *ret)
{
    const char **list = NULL;
    uint32_t capacity = 0;
    ret->kind = WEFT_CUSTOM_TEXTS;
    while (!weft_parse_take(p, ']')) {
        if (ret->count == WEFT_MOST_ARRAY)
            return too_long(p, at);
        list = weft_grow(&p->scratch, list, &capacity, (uint32_t)ret->count + 1, sizeof *list);
        if (!parse_text(p, &list[ret->count]))
            return false;
        ret->count++;
    }
    ret->texts = list;
    return true;
}

/* The first number says whether all are real. */
static bool parse_numbers(struct weft_parser *p, const char *at, struct weft_custom_value *ret)
{
    int64_t *integers = NULL;
    double *reals = NULL;
    uint32_t integer_capacity = 0, real_capacity = 0;
    ret->kind = WEFT_CUSTOM_INTEGERS;
    while (!weft_parse_take(p, ']')) {
        struct weft_custom_value number = {0};
        const uint32_t i = (uint32_t)ret->count;
        weft_parse_blanks(p);
        const char *const here = p->cursor;
        if (ret->count == WEFT_MOST_ARRAY)
            return too_long(p, at);
        if (!parse_number(p, &number))
            return false;
        const bool is_real = number.kind == WEFT_CUSTOM_REAL;
        if (i > 0 && is_real != (ret->kind == WEFT_CUSTOM_REALS))
            return weft_parse_fail(p, here, WEFT_ERR_INVALID, "the numbers of a list are all integers, or all have a "
                                   "point or an exponent");
        ret->kind = is_real ? WEFT_CUSTOM_REALS : WEFT_CUSTOM_INTEGERS;
        integers = weft_grow(&p->scratch, integers, &integer_capacity, i + 1, sizeof *integers);
        reals = weft_grow(&p->scratch, reals, &real_capacity, i + 1, sizeof *reals);
        integers[i] = number.integer;
        reals[i] = number.real;
        ret->count++;
    }
    ret->integers = ret->kind == WEFT_CUSTOM_INTEGERS ? integers : NULL;
    ret->reals = ret->kind == WEFT_CUSTOM_REALS ? reals : NULL;
    return true;
}

static bool parse_list(struct weft_parser *p, const char *at, struct weft_custom_value *ret)
{
    weft_parse_blanks(p);
    return p->cursor < p->end && *p->cursor == '"' ? parse_texts(p, at, ret) : parse_numbers(p, at, ret);
}

/* f32[2,2][1 2 3 4] */
static bool parse_array(struct weft_parser *p, struct weft_custom_value *ret)
{
    const char *const at = p->cursor;
    struct weft_declared declared = {0};
    struct weft_tensor *const array = weft_new(&p->scratch, struct weft_tensor, 1);
    if (!weft_parse_type(p, &declared))
        return false;
    const weft_dim elements = weft_type_elements(p->root->dims, &declared.type);
    if (declared.has_layout || !weft_type_is_constant(&declared.type) || weft_dim_value(elements) > WEFT_MOST_ARRAY)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID,
                               "an array of a named value has no layout, no symbols, and at most %d elements",
                               WEFT_MOST_ARRAY);
    weft_tensor_of(p->graph, &declared.type, NULL, array);
    array->data = weft_arena_new(&p->scratch, weft_tensor_bytes(array));
    const int64_t count = weft_dim_value(elements);
    if (!weft_parse_expect(p, '[', "before the elements of an array"))
        return false;
    int64_t filled = 0;
    for (; !weft_parse_take(p, ']'); filled++) {
        const struct weft_word word = weft_parse_token(p);
        if (!weft_parse_element(word, array->dtype, filled < count ? array->data : NULL, filled))
            return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "'%.*s' is no element of %s", (int)word.length,
                                   word.text, weft_dtype_name(array->dtype));
    }
    if (filled != count)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "the array has %lld elements, but %lld are given",
                               (long long)count, (long long)filled);
    ret->kind = WEFT_CUSTOM_ARRAY;
    ret->array = array;
    return true;
}

/* Is a type next, and not a number like inf? */
static bool is_type(struct weft_parser *p)
{
    const struct weft_word word = weft_parse_peek(p);
    return word.length > 0 && word.text + word.length < p->end && word.text[word.length] == '[';
}

static bool parse_value(struct weft_parser *p, struct weft_custom_value *ret)
{
    weft_parse_blanks(p);
    const char *const at = p->cursor;
    if (weft_parse_take(p, '['))
        return parse_list(p, at, ret);
    if (p->cursor < p->end && *p->cursor == '"') {
        ret->kind = WEFT_CUSTOM_TEXT;
        return parse_text(p, &ret->text);
    }
    return is_type(p) ? parse_array(p, ret) : parse_number(p, ret);
}

bool weft_parse_values(struct weft_parser *p, struct weft_attr *attr)
{
    struct weft_custom_value *list = NULL;
    uint32_t capacity = 0;
    if (!weft_parse_expect(p, '[', "before named values"))
        return false;
    while (!weft_parse_take(p, ']')) {
        weft_parse_blanks(p);
        const char *const at = p->cursor;
        const struct weft_word name = weft_parse_word(p);
        if (name.length == 0)
            return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "expected a name and '=', like [axis=1], or ']'");
        for (uint32_t i = 0; i < attr->count; i++)
            if (weft_parse_is(name, list[i].name))
                return weft_parse_fail(p, at, WEFT_ERR_INVALID, "%s is given twice", list[i].name);
        if (attr->count == WEFT_MOST_VALUES)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "there are at most %d named values", WEFT_MOST_VALUES);
        list = weft_grow(&p->scratch, list, &capacity, attr->count + 1, sizeof *list);
        list[attr->count] = (struct weft_custom_value){.name = weft_parse_copy(p, name)};
        if (!weft_parse_expect(p, '=', "after the name of a value") || !parse_value(p, &list[attr->count]))
            return false;
        attr->count++;
    }
    attr->values = list;
    return true;
}
