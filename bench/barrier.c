/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c: what workers pay to work together: a meeting at the barrier, a gang that is opened and closed, both with
 * nothing to do; and a step of a plan: 200 sums of 16 numbers one behind the other, on one thread.
 *
 *     build/tests/bench_barrier [THREADS]      the least and the median of the rounds, in nanoseconds */
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 31, MEETINGS = 2000, GANGS = 200, STEPS = 200, RUNS = 200 };

struct meetings {
    struct weft_context *context;
    int meetings, members;
    int64_t ns;
};

static void member(void *arg, int worker, int workers)
{
    struct meetings *const m = arg;
    struct weft_barrier *const barrier = m->context->barrier;
    weft_barrier_wait(barrier, worker, workers);
    const int64_t start = weft_now_ns();
    for (int i = 0; i < m->meetings; i++)
        weft_barrier_wait(barrier, worker, workers);
    if (worker == 0)
        m->ns = weft_now_ns() - start, m->members = workers;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *round)
{
    qsort(round, ROUNDS, sizeof *round, by_number);
    printf("%-44s %8.1f %8.1f\n", what, round[0], round[ROUNDS / 2]);
}

static void time_meetings(struct weft_context *context, int workers)
{
    struct meetings m = {.context = context, .meetings = MEETINGS};
    double meeting[ROUNDS], gang[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        m.meetings = MEETINGS;
        weft_gang_run(context, workers, member, &m);
        meeting[i] = (double)m.ns / MEETINGS;
        m.meetings = 0;
        const int64_t start = weft_now_ns();
        for (int k = 0; k < GANGS; k++)
            weft_gang_run(context, workers, member, &m);
        gang[i] = (double)(weft_now_ns() - start) / GANGS;
    }
    char what[64];
    snprintf(what, sizeof what, "a meeting of %d workers", m.members);
    report(what, meeting);
    snprintf(what, sizeof what, "a gang of %d, which meets once", m.members);
    report(what, gang);
}

static void time_steps(struct weft_context *context)
{
    static char source[STEPS * 64 + 256];
    size_t at = (size_t)snprintf(source, sizeof source, "weft 1\ngraph @steps(%%v0: f32[16], %%w: f32[16]) {\n");
    for (int i = 0; i < STEPS; i++)
        at += (size_t)snprintf(source + at, sizeof source - at, "  %%v%d: f32[16] = add %%v%d, %%w\n", i + 1, i);
    snprintf(source + at, sizeof source - at, "  return %%v%d\n}\n", STEPS);
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    static float x[16], w[16];
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_FUSE};
    struct weft_tensor in = {.data = x, .dtype = WEFT_F32, .rank = 1, .extent = {16}, .stride = {1}};
    if (weft_parse(context, source, strlen(source), "steps", &graph) < 0 || weft_compile(graph, &options, &plan) < 0 ||
        weft_execution_create(plan, &execution) < 0 || weft_bind_input(execution, 0, &in) < 0 ||
        (in.data = w, weft_bind_input(execution, 1, &in) < 0)) {
        fprintf(stderr, "bench_barrier: %s\n", weft_last_error(context));
        exit(1);
    }
    double step[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t start = weft_now_ns();
        for (int k = 0; k < RUNS; k++)
            weft_run(execution);
        step[i] = (double)(weft_now_ns() - start) / RUNS / STEPS;
    }
    report("a step of 16 numbers, one thread", step);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    struct weft_context *context;
    const struct weft_context_options options = {.size = sizeof options, .threads = argc > 1 ? atoi(argv[1]) : 0};
    if (weft_open(&options, &context) < 0) {
        fprintf(stderr, "usage: bench_barrier [THREADS]\n");
        return 1;
    }
    const int workers = weft_gang_size(context);
    printf("%-44s %8s %8s\n", "ns", "least", "median");
    for (int n = 2; n < workers; n *= 2)
        time_meetings(context, n);
    if (workers > 1)
        time_meetings(context, workers);
    time_steps(context);
    weft_close(context);
    return 0;
}
