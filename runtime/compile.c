/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c: from a graph to a plan: a copy of the graph, passes, what constants alone decide, and then what runs. */
#include "ir/custom.h"
#include "ir/public.h"
#include "passes/passes.h"
#include "plan/stored.h"
#include "plan/tiers.h"
#include "runtime/runtime.h"
#include "sched/target.h"

#include <stdio.h>
#include <string.h>

struct compile {
    const struct weft_graph *source;
    struct weft_compile_options options;
    struct weft_plan *plan;
    const struct weft_stored *stored; /* its graph is planned already; or NULL */
    const char *why;                  /* the plan was in no file */
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
                           WEFT_COMPILE_NO_FUSE | WEFT_COMPILE_NO_COMPILER | WEFT_COMPILE_STORE,
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
    weft_graph_copy(c->stored ? c->stored->graph : c->source, &plan->graph);
    weft_plan_keep_names(plan, c->source);
    if (!weft_plan_assume_aligned(plan, &c->options))
        return WEFT_ERR_ARGUMENT;
    take_kernels(c);
    if (!may_group(&c->options))
        open_all_groups(plan->graph);
    else if (has_groups(plan->graph)) /* a plan says what runs, and these run as one only if a kernel computes them */
        run_always(plan, "open_groups");
    if (!(c->options.flags & WEFT_COMPILE_NO_PASSES) && !c->stored)
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

/* A plan of the source or, with `stored`, of the graph that an earlier process planned. */
static int make(struct compile *c, const struct weft_stored *stored)
{
    struct weft_context *const context = c->source->context;
    c->plan = weft_plan_new(context, c->options.target ? c->options.target : &context->target);
    if (!c->plan)
        return WEFT_ERR_NOMEM;
    c->stored = stored;
    c->plan->stored = stored;
    c->plan->prices = *weft_prices_of(&c->plan->target);
    c->plan->target.prices = &c->plan->prices; /* also of the plans of bodies */
    c->plan->share = c->options.flags & WEFT_COMPILE_SHARE_RESULTS;
    if (c->options.flags & (WEFT_COMPILE_NO_WINOGRAD | WEFT_COMPILE_WINOGRAD_4))
        c->plan->target.arithmetic = c->options.flags & WEFT_COMPILE_WINOGRAD_4 ? WEFT_CONV_F4 : WEFT_CONV_CHAIN;
    c->plan->workers =
        context->target.threads < c->plan->target.threads ? context->target.threads : c->plan->target.threads;
    const int status = weft_protected(context, compile, c);
    c->plan->stored = NULL;
    if (status == WEFT_OK)
        return WEFT_OK;
    weft_plan_drop_known(c->plan);
    weft_plan_drop(c->plan);
    c->plan = NULL;
    return status;
}

/* --- plans in files (plan/stored.h) ------------------------------------------------------------------------------- */

static const char *unkeyed_option(const struct weft_compile_options *options)
{
    static const uint32_t flags = WEFT_COMPILE_NO_PASSES | WEFT_COMPILE_REFERENCE | WEFT_COMPILE_KEEP_CONSTANTS;
    return options->target                                         ? "a target of the caller's"
           : options->pipeline                                     ? "a list of passes"
           : options->assume_aligned || options->input_alignments  ? "an alignment of inputs"
           : options->flags & flags                                ? "flags that keep the graph or its constants"
                                                                   : NULL;
}

/* The plan from its file. An error is no error of the caller's: `c->plan` is NULL then. */
static int make_stored(struct compile *c, struct weft_stored *stored)
{
    struct weft_context *const context = stored->context;
    void (*const diagnose)(void *, const struct weft_diagnostic *) = context->diagnose;
    context->diagnose = NULL;
    const int status = make(c, stored);
    context->diagnose = diagnose;
    if (status != WEFT_OK)
        snprintf(stored->why, sizeof stored->why, "the stored plan does not serve: %.*s",
                 (int)strcspn(weft_last_error(context), "\n"), weft_last_error(context));
    return status == WEFT_ERR_NOMEM ? status : WEFT_OK;
}

/* Puts a new plan into a file, and takes it from there at once: so all processes run the same, and what cannot be read
 * back shows here. */
static int store(struct compile *c, struct weft_stored *stored)
{
    struct weft_plan *const made = c->plan;
    char why[sizeof stored->why];
    memcpy(why, stored->why, sizeof why);
    if (!weft_stored_write(stored, made))
        return WEFT_OK;
    int status = weft_stored_reopen(stored);
    if (status == WEFT_OK && stored->graph)
        status = make_stored(c, stored);
    if (status == WEFT_OK && stored->graph && c->plan) {
        weft_plan_drop(made);
        memcpy(stored->why, why, sizeof why);
        return WEFT_OK;
    }
    weft_stored_remove(stored);
    c->plan = made;
    return WEFT_OK;
}

static int keep_reason(void *arg)
{
    const struct compile *const c = arg;
    const char *const why = c->why;
    c->plan->why_not_stored = weft_arena_copy(c->plan->graph->arena, why, strlen(why));
    return WEFT_OK;
}

static int compile_stored(struct compile *c)
{
    struct weft_stored stored;
    const struct weft_stored_facts facts = {.flags = c->options.flags, .constant_bytes = c->options.constant_bytes,
                                            .other = unkeyed_option(&c->options)};
    int status = weft_stored_open(&stored, c->source, &facts);
    if (status == WEFT_OK && stored.graph)
        status = make_stored(c, &stored);
    const bool found = status == WEFT_OK && c->plan;
    if (status == WEFT_OK && !c->plan)
        status = make(c, NULL);
    if (status == WEFT_OK && !found)
        status = store(c, &stored);
    if (status == WEFT_OK) {
        c->plan->was_stored = found;
        c->why = stored.why;
        if (!found)
            (void)weft_protected(c->source->context, keep_reason, c); /* without memory there is no reason */
    }
    weft_stored_close(&stored);
    return status;
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
    const int status = c.options.flags & WEFT_COMPILE_STORE ? compile_stored(&c) : make(&c, NULL);
    if (status == WEFT_OK)
        *ret_plan = c.plan;
    return status;
}

int weft_plan_stored(const struct weft_plan *plan, int32_t *ret_found, const char **ret_reason)
{
    if (!plan)
        return WEFT_ERR_ARGUMENT;
    if (ret_found)
        *ret_found = plan->was_stored;
    if (ret_reason)
        *ret_reason = plan->why_not_stored;
    return WEFT_OK;
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
