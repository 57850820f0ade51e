/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_loop.c: loops in the reference evaluator: what they carry, collect and only read; ends that come early. */
#include "tests/unit/eval_support.h"

/* Adds the trip's number to what is carried, and collects the sums. */
#define SUMS                                                                                                           \
    "graph @b(%i: i64[], %s: i64[], %k: i64[2]) {\n%t: i64[] = add %s, %i\n%e: i64[2] = bcast %t dims=[]\n"            \
    "%c: i64[2] = add %e, %k\nreturn %t, %c\n}\n"                                                                      \
    "%s: i64[] = const value=10\n%k: i64[2] = const value=[0 100]\n"

static void test_collecting(void **state)
{
    (void)state;
    EXPECT("%n: i64[] = const value=3\n" SUMS "%l: i64[], %r: i64[3,2] = loop %n, %s, %k body=@b carried=1 length=3",
           10,
           110, 11, 111, 13, 113);
    EXPECT("%n: i64[] = const value=3\n" SUMS "%r: i64[], %c: i64[3,2] = loop %n, %s, %k body=@b carried=1 length=3",
           13);
    /* Fewer trips than there is room for, and more. */
    EXPECT("%n: i64[] = const value=1\n" SUMS "%l: i64[], %r: i64[3,2] = loop %n, %s, %k body=@b carried=1 length=3",
           10,
           110, 0, 0, 0, 0);
    EXPECT("%n: i64[] = const value=9\n" SUMS "%r: i64[], %c: i64[2,2] = loop %n, %s, %k body=@b carried=1 length=2",
           11);
    EXPECT("%n: i64[] = const value=-1\n" SUMS "%r: i64[], %c: i64[2,2] = loop %n, %s, %k body=@b carried=1 length=2",
           10);
    EXPECT_EMPTY("%n: i64[] = const value=3\n" SUMS
                 "%l: i64[], %r: i64[0,2] = loop %n, %s, %k body=@b carried=1 length=0");
}

/* Doubles until the limit is reached. */
#define DOUBLE                                                                                                         \
    "graph @b(%i: i64[], %go: bool[], %s: f32[], %m: f32[]) {\n%t: f32[] = add %s, %s\n%g: bool[] = lt %t, %m\n"       \
    "return %g, %t, %t\n}\n"                                                                                           \
    "%n: i64[] = const value=100\n%s: f32[] = const value=1\n%m: f32[] = const value=6\n"

static void test_ending_early(void **state)
{
    (void)state;
    EXPECT(DOUBLE "%y: bool[] = const value=1\n"
                  "%c: bool[], %l: f32[], %r: f32[5] = loop %n, %y, %s, %m body=@b carried=2 while=1 length=5",
           2, 4, 8, 0, 0);
    EXPECT(DOUBLE "%y: bool[] = const value=1\n"
                  "%c: bool[], %r: f32[], %l: f32[5] = loop %n, %y, %s, %m body=@b carried=2 while=1 length=5",
           8);
    EXPECT(DOUBLE "%y: bool[] = const value=0\n"
                  "%c: bool[], %r: f32[], %l: f32[5] = loop %n, %y, %s, %m body=@b carried=2 while=1 length=5",
           1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collecting),
        cmocka_unit_test(test_ending_early),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
