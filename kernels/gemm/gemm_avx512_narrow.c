/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512_narrow.c: tiles of 1 to 8, 17 to 24, and 33 to 40 columns, of 1, 3 and 5 vectors of 256 bits. */
#include "kernels/gemm/vector_avx512_narrow.h"

#include "kernels/gemm/gemm.h"

#define VECTORS 1
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 3
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 5
#define TAIL    1
#define MOST    5
#include "kernels/gemm/gemm_rows.inc"

extern weft_gemm_tile_fn *const weft_gemm_tiles_8__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_tiles_24__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_tiles_40__avx512[WEFT_GEMM_ROWS];
weft_gemm_tile_fn *const weft_gemm_tiles_8__avx512[WEFT_GEMM_ROWS] = {
    tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1, tile_7x1_1, tile_8x1_1};
weft_gemm_tile_fn *const weft_gemm_tiles_24__avx512[WEFT_GEMM_ROWS] = {
    tile_1x3_1, tile_2x3_1, tile_3x3_1, tile_4x3_1, tile_5x3_1, tile_6x3_1, tile_7x3_1, tile_8x3_1};
weft_gemm_tile_fn *const weft_gemm_tiles_40__avx512[WEFT_GEMM_ROWS] = {
    tile_1x5_1, tile_2x5_1, tile_3x5_1, tile_4x5_1, tile_5x5_1};
