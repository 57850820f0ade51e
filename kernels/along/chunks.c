/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.c: scans of few and long lines, whose chunks go to workers in turn.
 *
 * Chunks are numbered line after line. A part takes the next one that nobody has. What a chunk comes to is said early:
 * a part holds three chunks, of which it scans the first, while the last is on its way from memory to the caches, where
 * it is then read for what it comes to, and once more when its turn has come to be scanned. So memory is read once, and
 * who scans a chunk finds that all before it have been told, unless somebody is late by a chunk. What comes before a
 * chunk is put together from what those before it come to, one after the other, back to the last of which it is known
 * what comes behind it. As long as one part is alone it scans chunk by chunk and needs no totals.
 *
 * Both ways give the same bits (struct weft_along_pieces), and so does any number of parts, of which nothing but the
 * speed wants that they run at the same time: who waits, waits for chunks that somebody took before, and the first
 * chunk that is not done waits for nobody.
 *
 * Not done: a pass over all totals first, and another that scans. It reads memory twice. */
#include "kernels/along/along.h"
#include "kernels/pause.h"

#include <assert.h>
#include <sched.h>
#include <string.h>

#define SPINS 4096 /* before other threads of the machine get a turn */

/* All zero between runs. */
struct turns {
    int64_t taken; /* chunks that parts have taken */
    int32_t arrived, done; /* parts */
    int32_t ready; /* slots may be read */
};

static_assert(sizeof(struct turns) <= 64, "of what parts share, so much is zero when the first begins");

enum told { NOTHING, TOTAL, AFTER };

/* What was told of a chunk. */
struct slot {
    int32_t told; /* and with AFTER total may not be there */
    union weft_along_sum total, after;
};

struct chunks {
    const struct weft_along *along;
    const struct weft_along_pieces *pieces;
    int64_t bytes, count;
    char *out;
    const char *in;
    struct turns *turns;
    struct slot *slot;
};

struct chunk {
    int64_t number, n;
    const char *in;
    char *out;
};

static int64_t count_of(const struct weft_along *along)
{
    int64_t count = along->chunks;
    for (int i = 0; i < along->rank; i++)
        count *= along->extent[i];
    return count;
}

size_t weft_along_chunks_shared(const struct weft_along *along)
{
    return 64 + (size_t)count_of(along) * sizeof(struct slot);
}

static void pause_at(int *spin)
{
    if (++*spin % SPINS == 0)
        sched_yield();
    else
        weft_k_pause();
}

static int told(const struct slot *slot) { return __atomic_load_n(&slot->told, __ATOMIC_ACQUIRE); }
static void tell(struct slot *slot, enum told what) { __atomic_store_n(&slot->told, what, __ATOMIC_RELEASE); }

/* False when all are taken. */
static bool take(const struct chunks *chunks, struct chunk *ret)
{
    const struct weft_along *const along = chunks->along;
    const int64_t number = __atomic_fetch_add(&chunks->turns->taken, 1, __ATOMIC_RELAXED);
    *ret = (struct chunk){.number = number};
    if (number >= chunks->count)
        return false;
    const int64_t begin = number % along->chunks * along->chunk, left = along->n - begin;
    const int64_t at = along->reverse ? along->n - 1 - begin : begin;
    int64_t line = number / along->chunks, from = at * along->in_step, to = at * along->out_step;
    for (int i = along->rank - 1; i >= 0; i--) {
        from += line % along->extent[i] * along->in_stride[i];
        to += line % along->extent[i] * along->out_stride[i];
        line /= along->extent[i];
    }
    ret->n = left < along->chunk ? left : along->chunk;
    ret->in = chunks->in + from * chunks->bytes;
    ret->out = chunks->out + to * chunks->bytes;
    return true;
}

static void tell_total(const struct chunks *chunks, const struct chunk *chunk)
{
    struct slot *const slot = &chunks->slot[chunk->number];
    chunks->pieces->total(chunks->along, chunk->in, chunk->n, &slot->total);
    tell(slot, TOTAL);
}

/* What comes before a chunk of which all before are told, sooner or later. */
static void look_back(const struct chunks *chunks, int64_t number, union weft_along_sum *ret_before)
{
    const int64_t first = number - number % chunks->along->chunks;
    int64_t known = number; /* behind the chunk before this one */
    while (known > first && told(&chunks->slot[known - 1]) != AFTER)
        known--;
    if (known == first)
        chunks->pieces->start(chunks->along, ret_before);
    else
        *ret_before = chunks->slot[known - 1].after;
    for (int spin = 0; known < number; known++) {
        const struct slot *const slot = &chunks->slot[known];
        union weft_along_sum after;
        while (told(slot) == NOTHING)
            pause_at(&spin);
        if (told(slot) == TOTAL && chunks->pieces->join(chunks->along, ret_before, &slot->total, &after)) {
            *ret_before = after;
            continue;
        }
        while (told(slot) != AFTER)
            pause_at(&spin);
        *ret_before = slot->after;
    }
}

/* Of a chunk whose total is told, or not; `later` follows, if any. */
static void scan(const struct chunks *chunks, const struct chunk *chunk, const char *later)
{
    struct slot *const slot = &chunks->slot[chunk->number];
    union weft_along_sum before, after;
    look_back(chunks, chunk->number, &before);
    bool is_told = told(slot) == TOTAL && chunks->pieces->join(chunks->along, &before, &slot->total, &slot->after);
    if (is_told)
        tell(slot, AFTER);
    chunks->pieces->piece(chunks->along, chunk->out, chunk->in, chunk->n, later ? later - chunk->in : 0, &before,
                          is_told ? NULL : &after);
    if (is_told)
        return;
    slot->after = after;
    tell(slot, AFTER);
}

static void scan_all(const struct chunks *chunks)
{
    struct chunk now, next, later;
    bool some = take(chunks, &now);
    while (some && __atomic_load_n(&chunks->turns->arrived, __ATOMIC_RELAXED) == 1) {
        scan(chunks, &now, NULL);
        some = take(chunks, &now);
    }
    if (!some)
        return;
    tell_total(chunks, &now);
    bool has_next = take(chunks, &next);
    if (has_next)
        tell_total(chunks, &next);
    while (some) {
        const bool has_later = has_next && take(chunks, &later);
        scan(chunks, &now, has_later ? later.in : NULL);
        if (has_later)
            tell_total(chunks, &later);
        now = next, some = has_next;
        next = later, has_next = has_later;
    }
}

void weft_along_chunks(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t bytes, void *out,
                       const void *in, void *shared, int parts)
{
    const struct chunks chunks = {along, pieces, bytes, count_of(along), out, in, shared,
                                  (struct slot *)(void *)((char *)shared + 64)};
    struct turns *const turns = shared;
    if (__atomic_fetch_add(&turns->arrived, 1, __ATOMIC_ACQ_REL) == 0) {
        memset(chunks.slot, 0, (size_t)chunks.count * sizeof *chunks.slot);
        __atomic_store_n(&turns->ready, 1, __ATOMIC_RELEASE);
    }
    for (int spin = 0; !__atomic_load_n(&turns->ready, __ATOMIC_ACQUIRE);)
        pause_at(&spin);
    scan_all(&chunks);
    if (__atomic_add_fetch(&turns->done, 1, __ATOMIC_ACQ_REL) == parts)
        *turns = (struct turns){0};
}
