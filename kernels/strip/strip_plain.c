/* SPDX-License-Identifier: Apache-2.0 */
/* strip_plain.c: the scalar strip kernels of strip_plain.def. Any strides, one loop each: the call of a function or a
 * division outweighs all else. Nothing traps: a division by an integer 0 is 0, the smallest number by -1 wraps. */
#include "kernels/strip/rows.h"

#include <math.h>

/* --- integers, in 64 bits ----------------------------------------------------------------------------------------- */

static int64_t quotient(int64_t x, int64_t y) { return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; }
static int64_t remainder_of(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

static int64_t remainder_down(int64_t x, int64_t y)
{
    const int64_t r = remainder_of(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t quotient_down(int64_t x, int64_t y)
{
    return quotient(x, y) - (remainder_of(x, y) != 0 && (x < 0) != (y < 0));
}

static uint64_t power(uint64_t x, uint64_t y)
{
    uint64_t result = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1)
            result *= x;
    return result;
}

/* With a negative exponent the reciprocal is truncated: only 1 and -1 leave something. */
static uint64_t reciprocal_power(int64_t x, int64_t y)
{
    return x == 1 ? 1 : x != -1 ? 0 : y & 1 ? UINT64_MAX : 1;
}

/* --- f64 ---------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) + (x != x ? x : 0); }

static double real_remainder_down(double x, double y)
{
    const double r = fmod(x, y);
    return r == 0 ? copysign(0, y) : (r < 0) != (y < 0) ? r + y : r;
}

/* From an exact remainder: a rounded quotient may have reached the next integer. */
static double real_quotient_down(double x, double y)
{
    const double r = fmod(x, y), quotient = (x - r) / y - (r != 0 && (r < 0) != (y < 0));
    return y == 0 ? x / y : quotient == 0 ? copysign(0, x / y) : nearbyint(quotient);
}

#define P1(id, op, from, to, result)                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const type_##from *const in = args->in[0];                                                                     \
        type_##to *const out = args->out;                                                                              \
        const double p = args->param[0], q = args->param[1];                                                           \
        (void)p, (void)q;                                                                                              \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = in[i * args->stride[1]];                                                             \
            out[i * args->stride[0]] = (type_##to)(result);                                                            \
        }                                                                                                              \
    }
#define P2(id, op, from, to, result)                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const type_##from *const a = args->in[0], *const b = args->in[1];                                              \
        type_##to *const out = args->out;                                                                              \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = a[i * args->stride[1]], y = b[i * args->stride[2]];                                  \
            out[i * args->stride[0]] = (type_##to)(result);                                                            \
        }                                                                                                              \
    }
#define P3(id, op, from, to, result)                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const type_##from *const a = args->in[0], *const b = args->in[1], *const c = args->in[2];                      \
        type_##to *const out = args->out;                                                                              \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = a[i * args->stride[1]], y = b[i * args->stride[2]], z = c[i * args->stride[3]];      \
            out[i * args->stride[0]] = (type_##to)(result);                                                            \
        }                                                                                                              \
    }
#include "kernels/strip/strip_plain.def"

#define P1(id, op, from, to, result)                                                                                   \
    {op, DTYPE_##from, DTYPE_##to, 0, "weft_strip_" #id "__ref", weft_strip_##id##__ref},
#define P2(id, op, from, to, result) P1(id, op, from, to, result)
#define P3(id, op, from, to, result) P1(id, op, from, to, result)
const struct weft_strip_kernel weft_strip_table_plain__ref[] = {
#include "kernels/strip/strip_plain.def"
    {0},
};
