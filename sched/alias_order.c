/* SPDX-License-Identifier: Apache-2.0 */
/* alias_order.c: readers of a `mut` parameter's old value come before the node that makes the new one.
 *
 *   %n: f32[64] = sub %w, %g                         %m: f32[] = reduce_max %w axes=[0]
 *   %m: f32[] = reduce_max %w axes=[0]        →      %n: f32[64] = sub %w, %g
 *   return mut %w = %n, %m                           return mut %w = %n, %m
 *
 * The node that makes the new value goes behind the last reader of the old one, if whoever reads the new value comes
 * later still. Moving the readers forward would take all that they need along. Values that the node reads live longer,
 * which is less than the copy that it saves. */
#include "sched/alias.h"

enum { MOST_ROUNDS = 2 }; /* of two that stand in each other's way, one has to be copied */

static uint32_t first_reader(const struct weft_graph *g, weft_val v)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next) {
        const uint32_t position = g->position[g->slot[use - 1].node.id];
        first = position < first ? position : first;
    }
    return first;
}

/* Positions of what was moved are out of date until the next round. */
static bool delay(struct weft_graph *g, const struct weft_last *last, bool *moved, weft_val param, weft_val value)
{
    const weft_node reader = last[param.id].reader;
    if (weft_alias_root(g, &value, NULL))
        return false;
    const weft_node def = weft_def(g, value);
    if (g->node[def.id].results != 1 || !reader.id || moved[def.id] || moved[reader.id] ||
        g->position[reader.id] <= g->position[def.id] || first_reader(g, value) <= g->position[reader.id])
        return false;
    if (!weft_permit(g, "mark_aliases", value))
        return false;
    moved[def.id] = true;
    weft_move_before(g, def, g->node[reader.id].next);
    return true;
}

bool weft_delay_updates(struct weft_graph *g)
{
    bool changed = false, again = true;
    uint32_t updated = 0;
    for (uint32_t i = 0; i < g->returns; i++)
        updated += g->ret[i].mut.id != 0;
    for (int round = 0; updated > 0 && again && round < MOST_ROUNDS; round++) {
        again = false;
        weft_require(g, WEFT_ORDER);
        struct weft_last *last = weft_new(&g->root->scratch, struct weft_last, g->values);
        bool *moved = weft_new(&g->root->scratch, bool, g->nodes);
        weft_alias_find_last(g, last);
        for (uint32_t i = 0; i < g->returns; i++)
            if (g->ret[i].mut.id && last[g->ret[i].mut.id].position != UINT32_MAX)
                again |= delay(g, last, moved, g->ret[i].mut, g->ret[i].value);
        changed |= again;
    }
    return changed;
}
