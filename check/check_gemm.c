/* SPDX-License-Identifier: Apache-2.0 */
/* check_gemm.c: every kernel of gemm.def against the sums that gemm.h defines, bit for bit.
 *
 * Extents around the tile's, rows, columns and handfuls, long chains; all orders and gaps of strides, packed or not;
 * alpha, beta, bias, residual (elsewhere, or where the results go), clamp and hooks; any blocks and grids; cut into 1
 * to 8 parts that run in reverse order. The whole buffer of C is compared, so that a store beside the results is seen
 * as well as a wrong result. With plain numbers the sums themselves are compared with sums in double within the bound
 * of k roundings. */
#include "check/check.h"
#include "kernels/gemm/gemm.h"
#include "check/clamp_definition.h"

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

/* What an epilogue adds, so that a wrong place or a second call shows; and what a prologue makes. */
static float mark(int64_t batch, int64_t row, int64_t column)
{
    return (float)((batch * 5 + row * 3 + column * 7) % 17) - 8;
}
static void hook(void *user, const struct weft_gemm_piece *piece)
{
    for (int64_t i = 0; i < piece->rows; i++) {
        for (int64_t j = 0; j < piece->columns; j++)
            piece->data[i * piece->row + j * piece->column] +=
                mark(piece->batch, piece->first_row + i, piece->first_column + j);
    }
}

static void make(void *user, const struct weft_gemm_piece *piece)
{
    for (int64_t i = 0; i < piece->rows; i++) {
        for (int64_t j = 0; j < piece->columns; j++)
            piece->data[i * piece->row + j * piece->column] =
                mark(piece->batch, piece->first_row + i, piece->first_column + j);
    }
}

static bool chance(struct weft_check *check, int one_in) { return weft_check_between(check, 1, one_in) == 1; }

static void choose_extents(struct weft_check *check, const struct weft_gemm_kernel *kernel, struct weft_gemm *g)
{
    const bool deep = chance(check, 16), large = !deep && chance(check, 16), thin = chance(check, 3);
    g->batch = weft_check_between(check, 1, 3);
    g->m = weft_check_between(check, 0, large ? 260 : 3 * kernel->rows + 1);
    g->n = weft_check_between(check, 0, 2 * kernel->columns + kernel->lanes + 1);
    g->k = deep ? weft_check_between(check, 2000, 9000) : weft_check_between(check, 0, chance(check, 3) ? 600 : 40);
    if (thin)
        *(chance(check, 2) ? &g->m : &g->n) = weft_check_between(check, 1, chance(check, 2) ? 8 : 1);
    if (thin && g->n <= 8 && chance(check, 2))
        g->m = weft_check_between(check, 1, 200);
    if (thin && chance(check, 3))
        g->m = weft_check_between(check, 1, 8), g->n = weft_check_between(check, 1, 8);
    if (chance(check, 8)) { /* several panels, which tiles copy */
        g->m = weft_check_between(check, 2 * kernel->rows, 20 * kernel->rows);
        g->n = weft_check_between(check, kernel->columns + 1, 5 * kernel->columns);
        g->k = weft_check_between(check, 1, 150);
    }
    if (deep || chance(check, 3))
        g->batch = 1;
}

/* Options change the order of work, but `max_slices` and `one_chain` no bit. */
static void choose_options(struct weft_check *check, struct weft_gemm *g)
{
    for (int d = 0; d < 3 && chance(check, 2); d++)
        g->grid[0] = g->grid[1] = 1, g->grid[2] = 1, g->grid[d] = (int32_t)weft_check_between(check, 1, 4);
    g->block_m = chance(check, 4) ? weft_check_between(check, 1, 50) : 0;
    g->block_n = chance(check, 4) ? weft_check_between(check, 1, 200) : 0;
    g->block_k = chance(check, 4) ? weft_check_between(check, 1, 50) : 0;
    g->max_slices = chance(check, 4) ? (int32_t)weft_check_between(check, 1, 3) : 0;
    g->one_chain = chance(check, 4);
    g->scaled = chance(check, 4);
    g->alpha = (float)weft_check_between(check, -3, 3) / 2, g->beta = (float)weft_check_between(check, -1, 1) / 4;
    g->bias_row = weft_check_between(check, 0, 2), g->bias_col = weft_check_between(check, 0, 2);
    g->clamp = clamp_drawn(check);
    g->residual = chance(check, 3);
    if (chance(check, 4)) {
        g->prologue_a = chance(check, 2) ? make : NULL;
        g->prologue_b = chance(check, 2) ? make : NULL;
        g->epilogue = chance(check, 2) ? hook : NULL;
    }
}

/* As C lies, or in some other way, the same numbers for all products or not. */
static void choose_residual(struct weft_check *check, struct weft_gemm *g)
{
    g->r_batch = g->c_batch, g->r_row = g->c_row, g->r_col = g->c_col;
    if (chance(check, 2))
        return;
    choose_strides(check, g->m, g->n, &g->r_row, &g->r_col);
    g->r_batch = weft_check_between(check, 0, 1) * span(1, 0, g->m, g->r_row, g->n, g->r_col);
}

/* A B that is larger than half of the second-level cache and mostly copied panel by panel, in several bands, blocks of
 * columns and blocks of k: what is copied next is prefetched. */
static void choose_copied_extents(struct weft_check *check, struct weft_gemm *g)
{
    g->batch = 1;
    g->m = weft_check_between(check, 200, 400), g->n = weft_check_between(check, 65, 300);
    g->k = weft_check_between(check, 0, 1) ? weft_check_between(check, 60, 600) : weft_check_between(check, 14, 40);
}

static void choose_copied_blocks(struct weft_check *check, struct weft_gemm *g)
{
    g->cache = 128 << 10; /* the least that counts */
    g->block_m = chance(check, 2) ? weft_check_between(check, 20, 100) : 0;
    g->block_n = chance(check, 2) ? weft_check_between(check, 1, 200) : 0;
    g->block_k = chance(check, 2) ? weft_check_between(check, 16, 100) : 0;
}

static struct weft_gemm choose_case(struct weft_check *check, const struct weft_gemm_kernel *kernel)
{
    struct weft_gemm g = {.cpu = weft_check_cpu(check)};
    const bool copied = chance(check, 20);
    choose_extents(check, kernel, &g);
    if (copied)
        choose_copied_extents(check, &g);
    choose_strides(check, g.m, g.k, &g.a_row, &g.a_col);
    choose_strides(check, g.k, g.n, &g.b_row, &g.b_col);
    choose_strides(check, g.m, g.n, &g.c_row, &g.c_col);
    g.a_batch = weft_check_between(check, 0, 1) * span(1, 0, g.m, g.a_row, g.k, g.a_col);
    g.b_batch = weft_check_between(check, 0, 1) * span(1, 0, g.k, g.b_row, g.n, g.b_col);
    g.c_batch = span(1, 0, g.m, g.c_row, g.n, g.c_col);
    choose_options(check, &g);
    choose_residual(check, &g);
    g.cache = (size_t)weft_check_between(check, 0, 1) << weft_check_between(check, 15, 23);
    if (copied) {
        choose_copied_blocks(check, &g);
    } else if (weft_check_between(check, 0, 1) && !g.prologue_b) {
        g.batch = 1;
        g.b_packed = true;
    }
    return g;
}

/* Operands as the prologues leave them, dense: [batch][i][p], [batch][j][p]. */
static void prepare_operands(const struct weft_gemm *g, int64_t n, const float *a, const float *b, float *x, float *y)
{
    for (int64_t p = 0; p < g->k; p++) {
        for (int64_t i = 0; i < g->m; i++) {
            x[i * g->k + p] = g->prologue_a ? mark(n, i, p) : a[n * g->a_batch + i * g->a_row + p * g->a_col];
        }
        for (int64_t j = 0; j < g->n; j++) {
            y[j * g->k + p] = g->prologue_b ? mark(n, p, j) : b[n * g->b_batch + p * g->b_row + j * g->b_col];
        }
    }
}

/* The sum that gemm.h defines. */
static float sum_of(const struct weft_gemm *g, const float *x, const float *y)
{
    const int64_t slices = weft_gemm_slices(g), lanes = weft_gemm_lanes(g);
    float sum = 0;
    for (int64_t s = 0; s < slices; s++) {
        const int64_t first = weft_cut(g->k, slices, s), end = weft_cut(g->k, slices, s + 1);
        float lane[32] = {0};
        for (int64_t p = first; p < end; p++)
            lane[(p - first) % lanes] = fmaf(x[p], y[p], lane[(p - first) % lanes]);
        for (int64_t half = lanes / 2; half > 0; half /= 2) {
            for (int64_t l = 0; l < half; l++)
                lane[l] += lane[l + half];
        }
        sum = s == 0 ? lane[0] : sum + lane[0];
    }
    return sum;
}

static float finished(const struct weft_gemm *g, float sum, float old, const float *bias, const float *residual,
                      const int64_t at[3])
{
    float x = g->scaled ? g->alpha * sum : sum;
    if (g->scaled && g->beta != 0)
        x += g->beta * old;
    if (bias)
        x += bias[at[1] * g->bias_row + at[2] * g->bias_col];
    if (g->residual)
        x += residual[at[0] * g->r_batch + at[1] * g->r_row + at[2] * g->r_col];
    x = clamp_defined(&g->clamp, x);
    return g->epilogue ? x + mark(at[0], at[1], at[2]) : x;
}

/* The results in f32 into `want`, laid out as C and holding the old C. Of products without any finish also the sums in
 * double into `exact`; the bound on their distance as result. */
static double define(struct weft_check *check, const struct weft_gemm *g, float *want, double *exact, const float *a,
                     const float *b, const float *bias, const float *residual)
{
    double bound = 0;
    float *x = weft_check_alloc(check, (size_t)(g->m * g->k) * sizeof *x);
    float *y = weft_check_alloc(check, (size_t)(g->n * g->k) * sizeof *y);
    for (int64_t n = 0; n < g->batch; n++) {
        prepare_operands(g, n, a, b, x, y);
        for (int64_t r = 0; r < g->m * g->n; r++) {
            const int64_t at[3] = {n, r / g->n, r % g->n};
            const int64_t place = n * g->c_batch + at[1] * g->c_row + at[2] * g->c_col;
            const float *const u = x + at[1] * g->k, *const v = y + at[2] * g->k;
            double sum = 0, size = 0;
            for (int64_t p = 0; p < g->k; p++) {
                sum += (double)u[p] * v[p];
                size += fabs((double)u[p] * v[p]);
            }
            exact[place] = sum;
            bound = fmax(bound, size * (double)g->k * 0x1p-23);
            want[place] = finished(g, sum_of(g, u, v), want[place], bias, residual, at);
        }
    }
    return bound;
}

/* May round B's numbers to those of a smaller type, if it is packed in panels. Prepares the product. */
static void choose_small(struct weft_check *check, struct weft_gemm *g, float *b, int workers)
{
    static const int dtypes[] = {WEFT_K_F16, WEFT_K_BF16, WEFT_K_I8, WEFT_K_U8};
    const struct weft_gemm as_drawn = *g;
    const int dtype = dtypes[weft_check_between(check, 0, 3)];
    weft_gemm_prepare(g, workers);
    if (!g->b_packed || g->b_row != g->n || g->b_col != 1 || g->packing.order != WEFT_PACK_PANELS || g->swapped ||
        !g->kernel->code->transpose || chance(check, 4))
        return;
    *g = as_drawn;
    g->b_small = (uint8_t)dtype;
    weft_gemm_prepare(g, workers);
    const bool whole = dtype == WEFT_K_I8 || dtype == WEFT_K_U8;
    for (int64_t i = 0; whole && i < g->k * g->n; i++)
        b[i] *= 100;
    uint16_t *const rounded = weft_check_alloc(check, (size_t)(g->k * g->n) * sizeof *rounded);
    const struct weft_strip_kernel *const narrow = weft_strip_find("cast", WEFT_K_F32, dtype, 0);
    narrow->fn(&(struct weft_strip_args){.n = g->k * g->n, .out = rounded, .in = {b}, .stride = {1, 1}});
    const struct weft_strip_kernel *const widen = weft_strip_find("cast", dtype, WEFT_K_F32, 0);
    widen->fn(&(struct weft_strip_args){.n = g->k * g->n, .out = b, .in = {rounded}, .stride = {1, 1}});
    bool numbers = true; /* a NaN may come back as another */
    for (int64_t i = 0; i < g->k * g->n; i++)
        numbers &= b[i] == b[i];
    if (numbers && weft_smallest_dtype(g->cpu, b, g->k * g->n) == WEFT_K_F32)
        weft_check_fail(check, "no small type holds what was rounded to %d", dtype);
}

/* b as in a mapped file, at any address, packed by pieces. */
static const float *pack(struct weft_check *check, const struct weft_gemm *g, const float *b)
{
    float *const packed = weft_check_alloc(check, weft_gemm_pack_bytes(g));
    const size_t bytes = (size_t)span(1, 0, g->k, g->b_row, g->n, g->b_col) * sizeof *b;
    char *odd = weft_check_alloc(check, bytes + 4);
    odd += weft_check_between(check, 0, 3);
    memcpy(odd, b, bytes);
    const int pieces = (int)weft_check_between(check, 1, 4);
    for (int i = 0; i < pieces; i++)
        weft_gemm_pack_part(g, packed, (const weft_loose_f32 *)(void *)odd, i, pieces);
    return packed;
}

static void run_parts(struct weft_check *check, const struct weft_gemm *g, float *c, const float *a, const float *b,
                      const float *bias, const float *residual, int parts)
{
    struct weft_gemm_data data = {.c = c, .a = g->prologue_a ? NULL : a, .bias = bias,
                                  .residual = residual};
    if (!g->prologue_b)
        data.b = g->b_packed ? pack(check, g, b) : b;
    data.scratch = weft_check_alloc(check, g->scratch);
    data.shared = weft_check_alloc(check, g->shared);
    memset(data.shared, 0, g->shared > 64 ? 64 : g->shared);
    for (int part = parts - 1; part >= 0; part--)
        weft_gemm_run(g, &data, part, parts);
    for (size_t i = 0; i < 64 && i < g->shared; i++) {
        if (((const char *)data.shared)[i] != 0)
            weft_check_fail(check, "shared memory is not left as it was");
    }
}

static void describe(const struct weft_gemm *g, bool bias, int parts, int fill, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "%lldx%lldx%lld batch %lld, strides a %lld %lld, b %lld %lld%s, c %lld %lld, %d parts of %d x %d x %d, "
             "blocks %lld %lld %lld, small %d, %d slices, %d lanes, scaled %d by %g %g, bias %d, residual %d %lld "
             "%lld, clamp %g %g, hooks %d%d%d, fill %d",
             (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->batch, (long long)g->a_row,
             (long long)g->a_col, (long long)g->b_row, (long long)g->b_col, g->b_packed ? " packed" : "",
             (long long)g->c_row, (long long)g->c_col, parts, g->loops.cut[0], g->loops.cut[1], g->loops.cut[2],
             (long long)g->loops.mc, (long long)g->loops.nc, (long long)g->loops.kc, g->b_small, g->slices, g->lanes,
             g->scaled, (double)g->alpha, (double)g->beta, bias, g->residual,
             (long long)g->r_row, (long long)g->r_col, (double)g->clamp.low, (double)g->clamp.high,
             g->prologue_a != NULL, g->prologue_b != NULL, g->epilogue != NULL, fill);
}

static float *filled(struct weft_check *check, int64_t n, int fill)
{
    float *const x = weft_check_alloc(check, (size_t)n * sizeof *x);
    weft_check_fill(check, x, n, fill);
    return x;
}

static void check_case(struct weft_check *check, const struct weft_gemm_kernel *kernel)
{
    struct weft_gemm g = choose_case(check, kernel);
    const int workers = (int)weft_check_between(check, 1, 8);
    const int fill = (int)weft_check_between(check, 0, WEFT_FILLS - 1);
    const int64_t c_size = span(g.batch, g.c_batch, g.m, g.c_row, g.n, g.c_col);
    const float *const a = filled(check, span(g.batch, g.a_batch, g.m, g.a_row, g.k, g.a_col), fill);
    float *const b = filled(check, span(g.batch, g.b_batch, g.k, g.b_row, g.n, g.b_col), fill);
    choose_small(check, &g, b, workers);
    const float *bias = NULL;
    if (chance(check, 3))
        bias = filled(check, span(1, 0, g.m, g.bias_row, g.n, g.bias_col), fill);
    float *const got = filled(check, c_size, fill);
    float *const want = weft_check_alloc(check, (size_t)c_size * sizeof *want);
    double *const sum = weft_check_alloc(check, (size_t)c_size * sizeof *sum);
    for (int64_t i = 0; i < c_size; i++)
        sum[i] = want[i] = got[i];
    const float *residual = NULL;
    if (g.residual)
        residual = filled(check, span(g.batch, g.r_batch, g.m, g.r_row, g.n, g.r_col), fill);
    const double bound = define(check, &g, want, sum, a, b, bias, residual);
    const int parts = g.shared || chance(check, 2) ? g.parts : (int)weft_check_between(check, 1, 8);
    run_parts(check, &g, got, a, b, bias, residual, parts);
    char what[400];
    describe(&g, bias != NULL, parts, fill, what, sizeof what);
    if (strcmp(weft_gemm_name(&g), kernel->name) != 0)
        weft_check_fail(check, "%s: dispatch took %s", what, weft_gemm_name(&g));
    const bool sums = !bias && !g.residual && !g.scaled && !g.clamp.given && !g.epilogue;
    if (weft_check_same(check, what, got, want, c_size) && fill == WEFT_FILL_PLAIN && sums)
        weft_check_close(check, what, got, sum, c_size, 1, bound);
}

static void check_kernel(struct weft_check *check, const void *user)
{
    const struct weft_gemm_kernel *kernel = user;
    for (int i = 0; i < CASES && !weft_check_failed(check); i++)
        check_case(check, kernel);
}

void weft_check_gemm(struct weft_check *check)
{
    for (unsigned i = 0; i < weft_gemm_kernel_count; i++)
        weft_check_kernel(check, weft_gemm_kernels[i].name, weft_gemm_kernels[i].cpu, check_kernel,
                          &weft_gemm_kernels[i]);
}
