/* SPDX-License-Identifier: Apache-2.0 */
/* check_pool.c: windows against the definition in double, in all layouts, and against the baseline form bit by bit. */
#include "check/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct variant {
    const char *name;
    uint32_t cpu;
};

static const struct variant variants[] = {
#define POOL(id, level, cpu) {"weft_pool_" #id "__" #level, cpu},
#include "kernels/strip/pool.def"
};

/* The definition for one result. o: its place in three spatial axes, the missing leading ones 0. */
static double reference(const struct weft_pool *p, const float *in, const int64_t *o, double *ret_scale)
{
    double sum = 0, best = -INFINITY, counted = 0;
    int64_t t[3] = {0, 0, 0}, taps = 1;
    for (int i = 0; i < p->spatial; i++)
        taps *= p->kernel[i];
    *ret_scale = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap, at = 0;
        bool inside = true, in_pad = true;
        for (int i = p->spatial - 1; i >= 0; i--) {
            t[i] = rest % p->kernel[i], rest /= p->kernel[i];
            const int64_t x = o[i] * p->stride[i] - p->pad[i] + t[i] * p->dilation[i];
            inside &= x >= 0 && x < p->in_extent[i];
            in_pad &= x >= -p->pad[i] && x < p->in_extent[i] + p->pad_after[i];
            at += x * p->in_stride[2 + i];
        }
        counted += p->count_pad ? in_pad : inside;
        if (!inside)
            continue;
        sum += in[at];
        *ret_scale += fabs((double)in[at]);
        best = isnan(best) || isnan(in[at]) ? (double)NAN : fmax(best, in[at]);
    }
    *ret_scale /= counted;
    return p->mean ? sum / counted : best;
}

static void dense_strides(int64_t *stride, const int64_t *extent, int rank, bool channels_last)
{
    int64_t step = 1;
    if (channels_last)
        stride[1] = step, step *= extent[1];
    for (int i = rank - 1; i >= 2; i--)
        stride[i] = step, step *= extent[i];
    if (!channels_last)
        stride[1] = step, step *= extent[1];
    stride[0] = step;
}

static void random_pool(struct weft_check *check, struct weft_pool *p, int64_t *ret_in, int64_t *ret_out)
{
    *p = (struct weft_pool){.mean = weft_check_between(check, 0, 1),
                            .count_pad = weft_check_between(check, 0, 1),
                            .cpu = weft_check_cpu(check),
                            .spatial = (int32_t)weft_check_between(check, 1, 3),
                            .n = weft_check_between(check, 1, 2),
                            .c = weft_check_between(check, 1, 90)};
    const bool whole = !weft_check_between(check, 0, 2); /* windows as large as the array */
    const bool wide = !weft_check_between(check, 0, 30); /* or larger than what is folded at once */
    if (wide)
        p->spatial = 1, p->c = weft_check_between(check, 1, 3);
    int64_t in[5] = {p->n, p->c}, out[5] = {p->n, p->c};
    *ret_in = *ret_out = p->n * p->c;
    for (int i = 0; i < p->spatial; i++) {
        p->kernel[i] = wide ? weft_check_between(check, 4000, 5000) : weft_check_between(check, 1, whole ? 40 : 7);
        p->stride[i] = weft_check_between(check, 1, weft_check_between(check, 0, 9) ? 3 : 5000);
        p->dilation[i] = weft_check_between(check, 1, whole ? 1 : 2);
        p->pad[i] = whole ? 0 : weft_check_between(check, 0, p->kernel[i] - 1);
        p->pad_after[i] = whole ? 0 : weft_check_between(check, 0, p->kernel[i] - 1);
        const int64_t window = (p->kernel[i] - 1) * p->dilation[i] + 1;
        p->in_extent[i] = window + (whole ? 0 : weft_check_between(check, 0, i == p->spatial - 1 ? 70 : 4));
        if (!weft_check_between(check, 0, 25)) { /* nothing to fold, and nothing comes out */
            p->kernel[i] = 1;
            p->pad[i] = p->pad_after[i] = p->in_extent[i] = 0;
        }
        const int64_t places = p->in_extent[i] + p->pad[i] + p->pad_after[i] - window;
        p->out_extent[i] = p->in_extent[i] > 0 ? places / p->stride[i] + 1 : 0;
        in[2 + i] = p->in_extent[i], out[2 + i] = p->out_extent[i];
        *ret_in *= in[2 + i], *ret_out *= out[2 + i];
    }
    dense_strides(p->in_stride, in, 2 + p->spatial, weft_check_between(check, 0, 1));
    dense_strides(p->out_stride, out, 2 + p->spatial, weft_check_between(check, 0, 1));
}

/* A result's chains are not longer than this. */
static int64_t taps_of(const struct weft_pool *p)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < p->spatial; i++)
        rows *= p->kernel[i];
    return rows + p->kernel[p->spatial - 1];
}

static bool check_values(struct weft_check *check, const struct weft_pool *p, const float *in, const float *out)
{
    const int64_t extent[3] = {p->out_extent[0], p->spatial > 1 ? p->out_extent[1] : 1,
                               p->spatial > 2 ? p->out_extent[2] : 1};
    for (int64_t nc = 0; nc < p->n * p->c; nc++)
        for (int64_t i = 0; i < extent[0] * extent[1] * extent[2]; i++) {
            const int64_t o[3] = {i / extent[2] / extent[1], i / extent[2] % extent[1], i % extent[2]};
            const int64_t n = nc / p->c, c = nc % p->c;
            double scale;
            const double want = reference(p, in + n * p->in_stride[0] + c * p->in_stride[1], o, &scale);
            int64_t to = n * p->out_stride[0] + c * p->out_stride[1];
            for (int a = 0; a < p->spatial; a++)
                to += o[a] * p->out_stride[2 + a];
            const double bound = p->mean ? (double)(taps_of(p) + 2) * 0x1p-24 * scale + 0x1p-149 : 0;
            if (fabs(out[to] - want) <= bound || weft_check_ulps(out[to], want) <= (p->mean ? 1 : 0))
                continue;
            weft_check_fail(check, "%s, n %lld c %lld at %lld %lld %lld: %.9g, should be %.9g",
                            p->mean ? "mean" : "max", (long long)n, (long long)c, (long long)o[0], (long long)o[1],
                            (long long)o[2], out[to], want);
            return false;
        }
    return true;
}

static void check_case(struct weft_check *check, const struct weft_pool *pool, int64_t elements, int64_t results)
{
    float *const in = weft_check_alloc(check, (size_t)elements * sizeof *in);
    float *const out = weft_check_alloc(check, (size_t)results * sizeof *out);
    float *const again = weft_check_alloc(check, (size_t)results * sizeof *again);
    static const enum weft_check_fill fills[] = {WEFT_FILL_PLAIN, WEFT_FILL_TINY, WEFT_FILL_HOSTILE};
    const enum weft_check_fill fill = fills[weft_check_between(check, 0, 2)];
    weft_check_fill(check, in, elements, fill);
    weft_pool_run(pool, out, in, 0, 1);
    if (!pool->mean || fill != WEFT_FILL_HOSTILE) /* what overflows in a mean depends on the order */
        check_values(check, pool, in, out);
    for (int parts = 2; parts <= 5; parts++) {
        memset(again, 0, (size_t)results * sizeof *again);
        for (int part = parts - 1; part >= 0; part--)
            weft_pool_run(pool, again, in, part, parts);
        weft_check_same(check, "in several parts", again, out, results);
    }
    struct weft_pool baseline = *pool;
    baseline.cpu = 0;
    weft_pool_prepare(&baseline, 4);
    weft_pool_run(&baseline, again, in, 0, 1);
    weft_check_same(check, "against the baseline", out, again, results);
}

static void body(struct weft_check *check, const void *user)
{
    const struct variant *const variant = user;
    int cases = 0;
    for (int tries = 0; cases < 40 && tries < 5000 && !weft_check_failed(check); tries++) {
        struct weft_pool pool;
        int64_t elements, results;
        random_pool(check, &pool, &elements, &results);
        if (elements > 100000)
            continue;
        weft_pool_prepare(&pool, 4);
        if (strcmp(weft_pool_name(&pool), variant->name) != 0)
            continue;
        cases++;
        check_case(check, &pool, elements, results);
    }
    if (cases < 40 && !weft_check_failed(check))
        weft_check_fail(check, "only %d cases reached this kernel", cases);
}

void weft_check_pool(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, &variants[i]);
}
