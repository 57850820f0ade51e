/* SPDX-License-Identifier: Apache-2.0 */
/* canonicalize: one form for each thing, so that later passes need one pattern for it.
 *
 *   %one: f32[8] = const value=1
 *   %a: f32[8] = mul %one, %x                  %b: f32[8] = neg %x
 *   %b: f32[8] = neg %a                  →     return %b
 *   return %b
 *
 * Local rules over the walk of rules.c: neutral elements, pairs that undo each other, casts that lose nothing,
 * constants as the right operand. The rules about views are in canonicalize_view.c, those about signs, truths and
 * integers in canonicalize_algebra.c, those about ops that turn out to change nothing in canonicalize_identity.c, those
 * about what is repeated in canonicalize_repeat.c. A rule fires only if every bit of the result stays, signed zeros
 * included, and every NaN stays one, so nothing here depends on what the caller tolerates:
 *
 *   x + 0     x - 0 is x for every x, and so is x + (-0). But -0 + 0 is 0: adding the positive zero may be dropped
 *             only where x cannot be -0 (integers, exp, abs, …). Exporters seldom write `+ 0`; 1 / (x + 0) would tell
 *             them apart.
 *   x * 0     is NaN for infinite x and -0 for negative x: only integers become 0. x - x likewise.
 *   x / c     becomes x * (1/c) if c is a power of two and 1/c is a normal number: then both round the same real
 *             number.
 *   x ^ 2     becomes x * x, which is rounded correctly; x ^ 0.5 stays, because pow and sqrt differ for -0 and -inf.
 *   casts     A → B → C becomes A → C if B holds every value of A, and if A → C converts like B → C does: a float and
 *             an integer of the same value may become different integers where the type is too narrow, so i8 → f32 → u8
 *             stays.
 *   min, max  of zeros of both signs may give either, so they commute like the rest.
 *
 * Why constants to the right: whoever looks for a bias or a scale looks at one operand.
 * Needs: nothing.
 * Not done: reassociation, which changes rounding; factoring; anything that needs the range of a value. */
#include "passes/passes.h"

#include <math.h>

static const struct weft_type *type_at(const struct weft_graph *g, weft_node n, unsigned operand)
{
    return weft_type_of(g, weft_operand(g, n, operand));
}

/* Are all elements of this operand the number `wanted`? Zeros of both signs are told apart. */
static bool is_splat(const struct weft_graph *g, weft_node n, unsigned operand, double wanted)
{
    struct weft_element element;
    if (!weft_const_splat(g, weft_operand(g, n, operand), &element))
        return false;
    if (element.is_integer)
        return !signbit(wanted) && element.integer == (int64_t)wanted;
    return element.real == wanted && !signbit(element.real) == !signbit(wanted);
}

/* --- order of operands ------------------------------------------------------------------------------------------ */

/* How constant a value is: a const, a broadcast of one, anything else. */
static int constancy(const struct weft_graph *g, weft_val v)
{
    if (weft_is_const(g, v))
        return 2;
    return weft_def_opcode(g, v) == WEFT_OP_bcast && weft_is_const(g, weft_operand(g, weft_def(g, v), 0));
}

static weft_val const_right(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    if (!(weft_op_of(g, n)->traits & WEFT_COMMUTATIVE))
        return WEFT_NO_VALUE;
    const weft_val a = weft_operand(g, n, 0), b = weft_operand(g, n, 1);
    if (constancy(g, a) <= constancy(g, b) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_swap_operands(g, n);
    return weft_result(g, n, 0);
}

/* --- neutral and absorbing elements ----------------------------------------------------------------------------- */

/* Some ops cannot make it. */
bool weft_has_no_negative_zero(const struct weft_graph *g, weft_val v)
{
    if (!weft_dtype_is_float(weft_type_of(g, v)->dtype))
        return true;
    const weft_node def = weft_def(g, v);
    struct weft_element element;
    if (weft_op_of(g, def)->traits & WEFT_UNSIGNED_ZERO)
        return true;
    switch (weft_opcode_of(g, def)) {
    case WEFT_OP_mul:
        return weft_is(weft_operand(g, def, 0), weft_operand(g, def, 1));
    case WEFT_OP_add: /* only -0 + (-0) is -0 */
        return weft_const_splat(g, weft_operand(g, def, 1), &element) && !(element.real == 0 && signbit(element.real));
    case WEFT_OP_cast:
        return !weft_dtype_is_float(type_at(g, def, 0)->dtype);
    default:
        return false;
    }
}

static weft_val add_zero(struct weft_rewriting *r, weft_node n)
{
    const weft_val x = weft_operand(r->graph, n, 0);
    if (is_splat(r->graph, n, 1, -0.0) || (is_splat(r->graph, n, 1, 0.0) && weft_has_no_negative_zero(r->graph, x)))
        return weft_rewrite_to(r, x);
    return WEFT_NO_VALUE;
}

static weft_val sub_zero(struct weft_rewriting *r, weft_node n)
{
    return is_splat(r->graph, n, 1, 0.0) ? weft_rewrite_to(r, weft_operand(r->graph, n, 0)) : WEFT_NO_VALUE;
}

static weft_val times_one(struct weft_rewriting *r, weft_node n)
{
    return is_splat(r->graph, n, 1, 1.0) ? weft_rewrite_to(r, weft_operand(r->graph, n, 0)) : WEFT_NO_VALUE;
}

static weft_val zero_of(struct weft_rewriting *r, weft_node n)
{
    const struct weft_type type = *weft_type_of(r->graph, weft_result(r->graph, n, 0));
    if (weft_dtype_is_float(type.dtype) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_build_splat(&r->build, &type, 0);
}

static weft_val mul_zero(struct weft_rewriting *r, weft_node n)
{
    return is_splat(r->graph, n, 1, 0.0) ? zero_of(r, n) : WEFT_NO_VALUE;
}

static weft_val sub_self(struct weft_rewriting *r, weft_node n)
{
    return weft_is(weft_operand(r->graph, n, 0), weft_operand(r->graph, n, 1)) ? zero_of(r, n) : WEFT_NO_VALUE;
}

/* min, max, and, or of a value with itself. */
static weft_val both_same(struct weft_rewriting *r, weft_node n)
{
    const weft_val x = weft_operand(r->graph, n, 0);
    return weft_is(x, weft_operand(r->graph, n, 1)) ? weft_rewrite_to(r, x) : WEFT_NO_VALUE;
}

static weft_val logic_const(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const bool yes = is_splat(g, n, 1, 1), no = is_splat(g, n, 1, 0);
    const int op = weft_opcode_of(g, n);
    if (!yes && !no)
        return WEFT_NO_VALUE;
    if (op == WEFT_OP_and ? yes : no) /* or, xor with false */
        return weft_rewrite_to(r, weft_operand(g, n, 0));
    return op == WEFT_OP_xor ? WEFT_NO_VALUE : weft_rewrite_to(r, weft_operand(g, n, 1));
}

/* --- division and powers ---------------------------------------------------------------------------------------- */

/* Exponent of the smallest normal number. */
static int lowest_exponent(int dtype)
{
    switch (dtype) {
    case WEFT_F64: return -1022;
    case WEFT_F16: return -14;
    default: return -126; /* f32 and bf16 */
    }
}

static weft_val div_power_of_two(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    struct weft_element divisor;
    int exponent;
    if (!weft_dtype_is_float(type.dtype) || !weft_const_splat(g, weft_operand(g, n, 1), &divisor) ||
        !isfinite(divisor.real) || fabs(frexp(divisor.real, &exponent)) != 0.5)
        return WEFT_NO_VALUE;
    /* divisor = ±2^(exponent - 1), so the reciprocal is ±2^(1 - exponent); the largest exponent is 1 - lowest. */
    const int lowest = lowest_exponent(type.dtype), reciprocal = 1 - exponent;
    if (reciprocal < lowest || reciprocal > 1 - lowest || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val factor = weft_build_splat(&r->build, &type, 1 / divisor.real);
    return weft_build_binary(&r->build, WEFT_OP_mul, weft_operand(g, n, 0), factor);
}

static weft_val pow_two(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    if (!is_splat(g, n, 1, 2.0) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_build_binary(&r->build, WEFT_OP_mul, x, x);
}

/* --- pairs ------------------------------------------------------------------------------------------------------ */

/* f(f(x)) = x: neg, not. */
static weft_val undone(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val inner = weft_operand(g, n, 0);
    if (weft_def_opcode(g, inner) != weft_opcode_of(g, n))
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, weft_def(g, inner), 0));
}

/* f(g(x)) = g(x) where g makes what f asks for: relu, abs, sign, and rounding of what has been rounded. */
static weft_val idempotent(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val inner = weft_operand(g, n, 0);
    const int outer_op = weft_opcode_of(g, n), inner_op = weft_def_opcode(g, inner);
    const bool fits = outer_op == inner_op || (weft_ops[outer_op].traits & weft_ops[inner_op].traits & WEFT_ROUNDING);
    return fits ? weft_rewrite_to(r, inner) : WEFT_NO_VALUE;
}

static weft_val abs_neg(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val inner = weft_operand(g, n, 0);
    const int dtype = weft_type_of(g, inner)->dtype;
    const bool has_sign = weft_dtype_is_float(dtype) || weft_dtype_is_signed(dtype); /* else a negation wraps upwards */
    if (!has_sign || weft_def_opcode(g, inner) != WEFT_OP_neg || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_replace_operand(g, n, 0, weft_operand(g, weft_def(g, inner), 0));
    return weft_result(g, n, 0);
}

static weft_val select_known(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    if (weft_is(weft_operand(g, n, 1), weft_operand(g, n, 2)))
        return weft_rewrite_to(r, weft_operand(g, n, 1));
    struct weft_element condition;
    if (!weft_const_splat(g, weft_operand(g, n, 0), &condition))
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, condition.integer != 0 ? 1 : 2));
}

/* --- casts ------------------------------------------------------------------------------------------------------ */

struct float_format {
    int precision;            /* significant bits, the hidden one included */
    int lowest, highest;      /* exponents of normal numbers */
    bool infinity;
};

static struct float_format float_format(int dtype)
{
    switch (dtype) {
    case WEFT_F64: return (struct float_format){53, -1022, 1023, true};
    case WEFT_F32: return (struct float_format){24, -126, 127, true};
    case WEFT_BF16: return (struct float_format){8, -126, 127, true};
    case WEFT_F16: return (struct float_format){11, -14, 15, true};
    case WEFT_F8E5M2: return (struct float_format){3, -14, 15, true};
    default: return (struct float_format){4, -6, 8, false}; /* f8e4m3: no infinity */
    }
}

static bool is_signed(int dtype) { return weft_dtype_is_signed(dtype); }

/* Bits that the magnitude of an integer may need; the lowest number, -2^bits, is a power of two and needs one. */
static int magnitude_bits(int dtype)
{
    return dtype == WEFT_BOOL ? 1 : (int)weft_dtype_bits(dtype) - is_signed(dtype);
}

/* Does `to` hold every value of `from`? */
static bool holds(int to, int from)
{
    if (to == from || from == WEFT_BOOL)
        return true;
    if (to == WEFT_BOOL)
        return false;
    const bool from_float = weft_dtype_is_float(from), to_float = weft_dtype_is_float(to);
    if (from_float && !to_float)
        return false;
    if (!from_float && !to_float)
        return magnitude_bits(to) >= magnitude_bits(from) && (is_signed(to) || !is_signed(from));
    const struct float_format wide = float_format(to);
    if (!from_float)
        return wide.precision >= magnitude_bits(from) && wide.highest >= magnitude_bits(from);
    const struct float_format narrow = float_format(from);
    const int smallest_narrow = narrow.lowest - narrow.precision, smallest_wide = wide.lowest - wide.precision;
    return wide.precision >= narrow.precision && wide.highest >= narrow.highest && smallest_wide <= smallest_narrow &&
           (wide.infinity || !narrow.infinity);
}

static weft_val cast_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    if (type_at(g, n, 0)->dtype != weft_type_of(g, weft_result(g, n, 0))->dtype)
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, 0));
}

static weft_val cast_cast(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, inner) != WEFT_OP_cast || weft_attr_find(g, n, WEFT_ATTR_saturate))
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, inner, 0);
    const int a = weft_type_of(g, x)->dtype, b = type_at(g, n, 0)->dtype;
    const int c = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const bool same_conversion =
        weft_dtype_is_float(a) == weft_dtype_is_float(b) || weft_dtype_is_float(c) || c == WEFT_BOOL;
    const bool saturates = a == WEFT_F8E5M2 && c == a; /* the only type that loses its infinities by its own cast */
    if (saturates || !holds(b, a) || !(same_conversion || holds(c, a)))
        return WEFT_NO_VALUE;
    if (a == c)
        return weft_rewrite_to(r, x);
    return weft_rewrite_begin(r) ? weft_build_cast(&r->build, x, c) : WEFT_NO_VALUE;
}

/* --- the table -------------------------------------------------------------------------------------------------- */

static const struct weft_rule rules[] = {
    {"const_right",      WEFT_OP_NONE,   const_right,      "the op is commutative; constants stand right"},
    {"add_zero",         WEFT_OP_add,    add_zero,         "adding this zero changes no element"},
    {"sub_zero",         WEFT_OP_sub,    sub_zero,         "x - 0 is x"},
    {"sub_self",         WEFT_OP_sub,    sub_self,         "x - x is 0 for integers"},
    {"mul_one",          WEFT_OP_mul,    times_one,        "x * 1 is x"},
    {"mul_zero",         WEFT_OP_mul,    mul_zero,         "x * 0 is 0 for integers"},
    {"div_one",          WEFT_OP_div,    times_one,        "x / 1 is x"},
    {"div_power_of_two", WEFT_OP_div,    div_power_of_two, "the reciprocal of a power of two is exact"},
    {"pow_one",          WEFT_OP_pow,    times_one,        "x ^ 1 is x"},
    {"pow_two",          WEFT_OP_pow,    pow_two,          "x ^ 2 is x * x"},
    {"neg_neg",          WEFT_OP_neg,    undone,           "- - x is x"},
    {"not_not",          WEFT_OP_not,    undone,           "not not x is x"},
    {"abs_neg",          WEFT_OP_abs,    abs_neg,          "|-x| is |x|"},
    {"abs_abs",          WEFT_OP_abs,    idempotent,       "it is not negative already"},
    {"relu_relu",        WEFT_OP_relu,   idempotent,       "it is not negative already"},
    {"sign_sign",        WEFT_OP_sign,   idempotent,       "it is a sign already"},
    {"floor_rounded",    WEFT_OP_floor,  idempotent,       "it is rounded already"},
    {"ceil_rounded",     WEFT_OP_ceil,   idempotent,       "it is rounded already"},
    {"round_rounded",    WEFT_OP_round,  idempotent,       "it is rounded already"},
    {"trunc_rounded",    WEFT_OP_trunc,  idempotent,       "it is rounded already"},
    {"min_same",         WEFT_OP_min,    both_same,        "both operands are the same"},
    {"max_same",         WEFT_OP_max,    both_same,        "both operands are the same"},
    {"and_same",         WEFT_OP_and,    both_same,        "both operands are the same"},
    {"or_same",          WEFT_OP_or,     both_same,        "both operands are the same"},
    {"and_const",        WEFT_OP_and,    logic_const,      "one operand is known"},
    {"or_const",         WEFT_OP_or,     logic_const,      "one operand is known"},
    {"xor_const",        WEFT_OP_xor,    logic_const,      "one operand is known"},
    {"select_known",     WEFT_OP_select, select_known,     "it is known what is selected"},
    {"cast_same",        WEFT_OP_cast,   cast_same,        "the type is the same"},
    {"cast_cast",        WEFT_OP_cast,   cast_cast,        "the type between holds every value"},
};

bool weft_pass_canonicalize(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules), weft_canonicalize_algebra, weft_canonicalize_views,
                                         weft_canonicalize_identities, weft_canonicalize_repeats};
    return weft_apply_rules(graph, "canonicalize", sets, 5);
}
