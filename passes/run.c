/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: the pipeline, and one pass with everything around it.
 *
 * A pass is a function that applies or does not; it cannot fail. Around it, in this order: is it skipped
 * (WEFT_SKIP) → run on the bodies of `if` and `loop`, innermost first, then on the graph → no rewrite may have been
 * counted if it says that it changed nothing → checks and snapshots (inspect.c) → time. */
#include "passes/passes.h"

#include "ir/suggest.h"

#include <stdio.h>
#include <string.h>

const struct weft_pass_info weft_passes[] = {
#define PASS(name, help) {#name, weft_pass_##name, help},
#include "passes.def"
#undef PASS
};
const unsigned weft_pass_count = sizeof weft_passes / sizeof weft_passes[0];

enum pass_number {
#define PASS(name, help) PASS_##name,
#include "passes.def"
#undef PASS
    PASS_COUNT
};

/* --- the pipeline ----------------------------------------------------------------------------------------------- */

/* Neighbouring steps with the same loop number > 0 repeat until none of them changes anything, at most MAX_ROUNDS
 * times. A pass is left out while nothing has changed since it last ran: each is idempotent. The reasons at
 * length: README.md. */
#define MAX_ROUNDS 8
static const struct step {
    enum pass_number pass;
    int loop;
    enum weft_phase phase;
} pipeline[] = {
    /* Exported models compute shapes with dozens of nodes: they go first, so that nobody else spends time on them. */
    {PASS_fold_shape, 1, WEFT_PHASE_OPEN},
    /* Before whoever looks at constants; outer bodies hand them on to inner ones in the next round. */
    {PASS_sink_const, 1, WEFT_PHASE_OPEN},
    /* Before whoever matches patterns: constants stand right, broadcasts carry no extents of 1, casts are merged. */
    {PASS_canonicalize, 1, WEFT_PHASE_OPEN},
    /* After canonicalize, which merges casts that types alone decide. Before fold_const: a comparison that is decided
     * is a uniform constant, and what it does not select need not be computed. */
    {PASS_fold_range, 1, WEFT_PHASE_OPEN},
    /* A reshape between a convolution and its norm would hide one from the other. */
    {PASS_cancel_transpose, 1, WEFT_PHASE_OPEN},
    /* After canonicalize, which keeps uniform constants uniform, so that they need not be computed. */
    {PASS_fold_const, 1, WEFT_PHASE_OPEN},
    /* After fold_const, which finds uniform constants and indices. Before split_concat: it makes paddings. */
    {PASS_scatter_const, 1, WEFT_PHASE_OPEN},
    /* After fold_const, which finds indices and uniform constants. Before sink_transpose: fewer slices and concats to
     * pass. */
    {PASS_split_concat, 1, WEFT_PHASE_OPEN},
    /* After fold_const: transposes of constants are gone. Before decompose: a softmax is one node to pass, not five. */
    {PASS_sink_transpose, 1, WEFT_PHASE_OPEN},
    /* Before fold_batchnorm: a dead reader of a convolution looks like a second user. */
    {PASS_dce, 1, WEFT_PHASE_OPEN},
    /* After dce: a result whose readers are dead is not read. What it leaves unused goes in the next round. */
    {PASS_dead_results, 1, WEFT_PHASE_OPEN},
    /* Before decompose, which takes batch_norm apart; before cse, which may give one convolution two norms. */
    {PASS_fold_batchnorm, 0, WEFT_PHASE_OPEN},
    /* Before decompose, which takes softmax apart; behind the loop: factors, transposes and masks have one form. */
    {PASS_fuse_attention, 0, WEFT_PHASE_OPEN},
    /* Before decompose, whose parts the functions of gates may be. */
    {PASS_lower_recurrent, 0, WEFT_PHASE_OPEN},
    /* Composites before cse and the second loop, because their parts are shared and simplified like all else. */
    {PASS_decompose, 0, WEFT_PHASE_OPEN},
    /* Once more: lower_recurrent makes bodies, and weights of one direction are constants once they are computed. */
    {PASS_sink_const, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_canonicalize, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_fold_range, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_cancel_transpose, 2, WEFT_PHASE_SIMPLIFY},
    /* After cancel_transpose, which leaves one reshape of several; after decompose, which leaves elementwise ops. */
    {PASS_split_reshape, 2, WEFT_PHASE_SIMPLIFY},
    /* After split_reshape, which leaves reshapes that split or merge. */
    {PASS_merge_axes, 2, WEFT_PHASE_SIMPLIFY},
    /* Once more: decompose widens 16-bit products, whose scales then fit their weights. */
    {PASS_fold_batchnorm, 2, WEFT_PHASE_SIMPLIFY},
    /* After decompose, which opens dequantize. Before constants are computed: the factor would be in them. */
    {PASS_scale_result, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_fold_shape, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_fold_const, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_scatter_const, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_split_concat, 2, WEFT_PHASE_SIMPLIFY},
    /* Once more: what the composites were made of lets more transposes pass. */
    {PASS_sink_transpose, 2, WEFT_PHASE_SIMPLIFY},
    /* After the folds: only then are equal constants equal. */
    {PASS_cse, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_dce, 2, WEFT_PHASE_SIMPLIFY},
    {PASS_dead_results, 2, WEFT_PHASE_SIMPLIFY},
    /* After cse: equal slices of one value are one. The rest of the loop simplifies what it leaves. */
    {PASS_hoist_slice, 2, WEFT_PHASE_SIMPLIFY},
    /* Last: a rewrite after it would have to decide where its values lie. */
    {PASS_propagate_memory_format, 0, WEFT_PHASE_PLACE},
    /* Both after it: they ask how values lie. Padding first: a copy for alignment is packed. */
    {PASS_pad_strides, 0, WEFT_PHASE_PLACE},
    {PASS_align_buffers, 0, WEFT_PHASE_PLACE},
    /* Of what lies in blocks it makes an array of these, which lies as was decided. */
    {PASS_lower_blocks, 0, WEFT_PHASE_PLACE},
    /* Layouts say how kernels read weights; before all who look for what goes together, which it takes apart. */
    {PASS_scale_weights, 0, WEFT_PHASE_PLACE},
    /* After layouts, which say what a node takes. Before all who look for what goes together, which goes for what takes
     * a node's place, too. */
    {PASS_choose_alternatives, 0, WEFT_PHASE_GROUP},
    /* Before all who look for what goes together: parts of a concat are points of their own. */
    {PASS_sink_concat, 0, WEFT_PHASE_GROUP},
    /* Before fuse, whose groups go along rows: a sum down columns becomes one that goes with them. */
    {PASS_fuse_mix_order, 0, WEFT_PHASE_GROUP},
    /* Behind it, which takes sums that rows share; before fuse, which leaves long sums down few columns alone. */
    {PASS_split_folds, 0, WEFT_PHASE_GROUP},
    /* After all that decides how values lie, which says what a kernel of several nodes takes. */
    {PASS_fuse, 0, WEFT_PHASE_GROUP},
};
enum { STEPS = sizeof pipeline / sizeof pipeline[0] };

bool weft_pipeline_takes(const struct weft_pipeline *pipe, const char *name)
{
    return !pipe->ended && (!pipe->options.only || weft_list_names(pipe->options.only, name)) &&
           !weft_list_names(pipe->options.skip, name);
}

void weft_pipeline_ran(struct weft_pipeline *pipe, const char *name)
{
    pipe->ended |= weft_list_names(pipe->options.until, name);
}

static bool run_on_tree(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target);

/* Trials spawn none. */
static bool try_pass(struct weft_graph *graph, enum pass_number pass, const struct weft_target *target)
{
    const struct weft_pass_info *const info = &weft_passes[pass];
    if (pass == PASS_choose_alternatives || weft_environment_names("WEFT_SKIP", info->name, /* all= */ false))
        return false;
    const bool changed = run_on_tree(graph, info, target);
    weft_arena_empty(&graph->scratch);
    return changed;
}

static bool run_step(struct weft_pipeline *pipe, enum pass_number pass)
{
    _Static_assert((unsigned)PASS_COUNT <= WEFT_MAX_PASSES, "a pipeline remembers what each pass has seen");
    if (pipe->seen[pass] == pipe->changes || !weft_pipeline_takes(pipe, weft_passes[pass].name))
        return false;
    const bool changed = pipe->on_trial ? try_pass(pipe->graph, pass, pipe->target)
                                        : weft_run_pass_info(pipe->graph, &weft_passes[pass], pipe->target);
    pipe->changes += changed;
    pipe->seen[pass] = pipe->changes;
    weft_pipeline_ran(pipe, weft_passes[pass].name);
    return changed;
}

/* Does each word of the list name a pass? */
static bool check_list(struct weft_graph *graph, const char *what, const char *list)
{
    bool right = true;
    while (list && *list) {
        char name[64];
        const size_t length = strcspn(list, ",");
        struct weft_suggest suggest;
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        const bool exists = length < sizeof name && (weft_pass_find(name) || weft_outside_pass_exists(graph->context,
                                                                                                      name));
        if (!exists)
            weft_error(graph->context, WEFT_ERR_ARGUMENT, NULL, "weft_pipeline_options.%s: there is no pass '%s'%s",
                       what, name, weft_suggest_pass(&suggest, name, strlen(name)));
        right &= exists;
        list += length + (list[length] == ',');
    }
    return right;
}

bool weft_pipeline_open(struct weft_graph *graph, const struct weft_target *target,
                        const struct weft_pipeline_options *options, struct weft_pipeline *ret)
{
    *ret = (struct weft_pipeline){.graph = graph, .target = target, .changes = 1};
    if (options && !weft_take_options(&ret->options, sizeof ret->options, options))
        weft_error(graph->context, WEFT_ERR_ARGUMENT, NULL, "weft_pipeline_options.size is not set");
    else if (check_list(graph, "only", ret->options.only) & check_list(graph, "skip", ret->options.skip) &
             check_list(graph, "until", ret->options.until)) {
        if (ret->options.rewrites > 0)
            graph->root->rewrite_limit = graph->root->rewrites + ret->options.rewrites;
        return true;
    }
    ret->ended = true;
    return false;
}

static void run_outside(struct weft_pipeline *pipe, int place)
{
    if (!pipe->ended && !pipe->on_trial && pipe->graph->context->passes)
        pipe->ended |= weft_run_outside_passes(pipe, place) < 0;
}

static void run_phase(struct weft_pipeline *pipe, enum weft_phase phase)
{
    for (unsigned first = 0; first < STEPS;) {
        unsigned end = first + 1;
        while (pipeline[first].loop && end < STEPS && pipeline[end].loop == pipeline[first].loop)
            end++;
        bool again = pipeline[first].phase == phase;
        for (int round = 0; again && round < (pipeline[first].loop ? MAX_ROUNDS : 1); round++) {
            again = false;
            for (unsigned i = first; i < end; i++)
                again |= run_step(pipe, pipeline[i].pass);
        }
        first = end;
    }
}

void weft_pipeline_run(struct weft_pipeline *pipe, enum weft_phase phase)
{
    if (phase == WEFT_PHASE_OPEN)
        run_outside(pipe, WEFT_PASS_FIRST);
    if (phase == WEFT_PHASE_PLACE) {
        const uint64_t before = pipe->changes;
        run_outside(pipe, WEFT_PASS_SIMPLIFIED);
        if (pipe->changes != before)
            run_phase(pipe, WEFT_PHASE_SIMPLIFY);
    }
    run_phase(pipe, phase);
    if (phase == WEFT_PHASE_OPEN)
        run_outside(pipe, WEFT_PASS_OPENED);
    if (phase == WEFT_PHASE_PLACE)
        run_outside(pipe, WEFT_PASS_PLACED);
    weft_arena_close(&pipe->graph->root->scratch);
}

void weft_pipeline_close(struct weft_pipeline *pipe) { run_outside(pipe, WEFT_PASS_LAST); }

void weft_pipeline_try(struct weft_graph *graph, const struct weft_target *target, enum weft_phase first,
                       enum weft_phase last)
{
    struct weft_pipeline pipe = {.graph = graph, .target = target, .changes = 1, .on_trial = true};
    for (int phase = first; phase <= (int)last; phase++)
        weft_pipeline_run(&pipe, (enum weft_phase)phase);
}

static bool run_pipeline(struct weft_graph *graph, const struct weft_target *target,
                         const struct weft_pipeline_options *options)
{
    struct weft_pipeline pipe;
    if (!weft_pipeline_open(graph, target, options, &pipe))
        return false;
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        weft_pipeline_run(&pipe, (enum weft_phase)phase);
    weft_pipeline_close(&pipe);
    return pipe.changes > 1;
}

bool weft_run_passes(struct weft_graph *graph, const struct weft_target *target)
{
    return run_pipeline(graph, target, NULL);
}

/* --- one pass --------------------------------------------------------------------------------------------------- */

static bool run_on_graph(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target)
{
    const int64_t rewrites = graph->root->rewrites;
    const bool changed = pass->run(graph, target);
    weft_assert(changed || graph->root->rewrites == rewrites); /* it says whether it changed something */
    return changed;
}

/* All graphs below `graph` that a live node refers to, outer ones first, itself included. */
static struct weft_graph **collect_graphs(struct weft_graph *graph, uint32_t *ret_count)
{
    struct weft_arena *scratch = &graph->root->scratch;
    uint32_t count = 0, capacity = 0;
    struct weft_graph **list = weft_grow(scratch, NULL, &capacity, 1, sizeof(struct weft_graph *));
    list[count++] = graph;
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_graph *outer = list[i];
        if (outer->bodies == 0)
            continue;
        weft_foreach_node(outer, n) {
            const struct weft_node_info *info = &outer->node[n.id];
            for (unsigned k = 0; k < info->attrs; k++)
                if (info->attr[k].kind == WEFT_ATTR_GRAPH) {
                    list = weft_grow(scratch, list, &capacity, count + 1, sizeof(struct weft_graph *));
                    list[count++] = info->attr[k].graph;
                }
        }
    }
    *ret_count = count;
    return list;
}

/* A body that got simpler may make its holder simpler, so bodies go first. */
static bool run_on_tree(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target)
{
    uint32_t count;
    struct weft_graph **list = collect_graphs(graph, &count);
    bool changed = false;
    graph->root->pass_memory = NULL;
    for (uint32_t i = count; i > 0; i--)
        changed |= run_on_graph(list[i - 1], pass, target);
    return changed;
}

void weft_add_pass_record(struct weft_graph *root, const struct weft_pass_record *record)
{
    root->record = weft_grow(root->arena, root->record, &root->record_capacity, root->records + 1, sizeof *record);
    root->record[root->records++] = *record;
}

bool weft_run_pass_info(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target)
{
    if (weft_environment_names("WEFT_SKIP", pass->name, /* all= */ false))
        return false;
    struct weft_graph *root = graph->root;
    if (!target)
        target = &graph->context->target;
    struct weft_inspection inspection = {.graph = graph, .pass = pass};
    weft_inspect_before(&inspection);

    struct weft_pass_record record = {.pass = pass->name, .nodes_before = graph->live_nodes};
    const int64_t rewrites = root->rewrites;
    const int64_t start = weft_now_ns();
    const struct weft_place outside = graph->context->here;
    graph->context->here = (struct weft_place){.file = root->file, .where = pass->name};
    record.changed = run_on_tree(graph, pass, target);
    graph->context->here = outside;
    record.ns = weft_now_ns() - start;
    record.nodes_after = graph->live_nodes;
    record.rewrites = root->rewrites - rewrites;
    weft_add_pass_record(root, &record);

    if (inspection.copy) {
        run_on_tree(inspection.copy, pass, target);
        weft_arena_close(&inspection.copy->scratch);
    }
    weft_inspect_after(&inspection, record.changed);
    weft_arena_empty(&root->scratch);
    return record.changed;
}

const struct weft_pass_record *weft_pass_timing(const struct weft_graph *graph, size_t i)
{
    return i < graph->root->records ? &graph->root->record[i] : NULL;
}

/* --- public ----------------------------------------------------------------------------------------------------- */

const struct weft_pass_info *weft_pass_find(const char *name)
{
    for (unsigned i = 0; i < weft_pass_count; i++) {
        const char *a = weft_passes[i].name, *b = name;
        while (*a && (*a == *b || (*a == '_' && *b == '-')))
            a++, b++;
        if (!*a && !*b)
            return &weft_passes[i];
    }
    return NULL;
}

const char *weft_suggest_pass(struct weft_suggest *suggest, const char *word, size_t length)
{
    weft_suggest_open(suggest, word, length);
    for (unsigned i = 0; i < weft_pass_count; i++)
        weft_suggest_offer(suggest, weft_passes[i].name);
    return weft_suggest_text(suggest, "");
}

struct request {
    struct weft_graph *graph;
    const char *name; /* of a pass; NULL: the pipeline */
    const struct weft_target *target;
    const struct weft_pipeline_options *options;
};

static int run_request(void *arg)
{
    const struct request *request = arg;
    struct weft_context *context = request->graph->context;
    const struct weft_pass_info *pass = request->name ? weft_pass_find(request->name) : NULL;
    const bool outside = request->name && !pass && weft_outside_pass_exists(context, request->name);
    if (request->name && !pass && !outside) {
        struct weft_suggest suggest;
        weft_error(context, WEFT_ERR_ARGUMENT, NULL, "there is no pass '%s'%s", request->name,
                   weft_suggest_pass(&suggest, request->name, strlen(request->name)));
        return WEFT_ERR_ARGUMENT;
    }
    if (!weft_validate_graph(request->graph))
        return WEFT_ERR_INVALID;
    if (outside)
        return weft_run_outside_pass(request->graph, request->name, request->target);
    const bool changed = pass ? weft_run_pass_info(request->graph, pass, request->target)
                              : run_pipeline(request->graph, request->target, request->options);
    return context->error_count > 0 ? context->error_status : changed;
}

int weft_run_pass(struct weft_graph *graph, const char *name, const struct weft_target *target)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    struct request request = {graph, name ? name : "", target, NULL};
    return weft_protected_graph(graph, run_request, &request);
}

int weft_run_pipeline(struct weft_graph *graph, const struct weft_target *target)
{
    return weft_run_pipeline_with(graph, target, NULL);
}

int weft_run_pipeline_with(struct weft_graph *graph, const struct weft_target *target,
                           const struct weft_pipeline_options *options)
{
    if (!graph)
        return WEFT_ERR_ARGUMENT;
    struct request request = {graph, NULL, target, options};
    const int64_t limit = graph->root->rewrite_limit; /* put back whatever happens: options hold for this call */
    const int status = weft_protected_graph(graph, run_request, &request);
    graph->root->rewrite_limit = limit;
    return status;
}
