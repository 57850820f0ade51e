/* SPDX-License-Identifier: Apache-2.0 */
/* explain_measure.c: what units of a plan take, beside what they were predicted to take: `weft explain --measure`.
 *
 *     measured: 3 units in 132.1 us, the fastest of 20 runs; without clocks 134.0 us; inputs are random
 *       predictions: median error 12 %, 2 of 3 within 35 %
 *       measured us  predicted  measured/predicted  GFLOP/s   GB/s  kernel  value
 *              80.1       72.3                1.11    410.2   12.1  weft_conv_f32_direct__avx512  %c: f32[1,64,56,56]
 *
 * Predicted is the time of the choice that was taken (weft_plan_list_choices); copies, and what bodies and custom
 * functions compute, have none. Arithmetic and bytes are those of weft_plan_count_units. */
#include "tools/explain.h"
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>

enum { RUNS = 20 };
#define CLOSE 0.35 /* a prediction that is off by less ranks kernels well */

int explain_measure(const struct weft_model_options *options, struct weft_model *model,
                    struct weft_profile *ret_profile)
{
    *ret_profile = (struct weft_profile){0};
    int code = weft_model_prepare(options, model);
    if (code == WEFT_EXIT_OK && !weft_profile_measure(model, RUNS, ret_profile))
        code = WEFT_EXIT_FAILED;
    return code;
}

/* --- what there is to say ----------------------------------------------------------------------------------------- */

struct row {
    const char *kernel, *value, *type;
    struct weft_unit_counts counts;
    int64_t ns, predicted_ps; /* 0: not known */
};

static int64_t predicted_ps(const struct explain *e, const struct weft_step *step)
{
    if (!step->unit)
        return 0;
    const struct weft_choices *const list = weft_plan_list_choices(e->plan, &e->plan->units.unit[step->unit], e->arena);
    return list && list->count ? weft_plan_picked(e->plan, list)->ps : 0;
}

static struct row *list_rows(const struct explain *e, uint32_t *ret_rows)
{
    const struct weft_profile *const profile = e->measured;
    const struct weft_unit_counts *const unit =
        weft_plan_count_units((struct weft_plan *)e->plan, NULL, e->arena, ret_rows);
    struct row *const row = weft_new(e->arena, struct row, *ret_rows + 1);
    for (uint32_t i = 0; i < *ret_rows; i++) {
        const struct weft_step *const step = &e->plan->step[unit[i].step];
        const bool is_shown = unit[i].step < profile->steps;
        row[i] = (struct row){.kernel = is_shown ? profile->step[unit[i].step].kernel : "",
                              .value = weft_plan_step_name(e->plan, step),
                              .type = step->outs ? explain_type(e, e->to, step->out[0]) : "",
                              .counts = unit[i],
                              .predicted_ps = predicted_ps(e, step)};
        for (uint32_t k = unit[i].step; k < unit[i].step + unit[i].steps && k < profile->steps; k++)
            row[i].ns += profile->step[k].ns;
    }
    return row;
}

struct verdict {
    uint32_t predicted, close;
    double median; /* of the relative errors */
};

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct verdict judge(const struct explain *e, const struct row *row, uint32_t rows)
{
    double *const error = weft_new(e->arena, double, rows + 1);
    struct verdict v = {0};
    for (uint32_t i = 0; i < rows; i++)
        if (row[i].predicted_ps > 0 && row[i].ns > 0) {
            error[v.predicted] = fabs((double)row[i].predicted_ps * 1e-3 / (double)row[i].ns - 1);
            v.close += error[v.predicted] <= CLOSE;
            v.predicted++;
        }
    qsort(error, v.predicted, sizeof *error, by_size);
    v.median = v.predicted ? error[v.predicted / 2] : 0;
    return v;
}

/* --- text and JSON ------------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct row *const x = a, *const y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : (x->counts.step > y->counts.step) - (x->counts.step < y->counts.step);
}

void explain_measured_text(const struct explain *e, struct weft_text *text)
{
    uint32_t rows;
    struct row *const row = list_rows(e, &rows);
    const struct verdict v = judge(e, row, rows);
    int64_t sum = 0;
    for (uint32_t i = 0; i < rows; i++)
        sum += row[i].ns;
    qsort(row, rows, sizeof *row, by_time);
    weft_text_format(text, "measured: %u unit%s in %.1f us, the fastest of %d run%s; ", rows, weft_tool_plural(rows),
                     (double)sum * 1e-3, e->measured->runs, weft_tool_plural(e->measured->runs));
    weft_text_format(text, "without clocks %.1f us; inputs are random\n", e->measured->best_ms * 1e3);
    weft_text_format(text, "  predictions: median error %.0f %%, %u of %u within %.0f %%\n", 100 * v.median, v.close,
                     v.predicted, 100 * CLOSE);
    weft_text_add(text, "  measured us  predicted  measured/predicted  GFLOP/s    GB/s  kernel  value\n");
    for (uint32_t i = 0; i < rows; i++) {
        const double ns = row[i].ns > 0 ? (double)row[i].ns : 1;
        weft_text_format(text, "  %11.1f", ns * 1e-3);
        if (row[i].predicted_ps > 0)
            weft_text_format(text, "  %9.1f  %18.2f", (double)row[i].predicted_ps * 1e-6,
                             ns * 1e3 / (double)row[i].predicted_ps);
        else
            weft_text_format(text, "  %9s  %18s", "-", "-");
        weft_text_format(text, "  %7.1f %7.1f  %s  %%%s%s%s\n", (double)row[i].counts.flops / ns,
                         (double)(row[i].counts.read + row[i].counts.written) / ns, row[i].kernel, row[i].value,
                         row[i].type[0] ? ": " : "", row[i].type);
    }
}

void explain_measured_json(const struct explain *e, struct weft_text *text)
{
    uint32_t rows;
    const struct row *const row = list_rows(e, &rows);
    const struct verdict v = judge(e, row, rows);
    weft_text_format(text,
                     "{\"kind\":\"measured\",\"units\":%u,\"runs\":%d,\"whole_ns\":%.0f,\"predicted_units\":%u,"
                     "\"median_error\":%.4g,\"within_35_percent\":%u}\n",
                     rows, e->measured->runs, e->measured->best_ms * 1e6, v.predicted, v.median, v.close);
    for (uint32_t i = 0; i < rows; i++) {
        weft_text_add(text, "{\"kind\":\"unit\"");
        explain_json_pair(text, "value", row[i].value);
        explain_json_pair(text, "type", row[i].type);
        explain_json_pair(text, "kernel", row[i].kernel);
        weft_text_format(text, ",\"steps\":%u,\"measured_ns\":%lld,\"predicted_ps\":%lld", row[i].counts.steps,
                         (long long)row[i].ns, (long long)row[i].predicted_ps);
        weft_text_format(text, ",\"flops\":%lld,\"bytes_read\":%lld,\"bytes_written\":%lld}\n",
                         (long long)row[i].counts.flops, (long long)row[i].counts.read,
                         (long long)row[i].counts.written);
    }
}
