/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_plan.c: plans for a target whose kernels are the caller's, run by weft beside its own. Answers are compared
 * with the evaluator's. */
#include "tests/unit/own_support.h"

/* --- run by weft -------------------------------------------------------------------------------------------------- */

static void run_nets(const char *text, int64_t channels, int threads)
{
    static float data[1 << 15];
    struct own_kernel fast = {.layout = blocked, .parts = 3}, plain = {.layout = rows, .parts = 2, .us = 1000};
    const struct weft_kernel kernels[] = {own_kernel_of("own.blocked", "conv", &fast, own_conv),
                                          own_kernel_of("own.plain", "conv", &plain, own_conv)};
    fast.least_channels = channels;
    struct world w = open_world(text, threads, 2, kernels);
    plan_world(&w, 0);
    assert_int_equal(count_steps(w.plan, "own.blocked") + count_steps(w.plan, "own.plain"), 3);
    assert_true(count_steps(w.plan, "own.blocked") >= 2);
    for (int64_t n = 3; n >= 0; n--) {
        struct weft_tensor in = tensor_of(data, 4, (int64_t[]){n, channels, 6, 5});
        run_and_compare(&w, &in, 1);
    }
    assert_int_equal(fast.parts_done, 7); /* each of them */
    close_world(&w);
}

static void blocks_stay_between_kernels_of_the_callers(void **state)
{
    for (int threads = 1; threads <= 3; threads++)
        run_nets(NET("32", "64"), 32, threads);
}

static void blocks_that_are_not_full_are_converted(void **state)
{
    run_nets(NET("20", "24"), 20, 2);
}

/* Where its own kernels compute all, nothing is converted but what comes in and goes out. */
static void kernels_in_blocks_need_two_relayouts(void **state)
{
    static float data[1 << 15];
    struct own_kernel conv = {.layout = blocked}, relu = {.layout = blocked_pair}, add = {.layout = blocked_pair};
    const struct weft_kernel kernels[] = {own_kernel_of("own.conv", "conv", &conv, own_conv),
                                          own_kernel_of("own.relu", "relu", &relu, own_relu),
                                          own_kernel_of("own.add", "add", &add, own_binary)};
    struct world w = open_world(NET("32", "64"), 2, 3, kernels);
    plan_world(&w, 0);
    assert_int_equal(count_steps(w.plan, NULL), 2);
    assert_int_equal(weft_plan_steps(w.plan), 7);
    struct weft_tensor in = tensor_of(data, 4, (int64_t[]){2, 32, 6, 5});
    run_and_compare(&w, &in, 1);
    close_world(&w);
}

/* What weft computes between them it computes on the same blocks, a bias as a view; nor is what others still read (d,
 * by the last add) overwritten through its views. */
static void between_such_kernels_weft_converts_nothing(void **state)
{
    static const char text[] = "graph @g(%x: f32[2,32,6,6]) {\n  %w: f32[32,32,3,3] = const random=1 scale=0.1\n"
                               "  %v: f32[32] = const random=2\n  %b: f32[2,32,6,6] = bcast %v dims=[1]\n"
                               "  %c: f32[2,32,6,6] = conv %x, %w pad=[1 1 1 1]\n  %d: f32[2,32,6,6] = add %c, %b\n"
                               "  %e: f32[2,32,6,6] = relu %d\n  %f: f32[2,32,6,6] = conv %e, %w pad=[1 1 1 1]\n"
                               "  %h: f32[2,32,6,6] = add %f, %d\n  %i: f32[2,32,6,6] = relu %h\n"
                               "  %p: f32[2,32,3,3] = max_pool %i kernel=[2 2] stride=[2 2]\n"
                               "  %y: f32[2,32,3,3] = conv %p, %w pad=[1 1 1 1]\n  return %y\n}";
    static float data[1 << 12];
    struct own_kernel conv = {.layout = blocked}, relu = {.layout = blocked_pair, .in_place = true};
    const struct weft_kernel kernels[] = {own_kernel_of("own.conv", "conv", &conv, own_conv),
                                          own_kernel_of("own.relu", "relu", &relu, own_relu)};
    struct world w = open_world(text, 2, 2, kernels);
    plan_world(&w, 0);
    assert_int_equal(count_steps(w.plan, "own.conv") + count_steps(w.plan, "own.relu"), 5);
    assert_int_equal(count_steps(w.plan, NULL), 2);
    assert_int_equal(weft_plan_steps(w.plan), 5 + 2 + 3);
    struct weft_tensor in = tensor_of(data, 4, (int64_t[]){2, 32, 6, 6});
    run_and_compare(&w, &in, 1);
    close_world(&w);
}

/* No tensor says what lies in blocks: results and parameters that may lie anywhere lie in strides. */
static void results_that_may_lie_anywhere_are_no_blocks(void **state)
{
    static const char *const texts[] = {
        "graph @g(%x: f32[2,32,6,5]{?}) {\n  %w: f32[32,32,1,1] = const random=1 scale=0.1\n"
        "  %c: f32[2,32,6,5]{?} = conv %x, %w\n  return %c\n}",
        "graph @g(%x: f32[2,32,6,5]) {\n  %w: f32[32,32,1,1] = const random=1 scale=0.1\n"
        "  %c: f32[2,32,6,5] = conv %x, %w\n  %y: f32[2,32,6,5] = relu %c\n  return %y, %c\n}"};
    static float data[1 << 12];
    struct own_kernel conv = {.layout = blocked};
    const struct weft_kernel kernel = own_kernel_of("own.conv", "conv", &conv, own_conv);
    for (int i = 0; i < 2; i++) {
        struct world w = open_world(texts[i], 2, 1, &kernel);
        plan_world(&w, 0);
        assert_int_equal(count_steps(w.plan, "own.conv"), i);
        struct weft_tensor in = tensor_of(data, 4, (int64_t[]){2, 32, 6, 5});
        if (i == 1) /* the other's strides are the plan's to choose */
            run_and_compare(&w, &in, 1);
        close_world(&w);
    }
}

static void views_and_numbers_become_arrays(void **state)
{
    static const char text[] = "graph @g(%x: f32[4,6], %v: f32[6], %t: f32[6,4]) {\n"
                               "  %c: f32[4,6] = const value=3\n  %b: f32[4,6] = bcast %v dims=[1]\n"
                               "  %u: f32[4,6] = transpose %t perm=[1 0]\n  %p: f32[4,6] = mul %x, %b\n"
                               "  %q: f32[4,6] = mul %p, %c\n  %y: f32[4,6] = mul %q, %u\n  return %y\n}";
    static const char *const matrix[] = {"{0 1}", "{0 1}", "{0 1}"};
    float data[3][32];
    struct own_kernel mul = {.layout = matrix};
    const struct weft_kernel kernel = own_kernel_of("own.mul", "mul", &mul, own_binary);
    for (uint32_t flags = 0; flags <= WEFT_COMPILE_NO_PASSES; flags++) {
        struct world w = open_world(text, 1, 1, &kernel);
        plan_world(&w, flags);
        assert_true(count_steps(w.plan, "own.mul") >= 2);
        struct weft_tensor in[] = {tensor_of(data[0], 2, (int64_t[]){4, 6}), tensor_of(data[1], 1, (int64_t[]){6}),
                                   tensor_of(data[2], 2, (int64_t[]){6, 4})};
        run_and_compare(&w, in, 3);
        close_world(&w);
    }
}

/* The parts of a concat along columns have gaps: weft's relu may write one in its place, but a kernel of the caller's
 * reads no gaps and writes none. */
static void places_with_gaps_are_wefts(void **state)
{
    static const char text[] = "graph @g(%x: f32[8,64], %z: f32[8,64]) {\n  %a: f32[8,64] = exp %x\n"
                               "  %b: f32[8,64] = mul %z, %z\n  %c: f32[8,128] = concat %a, %b axis=1\n"
                               "  %d: f32[8,64] = mul %a, %x\n  return %c, %d\n}";
    static const char *const matrix[] = {"{0 1}", "{0 1}", "{0 1}"};
    static float data[2][512];
    struct own_kernel mul = {.layout = matrix};
    const struct weft_kernel kernel = own_kernel_of("own.mul", "mul", &mul, own_binary);
    struct world w = open_world(text, 2, 1, &kernel);
    plan_world(&w, WEFT_COMPILE_NO_FUSE);
    assert_int_equal(count_steps(w.plan, "own.mul"), 2);
    struct weft_tensor in[] = {tensor_of(data[0], 2, (int64_t[]){8, 64}), tensor_of(data[1], 2, (int64_t[]){8, 64})};
    run_and_compare(&w, in, 2);
    close_world(&w);
}

static uint32_t storage_of(const struct weft_plan *plan, const char *name)
{
    struct weft_plan_value value = {.size = sizeof value};
    assert_int_equal(weft_plan_find(plan, name, &value), WEFT_OK);
    return value.storage;
}

/* Where nothing but the hint of N makes the part one piece. */
static void places_with_gaps_at_other_sizes_are_wefts(void **state)
{
    static const char text[] = "graph @g<N>(%x: f32[N,4,16]) {\n  %a: f32[N,4,16] = relu %x\n"
                               "  %b: f32[N,4,16] = exp %x\n  %c: f32[N,8,16] = concat %a, %b axis=1\n  return %c\n}";
    static const char *const cube[] = {"{0 1 2}", "{0 1 2}"};
    static float data[256];
    struct own_kernel relu = {.layout = cube};
    const struct weft_kernel kernel = own_kernel_of("own.relu", "relu", &relu, own_relu);
    struct world w = open_world(text, 1, 1, &kernel);
    plan_world(&w, WEFT_COMPILE_NO_FUSE);
    for (int64_t n = 1; n <= 3; n++) {
        struct weft_tensor in = tensor_of(data, 3, (int64_t[]){n, 4, 16});
        run_and_compare(&w, &in, 1);
    }
    close_world(&w);
}

static void results_overwrite_where_the_kernel_says_so(void **state)
{
    static const char text[] = "graph @g(%x: f32[64]) {\n  %a: f32[64] = exp %x\n  %b: f32[64] = relu %a\n"
                               "  %y: f32[64] = exp %b\n  return %y\n}";
    static const char *const line[] = {"{0}", "{0}"};
    float data[64];
    for (int in_place = 0; in_place < 2; in_place++) {
        struct own_kernel relu = {.layout = line, .in_place = in_place};
        const struct weft_kernel kernel = own_kernel_of("own.relu", "relu", &relu, own_relu);
        struct world w = open_world(text, 1, 1, &kernel);
        plan_world(&w, WEFT_COMPILE_NO_FUSE);
        assert_int_equal(storage_of(w.plan, "a") == storage_of(w.plan, "b"), in_place);
        struct weft_tensor in = tensor_of(data, 1, (int64_t[]){64});
        run_and_compare(&w, &in, 1);
        close_world(&w);
    }
}

static void kernels_run_in_bodies(void **state)
{
    static const char text[] = "graph @g(%x: f32[16]) {\n  %n: i64[] = const value=3\n"
                               "  graph @b(%i: i64[], %v: f32[16]) {\n    %r: f32[16] = add %v, %v\n"
                               "    return %r\n  }\n  %y: f32[16] = loop %n, %x body=@b\n  return %y\n}";
    static const char *const line[] = {"{0}", "{0}", "{0}"};
    float data[16];
    struct own_kernel add = {.layout = line};
    struct weft_kernel kernel = own_kernel_of("own.add", "add", &add, own_binary);
    struct world w = open_world(text, 2, 1, &kernel);
    plan_world(&w, 0);
    struct weft_tensor in = tensor_of(data, 1, (int64_t[]){16});
    run_and_compare(&w, &in, 1);
    assert_int_equal(add.calls, 3);
    close_world(&w);
    kernel.run = NULL;
    w = open_world(text, 1, 1, &kernel);
    plan_world(&w, 0);
    assert_int_equal(weft_bind_input(w.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_run(w.execution), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_execution_error(w.execution), "%r: kernel own.add has no run"));
    close_world(&w);
}

static void a_group_is_one_call(void **state)
{
    static const char text[] = "graph @g(%x: f32[8]) {\n  fuse @pair ! own.pair {\n    %a: f32[8]{-} = add %x, %x\n"
                               "    %b: f32[8] = relu %a\n  }\n  %c: f32[8] = exp %b\n  return %c\n}";
    static const char *const line[] = {"{0}", "{0}"};
    float data[8];
    struct own_kernel pair = {.layout = line};
    const struct weft_kernel kernel = own_kernel_of("own.pair", "relu", &pair, own_relu); /* what it does is its own */
    struct world w = open_world(text, 1, 1, &kernel);
    plan_world(&w, 0);
    struct weft_plan_step step = {.size = sizeof step};
    assert_int_equal(weft_plan_step(w.plan, 0, &step), WEFT_OK);
    assert_true(step.own && !step.op && step.nodes == 2);
    assert_string_equal(step.group, "pair");
    assert_int_equal(step.operands, 1);
    struct weft_tensor in = tensor_of(data, 1, (int64_t[]){8}), got;
    assert_int_equal(weft_bind_input(w.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_run(w.execution), WEFT_OK);
    assert_int_equal(weft_output(w.execution, 0, &got), WEFT_OK);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(((float *)got.data)[i] - expf(data[i] > 0 ? data[i] : 0)) < 1e-4 * expf(3));
    close_world(&w);
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------- */

static void errors_name_the_node_and_the_kernel(void **state)
{
    static const char text[] = "graph @g(%x: f32[64]) {\n  %b: f32[64] = relu %x\n  return %b\n}";
    static const char *const line[] = {"{0}", "{0}"};
    float data[64];
    struct own_kernel relu = {.layout = line, .status = 7};
    const struct weft_kernel kernel = own_kernel_of("own.relu", "relu", &relu, own_relu);
    struct world w = open_world(text, 2, 1, &kernel);
    plan_world(&w, 0);
    struct weft_tensor in = tensor_of(data, 1, (int64_t[]){64});
    assert_int_equal(weft_bind_input(w.execution, 0, &in), WEFT_OK);
    assert_int_equal(weft_run(w.execution), WEFT_ERR_CUSTOM);
    assert_string_equal(weft_execution_error(w.execution), "%b: kernel own.relu reports error 7: as it was told");
    relu.status = 0;
    run_and_compare(&w, &in, 1);
    close_world(&w);
}

static void expect_refused(struct world *w, uint32_t flags, int status, const char *const *words)
{
    const struct weft_compile_options options = {.size = sizeof options, .target = w->target, .flags = flags};
    assert_int_equal(weft_compile(w->graph, &options, &w->plan), status);
    for (; *words; words++)
        if (!strstr(weft_last_error(w->context), *words))
            fail_msg("'%s' is not in: %s", *words, weft_last_error(w->context));
    close_world(w);
}

static void targets_may_take_no_other_kernels(void **state)
{
    struct own_kernel conv = {.layout = rows}, relu = {.layout = rows}, add = {.layout = rows};
    const struct weft_kernel kernels[] = {own_kernel_of("own.conv", "conv", &conv, own_conv),
                                          own_kernel_of("own.relu", "relu", &relu, own_relu),
                                          own_kernel_of("own.add", "add", &add, own_binary)};
    struct world w = open_world(NET("4", "8"), 1, 1, kernels);
    assert_int_equal(weft_target_restrict(w.target, 2), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(w.context), "no WEFT_TARGET flags 0x2"));
    assert_int_equal(weft_target_restrict(w.target, WEFT_TARGET_OWN_ONLY), WEFT_OK);
    expect_refused(&w, 0, WEFT_ERR_UNSUPPORTED,
                   (const char *[]){"a1: none of the target's kernels fits this relu",
                                    "a2: none of the target's kernels fits this add", NULL});
    w = open_world(NET("4", "8"), 1, 3, kernels);
    assert_int_equal(weft_target_restrict(w.target, WEFT_TARGET_OWN_ONLY), WEFT_OK);
    plan_world(&w, 0);
    assert_int_equal(weft_plan_steps(w.plan), 5);
    close_world(&w);
}

static void stated_layouts_have_to_be_the_kernels(void **state)
{
    static const char text[] = "graph @g(%x: f32[4,6]) {\n  %a: f32[4,6]{1 0} = relu %x ! own.relu\n"
                               "  %y: f32[4,6] = exp %a\n  return %y\n}";
    static const char *const matrix[] = {"{0 1}", "{0 1}"};
    struct own_kernel relu = {.layout = matrix};
    const struct weft_kernel kernel = own_kernel_of("own.relu", "relu", &relu, own_relu);
    struct world w = open_world(text, 1, 1, &kernel);
    expect_refused(&w, WEFT_COMPILE_NO_PASSES, WEFT_ERR_UNSUPPORTED,
                   (const char *[]){"a: kernel own.relu wants result 0 in {0 1}, and it is stored in {1 0}", NULL});
    struct world other = open_world(text, 1, 1, &kernel);
    struct weft_context *context = open_context(1);
    struct weft_target *const mine = other.target;
    assert_int_equal(weft_target_create(context, &other.target), WEFT_OK);
    weft_target_destroy(mine);
    weft_close(context);
    expect_refused(&other, 0, WEFT_ERR_ARGUMENT, (const char *[]){"the target was made for another context", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_stay_between_kernels_of_the_callers),
        cmocka_unit_test(blocks_that_are_not_full_are_converted),
        cmocka_unit_test(kernels_in_blocks_need_two_relayouts),
        cmocka_unit_test(between_such_kernels_weft_converts_nothing),
        cmocka_unit_test(results_that_may_lie_anywhere_are_no_blocks),
        cmocka_unit_test(views_and_numbers_become_arrays),
        cmocka_unit_test(places_with_gaps_are_wefts),
        cmocka_unit_test(places_with_gaps_at_other_sizes_are_wefts),
        cmocka_unit_test(results_overwrite_where_the_kernel_says_so),
        cmocka_unit_test(kernels_run_in_bodies),
        cmocka_unit_test(a_group_is_one_call),
        cmocka_unit_test(errors_name_the_node_and_the_kernel),
        cmocka_unit_test(targets_may_take_no_other_kernels),
        cmocka_unit_test(stated_layouts_have_to_be_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
