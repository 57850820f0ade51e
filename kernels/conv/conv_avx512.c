/* SPDX-License-Identifier: Apache-2.0 */
/* conv_avx512.c: the loops of convolution with AVX-512 vectors. */
#include "kernels/gemm/vector_avx512.h"

#include "kernels/conv/conv.h"

#define KERNEL(form) weft_conv_f32_##form##__avx512
#include "kernels/conv/conv_gemm.inc"

#include "kernels/conv/conv_depth.inc"
