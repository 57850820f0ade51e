/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h: the vector mathematics of strips: branch-free polynomials with the same bits at every level.
 *
 * Worst errors in ULP, of exp, log, tanh, sigmoid, erf, silu over all floats from 2^-13 to 104 in size, of the others
 * over 33 million bit patterns spread evenly over the floats (bench/functions.py --errors 33554432 prints them beside
 * those of torch; the limits that tests hold are in check/strip_definition.c):
 *
 *   exp 0.57 (0.76 where the result is subnormal)   log 0.94   tanh 0.51   sigmoid 2.41   erf 1.36   rsqrt 1.5
 *   silu 3.1 (0x1p-142 absolute where exp of x is subnormal)   gelu 2.7 for x >= -1, below that 1e-7 absolute
 *   gelu.tanh 3.9 for x >= -1, below that 1e-7 absolute
 *
 * exp, log, erf, gelu: weighted minimax fits, rounded to float from the lowest power up with a refit after each. tanh
 * and all others work in double: functions_double.h. */
#ifndef WEFT_STRIP_FUNCTIONS_H
#define WEFT_STRIP_FUNCTIONS_H

#include "kernels/strip/vector.h"

#include <math.h>

/* 2^(j/16) for j in 0 .. 15, as the nearest float, and what that misses. */
static const _Alignas(64) float roots[] = {
    0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fe0p+0f, 0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
};
static const _Alignas(64) float roots_rest[] = {
    0,               0x1.9f3122p-25f,  -0x1.c15742p-27f, 0x1.ceac48p-25f,  0x1.4636e2p-25f,  0x1.824684p-25f,
    -0x1.593abcp-25f, -0x1.5bd5ecp-27f, 0x1.9fcef4p-26f, -0x1.829fd0p-25f, 0x1.15506ep-27f, 0x1.51f848p-27f,
    -0x1.a94b14p-26f, -0x1.3d56b2p-27f, -0x1.822db8p-27f, 0x1.52486cp-27f,
};
INLINE vf vroot(vi place) { return vat(place, (const vf_any *)roots); }
INLINE vf vroot_rest(vi place) { return vat(place, (const vf_any *)roots_rest); }
#define SIXTEENTHS 0x1.8p19f /* added: to the nearest sixteenth, whose low four bits are the place in ROOTS */

#if WEFT_LEVEL == 1
/* Are all lanes of x below the bound in magnitude? NaN is not. The branch is laid out for yes. */
INLINE int vall_within(vf x, float bound)
{
    return __builtin_expect(__builtin_ia32_movmskps256((vf)((vi)vabs(x) >= (vi)vall(bound))) == 0, 1);
}
/* m 2^floor(n) where that is normal, for t = n + SIXTEENTHS: bits 4 and up of t are those of floor(n), which is added
 * to the exponent. A quarter of the operations of vscale. */
INLINE vf vadd_exponent(vf m, vf t) { return (vf)((vu)m + ((vu)t << 19 & 0xff800000)); }
#endif

/* m 2^floor(n) for t = n + SIXTEENTHS, where n >= -125, and 0 elsewhere: results are normal or 0, since those that are
 * neither take a hundred cycles of microcode. n is a function of x that is above -125 for |x| below the bound. */
INLINE vf vscale_or_0(vf m, vf t, vf x, float bound)
{
    const vf n = t - SIXTEENTHS;
#if WEFT_LEVEL == 2
    (void)x, (void)bound;
    return vscale_from(m, n, n, -125.f);
#else
#if WEFT_LEVEL == 1
    if (vall_within(x, bound))
        return vadd_exponent(m, t);
#else
    (void)x, (void)bound;
#endif
    return vscale((vf)((vi)m & ~(n < -125.f)), n);
#endif
}

/* exp x = 2^floor(n) m, m in about [1, 2), for |x| < 2^14: x = n ln2 + r with n in sixteenths, m = root (1 + p(r)).
 * *ret_t is n + SIXTEENTHS. */
INLINE vf vexp_parts(vf x, vf *ret_t)
{
    const vf t = vfma(x, vall(0x1.715476p+0f), vall(SIXTEENTHS)), n = t - SIXTEENTHS;
    const vf r = vfma(n, vall(-0x1.7f7d1cp-20f), vfma(n, vall(-0x1.62e400p-1f), x));
    const vf q = vfma(vall(0x1.555754p-3f), r, vall(0x1.000220p-1f)), p = vfma(q, r * r, r);
    const vf root = vroot((vi)t);
    *ret_t = t;
    return root + vfma(root, p, vroot_rest((vi)t));
}

/* The clamp keeps NaN: x86 minimum and maximum return their second operand. What is 0 is made of 0, or by a mask: a
 * product that underflows takes a hundred cycles of microcode, and the -infinities of a causal mask are half of the
 * scores of attention. vexp_below is for x <= 0 or NaN, of which it makes the same bits. */
#if WEFT_LEVEL == 2
INLINE vf vexp_below(vf x)
{
    vf t;
    const vf m = vexp_parts(x, &t);
    return vscale_from(m, t - SIXTEENTHS, x, -104.f);
}
INLINE vf vexp(vf x) { return vexp_below(vmin_x86(vall(89.f), x)); }
#else
INLINE vf vexp_any(vf x) /* x <= 89 or NaN */
{
    const vi some = ~(x < -104.f);
    vf t;
    const vf m = vexp_parts(vmax_x86(vall(-104.f), x), &t);
    return vscale((vf)((vi)m & some), t - SIXTEENTHS);
}
#if WEFT_LEVEL == 1
INLINE vf vexp_normal(vf x)
{
    vf t;
    const vf m = vexp_parts(x, &t);
    return vadd_exponent(m, t);
}
INLINE vf vexp(vf x) { return vall_within(x, 87.f) ? vexp_normal(x) : vexp_any(vmin_x86(vall(89.f), x)); }
INLINE vf vexp_below(vf x) { return vall_within(x, 87.f) ? vexp_normal(x) : vexp_any(x); }
#else
INLINE vf vexp(vf x) { return vexp_any(vmin_x86(vall(89.f), x)); }
INLINE vf vexp_below(vf x) { return vexp_any(x); }
#endif
#endif

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

/* Only what is not positive and normal needs choices. */
INLINE vf vlog(vf x)
{
    const int special = __builtin_expect(vany_from((vu)x - 0x00800000, 0x7f000000), 0);
    const vi tiny = x < 0x1p-126f;
    const vf y = special ? vsel(tiny, x * 0x1p24f, x) : x;
    const vi e = (vi)((vu)y - 0x3f2aaaab) >> 23; /* mantissa in [2/3, 4/3) */
    const vf f = (vf)((vu)y - ((vu)e << 23)) - 1.f;
    const vf n = __builtin_convertvector(special ? e - (tiny & 24) : e, vf);
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
    if (special) {
        r = vsel(x == __builtin_inff(), x, r);
        r = vsel(x == 0.f, vall(-__builtin_inff()), r);
        r = vsel((x < 0.f) | (x != x), vall(__builtin_nanf("")), r);
    }
    return r;
}

/* By (e - 1) / (e + 1) with e = exp 2x = 2^n (1 + p), in double, where neither cancels: for n = 0, which near 0 is,
 * p / (p + 2). */
INLINE vd vd_tanh(vd x)
{
    const vd t = vdfma(x, vdall(0x1.71547652b82fep+1), vdall(0x1.8p52)), n = t - 0x1.8p52;
    const vd r = vdfma(n, vdall(-0x1.62e42fefa39efp-1), x + x);
    vd q = vdfma(vdall(0x1.a1a1647922998p-13), r, vdall(0x1.6d7486863f8d8p-10));
    q = vdfma(q, r, vdall(0x1.11108f9ab0d7cp-7));
    q = vdfma(q, r, vdall(0x1.5554add357114p-5));
    q = vdfma(q, r, vdall(0x1.55555589048a9p-3));
    q = vdfma(q, r, vdall(0x1.00000027debaep-1));
    const vd p = vdfma(q, r * r, r), power = (vd)(((vq)t + 1023) << 52);
    return vdfma(power, p, power - 1.0) / vdfma(power, p, power + 1.0);
}
INLINE vf vtanh(vf x)
{
    const vf a = vmax_x86(vall(-10.f), vmin_x86(vall(10.f), x));
    return vcopysign(vjoin(vd_tanh(vlow(a)), vd_tanh(vhigh(a))), x);
}

/* The exponential never overflows, so the left tail keeps its digits. */
INLINE vf vsigmoid(vf x)
{
    const vf e = vexp_below(-vabs(x));
    return vby_sign(x, e, vall(1.f)) / (1.f + e);
}

INLINE vf vsilu(vf x)
{
    const vf e = vexp_below(-vabs(x));
    return vby_sign(x, x * e, x) / (1.f + e);
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

/* max(x, 0) - |x| h(|x|), where h = erfc(|x| / sqrt 2) / 2 is 2 to a polynomial: nothing cancels for negative x. The
 * maximum is the mean of x and |x|, since of -infinity this is NaN as the formula of the op is. Beyond -8 the
 * polynomial falls faster than its function, and results of less than 1e-14 go to 0. Parts of it are computed side by
 * side: how long the chain of operations is counts as much as how many there are. */
INLINE vf vgelu(vf x)
{
    const vf b = vabs(x), a = vmin_x86(vall(14.f), b);
    const vf s = a * a, s2 = s * s;
    const vf low = vfma(vfma(vall(0x1.c6fd42p-8f), a, vall(-0x1.adad12p-5f)), s,
                        vfma(vall(-0x1.d63c8cp-2f), a, vall(-0x1.26aed0p+0f)));
    const vf middle = vfma(vfma(vall(-0x1.11de4cp-16f), a, vall(0x1.86b97ap-14f)), s,
                           vfma(vall(-0x1.448b1cp-12f), a, vall(0x1.bcbd0ep-16f)));
    const vf high = vfma(vfma(vall(-0x1.fe73eep-34f), a, vall(0x1.9d18b6p-28f)), s,
                         vfma(vall(-0x1.29c116p-23f), a, vall(0x1.f6fbeap-20f)));
    const vf q = vfma(vfma(high, s2, middle), s2, low);
    const vf t = vfma(q, a, vall(SIXTEENTHS - 1.f)), n = t - SIXTEENTHS, r = vfma(q, a, -1.f - n);
    vf p = vfma(vall(0x1.c6af26p-5f), r, vall(0x1.ebfff4p-3f));
    p = vfma(p, r, vall(0x1.62e430p-1f)) * r;
    const vf root = vroot((vi)t), h = vscale_or_0(vfma(root, p, root), t, x, 12.f);
    return vcopysign(vfma(-a, h, vfma(vall(0.5f), x, 0.5f * b)), x);
}

/* ½ x (1 + tanh u) = x sigmoid(2u). */
INLINE vf vgelu_tanh(vf x)
{
    const vf twice = 0x1.988454p+0f * vfma(vall(0x1.6e4e26p-5f), x * x * x, x), e = vexp_below(-vabs(twice));
    return vby_sign(x, x * e, x) / (1.f + e);
}

/* log(1 + x) for x in [0, 1] or NaN: x + q(e) e². Subnormal operands take long, so e is 0 where x² is nothing. */
INLINE vf vlog1p_to_1(vf x)
{
    const vf e = (vf)((vi)x & (x >= 0x1p-60f));
    vf q = vfma(vall(-0x1.b2f58cp-9f), e, vall(0x1.4b083cp-6f));
    q = vfma(q, e, vall(-0x1.d8632ep-5f));
    q = vfma(q, e, vall(0x1.b579cap-4f));
    q = vfma(q, e, vall(-0x1.3a7a84p-3f));
    q = vfma(q, e, vall(0x1.935ca2p-3f));
    q = vfma(q, e, vall(-0x1.ff26e2p-3f));
    q = vfma(q, e, vall(0x1.554df0p-2f));
    q = vfma(q, e, vall(-0x1.ffffd2p-2f));
    return vfma(e * q, e, x);
}
/* exp -|x|, for what adds it to 1 or more where x is positive: there neither it nor its half gets subnormal, which
 * would take long. */
INLINE vf vexp_beside(vf x)
{
    const vf y = -vabs(x);
    return vexp_below(vby_sign(x, y, vmax_x86(vall(-80.f), y)));
}
INLINE vf vsoftplus(vf x) { return vmax_x86(vall(0.f), x) + vlog1p_to_1(vexp_beside(x)); }

/* tanh(log(1 + exp x)) = (e² + 2e) / (e² + 2e + 2) with e = exp x, or (1 + 2e) / (1 + 2e + 2e²) with e = exp -x. */
INLINE vf vmish(vf x)
{
    const vf e = vexp_beside(x), twice = e + e, n = vby_sign(x, vfma(e, e, twice), 1.f + twice);
    return x * n / vfma(vby_sign(x, vall(2.f), twice), vby_sign(x, vall(1.f), e), n);
}

/* exp x - 1 = 2^n p + (2^n - 1), x = n ln2 + r, p = exp r - 1. Half of it is computed, since 2^n may be 2^128. */
INLINE vf vexpm1(vf x)
{
    const vf a = vmax_x86(vall(-18.f), vmin_x86(vall(89.f), x));
    const vf t = vfma(a, vall(0x1.715476p+0f), vall(0x1.8000fcp23f)); /* the low bits hold n + 126 */
    const vf n = t - 0x1.8000fcp23f, r = vfma(n, vall(-0x1.7f7d1cp-20f), vfma(n, vall(-0x1.62e400p-1f), a));
    vf q = vfma(vall(0x1.6bebf4p-10f), r, vall(0x1.1227f6p-7f));
    q = vfma(q, r, vall(0x1.555674p-5f));
    q = vfma(q, r, vall(0x1.5554b0p-3f));
    q = vfma(q, r, vall(0x1.fffffep-2f));
    const vf half = (vf)((vu)t << 23), y = vfma(half, vfma(q * r, r, r), half - 0.5f);
    return vsel(vabs(x) < 0x1p-100f, x, y + y); /* half of those may be subnormal; and -0 stays */
}
#endif
