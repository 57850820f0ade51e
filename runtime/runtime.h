/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h: contexts and workers, and how plans run.
 *
 *   graph ──compile.c──► plan (plan/plan.h)
 *   plan  ──bind.c─────► base pointers of the storages, a frame for the sizes at hand
 *         ──run.c──────► step after step on a gang of workers */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include "plan/plan.h"

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

/* Runs fn(arg, i, n) for all i in [0, n) at the same time and returns when all have returned; n is at most `workers`
 * and the context's threads, and is what the executor really gave. A gang that is busy with another run gives n = 1.
 * Those n may meet at the context's barrier, each as often as all others. */
void weft_gang_run(struct weft_context *context, int workers, void (*fn)(void *arg, int i, int n), void *arg);
/* pace.c: by how many of `workers` the next run of a frame is to be done, 1 or all; and what a run took, with by how
 * many it was to be done. A run has the same bits by any number of workers. */
int weft_pace_workers(const struct weft_pace *pace, int workers);
void weft_pace_tell(struct weft_pace *pace, int workers, int64_t ns);

/* --- barrier.c ---------------------------------------------------------------------------------------------------- */

/* For at most so many workers; NULL if memory is refused. */
struct weft_barrier *weft_barrier_new(const struct weft_allocator *allocator, int workers);
void weft_barrier_free(const struct weft_allocator *allocator, struct weft_barrier *barrier);
/* For a gang of so many, before any of them waits; `generation` tells processes apart that come from forks. */
void weft_barrier_open(struct weft_barrier *barrier, int workers, uint32_t generation);
/* As if the gang had met so often; nobody waits. */
void weft_barrier_number(struct weft_barrier *barrier, uint32_t meeting);
/* Returns when all workers of the gang have called it. Spins for at most 300 us, then sleeps in the kernel. */
void weft_barrier_wait(struct weft_barrier *barrier, int worker, int workers);

/* --- constants.c -------------------------------------------------------------------------------------------------- */

/* Computes what constants alone decide, in the plan's graph and its bodies, where it pays: results add at most so many
 * bytes, 0: as many as the graph's constants have and 64 MiB; below 0: none. True if the graph changed. */
bool weft_plan_compute_constants(struct weft_plan *plan, int64_t most);
/* Gives back what that left behind, if memory was refused meanwhile. */
void weft_plan_drop_known(struct weft_plan *plan);

/* --- names.c ------------------------------------------------------------------------------------------------------ */

/* What inputs and outputs of the graph that is compiled are called; before passes. Under weft_protected. */
void weft_plan_keep_names(struct weft_plan *plan, const struct weft_graph *source);

/* --- stage.c ------------------------------------------------------------------------------------------------------ */

/* Before passes, which then know of inputs that are aligned: false, with an error, if the options are wrong. Behind
 * them: inputs that nobody reads any more are not copied, and of the others there are remarks. Under weft_protected. */
bool weft_plan_assume_aligned(struct weft_plan *plan, const struct weft_compile_options *options);
void weft_plan_settle_aligned(struct weft_plan *plan);
/* The base of input i: the caller's buffer, or memory for its copy. */
int weft_stage_place(struct weft_execution *e, uint32_t i);
/* Copies before a run; after a successful one, mutable inputs back, and results in a copy become the caller's
 * memory. */
void weft_stage_in(const struct weft_execution *e);
void weft_stage_back(struct weft_execution *e);
/* How many inputs each run copies as they are bound, and how many bytes in all. */
int32_t weft_stage_count(const struct weft_execution *e, int64_t *ret_bytes);

/* --- refresh.c ---------------------------------------------------------------------------------------------------- */

/* If input i is static, the next run packs it anew. */
void weft_refresh_input(struct weft_execution *e, uint32_t i);
/* Packs what is stale; all is in its place. */
int weft_refresh_packs(struct weft_execution *e);
/* Bytes of all packs. */
int64_t weft_refresh_bytes(const struct weft_execution *e);

/* --- overlap.c ---------------------------------------------------------------------------------------------------- */

/* How many bytes each bound tensor takes; when extents or strides are new. */
void weft_overlap_measure(struct weft_execution *e);
/* WEFT_ERR_BINDING, with a message, if what is bound overlaps where it may not. */
int weft_overlap_check(struct weft_execution *e);

/* --- bind.c, run.c ------------------------------------------------------------------------------------------------ */

#define WEFT_FRAMES 8
#define WEFT_MOST_INNER_STEPS 64
#define WEFT_SPARE_BYTES 64

/* A step of a body that the evaluator or a plain kernel computes, and its time in all trips of the last timed run. */
struct weft_inner_step {
    const char *kernel, *value;
    int64_t ns;
};

/* From the first byte to behind the last. Of what is empty or not bound, `first` is behind `end`, so that nothing
 * overlaps it. */
struct weft_span {
    uintptr_t first, end;
    int64_t bytes;
    uint32_t align;                     /* what the address is promised to be a multiple of, or 0 */
};

struct weft_execution {
    const struct weft_plan *plan;
    struct weft_tensor *input, *output; /* bound; data NULL: not bound */
    struct weft_tensor *result;         /* of the last run: output, with the extents that came out of data */
    bool *output_bound;
    struct weft_span *span;             /* of the inputs, then of the outputs: overlap.c */
    struct weft_frame *frame;           /* of the current sizes, or NULL */
    bool moved;                         /* the sizes are those of the frame, but something is bound elsewhere */
    struct weft_frame *cache[WEFT_FRAMES];
    uint64_t clock;
    int64_t *symbols;
    void **base;                        /* by storage */
    struct weft_pack arena;             /* WEFT_SPARE_BYTES more than the frame asks for, so never of 0 bytes */
    struct weft_pack scratch, *own;     /* own: results that the caller does not give memory for */
    struct weft_pack *stage;            /* by input: for a copy at an aligned address */
    struct weft_pack *packed;           /* of the plan's static packs */
    bool *stale, is_stale;              /* by input: its packs are of other elements; any of them */
    int64_t static_packs;               /* how many were made */
    bool ran, poison;
    _Atomic bool cancelled;             /* weft_cancel asks for it, a run that has ended forgets it */
    int64_t total_ns, fallback_ns, plain_ns, relayout_ns;
    struct weft_inner_step inner_step[WEFT_MOST_INNER_STEPS]; /* the first so many */
    uint32_t inner_steps;
    char error[512];
};

struct weft_run {
    struct weft_execution *execution;
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
        weft_barrier_wait(walker->run->execution->plan->context->barrier, walker->worker, walker->workers);
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
/* For a frame that is prepared, when something of the same extents and strides is bound at another address. */
int weft_execution_move(struct weft_execution *e);
/* What messages call a value: its name, or the number that the planned graph prints, in `number`. */
const char *weft_execution_name(const struct weft_execution *e, weft_val v, char number[16]);

#endif
