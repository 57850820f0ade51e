/* SPDX-License-Identifier: Apache-2.0 */
/* scale_result: scale the result of a product instead of its quantised weights.
 *
 *   %q: f32[4096,1024] = cast %w                        %q: f32[4096,1024] = cast %w
 *   %b: f32[4096,1024] = bcast %s dims=[1]              %y: f32[1,1024] = matmul %x, %q
 *   %d: f32[4096,1024] = mul %q, %b               →     %b: f32[1,1024] = bcast %s dims=[1]
 *   %y: f32[1,1024] = matmul %x, %d                     %z: f32[1,1024] = mul %y, %b
 *
 * Weights that were quantised are whole numbers of 8 bits, times a factor that is constant or one for each column. A
 * product is linear in them, so the factor may come last, where it is an epilogue. What is left of the weights is
 * computed while compiling (passes/constants.h), and packed as numbers of 8 bits where few rows wait for them
 * (weft_format_wants_small): a quarter of the bytes.
 *
 * Why not where rows are many: arithmetic is what they take, on weights of f32, and the factor would be one more pass
 * over registers. Why not a kernel that scales what it reads: that is another instruction for each vector of weights,
 * of which one row has one multiply-add each.
 * Rounds elsewhere: one rounding for each result instead of one for each weight. A sum beyond the range of f32 may be
 * infinite where the scaled one was not.
 * Needs: nothing. fold_batchnorm, which does the opposite, asks weft_keeps_small_weights.
 * Not done: factors that change along the sums (blocks of rows, as MatMulNBits has), weights in batches, trans_b (one
 * row by columns that lie along the sum is a dot product, which has no loops for small types). */
#include "passes/passes.h"
#include "sched/alias.h"
#include "sched/format.h"
#include "sched/step.h"

#include <math.h>

enum { DEPTH = 16, MOST_VALUES = 256 }; /* nodes between integers and weights; values that are looked at */
#define MOST_WHOLE   0x1p32
#define MOST_FACTOR  0x1p64
#define LEAST_FACTOR 0x1p-64

/* --- whole numbers ------------------------------------------------------------------------------------------------ */

static bool is_small_integer(const struct weft_graph *g, weft_val v)
{
    const int dtype = weft_type_of(g, v)->dtype;
    return !weft_dtype_is_float(dtype) && weft_dtype_bits(dtype) <= 8;
}

static bool is_whole_constant(const struct weft_graph *g, weft_val v)
{
    struct weft_element element;
    if (!weft_dtype_is_float(weft_type_of(g, v)->dtype))
        return true;
    return weft_const_splat(g, v, &element) && element.real == floor(element.real) && fabs(element.real) <= MOST_WHOLE;
}

/* Is v made of integer constants, by what keeps them whole? Recursion is at most `depth` deep, and looks at `*left`
 * values. */
static bool is_whole(const struct weft_graph *g, weft_val v, int depth, int *left)
{
    const weft_node n = weft_def(g, v);
    if (!n.id || depth == 0 || --*left < 0 || weft_is_decided(g, n))
        return false;
    if (weft_is_const(g, v))
        return is_whole_constant(g, v);
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_cast: /* rounds a float to an integer */
        if (is_small_integer(g, v) && weft_is_const(g, weft_operand(g, n, 0)))
            return true;
        break;
    case WEFT_OP_sub: case WEFT_OP_bit_and: case WEFT_OP_shift_right: case WEFT_OP_concat:
        break;
    default:
        if (!weft_is_moved(g, n))
            return false;
    }
    bool whole = true;
    for (unsigned i = 0; i < g->node[n.id].operands && whole; i++)
        whole = is_whole(g, weft_operand(g, n, i), depth - 1, left);
    return whole;
}

/* Whole numbers that come from integers of 8 bits: a difference from a zero point may have 9. */
static bool is_quantised(const struct weft_graph *g, weft_val v)
{
    int left = MOST_VALUES;
    if (weft_is_const(g, v) || !is_whole(g, v, DEPTH, &left))
        return false;
    while (!is_small_integer(g, v) && !weft_is_const(g, v))
        v = weft_operand(g, weft_def(g, v), 0);
    return is_small_integer(g, v);
}

/* --- the product -------------------------------------------------------------------------------------------------- */

/* Would its kernel read constant weights in elements smaller than f32, if they have such numbers? At the hints. */
static bool wants_small(struct weft_graph *g, const struct weft_target *target, weft_node n)
{
    const struct weft_formats f = {.graph = g, .target = target, .arena = &g->root->scratch};
    return weft_step_is_f32(g, n) && weft_format_wants_small(&f, n);
}

bool weft_keeps_small_weights(struct weft_graph *g, const struct weft_target *target, weft_node n)
{
    const weft_val weights = weft_operand(g, n, 1);
    if (weft_opcode_of(g, n) != WEFT_OP_matmul || weft_type_of(g, weights)->rank != 2 || !wants_small(g, target, n))
        return false;
    return weft_step_numbers(g, weights, target->cpu) != WEFT_K_F32;
}

struct scaling {
    weft_node mul;
    weft_val weights, factor; /* the factor: a uniform constant, or a constant vector of one for each column */
};

/* Whole numbers times such a factor neither overflow nor lose bits: scaled weights are what the text says they are. NaN
 * is none. */
static bool is_harmless(double factor)
{
    return factor == 0 || (fabs(factor) >= LEAST_FACTOR && fabs(factor) <= MOST_FACTOR);
}

/* Is v the same in each column, and constant? */
static bool is_factor(struct weft_graph *g, weft_val v, int column_axis, struct scaling *ret)
{
    struct weft_element element;
    if (weft_const_splat(g, v, &element)) {
        ret->factor = v;
        return is_harmless(element.real);
    }
    const weft_node def = weft_def(g, v);
    if (!def.id || weft_opcode_of(g, def) != WEFT_OP_bcast)
        return false;
    ret->factor = weft_operand(g, def, 0);
    const struct weft_type *const type = weft_type_of(g, ret->factor);
    if (!weft_is_const(g, ret->factor) || type->rank != 1 ||
        !weft_dim_is(weft_attr_at(g, def, WEFT_ATTR_dims, 0), column_axis))
        return false;
    const int64_t columns = weft_dim_value(type->extent[0]);
    double *const factor = weft_new(&g->root->scratch, double, columns);
    bool harmless = true;
    weft_read_reals(g, ret->factor, factor);
    for (int64_t i = 0; i < columns; i++)
        harmless &= is_harmless(factor[i]);
    return harmless;
}

static bool find_scaling(struct weft_graph *g, weft_node n, struct scaling *ret)
{
    const weft_val weights = weft_operand(g, n, 1);
    ret->mul = weft_def(g, weights);
    if (!ret->mul.id || weft_opcode_of(g, ret->mul) != WEFT_OP_mul || weft_is_decided(g, ret->mul) ||
        weft_type_of(g, weights)->rank != 2 || !weft_type_is_constant(weft_type_of(g, weights)))
        return false;
    const int column_axis = weft_attr_int(g, n, WEFT_ATTR_trans_b) ? 0 : 1;
    for (unsigned k = 0; k < 2; k++) {
        ret->weights = weft_operand(g, ret->mul, k);
        if (is_quantised(g, ret->weights) && is_factor(g, weft_operand(g, ret->mul, 1 - k), column_axis, ret))
            return true;
    }
    return false;
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

/* The factor for each result. */
static weft_val build_factor(struct weft_builder *b, weft_val factor, const struct weft_type *type)
{
    struct weft_element element;
    if (weft_const_splat(b->graph, factor, &element))
        return weft_build_element(b, type, &element);
    const int last = type->rank - 1;
    return weft_build_bcast(b, factor, type, &last);
}

static weft_val of_weights(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct scaling s;
    if (!find_scaling(g, n, &s))
        return WEFT_NO_VALUE;
    const weft_val result = weft_result(g, n, 0);
    const char *const why = !weft_has_one_use(g, weft_operand(g, n, 1)) ? "others read the scaled weights"
                            : !wants_small(g, r->facts, n)
                                ? "the product would not read weights of 8 bits: it has more than a few rows, is "
                                  "small, or its weights lie along the sums"
                                : NULL;
    if (why) {
        weft_refuse(g, r->pass, result, "%s", why);
        return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_node_info old = g->node[n.id];
    const weft_val operand[] = {weft_operand(g, n, 0), s.weights};
    const struct weft_type type = *weft_type_of(g, result);
    const weft_val product = weft_build(&r->build, old.op, 2, operand, old.attrs, old.attr, NULL);
    g->node[weft_def(g, product).id].name = old.name;
    g->node[weft_def(g, product).id].line = old.line;
    return weft_build_binary(&r->build, WEFT_OP_mul, product, build_factor(&r->build, s.factor, &type));
}

static const struct weft_rule rules[] = {
    {"matmul", WEFT_OP_matmul, of_weights, "a product is linear in its weights, which are whole numbers unscaled"},
};

bool weft_pass_scale_result(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules_with(graph, "scale_result", sets, 1, target);
}
