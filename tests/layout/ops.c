/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the ops of layout cases as nodes of weft: a table of words, and a function for each family. Elementwise
 * operands are broadcast by nodes of their own; what weft has no op for is made of those it has. */
#include "ops.h"

#include <string.h>

/* --- nodes -------------------------------------------------------------------------------------------------------- */

bool add_node(struct build *b, const char *op, const weft_val *operand, size_t operands,
                     const struct weft_attribute *attribute, size_t attributes, bool stated, struct case_value *result)
{
    weft_dim extent[WEFT_MAX_RANK];
    for (int i = 0; i < result->shape.rank; i++)
        extent[i] = weft_extent(result->shape.extent[i]);
    const struct weft_op node = {.size = sizeof node, .op = op, .name = result->name, .operand = operand,
                                 .operands = operands, .attribute = attribute, .attributes = attributes,
                                 .dtype = stated ? result->shape.dtype : 0, .rank = stated ? result->shape.rank : 0,
                                 .extent = stated ? extent : NULL};
    return weft_append(b->graph, &node, &result->id) == WEFT_OK || fail_build(b, NULL);
}

struct weft_attribute list_of(const char *name, const int64_t *number, int count, weft_dim *room)
{
    for (int i = 0; i < count; i++)
        room[i] = weft_extent(number[i]);
    return (struct weft_attribute){.name = name, .integers = room, .count = (size_t)count};
}

bool keep(struct build *b, const struct case_value *v)
{
    if (find_value(b, v->name))
        return fail_build(b, "a value is defined twice");
    if (b->values == MOST_VALUES)
        return fail_build(b, "more than 256 values");
    b->value[b->values++] = *v;
    return true;
}

int64_t integer_of(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

bool reshape(struct build *b, const struct case_value *x, struct case_value *y)
{
    y->shape.dtype = x->shape.dtype;
    return add_node(b, "reshape", &x->id, 1, NULL, 0, /* stated= */ true, y);
}

/* The last axes of the result are those of x, as in numpy. */
static bool broadcast(struct build *b, const struct case_value *x, struct case_value *y)
{
    int64_t axis[WEFT_MAX_RANK];
    weft_dim room[WEFT_MAX_RANK];
    for (int i = 0; i < x->shape.rank; i++)
        axis[i] = y->shape.rank - x->shape.rank + i;
    const struct weft_attribute dims = list_of("dims", axis, x->shape.rank, room);
    y->shape.dtype = x->shape.dtype;
    return add_node(b, "bcast", &x->id, 1, &dims, 1, /* stated= */ true, y);
}

static bool same_extents(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent) == 0;
}

bool spread(struct build *b, const struct case_value *x, const struct shape *to, struct case_value *y)
{
    *y = *x;
    if (same_extents(&x->shape, to))
        return true;
    *y = (struct case_value){.shape = *to};
    return broadcast(b, x, y);
}

void spread_extents(struct shape *to, const struct shape *more)
{
    const int rank = more->rank > to->rank ? more->rank : to->rank;
    struct shape wide = {.dtype = to->dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        const int a = i - (rank - to->rank), b = i - (rank - more->rank);
        const int64_t one = a < 0 ? 1 : to->extent[a], other = b < 0 ? 1 : more->extent[b];
        wide.extent[i] = one == 1 ? other : one;
    }
    *to = wide;
}

bool combine(struct build *b, const char *op, const struct case_value *operand, size_t operands, int dtype,
                    struct case_value *y)
{
    weft_val id[MOST_PORTS];
    struct shape shape = operand[0].shape;
    for (size_t i = 1; i < operands; i++)
        spread_extents(&shape, &operand[i].shape);
    for (size_t i = 0; i < operands; i++) {
        struct case_value wide;
        if (!spread(b, &operand[i], &shape, &wide))
            return false;
        id[i] = wide.id;
    }
    y->shape = shape;
    y->shape.dtype = dtype;
    return add_node(b, op, id, operands, NULL, 0, strcmp(op, "cast") == 0, y);
}

bool splat(struct build *b, int dtype, double value, struct case_value *y)
{
    y->shape = (struct shape){.dtype = dtype};
    return weft_splat(b->graph, dtype, 0, NULL, value, &y->id) == WEFT_OK || fail_build(b, NULL);
}

/* --- families ----------------------------------------------------------------------------------------------------- */

static bool add_elementwise(struct adding *a)
{
    struct case_value y = {.name = a->result[0]};
    const char *to = json_string_value(json_object_get(a->json, "to"));
    const bool compares = strcmp(a->op, "gt") == 0 || strcmp(a->op, "eq") == 0;
    const int dtype = to ? weft_dtype_from_name(to) : compares ? WEFT_BOOL : a->operand[a->operands - 1].shape.dtype;
    return combine(a->b, a->op, a->operand, a->operands, dtype, &y) && keep(a->b, &y);
}

static bool add_reshape(struct adding *a)
{
    const char *op = json_string_value(json_object_get(a->json, "op"));
    const struct shape *x = &a->operand[0].shape;
    struct case_value y = {.name = a->result[0], .shape = *x};
    int64_t axis[WEFT_MAX_RANK];
    const int axes = read_numbers(json_object_get(a->json, "axes"), axis);
    bool named[WEFT_MAX_RANK] = {false};
    for (int i = 0; i < axes; i++) {
        if (axis[i] < 0 || axis[i] >= WEFT_MAX_RANK)
            return fail_build(a->b, "no such axis");
        named[axis[i]] = true;
    }
    if (strcmp(op, "reshape") == 0)
        y.shape.rank = read_numbers(json_object_get(a->json, "shape"), y.shape.extent);
    if (strcmp(op, "unsqueeze") == 0) {
        y.shape.rank = x->rank + axes;
        for (int i = 0, k = 0; i < y.shape.rank && i < WEFT_MAX_RANK; i++)
            y.shape.extent[i] = named[i] ? 1 : x->extent[k++];
    }
    if (strcmp(op, "squeeze") == 0) {
        y.shape.rank = 0;
        for (int i = 0; i < x->rank; i++)
            if (!named[i])
                y.shape.extent[y.shape.rank++] = x->extent[i];
    }
    return reshape(a->b, &a->operand[0], &y) && keep(a->b, &y);
}

static bool add_expand(struct adding *a)
{
    struct case_value y = {.name = a->result[0]};
    y.shape.rank = read_numbers(json_object_get(a->json, "shape"), y.shape.extent);
    return broadcast(a->b, &a->operand[0], &y) && keep(a->b, &y);
}

static bool add_transpose(struct adding *a)
{
    int64_t perm[WEFT_MAX_RANK];
    weft_dim room[WEFT_MAX_RANK];
    const struct shape *x = &a->operand[0].shape;
    struct case_value y = {.name = a->result[0], .shape = *x};
    if (read_numbers(json_object_get(a->json, "perm"), perm) != x->rank)
        return fail_build(a->b, "perm has another rank");
    for (int i = 0; i < x->rank; i++)
        y.shape.extent[i] = perm[i] >= 0 && perm[i] < x->rank ? x->extent[perm[i]] : 0;
    const struct weft_attribute attribute = list_of("perm", perm, x->rank, room);
    return add_node(a->b, "transpose", &a->operand[0].id, 1, &attribute, 1, false, &y) && keep(a->b, &y);
}

static bool slice(struct build *b, const struct case_value *x, const int64_t *start, const int64_t *end,
                  const int64_t *step, struct case_value *y)
{
    weft_dim room[3][WEFT_MAX_RANK];
    const struct weft_attribute attribute[] = {list_of("start", start, x->shape.rank, room[0]),
                                               list_of("end", end, x->shape.rank, room[1]),
                                               list_of("step", step, x->shape.rank, room[2])};
    y->shape = x->shape;
    for (int i = 0; i < x->shape.rank; i++)
        y->shape.extent[i] = step[i] > 0 ? (end[i] - start[i] + step[i] - 1) / step[i] : 0;
    return add_node(b, "slice", &x->id, 1, attribute, 3, false, y);
}

static bool add_slice(struct adding *a)
{
    int64_t bound[3][WEFT_MAX_RANK];
    static const char *const key[] = {"starts", "ends", "steps"};
    struct case_value y = {.name = a->result[0]};
    for (int i = 0; i < 3; i++)
        if (read_numbers(json_object_get(a->json, key[i]), bound[i]) != a->operand[0].shape.rank)
            return fail_build(a->b, "a slice needs a start, an end and a step for each axis");
    return slice(a->b, &a->operand[0], bound[0], bound[1], bound[2], &y) && keep(a->b, &y);
}

static bool add_split(struct adding *a)
{
    const struct case_value *x = &a->operand[0];
    const json_t *sizes = json_object_get(a->json, "sizes");
    const int64_t axis = integer_of(a->json, "axis");
    int64_t start[WEFT_MAX_RANK] = {0}, end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++) {
        end[i] = x->shape.extent[i];
        step[i] = 1;
    }
    if (axis < 0 || axis >= x->shape.rank)
        return fail_build(a->b, "no such axis");
    for (size_t i = 0; i < a->results; i++) {
        struct case_value y = {.name = a->result[i]};
        end[axis] = start[axis] + json_integer_value(json_array_get(sizes, i));
        if (!slice(a->b, x, start, end, step, &y) || !keep(a->b, &y))
            return false;
        start[axis] = end[axis];
    }
    return start[axis] == x->shape.extent[axis] || fail_build(a->b, "the pieces of a split are not the whole");
}

static bool add_pad(struct adding *a)
{
    int64_t pad[2 * WEFT_MAX_RANK];
    weft_dim room[2 * WEFT_MAX_RANK];
    const struct case_value *x = &a->operand[0];
    const int rank = x->shape.rank;
    struct case_value y = {.name = a->result[0], .shape = x->shape}, fill = {0};
    if (read_numbers(json_object_get(a->json, "before"), pad) != rank ||
        read_numbers(json_object_get(a->json, "after"), pad + rank) != rank)
        return fail_build(a->b, "a padding needs two numbers for each axis");
    for (int i = 0; i < rank; i++)
        y.shape.extent[i] += pad[i] + pad[rank + i];
    if (!splat(a->b, x->shape.dtype, json_number_value(json_object_get(a->json, "value")), &fill))
        return false;
    const struct weft_attribute attribute = list_of("pad", pad, 2 * rank, room);
    return add_node(a->b, "pad", (const weft_val[]){x->id, fill.id}, 2, &attribute, 1, false, &y) && keep(a->b, &y);
}

/* Ops whose only attribute is an axis. */
static bool add_along(struct adding *a)
{
    const int64_t axis = integer_of(a->json, "axis");
    const struct shape *x = &a->operand[0].shape;
    struct case_value y = {.name = a->result[0], .shape = *x};
    weft_val id[MOST_PORTS];
    if (axis < 0 || axis >= x->rank)
        return fail_build(a->b, "no such axis");
    for (size_t i = 0; i < a->operands; i++)
        id[i] = a->operand[i].id;
    if (strcmp(a->op, "concat") == 0)
        for (size_t i = 1; i < a->operands; i++)
            y.shape.extent[axis] += a->operand[i].shape.extent[axis];
    if (strcmp(a->op, "gather_elements") == 0)
        memcpy(y.shape.extent, a->operand[1].shape.extent, sizeof y.shape.extent);
    if (strcmp(a->op, "gather") == 0) {
        const struct shape *index = &a->operand[1].shape;
        y.shape.rank = x->rank - 1 + index->rank;
        if (y.shape.rank > WEFT_MAX_RANK)
            return fail_build(a->b, "a result of more than 8 axes");
        for (int i = 0; i < index->rank; i++)
            y.shape.extent[axis + i] = index->extent[i];
        for (int i = (int)axis + 1; i < x->rank; i++)
            y.shape.extent[i + index->rank - 1] = x->extent[i];
    }
    const struct weft_attribute attribute = {.name = "axis", .integer = axis};
    return add_node(a->b, a->op, id, a->operands, &attribute, 1, false, &y) && keep(a->b, &y);
}

bool reduce(struct build *b, const char *op, const struct case_value *x, const int64_t *axis, int axes,
                   bool keepdims, struct case_value *y)
{
    weft_dim room[WEFT_MAX_RANK];
    const struct weft_attribute attribute[] = {list_of("axes", axis, axes, room),
                                               {.name = "keepdims", .integer = keepdims}};
    y->shape = (struct shape){.dtype = x->shape.dtype};
    for (int i = 0; i < x->shape.rank; i++) {
        bool reduced = false;
        for (int k = 0; k < axes; k++)
            reduced |= axis[k] == i;
        if (!reduced || keepdims)
            y->shape.extent[y->shape.rank++] = reduced ? 1 : x->shape.extent[i];
    }
    return add_node(b, op, &x->id, 1, attribute, 2, false, y);
}

static bool add_reduction(struct adding *a)
{
    int64_t axis[WEFT_MAX_RANK];
    struct case_value y = {.name = a->result[0]};
    const int axes = read_numbers(json_object_get(a->json, "axes"), axis);
    return (axes >= 0 || fail_build(a->b, "a reduction needs axes")) &&
           reduce(a->b, a->op, &a->operand[0], axis, axes, integer_of(a->json, "keepdims") != 0, &y) && keep(a->b, &y);
}

static bool add_source(struct adding *a)
{
    struct case_value y = {.name = a->result[0]};
    y.shape.rank = read_numbers(json_object_get(a->json, "shape"), y.shape.extent);
    y.shape.dtype = weft_dtype_from_name(json_string_value(json_object_get(a->json, "dtype")));
    if (y.shape.rank < 0 || !y.shape.dtype)
        return fail_build(a->b, "a source needs a shape and a dtype");
    if (strcmp(a->op, "iota") == 0) {
        const struct weft_attribute axis = {.name = "axis", .integer = integer_of(a->json, "axis")};
        return add_node(a->b, "iota", NULL, 0, &axis, 1, /* stated= */ true, &y) && keep(a->b, &y);
    }
    weft_dim extent[WEFT_MAX_RANK];
    for (int i = 0; i < y.shape.rank; i++)
        extent[i] = weft_extent(y.shape.extent[i]);
    const double value = json_number_value(json_object_get(a->json, "value"));
    if (weft_splat(a->b->graph, y.shape.dtype, y.shape.rank, extent, value, &y.id) != WEFT_OK)
        return fail_build(a->b, NULL);
    return keep(a->b, &y);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word, *op;
    int operands;                    /* the least */
    bool (*add)(struct adding *);
} words[] = {
    {"identity", "reshape", 1, add_reshape},       {"transpose", "transpose", 1, add_transpose},
    {"reshape", "reshape", 1, add_reshape},        {"expand", "bcast", 1, add_expand},
    {"unsqueeze", "reshape", 1, add_reshape},      {"squeeze", "reshape", 1, add_reshape},
    {"slice", "slice", 1, add_slice},              {"split", "slice", 1, add_split},
    {"pad", "pad", 1, add_pad},                    {"concat", "concat", 1, add_along},
    {"gather", "gather", 2, add_along},            {"gather_elements", "gather_elements", 2, add_along},
    {"scatter_elements", "scatter_elements", 3, add_along},
    {"neg", "neg", 1, add_elementwise},            {"relu", "relu", 1, add_elementwise},
    {"exp", "exp", 1, add_elementwise},            {"log", "log", 1, add_elementwise},
    {"sqrt", "sqrt", 1, add_elementwise},          {"rsqrt", "rsqrt", 1, add_elementwise},
    {"sin", "sin", 1, add_elementwise},            {"cos", "cos", 1, add_elementwise},
    {"tanh", "tanh", 1, add_elementwise},          {"sigmoid", "sigmoid", 1, add_elementwise},
    {"cast", "cast", 1, add_elementwise},          {"add", "add", 2, add_elementwise},
    {"sub", "sub", 2, add_elementwise},            {"mul", "mul", 2, add_elementwise},
    {"div", "div", 2, add_elementwise},            {"minimum", "min", 2, add_elementwise},
    {"maximum", "max", 2, add_elementwise},        {"gt", "gt", 2, add_elementwise},
    {"eq", "eq", 2, add_elementwise},              {"where", "select", 3, add_elementwise},
    {"sum", "sum", 1, add_reduction},              {"mean", "mean", 1, add_reduction},
    {"max", "reduce_max", 1, add_reduction},       {"cumsum", "cumsum", 1, add_along},
    {"matmul", "matmul", 2, add_matmul},           {"linear", "matmul", 2, add_linear},
    {"attention", "attention", 3, add_attention},  {"full", "const", 0, add_source},
    {"iota", "iota", 0, add_source},
};

bool build_op(struct build *b, const json_t *json)
{
    const json_t *in = json_object_get(json, "in"), *out = json_object_get(json, "out");
    const char *word = json_string_value(json_object_get(json, "op"));
    struct adding a = {.b = b, .json = json};
    size_t row = 0;
    while (word && row < sizeof words / sizeof *words && strcmp(words[row].word, word) != 0)
        row++;
    if (!word || row == sizeof words / sizeof *words)
        return fail_build(b, "no such op");
    if (json_array_size(in) > MOST_PORTS || json_array_size(out) > MOST_PORTS || json_array_size(out) == 0)
        return fail_build(b, "an op has up to 32 operands and results, and at least one result");
    for (; a.operands < json_array_size(in); a.operands++) {
        const struct case_value *v = find_value(b, json_string_value(json_array_get(in, a.operands)));
        if (!v)
            return fail_build(b, "an operand is no value");
        a.operand[a.operands] = *v;
    }
    for (; a.results < json_array_size(out); a.results++)
        if (!(a.result[a.results] = json_string_value(json_array_get(out, a.results))))
            return fail_build(b, "a result has no name");
    a.op = words[row].op;
    if (a.operands < (size_t)words[row].operands)
        return fail_build(b, "an op has too few operands");
    return words[row].add(&a);
}
