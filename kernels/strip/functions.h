/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h: the vector mathematics of strips: branch-free polynomials with the same bits at every level.
 *
 * Worst errors in ULP, over 100 million bit patterns spread evenly over the floats (the limits of
 * check/strip_definition.c): exp 0.66   log 0.88   tanh 1.32   erf 1.32   sigmoid 2.4   silu 2.9
 * rsqrt 1.5 gelu 2.7 and gelu.tanh 3.9 for x >= -1; below that 1e-7 absolute, since 1 + erf cancels.
 *
 * exp, log, tanh, erf: weighted minimax fits, rounded to float from the lowest power up with a refit after each. All
 * others work in double: functions_double.h. */
#ifndef WEFT_STRIP_FUNCTIONS_H
#define WEFT_STRIP_FUNCTIONS_H

#include "kernels/strip/vector.h"

#include <math.h>

/* x = n ln2 + r. The clamp keeps NaN: x86 minimum and maximum return their second operand. What is 0 is made of 0: a
 * product that underflows takes a hundred cycles of microcode, and the -infinities of a causal mask are half of the
 * scores of attention. */
INLINE vf vexp(vf x)
{
    const vi none = x < -104.f;
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
    return vscale(vsel(none, vall(0.f), s + (lost + q)), n);
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
    return vcopysign(vsel(a < 0.625f, vfma(p * s, x, x), big), x);
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
#endif
