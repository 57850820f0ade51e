/* SPDX-License-Identifier: Apache-2.0 */
/* format_own.c: kernels of the caller's as ways to compute a value. Where one fits a node, weft's own are no choice.
 * A node whose note names a kernel already, or whose group's does, is computed by that one. */
#include "sched/format.h"

#include <stdio.h>
#include <string.h>

static const char who[] = "propagate_memory_format";

/* What one kernel asks for; NULL and a remark where that cannot be read. */
static uint32_t *ask_layouts(struct weft_formats *f, const struct weft_target_kernel *kernel, weft_node n)
{
    struct weft_graph *g = f->graph;
    const uint32_t operands = g->node[n.id].operands, pins = operands + g->node[n.id].results;
    uint32_t *number = weft_new(f->arena, uint32_t, pins);
    for (uint32_t i = 0; i < pins; i++) {
        struct weft_layout layout;
        const char *message = NULL;
        number[i] = WEFT_ANY_FORMAT;
        if (weft_target_kernel_layout(kernel, g, n, i, &layout, &message)) {
            const weft_val v = i < operands ? weft_operand(g, n, i) : weft_result(g, n, i - operands);
            number[i] = weft_intern_layout(g, &layout, weft_type_of(g, v));
        } else if (message) {
            weft_add_remark(g, who, weft_result(g, n, 0), "refused", "the layout that %s asks for, of %s %u: %s",
                            kernel->name, i < operands ? "operand" : "result", i < operands ? i : i - operands,
                            message);
            return NULL;
        }
    }
    return number;
}

/* The kernel that the node's note names, or that of its group; NULL: none. */
static const char *noted_kernel(const struct weft_graph *g, weft_node n)
{
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_plan_note *note = info->plan && info->plan->kernel ? info->plan
                                        : info->group                    ? g->group[info->group].plan : NULL;
    return note ? note->kernel : NULL;
}

/* A kernel that a note names and that cannot be asked was chosen for the layouts that are stated, and keeps them. NULL
 * where none is: a view lies where its operand does, bodies have layouts of their own, and {?} and {-} state none. */
static uint32_t *stated_layouts(struct weft_formats *f, weft_node n)
{
    const struct weft_graph *g = f->graph;
    const uint32_t operands = g->node[n.id].operands, pins = operands + g->node[n.id].results;
    if (weft_is_view(g, n) || (weft_op_of(g, n)->traits & (WEFT_CONTROL | WEFT_SOURCE)))
        return NULL;
    uint32_t *number = weft_new(f->arena, uint32_t, pins);
    for (uint32_t i = 0; i < pins; i++) {
        const weft_val v = i < operands ? weft_operand(g, n, i) : weft_result(g, n, i - operands);
        const bool is_stored = weft_layout_of(g, v).kind == WEFT_STORED;
        number[i] = is_stored ? g->value[v.id].layout : WEFT_ANY_FORMAT;
        if (i >= operands && !is_stored)
            return NULL;
    }
    return number;
}

static void add_own(struct weft_formats *f, struct weft_format_list *list, uint32_t *last,
                    const struct weft_format_own *own)
{
    f->own = weft_grow(f->arena, f->own, &f->own_capacity, f->owns + 1, sizeof *f->own);
    f->own[f->owns++] = *own;
    *(*last ? &f->own[*last - 1].next : &list->own) = f->owns;
    *last = f->owns;
}

/* The only way to compute a node whose kernel is noted, and that the target does not know. */
static void add_noted(struct weft_formats *f, weft_node n, const char *name)
{
    uint32_t *layout = stated_layouts(f, n), last = 0;
    if (!layout)
        return;
    struct weft_target_kernel *kernel = weft_new(f->arena, struct weft_target_kernel, 1);
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    add_own(f, &f->list[weft_result(f->graph, n, 0).id], &last,
            &(struct weft_format_own){.kernel = kernel, .layout = layout});
}

bool weft_format_ask_own(struct weft_formats *f, weft_node n)
{
    struct weft_graph *g = f->graph;
    uint32_t last = 0;
    if (!g->node[n.id].results)
        return false;
    struct weft_format_list *list = &f->list[weft_result(g, n, 0).id];
    const char *noted = noted_kernel(g, n);
    for (const struct weft_target_kernel *k = f->target->kernel; k; k = k->next) {
        const bool fits = (!noted || strcmp(noted, k->name) == 0) && weft_target_kernel_fits(k, g, n);
        uint32_t *layout = fits ? ask_layouts(f, k, n) : NULL;
        const int64_t ps = layout ? weft_target_kernel_ps(k, g, n) : -1;
        if (layout && ps < 0)
            weft_add_remark(g, who, weft_result(g, n, 0), "refused",
                            "%s says that it costs less than nothing, 10 seconds or more, or no number", k->name);
        if (ps < 0)
            continue;
        add_own(f, list, &last, &(struct weft_format_own){.kernel = k, .layout = layout, .ps = ps});
    }
    if (noted && !list->own)
        add_noted(f, n, noted);
    return list->own;
}

static uint32_t format_of(const struct weft_format_list *list, uint32_t layout)
{
    uint32_t i = 0;
    while (i < list->count && list->layout[i] != layout)
        i++;
    return i;
}

/* Was there room for all that it asks for? */
static bool is_listed(const struct weft_formats *f, weft_node n, const struct weft_format_own *own)
{
    const struct weft_graph *g = f->graph;
    const uint32_t operands = g->node[n.id].operands, pins = operands + g->node[n.id].results;
    for (uint32_t i = 0; i < pins; i++) {
        const weft_val v = i < operands ? weft_operand(g, n, i) : weft_result(g, n, i - operands);
        if (own->layout[i] != WEFT_ANY_FORMAT && format_of(&f->list[v.id], own->layout[i]) == f->list[v.id].count)
            return false;
    }
    return true;
}

uint32_t weft_format_choices(const struct weft_formats *f, weft_val value, struct weft_format_choice *ret_choice)
{
    const struct weft_format_list *list = &f->list[value.id];
    const weft_node n = weft_def(f->graph, value);
    uint32_t count = 0;
    for (uint32_t k = list->own; k && count < WEFT_MAX_CHOICES; k = f->own[k - 1].next) {
        const struct weft_format_own *own = &f->own[k - 1];
        if (is_listed(f, n, own))
            ret_choice[count++] =
                (struct weft_format_choice){format_of(list, own->layout[f->graph->node[n.id].operands]), own};
    }
    if (count)
        return count;
    count = list->is_fact ? 1 : list->count;
    for (uint32_t i = 0; i < count; i++)
        ret_choice[i] = (struct weft_format_choice){.format = i};
    return count;
}
