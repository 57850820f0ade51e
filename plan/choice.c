/* SPDX-License-Identifier: Apache-2.0 */
/* choice.c: which kernel computes a node, chosen once and kept, since several parts of a plan ask: what may be computed
 * in the memory of another value, what is done when the plan is made, the steps themselves. And what kinds of steps ask
 * of a plan: where values lie. */
#include "plan/plan.h"
#include "sched/select.h"

#include <string.h>

const struct weft_step *weft_plan_choice(struct weft_plan *plan, weft_node node)
{
    node = weft_unit_of(&plan->units, node)->first;
    const struct weft_step **const choice = &plan->choice[node.id];
    const struct weft_choices *const chosen = plan->graph->node[node.id].choices;
    if (!*choice && chosen) {
        *choice = &chosen->choice[0].step;
    } else if (!*choice) {
        const struct weft_scheduling scheduling = {plan->graph, &plan->target, plan->graph->arena};
        struct weft_step *const step = weft_new(plan->graph->arena, struct weft_step, 1);
        const bool chosen_as_one = weft_select_unit(&scheduling, weft_unit_of(&plan->units, node), step);
        weft_assert(chosen_as_one || weft_unit_of(&plan->units, node)->nodes == 1); /* faults.c */
        *choice = step;
    }
    return *choice;
}

/* --- where values lie --------------------------------------------------------------------------------------------- */

static struct weft_tensor tensor_of(const void *user, weft_val v, const int64_t *symbols)
{
    return weft_home_tensor(user, v, symbols);
}

static const weft_dim *stride_of(const void *user, weft_val v)
{
    const struct weft_plan *plan = user;
    return plan->home[v.id].stride;
}

/* The arena begins at a cache line, and so do its blocks, or where they have to; of a parameter is known only what its
 * layout promises. In bodies the arena is somewhere in the room of their control. */
static uintptr_t alignment_of(const void *user, weft_val v, const int64_t *symbols)
{
    const struct weft_plan *plan = user;
    const struct weft_home *home = &plan->home[v.id];
    const struct weft_storage *storage = &plan->storage[home->storage];
    const int64_t offset = weft_dim_evaluate(plan->graph->dims, home->layout->offset, symbols);
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

static const struct weft_layout *layout_of(const void *user, weft_val v)
{
    const struct weft_plan *plan = user;
    return plan->home[v.id].layout;
}

struct weft_places weft_plan_places(const struct weft_plan *plan)
{
    return (struct weft_places){
        .tensor = tensor_of, .stride = stride_of, .alignment = alignment_of, .layout = layout_of, .user = plan};
}

struct weft_bind weft_plan_bind(const struct weft_plan *plan, const struct weft_step *step,
                                const struct weft_places *places, const int64_t *symbols)
{
    struct weft_bind bind = {.graph = plan->graph, .step = step, .target = &plan->target, .places = places,
                             .symbols = symbols, .workers = plan->workers, .parts = 1};
    if (step->pack)
        bind.packed = plan->pack[step->pack].packing;
    return bind;
}

struct weft_select weft_plan_select(const struct weft_plan *plan, const struct weft_places *places,
                                    struct weft_arena *arena)
{
    return (struct weft_select){.graph = plan->graph, .target = &plan->target, .arena = arena, .places = places,
                                .symbols = plan->hint, .workers = plan->workers};
}

const struct weft_choices *weft_plan_list_choices(const struct weft_plan *plan, const struct weft_unit *unit,
                                                  struct weft_arena *arena)
{
    const struct weft_places places = weft_plan_places(plan);
    struct weft_select select = weft_plan_select(plan, &places, arena);
    select.inside = weft_home_inside(plan, unit->first);
    return weft_select_all(&select, unit);
}

const struct weft_choice *weft_plan_picked(const struct weft_plan *plan, const struct weft_choices *list)
{
    return &list->choice[plan->pick < list->count ? plan->pick : list->count - 1];
}

const struct weft_step *weft_plan_pick(struct weft_plan *plan, const struct weft_unit *unit)
{
    const struct weft_step *const chosen = weft_chosen_step(plan, unit->first);
    if (chosen) /* no other step reads what is in its operand's place */
        return chosen;
    const struct weft_choices *const choices =
        plan->pick ? weft_plan_list_choices(plan, unit, plan->graph->arena) : NULL;
    if (!choices)
        return weft_plan_choice(plan, unit->first);
    return &weft_plan_picked(plan, choices)->step;
}

const struct weft_plan *weft_plan_of(const struct weft_plan *plan, const struct weft_graph *graph)
{
    const struct weft_plan *found = plan->graph == graph ? plan : NULL;
    for (uint32_t i = 1; i < plan->controls && !found; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        for (uint32_t k = 0; k < plan->control[i].bodies && !found; k++)
            found = weft_plan_of(plan->control[i].body[k], graph);
    return found;
}

const char *weft_plan_expected(const struct weft_plan *plan, const struct weft_step *step, const void *descriptor)
{
    const struct weft_choices *const record = plan->graph->node[step->node.id].choices;
    const struct weft_choice *const chosen = record ? &record->choice[0] : NULL;
    const struct weft_places places = weft_plan_places(plan);
    const struct weft_select select = weft_plan_select(plan, &places, &plan->graph->root->scratch);
    struct weft_account account = {.signature = {.arithmetic = step->kind->arithmetic}};
    if (!chosen)
        return "";
    if (weft_home_inside(plan, step->node))
        return NULL; /* fewer copies, since parts are in their places: no other kernel */
    if (step->kind->account) {
        const struct weft_bind bind = weft_select_bind(&select, step, plan->hint);
        step->kind->account(&bind, descriptor, &account);
    }
    const struct weft_packing *const packing = step->pack ? plan->pack[step->pack].packing : NULL;
    const bool packs = packing && chosen->packing ? weft_packing_same(packing, chosen->packing)
                                                  : !packing == !chosen->packing;
    const bool same = packs && strcmp(step->kind->kernel(descriptor, step), chosen->kernel) == 0 &&
                      weft_signature_same(&account.signature, &chosen->signature);
    return same ? NULL : chosen->kernel;
}
