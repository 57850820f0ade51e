/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c: which kernel takes how long. Of several runs the shortest is kept, from the call to its return, since noise
 * mostly adds. The smallest time of each step, or the smallest sum, would mix or prefer runs in which the thread that
 * looks at the clock was kept from running: it finds the parts of a step taken by others, and such a step seems to take
 * no time. Clocks between the steps cost something, so the whole run is measured as well, without clocks inside. */
#include "tools/tools.h"

#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_MS 2000.0

/* One timed run; steps come in the same order each time. */
struct collector {
    struct weft_profile *profile;
    size_t step;
    int64_t sum;
};

static void collect(void *user, const char *kernel, const char *value, int64_t ns)
{
    struct collector *collector = user;
    struct weft_profile *profile = collector->profile;
    const size_t i = collector->step++;
    collector->sum += ns;
    if (i == profile->capacity) {
        const size_t capacity = 2 * profile->capacity + 256;
        struct weft_step_time *step = realloc(profile->step, capacity * sizeof *step);
        profile->failed = profile->failed || !step;
        if (!step)
            return;
        profile->step = step;
        profile->capacity = capacity;
    }
    if (i > profile->steps)
        return; /* a step before could not be kept */
    struct weft_step_time *step = &profile->step[i];
    if (i == profile->steps) {
        profile->steps++;
        snprintf(step->kernel, sizeof step->kernel, "%s", kernel ? kernel : "");
        snprintf(step->value, sizeof step->value, "%s", value ? value : "");
    }
    step->now_ns = ns;
}

static bool run_once(struct weft_model *model, struct weft_profile *profile)
{
    struct collector collector = {.profile = profile};
    const double before = weft_tool_now_ms();
    if (weft_tool_run(model->execution) >= 0) {
        const double ms = weft_tool_now_ms() - before;
        profile->best_ms = profile->runs == 0 || ms < profile->best_ms ? ms : profile->best_ms;
        const double start = weft_tool_now_ms();
        if (weft_tool_run_timed(model->execution, collect, &collector) >= 0) {
            const double timed_ms = weft_tool_now_ms() - start;
            const bool best = profile->runs == 0 || timed_ms < profile->timed_ms;
            for (size_t i = 0; i < profile->steps && best; i++)
                profile->step[i].ns = profile->step[i].now_ns;
            profile->sum_ns = best ? collector.sum : profile->sum_ns;
            profile->timed_ms = best ? timed_ms : profile->timed_ms;
            return true;
        }
    }
    weft_tool_run_failed(model->execution);
    return false;
}

bool weft_profile_measure(struct weft_model *model, int runs, struct weft_profile *ret_profile)
{
    weft_plan_wait(model->plan); /* later runs have compiled code; refused memory leaves it interpreted */
    *ret_profile = (struct weft_profile){0};
    const double start = weft_tool_now_ms();
    do {
        if (!run_once(model, ret_profile))
            return false;
        ret_profile->runs++;
    } while (ret_profile->runs < runs && weft_tool_now_ms() - start < LONGEST_MS);
    if (ret_profile->failed)
        fprintf(stderr, "weft: out of memory\n");
    return !ret_profile->failed;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

/* Sum of the steps of one kernel. The evaluator computes any op: it counts by op. */
struct total {
    const char *kernel, *op;
    int64_t ns;
    int count;
};

static int by_name(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    const int order = strcmp(x->kernel, y->kernel);
    return order ? order : strcmp(x->op, y->op);
}

static int by_time(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : by_name(a, b);
}

/* One entry for each step, the op where the kernel does not tell. */
static void fill_totals(const struct weft_plan *plan, const struct weft_profile *profile, struct total *total)
{
    size_t count;
    struct weft_named_value *named = weft_name_values(plan->graph, plan->label, &count);
    for (size_t i = 0; i < profile->steps; i++) {
        const struct weft_step_time *step = &profile->step[i];
        total[i] = (struct total){.kernel = step->kernel, .op = "", .ns = step->ns, .count = 1};
        const struct weft_named_value *found =
            strcmp(step->kernel, "weft_reference") == 0 ? weft_find_value(named, count, step->value) : NULL;
        if (found)
            total[i].op = weft_op_of(plan->graph, found->node)->name;
    }
    free(named);
}

void weft_profile_print(const struct weft_model *model, const struct weft_profile *profile, FILE *to)
{
    struct total *total = calloc(profile->steps + 1, sizeof *total);
    if (!total)
        return;
    fill_totals(model->plan, profile, total);
    qsort(total, profile->steps, sizeof *total, by_name);
    int64_t all = 0;
    size_t rows = 0;
    for (size_t i = 0; i < profile->steps; i++) {
        all += total[i].ns;
        if (rows > 0 && by_name(&total[rows - 1], &total[i]) == 0) {
            total[rows - 1].ns += total[i].ns;
            total[rows - 1].count++;
        } else {
            total[rows++] = total[i];
        }
    }
    qsort(total, rows, sizeof *total, by_time);
    fprintf(to, "  %9s  %6s  %5s  kernel, the fastest of %d run%s\n", "ms", "share", "count", profile->runs,
            weft_tool_plural(profile->runs));
    for (size_t i = 0; i < rows; i++)
        fprintf(to, *total[i].op ? "  %9.3f  %4.1f %%  %5d  %s (%s)\n" : "  %9.3f  %4.1f %%  %5d  %s%s\n",
                (double)total[i].ns * 1e-6, all > 0 ? 100.0 * (double)total[i].ns / (double)all : 0.0, total[i].count,
                total[i].kernel, total[i].op);
    fprintf(to, "  %9.3f          %5zu  sum of all steps\n", (double)all * 1e-6, profile->steps);
    fprintf(to, "  %9.3f                 best whole run, without clocks between the steps\n", profile->best_ms);
    free(total);
}

void weft_profile_close(struct weft_profile *profile)
{
    free(profile->step);
    *profile = (struct weft_profile){0};
}
