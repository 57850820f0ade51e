/* SPDX-License-Identifier: Apache-2.0 */
/* eval_support.h: what tests of the reference evaluator are written in: a few lines of text, and the elements that come
 * out. */
#ifndef WEFT_TEST_EVAL_SUPPORT_H
#define WEFT_TEST_EVAL_SUPPORT_H

#include "ir/ir.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INF INFINITY

static struct weft_context *context;

static inline struct weft_graph *parse(const char *text)
{
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), text);
    return graph;
}

static inline void check_element(const struct weft_tensor *tensor, int64_t i, double wanted, const char *what)
{
    const bool real = weft_dtype_is_float(tensor->dtype);
    const double is = real ? weft_load_real(tensor->dtype, tensor->data, i)
                           : (double)weft_load_integer(tensor->dtype, tensor->data, i);
    const double bound = tensor->dtype == WEFT_F64 ? 1e-12 : tensor->dtype == WEFT_F32 ? 1e-6 : 0;
    const bool same = isnan(wanted) ? isnan(is) : is == wanted || fabs(is - wanted) <= bound * fabs(wanted);
    if (!same)
        fail_msg("element %lld is %.9g, not %.9g: %s", (long long)i, is, wanted, what);
}

/* Lines that define %r from constants, in a graph that declares `symbols` ("<K=data(4)>"), and its elements. */
static inline void expect_in(const char *symbols, const char *lines, size_t count, const double *wanted)
{
    char text[4096];
    const int length = snprintf(text, sizeof text, "weft 1\ngraph @g%s() {\n%s\nreturn %%r\n}\n", symbols, lines);
    assert_in_range(length, 1, (int)sizeof text - 1);
    struct weft_graph *graph = parse(text);
    struct weft_tensor result = {0};
    assert_int_equal(weft_evaluate(graph, NULL, 0, &result, 1), WEFT_OK);
    int64_t elements = 1;
    for (int axis = 0; axis < result.rank; axis++)
        elements *= result.extent[axis];
    if (elements != (int64_t)count)
        fail_msg("%lld elements instead of %zu: %s", (long long)elements, count, lines);
    for (int64_t i = 0; i < elements; i++)
        check_element(&result, i, wanted[i], lines);
    weft_tensor_free(context, &result);
    weft_graph_destroy(graph);
}

static inline void expect(const char *lines, size_t count, const double *wanted)
{
    expect_in("", lines, count, wanted);
}

#define EXPECT(lines, ...)                                                                                             \
    expect(lines, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})
#define EXPECT_EMPTY(lines) expect(lines, 0, NULL)

/* %r of a unary op over f32 elements. */
static inline void expect_unary(const char *op, const char *elements, size_t count, const double *wanted)
{
    char lines[512];
    snprintf(lines, sizeof lines, "%%a: f32[%zu] = const value=[%s]\n%%r: f32[%zu] = %s", count, elements, count, op);
    expect(lines, count, wanted);
}
#define UNARY(op, elements, ...)                                                                                       \
    expect_unary(op, elements, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})

static inline int setup(void **state)
{
    (void)state;
    return weft_open(NULL, &context);
}

static inline int teardown(void **state)
{
    (void)state;
    weft_close(context);
    return 0;
}

#endif
