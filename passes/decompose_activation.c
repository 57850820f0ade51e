/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_activation.c: the rules of decompose for elementwise composites.
 *
 *   gelu form=erf    x * 0.5 * (1 + erf(x / sqrt 2))
 *   gelu form=tanh   x * sigmoid(2 u), u = sqrt(2/π) * (x + 0.044715 x³): the same as 0.5 x (1 + tanh u), with fewer
 *                    steps and without the cancellation of 1 + tanh u for negative x
 *   silu             x * sigmoid(x)
 *   swish            x * sigmoid(alpha * x)
 *   mish             x * tanh(softplus(x))
 *   softsign         x / (1 + |x|)
 *   log_sigmoid      -softplus(-x)
 *   hard_sigmoid     min(max(alpha * x + beta, 0), 1)
 *   hard_swish       x * hard_sigmoid(x) with alpha 1/6, beta 1/2
 *   clamp            min(max(x, low), high), leaving out what is not given */
#include "passes/decompose.h"

#include <math.h>
#include <string.h>

static weft_val gelu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    weft_val gate;
    if (strcmp(weft_attr_word(r->graph, n, WEFT_ATTR_form), "tanh") == 0) {
        const double linear = 2 * 0.797884560802865355880; /* 2 sqrt(2/π) */
        const weft_val square = weft_chain_apply(&c, WEFT_OP_mul, c.x, c.x);
        const weft_val cubic = weft_chain_with(&c, WEFT_OP_mul, square, linear * 0.044715);
        const weft_val slope = weft_chain_with(&c, WEFT_OP_add, cubic, linear);
        gate = weft_build_unary(c.b, WEFT_OP_sigmoid, weft_chain_apply(&c, WEFT_OP_mul, slope, c.x));
    } else {
        const weft_val scaled = weft_chain_with(&c, WEFT_OP_mul, c.x, 0.707106781186547524401);
        const weft_val error = weft_build_unary(c.b, WEFT_OP_erf, scaled);
        gate = weft_chain_with(&c, WEFT_OP_mul, weft_chain_with(&c, WEFT_OP_add, error, 1), 0.5);
    }
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_mul, c.x, gate));
}

static weft_val silu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val gate = weft_build_unary(c.b, WEFT_OP_sigmoid, c.x);
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_mul, c.x, gate));
}

static weft_val swish(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val scaled = weft_chain_with(&c, WEFT_OP_mul, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    const weft_val gate = weft_build_unary(c.b, WEFT_OP_sigmoid, scaled);
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_mul, c.x, gate));
}

static weft_val mish(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val gate = weft_build_unary(c.b, WEFT_OP_tanh, weft_build_unary(c.b, WEFT_OP_softplus, c.x));
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_mul, c.x, gate));
}

static weft_val softsign(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val size = weft_chain_with(&c, WEFT_OP_add, weft_build_unary(c.b, WEFT_OP_abs, c.x), 1);
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_div, c.x, size));
}

static weft_val log_sigmoid(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val loss = weft_build_unary(c.b, WEFT_OP_softplus, weft_build_unary(c.b, WEFT_OP_neg, c.x));
    return weft_chain_end(r, n, &c, weft_build_unary(c.b, WEFT_OP_neg, loss));
}

static weft_val clamped(struct weft_chain *c, weft_val x, double low, double high)
{
    return weft_chain_with(c, WEFT_OP_min, weft_chain_with(c, WEFT_OP_max, x, low), high);
}

static weft_val hard_sigmoid(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val scaled = weft_chain_with(&c, WEFT_OP_mul, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    const weft_val moved = weft_chain_with(&c, WEFT_OP_add, scaled, weft_attr_real(r->graph, n, WEFT_ATTR_beta));
    return weft_chain_end(r, n, &c, clamped(&c, moved, 0, 1));
}

static weft_val hard_swish(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val scaled = weft_chain_with(&c, WEFT_OP_mul, c.x, 1.0 / 6);
    const weft_val gate = clamped(&c, weft_chain_with(&c, WEFT_OP_add, scaled, 0.5), 0, 1);
    return weft_chain_end(r, n, &c, weft_chain_apply(&c, WEFT_OP_mul, c.x, gate));
}

/* A bound in the elements of a type. Bounds are real numbers: those of integers are rounded inwards, and stop at
 * the type's ends. */
static weft_val bound(struct weft_builder *b, const struct weft_type *type, double value, bool is_low)
{
    if (weft_dtype_is_float(type->dtype))
        return weft_build_splat(b, type, value);
    const int bits = (int)weft_dtype_bits(type->dtype);
    const bool has_sign = weft_dtype_is_signed(type->dtype);
    const double least = has_sign ? -ldexp(1, bits - 1) : 0, past = ldexp(1, has_sign ? bits - 1 : bits);
    const double whole = is_low ? ceil(value) : floor(value);
    int64_t element;
    if (whole <= least)
        element = has_sign ? (int64_t)least : 0;
    else if (whole >= past)
        element = (int64_t)(UINT64_MAX >> (64 - bits) >> has_sign);
    else
        element = has_sign ? (int64_t)whole : (int64_t)(uint64_t)whole;
    int64_t packed = 0;
    weft_store_integer(type->dtype, &packed, 0, element);
    return weft_build_number(b, type, &packed);
}

static weft_val clamp(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_attr *low = weft_attr_find(g, n, WEFT_ATTR_low), *high = weft_attr_find(g, n, WEFT_ATTR_high);
    if ((!low && !high) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE; /* without bounds: canonicalize.clamp_wide */
    weft_val x = weft_operand(g, n, 0);
    const struct weft_type type = *weft_type_of(g, x);
    if (low)
        x = weft_build_binary(&r->build, WEFT_OP_max, x, bound(&r->build, &type, low->real, true));
    if (high)
        x = weft_build_binary(&r->build, WEFT_OP_min, x, bound(&r->build, &type, high->real, false));
    return x;
}

static const struct weft_rule rules[] = {
    {"gelu",         WEFT_OP_gelu,         gelu,         "x times a gate"},
    {"silu",         WEFT_OP_silu,         silu,         "x * sigmoid(x)"},
    {"swish",        WEFT_OP_swish,        swish,        "x * sigmoid(alpha * x)"},
    {"mish",         WEFT_OP_mish,         mish,         "x * tanh(softplus(x))"},
    {"softsign",     WEFT_OP_softsign,     softsign,     "x / (1 + |x|)"},
    {"log_sigmoid",  WEFT_OP_log_sigmoid,  log_sigmoid,  "-softplus(-x)"},
    {"hard_sigmoid", WEFT_OP_hard_sigmoid, hard_sigmoid, "alpha * x + beta between 0 and 1"},
    {"hard_swish",   WEFT_OP_hard_swish,   hard_swish,   "x times (x / 6 + 1/2 between 0 and 1)"},
    {"clamp",        WEFT_OP_clamp,        clamp,        "min(max(x, low), high)"},
};
const struct weft_rule_set weft_decompose_activations = WEFT_RULE_SET(rules);
