/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_rounding.c: the rules of decompose that leave out roundings to 16 bits between two computations in f32.
 *
 * Kernels compute 16-bit convolutions, products and norms in f32, so decompose puts a cast behind each, and one in
 * front of the next. Its casts to 16 bits are `loose`: whoever reads one may read its operand instead. So a value stays
 * f32 from one such computation to the next, and what stands between them is computed in f32, too:
 *
 *   %a: f16[8] = cast %w loose=1           %b: f32[8] = relu %w
 *   %y: f16[8] = relu %a               →   %y: f16[8] = cast %b loose=1
 *
 *   elementwise ops, folds     where an operand is loose; the others are widened
 *   views and movement         where all operands of 16 bits are loose or constant
 *
 * A group of fused nodes leaves the same roundings out (codegen/strips.c). Casts that the graph had are not loose: they
 * round. Needs and keeps: nothing. */
#include "passes/decompose.h"

static weft_val cast_back(struct weft_rewriting *r, weft_node n)
{
    const weft_val wide = weft_before_rounding(r->graph, weft_operand(r->graph, n, 0));
    const int dtype = weft_type_of(r->graph, weft_result(r->graph, n, 0))->dtype;
    return wide.id && weft_type_of(r->graph, wide)->dtype == dtype ? weft_rewrite_to(r, wide) : WEFT_NO_VALUE;
}

/* May the op be computed in f32 instead? */
static bool can_be_wide(const struct weft_graph *g, weft_node n)
{
    const uint32_t traits = weft_op_of(g, n)->traits;
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_cast: case WEFT_OP_bitcast: case WEFT_OP_quantize: case WEFT_OP_dequantize: case WEFT_OP_relayout:
        return false;
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min:
        return !weft_attr_find(g, n, WEFT_ATTR_acc);
    default:
        return traits & (WEFT_ELEMENTWISE | WEFT_VIEW | WEFT_MOVEMENT) && !(traits & (WEFT_DATA | WEFT_RANDOM)) &&
               !(traits & WEFT_UPDATE);
    }
}

/* Does it read something loose, and, where it only moves elements, nothing that would have to be widened? */
static bool is_worth_it(const struct weft_graph *g, weft_node n)
{
    const bool moves = weft_op_of(g, n)->traits & (WEFT_VIEW | WEFT_MOVEMENT);
    bool any = false;
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        const bool is_loose = weft_before_rounding(g, v).id;
        any |= is_loose;
        if (moves && !is_loose && weft_dtype_is_half(weft_type_of(g, v)->dtype) && !weft_is_const(g, v))
            return false;
    }
    return any;
}

static weft_val round_behind(struct weft_rewriting *r, weft_node n)
{
    const int dtype = weft_type_of(r->graph, weft_result(r->graph, n, 0))->dtype;
    if (!weft_dtype_is_half(dtype) || !can_be_wide(r->graph, n) || !is_worth_it(r->graph, n) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_narrow(&r->build, weft_build_wide(&r->build, n), dtype);
}

static const struct weft_rule rules[] = {
    {"cast_back", WEFT_OP_cast, cast_back,    "not rounded to 16 bits before it is f32 again"},
    {"rounding",  WEFT_OP_NONE, round_behind, "computed in f32, and rounded to 16 bits behind it"},
};
const struct weft_rule_set weft_decompose_rounding = WEFT_RULE_SET(rules);
