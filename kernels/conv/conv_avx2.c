/* SPDX-License-Identifier: Apache-2.0 */
/* conv_avx2.c: the loops of convolution with AVX2 vectors. */
#include "kernels/gemm/vector_avx2.h"

#include "kernels/conv/conv.h"

#define KERNEL(form) weft_conv_f32_##form##__avx2
#include "kernels/conv/conv_gemm.inc"

#include "kernels/conv/conv_depth.inc"
