/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: one copy of each constant, in the form that its readers want.
 *
 * Constants stay mapped from their file. Operand 1 of a product or convolution is packed when the plan is made, from
 * where it lies. What then still reads a constant as it is gets it in place; gathers, which read a row here and there
 * of arrays that may be a third of a model, do so at any address; for others a constant whose address does not suit its
 * type is copied (or where there are no bytes yet, as for random constants). Where nothing reads it, there is no copy,
 * and the pages of the file are given back. A packed constant stays readable where other sizes may lead to loops that
 * want another pack. */
#include "runtime/runtime.h"

#include <string.h>

static int64_t bytes_of(const struct weft_plan *plan, weft_val v)
{
    const struct weft_type *type = weft_type_of(plan->graph, v);
    return weft_dtype_bytes(type->dtype, weft_dim_value(weft_type_elements(plan->graph->dims, type)));
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

/* The elements, perhaps in memory that lasts until the next call. */
static const void *elements_of(struct weft_plan *plan, const struct weft_storage *storage)
{
    const void *in_place = weft_const_data(plan->graph, storage->value);
    if (in_place)
        return in_place;
    weft_release(plan->context, plan->temporary.data, plan->temporary.bytes);
    plan->temporary = (struct weft_pack){0};
    const size_t bytes = (size_t)bytes_of(plan, storage->value);
    plan->temporary.data = weft_allocate(plan->context, bytes);
    if (!plan->temporary.data)
        weft_out_of_memory(plan->context);
    plan->temporary.bytes = bytes;
    weft_const_write(plan->graph, storage->value, plan->temporary.data);
    return plan->temporary.data;
}

static bool is_packed(const struct weft_step *step) { return step->pack != 0; }

void weft_plan_pack_weights(struct weft_plan *plan, struct weft_step *step, const int64_t *symbols)
{
    if (step->kind != &weft_step_gemm && step->kind != &weft_step_conv)
        return;
    const weft_val weights = step->in[1];
    const struct weft_storage *storage = &plan->storage[plan->home[weights.id].storage];
    if (storage->kind != WEFT_IN_CONSTANT || !weft_type_is_constant(weft_type_of(plan->graph, weights)) ||
        !weft_dim_is_constant(plan->home[weights.id].layout->offset)) /* or other sizes would read the hint's */
        return;
    const struct weft_bind bind = {.plan = plan,
                                   .step = step,
                                   .symbols = symbols,
                                   .workers = plan->workers,
                                   .out = weft_home_tensor(plan, step->out, symbols),
                                   .in = {weft_home_tensor(plan, step->in[0], symbols),
                                          weft_home_tensor(plan, weights, symbols)}};
    const int64_t offset = weft_dim_evaluate(plan->graph->dims, plan->home[weights.id].layout->offset, symbols);
    const struct weft_constant *constant = plan->graph->node[weft_def(plan->graph, storage->value).id].constant;
    weft_step_pack(plan, step, &bind, (const weft_loose_f32 *)elements_of(plan, storage) + offset, constant);
    if (is_packed(step) &&
        constant->kind == WEFT_CONST_BLOB) /* at once, or the file and its packs are in memory together */
        weft_blob_forget(constant->blob, constant->offset, (size_t)bytes_of(plan, storage->value));
}

/* --- what is still read as it is ---------------------------------------------------------------------------------- */

/* Of constant extents, those before axis `from` aside, and strides: a view of something larger may have the first
 * without the second. */
static bool lies_one_way(const struct weft_plan *plan, weft_val v, int from)
{
    const struct weft_type *type = weft_type_of(plan->graph, v);
    bool constant = true;
    for (int i = 0; i < type->rank; i++)
        constant &= (i < from || weft_dim_is_constant(type->extent[i])) &&
                    weft_dim_is_constant(plan->home[v.id].stride[i]);
    return constant;
}

/* Do all sizes lead to loops that want the pack? How many rows a product has, and how many images a convolution, does
 * not count: the loops follow from strides, and from extents only where they are 1. */
static bool always_wants_pack(const struct weft_plan *plan, const struct weft_step *step)
{
    if (lies_one_way(plan, step->out, 0) && lies_one_way(plan, step->in[0], 0))
        return true;
    const struct weft_type *type = weft_type_of(plan->graph, step->out);
    const weft_dim results = type->extent[1]; /* a row, or an image, has so many; channels in this case */
    if (!weft_dim_is_constant(results) || weft_dim_value(results) < 2)
        return false;
    if (step->kind == &weft_step_gemm)
        return type->rank == 2 && weft_dim_is(plan->home[step->out.id].stride[1], 1);
    return lies_one_way(plan, step->out, 1) && lies_one_way(plan, step->in[0], 1);
}

/* What the readers of a storage ask of its address. */
enum readers { NOBODY, ANY_ADDRESS, ALIGNED };

static void mark(const struct weft_plan *plan, weft_val v, enum readers reader, uint8_t *readers)
{
    uint8_t *most = &readers[plan->home[v.id].storage];
    *most = reader > *most ? reader : *most;
}

static void mark_readers(const struct weft_plan *plan, uint8_t *readers)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        for (unsigned k = 0; k < step->inputs; k++)
            if (!(k == 1 && is_packed(step) && always_wants_pack(plan, step)))
                mark(plan, step->in[k], k == 0 && step->kind == &weft_step_gather ? ANY_ADDRESS : ALIGNED, readers);
        const unsigned operands = weft_step_reads_operands(step) ? g->node[step->node.id].operands : 0;
        for (unsigned k = 0; k < operands; k++)
            mark(plan, weft_operand(g, step->node, k), ALIGNED, readers);
    }
}

static void settle(struct weft_plan *plan, struct weft_storage *storage, enum readers readers)
{
    const struct weft_constant *constant = plan->graph->node[weft_def(plan->graph, storage->value).id].constant;
    const int64_t bytes = bytes_of(plan, storage->value);
    if (readers == ANY_ADDRESS && !storage->data)
        storage->data = weft_const_data(plan->graph, storage->value);
    if (readers != NOBODY && !storage->data) {
        const uint32_t pack = weft_plan_add_pack(plan, (size_t)bytes);
        weft_const_write(plan->graph, storage->value, plan->pack[pack].data);
        storage->data = plan->pack[pack].data;
    }
    const bool in_place = readers != NOBODY && constant->kind == WEFT_CONST_BLOB &&
                          storage->data == (const char *)constant->blob->data + constant->offset;
    if (constant->kind == WEFT_CONST_BLOB && !in_place)
        weft_blob_forget(constant->blob, constant->offset, (size_t)bytes);
}

void weft_plan_settle_constants(struct weft_plan *plan)
{
    weft_release(plan->context, plan->temporary.data, plan->temporary.bytes);
    plan->temporary = (struct weft_pack){0};
    uint8_t *readers = weft_new(&plan->graph->root->scratch, uint8_t, plan->storages);
    mark_readers(plan, readers);
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_CONSTANT && !plan->storage[i].splat)
            settle(plan, &plan->storage[i], readers[i]);
}
