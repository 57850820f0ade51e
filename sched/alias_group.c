/* SPDX-License-Identifier: Apache-2.0 */
/* alias_group.c: what a group may write over.
 *
 * A group computes in whatever order its kernel likes: in strips, in rows, or in two sweeps of which the second
 * computes once more what the first did. What holds for all of them: an element of a result is written when all that it
 * is computed of has been read. So element i of %o may lie where element i of %x was if each reader of %x in the group
 * leads to %o, element by element at the same index, and leads neither to another output nor to what gathers elements,
 * for which some other sweep might read %x again. What is computed from %o leads nowhere: it reads %o's memory. Both
 * are found by walks over the nodes of the group: backwards from %o, and from the end of the graph for all groups at
 * once. A group that finishes a contraction writes over nothing: in the memory of its result there are the
 * contraction's results first. */
#include "sched/alias.h"
#include "sched/epilogue.h"

enum { MOST_ON_PATH = 64 }; /* nodes; behind more of them nothing is overwritten, so that groups of thousands take as
                             * long as their nodes do */

static bool is_elementwise(const struct weft_graph *g, weft_node n)
{
    return (weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) && weft_places_in(g, n) > 0;
}

/* The output that a value leads to, of those of its group; two make it mixed. */
static void lead_to(struct weft_aliasing *a, uint32_t *end, weft_val v, uint32_t output)
{
    a->mixed[v.id] |= output && end[v.id] && end[v.id] != output;
    end[v.id] = output ? output : end[v.id];
}

void weft_alias_find_mixed(struct weft_aliasing *a)
{
    const struct weft_graph *g = a->graph;
    uint32_t *const end = weft_new(&a->graph->root->scratch, uint32_t, g->values);
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous) {
        if (weft_unit_of(a->units, n)->nodes == 1)
            continue;
        bool mixes = !is_elementwise(g, n);
        uint32_t output = 0;
        for (uint32_t i = 0; i < g->node[n.id].results; i++) {
            const weft_val result = weft_result(g, n, i);
            if (weft_unit_stores(a->units, result)) { /* what reads it reads its memory */
                a->mixed[result.id] = false;
                end[result.id] = result.id;
            }
            mixes |= a->mixed[result.id];
            output = end[result.id];
        }
        for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
            const weft_val v = weft_operand(g, n, i);
            if (a->units->of[weft_def(g, v).id] != a->units->of[n.id])
                continue;
            a->mixed[v.id] |= mixes;
            lead_to(a, end, v, output);
        }
    }
}

static void lead(struct weft_aliasing *a, uint32_t *count, weft_val v)
{
    struct weft_arena *scratch = &a->graph->root->scratch;
    const weft_node def = weft_def(a->graph, v);
    const bool inside = a->units->of[def.id] == a->units->of[a->led_to.id];
    if (a->leads[v.id] == a->search)
        return;
    a->leads[v.id] = a->search;
    const bool is_other = weft_unit_stores(a->units, v) && !weft_is(v, weft_result(a->graph, a->led_to, 0));
    if (inside && is_elementwise(a->graph, def) && !is_other) {
        a->path = weft_grow(scratch, a->path, &a->path_capacity, *count + 1, sizeof *a->path);
        a->path[(*count)++] = def;
    } else if (!inside || weft_is_view(a->graph, def)) {
        a->led = weft_grow(scratch, a->led, &a->led_capacity, a->leds + 1, sizeof *a->led);
        a->led[a->leds++] = v;
    }
}

uint32_t weft_alias_find_led(struct weft_aliasing *a, weft_node over)
{
    const struct weft_graph *g = a->graph;
    if (a->led_to.id == over.id)
        return a->leds;
    uint32_t count = 0;
    a->led_to = over;
    a->search++;
    a->leds = 0;
    if (is_elementwise(g, over) && !weft_epilogue_is_in(g, weft_unit_of(a->units, over)))
        lead(a, &count, weft_result(g, over, 0));
    for (uint32_t i = 0; i < count && i < MOST_ON_PATH; i++)
        for (uint32_t k = 0; k < g->node[a->path[i].id].operands; k++)
            lead(a, &count, weft_operand(g, a->path[i], k));
    return a->leds;
}

bool weft_alias_is_led(const struct weft_aliasing *a, weft_node user, weft_node over)
{
    const weft_val result = weft_result(a->graph, user, 0);
    weft_assert(a->led_to.id == over.id);
    return is_elementwise(a->graph, user) && a->leads[result.id] == a->search && !a->mixed[result.id];
}

bool weft_alias_sees_root(const struct weft_units *units, weft_val v, weft_val root, uint32_t unit)
{
    const struct weft_graph *g = units->graph;
    for (; !weft_is(v, root); v = weft_operand(g, weft_def(g, v), 0)) {
        const uint32_t of = units->of[weft_def(g, v).id];
        if (units->unit[of].nodes > 1 && of != unit)
            return false;
    }
    return weft_unit_stores(units, root) && (unit == 0 || units->of[weft_def(g, root).id] != unit);
}
