/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c: which kernel takes how long. The smallest of several runs is kept for each step: noise only ever adds. */
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

/* One timed run; steps come in the same order each time. */
struct collector {
    struct weft_profile *profile;
    size_t step;
};

static void collect(void *user, const char *kernel, const char *value, int64_t ns)
{
    struct collector *collector = user;
    struct weft_profile *profile = collector->profile;
    const size_t i = collector->step++;
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
        step->ns = ns;
    } else if (ns < step->ns) {
        step->ns = ns;
    }
}

bool weft_profile_measure(struct weft_model *model, int runs, struct weft_profile *ret_profile)
{
    *ret_profile = (struct weft_profile){0};
    for (int run = 0; run < runs; run++) {
        struct collector collector = {ret_profile, 0};
        if (weft_run_timed(model->execution, collect, &collector) < 0) {
            fprintf(stderr, "weft: %s\n", weft_execution_error(model->execution));
            return false;
        }
    }
    if (ret_profile->failed)
        fprintf(stderr, "weft: out of memory\n");
    return !ret_profile->failed;
}

/* Sum of the steps of one kernel. */
struct total {
    const char *kernel;
    int64_t ns;
    int count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct total *)a)->kernel, ((const struct total *)b)->kernel);
}

static int by_time(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->kernel, y->kernel);
}

void weft_profile_print(const struct weft_profile *profile, FILE *to)
{
    struct total *total = calloc(profile->steps + 1, sizeof *total);
    if (!total)
        return;
    int64_t all = 0;
    for (size_t i = 0; i < profile->steps; i++) {
        total[i] = (struct total){profile->step[i].kernel, profile->step[i].ns, 1};
        all += profile->step[i].ns;
    }
    qsort(total, profile->steps, sizeof *total, by_name);
    size_t kernels = 0;
    for (size_t i = 0; i < profile->steps; i++) {
        if (kernels > 0 && !strcmp(total[kernels - 1].kernel, total[i].kernel)) {
            total[kernels - 1].ns += total[i].ns;
            total[kernels - 1].count++;
        } else {
            total[kernels++] = total[i];
        }
    }
    qsort(total, kernels, sizeof *total, by_time);
    fprintf(to, "  %9s  %6s  %5s  kernel\n", "ms", "share", "count");
    for (size_t i = 0; i < kernels; i++)
        fprintf(to, "  %9.3f  %4.1f %%  %5d  %s\n", (double)total[i].ns * 1e-6,
                all > 0 ? 100.0 * (double)total[i].ns / (double)all : 0.0, total[i].count, total[i].kernel);
    fprintf(to, "  %9.3f          %5zu  steps in all\n", (double)all * 1e-6, profile->steps);
    free(total);
}

void weft_profile_close(struct weft_profile *profile)
{
    free(profile->step);
    *profile = (struct weft_profile){0};
}
