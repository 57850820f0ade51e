/* SPDX-License-Identifier: Apache-2.0 */
/* public_node.c: the builder of weft.h: parameters, constants, results; nodes are in public_append.c. What comes from
 * the caller is checked here as far as the gate of build.c trusts it: ids, extents, sizes, names. */
#include "ir/public.h"

#include <string.h>

int weft_public_type(struct weft_graph *graph, const char *where, int dtype, int rank, const weft_dim *extent,
                     struct weft_type *ret)
{
    if (weft_frozen(graph))
        return WEFT_ERR_ARGUMENT;
    if (!weft_dtype_name(dtype))
        return weft_wrong(graph->context, where, "%d is no element type", dtype);
    if (rank < 0 || rank > WEFT_MAX_RANK || (rank > 0 && !extent))
        return weft_wrong(graph->context, where, "a rank is from 0 to %d, with as many extents; this is %d%s",
                          WEFT_MAX_RANK, rank, rank > 0 && !extent ? " without extents" : "");
    *ret = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++) {
        int64_t low, high;
        if (!weft_dim_exists(graph->dims, extent[i]))
            return weft_wrong(graph->context, where, "the extent of axis %d " NO_EXPRESSION, i);
        weft_dim_range(graph->dims, extent[i], &low, &high);
        if (high < 0 || (weft_dim_is_constant(extent[i]) && low < 0))
            return weft_wrong(graph->context, where, "the extent of axis %d is negative", i);
        ret->extent[i] = extent[i];
    }
    if (!weft_type_check_size(ret))
        return weft_wrong(graph->context, where, "the type has more elements than any memory holds");
    return WEFT_OK;
}

struct value {
    struct weft_graph *graph;
    const char *name;
    int dtype, rank;
    const weft_dim *extent;
    bool is_mut, is_static;
    const int64_t *number; /* extents of a constant */
    const void *data;
    bool borrowed;
    double splat;
    int64_t integer;
    weft_val result;
};

static int make_param(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    char unnamed[WEFT_PLACE_BYTES];
    const char *where = weft_public_place("parameter", v->graph->params, v->graph, v->name, unnamed);
    const int status = weft_public_type(v->graph, where, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    if (v->name && !*v->name)
        return weft_wrong(v->graph->context, where, NO_NAME);
    if (v->name && weft_value_find(v->graph, v->name, strlen(v->name)).id)
        return weft_wrong(v->graph->context, v->name, "there is a value of this name already");
    if ((v->is_mut || v->is_static) && v->graph->parent)
        return weft_wrong(v->graph->context, where, "a body cannot have %s parameters", v->is_mut ? "mut" : "static");
    v->result = weft_add_param(v->graph, v->name, &type);
    weft_value_of(v->graph, v->result)->is_mut = v->is_mut;
    weft_value_of(v->graph, v->result)->is_static = v->is_static;
    return WEFT_OK;
}

/* No allocator has more; the products of sizes that follow stay far from overflow. */
#define MOST_BYTES ((int64_t)1 << 46)

/* Number of elements, or -1 and an error. Nothing is allocated for sizes that cannot be. */
static int64_t count_elements(const struct value *v, const char *where)
{
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < v->rank; i++) {
        if (v->number[i] < 0 || v->number[i] > WEFT_DIM_LIMIT) {
            weft_wrong(v->graph->context, where, "the extent of axis %d, %lld, is negative or above 2^62 - 1", i,
                       (long long)v->number[i]);
            return -1;
        }
        empty = empty || v->number[i] == 0;
    }
    for (int i = 0; i < v->rank && !empty; i++) {
        if (v->number[i] > MOST_BYTES / count) {
            weft_wrong(v->graph->context, where, "a constant of more than 2^46 bytes");
            return -1;
        }
        count *= v->number[i];
    }
    if (!empty && weft_dtype_bytes(v->dtype, count) > MOST_BYTES) {
        weft_wrong(v->graph->context, where, "a constant of more than 2^46 bytes");
        return -1;
    }
    return empty ? 0 : count;
}

static weft_val build_borrowed(const struct value *v, const struct weft_type *type, int64_t count)
{
    struct weft_blob *blob =
        weft_blob_borrow(v->graph->context, v->data, (size_t)weft_dtype_bytes(type->dtype, count));
    if (!blob)
        weft_out_of_memory(v->graph->context);
    weft_graph_hold(v->graph, blob);
    return weft_build_blob(&(struct weft_builder){.graph = v->graph}, type, blob);
}

static int make_constant(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    weft_dim extent[WEFT_MAX_RANK] = {{0}};
    char unnamed[WEFT_PLACE_BYTES];
    const char *where = weft_public_place("node", v->graph->nodes, v->graph, NULL, unnamed);
    int status = weft_public_type(v->graph, where, v->dtype, 0, NULL, &type);
    if (status == WEFT_OK && (v->rank < 0 || v->rank > WEFT_MAX_RANK || (v->rank > 0 && !v->number)))
        status = weft_public_type(v->graph, where, v->dtype, v->rank, NULL, &type);
    if (status != WEFT_OK)
        return status;
    const int64_t count = count_elements(v, where);
    if (count < 0)
        return WEFT_ERR_ARGUMENT;
    if (count > 0 && !v->data)
        return weft_wrong(v->graph->context, where, "a constant with elements needs data");
    for (int i = 0; i < v->rank; i++)
        extent[i] = weft_dim_of(v->number[i]);
    status = weft_public_type(v->graph, where, v->dtype, v->rank, extent, &type);
    if (status == WEFT_OK)
        v->result = v->borrowed ? build_borrowed(v, &type, count)
                                : weft_build_const(&(struct weft_builder){.graph = v->graph}, &type, v->data);
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
    char unnamed[WEFT_PLACE_BYTES];
    const char *where = weft_public_place("node", v->graph->nodes, v->graph, NULL, unnamed);
    const int status = weft_public_type(v->graph, where, v->dtype, v->rank, v->extent, &type);
    if (status == WEFT_OK && !fits(v->dtype, v->splat))
        return weft_wrong(v->graph->context, where, "%s has no such element: %.17g", weft_dtype_name(v->dtype),
                          v->splat);
    if (status == WEFT_OK)
        v->result = weft_build_splat(&(struct weft_builder){.graph = v->graph}, &type, v->splat);
    return status;
}

static int make_integer_splat(void *arg)
{
    struct value *v = arg;
    struct weft_type type;
    char unnamed[WEFT_PLACE_BYTES];
    const char *where = weft_public_place("node", v->graph->nodes, v->graph, NULL, unnamed);
    const int status = weft_public_type(v->graph, where, v->dtype, v->rank, v->extent, &type);
    if (status != WEFT_OK)
        return status;
    int64_t element = 0;
    if (!weft_dtype_is_float(v->dtype))
        weft_store_integer(v->dtype, &element, 0, v->integer);
    if (weft_dtype_is_float(v->dtype) || weft_load_integer(v->dtype, &element, 0) != v->integer)
        return weft_wrong(v->graph->context, where, "%s has no such element: %lld", weft_dtype_name(v->dtype),
                          (long long)v->integer);
    v->result = weft_build_element(&(struct weft_builder){.graph = v->graph}, &type,
                                   &(struct weft_element){.is_integer = true, .integer = v->integer});
    return WEFT_OK;
}

static int make_value(struct value v, int (*fn)(void *), weft_val *ret_value)
{
    const int status = weft_protected_graph(v.graph, fn, &v);
    if (status == WEFT_OK)
        *ret_value = weft_value_out(v.graph, v.result);
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

int weft_param_static(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                      weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .name = name, .dtype = dtype, .rank = rank, .extent = extent,
                                     .is_static = true}, make_param, ret_value);
}

int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                  weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    return make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .number = extent, .data = data},
                      make_constant, ret_value);
}

int weft_constant_borrowed(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                           void (*release)(void *user, const void *data), void *user, weft_val *ret_value)
{
    if (!graph || !ret_value)
        return weft_missing(graph ? graph->context : NULL);
    weft_val made;
    const int status = make_value((struct value){.graph = graph, .dtype = dtype, .rank = rank, .number = extent,
                                                 .data = data, .borrowed = true},
                                  make_constant, &made);
    if (status != WEFT_OK)
        return status;
    struct weft_blob *const blob = graph->node[weft_def(graph, (weft_val){.id = made.id}).id].constant->blob;
    blob->release_data = release;
    blob->release_user = user;
    *ret_value = made;
    return WEFT_OK;
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
        return weft_wrong(graph->context, graph->name, "%zu values to return %s", r->count,
                          r->values ? "are too many" : "are counted, but there are none");
    for (size_t i = 0; i < r->count; i++) {
        const weft_val updated = r->updated ? r->updated[i] : WEFT_NO_VALUE;
        if (!weft_value_is_in(graph, r->values[i]))
            return weft_wrong(graph->context, graph->name, "result %zu is %s", i, weft_stranger(graph, r->values[i]));
        if (updated.id && !weft_value_is_in(graph, updated))
            return weft_wrong(graph->context, graph->name, "what result %zu updates is %s", i,
                              weft_stranger(graph, updated));
        if (updated.id && !weft_value_of(graph, updated)->is_mut)
            return weft_wrong(graph->context, graph->name, "what result %zu updates, %s, is not a mut parameter", i,
                              weft_value_text(graph, updated));
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

static int wrong_layout(const struct result *r, const char *message)
{
    return weft_wrong(r->graph->context, weft_value_text(r->graph, *r->values), "layout '%.128s': %s", r->layout,
                      message);
}

static int set_layout(void *arg)
{
    const struct result *r = arg;
    struct weft_graph *graph = r->graph;
    if (weft_frozen(graph))
        return WEFT_ERR_ARGUMENT;
    if (!weft_value_is_in(graph, *r->values))
        return weft_wrong(graph->context, graph->name, "the value to be laid out is %s",
                          weft_stranger(graph, *r->values));
    if (!r->layout)
        return weft_wrong(graph->context, weft_value_text(graph, *r->values), "there is no text of a layout");
    const char *cursor = r->layout, *message = NULL;
    struct weft_layout layout;
    if (!weft_layout_parse(graph->dims, &cursor, cursor + strlen(cursor), &layout, &message) || *cursor)
        return wrong_layout(r, message ? message : "there is something after it");
    message = weft_layout_check(&layout, weft_type_of(graph, *r->values));
    const struct weft_value *info = weft_value_of(graph, *r->values);
    if (!message && (!info->is_param || info->is_mut || info->returns) &&
        weft_layout_overlaps(graph->dims, &layout, &info->type))
        message = "elements share places, which is for parameters that are only read";
    if (message)
        return wrong_layout(r, message);
    weft_state_layout(graph, *r->values, &layout);
    return WEFT_OK;
}

int weft_set_layout(struct weft_graph *graph, weft_val value, const char *layout)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    return weft_protected_graph(graph, set_layout,
                          &(struct result){.graph = graph, .values = &value, .layout = layout});
}
