/* SPDX-License-Identifier: Apache-2.0 */
/* check_pool.c: windows against the definition in double, in all layouts, and against the baseline form bit by bit. */
#include "check/check.h"
#include "kernels/strip/pool_band.h"

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

/* --- bands -------------------------------------------------------------------------------------------------------- */

/* Copies a box of an array to where another one has it: planes of a band, channels, and places along three axes. */
static void copy_box(const struct weft_pool_bands *b, const struct weft_pool_band *band, float *to,
                     const int64_t *to_stride, const float *from, const int64_t *from_stride,
                     const int64_t (*range)[2])
{
    const int spatial = b->pool.spatial;
    for (int64_t plane = band->plane; plane < band->plane + band->planes; plane++)
        for (int64_t c = band->channel; c < band->channel + band->channels; c++)
            for (int64_t d = range[0][0]; d < range[0][1]; d++)
                for (int64_t h = range[1][0]; h < range[1][1]; h++)
                    for (int64_t w = range[2][0]; w < range[2][1]; w++) {
                        const int64_t place[] = {d, h, w};
                        const int64_t n = b->inside ? plane : plane / b->pool.c;
                        const int64_t channel = b->inside ? c : plane % b->pool.c;
                        int64_t put = n * to_stride[0] + channel * to_stride[1];
                        int64_t get = n * from_stride[0] + channel * from_stride[1];
                        for (int i = 0; i < spatial; i++) {
                            put += place[3 - spatial + i] * to_stride[2 + i];
                            get += place[3 - spatial + i] * from_stride[2 + i];
                        }
                        to[put] = from[get];
                    }
}

static void copy_operand(const struct weft_pool_bands *b, const struct weft_pool_band *band, float *to,
                         const float *in, const int64_t *stride)
{
    const int64_t range[3][2] = {{band->read[0][0], band->read[0][1]},
                                 {band->read[1][0] + band->kept, band->read[1][1]},
                                 {0, b->pool.in_extent[b->pool.spatial - 1]}};
    copy_box(b, band, to, b->pool.in_stride, in, stride, range);
}

/* Row by row: those of a band need not be a box. */
static void copy_results(const struct weft_pool_bands *b, const struct weft_pool_band *band, float *out,
                         const int64_t *stride, const float *from)
{
    const int spatial = b->pool.spatial;
    const int64_t slice = spatial > 1 ? b->pool.out_extent[spatial - 2] : 1;
    for (int64_t row = band->at; row < band->end; row++) {
        struct weft_pool_band one = *band;
        const int64_t in_plane = row % b->height, d = in_plane / slice, h = in_plane % slice;
        const int64_t range[3][2] = {{d, d + 1}, {h, h + 1}, {0, b->pool.out_extent[spatial - 1]}};
        one.plane = row / b->height, one.planes = 1;
        copy_box(b, &one, out, stride, from, b->pool.out_stride, range);
    }
}

/* Bands that may fill few bytes, whose operand or results stand in scratch memory of just their size, or both, or none:
 * the same bits, in any number of parts. */
static void check_bands(struct weft_check *check, const struct weft_pool *pool, const float *in, const float *want,
                        int64_t results)
{
    const int64_t which = weft_check_between(check, 0, 3), parts = weft_check_between(check, 1, 5);
    struct weft_pool_bands b = {.pool = *pool, .makes = which & 1, .apart = which & 2,
                                .near = (size_t)weft_check_between(check, 1, 4000),
                                .far = (size_t)weft_check_between(check, 1, 20000)};
    weft_pool_prepare_bands(&b, 4);
    float *const again = weft_check_alloc(check, (size_t)results * sizeof *again);
    memset(again, 0, (size_t)results * sizeof *again);
    float *const operand = b.makes ? weft_check_alloc(check, b.in_bytes) : NULL;
    float *const result = b.apart ? weft_check_alloc(check, b.out_bytes) : NULL;
    for (int part = (int)parts - 1; part >= 0; part--) {
        struct weft_pool_band band;
        bool any = weft_pool_first_band(&b, part, (int)parts, &band);
        for (; any; any = weft_pool_next_band(&b, &band)) {
            const float *from = in;
            float *to = again;
            if (b.makes) {
                if (band.kept)
                    weft_pool_move_kept(&b, &band, operand);
                else
                    memset(operand, 0xff, b.in_bytes); /* NaN: what no band makes is not read */
                copy_operand(&b, &band, weft_pool_whole(operand, band.in_shift), in, pool->in_stride);
                from = weft_pool_whole(operand, band.in_shift);
            }
            if (b.apart)
                to = weft_pool_whole(result, band.out_shift);
            weft_pool_run_band(&b, &band, to, from);
            if (b.apart)
                copy_results(&b, &band, again, pool->out_stride, to);
        }
    }
    weft_check_same(check, "in bands", again, want, results);
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
    check_bands(check, pool, in, out, results);
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
