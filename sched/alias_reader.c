/* SPDX-License-Identifier: Apache-2.0 */
/* alias_reader.c: is a value dead when something is written over it?
 *
 * A value is read by the nodes that have it as an operand, and by those that read a view of it. Units run in order, so
 * positions say what comes later; the last reader of each value is found in one walk from the end. A view that turns
 * out to be a copy counts as a view here: that may refuse what would be right, but never the other way round. The node
 * that writes may itself read, but only where it writes: then each element is read before it is overwritten, and by
 * nobody else. So may the other nodes of its group, as far as alias_group.c lets them. */
#include "sched/alias.h"

static void read_by(struct weft_last *last, const struct weft_last *reader)
{
    if (reader->position > last->position)
        *last = *reader;
}

void weft_alias_find_last(const struct weft_units *units, struct weft_last *ret)
{
    const struct weft_graph *g = units->graph;
    for (uint32_t i = 0; i < g->returns; i++)
        ret[g->ret[i].value.id].position = UINT32_MAX;
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous) {
        const struct weft_last itself = {.position = units->of[n.id], .reader = n};
        for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
            struct weft_last *last = &ret[weft_operand(g, n, i).id];
            read_by(last, &itself);
            if (weft_is_view(g, n))
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

static void see(struct weft_aliasing *a, uint32_t *count, weft_val value, const struct weft_layout *layout)
{
    a->seen = weft_grow(&a->graph->root->scratch, a->seen, &a->seen_capacity, *count + 1, sizeof *a->seen);
    a->seen[(*count)++] = (struct weft_seen){.value = value, .wanted = *layout};
}

static bool same_extents(const struct weft_graph *g, weft_val a, weft_val b)
{
    const struct weft_type *one = weft_type_of(g, a), *two = weft_type_of(g, b);
    bool same = one->rank == two->rank;
    for (int i = 0; same && i < one->rank; i++)
        same = weft_dim_same(one->extent[i], two->extent[i]);
    return same;
}

/* The same of a node of the same group, which goes over the same indices. */
static bool reads_where_group_writes(const struct weft_aliasing *a, weft_node user, weft_val value, weft_node over,
                                     const struct weft_layout *result, const struct weft_layout *layout)
{
    return weft_alias_is_led(a, user, over) && same_extents(a->graph, value, weft_result(a->graph, over, 0)) &&
           weft_same_places(a->graph, weft_type_of(a->graph, value), result, layout);
}

/* Of a value that the unit of `over` reads last: does that read it, and its views, nowhere but where `over` writes? */
static bool all_where_it_writes(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                weft_node over, const struct weft_layout *result)
{
    const struct weft_graph *g = a->graph;
    const struct weft_unit *unit = weft_unit_of(a->units, over);
    uint32_t count = 0;
    if (unit->nodes > 1)
        weft_alias_find_led(a, over);
    see(a, &count, value, layout);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t use = g->value[a->seen[i].value.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            const struct weft_layout *stored = &a->seen[i].wanted;
            const bool is_inside = a->units->of[user.id] == unit->position;
            struct weft_layout view;
            if (weft_is_view(g, user) && weft_view_layout(g, user, stored, &view))
                see(a, &count, weft_result(g, user, 0), &view);
            else if (is_inside && !(unit->nodes == 1
                                        ? reads_where_it_writes(g, over, use, result, stored)
                                        : reads_where_group_writes(a, user, a->seen[i].value, over, result, stored))) {
                a->reader = user;
                return false;
            }
        }
    return true;
}

const char *weft_alias_check_readers(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                     uint32_t until, weft_node over, const struct weft_layout *result)
{
    const struct weft_last last = a->last[value.id];
    if (last.position < until)
        return NULL;
    if (last.position == UINT32_MAX)
        return "it is returned, or a view of it is";
    if (last.position == until && over.id && all_where_it_writes(a, value, layout, over, result))
        return NULL;
    if (last.position > until || !over.id)
        a->reader = last.reader;
    return last.position > until ? "it is read later" : "it is read at another index than is written";
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
