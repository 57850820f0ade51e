/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h: the values of symbols at a run: solved from the extents of inputs (solve.c), found by ops that count
 * (solve.c), and checked (sizes.c). */
#ifndef WEFT_SIZES_H
#define WEFT_SIZES_H

#include "ir/tensor.h"

/* The values that the hints give, by symbol; those of data at their bounds. */
int64_t *weft_hint_symbols(const struct weft_graph *graph, struct weft_arena *arena);
/* Solves the symbols from the extents of the inputs; checks every extent and range. On failure a message in
 * `message`. */
int weft_solve_symbols(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                       int64_t *symbols, char *message, size_t message_bytes);
/* Checks what depends on the values of the symbols: extents, counts of elements, slices. On failure fills `message`. */
bool weft_check_sizes(const struct weft_graph *graph, const int64_t *symbols, char *message, size_t message_bytes);
/* The same once node `found` has found sizes, for the nodes behind it as far as the next that finds some: asked after
 * each, it has looked at all. */
bool weft_check_sizes_found(const struct weft_graph *graph, weft_node found, const int64_t *symbols, char *message,
                            size_t message_bytes);
/* Records an error for each symbol that something needs and that no parameter's extents mention: a run could never know
 * it. Whether mentioned ones can be solved is seen when sizes are given. */
bool weft_check_symbols(const struct weft_graph *graph);
/* Sets the symbols that a WEFT_DATA op defines from counts, one for each that its attribute `extent` names. A count
 * above the bound is a failure: then the symbol has its bound, and the node must not be computed. */
bool weft_define_data(const struct weft_graph *graph, weft_node node, const int64_t *counts, int64_t *symbols,
                      struct weft_failure *failure);

#endif
