/* SPDX-License-Identifier: Apache-2.0 */
/* cores.c: how long a cache line takes from one CPU to another and back (cores.py compiles it). */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { ROUNDS = 20000 };

struct line {
    _Alignas(64) _Atomic int number;
};
struct side {
    struct line *mine, *other;
    int cpu, ahead; /* 1: begins a round, 0: answers it */
    double ns;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *play(void *arg)
{
    struct side *const side = arg;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(side->cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    double start = 0;
    for (int i = 1; i <= ROUNDS + 1; i++) {
        if (side->ahead)
            atomic_store_explicit(&side->mine->number, i, memory_order_release);
        while (atomic_load_explicit(&side->other->number, memory_order_acquire) < i)
            ;
        if (!side->ahead)
            atomic_store_explicit(&side->mine->number, i, memory_order_release);
        if (i == 1) /* both are there */
            start = now_ns();
    }
    side->ns = (now_ns() - start) / ROUNDS;
    return NULL;
}

/* Nanoseconds, or -1 where no thread can be started. */
double round_trip_ns(int cpu, int other_cpu)
{
    struct line line[2] = {{0}, {0}};
    struct side side[2] = {{&line[0], &line[1], cpu, 1, 0}, {&line[1], &line[0], other_cpu, 0, 0}};
    pthread_t thread[2];
    if (pthread_create(&thread[0], NULL, play, &side[0]) != 0)
        return -1;
    if (pthread_create(&thread[1], NULL, play, &side[1]) != 0) {
        atomic_store(&line[1].number, ROUNDS + 2); /* the other plays on alone, and ends */
        pthread_join(thread[0], NULL);
        return -1;
    }
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return side[0].ns;
}
