/* SPDX-License-Identifier: Apache-2.0 */
/* extents.c: sizes that come out of data. An op that finds out how much it has to say defines a symbol for each
 * such size: its attribute `extent` names them, and its rule here counts, before its results get their extents. The
 * op's own rule then finds the same elements again: counting twice keeps results without gaps and every other rule
 * unaware of bounds. */
#include "eval/rule.h"

#define MOST_SYMBOLS 4

/* One case an op of the trait WEFT_DATA: weft_extents_<op> writes counts[i] for the symbol extent[i]. */
static weft_extents_fn *rule_of(int opcode)
{
    switch (opcode) {
    case WEFT_OP_nonzero:
        return weft_extents_nonzero;
    case WEFT_OP_compress:
        return weft_extents_compress;
    case WEFT_OP_unique:
        return weft_extents_unique;
    case WEFT_OP_nms:
        return weft_extents_nms;
    default:
        return NULL;
    }
}

bool weft_eval_define_symbols(struct weft_eval *eval)
{
    const struct weft_attr *extent = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_extent);
    weft_extents_fn *rule = rule_of(weft_opcode_of(eval->graph, eval->node));
    weft_assert(rule && extent && extent->count <= MOST_SYMBOLS);
    int64_t counts[MOST_SYMBOLS] = {0};
    eval->failed = false;
    rule(eval, counts);
    return !eval->failed && weft_define_data(eval->graph, eval->node, counts, eval->symbols, eval->failure);
}
