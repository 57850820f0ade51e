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
};
/* Gives every block an offset such that blocks alive at the same step do not overlap; returns the bytes of the arena.
 * Greedy by size, first fit in the gaps left by placed neighbours in time (as in Pisarchyk and Lee, Efficient Memory
 * Management for Deep Neural Net Inference, 2020); the smallest of very many long-lived ones by a sweep over time.
 * Deterministic, near n log n. `order` is scratch for 3 * count numbers. */
int64_t weft_place_blocks(struct weft_block *block, uint32_t count, uint32_t *order);

#endif
