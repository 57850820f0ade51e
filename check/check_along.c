/* SPDX-License-Identifier: Apache-2.0 */
/* check_along.c: kernels along one axis against their definitions, an element at a time. */
#include "check/check.h"
#include "kernels/small.h"

#include <math.h>
#include <string.h>

static const struct kernel {
    const char *name;
    uint32_t cpu;
} kernels[] = {
#define ALONG(id, level, cpu) {"weft_along_" #id "__" #level, cpu},
#include "kernels/along/along.def"
};

/* What follows the op in a kernel's name; and of each type its size and whether it has a sign. */
static const struct type {
    const char *word;
    int dtype, bytes;
    bool is_signed;
} types[] = {{"_f64_", WEFT_K_F64, 8, true}, {"_f32_", WEFT_K_F32, 4, true},
             {"_bf16_", WEFT_K_BF16, 2, true}, {"_f16_", WEFT_K_F16, 2, true}, {"_i64_", WEFT_K_I64, 8, true},
             {"_i32_", WEFT_K_I32, 4, true}, {"_i16_", WEFT_K_I16, 2, true}, {"_i8_", WEFT_K_I8, 1, true},
             {"_u64_", WEFT_K_U64, 8, false}, {"_u32_", WEFT_K_U32, 4, false}, {"_u16_", WEFT_K_U16, 2, false},
             {"_u8_", WEFT_K_U8, 1, false}};

static const struct type *type_of(int dtype)
{
    const struct type *type = types;
    while (type->dtype != dtype)
        type++;
    return type;
}

static bool is_real(int dtype) { return dtype >= WEFT_K_F64 && dtype <= WEFT_K_F16; }
static struct weft_small small_of(int dtype) { return dtype == WEFT_K_BF16 ? weft_small_bf16 : weft_small_f16; }

struct shape {
    int64_t n, k, lines, in_line, out_line;
};

static double element(int dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case WEFT_K_F32: return (double)((const float *)data)[i];
    case WEFT_K_F64: return ((const double *)data)[i];
    case WEFT_K_BF16:
    case WEFT_K_F16: return (double)weft_small_widen(small_of(dtype), ((const uint16_t *)data)[i]);
    case WEFT_K_I64: return (double)((const int64_t *)data)[i];
    case WEFT_K_I32: return ((const int32_t *)data)[i];
    case WEFT_K_I16: return ((const int16_t *)data)[i];
    case WEFT_K_I8: return ((const int8_t *)data)[i];
    case WEFT_K_U64: return (double)((const uint64_t *)data)[i];
    case WEFT_K_U32: return ((const uint32_t *)data)[i];
    case WEFT_K_U16: return ((const uint16_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

/* A real number, or the low bytes of an integer. */
static void put(int dtype, void *data, int64_t i, double real, int64_t integer)
{
    switch (dtype) {
    case WEFT_K_F64: ((double *)data)[i] = real; break;
    case WEFT_K_F32: ((float *)data)[i] = (float)real; break;
    case WEFT_K_BF16:
    case WEFT_K_F16: ((uint16_t *)data)[i] = (uint16_t)weft_small_narrow(small_of(dtype), (float)real); break;
    default: memcpy((char *)data + i * type_of(dtype)->bytes, &integer, (size_t)type_of(dtype)->bytes); break;
    }
}

/* Few different values, so that there are ties; NaN and both zeros among floats. */
static void fill(struct weft_check *check, int dtype, void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = weft_check_between(check, type_of(dtype)->is_signed ? -9 : 0, 9);
        put(dtype, data, i, weft_check_between(check, 0, 60) == 0 ? (double)NAN : x ? (double)x : -0.0, x);
    }
}

/* Lines of numbers whose sums and products are exact however they are put together, and stay small. */
static void fill_long(struct weft_check *check, const struct weft_along *a, const struct shape *s, void *data)
{
    const bool real = is_real(a->dtype), is_signed = type_of(a->dtype)->is_signed;
    for (int64_t line = 0; line < s->lines; line++) {
        double before = 1;
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t at = line * s->in_line + i * a->in_step;
            const double sign = !is_signed || weft_check_between(check, 0, 1) ? 1 : -1;
            const double next = ldexp(1, (int)weft_check_between(check, -3, 3));
            const double x = a->op != WEFT_K_CUMPROD ? sign * (double)weft_check_between(check, 0, 9)
                                                     : real ? sign * next / before : sign;
            before = next;
            put(a->dtype, data, at, x, (int64_t)x);
        }
    }
}

/* a before b: NaN is the largest. */
static int compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return (a > b) - (a < b);
}

static int64_t wanted_arg(const struct weft_along *a, const void *in, int64_t base)
{
    int64_t at = 0;
    for (int64_t i = 1; i < a->n; i++) {
        const double x = element(a->dtype, in, base + i * a->in_step);
        const double best = element(a->dtype, in, base + at * a->in_step);
        int sign = compare(x, best);
        if (!isnan(x) && !isnan(best) && a->op == WEFT_K_ARG_MIN)
            sign = -sign;
        if (sign > 0 || (sign == 0 && a->last))
            at = i;
    }
    return at;
}

static void check_arg(struct weft_check *check, const struct weft_along *a, const struct shape *s, const void *in,
                      const int64_t *out)
{
    for (int64_t line = 0; line < s->lines; line++)
        if (out[line * s->out_line] != wanted_arg(a, in, line * s->in_line)) {
            weft_check_fail(check, "line %lld of %lld, %lld elements: %lld", (long long)line, (long long)s->lines,
                            (long long)s->n, (long long)out[line * s->out_line]);
            return;
        }
}

static double folded(int op, double a, double x)
{
    if (op == WEFT_K_CUMSUM || op == WEFT_K_CUMPROD)
        return op == WEFT_K_CUMSUM ? a + x : a * x;
    return isnan(a) || isnan(x) ? (double)NAN : op == WEFT_K_CUMMAX ? fmax(a, x) : fmin(a, x);
}

/* Integers wrap, floats of 16 bits are rounded once. */
static double stored(int dtype, double x)
{
    if (dtype == WEFT_K_BF16 || dtype == WEFT_K_F16)
        return (double)weft_small_widen(small_of(dtype), weft_small_narrow(small_of(dtype), weft_odd_f64(x)));
    const struct type *const type = type_of(dtype);
    const double range = ldexp(1, 8 * type->bytes), least = type->is_signed ? -range / 2 : 0;
    return is_real(dtype) ? x : x - floor((x - least) / range) * range;
}

static void check_scan(struct weft_check *check, const struct weft_along *a, const struct shape *s, const void *in,
                       const void *out)
{
    for (int64_t line = 0; line < s->lines && !weft_check_failed(check); line++) {
        double sum = 0;
        for (int64_t i = 0; i < a->n; i++) {
            const int64_t at = a->reverse ? a->n - 1 - i : i;
            const double x = element(a->dtype, in, line * s->in_line + at * a->in_step), before = sum;
            sum = i == 0 ? x : folded(a->op, sum, x);
            const double got = element(a->dtype, out, line * s->out_line + at * a->out_step);
            const double want = stored(a->dtype, a->exclusive ? before : sum);
            if (a->exclusive && i == 0)
                continue; /* the identity, which differs by type */
            const double bound = a->dtype == WEFT_K_F32 ? fabs(want) * 0x1p-23 : 0;
            if (!(isnan(want) && isnan(got)) && got != want && !(fabs(got - want) <= bound))
                weft_check_fail(check, "op %d, element %lld of line %lld: %.9g, should be %.9g", (int)a->op,
                                (long long)at, (long long)line, got, want);
        }
    }
}

/* In order, stable, and nothing that was left out comes before the last. */
static void check_order(struct weft_check *check, const struct weft_along *a, const struct shape *s, const void *in,
                        const void *out, const int64_t *index)
{
    for (int64_t line = 0; line < s->lines && !weft_check_failed(check); line++)
        for (int64_t i = 0; i < a->k; i++) {
            const int64_t at = index[line * s->out_line + i * a->index_step];
            const double x = element(a->dtype, in, line * s->in_line + at * a->in_step);
            int64_t before = 0; /* how many come before it */
            for (int64_t j = 0; j < a->n; j++) {
                int sign = compare(element(a->dtype, in, line * s->in_line + j * a->in_step), x);
                sign = a->descending ? -sign : sign;
                before += sign < 0 || (sign == 0 && j < at);
            }
            const double got = element(a->dtype, out, line * s->out_line + i * a->out_step);
            if ((a->by_index ? before >= a->k : before != i) || !(got == x || (isnan(got) && isnan(x))))
                weft_check_fail(check, "line %lld: place %lld of %lld has element %lld of %lld", (long long)line,
                                (long long)i, (long long)a->k, (long long)at, (long long)a->n);
        }
}

/* Products of floats have no prefixes in vectors, and no chunks. */
static int64_t scan_op(struct weft_check *check, bool no_products)
{
    const int64_t op = weft_check_between(check, WEFT_K_CUMSUM, WEFT_K_CUMMIN);
    return no_products && op == WEFT_K_CUMPROD ? WEFT_K_CUMSUM : op;
}

static void random_case(struct weft_check *check, const char *name, struct weft_along *a, struct shape *s)
{
    const bool arg = strstr(name, "_arg_"), prefix = strstr(name, "_prefix_"), top = strstr(name, "_top_");
    const bool scan = prefix || strstr(name, "_scan_");
    const bool rows = !scan ? weft_check_between(check, 0, 1) : prefix;
    const bool real = strstr(name, "_bf16_") || strstr(name, "_f16_") || strstr(name, "_f32_") || strstr(name, "_f64_");
    const struct type *type = types;
    while (!strstr(name, type->word))
        type++;
    s->n = weft_check_between(check, top ? 2 : 1, weft_check_between(check, 0, 5) ? 40 : arg ? 3000 : 700);
    s->n += prefix && s->n < 32 ? 32 : 0;
    s->lines = weft_check_between(check, scan && !prefix ? 2 : 1, 150);
    const bool split = scan && weft_check_between(check, 0, 3) == 0;
    if (split) { /* a line long enough to be cut, some of them by a last chunk that is shorter */
        s->n = weft_check_between(check, 2 << 13, 10 << 13);
        s->lines = weft_check_between(check, scan && !prefix ? 2 : 1, 3);
    }
    s->k = top ? weft_check_between(check, 0, s->n - 1) : s->n;
    s->in_line = rows ? s->n : 1;
    const int64_t results = arg ? 1 : s->k;
    s->out_line = rows ? results : 1;
    *a = (struct weft_along){
        .op = (enum weft_along_op)(arg    ? weft_check_between(check, WEFT_K_ARG_MAX, WEFT_K_ARG_MIN)
                                   : scan ? scan_op(check, real && (prefix || split))
                                          : WEFT_K_SORT),
        .dtype = (uint8_t)type->dtype,
        .split = split,
        .last = weft_check_between(check, 0, 1),
        .exclusive = weft_check_between(check, 0, 1),
        .reverse = weft_check_between(check, 0, 1),
        .descending = weft_check_between(check, 0, 1),
        .by_index = top && weft_check_between(check, 0, 1),
        .cpu = weft_check_cpu(check),
        .rank = 1,
        .n = s->n,
        .k = s->k,
        .in_step = rows ? 1 : s->lines,
        .out_step = rows ? 1 : s->lines,
        .index_step = rows ? 1 : s->lines,
        .extent = {s->lines},
        .in_stride = {s->in_line},
        .out_stride = {s->out_line},
        .index_stride = {s->out_line}};
    a->cache = weft_check_between(check, 0, 1) ? SIZE_MAX : 1; /* stored past it, or not */
    if (a->op == WEFT_K_CUMPROD && !a->split && !prefix) /* no overflow: the numbers are exact */
        a->n = s->n < 9 ? s->n : 9;
}

static void body(struct weft_check *check, const void *user)
{
    const char *const name = user;
    for (int i = 0; i < 60 && !weft_check_failed(check); i++) {
        struct weft_along plain, along;
        struct shape s;
        random_case(check, name, &plain, &s);
        along = plain;
        weft_along_prepare(&along, 4);
        if (strcmp(weft_along_name(&along), name) != 0)
            weft_check_fail(check, "a case for it runs %s", weft_along_name(&along));
        const bool arg = plain.op <= WEFT_K_ARG_MIN;
        const size_t bytes = (size_t)type_of(plain.dtype)->bytes;
        const size_t results = (size_t)(s.lines * (arg ? 1 : s.k));
        void *const in = weft_check_alloc(check, (size_t)(s.lines * s.n) * bytes);
        void *const out = weft_check_alloc(check, results * (arg ? 8 : bytes));
        int64_t *const index = weft_check_alloc(check, results * sizeof *index);
        void *const scratch = weft_check_alloc(check, along.scratch + 64);
        fill(check, plain.dtype, in, s.lines * s.n);
        const bool scan = plain.op >= WEFT_K_CUMSUM && plain.op <= WEFT_K_CUMMIN;
        if (scan && plain.n >= 32 && (plain.op == WEFT_K_CUMPROD || weft_check_between(check, 0, 2)))
            fill_long(check, &plain, &s, in);
        const bool rounds = scan && plain.dtype == WEFT_K_F32 && plain.op == WEFT_K_CUMSUM;
        if (rounds && weft_check_between(check, 0, 1))
            for (int64_t j = 0; j < s.lines * s.n; j++)
                ((float *)in)[j] = (float)weft_check_between(check, 0, 99) / 7;
        const int parts = (int)weft_check_between(check, 1, 4);
        void *const shared = weft_check_alloc(check, along.shared + 64);
        if (plain.split != (along.chunks > 1))
            weft_check_fail(check, "%lld elements are cut into %lld chunks", (long long)plain.n,
                            (long long)along.chunks);
        memset(shared, 0, along.shared);
        for (int part = parts - 1; part >= 0; part--)
            weft_along_run(&along, out, index, in, along.shared ? shared : scratch, part, parts);
        if (rounds) { /* the same bits at the baseline, in one part */
            struct weft_along base = plain;
            base.cpu = 0;
            weft_along_prepare(&base, 1);
            void *const again = weft_check_alloc(check, results * bytes);
            memset(shared, 0, along.shared);
            weft_along_run(&base, again, NULL, in, base.shared ? shared : scratch, 0, 1);
            weft_check_same(check, "at the baseline", out, again, s.lines * s.n);
        }
        if (arg)
            check_arg(check, &plain, &s, in, out);
        else if (plain.op == WEFT_K_SORT)
            check_order(check, &plain, &s, in, out, index);
        else
            check_scan(check, &plain, &s, in, out);
    }
}

void weft_check_along(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        weft_check_kernel(check, kernels[i].name, kernels[i].cpu, body, kernels[i].name);
}
