/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: weft run: compile a model, run it once, show or save or compare what comes out. */
#include "tools/tools.h"

#include "runtime/runtime.h"
#include "tools/npy.h"

#include <inttypes.h>
#include <math.h>

/* One line: type, smallest, mean, largest. */
static void show_output(size_t i, const char *name, const struct weft_tensor *tensor)
{
    int64_t elements = 1, nans = 0, index[WEFT_MAX_RANK] = {0};
    printf("output %zu  %s %s[", i, name, weft_dtype_name(tensor->dtype));
    for (int axis = 0; axis < tensor->rank; axis++) {
        elements *= tensor->extent[axis];
        printf("%s%" PRId64, axis ? "," : "", tensor->extent[axis]);
    }
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t e = 0; e < elements; e++) {
        int64_t place = 0;
        for (int axis = 0; axis < tensor->rank; axis++)
            place += index[axis] * tensor->stride[axis];
        const double x = weft_load_real(tensor->dtype, tensor->data, place);
        low = fmin(low, x);
        high = fmax(high, x);
        nans += isnan(x);
        sum += isnan(x) ? 0 : x;
        for (int axis = tensor->rank - 1; axis >= 0 && ++index[axis] == tensor->extent[axis]; axis--)
            index[axis] = 0;
    }
    if (elements > nans)
        printf("]  from %.6g to %.6g, mean %.6g", low, high, sum / (double)(elements - nans));
    else
        printf(elements ? "]  no number" : "]  empty");
    if (nans)
        printf(", %" PRId64 " of %" PRId64 " are NaN", nans, elements);
    putchar('\n');
}

static bool save(const char *what, size_t i, const struct weft_tensor *tensor, const char *folder)
{
    char path[4096], message[WEFT_NPY_MESSAGE];
    snprintf(path, sizeof path, "%s/%s_%zu.npy", folder, what, i);
    if (weft_npy_save(path, tensor, message))
        return true;
    fprintf(stderr, "weft: %s: %s\n", path, message);
    return false;
}

static bool check_output(const struct weft_model *model, size_t i, const char *folder)
{
    struct weft_comparison c;
    if (!weft_tool_compare_file(model, i, folder, &c)) {
        printf("          WRONG: cannot be compared\n");
        return false;
    }
    printf("          %s: max abs error %.3g, max rel error %.3g, bound %.3g", c.same ? "agrees" : "WRONG", c.max_abs,
           c.max_rel, c.bound);
    if (c.nans)
        printf(", NaN or infinity on one side in %" PRId64 " of %" PRId64 " elements", c.nans, c.elements);
    printf("\n");
    return c.same;
}

/* Compares each output before it is written, so that what is written cannot be what it is compared with. */
static bool keep_inputs(const struct weft_model *model, const char *folder)
{
    bool ok = true;
    for (size_t i = 0; i < model->inputs; i++)
        ok = save("input", i, &model->input[i], folder) && ok;
    return ok;
}

static bool handle_outputs(const struct weft_model *model, const char *folder, const char *check)
{
    bool ok = true;
    for (size_t i = 0; i < model->outputs; i++) {
        struct weft_tensor tensor;
        if (weft_output(model->execution, i, &tensor) < 0) {
            fprintf(stderr, "weft: output %zu: %s\n", i, weft_execution_error(model->execution));
            return false;
        }
        show_output(i, model->plan->label[weft_plan_graph(model->plan)->ret[i].value.id], &tensor);
        ok = (!check || check_output(model, i, check)) && ok;
        ok = (!folder || save("output", i, &tensor, folder)) && ok;
    }
    return ok;
}

static void show_model(const struct weft_model *model, const char *path)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    char arena[32], constants[32], copied[32];
    printf("model     %s: %zu input%s, %zu output%s\n", path, model->inputs,
           weft_tool_plural((int64_t)model->inputs), model->outputs, weft_tool_plural((int64_t)model->outputs));
    if (weft_execution_statistics(model->execution, &statistics) == WEFT_OK)
        printf("plan      %d kernel%s (%d by the reference evaluator, %d relayout%s), arena %s, packed constants %s, "
               "copied %s, %d thread%s\n",
               (int)statistics.kernels, weft_tool_plural(statistics.kernels), (int)statistics.fallbacks,
               (int)statistics.relayouts, weft_tool_plural(statistics.relayouts),
               weft_tool_bytes((double)statistics.arena_bytes, arena),
               weft_tool_bytes((double)statistics.constant_bytes, constants),
               weft_tool_bytes((double)statistics.copied_bytes, copied), (int)statistics.workers,
               weft_tool_plural(statistics.workers));
    for (size_t i = 0; i < model->inputs; i++) {
        struct weft_port port = {.size = sizeof port};
        char extents[128];
        if (weft_plan_input(model->plan, i, &port) == WEFT_OK)
            printf("input %zu   %s %s%s%s\n", i, port.name, port.text, weft_model_extents(model, i, extents),
                   model->random ? "  random, seed fixed" : "");
    }
}

/* Runs once; with `kernels`, or a file for a trace, again under a clock. */
static bool run_model(struct weft_model *model, const char *path, bool kernels, const char *trace)
{
    const double before = weft_tool_now_ms();
    if (weft_tool_run(model->execution) < 0) {
        weft_tool_run_failed(model->execution);
        return false;
    }
    const double first = weft_tool_now_ms() - before;
    show_model(model, path);
    printf("time      load %.1f ms, compile %.1f ms, first run %.2f ms\n", model->load_ms, model->compile_ms, first);
    if (!kernels && !trace)
        return true;
    struct weft_profile profile;
    bool ok = weft_profile_measure(model, 20, &profile);
    if (ok && trace)
        ok = weft_trace_write(model, &profile, trace);
    if (ok && kernels) {
        weft_profile_print(model, &profile, stdout);
        weft_profile_print_plain(model, &profile, stdout);
    }
    weft_profile_close(&profile);
    return ok && weft_model_run_afresh(model);
}

/* The same plan and execution on the inputs of further folders. */
static bool check_further(struct weft_model_options *options, struct weft_model *model,
                          const struct weft_words *folders)
{
    bool ok = true;
    for (int i = 1; i < folders->count; i++) {
        options->folder = folders->word[i];
        printf("folder    %s\n", options->folder);
        ok = weft_model_make_inputs(options, model) == WEFT_EXIT_OK && weft_model_run_afresh(model) &&
             handle_outputs(model, NULL, options->folder) && ok;
    }
    return ok;
}

int weft_cmd_run(int argc, char **argv)
{
    struct weft_model_options options = {0};
    struct weft_words checks = {0};
    const char *folder = NULL, *trace = NULL;
    bool kernels = false, keep = false;
    const struct weft_option table[] = {
        WEFT_MODEL_OPTIONS(&options),
        {"-o", WEFT_OPTION_WORD, &folder, "DIR", "write output_N.npy to this folder"},
        {"--keep-inputs", WEFT_OPTION_FLAG, &keep, NULL, "with -o: write input_N.npy too, so that --check finds them"},
        {"--check", WEFT_OPTION_WORDS, &checks, "DIR", "compare with output_N.npy; inputs: -i, or input_N.npy there"},
        {"--kernels", WEFT_OPTION_FLAG, &kernels, NULL, "also show the time of each kernel"},
        {"--trace", WEFT_OPTION_WORD, &trace, "F.json",
         "also write passes, steps and memory as a timeline for chrome://tracing or ui.perfetto.dev"},
        {0},
    };
    const struct weft_usage usage = {
        "weft run MODEL [options]",
        "Compiles a model (ONNX or weft text) and runs it once. With --check the exit code says whether all outputs\n"
        "agree within an error bound that follows from the lengths of the model's sums and its types; integers must\n"
        "be equal. Several --check run one plan on the inputs of each folder, which may have other sizes. --kernels\n"
        "shows the fastest of 20 runs, or of as many as fit into two seconds. Steps in plain kernels (weft_…__ref)\n"
        "or in the reference evaluator are listed one by one, with their share of the time.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &options);
    if (code >= 0)
        return code;
    const char *check = checks.count ? checks.word[0] : NULL;
    if (checks.count > 1 && (folder || options.inputs.count))
        return weft_tool_misused(&usage, "several --check go with neither -i nor -o: each folder has its inputs");
    if (folder && check && weft_tool_same_file(folder, check))
        return weft_tool_misused(&usage, "-o and --check name one folder: the expected outputs would be overwritten");
    if (keep && !folder)
        return weft_tool_misused(&usage, "--keep-inputs goes with -o DIR");
    if (folder && !weft_tool_folder(folder))
        return WEFT_EXIT_FAILED;
    options.path = words.word[0];
    options.folder = check;
    struct weft_model model;
    code = weft_model_open(&options, &model);
    bool ok = code == WEFT_EXIT_OK && run_model(&model, options.path, kernels, trace);
    if (ok && checks.count > 1)
        printf("folder    %s\n", check);
    ok = ok && (!keep || keep_inputs(&model, folder)) && handle_outputs(&model, folder, check);
    if (code == WEFT_EXIT_OK && !ok)
        code = WEFT_EXIT_FAILED;
    if (code == WEFT_EXIT_OK && !check_further(&options, &model, &checks))
        code = WEFT_EXIT_FAILED;
    weft_model_close(&model);
    return code;
}
