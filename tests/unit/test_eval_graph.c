/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_graph.c: evaluation of whole graphs: symbols from inputs, refusals, strides. */
#include "ir/ir.h"
#include "eval/eval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct weft_context *context;

static struct weft_graph *parse(const char *text)
{
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), text);
    return graph;
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

/* --- whole graphs --------------------------------------------------------------------------------------------------
 */

static struct weft_tensor tensor_of(void *data, int dtype, int rank, const int64_t *extent)
{
    struct weft_tensor tensor = {.data = data, .dtype = dtype, .rank = rank};
    for (int axis = 0; axis < rank; axis++)
        tensor.extent[axis] = extent[axis];
    weft_tensor_dense(&tensor);
    return tensor;
}

static void test_symbols(void **state)
{
    (void)state;
    struct weft_graph *graph =
        parse("weft 1\ngraph @g<N=1..8, M>(%x: f32[2*N + 1, N], %y: f32[M,3]) {\n"
              "%a: f32[N,2*N + 1] = transpose %x perm=[1 0]\n%e: i64[2] = extents value=[N (M*N)]\n"
              "return %a, %e\n}\n");
    float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y[12] = {0};
    struct weft_tensor in[] = {tensor_of(x, WEFT_F32, 2, (int64_t[]){5, 2}),
                               tensor_of(y, WEFT_F32, 2, (int64_t[]){4, 3})};
    struct weft_tensor out[2] = {{0}};
    assert_int_equal(weft_evaluate(graph, in, 2, out, 2), WEFT_OK);
    assert_int_equal(out[0].extent[0], 2);
    assert_int_equal(out[0].extent[1], 5);
    assert_float_equal(((float *)out[0].data)[1], 3, 0);
    assert_int_equal(((int64_t *)out[1].data)[0], 2);
    assert_int_equal(((int64_t *)out[1].data)[1], 8);
    weft_tensor_free(context, &out[0]);

    /* results into the caller's memory */
    int64_t extents[2];
    float transposed[10];
    weft_tensor_free(context, &out[1]);
    out[0].data = transposed;
    out[1].data = extents;
    assert_int_equal(weft_evaluate(graph, in, 2, out, 2), WEFT_OK);
    assert_ptr_equal(out[1].data, extents);
    assert_int_equal(extents[1], 8);
    assert_float_equal(transposed[9], 10, 0);
    weft_graph_destroy(graph);
}

static void expect_refusal(struct weft_graph *graph, const struct weft_tensor *in, size_t count, const char *message)
{
    struct weft_tensor out[2] = {{0}};
    assert_int_equal(weft_evaluate(graph, in, count, out, 2), WEFT_ERR_BINDING);
    assert_null(out[0].data);
    if (!strstr(weft_last_error(context), message))
        fail_msg("'%s' is not in: %s", message, weft_last_error(context));
}

static void test_binding_errors(void **state)
{
    (void)state;
    struct weft_graph *graph =
        parse("weft 1\ngraph @g<N=1..8, M>(%x: f32[2*N + 1, N], %y: f32[M,3]) {\nreturn %x, %y\n}\n");
    float data[64] = {0};
    const struct weft_tensor y = tensor_of(data, WEFT_F32, 2, (int64_t[]){4, 3});
    const struct weft_tensor x = tensor_of(data, WEFT_F32, 2, (int64_t[]){5, 2});
    expect_refusal(graph, &x, 1, "2 parameters, but 1");
    expect_refusal(graph, (struct weft_tensor[]){tensor_of(data, WEFT_F32, 2, (int64_t[]){5, 3}), y}, 2,
                   "parameter %x: axis 0 has extent 7 = 2*N + 1, but 5 is given");
    expect_refusal(graph, (struct weft_tensor[]){tensor_of(data, WEFT_F32, 2, (int64_t[]){19, 9}), y}, 2,
                   "parameter %x: extent 9 of axis 1 makes N 9, but it may be 1 to 8");
    expect_refusal(graph, (struct weft_tensor[]){x, tensor_of(data, WEFT_F32, 2, (int64_t[]){4, 2})}, 2,
                   "parameter %y: axis 1 has extent 3, but 2 is given");
    expect_refusal(graph, (struct weft_tensor[]){x, tensor_of(data, WEFT_I32, 2, (int64_t[]){4, 3})}, 2,
                   "parameter %y has elements of type f32, but i32 is given");
    expect_refusal(graph, (struct weft_tensor[]){x, tensor_of(data, WEFT_F32, 1, (int64_t[]){4})}, 2,
                   "parameter %y has rank 2, but rank 1 is given");
    expect_refusal(graph, (struct weft_tensor[]){x, tensor_of(NULL, WEFT_F32, 2, (int64_t[]){4, 3})}, 2,
                   "parameter %y is given no data");
    weft_graph_destroy(graph);

    graph = parse("weft 1\ngraph @g<A, B>(%x: f32[A*B]) {\n%y: i64[1] = extents value=[A]\nreturn %x, %y\n}\n");
    expect_refusal(graph, (struct weft_tensor[]){tensor_of(data, WEFT_F32, 1, (int64_t[]){4})}, 1,
                   "do not determine symbol A");
    weft_graph_destroy(graph);

    graph = parse("weft 1\ngraph @g<N>(%x: f32[N]) {\n%y: f32[N - 4] = slice %x start=[4] end=[N]\nreturn %y, %x\n}\n");
    expect_refusal(graph, (struct weft_tensor[]){tensor_of(data, WEFT_F32, 1, (int64_t[]){3})}, 1, "%y");
    weft_graph_destroy(graph);

    graph = parse("weft 1\ngraph @g<N>(%x: f32[N]) {\n"
                  "%y: f32[5], %i: i64[5] = top_k %x axis=0 k=5\nreturn %y, %i\n}\n");
    expect_refusal(graph, (struct weft_tensor[]){tensor_of(data, WEFT_F32, 1, (int64_t[]){4})}, 1,
                   "k, which is more than the operand has along axis 0, is 5");
    weft_graph_destroy(graph);
}

/* Solves the symbols of @g<head> with parameters of rank 1; %x is returned twice. */
static int bind(const char *head, const char *lines, unsigned count, const int64_t *extents)
{
    static float data[64];
    char text[1024];
    snprintf(text, sizeof text, "weft 1\ngraph @g%s {\n%s\nreturn %%x, %%x\n}\n", head, lines);
    struct weft_graph *graph = parse(text);
    struct weft_tensor in[4], out[2] = {{0}};
    for (unsigned i = 0; i < count; i++)
        in[i] = tensor_of(data, WEFT_F32, 1, &extents[i]);
    const int status = weft_evaluate(graph, in, count, out, 2);
    weft_tensor_free(context, &out[0]);
    weft_tensor_free(context, &out[1]);
    weft_graph_destroy(graph);
    return status;
}
#define BIND(head, lines, ...) \
    bind(head, lines, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void test_solver(void **state)
{
    (void)state;
    /* the plain symbol decides, wherever it stands */
    assert_int_equal(BIND("<N>(%x: f32[min(N, 8)], %y: f32[N])", "", 8, 20), WEFT_OK);
    assert_int_equal(BIND("<N>(%x: f32[min(N, 8)], %y: f32[N])", "", 7, 20), WEFT_ERR_BINDING);
    assert_int_equal(BIND("<N>(%x: f32[(N + 1)/2], %y: f32[2*N + 4])", "", 4, 18), WEFT_OK);
    /* one unknown after the other */
    assert_int_equal(BIND("<A, B>(%x: f32[A*B + max(B, 3)], %y: f32[3*B - 1])", "", 12, 5), WEFT_ERR_BINDING);
    assert_int_equal(BIND("<A, B>(%x: f32[A*B + max(B, 3)], %y: f32[3*B - 1])", "", 11, 5), WEFT_OK);
    /* what is not linear is not guessed */
    assert_int_equal(BIND("<N>(%x: f32[min(N, 8)])", "", 5), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_last_error(context), "do not determine symbol N"));
    assert_int_equal(BIND("<N>(%x: f32[N*N])", "", 1), WEFT_ERR_BINDING);
    assert_int_equal(BIND("<N>(%x: f32[2*N])", "", 3), WEFT_ERR_BINDING);
    /* nobody needs N; a body needs it */
    assert_int_equal(BIND("<N>(%x: f32[3])", "", 3), WEFT_OK);
    assert_int_equal(BIND("<N>(%x: f32[3])",
                          "graph @t() {\n%a: i64[1] = extents value=[N]\nreturn %a\n}\n"
                          "graph @e() {\n%a: i64[1] = extents value=[1]\nreturn %a\n}\n"
                          "%c: bool[] = const value=1\n%y: i64[1] = if %c then=@t else=@e", 3),
                     WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_last_error(context), "do not determine symbol N"));
}

/* Extents that inference could not compare with the paddings. */
static void test_pad_errors(void **state)
{
    (void)state;
    float data[16] = {0}, value = 0;
    struct weft_tensor in[] = {tensor_of(data, WEFT_F32, 1, (int64_t[]){0}), tensor_of(&value, WEFT_F32, 0, NULL)};
    struct weft_graph *graph = parse("weft 1\ngraph @g<N>(%x: f32[N], %v: f32[]) {\n"
                                     "%y: f32[N + 2] = pad %x, %v pad=[0 2] form=edge\nreturn %y, %x\n}\n");
    expect_refusal(graph, in, 2, "%y: pad: 2 elements cannot be added to axis 0 of extent 0 with form=edge");
    weft_graph_destroy(graph);
    graph = parse("weft 1\ngraph @g<N>(%x: f32[N], %v: f32[]) {\n"
                  "%y: f32[N + 2] = pad %x, %v pad=[3 -1] form=reflect\nreturn %y, %x\n}\n");
    in[0] = tensor_of(data, WEFT_F32, 1, (int64_t[]){3});
    expect_refusal(graph, in, 2, "%y: pad: 3 elements cannot be added to axis 0 of extent 3 with form=reflect");
    in[0] = tensor_of(data, WEFT_F32, 1, (int64_t[]){4});
    struct weft_tensor out[2] = {{0}};
    assert_int_equal(weft_evaluate(graph, in, 2, out, 2), WEFT_OK);
    weft_tensor_free(context, &out[0]);
    weft_tensor_free(context, &out[1]);
    weft_graph_destroy(graph);
}

/* A square is x * x to the last bit, whatever the C library makes of it: canonicalize replaces one by the other. */
static void test_square(void **state)
{
    (void)state;
    struct weft_graph *graph = parse("weft 1\ngraph @g(%x: f64[3]) {\n%two: f64[3] = const value=2\n"
                                     "%p: f64[3] = pow %x, %two\n%m: f64[3] = mul %x, %x\nreturn %p, %m\n}\n");
    double x[] = {0x1.c9ae08c20156p+0, 0x1.bd783c1632dcp+0, 0x1.2a2bf9312de6p+0};
    const struct weft_tensor in = {.data = x, .dtype = WEFT_F64, .rank = 1, .extent = {3}, .stride = {1}};
    struct weft_tensor out[2] = {{0}};
    assert_int_equal(weft_evaluate(graph, &in, 1, out, 2), WEFT_OK);
    assert_memory_equal(out[0].data, out[1].data, sizeof x);
    weft_tensor_free(context, &out[0]);
    weft_tensor_free(context, &out[1]);
    weft_graph_destroy(graph);
}

/* Strided operands and results of a single node, as the runtime uses it. */
static void test_node_strides(void **state)
{
    (void)state;
    struct weft_graph *graph =
        parse("weft 1\ngraph @g(%a: f32[2,3], %b: f32[2,3]) {\n%r: f32[2,3] = sub %a, %b\nreturn %r\n}\n");
    float a[6] = {1, 4, 2, 5, 3, 6}, b[3] = {1, 2, 3}, r[12];
    for (int i = 0; i < 12; i++)
        r[i] = -1;
    const struct weft_tensor in[] = {{.data = a, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {1, 2}},
                                     {.data = b, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {0, 1}}};
    struct weft_tensor out = {.data = r, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {6, 2}};
    struct weft_eval eval = {.graph = graph, .node = graph->first, .in = in, .out = &out, .context = context};
    assert_true(weft_eval_node(&eval));
    const float wanted[12] = {0, -1, 0, -1, 0, -1, 3, -1, 3, -1, 3, -1};
    assert_memory_equal(r, wanted, sizeof wanted);
    weft_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_binding_errors),
        cmocka_unit_test(test_solver),
        cmocka_unit_test(test_pad_errors),
        cmocka_unit_test(test_square),
        cmocka_unit_test(test_node_strides),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
