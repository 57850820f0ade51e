/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_order.c: plans with ops along one axis against the evaluator, for several axes, types and numbers of
 * threads: arguments of extremes, scans, orders; and a resize along axes whose sizes turn out to be equal. */
#include "tests/unit/plan_support.h"

static void fill(struct weft_tensor *t, void *data, int dtype, int64_t a, int64_t b, int64_t c)
{
    *t = (struct weft_tensor){.data = data, .dtype = dtype, .rank = 3, .extent = {a, b, c}};
    weft_tensor_dense(t);
    for (int64_t i = 0; i < a * b * c; i++)
        if (weft_dtype_is_float(dtype))
            weft_store_real(dtype, data, i, i % 97 == 0 ? (double)NAN : (double)((i * 37 + 11) % 41 - 20) / 8);
        else
            weft_store_integer(dtype, data, i, (i * 37 + 11) % 41 - 20);
}

/* The same elements; sums may differ in their last bits. */
static void assert_same(const struct weft_tensor *got, const struct weft_tensor *want)
{
    int64_t n = 1;
    for (int axis = 0; axis < want->rank; axis++) {
        assert_int_equal(got->extent[axis], want->extent[axis]);
        n *= want->extent[axis];
    }
    for (int64_t i = 0; i < n; i++) {
        const bool real = weft_dtype_is_float(want->dtype);
        const double a =
            real ? weft_load_real(got->dtype, got->data, i) : (double)weft_load_integer(got->dtype, got->data, i);
        const double b =
            real ? weft_load_real(want->dtype, want->data, i) : (double)weft_load_integer(want->dtype, want->data, i);
        if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 1e-6 * fabs(b)))
            fail_msg("element %lld is %.9g instead of %.9g", (long long)i, a, b);
    }
}

static void check(int threads, const char *dtype, int number, const char *lines, size_t results)
{
    enum { A = 5, B = 60, C = 40 };
    static int64_t data[A * B * C];
    char text[2048];
    snprintf(text, sizeof text, "graph @t<A, B=10.., C>(%%x: %s[A,B,C]) {\n%s}\n", dtype, lines);
    struct weft_context *context = open_context(threads);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor x, want[8] = {{0}}, got;
    fill(&x, data, number, A, B, C);
    assert_int_equal(plan->fallbacks, 0);
    assert_int_equal(weft_evaluate(graph, &x, 1, want, results), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    for (size_t i = 0; i < results; i++) {
        assert_int_equal(weft_output(e, i, &got), WEFT_OK);
        assert_same(&got, &want[i]);
        weft_tensor_free(context, &want[i]);
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void test_f32(void **state)
{
    for (int threads = 1; threads <= 3; threads++) {
        check(threads, "f32", WEFT_F32,
              "%a: i64[A,C] = arg_max %x axis=1\n%b: i64[A,B,1] = arg_min %x axis=2 keepdims=1 ties=last\n"
              "%c: f32[A,B,C] = cumsum %x axis=1\n%d: f32[A,B,C] = cummax %x axis=0 reverse=1\n"
              "%e: i64[B,C] = arg_max %x axis=0 ties=last\nreturn %a, %b, %c, %d, %e\n",
              5);
        check(threads, "f32", WEFT_F32,
              "%a: f32[A,B,C], %b: i64[A,B,C] = sort %x axis=1 descending=1\n"
              "%c: f32[A,B,C], %d: i64[A,B,C] = sort %x axis=2\n"
              "%e: f32[A,7,C], %f: i64[A,7,C] = top_k %x axis=1 k=7\n%g: f32[A,B,C], %h: i64[A,B,C] = sort %x axis=0\n"
              "return %a, %b, %d, %e, %f, %g\n",
              6);
    }
}

static void test_other_types(void **state)
{
    check(2, "i32", WEFT_I32,
          "%a: i32[A,9,C], %b: i64[A,9,C] = top_k %x axis=1 k=9 largest=0 sorted=0\n"
          "%c: i32[A,B,C] = cumprod %x axis=1\n%d: i64[A,B] = arg_min %x axis=2\nreturn %a, %b, %c, %d\n",
          4);
    check(2, "i64", WEFT_I64,
          "%a: i64[A,B,C] = cumsum %x axis=2 exclusive=1\n%b: i64[A,B] = arg_max %x axis=2\nreturn %a, %b\n", 2);
    check(2, "f64", WEFT_F64,
          "%a: f64[A,B,C] = cummin %x axis=1 exclusive=1\n%b: i64[A,B] = arg_max %x axis=2\nreturn %a, %b\n", 2);
}

/* Long lines are cut into chunks, as many as their length says: near the evaluator, and the same bits for any number of
 * threads and in every run. The product leaves the range of f64 within some chunks, the sum has infinities. */
static void long_scans(void **state)
{
    enum { N = 40000, RESULTS = 4 };
    static float in[2 * N], first[RESULTS][2 * N];
    const struct weft_tensor input = tensor_of(in, 2, (const int64_t[]){2, N});
    for (int64_t i = 0; i < 2 * N; i++)
        in[i] = i % N < N / 2 ? (float)(i * 37 % 41 - 20) / 8 : (float)(1 + i % 7) / 4;
    in[N + N / 2] = INFINITY;
    for (int threads = 1; threads <= 4; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(
            context, "graph @t<N=1..50000>(%x: f32[2,N]) {\n  %a: f32[2,N] = cumsum %x axis=1\n"
                     "  %b: f32[2,N] = cumsum %x axis=1 exclusive=1 reverse=1\n  %c: f32[2,N] = cumprod %x axis=1\n"
                     "  %d: f32[2,N] = cummax %x axis=1 reverse=1\n  return %a, %b, %c, %d\n}\n");
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        struct weft_tensor want[RESULTS] = {{0}}, got;
        assert_int_equal(weft_evaluate(graph, &input, 1, want, RESULTS), WEFT_OK);
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(weft_bind_input(e, 0, &input), WEFT_OK);
            assert_int_equal(weft_run(e), WEFT_OK);
            for (size_t r = 0; r < RESULTS; r++) {
                assert_int_equal(weft_output(e, r, &got), WEFT_OK);
                for (int64_t i = 0; i < 2 * N; i++) {
                    const float x = ((const float *)got.data)[i], y = ((const float *)want[r].data)[i];
                    if (!(x == y || (isnan(x) && isnan(y)) || fabsf(x - y) <= 1e-6f * fabsf(y)))
                        fail_msg("result %zu, element %lld is %g, not %g", r, (long long)i, (double)x, (double)y);
                }
                if (threads == 1 && !again)
                    memcpy(first[r], got.data, sizeof first[r]);
                else
                    assert_memory_equal(first[r], got.data, sizeof first[r]);
            }
        }
        for (size_t r = 0; r < RESULTS; r++)
            weft_tensor_free(context, &want[r]);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* Products whose pieces leave the range where no result does (f64), or where results come back from infinity (f32). */
static void products_at_the_ends(void **state)
{
    enum { N = 64 };
    static double x[N];
    static float y[N];
    for (int i = 0; i < N; i++) {
        x[i] = 1;
        y[i] = i < 32 ? 2252.8f : i < 48 ? 0x1.121p-67f : 0x1.333p46f;
    }
    x[0] = 0x1.4cdp500, x[4] = 0x1.1p-530, x[5] = 0x1.28fp-530, x[6] = 0x1p500;
    for (int threads = 1; threads <= 2; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(
            context, "graph @t(%x: f64[64], %y: f32[64]) {\n  %a: f64[64] = cumprod %x axis=0\n"
                     "  %b: f32[64] = cumprod %y axis=0\n  return %a, %b\n}\n");
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        struct weft_tensor in[2], want[2] = {{0}}, got;
        in[0] = (struct weft_tensor){.data = x, .dtype = WEFT_F64, .rank = 1, .extent = {N}, .stride = {1}};
        in[1] = (struct weft_tensor){.data = y, .dtype = WEFT_F32, .rank = 1, .extent = {N}, .stride = {1}};
        assert_int_equal(weft_evaluate(graph, in, 2, want, 2), WEFT_OK);
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(weft_bind_input(e, i, &in[i]), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(weft_output(e, i, &got), WEFT_OK);
            assert_same(&got, &want[i]);
            weft_tensor_free(context, &want[i]);
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* Sizes that only a run shows to be equal: its kernel copies, and no evaluator allocates. */
static void a_resize_of_nothing_is_a_copy(void **state)
{
    struct scene s = open_scene("graph @t<H=1..64, W=1..64>(%x: f32[2,H,W]) {\n"
                                "  %y: f32[2,7,9] = resize %x form=linear\n  return %y\n}\n", 0);
    static float in[2 * 7 * 9];
    static const int64_t extent[] = {2, 7, 9};
    const struct weft_tensor input = tensor_of(in, 3, extent);
    in[1] = -0.f;
    in[5] = INFINITY;
    in[100] = NAN;
    struct weft_tensor got;
    for (int run = 0; run < 2; run++) {
        assert_int_equal(weft_bind_input(s.execution, 0, &input), WEFT_OK);
        const int before = allocations;
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        if (run > 0)
            assert_int_equal(allocations, before);
    }
    assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
    for (int i = 0; i < 2 * 7 * 9; i++)
        if (i != 100)
            assert_memory_equal((const float *)got.data + i, in + i, sizeof *in);
    assert_true(isnan(((const float *)got.data)[100]));
    close_scene(&s);
}

/* Of three 4-bit elements half a byte is left over, in which nothing of what memory held before may show. */
static void half_a_byte_left_over_is_0(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph =
        parse(context, "graph @t(%x: f32[3]) {\n  %y: u4[3] = cast %x\n  return %y\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    float numbers[3];
    uint8_t bytes[] = {0xff, 0xff};
    const struct weft_tensor x = tensor_of(numbers, 1, (const int64_t[]){3});
    struct weft_tensor y = x;
    for (int i = 0; i < 3; i++)
        numbers[i] = (float)(i + 1);
    y.dtype = WEFT_U4;
    y.data = bytes;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_output(e, 0, &y), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(bytes[0], 0x21);
    assert_int_equal(bytes[1], 0x03);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_scans),
        cmocka_unit_test(products_at_the_ends),
        cmocka_unit_test(a_resize_of_nothing_is_a_copy),
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(half_a_byte_left_over_is_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
