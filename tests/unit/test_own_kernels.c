/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_kernels.c: reading graphs through weft.h, and kernels of the caller's: which of them is chosen, what they
 * may ask for, what is refused. */
#include "tests/unit/plan_support.h"

#include <math.h>

static const char net[] = "graph @g<N>(%x: f32[N,32,8,8]) {\n"
                          "  %w: f32[64,32,3,3] = const random=1\n"
                          "  %c: f32[N,64,8,8] = conv %x, %w pad=[1 1 1 1]\n"
                          "  %y: f32[N,64,8,8] = relu %c\n"
                          "  return %y, %x\n}";

static weft_node node_of(const struct weft_graph *graph, const char *op)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n)) {
        assert_int_equal(weft_node_read(graph, n, &facts), WEFT_OK);
        if (!strcmp(facts.op, op))
            return n;
    }
    return (weft_node){0};
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void a_graph_is_read_as_it_stands(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    assert_int_equal(weft_graph_params(graph), 1);
    assert_int_equal(weft_graph_returns(graph), 2);
    assert_int_equal(weft_graph_return(graph, 1).id, weft_graph_param(graph, 0).id);
    assert_int_equal(weft_graph_param(graph, 1).id + weft_graph_return(graph, 2).id, 0);
    const weft_node conv = node_of(graph, "conv"), relu = node_of(graph, "relu");
    struct weft_node_facts node = {.size = sizeof node};
    assert_int_equal(weft_node_read(graph, conv, &node), WEFT_OK);
    assert_int_equal(node.operands, 2);
    assert_int_equal(node.results, 1);
    assert_null(node.kernel);
    assert_null(node.group);
    assert_int_equal(weft_node_operand(graph, conv, 0).id, weft_graph_param(graph, 0).id);
    assert_int_equal(weft_node_operand(graph, conv, 2).id + weft_node_result(graph, conv, 1).id, 0);
    assert_int_equal(weft_node_operand(graph, relu, 0).id, weft_node_result(graph, conv, 0).id);
    assert_int_equal(weft_next_node(graph, relu).id, 0);

    struct weft_value_facts value = {.size = sizeof value};
    assert_int_equal(weft_value_read(graph, weft_graph_param(graph, 0), &value), WEFT_OK);
    assert_string_equal(value.name, "x");
    assert_int_equal(value.node.id, 0);
    assert_int_equal(value.dtype, WEFT_F32);
    assert_int_equal(value.rank, 4);
    assert_int_equal(value.hint[1], 32);
    assert_int_equal(value.uses, 2);
    assert_true(value.decided);
    assert_int_equal(value.storage_axes, 4);
    assert_int_equal(value.storage[0].stride, 32 * 64);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void attributes_are_read_with_their_defaults(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    const weft_node conv = node_of(graph, "conv");
    struct weft_attribute attribute;
    assert_int_equal(weft_node_attribute(graph, conv, "pad", &attribute), WEFT_OK);
    assert_int_equal(attribute.count, 4);
    assert_int_equal(attribute.integers[3].bits, weft_extent(1).bits);
    assert_int_equal(weft_node_attribute(graph, conv, "groups", &attribute), WEFT_OK);
    assert_int_equal(attribute.integer, 1);
    assert_int_equal(weft_node_attribute(graph, conv, "stride", &attribute), WEFT_OK);
    assert_int_equal(attribute.count, 0);
    attribute.name = "untouched";
    assert_int_equal(weft_node_attribute(graph, conv, "axis", &attribute), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_node_attribute(graph, conv, "nonsense", &attribute), WEFT_ERR_ARGUMENT);
    assert_string_equal(attribute.name, "untouched");
    weft_graph_destroy(graph);
    weft_close(context);
}

static void blocks_and_open_layouts_are_read(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[2,20,3]{0 1/16 2 1%16}) {\n"
                                              "  %y: f32[2,20,3]{?} = relu %x\n  return %y\n}");
    struct weft_value_facts value = {.size = sizeof value};
    assert_int_equal(weft_value_read(graph, weft_graph_param(graph, 0), &value), WEFT_OK);
    assert_int_equal(value.storage_axes, 4);
    assert_int_equal(value.storage[1].axis, 1);
    assert_int_equal(value.storage[1].div, 16);
    assert_int_equal(value.storage[1].stride, 48);
    assert_int_equal(value.storage[3].mod, 16);
    assert_int_equal(value.storage[0].stride, 96); /* two blocks, the second partly empty */
    assert_int_equal(weft_value_read(graph, weft_graph_return(graph, 0), &value), WEFT_OK);
    assert_false(value.decided);
    assert_int_equal(value.storage_axes, 0);
    value.size = 0;
    assert_int_equal(weft_value_read(graph, weft_graph_return(graph, 0), &value), WEFT_ERR_ARGUMENT);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void marks_of_aliases_are_read(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[64]) {\n %a: f32[64] = exp %x\n"
                                              " %c: f32[128] = concat %a, %x axis=0\n return %c\n}");
    struct weft_node_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_run_pass(graph, "mark_aliases", NULL), 1);
    assert_int_equal(weft_node_read(graph, node_of(graph, "exp"), &facts), WEFT_OK);
    assert_string_equal(facts.in, "%c");
    assert_int_equal(weft_node_read(graph, node_of(graph, "concat"), &facts), WEFT_OK);
    assert_null(facts.in);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void ids_of_nothing_are_refused(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    struct weft_node_facts node = {.size = sizeof node};
    struct weft_value_facts value = {.size = sizeof value};
    const uint32_t wrong[] = {0, 1000, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft_node_read(graph, (weft_node){.id = wrong[i]}, &node), WEFT_ERR_ARGUMENT);
        assert_int_equal(weft_value_read(graph, (weft_val){.id = wrong[i]}, &value), WEFT_ERR_ARGUMENT);
        assert_int_equal(weft_node_operand(graph, (weft_node){.id = wrong[i]}, 0).id, 0);
        if (i)
            assert_int_equal(weft_next_node(graph, (weft_node){.id = wrong[i]}).id, 0);
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static const char *const blocked[] = {"{0 1/16 2 3 1%16}", "{0/16 1/16 2 3 1%16 0%16}", "{0 1/16 2 3 1%16}"};

static const char *layout_of(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    const char *const *const text = user;
    return text[i];
}

static double slow(void *user, const struct weft_graph *graph, weft_node node) { return 1000; }
static double fast(void *user, const struct weft_graph *graph, weft_node node) { return 1; }
static double instant(void *user, const struct weft_graph *graph, weft_node node) { return 0.1; }
static double no_number(void *user, const struct weft_graph *graph, weft_node node) { return NAN; }
static bool never(void *user, const struct weft_graph *graph, weft_node node) { return false; }

struct propagated {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_target *target;
};

/* With two kernels: `blocked` with these layouts and this cost, `plain` of 20 us. */
static struct propagated propagate(const char *const *layouts, double (*cost)(void *, const struct weft_graph *,
                                                                              weft_node))
{
    struct propagated p = {.context = open_context(1)};
    p.graph = parse(p.context, net);
    const struct weft_kernel own = {.size = sizeof own, .name = "own.blocked", .op = "conv", .user = (void *)layouts,
                                    .layout = layout_of, .cost = cost};
    const struct weft_kernel plain = {.size = sizeof plain, .name = "own.plain", .op = "conv", .cost = slow};
    assert_int_equal(weft_target_create(p.context, &p.target), WEFT_OK);
    assert_int_equal(weft_target_add(p.target, &own), WEFT_OK);
    assert_int_equal(weft_target_add(p.target, &plain), WEFT_OK);
    assert_true(weft_run_pass(p.graph, "propagate_memory_format", p.target) >= 0);
    assert_int_equal(weft_validate(p.graph), WEFT_OK);
    return p;
}

static void done(struct propagated *p)
{
    weft_target_destroy(p->target);
    weft_graph_destroy(p->graph);
    weft_close(p->context);
}

static const char *kernel_of(const struct weft_graph *graph, const char *op)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_node_read(graph, node_of(graph, op), &facts), WEFT_OK);
    return facts.kernel;
}

static void groups_and_their_kernels_are_read_back(void **state)
{
    static const char text[] = "graph @g(%x: f32[8]) {\n  fuse @pair ! own.pair threads=2 {\n"
                               "    %a: f32[8] = relu %x\n    %b: f32[8] = neg %a ! own.neg\n  }\n"
                               "  %c: f32[8] = abs %b\n  return %c\n}";
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_node_facts relu = {.size = sizeof relu}, neg = relu, other = relu;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    assert_int_equal(weft_parse(context, text, strlen(text), "test", &graph), WEFT_OK);
    assert_int_equal(weft_node_read(graph, node_of(graph, "relu"), &relu), WEFT_OK);
    assert_int_equal(weft_node_read(graph, node_of(graph, "neg"), &neg), WEFT_OK);
    assert_int_equal(weft_node_read(graph, node_of(graph, "abs"), &other), WEFT_OK);
    assert_string_equal(relu.group, "pair");
    assert_string_equal(relu.group_kernel, "own.pair");
    assert_null(relu.kernel);
    assert_string_equal(neg.group_kernel, "own.pair");
    assert_string_equal(neg.kernel, "own.neg");
    assert_true(!other.group && !other.group_kernel);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void the_cheaper_kernel_gets_its_layouts(void **state)
{
    struct propagated p = propagate(blocked, fast);
    char *text;
    assert_string_equal(kernel_of(p.graph, "conv"), "own.blocked");
    assert_int_equal(weft_print(p.graph, &text), WEFT_OK);
    assert_non_null(strstr(text, "%c: f32[N,64,8,8]{0 1/16 2 3 1%16} = conv"));
    assert_non_null(strstr(text, "f32[64,32,3,3]{0/16 1/16 2 3 1%16 0%16} = relayout %w"));
    assert_non_null(strstr(text, "f32[N,32,8,8]{0 1/16 2 3 1%16} = relayout %x"));
    weft_free_text(p.context, text);
    assert_int_equal(weft_run_pass(p.graph, "propagate_memory_format", p.target), 0); /* it is decided */
    done(&p);
}

static void conversions_that_cost_more_are_not_made(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    struct weft_target *target;
    /* 0.1 us of gain, two conversions of more */
    const struct weft_kernel own = {.size = sizeof own, .name = "own.blocked", .op = "conv", .user = (void *)blocked,
                                    .layout = layout_of, .cost = no_number};
    const struct weft_kernel plain = {.size = sizeof plain, .name = "own.plain", .op = "conv", .cost = instant};
    assert_int_equal(weft_target_create(context, &target), WEFT_OK);
    assert_int_equal(weft_target_add(target, &own), WEFT_OK);
    assert_int_equal(weft_target_add(target, &plain), WEFT_OK);
    assert_true(weft_run_pass(graph, "propagate_memory_format", target) >= 0);
    assert_string_equal(kernel_of(graph, "conv"), "own.plain");
    assert_int_equal(node_of(graph, "relayout").id, 0);
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
}

static bool says(const struct weft_graph *graph, const char *words)
{
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        if (strstr(remark.reason, words))
            return true;
    return false;
}

static double endless(void *user, const struct weft_graph *graph, weft_node node) { return INFINITY; }
static double huge(void *user, const struct weft_graph *graph, weft_node node) { return 1e300; }
static double negative(void *user, const struct weft_graph *graph, weft_node node) { return -1; }
static double nine_seconds(void *user, const struct weft_graph *graph, weft_node node) { return 9e6; }

static void costs_that_cannot_be_are_remarks(void **state)
{
    double (*const wrong[])(void *, const struct weft_graph *, weft_node) = {no_number, endless, huge, negative};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct propagated p = propagate(blocked, wrong[i]);
        assert_string_equal(kernel_of(p.graph, "conv"), "own.plain");
        assert_true(says(p.graph, "own.blocked says that it costs"));
        done(&p);
    }
    struct propagated p = propagate(blocked, nine_seconds); /* dear, but no wrong number */
    assert_string_equal(kernel_of(p.graph, "conv"), "own.plain");
    assert_false(says(p.graph, "own.blocked says that it costs"));
    done(&p);
}

static void layouts_that_cannot_be_are_remarks(void **state)
{
    static const char *const wrong[][3] = {{"{0 1 2}", NULL, NULL}, {"nonsense", NULL, NULL}, {"{?}", NULL, NULL},
                                           {NULL, NULL, "{0 1 2 3} and more"}, {NULL, "{0 1 2 3 | 0 1 1 1}", NULL},
                                           {"{0 1 2 3 align=64}", NULL, NULL}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct propagated p = propagate(wrong[i], fast);
        assert_string_equal(kernel_of(p.graph, "conv"), "own.plain");
        assert_true(says(p.graph, "own.blocked asks for"));
        done(&p);
    }
}

static void without_a_kernel_that_fits_weft_prices_its_own(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    struct weft_target *target;
    const struct weft_kernel own = {.size = sizeof own, .name = "own", .op = "conv", .fits = never, .cost = fast};
    assert_int_equal(weft_target_create(context, &target), WEFT_OK);
    assert_int_equal(weft_target_add(target, &own), WEFT_OK);
    assert_true(weft_run_pass(graph, "propagate_memory_format", target) >= 0);
    assert_null(kernel_of(graph, "conv"));
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void wrong_kernels_are_refused(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_target *target;
    assert_int_equal(weft_target_create(context, &target), WEFT_OK);
    const struct weft_kernel good = {.size = sizeof good, .name = "a.kernel", .op = "conv", .cost = fast};
    assert_int_equal(weft_target_add(target, &good), WEFT_OK);
    assert_int_equal(weft_target_add(target, &good), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "this name already"));
    struct weft_kernel wrong[5] = {good, good, good, good, good};
    wrong[0].size = 0;
    wrong[1].name = "a kernel";
    wrong[2].name = "b", wrong[2].op = "convolve";
    wrong[3].name = "b", wrong[3].cost = NULL;
    wrong[4].name = NULL;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weft_target_add(target, &wrong[i]), WEFT_ERR_ARGUMENT);
        assert_true(strlen(weft_last_error(context)) > 0);
        assert_int_equal(strstr(weft_last_error(context), "it computes 'convolve', which is no op") != NULL, i == 2);
    }
    weft_target_destroy(target);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_read_as_it_stands),
        cmocka_unit_test(attributes_are_read_with_their_defaults),
        cmocka_unit_test(blocks_and_open_layouts_are_read),
        cmocka_unit_test(marks_of_aliases_are_read),
        cmocka_unit_test(ids_of_nothing_are_refused),
        cmocka_unit_test(the_cheaper_kernel_gets_its_layouts),
        cmocka_unit_test(conversions_that_cost_more_are_not_made),
        cmocka_unit_test(layouts_that_cannot_be_are_remarks),
        cmocka_unit_test(costs_that_cannot_be_are_remarks),
        cmocka_unit_test(without_a_kernel_that_fits_weft_prices_its_own),
        cmocka_unit_test(wrong_kernels_are_refused),
        cmocka_unit_test(groups_and_their_kernels_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
