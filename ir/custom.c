/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: registering functions of the caller's, and calling one on tensors.
 *
 * A function says which order of axes it takes for each operand and its result. What lies otherwise, a transposed view
 * or a bound output with strides, is copied to scratch memory before the call or out of it afterwards; so a function is
 * written for one layout, and every graph may use it. */
#include "ir/custom.h"
#include "ir/public.h"
#include "ir/suggest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* --- the register ------------------------------------------------------------------------------------------------- */

const struct weft_custom_entry *weft_custom_find(struct weft_context *context, const char *name)
{
    const struct weft_custom_entry *entry = atomic_load_explicit(&context->customs, memory_order_acquire);
    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

const struct weft_custom_entry *weft_custom_of(const struct weft_graph *graph, weft_node node)
{
    return weft_custom_find(graph->context, weft_attr_word(graph, node, WEFT_ATTR_function));
}

void weft_customs_free(struct weft_context *context)
{
    struct weft_custom_entry *entry = atomic_load(&context->customs);
    while (entry) {
        struct weft_custom_entry *next = entry->next;
        weft_release(context, entry, sizeof *entry);
        entry = next;
    }
}

bool weft_custom_is_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t length = strlen(name);
    return length > 0 && length < 64 && strchr(letters, name[0]) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

struct registration {
    struct weft_context *context;
    const struct weft_custom *given;
};

static int add_entry(void *arg)
{
    const struct registration *r = arg;
    struct weft_custom custom;
    if (!r->given || !weft_take_options(&custom, sizeof custom, r->given))
        return weft_wrong(r->context, NULL, "weft_custom.size is not set");
    if (!custom.name || !weft_custom_is_name(custom.name))
        return weft_wrong(r->context, custom.name,
                          "the name of a custom function is a letter, then letters, digits and _, up to 63");
    if (!custom.run)
        return weft_wrong(r->context, custom.name, "a custom function has no run");
    if (custom.least_operands < 0 || (custom.most_operands >= 0 && custom.most_operands < custom.least_operands))
        return weft_wrong(r->context, custom.name, "a custom function takes no such number of operands");
    if (weft_custom_find(r->context, custom.name))
        return weft_wrong(r->context, custom.name, "a custom function of this name is registered already");
    struct weft_custom_entry *entry = weft_allocate(r->context, sizeof *entry);
    if (!entry)
        return WEFT_ERR_NOMEM;
    *entry = (struct weft_custom_entry){.custom = custom, .next = atomic_load(&r->context->customs)};
    memcpy(entry->name, custom.name, strlen(custom.name));
    entry->custom.name = entry->name;
    snprintf(entry->kernel, sizeof entry->kernel, "custom.%s", entry->name);
    atomic_store_explicit(&r->context->customs, entry, memory_order_release);
    return WEFT_OK;
}

int weft_register(struct weft_context *context, const struct weft_custom *custom)
{
    if (!context || !custom)
        return weft_missing(context);
    return weft_protected(context, add_entry, &(struct registration){context, custom});
}

bool weft_custom_check(const struct weft_graph *graph)
{
    bool right = true;
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        right = weft_custom_check(graph->body[i]) && right;
    weft_foreach_node(graph, n) {
        if (weft_opcode_of(graph, n) != WEFT_OP_custom || weft_custom_of(graph, n))
            continue;
        const char *name = weft_attr_word(graph, n, WEFT_ATTR_function);
        struct weft_suggest suggest;
        weft_suggest_open(&suggest, name, strlen(name));
        for (const struct weft_custom_entry *e = atomic_load(&graph->context->customs); e; e = e->next)
            weft_suggest_offer(&suggest, e->name);
        weft_error(graph->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = graph->file,
                                        .line = graph->node[n.id].line,
                                        .column = graph->node[n.id].line ? 1 : 0,
                                        .where = weft_value_text(graph, weft_result(graph, n, 0))},
                   "custom function '%s' is not registered, so nothing can compute this%s", name,
                   weft_suggest_text(&suggest, ""));
        right = false;
    }
    return right;
}

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

size_t weft_custom_scratch(unsigned operands) { return rounded((operands + 1) * sizeof(struct weft_tensor)); }

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

/* How messages call what is computed. */
static void name_result(const struct weft_custom_job *job, char *ret, size_t bytes)
{
    const char *name = weft_value_of(job->graph, weft_result(job->graph, job->node, 0))->name;
    snprintf(ret, bytes, "%s%s", name ? "%" : "an unnamed result", name ? name : "");
}

/* Fills tensor[0 … operands], copies of operands included. */
static bool lay_out(const struct weft_custom_job *job, const char *where, struct weft_tensor *tensor, char *memory)
{
    const unsigned operands = job->graph->node[job->node.id].operands;
    for (unsigned i = 0; i <= operands; i++) {
        const struct weft_tensor *given = i < operands ? &job->in[i] : job->out;
        if (wanted(job->entry, i, operands, given, &tensor[i]) == WRONG_ORDER) {
            weft_fail(job->failure, WEFT_ERR_CUSTOM, "%s: custom function '%s' wants %s %u in an order that is none",
                      where, job->entry->name, i < operands ? "operand" : "result", i < operands ? i : 0);
            return false;
        }
        tensor[i].data = given->data;
        if (lies_so(given, &tensor[i]) && stands_so(job->entry, i, operands, given->rank, (uintptr_t)given->data))
            continue;
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
    const unsigned operands = job->graph->node[job->node.id].operands;
    const struct weft_attr *parameters = weft_attr_find(job->graph, job->node, WEFT_ATTR_parameters);
    struct weft_tensor *tensor = scratch, *result = tensor + operands;
    char message[256] = "", where[160];
    name_result(job, where, sizeof where);
    if (!lay_out(job, where, tensor, (char *)scratch + weft_custom_scratch(operands)))
        return false;
    const struct weft_custom_call call = {.size = sizeof call,
                                          .where = where,
                                          .operand = tensor,
                                          .operands = operands,
                                          .result = result,
                                          .parameter = parameters ? parameters->reals : NULL,
                                          .parameters = parameters ? parameters->count : 0,
                                          .message = message,
                                          .message_bytes = sizeof message};
    const int status = job->entry->custom.run(job->entry->custom.user, &call);
    message[sizeof message - 1] = '\0';
    if (status != 0) {
        weft_fail(job->failure, WEFT_ERR_CUSTOM, "%s: custom function '%s' reports error %d%s%s", where,
                  job->entry->name, status, message[0] ? ": " : "", message);
        return false;
    }
    if (result->data != job->out->data)
        weft_tensor_copy(job->out, 0, result, 0);
    return true;
}
