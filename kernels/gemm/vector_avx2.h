/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx2.h: the dozen words that the loops of gemm and conv are written in, as 256-bit vectors of f32.
 *
 * vector_avx512.h defines the same words with twice the lanes; a file of loops (*.inc) is included after one of the
 * two. Intrinsics and not vector extensions, because a multiply-add must be fused whatever the compiler's flags say. */
#ifndef WEFT_VECTOR_H
#define WEFT_VECTOR_H

#include "kernels/gemm/vector_avx2_eight.h"

#include <immintrin.h>
#include <stdint.h>

typedef __m256 vector;
typedef __m256i lanes; /* a subset of the lanes */
enum { LANES = 8 };

#define UNROLL _Pragma("GCC unroll 64")

/* Emits nothing. Keeps gcc from repeating a load as memory operand of each multiply-add, which would make the loop
 * load-bound. */
#define VECTOR_PIN(v) __asm__("" : "+x"(v))
#define POINTER_PIN(p) __asm__("" : "+r"(p))

/* FOUR_TERMS: have tiles a loop of four terms an iteration? Twelve multiply-adds keep both units busy for six cycles; a
 * term alone is 25 instructions, one of four is 21. A core that has its instruction slots to itself runs both at the
 * same speed; one that shares them with another hardware thread takes a tenth longer for 25.
 * ANY_STRIDE: the same loop for any distance between rows of weights; else that of a panel is in the instructions.
 * TURNS: a tile that prefetches at most FEW_LINES lines every WEFT_AHEAD_TERMS terms does so every TURNS times as
 * many, since each time costs 25 instructions; more lines at once would keep its own loads waiting.
 * VECTOR_ADD_PRODUCT: sum += x * y, in assembly, because in a loop of four terms gcc 12 prefers the form that
 * overwrites a factor, and then moves sums from register to register. */
#define FOUR_TERMS (VECTORS == 2)
#define ANY_STRIDE 0
#define TURNS      4
#define FEW_LINES  1
#define COPIES     0
#define VECTOR_ADD_PRODUCT(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))

static inline vector vector_zero(void) { return _mm256_setzero_ps(); }
static inline vector vector_set(float x) { return _mm256_set1_ps(x); }
static inline vector vector_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vector_store(float *p, vector v) { _mm256_storeu_ps(p, v); }
static inline vector vector_add(vector a, vector b) { return _mm256_add_ps(a, b); }
static inline vector vector_mul(vector a, vector b) { return _mm256_mul_ps(a, b); }
/* b where one of the two is NaN. */
static inline vector vector_max(vector a, vector b) { return _mm256_max_ps(a, b); }
static inline vector vector_min(vector a, vector b) { return _mm256_min_ps(a, b); }
/* The first eight lanes. */
static inline eight vector_eight(vector v) { return v; }
static inline vector vector_fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }

/* Lanes [first, end), where either may lie outside. Masked loads read zero, and touch no memory, elsewhere. */
static inline lanes lanes_between(int64_t first, int64_t end)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int low = first < 0       ? 0
                    : first > LANES ? LANES
                                    : (int)first,
              high = end < 0       ? 0
                     : end > LANES ? LANES
                                   : (int)end;
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(high), index);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(low), index), below);
}
static inline lanes lanes_first(int64_t count) { return lanes_between(0, count); }
/* 1 to LANES of them. */
static inline lanes lanes_some(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vector vector_load_lanes(const float *p, lanes m) { return _mm256_maskload_ps(p, m); }
static inline void vector_store_lanes(float *p, lanes m, vector v) { _mm256_maskstore_ps(p, m, v); }

/* c in the other lanes. */
static inline vector vector_fma_lanes(vector a, vector b, vector c, lanes m)
{
    return _mm256_blendv_ps(c, vector_fma(a, b, c), _mm256_castsi256_ps(m));
}

/* Elements 0, 2, 4, … of a and then of b. */
static inline vector vector_even(vector a, vector b)
{
    const __m256d quarters = _mm256_castps_pd(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(quarters, _MM_SHUFFLE(3, 1, 2, 0)));
}

/* Eight numbers of 16 bits. */
static inline vector vector_load_bf16(const uint16_t *p)
{
    const __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
static inline vector vector_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Eight of 8 bits. */
static inline vector vector_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
static inline vector vector_load_u8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

/* For symmetry: vector_avx512.h adds the upper eight lanes to the lower. */
static inline __m256 vector_halves(vector v) { return v; }

#endif
