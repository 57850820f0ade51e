/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_narrow.c: the rules of decompose for ops that have fast kernels of f32 alone, on types of up to 16 bits,
 * which f32 holds exactly.
 *
 *   %y: f16[1,8,4,4] = max_pool %x kernel=[2 2]  →  %w: f32[1,8,5,5] = cast %x
 *                                                   %m: f32[1,8,4,4] = max_pool %w kernel=[2 2]
 *                                                   %y: f16[1,8,4,4] = cast %m loose=1
 *
 *   max_pool, max_pool_index, sort, top_k   of floats and integers: what they choose is an element as it was
 *   mean_pool, resize, grid_sample   of floats: computed in f32 and rounded. A resize to nearest elements stays: it
 *                                    moves them, and has kernels of all types
 *   conv_grad_weight, max_pool_grad  the same
 *
 * Needs and keeps: nothing. */
#include "passes/decompose.h"

#include "ir/places.h"

#include <math.h>

static const char exact[] = "kernels are of f32, which holds the elements exactly";

static bool is_narrow(int dtype)
{
    return weft_dtype_is_half(dtype) || (weft_dtype_is_int(dtype) && weft_dtype_bits(dtype) >= 8 &&
                                         weft_dtype_bits(dtype) <= 16);
}

static weft_val in_f32(struct weft_rewriting *r, weft_node n)
{
    const int dtype = weft_type_of(r->graph, weft_operand(r->graph, n, 0))->dtype;
    if (!weft_dtype_is_half(dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_narrow(&r->build, weft_build_wide(&r->build, n), dtype);
}

static weft_val resize_in_f32(struct weft_rewriting *r, weft_node n)
{
    const bool moves = weft_attr_int(r->graph, n, WEFT_ATTR_form) == WEFT_RESIZE_NEAREST;
    return moves ? WEFT_NO_VALUE : in_f32(r, n);
}

/* --- integers, too ------------------------------------------------------------------------------------------------ */

/* The first result of a node with one operand, on that as f32. */
static weft_val build_in_f32(struct weft_builder *b, weft_node n)
{
    const weft_val x = weft_operand(b->graph, n, 0);
    const bool is_integer = weft_dtype_is_int(weft_type_of(b->graph, x)->dtype);
    const weft_val wide = is_integer ? weft_build_cast(b, x, WEFT_F32) : weft_widen(b, x);
    return weft_rebuild(b, n, &wide, NULL);
}

/* Of a window in the padding alone the maximum is the least number of the type, which in f32 is -infinity. */
static weft_val at_least(struct weft_builder *b, weft_node n, weft_val most, int dtype)
{
    const int op = weft_opcode_of(b->graph, n);
    if (!weft_dtype_is_int(dtype) || (op != WEFT_OP_max_pool && op != WEFT_OP_max_pool_index))
        return most;
    const double least = weft_dtype_is_signed(dtype) ? -ldexp(1, (int)weft_dtype_bits(dtype) - 1) : 0;
    const struct weft_type type = *weft_type_of(b->graph, most);
    return weft_build_binary(b, WEFT_OP_max, most, weft_build_splat(b, &type, least));
}

static weft_val max_pool_in_f32(struct weft_rewriting *r, weft_node n)
{
    const int dtype = weft_type_of(r->graph, weft_operand(r->graph, n, 0))->dtype;
    if (!is_narrow(dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_narrow(&r->build, at_least(&r->build, n, build_in_f32(&r->build, n), dtype), dtype);
}

/* Two results: elements, and where they were. */
static weft_val order_in_f32(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    const int dtype = weft_type_of(g, weft_operand(g, n, 0))->dtype;
    if (!is_narrow(dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val elements = build_in_f32(&r->build, n);
    weft_substitute(g, weft_result(g, n, 1), weft_result(g, weft_def(g, elements), 1));
    return weft_narrow(&r->build, at_least(&r->build, n, elements, dtype), dtype);
}

static const struct weft_rule rules[] = {
    {"max_pool",    WEFT_OP_max_pool,    max_pool_in_f32, exact},
    {"mean_pool",   WEFT_OP_mean_pool,   in_f32,          "16-bit means in f32"},
    {"resize",      WEFT_OP_resize,      resize_in_f32,   "16-bit interpolation in f32"},
    {"grid_sample", WEFT_OP_grid_sample, in_f32,          "16-bit interpolation in f32"},
    {"conv_grad_weight", WEFT_OP_conv_grad_weight, in_f32, "16-bit sums in f32"},
    {"max_pool_grad", WEFT_OP_max_pool_grad, in_f32, "16-bit sums in f32"},
};
const struct weft_rule_set weft_decompose_narrow = WEFT_RULE_SET(rules);

static const struct weft_rule orders[] = {
    {"sort",  WEFT_OP_sort,  order_in_f32, exact},
    {"top_k", WEFT_OP_top_k, order_in_f32, exact},
    {"max_pool_index", WEFT_OP_max_pool_index, order_in_f32, exact},
};
const struct weft_rule_set weft_decompose_orders = WEFT_RULE_SET_SEVERAL(orders);
