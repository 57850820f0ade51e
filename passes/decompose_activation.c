/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_activation.c: the rules of decompose for elementwise composites.
 *
 *   gelu form=erf    x * 0.5 * (1 + erf(x / sqrt 2))
 *   gelu form=tanh   x * sigmoid(2 u), u = sqrt(2/π) * (x + 0.044715 x³): the same as 0.5 x (1 + tanh u), with fewer
 *                    steps and without the cancellation of 1 + tanh u for negative x
 *   silu             x * sigmoid(x)
 *   leaky_relu       select(x < 0, alpha * x, x): exact, and NaN stays NaN
 *   hard_sigmoid     min(max(alpha * x + beta, 0), 1)
 *   hard_swish       x * hard_sigmoid(x) with alpha 1/6, beta 1/2
 *   clamp            min(max(x, low), high), leaving out what is not given */
#include "passes/passes.h"

#include <math.h>
#include <string.h>

/* All steps of an activation have one type, and its constants are uniform. */
struct chain {
    struct weft_builder *b;
    struct weft_type type;
    weft_val x;
};

static bool begin(struct weft_rewriting *r, weft_node n, struct chain *c)
{
    if (!weft_rewrite_begin(r))
        return false;
    c->b = &r->build;
    c->x = weft_widen(c->b, weft_operand(r->graph, n, 0));
    c->type = *weft_type_of(r->graph, c->x);
    return true;
}

static weft_val end(struct weft_rewriting *r, weft_node n, struct chain *c, weft_val value)
{
    return weft_narrow(c->b, value, weft_type_of(r->graph, weft_result(r->graph, n, 0))->dtype);
}

static weft_val number(struct chain *c, double value) { return weft_build_splat(c->b, &c->type, value); }
static weft_val apply(struct chain *c, int op, weft_val x, weft_val y) { return weft_build_binary(c->b, op, x, y); }
static weft_val with(struct chain *c, int op, weft_val x, double value) { return apply(c, op, x, number(c, value)); }

static weft_val gelu(struct weft_rewriting *r, weft_node n)
{
    struct chain c;
    if (!begin(r, n, &c))
        return WEFT_NO_VALUE;
    weft_val gate;
    if (strcmp(weft_attr_word(r->graph, n, WEFT_ATTR_form), "tanh") == 0) {
        const double linear = 2 * 0.797884560802865355880; /* 2 sqrt(2/π) */
        const weft_val square = apply(&c, WEFT_OP_mul, c.x, c.x);
        const weft_val slope = with(&c, WEFT_OP_add, with(&c, WEFT_OP_mul, square, linear * 0.044715), linear);
        gate = weft_build_unary(c.b, WEFT_OP_sigmoid, apply(&c, WEFT_OP_mul, slope, c.x));
    } else {
        const weft_val error = weft_build_unary(c.b, WEFT_OP_erf, with(&c, WEFT_OP_mul, c.x, 0.707106781186547524401));
        gate = with(&c, WEFT_OP_mul, with(&c, WEFT_OP_add, error, 1), 0.5);
    }
    return end(r, n, &c, apply(&c, WEFT_OP_mul, c.x, gate));
}

static weft_val silu(struct weft_rewriting *r, weft_node n)
{
    struct chain c;
    if (!begin(r, n, &c))
        return WEFT_NO_VALUE;
    return end(r, n, &c, apply(&c, WEFT_OP_mul, c.x, weft_build_unary(c.b, WEFT_OP_sigmoid, c.x)));
}

static weft_val leaky_relu(struct weft_rewriting *r, weft_node n)
{
    struct chain c;
    if (!begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val negative = with(&c, WEFT_OP_lt, c.x, 0);
    const weft_val scaled = with(&c, WEFT_OP_mul, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    const weft_val operand[] = {negative, scaled, c.x};
    return end(r, n, &c, weft_build(c.b, WEFT_OP_select, 3, operand, 0, NULL, NULL));
}

static weft_val clamped(struct chain *c, weft_val x, double low, double high)
{
    return with(c, WEFT_OP_min, with(c, WEFT_OP_max, x, low), high);
}

static weft_val hard_sigmoid(struct weft_rewriting *r, weft_node n)
{
    struct chain c;
    if (!begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val scaled = with(&c, WEFT_OP_mul, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    return end(r, n, &c, clamped(&c, with(&c, WEFT_OP_add, scaled, weft_attr_real(r->graph, n, WEFT_ATTR_beta)), 0, 1));
}

static weft_val hard_swish(struct weft_rewriting *r, weft_node n)
{
    struct chain c;
    if (!begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val gate = clamped(&c, with(&c, WEFT_OP_add, with(&c, WEFT_OP_mul, c.x, 1.0 / 6), 0.5), 0, 1);
    return end(r, n, &c, apply(&c, WEFT_OP_mul, c.x, gate));
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
        return WEFT_NO_VALUE; /* without bounds: canonicalize.clamp_open */
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
    {"leaky_relu",   WEFT_OP_leaky_relu,   leaky_relu,   "alpha * x where x < 0, else x"},
    {"hard_sigmoid", WEFT_OP_hard_sigmoid, hard_sigmoid, "alpha * x + beta between 0 and 1"},
    {"hard_swish",   WEFT_OP_hard_swish,   hard_swish,   "x times (x / 6 + 1/2 between 0 and 1)"},
    {"clamp",        WEFT_OP_clamp,        clamp,        "min(max(x, low), high)"},
};
const struct weft_rule_set weft_decompose_activations = WEFT_RULE_SET(rules);
