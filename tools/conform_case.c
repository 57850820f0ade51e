/* SPDX-License-Identifier: Apache-2.0 */
/* conform_case.c: one case of the ONNX backend tests: compile, run each of its data sets, compare.
 *
 * Comparison is that of ONNX's own runner: as many outputs, equal types and shapes, |got - want| <= 1e-7 + 1e-3 |want|
 * (instead of 1e-7 one rounding of the largest element, if that is more), a NaN where a NaN is expected, infinities and
 * integers equal. Where a model draws random numbers, other programs draw others: then types and shapes are compared
 * alone.
 *
 * These models take as inputs what real ones have as constants: the shape of a Reshape, the axes of a reduction. weft
 * compiles for shapes, so where a model is refused as it stands, it is compiled once more with its small inputs known:
 * those of at most one axis. Tools may look at the model; that is how inputs are told from constants. */
#include "tools/conform.h"

#include "tools/tools.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_KNOWN 256 /* elements of an input that may be known */

struct conform {
    const char *folder;
    char path[4096]; /* of the model */
    bool reference;
    struct weft_context *context;
    struct weft_arena scratch;
    struct weft_blob *file;
    struct onnx_reader reader;
    struct onnx_model model;
    struct weft_tensor input[WEFT_TOOL_PORTS];
    bool given[WEFT_TOOL_PORTS];
    uint32_t known;      /* inputs that were made constants */
    bool random;         /* the model draws random numbers */
    char message[600];   /* why it failed */
};

static bool failed(struct conform *conform, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool failed(struct conform *conform, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(conform->message, sizeof conform->message, format, arguments);
    va_end(arguments);
    return false;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* Expectations are rounded numbers themselves: what cancelled to nearly 0 may be off by one rounding of the largest. */
static double absolute_bound(const struct weft_tensor *want, int64_t elements)
{
    double largest = 0;
    for (int64_t i = 0; i < elements && weft_dtype_is_float(want->dtype); i++) {
        const double x = fabs(weft_load_real(want->dtype, want->data, i));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    return fmax(1e-7, ldexp(largest, -23));
}

static bool close_enough(int dtype, const void *got, int64_t i, const void *want, int64_t k, double absolute)
{
    if (!weft_dtype_is_float(dtype) && weft_dtype_bits(dtype) > 8)
        return weft_load_integer(dtype, got, i) == weft_load_integer(dtype, want, k);
    const double a = weft_load_real(dtype, got, i), b = weft_load_real(dtype, want, k);
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= absolute + 1e-3 * fabs(b);
}

static bool compare_output(struct conform *conform, size_t number, const struct weft_tensor *got,
                           const struct weft_tensor *want)
{
    struct weft_comparison unused;
    char message[256];
    if (!weft_tool_compare(got, want, INFINITY, &unused, message)) /* for types and shapes, which it puts in words */
        return failed(conform, "output %zu: got %s", number, message);
    if (conform->random)
        return true;
    const double absolute = absolute_bound(want, unused.elements);
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t i = 0; i < unused.elements; i++) {
        int64_t place = 0;
        for (int axis = 0; axis < got->rank; axis++)
            place += index[axis] * got->stride[axis];
        if (!close_enough(got->dtype, got->data, place, want->data, i, absolute))
            return failed(conform, "output %zu: element %lld is %.9g, expected %.9g", number, (long long)i,
                          weft_load_real(got->dtype, got->data, place), weft_load_real(want->dtype, want->data, i));
        for (int axis = got->rank - 1; axis >= 0 && ++index[axis] == got->extent[axis]; axis--)
            index[axis] = 0;
    }
    return true;
}

static bool compare_outputs(struct conform *conform, const struct weft_plan *plan,
                            const struct weft_execution *execution, const char *set)
{
    const size_t outputs = weft_plan_outputs(plan);
    for (size_t i = 0;; i++) {
        char path[4608];
        struct weft_tensor got, want;
        snprintf(path, sizeof path, "%s/output_%zu.pb", set, i);
        const bool there = access(path, F_OK) == 0;
        if (!there && i == outputs)
            return true;
        if (!there || i == outputs)
            return failed(conform, "it has %zu outputs, but output_%zu.pb is %sthere", outputs, i, there ? "" : "not ");
        if (!weft_tensor_proto_load(conform->context, path, &want))
            return failed(conform, "%s", weft_last_error(conform->context));
        const bool same = weft_output(execution, i, &got) < 0 ? failed(conform, "%s", weft_execution_error(execution))
                                                              : compare_output(conform, i, &got, &want);
        free(want.data);
        if (!same)
            return false;
    }
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static bool read_inputs(struct conform *conform, const char *set)
{
    const struct onnx_graph *graph = &conform->model.graph;
    if (graph->inputs > WEFT_TOOL_PORTS)
        return failed(conform, "%u inputs are more than this command takes", graph->inputs);
    for (uint32_t i = 0; i < graph->inputs; i++) {
        char path[4608];
        snprintf(path, sizeof path, "%s/input_%u.pb", set, i);
        conform->given[i] = access(path, F_OK) == 0;
        if (conform->given[i] && !weft_tensor_proto_load(conform->context, path, &conform->input[i]))
            return failed(conform, "%s", weft_last_error(conform->context));
    }
    return true;
}

static void free_inputs(struct conform *conform)
{
    for (size_t i = 0; i < WEFT_TOOL_PORTS; i++) {
        free(conform->input[i].data);
        conform->input[i].data = NULL;
        conform->given[i] = false;
    }
}

/* The name of input i as text in the scratch arena. */
static const char *input_name(struct conform *conform, uint32_t i)
{
    const struct onnx_string name = conform->model.graph.input[i].name;
    return weft_arena_copy(&conform->scratch, name.length ? name.data : "", name.length);
}

static uint32_t list_known(struct conform *conform, struct weft_fixed_input *known)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < conform->model.graph.inputs; i++) {
        const struct weft_tensor *tensor = &conform->input[i];
        if (conform->given[i] && tensor->rank <= 1 && (tensor->rank == 0 || tensor->extent[0] <= MAX_KNOWN))
            known[count++] = (struct weft_fixed_input){input_name(conform, i), tensor};
    }
    return count;
}

static bool draws_numbers(const struct weft_graph *graph)
{
    weft_foreach_node(graph, node) if (weft_op_of(graph, node)->traits & WEFT_RANDOM) return true;
    return false;
}

static int compile(struct conform *conform, const struct weft_fixed_input *known, uint32_t knowns,
                   struct weft_plan **ret_plan)
{
    const struct weft_compile_options options = {.size = sizeof options,
                                                 .flags = conform->reference ? WEFT_COMPILE_REFERENCE : 0};
    struct weft_graph *graph = NULL;
    int status = weft_load_fixed(conform->context, conform->path, known, knowns, &graph);
    if (status >= 0)
        status = weft_validate(graph);
    if (status >= 0)
        status = weft_compile(graph, &options, ret_plan);
    conform->random = graph && draws_numbers(graph);
    if (graph)
        weft_graph_destroy(graph);
    return status;
}

static bool bind_inputs(struct conform *conform, const struct weft_plan *plan, struct weft_execution *execution)
{
    for (size_t p = 0; p < weft_plan_inputs(plan); p++) {
        struct weft_port port = {.size = sizeof port};
        weft_plan_input(plan, p, &port);
        uint32_t i = 0;
        while (i < conform->model.graph.inputs && strcmp(port.name, input_name(conform, i)) != 0)
            i++;
        if (i == conform->model.graph.inputs || !conform->given[i])
            return failed(conform, "there is no data for input %s", port.name);
        if (weft_bind_input(execution, p, &conform->input[i]) < 0)
            return failed(conform, "%s", weft_execution_error(execution));
    }
    return true;
}

static bool run_set(struct conform *conform, const char *set)
{
    struct weft_fixed_input known[WEFT_TOOL_PORTS];
    struct weft_plan *plan = NULL;
    struct weft_execution *execution = NULL;
    if (!read_inputs(conform, set))
        return false;
    int status = compile(conform, NULL, 0, &plan);
    if (status == WEFT_ERR_UNSUPPORTED) {
        const uint32_t knowns = list_known(conform, known);
        conform->known += knowns;
        if (knowns)
            status = compile(conform, known, knowns, &plan);
    }
    if (status < 0)
        return failed(conform, "%s", weft_last_error(conform->context));
    bool ok = weft_execution_create(plan, &execution) >= 0 || failed(conform, "no execution");
    ok = ok && bind_inputs(conform, plan, execution);
    ok = ok && (weft_run(execution) >= 0 || failed(conform, "%s", weft_execution_error(execution)));
    ok = ok && compare_outputs(conform, plan, execution, set);
    if (execution)
        weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    return ok;
}

static bool run_sets(struct conform *conform)
{
    for (int i = 0;; i++) {
        char set[4352];
        snprintf(set, sizeof set, "%s/test_data_set_%d", conform->folder, i);
        if (access(set, F_OK) != 0)
            return i > 0 || failed(conform, "there is no test_data_set_0");
        const bool ok = run_set(conform, set);
        free_inputs(conform);
        if (!ok)
            return false;
    }
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

static int read_model(void *arg)
{
    struct conform *conform = arg;
    conform->file = weft_blob_map(conform->context, conform->path);
    if (!conform->file)
        return WEFT_OK; /* the error is recorded, and decides */
    conform->reader = (struct onnx_reader){.context = conform->context,
                                           .arena = &conform->scratch,
                                           .start = conform->file->data,
                                           .path = conform->path};
    weft_onnx_read_model(&conform->reader, (struct weft_span){conform->file->data, conform->file->bytes},
                         &conform->model);
    return WEFT_OK;
}

/* One line, whatever the message. */
static void print_failure(const char *message)
{
    fputs("fail ", stdout);
    for (const char *c = message; *c; c++)
        putchar(*c == '\n' ? (c[1] ? ';' : ' ') : *c);
    putchar('\n');
}

int weft_conform_case(const char *folder, bool reference)
{
    static struct conform conform;
    conform = (struct conform){.folder = folder, .reference = reference};
    snprintf(conform.path, sizeof conform.path, "%s/" WEFT_CASE_FILE, folder);
    if (weft_open(NULL, &conform.context) < 0 || weft_tool_register(conform.context) != WEFT_EXIT_OK) {
        print_failure(conform.context ? weft_last_error(conform.context) : "cannot start");
        return WEFT_EXIT_FAILED;
    }
    weft_arena_open(&conform.scratch, conform.context);
    if (weft_protected(conform.context, read_model, &conform) < 0)
        print_failure(weft_last_error(conform.context));
    else if (weft_conform_gaps(&conform.reader, &conform.model) == 0) {
        if (run_sets(&conform))
            puts("pass");
        else
            print_failure(conform.message);
        if (conform.known)
            printf("known %u\n", conform.known);
    }
    weft_arena_close(&conform.scratch);
    weft_blob_drop(conform.file);
    weft_close(conform.context);
    return WEFT_EXIT_OK;
}
