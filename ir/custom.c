/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: calling a function of the caller's on tensors; custom_register.c has the register of them.
 *
 * A function says which order of axes it takes for each operand and result. What lies otherwise, a transposed view or a
 * bound output with strides, is copied to scratch memory before the call or out of it afterwards; so a function is
 * written for one layout, and every graph may use it. A call of several parts copies nothing, since each part would. */
#include "ir/custom.h"
#include "ir/public.h"

#include <stdio.h>
#include <string.h>

/* --- layouts ------------------------------------------------------------------------------------------------------ */

enum wish { ANY_STRIDES, PACKED, WRONG_ORDER };

static enum wish order_of(const struct weft_custom *custom, unsigned i, unsigned operands, int rank, int *order)
{
    bool seen[WEFT_MAX_RANK] = {false};
    for (int axis = 0; axis < rank; axis++)
        order[axis] = axis;
    if (!custom->layout)
        return PACKED;
    if (!custom->layout(custom->user, i, operands, rank, order))
        return ANY_STRIDES;
    for (int axis = 0; axis < rank; axis++) {
        if (order[axis] < 0 || order[axis] >= rank || seen[order[axis]])
            return WRONG_ORDER;
        seen[order[axis]] = true;
    }
    return PACKED;
}

/* The tensor as the function wants it, without data. */
static enum wish wanted(const struct weft_custom_entry *entry, unsigned i, unsigned operands,
                        const struct weft_tensor *given, struct weft_tensor *ret)
{
    int order[WEFT_MAX_RANK];
    const enum wish wish = order_of(&entry->custom, i, operands, given->rank, order);
    *ret = *given;
    ret->data = NULL;
    if (wish != PACKED)
        return wish;
    int64_t stride = 1;
    for (int k = given->rank - 1; k >= 0; k--) {
        ret->stride[order[k]] = stride;
        stride *= given->extent[order[k]] > 0 ? given->extent[order[k]] : 1;
    }
    return wish;
}

/* A copy has no gaps, and repeats nothing by strides of 0: where any strides will do, the last axis lies innermost. */
static void pack(struct weft_tensor *t)
{
    int64_t elements = 1, reach = 1;
    for (int axis = 0; axis < t->rank; axis++) {
        elements *= t->extent[axis];
        reach += t->extent[axis] > 0 ? (t->extent[axis] - 1) * t->stride[axis] : 0;
    }
    int64_t stride = 1;
    for (int axis = t->rank - 1; axis >= 0 && reach != elements; axis--) {
        t->stride[axis] = stride;
        stride *= t->extent[axis] > 0 ? t->extent[axis] : 1;
    }
}

static bool lies_so(const struct weft_tensor *given, const struct weft_tensor *want)
{
    for (int axis = 0; axis < given->rank; axis++)
        if (given->extent[axis] > 1 && given->stride[axis] != want->stride[axis])
            return false;
    return true;
}

enum { LINE = 64, PAGE = 4096 }; /* what memory begins at, and the most that may be asked for */

struct weft_demand weft_demand_clean(struct weft_demand demand, int rank)
{
    if (demand.along < 0 || demand.along >= rank)
        demand.along = -1;
    if (demand.align < 0 || demand.align > PAGE || (demand.align & (demand.align - 1)))
        demand.align = 0;
    return demand;
}

struct weft_demand weft_custom_demand(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank)
{
    struct weft_demand demand = {.size = sizeof demand, .along = -1};
    if (entry->custom.demand)
        entry->custom.demand(entry->custom.user, i, operands, rank, &demand);
    return weft_demand_clean(demand, rank);
}

bool weft_custom_takes_strides(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank)
{
    int order[WEFT_MAX_RANK];
    return order_of(&entry->custom, i, operands, rank, order) == ANY_STRIDES;
}

bool weft_custom_order(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, int *ret_order)
{
    return order_of(&entry->custom, i, operands, rank, ret_order) == PACKED;
}

bool weft_custom_axes(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, int first,
                      int *ret_axis)
{
    int32_t axis[WEFT_MAX_RANK];
    uint32_t taken = 0;
    for (int k = 0; k < rank; k++)
        ret_axis[k] = axis[k] = i == operands ? k : -1;
    if (!entry->custom.axes)
        return false;
    if (i == operands)
        return true;
    entry->custom.axes(entry->custom.user, i, operands, rank, axis);
    for (int k = 0; k < rank; k++)
        if (axis[k] >= 0 && axis[k] < first && !(taken >> axis[k] & 1)) {
            ret_axis[k] = axis[k];
            taken |= 1u << axis[k];
        }
    return true;
}

/* Is the address, or what is known of it, a multiple of what the function wants? */
static bool stands_so(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, uintptr_t address)
{
    const int32_t align = weft_custom_demand(entry, i, operands, rank).align;
    return align == 0 || address % (uintptr_t)align == 0;
}

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Where a copy of operand i may begin at or behind `memory`, which begins a line. */
static char *place_of(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, char *memory)
{
    const uintptr_t align = (uintptr_t)weft_custom_demand(entry, i, operands, rank).align;
    return align > LINE ? memory + -(uintptr_t)memory % align : memory;
}

unsigned weft_custom_tensors(const struct weft_graph *graph, weft_node node)
{
    return (unsigned)graph->node[node.id].operands + graph->node[node.id].results;
}

size_t weft_custom_scratch(unsigned tensors) { return rounded(tensors * sizeof(struct weft_tensor)); }

size_t weft_custom_copy_bytes(const struct weft_custom_entry *entry, unsigned i, unsigned operands,
                              const struct weft_tensor *given, uintptr_t align)
{
    struct weft_tensor want;
    wanted(entry, i, operands, given, &want);
    if (lies_so(given, &want) && stands_so(entry, i, operands, given->rank, align))
        return 0;
    pack(&want);
    const size_t most = (size_t)weft_custom_demand(entry, i, operands, given->rank).align;
    return rounded(weft_tensor_bytes(&want)) + (most > LINE ? most : 0);
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

#define MOST_SCRATCH ((size_t)1 << 47)

/* What all functions are told alike, of tensors that lie as the function wants them. */
static struct weft_custom_call call_of(const struct weft_custom_job *job, const struct weft_tensor *tensor)
{
    const struct weft_node_info *const info = &job->graph->node[job->node.id];
    const struct weft_attr *const parameters = weft_attr_find(job->graph, job->node, WEFT_ATTR_parameters);
    const struct weft_attr *const values = weft_attr_find(job->graph, job->node, WEFT_ATTR_with);
    return (struct weft_custom_call){.size = sizeof(struct weft_custom_call),
                                     .where = "",
                                     .operand = tensor,
                                     .operands = info->operands,
                                     .result = (struct weft_tensor *)tensor + info->operands, /* none is changed */
                                     .results = info->results,
                                     .parameter = parameters ? parameters->reals : NULL,
                                     .parameters = parameters ? parameters->count : 0,
                                     .value = values ? values->values : NULL,
                                     .values = values ? values->count : 0,
                                     .part = job->part,
                                     .parts = job->parts,
                                     .worker = job->worker,
                                     .workers = job->workers};
}

int32_t weft_custom_parts(const struct weft_custom_job *job)
{
    const struct weft_custom *const custom = &job->entry->custom;
    const struct weft_custom_call call = call_of(job, job->tensor);
    const int32_t parts = custom->parts ? custom->parts(custom->user, &call) : 1;
    const int32_t most = WEFT_CUSTOM_MOST_PARTS * job->workers; /* each part is a call */
    return parts > most ? most : parts > 1 ? parts : 1;
}

size_t weft_custom_own_scratch(const struct weft_custom_job *job)
{
    const struct weft_custom *const custom = &job->entry->custom;
    const struct weft_custom_call call = call_of(job, job->tensor);
    const size_t bytes = custom->scratch ? custom->scratch(custom->user, &call) : 0;
    return rounded(bytes < MOST_SCRATCH ? bytes : MOST_SCRATCH); /* sums would wrap; no machine has as much */
}

bool weft_custom_cost(const struct weft_graph *graph, weft_node node, const struct weft_tensor *tensor,
                      double *ret_operations, double *ret_bytes)
{
    const struct weft_custom_job job = {.entry = weft_custom_of(graph, node), .graph = graph, .node = node,
                                        .tensor = tensor, .parts = 1, .workers = 1};
    if (!job.entry || !job.entry->custom.cost)
        return false;
    const struct weft_custom_call call = call_of(&job, tensor);
    job.entry->custom.cost(job.entry->custom.user, &call, ret_operations, ret_bytes);
    return true;
}

/* How messages call what is computed. */
static void name_result(const struct weft_custom_job *job, char *ret, size_t bytes)
{
    const char *name = weft_value_of(job->graph, weft_result(job->graph, job->node, 0))->name;
    snprintf(ret, bytes, "%s%s", name ? "%" : "an unnamed result", name ? name : "");
}

/* Fills tensor[0 … operands + results - 1], copies of operands included. */
static bool lay_out(const struct weft_custom_job *job, const char *where, struct weft_tensor *tensor, char *memory)
{
    const unsigned operands = job->graph->node[job->node.id].operands;
    for (unsigned i = 0; i < weft_custom_tensors(job->graph, job->node); i++) {
        const struct weft_tensor *const given = &job->tensor[i];
        if (wanted(job->entry, i, operands, given, &tensor[i]) == WRONG_ORDER) {
            weft_fail(job->failure, WEFT_ERR_CUSTOM, "%s: custom function '%s' wants %s %u in an order that is none",
                      where, job->entry->name, i < operands ? "operand" : "result", i < operands ? i : i - operands);
            return false;
        }
        tensor[i].data = given->data;
        if (lies_so(given, &tensor[i]) && stands_so(job->entry, i, operands, given->rank, (uintptr_t)given->data))
            continue;
        weft_assert(job->parts == 1);
        pack(&tensor[i]);
        tensor[i].data = place_of(job->entry, i, operands, given->rank, memory);
        memory = (char *)tensor[i].data + rounded(weft_tensor_bytes(&tensor[i]));
        if (i < operands)
            weft_tensor_copy(&tensor[i], 0, given, 0);
    }
    return true;
}

bool weft_custom_run(const struct weft_custom_job *job, void *scratch)
{
    const struct weft_node_info *const info = &job->graph->node[job->node.id];
    struct weft_tensor *const tensor = scratch, *const result = tensor + info->operands;
    char *const own = (char *)scratch + weft_custom_scratch(weft_custom_tensors(job->graph, job->node));
    char message[256] = "", where[160];
    name_result(job, where, sizeof where);
    if (!lay_out(job, where, tensor, own + job->own_scratch))
        return false;
    struct weft_custom_call call = call_of(job, tensor);
    call.where = where;
    call.scratch = own;
    call.message = message;
    call.message_bytes = sizeof message;
    const int status = job->entry->custom.run(job->entry->custom.user, &call);
    message[sizeof message - 1] = '\0';
    if (status != 0) {
        weft_fail(job->failure, WEFT_ERR_CUSTOM, "%s: custom function '%s' reports error %d%s%s", where,
                  job->entry->name, status, message[0] ? ": " : "", message);
        return false;
    }
    for (unsigned i = 0; i < info->results; i++)
        if (result[i].data != job->tensor[info->operands + i].data)
            weft_tensor_copy(&job->tensor[info->operands + i], 0, &result[i], 0);
    return true;
}
