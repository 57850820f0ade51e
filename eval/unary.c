/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c: elementwise ops of one operand. NaN operands give NaN; rounding is half to even; logarithms and roots
 * of negative numbers are NaN. What has coefficients is in activation.c. */
#include "eval/activation.h"

#include <math.h>

static double sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

/* Neither overflows for large x nor loses the digits of exp(x) for small ones. */
static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) + (isnan(x) ? x : 0); }

static double exponential(int op, double x)
{
    switch (op) {
    case WEFT_OP_exp: return exp(x);
    case WEFT_OP_exp2: return exp2(x);
    case WEFT_OP_expm1: return expm1(x);
    case WEFT_OP_log: return log(x);
    case WEFT_OP_log2: return log2(x);
    case WEFT_OP_log10: return log10(x);
    case WEFT_OP_log1p: return log1p(x);
    case WEFT_OP_sinh: return sinh(x);
    case WEFT_OP_cosh: return cosh(x);
    case WEFT_OP_tanh: return tanh(x);
    case WEFT_OP_asinh: return asinh(x);
    case WEFT_OP_acosh: return acosh(x);
    case WEFT_OP_atanh: return atanh(x);
    case WEFT_OP_erf: return erf(x);
    case WEFT_OP_erfc: return erfc(x);
    case WEFT_OP_sigmoid: return sigmoid(x);
    case WEFT_OP_softplus: return softplus(x);
    case WEFT_OP_log_sigmoid: return -softplus(-x);
    case WEFT_OP_silu: return x * sigmoid(x);
    case WEFT_OP_mish: return x * tanh(softplus(x));
    default: return weft_eval_no_rule(op);
    }
}

double weft_real_apply(int op, double x, const struct weft_activation *activation)
{
    switch (op) {
    case WEFT_OP_abs: return fabs(x);
    case WEFT_OP_neg: return -x;
    case WEFT_OP_sign: return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
    case WEFT_OP_relu: return x > 0 || isnan(x) ? x : 0;
    case WEFT_OP_ceil: return ceil(x);
    case WEFT_OP_floor: return floor(x);
    case WEFT_OP_round: return nearbyint(x);
    case WEFT_OP_trunc: return trunc(x);
    case WEFT_OP_sqrt: return sqrt(x);
    case WEFT_OP_rsqrt: return 1 / sqrt(x);
    case WEFT_OP_recip: return 1 / x;
    case WEFT_OP_sin: return sin(x);
    case WEFT_OP_cos: return cos(x);
    case WEFT_OP_tan: return tan(x);
    case WEFT_OP_asin: return asin(x);
    case WEFT_OP_acos: return acos(x);
    case WEFT_OP_atan: return atan(x);
    case WEFT_OP_softsign: return x / (1 + fabs(x));
    case WEFT_OP_gelu: case WEFT_OP_swish: case WEFT_OP_leaky_relu: case WEFT_OP_thresholded_relu: case WEFT_OP_shrink:
    case WEFT_OP_elu: case WEFT_OP_celu: case WEFT_OP_selu: case WEFT_OP_hard_sigmoid: case WEFT_OP_hard_swish:
    case WEFT_OP_clamp: return weft_activation_apply(op, x, activation);
    default: return exponential(op, x);
    }
}

/* A bound in the integers of a dtype: the nearest integer inside the range that it bounds, or the end of the type. */
static union weft_number integer_bound(int dtype, double bound, bool is_low)
{
    const int bits = (int)weft_dtype_bits(dtype);
    const bool has_sign = weft_dtype_is_signed(dtype);
    const double least = has_sign ? -ldexp(1, bits - 1) : 0, past = ldexp(1, has_sign ? bits - 1 : bits);
    const double whole = is_low ? ceil(bound) : floor(bound);
    if (whole <= least)
        return (union weft_number){.integer = has_sign ? (int64_t)least : 0};
    if (whole >= past)
        return (union weft_number){.bits = (UINT64_MAX >> (64 - bits)) >> has_sign};
    return has_sign ? (union weft_number){.integer = (int64_t)whole} : (union weft_number){.bits = (uint64_t)whole};
}

static bool is_less(int dtype, union weft_number a, union weft_number b)
{
    return dtype == WEFT_U64 ? a.bits < b.bits : a.integer < b.integer;
}

static union weft_number clamp_integer(int dtype, union weft_number x, const struct weft_activation *p)
{
    if (p->has_low) {
        const union weft_number low = integer_bound(dtype, p->low, true);
        x = is_less(dtype, x, low) ? low : x;
    }
    if (p->has_high) {
        const union weft_number high = integer_bound(dtype, p->high, false);
        x = is_less(dtype, high, x) ? high : x;
    }
    return x;
}

static union weft_number apply_integer(int op, int dtype, union weft_number x, const struct weft_activation *p)
{
    const bool negative = dtype != WEFT_U64 && x.integer < 0;
    switch (op) {
    case WEFT_OP_abs: return (union weft_number){.bits = negative ? 0 - x.bits : x.bits};
    case WEFT_OP_neg: return (union weft_number){.bits = 0 - x.bits};
    case WEFT_OP_sign: return (union weft_number){.integer = negative ? -1 : x.bits != 0};
    case WEFT_OP_relu: return (union weft_number){.bits = negative ? 0 : x.bits};
    case WEFT_OP_not: return (union weft_number){.integer = x.bits == 0};
    case WEFT_OP_bit_not: return (union weft_number){.bits = ~x.bits};
    case WEFT_OP_clamp: return clamp_integer(dtype, x, p);
    default: return (union weft_number){.real = weft_eval_no_rule(op)};
    }
}

static void apply(int op, int dtype, int64_t n, union weft_number *x, const struct weft_activation *p)
{
    if (op == WEFT_OP_is_nan)
        for (int64_t i = 0; i < n; i++)
            x[i].integer = isnan(x[i].real) != 0;
    else if (op == WEFT_OP_is_inf)
        for (int64_t i = 0; i < n; i++)
            x[i].integer = isinf(x[i].real) && (x[i].real > 0 ? p->positive : p->negative);
    else if (weft_dtype_is_float(dtype))
        for (int64_t i = 0; i < n; i++)
            x[i].real = weft_real_apply(op, x[i].real, p);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = apply_integer(op, dtype, x[i], p);
}

void weft_eval_unary(struct weft_eval *eval)
{
    const int op = weft_eval_op(eval);
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct weft_activation p = weft_activation_read(eval);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(in, walk.place[1] + i * walk.step[1], walk.step[1], n, x);
            apply(op, in->dtype, n, x, &p);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], walk.step[0], n, x);
        }
}
