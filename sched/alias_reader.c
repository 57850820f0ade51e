/* SPDX-License-Identifier: Apache-2.0 */
/* alias_reader.c: is a value dead when something is written over it?
 *
 * A value is read by the nodes that have it as an operand, and by those that read a view of it. Units run in order, so
 * positions say what comes later; the last reader of each value is found in one walk from the end. A view that turns
 * out to be a copy counts as a view here: that may refuse what would be right, but never the other way round. The node
 * that writes may itself read, but only where it writes: then each element is read before it is overwritten, and by
 * nobody else. Of a group, alias_group.c says what it may. */
#include "sched/alias.h"

static void read_by(struct weft_last *last, const struct weft_last *reader)
{
    if (reader->position > last->position)
        *last = *reader;
}

/* Is the result read where operands lie? */
static bool is_seen(const struct weft_graph *g, const struct weft_alias_query *query, weft_node n)
{
    return weft_is_view(g, n) || (query && query->elsewhere && g->node[n.id].results == 1 &&
                                  query->elsewhere(query->user, weft_result(g, n, 0)));
}

void weft_alias_find_last(const struct weft_units *units, const struct weft_alias_query *query, struct weft_last *ret)
{
    const struct weft_graph *g = units->graph;
    for (uint32_t i = 0; i < g->returns; i++)
        ret[g->ret[i].value.id].position = UINT32_MAX;
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous) {
        const struct weft_last itself = {.position = units->of[n.id], .reader = n};
        for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
            struct weft_last *last = &ret[weft_operand(g, n, i).id];
            read_by(last, &itself);
            if (is_seen(g, query, n))
                read_by(last, &ret[weft_result(g, n, 0).id]);
        }
    }
}

/* Does operand slot `use` of node `over`, stored like this, lie where the node writes? */
static bool reads_where_it_writes(const struct weft_graph *g, weft_node over, uint32_t use,
                                  const struct weft_layout *result, const struct weft_layout *layout)
{
    const uint32_t operand = use - 1 - g->node[over.id].first_operand;
    weft_dim along = weft_dim_of(0);
    struct weft_layout place;
    if (operand >= weft_places_in(g, over))
        return false;
    for (uint32_t i = 0; i < operand; i++)
        along = weft_index_behind(g, (struct weft_pin){over, .index = i}, along);
    return weft_place_in(g, over, operand, along, result, &place) &&
           weft_same_places(g, weft_type_of(g, weft_operand(g, over, operand)), &place, layout);
}

void weft_alias_see(struct weft_aliasing *a, uint32_t *count, weft_val value, const struct weft_layout *layout)
{
    a->seen = weft_grow(&a->graph->root->scratch, a->seen, &a->seen_capacity, *count + 1, sizeof *a->seen);
    a->seen[(*count)++] = (struct weft_seen){.value = value, .wanted = *layout};
}

/* Of a value that `over`, a unit of its own, reads last: does it read that, and its views, where it writes alone? */
static const char *check_node(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                              weft_node over, const struct weft_layout *result)
{
    const struct weft_graph *g = a->graph;
    uint32_t count = 0;
    weft_alias_see(a, &count, value, layout);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t use = g->value[a->seen[i].value.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            const struct weft_layout *stored = &a->seen[i].wanted;
            struct weft_layout view;
            if (weft_is_view(g, user) && weft_view_layout(g, user, stored, &view))
                weft_alias_see(a, &count, weft_result(g, user, 0), &view);
            else if (user.id == over.id && !reads_where_it_writes(g, over, use, result, stored)) {
                a->reader = user;
                return WEFT_ALIAS_ELSEWHERE;
            }
        }
    return NULL;
}

const char *weft_alias_check_readers(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                     uint32_t until, weft_node over, const struct weft_layout *result)
{
    const struct weft_last last = a->last[value.id];
    if (last.position < until)
        return NULL;
    if (last.position == UINT32_MAX)
        return "it is returned, or a view of it is";
    if (last.position == until && over.id)
        return (weft_unit_of(a->units, over)->nodes > 1 ? weft_alias_check_group : check_node)(a, value, layout, over,
                                                                                              result);
    a->reader = last.reader;
    return last.position > until ? "it is read later" : WEFT_ALIAS_ELSEWHERE;
}

const char *weft_alias_check_old(struct weft_aliasing *a, weft_val owner, weft_node def,
                                 const struct weft_layout *result)
{
    const struct weft_graph *g = a->graph;
    if (!g->value[owner.id].is_param)
        return NULL;
    const struct weft_layout layout = weft_alias_param_layout(a->query, g->value[owner.id].result);
    const char *reason = weft_alias_check_readers(a, owner, &layout, a->units->of[def.id], def, result);
    return !reason       ? NULL
           : a->reader.id ? "the old value is read later, or at another index than is written"
                          : "the old value is returned";
}
