/* SPDX-License-Identifier: Apache-2.0 */
/* validate_data.c: the rules of sizes that come out of data. Each such symbol is defined once, by a node of the
 * top-level graph, and nothing before that node mentions it. One walk in order of execution with the set of symbols
 * that are defined so far; graphs without data symbols are done at once. */
#include "ir/validate.h"

#include <string.h>

struct walk {
    const struct weft_graph *graph;
    bool *defined; /* by symbol number; true from the start for symbols that inputs give */
    uint32_t symbols;
    struct weft_arena *arena;
};

/* The first undefined symbol that an extent mentions, or NULL. */
static const char *early_symbol(const struct walk *w, weft_dim d)
{
    for (uint32_t i = 0; i < w->symbols && !weft_dim_is_constant(d); i++)
        if (!w->defined[i] && weft_dim_mentions(w->graph->dims, d, i))
            return weft_symbol_at(w->graph->dims, i)->name;
    return NULL;
}

static const char *check_type(const struct walk *w, const struct weft_type *type)
{
    for (int axis = 0; axis < type->rank; axis++) {
        const char *name = early_symbol(w, type->extent[axis]);
        if (name)
            return weft_arena_format(w->arena, "its type mentions %s before a node has defined it", name);
    }
    return NULL;
}

static const char *check_attrs(const struct walk *w, const struct weft_node_info *info)
{
    for (unsigned a = 0; a < info->attrs; a++) {
        const struct weft_attr *attr = &info->attr[a];
        const char *name = attr->kind == WEFT_ATTR_INT ? early_symbol(w, attr->integer) : NULL;
        for (uint32_t i = 0; attr->kind == WEFT_ATTR_INTS && i < attr->count && !name; i++)
            name = early_symbol(w, attr->integers[i]);
        if (name)
            return weft_arena_format(w->arena, "attribute %s mentions %s before a node has defined it",
                                     weft_attr_names[attr->key], name);
    }
    return NULL;
}

static const char *define(const struct walk *w, weft_node node)
{
    const struct weft_attr *extent = weft_attr_find(w->graph, node, WEFT_ATTR_extent);
    for (uint32_t i = 0; extent && i < extent->count; i++) {
        uint32_t symbol;
        if (!weft_dim_is_symbol(w->graph->dims, extent->integers[i], &symbol))
            continue; /* inference complains */
        if (w->defined[symbol])
            return weft_arena_format(w->arena, "%s is defined a second time",
                                     weft_symbol_at(w->graph->dims, symbol)->name);
        w->defined[symbol] = true;
    }
    return NULL;
}

static bool open_walk(struct walk *w)
{
    bool any = false;
    w->symbols = weft_symbol_count(w->graph->dims);
    w->defined = weft_new(w->arena, bool, w->symbols + 1);
    for (uint32_t i = 0; i < w->symbols; i++) {
        const bool data = weft_symbol_at(w->graph->dims, i)->data;
        w->defined[i] = !data;
        any |= data;
    }
    return any;
}

const char *weft_find_data_error(const struct weft_graph *graph, struct weft_arena *arena, weft_node *ret_node)
{
    struct walk w = {.graph = graph, .arena = arena};
    const bool body = graph->root != graph;
    const char *message = NULL;
    *ret_node = WEFT_NO_NODE;
    if (!body && !open_walk(&w))
        return NULL;
    for (uint32_t i = 0; i < graph->params && !body; i++)
        if ((message = check_type(&w, weft_type_of(graph, graph->param[i]))) != NULL)
            return weft_arena_format(arena, "parameter %s: %s", weft_value_text(graph, graph->param[i]), message);
    weft_foreach_node(graph, node)
    {
        const bool data = weft_op_of(graph, node)->traits & WEFT_DATA;
        *ret_node = node;
        if (body && data)
            return "a size comes out of data only at top level, not in a body";
        if (body)
            continue;
        message = data ? define(&w, node) : check_attrs(&w, weft_node_of(graph, node));
        for (unsigned i = 0; i < weft_node_of(graph, node)->results && !message; i++)
            message = check_type(&w, weft_type_of(graph, weft_result(graph, node, i)));
        if (message)
            return message;
    }
    return NULL;
}
