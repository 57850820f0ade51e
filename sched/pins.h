/* SPDX-License-Identifier: Apache-2.0 */
/* pins.h: which axes of the operands and results of a node run together, and which layouts go with each other.
 *
 * A pin is an operand or a result. The node runs over dimensions; an axis of a pin belongs to one of them. Two axes of
 * one dimension are walked by the same loop, so a layout that is good for one pin is good for the others in the order
 * of their common dimensions (where channels that go into a convolution and those that come out count as one):
 *
 *   %c: f32[8,16,32,32] = conv %x, %w        x: 0 1 2 3     c: 0 1 2 3
 *   %s: f32[8,32,32] = sum %c axes=[1]       c: 0 1 2 3     s: 0 2 3
 *   %t: f32[32,8,32] = transpose %s …        s: 1 0 2       t: 0 1 2
 *
 * c stored {0 2 3 1} goes with x {0 2 3 1}, with s {0 1 2}, and s {0 1 2} with t {1 0 2}. Rules of one op, in both
 * directions, are thus one table; only a reshape, which splits and merges axes, has rules of its own. */
#ifndef WEFT_PINS_H
#define WEFT_PINS_H

#include "ir/ir.h"

enum weft_pin_kind {
    WEFT_PIN_MAPPED,   /* its axes belong to dimensions, as told */
    WEFT_PIN_ANY,      /* any layout will do: small, or packed by the kernel in any case */
    WEFT_PIN_PLAIN,    /* row-major: nothing is known of the op, or it walks memory as such */
};
enum weft_pin_kind weft_pin_kind_of(const struct weft_graph *g, struct weft_pin pin);
#define WEFT_NO_DIM (-1)
/* ret_dim[axis]: the dimension that the axis belongs to. Result 0 of an op numbers its dimensions by its own axes
 * wherever the op has any; axes that no other pin shares have numbers from 100 on. Reshapes are WEFT_PIN_PLAIN. */
enum weft_pin_kind weft_pin_dims(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK]);
/* The same; and how many dimensions an axis becomes from that on: several where it is gathered, none of its own. */
enum weft_pin_kind weft_pin_spans(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK],
                                  int ret_span[WEFT_MAX_RANK]);

/* Where axes that the other pin does not have go: a new axis may lie anywhere that costs nothing. */
enum weft_new_axes { WEFT_NEW_OUTERMOST, WEFT_NEW_INNERMOST };
/* The layout, dense and canonical, that `to` has at no cost if `from`, a pin of the same node, is stored in `layout`;
 * false where the op says nothing about that, or where a reshape would not be a view. Padding, offsets and strides of
 * `layout` do not carry over, only the order of its axes and their splits. */
bool weft_carry_layout(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                       struct weft_pin to, enum weft_new_axes place, struct weft_layout *ret);
/* For both places: how many layouts there are. One, if there are no new axes. */
int weft_carry_layouts(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                       struct weft_pin to, struct weft_layout ret[2]);

#endif
