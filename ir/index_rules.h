/* SPDX-License-Identifier: Apache-2.0 */
/* index_rules.h: what rules of index maps are written with (index.c), and the rules that the column `index` of ops.def
 * names. Several ops share a rule, so a prototype repeats.
 *
 * A rule adds the axes of the space in a fixed order, and then says where they stand in the pin that is asked for:
 *
 *   for (int i = 0; i < rank; i++)
 *       at[i] = weft_space_add(r, extent[i], WEFT_AXIS_PARALLEL);
 *   if (r->pin == NULL) return;
 *   weft_index_term(r, 2, at[0], stride); */
#ifndef WEFT_INDEX_RULES_H
#define WEFT_INDEX_RULES_H

#include "ir/index.h"

/* Adds an axis; its number. */
int weft_space_add(struct weft_indexing *r, weft_dim extent, enum weft_axis_role role);
/* A reduced axis in the place of a parallel one. */
int weft_space_add_beside(struct weft_indexing *r, weft_dim extent, int beside);
/* The axes of result 0 in order, all parallel: axis i of the space is axis i of the result. */
void weft_space_add_result(struct weft_indexing *r);
/* An axis that need not be there: -1 if its extent is 1, and then terms of it are left out. */
int weft_space_add_factor(struct weft_indexing *r, weft_dim extent, enum weft_axis_role role);

/* Is this the pin that is asked for? */
bool weft_index_is_result(const struct weft_indexing *r);
bool weft_index_is_operand(const struct weft_indexing *r, unsigned i);
const struct weft_type *weft_index_type(const struct weft_indexing *r, unsigned operand);
const struct weft_type *weft_index_result_type(const struct weft_indexing *r);

/* Adds step · point[axis] to the index along `at` of the pin; an axis of -1 adds nothing. */
void weft_index_term(struct weft_indexing *r, int at, int axis, weft_dim step);
/* Of the pin: its axis `at` is the axis of the space. */
static inline void weft_index_is(struct weft_indexing *r, int at, int axis)
{
    weft_index_term(r, at, axis, weft_dim_of(1));
}
/* Of the pin: its axes are those of the result. */
void weft_index_as_result(struct weft_indexing *r);
void weft_index_offset(struct weft_indexing *r, int at, weft_dim base);
/* Element i of a list attribute: a number, or an expression. */
int weft_index_attr(const struct weft_indexing *r, int key, int i);
weft_dim weft_index_attr_dim(const struct weft_indexing *r, int key, int i);

#define OP(name, min, max, results, traits, infer, index, walked, ...) void weft_index_##index(struct weft_indexing *r);
#include "ir/ops.def"
#undef OP

#endif
