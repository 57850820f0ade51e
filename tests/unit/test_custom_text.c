/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops with several results and named values: as text, as copies, and from the builder. */
#include "plan_support.h"

static int runs_nothing(void *user, const struct weft_custom_call *call) { return 1; }

static int two_types(void *user, struct weft_custom_types *types)
{
    types->result = types->more[0] = types->operand[0];
    types->more[0].dtype = WEFT_I64;
    return 0;
}

static const struct weft_custom two = {.size = sizeof two, .name = "two", .least_operands = 1, .most_operands = 1,
                                       .results = 2, .run = runs_nothing, .type = two_types};

static void named_values_print_and_parse(void **state)
{
    static const char text[] =
        "weft 1\ngraph @g(%x: f32[4,2]) {\n"
        "  %y: f32[4,2], %m: bf16[] = custom %x function=unknown parameters=[0.5] with=[axis=-1 "
        "huge=9223372036854775807 "
        "one=1.0 tenth=0.1 big=1e+30 none=nan mode=\"a \\\"b\\\"\" axes=[0 2] empty=[] scales=[1.0 -0.5] "
        "names=[\"a\" \"b c\"] table=f32[2,2][1 2 3.5 4] bits=bool[3][1 0 1] point=i64[][7]]\n"
        "  return %y, %m\n}\n";
    struct weft_context *context = open_context(1);
    struct weft_graph *const graph = parse(context, text), *copy;
    char *printed;
    assert_int_equal(weft_print(graph, &printed), WEFT_OK);
    assert_string_equal(printed, text);
    weft_free_text(context, printed);
    assert_int_equal(weft_graph_clone(graph, &copy), WEFT_OK);
    assert_int_equal(weft_validate(copy), WEFT_OK);
    assert_int_equal(weft_print(copy, &printed), WEFT_OK);
    assert_string_equal(printed, text);
    weft_free_text(context, printed);
    struct weft_attribute with;
    assert_int_equal(weft_node_attribute(copy, weft_next_node(copy, (weft_node){0}), "with", &with), WEFT_OK);
    assert_int_equal(with.count, 14);
    assert_int_equal(weft_custom_value_of(with.values, with.count, "axes")->integers[1], 2);
    assert_int_equal(weft_custom_value_of(with.values, with.count, "table")->array->extent[1], 2);
    assert_null(weft_custom_value_of(with.values, with.count, "nothing"));
    weft_graph_destroy(copy);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void calls_that_differ_in_a_value_stay_two(void **state)
{
    static const char *const with[] = {"with=[a=1]", "with=[a=1.0]", "with=[b=1]", "with=[a=[1]]", "with=[a=\"1\"]", "",
                                       "with=[a=i64[][1]]"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        for (size_t k = 0; k < sizeof with / sizeof *with; k++) {
            struct weft_context *context = open_context(1);
            char text[400];
            snprintf(text, sizeof text, "graph @g(%%x: f32[4]) {\n"
                     "  %%a: f32[4], %%b: f32[4] = custom %%x function=f %s\n"
                     "  %%c: f32[4], %%d: f32[4] = custom %%x function=f %s\n"
                     "  %%e: f32[4] = add %%b, %%d\n  return %%e\n}\n",
                     with[i], with[k]);
            struct weft_graph *const graph = parse(context, text);
            assert_true(weft_run_pass(graph, "cse", NULL) >= 0);
            size_t nodes = 0;
            for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n))
                nodes++;
            assert_int_equal(nodes, i == k ? 2 : 3);
            weft_graph_destroy(graph);
            weft_close(context);
        }
}

static void the_builder_takes_values_and_types(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph;
    weft_val x, y[2];
    const weft_dim extent[] = {weft_extent(4), weft_extent(2)};
    assert_int_equal(weft_register(context, &two), WEFT_OK);
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    const struct weft_custom_value value = {.name = "scale", .kind = WEFT_CUSTOM_REAL, .real = 3};
    struct weft_attribute attribute[] = {{.name = "function", .word = "two"},
                                         {.name = "with", .values = &value, .count = 1}};
    struct weft_op op = {.size = sizeof op, .op = "custom", .name = "y", .operand = &x, .operands = 1,
                         .attribute = attribute, .attributes = 2};
    assert_int_equal(weft_append(graph, &op, y), WEFT_OK);
    assert_int_equal(weft_return(graph, y, 2), WEFT_OK);
    char *text;
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_non_null(strstr(text, "%y: f32[4,2], %0: i64[4,2] = custom %x function=two with=[scale=3.0]\n"));
    weft_free_text(context, text);
    /* of a function that nobody has: all types are stated */
    const struct weft_custom_type types[] = {{WEFT_F32, 2, {extent[0], extent[1]}}, {WEFT_I64, 1, {extent[0]}}};
    attribute[0].word = "unknown";
    op.name = "z";
    op.result = types;
    op.results = 2;
    assert_int_equal(weft_append(graph, &op, y), WEFT_OK);
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_non_null(strstr(text, "%z: f32[4,2], %1: i64[4] = custom %x function=unknown with=[scale=3.0]\n"));
    weft_free_text(context, text);
    const struct weft_custom_value twice[] = {value, value};
    attribute[1].values = twice;
    attribute[1].count = 2;
    op.name = "w";
    assert_int_equal(weft_append(graph, &op, y), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "two named values have the same name"));
    op.op = "relu";
    op.attributes = 0;
    assert_int_equal(weft_append(graph, &op, y), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "weft_op.results is for custom ops"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_values_print_and_parse),
        cmocka_unit_test(calls_that_differ_in_a_value_stay_two),
        cmocka_unit_test(the_builder_takes_values_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
