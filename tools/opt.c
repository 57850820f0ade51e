/* SPDX-License-Identifier: Apache-2.0 */
/* opt.c: weft opt: passes on text, the lists of what there is, and the runner of test files. */
#include "runtime/runtime.h"
#include "tools/explain.h"
#include "tools/golden.h"
#include "tools/tools.h"

#include "ir/suggest.h"
#include "kernels/kernels.h"
#include "passes/passes.h"
#include "weft/viz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- passes by name ----------------------------------------------------------------------------------------------- */

static void no_such_pass(struct weft_context *context, const char *name)
{
    struct weft_suggest suggest;
    weft_error(context, WEFT_ERR_ARGUMENT, &(struct weft_place){.where = "--passes"},
               "no pass is called '%s'%s; weft opt --list-passes shows them all", name,
               weft_suggest_pass(&suggest, name, strlen(name)));
}

static bool run_named(struct weft_graph *graph, const char *name, const struct weft_target *target)
{
    if (strcmp(name, "pipeline") == 0) {
        weft_run_passes(graph, target);
        return true;
    }
    const struct weft_pass_info *pass = weft_pass_find(name);
    if (pass)
        weft_run_pass_info(graph, pass, target);
    else
        no_such_pass(graph->context, name);
    return pass != NULL;
}

bool weft_opt_passes(struct weft_graph *graph, const char *names, const struct weft_target *target,
                     bool (*after)(void *user, const char *pass), void *user)
{
    while (*names) {
        char name[64];
        const size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (!run_named(graph, name, target) || (after && !after(user, name)))
            return false;
        names += length + (names[length] == ',');
    }
    return true;
}

bool weft_opt_target(const char *name, struct weft_target *ret_target)
{
    *ret_target = (struct weft_target){.threads = WEFT_GOLDEN_THREADS, .l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20,
                                         .arithmetic = WEFT_CONV_F2};
    snprintf(ret_target->name, sizeof ret_target->name, "%s", name);
    return weft_cpu_parse(name, &ret_target->cpu) && !(ret_target->cpu & ~WEFT_CPU_BUILT);
}

/* --- one graph ---------------------------------------------------------------------------------------------------- */

struct options {
    const char *passes, *cpu, *target, *print, *to; /* target: also what --cpu says */
    struct weft_words fixed;   /* "NAME=X.npy" */
    int64_t constant_bytes;
    int number;                /* of the graph in its file */
    bool strip, no_fuse, list_ops, list_onnx, list_passes, list_kernels, test, bless;
};

struct job {
    const struct options *options;
    const char *path;
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_target target;
    char *text;                /* of the result */
    struct weft_sidecar sidecar;
};

static int apply(void *arg)
{
    struct job *job = arg;
    if (job->options->passes)
        weft_opt_passes(job->graph, job->options->passes, job->options->target ? &job->target : NULL, NULL, NULL);
    if (job->options->strip)
        weft_strip(job->graph);
    return WEFT_OK;
}

static bool load(struct job *job)
{
    if (strcmp(job->path, "-") != 0)
        return weft_tool_load(job->context, job->path, job->options->number, &job->options->fixed, &job->graph) ==
               WEFT_EXIT_OK;
    size_t bytes = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text && !feof(stdin) && !ferror(stdin)) {
        bytes += fread(text + bytes, 1, capacity - bytes, stdin);
        if (bytes == capacity) {
            char *grown = realloc(text, capacity *= 2);
            if (!grown)
                free(text);
            text = grown;
        }
    }
    if (!text)
        fputs("weft opt: out of memory\n", stderr);
    const bool right = text && weft_parse(job->context, text, bytes, "standard input", &job->graph) >= 0;
    free(text);
    return right;
}

/* What is in the graph that was given. */
static void list_counts(const struct weft_graph *graph, struct weft_text *text)
{
    int64_t count[WEFT_OP_COUNT] = {0}, constants = 0;
    uint32_t groups = 0;
    for (uint32_t i = 1; i < graph->groups; i++)
        groups += graph->group[i].name != NULL;
    weft_foreach_node(graph, n) {
        const struct weft_node_info *info = weft_node_of(graph, n);
        count[info->op]++;
        if (info->constant && info->constant->kind == WEFT_CONST_BLOB) {
            const struct weft_type *type = weft_type_of(graph, weft_result(graph, n, 0));
            constants += weft_dtype_bytes(type->dtype, weft_dim_value(weft_type_elements(graph->dims, type)));
        }
    }
    weft_text_format(text,
                     "nodes %u\nparameters %u\nresults %u\nsymbols %u\nbodies %u\ngroups %u\nconstant_bytes %lld\n",
                     graph->live_nodes, graph->params, graph->returns, weft_symbol_count(graph->dims), graph->bodies,
                     groups, (long long)constants);
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        if (count[op])
            weft_text_format(text, "op.%s %lld\n", weft_ops[op].name, (long long)count[op]);
}

static bool failed_at(const char *path)
{
    fprintf(stderr, "weft opt: %s: %s\n", path, strerror(errno));
    return false;
}

/* The text and the weights beside it change places with older ones only when both are there. */
static bool write_files(struct job *job, const char *text)
{
    struct weft_file file;
    if (!weft_file_create(&file, job->options->to))
        return failed_at(job->options->to);
    fputs(text, file.to);
    if (!weft_file_finish(&file))
        return failed_at(job->options->to);
    if (!weft_sidecar_place(&job->sidecar)) {
        weft_file_discard(&file);
        return false;
    }
    return weft_file_place(&file) || failed_at(job->options->to);
}

static bool write_text(struct job *job, char *text)
{
    const bool right = job->options->to ? write_files(job, text)
                                        : (fputs(text, stdout) >= 0 && !fflush(stdout)) || failed_at("standard output");
    weft_free_text(job->context, text);
    return right;
}

static bool print_dot(struct job *job, char **ret_text)
{
#ifdef WEFT_HAVE_VIZ
    const struct weft_dot_options options = {.size = sizeof options};
    return weft_dot(job->graph, &options, ret_text) >= 0;
#else
    (void)job, (void)ret_text;
    fputs("weft opt: this build has no Graphviz, so no --print=dot\n", stderr);
    return false;
#endif
}

/* Does the text go to the folder that the graph came from? */
static bool stays_in_folder(const struct job *job)
{
    const char *from = job->graph->file ? job->graph->file : "", *to = job->options->to ? job->options->to : "";
    const char *slash = strrchr(from, '/'), *to_slash = strrchr(to, '/');
    const size_t folder = slash ? (size_t)(slash - from) + 1 : 0;
    return folder == (to_slash ? (size_t)(to_slash - to) + 1 : 0) && strncmp(from, to, folder) == 0;
}

/* As weft_print, but with files by their whole path where the text goes to another folder than the graph came from. */
static int print_graph(void *arg)
{
    struct job *job = arg;
    struct weft_text text = {.context = job->context, .arena = &job->graph->scratch};
    weft_text_add(&text, "weft 1\n");
    weft_print_graph(job->graph,
                     &(struct weft_print_options){.absolute_files = !stays_in_folder(job),
                                                  .place_blob = job->options->to ? weft_sidecar_add : NULL,
                                                  .user = &job->sidecar},
                     &text);
    job->text = weft_text_take(&text);
    weft_arena_close(&job->graph->scratch);
    return job->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

static bool print_text(struct job *job)
{
    if (job->options->to &&
        !weft_sidecar_open(&job->sidecar, job->graph, job->options->to, !stays_in_folder(job)))
        return false;
    const bool right = weft_protected(job->context, print_graph, job) >= 0;
    return weft_sidecar_finish(&job->sidecar) && right;
}

struct choices_job {
    struct job *job;
    const struct weft_plan *plan;
    int64_t ns;                /* that making it took */
};

/* Each unit that a kernel computes, by the name of what it computes, and the ways to do it; then those of bodies.
 * Recursion is as deep as bodies are nested. */
static void list_units(const struct weft_plan *plan, bool body, struct weft_arena *scratch, struct weft_text *text)
{
    for (uint32_t i = 1; i < plan->units.count; i++) {
        const struct weft_unit *const unit = &plan->units.unit[i];
        const uint32_t traits = weft_op_of(plan->graph, unit->first)->traits;
        const bool is_group = unit->nodes > 1;
        if (!explain_unit_note(plan, unit) || (!is_group && traits & WEFT_CONTROL))
            continue;
        weft_text_format(text, "  %%%s = %s%s%s%s\n", plan->label[weft_unit_value(&plan->units, unit).id],
                         is_group ? "group @" : "",
                         is_group ? plan->graph->group[unit->group].name : weft_op_of(plan->graph, unit->first)->name,
                         body ? "  in body @" : "", body ? plan->graph->name : "");
        explain_unit_choices(plan, unit, scratch, text);
    }
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            list_units(plan->control[i].body[k], /* body= */ true, scratch, text);
}

/* Choices, the C of kernels, or times. */
static int list_plan(void *arg)
{
    const struct choices_job *c = arg;
    struct weft_arena *const scratch = &c->plan->graph->scratch;
    struct weft_text text = {.context = c->job->context, .arena = scratch};
    if (strcmp(c->job->options->print, "c") == 0)
        weft_opt_print_code(c->plan, scratch, &text);
    else if (strcmp(c->job->options->print, "times") == 0)
        weft_opt_print_times(c->plan->graph, c->ns, scratch, &text);
    else
        list_units(c->plan, /* body= */ false, scratch, &text);
    weft_text_add(&text, "");
    c->job->text = weft_text_take(&text);
    weft_arena_close(scratch);
    return c->job->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

/* The plan keeps all elements, so that the text can be read back. */
static struct weft_plan *compile(const struct job *job, uint32_t flags)
{
    struct weft_plan *plan;
    const struct weft_compile_options options = {.size = sizeof options,
                                                 .target = job->options->target ? &job->target : NULL,
                                                 .flags = WEFT_COMPILE_KEEP_CONSTANTS | flags |
                                                          (job->options->no_fuse ? WEFT_COMPILE_NO_FUSE : 0) |
                                                          (job->options->passes ? WEFT_COMPILE_NO_PASSES : 0),
                                                 .constant_bytes = job->options->constant_bytes};
    return weft_compile(job->graph, &options, &plan) < 0 ? NULL : plan;
}

static bool print_plan(struct job *job)
{
    const int64_t start = weft_now_ns();
    struct weft_plan *const plan = compile(job, 0);
    if (!plan)
        return false;
    struct weft_graph *const given = job->graph;
    struct choices_job choices = {job, plan, weft_now_ns() - start};
    job->graph = plan->graph;
    const bool right = strcmp(job->options->print, "plan") != 0
                           ? weft_protected(job->context, list_plan, &choices) >= 0 : print_text(job);
    job->graph = given;
    weft_plan_destroy(plan);
    return right;
}

struct stats_job {
    struct job *job;
    struct weft_plan *plan, *unfused;
};

static int list_stats(void *arg)
{
    const struct stats_job *s = arg;
    struct weft_arena *const scratch = &s->job->graph->scratch;
    struct weft_text text = {.context = s->job->context, .arena = scratch};
    list_counts(s->job->graph, &text);
    weft_plan_print_stats(s->plan, s->unfused, &text);
    s->job->text = weft_text_take(&text);
    weft_arena_close(scratch);
    return s->job->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

static bool print_stats(struct job *job)
{
    struct stats_job stats = {job, compile(job, 0), compile(job, WEFT_COMPILE_NO_FUSE)};
    const bool right = stats.plan && stats.unfused && weft_protected(job->context, list_stats, &stats) >= 0;
    weft_plan_destroy(stats.plan);
    weft_plan_destroy(stats.unfused);
    return right;
}

/* One line a decision, as text without a plan. */
static int print_remarks(void *arg)
{
    struct job *job = arg;
    struct weft_text text = {.context = job->context, .arena = &job->graph->scratch};
    for (size_t i = 0; i < weft_remark_count(job->graph); i++) {
        struct weft_remark remark = {.size = sizeof remark};
        if (weft_remark_get(job->graph, i, &remark) == WEFT_OK)
            weft_text_format(&text, "%s: %s %s: %s\n", remark.who, remark.verdict, remark.where, remark.reason);
    }
    weft_text_add(&text, "");
    job->text = weft_text_take(&text);
    weft_arena_close(&job->graph->scratch);
    return job->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

/* Of the passes that --passes names. */
static int print_times(void *arg)
{
    struct job *job = arg;
    struct weft_text text = {.context = job->context, .arena = &job->graph->scratch};
    weft_opt_print_times(job->graph, 0, &job->graph->scratch, &text);
    job->text = weft_text_take(&text);
    weft_arena_close(&job->graph->scratch);
    return job->text ? WEFT_OK : WEFT_ERR_NOMEM;
}

static bool is_planned(const char *what)
{
    return what && (!strcmp(what, "plan") || !strcmp(what, "choices") || !strcmp(what, "stats") ||
                    !strcmp(what, "c") || !strcmp(what, "times"));
}

static bool print_result(struct job *job)
{
    const char *what = job->options->print ? job->options->print : "ir";
    const bool right = strcmp(what, "stats") == 0     ? print_stats(job)
                       : strcmp(what, "times") == 0 && job->options->passes
                           ? weft_protected(job->context, print_times, job) >= 0
                       : is_planned(what)             ? print_plan(job)
                       : strcmp(what, "dot") == 0     ? print_dot(job, &job->text)
                       : strcmp(what, "remarks") == 0 ? weft_protected(job->context, print_remarks, job) >= 0
                                                      : print_text(job);
    if (right)
        return write_text(job, job->text);
    weft_free_text(job->context, job->text); /* NULL, or what a file beside it could not be written for */
    return false;
}

static int run_job(struct job *job)
{
    int code = WEFT_EXIT_FAILED;
    const int opened = weft_tool_open(NULL, 0, &job->context);
    if (opened != WEFT_EXIT_OK)
        return opened;
    if (load(job) && weft_protected(job->context, apply, job) >= 0 && print_result(job))
        code = WEFT_EXIT_OK;
    weft_sidecar_close(&job->sidecar);
    if (job->graph)
        weft_graph_destroy(job->graph);
    weft_close(job->context);
    return code;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int check_print(const struct weft_usage *usage, const char *print)
{
    static const char *const known[] = {"ir", "choices", "plan", "c", "dot", "stats", "remarks", "times"};
    for (unsigned i = 0; print && i < sizeof known / sizeof *known; i++)
        if (strcmp(print, known[i]) == 0)
            return -1;
    struct weft_suggest suggest;
    return print ? weft_tool_misused(usage,
                                     "--print is ir, choices, plan, c, dot, stats, remarks or times, not '%s'%s", print,
                                     weft_suggest_among(&suggest, "ir choices plan c dot stats remarks times", print,
                                                        strlen(print)))
                 : -1;
}

/* -1, or the exit code after saying which pass there is not. */
static int check_passes(const struct weft_usage *usage, const char *names)
{
    while (names && *names) {
        char name[64];
        struct weft_suggest suggest;
        const size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (strcmp(name, "pipeline") != 0 && !weft_pass_find(name))
            return weft_tool_misused(usage, "no pass is called '%s'%s; weft opt --list-passes shows them all", name,
                                     weft_suggest_pass(&suggest, name, strlen(name)));
        names += length + (names[length] == ',');
    }
    return -1;
}

int weft_cmd_opt(int argc, char **argv)
{
    struct options options = {0};
    const struct weft_option table[] = {
        {"--passes", WEFT_OPTION_WORD, &options.passes, "A,B",
         "run these passes, in this order; \"pipeline\" is the default pipeline"},
        {"--cpu", WEFT_OPTION_WORD, &options.cpu, "LEVEL",
         "compile for baseline, avx2, avx512 … instead of this CPU, with prices that are the same on every machine"},
        {"--target", WEFT_OPTION_WORD, &options.target, "LEVEL", "the same as --cpu"},
        {"--strip", WEFT_OPTION_FLAG, &options.strip, NULL, "then drop layouts, plans, groups and relayouts"},
        {"--print", WEFT_OPTION_WORD, &options.print, "WHAT",
         "ir (the graph, as text); dot; and, without --passes after the pipeline: remarks of passes, choices (of each "
         "unit), plan, c (of groups, as C), stats (what is in the graph; bytes and arithmetic of the plan, fused and "
         "not), times (of each pass, and of the rest of making a plan)"},
        {"-o", WEFT_OPTION_WORD, &options.to, "FILE",
         "write there; weights that no file holds go to FILE.bin beside it"},
        {"--fix", WEFT_OPTION_WORDS, &options.fixed, "NAME=X.npy", WEFT_FIX_HELP},
        WEFT_CUSTOM_OPTION,
        {"--no-fuse", WEFT_OPTION_FLAG, &options.no_fuse, NULL, WEFT_NO_FUSE_HELP},
        {"--constant-bytes", WEFT_OPTION_BYTES, &options.constant_bytes, "N", WEFT_CONSTANT_BYTES_HELP},
        {"--graph", WEFT_OPTION_NUMBER, &options.number, "N", "graph number N of a file of weft text, from 0"},
        {"--list-ops", WEFT_OPTION_FLAG, &options.list_ops, NULL,
         "every op: operands, traits, attributes (? optional, =default)"},
        {"--list-onnx", WEFT_OPTION_FLAG, &options.list_onnx, NULL,
         "every op of ONNX: first opset, least and most inputs (-1: any)"},
        {"--list-passes", WEFT_OPTION_FLAG, &options.list_passes, NULL, "every pass"},
        {"--list-kernels", WEFT_OPTION_FLAG, &options.list_kernels, NULL, "every kernel and the CPU it needs"},
        {"--test", WEFT_OPTION_FLAG, &options.test, NULL, "run the test files below the paths"},
        {"--bless", WEFT_OPTION_FLAG, &options.bless, NULL, "with --test: write what came into the #> blocks"},
        {0}};
    const struct weft_usage usage = {"weft opt [options] FILE|-   or   weft opt --test [--bless] PATH…",
                                     "Reads a graph (weft text or ONNX), runs passes on it and prints it. Test files: "
                                     "tools/golden.h; the language:\n"
                                     "ir/FORMAT.md.",
                                     table, NULL, WEFT_TOOL_WORDS};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    if (code >= 0)
        return code;
    if (options.list_ops)
        weft_opt_print_ops();
    if (options.list_onnx)
        weft_opt_print_onnx();
    if (options.list_passes)
        weft_opt_print_passes();
    if (options.list_kernels)
        weft_opt_print_kernels();
    if (options.list_ops || options.list_onnx || options.list_passes || options.list_kernels)
        return WEFT_EXIT_OK;
    if (options.bless && !options.test)
        return weft_tool_misused(&usage, "--bless goes with --test");
    if (words.count == 0)
        return weft_tool_missing(&usage, options.test ? "a test file, or a folder of them,"
                                                      : WEFT_TOOL_MODEL ", or - for standard input,");
    if (!options.test && words.count != 1)
        return weft_tool_misused(&usage, "it wants one file, or - for standard input");
    if (options.test)
        return weft_golden_main(words.word, words.count, options.bless);
    if (!options.passes && options.print && strcmp(options.print, "remarks") == 0)
        options.passes = "pipeline"; /* there is nothing to remark on otherwise */
    code = check_passes(&usage, options.passes);
    if (code >= 0)
        return code;
    struct job job = {.options = &options, .path = words.word[0]};
    if (options.cpu && options.target)
        return weft_tool_misused(&usage, "--cpu and --target are the same: one is enough");
    const char *const from = options.cpu ? "--cpu" : "--target";
    options.target = options.cpu ? options.cpu : options.target;
    if (options.target && !weft_opt_target(options.target, &job.target))
        return weft_tool_no_level(options.target, from);
    if (options.number > 0 && strcmp(job.path, "-") == 0)
        return weft_tool_misused(&usage, "--graph goes with a file");
    code = check_print(&usage, options.print);
    if (code < 0 && (options.passes || !is_planned(options.print)) && (options.constant_bytes || options.no_fuse))
        return weft_tool_misused(&usage, "%s goes with --print=plan, choices, c, stats or times, without --passes",
                                 options.no_fuse ? "--no-fuse" : "--constant-bytes");
    return code >= 0 ? code : run_job(&job);
}
