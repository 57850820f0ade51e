/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h: plans and how they run.
 *
 *   graph ──plan.c──► homes (where each value lives), steps (which kernel computes it)     immutable, for all threads
 *         ──frame.c─► for one tuple of sizes: extents, strides, arena offsets, descriptors  cached per execution
 *         ──run.c───► base pointers of the storages, then step after step on a gang of workers
 *
 * A storage is memory with one base pointer: a parameter, a result, a constant, a block of the arena. A value's home is
 * a storage and a layout in it; a view has its operand's storage and another layout. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include "ir/ir.h"
#include "kernels/kernels.h"
#include "sched/alias.h"
#include "sched/prices.h"
#include "sched/step.h"

#include <stdatomic.h>

/* --- price_file.c ------------------------------------------------------------------------------------------------- */

/* Reads the prices that the caller, the environment or the user's cache has for the target of a context. */
int weft_prices_open(struct weft_context *context, const char *given, const struct weft_cpu *cpu);
void weft_prices_close(struct weft_context *context);
/* Where the cache has the prices of a machine by this name; false if there is no cache. */
bool weft_prices_path(const char *machine, char *path, size_t bytes);

/* --- executor.c --------------------------------------------------------------------------------------------------- */

/* Counts forks from now on; false if memory is refused. Every context asks for it. */
bool weft_executor_watch_forks(void);
/* Can workers of this context wait for each other? Else each step is a fork of its own. */
bool weft_gang_is_concurrent(const struct weft_context *context);
/* Workers that a gang on this context can have at most. */
int weft_gang_size(const struct weft_context *context);
/* Calls fn(arg, i) for all i in [0, n), concurrently or not: for executors that promise nothing. */
void weft_fork_run(struct weft_context *context, int n, void (*fn)(void *arg, int i), void *arg);
void weft_executor_default(struct weft_executor *ret); /* OpenMP */

/* A point that n workers pass together. Spins for at most 20 microseconds, then sleeps in the kernel. */
struct weft_barrier {
    atomic_int arrived, phase, sleepers;
    int workers;
};
void weft_barrier_open(struct weft_barrier *barrier, int workers);
void weft_barrier_wait(struct weft_barrier *barrier);

/* Runs fn(arg, i, n) for all i in [0, n) at the same time and returns when all have returned; n is at most `workers`
 * and is what the executor really gave. A gang that is busy with another run gives n = 1. `barrier` is opened for n
 * before any fn is called. */
void weft_gang_run(struct weft_context *context, int workers, struct weft_barrier *barrier,
                   void (*fn)(void *arg, int i, int n), void *arg);

/* --- plan.c ------------------------------------------------------------------------------------------------------- */

enum weft_storage_kind { WEFT_IN_NONE, WEFT_IN_PARAM, WEFT_IN_RETURN, WEFT_IN_CONSTANT, WEFT_IN_ARENA };
struct weft_storage {
    uint8_t kind;
    uint8_t dtype;
    uint32_t index;         /* of the parameter, return slot or constant */
    weft_val value;         /* whose type and layout say its size */
    int32_t first, last;    /* steps between which it must live (arena) */
    bool splat;             /* a constant of one element for all indices */
    const void *data;       /* of constants; NULL where nothing reads them as they are */
    uint32_t pack;          /* of constants: the memory of the plan that `data` is, or 0 */
    uint32_t load;          /* of constants: the step that made it when the plan was made, or 0 */
    uint32_t align;         /* arena: bytes, where more than a line is promised; or 0 */
    uint32_t control;       /* arena: the room of this control's bodies, and not of a value; or 0 */
    weft_dim stride[WEFT_MAX_RANK]; /* of parameters and results: as the caller sees them */
};

struct weft_home {
    uint32_t storage;       /* 0: none, the value is never stored */
    const struct weft_layout *layout; /* shared by all that are row-major: it is large, and values are many */
    weft_dim stride[WEFT_MAX_RANK]; /* logical, from the layout: running adds no expression to the graph's table */
};

struct weft_pack {          /* memory of the plan: copied, generated or packed constants */
    void *data;
    size_t bytes;
    const struct weft_packing *packing; /* of packed weights: for whom; or NULL */
};

/* The bodies of an `if` or `loop`: plans within the plan, see control.c. */
struct weft_control {
    bool loop, condition;   /* condition: a loop that ends when its first carried value is false */
    uint32_t carried;       /* values that a loop hands from trip to trip */
    uint32_t bodies;        /* 1 of a loop; 2 of an if: then, else */
    struct weft_plan *body[2];
    uint32_t room;          /* storage: second places of what is carried, then the arena of the body that runs */
    uint32_t step;          /* that runs it */
};

struct weft_plan {
    struct weft_context *context;
    _Atomic uint32_t holds;       /* the caller's, until weft_plan_destroy, and one of each execution */
    _Atomic bool destroyed;       /* the caller's is given up */
    struct weft_pack temporary;   /* a constant on its way into a pack; while planning only */
    struct weft_plan *part;       /* computes constants, with its execution (constants.c); while planning only */
    struct weft_execution *part_run;
    const int64_t *hint;          /* by symbol: the sizes that the hints give */
    struct weft_frame *hinted;    /* for these sizes; while planning only */
    const char **input_text, **output_text;
    const char **label;           /* names of values, by id */
    struct weft_graph *graph;
    struct weft_target target;
    enum weft_conv_arithmetic convolution; /* what convolutions may do besides their formula */
    struct weft_storage *storage; /* [1, storages) */
    struct weft_home *home;       /* by value id */
    const struct weft_layout *row_major[WEFT_MAX_RANK + 1]; /* by rank, once a value has it */
    struct weft_step *step;
    struct weft_pack *pack;       /* [1, packs) */
    struct weft_step *load;       /* [1, loads): relayouts of constants, done already */
    struct weft_step **choice;    /* by node id: what was chosen, or NULL as long as nobody asked */
    uint32_t storages, steps, packs, loads;
    uint32_t storage_capacity, step_capacity, pack_capacity, load_capacity;
    uint32_t *param_storage, *return_storage; /* by parameter, by return slot */
    struct weft_aliases alias;    /* what is computed in the memory of others */
    bool keeps_constants;   /* none are given up */
    bool share;             /* results may be views of what the caller has already */
    bool *shared;           /* by return slot: it is one, unless a tensor is bound to it */
    size_t descriptor_bytes;
    int64_t constant_bytes;
    int32_t relayouts, fallbacks;
    int32_t order_changes;        /* weft_plan_relayouts */
    weft_val *value;              /* those that weft_plan_value tells about */
    uint32_t values;
    int32_t workers;
    uint32_t late;          /* the first step that defines a data symbol; from it on, steps are bound while running */
    struct weft_control *control; /* [1, controls) */
    uint32_t controls, control_capacity;
    const struct weft_layout *param_layout, *return_layout; /* of a body: as the outer values lie; NULL at the top */
    int32_t inner_steps;    /* of all bodies */
};

/* --- plan.c, control.c -------------------------------------------------------------------------------------------- */

/* An empty plan that its caller holds, or NULL if memory is refused. */
struct weft_plan *weft_plan_new(struct weft_context *context, const struct weft_target *target);
/* All of a plan whose graph and workers are set. Under weft_protected. */
void weft_plan_build(struct weft_plan *plan, bool reference);
/* Homes and steps of a plan whose graph, target and, for a body, layouts are set. */
void weft_plan_fill(struct weft_plan *plan, bool reference);
/* An execution holds its plan, which goes with the last of them. Any thread. */
void weft_plan_hold(const struct weft_plan *plan);
void weft_plan_drop(const struct weft_plan *plan);
/* Plans the bodies of an `if` or `loop`: the number of the control. Operands and results have their homes. */
uint32_t weft_plan_add_control(struct weft_plan *plan, weft_node node);
/* Gives back what the bodies hold outside of the graph's arena. */
void weft_plan_drop_controls(struct weft_plan *plan);

/* --- constants.c -------------------------------------------------------------------------------------------------- */

/* Computes what constants alone decide, in the plan's graph and its bodies, where it pays: results add at most so many
 * bytes, 0: as many as the graph's constants have and 64 MiB; below 0: none. True if the graph changed. */
bool weft_plan_compute_constants(struct weft_plan *plan, int64_t most);
/* Gives back what that left behind, if memory was refused meanwhile. */
void weft_plan_drop_part(struct weft_plan *plan);

/* --- home.c ------------------------------------------------------------------------------------------------------- */

/* Zeroed memory that lives as long as the plan; its number. */
uint32_t weft_plan_add_pack(struct weft_plan *plan, size_t bytes);
/* Gives it back; its number stays. */
void weft_plan_drop_pack(struct weft_plan *plan, uint32_t pack);
/* Parameters, where the caller has them. */
void weft_home_params(struct weft_plan *plan);
/* Results, and whatever is computed in the memory of another value (sched/alias.h); `alone`: nothing is. Comes when
 * parameters have homes and nothing else has. */
void weft_home_results(struct weft_plan *plan, bool alone);
/* Which operands of a concat or an update, or whether the body of a padding, are where the result has them already, so
 * that there is nothing to copy: a flag each, or NULL if none is and for all other ops. */
const bool *weft_home_inside(const struct weft_plan *plan, weft_node n);
/* When all values have homes: which results are views of inputs or of other results, and need not be copied. */
void weft_home_share(struct weft_plan *plan);
void weft_home_constant(struct weft_plan *plan, weft_val v);
/* A constant that a step makes from another (load.c): a storage of its own, without data yet. */
void weft_home_loaded(struct weft_plan *plan, weft_val v);
/* The home of a view in its operand's storage; false: it must be copied. */
bool weft_home_view(struct weft_plan *plan, weft_node n, weft_val v);
void weft_home_set(struct weft_plan *plan, weft_val v, uint32_t storage, const struct weft_layout *layout);
void weft_home_block(struct weft_plan *plan, weft_val v);
/* A storage in the arena for the bodies of a control. */
uint32_t weft_home_room(struct weft_plan *plan, uint32_t control);

/* --- weights.c ---------------------------------------------------------------------------------------------------- */

/* Packs constant weights of a product or convolution: for the sizes of the hints, or if there is nothing to compute at
 * those, for larger ones. */
void weft_plan_pack_weights(struct weft_plan *plan, struct weft_step *step);
/* When all steps are there: copies constants that are read and cannot be read in place; gives back the pages of those
 * that are not. */
void weft_plan_settle_constants(struct weft_plan *plan);
/* When all else of the plan is there: gives up the memory of what passes computed, where it is only packed or was only
 * on the way. */
void weft_plan_give_up_constants(struct weft_plan *plan);
/* The elements of a constant, where they stay, at an address that suits their type. */
const void *weft_plan_keep_constant(struct weft_plan *plan, uint32_t storage);

/* --- load.c ------------------------------------------------------------------------------------------------------- */

/* Does the node only move elements of a constant, so that it may be done when the plan is made? Then its result has a
 * home, and there is no step to add. */
bool weft_plan_load(struct weft_plan *plan, weft_node node);
/* Does the step of a constant that one made. `data` has room for weft_plan_constant_bytes. */
void weft_plan_write_loaded(struct weft_plan *plan, const struct weft_storage *storage, void *data);
const char *weft_plan_load_kernel(const struct weft_plan *plan, const struct weft_step *step);
/* Bytes of a constant's storage. */
int64_t weft_plan_constant_bytes(const struct weft_plan *plan, const struct weft_storage *storage);

/* --- describe.c --------------------------------------------------------------------------------------------------- */

/* Bytes that steps write which only move elements, for the sizes of the frame: copies, operands of concats, what is
 * inside of a padding. Bodies of controls count for themselves. `bound`, by return slot: is a tensor bound to it? */
int64_t weft_plan_copied_bytes(const struct weft_plan *plan, const struct weft_frame *frame, const bool *bound);
/* Kernel and place right of `!`, for the sizes of the frame, and a remark for each step; also of bodies. `arena`: where
 * the plan's blocks begin in the arena. */
void weft_plan_annotate(struct weft_plan *plan, const struct weft_frame *frame, int64_t arena);
/* Texts and layouts of inputs and outputs. */
void weft_plan_describe(struct weft_plan *plan);

/* --- inspect.c ---------------------------------------------------------------------------------------------------- */

void weft_plan_list_values(struct weft_plan *plan); /* of weft_plan_value */
/* Counts what weft_plan_relayouts tells, for the sizes of the frame; bodies included. */
int32_t weft_plan_count_order_changes(const struct weft_plan *plan, const struct weft_frame *frame);

/* --- choice.c ----------------------------------------------------------------------------------------------------- */

/* The step of a node, of one of weft's kernels: made once, whoever asks. `kind` is NULL where none takes the node, and
 * `why` says why not. */
const struct weft_step *weft_plan_choice(struct weft_plan *plan, weft_node node);
/* What is known before a step is bound to sizes. */
struct weft_bind weft_plan_bind(const struct weft_plan *plan, const struct weft_step *step,
                                const struct weft_places *places, const int64_t *symbols);
/* Where the plan's values lie. */
struct weft_places weft_plan_places(const struct weft_plan *plan);
extern const struct weft_step_kind weft_step_if, weft_step_loop;

/* --- frame.c ------------------------------------------------------------------------------------------------------ */

struct weft_frame_step {
    int64_t out_offset, in_offset[WEFT_STEP_POINTERS]; /* bytes from the storages' bases */
    int32_t parts;
};
/* A control while it runs. Worker 0 writes, the others read behind a barrier. */
struct weft_frame_control {
    struct weft_frame *body[2];
    int64_t arena;              /* bytes from the room to the arena of the body */
    int64_t trip, trips;
    uint32_t chosen;            /* which body */
    bool result_first;          /* trip 0 writes to the results themselves, and not to the second places */
    bool goes_on;
};
/* Everything that depends on sizes; one block of memory, and one for each body. */
struct weft_frame {
    size_t bytes;
    uint64_t used;              /* for replacing the one that was not used for longest */
    int64_t *symbols;           /* when inputs are bound; data symbols at their bounds */
    int64_t *live;              /* the same, with what data symbols turned out to be in the current run */
    struct weft_tensor *tensor; /* by value id; data NULL; strides in its storage */
    int64_t *offset;            /* by value id: elements from the base of its storage */
    int64_t *place;             /* by storage: bytes in the arena */
    struct weft_frame_step *step;
    char *descriptors;
    int64_t arena_bytes;
    size_t scratch_bytes;       /* per worker */
    int32_t most_parts;         /* of any step: more workers would stand about */
    weft_val too_large;         /* a value whose bytes no memory has, or none; then the frame is not fit to run */
    size_t shared_bytes;        /* for all workers together */
    struct weft_frame_control *control;
    void **base;                /* of a body: by storage */
};
/* A value's sizes, for these symbol values. */
struct weft_tensor weft_home_tensor(const struct weft_plan *plan, weft_val v, const int64_t *symbols);
/* Sizes a step's values and binds it again, for the frame's live symbols. */
void weft_frame_rebind(const struct weft_plan *plan, struct weft_frame *frame, uint32_t step);
/* The same for all steps of a body. */
void weft_frame_rebind_all(const struct weft_plan *plan, struct weft_frame *frame);
/* Where block i of the arena begins, the first byte of which is at `arena`. */
void *weft_frame_block(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i, char *arena);
/* Does the last element lie where memory can be, counted from where the storage begins? */
bool weft_frame_fits(const struct weft_tensor *tensor, int64_t offset);
/* A frame for these symbol values, or NULL if memory is refused. `live`: of a body, the outer frame's, else NULL. */
struct weft_frame *weft_frame_new(const struct weft_plan *plan, const int64_t *symbols, int64_t *live);
/* control_frame.c: frames of all bodies; false if memory is refused. */
bool weft_control_open(const struct weft_plan *plan, struct weft_frame *frame);
void weft_control_close(const struct weft_plan *plan, struct weft_frame *frame);
/* Bytes of a control's room. Results and bodies are sized. */
int64_t weft_control_bytes(const struct weft_plan *plan, struct weft_frame *frame, uint32_t control);
/* Of carried value i: bytes from the room to its second place. */
int64_t weft_control_place(const struct weft_plan *plan, const struct weft_frame *frame, const struct weft_step *step,
                           uint32_t i);
/* What the bodies of a step need while they run; `again`: after sizing and binding them anew. */
void weft_control_bind(const struct weft_plan *plan, struct weft_frame *frame, uint32_t step, bool again);
/* Bytes of a block of the arena. */
int64_t weft_frame_block_bytes(const struct weft_plan *plan, struct weft_frame *frame, uint32_t storage);
/* Elements from the first to the last, or 0 if there are none. */
int64_t weft_tensor_span(const struct weft_tensor *tensor);
void weft_frame_free(const struct weft_plan *plan, struct weft_frame *frame);
static inline const void *weft_frame_descriptor(const struct weft_frame *frame, const struct weft_step *step)
{
    return frame->descriptors + step->descriptor;
}

/* --- bind.c, run.c ------------------------------------------------------------------------------------------------ */

#define WEFT_FRAMES 8
#define WEFT_MOST_INNER_STEPS 64

/* A step of a body that the evaluator or a plain kernel computes, and its time in all trips of the last timed run. */
struct weft_inner_step {
    const char *kernel, *value;
    int64_t ns;
};

struct weft_execution {
    const struct weft_plan *plan;
    struct weft_tensor *input, *output; /* bound; data NULL: not bound */
    struct weft_tensor *result;         /* of the last run: output, with the extents that came out of data */
    bool *output_bound;
    struct weft_frame *frame;           /* of the current sizes, or NULL */
    struct weft_frame *cache[WEFT_FRAMES];
    uint64_t clock;
    int64_t *symbols;
    void **base;                        /* by storage */
    struct weft_pack arena, scratch, *own; /* own: results that the caller does not give memory for */
    bool ran, poison;
    _Atomic bool cancelled;             /* weft_cancel asks for it, a run that has ended forgets it */
    int64_t total_ns, fallback_ns, plain_ns, relayout_ns;
    struct weft_inner_step inner_step[WEFT_MOST_INNER_STEPS]; /* the first so many */
    uint32_t inner_steps;
    char error[512];
};

struct weft_run {
    struct weft_execution *execution;
    struct weft_barrier barrier;
    _Atomic bool failed;        /* or cancelled: see weft_run_stopped */
    struct weft_failure failure;
    int64_t *ns;                /* per step, or NULL: not timed */
};
/* Is what is left of the run to be left out? Asked before each part of a step. What was left out is read by nothing:
 * who would read it comes behind a barrier, and is told the same there. */
static inline bool weft_run_stopped(const struct weft_run *run)
{
    return atomic_load_explicit(&run->failed, memory_order_relaxed) ||
           atomic_load_explicit(&run->execution->cancelled, memory_order_relaxed);
}
/* A plan or a body while it runs. */
struct weft_scope {
    const struct weft_plan *plan;
    struct weft_frame *frame;
    void **base;                /* by storage */
};
/* One of the workers that walk through the steps. `alone`: the others wait elsewhere, or there are none; `forks`: each
 * step is a fork of its own. */
struct weft_walker {
    struct weft_run *run;
    int worker, workers;
    bool alone, forks;
};
static inline void weft_walker_meet(const struct weft_walker *walker)
{
    if (!walker->alone)
        weft_barrier_wait(&walker->run->barrier);
}
void weft_walk_steps(const struct weft_walker *walker, const struct weft_scope *scope);
/* poison.c: does WEFT_DEBUG ask for it; the execution's own results; the blocks that live from this step on, or until
 * it. */
bool weft_poison_asked(void);
void weft_poison_results(struct weft_execution *execution);
void weft_poison_blocks(const struct weft_scope *scope, uint32_t step, bool after);
/* control_run.c: runs the bodies of a step. */
void weft_run_control(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t step);

/* Sets the execution's message and returns the status. */
int weft_execution_fail(struct weft_execution *e, int status, const char *format, ...) WEFT_PRINTF(3, 4);
/* Makes the memory hold at least so many bytes; what it held is lost if it grows. */
bool weft_execution_reserve(struct weft_execution *e, struct weft_pack *pack, size_t bytes);
/* Scratch memory for a frame: first what all workers share, beginning with zeros, then what each has for itself. */
bool weft_execution_reserve_scratch(struct weft_execution *e, const struct weft_frame *frame);
/* The tensor that a parameter's or result's storage stands for, without data. */
void weft_execution_port(const struct weft_execution *e, const struct weft_storage *storage, const int64_t *symbols,
                         struct weft_tensor *ret);
/* Solves the symbols, checks all bindings, reserves memory for new sizes; with sizes seen before, it only looks up. */
int weft_execution_prepare(struct weft_execution *e);

#endif
