/* SPDX-License-Identifier: Apache-2.0 */
/* executor.c: gangs of workers that walk through a plan together, and the default executor on OpenMP.
 *
 * One parallel region per run, a barrier between kernels (barrier.c): a fork costs several microseconds, a barrier of
 * spinning workers well under one. The size of the gang is what OpenMP really gave, read inside the region.
 *
 * OpenMP does not survive fork: in the child, the threads that the forking thread had do not exist, and gcc's waits for
 * them without end. So in a child the default executor has one worker, the thread that asks, and OpenMP is not
 * entered. */
#include "runtime/runtime.h"

#include <omp.h>
#include <pthread.h>

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
    int n;                  /* that the barrier is open for */
};

static void gang_openmp(const struct gang *gang)
{
#pragma omp parallel num_threads(gang->n)
    {
        const int n = omp_get_num_threads();
        if (n != gang->n && n > 1) {
#pragma omp single /* ends with a barrier of OpenMP's: nobody comes to ours before it is open for so many */
            weft_barrier_open(gang->barrier, n, generation_now());
        }
        gang->fn(gang->arg, omp_get_thread_num(), n);
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

void weft_gang_run(struct weft_context *context, int workers, void (*fn)(void *arg, int i, int n), void *arg)
{
    const struct weft_executor *executor = &context->executor;
    if (workers > 1) { /* a pool may have shrunk since the context was opened */
        const int now = is_default(executor) ? weft_gang_size(context) : executor->workers(executor->user);
        workers = workers < now ? workers : now;
    }
    struct gang gang = {fn, arg, context->barrier, workers};
    if (workers > 1 && take_gang(context)) {
        weft_barrier_open(context->barrier, workers, generation_now());
        if (is_default(executor))
            gang_openmp(&gang);
        else
            executor->run(executor->user, workers, call_member, &gang);
        atomic_store(&context->gang, 0);
        return;
    }
    fn(arg, 0, 1);
}

void weft_fork_run(struct weft_context *context, int n, void (*fn)(void *arg, int i), void *arg)
{
    if (n > 1)
        context->executor.run(context->executor.user, n, fn, arg);
    else
        fn(arg, 0);
}
