/* SPDX-License-Identifier: Apache-2.0 */
/* check_gemm.c: every kernel of gemm.def against the chain that gemm.h defines, bit for bit.
 *
 * Extents around the tile's, all orders and gaps of strides, packed or not, cut into 1 to 8 parts that run in reverse
 * order. The whole buffer of C is compared, so that a store beside the results is seen as well as a wrong result. With
 * plain numbers the chain itself is compared with a sum in double within the bound of k roundings. */
#include "kernels/check.h"
#include "kernels/gemm/gemm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CASES = 400 };

/* A matrix of rows x columns by row, by column, or with no unit stride; `gap` elements between its lines. */
static void choose_strides(struct weft_check *check, int64_t rows, int64_t columns, int64_t *ret_row,
                           int64_t *ret_column)
{
    const int64_t gap = weft_check_between(check, 0, 1) * weft_check_between(check, 1, 5);
    const int64_t kind = weft_check_between(check, 0, 4), unit = kind == 4 ? 2 : 1;
    *ret_row = kind == 3 ? 1 : columns * unit + gap;
    *ret_column = kind == 3 ? rows + gap : unit;
}

/* Elements from the first to the last one of a batch of matrices. */
static int64_t span(int64_t batch, int64_t batch_stride, int64_t rows, int64_t row, int64_t columns, int64_t column)
{
    return rows == 0 || columns == 0 ? 0 : (batch - 1) * batch_stride + (rows - 1) * row + (columns - 1) * column + 1;
}

static struct weft_gemm choose_case(struct weft_check *check, const struct weft_gemm_kernel *kernel)
{
    const bool deep = weft_check_between(check, 0, 31) == 0, large = !deep && weft_check_between(check, 0, 15) == 0;
    struct weft_gemm g = {
        .cpu = weft_check_cpu(check),
        .batch = weft_check_between(check, 1, 3),
        .m = weft_check_between(check, 0, large ? 260 : 3 * kernel->rows + 1),
        .n = weft_check_between(check, 0, 2 * kernel->columns + kernel->lanes + 1),
        .k = deep ? weft_check_between(check, 2000, 4200) : weft_check_between(check, 0, 40),
    };
    choose_strides(check, g.m, g.k, &g.a_row, &g.a_col);
    choose_strides(check, g.k, g.n, &g.b_row, &g.b_col);
    choose_strides(check, g.m, g.n, &g.c_row, &g.c_col);
    g.a_batch = weft_check_between(check, 0, 1) * span(1, 0, g.m, g.a_row, g.k, g.a_col);
    g.b_batch = weft_check_between(check, 0, 1) * span(1, 0, g.k, g.b_row, g.n, g.b_col);
    g.c_batch = span(1, 0, g.m, g.c_row, g.n, g.c_col);
    if (weft_check_between(check, 0, 1)) {
        g.batch = 1;
        g.b_packed = true;
    }
    return g;
}

/* The chain in f32 into `chain`, laid out as C; the largest bound on its error against the sum in double as result, and
 * those sums into `sum`. */
static double define(const struct weft_gemm *g, float *chain, double *sum, const float *a, const float *b)
{
    double bound = 0;
    for (int64_t i = 0; i < g->batch * g->m * g->n; i++) {
        const int64_t n = i / g->n / g->m, row = i / g->n % g->m, column = i % g->n;
        const int64_t at = n * g->c_batch + row * g->c_row + column * g->c_col;
        float s = 0;
        double exact = 0, size = 0;
        for (int64_t p = 0; p < g->k; p++) {
            const float x = a[n * g->a_batch + row * g->a_row + p * g->a_col];
            const float y = b[n * g->b_batch + p * g->b_row + column * g->b_col];
            s = fmaf(x, y, s);
            exact += (double)x * y;
            size += fabs((double)x * y);
        }
        chain[at] = s;
        sum[at] = exact;
        bound = fmax(bound, size * (double)g->k * 0x1p-23);
    }
    return bound;
}

static void run_parts(struct weft_check *check, struct weft_gemm *g, float *c, const float *a, const float *b,
                      int parts)
{
    const float *operand = b;
    weft_gemm_prepare(g, parts);
    if (g->b_packed) {
        float *pack = weft_check_alloc(check, weft_gemm_pack_bytes(g));
        const size_t bytes = (size_t)span(1, 0, g->k, g->b_row, g->n, g->b_col) * sizeof *b;
        char *odd = weft_check_alloc(check, bytes + 4);
        odd += weft_check_between(check, 0, 3); /* as in a mapped file */
        memcpy(odd, b, bytes);
        const int pieces = (int)weft_check_between(check, 1, 4);
        for (int i = 0; i < pieces; i++)
            weft_gemm_pack_part(g, pack, (const weft_loose_f32 *)(void *)odd, i, pieces);
        operand = pack;
    }
    void *scratch = weft_check_alloc(check, g->scratch);
    for (int part = parts - 1; part >= 0; part--)
        weft_gemm_run(g, c, a, operand, scratch, part, parts);
}

static void check_case(struct weft_check *check, const struct weft_gemm_kernel *kernel)
{
    struct weft_gemm g = choose_case(check, kernel);
    const int parts = (int)weft_check_between(check, 1, 8);
    const int fill = (int)weft_check_between(check, 0, WEFT_FILLS - 1);
    const int64_t a_size = span(g.batch, g.a_batch, g.m, g.a_row, g.k, g.a_col);
    const int64_t b_size = span(g.batch, g.b_batch, g.k, g.b_row, g.n, g.b_col);
    const int64_t c_size = span(g.batch, g.c_batch, g.m, g.c_row, g.n, g.c_col);
    float *a = weft_check_alloc(check, (size_t)a_size * sizeof *a),
          *b = weft_check_alloc(check, (size_t)b_size * sizeof *b);
    float *got = weft_check_alloc(check, (size_t)c_size * sizeof *got);
    float *want = weft_check_alloc(check, (size_t)c_size * sizeof *want);
    double *sum = weft_check_alloc(check, (size_t)c_size * sizeof *sum);
    weft_check_fill(check, a, a_size, fill);
    weft_check_fill(check, b, b_size, fill);
    weft_check_fill(check, got, c_size, WEFT_FILL_PLAIN);
    for (int64_t i = 0; i < c_size; i++)
        sum[i] = want[i] = got[i];
    const double bound = define(&g, want, sum, a, b);
    run_parts(check, &g, got, a, b, parts);
    char what[200];
    snprintf(what, sizeof what,
             "%lldx%lldx%lld batch %lld, strides a %lld %lld, b %lld %lld%s, c %lld %lld, %d parts, fill %d",
             (long long)g.m, (long long)g.n, (long long)g.k, (long long)g.batch, (long long)g.a_row, (long long)g.a_col,
             (long long)g.b_row, (long long)g.b_col, g.b_packed ? " packed" : "", (long long)g.c_row,
             (long long)g.c_col, parts, fill);
    if (strcmp(weft_gemm_name(&g), kernel->name) != 0)
        weft_check_fail(check, "%s: dispatch took %s", what, weft_gemm_name(&g));
    if (weft_check_same(check, what, got, want, c_size) && fill == WEFT_FILL_PLAIN)
        weft_check_close(check, what, got, sum, c_size, 1, bound);
}

/* --- speed --- */

struct timed {
    struct weft_gemm gemm;
    float *c;
    const float *a, *b;
    void *scratch;
};
static void run_timed(void *user)
{
    const struct timed *t = user;
    weft_gemm_run(&t->gemm, t->c, t->a, t->b, t->scratch, 0, 1);
}

static void bench(struct weft_check *check, const struct weft_gemm_kernel *kernel)
{
    static const struct {
        int64_t m, n, k;
        bool b_transposed, b_packed;
    } shapes[] = {{1024, 1024, 1024, false, true}, {1024, 1024, 1024, false, false}, {1024, 1024, 1024, true, false},
                  {1001, 1001, 1001, false, true}, {64, 3136, 576, false, false},    {128, 768, 768, false, true},
                  {1, 1024, 1024, false, true},    {64, 64, 64, false, false},       {16, 16, 16, false, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        const double flops = 2.0 * (double)m * (double)n * (double)k;
        if (kernel->cpu == 0 && flops > 1e8)
            continue;
        const bool transposed = shapes[i].b_transposed;
        struct timed t = {.gemm = {.cpu = weft_check_cpu(check),
                                   .batch = 1,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .a_row = k,
                                   .a_col = 1,
                                   .b_row = transposed ? 1 : n,
                                   .b_col = transposed ? k : 1,
                                   .c_row = n,
                                   .c_col = 1,
                                   .b_packed = shapes[i].b_packed}};
        weft_gemm_prepare(&t.gemm, 1);
        float *a = weft_check_alloc(check, (size_t)(m * k) * sizeof *a),
              *b = weft_check_alloc(check, (size_t)(k * n) * sizeof *b);
        weft_check_fill(check, a, m * k, WEFT_FILL_PLAIN);
        weft_check_fill(check, b, k * n, WEFT_FILL_PLAIN);
        float *pack = weft_check_alloc(check, t.gemm.b_packed ? weft_gemm_pack_bytes(&t.gemm) : 0);
        if (t.gemm.b_packed)
            weft_gemm_pack(&t.gemm, pack, b);
        t.a = a, t.b = t.gemm.b_packed ? pack : b;
        t.c = weft_check_alloc(check, (size_t)(m * n) * sizeof *t.c);
        t.scratch = weft_check_alloc(check, t.gemm.scratch);
        char shape[80];
        snprintf(shape, sizeof shape, "%lldx%lldx%lld%s%s", (long long)m, (long long)n, (long long)k,
                 transposed ? " B transposed" : "", t.gemm.b_packed ? " B packed" : "");
        weft_check_bench(check, shape, flops, "GFLOP/s", run_timed, &t);
    }
}

static void check_kernel(struct weft_check *check, const void *user)
{
    const struct weft_gemm_kernel *kernel = user;
    for (int i = 0; i < CASES && !weft_check_failed(check); i++)
        check_case(check, kernel);
    if (weft_check_benching(check))
        bench(check, kernel);
}

void weft_check_gemm(struct weft_check *check)
{
    for (unsigned i = 0; i < weft_gemm_kernel_count; i++)
        weft_check_kernel(check, weft_gemm_kernels[i].name, weft_gemm_kernels[i].cpu, check_kernel,
                          &weft_gemm_kernels[i]);
}
