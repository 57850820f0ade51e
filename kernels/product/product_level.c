/* SPDX-License-Identifier: Apache-2.0 */
/* product_level.c: one term to a block of sums, compiled once per CPU level. Vectors of 64 bytes are what the widest
 * level has; the others split them. */
#include "kernels/product/product.h"
#include "kernels/strip/vector.h"

#define WIDTH 64 /* bytes */

#define ADD(id, type)                                                                                                  \
    typedef type vector_##id __attribute__((vector_size(WIDTH), aligned(8), may_alias));                               \
    void LEVEL(weft_product_add_##id)(void *sum, const void *a, const void *b)                                         \
    {                                                                                                                  \
        enum { LANE_COUNT = WIDTH / sizeof(type), VECTORS = WEFT_PRODUCT_COLUMNS / LANE_COUNT };                       \
        const type *const scale = a;                                                                                   \
        const vector_##id *const row = b;                                                                              \
        vector_##id *to = sum;                                                                                         \
        for (int i = 0; i < WEFT_PRODUCT_ROWS; i++, to += VECTORS)                                                     \
            for (int j = 0; j < VECTORS; j++)                                                                          \
                to[j] += row[j] * scale[i];                                                                            \
    }
ADD(f64, double)
ADD(i32, uint32_t)
ADD(i64, uint64_t)
