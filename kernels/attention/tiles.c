/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: which tiles there are for how many terms, rows and columns. */
#include "kernels/attention/tiles.h"
#include "kernels/attention/attention.h"

#include <math.h>

enum { MANY_TERMS = 64 }; /* a product of so many has all tiles */

/* A tile of one row where there is no other (gemm.h): one chain for each result. */
static void plain_tile(int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row, float *c, int64_t c_row,
                       int64_t columns, bool from_c, const struct weft_gemm_last *last)
{
    (void)a_row, (void)c_row, (void)last;
    for (int64_t j = 0; j < columns; j++) {
        float sum = from_c ? c[j] : 0;
        for (int64_t p = 0; p < k; p++)
            sum = fmaf(a[p], b[p * b_row + j], sum);
        c[j] = sum;
    }
}

static weft_gemm_tile_fn *tile_of(const struct weft_gemm_kernel *kernel, int64_t k, int64_t rows, int64_t columns)
{
    return kernel->code->transpose ? weft_gemm_tile(kernel, k, rows, columns) : plain_tile;
}

int64_t weft_attention_tile_rows(const struct weft_gemm_kernel *kernel, int64_t columns)
{
    int64_t rows = kernel->code->transpose ? WEFT_ATTENTION_ROWS : 1;
    while (!tile_of(kernel, MANY_TERMS, rows, columns))
        rows--;
    return rows;
}

/* With few terms there are tiles of fewer rows. */
void weft_attention_tile(const struct weft_gemm_kernel *kernel, int64_t k, const float *x, int64_t x_row,
                         const float *y, int64_t y_row, float *c, int64_t c_row, int64_t rows, int64_t columns,
                         bool from_c)
{
    weft_gemm_tile_fn *const tile = tile_of(kernel, k, rows, columns);
    if (tile) {
        tile(k, x, x_row, y, y_row, c, c_row, columns, from_c, NULL);
        return;
    }
    const int64_t some = rows / 2; /* the kernel's own rows have a tile whatever there is to multiply */
    weft_attention_tile(kernel, k, x, x_row, y, y_row, c, c_row, some, columns, from_c);
    weft_attention_tile(kernel, k, x + some * x_row, x_row, y, y_row, c + some * c_row, c_row, rows - some, columns,
                        from_c);
}

void weft_attention_product(const struct weft_gemm_kernel *kernel, int64_t k, const float *x, int64_t x_row,
                            const float *y, int64_t y_row, float *c, int64_t c_row, int64_t rows, int64_t columns,
                            bool from_c)
{
    for (int64_t j = 0; j < columns; j += kernel->columns) {
        const int64_t some = columns - j < kernel->columns ? columns - j : kernel->columns;
        const int64_t tiles = weft_pieces(rows, weft_attention_tile_rows(kernel, some));
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t i = weft_cut(rows, tiles, t), end = weft_cut(rows, tiles, t + 1);
            weft_attention_tile(kernel, k, x + i * x_row, x_row, y + j, y_row, c + i * c_row + j, c_row, end - i, some,
                                from_c);
        }
    }
}
