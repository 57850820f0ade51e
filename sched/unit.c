/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c: finding the units of a graph, in two walks: which nodes stand together, then what each reads and shows. The
 * contract: unit.h. */
#include "sched/unit.h"

/* Room for all lists at once: a value has one place in the lists of outputs, and each use at most one in the others. */
struct finding {
    struct weft_units units;
    weft_val *in, *out;     /* where the next unit's begin */
    uint32_t *reader;       /* by value: the last unit that was seen to read it */
};

/* Nodes of one group are neighbours, so a new number begins a unit, as does each node without one. */
static void find_runs(struct finding *f)
{
    const struct weft_graph *g = f->units.graph;
    struct weft_unit *unit = NULL;
    weft_foreach_node(g, n) {
        const uint32_t group = g->node[n.id].group;
        if (!unit || !group || unit->group != group) {
            unit = &f->units.unit[f->units.count];
            *unit = (struct weft_unit){.first = n, .group = group, .position = f->units.count++};
        }
        unit->last = n;
        unit->nodes++;
        f->units.of[n.id] = unit->position;
    }
}

static bool is_seen_outside(const struct weft_units *units, weft_val v, uint32_t unit)
{
    const struct weft_graph *g = units->graph;
    if (g->value[v.id].returns)
        return true;
    for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next)
        if (units->of[g->slot[use - 1].node.id] != unit)
            return true;
    return false;
}

static void find_ins(struct finding *f, struct weft_unit *unit, weft_node n)
{
    const struct weft_graph *g = f->units.graph;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        if (f->units.of[weft_def(g, v).id] == unit->position || f->reader[v.id] == unit->position)
            continue;
        f->reader[v.id] = unit->position;
        *f->in++ = v;
        unit->ins++;
    }
}

static void find_outs(struct finding *f, struct weft_unit *unit, weft_node n)
{
    const struct weft_graph *g = f->units.graph;
    for (uint32_t i = 0; i < g->node[n.id].results; i++)
        if (is_seen_outside(&f->units, weft_result(g, n, i), unit->position)) {
            *f->out++ = weft_result(g, n, i);
            unit->outs++;
        }
}

struct weft_units weft_units_find(const struct weft_graph *g, struct weft_arena *arena)
{
    struct finding f = {.units = {.graph = g, .count = 1}};
    uint32_t nodes = 0, operands = 0, results = 0;
    weft_foreach_node(g, n) {
        nodes++;
        operands += g->node[n.id].operands;
        results += g->node[n.id].results;
    }
    f.units.unit = weft_new(arena, struct weft_unit, nodes + 1);
    f.units.of = weft_new(arena, uint32_t, g->nodes);
    f.in = weft_new(arena, weft_val, operands);
    f.out = weft_new(arena, weft_val, results);
    f.reader = weft_new(arena, uint32_t, g->values);
    find_runs(&f);
    for (uint32_t i = 1; i < f.units.count; i++) {
        struct weft_unit *unit = &f.units.unit[i];
        unit->in = f.in;
        unit->out = f.out;
        for (weft_node n = unit->first;; n = g->node[n.id].next) {
            find_ins(&f, unit, n);
            find_outs(&f, unit, n);
            if (n.id == unit->last.id)
                break;
        }
    }
    return f.units;
}

bool weft_unit_stores(const struct weft_units *units, weft_val v)
{
    const weft_node def = weft_def(units->graph, v);
    const uint32_t unit = units->of[def.id];
    return !def.id || units->unit[unit].nodes == 1 || is_seen_outside(units, v, unit);
}

void weft_unit_label(struct weft_graph *g, const struct weft_unit *unit, const char *kernel, uint32_t count,
                     const char *const *key, const char *const *value)
{
    if (unit->nodes == 1)
        weft_set_plan(g, unit->first, kernel, count, key, value);
    else
        weft_label_group(g, unit->first, kernel, count, key, value);
}

weft_val weft_unit_value(const struct weft_units *units, const struct weft_unit *unit)
{
    return unit->nodes > 1 && unit->outs ? unit->out[unit->outs - 1] : weft_result(units->graph, unit->last, 0);
}
