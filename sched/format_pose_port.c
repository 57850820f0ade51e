/* SPDX-License-Identifier: Apache-2.0 */
/* format_pose_port.c: the labelling problem of memory formats, between a node with bodies and what is in these.
 *
 *   result ──── parameter      carried: one layout
 *      └─────── (set of) what the body returns for it, converted once a trip where it is written in another
 *
 * What goes in is an edge between the operand, read, and that result, or the parameter where nothing is carried; see
 * weft_chooser_reader. */
#include "sched/chooser.h"

/* Two values that lie in one place, each trip. What cannot be, for want of candidates, is dear: it has two copies. */
static void tie_equal(struct weft_chooser *a, weft_val v, const struct weft_chooser *b, weft_val w)
{
    const uint32_t rows = choices_of(a, v), columns = choices_of(b, w);
    const struct weft_formats *inner = b->formats;
    int64_t *edge = weft_labelling_edge(a->labelling, a->node[v.id] - 1, b->node[w.id] - 1);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < columns; k++) {
            const uint32_t from = list_of(a, v)->layout[written_in(a, v, i)],
                           to = list_of(b, w)->layout[written_in(b, w, k)];
            const int64_t ps = 4 * WEFT_FORMAT_TIE + 2 * weft_format_convert_ps(inner, w, from, to);
            edge[i * columns + k] =
                weft_format_order(inner, w, from) == weft_format_order(inner, w, to) ? 0
                                                                                    : weft_format_weighted(inner, ps);
        }
}

/* What a body returns as result i, where that lies as the node's choice says. */
static void tie_return(const struct weft_chooser *c, weft_node n, uint32_t i, const struct weft_chooser *body)
{
    const struct weft_formats *f = body->formats;
    const weft_val v = body->graph->ret[i].value, result = weft_result(c->graph, n, i);
    const struct weft_format_list *list = list_of(body, v);
    const uint32_t found = found_of(body, v), rows = c->labelling->node[found].choices, columns = choices_of(c, result);
    int64_t *edge = weft_labelling_edge(c->labelling, found, c->node[result.id] - 1);
    for (uint32_t m = 0; m < columns; m++) {
        int64_t price[WEFT_MAX_FORMATS];
        uint32_t wanted, layout;
        if (!weft_format_inner(c->formats, n, i, list_of(c, result)->layout[written_in(c, result, m)], &wanted))
            wanted = 0;
        for (uint32_t k = 0; k < list->count; k++) {
            const int64_t ps = weft_format_convert_ps(f, v, list->layout[k], wanted);
            price[k] = weft_format_weighted(f, ps ? ps + WEFT_FORMAT_TIE : 0);
        }
        for (uint32_t at = 0; at < rows; at++)
            edge[at * columns + m] = weft_chooser_read(body, v, at, price, &layout);
    }
}

void weft_chooser_tie_bodies(struct weft_chooser *c, weft_node n)
{
    const struct weft_node_info *info = &c->graph->node[n.id];
    struct weft_formats *body[WEFT_MOST_BODIES];
    const uint32_t bodies = weft_format_bodies(c->formats, n, body);
    for (uint32_t k = 0; k < bodies; k++) {
        struct weft_chooser *inner = &c->all[body[k]->index];
        if (k > 0 && body[k] == body[0])
            continue;
        for (uint32_t i = 1; i < info->operands; i++) {
            const weft_val param = weft_format_param_of(body[k], n, i);
            if (weft_format_is_carried(c->graph, n, i))
                tie_equal(c, weft_result(c->graph, n, i - 1), inner, param);
            else if (k > 0)
                tie_equal(&c->all[body[0]->index], weft_format_param_of(body[0], n, i), inner, param);
        }
        for (uint32_t i = 0; i < info->results; i++)
            tie_return(c, n, i, inner);
    }
}
