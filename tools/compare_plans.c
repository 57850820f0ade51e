/* SPDX-License-Identifier: Apache-2.0 */
/* compare_plans.c: weft diff: two models or texts, plan beside plan: the lines that differ, what either takes, and
 * with --time what each kernel takes in both.
 *
 *                       first       second
 *     kernels              57           49
 *     arena            2.4 MB       1.2 MB
 *     ms               12.310       10.020  0.81
 *     count        ms   count        ms   kernel, the largest change first
 *        12     4.310       4     1.020   weft_gemm_f32_6x16__avx2 */
#include "tools/golden.h"
#include "tools/tools.h"

#include "runtime/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct side {
    struct weft_model_options options;
    struct weft_model model;
    struct weft_profile profile;
    char *text;
};

static int open_side(struct side *side, bool time)
{
    struct weft_model *const m = &side->model;
    int code = weft_model_open(&side->options, m);
    if (code == WEFT_EXIT_OK && weft_plan_print(m->plan, &side->text) < 0)
        code = WEFT_EXIT_FAILED;
    if (code == WEFT_EXIT_OK && weft_tool_run(m->execution) < 0) {
        weft_tool_run_failed(m->execution);
        code = WEFT_EXIT_FAILED;
    }
    if (code == WEFT_EXIT_OK && time && !weft_profile_measure(m, 20, &side->profile))
        code = WEFT_EXIT_FAILED;
    return code;
}

static void close_side(struct side *side)
{
    weft_free_text(side->model.context, side->text);
    weft_profile_close(&side->profile);
    weft_model_close(&side->model);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* What a kernel takes on either side. */
struct row {
    const char *kernel;
    int count[2];
    int64_t ns[2];
};

static struct row *find_row(struct row *row, size_t *rows, const char *kernel)
{
    size_t i = 0;
    while (i < *rows && strcmp(row[i].kernel, kernel) != 0)
        i++;
    if (i == *rows)
        row[(*rows)++] = (struct row){.kernel = kernel};
    return &row[i];
}

/* By what is gained or lost. */
static int by_change(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const int64_t p = llabs(x->ns[1] - x->ns[0]), q = llabs(y->ns[1] - y->ns[0]);
    return p != q ? (p < q) - (p > q) : strcmp(x->kernel, y->kernel);
}

static void print_kernels(const struct side *side)
{
    struct row *const row = calloc(side[0].profile.steps + side[1].profile.steps + 1, sizeof *row);
    size_t rows = 0;
    for (int k = 0; row && k < 2; k++)
        for (size_t i = 0; i < side[k].profile.steps; i++) {
            struct row *const of = find_row(row, &rows, side[k].profile.step[i].kernel);
            of->count[k]++;
            of->ns[k] += side[k].profile.step[i].ns;
        }
    qsort(row, rows, sizeof *row, by_change);
    printf("    %5s %9s   %5s %9s   kernel, the largest change first\n", "count", "ms", "count", "ms");
    for (size_t i = 0; i < rows; i++)
        printf("    %5d %9.3f   %5d %9.3f   %s\n", row[i].count[0], (double)row[i].ns[0] * 1e-6, row[i].count[1],
               (double)row[i].ns[1] * 1e-6, row[i].kernel);
    free(row);
}

static void print_figures(const struct side *side, bool time)
{
    struct weft_statistics s[2];
    char bytes[2][2][32];
    for (int k = 0; k < 2; k++) {
        s[k] = (struct weft_statistics){.size = sizeof s[k]};
        if (weft_execution_statistics(side[k].model.execution, &s[k]) < 0)
            return;
        weft_tool_bytes((double)s[k].arena_bytes, bytes[0][k]);
        weft_tool_bytes((double)s[k].constant_bytes, bytes[1][k]);
    }
    printf("              %12s %12s\n", "first", "second");
    printf("    kernels   %12d %12d\n", (int)s[0].kernels, (int)s[1].kernels);
    printf("    relayouts %12d %12d\n", (int)s[0].relayouts, (int)s[1].relayouts);
    printf("    arena     %12s %12s\n", bytes[0][0], bytes[0][1]);
    printf("    constants %12s %12s\n", bytes[1][0], bytes[1][1]);
    if (!time)
        return;
    printf("    ms        %12.3f %12.3f  %.2f\n", side[0].profile.best_ms, side[1].profile.best_ms,
           side[1].profile.best_ms / fmax(side[0].profile.best_ms, 1e-9));
    print_kernels(side);
}

int weft_cmd_diff(int argc, char **argv)
{
    struct side side[2] = {0};
    bool time = false, unfused = false;
    const struct weft_option table[] = {
        {"--unfused", WEFT_OPTION_FLAG, &unfused, NULL, "of one MODEL: its plan, and its plan with --no-fuse"},
        {"--time", WEFT_OPTION_FLAG, &time, NULL, "run both and show what each kernel takes: the fastest of 20 runs"},
        WEFT_MODEL_OPTIONS(&side[0].options),
        {0},
    };
    const struct weft_usage usage = {
        "weft diff FIRST SECOND [options], weft diff --unfused MODEL [options]",
        "Compares the plans of two models or texts: the lines that differ, kernels, relayouts and memory, and with\n"
        "--time what they take. Exits with 0 if the plans are equal, with 1 if they differ.",
        table, WEFT_TOOL_MODEL, 2};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &side[0].options);
    if (code < 0 && words.count != (unfused ? 1 : 2))
        code = weft_tool_misused(&usage, unfused ? "--unfused takes one model"
                                                 : "a second model is missing, or --unfused");
    if (code >= 0)
        return code;
    side[1].options = side[0].options;
    side[1].options.no_fuse |= unfused;
    const char *const name[2] = {words.word[0], unfused ? "without groups" : words.word[1]};
    code = WEFT_EXIT_OK;
    for (int k = 0; k < 2 && code == WEFT_EXIT_OK; k++) {
        side[k].options.path = words.word[unfused ? 0 : k];
        weft_tool_progress(name[k], 0);
        code = open_side(&side[k], time);
    }
    weft_tool_progress(NULL, 0);
    if (code == WEFT_EXIT_OK) {
        const bool same = strcmp(side[0].text, side[1].text) == 0;
        if (!same)
            weft_diff_print(side[0].text, side[1].text, name[0], name[1], 1);
        print_figures(side, time);
        code = same ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
    }
    for (int k = 0; k < 2; k++)
        close_side(&side[k]);
    return code;
}
