/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_walk.c: plans for a target whose kernels are the caller's, who walks through them by himself. Answers are
 * compared with the evaluator's. */
#include "tests/unit/own_support.h"

struct walk {
    const struct weft_plan *plan;
    char *arena;
    void *input, *output;
};

static struct weft_kernel_array array_of(const struct walk *walk, const struct weft_plan_operand *operand)
{
    struct weft_kernel_array array = operand->array;
    if (operand->memory != WEFT_MEMORY_CONSTANT)
        array.data = (operand->memory == WEFT_MEMORY_INPUT    ? (char *)walk->input
                      : operand->memory == WEFT_MEMORY_OUTPUT ? (char *)walk->output : walk->arena) + operand->offset;
    return array;
}

static void convert(const struct weft_kernel_array *from, const struct weft_kernel_array *to)
{
    int64_t i[WEFT_MAX_RANK] = {0};
    do {
        *own_at(to, i) = *own_at(from, i);
    } while (own_next(to, i));
}

static void walk_step(const struct walk *walk, size_t i, struct own_kernel *own)
{
    struct weft_plan_step step = {.size = sizeof step};
    struct weft_plan_operand operand = {.size = sizeof operand};
    struct weft_kernel_array array[4];
    assert_int_equal(weft_plan_step(walk->plan, i, &step), WEFT_OK);
    assert_int_equal(step.results, 1);
    for (int k = 0; k < step.operands; k++) {
        assert_int_equal(weft_plan_step_operand(walk->plan, i, (size_t)k, &operand), WEFT_OK);
        array[k] = array_of(walk, &operand);
    }
    assert_int_equal(weft_plan_step_operand(walk->plan, i, (size_t)step.operands, &operand), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_plan_step_result(walk->plan, i, 0, &operand), WEFT_OK);
    array[step.operands] = array_of(walk, &operand);
    assert_string_equal(operand.value, step.value);
    const struct weft_kernel_call call = {.graph = weft_plan_graph(walk->plan), .node = step.node, .operand = array,
                                          .operands = (size_t)step.operands, .result = &array[step.operands],
                                          .results = 1, .parts = 1, .sizes = walk->plan->hint};
    if (!step.own)
        convert(&array[0], &array[1]);
    else
        assert_int_equal((!strcmp(step.op, "conv")   ? own_conv
                          : !strcmp(step.op, "relu") ? own_relu : own_binary)(own, &call), 0);
}

/* All steps of a plan for a target that takes no kernels of weft's; one input and one result. */
static void walk_and_compare(struct world *w, struct weft_tensor *x, struct own_kernel *own)
{
    static float out[1 << 10];
    struct weft_tensor expected = {0};
    const struct walk walk = {.plan = w->plan, .input = x->data, .output = out,
                              .arena = aligned_alloc(64, (size_t)weft_plan_arena_bytes(w->plan) + 64)};
    memset(walk.arena, 0xff, (size_t)weft_plan_arena_bytes(w->plan)); /* NaNs */
    for (size_t i = 0; i < weft_plan_steps(w->plan); i++)
        walk_step(&walk, i, own);
    assert_int_equal(weft_evaluate(w->graph, x, 1, &expected, 1), WEFT_OK);
    expect_near(out, expected.data, weft_tensor_count(&expected), 1e-4);
    weft_tensor_free(w->context, &expected);
    free(walk.arena);
}

static void the_caller_walks_through_a_plan(void **state)
{
    static const char text[] = NET("32", "64");
    static float in[32 * 30];
    struct own_kernel conv = {.layout = blocked, .least_channels = 32}, relu = {.layout = blocked_pair},
                      add = {.layout = blocked_pair};
    const struct weft_kernel kernels[] = {own_kernel_of("own.conv", "conv", &conv, NULL),
                                          own_kernel_of("own.relu", "relu", &relu, NULL),
                                          own_kernel_of("own.add", "add", &add, NULL)};
    struct world w = open_world(text, 1, 3, kernels);
    assert_int_equal(weft_target_restrict(w.target, WEFT_TARGET_OWN_ONLY), WEFT_OK);
    plan_world(&w, 0);
    struct weft_tensor x = tensor_of(in, 4, (int64_t[]){1, 32, 6, 5});
    walk_and_compare(&w, &x, &conv);
    struct weft_plan_operand operand = {.size = sizeof operand};
    assert_int_equal(weft_plan_step_operand(w.plan, 100, 0, &operand), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_plan_step_result(w.plan, 0, 1, &operand), WEFT_ERR_ARGUMENT);
    operand.size = 0;
    assert_int_equal(weft_plan_step_result(w.plan, 0, 0, &operand), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_bind_input(w.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(w.execution), WEFT_ERR_UNSUPPORTED);
    close_world(&w);
}

/* A reshape of what lies transposed is no step that a target of kernels alone would have. */
static void reshapes_that_copy_are_relayouts(void **state)
{
    static const char text[] = "graph @g(%x: f32[2,3,4,5]) {\n  %a: f32[2,3,4,5] = relu %x\n"
                               "  %t: f32[2,4,3,5] = transpose %a perm=[0 2 1 3]\n  %r: f32[8,15] = reshape %t\n"
                               "  %y: f32[8,15] = add %r, %r\n  return %y\n}";
    float in[120];
    struct own_kernel own = {0};
    const struct weft_kernel kernels[] = {own_kernel_of("own.relu", "relu", &own, NULL),
                                          own_kernel_of("own.add", "add", &own, NULL)};
    struct world w = open_world(text, 1, 2, kernels);
    assert_int_equal(weft_target_restrict(w.target, WEFT_TARGET_OWN_ONLY), WEFT_OK);
    plan_world(&w, 0);
    assert_int_equal(count_steps(w.plan, NULL), 1);
    assert_int_equal(weft_plan_steps(w.plan), 3);
    struct weft_tensor x = tensor_of(in, 4, (int64_t[]){2, 3, 4, 5});
    walk_and_compare(&w, &x, &own);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caller_walks_through_a_plan),
        cmocka_unit_test(reshapes_that_copy_are_relayouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
