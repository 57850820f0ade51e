/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are views of inputs or of other results: shared with the caller where asked for, else copied. */
#include "tests/unit/plan_support.h"

#include <math.h>

/* A result that is a view of an input is where the input is, in the layout that this has; bound, it is a copy. So is a
 * second result that is a view of the first; but not a view of a parameter that gets a new value. */
static void results_are_shared_if_asked(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(
        context, "graph @g(%x: f32[4,6], %m: mut f32[4]) {\n"
                 "  %t: f32[6,4]{?} = transpose %x perm=[1 0]\n"
                 "  %s: f32[2,6]{?} = slice %x start=[1 0] end=[3 6]\n"
                 "  %e: f32[4,6] = exp %x\n"
                 "  %r: f32[24]{?} = reshape %e\n"
                 "  %n: f32[4] = neg %m\n"
                 "  %k: f32[2,2]{?} = reshape %m\n"
                 "  return %t, %s, %e, %r, mut %m = %n, %k\n}\n");
    struct weft_plan *plan = compile(graph, WEFT_COMPILE_SHARE_RESULTS);
    struct weft_execution *execution;
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    float x[24], m[4], own[24];
    const struct weft_tensor in = tensor_of(x, 2, (int64_t[]){4, 6}), mut = tensor_of(m, 1, (int64_t[]){4});
    const float first = m[0];
    struct weft_tensor t, s, e, r, k;
    assert_int_equal(weft_bind_input(execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_bind_input(execution, 1, &mut), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_int_equal(weft_output(execution, 0, &t), WEFT_OK);
    assert_int_equal(weft_output(execution, 1, &s), WEFT_OK);
    assert_int_equal(weft_output(execution, 2, &e), WEFT_OK);
    assert_int_equal(weft_output(execution, 3, &r), WEFT_OK);
    assert_int_equal(weft_output(execution, 5, &k), WEFT_OK);
    assert_ptr_equal(t.data, x);
    assert_int_equal(t.stride[0], 1);
    assert_int_equal(t.stride[1], 6);
    assert_ptr_equal(s.data, x + 6);
    assert_ptr_equal(r.data, e.data);
    assert_true(m[0] == -first && ((float *)k.data)[0] == first);

    const struct weft_tensor bound = tensor_of(own, 2, (int64_t[]){6, 4});
    struct weft_tensor packed = bound;
    packed.stride[0] = 1; /* it lies like what it is a view of */
    packed.stride[1] = 6;
    assert_int_equal(weft_bind_output(execution, 0, &packed), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_int_equal(weft_output(execution, 0, &t), WEFT_OK);
    assert_ptr_equal(t.data, own);
    assert_memory_equal(own, x, sizeof x);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);

    plan = compile(graph, 0); /* not asked for */
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    assert_int_equal(weft_bind_input(execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_bind_input(execution, 1, &mut), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_int_equal(weft_output(execution, 0, &t), WEFT_OK);
    assert_ptr_not_equal(t.data, x);
    assert_memory_equal(t.data, x, sizeof x);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* A view of a new value is in the parameter where that is computed; a view of the old value is a copy. */
static void views_of_new_values_are_shared(void **state)
{
    struct scene scene = open_scene("graph @g(%m: mut f32[4,6], %o: mut f32[4]) {\n"
                                    "  %n: f32[4,6] = neg %m\n"
                                    "  %s: f32[2,6] = slice %n start=[1 0] end=[3 6]\n"
                                    "  %p: f32[4] = neg %o\n"
                                    "  %t: f32[2] = slice %o start=[0] end=[2]\n"
                                    "  return mut %m = %n, %s, mut %o = %p, %t\n}\n",
                                    WEFT_COMPILE_SHARE_RESULTS);
    float m[24], o[4];
    const struct weft_tensor in = tensor_of(m, 2, (int64_t[]){4, 6}), old = tensor_of(o, 1, (int64_t[]){4});
    const float was = m[6], first = o[0];
    struct weft_tensor s, t;
    assert_int_equal(weft_bind_input(scene.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_bind_input(scene.execution, 1, &old), WEFT_OK);
    assert_int_equal(weft_run(scene.execution), WEFT_OK);
    assert_int_equal(weft_output(scene.execution, 1, &s), WEFT_OK);
    assert_int_equal(weft_output(scene.execution, 3, &t), WEFT_OK);
    assert_ptr_equal(s.data, m + 6);
    assert_true(m[6] == -was);
    assert_ptr_not_equal(t.data, o);
    assert_true(o[0] == -first && *(float *)t.data == first);
    close_scene(&scene);
}

/* A view begins where its elements are; the caller wants them at an address that he stated. */
static void a_promised_alignment_is_kept(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph =
        parse(context, "graph @g(%x: f32[4,6]) {\n"
                       "  %s: f32[2,5]{0 1 align=64} = slice %x start=[1 1] end=[3 6]\n"
                       "  return %s\n}\n");
    const unsigned flags[] = {WEFT_COMPILE_SHARE_RESULTS, WEFT_COMPILE_SHARE_RESULTS | WEFT_COMPILE_NO_PASSES};
    float x[24];
    const struct weft_tensor in = tensor_of(x, 2, (int64_t[]){4, 6});
    struct weft_tensor s;
    for (int i = 0; i < 2; i++) {
        struct weft_plan *plan = compile(graph, flags[i]);
        struct weft_execution *execution;
        assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
        assert_int_equal(weft_bind_input(execution, 0, &in), WEFT_OK);
        assert_int_equal(weft_run(execution), WEFT_OK);
        assert_int_equal(weft_output(execution, 0, &s), WEFT_OK);
        assert_int_equal((uintptr_t)s.data % 64, 0);
        assert_int_equal(s.stride[0], 5);
        assert_memory_equal(s.data, x + 7, 5 * sizeof *x);
        weft_execution_destroy(execution);
        weft_plan_destroy(plan);
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Weft's own memory begins at a multiple of 64; a caller may be promised more, a page for instance. */
static void so_is_one_beyond_a_line(void **state)
{
    struct scene scene = open_scene("graph @g(%x: f32[100]) {\n"
                                    "  %a: f32[100]{0 align=4096} = relu %x\n"
                                    "  %b: f32[100]{0 align=65536} = neg %x\n"
                                    "  %c: f32[100] = exp %x\n"
                                    "  return %a, %b, %c\n}\n",
                                    0);
    float x[100];
    const struct weft_tensor in = tensor_of(x, 1, (int64_t[]){100});
    assert_int_equal(weft_bind_input(scene.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_run(scene.execution), WEFT_OK);
    for (size_t i = 0; i < 2; i++) {
        struct weft_tensor out;
        assert_int_equal(weft_output(scene.execution, i, &out), WEFT_OK);
        assert_int_equal((uintptr_t)out.data % (i ? 65536 : 4096), 0);
        assert_true(((const float *)out.data)[99] == (i ? -x[99] : x[99]));
    }
    close_scene(&scene);
}

/* A cut of what is computed on the way stays as it is to the end of the run, whatever is computed after it; bound, it
 * is a copy. */
static void cuts_of_intermediates_are_kept(void **state)
{
    struct scene scene = open_scene("graph @g(%x: f32[64,64]) {\n"
                                    "  %e: f32[64,64] = exp %x\n"
                                    "  %s: f32[32,64] = slice %e start=[0 0] end=[64 64] step=[2 1]\n"
                                    "  %a: f32[64,64] = cumsum %e axis=0\n"
                                    "  %b: f32[64,64] = cumsum %a axis=1\n"
                                    "  %c: f32[64,64] = cumsum %b axis=0\n"
                                    "  %d: f32[64,64] = cumsum %c axis=1\n"
                                    "  return %s, %d\n}\n",
                                    WEFT_COMPILE_SHARE_RESULTS);
    static float x[64 * 64], own[32 * 64];
    const struct weft_tensor in = tensor_of(x, 2, (int64_t[]){64, 64}), bound = tensor_of(own, 2, (int64_t[]){32, 64});
    struct weft_tensor s;
    assert_int_equal(weft_bind_input(scene.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_run(scene.execution), WEFT_OK);
    assert_int_equal(weft_output(scene.execution, 0, &s), WEFT_OK);
    assert_int_equal(s.stride[0], 128);
    assert_int_equal(s.stride[1], 1);
    assert_int_equal(weft_bind_output(scene.execution, 0, &bound), WEFT_OK);
    assert_int_equal(weft_run(scene.execution), WEFT_OK);
    for (int i = 0; i < 32 * 64; i++) {
        assert_true(fabsf(own[i] - expf(x[i / 64 * 128 + i % 64])) <= 1e-5f * own[i]);
        assert_true(((float *)s.data)[i / 64 * 128 + i % 64] == own[i]);
    }
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_shared_if_asked),
                                       cmocka_unit_test(cuts_of_intermediates_are_kept),
                                       cmocka_unit_test(views_of_new_values_are_shared),
                                       cmocka_unit_test(a_promised_alignment_is_kept),
                                       cmocka_unit_test(so_is_one_beyond_a_line)};
    return cmocka_run_group_tests_name("run_share", tests, NULL, NULL);
}
