/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: from a graph to steps. Units become steps in order of execution: views none, most others one, a concat one
 * for each operand. What depends on sizes is left to frame.c. */
#include "ir/custom.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "plan/tiers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void live_at(struct weft_plan *plan, uint32_t number, int32_t step)
{
    struct weft_storage *storage = &plan->storage[number];
    if (step < storage->first)
        storage->first = step;
    if (step > storage->last)
        storage->last = step;
}

static void add_step(struct weft_plan *plan, struct weft_step step)
{
    plan->step = weft_grow(plan->graph->arena, plan->step, &plan->step_capacity, plan->steps + 1, sizeof *plan->step);
    step.unit = plan->units.of[step.node.id];
    step.descriptor = (uint32_t)plan->descriptor_bytes;
    plan->descriptor_bytes += (weft_step_bytes(&step) + 63) & ~(size_t)63;
    const int32_t number = (int32_t)plan->steps;
    for (uint32_t i = 0; i < step.outs; i++)
        live_at(plan, plan->home[step.out[i].id].storage, number); /* also those that nobody reads */
    for (uint32_t i = 0; i < step.ins; i++)
        live_at(plan, plan->home[step.in[i].id].storage, number);
    if (step.control) {
        live_at(plan, plan->control[step.control].room, number);
        plan->control[step.control].step = plan->steps;
    }
    plan->fallbacks += weft_step_has(&step, WEFT_STEP_EVALUATES);
    plan->relayouts += weft_step_is_relayout(&step);
    plan->step[plan->steps++] = step;
}

static void add_kernel_step(void *user, struct weft_step step)
{
    struct weft_plan *const plan = user;
    if (!step.chosen) /* its matrices are chosen in each run */
        weft_plan_pack_weights(plan, &step);
    add_step(plan, step);
}

/* Most kernels compute a node in one step. */
static void add_kernel_steps(struct weft_plan *plan, const struct weft_step *step, const bool *inside)
{
    struct weft_step_sink sink = {.add = add_kernel_step, .user = plan, .arena = plan->graph->arena, .inside = inside};
    if (step->kind->expand)
        step->kind->expand(plan->graph, step, &sink);
    else
        add_kernel_step(plan, *step);
}

/* Only what others read of a group has memory. WEFT_STOP_AFTER stops who forms groups, not what computes them. */
static void plan_group(struct weft_plan *plan, const struct weft_unit *unit)
{
    for (uint32_t i = 0; i < unit->outs; i++)
        if (!plan->home[unit->out[i].id].storage)
            weft_home_block(plan, unit->out[i]);
    add_kernel_steps(plan, weft_plan_pick(plan, unit), /* inside= */ NULL);
}

static void plan_unit(struct weft_plan *plan, const struct weft_unit *unit, bool reference)
{
    const struct weft_graph *g = plan->graph;
    const weft_node n = unit->first;
    if (unit->nodes > 1) {
        plan_group(plan, unit);
        return;
    }
    const struct weft_node_info *info = &g->node[n.id];
    const weft_val first = weft_result(g, n, 0);
    if ((plan->trip && plan->trip->in_place[n.id]) || weft_chosen_place_matrices(plan, n))
        return;
    const struct weft_type *type = weft_type_of(g, first);
    const bool one_element = info->constant && info->constant->kind == WEFT_CONST_SPLAT;
    if (info->constant && (weft_type_is_constant(type) || (one_element && weft_dtype_bits(type->dtype) >= 8))) {
        weft_home_constant(plan, first);
        return;
    }
    if (weft_is_view(g, n) && !plan->home[first.id].storage && weft_home_view(plan, n, first))
        return;
    if (!reference && weft_plan_load(plan, n))
        return;
    for (unsigned i = 0; i < info->results; i++)
        if (!plan->home[weft_result(g, n, i).id].storage)
            weft_home_block(plan, weft_result(g, n, i));
    struct weft_step step = weft_step_of(g, n, g->arena);
    const struct weft_step *const kernel = reference ? NULL : weft_plan_pick(plan, unit);
    const bool *const inside = reference ? NULL : weft_home_inside(plan, n);
    if (weft_opcode_of(g, n) == WEFT_OP_custom) { /* there is no other way to compute it */
        step.kind = &weft_step_custom;
        step.custom = weft_custom_of(g, n);
        add_step(plan, step);
    } else if (kernel && (weft_op_of(g, n)->traits & WEFT_CONTROL) && weft_permit(plan->graph, "plan.body", first)) {
        step.control = weft_plan_add_control(plan, n);
        step.kind = plan->control[step.control].loop ? &weft_step_loop : &weft_step_if;
        add_step(plan, step);
    } else if (kernel && (inside || kernel->chosen || kernel->own || kernel->kind == &weft_step_blocks ||
                          weft_step_has(kernel, WEFT_STEP_EVALUATES) ||
                          weft_permit(plan->graph, "plan.kernel", first))) {
        /* What is there already must not be copied upon itself: a result with something inside keeps its kernel. */
        add_kernel_steps(plan, kernel, inside);
    } else {
        step.kind = &weft_step_reference;
        step.why = kernel ? "WEFT_STOP_AFTER allows no kernel" : "the reference evaluator is asked for";
        add_step(plan, step);
    }
}

/* Copies a value to another storage, or from one. */
static struct weft_step copy_of(const struct weft_graph *g, weft_val v)
{
    weft_val *const value = weft_new(g->arena, weft_val, 1);
    *value = v;
    return (struct weft_step){.kind = &weft_step_copy, .out = value, .in = value, .outs = 1, .ins = 1};
}

/* Results that were computed elsewhere are copied, and the new values of mutable parameters that were not computed in
 * place go last: until then the old ones may be read. What the caller is shown in the arena outlives all steps. */
static void plan_returns(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->returns; i++)
        if (plan->home[g->ret[i].value.id].storage != plan->return_storage[i] && !weft_trip_is_written(plan, i)) {
            struct weft_step copy = copy_of(g, g->ret[i].value);
            copy.to = plan->return_storage[i];
            copy.bound = plan->shared[i] ? i + 1 : 0;
            add_step(plan, copy);
        }
    for (uint32_t i = 0; i < g->returns; i++)
        if (g->ret[i].mut.id && !plan->alias.ret[i].updated) {
            struct weft_step copy = copy_of(g, g->ret[i].value);
            copy.from = plan->return_storage[i];
            copy.to = plan->home[g->ret[i].mut.id].storage;
            add_step(plan, copy);
        }
    for (uint32_t i = 0; i < g->returns; i++)
        if (plan->shared[i])
            live_at(plan, plan->home[g->ret[i].value.id].storage, (int32_t)plan->steps);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static bool defines_symbols(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_DATA);
}

void weft_plan_fill(struct weft_plan *plan, bool reference)
{
    struct weft_graph *g = plan->graph;
    plan->storages = plan->packs = plan->controls = plan->loads = 1;
    plan->home = weft_new(g->arena, struct weft_home, g->values);
    plan->choice = weft_new(g->arena, const struct weft_step *, g->nodes);
    plan->param_storage = weft_new(g->arena, uint32_t, g->params);
    plan->return_storage = weft_new(g->arena, uint32_t, g->returns);
    plan->shared = weft_new(g->arena, bool, g->returns);
    plan->storage = weft_grow(g->arena, NULL, &plan->storage_capacity, 16, sizeof *plan->storage);
    plan->pack = weft_grow(g->arena, NULL, &plan->pack_capacity, 16, sizeof *plan->pack);
    plan->label = weft_value_labels(g, g->arena);
    weft_home_params(plan);
    if (!reference)
        weft_trip_find_rows(plan);
    weft_home_results(plan, reference || weft_environment_names("WEFT_SKIP", "mark_aliases", /* all= */ false));
    for (uint32_t i = 1; i < plan->units.count; i++)
        plan_unit(plan, &plan->units.unit[i], reference);
    weft_home_share(plan);
    plan_returns(plan);
    while (plan->late < plan->steps && !defines_symbols(g, plan->step[plan->late].node))
        plan->late++;
    if (plan->target.planned)
        weft_own_check(plan);
    weft_plan_settle_constants(plan);
}

/* What is no number from 1 on is none (passes/inspect.c warns of it); a large one means the last of each list. */
uint32_t weft_plan_read_pick(void)
{
    const char *const text = getenv("WEFT_CHOICE");
    if (!text || text[strspn(text, "0123456789")])
        return 0;
    const unsigned long long number = strtoull(text, NULL, 10);
    return number > INT32_MAX ? INT32_MAX : number > 1 ? (uint32_t)number - 1 : 0;
}

/* What needs the frame for the hinted sizes: what the plan says of itself, and generated code. */
static void finish_hinted(struct weft_plan *plan)
{
    weft_plan_annotate(plan, plan->hinted, 0);
    plan->order_changes = weft_plan_count_order_changes(plan, plan->hinted);
    weft_plan_keep_memory(plan, plan->hinted);
    if (plan->compiles)
        weft_tiers_open(plan);
}

void weft_plan_build(struct weft_plan *plan, bool reference)
{
    struct weft_graph *g = plan->graph;
    plan->pick = weft_plan_read_pick();
    if (!plan->hint)
        plan->hint = weft_hint_symbols(g, g->arena);
    weft_plan_fill(plan, reference);
    weft_plan_describe(plan);
    weft_plan_list_values(plan);
    plan->hinted = weft_frame_new(plan, plan->hint, NULL);
    if (!plan->hinted)
        weft_out_of_memory(plan->context);
    if (weft_symbol_count(g->dims) && !plan->hinted->too_large.id && !weft_frame_keep_order(plan, plan->hinted))
        weft_out_of_memory(plan->context);
    if (plan->hinted->too_large.id)
        weft_error(plan->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = g->file, .where = weft_value_text(g, plan->hinted->too_large)},
                   "is larger than memory can be, for the sizes that the hints give");
    else
        finish_hinted(plan);
    weft_frame_free(plan, plan->hinted);
    plan->hinted = NULL;
}

/* --- how long plans live ----------------------------------------------------------------------------------------- */

struct weft_plan *weft_plan_new(struct weft_context *context, const struct weft_target *target)
{
    struct weft_plan *plan = weft_allocate(context, sizeof *plan);
    if (!plan)
        return NULL;
    *plan = (struct weft_plan){.context = context, .target = *target, .holds = 1};
    weft_context_hold(context);
    return plan;
}

void weft_plan_hold(const struct weft_plan *plan)
{
    atomic_fetch_add_explicit((_Atomic uint32_t *)&plan->holds, 1, memory_order_relaxed);
}

static void free_plan(struct weft_plan *plan)
{
    struct weft_context *context = plan->context;
    weft_frame_free(plan, plan->hinted);
    weft_tiers_close(plan);
    weft_plan_drop_controls(plan);
    for (uint32_t i = 1; i < plan->packs; i++)
        weft_plan_free_pack(plan->context, &plan->pack[i]);
    weft_release(plan->context, plan->temporary.data, plan->temporary.bytes);
    weft_graph_free(plan->graph);
    weft_release(context, plan, sizeof *plan);
    weft_context_drop(context);
}

void weft_plan_drop(const struct weft_plan *plan)
{
    struct weft_plan *counted = (struct weft_plan *)plan; /* nothing else of a plan changes once it is made */
    if (atomic_fetch_sub_explicit(&counted->holds, 1, memory_order_acq_rel) == 1)
        free_plan(counted);
}

void weft_plan_destroy(struct weft_plan *plan)
{
    if (plan && !atomic_exchange(&plan->destroyed, true))
        weft_plan_drop(plan);
}
