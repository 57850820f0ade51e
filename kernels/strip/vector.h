/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h: the vocabulary in which strip kernels are written once and compiled per CPU level.
 *
 * vf, vi, vu hold LANES floats, integers, unsigned integers; vd, vl, vq hold LANES / 2 doubles and 64-bit integers; vh
 * and vb hold LANES 16-bit and 8-bit elements. Arithmetic, comparison and shuffles are the compiler's vector
 * extensions, which gcc and clang share; the rest (fused multiply-add, square root, rounding, minimum, masked access,
 * 16-bit floats) is a few built-ins a level, here and nowhere else. No intrinsics header: it costs more to compile than
 * all kernels together.
 *
 * Every helper gives the same bits at each level. The baseline has neither fused multiply-add nor rounding, so it calls
 * the C library a lane at a time: right, not fast. Integer arithmetic that may wrap is done in vu.
 *
 * vmin_x86 and vmax_x86 return their second operand when either is NaN or both are zero, as the instructions do: with a
 * constant first, NaN of the second survives at no cost.
 *
 * vpick takes lane index[l] of a, or of b where that is LANES and more; the baseline has none. vpass, of AVX-512
 * alone, takes the lanes of a that a mask names, and the others of b.
 *
 * vby_sign takes lanes of a where the sign of x is set, else those of b. vany_from: has x a lane from the bound on?
 * vat takes number index[l] & 15 of sixteen numbers, which are as many vectors as that is.
 *
 * Masked forms touch only the first n elements, 0 <= n <= LANES; dead lanes read as `fill`. */
#ifndef WEFT_STRIP_VECTOR_H
#define WEFT_STRIP_VECTOR_H

#include <stdint.h>

#ifndef WEFT_LEVEL
#define WEFT_LEVEL 0
#endif

#if WEFT_LEVEL == 2
#define LANES       16
#define LEVEL(name) name##__avx512
#define LEVEL_TEXT  "__avx512"
#define LEVEL_CPU   (WEFT_CPU_AVX2 | WEFT_CPU_AVX512)
#elif WEFT_LEVEL == 1
#define LANES       8
#define LEVEL(name) name##__avx2
#define LEVEL_TEXT  "__avx2"
#define LEVEL_CPU   WEFT_CPU_AVX2
#else
#define LANES       4
#define LEVEL(name) name##__ref
#define LEVEL_TEXT  "__ref"
#define LEVEL_CPU   0
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 16")

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef uint8_t vb __attribute__((vector_size(LANES)));
typedef int8_t vsb __attribute__((vector_size(LANES)));
typedef double vd __attribute__((vector_size(4 * LANES)));
typedef int64_t vl __attribute__((vector_size(4 * LANES)));
typedef uint64_t vq __attribute__((vector_size(4 * LANES)));
typedef float vf_half __attribute__((vector_size(2 * LANES)));
typedef float vf_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t vi_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t vh_any __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint8_t vb_any __attribute__((vector_size(LANES), aligned(1), may_alias));

/* --- memory and constants ----------------------------------------------------------------------------------------- */

INLINE vf vall(float x) { return x - (vf){0}; }
INLINE vi viall(int32_t x) { return x - (vi){0}; }
INLINE vd vdall(double x) { return x - (vd){0}; }
INLINE vf vload(const float *p) { return *(const vf_any *)p; }
INLINE void vstore(float *p, vf x) { *(vf_any *)p = x; }
INLINE vi viload(const int32_t *p) { return *(const vi_any *)p; }
INLINE void vistore(int32_t *p, vi x) { *(vi_any *)p = x; }
INLINE vh vhload(const uint16_t *p) { return *(const vh_any *)p; }
INLINE void vhstore(uint16_t *p, vh x) { *(vh_any *)p = x; }
INLINE vb vbload(const uint8_t *p) { return *(const vb_any *)p; }
INLINE void vbstore(uint8_t *p, vb x) { *(vb_any *)p = x; }

/* LANES bytes as integers, and masks (all or no bits of a lane) as bytes 0 and 1. gcc 12 converts such vectors an
 * element at a time (of AVX-512 only when they widen), so the levels say how. */
#if WEFT_LEVEL == 2 && !defined __clang__
typedef char v16c __attribute__((vector_size(16)));
INLINE vi vwiden(vb x) { return __builtin_ia32_pmovzxbd512_mask((v16c)x, (vi){0}, (uint16_t)-1); }
#elif WEFT_LEVEL == 1 && !defined __clang__
typedef char v16c __attribute__((vector_size(16)));
typedef int64_t v2l __attribute__((vector_size(16)));
typedef int64_t v1l __attribute__((vector_size(8)));
INLINE vi vwiden(vb x) { return __builtin_ia32_pmovzxbd256((v16c)(v2l){((v1l)x)[0], 0}); }
INLINE vb vmask_bytes(vi mask) /* packed, the bytes of each half are the lowest four of its half */
{
    typedef short v16w __attribute__((vector_size(32)));
    const v16w words = (v16w)__builtin_ia32_packssdw256(mask, mask);
    const vi bytes = (vi)__builtin_ia32_packsswb256(words, words);
    return (vb)((uint64_t)(uint32_t)bytes[0] | (uint64_t)(uint32_t)bytes[4] << 32) & 1;
}
#else
INLINE vi vwiden(vb x) { return __builtin_convertvector(x, vi); }
#endif
#if WEFT_LEVEL != 1 || defined __clang__
INLINE vb vmask_bytes(vi mask) { return (vb)__builtin_convertvector(mask, vsb) & 1; }
#endif

/* --- choice: masks have all or no bits of a lane set, as comparisons give them ------------------------------------ */

#if WEFT_LEVEL == 2 && !defined __clang__ /* gcc 12 does not fold the three operations into one */
INLINE vi visel(vi m, vi a, vi b) { return __builtin_ia32_pternlogd512_mask(m, a, b, 0xca, (uint16_t)-1); }
#else
INLINE vi visel(vi m, vi a, vi b) { return (m & a) | (~m & b); }
#endif
INLINE vf vsel(vi m, vf a, vf b) { return (vf)visel(m, (vi)a, (vi)b); }
INLINE vd vdsel(vl m, vd a, vd b) { return (vd)visel((vi)m, (vi)a, (vi)b); }
INLINE vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }
INLINE vd vdabs(vd x) { return (vd)((vl)x & INT64_MAX); }
INLINE vf vcopysign(vf x, vf s) { return vsel(viall(INT32_MAX), x, s); }

/* --- what differs between levels ---------------------------------------------------------------------------------- */

#if WEFT_LEVEL == 2

#define WEFT_ALL_LANES ((uint16_t)-1)
#define WEFT_CURRENT   4 /* direction of rounding as set */
INLINE uint16_t vtail(int n) { return (uint16_t)((1u << n) - 1); }
INLINE vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, WEFT_ALL_LANES, WEFT_CURRENT); }
INLINE vd vdfma(vd a, vd b, vd c) { return __builtin_ia32_vfmaddpd512_mask(a, b, c, (uint8_t)-1, WEFT_CURRENT); }
#ifdef __clang__
INLINE vf vat(vi index, const vf_any *table) { return __builtin_ia32_permvarsf512(*table, index); }
INLINE vf vsqrt(vf x) { return __builtin_ia32_sqrtps512(x, WEFT_CURRENT); }
INLINE vd vdsqrt(vd x) { return __builtin_ia32_sqrtpd512(x, WEFT_CURRENT); }
INLINE vf vmin_x86(vf a, vf b) { return __builtin_ia32_minps512(a, b, WEFT_CURRENT); }
INLINE vf vmax_x86(vf a, vf b) { return __builtin_ia32_maxps512(a, b, WEFT_CURRENT); }
INLINE void vstream(float *p, vf x) { __builtin_nontemporal_store(x, (vf *)p); }
INLINE void vhstream(uint16_t *p, vh x) { __builtin_nontemporal_store(x, (vh *)p); }
INLINE vf vpick(vf a, vi index, vf b) { return (vf)__builtin_ia32_vpermi2vard512((vi)a, index, (vi)b); }
INLINE vf vpass(uint16_t some, vf a, vf b) { return __builtin_ia32_selectps_512(some, a, b); }
#else
INLINE vf vat(vi index, const vf_any *table)
{
    return __builtin_ia32_permvarsf512_mask(*table, index, *table, WEFT_ALL_LANES);
}
INLINE vf vsqrt(vf x) { return __builtin_ia32_sqrtps512_mask(x, x, WEFT_ALL_LANES, WEFT_CURRENT); }
INLINE vd vdsqrt(vd x) { return __builtin_ia32_sqrtpd512_mask(x, x, (uint8_t)-1, WEFT_CURRENT); }
INLINE vf vmin_x86(vf a, vf b) { return __builtin_ia32_minps512_mask(a, b, a, WEFT_ALL_LANES, WEFT_CURRENT); }
INLINE vf vmax_x86(vf a, vf b) { return __builtin_ia32_maxps512_mask(a, b, a, WEFT_ALL_LANES, WEFT_CURRENT); }
INLINE void vstream(float *p, vf x) { __builtin_ia32_movntps512(p, x); }
typedef long long v4q __attribute__((vector_size(32)));
INLINE void vhstream(uint16_t *p, vh x) { __builtin_ia32_movntdq256((v4q *)p, (v4q)x); }
INLINE vf vpick(vf a, vi index, vf b)
{
    return (vf)__builtin_ia32_vpermt2vard512_mask(index, (vi)a, (vi)b, WEFT_ALL_LANES);
}
INLINE vf vpass(uint16_t some, vf a, vf b) { return __builtin_ia32_blendmps_512_mask(b, a, some); }
#endif
INLINE vf vby_sign(vf x, vf a, vf b) { return vpass((uint16_t)__builtin_ia32_cvtd2mask512((vi)x), a, b); }
INLINE int vany_from(vu x, uint32_t bound)
{
    return __builtin_ia32_ucmpd512_mask((vi)x, viall((int32_t)bound), 5, WEFT_ALL_LANES) != 0;
}
INLINE vf vloadm(const float *p, int n, float fill) { return __builtin_ia32_loadups512_mask(p, vall(fill), vtail(n)); }
INLINE void vstorem(float *p, int n, vf x) { __builtin_ia32_storeups512_mask(p, x, vtail(n)); }
#define VROUND(x, how) __builtin_ia32_rndscaleps_mask(x, how, x, WEFT_ALL_LANES, WEFT_CURRENT)
INLINE vf vtrunc(vf x) { return VROUND(x, 11); }
INLINE vf vround(vf x) { return VROUND(x, 8); } /* to nearest, ties to even; 8: without raising inexact */
INLINE vf vfloor(vf x) { return VROUND(x, 9); }
INLINE vf vceil(vf x) { return VROUND(x, 10); }
typedef short v16s __attribute__((vector_size(32)));
INLINE vf vfrom_f16(vh x) { return __builtin_ia32_vcvtph2ps512_mask((v16s)x, (vf){0}, WEFT_ALL_LANES, WEFT_CURRENT); }
INLINE vh vto_f16(vf x) { return (vh)__builtin_ia32_vcvtps2ph512_mask(x, 8, (v16s){0}, WEFT_ALL_LANES); }
/* x · 2^floor(n), rounded once; |n| <= 250. */
INLINE vf vscale(vf x, vf n) { return __builtin_ia32_scalefps512_mask(x, n, x, WEFT_ALL_LANES, WEFT_CURRENT); }
/* The same where y is not less than the bound, and 0 elsewhere, whatever x and n are there. */
INLINE vf vscale_from(vf x, vf n, vf y, float bound)
{
    const uint16_t some = __builtin_ia32_cmpps512_mask(y, vall(bound), 5 /* not less */, WEFT_ALL_LANES, WEFT_CURRENT);
    return __builtin_ia32_scalefps512_mask(x, n, (vf){0}, some, WEFT_CURRENT);
}

#elif WEFT_LEVEL == 1

INLINE vi vtail(int n) { return (vi){0, 1, 2, 3, 4, 5, 6, 7} < n; }
INLINE vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }
INLINE vd vdfma(vd a, vd b, vd c) { return __builtin_ia32_vfmaddpd256(a, b, c); }
INLINE vf vat(vi index, const vf_any *table)
{
    const vf low = __builtin_ia32_permvarsf256(table[0], index), high = __builtin_ia32_permvarsf256(table[1], index);
    return __builtin_ia32_blendvps256(low, high, (vf)(vi)((vu)index << 28));
}
INLINE vf vsqrt(vf x) { return __builtin_ia32_sqrtps256(x); }
INLINE vd vdsqrt(vd x) { return __builtin_ia32_sqrtpd256(x); }
INLINE vf vmin_x86(vf a, vf b) { return __builtin_ia32_minps256(a, b); }
INLINE vf vmax_x86(vf a, vf b) { return __builtin_ia32_maxps256(a, b); }
INLINE vf vpick(vf a, vi index, vf b)
{
    return vsel(index > 7, __builtin_ia32_permvarsf256(b, index & 7), __builtin_ia32_permvarsf256(a, index));
}
INLINE vf vby_sign(vf x, vf a, vf b) { return __builtin_ia32_blendvps256(b, a, x); }
INLINE int vany_from(vu x, uint32_t bound) { return __builtin_ia32_movmskps256((vf)(vi)(x >= bound)) != 0; }
INLINE vf vloadm(const float *p, int n, float fill)
{
    const vi m = vtail(n);
    return vsel(m, __builtin_ia32_maskloadps256((const vf *)p, m), vall(fill));
}
INLINE void vstorem(float *p, int n, vf x) { __builtin_ia32_maskstoreps256((vf *)p, vtail(n), x); }
INLINE vf vround(vf x) { return __builtin_ia32_roundps256(x, 8); }
INLINE vf vtrunc(vf x) { return __builtin_ia32_roundps256(x, 11); }
INLINE vf vfloor(vf x) { return __builtin_ia32_roundps256(x, 9); }
INLINE vf vceil(vf x) { return __builtin_ia32_roundps256(x, 10); }
typedef short v8s __attribute__((vector_size(16)));
#ifdef __clang__
typedef __fp16 v8fp16 __attribute__((vector_size(16)));
INLINE vf vfrom_f16(vh x) { return __builtin_convertvector((v8fp16)x, vf); }
INLINE void vstream(float *p, vf x) { __builtin_nontemporal_store(x, (vf *)p); }
INLINE void vhstream(uint16_t *p, vh x) { __builtin_nontemporal_store(x, (vh *)p); }
#else
INLINE vf vfrom_f16(vh x) { return __builtin_ia32_vcvtph2ps256((v8s)x); }
INLINE void vstream(float *p, vf x) { __builtin_ia32_movntps256(p, x); }
typedef long long v2q __attribute__((vector_size(16)));
INLINE void vhstream(uint16_t *p, vh x) { __builtin_ia32_movntdq((v2q *)p, (v2q)x); }
#endif
INLINE vh vto_f16(vf x) { return (vh)__builtin_ia32_vcvtps2ph256(x, 0); }

#else

#define EACH_LANE(expression)                                                                                          \
    vf r = x;                                                                                                          \
    for (int lane = 0; lane < 4; lane++)                                                                               \
        r[lane] = expression;                                                                                          \
    return r
INLINE vf vfma(vf x, vf b, vf c) { EACH_LANE(__builtin_fmaf(x[lane], b[lane], c[lane])); }
INLINE vd vdfma(vd x, vd b, vd c)
{
    return (vd){__builtin_fma(x[0], b[0], c[0]), __builtin_fma(x[1], b[1], c[1])};
}
INLINE vf vat(vi index, const vf_any *table)
{
    vf x = {0};
    EACH_LANE(table[(index[lane] & 15) >> 2][index[lane] & 3]);
}
#ifdef __x86_64__
INLINE vf vsqrt(vf x) { return __builtin_ia32_sqrtps(x); }
INLINE vd vdsqrt(vd x) { return __builtin_ia32_sqrtpd(x); }
INLINE vf vmin_x86(vf a, vf b) { return __builtin_ia32_minps(a, b); }
INLINE vf vmax_x86(vf a, vf b) { return __builtin_ia32_maxps(a, b); }
INLINE int vlanes(vi mask) { return __builtin_ia32_movmskps((vf)mask); } /* a bit for each lane of a mask */
#else
INLINE vf vsqrt(vf x) { EACH_LANE(__builtin_sqrtf(x[lane])); }
INLINE vd vdsqrt(vd x) { return (vd){__builtin_sqrt(x[0]), __builtin_sqrt(x[1])}; }
INLINE vf vmin_x86(vf a, vf b) { return vsel(a < b, a, b); }
INLINE vf vmax_x86(vf a, vf b) { return vsel(a > b, a, b); }
INLINE int vlanes(vi mask)
{
    mask &= (vi){1, 2, 4, 8};
    return mask[0] | mask[1] | mask[2] | mask[3];
}
#endif
INLINE vf vby_sign(vf x, vf a, vf b) { return vsel((vi)x < 0, a, b); }
INLINE int vany_from(vu x, uint32_t bound) { return vlanes((vi)(x >= bound)) != 0; }
INLINE vf vloadm(const float *p, int n, float fill)
{
    vf x = vall(fill);
    EACH_LANE(lane < n ? p[lane] : x[lane]);
}
INLINE void vstorem(float *p, int n, vf x)
{
    for (int lane = 0; lane < n; lane++)
        p[lane] = x[lane];
}
INLINE vf vround(vf x) { EACH_LANE(__builtin_rintf(x[lane])); }
INLINE vf vtrunc(vf x) { EACH_LANE(__builtin_truncf(x[lane])); }
INLINE vf vfloor(vf x) { EACH_LANE(__builtin_floorf(x[lane])); }
INLINE vf vceil(vf x) { EACH_LANE(__builtin_ceilf(x[lane])); }
#ifdef __clang__
INLINE void vstream(float *p, vf x) { __builtin_nontemporal_store(x, (vf *)p); }
#elif defined __x86_64__
INLINE void vstream(float *p, vf x) { __builtin_ia32_movntps(p, x); }
#else
INLINE void vstream(float *p, vf x) { *(vf *)p = x; } /* gcc has no such store for other processors */
#endif
INLINE void vhstream(uint16_t *p, vh x) { *(vh *)p = x; } /* 8 bytes: nothing streams them from vectors */

#endif

#if WEFT_LEVEL < 2
INLINE vf vscale(vf x, vf n) /* two steps, the first exact unless both are, so that the ends of the range round once */
{
    const vi whole = __builtin_convertvector(n, vi), i = whole + (__builtin_convertvector(whole, vf) > n), h = i >> 1;
    return x * (vf)((vu)(h + 127) << 23) * (vf)((vu)(i - h + 127) << 23);
}
#endif

/* Orders streaming stores before whatever follows. Of x86 they are not in order with others, whatever a release says;
 * elsewhere what tells other threads of a result orders them too. */
INLINE void vfence(void)
{
#ifdef __x86_64__
    __builtin_ia32_sfence();
#endif
}

/* Minimum and maximum that keep NaN, as the frameworks define them. A NaN of b costs nothing. */
#if WEFT_LEVEL == 2 && !defined __clang__ /* gcc 12 makes a vector of the mask and selects in three operations */
#define WEFT_NUMBERS(a) __builtin_ia32_cmpps512_mask(a, a, 7 /* ordered */, WEFT_ALL_LANES, WEFT_CURRENT)
INLINE vf vmin(vf a, vf b) { return __builtin_ia32_minps512_mask(a, b, a, WEFT_NUMBERS(a), WEFT_CURRENT); }
INLINE vf vmax(vf a, vf b) { return __builtin_ia32_maxps512_mask(a, b, a, WEFT_NUMBERS(a), WEFT_CURRENT); }
#else
INLINE vf vmin(vf a, vf b) { return vsel(a != a, a, vmin_x86(a, b)); }
INLINE vf vmax(vf a, vf b) { return vsel(a != a, a, vmax_x86(a, b)); }
#endif

/* --- doubles: half the lanes each --------------------------------------------------------------------------------- */

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

/* --- 16-bit floats ------------------------------------------------------------------------------------------------ */

/* bf16 is the upper half of a lane, to nearest even; NaN becomes quiet. Of AVX-512, one permutation of 16-bit elements
 * does what otherwise takes two operations, and gcc 12 makes a vector of the mask of NaN. The machine's own
 * instruction, which emitted code is compiled with where the CPU has it, flushes denormals: vectors with some go the
 * long way. */
#if WEFT_LEVEL == 2 && !defined __clang__
typedef short v32s __attribute__((vector_size(64)));
INLINE vf vfrom_bf16(vh x)
{
    const v32s place = {0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                        0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    const v16s half = (v16s)x;
    const v32s wide = __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1, -1,
                                              -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    return (vf)__builtin_ia32_permvarhi512_mask(wide, place, (v32s){0}, 0xaaaaaaaa);
}
INLINE vh vtop_bf16(vf x)
{
    const v32s place = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    const v32s top = __builtin_ia32_permvarhi512_mask((v32s)x, place, (v32s){0}, (uint32_t)-1);
    return (vh)__builtin_shufflevector(top, top, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#define WEFT_NAN(x) __builtin_ia32_cmpps512_mask(x, x, 3 /* unordered */, WEFT_ALL_LANES, WEFT_CURRENT)
INLINE vf vquiet(vf x, vf rounded)
{
    return (vf)__builtin_ia32_pord512_mask((vi)x, viall(0x400000), (vi)rounded, WEFT_NAN(x));
}
#elif WEFT_LEVEL == 1 && !defined __clang__ /* gcc 12 widens half by half, and clears what is clear */
typedef short v8s __attribute__((vector_size(16)));
typedef long long v4l __attribute__((vector_size(32)));
INLINE vf vfrom_bf16(vh x) { return (vf)((vu)__builtin_ia32_pmovzxwd256((v8s)x) << 16); }
INLINE vh vtop_bf16(vf x)
{
    const vi top = (vi)((vu)x >> 16);
    const v4l packed = __builtin_ia32_permdi256((v4l)__builtin_ia32_packusdw256(top, top), 0xd8);
    return (vh)__builtin_shufflevector(packed, packed, 0, 1);
}
INLINE vf vquiet(vf x, vf rounded) { return (vf)((vu)rounded | (vu)(x != x)); }
#else
INLINE vf vfrom_bf16(vh x) { return (vf)(__builtin_convertvector(x, vu) << 16); }
INLINE vh vtop_bf16(vf x) { return __builtin_convertvector((vu)x >> 16, vh); } /* without rounding */
INLINE vf vquiet(vf x, vf rounded) { return vsel(x != x, (vf)((vu)x | 0x400000), rounded); }
#endif
INLINE vf vnear_bf16(vf x)
{
    const vu u = (vu)x;
    return vquiet(x, (vf)(u + 0x7fff + ((u >> 16) & 1)));
}
#if WEFT_LEVEL == 2 && defined __AVX512BF16__ && !defined __clang__
INLINE vh vto_bf16(vf x)
{
    const vh rounded = (vh)__builtin_ia32_cvtneps2bf16_v16sf(x);
    const int denormal = __builtin_ia32_fpclassps512_mask(x, 0x20, WEFT_ALL_LANES) != 0;
    return __builtin_expect(denormal, 0) ? vtop_bf16(vnear_bf16(x)) : rounded;
}
INLINE vf vround_bf16(vf x) { return vfrom_bf16(vto_bf16(x)); }
#else
INLINE vh vto_bf16(vf x) { return vtop_bf16(vnear_bf16(x)); }
INLINE vf vround_bf16(vf x) { return (vf)((vu)vnear_bf16(x) & 0xffff0000); }
#endif

#if WEFT_LEVEL == 0
/* Half precision in integers. A half is s eeeee mmmmmmmmmm; its float has the exponent 112 higher and 13 more bits. */
INLINE vf vfrom_f16(vh x)
{
    const vu wide = __builtin_convertvector(x, vu), sign = (wide & 0x8000) << 16, rest = (wide & 0x7fff) << 13;
    const vu normal = rest + (112u << 23), special = normal + (112u << 23);
    const vf small = (vf)(rest + (113u << 23)) - 0x1p-14f; /* denormal: the float unit shifts the leading one up */
    const vu loud = (vu)visel((vi)(rest > (31u << 23)), (vi)(special | 0x400000), (vi)special);
    const vu finite = (vu)visel((vi)(rest < (1u << 23)), (vi)small, (vi)normal);
    return (vf)((vu)visel((vi)(rest >= (31u << 23)), (vi)loud, (vi)finite) | sign);
}
INLINE vh vto_f16(vf x)
{
    const vu u = (vu)x, sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
    const vu normal = (a - (112u << 23) + 0xfff + ((a >> 13) & 1)) >> 13;
    const vu small =
        (vu)((vf)a + 0.5f) - (126u << 23); /* the sum rounds to units of 2^-24, what a half denormal counts */
    vu r = (vu)visel((vi)(a < (113u << 23)), (vi)small, (vi)normal);
    r = (vu)visel((vi)(a >= 0x477ff000u), viall(0x7c00), (vi)r); /* 65520 and above round to infinity */
    r = (vu)visel((vi)(a > 0x7f800000u), (vi)(((a >> 13) & 0x3ff) | 0x7e00), (vi)r);
    return __builtin_convertvector(r | sign, vh);
}
#endif
#endif
