/* SPDX-License-Identifier: Apache-2.0 */
/* conv_avx512.c: the loops of convolution with AVX-512 vectors. */
#include "kernels/gemm/vector_avx512.h"

#include "kernels/conv/conv.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/share.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

/* What the preprocessor has to know of vectors. */
#define LANES_16     1
#define MOST_VECTORS 4

/* Lane l of the result is lane index[l] of v. */
static inline vector vector_pick(vector v, const int32_t index[LANES])
{
    return _mm512_permutexvar_ps(_mm512_loadu_si512(index), v);
}

/* Elements 1, 3, 5, … of a and then of b. */
static inline vector vector_odd(vector a, vector b)
{
    const __m512i index = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, index, b);
}

/* The lanes that are marked, side by side. */
#define VECTOR_PACKS 1
static inline vector vector_pack(vector v, lanes m) { return _mm512_maskz_compress_ps(m, v); }

/* Transposes 16 x 16: two rounds within each 128-bit quarter, two that move the quarters. */
static inline __attribute__((always_inline)) void turn(vector v[LANES])
{
    vector pair[LANES], quad[LANES];
    UNROLL for (int i = 0; i < LANES; i += 2) {
        pair[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < LANES; i += 4) {
        UNROLL for (int h = 0; h < 2; h++) {
            const __m512d x = _mm512_castps_pd(pair[i + h]), y = _mm512_castps_pd(pair[i + 2 + h]);
            quad[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            quad[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        const vector low = _mm512_shuffle_f32x4(quad[i], quad[4 + i], 0x88),
                     odd = _mm512_shuffle_f32x4(quad[i], quad[4 + i], 0xdd),
                     high = _mm512_shuffle_f32x4(quad[8 + i], quad[12 + i], 0x88),
                     last = _mm512_shuffle_f32x4(quad[8 + i], quad[12 + i], 0xdd);
        v[i] = _mm512_shuffle_f32x4(low, high, 0x88);
        v[4 + i] = _mm512_shuffle_f32x4(odd, last, 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(low, high, 0xdd);
        v[12 + i] = _mm512_shuffle_f32x4(odd, last, 0xdd);
    }
}

#define KERNEL(form) weft_conv_f32_##form##__avx512
#include "kernels/gemm/clamp.inc"

#include "kernels/conv/conv_finish.inc"

#include "kernels/conv/conv_gemm.inc"

#include "kernels/conv/conv_depth.inc"

#include "kernels/conv/slide.inc"

#include "kernels/conv/conv_turn.inc"

#include "kernels/conv/direct.inc"

#include "kernels/conv/phases.inc"

#include "kernels/conv/transposed.inc"

#include "kernels/conv/windows.inc"

#include "kernels/conv/grouped.inc"

#include "kernels/conv/winograd.inc"
