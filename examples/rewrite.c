/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c: a pass of one's own, between those of weft's. It finds a product with a sigmoid of the other factor,
 * x * sigmoid(x), which models write out, and puts one `silu` in its place, for who has a kernel of that.
 *
 *     cc rewrite.c $(pkg-config --cflags --libs weft) && ./a.out */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph @gate(%x: f32[4,64], %w: f32[64,64]) {\n"
                           "  %h: f32[4,64] = matmul %x, %w\n"
                           "  %s: f32[4,64] = sigmoid %h\n"
                           "  %y: f32[4,64] = mul %s, %h\n"
                           "  return %y\n"
                           "}\n";

/* Called for each `mul`. Returns 1 if it changed the graph, 0 if not, a status if an edit was refused. */
static int find_silu(void *user, struct weft_graph *graph, weft_node node)
{
    static const struct weft_pattern silu[] = {{.op = "mul", .operand = {1, 2}},
                                               {.op = "sigmoid", .operand = {2}, .flags = WEFT_PATTERN_ONE_READER},
                                               {.op = NULL}};
    weft_val found[3], y;
    if (weft_match(graph, node, silu, 3, found) != 1)
        return 0;
    const struct weft_op op = {.size = sizeof op, .op = "silu", .operand = &found[2], .operands = 1};
    int status = weft_insert_before(graph, node, &op, &y);
    if (status == WEFT_OK)
        status = weft_graph_replace(graph, found[0], y);
    if (status == WEFT_OK)
        status = weft_graph_erase(graph, node); /* pass dce erases the sigmoid, which nobody reads now */
    return status == WEFT_OK ? 1 : status;
}

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

int main(void)
{
    const struct weft_pass pass = {.size = sizeof pass, .name = "find_silu", .place = WEFT_PASS_FIRST, .op = "mul",
                                   .rewrite = find_silu};
    /* of all the passes, only this one and what clears up behind it */
    const struct weft_pipeline_options options = {.size = sizeof options, .only = "find_silu,dce"};
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    char *result;
    if (weft_open(NULL, &context) != WEFT_OK)
        return 1;
    must(context, weft_register_pass(context, &pass));
    must(context, weft_parse(context, text, strlen(text), "gate", &graph));
    must(context, weft_run_pipeline_with(graph, NULL, &options));
    must(context, weft_print(graph, &result));
    fputs(result, stdout);
    weft_free_text(context, result);
    weft_graph_destroy(graph);
    weft_close(context);
    return 0;
}
