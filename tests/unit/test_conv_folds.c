/* SPDX-License-Identifier: Apache-2.0 */
/* test_conv_folds.c: global means, sums and extremes in the epilogue of depthwise convolutions: one kernel, beside the
 * evaluator, and the same bits at every CPU level and for any number of threads. */
#include "tests/unit/plan_support.h"

enum { MOST = 1 << 18, LEVELS = 3, THREADS = 4 };

static const char *const level[LEVELS] = {"avx512", "avx2", "baseline"};

/* Extents of x; its layout and that of y; windows and steps. */
struct shape {
    int n, c, h, w, window, step;
    const char *layout, *fold, *result;
};

static const struct shape shape[] = {
    {1, 32, 14, 14, 3, 1, "{0 2 3 1}", "mean %y axes=[2 3] keepdims=1", "1,32,1,1"},
    {2, 37, 9, 7, 5, 1, "{0 2 3 1}", "reduce_max %y axes=[2 3]", "2,37"},
    {1, 48, 40, 20, 5, 2, "{0 2 3 1}", "sum %y axes=[2 3]", "1,48"},
    {1, 33, 2, 700, 3, 1, "{0 2 3 1}", "mean %y axes=[2 3]", "1,33"}, /* several cells of a line */
    {1, 25, 56, 56, 3, 1, "", "mean %y axes=[2 3] keepdims=1", "1,25,1,1"}, /* parts share a plane */
    {3, 20, 31, 12, 5, 1, "", "reduce_min %y axes=[2 3]", "3,20"},
    {1, 9, 3, 4000, 3, 1, "", "mean %y axes=[2 3]", "1,9"},
    {1, 27, 128, 66, 3, 2, "", "sum %y axes=[2 3]", "1,27"},
};
enum { SHAPES = sizeof shape / sizeof shape[0] };

static struct weft_context *open_at(const char *cpu, int threads)
{
    struct weft_context_options options = {.size = sizeof options, .threads = threads, .cpu = cpu};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

static int out_of(const struct shape *s, int extent) { return (extent + s->step - 1) / s->step; }

static void write_graph(const struct shape *s, char *text, size_t bytes)
{
    const int h = out_of(s, s->h), w = out_of(s, s->w), pad = s->window / 2;
    char y[64];
    snprintf(y, sizeof y, "f32[%d,%d,%d,%d]%s", s->n, s->c, h, w, s->layout);
    snprintf(text, bytes,
             "graph @t(%%x: f32[%d,%d,%d,%d]%s) {\n  %%w: f32[%d,1,%d,%d] = const random=1\n"
             "  %%b: f32[%d] = const random=2\n  %%c: %s = conv %%x, %%w stride=[%d %d] pad=[%d %d %d %d] groups=%d\n"
             "  %%r: f32[%d,%d,%d,%d] = bcast %%b dims=[1]\n  %%d: %s = add %%c, %%r\n  %%y: %s = relu %%d\n"
             "  %%m: f32[%s] = %s\n  return %%y, %%m\n}\n",
             s->n, s->c, s->h, s->w, s->layout, s->c, s->window, s->window, s->c, y, s->step, s->step, pad, pad, pad,
             pad, s->c, s->n, s->c, h, w, y, y, s->result, s->fold);
}

static void assert_close(const char *what, const struct weft_tensor *got, const struct weft_tensor *want, int64_t n)
{
    const float *const a = got->data, *const b = want->data;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= 1e-4 * (1 + fabs((double)b[i]))))
            fail_msg("%s: fold %lld is %g, not %g", what, (long long)i, (double)a[i], (double)b[i]);
}

static struct weft_tensor input_of(const struct shape *s, float *data)
{
    struct weft_tensor in = {.data = data, .dtype = WEFT_F32, .rank = 4, .extent = {s->n, s->c, s->h, s->w}};
    weft_tensor_dense(&in);
    if (*s->layout) {
        in.stride[1] = 1;
        in.stride[3] = s->c;
        in.stride[2] = s->c * s->w;
    }
    for (int i = 0; i < s->n * s->c * s->h * s->w; i++)
        data[i] = (float)((i * 37 + 11) % 4093 - 1900) / 512;
    return in;
}

/* Does the kernel that such a shape has at this level hand over whole cells? With other kernels prices decide. */
static bool folds_early(const struct shape *s, uint32_t cpu)
{
    return cpu & (*s->layout ? WEFT_CPU_AVX2 : WEFT_CPU_AVX512);
}

/* `first`: what the first fused run of this shape made. */
static void run_shape(const struct shape *s, const char *cpu, int threads, float *first, bool *made)
{
    static float x[MOST];
    char text[1024], what[1200];
    struct weft_context *const context = open_at(cpu, threads);
    write_graph(s, text, sizeof text);
    snprintf(what, sizeof what, "%s, %d threads: %s", cpu, threads, text);
    struct weft_graph *const graph = parse(context, text);
    struct weft_plan *const plan = compile(graph, 0);
    const struct weft_tensor in = input_of(s, x);
    struct weft_tensor want[2] = {{0}}, got;
    struct weft_execution *e;
    assert_int_equal(weft_evaluate(graph, &in, 1, want, 2), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bind_inputs(e, graph, &in, what);
    const bool fused = plan->steps == 1;
    if (!fused && folds_early(s, context->target.cpu))
        fail_msg("%s: %u steps", what, plan->steps);
    for (int run = 0; run < 2; run++) { /* the second finds what the first has left */
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(weft_output(e, 1, &got), WEFT_OK);
        assert_close(what, &got, &want[1], s->n * s->c);
        if (fused && !*made)
            memcpy(first, got.data, (size_t)(s->n * s->c) * sizeof *first);
        *made |= fused;
        if (fused && memcmp(first, got.data, (size_t)(s->n * s->c) * sizeof *first) != 0)
            fail_msg("%s: other bits", what);
    }
    weft_tensor_free(context, &want[0]);
    weft_tensor_free(context, &want[1]);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void shapes(void **state)
{
    for (int i = 0; i < SHAPES; i++) {
        static float first[256];
        bool made = false;
        for (int l = 0; l < LEVELS; l++)
            for (int threads = 1; threads <= THREADS; threads++)
                run_shape(&shape[i], level[l], threads, first, &made);
    }
}

/* One plan for all sizes: other forms than that of the hints, which hand over no whole cells, and no images at all. The
 * second convolution finds the shared memory that the first has left. */
static void other_sizes(void **state)
{
    static const int64_t sizes[][3] = {{1, 14, 14}, {2, 5, 3}, {3, 1, 1}, {1, 40, 33}, {0, 6, 6}};
    struct weft_context *const context = open_context(2);
    struct weft_graph *const graph = parse(
        context, "graph @t<N=0.. hint=1, H=1.. hint=14, W=1.. hint=14>(%x: f32[N,32,H,W]) {\n"
                 "  %w: f32[32,1,3,3] = const random=1\n"
                 "  %c: f32[N,32,H,W] = conv %x, %w pad=[1 1 1 1] groups=32\n  %y: f32[N,32,H,W] = relu %c\n"
                 "  %m: f32[N,32] = mean %y axes=[2 3]\n"
                 "  %d: f32[N,32,H,W] = conv %y, %w pad=[1 1 1 1] groups=32\n  %z: f32[N,32,H,W] = relu %d\n"
                 "  %s: f32[N,32] = sum %z axes=[2 3]\n  return %y, %m, %z, %s\n}\n");
    struct weft_plan *const plan = compile(graph, 0);
    assert_int_equal(plan->steps, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        static float x[MOST];
        const int64_t extent[] = {sizes[i][0], 32, sizes[i][1], sizes[i][2]};
        const struct weft_tensor in = tensor_of(x, 4, extent);
        struct weft_tensor want[4] = {{0}}, got;
        struct weft_execution *e;
        assert_int_equal(weft_evaluate(graph, &in, 1, want, 4), WEFT_OK);
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        bind_inputs(e, graph, &in, "other sizes");
        assert_int_equal(weft_run(e), WEFT_OK);
        for (unsigned k = 1; k < 4; k += 2) {
            assert_int_equal(weft_output(e, k, &got), WEFT_OK);
            assert_close("other sizes", &got, &want[k], extent[0] * 32);
        }
        for (int k = 0; k < 4; k++)
            weft_tensor_free(context, &want[k]);
        weft_execution_destroy(e);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"graph @t(%x: f32[1,32,14,14]) {\n  %w: f32[32,1,3,3] = const random=1\n"
         "  %c: f32[1,32,14,14] = conv %x, %w pad=[1 1 1 1] groups=32\n  %y: f32[1,32,14,14] = relu %c\n"
         "  %m: f32[1,32] = mean %y axes=[2 3]\n  return %m\n}\n",
         "reduces results of a contraction that have no other reader"},
        {"graph @t(%x: f32[1,32,14,14]) {\n  %w: f32[32,1,3,3] = const random=1\n"
         "  %c: f32[1,32,14,14] = conv %x, %w pad=[1 1 1 1] groups=32\n  %y: f32[1,32,14,14] = relu %c\n"
         "  %m: f32[1,32,14] = mean %y axes=[3]\n  return %y, %m\n}\n",
         "reduces other axes than all those of pixels"},
        {"graph @t(%x: f32[1,64,28,28]) {\n  %w: f32[64,64,1,1] = const random=1\n"
         "  %c: f32[1,64,28,28] = conv %x, %w\n  %y: f32[1,64,28,28] = relu %c\n"
         "  %m: f32[1,64] = mean %y axes=[2 3]\n  return %y, %m\n}\n",
         "as one they would take"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene s = open_scene(cases[i].text, 0);
        if (strstr(cases[i].why, "as one") && !(s.context->target.cpu & WEFT_CPU_AVX512)) {
            print_message("skipped: that %s where vectors are wide\n", cases[i].why); /* else the gain is large */
            close_scene(&s);
            continue;
        }
        if (!is_remarked(s.plan->graph, "fuse", "refused", cases[i].why))
            fail_msg("no remark that it %s", cases[i].why);
        assert_int_equal(s.plan->steps, 2);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(other_sizes),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
