/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval.c: the reference evaluator, op by op, against values worked out by hand or printed by numpy. */
#include "tests/unit/eval_support.h"

/* --- elementwise ---------------------------------------------------------------------------------------------------
 */

static void test_unary_real(void **state)
{
    (void)state;
    UNARY("abs %a", "-1.5 2 -0.0 nan -inf", 1.5, 2, 0, NAN, INF);
    UNARY("neg %a", "1 -2 inf nan", -1, 2, -INF, NAN);
    UNARY("sign %a", "-3 0 7 nan inf", -1, 0, 1, NAN, 1);
    UNARY("relu %a", "-1 0 2 nan inf -inf", 0, 0, 2, NAN, INF, 0);
    UNARY("ceil %a", "1.2 -1.2 nan", 2, -1, NAN);
    UNARY("floor %a", "1.2 -1.2 -inf", 1, -2, -INF);
    UNARY("round %a", "0.5 1.5 2.5 -0.5 -1.5 2.6", 0, 2, 2, 0, -2, 3);
    UNARY("sqrt %a", "4 2 -1 inf", 2, 1.41421356237, NAN, INF);
    UNARY("rsqrt %a", "4 0.25 0", 0.5, 2, INF);
    UNARY("recip %a", "4 -0.5 0", 0.25, -2, INF);
    UNARY("exp %a", "0 1 -inf 1000", 1, 2.718281828459, 0, INF);
    UNARY("log %a", "1 0 -1 10", 0, -INF, NAN, 2.302585092994);
    UNARY("sin %a", "0 1 inf", 0, 0.841470984807, NAN);
    UNARY("cos %a", "0 1", 1, 0.540302305868);
    UNARY("tanh %a", "0 1 -inf", 0, 0.761594155955, -1);
    UNARY("erf %a", "0 1 inf", 0, 0.842700792949, 1);
    UNARY("sigmoid %a", "0 1 -1000 1000", 0.5, 0.731058578630, 0, 1);
}

static void test_activations(void **state)
{
    (void)state;
    UNARY("gelu %a", "0 1 -1 -10", 0, 0.841344746068, -0.158655253931, -7.61985302416e-23);
    UNARY("gelu %a form=tanh", "0 1 -1", 0, 0.841191990608, -0.158808009392);
    UNARY("silu %a", "0 1 -1 nan", 0, 0.731058578630, -0.268941421369, NAN);
    UNARY("leaky_relu %a", "-2 0 3 nan", -0.02, 0, 3, NAN);
    UNARY("leaky_relu %a alpha=0.5", "-2 3", -1, 3);
    UNARY("hard_sigmoid %a", "-3 0 1 3 nan", 0, 0.5, 0.7, 1, NAN);
    UNARY("hard_sigmoid %a alpha=0.5 beta=0.25", "-1 1", 0, 0.75);
    UNARY("hard_swish %a", "-4 1.5 4 nan", 0, 1.125, 4, NAN);
    UNARY("clamp %a low=-1.0 high=1.0", "-2 0.5 2 nan", -1, 0.5, 1, NAN);
    UNARY("clamp %a low=0.0", "-2 5 inf", 0, 5, INF);
    UNARY("clamp %a low=2.0 high=1.0", "0 3", 1, 1);
}

static void test_unary_other(void **state)
{
    (void)state;
    EXPECT("%a: i8[4] = const value=[-128 -1 0 5]\n%r: i8[4] = abs %a", -128, 1, 0, 5);
    EXPECT("%a: i32[2] = const value=[-2147483648 3]\n%r: i32[2] = neg %a", -2147483648.0, -3);
    EXPECT("%a: u8[2] = const value=[1 0]\n%r: u8[2] = neg %a", 255, 0);
    EXPECT("%a: i64[3] = const value=[-9 0 9]\n%r: i64[3] = sign %a", -1, 0, 1);
    EXPECT("%a: i64[3] = const value=[-9 0 9]\n%r: i64[3] = relu %a", 0, 0, 9);
    EXPECT("%a: i32[4] = const value=[-9 0 3 9]\n%r: i32[4] = clamp %a low=-2.5 high=4.5", -2, 0, 3, 4);
    EXPECT("%a: u8[3] = const value=[0 7 255]\n%r: u8[3] = clamp %a low=-3.0 high=1000.0", 0, 7, 255);
    EXPECT("%a: bool[2] = const value=[0 1]\n%r: bool[2] = not %a", 1, 0);
    EXPECT("%a: f16[3] = const value=[nan 1 inf]\n%r: bool[3] = is_nan %a", 1, 0, 0);
    EXPECT("%a: bf16[2] = const value=[1 3]\n%r: bf16[2] = recip %a", 1, 0.333984375);
    EXPECT("%a: f16[] = const value=3\n%r: f16[] = recip %a", 0.333251953125);
    EXPECT_EMPTY("%a: f32[2,0] = const value=1\n%r: f32[2,0] = exp %a");
}

static void test_binary_real(void **state)
{
    (void)state;
#define PAIR "%a: f32[4] = const value=[7 -7 nan 1]\n%b: f32[4] = const value=[3 3 1 nan]\n"
    EXPECT(PAIR "%r: f32[4] = add %a, %b", 10, -4, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = sub %a, %b", 4, -10, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = mul %a, %b", 21, -21, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = div %a, %b", 7.0 / 3, -7.0 / 3, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = mod %a, %b", 1, 2, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = mod %a, %b form=trunc", 1, -1, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = min %a, %b", 3, -7, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = max %a, %b", 7, 3, NAN, NAN);
    EXPECT(PAIR "%r: f32[4] = pow %a, %b", 343, -343, NAN, 1);
    EXPECT(PAIR "%r: bool[4] = eq %a, %a", 1, 1, 0, 1);
    EXPECT(PAIR "%r: bool[4] = ne %a, %b", 1, 1, 1, 1);
    EXPECT(PAIR "%r: bool[4] = lt %a, %b", 0, 1, 0, 0);
    EXPECT(PAIR "%r: bool[4] = le %a, %a", 1, 1, 0, 1);
    EXPECT(PAIR "%r: bool[4] = gt %a, %b", 1, 0, 0, 0);
    EXPECT(PAIR "%r: bool[4] = ge %a, %b", 1, 0, 0, 0);
#undef PAIR
    EXPECT("%a: f32[2] = const value=[1 -1]\n%b: f32[2] = const value=0\n%r: f32[2] = div %a, %b", INF, -INF);
    EXPECT("%a: f16[1] = const value=[65504]\n%r: f16[1] = add %a, %a", INF);
    /* 1 + 2^-8 lies half-way between two bf16 numbers: to even */
    EXPECT("%a: bf16[1] = const value=[1]\n%b: bf16[1] = const value=[0.00390625]\n%r: bf16[1] = add %a, %b", 1);
}

static void test_binary_integer(void **state)
{
    (void)state;
#define PAIR "%a: i32[5] = const value=[7 -7 7 -7 5]\n%b: i32[5] = const value=[3 3 -3 -3 0]\n"
    EXPECT(PAIR "%r: i32[5] = div %a, %b", 2, -2, -2, 2, 0);
    EXPECT(PAIR "%r: i32[5] = mod %a, %b", 1, 2, -2, -1, 0);
    EXPECT(PAIR "%r: i32[5] = mod %a, %b form=trunc", 1, -1, 1, -1, 0);
    EXPECT(PAIR "%r: i32[5] = min %a, %b", 3, -7, -3, -7, 0);
    EXPECT(PAIR "%r: i32[5] = max %a, %b", 7, 3, 7, -3, 5);
    EXPECT(PAIR "%r: i32[5] = pow %a, %b", 343, -343, 0, 0, 1);
    EXPECT(PAIR "%r: bool[5] = lt %a, %b", 0, 1, 0, 1, 0);
#undef PAIR
    EXPECT("%a: i8[2] = const value=[127 -128]\n%b: i8[2] = const value=[1 -1]\n%r: i8[2] = add %a, %b", -128, 127);
    EXPECT("%a: i8[1] = const value=[-128]\n%b: i8[1] = const value=[-1]\n%r: i8[1] = div %a, %b", -128);
    EXPECT("%a: i64[1] = const value=[-9223372036854775808]\n%b: i64[1] = const value=[-1]\n%r: i64[1] = div %a, %b",
           -0x1p63);
    EXPECT("%a: u8[2] = const value=[200 3]\n%b: u8[2] = const value=[100 5]\n%r: u8[2] = mul %a, %b", 32, 15);
    EXPECT(
        "%a: u64[2] = const value=[18446744073709551615 5]\n%b: u64[2] = const value=[2 7]\n%q: u64[2] = div %a, %b\n"
        "%r: f64[2] = cast %q",
        0x1p63, 0);
    EXPECT("%a: u64[2] = const value=[18446744073709551615 5]\n%b: u64[2] = const value=[2 7]\n%r: bool[2] = gt %a, %b",
           1, 0);
    EXPECT("%a: i64[2] = const value=[-1 -1]\n%b: i64[2] = const value=[-3 -2]\n%r: i64[2] = pow %a, %b", -1, 1);
    EXPECT("%a: bool[4] = const value=[0 0 1 1]\n%b: bool[4] = const value=[0 1 0 1]\n%r: bool[4] = and %a, %b", 0, 0,
           0, 1);
    EXPECT("%a: bool[4] = const value=[0 0 1 1]\n%b: bool[4] = const value=[0 1 0 1]\n%r: bool[4] = or %a, %b", 0, 1, 1,
           1);
    EXPECT("%a: bool[4] = const value=[0 0 1 1]\n%b: bool[4] = const value=[0 1 0 1]\n%r: bool[4] = xor %a, %b", 0, 1,
           1, 0);
    EXPECT("%c: bool[3] = const value=[1 0 1]\n%a: i64[3] = const value=[1 2 3]\n%b: i64[3] = const value=[4 5 6]\n"
           "%r: i64[3] = select %c, %a, %b",
           1, 5, 3);
    EXPECT("%c: bool[2] = const value=[1 0]\n%a: f32[2] = const value=[nan nan]\n%b: f32[2] = const value=[0 7]\n"
           "%r: f32[2] = select %c, %a, %b",
           NAN, 7);
}

static void test_cast(void **state)
{
    (void)state;
    EXPECT("%a: f32[4] = const value=[1.9 -1.9 300 -1]\n%r: i32[4] = cast %a", 1, -1, 300, -1);
    EXPECT("%a: f32[2] = const value=[300 -1]\n%r: u8[2] = cast %a", 44, 255);
    EXPECT("%a: f32[4] = const value=[0 -0.0 0.1 nan]\n%r: bool[4] = cast %a", 0, 0, 1, 1);
    EXPECT("%a: bool[2] = const value=[1 0]\n%r: f32[2] = cast %a", 1, 0);
    EXPECT("%a: i32[2] = const value=[256 -1]\n%r: u8[2] = cast %a", 0, 255);
    EXPECT("%a: i64[2] = const value=[256 0]\n%r: bool[2] = cast %a", 1, 0);
    /* 2^60 + 2^36 + 1 is above a tie of f32; rounding through double would fall on the tie, and to even, below */
    EXPECT("%a: i64[1] = const value=[1152921573326323713]\n%f: f32[1] = cast %a\n%r: f64[1] = cast %f",
           0x1p60 + 0x1p37);
    EXPECT("%a: u64[1] = const value=[18446744073709551615]\n%r: f64[1] = cast %a", 0x1p64);
    EXPECT("%a: f32[2] = const value=[7 -8]\n%b: i4[2] = cast %a\n%r: i8[2] = cast %b", 7, -8);
    EXPECT("%a: f32[3] = const value=[0.3 500 -2]\n%b: f8e5m2[3] = cast %a\n%r: f32[3] = cast %b", 0.3125, 512, -2);
    EXPECT("%a: f64[2] = const value=[65520 65519]\n%r: f16[2] = cast %a", INF, 65504);
}

/* --- reductions ----------------------------------------------------------------------------------------------------
 */

static void test_reduce(void **state)
{
    (void)state;
#define A "%a: f32[2,3] = const value=[[1 2 3] [4 5 nan]]\n"
    EXPECT(A "%r: f32[3] = sum %a axes=[0]", 5, 7, NAN);
    EXPECT(A "%r: f32[2,1] = sum %a axes=[1] keepdims=1", 6, NAN);
    EXPECT(A "%r: f32[] = sum %a axes=[0 1]", NAN);
    EXPECT(A "%r: f32[2,3] = sum %a axes=[]", 1, 2, 3, 4, 5, NAN);
    EXPECT(A "%r: f32[3] = mean %a axes=[0]", 2.5, 3.5, NAN);
    EXPECT(A "%r: f32[2] = prod %a axes=[1]", 6, NAN);
    EXPECT(A "%r: f32[2] = reduce_max %a axes=[1]", 3, NAN);
    EXPECT(A "%r: f32[2] = reduce_min %a axes=[1]", 1, NAN);
#undef A
    EXPECT("%a: f32[2,0] = const value=1\n%r: f32[2] = sum %a axes=[1]", 0, 0);
    EXPECT("%a: f32[2,0] = const value=1\n%r: f32[2] = prod %a axes=[1]", 1, 1);
    EXPECT("%a: f32[2,0] = const value=1\n%r: f32[2] = mean %a axes=[1]", NAN, NAN);
    EXPECT("%a: f32[1,0] = const value=1\n%r: f32[1] = reduce_max %a axes=[1]", -INF);
    EXPECT("%a: i8[1,0] = const value=1\n%r: i8[1] = reduce_max %a axes=[1]", -128);
    EXPECT("%a: u8[1,0] = const value=1\n%r: u8[1] = reduce_min %a axes=[1]", 255);
    EXPECT("%a: i64[1,0] = const value=1\n%r: i64[1] = reduce_min %a axes=[1]", 0x1p63);
    EXPECT("%a: i32[4] = const value=[-1 -2 -3 -1]\n%r: i32[] = mean %a axes=[0]", -1);
    EXPECT("%a: u64[2] = const value=[18446744073709551615 1]\n%b: u64[] = reduce_min %a axes=[0]\n%r: i32[] = cast %b",
           1);
    EXPECT("%a: u8[3] = const value=[200 100 10]\n%r: u8[] = sum %a axes=[0]", 54);
    EXPECT("%a: u8[3] = const value=[200 100 10]\n%r: u32[] = sum %a axes=[0] acc=u32", 310);
    EXPECT("%a: f16[3] = const value=60000\n%r: f32[] = sum %a axes=[0] acc=f32", 180000);
    /* the sum passes through 2^24 + 1, which f32 does not hold */
    EXPECT("%a: f32[3] = const value=[16777216 1 1]\n%r: f32[] = sum %a axes=[0]", 16777218);
    EXPECT("%a: f32[2,2,2] = const value=[1 2 3 4 5 6 7 8]\n%r: f32[2] = sum %a axes=[0 2]", 14, 22);
}

static void test_softmax(void **state)
{
    (void)state;
    EXPECT("%a: f32[1,3] = const value=[1 2 3]\n%r: f32[1,3] = softmax %a axis=1", 0.0900305731704, 0.2447284710548,
           0.6652409557748);
    EXPECT("%a: f32[2,1] = const value=[1000 1000]\n%r: f32[2,1] = softmax %a axis=0", 0.5, 0.5);
    EXPECT("%a: f32[2] = const value=[0 -inf]\n%r: f32[2] = softmax %a axis=0", 1, 0);
    EXPECT("%a: f32[2] = const value=-inf\n%r: f32[2] = softmax %a axis=0", NAN, NAN);
    EXPECT("%a: f32[2,2] = const value=[0 1 0 nan]\n%r: f32[2,2] = softmax %a axis=0", 0.5, NAN, 0.5, NAN);
    EXPECT("%a: f32[3] = const value=[1 2 3]\n%r: f32[3] = log_softmax %a axis=0", -2.4076059644443, -1.4076059644443,
           -0.4076059644443);
    EXPECT("%a: f32[2] = const value=[1000 0]\n%r: f32[2] = log_softmax %a axis=0", 0, -1000);
    EXPECT_EMPTY("%a: f32[0,2] = const value=1\n%r: f32[0,2] = softmax %a axis=0");
}

static void test_batch_norm(void **state)
{
    (void)state;
    EXPECT("%x: f32[1,2,2] = const value=[1 2 3 4]\n%s: f32[2] = const value=[2 3]\n%b: f32[2] = const value=[0 1]\n"
           "%m: f32[2] = const value=[1 3]\n%v: f32[2] = const value=[0.75 3.75]\n"
           "%r: f32[1,2,2] = batch_norm %x, %s, %b, %m, %v epsilon=0.25",
           0, 2, 1, 2.5);
}

/* --- views and movement --------------------------------------------------------------------------------------------
 */

static void test_sources(void **state)
{
    (void)state;
    EXPECT("%r: i64[2,2] = iota axis=0", 0, 0, 1, 1);
    EXPECT("%r: f32[2,2] = iota axis=1", 0, 1, 0, 1);
    EXPECT("%r: i32[3] = extents value=[4 -1 (2*3)]", 4, -1, 6);
    EXPECT("%r: i64[] = extents value=[7]", 7);
    EXPECT("%r: f16[2] = const value=0.1", 0.0999755859375, 0.0999755859375);
    EXPECT("%r: u8[2,2] = const value=[[1 2] [3 4]]", 1, 2, 3, 4);
}

static void test_views(void **state)
{
    (void)state;
#define A "%a: i32[2,3] = const value=[1 2 3 4 5 6]\n"
    EXPECT(A "%r: i32[3,2] = transpose %a perm=[1 0]", 1, 4, 2, 5, 3, 6);
    EXPECT(A "%r: i32[3,2] = reshape %a", 1, 2, 3, 4, 5, 6);
    EXPECT(A "%t: i32[3,2] = transpose %a perm=[1 0]\n%r: i32[6] = reshape %t", 1, 4, 2, 5, 3, 6);
    EXPECT(A "%r: i32[2,2,3] = bcast %a dims=[1 2]", 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6);
    EXPECT(A "%r: i32[3,2] = bcast %a dims=[1 0]", 1, 4, 2, 5, 3, 6);
    EXPECT(A "%r: i32[1,2] = slice %a start=[1 0] end=[2 3] step=[1 2]", 4, 6);
    EXPECT_EMPTY(A "%r: i32[2,0] = slice %a start=[0 1] end=[2 1]");
    EXPECT(A "%r: i32[2,3] = relayout %a", 1, 2, 3, 4, 5, 6);
#undef A
    EXPECT("%a: f32[1] = const value=[5]\n%r: f32[3] = bcast %a dims=[0]", 5, 5, 5);
    EXPECT("%a: f32[] = const value=5\n%r: f32[2] = bcast %a dims=[]", 5, 5);
    EXPECT("%a: f32[3,1,2] = const value=[1 2 3 4 5 6]\n%r: f32[2,3,1] = transpose %a perm=[2 0 1]", 1, 3, 5, 2, 4, 6);
    EXPECT("%a: i8[2,2] = const value=[1 -2 3 4]\n%p: i4[2,2] = cast %a\n%t: i4[2,2] = transpose %p perm=[1 0]\n"
           "%r: i8[2,2] = cast %t",
           1, 3, -2, 4);
}

static void test_movement(void **state)
{
    (void)state;
    EXPECT(
        "%a: f32[2,1] = const value=[1 2]\n%b: f32[2,2] = const value=[3 4 5 6]\n%r: f32[2,3] = concat %a, %b axis=1",
        1, 3, 4, 2, 5, 6);
    EXPECT("%a: f32[1] = const value=[1]\n%r: f32[3] = concat %a, %a, %a axis=0", 1, 1, 1);
#define A "%a: f32[3] = const value=[1 2 3]\n%v: f32[] = const value=9\n"
    EXPECT(A "%r: f32[6] = pad %a, %v pad=[1 2]", 9, 1, 2, 3, 9, 9);
    EXPECT(A "%r: f32[2] = pad %a, %v pad=[-1 0]", 2, 3);
    EXPECT(A "%r: f32[3] = pad %a, %v pad=[-1 1]", 2, 3, 9);
    EXPECT(A "%r: f32[6] = pad %a, %v pad=[1 2] form=edge", 1, 1, 2, 3, 3, 3);
    EXPECT(A "%r: f32[7] = pad %a, %v pad=[2 2] form=reflect", 3, 2, 1, 2, 3, 2, 1);
#undef A
    EXPECT("%a: f32[0] = const value=1\n%v: f32[] = const value=9\n%r: f32[2] = pad %a, %v pad=[1 1]", 9, 9);
    EXPECT("%a: i64[2,2] = const value=[1 2 3 4]\n%v: i64[] = const value=0\n%r: i64[3,3] = pad %a, %v pad=[0 1 1 0]",
           0, 1, 2, 0, 3, 4, 0, 0, 0);
#define A "%a: f32[3,2] = const value=[1 2 3 4 5 6]\n"
    EXPECT(A "%i: i64[2] = const value=[2 0]\n%r: f32[2,2] = gather %a, %i axis=0", 5, 6, 1, 2);
    EXPECT(A "%i: i32[] = const value=-1\n%r: f32[3] = gather %a, %i axis=1", 2, 4, 6);
    EXPECT(A "%i: i64[1,2] = const value=[0 1]\n%r: f32[3,1,2] = gather %a, %i axis=1", 1, 2, 3, 4, 5, 6);
    EXPECT(A "%i: i64[2] = const value=[7 -9]\n%r: f32[2,2] = gather %a, %i axis=0", 5, 6, 1, 2);
#undef A
}

/* --- contractions and windows --------------------------------------------------------------------------------------
 */

static void test_matmul(void **state)
{
    (void)state;
#define AB "%a: f32[2,3] = const value=[1 2 3 4 5 6]\n%b: f32[3,2] = const value=[1 0 0 1 1 1]\n"
    EXPECT(AB "%r: f32[2,2] = matmul %a, %b", 4, 5, 10, 11);
    EXPECT(AB "%r: f32[3,3] = matmul %a, %b trans_a=1 trans_b=1", 1, 4, 5, 2, 5, 7, 3, 6, 9);
#undef AB
    EXPECT("%a: i8[1,2] = const value=[100 100]\n%b: i8[2,1] = const value=[100 100]\n%r: i32[1,1] = matmul %a, %b "
           "acc=i32",
           20000);
    EXPECT(
        "%a: u8[1,2] = const value=[200 100]\n%b: i8[2,1] = const value=[-1 1]\n%r: i32[1,1] = matmul %a, %b acc=i32",
        -100);
    EXPECT("%a: i8[1,1] = const value=[100]\n%r: i8[1,1] = matmul %a, %a", 16);
    EXPECT("%a: f32[2,1,2] = const value=[1 2 3 4]\n%b: f32[2,2,1] = const value=[5 6 7 8]\n%r: f32[2,1,1] = matmul "
           "%a, %b",
           17, 53);
    EXPECT("%a: f32[2,0] = const value=1\n%b: f32[0,1] = const value=1\n%r: f32[2,1] = matmul %a, %b", 0, 0);
    EXPECT_EMPTY("%a: f32[2,1] = const value=1\n%b: f32[1,0] = const value=1\n%r: f32[2,0] = matmul %a, %b");
    EXPECT("%a: bf16[1,2] = const value=[256 1]\n%b: bf16[2,1] = const value=1\n%r: f32[1,1] = matmul %a, %b acc=f32",
           257);
}

static void test_conv(void **state)
{
    (void)state;
#define X "%x: f32[1,1,3,3] = const value=[1 2 3 4 5 6 7 8 9]\n%w: f32[1,1,2,2] = const value=[1 2 3 4]\n"
    EXPECT(X "%r: f32[1,1,2,2] = conv %x, %w", 37, 47, 67, 77);
    EXPECT(X "%r: f32[1,1,4,4] = conv %x, %w pad=[1 1 1 1]", 4, 11, 18, 9, 18, 37, 47, 21, 36, 67, 77, 33, 14, 23, 26,
           9);
    EXPECT(X "%r: f32[1,1,2,2] = conv %x, %w stride=[2 2] pad=[0 0 1 1]", 37, 21, 23, 9);
    EXPECT(X "%r: f32[1,1,1,1] = conv %x, %w dilation=[2 2]", 1 + 6 + 21 + 36);
#undef X
    EXPECT("%x: f32[1,2,3] = const value=[1 2 3 4 5 6]\n%w: f32[1,2,2] = const value=[1 1 10 10]\n%r: f32[1,1,2] = "
           "conv %x, %w",
           93, 115);
    EXPECT("%x: f32[1,2,3] = const value=[1 2 3 4 5 6]\n%w: f32[4,1,1] = const value=[1 2 3 4]\n"
           "%r: f32[1,4,3] = conv %x, %w groups=2",
           1, 2, 3, 2, 4, 6, 12, 15, 18, 16, 20, 24);
    EXPECT("%x: f32[1,1,2,2,2] = const value=[1 2 3 4 5 6 7 8]\n%w: f32[1,1,2,1,2] = const value=[1 2 3 4]\n"
           "%r: f32[1,1,1,2,1] = conv %x, %w",
           1 + 4 + 15 + 24, 3 + 8 + 21 + 32);
    EXPECT("%x: u8[1,1,2] = const value=[200 255]\n%w: i8[1,1,2] = const value=[-1 2]\n%r: i32[1,1,1] = conv %x, %w "
           "acc=i32",
           310);
    EXPECT("%x: f32[1,1,5] = const value=[1 2 3 4 5]\n%w: f32[1,1,2] = const value=[1 10]\n"
           "%r: f32[1,1,3] = conv %x, %w stride=[3] dilation=[2] pad=[3 2]",
           0, 31, 4);
}

static void test_conv_padding(void **state)
{
    (void)state;
    /* a filter larger than what it meets: some taps only ever see padding */
    EXPECT("%x: f32[1,1,1] = const value=[2]\n%w: f32[1,1,5] = const value=[1 2 3 4 5]\n"
           "%r: f32[1,1,1] = conv %x, %w pad=[2 2]",
           6);
    /* padding is zeros, and zero times infinity is no number */
    EXPECT("%x: f32[1,1,2] = const value=[2 3]\n%w: f32[1,1,2] = const value=[inf 1]\n"
           "%r: f32[1,1,3] = conv %x, %w pad=[1 1]",
           NAN, INF, INF);
}

static void test_pool(void **state)
{
    (void)state;
#define X "%x: f32[1,1,5] = const value=[1 2 3 4 5]\n"
    EXPECT(X "%r: f32[1,1,2] = max_pool %x kernel=[2] stride=[2]", 2, 4);
    EXPECT(X "%r: f32[1,1,3] = max_pool %x kernel=[2] stride=[2] ceil=1", 2, 4, 5);
    EXPECT(X "%r: f32[1,1,3] = mean_pool %x kernel=[3] stride=[2] pad=[1 1]", 1.5, 3, 4.5);
    EXPECT(X "%r: f32[1,1,3] = mean_pool %x kernel=[3] stride=[2] pad=[1 1] count_pad=1", 1, 3, 3);
    EXPECT(X "%r: f32[1,1,3] = max_pool %x kernel=[2] dilation=[2]", 3, 4, 5);
    /* rounding up adds a window whose last tap is beyond the padding: it divides by the three taps that are not */
    EXPECT(X "%r: f32[1,1,3] = mean_pool %x kernel=[4] stride=[2] pad=[1 1] ceil=1 count_pad=1", 1.5, 3.5, 3);
    /* a window that would start in the padding behind the data is dropped */
    EXPECT(
        "%x: f32[1,1,4] = const value=[1 2 3 4]\n%r: f32[1,1,2] = max_pool %x kernel=[1] stride=[2] pad=[0 1] ceil=1",
        1, 3);
#undef X
    EXPECT("%x: f32[1,1,2,2] = const value=[-1 -2 -3 -4]\n%r: f32[1,1,3,3] = max_pool %x kernel=[2 2] pad=[1 1 1 1]",
           -1, -1, -2, -1, -1, -2, -3, -3, -4);
    EXPECT("%x: f32[1,1,3] = const value=[1 nan 2]\n%r: f32[1,1,2] = max_pool %x kernel=[2]", NAN, NAN);
    EXPECT("%x: i8[1,1,3] = const value=[-128 -5 -7]\n%r: i8[1,1,2] = max_pool %x kernel=[2]", -5, -5);
    EXPECT("%x: f32[1,1,1,2,2] = const value=[1 2 3 4]\n%r: f32[1,1,1,1,1] = mean_pool %x kernel=[1 2 2]", 2.5);
}

/* --- control -------------------------------------------------------------------------------------------------------
 */

static void test_if(void **state)
{
    (void)state;
    static const char bodies[] = "graph @t(%x: f32[2], %y: f32[2]) {\n%s: f32[2] = add %x, %y\nreturn %s\n}\n"
                                 "graph @e(%x: f32[2], %y: f32[2]) {\nreturn %y\n}\n";
    for (int condition = 0; condition < 2; condition++) {
        char lines[512];
        snprintf(lines, sizeof lines,
                 "%s%%c: bool[] = const value=%d\n%%a: f32[2] = const value=[1 2]\n%%b: f32[2] = const value=[10 20]\n"
                 "%%r: f32[2] = if %%c, %%a, %%b then=@t else=@e",
                 bodies, condition);
        expect(lines, 2, condition ? (const double[]){11, 22} : (const double[]){10, 20});
    }
}

static void test_loop(void **state)
{
    (void)state;
    /* Fibonacci numbers, and the sum of the indices */
    static const char lines[] = "graph @b(%i: i64[], %a: i64[], %b: i64[], %s: i64[]) {\n%n: i64[] = add %a, %b\n"
                                "%t: i64[] = add %s, %i\nreturn %b, %n, %t\n}\n"
                                "%k: i64[] = const value=%d\n%z: i64[] = const value=0\n%o: i64[] = const value=1\n"
                                "%x: i64[], %y: i64[], %u: i64[] = loop %k, %z, %o, %z body=@b\n"
                                "%p: i64[1] = reshape %x\n%q: i64[1] = reshape %y\n%v: i64[1] = reshape %u\n"
                                "%r: i64[3] = concat %p, %q, %v axis=0";
    static const struct {
        int trips;
        double wanted[3];
    } cases[] = {{10, {55, 89, 45}}, {1, {1, 1, 0}}, {0, {0, 1, 0}}, {-3, {0, 1, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024], *at = text;
        for (const char *c = lines; *c; c++)
            at += c[0] == '%' && c[1] == 'd' && c[2] == '\n' ? (c++, sprintf(at, "%d", cases[i].trips)) : (*at = *c, 1);
        *at = '\0';
        expect(text, 3, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_real),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_unary_other),
        cmocka_unit_test(test_binary_real),
        cmocka_unit_test(test_binary_integer),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_movement),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_padding),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_loop),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
