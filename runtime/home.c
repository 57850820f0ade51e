/* SPDX-License-Identifier: Apache-2.0 */
/* home.c: where each value of a plan lives.
 *
 * A view lives where its operand lives, if a strided layout can say so; else it is copied. A result is computed where
 * the caller wants it; a reshape or transpose that is returned hands its home back to the value that it is a view of,
 * so that the last kernel writes the result itself. A result that is a view of an input, or of another result, may be
 * given to the caller as such. What a concat or a padding would only copy is computed inside its result
 * (destination.c). Constants stay in their file. Everything else is a block of the arena, alive from the step that
 * writes it, or the first part of it, to the last that reads it. */
#include "runtime/runtime.h"

#include <string.h>

static uint32_t add_storage(struct weft_plan *plan, struct weft_storage storage)
{
    plan->storage = weft_grow(plan->graph->arena, plan->storage, &plan->storage_capacity, plan->storages + 1,
                              sizeof *plan->storage);
    plan->storage[plan->storages] = storage;
    return plan->storages++;
}

static const struct weft_layout *keep_layout(struct weft_plan *plan, const struct weft_layout *layout, int rank)
{
    const bool plain = weft_layout_is_row_major(layout) && layout->align == 0;
    if (plain && plan->row_major[rank])
        return plan->row_major[rank];
    struct weft_layout *kept = weft_new(plan->graph->arena, struct weft_layout, 1);
    *kept = *layout;
    if (plain)
        plan->row_major[rank] = kept;
    return kept;
}

void weft_home_set(struct weft_plan *plan, weft_val v, uint32_t storage, const struct weft_layout *layout)
{
    const struct weft_graph *g = plan->graph;
    struct weft_home *home = &plan->home[v.id];
    home->storage = storage;
    home->layout = keep_layout(plan, layout, weft_type_of(g, v)->rank);
    weft_layout_logical_strides(g->dims, layout, weft_type_of(g, v), home->stride);
}

/* As stated, or row-major where nothing is decided. From offset 0: a value that is computed or bound begins where its
 * storage does. */
struct weft_layout weft_home_layout(const struct weft_graph *g, weft_val v)
{
    struct weft_layout layout = weft_layout_of(g, v);
    if (layout.kind != WEFT_STORED)
        return weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.offset = weft_dim_of(0);
    return layout;
}

uint32_t weft_plan_add_pack(struct weft_plan *plan, size_t bytes)
{
    plan->pack = weft_grow(plan->graph->arena, plan->pack, &plan->pack_capacity, plan->packs + 1, sizeof *plan->pack);
    void *data = weft_allocate(plan->context, bytes);
    if (!data)
        weft_out_of_memory(plan->context);
    memset(data, 0, bytes);
    plan->pack[plan->packs] = (struct weft_pack){data, bytes};
    plan->constant_bytes += (int64_t)bytes;
    return plan->packs++;
}

void weft_home_params(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        const struct weft_layout layout = weft_plan_param_layout(plan, i);
        struct weft_storage storage = {.kind = WEFT_IN_PARAM, .dtype = type->dtype, .index = i, .value = g->param[i]};
        weft_layout_logical_strides(g->dims, &layout, type, storage.stride);
        plan->param_storage[i] = add_storage(plan, storage);
        weft_home_set(plan, g->param[i], plan->param_storage[i], &layout);
    }
}

/* What v is a view of, through reshapes and transposes, which keep all elements; and how v lies if that is stored as
 * its layout says. False where one of them cannot be a view. */
static bool find_root(const struct weft_graph *g, weft_val v, weft_val *ret_root, struct weft_layout *ret_layout)
{
    enum { MOST_VIEWS = 16 };
    weft_node view[MOST_VIEWS];
    int views = 0;
    for (weft_node n = weft_def(g, v); n.id; n = weft_def(g, v)) {
        if (weft_opcode_of(g, n) != WEFT_OP_reshape && weft_opcode_of(g, n) != WEFT_OP_transpose)
            break;
        if (views == MOST_VIEWS)
            return false;
        view[views++] = n;
        v = weft_operand(g, n, 0);
    }
    *ret_root = v;
    *ret_layout = weft_home_layout(g, v);
    while (views > 0) {
        const struct weft_layout from = *ret_layout;
        if (!weft_home_view_layout(g, view[--views], &from, ret_layout))
            return false;
    }
    return true;
}

/* A result whose layout is left open lies like what it is a view of, packed. */
static struct weft_layout open_layout(const struct weft_graph *g, weft_val v)
{
    weft_val root;
    struct weft_layout layout;
    if (!find_root(g, v, &root, &layout) || weft_layout_overlaps(g->dims, &layout, weft_type_of(g, v)))
        return weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.dense = true;
    layout.align = 0;
    layout.offset = weft_dim_of(0);
    return layout;
}

/* Result slots: the value itself, or what it is a view of, is computed there, unless that has a home already (a
 * parameter, a constant, the value of an earlier slot): then a copy at the end fills the slot. */
void weft_home_returns(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->returns; i++) {
        weft_val v = g->ret[i].value, root;
        struct weft_storage storage = {
            .kind = WEFT_IN_RETURN, .dtype = weft_type_of(g, v)->dtype, .index = i, .value = v};
        const bool open = !plan->return_layout && weft_layout_of(g, v).kind == WEFT_UNDECIDED;
        struct weft_layout layout = open ? open_layout(g, v) : weft_plan_return_layout(plan, i), view;
        weft_layout_logical_strides(g->dims, &layout, weft_type_of(g, v), storage.stride);
        plan->return_storage[i] = add_storage(plan, storage);
        if (find_root(g, v, &root, &view) && !weft_is(root, v) &&
            weft_layout_equal(g->dims, &view, &layout, weft_type_of(g, v))) {
            v = root;
            layout = weft_home_layout(g, v);
        }
        const weft_node def = weft_def(g, v);
        if (def.id && !plan->home[v.id].storage && !(weft_op_of(g, def)->traits & (WEFT_VIEW | WEFT_SOURCE)))
            weft_home_set(plan, v, plan->return_storage[i], &layout);
    }
}

/* Does the value lie as the caller wants result i? */
static bool lies_as_promised(const struct weft_plan *plan, uint32_t i)
{
    const struct weft_graph *g = plan->graph;
    const weft_val v = g->ret[i].value;
    const struct weft_type *type = weft_type_of(g, v);
    const weft_dim *promised = plan->storage[plan->return_storage[i]].stride, *stride = plan->home[v.id].stride;
    if (weft_layout_of(g, v).kind == WEFT_UNDECIDED)
        return true;
    for (int axis = 0; axis < type->rank; axis++)
        if (!weft_dim_is(type->extent[axis], 1) && !weft_dim_same(promised[axis], stride[axis]))
            return false;
    return true;
}

void weft_home_share(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    bool sized_by_data = false;
    for (uint32_t i = 0; i < weft_symbol_count(g->dims); i++)
        sized_by_data |= weft_symbol_at(g->dims, i)->data;
    for (uint32_t i = 0; plan->share && !plan->return_layout && !sized_by_data && i < g->returns; i++) {
        const struct weft_home *home = &plan->home[g->ret[i].value.id];
        const struct weft_storage *storage = &plan->storage[home->storage];
        const bool is_input = storage->kind == WEFT_IN_PARAM && !g->value[storage->value.id].is_mut;
        const bool is_result = storage->kind == WEFT_IN_RETURN && home->storage != plan->return_storage[i];
        plan->shared[i] = (is_input || is_result) && !g->ret[i].mut.id && lies_as_promised(plan, i);
    }
}

static struct weft_layout splat_layout(int rank)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    layout.dense = false;
    for (int i = 0; i < rank; i++)
        layout.stride[i] = weft_dim_of(0);
    return layout;
}

/* A splat is one element that all indices find. Other constants stay where they are, mapped from their file; weights.c
 * copies them where their address is odd for their type. */
void weft_home_constant(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    const struct weft_constant *constant = g->node[weft_def(g, v).id].constant;
    struct weft_storage storage = {.kind = WEFT_IN_CONSTANT, .dtype = type->dtype, .value = v};
    struct weft_layout layout = weft_layout_row_major(type->rank);
    const unsigned bits = weft_dtype_bits(type->dtype);
    if (constant->kind == WEFT_CONST_SPLAT && bits >= 8) {
        const uint32_t pack = weft_plan_add_pack(plan, bits / 8);
        if (constant->integer)
            weft_store_integer(type->dtype, plan->pack[pack].data, 0, constant->splat);
        else
            weft_store_real(type->dtype, plan->pack[pack].data, 0, constant->real);
        storage.data = plan->pack[pack].data;
        storage.splat = true;
        layout = splat_layout(type->rank);
    } else {
        storage.data = weft_const_data(g, v);
        if ((uintptr_t)storage.data % (bits >= 8 ? bits / 8 : 1) != 0)
            storage.data = NULL; /* weights.c makes a copy if one is wanted */
    }
    weft_home_set(plan, v, add_storage(plan, storage), &layout);
}

bool weft_home_view_layout(const struct weft_graph *g, weft_node n, const struct weft_layout *from,
                           struct weft_layout *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_operand(g, n, 0)), *to = weft_type_of(g, weft_result(g, n, 0));
    int axis[WEFT_MAX_RANK];
    bool view = false;
    if (weft_dtype_bits(type->dtype) < 8)
        return false;
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_transpose:
        for (int i = 0; i < type->rank; i++)
            axis[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, (unsigned)i));
        view = weft_layout_transpose(from, axis, ret);
        break;
    case WEFT_OP_bcast:
        for (int i = 0; i < type->rank; i++)
            axis[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
        view = weft_layout_broadcast(g->dims, from, type, to, axis, ret);
        break;
    case WEFT_OP_reshape:
        view = weft_layout_reshape(g->dims, from, type, to, ret);
        break;
    case WEFT_OP_slice: {
        weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
        for (int i = 0; i < type->rank; i++) {
            start[i] = weft_attr_at(g, n, WEFT_ATTR_start, (unsigned)i);
            step[i] = weft_attr_at(g, n, WEFT_ATTR_step, (unsigned)i);
        }
        view = weft_layout_slice(g->dims, from, type, start, step, ret);
        break;
    }
    default:
        break;
    }
    weft_dim stride[WEFT_MAX_RANK]; /* a reshape may yield a view with split axes, which kernels do not read */
    return view && weft_layout_logical_strides(g->dims, ret, to, stride);
}

bool weft_home_view(struct weft_plan *plan, weft_node n, weft_val v)
{
    const struct weft_home from = plan->home[weft_operand(plan->graph, n, 0).id];
    struct weft_layout layout;
    const bool view = weft_home_view_layout(plan->graph, n, from.layout, &layout);
    if (view)
        weft_home_set(plan, v, from.storage, &layout);
    return view;
}

void weft_home_block(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const uint32_t storage = add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_ARENA, .dtype = weft_type_of(g, v)->dtype, .value = v, .first = INT32_MAX, .last = -1});
    const struct weft_layout layout = weft_home_layout(g, v);
    weft_home_set(plan, v, storage, &layout);
}

uint32_t weft_home_room(struct weft_plan *plan, uint32_t control)
{
    return add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_ARENA, .control = control, .first = INT32_MAX, .last = -1});
}
