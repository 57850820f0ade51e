/* SPDX-License-Identifier: Apache-2.0 */
/* own.c: kernels of the caller's in a plan. They read and write the layouts that they ask for and no others, so what is
 * handed to them is looked at where weft's own kernels would take any strides:
 *
 *   %b: f32[8,64] = bcast %v dims=[1]             is v, repeated by a stride of 0
 *   %r: f32[8,64] = relayout %b                   becomes an array for the kernel that wants one
 *   %y: f32[8,64] = mul %r, %x      ! my.mul
 *
 * Views and constants of one element are converted before the plan is made, and reshapes that are copies where a target
 * takes no kernels of weft's; that each operand and each result then lies as its kernel asks is checked when all have
 * their places. */
#include "ir/public.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "sched/target.h"

#include <string.h>

/* --- kernels of nodes that no pass has chosen for ----------------------------------------------------------------- */

static bool lies_as_asked(const struct weft_target_kernel *k, struct weft_graph *g, weft_node n)
{
    const uint32_t operands = g->node[n.id].operands, pins = operands + g->node[n.id].results;
    for (uint32_t i = 0; i < pins; i++) {
        const weft_val v = i < operands ? weft_operand(g, n, i) : weft_result(g, n, i - operands);
        const struct weft_layout own = weft_own_layout(g, v);
        struct weft_layout asked;
        const char *message = NULL;
        if (weft_target_kernel_layout(k, g, n, i, &asked, &message)
                ? !weft_layout_equal(g->dims, &own, &asked, weft_type_of(g, v))
                : message != NULL)
            return false;
    }
    return true;
}

/* The cheapest whose layouts are those of the graph. */
static const struct weft_target_kernel *find_kernel(const struct weft_target *target, struct weft_graph *g, weft_node n)
{
    const struct weft_target_kernel *best = NULL;
    int64_t least = INT64_MAX;
    for (const struct weft_target_kernel *k = target->kernel; k; k = k->next) {
        const int64_t ps = weft_target_kernel_fits(k, g, n) && lies_as_asked(k, g, n) ? weft_target_kernel_ps(k, g, n)
                                                                                      : -1;
        if (ps >= 0 && ps < least)
            best = k, least = ps;
    }
    return best;
}

void weft_own_take(struct weft_graph *g, const struct weft_target *target)
{
    for (uint32_t i = 0; i < g->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        weft_own_take(g->body[i], target);
    weft_foreach_node(g, n) {
        const bool is_open = !weft_is_decided(g, n) && g->node[n.id].results > 0;
        const struct weft_target_kernel *const k = is_open ? find_kernel(target, g, n) : NULL;
        if (k)
            weft_set_plan(g, n, k->name, 0, NULL, NULL);
    }
}

/* --- operands that are no arrays ---------------------------------------------------------------------------------- */

/* How a value lies when nothing is done about it. */
static struct weft_layout natural_layout(struct weft_graph *g, weft_val v)
{
    weft_val *view = NULL;
    uint32_t count = 0, capacity = 0;
    for (; weft_is_view(g, weft_def(g, v)); v = weft_operand(g, weft_def(g, v), 0)) {
        view = weft_grow(&g->root->scratch, view, &capacity, count + 1, sizeof *view);
        view[count++] = v;
    }
    struct weft_layout layout = weft_own_layout(g, v), seen;
    struct weft_element element;
    if (weft_is_const(g, v)) {
        layout = weft_layout_row_major(weft_type_of(g, v)->rank);
        layout.dense = !weft_const_splat(g, v, &element); /* one element, with strides of 0 */
    }
    while (count > 0) {
        v = view[--count];
        layout = weft_view_layout(g, weft_def(g, v), &layout, &seen) ? seen : weft_own_layout(g, v);
    }
    layout.offset = weft_dim_of(0);
    return layout;
}

static void convert_operand(struct weft_graph *g, weft_node n, const struct weft_target_kernel *k, uint32_t i)
{
    const weft_val v = weft_operand(g, n, i);
    struct weft_builder build = {.graph = g, .before = n};
    struct weft_layout asked;
    const char *message = NULL;
    if (g->node[n.id].group || !weft_target_kernel_layout(k, g, n, i, &asked, &message))
        return;
    const struct weft_layout lies = natural_layout(g, v);
    if (weft_layout_equal(g->dims, &lies, &asked, weft_type_of(g, v)))
        return;
    const weft_val array = weft_build_unary(&build, WEFT_OP_relayout, v);
    weft_state_layout(g, array, &asked);
    weft_replace_operand(g, n, i, array);
}

/* A reshape that is no view of its operand is a step of weft's: of a relayout it is one. */
static void convert_reshaped(struct weft_graph *g, weft_node n)
{
    const weft_val v = weft_operand(g, n, 0);
    const struct weft_layout lies = natural_layout(g, v), rows = weft_layout_row_major(weft_type_of(g, v)->rank);
    struct weft_builder build = {.graph = g, .before = n};
    struct weft_layout seen;
    if (weft_view_layout(g, n, &lies, &seen) || !weft_view_layout(g, n, &rows, &seen))
        return;
    const weft_val array = weft_build_unary(&build, WEFT_OP_relayout, v);
    weft_state_layout(g, array, &rows);
    weft_replace_operand(g, n, 0, array);
    const struct weft_layout own = weft_own_layout(g, weft_result(g, n, 0));
    if (!weft_layout_equal(g->dims, &own, &seen, weft_type_of(g, weft_result(g, n, 0))))
        weft_state_layout(g, weft_result(g, n, 0), &seen);
}

void weft_own_convert(struct weft_graph *g, const struct weft_target *target)
{
    for (uint32_t i = 0; i < g->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        weft_own_convert(g->body[i], target);
    const bool only_own = target->restricted & WEFT_TARGET_OWN_ONLY;
    weft_foreach_node(g, n) {
        if (only_own && weft_opcode_of(g, n) == WEFT_OP_reshape && !g->node[n.id].group)
            convert_reshaped(g, n);
        const struct weft_target_kernel *const k = weft_target_kernel_noted(target, g, n);
        for (uint32_t i = 0; k && i < g->node[n.id].operands; i++)
            convert_operand(g, n, k, i);
    }
    weft_arena_empty(&g->root->scratch);
}

/* --- what a plan has in the end ----------------------------------------------------------------------------------- */

static const char *layout_text(struct weft_graph *g, const struct weft_layout *layout)
{
    struct weft_text text = {.context = g->context, .arena = &g->root->scratch};
    weft_layout_print(g->dims, layout, &text);
    return text.data;
}

static bool check_pin(struct weft_plan *plan, const struct weft_step *step, uint32_t i)
{
    struct weft_graph *const g = plan->graph;
    const uint32_t operands = g->node[step->node.id].operands;
    const weft_val v = i < operands ? weft_operand(g, step->node, i) : weft_result(g, step->node, i - operands);
    struct weft_layout asked, lies = *plan->home[v.id].layout;
    const char *message = NULL;
    lies.offset = weft_dim_of(0);
    if (!weft_target_kernel_layout(step->own, g, step->node, i, &asked, &message) ||
        weft_layout_equal(g->dims, &lies, &asked, weft_type_of(g, v)))
        return true;
    weft_error(g->context, WEFT_ERR_UNSUPPORTED,
               &(struct weft_place){.file = g->file, .where = weft_value_text(g, step->out[0])},
               "kernel %s wants %s %u in %s, and it is stored in %s", step->own->name,
               i < operands ? "operand" : "result", i < operands ? i : i - operands, layout_text(g, &asked),
               layout_text(g, &lies));
    return false;
}

static void refuse_step(struct weft_plan *plan, const struct weft_step *step)
{
    const struct weft_graph *const g = plan->graph;
    weft_error(g->context, WEFT_ERR_UNSUPPORTED,
               &(struct weft_place){.file = g->file, .line = g->node[step->node.id].line,
                                    .column = g->node[step->node.id].line ? 1 : 0,
                                    .where = weft_value_text(g, step->out[0])},
               "none of the target's kernels fits this %s, and the target takes no others (WEFT_TARGET_OWN_ONLY)",
               weft_op_of(g, step->node)->name);
}

/* Steps that convert, copy results or run bodies are no kernels that a target could have. */
static bool is_the_callers(const struct weft_plan *plan, const struct weft_step *step)
{
    return step->own || step->custom || step->control || !step->node.id ||
           weft_opcode_of(plan->graph, step->node) == WEFT_OP_relayout;
}

void weft_own_check(struct weft_plan *plan)
{
    uint32_t refused = 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *const step = &plan->step[i];
        const uint32_t pins = step->own && !plan->graph->node[step->node.id].group
                                  ? plan->graph->node[step->node.id].operands + step->outs : 0;
        for (uint32_t k = 0; k < pins; k++)
            check_pin(plan, step, k);
        const bool is_taken = is_the_callers(plan, step) || !(plan->target.restricted & WEFT_TARGET_OWN_ONLY);
        if (!is_taken && step->unit != refused) {
            refuse_step(plan, step);
            refused = step->unit;
        }
    }
    weft_arena_close(&plan->graph->root->scratch);
}

const char *weft_own_without_run(const struct weft_plan *plan, const char **ret_where)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < plan->steps && !name; i++) {
        const struct weft_target_kernel *const own = plan->step[i].own;
        if (own && !own->kernel.run) {
            *ret_where = plan->label[plan->step[i].out[0].id];
            name = own->name;
        }
    }
    for (uint32_t i = 1; i < plan->controls; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        for (uint32_t k = 0; k < plan->control[i].bodies && !name; k++)
            name = weft_own_without_run(plan->control[i].body[k], ret_where);
    return name;
}
