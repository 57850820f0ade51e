/* SPDX-License-Identifier: Apache-2.0 */
/* public_data.c: what weft.h tells of numbers: the elements of constants, and extents as text and for given sizes. */
#include "ir/public.h"
#include "ir/sizes.h"
#include "ir/tensor.h"

#include <string.h>

/* --- constants ---------------------------------------------------------------------------------------------------- */

static const struct weft_constant *constant_of(const struct weft_graph *graph, weft_val value)
{
    return graph->node[weft_def(graph, value).id].constant;
}

int32_t weft_constant_state_of(const struct weft_graph *graph, weft_val value)
{
    const struct weft_constant *const constant = weft_is_const(graph, value) ? constant_of(graph, value) : NULL;
    return !constant                              ? WEFT_CONSTANT_NONE
           : constant->kind == WEFT_CONST_SPLAT   ? WEFT_CONSTANT_SPLAT
           : constant->kind == WEFT_CONST_RANDOM  ? WEFT_CONSTANT_RANDOM
           : constant->blob->given_up[0]          ? WEFT_CONSTANT_GIVEN_UP : WEFT_CONSTANT_STORED;
}

struct elements {
    const struct weft_graph *graph;
    weft_val value;
    struct weft_tensor found;
};

static int refuse(const struct weft_graph *graph, weft_val value, int status, const char *why)
{
    weft_error(graph->context, status, &(struct weft_place){.file = graph->file, .where = graph->name}, "%s %s",
               weft_value_text(graph, value), why);
    return status;
}

static int read_elements(void *arg)
{
    struct elements *const e = arg;
    const struct weft_graph *const graph = e->graph;
    const struct weft_type *const type = weft_type_of(graph, e->value);
    const int32_t kind = weft_constant_state_of(graph, e->value);
    if (kind == WEFT_CONSTANT_NONE)
        return refuse(graph, e->value, WEFT_ERR_ARGUMENT, "is no constant");
    if (!weft_type_is_constant(type))
        return refuse(graph, e->value, WEFT_ERR_ARGUMENT, "has extents that depend on symbols");
    if (kind == WEFT_CONSTANT_GIVEN_UP)
        return refuse(graph, e->value, WEFT_ERR_INVALID, "has lost its elements: kernels read them in packed form "
                      "only, and WEFT_COMPILE_KEEP_CONSTANTS was not given");
    void *const given = e->found.data;
    weft_tensor_of(graph, type, NULL, &e->found);
    e->found.data = given ? given : weft_allocate(graph->context, weft_tensor_bytes(&e->found));
    if (!e->found.data)
        weft_out_of_memory(graph->context);
    if (weft_tensor_count(&e->found) > 0)
        weft_const_write(graph, e->value, e->found.data);
    return WEFT_OK;
}

int weft_constant_read(const struct weft_graph *graph, weft_val value, struct weft_tensor *tensor)
{
    if (!graph || !tensor)
        return weft_missing(graph ? graph->context : NULL);
    if (!weft_value_is_in(graph, value))
        return weft_wrong(graph->context, graph->name, "the value is %s", weft_stranger(graph, value));
    struct elements e = {graph, value, {.data = tensor->data}};
    const int status = weft_protected_graph(graph, read_elements, &e);
    if (status != WEFT_OK)
        return status;
    if (!tensor->data)
        weft_context_hold(graph->context); /* until weft_tensor_free */
    *tensor = e.found;
    return WEFT_OK;
}

/* --- extents ------------------------------------------------------------------------------------------------------ */

struct extent_text {
    const struct weft_graph *graph;
    weft_dim extent;
    struct weft_text text;
};

static int print_extent(void *arg)
{
    struct extent_text *const call = arg;
    weft_dim_print(call->graph->dims, call->extent, &call->text);
    return WEFT_OK;
}

int weft_extent_text(const struct weft_graph *graph, weft_dim extent, char **ret_text)
{
    if (!graph || !ret_text)
        return weft_missing(graph ? graph->context : NULL);
    if (!weft_dim_exists(graph->dims, extent))
        return weft_wrong(graph->context, graph->name, "the extent " NO_EXPRESSION);
    struct extent_text call = {graph, extent, {.context = graph->context}};
    int status = weft_protected_graph(graph, print_extent, &call);
    char *const text = status == WEFT_OK ? weft_text_take(&call.text) : NULL;
    if (status == WEFT_OK && !text)
        status = WEFT_ERR_NOMEM;
    if (text)
        *ret_text = text;
    weft_text_close(&call.text);
    return status;
}

struct extent_at {
    const struct weft_graph *graph;
    weft_dim extent;
    const struct weft_size *size;
    size_t sizes;
    int64_t result;
};

static int evaluate_extent(void *arg)
{
    struct extent_at *const call = arg;
    const struct weft_dims *const dims = call->graph->dims;
    int64_t *const symbols = weft_hint_symbols(call->graph, &call->graph->root->scratch);
    for (size_t i = 0; i < call->sizes; i++) {
        const struct weft_size *const size = &call->size[i];
        weft_dim d;
        uint32_t number;
        if (!size->symbol || !weft_symbol_find(dims, size->symbol, &d) || !weft_dim_is_symbol(dims, d, &number))
            return weft_wrong(call->graph->context, call->graph->name, "there is no symbol %s",
                              size->symbol ? size->symbol : "without a name");
        const struct weft_symbol_info *const info = weft_symbol_at(dims, number);
        if (size->value < info->low || size->value > info->high)
            return weft_wrong(call->graph->context, call->graph->name, "%s is between %lld and %lld, but %lld is given",
                              size->symbol, (long long)info->low, (long long)info->high, (long long)size->value);
        symbols[number] = size->value;
    }
    weft_symbols_at_bounds(dims, symbols);
    call->result = weft_dim_evaluate(dims, call->extent, symbols);
    return WEFT_OK;
}

int weft_extent_at(const struct weft_graph *graph, weft_dim extent, const struct weft_size *sizes, size_t count,
                   int64_t *ret_extent)
{
    if (!graph || !ret_extent || (!sizes && count))
        return weft_missing(graph ? graph->context : NULL);
    if (!weft_dim_exists(graph->dims, extent))
        return weft_wrong(graph->context, graph->name, "the extent " NO_EXPRESSION);
    struct extent_at call = {graph, extent, sizes, count, 0};
    const int status = weft_protected_graph(graph, evaluate_extent, &call);
    if (status == WEFT_OK)
        *ret_extent = call.result;
    return status;
}
