/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose second operand is repeated along leading axes: rows of several products become rows of one where they
 * are equally far apart, which differs from size to size. */
#include "tests/unit/plan_support.h"

enum { MOST = 1 << 15 };

/* The results at one size, one behind the other, and how many there are. */
static int64_t run(const struct weft_plan *plan, int64_t rows, float *ret)
{
    static float in[3][MOST];
    struct weft_execution *execution;
    int64_t count = 0;
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    for (size_t i = 0; i < weft_plan_inputs(plan); i++) {
        struct weft_port port = {.size = sizeof port};
        assert_int_equal(weft_plan_input(plan, i, &port), WEFT_OK);
        for (int axis = 0; axis < port.rank; axis++)
            port.extent[axis] = port.extent[axis] < 0 ? rows : port.extent[axis];
        const struct weft_tensor tensor = tensor_of(in[i], port.rank, port.extent);
        assert_int_equal(weft_bind_input(execution, i, &tensor), WEFT_OK);
    }
    if (weft_run(execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(execution));
    for (size_t i = 0; i < weft_plan_outputs(plan); i++) {
        struct weft_tensor out;
        assert_int_equal(weft_output(execution, i, &out), WEFT_OK);
        int64_t index[WEFT_MAX_RANK] = {0};
        for (int64_t n = weft_tensor_count(&out); n > 0; n--) {
            int64_t at = 0;
            for (int axis = 0; axis < out.rank; axis++)
                at += index[axis] * out.stride[axis];
            ret[count++] = ((const float *)out.data)[at];
            for (int axis = out.rank - 1; axis >= 0 && ++index[axis] == out.extent[axis]; axis--)
                index[axis] = 0;
        }
    }
    weft_execution_destroy(execution);
    assert_true(count <= MOST);
    return count;
}

/* At sizes other than the hint's as well; inputs are small eighths, so that sums are exact in every order. */
static void expect_right(const char *text)
{
    static const int64_t rows[] = {1, 5, 2, 16, 0};
    static float got[MOST], wanted[MOST];
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0), *plain = compile(graph, WEFT_COMPILE_NO_PASSES),
                     *reference = compile(graph, WEFT_COMPILE_REFERENCE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t n = run(reference, rows[i], wanted);
        assert_int_equal(run(plan, rows[i], got), n);
        assert_memory_equal(got, wanted, (size_t)n * sizeof *got);
        assert_int_equal(run(plain, rows[i], got), n);
        assert_memory_equal(got, wanted, (size_t)n * sizeof *got);
    }
    weft_plan_destroy(plan);
    weft_plan_destroy(plain);
    weft_plan_destroy(reference);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Three groups of four heads: scores, and what they weigh, with heads inside of positions in the result. */
static void heads_of_a_group_are_rows(void **state)
{
    expect_right("graph @g<M=0..64 hint=1>(%q: f32[2,12,M,8], %k: f32[2,3,9,8]) {\n"
                 "  %b: f32[2,3,4,9,8] = bcast %k dims=[0 1 3 4]\n"
                 "  %r: f32[2,12,9,8] = reshape %b\n"
                 "  %s: f32[2,12,M,9] = matmul %q, %r trans_b=1\n"
                 "  %o: f32[2,12,M,8] = matmul %s, %r\n"
                 "  %t: f32[2,M,12,8] = transpose %o perm=[0 2 1 3]\n"
                 "  return %s, %t\n}\n");
    struct scene s = open_scene("graph @g(%q: f32[1,12,1,8], %k: f32[1,3,9,8]) {\n"
                                "  %b: f32[1,3,4,9,8] = bcast %k dims=[0 1 3 4]\n"
                                "  %r: f32[1,12,9,8] = reshape %b\n"
                                "  %s: f32[1,12,1,9] = matmul %q, %r trans_b=1\n"
                                "  return %s\n}\n",
                                0);
    assert_int_equal(s.plan->steps, 1); /* nothing is copied */
    close_scene(&s);
}

/* A size at which rows of products are side by side does not decide for others where they are not. */
static void rows_apart_stay_products(void **state)
{
    expect_right("graph @g<M=0..64 hint=1>(%x: f32[M,4,8], %w: f32[8,6]) {\n"
                 "  %t: f32[4,M,8] = transpose %x perm=[1 0 2]\n"
                 "  %b: f32[4,8,6] = bcast %w dims=[1 2]\n"
                 "  %y: f32[4,M,6] = matmul %t, %b\n"
                 "  return %y\n}\n");
}

/* Weights that are constant: read as they are, or packed where a size makes one product of all. */
static void weights_are_repeated_too(void **state)
{
    expect_right("graph @g<M=0..64 hint=1>(%x: f32[M,4,16]) {\n"
                 "  %w: f32[16,33] = const value=0.5\n"
                 "  %i: i32[16,33] = iota axis=1\n"
                 "  %f: f32[16,33] = cast %i\n"
                 "  %c: f32[16,33] = mul %w, %f\n"
                 "  %b: f32[M,16,33] = bcast %c dims=[1 2]\n"
                 "  %y: f32[M,4,33] = matmul %x, %b\n"
                 "  %d: f32[4,16,33] = bcast %c dims=[1 2]\n"
                 "  %t: f32[4,M,16] = transpose %x perm=[1 0 2]\n"
                 "  %z: f32[4,M,33] = matmul %t, %d\n"
                 "  return %y, %z\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_a_group_are_rows),
        cmocka_unit_test(rows_apart_stay_products),
        cmocka_unit_test(weights_are_repeated_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
