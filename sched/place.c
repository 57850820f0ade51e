/* SPDX-License-Identifier: Apache-2.0 */
/* place.c: offsets in the arena, largest block first.
 *
 * Each block goes into the lowest gap that fits between the blocks already placed that are alive at the same time.
 * Large first, since a large block that comes late finds the space cut up by small ones. If the arena is larger than
 * what is alive at once by more than a 64th, the block that ends highest comes first in the next try, and so on;
 * then the same with the blocks first that are large for long. The smallest arena counts.
 *
 * Who is alive at the same time is found through the blocks in order of their first step. Most blocks live for a few
 * steps, so those that meet [first, last] began at most SHORT steps before it; the few that live longer are looked at
 * every time. That keeps the work near n log n for chains, but quadratic in the number of long-lived blocks. So the
 * work is counted, and when it gets too much, the blocks that are left, the smallest ones, are placed behind the others
 * by a sweep over time (place_sweep.c), which wastes a little and always stays near n log n. */
#include "sched/sort.h"

#include <string.h>

#define ALIGN 64
#define SHORT 32
/* Blocks looked at before the sweep takes over: a tenth of a second, and more for more blocks. */
#define WORK ((int64_t)1 << 23)
#define WORK_PER_BLOCK 256
enum { TURNS = 32, SPARE = 64 };

static int64_t aligned(int64_t bytes) { return (bytes + ALIGN - 1) & ~(int64_t)(ALIGN - 1); }

static bool larger(const struct weft_block *block, uint32_t a, uint32_t b)
{
    if (block[a].bytes != block[b].bytes)
        return block[a].bytes > block[b].bytes;
    return block[a].first != block[b].first ? block[a].first < block[b].first : a < b;
}

static double weight(const struct weft_block *block)
{
    return (double)block->bytes * (1.0 + (double)block->last - (double)block->first);
}

static bool weightier(const struct weft_block *block, uint32_t a, uint32_t b)
{
    const double x = weight(&block[a]), y = weight(&block[b]);
    return x != y ? x > y : larger(block, a, b);
}

bool weft_block_earlier(const struct weft_block *block, uint32_t a, uint32_t b)
{
    return block[a].first != block[b].first ? block[a].first < block[b].first : a < b;
}

static bool lower(const struct weft_block *block, uint32_t a, uint32_t b)
{
    return block[a].offset != block[b].offset ? block[a].offset < block[b].offset : a < b;
}

/* Heap sort. */
static void sift(const struct weft_block *block, weft_block_before *before, uint32_t *order, uint32_t root,
                 uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(block, order[child], order[child + 1]))
            child++;
        if (!before(block, order[root], order[child]))
            return;
        const uint32_t swapped = order[root];
        order[root] = order[child];
        order[child] = swapped;
        root = child;
    }
}

void weft_sort_blocks(const struct weft_block *block, weft_block_before *before, uint32_t *order, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        sift(block, before, order, i - 1, count);
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t last = order[i - 1];
        order[i - 1] = order[0];
        order[0] = last;
        sift(block, before, order, 0, i - 1);
    }
}

static bool is_long(const struct weft_block *block) { return block->last - block->first > SHORT; }

/* Blocks that take memory: short ones in order of their first step, then long ones. */
struct timeline {
    const struct weft_block *block;
    const uint32_t *shorts, *longs;
    uint32_t short_count, long_count;
};

/* Placed blocks that are alive at some step of `mine`. Counts what it looked at. */
static uint32_t neighbours(const struct timeline *t, const struct weft_block *mine, uint32_t *ret, int64_t *work)
{
    uint32_t count = 0, low = 0, high = t->short_count;
    while (low < high) { /* the first that may still be alive */
        const uint32_t middle = low + (high - low) / 2;
        if ((int64_t)t->block[t->shorts[middle]].first < (int64_t)mine->first - SHORT)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t i = low;
    for (; i < t->short_count && t->block[t->shorts[i]].first <= mine->last; i++)
        if (t->block[t->shorts[i]].offset >= 0 && t->block[t->shorts[i]].last >= mine->first)
            ret[count++] = t->shorts[i];
    *work += i - low + t->long_count;
    for (uint32_t k = 0; k < t->long_count; k++) {
        const struct weft_block *other = &t->block[t->longs[k]];
        if (other->offset >= 0 && other->first <= mine->last && other->last >= mine->first)
            ret[count++] = t->longs[k];
    }
    *work += (int64_t)count * (32 - __builtin_clz(count | 1)); /* to sort them */
    return count;
}

/* Places the blocks of the list, in this order. by_time, near: room for as many numbers. */
static int64_t place(struct weft_block *block, uint32_t *list, uint32_t used, uint32_t *by_time, uint32_t *near,
                     int64_t *work)
{
    uint32_t shorts = 0;
    for (uint32_t i = 0, longs = used; i < used; i++) {
        block[list[i]].offset = -1; /* not placed yet */
        by_time[is_long(&block[list[i]]) ? --longs : shorts++] = list[i];
    }
    weft_sort_blocks(block, weft_block_earlier, by_time, shorts);
    const struct timeline timeline = {block, by_time, by_time + shorts, shorts, used - shorts};
    int64_t arena = 0;
    const int64_t most = *work + WORK + WORK_PER_BLOCK * (int64_t)used;
    for (uint32_t i = 0; i < used; i++) {
        if (*work > most)
            return weft_place_sweep(block, list + i, used - i, aligned(arena), by_time, near);
        struct weft_block *mine = &block[list[i]];
        const uint32_t met = neighbours(&timeline, mine, near, work);
        weft_sort_blocks(block, lower, near, met);
        int64_t offset = 0;
        for (uint32_t k = 0; k < met && offset + mine->bytes > block[near[k]].offset; k++) {
            const int64_t end = aligned(block[near[k]].offset + block[near[k]].bytes);
            offset = end > offset ? end : offset;
        }
        mine->offset = offset;
        arena = offset + mine->bytes > arena ? offset + mine->bytes : arena;
    }
    return aligned(arena);
}

/* Moves the block that ends highest to the front. */
static void bring_forward(const struct weft_block *block, uint32_t *list, uint32_t used)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < used; i++)
        if (block[list[i]].offset + block[list[i]].bytes > block[list[at]].offset + block[list[at]].bytes)
            at = i;
    const uint32_t first = list[at];
    memmove(list + 1, list, at * sizeof *list);
    list[0] = first;
}

/* A search for the best order of blocks. */
struct search {
    struct weft_block *block;
    uint32_t count, used;                 /* blocks; those that take memory */
    uint32_t *list, *by_time, *near;      /* the order at hand; room for as many numbers */
    uint32_t *order;                      /* that of the smallest arena, or NULL */
    int64_t arena, work;
};

/* Places the blocks in the order of the list, and keeps what came of it if the arena is the smallest so far. */
static void try_order(struct search *s)
{
    const int64_t bytes = place(s->block, s->list, s->used, s->by_time, s->near, &s->work);
    if (bytes >= s->arena)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        s->block[i].best = s->block[i].offset;
    if (s->order)
        memcpy(s->order, s->list, s->used * sizeof *s->list);
    s->arena = bytes;
}

/* Blocks that take memory, in this order of all blocks, or by number. */
static void list_used(struct search *s, const uint32_t *kept)
{
    s->used = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->block[kept ? kept[i] : i].bytes > 0)
            s->list[s->used++] = kept ? kept[i] : i;
}

static void append_empty(const struct search *s)
{
    for (uint32_t i = 0, at = s->used; i < s->count; i++)
        if (s->block[i].bytes <= 0)
            s->order[at++] = i;
}

int64_t weft_place_blocks(struct weft_block *block, uint32_t count, int64_t tries, uint32_t *order,
                          const uint32_t *kept, uint32_t *ret_order)
{
    struct search s = {.block = block, .count = count, .list = order, .by_time = order + count,
                       .near = order + 2 * (size_t)count, .order = ret_order, .arena = INT64_MAX};
    const int64_t live = weft_live_bytes(block, count, s.by_time), enough = live + live / SPARE;
    static weft_block_before *const orders[] = {larger, weightier};
    for (uint32_t i = 0; i < count; i++)
        block[i].offset = 0;
    list_used(&s, kept);
    if (kept)
        try_order(&s);
    s.work = 0; /* of what follows */
    for (int k = 0; k < 2 && s.arena > enough && s.work <= tries; k++) {
        weft_sort_blocks(block, orders[k], s.list, s.used);
        for (int turn = 0; turn < TURNS && s.arena > enough && s.work <= tries; turn++) {
            if (turn > 0)
                bring_forward(block, s.list, s.used);
            try_order(&s);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        block[i].offset = block[i].best;
    if (ret_order)
        append_empty(&s);
    return s.arena;
}

static bool ends_earlier(const struct weft_block *block, uint32_t a, uint32_t b)
{
    return block[a].last != block[b].last ? block[a].last < block[b].last : a < b;
}

int64_t weft_live_bytes(const struct weft_block *block, uint32_t count, uint32_t *order)
{
    uint32_t *by_first = order, *by_last = order + count;
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (block[i].bytes > 0)
            by_first[used] = by_last[used] = i, used++;
    weft_sort_blocks(block, weft_block_earlier, by_first, used);
    weft_sort_blocks(block, ends_earlier, by_last, used);
    int64_t live = 0, most = 0;
    for (uint32_t i = 0, dead = 0; i < used; i++) {
        const int32_t now = block[by_first[i]].first;
        for (; block[by_last[dead]].last < now; dead++)
            live -= aligned(block[by_last[dead]].bytes);
        live += aligned(block[by_first[i]].bytes);
        most = live > most ? live : most;
    }
    return most;
}
