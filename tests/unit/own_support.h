/* SPDX-License-Identifier: Apache-2.0 */
/* own_support.h: kernels of a framework that has its own: plain loops over arrays in any layout. `user` of each is a
 * struct own_kernel. Behind them, what tests of plans for such kernels share. */
#ifndef WEFT_TEST_OWN_SUPPORT_H
#define WEFT_TEST_OWN_SUPPORT_H

#include "tests/unit/plan_support.h"

#include <stdatomic.h>

struct own_kernel {
    const char *const *layout; /* of operands, then of the result; NULL: row-major */
    int32_t parts;             /* that it asks for */
    int status;                /* that it returns */
    double us;                 /* its cost, beside 1 */
    int64_t least_channels;    /* operand 0 has at least so many, or the kernel does not fit */
    bool in_place;
    _Atomic int calls, parts_done;
};

static inline const char *own_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    const struct own_kernel *own = user;
    return own->layout[i];
}

static inline double own_cost(void *user, const struct weft_graph *graph, weft_node node)
{
    return 1 + ((const struct own_kernel *)user)->us;
}

static inline bool own_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct own_kernel *own = user;
    struct weft_value_facts x = {.size = sizeof x};
    weft_value_read(graph, weft_node_operand(graph, node, 0), &x);
    return x.rank < 2 || x.hint[1] >= own->least_channels;
}

static inline int32_t own_parts(void *user, const struct weft_kernel_call *call)
{
    return ((struct own_kernel *)user)->parts;
}

static inline bool own_in_place(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return ((struct own_kernel *)user)->in_place;
}

static inline float *own_at(const struct weft_kernel_array *a, const int64_t *index)
{
    int64_t place = 0;
    for (int k = 0; k < a->storage_axes; k++) {
        const struct weft_storage_axis *axis = &a->storage[k];
        const int64_t digit = index[axis->axis] / axis->div;
        place += (axis->mod ? digit % axis->mod : digit) * axis->stride;
    }
    return (float *)a->data + place;
}

/* The next index of an array; false behind the last. */
static inline bool own_next(const struct weft_kernel_array *a, int64_t *index)
{
    int axis = a->rank - 1;
    while (axis >= 0 && ++index[axis] >= a->extent[axis])
        index[axis--] = 0;
    return axis >= 0;
}

static inline bool own_is_empty(const struct weft_kernel_array *a)
{
    bool empty = false;
    for (int i = 0; i < a->rank; i++)
        empty |= a->extent[i] == 0;
    return empty;
}

static inline int own_begin(void *user, const struct weft_kernel_call *call)
{
    struct own_kernel *own = user;
    own->calls++;
    own->parts_done |= 1 << call->part;
    if (own->status)
        snprintf(call->message, call->message_bytes, "as it was told");
    return own->status;
}

/* Of every element whose number leaves this remainder, so that parts are not one piece. */
static inline int own_conv(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *x = &call->operand[0], *w = &call->operand[1], *y = call->result;
    struct weft_attribute pad = {0};
    int64_t i[WEFT_MAX_RANK] = {0}, number = 0, before = 0;
    weft_node_attribute(call->graph, call->node, "pad", &pad);
    if (pad.count && weft_call_extent(call, pad.integers[0], &before) != WEFT_OK)
        return 99;
    do {
        if (own_is_empty(y) || number++ % call->parts != call->part)
            continue;
        float sum = 0;
        for (int64_t c = 0; c < w->extent[1]; c++)
            for (int64_t r = 0; r < w->extent[2]; r++)
                for (int64_t s = 0; s < w->extent[3]; s++) {
                    const int64_t at[] = {i[0], c, i[2] + r - before, i[3] + s - before}, tap[] = {i[1], c, r, s};
                    if (at[2] >= 0 && at[2] < x->extent[2] && at[3] >= 0 && at[3] < x->extent[3])
                        sum += *own_at(x, at) * *own_at(w, tap);
                }
        *own_at(y, i) = sum;
    } while (own_next(y, i));
    return own_begin(user, call);
}

static inline int own_relu(void *user, const struct weft_kernel_call *call)
{
    int64_t i[WEFT_MAX_RANK] = {0}, number = 0;
    do {
        if (!own_is_empty(call->result) && number++ % call->parts == call->part) {
            const float x = *own_at(call->operand, i);
            *own_at(call->result, i) = x > 0 ? x : 0;
        }
    } while (own_next(call->result, i));
    return own_begin(user, call);
}

static inline int own_binary(void *user, const struct weft_kernel_call *call)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    int64_t i[WEFT_MAX_RANK] = {0};
    weft_node_read(call->graph, call->node, &facts);
    do {
        if (own_is_empty(call->result))
            continue;
        const float a = *own_at(&call->operand[0], i), b = *own_at(&call->operand[1], i);
        *own_at(call->result, i) = !strcmp(facts.op, "add") ? a + b : a * b;
    } while (own_next(call->result, i));
    return own_begin(user, call);
}

static inline struct weft_kernel own_kernel_of(const char *name, const char *op, struct own_kernel *own,
                                               int (*run)(void *, const struct weft_kernel_call *))
{
    return (struct weft_kernel){.size = sizeof(struct weft_kernel), .name = name, .op = op, .user = own, .run = run,
                                .fits = own_fits, .layout = own->layout ? own_layout : NULL, .cost = own_cost,
                                .parts = own_parts, .in_place = own_in_place};
}

/* --- a graph, a target and its plan ------------------------------------------------------------------------------- */

#define NET(C, K) "graph @g<N>(%x: f32[N," C ",6,5]) {\n" \
                  "  %w1: f32[" K "," C ",3,3] = const random=1 scale=0.1\n" \
                  "  %w2: f32[" K "," K ",3,3] = const random=2 scale=0.1\n" \
                  "  %w3: f32[10," K ",1,1] = const random=3 scale=0.1\n" \
                  "  %c1: f32[N," K ",6,5] = conv %x, %w1 pad=[1 1 1 1]\n" \
                  "  %a1: f32[N," K ",6,5] = relu %c1\n" \
                  "  %c2: f32[N," K ",6,5] = conv %a1, %w2 pad=[1 1 1 1]\n" \
                  "  %a2: f32[N," K ",6,5] = add %c2, %a1\n" \
                  "  %y: f32[N,10,6,5] = conv %a2, %w3\n" \
                  "  return %y\n}"

static const char *const blocked[] = {"{0 1/16 2 3 1%16}", "{0/16 1/16 2 3 1%16 0%16}", "{0 1/16 2 3 1%16}"};
static const char *const blocked_pair[] = {"{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}"};
static const char *const rows[] = {"{0 1 2 3}", "{0 1 2 3}", "{0 1 2 3}"};

struct world {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_target *target;
    struct weft_plan *plan;
    struct weft_execution *execution;
};

static inline struct world open_world(const char *text, int threads, size_t kernels, const struct weft_kernel *kernel)
{
    struct world w = {.context = open_context(threads)};
    w.graph = parse(w.context, text);
    assert_int_equal(weft_target_create(w.context, &w.target), WEFT_OK);
    for (size_t i = 0; i < kernels; i++)
        assert_int_equal(weft_target_add(w.target, &kernel[i]), WEFT_OK);
    return w;
}

/* The target goes at once: the plan has to do without it. */
static inline void plan_world(struct world *w, uint32_t flags)
{
    const struct weft_compile_options options = {.size = sizeof options, .target = w->target, .flags = flags};
    if (weft_compile(w->graph, &options, &w->plan) != WEFT_OK)
        fail_msg("%s", weft_last_error(w->context));
    weft_target_destroy(w->target);
    w->target = NULL;
    assert_int_equal(weft_execution_create(w->plan, &w->execution), WEFT_OK);
}

static inline void close_world(struct world *w)
{
    weft_execution_destroy(w->execution);
    weft_plan_destroy(w->plan);
    weft_target_destroy(w->target);
    weft_graph_destroy(w->graph);
    weft_close(w->context);
}

static inline void expect_near(const float *got, const float *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= tolerance))
            fail_msg("element %lld is %g, not %g", (long long)i, (double)got[i], (double)expected[i]);
}

/* Runs with these inputs, and compares all results with the evaluator's. */
static inline void run_and_compare(struct world *w, struct weft_tensor *in, size_t inputs)
{
    for (size_t i = 0; i < inputs; i++)
        assert_int_equal(weft_bind_input(w->execution, i, &in[i]), WEFT_OK);
    if (weft_run(w->execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(w->execution));
    struct weft_tensor expected[4] = {{0}}, got;
    const size_t results = weft_graph_returns(w->graph);
    assert_int_equal(weft_evaluate(w->graph, in, inputs, expected, results), WEFT_OK);
    for (size_t k = 0; k < results; k++) {
        assert_int_equal(weft_output(w->execution, k, &got), WEFT_OK);
        expect_near(got.data, expected[k].data, weft_tensor_count(&got), 1e-4);
        weft_tensor_free(w->context, &expected[k]);
    }
}

static inline int count_steps(const struct weft_plan *plan, const char *kernel)
{
    struct weft_plan_step step = {.size = sizeof step};
    int count = 0;
    for (size_t i = 0; weft_plan_step(plan, i, &step) == WEFT_OK; i++)
        count += kernel ? !strcmp(step.kernel, kernel) : step.op && !strcmp(step.op, "relayout");
    return count;
}

#endif
