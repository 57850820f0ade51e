/* SPDX-License-Identifier: Apache-2.0 */
/* infer.h: what the files infer_*.c share. Each helper that returns bool reports through weft_infer_fail before it
 * returns false, so a rule reads as a chain of conditions. */
#ifndef WEFT_INFER_H
#define WEFT_INFER_H

#include "ir/ir.h"
#include "ir/rules.h"

/* "f32[N,3]" and "N + 1" in the arena, for messages. */
const char *weft_infer_type_text(struct weft_infer *infer, const struct weft_type *type);
const char *weft_infer_dim_text(struct weft_infer *infer, weft_dim d);

/* The word of an attribute, or the first legal one where it is absent. */
const char *weft_infer_word(const struct weft_infer *infer, int key);
/* An integer attribute that must be a constant in [low, high]. */
bool weft_infer_int(struct weft_infer *infer, int key, int64_t low, int64_t high, int64_t *ret);
/* Element i of a list, which must be a constant of at least `low`. */
bool weft_infer_int_at(struct weft_infer *infer, int key, unsigned i, int64_t low, int64_t *ret);
/* Attribute `axis` within a rank. */
bool weft_infer_axis(struct weft_infer *infer, int rank, int *ret);
/* A list, where it is present, has n elements. */
bool weft_infer_length(struct weft_infer *infer, int key, unsigned n);

enum weft_family {
    WEFT_FAMILY_REAL = 1,
    WEFT_FAMILY_INTEGER = 2,
    WEFT_FAMILY_BOOL = 4,
    WEFT_FAMILY_NUMERIC = 3,
    WEFT_FAMILY_ALL = 7
};
/* Operand's dtype belongs to the families and is not storage only. */
bool weft_infer_family(struct weft_infer *infer, unsigned operand, unsigned families);
/* Both operands have the same type (dtype alone with weft_infer_same_dtype). */
bool weft_infer_same(struct weft_infer *infer, unsigned a, unsigned b);
bool weft_infer_same_dtype(struct weft_infer *infer, unsigned a, unsigned b);
/* The dtype of a sum or contraction: `acc` where it is given, which must be of the same family and as wide. */
bool weft_infer_accumulator(struct weft_infer *infer, int operand_dtype, uint8_t *ret);
/* Element i of the attribute `extent`: a symbol declared as data(…). */
bool weft_infer_defined(struct weft_infer *infer, unsigned i, weft_dim *ret);
/* The dtype of a product of operands 0 and 1. */
bool weft_infer_product(struct weft_infer *infer, uint8_t *ret);
/* The lists of a window have the lengths that so many spatial axes need. */
bool weft_infer_window_lists(struct weft_infer *infer, unsigned spatial);
/* Number of windows of so many taps along spatial axis i of operand 0. */
bool weft_infer_windows(struct weft_infer *infer, unsigned i, unsigned spatial, weft_dim taps, bool round_up,
                        weft_dim *ret);
/* d is below `low` for all values of the symbols. */
bool weft_infer_below(const struct weft_infer *infer, weft_dim d, int64_t low);

#endif
