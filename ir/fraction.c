/* SPDX-License-Identifier: Apache-2.0 */
/* fraction.c: the fraction that a rounded number stands for.
 *
 * A factor of 0.6 in a model is the single-precision number 0.60000002384185791015625, but who wrote it meant 3/5, and
 * so did the program that rounded it. Of all fractions that round to a number, the one with the least denominator is
 * taken: fractions of a few digits come back exactly, and any other is off by less than its rounding.
 *
 * It is found as a continued fraction: two numbers with different whole parts have a whole number between them; of two
 * with the same whole part, the reciprocals of the rests are looked at, in exchanged order. */
#include "ir/places.h"

#include <math.h>

__extension__ typedef __int128 wide;

/* The simplest of [a/b, c/d]; 0 <= a/b < c/d. */
static struct weft_fraction simplest_between(wide a, wide b, wide c, wide d)
{
    wide p[2] = {1, 0}, q[2] = {0, 1}; /* the last two approximations: p[0]/q[0], p[1]/q[1] */
    for (;;) {
        const wide whole = a / b;
        const bool ends = whole * b == a || whole < c / d;
        const wide next = ends && whole * b != a ? whole + 1 : whole;
        const wide top = next * p[0] + p[1], bottom = next * q[0] + q[1];
        p[1] = p[0], q[1] = q[0];
        p[0] = top, q[0] = bottom;
        if (ends)
            return (struct weft_fraction){(int64_t)top, (int64_t)bottom};
        const wide rest_a = a - whole * b, rest_c = c - whole * d;
        a = d, c = b; /* d / rest_c to b / rest_a */
        b = rest_c, d = rest_a;
    }
}

struct weft_fraction weft_fraction_of(double x, int digits)
{
    const double size = fmin(fabs(x), 0x1p40); /* beyond what any axis holds */
    int exponent;
    if (!(size >= 0x1p-40))
        return (struct weft_fraction){0, 1};
    const double mantissa = frexp(size, &exponent);
    const wide m = (wide)ldexp(mantissa, digits); /* size is m · 2^(exponent - digits) */
    if ((double)m != ldexp(mantissa, digits)) /* more digits than were said */
        return weft_fraction_of(x, 53);
    const int shift = exponent - digits - 1; /* half a unit of the last digit */
    const wide low = 2 * m - 1, high = 2 * m + 1, one = 1;
    struct weft_fraction f = shift < 0 ? simplest_between(low, one << -shift, high, one << -shift)
                                       : simplest_between(low << shift, 1, high << shift, 1);
    if (x < 0)
        f.p = -f.p;
    return f;
}
