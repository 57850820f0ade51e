/* SPDX-License-Identifier: Apache-2.0 */
/* build.h: how nodes come to be and change: types and symbolic elements, builders, the few legal rewrites. */
#ifndef WEFT_BUILD_H
#define WEFT_BUILD_H

#include "ir/graph.h"

/* --- infer.c, infer_*.c: result types; content.c: symbolic elements ----------------------------------------------- */

/* A node about to exist. Types of operands by value; `result` is filled by the op's infer function, and holds the
 * stated type beforehand where the op is WEFT_STATED (one result). */
struct weft_infer {
    struct weft_graph *graph;
    int op;
    const weft_val *operand;
    unsigned operands;
    const struct weft_attr *attr;
    unsigned attrs;
    struct weft_type *result;
    unsigned results;
    const struct weft_place *place;
    const struct weft_constant *constant;
};
/* Reports through weft_error with the op's name and returns false. */
bool weft_infer_fail(struct weft_infer *infer, const char *format, ...) WEFT_PRINTF(2, 3);
const struct weft_type *weft_infer_type(const struct weft_infer *infer, unsigned operand);
const struct weft_attr *weft_infer_attr(const struct weft_infer *infer, int key);
/* With the default of the op's table; the same for list element i. */
weft_dim weft_infer_dim(const struct weft_infer *infer, int key);
weft_dim weft_infer_at(const struct weft_infer *infer, int key, unsigned i);
/* Checks arity, attributes and types; fills infer->result. */
bool weft_infer_run(struct weft_infer *infer);
/* Elements of result 0 from the contents of the operands, or NULL; at most WEFT_MAX_CONTENT of them. */
#define WEFT_MAX_CONTENT 64
const weft_dim *weft_content_of(struct weft_graph *graph, weft_node node);
/* The same into the caller's array of WEFT_MAX_CONTENT; false if they are not known. */
bool weft_content_compute(struct weft_graph *graph, weft_node node, weft_dim *element, int64_t *ret_count);
/* The same of any number of elements, which `element` has room for, from those of the operands, which the caller
 * knows. */
bool weft_content_fill(struct weft_graph *graph, weft_node node, const weft_dim *const *operand, weft_dim *element);

/* --- build.c: making nodes ---------------------------------------------------------------------------------------- */

struct weft_node_spec {
    int op;
    const weft_val *operand;
    unsigned operands;
    const struct weft_attr *attr; /* any order; those equal to defaults are dropped; lists are copied */
    unsigned attrs;
    const struct weft_type *stated;         /* type of the result, for WEFT_STATED ops; of custom, of all `results` */
    unsigned results;                       /* of custom: so many; 0: as many as the function has. Else 0 */
    const struct weft_type *claimed;        /* what somebody takes the type of result 0 to be: an error if it is not */
    const struct weft_constant *constant;   /* of const; its blob must be held by the graph */
    weft_node before;                       /* none: at the end */
    const char *name;                       /* of the source's node, for messages */
    struct weft_place place;
};
/* The one gate through which nodes come to be. Infers types; on wrong input records errors and returns none. */
weft_node weft_add_node(struct weft_graph *graph, const struct weft_node_spec *spec);

/* A cursor builder for passes: nodes go before `before`. Wrong types are broken invariants here. */
struct weft_builder {
    struct weft_graph *graph;
    weft_node before;
};
weft_val weft_build(struct weft_builder *b, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                    const struct weft_attr *attr, const struct weft_type *stated);
weft_val weft_build_unary(struct weft_builder *b, int op, weft_val x);
weft_val weft_build_binary(struct weft_builder *b, int op, weft_val x, weft_val y);
weft_val weft_build_splat(struct weft_builder *b, const struct weft_type *type, double value);
/* All elements the same, exactly; the element is of the type's kind. */
weft_val weft_build_element(struct weft_builder *b, const struct weft_type *type, const struct weft_element *element);
/* A const of packed elements, copied. */
weft_val weft_build_const(struct weft_builder *b, const struct weft_type *type, const void *data);
/* The same on a blob that the graph holds. */
weft_val weft_build_blob(struct weft_builder *b, const struct weft_type *type, struct weft_blob *blob);
weft_val weft_build_cast(struct weft_builder *b, weft_val x, int dtype);
weft_val weft_build_transpose(struct weft_builder *b, weft_val x, const int *perm);
weft_val weft_build_reshape(struct weft_builder *b, weft_val x, const struct weft_type *type);
/* result axis result_axis[i] carries operand axis i. */
weft_val weft_build_bcast(struct weft_builder *b, weft_val x, const struct weft_type *type, const int *result_axis);
weft_val weft_build_reduce(struct weft_builder *b, int op, weft_val x, unsigned axes, const int *axis, bool keepdims);
struct weft_attr weft_attr_of_int(int key, int64_t value);
struct weft_attr weft_attr_of_real(int key, double value);
struct weft_attr weft_attr_of_word(int key, const char *word);
struct weft_attr weft_attr_of_ints(struct weft_graph *graph, int key, unsigned count, const int64_t *values);
struct weft_attr weft_attr_of_dims(int key, unsigned count, const weft_dim *values);

/* --- edit.c: the few legal rewrites ------------------------------------------------------------------------------- */

/* The one counter of decisions: true if rewrite number n may happen (WEFT_STOP_AFTER=n bisects). Asked once per
 * rewrite, before the first edit of it. `who` is the pass, `where` the value that changes. */
bool weft_permit(struct weft_graph *graph, const char *who, weft_val where);
/*   uses of %a, returns too       →   uses of %b; %b takes %a's name if it has none. Allocates nothing where as
 *                                     much is known of the elements of both */
void weft_replace_uses(struct weft_graph *graph, weft_val a, weft_val b);
/*   n: … op %a(slot i)            →   n: … op %b   (types may differ; the caller restores validity) */
void weft_replace_operand(struct weft_graph *graph, weft_node node, unsigned i, weft_val value);
/*   n: op %a, %b                  →   n: op %b, %a   where that is the same. Allocates nothing */
void weft_swap_operands(struct weft_graph *graph, weft_node node);
/*   n has no uses                 →   gone; its operands lose a use */
void weft_erase_node(struct weft_graph *graph, weft_node node);
/*   … a … n                       →   … n a …      n keeps its operands before it: the caller knows */
void weft_move_before(struct weft_graph *graph, weft_node node, weft_node before);
/*   n: op attrs                   →   n: op attrs with key set / removed. Refused memory leaves the old ones */
void weft_set_attr(struct weft_graph *graph, weft_node node, const struct weft_attr *attr);
void weft_drop_attr(struct weft_graph *graph, weft_node node, int key);
/*   return %a                     →   return %b   for result i */
void weft_replace_return(struct weft_graph *graph, uint32_t i, weft_val value);
/*   body(%a, %b, %c)              →   body(%c, %a)   for param [%c %a]; those left out have no uses. The caller makes
 *                                                    the node that has the body hand over the same operands. Allocates
 *                                                    nothing */
void weft_keep_params(struct weft_graph *body, const weft_val *param, uint32_t count);
/*   n: op body=@a                 →   n: op body=@b   of the same types. Allocates nothing */
void weft_replace_body(struct weft_graph *graph, weft_node node, const struct weft_graph *a, struct weft_graph *b);
/* What stands right of `!`: a kernel or NULL, and `count` pairs. Tokens are copied; NULL where there is nothing. */
const struct weft_plan_note *weft_make_note(struct weft_graph *graph, const char *kernel, uint32_t count,
                                            const char *const *key, const char *const *value);
/* Sets that of a node. */
void weft_set_plan(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count, const char *const *key,
                   const char *const *value);
/* The strip law: drops plans, groups, relayouts, and every layout but those of parameters and returned values. True if
 * anything changed. */
bool weft_strip(struct weft_graph *graph);

/* --- edit_group.c: groups ------------------------------------------------------------------------------------------
 *
 * A group is a run of neighbours in the order of nodes, and stays one: whoever puts a node between two of its nodes
 * opens it first. Names of groups are unique in their graph. */

/*   a, b, c                       →   fuse @name { a, b, c }   a to c, as they follow each other. False, and nothing
 *                                                              changed, where c does not follow a or one of them is in
 *                                                              a group. A name that is taken gets a number: @name.2 */
bool weft_form_group(struct weft_graph *graph, weft_node first, weft_node last, const char *name);
/*   fuse @name ! k { a ! p, b }   →   a ! p, b    of the group that the node is in: its own note goes with it, those of
 *                                                 its nodes stay; what lay in registers is stored, row-major */
void weft_open_group(struct weft_graph *graph, weft_node node);
/*   { %a{-} = … } … %a            →   { %a = … } … %a   what is read in another group or in none (0), or returned, is
 *                                                       stored, row-major. Edits and builders see to it */
void weft_show_value(struct weft_graph *graph, weft_val value, uint32_t group);
/*   fuse @name ! k { a, b }       →   fuse @name ! other key=value { a, b }   no kernel and no pairs: no note */
void weft_label_group(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count,
                      const char *const *key, const char *const *value);
/* What was recorded of the node's kernel holds no longer, nor what was of its group's: edits of the node call it. */
void weft_forget_choices(struct weft_graph *graph, weft_node node);
/* The first and the last node of the group that the node is in; the node itself where it is in none. */
weft_node weft_group_first(const struct weft_graph *graph, weft_node node);
weft_node weft_group_last(const struct weft_graph *graph, weft_node node);

#endif
