/* SPDX-License-Identifier: Apache-2.0 */
/* test_epilogues.c: contractions that are finished in their own kernel: several results, results of 16 bits, rows that
 * are reduced. One kernel, beside the evaluator, for other sizes than those of the hints, and the same bits at every
 * CPU level and for any number of threads. */
#include "tests/unit/plan_support.h"

enum { MOST = 1 << 18, LEVELS = 3, THREADS = 4, RESULTS = 4 };

static const char *const level[LEVELS] = {"avx512", "avx2", "baseline"};

#define PRODUCT(hint, k, n)                                                                                            \
    "graph @t<M=0.. hint=" hint ">(%x: f32[M," k "], %r: f32[M," n "]) {\n  %w: f32[" k "," n "] = const random=1\n"   \
    "  %b: f32[" n "] = const random=2\n  %br: f32[M," n "] = bcast %b dims=[1]\n  %c: f32[M," n "] = matmul %x, %w\n"
#define SUM(n) "  %d: f32[M," n "] = add %c, %br\n  %e: f32[M," n "] = add %d, %r\n"
#define SIZES {1, 7, 64, 0, 130}

/* Results, kernels at the hint; M of the runs. */
static const struct {
    const char *what, *text;
    uint32_t results;
    int columns[2];
    int64_t rows[5];
} products[] = {
    {"its own result too", PRODUCT("64", "40", "96") "  %y: f32[M,96] = relu %c\n  return %c, %y\n}\n", 2, {40, 96},
     SIZES},
    {"a value on the way",
     PRODUCT("64", "40", "97") SUM("97") "  %g: f32[M,97] = gelu %e\n  %h: bf16[M,97] = cast %g\n  return %e, %h\n}\n",
     2, {40, 97}, SIZES},
    {"two sweeps",
     PRODUCT("64", "40", "96") "  %k: f32[M,96] = const value=0.125\n  %s: f32[M,96] = silu %c\n"
     "  %y: f32[M,96] = mul %c, %k\n  return %s, %y\n}\n", 2, {40, 96}, SIZES},
    {"16 bits", PRODUCT("64", "40", "96") SUM("96") "  %h: f16[M,96] = cast %e\n  return %h\n}\n", 1, {40, 96}, SIZES},
    {"a mask and what it masks",
     PRODUCT("64", "40", "33") "  %z: f32[M,33] = const value=0\n  %g: bool[M,33] = gt %c, %z\n"
     "  %y: f32[M,33] = select %g, %c, %r\n  return %y, %g\n}\n", 2, {40, 33}, SIZES},
    {"layer norm, and what it normalises",
     PRODUCT("64", "64", "192") SUM("192") "  %y: f32[M,192] = layer_norm %e, %b, %b axis=1\n  return %e, %y\n}\n", 2,
     {64, 192}, SIZES},
    {"rms norm of 16 bits",
     PRODUCT("64", "64", "100") SUM("100") "  %y: f32[M,100] = rms_norm %e, %b axis=1\n  %h: bf16[M,100] = cast %y\n"
     "  return %h\n}\n", 1, {64, 100}, SIZES},
    {"softmax", PRODUCT("64", "64", "128") "  %y: f32[M,128] = softmax %c axis=1\n  return %y\n}\n", 1, {64, 128},
     SIZES},
    {"statistics alone",
     PRODUCT("64", "64", "160") SUM("160") "  %q: f32[M,160] = mul %e, %e\n  %s: f32[M] = sum %q axes=[1]\n"
     "  %m: f32[M,1] = reduce_max %e axes=[1] keepdims=1\n  return %e, %s, %m\n}\n", 3, {64, 160}, SIZES},
    {"one row, whose columns are shared out",
     PRODUCT("1", "512", "1024") "  %e: f32[M,1024] = add %c, %r\n  %y: f32[M,1024] = rms_norm %e, %b axis=1\n"
     "  return %e, %y\n}\n", 2, {512, 1024}, {1, 2, 1, 0, 3}},
    {"narrow, computed transposed",
     PRODUCT("512", "256", "24") "  %y: f32[M,24] = layer_norm %c, %b, %b axis=1\n  return %y\n}\n", 1, {256, 24},
     {512, 1, 40, 0, 7}},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

static struct weft_context *open_at(const char *cpu, int threads)
{
    struct weft_context_options options = {.size = sizeof options, .threads = threads, .cpu = cpu};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

static double tolerance(int dtype)
{
    return dtype == WEFT_F32 ? 1e-4 : dtype == WEFT_F16 ? 2e-3 : dtype == WEFT_BF16 ? 1e-2 : 0;
}

static void assert_close(const char *what, unsigned result, const struct weft_tensor *got,
                         const struct weft_tensor *want)
{
    const int64_t n = (int64_t)weft_tensor_elements(want);
    assert_int_equal(got->dtype, want->dtype);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0;
        for (int d = got->rank - 1; d >= 0; d--) {
            at += rest % got->extent[d] * got->stride[d];
            rest /= got->extent[d];
        }
        const double a = weft_load_real(got->dtype, got->data, at), b = weft_load_real(want->dtype, want->data, i);
        if (!(fabs(a - b) <= tolerance(want->dtype) * (1 + fabs(b))))
            fail_msg("%s: element %lld of result %u is %g, not %g", what, (long long)i, result, a, b);
    }
}

/* The bytes of a run's results, one behind the other, and how many. */
struct bits {
    char byte[MOST * 2];
    size_t count;
};

/* Runs twice: the second run finds the shared memory as the first has left it. */
static void run_plan(const char *what, struct weft_plan *plan, const struct weft_tensor *in, uint32_t results,
                     struct bits *bits)
{
    struct weft_graph *const graph = plan->graph;
    struct weft_tensor want[RESULTS] = {{0}}, got;
    struct weft_execution *e;
    assert_int_equal(weft_evaluate(graph, in, 2, want, results), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bind_inputs(e, graph, in, what);
    for (int run = 0; run < 2; run++) {
        bits->count = 0;
        assert_int_equal(weft_run(e), WEFT_OK);
        for (uint32_t k = 0; k < results; k++) {
            assert_int_equal(weft_output(e, k, &got), WEFT_OK);
            assert_close(what, k, &got, &want[k]);
            const size_t bytes = (size_t)weft_tensor_elements(&got) * (size_t)weft_dtype_bits(got.dtype) / 8;
            memcpy(bits->byte + bits->count, got.data, bytes);
            bits->count += bytes;
        }
    }
    for (uint32_t k = 0; k < results; k++)
        weft_tensor_free(graph->context, &want[k]);
    weft_execution_destroy(e);
}

static void run_product(int number, const char *cpu, int threads, struct bits *first)
{
    static float x[MOST], r[MOST];
    static struct bits bits;
    struct weft_context *const context = open_at(cpu, threads);
    struct weft_graph *const graph = parse(context, products[number].text);
    struct weft_plan *const plan = compile(graph, 0);
    char what[128];
    if (plan->steps != 1 && threads == 1)
        fail_msg("%s, %s: %u kernels", products[number].what, cpu, plan->steps);
    for (int i = 0; i < 5; i++) {
        const int64_t rows = products[number].rows[i];
        const int *const columns = products[number].columns;
        const struct weft_tensor in[] = {tensor_of(x, 2, (int64_t[]){rows, columns[0]}),
                                         tensor_of(r, 2, (int64_t[]){rows, columns[1]})};
        snprintf(what, sizeof what, "%s, %s, %d threads, %lld rows", products[number].what, cpu, threads,
                 (long long)rows);
        run_plan(what, plan, in, products[number].results, &bits);
        if (plan->steps == 1 && first[i].count == 0)
            first[i] = bits;
        if (plan->steps == 1 && (bits.count != first[i].count || memcmp(bits.byte, first[i].byte, bits.count) != 0))
            fail_msg("%s: other bits", what);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void all_products(void **state)
{
    static struct bits first[5];
    for (int i = 0; i < PRODUCTS; i++) {
        memset(first, 0, sizeof first);
        for (int l = 0; l < LEVELS; l++)
            for (int threads = 1; threads <= THREADS; threads++)
                run_product(i, level[l], threads, first);
    }
}

static void put_channels_last(struct weft_tensor *t)
{
    t->stride[1] = 1;
    t->stride[3] = t->extent[1];
    t->stride[2] = t->extent[1] * t->extent[3];
}

/* Batches, transposed operands and results, convolutions in either order of axes: as many kernels as are said. */
static void other_heads(void **state)
{
    static const struct {
        const char *text;
        uint32_t kernels;
        int64_t extent[2][4];
        int rank, results;
    } heads[] = {
        {"graph @t(%x: f32[3,40,24], %r: f32[3,24,56]) {\n  %c: f32[3,40,56] = matmul %x, %r\n"
         "  %y: f32[3,40,56] = softmax %c axis=2\n  return %y\n}\n", 1, {{3, 40, 24}, {3, 24, 56}}, 3, 1},
        {"graph @t(%x: f32[3,24,40], %r: f32[3,56,24]) {\n"
         "  %c: f32[3,40,56] = matmul %x, %r trans_a=1 trans_b=1\n  %y: f32[3,40,56] = silu %c\n"
         "  %h: bf16[3,40,56] = cast %y\n  return %h, %c\n}\n", 1, {{3, 24, 40}, {3, 56, 24}}, 3, 2},
        {"graph @t(%x: f32[2,16,12,12]{0 2 3 1}, %r: f32[2,32,12,12]{0 2 3 1}) {\n"
         "  %w: f32[32,16,3,3] = const random=1\n"
         "  %c: f32[2,32,12,12]{0 2 3 1} = conv %x, %w pad=[1 1 1 1]\n  %d: f32[2,32,12,12]{0 2 3 1} = add %c, %r\n"
         "  %y: f32[2,32,12,12]{0 2 3 1} = relu %d\n  %h: f16[2,32,12,12]{0 2 3 1} = cast %y\n  return %d, %h\n}\n", 1,
         {{2, 16, 12, 12}, {2, 32, 12, 12}}, 4, 2},
        {"graph @t(%x: f32[2,16,12,12], %r: f32[2,32,12,12]) {\n  %w: f32[32,16,1,1] = const random=1\n"
         "  %c: f32[2,32,12,12] = conv %x, %w\n  %y: f32[2,32,12,12] = silu %c\n  %z: f32[2,32,12,12] = mul %c, %r\n"
         "  return %y, %z\n}\n", 1, {{2, 16, 12, 12}, {2, 32, 12, 12}}, 4, 2},
    };
    static float x[MOST], r[MOST];
    static struct bits bits;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            struct weft_context *const context = open_context(threads);
            struct weft_graph *const graph = parse(context, heads[i].text);
            struct weft_plan *const plan = compile(graph, 0);
            struct weft_tensor in[] = {tensor_of(x, heads[i].rank, heads[i].extent[0]),
                                       tensor_of(r, heads[i].rank, heads[i].extent[1])};
            for (int k = 0; k < 2 && strstr(heads[i].text, "{0 2 3 1}"); k++)
                put_channels_last(&in[k]);
            run_plan(heads[i].text, plan, in, (uint32_t)heads[i].results, &bits);
            if (threads == 1)
                assert_int_equal(plan->steps, heads[i].kernels);
            weft_plan_destroy(plan);
            weft_graph_destroy(graph);
            weft_close(context);
        }
}

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {PRODUCT("64", "40", "96") "  %m: f32[96] = sum %c axes=[0]\n  %y: f32[M,96] = relu %c\n  return %y, %m\n}\n",
         "has results that are reduced by columns"},
        {PRODUCT("64", "40", "96") "  %s: f32[M,96] = cumsum %c axis=1\n  return %s\n}\n",
         "is followed by nodes over other axes"},
        {"graph @t(%x: f32[1,16,12,12]{0 2 3 1}) {\n  %w: f32[32,16,3,3] = const random=1\n"
         "  %c: f32[1,32,12,12]{0 2 3 1} = conv %x, %w pad=[1 1 1 1]\n"
         "  %y: f32[1,32,12,12]{0 2 3 1} = softmax %c axis=1\n  return %y\n}\n",
         "is a convolution, whose results are reduced"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused_by_fuse(cases[i].text, cases[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_products), cmocka_unit_test(other_heads),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
