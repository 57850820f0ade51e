/* SPDX-License-Identifier: Apache-2.0 */
/* canonicalize_algebra.c: the rules of canonicalize about signs, truths, and integers.
 *
 *   %n: f32[8] = neg %y                        %r: f32[8] = sub %x, %y
 *   %r: f32[8] = add %x, %n              →
 *   %k: u8[8] = const value=8                  %three: u8[8] = const value=3
 *   %d: u8[8] = div %u, %k                     %d: u8[8] = shift_right %u, %three
 *
 * On floats only what IEEE 754 says to be the same for each pair of operands, zeros of both signs and infinities
 * included; a NaN stays one, but perhaps of another sign:
 *
 *   x + (-y) is x - y, and x - (-y) is x + y: subtraction is defined so. -(x - y) is not y - x: for equal ones it
 *   is -0.
 *   (-0) - x is -x; 0 - x is not: for x = 0 it is 0, and -x is -0. On integers it is.
 *   (-x) · (-y) is x · y, for quotients too; x · (-1) is -x.
 *   x ≠ x says that x is a NaN; x < x is false. `not` may turn = and ≠ around, but not < and ≥: a NaN is neither.
 *   min(min(x, y), y) is min(x, y); max(x, 0) is relu(x), where the sign of a zero may be either.
 *
 * Integers wrap, so that sums and products may be put into any order: constants meet. A floored quotient by 2^n is a
 * shift, of unsigned ones a truncated quotient as well, and a floored remainder is a bit pattern: division is the one
 * operation that no processor does on vectors. A product stays a product, which one does. */
#include "passes/passes.h"

#include <math.h>

static weft_val result_of(const struct weft_rewriting *r, weft_node n) { return weft_result(r->graph, n, 0); }

static int dtype_of(const struct weft_rewriting *r, weft_node n)
{
    return weft_type_of(r->graph, result_of(r, n))->dtype;
}

/* The operand that a value is op of, or none. */
static weft_val inside(const struct weft_graph *g, weft_val v, int op)
{
    return weft_def_opcode(g, v) == op ? weft_operand(g, weft_def(g, v), 0) : WEFT_NO_VALUE;
}

static weft_val replace_by(struct weft_rewriting *r, int op, weft_val x, weft_val y)
{
    return weft_rewrite_begin(r) ? weft_build_binary(&r->build, op, x, y) : WEFT_NO_VALUE;
}

static weft_val replace_by_one(struct weft_rewriting *r, int op, weft_val x)
{
    return weft_rewrite_begin(r) ? weft_build_unary(&r->build, op, x) : WEFT_NO_VALUE;
}

static weft_val splat_of(struct weft_rewriting *r, weft_node n, double value)
{
    const struct weft_type type = *weft_type_of(r->graph, result_of(r, n));
    return weft_rewrite_begin(r) ? weft_build_splat(&r->build, &type, value) : WEFT_NO_VALUE;
}

/* --- signs ------------------------------------------------------------------------------------------------------ */

static weft_val add_neg(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    for (unsigned i = 0; i < 2; i++) {
        const weft_val y = inside(g, weft_operand(g, n, i), WEFT_OP_neg);
        if (y.id)
            return replace_by(r, WEFT_OP_sub, weft_operand(g, n, 1 - i), y);
    }
    return WEFT_NO_VALUE;
}

static weft_val sub_neg(struct weft_rewriting *r, weft_node n)
{
    const weft_val y = inside(r->graph, weft_operand(r->graph, n, 1), WEFT_OP_neg);
    return y.id ? replace_by(r, WEFT_OP_add, weft_operand(r->graph, n, 0), y) : WEFT_NO_VALUE;
}

static weft_val zero_sub(struct weft_rewriting *r, weft_node n)
{
    struct weft_element zero;
    if (!weft_const_splat(r->graph, weft_operand(r->graph, n, 0), &zero) ||
        (zero.is_integer ? zero.integer != 0 : zero.real != 0 || !signbit(zero.real)))
        return WEFT_NO_VALUE;
    return replace_by_one(r, WEFT_OP_neg, weft_operand(r->graph, n, 1));
}

/* Of products and quotients. */
static weft_val both_neg(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const int op = weft_opcode_of(g, n);
    const weft_val x = inside(g, weft_operand(g, n, 0), WEFT_OP_neg), y = inside(g, weft_operand(g, n, 1), WEFT_OP_neg);
    const bool fits = x.id && y.id && (op == WEFT_OP_mul || weft_dtype_is_float(dtype_of(r, n)));
    return fits ? replace_by(r, op, x, y) : WEFT_NO_VALUE;
}

static weft_val times_minus_one(struct weft_rewriting *r, weft_node n)
{
    struct weft_element one;
    const int dtype = dtype_of(r, n);
    if (!(weft_dtype_is_float(dtype) || weft_dtype_is_signed(dtype)) ||
        !weft_const_splat(r->graph, weft_operand(r->graph, n, 1), &one) ||
        (one.is_integer ? one.integer != -1 : one.real != -1))
        return WEFT_NO_VALUE;
    return replace_by_one(r, WEFT_OP_neg, weft_operand(r->graph, n, 0));
}

static weft_val neg_sub(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    if (weft_dtype_is_float(dtype_of(r, n)) || weft_def_opcode(g, x) != WEFT_OP_sub)
        return WEFT_NO_VALUE;
    return replace_by(r, WEFT_OP_sub, weft_operand(g, weft_def(g, x), 1), weft_operand(g, weft_def(g, x), 0));
}

/* --- extremes, choices, truths ---------------------------------------------------------------------------------- */

/* f(f(x, y), y) is f(x, y): min, max, and, or, bit_and, bit_or. */
static weft_val absorbed(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    for (unsigned i = 0; i < 2; i++) {
        const weft_val outer = weft_operand(g, n, 1 - i), inner = weft_operand(g, n, i);
        if (weft_def_opcode(g, inner) == weft_opcode_of(g, n) &&
            (weft_is(weft_operand(g, weft_def(g, inner), 0), outer) ||
             weft_is(weft_operand(g, weft_def(g, inner), 1), outer)))
            return weft_rewrite_to(r, inner);
    }
    return WEFT_NO_VALUE;
}

static weft_val max_zero(struct weft_rewriting *r, weft_node n)
{
    struct weft_element zero;
    if (!weft_const_splat(r->graph, weft_operand(r->graph, n, 1), &zero) ||
        (zero.is_integer ? zero.integer != 0 : zero.real != 0))
        return WEFT_NO_VALUE;
    return replace_by_one(r, WEFT_OP_relu, weft_operand(r->graph, n, 0));
}

/* Is a value of bools all true or all false? */
static bool is_truth(const struct weft_graph *g, weft_val v, bool *ret)
{
    struct weft_element element;
    if (weft_type_of(g, v)->dtype != WEFT_BOOL || !weft_const_splat(g, v, &element))
        return false;
    *ret = element.integer != 0;
    return true;
}

static weft_val select_truth(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val condition = weft_operand(g, n, 0);
    bool yes, no;
    if (!is_truth(g, weft_operand(g, n, 1), &yes) || !is_truth(g, weft_operand(g, n, 2), &no) || yes == no)
        return WEFT_NO_VALUE;
    return yes ? weft_rewrite_to(r, condition) : replace_by_one(r, WEFT_OP_not, condition);
}

static weft_val select_not(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val condition = inside(g, weft_operand(g, n, 0), WEFT_OP_not);
    if (!condition.id || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val operand[] = {condition, weft_operand(g, n, 2), weft_operand(g, n, 1)};
    return weft_build(&r->build, WEFT_OP_select, 3, operand, 0, NULL, NULL);
}

/* eq and ne with a constant truth, xor with true. */
static weft_val with_truth(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    bool truth;
    if (!is_truth(g, weft_operand(g, n, 1), &truth))
        return WEFT_NO_VALUE;
    const bool turns = weft_opcode_of(g, n) == WEFT_OP_eq ? !truth : truth;
    return turns ? replace_by_one(r, WEFT_OP_not, x) : weft_rewrite_to(r, x);
}

static weft_val compare_self(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const int op = weft_opcode_of(g, n);
    if (!weft_is(x, weft_operand(g, n, 1)))
        return WEFT_NO_VALUE;
    const int dtype = weft_type_of(g, x)->dtype;
    if (op == WEFT_OP_lt || op == WEFT_OP_gt || op == WEFT_OP_xor)
        return splat_of(r, n, 0);
    if (!weft_dtype_is_float(dtype))
        return splat_of(r, n, op != WEFT_OP_ne);
    if (op == WEFT_OP_ne && !weft_dtype_is_storage_only(dtype))
        return replace_by_one(r, WEFT_OP_is_nan, x);
    return WEFT_NO_VALUE;
}

static weft_val not_compare(struct weft_rewriting *r, weft_node n)
{
    static const uint8_t opposite[WEFT_OP_COUNT] = {
        [WEFT_OP_eq] = WEFT_OP_ne, [WEFT_OP_ne] = WEFT_OP_eq, [WEFT_OP_lt] = WEFT_OP_ge,
        [WEFT_OP_ge] = WEFT_OP_lt, [WEFT_OP_gt] = WEFT_OP_le, [WEFT_OP_le] = WEFT_OP_gt,
    };
    const struct weft_graph *g = r->graph;
    const weft_val inner = weft_operand(g, n, 0);
    const int op = weft_def_opcode(g, inner);
    if (!opposite[op])
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, weft_def(g, inner), 0);
    if (op != WEFT_OP_eq && op != WEFT_OP_ne && weft_dtype_is_float(weft_type_of(g, x)->dtype))
        return WEFT_NO_VALUE;
    return replace_by(r, opposite[op], x, weft_operand(g, weft_def(g, inner), 1));
}

/* --- integers --------------------------------------------------------------------------------------------------- */

/* (x + a) + b is x + (a + b), for whatever integers may be done in any order: constants meet, and fold_const does the
 * rest. Products of floats would round, overflow or underflow elsewhere. */
static weft_val constants_meet(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val inner = weft_operand(g, n, 0), b = weft_operand(g, n, 1);
    const int op = weft_opcode_of(g, n);
    if (weft_dtype_is_float(dtype_of(r, n)) || !weft_is_const(g, b) || weft_def_opcode(g, inner) != op ||
        weft_is_const(g, weft_operand(g, weft_def(g, inner), 0)))
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, weft_def(g, inner), 0), a = weft_operand(g, weft_def(g, inner), 1);
    struct weft_element unused;
    const bool small = weft_const_splat(g, a, &unused) && weft_const_splat(g, b, &unused);
    if (!small || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_build_binary(&r->build, op, x, weft_build_binary(&r->build, op, a, b));
}

/* n for 2^n, or -1; also where the elements are known, since nobody keeps track of what bits make of sizes: fold_shape
 * puts their values in. */
static int power_of_two(const struct weft_rewriting *r, weft_node n)
{
    struct weft_element divisor;
    if (weft_dtype_is_float(dtype_of(r, n)) || r->graph->value[result_of(r, n).id].content ||
        !weft_const_splat(r->graph, weft_operand(r->graph, n, 1), &divisor))
        return -1;
    const uint64_t bits = (uint64_t)divisor.integer;
    if (bits == 0 || bits & (bits - 1) || (weft_dtype_is_signed(dtype_of(r, n)) && divisor.integer < 0))
        return -1;
    return __builtin_ctzll(bits);
}

static weft_val quotient(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const int shift = power_of_two(r, n);
    const struct weft_type type = *weft_type_of(g, result_of(r, n));
    const bool floors = weft_opcode_of(g, n) == WEFT_OP_floor_div || !weft_dtype_is_signed(type.dtype);
    if (shift == 0)
        return weft_rewrite_to(r, weft_operand(g, n, 0));
    if (shift < 0 || !floors || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val amount = weft_build_splat(&r->build, &type, shift);
    return weft_build_binary(&r->build, WEFT_OP_shift_right, weft_operand(g, n, 0), amount);
}

static weft_val remainder_of(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const int shift = power_of_two(r, n);
    const struct weft_type type = *weft_type_of(g, result_of(r, n));
    const bool floors = !weft_dtype_is_signed(type.dtype) || weft_attr_word(g, n, WEFT_ATTR_form)[0] == 'f';
    if (shift < 0 || !floors || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_element ones = {.is_integer = true, .integer = (int64_t)((UINT64_C(1) << shift) - 1)};
    const weft_val mask = weft_build_element(&r->build, &type, &ones);
    return weft_build_binary(&r->build, WEFT_OP_bit_and, weft_operand(g, n, 0), mask);
}

/* bit_and, bit_or and bit_xor with no bits or all, shifts by nothing. */
static weft_val bits_const(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    struct weft_element element;
    if (!weft_const_splat(g, weft_operand(g, n, 1), &element))
        return WEFT_NO_VALUE;
    const int op = weft_opcode_of(g, n);
    const uint64_t all = UINT64_MAX >> (64 - weft_dtype_bits(dtype_of(r, n)));
    const bool none = element.integer == 0, full = ((uint64_t)element.integer & all) == all;
    if (op == WEFT_OP_bit_and ? full : none)
        return weft_rewrite_to(r, weft_operand(g, n, 0));
    if ((op == WEFT_OP_bit_and && none) || (op == WEFT_OP_bit_or && full))
        return weft_rewrite_to(r, weft_operand(g, n, 1));
    return op == WEFT_OP_bit_xor && full ? replace_by_one(r, WEFT_OP_bit_not, weft_operand(g, n, 0)) : WEFT_NO_VALUE;
}

/* x op x: bit_and, bit_or are x, bit_xor is 0. */
static weft_val bits_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    if (!weft_is(x, weft_operand(g, n, 1)))
        return WEFT_NO_VALUE;
    return weft_opcode_of(g, n) == WEFT_OP_bit_xor ? splat_of(r, n, 0) : weft_rewrite_to(r, x);
}

static weft_val bit_not_not(struct weft_rewriting *r, weft_node n)
{
    const weft_val x = inside(r->graph, weft_operand(r->graph, n, 0), WEFT_OP_bit_not);
    return x.id ? weft_rewrite_to(r, x) : WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"add_neg",          WEFT_OP_add,         add_neg,         "x + (-y) is x - y"},
    {"add_constants",    WEFT_OP_add,         constants_meet,  "sums of integers may be done in any order"},
    {"sub_neg",          WEFT_OP_sub,         sub_neg,         "x - (-y) is x + y"},
    {"zero_sub",         WEFT_OP_sub,         zero_sub,        "this zero minus x is -x"},
    {"mul_negs",         WEFT_OP_mul,         both_neg,        "two signs cancel"},
    {"mul_minus_one",    WEFT_OP_mul,         times_minus_one, "x * (-1) is -x"},
    {"mul_constants",    WEFT_OP_mul,         constants_meet,  "products of integers may be done in any order"},
    {"div_negs",         WEFT_OP_div,         both_neg,        "two signs cancel"},
    {"div_minus_one",    WEFT_OP_div,         times_minus_one, "x / (-1) is -x"},
    {"div_shift",        WEFT_OP_div,         quotient,        "an unsigned quotient by 2^n is a shift"},
    {"floor_div_shift",  WEFT_OP_floor_div,   quotient,        "a floored quotient by 2^n is a shift"},
    {"mod_mask",         WEFT_OP_mod,         remainder_of,    "a floored remainder by 2^n is the last n bits"},
    {"neg_sub",          WEFT_OP_neg,         neg_sub,         "-(x - y) is y - x for integers"},
    {"min_absorbed",     WEFT_OP_min,         absorbed,        "it is no larger already"},
    {"min_constants",    WEFT_OP_min,         constants_meet,  "the smallest of three is the same in any order"},
    {"max_zero",         WEFT_OP_max,         max_zero,        "max(x, 0) is relu(x)"},
    {"max_absorbed",     WEFT_OP_max,         absorbed,        "it is no smaller already"},
    {"max_constants",    WEFT_OP_max,         constants_meet,  "the largest of three is the same in any order"},
    {"and_absorbed",     WEFT_OP_and,         absorbed,        "the condition is asked for already"},
    {"or_absorbed",      WEFT_OP_or,          absorbed,        "the condition is allowed already"},
    {"xor_true",         WEFT_OP_xor,         with_truth,      "it is the other one"},
    {"xor_self",         WEFT_OP_xor,         compare_self,    "it does not differ from itself"},
    {"select_truth",     WEFT_OP_select,      select_truth,    "it is the condition or its opposite"},
    {"select_not",       WEFT_OP_select,      select_not,      "the operands change places instead"},
    {"eq_truth",         WEFT_OP_eq,          with_truth,      "it is the operand or its opposite"},
    {"ne_truth",         WEFT_OP_ne,          with_truth,      "it is the operand or its opposite"},
    {"eq_self",          WEFT_OP_eq,          compare_self,    "it equals itself"},
    {"ne_self",          WEFT_OP_ne,          compare_self,    "only a NaN differs from itself"},
    {"lt_self",          WEFT_OP_lt,          compare_self,    "nothing is less than itself"},
    {"gt_self",          WEFT_OP_gt,          compare_self,    "nothing is greater than itself"},
    {"le_self",          WEFT_OP_le,          compare_self,    "an integer equals itself"},
    {"ge_self",          WEFT_OP_ge,          compare_self,    "an integer equals itself"},
    {"not_compare",      WEFT_OP_not,         not_compare,     "the opposite comparison"},
    {"bit_and_const",    WEFT_OP_bit_and,     bits_const,      "all or none of the bits stay"},
    {"bit_or_const",     WEFT_OP_bit_or,      bits_const,      "all or none of the bits are set"},
    {"bit_xor_const",    WEFT_OP_bit_xor,     bits_const,      "all or none of the bits change"},
    {"bit_and_same",     WEFT_OP_bit_and,     bits_same,       "both operands are the same"},
    {"bit_or_same",      WEFT_OP_bit_or,      bits_same,       "both operands are the same"},
    {"bit_xor_same",     WEFT_OP_bit_xor,     bits_same,       "both operands are the same"},
    {"bit_and_constants", WEFT_OP_bit_and,    constants_meet,  "bits may be taken in any order"},
    {"shift_left_none",  WEFT_OP_shift_left,  bits_const,      "nothing is shifted"},
    {"shift_right_none", WEFT_OP_shift_right, bits_const,      "nothing is shifted"},
    {"bit_not_not",      WEFT_OP_bit_not,     bit_not_not,     "every bit changes twice"},
};
const struct weft_rule_set weft_canonicalize_algebra = WEFT_RULE_SET(rules);
