/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_models.c: real models: their counts, their inputs and outputs, and their numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "tools/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct weft_graph *load(struct weft_context *context, const char *relative)
{
    char path[1024];
    const char *source = getenv("WEFT_SOURCE");
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", relative);
    struct weft_graph *graph = NULL;
    if (weft_load(context, path, &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    assert_int_equal(weft_validate(graph), WEFT_OK);
    return graph;
}

static int count_op(const struct weft_graph *graph, int op)
{
    int count = 0;
    weft_foreach_node(graph, n) count += weft_opcode_of(graph, n) == op;
    return count;
}

static void assert_type(const struct weft_graph *graph, weft_val value, const char *name, const char *expected)
{
    struct weft_text text = {.context = graph->context};
    weft_type_print(graph->dims, weft_type_of(graph, value), &text);
    assert_string_equal(weft_value_of(graph, value)->name, name);
    assert_string_equal(text.data, expected);
    weft_text_close(&text);
}

static void test_mnist(void **state)
{
    (void)state;
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    struct weft_graph *graph = load(context, "tests/models/mnist/model.onnx");
    assert_int_equal(graph->params, 1); /* weights are listed as inputs too: IR version 3 */
    assert_int_equal(graph->returns, 1);
    assert_type(graph, graph->param[0], "Input3", "f32[1,1,28,28]");
    assert_type(graph, graph->ret[0].value, "Plus214_Output_0", "f32[1,10]");
    assert_int_equal(count_op(graph, WEFT_OP_conv), 2);
    assert_int_equal(count_op(graph, WEFT_OP_max_pool), 2);
    assert_int_equal(count_op(graph, WEFT_OP_relu), 2);
    assert_int_equal(count_op(graph, WEFT_OP_add), 3);
    assert_int_equal(count_op(graph, WEFT_OP_matmul), 1);
    assert_int_equal(count_op(graph, WEFT_OP_reshape), 2);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void load_array(const char *relative, struct weft_tensor *ret)
{
    char path[1024], message[WEFT_NPY_MESSAGE];
    const char *source = getenv("WEFT_SOURCE");
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", relative);
    if (!weft_npy_load(path, ret, message))
        fail_msg("%s", message);
}

/* The network's values reach some 10^4; the expected ones were computed in float, by longest sums of 256 products. */
static void test_mnist_numbers(void **state)
{
    (void)state;
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    struct weft_graph *graph = load(context, "tests/models/mnist/model.onnx");
    struct weft_tensor input, expected, output = {0};
    load_array("tests/models/mnist/input_0.npy", &input);
    load_array("tests/models/mnist/output_0.npy", &expected);
    assert_int_equal(weft_evaluate(graph, &input, 1, &output, 1), WEFT_OK);
    assert_int_equal(output.rank, 2);
    assert_int_equal(output.extent[1], 10);
    double largest = 0;
    for (int i = 0; i < 10; i++)
        largest = fmax(largest, fabs((double)((const float *)expected.data)[i]));
    assert_true(largest > 1);
    for (int i = 0; i < 10; i++)
        assert_true(fabs((double)((const float *)output.data)[i] - (double)((const float *)expected.data)[i]) <=
                    256 * 0x1p-24 * largest);
    weft_tensor_free(context, &output);
    weft_npy_free(&input);
    weft_npy_free(&expected);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void test_detector(void **state)
{
    (void)state;
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    struct weft_graph *graph = load(context, "examples/models/ultraface-rfb-320/model.onnx");
    assert_int_equal(graph->params, 1);
    assert_int_equal(graph->returns, 2);
    assert_type(graph, graph->param[0], "input", "f32[1,3,240,320]");
    assert_type(graph, graph->ret[0].value, "scores", "f32[1,4420,2]");
    assert_type(graph, graph->ret[1].value, "boxes", "f32[1,4420,4]");
    assert_int_equal(count_op(graph, WEFT_OP_conv), 52);
    assert_int_equal(count_op(graph, WEFT_OP_relu), 37);
    assert_int_equal(count_op(graph, WEFT_OP_transpose), 8);
    assert_int_equal(count_op(graph, WEFT_OP_slice), 4);
    assert_int_equal(count_op(graph, WEFT_OP_softmax), 1);
    int mapped = 0;
    weft_foreach_node(graph, n)
    {
        const struct weft_constant *constant = weft_node_of(graph, n)->constant;
        mapped += constant && constant->kind == WEFT_CONST_BLOB && constant->blob->mapped;
    }
    assert_true(mapped > 52); /* weights stay in the file */
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_mnist_numbers),
        cmocka_unit_test(test_detector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
