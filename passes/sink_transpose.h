/* SPDX-License-Identifier: Apache-2.0 */
/* sink_transpose.h: through which nodes a transpose may move, and what they look like afterwards.
 *
 * A value is *turned* if it is a transpose of another one, its *straight form*: axis i of the value is axis
 * turn.axis[i] of the straight form. A plan says how a node with turned operands is computed from their straight forms,
 * and how its result is turned then:
 *
 *   %t: f32[4,2,3] = transpose %x perm=[2 0 1]      %t is turned by (2 0 1), its straight form is %x
 *   %s: f32[4,3]   = sum %t axes=[1]                from straight forms: %r: f32[3,4] = sum %x axes=[0]
 *                                                   and %s is %r, turned by (1 0)
 *
 * Where an axis of extent 1 stands makes no difference to the order of elements. So turns are kept in one form: such an
 * axis stays where it is (turn.axis[i] == i), and a reshape moves it in a straight form that has it elsewhere. Two
 * values of one shape are turned alike if and only if their turns are equal. */
#ifndef WEFT_SINK_TRANSPOSE_H
#define WEFT_SINK_TRANSPOSE_H

#include "passes/passes.h"

struct weft_turn {
    uint8_t axis[WEFT_MAX_RANK];
};

struct weft_turn weft_turn_none(void);
bool weft_turn_is_none(const struct weft_turn *turn);
/* The type of the straight form of a value of `type`. */
struct weft_type weft_turn_straight(const struct weft_type *type, const struct weft_turn *turn);
/* The one form of `raw`, which may move axes of extent 1. */
struct weft_turn weft_turn_settle(const struct weft_type *type, const struct weft_turn *raw);
/* Is a value of this type, turned by `turn`, also turned by `want`, axes of extent 1 aside? */
bool weft_turn_agrees(const struct weft_type *type, const struct weft_turn *turn, const struct weft_turn *want);
/* The turn of a transpose node's result. */
struct weft_turn weft_turn_of(const struct weft_graph *graph, weft_node transpose);

struct weft_sink_plan {
    struct weft_turn turn;      /* of the result, settled */
    struct weft_turn raw;       /* the same for what the node gives on straight forms, before axes of extent 1 move */
    struct weft_turn want;      /* how operands are to be turned */
    bool all;                   /* all operands are; else only operand 0 is, and the others stay */
    struct weft_attr attr[4];   /* attributes that name axes, as they are for straight forms */
    unsigned attrs;
    weft_dim list[4][2 * WEFT_MAX_RANK];
    struct weft_type stated;    /* of the result, for ops that state one */
};
/* Can node n be computed from straight forms? turn[i] is NULL where operand i is not turned; one is not. */
bool weft_sink_plan(struct weft_graph *graph, weft_node n, const struct weft_turn *const *turn,
                    struct weft_sink_plan *ret);
/* sink_operand.c: is the straight form of this operand, which is not turned, to be had at no cost? */
bool weft_sink_is_free(struct weft_graph *graph, weft_val operand, const struct weft_turn *want);
/* sink_reshape.c: the turn behind a reshape from `from`, turned by `turn`, to `to`; false if it mixes axes that
 * the straight form has apart. */
bool weft_sink_reshape(struct weft_dims *dims, const struct weft_type *from, const struct weft_turn *turn,
                       const struct weft_type *to, struct weft_turn *ret);
/* sink_operand.c: builds the straight form of n's result; straight[i] is that of operand i, or none where that is not
 * turned. */
weft_val weft_sink_build(struct weft_builder *b, weft_node n, const struct weft_sink_plan *plan,
                         const weft_val *straight);

#endif
