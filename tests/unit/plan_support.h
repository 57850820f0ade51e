/* SPDX-License-Identifier: Apache-2.0 */
/* plan_support.h: what the tests of plans and of executors share: contexts with a counting allocator, graphs from text,
 * plans. */
#ifndef WEFT_TEST_PLAN_SUPPORT_H
#define WEFT_TEST_PLAN_SUPPORT_H

#include "runtime/runtime.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

#define FLOATS 4096

static int allocations; /* by counting_allocate */

static inline void *counting_allocate(void *user, size_t bytes, size_t align)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static inline void counting_release(void *user, void *memory, size_t bytes) { free(memory); }

static inline struct weft_context *open_context(int threads)
{
    struct weft_allocator allocator = {
        .size = sizeof allocator, .allocate = counting_allocate, .release = counting_release};
    struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = threads};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

static inline struct weft_graph *parse(struct weft_context *context, const char *text)
{
    struct weft_graph *graph;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    return graph;
}

static inline struct weft_plan *compile(const struct weft_graph *graph, uint32_t flags)
{
    struct weft_plan *plan;
    struct weft_compile_options options = {.size = sizeof options, .flags = flags};
    if (weft_compile(graph, &options, &plan) != WEFT_OK)
        fail_msg("%s", weft_last_error(graph->context));
    return plan;
}

/* A graph made ready to run. */
struct scene {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
};

static inline struct scene open_scene(const char *text, uint32_t flags)
{
    struct scene s = {.context = open_context(2)};
    s.graph = parse(s.context, text);
    s.plan = compile(s.graph, flags);
    assert_int_equal(weft_execution_create(s.plan, &s.execution), WEFT_OK);
    return s;
}

static inline void close_scene(struct scene *s)
{
    weft_execution_destroy(s->execution);
    weft_plan_destroy(s->plan);
    weft_graph_destroy(s->graph);
    weft_close(s->context);
}

/* Dense unless strides are given. Values are small multiples of 1/8, so that sums are exact in any order. */
static inline struct weft_tensor tensor_of(float *data, int rank, const int64_t *extent)
{
    struct weft_tensor t = {.data = data, .dtype = WEFT_F32, .rank = rank};
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= t.extent[i] = extent[i];
    weft_tensor_dense(&t);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((i * 37 + 11) % 41 - 20) / 8;
    return t;
}

/* Is there a remark whose reason has this part? */
static inline bool is_remarked(const struct weft_graph *graph, const char *who, const char *verdict, const char *part)
{
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        if (!strcmp(remark.who, who) && !strcmp(remark.verdict, verdict) && strstr(remark.reason, part))
            return true;
    return false;
}

static inline void assert_refused_by_fuse(const char *text, const char *why)
{
    struct scene s = open_scene(text, 0);
    if (!is_remarked(s.plan->graph, "fuse", "refused", why))
        fail_msg("no remark \"%s\" for %s", why, text);
    close_scene(&s);
}

/* Of a plan's graph; `what` is what failed. */
static inline void bind_inputs(struct weft_execution *e, const struct weft_graph *graph, const struct weft_tensor *in,
                               const char *what)
{
    for (uint32_t i = 0; i < graph->params; i++)
        if (weft_bind_input(e, i, &in[i]) != WEFT_OK)
            fail_msg("%s: %s", what, weft_execution_error(e));
}

#endif
