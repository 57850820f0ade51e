/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c: from a graph to a plan: a copy of the graph, passes, what constants alone decide, and then what runs. */
#include "ir/custom.h"
#include "ir/public.h"
#include "passes/passes.h"
#include "plan/tiers.h"
#include "runtime/runtime.h"
#include "sched/target.h"

struct compile {
    const struct weft_graph *source;
    struct weft_compile_options options;
    struct weft_plan *plan;
};

static bool has_groups(const struct weft_graph *graph)
{
    bool any = graph->groups > 1;
    for (uint32_t i = 0; i < graph->bodies && !any; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        any = has_groups(graph->body[i]);
    return any;
}

static void open_all_groups(struct weft_graph *graph)
{
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        open_all_groups(graph->body[i]);
    weft_foreach_node(graph, n)
        if (graph->node[n.id].group)
            weft_open_group(graph, n);
}

/* What there is no plan without: no choice that WEFT_STOP_AFTER may take away. */
static void run_always(struct weft_plan *plan, const char *pass)
{
    const int64_t limit = plan->graph->rewrite_limit;
    plan->graph->rewrite_limit = -1;
    weft_run_pass_info(plan->graph, weft_pass_find(pass), &plan->target);
    plan->graph->rewrite_limit = limit;
}

/* A flag of a newer header may not be left out: it may be about numbers. */
static bool check_flags(const struct compile *c)
{
    const uint32_t known = WEFT_COMPILE_NO_PASSES | WEFT_COMPILE_REFERENCE | WEFT_COMPILE_NO_WINOGRAD |
                           WEFT_COMPILE_SHARE_RESULTS | WEFT_COMPILE_WINOGRAD_4 | WEFT_COMPILE_KEEP_CONSTANTS |
                           WEFT_COMPILE_NO_FUSE | WEFT_COMPILE_NO_COMPILER,
                   both = WEFT_COMPILE_NO_WINOGRAD | WEFT_COMPILE_WINOGRAD_4, flags = c->options.flags;
    if (flags & ~known)
        weft_error(c->source->context, WEFT_ERR_ARGUMENT, NULL, "there are no WEFT_COMPILE flags 0x%x", flags & ~known);
    else if ((flags & both) == both)
        weft_error(c->source->context, WEFT_ERR_ARGUMENT, NULL,
                   "WEFT_COMPILE_NO_WINOGRAD and WEFT_COMPILE_WINOGRAD_4 exclude each other");
    return !(flags & ~known) && (flags & both) != both;
}

static bool may_group(const struct weft_compile_options *options)
{
    return !(options->flags & (WEFT_COMPILE_REFERENCE | WEFT_COMPILE_NO_FUSE)) && weft_plan_read_pick() == 0;
}

/* Constants are computed between the passes that find them, also among the parts of composites, and those that decide
 * where values lie, which treat what is constant otherwise. */
static void optimize(struct weft_plan *plan, const struct weft_compile_options *options)
{
    struct weft_pipeline pipeline;
    if (!weft_pipeline_open(plan->graph, &plan->target, options->pipeline, &pipeline))
        return;
    weft_pipeline_run(&pipeline, WEFT_PHASE_OPEN);
    weft_pipeline_run(&pipeline, WEFT_PHASE_SIMPLIFY);
    if (!(options->flags & WEFT_COMPILE_REFERENCE) && weft_plan_compute_constants(plan, options->constant_bytes)) {
        pipeline.changes++;
        weft_pipeline_run(&pipeline, WEFT_PHASE_SIMPLIFY);
    }
    weft_pipeline_run(&pipeline, WEFT_PHASE_PLACE);
    if (may_group(options))
        weft_pipeline_run(&pipeline, WEFT_PHASE_GROUP);
    weft_pipeline_close(&pipeline);
}

/* The target may go before the plan. The evaluator has no use for kernels. */
static void take_kernels(struct compile *c)
{
    struct weft_target *const target = &c->plan->target;
    const bool reference = c->options.flags & WEFT_COMPILE_REFERENCE;
    target->kernel = reference ? NULL : weft_target_copy_kernels(target, c->plan->graph->arena);
    target->planned = !reference && (target->kernel || target->restricted);
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
    weft_plan_keep_names(plan, c->source);
    if (!weft_plan_assume_aligned(plan, &c->options))
        return WEFT_ERR_ARGUMENT;
    take_kernels(c);
    if (!may_group(&c->options))
        open_all_groups(plan->graph);
    else if (has_groups(plan->graph)) /* a plan says what runs, and these run as one only if a kernel computes them */
        run_always(plan, "open_groups");
    if (!(c->options.flags & WEFT_COMPILE_NO_PASSES))
        optimize(plan, &c->options);
    else if (c->options.pipeline)
        return weft_wrong(plan->context, NULL,
                          "WEFT_COMPILE_NO_PASSES and weft_compile_options.pipeline exclude each other");
    else
        weft_own_take(plan->graph, &plan->target);
    if (plan->context->error_count > 0) /* of a pass of the caller's, or of options */
        return plan->context->error_status;
    if (weft_has_blocks(plan->graph)) /* no passes, or not enough: kernels walk strides, which blocks have none of */
        run_always(plan, "lower_blocks");
    weft_own_convert(plan->graph, &plan->target);
    if (!weft_check_symbols(plan->graph))
        return WEFT_ERR_INVALID;
    if (!weft_custom_check(plan->graph))
        return WEFT_ERR_UNSUPPORTED;
    plan->hint = weft_hint_symbols(plan->graph, plan->graph->arena);
    if (!weft_plan_check(plan->graph, &plan->target, plan->hint))
        return WEFT_ERR_UNSUPPORTED;
    weft_plan_settle_aligned(plan);
    plan->keeps_constants = c->options.flags & WEFT_COMPILE_KEEP_CONSTANTS;
    plan->compiles = !(c->options.flags & WEFT_COMPILE_NO_COMPILER);
    weft_plan_build(plan, c->options.flags & WEFT_COMPILE_REFERENCE);
    weft_plan_give_up_constants(plan);
    return WEFT_OK;
}

static int refuse_target(void *context)
{
    weft_error(context, WEFT_ERR_ARGUMENT, NULL, "the target was made for another context");
    return WEFT_ERR_ARGUMENT;
}

int weft_compile(const struct weft_graph *graph, const struct weft_compile_options *given, struct weft_plan **ret_plan)
{
    if (!graph || !ret_plan)
        return weft_missing(graph ? graph->context : NULL);
    struct weft_context *context = graph->context;
    struct compile c = {.source = graph->root};
    if (given && !weft_take_options(&c.options, sizeof c.options, given))
        return weft_missing(context);
    if (c.options.target && c.options.target->context && c.options.target->context != context)
        return weft_protected(context, refuse_target, context);
    c.plan = weft_plan_new(context, c.options.target ? c.options.target : &context->target);
    if (!c.plan)
        return WEFT_ERR_NOMEM;
    c.plan->prices = *weft_prices_of(&c.plan->target);
    c.plan->target.prices = &c.plan->prices; /* also of the plans of bodies */
    c.plan->share = c.options.flags & WEFT_COMPILE_SHARE_RESULTS;
    if (c.options.flags & (WEFT_COMPILE_NO_WINOGRAD | WEFT_COMPILE_WINOGRAD_4))
        c.plan->target.arithmetic = c.options.flags & WEFT_COMPILE_WINOGRAD_4 ? WEFT_CONV_F4 : WEFT_CONV_CHAIN;
    c.plan->workers =
        context->target.threads < c.plan->target.threads ? context->target.threads : c.plan->target.threads;
    const int status = weft_protected(context, compile, &c);
    if (status == WEFT_OK)
        *ret_plan = c.plan;
    else {
        weft_plan_drop_known(c.plan);
        weft_plan_drop(c.plan);
    }
    return status;
}

int weft_plan_wait(const struct weft_plan *plan) { return plan ? weft_tiers_wait(plan) : WEFT_ERR_ARGUMENT; }

int weft_plan_compiled(const struct weft_plan *plan, int32_t *ret_compiled, int32_t *ret_groups,
                       const char **ret_reason)
{
    int32_t compiled, groups;
    const char *why;
    if (!plan)
        return WEFT_ERR_ARGUMENT;
    weft_tiers_count(plan, &compiled, &groups, &why);
    if (ret_compiled)
        *ret_compiled = compiled;
    if (ret_groups)
        *ret_groups = groups;
    if (ret_reason)
        *ret_reason = why;
    return WEFT_OK;
}
