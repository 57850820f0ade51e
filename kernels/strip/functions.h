/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h: the vector mathematics of strips: branch-free polynomials with the same bits at every level.
 *
 * Worst errors in ULP, over 100 million bit patterns spread evenly over the floats (the limits of
 * tests/check/check_strip.c): exp 0.66   log 0.88   tanh 1.32   erf 1.32   sigmoid 2.4   silu 2.9   pow, sin, cos 0.51
 * rsqrt 1.5 gelu 2.7 and gelu.tanh 3.9 for x >= -1; below that 1e-7 absolute, since 1 + erf cancels.
 *
 * exp, log, tanh, erf: weighted minimax fits, rounded to float from the lowest power up with a refit after each.
 * pow, sin, cos work in double, where plain Taylor series are good to 1e-10 and no fused operation is needed. */
#ifndef WEFT_STRIP_FUNCTIONS_H
#define WEFT_STRIP_FUNCTIONS_H

#include "kernels/strip/vector.h"

#include <math.h>

/* x = n ln2 + r. The clamp keeps NaN: x86 minimum and maximum return their second operand. */
INLINE vf vexp(vf x)
{
    x = vmax_x86(vall(-104.f), vmin_x86(vall(89.f), x));
    const vf n = vfma(x, vall(0x1.715476p+0f), vall(0x1.8p23f)) - 0x1.8p23f;
    const vf h = vfma(n, vall(-0x1.62e400p-1f), x); /* exact */
    const vf l = n * -0x1.7f7d1cp-20f, r = h + l;
    vf q = vfma(vall(0x1.6a4154p-10f), r, vall(0x1.1239c6p-7f));
    q = vfma(q, r, vall(0x1.5558bcp-5f));
    q = vfma(q, r, vall(0x1.555492p-3f));
    q = vfma(q, r, vall(0x1.fffffcp-2f));
    q = vfma(q, r * r, l);
    const vf s = h + 1.f, lost = h - (s - 1.f); /* what the rounding of 1 + h drops */
    return vscale(s + (lost + q), n);
}

/* exp for x <= 0 or NaN, below -87 as -87, so that the result is normal: for erf, where the error hides behind 1 - e.
 */
INLINE vf vexp_negative(vf x)
{
    x = vmax_x86(vall(-87.f), x);
    const vf t = vfma(x, vall(0x1.715476p+0f), vall(0x1.8000fep23f)); /* the low bits hold n + 127 */
    const vf n = t - 0x1.8000fep23f, r = vfma(n, vall(-0x1.62e430p-1f), x);
    vf q = vfma(vall(0x1.1063a0p-7f), r, vall(0x1.572beap-5f));
    q = vfma(q, r, vall(0x1.5557b0p-3f));
    q = vfma(q, r, vall(0x1.fffdf8p-2f));
    return (vfma(q, r * r, r) + 1.f) * (vf)((vu)t << 23);
}

INLINE vf vlog(vf x)
{
    const vi tiny = x < 0x1p-126f;
    const vf y = vsel(tiny, x * 0x1p24f, x);
    const vi e = (vi)((vu)y - 0x3f2aaaab) >> 23; /* mantissa in [2/3, 4/3) */
    const vf f = (vf)((vu)y - ((vu)e << 23)) - 1.f;
    const vf n = __builtin_convertvector(e - (tiny & 24), vf);
    vf q = vfma(vall(-0x1.07c48cp-3f), f, vall(0x1.1e6ccap-3f));
    q = vfma(q, f, vall(-0x1.f332b8p-4f));
    q = vfma(q, f, vall(0x1.1ed562p-3f));
    q = vfma(q, f, vall(-0x1.559c66p-3f));
    q = vfma(q, f, vall(0x1.99d050p-3f));
    q = vfma(q, f, vall(-0x1.fffefap-3f));
    q = vfma(q, f, vall(0x1.555506p-2f));
    q = vfma(q, f, vall(-0.5f));
    q = vfma(n, vall(-0x1.05c610p-29f), q * (f * f));
    vf r = vfma(n, vall(0x1.62e430p-1f), f + q);
    r = vsel(x == __builtin_inff(), x, r);
    r = vsel(x == 0.f, vall(-__builtin_inff()), r);
    return vsel((x < 0.f) | (x != x), vall(__builtin_nanf("")), r);
}

/* |x| < 0.625: odd polynomial; else 1 - 2 / (exp 2|x| + 1). */
INLINE vf vtanh(vf x)
{
    const vf a = vabs(x), s = x * x;
    const vf big = 1.f - 2.f / (vexp(vmin_x86(vall(20.f), a + a)) + 1.f);
    vf p = vfma(vall(-0x1.750ce4p-8f), s, vall(0x1.51f8cep-6f));
    p = vfma(p, s, vall(-0x1.b835a4p-5f));
    p = vfma(p, s, vall(0x1.1106f6p-3f));
    p = vfma(p, s, vall(-0x1.555532p-2f));
    return vsel(a < 0.625f, vfma(p * s, x, x), vcopysign(big, x));
}

/* The exponential never overflows, so the left tail keeps its digits. */
INLINE vf vsigmoid(vf x)
{
    const vf e = vexp(-vabs(x));
    return vsel(x < 0.f, e, vall(1.f)) / (1.f + e);
}

INLINE vf vsilu(vf x)
{
    const vf e = vexp(-vabs(x));
    return vsel(x < 0.f, x * e, x) / (1.f + e);
}

/* |x| < 0.95: x + x p(x²); else 1 - exp of a polynomial fitted to log erfc. */
INLINE vf verf(vf x)
{
    const vf a = vmin_x86(vall(4.f), vabs(x)), s = x * x;
    vf p = vfma(vall(0x1.4fa924p-14f), s, vall(-0x1.a61810p-11f));
    p = vfma(p, s, vall(0x1.544b08p-8f));
    p = vfma(p, s, vall(-0x1.b80124p-6f));
    p = vfma(p, s, vall(0x1.ce2d64p-4f));
    p = vfma(p, s, vall(-0x1.812740p-2f));
    p = vfma(p, s, vall(0x1.06eba8p-3f));
    vf l = vfma(vall(0x1.9fb3e2p-13f), a, vall(-0x1.91cd5ep-9f));
    l = vfma(l, a, vall(0x1.6d9cf4p-6f));
    l = vfma(l, a, vall(-0x1.aa7326p-4f));
    l = vfma(l, a, vall(-0x1.4621bap-1f));
    l = vfma(l, a, vall(-0x1.20b752p+0f));
    l = vfma(l, a, vall(-0x1.5d10e2p-13f));
    return vsel(a < 0.95f, vfma(p, x, x), vcopysign(1.f - vexp_negative(l), x));
}

INLINE vf vgelu(vf x)
{
    const vf h = 0.5f * x;
    return vfma(h, verf(x * 0x1.6a09e6p-1f), h);
}

INLINE vf vgelu_tanh(vf x)
{
    const vf h = 0.5f * x, cube = x * x * x;
    return vfma(h, vtanh(0x1.988454p-1f * vfma(vall(0x1.6e4e26p-5f), cube, x)), h);
}

/* --- in double, half the lanes at a time -------------------------------------------------------------------------- */

#if LANES == 16
#define LOW_LANES  0, 1, 2, 3, 4, 5, 6, 7
#define HIGH_LANES 8, 9, 10, 11, 12, 13, 14, 15
#elif LANES == 8
#define LOW_LANES  0, 1, 2, 3
#define HIGH_LANES 4, 5, 6, 7
#else
#define LOW_LANES  0, 1
#define HIGH_LANES 2, 3
#endif
INLINE vd vlow(vf x) { return __builtin_convertvector(__builtin_shufflevector(x, x, LOW_LANES), vd); }
INLINE vd vhigh(vf x) { return __builtin_convertvector(__builtin_shufflevector(x, x, HIGH_LANES), vd); }
INLINE vf vjoin(vd low, vd high)
{
    const vf_half l = __builtin_convertvector(low, vf_half), h = __builtin_convertvector(high, vf_half);
    return __builtin_shufflevector(l, h, LOW_LANES, HIGH_LANES);
}

#define NEAREST_SHIFT                                                                                                  \
    0x1.8p52 /* added and taken away: to the nearest integer; added: the low bits are that integer                     \
              */

/* sin (turn 0) or cos (turn 1) for |x| <= 2^22: x = n π/2 + r. */
INLINE vd vd_sine(vd x, int64_t turn)
{
    const vd shifted = x * 0x1.45f306dc9c883p-1 + NEAREST_SHIFT, n = shifted - NEAREST_SHIFT;
    const vd r = x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34; /* the first product is exact */
    const vl quarter = (vl)shifted + turn;
    const vd s = r * r;
    vd sine = s * (-1.0 / 39916800) + 1.0 / 362880;
    sine = sine * s - 1.0 / 5040;
    sine = sine * s + 1.0 / 120;
    sine = sine * s - 1.0 / 6;
    sine = r * (sine * s + 1.0);
    vd cosine = s * (1.0 / 479001600) - 1.0 / 3628800;
    cosine = cosine * s + 1.0 / 40320;
    cosine = cosine * s - 1.0 / 720;
    cosine = cosine * s + 1.0 / 24;
    cosine = (cosine * s - 0.5) * s + 1.0;
    const vd value = vdsel((quarter & 1) != 0, cosine, sine);
    return (vd)((vq)value ^ ((vq)(quarter & 2) << 62));
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
#endif
