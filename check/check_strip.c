/* SPDX-License-Identifier: Apache-2.0 */
/* check_strip.c: every elementwise kernel against its definition by the reference evaluator.
 *
 * A case is an op on operands of some length, with strides of any kind and data of any kind: right values, untouched
 * gaps, the baseline's bits, and the same bits in place. Functions of one f32 are also swept over a million bit
 * patterns spread evenly over all floats, with an offset from the seed: the baseline against the evaluator in f64,
 * within the bound of strip_definition.c; the other levels against the baseline's bits. */
#include "check/check.h"
#include "kernels/strip/strip.h"
#include "check/strip_definition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST  1100 /* elements of a case */
#define SWEEP (1 << 20)
#define SLICE 4096

static int bytes_of(int dtype) { return (int)weft_dtype_bits(dtype) / 8; }

/* Mostly small numbers, so that quotients, shifts and powers meet; now and then any bits. */
static void fill(struct weft_check *check, int dtype, void *array, int64_t n)
{
    const enum weft_check_fill kind = (enum weft_check_fill)weft_check_between(check, 0, WEFT_FILLS - 1);
    if (dtype == WEFT_F32) {
        weft_check_fill(check, array, n, kind);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = weft_check_random(check);
        if (dtype == WEFT_F64)
            ((double *)array)[i] = r >> 60 == 1 ? (double)NAN : ldexp((double)(int64_t)r, (int)(r % 90) - 80);
        else if (dtype == WEFT_BOOL)
            ((uint8_t *)array)[i] = r & 1;
        else if (weft_dtype_is_float(dtype))
            memcpy((char *)array + i * bytes_of(dtype), &r, (size_t)bytes_of(dtype));
        else
            weft_store_integer(dtype, array, i, r >> 61 ? (int64_t)(r % 9) - 4 : (int64_t)(r * 0x9e3779b97f4a7c15));
    }
}

/* An array that reaches exactly over n elements of that stride; `ret_base` gets the place of element 0. */
static void *strided_array(struct weft_check *check, int dtype, int64_t n, int64_t stride, char **ret_base)
{
    const int64_t reach = n ? (n - 1) * llabs(stride) + 1 : 0;
    char *const array = weft_check_alloc(check, (size_t)reach * (size_t)bytes_of(dtype));
    *ret_base = stride < 0 && n ? array + (reach - 1) * bytes_of(dtype) : array;
    return array;
}

/* The same bits, but any NaN equals any NaN. */
static void check_bits(struct weft_check *check, const struct strip_definition *d, const char *what, const void *got,
                       const void *want, int64_t n)
{
    const int dtype = d->dtype[0], bytes = bytes_of(dtype);
    for (int64_t i = 0; i < n; i++) {
        const char *const a = (const char *)got + i * bytes, *const b = (const char *)want + i * bytes;
        if (!memcmp(a, b, (size_t)bytes) || (weft_dtype_is_float(dtype) && isnan(weft_load_real(dtype, a, 0)) &&
                                             isnan(weft_load_real(dtype, b, 0))))
            continue;
        weft_check_fail(check, "%s: element %lld of %lld is %g, the same bits as %g were promised", what, (long long)i,
                        (long long)n, weft_load_real(dtype, a, 0), weft_load_real(dtype, b, 0));
        return;
    }
}

static int64_t random_stride(struct weft_check *check, bool zero)
{
    static const int64_t strides[] = {1, 1, 1, 1, 2, 3, -1, -2, 0, 0};
    return strides[weft_check_between(check, 0, zero ? 9 : 7)];
}

static bool check_values(struct weft_check *check, const struct strip_definition *d, int variant,
                         const struct weft_strip_args *args)
{
    double want[MOST];
    strip_definition_run(d, variant, args, want);
    for (int64_t i = 0; i < args->n; i++) {
        if (strip_definition_holds(d, args->out, i * args->stride[0], want, i))
            continue;
        double x[WEFT_K_MAX_IN] = {0};
        for (int a = 0; a < d->inputs; a++)
            x[a] = weft_load_real(d->dtype[1 + a], args->in[a], i * args->stride[1 + a]);
        const double got = weft_load_real(d->dtype[0], args->out, i * args->stride[0]);
        const double should = weft_load_real(d->wide[0], want, i);
        char error[96] = "";
        if (d->dtype[0] == WEFT_F32 && d->wide[0] != WEFT_F32)
            snprintf(error, sizeof error, ": %.3g ULP off, %.3g allowed (check/strip_definition.c)",
                     weft_check_ulps((float)got, should), d->ulps);
        weft_check_fail(check,
                        "element %lld of %lld, strides %lld %lld %lld: %.9g of %.9g %.9g %.9g, should be %.12g%s",
                        (long long)i, (long long)args->n, (long long)args->stride[0], (long long)args->stride[1],
                        (long long)args->stride[2], got, x[0], x[1], x[2], should, error);
        return false;
    }
    return true;
}

/* By the baseline kernel: the same values, and the same gaps. */
static const struct weft_strip_kernel *baseline_of(const struct strip_definition *d)
{
    return weft_strip_find(d->kernel->op, d->kernel->in_dtype, d->kernel->out_dtype, 0);
}

static void check_in_place(struct weft_check *check, const struct strip_definition *d,
                           const struct weft_strip_args *args)
{
    const int64_t stride = args->stride[0];
    for (int a = 0; a < d->inputs; a++) {
        if (args->stride[1 + a] != stride || bytes_of(d->dtype[1 + a]) != bytes_of(d->dtype[0]))
            continue;
        struct weft_strip_args other = *args;
        other.out = (void *)(uintptr_t)args->in[a];
        d->kernel->fn(&other);
        for (int64_t i = 0; i < args->n; i++) /* gaps of the operand are its own */
            check_bits(check, d, "in place", (char *)other.out + i * stride * bytes_of(d->dtype[0]),
                       (char *)args->out + i * stride * bytes_of(d->dtype[0]), 1);
        return;
    }
}

static void check_case(struct weft_check *check, const struct strip_definition *d, bool unit)
{
    const int64_t n =
        weft_check_between(check, 0, 3) ? weft_check_between(check, 0, 80) : weft_check_between(check, 0, MOST);
    const int variant = (int)weft_check_between(check, 0, d->variants - 1);
    struct weft_strip_args args = {.n = n, .param = {d->param[variant][0], d->param[variant][1]}};
    char *base, *twin_base;
    for (int a = 0; a < d->inputs; a++) {
        const int64_t stride = args.stride[1 + a] = unit ? 1 : random_stride(check, true);
        void *const array = strided_array(check, d->dtype[1 + a], n, stride, &base);
        fill(check, d->dtype[1 + a], array, n ? (n - 1) * llabs(stride) + 1 : 0);
        args.in[a] = base;
    }
    const int64_t stride = args.stride[0] = unit ? 1 : random_stride(check, false);
    const int64_t reach = n ? (n - 1) * llabs(stride) + 1 : 0, bytes = reach * bytes_of(d->dtype[0]);
    char *const out = memset(strided_array(check, d->dtype[0], n, stride, &base), 0x5a, (size_t)bytes);
    char *const twin = memset(strided_array(check, d->dtype[0], n, stride, &twin_base), 0x5a, (size_t)bytes);
    args.out = base;
    d->kernel->fn(&args);
    if (!check_values(check, d, variant, &args))
        return;
    struct weft_strip_args other = args;
    other.out = twin_base;
    baseline_of(d)->fn(&other);
    check_bits(check, d, "against the baseline", out, twin, reach);
    check_in_place(check, d, &args);
}

/* --- sweeps ------------------------------------------------------------------------------------------------------- */

static void sweep(struct weft_check *check, const struct strip_definition *d)
{
    static float x[SLICE], y[SLICE], z[SLICE], out[SLICE], base[SLICE];
    static double want[SLICE];
    const struct weft_strip_kernel *const baseline = baseline_of(d);
    struct weft_strip_args args = {.n = SLICE, .in = {x, y, z}, .stride = {1, 1, 1, 1},
                                   .param = {d->param[0][0], d->param[0][1]}};
    const uint32_t step = (uint32_t)(0x100000000u / SWEEP), offset = (uint32_t)weft_check_between(check, 0, step - 1);
    for (uint32_t start = 0; start < SWEEP && !weft_check_failed(check); start += SLICE) {
        for (uint32_t i = 0; i < SLICE; i++) {
            const uint32_t bits = (start + i) * step + offset;
            memcpy(&x[i], &bits, sizeof bits);
        }
        weft_check_fill(check, y, SLICE, start / SLICE % 2 ? WEFT_FILL_PLAIN : WEFT_FILL_BITS);
        weft_check_fill(check, z, SLICE, WEFT_FILL_BITS);
        args.out = out;
        d->kernel->fn(&args);
        if (d->kernel != baseline) {
            args.out = base;
            baseline->fn(&args);
            weft_check_same(check, "sweep against the baseline", out, base, SLICE);
            continue;
        }
        strip_definition_run(d, 0, &args, want);
        for (int i = 0; i < SLICE; i++) {
            if (strip_definition_holds(d, out, i, want, i))
                continue;
            weft_check_fail(check, "of %a, %a: %a, should be %a: %.4g ULP off, %.3g allowed", x[i], y[i], out[i],
                            want[i], weft_check_ulps(out[i], want[i]), d->ulps);
            break;
        }
    }
}

static void run_timed(void *user)
{
    const struct weft_strip_args *const *const pair = user;
    const struct weft_strip_kernel *const kernel = (const void *)pair[1];
    kernel->fn(pair[0]);
}

static void bench(struct weft_check *check, const struct strip_definition *s)
{
    enum { N = 4096 };
    struct weft_strip_args args = {.n = N, .stride = {1, 1, 1, 1}, .param = {s->param[0][0], s->param[0][1]}};
    double bytes = 0;
    for (int a = 0; a <= s->inputs; a++)
        bytes += N * bytes_of(s->dtype[a]);
    for (int a = 0; a < s->inputs; a++) {
        void *const array = weft_check_alloc(check, (size_t)(N * bytes_of(s->dtype[1 + a])));
        fill(check, s->dtype[1 + a], array, N);
        if (s->dtype[1 + a] == WEFT_F32)
            weft_check_fill(check, array, N, WEFT_FILL_PLAIN);
        args.in[a] = array;
    }
    args.out = weft_check_alloc(check, (size_t)(N * bytes_of(s->dtype[0])));
    const void *pair[2] = {&args, s->kernel};
    weft_check_bench(check, "4096 elements in L1", bytes, "GB/s", run_timed, pair);
}

static void body(struct weft_check *check, const void *user)
{
    const struct weft_strip_kernel *const kernel = user;
    struct strip_definition d;
    if (strip_definition_open(&d, kernel)) {
        for (int i = 0; i < 80 && !weft_check_failed(check); i++)
            check_case(check, &d, i % 2);
        if (kernel->in_dtype == WEFT_F32 && kernel->out_dtype == WEFT_F32 && d.wide[0] == WEFT_F64)
            sweep(check, &d);
        if (weft_check_benching(check))
            bench(check, &d);
    } else {
        weft_check_fail(check, "%s", d.context ? weft_last_error(d.context) : "no such op");
    }
    strip_definition_close(&d);
}

void weft_check_strip(struct weft_check *check)
{
    const struct weft_strip_kernel *k;
    for (unsigned i = 0; (k = weft_strip_at(i)); i++)
        weft_check_kernel(check, k->name, k->cpu, body, k);
}
