/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_groups.c: pools with what computes their operand and what goes on with their results: the kernels that they
 * become, and the bits of one by one, at every CPU level and for any number of threads and sizes. */
#include "sched/epilogue.h"
#include "tests/unit/plan_support.h"

enum { MOST = 1 << 19, LEVELS = 3, THREADS = 4 };

static const char *const level[LEVELS] = {"avx512", "avx2", "baseline"};

struct subject {
    const char *name, *text;
    int64_t extent[5];           /* of %x, of f32 */
    int rank;
    bool last;                   /* channels lie side by side */
    bool by_price;               /* whether the operand is computed along: the gain is small */
};

static const struct subject subject[] = {
    {"weft_relu_max_pool_mul_add_f32",
     "graph @t(%x: f32[2,24,41,37]) {\n  %s: f32[24] = const random=1\n  %r: f32[2,24,21,19] = const random=2\n"
     "  %a: f32[2,24,41,37] = relu %x\n"
     "  %p: f32[2,24,21,19] = max_pool %a kernel=[3 3] stride=[2 2] pad=[1 1 1 1]\n"
     "  %b: f32[2,24,21,19] = bcast %s dims=[1]\n  %c: f32[2,24,21,19] = mul %p, %b\n"
     "  %y: f32[2,24,21,19] = add %r, %c\n  return %y\n}\n", {2, 24, 41, 37}, 4, false, false},
    {"weft_relu_mean_pool_cast_bf16", /* bands keep rows, which are of 37 · 132 elements */
     "graph @t(%x: f32[2,132,41,37]{0 2 3 1}) {\n  %a: f32[2,132,41,37] = relu %x\n"
     "  %p: f32[2,132,39,35] = mean_pool %a kernel=[3 3]\n"
     "  %y: bf16[2,132,39,35]{0 2 3 1} = cast %p\n  return %y\n}\n", {2, 132, 41, 37}, 4, true, true},
    {"weft_neg_mean_pool_f32",
     "graph @t(%x: f32[3,5,9,20,21]) {\n  %a: f32[3,5,9,20,21] = neg %x\n"
     "  %p: f32[3,5,4,19,20] = mean_pool %a kernel=[3 3 3] stride=[2 1 1] pad=[0 1 1 0 0 0] dilation=[1 1 1] "
     "count_pad=1\n  return %p\n}\n", {3, 5, 9, 20, 21}, 5, false, false},
    {"weft_max_pool_neg_cast_f16",
     "graph @t(%x: f32[7,32,300]) {\n  %p: f32[7,32,150] = max_pool %x kernel=[3] stride=[2] dilation=[2] pad=[2 1]\n"
     "  %n: f32[7,32,150] = neg %p\n  %y: f16[7,32,150] = cast %n\n  return %y\n}\n", {7, 32, 300}, 3, false, false},
    {"weft_neg_max_pool_neg_f32", /* a result for each plane, sixteen at a time */
     "graph @t(%x: f32[3,40,13,11]) {\n  %a: f32[3,40,13,11] = neg %x\n"
     "  %p: f32[3,40,1,1] = max_pool %a kernel=[13 11]\n  %y: f32[3,40,1,1] = neg %p\n  return %y\n}\n",
     {3, 40, 13, 11}, 4, false, false},
    {"weft_max_pool_relu_cast_f16", /* three results, of which the window's own is one */
     "graph @t(%x: f32[2,20,40,44]) {\n  %p: f32[2,20,20,22] = max_pool %x kernel=[2 2] stride=[2 2]\n"
     "  %y: f32[2,20,20,22] = relu %p\n  %z: f16[2,20,20,22] = cast %y\n  return %z, %p, %y\n}\n",
     {2, 20, 40, 44}, 4, false, false},
};
enum { SUBJECTS = sizeof subject / sizeof subject[0] };

static struct weft_context *open_at(const char *cpu, int threads)
{
    struct weft_context_options options = {.size = sizeof options, .threads = threads, .cpu = cpu};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

static struct weft_tensor input_of(const struct subject *s, float *data)
{
    struct weft_tensor in = {.data = data, .dtype = WEFT_F32, .rank = s->rank};
    int64_t elements = 1, step = s->extent[1];
    for (int i = 0; i < s->rank; i++)
        elements *= in.extent[i] = s->extent[i];
    weft_tensor_dense(&in);
    for (int i = s->rank - 1; s->last && i >= 2; step *= s->extent[i--])
        in.stride[i] = step;
    if (s->last)
        in.stride[1] = 1;
    assert_true(elements <= MOST);
    for (int64_t i = 0; i < elements; i++)
        data[i] = (float)((i * 37 + 11) % 4093 - 1900) / 512;
    return in;
}

/* The first result of a run; how many bytes. `steps`: that the plan has to have, or 0. */
static size_t run_once(const struct subject *s, struct weft_context *context, uint32_t flags, uint32_t steps,
                       const char *what, char *ret)
{
    static float x[MOST];
    const struct weft_tensor in = input_of(s, x);
    struct weft_graph *const graph = parse(context, s->text);
    struct weft_plan *const plan = compile(graph, flags);
    struct weft_execution *e;
    struct weft_tensor got;
    if (steps && plan->steps != steps)
        fail_msg("%s: %u steps", what, plan->steps);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bind_inputs(e, graph, &in, what);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
    const size_t bytes = (size_t)weft_tensor_elements(&got) * weft_dtype_bits(got.dtype) / 8;
    assert_true(bytes <= sizeof x);
    memcpy(ret, got.data, bytes);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    return bytes;
}

/* As the plan groups nodes by itself, prices permitting; one by one the kernels are others, the bits the same. */
static void bits(void **state)
{
    static char want[4 * MOST], got[4 * MOST];
    for (int i = 0; i < SUBJECTS; i++)
        for (int l = 0; l < LEVELS; l++)
            for (int threads = 1; threads <= THREADS; threads++) {
                char what[256];
                snprintf(what, sizeof what, "%s, %s, %d threads", subject[i].name, level[l], threads);
                struct weft_context *const context = open_at(level[l], threads);
                const size_t bytes = run_once(&subject[i], context, WEFT_COMPILE_NO_FUSE, 0, what, want);
                assert_int_equal(run_once(&subject[i], context, 0, 0, what, got), bytes);
                if (memcmp(want, got, bytes) != 0)
                    fail_msg("%s: other bits than one by one", what);
                weft_close(context);
            }
}

/* What a kernel is called, and that it is the only one: at the level where prices were measured, on one thread. */
static void kernels(void **state)
{
    static char got[4 * MOST];
    for (int i = 0; i < SUBJECTS; i++) {
        if (subject[i].by_price)
            continue;
        struct weft_context *const context = open_at("avx2", 1);
        struct weft_graph *const graph = parse(context, subject[i].text);
        struct weft_plan *const plan = compile(graph, 0);
        if (plan->steps != 1 || !plan->step[0].epilogue)
            fail_msg("%s: %u steps", subject[i].name, plan->steps);
        assert_string_equal(plan->step[0].epilogue->name, subject[i].name);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        run_once(&subject[i], context, 0, 1, subject[i].name, got);
        weft_close(context);
    }
}

/* One plan for all sizes: larger and smaller than the hints, and none at all. */
static void sizes(void **state)
{
    static const int64_t list[][3] = {{2, 30, 28}, {1, 3, 3}, {3, 117, 64}, {0, 8, 8}, {1, 60, 3}, {2, 9, 200}};
    static float x[MOST];
    struct weft_context *const context = open_context(2);
    struct weft_graph *const graph =
        parse(context, "graph @t<N=0.. hint=2, H=3.. hint=30, W=3.. hint=28>(%x: f32[N,20,H,W]) {\n"
                       "  %a: f32[N,20,H,W] = relu %x\n  %p: f32[N,20,H,W] = max_pool %a kernel=[3 3] pad=[1 1 1 1]\n"
                       "  %y: f32[N,20,H,W] = neg %p\n  return %y\n}\n");
    struct weft_plan *const plan = compile(graph, 0);
    assert_int_equal(plan->steps, 1);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const int64_t extent[] = {list[i][0], 20, list[i][1], list[i][2]};
        struct weft_tensor in = tensor_of(x, 4, extent), want = {0}, got;
        const int64_t elements = extent[0] * 20 * extent[2] * extent[3];
        struct weft_execution *e;
        assert_true(elements <= MOST);
        for (int64_t k = 0; k < elements; k++)
            x[k] = (float)((k * 41 + 5) % 4093 - 1900) / 512;
        assert_int_equal(weft_evaluate(graph, &in, 1, &want, 1), WEFT_OK);
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        bind_inputs(e, graph, &in, "other sizes");
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
        for (int64_t k = 0; k < elements; k++)
            if (((const float *)got.data)[k] != ((const float *)want.data)[k])
                fail_msg("%lld x %lld x %lld: result %lld", (long long)extent[0], (long long)extent[2],
                         (long long)extent[3], (long long)k);
        weft_tensor_free(context, &want);
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
        {"graph @t(%x: f32[2,16,40,40]) {\n  %a: f32[2,16,40,40] = relu %x\n"
         "  %p: f32[2,16,20,20] = max_pool %a kernel=[2 2] stride=[2 2]\n  return %p, %a\n}\n",
         "%a is read by others than the kernel too, who would compute it again"},
        {"graph @t(%x: f32[2,16,40,40]) {\n  %p: f32[2,16,40,40] = max_pool %x kernel=[3 3] pad=[1 1 1 1]\n"
         "  %y: f32[2,16,40,40] = relu %p\n  %q: f32[2,16,40,40] = mean_pool %y kernel=[3 3] pad=[1 1 1 1]\n"
         "  return %q\n}\n", "would be the second contraction or window"},
        {"graph @t(%x: f32[2,16,40,40]) {\n  %p: f32[2,16,20,20] = max_pool %x kernel=[2 2] stride=[2 2]\n"
         "  %y: f32[2,16,20] = sum %p axes=[2]\n  return %y\n}\n", "is a window, whose results are reduced"},
        {"graph @t(%x: f32[2,16,40,40], %g: f32[2,16,1,1]) {\n  %s: f32[2,16,1,1] = sigmoid %g\n"
         "  %b: f32[2,16,40,40] = bcast %s dims=[0 1 2 3]\n  %a: f32[2,16,40,40] = mul %x, %b\n"
         "  %p: f32[2,16,20,20] = max_pool %a kernel=[2 2] stride=[2 2]\n  return %p\n}\n",
         "is computed from values over other axes, too"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused_by_fuse(cases[i].text, cases[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits), cmocka_unit_test(kernels), cmocka_unit_test(sizes),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
