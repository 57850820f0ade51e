/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c: what a plan must get right beyond the plain case: operands of other types, sizes in attributes, results
 * that are parameters, buffers that overlap, sizes that no memory has. */
#include "tests/unit/plan_support.h"

#include <math.h>
#include <unistd.h>

static struct weft_tensor dense(void *data, int dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    struct weft_tensor t = {.data = data, .dtype = dtype, .rank = rank, .extent = {a, b, c, d}};
    weft_tensor_dense(&t);
    return t;
}

static void bind(struct scene *c, size_t i, struct weft_tensor t)
{
    if (weft_bind_input(c->execution, i, &t) != WEFT_OK)
        fail_msg("%s", weft_execution_error(c->execution));
}

/* Runs, and compares result 0 with the evaluator's on the same tensors. */
static void run_and_compare(struct scene *c, const struct weft_tensor *in, size_t inputs, size_t bytes)
{
    for (size_t i = 0; i < inputs; i++)
        bind(c, i, in[i]);
    if (weft_run(c->execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(c->execution));
    struct weft_tensor want = {0}, got;
    assert_int_equal(weft_evaluate(c->graph, in, inputs, &want, 1), WEFT_OK);
    assert_int_equal(weft_output(c->execution, 0, &got), WEFT_OK);
    assert_memory_equal(got.data, want.data, bytes);
    weft_tensor_free(c->context, &want);
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

/* An f32 result does not make 16-bit operands f32. */
static void wide_results_of_narrow_operands(void **state)
{
    uint16_t a[64], b[64];
    for (int i = 0; i < 64; i++) {
        weft_store_real(WEFT_BF16, a, i, (i % 7) - 3);
        weft_store_real(WEFT_BF16, b, i, (i % 5) - 2);
    }
    struct scene c = open_scene("graph @m(%a: bf16[8,8], %b: bf16[8,8]) {\n  %y: f32[8,8] = matmul %a, %b acc=f32\n"
                               "  return %y\n}\n", 0);
    struct weft_tensor in[] = {dense(a, WEFT_BF16, 2, 8, 8, 0, 0), dense(b, WEFT_BF16, 2, 8, 8, 0, 0)};
    run_and_compare(&c, in, 2, 64 * sizeof(float));
    close_scene(&c);
    c = open_scene("graph @s(%a: bf16[8,8]) {\n  %y: f32[8] = sum %a axes=[1] acc=f32\n  return %y\n}\n", 0);
    run_and_compare(&c, in, 1, 8 * sizeof(float));
    close_scene(&c);
}

/* Memory of the plan for constants. */
static int64_t constant_bytes(const struct scene *c)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(c->execution, &statistics), WEFT_OK);
    return statistics.constant_bytes;
}

/* Constants at an address that does not suit their type: gathers read rows of them where they lie, products pack them
 * from there, and only what must have them aligned has one copy of them. */
static void constants_at_odd_places(void **state)
{
    char path[] = "/tmp/weft-odd-XXXXXX", text[512];
    const int file = mkstemp(path);
    float rows[16 * 8], x[2 * 8] = {1, 2, 3, 4};
    int64_t index[3] = {15, -16, 7};
    for (int i = 0; i < 16 * 8; i++)
        rows[i] = (float)(i * i % 101);
    assert_true(file >= 0 && write(file, "?", 1) == 1 && write(file, rows, sizeof rows) == sizeof rows);
    close(file);
    snprintf(text, sizeof text, "graph @g(%%i: i64[3]) {\n  %%c: f32[16,8] = const file=\"%s\" offset=1\n"
             "  %%y: f32[3,8] = gather %%c, %%i axis=0\n  return %%y\n}\n", path);
    struct scene c = open_scene(text, 0);
    run_and_compare(&c, &(struct weft_tensor){index, WEFT_I64, 1, {3}, {1}}, 1, 3 * 8 * sizeof(float));
    assert_int_equal(constant_bytes(&c), 0);
    close_scene(&c);

    snprintf(text, sizeof text, "graph @g(%%x: f32[2,8]) {\n  %%c: f32[16,8] = const file=\"%s\" offset=1\n"
             "  %%y: f32[2,16] = matmul %%x, %%c trans_b=1\n  return %%y\n}\n", path);
    c = open_scene(text, 0);
    const struct weft_tensor in = dense(x, WEFT_F32, 2, 2, 8, 0, 0);
    run_and_compare(&c, &in, 1, 2 * 16 * sizeof(float));
    assert_true(constant_bytes(&c) >= (int64_t)sizeof rows && constant_bytes(&c) <= 64 * 8 * (int64_t)sizeof(float));
    close_scene(&c);

    snprintf(text, sizeof text, "graph @g(%%x: f32[16,8]) {\n  %%c: f32[16,8] = const file=\"%s\" offset=1\n"
             "  %%y: f32[16,8] = add %%x, %%c\n  return %%y\n}\n", path);
    c = open_scene(text, 0);
    const struct weft_tensor all = dense(rows, WEFT_F32, 2, 16, 8, 0, 0);
    run_and_compare(&c, &all, 1, sizeof rows);
    assert_int_equal(constant_bytes(&c), sizeof rows);
    close_scene(&c);
    unlink(path);
}

/* The left operand has one size, but strides that depend on the input's, and with them the loops: the weights that were
 * packed for others must still be there. */
static void weights_read_by_strides_of_other_sizes(void **state)
{
    static float x[8 * 4 * 3];
    struct scene c = open_scene("graph @p<M=1..64>(%x: f32[8,4,M]) {\n"
                               "  %w: f32[8,1] = const value=[[1] [2] [3] [4] [5] [6] [7] [8]]\n"
                               "  %s: f32[8,4,1] = slice %x start=[0 0 0] end=[8 4 1]\n  %r: f32[8,4] = reshape %s\n"
                               "  %y: f32[4,1] = matmul %r, %w trans_a=1\n  return %y\n}\n", 0);
    for (int64_t m = 1; m <= 3; m++) {
        const struct weft_tensor in = tensor_of(x, 3, (const int64_t[]){8, 4, m});
        run_and_compare(&c, &in, 1, 4 * sizeof(float));
    }
    close_scene(&c);
}

/* Rows of a product and images of a convolution are of any number: one pack serves all, and nothing else is kept. */
static void one_pack_for_all_rows(void **state)
{
    char path[] = "/tmp/weft-rows-XXXXXX", text[512];
    const int file = mkstemp(path);
    static float weights[24 * 72], x[5 * 8 * 6 * 6];
    for (int i = 0; i < 24 * 72; i++)
        weights[i] = (float)(i * i % 101) / 64;
    assert_true(file >= 0 && write(file, "?", 1) == 1 && write(file, weights, sizeof weights) == sizeof weights);
    close(file);
    snprintf(text, sizeof text, "graph @g<M>(%%x: f32[M,72]) {\n  %%c: f32[24,72] = const file=\"%s\" offset=1\n"
             "  %%y: f32[M,24] = matmul %%x, %%c trans_b=1\n  return %%y\n}\n", path);
    struct scene c = open_scene(text, 0);
    const int64_t packed = constant_bytes(&c);
    assert_true(packed >= (int64_t)sizeof weights && packed <= 64 * 72 * (int64_t)sizeof(float));
    for (int64_t m = 0; m <= 20; m += m < 2 ? 1 : 9) {
        const struct weft_tensor in = tensor_of(x, 2, (const int64_t[]){m, 72});
        run_and_compare(&c, &in, 1, (size_t)m * 24 * sizeof(float));
    }
    close_scene(&c);

    snprintf(text, sizeof text, "graph @g<N>(%%x: f32[N,8,6,6]) {\n  %%c: f32[24,8,3,3] = const file=\"%s\" offset=1\n"
             "  %%y: f32[N,24,6,6] = conv %%x, %%c pad=[1 1 1 1]\n  return %%y\n}\n", path);
    c = open_scene(text, 0);
    assert_true(constant_bytes(&c) >= (int64_t)sizeof weights && constant_bytes(&c) < 2 * (int64_t)sizeof weights);
    for (int64_t n = 0; n <= 5; n++) {
        const struct weft_tensor in = tensor_of(x, 4, (const int64_t[]){n, 8, 6, 6});
        run_and_compare(&c, &in, 1, (size_t)n * 24 * 36 * sizeof(float));
    }
    close_scene(&c);
    unlink(path);
}

/* Padding that depends on the input's extent, as `same` padding of a dynamic model does. */
static void sizes_in_attributes(void **state)
{
    static float x[2 * 3 * 9 * 9];
    struct scene c = open_scene(
        "graph @c<H>(%x: f32[2,3,H,H]) {\n  %w: f32[3,3,3,3] = const value=1\n"
        "  %y: f32[2,3,(2*(H/2) + H - 3)/2 + 1,(H - 1)/2 + 1] = conv %x, %w stride=[2 2] pad=[(H/2) 1 (H/2) 1]\n"
        "  %z: f32[2,3,(H - 1)/2 + (2*(H/2) + H - 3)/2 + 1,(H - 1)/2 + 1] = max_pool %y kernel=[2 1] pad=[((H - 1)/2) "
        "0 1 0]\n"
        "  return %z\n}\n",
        WEFT_COMPILE_NO_PASSES);
    for (int64_t h = 5; h <= 9; h++) {
        const int64_t extent[] = {2, 3, h, h};
        const struct weft_tensor in = tensor_of(x, 4, extent);
        const int64_t rows = (h - 1) / 2 + (2 * (h / 2) + h - 3) / 2 + 1;
        run_and_compare(&c, &in, 1, (size_t)(6 * rows * ((h - 1) / 2 + 1)) * sizeof(float));
    }
    close_scene(&c);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void new_values_of_parameters_do_not_meet(void **state)
{
    float a[9], b[9], old_a[9], old_b[9];
    for (int i = 0; i < 9; i++) {
        a[i] = old_a[i] = (float)i;
        b[i] = old_b[i] = (float)(100 + i);
    }
    struct scene c = open_scene("graph @swap(%a: mut f32[3,3], %b: mut f32[3,3]) {\n"
                               "  %t: f32[3,3] = transpose %a perm=[1 0]\n  return mut %a = %b, mut %b = %t\n}\n", 0);
    bind(&c, 0, dense(a, WEFT_F32, 2, 3, 3, 0, 0));
    bind(&c, 1, dense(b, WEFT_F32, 2, 3, 3, 0, 0));
    assert_int_equal(weft_run(c.execution), WEFT_OK);
    for (int i = 0; i < 9; i++) {
        assert_true(a[i] == old_b[i]);
        assert_true(b[i] == old_a[i % 3 * 3 + i / 3]);
    }
    close_scene(&c);
}

static void elements_smaller_than_a_byte(void **state)
{
    uint8_t nibbles[8] = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};
    struct scene c = open_scene("graph @i(%a: i4[15]) {\n  return %a\n}\n", 0);
    bind(&c, 0, dense(nibbles, WEFT_I4, 1, 15, 0, 0, 0));
    assert_int_equal(weft_run(c.execution), WEFT_OK);
    struct weft_tensor got;
    assert_int_equal(weft_output(c.execution, 0, &got), WEFT_OK);
    for (int i = 0; i < 15; i++)
        assert_int_equal(weft_load_integer(WEFT_I4, got.data, i), weft_load_integer(WEFT_I4, nibbles, i));
    close_scene(&c);
}

static void unbound_outputs_are_left_alone(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    struct scene c = open_scene("graph @n(%x: f32[4]) {\n  %y: f32[4] = neg %x\n  return %y\n}\n", 0);
    struct weft_tensor out = dense(y, WEFT_F32, 1, 4, 0, 0, 0), wrong = out, got;
    bind(&c, 0, dense(x, WEFT_F32, 1, 4, 0, 0, 0));
    assert_int_equal(weft_bind_output(c.execution, 0, &out), WEFT_OK);
    wrong.dtype = WEFT_I32;
    assert_int_equal(weft_bind_output(c.execution, 0, &wrong), WEFT_ERR_BINDING); /* keeps the good one */
    assert_int_equal(weft_run(c.execution), WEFT_OK);
    assert_true(y[3] == -4);
    assert_int_equal(weft_bind_output(c.execution, 0, NULL), WEFT_OK);
    memset(y, 0, sizeof y);
    assert_int_equal(weft_run(c.execution), WEFT_OK);
    assert_true(y[3] == 0);
    assert_int_equal(weft_output(c.execution, 0, &got), WEFT_OK);
    assert_ptr_not_equal(got.data, y);
    close_scene(&c);
}

static void overlaps_are_refused(void **state)
{
    float x[8] = {0};
    struct scene c = open_scene("graph @n(%x: f32[4], %m: mut f32[4]) {\n  %y: f32[4] = add %x, %m\n"
                               "  return %y, mut %m = %y\n}\n", 0);
    struct weft_tensor first = dense(x, WEFT_F32, 1, 4, 0, 0, 0), third = dense(x + 2, WEFT_F32, 1, 4, 0, 0, 0), got;
    bind(&c, 0, first);
    bind(&c, 1, third);
    assert_int_equal(weft_run(c.execution), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(c.execution), "overlaps"));
    bind(&c, 1, dense(x + 4, WEFT_F32, 1, 4, 0, 0, 0));
    assert_int_equal(weft_run(c.execution), WEFT_OK);
    assert_int_equal(weft_bind_output(c.execution, 0, &third), WEFT_OK);
    assert_int_equal(weft_run(c.execution), WEFT_ERR_BINDING);
    assert_int_equal(weft_output(c.execution, 0, &got), WEFT_ERR_ARGUMENT); /* the last run did not happen */
    close_scene(&c);
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

/* Results of a convolution that are NaN, and those that are not finite, where one x is `odd`. */
static void count_odd(struct scene *c, float *x, float odd, int ret_count[2])
{
    struct weft_tensor y;
    x[2 * 8 + 2] = odd;
    assert_int_equal(weft_run(c->execution), WEFT_OK);
    assert_int_equal(weft_output(c->execution, 0, &y), WEFT_OK);
    ret_count[0] = ret_count[1] = 0;
    for (int i = 0; i < 16 * 8 * 8; i++) {
        ret_count[0] += isnan(((float *)y.data)[i]) != 0;
        ret_count[1] += isfinite(((float *)y.data)[i]) == 0;
    }
}

/* Winograd's transforms subtract infinities from each other; the formula of a convolution does not. F(4x4) makes a tile
 * of NaNs of each. */
static void winograd_is_forbidden_or_widened(void **state)
{
    const uint32_t flags[] = {0, WEFT_COMPILE_NO_WINOGRAD, WEFT_COMPILE_WINOGRAD_4};
    float x[16 * 8 * 8], w[16 * 16 * 9];
    for (int i = 0; i < 16 * 16 * 9; i++)
        w[i] = (float)(i % 3 + 1);
    for (int i = 0; i < 3; i++) {
        const bool forbidden = flags[i] & WEFT_COMPILE_NO_WINOGRAD;
        const int seen = flags[i] == WEFT_COMPILE_WINOGRAD_4 ? 16 * 16 : 16 * 9;
        struct scene c = open_scene("graph @c(%x: f32[1,16,8,8], %w: f32[16,16,3,3]) {\n"
                                    "  %y: f32[1,16,8,8] = conv %x, %w pad=[1 1 1 1]\n  return %y\n}\n",
                                    flags[i]);
        for (int j = 0; j < 16 * 8 * 8; j++)
            x[j] = (float)(j % 5 - 2);
        const struct weft_tensor in[] = {dense(x, WEFT_F32, 4, 1, 16, 8, 8), dense(w, WEFT_F32, 4, 16, 16, 3, 3)};
        bind(&c, 0, in[0]), bind(&c, 1, in[1]);
        if (seen == 16 * 9) /* of these numbers; sixths are not exact */
            run_and_compare(&c, in, 2, sizeof x);
        int count[2];
        count_odd(&c, x, NAN, count);
        assert_int_equal(count[0], seen);
        assert_int_equal(count[1], seen);
        count_odd(&c, x, INFINITY, count);
        assert_int_equal(count[0] > 0, !forbidden);
        assert_int_equal(count[1], seen);
        close_scene(&c);
    }
}

/* The same of the gradient of weights: one infinity reaches the taps of its channel. */
static void winograd_of_gradients_is_forbidden(void **state)
{
    enum { COUNT = 32 * 16 * 16 };
    static float x[COUNT], d[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 5 - 2), d[i] = (float)(i % 3 + 1);
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        struct scene c = open_scene("graph @c(%x: f32[1,32,16,16], %d: f32[1,32,16,16]) {\n"
                                    "  %y: f32[32,32,3,3] = conv_grad_weight %x, %d kernel=[3 3] pad=[1 1 1 1]\n"
                                    "  return %y\n}\n",
                                    forbidden ? WEFT_COMPILE_NO_WINOGRAD : 0);
        const struct weft_tensor in[] = {dense(x, WEFT_F32, 4, 1, 32, 16, 16), dense(d, WEFT_F32, 4, 1, 32, 16, 16)};
        struct weft_tensor y;
        int nans = 0, odd = 0;
        bind(&c, 0, in[0]), bind(&c, 1, in[1]);
        x[5 * 16 + 5] = 2; /* of small integers all sums are exact */
        run_and_compare(&c, in, 2, sizeof(float) * 32 * 32 * 9);
        x[5 * 16 + 5] = INFINITY;
        assert_int_equal(weft_run(c.execution), WEFT_OK);
        assert_int_equal(weft_output(c.execution, 0, &y), WEFT_OK);
        for (int i = 0; i < 32 * 32 * 9; i++) {
            nans += isnan(((float *)y.data)[i]) != 0;
            odd += isfinite(((float *)y.data)[i]) == 0;
        }
        assert_int_equal(nans > 0, !forbidden);
        assert_int_equal(odd, 32 * 9);
        close_scene(&c);
    }
}

/* What no plan can do is an error that names the value, and says which of the reasons it is. */
static void layouts_that_cannot_be_kept_are_refused(void **state)
{
    static const char *const wrong[][3] = {
        {"f32[4,16]{0 1 | 4000000000000000 1}", "4,16", "%y: is stored over more than memory can be"},
        {"f32[4,16]{0/2 1 0%2 | 64 2 1}", "4,16", "%y: is stored with split axes and strides"},
        {"f32[N,16]{0/2 1 0%2}", "N,16", "%y: is stored with split axes: plans take none whose extents are"}};
    struct weft_context *context = open_context(1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[400];
        struct weft_plan *plan = NULL;
        snprintf(text, sizeof text, "graph @g<N>(%%x: f32[%s]) {\n  %%y: %s = relu %%x\n"
                 "  %%z: f32[%s] = flip %%y axes=[0]\n"
                 "  return %%z\n}\n", wrong[i][1], wrong[i][0], wrong[i][1]);
        struct weft_graph *graph = parse(context, text);
        assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_UNSUPPORTED);
        if (!strstr(weft_last_error(context), wrong[i][2]))
            fail_msg("'%s'", weft_last_error(context));
        weft_graph_destroy(graph);
    }
    static const char *const told[] = {
        "graph @g(%x: f32[4,16]{0/2 1 0%2}) {\n  %y: f32[4,16] = relu %x\n  return %y\n}\n",
        "graph @g(%x: f32[4,16]) {\n  %y: f32[4,16]{0/2 1 0%2} = relu %x\n  return %y\n}\n"};
    for (int i = 0; i < 2; i++) {
        struct weft_plan *plan = NULL;
        struct weft_graph *graph = parse(context, told[i]);
        assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_UNSUPPORTED);
        assert_non_null(strstr(weft_last_error(context), i ? "%y: is stored with split axes: plans take none for par"
                                                           : "%x: is stored with split axes: plans take none for par"));
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

static void flags_that_cannot_be_obeyed_are_refused(void **state)
{
    const struct {
        uint32_t flags;
        const char *says;
    } wrong[] = {{0xffff, "0xfe00"},
                 {1u << 31, "0x80000000"},
                 {WEFT_COMPILE_NO_WINOGRAD | WEFT_COMPILE_WINOGRAD_4, "exclude each other"}};
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[4]) {\n  %y: f32[4] = relu %x\n  return %y\n}\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct weft_compile_options options = {.size = sizeof options, .flags = wrong[i].flags};
        struct weft_plan *plan = NULL;
        assert_int_equal(weft_compile(graph, &options, &plan), WEFT_ERR_ARGUMENT);
        assert_null(plan);
        assert_non_null(strstr(weft_last_error(context), wrong[i].says));
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static void sizes_are_checked_before_a_run(void **state)
{
    float x[16] = {0};
    struct scene c =
        open_scene("graph @s<N>(%x: f32[N]) {\n  %y: f32[4] = slice %x start=[0] end=[4]\n  return %y\n}\n",
                   WEFT_COMPILE_NO_PASSES);
    bind(&c, 0, dense(x, WEFT_F32, 1, 2, 0, 0, 0));
    assert_int_equal(weft_run(c.execution), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(c.execution), "slice"));
    close_scene(&c);
    c = open_scene("graph @w<N>(%x: f32[0,N]) {\n  %y: f32[N,N,4] = const value=1\n  %z: f32[N,N,4] = neg %y\n"
                  "  return %z\n}\n", WEFT_COMPILE_NO_PASSES);
    for (int shift = 24; shift <= 30; shift++) {
        bind(&c, 0, dense(x, WEFT_F32, 2, 0, (int64_t)1 << shift, 0, 0));
        const int status = weft_run(c.execution);
        assert_true(status == WEFT_ERR_NOMEM || status == WEFT_ERR_BINDING);
    }
    close_scene(&c);
}

static void more_axes_than_a_plan_takes(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @n(%x: f32[4,4,4,4,4,4,4]) {\n"
                                              "  %n: f32[4,4,4,4,4,4,4]{6/2 1 2 3 4 5 0/2 6%2 0%2} = neg %x\n"
                                              "  return %n\n}\n");
    const struct weft_compile_options options = {.size = sizeof options};
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_compile(graph, &options, &plan), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(context), "%n"));
    assert_non_null(strstr(weft_last_error(context), "is stored along 9 axes: plans take up to 8"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_results_of_narrow_operands),
        cmocka_unit_test(constants_at_odd_places),
        cmocka_unit_test(weights_read_by_strides_of_other_sizes), cmocka_unit_test(one_pack_for_all_rows),
        cmocka_unit_test(sizes_in_attributes),
        cmocka_unit_test(new_values_of_parameters_do_not_meet),
        cmocka_unit_test(elements_smaller_than_a_byte),
        cmocka_unit_test(unbound_outputs_are_left_alone),
        cmocka_unit_test(overlaps_are_refused),
        cmocka_unit_test(winograd_is_forbidden_or_widened),
        cmocka_unit_test(winograd_of_gradients_is_forbidden),
        cmocka_unit_test(flags_that_cannot_be_obeyed_are_refused),
        cmocka_unit_test(layouts_that_cannot_be_kept_are_refused),
        cmocka_unit_test(sizes_are_checked_before_a_run),
        cmocka_unit_test(more_axes_than_a_plan_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
