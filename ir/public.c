/* SPDX-License-Identifier: Apache-2.0 */
/* public.c: the life of graphs and the making of extents, as weft.h declares them; values and nodes are in
 * public_node.c. Each function packs its arguments, and does its work in a protected call, so that running out of
 * memory is a status like any other. */
#include "ir/public.h"

#include <string.h>

const char *weft_version(void) { return WEFT_VERSION; }

const char *weft_status_text(int status)
{
    switch (status) {
    case WEFT_OK: return "ok";
    case WEFT_ERR_NOMEM: return "out of memory";
    case WEFT_ERR_ARGUMENT: return "wrong argument";
    case WEFT_ERR_SYNTAX: return "cannot be read";
    case WEFT_ERR_INVALID: return "not a valid graph";
    case WEFT_ERR_UNSUPPORTED: return "unsupported";
    case WEFT_ERR_IO: return "file error";
    case WEFT_ERR_BINDING: return "tensor does not fit";
    case WEFT_ERR_CUSTOM: return "a custom function failed";
    default: return "unknown status";
    }
}

int weft_wrong(struct weft_context *context, const char *where, const char *message)
{
    weft_error(context, WEFT_ERR_ARGUMENT, &(struct weft_place){.where = where}, "%s", message);
    return WEFT_ERR_ARGUMENT;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

struct create {
    struct weft_context *context;
    struct weft_graph *parent;
    const struct weft_graph *source;
    const char *name;
    struct weft_graph *graph;
};

static int create(void *arg)
{
    struct create *c = arg;
    if (c->name && !*c->name)
        return weft_wrong(c->context, NULL, "the name of a graph has at least one character");
    if (c->parent && weft_frozen(c->parent))
        return WEFT_ERR_ARGUMENT;
    if (c->source && !weft_validate_graph(c->source))
        return WEFT_ERR_INVALID;
    if (c->source)
        weft_graph_copy(c->source, &c->graph);
    else
        c->graph = c->parent ? weft_graph_new_body(c->parent, c->name) : weft_graph_new(c->context, c->name);
    return c->graph ? WEFT_OK : WEFT_ERR_INVALID;
}

static int create_graph(struct create c, struct weft_graph **ret_graph)
{
    const struct weft_graph *from = c.source ? c.source : c.parent;
    const int status = from ? weft_protected_graph(from, create, &c) : weft_protected(c.context, create, &c);
    if (status == WEFT_OK)
        *ret_graph = c.graph;
    else if (!c.parent)
        weft_graph_free(c.graph);
    return status;
}

bool weft_frozen(const struct weft_graph *graph)
{
    if (graph->frozen)
        weft_wrong(graph->context, graph->name, "a node uses this body, so it cannot change any more");
    return graph->frozen;
}

int weft_graph_create(struct weft_context *context, const char *name, struct weft_graph **ret_graph)
{
    if (!context || !ret_graph)
        return weft_missing(context);
    return create_graph((struct create){.context = context, .name = name ? name : "main"}, ret_graph);
}

int weft_graph_create_body(struct weft_graph *parent, const char *name, struct weft_graph **ret_graph)
{
    if (!parent || !ret_graph)
        return weft_missing(parent ? parent->context : NULL);
    return create_graph((struct create){.context = parent->context, .parent = parent, .name = name ? name : "body"},
                        ret_graph);
}

int weft_graph_clone(const struct weft_graph *graph, struct weft_graph **ret_graph)
{
    if (!graph || !ret_graph)
        return weft_missing(graph ? graph->context : NULL);
    return create_graph((struct create){.context = graph->context, .source = graph->root}, ret_graph);
}

void weft_graph_destroy(struct weft_graph *graph)
{
    if (graph && !graph->parent)
        weft_graph_free(graph);
}

/* --- extents ------------------------------------------------------------------------------------------------------ */

weft_dim weft_extent(int64_t value)
{
    return weft_dim_of(value > WEFT_DIM_LIMIT ? WEFT_DIM_LIMIT : value < -WEFT_DIM_LIMIT ? -WEFT_DIM_LIMIT : value);
}

struct extent {
    struct weft_graph *graph;
    const char *name;
    int64_t low, high, hint;
    char op;
    weft_dim a, b, result;
};

static bool is_symbol_name(const char *name)
{
    static const char *const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_",
                      *const others = "0123456789.";
    if (!*name || !strchr(letters, *name) || strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
        return false;
    for (; *name; name++)
        if (!strchr(letters, *name) && !strchr(others, *name))
            return false;
    return true;
}

static int make_symbol(void *arg)
{
    struct extent *e = arg;
    struct weft_context *context = e->graph->context;
    weft_dim known;
    if (!e->name || !is_symbol_name(e->name))
        return weft_wrong(context, e->name, "a symbol is a word of letters, digits, _ and . that begins with a letter "
                                            "or _, and not min or max");
    if (e->low < 0 || e->low > e->high || e->high > INT32_MAX ||
        (e->hint && (e->hint < e->low || e->hint > e->high)))
        return weft_wrong(context, e->name, "a symbol needs 0 <= low <= hint <= high <= 2147483647");
    if (weft_symbol_find(e->graph->dims, e->name, &known)) {
        int64_t low, high;
        weft_dim_range(e->graph->dims, known, &low, &high);
        if (e->low > high || e->high < low)
            return weft_wrong(context, e->name, "the bounds have no number in common with those that it has");
    }
    e->result = weft_symbol_add(e->graph->dims, e->name, e->low, e->high, e->hint);
    return WEFT_OK;
}

int weft_symbol(struct weft_graph *graph, const char *name, int64_t low, int64_t high, int64_t hint, weft_dim *ret_dim)
{
    if (!graph || !ret_dim)
        return weft_missing(graph ? graph->context : NULL);
    struct extent e = {.graph = graph, .name = name, .low = low, .high = high, .hint = hint};
    const int status = weft_protected_graph(graph, make_symbol, &e);
    if (status == WEFT_OK)
        *ret_dim = e.result;
    return status;
}

static int combine(void *arg)
{
    struct extent *e = arg;
    struct weft_dims *dims = e->graph->dims;
    if (!weft_dim_exists(dims, e->a) || !weft_dim_exists(dims, e->b))
        return weft_wrong(e->graph->context, NULL, "an extent is no expression of this graph");
    int64_t low, high;
    weft_dim_range(dims, e->b, &low, &high);
    if ((e->op == '/' || e->op == '%') && low <= 0)
        return weft_wrong(e->graph->context, NULL, "the divisor of an extent must be positive");
    switch (e->op) {
    case '+': e->result = weft_dim_add(dims, e->a, e->b); return WEFT_OK;
    case '-': e->result = weft_dim_sub(dims, e->a, e->b); return WEFT_OK;
    case '*': e->result = weft_dim_mul(dims, e->a, e->b); return WEFT_OK;
    case '/': e->result = weft_dim_div(dims, e->a, e->b); return WEFT_OK;
    case '%': e->result = weft_dim_mod(dims, e->a, e->b); return WEFT_OK;
    case 'm': e->result = weft_dim_min(dims, e->a, e->b); return WEFT_OK;
    case 'M': e->result = weft_dim_max(dims, e->a, e->b); return WEFT_OK;
    default: return weft_wrong(e->graph->context, NULL, "extents combine by one of + - * / % m M");
    }
}

int weft_extent_combine(struct weft_graph *graph, char op, weft_dim a, weft_dim b, weft_dim *ret_dim)
{
    if (!graph || !ret_dim)
        return weft_missing(graph ? graph->context : NULL);
    struct extent e = {.graph = graph, .op = op, .a = a, .b = b};
    const int status = weft_protected_graph(graph, combine, &e);
    if (status == WEFT_OK)
        *ret_dim = e.result;
    return status;
}
