/* SPDX-License-Identifier: Apache-2.0 */
/* refresh.c: packs of static inputs (weft_param_static), which each execution has for itself.
 *
 *   bind, weft_refresh ──► the input is stale ──► the next run packs what the plan wants packed of it (plan/static.c),
 *                                                 before its first step
 *
 * An input stays stale until all packs are made: after a run that was refused memory the next one begins anew. */
#include "runtime/runtime.h"

void weft_refresh_input(struct weft_execution *e, uint32_t i)
{
    if (e->plan->graph->value[e->plan->graph->param[i].id].is_static)
        e->is_stale = e->stale[i] = true;
}

int weft_refresh(struct weft_execution *e, size_t i)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->params && i != WEFT_ALL_INPUTS)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no input %zu: the plan has %u", i, g->params);
    if (i != WEFT_ALL_INPUTS && !g->value[g->param[i].id].is_static)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "input %zu '%s' is not static: each run reads it anew", i,
                                   weft_execution_name(e, g->param[i], (char[16]){0}));
    for (uint32_t k = 0; k < g->params; k++)
        if (i == WEFT_ALL_INPUTS || i == k)
            weft_refresh_input(e, k);
    return WEFT_OK;
}

enum { PARTS = WEFT_STEP_PACK_PARTS, PART_BYTES = 256 << 10 /* some tens of microseconds */ };

struct packing {
    struct weft_execution *execution;
    _Atomic uint32_t next;  /* PARTS for each static pack of the plan: those before it are made, being made, or not
                             * there to be made */
};

/* Large packs are cut: a model may have one that is as large as all others together. */
static uint32_t parts_of(const struct weft_static_pack *pack)
{
    const size_t parts = 1 + pack->how.bytes / PART_BYTES;
    return parts < PARTS ? (uint32_t)parts : PARTS;
}

/* One part after the other by whoever is free. */
static void write_packs(void *arg, int worker, int workers)
{
    struct packing *const packing = arg;
    struct weft_execution *const e = packing->execution;
    uint32_t i;
    while ((i = atomic_fetch_add(&packing->next, 1)) < e->plan->static_packs * PARTS) {
        const struct weft_static_pack *const pack = &e->plan->static_pack[i / PARTS];
        const uint32_t part = i % PARTS, parts = parts_of(pack);
        if (e->stale[pack->input] && part < parts)
            pack->kind->write_pack_part(&pack->how, e->packed[i / PARTS].data,
                                        (const weft_loose_f32 *)e->base[pack->storage] + pack->offset, (int)part,
                                        (int)parts);
    }
}

int weft_refresh_packs(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    uint32_t stale = 0, parts = 0;
    for (uint32_t i = 0; i < plan->static_packs; i++) {
        const struct weft_static_pack *const pack = &plan->static_pack[i];
        const weft_val input = plan->graph->param[pack->input];
        if (!weft_execution_reserve(e, &e->packed[i], pack->how.bytes))
            return weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory for packs of input %u '%s' (%zu bytes)",
                                       pack->input, weft_execution_name(e, input, (char[16]){0}), pack->how.bytes);
        stale += e->stale[pack->input];
        parts += e->stale[pack->input] ? parts_of(pack) : 0;
    }
    struct packing packing = {.execution = e};
    const int most = weft_gang_size(plan->context), workers = (uint32_t)most < parts ? most : (int)parts;
    if (stale > 0)
        weft_gang_run(plan->context, workers, write_packs, &packing);
    e->static_packs += stale;
    for (uint32_t i = 0; i < plan->graph->params; i++)
        e->stale[i] = false;
    e->is_stale = false;
    return WEFT_OK;
}

int64_t weft_refresh_bytes(const struct weft_execution *e)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < e->plan->static_packs; i++)
        bytes += (int64_t)e->packed[i].bytes;
    return bytes;
}
