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
int weft_cmd_calibrate(int argc, char **argv);
int weft_cmd_check(int argc, char **argv);
int weft_cmd_conform(int argc, char **argv);
int weft_cmd_dot(int argc, char **argv);
int weft_cmd_explain(int argc, char **argv);
int weft_cmd_report(int argc, char **argv);
int weft_cmd_bisect(int argc, char **argv);
int weft_cmd_reduce(int argc, char **argv);
int weft_cmd_diff(int argc, char **argv);
int weft_cmd_opt(int argc, char **argv);
int weft_cmd_run(int argc, char **argv);

/* --- options.c: command lines ------------------------------------------------------------------------------------- */

#define WEFT_TOOL_WORDS 64
/* Words of a command line, in order. */
struct weft_words {
    const char *word[WEFT_TOOL_WORDS];
    int count;
};

enum weft_option_kind {
    WEFT_OPTION_FLAG,   /* to: bool * */
    WEFT_OPTION_NUMBER, /* to: int *; from 0 */
    WEFT_OPTION_COUNT,  /* to: int *; from 1 */
    WEFT_OPTION_REAL,   /* to: double *; from 0 */
    WEFT_OPTION_BYTES,  /* to: int64_t *; "65536", "64K", "64M", "2G"; -1 for 0, since 0 is what nobody said */
    WEFT_OPTION_WORD,   /* to: const char ** */
    WEFT_OPTION_WORDS,  /* to: struct weft_words * */
};
struct weft_option {
    const char *name;  /* "--threads", or "-o" */
    int kind;
    void *to;
    const char *value; /* what stands for the value in the help: "N"; NULL for flags */
    const char *help;
};
struct weft_usage {
    const char *line;                  /* "weft run MODEL [options]" */
    const char *text;                  /* what it does, some lines */
    const struct weft_option *options; /* ends with a NULL name */
    const char *word;                  /* what its first word is: "a model"; NULL: it can do without */
    int max_words;                     /* other words than options */
};
/* Fills the options and the other words. -1: go on. Else the exit code: after --help, or after saying what is wrong.
 * "--name value" and "--name=value" are the same. */
int weft_tool_options(const struct weft_usage *usage, int argc, char **argv, struct weft_words *ret_words);
/* "weft run: …; see weft run --help" on stderr; returns WEFT_EXIT_USAGE. */
int weft_tool_misused(const struct weft_usage *usage, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same where a word is missing: what, and the usage line. */
int weft_tool_missing(const struct weft_usage *usage, const char *word);
#define WEFT_TOOL_MODEL "a model (an .onnx file or weft text)"

/* --- load.c: contexts and graphs ---------------------------------------------------------------------------------- */

/* Libraries of custom functions, which --custom names: each context that is opened below has them. */
extern struct weft_words weft_tool_customs;
#define WEFT_CUSTOM_OPTION                                                                                             \
    {"--custom", WEFT_OPTION_WORDS, &weft_tool_customs, "F.so", "load a library of custom functions (custom.h)"}
/* Registers them. An exit code. */
int weft_tool_register(struct weft_context *context);
/* A context whose errors and warnings go to stderr. Returns an exit code, after saying what is wrong. */
int weft_tool_open(const char *cpu, int threads, struct weft_context **ret_context);
/* Messages of contexts are not shown meanwhile. */
void weft_tool_hush(bool hush);
/* The same with the prices that weft ships, whatever the environment and the cache say. */
int weft_tool_open_shipped(const char *cpu, int threads, struct weft_context **ret_context);
/* Graph number `number` of a file, from 0; only weft text has more than one. `fixed` lists inputs that become
 * constants, as "NAME=X.npy"; it may be NULL. Returns an exit code. */
int weft_tool_load(struct weft_context *context, const char *path, int number, const struct weft_words *fixed,
                   struct weft_graph **ret_graph);
/* "no CPU level 'warp' (from --cpu); there are …" on stderr; returns WEFT_EXIT_USAGE. */
int weft_tool_no_level(const char *level, const char *from);
/* Makes a folder and those above it. False after saying what is wrong. */
bool weft_tool_folder(const char *path);
/* The folder for temporary files: TMPDIR, else /tmp. */
const char *weft_tool_temporary(void);
/* Do both paths lead to the same existing file or folder? */
bool weft_tool_same_file(const char *a, const char *b);
/* A monotonic clock in milliseconds. */
double weft_tool_now_ms(void);
/* "2.1 MB". */
const char *weft_tool_bytes(double bytes, char text[32]);
/* "s" unless there is one. */
const char *weft_tool_plural(int64_t count);

/* --- interrupt.c: Ctrl-C ------------------------------------------------------------------------------------------ */

/* From now on SIGINT, SIGTERM and SIGHUP cancel a run of the functions below, once; else they end the command, without
 * a part of a file left. */
void weft_tool_catch_signals(void);
/* While held, a first signal between two runs does not end the command: who holds asks weft_tool_is_interrupted. */
void weft_tool_hold_signals(bool hold);
bool weft_tool_is_interrupted(void);
/* weft_run and weft_run_timed. */
int weft_tool_run(struct weft_execution *execution);
int weft_tool_run_timed(struct weft_execution *execution,
                        void (*fn)(void *user, const char *kernel, const char *value, int64_t ns), void *user);
/* Says on stderr why the last of these failed. */
void weft_tool_run_failed(struct weft_execution *execution);
/* Returns the code, unless a signal was caught: then it ends the process as the signal would have. */
int weft_tool_end(int code);

/* --- random.c: numbers that are the same every time --------------------------------------------------------------- */

uint64_t weft_tool_next_random(uint64_t *state);
/* Fills a dense tensor: floats between low and high, integers and bool 0 or 1, which are legal indices nearly
 * everywhere. */
void weft_tool_random(struct weft_tensor *tensor, int64_t elements, double low, double high, uint64_t *state);

/* --- model.c: a model with its inputs, ready to run --------------------------------------------------------------- */

#define WEFT_TOOL_PORTS 1024 /* training graphs read every parameter and many saved values */
struct weft_model_options {
    const char *path;
    const char *cpu;           /* or NULL */
    int threads;
    int number;                /* of the graph in its file */
    bool reference;            /* every node by the evaluator */
    bool no_winograd;          /* convolutions by their formula */
    bool no_fuse;              /* each node by a kernel of its own */
    bool no_compiler;          /* groups are interpreted */
    bool winograd_4;           /* or by the fastest transforms, with their error */
    int64_t constant_bytes;    /* as weft_compile_options has it */
    struct weft_words inputs;  /* npy files in order; none: random */
    const char *folder;        /* of input_N.npy, used when there are no inputs; or NULL */
    struct weft_words fixed;   /* "NAME=X.npy": inputs that become constants */
    struct weft_words sizes;   /* "N=4": symbols of random inputs, and what those of given inputs must be */
};
#define WEFT_NO_WINOGRAD_HELP "compute 3x3 convolutions directly: slower, but infinities do not become NaN"
#define WEFT_NO_FUSE_HELP "a kernel for each node, no groups; the same layouts, for comparison"
#define WEFT_NO_COMPILER_HELP "interpret groups of nodes; start no C compiler"
#define WEFT_WINOGRAD_4_HELP "compute 3x3 convolutions by Winograd's F(4x4,3x3): faster, with a larger rounding error"
#define WEFT_CONSTANT_BYTES_HELP                                                                                       \
    "limit for constants computed while compiling, as 64M; 0: none (default: the size of the weights plus 64M)"
#define WEFT_FIX_HELP "make this input of an ONNX file a constant"
/* The rows of an option table that fill it, for every command that runs a model. */
#define WEFT_MODEL_OPTIONS(o)                                                                                          \
    {"-i", WEFT_OPTION_WORDS, &(o)->inputs, "X.npy", "an input, in order (default: random numbers, fixed seed)"},      \
    {"--fix", WEFT_OPTION_WORDS, &(o)->fixed, "NAME=X.npy", WEFT_FIX_HELP},                                            \
    {"--size", WEFT_OPTION_WORDS, &(o)->sizes, "N=4", "size of a symbol for random inputs (default: its hint)"},       \
    {"--graph", WEFT_OPTION_NUMBER, &(o)->number, "N", "graph number N of a file of weft text, from 0"},               \
    {"--threads", WEFT_OPTION_COUNT, &(o)->threads, "N", "use at most N threads"},                                     \
    {"--cpu", WEFT_OPTION_WORD, &(o)->cpu, "LEVEL", "highest CPU level to use: baseline, avx2, avx512 …"},             \
    {"--reference", WEFT_OPTION_FLAG, &(o)->reference, NULL, "run every node in the reference evaluator"},             \
    {"--constant-bytes", WEFT_OPTION_BYTES, &(o)->constant_bytes, "N", WEFT_CONSTANT_BYTES_HELP},                      \
    {"--no-fuse", WEFT_OPTION_FLAG, &(o)->no_fuse, NULL, WEFT_NO_FUSE_HELP},                                           \
    {"--no-compiler", WEFT_OPTION_FLAG, &(o)->no_compiler, NULL, WEFT_NO_COMPILER_HELP},                               \
    {"--no-winograd", WEFT_OPTION_FLAG, &(o)->no_winograd, NULL, WEFT_NO_WINOGRAD_HELP},                               \
    {"--winograd-4", WEFT_OPTION_FLAG, &(o)->winograd_4, NULL, WEFT_WINOGRAD_4_HELP},                                  \
    WEFT_CUSTOM_OPTION

struct weft_model {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    struct weft_tensor input[WEFT_TOOL_PORTS]; /* dense and row-major */
    struct weft_tensor bound[WEFT_TOOL_PORTS]; /* what the plan reads: a copy in its layout, where that is another and
                                                * where a run writes to it; else the same */
    size_t inputs, outputs;
    bool random;                     /* inputs are random numbers */
    double load_ms, compile_ms, create_ms;
};
/* -1, or the exit code after saying which options exclude each other. */
int weft_model_misused(const struct weft_usage *usage, const struct weft_model_options *options);
/* Prints these options as they would be said again, a blank before each; with `inputs` also -i, --fix, --size and
 * --graph. */
void weft_model_print_options(const struct weft_model_options *options, bool inputs);
/* With the arithmetic that the options ask for. */
int weft_model_compile(const struct weft_model_options *options, const struct weft_graph *graph,
                       struct weft_plan **ret_plan);
/* Makes an execution of a model that is compiled, reads or invents the inputs, binds them. Returns an exit code, after
 * saying what is wrong. */
int weft_model_prepare(const struct weft_model_options *options, struct weft_model *model);
/* Loads, compiles, reads or invents the inputs, binds them. Returns an exit code, after saying what is wrong; close it
 * in any case. */
int weft_model_open(const struct weft_model_options *options, struct weft_model *ret_model);
/* Runs once on the inputs as they were given, although runs before may have written to mutable ones. */
bool weft_model_run_afresh(struct weft_model *model);
/* ", as [2,20] (other sizes: --size)" where the input's type leaves extents open, else "": in `ret`. */
const char *weft_model_extents(const struct weft_model *model, size_t input, char ret[128]);
void weft_model_close(struct weft_model *model);

/* --- inputs.c ----------------------------------------------------------------------------------------------------- */

struct weft_dims;
/* Values of the symbols: their hints, and what --size says. Returns an exit code. */
int weft_model_sizes(const struct weft_words *sizes, const struct weft_dims *dims, int64_t *ret_value);
/* Frees the inputs. */
void weft_model_drop_inputs(struct weft_model *model);
/* Reads or invents the inputs of a compiled model, in place of those that it has, and binds them. Returns an exit
 * code. */
int weft_model_make_inputs(const struct weft_model_options *options, struct weft_model *model);
/* Copies inputs to where the plan reads them, where that is another place. */
void weft_model_place_inputs(struct weft_model *model);

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
/* The row of an option table that states how large an error is wrong: a double, below 0 if nobody says. */
#define WEFT_BOUND_OPTION(bound)                                                                                       \
    {"--bound", WEFT_OPTION_REAL, bound, "E",                                                                          \
     "the error that is wrong, over the largest magnitude of an output (default: what roundings explain)"}
/* The stated bound, or weft_tool_bound. */
double weft_tool_stated_bound(double stated, const struct weft_graph *graph, const int64_t *symbols, size_t output);
/* What the relative error of output i may be, from the lengths of the sums on the way to it. */
double weft_tool_bound(const struct weft_graph *graph, const int64_t *symbols, size_t output);

/* --- expect.c: the outputs of a model against files --------------------------------------------------------------- */

/* Compares output `i` of the last run with `want`, by the bound of the model. False after saying that they cannot be
 * compared. */
bool weft_tool_compare_output(const struct weft_model *model, size_t i, const struct weft_tensor *want,
                              struct weft_comparison *ret);
/* output_<i>.npy of a folder, in the type of that output, to be freed with weft_npy_free. False after saying why
 * not. */
bool weft_tool_load_output(const struct weft_model *model, size_t i, const char *folder, struct weft_tensor *ret);
/* Compares with that file. */
bool weft_tool_compare_file(const struct weft_model *model, size_t i, const char *folder, struct weft_comparison *ret);

/* --- timing.c: which kernel takes how long ------------------------------------------------------------------------ */

struct weft_step_time {
    char kernel[96], value[96];
    int64_t ns, now_ns;   /* in the run that is kept; in the last one */
};
struct weft_profile {
    struct weft_step_time *step;
    size_t steps, capacity;
    int runs;             /* that were measured */
    int64_t sum_ns;       /* of the steps of the run that is kept, */
    double timed_ms;      /* and how long that took from its call to its return: the least of all */
    double best_ms;       /* of whole runs without clocks inside */
    bool failed;
};
/* Runs the model in turns with a clock around each step, where the fastest run is kept, and with one around the whole:
 * so many times, or for about two seconds. */
bool weft_profile_measure(struct weft_model *model, int runs, struct weft_profile *ret_profile);
/* One line a kernel: name, count, time, share; the slowest first. */
void weft_profile_print(const struct weft_model *model, const struct weft_profile *profile, FILE *to);
void weft_profile_close(struct weft_profile *profile);

/* --- json.c ------------------------------------------------------------------------------------------------------- */

struct weft_text;
/* A string of JSON, in quotes; NULL is the empty one. */
void weft_json_string(struct weft_text *text, const char *string);
void weft_json_write_string(FILE *file, const char *string);

/* --- progress.c --------------------------------------------------------------------------------------------------- */

/* What the command is doing, and a count that is not 0, where standard error is a terminal: in a line that the next
 * call replaces; NULL: no line any more. */
void weft_tool_progress(const char *what, int count);

/* --- draw.c: Graphviz --------------------------------------------------------------------------------------------- */

enum { WEFT_DRAW_MESSAGE = 160 };
/* Draws a text in DOT in a format that `dot` has ("svg") to an open file. False, with a message, if that fails. */
bool weft_tool_draw(const char *text, const char *format, FILE *to, char message[WEFT_DRAW_MESSAGE]);

/* --- trace.c: a timeline ------------------------------------------------------------------------------------------ */

/* Writes what was measured of a model that has run, as trace events. False after saying what went wrong. */
bool weft_trace_write(const struct weft_model *model, const struct weft_profile *profile, const char *path);
struct weft_text;
/* The text of that file. Under weft_protected. */
void weft_trace_print(const struct weft_model *model, const struct weft_profile *profile, struct weft_text *text);

/* --- plain.c: which steps have no fast kernel --------------------------------------------------------------------- */

/* Values of a graph with the nodes that make them, by name. */
struct weft_named_value {
    const char *name;
    const struct weft_graph *graph;
    weft_node node;
};
/* Sorted by name, `label` naming values by id; the caller frees the list. NULL and 0 without memory. */
struct weft_named_value *weft_name_values(const struct weft_graph *graph, const char *const *label, size_t *ret_count);
/* The one of that name, or NULL. */
const struct weft_named_value *weft_find_value(const struct weft_named_value *named, size_t count, const char *name);
/* Steps in plain kernels and in the reference evaluator, those of bodies too: what they compute of what, how long it
 * took, the slowest first. Nothing where there is none. */
void weft_profile_print_plain(const struct weft_model *model, const struct weft_profile *profile, FILE *to);

#endif
