/* SPDX-License-Identifier: Apache-2.0 */
/* test_edit.c: graphs that are changed from outside: nodes in, nodes out, other operands, patterns, passes of the
 * caller's, and which passes run. */
#include "passes/passes.h"
#include "tests/unit/plan_support.h"

static const char net[] = "graph @g(%x: f32[4], %z: f32[4]) {\n  %a: f32[4] = exp %x\n  %b: f32[4] = neg %a\n"
                          "  %c: f32[4] = add %b, %z\n  %i: i32[4] = cast %c\n  return %c, %i\n}";

static weft_val value(const struct weft_graph *graph, const char *name)
{
    const weft_val v = weft_value_find(graph, name, strlen(name));
    return (weft_val){.id = v.id, .graph = graph->number};
}

static weft_node node(const struct weft_graph *graph, const char *name)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_value_read(graph, value(graph, name), &facts), WEFT_OK);
    return facts.node;
}

static void expect_text(struct weft_graph *graph, const char *expected)
{
    char *text;
    assert_int_equal(weft_validate(graph), WEFT_OK);
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    if (!strstr(text, expected))
        fail_msg("not in the graph:\n%s\n%s", expected, text);
    weft_free_text(graph->context, text);
}

#define expect_refused(graph, call, words) \
    do { \
        assert_int_equal((call), WEFT_ERR_ARGUMENT); \
        if (!strstr(weft_last_error((graph)->context), (words))) \
            fail_msg("'%s' is not in: %s", (words), weft_last_error((graph)->context)); \
    } while (0)

static struct weft_op unary(const char *op, const weft_val *operand, const char *name)
{
    return (struct weft_op){.size = sizeof(struct weft_op), .op = op, .operand = operand, .operands = 1, .name = name};
}

/* --- edits -------------------------------------------------------------------------------------------------------- */

static void nodes_are_inserted_where_they_are_wanted(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    const weft_val a = value(graph, "a"), c = value(graph, "c");
    weft_val v;
    const struct weft_op after = unary("tanh", &a, "t"), wrong = unary("relu", &c, "r"), last = unary("relu", &c, "e");
    assert_int_equal(weft_insert_after(graph, node(graph, "a"), &after, &v), WEFT_OK);
    expect_text(graph, "  %a: f32[4] = exp %x\n  %t: f32[4] = tanh %a\n  %b: f32[4] = neg %a\n");
    expect_refused(graph, weft_insert_before(graph, node(graph, "b"), &wrong, &v),
                   "r: operand 0 of relu, %c, is computed behind the place of the node");
    expect_refused(graph, weft_insert_before(graph, node(graph, "c"), &wrong, &v), "is computed behind");
    expect_refused(graph, weft_insert_before(graph, (weft_node){0}, &wrong, &v), "is none of this graph's");
    assert_int_equal(weft_insert_after(graph, node(graph, "i"), &last, &v), WEFT_OK);
    expect_text(graph, "  %i: i32[4] = cast %c\n  %e: f32[4] = relu %c\n  return");
    weft_graph_destroy(graph);
    weft_close(context);
}

static void uses_are_replaced_behind_the_new_value(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    weft_val b = value(graph, "b"), c = value(graph, "c"), t, y;
    const struct weft_op op = unary("tanh", &b, NULL), result = unary("relu", &c, NULL);
    assert_int_equal(weft_insert_after(graph, node(graph, "b"), &op, &t), WEFT_OK);
    assert_int_equal(weft_graph_replace(graph, b, t), WEFT_OK); /* tanh goes on reading b */
    expect_text(graph, "= tanh %b\n");
    expect_text(graph, "%c: f32[4] = add %0, %z\n");
    assert_int_equal(weft_insert_after(graph, node(graph, "c"), &result, &y), WEFT_OK);
    assert_int_equal(weft_graph_replace(graph, c, y), WEFT_OK); /* the result keeps its name */
    expect_text(graph, "%c: f32[4] = relu %1\n  %i: i32[4] = cast %c\n  return %c, %i");
    expect_refused(graph, weft_graph_replace(graph, y, value(graph, "x")), "is a parameter: insert a reshape of it");
    expect_refused(graph, weft_graph_replace(graph, y, value(graph, "i")), "its type is not that of");
    expect_refused(graph, weft_graph_replace(graph, y, y), "not replaced by itself");
    expect_refused(graph, weft_graph_replace(graph, y, (weft_val){0}), "the new value is");
    weft_graph_destroy(graph);
    weft_close(context);
}

static void operands_are_set_and_nodes_erased(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, net);
    const weft_node neg = node(graph, "b"), c = node(graph, "c");
    expect_refused(graph, weft_graph_erase(graph, neg), "b: it is read");
    expect_refused(graph, weft_graph_erase(graph, c), "c: it is a result of the graph");
    expect_refused(graph, weft_graph_set_operand(graph, neg, 1, value(graph, "x")), "b: the node has no operand 1");
    expect_refused(graph, weft_graph_set_operand(graph, neg, 0, value(graph, "c")), "is computed behind the node");
    expect_refused(graph, weft_graph_set_operand(graph, neg, 0, value(graph, "i")), "its type is not");
    assert_int_equal(weft_graph_set_operand(graph, c, 0, value(graph, "x")), WEFT_OK);
    assert_int_equal(weft_graph_erase(graph, neg), WEFT_OK);
    expect_refused(graph, weft_graph_erase(graph, neg), "was erased");
    expect_text(graph, "  %a: f32[4] = exp %x\n  %c: f32[4] = add %x, %z\n");
    weft_graph_destroy(graph);
    graph = parse(context, "graph @g(%x: f32[4]) {\n  fuse @two {\n    %a: f32[4] = exp %x\n    %b: f32[4] = neg %a\n"
                           "  }\n  %c: f32[4] = relu %b ! own.relu\n  return %c\n}");
    weft_val v;
    const weft_val x = value(graph, "x");
    const struct weft_op op = unary("tanh", &x, NULL);
    expect_refused(graph, weft_graph_set_operand(graph, node(graph, "b"), 0, x), "in a group or has a kernel");
    expect_refused(graph, weft_graph_replace(graph, value(graph, "b"), x), "in a group or has a kernel");
    expect_refused(graph, weft_insert_before(graph, node(graph, "b"), &op, &v), "is in group @two");
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

static void patterns_are_found_in_either_order(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[4], %y: f32[4]) {\n  %s: f32[4] = sigmoid %x\n"
                                              "  %a: f32[4] = mul %s, %x\n  %b: f32[4] = mul %y, %s\n"
                                              "  %c: f32[4] = add %a, %b\n  return %c\n}");
    /* x * sigmoid(x) */
    static const struct weft_pattern swish[] = {{.op = "mul", .operand = {1, 2}}, {.op = NULL},
                                                {.op = "sigmoid", .operand = {1}}};
    static const struct weft_pattern once[] = {{.op = "mul", .operand = {1}},
                                               {.op = "sigmoid", .flags = WEFT_PATTERN_ONE_READER}};
    static const struct weft_pattern wrong[] = {{.op = "mull"}, {.op = "mul", .operand = {7}}};
    weft_val found[3];
    assert_int_equal(weft_match(graph, node(graph, "a"), swish, 3, found), 1);
    assert_int_equal(found[0].id, value(graph, "a").id);
    assert_int_equal(found[1].id, value(graph, "x").id);
    assert_int_equal(found[2].id, value(graph, "s").id);
    assert_int_equal(weft_match(graph, node(graph, "b"), swish, 3, found), 0);
    assert_int_equal(weft_match(graph, node(graph, "a"), once, 2, found), 0);
    assert_int_equal(weft_match(graph, node(graph, "a"), &wrong[0], 1, found), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_match(graph, node(graph, "a"), &wrong[1], 1, found), WEFT_ERR_ARGUMENT);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- passes of the caller's --------------------------------------------------------------------------------------- */

struct told {
    int calls, status;
    bool breaks;
};

/* neg(exp(x)) becomes neg(abs(x)), once. */
static int replace_exp(void *user, struct weft_graph *graph, weft_node n)
{
    struct told *told = user;
    const weft_val x = weft_node_operand(graph, n, 0);
    const struct weft_op op = unary("abs", &x, NULL);
    weft_val y;
    told->calls++;
    if (told->status)
        return told->status;
    const int status = weft_insert_before(graph, n, &op, &y);
    if (status != WEFT_OK)
        return status;
    return weft_graph_replace(graph, weft_node_result(graph, n, 0), y) == WEFT_OK &&
           weft_graph_erase(graph, n) == WEFT_OK;
}

static int count_calls(void *user, struct weft_graph *graph, const struct weft_target *target)
{
    struct told *told = user;
    told->calls++;
    if (told->breaks) /* an edit that is refused ends the call, whatever the pass makes of it */
        weft_graph_erase(graph, weft_next_node(graph, (weft_node){0}));
    return told->status;
}

static void passes_from_outside_run_in_their_places(void **state)
{
    struct weft_context *context = open_context(1);
    struct told rewrite = {0}, last = {0}, named = {0};
    const struct weft_pass passes[] = {
        {.size = sizeof passes[0], .name = "no_exp", .user = &rewrite, .place = WEFT_PASS_FIRST, .op = "exp",
         .rewrite = replace_exp},
        {.size = sizeof passes[0], .name = "at_last", .user = &last, .place = WEFT_PASS_LAST, .run = count_calls},
        {.size = sizeof passes[0], .name = "by_name", .user = &named, .run = count_calls}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(weft_register_pass(context, &passes[i]), WEFT_OK);
    struct weft_graph *graph = parse(context, net);
    struct weft_plan *plan;
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_OK);
    expect_text(graph, "%a: f32[4] = exp %x"); /* a plan has a copy */
    assert_int_equal(rewrite.calls, 1);
    assert_int_equal(last.calls, 1);
    assert_int_equal(named.calls, 0);
    char *text;
    assert_int_equal(weft_plan_print(plan, &text), WEFT_OK);
    assert_non_null(strstr(text, "abs %x"));
    weft_free_text(context, text);
    weft_plan_destroy(plan);
    assert_int_equal(weft_run_pass(graph, "by-name", NULL), WEFT_ERR_ARGUMENT); /* a name is as it was registered */
    assert_int_equal(weft_run_pass(graph, "by_name", NULL), 0);
    assert_int_equal(named.calls, 1);
    assert_int_equal(weft_run_pass(graph, "no_exp", NULL), 1);
    expect_text(graph, "%a: f32[4] = abs %x");

    named.breaks = true;
    assert_int_equal(weft_run_pass(graph, "by_name", NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "it is read"));
    last.status = WEFT_ERR_UNSUPPORTED;
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(context), "at_last: the pass ended with"));
    weft_graph_destroy(graph);
    weft_close(context);
}

/* A body that a loop uses is edited by a pass, and by nobody else. */
static void passes_edit_bodies(void **state)
{
    static const char text[] = "graph @g(%n: i64[], %x: f32[4]) {\n  graph @body(%k: i64[], %s: f32[4]) {\n"
                               "    %e: f32[4] = exp %s\n    %f: f32[4] = neg %e\n    return %f\n  }\n"
                               "  %y: f32[4] = loop %n, %x body=@body\n  return %y\n}";
    struct weft_context *context = open_context(1);
    struct told told = {0};
    const struct weft_pass pass = {.size = sizeof pass, .name = "no_exp", .user = &told, .place = WEFT_PASS_FIRST,
                                   .op = "exp", .rewrite = replace_exp};
    assert_int_equal(weft_register_pass(context, &pass), WEFT_OK);
    struct weft_graph *graph = parse(context, text), *body = graph->body[0];
    expect_refused(body, weft_graph_erase(body, node(body, "f")), "a node uses this body");
    assert_int_equal(weft_run_pass(graph, "no_exp", NULL), 1);
    expect_text(graph, "%e: f32[4] = abs %s");
    expect_refused(body, weft_graph_erase(body, node(body, "f")), "a node uses this body");
    weft_graph_destroy(graph);
    weft_close(context);
}

/* A node that defines a size stays: other types mention it. */
static void sizes_are_not_erased(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g<K=data(4)>(%x: f32[4]) {\n"
                                              "  %i: i64[1,K] = nonzero %x extent=[K]\n"
                                              "  %y: f32[4] = neg %x\n  return %y\n}");
    expect_refused(graph, weft_graph_erase(graph, node(graph, "i")), "defines a size");
    weft_graph_destroy(graph);
    weft_close(context);
}

static void wrong_passes_are_refused(void **state)
{
    struct weft_context *context = open_context(1);
    const struct weft_pass good = {.size = sizeof good, .name = "mine", .run = count_calls};
    struct weft_pass wrong[7] = {good, good, good, good, good, good, good};
    wrong[0].size = 0;
    wrong[1].name = "a b";
    wrong[2].name = "cse";
    wrong[3].run = NULL;
    wrong[4].rewrite = replace_exp;
    wrong[5].place = 9;
    wrong[6].op = "exp";
    for (int i = 0; i < 7; i++)
        assert_int_equal(weft_register_pass(context, &wrong[i]), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_register_pass(context, &good), WEFT_OK);
    assert_int_equal(weft_register_pass(context, &good), WEFT_ERR_ARGUMENT);
    weft_close(context);
}

/* --- which passes run --------------------------------------------------------------------------------------------- */

static bool ran(const struct weft_graph *graph, const char *name)
{
    const struct weft_pass_record *record;
    for (size_t i = 0; (record = weft_pass_timing(graph, i)) != NULL; i++)
        if (!strcmp(record->pass, name))
            return true;
    return false;
}

static void pipelines_have_options(void **state)
{
    static const char text[] = "graph @g(%x: f32[4,9]) {\n  %d: f32[4,9] = exp %x\n  %y: f32[4,9] = softmax %x axis=1\n"
                               "  return %y\n}";
    struct weft_context *context = open_context(1);
    struct weft_pipeline_options options = {.size = sizeof options, .skip = "decompose,cse"};
    struct weft_graph *graph = parse(context, text);
    assert_int_equal(weft_run_pipeline_with(graph, NULL, &options), 1);
    assert_true(ran(graph, "dce") && !ran(graph, "decompose") && !ran(graph, "cse"));
    weft_graph_destroy(graph);

    graph = parse(context, text);
    options = (struct weft_pipeline_options){.size = sizeof options, .only = "dce"};
    assert_int_equal(weft_run_pipeline_with(graph, NULL, &options), 1);
    expect_text(graph, "graph @g(%x: f32[4,9]) {\n  %y: f32[4,9] = softmax %x axis=1\n");
    weft_graph_destroy(graph);

    graph = parse(context, text);
    options = (struct weft_pipeline_options){.size = sizeof options, .until = "decompose"};
    assert_int_equal(weft_run_pipeline_with(graph, NULL, &options), 1);
    assert_true(ran(graph, "decompose") && !ran(graph, "propagate_memory_format"));
    options.until = "decomposed";
    expect_refused(graph, weft_run_pipeline_with(graph, NULL, &options),
                   "weft_pipeline_options.until: there is no pass 'decomposed' (did you mean decompose?)");
    options = (struct weft_pipeline_options){.size = 0};
    expect_refused(graph, weft_run_pipeline_with(graph, NULL, &options), "size is not set");
    weft_graph_destroy(graph);

    graph = parse(context, text);
    options = (struct weft_pipeline_options){.size = sizeof options, .rewrites = 1};
    assert_int_equal(weft_run_pipeline_with(graph, NULL, &options), 1);
    assert_int_equal(graph->rewrites, 1);
    struct weft_plan *plan;
    struct weft_compile_options compile_options = {.size = sizeof compile_options, .pipeline = &options};
    options = (struct weft_pipeline_options){.size = sizeof options, .skip = "fuse"};
    assert_int_equal(weft_compile(graph, &compile_options, &plan), WEFT_OK);
    assert_false(ran(weft_plan_graph(plan), "fuse"));
    weft_plan_destroy(plan);
    compile_options.flags = WEFT_COMPILE_NO_PASSES;
    expect_refused(graph, weft_compile(graph, &compile_options, &plan), "exclude each other");
    compile_options.flags = 0;
    options.skip = "fusion";
    expect_refused(graph, weft_compile(graph, &compile_options, &plan), "skip: there is no pass 'fusion'");
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_inserted_where_they_are_wanted),
        cmocka_unit_test(uses_are_replaced_behind_the_new_value),
        cmocka_unit_test(operands_are_set_and_nodes_erased),
        cmocka_unit_test(patterns_are_found_in_either_order),
        cmocka_unit_test(passes_from_outside_run_in_their_places),
        cmocka_unit_test(passes_edit_bodies),
        cmocka_unit_test(sizes_are_not_erased),
        cmocka_unit_test(wrong_passes_are_refused),
        cmocka_unit_test(pipelines_have_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
