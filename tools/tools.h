/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h: what the subcommands of `weft` share. A subcommand is a function `int weft_cmd_<name>(int argc, char
 * **argv)` in a file of its name; argv[0] is the subcommand's word. It prints results to stdout and complaints to
 * stderr, and returns an exit code. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H

#include "weft/weft.h"

#include <stdio.h>

enum weft_exit {
    WEFT_EXIT_OK = 0,
    WEFT_EXIT_FAILED = 1, /* the work could not be done, or a comparison failed */
    WEFT_EXIT_USAGE = 2,  /* the command line makes no sense; stderr says why and names --help */
};

int weft_cmd_bench(int argc, char **argv);
int weft_cmd_check(int argc, char **argv);
int weft_cmd_conform(int argc, char **argv);
int weft_cmd_dot(int argc, char **argv);
int weft_cmd_opt(int argc, char **argv);
int weft_cmd_run(int argc, char **argv);

/* --- options.c: command lines ------------------------------------------------------------------------------------- */

#define WEFT_TOOL_WORDS 64
/* Words of a command line, in order. */
struct weft_words {
    const char *word[WEFT_TOOL_WORDS];
    int count;
};

enum weft_option_kind { WEFT_OPTION_FLAG, WEFT_OPTION_NUMBER, WEFT_OPTION_WORD, WEFT_OPTION_WORDS };
struct weft_option {
    const char *name;  /* "--threads", or "-o" */
    int kind;
    void *to;          /* bool *, int *, const char **, struct weft_words * */
    const char *value; /* what stands for the value in the help: "N"; NULL for flags */
    const char *help;
};
struct weft_usage {
    const char *line;                  /* "weft run MODEL [options]" */
    const char *text;                  /* what it does, some lines */
    const struct weft_option *options; /* ends with a NULL name */
    int min_words, max_words;          /* other words than options */
};
/* Fills the options and the other words. -1: go on. Else the exit code: after --help, or after saying what is wrong.
 * "--name value" and "--name=value" are the same. */
int weft_tool_options(const struct weft_usage *usage, int argc, char **argv, struct weft_words *ret_words);
/* "weft run: …; see weft run --help" on stderr; returns WEFT_EXIT_USAGE. */
int weft_tool_misused(const struct weft_usage *usage, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- model.c: a model with its inputs, ready to run --------------------------------------------------------------- */

#define WEFT_TOOL_PORTS 64
struct weft_model_options {
    const char *path;
    const char *cpu;           /* or NULL */
    int threads;
    bool reference;            /* every node by the evaluator */
    struct weft_words inputs;  /* npy files in order; none: random */
    const char *folder;        /* of input_N.npy, used when there are no inputs; or NULL */
    struct weft_words sizes;   /* "N=4": symbols of random inputs */
};
/* The rows of an option table that fill it, for every command that runs a model. */
#define WEFT_MODEL_OPTIONS(o)                                                                                          \
    {"-i", WEFT_OPTION_WORDS, &(o)->inputs, "X.npy", "an input, in order; without: random numbers, always the same"},  \
    {"--size", WEFT_OPTION_WORDS, &(o)->sizes, "N=4", "a symbol's value for random inputs; without: its hint"},        \
    {"--threads", WEFT_OPTION_NUMBER, &(o)->threads, "N", "at most so many threads"},                                  \
    {"--cpu", WEFT_OPTION_WORD, &(o)->cpu, "LEVEL", "baseline, avx2, avx512 …: use no more than that"},                \
    {"--reference", WEFT_OPTION_FLAG, &(o)->reference, NULL, "compute every node by the reference evaluator"}

struct weft_model {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    struct weft_tensor input[WEFT_TOOL_PORTS];
    size_t inputs, outputs;
    bool random;                     /* inputs are random numbers */
    double load_ms, compile_ms, create_ms;
};
/* A context whose errors and warnings go to stderr; false after saying what is wrong. */
bool weft_tool_open(const char *cpu, int threads, struct weft_context **ret_context);
/* Loads, compiles, reads or invents the inputs, binds them. False after saying what is wrong; close it in any case. */
bool weft_model_open(const struct weft_model_options *options, struct weft_model *ret_model);
void weft_model_close(struct weft_model *model);
/* A monotonic clock in milliseconds. */
double weft_tool_now_ms(void);
/* "2.1 MB". */
const char *weft_tool_bytes(double bytes, char text[32]);

/* --- compare.c: results against expectations ---------------------------------------------------------------------- */

struct weft_comparison {
    double max_abs, max_rel; /* largest difference, absolute and over the largest magnitude of what was expected */
    double bound;            /* what max_rel may be; 0 for integers and bool */
    int64_t elements, nans;  /* elements in all, and those where just one side is NaN or infinite */
    bool same;               /* within the bound */
};
/* False if dtype or shape differ: then `message` says so. */
bool weft_tool_compare(const struct weft_tensor *got, const struct weft_tensor *want, double bound,
                       struct weft_comparison *ret, char message[256]);
/* What the relative error of output i may be, from the lengths of the sums on the way to it. */
double weft_tool_bound(const struct weft_graph *graph, size_t output);

/* --- timing.c: which kernel takes how long ------------------------------------------------------------------------ */

struct weft_step_time {
    char kernel[96], value[96];
    int64_t ns;
};
struct weft_profile {
    struct weft_step_time *step;
    size_t steps, capacity;
    bool failed;
};
/* Runs the model `runs` times under a clock and keeps the smallest time of each step. */
bool weft_profile_measure(struct weft_model *model, int runs, struct weft_profile *ret_profile);
/* One line a kernel: name, count, time, share; the slowest first. */
void weft_profile_print(const struct weft_profile *profile, FILE *to);
void weft_profile_close(struct weft_profile *profile);

#endif
