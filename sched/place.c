/* SPDX-License-Identifier: Apache-2.0 */
/* place.c: offsets in the arena, largest block first.
 *
 * Each block goes into the lowest gap that fits between the blocks already placed that are alive at the same time.
 * Large first, since a large block that comes late finds the space cut up by small ones. Placed blocks are kept sorted
 * by offset, so one walk over them finds the gap. Quadratic in the number of blocks, which is that of intermediates of
 * one plan. */
#include "sched/sched.h"

#include <stdlib.h>

#define ALIGN 64

static int64_t aligned(int64_t bytes) { return (bytes + ALIGN - 1) & ~(int64_t)(ALIGN - 1); }

/* Larger first; ties by first step, then by number, so that the answer is the same everywhere. */
static bool goes_before(const struct weft_block *block, uint32_t a, uint32_t b)
{
    if (block[a].bytes != block[b].bytes)
        return block[a].bytes > block[b].bytes;
    return block[a].first != block[b].first ? block[a].first < block[b].first : a < b;
}

/* Heap sort: no memory and no recursion, n log n. */
static void sift(const struct weft_block *block, uint32_t *order, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && goes_before(block, order[child], order[child + 1]))
            child++;
        if (!goes_before(block, order[root], order[child]))
            return;
        const uint32_t swapped = order[root];
        order[root] = order[child];
        order[child] = swapped;
        root = child;
    }
}

static void sort_blocks(const struct weft_block *block, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count / 2; i > 0; i--)
        sift(block, order, i - 1, count);
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t last = order[i - 1];
        order[i - 1] = order[0];
        order[0] = last;
        sift(block, order, 0, i - 1);
    }
}

static bool meet(const struct weft_block *a, const struct weft_block *b)
{
    return a->first <= b->last && b->first <= a->last && a->bytes > 0 && b->bytes > 0;
}

int64_t weft_place_blocks(struct weft_block *block, uint32_t count, uint32_t *order)
{
    sort_blocks(block, order, count);
    int64_t arena = 0;
    for (uint32_t i = 0; i < count; i++) { /* order[0, i) is placed and sorted by offset */
        const uint32_t mine = order[i];
        int64_t offset = 0;
        for (uint32_t k = 0; k < i; k++) {
            const struct weft_block *other = &block[order[k]];
            if (!meet(&block[mine], other))
                continue;
            if (offset + block[mine].bytes <= other->offset)
                break;
            const int64_t end = aligned(other->offset + other->bytes);
            offset = end > offset ? end : offset;
        }
        block[mine].offset = offset;
        if (offset + block[mine].bytes > arena)
            arena = offset + block[mine].bytes;
        uint32_t k = i;
        for (; k > 0 && block[order[k - 1]].offset > offset; k--)
            order[k] = order[k - 1];
        order[k] = mine;
    }
    return aligned(arena);
}
