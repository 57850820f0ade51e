/* SPDX-License-Identifier: Apache-2.0 */
/* executor.c: gangs of workers that walk through a plan together, and the default executor on OpenMP.
 *
 * One parallel region per run, a barrier between kernels: a fork costs several microseconds, a barrier of spinning
 * workers well under one. The barrier gives up spinning after 20 microseconds, so that a worker that lost its core does
 * not make the others burn theirs. The size of the gang is what OpenMP really gave, read inside the region.
 *
 * OpenMP does not survive fork: in the child, the threads that the forking thread had do not exist, and gcc's waits for
 * them without end. So in a child the default executor has one worker, the thread that asks, and OpenMP is not
 * entered. */
#include "runtime/runtime.h"

#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- barrier ------------------------------------------------------------------------------------------------------ */

#define SPIN_NS 20000
#define SPINS_BETWEEN_CLOCKS 64

void weft_barrier_open(struct weft_barrier *barrier, int workers)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->phase, 0);
    atomic_init(&barrier->sleepers, 0);
    barrier->workers = workers;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void futex(atomic_int *word, int operation, int value)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static bool spin(struct weft_barrier *barrier, int phase)
{
    const int64_t start = weft_now_ns();
    do {
        for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
            if (atomic_load_explicit(&barrier->phase, memory_order_acquire) != phase)
                return true;
            pause_briefly();
        }
    } while (weft_now_ns() - start < SPIN_NS);
    return false;
}

void weft_barrier_wait(struct weft_barrier *barrier)
{
    if (barrier->workers == 1)
        return;
    const int phase = atomic_load_explicit(&barrier->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) == barrier->workers - 1) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_store(&barrier->phase, phase + 1);
        if (atomic_load(&barrier->sleepers) > 0)
            futex(&barrier->phase, FUTEX_WAKE, barrier->workers);
        return;
    }
    if (spin(barrier, phase))
        return;
    atomic_fetch_add(&barrier->sleepers, 1);
    while (atomic_load(&barrier->phase) == phase)
        futex(&barrier->phase, FUTEX_WAIT, phase);
    atomic_fetch_sub(&barrier->sleepers, 1);
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* How many forks lie between this process and the one that loaded the library: only that one has 0. */
static _Atomic uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_watched;

static void count_fork(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

static void watch(void) { is_watched = pthread_atfork(NULL, NULL, count_fork) == 0; }

bool weft_executor_watch_forks(void)
{
    return pthread_once(&once, watch) == 0 && is_watched;
}

static uint32_t generation_now(void) { return atomic_load_explicit(&generation, memory_order_relaxed); }

static bool is_forked(void) { return generation_now() > 0; }

/* --- OpenMP ------------------------------------------------------------------------------------------------------- */

static int openmp_workers(void *user)
{
    if (is_forked())
        return 1;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    const int limit = omp_get_max_threads();
    return cpu.workers < limit ? cpu.workers : limit;
}

/* For a caller of the public interface the promise holds only if all n are there; so the default executor makes none,
 * and gangs on it go through gang_openmp. */
static void openmp_run(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    const int threads = is_forked() ? 1 : n;
    for (int i = 0; threads == 1 && i < n; i++)
        fn(arg, i);
    if (threads == 1)
        return;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < n; i++)
        fn(arg, i);
}

void weft_executor_default(struct weft_executor *ret)
{
    *ret = (struct weft_executor){.size = sizeof *ret, .workers = openmp_workers, .run = openmp_run};
}

struct gang {
    void (*fn)(void *arg, int i, int n);
    void *arg;
    struct weft_barrier *barrier;
    int n;
};

static void gang_openmp(const struct gang *gang)
{
#pragma omp parallel num_threads(gang->n)
    {
#pragma omp single /* ends with a barrier: nobody waits before the size of the team is known */
        weft_barrier_open(gang->barrier, omp_get_num_threads());
        gang->fn(gang->arg, omp_get_thread_num(), omp_get_num_threads());
    }
}

static void call_member(void *arg, int i)
{
    const struct gang *gang = arg;
    gang->fn(gang->arg, i, gang->n);
}

static bool is_default(const struct weft_executor *executor) { return executor->run == openmp_run; }

bool weft_gang_is_concurrent(const struct weft_context *context)
{
    return is_default(&context->executor) || (context->executor.flags & WEFT_EXECUTOR_CONCURRENT);
}

int weft_gang_size(const struct weft_context *context)
{
    return !weft_gang_is_concurrent(context) || (is_default(&context->executor) && is_forked())
               ? 1 : context->target.threads;
}

/* Marks the workers as taken, unless they are. A mark that a process before the fork made is of no run here. */
static bool take_gang(struct weft_context *context)
{
    const uint32_t mark = generation_now() + 1;
    uint32_t found = atomic_load(&context->gang);
    return found != mark && atomic_compare_exchange_strong(&context->gang, &found, mark);
}

void weft_gang_run(struct weft_context *context, int workers, struct weft_barrier *barrier,
                   void (*fn)(void *arg, int i, int n), void *arg)
{
    const struct weft_executor *executor = &context->executor;
    if (workers > 1) { /* a pool may have shrunk since the context was opened */
        const int now = is_default(executor) ? weft_gang_size(context) : executor->workers(executor->user);
        workers = workers < now ? workers : now;
    }
    struct gang gang = {fn, arg, barrier, workers};
    if (workers > 1 && take_gang(context)) {
        if (is_default(executor)) {
            gang_openmp(&gang);
        } else {
            weft_barrier_open(barrier, workers);
            executor->run(executor->user, workers, call_member, &gang);
        }
        atomic_store(&context->gang, 0);
        return;
    }
    weft_barrier_open(barrier, 1);
    fn(arg, 0, 1);
}

void weft_fork_run(struct weft_context *context, int n, void (*fn)(void *arg, int i), void *arg)
{
    if (n > 1)
        context->executor.run(context->executor.user, n, fn, arg);
    else
        fn(arg, 0);
}
