/* SPDX-License-Identifier: Apache-2.0 */
/* alias.h: which values are computed in the memory of others. This is the one place that decides it; the pass
 * mark_aliases writes it into the graph, and a plan follows it (plan/home.c).
 *
 *   graph @step(%w: mut f32[64], %g: f32[64], %y: f32[64]) {
 *     %d: f32[64] = mul %g, %g               ! in=%e      %e reads it last, where it writes
 *     %e: f32[64] = exp %d                   ! in=%n      %n reads it last, and takes its place
 *     %n: f32[64] = sub %w, %e               ! in=%w      nobody reads the old %w any more
 *     %a: f32[64] = relu %y                  ! in=%c      the concat has a place for it
 *     %c: f32[128] = concat %n, %a axis=0                 %n is copied: it lives in %w
 *     return %c, mut %w = %n
 *   }
 *
 * Comes when storage is decided: every value has its layout, and what can be a view of its operand is one. Three kinds
 * of values then want to live elsewhere:
 *
 *   PART      an operand of a concat, or the body of a padding: inside of the result that would copy it;
 *   OVER      an operand of an elementwise node or of an update (dynamic_update, scatter): where the result is, which
 *             is written over it;
 *   UPDATED   the new value of a `mut` parameter: in the parameter's memory, over the old value.
 *
 * What is computed there is seldom the value itself but the value that it reshapes or transposes, the root, and the
 * layout that the root needs is that of the place seen through the views backwards. A root has one place. Parameters'
 * new values come first; then nodes are asked from the last to the first, so that a result has its own place before
 * its operands want to be in it, and of two that want one value the later gets it.
 *
 * Refused, with a remark that says why:
 *   - the root is a parameter or a constant (OVER: or a relayout of one), is returned, or lives in another value
 *     already; a slice or a broadcast is between: the root is more or less than the operand;
 *   - its layout stores the axes in another order than the place, its elements have another size, its rows would become
 *     shorter than a cache line, or its kernel does not write rows with gaps at full speed;
 *   - another view of it would become a copy;
 *   - OVER: a later node reads the root or a view of it, or the same node reads it at another index than it writes; or
 *     it is wanted inside a concat, or is a concat with a part that is read later: those save copies, this only memory;
 *   - UPDATED, and all that lives in there: the old value is read later, and the node cannot wait for it
 *     (alias_order.c), or is returned; the result is promised in another layout;
 *   - its layout states an alignment, which only memory of its own is sure to have;
 *   - extents come out of data, so that the place would be known too late;
 *   - it is a view that a group makes: whether that moves elements is the group's affair.
 *
 * Time goes by units (sched/unit.h): what a group reads is read until its last node is done, and what it writes counts
 * as written from its first on. A value inside of a group has no memory and no place; a concat inside copies. An output
 * of a group may be written over one of its inputs where the order of the group's kernel allows for it, which is asked
 * of its form (alias_group.c, codegen/form_over.c):
 *
 *   fuse @gate {                                       %o over %x: each element of %o needs the %x of its index, which
 *     %s: f32[4,64]{-} = sigmoid %x                    is read by nobody once it is there
 *     %o: f32[4,64] = mul %s, %x
 *   }
 *   fuse @softmax {                                    %y over %x: rows are read three times, and then a row of %y is
 *     %m: f32[4]{-} = reduce_max %x axes=[1]           written
 *     ...
 *     %y: f32[4,64] = div %e, %s
 *   }
 *   fuse @twice {                                      %o not over %x, which %p reads when a part of %o is there; %p
 *     %o: f32[4,64] = sigmoid %x                       may be
 *     %p: f32[4,64] = mul %o, %x
 *   }
 *
 * An elementwise kernel may write over an operand since each element is read before it is written and by nobody else:
 * operand and result have the same strides, and parts of a parallel region share out the indices of both alike. */
#ifndef WEFT_ALIAS_H
#define WEFT_ALIAS_H

#include "ir/ir.h"
#include "sched/unit.h"

struct weft_form; /* codegen/form.h */
struct weft_step; /* sched/step.h */

enum weft_alias_kind { WEFT_ALIAS_OWN, WEFT_ALIAS_PART, WEFT_ALIAS_OVER, WEFT_ALIAS_UPDATED, WEFT_ALIAS_KINDS };

struct weft_alias {
    uint8_t kind;
    weft_val in;                      /* the value in whose place this one is; none: it has a place of its own */
    weft_val owner;                   /* at the end of that chain: the value whose memory it is */
    const struct weft_layout *layout; /* in that memory */
    uint32_t until;                   /* position of the unit that overwrites it; UINT32_MAX: none */
};

/* Where a result of the graph is. */
struct weft_alias_return {
    struct weft_layout layout;        /* as the caller sees it */
    weft_val computed;                /* the value that is computed in the caller's memory, or none */
    bool updated;                     /* it lives in the `mut` parameter that it is the new value of */
};

struct weft_alias_query {
    struct weft_graph *graph;
    const struct weft_units *units;   /* of the graph, as its order is now */
    const struct weft_layout *param_layout, *return_layout; /* of a body: as the outer values lie; NULL: as stated */
    /* Does the node's kernel write rows with gaps between them as fast as without? NULL: all do, but custom ones. */
    bool (*strided)(void *user, weft_node node);
    /* The form that computes the group which begins with this node (weft_alias_form of its step). NULL, the function or
     * what it returns: that group writes over nothing. */
    const struct weft_form *(*form)(void *user, weft_node first);
    /* May operand i be where its place in the result is, as far as the node's kernel goes? NULL: yes. */
    bool (*hosts)(void *user, weft_node node, uint32_t operand);
    /* Does the value live in memory that belongs to others? NULL: none but parameters. */
    bool (*elsewhere)(void *user, weft_val value);
    /* Is a value of the node written or read by who takes its layout exactly, at any sizes? NULL: none is. */
    bool (*exact)(void *user, weft_node node);
    void *user;
    bool keep_kernels; /* nodes that have a kernel right of `!`, their own or their group's, write memory of their own,
                        * and over no operand; and a mark that a note says already is no rewrite to be permitted */
};

struct weft_aliases {
    struct weft_alias *of;            /* by value id */
    struct weft_alias_return *ret;    /* by return slot */
    const char **label;               /* names of values, by id */
    int32_t marked[WEFT_ALIAS_KINDS]; /* how many of each kind */
};

/* How parameter i, and result i as the caller sees it, lie. */
struct weft_layout weft_alias_param_layout(const struct weft_alias_query *query, uint32_t i);
/* Where results are computed if nothing is marked. What is found lives as long as the graph; on the way, both need the
 * root graph's scratch memory. */
void weft_find_returns(const struct weft_alias_query *query, struct weft_aliases *ret_aliases);
/* alias_order.c: moves the units that make new values of `mut` parameters behind the readers of the old ones, where the
 * graph lets them. To be called before units are found for the other. True if it moved one. */
bool weft_delay_updates(struct weft_graph *graph);
/* The whole of it, with remarks of `mark_aliases`. Each mark asks weft_permit. */
void weft_find_aliases(const struct weft_alias_query *query, struct weft_aliases *ret_aliases);

/* "%c": a value as what stands right of `!` names it; characters that the language has other uses for are `_`. */
const char *weft_alias_word(struct weft_graph *graph, const struct weft_aliases *aliases, weft_val value);

/* What a note says of a mark: the word behind `in=`, or NULL. */
const char *weft_alias_noted(const struct weft_plan_note *note);
/* Does a note say which kernel computes the node, its own or that of its group? */
bool weft_alias_has_kernel(const struct weft_graph *graph, weft_node node);

/* As stated, or row-major where nothing is decided; from offset 0, since a value that is computed or bound begins where
 * its storage does. */
struct weft_layout weft_own_layout(const struct weft_graph *graph, weft_val value);
/* Does the node only move elements: a view or a relayout? */
bool weft_is_moved(const struct weft_graph *graph, weft_node node);
/* What the value is a view or a relayout of, through any number of them; itself, if it is none. */
weft_val weft_moved_from(const struct weft_graph *graph, weft_val value);
/* How the result of a view is stored where its operand is stored like this; false where no strides say it, unless these
 * are the blocks that the result is stated to be in. */
bool weft_view_layout(const struct weft_graph *graph, weft_node view, const struct weft_layout *from,
                      struct weft_layout *ret);
/* The other way round, of views that show each element once (WEFT_BIJECTIVE): how the operand is stored where the
 * result is stored like this. */
bool weft_viewed_layout(const struct weft_graph *graph, weft_node view, const struct weft_layout *to,
                        struct weft_layout *ret);
/* Does the node only replace some elements of operand 0, in one of the ways that kernels can do in place? */
bool weft_is_update(const struct weft_graph *graph, weft_node node);
/* How many operands have a place in the node's result: those of a concat, the body of a padding, operand 0 of an
 * update, those of an elementwise node. */
uint32_t weft_places_in(const struct weft_graph *graph, weft_node node);
/* The place of an operand in the result, which is stored in `result`; of a concat's it begins at `along` its axis
 * (weft_index_behind). */
bool weft_place_in(const struct weft_graph *graph, weft_node node, uint32_t operand, weft_dim along,
                   const struct weft_layout *result, struct weft_layout *ret);
/* Same places, but for axes of extent 1, which have none. */
bool weft_same_places(const struct weft_graph *graph, const struct weft_type *type, const struct weft_layout *a,
                      const struct weft_layout *b);

/* --- what the files of alias share -------------------------------------------------------------------------------- */

/* A value and how it is stored in the memory of its root. */
struct weft_seen {
    weft_val value;
    struct weft_layout own, wanted;
};

/* The last reader of a value or of its views; position 0: none, UINT32_MAX: the caller, since it is returned. */
struct weft_last {
    uint32_t position;                /* of the unit */
    weft_node reader;                 /* in it */
};

struct weft_aliasing {
    const struct weft_alias_query *query;
    struct weft_graph *graph;
    const struct weft_units *units;
    struct weft_aliases *result;
    struct weft_seen *seen;           /* room for walks over views */
    uint32_t seen_capacity;
    bool *wanted;                     /* by value: a concat or padding has a place for it */
    struct weft_last *last;           /* by value */
    weft_node reader;                 /* who speaks against the last wish, or none */
    bool sized_by_data;               /* some extent of the graph comes out of data */
    struct weft_candidate {
        weft_val value;
        uint32_t read;                /* the last instruction that reads it */
    } *candidate;                     /* of groups: what an output could be written over */
    uint32_t candidate_capacity;
};

/* alias_root.c. From the operand to the value that is computed, and with it from the place to the layout that this
 * value needs; or a constant message. `layout` may be NULL. */
const char *weft_alias_root(const struct weft_graph *graph, weft_val *value, struct weft_layout *layout);
/* Does the value that is computed for this one, seen through views, have a place of its own whatever is asked for: a
 * parameter, a constant, what is returned or only a part of it seen, a result beside others? */
bool weft_alias_stays(const struct weft_graph *graph, weft_val value);
/* Can the root be stored like this: its kernel, its rows, its other views? `operand` is the root or a view of it, and
 * comes to lie in `place`. */
const char *weft_alias_check_root(struct weft_aliasing *a, weft_val root, const struct weft_layout *layout,
                                  weft_val operand, const struct weft_layout *place, int kind);

/* alias_reader.c */
void weft_alias_find_last(const struct weft_units *units, const struct weft_alias_query *query,
                          struct weft_last *ret_last);
/* Does anybody read the value, stored like this, or a view of it, in unit `until` or later, other than the unit of node
 * `over` where that node writes its result, which is stored in `result`? A constant message, or NULL: nobody. */
const char *weft_alias_check_readers(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                     uint32_t until, weft_node over, const struct weft_layout *result);
/* Notes that this value is stored like this; weft_aliasing.seen grows. */
void weft_alias_see(struct weft_aliasing *a, uint32_t *count, weft_val value, const struct weft_layout *layout);
/* If the owner is a `mut` parameter: is its old value dead when node `def` writes `result` there? */
const char *weft_alias_check_old(struct weft_aliasing *a, weft_val owner, weft_node def,
                                 const struct weft_layout *result);

/* alias_group.c */
#define WEFT_ALIAS_ELSEWHERE "it is read at another index than is written"
/* The form of a step that computes a group, of which it can be asked what that may write over; or NULL. */
const struct weft_form *weft_alias_form(const struct weft_step *step);
/* Fills `candidate` with what is as large as the result of a node of a group, of the values that the group reads and
 * the views of them that it makes. How many they are. */
uint32_t weft_alias_find_candidates(struct weft_aliasing *a, weft_node over);
/* Of a value that the group of `over` reads last: may that node's result be written over it, stored like this? NULL, or
 * a constant message, and a reader. */
const char *weft_alias_check_group(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                   weft_node over, const struct weft_layout *result);
/* Do all views from the value down to its root count as such, and has the root memory of its own? Not where a group
 * makes one of them, unless it is group `unit`, which reads through them. */
bool weft_alias_sees_root(const struct weft_units *units, weft_val value, weft_val root, uint32_t unit);

#endif
