/* SPDX-License-Identifier: Apache-2.0 */
/* sink_concat.h: what the files of sink_concat share. Nobody else includes it.
 *
 *   %c: f32[N,4,2] = concat %a, %b axis=2     axis 2; whole [N,4,2]; types [N,4,1], [N,4,1]
 *   %r: f32[N,8] = reshape %c                 axis 1 of the reader's is merged: axes 1 and 2, so from 1, split 2
 *   %y: f32[N,8] = mul %r, %s                 parts 0 and 1 of %s are pieces of it */
#ifndef WEFT_SINK_CONCAT_H
#define WEFT_SINK_CONCAT_H

#include "passes/split_concat.h"

enum { WEFT_PARTS_MOST = 4, WEFT_PARTS_DEPTH = 6 }; /* at most; ops taken in pieces, one in front of the other */

struct weft_parts {
    unsigned count, axis;         /* of the shape in which parts are computed: the reader's, or the concat's */
    weft_val part[WEFT_PARTS_MOST];    /* before the reshape, if there is one */
    struct weft_type type[WEFT_PARTS_MOST]; /* behind it, if the axis is kept */
    struct weft_type whole;       /* that shape */
    unsigned merged, from, split; /* `split` axes of it, from `from` on, are axis `merged` of the reader's; 0: all are
                                   * as they are there */
    struct weft_layout layout;    /* in which the reader's result lies, in that shape */
};

/* --- sink_concat_pieces.c ----------------------------------------------------------------------------------------- */

bool weft_parts_is_elementwise(const struct weft_graph *graph, weft_node node);
/* Stores a value in the order of axes of a layout, or of another value. */
weft_val weft_parts_store_in(struct weft_graph *graph, weft_val value, const struct weft_layout *layout);
weft_val weft_parts_store_like(struct weft_graph *graph, weft_val value, weft_val other);
/* Has a value the reader's shape where parts are computed in another? */
bool weft_parts_is_split(const struct weft_graph *graph, const struct weft_parts *parts, weft_val value);
/* How a value lies in the shape in which parts are computed; false: not as a view. */
bool weft_parts_layout(const struct weft_graph *graph, const struct weft_parts *parts, weft_val value,
                      struct weft_layout *ret);
/* A view of a value in another shape, if it has not that already. */
weft_val weft_parts_reshape(struct weft_rewriting *rewriting, weft_val value, const struct weft_type *type);
/* Has the value pieces that cost nothing, or no more than the value? `depth`: see WEFT_PARTS_DEPTH. */
bool weft_parts_has_pieces(const struct weft_graph *graph, weft_val value, const struct weft_parts *parts,
                          int depth);
weft_val weft_parts_piece(struct weft_rewriting *rewriting, weft_val value, const struct weft_parts *parts,
                         unsigned which, int depth);

#endif
