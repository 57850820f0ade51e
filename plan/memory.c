/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: what weft.h tells of a plan's steps and of its arena, for sizes at their hints: the order of what is
 * computed, and which bytes hold what from when to when. Kept when the plan is made, while its frame is there. */
#include "ir/public.h"
#include "plan/plan.h"

#include <string.h>

static struct weft_plan_step step_of(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i)
{
    const struct weft_step *const step = &plan->step[i];
    const struct weft_unit *const unit = &plan->units.unit[step->unit];
    const bool in_group = step->unit && unit->nodes > 1;
    const char *const kernel = step->kind->kernel(weft_frame_descriptor(frame, step), step);
    const struct weft_graph *const g = plan->graph;
    const char *const op = in_group ? NULL : step->node.id ? weft_op_of(g, step->node)->name : "relayout";
    return (struct weft_plan_step){.kernel = weft_arena_copy(plan->graph->arena, kernel, strlen(kernel)),
                                   .value = weft_plan_step_name(plan, step),
                                   .group = in_group ? plan->graph->group[unit->group].name : NULL,
                                   .nodes = step->unit ? (int32_t)unit->nodes : 0, .parts = frame->step[i].parts,
                                   .own = step->own != NULL, .node = weft_node_out(g, step->node), .op = op,
                                   .operands = (int32_t)step->ins, .results = (int32_t)step->outs,
                                   .output = (int32_t)step->bound - 1};
}

static struct weft_plan_block block_of(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i)
{
    const struct weft_storage *const s = &plan->storage[i];
    return (struct weft_plan_block){.value = s->control ? NULL : plan->label[s->value.id], .storage = i,
                                    .first = s->first, .last = s->last, .offset = frame->place[i],
                                    .bytes = frame->room[i]};
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

static int32_t memory_of(const struct weft_storage *storage)
{
    static const int32_t memory[] = {[WEFT_IN_NONE] = WEFT_MEMORY_NONE, [WEFT_IN_PARAM] = WEFT_MEMORY_INPUT,
                                     [WEFT_IN_RETURN] = WEFT_MEMORY_OUTPUT, [WEFT_IN_CONSTANT] = WEFT_MEMORY_CONSTANT,
                                     [WEFT_IN_ARENA] = WEFT_MEMORY_ARENA, [WEFT_IN_ROW] = WEFT_MEMORY_INPUT};
    return memory[storage->kind];
}

/* How a parameter or a result lies that a copy at the end reads or writes. */
static struct weft_layout port_layout(const struct weft_storage *storage, int rank)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    layout.dense = false;
    memcpy(layout.stride, storage->stride, (size_t)rank * sizeof *layout.stride);
    return layout;
}

/* A value in the storage that is its home, or in that of a parameter or result (0: its home). */
static struct weft_layout layout_in(const struct weft_plan *plan, weft_val v, uint32_t number)
{
    return number ? port_layout(&plan->storage[number], weft_type_of(plan->graph, v)->rank) : *plan->home[v.id].layout;
}

static const char *layout_text(struct weft_plan *plan, weft_val v, uint32_t number)
{
    struct weft_text text = {.context = plan->context, .arena = plan->graph->arena};
    const struct weft_layout layout = layout_in(plan, v, number);
    weft_layout_print(plan->graph->dims, &layout, &text);
    return text.data;
}

/* Most values are row-major, and share one text. */
static const char *keep_layout(struct weft_plan *plan, weft_val v, uint32_t number)
{
    const int rank = weft_type_of(plan->graph, v)->rank;
    if (number || plan->home[v.id].layout != plan->row_major[rank])
        return layout_text(plan, v, number);
    if (!plan->told_row_major[rank])
        plan->told_row_major[rank] = layout_text(plan, v, 0);
    return plan->told_row_major[rank];
}

static void keep_layouts(struct weft_plan *plan, uint32_t i)
{
    const struct weft_step *const step = &plan->step[i];
    const char **const told = weft_new(plan->graph->arena, const char *, step->ins + step->outs);
    for (uint32_t k = 0; k < step->ins; k++)
        told[k] = keep_layout(plan, step->in[k], step->from);
    for (uint32_t k = 0; k < step->outs; k++)
        told[step->ins + k] = keep_layout(plan, step->out[k], step->to);
    plan->told_layout[i] = told;
}

static struct weft_plan_operand operand_of(const struct weft_plan *plan, weft_val v, uint32_t number, const char *text)
{
    const struct weft_graph *const g = plan->graph;
    const struct weft_type *const type = weft_type_of(g, v);
    const uint32_t home = number ? number : plan->home[v.id].storage;
    const struct weft_storage *const storage = &plan->storage[home];
    const struct weft_layout layout = layout_in(plan, v, number);
    struct weft_plan_operand operand = {.value = plan->label[v.id], .id = weft_value_out(g, v), .layout = text,
                                        .memory = memory_of(storage), .storage = home,
                                        .port = (int32_t)storage->index};
    weft_array_of(g->dims, type, &layout, plan->hint, &operand.array);
    const int64_t inside =
        weft_dtype_bytes(type->dtype, number ? 0 : weft_dim_evaluate(g->dims, layout.offset, plan->hint));
    operand.offset = inside + (storage->kind == WEFT_IN_ARENA ? plan->told_place[home] : 0);
    if (storage->kind == WEFT_IN_CONSTANT && storage->data)
        operand.array.data = (char *)(uintptr_t)storage->data + inside;
    return operand;
}

void weft_plan_keep_memory(struct weft_plan *plan, const struct weft_frame *frame)
{
    struct weft_arena *const arena = plan->graph->arena;
    plan->told_step = weft_new(arena, struct weft_plan_step, plan->steps);
    plan->told_layout = weft_new(arena, const char **, plan->steps);
    plan->arena_bytes = frame->arena_bytes;
    plan->told_place = weft_new(arena, int64_t, plan->storages);
    memcpy(plan->told_place, frame->place, plan->storages * sizeof *plan->told_place);
    for (uint32_t i = 0; i < plan->steps; i++) {
        plan->told_step[i] = step_of(plan, frame, i);
        keep_layouts(plan, i);
    }
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

int weft_plan_step_operand(const struct weft_plan *plan, size_t i, size_t k, struct weft_plan_operand *ret_operand)
{
    const struct weft_step *const step = i < weft_plan_steps(plan) ? &plan->step[i] : NULL;
    if (!step || k >= step->ins || !ret_operand)
        return WEFT_ERR_ARGUMENT;
    const struct weft_plan_operand operand = operand_of(plan, step->in[k], step->from, plan->told_layout[i][k]);
    return weft_give_facts(ret_operand, &operand, sizeof operand);
}

int weft_plan_step_result(const struct weft_plan *plan, size_t i, size_t k, struct weft_plan_operand *ret_result)
{
    const struct weft_step *const step = i < weft_plan_steps(plan) ? &plan->step[i] : NULL;
    if (!step || k >= step->outs || !ret_result)
        return WEFT_ERR_ARGUMENT;
    const struct weft_plan_operand result =
        operand_of(plan, step->out[k], step->to, plan->told_layout[i][step->ins + k]);
    return weft_give_facts(ret_result, &result, sizeof result);
}

int64_t weft_plan_arena_bytes(const struct weft_plan *plan) { return plan ? plan->arena_bytes : 0; }

size_t weft_plan_blocks(const struct weft_plan *plan) { return plan ? plan->told_blocks : 0; }

int weft_plan_block(const struct weft_plan *plan, size_t i, struct weft_plan_block *ret_block)
{
    return ret_block && i < weft_plan_blocks(plan) ? weft_give_facts(ret_block, &plan->told_block[i], sizeof *ret_block)
                                                   : WEFT_ERR_ARGUMENT;
}
