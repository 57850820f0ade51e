/* SPDX-License-Identifier: Apache-2.0 */
/* format_tree.c: a graph and the bodies of its `if` and `loop`, and how often each is run.
 *
 * What a body costs counts as often as it is run: a loop's as many times as its trips, where that number, or the length
 * of what is collected, is known at the hints, else a few times. Of the branches of an `if` either may be taken: both
 * count. */
#include "sched/format.h"

enum {
    SOME_TRIPS = 8,    /* where nothing is known */
    MOST_RUNS = 256,   /* more would hardly decide otherwise, and sums stay far from WEFT_LABEL_NEVER */
    MOST_INSIDE = 16,  /* times what is around it, beyond those: what is ahead of an inner loop is not taken into it */
    MOST_OF_ALL = 65536,
};

static int64_t trips_of(const struct weft_graph *g, weft_node n)
{
    const weft_val number = weft_operand(g, n, 0);
    const struct weft_attr *length = weft_attr_find(g, n, WEFT_ATTR_length);
    struct weft_element element;
    int64_t trips = SOME_TRIPS;
    if (weft_opcode_of(g, n) != WEFT_OP_loop)
        return 1;
    if (weft_is_const(g, number) && weft_const_splat(g, number, &element))
        trips = element.integer;
    else if (g->value[number.id].content)
        trips = weft_dim_hint(g->dims, g->value[number.id].content[0]);
    else if (length)
        trips = weft_dim_hint(g->dims, length->integer);
    return trips < 1 ? 1 : trips > MOST_RUNS ? MOST_RUNS : trips;
}

int64_t weft_format_weighted(const struct weft_formats *f, int64_t ps)
{
    return ps < WEFT_LABEL_NEVER / f->weight ? ps * f->weight : WEFT_LABEL_NEVER;
}

static struct weft_formats *open_body(struct weft_formats *top, struct weft_formats *outer, struct weft_graph *graph,
                                      uint32_t *capacity)
{
    struct weft_formats *body = weft_new(top->arena, struct weft_formats, 1);
    *body = (struct weft_formats){.graph = graph, .target = top->target, .arena = top->arena, .outer = outer,
                                  .index = top->count};
    top->all = weft_grow(top->arena, top->all, capacity, top->count + 1, sizeof(struct weft_formats *));
    top->all[top->count++] = body;
    return body;
}

static void hold(struct weft_formats *body, weft_node holder)
{
    const int64_t runs = body->weight + weft_format_weighted(body->outer, trips_of(body->outer->graph, holder));
    const int64_t inside = body->outer->weight * MOST_INSIDE, most = inside > MOST_RUNS ? inside : MOST_RUNS;
    body->holder = weft_grow(body->arena, body->holder, &body->holder_capacity, body->holders + 1, sizeof(weft_node));
    body->holder[body->holders++] = holder;
    body->weight = runs < most ? runs : most;
    if (body->weight > MOST_OF_ALL)
        body->weight = MOST_OF_ALL;
}

void weft_format_open_tree(struct weft_formats *top)
{
    uint32_t capacity = 0;
    top->all = weft_grow(top->arena, NULL, &capacity, 1, sizeof(struct weft_formats *));
    top->all[top->count++] = top;
    top->weight = 1;
    for (uint32_t i = 0; i < top->count; i++) {
        struct weft_formats *f = top->all[i];
        f->body = weft_new(f->arena, struct weft_formats *, f->graph->bodies);
        weft_foreach_node(f->graph, n) {
            const struct weft_node_info *info = &f->graph->node[n.id];
            for (unsigned k = 0; k < info->attrs; k++) {
                if (info->attr[k].kind != WEFT_ATTR_GRAPH)
                    continue;
                struct weft_formats **body = &f->body[info->attr[k].graph->index];
                if (!*body)
                    *body = open_body(top, f, info->attr[k].graph, &capacity);
                const uint32_t holders = (*body)->holders;
                if (!holders || (*body)->holder[holders - 1].id != n.id) /* both branches may be one body */
                    hold(*body, n);
            }
        }
    }
}
