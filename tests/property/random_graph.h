/* SPDX-License-Identifier: Apache-2.0 */
/* random_graph.h: graphs drawn at random over all ops, held to the reference evaluator; failures made small.
 *
 *   seed ──choices.c──► numbers ──draw*.c──► graph ──► text ──check.c──► verdict ──shrink.c──► a smaller text
 *
 * A graph is a function of a sequence of small numbers, the choices: which op comes next, which earlier value it reads,
 * how long an axis is. A seed gives the sequence; a sequence that ends goes on with zeros, and zero is always the
 * simplest choice. So a failure is made small by leaving choices out and making them smaller, for every op and without
 * knowledge of any: what comes out is always a graph again, and it still fails or the step is taken back.
 *
 * Example: the choices 0 0 1 | 7 0 2 | 21 1 0 might draw
 *
 *   graph @g(%0: f32[1,2]) {          0 0 1   no symbols; a parameter of two axes
 *     %1: f32[1,2] = exp %0           7 0 2   op 7, of value 0, with nothing to say about attributes
 *     %2: f32[1,2] = mul %1, %0       21 1 0  op 21, of value 1; the partner is value 0, which has the same type
 *     return %2
 *   }
 *
 * and without the three in the middle, which stand for one node, `mul %0, %0`.
 *
 * What holds for every graph (check.c), at several sizes of its symbols, on tame and on hostile numbers:
 *   text     printed, parsed and printed again it is the same text
 *   control  a second evaluator of `if` and `loop` (noise.c) gives the bits that the first gives
 *   passes   each pass alone, and all of them, keep what the graph computes; lower_blocks where values are in blocks
 *   layouts  as chosen they cost no more than row-major or channels-last throughout, and no less than the bound
 *   plans    kernels compute it, at each CPU level of the machine; with 1 and 2 threads (--thorough: to 4, and
 *            compiled code in the second run); a second run, with bound results, gives the bits of the first, and so
 *            does another number of threads where the same nodes form groups (in 19 of 20)
 *   choices  (--choices) so they do where every unit takes its second choice, its third, up to its ninth (WEFT_CHOICE),
 *            and where subgraphs stand in the place of all nodes that have an alternative (WEFT_ALTERNATIVE)
 *
 * How far a result may be off is measured (noise.c): the graph, as it stands and after its passes, is evaluated again
 * with each value moved by what a kernel may be off there. How far a result's element moves is how far
 * it may be off; where the moves turn a number into an infinity, flip a comparison or change an order, the element says
 * nothing. So no list of ops is ill-conditioned by decree, and what does not move has to be right to the last bit.
 * An element that fails is measured again with many more moves before it counts. */
#ifndef WEFT_RANDOM_GRAPH_H
#define WEFT_RANDOM_GRAPH_H

#include "ir/ir.h"

/* --- choices.c ---------------------------------------------------------------------------------------------------- */

#define WEFT_MOST_SPANS 64
struct weft_draws {
    uint32_t *value;
    size_t count, capacity, next;
    uint64_t state;               /* of the generator, while a sequence is being drawn */
    bool replay;                  /* the sequence is given */
    size_t span[WEFT_MOST_SPANS]; /* where the choices of each node begin, while drawing */
    int spans;
};
/* One of n > 0 numbers, from 0. */
unsigned weft_choose(struct weft_draws *choices, unsigned n);
void weft_choices_seed(struct weft_draws *choices, uint64_t seed);
void weft_choices_free(struct weft_draws *choices);

/* --- draw.c: graphs ----------------------------------------------------------------------------------------------- */

enum { WEFT_DRAW_REAL = 1, WEFT_DRAW_INTEGER = 2, WEFT_DRAW_NUMERIC = 3, WEFT_DRAW_BOOL = 4, WEFT_DRAW_ALL = 7,
       WEFT_DRAW_STORAGE = 8, WEFT_DRAW_ANY = 15 };
enum { WEFT_MOST_VALUES = 512, WEFT_MOST_DIMS = 10, WEFT_MOST_NEW_PARAMS = 14, WEFT_MOST_ATTRS = 12 };

struct weft_maker {
    struct weft_draws *choices;
    struct weft_graph *graph;
    struct weft_maker *outer;     /* of a body */
    weft_val value[WEFT_MOST_VALUES];
    int values;
    weft_dim dim[WEFT_MOST_DIMS]; /* the extents of this graph, so that shapes meet */
    int dims;
    int nested;                   /* operands being made for operands */
    int64_t most_elements;        /* of values that are used further */
    int64_t *symbols;             /* at the largest sizes that are run */
    uint32_t *drawn;              /* nodes made, by opcode */
};

static inline unsigned weft_draw(struct weft_maker *m, unsigned n) { return weft_choose(m->choices, n); }
/* Draws a graph; `drawn` counts the nodes by opcode, or NULL. To be called under weft_protected. */
struct weft_graph *weft_draw_graph(struct weft_context *context, struct weft_draws *choices, uint64_t name,
                                   uint32_t *drawn);
/* Some nodes of random ops. */
void weft_draw_nodes(struct weft_maker *m, unsigned count);
/* Something taken apart and put together in another way, mostly nothing (draw_apart.c). */
void weft_draw_apart(struct weft_maker *m);
/* Something put together, turned around or repeated, and computed with; mostly nothing (draw_looked.c). */
void weft_draw_looked(struct weft_maker *m);
/* Makes a node; its results join the values. None, and no harm, if the op refuses its operands. */
weft_node weft_emit(struct weft_maker *m, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                    const struct weft_attr *attr, const struct weft_type *stated);
static inline weft_val weft_draw_made(const struct weft_maker *m, weft_node node)
{
    return node.id ? weft_result(m->graph, node, 0) : WEFT_NO_VALUE;
}
void weft_keep_value(struct weft_maker *m, weft_val value);
/* The name of an op that is not drawn, or drawn without a generator; NULL: all is well. */
const char *weft_draw_table_error(void);
bool weft_is_drawn(int op);
/* An op that every graph begins with, if it can be drawn; or none. */
extern int weft_draw_first;

/* --- draw_operand.c: what nodes read ------------------------------------------------------------------------------ */

int weft_draw_dtype(struct weft_maker *m, unsigned families);
bool weft_dtype_in(int dtype, unsigned families);
weft_dim weft_draw_dim(struct weft_maker *m);
/* Has it few enough elements to be used further? */
bool weft_draw_fits(const struct weft_maker *m, const struct weft_type *type);
struct weft_type weft_draw_type(struct weft_maker *m, unsigned families, int least_rank, int most_rank);
/* A value of such a type: an earlier one, or a new one. */
weft_val weft_draw_value(struct weft_maker *m, unsigned families, int least_rank, int most_rank);
/* A value of just this type: an earlier one, a parameter, a constant, something converted or repeated. */
weft_val weft_obtain(struct weft_maker *m, const struct weft_type *type);
/* The same with extents that are numbers. */
weft_val weft_obtain_fixed(struct weft_maker *m, int dtype, int rank, const int64_t *extent);
weft_val weft_obtain_with(struct weft_maker *m, int dtype, int rank, const weft_dim *extent);
/* The extent if it is a number, else the least it can be. */
int64_t weft_least(const struct weft_maker *m, weft_dim extent);
static inline const struct weft_type *weft_drawn_type(const struct weft_maker *m, weft_val v)
{
    return weft_type_of(m->graph, v);
}
static inline int weft_draw_axis(struct weft_maker *m, weft_val v)
{
    return (int)weft_draw(m, weft_drawn_type(m, v)->rank);
}
/* Attributes that need no thought: words, flags, coefficients. Returns how many. */
unsigned weft_draw_attrs(struct weft_maker *m, int op, struct weft_attr *ret);

/* --- draw_*.c: a generator for each op, named in draw.def --------------------------------------------------------- */

typedef void weft_generator(struct weft_maker *m, int op);
#define DRAWN(op, generator) weft_generator weft_draw_##generator;
#define NOT_DRAWN(op, reason)
#include "tests/property/draw.def"
#undef DRAWN
#undef NOT_DRAWN

/* draw_custom.c: registers the functions that drawn graphs call. A status. */
int weft_register_drawn(struct weft_context *context);
/* draw_alternative.c: and alternatives, which are taken where WEFT_ALTERNATIVE names them. */
int weft_register_drawn_alternatives(struct weft_context *context);

/* draw_finished.c: readers of what a contraction makes, in half of cases. */
void weft_draw_finished(struct weft_maker *m, weft_node contraction);

/* draw_quantised.c: a product of few rows by quantised weights. */
void weft_draw_quantised(struct weft_maker *m);
void weft_draw_chosen(struct weft_maker *m);

/* --- noise.c: how far results may be off -------------------------------------------------------------------------- */

/* Memory of a tensor that weft_tensor_free gives back, as of those that the public evaluator makes. */
void *weft_trial_allocate(struct weft_context *context, const struct weft_tensor *tensor);

/* Evaluates with each value moved at random by what a kernel may be off, as `seed` says; 0: not at all. With `nans`
 * only the signs of NaNs are turned, and those of zeros of ops that may give either (a root of one is an infinity of
 * that sign), which is what a pass that keeps every bit may do. Results are dense, in memory of weft_trial_allocate.
 * False if memory is short, or if data said sizes that cannot be. */
bool weft_noisy_evaluate(const struct weft_graph *graph, int64_t *symbols, const struct weft_tensor *in,
                         struct weft_tensor *out, uint64_t seed, bool nans);

/* What a number of evaluations tell about each element of each result. */
struct weft_spread {
    double *moved;     /* the furthest that it was moved */
    bool *unstable;    /* it became another kind of number, or another integer */
    int64_t count;
    bool other_shape;  /* there were more or fewer elements */
};
struct weft_noise {
    const struct weft_graph *graph;
    int64_t *symbols;
    const struct weft_tensor *in;
    bool nans;                  /* only signs that nobody promises are turned */
    struct weft_tensor *base;   /* without noise, as the first call of weft_noise_measure found it */
    struct weft_spread *spread; /* by result */
    int samples;
};
/* Evaluates until there are so many samples. */
bool weft_noise_measure(struct weft_noise *noise, int samples);
void weft_noise_free(struct weft_noise *noise);

/* --- judge.c ------------------------------------------------------------------------------------------------------ */

/* Is `got` what was expected, given the noise of some graphs? If not, says where. Exact: noise counts only for the sign
 * of a zero, and for all else that which turns signs that nobody promises. */
bool weft_judge(const struct weft_tensor *want, const struct weft_tensor *got, uint32_t results,
                struct weft_noise *const *noise, int noises, bool exact, char *message, size_t bytes);

/* --- check.c ------------------------------------------------------------------------------------------------------ */

enum weft_outcome {
    WEFT_HOLDS, WEFT_FAILS_TEXT, WEFT_FAILS_CONTROL, WEFT_FAILS_EVALUATOR, WEFT_FAILS_PASS, WEFT_FAILS_COMPILE,
    WEFT_FAILS_RUN, WEFT_FAILS_RESULT, WEFT_FAILS_THREADS, WEFT_FAILS_AGAIN
};
/* Size number i that a symbol is run at. */
#define WEFT_SIZES 3
int64_t weft_run_size(const struct weft_symbol_info *symbol, int i);

/* How plans are made: CPU levels of this machine with 1 and 2 threads; the first is everything with 2. With `choices`
 * then everything with 2 threads again, once for each choice of units from the second on: lists have the lower levels,
 * too, and their order depends on threads, so that these plans have bits of their own. */
enum { WEFT_ALTERNATIVES = 0 };
enum { WEFT_MOST_LEVELS = 16, WEFT_LAST_CHOICE = 9, WEFT_MOST_WAYS = WEFT_MOST_LEVELS + WEFT_LAST_CHOICE };
/* What a machine tries beyond its CPU levels with 2 and 1 threads. */
struct weft_machine_options {
    bool choices;  /* the second to the ninth choice of every unit */
    bool thorough; /* compiled code, and 4 and 3 threads */
};
struct weft_machine {
    struct weft_context *context[WEFT_MOST_WAYS];
    char name[WEFT_MOST_WAYS][40];
    int choice[WEFT_MOST_WAYS]; /* that every unit takes, from 1; or WEFT_ALTERNATIVES: of every node an alternative */
    bool repeats[WEFT_MOST_WAYS]; /* the way before, with one thread less */
    int contexts;               /* that are open: those of the choices are the first */
    int ways;
    bool compiled; /* each second run waits for compiled code, which must give the bits of the interpreted first */
};
bool weft_machine_open(struct weft_machine *machine, const struct weft_machine_options *options);
void weft_machine_close(struct weft_machine *machine);
/* Holds a graph to everything above; says on stdout what fails, unless quiet. */
enum weft_outcome weft_check_graph(const struct weft_machine *machine, const struct weft_graph *graph, bool quiet);

/* --- shrink.c ----------------------------------------------------------------------------------------------------- */

/* Makes the sequence of a failing graph smaller while `fails` says that it still fails in the same way. */
void weft_shrink(struct weft_draws *choices, bool (*fails)(void *user, struct weft_draws *choices), void *user);

#endif
