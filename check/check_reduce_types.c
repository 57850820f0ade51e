/* SPDX-License-Identifier: Apache-2.0 */
/* check_reduce_types.c: reductions of every element type but f32 against plain loops: integers and bool bit by bit,
 * floats within the bound of their summation order; and long ones, which are cut into slices. */
#include "kernels/strip/fold.h"
#include "check/check_reduce.h"

#include <math.h>
#include <string.h>

struct types {
    uint8_t in, out;
};

/* By the letter of the kernel's name: "…_i64__avx2" adds these up. */
static const struct types floats[] = {{WEFT_K_F64, WEFT_K_F64}, {WEFT_K_F32, WEFT_K_F64}};
static const struct types integers[] = {
    {WEFT_K_I64, WEFT_K_I64},   {WEFT_K_I32, WEFT_K_I32}, {WEFT_K_I16, WEFT_K_I16}, {WEFT_K_I8, WEFT_K_I8},
    {WEFT_K_U32, WEFT_K_U32},   {WEFT_K_U16, WEFT_K_U16}, {WEFT_K_U8, WEFT_K_U8},   {WEFT_K_I8, WEFT_K_I32},
    {WEFT_K_BOOL, WEFT_K_BOOL}, {WEFT_K_U8, WEFT_K_U32},
};
static const struct types longs[] = {{WEFT_K_U64, WEFT_K_U64}, {WEFT_K_U8, WEFT_K_U64}};

static const int bytes_of[] = {0, 8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};

static double real_at(int dtype, const void *data, int64_t i)
{
    return dtype == WEFT_K_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* The element in 64 bits; the sign counts for signed ones. */
static uint64_t integer_at(int dtype, const void *data, int64_t i)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)data + i * bytes_of[dtype], (size_t)bytes_of[dtype]);
    const int unused = 64 - 8 * bytes_of[dtype];
    return dtype < WEFT_K_U64 ? (uint64_t)((int64_t)(x << unused) >> unused) : dtype == WEFT_K_BOOL ? x != 0 : x;
}

static uint64_t fold(const struct weft_reduce *r, uint64_t a, uint64_t b)
{
    const bool less = r->in_dtype < WEFT_K_U64 ? (int64_t)a < (int64_t)b : a < b;
    switch (r->op) {
    case WEFT_K_PROD: return a * b;
    case WEFT_K_MAX: return less ? b : a;
    case WEFT_K_MIN: return less ? a : b;
    default: return a + b;
    }
}

/* Result i of a reduction with one kept and one reduced axis. */
static uint64_t wanted_integer(const struct weft_reduce *r, const void *in, int64_t i)
{
    uint64_t x = integer_at(r->in_dtype, in, i * r->in_kept[0]);
    for (int64_t j = 1; j < r->reduced_extent[0]; j++)
        x = fold(r, x, integer_at(r->in_dtype, in, i * r->in_kept[0] + j * r->in_reduced[0]));
    if (r->op == WEFT_K_MEAN)
        x = r->in_dtype < WEFT_K_U64 ? (uint64_t)((int64_t)x / r->reduced_extent[0])
                                     : x / (uint64_t)r->reduced_extent[0];
    return x;
}

static void check_integers(struct weft_check *check, const struct weft_reduce *r, const void *in, const void *out)
{
    for (int64_t i = 0; i < r->kept_extent[0] && !weft_check_failed(check); i++) {
        const uint64_t want = wanted_integer(r, in, i);
        uint64_t got = integer_at(r->out_dtype, out, i), cut = want;
        if (r->out_dtype == WEFT_K_BOOL)
            cut = want != 0;
        else
            cut = integer_at(r->out_dtype, &want, 0);
        if (got != cut)
            weft_check_fail(check, "op %d of types %d to %d, result %lld of %lld over %lld: %lld, should be %lld",
                            (int)r->op, r->in_dtype, r->out_dtype, (long long)i, (long long)r->kept_extent[0],
                            (long long)r->reduced_extent[0], (long long)got, (long long)cut);
    }
}

static void check_floats(struct weft_check *check, const struct weft_reduce *r, const void *in, const double *out)
{
    const int64_t terms = r->reduced_extent[0];
    for (int64_t i = 0; i < r->kept_extent[0] && !weft_check_failed(check); i++) {
        long double x = r->op == WEFT_K_PROD ? 1 : r->op == WEFT_K_MAX ? -INFINITY : r->op == WEFT_K_MIN ? INFINITY : 0;
        long double scale = 0;
        for (int64_t j = 0; j < terms; j++) {
            const double term = real_at(r->in_dtype, in, i * r->in_kept[0] + j * r->in_reduced[0]);
            x = r->op == WEFT_K_PROD  ? x * term
                : r->op == WEFT_K_MAX ? fmaxl(x, term)
                : r->op == WEFT_K_MIN ? fminl(x, term)
                                      : x + term;
            scale += fabs(term);
        }
        if (r->op == WEFT_K_MEAN)
            x /= terms, scale /= (long double)terms;
        const long double bound = r->op == WEFT_K_PROD ? (long double)terms * 0x1p-52L * fabsl(x) : 0x1p-44L * scale;
        if (fabsl(x - out[i]) > (r->op == WEFT_K_MAX || r->op == WEFT_K_MIN ? 0 : bound + 0x1p-1070L))
            weft_check_fail(check, "op %d, result %lld over %lld: %.17g, should be %.17g", (int)r->op, (long long)i,
                            (long long)terms, out[i], (double)x);
    }
}

static void fill(struct weft_check *check, int dtype, void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t x = dtype == WEFT_K_BOOL ? (weft_check_random(check) & 7) == 0 : weft_check_random(check);
        const double real = (double)(int64_t)x * 0x1p-62;
        if (dtype == WEFT_K_F64)
            ((double *)data)[i] = real;
        else if (dtype == WEFT_K_F32)
            ((float *)data)[i] = (float)real;
        else
            memcpy((char *)data + i * bytes_of[dtype], &x, (size_t)bytes_of[dtype]);
    }
}

static void check_case(struct weft_check *check, const struct weft_reduce *plain, int64_t elements)
{
    const size_t results = (size_t)plain->kept_extent[0], size = (size_t)bytes_of[plain->out_dtype];
    void *const in = weft_check_alloc(check, (size_t)elements * (size_t)bytes_of[plain->in_dtype]);
    void *const out = weft_check_alloc(check, results * size), *const again = weft_check_alloc(check, results * size);
    struct weft_reduce reduce = *plain;
    weft_reduce_prepare(&reduce, 4);
    void *const shared = weft_check_alloc(check, reduce.shared + 64);
    memset(shared, 0, 64);
    fill(check, plain->in_dtype, in, elements);
    weft_reduce_run(&reduce, out, in, shared, 0, 1);
    if (plain->in_dtype <= WEFT_K_F16)
        check_floats(check, plain, in, out);
    else
        check_integers(check, plain, in, out);
    for (int parts = 2; parts <= 5; parts++) {
        memset(again, 0, results * size);
        for (int part = parts - 1; part >= 0; part--)
            weft_reduce_run(&reduce, again, in, shared, part, parts);
        weft_check_same_bytes(check, "in several parts", again, out, results * size);
    }
    struct weft_reduce baseline = *plain;
    baseline.cpu = 0;
    weft_reduce_prepare(&baseline, 4);
    weft_reduce_run(&baseline, again, in, shared, 0, 1);
    weft_check_same_bytes(check, "against the baseline", again, out, results * size);
}

void weft_check_reduce_types(struct weft_check *check, const void *user)
{
    const char *const name = user;
    const struct types *const list = strstr(name, "_f64__") ? floats : strstr(name, "_i64__") ? integers : longs;
    const int count = list == integers ? sizeof integers / sizeof integers[0] : 2;
    int cases = 0;
    for (int tries = 0; cases < 30 && tries < 5000 && !weft_check_failed(check); tries++) {
        const struct types types = list[weft_check_between(check, 0, count - 1)];
        const bool is_long = weft_check_between(check, 0, 5) == 0;
        const int64_t results = weft_check_between(check, 1, is_long ? 5 : 90);
        const int64_t terms = weft_check_between(check, 1, is_long ? 300000 / results : 900);
        const bool inside = weft_check_between(check, 0, 1), gaps = weft_check_between(check, 0, 2) == 0;
        const int64_t step = gaps ? 2 : 1;
        const bool logic = types.in == WEFT_K_BOOL;
        struct weft_reduce plain = {
            .op = (enum weft_reduce_op)weft_check_between(check, logic ? WEFT_K_MAX : WEFT_K_SUM, WEFT_K_MIN),
            .in_dtype = types.in,
            .out_dtype = types.out,
            .cpu = weft_check_cpu(check),
            .kept = 1,
            .reduced = 1,
            .kept_extent = {results},
            .reduced_extent = {terms},
            .in_kept = {inside ? step : terms * step},
            .in_reduced = {inside ? results * step : step},
            .out_stride = {1}};
        struct weft_reduce reduce = plain;
        weft_reduce_prepare(&reduce, 4);
        if (strcmp(weft_reduce_name(&reduce), name) != 0)
            continue;
        cases++;
        check_case(check, &plain, results * terms * step);
    }
    if (cases < 30 && !weft_check_failed(check))
        weft_check_fail(check, "only %d cases reached this kernel", cases);
}
