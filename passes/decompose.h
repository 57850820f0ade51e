/* SPDX-License-Identifier: Apache-2.0 */
/* decompose.h: what the files of the pass decompose share: an activation as a chain of steps.
 *
 * All steps have one type, the operand's or f32 where that is narrower, and constants are uniform. */
#ifndef WEFT_DECOMPOSE_H
#define WEFT_DECOMPOSE_H

#include "passes/passes.h"

extern const struct weft_rule_set weft_decompose_activations, weft_decompose_pieces;

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
