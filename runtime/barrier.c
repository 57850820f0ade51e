/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c: a point that the workers of a gang pass together.
 *
 * By dissemination (Hensgen, Finkel and Manber, 1988): in round r worker i tells worker i + 2^r that it has come, and
 * waits until i - 2^r has told it; after log2 n rounds everybody has heard of everybody. No word is written by two
 * workers, and a line of memory goes from one core to one other, so that a round takes the time of one such way however
 * many workers there are; with a counter they would queue for its line.
 *
 *   4 workers   round 0: 0→1 1→2 2→3 3→0   round 1: 0→2 1→3 2→0 3→1
 *
 * What is told is the number of the meeting, so nothing is ever taken back; who is told may be one meeting behind,
 * never two. Bit 0 of a word says that its owner sleeps: after 300 microseconds it stops spinning, so that a worker
 * that lost its core does not make the others burn theirs. Where they sleep, the last of sixteen leaves a barrier 18
 * microseconds after the last one came to it, where they spin 1 (bench/README.md, "Sixteen threads"): it pays to spin
 * for as long as the parts of a step differ. */
#include "runtime/runtime.h"

#include "kernels/pause.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS 300000
#define SPINS_BETWEEN_CLOCKS 64
#define LINE 64

struct weft_line {
    _Alignas(LINE) _Atomic uint32_t word;
};
/* Of each worker a line for each round, and one for the number of its last meeting, which nobody else looks at. */
struct weft_barrier {
    size_t bytes;
    int most, rounds;
    int gang;                /* the size of the last one, and in which generation of processes it was */
    uint32_t generation;
    struct weft_line line[];
};

static int rounds_of(int workers)
{
    int rounds = 0;
    while (rounds < 31 && 1 << rounds < workers)
        rounds++;
    return rounds;
}

struct weft_barrier *weft_barrier_new(const struct weft_allocator *allocator, int workers)
{
    const int rounds = rounds_of(workers);
    const size_t lines = (size_t)workers * (size_t)(rounds + 1),
                 bytes = sizeof(struct weft_barrier) + lines * sizeof(struct weft_line);
    struct weft_barrier *const barrier = allocator->allocate(allocator->user, bytes, LINE);
    if (barrier) {
        memset(barrier, 0, bytes);
        barrier->bytes = bytes;
        barrier->most = workers;
        barrier->rounds = rounds;
    }
    return barrier;
}

void weft_barrier_free(const struct weft_allocator *allocator, struct weft_barrier *barrier)
{
    if (barrier)
        allocator->release(allocator->user, barrier, barrier->bytes);
}

static struct weft_line *lines_of(struct weft_barrier *barrier, int worker)
{
    return barrier->line + (size_t)worker * (size_t)(barrier->rounds + 1);
}

void weft_barrier_number(struct weft_barrier *barrier, uint32_t meeting)
{
    for (int i = 0; i < barrier->most * (barrier->rounds + 1); i++)
        atomic_store_explicit(&barrier->line[i].word, (i + 1) % (barrier->rounds + 1) ? meeting << 1 : meeting,
                              memory_order_relaxed);
}

/* Workers of one gang after the other have met equally often, but for gangs of other sizes, and for one that another
 * thread had at the time of a fork. */
void weft_barrier_open(struct weft_barrier *barrier, int workers, uint32_t generation)
{
    weft_assert(workers <= barrier->most);
    if (workers == barrier->gang && generation == barrier->generation)
        return;
    weft_barrier_number(barrier, 0);
    barrier->gang = workers;
    barrier->generation = generation;
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void tell(_Atomic uint32_t *word, uint32_t meeting)
{
    if (atomic_exchange_explicit(word, meeting << 1, memory_order_acq_rel) & 1)
        futex(word, FUTEX_WAKE, INT_MAX);
}

/* Numbers go round; two that are compared are at most one apart. */
static bool has_come(uint32_t word, uint32_t meeting) { return (int32_t)((word & ~1u) - (meeting << 1)) >= 0; }

static bool spin(_Atomic uint32_t *word, uint32_t meeting)
{
    const int64_t start = weft_now_ns();
    do {
        for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
            if (has_come(atomic_load_explicit(word, memory_order_acquire), meeting))
                return true;
            weft_k_pause();
        }
    } while (weft_now_ns() - start < SPIN_NS);
    return false;
}

static void hear(_Atomic uint32_t *word, uint32_t meeting)
{
    if (has_come(atomic_load_explicit(word, memory_order_acquire), meeting) || spin(word, meeting))
        return;
    for (uint32_t now; !has_come(now = atomic_load_explicit(word, memory_order_acquire), meeting);)
        if ((now & 1) || atomic_compare_exchange_strong(word, &now, now | 1))
            futex(word, FUTEX_WAIT, now | 1);
}

void weft_barrier_wait(struct weft_barrier *barrier, int worker, int workers)
{
    if (workers == 1)
        return;
    struct weft_line *const mine = lines_of(barrier, worker);
    const uint32_t meeting = atomic_load_explicit(&mine[barrier->rounds].word, memory_order_relaxed) + 1;
    atomic_store_explicit(&mine[barrier->rounds].word, meeting, memory_order_relaxed);
    for (int round = 0, step = 1; step < workers; round++, step *= 2) {
        const int other = worker + step < workers ? worker + step : worker + step - workers;
        tell(&lines_of(barrier, other)[round].word, meeting);
        hear(&mine[round].word, meeting);
    }
}
