/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h: decisions about a whole graph. So far: where intermediates live (place.c). */
#ifndef WEFT_SCHED_H
#define WEFT_SCHED_H

#include "ir/ir.h"

/* --- place.c: arena offsets by lifetime --------------------------------------------------------------------------- */

/* One buffer: `bytes` long, alive from step `first` to step `last`, both included. */
struct weft_block {
    int64_t bytes;
    int32_t first, last;
    int64_t offset; /* result: a multiple of 64 */
    int64_t best;   /* scratch */
};
/* Gives every block an offset such that blocks alive at the same step do not overlap; returns the bytes of the arena.
 * Greedy by size, first fit in the gaps left by placed neighbours in time (as in Pisarchyk and Lee, Efficient Memory
 * Management for Deep Neural Net Inference, 2020); the smallest of very many long-lived ones by a sweep over time. If
 * the arena is much larger than weft_live_bytes, other orders are tried until all have looked at `tries` blocks beside
 * others (2^18: up to 2 ms). Deterministic, near n log n. `order` is scratch for 3 * count numbers.
 *
 * The order in which blocks are placed may be kept for blocks that live at the same steps and have other sizes: `kept`,
 * or NULL, is tried before all others, and `ret_order`, or NULL, gets the order that was best. Both are permutations of
 * the numbers below count. */
enum { WEFT_PLACE_QUICK = 1 << 14, WEFT_PLACE_WELL = 1 << 18 }; /* tries */
int64_t weft_place_blocks(struct weft_block *block, uint32_t count, int64_t tries, uint32_t *order,
                          const uint32_t *kept, uint32_t *ret_order);
/* The most bytes alive at one step, each block in whole lines: no arena for these blocks is smaller. `order` is scratch
 * for 2 * count numbers. */
int64_t weft_live_bytes(const struct weft_block *block, uint32_t count, uint32_t *order);

#endif
