/* SPDX-License-Identifier: Apache-2.0 */
/* decompose: open composites into primitive ops; contractions stay whole.
 *
 *   %y: f32[4,9] = softmax %x axis=1     →     %m: f32[4] = reduce_max %x axes=[1]
 *                                              %a: f32[4,9] = bcast %m dims=[0]
 *                                              %d: f32[4,9] = sub %x, %a
 *                                              %e: f32[4,9] = exp %d
 *                                              %s: f32[4] = sum %e axes=[1]
 *                                              %b: f32[4,9] = bcast %s dims=[0]
 *                                              %y: f32[4,9] = div %e, %b
 *
 * One rule per composite over the walk of rules.c: what works along an axis here, norms in decompose_norm.c,
 * activations in decompose_activation.c and decompose_pieces.c.
 * The result is the same function as the evaluator's, which computes a composite in double and rounds once; here each
 * step is rounded. In 16-bit types that would lose most of the digits, so those are computed in f32 between two
 * casts.
 *
 * What a kernel of the caller's target computes stays whole, in its own type.
 *
 * Needs: nothing. Not done: pooling stays whole, it is a windowed reduction and no composite. */
#include "passes/decompose.h"
#include "sched/target.h"

/* --- softmax ---------------------------------------------------------------------------------------------------- */

/* What the reduction over one axis lost is repeated along it. */
static weft_val spread(struct weft_builder *b, weft_val v, const struct weft_type *type, int axis)
{
    int result_axis[WEFT_MAX_RANK];
    int count = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis)
            result_axis[count++] = i;
    return weft_build_bcast(b, v, type, result_axis);
}

static weft_val softmax(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_type result = *weft_type_of(g, weft_result(g, n, 0));
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    const weft_val x = weft_widen(b, weft_operand(g, n, 0));
    const struct weft_type type = *weft_type_of(g, x);

    const weft_val largest = weft_build_reduce(b, WEFT_OP_reduce_max, x, 1, &axis, /* keepdims= */ false);
    const weft_val difference = weft_build_binary(b, WEFT_OP_sub, x, spread(b, largest, &type, axis));
    const weft_val power = weft_build_unary(b, WEFT_OP_exp, difference);
    const weft_val total = weft_build_reduce(b, WEFT_OP_sum, power, 1, &axis, /* keepdims= */ false);
    if (weft_opcode_of(g, n) == WEFT_OP_softmax)
        return weft_narrow(b, weft_build_binary(b, WEFT_OP_div, power, spread(b, total, &type, axis)), result.dtype);
    const weft_val logarithm = spread(b, weft_build_unary(b, WEFT_OP_log, total), &type, axis);
    return weft_narrow(b, weft_build_binary(b, WEFT_OP_sub, difference, logarithm), result.dtype);
}

/* 1 where the index is that of the first of the largest, or of the first NaN, as arg_max finds it. */
static weft_val hardmax(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_type type = *weft_type_of(g, x);
    struct weft_type indices = type;
    indices.dtype = WEFT_I64;
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    const struct weft_type line = {.dtype = WEFT_I64, .rank = 1, .extent = {type.extent[axis]}};
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, axis), only = weft_attr_of_int(WEFT_ATTR_axis, 0);

    const weft_val wide = weft_widen(b, x); /* kernels find extremes in f32 */
    const weft_val first = weft_build(b, WEFT_OP_arg_max, 1, &wide, 1, &along, NULL);
    const weft_val index = weft_build_bcast(b, weft_build(b, WEFT_OP_iota, 0, NULL, 1, &only, &line), &indices, &axis);
    const weft_val mask = weft_build_binary(b, WEFT_OP_eq, index, spread(b, first, &indices, axis));
    return weft_build_cast(b, mask, type.dtype);
}

/* --- types ------------------------------------------------------------------------------------------------------ */

weft_val weft_widen(struct weft_builder *b, weft_val x)
{
    const struct weft_type *type = weft_type_of(b->graph, x);
    const bool narrow = weft_dtype_is_float(type->dtype) && weft_dtype_bits(type->dtype) < 32;
    const weft_val before = weft_before_rounding(b->graph, x);
    return before.id ? before : narrow ? weft_build_cast(b, x, WEFT_F32) : x;
}

weft_val weft_narrow(struct weft_builder *b, weft_val x, int dtype)
{
    struct weft_type type = *weft_type_of(b->graph, x);
    const bool is_loose = type.dtype == WEFT_F32 && weft_dtype_is_half(dtype);
    const struct weft_attr loose = weft_attr_of_int(WEFT_ATTR_loose, 1);
    if (type.dtype == dtype)
        return x;
    type.dtype = (uint8_t)dtype;
    return weft_build(b, WEFT_OP_cast, 1, &x, is_loose, &loose, &type);
}

weft_val weft_build_wide(struct weft_builder *b, weft_node n)
{
    struct weft_graph *const g = b->graph;
    const unsigned operands = g->node[n.id].operands;
    weft_val *const operand = weft_new(&g->root->scratch, weft_val, operands);
    struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    type.dtype = WEFT_F32;
    for (unsigned i = 0; i < operands; i++)
        operand[i] = weft_widen(b, weft_operand(g, n, i));
    return weft_rebuild(b, n, operand, &type);
}

weft_val weft_before_rounding(const struct weft_graph *graph, weft_val v)
{
    const weft_node n = weft_def(graph, v);
    const bool is_loose = n.id && weft_opcode_of(graph, n) == WEFT_OP_cast && weft_attr_int(graph, n, WEFT_ATTR_loose);
    return is_loose ? weft_operand(graph, n, 0) : WEFT_NO_VALUE;
}

/* --- powers ------------------------------------------------------------------------------------------------------- */

/* x ^ 3, which the gelu of older models is written with, as two products: within 1.5 ULP where no product is below the
 * normal numbers, and infinite where x ^ 3 is. */
static weft_val cube(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    struct weft_element power;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    if (!weft_dtype_is_float(dtype) || !weft_const_splat(g, weft_operand(g, n, 1), &power) || power.real != 3 ||
        !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val x = weft_widen(b, weft_operand(g, n, 0));
    return weft_narrow(b, weft_build_binary(b, WEFT_OP_mul, weft_build_binary(b, WEFT_OP_mul, x, x), x), dtype);
}

static const struct weft_rule rules[] = {
    {"softmax",     WEFT_OP_softmax,     softmax,    "exp(x - max) over its sum"},
    {"log_softmax", WEFT_OP_log_softmax, softmax,    "x - max - log of the sum of exp(x - max)"},
    {"hardmax",     WEFT_OP_hardmax,     hardmax,    "1 where the index is the first of the largest"},
    {"cube",        WEFT_OP_pow,         cube,       "x ^ 3 is x * x * x"},
};

bool weft_pass_decompose(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {
        WEFT_RULE_SET(rules),
        weft_decompose_norms,
        weft_decompose_activations,
        weft_decompose_pieces,
        weft_decompose_reductions,
        weft_decompose_contractions,
        weft_decompose_attention,
        weft_decompose_quantised,
        weft_decompose_narrow,
        weft_decompose_orders,
        weft_decompose_rounding,
    };
    return weft_apply_rules_unless(graph, "decompose", sets, sizeof sets / sizeof sets[0], NULL,
                                   target->kernel ? weft_target_computes : NULL, target);
}
