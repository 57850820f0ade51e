/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_pieces.c: the rules of decompose for functions that are one thing below a bound and another above.
 *
 *   leaky_relu         select(x < 0, alpha * x, x)
 *   prelu              select(x < 0, x * slope, x)
 *   thresholded_relu   select(x > alpha, x, 0)
 *   shrink             select(x < -lambda, x + bias, select(x > lambda, x - bias, 0))
 *   elu                select(x < 0, alpha * expm1(x), x)
 *   celu               select(x < 0, alpha * expm1(x / alpha), x)
 *   selu               gamma * select(x < 0, alpha * expm1(x), x)
 *
 * A select computes both sides and takes one element by element, so what the other side would give (an overflow, a
 * NaN) does not matter. A NaN fails every comparison: each is written so that x itself is on the side that it takes. */
#include "passes/decompose.h"

bool weft_chain_begin(struct weft_rewriting *r, weft_node n, struct weft_chain *c)
{
    if (!weft_rewrite_begin(r))
        return false;
    c->b = &r->build;
    c->x = weft_widen(c->b, weft_operand(r->graph, n, 0));
    c->type = *weft_type_of(r->graph, c->x);
    return true;
}

weft_val weft_chain_end(struct weft_rewriting *r, weft_node n, struct weft_chain *c, weft_val value)
{
    return weft_narrow(c->b, value, weft_type_of(r->graph, weft_result(r->graph, n, 0))->dtype);
}

weft_val weft_chain_number(struct weft_chain *c, double value) { return weft_build_splat(c->b, &c->type, value); }

weft_val weft_chain_apply(struct weft_chain *c, int op, weft_val x, weft_val y)
{
    return weft_build_binary(c->b, op, x, y);
}

weft_val weft_chain_with(struct weft_chain *c, int op, weft_val x, double value)
{
    return weft_chain_apply(c, op, x, weft_chain_number(c, value));
}

weft_val weft_chain_select(struct weft_chain *c, weft_val condition, weft_val x, weft_val y)
{
    const weft_val operand[] = {condition, x, y};
    return weft_build(c->b, WEFT_OP_select, 3, operand, 0, NULL, NULL);
}

/* `other` where x < 0, else x. */
static weft_val below_zero(struct weft_chain *c, weft_val other)
{
    return weft_chain_select(c, weft_chain_with(c, WEFT_OP_lt, c->x, 0), other, c->x);
}

static weft_val leaky_relu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val negative = weft_chain_with(&c, WEFT_OP_lt, c.x, 0);
    const weft_val scaled = weft_chain_with(&c, WEFT_OP_mul, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    return weft_chain_end(r, n, &c, weft_chain_select(&c, negative, scaled, c.x));
}

static weft_val prelu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val slope = weft_widen(c.b, weft_operand(r->graph, n, 1));
    return weft_chain_end(r, n, &c, below_zero(&c, weft_chain_apply(&c, WEFT_OP_mul, c.x, slope)));
}

static weft_val thresholded_relu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val high = weft_chain_with(&c, WEFT_OP_gt, c.x, weft_attr_real(r->graph, n, WEFT_ATTR_alpha));
    return weft_chain_end(r, n, &c, weft_chain_select(&c, high, c.x, weft_chain_number(&c, 0)));
}

static weft_val shrink(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const double bias = weft_attr_real(r->graph, n, WEFT_ATTR_bias);
    const double lambda = weft_attr_real(r->graph, n, WEFT_ATTR_lambda);
    const weft_val low = weft_chain_with(&c, WEFT_OP_lt, c.x, -lambda);
    const weft_val high = weft_chain_with(&c, WEFT_OP_gt, c.x, lambda);
    const weft_val raised = weft_chain_with(&c, WEFT_OP_add, c.x, bias);
    const weft_val lowered = weft_chain_with(&c, WEFT_OP_sub, c.x, bias);
    const weft_val rest = weft_chain_select(&c, high, lowered, weft_chain_number(&c, 0));
    return weft_chain_end(r, n, &c, weft_chain_select(&c, low, raised, rest));
}

/* alpha * expm1(x / scale) below zero */
static weft_val exponential_unit(struct weft_chain *c, double alpha, double scale)
{
    const weft_val x = scale == 1 ? c->x : weft_chain_with(c, WEFT_OP_div, c->x, scale);
    const weft_val power = weft_build_unary(c->b, WEFT_OP_expm1, x);
    return below_zero(c, alpha == 1 ? power : weft_chain_with(c, WEFT_OP_mul, power, alpha));
}

static weft_val elu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    return weft_chain_end(r, n, &c, exponential_unit(&c, weft_attr_real(r->graph, n, WEFT_ATTR_alpha), 1));
}

static weft_val celu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const double alpha = weft_attr_real(r->graph, n, WEFT_ATTR_alpha);
    return weft_chain_end(r, n, &c, exponential_unit(&c, alpha, alpha));
}

static weft_val selu(struct weft_rewriting *r, weft_node n)
{
    struct weft_chain c;
    if (!weft_chain_begin(r, n, &c))
        return WEFT_NO_VALUE;
    const weft_val unit = exponential_unit(&c, weft_attr_real(r->graph, n, WEFT_ATTR_alpha), 1);
    return weft_chain_end(r, n, &c,
                          weft_chain_with(&c, WEFT_OP_mul, unit, weft_attr_real(r->graph, n, WEFT_ATTR_gamma)));
}

static const struct weft_rule rules[] = {
    {"leaky_relu",       WEFT_OP_leaky_relu,       leaky_relu,       "alpha * x where x < 0, else x"},
    {"prelu",            WEFT_OP_prelu,            prelu,            "x * slope where x < 0, else x"},
    {"thresholded_relu", WEFT_OP_thresholded_relu, thresholded_relu, "x where x > alpha, else 0"},
    {"shrink",           WEFT_OP_shrink,           shrink,           "x moved by bias towards 0 outside of lambda"},
    {"elu",              WEFT_OP_elu,              elu,              "alpha * expm1(x) where x < 0, else x"},
    {"celu",             WEFT_OP_celu,             celu,             "alpha * expm1(x / alpha) where x < 0, else x"},
    {"selu",             WEFT_OP_selu,             selu,             "gamma times elu"},
};
const struct weft_rule_set weft_decompose_pieces = WEFT_RULE_SET(rules);
