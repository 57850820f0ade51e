/* SPDX-License-Identifier: Apache-2.0 */
/* fold_const: compute nodes whose operands are all constant, within a byte budget.
 *
 *   %a: f32[3] = const value=[1 2 3]                 %c: f32[3] = const value=[1.1 2.1 3.1]
 *   %b: f32[3] = const value=0.1               →     return %c
 *   %c: f32[3] = add %a, %b
 *   return %c
 *
 * Two rules over the walk of rules.c. `uniform`: an elementwise op on operands that are each one number everywhere is
 * computed once and stays one number, whatever its size, symbolic ones included. `evaluate`: anything else is
 * computed by the reference evaluator, so that folding and running agree by definition.
 *
 * A constant that must be stored costs memory for the life of the plan, where an intermediate would not. So
 * `evaluate` may add at most 64 KiB: the bytes of the result less those of stored operands that nothing else reads.
 * bcast and iota are never computed for their own sake: they take no memory as they are. Nor are transposed weights
 * that only products read, which say so themselves (cancel_transpose): packing them takes any strides, and a transposed
 * copy of all weights is more work than packing. Work is bounded as well, since the evaluator is slow. What is refused
 * gets a remark; where the graph is planned, kernels compute it (constants.h).
 *
 * Why not fold all and let dce sort it out: a model that builds a 1 GB mask from a vector would be loaded as 1 GB.
 * Needs: nothing.
 * Not done: operands that are broadcasts of constants (the op could move below the broadcast); results of `if` and
 * `loop`. */
#include "passes/passes.h"
#include "eval/eval.h"

#include <string.h>

#define BUDGET_WORK ((int64_t)1 << 24) /* elements read or multiplied */
#define MAX_OPERANDS 64

static bool operands_are_const(const struct weft_graph *g, weft_node n)
{
    const unsigned operands = g->node[n.id].operands;
    for (unsigned i = 0; i < operands; i++)
        if (!weft_is_const(g, weft_operand(g, n, i)))
            return false;
    return operands > 0 && operands <= MAX_OPERANDS;
}

/* --- uniform operands ------------------------------------------------------------------------------------------- */

static void pack(int dtype, const struct weft_element *element, void *ret_packed)
{
    if (element->is_integer)
        weft_store_integer(dtype, ret_packed, 0, element->integer);
    else
        weft_store_real(dtype, ret_packed, 0, element->real);
}

static weft_val uniform(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    if (!(weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || !operands_are_const(g, n))
        return WEFT_NO_VALUE;
    int64_t element[3] = {0}, result = 0;
    struct weft_tensor in[3];
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        const weft_val operand = weft_operand(g, n, i);
        struct weft_element value;
        if (!weft_const_splat(g, operand, &value))
            return WEFT_NO_VALUE;
        pack(weft_type_of(g, operand)->dtype, &value, &element[i]);
        in[i] = (struct weft_tensor){.data = &element[i], .dtype = weft_type_of(g, operand)->dtype};
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    struct weft_tensor out = {.data = &result, .dtype = type.dtype};
    struct weft_eval eval = {.graph = g, .node = n, .in = in, .out = &out, .context = g->context};
    if (!weft_eval_node(&eval))
        weft_out_of_memory(g->context);
    return weft_build_number(&r->build, &type, &result);
}

/* --- everything else -------------------------------------------------------------------------------------------- */

static int64_t elements_of(const struct weft_graph *g, weft_val v)
{
    return weft_dim_value(weft_type_elements(g->dims, weft_type_of(g, v)));
}

int64_t weft_node_work(const struct weft_graph *g, weft_node n)
{
    const int64_t results = elements_of(g, weft_result(g, n, 0));
    int64_t work = results;
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        if (__builtin_add_overflow(work, elements_of(g, weft_operand(g, n, i)), &work))
            return INT64_MAX;
    if (!(weft_op_of(g, n)->traits & WEFT_CONTRACTION))
        return work;
    const unsigned last = g->node[n.id].operands > 1 ? 1 : 0; /* det and dft have one */
    const struct weft_type *weights = weft_type_of(g, weft_operand(g, n, last));
    int64_t sum = 1; /* an upper bound: all of the second operand but its smallest axis */
    int64_t smallest = INT64_MAX;
    for (unsigned i = 0; i < weights->rank; i++) {
        const int64_t extent = weft_dim_value(weights->extent[i]);
        sum *= extent;
        smallest = extent < smallest ? extent : smallest;
    }
    sum /= smallest > 0 ? smallest : 1;
    return results > 0 && sum > INT64_MAX / results ? INT64_MAX : results * sum;
}

/* Stored operands that die with this node make room for its result. */
static int64_t freed_bytes(const struct weft_graph *g, weft_node n)
{
    int64_t bytes = 0;
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        if (weft_has_one_use(g, weft_operand(g, n, i)))
            bytes += weft_constant_bytes(g, weft_operand(g, n, i));
    return bytes;
}

static bool within_budget(struct weft_graph *g, weft_node n)
{
    const weft_val result = weft_result(g, n, 0);
    const int64_t bytes = weft_value_bytes(g, result), freed = freed_bytes(g, n), work = weft_node_work(g, n);
    if (bytes - freed > WEFT_FOLDED_BYTES)
        weft_refuse(g, "fold_const.evaluate", result,
                    "the result takes %lld bytes and frees %lld; %lld more are allowed", (long long)bytes,
                    (long long)freed, (long long)WEFT_FOLDED_BYTES);
    else if (work > BUDGET_WORK)
        weft_refuse(g, "fold_const.evaluate", result, "it takes %lld steps; %lld are allowed", (long long)work,
                    (long long)BUDGET_WORK);
    else
        return true;
    return false;
}

/* A tensor over the elements of a const: in place, or one element with strides 0, or written to scratch memory. */
static struct weft_tensor tensor_of(struct weft_graph *g, weft_val constant)
{
    const struct weft_type *type = weft_type_of(g, constant);
    struct weft_tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        tensor.extent[i] = weft_dim_value(type->extent[i]);
    struct weft_element element;
    if (!weft_const_data(g, constant) && weft_const_splat(g, constant, &element)) {
        tensor.data = weft_new(&g->root->scratch, int64_t, 1);
        pack(type->dtype, &element, tensor.data);
        return tensor;
    }
    weft_tensor_dense(&tensor);
    tensor.data = (void *)weft_elements(g, constant); /* the evaluator does not write to operands */
    return tensor;
}

static weft_val evaluate(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const uint32_t never = WEFT_SOURCE | WEFT_CONTROL | WEFT_PLACEMENT | WEFT_OPAQUE;
    if ((weft_op_of(g, n)->traits & never) || weft_opcode_of(g, n) == WEFT_OP_bcast || !operands_are_const(g, n) ||
        !weft_axes_are_constant(g, n) || weft_stays_transposed(g, n) || !within_budget(g, n) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    struct weft_tensor in[MAX_OPERANDS];
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        in[i] = tensor_of(g, weft_operand(g, n, i));
    const weft_val result = weft_result(g, n, 0);
    const struct weft_type type = *weft_type_of(g, result);
    struct weft_tensor out = {.dtype = type.dtype, .rank = type.rank};
    for (int i = 0; i < type.rank; i++)
        out.extent[i] = weft_dim_value(type.extent[i]);
    weft_tensor_dense(&out);

    struct weft_blob *blob = weft_blob_new(g->context, (size_t)weft_value_bytes(g, result));
    if (!blob)
        weft_out_of_memory(g->context);
    weft_graph_hold(g, blob);
    out.data = blob->data;
    int64_t *symbols = weft_new(&g->root->scratch, int64_t, weft_symbol_count(g->dims)); /* none is asked for */
    struct weft_eval eval = {.graph = g, .node = n, .symbols = symbols, .in = in, .out = &out, .context = g->context};
    if (!weft_eval_node(&eval))
        weft_out_of_memory(g->context);
    return weft_build_blob(&r->build, &type, blob);
}

static const struct weft_rule rules[] = {
    {"uniform",  WEFT_OP_NONE, uniform,  "all elements are the same known number"},
    {"evaluate", WEFT_OP_NONE, evaluate, "all operands are known"},
};

bool weft_pass_fold_const(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules(graph, "fold_const", sets, 1);
}
