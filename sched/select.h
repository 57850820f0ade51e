/* SPDX-License-Identifier: Apache-2.0 */
/* select.h: in which ways a unit can be computed, best first. A group has one way, a strip program (schedule_group.c),
 * or those of the contraction that it finishes (epilogue.h).
 *
 *   schedulers.def ──► scheduler of the op ──choose──► the kind of step that takes the node, at a CPU level
 *                                                          │ kind->bind, sizes at their hints, once for each form that
 *                                                          ▼ the kernel has: what prepare makes of it is the choice
 *                                                      list of choices, kept
 *
 *   %y = conv %x, %w          1  weft_conv_f32_phases__avx512    one chain  104 us   packs 1.7 kB, scratch 70 kB
 *   f32[1,16,120,160], 3x3    2  weft_conv_f32_columns__avx512   one chain  153 us   packs 1.7 kB, scratch 7 kB
 *   at steps of 2             3  weft_conv_f32_direct__avx512    one chain  183 us   packs 1.8 kB, scratch 275 kB
 *                             …
 *                             8  weft_reference                  evaluator  5.8 ms
 *
 * The first is what a kernel family chooses by itself; then come its other forms and lower CPU levels by predicted
 * time, then plain loops, and at last the reference evaluator, which takes everything: no list is empty. Where parts of
 * a result are in their places already, there is one choice: another would copy them upon themselves. What is bound
 * when a plan runs is bound by the same code from the same step, so what is listed is what would run.
 *
 * The search for layouts asks for the first choice with values where it puts them and leaves it in the graph
 * (weft_node_info.choices), from which an edit of the node takes it away. A plan computes the node by that step, and
 * compares kernel, signature and packing when it binds it where values lie in the end (plan/describe.c): padded rows,
 * places inside of other values and the caller's strides come later. Lists are made when somebody asks: the planner
 * needs the first alone. */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include "sched/pins.h"
#include "sched/step.h"
#include "sched/unit.h"

struct weft_formats;
struct weft_members;
struct weft_group_fit; /* sched/epilogue.h */

/* --- what is asked ------------------------------------------------------------------------------------------------ */

struct weft_select {
    const struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_arena *arena;          /* of what is answered */
    const struct weft_places *places;  /* where values lie */
    const int64_t *symbols;            /* sizes: those of the hints (weft_hint_symbols) */
    int workers;
    const bool *inside;                /* parts that are in their places already (weft_step_sink), or NULL */
};

/* --- what is answered --------------------------------------------------------------------------------------------- */

/* One way to compute a unit. The step says kind, arguments, form and CPU level; kernel, time and packing are for the
 * sizes, places and workers that were asked for. */
struct weft_choice {
    struct weft_step step;
    const char *kernel;                /* by its name */
    uint32_t cpu;                      /* what that needs of the CPU; 0: plain loops, or the evaluator */
    int64_t ps;                        /* predicted, with all threads at work */
    struct weft_signature signature;
    size_t scratch;                    /* bytes for each worker */
    struct weft_packing *packing;      /* how constant weights are packed for it, or NULL: they are read as they are */
    size_t pack_bytes;
};

struct weft_choices {
    struct weft_choice *choice;        /* best first; those of a list that was asked for the first only: one */
    uint32_t count, capacity;
};

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* The first of the list. Custom functions, control and constants have none, nor has what nobody takes: NULL. */
const struct weft_choices *weft_select_first(const struct weft_select *select, const struct weft_unit *unit);
/* All of it; NULL also where all parts are in their places. */
const struct weft_choices *weft_select_all(const struct weft_select *select, const struct weft_unit *unit);
/* Are the weights of a step of this kind, its operand 1, packed ahead of runs, if its kernel packs any at the sizes of
 * the hints? They are where the kind has packs and they are a constant, or views and relayouts of one that are the same
 * elements at all sizes and take no more memory: when the plan is made. Or they are a static input, or views of one
 * that are the same elements at all sizes: by each execution, unless views have to be copied (plan/static.c). What a
 * body is handed is a parameter of it, and neither. Whether the elements of a constant are kept besides
 * (WEFT_COMPILE_KEEP_CONSTANTS, weft_step.plain) is another question. */
bool weft_select_packs(const struct weft_graph *graph, const struct weft_step_kind *kind, weft_val weights);
/* How the weights of a step are packed for these sizes, for raised ones if there is nothing to compute at these: what
 * is packed for sizes at which no weights are read would serve no others. False: not at all. */
bool weft_select_pack(const struct weft_select *select, const struct weft_step *step, struct weft_step_pack *ret);

/* "winograd=2", "lanes=8 slices=4", "one chain": equal for two choices that give the same bits. */
const char *weft_signature_text(const struct weft_signature *signature, struct weft_arena *arena);
bool weft_signature_same(const struct weft_signature *a, const struct weft_signature *b);

/* Whoever knows which kernels compute a family of ops: schedule_*.c. */
struct weft_scheduling {
    const struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_arena *arena;
};
/* Fills a step of weft_step_of by what comes first: the kernel family of the op; else a plain kernel; else, and then it
 * is false, the reference evaluator, and `why` says why. Asks for types, attributes and the CPU, not for layouts. */
bool weft_select_step(const struct weft_scheduling *s, struct weft_step *step);
/* The kernel family alone; false leaves the kind open. */
bool weft_select_family(const struct weft_scheduling *s, struct weft_step *step);
/* The step of a unit: that of its node, or of the group (schedule_group.c); false: the reference evaluator has to do
 * it, or, of a group, nobody does. */
bool weft_select_unit(const struct weft_scheduling *s, const struct weft_unit *unit, struct weft_step *step);
bool weft_select_group(const struct weft_scheduling *s, const struct weft_unit *unit, struct weft_step *step);
/* The step of nodes that fit into one kernel and are no group yet. `out`: what others read, in memory that stays. */
bool weft_select_fitting(const struct weft_scheduling *s, struct weft_members *members,
                         const struct weft_group_fit *fit, uint32_t outs, const weft_val *out, struct weft_step *step);
/* The list of a step that is the only one of its unit. */
const struct weft_choices *weft_select_step_choice(const struct weft_select *select, const struct weft_step *step);
/* Why nobody computes the unit as one, or NULL: somebody does. Who plans asks, and passes that open groups. */
const char *weft_select_refuses(const struct weft_scheduling *s, const struct weft_unit *unit);
/* A step with its tensors at these sizes, ready for kind->bind. */
struct weft_bind weft_select_bind(const struct weft_select *select, const struct weft_step *step,
                                  const int64_t *symbols);

/* --- schedulers --------------------------------------------------------------------------------------------------- */

struct weft_scheduler {
    const char *name;
    /* Fills in `kind`, the one of the op's line unless another takes the node, and what it reads; false: none takes it,
     * and `why` says why. */
    bool (*choose)(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind);
    /* For the search for layouts, in picoseconds. What a node pays for writing result 0 in this layout, operands lying
     * as it likes best; NULL: nothing in any. And what it pays more for reading an operand in one layout while it
     * writes in another; NULL: weft_format_across_ps. Asked for pins whose axes are those of the result (sched/pins.h),
     * or for all with `own_pins`. */
    int64_t (*write_ps)(const struct weft_formats *formats, weft_node node, uint32_t layout);
    int64_t (*read_ps)(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout, uint32_t result);
    bool own_pins;
    /* What a node pays for writing this result, in the place of write_ps; or NULL. */
    int64_t (*result_ps)(const struct weft_formats *formats, struct weft_pin result, uint32_t layout);
};
/* Of an op: by its line in schedulers.def, or by its traits. Never NULL. */
const struct weft_scheduler *weft_scheduler_of(int opcode);
/* And the kind of step that computes it unless the scheduler says otherwise. */
const struct weft_step_kind *weft_select_kind(int opcode);
/* For schedulers: leaves the reason, and is false; an op without kernels. What moves whole bytes, of all operands; of
 * operand 0. */
bool weft_schedule_refuse(struct weft_step *step, const char *why);
bool weft_schedule_none(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind);
bool weft_schedule_move(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind);
bool weft_schedule_copy(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind);

#define SCHEDULER(name) extern const struct weft_scheduler weft_scheduler_##name;
#define SCHEDULE(op, scheduler, kind)
#include "sched/schedulers.def"
#undef SCHEDULER
#undef SCHEDULE

#endif
