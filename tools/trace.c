/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: a run as a timeline for chrome://tracing and ui.perfetto.dev, in the trace event format of Chromium.
 *
 *   track "compile"   load, then the passes one after the other, then planning; the first run of all
 *   track "run"       each step of the fastest of several runs, one behind the other. Its arguments: the value
 *                     that it computes, bytes, operations, the rates that follow from them
 *   counter           bytes of the arena that hold a value some later step reads
 *
 * Times are microseconds. A loop is one step, which runs its body. */
#include "ir/file.h"
#include "passes/passes.h"
#include "runtime/runtime.h"
#include "tools/explain.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>

enum { COMPILE = 1, RUN = 2 }; /* tracks */

struct trace {
    const struct weft_model *model;
    const struct weft_profile *profile;
    struct weft_text *text;
};

static void open_event(struct weft_text *text, const char *phase, int track, double from_us)
{
    weft_text_format(text, "%s{\"ph\": \"%s\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f",
                     text->data && text->length > 2 && text->data[text->length - 2] == '[' ? "" : ",\n", phase, track,
                     from_us);
}

static void name_track(struct weft_text *text, int track, const char *name)
{
    open_event(text, "M", track, 0);
    weft_text_format(text, ", \"name\": \"thread_name\", \"args\": {\"name\": \"%s\"}}", name);
}

/* A complete event without arguments; they may follow, and a brace. */
static void add_span(struct weft_text *text, int track, const char *name, double from_us, double us)
{
    open_event(text, "X", track, from_us);
    weft_text_format(text, ", \"dur\": %.3f", us);
    explain_json_pair(text, "name", name);
}

/* Returns when all is compiled. */
static double add_compilation(struct trace *t)
{
    const struct weft_model *const m = t->model;
    double at = m->load_ms * 1e3;
    const double end = at + m->compile_ms * 1e3;
    add_span(t->text, COMPILE, "load", 0, at);
    weft_text_add(t->text, "}");
    const struct weft_pass_record *record;
    for (size_t i = 0; (record = weft_pass_timing(m->plan->graph, i)) != NULL; i++) {
        add_span(t->text, COMPILE, record->pass, at, (double)record->ns * 1e-3);
        weft_text_format(t->text, ", \"args\": {\"rewrites\": %lld, \"nodes\": %u}}", (long long)record->rewrites,
                         record->nodes_after);
        at += (double)record->ns * 1e-3;
    }
    if (end > at) {
        add_span(t->text, COMPILE, "plan, pack weights", at, end - at);
        weft_text_add(t->text, "}");
    }
    return (end > at ? end : at) + m->create_ms * 1e3;
}

/* Bytes of the arena that are alive at a step. */
static int64_t live_at(const struct weft_plan *plan, const struct weft_frame *frame, uint32_t step)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < plan->storages; i++) {
        const struct weft_storage *const storage = &plan->storage[i];
        if (storage->kind == WEFT_IN_ARENA && storage->first <= (int32_t)step && (int32_t)step <= storage->last)
            bytes += frame->room[i];
    }
    return bytes;
}

static void add_memory(struct trace *t, uint32_t step, double at)
{
    const struct weft_frame *const frame = t->model->execution->frame;
    open_event(t->text, "C", RUN, at);
    weft_text_format(t->text, ", \"name\": \"arena\", \"args\": {\"bytes\": %lld}}",
                     (long long)live_at(t->model->plan, frame, step));
}

/* Units of several steps have their counts at the first. */
static void add_steps(struct trace *t, double from)
{
    struct weft_plan *const plan = t->model->plan;
    struct weft_arena *const arena = &plan->graph->scratch;
    uint32_t units, unit = 0;
    const struct weft_unit_counts *const counts = weft_plan_count_units(plan, NULL, arena, &units);
    double at = from;
    for (uint32_t i = 0; i < t->profile->steps && i < plan->steps; i++) {
        const struct weft_step_time *const step = &t->profile->step[i];
        const double us = (double)step->ns * 1e-3;
        add_memory(t, i, at);
        add_span(t->text, RUN, step->kernel, at, us);
        weft_text_add(t->text, ", \"args\": {\"step\": ");
        weft_text_format(t->text, "%u", i);
        explain_json_pair(t->text, "value", step->value);
        while (unit < units && counts[unit].step + counts[unit].steps <= i)
            unit++;
        if (unit < units && counts[unit].step == i) {
            const struct weft_unit_counts *const c = &counts[unit];
            weft_text_format(t->text, ", \"read\": %lld, \"written\": %lld, \"operations\": %lld",
                             (long long)c->read, (long long)c->written, (long long)c->flops);
            if (step->ns > 0 && c->steps == 1)
                weft_text_format(t->text, ", \"GB/s\": %.1f, \"GFLOP/s\": %.1f",
                                 (double)(c->read + c->written) / (double)step->ns,
                                 (double)c->flops / (double)step->ns);
        }
        weft_text_add(t->text, "}}");
        at += us;
    }
    add_memory(t, plan->steps, at);
}

void weft_trace_print(const struct weft_model *model, const struct weft_profile *profile, struct weft_text *text)
{
    struct trace t = {model, profile, text};
    weft_text_add(text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    name_track(text, COMPILE, "compile");
    name_track(text, RUN, "run");
    add_steps(&t, add_compilation(&t));
    weft_text_add(text, "\n]}\n");
}

static int print_trace(void *arg)
{
    const struct trace *const t = arg;
    weft_trace_print(t->model, t->profile, t->text);
    return WEFT_OK;
}

bool weft_trace_write(const struct weft_model *model, const struct weft_profile *profile, const char *path)
{
    struct weft_text text = {.context = model->context, .arena = &model->plan->graph->scratch};
    struct trace t = {model, profile, &text};
    struct weft_file file;
    if (weft_protected_graph(model->plan->graph, print_trace, &t) < 0) {
        fprintf(stderr, "weft run: %s\n", weft_last_error(model->context));
        return false;
    }
    bool right = weft_file_create(&file, path);
    if (right) {
        (void)fwrite(text.data, 1, text.length, file.to);
        right = weft_file_commit(&file);
    }
    if (right)
        printf("trace     written to %s\n", path);
    else
        fprintf(stderr, "weft run: %s: %s\n", path, strerror(errno));
    return right;
}
