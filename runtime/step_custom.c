/* SPDX-License-Identifier: Apache-2.0 */
/* step_custom.c: steps that call a function of the caller's. One worker makes the call; what has to be copied because
 * it lies otherwise than the function wants it goes to that worker's scratch memory, which is reserved with the frame.
 * A run whose function failed goes on to its end with what lies there, and reports the first failure. */
#include "ir/custom.h"
#include "runtime/runtime.h"

/* What is known of a value's address: the arena begins at a cache line, and so do its blocks, or where they have to; of
 * a parameter only what its layout promises. In bodies the arena is somewhere in the room of their control. */
static uintptr_t known_alignment(const struct weft_bind *bind, weft_val v)
{
    const struct weft_plan *plan = bind->plan;
    const struct weft_home *home = &plan->home[v.id];
    const struct weft_storage *storage = &plan->storage[home->storage];
    const int64_t offset = weft_dim_evaluate(plan->graph->dims, home->layout->offset, bind->symbols);
    uintptr_t align = 1;
    if (storage->align)
        align = storage->align;
    else if (storage->kind == WEFT_IN_ARENA && !plan->param_layout)
        align = 64;
    else if (storage->kind == WEFT_IN_PARAM && !plan->param_layout && weft_layout_of(plan->graph, storage->value).align)
        align = weft_layout_of(plan->graph, storage->value).align;
    while (align > 1 && (uintptr_t)weft_dtype_bytes(storage->dtype, offset) % align != 0)
        align /= 2;
    return align;
}

/* Scratch memory begins with the tensors as they lie, operands and then the result. */
static void bind_custom(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->plan->graph;
    const unsigned operands = g->node[bind->step->node.id].operands;
    bind->scratch = 2 * weft_custom_scratch(operands);
    for (unsigned i = 0; i <= operands; i++) {
        struct weft_tensor given = bind->out;
        const weft_val v = i < operands ? weft_operand(g, bind->step->node, i) : bind->step->out;
        if (i < operands)
            given = weft_home_tensor(bind->plan, v, bind->symbols);
        bind->scratch += weft_custom_copy_bytes(bind->step->custom, i, operands, &given, known_alignment(bind, v));
    }
}

static void run_custom(const void *descriptor, struct weft_call *call)
{
    const struct weft_graph *g = call->plan->graph;
    const struct weft_step *step = call->step;
    const unsigned operands = g->node[step->node.id].operands;
    struct weft_tensor *tensor = call->scratch;
    for (unsigned i = 0; i < operands; i++)
        tensor[i] = weft_call_tensor(call, weft_operand(g, step->node, i));
    tensor[operands] = weft_call_tensor(call, step->out);
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

const struct weft_step_kind weft_step_custom = {"custom", 0, bind_custom, run_custom, name_custom,
                                                .strided = false};
