/* SPDX-License-Identifier: Apache-2.0 */
/* test_passes_random.c: passes that promise to keep every bit, on graphs drawn at random.
 *
 * A graph starts from one parameter per element type, filled with what rules get wrong: zeros of both signs,
 * infinities, NaN, extremes of integers, integers next to 2^53. Each step applies an op to earlier values of fitting
 * types, often with a uniform constant from the ones that rules look for, or one that is only nearly uniform. Every
 * value is returned with some chance, so that results stand in the way of rewrites. The evaluator computes the graph
 * before and after; all bits must agree, but NaN is NaN. min and max are left out: they may give either zero. */
#include "passes/passes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 24, PARAMS = 9, MOST_VALUES = 128, ELEMENTS = 12 };
static const int dtypes[PARAMS] = {WEFT_F32, WEFT_F16, WEFT_I32, WEFT_I8, WEFT_U8,
                                    WEFT_BOOL, WEFT_I64, WEFT_U64, WEFT_F64};

struct maker {
    uint64_t seed;
    struct weft_graph *graph;
    weft_val value[MOST_VALUES];
    int values;
};

static unsigned draw(struct maker *m, unsigned n)
{
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->seed >> 33) % n;
}

static const struct weft_type *type_of(const struct maker *m, weft_val v) { return weft_type_of(m->graph, v); }

/* Recent ones more often: rules look at chains. */
static weft_val draw_value(struct maker *m)
{
    const unsigned values = (unsigned)m->values;
    return m->value[draw(m, 2) ? draw(m, values) : values - 1 - draw(m, 3)];
}

/* A constant whose elements are nearly the same: a rule that compares 64-bit integers as doubles takes it for
 * uniform. */
static weft_val draw_constant(struct maker *m, const struct weft_type *type)
{
    double packed[ELEMENTS] = {0};
    const int64_t large = (INT64_C(1) << 53) + draw(m, 4);
    const unsigned other = draw(m, ELEMENTS);
    for (unsigned i = 0; i < ELEMENTS; i++)
        if (weft_dtype_is_float(type->dtype))
            weft_store_real(type->dtype, packed, i, i == other ? -0.0 : 0);
        else
            weft_store_integer(type->dtype, packed, i, large + (i == other));
    weft_val constant;
    int64_t extent[3];
    for (int i = 0; i < 3; i++)
        extent[i] = weft_dim_value(type->extent[i]);
    assert_int_equal(weft_constant(m->graph, type->dtype, 3, extent, packed, &constant), WEFT_OK);
    return constant;
}

/* A value like the one given, or a constant of its type. */
static weft_val draw_partner(struct maker *m, weft_val v)
{
    static const double numbers[] = {0, -0.0, 1, -1, 2, 0.5, 8, 3};
    if (draw(m, 2)) {
        weft_val constant;
        const struct weft_type type = *type_of(m, v);
        if (draw(m, 4) == 0)
            return draw_constant(m, &type);
        const bool no_sign = type.dtype == WEFT_BOOL || type.dtype == WEFT_U8 || type.dtype == WEFT_U64;
        double number = no_sign ? draw(m, 2) : numbers[draw(m, 8)];
        if (!weft_dtype_is_float(type.dtype))
            number = (double)(int64_t)number;
        assert_int_equal(weft_splat(m->graph, type.dtype, type.rank, type.extent, number, &constant), WEFT_OK);
        return constant;
    }
    for (int tries = 0; tries < 8; tries++) {
        const weft_val other = m->value[draw(m, (unsigned)m->values)];
        if (weft_type_same(type_of(m, other), type_of(m, v)))
            return other;
    }
    return v;
}

static void append(struct maker *m, const char *op, const weft_val *operand, size_t operands,
                   const struct weft_attribute *attribute, size_t attributes, const struct weft_type *stated)
{
    const struct weft_op spec = {.size = sizeof spec, .op = op, .operand = operand, .operands = operands,
                                 .attribute = attribute, .attributes = attributes,
                                 .dtype = stated ? stated->dtype : 0, .rank = stated ? stated->rank : 0,
                                 .extent = stated ? stated->extent : NULL};
    weft_val result;
    assert_int_equal(weft_append(m->graph, &spec, &result), WEFT_OK);
    m->value[m->values++] = result;
}

static void add_unary(struct maker *m, weft_val x)
{
    static const char *const real[] = {"abs", "neg", "relu", "floor", "ceil", "round", "sqrt", "exp", "sign"};
    static const char *const whole[] = {"abs", "neg", "relu", "sign"};
    const int dtype = type_of(m, x)->dtype;
    const char *op = weft_dtype_is_float(dtype) ? real[draw(m, 9)] : dtype == WEFT_BOOL ? "not" : whole[draw(m, 4)];
    append(m, op, &x, 1, NULL, 0, NULL);
}

static void add_binary(struct maker *m, weft_val x)
{
    static const char *const numeric[] = {"add", "sub", "mul", "div", "pow", "add", "mul"};
    static const char *const logic[] = {"and", "or", "xor"};
    static const char *const compare[] = {"eq", "ne", "lt", "ge"};
    const bool is_bool = type_of(m, x)->dtype == WEFT_BOOL;
    weft_val operand[] = {x, draw_partner(m, x)};
    if (draw(m, 2)) {
        operand[1] = x;
        operand[0] = draw_partner(m, x);
    }
    const char *op = is_bool ? logic[draw(m, 3)] : draw(m, 6) == 0 ? compare[draw(m, 4)] : numeric[draw(m, 7)];
    append(m, op, operand, 2, NULL, 0, NULL);
}

static void add_cast(struct maker *m, weft_val x)
{
    struct weft_type type = *type_of(m, x);
    type.dtype = (uint8_t)dtypes[draw(m, PARAMS)];
    append(m, "cast", &x, 1, NULL, 0, &type);
}

static void add_select(struct maker *m, weft_val x)
{
    const weft_val y = draw_partner(m, x);
    append(m, "eq", (const weft_val[]){x, y}, 2, NULL, 0, NULL);
    const weft_val condition = draw_partner(m, m->value[m->values - 1]);
    append(m, "select", (const weft_val[]){condition, x, y}, 3, NULL, 0, NULL);
}

static void add_view(struct maker *m, weft_val x)
{
    const struct weft_type type = *type_of(m, x);
    static const int64_t shapes[][3] = {{1, 3, 4}, {2, 6, 1}, {3, 1, 4}, {12, 1, 1}};
    weft_dim list[3], zero[3] = {{0}};
    if (draw(m, 3) == 0) {
        struct weft_type to = type;
        const int64_t *shape = shapes[draw(m, 4)];
        for (int i = 0; i < 3; i++)
            to.extent[i] = weft_extent(shape[i]);
        append(m, "reshape", &x, 1, NULL, 0, &to);
    } else if (draw(m, 4) == 0) {
        const struct weft_attribute cut[] = {{.name = "start", .integers = zero, .count = 3},
                                             {.name = "end", .integers = type.extent, .count = 3}};
        append(m, "slice", &x, 1, cut, 2, NULL);
    } else {
        const unsigned turn = draw(m, 3), flip = draw(m, 2);
        for (unsigned i = 0; i < 3; i++)
            list[i] = weft_extent((flip ? 2 - i + turn : i + turn) % 3);
        const struct weft_attribute perm = {.name = "perm", .integers = list, .count = 3};
        append(m, "transpose", &x, 1, &perm, 1, NULL);
    }
}

static void make_graph(struct maker *m)
{
    const weft_dim extent[] = {weft_extent(1), weft_extent(3), weft_extent(4)};
    for (int i = 0; i < PARAMS; i++)
        assert_int_equal(weft_param(m->graph, NULL, dtypes[i], 3, extent, &m->value[m->values++]), WEFT_OK);
    static void (*const add[])(struct maker *, weft_val) = {add_unary, add_binary, add_binary,
                                                            add_cast,  add_select, add_view};
    for (int i = 0; i < STEPS; i++)
        add[draw(m, 6)](m, draw_value(m));
    weft_val returned[MOST_VALUES];
    size_t count = 0;
    for (int i = PARAMS; i < m->values; i++)
        if (i == m->values - 1 || draw(m, 4) == 0)
            returned[count++] = m->value[i];
    assert_int_equal(weft_return(m->graph, returned, count), WEFT_OK);
}

/* --- inputs and outputs ----------------------------------------------------------------------------------------- */

static void fill(struct weft_tensor *tensor, double *storage, int dtype)
{
    static const double hostile[ELEMENTS] = {0,   -0.0, 1,    -1,   INFINITY,             -INFINITY,
                                             NAN, 0.5,  -2.5, 3e4,  0x1.c9ae08c20156p+0, -3e4};
    static const int64_t whole[ELEMENTS] = {0, -1, 1, 127, -128, 255, 2, INT32_MAX, INT32_MIN,
                                               (INT64_C(1) << 53) + 1, INT64_MIN, INT64_MAX};
    *tensor = (struct weft_tensor){.data = storage, .dtype = dtype, .rank = 3, .extent = {1, 3, 4}};
    weft_tensor_dense(tensor);
    for (int i = 0; i < ELEMENTS; i++)
        if (weft_dtype_is_float(dtype))
            weft_store_real(dtype, storage, i, hostile[i]);
        else
            weft_store_integer(dtype, storage, i, dtype == WEFT_BOOL ? i % 3 == 0 : whole[i]);
}

static void evaluate(struct weft_graph *graph, struct weft_tensor *out)
{
    static double storage[PARAMS][ELEMENTS];
    struct weft_tensor in[PARAMS];
    for (int i = 0; i < PARAMS; i++)
        fill(&in[i], storage[i], dtypes[i]);
    assert_int_equal(weft_evaluate(graph, in, PARAMS, out, graph->returns), WEFT_OK);
}

static bool same_element(const struct weft_tensor *a, const struct weft_tensor *b, int i)
{
    if (!weft_dtype_is_float(a->dtype))
        return weft_load_integer(a->dtype, a->data, i) == weft_load_integer(b->dtype, b->data, i);
    const double x = weft_load_real(a->dtype, a->data, i), y = weft_load_real(b->dtype, b->data, i);
    return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

static void compare(struct weft_context *context, struct weft_graph *before, struct weft_graph *after, uint64_t seed)
{
    struct weft_tensor expected[MOST_VALUES] = {{0}}, got[MOST_VALUES] = {{0}};
    evaluate(before, expected);
    evaluate(after, got);
    for (uint32_t r = 0; r < before->returns; r++) {
        for (int i = 0; i < ELEMENTS; i++)
            if (!same_element(&expected[r], &got[r], i)) {
                char *text, *changed;
                weft_print(before, &text);
                weft_print(after, &changed);
                print_error("before:\n%s\nafter:\n%s\n", text, changed);
                fail_msg("seed %llu, result %u, element %d: %g became %g", (unsigned long long)seed, r, i,
                         weft_load_real(expected[r].dtype, expected[r].data, i),
                         weft_load_real(got[r].dtype, got[r].data, i));
            }
        weft_tensor_free(context, &expected[r]);
        weft_tensor_free(context, &got[r]);
    }
}

static void exact_passes_keep_every_bit(void **state)
{
    static const char *const passes[] = {"canonicalize", "cancel_transpose", "fold_const",
                                         "split_concat", "cse", "dce", NULL};
    const uint64_t seeds = getenv("WEFT_LONG") ? 20000 : 500;
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    int changes = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct maker m = {.seed = seed * 0x9E3779B97F4A7C15u};
        struct weft_graph *copy;
        assert_int_equal(weft_graph_create(context, "random", &m.graph), WEFT_OK);
        make_graph(&m);
        assert_int_equal(weft_graph_clone(m.graph, &copy), WEFT_OK);
        const char *pass = passes[seed % 7];
        const int changed = pass ? weft_run_pass(copy, pass, NULL) : weft_run_pipeline(copy, NULL);
        assert_true(changed >= 0);
        changes += changed;
        compare(context, m.graph, copy, seed);
        weft_graph_destroy(copy);
        weft_graph_destroy(m.graph);
    }
    assert_true(changes > (int)seeds / 3);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_passes_keep_every_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
