/* SPDX-License-Identifier: Apache-2.0 */
/* alias_order.c: readers of a `mut` parameter's old value come before the node that makes the new one.
 *
 *   %n: f32[64] = sub %w, %g                         %m: f32[] = reduce_max %w axes=[0]
 *   %m: f32[] = reduce_max %w axes=[0]        →      %n: f32[64] = sub %w, %g
 *   return mut %w = %n, %m                           return mut %w = %n, %m
 *
 * The node that makes the new value, with all of its group, goes behind the last reader of the old one and that one's
 * group, if whoever reads what it makes comes later still. Moving the readers forward would take all that they need
 * along. Values that the node reads live longer, which is less than the copy that it saves. */
#include "sched/alias.h"

enum { MOST_ROUNDS = 2 }; /* of two that stand in each other's way, one has to be copied */

/* Of what the unit makes, by others: positions of units. */
static uint32_t first_reader(const struct weft_units *units, const struct weft_unit *maker)
{
    const struct weft_graph *g = units->graph;
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < maker->outs; i++)
        for (uint32_t use = g->value[maker->out[i].id].first_use; use; use = g->slot[use - 1].next) {
            const uint32_t position = units->of[g->slot[use - 1].node.id];
            first = position != maker->position && position < first ? position : first;
        }
    return first;
}

static void move_behind(struct weft_graph *g, const struct weft_unit *maker, const struct weft_unit *reader)
{
    const weft_node before = g->node[reader->last.id].next;
    for (weft_node n = maker->first, next;; n = next) {
        next = g->node[n.id].next;
        weft_move_before(g, n, before);
        if (n.id == maker->last.id)
            return;
    }
}

/* Positions of what was moved are out of date until the next round. */
static bool delay(struct weft_graph *g, const struct weft_units *units, const struct weft_last *last, bool *moved,
                  weft_val param, weft_val value)
{
    const weft_node reader = last[param.id].reader;
    if (weft_alias_root(g, &value, NULL))
        return false;
    const weft_node def = weft_def(g, value);
    const uint32_t maker = units->of[def.id], behind = units->of[reader.id];
    if (g->node[def.id].results != 1 || !reader.id || moved[maker] || moved[behind] || behind <= maker ||
        first_reader(units, &units->unit[maker]) <= behind)
        return false;
    if (!weft_permit(g, "mark_aliases", value))
        return false;
    moved[maker] = true;
    move_behind(g, &units->unit[maker], &units->unit[behind]);
    return true;
}

bool weft_delay_updates(struct weft_graph *g)
{
    struct weft_arena *scratch = &g->root->scratch;
    bool changed = false, again = true;
    uint32_t updated = 0;
    for (uint32_t i = 0; i < g->returns; i++)
        updated += g->ret[i].mut.id != 0;
    for (int round = 0; updated > 0 && again && round < MOST_ROUNDS; round++) {
        again = false;
        const struct weft_units units = weft_units_find(g, scratch);
        struct weft_last *last = weft_new(scratch, struct weft_last, g->values);
        bool *moved = weft_new(scratch, bool, units.count);
        weft_alias_find_last(&units, NULL, last);
        for (uint32_t i = 0; i < g->returns; i++)
            if (g->ret[i].mut.id && last[g->ret[i].mut.id].position != UINT32_MAX)
                again |= delay(g, &units, last, moved, g->ret[i].mut, g->ret[i].value);
        changed |= again;
    }
    return changed;
}
