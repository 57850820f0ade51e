/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c: plans and executions. Every graph here runs by kernels, by the reference plan and by the evaluator, and
 * the plan itself is looked at: which values are views, where results are computed, what is bound, how often memory is
 * asked for. */
#include "tests/unit/plan_support.h"

#define MOST 4

/* --- helpers ------------------------------------------------------------------------------------------------------ */

static void assert_close(const struct weft_tensor *got, const float *want, double tolerance)
{
    int64_t n = 1, index[WEFT_MAX_RANK] = {0};
    for (int i = 0; i < got->rank; i++)
        n *= got->extent[i];
    for (int64_t k = 0; k < n; k++) {
        int64_t place = 0;
        for (int i = 0; i < got->rank; i++)
            place += index[i] * got->stride[i];
        const double value = ((const float *)got->data)[place];
        if (!(fabs(value - (double)want[k]) <= tolerance * (1 + fabs((double)want[k]))))
            fail_msg("element %lld is %g, not %g", (long long)k, value, (double)want[k]);
        for (int i = got->rank - 1; i >= 0 && ++index[i] == got->extent[i]; i--)
            index[i] = 0;
    }
}

/* Runs the graph on one f32 input of the given extents and compares all outputs with the evaluator's. */
static void check_plan(const struct weft_graph *graph, uint32_t flags, int rank, const int64_t *extent,
                       double tolerance)
{
    static float in[FLOATS];
    const struct weft_tensor input = tensor_of(in, rank, extent);
    struct weft_tensor expected[MOST] = {0};
    const size_t outputs = graph->returns;
    if (weft_evaluate(graph, &input, 1, expected, outputs) != WEFT_OK)
        fail_msg("%s", weft_last_error(graph->context));
    struct weft_plan *plan = compile(graph, flags);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &input), WEFT_OK);
    if (weft_run(e) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
    for (size_t i = 0; i < outputs; i++) {
        struct weft_tensor got;
        assert_int_equal(weft_output(e, i, &got), WEFT_OK);
        assert_close(&got, expected[i].data, tolerance);
        weft_tensor_free(graph->context, &expected[i]);
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
}

static void check_text(const char *text, int rank, const int64_t *extent, double tolerance)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(context, text);
        check_plan(graph, 0, rank, extent, tolerance);
        check_plan(graph, WEFT_COMPILE_NO_PASSES, rank, extent, tolerance);
        check_plan(graph, WEFT_COMPILE_NO_PASSES | WEFT_COMPILE_REFERENCE, rank, extent, tolerance);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

#define EXTENT(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}

/* --- right answers ------------------------------------------------------------------------------------------------ */

static void views_and_copies(void **state)
{
    check_text(
        "graph @t(%x: f32[2,3,4]) {\n  %y: f32[4,3,2] = transpose %x perm=[2 1 0]\n  %z: f32[12,2] = reshape %y\n"
        "  %r: f32[12,2] = relu %z\n  return %r\n}\n",
        EXTENT(2, 3, 4), 0);
    check_text("graph @t(%x: f32[6,8]) {\n  %s: f32[2,4] = slice %x start=[1 0] end=[6 8] step=[3 2]\n"
               "  %b: f32[5,2,4] = bcast %s dims=[1 2]\n  return %b, %s, %x\n}\n", EXTENT(6, 8), 0);
    check_text("graph @t(%x: f32[2,3]) {\n  %p: f32[] = const value=-1.5\n"
               "  %y: f32[3,4] = pad %x, %p pad=[1 -1 0 2]\n  %n: f32[3,4] = neg %y\n  return %n\n}\n",
               EXTENT(2, 3), 0);
    check_text("graph @t(%x: f32[2,3]) {\n  %t: f32[3,2] = transpose %x perm=[1 0]\n  %u: f32[3,2] = reshape %x\n"
               "  %c: f32[3,6] = concat %t, %u, %t axis=1\n  return %c\n}\n", EXTENT(2, 3), 0);
}

static void layouts_of_results(void **state)
{
    check_text("graph @t(%x: f32[2,3,4,5]) {\n  %y: f32[2,3,4,5]{0 2 3 1} = relu %x\n  return %y\n}\n",
               EXTENT(2, 3, 4, 5), 0);
    check_text("graph @t(%x: f32[4,6]) {\n  %y: f32[4,6]{0 1 | 16 1} = neg %x\n  %z: f32[4,6]{1 0} = abs %y\n"
               "  return %z\n}\n", EXTENT(4, 6), 0);
}

static void contractions(void **state)
{
    check_text("graph @t(%x: f32[2,4,5,3]) {\n  %w: f32[2,4,3,7] = const random=3 scale=1\n"
               "  %y: f32[2,4,5,7] = matmul %x, %w\n  %v: f32[2,4,7,5] = transpose %y perm=[0 1 3 2]\n"
               "  %z: f32[2,4,3,7] = matmul %x, %v trans_a=1 trans_b=1\n  return %y, %z\n}\n",
               EXTENT(2, 4, 5, 3), 1e-5);
    check_text("graph @t(%x: f32[2,4,9,8]) {\n  %w: f32[6,2,3,3] = const random=3 scale=1\n"
               "  %y: f32[2,6,5,4] = conv %x, %w stride=[2 2] pad=[1 1 1 1] groups=2\n"
               "  %p: f32[2,6,3,2] = max_pool %y kernel=[2 2] stride=[2 2] pad=[1 0 0 0]\n"
               "  %m: f32[2,6] = mean %y axes=[2 3]\n  return %p, %m\n}\n", EXTENT(2, 4, 9, 8), 1e-5);
}

static void one_plan_many_sizes(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(
        context, "graph @t<N=0..64 hint=4, L>(%x: f32[N,L]) {\n  %t: f32[L,N] = transpose %x perm=[1 0]\n"
                 "  %e: f32[L,N] = exp %t\n  %s: f32[N] = sum %e axes=[0]\n  %c: f32[2*L,N] = concat %e, %t axis=0\n"
                 "  return %s, %c\n}\n");
    static float in[FLOATS];
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    static const int64_t sizes[][2] = {{3, 5}, {1, 1}, {0, 7}, {64, 20}, {3, 5}, {5, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct weft_tensor input = tensor_of(in, 2, sizes[i]);
        struct weft_tensor expected[2] = {{0}}, got;
        assert_int_equal(weft_evaluate(graph, &input, 1, expected, 2), WEFT_OK);
        assert_int_equal(weft_bind_input(e, 0, &input), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(weft_output(e, k, &got), WEFT_OK);
            assert_close(&got, expected[k].data, 1e-5);
            weft_tensor_free(context, &expected[k]);
        }
    }
    int64_t most[] = {65, 2};
    const struct weft_tensor too_many = tensor_of(in, 2, most);
    assert_int_equal(weft_bind_input(e, 0, &too_many), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "N"));
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* The same plan finds 6, 0, 24 and 6 elements; every step behind the one that counts is bound to what came out. */
static void sizes_that_come_out_of_data(void **state)
{
    static const float zeros[] = {0.25f, 1, 0, 0.25f}; /* an element is zero unless a hash of its place is below this */
    for (int threads = 1; threads <= 3; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(
            context, "graph @t<N, K=data(3*N)>(%x: f32[N,3]) {\n  %i: i64[2,K] = nonzero %x extent=[K]\n"
                     "  %f: f32[2,K] = cast %i\n  %t: f32[K,2] = transpose %f perm=[1 0]\n"
                     "  %c: f32[2*K,2] = concat %t, %t axis=0\n  %e: f32[2*K,2] = exp %c\n"
                     "  %s: f32[2] = sum %e axes=[0]\n  return %i, %e, %s\n}\n");
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        for (size_t round = 0; round < sizeof zeros / sizeof zeros[0]; round++) {
            float in[24], exps[96], sums[2];
            int64_t places[48];
            const int64_t extent[] = {8, 3};
            struct weft_tensor x = tensor_of(in, 2, extent);
            for (int i = 0; i < 24; i++)
                in[i] = (float)(i * 7 % 24) < 24 * zeros[round] ? (float)i + 1 : 0;
            struct weft_tensor got, want[3] = { /* the most there can be */
                {.data = places, .dtype = WEFT_I64, .rank = 2, .extent = {2, 24}},
                {.data = exps, .dtype = WEFT_F32, .rank = 2, .extent = {48, 2}},
                {.data = sums, .dtype = WEFT_F32, .rank = 1, .extent = {2}}};
            assert_int_equal(weft_evaluate(graph, &x, 1, want, 3), WEFT_OK);
            assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
            assert_int_equal(weft_run(e), WEFT_OK);
            assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
            assert_int_equal(got.extent[1], (int64_t)(24 * zeros[round]));
            assert_int_equal(got.extent[1], want[0].extent[1]);
            assert_memory_equal(got.data, places, (size_t)(2 * got.extent[1]) * sizeof *places);
            assert_int_equal(weft_output(e, 1, &got), WEFT_OK);
            assert_int_equal(got.extent[0], want[1].extent[0]);
            assert_close(&got, exps, 1e-5);
            assert_int_equal(weft_output(e, 2, &got), WEFT_OK);
            assert_close(&got, sums, 1e-5);
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* The bound of a size is a promise: data that break it end the run, and the next run is as good as ever. */
static void more_than_the_bound(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        struct weft_context *context = open_context(2);
        struct weft_graph *graph = parse(
            context, "graph @t<K=data(2)>(%x: f32[6]) {\n  %i: i64[1,K] = nonzero %x extent=[K]\n"
                     "  %g: f32[1,K] = cast %i\n  %s: f32[1] = sum %g axes=[1]\n  return %i, %s\n}\n");
        struct weft_plan *plan = compile(graph, reference ? WEFT_COMPILE_REFERENCE : 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        static const float many[] = {1, 2, 0, 3, 4, 0}, few[] = {0, 2, 0, 0, 4, 0};
        float in[6];
        const int64_t extent[] = {6};
        struct weft_tensor x = tensor_of(in, 1, extent), got;
        memcpy(in, many, sizeof in);
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
        assert_string_equal(weft_execution_error(e), "nonzero finds 4 elements, but K is declared as at most 2");
        int64_t places[2];
        float sum;
        struct weft_tensor want[] = {{.data = places, .dtype = WEFT_I64, .rank = 2, .extent = {1, 2}},
                                     {.data = &sum, .dtype = WEFT_F32, .rank = 1, .extent = {1}}};
        assert_int_equal(weft_evaluate(graph, &x, 1, want, 2), WEFT_ERR_BINDING);
        memcpy(in, few, sizeof in);
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
        assert_int_equal(got.extent[1], 2);
        assert_int_equal(((int64_t *)got.data)[0], 1);
        assert_int_equal(((int64_t *)got.data)[1], 4);
        assert_int_equal(weft_output(e, 1, &got), WEFT_OK);
        assert_true(*(float *)got.data == 5);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* Sizes made of what data say may come out below zero, or beyond what they are cut from: that ends the run too. */
static void sizes_that_data_make_impossible(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"  %p: f32[K + 1] = const value=1\n  %s: f32[K - 1] = slice %p start=[2] end=[(K + 1)]\n  return %i, %s\n",
         "%s: slice: the extent along axis 0 is -1 for these inputs"},
        {"  %p: f32[K] = const value=1\n  %s: f32[1] = slice %p start=[0] end=[1]\n  return %i, %s\n",
         "%s: slice: the end, which is beyond the operand's extent, along axis 0 is 1 for these inputs"},
    };
    for (unsigned i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct weft_context *context = open_context(2);
        char text[400];
        snprintf(text, sizeof text,
                 "graph @t<K=data(6)>(%%x: f32[6]) {\n  %%i: i64[1,K] = nonzero %%x extent=[K]\n%s}\n",
                 cases[i / 2].body);
        struct weft_graph *graph = parse(context, text);
        struct weft_plan *plan = compile(graph, i % 2 ? WEFT_COMPILE_REFERENCE : 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        float in[6];
        const int64_t extent[] = {6};
        struct weft_tensor x = tensor_of(in, 1, extent), want[2] = {{0}};
        memset(in, 0, sizeof in);
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
        assert_string_equal(weft_execution_error(e), cases[i / 2].message);
        assert_int_equal(weft_evaluate(graph, &x, 1, want, 2), WEFT_ERR_BINDING);
        assert_non_null(strstr(weft_last_error(context), cases[i / 2].message));
        for (int k = 0; k < 6; k++)
            in[k] = 1;
        assert_int_equal(weft_run(e), WEFT_OK);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

static void a_mutable_parameter_gets_its_new_value(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @t(%x: f32[4], %m: mut f32[4]) {\n  %n: f32[4] = add %x, %m\n"
        "  %d: f32[4] = sub %n, %m\n  return %d, mut %m = %n\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    float x[4], m[4], old[4];
    const int64_t four = 4;
    const struct weft_tensor tx = tensor_of(x, 1, &four), tm = tensor_of(m, 1, &four);
    memcpy(old, m, sizeof m);
    assert_int_equal(weft_bind_input(e, 0, &tx), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 1, &tm), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    struct weft_tensor d;
    assert_int_equal(weft_output(e, 0, &d), WEFT_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(m[i] == old[i] + x[i]);
        assert_true(((float *)d.data)[i] == x[i]);
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static void views_cost_no_kernel(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(
        context, "graph @t(%x: f32[2,3,4]) {\n  %y: f32[4,3,2] = transpose %x perm=[2 1 0]\n"
                 "  %s: f32[2,3,2] = slice %y start=[1 0 0] end=[3 3 2]\n  %b: f32[5,2,3,2] = bcast %s dims=[1 2 3]\n"
                 "  %r: f32[5,2,3,2] = relu %b\n  %o: f32[30,2] = reshape %r\n  return %o\n}\n");
    struct weft_plan *plan = compile(graph, WEFT_COMPILE_NO_PASSES);
    assert_int_equal(plan->steps, 1); /* relu, straight into the result */
    assert_int_equal(plan->relayouts, 0);
    assert_int_equal(plan->storage[plan->home[plan->step[0].out->id].storage].kind, WEFT_IN_RETURN);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void a_second_run_allocates_nothing(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph =
        parse(context, "graph @t<N>(%x: f32[N,16]) {\n  %w: f32[16,16] = const random=1 scale=1\n"
                       "  %y: f32[N,16] = matmul %x, %w\n  %z: f32[N,16] = tanh %y\n  return %z\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    static float in[FLOATS];
    const int64_t large[] = {40, 16}, small[] = {3, 16};
    for (int round = 0; round < 3; round++) {
        for (int which = 0; which < 2; which++) {
            const struct weft_tensor input = tensor_of(in, 2, which ? small : large);
            assert_int_equal(weft_bind_input(e, 0, &input), WEFT_OK);
            const int before = allocations;
            assert_int_equal(weft_run(e), WEFT_OK);
            if (round > 0)
                assert_int_equal(allocations, before);
        }
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static void wrong_tensors_are_named(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @t(%left: f32[2,3], %right: f32[2,3]) {\n"
        "  %y: f32[2,3] = add %left, %right\n  return %y\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    float data[16];
    const int64_t good[] = {2, 3}, bad[] = {2, 4};
    struct weft_tensor t = tensor_of(data, 2, good);
    assert_int_equal(weft_bind_input(e, 2, &t), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_bind_input(e, 0, NULL), WEFT_ERR_BINDING);
    struct weft_tensor wrong = t;
    wrong.dtype = WEFT_I32;
    assert_int_equal(weft_bind_input(e, 0, &wrong), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "left"));
    wrong = t;
    wrong.rank = 1;
    assert_int_equal(weft_bind_input(e, 0, &wrong), WEFT_ERR_BINDING);
    wrong = t;
    wrong.data = (char *)data + 1;
    assert_int_equal(weft_bind_input(e, 0, &wrong), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "aligned"));
    assert_int_equal(weft_run(e), WEFT_ERR_BINDING); /* nothing bound */
    assert_int_equal(weft_bind_input(e, 0, &t), WEFT_OK);
    wrong = tensor_of(data, 2, bad);
    assert_int_equal(weft_bind_input(e, 1, &wrong), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "right"));
    wrong = t;
    wrong.stride[0] = 1;
    wrong.stride[1] = 2;
    assert_int_equal(weft_bind_input(e, 1, &wrong), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "stride"));
    assert_int_equal(weft_output(e, 0, &wrong), WEFT_ERR_ARGUMENT); /* nothing ran */
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void a_bound_output_is_written_in_place(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph =
        parse(context, "graph @t(%x: f32[2,3]) {\n  %y: f32[2,3]{1 0} = neg %x\n  return %y, %x\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    float in[6], out[6], same[6];
    const int64_t extent[] = {2, 3};
    const struct weft_tensor x = tensor_of(in, 2, extent);
    struct weft_tensor y = x, copy = x;
    y.data = out;
    y.stride[0] = 1;
    y.stride[1] = 2;
    copy.data = same;
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_output(e, 0, &y), WEFT_OK);
    assert_int_equal(weft_bind_output(e, 1, &copy), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            assert_true(out[i + 2 * k] == -in[3 * i + k]);
    assert_memory_equal(in, same, sizeof in);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Few results of many terms, in several types: the same bits for any number of threads, again and again. */
static void reductions_to_few_results(void **state)
{
    enum { TERMS = 300001 };
    static float x[TERMS];
    static int32_t n[TERMS];
    static bool b[TERMS];
    for (int i = 0; i < TERMS; i++) {
        x[i] = (float)((i * 37 + 11) % 41 - 20) / 8;
        n[i] = (int32_t)((uint32_t)i * 7919);
        b[i] = i == 299999;
    }
    float first_sum = 0;
    for (int threads = 1; threads <= 4; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(
            context, "graph @t<N>(%x: f32[N], %n: i32[N], %b: bool[N]) {\n  %s: f32[] = sum %x axes=[0]\n"
                     "  %m: i32[] = reduce_max %n axes=[0]\n  %t: i64[] = sum %n axes=[0] acc=i64\n"
                     "  %a: bool[] = any %b axes=[0]\n  return %s, %m, %t, %a\n}\n");
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        assert_int_equal(plan->fallbacks, 0);
        struct weft_tensor in[] = {{.data = x, .dtype = WEFT_F32}, {.data = n, .dtype = WEFT_I32},
                                   {.data = b, .dtype = WEFT_BOOL}};
        for (size_t i = 0; i < 3; i++) {
            in[i].rank = 1;
            in[i].extent[0] = TERMS;
            weft_tensor_dense(&in[i]);
            assert_int_equal(weft_bind_input(e, i, &in[i]), WEFT_OK);
        }
        for (int round = 0; round < 3; round++) {
            struct weft_tensor got[4];
            assert_int_equal(weft_run(e), WEFT_OK);
            for (size_t i = 0; i < 4; i++)
                assert_int_equal(weft_output(e, i, &got[i]), WEFT_OK);
            int64_t total = 0;
            int32_t largest = n[0];
            for (int i = 0; i < TERMS; i++) {
                total += n[i];
                largest = n[i] > largest ? n[i] : largest;
            }
            const float sum = *(const float *)got[0].data;
            first_sum = threads == 1 && round == 0 ? sum : first_sum;
            assert_memory_equal(&sum, &first_sum, sizeof sum);
            assert_int_equal(*(const int32_t *)got[1].data, largest);
            assert_true(*(const int64_t *)got[2].data == total);
            assert_true(*(const bool *)got[3].data);
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_and_copies),
        cmocka_unit_test(layouts_of_results),
        cmocka_unit_test(contractions),
        cmocka_unit_test(one_plan_many_sizes),
        cmocka_unit_test(sizes_that_come_out_of_data),
        cmocka_unit_test(more_than_the_bound),
        cmocka_unit_test(sizes_that_data_make_impossible),
        cmocka_unit_test(reductions_to_few_results),
        cmocka_unit_test(a_mutable_parameter_gets_its_new_value),
        cmocka_unit_test(views_cost_no_kernel),
        cmocka_unit_test(a_second_run_allocates_nothing),
        cmocka_unit_test(wrong_tensors_are_named),
        cmocka_unit_test(a_bound_output_is_written_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
