/* SPDX-License-Identifier: Apache-2.0 */
/* step_custom.c: steps that call a function of the caller's. One worker makes the call; what has to be copied because
 * it lies otherwise than the function wants it goes to that worker's scratch memory, which is reserved with the frame.
 * A run whose function failed goes on to its end with what lies there, and reports the first failure. */
#include "ir/custom.h"
#include "sched/step.h"

/* Scratch memory begins with the tensors as they lie, operands and then the result. */
static void bind_custom(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const unsigned operands = g->node[bind->step->node.id].operands;
    bind->scratch = 2 * weft_custom_scratch(operands);
    for (unsigned i = 0; i <= operands; i++) {
        struct weft_tensor given = bind->out;
        const weft_val v = i < operands ? weft_operand(g, bind->step->node, i) : bind->step->out[0];
        if (i < operands)
            given = weft_bind_tensor(bind, v);
        const uintptr_t align = bind->places->alignment(bind->places->user, v, bind->symbols);
        bind->scratch += weft_custom_copy_bytes(bind->step->custom, i, operands, &given, align);
    }
}

static void run_custom(const void *descriptor, struct weft_call *call)
{
    const struct weft_graph *g = call->graph;
    const struct weft_step *step = call->step;
    const unsigned operands = g->node[step->node.id].operands;
    struct weft_tensor *tensor = call->scratch;
    for (unsigned i = 0; i < operands; i++)
        tensor[i] = call->tensor(call, weft_operand(g, step->node, i));
    tensor[operands] = call->tensor(call, step->out[0]);
    const struct weft_custom_job job = {.entry = step->custom,
                                        .graph = g,
                                        .node = step->node,
                                        .in = tensor,
                                        .out = &tensor[operands],
                                        .failure = call->failure};
    if (!weft_custom_run(&job, (char *)call->scratch + weft_custom_scratch(operands)))
        *call->failed = true;
}

static const char *name_custom(const void *descriptor, const struct weft_step *step) { return step->custom->kernel; }

const struct weft_step_kind weft_step_custom = {
    .name = "custom", .bind = bind_custom, .run = run_custom, .kernel = name_custom};
