/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: the op `custom`, whose meaning is the function that the caller registered. */
#include "eval/rule.h"
#include "ir/custom.h"

static const struct weft_tensor *given_to(const struct weft_eval *eval, unsigned i)
{
    return i < eval->graph->node[eval->node.id].operands ? &eval->in[i] : eval->out;
}

void weft_eval_custom(struct weft_eval *eval)
{
    const struct weft_custom_job job = {.entry = weft_custom_of(eval->graph, eval->node),
                                        .graph = eval->graph,
                                        .node = eval->node,
                                        .in = eval->in,
                                        .out = eval->out,
                                        .failure = eval->failure};
    if (!job.entry) {
        weft_fail(eval->failure, WEFT_ERR_UNSUPPORTED, "custom function '%s' is not registered",
                  weft_attr_word(eval->graph, eval->node, WEFT_ATTR_function));
        eval->failed = true;
        return;
    }
    const unsigned operands = eval->graph->node[eval->node.id].operands;
    size_t bytes = weft_custom_scratch(operands);
    for (unsigned i = 0; i <= operands; i++)
        bytes += weft_custom_copy_bytes(job.entry, i, operands, given_to(eval, i), (uintptr_t)given_to(eval, i)->data);
    void *scratch = weft_eval_scratch(eval, (int64_t)bytes, 1);
    if (scratch && !weft_custom_run(&job, scratch))
        eval->failed = true;
    weft_eval_drop(eval, scratch, (int64_t)bytes, 1);
}
