/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_world.h: one object of each public kind on a scarce allocator, with which test_nomem.c calls every public
 * function; and the proof afterwards that all of them are still good. */
#ifndef WEFT_TEST_NOMEM_WORLD_H
#define WEFT_TEST_NOMEM_WORLD_H

#include "tests/unit/scarce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after what it needs */

/* Weights that are packed, bodies, a symbol, a composite that is taken apart, a step without a kernel, a size that
 * comes out of data. */
static const char world_text[] = "weft 1\n"
                                 "graph @world<N=1..64 hint=2, K=data(N)>(%x: f32[N,4], %c: bool[]) {\n"
                                 "  graph @then(%a: f32[N,4]) {\n"
                                 "    %r: f32[N,4] = relu %a\n"
                                 "    return %r\n"
                                 "  }\n"
                                 "  graph @else(%a: f32[N,4]) {\n"
                                 "    %r: f32[N,4] = neg %a\n"
                                 "    return %r\n"
                                 "  }\n"
                                 "  graph @double(%n: i64[], %a: f32[N,4]) {\n"
                                 "    %d: f32[N,4] = add %a, %a\n"
                                 "    return %d\n"
                                 "  }\n"
                                 "  %trips: i64[] = cast %c\n"
                                 "  %w: f32[4,8] = const random=1 scale=1\n"
                                 "  %m: f32[N,8] = matmul %x, %w\n"
                                 "  %s: f32[N,8] = softmax %m axis=1\n"
                                 "  %i: f32[N,4] = if %c, %x then=@then else=@else\n"
                                 "  %l: f32[N,4] = loop %trips, %i body=@double\n"
                                 "  %t: f32[4,N] = transpose %l perm=[1 0]\n"
                                 "  %sum: f32[N] = sum %s axes=[1]\n"
                                 "  %k: i64[1,K] = nonzero %sum extent=[K]\n"
                                 "  return %s, %t, %k\n"
                                 "}\n";
enum { WORLD_RESULTS = 3, WORLD_ROWS = 2 };

struct world {
    struct scarce scarce;
    struct weft_context *context;
    struct weft_graph *graph;   /* of world_text */
    struct weft_graph *built;   /* two parameters, one of them mutable, a sum */
    weft_val x, state, sum;     /* of `built` */
    weft_dim n;                 /* a symbol of `built` */
    struct weft_plan *plan;     /* of `graph` */
    struct weft_execution *execution; /* of `plan`, bound and run once */
    float in[4 * WORLD_ROWS];
    bool yes;
    struct weft_tensor input[2];
    const char *path;           /* of a file that holds world_text */
};

static inline void world_require(struct world *w, int status)
{
    if (status < 0)
        fail_msg("%s: %s", weft_status_text(status), w->context ? weft_last_error(w->context) : "");
}

static inline void world_bind(struct world *w)
{
    for (int i = 0; i < 4 * WORLD_ROWS; i++)
        w->in[i] = (float)(i + 1) / 8;
    w->yes = true;
    w->input[0] = (struct weft_tensor){
        .data = w->in, .dtype = WEFT_F32, .rank = 2, .extent = {WORLD_ROWS, 4}, .stride = {4, 1}};
    w->input[1] = (struct weft_tensor){.data = &w->yes, .dtype = WEFT_BOOL};
    for (size_t i = 0; i < 2; i++)
        world_require(w, weft_bind_input(w->execution, i, &w->input[i]));
}

static inline void world_build(struct world *w)
{
    world_require(w, weft_graph_create(w->context, "built", &w->built));
    world_require(w, weft_symbol(w->built, "N", 1, 64, 2, &w->n));
    const weft_dim extent[] = {w->n, weft_extent(4)};
    world_require(w, weft_param(w->built, "x", WEFT_F32, 2, extent, &w->x));
    world_require(w, weft_param_mut(w->built, "state", WEFT_F32, 2, extent, &w->state));
    const struct weft_op op = {.size = sizeof op, .op = "add", .operand = (const weft_val[]){w->x, w->state},
                               .operands = 2};
    world_require(w, weft_append(w->built, &op, &w->sum));
    world_require(w, weft_return_mut(w->built, &w->sum, &w->state, 1));
}

static inline void world_open(struct world *w, const char *path)
{
    *w = (struct world){.scarce = {.left = -1}, .path = path};
    const struct weft_allocator allocator = scarce_allocator(&w->scarce);
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
    world_require(w, weft_open(&options, &w->context));
    world_require(w, weft_parse(w->context, world_text, sizeof world_text - 1, "world", &w->graph));
    world_require(w, weft_compile(w->graph, NULL, &w->plan));
    world_require(w, weft_execution_create(w->plan, &w->execution));
    world_build(w);
    world_bind(w);
    world_require(w, weft_run(w->execution));
}

/* Everything can still be used: graphs are valid, print and copy, and a run gives results of
 * the evaluator's shapes. */
static inline void world_prove(struct world *w)
{
    struct weft_graph *const graphs[] = {w->graph, w->built};
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        struct weft_graph *copy = NULL;
        world_require(w, weft_validate(graphs[i]));
        world_require(w, weft_print(graphs[i], &text));
        world_require(w, weft_graph_clone(graphs[i], &copy));
        weft_free_text(w->context, text);
        weft_graph_destroy(copy);
    }
    struct weft_tensor want[WORLD_RESULTS] = {{0}}, got;
    world_bind(w);
    const int status = weft_run(w->execution);
    if (status != WEFT_OK)
        fail_msg("%s", weft_execution_error(w->execution));
    world_require(w, weft_evaluate(w->graph, w->input, 2, want, WORLD_RESULTS));
    for (size_t i = 0; i < WORLD_RESULTS; i++) {
        assert_int_equal(weft_output(w->execution, i, &got), WEFT_OK);
        assert_int_equal(got.rank, want[i].rank);
        for (int axis = 0; axis < got.rank; axis++)
            assert_int_equal(got.extent[axis], want[i].extent[axis]);
        weft_tensor_free(w->context, &want[i]);
    }
}

static inline void world_close(struct world *w)
{
    weft_execution_destroy(w->execution);
    weft_plan_destroy(w->plan);
    weft_graph_destroy(w->built);
    weft_graph_destroy(w->graph);
    weft_close(w->context);
    assert_int_equal(w->scarce.blocks, 0);
    assert_int_equal(w->scarce.bytes, 0);
}

#endif
