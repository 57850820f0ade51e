/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx512.h: the words of vector_avx2.h as 512-bit vectors of f32. */
#ifndef WEFT_VECTOR_H
#define WEFT_VECTOR_H

#include "kernels/gemm/vector_avx2_eight.h"

#include <immintrin.h>
#include <stdint.h>

typedef __m512 vector;
typedef __mmask16 lanes;
enum { LANES = 16 };

#define UNROLL _Pragma("GCC unroll 64")

#define VECTOR_PIN(v) __asm__("" : "+v"(v))
#define POINTER_PIN(p) __asm__("" : "+r"(p))
#define FOUR_TERMS (VECTORS >= 2) /* have tiles a loop of four terms an iteration? See WEFT_ONE_TERM. */
#define ANY_STRIDE 1
#define TURNS      1
#define FEW_LINES  0
#define COPIES     (VECTORS == 4) /* do tiles copy operands (gemm_copy.h)? With copy_on, of gemm_copy_avx512.inc. */
#define VECTOR_ADD_PRODUCT(sum, x, y) ((sum) = vector_fma(x, y, sum))

static inline vector vector_zero(void) { return _mm512_setzero_ps(); }
static inline vector vector_set(float x) { return _mm512_set1_ps(x); }
static inline vector vector_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vector_store(float *p, vector v) { _mm512_storeu_ps(p, v); }
static inline vector vector_add(vector a, vector b) { return _mm512_add_ps(a, b); }
static inline vector vector_mul(vector a, vector b) { return _mm512_mul_ps(a, b); }
/* b where one of the two is NaN. */
static inline vector vector_max(vector a, vector b) { return _mm512_max_ps(a, b); }
static inline vector vector_min(vector a, vector b) { return _mm512_min_ps(a, b); }
/* The first eight lanes. */
static inline eight vector_eight(vector v) { return _mm512_castps512_ps256(v); }
static inline vector vector_fma(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }

static inline lanes lanes_first(int64_t count)
{
    return (lanes)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}
static inline lanes lanes_between(int64_t first, int64_t end)
{
    return (lanes)(lanes_first(end) & ~lanes_first(first));
}
/* 1 to LANES of them. */
static inline lanes lanes_some(int64_t count) { return (lanes)_bzhi_u32(0xffff, (unsigned)count); }
static inline vector vector_load_lanes(const float *p, lanes m) { return _mm512_maskz_loadu_ps(m, p); }
static inline void vector_store_lanes(float *p, lanes m, vector v) { _mm512_mask_storeu_ps(p, m, v); }

/* c in the other lanes. */
static inline vector vector_fma_lanes(vector a, vector b, vector c, lanes m)
{
    return _mm512_mask3_fmadd_ps(a, b, c, m);
}

static inline vector vector_even(vector a, vector b)
{
    const __m512i index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, index, b);
}

/* Lanes l and l + 8 added up. */
static inline __m256 vector_halves(vector v)
{
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

/* Sixteen numbers of 16 bits. */
static inline vector vector_load_bf16(const uint16_t *p)
{
    const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
static inline vector vector_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* Sixteen of 8 bits. */
static inline vector vector_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
static inline vector vector_load_u8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

#endif
