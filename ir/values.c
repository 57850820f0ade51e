/* SPDX-License-Identifier: Apache-2.0 */
/* values.c: lists of named values: checked where they come in, copied, compared and printed.
 *
 *   with=[axis=1 epsilon=0.001 mode="fast" axes=[0 2] scales=[1.0 0.5] names=["a" "b"] table=f32[2,2][1 2 3 4]]
 *
 * The kind of a value is seen in its text, since no table knows the names: a real number has a point, an exponent, or
 * is inf or nan; a list has the kind of its first element. */
#include "ir/values.h"
#include "ir/parse.h"

#include <string.h>

/* --- from outside ------------------------------------------------------------------------------------------------- */

bool weft_values_is_name(const char *name, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    for (size_t i = 0; i < length; i++)
        if (!name[i] || !(strchr(letters, name[i]) || (i > 0 && name[i] >= '0' && name[i] <= '9')))
            return false;
    return length > 0;
}

static bool is_array(const struct weft_tensor *t)
{
    int64_t elements = 1;
    if (!t || !weft_dtype_name(t->dtype) || t->rank < 0 || t->rank > WEFT_MAX_RANK)
        return false;
    for (int axis = 0; axis < t->rank; axis++) {
        if (t->extent[axis] < 0 || t->extent[axis] > WEFT_MOST_ARRAY || t->stride[axis] < 0)
            return false;
        elements *= t->extent[axis]; /* at most the square of the bound, which is looked at each time */
        if (elements > WEFT_MOST_ARRAY)
            return false;
    }
    return t->data || elements == 0;
}

static bool are_texts(const struct weft_custom_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        if (!value->texts[i])
            return false;
    return true;
}

static const char *check_one(const struct weft_custom_value *v)
{
    if (!v->name || !weft_values_is_name(v->name, strlen(v->name)))
        return "the name of a value is a letter or _, then letters, digits and _";
    if (v->count > WEFT_MOST_ARRAY)
        return "a list of a named value has at most 65536 elements";
    switch ((enum weft_custom_kind)v->kind) {
    case WEFT_CUSTOM_INTEGER:
    case WEFT_CUSTOM_REAL: return NULL;
    case WEFT_CUSTOM_TEXT: return v->text ? NULL : "a text of a named value is NULL";
    case WEFT_CUSTOM_INTEGERS: return v->integers || !v->count ? NULL : "a list of a named value is NULL";
    case WEFT_CUSTOM_REALS: return v->reals || !v->count ? NULL : "a list of a named value is NULL";
    case WEFT_CUSTOM_TEXTS:
        return !v->count || (v->texts && are_texts(v)) ? NULL : "a list of texts of a named value has a NULL";
    case WEFT_CUSTOM_ARRAY:
        return is_array(v->array) ? NULL : "an array of a named value is none, or has more than 65536 elements";
    }
    return "a named value has no kind";
}

const char *weft_values_check(const struct weft_custom_value *values, size_t count)
{
    if (count > WEFT_MOST_VALUES)
        return "there are at most 256 named values";
    for (size_t i = 0; i < count; i++) {
        const char *const wrong = check_one(&values[i]);
        if (wrong)
            return wrong;
        for (size_t k = 0; k < i; k++)
            if (strcmp(values[k].name, values[i].name) == 0)
                return "two named values have the same name";
    }
    return NULL;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static const struct weft_tensor *copy_array(struct weft_arena *arena, const struct weft_tensor *given)
{
    struct weft_tensor *const copy = weft_new(arena, struct weft_tensor, 1);
    *copy = *given;
    weft_tensor_dense(copy);
    copy->data = weft_arena_new(arena, weft_tensor_bytes(copy));
    if (weft_tensor_count(copy) > 0)
        weft_tensor_copy(copy, 0, given, 0);
    return copy;
}

static const char *const *copy_texts(struct weft_arena *arena, const char *const *given, size_t count)
{
    const char **const copy = weft_new(arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = weft_arena_copy(arena, given[i], strlen(given[i]));
    return copy;
}

static void *copy_bytes(struct weft_arena *arena, const void *given, size_t bytes)
{
    return bytes ? memcpy(weft_arena_new(arena, bytes), given, bytes) : NULL;
}

/* Members of other kinds are left out. */
static struct weft_custom_value copy_one(struct weft_arena *arena, const struct weft_custom_value *v)
{
    struct weft_custom_value copy = {.name = weft_arena_copy(arena, v->name, strlen(v->name)), .kind = v->kind};
    switch ((enum weft_custom_kind)v->kind) {
    case WEFT_CUSTOM_INTEGER: copy.integer = v->integer; break;
    case WEFT_CUSTOM_REAL: copy.real = v->real; break;
    case WEFT_CUSTOM_TEXT: copy.text = weft_arena_copy(arena, v->text, strlen(v->text)); break;
    case WEFT_CUSTOM_INTEGERS: copy.integers = copy_bytes(arena, v->integers, v->count * sizeof *v->integers); break;
    case WEFT_CUSTOM_REALS: copy.reals = copy_bytes(arena, v->reals, v->count * sizeof *v->reals); break;
    case WEFT_CUSTOM_TEXTS: copy.texts = v->count ? copy_texts(arena, v->texts, v->count) : NULL; break;
    case WEFT_CUSTOM_ARRAY: copy.array = copy_array(arena, v->array); break;
    }
    const bool is_list = v->kind == WEFT_CUSTOM_INTEGERS || v->kind == WEFT_CUSTOM_REALS ||
                         v->kind == WEFT_CUSTOM_TEXTS;
    copy.count = is_list ? v->count : 0;
    if (is_list && !v->count)
        copy.kind = WEFT_CUSTOM_INTEGERS;
    return copy;
}

const struct weft_custom_value *weft_values_copy(struct weft_arena *arena, const struct weft_custom_value *values,
                                                 size_t count)
{
    struct weft_custom_value *const copy = weft_new(arena, struct weft_custom_value, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = copy_one(arena, &values[i]);
    return copy;
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

static bool same_bytes(const void *a, const void *b, size_t bytes) { return bytes == 0 || memcmp(a, b, bytes) == 0; }

static bool same_arrays(const struct weft_tensor *a, const struct weft_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           same_bytes(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent) &&
           (weft_tensor_count(a) == 0 || same_bytes(a->data, b->data, weft_tensor_bytes(a)));
}

static bool same_one(const struct weft_custom_value *a, const struct weft_custom_value *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->count != b->count)
        return false;
    switch ((enum weft_custom_kind)a->kind) {
    case WEFT_CUSTOM_INTEGER: return a->integer == b->integer;
    case WEFT_CUSTOM_REAL: return same_bytes(&a->real, &b->real, sizeof a->real);
    case WEFT_CUSTOM_TEXT: return strcmp(a->text, b->text) == 0;
    case WEFT_CUSTOM_INTEGERS: return same_bytes(a->integers, b->integers, a->count * sizeof *a->integers);
    case WEFT_CUSTOM_REALS: return same_bytes(a->reals, b->reals, a->count * sizeof *a->reals);
    case WEFT_CUSTOM_TEXTS:
        for (size_t i = 0; i < a->count; i++)
            if (strcmp(a->texts[i], b->texts[i]) != 0)
                return false;
        return true;
    case WEFT_CUSTOM_ARRAY: return same_arrays(a->array, b->array);
    }
    return false;
}

bool weft_values_equal(const struct weft_custom_value *a, const struct weft_custom_value *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_one(&a[i], &b[i]))
            return false;
    return true;
}

const struct weft_custom_value *weft_custom_value_of(const struct weft_custom_value *value, size_t values,
                                                     const char *name)
{
    for (size_t i = 0; value && name && i < values; i++)
        if (strcmp(value[i].name, name) == 0)
            return &value[i];
    return NULL;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void print_real(struct weft_text *text, double real)
{
    const size_t before = text->length;
    weft_text_real(text, WEFT_F64, real);
    if (!strpbrk(text->data + before, ".en")) /* inf and nan have an n */
        weft_text_add(text, ".0");
}

static void print_array(struct weft_text *text, const struct weft_tensor *array)
{
    const int64_t count = weft_tensor_count(array);
    weft_text_add(text, weft_dtype_name(array->dtype));
    weft_text_add(text, "[");
    for (int axis = 0; axis < array->rank; axis++) {
        weft_text_add(text, axis ? "," : "");
        weft_text_integer(text, array->extent[axis]);
    }
    weft_text_add(text, "][");
    for (int64_t i = 0; i < count; i++) {
        weft_text_add(text, i ? " " : "");
        weft_text_element(text, array->dtype, array->data, i);
    }
    weft_text_add(text, "]");
}

static void print_list(struct weft_text *text, const struct weft_custom_value *v)
{
    weft_text_add(text, "[");
    for (size_t i = 0; i < v->count; i++) {
        weft_text_add(text, i ? " " : "");
        if (v->kind == WEFT_CUSTOM_INTEGERS)
            weft_text_integer(text, v->integers[i]);
        else if (v->kind == WEFT_CUSTOM_REALS)
            print_real(text, v->reals[i]);
        else
            weft_text_quoted(text, v->texts[i]);
    }
    weft_text_add(text, "]");
}

void weft_values_print(const struct weft_custom_value *values, size_t count, struct weft_text *text)
{
    weft_text_add(text, "[");
    for (size_t i = 0; i < count; i++) {
        const struct weft_custom_value *const v = &values[i];
        weft_text_format(text, "%s%s=", i ? " " : "", v->name);
        switch ((enum weft_custom_kind)v->kind) {
        case WEFT_CUSTOM_INTEGER: weft_text_integer(text, v->integer); break;
        case WEFT_CUSTOM_REAL: print_real(text, v->real); break;
        case WEFT_CUSTOM_TEXT: weft_text_quoted(text, v->text); break;
        case WEFT_CUSTOM_INTEGERS:
        case WEFT_CUSTOM_REALS:
        case WEFT_CUSTOM_TEXTS: print_list(text, v); break;
        case WEFT_CUSTOM_ARRAY: print_array(text, v->array); break;
        }
    }
    weft_text_add(text, "]");
}

void weft_values_print_some(const struct weft_custom_value *values, size_t count, size_t bytes, struct weft_text *text)
{
    const size_t before = text->length;
    weft_values_print(values, count, text);
    if (text->length <= before + bytes)
        return;
    text->length = before + bytes;
    while (((unsigned char)text->data[text->length] & 0xc0) == 0x80) /* within a character */
        text->length--;
    weft_text_add(text, "…");
}
