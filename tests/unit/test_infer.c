/* SPDX-License-Identifier: Apache-2.0 */
/* test_infer.c: result types with symbolic extents, messages of refusals, and symbolic elements of integer tensors. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct weft_context *context;

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

/* A graph over symbols N, M and C whose lines define %r. */
static int parse(const char *params, const char *lines, struct weft_graph **ret)
{
    char text[4096];
    const int length = snprintf(text, sizeof text, "weft 1\ngraph @g<N, M=1..64, C=8..8192>(%s) {\n%s\nreturn %%r\n}\n",
                                params, lines);
    assert_in_range(length, 1, (int)sizeof text - 1);
    return weft_parse(context, text, (size_t)length, "test", ret);
}

/* The text states each type, so a graph that parses was inferred as stated. */
static void accept(const char *params, const char *lines)
{
    struct weft_graph *graph = NULL;
    if (parse(params, lines, &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), lines);
    weft_graph_destroy(graph);
}

static void refuse(const char *params, const char *lines, const char *message)
{
    struct weft_graph *graph = NULL;
    if (parse(params, lines, &graph) == WEFT_OK)
        fail_msg("was accepted: %s", lines);
    assert_null(graph);
    if (!strstr(weft_last_error(context), message))
        fail_msg("'%s' is not in: %s", message, weft_last_error(context));
}

/* --- types ---------------------------------------------------------------------------------------------------------
 */

static void test_elementwise(void **state)
{
    (void)state;
    accept("%a: f32[N,2*M], %b: f32[N,M*2]", "%r: f32[N,2*M] = add %a, %b");
    accept("%a: f16[N]", "%r: bool[N] = is_nan %a");
    accept("%a: u8[N]", "%r: bool[N] = le %a, %a");
    accept("%a: f32[N]", "%r: f8e4m3[N] = cast %a");
    accept("%c: bool[N], %a: bool[N]", "%r: bool[N] = select %c, %a, %a");
    refuse("%a: f32[N], %b: f32[M]", "%r: f32[N] = add %a, %b", "add: operand 1 is f32[M], but operand 0 is f32[N]");
    refuse("%a: f32[N], %b: f16[N]", "%r: f32[N] = add %a, %b", "operand 1 is f16[N], but operand 0 is f32[N]");
    refuse("%a: i32[N]", "%r: i32[N] = exp %a", "exp: operand 0 is i32[N], but its elements must be a float");
    refuse("%a: bool[N]", "%r: bool[N] = add %a, %a", "its elements must be a float or integer");
    refuse("%a: f32[N]", "%r: f32[N] = and %a, %a", "its elements must be bool");
    refuse("%a: bool[N]", "%r: bool[N] = lt %a, %a", "its elements must be a float or integer");
    refuse("%a: i4[N]", "%r: i4[N] = neg %a", "operand 0 is i4[N], a type for storage only: cast it first");
    refuse("%c: bool[M], %a: f32[N]", "%r: f32[N] = select %c, %a, %a",
           "operand 0 is bool[M], but operand 1 is f32[N]");
    refuse("%a: f32[N]", "%r: i32[M] = cast %a", "operand 0 is f32[N], but the result is i32[M]");
    refuse("%a: f32[N]", "%r: f32[N] = add %a", "add: takes 2 operands, not 1");
}

static void test_reductions(void **state)
{
    (void)state;
    accept("%a: f32[N,M,C]", "%r: f32[M] = sum %a axes=[0 2]");
    accept("%a: f32[N,M,C]", "%r: f32[1,M,1] = mean %a axes=[0 2] keepdims=1");
    accept("%a: bf16[N,M]", "%r: f32[N] = sum %a axes=[1] acc=f32");
    accept("%a: f32[N,M]", "%r: f32[N,M] = softmax %a axis=1");
    accept("%x: f32[N,C,M], %s: f32[C]", "%r: f32[N,C,M] = batch_norm %x, %s, %s, %s, %s");
    refuse("%a: f32[N,M]", "%r: f32[N] = sum %a axes=[1 0]",
           "axes must rise and exist in operand 0, which is f32[N,M]");
    refuse("%a: f32[N,M]", "%r: f32[N] = sum %a axes=[2]", "axes must rise and exist");
    refuse("%a: f32[N,M]", "%r: f32[N] = sum %a axes=[1] acc=f16", "sum: f32 cannot be accumulated in f16");
    refuse("%a: f32[N,M]", "%r: f32[N] = sum %a axes=[1] acc=i64", "sum: f32 cannot be accumulated in i64");
    refuse("%a: f32[N,M]", "%r: f32[N,M] = softmax %a axis=2", "axis 2 does not exist in a tensor of rank 2");
    refuse("%a: f32[N,M]", "%r: f32[N] = sum %a axes=[1] keepdims=2", "attribute keepdims is 2");
    refuse("%x: f32[N,C], %s: f32[C], %t: f32[M]", "%r: f32[N,C] = batch_norm %x, %s, %s, %t, %s",
           "operand 3 is f32[M], but operand 0, which is f32[N,C], asks for f32[C]");
    accept("%x: f32[N,C,M], %s: f32[C,M]", "%r: f32[N,C,M] = layer_norm %x, %s, %s axis=1");
    accept("%x: bf16[N,C,M]", "%r: bf16[N,C,M] = rms_norm %x axis=0");
    accept("%x: f32[N,6*C,M], %s: f32[6*C]", "%r: f32[N,6*C,M] = group_norm %x, %s groups=3");
    refuse("%x: f32[N,C], %s: f32[N]", "%r: f32[N,C] = layer_norm %x, %s axis=1",
           "operand 1 is f32[N], but operand 0, which is f32[N,C], asks for f32[C]");
    refuse("%x: i32[N,C]", "%r: i32[N,C] = layer_norm %x axis=1", "its elements must be a float");
    refuse("%x: f32[N,C]", "%r: f32[N,C] = rms_norm %x axis=2", "axis 2 does not exist");
    refuse("%x: f32[N,4]", "%r: f32[N,4] = group_norm %x groups=3",
           "operand 0 is f32[N,4]: the channels do not fit groups=3");
    refuse("%x: f32[N]", "%r: f32[N] = group_norm %x groups=1", "needs a batch and a channel axis");
}

static void test_views(void **state)
{
    (void)state;
    accept("%a: f32[N,M,3]", "%r: f32[3,N,M] = transpose %a perm=[2 0 1]");
    accept("%a: f32[N,M,6]", "%r: f32[2*N,3*M] = reshape %a");
    accept("%a: f32[(N + 1)*M]", "%r: f32[N*M + M] = reshape %a");
    accept("%a: f32[N,1]", "%r: f32[C,M,N] = bcast %a dims=[2 0]");
    accept("%a: f32[N]", "%r: f32[N - 1] = slice %a start=[1] end=[N]");
    accept("%a: f32[2*N]", "%r: f32[N] = slice %a start=[0] end=[(2*N)] step=[2]");
    accept("%a: f32[2*N]", "%r: f32[N] = slice %a start=[1] end=[(2*N)] step=[2]");
    refuse("%a: f32[N,M]", "%r: f32[N,M] = transpose %a perm=[0 0]",
           "perm is no permutation of the axes of operand 0, which is f32[N,M]");
    refuse("%a: f32[N,M]", "%r: f32[N,M] = transpose %a perm=[0]", "attribute perm has 1 elements instead of 2");
    refuse("%a: f32[N,4]", "%r: f32[N,5] = reshape %a",
           "operand 0 is f32[N,4] with 4*N elements, but the result is f32[N,5] with 5*N");
    refuse("%a: f32[N]", "%r: i32[N] = reshape %a",
           "operand 0 is f32[N], but the result is i32[N]: the element types differ");
    refuse("%a: f32[N]", "%r: f32[N,M] = bcast %a dims=[1]",
           "operand 0 is f32[N], but the result is f32[N,M]: axis 0 is neither 1");
    refuse("%a: f32[N,N]", "%r: f32[N,M] = bcast %a dims=[0 0]", "dims must name different axes of the result");
    refuse("%a: f32[4]", "%r: f32[4] = slice %a start=[0] end=[5]",
           "operand 0 is f32[4], but axis 0 is cut from 0 to 5");
    refuse("%a: f32[4]", "%r: f32[4] = slice %a start=[-1] end=[3]", "axis 0 is cut from -1 to 3");
    refuse("%a: f32[4]", "%r: f32[4] = slice %a start=[3] end=[2]", "axis 0 is cut from 3 to 2");
    refuse("%a: f32[N]", "%r: f32[N] = slice %a start=[0] end=[(N + 1)]", "cut from 0 to N + 1");
    refuse("%a: f32[4]", "%r: f32[4] = slice %a start=[0] end=[4] step=[0]", "element 0 of attribute step is 0");
}

static void test_movement(void **state)
{
    (void)state;
    accept("%a: f32[N,M], %b: f32[N,3]", "%r: f32[N,2*M + 3] = concat %a, %b, %a axis=1");
    accept("%a: f32[N,M], %v: f32[]", "%r: f32[N + 3,M - 1] = pad %a, %v pad=[1 -1 2 0]");
    accept("%a: f32[N,C], %i: i64[M,2]", "%r: f32[N,M,2] = gather %a, %i axis=1");
    accept("%a: f32[N,C], %i: i32[]", "%r: f32[C] = gather %a, %i axis=0");
    refuse("%a: f32[N,M], %b: f32[M,3]", "%r: f32[N,3] = concat %a, %b axis=1",
           "operand 1 is f32[M,3], but operand 0 is f32[N,M]: they may differ in axis 1 only");
    refuse("%a: f32[N], %v: i32[]", "%r: f32[N] = pad %a, %v pad=[0 0]",
           "operand 1 is i32[], but must be one element of the type of operand 0");
    refuse("%a: f32[3], %v: f32[]", "%r: f32[6] = pad %a, %v pad=[3 0] form=reflect",
           "axis 0 cannot be padded by 3 and 0 with form=reflect");
    refuse("%a: f32[3], %v: f32[]", "%r: f32[3] = pad %a, %v pad=[-2 -2]", "axis 0 cannot be padded by -2 and -2");
    refuse("%a: f32[N], %i: f32[M]", "%r: f32[M] = gather %a, %i axis=0",
           "operand 1 is f32[M], but its elements must be an integer");
}

static void test_contractions(void **state)
{
    (void)state;
    accept("%a: f32[N,M,C], %b: f32[N,C,4]", "%r: f32[N,M,4] = matmul %a, %b");
    accept("%a: f32[C,M], %b: f32[N,C]", "%r: f32[M,N] = matmul %a, %b trans_a=1 trans_b=1");
    accept("%a: bf16[M,C], %b: bf16[C,N]", "%r: f32[M,N] = matmul %a, %b acc=f32");
    accept("%a: u8[M,C], %b: i8[C,N]", "%r: i32[M,N] = matmul %a, %b acc=i32");
    refuse("%a: f32[M,C], %b: f32[N,C]", "%r: f32[M,C] = matmul %a, %b",
           "operand 0 is f32[M,C] and operand 1 is f32[N,C]: axes 1 and 0 are summed over and must be equal");
    refuse("%a: f32[N,M,C], %b: f32[C,M]", "%r: f32[N,M,M] = matmul %a, %b", "both need the same rank");
    refuse("%a: u8[M,C], %b: i8[C,N]", "%r: i8[M,N] = matmul %a, %b", "the element types differ");

    accept("%x: f32[N,3,240,320], %w: f32[16,3,3,3]", "%r: f32[N,16,120,160] = conv %x, %w stride=[2 2] pad=[1 1 1 1]");
    accept("%x: f32[1,8,C], %w: f32[4,2,3]", "%r: f32[1,4,C - 4] = conv %x, %w groups=4 dilation=[2]");
    accept("%x: f32[1,1,2*C], %w: f32[1,1,2]", "%r: f32[1,1,C] = conv %x, %w stride=[2]");
    accept("%x: f32[1,1,N], %w: f32[1,1,3]", "%r: f32[1,1,(N - 1)/2 + 1] = conv %x, %w stride=[2] pad=[1 1]");
    refuse("%x: f32[N,3,8,8], %w: f32[16,4,3,3]", "%r: f32[N,16,6,6] = conv %x, %w",
           "the channels do not fit groups=1");
    refuse("%x: f32[N,4,8,8], %w: f32[3,2,3,3]", "%r: f32[N,3,6,6] = conv %x, %w groups=2",
           "the channels do not fit groups=2");
    refuse("%x: f32[N,1,2,2], %w: f32[1,1,3,3]", "%r: f32[N,1,0,0] = conv %x, %w",
           "no window of 3 taps fits into spatial axis 0");
    refuse("%x: f32[N,1,4], %w: f32[1,1,3]", "%r: f32[N,1,2] = conv %x, %w pad=[-1 1]", "must not be negative");
    refuse("%x: f32[N,1], %w: f32[1,1]", "%r: f32[N,1] = conv %x, %w", "1 to 3 spatial axes");

    accept("%x: f32[N,C,7,7]", "%r: f32[N,C,3,3] = max_pool %x kernel=[2 2] stride=[2 2]");
    accept("%x: f32[N,C,7,7]", "%r: f32[N,C,4,4] = max_pool %x kernel=[2 2] stride=[2 2] ceil=1");
    accept("%x: f32[1,1,4]", "%r: f32[1,1,2] = max_pool %x kernel=[1] stride=[2] pad=[0 1] ceil=1");
    accept("%x: f32[1,1,N]", "%r: f32[1,1,N] = mean_pool %x kernel=[3] pad=[1 1]");
    refuse("%x: i8[N,C,7]", "%r: i8[N,C,6] = mean_pool %x kernel=[2]", "its elements must be a float");
    refuse("%x: f32[N,C,7]", "%r: f32[N,C,6] = max_pool %x kernel=[2 2]",
           "attribute kernel has 2 elements instead of 1");
}

static void test_control(void **state)
{
    (void)state;
#define TWICE "graph @t(%x: f32[N]) {\n%y: f32[N] = add %x, %x\nreturn %y\n}\n"
#define STEP  "graph @b(%i: i64[], %x: f32[N]) {\n%y: f32[N] = neg %x\nreturn %y\n}\n"
    accept("%c: bool[], %a: f32[N]",
           TWICE "graph @e(%x: f32[N]) {\nreturn %x\n}\n%r: f32[N] = if %c, %a then=@t else=@e");
    accept("%k: i64[], %a: f32[N]", STEP "%r: f32[N] = loop %k, %a body=@b");
    refuse("%c: i64[], %a: f32[N]",
           TWICE "graph @e(%x: f32[N]) {\nreturn %x\n}\n%r: f32[N] = if %c, %a then=@t else=@e",
           "if: operand 0 is i64[], but must be bool[]");
    refuse("%c: bool[], %a: f32[M]",
           TWICE "graph @e(%x: f32[N]) {\nreturn %x\n}\n%r: f32[N] = if %c, %a then=@t else=@e",
           "if: operand 1 is f32[M], but parameter 0 of body @t is f32[N]");
    refuse("%c: bool[], %a: f32[N]",
           TWICE "graph @e(%x: f32[N]) {\n%y: i32[N] = cast %x\nreturn %y\n}\n%r: f32[N] = if %c, %a then=@t else=@e",
           "result 0 is f32[N] in body @t, but i32[N] in body @e");
    accept("%k: i64[], %a: f32[N]", STEP "%r: f32[N] = loop %k, %a body=@b carried=1");
    refuse("%k: i64[], %a: f32[N]", STEP "%r: f32[N] = loop %k, %a body=@b carried=0", "attribute length");
    refuse("%k: i64[], %a: f32[N]", STEP "%r: f32[N] = loop %k, %a body=@b carried=2", "attribute carried is 2");
    refuse("%k: i64[], %a: f32[N]", STEP "%r: f32[N] = loop %k, %a body=@b while=1",
           "while=1 asks for a bool[] as the first carried value");
    accept("%k: i64[], %a: f32[N]", STEP "%r: f32[M,N] = loop %k, %a body=@b carried=0 length=M");
    refuse("%k: i64[], %a: f32[N]", TWICE "%r: f32[N] = loop %k, %a body=@t",
           "loop: body @t (body) takes 1 parameters instead of 2");
    refuse("%k: i64[], %a: f32[N]",
           "graph @b(%i: i64[], %x: f32[N]) {\n%y: i32[N] = cast %x\nreturn %y\n}\n%r: i32[N] = loop %k, %a body=@b",
           "operand 1 is f32[N], but body @b returns i32[N] for it");
#undef TWICE
#undef STEP
}

/* Each operand has 2^56 elements; nobody states the type of the result. */
static void test_huge(void **state)
{
    (void)state;
    struct weft_graph *graph;
    assert_int_equal(weft_graph_create(context, "huge", &graph), WEFT_OK);
    const weft_dim extent[] = {weft_extent(INT64_C(1) << 31), weft_extent(INT64_C(1) << 25)};
    weft_val half, whole;
    assert_int_equal(weft_splat(graph, WEFT_F32, 2, extent, 1, &half), WEFT_OK);
    const struct weft_attribute axis = {.name = "axis", .integer = 0};
    struct weft_op op = {.size = sizeof op, .op = "concat", .operand = (const weft_val[]){half, half}, .operands = 2,
                         .attribute = &axis, .attributes = 1};
    assert_int_equal(weft_append(graph, &op, &whole), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(context), "concat: the result is f32[4294967296,33554432], which is more"));
    op.operand = &half;
    op.operands = 1;
    assert_int_equal(weft_append(graph, &op, &whole), WEFT_OK);
    weft_graph_destroy(graph);
}

/* --- contents ------------------------------------------------------------------------------------------------------
 */

/* The elements of %r, separated by blanks; "?" where they are unknown. */
static void expect_content(const char *params, const char *lines, const char *wanted)
{
    struct weft_graph *graph = NULL;
    if (parse(params, lines, &graph) != WEFT_OK)
        fail_msg("%s\n%s", weft_last_error(context), lines);
    const weft_val result = weft_value_find(graph, "r", 1);
    const struct weft_value *value = weft_value_of(graph, result);
    struct weft_text text = {.context = context};
    if (!value->content)
        weft_text_add(&text, "?");
    for (int64_t i = 0; value->content && i < weft_dim_value(weft_type_elements(graph->dims, &value->type)); i++) {
        if (i > 0)
            weft_text_add(&text, ", ");
        weft_dim_print(graph->dims, value->content[i], &text);
    }
    if (strcmp(text.length ? text.data : "", wanted) != 0)
        fail_msg("'%s' instead of '%s': %s", text.length ? text.data : "", wanted, lines);
    weft_text_close(&text);
    weft_graph_destroy(graph);
}

static void test_content_shape_subgraph(void **state)
{
    (void)state;
    /* what exporters make of x.view(x.size(0), x.size(1) / 2, -1) */
    expect_content(
        "",
        "%s: i64[3] = extents value=[M (2*C) N]\n%zero: i64[1] = const value=[0]\n%one: i64[1] = const value=[1]\n"
        "%a: i64[1] = gather %s, %zero axis=0\n%b: i64[1] = gather %s, %one axis=0\n%two: i64[1] = const value=[2]\n"
        "%h: i64[1] = div %b, %two\n%p: i64[] = prod %s axes=[0]\n%q: i64[1] = reshape %p\n"
        "%d: i64[1] = mul %a, %h\n%rest: i64[1] = div %q, %d\n%r: i64[3] = concat %a, %h, %rest axis=0",
        "M, C, 2*N");
}

static void test_content_arithmetic(void **state)
{
    (void)state;
#define E "%e: i64[2] = extents value=[N M]\n%k: i64[2] = const value=[3 -3]\n"
    expect_content("", E "%r: i64[2] = add %e, %k", "N + 3, M - 3");
    expect_content("", E "%r: i64[2] = sub %k, %e", "-N + 3, -M - 3");
    expect_content("", E "%r: i64[2] = mul %e, %k", "3*N, -3*M");
    expect_content("", E "%r: i64[2] = mod %k, %k", "0, 0");
    expect_content("", E "%r: i64[2] = neg %e", "-N, -M");
    expect_content("", E "%r: i64[2] = abs %k", "3, 3");
    expect_content("", E "%r: i64[2] = max %e, %k", "max(N, 3), M");
    expect_content("", E "%r: i64[2] = min %e, %k", "min(N, 3), -3");
    expect_content("", E "%r: bool[2] = gt %e, %k", "?");
    expect_content("", E "%r: i32[2] = cast %e", "N, M");
    expect_content("", E "%r: i8[2] = cast %e", "?");
    expect_content("", E "%r: i64[] = sum %e axes=[0]", "M + N");
    expect_content("", E "%r: i64[] = reduce_max %k axes=[0]", "3");
#undef E
    expect_content("", "%a: i64[3] = const value=[7 -7 -7]\n%b: i64[3] = const value=[2 2 -2]\n%r: i64[3] = div %a, %b",
                   "3, -3, 3");
    expect_content("", "%a: i64[2] = const value=[7 -7]\n%b: i64[2] = const value=[3 3]\n%r: i64[2] = mod %a, %b",
                   "1, 2");
    expect_content(
        "", "%a: i64[2] = const value=[7 -7]\n%b: i64[2] = const value=[3 3]\n%r: i64[2] = mod %a, %b form=trunc",
        "1, -1");
    expect_content("", "%a: i64[1] = extents value=[(N - 5)]\n%b: i64[1] = const value=[2]\n%r: i64[1] = div %a, %b",
                   "?");
    expect_content("", "%a: i64[1] = extents value=[(2*N - 6)]\n%b: i64[1] = const value=[2]\n%r: i64[1] = div %a, %b",
                   "N - 3");
    expect_content("", "%a: i64[1] = extents value=[(3*M)]\n%b: i64[1] = extents value=[M]\n%r: i64[1] = div %a, %b",
                   "3");
    expect_content("", "%a: i64[1] = extents value=[(3*N)]\n%b: i64[1] = extents value=[N]\n%r: i64[1] = div %a, %b",
                   "?"); /* 0 / 0 is 0 */
    expect_content("", "%a: i64[1] = extents value=[C]\n%b: i64[1] = extents value=[N]\n%r: i64[1] = div %a, %b", "?");
    expect_content("",
                   "%a: i64[2] = extents value=[(N - 5) -7]\n%b: i64[2] = const value=2\n"
                   "%r: i64[2] = floor_div %a, %b",
                   "(N + 1)/2 - 3, -4");
    expect_content("", "%a: i64[1] = extents value=[C]\n%b: i64[1] = extents value=[N]\n%r: i64[1] = floor_div %a, %b",
                   "?");
    expect_content("", "%a: i64[1] = extents value=[N]\n%b: i64[1] = const value=[0]\n%r: i64[1] = div %a, %b", "?");
    expect_content("", "%a: i8[1] = const value=[100]\n%r: i8[1] = add %a, %a", "?");
    expect_content("", "%r: i64[1] = const value=[9223372036854775807]", "?");
    /* the product passes 2^64 on its way to 0, and the sum 2^62 on its way back */
    expect_content("", "%a: i64[3] = const value=[1099511627776 1099511627776 0]\n%r: i64[] = prod %a axes=[0]", "?");
    expect_content("",
                   "%a: i64[6] = const value=[1152921504606846976 1152921504606846976 1152921504606846976 "
                   "1152921504606846976 -1152921504606846976 -1152921504606846976]\n%r: i64[] = sum %a axes=[0]",
                   "?");
    /* longer than an extent may be: legal, but unknown */
    expect_content("",
                   "%a: i64[] = extents value=[N]\n%b: i64[] = mul %a, %a\n%c: i64[] = mul %b, %b\n"
                   "%d: i64[] = mul %c, %c\n%e: i64[] = mul %d, %d\n%f: i64[] = mul %e, %e\n%r: i64[] = mul %f, %a",
                   "?");
}

static void test_content_logic(void **state)
{
    (void)state;
    expect_content(
        "", "%a: i64[4] = extents value=[M M N C]\n%b: i64[4] = extents value=[0 M -1 8193]\n%r: bool[4] = le %a, %b",
        "0, 1, 0, 1");
    expect_content("",
                   "%a: i64[2] = extents value=[N M]\n%b: i64[2] = const value=[-1 -1]\n%c: bool[2] = eq %a, %b\n"
                   "%k: i64[2] = const value=[1 1]\n%r: i64[2] = select %c, %k, %a",
                   "N, M");
    expect_content("", "%a: bool[2] = const value=[1 0]\n%b: bool[2] = not %a\n%r: bool[2] = or %a, %b", "1, 1");
    expect_content("", "%a: i64[2] = extents value=[M 0]\n%r: bool[2] = cast %a", "1, 0");
}

static void test_content_movement(void **state)
{
    (void)state;
#define E "%e: i64[2,2] = extents value=[N M C 4]\n"
    expect_content("", E "%r: i64[2,2] = transpose %e perm=[1 0]", "N, C, M, 4");
    expect_content("", E "%r: i64[1,2] = slice %e start=[1 0] end=[2 2]", "C, 4");
    expect_content("", E "%i: i64[] = const value=-1\n%r: i64[2] = gather %e, %i axis=1", "M, 4");
    expect_content("", E "%i: i64[1] = const value=[2]\n%r: i64[2,1] = gather %e, %i axis=1", "?");
    expect_content("", E "%r: i64[2,4] = concat %e, %e axis=1", "N, M, N, M, C, 4, C, 4");
    expect_content("", E "%r: i64[1,2] = prod %e axes=[0] keepdims=1", "C*N, 4*M");
    expect_content("", E "%r: i64[4] = reshape %e", "N, M, C, 4");
#undef E
    expect_content("", "%e: i64[1] = extents value=[N]\n%r: i64[3] = bcast %e dims=[0]", "N, N, N");
    expect_content("", "%r: i64[2,2] = iota axis=1", "0, 1, 0, 1");
    expect_content("", "%r: i64[0] = const value=1", "");
    expect_content("", "%r: i64[65] = const value=1", "?");
    expect_content("%a: i64[1]", "%r: i64[1] = neg %a", "?");
    expect_content("", "%r: i64[N] = const value=1", "?");
}

/* A change reaches what it decides once for each node, however many ways lead there. */
static void test_content_changes(void **state)
{
    (void)state;
    enum { DIAMONDS = 40 };
    char lines[4000];
    size_t used = (size_t)sprintf(lines, "%%k: i64[] = const value=5\n%%x0: i64[] = const value=3\n");
    for (int i = 0; i < DIAMONDS; i++)
        used += (size_t)sprintf(lines + used, "%%a%d: i64[] = abs %%x%d\n%%b%d: i64[] = neg %%x%d\n"
                                "%%x%d: i64[] = sub %%a%d, %%b%d\n", i, i, i, i, i + 1, i, i);
    sprintf(lines + used, "%%r: i64[] = neg %%x%d", DIAMONDS);
    struct weft_graph *graph = NULL;
    assert_int_equal(parse("%p: i64[]", lines, &graph), WEFT_OK);
    const struct weft_value *const r = weft_value_of(graph, weft_value_find(graph, "r", 1));
    const weft_val x = weft_value_find(graph, "x0", 2), k = weft_value_find(graph, "k", 1);
    assert_non_null(r->content);
    assert_true(weft_dim_is(r->content[0], -3 * (INT64_C(1) << DIAMONDS)));
    weft_replace_uses(graph, x, k);
    assert_non_null(r->content);
    assert_true(weft_dim_is(r->content[0], -5 * (INT64_C(1) << DIAMONDS)));
    weft_replace_uses(graph, k, graph->param[0]);
    assert_null(r->content);
    weft_replace_uses(graph, graph->param[0], k);
    assert_true(weft_dim_is(r->content[0], -5 * (INT64_C(1) << DIAMONDS)));
    assert_int_equal(weft_validate(graph), WEFT_OK);
    weft_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_movement),
        cmocka_unit_test(test_contractions),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_content_shape_subgraph),
        cmocka_unit_test(test_content_arithmetic),
        cmocka_unit_test(test_content_logic),
        cmocka_unit_test(test_content_movement),
        cmocka_unit_test(test_content_changes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
