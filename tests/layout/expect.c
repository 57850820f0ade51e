/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c: what a plan, or the graph as it is written, says to an expectation.
 *
 * Free axes, of extent 1 or stride 0, have no place in an order. A value that the plan does not store meets every order
 * and is nobody's copy. An output that is copied at the end of a run has no memory in common with what it is a copy of,
 * and lies as its port says. */
#include "layout_cases.h"

#include <string.h>

const char *const kind_names[KINDS] = {
    [SAME_VALUES] = "same-values", [ORDER] = "order", [ORDER_ANY] = "order-any", [STRIDES] = "strides",
    [CONTIGUITY] = "contiguity", [ALIAS] = "alias", [NO_ALIAS] = "no-alias", [IN_PLACE] = "in-place",
    [WIDTH] = "width", [INNER] = "inner", [RELAYOUTS] = "relayouts", [ERROR] = "error"};

int find_kind(const char *name)
{
    int kind = 0;
    while (kind < KINDS && (!name || strcmp(name, kind_names[kind]) != 0))
        kind++;
    return kind;
}

/* One expectation, and where it may look. */
struct asking {
    const struct layout_case *c;
    const json_t *json;
    const struct trial *trial;
    const struct build *asked;
    char *got;
    size_t bytes;
};

/* Where a value is, in the end. */
struct found {
    bool stored;
    bool stated;               /* an input: its order is what the case says */
    bool copied;               /* an output whose memory is not where the value is computed */
    struct shape shape;
    int64_t stride[WEFT_MAX_RANK], order[WEFT_MAX_RANK];
    struct weft_plan_value value;
};

static const char *text_of(const struct asking *a, const char *key)
{
    const char *text = json_string_value(json_object_get(a->json, key));
    return text ? text : "";
}

static const struct case_input *input_of(const struct layout_case *c, const char *name)
{
    for (size_t i = 0; i < c->inputs; i++)
        if (strcmp(c->input[i].name, name) == 0)
            return &c->input[i];
    return NULL;
}

static bool find(const struct asking *a, const char *name, struct found *ret)
{
    const struct case_value *v = find_value(&a->trial->build, name);
    const struct case_input *input = input_of(a->c, name);
    *ret = (struct found){.value.size = sizeof ret->value};
    if (!v) {
        snprintf(a->got, a->bytes, "no value '%s'", name);
        return false;
    }
    ret->shape = v->shape;
    ret->stored = weft_plan_find(a->trial->plan, name, &ret->value) == WEFT_OK && ret->value.memory;
    memcpy(ret->stride, ret->value.stride, sizeof ret->stride);
    if (input) {
        ret->stored = ret->stated = true;
        strides_of_input(input, ret->stride);
        order_of_input(input, ret->order);
    }
    struct weft_tensor tensor;
    for (size_t i = 0; i < a->c->outputs && !input; i++)
        if (strcmp(a->c->output[i].name, name) == 0 && weft_output(a->trial->execution, i, &tensor) == WEFT_OK) {
            memcpy(ret->stride, tensor.stride, sizeof ret->stride);
            ret->copied = ret->value.copies > 0 &&
                          !(ret->value.memory == WEFT_MEMORY_OUTPUT && ret->value.port == (int32_t)i);
            ret->stored = true;
        }
    return true;
}

/* --- orders and strides ------------------------------------------------------------------------------------------- */

static void print_numbers(char *text, size_t bytes, const int64_t *number, int count)
{
    snprintf(text, bytes, "[");
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, bytes - length, "%s%lld", i ? ", " : "", (long long)number[i]);
    }
    const size_t length = strlen(text);
    snprintf(text + length, bytes - length, "]");
}

/* Axes that have a place in memory, outermost first. */
static int placed_axes(const struct found *f, int64_t *ret)
{
    int count = 0;
    for (int i = 0; i < f->shape.rank; i++) {
        const int64_t axis = f->stated ? f->order[i] : i;
        if (f->shape.extent[axis] == 1 || f->stride[axis] == 0)
            continue;
        int at = count++;
        for (; !f->stated && at > 0 && f->stride[ret[at - 1]] < f->stride[axis]; at--)
            ret[at] = ret[at - 1];
        ret[at] = axis;
    }
    return count;
}

static bool is_in_order(const struct found *f, const json_t *order)
{
    int64_t have[WEFT_MAX_RANK], want[WEFT_MAX_RANK];
    const int count = placed_axes(f, have), wanted = read_numbers(order, want);
    int at = 0;
    for (int i = 0; i < wanted; i++) {
        if (want[i] < 0 || want[i] >= f->shape.rank)
            return false;
        if (f->shape.extent[want[i]] == 1 || f->stride[want[i]] == 0)
            continue;
        if (at == count || have[at++] != want[i])
            return false;
    }
    return at == count;
}

static bool ask_order(const struct asking *a)
{
    struct found f;
    int64_t have[WEFT_MAX_RANK];
    if (!find(a, text_of(a, "value"), &f))
        return false;
    if (!f.stored)
        return true;
    print_numbers(a->got, a->bytes, have, placed_axes(&f, have));
    const json_t *orders = json_object_get(a->json, "orders");
    for (size_t i = 0; i < json_array_size(orders); i++)
        if (is_in_order(&f, json_array_get(orders, i)))
            return true;
    return !orders && is_in_order(&f, json_object_get(a->json, "order"));
}

static bool ask_strides(const struct asking *a)
{
    struct found f;
    const json_t *want = json_object_get(a->json, "strides");
    if (!find(a, text_of(a, "value"), &f))
        return false;
    print_numbers(a->got, a->bytes, f.stride, f.shape.rank);
    if (!f.stored)
        snprintf(a->got, a->bytes, "not stored");
    bool same = f.stored && json_array_size(want) == (size_t)f.shape.rank;
    for (int i = 0; same && i < f.shape.rank; i++) {
        const json_t *stride = json_array_get(want, (size_t)i);
        same = json_is_null(stride) || f.shape.extent[i] == 1 || json_integer_value(stride) == f.stride[i];
    }
    return same;
}

static bool ask_contiguity(const struct asking *a)
{
    struct found f;
    const json_t *want = json_object_get(a->json, "flags");
    int64_t axis[WEFT_MAX_RANK], after = 1;
    static const char *const word[] = {"false", "true", "null"};
    int flag[WEFT_MAX_RANK];
    if (!find(a, text_of(a, "value"), &f))
        return false;
    for (int i = 0; i < f.shape.rank; i++)
        flag[i] = 2;
    f.stated = false; /* neighbours are neighbours by their strides */
    for (int i = placed_axes(&f, axis) - 1; i >= 0; i--) {
        flag[axis[i]] = f.stride[axis[i]] == after;
        after = f.stride[axis[i]] * f.shape.extent[axis[i]];
    }
    bool same = f.stored && json_array_size(want) == (size_t)f.shape.rank;
    snprintf(a->got, a->bytes, f.stored ? "" : "not stored");
    for (int i = 0; i < f.shape.rank && f.stored; i++) {
        const json_t *wanted = json_array_get(want, (size_t)i);
        const size_t length = strlen(a->got);
        snprintf(a->got + length, a->bytes - length, "%s%s", i ? ", " : "", word[flag[i]]);
        same = same && flag[i] == (json_is_null(wanted) ? 2 : json_is_true(wanted));
    }
    return same;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool shares(const struct found *a, const struct found *b)
{
    return a->value.storage && a->value.storage == b->value.storage && !a->copied && !b->copied;
}

static void print_home(const struct asking *a, const struct found *f)
{
    static const char *const memory[] = {"nowhere", "an input", "an output", "a constant", "the arena"};
    snprintf(a->got, a->bytes, "in %s, of %s%s", memory[f->value.memory], f->value.root ? f->value.root : "nobody",
             f->copied ? ", and copied" : "");
}

static bool ask_alias(const struct asking *a)
{
    struct found value, of;
    if (!find(a, text_of(a, "value"), &value) || !find(a, text_of(a, "of"), &of))
        return false;
    print_home(a, &value);
    if (!value.value.storage || !of.value.storage)
        return !value.copied; /* never stored, so not copied either */
    return shares(&value, &of) || strcmp(text_of(a, "value"), text_of(a, "of")) == 0;
}

static bool ask_no_alias(const struct asking *a)
{
    struct found value, other;
    if (!find(a, text_of(a, "value"), &value))
        return false;
    print_home(a, &value);
    if (*text_of(a, "of"))
        return find(a, text_of(a, "of"), &other) && !shares(&value, &other);
    for (size_t i = 0; i < a->c->inputs; i++)
        if (!find(a, a->c->input[i].name, &other) || shares(&value, &other))
            return false;
    return true;
}

static bool ask_in_place(const struct asking *a)
{
    struct found value, of;
    if (!find(a, text_of(a, "value"), &value) || !find(a, text_of(a, "of"), &of))
        return false;
    print_home(a, &value);
    return value.value.storage && value.value.storage == of.value.storage;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static bool ask_access(const struct asking *a)
{
    const bool inner = strcmp(text_of(a, "kind"), "inner") == 0;
    const struct case_value *value = find_value(a->asked, text_of(a, "value"));
    const struct case_value *along = find_value(a->asked, text_of(a, "along"));
    struct weft_access access = {.size = sizeof access, .value = value ? value->id : (weft_val){0},
                                 .along = along ? along->id : (weft_val){0}};
    const struct case_input *input = input_of(a->c, text_of(a, "value"));
    if (input) {
        access.align = (uint32_t)input->align;
        access.offset = input->offset;
    }
    struct weft_access_width width = {.size = sizeof width};
    int64_t axis[WEFT_MAX_RANK];
    const int axes = read_numbers(json_object_get(a->json, "axes"), axis);
    for (int i = 0; i < axes; i++)
        access.axes |= 1u << axis[i];
    if (*a->asked->message || weft_access(a->asked->graph, &access, &width) != WEFT_OK) {
        snprintf(a->got, a->bytes, "%s",
                 *a->asked->message ? a->asked->message : weft_last_error(a->asked->context));
        return false;
    }
    const int64_t got = inner ? width.inner : width.width;
    snprintf(a->got, a->bytes, "%lld", (long long)got);
    return got == json_integer_value(json_object_get(a->json, "elements"));
}

static bool ask_relayouts(const struct asking *a)
{
    const size_t count = weft_plan_relayouts(a->trial->plan);
    snprintf(a->got, a->bytes, "%zu", count);
    return (json_int_t)count == json_integer_value(json_object_get(a->json, "count"));
}

bool is_met(const struct layout_case *c, const json_t *expectation, const struct trial *trial,
            const struct build *asked, char *ret_got, size_t bytes)
{
    const struct asking a = {c, expectation, trial, asked, ret_got, bytes};
    *ret_got = '\0';
    switch (find_kind(text_of(&a, "kind"))) {
    case ORDER: case ORDER_ANY: return ask_order(&a);
    case STRIDES: return ask_strides(&a);
    case CONTIGUITY: return ask_contiguity(&a);
    case ALIAS: return ask_alias(&a);
    case NO_ALIAS: return ask_no_alias(&a);
    case IN_PLACE: return ask_in_place(&a);
    case WIDTH: case INNER: return ask_access(&a);
    case RELAYOUTS: return ask_relayouts(&a);
    case SAME_VALUES: return true; /* of every case */
    default: snprintf(ret_got, bytes, "no such kind"); return false;
    }
}
