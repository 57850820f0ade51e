/* SPDX-License-Identifier: Apache-2.0 */
/* conv_avx2.c: the loops of convolution with AVX2 vectors. */
#include "kernels/gemm/vector_avx2.h"

#include "kernels/conv/conv.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/share.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

/* What the preprocessor has to know of vectors. */
#define LANES_16     0
#define MOST_VECTORS 2

/* Lane l of the result is lane index[l] of v. */
static inline vector vector_pick(vector v, const int32_t index[LANES])
{
    return _mm256_permutevar8x32_ps(v, _mm256_loadu_si256((const __m256i *)index));
}

/* Elements 1, 3, 5, … of a and then of b. */
static inline vector vector_odd(vector a, vector b)
{
    const __m256d quarters = _mm256_castps_pd(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(quarters, _MM_SHUFFLE(3, 1, 2, 0)));
}

/* Nothing packs the lanes that are marked. */
#define VECTOR_PACKS 0

/* Transposes 8 x 8: two rounds within each 128-bit half, one that exchanges halves. */
static inline __attribute__((always_inline)) void turn(vector v[LANES])
{
    vector pair[LANES], quad[LANES];
    UNROLL for (int i = 0; i < LANES; i += 2) {
        pair[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < LANES; i += 4) {
        UNROLL for (int h = 0; h < 2; h++) {
            const __m256d x = _mm256_castps_pd(pair[i + h]), y = _mm256_castps_pd(pair[i + 2 + h]);
            quad[i + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, y));
            quad[i + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, y));
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(quad[i], quad[4 + i], 0x20);
        v[4 + i] = _mm256_permute2f128_ps(quad[i], quad[4 + i], 0x31);
    }
}

#define KERNEL(form) weft_conv_f32_##form##__avx2
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
