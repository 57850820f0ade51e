/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_bands.h: products whose rows somebody goes over once they are whole, to normalise them while the second-level
 * cache has them (gemm_bands.c). All but the last after weft_gemm_prepare. */
#ifndef WEFT_GEMM_BANDS_H
#define WEFT_GEMM_BANDS_H

#include "kernels/gemm/gemm.h"

/* Prepares a product whose parts have whole rows of C, where that is nearly as even as any other way to share it out:
 * else as weft_gemm_prepare does. Two products are the same to the bit. */
void weft_gemm_prepare_rows(struct weft_gemm *gemm, int workers);

/* Parts that share a row. Where it is one, the epilogue gets the pieces of a row from the first column to the last:
 * with the piece that ends it, it is whole. Else each part has a band of rows, and so many others have the same one:
 * rows [row, row_end) of the products [batch, batch_end). */
struct weft_gemm_band {
    int64_t batch, batch_end, row, row_end;
};
int32_t weft_gemm_row_parts(const struct weft_gemm *gemm);
int32_t weft_gemm_bands(const struct weft_gemm *gemm);
int32_t weft_gemm_band_of(const struct weft_gemm *gemm, int part);
struct weft_gemm_band weft_gemm_band(const struct weft_gemm *gemm, int32_t band);

/* Of the loops that weft_gemm_prepare has chosen: is a pack of smaller elements read as it is; the units that are
 * shared out, and their last panel. `row`: the weight of a unit of rows. */
bool weft_gemm_reads_small(const struct weft_gemm *gemm, const struct weft_gemm_loops *loops);
struct weft_gemm_space weft_gemm_space_of(const struct weft_gemm *gemm, int64_t row);

/* While a product is prepared: has a part enough results in a band for a call of the epilogue, if there is one? Fewer
 * wait for those of the next bands. */
bool weft_gemm_hands_bands(const struct weft_gemm *gemm);

#endif
