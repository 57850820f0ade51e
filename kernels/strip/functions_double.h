/* SPDX-License-Identifier: Apache-2.0 */
/* functions_double.h: the functions of strips that work in double, half the lanes at a time, where plain Taylor series
 * are good to 1e-10 and no fused operation is needed. So a result is rounded once, and a formula that loses a few bits
 * still has enough: 0.51 ULP throughout.
 *
 * Infinities and zeros are left to the formulas where these are right, and to a choice behind them where they are not.
 * A NaN fails every comparison; choices are written so that it stays. */
#ifndef WEFT_STRIP_FUNCTIONS_DOUBLE_H
#define WEFT_STRIP_FUNCTIONS_DOUBLE_H

#include "kernels/strip/vector.h"

#include <math.h>

#define NEAREST_SHIFT                                                                                                  \
    0x1.8p52 /* added and taken away: to the nearest integer; added: the low bits are that integer                     \
              */

/* Sine and cosine of r = x - n π/2, for |x| <= 2^22; returns n in the low bits. */
INLINE vl vd_circle(vd x, vd *ret_sine, vd *ret_cosine)
{
    const vd shifted = x * 0x1.45f306dc9c883p-1 + NEAREST_SHIFT, n = shifted - NEAREST_SHIFT;
    const vd r = x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34; /* the first product is exact */
    const vd s = r * r;
    vd sine = s * (-1.0 / 39916800) + 1.0 / 362880;
    sine = sine * s - 1.0 / 5040;
    sine = sine * s + 1.0 / 120;
    sine = sine * s - 1.0 / 6;
    *ret_sine = r * (sine * s + 1.0);
    vd cosine = s * (1.0 / 479001600) - 1.0 / 3628800;
    cosine = cosine * s + 1.0 / 40320;
    cosine = cosine * s - 1.0 / 720;
    cosine = cosine * s + 1.0 / 24;
    *ret_cosine = (cosine * s - 0.5) * s + 1.0;
    return (vl)shifted;
}

/* sin (turn 0) or cos (turn 1). */
INLINE vd vd_sine(vd x, int64_t turn)
{
    vd sine, cosine;
    const vl quarter = vd_circle(x, &sine, &cosine) + turn;
    const vd value = vdsel((quarter & 1) != 0, cosine, sine);
    return (vd)((vq)value ^ ((vq)(quarter & 2) << 62));
}

INLINE vd vd_tan(vd x)
{
    vd sine, cosine;
    const vl odd = (vd_circle(x, &sine, &cosine) & 1) != 0;
    return vdsel(odd, -cosine, sine) / vdsel(odd, sine, cosine);
}

/* Lanes beyond 2^22 are left to the C library: reducing them needs hundreds of bits of π, and nobody sends them. */
INLINE vf vsine(vf x, int64_t turn)
{
    vf y = vjoin(vd_sine(vlow(x), turn), vd_sine(vhigh(x), turn));
    const vi far = ~(vabs(x) <= 0x1p22f);
    for (int lane = 0; lane < LANES; lane++)
        if (__builtin_expect(far[lane], 0))
            y[lane] = (float)(turn ? cos((double)x[lane]) : sin((double)x[lane]));
    return y;
}

INLINE vf vtan(vf x)
{
    vf y = vjoin(vd_tan(vlow(x)), vd_tan(vhigh(x)));
    const vi far = ~(vabs(x) <= 0x1p22f);
    for (int lane = 0; lane < LANES; lane++)
        if (__builtin_expect(far[lane], 0))
            y[lane] = (float)tan((double)x[lane]);
    return y;
}

INLINE vd vd_rint(vd x) { return (x + NEAREST_SHIFT) - NEAREST_SHIFT; } /* |x| < 2^51 */

/* log2 of x > 0: 2^e m with m in [sqrt ½, sqrt 2), log m by the series of artanh((m - 1) / (m + 1)). */
INLINE vd vd_log2(vd x)
{
    const vq above = ((vq)x - 0x3fe6a09e667f3bcdu + (1023ull << 52)) >> 52; /* e + 1023 */
    const vd e = (vd)(above + 0x4330000000000000u) - (0x1p52 + 1023);
    const vd m = (vd)((vq)x - ((above - 1023) << 52));
    const vd f = (m - 1.0) / (m + 1.0), s = f * f;
    vd p = s * (1.0 / 15) + 1.0 / 13;
    p = p * s + 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s + 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s + 1.0 / 3;
    p = p * s + 1.0;
    const vd r = e + f * p * 0x1.71547652b82fep+1;
    return vdsel(x == 0.0, vdall(-__builtin_inf()), vdsel(x < __builtin_inf(), r, x));
}

INLINE vd vd_exp2(vd t)
{
    t = vdsel(t > 160.0, vdall(160.0), vdsel(t < -160.0, vdall(-160.0), t)); /* infinite or zero as float; NaN stays */
    const vd shifted = t + NEAREST_SHIFT, g = (t - (shifted - NEAREST_SHIFT)) * 0x1.62e42fefa39efp-1;
    vd p = g * (1.0 / 362880) + 1.0 / 40320;
    p = p * g + 1.0 / 5040;
    p = p * g + 1.0 / 720;
    p = p * g + 1.0 / 120;
    p = p * g + 1.0 / 24;
    p = p * g + 1.0 / 6;
    p = p * g + 0.5;
    p = p * g + 1.0;
    p = p * g + 1.0;
    return p * (vd)(((vq)shifted + 1023) << 52);
}

/* As pow of C: 1 for y = 0 and for x = 1, whatever the other; x < 0 needs an integer y. */
INLINE vd vd_pow(vd x, vd y)
{
    const vd a = vdabs(x), half = 0.5 * y;
    const vl large = vdabs(y) >= 0x1p24; /* integers all, and even */
    const vl integer = large | (vd_rint(y) == y), odd = integer & ~large & (vd_rint(half) != half);
    const vd t = vdsel(a == 1.0, vdsel(y != y, y, vdall(0.0)), y * vd_log2(a));
    vd r = vd_exp2(t);
    r = (vd)((vl)r | (odd & (vl)x & INT64_MIN));
    r = vdsel((x < 0.0) & (a != __builtin_inf()) & ~integer & (y == y), vdall(__builtin_nan("")), r);
    return vdsel((y == 0.0) | (x == 1.0), vdall(1.0), r);
}
INLINE vf vpow(vf x, vf y) { return vjoin(vd_pow(vlow(x), vlow(y)), vd_pow(vhigh(x), vhigh(y))); }

/* --- exponentials and logarithms ---------------------------------------------------------------------------------- */

/* One vector by a function of doubles. */
#define BY_DOUBLE(f, x) vjoin(f(vlow(x)), f(vhigh(x)))

#define LOG2_E 0x1.71547652b82fep+0
#define LN_2   0x1.62e42fefa39efp-1

INLINE vd vdcopysign(vd x, vd s) { return (vd)(((vl)x & INT64_MAX) | ((vl)s & INT64_MIN)); }
INLINE vd vd_nan(vl where, vd x) { return vdsel(where, vdall(__builtin_nan("")), x); }

INLINE vd vd_exp(vd x) { return vd_exp2(x * LOG2_E); } /* within 2^-160 and 2^160 */
INLINE vd vd_log2_any(vd x) { return vd_nan(x < 0.0, vd_log2(x)); }
INLINE vd vd_log10_any(vd x) { return vd_log2_any(x) * 0x1.34413509f79ffp-2; }

INLINE vd vd_expm1(vd x)
{
    vd p = x * (1.0 / 39916800) + 1.0 / 3628800;
    p = p * x + 1.0 / 362880;
    p = p * x + 1.0 / 40320;
    p = p * x + 1.0 / 5040;
    p = p * x + 1.0 / 720;
    p = p * x + 1.0 / 120;
    p = p * x + 1.0 / 24;
    p = p * x + 1.0 / 6;
    p = p * x + 0.5;
    p = p * x * x + x;
    return vdsel(vdabs(x) < 0.5, vdsel(x == 0.0, x, p), vd_exp(x) - 1.0);
}

/* What the sum 1 + x drops is put back by the slope of the logarithm. */
INLINE vd vd_log1p(vd x)
{
    const vd sum = x + 1.0, lost = x - (sum - 1.0);
    const vd r = vd_log2(sum) * LN_2 + lost / sum;
    const vd finite = vdsel((x == 0.0) | (x == __builtin_inf()), x, r);
    return vd_nan(x < -1.0, vdsel(x == -1.0, vdall(-__builtin_inf()), finite));
}

INLINE vd vd_sigmoid(vd x) { return 1.0 / (vdsel(x < -1000.0, vdall(__builtin_inf()), vd_exp(-x)) + 1.0); }
INLINE vf vswish(vf x, vf alpha)
{
    const vd l = vlow(x), h = vhigh(x);
    return vjoin(l * vd_sigmoid(l * vlow(alpha)), h * vd_sigmoid(h * vhigh(alpha)));
}

/* --- hyperbolic --------------------------------------------------------------------------------------------------- */

INLINE vd vd_sinh(vd x)
{
    const vd t = vd_expm1(vdabs(x));
    return vdcopysign(0.5 * (t + t / (t + 1.0)), x);
}
INLINE vd vd_cosh(vd x)
{
    const vd e = vd_exp(vdabs(x));
    return 0.5 * (e + 1.0 / e);
}
INLINE vd vd_asinh(vd x)
{
    const vd a = vdabs(x), s = a * a;
    return vdcopysign(vdsel(a == __builtin_inf(), a, vd_log1p(a + s / (1.0 + vdsqrt(s + 1.0)))), x);
}
INLINE vd vd_acosh(vd x)
{
    const vd t = x - 1.0;
    return vd_nan(t < 0.0, vd_log1p(t + vdsqrt(t * (t + 2.0))));
}
INLINE vd vd_atanh(vd x)
{
    const vd a = vdabs(x);
    return vdcopysign(0.5 * vd_log1p(2.0 * a / (1.0 - a)), x);
}

/* --- angles ------------------------------------------------------------------------------------------------------- */

/* The arc of t in [0, 1]; beyond tan π/8 as π/4 plus that of (t - 1) / (t + 1). */
INLINE vd vd_arc(vd t)
{
    const vl far = t > 0.41421356237309503;
    const vd u = vdsel(far, (t - 1.0) / (t + 1.0), t), s = u * u;
    vd p = s * (1.0 / 25) - 1.0 / 23;
    p = p * s + 1.0 / 21;
    p = p * s - 1.0 / 19;
    p = p * s + 1.0 / 17;
    p = p * s - 1.0 / 15;
    p = p * s + 1.0 / 13;
    p = p * s - 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s - 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s - 1.0 / 3;
    return vdsel(far, vdall(0x1.921fb54442d18p-1), vdall(0.0)) + (u + u * (s * p));
}
INLINE vd vd_atan(vd x)
{
    const vd a = vdabs(x);
    const vl steep = a > 1.0;
    const vd r = vd_arc(vdsel(steep, 1.0 / a, a));
    return vdcopysign(vdsel(steep, 0x1.921fb54442d18p+0 - r, r), x);
}
INLINE vd vd_asin(vd x) { return vd_atan(x / vdsqrt((1.0 - x) * (1.0 + x))); }
INLINE vd vd_acos(vd x) { return 2.0 * vd_atan(vdsqrt((1.0 - x) / (1.0 + x))); }
INLINE vd vd_atan2(vd y, vd x)
{
    const vd a = vdabs(y), b = vdabs(x);
    const vl steep = a > b;
    vd t = vdsel(steep, b, a) / vdsel(steep, a, b);
    t = vdsel(a == b, vdsel(a == 0.0, a, vdall(1.0)), t); /* of zeros and of infinities there is no quotient */
    vd r = vd_arc(t);
    r = vdsel(steep, 0x1.921fb54442d18p+0 - r, r);
    return vdcopysign(vdsel((vl)x < 0, 0x1.921fb54442d18p+1 - r, r), y);
}
INLINE vf vatan2(vf y, vf x) { return vjoin(vd_atan2(vlow(y), vlow(x)), vd_atan2(vhigh(y), vhigh(x))); }

/* --- by the C library, a lane at a time --------------------------------------------------------------------------- */

#define EACH_OF(expression)                                                                                            \
    vf r = x;                                                                                                          \
    for (int lane = 0; lane < LANES; lane++)                                                                           \
        r[lane] = expression;                                                                                          \
    return r
INLINE vf verfc(vf x) { EACH_OF((float)erfc((double)x[lane])); }
INLINE vf vmod_each(vf x, vf y) { EACH_OF(fmodf(x[lane], y[lane])); }

/* x / y of f32 values, cut to a whole number. Below 2^28 it is exact: unless x / y is whole, it is 2^-24 or more away
 * from the next whole number, and the f64 quotient is off by at most 2^-25. The product with y has 52 bits, so that the
 * remainder is exact, too. *far: lanes where that does not hold. */
INLINE vd vd_cut_quotient(vd x, vd y, vl *far)
{
    typedef int32_t whole __attribute__((vector_size(2 * LANES)));
    const vd q = x / y;
    *far |= ~((vdabs(q) < 0x1p28) & (vdabs(y) < 0x1p128));
    return __builtin_convertvector(__builtin_convertvector(q, whole), vd);
}
INLINE vf vmod_trunc(vf x, vf y)
{
    vl far = {0};
    const vd low = vlow(x) - vd_cut_quotient(vlow(x), vlow(y), &far) * vlow(y);
    const vd high = vhigh(x) - vd_cut_quotient(vhigh(x), vhigh(y), &far) * vhigh(y);
    return __builtin_expect(vany_from((vu)far, 1), 0) ? vmod_each(x, y) : vcopysign(vjoin(low, high), x);
}
INLINE vf vmod_floor(vf x, vf y)
{
    const vf r = vmod_trunc(x, y);
    return vsel(r == 0.f, vcopysign(r, y), vsel((r < 0.f) != (y < 0.f), r + y, r));
}

/* From an exact remainder: a rounded quotient may have reached the next integer. */
INLINE float floored_quotient(double x, double y)
{
    const double r = fmod(x, y), quotient = (x - r) / y - (r != 0 && (r < 0) != (y < 0));
    return (float)(y == 0 ? x / y : quotient == 0 ? copysign(0, x / y) : nearbyint(quotient));
}
INLINE vf vfloor_div_each(vf x, vf y) { EACH_OF(floored_quotient((double)x[lane], (double)y[lane])); }
INLINE vd vd_floor_div(vd x, vd y, vl *far)
{
    const vd q = vd_cut_quotient(x, y, far), r = x - q * y;
    const vl below = (r != 0.0) & (((vl)r ^ (vl)y) < 0); /* the signs differ */
    return vdcopysign(q - vdsel(below, vdall(1.0), vdall(0.0)), x / y);
}
INLINE vf vfloor_div(vf x, vf y)
{
    vl far = {0};
    const vd low = vd_floor_div(vlow(x), vlow(y), &far), high = vd_floor_div(vhigh(x), vhigh(y), &far);
    return __builtin_expect(vany_from((vu)far, 1), 0) ? vfloor_div_each(x, y) : vjoin(low, high);
}
#endif
