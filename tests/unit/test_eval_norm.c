/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_norm.c: normalisations in the reference evaluator, against values worked out by hand. */
#include "tests/unit/eval_support.h"

static void test_norms(void **state)
{
    (void)state;
    EXPECT("%x: f32[2,2] = const value=[1 3 5 5]\n%r: f32[2,2] = layer_norm %x axis=1 epsilon=0", -1, 1, NAN, NAN);
    EXPECT("%x: f32[2,2] = const value=[1 3 5 5]\n%s: f32[2] = const value=[2 4]\n%b: f32[2] = const value=[10 20]\n"
           "%r: f32[2,2] = layer_norm %x, %s, %b axis=1 epsilon=3",
           9, 22, 10, 20);
    EXPECT("%x: f32[1,2,2] = const value=[1 1 3 3]\n%s: f32[2,2] = const value=[1 2 3 4]\n"
           "%r: f32[1,2,2] = layer_norm %x, %s axis=1 epsilon=0",
           -1, -2, 3, 4);
    EXPECT("%x: f32[2,2] = const value=[1 7 3 3]\n%s: f32[2] = const value=[1 2]\n"
           "%r: f32[2,2] = rms_norm %x, %s axis=1 epsilon=0",
           0.2, 2.8, 1, 2);
    EXPECT("%x: f32[2] = const value=[inf 1]\n%r: f32[2] = rms_norm %x axis=0", NAN, 0);
    EXPECT("%x: f32[1,4,2] = const value=[1 1 3 3 0 0 0 4]\n%s: f32[4] = const value=[1 2 3 4]\n"
           "%b: f32[4] = const value=[0 0 0 10]\n"
           "%r: f32[1,4,2] = group_norm %x, %s, %b groups=2 epsilon=1",
           -0.7071067811865, -0.7071067811865, 1.4142135623731, 1.4142135623731, -1.5, -1.5, 8, 16);
    EXPECT("%x: f64[1,2,2] = const value=[1000000001 1000000003 5 9]\n"
           "%r: f64[1,2,2] = group_norm %x groups=2 epsilon=0",
           -1, 1, -1, 1);
    EXPECT_EMPTY("%x: f32[2,0] = const value=1\n%r: f32[2,0] = layer_norm %x axis=1");
    EXPECT_EMPTY("%x: f32[0,3] = const value=1\n%r: f32[0,3] = rms_norm %x axis=1");
    EXPECT_EMPTY("%x: f32[0,3,2] = const value=1\n%r: f32[0,3,2] = group_norm %x groups=3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
