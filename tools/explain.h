/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h: what became of each node of a model, as data; the parts of weft explain.
 *
 *   model as read ──┐
 *                   ├─ explain_collect.c ──► origins: what stood there, what stands there now ──► text, JSON
 *   plan ───────────┘
 *
 * A node of the file may be several of weft's, and passes make others of those. All carry the name of the node that
 * they come from, so an *origin* is that name with everything that bears it, before and after. */
#ifndef WEFT_EXPLAIN_H
#define WEFT_EXPLAIN_H

#include "ir/parse.h"
#include "runtime/runtime.h"

enum explain_fate {
    EXPLAIN_CONSTANT,  /* it is nothing but constants, then and now */
    EXPLAIN_KEPT,      /* all of its nodes are still there, and no others */
    EXPLAIN_REWRITTEN, /* other nodes stand for some of it */
    EXPLAIN_FOLDED,    /* computed while compiling: only constants are left, of it or of what is computed from it */
    EXPLAIN_CANCELLED, /* another node's value stands for it */
    EXPLAIN_JOINED,    /* another node computes it as a part of what it does: scores of an attention */
    EXPLAIN_DROPPED,   /* nothing needs it */
};
extern const char *const explain_fates[];

struct explain_origin {
    const char *name;
    uint32_t pair;             /* which graph it stands in */
    enum explain_fate fate;
    uint32_t source, final;    /* first node in `from` and in `to`, 0: none; next: explain.next_source, next_final */
    uint32_t remark;           /* index + 1 of the first remark; next: explain.next_remark */
};

struct explain {
    struct weft_context *context;
    struct weft_arena *arena;
    const char *path;
    const struct weft_graph *from;   /* the model as read, each node with a name */
    const struct weft_plan *plan;
    const struct weft_graph *to;     /* the plan's graph */
    struct explain_origin *origin;   /* in the order of the file */
    uint32_t origins, origin_capacity;
    struct explain_pair *pair;       /* the graph and its bodies, as read and as planned */
    uint32_t pairs, pair_capacity;
    uint32_t *next_remark;           /* by remark */
    const int64_t *symbols;          /* what costs are predicted for */
    const struct weft_profile *measured; /* or NULL */
};
struct explain_pair {
    const struct weft_graph *from, *to;
    const char *inside;                  /* name of the body, or "" */
    const char **from_label, **to_label; /* names of values, by id, without sigil */
    uint32_t *next_source, *next_final;  /* by node id */
    uint32_t *rank;                      /* by node id of `from`: the node of `to` that was its copy */
    const struct weft_unit_counts **counts; /* by unit; NULL: none has several nodes, or sizes are too large */
};

/* Gives each node of a graph, bodies included, a name: its own, or that of its first result. Before compiling. */
void explain_name_nodes(struct weft_graph *graph);
/* Fills the rest of `explain` from context, arena, path, from, plan, symbols. */
void explain_collect(struct explain *explain);
/* The origin of this name, or that of the value (with or without %); NULL after an error with the nearest names. */
const struct explain_origin *explain_find(const struct explain *explain, const char *name);

/* Is it constants alone, of which nothing is left? */
bool explain_is_unused_constant(const struct explain *explain, const struct explain_origin *origin);
/* What a node will cost by plain counting, for the hinted sizes: every operand and result moves once. */
struct explain_cost {
    double operations, bytes;
    bool known;                /* of custom functions only what they say */
};
struct explain_cost explain_cost_of(const struct explain *explain, const struct weft_graph *graph, weft_node node);
/* "f32[1,8]{1 0}": the type, with the layout where it is not row-major, as planned. */
const char *explain_type(const struct explain *explain, const struct weft_graph *graph, weft_val value);
/* What the kernel's name does not say: why there is none, or why a view is copied; else the empty text. */
const char *explain_kernel(const struct explain *explain, const struct explain_pair *pair, weft_node node);

/* opt_code.c: the C of the kernels of groups, as weft opt --print=c has it. */
void weft_opt_print_code(const struct weft_plan *plan, struct weft_arena *arena, struct weft_text *text);
/* Of one step; false where it has none. */
bool weft_opt_step_code(const struct weft_plan *plan, const struct weft_step *step, struct weft_arena *arena,
                        struct weft_text *text);
/* opt_times.c: what each pass took that ran on the graph, and the rest of `whole_ns` (0: not), as --print=times
 * has it. */
void weft_opt_print_times(const struct weft_graph *graph, int64_t whole_ns, struct weft_arena *arena,
                          struct weft_text *text);
/* What a text says of a unit's step, a node's or a group's; NULL: it has none. */
const struct weft_plan_note *explain_unit_note(const struct weft_plan *plan, const struct weft_unit *unit);
/* explain_choices.c: the ways to compute a unit, for people and as a member of its object; nothing where it has no
 * list. What the way that was taken is predicted to take, 0 where there is no list. And "1.5 M operations", "120 B". */
void explain_unit_choices(const struct weft_plan *plan, const struct weft_unit *unit, struct weft_arena *arena,
                          struct weft_text *text);
void explain_choices_json(const struct explain *explain, const struct weft_plan *plan, const struct weft_unit *unit,
                          struct weft_text *text);
int64_t explain_predicted_ps(const struct weft_plan *plan, const struct weft_unit *unit, struct weft_arena *arena);
void explain_add_amount(struct weft_text *text, double amount, const char *small, const char *large);

/* --- explain_group.c: nodes that one kernel computes -------------------------------------------------------------- */

struct explain_group {
    const struct weft_plan *plan;  /* the plan, or that of a body, whose `unit` it is */
    const struct weft_unit *unit;
    const struct weft_plan_note *note;
    const char *name, *value, *kernel; /* value: by whose name remarks call it; kernel: "" if none is named */
    const struct weft_unit_counts *counts; /* at explain.symbols; NULL: sizes are too large, or nothing runs it */
};
/* Sets `counts` of the pair. */
void explain_count_groups(const struct explain *explain, struct explain_pair *pair);
/* The group of a planned node; false: its kernel, if it has one, computes it alone. */
bool explain_group_of(const struct explain *explain, const struct explain_pair *pair, weft_node node,
                      struct explain_group *ret);
/* Of the nodes of an origin, is this the last one of its group? */
bool explain_is_last_shown(const struct explain_pair *pair, const struct explain_group *group, weft_node node);
void explain_group_text(const struct explain *explain, const struct explain_group *group, bool with_choices,
                        struct weft_text *text);
/* Of all groups, or of those that nodes of `only` are in. */
void explain_groups_json(const struct explain *explain, const struct explain_origin *only, struct weft_text *text);

/* A relayout that propagate_memory_format inserted. */
struct explain_relayout {
    const struct explain_pair *pair;
    const struct weft_conversion_record *record;
    const char *from, *to;     /* layouts */
    double bytes, share;       /* of what is moved; of the estimate, 0 where it is done before the first run */
    double estimate;           /* explain_estimate_ps */
};
/* The relayout inserted after this one, the first one after {0}; false after the last. */
bool explain_next_relayout(const struct explain *explain, struct explain_relayout *relayout);
/* The relayouts among the steps of a run, which weft_statistics counts, by where they come from. */
struct explain_relayouts {
    uint32_t inserted, results;        /* inserted as above; results, and parameters that are updated, at the end */
    uint32_t by_op[WEFT_OP_COUNT];     /* views that have to be copied, and relayouts of the model's own */
    uint32_t loaded;                   /* inserted, and done before the first run: no steps */
};
struct explain_relayouts explain_count_relayouts(const struct explain *explain);
/* What all layouts were taken to cost, bodies included: picoseconds. */
int64_t explain_estimate_ps(const struct explain *explain);

struct weft_model;
struct weft_model_options;
struct weft_profile;
/* explain.c: loads a model into a context that is open, names its nodes, and compiles it. Returns an exit code. */
int explain_open(const struct weft_model_options *options, struct weft_model *model);
/* explain_measure.c: runs a model, compiled but not bound, on random inputs and times its steps. Returns an exit code,
 * after saying what is wrong; close the profile in any case. */
int explain_measure(const struct weft_model_options *options, struct weft_model *model,
                    struct weft_profile *ret_profile);
/* Units with their measured and predicted times; `explain.measured` is there. */
void explain_measured_text(const struct explain *explain, struct weft_text *text);
void explain_measured_json(const struct explain *explain, struct weft_text *text);

/* explain_json.c: ,"key":"string"; and what stands right of `!` in the plan, if anything does. */
void explain_json_pair(struct weft_text *text, const char *key, const char *string);
void explain_json_place(const struct weft_plan_note *plan, struct weft_text *text);
/* explain_text.c, explain_json.c: the summary of the passes, then `only` or all origins. */
void explain_print_text(const struct explain *explain, const struct explain_origin *only, struct weft_text *text);
void explain_print_json(const struct explain *explain, const struct explain_origin *only, struct weft_text *text);

/* The runs of one pass together, or of the planner. */
struct explain_pass {
    const char *name;
    uint32_t runs;
    int64_t rewrites, ns;
};
/* Pass i in order of its first run, from 0; false behind the last. */
bool explain_pass_at(const struct explain *explain, uint32_t i, struct explain_pass *ret);
/* Do the remark's words come from the pass? Its rules sign as "pass.rule". */
bool explain_is_by(const struct weft_remark *remark, const char *pass);
/* Number of remarks that are equal (who, verdict, reason) but for the values named in the reason, 0 if an earlier one
 * stands for this one. */
uint32_t explain_count_like(const struct explain *explain, uint32_t remark);
/* The reason with an ellipsis for each value that it names. */
const char *explain_common_reason(const struct explain *explain, const char *reason);

#endif
