/* SPDX-License-Identifier: Apache-2.0 */
/* test_eval_window.c: the reference evaluator on transposed and deformed convolutions, windows, regions, transforms,
 * attention and quantised types. */
#include "kernels/attention/attention.h"
#include "tests/unit/eval_support.h"

static void test_conv_transpose(void **state)
{
    (void)state;
#define X "%x: f32[1,1,2] = const value=[1 2]\n%w: f32[1,1,3] = const value=[1 10 100]\n"
    EXPECT(X "%r: f32[1,1,4] = conv_transpose %x, %w", 1, 12, 120, 200);
    EXPECT(X "%r: f32[1,1,5] = conv_transpose %x, %w stride=[2]", 1, 10, 102, 20, 200);
    EXPECT(X "%r: f32[1,1,4] = conv_transpose %x, %w stride=[2] pad=[1 0]", 10, 102, 20, 200);
    EXPECT(X "%r: f32[1,1,6] = conv_transpose %x, %w stride=[2] out_pad=[1]", 1, 10, 102, 20, 200, 0);
    EXPECT(X "%r: f32[1,1,6] = conv_transpose %x, %w pad=[-1 -1]", 0, 1, 12, 120, 200, 0);
    EXPECT(X "%r: f32[1,1,6] = conv_transpose %x, %w dilation=[2]", 1, 2, 10, 20, 100, 200);
#undef X
    EXPECT("%x: i8[1,2,1] = const value=[100 2]\n%w: i8[2,2,2] = const value=[1 2 3 4 5 6 7 8]\n"
           "%r: i32[1,4,2] = conv_transpose %x, %w groups=2 acc=i32",
           100, 200, 300, 400, 10, 12, 14, 16);
    EXPECT("%x: f32[1,1,2,2] = const value=[1 2 3 4]\n%w: f32[1,1,2,2] = const value=[1 1 1 1]\n"
           "%r: f32[1,1,3,3] = conv_transpose %x, %w",
           1, 3, 2, 4, 10, 6, 3, 7, 4);
    EXPECT_EMPTY("%x: f32[0,1,2] = const value=1\n%w: f32[1,1,3] = const value=1\n"
                 "%r: f32[0,1,4] = conv_transpose %x, %w");
    EXPECT("%x: f32[1,0,1] = const value=1\n%w: f32[0,2,1] = const value=1\n%r: f32[1,2,1] = conv_transpose %x, %w", 0,
           0);
}

static void test_index_of_maximum(void **state)
{
    (void)state;
#define X "%x: f32[1,2,2,2] = const value=[1 5 5 2  nan 9 nan 0]\n"
    EXPECT(X "%m: f32[1,2,1,1], %r: i64[1,2,1,1] = max_pool_index %x kernel=[2 2]", 1, 4);
    EXPECT(X "%m: f32[1,2,1,1], %r: i64[1,2,1,1] = max_pool_index %x kernel=[2 2] column_major=1", 2, 4);
    EXPECT(X "%m: f32[1,2,1,2], %r: i64[1,2,1,2] = max_pool_index %x kernel=[2 1] column_major=1", 1, 2, 4, 6);
#undef X
#define X "%x: f32[1,1,3] = const value=[-inf -inf 1]\n"
    EXPECT(X "%m: f32[1,1,3], %r: i64[1,1,3] = max_pool_index %x kernel=[2] pad=[1 0]", 0, 0, 2);
    EXPECT(X "%r: f32[1,1,3], %i: i64[1,1,3] = max_pool_index %x kernel=[2] pad=[1 0]", -INFINITY, -INFINITY, 1);
#undef X
#define X "%x: u8[1,1,3] = const value=[200 100 255]\n"
    EXPECT(X "%m: u8[1,1,2], %r: i64[1,1,2] = max_pool_index %x kernel=[2]", 0, 2);
    EXPECT(X "%r: u8[1,1,2], %i: i64[1,1,2] = max_pool_index %x kernel=[2]", 200, 255);
#undef X
    EXPECT("%x: f32[1,2,3] = const value=[1 2 3  3 2 1]\n"
           "%m: f32[1,2,2], %r: i64[1,2,2] = max_pool_index %x kernel=[2] in_plane=1", 1, 2, 0, 1);
}

static void test_gradient_of_maximum(void **state)
{
    (void)state;
    EXPECT("%y: f32[1,2,3] = const value=[1 2 4  8 16 32]\n%i: i64[1,2,3] = const value=[1 3 1  0 -1 4]\n"
           "%r: f32[1,2,4] = max_pool_grad %y, %i", 0, 5, 0, 2, 8, 0, 0, 0);
    EXPECT("%y: u8[1,1,2] = const value=[200 100]\n%i: u8[1,1,2] = const value=1\n"
           "%r: u8[1,1,2] = max_pool_grad %y, %i", 0, 44);
    EXPECT("%y: f16[1,1,3] = const value=[2048 1 1]\n%i: i32[1,1,3] = const value=0\n"
           "%r: f16[1,1,1] = max_pool_grad %y, %i", 2050);
}

static void test_norm_pool(void **state)
{
    (void)state;
    EXPECT("%x: f32[1,1,4] = const value=[3 -4 0 2]\n%r: f32[1,1,2] = norm_pool %x kernel=[2] stride=[2]", 5, 2);
    EXPECT("%x: f32[1,1,3] = const value=[3 -4 nan]\n%r: f32[1,1,3] = norm_pool %x kernel=[2] pad=[1 0] order=1", 3, 7,
           NAN);
}

static void test_unpool(void **state)
{
    (void)state;
    EXPECT("%x: f32[1,1,3] = const value=[7 8 9]\n%p: i64[1,1,3] = const value=[4 0 -1]\n"
           "%r: f32[1,1,5] = unpool %x, %p",
           8, 0, 0, 0, 7);
}

static void test_conv_grad_weight(void **state)
{
    (void)state;
    EXPECT("%x: f32[2,1,3] = const value=[1 2 3  4 5 6]\n%d: f32[2,1,2] = const value=[1 10  0 -1]\n"
           "%r: f32[1,1,2] = conv_grad_weight %x, %d kernel=[2]",
           16, 26);
    EXPECT("%x: f32[1,2,3] = const value=[1 2 3  4 5 6]\n%d: f32[1,2,2] = const value=[1 10  2 -1]\n"
           "%r: f32[2,1,2] = conv_grad_weight %x, %d kernel=[2] stride=[2] pad=[1 0] groups=2",
           20, 31, -5, 2);
    EXPECT("%x: f32[1,1,2] = const value=[1 2]\n%d: f32[1,1,3] = const value=[inf 0 0]\n"
           "%r: f32[1,1,2] = conv_grad_weight %x, %d kernel=[2] pad=[1 1]",
           NAN, INFINITY);
}

static void test_deform_conv(void **state)
{
    (void)state;
#define X                                                                                                              \
    "%x: f32[1,1,2,3] = const value=[0 1 2 3 4 5]\n%w: f32[1,1,1,1] = const value=2\n"                                 \
    "%o: f32[1,2,2,3] = const value=[0 0 0.5 0 -0.5 9  0 0.5 0 -1 0.5 0]\n"
    EXPECT(X "%r: f32[1,1,2,3] = deform_conv %x, %w, %o", 0, 3, 7, 0, 6, 0);
    EXPECT(X "%m: f32[1,1,2,3] = const value=[1 2 0 1 1 1]\n%r: f32[1,1,2,3] = deform_conv %x, %w, %o, %m", 0, 6, 0, 0,
           6, 0);
#undef X
}

static void test_regions(void **state)
{
    (void)state;
#define X                                                                                                              \
    "%x: f32[1,1,3,3] = const value=[0 1 2 3 4 5 6 7 8]\n%n: i64[1] = const value=0\n"                                 \
    "%b: f32[1,4] = const value=[0 0 2 2]\n"
    EXPECT(X "%r: f32[1,1,1,1] = roi_align %x, %b, %n size=[1 1] half_pixel=0", 4);
    EXPECT(X "%r: f32[1,1,1,1] = roi_align %x, %b, %n size=[1 1]", 2);
    EXPECT(X "%r: f32[1,1,1,1] = roi_align %x, %b, %n size=[1 1] half_pixel=0 samples=1 form=max", 4);
    EXPECT(X "%r: f32[1,1,2,2] = roi_align %x, %b, %n size=[2 2] half_pixel=0 samples=1", 2, 3, 5, 6);
    EXPECT(X "%r: f32[1,1,2,2] = roi_max_pool %x, %b, %n size=[2 2]", 4, 5, 7, 8);
    EXPECT(X "%r: f32[1,1,1,1] = roi_max_pool %x, %b, %n size=[1 1] factor=0.5", 4);
#undef X
    EXPECT("%x: f32[1,1,1,1] = const value=3\n%n: i64[1] = const value=9\n%b: f32[1,4] = const value=[5 5 6 6]\n"
           "%r: f32[1,1,1,1] = roi_max_pool %x, %b, %n size=[1 1]",
           0);
    EXPECT_EMPTY("%x: f32[1,1,1,1] = const value=3\n%n: i64[0] = const value=9\n%b: f32[0,4] = const value=1\n"
                 "%r: f32[0,1,1,1] = roi_align %x, %b, %n size=[1 1]");
}

static void test_dft(void **state)
{
    (void)state;
#define X "%x: f64[4,1] = const value=[1 2 3 4]\n"
    EXPECT(X "%r: f64[1,2] = dft %x axis=0 length=1", 1, 0);
    EXPECT(X "%r: f64[2,2] = dft %x axis=0 length=2", 3, 0, -1, 0);
    EXPECT("%x: f32[1,2,2] = const value=[1 2 3 4]\n%r: f32[1,2,2] = dft %x axis=1 length=2", 4, 6, -2, -2);
    EXPECT("%x: f32[2,1,2] = const value=[4 6 -2 -2]\n%r: f32[2,1,2] = dft %x axis=0 length=2 inverse=1", 1, 2, 3, 4);
    EXPECT("%x: f32[2,2] = const value=[3 7 -1 9]\n%r: f32[2,1] = dft %x axis=0 length=2 inverse=1 onesided=1", 1, 2);
#undef X
    EXPECT("%x: f32[1,1] = const value=[5]\n%r: f32[3,2] = dft %x axis=0 length=5 onesided=1", 5, 0, 5, 0, 5, 0);
}

static void test_det(void **state)
{
    (void)state;
    EXPECT("%x: f32[2,2,2] = const value=[0 2 3 4  1 2 2 4]\n%r: f32[2] = det %x", -6, 0);
    EXPECT("%x: f32[3,3] = const value=[2 0 1 1 3 2 1 1 1]\n%r: f32[] = det %x", 0);
    EXPECT("%x: f32[1,1] = const value=[nan]\n%r: f32[] = det %x", NAN);
    EXPECT("%x: f32[2,0,0] = const value=1\n%r: f32[2] = det %x", 1, 1);
}

static void test_attention(void **state)
{
    (void)state;
#define X                                                                                                              \
    "%q: f32[1,2,2,1] = const value=[0 0 0 1]\n%k: f32[1,1,2,1] = const value=[0 0.693147180559945]\n"                 \
    "%v: f32[1,1,2,1] = const value=[3 6]\n"
    assert_true(WEFT_ATTENTION_HIDES == (float)WEFT_HIDING_MASK);
    EXPECT(X "%r: f32[1,2,2,1] = attention %q, %k, %v factor=1", 4.5, 4.5, 4.5, 5);
    EXPECT(X "%r: f32[1,2,2,1] = attention %q, %k, %v factor=1 causal=1", 3, 4.5, 3, 5);
    EXPECT(X "%r: f32[1,2,2,1] = attention %q, %k, %v factor=1 causal=1 offset=(-1)", 0, 3, 0, 3);
    EXPECT(X "%m: f32[1,2,2,2] = const value=[0 -inf -inf -inf -inf 0 -inf 0]\n"
             "%r: f32[1,2,2,1] = attention %q, %k, %v, %m factor=1 softcap=1",
           3, 0, 6, 6);
    EXPECT(X "%m: f32[1,2,2,2] = const value=[0 -inf -inf -inf 0 0 0 0]\n"
             "%y: f32[1,2,2,1], %r: f32[1,2,2] = attention_sums %q, %k, %v, %m factor=1",
           0, -INFINITY, 0.693147180559945, 1.09861228866811);
#undef X
}

static void test_quantize(void **state)
{
    (void)state;
#define X "%x: f32[8] = const value=[0 1 3 5 -1 -1000 1000 nan]\n%s: f32[8] = const value=2\n"
    EXPECT(X "%r: i8[8] = quantize %x, %s", 0, 0, 2, 2, 0, -128, 127, 0);
    EXPECT(X "%z: u8[8] = const value=1\n%r: u8[8] = quantize %x, %s, %z", 1, 1, 3, 3, 1, 0, 255, 0);
    EXPECT(X "%z: i4[8] = const value=-1\n%r: i4[8] = quantize %x, %s, %z", -1, -1, 1, 1, -1, -8, 7, 0);
    EXPECT(X "%r: f8e4m3[8] = quantize %x, %s", 0, 0.5, 1.5, 2.5, -0.5, -448, 448, NAN);
#undef X
    EXPECT("%x: f32[2] = const value=[inf -inf]\n%s: f32[2] = const value=1\n%r: f8e5m2[2] = quantize %x, %s", 57344,
           -57344);
    EXPECT_EMPTY("%x: f32[0] = const value=1\n%r: i16[0] = quantize %x, %x");
}

static void test_dequantize(void **state)
{
    (void)state;
    EXPECT("%x: u8[3] = const value=[0 128 255]\n%s: f32[3] = const value=[2 2 0.5]\n%z: u8[3] = const value=128\n"
           "%r: f32[3] = dequantize %x, %s, %z",
           -256, 0, 63.5);
    EXPECT("%x: i32[1] = const value=[-7]\n%s: f16[1] = const value=0.5\n%r: f16[1] = dequantize %x, %s", -3.5);
    EXPECT("%x: f8e4m3[2] = const value=[448 nan]\n%s: f32[2] = const value=0.5\n%r: f32[2] = dequantize %x, %s", 224,
           NAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_transpose), cmocka_unit_test(test_index_of_maximum),
        cmocka_unit_test(test_gradient_of_maximum), cmocka_unit_test(test_norm_pool),
        cmocka_unit_test(test_unpool),         cmocka_unit_test(test_conv_grad_weight),
        cmocka_unit_test(test_deform_conv),    cmocka_unit_test(test_regions),
        cmocka_unit_test(test_dft),            cmocka_unit_test(test_det),
        cmocka_unit_test(test_attention),      cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_dequantize),
    };
    return cmocka_run_group_tests_name("eval_window", tests, setup, teardown);
}
