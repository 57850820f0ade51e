/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_narrow.c: the rules of decompose for ops that have fast kernels of f32 alone, on types of up to 16 bits,
 * which f32 holds exactly.
 *
 *   %y: f16[1,8,4,4] = max_pool %x kernel=[2 2]  →  %w: f32[1,8,5,5] = cast %x
 *                                                   %m: f32[1,8,4,4] = max_pool %w kernel=[2 2]
 *                                                   %y: f16[1,8,4,4] = cast %m
 *
 *   max_pool, sort, top_k        what they choose is an element as it was, of floats and integers
 *   mean_pool, resize of linear  of floats: computed in f32 and rounded, as for f32 and once more. A resize of nearest
 *   and cubic form, grid_sample  elements moves them, which has kernels for all types
 *
 * Needs and keeps: nothing. */
#include "passes/passes.h"

#include "ir/places.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char exact[] = "kernels are of f32, which holds the elements exactly";

static bool is_16(int dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

static bool is_narrow(int dtype)
{
    return is_16(dtype) || dtype == WEFT_I16 || dtype == WEFT_U16 || dtype == WEFT_I8 ||
           dtype == WEFT_U8;
}

/* The node's op on operands of f32. */
static weft_node build_wide(struct weft_builder *b, weft_node n)
{
    struct weft_graph *g = b->graph;
    struct weft_attr attr[WEFT_ATTR_COUNT];
    weft_val operand[2];
    const unsigned operands = g->node[n.id].operands, attrs = g->node[n.id].attrs;
    weft_assert(operands <= 2);
    for (unsigned i = 0; i < operands; i++)
        operand[i] = is_16(weft_type_of(g, weft_operand(g, n, i))->dtype)
                         ? weft_widen(b, weft_operand(g, n, i))
                         : weft_build_cast(b, weft_operand(g, n, i), WEFT_F32);
    memcpy(attr, g->node[n.id].attr, attrs * sizeof *attr);
    struct weft_type stated = *weft_type_of(g, weft_result(g, n, 0));
    stated.dtype = WEFT_F32;
    const bool is_stated = weft_op_of(g, n)->traits & WEFT_STATED;
    return weft_def(g, weft_build(b, weft_opcode_of(g, n), operands, operand, attrs, attr, is_stated ? &stated : NULL));
}

static weft_val in_f32(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const int dtype = weft_type_of(g, weft_operand(g, n, 0))->dtype;
    if (!is_16(dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_narrow(&r->build, weft_result(g, build_wide(&r->build, n), 0), dtype);
}

static weft_val resize_in_f32(struct weft_rewriting *r, weft_node n)
{
    const bool moves = weft_attr_int(r->graph, n, WEFT_ATTR_form) == WEFT_RESIZE_NEAREST;
    return moves ? WEFT_NO_VALUE : in_f32(r, n);
}

/* Of a window in the padding alone the maximum is the least number of the type, which in f32 is -infinity. */
static weft_val max_pool_in_f32(struct weft_rewriting *r, weft_node n)
{
    struct weft_builder *b = &r->build;
    struct weft_graph *g = r->graph;
    const int dtype = weft_type_of(g, weft_operand(g, n, 0))->dtype;
    if (!is_narrow(dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_val most = weft_result(g, build_wide(b, n), 0);
    if (!weft_dtype_is_float(dtype)) {
        const double least = weft_dtype_is_signed(dtype) ? -ldexp(1, (int)weft_dtype_bits(dtype) - 1) : 0;
        const struct weft_type type = *weft_type_of(g, most);
        most = weft_build_binary(b, WEFT_OP_max, most, weft_build_splat(b, &type, least));
    }
    return weft_narrow(b, most, dtype);
}

static const struct weft_rule rules[] = {
    {"max_pool",    WEFT_OP_max_pool,    max_pool_in_f32, exact},
    {"mean_pool",   WEFT_OP_mean_pool,   in_f32,          "16-bit means in f32"},
    {"resize",      WEFT_OP_resize,      resize_in_f32,   "16-bit interpolation in f32"},
    {"grid_sample", WEFT_OP_grid_sample, in_f32,          "16-bit interpolation in f32"},
};
const struct weft_rule_set weft_decompose_narrow = WEFT_RULE_SET(rules);

/* --- sort and top_k: two results, elements and where they were ---------------------------------------------------- */

static bool is_used(const struct weft_graph *g, weft_val v) { return g->value[v.id].uses || g->value[v.id].returns; }

static bool order_in_f32(struct weft_graph *g, weft_node n)
{
    const weft_val elements = weft_result(g, n, 0), places = weft_result(g, n, 1);
    const int dtype = weft_type_of(g, elements)->dtype;
    struct weft_builder b = {g, n};
    char who[32];
    if (!is_narrow(dtype) || weft_is_decided(g, n) || (!is_used(g, elements) && !is_used(g, places)))
        return false;
    snprintf(who, sizeof who, "decompose.%s", weft_op_of(g, n)->name);
    if (!weft_permit(g, who, elements))
        return false;
    if (g->value[elements.id].name)
        weft_add_remark(g, who, elements, "done", "%s", exact);
    const weft_node wide = build_wide(&b, n);
    const weft_val narrow = weft_narrow(&b, weft_result(g, wide, 0), dtype);
    if (is_used(g, places))
        weft_substitute(g, places, weft_result(g, wide, 1));
    if (is_used(g, elements))
        weft_substitute(g, elements, narrow);
    weft_erase_unused(g, n);
    return true;
}

bool weft_decompose_orders(struct weft_graph *graph)
{
    bool changed = false;
    for (weft_node n = graph->first, next; n.id; n = next) {
        const int op = weft_opcode_of(graph, n);
        next = graph->node[n.id].next;
        if (op == WEFT_OP_sort || op == WEFT_OP_top_k)
            changed |= order_in_f32(graph, n);
    }
    return changed;
}
