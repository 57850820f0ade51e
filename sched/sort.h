/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h: what the two ways of placing blocks share: orders of block numbers. All orders end in the number itself, so
 * that the answer is the same everywhere. */
#ifndef WEFT_SORT_H
#define WEFT_SORT_H

#include "sched/sched.h"

typedef bool weft_block_before(const struct weft_block *block, uint32_t a, uint32_t b);
/* By first step. */
bool weft_block_earlier(const struct weft_block *block, uint32_t a, uint32_t b);
/* Sorts numbers of blocks: no memory and no recursion, n log n. */
void weft_sort_blocks(const struct weft_block *block, weft_block_before *before, uint32_t *order, uint32_t count);

/* place_sweep.c: gives the `count` blocks in `order`, which it sorts, offsets from `base` on, a multiple of 64; returns
 * the end of the last. `heap` has room for count numbers, `next` for one of each block. */
int64_t weft_place_sweep(struct weft_block *block, uint32_t *order, uint32_t count, int64_t base, uint32_t *heap,
                         uint32_t *next);

#endif
