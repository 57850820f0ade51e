/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512.c: tiles of up to 6 x 64. Six rows and not fourteen, because rows of A are read in place: rows that lie a
 * multiple of 4 KiB apart share one set of the first-level cache, which has eight ways. Tiles of fewer vectors have up
 * to eight rows: with six, one vector would be bound by the latency of its chains. */
#include "kernels/gemm/vector_avx512.h"

#include "kernels/gemm/gemm_avx512_narrow.h"

#include "kernels/gemm/clamp.inc"
#include "kernels/gemm/gemm_copy_avx512.inc"

#define VECTORS 1
#define TAIL    0
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define TAIL    0
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
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
#define VECTORS 4
#define TAIL    0
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 4
#define TAIL    1
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#define BEYOND  2
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS
#define VECTORS 3
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#define BEYOND  2
#include "kernels/gemm/gemm_beyond_rows.inc"
#define BEYOND  4
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS
#include "kernels/gemm/gemm_transpose_avx512.inc"
#define ROWS 1
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 2
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 3
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 4
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 5
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 6
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 7
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 8
#include "kernels/gemm/gemm_lines.inc"
#define PANEL 64
#include "kernels/gemm/gemm_finish.inc"
#include "kernels/gemm/gemm_lanes.inc"
#include "kernels/gemm/gemm_smalls.inc"

static weft_gemm_tile_fn *const whole_16[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 0);
static weft_gemm_tile_fn *const whole_32[WEFT_GEMM_ROWS] = GEMM_TILES_8(2, 0);
static weft_gemm_tile_fn *const whole_48[WEFT_GEMM_ROWS] = GEMM_TILES_8(3, 0);
static weft_gemm_tile_fn *const whole_64[WEFT_GEMM_ROWS] = GEMM_TILES_6(4, 0);
static weft_gemm_tile_fn *const ragged_16[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 1);
static weft_gemm_tile_fn *const ragged_32[WEFT_GEMM_ROWS] = GEMM_TILES_8(2, 1);
static weft_gemm_tile_fn *const ragged_48[WEFT_GEMM_ROWS] = GEMM_TILES_8(3, 1);
static weft_gemm_tile_fn *const ragged_64[WEFT_GEMM_ROWS] = GEMM_TILES_6(4, 1);
static weft_gemm_tile_fn *const columns_32_and_1[WEFT_GEMM_ROWS] = GEMM_BEYOND(2, 1);
static weft_gemm_tile_fn *const columns_32_and_2[WEFT_GEMM_ROWS] = GEMM_BEYOND(2, 2);
static weft_gemm_tile_fn *const columns_48_and_1[WEFT_GEMM_ROWS] = GEMM_BEYOND(3, 1);
static weft_gemm_tile_fn *const columns_48_and_2[WEFT_GEMM_ROWS] = GEMM_BEYOND(3, 2);
static weft_gemm_tile_fn *const columns_48_and_4[WEFT_GEMM_ROWS] = GEMM_BEYOND(3, 4);
static weft_gemm_lines_fn *const lines_of[WEFT_GEMM_ROWS] = {
    lines_1, lines_2, lines_3, lines_4, lines_5, lines_6, lines_7, lines_8};

const struct weft_gemm_code weft_gemm_f32_6x64__avx512 = {
    .whole = {[1] = weft_gemm_whole_8__avx512, whole_16, weft_gemm_whole_24__avx512, whole_32,
              weft_gemm_whole_40__avx512, whole_48, NULL, whole_64},
    .ragged = {[1] = weft_gemm_ragged_8__avx512, ragged_16, weft_gemm_ragged_24__avx512, ragged_32,
               weft_gemm_ragged_40__avx512, ragged_48, ragged_64, ragged_64},
    .beyond = {[1] = {weft_gemm_8_and_1__avx512},
               [2] = {weft_gemm_16_and_1__avx512},
               [3] = {weft_gemm_24_and_1__avx512},
               [4] = {columns_32_and_1, columns_32_and_2},
               [6] = {columns_48_and_1, columns_48_and_2, columns_48_and_4}},
    .lines = lines_of,
    .transpose = transpose,
    .dots = dots,
    .long_dots = long_dots,
    .panel_dots = panel_dots,
    .finish = finish,
    .add = add,
    .small = {[WEFT_K_BF16] = small_bf16, [WEFT_K_F16] = small_f16, [WEFT_K_I8] = small_i8, [WEFT_K_U8] = small_u8},
};
