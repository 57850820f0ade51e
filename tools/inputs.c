/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c: the inputs of a model: from files or invented, and in the layout that its plan reads.
 *
 * Arrays come row-major. A plan states strides for each input; where they are others, and where runs write to the
 * input, it gets a copy, so that the array as given is still there for a comparison and for the next fresh run. */
#include "tools/tools.h"

#include "ir/ir.h"
#include "ir/suggest.h"
#include "runtime/runtime.h"
#include "tools/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static void list_symbols(const struct weft_dims *dims)
{
    const uint32_t count = weft_symbol_count(dims);
    fprintf(stderr, count ? "; it has" : "; it has none");
    for (uint32_t s = 0; s < count; s++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(dims, s);
        fprintf(stderr, "%s %s (%" PRId64 " to %" PRId64 ")", s ? "," : "", symbol->name, symbol->low, symbol->high);
    }
    fputc('\n', stderr);
}

/* Symbol and value of "N=4". Returns an exit code. */
static int read_size(const char *word, const struct weft_dims *dims, uint32_t *ret_symbol, int64_t *ret_value)
{
    const char *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : 0;
    char *end = NULL;
    errno = 0;
    const long long number = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (length == 0 || end == equals + 1 || *end || errno) {
        fprintf(stderr, "weft: --size %s: not a symbol, '=' and a whole number\n", word);
        return WEFT_EXIT_USAGE;
    }
    uint32_t s = 0;
    while (s < weft_symbol_count(dims) && (strlen(weft_symbol_at(dims, s)->name) != length ||
                                           memcmp(weft_symbol_at(dims, s)->name, word, length) != 0))
        s++;
    if (s == weft_symbol_count(dims)) {
        struct weft_suggest suggest;
        fprintf(stderr, "weft: --size %s: the model has no such symbol%s", word,
                weft_suggest_symbol(&suggest, dims, word, length));
        list_symbols(dims);
        return WEFT_EXIT_FAILED;
    }
    const struct weft_symbol_info *symbol = weft_symbol_at(dims, s);
    if (number < symbol->low || number > symbol->high) {
        fprintf(stderr, "weft: --size %s: out of range, %s is from %" PRId64 " to %" PRId64 "\n", word, symbol->name,
                symbol->low, symbol->high);
        return WEFT_EXIT_FAILED;
    }
    *ret_symbol = s;
    *ret_value = number;
    return WEFT_EXIT_OK;
}

int weft_model_sizes(const struct weft_words *sizes, const struct weft_dims *dims, int64_t *value)
{
    for (uint32_t s = 0; s < weft_symbol_count(dims); s++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(dims, s);
        value[s] = symbol->hint > 0 ? symbol->hint : symbol->low > 1 ? symbol->low : 1;
    }
    for (int i = 0; i < sizes->count; i++) {
        uint32_t s;
        int64_t number;
        const int code = read_size(sizes->word[i], dims, &s, &number);
        if (code != WEFT_EXIT_OK)
            return code;
        value[s] = number;
    }
    return WEFT_EXIT_OK;
}

/* What --size says must be what the given inputs have. */
static int check_sizes(const struct weft_words *sizes, const struct weft_dims *dims, const int64_t *value)
{
    for (int i = 0; i < sizes->count; i++) {
        uint32_t s;
        int64_t number;
        const int code = read_size(sizes->word[i], dims, &s, &number);
        if (code != WEFT_EXIT_OK)
            return code;
        if (value[s] != number) {
            fprintf(stderr, "weft: --size %s disagrees with the inputs, which have %s=%" PRId64 "\n", sizes->word[i],
                    weft_symbol_at(dims, s)->name, value[s]);
            return WEFT_EXIT_FAILED;
        }
    }
    return WEFT_EXIT_OK;
}

/* --- invented and read -------------------------------------------------------------------------------------------- */

static void *new_memory(int dtype, int64_t elements, size_t align)
{
    const size_t bytes = (size_t)weft_dtype_bytes(dtype, elements);
    void *data = aligned_alloc(align, (bytes + align) / align * align);
    if (data)
        memset(data, 0, (bytes + align) / align * align);
    return data;
}

static int invent_inputs(struct weft_model *model, const int64_t *size)
{
    const struct weft_graph *graph = weft_plan_graph(model->plan);
    model->random = true;
    for (size_t i = 0; i < model->inputs; i++) {
        const struct weft_type *type = weft_type_of(graph, graph->param[i]);
        struct weft_tensor *tensor = &model->input[i];
        *tensor = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
        int64_t elements = 1;
        bool ok = true;
        for (int axis = 0; axis < type->rank; axis++) {
            tensor->extent[axis] = weft_dim_evaluate(graph->dims, type->extent[axis], size);
            ok = ok && tensor->extent[axis] >= 0 && !__builtin_mul_overflow(elements, tensor->extent[axis], &elements);
        }
        tensor->data = ok && elements < (int64_t)1 << 40 ? new_memory(type->dtype, elements, 64) : NULL;
        if (!tensor->data) {
            struct weft_port port = {.size = sizeof port};
            weft_plan_input(model->plan, i, &port);
            fprintf(stderr, "weft: no memory for random input %zu, %s %s\n", i, port.name, port.text);
            return WEFT_EXIT_FAILED;
        }
        weft_tensor_dense(tensor);
        uint64_t state = i + 1;
        weft_tool_random(tensor, elements, -1, 1, &state);
    }
    return WEFT_EXIT_OK;
}

/* The file of input i: as given, or input_<i>.npy of the folder. */
static const char *input_path(const struct weft_model_options *options, size_t i, char path[4096])
{
    if (options->inputs.count > 0)
        return options->inputs.word[i];
    snprintf(path, 4096, "%s/input_%zu.npy", options->folder, i);
    return path;
}

static int read_inputs(const struct weft_model_options *options, struct weft_model *model)
{
    const struct weft_graph *graph = weft_plan_graph(model->plan);
    const int given = options->inputs.count;
    if (given > 0 && (size_t)given != model->inputs) {
        fprintf(stderr, "weft: the model has %zu input%s, -i was given %d time%s\n", model->inputs,
                weft_tool_plural((int64_t)model->inputs), given, weft_tool_plural(given));
        for (size_t i = 0; i < model->inputs; i++) {
            struct weft_port port = {.size = sizeof port};
            if (weft_plan_input(model->plan, i, &port) == WEFT_OK)
                fprintf(stderr, "  input %zu: %s %s\n", i, port.name, port.text);
        }
        return WEFT_EXIT_FAILED;
    }
    for (size_t i = 0; i < model->inputs; i++) {
        char memory[4096], message[WEFT_NPY_MESSAGE];
        const char *path = input_path(options, i, memory);
        if (!weft_npy_load(path, &model->input[i], message)) {
            fprintf(stderr, "weft: %s: %s\n", path, message);
            return WEFT_EXIT_FAILED;
        }
        weft_npy_narrow(&model->input[i], weft_type_of(graph, graph->param[i])->dtype);
    }
    return WEFT_EXIT_OK;
}

static void show_files(const struct weft_model_options *options, const struct weft_model *model)
{
    for (size_t i = 0; i < model->inputs; i++) {
        char memory[4096];
        const struct weft_tensor *tensor = &model->input[i];
        struct weft_port port = {.size = sizeof port};
        if (weft_plan_input(model->plan, i, &port) < 0)
            continue;
        fprintf(stderr, "  %s: %s[", input_path(options, i, memory), weft_dtype_name(tensor->dtype));
        for (int axis = 0; axis < tensor->rank; axis++)
            fprintf(stderr, "%s%" PRId64, axis ? "," : "", tensor->extent[axis]);
        fprintf(stderr, "] for input %zu, %s %s\n", i, port.name, port.text);
    }
}

/* The input that a message of weft_solve_symbols is about: "parameter %x: …", "parameter 0 has …"; -1: none. */
static int input_of(const struct weft_model *model, const char *message)
{
    static const char word[] = "parameter ";
    if (strncmp(message, word, sizeof word - 1) != 0)
        return -1;
    message += sizeof word - 1;
    const size_t length = strcspn(message, " :");
    for (size_t i = 0; i < model->inputs; i++) {
        struct weft_port port = {.size = sizeof port};
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        const bool known = weft_plan_input(model->plan, i, &port) == WEFT_OK && port.name && *message == '%';
        const char *const name = known ? port.name : number, *const given = message + known;
        if (strlen(name) == length - known && strncmp(given, name, length - known) == 0)
            return (int)i;
    }
    return -1;
}

/* The symbols of the inputs as they were read; which files do not fit, if they do not. */
static int solve_sizes(const struct weft_model_options *options, const struct weft_model *model, int64_t *size)
{
    const struct weft_graph *graph = weft_plan_graph(model->plan);
    char message[512] = "", memory[4096];
    int wrong = -1;
    for (size_t i = 0; i < model->inputs && wrong < 0; i++) {
        const struct weft_type *type = weft_type_of(graph, graph->param[i]);
        if (type->dtype == model->input[i].dtype && type->rank == model->input[i].rank)
            continue;
        snprintf(message, sizeof message, "input %zu has another type or rank than the model", i);
        wrong = (int)i;
    }
    if (wrong < 0 && weft_solve_symbols(graph, model->input, (uint32_t)model->inputs, size, message,
                                        sizeof message) == WEFT_OK)
        return check_sizes(&options->sizes, graph->dims, size);
    wrong = wrong < 0 ? input_of(model, message) : wrong;
    if (wrong < 0)
        fprintf(stderr, "weft: %s\n", message);
    else
        fprintf(stderr, "weft: %s: %s\n", input_path(options, (size_t)wrong, memory), message);
    show_files(options, model);
    return WEFT_EXIT_FAILED;
}

/* --- placed ------------------------------------------------------------------------------------------------------- */

/* Makes room for input i in the layout that the plan reads; the input itself where it has that layout. */
static bool prepare_place(struct weft_model *model, size_t i, const int64_t *size)
{
    const struct weft_plan *plan = model->plan;
    const weft_val value = plan->graph->param[i];
    const struct weft_storage *storage = &plan->storage[plan->param_storage[i]];
    const struct weft_layout layout = weft_layout_of(plan->graph, value);
    struct weft_tensor *bound = &model->bound[i];
    *bound = model->input[i];
    bool same = !weft_value_of(plan->graph, value)->is_mut && layout.align <= 64;
    int64_t last = 0;
    for (int axis = 0; axis < bound->rank; axis++) {
        bound->stride[axis] = weft_dim_evaluate(plan->graph->dims, storage->stride[axis], size);
        int64_t reach;
        if (bound->extent[axis] == 0)
            return true; /* of an empty array, nothing is read */
        if (__builtin_mul_overflow(bound->extent[axis] - 1, bound->stride[axis], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            last = INT64_MAX / 64;
        same = same && (bound->extent[axis] == 1 || bound->stride[axis] == model->input[i].stride[axis]);
    }
    if (same)
        return true;
    bound->data = last < (int64_t)1 << 40 ? new_memory(bound->dtype, last + 1, layout.align > 64 ? layout.align : 64)
                                          : NULL;
    if (!bound->data)
        fprintf(stderr, "weft: no memory for input %zu in the layout of the plan\n", i);
    return bound->data;
}

void weft_model_place_inputs(struct weft_model *model)
{
    for (size_t i = 0; i < model->inputs; i++) {
        const struct weft_tensor *from = &model->input[i], *to = &model->bound[i];
        if (to->data && to->data != from->data)
            weft_tensor_copy(to, 0, from, 0);
    }
}

static int bind_inputs(const struct weft_model_options *options, struct weft_model *model, const int64_t *size)
{
    for (size_t i = 0; i < model->inputs; i++)
        if (!prepare_place(model, i, size))
            return WEFT_EXIT_FAILED;
    weft_model_place_inputs(model);
    for (size_t i = 0; i < model->inputs; i++) {
        if (weft_bind_input(model->execution, i, &model->bound[i]) < 0) {
            fprintf(stderr, "weft: %s\n", weft_execution_error(model->execution));
            if (!model->random)
                show_files(options, model);
            return WEFT_EXIT_FAILED;
        }
    }
    return WEFT_EXIT_OK;
}

void weft_model_drop_inputs(struct weft_model *model)
{
    for (size_t i = 0; i < model->inputs; i++) {
        if (model->bound[i].data != model->input[i].data)
            weft_npy_free(&model->bound[i]);
        weft_npy_free(&model->input[i]);
        model->bound[i] = model->input[i] = (struct weft_tensor){0};
    }
}

int weft_model_make_inputs(const struct weft_model_options *options, struct weft_model *model)
{
    weft_model_drop_inputs(model);
    const struct weft_dims *dims = weft_plan_graph(model->plan)->dims;
    int64_t *size = calloc(weft_symbol_count(dims) + 1, sizeof *size);
    if (!size) {
        fprintf(stderr, "weft: out of memory\n");
        return WEFT_EXIT_FAILED;
    }
    int code;
    if (options->inputs.count == 0 && !options->folder) {
        code = weft_model_sizes(&options->sizes, dims, size);
        code = code == WEFT_EXIT_OK ? invent_inputs(model, size) : code;
    } else {
        code = read_inputs(options, model);
        code = code == WEFT_EXIT_OK ? solve_sizes(options, model, size) : code;
    }
    code = code == WEFT_EXIT_OK ? bind_inputs(options, model, size) : code;
    free(size);
    return code;
}
