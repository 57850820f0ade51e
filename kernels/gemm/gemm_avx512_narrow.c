/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512_narrow.c: tiles of 1 to 9, 17 to 25, and 33 to 40 columns, of vectors of 256 bits. */
#include "kernels/gemm/vector_avx512_narrow.h"

#include "kernels/gemm/gemm_avx512_narrow.h"

#include "kernels/gemm/clamp.inc"

#define VECTORS 1
#define TAIL    0
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 3
#define TAIL    0
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 3
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 5
#define TAIL    0
#define MOST    5
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 5
#define TAIL    1
#define MOST    5
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS
#define VECTORS 2
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS
#define VECTORS 3
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS

weft_gemm_tile_fn *const weft_gemm_whole_8__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 0);
weft_gemm_tile_fn *const weft_gemm_whole_24__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_8(3, 0);
weft_gemm_tile_fn *const weft_gemm_whole_40__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_5(5, 0);
weft_gemm_tile_fn *const weft_gemm_ragged_8__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 1);
weft_gemm_tile_fn *const weft_gemm_ragged_24__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_8(3, 1);
weft_gemm_tile_fn *const weft_gemm_ragged_40__avx512[WEFT_GEMM_ROWS] = GEMM_TILES_5(5, 1);
weft_gemm_tile_fn *const weft_gemm_8_and_1__avx512[WEFT_GEMM_ROWS] = GEMM_BEYOND(1, 1);
weft_gemm_tile_fn *const weft_gemm_16_and_1__avx512[WEFT_GEMM_ROWS] = GEMM_BEYOND(2, 1);
weft_gemm_tile_fn *const weft_gemm_24_and_1__avx512[WEFT_GEMM_ROWS] = GEMM_BEYOND(3, 1);
