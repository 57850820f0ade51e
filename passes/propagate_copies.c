/* SPDX-License-Identifier: Apache-2.0 */
/* propagate_copies.c: the relayouts that propagate_memory_format puts in: one right behind a value for each layout in
 * which it is read and is not stored, which all readers share that want the same.
 *
 * What leaves a group is converted behind it. A relayout that falls between the nodes of a group opens that. */
#include "passes/propagate.h"

static const char who[] = "propagate_memory_format";

struct weft_converted *weft_find_copy(const struct weft_placing *p, weft_val v, uint32_t layout)
{
    uint32_t i = p->first_copy[v.id];
    while (i && p->copy[i - 1].layout != layout)
        i = p->copy[i - 1].next;
    return i ? &p->copy[i - 1] : NULL;
}

void weft_count_reader(struct weft_converted *copy, weft_val reader, int64_t saves)
{
    if (copy->readers++ == 0) {
        copy->reader = reader;
        copy->promised = weft_is(reader, copy->of);
    }
    copy->saves = weft_label_add(copy->saves, saves);
}

/* A relayout falls between the nodes of the group. What lay in registers is stored as was chosen for it. */
static void open_group(struct weft_placing *p, weft_node n, weft_val v)
{
    struct weft_graph *g = p->graph;
    const weft_node first = weft_group_first(g, n), last = weft_group_last(g, n);
    weft_add_remark(g, who, v, "opened", "group @%s: a relayout of %s is needed between its nodes",
                    g->group[g->node[n.id].group].name, weft_value_text(g, v));
    weft_open_group(g, n);
    for (n = first;; n = g->node[n.id].next) {
        for (uint32_t i = 0; i < g->node[n.id].results; i++) {
            const weft_val held = weft_result(g, n, i);
            if (p->in_registers[held.id])
                g->value[held.id].layout = p->stored[held.id];
        }
        if (n.id == last.id)
            return;
    }
}

/* What a relayout of the value for this reader goes in front of: right behind the value, or behind its group, if the
 * reader is no part of that. */
static weft_node place_behind(struct weft_placing *p, weft_val v, weft_val reader)
{
    struct weft_graph *g = p->graph;
    const weft_node def = weft_def(g, v), by = weft_def(g, reader);
    if (!def.id)
        return g->first;
    if (g->node[def.id].group && g->node[def.id].group == g->node[by.id].group && !weft_is(v, reader))
        open_group(p, def, v);
    return g->node[weft_group_last(g, def).id].next;
}

struct weft_converted *weft_add_copy(struct weft_placing *p, weft_val v, uint32_t from, uint32_t layout,
                                     weft_val reader)
{
    struct weft_graph *g = p->graph;
    struct weft_converted copy = {.layout = layout, .from = p->stored[v.id], .of = v, .source = v};
    struct weft_converted *first = NULL;
    if (copy.from != from && layout != from) {
        first = weft_find_copy(p, v, from);
        first = first ? first : weft_add_copy(p, v, p->formats->written[v.id], from, reader);
        copy.source = first->value;
        copy.from = from;
    }
    struct weft_builder b = {.graph = g, .before = place_behind(p, copy.source, reader)};
    copy.value = weft_build_unary(&b, WEFT_OP_relayout, copy.source);
    if (first)
        weft_count_reader(first, copy.value,
                          weft_format_convert_ps(p->formats, v, p->stored[v.id], layout) -
                              weft_format_convert_ps(p->formats, v, from, layout));
    copy.next = p->first_copy[v.id];
    g->value[copy.value.id].layout = layout;
    p->copy = weft_grow(p->formats->arena, p->copy, &p->capacity, p->copies + 1, sizeof *p->copy);
    p->copy[p->copies] = copy;
    p->first_copy[v.id] = ++p->copies;
    p->changed = true;
    return &p->copy[p->copies - 1];
}

weft_val weft_value_in(struct weft_placing *p, weft_val v, uint32_t from, uint32_t layout, weft_val reader,
                       int64_t saves)
{
    if (p->stored[v.id] == layout)
        return v;
    struct weft_converted *copy = weft_find_copy(p, v, layout);
    if (!copy && !weft_permit(p->graph, who, v))
        return v;
    copy = copy ? copy : weft_add_copy(p, v, from, layout, reader);
    weft_count_reader(copy, reader, saves);
    return copy->value;
}
