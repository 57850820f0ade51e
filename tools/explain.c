/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: weft explain: every decision on the way from a model to its plan. */
#include "tools/explain.h"
#include "tools/tools.h"

struct request {
    struct weft_model_options options;
    const char *node;
    bool json, measure;
    int code; /* for the shell, where `explain` says why itself */
    struct weft_model model;
    struct weft_profile profile;
    struct weft_arena arena;
};

static int name_nodes(void *arg)
{
    struct weft_graph *const graph = arg;
    explain_name_nodes(graph);
    graph->fixed_labels = true;
    return WEFT_OK;
}

/* What costs are counted for: hints, what --size says, and what data may bring at most. */
static const int64_t *sizes_of(struct request *r)
{
    const struct weft_dims *dims = weft_plan_graph(r->model.plan)->dims;
    int64_t *size = weft_new(&r->arena, int64_t, weft_symbol_count(dims) + 1);
    r->code = weft_model_sizes(&r->options.sizes, dims, size);
    if (r->code == WEFT_EXIT_OK)
        weft_symbols_at_bounds(dims, size);
    return size;
}

static int explain(void *arg)
{
    struct request *r = arg;
    struct explain e = {.context = r->model.context, .arena = &r->arena, .path = r->options.path,
                        .from = r->model.graph, .plan = r->model.plan, .symbols = sizes_of(r),
                        .measured = r->measure ? &r->profile : NULL};
    struct weft_text text = {.context = r->model.context, .arena = &r->arena};
    if (r->code != WEFT_EXIT_OK)
        return WEFT_OK;
    explain_collect(&e);
    const struct explain_origin *only = r->node ? explain_find(&e, r->node) : NULL;
    if (r->node && !only)
        return WEFT_ERR_ARGUMENT;
    if (r->json)
        explain_print_json(&e, only, &text);
    else
        explain_print_text(&e, only, &text);
    fputs(text.data, stdout);
    return WEFT_OK;
}

int explain_open(const struct weft_model_options *o, struct weft_model *model)
{
    const double start = weft_tool_now_ms();
    const int code = weft_tool_load(model->context, o->path, o->number, &o->fixed, &model->graph);
    if (code != WEFT_EXIT_OK)
        return code;
    const double loaded = weft_tool_now_ms();
    const bool planned = weft_protected_graph(model->graph, name_nodes, model->graph) == WEFT_OK &&
                         weft_model_compile(o, model->graph, &model->plan) == WEFT_OK;
    model->load_ms = loaded - start;
    model->compile_ms = weft_tool_now_ms() - loaded;
    return planned ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}

int weft_cmd_explain(int argc, char **argv)
{
    struct request r = {0};
    struct weft_model_options *o = &r.options;
    const struct weft_option table[] = {
        {"--node", WEFT_OPTION_WORD, &r.node, "N", "only this node of the model, or the one that computes this value"},
        {"--json", WEFT_OPTION_FLAG, &r.json, NULL, "one JSON object per line: docs/explain.md"},
        {"--measure", WEFT_OPTION_FLAG, &r.measure, NULL, "also run it: measured times beside predicted ones"},
        {"--fix", WEFT_OPTION_WORDS, &o->fixed, "NAME=X.npy", WEFT_FIX_HELP},
        {"--size", WEFT_OPTION_WORDS, &o->sizes, "N=4", "count costs for this size; plans are made for the hints"},
        {"--graph", WEFT_OPTION_NUMBER, &o->number, "N", "graph number N of a file of weft text, from 0"},
        {"--threads", WEFT_OPTION_COUNT, &o->threads, "N", "plan for at most N threads"},
        WEFT_CUSTOM_OPTION,
        {"--cpu", WEFT_OPTION_WORD, &o->cpu, "LEVEL", "highest CPU level to plan for: baseline, avx2, avx512 …"},
        {"--constant-bytes", WEFT_OPTION_BYTES, &o->constant_bytes, "N", WEFT_CONSTANT_BYTES_HELP},
        {"--no-fuse", WEFT_OPTION_FLAG, &o->no_fuse, NULL, WEFT_NO_FUSE_HELP},
        {"--no-winograd", WEFT_OPTION_FLAG, &o->no_winograd, NULL, WEFT_NO_WINOGRAD_HELP},
        {"--winograd-4", WEFT_OPTION_FLAG, &o->winograd_4, NULL, WEFT_WINOGRAD_4_HELP},
        {0},
    };
    const struct weft_usage usage = {
        "weft explain MODEL [options]",
        "Says what each pass did to which node and why, or why not, which layout conversions were inserted, for whom\n"
        "and at what cost, and for each node of the model what became of it: layout, kernel, storage, counted\n"
        "operations and bytes, and why it has no kernel where it has none.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, o);
    if (code >= 0)
        return code;
    if (r.measure && o->sizes.count)
        return weft_tool_misused(&usage, "--measure runs what was predicted, for the hints: it goes without --size");
    o->path = words.word[0];
    code = weft_tool_open(o->cpu, o->threads, &r.model.context);
    if (code != WEFT_EXIT_OK)
        return code;
    code = explain_open(o, &r.model);
    if (code == WEFT_EXIT_OK && r.measure)
        code = explain_measure(o, &r.model, &r.profile);
    weft_arena_open(&r.arena, r.model.context);
    if (code == WEFT_EXIT_OK)
        code = weft_protected(r.model.context, explain, &r) == WEFT_OK ? r.code : WEFT_EXIT_FAILED;
    weft_arena_close(&r.arena);
    weft_profile_close(&r.profile);
    weft_model_close(&r.model);
    return code;
}
