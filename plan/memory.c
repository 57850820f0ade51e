/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: what weft.h tells of a plan's steps and of its arena, for sizes at their hints: the order of what is
 * computed, and which bytes hold what from when to when. Kept when the plan is made, while its frame is there. */
#include "plan/plan.h"

#include <string.h>

static struct weft_plan_step step_of(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i)
{
    const struct weft_step *const step = &plan->step[i];
    const struct weft_unit *const unit = &plan->units.unit[step->unit];
    const bool in_group = step->unit && unit->nodes > 1;
    const char *const kernel = step->kind->kernel(weft_frame_descriptor(frame, step), step);
    return (struct weft_plan_step){.kernel = weft_arena_copy(plan->graph->arena, kernel, strlen(kernel)),
                                   .value = weft_plan_step_name(plan, step),
                                   .group = in_group ? plan->graph->group[unit->group].name : NULL,
                                   .nodes = step->unit ? (int32_t)unit->nodes : 0, .parts = frame->step[i].parts};
}

static struct weft_plan_block block_of(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i)
{
    const struct weft_storage *const s = &plan->storage[i];
    return (struct weft_plan_block){.value = s->control ? NULL : plan->label[s->value.id], .storage = i,
                                    .first = s->first, .last = s->last, .offset = frame->place[i],
                                    .bytes = frame->room[i]};
}

void weft_plan_keep_memory(struct weft_plan *plan, const struct weft_frame *frame)
{
    struct weft_arena *const arena = plan->graph->arena;
    plan->told_step = weft_new(arena, struct weft_plan_step, plan->steps);
    for (uint32_t i = 0; i < plan->steps; i++)
        plan->told_step[i] = step_of(plan, frame, i);
    plan->told_block = weft_new(arena, struct weft_plan_block, plan->storages);
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_ARENA && frame->room[i] > 0)
            plan->told_block[plan->told_blocks++] = block_of(plan, frame, i);
}

size_t weft_plan_steps(const struct weft_plan *plan) { return plan && plan->told_step ? plan->steps : 0; }

int weft_plan_step(const struct weft_plan *plan, size_t i, struct weft_plan_step *ret_step)
{
    return ret_step && i < weft_plan_steps(plan) ? weft_give_facts(ret_step, &plan->told_step[i], sizeof *ret_step)
                                                 : WEFT_ERR_ARGUMENT;
}

size_t weft_plan_blocks(const struct weft_plan *plan) { return plan ? plan->told_blocks : 0; }

int weft_plan_block(const struct weft_plan *plan, size_t i, struct weft_plan_block *ret_block)
{
    return ret_block && i < weft_plan_blocks(plan) ? weft_give_facts(ret_block, &plan->told_block[i], sizeof *ret_block)
                                                   : WEFT_ERR_ARGUMENT;
}
