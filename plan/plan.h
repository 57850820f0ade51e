/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: what will run, and where everything lies.
 *
 *   graph ──plan.c──► homes (where each value lies), steps (which kernel computes it)     immutable, for all threads
 *         ──frame.c─► for one tuple of sizes: extents, strides, arena offsets, descriptors  cached per execution
 *
 * A storage is memory with one base pointer: a parameter, a result, a constant, a block of the arena. A value's home is
 * a storage and a layout in it; a view has its operand's storage and another layout. No pointer is bound here: that and
 * running is runtime/. */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include "ir/ir.h"
#include "kernels/kernels.h"
#include "sched/alias.h"
#include "sched/prices.h"
#include "sched/select.h"
#include "sched/unit.h"

struct weft_execution;
struct weft_stored;      /* plan/stored.h */
struct weft_stored_pack;
struct weft_tiers; /* plan/tiers.h */

/* --- plan.c ------------------------------------------------------------------------------------------------------- */

/* ROW: what a trip of a loop reads of a parameter of its body (trip.c). */
enum weft_storage_kind {
    WEFT_IN_NONE, WEFT_IN_PARAM, WEFT_IN_RETURN, WEFT_IN_CONSTANT, WEFT_IN_ARENA, WEFT_IN_ROW,
};
struct weft_storage {
    uint8_t kind;
    uint8_t dtype;
    uint32_t index;         /* of the parameter, also of one that rows are taken from; return slot; constant */
    weft_val value;         /* whose type and layout say its size */
    int32_t first, last;    /* steps between which it must live (arena) */
    bool splat;             /* a constant of one element for all indices */
    uint8_t axis;           /* of rows: along which trips go, */
    bool from_end;          /* from its last row to the first */
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
    bool split;             /* in blocks, and the strides may say nothing: for kernels of the caller's, and relayouts */
};

struct weft_pack {          /* memory of the plan: copied, generated or packed constants */
    void *data;
    size_t bytes;
    const struct weft_packing *packing; /* of packed weights: for whom; or NULL */
    struct weft_shared_pack *shared;    /* the memory is this one's, of several plans perhaps; or NULL */
    uint32_t by_execution;  /* of weights of a static input: number of the static pack + 1, and no data here; or 0 */
};

/* Weights that each execution packs, when the elements of a static input are others than before. */
struct weft_static_pack {
    const struct weft_step_kind *kind; /* whose write_pack does it */
    struct weft_step_pack how;
    weft_val weights;       /* the input or a view of it, */
    uint32_t input;         /* the number of the input, */
    uint32_t storage;       /* where it lies */
    int64_t offset;         /* elements from there to the first one of the weights */
    uint32_t pack;          /* of the plan: who reads it names that */
};

/* The address of an input. */
struct weft_assumed {
    uint32_t align;         /* bytes, as the plan takes it to be, beyond what the graph promises; or 0 */
    uint32_t promised;      /* by the graph or by the caller: a buffer that is not so is refused */
    bool staged;            /* one that is not aligned as assumed is copied in each run */
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

/* Of the body of a loop: what its trips do in place (trip.c). */
struct weft_trip {
    uint32_t carried;
    bool collects;          /* so that there are at most */
    weft_dim length;        /* trips */
    uint32_t first_row, end_row; /* the storages of rows follow each other */
    bool *in_place;         /* by node id: it needs no step, since a row is read where it lies */
    uint32_t *twin;         /* by return slot: where it lies; of a carried value perhaps the slot of a collected one */
};

struct weft_plan {
    struct weft_context *context;
    _Atomic uint32_t holds;       /* the caller's, until weft_plan_destroy, and one of each execution */
    _Atomic bool destroyed;       /* the caller's is given up */
    _Atomic int32_t runs;         /* up to the one that starts compilers */
    struct weft_pack temporary;   /* a constant on its way into a pack; while planning only */
    struct weft_plan *part;       /* computes constants, with its execution (constants.c); while planning only */
    struct weft_execution *part_run;
    struct weft_graph *known;     /* what constants alone decide, copied, where it takes several parts to compute it */
    const int64_t *hint;          /* by symbol: the sizes that the hints give */
    struct weft_frame *hinted;    /* for these sizes; while planning only */
    struct weft_assumed *assumed; /* by parameter (runtime/stage.c); NULL: of bodies, and of what constants decide */
    const char **input_text, **output_text;
    const char **input_name, **output_name; /* of the graph that was compiled; NULL: without, and of bodies */
    const char **label;           /* names of values, by id */
    struct weft_graph *graph;
    struct weft_units units;      /* of the graph, in the order in which they run */
    struct weft_target target;
    struct weft_storage *storage; /* [1, storages) */
    struct weft_home *home;       /* by value id */
    const struct weft_layout *row_major[WEFT_MAX_RANK + 1]; /* by rank, once a value has it */
    struct weft_step *step;
    struct weft_pack *pack;       /* [1, packs) */
    struct weft_static_pack *static_pack; /* [0, static_packs) */
    struct weft_step *load;       /* [1, loads): relayouts of constants, done already */
    const struct weft_step **choice; /* by node id: what was chosen, or NULL as long as nobody asked */
    uint32_t storages, steps, packs, loads;
    uint32_t storage_capacity, step_capacity, pack_capacity, load_capacity;
    uint32_t static_packs, static_pack_capacity;
    bool *read_by_callers;        /* by value id, of plans for a target of the caller's: by its kernels */
    uint32_t *param_storage, *return_storage; /* by parameter, by return slot */
    struct weft_aliases alias;    /* what is computed in the memory of others */
    bool keeps_constants;   /* none are given up */
    const struct weft_stored *stored; /* packs of an earlier process; while planning only, or NULL */
    bool was_stored;        /* the plan is that of an earlier process, or of this one, from its file */
    const char *why_not_stored; /* NULL: nobody asked */
    struct weft_prices prices; /* the target's as they were; a target of the caller's may go before the plan */
    uint32_t pick;          /* which choice every node takes, from 0, or its last: WEFT_CHOICE */
    bool share;             /* results may be views of what the caller has already */
    bool *shared;           /* by return slot: it is one, unless a tensor is bound to it */
    size_t descriptor_bytes;
    int64_t constant_bytes;
    struct weft_plan_step *told_step;   /* by step, and blocks of the arena (memory.c); NULL: of a body */
    const char ***told_layout;          /* by step: layouts of what it reads, then of what it writes */
    const char *told_row_major[WEFT_MAX_RANK + 1];
    int64_t *told_place;                /* by storage: where it lies in the arena */
    struct weft_plan_block *told_block;
    int64_t arena_bytes;    /* for sizes at their hints */
    const uint32_t *place_order; /* of storages: placed so, they took the smallest arena at the hints; NULL: unknown */
    uint32_t told_blocks;
    int32_t relayouts, fallbacks;
    int32_t kernel_units;         /* units that a kernel or the evaluator computes in a run; of those the ones */
    int32_t unexpected_units;     /* that do something else than was recorded when layouts were chosen */
    bool has_records;             /* were layouts chosen? */
    int32_t order_changes;        /* weft_plan_relayouts */
    weft_val *value;              /* those that weft_plan_value tells about */
    uint32_t values;
    int32_t workers;
    uint32_t late;          /* the first step that defines a data symbol; from it on, steps are bound while running */
    bool compiles;                /* may groups have compiled code? */
    struct weft_tiers *tiers;     /* compiled code for groups; NULL: there are none, or none may have it */
    struct weft_control *control; /* [1, controls) */
    uint32_t controls, control_capacity;
    const struct weft_layout *param_layout, *return_layout; /* of a body: as the outer values lie; NULL at the top */
    bool *chosen;           /* by node id: a gather whose matrices are read where they lie (chosen.c); NULL: none */
    struct weft_trip *trip; /* of the body of a loop; NULL: of others */
    int32_t inner_steps;    /* of all bodies */
};

/* --- faults.c ----------------------------------------------------------------------------------------------------- */

/* Records an error for each value that plans do not store as its layout says, and for each group of several nodes,
 * which no kernel computes yet: of a graph and of the bodies that its nodes run. True if there is none. */
bool weft_plan_check(const struct weft_graph *graph, const struct weft_target *target, const int64_t *symbols);

/* --- own.c: kernels of the caller's target ------------------------------------------------------------------------ */

/* Where no pass chose: names the target's cheapest kernel of those that take each node as it lies. Also in bodies. */
void weft_own_take(struct weft_graph *graph, const struct weft_target *target);
/* Relayouts in front of kernels whose operands would be views or constants of one element, not what they ask for. */
void weft_own_convert(struct weft_graph *graph, const struct weft_target *target);
/* Records an error for each array that is not as a kernel asks, and for each node that the target may not leave to
 * others. Of one plan, without bodies; all values have homes. */
void weft_own_check(struct weft_plan *plan);
/* The first kernel that cannot be run, and the name of what it computes; NULL: all can. Bodies included. */
const char *weft_own_without_run(const struct weft_plan *plan, const char **ret_where);

/* --- plan.c, control.c -------------------------------------------------------------------------------------------- */

/* Which choice WEFT_CHOICE names, from 0; from 1 on groups are opened, whose nodes are another choice one by one. */
uint32_t weft_plan_read_pick(void);
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

/* --- trip.c ------------------------------------------------------------------------------------------------------- */

/* Gives the rows that are read in place their homes, and remembers which nodes need no step; of bodies of loops. When
 * parameters have homes and nothing else has. */
void weft_trip_find_rows(struct weft_plan *plan);
/* Decides which carried values are read where they are collected. */
void weft_trip_find_twins(struct weft_plan *plan);
/* Is what is returned in slot i written already, as an earlier slot's? */
bool weft_trip_is_written(const struct weft_plan *plan, uint32_t i);

/* --- chosen.c ----------------------------------------------------------------------------------------------------- */

/* Finds the gathers whose matrices products read where they lie; units are found, and only parameters have homes. */
void weft_chosen_find(struct weft_plan *plan);
/* Is the node one of them? Then its result gets its home, and there is no step to add. */
bool weft_chosen_place_matrices(struct weft_plan *plan, weft_node node);
/* The step of a product that reads such matrices; NULL: it reads none. */
const struct weft_step *weft_chosen_step(struct weft_plan *plan, weft_node node);

/* --- shared.c ----------------------------------------------------------------------------------------------------- */

/* A pack that is written and stays as it is: if another plan of the context has an equal one, that takes its place. */
void weft_plan_share_pack(struct weft_plan *plan, uint32_t pack);
/* A pack that an earlier process has written; its number. */
uint32_t weft_plan_adopt_pack(struct weft_plan *plan, struct weft_stored_pack *stored);
/* Is the pack a file of the context's folder? Then the hash is its name's. */
bool weft_plan_pack_file(const struct weft_pack *pack, char ret_hash[33]);
/* Gives a pack of a plan's back. Any thread. */
void weft_plan_free_pack(struct weft_context *context, struct weft_pack *pack);
/* Bytes of packs that other plans have too, at this moment; bodies included. */
int64_t weft_plan_shared_bytes(const struct weft_plan *plan);
/* Bytes of packs that are mapped from files; bodies included. */
int64_t weft_plan_mapped_bytes(const struct weft_plan *plan);
/* When no plan is left. */
void weft_shared_packs_close(struct weft_context *context);

/* --- home.c ------------------------------------------------------------------------------------------------------- */

/* Memory that lives as long as the plan; its number. */
uint32_t weft_plan_add_pack(struct weft_plan *plan, size_t bytes);
/* The same for memory that other plans may have too, of which a reference becomes the plan's. */
uint32_t weft_plan_add_shared(struct weft_plan *plan, struct weft_shared_pack *shared, void *data, size_t bytes);
/* Gives it back; its number stays. */
void weft_plan_drop_pack(struct weft_plan *plan, uint32_t pack);
/* Parameters, where the caller has them. */
void weft_home_params(struct weft_plan *plan);
/* Results, and whatever is computed in the memory of another value (sched/alias.h); `alone`: nothing is. Comes when
 * parameters have homes and nothing else has. Units are moved for it, and stand fast from then on. */
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
/* Are its offset and strides the same for all sizes? */
bool weft_home_is_fixed(const struct weft_plan *plan, weft_val v);
void weft_home_set(struct weft_plan *plan, weft_val v, uint32_t storage, const struct weft_layout *layout);
void weft_home_block(struct weft_plan *plan, weft_val v);
/* A storage for the rows of a parameter. */
uint32_t weft_home_row(struct weft_plan *plan, struct weft_storage storage);
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

/* --- static.c ----------------------------------------------------------------------------------------------------- */

/* Decides whether and how each execution packs operand 1 of a product or convolution: if it is the elements of a static
 * input. False: not. */
bool weft_plan_pack_static(struct weft_plan *plan, struct weft_step *step);

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
/* What remarks and profiles call a step: the value that its unit is called by; the value that is copied at the end. */
const char *weft_plan_step_name(const struct weft_plan *plan, const struct weft_step *step);
/* Texts and layouts of inputs and outputs. */
void weft_plan_describe(struct weft_plan *plan);

/* --- inspect.c ---------------------------------------------------------------------------------------------------- */

void weft_plan_list_values(struct weft_plan *plan); /* of weft_plan_value */
enum { WEFT_MOST_TURNED = 64 };
/* Operands that a step reads in another order than it writes its result; bodies aside. Returns their number; only the
 * first WEFT_MOST_TURNED are listed. */
uint32_t weft_plan_list_turned(const struct weft_plan *plan, const struct weft_frame *frame,
                               const struct weft_step *step, weft_val ret[WEFT_MOST_TURNED]);
/* memory.c: keeps what weft_plan_step and weft_plan_block tell. Under weft_protected. */
void weft_plan_keep_memory(struct weft_plan *plan, const struct weft_frame *frame);
/* Counts what weft_plan_relayouts tells, for the sizes of the frame; bodies included. */
int32_t weft_plan_count_order_changes(const struct weft_plan *plan, const struct weft_frame *frame);

/* --- stats.c ------------------------------------------------------------------------------------------------------ */

/* What units read, write and compute for the sizes of the hints, a line each; the sum; and the sum of a plan without
 * groups of the same graph. Under weft_protected. */
void weft_plan_print_stats(struct weft_plan *plan, struct weft_plan *unfused, struct weft_text *text);
/* What one unit of the plan's own graph (bodies count for themselves) moves and computes. Its steps stand together:
 * `steps` of them from `step` on. */
struct weft_unit_counts {
    uint32_t step, steps;
    int64_t read, written;  /* bytes, as weft_plan_print_stats counts them */
    int64_t flops;
};
/* Both products of an attention. */
double weft_attention_flops(const struct weft_tensor *q, const struct weft_tensor *k, const struct weft_tensor *out);
/* The five products of its gradient; y is what it gave. */
double weft_attention_grad_flops(const struct weft_tensor *q, const struct weft_tensor *k, const struct weft_tensor *y);
/* All units for the sizes of these symbols (NULL: at their hints), in order of the steps, in memory of the arena's;
 * what `ret_count` says how many of. Under weft_protected. */
const struct weft_unit_counts *weft_plan_count_units(struct weft_plan *plan, const int64_t *symbols,
                                                     struct weft_arena *arena, uint32_t *ret_count);

/* --- choice.c ----------------------------------------------------------------------------------------------------- */

/* The step that computes a node: the one that was recorded when layouts were chosen, else one that is made once,
 * whoever asks. Of nodes that no kernel takes it evaluates. */
const struct weft_step *weft_plan_choice(struct weft_plan *plan, weft_node node);
/* All ways to compute a unit whose values have homes, best first, or NULL: what custom functions and bodies compute has
 * none. In memory of the arena's. */
const struct weft_choices *weft_plan_list_choices(const struct weft_plan *plan, const struct weft_unit *unit,
                                                  struct weft_arena *arena);
/* The one of a list that a plan takes: the first, or the one that WEFT_CHOICE names. */
const struct weft_choice *weft_plan_picked(const struct weft_plan *plan, const struct weft_choices *list);
/* The same, as a step of the unit. */
const struct weft_step *weft_plan_pick(struct weft_plan *plan, const struct weft_unit *unit);
/* Does a bound step do what was recorded when layouts were chosen: the same kernel, which rounds in the same way, with
 * weights packed the same? NULL: yes; else the kernel of the record, or "" if there is no record. */
const char *weft_plan_expected(const struct weft_plan *plan, const struct weft_step *step, const void *descriptor);
/* The plan, or the one of a body in it, that a graph belongs to. */
const struct weft_plan *weft_plan_of(const struct weft_plan *plan, const struct weft_graph *graph);
/* What is known before a step is bound to sizes. */
struct weft_bind weft_plan_bind(const struct weft_plan *plan, const struct weft_step *step,
                                const struct weft_places *places, const int64_t *symbols);
/* Where the plan's values lie. */
struct weft_places weft_plan_places(const struct weft_plan *plan);
/* For questions about kernels, sizes at their hints, where the plan's values lie. */
struct weft_select weft_plan_select(const struct weft_plan *plan, const struct weft_places *places,
                                    struct weft_arena *arena);
extern const struct weft_step_kind weft_step_if, weft_step_loop;

/* --- frame.c ------------------------------------------------------------------------------------------------------ */

enum weft_behind { WEFT_BEHIND_ASK, WEFT_BEHIND_MEET, WEFT_BEHIND_GO_ON };
struct weft_frame_step {
    int64_t out_offset, in_offset[WEFT_STEP_POINTERS]; /* bytes from the storages' bases */
    int32_t parts;
    int32_t first;              /* where there are no more parts than workers: who does part 0; others follow */
    _Atomic int32_t taken;      /* of more parts than workers: those that are done in this run, or being done */
    uint8_t behind;             /* enum weft_behind: do all workers meet behind it? ASK: weft_frame_meets knows */
    bool shares;                /* its parts have memory in common */
};
/* A trip of a loop: worker 0 writes it while others are still in the one before; even trips have one, odd ones the
 * other. Where the trip's values are: the same of weft_frame.base. */
struct weft_frame_trip {
    int64_t number;
    bool happens;
};
/* A control while it runs. Worker 0 writes, the others read behind a barrier. */
struct weft_frame_control {
    struct weft_frame *body[2];
    int64_t arena;              /* bytes from the room to the arena of the body */
    int64_t trips;              /* at most */
    struct weft_frame_trip trip[2];
    uint32_t chosen;            /* which body */
    bool result_first;          /* trip 0 writes to the results themselves, and not to the second places */
};
/* How long runs take, for runtime/pace.c. All zero: nothing is known. */
struct weft_pace {
    int64_t least_ns, last_ns;  /* of runs by all workers */
    int64_t alone_ns;           /* the mean of the runs by one worker since the last one by all */
    int32_t alone, next;        /* runs that one worker has yet to do; how many it was given. 0: none */
    int32_t rest, last_rest;    /* runs by all until one worker may be tried again; how many it was last time */
    bool slow;                  /* the last run by all was */
};
/* Everything that depends on sizes; one block of memory, and one for each body. */
struct weft_frame {
    size_t bytes;
    struct weft_pace pace;
    uint64_t used;              /* for replacing the one that was not used for longest */
    int64_t *symbols;           /* when inputs are bound; data symbols at their bounds */
    int64_t *live;              /* the same, with what data symbols turned out to be in the current run */
    struct weft_tensor *tensor; /* by value id; data NULL; strides in its storage */
    int64_t *offset;            /* by value id: elements from the base of its storage */
    int64_t *place, *room;      /* by storage: where it lies in the arena, and how long it is, in bytes */
    struct weft_frame_step *step;
    _Atomic int32_t *share;     /* [worker][step]: of the parts that are the worker's, those that were taken (run.c) */
    char *descriptors;
    int64_t arena_bytes;
    size_t scratch_bytes;       /* per worker */
    int32_t most_parts;         /* of any step: more workers would stand about */
    weft_val too_large;         /* a value whose bytes no memory has, or none; then the frame is not fit to run */
    size_t shared_bytes;        /* for all workers together */
    struct weft_frame_control *control;
    void **base[2];             /* of a body: by storage; of a loop's in even trips, and in odd ones */
};
/* The most bytes of the arena that are alive at one step: what arena_bytes cannot be less than. */
int64_t weft_frame_live_bytes(const struct weft_plan *plan, struct weft_frame *frame, struct weft_arena *arena);
/* meetings.c: decides behind which steps of a plan, not of a body, all workers meet; steps are bound and placed. */
void weft_frame_plan_meetings(const struct weft_plan *plan, struct weft_frame *frame);
/* Do all workers meet behind this step? Not behind the last one. Steps from plan->late on have meetings of their own.
 */
static inline bool weft_frame_meets(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t step)
{
    if (step + 1 >= plan->steps || step + 1 >= plan->late)
        return false;
    const struct weft_frame_step *const bound = &frame->step[step];
    return bound->behind == WEFT_BEHIND_MEET ||
           (bound->behind == WEFT_BEHIND_ASK && (bound[0].parts > 1 || bound[1].parts > 1));
}
/* A value's sizes, for these symbol values. */
struct weft_tensor weft_home_tensor(const struct weft_plan *plan, weft_val v, const int64_t *symbols);
/* The same of a value that may be stored in blocks. */
struct weft_kernel_array weft_home_array(const struct weft_plan *plan, weft_val v, const int64_t *symbols);
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
/* Of a frame for the hints, while planning: places blocks anew with more effort than a run would wait for, and keeps
 * their order in the plan, where frames for other sizes begin. False: out of memory. */
bool weft_frame_keep_order(struct weft_plan *plan, struct weft_frame *frame);
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
void weft_frame_free(const struct weft_plan *plan, struct weft_frame *frame);
static inline const void *weft_frame_descriptor(const struct weft_frame *frame, const struct weft_step *step)
{
    return frame->descriptors + step->descriptor;
}

#endif
