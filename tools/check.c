/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: weft check: can a model run? All that stands against it is said at once. */
#include "tools/tools.h"

#include "ir/ir.h"

#include <inttypes.h>
#include <string.h>

/* What sizes the model takes, and which it takes for granted. */
static void show_sizes(const struct weft_graph *graph)
{
    for (uint32_t s = 0; s < weft_symbol_count(graph->dims); s++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(graph->dims, s);
        if (!symbol->data)
            printf("size   %s from %" PRId64 " to %" PRId64 "\n", symbol->name, symbol->low, symbol->high);
    }
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        if (strcmp(remark.who, "import") == 0)
            printf("note   %s\n", remark.reason);
}

int weft_cmd_check(int argc, char **argv)
{
    const char *cpu = NULL;
    int number = 0;
    struct weft_words fixed = {.count = 0};
    const struct weft_option table[] = {
        {"--cpu", WEFT_OPTION_WORD, &cpu, "LEVEL", "highest CPU level to plan for: baseline, avx2, avx512 …"},
        WEFT_CUSTOM_OPTION,
        {"--fix", WEFT_OPTION_WORDS, &fixed, "NAME=X.npy", WEFT_FIX_HELP},
        {"--graph", WEFT_OPTION_NUMBER, &number, "N", "graph number N of a file of weft text, from 0"},
        {0},
    };
    const struct weft_usage usage = {
        "weft check MODEL [options]",
        "Reads and plans a model without running it. Every unsupported op is named, with its count; the exit\n"
        "code is then 1.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    if (code >= 0)
        return code;
    struct weft_context *context = NULL;
    code = weft_tool_open(cpu, 0, &context);
    if (code != WEFT_EXIT_OK)
        return code;
    struct weft_graph *graph = NULL;
    struct weft_plan *plan = NULL;
    const bool ok = weft_tool_load(context, words.word[0], number, &fixed, &graph) == WEFT_EXIT_OK &&
                    weft_compile(graph, NULL, &plan) >= 0;
    for (size_t i = 0; ok && i < weft_plan_inputs(plan) + weft_plan_outputs(plan); i++) {
        const size_t inputs = weft_plan_inputs(plan);
        struct weft_port port = {.size = sizeof port};
        if ((i < inputs ? weft_plan_input(plan, i, &port) : weft_plan_output(plan, i - inputs, &port)) == WEFT_OK)
            printf("%s %s %s\n", i < inputs ? "input " : "output", port.name, port.text);
    }
    if (ok)
        show_sizes(graph);
    if (ok)
        printf("%s can run\n", words.word[0]);
    if (plan)
        weft_plan_destroy(plan);
    if (graph)
        weft_graph_destroy(graph);
    weft_close(context);
    return ok ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}
