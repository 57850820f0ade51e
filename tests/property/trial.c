/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c: inputs for a graph, and its plans run on them.
 *
 * Tame numbers are small, and whole ones are near 0, so that they are good indices. Hostile ones are what rules and
 * kernels get wrong: zeros of both signs, infinities, NaN, ends of integers. Elements follow from the graph's name, so
 * that a text is all that a failure needs. */
#include "tests/property/trial.h"

#include "runtime/runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t weft_run_size(const struct weft_symbol_info *symbol, int i)
{
    const int64_t wanted = i == 0 ? symbol->low : i == 1 ? (symbol->hint ? symbol->hint : symbol->low + 1)
                                                        : symbol->low + 5;
    return wanted > symbol->high ? symbol->high : wanted;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static void fill_element(const struct weft_tensor *tensor, int64_t place, bool hostile, uint64_t bits)
{
    static const double reals[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, -2.5, 1e-30, 3e4, -3e4, 2, 3};
    static const int64_t whole[] = {0, 1, 2, 3, -1, 127, -128, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                    (INT64_C(1) << 53) + 1, -100};
    const int dtype = tensor->dtype;
    const double calm = (double)(int64_t)(bits >> 11) * 0x1p-51 - 2;
    if (weft_dtype_is_float(dtype))
        weft_store_real(dtype, tensor->data, place, hostile && bits % 3 == 0 ? reals[bits / 3 % 14] : calm);
    else if (dtype == WEFT_BOOL)
        weft_store_integer(dtype, tensor->data, place, (int64_t)(bits >> 63));
    else
        weft_store_integer(dtype, tensor->data, place,
                           hostile ? whole[bits % 14] : (int64_t)(bits >> 40) % 7 - 2 * weft_dtype_is_signed(dtype));
}

/* Elements from the first to the last, or 0. */
static int64_t reach_of(const struct weft_tensor *tensor)
{
    int64_t reach = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->extent[i] < 0)
            return 0; /* sizes that the graph refuses */
        reach += tensor->extent[i] > 0 ? (tensor->extent[i] - 1) * tensor->stride[i] : 0;
    }
    return weft_tensor_count(tensor) == 0 ? 0 : reach;
}

/* Extents and strides as the graph states them, dense where it states blocks that no strides go through; the elements'
 * reach. */
static int64_t place_tensor(const struct weft_graph *graph, weft_val param, const int64_t *symbols,
                            struct weft_tensor *tensor)
{
    const struct weft_type *type = weft_type_of(graph, param);
    const struct weft_layout layout = weft_layout_of(graph, param);
    weft_dim stride[WEFT_MAX_RANK];
    weft_tensor_of(graph, type, symbols, tensor);
    for (int i = 0; i < type->rank; i++) /* room for all sizes that may come out of data */
        tensor->extent[i] = weft_dim_most(graph->dims, type->extent[i], symbols);
    weft_tensor_dense(tensor);
    if (weft_layout_logical_strides(graph->dims, &layout, type, stride))
        for (int i = 0; i < type->rank; i++)
            tensor->stride[i] = weft_dim_most(graph->dims, stride[i], symbols);
    return reach_of(tensor);
}

/* The same for result i, in the layout that the plan chose where the graph does not require one. False where that
 * depends on a size. */
static bool place_result(const struct weft_trial *trial, const struct weft_planned *planned, uint32_t i,
                         struct weft_tensor *tensor, int64_t *ret_reach)
{
    const struct weft_graph *graph = trial->graph;
    struct weft_port port = {.size = sizeof port};
    *ret_reach = place_tensor(graph, graph->ret[i].value, trial->symbols, tensor);
    const struct weft_layout layout = weft_layout_of(graph, graph->ret[i].value);
    if (layout.kind == WEFT_STORED && layout.strength == WEFT_REQUIRED)
        return true;
    if (weft_plan_output(planned->plan, i, &port) != WEFT_OK)
        abort();
    for (int axis = 0; axis < port.rank; axis++) {
        if (port.stride[axis] < 0)
            return false;
        tensor->stride[axis] = port.stride[axis];
    }
    *ret_reach = reach_of(tensor);
    return true;
}

static void *new_memory(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 64, bytes ? bytes : 1) != 0)
        abort();
    return memory;
}

void weft_trial_fill(struct weft_trial *trial, int size, bool hostile)
{
    const struct weft_graph *graph = trial->graph;
    struct weft_dims *dims = graph->dims;
    int length = snprintf(trial->what, sizeof trial->what, "%s numbers", hostile ? "hostile" : "tame");
    for (uint32_t s = 0; s < weft_symbol_count(dims); s++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(dims, s);
        trial->symbols[s] = symbol->data ? 0 : weft_run_size(symbol, size);
        if (!symbol->data && length < 120)
            length += snprintf(trial->what + length, sizeof trial->what - (size_t)length, ", %.10s=%lld", symbol->name,
                               (long long)trial->symbols[s]);
    }
    weft_symbols_at_bounds(dims, trial->symbols);
    uint64_t state = 7;
    for (const char *c = graph->name; c && *c; c++)
        state = state * 31 + (unsigned char)*c;
    trial->in = calloc(graph->params + 1, sizeof *trial->in);
    trial->memory = calloc(graph->params + 1, sizeof *trial->memory);
    for (uint32_t i = 0; i < graph->params; i++) {
        struct weft_tensor *tensor = &trial->in[i];
        const int64_t reach = place_tensor(graph, graph->param[i], trial->symbols, tensor);
        tensor->data = trial->memory[i] = new_memory((size_t)weft_dtype_bytes(tensor->dtype, reach));
        for (int64_t k = 0; k < reach; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            fill_element(tensor, k, hostile, (state ^ state >> 29) * 0xbf58476d1ce4e5b9u);
        }
    }
}

void weft_trial_empty(struct weft_trial *trial)
{
    for (uint32_t i = 0; i < trial->graph->params; i++)
        free(trial->memory[i]);
    free(trial->memory);
    free(trial->in);
    trial->memory = NULL;
    trial->in = NULL;
    for (uint32_t i = 0; trial->first && i < trial->graph->returns; i++)
        weft_tensor_free(trial->graph->context, &trial->first[i]);
    free(trial->first);
    trial->first = NULL;
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* Memory of one run: what it updates, and what it writes. */
struct ports {
    void **memory;
    size_t count;
};

static void *keep(struct ports *ports, size_t bytes) { return ports->memory[ports->count++] = new_memory(bytes); }

static size_t input_bytes(const struct weft_trial *trial, uint32_t i)
{
    struct weft_tensor same;
    const int64_t reach = place_tensor(trial->graph, trial->graph->param[i], trial->symbols, &same);
    return (size_t)weft_dtype_bytes(trial->in[i].dtype, reach);
}

static bool is_static_float(const struct weft_trial *trial, uint32_t i)
{
    return weft_value_of(trial->graph, trial->graph->param[i])->is_static && weft_dtype_is_float(trial->in[i].dtype);
}

/* A run with other weights in static inputs, which the next run must not remember: `copy`, by input, of those that are
 * no more as they were given. Which sizes come of it, and whether it fails, is of no interest. */
static bool run_before(const struct weft_trial *trial, const struct weft_planned *planned, void *const *copy)
{
    const uint32_t params = trial->graph->params;
    uint32_t statics = 0;
    for (uint32_t i = 0; i < params; i++)
        if (is_static_float(trial, i)) {
            memset(copy[i], 0, input_bytes(trial, i));
            statics++;
        }
    if (statics == 0)
        return true;
    weft_run(planned->execution);
    for (uint32_t i = 0; i < params; i++)
        if (copy[i])
            memcpy(copy[i], trial->in[i].data, input_bytes(trial, i));
    for (uint32_t i = 0; i < params; i++)
        if (is_static_float(trial, i) && statics % 2 && weft_refresh(planned->execution, i) != WEFT_OK)
            return false;
    return statics % 2 || weft_refresh(planned->execution, WEFT_ALL_INPUTS) == WEFT_OK;
}

/* Binds inputs, those that are updated or change as copies; with `outputs`, results to memory of ours. */
static bool bind(struct weft_trial *trial, const struct weft_planned *planned, bool outputs, struct ports *ports,
                 void **copy)
{
    const struct weft_graph *graph = trial->graph;
    for (uint32_t i = 0; i < graph->params; i++) {
        struct weft_tensor tensor = trial->in[i];
        if (weft_value_of(graph, graph->param[i])->is_mut || is_static_float(trial, i)) {
            tensor.data = copy[i] = keep(ports, input_bytes(trial, i));
            memcpy(tensor.data, trial->in[i].data, input_bytes(trial, i));
        }
        if (weft_bind_input(planned->execution, i, &tensor) != WEFT_OK)
            return false;
    }
    for (uint32_t i = 0; i < graph->returns; i++) {
        struct weft_tensor tensor = {0};
        int64_t reach;
        if (!outputs || graph->ret[i].mut.id || !place_result(trial, planned, i, &tensor, &reach))
            continue;
        tensor.data = keep(ports, (size_t)weft_dtype_bytes(tensor.dtype, reach));
        if (weft_bind_output(planned->execution, i, &tensor) != WEFT_OK)
            return false;
    }
    return run_before(trial, planned, copy) && weft_run(planned->execution) == WEFT_OK;
}

/* The results of the last run as packed tensors. */
static bool take_results(const struct weft_trial *trial, const struct weft_planned *planned, struct weft_tensor *ret)
{
    for (uint32_t i = 0; i < trial->graph->returns; i++) {
        struct weft_tensor tensor;
        if (weft_output(planned->execution, i, &tensor) != WEFT_OK)
            return false;
        ret[i] = tensor;
        weft_tensor_dense(&ret[i]);
        ret[i].data = weft_trial_allocate(trial->graph->context, &ret[i]);
        memset(ret[i].data, 0, weft_tensor_bytes(&ret[i]));
        weft_tensor_copy(&ret[i], 0, &tensor, 0);
    }
    return true;
}

/* Whether two runs gave the same bits; where not, `message` names the first element that differs. A NaN is a NaN: which
 * of two NaNs an op hands on is free, and compiled code that takes over between two runs may choose the other. */
static bool same_bits(const struct weft_trial *trial, const struct weft_tensor *a, const struct weft_tensor *b,
                      char *message, size_t size)
{
    for (uint32_t i = 0; i < trial->graph->returns; i++) {
        const int dtype = a[i].dtype;
        const int64_t count = weft_tensor_count(&a[i]);
        if (weft_tensor_count(&b[i]) != count) {
            snprintf(message, size, "result %u has another size", (unsigned)i);
            return false;
        }
        if (memcmp(a[i].data, b[i].data, (size_t)weft_dtype_bytes(dtype, count)) == 0)
            continue;
        if (!weft_dtype_is_float(dtype)) {
            snprintf(message, size, "result %u has other bytes", (unsigned)i);
            return false;
        }
        for (int64_t k = 0; k < count; k++) {
            const double x = weft_load_real(dtype, a[i].data, k), y = weft_load_real(dtype, b[i].data, k);
            if (x == y ? signbit(x) != signbit(y) : !(isnan(x) && isnan(y))) {
                snprintf(message, size, "element %" PRId64 " of result %u: %.17g, not %.17g", k, (unsigned)i, x, y);
                return false;
            }
        }
    }
    return true;
}

static bool run_once(struct weft_trial *trial, const struct weft_planned *planned, bool outputs,
                     struct weft_tensor *ret)
{
    struct ports ports = {.memory = calloc(trial->graph->params + trial->graph->returns + 1, sizeof *ports.memory)};
    void **const copy = calloc(trial->graph->params + 1, sizeof *copy);
    const bool done = bind(trial, planned, outputs, &ports, copy) && take_results(trial, planned, ret);
    free(copy);
    for (uint32_t i = 0; i < trial->graph->returns; i++)
        weft_bind_output(planned->execution, i, NULL);
    for (size_t i = 0; i < ports.count; i++)
        free(ports.memory[i]);
    free(ports.memory);
    return done;
}

static void release(const struct weft_trial *trial, struct weft_tensor *tensor)
{
    for (uint32_t i = 0; tensor && i < trial->graph->returns; i++)
        weft_tensor_free(trial->graph->context, &tensor[i]);
    free(tensor);
}

enum weft_outcome weft_trial_run(struct weft_trial *trial, int p, const struct weft_tensor *want,
                                 struct weft_noise *noise)
{
    const struct weft_planned *planned = &trial->planned[p];
    const char *const name = trial->machine->name[p];
    const uint32_t returns = trial->graph->returns;
    struct weft_tensor *got = calloc(returns + 1, sizeof *got), *again = calloc(returns + 1, sizeof *again);
    enum weft_outcome failure = WEFT_HOLDS;
    char message[256];
    struct weft_noise *const noises[] = {&noise[trial->variants - 1], &noise[trial->variants]}; /* all passes, none */
    if (!run_once(trial, planned, false, got) ||
        (trial->machine->compiled && weft_plan_wait(planned->plan) != WEFT_OK) ||
        !run_once(trial, planned, true, again))
        failure = weft_trial_fail(trial, WEFT_FAILS_RUN, "plan for %s, %s: does not run: %s", name, trial->what,
                                  weft_execution_error(planned->execution));
    else if (!weft_judge(want, got, returns, noises, 2, false, message, sizeof message))
        failure = weft_trial_fail(trial, WEFT_FAILS_RESULT, "plan for %s, %s: %s", name, trial->what, message);
    else if (!same_bits(trial, got, again, message, sizeof message))
        failure = weft_trial_fail(trial, WEFT_FAILS_AGAIN,
                                  "plan for %s, %s: bound results%s have other bits than unbound ones: %s", name,
                                  trial->what, trial->machine->compiled ? " of compiled code" : "", message);
    else if (planned->same && !same_bits(trial, got, trial->first, message, sizeof message))
        failure = weft_trial_fail(trial, WEFT_FAILS_THREADS,
                                  "plan for %s, %s: other bits than with one thread more: %s", name, trial->what,
                                  message);
    release(trial, again);
    release(trial, trial->first);
    trial->first = got;
    return failure;
}

void weft_trial_run_refused(struct weft_trial *trial, int p)
{
    const uint32_t returns = trial->graph->returns;
    struct weft_tensor *got = calloc(returns + 1, sizeof *got);
    run_once(trial, &trial->planned[p], false, got);
    release(trial, got);
}
