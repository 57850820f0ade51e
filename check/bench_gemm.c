/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm.c: products of matrices for weft-check --bench.
 *
 * m, k, n, batch; ta, tb: the operand lies transposed (A as k x m, B as n x k); b=const: B is a constant, packed before
 * the clock runs (one for all products of a batch); gap: elements between the lines of all three matrices; relu=clamp
 * or hook: a bias for each column, and a relu in the kernel or by an epilogue, whose peer is our product, then both in
 * one pass over C; front=mul: A is the product of two arrays by numbers, made by a prologue, whose peer is a pass that
 * stores A, and then our product. */
#include "check/bench_peers.h"

#include <math.h>
#include <stdio.h>

static const struct weft_case_key keys[] = {
    [BENCH_M] = {.name = "m", .most = 1, .low = 1, .required = true},
    [BENCH_K] = {.name = "k", .most = 1, .low = 1, .required = true},
    [BENCH_N] = {.name = "n", .most = 1, .low = 1, .required = true},
    [BENCH_BATCH] = {.name = "batch", .most = 1, .low = 1, .otherwise = 1},
    [BENCH_TA] = {.name = "ta"},
    [BENCH_TB] = {.name = "tb"},
    [BENCH_B] = {.name = "b", .most = 1, .words = "plain const"},
    [BENCH_GAP] = {.name = "gap", .most = 1},
    [BENCH_RELU] = {.name = "relu", .most = 1, .words = "no clamp hook"},
    [BENCH_FRONT] = {.name = "front", .most = 1, .words = "no mul"},
    {0},
};

static const char *problem_with(const struct weft_case *c)
{
    if (c->value[BENCH_RELU][0] && c->value[BENCH_BATCH][0] > 1)
        return "a bias and a relu are for one product";
    if (c->value[BENCH_FRONT][0] && (c->value[BENCH_BATCH][0] > 1 || c->value[BENCH_TA][0]))
        return "what is made is the A of one product, not transposed";
    return c->value[BENCH_B][0] && c->value[BENCH_BATCH][0] > 1 ? "a constant B is one matrix: no batch" : NULL;
}

struct bench_gemm bench_gemm_of(const struct weft_case *c)
{
    struct bench_gemm g = {.m = c->value[BENCH_M][0], .k = c->value[BENCH_K][0], .n = c->value[BENCH_N][0],
                           .batch = c->value[BENCH_BATCH][0], .constant = c->value[BENCH_B][0],
                           .a_transposed = c->value[BENCH_TA][0], .b_transposed = c->value[BENCH_TB][0]};
    const int64_t gap = c->value[BENCH_GAP][0];
    g.a_line = (g.a_transposed ? g.m : g.k) + gap;
    g.b_line = (g.b_transposed ? g.k : g.n) + gap;
    g.c_line = g.n + gap;
    g.a_size = g.a_line * (g.a_transposed ? g.k : g.m);
    g.b_size = g.b_line * (g.b_transposed ? g.n : g.k);
    g.c_size = g.c_line * g.m;
    return g;
}

static void set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    const struct bench_gemm g = bench_gemm_of(c);
    const double batch = (double)g.batch;
    *ret = (struct weft_problem){
        .c = c,
        .flops = 2 * batch * (double)g.m * (double)g.k * (double)g.n,
        .read = 4 * batch * (double)((c->value[BENCH_FRONT][0] ? 2 : 1) * g.m * g.k + g.k * g.n),
        .written = 4 * batch * (double)(g.m * g.n),
        .in = {weft_bench_floats(bench, g.a_size * g.batch), weft_bench_floats(bench, g.b_size * g.batch),
               weft_bench_floats(bench, g.n), c->value[BENCH_FRONT][0] ? weft_bench_floats(bench, g.a_size) : NULL},
        .out = weft_bench_alloc(bench, (size_t)(g.c_size * g.batch) * sizeof(float)),
        .out_bytes = (size_t)(g.c_size * g.batch) * sizeof(float),
    };
}

struct ours {
    struct weft_gemm gemm;
    float *c;
    const float *a, *b, *bias;
    char *scratch;
    void *shared;
    bool apart;              /* bias and relu, or what makes A, in a pass of their own */
    weft_strip_fn add, relu, mul; /* the kernels of the runtime */
    const float *gate;       /* what A is multiplied by, or NULL */
    float *made;             /* by a pass */
};

/* Rows [row, row + rows) and columns [column, column + columns) of A, to to[i·to_row + j]. */
static void multiply(const struct ours *t, float *to, int64_t to_row, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    struct weft_strip_args args = {.n = columns, .stride = {1, 1, 1}};
    for (int64_t i = 0; i < rows; i++) {
        args.out = to + i * to_row;
        args.in[0] = t->a + (row + i) * t->gemm.a_row + column;
        args.in[1] = t->gate + (row + i) * t->gemm.a_row + column;
        t->mul(&args);
    }
}
static void multiply_hook(void *user, const struct weft_gemm_piece *p)
{
    multiply(user, p->data, p->row, p->first_row, p->rows, p->first_column, p->columns);
}

/* `bias` of the piece's first column, or NULL. */
static void relu(const struct ours *t, float *c, int64_t c_row, int64_t rows, int64_t columns, const float *bias)
{
    struct weft_strip_args args = {.n = columns, .stride = {1, 1, 1}};
    for (int64_t i = 0; i < rows; i++) {
        args.out = c + i * c_row, args.in[0] = args.out;
        if (bias) {
            args.in[1] = bias;
            t->add(&args);
        }
        t->relu(&args);
    }
}
static void relu_hook(void *user, const struct weft_gemm_piece *p)
{
    relu(user, p->data, p->row, p->rows, p->columns, NULL);
}

static void run(void *user, int part, int parts)
{
    const struct ours *const t = user;
    if (t->made)
        multiply(t, t->made, t->gemm.a_row, 0, t->gemm.m, 0, t->gemm.k);
    const struct weft_gemm_data data = {.c = t->c, .a = t->made ? t->made : t->a, .b = t->b,
                                        .bias = t->apart ? NULL : t->bias, .user = user, .shared = t->shared,
                                        .scratch = t->scratch + (size_t)part * t->gemm.scratch};
    weft_gemm_run(&t->gemm, &data, part, parts);
    if (t->apart && t->bias)
        relu(t, t->c, t->gemm.c_row, t->gemm.m, t->gemm.n, t->bias);
}

static void make(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers, bool apart,
                 struct weft_contestant *ret)
{
    const struct bench_gemm g = bench_gemm_of(problem->c);
    struct ours *const t = weft_bench_alloc(bench, sizeof *t);
    t->gemm = (struct weft_gemm){
        .cpu = cpu, .cache = weft_bench_cache(bench), .batch = g.batch, .m = g.m, .n = g.n, .k = g.k,
        .a_batch = g.a_size, .a_row = g.a_transposed ? 1 : g.a_line, .a_col = g.a_transposed ? g.a_line : 1,
        .b_batch = g.b_size, .b_row = g.b_transposed ? 1 : g.b_line, .b_col = g.b_transposed ? g.b_line : 1,
        .c_batch = g.c_size, .c_row = g.c_line, .c_col = 1, .b_packed = g.constant, .bias_col = 1,
    };
    const int64_t finishes = problem->c->value[BENCH_RELU][0];
    t->apart = apart, t->bias = finishes ? problem->in[2] : NULL;
    t->add = weft_strip_find("add", WEFT_K_F32, WEFT_K_F32, cpu)->fn;
    t->relu = weft_strip_find("relu", WEFT_K_F32, WEFT_K_F32, cpu)->fn;
    if (!apart && finishes == 1)
        t->gemm.clamp = (struct weft_clamp){true, 0, INFINITY, 0.0f};
    t->gemm.epilogue = !apart && finishes == 2 ? relu_hook : NULL;
    t->mul = weft_strip_find("mul", WEFT_K_F32, WEFT_K_F32, cpu)->fn;
    t->gate = problem->in[3];
    t->gemm.prologue_a = t->gate && !apart ? multiply_hook : NULL;
    t->made = t->gate && apart ? weft_bench_alloc(bench, (size_t)g.a_size * sizeof(float)) : NULL;
    weft_gemm_prepare(&t->gemm, workers);
    t->a = problem->in[0], t->b = problem->in[1], t->c = problem->out;
    if (g.constant) {
        float *const pack = weft_bench_alloc(bench, weft_gemm_pack_bytes(&t->gemm));
        weft_gemm_pack(&t->gemm, pack, problem->in[1]);
        t->b = pack;
    }
    t->scratch = weft_bench_alloc(bench, t->gemm.scratch * (size_t)workers);
    t->shared = weft_bench_alloc(bench, t->gemm.shared);
    *ret = (struct weft_contestant){.name = weft_gemm_name(&t->gemm), .run = run, .user = t, .parts = t->gemm.parts};
}

static bool ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret)
{
    make(bench, problem, cpu, workers, false, ret);
    return true;
}

static bool is_fused(const struct weft_problem *problem)
{
    return problem->c->value[BENCH_RELU][0] || problem->c->value[BENCH_FRONT][0];
}

/* One thread, since the pass begins where the product has ended, or the other way round. */
static bool pass(struct weft_bench *bench, const struct weft_problem *problem, int threads, struct weft_contestant *ret)
{
    if (threads != 1 || !is_fused(problem))
        return false;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    make(bench, problem, cpu.flags, 1, true, ret);
    ret->name = "pass";
    return true;
}

static void draw(struct weft_bench *bench, char *line, size_t bytes)
{
    int64_t m = weft_bench_size(bench, 1, 2048), k = weft_bench_size(bench, 1, 4096), n;
    n = weft_bench_size(bench, 1, 4096);
    while (m * k * n > 2000000000) /* a sample of a few tens of milliseconds */
        *(m > 64 ? &m : k > n ? &k : &n) /= 2;
    const bool constant = weft_bench_between(bench, 0, 1);
    const int64_t batch = !constant && m * k * n < 300000 ? weft_bench_size(bench, 1, 64) : 1;
    const char *const ta = weft_bench_between(bench, 0, 3) ? "" : " ta";
    const char *const tb = weft_bench_between(bench, 0, 1) ? "" : " tb";
    snprintf(line, bytes, "m=%lld k=%lld n=%lld batch=%lld%s%s b=%s", (long long)m, (long long)k, (long long)n,
             (long long)batch, ta, tb, constant ? "const" : "plain");
}

#ifdef WITH_ONEDNN
static bool onednn(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                   struct weft_contestant *ret)
{
    return !is_fused(problem) && bench_onednn_gemm(bench, problem, threads, ret);
}
#endif
#ifdef WITH_OPENBLAS
static bool openblas(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                     struct weft_contestant *ret)
{
    return !is_fused(problem) && bench_openblas_gemm(bench, problem, threads, ret);
}
#endif

static const struct weft_peer peers[] = {
#ifdef WITH_ONEDNN
    {"onednn", onednn},
#endif
#ifdef WITH_OPENBLAS
    {"openblas", openblas},
#endif
    {"pass", pass},
    {0},
};

const struct weft_bench_family weft_bench_gemm = {"gemm", keys, problem_with, set, ours, peers, draw};
