/* SPDX-License-Identifier: Apache-2.0 */
/* product.h: what the files of the product family share. The public side is in kernels.h.
 *
 * Products and convolutions in f64 and in integers, for every pair of operand types: a block of 16 by 128 results is
 * kept in scratch memory, in double or in 32 or 64 bits that wrap, and takes one term after the other:
 *
 *   sum[i][j] += a[i] · b[j]        a: 16 numbers of operand 0 (of a convolution: weights of 16 results)
 *                                   b: 128 of operand 1 (128 pixels, with zeros for padding)
 *
 * Terms rise along k, or channel by channel and tap by tap: the order of the reference evaluator, and so its bits, at
 * every level and for any number of parts. What is short of a block is filled up with zeros. */
#ifndef WEFT_PRODUCT_H
#define WEFT_PRODUCT_H

#include "kernels/kernels.h"

#define WEFT_PRODUCT_ROWS 16
#define WEFT_PRODUCT_COLUMNS 128

struct weft_product_kernel {
    const char *name;
    uint32_t cpu;
    int form;              /* what it adds up in: WEFT_K_F64, WEFT_K_I32 or WEFT_K_I64 */
    void (*add)(void *sum, const void *a, const void *b); /* one term to a block */
};
#define PRODUCT(id, form, level, cpu) void weft_product_add_##id##__##level(void *sum, const void *a, const void *b);
#include "kernels/product/product.def"

#endif
