/* SPDX-License-Identifier: Apache-2.0 */
/* eval_binary.c: elementwise ops of two and three operands, and casts.
 *
 * Integers wrap around in their width. A division by an integer zero gives 0, and so does its remainder: ONNX leaves it
 * open, and a kernel must not trap. Extremes of a NaN are NaN; comparisons with a NaN are false, but `ne`. */
#include "ir/eval.h"

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

static double apply_real(int op, double a, double b, bool truncated)
{
    switch (op) {
    case WEFT_OP_add: return a + b;
    case WEFT_OP_sub: return a - b;
    case WEFT_OP_mul: return a * b;
    case WEFT_OP_div: return a / b;
    case WEFT_OP_mod: return truncated ? fmod(a, b) : floored_remainder(a, b);
    case WEFT_OP_pow: return b == 2 ? a * a : pow(a, b); /* squares are exact everywhere; pow of the C library is not */
    case WEFT_OP_min: return isnan(a) || a < b ? a : b;
    default: return isnan(a) || a > b ? a : b;
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

static uint64_t remainder_of(union weft_number a, union weft_number b, bool has_sign, bool truncated)
{
    if (b.bits == 0)
        return 0;
    if (!has_sign)
        return a.bits % b.bits;
    const int64_t r = b.integer == -1 ? 0 : a.integer % b.integer;
    return (uint64_t)(!truncated && r != 0 && (r < 0) != (b.integer < 0) ? r + b.integer : r);
}

static uint64_t apply_integer(int op, union weft_number a, union weft_number b, bool has_sign, bool truncated)
{
    const bool less = has_sign ? a.integer < b.integer : a.bits < b.bits;
    switch (op) {
    case WEFT_OP_add: return a.bits + b.bits;
    case WEFT_OP_sub: return a.bits - b.bits;
    case WEFT_OP_mul: return a.bits * b.bits;
    case WEFT_OP_div: return quotient(a, b, has_sign);
    case WEFT_OP_mod: return remainder_of(a, b, has_sign, truncated);
    case WEFT_OP_pow: return power(a.integer, b.integer, has_sign);
    case WEFT_OP_min: return less ? a.bits : b.bits;
    case WEFT_OP_max: return less ? b.bits : a.bits;
    case WEFT_OP_and: return a.bits & b.bits;
    case WEFT_OP_or: return a.bits | b.bits;
    default: return a.bits ^ b.bits;
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
    default: return greater || equal;
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
            a[i].bits = apply_integer(op, a[i], b[i], weft_dtype_is_signed(dtype), truncated);
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

void weft_eval_select(struct weft_eval *eval)
{
    const struct weft_tensor *const tensor[] = {&eval->out[0], &eval->in[0], &eval->in[1], &eval->in[2]};
    struct weft_walk walk;
    for (weft_walk_open(&walk, 4, tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[3][WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            for (int t = 0; t < 3; t++)
                weft_eval_load(tensor[t + 1], walk.place[t + 1] + i * walk.step[t + 1], walk.step[t + 1], n, x[t]);
            for (int64_t j = 0; j < n; j++)
                x[0][j] = x[0][j].integer ? x[1][j] : x[2][j];
            weft_eval_store(tensor[0], walk.place[0] + i * walk.step[0], walk.step[0], n, x[0]);
        }
}

/* --- casts ------------------------------------------------------------------------------------------------- */

/* The double for an integer that is to be rounded again to a shorter format: cut towards zero, with the last bit set
 * where something was cut. So the second rounding cannot meet a tie that the first one made (Boldo and Melquiond, "When
 * double rounding is odd", 2005). */
static double odd_real(union weft_number x, bool has_sign)
{
    const bool negative = has_sign && x.integer < 0;
    uint64_t magnitude = negative ? 0 - x.bits : x.bits;
    int shift = 0;
    bool cut = false;
    for (; magnitude >> 53; shift++) {
        cut |= magnitude & 1;
        magnitude >>= 1;
    }
    const double real = ldexp((double)(magnitude | cut), shift);
    return negative ? -real : real;
}

static double nearest_real(union weft_number x, bool has_sign) { return has_sign ? (double)x.integer : (double)x.bits; }

/* float → integer truncates, and wraps where the type is too narrow; anything but 0 is true. */
static void cast_run(const struct weft_tensor *out, int64_t place, int64_t step, int from, int64_t n,
                     union weft_number *x)
{
    const bool to_real = weft_dtype_is_float(out->dtype), has_sign = weft_dtype_is_signed(from);
    if (weft_dtype_is_float(from) && !to_real) {
        for (int64_t i = 0; i < n; i++)
            weft_store_real(out->dtype, out->data, place + i * step, x[i].real);
        return;
    }
    if (!weft_dtype_is_float(from) && to_real)
        for (int64_t i = 0; i < n; i++)
            x[i].real = out->dtype == WEFT_F64 ? nearest_real(x[i], has_sign) : odd_real(x[i], has_sign);
    weft_eval_store(out, place, step, n, x);
}

void weft_eval_cast(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(in, walk.place[1] + i * walk.step[1], walk.step[1], n, x);
            cast_run(out, walk.place[0] + i * walk.step[0], walk.step[0], in->dtype, n, x);
        }
}
