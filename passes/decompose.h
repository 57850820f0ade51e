/* SPDX-License-Identifier: Apache-2.0 */
/* decompose.h: what the files of the pass decompose share: f32 in the place of 16 bits, an activation as a chain. */
#ifndef WEFT_DECOMPOSE_H
#define WEFT_DECOMPOSE_H

#include "passes/passes.h"

extern const struct weft_rule_set weft_decompose_activations, weft_decompose_attention, weft_decompose_pieces,
                                  weft_decompose_narrow, weft_decompose_orders, weft_decompose_rounding;

/* The first result of the node's op on f32: its operands of 16-bit floats are widened. */
weft_val weft_build_wide(struct weft_builder *b, weft_node node);
/* What a loose cast rounds, or none. */
weft_val weft_before_rounding(const struct weft_graph *graph, weft_val v);

/* decompose_phases.c: can this transposed convolution be computed phase by phase? If so, its result; `mirror`: its
 * weights as [o, c / groups, taps…], taps in reverse order. */
bool weft_has_phases(const struct weft_graph *graph, weft_node node);
weft_val weft_build_phases(struct weft_builder *b, weft_node node, weft_val mirror);

/* Steps of an activation. All have one type, the operand's or f32 where that is narrower; constants are uniform. */
struct weft_chain {
    struct weft_builder *b;
    struct weft_type type;
    weft_val x;
};
/* False if the rewrite is not permitted; nothing was built then. */
bool weft_chain_begin(struct weft_rewriting *rewriting, weft_node node, struct weft_chain *chain);
/* The value in the type of the node's result. */
weft_val weft_chain_end(struct weft_rewriting *rewriting, weft_node node, struct weft_chain *chain, weft_val value);
weft_val weft_chain_number(struct weft_chain *chain, double value);
weft_val weft_chain_apply(struct weft_chain *chain, int op, weft_val x, weft_val y);
weft_val weft_chain_with(struct weft_chain *chain, int op, weft_val x, double value);
weft_val weft_chain_select(struct weft_chain *chain, weft_val condition, weft_val x, weft_val y);

#endif
