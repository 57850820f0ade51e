/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_control.c: functions and control flow of ONNX models that are wrong, endless, or decided by sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

static void put_function(struct bytes *model, const char *name, const char *calls, unsigned times)
{
    struct bytes function = {.count = 0}, opset = {.count = 0};
    put_text(&function, 1, name);
    put_text(&function, 10, "my");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    for (unsigned i = 0; i < times; i++) {
        struct bytes node = node_of(calls, "a", i + 1 == times ? "b" : i ? "d" : "c");
        put_text(&node, 7, "my");
        put_message(&function, 7, &node);
    }
    put_integer(&opset, 2, 18);
    put_message(&function, 9, &opset);
    put_message(model, 25, &function);
}

static struct bytes call_model(const char *name)
{
    struct bytes graph = {.count = 0}, node = node_of(name, "x", "y");
    put_input(&graph, "x", "2");
    put_text(&node, 7, "my");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    return model_of(&graph, 8, 18);
}

static void test_recursion(void **state)
{
    (void)state;
    struct bytes model = call_model("Ping");
    put_function(&model, "Ping", "Pong", 1);
    put_function(&model, "Pong", "Ping", 1);
    expect_error(&model, WEFT_ERR_INVALID, "Ping: the function calls itself");
}

/* Twenty-four functions, each of which calls the next one twice. */
static void test_explosion(void **state)
{
    (void)state;
    struct bytes model = call_model("f0");
    for (unsigned i = 0; i < 24; i++) {
        char name[8], next[8];
        snprintf(name, sizeof name, "f%u", i);
        snprintf(next, sizeof next, "f%u", i + 1);
        put_function(&model, name, next, 2);
    }
    struct bytes function = {.count = 0}, node = node_of("Relu", "a", "b");
    put_text(&function, 1, "f24");
    put_text(&function, 10, "my");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_message(&function, 7, &node);
    put_message(&model, 25, &function);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "functions and loops make more than 65536 nodes");
}

static void test_missing_in_functions(void **state)
{
    (void)state;
    struct bytes model = call_model("Outer");
    put_function(&model, "Outer", "Nowhere", 2);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "unsupported op my.Nowhere: 2 nodes");
}

/* x.squeeze(0) as exporters write it: where the extent is 1 for some sizes, the others are given up. */
static void test_squeeze_in_a_branch(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, yes = {.count = 0}, no = {.count = 0};
    put_input(&graph, "x", "n 3");
    put_ints(&graph, "zero", 1, (const int64_t[]){0});
    put_ints(&graph, "one", 1, (const int64_t[]){1});
    put_node(&graph, "Shape", "x", "shape");
    put_node(&graph, "Gather", "shape,zero", "extent");
    put_node(&graph, "Equal", "extent,one", "same");
    put_node(&yes, "Squeeze", "x,zero", "t");
    put_output(&yes, "t");
    put_node(&no, "Identity", "x", "e");
    put_output(&no, "e");
    struct bytes node = node_of("If", "same", "y");
    put_graph_attribute(&node, "then_branch", &yes);
    put_graph_attribute(&node, "else_branch", &no);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    struct folder folder = open_folder();
    struct weft_graph *loaded = NULL;
    char *text = NULL;
    assert_int_equal(load_model(&folder, &model, &loaded), WEFT_OK);
    assert_int_equal(weft_print(loaded, &text), WEFT_OK);
    assert_non_null(strstr(text, "<n=1..1 hint=1>"));
    assert_non_null(strstr(text, "%y: f32[3] = reshape"));
    assert_null(strstr(text, " if "));
    weft_free_text(folder.context, text);
    weft_graph_destroy(loaded);
    close_folder(&folder);
}

static void test_narrowing(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "n 3");
    put_ints(&graph, "axes", 1, (const int64_t[]){0});
    put_node(&graph, "Squeeze", "x,axes", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<n=1..1 hint=1>(%x: f32[n,3]) {\n"
                        "  %axes: i64[1] = const value=0\n"
                        "  %0: f32[1,3] = slice %x start=[0 0] end=[1 3]\n"
                        "  %y: f32[3] = reshape %0\n"
                        "  return %y\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_explosion),
        cmocka_unit_test(test_missing_in_functions),
        cmocka_unit_test(test_squeeze_in_a_branch),
        cmocka_unit_test(test_narrowing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
