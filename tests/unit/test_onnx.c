/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx.c: what models become: small ones, written byte by byte, compared as text. Real ones are in
 * test_onnx_models.c, hostile ones in test_onnx_hostile.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

/* TensorProto.DataType */
enum { FLOAT = 1, UINT8, INT8, INT32 = 6, INT64, BOOL = 9, FLOAT16, DOUBLE, UINT64 = 13, BFLOAT16 = 16, INT4 = 22 };

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* The pixel shuffle of super-resolution networks, with a batch of any size. */
static void test_symbolic_batch(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "batch.size 9 4 4");
    put_ints(&graph, "split", 6, (const int64_t[]){-1, 1, 3, 3, 4, 4});
    put_ints(&graph, "merged", 4, (const int64_t[]){-1, 1, 12, 12});
    put_node(&graph, "Reshape", "x,split", "a");
    struct bytes node = node_of("Transpose", "a", "b");
    put_ints_attribute(&node, "perm", 6, (const int64_t[]){0, 1, 4, 2, 5, 3});
    put_message(&graph, 1, &node);
    put_node(&graph, "Reshape", "b,merged", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 4, 10);
    expect_text(&model, "graph @main<batch_size>(%x: f32[batch_size,9,4,4]) {\n"
                        "  %split: i64[6] = const value=[-1 1 3 3 4 4]\n"
                        "  %a: f32[batch_size,1,3,3,4,4] = reshape %x\n"
                        "  %b: f32[batch_size,1,4,3,4,3] = transpose %a perm=[0 1 4 2 5 3]\n"
                        "  %merged: i64[4] = const value=[-1 1 12 12]\n"
                        "  %y: f32[batch_size,1,12,12] = reshape %b\n"
                        "  return %y\n}\n");
}

/* What exporters make of x.view(x.size(0), -1): the elements of Shape reach Reshape through three nodes. */
static void test_shape_subgraph(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 3 8");
    struct bytes zero = tensor_of("zero", INT64, 0, NULL);
    put_bytes(&zero, 9, &(int64_t){0}, 8);
    put_message(&graph, 5, &zero);
    put_ints(&graph, "rest", 1, &(int64_t){-1});
    put_ints(&graph, "front", 1, &(int64_t){0});
    put_node(&graph, "Shape", "x", "shape");
    put_node(&graph, "Gather", "shape,zero", "n");
    put_node(&graph, "Unsqueeze", "n,front", "n1");
    struct bytes node = node_of("Concat", "n1,rest", "wanted");
    put_int_attribute(&node, "axis", 0);
    put_message(&graph, 1, &node);
    put_node(&graph, "Reshape", "x,wanted", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,3,8]) {\n"
                        "  %shape: i64[3] = extents value=[N 3 8]\n"
                        "  %zero: i64[] = const value=0\n"
                        "  %n: i64[] = gather %shape, %zero axis=0\n"
                        "  %front: i64[1] = const value=0\n"
                        "  %n1: i64[1] = reshape %n\n"
                        "  %rest: i64[1] = const value=-1\n"
                        "  %wanted: i64[2] = concat %n1, %rest axis=0\n"
                        "  %y: f32[N,24] = reshape %x\n"
                        "  return %y\n}\n");
}

/* Extents without a name are different from each other; those that are unknown to be 1 do not broadcast. */
static void test_unnamed_extents(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "? 4");
    put_input(&graph, "y", "0 4");
    put_node(&graph, "Add", "x,y", "z");
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "Add_z: Add: extents d1 and d2 cannot be proved to broadcast");
}

static void test_names_of_symbols(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "a.b a_b max 2 a.b");
    put_node(&graph, "Relu", "x", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<a_b, a_b_1, max_1>(%x: f32[a_b,a_b_1,max_1,2,a_b]) {\n"
                        "  %y: f32[a_b,a_b_1,max_1,2,a_b] = relu %x\n"
                        "  return %y\n}\n");
}

static void test_slice_bounds(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 10");
    put_ints(&graph, "starts", 2, (const int64_t[]){1, -3});
    put_ints(&graph, "ends", 2, (const int64_t[]){INT64_MAX, 100});
    put_node(&graph, "Slice", "x,starts,ends", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,10]) {\n"
                        "  %starts: i64[2] = const value=[1 -3]\n"
                        "  %ends: i64[2] = const value=[9223372036854775807 100]\n"
                        "  %y: f32[N - min(N, 1),3] = slice %x start=[(min(N, 1)) 7] end=[N 10]\n"
                        "  return %y\n}\n");
}

/* --- broadcasting, contractions, windows -------------------------------------------------------------------------- */

static void test_broadcast(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 1 4");
    put_input(&graph, "y", "3 1");
    put_input(&graph, "z", "");
    put_node(&graph, "Sum", "x,y,z", "s");
    put_output(&graph, "s");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,1,4], %y: f32[3,1], %z: f32[]) {\n"
                        "  %0: f32[N,3,4] = bcast %x dims=[0 1 2]\n"
                        "  %1: f32[N,3,4] = bcast %y dims=[1 2]\n"
                        "  %2: f32[N,3,4] = add %0, %1\n"
                        "  %3: f32[N,3,4] = bcast %z dims=[]\n"
                        "  %s: f32[N,3,4] = add %2, %3\n"
                        "  return %s\n}\n");
}

static void test_gemm(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "a", "M 8");
    put_input(&graph, "b", "5 8");
    put_input(&graph, "c", "5");
    struct bytes node = node_of("Gemm", "a,b,c", "y");
    put_int_attribute(&node, "transB", 1);
    put_float_attribute(&node, "alpha", 0.5f);
    put_float_attribute(&node, "beta", 1.0f);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<M>(%a: f32[M,8], %b: f32[5,8], %c: f32[5]) {\n"
                        "  %0: f32[M,5] = matmul %a, %b trans_b=1\n"
                        "  %1: f32[M,5] = const value=0.5\n"
                        "  %2: f32[M,5] = mul %0, %1\n"
                        "  %3: f32[M,5] = bcast %c dims=[1]\n"
                        "  %y: f32[M,5] = add %2, %3\n"
                        "  return %y\n}\n");
}

static void test_matmul_of_batches(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 7 8");
    put_input(&graph, "w", "8 5");
    put_input(&graph, "k", "2 1 5 7");
    put_node(&graph, "MatMul", "x,w", "q");
    put_node(&graph, "MatMul", "q,k", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,7,8], %w: f32[8,5], %k: f32[2,1,5,7]) {\n"
                        "  %0: f32[7*N,8] = reshape %x\n"
                        "  %1: f32[7*N,5] = matmul %0, %w\n"
                        "  %q: f32[N,7,5] = reshape %1\n"
                        "  %2: f32[2,N,7,5] = bcast %q dims=[1 2 3]\n"
                        "  %3: f32[2,N,5,7] = bcast %k dims=[0 1 2 3]\n"
                        "  %y: f32[2,N,7,7] = matmul %2, %3\n"
                        "  return %y\n}\n");
}

static void put_conv(struct bytes *graph, const char *inputs, const char *output, const char *automatic, int64_t stride)
{
    struct bytes node = node_of("Conv", inputs, output);
    put_text_attribute(&node, "auto_pad", automatic);
    put_ints_attribute(&node, "strides", 2, (const int64_t[]){stride, stride});
    put_ints_attribute(&node, "kernel_shape", 2, (const int64_t[]){3, 2});
    put_message(graph, 1, &node);
}

/* With stride 1, SAME needs no known extents; with stride 2 an odd extent and an even one want different padding. */
static void test_conv_padding(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "1 4 H 7");
    put_input(&graph, "w", "4 4 3 2");
    put_input(&graph, "b", "4");
    put_input(&graph, "v", "1 4 8 7");
    put_conv(&graph, "x,w,b", "y", "SAME_LOWER", 1);
    put_conv(&graph, "v,w", "z", "SAME_UPPER", 2);
    put_output(&graph, "y");
    put_output(&graph, "z");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<H>(%x: f32[1,4,H,7], %w: f32[4,4,3,2], %b: f32[4], %v: f32[1,4,8,7]) {\n"
                        "  %0: f32[1,4,H,7] = conv %x, %w pad=[1 1 1 0]\n"
                        "  %1: f32[1,4,H,7] = bcast %b dims=[1]\n"
                        "  %y: f32[1,4,H,7] = add %0, %1\n"
                        "  %z: f32[1,4,4,4] = conv %v, %w stride=[2 2] pad=[0 0 1 1]\n"
                        "  return %y, %z\n}\n");
}

/* --- opsets ------------------------------------------------------------------------------------------------------- */

static struct bytes softmax_model(int64_t opset)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 3 4");
    put_node(&graph, "Softmax", "x", "y");
    put_output(&graph, "y");
    return model_of(&graph, 8, opset);
}

/* The default axis was 1 and stood for all axes from there; since 13 it is the last one, alone. */
static void test_softmax_by_opset(void **state)
{
    (void)state;
    const struct bytes before = softmax_model(12), after = softmax_model(13);
    expect_text(&before, "graph @main(%x: f32[2,3,4]) {\n"
                         "  %0: f32[2,12] = reshape %x\n"
                         "  %1: f32[2,12] = softmax %0 axis=1\n"
                         "  %y: f32[2,3,4] = reshape %1\n"
                         "  return %y\n}\n");
    expect_text(&after, "graph @main(%x: f32[2,3,4]) {\n"
                        "  %y: f32[2,3,4] = softmax %x axis=2\n"
                        "  return %y\n}\n");
}

/* Axes were an attribute and became an input, in ReduceSum at 13 and in its kin at 18. An attribute out of its time is
 * refused. */
static void test_reduction_axes_by_opset(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, node = node_of("ReduceMean", "x", "m");
    put_input(&graph, "x", "2 3 4");
    put_ints(&graph, "axes", 1, &(int64_t){-1});
    put_node(&graph, "ReduceSum", "x,axes", "s");
    put_ints_attribute(&node, "axes", 1, &(int64_t){1});
    put_int_attribute(&node, "keepdims", 0);
    put_message(&graph, 1, &node);
    put_output(&graph, "s");
    put_output(&graph, "m");
    const struct bytes between = model_of(&graph, 8, 17), later = model_of(&graph, 8, 18);
    expect_text(&between, "graph @main(%x: f32[2,3,4]) {\n"
                          "  %axes: i64[1] = const value=-1\n"
                          "  %s: f32[2,3,1] = sum %x axes=[2] keepdims=1\n"
                          "  %m: f32[2,4] = mean %x axes=[1]\n"
                          "  return %s, %m\n}\n");
    expect_error(&later, WEFT_ERR_UNSUPPORTED, "ReduceMean: attribute axes is not supported at opset 18");
}

static void test_clip_by_opset(void **state)
{
    (void)state;
    struct bytes old = {.count = 0}, node = node_of("Clip", "x", "y"), new = {.count = 0};
    put_input(&old, "x", "5");
    put_float_attribute(&node, "min", 0);
    put_float_attribute(&node, "max", 6);
    put_message(&old, 1, &node);
    put_output(&old, "y");
    struct bytes six = tensor_of("six", FLOAT, 0, NULL);
    put_float(&six, 4, 6);
    put_message(&new, 5, &six);
    put_input(&new, "x", "5");
    put_node(&new, "Clip", "x,,six", "y"); /* an empty name: no lower bound */
    put_output(&new, "y");
    const struct bytes before = model_of(&old, 8, 10), after = model_of(&new, 8, 11);
    expect_text(&before, "graph @main(%x: f32[5]) {\n"
                         "  %y: f32[5] = clamp %x low=0 high=6\n"
                         "  return %y\n}\n");
    expect_text(&after, "graph @main(%x: f32[5]) {\n"
                        "  %six: f32[] = const value=6\n"
                        "  %y: f32[5] = clamp %x high=6\n"
                        "  return %y\n}\n");
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* A constant of the type, whose elements are `value` times in field `number`, packed or one by one. */
static struct bytes typed_model(int type, unsigned number, unsigned count, const int64_t *values, bool packed,
                                int64_t extent)
{
    struct bytes tensor = tensor_of("c", type, 1, &extent), list = {.count = 0}, graph = {.count = 0};
    for (unsigned i = 0; i < count; i++)
        if (packed)
            put_varint(&list, (uint64_t)values[i]);
        else
            put_integer(&tensor, number, values[i]);
    if (packed)
        put_message(&tensor, number, &list);
    put_message(&graph, 5, &tensor);
    put_output(&graph, "c");
    return model_of(&graph, 8, 21);
}

static void expect_typed(int type, unsigned number, unsigned count, const int64_t *values, int64_t extent,
                         const char *line)
{
    char expected[200];
    snprintf(expected, sizeof expected, "graph @main() {\n  %%c: %s\n  return %%c\n}\n", line);
    for (int packed = 0; packed < 2; packed++) {
        const struct bytes model = typed_model(type, number, count, values, packed, extent);
        expect_text(&model, expected);
    }
}

static void test_typed_elements(void **state)
{
    (void)state;
    expect_typed(INT8, 5, 3, (const int64_t[]){-1, 127, -128}, 3, "i8[3] = const value=[-1 127 -128]");
    expect_typed(UINT8, 5, 2, (const int64_t[]){255, 0}, 2, "u8[2] = const value=[255 0]");
    expect_typed(BOOL, 5, 2, (const int64_t[]){1, 0}, 2, "bool[2] = const value=[1 0]");
    expect_typed(FLOAT16, 5, 2, (const int64_t[]){0x3c00, 0xc000}, 2, "f16[2] = const value=[1 -2]");
    expect_typed(BFLOAT16, 5, 2, (const int64_t[]){0x3f80, 0x4049}, 2, "bf16[2] = const value=[1 3.14]");
    expect_typed(INT32, 5, 2, (const int64_t[]){-7, 2147483647}, 2, "i32[2] = const value=[-7 2147483647]");
    expect_typed(INT64, 7, 2, (const int64_t[]){INT64_MIN, 5}, 2, "i64[2] = const value=[-9223372036854775808 5]");
    expect_typed(UINT64, 11, 1, (const int64_t[]){-1}, 1, "u64[1] = const value=18446744073709551615");
    expect_typed(INT4, 5, 2, (const int64_t[]){0x8f, 0x07}, 3, "i4[3] = const value=[-1 -8 7]");
}

static void test_float_and_double_elements(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, f = tensor_of("f", FLOAT, 1, &(int64_t){2}),
                 d = tensor_of("d", DOUBLE, 1, &(int64_t){2});
    put_float(&f, 4, 1.5f);
    put_float(&f, 4, -0.0f);
    put_bytes(&d, 10, (const double[]){0.1, 1e300}, 16);
    put_message(&graph, 5, &f);
    put_message(&graph, 5, &d);
    put_output(&graph, "f");
    put_output(&graph, "d");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main() {\n"
                        "  %f: f32[2] = const value=[1.5 -0]\n"
                        "  %d: f64[2] = const value=[0.1 1e+300]\n"
                        "  return %f, %d\n}\n");
}

static void test_counts_of_elements(void **state)
{
    (void)state;
    const int64_t values[] = {1, 2, 3};
    const struct bytes fewer = typed_model(INT64, 7, 3, values, true, 4),
                       none = typed_model(FLOAT, 4, 0, values, false, 2),
                       negative = typed_model(INT64, 7, 3, values, true, -3),
                       huge = typed_model(INT64, 7, 3, values, true, INT64_MAX),
                       text = typed_model(8, 6, 0, values, false, 1);
    expect_error(&fewer, WEFT_ERR_INVALID, "its shape asks for 4 elements, but there are 3");
    expect_error(&none, WEFT_ERR_INVALID, "its shape asks for 2 elements, but there are 0");
    expect_error(&negative, WEFT_ERR_INVALID, "extent -3 of axis 0 is negative");
    expect_error(&huge, WEFT_ERR_INVALID, "its extents are too large");
    expect_error(&text, WEFT_ERR_UNSUPPORTED, "elements of type string (8) are not supported");
}

/* --- if ----------------------------------------------------------------------------------------------------------- */

/* y = c ? x + k : relu(x), where k is a constant of the outer graph; the branches read x from outside. */
static struct bytes if_model(bool constant)
{
    struct bytes graph = {.count = 0}, yes = {.count = 0}, no = {.count = 0}, node = node_of("If", "c", "y");
    put_node(&yes, "Add", "x,k", "sum");
    put_output(&yes, "sum");
    put_node(&no, "Relu", "x", "kept");
    put_output(&no, "kept");
    put_graph_attribute(&node, "then_branch", &yes);
    put_graph_attribute(&node, "else_branch", &no);
    put_input(&graph, "x", "N 2");
    if (constant) {
        struct bytes c = tensor_of("c", BOOL, 0, NULL);
        put_integer(&c, 5, 1);
        put_message(&graph, 5, &c);
    } else {
        put_value(&graph, 11, "c", BOOL, "");
    }
    struct bytes k = tensor_of("k", FLOAT, 1, &(int64_t){2});
    put_float(&k, 4, 1);
    put_float(&k, 4, 2);
    put_message(&graph, 5, &k);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    return model_of(&graph, 8, 13);
}

static void test_if(void **state)
{
    (void)state;
    const struct bytes model = if_model(false);
    expect_text(&model, "graph @main<N>(%x: f32[N,2], %c: bool[]) {\n"
                        "  graph @then(%x: f32[N,2]) {\n"
                        "    %k: f32[2] = const value=[1 2]\n"
                        "    %0: f32[N,2] = bcast %k dims=[1]\n"
                        "    %sum: f32[N,2] = add %x, %0\n"
                        "    return %sum\n"
                        "  }\n"
                        "  graph @else(%x: f32[N,2]) {\n"
                        "    %kept: f32[N,2] = relu %x\n"
                        "    return %kept\n"
                        "  }\n"
                        "  %y: f32[N,2] = if %c, %x then=@then else=@else\n"
                        "  return %y\n}\n");
}

static void test_if_on_a_constant(void **state)
{
    (void)state;
    const struct bytes model = if_model(true);
    expect_text(&model, "graph @main<N>(%x: f32[N,2]) {\n"
                        "  %c: bool[] = const value=1\n"
                        "  %k: f32[2] = const value=[1 2]\n"
                        "  %0: f32[N,2] = bcast %k dims=[1]\n"
                        "  %y: f32[N,2] = add %x, %0\n"
                        "  return %y\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbolic_batch),
        cmocka_unit_test(test_shape_subgraph),
        cmocka_unit_test(test_unnamed_extents),
        cmocka_unit_test(test_names_of_symbols),
        cmocka_unit_test(test_slice_bounds),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_matmul_of_batches),
        cmocka_unit_test(test_conv_padding),
        cmocka_unit_test(test_softmax_by_opset),
        cmocka_unit_test(test_reduction_axes_by_opset),
        cmocka_unit_test(test_clip_by_opset),
        cmocka_unit_test(test_typed_elements),
        cmocka_unit_test(test_float_and_double_elements),
        cmocka_unit_test(test_counts_of_elements),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_if_on_a_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
