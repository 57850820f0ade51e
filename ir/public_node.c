/* SPDX-License-Identifier: Apache-2.0 */
/* public_node.c: the builder of weft.h: parameters, constants, nodes, results. What comes from the caller is checked
 * here as far as the gate of build.c trusts it: ids, extents, sizes, names. */
#include "ir/public.h"

#include <string.h>

static int make_type(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, struct weft_type *ret)
{
    if (weft_frozen(graph))
        return WEFT_ERR_ARGUMENT;
    if (!weft_dtype_name(dtype))
        return weft_wrong(graph->context, graph->name, "no such element type");
    if (rank < 0 || rank > WEFT_MAX_RANK || (rank > 0 && !extent))
        return weft_wrong(graph->context, graph->name, "a rank is from 0 to 8, with as many extents");
    *ret = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++) {
        int64_t low, high;
        if (!weft_dim_exists(graph->dims, extent[i]))
            return weft_wrong(graph->context, graph->name, "an extent is no expression of this graph");
        weft_dim_range(graph->dims, extent[i], &low, &high);
        if (high < 0 || (weft_dim_is_constant(extent[i]) && low < 0))
            return weft_wrong(graph->context, graph->name, "an extent is negative");
        ret->extent[i] = extent[i];
    }
    if (!weft_type_check_size(ret))
        return weft_wrong(graph->context, graph->name, "the type has more elements than any memory holds");
    return WEFT_OK;
}

struct value {
    struct weft_graph *graph;
    const char *name;
    int dtype, rank;
    const weft_dim *extent;
    bool is_mut;
    const int64_t *number; /* extents of a constant */
    const void *data;
    double splat;
    int64_t integer;
    weft_val result;
};

#define NO_NAME "a name has at least one character; NULL is none"

static int make_param(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    const int status = make_type(v->graph, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    if (v->name && !*v->name)
        return weft_wrong(v->graph->context, v->graph->name, NO_NAME);
    if (v->name && weft_value_find(v->graph, v->name, strlen(v->name)).id)
        return weft_wrong(v->graph->context, v->name, "there is a value of this name already");
    if (v->is_mut && v->graph->parent)
        return weft_wrong(v->graph->context, v->graph->name, "a body cannot have mut parameters");
    v->result = weft_add_param(v->graph, v->name, &type);
    weft_value_of(v->graph, v->result)->is_mut = v->is_mut;
    return WEFT_OK;
}

/* No allocator has more; the products of sizes that follow stay far from overflow. */
#define MOST_BYTES ((int64_t)1 << 46)

/* Number of elements, or -1 and an error. Nothing is allocated for sizes that cannot be. */
static int64_t count_elements(const struct value *v)
{
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < v->rank; i++) {
        if (v->number[i] < 0 || v->number[i] > WEFT_DIM_LIMIT) {
            weft_wrong(v->graph->context, v->graph->name, "an extent is negative or above 2^62 - 1");
            return -1;
        }
        empty = empty || v->number[i] == 0;
    }
    for (int i = 0; i < v->rank && !empty; i++) {
        if (v->number[i] > MOST_BYTES / count) {
            weft_wrong(v->graph->context, v->graph->name, "a constant of more than 2^46 bytes");
            return -1;
        }
        count *= v->number[i];
    }
    if (!empty && weft_dtype_bytes(v->dtype, count) > MOST_BYTES) {
        weft_wrong(v->graph->context, v->graph->name, "a constant of more than 2^46 bytes");
        return -1;
    }
    return empty ? 0 : count;
}

static int make_constant(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    weft_dim extent[WEFT_MAX_RANK] = {{0}};
    int status = make_type(v->graph, v->dtype, 0, NULL, &type);
    if (status == WEFT_OK && (v->rank < 0 || v->rank > WEFT_MAX_RANK || (v->rank > 0 && !v->number)))
        status = weft_wrong(v->graph->context, v->graph->name, "a rank is from 0 to 8, with as many extents");
    if (status != WEFT_OK)
        return status;
    const int64_t count = count_elements(v);
    if (count < 0)
        return WEFT_ERR_ARGUMENT;
    if (count > 0 && !v->data)
        return weft_wrong(v->graph->context, v->graph->name, "a constant with elements needs data");
    for (int i = 0; i < v->rank; i++)
        extent[i] = weft_dim_of(v->number[i]);
    status = make_type(v->graph, v->dtype, v->rank, extent, &type);
    if (status == WEFT_OK)
        v->result = weft_build_const(&(struct weft_builder){.graph = v->graph}, &type, v->data);
    return status;
}

/* Numbers that a cast would have to change are mistakes in a constant; only floats are rounded. */
static bool fits(int dtype, double value)
{
    if (weft_dtype_is_float(dtype))
        return true;
    const unsigned bits = dtype == WEFT_BOOL ? 1 : weft_dtype_bits(dtype) - weft_dtype_is_signed(dtype);
    const double end = (double)((uint64_t)1 << (bits - 1)) * 2;
    return value >= (weft_dtype_is_signed(dtype) ? -end : 0) && value < end &&
           (value >= 0x1p63 || value == (double)(int64_t)value);
}

static int make_splat(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    const int status = make_type(v->graph, v->dtype, v->rank, v->extent, &type);
    if (status == WEFT_OK && !fits(v->dtype, v->splat))
        return weft_wrong(v->graph->context, weft_dtype_name(v->dtype), "the type has no such element");
    if (status == WEFT_OK)
        v->result = weft_build_splat(&(struct weft_builder){.graph = v->graph}, &type, v->splat);
    return status;
}

static int make_integer_splat(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    const int status = make_type(v->graph, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    int64_t element = 0;
    if (!weft_dtype_is_float(v->dtype))
        weft_store_integer(v->dtype, &element, 0, v->integer);
    if (weft_dtype_is_float(v->dtype) || weft_load_integer(v->dtype, &element, 0) != v->integer)
        return weft_wrong(v->graph->context, weft_dtype_name(v->dtype), "the type has no such element");
    v->result = weft_build_element(&(struct weft_builder){.graph = v->graph}, &type,
                                   &(struct weft_element){.is_integer = true, .integer = v->integer});
    return WEFT_OK;
}

static int make_value(struct value v, int (*fn)(void *), weft_val *ret_value)
{
    const int status = weft_protected_graph(v.graph, fn, &v);
    if (status == WEFT_OK)
        *ret_value = v.result;
    return status;
}

int weft_param(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
               weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .name = name, .dtype = dtype, .rank = rank, .extent = extent},
                      make_param, ret_value);
}

int weft_param_mut(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                   weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .name = name, .dtype = dtype, .rank = rank, .extent = extent,
                                     .is_mut = true}, make_param, ret_value);
}

int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                  weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .number = extent, .data = data},
                      make_constant, ret_value);
}

int weft_splat(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, double value, weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .extent = extent, .splat = value},
                      make_splat, ret_value);
}

int weft_splat_integer(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, int64_t value,
                       weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .extent = extent, .integer = value},
                      make_integer_splat, ret_value);
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
        return weft_wrong(graph->context, given->name, "there is no attribute of this name");
    *ret = (struct weft_attr){.key = (uint8_t)key, .kind = weft_attr_kinds[key]};
    if (ret->kind == WEFT_ATTR_INT && (given->integer > WEFT_DIM_LIMIT || given->integer < -WEFT_DIM_LIMIT))
        return weft_wrong(graph->context, given->name, "an integer is beyond 2^62 - 1");
    if (given->count > UINT32_MAX)
        return weft_wrong(graph->context, given->name, "a list is longer than 2^32 - 1");
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
    if (missing)
        return weft_wrong(graph->context, given->name, "the member that this attribute's kind asks for is not set");
    for (uint32_t i = 0; ret->kind == WEFT_ATTR_INTS && i < ret->count; i++)
        if (!weft_dim_exists(graph->dims, ret->integers[i]))
            return weft_wrong(graph->context, given->name, "an element is no expression of this graph");
    return WEFT_OK;
}

static int append(void *arg)
{
    struct append *a = arg;
    struct weft_graph *graph = a->graph;
    struct weft_op own;
    const struct weft_op *op = &own;
    if (!weft_take_options(&own, sizeof own, a->op))
        return weft_wrong(graph->context, graph->name, "weft_op.size is not set");
    if (weft_frozen(graph))
        return WEFT_ERR_ARGUMENT;
    const int opcode = op->op ? weft_opcode_find(op->op, strlen(op->op)) : 0;
    if (!opcode || opcode == WEFT_OP_const)
        return weft_wrong(graph->context, op->op,
                     opcode ? "constants are made by weft_constant and weft_splat" : "there is no such op");
    if ((op->operands && !op->operand) || (op->attributes && !op->attribute))
        return weft_wrong(graph->context, op->op, "operands or attributes are counted, but there are none");
    if (op->operands > UINT16_MAX || op->attributes > WEFT_ATTR_COUNT)
        return weft_wrong(graph->context, op->op, "an op has at most 65535 operands, and each attribute once");
    for (size_t i = 0; i < op->operands; i++)
        if (!is_value(graph, op->operand[i]))
            return weft_wrong(graph->context, op->op, "an operand is not a value of this graph");
    struct weft_attr *attrs = weft_new(graph->arena, struct weft_attr, op->attributes);
    for (size_t i = 0; i < op->attributes; i++)
        if (read_attr(graph, &op->attribute[i], &attrs[i]) != WEFT_OK)
            return WEFT_ERR_ARGUMENT;
    struct weft_type stated;
    if (op->dtype && make_type(graph, op->dtype, op->rank, op->extent, &stated) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    if ((weft_ops[opcode].traits & WEFT_STATED) && !op->dtype && opcode != WEFT_OP_custom)
        return weft_wrong(graph->context, op->op, "this op does not infer its type: set dtype, rank and extent");
    if (op->name && !*op->name)
        return weft_wrong(graph->context, op->op, NO_NAME);
    if (op->name && weft_value_find(graph, op->name, strlen(op->name)).id)
        return weft_wrong(graph->context, op->name, "there is a value of this name already");
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
    if (!graph || !op || !ret_results)
        return weft_missing(graph ? graph->context : NULL);
    return weft_protected_graph(graph, append, &(struct append){graph, op, ret_results});
}

struct result {
    struct weft_graph *graph;
    const weft_val *values, *updated; /* the latter NULL: none */
    size_t count;
    const char *layout;
};

static int set_returns(void *arg)
{
    const struct result *r = arg;
    if (weft_frozen(r->graph))
        return WEFT_ERR_ARGUMENT;
    struct weft_graph *graph = r->graph;
    if (r->count > UINT32_MAX || (r->count && !r->values))
        return weft_wrong(graph->context, graph->name, "there are no values to return, or too many");
    for (size_t i = 0; i < r->count; i++) {
        const weft_val updated = r->updated ? r->updated[i] : WEFT_NO_VALUE;
        if (!is_value(graph, r->values[i]))
            return weft_wrong(graph->context, graph->name, "a result is not a value of this graph");
        if (updated.id && (!is_value(graph, updated) || !weft_value_of(graph, updated)->is_mut))
            return weft_wrong(graph->context, graph->name, "what a result updates is not a mut parameter");
    }
    graph->ret = weft_grow(graph->arena, graph->ret, &graph->return_capacity, (uint32_t)r->count, sizeof *graph->ret);
    weft_clear_returns(graph); /* from here on nothing can fail: the old results stay, or the new ones stand */
    for (size_t i = 0; i < r->count; i++)
        weft_add_return(graph, r->values[i], r->updated ? r->updated[i] : WEFT_NO_VALUE);
    graph->returned = true;
    return WEFT_OK;
}

int weft_return(struct weft_graph *graph, const weft_val *values, size_t count)
{
    return weft_return_mut(graph, values, NULL, count);
}

int weft_return_mut(struct weft_graph *graph, const weft_val *values, const weft_val *updated, size_t count)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    return weft_protected_graph(graph, set_returns,
                          &(struct result){.graph = graph, .values = values, .updated = updated, .count = count});
}

static int set_layout(void *arg)
{
    const struct result *r = arg;
    struct weft_graph *graph = r->graph;
    if (weft_frozen(graph))
        return WEFT_ERR_ARGUMENT;
    if (!is_value(graph, *r->values))
        return weft_wrong(graph->context, graph->name, "this is not a value of this graph");
    if (!r->layout)
        return weft_wrong(graph->context, graph->name, "there is no text of a layout");
    const char *cursor = r->layout, *message = NULL;
    struct weft_layout layout;
    if (!weft_layout_parse(graph->dims, &cursor, cursor + strlen(cursor), &layout, &message) || *cursor)
        return weft_wrong(graph->context, r->layout, message ? message : "there is something after the layout");
    message = weft_layout_check(&layout, weft_type_of(graph, *r->values));
    const struct weft_value *info = weft_value_of(graph, *r->values);
    if (!message && (!info->is_param || info->is_mut || info->returns) &&
        weft_layout_overlaps(graph->dims, &layout, &info->type))
        message = "elements share places, which is for parameters that are only read";
    if (message)
        return weft_wrong(graph->context, r->layout, message);
    weft_set_value_layout(graph, *r->values, &layout);
    return WEFT_OK;
}

int weft_set_layout(struct weft_graph *graph, weft_val value, const char *layout)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    return weft_protected_graph(graph, set_layout,
                          &(struct result){.graph = graph, .values = &value, .layout = layout});
}
