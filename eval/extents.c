/* SPDX-License-Identifier: Apache-2.0 */
/* extents.c: sizes that come out of data. An op that finds out how much it has to say defines a symbol for each
 * such size: its attribute `extent` names them, and its rule here counts, before its results get their extents. The
 * op's own rule then finds the same elements again: counting twice keeps results without gaps and every other rule
 * unaware of bounds. */
#include "eval/rule.h"

#define MOST_SYMBOLS 4

/* A row for each op of the trait WEFT_DATA: weft_extents_<op> writes counts[i] for the symbol extent[i]. */
static const struct {
    int opcode;
    weft_extents_fn *rule;
} rules[] = {
    {WEFT_OP_nonzero, weft_extents_nonzero},
    {WEFT_OP_compress, weft_extents_compress},
    {WEFT_OP_unique, weft_extents_unique},
    {WEFT_OP_nms, weft_extents_nms},
};
enum {
    RULES = sizeof rules / sizeof *rules,
    DATA_OPS = 0
#define OP(name, min, max, results, traits, infer, index, walked, ...) + (((traits) & WEFT_DATA) != 0)
#include "ir/ops.def"
#undef OP
};
_Static_assert((int)RULES == (int)DATA_OPS, "each op of the trait WEFT_DATA has a row in `rules`");

static weft_extents_fn *rule_of(int opcode)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].opcode == opcode)
            return rules[i].rule;
    return NULL;
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
