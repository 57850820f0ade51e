/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx2.c: tiles of up to 6 x 16. Twelve accumulators hide the latency of two multiply-adds a cycle (2 x 4) with a
 * reserve; six broadcasts and two loads for twelve multiply-adds leave the load ports a third free. */
#include "kernels/gemm/vector_avx2.h"

#include "kernels/gemm/gemm.h"

#define VECTORS 2
#define TAIL    0
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define TAIL    1
#define MOST    8
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define TAIL    1
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#include "kernels/gemm/gemm_transpose.inc"
#define PANEL 16
#include "kernels/gemm/gemm_finish.inc"
#include "kernels/gemm/gemm_lanes.inc"

static weft_gemm_tile_fn *const full[WEFT_GEMM_ROWS] = {
    tile_1x2_0, tile_2x2_0, tile_3x2_0, tile_4x2_0, tile_5x2_0, tile_6x2_0};
static weft_gemm_tile_fn *const width_8[WEFT_GEMM_ROWS] = {
    tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1, tile_7x1_1, tile_8x1_1};
static weft_gemm_tile_fn *const width_16[WEFT_GEMM_ROWS] = {
    tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1};

const struct weft_gemm_code weft_gemm_f32_6x16__avx2 = {
    .tile = {full, width_8, width_16},
    .transpose = transpose,
    .dots = dots,
    .long_dots = long_dots,
    .panel_dots = panel_dots,
    .finish = finish,
    .add = add,
};
