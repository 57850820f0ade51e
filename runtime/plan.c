/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: from a graph to steps. Nodes become steps in order of execution: views none, most others one, a concat one
 * for each operand. What depends on sizes is left to frame.c. */
#include "ir/custom.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

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
    step.descriptor = (uint32_t)plan->descriptor_bytes;
    plan->descriptor_bytes += (step.kind->descriptor_bytes + 63) & ~(size_t)63;
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
    plan->relayouts += weft_step_has(&step, WEFT_STEP_COPIES) && !step.bound;
    plan->step[plan->steps++] = step;
}

static int64_t *hint_symbols(const struct weft_graph *g)
{
    const uint32_t count = weft_symbol_count(g->dims);
    int64_t *symbols = weft_new(g->arena, int64_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *info = weft_symbol_at(g->dims, i);
        symbols[i] = info->hint ? info->hint : info->low > 1 ? info->low : 1;
    }
    weft_symbols_at_bounds(g->dims, symbols);
    return symbols;
}

static void add_kernel_step(void *user, struct weft_step step)
{
    struct weft_plan *const plan = user;
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

static void plan_node(struct weft_plan *plan, weft_node n, bool reference)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_node_info *info = &g->node[n.id];
    const weft_val first = weft_result(g, n, 0);
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
    const struct weft_step *const kernel = reference ? NULL : weft_plan_choice(plan, n);
    const bool *const inside = reference ? NULL : weft_home_inside(plan, n);
    if (weft_opcode_of(g, n) == WEFT_OP_custom) { /* there is no other way to compute it */
        step.kind = &weft_step_custom;
        step.custom = weft_custom_of(g, n);
        add_step(plan, step);
    } else if (kernel && (weft_op_of(g, n)->traits & WEFT_CONTROL) && weft_permit(plan->graph, "plan.body", first)) {
        step.control = weft_plan_add_control(plan, n);
        step.kind = plan->control[step.control].loop ? &weft_step_loop : &weft_step_if;
        add_step(plan, step);
    } else if (kernel && kernel->kind && (inside || weft_permit(plan->graph, "plan.kernel", first))) {
        /* What is there already must not be copied upon itself: a result with something inside keeps its kernel. */
        add_kernel_steps(plan, kernel, inside);
    } else {
        step.kind = &weft_step_reference;
        step.why = !kernel        ? "the reference evaluator is asked for"
                   : kernel->kind ? "WEFT_STOP_AFTER allows no kernel"
                                  : kernel->why;
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
        if (plan->home[g->ret[i].value.id].storage != plan->return_storage[i]) {
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

/* Why a plan cannot have a value stored so, or NULL. */
static const char *find_fault(const struct weft_graph *g, weft_val v, const int64_t *symbols)
{
    const struct weft_layout layout = weft_own_layout(g, v);
    const struct weft_type *type = weft_type_of(g, v);
    struct weft_tensor tensor = {.rank = type->rank};
    weft_dim stride[WEFT_MAX_RANK];
    if (weft_dtype_bits(type->dtype) < 8 && !weft_layout_is_row_major(&layout))
        return "elements smaller than a byte are stored row-major only";
    if (layout.align > 64 && g->parent && (g->value[v.id].is_param || g->value[v.id].returns))
        return "is aligned to more than 64 bytes: plans keep that for nothing that goes into a body or out of it";
    if (!weft_layout_logical_strides(g->dims, &layout, type, stride)) /* lower_blocks had to leave it */
        return layout.axes > WEFT_MAX_RANK
                   ? weft_arena_format(&g->root->scratch, "is stored along %d axes: plans take up to %d", layout.axes,
                                       WEFT_MAX_RANK)
               : g->value[v.id].is_param || g->value[v.id].returns
                   ? "is stored with split axes: plans take none for parameters and results"
               : !layout.dense ? "is stored with split axes and strides: plans take one or the other"
                               : "is stored with split axes: plans take none whose extents are not constant";
    for (int axis = 0; axis < type->rank && !layout.dense; axis++) {
        const int64_t extent = weft_dim_evaluate(g->dims, type->extent[axis], symbols);
        tensor.extent[axis] = extent > 0 ? extent : 0;
        tensor.stride[axis] = weft_dim_evaluate(g->dims, stride[axis], symbols);
    }
    return layout.dense || weft_frame_fits(&tensor, 0) ? NULL : "is stored over more than memory can be";
}

/* Recursion is as deep as bodies are nested. */
static bool check_layouts(const struct weft_graph *g, const int64_t *symbols)
{
    bool legal = true;
    for (uint32_t i = 0; i < g->bodies; i++)
        legal &= check_layouts(g->body[i], symbols);
    for (uint32_t i = 1; i < g->values; i++) {
        const weft_val v = {.id = i};
        const char *fault = g->node[weft_def(g, v).id].dead ? NULL : find_fault(g, v, symbols);
        legal &= !fault;
        if (fault)
            weft_error(g->context, WEFT_ERR_UNSUPPORTED,
                       &(struct weft_place){.file = g->file, .where = weft_value_text(g, v)}, "%s", fault);
    }
    return legal;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

struct compile {
    const struct weft_graph *source;
    struct weft_compile_options options;
    struct weft_plan *plan;
};

static bool defines_symbols(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_DATA);
}

void weft_plan_fill(struct weft_plan *plan, bool reference)
{
    struct weft_graph *g = plan->graph;
    plan->storages = plan->packs = plan->controls = plan->loads = 1;
    plan->home = weft_new(g->arena, struct weft_home, g->values);
    plan->choice = weft_new(g->arena, struct weft_step *, g->nodes);
    plan->param_storage = weft_new(g->arena, uint32_t, g->params);
    plan->return_storage = weft_new(g->arena, uint32_t, g->returns);
    plan->shared = weft_new(g->arena, bool, g->returns);
    plan->storage = weft_grow(g->arena, NULL, &plan->storage_capacity, 16, sizeof *plan->storage);
    plan->pack = weft_grow(g->arena, NULL, &plan->pack_capacity, 16, sizeof *plan->pack);
    plan->label = weft_value_labels(g, g->arena);
    weft_home_params(plan);
    weft_home_results(plan, reference || weft_environment_names("WEFT_SKIP", "mark_aliases", /* all= */ false));
    weft_foreach_node(g, n)
        plan_node(plan, n, reference);
    weft_home_share(plan);
    plan_returns(plan);
    while (plan->late < plan->steps && !defines_symbols(g, plan->step[plan->late].node))
        plan->late++;
    weft_plan_settle_constants(plan);
}

void weft_plan_build(struct weft_plan *plan, bool reference)
{
    struct weft_graph *g = plan->graph;
    if (!plan->hint)
        plan->hint = hint_symbols(g);
    weft_plan_fill(plan, reference);
    weft_plan_describe(plan);
    weft_plan_list_values(plan);
    plan->hinted = weft_frame_new(plan, plan->hint, NULL);
    if (!plan->hinted)
        weft_out_of_memory(plan->context);
    if (plan->hinted->too_large.id)
        weft_error(plan->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = g->file, .where = weft_value_text(g, plan->hinted->too_large)},
                   "is larger than memory can be, for the sizes that the hints give");
    else
        weft_plan_annotate(plan, plan->hinted, 0);
    if (!plan->hinted->too_large.id)
        plan->order_changes = weft_plan_count_order_changes(plan, plan->hinted);
    weft_frame_free(plan, plan->hinted);
    plan->hinted = NULL;
}

static bool has_blocks(const struct weft_graph *root)
{
    for (uint32_t i = 1; i < root->layouts; i++)
        for (int k = 0; k < root->layout[i].axes; k++)
            if (root->layout[i].axis[k].mod)
                return true;
    return false;
}

/* Kernels walk strides, which blocks have none of. No choice that WEFT_STOP_AFTER may take away. */
static void lower_blocks(struct weft_plan *plan)
{
    struct weft_graph *g = plan->graph;
    const int64_t limit = g->rewrite_limit;
    if (!has_blocks(g))
        return;
    g->rewrite_limit = -1;
    weft_run_pass_info(g, weft_pass_find("lower_blocks"), &plan->target);
    g->rewrite_limit = limit;
}

/* A flag of a newer header may not be left out: it may be about numbers. */
static bool check_flags(const struct compile *c)
{
    const uint32_t known = WEFT_COMPILE_NO_PASSES | WEFT_COMPILE_REFERENCE | WEFT_COMPILE_NO_WINOGRAD |
                           WEFT_COMPILE_SHARE_RESULTS | WEFT_COMPILE_WINOGRAD_4 | WEFT_COMPILE_KEEP_CONSTANTS,
                   both = WEFT_COMPILE_NO_WINOGRAD | WEFT_COMPILE_WINOGRAD_4, flags = c->options.flags;
    if (flags & ~known)
        weft_error(c->source->context, WEFT_ERR_ARGUMENT, NULL, "there are no WEFT_COMPILE flags 0x%x", flags & ~known);
    else if ((flags & both) == both)
        weft_error(c->source->context, WEFT_ERR_ARGUMENT, NULL,
                   "WEFT_COMPILE_NO_WINOGRAD and WEFT_COMPILE_WINOGRAD_4 exclude each other");
    return !(flags & ~known) && (flags & both) != both;
}

/* Constants are computed between the passes that find them, also among the parts of composites, and those that decide
 * where values lie, which treat what is constant otherwise. */
static void optimize(struct weft_plan *plan, const struct weft_compile_options *options)
{
    struct weft_pipeline pipeline = weft_pipeline_open(plan->graph, &plan->target);
    weft_pipeline_run(&pipeline, WEFT_PHASE_OPEN);
    weft_pipeline_run(&pipeline, WEFT_PHASE_SIMPLIFY);
    if (!(options->flags & WEFT_COMPILE_REFERENCE) && weft_plan_compute_constants(plan, options->constant_bytes)) {
        pipeline.changes++;
        weft_pipeline_run(&pipeline, WEFT_PHASE_SIMPLIFY);
    }
    weft_pipeline_run(&pipeline, WEFT_PHASE_PLACE);
}

static int compile(void *arg)
{
    struct compile *c = arg;
    struct weft_plan *plan = c->plan;
    if (!check_flags(c))
        return WEFT_ERR_ARGUMENT;
    if (!weft_validate_graph(c->source))
        return WEFT_ERR_INVALID;
    weft_graph_copy(c->source, &plan->graph);
    if (!(c->options.flags & WEFT_COMPILE_NO_PASSES))
        optimize(plan, &c->options);
    lower_blocks(plan);
    if (!weft_check_symbols(plan->graph))
        return WEFT_ERR_INVALID;
    if (!weft_custom_check(plan->graph))
        return WEFT_ERR_UNSUPPORTED;
    plan->hint = hint_symbols(plan->graph);
    if (!check_layouts(plan->graph, plan->hint))
        return WEFT_ERR_UNSUPPORTED;
    plan->keeps_constants = c->options.flags & WEFT_COMPILE_KEEP_CONSTANTS;
    weft_plan_build(plan, c->options.flags & WEFT_COMPILE_REFERENCE);
    weft_plan_give_up_constants(plan);
    return WEFT_OK;
}

static int refuse_target(void *context)
{
    weft_error(context, WEFT_ERR_UNSUPPORTED, &(struct weft_place){0},
               "plans do not run kernels of the caller's: this target is for passes");
    return WEFT_ERR_UNSUPPORTED;
}

struct weft_plan *weft_plan_new(struct weft_context *context, const struct weft_target *target)
{
    struct weft_plan *plan = weft_allocate(context, sizeof *plan);
    if (!plan)
        return NULL;
    *plan = (struct weft_plan){.context = context, .target = *target, .holds = 1};
    weft_context_hold(context);
    return plan;
}

int weft_compile(const struct weft_graph *graph, const struct weft_compile_options *given, struct weft_plan **ret_plan)
{
    if (!graph || !ret_plan)
        return weft_missing(graph ? graph->context : NULL);
    struct weft_context *context = graph->context;
    struct compile c = {.source = graph->root};
    if (given && !weft_take_options(&c.options, sizeof c.options, given))
        return weft_missing(context);
    if (c.options.target && c.options.target->kernel)
        return weft_protected(context, refuse_target, context);
    c.plan = weft_plan_new(context, c.options.target ? c.options.target : &context->target);
    if (!c.plan)
        return WEFT_ERR_NOMEM;
    c.plan->share = c.options.flags & WEFT_COMPILE_SHARE_RESULTS;
    c.plan->convolution = c.options.flags & WEFT_COMPILE_NO_WINOGRAD  ? WEFT_CONV_CHAIN
                          : c.options.flags & WEFT_COMPILE_WINOGRAD_4 ? WEFT_CONV_F4
                                                                      : WEFT_CONV_F2;
    c.plan->workers =
        context->target.threads < c.plan->target.threads ? context->target.threads : c.plan->target.threads;
    const int status = weft_protected(context, compile, &c);
    c.plan->target.prices = NULL; /* they are the target's, which may go before the plan; runs ask for none */
    if (status == WEFT_OK)
        *ret_plan = c.plan;
    else
        weft_plan_drop(c.plan);
    return status;
}

void weft_plan_hold(const struct weft_plan *plan)
{
    atomic_fetch_add_explicit((_Atomic uint32_t *)&plan->holds, 1, memory_order_relaxed);
}

static void free_plan(struct weft_plan *plan)
{
    struct weft_context *context = plan->context;
    weft_frame_free(plan, plan->hinted);
    weft_plan_drop_part(plan);
    weft_plan_drop_controls(plan);
    for (uint32_t i = 1; i < plan->packs; i++)
        weft_release(plan->context, plan->pack[i].data, plan->pack[i].bytes);
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
