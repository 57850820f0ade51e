/* SPDX-License-Identifier: Apache-2.0 */
/* draw_alternative.c: alternatives of the caller's in random graphs, which are taken where WEFT_ALTERNATIVE says so:
 * they compute the same bits by other nodes.
 *
 *   %y = add %a, %b      %n = neg %b; %y = sub %a, %n                        for floats
 *   %y = exp %a          %t = transpose %a; %e = exp %t; %y = transpose %e   with the axes the other way round
 *   %y = tanh %a         %r = reshape %a; %t = tanh %r; %y = reshape %t      with the first two axes as one */
#include "tests/property/random_graph.h"

#include <stdlib.h>

static bool is_asked_for(void *user, const struct weft_graph *graph, weft_node node)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    return getenv("WEFT_ALTERNATIVE") &&
           weft_value_read(graph, weft_node_result(graph, node, 0), &facts) == WEFT_OK &&
           facts.rank >= (user ? 2 : 0) &&
           (facts.dtype == WEFT_F64 || facts.dtype == WEFT_F32 || facts.dtype == WEFT_BF16 || facts.dtype == WEFT_F16);
}

static int subtract(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    weft_val operand[2] = {weft_node_operand(g, node[0], 0), weft_node_operand(g, node[0], 1)}, y;
    const struct weft_op neg = {.size = sizeof neg, .op = "neg", .operand = &operand[1], .operands = 1},
                         sub = {.size = sizeof sub, .op = "sub", .operand = operand, .operands = 2};
    return weft_append(g, &neg, &operand[1]) == WEFT_OK && weft_append(g, &sub, &y) == WEFT_OK &&
           weft_return(g, &y, 1) == WEFT_OK;
}

static int turn(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    weft_val x = weft_node_operand(g, node[0], 0);
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_dim axis[WEFT_MAX_RANK];
    if (weft_value_read(g, x, &facts) != WEFT_OK)
        return 0;
    for (int i = 0; i < facts.rank; i++)
        axis[i] = weft_extent(facts.rank - 1 - i);
    const struct weft_attribute perm = {.name = "perm", .integers = axis, .count = (size_t)facts.rank};
    const struct weft_op transpose = {.size = sizeof transpose, .op = "transpose", .operand = &x, .operands = 1,
                                      .attribute = &perm, .attributes = 1},
                         exp = {.size = sizeof exp, .op = "exp", .operand = &x, .operands = 1};
    return weft_append(g, &transpose, &x) == WEFT_OK && weft_append(g, &exp, &x) == WEFT_OK &&
           weft_append(g, &transpose, &x) == WEFT_OK && weft_return(g, &x, 1) == WEFT_OK;
}

static int merge(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    weft_val x = weft_node_operand(g, node[0], 0);
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_dim extent[WEFT_MAX_RANK];
    if (weft_value_read(g, x, &facts) != WEFT_OK ||
        weft_extent_combine(g, '*', facts.extent[0], facts.extent[1], &extent[0]) != WEFT_OK)
        return 0;
    for (int i = 2; i < facts.rank; i++)
        extent[i - 1] = facts.extent[i];
    const struct weft_op join = {.size = sizeof join, .op = "reshape", .operand = &x, .operands = 1,
                                 .dtype = facts.dtype, .rank = facts.rank - 1, .extent = extent},
                         tanh = {.size = sizeof tanh, .op = "tanh", .operand = &x, .operands = 1},
                         split = {.size = sizeof split, .op = "reshape", .operand = &x, .operands = 1,
                                  .dtype = facts.dtype, .rank = facts.rank, .extent = facts.extent};
    return weft_append(g, &join, &x) == WEFT_OK && weft_append(g, &tanh, &x) == WEFT_OK &&
           weft_append(g, &split, &x) == WEFT_OK && weft_return(g, &x, 1) == WEFT_OK;
}

int weft_register_drawn_alternatives(struct weft_context *context)
{
    static char has_axes;
    const struct weft_alternative all[] = {
        {.size = sizeof all[0], .name = "subtract", .op = "add", .fits = is_asked_for, .build = subtract},
        {.size = sizeof all[0], .name = "turn", .op = "exp", .user = &has_axes, .fits = is_asked_for, .build = turn},
        {.size = sizeof all[0], .name = "merge", .op = "tanh", .user = &has_axes, .fits = is_asked_for, .build = merge},
    };
    int status = WEFT_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && status == WEFT_OK; i++)
        status = weft_register_alternative(context, &all[i]);
    return status;
}
