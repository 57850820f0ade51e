/* SPDX-License-Identifier: Apache-2.0 */
/* public_read.c: what weft.h tells of a graph: its order, its nodes, how its values are stored. Ids come
 * from the caller and may be those of nothing. */
#include "ir/public.h"

#include <string.h>

static bool is_node(const struct weft_graph *graph, weft_node node) { return graph && weft_node_is_in(graph, node); }

static bool is_value(const struct weft_graph *graph, weft_val value)
{
    return graph && weft_value_is_in(graph, value);
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

size_t weft_graph_params(const struct weft_graph *graph) { return graph ? graph->params : 0; }

weft_val weft_graph_param(const struct weft_graph *graph, size_t i)
{
    return graph && i < graph->params ? weft_value_out(graph, graph->param[i]) : WEFT_NO_VALUE;
}

size_t weft_graph_returns(const struct weft_graph *graph) { return graph ? graph->returns : 0; }

weft_val weft_graph_return(const struct weft_graph *graph, size_t i)
{
    return graph && i < graph->returns ? weft_value_out(graph, graph->ret[i].value) : WEFT_NO_VALUE;
}

weft_node weft_next_node(const struct weft_graph *graph, weft_node node)
{
    if (!graph || (node.id && !is_node(graph, node)))
        return WEFT_NO_NODE;
    weft_node next = node.id ? graph->node[node.id].next : graph->first;
    while (next.id && graph->node[next.id].dead)
        next = graph->node[next.id].next;
    return weft_node_out(graph, next);
}

/* --- a node ------------------------------------------------------------------------------------------------------- */

int weft_node_read(const struct weft_graph *graph, weft_node node, struct weft_node_facts *ret_facts)
{
    if (!is_node(graph, node) || !ret_facts)
        return WEFT_ERR_ARGUMENT;
    const struct weft_node_info *info = &graph->node[node.id];
    const struct weft_group *const group = info->group ? &graph->group[info->group] : NULL;
    struct weft_node_facts facts = {.op = weft_ops[info->op].name,
                                    .kernel = info->plan ? info->plan->kernel : NULL,
                                    .group = group ? group->name : NULL,
                                    .group_kernel = group && group->plan ? group->plan->kernel : NULL,
                                    .operands = info->operands,
                                    .results = info->results};
    for (uint32_t i = 0; info->plan && i < info->plan->count; i++)
        if (strcmp(info->plan->key[i], "in") == 0)
            facts.in = info->plan->value[i];
    return weft_give_facts(ret_facts, &facts, sizeof facts);
}

weft_val weft_node_operand(const struct weft_graph *graph, weft_node node, size_t i)
{
    return is_node(graph, node) && i < graph->node[node.id].operands
               ? weft_value_out(graph, weft_operand(graph, node, (unsigned)i)) : WEFT_NO_VALUE;
}

weft_val weft_node_result(const struct weft_graph *graph, weft_node node, size_t i)
{
    return is_node(graph, node) && i < graph->node[node.id].results
               ? weft_value_out(graph, weft_result(graph, node, (unsigned)i)) : WEFT_NO_VALUE;
}

int weft_node_attribute(const struct weft_graph *graph, weft_node node, const char *name,
                        struct weft_attribute *ret_attribute)
{
    if (!is_node(graph, node) || !name || !ret_attribute)
        return WEFT_ERR_ARGUMENT;
    const int key = weft_attr_key_find(name, strlen(name));
    const struct weft_attr_spec *spec = key ? weft_attr_spec_find(graph->node[node.id].op, key) : NULL;
    const struct weft_attr *attr = spec ? weft_attr_find(graph, node, key) : NULL;
    if (!spec || (!attr && !spec->has_default))
        return WEFT_ERR_ARGUMENT;
    struct weft_attribute found = {.name = weft_attr_names[key]};
    switch ((enum weft_attr_kind)weft_attr_kinds[key]) {
    case WEFT_ATTR_INT: found.integer = weft_dim_hint(graph->dims, weft_attr_dim(graph, node, key)); break;
    case WEFT_ATTR_REAL: found.real = weft_attr_real(graph, node, key); break;
    case WEFT_ATTR_WORD: found.word = weft_attr_word(graph, node, key); break;
    case WEFT_ATTR_DTYPE: found.word = weft_dtype_name(attr ? attr->dtype : (int)spec->fallback); break;
    case WEFT_ATTR_GRAPH: found.graph = attr ? attr->graph : NULL; break;
    case WEFT_ATTR_INTS: found.integers = attr ? attr->integers : NULL; break;
    case WEFT_ATTR_REALS: found.reals = attr ? attr->reals : NULL; break;
    case WEFT_ATTR_VALUES: found.values = attr ? attr->values : NULL; break;
    }
    if (found.integers || found.reals || found.values)
        found.count = attr->count;
    *ret_attribute = found;
    return WEFT_OK;
}

/* --- a value ------------------------------------------------------------------------------------------------------ */

struct reading {
    const struct weft_graph *graph;
    weft_val value;
    struct weft_value_facts *facts;
};

/* Strides are expressions of the graph, which may have to be made. */
static int read_layout(void *arg)
{
    const struct reading *r = arg;
    const struct weft_graph *graph = r->graph;
    const weft_val value = r->value;
    struct weft_value_facts *facts = r->facts;
    const struct weft_layout layout = weft_layout_of(graph, value);
    weft_dim stride[WEFT_MAX_STORAGE];
    facts->decided = layout.kind != WEFT_UNDECIDED;
    if (layout.kind != WEFT_STORED)
        return WEFT_OK;
    weft_layout_strides(graph->dims, &layout, weft_type_of(graph, value), stride);
    facts->storage_axes = layout.axes;
    facts->offset = weft_dim_hint(graph->dims, layout.offset);
    for (int i = 0; i < layout.axes; i++)
        facts->storage[i] = (struct weft_storage_axis){.axis = layout.axis[i].axis,
                                                       .div = layout.axis[i].div,
                                                       .mod = layout.axis[i].mod,
                                                       .stride = weft_dim_hint(graph->dims, stride[i])};
    return WEFT_OK;
}

int weft_value_read(const struct weft_graph *graph, weft_val value, struct weft_value_facts *ret_facts)
{
    if (!is_value(graph, value) || !ret_facts)
        return WEFT_ERR_ARGUMENT;
    const struct weft_value *info = &graph->value[value.id];
    struct weft_value_facts facts = {.name = info->name, .node = weft_node_out(graph, info->def),
                                     .dtype = info->type.dtype,
                                     .rank = info->type.rank, .uses = (size_t)info->uses + info->returns,
                                     .constant = weft_constant_state_of(graph, value)};
    for (int i = 0; i < facts.rank; i++) {
        facts.extent[i] = info->type.extent[i];
        facts.hint[i] = weft_dim_hint(graph->dims, info->type.extent[i]);
    }
    const int status = weft_protected_graph(graph, read_layout, &(struct reading){graph, value, &facts});
    return status == WEFT_OK ? weft_give_facts(ret_facts, &facts, sizeof facts) : status;
}
