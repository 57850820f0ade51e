/* SPDX-License-Identifier: Apache-2.0 */
/* bench_engine.h: the parts of weft-check --bench: shape files, contestants in turns, probes, reports. */
#ifndef WEFT_BENCH_ENGINE_H
#define WEFT_BENCH_ENGINE_H

#include "kernels/bench.h"

#include <stdio.h>

struct weft_context;

/* --- bench_shapes.c: shape files ---------------------------------------------------------------------------------- */

enum { BENCH_FILES = 32 };
struct bench_shapes {
    struct weft_case *cases;
    int count, capacity, files;
    char *file[BENCH_FILES]; /* paths that cases point to */
};
/* Adds the cases of a file. False with "file:line: what is wrong" in `error`. */
bool bench_shapes_read(struct bench_shapes *shapes, const char *path, char *error, size_t bytes);
/* Adds the case of one line, "family name key=value…". False with the reason in `error`. */
bool bench_shapes_add(struct bench_shapes *shapes, const char *group, const char *line, char *error, size_t bytes);
void bench_shapes_close(struct bench_shapes *shapes);
const struct weft_bench_family *bench_family(const char *name);

/* --- bench_probe.c: the machine's limits -------------------------------------------------------------------------- */

enum bench_probe { PROBE_FMA, PROBE_READ, PROBE_COPY, PROBE_STREAM, PROBES }; /* STREAM: a copy past the caches */
extern const char *const bench_probe_names[PROBES];

/* A probe as a contestant. Its work is in flops, or in bytes read and written: near `work`, which ret_work says
 * exactly. */
void bench_probe_open(struct weft_bench *bench, enum bench_probe probe, uint32_t cpu, double work, int workers,
                      struct weft_contestant *ret, double *ret_work);

/* --- bench_report.c: figures -------------------------------------------------------------------------------------- */

enum { BENCH_RATIOS = 8 };
/* Medians over the rounds. ratio[i]: time of contestant i over our time, so that more than 1 is good for us; NAN where
 * there is none. [0] is the limit: never much above 1. */
struct bench_result {
    const struct weft_case *c;
    int threads;
    const char *kernel;
    double ns, least_ns, rate; /* rate: of flops or bytes, per ns */
    const char *unit, *limit;  /* which probe bounds it */
    double ratio[BENCH_RATIOS], noise;
    int rounds;
    bool differs;              /* a peer computed something else */
};
struct bench_report {
    FILE *out;
    bool json;
    int columns;
    const char *column[BENCH_RATIOS]; /* "limit", "ref", then peers */
    struct bench_result *results;
    int count, capacity;
};
/* Of n numbers, which are put into order. */
double bench_median(double *x, int n);
/* Prints one result and keeps it for the summary. */
void bench_report_add(struct bench_report *report, const struct bench_result *result);
/* Per group and number of threads: geometric mean, worst ratio and whose it is. */
void bench_report_close(struct bench_report *report);

/* --- bench_main.c: options, cases, memory ------------------------------------------------------------------------- */

struct bench_options {
    uint32_t cpu;              /* mask */
    const char *brand;
    char **patterns;           /* of families, groups and names; none: all */
    int pattern_count;
    const char *shapes;        /* a file instead of all */
    int random;                /* so many cases drawn for each family instead of files */
    uint64_t seed;
    int threads[4], thread_counts;
    double seconds;            /* for a case and number of threads */
    bool json, list;
};
struct bench_block;
struct weft_bench {
    const struct bench_options *options;
    struct weft_context *context;
    struct bench_block *blocks;
    size_t stagger;
    uint64_t random;
};

/* Gives back the memory of a case. */
void bench_free(struct weft_bench *bench);
/* Times what the options ask for; an exit code. ret_cases: how many cases there were. */
int bench_main(const struct bench_options *options, int *ret_cases);

/* --- bench.c: one case -------------------------------------------------------------------------------------------- */

/* False if somebody computes something else. */
bool bench_case(struct weft_bench *bench, const struct weft_case *c, struct bench_report *report);

#endif
