/* SPDX-License-Identifier: Apache-2.0 */
/* speed.h: the parts of weft-check --bench: shape files, contestants in turns, probes, reports. */
#ifndef WEFT_SPEED_H
#define WEFT_SPEED_H

#include "check/bench.h"

#include <stdio.h>

struct weft_context;

/* --- speed_shapes.c: shape files ---------------------------------------------------------------------------------- */

enum { SPEED_FILES = 32 };
struct speed_shapes {
    struct weft_case *cases;
    int count, capacity, files;
    char *file[SPEED_FILES]; /* paths that cases point to */
};
/* Adds the cases of a file. False with "file:line: what is wrong" in `error`. */
bool speed_shapes_read(struct speed_shapes *shapes, const char *path, char *error, size_t bytes);
/* Adds the case of one line, "family name key=value…". False with the reason in `error`. */
bool speed_shapes_add(struct speed_shapes *shapes, const char *group, const char *line, char *error, size_t bytes);
void speed_shapes_close(struct speed_shapes *shapes);
const struct weft_bench_family *speed_family(const char *name);

/* --- speed_probe.c: the machine's limits -------------------------------------------------------------------------- */

enum speed_probe { PROBE_FMA, PROBE_READ, PROBE_COPY, PROBE_STREAM, PROBES }; /* STREAM: a copy past the caches */
extern const char *const speed_probe_names[PROBES];

/* A probe as a contestant. Its work is in flops, or in bytes read and written: near `work`, which ret_work says
 * exactly. */
void speed_probe_open(struct weft_bench *bench, enum speed_probe probe, uint32_t cpu, double work, int workers,
                      struct weft_contestant *ret, double *ret_work);

/* --- speed_report.c: figures -------------------------------------------------------------------------------------- */

enum { SPEED_RATIOS = 8 };
/* Medians over the rounds. ratio[i]: time of contestant i over our time, so that more than 1 is good for us; NAN where
 * there is none. [0] is the limit: never much above 1. */
struct speed_result {
    const struct weft_case *c;
    int threads;
    const char *kernel;
    double ns, least_ns, rate; /* rate: of flops or bytes, per ns */
    const char *unit, *limit;  /* which probe bounds it */
    double ratio[SPEED_RATIOS], noise;
    double least[SPEED_RATIOS]; /* the same of the fastest samples: what a machine with other work leaves to see */
    int rounds;
    const char *differs;       /* who computed something else, or NULL */
};
struct speed_report {
    FILE *out;
    bool json;
    int columns;
    const char *column[SPEED_RATIOS]; /* "limit", "ref", "best" of the peers, then these */
    struct speed_result *results;
    int count, capacity, skipped;
};
/* Of n numbers, which are put into order. */
double speed_median(double *x, int n);
/* Prints one result and keeps it for the summary. */
void speed_report_add(struct speed_report *report, const struct speed_result *result);
/* Says that a case is not timed, and why. */
void speed_report_skip(struct speed_report *report, const struct weft_case *c, const char *why);
/* Per group and number of threads: geometric mean, worst ratio and whose it is. */
void speed_report_close(struct speed_report *report);

/* --- speed_main.c: options, cases, memory ------------------------------------------------------------------------- */

struct speed_options {
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
struct speed_block;
struct weft_bench {
    const struct speed_options *options;
    struct weft_context *context;
    struct speed_block *blocks;
    size_t stagger;
    uint64_t random;
};

/* Gives back the memory of a case. */
void speed_free(struct weft_bench *bench);
/* Times what the options ask for; an exit code. ret_cases: how many cases there were. */
int speed_main(const struct speed_options *options, int *ret_cases);

/* The groups that shape files have, in their order. */
void speed_print_groups(const struct speed_options *options, FILE *out);

/* The name of the case that is being timed, for the handler of crashes, or NULL. */
extern const char *volatile speed_current;

/* --- speed.c: one case -------------------------------------------------------------------------------------------- */

/* False if our result is in doubt: the plain loops compute another, or a peer does and the loops were not asked. */
bool speed_case(struct weft_bench *bench, const struct weft_case *c, struct speed_report *report);

#endif
