/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_data.c: sizes that come out of data, where memory and checks depend on them.
 *
 * Memory is reserved before they are known. Some sizes grow as others shrink: of 600 elements those that are kept, and
 * as many of another array as are not. So each graph here runs with everything kept, with nothing and with a part, and
 * its results are the evaluator's; the address sanitizer sees what is written beyond its room. */
#include "tests/unit/plan_support.h"

enum { ELEMENTS = 600, RESULTS = 2 };

static float numbers[ELEMENTS], others[ELEMENTS];
static uint8_t kept[ELEMENTS];

/* Keeps every `step`th element; 0: none. */
static void make_inputs(struct weft_tensor *in, int step)
{
    const int64_t extent[] = {ELEMENTS};
    in[0] = tensor_of(numbers, 1, extent);
    in[1] = (struct weft_tensor){.data = kept, .dtype = WEFT_BOOL, .rank = 1, .extent = {ELEMENTS}, .stride = {1}};
    in[2] = tensor_of(others, 1, extent);
    for (int i = 0; i < ELEMENTS; i++)
        kept[i] = step && i % step == 0;
}

static int run(struct weft_execution *e, const struct weft_tensor *in)
{
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(weft_bind_input(e, i, &in[i]), WEFT_OK);
    return weft_run(e);
}

static void expect_same(const struct weft_tensor *got, const struct weft_tensor *want)
{
    assert_int_equal(got->rank, want->rank);
    int64_t count = 1;
    for (int axis = 0; axis < got->rank; axis++) {
        assert_int_equal(got->extent[axis], want->extent[axis]);
        count *= got->extent[axis];
    }
    for (int64_t i = 0; i < count; i++)
        assert_true(((const float *)got->data)[i] == ((const float *)want->data)[i]);
}

static void expect_results(const char *text)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, text);
    for (int reference = 0; reference < 2; reference++) {
        struct weft_plan *plan = compile(graph, reference ? WEFT_COMPILE_REFERENCE : 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        const int steps[] = {1, 0, 7, 1};
        for (int i = 0; i < 4; i++) {
            struct weft_tensor in[3], got, want[RESULTS] = {{0}};
            make_inputs(in, steps[i]);
            if (run(e, in) != WEFT_OK)
                fail_msg("%s", weft_execution_error(e));
            assert_int_equal(weft_evaluate(graph, in, 3, want, RESULTS), WEFT_OK);
            for (size_t k = 0; k < RESULTS; k++) {
                assert_int_equal(weft_output(e, k, &got), WEFT_OK);
                expect_same(&got, &want[k]);
                weft_tensor_free(context, &want[k]);
            }
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

#define HEAD "(%x: f32[600], %c: bool[600], %z: f32[600]) {\n"
#define KEPT "  %p: f32[K] = compress %x, %c extent=[K]\n"

static void what_grows_as_a_size_shrinks(void **state)
{
    (void)state;
    expect_results("graph @t<K=data(600)>" HEAD KEPT
                   "  %r: f32[600 - K] = slice %z start=[K] end=[600]\n  %q: f32[600 - K] = neg %r\n"
                   "  %u: f32[600 - K] = abs %q\n  %t: f32[600] = concat %u, %p axis=0\n  return %t, %u\n}\n");
}

static void a_bound_that_grows_as_a_size_shrinks(void **state)
{
    (void)state;
    expect_results("graph @t<K=data(600), L=data(600 - K)>" HEAD KEPT
                   "  %r: f32[600 - K] = slice %z start=[K] end=[600]\n  %n: f32[600 - K] = neg %r\n"
                   "  %l: i64[1,L] = nonzero %n extent=[L]\n  %f: f32[1,L] = cast %l\n  return %f, %p\n}\n");
}

static void bodies_whose_values_grow(void **state)
{
    (void)state;
    expect_results("graph @t<K=data(600)>" HEAD
                   "  graph @then(%z: f32[600], %p: f32[K]) {\n    %r: f32[600 - K] = slice %z start=[K] end=[600]\n"
                   "    %n: f32[600 - K] = neg %r\n    %u: f32[600 - K] = abs %n\n    return %u\n  }\n"
                   "  graph @trip(%i: i64[], %a: f32[600 - K], %b: f32[600 - K]) {\n"
                   "    %s: f32[600 - K] = max %a, %b\n    return %b, %s\n  }\n" KEPT
                   "  %yes: bool[] = const value=1\n  %three: i64[] = const value=3\n"
                   "  %r: f32[600 - K] = slice %z start=[0] end=[(600 - K)]\n"
                   "  %y: f32[600 - K] = if %yes, %z, %p then=@then else=@then\n"
                   "  %m: f32[600 - K], %o: f32[600 - K] = loop %three, %y, %r body=@trip\n  return %m, %o\n}\n");
}

/* A slice may lie within its operand at the bound of a size and not at the size: then it is not read. */
static void a_slice_that_does_not_fit(void **state)
{
    (void)state;
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, "graph @t<K=data(600)>" HEAD KEPT
                                              "  %h: f32[4] = slice %z start=[0] end=[4]\n"
                                              "  %s: f32[600 - K] = slice %h start=[0] end=[(600 - K)]\n"
                                              "  %y: f32[600 - K] = neg %s\n  return %y, %p\n}\n");
    static const char message[] = "slice: the end, which is beyond the operand's extent, along axis 0 is 600";
    struct weft_tensor in[3], want[RESULTS] = {{0}};
    for (int reference = 0; reference < 2; reference++) {
        struct weft_plan *plan = compile(graph, reference ? WEFT_COMPILE_REFERENCE : 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        make_inputs(in, 0);
        assert_int_equal(run(e, in), WEFT_ERR_BINDING);
        if (!strstr(weft_execution_error(e), message))
            fail_msg("%s", weft_execution_error(e));
        make_inputs(in, 1);
        assert_int_equal(run(e, in), WEFT_OK);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
    }
    make_inputs(in, 0);
    assert_int_equal(weft_evaluate(graph, in, 3, want, RESULTS), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_last_error(context), message));
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- an executor that promises nothing ---------------------------------------------------------------------------- */

static int count_workers(void *user) { return 2; }

static void run_in_turn(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    for (int i = 0; i < n; i++)
        fn(arg, i);
}

/* Each kernel is a call of the executor; behind a failure there is none. */
static void more_than_the_bound_in_turn(void **state)
{
    (void)state;
    const struct weft_executor executor = {.size = sizeof executor, .workers = count_workers, .run = run_in_turn};
    const struct weft_context_options options = {.size = sizeof options, .executor = &executor};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    struct weft_graph *graph = parse(context, "graph @t<K=data(2)>" HEAD KEPT
                                              "  %n: f32[K] = neg %p\n  return %n\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor in[3];
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    make_inputs(in, 7);
    assert_int_equal(run(e, in), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(e), "compress finds 86 elements, but K is declared as at most 2");
    make_inputs(in, 599);
    assert_int_equal(run(e, in), WEFT_OK);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_grows_as_a_size_shrinks),
        cmocka_unit_test(a_bound_that_grows_as_a_size_shrinks),
        cmocka_unit_test(bodies_whose_values_grow),
        cmocka_unit_test(a_slice_that_does_not_fit),
        cmocka_unit_test(more_than_the_bound_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
