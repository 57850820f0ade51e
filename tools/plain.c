/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: which steps have no fast kernel: those that the reference evaluator computes, and those in plain kernels,
 * whose names end in __ref. A step of a body counts in all trips together; the times of its kernel are known by its
 * name only, so a name that two bodies share has one line. */
#include "tools/tools.h"

#include "ir/ir.h"
#include "kernels/kernels.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 40, MOST_TYPES = 4 };

/* --- names -------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_named_value *)a)->name, ((const struct weft_named_value *)b)->name);
}

struct weft_named_value *weft_name_values(const struct weft_graph *graph, const char *const *label, size_t *ret_count)
{
    struct weft_named_value *named = calloc(graph->values + 1, sizeof *named);
    size_t count = 0;
    if (named) {
        weft_foreach_node(graph, n) {
            for (unsigned r = 0; r < weft_node_of(graph, n)->results; r++)
                named[count++] = (struct weft_named_value){label[weft_result(graph, n, r).id], graph, n};
        }
        qsort(named, count, sizeof *named, by_name);
    }
    *ret_count = count;
    return named;
}

const struct weft_named_value *weft_find_value(const struct weft_named_value *named, size_t count, const char *name)
{
    const struct weft_named_value key = {.name = name};
    return named ? bsearch(&key, named, count, sizeof *named, by_name) : NULL;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

struct line {
    const char *kernel, *value;
    int64_t ns;
    bool inner;
};

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->value, y->value);
}

static size_t collect(const struct weft_model *model, const struct weft_profile *profile, struct line *line)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->steps; i++) {
        const struct weft_step_time *step = &profile->step[i];
        if (weft_kernel_is_plain(step->kernel) || strcmp(step->kernel, "weft_reference") == 0)
            line[count++] = (struct line){step->kernel, step->value, step->ns, false};
    }
    const struct weft_execution *execution = model->execution;
    for (uint32_t i = 0; i < execution->inner_steps; i++) {
        const struct weft_inner_step *step = &execution->inner_step[i];
        line[count++] = (struct line){step->kernel, step->value, step->ns, true};
    }
    return count;
}

static void print_type(const struct weft_graph *graph, weft_val value, FILE *to)
{
    struct weft_text text = {.context = graph->context};
    weft_type_print(graph->dims, weft_type_of(graph, value), &text);
    fputs(text.data ? text.data : "?", to);
    weft_text_close(&text);
}

/* "f32[8,1024] = top_k of f32[8,32000]": from the plan's graph, whose types have symbols. */
static void print_node(const struct weft_named_value *found, FILE *to)
{
    const struct weft_graph *graph = found->graph;
    const struct weft_node_info *node = weft_node_of(graph, found->node);
    print_type(graph, weft_result(graph, found->node, 0), to);
    fprintf(to, " = %s", weft_op_of(graph, found->node)->name);
    for (unsigned i = 0; i < node->operands && i < MOST_TYPES; i++) {
        fputs(i ? ", " : " of ", to);
        print_type(graph, weft_operand(graph, found->node, i), to);
    }
}

static void print_lines(const struct weft_model *model, const struct line *line, size_t count, int64_t all, FILE *to)
{
    size_t named_count;
    struct weft_named_value *named = weft_name_values(model->plan->graph, model->plan->label, &named_count);
    for (size_t i = 0; i < count && i < MOST_LINES; i++) {
        fprintf(to, "  %9.3f  %4.1f %%  %s  %%%s: ", (double)line[i].ns * 1e-6,
                all > 0 ? 100.0 * (double)line[i].ns / (double)all : 0.0, line[i].kernel, line[i].value);
        const struct weft_named_value *found =
            line[i].inner ? NULL : weft_find_value(named, named_count, line[i].value);
        if (found)
            print_node(found, to);
        else
            fputs("in a body", to);
        fputc('\n', to);
    }
    if (count > MOST_LINES)
        fprintf(to, "  and %zu more\n", count - MOST_LINES);
    free(named);
}

void weft_profile_print_plain(const struct weft_model *model, const struct weft_profile *profile, FILE *to)
{
    struct line *line = calloc(profile->steps + WEFT_MOST_INNER_STEPS, sizeof *line);
    const size_t count = line ? collect(model, profile, line) : 0;
    int64_t all = 0, plain = 0;
    for (size_t i = 0; i < profile->steps; i++)
        all += profile->step[i].ns;
    for (size_t i = 0; i < count; i++)
        plain += line[i].ns;
    if (count) {
        fprintf(to, "plain     %zu step%s without a fast kernel, %.1f %% of the time\n", count,
                weft_tool_plural((int64_t)count), all > 0 ? 100.0 * (double)plain / (double)all : 0.0);
        qsort(line, count, sizeof *line, by_time);
        print_lines(model, line, count, all, to);
    }
    free(line);
}
