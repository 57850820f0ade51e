/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_quantize.c: the rules of decompose for quantised types.
 *
 *   quantize     cast(min(max(round(x / scale) + zero, low), high)), without the round for f8
 *   dequantize   (x - zero) * scale, with the difference taken in integers
 *
 * Both are exact: the quotient is rounded to f32 (f64 for f64) by the definition, all that follows is in whole numbers
 * that f32 holds. A NaN passes the bounds, and its cast is 0. */
#include "passes/passes.h"

#include <math.h>

static weft_val with(struct weft_builder *b, int op, weft_val x, double number)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    return weft_build_binary(b, op, x, weft_build_splat(b, &type, number));
}

static weft_val quantize(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype, bits = (int)weft_dtype_bits(dtype);
    const bool real = weft_dtype_is_float(dtype);
    double low, high;
    if (real) {
        high = dtype == WEFT_F8E4M3 ? 448 : 57344;
        low = -high;
    } else {
        low = weft_dtype_is_signed(dtype) ? -ldexp(1, bits - 1) : 0;
        high = low + ldexp(1, bits) - 1;
    }
    const weft_val dividend = weft_widen(b, weft_operand(g, n, 0)), scale = weft_widen(b, weft_operand(g, n, 1));
    weft_val x = weft_build_binary(b, WEFT_OP_div, dividend, scale);
    const int wide = weft_type_of(g, x)->dtype;
    if (!real)
        x = weft_build_unary(b, WEFT_OP_round, x);
    if (g->node[n.id].operands == 3)
        x = weft_build_binary(b, WEFT_OP_add, x, weft_build_cast(b, weft_operand(g, n, 2), wide));
    return weft_build_cast(b, with(b, WEFT_OP_min, with(b, WEFT_OP_max, x, low), high), dtype);
}

static weft_val dequantize(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val x = weft_operand(g, n, 0);
    const int from = weft_type_of(g, x)->dtype, dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const weft_val scale = weft_widen(b, weft_operand(g, n, 1));
    const int wide = weft_type_of(g, scale)->dtype;
    const int exact = weft_dtype_is_float(from) ? wide : from == WEFT_I32 ? WEFT_I64 : WEFT_I32;
    if (g->node[n.id].operands == 3) {
        const weft_val left = weft_build_cast(b, x, exact), zero = weft_build_cast(b, weft_operand(g, n, 2), exact);
        x = weft_build_binary(b, WEFT_OP_sub, left, zero);
    }
    return weft_narrow(b, weft_build_binary(b, WEFT_OP_mul, weft_build_cast(b, x, wide), scale), dtype);
}

static const struct weft_rule rules[] = {
    {"quantize",   WEFT_OP_quantize,   quantize,   "x / scale + zero, rounded and bounded"},
    {"dequantize", WEFT_OP_dequantize, dequantize, "(x - zero) * scale"},
};
const struct weft_rule_set weft_decompose_quantised = WEFT_RULE_SET(rules);
