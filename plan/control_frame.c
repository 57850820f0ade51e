/* SPDX-License-Identifier: Apache-2.0 */
/* control_frame.c: bodies for one tuple of sizes. Each has a frame of its own, which shares the symbols of the outer
 * one; a body of a body is inside of its frame, so recursion is as deep as bodies are nested. */
#include "plan/plan.h"

static int64_t rounded(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

bool weft_control_open(const struct weft_plan *plan, struct weft_frame *frame)
{
    for (uint32_t i = 1; i < plan->controls; i++) {
        const struct weft_control *control = &plan->control[i];
        for (uint32_t k = 0; k < control->bodies; k++) {
            struct weft_frame *body = weft_frame_new(control->body[k], frame->symbols, frame->live);
            if (!body)
                return false;
            frame->control[i].body[k] = body;
            if (body->too_large.id)
                frame->too_large = plan->step[control->step].out[0];
        }
    }
    return true;
}

void weft_control_close(const struct weft_plan *plan, struct weft_frame *frame)
{
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            weft_frame_free(plan->control[i].body[k], frame->control[i].body[k]);
}

int64_t weft_control_place(const struct weft_plan *plan, const struct weft_frame *frame, const struct weft_step *step,
                           uint32_t i)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < i; k++) {
        const struct weft_tensor *t = &frame->tensor[weft_result(plan->graph, step->node, k).id];
        bytes += rounded(weft_dtype_bytes(t->dtype, weft_tensor_span(t)));
    }
    return bytes;
}

int64_t weft_control_bytes(const struct weft_plan *plan, struct weft_frame *frame, uint32_t number)
{
    const struct weft_control *control = &plan->control[number];
    struct weft_frame_control *sized = &frame->control[number];
    sized->arena = weft_control_place(plan, frame, &plan->step[control->step], control->carried);
    int64_t most = 0;
    for (uint32_t k = 0; k < control->bodies; k++)
        most = sized->body[k]->arena_bytes > most ? sized->body[k]->arena_bytes : most;
    return sized->arena + most;
}

void weft_control_bind(const struct weft_plan *plan, struct weft_frame *frame, uint32_t number, bool again)
{
    const struct weft_step *step = &plan->step[number];
    const struct weft_control *control = &plan->control[step->control];
    int32_t parts = 1;
    for (uint32_t k = 0; k < control->bodies; k++) {
        struct weft_frame *body = frame->control[step->control].body[k];
        if (again)
            weft_frame_rebind_all(control->body[k], body);
        parts = body->most_parts > parts ? body->most_parts : parts;
        frame->scratch_bytes = body->scratch_bytes > frame->scratch_bytes ? body->scratch_bytes : frame->scratch_bytes;
        frame->shared_bytes = body->shared_bytes > frame->shared_bytes ? body->shared_bytes : frame->shared_bytes;
    }
    frame->step[number].parts = parts;
    frame->most_parts = parts > frame->most_parts ? parts : frame->most_parts;
}
