/* SPDX-License-Identifier: Apache-2.0 */
/* test_index.c: ops that move by index and ops that read between elements, in the reference evaluator and through a
 * plan, against values worked out by hand. */
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

static void check(const struct weft_tensor *tensor, size_t count, const double *wanted, const char *what)
{
    int64_t elements = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->extent[axis];
    if (elements != (int64_t)count)
        fail_msg("%lld elements instead of %zu: %s", (long long)elements, count, what);
    for (int64_t i = 0; i < elements; i++) {
        const double is = weft_dtype_is_float(tensor->dtype)
                              ? weft_load_real(tensor->dtype, tensor->data, i)
                              : (double)weft_load_integer(tensor->dtype, tensor->data, i);
        const bool same = isnan(wanted[i]) ? isnan(is)
                                           : is == wanted[i] || fabs(is - wanted[i]) <= 2e-6 * fabs(wanted[i]);
        if (!same)
            fail_msg("element %lld is %.9g, not %.9g: %s", (long long)i, is, wanted[i], what);
    }
}

/* The same from a plan without passes, so that the kernels compute and not the folding of constants. */
static void run_plan(const struct weft_graph *graph, size_t count, const double *wanted, const char *what)
{
    struct weft_plan *plan;
    struct weft_execution *execution;
    struct weft_tensor result;
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_PASSES};
    assert_int_equal(weft_compile(graph, &options, &plan), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    if (weft_run(execution) != WEFT_OK)
        fail_msg("%s: %s", weft_execution_error(execution), what);
    assert_int_equal(weft_output(execution, 0, &result), WEFT_OK);
    check(&result, count, wanted, what);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
}

/* Lines that define %r from constants, and its elements. */
static void expect(const char *lines, size_t count, const double *wanted)
{
    char text[4096];
    const int length = snprintf(text, sizeof text, "weft 1\ngraph @g() {\n%s\nreturn %%r\n}\n", lines);
    assert_in_range(length, 1, (int)sizeof text - 1);
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), text);
    struct weft_tensor result = {0};
    assert_int_equal(weft_evaluate(graph, NULL, 0, &result, 1), WEFT_OK);
    check(&result, count, wanted, lines);
    weft_tensor_free(context, &result);
    run_plan(graph, count, wanted, lines);
    weft_graph_destroy(graph);
}
#define EXPECT(lines, ...)                                                                                             \
    expect(lines, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})
#define EXPECT_EMPTY(lines) expect(lines, 0, NULL)

/* A line that must be refused, and a part of the message. */
static void refuse(const char *lines, const char *message)
{
    char text[2048];
    snprintf(text, sizeof text, "weft 1\ngraph @g<N=1..9>(%%n: f32[N,4]) {\n%s\nreturn %%r\n}\n", lines);
    struct weft_graph *graph = NULL;
    assert_int_not_equal(weft_parse(context, text, strlen(text), "test", &graph), WEFT_OK);
    if (!strstr(weft_last_error(context), message))
        fail_msg("'%s' is not in: %s", message, weft_last_error(context));
}

#define A "%a: f32[2,3] = const value=[1 2 3 4 5 6]\n"

static void test_flip(void **state)
{
    (void)state;
    EXPECT(A "%r: f32[2,3] = flip %a axes=[1]", 3, 2, 1, 6, 5, 4);
    EXPECT(A "%r: f32[2,3] = flip %a axes=[0 1]", 6, 5, 4, 3, 2, 1);
    EXPECT("%a: i4[3] = const value=[-1 2 3]\n%r: i4[3] = flip %a axes=[0]", 3, 2, -1);
    EXPECT_EMPTY("%a: f32[0,2] = const value=1\n%r: f32[0,2] = flip %a axes=[0]");
    refuse("%r: f32[N,4] = flip %n axes=[1 0]", "rising");
    refuse("%r: f32[N,4] = flip %n axes=[2]", "axes");
}

static void test_triangle(void **state)
{
    (void)state;
    EXPECT(A "%r: f32[2,3] = triangle %a", 1, 0, 0, 4, 5, 0);
    EXPECT(A "%r: f32[2,3] = triangle %a upper=1", 1, 2, 3, 0, 5, 6);
    EXPECT(A "%r: f32[2,3] = triangle %a diagonal=1 upper=1", 0, 2, 3, 0, 0, 6);
    EXPECT(A "%r: f32[2,3] = triangle %a diagonal=-9", 0, 0, 0, 0, 0, 0);
    EXPECT(A "%r: f32[2,3] = triangle %a diagonal=-9 upper=1", 1, 2, 3, 4, 5, 6);
    EXPECT("%a: bool[2,2,2] = const value=1\n%r: bool[2,2,2] = triangle %a", 1, 0, 1, 1, 1, 0, 1, 1);
    EXPECT("%a: f32[2,2] = const value=[1 inf nan 2]\n%r: f32[2,2] = triangle %a upper=1", 1, INF, 0, 2);
    EXPECT_EMPTY("%a: f32[2,0] = const value=1\n%r: f32[2,0] = triangle %a");
    refuse("%a: f32[3] = const value=1\n%r: f32[3] = triangle %a", "two axes");
}

static void test_reverse_sequence(void **state)
{
    (void)state;
    EXPECT(A "%l: i64[2] = const value=[2 3]\n%r: f32[2,3] = reverse_sequence %a, %l axis=1 batch_axis=0", 2, 1, 3, 6,
           5, 4);
    EXPECT(A "%l: i64[3] = const value=[0 1 2]\n%r: f32[2,3] = reverse_sequence %a, %l axis=0 batch_axis=1", 1, 2, 6,
           4, 5, 3);
    EXPECT(A "%l: i64[2] = const value=[-5 99]\n%r: f32[2,3] = reverse_sequence %a, %l axis=1 batch_axis=0", 1, 2, 3,
           6, 5, 4);
    refuse(A "%l: i64[3] = const value=1\n%r: f32[2,3] = reverse_sequence %a, %l axis=1 batch_axis=0", "a length for");
}

static void test_gathers(void **state)
{
    (void)state;
    EXPECT(A "%i: i64[2,2] = const value=[0 -1 2 1]\n%r: f32[2,2] = gather_elements %a, %i axis=1", 1, 3, 6, 5);
    EXPECT(A "%i: i32[1,2] = const value=[1 0]\n%r: f32[1,2] = gather_elements %a, %i axis=0", 4, 2);
    EXPECT(A "%i: i64[1,1] = const value=77\n%r: f32[1,1] = gather_elements %a, %i axis=1", 3);
    EXPECT("%a: f32[0,2] = const value=1\n%i: i64[3,2] = const value=1\n%r: f32[3,2] = gather_elements %a, %i axis=0",
           0, 0, 0, 0, 0, 0);
    EXPECT(A "%i: i64[2,2] = const value=[0 1 1 -3]\n%r: f32[2] = gather_nd %a, %i", 2, 4);
    EXPECT(A "%i: i64[3,1] = const value=[1 0 1]\n%r: f32[3,3] = gather_nd %a, %i", 4, 5, 6, 1, 2, 3, 4, 5, 6);
    EXPECT(A "%i: i64[2,1] = const value=[2 0]\n%r: f32[2] = gather_nd %a, %i batch=1", 3, 4);
    EXPECT(A "%i: i64[1] = const value=1\n%r: f32[3] = gather_nd %a, %i", 4, 5, 6);
    EXPECT(A "%i: i64[1,2] = const value=[-9 9]\n%r: f32[1] = gather_nd %a, %i", 3);
    EXPECT_EMPTY(A "%i: i64[0,2] = const value=0\n%r: f32[0] = gather_nd %a, %i");
    EXPECT("%a: i4[3] = const value=[1 2 3]\n%i: i64[2,1] = const value=[2 0]\n%r: i4[2] = gather_nd %a, %i", 3, 1);
    EXPECT(A "%i: i64[2] = const value=[1 0]\n%r: f32[2,3] = gather %a, %i axis=0", 4, 5, 6, 1, 2, 3);
    EXPECT(A "%i: u8[2] = const value=[200 0]\n%r: f32[2,2] = gather %a, %i axis=1", 3, 1, 6, 4);
    refuse(A "%i: i64[2,3] = const value=0\n%r: f32[2] = gather_nd %a, %i", "last axis");
    refuse(A "%i: i64[3,3] = const value=0\n%r: f32[3,3] = gather_elements %a, %i axis=1", "does not lie within");
}

static void test_one_hot(void **state)
{
    (void)state;
#define V "%v: f32[2] = const value=[5 7]\n%i: i64[3] = const value=[0 -1 3]\n"
    EXPECT(V "%r: f32[3,2] = one_hot %i, %v depth=2 axis=1", 7, 5, 5, 7, 5, 5);
    EXPECT(V "%r: f32[2,3] = one_hot %i, %v depth=2 axis=0", 7, 5, 5, 5, 7, 5);
    EXPECT_EMPTY(V "%r: f32[3,0] = one_hot %i, %v depth=0 axis=1");
    refuse(V "%r: f32[3,2] = one_hot %i, %i depth=2 axis=1", "off and on");
#undef V
}

static void test_scatters(void **state)
{
    (void)state;
#define S A "%i: i64[2,2] = const value=[0 0 2 -3]\n%u: f32[2,2] = const value=[10 20 30 40]\n"
    EXPECT(S "%r: f32[2,3] = scatter_elements %a, %i, %u axis=1", 20, 2, 3, 40, 5, 30);
    EXPECT(S "%r: f32[2,3] = scatter_elements %a, %i, %u axis=1 form=add", 31, 2, 3, 44, 5, 36);
    EXPECT(S "%r: f32[2,3] = scatter_elements %a, %i, %u axis=1 form=mul", 200, 2, 3, 160, 5, 180);
    EXPECT(S "%r: f32[2,3] = scatter_elements %a, %i, %u axis=1 form=min", 1, 2, 3, 4, 5, 6);
    EXPECT(S "%r: f32[2,3] = scatter_elements %a, %i, %u axis=1 form=max", 20, 2, 3, 40, 5, 30);
#undef S
    EXPECT(A "%i: i64[1,2] = const value=[9 -9]\n%u: f32[1,2] = const value=7\n"
             "%r: f32[2,3] = scatter_elements %a, %i, %u axis=0 form=add", 1, 2, 3, 4, 5, 6);
    EXPECT("%a: f32[2] = const value=[1 nan]\n%i: i64[2] = const value=[0 1]\n%u: f32[2] = const value=[nan 2]\n"
           "%r: f32[2] = scatter_elements %a, %i, %u axis=0 form=max", NAN, NAN);
    EXPECT("%a: u8[2] = const value=[250 1]\n%i: i64[2] = const value=0\n%u: u8[2] = const value=[4 5]\n"
           "%r: u8[2] = scatter_elements %a, %i, %u axis=0 form=add", 3, 1);
    EXPECT(A "%i: i64[2,1] = const value=[1 1]\n%u: f32[2,3] = const value=[1 1 1 2 2 2]\n"
             "%r: f32[2,3] = scatter_nd %a, %i, %u form=add", 1, 2, 3, 7, 8, 9);
    EXPECT(A "%i: i64[2,2] = const value=[0 2 0 2]\n%u: f32[2] = const value=[8 9]\n"
             "%r: f32[2,3] = scatter_nd %a, %i, %u", 1, 2, 9, 4, 5, 6);
    EXPECT(A "%i: i64[1,2] = const value=[0 3]\n%u: f32[1] = const value=8\n%r: f32[2,3] = scatter_nd %a, %i, %u", 1,
           2, 3, 4, 5, 6);
    EXPECT("%a: bf16[1] = const value=256\n%i: i64[2,1] = const value=0\n%u: bf16[2] = const value=1\n"
           "%r: bf16[1] = scatter_nd %a, %i, %u form=add", 256); /* each update is rounded */
    refuse(A "%i: i64[2,1] = const value=0\n%u: f32[2] = const value=8\n%r: f32[2,3] = scatter_nd %a, %i, %u",
           "instead of f32[2,3]");
    refuse("%a: bool[2] = const value=1\n%i: i64[1] = const value=0\n%u: bool[1] = const value=1\n"
           "%r: bool[2] = scatter_elements %a, %i, %u axis=0 form=add", "a float or integer");
}

static void test_dynamic(void **state)
{
    (void)state;
    EXPECT(A "%s: i64[2] = const value=[1 1]\n%r: f32[1,2] = dynamic_slice %a, %s", 5, 6);
    EXPECT(A "%s: i32[2] = const value=[9 -9]\n%r: f32[1,2] = dynamic_slice %a, %s", 4, 5);
    EXPECT(A "%s: i64[2] = const value=[0 1]\n%u: f32[2,1] = const value=[8 9]\n"
             "%r: f32[2,3] = dynamic_update %a, %u, %s", 1, 8, 3, 4, 9, 6);
    EXPECT(A "%s: i64[2] = const value=[5 5]\n%u: f32[1,1] = const value=8\n"
             "%r: f32[2,3] = dynamic_update %a, %u, %s", 1, 2, 3, 4, 5, 8);
    EXPECT_EMPTY(A "%s: i64[2] = const value=[5 5]\n%r: f32[0,3] = dynamic_slice %a, %s");
    refuse(A "%s: i64[1] = const value=0\n%r: f32[1,1] = dynamic_slice %a, %s", "one for each axis");
    refuse(A "%s: i64[2] = const value=0\n%r: f32[3,1] = dynamic_slice %a, %s", "a part of it");
}

static void test_pad(void **state)
{
    (void)state;
#define P "%a: f32[3] = const value=[1 2 3]\n%v: f32[] = const value=9\n"
    EXPECT(P "%r: f32[9] = pad %a, %v pad=[4 2] form=wrap", 3, 1, 2, 3, 1, 2, 3, 1, 2);
    EXPECT(P "%r: f32[6] = pad %a, %v pad=[1 2] form=edge", 1, 1, 2, 3, 3, 3);
    EXPECT(P "%r: f32[7] = pad %a, %v pad=[2 2] form=reflect", 3, 2, 1, 2, 3, 2, 1);
#undef P
    EXPECT(A "%v: f32[] = const value=0\n%r: f32[4,2] = pad %a, %v pad=[1 -1 1 0] form=reflect", 5, 6, 2, 3, 5, 6, 2,
           3);
}

static void test_resize(void **state)
{
    (void)state;
#define X "%x: f32[4] = const value=[1 2 3 4]\n"
    EXPECT(X "%r: f32[8] = resize %x coordinates=asymmetric nearest=floor", 1, 1, 2, 2, 3, 3, 4, 4);
    EXPECT(X "%r: f32[2] = resize %x scale=[0.6] coordinates=asymmetric nearest=ceil", 1, 3);
    EXPECT(X "%r: f32[8] = resize %x form=linear", 1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4);
    EXPECT(X "%r: f32[7] = resize %x form=linear coordinates=align_corners", 1, 1.5, 2, 2.5, 3, 3.5, 4);
    EXPECT(X "%r: f32[2] = resize %x form=linear", 1.5, 3.5);
    EXPECT(X "%r: f32[2] = resize %x form=linear antialias=1", 1.625, 3.375); /* weights 1 3 3 1 of 8 */
    EXPECT(X "%r: f32[1] = resize %x form=linear coordinates=pytorch_half_pixel", 1);
    EXPECT(X "%r: f32[2] = resize %x form=linear coordinates=tf_crop_and_resize region=[0.5 2] fill=-7", 2.5, -7);
    EXPECT(X "%r: f32[4] = resize %x form=cubic", 1, 2, 3, 4);
    EXPECT(X "%r: f32[2] = resize %x form=cubic", 1.40625, 3.59375);
    EXPECT(X "%r: f32[2] = resize %x form=cubic cubic=-0.5 exclude=1",
           (1 * 0.5625 + 2 * 0.5625 - 3 * 0.0625) / 1.0625, (4 * 0.5625 + 3 * 0.5625 - 2 * 0.0625) / 1.0625);
#undef X
    EXPECT("%x: f32[2] = const value=[1 inf]\n%r: f32[3] = resize %x form=linear coordinates=align_corners", 1, INF,
           INF);
    EXPECT("%x: u8[1,1,2,2] = const value=[1 2 3 4]\n%r: u8[1,1,4,4] = resize %x", 1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4,
           3, 3, 4, 4);
    EXPECT("%x: i32[2] = const value=[0 3]\n%r: i32[3] = resize %x form=linear coordinates=align_corners", 0, 1, 3);
    EXPECT("%x: bool[2] = const value=[0 1]\n%r: bool[4] = resize %x", 0, 0, 1, 1);
    EXPECT("%x: f32[1,1,2,2] = const value=[1 2 3 4]\n%r: f32[1,1,3,3] = resize %x form=linear "
           "coordinates=align_corners",
           1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4);
    refuse("%r: f32[N,4] = resize %n scale=[1 0]", "positive");
    refuse("%r: f32[N,4] = resize %n coordinates=tf_crop_and_resize", "region is missing");
}

static void test_sampling(void **state)
{
    (void)state;
#define X "%x: f32[1,1,2,2] = const value=[1 2 3 4]\n"
#define G "%g: f32[1,1,3,2] = const value=[0 0 -1 -1 3 0]\n"
    EXPECT(X G "%r: f32[1,1,1,3] = grid_sample %x, %g", 2.5, 0.25, 0);
    EXPECT(X G "%r: f32[1,1,1,3] = grid_sample %x, %g corners=1", 2.5, 1, 0);
    EXPECT(X G "%r: f32[1,1,1,3] = grid_sample %x, %g border=edge", 2.5, 1, 3);
    EXPECT(X G "%r: f32[1,1,1,3] = grid_sample %x, %g border=reflect corners=1", 2.5, 1, 2);
    EXPECT(X G "%r: f32[1,1,1,3] = grid_sample %x, %g form=nearest border=edge", 1, 1, 2);
    EXPECT(X "%g: f32[1,1,1,2] = const value=nan\n%r: f32[1,1,1,1] = grid_sample %x, %g corners=1", 1);
    EXPECT("%x: f32[1,1,0,2] = const value=1\n%g: f32[1,1,1,2] = const value=0\n%r: f32[1,1,1,1] = grid_sample %x, %g",
           0);
#undef G
#undef X
    EXPECT("%x: f32[1,1,2,1,1] = const value=[1 3]\n%g: f32[1,1,1,1,3] = const value=0\n"
           "%r: f32[1,1,1,1,1] = grid_sample %x, %g", 2);
    EXPECT("%x: f32[1,2,2] = const value=[1 2 3 4]\n%r: f32[1,1,3] = col2im %x kernel=[2]", 1, 5, 4);
    EXPECT("%x: i8[1,2,2] = const value=[1 2 3 4]\n%r: i8[1,1,4] = col2im %x kernel=[2] stride=[2]", 1, 3, 2, 4);
    EXPECT("%x: f32[1,2,2] = const value=[1 2 3 4]\n%r: f32[1,1,2] = col2im %x kernel=[2] dilation=[2] pad=[1 1]", 2,
           3);
}

static int setup(void **state)
{
    (void)state;
    return weft_open(NULL, &context);
}

static int teardown(void **state)
{
    (void)state;
    weft_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip),     cmocka_unit_test(test_triangle), cmocka_unit_test(test_reverse_sequence),
        cmocka_unit_test(test_gathers),  cmocka_unit_test(test_one_hot),  cmocka_unit_test(test_scatters),
        cmocka_unit_test(test_dynamic),  cmocka_unit_test(test_pad),      cmocka_unit_test(test_resize),
        cmocka_unit_test(test_sampling),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
