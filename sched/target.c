/* SPDX-License-Identifier: Apache-2.0 */
/* target.c: making targets of the caller's, and asking their kernels. Kernels stay in the order in which they were
 * added: of equal ones the first is taken. */
#include "sched/target.h"

#include "ir/public.h"
#include "ir/suggest.h"

#include <string.h>

/* --- the target --------------------------------------------------------------------------------------------------- */

int weft_target_create(struct weft_context *context, struct weft_target **ret_target)
{
    if (!context || !ret_target)
        return weft_missing(context);
    struct weft_target *target = weft_allocate(context, sizeof *target);
    if (!target)
        return WEFT_ERR_NOMEM;
    *target = context->target;
    target->context = context;
    weft_context_hold(context);
    *ret_target = target;
    return WEFT_OK;
}

void weft_target_destroy(struct weft_target *target)
{
    if (!target || !target->context)
        return;
    struct weft_context *context = target->context;
    for (struct weft_target_kernel *k = target->kernel, *next; k; k = next) {
        next = k->next;
        weft_release(context, k, sizeof *k);
    }
    weft_release(context, target, sizeof *target);
    weft_context_drop(context);
}

static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && length < 64 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") == length;
}

struct addition {
    struct weft_target *target;
    const struct weft_kernel *given;
};

static int add_kernel(void *arg)
{
    const struct addition *a = arg;
    struct weft_context *context = a->target->context;
    struct weft_kernel kernel;
    if (!weft_take_options(&kernel, sizeof kernel, a->given))
        return weft_wrong(context, NULL, "weft_kernel.size is not set");
    if (!kernel.name || !is_name(kernel.name))
        return weft_wrong(context, kernel.name, "the name of a kernel is letters, digits, _ and ., up to 63");
    const int opcode = kernel.op ? weft_opcode_find(kernel.op, strlen(kernel.op)) : 0;
    if (!opcode) {
        struct weft_suggest suggest;
        weft_error(context, WEFT_ERR_ARGUMENT, &(struct weft_place){.where = kernel.name},
                   "it computes '%.64s', which is no op that weft knows%s", kernel.op ? kernel.op : "",
                   kernel.op ? weft_suggest_op(&suggest, kernel.op, strlen(kernel.op)) : "");
        return WEFT_ERR_ARGUMENT;
    }
    if (!kernel.cost)
        return weft_wrong(context, kernel.name, "a kernel has to say what it costs: cost is NULL");
    struct weft_target_kernel **end = &a->target->kernel;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->name, kernel.name) == 0)
            return weft_wrong(context, kernel.name, "there is a kernel of this name already");
    struct weft_target_kernel *added = weft_allocate(context, sizeof *added);
    if (!added)
        return WEFT_ERR_NOMEM;
    *added = (struct weft_target_kernel){.kernel = kernel, .opcode = opcode};
    memcpy(added->name, kernel.name, strlen(kernel.name));
    added->kernel.name = added->name;
    added->kernel.op = weft_ops[opcode].name;
    *end = added;
    return WEFT_OK;
}

int weft_target_add(struct weft_target *target, const struct weft_kernel *kernel)
{
    if (!target || !target->context || !kernel)
        return weft_missing(target ? target->context : NULL);
    return weft_protected(target->context, add_kernel, &(struct addition){target, kernel});
}

struct restriction {
    struct weft_context *context;
    uint32_t flags;
};

static int refuse_flags(void *arg)
{
    const struct restriction *r = arg;
    return weft_wrong(r->context, NULL, "there are no WEFT_TARGET flags 0x%x", r->flags);
}

int weft_target_restrict(struct weft_target *target, uint32_t flags)
{
    if (!target || !target->context)
        return weft_missing(NULL);
    const uint32_t unknown = flags & ~WEFT_TARGET_OWN_ONLY;
    if (unknown)
        return weft_protected(target->context, refuse_flags, &(struct restriction){target->context, unknown});
    target->restricted = flags;
    return WEFT_OK;
}

struct weft_target_kernel *weft_target_copy_kernels(const struct weft_target *target, struct weft_arena *arena)
{
    struct weft_target_kernel *first = NULL, **end = &first;
    for (const struct weft_target_kernel *k = target->kernel; k; k = k->next, end = &(*end)->next) {
        *end = weft_new(arena, struct weft_target_kernel, 1);
        **end = *k;
        (*end)->kernel.name = (*end)->name;
        (*end)->next = NULL;
    }
    return first;
}

/* --- asking a kernel ---------------------------------------------------------------------------------------------- */

bool weft_target_kernel_fits(const struct weft_target_kernel *k, const struct weft_graph *graph, weft_node node)
{
    return k->opcode == weft_opcode_of(graph, node) &&
           (!k->kernel.fits || k->kernel.fits(k->kernel.user, graph, weft_node_out(graph, node)));
}

static bool layouts_are_right(const struct weft_target_kernel *k, struct weft_graph *g, weft_node n)
{
    const uint32_t pins = g->node[n.id].operands + (uint32_t)g->node[n.id].results;
    struct weft_layout layout;
    const char *message = NULL;
    for (uint32_t i = 0; i < pins && !message; i++)
        weft_target_kernel_layout(k, g, n, i, &layout, &message);
    return !message;
}

bool weft_target_computes(const struct weft_target *target, struct weft_graph *g, weft_node n)
{
    for (const struct weft_target_kernel *k = target->kernel; k; k = k->next)
        if (weft_target_kernel_fits(k, g, n) && weft_target_kernel_ps(k, g, n) >= 0 && layouts_are_right(k, g, n))
            return true;
    return false;
}

bool weft_target_has(const struct weft_target *target, int opcode)
{
    const struct weft_target_kernel *k = target->kernel;
    while (k && k->opcode != opcode)
        k = k->next;
    return k || !(target->restricted & WEFT_TARGET_OWN_ONLY);
}

const struct weft_target_kernel *weft_target_kernel_noted(const struct weft_target *target, const struct weft_graph *g,
                                                          weft_node n)
{
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_plan_note *note = info->group && g->group[info->group].plan ? g->group[info->group].plan
                                                                                  : info->plan;
    for (const struct weft_target_kernel *k = target->kernel; k && note && note->kernel; k = k->next)
        if (strcmp(note->kernel, k->name) == 0)
            return k;
    return NULL;
}

bool weft_target_kernel_layout(const struct weft_target_kernel *k, struct weft_graph *graph, weft_node node,
                               uint32_t i, struct weft_layout *ret, const char **ret_message)
{
    const uint32_t operands = graph->node[node.id].operands;
    const weft_val value = i < operands ? weft_operand(graph, node, i) : weft_result(graph, node, i - operands);
    const struct weft_type *type = weft_type_of(graph, value);
    const char *text = k->kernel.layout ? k->kernel.layout(k->kernel.user, graph, weft_node_out(graph, node), i) : NULL;
    *ret = weft_layout_row_major(type->rank);
    if (!text)
        return i >= operands || !k->kernel.layout;
    const char *cursor = text, *message = NULL;
    if (!weft_layout_parse(graph->dims, &cursor, text + strlen(text), ret, &message) || *cursor)
        message = message ? message : "there is something after the layout";
    if (!message && ret->kind != WEFT_STORED)
        message = "a kernel asks for a layout that is decided";
    if (!message)
        message = weft_layout_check(ret, type);
    if (!message && ret->align)
        message = "an alignment is asked for by weft_kernel.demand";
    if (!message && weft_layout_overlaps(graph->dims, ret, type))
        message = "elements share places";
    if (message) {
        *ret_message = message;
        return false;
    }
    ret->strength = WEFT_REQUIRED; /* what a kernel asks for is no wish */
    weft_layout_canonical(graph->dims, ret, type);
    return true;
}

int64_t weft_target_kernel_ps(const struct weft_target_kernel *k, const struct weft_graph *graph, weft_node node)
{
    const double us = k->kernel.cost(k->kernel.user, graph, weft_node_out(graph, node)), most = 1e7;
    return us >= 0 && us < most ? (int64_t)(us * 1e6) : -1; /* also of NaN */
}
