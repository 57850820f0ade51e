/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_products.c: what transposed convolutions, sums over named axes, quantised tensors, attention and the ops of
 * com.microsoft become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

enum { FLOAT = 1, UINT8, INT8, INT32 = 6, INT64, BOOL = 9, FLOAT16 };

/* A wanted extent becomes padding, or zeros behind. */
static void test_conv_transpose_to_extent(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 2 3");
    put_input(&graph, "w", "2 4 3");
    struct bytes node = node_of("ConvTranspose", "x,w", "y");
    put_ints_attribute(&node, "strides", 1, (const int64_t[]){2});
    put_ints_attribute(&node, "output_shape", 1, (const int64_t[]){9});
    put_message(&graph, 1, &node);
    node = node_of("ConvTranspose", "x,w", "z");
    put_ints_attribute(&node, "strides", 1, (const int64_t[]){2});
    put_text_attribute(&node, "auto_pad", "SAME_UPPER");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,2,3], %w: f32[2,4,3]) {\n"
                        "  %y: f32[N,4,9] = conv_transpose %x, %w stride=[2] out_pad=[2]\n"
                        "  %z: f32[N,4,6] = conv_transpose %x, %w stride=[2] pad=[0 1]\n"
                        "  return %y, %z\n}\n");
}

static void test_max_pool_with_places(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "1 1 4 4");
    struct bytes node = node_of("MaxPool", "x", "y,i");
    put_ints_attribute(&node, "kernel_shape", 2, (const int64_t[]){2, 2});
    put_int_attribute(&node, "storage_order", 1);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    put_output(&graph, "i");
    const struct bytes model = model_of(&graph, 8, 12);
    expect_text(&model, "graph @main(%x: f32[1,1,4,4]) {\n"
                        "  %y: f32[1,1,3,3], %i: i64[1,1,3,3] = max_pool_index %x kernel=[2 2] column_major=1\n"
                        "  return %y, %i\n}\n");
}

static struct bytes einsum_model(const char *equation, const char *a, const char *b)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "a", a);
    put_input(&graph, "b", b);
    struct bytes node = node_of("Einsum", "a,b", "y");
    put_text_attribute(&node, "equation", equation);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    return model_of(&graph, 8, 12);
}

static void test_einsum(void **state)
{
    (void)state;
    struct bytes model = einsum_model("...ij,jk->...ki", "N 2 3", "3 4");
    expect_text(&model, "graph @main<N>(%a: f32[N,2,3], %b: f32[3,4]) {\n"
                        "  %0: f32[2,N,3] = transpose %a perm=[1 0 2]\n"
                        "  %1: f32[1,2*N,3] = reshape %0\n"
                        "  %2: f32[4,3] = transpose %b perm=[1 0]\n"
                        "  %3: f32[1,4,3] = reshape %2\n"
                        "  %4: f32[1,2*N,4] = matmul %1, %3 trans_b=1\n"
                        "  %5: f32[2,N,4] = reshape %4\n"
                        "  %y: f32[N,4,2] = transpose %5 perm=[1 2 0]\n"
                        "  return %y\n}\n");
    model = einsum_model("ij,jk->il", "2 3", "3 4");
    expect_error(&model, WEFT_ERR_INVALID, "the result of the equation has an axis that no term has");
    model = einsum_model("ij,jk,kl", "2 3", "3 4");
    expect_error(&model, WEFT_ERR_INVALID, "the equation does not have 2 terms");
    model = einsum_model("ij,j", "2 3", "3 4");
    expect_error(&model, WEFT_ERR_INVALID, "a term of the equation has 1 axes for an operand of 2");
}

/* One scale for each block of two along axis 1, of which the last is cut. */
static void test_blocks(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_value(&graph, 11, "x", INT8, "4 3");
    put_input(&graph, "s", "4 2");
    struct bytes node = node_of("DequantizeLinear", "x,s", "y");
    put_int_attribute(&node, "block_size", 2);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 10, 21);
    expect_text(&model, "graph @main(%x: i8[4,3], %s: f32[4,2]) {\n"
                        "  %0: f32[4,2,2] = bcast %s dims=[0 1]\n"
                        "  %1: f32[4,4] = reshape %0\n"
                        "  %2: f32[4,3] = slice %1 start=[0 0] end=[4 3]\n"
                        "  %y: f32[4,3] = dequantize %x, %2\n"
                        "  return %y\n}\n");
}

static void test_integer_product(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_value(&graph, 11, "a", UINT8, "2 3");
    put_value(&graph, 11, "b", INT8, "3 4");
    put_value(&graph, 11, "z", UINT8, "2");
    put_node(&graph, "MatMulInteger", "a,b,z", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 10);
    expect_text(&model, "graph @main(%a: u8[2,3], %b: i8[3,4], %z: u8[2]) {\n"
                        "  %0: i32[2,3] = cast %a\n"
                        "  %1: i32[2] = cast %z\n"
                        "  %2: i32[2,3] = bcast %1 dims=[0]\n"
                        "  %3: i32[2,3] = sub %0, %2\n"
                        "  %4: i32[3,4] = cast %b\n"
                        "  %y: i32[2,4] = matmul %3, %4\n"
                        "  return %y\n}\n");
}

/* The cache comes first, and rows see what stands before them. */
static void test_attention_with_a_cache(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "q", "1 2 S 4");
    put_input(&graph, "k", "1 2 S 4");
    put_input(&graph, "p", "1 2 P 4");
    struct bytes node = node_of("Attention", "q,k,k,,p,p", "y,K");
    put_int_attribute(&node, "is_causal", 1);
    put_float_attribute(&node, "scale", 0.5F);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    put_output(&graph, "K");
    const struct bytes model = model_of(&graph, 10, 23);
    expect_text(&model,
                "graph @main<S, P>(%q: f32[1,2,S,4], %k: f32[1,2,S,4], %p: f32[1,2,P,4]) {\n"
                "  %K: f32[1,2,P + S,4] = concat %p, %k axis=2\n"
                "  %0: f32[1,2,P + S,4] = concat %p, %k axis=2\n"
                "  %y: f32[1,2,S,4] = attention %q, %K, %0 factor=0.5 causal=1 offset=P\n"
                "  return %y, %K\n}\n");
}

static void test_fused_product(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "a", "3 2");
    put_input(&graph, "b", "3 4");
    struct bytes node = node_of("FusedMatMul", "a,b", "y");
    put_text(&node, 7, "com.microsoft");
    put_int_attribute(&node, "transA", 1);
    put_float_attribute(&node, "alpha", 0.5F);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 14);
    expect_text(&model, "graph @main(%a: f32[3,2], %b: f32[3,4]) {\n"
                        "  %0: f32[2,3] = transpose %a perm=[1 0]\n"
                        "  %1: f32[2,4] = matmul %0, %b\n"
                        "  %2: f32[2,4] = const value=0.5\n"
                        "  %y: f32[2,4] = mul %1, %2\n"
                        "  return %y\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_transpose_to_extent), cmocka_unit_test(test_max_pool_with_places),
        cmocka_unit_test(test_einsum),                   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_integer_product),          cmocka_unit_test(test_attention_with_a_cache),
        cmocka_unit_test(test_fused_product),
    };
    return cmocka_run_group_tests_name("onnx_products", tests, NULL, NULL);
}
