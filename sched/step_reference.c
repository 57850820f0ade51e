/* SPDX-License-Identifier: Apache-2.0 */
/* step_reference.c: steps of the reference evaluator, which computes whatever no kernel takes; so there is always an
 * answer. Kernels that find out too late that sizes are none of theirs hand their step to it. */
#include "eval/eval.h"
#include "sched/step.h"

static void bind_reference(struct weft_bind *bind, void *descriptor) {}

/* Operands and results keep their strides: the evaluator reads and writes them in place. `define`: only find out the
 * sizes that the node defines; its results have no extents yet. */
static void evaluate(struct weft_call *call, bool define)
{
    const struct weft_graph *g = call->graph;
    const struct weft_node_info *info = &g->node[call->step->node.id];
    enum { SMALL = 16 };
    struct weft_tensor few[SMALL];
    const unsigned count = info->operands + (unsigned)info->results;
    struct weft_tensor *all = count <= SMALL ? few : weft_allocate(g->context, count * sizeof *all);
    if (!all) {
        *call->failed = true;
        return;
    }
    for (unsigned i = 0; i < info->operands; i++)
        all[i] = call->tensor(call, weft_operand(g, call->step->node, i));
    for (unsigned i = 0; i < info->results && !define; i++)
        all[info->operands + i] = call->tensor(call, weft_result(g, call->step->node, i));
    struct weft_eval eval = {.graph = g,
                             .node = call->step->node,
                             .symbols = call->symbols,
                             .in = all,
                             .out = all + info->operands,
                             .failure = call->failure,
                             .context = g->context};
    if (!(define ? weft_eval_define_symbols(&eval) : weft_eval_node(&eval)))
        *call->failed = true;
    if (all != few)
        weft_release(g->context, all, count * sizeof *all);
}

static void run_reference(const void *descriptor, struct weft_call *call) { evaluate(call, false); }

void weft_step_define(const void *descriptor, struct weft_call *call)
{
    if (call->step->kind->define)
        call->step->kind->define(descriptor, call);
    else
        evaluate(call, true);
}

static const char *name_reference(const void *descriptor, const struct weft_step *step) { return "weft_reference"; }

const struct weft_step_kind weft_step_reference = {
    .name = "reference", .arithmetic = WEFT_ARITHMETIC_EVALUATOR, .traits = WEFT_STEP_EVALUATES,
    .bind = bind_reference, .run = run_reference,
    .kernel = name_reference};
