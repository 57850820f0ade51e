/* SPDX-License-Identifier: Apache-2.0 */
/* form_parts.h: what the text of forms, their check and their counts agree on (form_parts.c). */
#ifndef WEFT_FORM_PARTS_H
#define WEFT_FORM_PARTS_H

#include "codegen/form.h"

#define WEFT_FORM_NOWHERE UINT32_MAX /* no stage, no op */

/* Is what came before all that one piece of a line needs of others, so that workers may share lines out? One scan, and
 * no folds. */
bool weft_form_may_share_scan(const struct weft_form *form);
/* Words of enum weft_reduce_op: what stands behind `fold` and `scan`. */
enum { WEFT_FORM_FOLDS = 5 };
extern const char *const weft_form_fold_words[WEFT_FORM_FOLDS];
/* Numbers that stand in parentheses behind the word of a MAP, from *ret_least to what is returned. */
unsigned weft_form_params(const char *word, unsigned *ret_least);
/* The op of ops.def that the word of a MAP names: "gelu" of "gelu.tanh"; 0 if there is none. */
int weft_form_opcode(const char *word);

/* Values of integers that the indices of a LOAD are: the first ones of `in`. */
static inline unsigned weft_form_indices(const struct weft_form_op *load)
{
    return load->ins - (load->falls_back ? 1u : 0u);
}
uint16_t weft_form_map_axes(const struct weft_index_map *map);
/* Do two loads or stores of one array mean the same elements? Indices that are loaded are compared as loads. */
bool weft_form_same_access(const struct weft_form *form, const struct weft_form_op *x, const struct weft_form_op *y);
/* The axes that the value of an op has, in a stage of these axes; of STORE and NEXT, those of the point. Its array, map
 * and operands exist. */
uint16_t weft_form_value_axes(const struct weft_form *form, const struct weft_form_op *op, uint16_t stage);
/* By op, its value's number; 0 of those that have a name or no value. Numbers that serve as names are passed over. */
const uint32_t *weft_form_numbers(const struct weft_form *form, struct weft_arena *arena);
/* "%m" or "%12", in the arena. */
const char *weft_form_label(const struct weft_form *form, uint32_t op, struct weft_arena *arena);
/* By stage, the innermost ALONG that it stands in, or WEFT_FORM_NOWHERE. NULL if they do not close; then *ret_culprit
 * is the one that does not. */
const uint32_t *weft_form_parents(const struct weft_form *form, struct weft_arena *arena, uint32_t *ret_culprit);
/* Does an instruction of this stage find the number of its piece on axis t? */
bool weft_form_knows_piece(const struct weft_form *form, const struct weft_form_phase *phase, const uint32_t *parent,
                           uint32_t stage, unsigned t);

/* Where a fault is: an op, or else a stage; WEFT_FORM_NOWHERE in both: the form. */
struct weft_form_place {
    uint32_t op, stage;
};
/* weft_form_fault, which says where. */
const char *weft_form_find_fault(const struct weft_form *form, struct weft_arena *arena, struct weft_form_place *ret);

static inline bool weft_form_has_value(const struct weft_form_op *op)
{
    return op->kind != WEFT_FORM_STORE && op->kind != WEFT_FORM_NEXT;
}

#endif
