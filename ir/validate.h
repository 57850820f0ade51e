/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h: rules that have files of their own. */
#ifndef WEFT_VALIDATE_H
#define WEFT_VALIDATE_H

#include "ir/ir.h"

/* validate_data.c */
/* No extent is negative whatever the symbols are. */
bool weft_extents_can_be(const struct weft_graph *g, const struct weft_type *type);
/* The first broken rule of sizes that come out of data, or NULL; *ret_node is where. */
const char *weft_find_data_error(const struct weft_graph *graph, struct weft_arena *arena, weft_node *ret_node);

#endif
