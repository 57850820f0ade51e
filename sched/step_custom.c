/* SPDX-License-Identifier: Apache-2.0 */
/* step_custom.c: steps that call a function of the caller's. Into how many parts the work is cut the function says when
 * the step is bound; a worker calls it for a part. What has to be copied because it lies otherwise than the function
 * wants it goes to a worker's scratch memory, which is reserved with the frame: such a call is one part. A run whose
 * function failed goes on to its end with what lies there, and reports the first failure. */
#include "ir/custom.h"
#include "sched/step.h"

#include <string.h>

struct custom {
    size_t own_scratch;          /* bytes that the function asked for */
    struct weft_tensor tensor[]; /* operands, then results, without data */
};

static size_t bytes_of(const struct weft_step *step)
{
    return sizeof(struct custom) + (step->ins + step->outs) * sizeof(struct weft_tensor);
}

/* Scratch memory begins with the tensors as they lie, then what weft_custom_run needs. */
static void bind_custom(struct weft_bind *bind, void *descriptor)
{
    struct custom *const custom = descriptor;
    const struct weft_step *const step = bind->step;
    const unsigned tensors = step->ins + step->outs;
    size_t copies = 0;
    for (unsigned i = 0; i < tensors; i++) {
        const weft_val v = i < step->ins ? step->in[i] : step->out[i - step->ins];
        const uintptr_t align = bind->places->alignment(bind->places->user, v, bind->symbols);
        custom->tensor[i] = weft_bind_tensor(bind, v);
        custom->tensor[i].data = NULL;
        copies += weft_custom_copy_bytes(step->custom, i, step->ins, &custom->tensor[i], align);
    }
    struct weft_custom_job job = {.entry = step->custom, .graph = bind->graph, .node = step->node,
                                  .tensor = custom->tensor, .parts = 1, .workers = bind->workers};
    bind->parts = job.parts = copies ? 1 : weft_custom_parts(&job);
    custom->own_scratch = weft_custom_own_scratch(&job);
    bind->scratch = 2 * weft_custom_scratch(tensors) + custom->own_scratch + copies;
}

static void run_custom(const void *descriptor, struct weft_call *call)
{
    const struct custom *const custom = descriptor;
    const struct weft_step *const step = call->step;
    const unsigned tensors = step->ins + step->outs;
    struct weft_tensor *const tensor = call->scratch;
    memcpy(tensor, custom->tensor, tensors * sizeof *tensor);
    for (unsigned i = 0; i < tensors; i++)
        tensor[i].data = call->tensor(call, i < step->ins ? step->in[i] : step->out[i - step->ins]).data;
    const struct weft_custom_job job = {.entry = step->custom,
                                        .graph = call->graph,
                                        .node = step->node,
                                        .tensor = tensor,
                                        .part = call->part,
                                        .parts = call->parts,
                                        .worker = call->worker,
                                        .workers = call->workers,
                                        .own_scratch = custom->own_scratch,
                                        .failure = call->failure};
    if (!weft_custom_run(&job, (char *)call->scratch + weft_custom_scratch(tensors)))
        *call->failed = true;
}

static const char *name_custom(const void *descriptor, const struct weft_step *step) { return step->custom->kernel; }

const struct weft_step_kind weft_step_custom = {
    .name = "custom", .bytes = bytes_of, .bind = bind_custom, .run = run_custom, .kernel = name_custom};
