/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c: elementwise ops of one operand: the rules that the rows of unary.def become. */
#include "eval/activation.h"
#include "eval/types.h"

#include <math.h>
#include <string.h>

#define ROOT_HALF      0.70710678118654752440
#define ROOT_2_OVER_PI 0.79788456080286535588

/* --- what rows are written with ----------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

/* Neither overflows for large x nor loses the digits of exp(x) for small ones. */
static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) + (isnan(x) ? x : 0); }

/* fmin and fmax lose a NaN; these keep it. */
static double at_most(double x, double bound) { return x > bound ? bound : x; }
static double at_least(double x, double bound) { return x < bound ? bound : x; }

static double gelu(double x, bool by_tanh)
{
    if (by_tanh) /* (1 + tanh u) / 2 as 1 / (1 + exp(-2 u)), for the same reason as below */
        return x / (1 + exp(-2 * ROOT_2_OVER_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x * ROOT_HALF); /* 1 + erf would cancel for x well below 0 */
}

/* Where the bounds cross, the upper one wins. */
static double clamp(double x, const struct weft_activation *p)
{
    x = p->has_low ? at_least(x, p->low) : x;
    return p->has_high ? at_most(x, p->high) : x;
}

/* All bits of a negative integer's, none of another one's: what takes the place of a branch that nobody can foresee. */
static uint64_t signs(int dtype, union weft_number x)
{
    return (uint64_t)(x.integer >> 63) & -(uint64_t)(dtype != WEFT_U64);
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

static union weft_number clamp_integer(int dtype, union weft_number x, const struct weft_activation *p)
{
    if (p->has_low) {
        const union weft_number low = integer_bound(dtype, p->low, true);
        x = weft_eval_less(dtype, x, low) ? low : x;
    }
    if (p->has_high) {
        const union weft_number high = integer_bound(dtype, p->high, false);
        x = weft_eval_less(dtype, high, x) ? high : x;
    }
    return x;
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static struct weft_activation read_activation(const struct weft_eval *eval)
{
    struct weft_activation p = {0};
    const struct {
        int key;
        double *real;
    } reals[] = {{WEFT_ATTR_alpha, &p.alpha}, {WEFT_ATTR_beta, &p.beta},     {WEFT_ATTR_gamma, &p.gamma},
                 {WEFT_ATTR_bias, &p.bias},   {WEFT_ATTR_lambda, &p.lambda}, {WEFT_ATTR_low, &p.low},
                 {WEFT_ATTR_high, &p.high}};
    const int op = weft_eval_op(eval);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        const struct weft_attr_spec *spec = weft_attr_spec_find(op, reals[i].key);
        const struct weft_attr *attr = spec ? weft_attr_find(eval->graph, eval->node, reals[i].key) : NULL;
        if (spec)
            *reals[i].real = attr ? attr->real : spec->fallback;
        p.has_low |= attr && reals[i].key == WEFT_ATTR_low && !isnan(attr->real);
        p.has_high |= attr && reals[i].key == WEFT_ATTR_high && !isnan(attr->real);
    }
    p.by_tanh = op == WEFT_OP_gelu && strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form), "tanh") == 0;
    p.negative = op == WEFT_OP_is_inf && weft_eval_int(eval, WEFT_ATTR_negative) != 0;
    p.positive = op == WEFT_OP_is_inf && weft_eval_int(eval, WEFT_ATTR_positive) != 0;
    return p;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* A row's function over n elements of one type. */
typedef void strip_fn(int dtype, int64_t n, union weft_number *x, const struct weft_activation *p);

static void each(struct weft_eval *eval, strip_fn *apply)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct weft_activation p = read_activation(eval);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(in, walk.place[1] + i * walk.step[1], walk.step[1], n, x);
            apply(in->dtype, n, x, &p);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], walk.step[0], n, x);
        }
}

/* What each row is made of: an expression as a function, a loop over a strip, and the rule. */
#define REAL_FN(op, of_reals) \
    static double real_##op(double x, const struct weft_activation *p) { return of_reals; }
#define WHOLE_FN(op, of_wholes) \
    static uint64_t whole_##op(int dtype, union weft_number x, const struct weft_activation *p) { return of_wholes; }
#define FOR_EACH(to, value) \
    for (int64_t i = 0; i < n; i++) \
        x[i].to = value
#define RULE(op, loops) \
    static void strip_##op(int dtype, int64_t n, union weft_number *x, const struct weft_activation *p) { loops; } \
    void weft_eval_##op(struct weft_eval *eval) { each(eval, strip_##op); }

#define NUMERIC(op, of_reals, of_wholes) \
    WEFT_ROW_TAKES(op, numeric) REAL_FN(op, of_reals) WHOLE_FN(op, of_wholes) \
    RULE(op, if (weft_dtype_is_float(dtype)) FOR_EACH(real, real_##op(x[i].real, p)); \
             else FOR_EACH(bits, whole_##op(dtype, x[i], p)))
#define REAL(op, of_reals) \
    WEFT_ROW_TAKES(op, real) REAL_FN(op, of_reals) RULE(op, FOR_EACH(real, real_##op(x[i].real, p)))
#define INTEGER(op, of_wholes) \
    WEFT_ROW_TAKES(op, integer) WHOLE_FN(op, of_wholes) RULE(op, FOR_EACH(bits, whole_##op(dtype, x[i], p)))
#define LOGIC(op, of_wholes) \
    WEFT_ROW_TAKES(op, logic) WHOLE_FN(op, of_wholes) RULE(op, FOR_EACH(bits, whole_##op(dtype, x[i], p)))
#define TEST(op, holds) \
    WEFT_ROW_TAKES(op, test) REAL_FN(op, holds) RULE(op, FOR_EACH(integer, real_##op(x[i].real, p) != 0))
#include "eval/unary.def"

weft_real_fn *weft_real_of(int op)
{
    static weft_real_fn *const fn[WEFT_OP_COUNT] = {
#define NUMERIC(op, of_reals, of_wholes) [WEFT_OP_##op] = real_##op,
#define REAL(op, of_reals) [WEFT_OP_##op] = real_##op,
#define INTEGER(op, of_wholes)
#define LOGIC(op, of_wholes)
#define TEST(op, holds)
#include "eval/unary.def"
    };
    return fn[op];
}
