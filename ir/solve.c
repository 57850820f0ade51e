/* SPDX-License-Identifier: Apache-2.0 */
/* solve.c: from the extents of the inputs to the values of the symbols.
 *
 * Extents that are one symbol name its value, and go first. Then an extent that is linear in the one symbol still
 * unknown in it (2*N + 1, A*B with A known) can be solved for that; this may make others solvable. Anything else, like
 * min(N, 8), has many solutions or none that is simple, and is only checked, as every extent is at the end. */
#include "ir/ir.h"

#include <stdio.h>

struct solve {
    const struct weft_graph *graph;
    const struct weft_tensor *in;
    int64_t *symbols; /* unknown ones hold the lower end of their range; nobody asks for them */
    bool *known;
    uint32_t count;
    char *message;
    size_t message_bytes;
};

static const char *name_of(const struct solve *s, uint32_t param, char *room, size_t bytes)
{
    const char *name = s->graph->value[s->graph->param[param].id].name;
    if (name)
        snprintf(room, bytes, "%%%s", name);
    else
        snprintf(room, bytes, "%u", param);
    return room;
}

/* --- inputs against types ---------------------------------------------------------------------------------- */

static bool check_input(const struct solve *s, uint32_t param)
{
    const struct weft_type *type = weft_type_of(s->graph, s->graph->param[param]);
    const struct weft_tensor *in = &s->in[param];
    char room[96];
    const char *name = name_of(s, param, room, sizeof room);
    if (in->dtype != type->dtype) {
        const char *given = weft_dtype_name(in->dtype);
        snprintf(s->message, s->message_bytes, "parameter %s has elements of type %s, but %s is given", name,
                 weft_dtype_name(type->dtype), given ? given : "no element type");
        return false;
    }
    if (in->rank != type->rank) {
        snprintf(s->message, s->message_bytes, "parameter %s has rank %d, but rank %d is given", name, type->rank,
                 in->rank);
        return false;
    }
    bool empty = false;
    for (int axis = 0; axis < in->rank; axis++) {
        empty |= in->extent[axis] == 0;
        if (in->extent[axis] < 0 || in->stride[axis] < 0) {
            snprintf(s->message, s->message_bytes, "parameter %s: axis %d is given a negative extent or stride", name,
                     axis);
            return false;
        }
    }
    if (!in->data && !empty)
        snprintf(s->message, s->message_bytes, "parameter %s is given no data", name);
    return in->data || empty;
}

static bool check_extent(const struct solve *s, uint32_t param, int axis)
{
    const struct weft_type *type = weft_type_of(s->graph, s->graph->param[param]);
    const int64_t wanted = weft_dim_evaluate(s->graph->dims, type->extent[axis], s->symbols);
    if (s->in[param].extent[axis] == wanted)
        return true;
    char room[96];
    struct weft_text text = {.context = s->graph->context};
    if (!weft_dim_is_constant(type->extent[axis])) {
        weft_text_add(&text, " = ");
        weft_dim_print(s->graph->dims, type->extent[axis], &text);
    }
    snprintf(s->message, s->message_bytes, "parameter %s: axis %d has extent %lld%s, but %lld is given",
             name_of(s, param, room, sizeof room), axis, (long long)wanted, text.length ? text.data : "",
             (long long)s->in[param].extent[axis]);
    weft_text_close(&text);
    return false;
}

/* --- solving ----------------------------------------------------------------------------------------------- */

static bool set_symbol(struct solve *s, uint32_t i, int64_t value, uint32_t param, int axis)
{
    const struct weft_symbol_info *info = weft_symbol_at(s->graph->dims, i);
    if (value < info->low || value > info->high) {
        char room[96];
        snprintf(s->message, s->message_bytes,
                 "parameter %s: extent %lld of axis %d makes %s %lld, but it may be %lld to %lld",
                 name_of(s, param, room, sizeof room), (long long)s->in[param].extent[axis], axis, info->name,
                 (long long)value, (long long)info->low, (long long)info->high);
        return false;
    }
    s->symbols[i] = value;
    s->known[i] = true;
    return true;
}

static bool solve_bare(struct solve *s, uint32_t param, int axis)
{
    uint32_t symbol;
    const weft_dim d = weft_type_of(s->graph, s->graph->param[param])->extent[axis];
    if (!weft_dim_is_symbol(s->graph->dims, d, &symbol) || s->known[symbol])
        return true;
    return set_symbol(s, symbol, s->in[param].extent[axis], param, axis);
}

/* The one unknown symbol in d; false where there is none or more. */
static bool find_unknown(const struct solve *s, weft_dim d, uint32_t *ret_symbol)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->known[i] && weft_dim_mentions(s->graph->dims, d, i)) {
            *ret_symbol = i;
            found++;
        }
    return found == 1;
}

/* What does not fit here is named by the check of all extents. */
static bool solve_linear(struct solve *s, uint32_t param, int axis, bool *ret_progress)
{
    const weft_dim d = weft_type_of(s->graph, s->graph->param[param])->extent[axis];
    uint32_t symbol;
    int64_t slope, rest, difference;
    if (weft_dim_is_constant(d) || !find_unknown(s, d, &symbol) ||
        !weft_dim_linear(s->graph->dims, d, symbol, s->symbols, &slope, &rest) || slope == 0 ||
        __builtin_sub_overflow(s->in[param].extent[axis], rest, &difference) || difference % slope != 0)
        return true;
    *ret_progress = true;
    return set_symbol(s, symbol, difference / slope, param, axis);
}

static bool solve_extents(struct solve *s)
{
    for (uint32_t param = 0; param < s->graph->params; param++)
        for (int axis = 0; axis < s->in[param].rank; axis++)
            if (!solve_bare(s, param, axis))
                return false;
    for (bool progress = true; progress;) {
        progress = false;
        for (uint32_t param = 0; param < s->graph->params; param++)
            for (int axis = 0; axis < s->in[param].rank; axis++)
                if (!solve_linear(s, param, axis, &progress))
                    return false;
    }
    return true;
}

/* --- symbols that no input fixes --------------------------------------------------------------------------- */

static bool type_mentions(const struct weft_graph *graph, weft_val value, uint32_t symbol)
{
    const struct weft_type *type = weft_type_of(graph, value);
    for (int axis = 0; axis < type->rank; axis++)
        if (weft_dim_mentions(graph->dims, type->extent[axis], symbol))
            return true;
    return false;
}

static bool is_used(const struct weft_graph *graph, uint32_t symbol);

static bool attr_mentions(const struct weft_graph *graph, const struct weft_attr *attr, uint32_t symbol)
{
    switch ((enum weft_attr_kind)attr->kind) {
    case WEFT_ATTR_INT: return weft_dim_mentions(graph->dims, attr->integer, symbol);
    case WEFT_ATTR_INTS:
        for (uint32_t i = 0; i < attr->count; i++)
            if (weft_dim_mentions(graph->dims, attr->integers[i], symbol))
                return true;
        return false;
    case WEFT_ATTR_GRAPH: return is_used(attr->graph, symbol);
    default: return false;
    }
}

/* A symbol that nothing mentions may stay unknown. Recursion is as deep as bodies are nested. */
static bool is_used(const struct weft_graph *graph, uint32_t symbol)
{
    for (uint32_t i = 0; i < graph->params; i++)
        if (type_mentions(graph, graph->param[i], symbol))
            return true;
    weft_foreach_node(graph, node)
    {
        const struct weft_node_info *info = weft_node_of(graph, node);
        for (unsigned i = 0; i < info->results; i++)
            if (type_mentions(graph, weft_result(graph, node, i), symbol))
                return true;
        for (unsigned i = 0; i < info->attrs; i++)
            if (attr_mentions(graph, &info->attr[i], symbol))
                return true;
    }
    return false;
}

static bool check_known(const struct solve *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->known[i] && is_used(s->graph, i)) {
            snprintf(s->message, s->message_bytes, "the extents of the inputs do not determine symbol %s",
                     weft_symbol_at(s->graph->dims, i)->name);
            return false;
        }
    return true;
}

bool weft_check_symbols(const struct weft_graph *graph)
{
    bool right = true;
    for (uint32_t i = 0; i < weft_symbol_count(graph->dims); i++) {
        bool mentioned = weft_symbol_at(graph->dims, i)->data; /* a node defines it */
        for (uint32_t k = 0; k < graph->params && !mentioned; k++)
            mentioned = type_mentions(graph, graph->param[k], i);
        if (mentioned || !is_used(graph, i))
            continue;
        weft_error(graph->context, WEFT_ERR_INVALID, &(struct weft_place){.file = graph->file, .where = graph->name},
                   "the extents of no parameter determine symbol %s", weft_symbol_at(graph->dims, i)->name);
        right = false;
    }
    return right;
}

static bool check_extents(const struct solve *s)
{
    for (uint32_t param = 0; param < s->graph->params; param++)
        for (int axis = 0; axis < s->in[param].rank; axis++)
            if (!check_extent(s, param, axis))
                return false;
    return true;
}

int weft_solve_symbols(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                       int64_t *symbols, char *message, size_t message_bytes)
{
    if (in_count != graph->params) {
        snprintf(message, message_bytes, "the graph has %u parameters, but %u tensors are given", graph->params,
                 in_count);
        return WEFT_ERR_BINDING;
    }
    struct solve s = {.graph = graph,
                      .in = in,
                      .symbols = symbols,
                      .count = weft_symbol_count(graph->dims),
                      .message = message,
                      .message_bytes = message_bytes};
    for (uint32_t i = 0; i < in_count; i++)
        if (!check_input(&s, i))
            return WEFT_ERR_BINDING;
    bool few[64]; /* graphs have a handful of symbols, and a run with known sizes allocates nothing */
    s.known = s.count <= 64 ? few : weft_allocate(graph->context, s.count * sizeof *s.known);
    if (!s.known) {
        snprintf(message, message_bytes, "out of memory");
        return WEFT_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < s.count; i++) {
        symbols[i] = weft_symbol_at(graph->dims, i)->low;
        s.known[i] = weft_symbol_at(graph->dims, i)->data; /* not solved for: a node will tell */
    }
    const bool solved = solve_extents(&s) && check_known(&s) && check_extents(&s);
    weft_symbols_at_bounds(graph->dims, symbols);
    if (s.known != few)
        weft_release(graph->context, s.known, s.count * sizeof *s.known);
    return solved ? WEFT_OK : WEFT_ERR_BINDING;
}

/* --- sizes out of data ------------------------------------------------------------------------------------------ */

bool weft_define_data(const struct weft_graph *graph, weft_node node, const int64_t *counts, int64_t *symbols,
                      struct weft_failure *failure)
{
    const struct weft_attr *extent = weft_attr_find(graph, node, WEFT_ATTR_extent);
    bool fits = true;
    for (uint32_t i = 0; i < extent->count; i++) {
        uint32_t symbol;
        if (!weft_dim_is_symbol(graph->dims, extent->integers[i], &symbol))
            continue;
        const struct weft_symbol_info *info = weft_symbol_at(graph->dims, symbol);
        const int64_t bound = weft_dim_evaluate(graph->dims, info->bound, symbols);
        symbols[symbol] = counts[i] < bound ? counts[i] : bound;
        if (counts[i] > bound)
            weft_fail(failure, WEFT_ERR_BINDING, "%s finds %lld elements, but %s is declared as at most %lld",
                      weft_op_of(graph, node)->name, (long long)counts[i], info->name, (long long)bound);
        fits = fits && counts[i] <= bound;
    }
    return fits;
}
