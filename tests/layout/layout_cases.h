/* SPDX-License-Identifier: Apache-2.0 */
/* layout_cases.h: a runner for files of layout cases: explicit graphs of fixed sizes with expectations about where
 * values are stored, what is a view, and how wide an access may be (README.md, beside this file).
 *
 *   read.c ──► struct layout_case ──build.c, ops.c──► graphs ──run.c──► plan, results ──expect.c──► verdicts
 *
 * It uses weft as any other program does, through weft.h, and knows ops and kinds of expectations, but no case. */
#ifndef WEFT_LAYOUT_CASES_H
#define WEFT_LAYOUT_CASES_H

#include <jansson.h>
#include <stdio.h>
#include <weft/weft.h>

#define MOST_VALUES 256
#define MOST_PORTS 32

struct shape {
    int dtype, rank;
    int64_t extent[WEFT_MAX_RANK];
};

struct case_input {
    const char *name, *mut;    /* mut: the value that its buffer holds after a run, or NULL */
    struct shape shape;
    bool has_order, has_strides;
    int orders;                /* axes that the order names, legal or not */
    int64_t order[WEFT_MAX_RANK], stride[WEFT_MAX_RANK];
    int64_t offset, align, limit;
};

struct case_output {
    const char *name;
    bool has_order, required;
    int orders;
    int64_t order[WEFT_MAX_RANK];
};

struct layout_case {
    const char *name;
    struct case_input input[MOST_PORTS];
    struct case_output output[MOST_PORTS];
    size_t inputs, outputs;
    const json_t *ops, *expect;
};

/* --- read.c ------------------------------------------------------------------------------------------------------- */

/* Reads a case; a constant message, or NULL. What is read lives with the JSON. */
const char *read_case(const json_t *json, struct layout_case *ret);
/* The whole numbers of a list; how many, at most WEFT_MAX_RANK, or -1: it is none. */
int read_numbers(const json_t *list, int64_t *ret);
int64_t elements_of(const struct shape *shape);
/* The axes of an input in its storage order: as stated, or by falling strides. */
void order_of_input(const struct case_input *input, int64_t *ret_order);
/* Its strides, stated or not. */
void strides_of_input(const struct case_input *input, int64_t *ret_stride);

/* --- build.c, ops.c ----------------------------------------------------------------------------------------------- */

/* What a graph is built for: to be evaluated as the definition of correct, without a layout; to be planned, with what
 * the case gives; to be asked about, with what it expects as well. */
enum purpose { TO_EVALUATE, TO_PLAN, TO_ASK };

struct case_value {
    const char *name;
    weft_val id;
    struct shape shape;
};

struct build {
    struct weft_context *context;
    struct weft_graph *graph;
    struct case_value value[MOST_VALUES];
    size_t values;
    char message[400]; /* why it failed */
};

/* The graph of a case. Status; results are the outputs in order, and behind them new values of mutable inputs that are
 * none of these. */
int build_case(const struct layout_case *c, enum purpose purpose, struct weft_context *context, struct build *ret);
const struct case_value *find_value(const struct build *b, const char *name);
/* Where the new value of a mutable input stands among the results. */
size_t result_of_input(const struct layout_case *c, size_t input);
/* Adds the nodes of one op. False, with a message, if it is refused. */
bool build_op(struct build *b, const json_t *op);
bool fail_build(struct build *b, const char *message);

/* --- run.c -------------------------------------------------------------------------------------------------------- */

/* A case that was planned and run once. */
struct trial {
    struct build build;              /* of the plan */
    struct weft_plan *plan;
    struct weft_execution *execution;
    void *memory[MOST_PORTS];        /* of inputs */
    int status;                      /* of whatever was refused first */
    char message[400];
};
/* Compiles, behind `passes` (separated by commas; NULL: none), and runs on random inputs. `ret_wrong`: the first value
 * that is not what the evaluator makes, in words; empty if all are right or nothing ran. */
void run_case(const struct layout_case *c, struct weft_context *context, const char *passes, struct trial *ret,
              char *ret_wrong, size_t bytes);
void close_trial(struct trial *trial);

/* --- expect.c ----------------------------------------------------------------------------------------------------- */

enum kind {
    SAME_VALUES, ORDER, ORDER_ANY, STRIDES, CONTIGUITY, ALIAS, NO_ALIAS, IN_PLACE, WIDTH, INNER, RELAYOUTS, ERROR,
    KINDS
};
extern const char *const kind_names[KINDS];
int find_kind(const char *name); /* KINDS: there is none */
/* Does the expectation hold? Else `ret_got` says what there is instead. `asked`: a graph built TO_ASK. */
bool is_met(const struct layout_case *c, const json_t *expectation, const struct trial *trial,
            const struct build *asked, char *ret_got, size_t bytes);

#endif
