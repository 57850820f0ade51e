/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h: a graph on trial: its variants, its plans, the inputs at hand. For check.c and trial.c alone. */
#ifndef WEFT_TRIAL_H
#define WEFT_TRIAL_H

#include "tests/property/random_graph.h"

enum { WEFT_MOST_VARIANTS = 40, WEFT_MOST_SYMBOLS = 64 };

struct weft_variant {
    const char *name; /* the pass that made it */
    bool exact;       /* it keeps every bit */
    struct weft_graph *graph;
};
struct weft_planned {
    struct weft_plan *plan;
    struct weft_execution *execution;
    bool same; /* but for the threads it is the plan before, with its groups and layouts: the bits must be the same */
};
struct weft_trial {
    const struct weft_machine *machine;
    const struct weft_graph *graph;
    bool quiet;
    struct weft_variant variant[WEFT_MOST_VARIANTS];
    int variants;
    struct weft_planned planned[WEFT_MOST_WAYS]; /* as the machine says */
    int plans;
    char what[160];                  /* the sizes and numbers at hand */
    int64_t symbols[WEFT_MOST_SYMBOLS];
    struct weft_tensor *in;          /* by parameter, in the layouts that the graph states */
    void **memory;
    struct weft_tensor *first;       /* results of the plan before, which the next with fewer threads must repeat */
};

/* Says what fails, unless the trial is quiet; returns `failure`. */
enum weft_outcome weft_trial_fail(struct weft_trial *trial, enum weft_outcome failure, const char *format, ...)
    WEFT_PRINTF(3, 4);

/* --- layouts.c */

/* Layouts cost no more than row-major throughout or channels-last, and no less than the bound. */
enum weft_outcome weft_trial_choice(struct weft_trial *trial, struct weft_graph *graph);
/* After propagate_memory_format: is what goes into bodies and out of them stored in one order on both sides? */
enum weft_outcome weft_trial_ports(struct weft_trial *trial, struct weft_graph *graph);
/* Stores three quarters of all values in blocks of 2 to 4 elements along an axis. */
void weft_trial_split(struct weft_graph *graph);

/* --- trial.c */

/* Sets symbols, `in` and `what`: size number `size` of each symbol, tame or hostile numbers. */
void weft_trial_fill(struct weft_trial *trial, int size, bool hostile);
void weft_trial_empty(struct weft_trial *trial);
/* Runs plan number p on the inputs, twice, and judges the results; noise by variant. */
enum weft_outcome weft_trial_run(struct weft_trial *trial, int p, const struct weft_tensor *want,
                                 struct weft_noise *noise);

/* Runs plan number p once on inputs that the evaluator refuses. A plan without the nodes that nobody reads may find
 * nothing wrong with them, so that all that is held is that it comes to an end, without a crash. */
void weft_trial_run_refused(struct weft_trial *trial, int p);

#endif
