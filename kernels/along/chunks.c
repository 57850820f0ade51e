/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.c: scans of few and long lines, whose chunks go to workers in turn.
 *
 * Chunks are numbered line after line. A part takes the next one that nobody has. What comes before a chunk is known
 * once the chunk before it has said what comes behind it. If that is known already, the chunk is scanned at once, and
 * memory is read and written once; else the part first finds what its own chunk comes to, waits, says what comes behind
 * the chunk, so that the next one can go on, and scans what is in its cache by now. Both ways give the same bits
 * (struct weft_along_pieces), and so does any number of parts, of which nothing but the speed wants that they run at
 * the same time: who waits, waits for a chunk that somebody took before.
 *
 * Not done: a pass over all totals first, and another that scans. It reads memory twice. */
#include "kernels/along/along.h"
#include "kernels/pause.h"
#include "kernels/walk.h"

#include <assert.h>
#include <sched.h>

#define SPINS 4096 /* before other threads of the machine get a turn */

/* All zero between runs. */
struct turns {
    int64_t taken;              /* chunks that parts have taken */
    int64_t known;              /* the chunk whose `before` is known */
    union weft_along_sum before;
    int64_t done;               /* parts */
};

static_assert(sizeof(struct turns) <= 64, "of what parts share, so much is zero when the first begins");

size_t weft_along_chunks_shared(const struct weft_along *along) { return sizeof(struct turns); }

static void wait_for(const struct turns *turns, int64_t chunk)
{
    for (int spin = 1; __atomic_load_n(&turns->known, __ATOMIC_ACQUIRE) != chunk; spin++)
        if (spin % SPINS == 0)
            sched_yield();
        else
            weft_k_pause();
}

static void say(struct turns *turns, int64_t chunk, const union weft_along_sum *before)
{
    turns->before = *before;
    __atomic_store_n(&turns->known, chunk, __ATOMIC_RELEASE);
}

static void scan_chunk(const struct weft_along *along, const struct weft_along_pieces *pieces, struct turns *turns,
                       int64_t chunk, char *out, const char *in, int64_t n)
{
    const bool first = chunk % along->chunks == 0;
    union weft_along_sum before, total, after;
    if (first)
        pieces->start(along, &before);
    if (first || __atomic_load_n(&turns->known, __ATOMIC_ACQUIRE) == chunk) {
        if (!first)
            before = turns->before;
        pieces->piece(along, out, in, n, &before, &after);
        wait_for(turns, chunk);
        say(turns, chunk + 1, &after);
        return;
    }
    pieces->total(along, in, n, &total);
    wait_for(turns, chunk);
    before = turns->before;
    const bool joined = pieces->join(along, &before, &total, &after);
    if (joined)
        say(turns, chunk + 1, &after);
    pieces->piece(along, out, in, n, &before, &after);
    if (!joined)
        say(turns, chunk + 1, &after);
}

void weft_along_chunks(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t bytes, void *out,
                       const void *in, void *shared, int parts)
{
    struct turns *const turns = shared;
    int64_t lines = 1, chunk;
    for (int i = 0; i < along->rank; i++)
        lines *= along->extent[i];
    while ((chunk = __atomic_fetch_add(&turns->taken, 1, __ATOMIC_RELAXED)) < lines * along->chunks) {
        const int64_t begin = chunk % along->chunks * along->chunk, left = along->n - begin;
        const int64_t at = along->reverse ? along->n - 1 - begin : begin;
        int64_t line = chunk / along->chunks, from = at * along->in_step, to = at * along->out_step;
        for (int i = along->rank - 1; i >= 0; i--) {
            from += line % along->extent[i] * along->in_stride[i];
            to += line % along->extent[i] * along->out_stride[i];
            line /= along->extent[i];
        }
        scan_chunk(along, pieces, turns, chunk, (char *)out + to * bytes, (const char *)in + from * bytes,
                   left < along->chunk ? left : along->chunk);
    }
    if (__atomic_add_fetch(&turns->done, 1, __ATOMIC_ACQ_REL) == parts)
        *turns = (struct turns){0};
}
