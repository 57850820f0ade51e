/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: from a path to something that runs: context, graph, plan, execution, inputs. */
#include "tools/tools.h"

#include "ir/ir.h"
#include "tools/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double weft_tool_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

const char *weft_tool_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(text, 32, unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

static void show_message(void *user, const struct weft_diagnostic *d)
{
    if (d->severity == WEFT_NOTE)
        return;
    fprintf(stderr, "weft: ");
    if (d->file)
        fprintf(stderr, "%s:", d->file);
    if (d->line)
        fprintf(stderr, "%d:%d:", (int)d->line, (int)d->column);
    fprintf(stderr, "%s%s%s%s%s\n", d->file || d->line ? " " : "", d->severity == WEFT_WARNING ? "warning: " : "",
            d->where ? d->where : "", d->where ? ": " : "", d->message);
}

bool weft_tool_open(const char *cpu, int threads, struct weft_context **ret_context)
{
    const struct weft_context_options options = {
        .size = sizeof options, .diagnose = show_message, .cpu = cpu, .threads = threads};
    const int status = weft_open(&options, ret_context);
    if (status < 0 && cpu)
        fprintf(stderr, "weft: cannot start with --cpu=%s: %s\n", cpu, weft_status_text(status));
    else if (status < 0)
        fprintf(stderr, "weft: cannot start: %s\n", weft_status_text(status));
    return status >= 0;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static bool read_input(struct weft_model *model, size_t i, const char *path)
{
    char message[WEFT_NPY_MESSAGE];
    if (weft_npy_load(path, &model->input[i], message))
        return true;
    fprintf(stderr, "weft: %s: %s\n", path, message);
    return false;
}

/* Values of the symbols: hints, and what "N=4" says. */
static bool choose_sizes(const struct weft_words *sizes, const struct weft_dims *dims, int64_t *value)
{
    for (uint32_t s = 0; s < weft_symbol_count(dims); s++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(dims, s);
        value[s] = symbol->hint > 0 ? symbol->hint : symbol->low > 1 ? symbol->low : 1;
    }
    for (int i = 0; i < sizes->count; i++) {
        const char *equals = strchr(sizes->word[i], '=');
        uint32_t s = 0;
        while (equals && s < weft_symbol_count(dims) &&
               (strlen(weft_symbol_at(dims, s)->name) != (size_t)(equals - sizes->word[i]) ||
                strncmp(weft_symbol_at(dims, s)->name, sizes->word[i], (size_t)(equals - sizes->word[i]))))
            s++;
        char *end = NULL;
        const long long number = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || s == weft_symbol_count(dims)) {
            fprintf(stderr, "weft: --size %s: the model has no such symbol, or this is no number\n", sizes->word[i]);
            return false;
        }
        value[s] = number;
    }
    return true;
}

static uint64_t next_random(uint64_t *state) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Floats in [-1, 1); integers and bool 0 or 1, which are legal indices nearly everywhere. */
static void fill_random(struct weft_tensor *tensor, int64_t elements, uint64_t seed)
{
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = next_random(&seed);
        if (weft_dtype_is_float(tensor->dtype))
            weft_store_real(tensor->dtype, tensor->data, i, (double)(int64_t)bits * 0x1p-63);
        else
            weft_store_integer(tensor->dtype, tensor->data, i, (int64_t)(bits >> 63));
    }
}

static bool invent_inputs(const struct weft_model_options *options, struct weft_model *model)
{
    const struct weft_graph *graph = weft_plan_graph(model->plan);
    int64_t *size = calloc(weft_symbol_count(graph->dims) + 1, sizeof *size);
    bool ok = size && choose_sizes(&options->sizes, graph->dims, size);
    for (size_t i = 0; ok && i < model->inputs; i++) {
        const struct weft_type *type = weft_type_of(graph, graph->param[i]);
        struct weft_tensor *tensor = &model->input[i];
        *tensor = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
        int64_t elements = 1;
        for (int axis = 0; axis < type->rank; axis++) {
            tensor->extent[axis] = weft_dim_evaluate(graph->dims, type->extent[axis], size);
            ok = ok && tensor->extent[axis] >= 0 && !__builtin_mul_overflow(elements, tensor->extent[axis], &elements);
        }
        weft_tensor_dense(tensor);
        tensor->data = ok && elements < (int64_t)1 << 40
                           ? aligned_alloc(64, ((size_t)weft_dtype_bytes(type->dtype, elements) + 127) / 64 * 64)
                           : NULL;
        ok = tensor->data;
        if (ok)
            fill_random(tensor, elements, i + 1);
        else
            fprintf(stderr, "weft: no memory for random input %zu\n", i);
    }
    free(size);
    model->random = true;
    return ok;
}

static bool make_inputs(const struct weft_model_options *options, struct weft_model *model)
{
    const int given = options->inputs.count;
    if (given > 0 && (size_t)given != model->inputs) {
        fprintf(stderr, "weft: the model has %zu inputs, -i was given %d times\n", model->inputs, given);
        for (size_t i = 0; i < model->inputs; i++) {
            struct weft_port port;
            if (weft_plan_input(model->plan, i, &port) == WEFT_OK)
                fprintf(stderr, "  input %zu: %s %s\n", i, port.name, port.text);
        }
        return false;
    }
    if (given == 0 && !options->folder)
        return invent_inputs(options, model);
    for (size_t i = 0; i < model->inputs; i++) {
        char path[4096];
        if (given == 0)
            snprintf(path, sizeof path, "%s/input_%zu.npy", options->folder, i);
        if (!read_input(model, i, given ? options->inputs.word[i] : path))
            return false;
    }
    return true;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static bool bind_inputs(struct weft_model *model)
{
    for (size_t i = 0; i < model->inputs; i++) {
        if (weft_bind_input(model->execution, i, &model->input[i]) < 0) {
            fprintf(stderr, "weft: %s\n", weft_execution_error(model->execution));
            return false;
        }
    }
    return true;
}

bool weft_model_open(const struct weft_model_options *options, struct weft_model *ret_model)
{
    struct weft_model *model = ret_model;
    *model = (struct weft_model){0};
    if (!weft_tool_open(options->cpu, options->threads, &model->context))
        return false;
    double before = weft_tool_now_ms();
    if (weft_load(model->context, options->path, &model->graph) < 0)
        return false;
    double after = weft_tool_now_ms();
    model->load_ms = after - before;
    const struct weft_compile_options compile = {.size = sizeof compile,
                                                 .flags = options->reference ? WEFT_COMPILE_REFERENCE : 0};
    if (weft_compile(model->graph, &compile, &model->plan) < 0)
        return false;
    before = weft_tool_now_ms();
    model->compile_ms = before - after;
    model->inputs = weft_plan_inputs(model->plan);
    model->outputs = weft_plan_outputs(model->plan);
    if (model->inputs > WEFT_TOOL_PORTS) {
        fprintf(stderr, "weft: %zu inputs are more than this command takes (%d)\n", model->inputs, WEFT_TOOL_PORTS);
        return false;
    }
    if (weft_execution_create(model->plan, &model->execution) < 0)
        return false;
    model->create_ms = weft_tool_now_ms() - before;
    return make_inputs(options, model) && bind_inputs(model);
}

void weft_model_close(struct weft_model *model)
{
    if (model->execution)
        weft_execution_destroy(model->execution);
    if (model->plan)
        weft_plan_destroy(model->plan);
    if (model->graph)
        weft_graph_destroy(model->graph);
    for (size_t i = 0; i < model->inputs && i < WEFT_TOOL_PORTS; i++)
        weft_npy_free(&model->input[i]);
    if (model->context)
        weft_close(model->context);
}
