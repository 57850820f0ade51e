/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c: a graph again, without what is dead. Ids are dealt out anew in order of execution; everything that prints is
 * kept. Weights are shared. Copying is also how a graph that was edited much gives its memory back. A part of a graph
 * can be copied by itself: what is computed from constants alone, or from values that become parameters. */
#include "ir/ir.h"

#include <string.h>

/* Old to new, by the index of the old graph. */
struct mapping {
    const struct weft_graph *from;
    struct weft_graph *to;
    weft_val *value;
    uint32_t *group;
    const bool *cut;   /* of a part with parameters: by old value, where it begins; */
    weft_val *source;  /* by new parameter, the old value */
};

static const char *keep_text(struct weft_graph *to, const char *text)
{
    return text ? weft_arena_copy(to->arena, text, strlen(text)) : NULL;
}

static const struct weft_plan_note *copy_note(struct weft_graph *to, const struct weft_plan_note *note)
{
    if (!note)
        return NULL;
    struct weft_plan_note *copy = weft_new(to->arena, struct weft_plan_note, 1);
    *copy = (struct weft_plan_note){.kernel = keep_text(to, note->kernel), .count = note->count,
                                    .key = weft_new(to->arena, const char *, note->count),
                                    .value = weft_new(to->arena, const char *, note->count)};
    for (uint32_t i = 0; i < note->count; i++) {
        copy->key[i] = keep_text(to, note->key[i]);
        copy->value[i] = keep_text(to, note->value[i]);
    }
    return copy;
}

static void copy_value(struct mapping *m, weft_val old, weft_val new)
{
    const struct weft_value *from = &m->from->value[old.id];
    m->value[old.id] = new;
    m->to->value[new.id].layout = from->layout; /* the table of layouts was copied whole */
    m->to->value[new.id].stated = from->stated;
    m->to->value[new.id].is_mut = from->is_mut;
    m->to->value[new.id].is_static = from->is_static;
    if (from->name)
        weft_set_name(m->to, new, from->name, strlen(from->name));
}

static struct weft_attr *copy_attrs(struct mapping *m, const struct weft_node_info *info)
{
    struct weft_attr *attrs = weft_new(m->to->arena, struct weft_attr, info->attrs);
    for (unsigned i = 0; i < info->attrs; i++) {
        attrs[i] = info->attr[i];
        if (attrs[i].kind == WEFT_ATTR_GRAPH)
            attrs[i].graph = m->to->body[attrs[i].graph->index];
    }
    return attrs;
}

/* Of all results, side by side. */
static const struct weft_type *custom_types(const struct mapping *m, const struct weft_node_info *info)
{
    struct weft_type *const types = weft_new(m->to->arena, struct weft_type, info->results);
    for (unsigned i = 0; i < info->results; i++)
        types[i] = m->from->value[info->first_result + i].type;
    return types;
}

/* The gate infers everything again; what it finds is what the old graph had, since the old graph is valid. */
static void copy_node(struct mapping *m, weft_node old)
{
    const struct weft_node_info *info = &m->from->node[old.id];
    weft_val *operands = weft_new(m->to->arena, weft_val, info->operands);
    for (unsigned i = 0; i < info->operands; i++)
        operands[i] = m->value[weft_operand(m->from, old, i).id];
    if (info->constant && info->constant->kind == WEFT_CONST_BLOB)
        weft_graph_hold(m->to, weft_blob_hold(info->constant->blob));
    const bool is_custom = info->op == WEFT_OP_custom;
    const weft_node node = weft_add_node(
        m->to, &(struct weft_node_spec){.op = info->op,
                                        .operand = operands,
                                        .operands = info->operands,
                                        .attr = copy_attrs(m, info),
                                        .attrs = info->attrs,
                                        .stated = is_custom ? custom_types(m, info)
                                                  : info->results ? &m->from->value[info->first_result].type : NULL,
                                        .results = is_custom ? info->results : 0,
                                        .constant = info->constant,
                                        .name = info->name,
                                        .place = {.line = info->line}});
    weft_assert(node.id);
    struct weft_node_info *copy = &m->to->node[node.id];
    copy->plan = copy_note(m->to, info->plan);
    if (info->group) {
        const struct weft_group *group = &m->from->group[info->group];
        if (!m->group[info->group]) {
            m->group[info->group] = weft_add_group(m->to, group->name);
            m->to->group[m->group[info->group]].plan = copy_note(m->to, group->plan);
        }
        copy->group = m->group[info->group];
    }
    for (unsigned i = 0; i < info->results; i++)
        copy_value(m, weft_result(m->from, old, i), weft_result(m->to, node, i));
}

static void copy_into(struct weft_graph *to, const struct weft_graph *from)
{
    to->file = keep_text(to, from->file);
    for (uint32_t i = 0; i < from->bodies; i++) { /* depth is bounded by WEFT_MAX_DEPTH */
        struct weft_graph *body = weft_graph_new_body(to, from->body[i]->name);
        copy_into(body, from->body[i]);
    }
    struct mapping m = {.from = from, .to = to, .value = weft_new(to->arena, weft_val, from->values),
                        .group = weft_new(to->arena, uint32_t, from->groups)};
    for (uint32_t i = 0; i < from->params; i++)
        copy_value(&m, from->param[i], weft_add_param(to, NULL, weft_type_of(from, from->param[i])));
    weft_foreach_node(from, n)
        copy_node(&m, n);
    for (uint32_t i = 0; i < from->returns; i++)
        weft_add_return(to, m.value[from->ret[i].value.id], m.value[from->ret[i].mut.id]);
    to->returned = from->returned;
    to->end = copy_note(to, from->end);
}

static void copy_remarks(struct weft_graph *to, const struct weft_graph *from)
{
    for (uint32_t i = 0; i < from->remarks; i++) {
        const struct weft_remark *remark = &from->remark[i];
        to->remark = weft_grow(to->arena, to->remark, &to->remark_capacity, to->remarks + 1, sizeof *to->remark);
        to->remark[to->remarks++] = (struct weft_remark){
            .who = keep_text(to, remark->who),
            .where = keep_text(to, remark->where),
            .verdict = keep_text(to, remark->verdict),
            .reason = keep_text(to, remark->reason),
        };
    }
}

static void copy_tables(struct weft_graph *to, const struct weft_graph *from)
{
    to->dims = weft_dims_clone(to->arena, from->dims);
    to->layout = weft_grow(to->arena, to->layout, &to->layout_capacity, from->layouts, sizeof *to->layout);
    memcpy(to->layout, from->layout, from->layouts * sizeof *to->layout);
    to->layouts = from->layouts;
    to->layout_hash_size = from->layout_hash_size;
    to->layout_hash = weft_new(to->arena, uint32_t, from->layout_hash_size);
    if (from->layout_hash_size)
        memcpy(to->layout_hash, from->layout_hash, from->layout_hash_size * sizeof *to->layout_hash);
    to->rewrites = from->rewrites;
    to->rewrite_limit = from->rewrite_limit;
    to->fixed_labels = from->fixed_labels;
}

void weft_graph_copy(const struct weft_graph *graph, struct weft_graph **ret_graph)
{
    weft_assert(graph->root == graph);
    *ret_graph =
        weft_graph_new(graph->context, graph->name); /* the caller's at once: what follows may run out of memory */
    copy_tables(*ret_graph, graph);
    copy_remarks(*ret_graph, graph);
    for (uint32_t i = 0; i < graph->scopes; i++)
        weft_note_scope(*ret_graph, graph->scope[i].node, graph->scope[i].path);
    copy_into(*ret_graph, graph);
}

/* --- a part ------------------------------------------------------------------------------------------------------- */

/* Does the part begin here? Parameters are cut anyway. */
static bool is_cut(const struct mapping *m, weft_val v)
{
    return m->from->value[v.id].is_param || (m->cut && m->cut[v.id]);
}

static void add_cut(struct mapping *m, weft_val v)
{
    weft_assert(m->source);
    const weft_val param = weft_add_param(m->to, NULL, weft_type_of(m->from, v));
    copy_value(m, v, param);
    m->to->value[param.id].is_mut = m->to->value[param.id].is_static = false;
    m->source[m->to->params - 1] = v;
}

/* A node on the way down from a wanted value, and its operand that comes next. */
struct descent {
    weft_node node;
    unsigned next;
};

/* Nodes in the order in which they are needed: what one operand takes is finished before the next is begun, so that
 * few intermediate values are there at a time. */
static void copy_cone(struct mapping *m, weft_val wanted)
{
    struct descent *open = NULL;
    uint32_t count = 0, capacity = 0;
    weft_val next = wanted;
    for (;;) {
        if (!m->value[next.id].id && is_cut(m, next)) {
            add_cut(m, next);
        } else if (!m->value[next.id].id) {
            open = weft_grow(&m->from->root->scratch, open, &capacity, count + 1, sizeof *open);
            open[count++] = (struct descent){weft_def(m->from, next), 0};
        }
        while (count > 0 && open[count - 1].next == m->from->node[open[count - 1].node.id].operands)
            copy_node(m, open[--count].node);
        if (count == 0)
            return;
        next = weft_operand(m->from, open[count - 1].node, open[count - 1].next++);
    }
}

/* The value in the new graph: a copy of a constant, else a parameter. */
static void copy_operand(struct mapping *m, weft_val v)
{
    if (m->value[v.id].id)
        return;
    if (weft_is_const(m->from, v))
        copy_node(m, weft_def(m->from, v));
    else
        add_cut(m, v);
}

static struct mapping open_part(const struct weft_graph *graph, const bool *cut, struct weft_graph *part,
                                weft_val *value, weft_val *ret_source)
{
    copy_tables(part, graph->root); /* but no remarks: they are about the whole */
    part->file = keep_text(part, graph->root->file);
    return (struct mapping){.from = graph, .to = part, .cut = cut, .source = ret_source,
                            .value = value,
                            .group = weft_new(&graph->root->scratch, uint32_t, graph->groups)};
}

void weft_graph_copy_nodes(const struct weft_graph *graph, const weft_node *node, uint32_t nodes, weft_val *map,
                           struct weft_graph **ret_part, weft_val *ret_source)
{
    *ret_part = weft_graph_new(graph->context, graph->name);
    struct mapping m = open_part(graph, NULL, *ret_part, map, ret_source);
    for (uint32_t i = 0; i < nodes; i++)
        for (unsigned k = 0; k < graph->node[node[i].id].operands; k++)
            copy_operand(&m, weft_operand(graph, node[i], k));
    for (uint32_t i = 0; i < nodes; i++) {
        copy_node(&m, node[i]);
        for (unsigned k = 0; k < graph->node[node[i].id].results; k++)
            weft_add_return(m.to, m.value[weft_result(graph, node[i], k).id], WEFT_NO_VALUE);
    }
    m.to->returned = true;
    for (uint32_t i = 0; i < nodes; i++) {
        for (unsigned k = 0; k < graph->node[node[i].id].operands; k++)
            map[weft_operand(graph, node[i], k).id] = WEFT_NO_VALUE;
        for (unsigned k = 0; k < graph->node[node[i].id].results; k++)
            map[weft_result(graph, node[i], k).id] = WEFT_NO_VALUE;
    }
}

void weft_graph_copy_part(const struct weft_graph *graph, const weft_val *wanted, uint32_t count,
                          struct weft_graph **ret_part)
{
    weft_graph_copy_between(graph, NULL, wanted, count, ret_part, NULL);
}

void weft_graph_copy_between(const struct weft_graph *graph, const bool *cut, const weft_val *wanted, uint32_t count,
                             struct weft_graph **ret_part, weft_val *ret_source)
{
    *ret_part = weft_graph_new(graph->context, graph->name);
    weft_val *const value = weft_new(&graph->root->scratch, weft_val, graph->values);
    struct mapping m = open_part(graph, cut, *ret_part, value, ret_source);
    for (uint32_t i = 0; i < graph->bodies && cut; i++) {
        struct weft_graph *body = weft_graph_new_body(*ret_part, graph->body[i]->name);
        copy_into(body, graph->body[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        copy_cone(&m, wanted[i]);
    for (uint32_t i = 0; i < count; i++)
        weft_add_return(m.to, m.value[wanted[i].id], WEFT_NO_VALUE);
    m.to->returned = true;
}
