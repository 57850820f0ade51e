/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx512.c: tiles of up to 6 x 64. Six rows and not fourteen, because rows of A are read in place: rows that lie a
 * multiple of 4 KiB apart share one set of the first-level cache, which has eight ways. Tiles of fewer vectors have up
 * to eight rows: with six, one vector would be bound by the latency of its chains. */
#include "kernels/gemm/vector_avx512.h"

#include "kernels/gemm/gemm.h"

#define VECTORS 4
#define TAIL    0
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 3
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 4
#define TAIL    1
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#include "kernels/gemm/gemm_transpose_avx512.inc"
#define PANEL 64
#include "kernels/gemm/gemm_finish.inc"
#include "kernels/gemm/gemm_lanes.inc"


static weft_gemm_tile_fn *const full[WEFT_GEMM_ROWS] = {
    tile_1x4_0, tile_2x4_0, tile_3x4_0, tile_4x4_0, tile_5x4_0, tile_6x4_0};
static weft_gemm_tile_fn *const width_16[WEFT_GEMM_ROWS] = {
    tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1, tile_7x1_1, tile_8x1_1};
static weft_gemm_tile_fn *const width_32[WEFT_GEMM_ROWS] = {
    tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1, tile_7x2_1, tile_8x2_1};
static weft_gemm_tile_fn *const width_48[WEFT_GEMM_ROWS] = {
    tile_1x3_1, tile_2x3_1, tile_3x3_1, tile_4x3_1, tile_5x3_1, tile_6x3_1, tile_7x3_1, tile_8x3_1};
static weft_gemm_tile_fn *const width_64[WEFT_GEMM_ROWS] = {
    tile_1x4_1, tile_2x4_1, tile_3x4_1, tile_4x4_1, tile_5x4_1, tile_6x4_1};
/* gemm_avx512_narrow.c */
extern weft_gemm_tile_fn *const weft_gemm_tiles_8__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_tiles_24__avx512[WEFT_GEMM_ROWS];
extern weft_gemm_tile_fn *const weft_gemm_tiles_40__avx512[WEFT_GEMM_ROWS];

const struct weft_gemm_code weft_gemm_f32_6x64__avx512 = {
    .tile = {full, weft_gemm_tiles_8__avx512, width_16, weft_gemm_tiles_24__avx512, width_32,
             weft_gemm_tiles_40__avx512, width_48, width_64, width_64},
    .transpose = transpose,
    .dots = dots,
    .long_dots = long_dots,
    .panel_dots = panel_dots,
    .finish = finish,
    .add = add,
};
