/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_edit.h: the calls of test_nomem.c that change graphs, and register who does: passes, kernels of a target. */
#ifndef WEFT_TEST_NOMEM_EDIT_H
#define WEFT_TEST_NOMEM_EDIT_H

#include "tests/unit/nomem_builder.h"

static int fill_zero(void *user, const struct weft_custom_call *call)
{
    memset(call->result->data, 0, sizeof(float));
    return 0;
}

/* Refused, it is not there, and can be registered again. */
static int register_function(struct world *w)
{
    const struct weft_custom custom = {.size = sizeof custom, .name = "zero", .most_operands = -1, .run = fill_zero};
    const int status = weft_register(w->context, &custom);
    w->scarce.left = -1;
    assert_int_equal(weft_register(w->context, &custom), status == WEFT_OK ? WEFT_ERR_ARGUMENT : WEFT_OK);
    return status;
}

/* The same of a library whose function is refused. */
static int register_library(struct world *w)
{
    const char *const build = getenv("WEFT_BUILD");
    char library[4096];
    snprintf(library, sizeof library, "%s/examples/top_two.so", build ? build : "build");
    const int status = weft_register_library(w->context, library);
    w->scarce.left = -1;
    assert_int_equal(weft_register_library(w->context, library), status == WEFT_OK ? WEFT_ERR_ARGUMENT : WEFT_OK);
    return status;
}

static int change_nothing(void *user, struct weft_graph *graph, const struct weft_target *target) { return 0; }

static int register_pass(struct world *w)
{
    const struct weft_pass pass = {.size = sizeof pass, .name = "idle", .place = WEFT_PASS_FIRST,
                                   .run = change_nothing};
    const int status = weft_register_pass(w->context, &pass);
    w->scarce.left = -1;
    assert_int_equal(weft_register_pass(w->context, &pass), status == WEFT_OK ? WEFT_ERR_ARGUMENT : WEFT_OK);
    return status;
}

static int build_nothing(void *user, struct weft_graph *trial, const weft_node *node, size_t nodes) { return 0; }

static int register_alternative(struct world *w)
{
    const struct weft_alternative none = {.size = sizeof none, .name = "none", .op = "matmul", .build = build_nothing};
    const int status = weft_register_alternative(w->context, &none);
    w->scarce.left = -1;
    assert_int_equal(weft_register_alternative(w->context, &none), status == WEFT_OK ? WEFT_ERR_ARGUMENT : WEFT_OK);
    return status;
}

/* A node more, which is read in the place of its operand, and no node more. */
static int edit(struct world *w)
{
    const weft_node first = weft_next_node(w->built, (weft_node){0});
    const weft_val sum = weft_node_result(w->built, first, 0);
    const struct weft_op op = {.size = sizeof op, .op = "neg", .operand = &sum, .operands = 1};
    const struct weft_op early = {.size = sizeof early, .op = "neg", .operand = &w->x, .operands = 1};
    const struct weft_pattern pattern = {.op = "neg"};
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_val behind, before, found;
    int status = weft_insert_after(w->built, first, &op, &behind);
    if (status == WEFT_OK)
        status = weft_insert_before(w->built, first, &early, &before);
    if (status == WEFT_OK)
        status = weft_value_read(w->built, before, &facts);
    if (status != WEFT_OK)
        return status;
    assert_int_equal(weft_match(w->built, facts.node, &pattern, 1, &found), 1);
    status = weft_graph_replace(w->built, sum, behind);
    if (status == WEFT_OK)
        status = weft_graph_set_operand(w->built, first, 0, weft_node_operand(w->built, first, 0));
    return status == WEFT_OK ? weft_graph_erase(w->built, facts.node) : status;
}

static double no_cost(void *user, const struct weft_graph *graph, weft_node node) { return 1; }

/* A target with a kernel for whatever the world's graph adds up, and a pass that takes it. */
static int own_kernel(struct world *w)
{
    const struct weft_kernel kernel = {.size = sizeof kernel, .name = "own", .op = "add", .cost = no_cost};
    struct weft_target *target = UNTOUCHED;
    struct weft_graph *copy = NULL;
    int status = weft_target_create(w->context, &target);
    if (status != WEFT_OK)
        return target == UNTOUCHED ? status : WEFT_OK;
    status = weft_target_add(target, &kernel);
    if (status == WEFT_OK)
        status = weft_graph_clone(w->graph, &copy);
    if (status == WEFT_OK)
        status = weft_target_restrict(target, 0);
    if (status == WEFT_OK)
        status = weft_run_pass(copy, "propagate_memory_format", target);
    struct weft_plan *plan = NULL;
    const struct weft_compile_options options = {.size = sizeof options, .target = target};
    if (status >= 0)
        status = weft_compile(copy, &options, &plan);
    weft_plan_destroy(plan);
    weft_graph_destroy(copy);
    weft_target_destroy(target);
    return status < 0 ? status : WEFT_OK;
}

#endif
