/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_made.h: for who prices operands that are made (gemm_made.c). After prepare. */
#ifndef WEFT_GEMM_MADE_H
#define WEFT_GEMM_MADE_H

#include "kernels/kernels.h"

/* How many rows all pieces have that the hook gets, by all parts together. */
double weft_gemm_made_lines(const struct weft_gemm *gemm);
double weft_conv_made_lines(const struct weft_conv *conv);

#endif
