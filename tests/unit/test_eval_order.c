/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_order.c: the reference evaluator on reductions to truths and indices, scans and orders, sizes that
 * come out of data, random numbers. */
#include "tests/unit/eval_support.h"

#include "kernels/philox.h"

static void test_any_all(void **state)
{
    (void)state;
#define A "%a: bool[2,3] = const value=[[0 1 0] [0 0 0]]\n"
    EXPECT(A "%r: bool[2] = any %a axes=[1]", 1, 0);
    EXPECT(A "%r: bool[1,3] = all %a axes=[0] keepdims=1", 0, 0, 0);
    EXPECT(A "%r: bool[2,3] = any %a axes=[]", 0, 1, 0, 0, 0, 0);
#undef A
    EXPECT("%a: bool[2] = const value=true\n%r: bool[] = all %a axes=[0]", 1);
    EXPECT("%a: bool[1,0] = const value=true\n%r: bool[1] = any %a axes=[1]", 0);
    EXPECT("%a: bool[1,0] = const value=true\n%r: bool[1] = all %a axes=[1]", 1);
}

static void test_moments(void **state)
{
    (void)state;
#define A "%a: f32[2,3] = const value=[[0 0 0] [1000 -inf 1000]]\n"
    EXPECT(A "%r: f32[2] = log_sum_exp %a axes=[1]", 1.098612288668, 1000.693147180560);
    EXPECT(A "%r: f32[1,3] = log_sum_exp %a axes=[0] keepdims=1", 1000, 0, 1000);
#undef A
    EXPECT("%a: f32[4] = const value=-inf\n%r: f32[] = log_sum_exp %a axes=[0]", -INF);
    EXPECT("%a: f32[2] = const value=[inf 1]\n%r: f32[] = log_sum_exp %a axes=[0]", INF);
    EXPECT("%a: f32[2] = const value=[inf nan]\n%r: f32[] = log_sum_exp %a axes=[0]", NAN);
    EXPECT("%a: f32[2,0] = const value=1\n%r: f32[2] = log_sum_exp %a axes=[1]", -INF, -INF);
    EXPECT("%a: f32[4] = const value=[10001 10002 10003 10006]\n%r: f32[] = variance %a axes=[0]", 3.5);
    EXPECT("%a: f32[4] = const value=[1 2 3 6]\n%r: f32[1] = variance %a axes=[0] keepdims=1 correction=1", 14.0 / 3);
    EXPECT("%a: f32[1] = const value=[7]\n%r: f32[] = variance %a axes=[0] correction=1", NAN);
    EXPECT("%a: f32[2] = const value=[7 8]\n%r: f32[] = variance %a axes=[0] correction=5", INF);
    EXPECT("%a: f32[0] = const value=7\n%r: f32[] = variance %a axes=[0]", NAN);
}

static void test_arguments(void **state)
{
    (void)state;
#define A "%a: f32[2,4] = const value=[[1 5 5 -2] [-2 -2 0 -1]]\n"
    EXPECT(A "%r: i64[2] = arg_max %a axis=1", 1, 2);
    EXPECT(A "%r: i64[2] = arg_max %a axis=1 ties=last", 2, 2);
    EXPECT(A "%r: i64[2,1] = arg_min %a axis=1 keepdims=1", 3, 0);
    EXPECT(A "%r: i64[2] = arg_min %a axis=1 ties=last", 3, 1);
    EXPECT(A "%r: i64[4] = arg_max %a axis=0", 0, 0, 0, 1);
#undef A
#define A "%a: f32[4] = const value=[inf nan 3 nan]\n"
    EXPECT(A "%r: i64[] = arg_max %a axis=0", 1);
    EXPECT(A "%r: i64[] = arg_min %a axis=0", 1);
    EXPECT(A "%r: i64[] = arg_max %a axis=0 ties=last", 3);
#undef A
    EXPECT("%a: u64[3] = const value=[1 18446744073709551615 0]\n%r: i64[] = arg_max %a axis=0", 1);
    EXPECT("%a: i8[3] = const value=[1 -1 0]\n%r: i64[] = arg_min %a axis=0", 1);
    EXPECT("%a: f32[2,0] = const value=1\n%r: i64[2] = arg_max %a axis=1", 0, 0);
    EXPECT_EMPTY("%a: f32[0,3] = const value=1\n%r: i64[0] = arg_max %a axis=1");
}

static void test_scans(void **state)
{
    (void)state;
#define A "%a: f32[2,3] = const value=[[1 2 3] [4 -5 6]]\n"
    EXPECT(A "%r: f32[2,3] = cumsum %a axis=1", 1, 3, 6, 4, -1, 5);
    EXPECT(A "%r: f32[2,3] = cumsum %a axis=0", 1, 2, 3, 5, -3, 9);
    EXPECT(A "%r: f32[2,3] = cumsum %a axis=1 exclusive=1", 0, 1, 3, 0, 4, -1);
    EXPECT(A "%r: f32[2,3] = cumsum %a axis=1 reverse=1", 6, 5, 3, 5, 1, 6);
    EXPECT(A "%r: f32[2,3] = cumsum %a axis=1 exclusive=1 reverse=1", 5, 3, 0, 1, 6, 0);
    EXPECT(A "%r: f32[2,3] = cumprod %a axis=1 exclusive=1", 1, 1, 2, 1, 4, -20);
    EXPECT(A "%r: f32[2,3] = cummax %a axis=1", 1, 2, 3, 4, 4, 6);
    EXPECT(A "%r: f32[2,3] = cummin %a axis=1 exclusive=1", INF, 1, 1, INF, 4, -5);
#undef A
    EXPECT("%a: f32[4] = const value=[1 nan 2 3]\n%r: f32[4] = cummax %a axis=0", 1, NAN, NAN, NAN);
    EXPECT("%a: i8[3] = const value=[100 100 1]\n%r: i8[3] = cumsum %a axis=0", 100, -56, -55);
    EXPECT("%a: u8[3] = const value=[3 7 5]\n%r: u8[3] = cummin %a axis=0 reverse=1", 3, 5, 5);
    /* the running sum passes through 2^24 + 1, which f32 does not hold */
    EXPECT("%a: f32[3] = const value=[16777216 1 1]\n%r: f32[3] = cumsum %a axis=0", 16777216, 16777216, 16777218);
    EXPECT_EMPTY("%a: f32[2,0] = const value=1\n%r: f32[2,0] = cumsum %a axis=1");
}

static void test_sort(void **state)
{
    (void)state;
#define A "%a: f32[6] = const value=[3 nan 1 3 -inf inf]\n"
    EXPECT(A "%r: f32[6], %i: i64[6] = sort %a axis=0", -INF, 1, 3, 3, INF, NAN);
    EXPECT(A "%v: f32[6], %r: i64[6] = sort %a axis=0", 4, 2, 0, 3, 5, 1);
    EXPECT(A "%v: f32[6], %r: i64[6] = sort %a axis=0 descending=1", 1, 5, 0, 3, 2, 4);
#undef A
    EXPECT("%a: i32[3,2] = const value=[[3 1] [2 2] [1 3]]\n%r: i32[3,2], %i: i64[3,2] = sort %a axis=0", 1, 1, 2, 2, 3,
           3);
    EXPECT("%a: u64[2] = const value=[18446744073709551615 1]\n%v: u64[2], %r: i64[2] = sort %a axis=0", 1, 0);
    /* stable: of 9 elements in 3 classes, each class keeps its order */
    EXPECT("%a: i8[9] = const value=[1 0 2 1 0 2 1 0 2]\n%v: i8[9], %r: i64[9] = sort %a axis=0", 1, 4, 7, 0, 3, 6, 2,
           5, 8);
    EXPECT("%a: i8[9] = const value=[1 0 2 1 0 2 1 0 2]\n%v: i8[9], %r: i64[9] = sort %a axis=0 descending=1", 2, 5, 8,
           0, 3, 6, 1, 4, 7);
    EXPECT_EMPTY("%a: f32[0] = const value=1\n%r: f32[0], %i: i64[0] = sort %a axis=0");
}

static void test_top_k(void **state)
{
    (void)state;
#define A "%a: f32[2,5] = const value=[[1 5 5 2 0] [9 8 7 8 9]]\n"
    EXPECT(A "%r: f32[2,3], %i: i64[2,3] = top_k %a axis=1 k=3", 5, 5, 2, 9, 9, 8);
    EXPECT(A "%v: f32[2,3], %r: i64[2,3] = top_k %a axis=1 k=3", 1, 2, 3, 0, 4, 1);
    EXPECT(A "%v: f32[2,2], %r: i64[2,2] = top_k %a axis=1 k=2 largest=0", 4, 0, 2, 1);
    EXPECT(A "%v: f32[2,3], %r: i64[2,3] = top_k %a axis=1 k=3 sorted=0", 1, 2, 3, 0, 1, 4);
    EXPECT(A "%r: f32[1,5], %i: i64[1,5] = top_k %a axis=0 k=1", 9, 8, 7, 8, 9);
    EXPECT_EMPTY(A "%r: f32[2,0], %i: i64[2,0] = top_k %a axis=1 k=0");
#undef A
    EXPECT("%a: f32[3] = const value=[1 nan 2]\n%v: f32[2], %r: i64[2] = top_k %a axis=0 k=2", 1, 2);
}

/* --- as many results as the data says -------------------------------------------------------------------------- */

#define EXPECT_DATA(symbol, lines, ...)                                                                                \
    expect_in(symbol, lines, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})

static void test_compress(void **state)
{
    (void)state;
#define A "%a: f32[3,2] = const value=[[1 2] [3 4] [5 6]]\n"
    EXPECT_DATA("<K=data(3)>", A "%c: bool[3] = const value=[0 1 1]\n%r: f32[K,2] = compress %a, %c axis=0 extent=[K]",
                3, 4, 5, 6);
    EXPECT_DATA("<K=data(2)>", A "%c: bool[2] = const value=[0 1]\n%r: f32[3,K] = compress %a, %c axis=1 extent=[K]", 2,
                4, 6);
    EXPECT_DATA("<K=data(6)>", A "%c: bool[5] = const value=[0 1 0 0 1]\n%r: f32[K] = compress %a, %c extent=[K]",
                2, 5);
    EXPECT_DATA("<K=data(3)>", A "%c: bool[1] = const value=[1]\n%r: f32[K,2] = compress %a, %c axis=0 extent=[K]",
                1, 2);
    EXPECT_DATA("<K=data(2)>",
                A "%c: bool[4] = const value=[0 1 1 1]\n%r: f32[3,K] = compress %a, %c axis=1 extent=[K]", 2, 4, 6);
    expect_in("<K=data(6)>", A "%c: bool[5] = const value=false\n%r: f32[K] = compress %a, %c extent=[K]", 0, NULL);
#undef A
}

static void test_unique(void **state)
{
    (void)state;
#define U "<K=data(6)>"
#define A "%a: f32[6] = const value=[2 nan 1 -0 0 nan]\n"
    EXPECT_DATA(U, A "%r: f32[K], %i: i64[K], %j: i64[6], %n: i64[K] = unique %a extent=[K]", 0, 1, 2, NAN);
    EXPECT_DATA(U, A "%v: f32[K], %r: i64[K], %j: i64[6], %n: i64[K] = unique %a extent=[K]", 3, 2, 0, 1);
    EXPECT_DATA(U, A "%v: f32[K], %i: i64[K], %r: i64[6], %n: i64[K] = unique %a extent=[K]", 2, 3, 1, 0, 0, 3);
    EXPECT_DATA(U, A "%v: f32[K], %i: i64[K], %j: i64[6], %r: i64[K] = unique %a extent=[K]", 2, 1, 1, 2);
    EXPECT_DATA(U, A "%r: f32[K], %i: i64[K], %j: i64[6], %n: i64[K] = unique %a sorted=0 extent=[K]", 2, NAN, 1, 0);
    EXPECT_DATA(U, A "%v: f32[K], %i: i64[K], %r: i64[6], %n: i64[K] = unique %a sorted=0 extent=[K]",
                0, 1, 2, 3, 3, 1);
    EXPECT_DATA(U, A "%v: f32[K], %i: i64[K], %j: i64[6], %r: i64[K] = unique %a sorted=0 extent=[K]", 1, 2, 1, 2);
#undef A
#define A "%a: i32[2,3] = const value=[[1 0 1] [5 9 5]]\n"
    EXPECT_DATA(U, A "%r: i32[2,K], %i: i64[K], %j: i64[3], %n: i64[K] = unique %a axis=1 extent=[K]", 0, 1, 9, 5);
    EXPECT_DATA(U, A "%v: i32[2,K], %i: i64[K], %r: i64[3], %n: i64[K] = unique %a axis=1 extent=[K]", 1, 0, 1);
    EXPECT_DATA(U, A "%r: i32[K,3], %i: i64[K], %j: i64[2], %n: i64[K] = unique %a axis=0 extent=[K]",
                1, 0, 1, 5, 9, 5);
#undef A
    expect_in(U, "%a: f32[0] = const value=1\n%r: f32[K], %i: i64[K], %j: i64[0], %n: i64[K] = unique %a extent=[K]", 0,
                NULL);
}

static void test_nms(void **state)
{
    (void)state;
#define B "<K=data(8)>"
#define A                                                                                                              \
    "%b: f32[1,4,4] = const value=[0 0 1 1  1 1 0 0.1  0 0.1 1 1.1  5 5 6 6]\n"                                        \
    "%s: f32[1,1,4] = const value=[0.5 0.9 0.9 0.2]\n%i: f32[] = const value=0.5\n"
    EXPECT_DATA(B, A "%m: i64[] = const value=9\n%t: f32[] = const value=0\n"
                     "%r: i64[K,3] = nms %b, %s, %m, %i, %t extent=[K]", 0, 0, 1, 0, 0, 3);
    EXPECT_DATA(B, A "%m: i64[] = const value=1\n%t: f32[] = const value=0\n"
                     "%r: i64[K,3] = nms %b, %s, %m, %i, %t extent=[K]", 0, 0, 1);
    EXPECT_DATA(B, A "%m: i64[] = const value=9\n%t: f32[] = const value=0.5\n"
                     "%r: i64[K,3] = nms %b, %s, %m, %i, %t extent=[K]", 0, 0, 1);
    expect_in(B, A "%m: i64[] = const value=-1\n%t: f32[] = const value=0\n"
                     "%r: i64[K,3] = nms %b, %s, %m, %i, %t extent=[K]", 0, NULL);
#undef A
    EXPECT_DATA(B, "%b: f32[1,2,4] = const value=[1 1 2 2  1.2 1 2 2]\n%s: f32[1,2,2] = const value=[1 2 2 1]\n"
                   "%m: i64[] = const value=2\n%i: f32[] = const value=0.5\n%t: f32[] = const value=-inf\n"
                   "%r: i64[K,3] = nms %b, %s, %m, %i, %t form=centre extent=[K]", 0, 0, 1, 0, 1, 0);
#undef B
}

/* --- random numbers ------------------------------------------------------------------------------------------- */

/* Known answers of the generator, from the tables that its authors published. */
static void test_philox(void **state)
{
    (void)state;
    const struct weft_philox zero = weft_philox((const uint32_t[]){0, 0, 0, 0}, 0);
    const struct weft_philox ones = weft_philox((const uint32_t[]){~0u, ~0u, ~0u, ~0u}, ~(uint64_t)0);
    const uint32_t of_zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t of_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(zero.word, of_zero, sizeof of_zero);
    assert_memory_equal(ones.word, of_ones, sizeof of_ones);
}

static void test_random(void **state)
{
    (void)state;
    const double unit[] = {0x6627e8d5 >> 8, 0xe169c58d >> 8, 0xbc57ac4c >> 8, 0x9b00dbd8 >> 8};
    EXPECT("%r: f32[4] = rand_uniform seed=0", unit[0] / 0x1p24, unit[1] / 0x1p24, unit[2] / 0x1p24, unit[3] / 0x1p24);
    EXPECT("%a: f32[2,2] = rand_uniform seed=0 low=1 high=3\n%r: f32[1,1] = slice %a start=[1 1] end=[2 2]",
           1 + 2 * unit[3] / 0x1p24);
    EXPECT("%r: f64[1] = rand_uniform seed=0", (double)(0x6627e8d5e169c58du >> 11) / 0x1p53);
    EXPECT("%r: bf16[1] = rand_uniform seed=0", 0x66 / 256.0);
    const double radius = sqrt(-2 * log(0x6627e8d6 / 0x1p32)), angle = 2 * 3.14159265358979323846 * 0xe169c58d / 0x1p32;
    EXPECT("%r: f64[2] = rand_normal seed=0", radius * cos(angle), radius * sin(angle));
    EXPECT("%s: i64[] = const value=4294967296\n%r: f32[1] = rand_uniform %s seed=0", unit[0] / 0x1p24);
    /* other streams and steps are other numbers */
    EXPECT("%a: f32[64] = rand_uniform seed=3\n%b: f32[64] = rand_uniform seed=3 stream=1\n%s: i64[] = const value=1\n"
           "%c: f32[64] = rand_uniform %s seed=3\n%d: f32[64] = rand_uniform seed=4\n"
           "%i: bool[64] = eq %a, %b\n%j: bool[64] = eq %a, %c\n%k: bool[64] = eq %a, %d\n%l: bool[64] = or %i, %j\n"
           "%m: bool[64] = or %k, %l\n%r: bool[] = any %m axes=[0]",
           0);
}

static void test_search_sorted(void **state)
{
    (void)state;
#define SEARCH "%s: f32[5] = const value=[1 2 2 4 nan]\n%x: f32[6] = const value=[0 2 3 4 inf nan]\n"
    EXPECT(SEARCH "%r: i64[6] = search_sorted %s, %x", 0, 1, 3, 3, 4, 4);
    EXPECT(SEARCH "%r: i64[6] = search_sorted %s, %x form=right", 0, 3, 3, 4, 4, 5);
    EXPECT("%s: u8[2,3] = const value=[1 2 255 0 0 0]\n%x: u8[2,1] = const value=[200 0]\n"
           "%r: i64[2,1] = search_sorted %s, %x", 2, 0);
    EXPECT("%s: i32[0] = const value=0\n%x: i32[2] = const value=[-1 1]\n%r: i64[2] = search_sorted %s, %x", 0, 0);
    EXPECT("%s: i32[3] = const value=[9 1 5]\n%x: i32[1] = const value=[4]\n%r: i64[1] = search_sorted %s, %x", 2);
}

static void test_diagonal(void **state)
{
    (void)state;
    EXPECT("%x: i32[2,3] = const value=[1 2 3 4 5 6]\n%r: i32[2] = diagonal %x axes=[0 1]", 1, 5);
    EXPECT("%x: f32[2,3,2] = const value=[0 1 2 3 4 5 6 7 8 9 10 nan]\n%r: f32[3,2] = diagonal %x axes=[0 2]",
           0, 7, 2, 9, 4, NAN);
    EXPECT_EMPTY("%x: f32[0,3] = const value=0\n%r: f32[0] = diagonal %x axes=[0 1]");
}

static void test_draws(void **state)
{
    (void)state;
    EXPECT("%p: f32[4] = const value=[0 1 0.75 nan]\n%r: bool[4] = bernoulli %p seed=0", 0, 1, 1, 0);
    EXPECT("%p: f32[4000] = const value=0.25\n%b: bool[4000] = bernoulli %p seed=5\n%c: i32[4000] = cast %b\n"
           "%n: i32[] = sum %c axes=[0]\n%l: i32[] = const value=900\n%h: i32[] = const value=1100\n"
           "%x: bool[] = gt %n, %l\n%y: bool[] = lt %n, %h\n%r: bool[] = and %x, %y",
           1);
    EXPECT("%p: f32[2,3] = const value=[[-inf 0 -inf] [5 -inf -inf]]\n"
           "%r: i64[2,4] = multinomial %p seed=1 samples=4",
           1, 1, 1, 1, 0, 0, 0, 0);
    EXPECT("%p: f32[2] = const value=[0 1.0986123]\n%a: i64[4000] = multinomial %p seed=5 samples=4000\n"
           "%n: i64[] = sum %a axes=[0]\n%l: i64[] = const value=2900\n%h: i64[] = const value=3100\n"
           "%x: bool[] = gt %n, %l\n%y: bool[] = lt %n, %h\n%r: bool[] = and %x, %y",
           1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_all), cmocka_unit_test(test_moments), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_scans),   cmocka_unit_test(test_sort),    cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_compress), cmocka_unit_test(test_unique),  cmocka_unit_test(test_nms),
        cmocka_unit_test(test_philox),   cmocka_unit_test(test_random),  cmocka_unit_test(test_draws),
        cmocka_unit_test(test_search_sorted), cmocka_unit_test(test_diagonal),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
