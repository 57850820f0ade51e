/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h: one function a pass, in a file of its name; the list is passes.def. How to add one: README.md. */
#ifndef WEFT_PASSES_H
#define WEFT_PASSES_H

#include "ir/ir.h"

struct weft_pass_info {
    const char *name;      /* with underscores */
    bool (*run)(struct weft_graph *, const struct weft_target *);
    const char *help;      /* one line */
};
extern const struct weft_pass_info weft_passes[];
extern const unsigned weft_pass_count;

#define PASS(name, help) bool weft_pass_##name(struct weft_graph *graph, const struct weft_target *target);
#include "passes.def"
#undef PASS

/* --- run.c: the pipeline, and one pass with everything around it ------------------------------------------------ */

const struct weft_pass_info *weft_pass_find(const char *name); /* - and _ are the same; NULL if unknown */
struct weft_suggest;
/* " (did you mean fold_const?)", or "": see ir/suggest.h. */
const char *weft_suggest_pass(struct weft_suggest *suggest, const char *word, size_t length);
/* Runs a pass on the graph and its bodies with everything around it: skip list, validation, snapshots, timing.
 * Under weft_protected. True if the graph changed. */
bool weft_run_pass_info(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target);
/* The default pipeline, to a fixed point where it says so. */
bool weft_run_passes(struct weft_graph *graph, const struct weft_target *target);
/* The same in three phases, for who has something to do between them (runtime/constants.c): composites opened;
 * primitive ops simplified, which may be done again; places and layouts decided. */
enum weft_phase { WEFT_PHASE_OPEN, WEFT_PHASE_SIMPLIFY, WEFT_PHASE_PLACE, WEFT_PHASE_GROUP, WEFT_PHASES };
enum { WEFT_MAX_PASSES = 64 };
struct weft_pipeline {
    struct weft_graph *graph;
    const struct weft_target *target;
    uint64_t changes;               /* counted from 1; whoever changes the graph between phases adds one */
    uint64_t seen[WEFT_MAX_PASSES]; /* the change after which each pass last ran */
    struct weft_pipeline_options options;
    bool ended;                     /* options.until has run, or a pass of the caller's failed: nothing runs any more */
    bool on_trial;                  /* no part of what is compiled: no records, pictures, passes of the caller's */
};
/* `options` NULL: none. False, and an error, where they name a pass that there is not; nothing then runs. */
bool weft_pipeline_open(struct weft_graph *graph, const struct weft_target *target,
                        const struct weft_pipeline_options *options, struct weft_pipeline *ret_pipeline);
/* With the caller's passes before and behind it. Phases come in their order; SIMPLIFY may come twice. */
void weft_pipeline_run(struct weft_pipeline *pipeline, enum weft_phase phase);
/* The caller's passes that come last. */
void weft_pipeline_close(struct weft_pipeline *pipeline);
/* May a pass of this name run, as far as the options go? And it has run. */
bool weft_pipeline_takes(const struct weft_pipeline *pipeline, const char *name);
void weft_pipeline_ran(struct weft_pipeline *pipeline, const char *name);
/* The phases up to `last` for a graph on trial (choose_alternatives.c), within the pass of another graph. */
void weft_pipeline_try(struct weft_graph *graph, const struct weft_target *target, enum weft_phase first,
                       enum weft_phase last);
/* Notes what was done to a graph as weft_run_pass_info does. */
void weft_add_pass_record(struct weft_graph *root, const struct weft_pass_record *record);
/* Run number i of a pass on this graph, in order of time; NULL after the last. */
const struct weft_pass_record *weft_pass_timing(const struct weft_graph *graph, size_t i);

/* --- inspect.c: what the environment asks to be checked and shown around a pass --------------------------------- */

/* Which checks WEFT_DEBUG names. */
enum weft_debug {
    WEFT_DEBUG_VALIDATE = 1, /* validate after every pass that changed something; always on in builds with assertions */
    WEFT_DEBUG_CLONE = 2,    /* run the pass on a copy as well: copy and graph print the same before and after */
    WEFT_DEBUG_REPARSE = 4,  /* print, parse, print: the same text */
};
struct weft_inspection {
    struct weft_graph *graph;
    const struct weft_pass_info *pass;
    uint32_t debug;
    struct weft_graph *copy; /* of WEFT_DEBUG_CLONE */
};
void weft_inspect_before(struct weft_inspection *inspection);
void weft_inspect_after(struct weft_inspection *inspection, bool changed);
/* Is `name` in the comma-separated list of this environment variable? - and _ are the same. "all" counts where
 * `all`. */
bool weft_environment_names(const char *variable, const char *name, bool all);
/* The same of the list itself, which may be NULL. */
bool weft_list_names(const char *list, const char *name);

/* --- outside.c: passes of the caller's -------------------------------------------------------------------------- */

bool weft_outside_pass_exists(const struct weft_context *context, const char *name);
void weft_outside_passes_free(struct weft_context *context);
/* Runs one, as weft_run_pass does. Under weft_protected. */
int weft_run_outside_pass(struct weft_graph *graph, const char *name, const struct weft_target *target);
/* Those of a place (enum weft_pass_place), one after the other, to the first that fails: 1, 0 or its status. */
int weft_run_outside_passes(struct weft_pipeline *pipe, int place);

/* --- rules.c: passes made of local rules ------------------------------------------------------------------------ */

struct weft_rule;
struct weft_rewriting {
    struct weft_graph *graph;
    struct weft_builder build;    /* new nodes go before the node that the rule looks at */
    weft_node node;
    const char *pass;
    const struct weft_rule *rule;
    const void *facts;            /* what the pass found out before, for its rules */
    bool permitted;
};

/* Looks at one node. If the rule fits, `apply` returns the value that takes the place of the node's result:
 * one that was there before (weft_rewrite_to), one that it builds (after weft_rewrite_begin), or the result itself
 * if it altered the node in place (also after weft_rewrite_begin). Else none. */
struct weft_rule {
    const char *name;             /* WEFT_SKIP=pass.name leaves it out */
    int op;                       /* opcode of the nodes to look at; WEFT_OP_NONE: all */
    weft_val (*apply)(struct weft_rewriting *rewriting, weft_node node);
    const char *reason;           /* for the remark: why the result is the same */
};
struct weft_rule_set {
    const struct weft_rule *rule;
    unsigned count;
    bool several;                 /* also of nodes with several results: `apply` substitutes those behind the first */
};
#define WEFT_RULE_SET(rules) {(rules), sizeof(rules) / sizeof((rules)[0]), false}
#define WEFT_RULE_SET_SEVERAL(rules) {(rules), sizeof(rules) / sizeof((rules)[0]), true}

/* Applies the rules everywhere, in order of execution, until none fits. Nodes in groups or with a kernel are left
 * alone: what has been decided is not rewritten. Old nodes without uses are erased; their operands are left to
 * dce. True if anything changed. */
bool weft_apply_rules(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets, unsigned count);
/* The same for rules that ask for what an analysis has found. */
bool weft_apply_rules_with(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets, unsigned count,
                           const void *facts);
/* And that leave nodes alone of which `stays` says so. */
typedef bool weft_stays_fn(const struct weft_target *target, struct weft_graph *graph, weft_node node);
bool weft_apply_rules_unless(struct weft_graph *graph, const char *pass, const struct weft_rule_set *sets,
                             unsigned count, const void *facts, weft_stays_fn *stays, const struct weft_target *target);
/* Asks for permission and records the remark; to be called once, before the first edit. */
bool weft_rewrite_begin(struct weft_rewriting *rewriting);
/* `value` if it may take the place of the node's result and that is permitted; a reshape of it where only the result of
 * the graph cannot be a parameter or another result, so that it is a view of that; else none. */
weft_val weft_rewrite_to(struct weft_rewriting *rewriting, weft_val value);

/* Would weft_substitute change anything? A returned value of the whole graph never becomes a parameter or another
 * returned value, because each result has a name and a place of its own; then only the uses inside the graph
 * count. */
bool weft_can_substitute(const struct weft_graph *graph, weft_val from, weft_val to);
/* Uses of `from` become uses of `to`, returns too where allowed; a result keeps its name and its layout. */
void weft_substitute(struct weft_graph *graph, weft_val from, weft_val to);
/* Erases the node if none of its results is used. */
void weft_erase_unused(struct weft_graph *graph, weft_node node);
/* undo.c: the node's kernel and its group go, with an "undone" remark: they were chosen for `reason`. Values that only
 * the group kept are stored. Its nodes are neighbours still: nothing is built in a group before it is opened. */
void weft_undo_decision(struct weft_graph *graph, const char *who, weft_node node, const char *reason);
/* A "refused" remark, unless the same was recorded a moment ago: passes run several times. */
void weft_refuse(struct weft_graph *graph, const char *who, weft_val where, const char *format, ...) WEFT_PRINTF(4, 5);

/* Small questions that several passes ask. */
bool weft_is_decided(const struct weft_graph *graph, weft_node node);    /* in a group, or with a note */
/* Is it stored without gaps, in some order of its axes? */
bool weft_is_dense(const struct weft_graph *graph, weft_val value);
bool weft_has_one_use(const struct weft_graph *graph, weft_val value);   /* one operand slot, not returned */
int64_t weft_value_bytes(const struct weft_graph *graph, weft_val value);    /* of constant extents, packed */
int64_t weft_constant_bytes(const struct weft_graph *graph, weft_val value); /* 0 for what is not stored */
/* Elements that a node reads; of a contraction every product of its sums: elements of the result times those of the
 * longest sum. For types of constant extents. (fold_const.c) */
int64_t weft_node_work(const struct weft_graph *graph, weft_node node);
enum { WEFT_FOLDED_BYTES = 64 << 10 }; /* that fold_const may add */
/* Is it a transpose of a constant of f32 and of more bytes than these, which only products read? They read it where it
 * lies, so that nobody writes a transposed copy. (cancel_transpose.c) */
bool weft_stays_transposed(const struct weft_graph *graph, weft_node node);
/* The packed elements of a const: in place, or written to scratch memory. */
const void *weft_elements(struct weft_graph *graph, weft_val constant);
/* The elements of a const of a float type. */
void weft_read_reals(struct weft_graph *graph, weft_val constant, double *ret);
/* A splat of `type` with element 0 of packed data. */
weft_val weft_build_number(struct weft_builder *b, const struct weft_type *type, const void *data);

/* Is the node a product of few rows by constant weights whose numbers a type smaller than f32 holds, which it reads as
 * such? Then factors stay behind it. (scale_result.c) */
bool weft_keeps_small_weights(struct weft_graph *graph, const struct weft_target *target, weft_node node);

/* Rules that canonicalize and cancel_transpose share (canonicalize_view.c): a view that keeps its operand's type,
 * a transpose that moves no axis, a view of a uniform constant. */
weft_val weft_same_type(struct weft_rewriting *rewriting, weft_node node);
weft_val weft_transpose_same(struct weft_rewriting *rewriting, weft_node node);
weft_val weft_view_of_splat(struct weft_rewriting *rewriting, weft_node node);

/* Can no element of the value be -0? (canonicalize.c) */
bool weft_has_no_negative_zero(const struct weft_graph *graph, weft_val value);

/* Can this slice fail for no sizes? One that starts at N is an error where N is beyond the extent, and stays one. */
bool weft_slice_is_safe(struct weft_graph *graph, weft_node slice);

/* Composites of 16-bit floats are computed in f32 (decompose.c): casts where needed. Those to 16 bits are loose:
 * whoever reads one may read its operand instead. */
weft_val weft_widen(struct weft_builder *b, weft_val x);
weft_val weft_narrow(struct weft_builder *b, weft_val x, int dtype);

/* rebuild.c. The node's op with its attributes on other operands; the type counts where the op does not infer it. A
 * reduction of these axes of x, else as the node's, which has at most WEFT_REBUILD_ATTRS attributes; without keepdims.
 * An elementwise node's op on other operands, over this shape. Nodes in the order in which they run.
 * A size, maybe of symbols, as each element of the type. */
enum { WEFT_REBUILD_ATTRS = 8 };
weft_val weft_rebuild(struct weft_builder *b, weft_node node, const weft_val *operand, const struct weft_type *type);
weft_val weft_rebuild_reduction(struct weft_builder *b, weft_node node, weft_val x, unsigned axes, const int64_t *axis);
weft_val weft_rebuild_elementwise(struct weft_builder *b, weft_node node, const weft_val *operand,
                                  const struct weft_type *shape);
void weft_sort_nodes(struct weft_graph *graph, struct weft_arena *arena, weft_node *node, uint32_t count);
/* By number of the body: how many nodes of the graph run it. In scratch memory. */
uint32_t *weft_count_holders(struct weft_graph *graph);
weft_val weft_build_size(struct weft_builder *b, const struct weft_type *type, weft_dim size);

/* Families of rules that stand in files of their own. */
extern const struct weft_rule_set weft_canonicalize_views;      /* canonicalize_view.c */
extern const struct weft_rule_set weft_canonicalize_algebra;    /* canonicalize_algebra.c */
extern const struct weft_rule_set weft_canonicalize_identities; /* canonicalize_identity.c */
extern const struct weft_rule_set weft_canonicalize_repeats;    /* canonicalize_repeat.c */
extern const struct weft_rule_set weft_decompose_norms;         /* decompose_norm.c */
extern const struct weft_rule_set weft_decompose_activations;   /* decompose_activation.c */
extern const struct weft_rule_set weft_decompose_reductions;    /* decompose_reduce.c */
extern const struct weft_rule_set weft_decompose_contractions;  /* decompose_contraction.c */
extern const struct weft_rule_set weft_decompose_quantised;     /* decompose_quantize.c */

#endif
