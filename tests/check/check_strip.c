/* SPDX-License-Identifier: Apache-2.0 */
/* check_strip.c: every elementwise kernel against a definition in wider arithmetic.
 *
 * A case is an op on operands of some length, with strides of any kind and data of any kind: right values, untouched
 * gaps, the baseline's bits, and the same bits in place. Functions of one f32 are also swept over a million bit
 * patterns spread evenly over all floats, with an offset from the seed: the baseline against the C library in double,
 * within the bound of the table below; the other levels against the baseline's bits. */
#include "kernels/check.h"
#include "kernels/strip/strip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST  1100 /* elements of a case */
#define SWEEP (1 << 20)
#define SLICE 4096

/* --- definitions of f32 ops --------------------------------------------------------------------------------------- */

static double d_neg(double x) { return -x; }
static double d_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double d_relu(double x) { return x > 0 || isnan(x) ? x : 0; }
static double d_rsqrt(double x) { return 1 / sqrt(x); }
static double d_recip(double x) { return 1 / x; }
static double d_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double d_gelu(double x) { return 0.5 * x * (x < 0 ? erfc(-x / sqrt(2)) : 1 + erf(x / sqrt(2))); }
static double d_gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }
static double d_silu(double x) { return x * d_sigmoid(x); }
static double d_unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double d_hard_swish(double x) { return x * d_unit(x / 6 + 0.5); }
static double d_leaky(double x, double p, double q) { return (void)q, x < 0 ? p * x : x; }
static double d_hard_sigmoid(double x, double p, double q) { return d_unit(p * x + q); }
static double d_clamp(double x, double p, double q) { return x < p ? p : x > q ? q : x; }
static double d_add(double x, double y) { return x + y; }
static double d_sub(double x, double y) { return x - y; }
static double d_mul(double x, double y) { return x * y; }
static double d_div(double x, double y) { return x / y; }
static double d_min(double x, double y) { return isnan(x) || isnan(y) ? (double)NAN : x < y ? x : y; }
static double d_max(double x, double y) { return isnan(x) || isnan(y) ? (double)NAN : x > y ? x : y; }
static double d_is_nan(double x) { return isnan(x); }
static double d_eq(double x, double y) { return x == y; }
static double d_ne(double x, double y) { return x != y; }
static double d_lt(double x, double y) { return x < y; }
static double d_le(double x, double y) { return x <= y; }
static double d_gt(double x, double y) { return x > y; }
static double d_ge(double x, double y) { return x >= y; }

static const struct definition {
    const char *op;
    double (*one)(double x), (*two)(double x, double y), (*tuned)(double x, double p, double q);
    double ulps, absolute, p, q;
} definitions[] = {
    {"abs", .one = fabs},
    {"neg", .one = d_neg},
    {"sign", .one = d_sign},
    {"relu", .one = d_relu},
    {"ceil", .one = ceil},
    {"floor", .one = floor},
    {"round", .one = rint},
    {"sqrt", .one = sqrt, .ulps = 0.5},
    {"rsqrt", .one = d_rsqrt, .ulps = 1.5},
    {"recip", .one = d_recip, .ulps = 0.5},
    {"exp", .one = exp, .ulps = 0.75},
    {"log", .one = log, .ulps = 0.9},
    {"sin", .one = sin, .ulps = 0.51},
    {"cos", .one = cos, .ulps = 0.51},
    {"tanh", .one = tanh, .ulps = 1.35},
    {"erf", .one = erf, .ulps = 1.35},
    {"sigmoid", .one = d_sigmoid, .ulps = 2.4},
    {"gelu", .one = d_gelu, .ulps = 2.7, .absolute = 3e-7},
    {"gelu.tanh", .one = d_gelu_tanh, .ulps = 4, .absolute = 5e-7},
    {"silu", .one = d_silu, .ulps = 2.9, .absolute = 0x1p-142},
    {"leaky_relu", .tuned = d_leaky, .ulps = 0.5, .p = 0.01f},
    {"hard_sigmoid", .tuned = d_hard_sigmoid, .ulps = 0.51, .p = 0.2f, .q = 0.5f},
    {"hard_swish", .one = d_hard_swish, .ulps = 2, .absolute = 4e-7},
    {"clamp", .tuned = d_clamp, .p = -0.75f, .q = 1.25f},
    {"add", .two = d_add, .ulps = 0.51},
    {"sub", .two = d_sub, .ulps = 0.51},
    {"mul", .two = d_mul, .ulps = 0.51},
    {"div", .two = d_div, .ulps = 0.51},
    {"pow", .two = pow, .ulps = 0.51},
    {"min", .two = d_min},
    {"max", .two = d_max},
    {"is_nan", .one = d_is_nan},
    {"eq", .two = d_eq},
    {"ne", .two = d_ne},
    {"lt", .two = d_lt},
    {"le", .two = d_le},
    {"gt", .two = d_gt},
    {"ge", .two = d_ge},
};

static const struct definition *definition_of(const char *op)
{
    for (size_t i = 0; i < sizeof definitions / sizeof definitions[0]; i++)
        if (!strcmp(definitions[i].op, op))
            return &definitions[i];
    return NULL;
}

static double defined(const struct definition *d, double x, double y)
{
    return d->one ? d->one(x) : d->two ? d->two(x, y) : d->tuned(x, d->p, d->q);
}

/* --- elements of any type ----------------------------------------------------------------------------------------- */

static int bytes_of(int dtype)
{
    static const int bytes[] = {0, 8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};
    return bytes[dtype];
}

/* A number with `exponent_bits` and `fraction` bits, sign in front. */
static double small_float(uint16_t bits, int exponent_bits, int fraction)
{
    const int top = (1 << exponent_bits) - 1, bias = top >> 1, e = bits >> fraction & top;
    const int f = bits & ((1 << fraction) - 1);
    const double size = e == top ? (f ? (double)NAN : (double)INFINITY)
                                 : ldexp(e ? f + (1 << fraction) : f, (e ? e : 1) - bias - fraction);
    return bits >> 15 ? -size : size;
}

/* x rounded to that many fraction bits, ties to even; from `limit` on infinite. */
static double round_small(double x, int least_exponent, int fraction, double limit)
{
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    const int e = ilogb(x) < least_exponent ? least_exponent : ilogb(x);
    return fabs(x) >= limit ? copysign((double)INFINITY, x) : ldexp(rint(ldexp(x, fraction - e)), e - fraction);
}

union element {
    double real;
    int64_t integer;
};

static bool is_real(int dtype) { return dtype >= WEFT_K_F64 && dtype <= WEFT_K_F16; }

static union element load(int dtype, const void *array, int64_t i)
{
    switch (dtype) {
    case WEFT_K_F64:
        return (union element){.real = ((const double *)array)[i]};
    case WEFT_K_F32:
        return (union element){.real = ((const float *)array)[i]};
    case WEFT_K_BF16:
        return (union element){.real = small_float(((const uint16_t *)array)[i], 8, 7)};
    case WEFT_K_F16:
        return (union element){.real = small_float(((const uint16_t *)array)[i], 5, 10)};
    case WEFT_K_I64:
        return (union element){.integer = ((const int64_t *)array)[i]};
    case WEFT_K_I32:
        return (union element){.integer = ((const int32_t *)array)[i]};
    case WEFT_K_I8:
        return (union element){.integer = ((const int8_t *)array)[i]};
    default:
        return (union element){.integer = ((const uint8_t *)array)[i]};
    }
}

static union element to_integer(double x, int dtype)
{
    const double top = dtype == WEFT_K_I64 ? 0x1p63 : 0x1p31;
    const int64_t most = dtype == WEFT_K_I64 ? INT64_MAX : INT32_MAX;
    return (union element){.integer = isnan(x) ? 0 : x >= top ? most : x <= -top ? -most - 1 : (int64_t)x};
}

static union element cast(int from, int to, union element x)
{
    if (to == WEFT_K_BOOL)
        return (union element){.integer = is_real(from) ? x.real != 0 : x.integer != 0};
    if (!is_real(to))
        return is_real(from)         ? to_integer(x.real, to)
               : to == WEFT_K_I32    ? (union element){.integer = (int32_t)(uint32_t)(uint64_t)x.integer}
               : from == WEFT_K_BOOL ? (union element){.integer = x.integer != 0}
                                     : x;
    if (!is_real(from) && to == WEFT_K_F32)
        return (union element){.real = (float)x.integer};
    const double value = is_real(from) ? x.real : (double)x.integer;
    switch (to) {
    case WEFT_K_F32:
        return (union element){.real = (float)value};
    case WEFT_K_BF16:
        return (union element){.real = round_small(value, -126, 7, 0x1.ffp127)};
    case WEFT_K_F16:
        return (union element){.real = round_small(value, -14, 10, 65520)};
    default:
        return (union element){.real = value};
    }
}

static int64_t on_integers(const char *op, int64_t x, int64_t y)
{
    static const char *const words[] = {"abs", "neg", "sign", "relu", "not", "add", "sub", "mul", "min", "max",
                                        "eq",  "ne",  "lt",   "le",   "gt",  "ge",  "and", "or",  "xor"};
    const uint64_t u = (uint64_t)x, v = (uint64_t)y;
    const int64_t results[] = {(int64_t)(x < 0 ? 0 - u : u),
                               (int64_t)(0 - u),
                               (x > 0) - (x < 0),
                               x > 0 ? x : 0,
                               x == 0,
                               (int64_t)(u + v),
                               (int64_t)(u - v),
                               (int64_t)(u * v),
                               x < y ? x : y,
                               x > y ? x : y,
                               x == y,
                               x != y,
                               x<y, x <= y, x>
                                   y,
                               x >= y,
                               x && y,
                               x || y,
                               !x != !y};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i], op))
            return results[i];
    return INT64_MIN;
}

/* --- one case ----------------------------------------------------------------------------------------------------- */

struct shape {
    const struct weft_strip_kernel *kernel;
    const struct definition *definition;  /* of an f32 op, else NULL */
    int inputs, dtype[1 + WEFT_K_MAX_IN]; /* result first */
};

static struct shape shape_of(const struct weft_strip_kernel *k)
{
    struct shape s = {.kernel = k, .dtype = {k->out_dtype, k->in_dtype, k->in_dtype, k->in_dtype}};
    static const char *const pairs[] = {"add", "sub", "mul", "div", "pow", "min", "max", "eq",
                                        "ne",  "lt",  "le",  "gt",  "ge",  "and", "or",  "xor"};
    s.inputs = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        s.inputs += !strcmp(pairs[i], k->op);
    if (!strcmp(k->op, "select"))
        s.inputs = 3, s.dtype[1] = WEFT_K_BOOL;
    else if (strcmp(k->op, "cast") != 0 && k->in_dtype == WEFT_K_F32)
        s.definition = definition_of(k->op);
    return s;
}

static void fill(struct weft_check *check, int dtype, void *array, int64_t n)
{
    const enum weft_check_fill kind = (enum weft_check_fill)weft_check_between(check, 0, WEFT_FILLS - 1);
    if (dtype == WEFT_K_F32) {
        weft_check_fill(check, array, n, kind);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = weft_check_random(check);
        const int64_t narrow = r >> 60 == 0 ? (int64_t)(r << 8) : (int64_t)(r % 9) - 4;
        if (dtype == WEFT_K_F64)
            ((double *)array)[i] = r >> 60 == 1 ? (double)NAN : ldexp((double)(int64_t)r, (int)(r % 90) - 80);
        else if (dtype == WEFT_K_I64)
            ((int64_t *)array)[i] = narrow;
        else if (dtype == WEFT_K_I32)
            ((int32_t *)array)[i] = (int32_t)(narrow >> (r >> 60 == 0 ? 32 : 0));
        else if (bytes_of(dtype) == 2)
            ((uint16_t *)array)[i] = (uint16_t)r;
        else
            ((uint8_t *)array)[i] = dtype == WEFT_K_BOOL ? r & 1 : (uint8_t)r;
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

static bool right(const struct shape *s, const struct weft_strip_args *args, int64_t i)
{
    union element x[WEFT_K_MAX_IN] = {{0}};
    for (int a = 0; a < s->inputs; a++)
        x[a] = load(s->dtype[1 + a], args->in[a], i * args->stride[1 + a]);
    const union element got = load(s->dtype[0], args->out, i * args->stride[0]);
    if (s->definition) {
        const double want = defined(s->definition, x[0].real, x[1].real);
        if (s->dtype[0] == WEFT_K_BOOL)
            return got.integer == (int64_t)want;
        return weft_check_ulps((float)got.real, want) <= s->definition->ulps ||
               fabs(got.real - want) <= s->definition->absolute;
    }
    union element want;
    if (s->inputs == 3)
        want = x[0].integer ? x[1] : x[2];
    else if (!strcmp(s->kernel->op, "cast"))
        want = cast(s->dtype[1], s->dtype[0], x[0]);
    else
        want.integer = on_integers(s->kernel->op, x[0].integer, x[1].integer);
    if (is_real(s->dtype[0]))
        return got.real == want.real || (isnan(got.real) && isnan(want.real));
    return got.integer == (s->dtype[0] == WEFT_K_I32 ? (int32_t)(uint32_t)(uint64_t)want.integer : want.integer);
}

static void check_bits(struct weft_check *check, const struct shape *s, const char *what, const void *got,
                       const void *want, int64_t n)
{
    if (s->dtype[0] == WEFT_K_F32)
        weft_check_same(check, what, got, want, n);
    else
        weft_check_same_bytes(check, what, got, want, (size_t)(n * bytes_of(s->dtype[0])));
}

static int64_t random_stride(struct weft_check *check, bool zero)
{
    static const int64_t strides[] = {1, 1, 1, 1, 2, 3, -1, -2, 0, 0};
    return strides[weft_check_between(check, 0, zero ? 9 : 7)];
}

static void check_case(struct weft_check *check, const struct shape *s, bool unit)
{
    const int64_t n =
        weft_check_between(check, 0, 3) ? weft_check_between(check, 0, 80) : weft_check_between(check, 0, MOST);
    struct weft_strip_args args = {.n = n};
    if (s->definition)
        args.param[0] = s->definition->p, args.param[1] = s->definition->q;
    char *base, *twin_base;
    for (int a = 0; a < s->inputs; a++) {
        const int64_t stride = args.stride[1 + a] = unit ? 1 : random_stride(check, true);
        void *const array = strided_array(check, s->dtype[1 + a], n, stride, &base);
        fill(check, s->dtype[1 + a], array, n ? (n - 1) * llabs(stride) + 1 : 0);
        args.in[a] = base;
    }
    const int64_t stride = args.stride[0] = unit ? 1 : random_stride(check, false);
    const int64_t reach = n ? (n - 1) * llabs(stride) + 1 : 0, bytes = reach * bytes_of(s->dtype[0]);
    char *const out = memset(strided_array(check, s->dtype[0], n, stride, &base), 0x5a, (size_t)bytes);
    char *const twin = memset(strided_array(check, s->dtype[0], n, stride, &twin_base), 0x5a, (size_t)bytes);
    args.out = base;
    s->kernel->fn(&args);
    for (int64_t i = 0; i < n; i++)
        if (!right(s, &args, i)) {
            const double x = is_real(s->dtype[1]) ? load(s->dtype[1], args.in[0], i * args.stride[1]).real : 0;
            const union element got = load(s->dtype[0], args.out, i * stride);
            weft_check_fail(check, "element %lld of %lld, strides %lld %lld %lld: wrong, %g from %.9g", (long long)i,
                            (long long)n, (long long)stride, (long long)args.stride[1], (long long)args.stride[2],
                            is_real(s->dtype[0]) ? got.real : (double)got.integer, x);
            return;
        }
    struct weft_strip_args other = args; /* by the baseline kernel: the same values, and the same gaps */
    other.out = twin_base;
    weft_strip_find(s->kernel->op, s->kernel->in_dtype, s->kernel->out_dtype, 0)->fn(&other);
    check_bits(check, s, "against the baseline", out, twin, reach);
    for (int a = 0; a < s->inputs; a++)
        if (args.stride[1 + a] == stride && bytes_of(s->dtype[1 + a]) == bytes_of(s->dtype[0])) {
            other = args;
            other.out = (void *)args.in[a];
            s->kernel->fn(&other);
            for (int64_t i = 0; i < n; i++) /* gaps of the operand are its own */
                check_bits(check, s, "in place", (char *)other.out + i * stride * bytes_of(s->dtype[0]),
                           (char *)args.out + i * stride * bytes_of(s->dtype[0]), 1);
            break;
        }
}

/* --- sweeps ------------------------------------------------------------------------------------------------------- */

static void sweep(struct weft_check *check, const struct shape *s)
{
    static float x[SLICE], y[SLICE], out[SLICE], base[SLICE];
    const struct weft_strip_kernel *const baseline = weft_strip_find(s->kernel->op, WEFT_K_F32, WEFT_K_F32, 0);
    struct weft_strip_args args = {
        .n = SLICE, .out = out, .in = {x, y}, .stride = {1, 1, 1}, .param = {s->definition->p, s->definition->q}};
    const uint32_t step = (uint32_t)(0x100000000u / SWEEP), offset = (uint32_t)weft_check_between(check, 0, step - 1);
    for (uint32_t start = 0; start < SWEEP && !weft_check_failed(check); start += SLICE) {
        for (uint32_t i = 0; i < SLICE; i++) {
            const uint32_t bits = (start + i) * step + offset;
            memcpy(&x[i], &bits, sizeof bits);
        }
        weft_check_fill(check, y, SLICE, start / SLICE % 2 ? WEFT_FILL_PLAIN : WEFT_FILL_BITS);
        args.out = out;
        s->kernel->fn(&args);
        if (s->kernel != baseline) {
            args.out = base;
            baseline->fn(&args);
            weft_check_same(check, "sweep against the baseline", out, base, SLICE);
            continue;
        }
        for (int i = 0; i < SLICE; i++) {
            const double want = defined(s->definition, x[i], y[i]), error = weft_check_ulps(out[i], want);
            if (error <= s->definition->ulps || fabs(out[i] - want) <= s->definition->absolute)
                continue;
            weft_check_fail(check, "of %a, %a: %a, should be %a: %.4g ULP off, %.3g allowed", x[i], y[i], out[i], want,
                            error, s->definition->ulps);
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

static void bench(struct weft_check *check, const struct shape *s)
{
    enum { N = 4096 };
    struct weft_strip_args args = {.n = N, .stride = {1, 1, 1, 1}};
    double bytes = 0;
    for (int a = 0; a <= s->inputs; a++)
        bytes += N * bytes_of(s->dtype[a]);
    for (int a = 0; a < s->inputs; a++) {
        void *const array = weft_check_alloc(check, (size_t)(N * bytes_of(s->dtype[1 + a])));
        fill(check, s->dtype[1 + a], array, N);
        if (s->dtype[1 + a] == WEFT_K_F32)
            weft_check_fill(check, array, N, WEFT_FILL_PLAIN);
        args.in[a] = array;
    }
    args.out = weft_check_alloc(check, (size_t)(N * bytes_of(s->dtype[0])));
    const void *pair[2] = {&args, s->kernel};
    weft_check_bench(check, "4096 elements in L1", bytes, "GB/s", run_timed, pair);
}

static void body(struct weft_check *check, const void *user)
{
    const struct shape s = shape_of(user);
    if (!s.definition && s.inputs < 3 && is_real(s.dtype[1]) && strcmp(s.kernel->op, "cast") != 0) {
        weft_check_fail(check, "op %s has no definition", s.kernel->op);
        return;
    }
    for (int i = 0; i < 80 && !weft_check_failed(check); i++)
        check_case(check, &s, i % 2);
    if (s.definition && s.dtype[0] == WEFT_K_F32)
        sweep(check, &s);
    if (weft_check_benching(check))
        bench(check, &s);
}

void weft_check_strip(struct weft_check *check)
{
    const struct weft_strip_kernel *k;
    for (unsigned i = 0; (k = weft_strip_at(i)); i++)
        weft_check_kernel(check, k->name, k->cpu, body, k);
}
