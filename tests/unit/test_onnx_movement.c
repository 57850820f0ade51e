/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_movement.c: what ops that move and resample become, where symbols and old opsets make a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

static void put_floats(struct bytes *graph, const char *name, unsigned count, const float *values)
{
    struct bytes tensor = tensor_of(name, 1, 1, &(int64_t){count});
    put_bytes(&tensor, 9, values, count * sizeof *values);
    put_message(graph, 5, &tensor);
}

/* x[::-1, -2:0:-2]: the reversed axes are cut. */
static void test_slice_backwards(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 10");
    put_ints(&graph, "starts", 2, (const int64_t[]){-1, -2});
    put_ints(&graph, "ends", 2, (const int64_t[]){INT64_MIN, 0});
    put_ints(&graph, "axes", 2, (const int64_t[]){0, 1});
    put_ints(&graph, "steps", 2, (const int64_t[]){-1, -2});
    put_node(&graph, "Slice", "x,starts,ends,axes,steps", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,10]) {\n"
                        "  %starts: i64[2] = const value=[-1 -2]\n"
                        "  %ends: i64[2] = const value=[-9223372036854775808 0]\n"
                        "  %axes: i64[2] = const value=[0 1]\n"
                        "  %steps: i64[2] = const value=[-1 -2]\n"
                        "  %0: f32[N,10] = flip %x axes=[0 1]\n"
                        "  %y: f32[N,4] = slice %0 start=[0 1] end=[N 9] step=[1 2]\n"
                        "  return %y\n}\n");
}

/* A shape read backwards is still known. */
static void test_reversed_shape(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 4");
    put_ints(&graph, "starts", 1, &(int64_t){-1});
    put_ints(&graph, "ends", 1, &(int64_t){INT64_MIN});
    put_ints(&graph, "axes", 1, &(int64_t){0});
    put_ints(&graph, "steps", 1, &(int64_t){-1});
    put_node(&graph, "Shape", "x", "shape");
    put_node(&graph, "Slice", "shape,starts,ends,axes,steps", "turned");
    put_node(&graph, "Reshape", "x,turned", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<N>(%x: f32[N,4]) {\n"
                        "  %shape: i64[2] = extents value=[N 4]\n"
                        "  %starts: i64[1] = const value=-1\n"
                        "  %ends: i64[1] = const value=-9223372036854775808\n"
                        "  %axes: i64[1] = const value=0\n"
                        "  %steps: i64[1] = const value=-1\n"
                        "  %0: i64[2] = flip %shape axes=[0]\n"
                        "  %turned: i64[2] = slice %0 start=[0] end=[2]\n"
                        "  %y: f32[4,N] = reshape %x\n"
                        "  return %y\n}\n");
}

/* A table of 4 positions, cut to the length of x and added to it: a longer x would not broadcast. */
static void test_assumed_length(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "length");
    put_floats(&graph, "table", 4, (const float[]){1, 2, 3, 4});
    put_ints(&graph, "zero", 1, &(int64_t){0});
    put_node(&graph, "Shape", "x", "shape");
    put_node(&graph, "Slice", "table,zero,shape", "positions");
    put_node(&graph, "Add", "x,positions", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<length=0..4>(%x: f32[length]) {\n"
                        "  %shape: i64[1] = extents value=[length]\n"
                        "  %table: f32[4] = const value=[1 2 3 4]\n"
                        "  %zero: i64[1] = const value=0\n"
                        "  %positions: f32[length] = slice %table start=[0] end=[length]\n"
                        "  %y: f32[length] = add %x, %positions\n"
                        "  return %y\n}\n");
}

/* Nothing can be assumed that would make 2*N elements and N + 1 broadcast, but for N = 1 alone. */
static void test_nothing_to_assume(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N");
    put_ints(&graph, "twice", 1, &(int64_t){2});
    put_ints(&graph, "pads", 2, (const int64_t[]){0, 1});
    put_node(&graph, "Tile", "x,twice", "longer");
    put_node(&graph, "Pad", "x,pads", "padded");
    put_node(&graph, "Add", "longer,padded", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "extents 2*N and N + 1 cannot be proved to broadcast");
}

/* A factor is a fraction, so that an open extent can be multiplied by it. */
static void test_resize_of_symbols(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "1 3 H 8");
    put_floats(&graph, "scales", 4, (const float[]){1, 1, 1.5f, 2});
    struct bytes node = node_of("Resize", "x,,scales", "y");
    put_text_attribute(&node, "mode", "linear");
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_text(&model, "graph @main<H>(%x: f32[1,3,H,8]) {\n"
                        "  %scales: f32[4] = const value=[1 1 1.5 2]\n"
                        "  %y: f32[1,3,H + H/2,16] = resize %x form=linear scale=[1 1 1.5 2]\n"
                        "  return %y\n}\n");
}

/* Before opset 11 the nearest element of an axis that shrinks was the one above. */
static void test_resize_of_old(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "4 4");
    put_floats(&graph, "scales", 2, (const float[]){2, 0.5f});
    put_node(&graph, "Resize", "x,scales", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 5, 10);
    expect_text(&model, "graph @main(%x: f32[4,4]) {\n"
                        "  %scales: f32[2] = const value=[2 0.5]\n"
                        "  %0: f32[8,4] = resize %x coordinates=asymmetric nearest=floor scale=[2 1]\n"
                        "  %y: f32[8,2] = resize %0 coordinates=asymmetric nearest=ceil scale=[1 0.5]\n"
                        "  return %y\n}\n");
}

/* A cache whose rows are written where each sequence ends. */
static void test_tensor_scatter(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2 16 4");
    put_input(&graph, "u", "2 1 4");
    put_value(&graph, 11, "at", 7, "2");
    put_node(&graph, "TensorScatter", "x,u,at", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 12, 24);
    expect_text(&model, "graph @main(%x: f32[2,16,4], %u: f32[2,1,4], %at: i64[2]) {\n"
                        "  %0: i64[1] = iota axis=0\n"
                        "  %1: i64[2,1,4] = bcast %0 dims=[1]\n"
                        "  %2: i64[2,1,4] = bcast %at dims=[0]\n"
                        "  %3: i64[2,1,4] = add %1, %2\n"
                        "  %y: f32[2,16,4] = scatter_elements %x, %3, %u axis=1\n"
                        "  return %y\n}\n");
}

/* --- bounds that come out of data --------------------------------------------------------------------------------- */

/* The model is read as it stands, and its text has this somewhere. */
static void expect_within(const struct bytes *model, const char *expected)
{
    struct folder folder = open_folder();
    struct weft_graph *graph = NULL;
    char *text = NULL;
    if (load_model(&folder, model, &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(folder.context));
    assert_int_equal(weft_validate(graph), WEFT_OK);
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    if (!strstr(text, expected))
        fail_msg("\"%s\" is not in:\n%s", expected, text);
    weft_free_text(folder.context, text);
    weft_graph_destroy(graph);
    close_folder(&folder);
}

/* At most as much as the axis is left; a repeat has no bound. */
static void test_bounds_of_data(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, tile = {.count = 0};
    put_input(&graph, "x", "N 10");
    put_value(&graph, 11, "starts", 7, "2");
    put_value(&graph, 11, "ends", 7, "2");
    put_node(&graph, "Slice", "x,starts,ends", "y");
    put_output(&graph, "y");
    struct bytes model = model_of(&graph, 8, 13);
    expect_within(&model, "<N, k1=data(N), k2=data(10)>(%x: f32[N,10], %starts: i64[2], %ends: i64[2])");
    expect_within(&model, "  %y: f32[k1,k2] = gather ");
    put_input(&tile, "x", "N 10");
    put_value(&tile, 11, "repeats", 7, "2");
    put_node(&tile, "Tile", "x,repeats", "y");
    put_output(&tile, "y");
    model = model_of(&tile, 8, 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "Tile: input repeats must be a constant or follow from extents");
}

/* Backwards, a start in front of the axis is its first element, and an end there is in front of that. */
static void test_slices_of_data(void **state)
{
    (void)state;
    static const struct {
        int64_t start, end, step, count, first;
    } slices[] = {{1, 4, 1, 3, 1},    {-2, 100, 1, 2, 3},  {4, -100, -2, 3, 4},           {-100, -100, -1, 1, 0},
                  {-100, 3, 2, 2, 0}, {100, 1, -3, 1, 4},  {3, 3, 1, 0, 0},               {0, 4, INT64_MIN, 0, 0},
                  {9, 0, -9, 1, 4},   {2, 0, INT64_MIN, 1, 2}, {0, INT64_MAX, INT64_MAX, 1, 0}, {1, 3, 0, 0, 0}};
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N");
    put_value(&graph, 11, "starts", 7, "1");
    put_value(&graph, 11, "ends", 7, "1");
    put_value(&graph, 11, "steps", 7, "1");
    put_node(&graph, "Slice", "x,starts,ends,,steps", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    struct folder folder = open_folder();
    struct weft_graph *loaded = NULL;
    if (load_model(&folder, &model, &loaded) != WEFT_OK)
        fail_msg("%s", weft_last_error(folder.context));
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        float x[] = {0, 1, 2, 3, 4};
        int64_t number[] = {slices[i].start, slices[i].end, slices[i].step};
        struct weft_tensor in[4] = {{.data = x, .dtype = WEFT_F32, .rank = 1, .extent = {5}, .stride = {1}}}, y = {0};
        for (int k = 0; k < 3; k++)
            in[1 + k] = (struct weft_tensor){&number[k], WEFT_I64, 1, {1}, {1}};
        assert_int_equal(weft_evaluate(loaded, in, 4, &y, 1), WEFT_OK);
        assert_int_equal(y.extent[0], slices[i].count);
        assert_true(y.extent[0] == 0 || *(const float *)y.data == (float)slices[i].first);
        weft_tensor_free(folder.context, &y);
    }
    weft_graph_destroy(loaded);
    close_folder(&folder);
}

/* Numbers that choose a part are scalars or lists. */
static void test_bounds_of_many_axes(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, top = {.count = 0};
    put_input(&graph, "x", "N");
    put_value(&graph, 11, "starts", 7, "1");
    put_value(&graph, 11, "ends", 7, "1 1 1");
    put_node(&graph, "Slice", "x,starts,ends", "y");
    put_output(&graph, "y");
    struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_INVALID, "Slice: input 2 has 3 axes, but is a list");
    put_input(&top, "x", "N");
    put_value(&top, 11, "k", 7, "1 1");
    put_node(&top, "TopK", "x,k", "y,i");
    put_output(&top, "y");
    model = model_of(&top, 8, 13);
    expect_error(&model, WEFT_ERR_INVALID, "TopK: input 1 has 2 axes, but is a list");
}

static void test_top_k_of_data(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 10");
    put_value(&graph, 11, "k", 7, "1");
    put_node(&graph, "TopK", "x,k", "y,i");
    put_output(&graph, "y");
    put_output(&graph, "i");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_within(&model, "<N, k1=data(10)>");
    expect_within(&model, ": i64[N,10] = top_k %x axis=1 k=10");
    expect_within(&model, "  %i: i64[N,k1] = gather ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice_backwards), cmocka_unit_test(test_reversed_shape),
        cmocka_unit_test(test_assumed_length),
        cmocka_unit_test(test_nothing_to_assume),
        cmocka_unit_test(test_resize_of_symbols), cmocka_unit_test(test_resize_of_old),
        cmocka_unit_test(test_tensor_scatter),
        cmocka_unit_test(test_bounds_of_data), cmocka_unit_test(test_bounds_of_many_axes),
        cmocka_unit_test(test_slices_of_data),
        cmocka_unit_test(test_top_k_of_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
