/* SPDX-License-Identifier: Apache-2.0 */
/* speed_report.c: what weft-check --bench prints: a line for each case and number of threads, then for each group the
 * geometric mean and the worst of each ratio, with the name of the case that it belongs to. With --json an object a
 * line, of cases and of summaries. */
#include "tools/speed.h"

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
            fprintf(report->out, ", \"%s\": %.4f", report->column[i], r->ratio[i]);
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

struct summary {
    int cases[SPEED_RATIOS];
    double log_sum[SPEED_RATIOS], worst[SPEED_RATIOS];
    const char *whose[SPEED_RATIOS];
};

static void add_up(struct summary *s, const struct speed_report *report, const struct speed_result *r)
{
    for (int i = 0; i < report->columns; i++) {
        if (isnan(r->ratio[i]) || r->ratio[i] <= 0)
            continue;
        if (s->cases[i]++ == 0 || r->ratio[i] < s->worst[i])
            s->worst[i] = r->ratio[i], s->whose[i] = r->c->name;
        s->log_sum[i] += log(r->ratio[i]);
    }
}

static void print_summary(const struct speed_report *report, const struct summary *s, const char *group, int threads)
{
    if (report->json)
        fprintf(report->out, "{\"summary\": \"%s\", \"threads\": %d", group, threads);
    for (int i = 0; i < report->columns; i++) {
        if (!s->cases[i])
            continue;
        const double mean = exp(s->log_sum[i] / s->cases[i]), scale = i == 0 ? 100 : 1;
        const char *const unit = i == 0 ? " %" : "x";
        if (report->json)
            fprintf(report->out,
                    ", \"%s\": {\"cases\": %d, \"geometric_mean\": %.4f, \"worst\": %.4f, \"worst_case\": \"%s\"}",
                    report->column[i], s->cases[i], mean, s->worst[i], s->whose[i]);
        else
            fprintf(report->out, "%-24s %7d %-10s %5d %10.*f%s %10.*f%s  %s\n", group, threads, report->column[i],
                    s->cases[i], i ? 2 : 1, scale * mean, unit, i ? 2 : 1, scale * s->worst[i], unit, s->whose[i]);
    }
    if (report->json)
        fputs("}\n", report->out);
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
        fprintf(report->out, "\n%-24s %7s %-10s %5s %11s %11s\n", "summary of", "threads", "against", "cases",
                "geo. mean", "worst");
    for (int i = 0; i < report->count; i++) {
        const struct speed_result *const first = &report->results[i];
        if (!is_first(report, i))
            continue;
        struct summary s = {0};
        for (int j = i; j < report->count; j++)
            if (report->results[j].threads == first->threads && !strcmp(report->results[j].c->group, first->c->group))
                add_up(&s, report, &report->results[j]);
        print_summary(report, &s, first->c->group, first->threads);
    }
    if (report->skipped && !report->json)
        fprintf(report->out, "%d skipped\n", report->skipped);
    free(report->results);
    report->results = NULL, report->count = report->capacity = 0;
}
