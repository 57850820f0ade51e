/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c: weft dot: a model as a picture. DOT is written by libweft-viz; what is not DOT is rendered by Graphviz's
 * `dot`, as a process of its own. */
#include "ir/file.h"
#include "plan/plan.h"
#include "tools/tools.h"

#include "weft/viz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *path, *to, *focus;
    int radius, max_nodes;
    bool source, time, scopes, no_scopes, all_layers;
    struct weft_words expand;
};

#ifdef WEFT_HAVE_VIZ

static bool failed_at(const char *path)
{
    fprintf(stderr, "weft dot: %s: %s\n", path, strerror(errno));
    return false;
}

static bool write_file(const char *path, const char *text)
{
    if (!path)
        return (fputs(text, stdout) >= 0 && !fflush(stdout)) || failed_at("standard output");
    struct weft_file file;
    if (!weft_file_create(&file, path))
        return failed_at(path);
    fputs(text, file.to);
    return weft_file_commit(&file) || failed_at(path);
}

static bool render(const char *path, const char *format, const char *text)
{
    struct weft_file file;
    char message[WEFT_DRAW_MESSAGE];
    if (!weft_file_create(&file, path))
        return failed_at(path);
    if (weft_tool_draw(text, format, file.to, message))
        return weft_file_commit(&file) || failed_at(path);
    weft_file_discard(&file);
    fprintf(stderr, "weft dot: %s: %s\n", path, message);
    return false;
}

/* What is written on boxes beside what the graph says: times of steps, bytes of units. */
struct costs {
    const char **name, **work_name;
    int64_t *ns, *bytes;
    size_t times, works;
};

static void list_costs(const struct weft_model *model, const struct weft_profile *profile, struct weft_arena *arena,
                       struct costs *ret)
{
    uint32_t units = 0;
    const struct weft_unit_counts *const unit =
        model->plan ? weft_plan_count_units(model->plan, NULL, arena, &units) : NULL;
    *ret = (struct costs){.name = weft_new(arena, const char *, profile->steps + 1),
                          .ns = weft_new(arena, int64_t, profile->steps + 1), .times = profile->steps,
                          .work_name = weft_new(arena, const char *, units + 1),
                          .bytes = weft_new(arena, int64_t, units + 1), .works = units};
    for (size_t i = 0; i < profile->steps; i++) {
        ret->name[i] = profile->step[i].value;
        ret->ns[i] = profile->step[i].ns;
    }
    for (uint32_t i = 0; i < units; i++) {
        ret->work_name[i] = weft_plan_step_name(model->plan, &model->plan->step[unit[i].step]);
        ret->bytes[i] = unit[i].read + unit[i].written;
    }
}

struct drawing {
    struct weft_model *model;
    const struct request *request;
    const struct weft_profile *profile;
    struct weft_arena arena;
    struct costs costs;
};

static int list_protected(void *argument)
{
    struct drawing *const d = argument;
    list_costs(d->model, d->profile, &d->arena, &d->costs);
    return WEFT_OK;
}

static bool write_picture(const struct request *request, const char *text)
{
    const char *point = request->to ? strrchr(request->to, '.') : NULL;
    const bool plain = !point || strchr(point, '/') || !strcmp(point, ".dot") || !strcmp(point, ".gv");
    return plain ? write_file(request->to, text) : render(request->to, point + 1, text);
}

static bool draw(struct weft_model *model, const struct request *request, const struct weft_graph *graph,
                 const struct weft_profile *profile)
{
    struct drawing d = {.model = model, .request = request, .profile = profile};
    char note[96];
    snprintf(note, sizeof note, "the fastest of %d run%s; without clocks between the steps %.3f ms", profile->runs,
             weft_tool_plural(profile->runs), profile->best_ms);
    weft_arena_open(&d.arena, model->context);
    bool ok = weft_protected(model->context, list_protected, &d) == WEFT_OK;
    const struct weft_dot_options options = {
        .size = sizeof options, .focus = request->focus, .radius = request->radius, .max_nodes = request->max_nodes,
        .heat_name = d.costs.name, .heat_ns = d.costs.ns, .heats = d.costs.times, .heat_note = note,
        .scopes = request->no_scopes ? -1 : request->scopes, .repeats = request->all_layers ? -1 : 0,
        .expand = request->expand.word, .expands = (size_t)request->expand.count,
        .work_name = d.costs.work_name, .work_bytes = d.costs.bytes, .works = d.costs.works};
    char *text = NULL;
    ok = ok && weft_dot(graph, &options, &text) >= 0 && write_picture(request, text);
    weft_free_text(model->context, text);
    weft_arena_close(&d.arena);
    return ok;
}

/* Loads what is asked for: the graph as it stands, its plan, or its plan with times. */
static int open_model(const struct request *request, struct weft_model_options *options, struct weft_model *model)
{
    if (request->time)
        return weft_model_open(options, model);
    int code = weft_tool_open(options->cpu, options->threads, &model->context);
    if (code == WEFT_EXIT_OK)
        code = weft_tool_load(model->context, request->path, options->number, &options->fixed, &model->graph);
    if (code == WEFT_EXIT_OK && !request->source && weft_model_compile(options, model->graph, &model->plan) < 0)
        code = WEFT_EXIT_FAILED;
    return code;
}

static int show(const struct request *request, struct weft_model_options *options)
{
    struct weft_model model = {0};
    struct weft_profile profile = {0};
    const int code = open_model(request, options, &model);
    bool ok = code == WEFT_EXIT_OK && (!request->time || weft_profile_measure(&model, 20, &profile));
    ok = ok && draw(&model, request, request->source ? model.graph : weft_plan_graph(model.plan), &profile);
    weft_profile_close(&profile);
    weft_model_close(&model);
    return ok || code != WEFT_EXIT_OK ? code : WEFT_EXIT_FAILED;
}

#else

static int show(const struct request *request, struct weft_model_options *options)
{
    fprintf(stderr, "weft dot: this weft was built without Graphviz's cgraph (Debian: libgraphviz-dev)\n");
    return WEFT_EXIT_FAILED;
}

#endif

int weft_cmd_dot(int argc, char **argv)
{
    struct request request = {0};
    struct weft_model_options options = {0};
    bool whole = false;
    const struct weft_option table[] = {
        {"-o", WEFT_OPTION_WORD, &request.to, "FILE", "F.dot; F.svg, F.png … through 'dot'; without: to stdout"},
        {"--focus", WEFT_OPTION_WORD, &request.focus, "NAME", "only what is near this value, node or scope, marked"},
        {"--radius", WEFT_OPTION_NUMBER, &request.radius, "K", "how near, in edges (3)"},
        {"--max-nodes", WEFT_OPTION_NUMBER, &request.max_nodes, "N", "cut the picture after N nodes (2000)"},
        {"--all", WEFT_OPTION_FLAG, &whole, NULL, "never cut"},
        {"--scopes", WEFT_OPTION_FLAG, &request.scopes, NULL,
         "boxes for name scopes, layers that repeat drawn once (default: where there are more than 60 nodes)"},
        {"--no-scopes", WEFT_OPTION_FLAG, &request.no_scopes, NULL, "no boxes for name scopes, every layer"},
        {"--expand", WEFT_OPTION_WORDS, &request.expand, "NAME",
         "of layers that repeat, draw the one that is called so or contains this, marked (default: the first)"},
        {"--all-layers", WEFT_OPTION_FLAG, &request.all_layers, NULL, "draw layers that repeat each for itself"},
        {"--source", WEFT_OPTION_FLAG, &request.source, NULL, "the model as it was read, not its plan"},
        {"--time", WEFT_OPTION_FLAG, &request.time, NULL,
         "run it and show what takes how long: in the fastest of 20 runs, or of two seconds"},
        WEFT_MODEL_OPTIONS(&options),
        {0},
    };
    const struct weft_usage usage = {
        "weft dot MODEL [options]",
        "Draws the plan of a model: op, value, type with layout and kernel in each box, weights folded into the\n"
        "boxes that read them, one colour for each layout, layout conversions in bold red with their cost and reader,\n"
        "red edges where a kernel reads in another order than it writes. A large model is drawn by the scopes that\n"
        "its names have (\"/encoder/layer.0/MatMul\"), and of layers that repeat one stands for all.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &options);
    if (code >= 0)
        return code;
    if (request.source && request.time)
        return weft_tool_misused(&usage, "--source and --time exclude each other: times belong to a plan");
    if (request.scopes && request.no_scopes)
        return weft_tool_misused(&usage, "--scopes and --no-scopes exclude each other");
    if (request.no_scopes && request.expand.count)
        return weft_tool_misused(&usage, "--no-scopes and --expand exclude each other");
    if (request.all_layers && request.expand.count)
        return weft_tool_misused(&usage, "--all-layers and --expand exclude each other: every layer is drawn");
    if (whole)
        request.max_nodes = -1;
    options.path = request.path = words.word[0];
    return show(&request, &options);
}
