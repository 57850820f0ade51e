/* SPDX-License-Identifier: Apache-2.0 */
/* thread_support.h: threads for the executors of tests: each calls a worker's function once. */
#ifndef WEFT_TEST_THREAD_SUPPORT_H
#define WEFT_TEST_THREAD_SUPPORT_H

#include <pthread.h>
#include <stddef.h>

/* Worker i of an executor's `run`. */
struct worker_call {
    void (*fn)(void *arg, int i);
    void *arg;
    int i;
};

/* For pthread_create, with a worker_call. */
static inline void *call_worker(void *arg)
{
    const struct worker_call *call = arg;
    call->fn(call->arg, call->i);
    return NULL;
}

#endif
