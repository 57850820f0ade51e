/* SPDX-License-Identifier: Apache-2.0 */
/* small.h: floats of 16 and 8 bits by their fields, and the roundings that go with them.
 *
 * A double becomes a small float by way of an f32 that is rounded to odd: where digits were lost, the last bit says so,
 * and the second rounding cannot meet a tie that the first one made. weft_small_narrow(f, weft_odd_f64(x)) is x rounded
 * once. */
#ifndef WEFT_SMALL_H
#define WEFT_SMALL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t weft_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float weft_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float weft_odd_f64(double x)
{
    const float near = (float)x;
    if ((double)near == x || x != x)
        return near;
    const bool outwards = fabs((double)near) > fabs(x);
    return weft_float_of((weft_bits_of(near) - outwards) | 1);
}

/* Fields of a format with the sign in front. `finite` ones have no infinity: only all ones is NaN. */
struct weft_small {
    int exponent, mantissa;
    bool finite;
};
#define weft_small_bf16   ((struct weft_small){8, 7, false})
#define weft_small_f16    ((struct weft_small){5, 10, false})
#define weft_small_f8e4m3 ((struct weft_small){4, 3, true})
#define weft_small_f8e5m2 ((struct weft_small){5, 2, false})

static inline float weft_small_widen(struct weft_small f, uint32_t bits)
{
    const uint32_t top = (1u << f.exponent) - 1, ones = (1u << f.mantissa) - 1;
    const uint32_t exponent = bits >> f.mantissa & top, mantissa = bits & ones;
    const uint32_t sign = (bits >> (f.exponent + f.mantissa)) << 31;
    const int bias = (int)(top >> 1);
    if (exponent == top && (!f.finite || mantissa == ones))
        return weft_float_of(sign | 0x7f800000 | (f.finite ? 1u << 22 : mantissa << (23 - f.mantissa)));
    const float size = exponent ? ldexpf((float)(mantissa | 1u << f.mantissa), (int)exponent - bias - f.mantissa)
                                : ldexpf((float)mantissa, 1 - bias - f.mantissa);
    return sign ? -size : size;
}

/* To nearest, ties to even. Beyond the largest number: infinity, or NaN where there is none. */
static inline uint32_t weft_small_narrow(struct weft_small f, float x)
{
    const uint32_t top = (1u << f.exponent) - 1, ones = (1u << f.mantissa) - 1;
    const uint32_t sign = weft_bits_of(x) >> 31 << (f.exponent + f.mantissa);
    const uint32_t nan = sign | top << f.mantissa | (f.finite ? ones : 1u << (f.mantissa - 1));
    const uint32_t overflow = f.finite ? nan : sign | top << f.mantissa;
    if (x != x)
        return nan;
    if (isinf(x))
        return overflow;
    const int bias = (int)(top >> 1), lowest = 1 - bias - f.mantissa; /* exponent of the last bit of denormals */
    const int own = x == 0 ? lowest : ilogbf(x) - f.mantissa, unit = own > lowest ? own : lowest;
    const double whole = nearbyint(ldexp(fabs((double)x), -unit));
    const uint32_t code = (uint32_t)whole + ((uint32_t)(unit - lowest) << f.mantissa); /* a carry moves by itself */
    return code >= (top << f.mantissa) + (f.finite ? ones : 0) ? overflow : sign | code;
}

static inline int64_t weft_whole_part(double x)
{
    return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

/* The range of u64 is wider: what i64 cannot hold may fit. */
static inline uint64_t weft_whole_u64(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x >= 0x1p63 ? (uint64_t)x : (uint64_t)weft_whole_part(x);
}

#endif
