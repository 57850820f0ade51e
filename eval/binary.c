/* SPDX-License-Identifier: Apache-2.0 */
/* binary.c: elementwise ops of two operands: the rules that the rows of binary.def become.
 *
 * Integers wrap around in their width. A division by an integer zero gives 0, and so does its remainder: ONNX leaves it
 * open, and a kernel must not trap. Extremes of a NaN are NaN; comparisons with a NaN are false, but `ne`. */
#include "eval/rule.h"
#include "eval/types.h"

#include <math.h>

/* The sign of a floored remainder is the divisor's. */
static double floored_remainder(double a, double b)
{
    const double r = fmod(a, b);
    if (r == 0)
        return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

/* The quotient rounded down, from an exact remainder: a quotient that was rounded first may have reached the next
 * integer. */
static double floored_quotient(double a, double b)
{
    if (b == 0)
        return a / b;
    const double r = fmod(a, b), quotient = (a - r) / b - (r != 0 && (r < 0) != (b < 0));
    return quotient == 0 ? copysign(0, a / b) : nearbyint(quotient);
}

/* By squaring. With a negative exponent the reciprocal is truncated: 0, but for bases 1 and -1. */
static uint64_t power(int64_t base, int64_t exponent, bool has_sign)
{
    if (has_sign && exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent & 1 ? UINT64_MAX : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t left = (uint64_t)exponent; left; left >>= 1) {
        if (left & 1)
            result *= square;
        square *= square;
    }
    return result;
}

static uint64_t quotient(int dtype, union weft_number a, union weft_number b)
{
    if (b.bits == 0)
        return 0;
    if (!weft_dtype_is_signed(dtype))
        return a.bits / b.bits;
    return b.integer == -1 ? 0 - a.bits : (uint64_t)(a.integer / b.integer); /* -1: the smallest number wraps */
}

static uint64_t floored_integer(int dtype, union weft_number a, union weft_number b)
{
    const bool down = weft_dtype_is_signed(dtype) && b.integer != 0 && b.integer != -1 &&
                      (a.integer < 0) != (b.integer < 0) && a.integer % b.integer != 0;
    return quotient(dtype, a, b) - down;
}

static uint64_t remainder_of(int dtype, union weft_number a, union weft_number b, bool truncated)
{
    if (b.bits == 0)
        return 0;
    if (!weft_dtype_is_signed(dtype))
        return a.bits % b.bits;
    const int64_t r = b.integer == -1 ? 0 : a.integer % b.integer;
    return (uint64_t)(!truncated && r != 0 && (r < 0) != (b.integer < 0) ? r + b.integer : r);
}

/* Amounts are unsigned; by the width or more nothing of the number is left but, to the right, its sign. */
static uint64_t amount_of(int dtype, union weft_number b)
{
    return b.bits & UINT64_MAX >> (64 - weft_dtype_bits(dtype));
}

static uint64_t shifted_left(int dtype, union weft_number a, union weft_number b)
{
    const uint64_t amount = amount_of(dtype, b);
    return amount < weft_dtype_bits(dtype) ? a.bits << amount : 0;
}

static uint64_t shifted_right(int dtype, union weft_number a, union weft_number b)
{
    const unsigned width = weft_dtype_bits(dtype);
    const uint64_t amount = amount_of(dtype, b);
    if (weft_dtype_is_signed(dtype))
        return (uint64_t)(a.integer >> (amount < width ? amount : width - 1));
    return amount < width ? a.bits >> amount : 0;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* A row's function over n elements of one type; what it gives replaces a. */
typedef void strip_fn(int dtype, bool truncated, int64_t n, union weft_number *a, const union weft_number *b);

static void each(struct weft_eval *eval, strip_fn *apply)
{
    const bool truncated = weft_eval_op(eval) == WEFT_OP_mod && weft_eval_word_is(eval, WEFT_ATTR_form, "trunc");
    const struct weft_tensor *out = &eval->out[0], *left = &eval->in[0], *right = &eval->in[1];
    struct weft_walk walk;
    for (weft_walk_open(&walk, 3, (const struct weft_tensor *const[]){out, left, right}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number a[WEFT_EVAL_STRIP], b[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(left, walk.place[1] + i * walk.step[1], walk.step[1], n, a);
            weft_eval_load(right, walk.place[2] + i * walk.step[2], walk.step[2], n, b);
            apply(left->dtype, truncated, n, a, b);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], walk.step[0], n, a);
        }
}

/* What each row is made of: expressions as functions, loops over a strip, and the rule. */
#define REAL_FN(op, of_reals) \
    static double real_##op(double a, double b, bool truncated) { return of_reals; }
#define WHOLE_FN(op, of_wholes) \
    static uint64_t whole_##op(int dtype, bool truncated, union weft_number a, union weft_number b) \
    { return of_wholes; }
#define HOLDS_FN(name, type, holds) \
    static bool name(type a, type b) { return holds; }
#define FOR_EACH(to, value) \
    for (int64_t i = 0; i < n; i++) \
        a[i].to = value
#define RULE(op, loops) \
    static void strip_##op(int dtype, bool truncated, int64_t n, union weft_number *a, const union weft_number *b) \
    { loops; } \
    void weft_eval_##op(struct weft_eval *eval) { each(eval, strip_##op); }

#define NUMERIC(op, of_reals, of_wholes) \
    WEFT_ROW_TAKES(op, numeric) REAL_FN(op, of_reals) WHOLE_FN(op, of_wholes) \
    RULE(op, if (weft_dtype_is_float(dtype)) FOR_EACH(real, real_##op(a[i].real, b[i].real, truncated)); \
             else FOR_EACH(bits, whole_##op(dtype, truncated, a[i], b[i])))
#define REAL(op, of_reals) \
    WEFT_ROW_TAKES(op, real) REAL_FN(op, of_reals) RULE(op, FOR_EACH(real, real_##op(a[i].real, b[i].real, truncated)))
#define INTEGER(op, of_wholes) \
    WEFT_ROW_TAKES(op, integer) WHOLE_FN(op, of_wholes) \
    RULE(op, FOR_EACH(bits, whole_##op(dtype, truncated, a[i], b[i])))
#define LOGIC(op, of_wholes) \
    WEFT_ROW_TAKES(op, logic) WHOLE_FN(op, of_wholes) \
    RULE(op, FOR_EACH(bits, whole_##op(dtype, truncated, a[i], b[i])))
#define COMPARE(op, holds) \
    WEFT_ROW_TAKES(op, compare) HOLDS_FN(reals_##op, double, holds) HOLDS_FN(integers_##op, int64_t, holds) \
    HOLDS_FN(bits_##op, uint64_t, holds) \
    RULE(op, if (weft_dtype_is_float(dtype)) FOR_EACH(integer, reals_##op(a[i].real, b[i].real)); \
             else if (dtype == WEFT_U64) FOR_EACH(integer, bits_##op(a[i].bits, b[i].bits)); \
             else FOR_EACH(integer, integers_##op(a[i].integer, b[i].integer)))
#include "eval/binary.def"
