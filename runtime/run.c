/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: executions: binding tensors, walking through the steps on a gang.
 *
 * All workers walk through all steps; a step cut into parts is shared out, a step of one part is done by worker 0. A
 * barrier stands before a step only where the work changes hands: between two steps of one part worker 0 goes on. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- life --------------------------------------------------------------------------------------------------------- */

#define NEW(execution, member, count) \
    ((execution)->member = weft_allocate((execution)->plan->context, sizeof *(execution)->member * ((count) + 1)), \
     (execution)->member ? (memset((execution)->member, 0, sizeof *(execution)->member * ((count) + 1)), true) : false)
#define OLD(execution, member, count) \
    weft_release((execution)->plan->context, (execution)->member, sizeof *(execution)->member * ((count) + 1))

int weft_execution_create(const struct weft_plan *plan, struct weft_execution **ret_execution)
{
    struct weft_execution *e = weft_allocate(plan->context, sizeof *e);
    if (!e)
        return WEFT_ERR_NOMEM;
    *e = (struct weft_execution){.plan = plan};
    const struct weft_graph *g = plan->graph;
    if (!NEW(e, input, g->params) || !NEW(e, output, g->returns) || !NEW(e, output_bound, g->returns) ||
        !NEW(e, own, g->returns) || !NEW(e, base, plan->storages) || !NEW(e, symbols, weft_symbol_count(g->dims))) {
        weft_execution_destroy(e);
        return WEFT_ERR_NOMEM;
    }
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_CONSTANT)
            e->base[i] = (void *)plan->storage[i].data;
    *ret_execution = e;
    return WEFT_OK;
}

static void free_pack(const struct weft_execution *e, struct weft_pack *pack)
{
    weft_release(e->plan->context, pack->data, pack->bytes);
    *pack = (struct weft_pack){0};
}

void weft_execution_destroy(struct weft_execution *e)
{
    if (!e)
        return;
    const struct weft_graph *g = e->plan->graph;
    for (int i = 0; i < WEFT_FRAMES; i++)
        weft_frame_free(e->plan, e->cache[i]);
    free_pack(e, &e->arena);
    free_pack(e, &e->scratch);
    for (uint32_t i = 0; e->own && i < g->returns; i++)
        free_pack(e, &e->own[i]);
    OLD(e, input, g->params);
    OLD(e, output, g->returns);
    OLD(e, output_bound, g->returns);
    OLD(e, own, g->returns);
    OLD(e, base, e->plan->storages);
    OLD(e, symbols, weft_symbol_count(g->dims));
    weft_release(e->plan->context, e, sizeof *e);
}

const char *weft_execution_error(const struct weft_execution *e) { return e->error; }

static int fail(struct weft_execution *e, int status, const char *format, ...) WEFT_PRINTF(3, 4);
static int fail(struct weft_execution *e, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->error, sizeof e->error, format, arguments);
    va_end(arguments);
    return status;
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static const char *name_of(const struct weft_graph *g, weft_val v)
{
    return g->value[v.id].name ? g->value[v.id].name : "?";
}

/* Type and rank; extents are checked when all inputs are there, since symbols tie them together. */
static int check_tensor(struct weft_execution *e, const char *what, size_t i, weft_val v, const struct weft_tensor *t)
{
    const struct weft_graph *g = e->plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    if (!t)
        return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': no tensor", what, i, name_of(g, v));
    if (t->dtype != type->dtype)
        return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': the plan has %s, the tensor %s", what, i, name_of(g, v),
                    weft_dtype_name(type->dtype), weft_dtype_name(t->dtype) ? weft_dtype_name(t->dtype) : "no dtype");
    if (t->rank != type->rank)
        return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': the plan has rank %d, the tensor %d", what, i, name_of(g, v),
                    type->rank, t->rank);
    int64_t elements = 1;
    bool empty = false;
    for (int axis = 0; axis < t->rank; axis++) {
        if (t->extent[axis] < 0 || t->stride[axis] < 0)
            return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': extent or stride of axis %d is negative", what, i,
                        name_of(g, v), axis);
        if (__builtin_mul_overflow(elements, t->extent[axis] ? t->extent[axis] : 1, &elements) || elements > (int64_t)1
                                                                                                                 << 46)
            return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': too many elements", what, i, name_of(g, v));
        empty |= t->extent[axis] == 0;
    }
    if (empty)
        return WEFT_OK;
    const unsigned bytes = weft_dtype_bits(type->dtype) / 8;
    if (!t->data || (bytes && (uintptr_t)t->data % bytes != 0))
        return fail(e, WEFT_ERR_BINDING, "%s %zu '%s': data is %s", what, i, name_of(g, v),
                    t->data ? "not aligned to its element type" : "NULL");
    return WEFT_OK;
}

int weft_bind_input(struct weft_execution *e, size_t i, const struct weft_tensor *tensor)
{
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->params)
        return fail(e, WEFT_ERR_ARGUMENT, "there is no input %zu: the plan has %u", i, g->params);
    const int status = check_tensor(e, "input", i, g->param[i], tensor);
    if (status != WEFT_OK)
        return status;
    static char nothing[1];
    e->input[i] = *tensor;
    if (!e->input[i].data)
        e->input[i].data = nothing; /* empty, and bound */
    e->frame = NULL;
    return WEFT_OK;
}

int weft_bind_output(struct weft_execution *e, size_t i, const struct weft_tensor *tensor)
{
    const struct weft_graph *g = e->plan->graph;
    if (i >= g->returns)
        return fail(e, WEFT_ERR_ARGUMENT, "there is no output %zu: the plan has %u", i, g->returns);
    const int status = tensor ? check_tensor(e, "output", i, g->ret[i].value, tensor) : WEFT_OK;
    if (status != WEFT_OK)
        return status;
    e->output_bound[i] = tensor != NULL; /* NULL: back to memory of the execution */
    if (tensor)
        e->output[i] = *tensor;
    e->frame = NULL;
    return WEFT_OK;
}

static void port_tensor(const struct weft_execution *e, const struct weft_storage *storage, struct weft_tensor *ret)
{
    const struct weft_dims *dims = e->plan->graph->dims;
    const struct weft_type *type = weft_type_of(e->plan->graph, storage->value);
    *ret = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) {
        ret->extent[i] = weft_dim_evaluate(dims, type->extent[i], e->symbols);
        ret->stride[i] = weft_dim_evaluate(dims, storage->stride[i], e->symbols);
    }
}

/* Axes of extent 1 have no place in memory, so their strides do not count; nor do those of an empty array. */
static int check_port(struct weft_execution *e, const char *what, uint32_t i, const struct weft_storage *storage,
                      const struct weft_tensor *t)
{
    struct weft_tensor want;
    port_tensor(e, storage, &want);
    const char *name = name_of(e->plan->graph, storage->value);
    bool empty = false;
    for (int axis = 0; axis < want.rank; axis++) {
        if (t->extent[axis] != want.extent[axis])
            return fail(e, WEFT_ERR_BINDING, "%s %u '%s': axis %d has extent %lld, the plan needs %lld", what, i, name,
                        axis, (long long)t->extent[axis], (long long)want.extent[axis]);
        empty |= want.extent[axis] == 0;
    }
    for (int axis = 0; axis < want.rank && !empty; axis++)
        if (want.extent[axis] != 1 && t->stride[axis] != want.stride[axis])
            return fail(e, WEFT_ERR_BINDING, "%s %u '%s': axis %d has stride %lld, the plan's layout %lld", what, i,
                        name, axis, (long long)t->stride[axis], (long long)want.stride[axis]);
    return WEFT_OK;
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

static int solve(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    for (uint32_t i = 0; i < g->params; i++)
        if (!e->input[i].data)
            return fail(e, WEFT_ERR_BINDING, "input %u '%s' is not bound", i, name_of(g, g->param[i]));
    const int status = weft_solve_symbols(g, e->input, g->params, e->symbols, e->error, sizeof e->error);
    if (status != WEFT_OK)
        return status;
    if (!weft_check_sizes(g, e->symbols, e->error, sizeof e->error))
        return WEFT_ERR_BINDING;
    for (uint32_t i = 0; i < g->params; i++) {
        const int fits = check_port(e, "input", i, &e->plan->storage[e->plan->param_storage[i]], &e->input[i]);
        if (fits != WEFT_OK)
            return fits;
    }
    return WEFT_OK;
}

static struct weft_frame *find_frame(struct weft_execution *e)
{
    const size_t bytes = weft_symbol_count(e->plan->graph->dims) * sizeof *e->symbols;
    int oldest = 0;
    for (int i = 0; i < WEFT_FRAMES; i++) {
        if (e->cache[i] && memcmp(e->cache[i]->symbols, e->symbols, bytes) == 0)
            return e->cache[i];
        if (!e->cache[i] || (e->cache[oldest] && e->cache[i]->used < e->cache[oldest]->used))
            oldest = i;
    }
    struct weft_frame *frame = weft_frame_new(e->plan, e->symbols);
    if (frame) {
        weft_frame_free(e->plan, e->cache[oldest]);
        e->cache[oldest] = frame;
    }
    return frame;
}

static bool reserve(struct weft_execution *e, struct weft_pack *pack, size_t bytes)
{
    if (pack->bytes >= bytes && pack->data)
        return true;
    free_pack(e, pack);
    pack->data = weft_allocate(e->plan->context, bytes);
    pack->bytes = bytes;
    if (!pack->data)
        pack->bytes = 0;
    return pack->data != NULL;
}

static int place_outputs(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    for (uint32_t i = 0; i < plan->graph->returns; i++) {
        const struct weft_storage *storage = &plan->storage[plan->return_storage[i]];
        if (e->output_bound[i]) {
            const int fits = check_port(e, "output", i, storage, &e->output[i]);
            if (fits != WEFT_OK)
                return fits;
        } else {
            port_tensor(e, storage, &e->output[i]);
            const int64_t bytes = weft_dtype_bytes(storage->dtype, weft_tensor_span(&e->output[i]));
            if (!reserve(e, &e->own[i], (size_t)bytes + 64))
                return fail(e, WEFT_ERR_NOMEM, "out of memory for output %u (%lld bytes)", i, (long long)bytes);
            e->output[i].data = e->own[i].data;
        }
        e->base[plan->return_storage[i]] = e->output[i].data;
    }
    return WEFT_OK;
}

/* The bytes from the first element to the last. */
static void span_of(const struct weft_tensor *t, uintptr_t *ret_first, uintptr_t *ret_end)
{
    *ret_first = (uintptr_t)t->data;
    *ret_end = *ret_first + (uintptr_t)weft_dtype_bytes(t->dtype, weft_tensor_span(t));
}

static bool overlap(const struct weft_tensor *a, const struct weft_tensor *b)
{
    uintptr_t a_first, a_end, b_first, b_end;
    span_of(a, &a_first, &a_end);
    span_of(b, &b_first, &b_end);
    return a_first < b_end && b_first < a_end && a_first < a_end && b_first < b_end;
}

/* What is written may not lie in what is read or written under another name: kernels rely on it, and the order of steps
 * says nothing about the caller's memory. */
static int check_overlaps(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    for (uint32_t i = 0; i < g->params; i++)
        for (uint32_t k = 0; g->value[g->param[i].id].is_mut && k < g->params; k++)
            if (k != i && overlap(&e->input[i], &e->input[k]))
                return fail(e, WEFT_ERR_BINDING, "mutable input %u '%s' overlaps input %u '%s'", i,
                            name_of(g, g->param[i]), k, name_of(g, g->param[k]));
    for (uint32_t i = 0; i < g->returns; i++) {
        for (uint32_t k = 0; e->output_bound[i] && k < g->params; k++)
            if (overlap(&e->output[i], &e->input[k]))
                return fail(e, WEFT_ERR_BINDING, "output %u '%s' overlaps input %u '%s'", i,
                            name_of(g, g->ret[i].value), k, name_of(g, g->param[k]));
        for (uint32_t k = 0; e->output_bound[i] && k < i; k++)
            if (e->output_bound[k] && overlap(&e->output[i], &e->output[k]))
                return fail(e, WEFT_ERR_BINDING, "output %u '%s' overlaps output %u '%s'", i,
                            name_of(g, g->ret[i].value), k, name_of(g, g->ret[k].value));
    }
    return WEFT_OK;
}

/* Reserves memory for new sizes; with sizes seen before, it only looks up. */
static int prepare(struct weft_execution *e)
{
    const struct weft_plan *plan = e->plan;
    int status = solve(e);
    if (status != WEFT_OK)
        return status;
    struct weft_frame *frame = find_frame(e);
    if (frame && frame->too_large.id)
        return fail(e, WEFT_ERR_NOMEM, "value %s is larger than memory can be for these inputs",
                    name_of(plan->graph, frame->too_large));
    if (!frame || !reserve(e, &e->arena, (size_t)frame->arena_bytes + 64) ||
        !reserve(e, &e->scratch, frame->scratch_bytes * (size_t)plan->workers + 64))
        return fail(e, WEFT_ERR_NOMEM, "out of memory for intermediates");
    frame->used = ++e->clock;
    status = place_outputs(e);
    if (status != WEFT_OK)
        return status;
    for (uint32_t i = 0; i < plan->graph->params; i++)
        e->base[plan->param_storage[i]] = e->input[i].data;
    status = check_overlaps(e);
    if (status != WEFT_OK)
        return status;
    for (uint32_t i = 1; i < plan->storages; i++)
        if (plan->storage[i].kind == WEFT_IN_ARENA)
            e->base[i] = (char *)e->arena.data + frame->place[i];
    e->frame = frame;
    return WEFT_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

struct run {
    struct weft_execution *execution;
    struct weft_barrier barrier;
    _Atomic bool failed;
    int64_t *ns;         /* per step, or NULL: not timed */
};

struct weft_tensor weft_call_tensor(const struct weft_call *call, weft_val value)
{
    struct weft_tensor t = call->frame->tensor[value.id];
    const int64_t size = weft_dtype_bits(t.dtype) / 8;
    t.data = (char *)call->base[call->plan->home[value.id].storage] + call->frame->offset[value.id] * size;
    return t;
}

static void fill_call(struct run *run, uint32_t number, int worker, struct weft_call *call)
{
    const struct weft_execution *e = run->execution;
    const struct weft_plan *plan = e->plan;
    const struct weft_step *step = &plan->step[number];
    const struct weft_frame_step *bound = &e->frame->step[number];
    *call = (struct weft_call){.plan = plan,
                               .step = step,
                               .frame = e->frame,
                               .base = e->base,
                               .failed = &run->failed,
                               .parts = bound->parts,
                               .scratch = (char *)e->scratch.data + (size_t)worker * e->frame->scratch_bytes};
    const uint32_t storage = step->to ? step->to : plan->home[step->out.id].storage;
    call->out = (char *)e->base[storage] + bound->out_offset;
    for (unsigned i = 0; i < step->inputs; i++) {
        const uint32_t from = step->from ? step->from : plan->home[step->in[i].id].storage;
        call->in[i] = (const char *)e->base[from] + bound->in_offset[i];
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void work(void *arg, int worker, int workers)
{
    struct run *run = arg;
    const struct weft_plan *plan = run->execution->plan;
    const struct weft_frame_step *bound = run->execution->frame->step;
    int64_t last = run->ns ? now_ns() : 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const int parts = bound[i].parts;
        if (parts > 1 || worker == 0) {
            struct weft_call call;
            fill_call(run, i, worker, &call);
            for (call.part = worker; call.part < parts; call.part += workers)
                call.step->kind->run(weft_frame_descriptor(run->execution->frame, call.step), &call);
        }
        const bool changes_hands = i + 1 < plan->steps && (parts > 1 || bound[i + 1].parts > 1);
        if (changes_hands || run->ns) /* timed: the wait belongs to the step that caused it */
            weft_barrier_wait(&run->barrier);
        if (run->ns && worker == 0) {
            const int64_t now = now_ns();
            run->ns[i] = now - last;
            last = now;
        }
    }
}

struct fork {
    struct run *run;
    uint32_t step;
    int parts;
};

static void work_on_part(void *arg, int part)
{
    const struct fork *fork = arg;
    struct weft_call call;
    fill_call(fork->run, fork->step, part, &call);
    call.part = part;
    call.step->kind->run(weft_frame_descriptor(fork->run->execution->frame, call.step), &call);
}

/* For executors that do not promise concurrent workers: one fork per kernel, which they may run in any order. */
static void work_by_forks(struct run *run)
{
    const struct weft_plan *plan = run->execution->plan;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const int64_t start = run->ns ? now_ns() : 0;
        struct fork fork = {.run = run, .step = i, .parts = run->execution->frame->step[i].parts};
        weft_fork_run(plan->context, fork.parts, work_on_part, &fork);
        if (run->ns)
            run->ns[i] = now_ns() - start;
    }
}

static int run_steps(struct weft_execution *e, int64_t *ns)
{
    e->error[0] = '\0';
    e->ran = false;
    if (!e->frame) {
        const int status = prepare(e);
        if (status != WEFT_OK)
            return status;
    }
    struct run run = {.execution = e, .ns = ns};
    const int workers = e->plan->workers < e->frame->most_parts ? e->plan->workers : e->frame->most_parts;
    if (workers > 1 && weft_gang_size(e->plan->context) == 1)
        work_by_forks(&run);
    else
        weft_gang_run(e->plan->context, workers, &run.barrier, work, &run);
    e->ran = !atomic_load(&run.failed);
    return e->ran ? WEFT_OK : fail(e, WEFT_ERR_NOMEM, "out of memory in a reference kernel");
}

int weft_run(struct weft_execution *e) { return run_steps(e, NULL); }

int weft_run_timed(struct weft_execution *e, void (*fn)(void *user, const char *kernel, const char *value, int64_t ns),
                   void *user)
{
    const struct weft_plan *plan = e->plan;
    int64_t *ns = weft_allocate(plan->context, (plan->steps + 1) * sizeof *ns);
    if (!ns)
        return fail(e, WEFT_ERR_NOMEM, "out of memory");
    const int status = run_steps(e, ns);
    e->total_ns = e->fallback_ns = e->relayout_ns = 0;
    for (uint32_t i = 0; status == WEFT_OK && i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        e->total_ns += ns[i];
        e->fallback_ns += step->kind == &weft_step_reference ? ns[i] : 0;
        e->relayout_ns += step->kind == &weft_step_copy ? ns[i] : 0;
        if (fn)
            fn(user, step->kind->kernel(weft_frame_descriptor(e->frame, step), step), name_of(plan->graph, step->out),
               ns[i]);
    }
    weft_release(plan->context, ns, (plan->steps + 1) * sizeof *ns);
    return status;
}

int weft_output(const struct weft_execution *e, size_t i, struct weft_tensor *ret_tensor)
{
    if (i >= e->plan->graph->returns || !e->ran)
        return WEFT_ERR_ARGUMENT;
    *ret_tensor = e->output[i];
    return WEFT_OK;
}

int weft_execution_statistics(const struct weft_execution *e, struct weft_statistics *ret_statistics)
{
    const struct weft_plan *plan = e->plan;
    const struct weft_statistics all = {.size = ret_statistics->size,
                                        .arena_bytes = (int64_t)e->arena.bytes,
                                        .constant_bytes = plan->constant_bytes,
                                        .kernels = (int32_t)plan->steps,
                                        .relayouts = plan->relayouts,
                                        .fallbacks = plan->fallbacks,
                                        .workers = plan->workers,
                                        .fallback_ns = e->fallback_ns,
                                        .relayout_ns = e->relayout_ns,
                                        .total_ns = e->total_ns};
    if (!ret_statistics->size)
        return WEFT_ERR_ARGUMENT;
    memcpy(ret_statistics, &all, ret_statistics->size < sizeof all ? ret_statistics->size : sizeof all);
    return WEFT_OK;
}
