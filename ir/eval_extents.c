/* SPDX-License-Identifier: Apache-2.0 */
/* eval_extents.c: sizes that come out of data. An op that finds out how much it has to say defines a symbol for each
 * such size: its attribute `extent` names them, and its rule here counts, before its results get their extents. The
 * op's own rule then finds the same elements again: counting twice keeps results without gaps and every other rule
 * unaware of bounds. */
#include "ir/eval.h"

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

bool weft_define_data(const struct weft_graph *graph, weft_node node, const int64_t *counts, int64_t *symbols,
                      struct weft_failure *failure)
{
    const struct weft_attr *extent = weft_attr_find(graph, node, WEFT_ATTR_extent);
    bool fits = true;
    for (uint32_t i = 0; i < extent->count; i++) {
        uint32_t symbol;
        if (!weft_dim_is_symbol(graph->dims, extent->integers[i], &symbol))
            continue;
        const struct weft_symbol_info *info = weft_symbol_at(graph->dims, symbol);
        const int64_t bound = weft_dim_evaluate(graph->dims, info->bound, symbols);
        symbols[symbol] = counts[i] < bound ? counts[i] : bound;
        if (counts[i] > bound)
            weft_fail(failure, WEFT_ERR_BINDING, "%s finds %lld elements, but %s is declared as at most %lld",
                      weft_op_of(graph, node)->name, (long long)counts[i], info->name, (long long)bound);
        fits = fits && counts[i] <= bound;
    }
    return fits;
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
