/* SPDX-License-Identifier: Apache-2.0 */
/* lower_recurrent.h: what the two files of the pass share: views and products as words, and one time of a cell. */
#ifndef WEFT_LOWER_RECURRENT_H
#define WEFT_LOWER_RECURRENT_H

#include "ir/recurrent.h"
#include "passes/passes.h"

/* What a time reads, in the graph that it stands in; h and c are the new states afterwards. */
struct weft_cell_step {
    weft_val h, c;                          /* [B,H]; c of an lstm */
    weft_val wx, r, bias, peephole, lengths; /* [B,G·H], [G·H,H], [H] of a gru, [3·H], i64[B]; or none */
    weft_val index;                         /* i64[], the number of the trip; asked for with lengths alone */
};
/* Writes one time of direction d before the builder's cursor; returns what is collected of it. */
weft_val weft_cell_take_step(struct weft_builder *b, const struct weft_recurrence *cell, unsigned d,
                             struct weft_cell_step *step);

/* [first, first + count) along an axis; `squeeze` drops the axis, of which one is taken. */
weft_val weft_cell_part(struct weft_builder *b, weft_val x, unsigned axis, weft_dim first, weft_dim count,
                        bool squeeze);
/* x · yᵀ. */
weft_val weft_cell_product(struct weft_builder *b, weft_val x, weft_val y);
/* x op y, with y along the last axis of x. */
weft_val weft_cell_with(struct weft_builder *b, int op, weft_val x, weft_val y);

#endif
