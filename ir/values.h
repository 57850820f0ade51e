/* SPDX-License-Identifier: Apache-2.0 */
/* values.h: lists of named values (weft_custom_value), which a custom op hands to its function: `with=[axis=1]`. */
#ifndef WEFT_VALUES_H
#define WEFT_VALUES_H

#include "ir/graph.h"

#define WEFT_MOST_VALUES 256
#define WEFT_MOST_ARRAY 65536 /* elements of an array, or of a list */

/* A letter or _, then letters, digits and _? */
bool weft_values_is_name(const char *name, size_t length);
/* What is wrong with a list from outside, as the end of a sentence; NULL: nothing. */
const char *weft_values_check(const struct weft_custom_value *values, size_t count);
/* A right list in the arena's memory, arrays packed; lists without elements are of integers then. */
const struct weft_custom_value *weft_values_copy(struct weft_arena *arena, const struct weft_custom_value *values,
                                                 size_t count);
/* Numbers count by their bits. */
bool weft_values_equal(const struct weft_custom_value *a, const struct weft_custom_value *b, size_t count);
/* [axis=1 mode="fast"] */
void weft_values_print(const struct weft_custom_value *values, size_t count, struct weft_text *text);
/* The same for the eye: about so many bytes, and "…" for the rest. */
void weft_values_print_some(const struct weft_custom_value *values, size_t count, size_t bytes, struct weft_text *text);

#endif
