/* SPDX-License-Identifier: Apache-2.0 */
/* public.c: the builder and the life of graphs, as weft.h declares them. Each function packs its arguments, and does
 * its work in a protected call, so that running out of memory is a status like any other. */
#include "ir/ir.h"

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
    default: return "unknown status";
    }
}

static int wrong(struct weft_context *context, const char *where, const char *message)
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
    const int status = weft_protected(c.context, create, &c);
    if (status == WEFT_OK)
        *ret_graph = c.graph;
    else if (!c.parent)
        weft_graph_free(c.graph);
    return status;
}

int weft_graph_create(struct weft_context *context, const char *name, struct weft_graph **ret_graph)
{
    return create_graph((struct create){.context = context, .name = name ? name : "main"}, ret_graph);
}

int weft_graph_create_body(struct weft_graph *parent, const char *name, struct weft_graph **ret_graph)
{
    return create_graph((struct create){.context = parent->context, .parent = parent, .name = name ? name : "body"},
                        ret_graph);
}

int weft_graph_clone(const struct weft_graph *graph, struct weft_graph **ret_graph)
{
    return create_graph((struct create){.context = graph->context, .source = graph->root}, ret_graph);
}

void weft_graph_destroy(struct weft_graph *graph) { weft_graph_free(graph); }

/* --- extents ------------------------------------------------------------------------------------------------------ */

weft_dim weft_extent(int64_t value) { return weft_dim_of(value); }

struct extent {
    struct weft_graph *graph;
    const char *name;
    int64_t low, high, hint;
    char op;
    weft_dim a, b, result;
};

static int make_symbol(void *arg)
{
    struct extent *e = arg;
    struct weft_context *context = e->graph->context;
    if (!e->name || !*e->name)
        return wrong(context, NULL, "a symbol needs a name");
    if (e->low < 0 || e->low > e->high || (e->hint && (e->hint < e->low || e->hint > e->high)))
        return wrong(context, e->name, "a symbol needs 0 <= low <= hint <= high");
    e->result = weft_symbol_add(e->graph->dims, e->name, e->low, e->high, e->hint);
    return WEFT_OK;
}

int weft_symbol(struct weft_graph *graph, const char *name, int64_t low, int64_t high, int64_t hint, weft_dim *ret_dim)
{
    struct extent e = {.graph = graph, .name = name, .low = low, .high = high, .hint = hint};
    const int status = weft_protected(graph->context, make_symbol, &e);
    if (status == WEFT_OK)
        *ret_dim = e.result;
    return status;
}

static int combine(void *arg)
{
    struct extent *e = arg;
    struct weft_dims *dims = e->graph->dims;
    int64_t low, high;
    weft_dim_range(dims, e->b, &low, &high);
    if ((e->op == '/' || e->op == '%') && low <= 0)
        return wrong(e->graph->context, NULL, "the divisor of an extent must be positive");
    switch (e->op) {
    case '+': e->result = weft_dim_add(dims, e->a, e->b); return WEFT_OK;
    case '-': e->result = weft_dim_sub(dims, e->a, e->b); return WEFT_OK;
    case '*': e->result = weft_dim_mul(dims, e->a, e->b); return WEFT_OK;
    case '/': e->result = weft_dim_div(dims, e->a, e->b); return WEFT_OK;
    case '%': e->result = weft_dim_mod(dims, e->a, e->b); return WEFT_OK;
    case 'm': e->result = weft_dim_min(dims, e->a, e->b); return WEFT_OK;
    case 'M': e->result = weft_dim_max(dims, e->a, e->b); return WEFT_OK;
    default: return wrong(e->graph->context, NULL, "extents combine by one of + - * / % m M");
    }
}

int weft_extent_combine(struct weft_graph *graph, char op, weft_dim a, weft_dim b, weft_dim *ret_dim)
{
    struct extent e = {.graph = graph, .op = op, .a = a, .b = b};
    const int status = weft_protected(graph->context, combine, &e);
    if (status == WEFT_OK)
        *ret_dim = e.result;
    return status;
}

/* --- values and nodes --------------------------------------------------------------------------------------------- */

static int make_type(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, struct weft_type *ret)
{
    if (!weft_dtype_name(dtype))
        return wrong(graph->context, graph->name, "no such element type");
    if (rank < 0 || rank > WEFT_MAX_RANK || (rank > 0 && !extent))
        return wrong(graph->context, graph->name, "a rank is from 0 to 8, with as many extents");
    *ret = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++) {
        int64_t low, high;
        weft_dim_range(graph->dims, extent[i], &low, &high);
        if (high < 0 || (weft_dim_is_constant(extent[i]) && low < 0))
            return wrong(graph->context, graph->name, "an extent is negative");
        ret->extent[i] = extent[i];
    }
    return WEFT_OK;
}

struct value {
    struct weft_graph *graph;
    const char *name;
    int dtype, rank;
    const weft_dim *extent;
    const void *data; /* NULL: a splat of `splat` */
    double splat;
    weft_val result;
};

static int make_param(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    const int status = make_type(v->graph, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    if (v->name && weft_value_find(v->graph, v->name, strlen(v->name)).id)
        return wrong(v->graph->context, v->name, "there is a value of this name already");
    v->result = weft_add_param(v->graph, v->name, &type);
    return WEFT_OK;
}

static int make_constant(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    const int status = make_type(v->graph, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    struct weft_builder b = {.graph = v->graph};
    v->result = v->data ? weft_build_const(&b, &type, v->data) : weft_build_splat(&b, &type, v->splat);
    return WEFT_OK;
}

static int make_value(struct value v, int (*fn)(void *), weft_val *ret_value)
{
    const int status = weft_protected(v.graph->context, fn, &v);
    if (status == WEFT_OK)
        *ret_value = v.result;
    return status;
}

int weft_param(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
               weft_val *ret_value)
{
    return make_value((struct value){.graph = graph, .name = name, .dtype = dtype, .rank = rank, .extent = extent},
                      make_param, ret_value);
}

int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                  weft_val *ret_value)
{
    weft_dim extents[WEFT_MAX_RANK];
    for (int i = 0; i < rank && i < WEFT_MAX_RANK; i++)
        extents[i] = weft_dim_of(extent[i]);
    static const char nothing[1];
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .extent = extents,
                                     .data = data ? data : nothing}, make_constant, ret_value);
}

int weft_splat(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, double value, weft_val *ret_value)
{
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .extent = extent, .splat = value},
                      make_constant, ret_value);
}

static bool is_value(const struct weft_graph *graph, weft_val v)
{
    return v.id > 0 && v.id < graph->values && !graph->node[graph->value[v.id].def.id].dead;
}

struct append {
    struct weft_graph *graph;
    const struct weft_op *op;
    weft_val *results;
};

/* The kind is the op's business: the caller sets the member that belongs to it. */
static int read_attr(struct weft_graph *graph, const struct weft_attribute *given, struct weft_attr *ret)
{
    const int key = given->name ? weft_attr_key_find(given->name, strlen(given->name)) : 0;
    if (!key)
        return wrong(graph->context, given->name, "there is no attribute of this name");
    *ret = (struct weft_attr){.key = (uint8_t)key, .kind = weft_attr_kinds[key]};
    switch ((enum weft_attr_kind)ret->kind) {
    case WEFT_ATTR_INT: ret->integer = weft_dim_of(given->integer); break;
    case WEFT_ATTR_REAL: ret->real = given->real; break;
    case WEFT_ATTR_WORD: ret->word = given->word; break;
    case WEFT_ATTR_DTYPE: ret->dtype = given->word ? weft_dtype_from_name(given->word) : 0; break;
    case WEFT_ATTR_GRAPH: ret->graph = given->graph; break;
    case WEFT_ATTR_INTS: ret->integers = given->integers; ret->count = (uint32_t)given->count; break;
    case WEFT_ATTR_REALS: ret->reals = given->reals; ret->count = (uint32_t)given->count; break;
    }
    const bool missing = (ret->kind == WEFT_ATTR_WORD && !ret->word) || (ret->kind == WEFT_ATTR_DTYPE && !ret->dtype) ||
                         (ret->kind == WEFT_ATTR_GRAPH && !ret->graph) ||
                         (ret->kind == WEFT_ATTR_INTS && ret->count && !ret->integers) ||
                         (ret->kind == WEFT_ATTR_REALS && ret->count && !ret->reals);
    return missing ? wrong(graph->context, given->name, "the member that this attribute's kind asks for is not set")
                   : WEFT_OK;
}

static int append(void *arg)
{
    struct append *a = arg;
    struct weft_graph *graph = a->graph;
    const struct weft_op *op = a->op;
    const int opcode = op->op ? weft_opcode_find(op->op, strlen(op->op)) : 0;
    if (!opcode || opcode == WEFT_OP_const)
        return wrong(graph->context, op->op,
                     opcode ? "constants are made by weft_constant and weft_splat" : "there is no such op");
    for (size_t i = 0; i < op->operands; i++)
        if (!is_value(graph, op->operand[i]))
            return wrong(graph->context, op->op, "an operand is not a value of this graph");
    struct weft_attr *attrs = weft_new(graph->arena, struct weft_attr, op->attributes);
    for (size_t i = 0; i < op->attributes; i++)
        if (read_attr(graph, &op->attribute[i], &attrs[i]) != WEFT_OK)
            return WEFT_ERR_ARGUMENT;
    struct weft_type stated;
    if (op->dtype && make_type(graph, op->dtype, op->rank, op->extent, &stated) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    if ((weft_ops[opcode].traits & WEFT_STATED) && !op->dtype)
        return wrong(graph->context, op->op, "this op does not infer its type: set dtype, rank and extent");
    if (op->name && weft_value_find(graph, op->name, strlen(op->name)).id)
        return wrong(graph->context, op->name, "there is a value of this name already");
    const weft_node node = weft_add_node(graph, &(struct weft_node_spec){
        .op = opcode, .operand = op->operand, .operands = (unsigned)op->operands, .attr = attrs,
        .attrs = (unsigned)op->attributes, .stated = op->dtype ? &stated : NULL, .place = {.where = op->name}});
    if (!node.id)
        return WEFT_ERR_INVALID;
    if (op->name && graph->node[node.id].results)
        weft_set_name(graph, weft_result(graph, node, 0), op->name, strlen(op->name));
    for (unsigned i = 0; i < graph->node[node.id].results; i++)
        a->results[i] = weft_result(graph, node, i);
    return WEFT_OK;
}

int weft_append(struct weft_graph *graph, const struct weft_op *op, weft_val *ret_results)
{
    return weft_protected(graph->context, append, &(struct append){graph, op, ret_results});
}

struct result {
    struct weft_graph *graph;
    const weft_val *values;
    size_t count;
    const char *layout;
};

static int set_returns(void *arg)
{
    const struct result *r = arg;
    for (size_t i = 0; i < r->count; i++)
        if (!is_value(r->graph, r->values[i]))
            return wrong(r->graph->context, r->graph->name, "a result is not a value of this graph");
    weft_clear_returns(r->graph);
    for (size_t i = 0; i < r->count; i++)
        weft_add_return(r->graph, r->values[i], WEFT_NO_VALUE);
    r->graph->returned = true;
    return WEFT_OK;
}

int weft_return(struct weft_graph *graph, const weft_val *values, size_t count)
{
    return weft_protected(graph->context, set_returns,
                          &(struct result){.graph = graph, .values = values, .count = count});
}

static int set_layout(void *arg)
{
    const struct result *r = arg;
    struct weft_graph *graph = r->graph;
    if (!is_value(graph, *r->values))
        return wrong(graph->context, graph->name, "this is not a value of this graph");
    const char *cursor = r->layout, *message = NULL;
    struct weft_layout layout;
    if (!weft_layout_parse(graph->dims, &cursor, cursor + strlen(cursor), &layout, &message) || *cursor)
        return wrong(graph->context, r->layout, message ? message : "there is something after the layout");
    message = weft_layout_check(&layout, weft_type_of(graph, *r->values));
    if (message)
        return wrong(graph->context, r->layout, message);
    weft_set_value_layout(graph, *r->values, &layout);
    return WEFT_OK;
}

int weft_set_layout(struct weft_graph *graph, weft_val value, const char *layout)
{
    return weft_protected(graph->context, set_layout,
                          &(struct result){.graph = graph, .values = &value, .layout = layout});
}
