/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: from a path to something that runs: context, graph, plan, execution, inputs. */
#include "tools/tools.h"

#include "tools/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int weft_model_misused(const struct weft_usage *usage, const struct weft_model_options *options)
{
    return options->no_winograd && options->winograd_4
               ? weft_tool_misused(usage, "--no-winograd and --winograd-4 exclude each other") : -1;
}

/* A word of a shell's command line. */
static void print_word(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=+-,:@%";
    if (word[0] && !word[strspn(word, plain)]) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (const char *c = word; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (const char[]){*c, '\0'}, stdout);
    putchar('\'');
}

static void print_words(const char *option, const struct weft_words *words)
{
    for (int i = 0; i < words->count; i++) {
        printf(" %s ", option);
        print_word(words->word[i]);
    }
}

void weft_model_print_options(const struct weft_model_options *o, bool inputs)
{
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"--reference", o->reference},     {"--no-fuse", o->no_fuse},       {"--no-compiler", o->no_compiler},
                 {"--no-winograd", o->no_winograd}, {"--winograd-4", o->winograd_4}};
    if (inputs) {
        print_words("-i", &o->inputs);
        print_words("--fix", &o->fixed);
        print_words("--size", &o->sizes);
    }
    if (inputs && o->number)
        printf(" --graph %d", o->number);
    if (o->threads)
        printf(" --threads %d", o->threads);
    if (o->cpu)
        print_words("--cpu", &(struct weft_words){.word = {o->cpu}, .count = 1});
    if (o->constant_bytes)
        printf(" --constant-bytes %lld", o->constant_bytes > 0 ? (long long)o->constant_bytes : 0);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].given)
            printf(" %s", flags[i].name);
    print_words("--custom", &weft_tool_customs);
}

int weft_model_compile(const struct weft_model_options *options, const struct weft_graph *graph,
                       struct weft_plan **ret_plan)
{
    const struct weft_compile_options compile = {.size = sizeof compile,
                                                 .flags =
                                                     (options->reference ? WEFT_COMPILE_REFERENCE : 0) |
                                                     (options->no_winograd ? WEFT_COMPILE_NO_WINOGRAD : 0) |
                                                     (options->no_compiler ? WEFT_COMPILE_NO_COMPILER : 0) |
                                                     (options->no_fuse ? WEFT_COMPILE_NO_FUSE : 0) |
                                                     (options->winograd_4 ? WEFT_COMPILE_WINOGRAD_4 : 0),
                                                 .constant_bytes = options->constant_bytes};
    return weft_compile(graph, &compile, ret_plan);
}

int weft_model_prepare(const struct weft_model_options *options, struct weft_model *model)
{
    model->inputs = weft_plan_inputs(model->plan);
    model->outputs = weft_plan_outputs(model->plan);
    if (model->inputs > WEFT_TOOL_PORTS) {
        fprintf(stderr, "weft: %zu inputs are more than this command takes (%d)\n", model->inputs, WEFT_TOOL_PORTS);
        model->inputs = 0;
        return WEFT_EXIT_FAILED;
    }
    const double before = weft_tool_now_ms();
    if (weft_execution_create(model->plan, &model->execution) < 0)
        return WEFT_EXIT_FAILED;
    model->create_ms = weft_tool_now_ms() - before;
    return weft_model_make_inputs(options, model);
}

int weft_model_open(const struct weft_model_options *options, struct weft_model *ret_model)
{
    struct weft_model *model = ret_model;
    *model = (struct weft_model){0};
    int code = weft_tool_open(options->cpu, options->threads, &model->context);
    if (code != WEFT_EXIT_OK)
        return code;
    double before = weft_tool_now_ms();
    code = weft_tool_load(model->context, options->path, options->number, &options->fixed, &model->graph);
    if (code != WEFT_EXIT_OK)
        return code;
    model->load_ms = weft_tool_now_ms() - before;
    before = weft_tool_now_ms();
    if (weft_model_compile(options, model->graph, &model->plan) < 0)
        return WEFT_EXIT_FAILED;
    model->compile_ms = weft_tool_now_ms() - before;
    return weft_model_prepare(options, model);
}

bool weft_model_run_afresh(struct weft_model *model)
{
    weft_model_place_inputs(model);
    if (weft_tool_run(model->execution) >= 0)
        return true;
    weft_tool_run_failed(model->execution);
    return false;
}

const char *weft_model_extents(const struct weft_model *model, size_t input, char ret[128])
{
    struct weft_port port = {.size = sizeof port};
    const struct weft_tensor *const tensor = &model->input[input];
    ret[0] = '\0';
    if (weft_plan_input(model->plan, input, &port) != WEFT_OK || !port.text)
        return ret;
    const char *open = strchr(port.text, '[');
    while (open && *open && !isalpha((unsigned char)*open))
        open++;
    if (!open || !*open)
        return ret;
    int length = snprintf(ret, 128, ", as [");
    for (int i = 0; i < tensor->rank && length < 100; i++)
        length += snprintf(ret + length, 128 - (size_t)length, "%s%lld", i ? "," : "", (long long)tensor->extent[i]);
    snprintf(ret + length, 128 - (size_t)length, "]%s", model->random ? " (other sizes: --size)" : "");
    return ret;
}

void weft_model_close(struct weft_model *model)
{
    if (model->execution)
        weft_execution_destroy(model->execution);
    if (model->plan)
        weft_plan_destroy(model->plan);
    if (model->graph)
        weft_graph_destroy(model->graph);
    weft_model_drop_inputs(model);
    if (model->context)
        weft_close(model->context);
}
