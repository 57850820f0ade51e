/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat.h: what the files of split_concat share. Nobody else includes it. */
#ifndef WEFT_SPLIT_CONCAT_H
#define WEFT_SPLIT_CONCAT_H

#include "passes/passes.h"

/* What a slice takes: elements start, start + step, … before end, along each axis of its operand. */
struct weft_cut {
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
};
void weft_cut_all(const struct weft_type *type, struct weft_cut *ret);
void weft_read_cut(const struct weft_graph *g, weft_node slice, struct weft_cut *ret);
weft_val weft_build_slice(struct weft_builder *b, weft_val x, const struct weft_cut *cut);
/* a <= b for all values of the symbols? */
bool weft_dim_at_most(struct weft_dims *dims, weft_dim a, weft_dim b);

/* Does the second slice of one value begin where the first ends along the axis, and take the same elsewhere? */
bool weft_cuts_meet(const struct weft_cut *a, const struct weft_cut *b, unsigned rank, unsigned axis);

/* Operands [first, last] of a concat hold all that is cut; `before` is where the first one begins. */
struct weft_holders {
    unsigned first, last;
    weft_dim before;
};
/* Which ones hold elements [start, end) along the concat's axis, as far as that is known for all sizes; what it finds
 * may hold more than that. */
bool weft_find_holders(struct weft_graph *g, weft_node concat, unsigned axis, weft_dim start, weft_dim end,
                       struct weft_holders *ret);

extern const struct weft_rule_set weft_split_concat_joins; /* split_concat_join.c */
extern const struct weft_rule_set weft_split_concat_slices; /* split_concat_slices.c */
extern const struct weft_rule_set weft_split_concat_views; /* split_concat_views.c */

#endif
