/* SPDX-License-Identifier: Apache-2.0 */
/* test_reshape.c: reshapes that are no views, from any layout to any other, run in kernels and give what the evaluator
 * gives: the same bytes, with passes and without, at every size that one plan runs. */
#include "tests/unit/plan_support.h"

enum { BYTES = 1 << 16 };

/* The parameter's tensor at these sizes; elements tell their places. */
static struct weft_tensor fill(const struct weft_plan *plan, const int64_t *symbols, uint8_t data[BYTES])
{
    struct weft_tensor x = weft_home_tensor(plan, plan->graph->param[0], symbols);
    const int64_t size = weft_dtype_bits(x.dtype) / 8;
    assert_true(weft_tensor_span(&x) * size <= BYTES);
    for (int64_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i / size >> 8 * (i % size));
    x.data = data;
    return x;
}

static void assert_equal(const struct weft_tensor *got, const struct weft_tensor *want)
{
    int64_t elements = 1, index[WEFT_MAX_RANK] = {0};
    const size_t size = weft_dtype_bits(got->dtype) / 8;
    for (int axis = 0; axis < want->rank; axis++)
        elements *= want->extent[axis];
    for (int64_t i = 0; i < elements; i++) {
        int64_t a = 0, b = 0;
        for (int axis = 0; axis < want->rank; axis++) {
            a += index[axis] * got->stride[axis];
            b += index[axis] * want->stride[axis];
        }
        assert_memory_equal((const char *)got->data + a * (int64_t)size, (const char *)want->data + b * (int64_t)size,
                            size);
        for (int axis = want->rank - 1; axis >= 0 && ++index[axis] == want->extent[axis]; axis--)
            index[axis] = 0;
    }
}

static void check(const char *text, uint32_t flags, int64_t n)
{
    static uint8_t data[BYTES];
    struct scene s = open_scene(text, flags);
    struct weft_tensor want = {0}, got;
    struct weft_plan *plan = s.plan;
    const struct weft_tensor x = fill(plan, &n, data);
    if (plan->fallbacks)
        fail_msg("the evaluator runs a step of %s", text);
    assert_int_equal(weft_evaluate(s.graph, &x, 1, &want, 1), WEFT_OK);
    assert_int_equal(weft_bind_input(s.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
    assert_equal(&got, &want);
    weft_tensor_free(s.context, &want);
    close_scene(&s);
}

static void check_all(const char *text, int64_t n)
{
    check(text, 0, n);
    check(text, WEFT_COMPILE_NO_PASSES, n);
}

static void extents_that_divide(void **state)
{
    check_all("graph @t(%x: f32[2,16,12,12]{0 2 3 1}) {\n"
              "  %y: f32[32,2,6,12]{0 2 3 1} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: i64[6,4]{1 0}) {\n  %y: i64[2,12]{1 0} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: f16[4,9,10]{1 2 0}) {\n"
              "  %y: f16[2,2,3,3,5,2]{5 3 1 4 2 0} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: u8[3,4,5]) {\n  %y: u8[12,5]{0 1 | 64 3} = reshape %x\n  return %y\n}\n", 0);
}

static void extents_that_do_not(void **state)
{
    check_all("graph @t(%x: f32[6,4]{1 0}) {\n  %y: f32[8,3]{1 0} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: i16[10,6,7]{2 0 1}) {\n  %y: i16[7,4,15]{1 2 0} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: f64[9,10]{1 0}) {\n  %y: f64[15,6]{1 0 | 31 2} = reshape %x\n  return %y\n}\n", 0);
}

/* More digits than a copy has axes: 13 that all change places. */
static void many_axes(void **state)
{
    check_all("graph @t(%x: i32[2,2,2,2,2,2,2,6]{7 6 5 4 3 2 1 0}) {\n"
              "  %y: i32[3,4,4,4,4]{4 3 2 1 0} = reshape %x\n  return %y\n}\n", 0);
    check_all("graph @t(%x: i32[4,4,4,4,4,4]{5 4 3 2 1 0}) {\n"
              "  %y: i32[2,4,4,4,4,4,2]{6 5 4 3 2 1 0} = reshape %x\n  return %y\n}\n", 0);
}

/* What merges and splits follows from sizes. */
static void sizes_that_are_open(void **state)
{
    static const char text[] = "graph @t<N=1..100>(%x: f32[N,6,4]{2 1 0}) {\n"
                               "  %y: f32[4,N,6]{2 0 1} = reshape %x\n  return %y\n}\n";
    for (int64_t n = 0; n < 20; n++)
        if (n > 0)
            check_all(text, n);
}

/* A repeat that is merged: the elements of grouped queries' keys. */
static void repeated_axes(void **state)
{
    check_all("graph @t(%x: f32[2,3,4,5]) {\n"
              "  %t: f32[2,4,3,5] = transpose %x perm=[0 2 1 3]\n"
              "  %e: f32[2,4,7,3,5] = bcast %t dims=[0 1 3 4]\n"
              "  %y: f32[2,28,3,5]{0 2 1 3} = reshape %e\n  return %y\n}\n", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_that_divide), cmocka_unit_test(extents_that_do_not),
        cmocka_unit_test(many_axes),           cmocka_unit_test(sizes_that_are_open),
        cmocka_unit_test(repeated_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
