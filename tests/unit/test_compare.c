/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare.c: comparing outputs: what counts as different, and a bound that grows with the sums of a graph and with
 * its types, and stays far below what a wrong kernel does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/tools.h"

#include <math.h>
#include <string.h>

static struct weft_tensor row(float *x, int64_t count)
{
    return (struct weft_tensor){.data = x, .dtype = WEFT_F32, .rank = 1, .extent = {count}, .stride = {1}};
}

static void differences_are_relative_to_the_largest_value(void **state)
{
    float got[3] = {100, 1, 0.5f}, want[3] = {100, 1.5f, 0.5f};
    const struct weft_tensor a = row(got, 3), b = row(want, 3);
    struct weft_comparison c;
    char message[256];
    assert_true(weft_tool_compare(&a, &b, 0.01, &c, message));
    assert_true(c.max_abs == 0.5 && c.max_rel == 0.005 && c.same);
    assert_true(weft_tool_compare(&a, &b, 0.001, &c, message));
    assert_false(c.same);
    assert_int_equal(c.elements, 3);
}

static void nan_and_infinity_must_agree(void **state)
{
    float got[4] = {NAN, INFINITY, 1, -INFINITY}, want[4] = {NAN, INFINITY, 1, -INFINITY};
    const struct weft_tensor a = row(got, 4), b = row(want, 4);
    struct weft_comparison c;
    char message[256];
    assert_true(weft_tool_compare(&a, &b, 0, &c, message));
    assert_true(c.same);
    static const float wrong[4] = {1, -INFINITY, NAN, 3};
    for (int i = 0; i < 4; i++) {
        const float kept = got[i];
        got[i] = wrong[i];
        assert_true(weft_tool_compare(&a, &b, 1e9, &c, message));
        assert_false(c.same);
        assert_int_equal(c.nans, 1);
        got[i] = kept;
    }
}

static void all_zero_expects_zero(void **state)
{
    float got[2] = {0, 1e-30f}, want[2] = {0, 0};
    const struct weft_tensor a = row(got, 2), b = row(want, 2);
    struct weft_comparison c;
    char message[256];
    assert_true(weft_tool_compare(&a, &b, 0.1, &c, message));
    assert_false(c.same);
}

static void strides_are_followed(void **state)
{
    float across[6] = {0, 1, 2, 3, 4, 5}, down[6] = {0, 3, 1, 4, 2, 5};
    const struct weft_tensor a = {across, WEFT_F32, 2, {2, 3}, {3, 1}}, b = {down, WEFT_F32, 2, {2, 3}, {1, 2}};
    struct weft_comparison c;
    char message[256];
    assert_true(weft_tool_compare(&a, &b, 0, &c, message));
    assert_true(c.same && c.max_abs == 0);
}

static void types_and_shapes_must_be_equal(void **state)
{
    float x[6] = {0};
    const struct weft_tensor a = {x, WEFT_F32, 2, {2, 3}, {3, 1}}, b = {x, WEFT_F32, 2, {3, 2}, {2, 1}},
                             d = {x, WEFT_I32, 2, {2, 3}, {3, 1}};
    struct weft_comparison c;
    char message[256];
    assert_false(weft_tool_compare(&a, &b, 1, &c, message));
    assert_string_equal(message, "f32[2,3], expected f32[3,2]");
    assert_false(weft_tool_compare(&a, &d, 1, &c, message));
    assert_string_equal(message, "f32[2,3], expected i32[2,3]");
}

static void large_integers_are_compared_exactly(void **state)
{
    int64_t got[1] = {INT64_MAX}, want[1] = {INT64_MAX - 1};
    const struct weft_tensor a = {got, WEFT_I64, 1, {1}, {1}}, b = {want, WEFT_I64, 1, {1}, {1}};
    struct weft_comparison c;
    char message[256];
    assert_true(weft_tool_compare(&a, &b, 0, &c, message));
    assert_false(c.same);
    assert_true(weft_tool_compare(&a, &a, 0, &c, message));
    assert_true(c.same);
}

static double bound_at(const char *lines, const int64_t *symbols, size_t output)
{
    struct weft_context *context;
    struct weft_graph *graph;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_parse(context, lines, strlen(lines), "test", &graph) < 0)
        fail_msg("%s", weft_last_error(context));
    const double bound = weft_tool_bound(graph, symbols, output);
    weft_graph_destroy(graph);
    weft_close(context);
    return bound;
}

static double bound_of(const char *lines, size_t output) { return bound_at(lines, NULL, output); }

static void the_bound_follows_sums_and_types(void **state)
{
    const double narrow = bound_of("graph @t(%x: f32[4,16], %w: f32[16,4]) {\n  %y: f32[4,4] = matmul %x, %w\n"
                                   "  return %y\n}\n", 0);
    const double wide = bound_of("graph @t(%x: f32[4,1600], %w: f32[1600,4]) {\n  %y: f32[4,4] = matmul %x, %w\n"
                                 "  return %y\n}\n", 0);
    const double half = bound_of("graph @t(%x: f16[4,16], %w: f16[16,4]) {\n  %y: f16[4,4] = matmul %x, %w\n"
                                 "  return %y\n}\n", 0);
    const double twice = bound_of("graph @t(%x: f32[16,16], %w: f32[16,16]) {\n  %y: f32[16,16] = matmul %x, %w\n"
                                  "  %z: f32[16,16] = matmul %y, %w\n  return %z\n}\n", 0);
    assert_true(narrow > 0 && narrow < 1e-5);
    assert_true(wide > 5 * narrow && wide < 11 * narrow); /* by the root of the length */
    assert_true(half > 1000 * narrow && half < 0.1);
    assert_true(twice > 1.5 * narrow && twice < 3 * narrow);
}

/* Of a symbol it takes the size of the run, not the hint. */
static void the_bound_follows_sizes(void **state)
{
    static const char lines[] = "graph @t<K=1..9000 hint=1>(%x: f32[4,K], %w: f32[K,4]) {\n"
                                "  %y: f32[4,4] = matmul %x, %w\n  return %y\n}\n";
    const double hinted = bound_of(lines, 0), large = bound_at(lines, &(int64_t){6400}, 0);
    assert_true(hinted == 3 * 0x1p-23 + 0x1p-23); /* two roundings and the root of one term, and the rounding of y */
    assert_true(large == 82 * 0x1p-23 + 0x1p-23);
    assert_true(bound_at(lines, &(int64_t){1}, 0) == hinted);
}

static void what_is_exact_must_be_equal(void **state)
{
    const char *lines = "graph @t(%x: i64[4], %f: f32[4]) {\n  %y: i64[4] = add %x, %x\n  %z: f32[4] = relu %f\n"
                        "  return %y, %z\n}\n";
    assert_true(bound_of(lines, 0) == 0);
    assert_true(bound_of(lines, 1) <= 0x1p-23);
    assert_true(bound_of(lines, 2) == 0); /* there is no such output */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_relative_to_the_largest_value),
        cmocka_unit_test(nan_and_infinity_must_agree),
        cmocka_unit_test(all_zero_expects_zero),
        cmocka_unit_test(strides_are_followed),
        cmocka_unit_test(types_and_shapes_must_be_equal),
        cmocka_unit_test(large_integers_are_compared_exactly),
        cmocka_unit_test(the_bound_follows_sums_and_types),
        cmocka_unit_test(the_bound_follows_sizes),
        cmocka_unit_test(what_is_exact_must_be_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
