/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c: a plan for one tuple of sizes. Extents and strides become numbers, blocks get their offsets in the arena,
 * kernels prepare their descriptors. All of it lies in one block of memory, so that executions can keep a few frames
 * and switch. */
#include "plan/plan.h"
#include "sched/sched.h"

#include <string.h>

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Lays the parts of a frame out in one piece of memory: called first without memory, for the size. */
static size_t lay_out(const struct weft_plan *plan, struct weft_frame *frame, char *memory)
{
    const struct weft_graph *g = plan->graph;
    size_t at = rounded(sizeof *frame);
#define PART(member, count) \
    do { \
        frame->member = (void *)(memory ? memory + at : NULL); \
        at += rounded(sizeof *frame->member * ((count) + 1)); \
    } while (0)
    PART(symbols, weft_symbol_count(g->dims));
    PART(live, weft_symbol_count(g->dims));
    PART(tensor, g->values);
    PART(offset, g->values);
    PART(place, plan->storages);
    PART(room, plan->storages);
    PART(step, plan->steps);
    PART(share, (size_t)plan->steps * (size_t)plan->workers);
    PART(descriptors, plan->descriptor_bytes);
    PART(control, plan->controls);
    PART(base[0], plan->storages);
    PART(base[1], plan->storages);
#undef PART
    return at;
}

typedef int64_t number_fn(const struct weft_dims *dims, weft_dim d, const int64_t *symbols);

static struct weft_tensor tensor_by(const struct weft_plan *plan, weft_val v, const int64_t *symbols, number_fn *number)
{
    const struct weft_dims *dims = plan->graph->dims;
    const struct weft_type *type = weft_type_of(plan->graph, v);
    struct weft_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) {
        const int64_t extent = number(dims, type->extent[i], symbols);
        t.extent[i] = extent > 0 ? extent : 0; /* hints need not be sizes that a graph can have */
        t.stride[i] = number(dims, plan->home[v.id].stride[i], symbols);
    }
    return t;
}

struct weft_tensor weft_home_tensor(const struct weft_plan *plan, weft_val v, const int64_t *symbols)
{
    return tensor_by(plan, v, symbols, weft_dim_evaluate);
}

struct weft_kernel_array weft_home_array(const struct weft_plan *plan, weft_val v, const int64_t *symbols)
{
    struct weft_kernel_array array;
    weft_array_of(plan->graph->dims, weft_type_of(plan->graph, v), plan->home[v.id].layout, symbols, &array);
    return array;
}

/* From the base of its storage a value reaches at most so many elements: beyond, there is no memory, and sums of bytes
 * could overflow. */
#define MOST_ELEMENTS ((int64_t)1 << 46)

bool weft_frame_fits(const struct weft_tensor *tensor, int64_t offset)
{
    int64_t last = offset, reach;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->extent[i] == 0)
            return true;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(tensor->extent[i] - 1, tensor->stride[i], &reach) ||
            __builtin_add_overflow(last, reach, &last) || last > MOST_ELEMENTS)
            return false;
    return last >= 0;
}

/* `number`: as it is, or the most it can be. */
static void size_value(const struct weft_plan *plan, struct weft_frame *frame, weft_val v, number_fn *number)
{
    frame->tensor[v.id] = tensor_by(plan, v, frame->live, number);
    frame->offset[v.id] = number(plan->graph->dims, plan->home[v.id].layout->offset, frame->live);
    if (!weft_frame_fits(&frame->tensor[v.id], frame->offset[v.id]) ||
        (plan->home[v.id].split && weft_home_array(plan, v, frame->live).bytes > MOST_ELEMENTS))
        frame->too_large = v;
}

int64_t weft_frame_block_bytes(const struct weft_plan *plan, struct weft_frame *frame, uint32_t number)
{
    const struct weft_storage *s = &plan->storage[number];
    if (s->control)
        return weft_control_bytes(plan, frame, s->control);
    if (plan->home[s->value.id].split)
        return weft_home_array(plan, s->value, frame->live).bytes;
    return weft_dtype_bytes(s->dtype, frame->offset[s->value.id] + weft_tensor_span(&frame->tensor[s->value.id]));
}

void *weft_frame_block(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t i, char *arena)
{
    char *const place = arena + frame->place[i];
    const uintptr_t align = plan->storage[i].align;
    return align ? place + -(uintptr_t)place % align : place;
}

/* What the arena has to hold: a block for each storage, empty for those that lie elsewhere. */
static void list_blocks(const struct weft_plan *plan, struct weft_frame *frame, struct weft_block *block)
{
    for (uint32_t i = 0; i < plan->storages; i++) {
        const struct weft_storage *s = &plan->storage[i];
        block[i] = (struct weft_block){.first = s->first, .last = s->last};
        if (s->kind == WEFT_IN_ARENA && s->last >= s->first)
            block[i].bytes = weft_frame_block_bytes(plan, frame, i) + s->align; /* room to begin where it has to */
    }
}

/* The order of blocks that was best is kept where ret_order is not NULL. */
static bool place_storages(const struct weft_plan *plan, struct weft_frame *frame, int64_t tries, uint32_t *ret_order)
{
    struct weft_block *block = weft_allocate(plan->context, plan->storages * sizeof *block);
    uint32_t *order = block ? weft_allocate(plan->context, 3 * plan->storages * sizeof *order) : NULL;
    if (order) {
        list_blocks(plan, frame, block);
        frame->arena_bytes =
            weft_place_blocks(block, plan->storages, tries, order, ret_order ? NULL : plan->place_order, ret_order);
        for (uint32_t i = 0; i < plan->storages; i++)
            frame->place[i] = block[i].offset, frame->room[i] = block[i].bytes;
    }
    weft_release(plan->context, order, 3 * plan->storages * sizeof *order);
    weft_release(plan->context, block, plan->storages * sizeof *block);
    return order != NULL;
}

bool weft_frame_keep_order(struct weft_plan *plan, struct weft_frame *frame)
{
    uint32_t *const order = weft_new(plan->graph->arena, uint32_t, plan->storages);
    const bool placed = place_storages(plan, frame, WEFT_PLACE_WELL, order);
    plan->place_order = placed ? order : NULL;
    return placed;
}

int64_t weft_frame_live_bytes(const struct weft_plan *plan, struct weft_frame *frame, struct weft_arena *arena)
{
    struct weft_block *const block = weft_new(arena, struct weft_block, plan->storages);
    list_blocks(plan, frame, block);
    return weft_live_bytes(block, plan->storages, weft_new(arena, uint32_t, 2 * (size_t)plan->storages));
}

static int64_t byte_offset(const struct weft_plan *plan, const struct weft_frame *frame, weft_val v, int64_t more)
{
    return (frame->offset[v.id] + more) * (int64_t)(weft_dtype_bits(frame->tensor[v.id].dtype) / 8);
}

static void bind_step(const struct weft_plan *plan, struct weft_frame *frame, uint32_t number)
{
    const struct weft_step *step = &plan->step[number];
    if (step->control) {
        weft_control_bind(plan, frame, number, false);
        return;
    }
    const uint32_t pointers = step->ins < WEFT_STEP_POINTERS ? step->ins : WEFT_STEP_POINTERS;
    const struct weft_places places = weft_plan_places(plan);
    struct weft_bind bind = weft_plan_bind(plan, step, &places, frame->live);
    bind.out = frame->tensor[step->out[0].id];
    if (step->to)
        for (int i = 0; i < bind.out.rank; i++)
            bind.out.stride[i] =
                weft_dim_evaluate(plan->graph->dims, plan->storage[step->to].stride[i], frame->live);
    for (uint32_t i = 0; i < pointers; i++)
        bind.in[i] = frame->tensor[step->in[i].id];
    for (int i = 0; step->from && i < bind.in[0].rank; i++)
        bind.in[0].stride[i] =
            weft_dim_evaluate(plan->graph->dims, plan->storage[step->from].stride[i], frame->live);
    step->kind->bind(&bind, frame->descriptors + step->descriptor);
    struct weft_frame_step *bound = &frame->step[number];
    bound->parts = bind.parts;
    bound->shares = bind.shared > 0;
    const int64_t size = weft_dtype_bits(bind.out.dtype) / 8;
    bound->out_offset = step->to ? bind.out_offset * size : byte_offset(plan, frame, step->out[0], bind.out_offset);
    for (uint32_t i = 0; i < pointers && !step->from; i++)
        bound->in_offset[i] = byte_offset(plan, frame, step->in[i], i == 0 ? bind.in_offset : 0);
    if (bound->parts > frame->most_parts)
        frame->most_parts = bound->parts;
    if (rounded(bind.scratch) > frame->scratch_bytes)
        frame->scratch_bytes = rounded(bind.scratch);
    if (rounded(bind.shared) > frame->shared_bytes)
        frame->shared_bytes = rounded(bind.shared);
}

static void size_values(const struct weft_plan *plan, struct weft_frame *frame, number_fn *number)
{
    for (uint32_t i = 1; i < plan->graph->values; i++)
        if (plan->home[i].storage)
            size_value(plan, frame, (weft_val){.id = i}, number);
}

/* What memory is reserved for. Where sizes come out of data, some grow as others shrink: of ten elements those that are
 * not 0, and those that are. */
static number_fn *number_to_reserve(const struct weft_dims *dims)
{
    for (uint32_t i = 0; i < weft_symbol_count(dims); i++)
        if (weft_symbol_at(dims, i)->data)
            return weft_dim_most;
    return weft_dim_evaluate;
}

struct weft_frame *weft_frame_new(const struct weft_plan *plan, const int64_t *symbols, int64_t *live)
{
    struct weft_frame sizes = {0};
    const size_t bytes = lay_out(plan, &sizes, NULL);
    struct weft_frame *frame = weft_allocate(plan->context, bytes);
    if (!frame)
        return NULL;
    memset(frame, 0, bytes);
    lay_out(plan, frame, (char *)frame);
    frame->bytes = bytes;
    memcpy(frame->symbols, symbols, weft_symbol_count(plan->graph->dims) * sizeof *symbols);
    memcpy(frame->live, symbols, weft_symbol_count(plan->graph->dims) * sizeof *symbols);
    if (live)
        frame->live = live;
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_CONSTANT)
            frame->base[0][i] = frame->base[1][i] = (void *)(uintptr_t)plan->storage[i].data;
    size_values(plan, frame, number_to_reserve(plan->graph->dims));
    frame->most_parts = 1;
    /* Runs with sizes that are new wait for it. */
    const int64_t tries = weft_symbol_count(plan->graph->dims) ? WEFT_PLACE_QUICK : WEFT_PLACE_WELL;
    if (!weft_control_open(plan, frame) || (!frame->too_large.id && !place_storages(plan, frame, tries, NULL))) {
        weft_frame_free(plan, frame);
        return NULL;
    }
    for (uint32_t i = 0; i < plan->steps && !frame->too_large.id; i++)
        bind_step(plan, frame, i);
    if (!live && !frame->too_large.id)
        weft_frame_plan_meetings(plan, frame);
    return frame;
}

void weft_frame_rebind_all(const struct weft_plan *plan, struct weft_frame *frame)
{
    size_values(plan, frame, weft_dim_evaluate);
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].control)
            weft_control_bind(plan, frame, i, true);
        else
            bind_step(plan, frame, i);
}

void weft_frame_rebind(const struct weft_plan *plan, struct weft_frame *frame, uint32_t step)
{
    for (uint32_t i = 0; i < plan->step[step].ins; i++)
        size_value(plan, frame, plan->step[step].in[i], weft_dim_evaluate);
    for (uint32_t i = 0; i < plan->step[step].outs; i++)
        size_value(plan, frame, plan->step[step].out[i], weft_dim_evaluate);
    if (plan->step[step].control)
        weft_control_bind(plan, frame, step, true);
    else
        bind_step(plan, frame, step);
}

void weft_frame_free(const struct weft_plan *plan, struct weft_frame *frame)
{
    if (!frame)
        return;
    weft_control_close(plan, frame);
    weft_release(plan->context, frame, frame->bytes);
}
