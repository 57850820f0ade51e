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
    const struct weft_along_work *work;
    int64_t count;
    struct turns *turns;
    struct slot *slot;
};

size_t weft_along_chunks_shared(int64_t chunks) { return 64 + (size_t)chunks * sizeof(struct slot); }

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
static bool take(const struct chunks *chunks, struct weft_along_chunk *ret)
{
    const struct weft_along *const along = chunks->along;
    const int64_t number = __atomic_fetch_add(&chunks->turns->taken, 1, __ATOMIC_RELAXED);
    const int64_t begin = number % along->chunks * along->chunk, left = along->n - begin;
    *ret = (struct weft_along_chunk){.number = number, .line = number / along->chunks, .begin = begin,
                                     .n = left < along->chunk ? left : along->chunk};
    return number < chunks->count;
}

static void tell_total(const struct chunks *chunks, const struct weft_along_chunk *chunk)
{
    struct slot *const slot = &chunks->slot[chunk->number];
    chunks->work->total(chunks->work->user, chunk, &slot->total);
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
static void scan(const struct chunks *chunks, const struct weft_along_chunk *chunk,
                 const struct weft_along_chunk *later)
{
    struct slot *const slot = &chunks->slot[chunk->number];
    union weft_along_sum before, after;
    look_back(chunks, chunk->number, &before);
    bool is_told = told(slot) == TOTAL && chunks->pieces->join(chunks->along, &before, &slot->total, &slot->after);
    if (is_told)
        tell(slot, AFTER);
    chunks->work->scan(chunks->work->user, chunk, later, &before, is_told ? NULL : &after);
    if (is_told)
        return;
    slot->after = after;
    tell(slot, AFTER);
}

static void scan_all(const struct chunks *chunks)
{
    struct weft_along_chunk now, next, later;
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
        scan(chunks, &now, has_later ? &later : NULL);
        if (has_later)
            tell_total(chunks, &later);
        now = next, some = has_next;
        next = later, has_next = has_later;
    }
}

void weft_along_take_turns(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t lines,
                           const struct weft_along_work *work, void *shared, int parts)
{
    const struct chunks chunks = {along, pieces, work, lines * along->chunks, shared,
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

/* --- whole arrays ------------------------------------------------------------------------------------------------- */

struct arrays {
    const struct weft_along *along;
    const struct weft_along_pieces *pieces;
    int64_t bytes;
    char *out;
    const char *in;
};

/* Where the first element of a chunk is. */
static void place(const struct arrays *a, const struct weft_along_chunk *chunk, const char **ret_in, char **ret_out)
{
    const struct weft_along *const along = a->along;
    const int64_t at = along->reverse ? along->n - 1 - chunk->begin : chunk->begin;
    int64_t line = chunk->line, from = at * along->in_step, to = at * along->out_step;
    for (int i = along->rank - 1; i >= 0; i--) {
        from += line % along->extent[i] * along->in_stride[i];
        to += line % along->extent[i] * along->out_stride[i];
        line /= along->extent[i];
    }
    *ret_in = a->in + from * a->bytes;
    *ret_out = a->out + to * a->bytes;
}

static void total_of(void *user, const struct weft_along_chunk *chunk, union weft_along_sum *ret)
{
    const struct arrays *const a = user;
    const char *in;
    char *out;
    place(a, chunk, &in, &out);
    a->pieces->total(a->along, in, chunk->n, ret);
}

static void scan_one(void *user, const struct weft_along_chunk *chunk, const struct weft_along_chunk *later,
                     const union weft_along_sum *before, union weft_along_sum *ret_after)
{
    const struct arrays *const a = user;
    const char *in, *later_in = NULL;
    char *out, *later_out;
    if (later)
        place(a, later, &later_in, &later_out);
    place(a, chunk, &in, &out);
    a->pieces->piece(a->along, out, in, chunk->n, later ? later_in - in : 0, before, ret_after);
}

void weft_along_run_chunks(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t bytes,
                           void *out, const void *in, void *shared, int parts)
{
    struct arrays arrays = {along, pieces, bytes, out, in};
    const struct weft_along_work work = {&arrays, total_of, scan_one};
    int64_t lines = 1;
    for (int i = 0; i < along->rank; i++)
        lines *= along->extent[i];
    weft_along_take_turns(along, pieces, lines, &work, shared, parts);
}
