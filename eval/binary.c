/* SPDX-License-Identifier: Apache-2.0 */
/* binary.c: elementwise ops of two operands.
 *
 * Integers wrap around in their width. A division by an integer zero gives 0, and so does its remainder: ONNX leaves it
 * open, and a kernel must not trap. Extremes of a NaN are NaN; comparisons with a NaN are false, but `ne`. */
#include "eval/rule.h"

#include <math.h>
#include <string.h>

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

static double apply_real(int op, double a, double b, bool truncated)
{
    switch (op) {
    case WEFT_OP_add: return a + b;
    case WEFT_OP_sub: return a - b;
    case WEFT_OP_mul: return a * b;
    case WEFT_OP_div: return a / b;
    case WEFT_OP_mod: return truncated ? fmod(a, b) : floored_remainder(a, b);
    case WEFT_OP_floor_div: return floored_quotient(a, b);
    case WEFT_OP_pow: return b == 2 ? a * a : pow(a, b); /* squares are exact everywhere; pow of the C library is not */
    case WEFT_OP_atan2: return atan2(a, b);
    case WEFT_OP_copysign: return copysign(a, b);
    case WEFT_OP_prelu: return a < 0 ? a * b : a;
    case WEFT_OP_min: return isnan(a) || a < b ? a : b;
    case WEFT_OP_max: return isnan(a) || a > b ? a : b;
    default: return weft_eval_no_rule(op);
    }
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

static uint64_t quotient(union weft_number a, union weft_number b, bool has_sign)
{
    if (b.bits == 0)
        return 0;
    if (!has_sign)
        return a.bits / b.bits;
    return b.integer == -1 ? 0 - a.bits : (uint64_t)(a.integer / b.integer); /* -1: the smallest number wraps */
}

static uint64_t floored_integer(union weft_number a, union weft_number b, bool has_sign)
{
    const bool down = has_sign && b.integer != 0 && b.integer != -1 && (a.integer < 0) != (b.integer < 0) &&
                      a.integer % b.integer != 0;
    return quotient(a, b, has_sign) - down;
}

static uint64_t remainder_of(union weft_number a, union weft_number b, bool has_sign, bool truncated)
{
    if (b.bits == 0)
        return 0;
    if (!has_sign)
        return a.bits % b.bits;
    const int64_t r = b.integer == -1 ? 0 : a.integer % b.integer;
    return (uint64_t)(!truncated && r != 0 && (r < 0) != (b.integer < 0) ? r + b.integer : r);
}

/* Amounts are unsigned; by the width or more nothing of the number is left but, to the right, its sign. */
static uint64_t shifted(int op, int dtype, union weft_number a, union weft_number b)
{
    const unsigned width = weft_dtype_bits(dtype);
    const uint64_t amount = b.bits & UINT64_MAX >> (64 - width);
    const bool has_sign = weft_dtype_is_signed(dtype);
    if (op == WEFT_OP_shift_left)
        return amount < width ? a.bits << amount : 0;
    if (has_sign)
        return (uint64_t)(a.integer >> (amount < width ? amount : width - 1));
    return amount < width ? a.bits >> amount : 0;
}

static uint64_t apply_integer(int op, int dtype, union weft_number a, union weft_number b, bool truncated)
{
    const bool has_sign = weft_dtype_is_signed(dtype);
    const bool less = has_sign ? a.integer < b.integer : a.bits < b.bits;
    switch (op) {
    case WEFT_OP_add: return a.bits + b.bits;
    case WEFT_OP_sub: return a.bits - b.bits;
    case WEFT_OP_mul: return a.bits * b.bits;
    case WEFT_OP_div: return quotient(a, b, has_sign);
    case WEFT_OP_mod: return remainder_of(a, b, has_sign, truncated);
    case WEFT_OP_floor_div: return floored_integer(a, b, has_sign);
    case WEFT_OP_pow: return power(a.integer, b.integer, has_sign);
    case WEFT_OP_prelu: return has_sign && a.integer < 0 ? a.bits * b.bits : a.bits;
    case WEFT_OP_shift_left: case WEFT_OP_shift_right: return shifted(op, dtype, a, b);
    case WEFT_OP_min: return less ? a.bits : b.bits;
    case WEFT_OP_max: return less ? b.bits : a.bits;
    case WEFT_OP_and: case WEFT_OP_bit_and: return a.bits & b.bits;
    case WEFT_OP_or: case WEFT_OP_bit_or: return a.bits | b.bits;
    case WEFT_OP_xor: case WEFT_OP_bit_xor: return a.bits ^ b.bits;
    default: return (union weft_number){.real = weft_eval_no_rule(op)}.bits;
    }
}

static bool holds(int op, bool less, bool equal, bool greater)
{
    switch (op) {
    case WEFT_OP_eq: return equal;
    case WEFT_OP_ne: return !equal;
    case WEFT_OP_lt: return less;
    case WEFT_OP_le: return less || equal;
    case WEFT_OP_gt: return greater;
    case WEFT_OP_ge: return greater || equal;
    default: return isnan(weft_eval_no_rule(op));
    }
}

static void compare(int op, int dtype, int64_t n, union weft_number *a, const union weft_number *b)
{
    for (int64_t i = 0; i < n; i++) {
        const union weft_number x = a[i], y = b[i];
        if (weft_dtype_is_float(dtype))
            a[i].integer = holds(op, x.real<y.real, x.real == y.real, x.real> y.real);
        else if (dtype == WEFT_U64)
            a[i].integer = holds(op, x.bits<y.bits, x.bits == y.bits, x.bits> y.bits);
        else
            a[i].integer = holds(op, x.integer<y.integer, x.integer == y.integer, x.integer> y.integer);
    }
}

static bool is_comparison(int op)
{
    return op == WEFT_OP_eq || op == WEFT_OP_ne || op == WEFT_OP_lt || op == WEFT_OP_le || op == WEFT_OP_gt ||
           op == WEFT_OP_ge;
}

static void apply(int op, int dtype, bool truncated, int64_t n, union weft_number *a, const union weft_number *b)
{
    if (is_comparison(op))
        compare(op, dtype, n, a, b);
    else if (weft_dtype_is_float(dtype))
        for (int64_t i = 0; i < n; i++)
            a[i].real = apply_real(op, a[i].real, b[i].real, truncated);
    else
        for (int64_t i = 0; i < n; i++)
            a[i].bits = apply_integer(op, dtype, a[i], b[i], truncated);
}

void weft_eval_binary(struct weft_eval *eval)
{
    const int op = weft_eval_op(eval);
    const bool truncated =
        op == WEFT_OP_mod && strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form), "trunc") == 0;
    const struct weft_tensor *out = &eval->out[0], *left = &eval->in[0], *right = &eval->in[1];
    struct weft_walk walk;
    for (weft_walk_open(&walk, 3, (const struct weft_tensor *const[]){out, left, right}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number a[WEFT_EVAL_STRIP], b[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(left, walk.place[1] + i * walk.step[1], walk.step[1], n, a);
            weft_eval_load(right, walk.place[2] + i * walk.step[2], walk.step[2], n, b);
            apply(op, left->dtype, truncated, n, a, b);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], walk.step[0], n, a);
        }
}
