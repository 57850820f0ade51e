/* SPDX-License-Identifier: Apache-2.0 */
/* alternative.c: another way to compute a node, which weft weighs. A tall matrix by a matrix of a few numbers, written
 * out: the author has measured that products and sums take 5 ns a row on his machine, tells weft so, and weft takes
 * them where its own product is predicted to take longer.
 *
 *     cc alternative.c $(pkg-config --cflags --libs weft) && ./a.out */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph @tall(%x: f32[20480,5], %w: f32[5,2], %v: f32[5,512]) {\n"
                           "  %y: f32[20480,2] = matmul %x, %w\n"
                           "  %z: f32[20480,512] = matmul %x, %v\n"
                           "  return %y, %z\n"
                           "}\n";

/* The extents of an operand, symbols at their hints. */
static void read_extents(const struct weft_graph *graph, weft_node node, size_t operand, struct weft_value_facts *ret)
{
    *ret = (struct weft_value_facts){.size = sizeof *ret};
    weft_value_read(graph, weft_node_operand(graph, node, operand), ret);
}

/* Many rows of a few terms, and few columns? Then a trial is worth it. */
static bool is_tall(void *user, const struct weft_graph *graph, weft_node node)
{
    struct weft_value_facts x, w;
    struct weft_attribute turned[2];
    read_extents(graph, node, 0, &x);
    read_extents(graph, node, 1, &w);
    weft_node_attribute(graph, node, "trans_a", &turned[0]);
    weft_node_attribute(graph, node, "trans_b", &turned[1]);
    return x.rank == 2 && w.rank == 2 && !turned[0].integer && !turned[1].integer && x.dtype == WEFT_F32 &&
           x.hint[0] >= 10240 && x.hint[1] < 32 && w.hint[1] < 32;
}

/* %a: f32[M,K,N] = bcast %x; %b: f32[M,K,N] = bcast %w; %c = mul %a, %b; %s = sum %c axes=[1] */
static int multiply_and_add(void *user, struct weft_graph *trial, const weft_node *node, size_t nodes)
{
    const weft_dim first[] = {weft_extent(0), weft_extent(1)}, last[] = {weft_extent(1), weft_extent(2)};
    const struct weft_attribute dims[] = {{.name = "dims", .integers = first, .count = 2},
                                          {.name = "dims", .integers = last, .count = 2}},
                                axes = {.name = "axes", .integers = first + 1, .count = 1};
    struct weft_value_facts x, w;
    weft_val operand[2], product, sum;
    int status = WEFT_OK;
    read_extents(trial, node[0], 0, &x);
    read_extents(trial, node[0], 1, &w);
    const weft_dim extent[] = {x.extent[0], x.extent[1], w.extent[1]};
    for (size_t i = 0; i < 2 && status == WEFT_OK; i++) {
        const weft_val from = weft_node_operand(trial, node[0], i);
        const struct weft_op bcast = {.size = sizeof bcast, .op = "bcast", .operand = &from, .operands = 1,
                                      .attribute = &dims[i], .attributes = 1, .dtype = WEFT_F32, .rank = 3,
                                      .extent = extent};
        status = weft_append(trial, &bcast, &operand[i]);
    }
    const struct weft_op mul = {.size = sizeof mul, .op = "mul", .operand = operand, .operands = 2};
    if (status == WEFT_OK)
        status = weft_append(trial, &mul, &product);
    const struct weft_op add = {.size = sizeof add, .op = "sum", .operand = &product, .operands = 1,
                                .attribute = &axes, .attributes = 1};
    if (status == WEFT_OK)
        status = weft_append(trial, &add, &sum);
    if (status == WEFT_OK)
        status = weft_return(trial, &sum, 1);
    return status == WEFT_OK ? 1 : status;
}

/* Nanoseconds, as measured: for each row so many. */
static double measured(void *user, const struct weft_graph *graph, weft_node node)
{
    struct weft_value_facts x;
    read_extents(graph, node, 0, &x);
    return *(const double *)user * (double)x.hint[0];
}

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

/* What became of the products when a row takes so long. */
static void compile(double ns_a_row)
{
    const struct weft_alternative alternative = {.size = sizeof alternative, .name = "multiply_and_add",
                                                 .op = "matmul", .user = &ns_a_row, .fits = is_tall,
                                                 .build = multiply_and_add, .cost_ns = measured};
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_remark remark = {.size = sizeof remark};
    if (weft_open(NULL, &context) != WEFT_OK)
        exit(1);
    must(context, weft_register_alternative(context, &alternative));
    must(context, weft_parse(context, text, strlen(text), "tall", &graph));
    must(context, weft_compile(graph, NULL, &plan));
    for (size_t i = 0; weft_remark_get(weft_plan_graph(plan), i, &remark) == WEFT_OK; i++)
        if (strstr(remark.who, "choose_alternatives"))
            printf("%s: %s %s: %s\n", remark.who, remark.verdict, remark.where, remark.reason);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    compile(0.01); /* a machine on which this takes no time to speak of: it is taken */
    compile(5);    /* and as it was measured, where weft's product is predicted to be faster: it is not */
    return 0;
}
