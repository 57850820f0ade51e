/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_attention.c: the rules of decompose for attention and its gradient.
 *
 *   attention        of 16-bit floats: in f32 between casts, as products are. Of f64: matmul, scaling, bound and mask,
 *   attention_sums   softmax, matmul. Of f32 they stay: there is a kernel (kernels/attention)
 *   attention_grad   the same; of f64: the weights by exp(score - log of their sum), and four more products
 *
 * Where a row may see no key, softmax would divide 0 by 0: its maximum is -inf there, which becomes 0, and its sum
 * becomes 1. Needs and keeps: nothing. */
#include "passes/decompose.h"

#include <math.h>

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* Heads that several queries share, once for each of them. */
static weft_val repeated(struct weft_builder *b, weft_val x, weft_dim heads)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    if (weft_dim_same(type.extent[1], heads))
        return x;
    struct weft_type wide = {.dtype = type.dtype, .rank = 5}, result = type;
    wide.extent[0] = type.extent[0];
    wide.extent[1] = type.extent[1];
    wide.extent[2] = weft_dim_div(b->graph->dims, heads, type.extent[1]);
    wide.extent[3] = type.extent[2];
    wide.extent[4] = type.extent[3];
    result.extent[1] = heads;
    return weft_build_reshape(b, weft_build_bcast(b, x, &wide, (const int[]){0, 1, 3, 4}), &result);
}

/* [0, 1, … extent) */
static weft_val places(struct weft_builder *b, weft_dim extent)
{
    const struct weft_type type = {.dtype = WEFT_I64, .rank = 1, .extent = {extent}};
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, 0);
    return weft_build(b, WEFT_OP_iota, 0, NULL, 1, &attr, &type);
}

static weft_val chosen(struct weft_builder *b, weft_val condition, weft_val x, weft_val y)
{
    return weft_build(b, WEFT_OP_select, 3, (const weft_val[]){condition, x, y}, 0, NULL, NULL);
}

/* What hides does so whatever the score is. */
static weft_val with_mask(struct weft_builder *b, weft_val scores, weft_val mask)
{
    const struct weft_type type = *weft_type_of(b->graph, mask);
    const weft_val lowest = weft_build_splat(b, &type, WEFT_HIDING_MASK);
    const weft_val sum = weft_build_binary(b, WEFT_OP_add, scores, mask);
    return chosen(b, weft_build_binary(b, WEFT_OP_le, mask, lowest), mask, sum);
}

/* Keys behind row + offset are not seen. The mask has rows and keys only: batches and heads share it. */
static weft_val causal(struct weft_builder *b, weft_val scores, weft_dim offset)
{
    const struct weft_type type = *weft_type_of(b->graph, scores), number = {.dtype = WEFT_I64};
    const struct weft_type rows = {.dtype = WEFT_I64, .rank = 1, .extent = {type.extent[2]}};
    const struct weft_type both = {.dtype = WEFT_I64, .rank = 2, .extent = {type.extent[2], type.extent[3]}};
    struct weft_type mask = type;
    mask.dtype = WEFT_BOOL;
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &offset);
    const weft_val shift = weft_build(b, WEFT_OP_extents, 0, NULL, 1, &value, &number);
    const weft_val shifts = weft_build_bcast(b, shift, &rows, NULL);
    const weft_val last = weft_build_binary(b, WEFT_OP_add, places(b, type.extent[2]), shifts);
    const weft_val key = weft_build_bcast(b, places(b, type.extent[3]), &both, (const int[]){1});
    const weft_val seen =
        weft_build_binary(b, WEFT_OP_le, key, weft_build_bcast(b, last, &both, (const int[]){0}));
    const weft_val hidden = weft_build_splat(b, &type, -INFINITY);
    return chosen(b, weft_build_bcast(b, seen, &mask, (const int[]){2, 3}), scores, hidden);
}

/* A value of each row, for all of its keys. */
static weft_val along_keys(struct weft_builder *b, weft_val row, const struct weft_type *type)
{
    return weft_build_bcast(b, row, type, (const int[]){0, 1, 2});
}

static weft_val all_equal(struct weft_builder *b, weft_val like, double value)
{
    const struct weft_type type = *weft_type_of(b->graph, like);
    return weft_build_splat(b, &type, value);
}

static weft_val folded(struct weft_builder *b, int op, weft_val x)
{
    const int last = 3;
    return weft_build_reduce(b, op, x, 1, &last, /* keepdims= */ false);
}

/* exp(x - the row's largest), which is taken for 0 where all is -inf. */
struct powers {
    weft_val blind, centre, power, sum; /* is all -inf? what was subtracted; exponentials, their sums */
};
static struct powers powers_of(struct weft_builder *b, weft_val x)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    const weft_val most = folded(b, WEFT_OP_reduce_max, x);
    struct powers p = {.blind = weft_build_binary(b, WEFT_OP_eq, most, all_equal(b, most, -INFINITY))};
    p.centre = chosen(b, p.blind, all_equal(b, most, 0), most);
    p.power = weft_build_unary(b, WEFT_OP_exp,
                               weft_build_binary(b, WEFT_OP_sub, x, along_keys(b, p.centre, &type)));
    p.sum = folded(b, WEFT_OP_sum, p.power);
    return p;
}

/* softmax along the last axis, with zeros where all is -inf. */
static weft_val guarded_softmax(struct weft_builder *b, weft_val x)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    const struct powers p = powers_of(b, x);
    const weft_val divisor = chosen(b, p.blind, all_equal(b, p.sum, 1), p.sum);
    return weft_build_binary(b, WEFT_OP_div, p.power, along_keys(b, divisor, &type));
}

/* The logarithm of the sum of exp(x): -inf where all is. */
static weft_val log_sum(struct weft_builder *b, weft_val x)
{
    const struct powers p = powers_of(b, x);
    return weft_build_binary(b, WEFT_OP_add, p.centre, weft_build_unary(b, WEFT_OP_log, p.sum));
}

/* 0 where it is NaN. */
static weft_val cleared(struct weft_builder *b, weft_val x)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    const weft_val zero = weft_build_splat(b, &type, 0);
    return chosen(b, weft_build_unary(b, WEFT_OP_is_nan, x), zero, x);
}

static weft_val scaled(struct weft_builder *b, weft_val x, double factor)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    return factor == 1 ? x : weft_build_binary(b, WEFT_OP_mul, x, weft_build_splat(b, &type, factor));
}

static weft_val product(struct weft_builder *b, weft_val x, bool trans_a, weft_val y, bool trans_b)
{
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_trans_a, trans_a),
                                     weft_attr_of_int(WEFT_ATTR_trans_b, trans_b)};
    return weft_build(b, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 2, attr, NULL);
}

/* Scores of queries that have been scaled with keys that have been repeated for their heads. `ret_bent`: with a bound,
 * the tangent that it was made with; else none. */
static weft_val scores(struct weft_builder *b, weft_node n, weft_val query, weft_val key, weft_val mask,
                       weft_val *ret_bent)
{
    struct weft_graph *g = b->graph;
    const double softcap = weft_attr_real(g, n, WEFT_ATTR_softcap);
    weft_val x = product(b, query, false, key, true);
    *ret_bent = WEFT_NO_VALUE;
    if (softcap > 0) {
        *ret_bent = weft_build_unary(b, WEFT_OP_tanh, scaled(b, x, 1 / softcap));
        x = scaled(b, *ret_bent, softcap);
    }
    if (mask.id)
        x = with_mask(b, x, mask);
    return weft_attr_int(g, n, WEFT_ATTR_causal) ? causal(b, x, weft_attr_dim(g, n, WEFT_ATTR_offset)) : x;
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

/* Shares of the values in a result, from scores. */
static weft_val shares(struct weft_builder *b, weft_node n, weft_val x)
{
    struct weft_graph *g = b->graph;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 3);
    const bool is_causal = weft_attr_int(g, n, WEFT_ATTR_causal) != 0, masked = g->node[n.id].operands == 4;
    const char *const empty = weft_attr_word(g, n, WEFT_ATTR_empty);
    int64_t low, high;
    weft_dim_range(g->dims, weft_attr_dim(g, n, WEFT_ATTR_offset), &low, &high);
    const bool sees = empty[0] == 'n' || (empty[0] == 'z' && !masked && (!is_causal || low >= 0));
    const weft_val share = sees ? weft_build(b, WEFT_OP_softmax, 1, &x, 1, &axis, NULL) : guarded_softmax(b, x);
    return empty[0] == 'c' ? cleared(b, share) : share;
}

static weft_val attention(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const bool has_sums = g->node[n.id].results == 2;
    if (dtype == WEFT_F32 || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    if (dtype != WEFT_F64) {
        const weft_val y = weft_build_wide(b, n);
        if (has_sums)
            weft_substitute(g, weft_result(g, n, 1), weft_result(g, weft_def(g, y), 1));
        return weft_narrow(b, y, dtype);
    }
    const weft_dim heads = weft_type_of(g, weft_operand(g, n, 0))->extent[1];
    const weft_val query = scaled(b, weft_operand(g, n, 0), weft_attr_real(g, n, WEFT_ATTR_factor));
    const weft_val key = repeated(b, weft_operand(g, n, 1), heads);
    const weft_val value = repeated(b, weft_operand(g, n, 2), heads);
    weft_val bent;
    const weft_val mask = g->node[n.id].operands == 4 ? weft_operand(g, n, 3) : WEFT_NO_VALUE;
    const weft_val x = scores(b, n, query, key, mask, &bent);
    if (has_sums)
        weft_substitute(g, weft_result(g, n, 1), log_sum(b, x));
    return product(b, shares(b, n, x), false, value, false);
}

/* --- the gradient ------------------------------------------------------------------------------------------------- */

/* Sums over the heads that share keys. */
static weft_val shared(struct weft_builder *b, weft_val x, const struct weft_type *type)
{
    struct weft_type apart = {.dtype = type->dtype, .rank = 5};
    const struct weft_type whole = *weft_type_of(b->graph, x);
    const int axis = 2;
    if (weft_dim_same(whole.extent[1], type->extent[1]))
        return x;
    apart.extent[0] = whole.extent[0];
    apart.extent[1] = type->extent[1];
    apart.extent[2] = weft_dim_div(b->graph->dims, whole.extent[1], type->extent[1]);
    apart.extent[3] = whole.extent[2];
    apart.extent[4] = whole.extent[3];
    return weft_build_reduce(b, WEFT_OP_sum, weft_build_reshape(b, x, &apart), 1, &axis, /* keepdims= */ false);
}

/* exp(scores - logarithm), 0 where that is -inf. */
static weft_val weights(struct weft_builder *b, weft_val x, weft_val logarithm)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    const weft_val blind = weft_build_binary(b, WEFT_OP_eq, logarithm, all_equal(b, logarithm, -INFINITY));
    const weft_val centre = chosen(b, blind, all_equal(b, logarithm, INFINITY), logarithm);
    return weft_build_unary(b, WEFT_OP_exp, weft_build_binary(b, WEFT_OP_sub, x, along_keys(b, centre, &type)));
}

/* Gradients of the products of queries and keys, from weights and gradients of weights. */
static weft_val slopes(struct weft_builder *b, weft_node n, weft_val weight, weft_val change, weft_val bent,
                       weft_val mask)
{
    struct weft_graph *g = b->graph;
    const struct weft_type type = *weft_type_of(g, weight);
    const weft_val both = weft_build_binary(b, WEFT_OP_mul, weft_operand(g, n, 0), weft_operand(g, n, 4));
    const weft_val delta = along_keys(b, folded(b, WEFT_OP_sum, both), &type);
    weft_val x = weft_build_binary(b, WEFT_OP_mul, weight, weft_build_binary(b, WEFT_OP_sub, change, delta));
    if (bent.id) {
        const weft_val square = weft_build_binary(b, WEFT_OP_mul, bent, bent);
        x = weft_build_binary(b, WEFT_OP_mul, x, weft_build_binary(b, WEFT_OP_sub, all_equal(b, x, 1), square));
    }
    if (mask.id) {
        const weft_val hidden = weft_build_binary(b, WEFT_OP_le, mask, all_equal(b, mask, WEFT_HIDING_MASK));
        x = chosen(b, hidden, all_equal(b, x, 0), x);
    }
    return scaled(b, x, weft_attr_real(g, n, WEFT_ATTR_factor));
}

static weft_val attention_grad(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    const struct weft_type keys = *weft_type_of(g, weft_result(g, n, 1));
    const struct weft_type values = *weft_type_of(g, weft_result(g, n, 2));
    if (keys.dtype == WEFT_F32 || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    if (keys.dtype != WEFT_F64) {
        const weft_val dq = weft_build_wide(b, n);
        for (unsigned i = 1; i < 3; i++)
            weft_substitute(g, weft_result(g, n, i),
                            weft_narrow(b, weft_result(g, weft_def(g, dq), i), keys.dtype));
        return weft_narrow(b, dq, keys.dtype);
    }
    const weft_val dy = weft_operand(g, n, 0), q = weft_operand(g, n, 1);
    const weft_val query = scaled(b, q, weft_attr_real(g, n, WEFT_ATTR_factor));
    const weft_dim heads = weft_type_of(g, q)->extent[1];
    const weft_val k = repeated(b, weft_operand(g, n, 2), heads), v = repeated(b, weft_operand(g, n, 3), heads);
    const weft_val mask = g->node[n.id].operands == 7 ? weft_operand(g, n, 6) : WEFT_NO_VALUE;
    weft_val bent;
    const weft_val x = scores(b, n, query, k, mask, &bent), weight = weights(b, x, weft_operand(g, n, 5));
    const weft_val slope = slopes(b, n, weight, product(b, dy, false, v, true), bent, mask);
    weft_substitute(g, weft_result(g, n, 1), shared(b, product(b, slope, true, q, false), &keys));
    weft_substitute(g, weft_result(g, n, 2), shared(b, product(b, weight, true, dy, false), &values));
    return product(b, slope, false, k, false);
}

static const struct weft_rule rules[] = {
    {"attention",      WEFT_OP_attention,      attention,      "softmax(q * k') * v"},
    {"attention_sums", WEFT_OP_attention_sums, attention,      "softmax(q * k') * v"},
    {"attention_grad", WEFT_OP_attention_grad, attention_grad, "weights once more, and products with their gradients"},
};
const struct weft_rule_set weft_decompose_attention = WEFT_RULE_SET_SEVERAL(rules);
