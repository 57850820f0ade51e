/* SPDX-License-Identifier: Apache-2.0 */
/* static.c: which weights each execution packs: those that are a static input (weft_param_static), or views of one that
 * lie at the same places for all sizes. How is chosen as for constants (weights.c), and written down here for whoever
 * runs; the elements come with a run (runtime/refresh.c).
 *
 *   %w: static f32[256,64]              pack 1 of the plan: 73.7 kB in f32, no memory yet
 *   %y = matmul %x, %w                  reads pack 1, as does any other product that wants the same of the same weights
 *
 * Weights that a relayout copies, or that a view cannot reach where they lie, are not packed ahead: the copy is made in
 * each run, and so would its pack be. */
#include "plan/plan.h"

static bool lies_in_static_input(const struct weft_plan *plan, weft_val v)
{
    const struct weft_home *home = &plan->home[v.id];
    const struct weft_storage *storage = &plan->storage[home->storage];
    return storage->kind == WEFT_IN_PARAM && plan->graph->value[storage->value.id].is_static &&
           weft_home_is_fixed(plan, v);
}

/* A pack for the same weights, or 0. */
static uint32_t find_same(const struct weft_plan *plan, const struct weft_step *step, const struct weft_step_pack *how)
{
    for (uint32_t i = 0; i < plan->static_packs; i++) {
        const struct weft_static_pack *pack = &plan->static_pack[i];
        if (weft_is(pack->weights, step->in[1]) && pack->kind == step->kind && pack->how.bytes == how->bytes &&
            weft_packing_same(pack->how.packing, how->packing) && step->kind->same_pack(&pack->how, how))
            return pack->pack;
    }
    return 0;
}

static uint32_t add(struct weft_plan *plan, const struct weft_step *step, const struct weft_step_pack *how)
{
    struct weft_arena *const arena = plan->graph->arena;
    struct weft_packing *const packing = weft_new(arena, struct weft_packing, 1);
    const struct weft_home *const home = &plan->home[step->in[1].id];
    *packing = *how->packing;
    plan->static_pack = weft_grow(arena, plan->static_pack, &plan->static_pack_capacity, plan->static_packs + 1,
                                  sizeof *plan->static_pack);
    plan->pack = weft_grow(arena, plan->pack, &plan->pack_capacity, plan->packs + 1, sizeof *plan->pack);
    struct weft_static_pack *const pack = &plan->static_pack[plan->static_packs++];
    *pack = (struct weft_static_pack){.kind = step->kind, .how = *how, .weights = step->in[1],
                                      .input = plan->storage[home->storage].index, .storage = home->storage,
                                      .offset = weft_dim_value(home->layout->offset), .pack = plan->packs};
    pack->how.packing = packing;
    plan->pack[plan->packs] = (struct weft_pack){.bytes = how->bytes, .packing = packing,
                                                 .by_execution = plan->static_packs};
    return plan->packs++;
}

bool weft_plan_pack_static(struct weft_plan *plan, struct weft_step *step)
{
    if (!lies_in_static_input(plan, step->in[1]))
        return false;
    const struct weft_places places = weft_plan_places(plan);
    const struct weft_select select = weft_plan_select(plan, &places, &plan->graph->root->scratch);
    struct weft_step_pack how;
    if (!weft_select_pack(&select, step, &how))
        return false;
    const uint32_t same = find_same(plan, step, &how);
    step->pack = same ? same : add(plan, step, &how);
    step->plain = how.plain;
    return true;
}
