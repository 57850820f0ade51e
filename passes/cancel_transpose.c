/* SPDX-License-Identifier: Apache-2.0 */
/* cancel_transpose: merge neighbouring transposes and reshapes, drop those that change nothing.
 *
 *   %a: f32[8,4,2] = transpose %x perm=[2 1 0]        %b: f32[8,2,4] = transpose %x perm=[2 0 1]
 *   %b: f32[8,2,4] = transpose %a perm=[0 2 1]   →    return %b
 *   return %b
 *
 * Local rules over the walk of rules.c. Result axis i of a transpose is operand axis perm[i], so the two above take
 * operand axis first[second[i]] to result axis i. Reshapes keep the order of elements, so only the last counts. A
 * transpose that moves nothing but axes of extent 1 keeps the order of elements too: it is a reshape, and merges with
 * reshapes. A matmul that reads a value with its last two axes swapped says so in trans_a or trans_b, constants up to
 * WEFT_FOLDED_BYTES aside, which fold_const transposes.
 *
 * Why the inner one may have other users: the new node reads %x instead of %a, which costs the same and frees the
 * pair from each other.
 * Needs: nothing.
 * Not done: transposes with something in between, which is the business of sink_transpose; a matmul whose operand has
 * other axes moved as well. */
#include "passes/passes.h"
#include "sched/step.h"

static weft_node inner_of(const struct weft_graph *g, weft_node n) { return weft_def(g, weft_operand(g, n, 0)); }

static unsigned perm_at(const struct weft_graph *g, weft_node n, unsigned i)
{
    return (unsigned)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, i));
}

static bool is_identity(unsigned rank, const int *perm)
{
    for (unsigned i = 0; i < rank; i++)
        if (perm[i] != (int)i)
            return false;
    return true;
}

static weft_val transpose_transpose(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = inner_of(g, n);
    if (weft_opcode_of(g, inner) != WEFT_OP_transpose)
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, inner, 0);
    const unsigned rank = weft_type_of(g, x)->rank;
    int perm[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        perm[i] = (int)perm_at(g, inner, perm_at(g, n, i));
    if (is_identity(rank, perm) && weft_can_substitute(g, weft_result(g, n, 0), x))
        return weft_rewrite_to(r, x);
    return weft_rewrite_begin(r) ? weft_build_transpose(&r->build, x, perm) : WEFT_NO_VALUE;
}

/* Do the axes that have more than one element keep their order? */
static weft_val transpose_unit_axes(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_type from = *weft_type_of(g, x), to = *weft_type_of(g, weft_result(g, n, 0));
    unsigned previous = 0;
    bool moves = false;
    for (unsigned i = 0; i < from.rank; i++) {
        const unsigned axis = perm_at(g, n, i);
        moves |= axis != i;
        if (weft_dim_is(from.extent[axis], 1))
            continue;
        if (axis < previous)
            return WEFT_NO_VALUE;
        previous = axis;
    }
    return moves && weft_rewrite_begin(r) ? weft_build_reshape(&r->build, x, &to) : WEFT_NO_VALUE;
}

static weft_val reshape_reshape(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = inner_of(g, n);
    if (weft_opcode_of(g, inner) != WEFT_OP_reshape)
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, inner, 0), result = weft_result(g, n, 0);
    const struct weft_type to = *weft_type_of(g, result);
    if (weft_type_same(weft_type_of(g, x), &to) && weft_can_substitute(g, result, x))
        return weft_rewrite_to(r, x);
    return weft_rewrite_begin(r) ? weft_build_reshape(&r->build, x, &to) : WEFT_NO_VALUE;
}

/* A constant is better stored the other way round, once: fold_const. */
static bool swaps_last(const struct weft_graph *g, weft_node n)
{
    const unsigned rank = weft_type_of(g, weft_result(g, n, 0))->rank;
    if (weft_opcode_of(g, n) != WEFT_OP_transpose || rank < 2)
        return false;
    for (unsigned i = 0; i < rank; i++)
        if (perm_at(g, n, i) != (i + 2 < rank ? i : 2 * rank - 3 - i))
            return false;
    return true;
}

/* Numbers of a smaller type are packed as such, by rows. */
bool weft_stays_transposed(const struct weft_graph *g, weft_node n)
{
    const weft_val result = weft_result(g, n, 0), operand = weft_operand(g, n, 0);
    if (!swaps_last(g, n) || g->value[result.id].returns > 0 || weft_type_of(g, operand)->dtype != WEFT_F32 ||
        weft_constant_bytes(g, operand) <= WEFT_FOLDED_BYTES || weft_step_numbers(g, operand, 0) != WEFT_K_F32)
        return false;
    for (uint32_t use = g->value[result.id].first_use; use; use = g->slot[use - 1].next)
        if (weft_opcode_of(g, g->slot[use - 1].node) != WEFT_OP_matmul)
            return false;
    return true;
}

static weft_val matmul_swapped(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    for (unsigned i = 0; i < 2; i++) {
        const weft_node inner = weft_def(g, weft_operand(g, n, i));
        if (!swaps_last(g, inner) ||
            (weft_is_const(g, weft_operand(g, inner, 0)) && !weft_stays_transposed(g, inner)))
            continue;
        if (!weft_rewrite_begin(r))
            return WEFT_NO_VALUE;
        const int key = i == 0 ? WEFT_ATTR_trans_a : WEFT_ATTR_trans_b;
        const struct weft_attr attr = weft_attr_of_int(key, 1);
        if (weft_attr_int(g, n, key))
            weft_drop_attr(g, n, key);
        else
            weft_set_attr(g, n, &attr);
        weft_replace_operand(g, n, i, weft_operand(g, inner, 0));
        return weft_result(g, n, 0);
    }
    return WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"transpose_splat",     WEFT_OP_transpose, weft_view_of_splat,  "all elements are the same number"},
    {"reshape_splat",       WEFT_OP_reshape,   weft_view_of_splat,  "all elements are the same number"},
    {"transpose_same",      WEFT_OP_transpose, weft_transpose_same, "no axis moves"},
    {"reshape_same",        WEFT_OP_reshape,   weft_same_type,      "the extents are the same"},
    {"transpose_transpose", WEFT_OP_transpose, transpose_transpose, "two permutations are one"},
    {"reshape_reshape",     WEFT_OP_reshape,   reshape_reshape,     "only the last shape counts"},
    {"matmul_swapped",      WEFT_OP_matmul,    matmul_swapped,      "its operand is read transposed"},
    {"transpose_unit_axes", WEFT_OP_transpose, transpose_unit_axes, "only axes of extent 1 move"},
};

bool weft_pass_cancel_transpose(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules(graph, "cancel_transpose", sets, 1);
}
