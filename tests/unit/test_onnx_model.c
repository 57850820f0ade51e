/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_model.c: what a model says about itself: opsets, functions that differ in domain or overload only, names
 * that are given twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "tests/unit/onnx_writer.h"

static void put_opset(struct bytes *message, unsigned number, const char *domain, int64_t version)
{
    struct bytes opset = {.count = 0};
    put_text(&opset, 1, domain);
    put_integer(&opset, 2, version);
    put_message(message, number, &opset);
}

/* A model without an opset: y = Abs(x). */
static struct bytes bare_model(int64_t ir_version)
{
    struct bytes graph = {.count = 0}, model = {.count = 0};
    put_input(&graph, "x", "2");
    put_node(&graph, "Abs", "x", "y");
    put_output(&graph, "y");
    put_integer(&model, 1, ir_version);
    put_message(&model, 7, &graph);
    return model;
}

static void test_opsets(void **state)
{
    (void)state;
    const char *text = "graph @main(%x: f32[2]) {\n  %y: f32[2] = abs %x\n  return %y\n}\n";
    struct bytes model = bare_model(8);
    expect_error(&model, WEFT_ERR_INVALID, "the model does not state its opset");
    put_opset(&model, 8, "com.microsoft", 1);
    expect_error(&model, WEFT_ERR_INVALID, "the model does not state its opset");
    put_opset(&model, 8, "ai.onnx", 13);
    expect_text(&model, text);
    put_opset(&model, 8, "", 13);
    expect_text(&model, text);
    put_opset(&model, 8, "", 17);
    expect_error(&model, WEFT_ERR_INVALID, "the model states two opsets, 13 and 17");
    model = bare_model(2); /* of the days before opset_import */
    expect_text(&model, text);
}

/* Ops of another domain need no opset of ONNX's own. */
static void test_no_opset_needed(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, model = {.count = 0};
    struct bytes node = node_of("QuickGelu", "x", "y");
    put_text(&node, 7, "com.microsoft");
    put_float_attribute(&node, "alpha", 1);
    put_input(&graph, "x", "2");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    put_integer(&model, 1, 8);
    put_message(&model, 7, &graph);
    put_opset(&model, 8, "com.microsoft", 1);
    expect_text(&model, "graph @main(%x: f32[2]) {\n"
                        "  %0: f32[2] = const value=1\n"
                        "  %1: f32[2] = mul %x, %0\n"
                        "  %2: f32[2] = sigmoid %1\n"
                        "  %y: f32[2] = mul %x, %2\n"
                        "  return %y\n}\n");
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* A function F of one op, in a domain and an overload. */
static void put_function(struct bytes *model, const char *domain, const char *overload, const char *op, int64_t opset)
{
    struct bytes function = {.count = 0};
    const struct bytes node = node_of(op, "a", "b");
    put_text(&function, 1, "F");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_message(&function, 7, &node);
    put_opset(&function, 9, "", opset);
    put_text(&function, 10, domain);
    put_text(&function, 13, overload);
    put_message(model, 25, &function);
}

static void put_call(struct bytes *graph, const char *domain, const char *overload, const char *from, const char *to)
{
    struct bytes node = node_of("F", from, to);
    put_text(&node, 7, domain);
    put_text(&node, 8, overload);
    put_message(graph, 1, &node);
}

static struct bytes calling_model(void)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2");
    put_call(&graph, "one", "", "x", "p");
    put_call(&graph, "two", "", "p", "q");
    put_call(&graph, "one", "int", "q", "y");
    put_output(&graph, "y");
    return model_of(&graph, 8, 13);
}

static void test_overloads(void **state)
{
    (void)state;
    struct bytes model = calling_model();
    put_function(&model, "one", "", "Abs", 13);
    put_function(&model, "one", "int", "Neg", 13);
    put_function(&model, "two", "", "Exp", 13);
    expect_text(&model, "graph @main(%x: f32[2]) {\n"
                        "  %p: f32[2] = abs %x\n"
                        "  %q: f32[2] = exp %p\n"
                        "  %y: f32[2] = neg %q\n"
                        "  return %y\n}\n");
    put_function(&model, "one", "int", "Exp", 13);
    expect_error(&model, WEFT_ERR_INVALID, "F: the model defines this function twice");
}

/* A call to an overload that is not there, and a function in an opset that nobody knows. */
static void test_wrong_calls(void **state)
{
    (void)state;
    struct bytes model = calling_model();
    put_function(&model, "one", "", "Abs", 13);
    put_function(&model, "two", "", "Exp", 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "unsupported op one.F: 1 node, first \"F_y\"");
    model = calling_model();
    put_function(&model, "one", "", "Abs", 13);
    put_function(&model, "two", "", "Exp", 99);
    put_function(&model, "one", "int", "Neg", 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "F: its function uses opset 99; weft reads 1 to 28");
}

/* --- names and numbers that are given twice ----------------------------------------------------------------------- */

static void test_attribute_twice(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, node = node_of("Elu", "x", "y");
    put_float_attribute(&node, "alpha", 1);
    put_float_attribute(&node, "alpha", 2);
    put_input(&graph, "x", "2");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_INVALID, "Elu: attribute alpha is given twice");
}

/* Before opset 18 axes are no input; an axis is named once. */
static void test_reduction_axes(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 3");
    put_ints(&graph, "axes", 2, (const int64_t[]){1, -1});
    put_node(&graph, "ReduceMax", "x,axes", "y");
    put_output(&graph, "y");
    struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_INVALID, "ReduceMax: 2 inputs do not fit opset 13");
    model = model_of(&graph, 8, 18);
    expect_error(&model, WEFT_ERR_INVALID, "ReduceMax: axis 1 is named twice");
}

/* A bound that no integer of 64 bits holds is an error, not what a cast makes of it. */
static void test_number_too_large(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, node = node_of("Pad", "x", "y");
    put_float_attribute(&node, "value", 1e30f);
    put_ints_attribute(&node, "pads", 2, (const int64_t[]){1, 1});
    put_value(&graph, 11, "x", 6, "2");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 7);
    expect_error(&model, WEFT_ERR_INVALID, "Pad: the number 1e+30 is none of i32");
}

static void test_quantized_type_twice(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, node = node_of("QuantizeLinear", "x,scale,zero", "y");
    put_int_attribute(&node, "output_dtype", 3);
    put_input(&graph, "x", "2");
    put_input(&graph, "scale", "");
    put_value(&graph, 11, "zero", 2, "");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 10, 21);
    expect_error(&model, WEFT_ERR_INVALID, "attribute output_dtype is i8, but the zero point is u8");
}

/* --- inputs that are fixed ---------------------------------------------------------------------------------------- */

/* y = Reshape(x, s) with x: f32[N,6] and s: i64[R]; t: f32[N] is an output as it is. */
static struct bytes reshaping_model(void)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 6");
    put_value(&graph, 11, "s", 7, "R");
    put_input(&graph, "t", "N");
    put_node(&graph, "Reshape", "x,s", "y");
    put_output(&graph, "y");
    put_output(&graph, "t");
    return model_of(&graph, 8, 13);
}

/* Loads a model with fixed inputs: text of the graph, or errors. */
static void expect_fixed_in(struct bytes model, size_t count, const struct weft_fixed_input *fixed, int status,
                            const char *expected)
{
    struct folder folder = open_folder();
    struct weft_graph *graph = NULL;
    char *text = NULL;
    write_file(folder.model, model.data, model.count);
    assert_int_equal(weft_load_fixed(folder.context, folder.model, fixed, count, &graph), status);
    if (status == WEFT_OK) {
        assert_int_equal(weft_print(graph, &text), WEFT_OK);
        assert_string_equal(text + strcspn(text, "\n") + 1, expected);
        weft_free_text(folder.context, text);
        weft_graph_destroy(graph);
    } else if (!strstr(weft_last_error(folder.context), expected)) {
        fail_msg("\"%s\" is not in: %s", expected, weft_last_error(folder.context));
    }
    close_folder(&folder);
}

static void expect_fixed(size_t count, const struct weft_fixed_input *fixed, int status, const char *expected)
{
    expect_fixed_in(reshaping_model(), count, fixed, status, expected);
}

/* Files from before IR version 4 list weights as inputs; nobody can fix those. */
static void test_inputs_that_can_be_fixed(void **state)
{
    (void)state;
    int64_t sizes[] = {3, 4};
    struct weft_tensor shape = {.data = sizes, .dtype = WEFT_I64, .rank = 1, .extent = {2}, .stride = {1}};
    struct bytes graph = {.count = 0};
    put_value(&graph, 11, "weight", 7, "2");
    put_ints(&graph, "weight", 2, sizes);
    for (char name[] = "shape_a"; name[6] <= 'j'; name[6]++)
        put_value(&graph, 11, name, 7, "2");
    put_node(&graph, "Add", "shape_a,weight", "y");
    put_value(&graph, 12, "y", 7, "");
    const struct bytes model = model_of(&graph, 3, 13);
    const struct weft_fixed_input none[] = {{"shape_a", &shape}, {"shape_x", &shape}}, weight[] = {{"weight", &shape}};
    expect_fixed_in(model, 1, none + 1, WEFT_ERR_ARGUMENT,
                    "shape_x: the model has no such input to fix; it has shape_a, shape_b, shape_c, shape_d, shape_e, "
                    "shape_f, shape_g, shape_h and 2 more (did you mean shape_a?)");
    expect_fixed_in(model, 2, none, WEFT_ERR_ARGUMENT, "it has shape_b, shape_c, shape_d, shape_e, shape_f, shape_g, "
                                                       "shape_h, shape_i and 1 more (did you mean shape_b?)");
    expect_fixed_in(model, 1, weight, WEFT_ERR_ARGUMENT, "weight: the model has a value for this input");
}

static void test_fixed_inputs(void **state)
{
    (void)state;
    int64_t sizes[] = {3, 4};
    float zeros[12] = {0};
    struct weft_tensor shape = {.data = sizes, .dtype = WEFT_I64, .rank = 1, .extent = {2}, .stride = {1}};
    struct weft_tensor x = {.data = zeros, .dtype = WEFT_F32, .rank = 2, .extent = {2, 6}, .stride = {6, 1}};
    struct weft_tensor t = {.data = zeros, .dtype = WEFT_F32, .rank = 1, .extent = {3}, .stride = {1}};
    const struct weft_fixed_input one[] = {{"s", &shape}}, both[] = {{"s", &shape}, {"x", &x}};
    const struct weft_fixed_input wrong[] = {{"x", &x}, {"t", &t}}, twice[] = {{"s", &shape}, {"s", &shape}};
    sizes[0] = -1;
    sizes[1] = 3;
    expect_fixed(1, one, WEFT_OK, "graph @main<N>(%x: f32[N,6], %t: f32[N]) {\n"
                                  "  %0: i64[2] = const value=[-1 3]\n"
                                  "  %y: f32[2*N,3] = reshape %x\n"
                                  "  return %y, %t\n}\n");
    sizes[0] = 3;
    sizes[1] = 4;
    expect_fixed(2, both, WEFT_OK, "graph @main(%t: f32[2]) {\n" /* N is 2 */
                                   "  %0: i64[2] = const value=[3 4]\n"
                                   "  %1: f32[2,6] = const value=[0 0 0 0 0 0 0 0 0 0 0 0]\n"
                                   "  %y: f32[3,4] = reshape %1\n"
                                   "  return %y, %t\n}\n");
    expect_fixed(2, wrong, WEFT_ERR_ARGUMENT, "t: axis 0 of the fixed value has 3 elements");
    expect_fixed(2, twice, WEFT_ERR_ARGUMENT, "s: the input is fixed already");
    expect_fixed(1, &(struct weft_fixed_input){"r", &shape}, WEFT_ERR_ARGUMENT, "r: the model has no such input");
    expect_fixed(1, &(struct weft_fixed_input){"t", &shape}, WEFT_ERR_ARGUMENT, "t: the fixed value is i64");
    expect_fixed(1, &(struct weft_fixed_input){"x", &t}, WEFT_ERR_ARGUMENT, "x: the fixed value has 1 axes");
    x.stride[0] = 7;
    expect_fixed(1, &(struct weft_fixed_input){"x", &x}, WEFT_ERR_ARGUMENT, "x: the fixed value is not packed");
    x.extent[0] = -1;
    expect_fixed(1, &(struct weft_fixed_input){"x", &x}, WEFT_ERR_ARGUMENT, "x: the fixed value has extents that no");
    x.extent[0] = (int64_t)1 << 60;
    expect_fixed(1, &(struct weft_fixed_input){"x", &x}, WEFT_ERR_ARGUMENT, "x: the fixed value has extents that no");
    t.data = NULL;
    expect_fixed(1, &(struct weft_fixed_input){"t", &t}, WEFT_ERR_ARGUMENT, "t: the fixed value has no data");
    x.extent[0] = 0; /* of nothing, no stride counts */
    x.stride[0] = 99;
    sizes[0] = 0;
    const struct weft_fixed_input nothing[] = {{"s", &shape}, {"x", &x}};
    expect_fixed(2, nothing, WEFT_OK, "graph @main(%t: f32[0]) {\n"
                                      "  %0: i64[2] = const value=[0 4]\n"
                                      "  %1: f32[0,6] = const value=0\n"
                                      "  %y: f32[0,4] = reshape %1\n"
                                      "  return %y, %t\n}\n");
    expect_fixed(0, NULL, WEFT_ERR_UNSUPPORTED, "--fix s=FILE.npy");
    expect_fixed(1, NULL, WEFT_ERR_ARGUMENT, "");
}

static void put_scoped_node(struct bytes *graph, const char *in, const char *out, const char *key, const char *value)
{
    struct bytes node = node_of("Abs", in, out), entry = {.count = 0};
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_message(&node, 9, &entry);
    put_message(graph, 1, &node);
}

/* The modules that PyTorch's exporter notes beside a node are kept, also by copies of the graph. */
static void test_name_scopes(void **state)
{
    (void)state;
    static const struct {
        const char *value, *path; /* NULL: nothing is noted */
    } rows[] = {
        {"['', 'model', 'model.layer.0', 'abs_1']", "model\nmodel.layer.0"},
        {"['', \"it's\", 'abs_2']", "it's"},
        {"['', 'abs_3']", NULL},
        {"", NULL},
        {"['", NULL},
        {"['a', 'b", NULL},
        {"no list", NULL},
    };
    struct bytes graph = {.count = 0};
    char in[8] = "x", out[8];
    put_input(&graph, "x", "2");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(out, sizeof out, "y%u", i);
        put_scoped_node(&graph, in, out, "pkg.torch.onnx.name_scopes", rows[i].value);
        memcpy(in, out, sizeof in);
    }
    put_scoped_node(&graph, in, "z", "namespace", "['', 'a', 'abs']"); /* another key */
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 17);
    struct folder folder = open_folder();
    struct weft_graph *read, *copy;
    assert_int_equal(load_model(&folder, &model, &read), WEFT_OK);
    weft_graph_copy(read, &copy);
    for (const struct weft_graph *g = read; g; g = g == read ? copy : NULL) {
        uint32_t noted = 0;
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
            char name[16];
            snprintf(name, sizeof name, "Abs_y%u", i);
            if (!rows[i].path)
                continue;
            assert_string_equal(g->scope[noted].node, name);
            assert_string_equal(g->scope[noted].path, rows[i].path);
            noted++;
        }
        assert_int_equal(g->scopes, noted);
    }
    weft_graph_destroy(copy);
    weft_graph_destroy(read);
    close_folder(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opsets),
        cmocka_unit_test(test_no_opset_needed),
        cmocka_unit_test(test_overloads),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_attribute_twice),
        cmocka_unit_test(test_reduction_axes),
        cmocka_unit_test(test_number_too_large),
        cmocka_unit_test(test_quantized_type_twice),
        cmocka_unit_test(test_fixed_inputs), cmocka_unit_test(test_inputs_that_can_be_fixed),
        cmocka_unit_test(test_name_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
