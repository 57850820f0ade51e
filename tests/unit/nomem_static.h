/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_static.h: static inputs when memory is refused: who builds them, and the run that packs their elements. */
#ifndef WEFT_TEST_NOMEM_STATIC_H
#define WEFT_TEST_NOMEM_STATIC_H

#include "tests/unit/nomem_world.h"

static int param_static(struct world *w)
{
    weft_val value;
    return weft_param_static(w->built, "p", WEFT_F32, 1, &w->n, &value);
}

/* The first run of a plan of its own, which has to pack; whatever it was refused, the second one has it. */
static int refresh(struct world *w)
{
    static const char text[] = "graph @r(%x: f32[8,8], %w: static f32[8,8]) {\n"
                               "  %y: f32[8,8] = matmul %x, %w\n  return %y\n}\n";
    static float in[2][64];
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    const struct scarce scarce = w->scarce;
    w->scarce.left = -1;
    world_require(w, weft_parse(w->context, text, sizeof text - 1, "refresh", &graph));
    world_require(w, weft_compile(graph, NULL, &plan));
    world_require(w, weft_execution_create(plan, &execution));
    for (size_t i = 0; i < 2; i++)
        world_require(w, weft_bind_input(execution, i, &(struct weft_tensor){
            .data = in[i], .dtype = WEFT_F32, .rank = 2, .extent = {8, 8}, .stride = {8, 1}}));
    w->scarce.left = scarce.left;
    int status = weft_refresh(execution, WEFT_ALL_INPUTS);
    status = status == WEFT_OK ? weft_run(execution) : status;
    w->scarce.left = -1;
    if (status == WEFT_ERR_NOMEM)
        world_require(w, weft_run(execution));
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    return status;
}

#endif
