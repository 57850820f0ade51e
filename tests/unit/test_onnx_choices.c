/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_choices.c: numbers where ONNX's text leaves a result open or implementations disagree; onnx/README.md,
 * "Where others disagree", says what weft does and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "tests/unit/onnx_writer.h"

#include <math.h>

enum { MOST = 64 };
/* TensorProto.DataType */
enum { FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };

/* Evaluates a model and compares its first result, converted to double; the second way goes through a plan. */
static void expect_numbers(const struct bytes *model, size_t inputs, const struct weft_tensor *input, int count,
                           const double *expected)
{
    struct folder folder = open_folder();
    struct weft_graph *graph = NULL;
    struct weft_plan *plan;
    struct weft_execution *execution;
    if (load_model(&folder, model, &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(folder.context));
    struct weft_tensor result[4] = {{0}}, bound;
    const size_t results = graph->returns;
    assert_int_equal(weft_evaluate(graph, input, inputs, result, results), WEFT_OK);
    if (weft_compile(graph, NULL, &plan) != WEFT_OK || weft_execution_create(plan, &execution) != WEFT_OK)
        fail_msg("%s", weft_last_error(folder.context));
    for (size_t i = 0; i < inputs; i++)
        assert_int_equal(weft_bind_input(execution, i, &input[i]), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_int_equal(weft_output(execution, 0, &bound), WEFT_OK);
    const struct weft_tensor *both[] = {&result[0], &bound};
    for (int way = 0; way < 2; way++) {
        int64_t elements = 1;
        for (int axis = 0; axis < both[way]->rank; axis++)
            elements *= both[way]->extent[axis];
        assert_int_equal(elements, count);
        for (int i = 0; i < count; i++) {
            const void *data = both[way]->data;
            const double got = both[way]->dtype == WEFT_F32   ? (double)((const float *)data)[i]
                               : both[way]->dtype == WEFT_I32 ? ((const int32_t *)data)[i]
                               : both[way]->dtype == WEFT_U8  ? ((const uint8_t *)data)[i]
                                                              : ((const bool *)data)[i];
            if (!(fabs(got - expected[i]) <= 1e-5 * fabs(expected[i])))
                fail_msg("element %d is %.9g instead of %.9g (%s)", i, got, expected[i], way ? "plan" : "evaluator");
        }
    }
    for (size_t i = 0; i < results; i++)
        weft_tensor_free(folder.context, &result[i]);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    close_folder(&folder);
}

static struct weft_tensor tensor(void *data, int dtype, int rank, const int64_t *extent)
{
    struct weft_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        t.extent[i] = extent[i];
    weft_tensor_dense(&t);
    return t;
}

/* One node on f32 inputs x (and g), its only result y. */
static struct bytes model_of_node(const struct bytes *node, const char *x, const char *g, int64_t opset)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", x);
    if (g)
        put_input(&graph, "g", g);
    put_message(&graph, 1, node);
    put_output(&graph, "y");
    return model_of(&graph, 8, opset);
}

static void places_of_factors_are_exact(void **state)
{
    struct bytes graph = {.count = 0};
    float x[10], scale[1] = {0.6f};
    for (int i = 0; i < 10; i++)
        x[i] = (float)i;
    put_input(&graph, "x", "10");
    struct bytes scales = tensor_of("scales", 1, 1, &(int64_t){1});
    put_bytes(&scales, 9, scale, sizeof scale);
    put_message(&graph, 5, &scales);
    struct bytes node = node_of("Resize", "x,,scales", "y");
    put_text_attribute(&node, "nearest_mode", "floor");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 18);
    const struct weft_tensor input = tensor(x, WEFT_F32, 1, (const int64_t[]){10});
    /* (i + 1/2)·5/3 - 1/2 = 1/3, 2, 11/3, 16/3, 7, 26/3 */
    expect_numbers(&model, 1, &input, 6, (const double[]){0, 2, 3, 5, 7, 8});
}

static void corners_are_those_of_the_length_that_was_not_rounded(void **state)
{
    struct bytes graph = {.count = 0};
    float x[4] = {0, 1, 2, 3};
    put_input(&graph, "x", "4");
    struct bytes scales = tensor_of("scales", 1, 1, &(int64_t){1});
    put_bytes(&scales, 9, &(float){0.6f}, sizeof(float));
    put_message(&graph, 5, &scales);
    struct bytes node = node_of("Resize", "x,,scales", "y");
    put_text_attribute(&node, "mode", "linear");
    put_text_attribute(&node, "coordinate_transformation_mode", "align_corners");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 18);
    const struct weft_tensor input = tensor(x, WEFT_F32, 1, (const int64_t[]){4});
    expect_numbers(&model, 1, &input, 2, (const double[]){0, 3 / 1.4});
}

/* Numbers of PyTorch 2.13 and ONNX Runtime. */
static void cubic_samples_at_the_border_take_each_element_from_inside(void **state)
{
    struct bytes node = node_of("GridSample", "x,g", "y");
    put_text_attribute(&node, "mode", "cubic");
    put_text_attribute(&node, "padding_mode", "border");
    const struct bytes model = model_of_node(&node, "1 1 4 4", "1 1 2 2", 20);
    float x[16], g[] = {-1.2f, -1.0f, 0.2f, 0.99f};
    for (int i = 0; i < 16; i++)
        x[i] = (float)pow(i + 1, 1.5);
    const struct weft_tensor input[] = {tensor(x, WEFT_F32, 4, (const int64_t[]){1, 1, 4, 4}),
                                        tensor(g, WEFT_F32, 4, (const int64_t[]){1, 1, 2, 2})};
    expect_numbers(&model, 2, input, 2, (const double[]){0.0343195762, 59.3975891});
}

static void same_padding_is_never_negative(void **state)
{
    struct bytes node = node_of("MaxPool", "x", "y");
    put_ints_attribute(&node, "kernel_shape", 1, &(int64_t){2});
    put_ints_attribute(&node, "strides", 1, &(int64_t){5});
    put_text_attribute(&node, "auto_pad", "SAME_UPPER");
    const struct bytes model = model_of_node(&node, "1 1 10", NULL, 17);
    float x[10];
    for (int i = 0; i < 10; i++)
        x[i] = (float)i;
    const struct weft_tensor input = tensor(x, WEFT_F32, 3, (const int64_t[]){1, 1, 10});
    expect_numbers(&model, 1, &input, 2, (const double[]){1, 6});
}

/* Each kind of pool, where the kernel reaches over the end by less than a stride. */
static void one_window_may_be_larger_than_what_there_is(void **state)
{
    static const struct {
        const char *op;
        double expected[2];
    } pools[] = {{"MaxPool", {3, 4}}, {"AveragePool", {2, 3}}, {"LpPool", {3.16227766, 4.47213595}}};
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        struct bytes node = node_of(pools[i].op, "x", "y");
        put_ints_attribute(&node, "kernel_shape", 2, (const int64_t[]){3, 1});
        put_ints_attribute(&node, "strides", 2, (const int64_t[]){2, 1});
        put_int_attribute(&node, "ceil_mode", 1);
        const struct bytes model = model_of_node(&node, "1 1 2 2", NULL, 19);
        float x[] = {1, 2, 3, 4};
        const struct weft_tensor input = tensor(x, WEFT_F32, 4, (const int64_t[]){1, 1, 2, 2});
        expect_numbers(&model, 1, &input, 2, pools[i].expected);
    }
    struct bytes node = node_of("MaxPool", "x", "y"); /* by a whole stride there is no window */
    put_ints_attribute(&node, "kernel_shape", 2, (const int64_t[]){4, 1});
    put_ints_attribute(&node, "strides", 2, (const int64_t[]){2, 1});
    put_int_attribute(&node, "ceil_mode", 1);
    const struct bytes model = model_of_node(&node, "1 1 2 2", NULL, 19);
    expect_error(&model, WEFT_ERR_INVALID, "no window of 4 taps fits into spatial axis 0");
}

static void zeros_are_quantised_with_a_scale_of_one(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "3");
    put_node(&graph, "DynamicQuantizeLinear", "x", "q,y,z");
    put_output(&graph, "y");
    put_output(&graph, "q");
    const struct bytes model = model_of(&graph, 8, 17);
    float x[3] = {0, 0, 0};
    const struct weft_tensor input = tensor(x, WEFT_F32, 1, (const int64_t[]){3});
    expect_numbers(&model, 1, &input, 1, (const double[]){1});
    x[1] = 51;
    expect_numbers(&model, 1, &input, 1, (const double[]){0.2});
}

static void what_an_integer_cannot_hold_is_cut_to_its_low_bits(void **state)
{
    struct bytes node = node_of("Cast", "x", "y");
    put_int_attribute(&node, "to", 6);
    const struct bytes model = model_of_node(&node, "6", NULL, 17);
    float x[] = {INFINITY, -INFINITY, NAN, 3e9f, -3e9f, -300.7f};
    const struct weft_tensor input = tensor(x, WEFT_F32, 1, (const int64_t[]){6});
    expect_numbers(&model, 1, &input, 6, (const double[]){-1, 0, 0, -1294967296, 1294967296, -300});
}

static void roots_and_logarithms_of_integers_are_truncated(void **state)
{
    static const struct {
        const char *op;
        double expected[2];
    } reductions[] = {
        {"ReduceL1", {7, 14}},     {"ReduceL2", {5, 10}},       {"ReduceLogSum", {1, 2}}, {"ReduceLogSumExp", {4, 8}},
        {"ReduceMean", {3, 7}},    {"ReduceSumSquare", {25, 100}}, {"ReduceProd", {12, 48}}, {"ReduceMax", {4, 8}},
        {"ReduceMin", {3, 6}},     {"ReduceSum", {7, 14}},
    };
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        struct bytes graph = {.count = 0}, node = node_of(reductions[i].op, "x", "y");
        put_value(&graph, 11, "x", 6, "2 2");
        put_int_attribute(&node, "keepdims", 0);
        put_ints_attribute(&node, "axes", 1, &(int64_t){1});
        put_message(&graph, 1, &node);
        put_output(&graph, "y");
        const struct bytes model = model_of(&graph, 7, 12);
        int32_t x[] = {3, 4, 6, 8};
        const struct weft_tensor input = tensor(x, WEFT_I32, 2, (const int64_t[]){2, 2});
        expect_numbers(&model, 1, &input, 2, reductions[i].expected);
    }
}

static void bools_are_scattered_by_or_and_and(void **state)
{
    static const struct {
        const char *word;
        double expected[4];
    } forms[] = {{"add", {1, 1, 1, 0}}, {"max", {1, 1, 1, 0}}, {"mul", {0, 1, 0, 0}}, {"min", {0, 1, 0, 0}}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int nd = 0; nd < 2; nd++) {
            struct bytes graph = {.count = 0}, node = node_of(nd ? "ScatterND" : "ScatterElements", "x,i,u", "y");
            put_value(&graph, 11, "x", 9, "4");
            put_value(&graph, 11, "i", 7, nd ? "4 1" : "4");
            put_value(&graph, 11, "u", 9, "4");
            put_text_attribute(&node, "reduction", forms[i].word);
            put_message(&graph, 1, &node);
            put_output(&graph, "y");
            const struct bytes model = model_of(&graph, 8, 18);
            bool x[] = {true, true, false, false}, u[] = {false, true, true, false};
            int64_t at[] = {0, 1, 2, 3};
            const struct weft_tensor input[] = {tensor(x, WEFT_BOOL, 1, (const int64_t[]){4}),
                                                tensor(at, WEFT_I64, nd ? 2 : 1, (const int64_t[]){4, 1}),
                                                tensor(u, WEFT_BOOL, 1, (const int64_t[]){4})};
            expect_numbers(&model, 3, input, 4, forms[i].expected);
        }
}

/* --- precision and types ------------------------------------------------------------------------------------------ */

/* A node whose first input, x, is one f16 row; its result as f32. */
static struct bytes model_of_halves(const struct bytes *node, const char *extents)
{
    struct bytes graph = {.count = 0}, cast = node_of("Cast", "h", "y");
    put_value(&graph, 11, "x", FLOAT16, extents);
    put_message(&graph, 1, node);
    put_int_attribute(&cast, "to", FLOAT);
    put_message(&graph, 1, &cast);
    put_output(&graph, "y");
    return model_of(&graph, 8, 17);
}

/* 2^-13, whose square f16 does not hold, and 300, whose square is larger than all of f16. */
static void squares_of_halves_are_not_rounded(void **state)
{
    enum { SMALL = 0x0800, LARGE = 0x5cb0 };
    struct bytes node = node_of("LpNormalization", "x", "h");
    uint16_t one[] = {SMALL};
    const struct bytes norm = model_of_halves(&node, "1");
    const struct weft_tensor single = tensor(one, WEFT_F16, 1, (const int64_t[]){1});
    expect_numbers(&norm, 1, &single, 1, (const double[]){1});

    node = node_of("MeanVarianceNormalization", "x", "h");
    put_ints_attribute(&node, "axes", 1, &(int64_t){0});
    uint16_t two[] = {SMALL, SMALL | 0x8000};
    const struct bytes variance = model_of_halves(&node, "2");
    const struct weft_tensor pair = tensor(two, WEFT_F16, 1, (const int64_t[]){2});
    expect_numbers(&variance, 1, &pair, 2, (const double[]){1, -1});

    node = node_of("LRN", "x", "h");
    put_int_attribute(&node, "size", 1);
    put_float_attribute(&node, "alpha", 1);
    put_float_attribute(&node, "beta", 0.5f);
    uint16_t large[] = {LARGE};
    const struct bytes response = model_of_halves(&node, "1 1 1");
    const struct weft_tensor channel = tensor(large, WEFT_F16, 3, (const int64_t[]){1, 1, 1});
    expect_numbers(&response, 1, &channel, 1, (const double[]){1});

    node = node_of("GlobalLpPool", "x", "h");
    const struct bytes pool = model_of_halves(&node, "1 1 1");
    expect_numbers(&pool, 1, &channel, 1, (const double[]){300});
}

static void statistics_of_a_layer_are_of_their_own_type(void **state)
{
    struct bytes graph = {.count = 0};
    put_value(&graph, 11, "x", DOUBLE, "2");
    put_value(&graph, 11, "s", DOUBLE, "2");
    put_node(&graph, "LayerNormalization", "x,s", "y,m,d");
    put_output(&graph, "m");
    put_output(&graph, "d");
    const struct bytes model = model_of(&graph, 8, 17);
    double x[] = {1, 2}, scale[] = {1, 1};
    const struct weft_tensor input[] = {tensor(x, WEFT_F64, 1, (const int64_t[]){2}),
                                        tensor(scale, WEFT_F64, 1, (const int64_t[]){2})};
    expect_numbers(&model, 2, input, 1, (const double[]){1.5});
}

/* 256^1.003, whose exponent bf16 would round to 1. */
static void an_exponent_is_not_rounded(void **state)
{
    struct bytes graph = {.count = 0}, cast = node_of("Cast", "p", "y");
    put_value(&graph, 11, "x", BFLOAT16, "1");
    put_value(&graph, 11, "n", FLOAT, "1");
    put_node(&graph, "Pow", "x,n", "p");
    put_int_attribute(&cast, "to", FLOAT);
    put_message(&graph, 1, &cast);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 15);
    uint16_t x[] = {0x4380};
    float n[] = {1.003f};
    const struct weft_tensor input[] = {tensor(x, WEFT_BF16, 1, (const int64_t[]){1}),
                                        tensor(n, WEFT_F32, 1, (const int64_t[]){1})};
    expect_numbers(&model, 2, input, 1, (const double[]){260});
}

/* The low bits of 3^200; as i8 that exponent would be -56. */
static void an_exponent_may_be_wider_than_an_integer(void **state)
{
    struct bytes graph = {.count = 0}, cast = node_of("Cast", "p", "y");
    put_value(&graph, 11, "x", INT8, "1");
    put_value(&graph, 11, "n", INT64, "1");
    put_node(&graph, "Pow", "x,n", "p");
    put_int_attribute(&cast, "to", INT32);
    put_message(&graph, 1, &cast);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 15);
    int8_t x[] = {3};
    int64_t n[] = {200};
    const struct weft_tensor input[] = {tensor(x, WEFT_I8, 1, (const int64_t[]){1}),
                                        tensor(n, WEFT_I64, 1, (const int64_t[]){1})};
    expect_numbers(&model, 2, input, 1, (const double[]){-95});
}

/* A mean of f32 beside data of f16, in which it would be 1. */
static void parameters_of_a_batch_norm_are_not_rounded(void **state)
{
    struct bytes graph = {.count = 0}, cast = node_of("Cast", "h", "y");
    put_value(&graph, 11, "x", FLOAT16, "1 1");
    for (int i = 0; i < 4; i++)
        put_value(&graph, 11, &"a\0b\0c\0d"[2 * i], FLOAT, "1");
    struct bytes node = node_of("BatchNormalization", "x,a,b,c,d", "h");
    put_float_attribute(&node, "epsilon", 0);
    put_message(&graph, 1, &node);
    put_int_attribute(&cast, "to", FLOAT);
    put_message(&graph, 1, &cast);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 15);
    uint16_t x[] = {0x3c00};
    float one[] = {1}, zero[] = {0}, mean[] = {1 + 0x1p-13f};
    const int64_t extent[] = {1, 1};
    const struct weft_tensor input[] = {tensor(x, WEFT_F16, 2, extent), tensor(one, WEFT_F32, 1, extent),
                                        tensor(zero, WEFT_F32, 1, extent), tensor(mean, WEFT_F32, 1, extent),
                                        tensor(one, WEFT_F32, 1, extent)};
    expect_numbers(&model, 5, input, 1, (const double[]){-0x1p-13});
}

/* Two of four numbers are unlike, and there are scales for two. */
static void blocks_may_have_an_extent_that_comes_out_of_data(void **state)
{
    struct bytes graph = {.count = 0}, scale = {.count = 0}, node = node_of("QuantizeLinear", "u,s", "q");
    const float scales[] = {1, 0.5f};
    put_input(&graph, "x", "4");
    put_integer(&scale, 1, 2);
    put_integer(&scale, 2, FLOAT);
    put_text(&scale, 8, "s");
    put_bytes(&scale, 9, scales, sizeof scales);
    put_message(&graph, 5, &scale);
    put_node(&graph, "Unique", "x", "u");
    put_int_attribute(&node, "axis", 0);
    put_int_attribute(&node, "block_size", 1);
    put_message(&graph, 1, &node);
    put_output(&graph, "q");
    const struct bytes model = model_of(&graph, 8, 21);
    float x[] = {7, 3, 7, 3};
    const struct weft_tensor input = tensor(x, WEFT_F32, 1, (const int64_t[]){4});
    expect_numbers(&model, 1, &input, 2, (const double[]){3, 14});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_factors_are_exact),
        cmocka_unit_test(corners_are_those_of_the_length_that_was_not_rounded),
        cmocka_unit_test(cubic_samples_at_the_border_take_each_element_from_inside),
        cmocka_unit_test(same_padding_is_never_negative),
        cmocka_unit_test(one_window_may_be_larger_than_what_there_is),
        cmocka_unit_test(zeros_are_quantised_with_a_scale_of_one),
        cmocka_unit_test(what_an_integer_cannot_hold_is_cut_to_its_low_bits),
        cmocka_unit_test(roots_and_logarithms_of_integers_are_truncated),
        cmocka_unit_test(bools_are_scattered_by_or_and_and),
        cmocka_unit_test(squares_of_halves_are_not_rounded),
        cmocka_unit_test(statistics_of_a_layer_are_of_their_own_type),
        cmocka_unit_test(an_exponent_is_not_rounded),
        cmocka_unit_test(an_exponent_may_be_wider_than_an_integer),
        cmocka_unit_test(parameters_of_a_batch_norm_are_not_rounded),
        cmocka_unit_test(blocks_may_have_an_extent_that_comes_out_of_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
