/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h: what the files of weft bench share. */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include "tools/tools.h"

struct weft_bench_length {
    double seconds;        /* to measure for, at least three runs, */
    int iterations;        /* or, if not 0, so many runs */
    int warmup;            /* runs before that do not count */
};
struct weft_bench_runs {
    double min_ms, median_ms, p90_ms, p99_ms;
    double spread_pct;     /* between the quartiles, in per cent of the median */
    int runs;
};
/* Runs one after the other; false after saying what failed. */
bool weft_bench_runs(struct weft_model *model, const struct weft_bench_length *length, struct weft_bench_runs *ret);
/* Runs a second of as many executions of the model's plan, each on a thread that calls weft_run again and again. */
bool weft_bench_throughput(struct weft_model *model, int executions, double seconds, double *ret_runs_per_s);

#endif
