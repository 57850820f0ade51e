/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512_narrow.h: the tiles of gemm_avx512_narrow.c, which need a vector.h of their own. */
#ifndef WEFT_GEMM_AVX512_NARROW_H
#define WEFT_GEMM_AVX512_NARROW_H

#include "kernels/gemm/gemm_copy.h"

extern weft_gemm_tile_fn *const weft_gemm_whole_8__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_whole_24__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_whole_40__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_ragged_8__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_ragged_24__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_ragged_40__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_8_and_1__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_16_and_1__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_24_and_1__avx512[WEFT_GEMM_ROWS];

#endif
