/* SPDX-License-Identifier: Apache-2.0 */
/* hoist_slice.h: which part of its operands an op needs for a part of its result (hoist_slice_needs.c), for the pass
 * that computes only what is read (hoist_slice.c). Parts are cuts of each axis: a first index, an end and a step. */
#ifndef WEFT_HOIST_SLICE_H
#define WEFT_HOIST_SLICE_H

#include "passes/split_concat.h"

enum { WEFT_PART_OPERANDS = 4 };

/* What an op needs of its operands. */
struct weft_part_needs {
    struct weft_cut cut[WEFT_PART_OPERANDS];
    bool pads;                       /* windows have other borders then */
    weft_dim pad[2 * WEFT_MAX_RANK];
};

/* Does a cut leave axis i of a type as it is? */
bool weft_part_is_whole(const struct weft_type *type, const struct weft_cut *cut, int i);
bool weft_part_contracts(const struct weft_graph *g, weft_node n);
/* Is it an op that can compute a part of its result from parts of its operands, for some cuts at least? */
bool weft_part_is_computed(const struct weft_graph *g, weft_node n);
/* What an op needs of its operands for this part of its result; false where that is no cut of each. */
bool weft_part_find_needs(struct weft_graph *g, weft_node n, const struct weft_cut *cut, struct weft_part_needs *ret);
/* The part of a reshape's operand that is this part of its result; false where that is no cut. */
bool weft_part_reshaped(struct weft_graph *g, weft_node reshape, const struct weft_cut *cut,
                               struct weft_cut *ret);

#endif
