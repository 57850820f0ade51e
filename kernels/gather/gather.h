/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h: what the files of the indexing family share. The public side is in kernels.h.
 *
 *   gather     plain[i…, j…] = indexed[i…, x(i…), j…]
 *   scatter    indexed[i…, x(i…), j…] = plain[i…, j…], or += it
 *
 * i runs over the outer axes, j over the inner ones, a block. x(i…) is the sum of up to 8 numbers of an index, each
 * brought into [0, limit) and multiplied by a step. Preconditions: no overlap; limits are at least 1, except where
 * there is nothing to do; element sizes 1, 2, 4 or 8, aligned to that; but what a gather reads, an embedding in a file
 * that is mapped perhaps, may lie at any address. */
#ifndef WEFT_GATHER_H
#define WEFT_GATHER_H

#include "kernels/kernels.h"

/* Number `at` of an index array as 64 bits; what is larger is the largest. */
static inline int64_t weft_gather_number(int dtype, const void *index, int64_t at)
{
    switch (dtype) {
    case WEFT_K_I64: return ((const int64_t *)index)[at];
    case WEFT_K_I32: return ((const int32_t *)index)[at];
    case WEFT_K_I16: return ((const int16_t *)index)[at];
    case WEFT_K_I8: return ((const int8_t *)index)[at];
    case WEFT_K_U32: return ((const uint32_t *)index)[at];
    case WEFT_K_U16: return ((const uint16_t *)index)[at];
    case WEFT_K_U8: return ((const uint8_t *)index)[at];
    default: {
        const uint64_t x = ((const uint64_t *)index)[at];
        return x > INT64_MAX ? INT64_MAX : (int64_t)x;
    }
    }
}

#endif
