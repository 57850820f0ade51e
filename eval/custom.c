/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: the op `custom`, whose meaning is the function that the caller registered. */
#include "eval/rule.h"
#include "ir/custom.h"

/* All parts, one behind the other. */
static bool run_parts(struct weft_custom_job *job, void *scratch)
{
    bool right = true;
    for (job->part = 0; right && job->part < job->parts; job->part++)
        right = weft_custom_run(job, scratch);
    return right;
}

/* The function is asked about tensors without data. */
static void take_data(const struct weft_eval *eval, struct weft_tensor *tensor, bool takes)
{
    const unsigned operands = eval->graph->node[eval->node.id].operands;
    for (unsigned i = 0; i < weft_custom_tensors(eval->graph, eval->node); i++)
        tensor[i].data = !takes ? NULL : i < operands ? eval->in[i].data : eval->out[i - operands].data;
}

/* Operands, then results; each as it lies. */
static void call(struct weft_eval *eval, struct weft_custom_job *job, struct weft_tensor *tensor)
{
    const unsigned operands = eval->graph->node[eval->node.id].operands;
    const unsigned tensors = weft_custom_tensors(eval->graph, eval->node);
    size_t copies = 0;
    for (unsigned i = 0; i < tensors; i++) {
        tensor[i] = i < operands ? eval->in[i] : eval->out[i - operands];
        copies += weft_custom_copy_bytes(job->entry, i, operands, &tensor[i], (uintptr_t)tensor[i].data);
    }
    job->tensor = tensor;
    take_data(eval, tensor, false);
    job->parts = copies ? 1 : weft_custom_parts(job);
    job->own_scratch = weft_custom_own_scratch(job);
    take_data(eval, tensor, true);
    const size_t bytes = weft_custom_scratch(tensors) + job->own_scratch + copies;
    void *scratch = weft_eval_scratch(eval, (int64_t)bytes, 1);
    if (scratch && !run_parts(job, scratch))
        eval->failed = true;
    weft_eval_drop(eval, scratch, (int64_t)bytes, 1);
}

void weft_eval_custom(struct weft_eval *eval)
{
    struct weft_custom_job job = {.entry = weft_custom_of(eval->graph, eval->node),
                                  .graph = eval->graph,
                                  .node = eval->node,
                                  .parts = 1,
                                  .workers = 1,
                                  .failure = eval->failure};
    if (!job.entry) {
        weft_fail(eval->failure, WEFT_ERR_UNSUPPORTED, "custom function '%s' is not registered",
                  weft_attr_word(eval->graph, eval->node, WEFT_ATTR_function));
        eval->failed = true;
        return;
    }
    const int64_t tensors = weft_custom_tensors(eval->graph, eval->node);
    struct weft_tensor *const tensor = weft_eval_scratch(eval, tensors, sizeof *tensor);
    if (tensor)
        call(eval, &job, tensor);
    weft_eval_drop(eval, tensor, tensors, sizeof *tensor);
}
