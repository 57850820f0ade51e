/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_ref.c: the definition of a correct product: the formula of gemm.h, one result after the other. */
#include "kernels/gemm/gemm.h"

#include <math.h>

void weft_gemm_plain(const struct weft_gemm *gemm, float *c, const float *a, const float *b, const int64_t begin[3],
                     const int64_t end[3])
{
    for (int64_t n = begin[0]; n < end[0]; n++) {
        for (int64_t i = begin[1]; i < end[1]; i++) {
            for (int64_t j = begin[2]; j < end[2]; j++) {
                const float *x = a + n * gemm->a_batch + i * gemm->a_row, *y = b + n * gemm->b_batch + j * gemm->b_col;
                float sum = 0;
                for (int64_t p = 0; p < gemm->k; p++)
                    sum = fmaf(x[p * gemm->a_col], y[p * gemm->b_row], sum);
                c[n * gemm->c_batch + i * gemm->c_row + j * gemm->c_col] = sum;
            }
        }
    }
}

const struct weft_gemm_code weft_gemm_f32_1x1__ref = {0};
