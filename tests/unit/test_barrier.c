/* SPDX-License-Identifier: Apache-2.0 */
/* test_barrier.c: nobody passes a meeting before all have come: gangs of every size, one behind the other, with more
 * workers than cores (so that some sleep), and when meetings have been numbered past the largest number. */
#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 11, MEETINGS = 300 };

struct member {
    pthread_t thread;
    struct weft_barrier *barrier;
    _Atomic int *come;         /* by worker: how many meetings it has come to */
    _Atomic bool *early;
    int worker, workers, late; /* one worker comes late: the others sleep */
};

static void *meet(void *arg)
{
    const struct member *m = arg;
    for (int k = 1; k <= MEETINGS; k++) {
        if (m->worker == m->late && k % 100 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        atomic_store(&m->come[m->worker], k);
        weft_barrier_wait(m->barrier, m->worker, m->workers);
        for (int i = 0; i < m->workers; i++) {
            const int other = atomic_load(&m->come[i]);
            if (other < k || other > k + 1)
                atomic_store(m->early, true);
        }
    }
    return NULL;
}

static bool all_wait(struct weft_barrier *barrier, int workers)
{
    struct member member[MOST];
    _Atomic int come[MOST] = {0};
    _Atomic bool early = false;
    for (int i = 0; i < workers; i++) {
        member[i] = (struct member){.barrier = barrier, .come = come, .early = &early, .worker = i, .workers = workers,
                                    .late = workers / 2};
        assert_int_equal(pthread_create(&member[i].thread, NULL, meet, &member[i]), 0);
    }
    for (int i = 0; i < workers; i++)
        pthread_join(member[i].thread, NULL);
    return !early;
}

static void *allocate(void *user, size_t bytes, size_t align) { return aligned_alloc(align, bytes); }
static void release(void *user, void *memory, size_t bytes) { free(memory); }
static const struct weft_allocator allocator = {.allocate = allocate, .release = release};

static void gangs_of_every_size_meet(void **state)
{
    struct weft_barrier *const barrier = weft_barrier_new(&allocator, MOST);
    assert_non_null(barrier);
    for (int workers = 1; workers <= MOST; workers++)
        for (int turn = 0; turn < 2; turn++) {
            weft_barrier_open(barrier, workers, 0);
            assert_true(all_wait(barrier, workers));
        }
    weft_barrier_open(barrier, 2, 1);
    assert_true(all_wait(barrier, 2));
    weft_barrier_free(&allocator, barrier);
}

/* Five hundred million meetings would take minutes, so they begin shortly before the end. */
static void numbers_go_round(void **state)
{
    for (uint32_t first = UINT32_MAX / 2 - MEETINGS / 2; first; first = first < UINT32_MAX / 2
                                                                          ? UINT32_MAX - MEETINGS / 2 : 0) {
        struct weft_barrier *const barrier = weft_barrier_new(&allocator, 4);
        assert_non_null(barrier);
        weft_barrier_open(barrier, 4, 0);
        weft_barrier_number(barrier, first);
        assert_true(all_wait(barrier, 4));
        weft_barrier_free(&allocator, barrier);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gangs_of_every_size_meet),
        cmocka_unit_test(numbers_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
