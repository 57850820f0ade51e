/* SPDX-License-Identifier: Apache-2.0 */
/* own_kernels.c: a framework that computes convolutions by itself and lets weft decide layouts. It has two kernels:
 *
 *   toy.plain      any convolution, everything row-major
 *   toy.blocked    four times as fast, but channels in blocks of 16 that divide them, in activations and weights
 *
 * weft chooses a kernel for each convolution and a layout for every value, converts where that pays, and tells all.
 *
 *     cc own_kernels.c $(pkg-config --cflags --libs weft) && ./a.out */
#include <weft/weft.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph @net(%x: f32[1,32,28,28]) {\n"
                           "  %w1: f32[64,32,3,3] = const random=1 scale=0.1\n"
                           "  %w2: f32[64,64,3,3] = const random=2 scale=0.1\n"
                           "  %w3: f32[10,64,1,1] = const random=3 scale=0.1\n"
                           "  %c1: f32[1,64,28,28] = conv %x, %w1 pad=[1 1 1 1]\n"
                           "  %a1: f32[1,64,28,28] = relu %c1\n"
                           "  %c2: f32[1,64,28,28] = conv %a1, %w2 pad=[1 1 1 1]\n"
                           "  %a2: f32[1,64,28,28] = add %c2, %a1\n"
                           "  %y: f32[1,10,28,28] = conv %a2, %w3\n"
                           "  return %y\n"
                           "}\n";

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

/* --- the kernels -------------------------------------------------------------------------------------------------- */

static struct weft_value_facts value(const struct weft_graph *graph, weft_val v)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_value_read(graph, v, &facts);
    return facts;
}

static bool blocks_fit(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts weights = value(graph, weft_node_operand(graph, node, 1));
    return weights.rank == 4 && weights.hint[0] % 16 == 0 && weights.hint[1] % 16 == 0;
}

static const char *blocked_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return i == 1 ? "{0/16 1/16 2 3 1%16 0%16}" : "{0 1/16 2 3 1%16}"; /* weights; activations and result */
}

/* Microseconds: `user` points at multiply-adds a nanosecond. */
static double cost(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts weights = value(graph, weft_node_operand(graph, node, 1));
    const struct weft_value_facts y = value(graph, weft_node_result(graph, node, 0));
    double work = 1;
    for (int i = 0; i < 4; i++)
        work *= (double)y.hint[i] * (double)(i ? weights.hint[i] : 1);
    return work / *(const double *)user * 1e-3;
}

/* --- what weft decided -------------------------------------------------------------------------------------------- */

static void show(const struct weft_graph *graph, weft_node node)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    weft_node_read(graph, node, &facts);
    const struct weft_value_facts result = value(graph, weft_node_result(graph, node, 0));
    printf("%-9s %-6s %-12s stored", facts.op, result.name ? result.name : "", facts.kernel ? facts.kernel : "");
    for (int i = 0; i < result.storage_axes; i++) {
        const struct weft_storage_axis *axis = &result.storage[i];
        printf(" %d", axis->axis);
        if (axis->div > 1)
            printf("/%" PRId64, axis->div);
        if (axis->mod)
            printf("%%%" PRId64, axis->mod);
    }
    putchar('\n');
}

int main(void)
{
    double slow = 20, fast = 80;
    const struct weft_kernel plain = {.size = sizeof plain, .name = "toy.plain", .op = "conv", .user = &slow,
                                      .cost = cost};
    const struct weft_kernel blocked = {.size = sizeof blocked, .name = "toy.blocked", .op = "conv", .user = &fast,
                                        .fits = blocks_fit, .layout = blocked_layout, .cost = cost};
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_target *target;
    if (weft_open(NULL, &context) != WEFT_OK)
        return 1;
    must(context, weft_parse(context, text, strlen(text), "own_kernels", &graph));
    must(context, weft_target_create(context, &target));
    must(context, weft_target_add(target, &plain));
    must(context, weft_target_add(target, &blocked));
    must(context, weft_run_pass(graph, "propagate_memory_format", target));
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n))
        show(graph, n);
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        printf("%s: %s %s: %s\n", remark.who, remark.verdict, remark.where, remark.reason);
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
    return 0;
}
