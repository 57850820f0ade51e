/* SPDX-License-Identifier: Apache-2.0 */
/* test_elementwise.c: functions, bits, quotients and casts of the reference evaluator, against values worked out by
 * hand or printed by numpy; and the types that the ops take. */
#include "ir/ir.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define INF INFINITY

static struct weft_context *context;

static void check_element(const struct weft_tensor *tensor, int64_t i, double wanted, const char *what)
{
    const bool real = weft_dtype_is_float(tensor->dtype);
    const double is = real ? weft_load_real(tensor->dtype, tensor->data, i)
                           : (double)weft_load_integer(tensor->dtype, tensor->data, i);
    const double bound = tensor->dtype == WEFT_F64 ? 1e-12 : tensor->dtype == WEFT_F32 ? 1e-6 : 0;
    const bool same = isnan(wanted) ? isnan(is)
                      : wanted == 0 ? is == 0 && (!real || signbit(is) == signbit(wanted))
                                    : is == wanted || fabs(is - wanted) <= bound * fabs(wanted);
    if (!same)
        fail_msg("element %lld is %.9g, not %.9g: %s", (long long)i, is, wanted, what);
}

/* Lines that define %r from constants, and its elements. Zeros have signs here. */
static void expect(const char *lines, size_t count, const double *wanted)
{
    char text[4096];
    const int length = snprintf(text, sizeof text, "weft 1\ngraph @g() {\n%s\nreturn %%r\n}\n", lines);
    assert_in_range(length, 1, (int)sizeof text - 1);
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), text);
    struct weft_tensor result = {0};
    assert_int_equal(weft_evaluate(graph, NULL, 0, &result, 1), WEFT_OK);
    int64_t elements = 1;
    for (int axis = 0; axis < result.rank; axis++)
        elements *= result.extent[axis];
    if (elements != (int64_t)count)
        fail_msg("%lld elements instead of %zu: %s", (long long)elements, count, lines);
    for (int64_t i = 0; i < elements; i++)
        check_element(&result, i, wanted[i], lines);
    weft_tensor_free(context, &result);
    weft_graph_destroy(graph);
}

#define COUNT(...) (sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define EXPECT(lines, ...) expect(lines, COUNT(__VA_ARGS__), (const double[]){__VA_ARGS__})

/* One op upon constants of a type: "op %a attributes" or "op %a, %b". */
static void expect_op(const char *op, const char *type, const char *a, const char *b, size_t count,
                      const double *wanted)
{
    char lines[1024];
    int length = snprintf(lines, sizeof lines, "%%a: %s[%zu] = const value=[%s]\n", type, count, a);
    if (b)
        length += snprintf(lines + length, sizeof lines - (size_t)length, "%%b: %s[%zu] = const value=[%s]\n", type,
                           count, b);
    snprintf(lines + length, sizeof lines - (size_t)length, "%%r: %s[%zu] = %s", type, count, op);
    expect(lines, count, wanted);
}
#define UNARY(op, a, ...)           expect_op(op, "f32", a, NULL, COUNT(__VA_ARGS__), (const double[]){__VA_ARGS__})
#define BINARY(op, type, a, b, ...) expect_op(op, type, a, b, COUNT(__VA_ARGS__), (const double[]){__VA_ARGS__})

static void test_functions(void **state)
{
    (void)state;
    UNARY("trunc %a", "1.7 -1.7 -0.5 nan inf", 1, -1, -0.0, NAN, INF);
    UNARY("exp2 %a", "3 -2 0.5 -inf 200 nan", 8, 0.25, 1.41421356237, 0, INF, NAN);
    UNARY("expm1 %a", "1e-10 -0.0 1 -inf inf", 1e-10, -0.0, 1.718281828459, -1, INF);
    UNARY("log2 %a", "8 0 -1 1 inf", 3, -INF, NAN, 0, INF);
    UNARY("log10 %a", "1000 0 -1 1", 3, -INF, NAN, 0);
    UNARY("log1p %a", "1e-10 -0.0 -1 -2 1", 1e-10, -0.0, -INF, NAN, 0.693147180560);
    UNARY("tan %a", "0 1 -1 inf", 0, 1.55740772465, -1.55740772465, NAN);
    UNARY("asin %a", "0 1 -0.5 2", 0, 1.57079632679, -0.523598775598, NAN);
    UNARY("acos %a", "1 -1 0.5 -2", 0, 3.14159265359, 1.04719755120, NAN);
    UNARY("atan %a", "0 1 -inf nan", 0, 0.785398163397, -1.57079632679, NAN);
    UNARY("sinh %a", "-0.0 1 -100", -0.0, 1.17520119364, -INF);
    UNARY("cosh %a", "0 1 -100", 1, 1.54308063482, INF);
    UNARY("asinh %a", "1e-10 1 -inf 1e30", 1e-10, 0.881373587020, -INF, 69.7707000096);
    UNARY("acosh %a", "1 2 0.5 inf", 0, 1.31695789692, NAN, INF);
    UNARY("atanh %a", "0 0.5 1 -1 2", 0, 0.549306144334, INF, -INF, NAN);
    UNARY("erfc %a", "0 1 5 -inf", 1, 0.157299207050, 1.53745979443e-12, 2);
    UNARY("softplus %a", "0 -20 100 -inf inf nan", 0.693147180560, 2.06115361819e-9, 100, 0, INF, NAN);
    EXPECT("%a: f32[4] = const value=[1 -inf inf nan]\n%r: bool[4] = is_inf %a", 0, 1, 1, 0);
    EXPECT("%a: f16[4] = const value=[1 -inf inf nan]\n%r: bool[4] = is_inf %a negative=0", 0, 0, 1, 0);
    EXPECT("%a: bf16[4] = const value=[1 -inf inf nan]\n%r: bool[4] = is_inf %a positive=0", 0, 1, 0, 0);
    EXPECT("%a: f32[2] = const value=[-inf inf]\n%r: bool[2] = is_inf %a positive=0 negative=0", 0, 0);
    expect("%a: f32[0,3] = const value=1\n%r: f32[0,3] = tan %a", 0, NULL);
}

static void test_activations(void **state)
{
    (void)state;
    UNARY("swish %a alpha=1.702", "0 1 -1 nan", 0, 0.845795789, -0.154204211, NAN);
    UNARY("mish %a", "0 1 -1 -200 nan", 0, 0.865098388, -0.303401461, -0.0, NAN);
    UNARY("softsign %a", "0 1 -3 nan", 0, 0.5, -0.75, NAN);
    UNARY("log_sigmoid %a", "0 -100 10 -inf", -0.693147180560, -100, -4.53988992168e-05, -INF);
    UNARY("thresholded_relu %a", "0.5 1 1.5 nan inf", 0, 0, 1.5, 0, INF);
    UNARY("thresholded_relu %a alpha=-2", "-3 -1.5", 0, -1.5);
    UNARY("shrink %a", "-1 -0.5 0.5 1 nan", -1, 0, 0, 1, 0);
    UNARY("shrink %a bias=1.5 lambda=1.5", "-2 -1.5 1.5 2 inf", -0.5, 0, 0, 0.5, INF);
    UNARY("elu %a", "-1 0 2 -inf nan", -0.632120558829, 0, 2, -1, NAN);
    UNARY("elu %a alpha=2", "-1 3 -0.0", -1.264241117657, 3, -0.0);
    UNARY("celu %a alpha=2", "-1 3 -inf", -0.786938680575, 3, -2);
    UNARY("selu %a", "-1 0 1 nan", -1.111330737812, 0, 1.050700987355, NAN);
    BINARY("prelu %a, %b", "f32", "-2 -2 3 nan", "0.5 -1 7 1", -1, 2, 3, NAN);
    BINARY("prelu %a, %b", "i32", "-2 3", "5 5", -10, 3);
    BINARY("prelu %a, %b", "u8", "200 3", "5 5", 200, 3);
    EXPECT("%a: f32[2,3] = const value=[1 3 3 -1 -2 -1]\n%r: f32[2,3] = hardmax %a axis=1", 0, 1, 0, 1, 0, 0);
    EXPECT("%a: f32[3,2] = const value=[inf 3 nan 3 nan -2]\n%r: f32[3,2] = hardmax %a axis=0", 0, 1, 1, 0, 0, 0);
}

static void test_pairs_of_floats(void **state)
{
    (void)state;
    BINARY("atan2 %a, %b", "f32", "1 0.0 -0.0 1 nan", "-1 -1 -1 inf 1", 2.35619449019, 3.14159265359, -3.14159265359, 0,
           NAN);
    BINARY("copysign %a, %b", "f32", "3 -3 0.0 inf", "-0.0 1 -2 -1", -3, 3, -0.0, -INF);
    BINARY("floor_div %a, %b", "f32", "7 -7 7 -7 1 -1 0.0", "2 2 -2 -2 0 0 0", 3, -4, -4, 3, INF, -INF, NAN);
    BINARY("floor_div %a, %b", "f32", "inf 1 -1 1", "1 inf inf nan", NAN, 0, -1, NAN);
    /* 1 / 0.1 is a little less than 10, for 0.1 as f64 is a little more than a tenth */
    BINARY("floor_div %a, %b", "f64", "1", "0.1", 9);
    BINARY("mod %a, %b form=trunc", "f32", "5 -5 inf 5 -0.0", "-3 3 1 inf 2", 2, -2, NAN, 5, -0.0);
    BINARY("mod %a, %b", "f32", "5 -5 5 -1 6", "-3 3 inf inf -3", -1, 1, 5, INF, -0.0);
}

static void test_fused(void **state)
{
    (void)state;
    /* (1 + 2^-12)² - (1 + 2^-11) = 2^-24: a product that is rounded first gives 0 */
    EXPECT("%a: f32[1] = const value=[1.000244140625]\n%c: f32[1] = const value=[-1.00048828125]\n"
           "%r: f32[1] = fma %a, %a, %c",
           0x1p-24);
    /* 2^-24 is half the distance of the numbers above 1: what is a little more decides */
    EXPECT("%a: f32[2] = const value=[5.9604645e-08 -5.9604645e-08]\n%b: f32[2] = const value=[1.0000001 1.0000001]\n"
           "%c: f32[2] = const value=[1 -1]\n%r: f32[2] = fma %a, %b, %c",
           1 + 0x1p-23, -1 - 0x1p-23);
    EXPECT("%a: i8[2] = const value=[100 -3]\n%b: i8[2] = const value=[3 3]\n%c: i8[2] = const value=[1 1]\n"
           "%r: i8[2] = fma %a, %b, %c",
           45, -8);
    EXPECT("%a: f32[2] = const value=[inf inf]\n%b: f32[2] = const value=[0 1]\n%c: f32[2] = const value=[1 -inf]\n"
           "%r: f32[2] = fma %a, %b, %c",
           NAN, NAN);
}

static void test_bits(void **state)
{
    (void)state;
    BINARY("bit_not %a", "u8", "0 255 170", "0 0 0", 255, 0, 85);
    BINARY("bit_not %a", "i16", "0 -1 5", "0 0 0", -1, 0, -6);
    BINARY("bit_and %a, %b", "i32", "12 -1", "10 7", 8, 7);
    BINARY("bit_or %a, %b", "u16", "12 256", "10 1", 14, 257);
    BINARY("bit_xor %a, %b", "i8", "12 -1", "10 127", 6, -128);
    BINARY("shift_left %a, %b", "u8", "1 3 255 1 1", "3 7 4 8 255", 8, 128, 240, 0, 0);
    BINARY("shift_right %a, %b", "u8", "16 255 255 255", "2 7 8 200", 4, 1, 0, 0);
    BINARY("shift_left %a, %b", "i32", "1 1 -1", "31 32 1", -2147483648.0, 0, -2);
    BINARY("shift_right %a, %b", "i8", "-128 -128 127 -1", "2 8 9 -1", -32, -1, 0, -1);
    BINARY("shift_right %a, %b", "u64", "18446744073709551615 8", "63 64", 1, 0);
}

static void test_whole_quotients(void **state)
{
    (void)state;
    BINARY("floor_div %a, %b", "i32", "7 -7 7 -7 5 6", "3 3 -3 -3 0 -3", 2, -3, -3, 2, 0, -2);
    BINARY("floor_div %a, %b", "i8", "-128 -128", "-1 3", -128, -43);
    BINARY("floor_div %a, %b", "u64", "18446744073709551615 5", "18446744073709551615 7", 1, 0);
    BINARY("pow %a, %b", "i64", "3 -2 2 0", "39 63 64 0", 4052555153018976267.0, -0x1p63, 0, 1);
}

static void test_casts(void **state)
{
    (void)state;
#define CAST(from, elements, to, ...)                                                                                  \
    do {                                                                                                               \
        char lines[512];                                                                                               \
        const size_t count = COUNT(__VA_ARGS__);                                                                       \
        snprintf(lines, sizeof lines, "%%a: %s[%zu] = const value=[%s]\n%%r: %s = cast %%a", from, count, elements,   \
                 to);                                                                                                  \
        expect(lines, count, (const double[]){__VA_ARGS__});                                                           \
    } while (0)
    CAST("f32", "448 449 480 1e9 -inf nan 0.001", "f8e4m3[7]", 448, 448, 448, 448, -448, NAN, 0x1p-9);
    EXPECT("%a: f32[4] = const value=[448 464 465 inf]\n%r: f8e4m3[4] = cast %a saturate=0", 448, 448, NAN, NAN);
    CAST("f32", "57344 1e9 -inf nan 3.25", "f8e5m2[5]", 57344, 57344, -57344, NAN, 3);
    EXPECT("%a: f32[3] = const value=[61439 61440 -inf]\n%r: f8e5m2[3] = cast %a saturate=0", 57344, INF, -INF);
    CAST("f8e5m2", "inf -3 nan", "f32[3]", INF, -3, NAN);
    CAST("f8e5m2", "inf -inf 1", "f8e5m2[3]", INF, -INF, 1);
    CAST("f8e5m2", "inf -inf 1", "f8e4m3[3]", 448, -448, 1);
    CAST("i4", "-8 7 3", "f16[3]", -8, 7, 3);
    CAST("i32", "-9 7 23", "i4[3]", 7, 7, 7);
    CAST("f32", "-1.9 15.9 17", "u4[3]", 15, 15, 1);
    CAST("i64", "16777217 -1 9007199254740993", "f32[3]", 16777216, -1, 9007199254740992.0);
    CAST("i32", "2049 2051 65520", "f16[3]", 2048, 2052, INF);
    CAST("f32", "300 -1 nan 1e30", "u8[4]", 44, 255, 0, 255);
    CAST("f32", "4294967296 -inf nan", "i32[3]", 0, 0, 0);
    CAST("f64", "1e30 -1e30 nan", "i64[3]", 0x1p63, -0x1p63, 0);
    CAST("f16", "0 -0.0 nan 2", "bool[4]", 0, 0, 1, 1);
    CAST("bool", "1 0", "bf16[2]", 1, 0);
#undef CAST
    EXPECT("%a: f32[2] = const value=[1 -0.0]\n%r: u32[2] = bitcast %a", 1065353216.0, 2147483648.0);
    EXPECT("%a: u16[2] = const value=[15360 64512]\n%r: f16[2] = bitcast %a", 1, -INF);
    EXPECT("%a: u8[2] = const value=[128 127]\n%r: i8[2] = bitcast %a", -128, 127);
}

static void refuse(const char *lines, const char *message)
{
    char text[1024];
    snprintf(text, sizeof text, "graph @g(%%f: f32[2], %%i: i32[2], %%h: f16[2], %%b: bool[2]) {\n%s\nreturn %%r\n}\n",
             lines);
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) == WEFT_OK)
        fail_msg("was accepted: %s", lines);
    if (!strstr(weft_last_error(context), message))
        fail_msg("'%s' is not in: %s", message, weft_last_error(context));
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("%r: f32[2] = bit_and %f, %f", "operand 0 is f32[2], but its elements must be an integer");
    refuse("%r: bool[2] = bit_not %b", "must be an integer");
    refuse("%r: i32[2] = atan2 %i, %i", "must be a float");
    refuse("%r: i32[2] = expm1 %i", "must be a float");
    refuse("%r: f32[2] = fma %f, %f, %h", "operand 2 is f16[2]");
    refuse("%r: f32[2] = prelu %f", "takes 2 operands");
    refuse("%r: bool[2] = is_inf %i", "must be a float");
    refuse("%r: bool[2] = is_inf %f positive=2", "from 0 to 1");
    refuse("%r: f16[2] = cast %f saturate=2", "from 0 to 1");
    refuse("%r: f16[2] = bitcast %f", "bits keep the shape and the width");
    refuse("%r: u32[1] = bitcast %f", "bits keep the shape and the width");
    refuse("%r: f32[2] = hardmax %f axis=1", "axis 1 does not exist");
}

static int setup(void **state)
{
    (void)state;
    return weft_open(NULL, &context);
}

static int teardown(void **state)
{
    (void)state;
    weft_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions), cmocka_unit_test(test_activations),
        cmocka_unit_test(test_pairs_of_floats), cmocka_unit_test(test_fused),
        cmocka_unit_test(test_bits), cmocka_unit_test(test_whole_quotients),
        cmocka_unit_test(test_casts), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
