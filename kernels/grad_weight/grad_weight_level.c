/* SPDX-License-Identifier: Apache-2.0 */
/* grad_weight_level.c: tiles of the gradient of a convolution's weights, compiled once per CPU level.
 *
 * With AVX2, six rows of two vectors fill twelve of sixteen registers: a term takes twelve multiply-adds, two loads of
 * dy and six of single numbers, so that the multiply-adds are what it waits for. */
#include "kernels/grad_weight/grad_weight.h"
#include "kernels/strip/vector.h"

enum { VECTORS = 2, COLUMNS = VECTORS * LANES, ROWS = WEFT_LEVEL == 2 ? WEFT_GRAD_ROWS : WEFT_LEVEL == 1 ? 6 : 4 };

/* The terms of a row. */
INLINE const float *add_row(int rows, bool own, vf sum[][VECTORS], int64_t terms, int64_t step, const float *x,
                            const int64_t *at, const float *dy)
{
    for (int64_t t = 0; t < terms; t++, x += step, dy += COLUMNS) {
        const vf left = vload(dy), right = vload(dy + LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            const float *const from = x + at[i];
            sum[i][0] = vfma(own ? vload(from) : vall(*from), left, sum[i][0]);
            sum[i][1] = vfma(own ? vload(from + LANES) : vall(*from), right, sum[i][1]);
        }
    }
    return dy;
}

INLINE void add_terms(int rows, bool own, const struct weft_grad_walk *walk, const float *x, const int64_t *given,
                      const float *dy, float *to, bool more)
{
    vf sum[ROWS][VECTORS];
    int64_t at[ROWS];
    UNROLL for (int i = 0; i < rows; i++) {
        at[i] = given[i];
        sum[i][0] = sum[i][1] = vall(0);
    }
    for (int64_t n = 0; n < walk->extent[0]; n++)
        for (int64_t d = 0; d < walk->extent[1]; d++)
            for (int64_t r = 0; r < walk->extent[2]; r++)
                dy = add_row(rows, own, sum, walk->extent[3], walk->step[3],
                             x + n * walk->step[0] + d * walk->step[1] + r * walk->step[2], at, dy);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < VECTORS; j++) {
            float *const place = to + i * COLUMNS + j * LANES;
            vstore(place, more ? vload(place) + sum[i][j] : sum[i][j]);
        }
}

#define TILE(rows)                                                                                                     \
    static void shared_##rows(const struct weft_grad_walk *walk, const float *x, const int64_t *at, const float *dy,   \
                              float *sum, bool more)                                                                   \
    {                                                                                                                  \
        add_terms(rows, false, walk, x, at, dy, sum, more);                                                            \
    }                                                                                                                  \
    static void own_##rows(const struct weft_grad_walk *walk, const float *x, const int64_t *at, const float *dy,      \
                           float *sum, bool more)                                                                      \
    {                                                                                                                  \
        add_terms(rows, true, walk, x, at, dy, sum, more);                                                             \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if WEFT_LEVEL >= 1
TILE(5)
TILE(6)
#endif
#if WEFT_LEVEL == 2
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#define TILES(form) form##_1, form##_2, form##_3, form##_4, form##_5, form##_6, form##_7, form##_8, form##_9,         \
                    form##_10, form##_11, form##_12
#elif WEFT_LEVEL == 1
#define TILES(form) form##_1, form##_2, form##_3, form##_4, form##_5, form##_6
#else
#define TILES(form) form##_1, form##_2, form##_3, form##_4
#endif

static weft_grad_tile_fn *const with_shared[] = {TILES(shared)}, *const with_own[] = {TILES(own)};

const struct weft_grad_weight_level LEVEL(weft_grad_weight_level) = {
    .name = "weft_grad_weight_f32" LEVEL_TEXT, .winograd_name = "weft_grad_weight_f32_winograd" LEVEL_TEXT,
    .cpu = LEVEL_CPU, .rows = ROWS, .columns = COLUMNS, .tile = {with_shared, with_own},
    .transform_x = LEVEL(weft_grad_transform_x), .transform_dy = LEVEL(weft_grad_transform_dy),
    .taps = LEVEL(weft_grad_taps)};
