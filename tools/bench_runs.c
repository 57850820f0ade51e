/* SPDX-License-Identifier: Apache-2.0 */
/* bench_runs.c: how long runs take: of one execution, one after the other, and of several side by side. */
#include "tools/bench.h"

#include "runtime/runtime.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 100000, LEAST_RUNS = 3, SHOW_MS = 100 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest time that at least so many per cent of the runs are no longer than. */
static double percentile(const double *ms, int runs, int percent)
{
    const int at = (runs * percent + 99) / 100;
    return ms[at > 0 ? at - 1 : 0];
}

/* A run that is cancelled by a signal is no failure: those before it count. */
static bool run_once(struct weft_execution *execution)
{
    const bool ok = weft_tool_run(execution) >= 0;
    if (!ok && !weft_tool_is_interrupted())
        weft_tool_run_failed(execution);
    return ok || weft_tool_is_interrupted();
}

static bool goes_on(const struct weft_bench_length *length, int runs, double start)
{
    if (runs >= MOST_RUNS || weft_tool_is_interrupted())
        return false;
    return length->iterations ? runs < length->iterations
                              : runs < LEAST_RUNS || weft_tool_now_ms() - start < 1e3 * length->seconds;
}

bool weft_bench_runs(struct weft_model *model, const struct weft_bench_length *length, struct weft_bench_runs *ret)
{
    double *ms = malloc(MOST_RUNS * sizeof *ms), shown = 0;
    bool ok = ms;
    weft_tool_hold_signals(true);
    for (int warm = 0; ok && warm < length->warmup && !weft_tool_is_interrupted(); warm++)
        ok = run_once(model->execution);
    int runs = 0;
    const double start = weft_tool_now_ms();
    while (ok && goes_on(length, runs, start)) {
        const double before = weft_tool_now_ms();
        ok = run_once(model->execution);
        ms[runs] = weft_tool_now_ms() - before;
        runs += !weft_tool_is_interrupted();
        if (before - shown > SHOW_MS) {
            weft_tool_progress("runs", runs);
            shown = before;
        }
    }
    weft_tool_hold_signals(false);
    if (ok && runs == 0) {
        fprintf(stderr, "weft: interrupted before a run was measured\n");
        ok = false;
    }
    if (ok) {
        qsort(ms, (size_t)runs, sizeof *ms, compare_doubles);
        const double median = runs % 2 ? ms[runs / 2] : (ms[runs / 2 - 1] + ms[runs / 2]) / 2;
        *ret = (struct weft_bench_runs){
            .min_ms = ms[0], .median_ms = median, .p90_ms = percentile(ms, runs, 90),
            .p99_ms = percentile(ms, runs, 99), .runs = runs,
            .spread_pct = 100 * (ms[3 * (runs - 1) / 4] - ms[(runs - 1) / 4]) / fmax(median, 1e-9)};
    }
    free(ms);
    return ok;
}

/* --- side by side ------------------------------------------------------------------------------------------------- */

struct side {
    pthread_t thread;
    bool ok;
    struct weft_execution *execution;
    pthread_barrier_t *ready;
    const double *until_ms;     /* the same for all, set between the two times that all wait at the barrier */
    double end_ms;              /* of the last run */
    int runs;
};

/* One run that does not count, then runs until the time is over. */
static void *work(void *user)
{
    struct side *const side = user;
    side->ok = run_once(side->execution);
    pthread_barrier_wait(side->ready); /* all are warm */
    pthread_barrier_wait(side->ready); /* the clock is set */
    while (side->ok && weft_tool_now_ms() < *side->until_ms) {
        side->ok = run_once(side->execution);
        side->runs++;
    }
    side->end_ms = weft_tool_now_ms();
    return NULL;
}

/* Runs write to inputs that are updated, which executions side by side may not share. */
static bool shares_inputs(const struct weft_model *model)
{
    const struct weft_graph *const graph = model->plan->graph;
    bool shares = true;
    for (uint32_t i = 0; i < graph->params; i++)
        shares &= !graph->value[graph->param[i].id].is_mut;
    if (!shares)
        fprintf(stderr, "weft bench: --executions: runs update inputs of this model, which they cannot share\n");
    return shares;
}

/* An execution of its own on the same inputs; outputs are its own anyway. */
static bool open_side(const struct weft_model *model, struct side *side)
{
    bool ok = weft_execution_create(model->plan, &side->execution) >= 0;
    for (size_t i = 0; ok && i < model->inputs; i++)
        ok = weft_bind_input(side->execution, i, &model->bound[i]) >= 0;
    if (!ok)
        fprintf(stderr, "weft bench: no execution beside others: %s\n", weft_last_error(model->context));
    return ok;
}

bool weft_bench_throughput(struct weft_model *model, int executions, double seconds, double *ret_runs_per_s)
{
    struct side *const side = calloc((size_t)executions, sizeof *side);
    pthread_barrier_t ready;
    bool ok = side && shares_inputs(model) && pthread_barrier_init(&ready, NULL, (unsigned)executions + 1) == 0;
    double until_ms = 0, runs = 0, end = 0;
    for (int i = 0; ok && i < executions; i++) {
        side[i].ready = &ready;
        side[i].until_ms = &until_ms;
        ok = open_side(model, &side[i]);
    }
    for (int i = 0; ok && i < executions; i++) {
        if (pthread_create(&side[i].thread, NULL, work, &side[i]) != 0) {
            /* Those that wait at the barrier would wait for ever. */
            fprintf(stderr, "weft bench: the system gives no thread for execution %d\n", i);
            exit(WEFT_EXIT_FAILED);
        }
    }
    if (ok) {
        pthread_barrier_wait(&ready);
        const double start = weft_tool_now_ms();
        until_ms = start + 1e3 * seconds;
        pthread_barrier_wait(&ready);
        for (int i = 0; i < executions; i++) {
            pthread_join(side[i].thread, NULL);
            ok = ok && side[i].ok;
            runs += side[i].runs;
            end = fmax(end, side[i].end_ms);
        }
        *ret_runs_per_s = runs / fmax((end - start) * 1e-3, 1e-9);
        pthread_barrier_destroy(&ready);
    }
    for (int i = 0; side && i < executions; i++)
        weft_execution_destroy(side[i].execution);
    free(side);
    return ok;
}
