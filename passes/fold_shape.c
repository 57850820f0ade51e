/* SPDX-License-Identifier: Apache-2.0 */
/* fold_shape: replace integer tensors whose elements are known, also as expressions, by their elements.
 *
 *   %s: i64[2] = extents value=[N 4]           %s: i64[2] = extents value=[N 4]
 *   %n: i64[1] = slice %s start=[0] end=[1]    %m: i64[1] = extents value=[2*N]
 *   %m: i64[1] = mul %n, %two            →     return %m
 *   return %m
 *
 * The graph keeps, for every small integer tensor, its elements as expressions over the symbols where they are known
 * (ir/content.c). A node whose result is known becomes a const if all elements are numbers, else `extents`. Whatever
 * computed them loses a use and dies in dce, so the shape subgraphs of exported models vanish, with symbolic sizes as
 * well as with fixed ones.
 *
 * Why not fold_const: it needs numbers, and computes; here nothing is computed and sizes may be open.
 * Needs: nothing. Not done: tensors of more than WEFT_MAX_CONTENT elements; bools that depend on
 * symbols, for which `extents` has no form; expressions that some sizes take out of 62 bits, where the tensor wraps. */
#include "passes/passes.h"

static bool is_source(int op) { return op == WEFT_OP_const || op == WEFT_OP_extents; }

static bool all_numbers(const weft_dim *content, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!weft_dim_is_constant(content[i]))
            return false;
    return true;
}

/* Is every element the same as an expression and in 64 bits, for all sizes? */
static bool never_wraps(const struct weft_dims *dims, const weft_dim *content, int64_t count)
{
    const int64_t limit = INT64_C(1) << 61;
    for (int64_t i = 0; i < count; i++) {
        int64_t low, high;
        weft_dim_range(dims, content[i], &low, &high);
        if (low < -limit || high > limit)
            return false;
    }
    return true;
}

static weft_val build_numbers(struct weft_builder *b, const struct weft_type *type, const weft_dim *content,
                              int64_t count)
{
    char packed[WEFT_MAX_CONTENT * sizeof(int64_t)] = {0};
    for (int64_t i = 0; i < count; i++)
        weft_store_integer(type->dtype, packed, i, weft_dim_value(content[i]));
    return weft_build_const(b, type, packed);
}

static weft_val known(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val result = weft_result(g, n, 0);
    const weft_dim *content = g->value[result.id].content;
    const struct weft_type type = *weft_type_of(g, result);
    if (!content || is_source(weft_opcode_of(g, n)) || (weft_op_of(g, n)->traits & WEFT_PLACEMENT))
        return WEFT_NO_VALUE;
    const int64_t count = weft_dim_value(weft_type_elements(g->dims, &type));
    if (all_numbers(content, count))
        return weft_rewrite_begin(r) ? build_numbers(&r->build, &type, content, count) : WEFT_NO_VALUE;
    if (!weft_dtype_is_int(type.dtype) || weft_dtype_is_storage_only(type.dtype) ||
        !never_wraps(g->dims, content, count) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, (unsigned)count, content);
    return weft_build(&r->build, WEFT_OP_extents, 0, NULL, 1, &value, &type);
}

static const struct weft_rule rules[] = {
    {"known", WEFT_OP_NONE, known, "its elements are known for all sizes"},
};

bool weft_pass_fold_shape(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules(graph, "fold_shape", sets, 1);
}
