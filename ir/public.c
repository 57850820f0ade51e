/* SPDX-License-Identifier: Apache-2.0 */
/* public.c: the life of graphs and the making of extents, as weft.h declares them; values and nodes are in
 * public_node.c. Each function packs its arguments, and does its work in a protected call, so that running out of
 * memory is a status like any other. */
#include "ir/public.h"

#include <stdio.h>
#include <string.h>

const char *weft_version(void) { return WEFT_VERSION; }

int weft_version_number(void) { return WEFT_VERSION_NUMBER; }

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
    case WEFT_ERR_CANCELLED: return "cancelled";
    default: return "unknown status";
    }
}

int weft_wrong(struct weft_context *context, const char *where, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    weft_error(context, WEFT_ERR_ARGUMENT, &(struct weft_place){.where = where}, "%s", message);
    return WEFT_ERR_ARGUMENT;
}

const char *weft_public_place(const char *what, uint32_t number, const struct weft_graph *graph, const char *name,
                              char unnamed[WEFT_PLACE_BYTES])
{
    if (name && *name)
        return name;
    snprintf(unnamed, WEFT_PLACE_BYTES, "%s %u of @%.48s", what, number, graph->name);
    return unnamed;
}

bool weft_node_is_in(const struct weft_graph *graph, weft_node node)
{
    return (node.graph == 0 || node.graph == graph->number) && node.id && node.id < graph->nodes &&
           !graph->node[node.id].dead;
}

bool weft_value_is_in(const struct weft_graph *graph, weft_val value)
{
    if ((value.graph && value.graph != graph->number) || !value.id || value.id >= graph->values)
        return false;
    const weft_node def = graph->value[value.id].def;
    return !def.id || !graph->node[def.id].dead;
}

/* The graph of that number among a graph and its bodies; they are nested at most WEFT_MAX_DEPTH deep. */
static const struct weft_graph *find_graph(const struct weft_graph *graph, uint32_t number)
{
    const struct weft_graph *found = graph->number == number ? graph : NULL;
    for (uint32_t i = 0; !found && i < graph->bodies; i++)
        found = find_graph(graph->body[i], number);
    return found;
}

const char *weft_stranger(const struct weft_graph *graph, weft_val value)
{
    struct weft_arena *arena = &graph->root->scratch;
    const struct weft_graph *home = value.graph ? find_graph(graph->root, value.graph) : NULL;
    if (home == graph || (!value.graph && value.id))
        return weft_arena_format(arena, "no value of @%s", graph->name);
    if (!value.id)
        return "none (id 0)";
    if (!home)
        return weft_arena_format(arena, "a value of another graph than @%s", graph->name);
    return weft_value_is_in(home, value)
               ? weft_arena_format(arena, "%s of @%s, which @%s does not see: a body sees what its node hands to it",
                                   weft_value_text(home, value), home->name, graph->name)
               : weft_arena_format(arena, "a value of @%s, not of @%s", home->name, graph->name);
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

bool weft_uneditable(const struct weft_graph *graph) { return !graph->is_edited && weft_frozen(graph); }

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
        return weft_wrong(context, e->name,
                          "low %lld, hint %lld, high %lld: a symbol needs 0 <= low <= hint <= high <= 2147483647",
                          (long long)e->low, (long long)e->hint, (long long)e->high);
    if (weft_symbol_find(e->graph->dims, e->name, &known)) {
        int64_t low, high;
        weft_dim_range(e->graph->dims, known, &low, &high);
        if (e->low > high || e->high < low)
            return weft_wrong(context, e->name,
                              "%lld to %lld has no number in common with the bounds that it has, %lld to %lld",
                              (long long)e->low, (long long)e->high, (long long)low, (long long)high);
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

static bool is_operator(char op) { return op && strchr("+-*/%mM", op); }

static int combine(void *arg)
{
    struct extent *e = arg;
    struct weft_dims *dims = e->graph->dims;
    if (!weft_dim_exists(dims, e->a) || !weft_dim_exists(dims, e->b))
        return weft_wrong(e->graph->context, e->graph->name, "the %s extent of %c " NO_EXPRESSION,
                          weft_dim_exists(dims, e->a) ? "right" : "left", is_operator(e->op) ? e->op : '?');
    int64_t low, high;
    weft_dim_range(dims, e->b, &low, &high);
    if ((e->op == '/' || e->op == '%') && low <= 0)
        return weft_wrong(e->graph->context, e->graph->name, "the divisor of an extent must be positive; this one may "
                                                             "be %lld", (long long)low);
    switch (e->op) {
    case '+': e->result = weft_dim_add(dims, e->a, e->b); return WEFT_OK;
    case '-': e->result = weft_dim_sub(dims, e->a, e->b); return WEFT_OK;
    case '*': e->result = weft_dim_mul(dims, e->a, e->b); return WEFT_OK;
    case '/': e->result = weft_dim_div(dims, e->a, e->b); return WEFT_OK;
    case '%': e->result = weft_dim_mod(dims, e->a, e->b); return WEFT_OK;
    case 'm': e->result = weft_dim_min(dims, e->a, e->b); return WEFT_OK;
    case 'M': e->result = weft_dim_max(dims, e->a, e->b); return WEFT_OK;
    default:
        return weft_wrong(e->graph->context, e->graph->name, "extents combine by one of + - * / %% m M, not by %c",
                          e->op >= ' ' && e->op <= '~' ? e->op : '?');
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
