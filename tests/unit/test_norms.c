/* SPDX-License-Identifier: Apache-2.0 */
/* test_norms.c: norms by kernels beside the evaluator, and the same bits whatever the number of threads. */
#include "tests/unit/plan_support.h"

/* A norm of groups of channels: sums of 8192 rows of 16 columns, in pieces that do not depend on threads. */
static void norms_of_pixels(void **state)
{
    enum { ELEMENTS = 128 * 64 * 16 };
    static float x[ELEMENTS], first[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)((i * 37 + 11) % 4093 - 1900) / 512;
    for (int threads = 1; threads <= 4; threads++) {
        struct weft_context *context = open_context(threads);
        struct weft_graph *graph = parse(
            context, "graph @t(%x: f32[128,64,16]) {\n  %r: f32[128,64,4,4] = reshape %x\n"
                     "  %m: f32[4,4] = mean %r axes=[0 1]\n  %g: f32[4] = mean %m axes=[1]\n"
                     "  %b: f32[128,64,4,4] = bcast %g dims=[2]\n  %d: f32[128,64,4,4] = sub %r, %b\n"
                     "  %q: f32[128,64,4,4] = mul %d, %d\n  %v: f32[4,4] = mean %q axes=[0 1]\n"
                     "  %s: f32[4] = mean %v axes=[1]\n  %c: f32[128,64,4,4] = bcast %s dims=[2]\n"
                     "  %n: f32[128,64,4,4] = mul %d, %c\n  %y: f32[128,64,16] = reshape %n\n  return %y\n}\n");
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        struct weft_tensor in = {.data = x, .dtype = WEFT_F32, .rank = 3, .extent = {128, 64, 16}}, want = {0}, got;
        weft_tensor_dense(&in);
        assert_int_equal(weft_evaluate(graph, &in, 1, &want, 1), WEFT_OK);
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        assert_int_equal(weft_bind_input(e, 0, &in), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
        for (int i = 0; i < ELEMENTS; i++)
            if (!(fabs((double)((const float *)got.data)[i] - (double)((const float *)want.data)[i]) <= 1e-5))
                fail_msg("element %d is %g, not %g", i, (double)((const float *)got.data)[i],
                         (double)((const float *)want.data)[i]);
        if (threads == 1)
            memcpy(first, got.data, sizeof first);
        assert_memory_equal(got.data, first, sizeof first);
        weft_tensor_free(context, &want);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(norms_of_pixels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
