/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: weft explain: every decision on the way from a model to its plan. */
#include "tools/explain.h"
#include "tools/tools.h"

struct request {
    const char *path, *node;
    bool json;
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_arena arena;
};

static int name_nodes(void *arg)
{
    const struct request *r = arg;
    explain_name_nodes(r->graph);
    return WEFT_OK;
}

static int explain(void *arg)
{
    struct request *r = arg;
    struct explain e = {.context = r->context, .arena = &r->arena, .path = r->path, .from = r->graph, .plan = r->plan};
    struct weft_text text = {.context = r->context, .arena = &r->arena};
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

int weft_cmd_explain(int argc, char **argv)
{
    struct request r = {0};
    struct weft_words fixed = {.count = 0};
    const char *cpu = NULL;
    int number = 0;
    const struct weft_option table[] = {
        {"--node", WEFT_OPTION_WORD, &r.node, "N", "only this node of the model, or the one that computes this value"},
        {"--json", WEFT_OPTION_FLAG, &r.json, NULL, "an object a line: docs/explain.md"},
        {"--fix", WEFT_OPTION_WORDS, &fixed, "NAME=X.npy", WEFT_FIX_HELP},
        {"--cpu", WEFT_OPTION_WORD, &cpu, "LEVEL", "baseline, avx2, avx512 …: plan for no more than that"},
        {"--graph", WEFT_OPTION_NUMBER, &number, "N", "graph number N of a file of weft text, from 0"},
        {0},
    };
    const struct weft_usage usage = {
        "weft explain MODEL [options]",
        "Says what each pass did to which node and why, or why not, and for each node of the model what became of\n"
        "it: layout, kernel, place, operations and bytes by counting, and why it has no kernel where it has none.",
        table, 1, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    if (code >= 0)
        return code;
    r.path = words.word[0];
    code = weft_tool_open(cpu, 0, &r.context);
    if (code != WEFT_EXIT_OK)
        return code;
    const bool ok = weft_tool_load(r.context, r.path, number, &fixed, &r.graph) == WEFT_EXIT_OK &&
                    weft_protected_graph(r.graph, name_nodes, &r) == WEFT_OK &&
                    weft_compile(r.graph, NULL, &r.plan) == WEFT_OK;
    weft_arena_open(&r.arena, r.context);
    code = ok && weft_protected(r.context, explain, &r) == WEFT_OK ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
    weft_arena_close(&r.arena);
    weft_plan_destroy(r.plan);
    if (r.graph)
        weft_graph_destroy(r.graph);
    weft_close(r.context);
    return code;
}
