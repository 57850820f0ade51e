/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx2.c: tiles of up to 6 x 16. Twelve accumulators hide the latency of two multiply-adds a cycle (2 x 4) with a
 * reserve; six broadcasts and two loads for twelve multiply-adds leave the load ports a third free. */
#include "kernels/gemm/vector_avx2.h"

#include "kernels/gemm/gemm_copy.h"

#include "kernels/gemm/clamp.inc"

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
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 2
#define TAIL    1
#define MOST    6
#include "kernels/gemm/gemm_rows.inc"
#define VECTORS 1
#define BEYOND  1
#include "kernels/gemm/gemm_beyond_rows.inc"
#undef VECTORS
#include "kernels/gemm/gemm_transpose.inc"
#define ROWS 1
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 2
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 3
#include "kernels/gemm/gemm_lines.inc"
#define ROWS 4
#include "kernels/gemm/gemm_lines.inc"
#define PANEL 16
#include "kernels/gemm/gemm_finish.inc"
#include "kernels/gemm/gemm_lanes.inc"
#include "kernels/gemm/gemm_smalls.inc"

static weft_gemm_tile_fn *const whole_8[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 0);
static weft_gemm_tile_fn *const whole_16[WEFT_GEMM_ROWS] = GEMM_TILES_6(2, 0);
static weft_gemm_tile_fn *const ragged_8[WEFT_GEMM_ROWS] = GEMM_TILES_8(1, 1);
static weft_gemm_tile_fn *const ragged_16[WEFT_GEMM_ROWS] = GEMM_TILES_6(2, 1);
static weft_gemm_tile_fn *const columns_8_and_1[WEFT_GEMM_ROWS] = GEMM_BEYOND(1, 1);
static weft_gemm_lines_fn *const lines_of[WEFT_GEMM_ROWS] = {lines_1, lines_2, lines_3, lines_4};

const struct weft_gemm_code weft_gemm_f32_6x16__avx2 = {
    .whole = {[1] = whole_8, whole_16},
    .ragged = {[1] = ragged_8, ragged_16},
    .beyond = {[1] = {columns_8_and_1}},
    .lines = lines_of,
    .transpose = transpose,
    .dots = dots,
    .long_dots = long_dots,
    .panel_dots = panel_dots,
    .finish = finish,
    .add = add,
    .small = {[WEFT_K_BF16] = small_bf16, [WEFT_K_F16] = small_f16, [WEFT_K_I8] = small_i8, [WEFT_K_U8] = small_u8},
};
