/* SPDX-License-Identifier: Apache-2.0 */
/* eval_unary.c: elementwise ops of one operand. NaN operands give NaN; rounding is half to even; logarithms and roots
 * of negative numbers are NaN. */
#include "ir/eval.h"

#include <math.h>
#include <string.h>

#define ROOT_HALF      0.70710678118654752440
#define ROOT_2_OVER_PI 0.79788456080286535588

static double sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

/* fmin and fmax lose a NaN; these keep it. */
static double at_most(double x, double bound) { return x > bound ? bound : x; }
static double at_least(double x, double bound) { return x < bound ? bound : x; }

static double gelu(double x, bool by_tanh)
{
    if (by_tanh)
        return 0.5 * x * (1 + tanh(ROOT_2_OVER_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x * ROOT_HALF); /* 1 + erf would cancel for x well below 0 */
}

struct parameters {
    double alpha, beta;
    bool by_tanh;
    bool has_low, has_high;
    double low, high;
};

static double apply_real(int op, double x, const struct parameters *p)
{
    switch (op) {
    case WEFT_OP_abs: return fabs(x);
    case WEFT_OP_neg: return -x;
    case WEFT_OP_sign: return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
    case WEFT_OP_relu: return x > 0 || isnan(x) ? x : 0;
    case WEFT_OP_ceil: return ceil(x);
    case WEFT_OP_floor: return floor(x);
    case WEFT_OP_round: return nearbyint(x);
    case WEFT_OP_sqrt: return sqrt(x);
    case WEFT_OP_rsqrt: return 1 / sqrt(x);
    case WEFT_OP_recip: return 1 / x;
    case WEFT_OP_exp: return exp(x);
    case WEFT_OP_log: return log(x);
    case WEFT_OP_sin: return sin(x);
    case WEFT_OP_cos: return cos(x);
    case WEFT_OP_tanh: return tanh(x);
    case WEFT_OP_erf: return erf(x);
    case WEFT_OP_sigmoid: return sigmoid(x);
    case WEFT_OP_gelu: return gelu(x, p->by_tanh);
    case WEFT_OP_silu: return x * sigmoid(x);
    case WEFT_OP_leaky_relu: return x < 0 ? p->alpha * x : x;
    case WEFT_OP_hard_sigmoid: return at_least(at_most(p->alpha * x + p->beta, 1), 0);
    case WEFT_OP_hard_swish: return x * at_least(at_most(x / 6 + 0.5, 1), 0);
    default: /* clamp: where the bounds cross, the upper one wins */
        x = p->has_low ? at_least(x, p->low) : x;
        return p->has_high ? at_most(x, p->high) : x;
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

static union weft_number clamp_integer(int dtype, union weft_number x, const struct parameters *p)
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

static union weft_number apply_integer(int op, int dtype, union weft_number x, const struct parameters *p)
{
    const bool negative = dtype != WEFT_U64 && x.integer < 0;
    switch (op) {
    case WEFT_OP_abs: return (union weft_number){.bits = negative ? 0 - x.bits : x.bits};
    case WEFT_OP_neg: return (union weft_number){.bits = 0 - x.bits};
    case WEFT_OP_sign: return (union weft_number){.integer = negative ? -1 : x.bits != 0};
    case WEFT_OP_relu: return (union weft_number){.bits = negative ? 0 : x.bits};
    case WEFT_OP_not: return (union weft_number){.integer = x.bits == 0};
    default: return clamp_integer(dtype, x, p);
    }
}

static void apply(int op, int dtype, int64_t n, union weft_number *x, const struct parameters *p)
{
    if (op == WEFT_OP_is_nan)
        for (int64_t i = 0; i < n; i++)
            x[i].integer = isnan(x[i].real) != 0;
    else if (weft_dtype_is_float(dtype))
        for (int64_t i = 0; i < n; i++)
            x[i].real = apply_real(op, x[i].real, p);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = apply_integer(op, dtype, x[i], p);
}

static struct parameters read_parameters(const struct weft_eval *eval, int op)
{
    const struct weft_graph *graph = eval->graph;
    struct parameters p = {0};
    if (op == WEFT_OP_leaky_relu || op == WEFT_OP_hard_sigmoid)
        p.alpha = weft_attr_real(graph, eval->node, WEFT_ATTR_alpha);
    if (op == WEFT_OP_hard_sigmoid)
        p.beta = weft_attr_real(graph, eval->node, WEFT_ATTR_beta);
    if (op == WEFT_OP_gelu)
        p.by_tanh = strcmp(weft_attr_word(graph, eval->node, WEFT_ATTR_form), "tanh") == 0;
    if (op == WEFT_OP_clamp) {
        const struct weft_attr *low = weft_attr_find(graph, eval->node, WEFT_ATTR_low);
        const struct weft_attr *high = weft_attr_find(graph, eval->node, WEFT_ATTR_high);
        p.has_low = low && !isnan(low->real);
        p.has_high = high && !isnan(high->real);
        p.low = low ? low->real : 0;
        p.high = high ? high->real : 0;
    }
    return p;
}

void weft_eval_unary(struct weft_eval *eval)
{
    const int op = weft_eval_op(eval);
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct parameters p = read_parameters(eval, op);
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
