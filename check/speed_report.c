/* SPDX-License-Identifier: Apache-2.0 */
/* speed_report.c: what weft-check --bench prints: a line for each case and number of threads, then for each group the
 * geometric mean and the worst of each ratio, with the name of the case that it belongs to; on the right of it the same
 * of the fastest samples. With --json an object a line, of cases and of summaries. */
#include "check/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH = 40, KERNEL_WIDTH = 36 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double speed_median(double *x, int n)
{
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void print_head(const struct speed_report *report)
{
    fprintf(report->out, "%-*s %7s %-*s %12s %10s %-7s", NAME_WIDTH, "case", "threads", KERNEL_WIDTH, "kernel", "us",
            "rate", "");
    for (int i = 0; i < report->columns; i++)
        fprintf(report->out, " %9s", report->column[i]);
    fputs("  limit\n", report->out);
}

static void print_result(const struct speed_report *report, const struct speed_result *r)
{
    fprintf(report->out, "%-*s %7d %-*s %12.2f %10.1f %-7s", NAME_WIDTH, r->c->name, r->threads, KERNEL_WIDTH,
            r->kernel, r->ns / 1e3, r->rate, r->unit);
    for (int i = 0; i < report->columns; i++)
        if (isnan(r->ratio[i]))
            fprintf(report->out, " %9s", "-");
        else if (i == 0)
            fprintf(report->out, " %7.1f %%", 100 * r->ratio[0]);
        else
            fprintf(report->out, " %8.2fx", r->ratio[i]);
    fprintf(report->out, "  %s%s%s%s\n", r->limit, r->noise > 0.1 ? ", noisy" : "",
            r->differs ? ", ANOTHER RESULT: " : "", r->differs ? r->differs : "");
}

static void print_json(const struct speed_report *report, const struct speed_result *r)
{
    fprintf(report->out,
            "{\"family\": \"%s\", \"group\": \"%s\", \"case\": \"%s\", \"threads\": %d, \"kernel\": \"%s\", "
            "\"us\": %.4f, \"least_us\": %.4f, \"rate\": %.3f, \"unit\": \"%s\", \"bound\": \"%s\", \"noise\": %.4f, "
            "\"rounds\": %d, \"differs\": \"%s\"",
            r->c->family->name, r->c->group, r->c->name, r->threads, r->kernel, r->ns / 1e3, r->least_ns / 1e3, r->rate,
            r->unit, r->limit, r->noise, r->rounds, r->differs ? r->differs : "");
    for (int i = 0; i < report->columns; i++)
        if (!isnan(r->ratio[i]))
            fprintf(report->out, ", \"%s\": %.4f, \"least_%s\": %.4f", report->column[i], r->ratio[i],
                    report->column[i], r->least[i]);
    fputs("}\n", report->out);
}

void speed_report_add(struct speed_report *report, const struct speed_result *result)
{
    if (report->count == report->capacity) {
        report->capacity = report->capacity ? 2 * report->capacity : 64;
        report->results = realloc(report->results, (size_t)report->capacity * sizeof *report->results);
        if (!report->results) {
            fputs("weft-check: out of memory\n", stderr);
            exit(1);
        }
    }
    const struct speed_result *const last = report->count ? &report->results[report->count - 1] : NULL;
    if (report->json) {
        print_json(report, result);
    } else {
        if (!last)
            print_head(report);
        if (!last || strcmp(last->c->group, result->c->group) != 0)
            fprintf(report->out, "-- %s\n", result->c->group);
        print_result(report, result);
    }
    fflush(report->out);
    report->results[report->count++] = *result;
}

void speed_report_skip(struct speed_report *report, const struct weft_case *c, const char *why)
{
    report->skipped++;
    if (report->json)
        fprintf(report->out, "{\"family\": \"%s\", \"group\": \"%s\", \"case\": \"%s\", \"skipped\": \"%s\"}\n",
                c->family->name, c->group, c->name, why);
    else
        fprintf(report->out, "%-*s skipped: %s\n", NAME_WIDTH, c->name, why);
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

/* Of one ratio over the cases of a group. */
struct summary {
    int cases;
    double log_sum, worst;
    const char *whose;
};

static void add_up(struct summary *s, double ratio, const char *whose)
{
    if (isnan(ratio) || ratio <= 0)
        return;
    if (s->cases++ == 0 || ratio < s->worst)
        s->worst = ratio, s->whose = whose;
    s->log_sum += log(ratio);
}

static double mean_of(const struct summary *s) { return exp(s->log_sum / s->cases); }

static void print_summary(const struct speed_report *report, int column, const struct speed_result *first,
                          const struct summary *median, const struct summary *least)
{
    const double scale = column == 0 ? 100 : 1;
    const char *const unit = column == 0 ? "%" : "x", *const name = report->column[column];
    if (report->json)
        fprintf(report->out,
                "{\"summary\": \"%s\", \"threads\": %d, \"against\": \"%s\", \"cases\": %d, \"geometric_mean\": %.4f, "
                "\"worst\": %.4f, \"worst_case\": \"%s\", \"least_geometric_mean\": %.4f, \"least_worst\": %.4f, "
                "\"least_worst_case\": \"%s\"}\n",
                first->c->group, first->threads, name, median->cases, mean_of(median), median->worst, median->whose,
                mean_of(least), least->worst, least->whose);
    else
        fprintf(report->out, "%-20s %7d %-10s %5d %9.2f%s %9.2f%s  %-34s %9.2f%s %9.2f%s  %s\n", first->c->group,
                first->threads, name, median->cases, scale * mean_of(median), unit, scale * median->worst, unit,
                median->whose, scale * mean_of(least), unit, scale * least->worst, unit, least->whose);
}

/* Is this the first result of its group and number of threads? */
static bool is_first(const struct speed_report *report, int at)
{
    const struct speed_result *const r = &report->results[at];
    for (int i = 0; i < at; i++)
        if (report->results[i].threads == r->threads && !strcmp(report->results[i].c->group, r->c->group))
            return false;
    return true;
}

void speed_report_close(struct speed_report *report)
{
    if (report->count && !report->json)
        fprintf(report->out, "\n%-20s %7s %-10s %5s %10s %10s  %-34s %10s %10s\n", "summary of", "threads", "against",
                "cases", "geo. mean", "worst", "", "fastest:", "worst");
    for (int i = 0; i < report->count; i++) {
        const struct speed_result *const first = &report->results[i];
        if (!is_first(report, i))
            continue;
        for (int column = 0; column < report->columns; column++) {
            struct summary median = {0}, least = {0};
            for (int j = i; j < report->count; j++) {
                const struct speed_result *const r = &report->results[j];
                if (r->threads != first->threads || strcmp(r->c->group, first->c->group) != 0)
                    continue;
                add_up(&median, r->ratio[column], r->c->name);
                add_up(&least, r->least[column], r->c->name);
            }
            if (median.cases && least.cases)
                print_summary(report, column, first, &median, &least);
        }
    }
    if (report->skipped && !report->json)
        fprintf(report->out, "%d skipped\n", report->skipped);
    free(report->results);
    report->results = NULL, report->count = report->capacity = 0;
}
