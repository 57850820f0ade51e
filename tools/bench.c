/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c: weft bench: what a model costs, as one line.
 *
 *   load, compile, create   once: ready_ms, compile_ms
 *   first run               first_ms, with the page faults of fresh memory
 *   compiled code           waited for, since it is what later runs have: compile_ms
 *   runs                    until the time is used up: median_ms, min_ms
 *   runs under a clock      fallback_pct, plain_pct, relayout_pct
 *   peak memory             from the kernel's high-water mark, before anything below disturbs it
 *   without groups          a plan of the same model with --no-fuse, half as long: unfused_ms, unfused_min_ms
 *   comparison              with expected outputs, or with the reference evaluator: max_abs_err, agrees */
#include "tools/bench.h"

#include "ir/ir.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOISY_PCT = 20 };

struct figures {
    char inputs[400];             /* with the extents that the model leaves open; "" where it leaves none */
    struct weft_bench_runs runs;
    double throughput;            /* runs a second of `executions` side by side; 0: not measured */
    int executions;
    double ready_ms, compile_ms, first_ms, peak_rss_mb, weights_mb, arena_mb;
    double fallback_pct, plain_pct, relayout_pct;
    struct weft_bench_runs unfused; /* without groups; no runs: not measured */
    int32_t groups, compiled;
    char uncompiled[200];         /* why not all groups are, or empty */
    struct weft_comparison worst; /* of the outputs, if they were compared */
    bool compared;
    int kernels, threads;
};

static bool measure_shares(struct weft_model *model, struct figures *figures)
{
    struct weft_profile profile;
    const bool ok = weft_profile_measure(model, 3, &profile);
    weft_profile_close(&profile);
    struct weft_statistics statistics = {.size = sizeof statistics};
    if (!ok || weft_execution_statistics(model->execution, &statistics) < 0)
        return false;
    const double total = statistics.total_ns > 0 ? (double)statistics.total_ns : 1;
    figures->fallback_pct = 100 * (double)statistics.fallback_ns / total;
    figures->plain_pct = 100 * (double)statistics.plain_ns / total;
    figures->relayout_pct = 100 * (double)statistics.relayout_ns / total;
    figures->arena_mb = (double)statistics.arena_bytes * 1e-6;
    figures->kernels = statistics.kernels;
    figures->threads = statistics.workers;
    return true;
}

/* The high-water mark of this process's memory; getrusage would include the parent's before exec. */
static double peak_memory_mb(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double kilobytes = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lf", &kilobytes) == 1)
            break;
    if (status)
        fclose(status);
    return kilobytes * 1024e-6;
}

/* Bytes of the constants that the file holds, in bodies too. */
static double weight_bytes(const struct weft_graph *graph)
{
    double bytes = 0;
    weft_foreach_node(graph, n)
        if (weft_opcode_of(graph, n) == WEFT_OP_const && weft_const_data(graph, weft_result(graph, n, 0))) {
            const struct weft_type *type = weft_type_of(graph, weft_result(graph, n, 0));
            bytes += (double)weft_dtype_bytes(type->dtype, weft_dim_value(weft_type_elements(graph->dims, type)));
        }
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        bytes += weight_bytes(graph->body[i]);
    return bytes;
}

/* Keeps the worst output: wrong ones before right ones, then by their share of the bound. */
static void keep_worst(struct figures *figures, const struct weft_comparison *c)
{
    const struct weft_comparison *worst = &figures->worst;
    const double share = c->bound > 0 ? c->max_rel / c->bound : c->max_rel;
    const double worst_share = worst->bound > 0 ? worst->max_rel / worst->bound : worst->max_rel;
    const double max_abs = fmax(worst->max_abs, c->max_abs);
    if (!figures->compared || (worst->same && !c->same) || (worst->same == c->same && share > worst_share))
        figures->worst = *c;
    figures->worst.max_abs = max_abs;
    figures->compared = true;
}

static bool compare_with_files(const struct weft_model *model, const char *folder, struct figures *figures)
{
    struct weft_comparison c;
    for (size_t i = 0; i < model->outputs; i++) {
        if (!weft_tool_compare_file(model, i, folder, &c))
            return false;
        keep_worst(figures, &c);
    }
    return true;
}

static bool compare_with_reference(const struct weft_model *model, struct figures *figures)
{
    struct weft_tensor *want = calloc(model->outputs + 1, sizeof *want);
    bool ok = want && weft_evaluate(model->graph, model->input, model->inputs, want, model->outputs) >= 0;
    struct weft_comparison c;
    for (size_t i = 0; ok && i < model->outputs; i++) {
        ok = weft_tool_compare_output(model, i, &want[i], &c);
        if (ok)
            keep_worst(figures, &c);
    }
    for (size_t i = 0; want && i < model->outputs; i++)
        weft_tensor_free(model->context, &want[i]);
    free(want);
    return ok;
}

/* Other work on the machine only ever adds time: a median far from the best is no figure of the model. */
static bool is_noisy(const struct weft_bench_runs *runs)
{
    return runs->spread_pct > NOISY_PCT || runs->median_ms > (1 + NOISY_PCT / 100.0) * runs->min_ms;
}

/* JSON has no infinity. */
static void print_number(bool known, double number)
{
    if (known && isfinite(number))
        printf("%.4g", number);
    else
        printf("null");
}

static void print_unfused_json(const struct weft_bench_runs *unfused)
{
    printf(", \"unfused_ms\": ");
    print_number(unfused->runs, unfused->median_ms);
    printf(", \"unfused_min_ms\": ");
    print_number(unfused->runs, unfused->min_ms);
    printf(", \"unfused_spread_pct\": ");
    print_number(unfused->runs, unfused->spread_pct);
    printf(", \"unfused_noisy\": %s", !unfused->runs ? "null" : is_noisy(unfused) ? "true" : "false");
}

static void print_json(const struct figures *f, const char *path)
{
    printf("{\"model\": ");
    weft_json_write_string(stdout, path);
    printf(", \"median_ms\": %.4f, \"min_ms\": %.4f, \"p90_ms\": %.4f, \"p99_ms\": %.4f, \"spread_pct\": %.1f, "
           "\"noisy\": %s, \"runs\": %d, \"ready_ms\": %.2f, \"compile_ms\": %.2f, \"first_ms\": %.3f, "
           "\"peak_rss_mb\": %.1f, \"weights_mb\": %.2f, \"arena_mb\": %.2f, \"max_abs_err\": ",
           f->runs.median_ms, f->runs.min_ms, f->runs.p90_ms, f->runs.p99_ms, f->runs.spread_pct,
           is_noisy(&f->runs) ? "true" : "false", f->runs.runs, f->ready_ms, f->compile_ms, f->first_ms,
           f->peak_rss_mb, f->weights_mb, f->arena_mb);
    print_number(f->compared, f->worst.max_abs);
    printf(", \"max_rel_err\": ");
    print_number(f->compared, f->worst.max_rel);
    printf(", \"bound\": ");
    print_number(f->compared, f->worst.bound);
    printf(", \"agrees\": %s", !f->compared ? "null" : f->worst.same ? "true" : "false");
    printf(", \"executions\": ");
    print_number(f->throughput > 0, f->executions);
    printf(", \"throughput\": ");
    print_number(f->throughput > 0, f->throughput);
    print_unfused_json(&f->unfused);
    printf(", \"groups\": %d, \"compiled\": %d", f->groups, f->compiled);
    printf(", \"fallback_pct\": %.1f, \"plain_pct\": %.1f, \"relayout_pct\": %.1f, ",
           f->fallback_pct, f->plain_pct, f->relayout_pct);
    printf("\"kernels\": %d, \"threads\": %d}\n", f->kernels, f->threads);
}

static void print_noise(const struct weft_bench_runs *runs)
{
    if (is_noisy(runs))
        printf("  noisy: half of the runs span %.0f %% of the median, which is %.1f times the best; compare the best,\n"
               "  or measure again when the machine has nothing else to do\n", runs->spread_pct,
               runs->median_ms / fmax(runs->min_ms, 1e-9));
}

/* The inputs whose extents the model leaves open, as they are measured. */
static void note_inputs(const struct weft_model *model, struct figures *f)
{
    size_t length = 0;
    for (size_t i = 0; i < model->inputs; i++) {
        struct weft_port port = {.size = sizeof port};
        char extents[128];
        if (*weft_model_extents(model, i, extents) && weft_plan_input(model->plan, i, &port) == WEFT_OK &&
            length + strlen(port.name) + strlen(extents) + 4 < sizeof f->inputs)
            length += (size_t)snprintf(f->inputs + length, sizeof f->inputs - length, "%s%s%s", length ? "; " : "",
                                       port.name, extents);
    }
}

static void print_lines(const struct figures *f, const char *path)
{
    printf("%s: %d kernel%s on %d thread%s\n", path, f->kernels, weft_tool_plural(f->kernels), f->threads,
           weft_tool_plural(f->threads));
    if (*f->inputs)
        printf("  with %s\n", f->inputs);
    const struct weft_bench_runs *const runs = &f->runs;
    printf("  %.3f ms median of %d run%s, %.3f ms at best, %.3f ms the first time\n", runs->median_ms, runs->runs,
           weft_tool_plural(runs->runs), runs->min_ms, f->first_ms);
    printf("  %.3f ms for 90 %% of the runs, %.3f ms for 99 %%\n", runs->p90_ms, runs->p99_ms);
    if (f->throughput > 0)
        printf("  %.1f runs a second of %d executions side by side; of one alone %.1f\n", f->throughput, f->executions,
               1e3 / fmax(runs->median_ms, 1e-9));
    print_noise(runs);
    printf("  ready after %.1f ms; %.1f MB of memory at most; %.2f MB of weights, %.2f MB of intermediates\n",
           f->ready_ms, f->peak_rss_mb, f->weights_mb, f->arena_mb);
    if (f->groups)
        printf("  %d group%s of nodes, %d of them compiled, %.1f ms after the start%s%s\n", f->groups,
               weft_tool_plural(f->groups), f->compiled, f->compile_ms, f->uncompiled[0] ? "; others: " : "",
               f->uncompiled);
    if (f->unfused.runs) {
        printf("  without groups %.3f ms median of %d run%s, %.3f ms at best\n", f->unfused.median_ms, f->unfused.runs,
               weft_tool_plural(f->unfused.runs), f->unfused.min_ms);
        print_noise(&f->unfused);
    }
    printf("  %.1f %% of the time in the reference evaluator, %.1f %% in plain kernels, %.1f %% moving elements\n",
           f->fallback_pct, f->plain_pct, f->relayout_pct);
    const struct weft_comparison *c = &f->worst;
    if (f->compared)
        printf("  %s: max abs error %.3g, max rel error %.3g, bound %.3g\n", c->same ? "agrees" : "WRONG", c->max_abs,
               c->max_rel, c->bound);
    if (f->compared && c->nans)
        printf("  NaN or infinity on one side in %" PRId64 " of %" PRId64 " elements\n", c->nans, c->elements);
}

/* The compiler's time counts from the start, but for the first run, which is not waited for. */
static bool wait_for_code(struct weft_model *model, struct figures *figures)
{
    const double before = weft_tool_now_ms();
    const char *why = NULL;
    weft_tool_progress("compiling groups", 0);
    const bool ok = weft_plan_wait(model->plan) >= 0;
    figures->compile_ms = figures->ready_ms + weft_tool_now_ms() - before;
    weft_plan_compiled(model->plan, &figures->compiled, &figures->groups, &why);
    snprintf(figures->uncompiled, sizeof figures->uncompiled, "%s", why ? why : "");
    if (!ok)
        fprintf(stderr, "weft: out of memory while groups were compiled\n");
    return ok;
}

static bool measure_unfused(const struct weft_model_options *options, const struct weft_bench_length *length,
                            struct figures *figures)
{
    struct weft_model_options unfused = *options;
    struct weft_model model;
    struct weft_bench_length half = *length;
    half.seconds /= 2;
    unfused.no_fuse = true;
    weft_tool_progress("without groups", 0);
    const bool ok =
        weft_model_open(&unfused, &model) == WEFT_EXIT_OK && weft_bench_runs(&model, &half, &figures->unfused);
    weft_model_close(&model);
    return ok;
}

static bool measure(const struct weft_model_options *options, struct weft_model *model, const char *check, bool verify,
                    const struct weft_bench_length *length, struct figures *figures)
{
    figures->ready_ms = model->load_ms + model->compile_ms + model->create_ms;
    const double before = weft_tool_now_ms();
    if (weft_tool_run(model->execution) < 0) {
        weft_tool_run_failed(model->execution);
        return false;
    }
    figures->first_ms = weft_tool_now_ms() - before;
    if (!wait_for_code(model, figures) || !weft_bench_runs(model, length, &figures->runs))
        return false;
    if (weft_tool_is_interrupted()) { /* what was measured until then is said, and no more */
        figures->executions = 0;
        figures->peak_rss_mb = peak_memory_mb();
        figures->weights_mb = weight_bytes(model->graph) * 1e-6;
        return true;
    }
    if (!measure_shares(model, figures))
        return false;
    if (figures->executions)
        weft_tool_progress("side by side", 0);
    if (figures->executions && !weft_bench_throughput(model, figures->executions, fmax(length->seconds, 0.1),
                                                      &figures->throughput))
        return false;
    figures->peak_rss_mb = peak_memory_mb();
    figures->weights_mb = weight_bytes(model->graph) * 1e-6;
    if (figures->groups && !measure_unfused(options, length, figures))
        return false;
    if (!check && !verify)
        return true;
    if (!weft_model_run_afresh(model))
        return false;
    if (check)
        return compare_with_files(model, check, figures);
    weft_tool_progress("comparing with the reference evaluator", 0);
    return compare_with_reference(model, figures);
}

/* For who watches and sees JSON, or does not read on. */
static void warn_of_noise(const struct weft_bench_runs *runs, const char *whose)
{
    if (isatty(STDERR_FILENO) && runs->median_ms > 2 * runs->min_ms)
        fprintf(stderr, "weft bench: the median%s is %.1f times the best: the machine is busy with other things\n",
                whose, runs->median_ms / runs->min_ms);
}

int weft_cmd_bench(int argc, char **argv)
{
    struct weft_model_options options = {0};
    const char *check = NULL;
    struct weft_bench_length length = {.seconds = 2, .warmup = 2};
    struct figures figures = {0};
    bool json = false, no_verify = false;
    const struct weft_option table[] = {
        WEFT_MODEL_OPTIONS(&options),
        {"--check", WEFT_OPTION_WORD, &check, "DIR", "inputs and expected outputs are input_N.npy, output_N.npy there"},
        {"--no-verify", WEFT_OPTION_FLAG, &no_verify, NULL, "do not compare with the slow reference evaluator"},
        {"--seconds", WEFT_OPTION_REAL, &length.seconds, "S", "how long to measure (2)"},
        {"--iterations", WEFT_OPTION_COUNT, &length.iterations, "N", "measure so many runs instead"},
        {"--warmup", WEFT_OPTION_NUMBER, &length.warmup, "N", "runs before those that count (2)"},
        {"--executions", WEFT_OPTION_COUNT, &figures.executions, "N",
         "also count the runs a second of so many executions side by side, each on a thread of its own"},
        {"--json", WEFT_OPTION_FLAG, &json, NULL, "one line of JSON"},
        {0},
    };
    const struct weft_usage usage = {
        "weft bench MODEL [options]",
        "Measures a model. The line of JSON has: median_ms and min_ms of a run, p90_ms and p99_ms, which so many\n"
        "per cent of the runs do not exceed, spread_pct between the quartiles in percent of the median, noisy,\n"
        "whether that or the median's distance from min_ms is above 20 %, and runs, how many there were;\n"
        "unfused_ms, the median with --no-fuse, unfused_min_ms, unfused_spread_pct and unfused_noisy, the same of\n"
        "these runs, which come behind the others and last half as long, all null where there are no groups;\n"
        "executions and throughput, the runs a second of these side by side, null without --executions;\n"
        "ready_ms from the start of loading to the first runnable state; compile_ms from the same start to the\n"
        "last kernel in place; first_ms of the first run; peak_rss_mb of the process; weights_mb in the file;\n"
        "arena_mb of intermediates; max_abs_err and max_rel_err against the expected outputs, else against the\n"
        "reference evaluator, the bound of the latter and whether it agrees, all null with --no-verify; groups of\n"
        "nodes, and how many are compiled; of the time of one run fallback_pct in the reference evaluator,\n"
        "plain_pct in plain kernels (weft_…__ref: weft run --kernels lists the steps), relayout_pct in steps that\n"
        "only move elements (changes of layout, and copies as of concat or flip); kernels; threads. Other work on\n"
        "the machine adds to all times. Nothing says so of those that are measured once: throughput, ready_ms,\n"
        "compile_ms, first_ms, and the shares; measure them several times and take the best. What does not agree\n"
        "fails.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &options);
    if (code >= 0)
        return code;
    options.path = words.word[0];
    options.folder = check;
    struct weft_model model;
    weft_tool_progress("compiling", 0);
    code = weft_model_open(&options, &model);
    if (code == WEFT_EXIT_OK && !measure(&options, &model, check, !no_verify, &length, &figures))
        code = WEFT_EXIT_FAILED;
    if (code == WEFT_EXIT_OK)
        note_inputs(&model, &figures);
    weft_tool_progress(NULL, 0);
    weft_model_close(&model);
    if (code != WEFT_EXIT_OK)
        return code;
    if (weft_tool_is_interrupted())
        fprintf(stderr, "weft: interrupted after %d run%s\n", figures.runs.runs, weft_tool_plural(figures.runs.runs));
    warn_of_noise(&figures.runs, "");
    warn_of_noise(&figures.unfused, " without groups");
    if (json)
        print_json(&figures, options.path);
    else
        print_lines(&figures, options.path);
    return figures.compared && !figures.worst.same ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}
