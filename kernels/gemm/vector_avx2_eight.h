/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx2_eight.h: words for eight lanes of f32 whatever the vectors are; each vector_<isa>.h from AVX2 on includes
 * it. */
#ifndef WEFT_VECTOR_AVX2_EIGHT_H
#define WEFT_VECTOR_AVX2_EIGHT_H

#include <immintrin.h>

typedef __m256 eight;

static inline eight eight_zero(void) { return _mm256_setzero_ps(); }
static inline eight eight_set(float x) { return _mm256_set1_ps(x); }
static inline eight eight_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void eight_store(float *p, eight v) { _mm256_storeu_ps(p, v); }
static inline eight eight_fma(eight a, eight b, eight c) { return _mm256_fmadd_ps(a, b, c); }

/* v with one lane of x, by an instruction that needs no port of the multiply-adds. */
static inline __attribute__((always_inline)) eight eight_put(eight v, eight x, const int lane)
{
#ifdef __AVX512VL__
    return _mm256_mask_mov_ps(v, (__mmask8)(1 << lane), x);
#else
    switch (lane) { /* the blend takes a literal */
    case 0: return _mm256_blend_ps(v, x, 0x01);
    case 1: return _mm256_blend_ps(v, x, 0x02);
    case 2: return _mm256_blend_ps(v, x, 0x04);
    case 3: return _mm256_blend_ps(v, x, 0x08);
    case 4: return _mm256_blend_ps(v, x, 0x10);
    case 5: return _mm256_blend_ps(v, x, 0x20);
    case 6: return _mm256_blend_ps(v, x, 0x40);
    default: return _mm256_blend_ps(v, x, 0x80);
    }
#endif
}

#endif
