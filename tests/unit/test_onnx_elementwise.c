/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_elementwise.c: what elementwise ONNX ops become where it is not the op of the same name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

enum { INT64 = 7, FLOAT8E4M3FN = 17, FLOAT8E4M3FNUZ = 18 };

static void test_pow_of_types(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "3");
    put_ints(&graph, "n", 1, &(int64_t){2});
    put_node(&graph, "Pow", "x,n", "a");
    put_node(&graph, "Pow", "n,x", "y");
    put_node(&graph, "Identity", "a", "z");
    put_output(&graph, "y");
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 15);
    expect_text(&model, "graph @main(%x: f32[3]) {\n"
                        "  %n: i64[1] = const value=2\n"
                        "  %0: f32[1] = cast %n\n"
                        "  %1: f32[3] = bcast %0 dims=[0]\n"
                        "  %z: f32[3] = pow %x, %1\n"
                        "  %2: f64[1] = cast %n\n"
                        "  %3: f64[3] = bcast %2 dims=[0]\n"
                        "  %4: f64[3] = cast %x\n"
                        "  %5: f64[3] = pow %3, %4\n"
                        "  %y: i64[3] = cast %5\n"
                        "  return %y, %z\n}\n");
}

static void test_bit_shift(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_ints(&graph, "x", 2, (const int64_t[]){1, 2});
    put_ints(&graph, "n", 1, &(int64_t){3});
    struct bytes node = node_of("BitShift", "x,n", "y");
    put_text_attribute(&node, "direction", "RIGHT");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 11);
    expect_text(&model, "graph @main() {\n"
                        "  %x: i64[2] = const value=[1 2]\n"
                        "  %n: i64[1] = const value=3\n"
                        "  %0: i64[2] = bcast %n dims=[0]\n"
                        "  %y: i64[2] = shift_right %x, %0\n"
                        "  return %y\n}\n");
}

/* Integers that f64 does not hold stay as they are. */
static void test_shrink_of_wide_integers(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_ints(&graph, "x", 2, (const int64_t[]){INT64_MAX, 1});
    struct bytes node = node_of("Shrink", "x", "y");
    put_float_attribute(&node, "lambd", 2);
    put_message(&graph, 1, &node);
    node = node_of("Shrink", "x", "z");
    put_float_attribute(&node, "bias", -3);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 9);
    expect_text(&model, "graph @main() {\n"
                        "  %x: i64[2] = const value=[9223372036854775807 1]\n"
                        "  %0: f64[2] = cast %x\n"
                        "  %1: f64[2] = const value=-2\n"
                        "  %2: bool[2] = lt %0, %1\n"
                        "  %3: f64[2] = const value=2\n"
                        "  %4: bool[2] = gt %0, %3\n"
                        "  %5: i64[2] = const value=0\n"
                        "  %6: i64[2] = select %4, %x, %5\n"
                        "  %y: i64[2] = select %2, %x, %6\n"
                        "  %7: i64[2] = const value=3\n"
                        "  %8: i64[2] = sub %x, %7\n"
                        "  %9: i64[2] = add %x, %7\n"
                        "  %10: f64[2] = cast %x\n"
                        "  %11: f64[2] = const value=-0.5\n"
                        "  %12: bool[2] = lt %10, %11\n"
                        "  %13: f64[2] = const value=0.5\n"
                        "  %14: bool[2] = gt %10, %13\n"
                        "  %15: i64[2] = const value=0\n"
                        "  %16: i64[2] = select %14, %9, %15\n"
                        "  %z: i64[2] = select %12, %8, %16\n"
                        "  return %y, %z\n}\n");
}

static void test_saturation(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "3");
    struct bytes node = node_of("Cast", "x", "a");
    put_int_attribute(&node, "to", FLOAT8E4M3FN);
    put_message(&graph, 1, &node);
    node = node_of("Cast", "x", "b");
    put_int_attribute(&node, "to", FLOAT8E4M3FN);
    put_int_attribute(&node, "saturate", 0);
    put_message(&graph, 1, &node);
    put_output(&graph, "a");
    put_output(&graph, "b");
    const struct bytes model = model_of(&graph, 9, 19);
    expect_text(&model, "graph @main(%x: f32[3]) {\n"
                        "  %a: f8e4m3[3] = cast %x\n"
                        "  %b: f8e4m3[3] = cast %x saturate=0\n"
                        "  return %a, %b\n}\n");
}

static void test_unknown_type(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "3");
    struct bytes node = node_of("Cast", "x", "y");
    put_int_attribute(&node, "to", FLOAT8E4M3FNUZ);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 9, 19);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "Cast: type float8e4m3fnuz (18) is not supported");
}

static void test_swish(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "3");
    put_node(&graph, "Swish", "x", "a");
    struct bytes node = node_of("Swish", "a", "y");
    put_float_attribute(&node, "alpha", 1.5f);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 11, 24);
    expect_text(&model, "graph @main(%x: f32[3]) {\n"
                        "  %a: f32[3] = silu %x\n"
                        "  %y: f32[3] = swish %a alpha=1.5\n"
                        "  return %y\n}\n");
}

static void test_slope(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 3 4");
    put_input(&graph, "s", "3 1");
    put_node(&graph, "PRelu", "x,s", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 16);
    expect_text(&model, "graph @main(%x: f32[2,3,4], %s: f32[3,1]) {\n"
                        "  %0: f32[2,3,4] = bcast %s dims=[1 2]\n"
                        "  %y: f32[2,3,4] = prelu %x, %0\n"
                        "  return %y\n}\n");
}

/* Before opset 7 a broadcast was asked for, and its place was stated. */
static void test_stated_broadcast(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 3 4");
    put_input(&graph, "b", "3");
    struct bytes node = node_of("Add", "x,b", "a");
    put_int_attribute(&node, "broadcast", 1);
    put_int_attribute(&node, "axis", 1);
    put_message(&graph, 1, &node);
    put_node(&graph, "PRelu", "a,b", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 3, 6);
    expect_text(&model, "graph @main(%x: f32[2,3,4], %b: f32[3]) {\n"
                        "  %0: f32[2,3,4] = bcast %b dims=[1]\n"
                        "  %a: f32[2,3,4] = add %x, %0\n"
                        "  %1: f32[2,3,4] = bcast %b dims=[1]\n"
                        "  %y: f32[2,3,4] = prelu %a, %1\n"
                        "  return %y\n}\n");
}

static void test_broadcast_that_does_not_fit(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 3 4");
    put_input(&graph, "b", "4");
    put_node(&graph, "Add", "x,b", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 3, 6);
    expect_error(&model, WEFT_ERR_INVALID, "input 1 has 1 axes, which do not fit the 3 axes of input 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pow_of_types), cmocka_unit_test(test_bit_shift), cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_shrink_of_wide_integers),
        cmocka_unit_test(test_unknown_type), cmocka_unit_test(test_swish),     cmocka_unit_test(test_slope),
        cmocka_unit_test(test_stated_broadcast), cmocka_unit_test(test_broadcast_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
