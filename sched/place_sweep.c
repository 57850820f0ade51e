/* SPDX-License-Identifier: Apache-2.0 */
/* place_sweep.c: offsets in the arena by a sweep over time, for blocks too many to be compared with each other.
 *
 * A block takes a slot when its first step comes and gives it back behind its last. Slots have sizes of a few classes,
 * four an octave, and are used again within their class; so a block costs a look at one list and its way through a
 * heap: n log n for any lifetimes. The price is memory: up to a quarter by rounding, and what one class leaves free
 * no other class gets.
 *
 *   steps   0 1 2 3      a: [0,1]  b: [0,2]  c: [2,3]   of one class
 *   slot 0  a a c c      c takes a's slot, which the heap gives back when step 2 comes
 *   slot 1  b b b . */
#include "sched/sort.h"

#define UNIT 64
#define CLASSES 256

/* The class of a block, and the bytes of its slots: units up to 4, then quarters of powers of two. */
static uint32_t class_of(int64_t bytes, int64_t *ret_bytes)
{
    const int64_t units = (bytes + UNIT - 1) / UNIT;
    if (units <= 4) {
        *ret_bytes = units * UNIT;
        return (uint32_t)units;
    }
    const int octave = 63 - __builtin_clzll((unsigned long long)units);
    const int64_t quarter = (int64_t)1 << (octave - 2), quarters = (units + quarter - 1) / quarter; /* 4 … 8 */
    *ret_bytes = quarters * quarter * UNIT;
    return (uint32_t)(4 * (octave - 1) + quarters - 4 + 1);
}

/* Blocks that are alive, the one that dies first on top. */
struct heap {
    const struct weft_block *block;
    uint32_t *item, count;
};

static bool dies_before(const struct heap *heap, uint32_t a, uint32_t b)
{
    const struct weft_block *x = &heap->block[heap->item[a]], *y = &heap->block[heap->item[b]];
    return x->last != y->last ? x->last < y->last : heap->item[a] < heap->item[b];
}

static void swap(struct heap *heap, uint32_t a, uint32_t b)
{
    const uint32_t kept = heap->item[a];
    heap->item[a] = heap->item[b];
    heap->item[b] = kept;
}

static void push(struct heap *heap, uint32_t block)
{
    uint32_t at = heap->count++;
    heap->item[at] = block;
    for (; at > 0 && dies_before(heap, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(heap, at, (at - 1) / 2);
}

static uint32_t pop(struct heap *heap)
{
    const uint32_t top = heap->item[0];
    heap->item[0] = heap->item[--heap->count];
    for (uint32_t at = 0;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < heap->count && dies_before(heap, child + 1, child))
            child++;
        if (child >= heap->count || !dies_before(heap, child, at))
            return top;
        swap(heap, at, child);
        at = child;
    }
}

int64_t weft_place_sweep(struct weft_block *block, uint32_t *order, uint32_t count, int64_t base, uint32_t *heap_memory,
                         uint32_t *next)
{
    uint32_t free_slot[CLASSES] = {0}; /* the block that had it + 1; `next` leads to the others of the class */
    struct heap heap = {block, heap_memory, 0};
    int64_t arena = base, bytes;
    weft_sort_blocks(block, weft_block_earlier, order, count);
    for (uint32_t i = 0; i < count; i++) {
        struct weft_block *mine = &block[order[i]];
        while (heap.count > 0 && block[heap.item[0]].last < mine->first) {
            const uint32_t dead = pop(&heap), class = class_of(block[dead].bytes, &bytes);
            next[dead] = free_slot[class];
            free_slot[class] = dead + 1;
        }
        const uint32_t class = class_of(mine->bytes, &bytes);
        if (free_slot[class]) {
            mine->offset = block[free_slot[class] - 1].offset;
            free_slot[class] = next[free_slot[class] - 1];
        } else {
            mine->offset = arena;
            arena += bytes;
        }
        push(&heap, order[i]);
    }
    return arena;
}
