/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c: executions: their memory, the tensors bound to them, and what must hold before a run.
 *
 * Types are checked when a tensor is bound; extents when all are there, since symbols tie them together. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

/* --- life --------------------------------------------------------------------------------------------------------- */

/* What the caller promised of the address of an input, when the plan was made or in its layout, or of an output. */
static uint32_t promised_of(const struct weft_execution *e, uint32_t port)
{
    const struct weft_graph *g = e->plan->graph;
    return port >= g->params ? weft_layout_of(g, g->ret[port - g->params].value).align
           : e->plan->assumed ? e->plan->assumed[port].promised
                              : weft_layout_of(g, g->param[port]).align;
}

#define NEW(execution, member, count) \
    ((execution)->member = weft_allocate((execution)->plan->context, sizeof *(execution)->member * ((count) + 1)), \
     (execution)->member ? (memset((execution)->member, 0, sizeof *(execution)->member * ((count) + 1)), true) : false)
#define OLD(execution, member, count) \
    weft_release((execution)->plan->context, (execution)->member, sizeof *(execution)->member * ((count) + 1))

int weft_execution_create(const struct weft_plan *plan, struct weft_execution **ret_execution)
{
    if (!plan || !ret_execution)
        return WEFT_ERR_ARGUMENT;
    struct weft_execution *e = weft_allocate(plan->context, sizeof *e);
    if (!e)
        return WEFT_ERR_NOMEM;
    *e = (struct weft_execution){.plan = plan, .poison = weft_poison_asked()};
    weft_plan_hold(plan);
    const struct weft_graph *g = plan->graph;
    if (!NEW(e, input, g->params) || !NEW(e, output, g->returns) || !NEW(e, span, g->params + g->returns) ||
        !NEW(e, result, g->returns) || !NEW(e, output_bound, g->returns) ||
        !NEW(e, own, g->returns) || !NEW(e, stage, g->params) || !NEW(e, base, plan->storages) ||
        !NEW(e, packed, plan->static_packs) || !NEW(e, stale, g->params) ||
        !NEW(e, symbols, weft_symbol_count(g->dims))) {
        weft_execution_destroy(e);
        return WEFT_ERR_NOMEM;
    }
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_CONSTANT)
            e->base[i] = (void *)plan->storage[i].data;
    for (uint32_t i = 0; i < g->params + g->returns; i++)
        e->span[i].align = promised_of(e, i);
    *ret_execution = e;
    return WEFT_OK;
}

static void free_pack(const struct weft_execution *e, struct weft_pack *pack)
{
    weft_release(e->plan->context, pack->data, pack->bytes);
    *pack = (struct weft_pack){0};
}

void weft_execution_destroy(struct weft_execution *e)
{
    if (!e)
        return;
    const struct weft_plan *plan = e->plan;
    const struct weft_graph *g = plan->graph;
    for (int i = 0; i < WEFT_FRAMES; i++)
        weft_frame_free(e->plan, e->cache[i]);
    free_pack(e, &e->arena);
    free_pack(e, &e->scratch);
    for (uint32_t i = 0; e->own && i < g->returns; i++)
        free_pack(e, &e->own[i]);
    for (uint32_t i = 0; e->stage && i < g->params; i++)
        free_pack(e, &e->stage[i]);
    for (uint32_t i = 0; e->packed && i < plan->static_packs; i++)
        free_pack(e, &e->packed[i]);
    OLD(e, packed, plan->static_packs);
    OLD(e, stale, g->params);
    OLD(e, input, g->params);
    OLD(e, output, g->returns);
    OLD(e, span, g->params + g->returns);
    OLD(e, result, g->returns);
    OLD(e, output_bound, g->returns);
    OLD(e, own, g->returns);
    OLD(e, stage, g->params);
    OLD(e, base, e->plan->storages);
    OLD(e, symbols, weft_symbol_count(g->dims));
    weft_release(plan->context, e, sizeof *e);
    weft_plan_drop(plan);
}

const char *weft_execution_error(const struct weft_execution *e) { return e ? e->error : ""; }

int weft_execution_fail(struct weft_execution *e, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->error, sizeof e->error, format, arguments);
    va_end(arguments);
    return status;
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

const char *weft_execution_name(const struct weft_execution *e, weft_val v, char number[16])
{
    const char *name = e->plan->graph->value[v.id].name;
    if (!name)
        snprintf(number, 16, "%%%s", e->plan->label[v.id]);
    return name ? name : number;
}
#define NAME(e, v) weft_execution_name((e), (v), (char[16]){0})

/* Type and rank; extents are checked when all inputs are there, since symbols tie them together. */
static int check_tensor(struct weft_execution *e, const char *what, size_t i, weft_val v, const struct weft_tensor *t)
{
    const struct weft_graph *g = e->plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    if (!t)
        return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %zu '%s': no tensor", what, i, NAME(e, v));
    if (t->dtype != type->dtype)
        return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %zu '%s': the plan has %s, the tensor %s", what, i,
                                   NAME(e, v), weft_dtype_name(type->dtype),
                                   weft_dtype_name(t->dtype) ? weft_dtype_name(t->dtype) : "no dtype");
    if (t->rank != type->rank)
        return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %zu '%s': the plan has rank %d, the tensor %d", what, i,
                                   NAME(e, v), type->rank, t->rank);
    int64_t elements = 1;
    for (int axis = 0; axis < t->rank; axis++) {
        if (t->extent[axis] < 0 || t->stride[axis] < 0)
            return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %zu '%s': extent or stride of axis %d is negative",
                                       what, i, NAME(e, v), axis);
        if (__builtin_mul_overflow(elements, t->extent[axis] ? t->extent[axis] : 1, &elements) ||
            elements > WEFT_MAX_ELEMENTS) /* zeros do not count, as everywhere */
            return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %zu '%s': too many elements", what, i, NAME(e, v));
    }
    return WEFT_OK;
}

/* The address of the elements of `t`, of which there may be none. */
static int check_address(struct weft_execution *e, uint32_t port, const struct weft_tensor *t, const void *data)
{
    const struct weft_graph *g = e->plan->graph;
    const uint32_t align = e->span[port].align;
    for (int axis = 0; axis < t->rank; axis++)
        if (t->extent[axis] == 0)
            return WEFT_OK;
    const unsigned bytes = weft_dtype_bits(t->dtype) / 8;
    const bool is_element = data && (!bytes || (uintptr_t)data % bytes == 0);
    if (is_element && (!align || (uintptr_t)data % align == 0))
        return WEFT_OK;
    const char *const what = port < g->params ? "input" : "output";
    const uint32_t i = port < g->params ? port : port - g->params;
    const weft_val v = port < g->params ? g->param[i] : g->ret[i].value;
    if (is_element)
        return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %u '%s': data is not aligned to %u bytes, as promised",
                                   what, i, NAME(e, v), align);
    return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %u '%s': data is %s", what, i, NAME(e, v),
                               data ? "not aligned to its element type" : "NULL");
}

static char nothing[1]; /* the address of what is empty, and bound */

int weft_bind_input(struct weft_execution *e, size_t i, const struct weft_tensor *tensor)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->params)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no input %zu: the plan has %u", i, g->params);
    int status = check_tensor(e, "input", i, g->param[i], tensor);
    if (status == WEFT_OK)
        status = check_address(e, (uint32_t)i, tensor, tensor->data);
    if (status != WEFT_OK)
        return status;
    e->input[i] = *tensor;
    if (!e->input[i].data)
        e->input[i].data = nothing;
    weft_refresh_input(e, (uint32_t)i);
    e->frame = NULL;
    return WEFT_OK;
}

int weft_bind_output(struct weft_execution *e, size_t i, const struct weft_tensor *tensor)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->returns)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no output %zu: the plan has %u", i, g->returns);
    const uint32_t port = g->params + (uint32_t)i;
    int status = tensor ? check_tensor(e, "output", i, g->ret[i].value, tensor) : WEFT_OK;
    if (tensor && status == WEFT_OK)
        status = check_address(e, port, tensor, tensor->data);
    if (status != WEFT_OK)
        return status;
    e->output_bound[i] = tensor != NULL; /* NULL: back to memory of the execution */
    if (tensor)
        e->output[i] = *tensor;
    e->frame = NULL;
    return WEFT_OK;
}

/* Extents and strides stay, and so does what was found out for them, if it was. */
static int rebind(struct weft_execution *e, uint32_t port, struct weft_tensor *bound, void *data)
{
    const int status = check_address(e, port, bound, data);
    if (status == WEFT_OK) {
        bound->data = data ? data : nothing;
        e->moved = true;
    }
    return status;
}

int weft_rebind_input(struct weft_execution *e, size_t i, void *data)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->params || !e->input[i].data)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, i < g->params ? "input %zu was not bound before"
                                   : "there is no input %zu: the plan has %u", i, g->params);
    const int status = rebind(e, (uint32_t)i, &e->input[i], data);
    if (status == WEFT_OK)
        weft_refresh_input(e, (uint32_t)i);
    return status;
}

int weft_rebind_output(struct weft_execution *e, size_t i, void *data)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->returns || !e->output_bound[i])
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, i < g->returns ? "output %zu was not bound before"
                                   : "there is no output %zu: the plan has %u", i, g->returns);
    return rebind(e, g->params + (uint32_t)i, &e->output[i], data);
}

void weft_execution_port(const struct weft_execution *e, const struct weft_storage *storage, const int64_t *symbols,
                        struct weft_tensor *ret)
{
    const struct weft_dims *dims = e->plan->graph->dims;
    const struct weft_type *type = weft_type_of(e->plan->graph, storage->value);
    *ret = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) {
        ret->extent[i] = weft_dim_evaluate(dims, type->extent[i], symbols);
        ret->stride[i] = weft_dim_evaluate(dims, storage->stride[i], symbols);
    }
}

/* The same before a run: with room for whatever sizes come out of data. */
static void port_with_room(const struct weft_execution *e, const struct weft_storage *storage, struct weft_tensor *ret)
{
    const struct weft_dims *dims = e->plan->graph->dims;
    const struct weft_type *type = weft_type_of(e->plan->graph, storage->value);
    weft_execution_port(e, storage, e->symbols, ret);
    for (int i = 0; i < type->rank && e->plan->late < e->plan->steps; i++) {
        ret->extent[i] = weft_dim_most(dims, type->extent[i], e->symbols);
        ret->stride[i] = weft_dim_most(dims, storage->stride[i], e->symbols);
    }
}

/* Axes of extent 1 have no place in memory, so their strides do not count; nor do those of an empty array. */
static int check_port(struct weft_execution *e, const char *what, uint32_t i, const struct weft_storage *storage,
                      const struct weft_tensor *t)
{
    struct weft_tensor want;
    port_with_room(e, storage, &want);
    char number[16];
    const char *name = weft_execution_name(e, storage->value, number);
    bool empty = false;
    for (int axis = 0; axis < want.rank; axis++) {
        if (t->extent[axis] != want.extent[axis])
            return weft_execution_fail(e, WEFT_ERR_BINDING, "%s %u '%s': axis %d has extent %lld, the plan needs %lld",
                                       what, i, name, axis, (long long)t->extent[axis], (long long)want.extent[axis]);
        empty |= want.extent[axis] == 0;
    }
    for (int axis = 0; axis < want.rank && !empty; axis++)
        if (want.extent[axis] != 1 && t->stride[axis] != want.stride[axis])
            return weft_execution_fail(e, WEFT_ERR_BINDING,
                                       "%s %u '%s': axis %d has stride %lld, the plan's layout %lld", what, i, name,
                                       axis, (long long)t->stride[axis], (long long)want.stride[axis]);
    return WEFT_OK;
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

static int solve(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    for (uint32_t i = 0; i < g->params; i++)
        if (!e->input[i].data)
            return weft_execution_fail(e, WEFT_ERR_BINDING, "input %u '%s' is not bound", i, NAME(e, g->param[i]));
    const int status = weft_solve_symbols(g, e->input, g->params, e->symbols, e->error, sizeof e->error);
    if (status != WEFT_OK)
        return status;
    if (!weft_check_sizes(g, e->symbols, e->error, sizeof e->error))
        return WEFT_ERR_BINDING;
    for (uint32_t i = 0; i < g->params; i++) {
        const int fits = check_port(e, "input", i, &e->plan->storage[e->plan->param_storage[i]], &e->input[i]);
        if (fits != WEFT_OK)
            return fits;
    }
    return WEFT_OK;
}

int weft_output_needed(struct weft_execution *e, size_t i, struct weft_tensor *ret_tensor)
{
    if (!e || !ret_tensor)
        return WEFT_ERR_ARGUMENT;
    if (i >= e->plan->graph->returns)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no output %zu: the plan has %u", i,
                                   e->plan->graph->returns);
    const int status = e->frame ? WEFT_OK : solve(e);
    if (status == WEFT_OK)
        port_with_room(e, &e->plan->storage[e->plan->return_storage[i]], ret_tensor);
    return status;
}

static struct weft_frame *find_frame(struct weft_execution *e)
{
    const size_t bytes = weft_symbol_count(e->plan->graph->dims) * sizeof *e->symbols;
    int oldest = 0;
    for (int i = 0; i < WEFT_FRAMES; i++) {
        if (e->cache[i] && memcmp(e->cache[i]->symbols, e->symbols, bytes) == 0)
            return e->cache[i];
        if (!e->cache[i] || (e->cache[oldest] && e->cache[i]->used < e->cache[oldest]->used))
            oldest = i;
    }
    struct weft_frame *frame = weft_frame_new(e->plan, e->symbols, NULL);
    if (frame) {
        weft_frame_free(e->plan, e->cache[oldest]);
        e->cache[oldest] = frame;
    }
    return frame;
}

bool weft_execution_reserve(struct weft_execution *e, struct weft_pack *pack, size_t bytes)
{
    if (pack->bytes >= bytes && pack->data)
        return true;
    free_pack(e, pack);
    pack->data = weft_allocate(e->plan->context, bytes);
    pack->bytes = bytes;
    if (!pack->data)
        pack->bytes = 0;
    return pack->data != NULL;
}

bool weft_execution_reserve_scratch(struct weft_execution *e, const struct weft_frame *frame)
{
    const size_t bytes = frame->shared_bytes + frame->scratch_bytes * (size_t)e->plan->workers + 64;
    if (!weft_execution_reserve(e, &e->scratch, bytes))
        return false;
    memset(e->scratch.data, 0, 64);
    return true;
}

static int place_outputs(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    for (uint32_t i = 0; i < plan->graph->returns; i++) {
        const struct weft_storage *storage = &plan->storage[plan->return_storage[i]];
        if (e->output_bound[i]) {
            const int fits = check_port(e, "output", i, storage, &e->output[i]);
            if (fits != WEFT_OK)
                return fits;
        } else if (plan->shared[i]) {
            continue; /* see show_views */
        } else {
            port_with_room(e, storage, &e->output[i]);
            const int64_t bytes = weft_dtype_bytes(storage->dtype, weft_tensor_span(&e->output[i]));
            const size_t align = weft_layout_of(plan->graph, plan->graph->ret[i].value).align;
            if (!weft_execution_reserve(e, &e->own[i], (size_t)bytes + 64 + align))
                return weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory for output %u '%s' (%lld bytes)", i,
                                           NAME(e, plan->graph->ret[i].value), (long long)bytes);
            char *const own = e->own[i].data;
            e->output[i].data = align ? own + -(uintptr_t)own % align : own; /* it may be more than 64 */
        }
        e->base[plan->return_storage[i]] = e->output[i].data;
    }
    return WEFT_OK;
}

/* Results that are views of memory that others have. */
static void show_views(struct weft_execution *e, const struct weft_frame *frame)
{
    const struct weft_plan *plan = e->plan;
    for (uint32_t i = 0; i < plan->graph->returns; i++) {
        const weft_val v = plan->graph->ret[i].value;
        if (!plan->shared[i] || e->output_bound[i])
            continue;
        e->output[i] = frame->tensor[v.id];
        e->output[i].data = (char *)e->base[plan->home[v.id].storage] +
                            weft_dtype_bytes(e->output[i].dtype, frame->offset[v.id]);
    }
}

/* The same sizes, at other addresses of the caller's. */
int weft_execution_move(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    for (uint32_t i = 0; i < plan->graph->returns; i++)
        if (e->output_bound[i])
            e->base[plan->return_storage[i]] = e->output[i].data;
    for (uint32_t i = 0; i < plan->graph->params; i++) {
        const int status = weft_stage_place(e, i);
        if (status != WEFT_OK)
            return status;
    }
    show_views(e, e->frame);
    const int status = weft_overlap_check(e);
    e->moved = status != WEFT_OK;
    return status;
}

/* Reserves memory for new sizes; with sizes seen before, it only looks up. */
int weft_execution_prepare(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    int status = solve(e);
    if (status != WEFT_OK)
        return status;
    struct weft_frame *frame = find_frame(e);
    if (frame && frame->too_large.id)
        return weft_execution_fail(e, WEFT_ERR_NOMEM, "value %s is larger than memory can be for these inputs",
                    NAME(e, frame->too_large));
    if (!frame || !weft_execution_reserve(e, &e->arena, (size_t)frame->arena_bytes + WEFT_SPARE_BYTES) ||
        !weft_execution_reserve_scratch(e, frame))
        return weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory for intermediates");
    frame->used = ++e->clock;
    status = place_outputs(e);
    if (status != WEFT_OK)
        return status;
    for (uint32_t i = 0; i < plan->graph->params; i++) {
        status = weft_stage_place(e, i);
        if (status != WEFT_OK)
            return status;
    }
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_ARENA)
            e->base[i] = weft_frame_block(plan, frame, i, e->arena.data);
    show_views(e, frame);
    weft_overlap_measure(e);
    status = weft_overlap_check(e);
    if (status != WEFT_OK)
        return status;
    e->frame = frame;
    e->moved = false;
    return WEFT_OK;
}
