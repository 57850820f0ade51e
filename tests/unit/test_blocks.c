/* SPDX-License-Identifier: Apache-2.0 */
/* test_blocks.c: blocked layouts of a framework's kernels, carried through what stands between two of them, and run:
 * with channels that fill their blocks and with channels that do not, where what fills them up is NaN. */
#include "tests/unit/plan_support.h"

enum { CHANNELS_AT_MOST = 40, MOST = 2 * CHANNELS_AT_MOST * 64 };

/* ~: channels; ^: twice as many. */
static const char net[] = "graph @net(%x: f32[2,~,8,8]) {\n"
                          "  %w1: f32[~,~,3,3] = const random=1 scale=0.1\n"
                          "  %w2: f32[~,^,3,3] = const random=2 scale=0.1\n"
                          "  %b: f32[~] = const random=3\n"
                          "  %c: f32[2,~,8,8] = conv %x, %w1 pad=[1 1 1 1]\n"
                          "  %bb: f32[2,~,8,8] = bcast %b dims=[1]\n"
                          "  %a: f32[2,~,8,8] = add %c, %bb\n"
                          "  %r: f32[2,~,8,8] = relu %a\n"
                          "  %s: f32[2,~,8,8] = add %r, %c\n"
                          "  %p: f32[2,~,4,4] = max_pool %s kernel=[2 2] stride=[2 2]\n"
                          "  %q: f32[2,~,4,4] = mean_pool %s kernel=[2 2] stride=[2 2]\n"
                          "  %k: f32[2,^,4,4] = concat %p, %q axis=1\n"
                          "  %m: f32[2,4,4] = mean %k axes=[1]\n"
                          "  %n: f32[2,^] = reduce_max %k axes=[2 3]\n"
                          "  %y: f32[2,~,4,4] = conv %k, %w2 pad=[1 1 1 1]\n"
                          "  return %y, %m, %n\n"
                          "}";

static const char *layout_of(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return i == 1 ? "{0/16 1/16 2 3 1%16 0%16}" : "{0 1/16 2 3 1%16}";
}

static double cost_of(void *user, const struct weft_graph *graph, weft_node node) { return 1; }

struct blocked {
    struct weft_context *context;
    struct weft_graph *before, *graph; /* the layouts of `graph` are decided */
    struct weft_target *target;
};

static void write_net(int channels, char *text)
{
    for (const char *c = net; *c; c++)
        if (*c == '~' || *c == '^')
            text += sprintf(text, "%d", *c == '~' ? channels : 2 * channels);
        else
            *text++ = *c;
    *text = '\0';
}

static struct blocked open_blocked(int channels)
{
    struct blocked b = {.context = open_context(2)};
    char text[2 * sizeof net];
    write_net(channels, text);
    b.before = parse(b.context, text);
    b.graph = parse(b.context, text);
    const struct weft_kernel own = {.size = sizeof own, .name = "own.blocked", .op = "conv", .layout = layout_of,
                                    .cost = cost_of};
    assert_int_equal(weft_target_create(b.context, &b.target), WEFT_OK);
    assert_int_equal(weft_target_add(b.target, &own), WEFT_OK);
    assert_true(weft_run_pass(b.graph, "propagate_memory_format", b.target) > 0);
    assert_int_equal(weft_validate(b.graph), WEFT_OK);
    return b;
}

static void close_blocked(struct blocked *b)
{
    weft_target_destroy(b->target);
    weft_graph_destroy(b->before);
    weft_graph_destroy(b->graph);
    weft_close(b->context);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* Is the value stored in blocks of 16 channels? */
static bool is_blocked(const struct weft_graph *graph, weft_val v)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_value_read(graph, v, &facts), WEFT_OK);
    for (int i = 0; i < facts.storage_axes; i++)
        if (facts.storage[i].axis == 1 && facts.storage[i].mod == 16)
            return true;
    return false;
}

/* From the first convolution on all is in blocks but what has no channels and what the caller is given. */
static void check_layouts(int channels)
{
    struct blocked b = open_blocked(channels);
    int relayouts = 0, blocked = 0;
    for (weft_node n = weft_next_node(b.graph, (weft_node){0}); n.id; n = weft_next_node(b.graph, n)) {
        struct weft_node_facts node = {.size = sizeof node};
        assert_int_equal(weft_node_read(b.graph, n, &node), WEFT_OK);
        const weft_val v = weft_node_result(b.graph, n, 0);
        relayouts += !strcmp(node.op, "relayout");
        const char *const carried[] = {"conv", "add", "relu", "max_pool", "mean_pool", "concat"};
        for (size_t i = 0; i < sizeof carried / sizeof carried[0]; i++)
            if (!strcmp(node.op, carried[i])) {
                assert_true(is_blocked(b.graph, v));
                blocked++;
            }
        if (!strcmp(node.op, "conv"))
            assert_string_equal(node.kernel, "own.blocked");
    }
    assert_int_equal(blocked, 8);
    assert_int_equal(relayouts, 4); /* of x, of both weights, of the result */
    close_blocked(&b);
}

static void blocks_are_carried_from_one_kernel_to_the_other(void **state)
{
    check_layouts(32);
    check_layouts(20);
}

/* --- its numbers -------------------------------------------------------------------------------------------------- */

static void run_it(const struct weft_graph *graph, int channels, const int *count, float (*result)[MOST])
{
    static float x[MOST];
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *execution;
    const int64_t extent[] = {2, channels, 8, 8};
    const struct weft_tensor input = tensor_of(x, 4, extent);
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    assert_int_equal(weft_bind_input(execution, 0, &input), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    for (size_t i = 0; i < 3; i++) {
        struct weft_tensor output;
        assert_int_equal(weft_output(execution, i, &output), WEFT_OK);
        memcpy(result[i], output.data, sizeof(float) * (size_t)count[i]);
    }
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
}

static void check_numbers(int channels)
{
    static float wanted[3][MOST], got[3][MOST];
    struct blocked b = open_blocked(channels);
    const int count[] = {2 * channels * 16, 2 * 16, 2 * 2 * channels};
    run_it(b.before, channels, count, wanted);
    run_it(b.graph, channels, count, got);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < count[i]; k++)
            assert_true(fabsf(got[i][k] - wanted[i][k]) < 1e-3f); /* not where one is NaN */
    close_blocked(&b);
}

static void what_fills_blocks_up_is_never_seen(void **state)
{
    const int channels[] = {32, 20, 16, 3, 17, CHANNELS_AT_MOST};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        check_numbers(channels[i]);
}

/* Bisecting rewrites halves what is a choice; this is none, for a plan runs no blocks. */
static void bisecting_leaves_no_blocks(void **state)
{
    const char *limit[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++) {
        setenv("WEFT_STOP_AFTER", limit[i], 1);
        struct blocked b = {.context = open_context(1)};
        b.graph = parse(b.context, "graph @g(%x: f32[2,20,4,4]) {\n"
                                   "  %b: f32[2,20,4,4]{0 1/16 2 3 1%16} = relayout %x\n"
                                   "  %r: f32[2,20,4,4]{0 1/16 2 3 1%16} = relu %b\n"
                                   "  %s: f32[2,4,4] = sum %r axes=[1]\n"
                                   "  %y: f32[2,20,4,4] = relayout %r\n"
                                   "  return %y, %s\n}");
        unsetenv("WEFT_STOP_AFTER");
        weft_plan_destroy(compile(b.graph, 0));
        weft_plan_destroy(compile(b.graph, WEFT_COMPILE_NO_PASSES));
        weft_graph_destroy(b.graph);
        weft_close(b.context);
    }
}

static int count_blocked(const struct weft_graph *graph)
{
    int count = 0;
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n))
        count += is_blocked(graph, weft_node_result(graph, n, 0));
    return count;
}

/* The pipeline makes arrays of blocks for plans; kernels of the caller's take them as they are. */
static void blocks_stay_for_kernels_of_the_callers(void **state)
{
    struct blocked b = open_blocked(32);
    assert_true(weft_run_pipeline(b.graph, b.target) >= 0);
    assert_true(count_blocked(b.graph) >= 8);
    assert_int_equal(weft_run_pipeline(b.graph, NULL), 1);
    assert_int_equal(weft_validate(b.graph), WEFT_OK);
    assert_int_equal(count_blocked(b.graph), 0);
    close_blocked(&b);
}

/* Into blocks and out of them is one conversion each; what cannot be in blocks is said. */
static void each_change_of_blocks_is_one_step(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[1,64,12,12], %w: f32[64,64,3,3]) {\n"
                                              "  %r: f32[1,64,12,12]{0 1/16 2 3 1%16} = relu %x\n"
                                              "  %y: f32[1,64,12,12]{0 2 3 1} = exp %r\n"
                                              "  %c: f32[1,64,12,12]{0 1/16 2 3 1%16} = conv %x, %w pad=[1 1 1 1]\n"
                                              "  %z: f32[1,64,12,12] = exp %c\n  return %y, %z\n}\n");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_remark remark = {.size = sizeof remark};
    bool said = false;
    for (size_t i = 0; weft_remark_get(weft_plan_graph(plan), i, &remark) == WEFT_OK; i++)
        said |= strcmp(remark.who, "lower_blocks") == 0 && strcmp(remark.where, "%c") == 0 &&
                strstr(remark.reason, "conv has no way to write these");
    assert_true(said);
    struct weft_plan_value value = {.size = sizeof value};
    assert_int_equal(weft_plan_find(plan, "r", &value), WEFT_OK); /* as the array of its blocks */
    assert_int_equal(value.rank, 5);
    assert_int_equal(plan->relayouts, 2);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void blocks_beyond_any_memory_are_refused(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph =
        parse(context, "graph @g(%x: f32[1048576,1048576,3]) {\n"
                       "  %a: f32[1048576,1048576,3]{2/1073741824 0 1 2%1073741824} = relu %x\n"
                       "  %y: f32[1048576,1048576,3] = exp %a\n  return %y\n}\n");
    struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_PASSES};
    struct weft_plan *plan;
    assert_int_not_equal(weft_compile(graph, &options, &plan), WEFT_OK);
    assert_non_null(strstr(weft_last_error(context), "%a"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_carried_from_one_kernel_to_the_other),
        cmocka_unit_test(what_fills_blocks_up_is_never_seen),
        cmocka_unit_test(bisecting_leaves_no_blocks),
        cmocka_unit_test(blocks_stay_for_kernels_of_the_callers),
        cmocka_unit_test(each_change_of_blocks_is_one_step),
        cmocka_unit_test(blocks_beyond_any_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
