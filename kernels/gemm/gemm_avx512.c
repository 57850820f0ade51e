/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512.c: tiles of up to 6 x 64. Six rows and not fourteen, because rows of A are read in place: rows that lie a
 * multiple of 4 KiB apart share one set of the first-level cache, which has eight ways. */
#include "kernels/gemm/vector_avx512.h"

#include "kernels/gemm/gemm.h"

#define VECTORS 4
#define TAIL    0
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define TAIL    1
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define TAIL    1
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 3
#define TAIL    1
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 4
#define TAIL    1
#include "kernels/gemm/gemm_rows.inc"
#include "kernels/gemm/gemm_transpose.inc"

const struct weft_gemm_code weft_gemm_f32_6x64__avx512 = {
    .tile = {{tile_1x4_0, tile_2x4_0, tile_3x4_0, tile_4x4_0, tile_5x4_0, tile_6x4_0},
             {tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1},
             {tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1},
             {tile_1x3_1, tile_2x3_1, tile_3x3_1, tile_4x3_1, tile_5x3_1, tile_6x3_1},
             {tile_1x4_1, tile_2x4_1, tile_3x4_1, tile_4x4_1, tile_5x4_1, tile_6x4_1}},
    .transpose = transpose,
};
