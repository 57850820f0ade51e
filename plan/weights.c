/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: one copy of each constant, in the form that its readers want.
 *
 * Constants stay mapped from their file. Operand 1 of a product or convolution is packed when the plan is made, from
 * where it lies. What then still reads a constant as it is gets it in place; gathers, which read a row here and there
 * of arrays that may be a third of a model, do so at any address; for others a constant whose address does not suit its
 * type is copied (or where there are no bytes yet, as for random constants). Where nothing reads it, there is no copy,
 * and the pages of the file are given back. A packed constant stays readable where other sizes may lead to loops that
 * want another pack (step_gemm.c and step_conv.c say where and why). Relayouts of constants are constants too (load.c).
 * What passes have computed is in memory of its own, not in a file: where nothing reads it in the end, that is given
 * up. */
#include "codegen/strips.h"
#include "passes/passes.h"
#include "plan/stored.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LEAST ((size_t)64 << 10) /* bytes that are worth giving up */

static const struct weft_constant *constant_of(const struct weft_plan *plan, const struct weft_storage *storage)
{
    return plan->graph->node[weft_def(plan->graph, storage->value).id].constant;
}

/* To `data`, which has room for all of it. */
static void write_elements(struct weft_plan *plan, const struct weft_storage *storage, void *data)
{
    if (storage->load)
        weft_plan_write_loaded(plan, storage, data);
    else
        weft_const_write(plan->graph, storage->value, data);
}

const void *weft_plan_keep_constant(struct weft_plan *plan, uint32_t number)
{
    if (!plan->storage[number].data) {
        const struct weft_storage storage = plan->storage[number];
        const uint32_t pack = weft_plan_add_pack(plan, (size_t)weft_plan_constant_bytes(plan, &storage));
        write_elements(plan, &storage, plan->pack[pack].data);
        weft_plan_share_pack(plan, pack);
        plan->storage[number].data = plan->pack[pack].data;
        plan->storage[number].pack = pack;
    }
    return plan->storage[number].data;
}

/* Pages of its file, which can be read again. */
static void forget_file(const struct weft_plan *plan, const struct weft_storage *storage)
{
    const struct weft_constant *constant = storage->load ? NULL : constant_of(plan, storage);
    if (constant && constant->kind == WEFT_CONST_BLOB)
        weft_blob_forget(constant->blob, constant->offset, (size_t)weft_plan_constant_bytes(plan, storage));
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

/* The elements, perhaps in memory that lasts until the next call. */
static const void *elements_of(struct weft_plan *plan, const struct weft_storage *storage)
{
    const bool is_made = storage->load || storage->splat; /* of a splat, one element is all */
    const void *in_place = is_made ? storage->data : weft_const_data(plan->graph, storage->value);
    if (in_place)
        return in_place;
    weft_release(plan->context, plan->temporary.data, plan->temporary.bytes);
    plan->temporary = (struct weft_pack){0};
    const size_t bytes = (size_t)weft_plan_constant_bytes(plan, storage);
    plan->temporary.data = weft_allocate(plan->context, bytes);
    if (!plan->temporary.data)
        weft_out_of_memory(plan->context);
    plan->temporary.bytes = bytes;
    write_elements(plan, storage, plan->temporary.data);
    return plan->temporary.data;
}

static bool is_packed(const struct weft_step *step) { return step->pack != 0; }

/* A computed constant that only this step reads, once: its elements and their pack are not in memory together, as those
 * of a file are not. Views and relayouts may have more readers, and a body may be planned for several loops. */
static void give_up_at_once(struct weft_plan *plan, const struct weft_step *step, const char *plain)
{
    const struct weft_graph *g = plan->graph;
    const weft_val weights = step->in[1];
    const weft_node def = weft_def(g, weights);
    const struct weft_constant *constant = def.id ? g->node[def.id].constant : NULL;
    if (!constant || constant->kind != WEFT_CONST_BLOB || !constant->blob->for_one || plain || plan->keeps_constants ||
        g->root != g || !weft_has_one_use(g, weights) || !weft_is(weft_operand(g, step->node, 1), weights))
        return;
    weft_blob_give_up(constant->blob);
    plan->storage[plan->home[weights.id].storage].data = NULL;
}

/* Packs operand 1 from where it lies; `alone`: only if nothing is to read it beside its pack. */
static void pack(struct weft_plan *plan, struct weft_step *step, bool alone)
{
    const weft_val weights = step->in[1];
    const struct weft_storage *storage = &plan->storage[plan->home[weights.id].storage]; /* packing adds none */
    const struct weft_places places = weft_plan_places(plan);
    const struct weft_select select = weft_plan_select(plan, &places, &plan->graph->root->scratch);
    struct weft_step_pack how;
    if (storage->kind != WEFT_IN_CONSTANT || /* a relayout that is returned, say, is made in each run */
        !weft_select_pack(&select, step, &how) || (alone && how.plain))
        return;
    struct weft_packing *const packing = weft_new(plan->graph->arena, struct weft_packing, 1);
    *packing = *how.packing;
    struct weft_stored_pack *const stored = weft_stored_find_pack(plan->stored, plan->packs, how.bytes);
    if (stored)
        step->pack = weft_plan_adopt_pack(plan, stored);
    else {
        const weft_loose_f32 *const elements = (const weft_loose_f32 *)elements_of(plan, storage) +
                                               weft_dim_value(plan->home[weights.id].layout->offset);
        step->pack = weft_plan_add_pack(plan, how.bytes);
        step->kind->write_pack(&how, plan->pack[step->pack].data, elements,
                               storage->load ? NULL : constant_of(plan, storage));
        weft_plan_share_pack(plan, step->pack);
    }
    plan->pack[step->pack].packing = packing;
    step->plain = how.plain;
    forget_file(plan, storage); /* at once, or the file and its packs are in memory together */
    give_up_at_once(plan, step, how.plain);
}

/* What a relayout only puts into another order can be packed from where it was: nobody needs the relayout then. */
static weft_val before_relayouts(const struct weft_plan *plan, weft_val v)
{
    for (;;) {
        const struct weft_step *load = &plan->load[plan->storage[plan->home[v.id].storage].load];
        if (!plan->storage[plan->home[v.id].storage].load || !weft_is(load->out[0], v) ||
            weft_opcode_of(plan->graph, load->node) != WEFT_OP_relayout)
            return v;
        v = load->in[0];
    }
}

void weft_plan_pack_weights(struct weft_plan *plan, struct weft_step *step)
{
    if (!step->kind->plan_pack || weft_plan_pack_static(plan, step))
        return;
    const weft_val weights = step->in[1], source = before_relayouts(plan, weights);
    step->in[1] = source;
    pack(plan, step, /* alone= */ !weft_is(source, weights));
    if (is_packed(step) || weft_is(source, weights))
        return;
    step->in[1] = weights;
    pack(plan, step, /* alone= */ false);
}

/* --- what is still read as it is ---------------------------------------------------------------------------------- */

/* What the readers of a storage ask of its address. */
enum readers { NOBODY, ANY_ADDRESS, ALIGNED };

static void mark(const struct weft_plan *plan, weft_val v, enum readers reader, uint8_t *readers)
{
    uint8_t *most = &readers[plan->home[v.id].storage];
    *most = reader > *most ? reader : *most;
}

static bool takes_any(const struct weft_step *step, uint32_t k)
{
    return step->code ? weft_strips_reads_anywhere(step->code, step->in[k])
                      : k == 0 && weft_step_has(step, WEFT_STEP_ODD_ADDRESS);
}

static void mark_readers(const struct weft_plan *plan, uint8_t *readers)
{
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        for (uint32_t k = 0; k < step->ins; k++)
            if (k != 1 || !is_packed(step) || step->plain)
                mark(plan, step->in[k], takes_any(step, k) ? ANY_ADDRESS : ALIGNED, readers);
    }
}

static void settle(struct weft_plan *plan, uint32_t number, enum readers readers)
{
    struct weft_storage *storage = &plan->storage[number];
    const void *const mapped = storage->load ? NULL : weft_const_data(plan->graph, storage->value);
    if (readers == ANY_ADDRESS && !storage->data)
        storage->data = mapped;
    if (readers != NOBODY)
        weft_plan_keep_constant(plan, number);
    else { /* something was made from it, if anything */
        if (storage->pack)
            weft_plan_drop_pack(plan, storage->pack);
        storage->data = NULL;
    }
    if (readers == NOBODY || storage->data != mapped)
        forget_file(plan, storage);
}

/* What was made from a constant has a higher number: it asks for the constant before that is given back. */
void weft_plan_settle_constants(struct weft_plan *plan)
{
    weft_release(plan->context, plan->temporary.data, plan->temporary.bytes);
    plan->temporary = (struct weft_pack){0};
    uint8_t *readers = weft_new(&plan->graph->root->scratch, uint8_t, plan->storages);
    mark_readers(plan, readers);
    for (uint32_t i = plan->storages - 1; i > 0; i--)
        if (plan->storage[i].kind == WEFT_IN_CONSTANT && !plan->storage[i].splat)
            settle(plan, i, readers[i]);
}

/* --- what passes have computed ------------------------------------------------------------------------------------ */

static int by_blob(const void *left, const void *right)
{
    const struct weft_blob *const *a = left, *const *b = right;
    return (*a > *b) - (*a < *b);
}

/* Appends the blobs that steps of the plan and of its bodies read in place. */
static void list_read(const struct weft_plan *plan, const struct weft_blob ***list, uint32_t *count, uint32_t *capacity)
{
    for (uint32_t i = 1; i < plan->storages; i++) {
        const struct weft_storage *storage = &plan->storage[i];
        const struct weft_constant *constant =
            storage->kind == WEFT_IN_CONSTANT && storage->data && !storage->load ? constant_of(plan, storage) : NULL;
        if (!constant || constant->kind != WEFT_CONST_BLOB)
            continue;
        *list = weft_grow(&plan->graph->root->scratch, *list, capacity, *count + 1, sizeof **list);
        (*list)[(*count)++] = constant->blob;
    }
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            list_read(plan->control[i].body[k], list, count, capacity);
}

void weft_plan_give_up_constants(struct weft_plan *plan)
{
    const struct weft_graph *root = plan->graph;
    const struct weft_blob **read = NULL;
    uint32_t count = 0, capacity = 0;
    list_read(plan, &read, &count, &capacity);
    if (count > 0)
        qsort(read, count, sizeof(struct weft_blob *), by_blob);
    for (uint32_t i = 0; i < root->blobs; i++) {
        const struct weft_blob *const blob = root->blob[i];
        root->blob[i]->planned = false; /* whoever copies the graph has to know that elements are missing */
        const bool is_read = count > 0 && bsearch(&blob, read, count, sizeof(struct weft_blob *), by_blob);
        if (blob->bytes >= LEAST && !is_read && !plan->keeps_constants)
            weft_blob_give_up(root->blob[i]);
        if (!blob->mapped && !blob->borrowed && blob->data && atomic_load(&blob->references) == 1)
            plan->constant_bytes += (int64_t)blob->bytes;
    }
    weft_arena_empty(&plan->graph->root->scratch);
}
