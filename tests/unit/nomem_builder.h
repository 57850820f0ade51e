/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_builder.h: the calls of test_nomem.c that build graphs. What a graph may not keep, since it would be a mistake
 * (a body that nobody uses, a mutable parameter without a new value), goes into a graph of its own. */
#ifndef WEFT_TEST_NOMEM_BUILDER_H
#define WEFT_TEST_NOMEM_BUILDER_H

#include "tests/unit/nomem_world.h"

/* A pointer that no function returns: results are compared with it. */
static char untouched;
#define UNTOUCHED ((void *)&untouched)

/* Was the result left alone, unless the call succeeded? */
static void settle(int status, const void *result)
{
    if (status < 0)
        assert_ptr_equal(result, UNTOUCHED);
    else
        assert_ptr_not_equal(result, UNTOUCHED);
}

static int settle_graph(int status, struct weft_graph *graph)
{
    settle(status, graph);
    if (status >= 0)
        weft_graph_destroy(graph);
    return status;
}

/* A name that does not fit behind the graph in one chunk of its arena. */
static int create(struct world *w)
{
    struct weft_graph *graph = UNTOUCHED;
    static char name[100001];
    memset(name, 'n', sizeof name - 1);
    const int status = weft_graph_create(w->context, name, &graph);
    return settle_graph(status, graph);
}

/* A body that nobody uses would be a mistake, so the graph is one of its own. */
static int create_body(struct world *w)
{
    struct weft_graph *graph, *body = UNTOUCHED;
    const int64_t left = w->scarce.left;
    w->scarce.left = -1;
    world_require(w, weft_graph_create(w->context, "parent", &graph));
    w->scarce.left = left;
    const int status = weft_graph_create_body(graph, "body", &body);
    settle(status, body);
    weft_graph_destroy(graph);
    return status;
}

static int symbol(struct world *w)
{
    weft_dim dim;
    return weft_symbol(w->built, "M", 1, 64, 0, &dim);
}

static int combine(struct world *w)
{
    weft_dim dim;
    int status = WEFT_OK;
    for (const char *op = "+-*/%mM"; *op && status == WEFT_OK; op++)
        status = weft_extent_combine(w->built, *op, w->n, weft_extent(3), &dim);
    return status;
}

static int param(struct world *w)
{
    weft_val value;
    return weft_param(w->built, "p", WEFT_F32, 1, &w->n, &value);
}

/* Without a new value it would be a mistake: a graph of its own. */
static int param_mut(struct world *w)
{
    weft_val value;
    struct weft_graph *graph;
    const int64_t left = w->scarce.left;
    const weft_dim extent = weft_extent(3);
    w->scarce.left = -1;
    world_require(w, weft_graph_create(w->context, "parent", &graph));
    w->scarce.left = left;
    const int status = weft_param_mut(graph, "p", WEFT_F32, 1, &extent, &value);
    weft_graph_destroy(graph);
    return status;
}

static int constant(struct world *w)
{
    weft_val value;
    static const float data[100];
    return weft_constant(w->built, WEFT_F32, 1, (const int64_t[]){100}, data, &value);
}

static void count_release(void *user, const void *data) { ++*(int *)user; }

/* The data is given back with the graph, exactly where the constant was made. */
static int constant_borrowed(struct world *w)
{
    static const float data[100];
    weft_val value;
    int given_back = 0;
    struct weft_graph *graph;
    const int64_t left = w->scarce.left;
    w->scarce.left = -1;
    world_require(w, weft_graph_create(w->context, "borrower", &graph));
    w->scarce.left = left;
    const int status = weft_constant_borrowed(graph, WEFT_F32, 1, (const int64_t[]){100}, data, count_release,
                                              &given_back, &value);
    assert_int_equal(given_back, 0);
    weft_graph_destroy(graph);
    assert_int_equal(given_back, status == WEFT_OK);
    return status;
}

static int splat(struct world *w)
{
    weft_val value;
    return weft_splat(w->built, WEFT_F32, 1, &w->n, 0.5, &value);
}

static int splat_integer(struct world *w)
{
    weft_val value;
    return weft_splat_integer(w->built, WEFT_I64, 1, &w->n, 7, &value);
}

static int append(struct world *w)
{
    weft_val value;
    const weft_dim axes = weft_extent(1);
    const struct weft_attribute attribute = {.name = "axes", .integers = &axes, .count = 1};
    const struct weft_op op = {.size = sizeof op, .op = "sum", .name = "total", .operand = &w->sum, .operands = 1,
                               .attribute = &attribute, .attributes = 1};
    return weft_append(w->built, &op, &value);
}

static int return_mut(struct world *w)
{
    return weft_return_mut(w->built, (const weft_val[]){w->sum, w->x}, (const weft_val[]){w->state, {0}}, 2);
}

static int return_plain(struct world *w)
{
    struct weft_graph *graph;
    weft_val value;
    const weft_dim extent = weft_extent(3);
    const int64_t left = w->scarce.left;
    w->scarce.left = -1;
    world_require(w, weft_graph_create(w->context, "identity", &graph));
    world_require(w, weft_param(graph, "p", WEFT_F32, 1, &extent, &value));
    w->scarce.left = left;
    const int status = weft_return(graph, &value, 1);
    weft_graph_destroy(graph);
    return status;
}

static int set_layout(struct world *w) { return weft_set_layout(w->built, w->sum, "{1 0}"); }

static int ask_access(struct world *w)
{
    struct weft_access_width width = {.size = sizeof width};
    const struct weft_access asked = {.size = sizeof asked, .value = w->x, .along = w->sum};
    return weft_access(w->built, &asked, &width);
}

#endif
