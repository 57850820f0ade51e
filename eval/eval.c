/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c: the reference evaluator: node after node, each by the plain rule of its op, each result rounded as it is
 * stored.
 *
 * It is the definition of correct, and the runtime's kernel of last resort; so a node's evaluation touches nothing but
 * its arguments and scratch memory, and any number of threads may evaluate at once. Values are packed and live from
 * their definition to their last use; constants with bytes are read where they are. */
#include "ir/custom.h"
#include "eval/rule.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void (*const rule_of[WEFT_OP_COUNT])(struct weft_eval *) = {
#define OP(name, min, max, results, traits, infer, index, walked, ...) [WEFT_OP_##name] = weft_eval_##name,
#include "ir/ops.def"
#undef OP
};

/* Of an odd number of 4-bit elements half a byte is left over; it is 0 and not what lay in memory, so that results that
 * are equal have equal bytes. */
static void clear_unused(const struct weft_tensor *tensor)
{
    const int64_t count = weft_tensor_count(tensor);
    if (weft_dtype_bits(tensor->dtype) < 8 && count % 2 == 1)
        ((uint8_t *)tensor->data)[count / 2] &= 15;
}

bool weft_eval_node(struct weft_eval *eval)
{
    eval->failed = false;
    rule_of[weft_opcode_of(eval->graph, eval->node)](eval);
    for (unsigned i = 0; i < eval->graph->node[eval->node.id].results && !eval->failed; i++)
        clear_unused(&eval->out[i]);
    return !eval->failed;
}

/* --- a graph ----------------------------------------------------------------------------------------------- */

struct value_state {
    struct weft_tensor tensor;
    uint32_t uses; /* still to come, returns included */
    bool owned;
};

struct run {
    const struct weft_graph *graph;
    int64_t *symbols;
    struct weft_context *context;
    struct weft_failure *failure;
    struct value_state *value;
    struct weft_tensor *argument; /* operands, then results, of the node at hand */
    uint32_t arguments;
};

static void release_value(struct run *run, struct value_state *state)
{
    if (state->owned)
        weft_release(run->context, state->tensor.data, weft_tensor_bytes(&state->tensor));
    state->owned = false;
}

static void use_value(struct run *run, weft_val value)
{
    struct value_state *state = &run->value[value.id];
    if (--state->uses == 0)
        release_value(run, state);
}

/* Bytes that stand in memory already need no copy. */
static bool borrow_const(struct run *run, weft_node node)
{
    const weft_val result = weft_result(run->graph, node, 0);
    if (weft_opcode_of(run->graph, node) != WEFT_OP_const || !weft_const_data(run->graph, result))
        return false;
    run->value[result.id].tensor.data = (void *)(uintptr_t)weft_const_data(run->graph, result); /* only read */
    return true;
}

/* Extents that depend on elements become known when the node that defines them has its operands. */
static bool define_symbols(struct run *run, weft_node node)
{
    if (!(weft_op_of(run->graph, node)->traits & WEFT_DATA))
        return true;
    struct weft_eval eval = {.graph = run->graph,
                             .node = node,
                             .symbols = run->symbols,
                             .context = run->context,
                             .failure = run->failure,
                             .in = run->argument};
    char message[sizeof run->failure->message];
    if (!weft_eval_define_symbols(&eval))
        return false;
    const bool fits = weft_check_sizes_found(run->graph, node, run->symbols, message, sizeof message);
    if (!fits)
        weft_fail(run->failure, WEFT_ERR_BINDING, "%s", message);
    return fits;
}

static bool run_node(struct run *run, weft_node node)
{
    const struct weft_graph *graph = run->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    for (unsigned i = 0; i < info->operands; i++)
        run->argument[i] = run->value[weft_operand(graph, node, i).id].tensor;
    if (!define_symbols(run, node))
        return false;
    for (unsigned i = 0; i < info->results; i++) {
        const weft_val result = weft_result(graph, node, i);
        weft_tensor_of(graph, weft_type_of(graph, result), run->symbols, &run->value[result.id].tensor);
    }
    if (borrow_const(run, node))
        return true;
    for (unsigned i = 0; i < info->results; i++) {
        struct value_state *state = &run->value[info->first_result + i];
        state->tensor.data = weft_allocate(run->context, weft_tensor_bytes(&state->tensor));
        if (!state->tensor.data)
            return false;
        state->owned = true;
        run->argument[info->operands + i] = state->tensor;
    }
    struct weft_eval eval = {.graph = graph,
                             .node = node,
                             .symbols = run->symbols,
                             .context = run->context,
                             .failure = run->failure,
                             .in = run->argument,
                             .out = run->argument + info->operands};
    if (!weft_eval_node(&eval))
        return false;
    for (unsigned i = 0; i < info->operands; i++)
        use_value(run, weft_operand(graph, node, i));
    for (unsigned i = 0; i < info->results; i++)
        if (run->value[info->first_result + i].uses == 0)
            release_value(run, &run->value[info->first_result + i]);
    return true;
}

static bool is_stopped(const struct run *run)
{
    return run->failure && run->failure->stop && atomic_load_explicit(run->failure->stop, memory_order_relaxed);
}

static uint32_t most_arguments(const struct weft_graph *graph)
{
    uint32_t most = 1;
    weft_foreach_node(graph, node)
    {
        const uint32_t here = (uint32_t)weft_node_of(graph, node)->operands + weft_node_of(graph, node)->results;
        most = here > most ? here : most;
    }
    return most;
}

/* Results get their extents when all symbols are known, and memory where the caller gave none; false if it was refused.
 */
static bool open_results(const struct run *run, struct weft_tensor *out)
{
    for (uint32_t i = 0; i < run->graph->returns; i++) {
        void *data = out[i].data;
        weft_tensor_of(run->graph, weft_type_of(run->graph, run->graph->ret[i].value), run->symbols, &out[i]);
        out[i].data = data ? data : weft_allocate(run->context, weft_tensor_bytes(&out[i]));
        if (!out[i].data)
            return false;
    }
    return true;
}

static bool run_nodes(struct run *run, const struct weft_tensor *in, struct weft_tensor *out)
{
    const struct weft_graph *graph = run->graph;
    if (is_stopped(run)) /* there may be no node to ask for each trip of a loop */
        return false;
    for (uint32_t i = 1; i < graph->values; i++)
        run->value[i] = (struct value_state){.uses = graph->value[i].uses + graph->value[i].returns};
    for (uint32_t i = 0; i < graph->params; i++)
        run->value[graph->param[i].id].tensor = in[i];
    weft_foreach_node(graph, node)
        if (is_stopped(run) || !run_node(run, node))
            return false;
    if (graph->root == graph && !open_results(run, out))
        return false;
    for (uint32_t i = 0; i < graph->returns; i++)
        weft_tensor_copy(&out[i], 0, &run->value[graph->ret[i].value.id].tensor, 0);
    return true;
}

bool weft_eval_body(const struct weft_graph *graph, int64_t *symbols, struct weft_context *context,
                    const struct weft_tensor *in, struct weft_tensor *out, struct weft_failure *failure)
{
    struct run run = {.graph = graph,
                      .symbols = symbols,
                      .context = context,
                      .failure = failure,
                      .arguments = most_arguments(graph)};
    const size_t value_bytes = graph->values * sizeof *run.value, argument_bytes = run.arguments * sizeof *run.argument;
    run.value = weft_allocate(context, value_bytes);
    run.argument = weft_allocate(context, argument_bytes);
    bool done = false;
    if (run.value && run.argument) {
        memset(run.value, 0, value_bytes);
        done = run_nodes(&run, in, out);
        for (uint32_t i = 1; i < graph->values; i++)
            release_value(&run, &run.value[i]);
    }
    weft_release(context, run.argument, argument_bytes);
    weft_release(context, run.value, value_bytes);
    return done;
}

/* --- entry points ------------------------------------------------------------------------------------------ */

static int out_of_memory(const struct weft_graph *graph)
{
    weft_error(graph->context, WEFT_ERR_NOMEM, NULL, "out of memory");
    return WEFT_ERR_NOMEM;
}

/* Memory that the caller gives is as large as the caller says: so what is said must be right. Where an extent depends
 * on data, the tensor says the most that it can be. */
static bool check_output(const struct weft_graph *graph, uint32_t i, const int64_t *symbols,
                         const struct weft_tensor *given)
{
    struct weft_tensor right;
    weft_tensor_of(graph, weft_type_of(graph, graph->ret[i].value), symbols, &right);
    bool same = given->dtype == right.dtype && given->rank == right.rank;
    for (int k = 0; same && k < right.rank; k++)
        same = given->extent[k] == right.extent[k];
    if (!given->data || same)
        return true;
    struct weft_text text = {.context = graph->context, .arena = graph->arena};
    weft_type_print(graph->dims, weft_type_of(graph, graph->ret[i].value), &text);
    weft_error(graph->context, WEFT_ERR_BINDING, &(struct weft_place){.file = graph->file, .where = graph->name},
               "the tensor for result %u states another dtype, rank or extents than %s has for these inputs", i,
               text.data);
    return false;
}

static int eval_solved(const struct weft_graph *graph, int64_t *symbols, const struct weft_tensor *in,
                       struct weft_tensor *out)
{
    for (uint32_t i = 0; i < graph->returns; i++)
        if (!check_output(graph, i, symbols, &out[i]))
            return WEFT_ERR_BINDING;
    const size_t bytes = graph->returns * sizeof *out;
    struct weft_tensor *own = weft_allocate(graph->context, bytes);
    if (!own)
        return out_of_memory(graph);
    memset(own, 0, bytes);
    for (uint32_t i = 0; i < graph->returns; i++)
        own[i].data = out[i].data;
    struct weft_failure failure = {0};
    const bool done = weft_eval_body(graph, symbols, graph->context, in, own, &failure);
    for (uint32_t i = 0; i < graph->returns; i++) {
        const bool allocated = !out[i].data && own[i].data;
        if (done)
            out[i] = own[i];
        if (done && allocated)
            weft_context_hold(graph->context); /* until weft_tensor_free */
        else if (allocated)
            weft_release(graph->context, own[i].data, weft_tensor_bytes(&own[i]));
    }
    weft_release(graph->context, own, bytes);
    if (done || failure.status == WEFT_OK)
        return done ? WEFT_OK : out_of_memory(graph);
    weft_error(graph->context, failure.status, &(struct weft_place){.file = graph->file, .where = graph->name}, "%s",
               failure.message);
    return failure.status;
}

int weft_eval_graph(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                    struct weft_tensor *out, uint32_t out_count)
{
    struct weft_context *context = graph->context;
    if (out_count != graph->returns) {
        weft_error(context, WEFT_ERR_BINDING, &(struct weft_place){.file = graph->file, .where = graph->name},
                   "the graph has %u results, but %u are asked for", graph->returns, out_count);
        return WEFT_ERR_BINDING;
    }
    if (!weft_custom_check(graph))
        return WEFT_ERR_UNSUPPORTED;
    const size_t bytes = weft_symbol_count(graph->dims) * sizeof(int64_t);
    int64_t *symbols = weft_allocate(context, bytes);
    if (!symbols)
        return out_of_memory(graph);
    char message[512];
    int status = weft_solve_symbols(graph, in, in_count, symbols, message, sizeof message);
    if (status == WEFT_OK && !weft_check_sizes(graph, symbols, message, sizeof message))
        status = WEFT_ERR_BINDING;
    if (status == WEFT_OK)
        status = eval_solved(graph, symbols, in, out);
    else
        weft_error(context, status, &(struct weft_place){.file = graph->file, .where = graph->name}, "%s", message);
    weft_release(context, symbols, bytes);
    return status;
}

struct evaluation {
    const struct weft_graph *graph;
    const struct weft_tensor *in;
    struct weft_tensor *out;
    size_t in_count, out_count;
};

static int evaluate(void *argument)
{
    const struct evaluation *e = argument;
    return weft_eval_graph(e->graph, e->in, (uint32_t)e->in_count, e->out, (uint32_t)e->out_count);
}

int weft_evaluate(const struct weft_graph *graph, const struct weft_tensor *inputs, size_t input_count,
                  struct weft_tensor *outputs, size_t output_count)
{
    if (!graph || (input_count && !inputs) || (output_count && !outputs) || input_count > UINT32_MAX ||
        output_count > UINT32_MAX)
        return weft_missing(graph ? graph->context : NULL);
    return weft_protected_graph(
        graph, evaluate,
        &(struct evaluation){
            .graph = graph, .in = inputs, .out = outputs, .in_count = input_count, .out_count = output_count});
}
