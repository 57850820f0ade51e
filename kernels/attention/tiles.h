/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h: small products of attention, by the tiles of the matrix product (kernels/gemm/gemm.h); where a CPU level has
 * none, by plain loops. */
#ifndef WEFT_ATTENTION_TILES_H
#define WEFT_ATTENTION_TILES_H

#include "kernels/gemm/gemm.h"

/* The most rows that a tile of so many columns has, for many terms. */
int64_t weft_attention_tile_rows(const struct weft_gemm_kernel *kernel, int64_t columns);
/* c[i·c_row + j] = the sum over p < k of x[i·x_row + p] · y[p·y_row + j], one chain, which with from_c goes on from c.
 * At most as many rows as a tile has, and kernel->columns columns. */
void weft_attention_tile(const struct weft_gemm_kernel *kernel, int64_t k, const float *x, int64_t x_row,
                         const float *y, int64_t y_row, float *c, int64_t c_row, int64_t rows, int64_t columns,
                         bool from_c);
/* The same of any number of rows and columns. */
void weft_attention_product(const struct weft_gemm_kernel *kernel, int64_t k, const float *x, int64_t x_row,
                            const float *y, int64_t y_row, float *c, int64_t c_row, int64_t rows, int64_t columns,
                            bool from_c);

#endif
