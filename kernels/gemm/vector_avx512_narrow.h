/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx512_narrow.h: the words that tiles are written in, as 256-bit vectors under AVX-512's masks and registers:
 * for widths that would leave half of a 512-bit vector idle. */
#ifndef WEFT_VECTOR_H
#define WEFT_VECTOR_H

#include "kernels/gemm/vector_avx2_eight.h"

#include <immintrin.h>
#include <stdint.h>

typedef __m256 vector;
typedef __mmask8 lanes;
enum { LANES = 8 };

#define UNROLL _Pragma("GCC unroll 64")

#define VECTOR_PIN(v) __asm__("" : "+v"(v))
#define POINTER_PIN(p) __asm__("" : "+r"(p))
#define FOUR_TERMS false
#define ANY_STRIDE 1
#define TURNS      1
#define FEW_LINES  0
#define COPIES     0
#define VECTOR_ADD_PRODUCT(sum, x, y) ((sum) = vector_fma(x, y, sum))

static inline vector vector_zero(void) { return _mm256_setzero_ps(); }
static inline vector vector_set(float x) { return _mm256_set1_ps(x); }
static inline vector vector_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vector_store(float *p, vector v) { _mm256_storeu_ps(p, v); }
static inline vector vector_add(vector a, vector b) { return _mm256_add_ps(a, b); }
/* b where one of the two is NaN. */
static inline vector vector_max(vector a, vector b) { return _mm256_max_ps(a, b); }
static inline vector vector_min(vector a, vector b) { return _mm256_min_ps(a, b); }
/* The first eight lanes. */
static inline eight vector_eight(vector v) { return v; }
static inline vector vector_fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }

static inline lanes lanes_first(int64_t count)
{
    return (lanes)(count >= LANES ? 0xff : count <= 0 ? 0 : (1 << count) - 1);
}
/* 1 to LANES of them. */
static inline lanes lanes_some(int64_t count) { return (lanes)_bzhi_u32(0xff, (unsigned)count); }
static inline vector vector_load_lanes(const float *p, lanes m) { return _mm256_maskz_loadu_ps(m, p); }
static inline void vector_store_lanes(float *p, lanes m, vector v) { _mm256_mask_storeu_ps(p, m, v); }

#endif
