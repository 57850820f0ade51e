/* SPDX-License-Identifier: Apache-2.0 */
/* index_attention.c: index maps of attention and its gradient. Heads of keys and values, and how many heads of queries
 * share one of them, are two axes. */
#include "ir/index_rules.h"

/* Batches, groups and the heads of one of them. */
struct heads {
    int batch, group, head; /* axes of the space */
    weft_dim sharing;
};

static struct heads add_heads(struct weft_indexing *r, const struct weft_type *query, const struct weft_type *key)
{
    struct heads h = {.sharing = weft_dim_of(1)};
    weft_dim_divides(r->graph->dims, query->extent[1], key->extent[1], &h.sharing); /* it does: infer_attention.c */
    h.batch = weft_space_add(r, query->extent[0], WEFT_AXIS_PARALLEL);
    h.group = weft_space_add(r, key->extent[1], WEFT_AXIS_PARALLEL);
    h.head = weft_space_add_factor(r, h.sharing, WEFT_AXIS_PARALLEL);
    return h;
}

/* Of the pin: the first two axes are batches and heads, which may be shared, and then come `last`. */
static void is_at(struct weft_indexing *r, const struct heads *h, bool shared, const int *last)
{
    weft_index_is(r, 0, h->batch);
    weft_index_term(r, 1, h->group, shared ? weft_dim_of(1) : h->sharing);
    weft_index_is(r, 1, shared ? -1 : h->head);
    for (int i = 2; i < r->map.rank; i++)
        weft_index_is(r, i, last[i - 2]);
}

void weft_index_attention(struct weft_indexing *r)
{
    const struct weft_type *q = weft_index_type(r, 0), *k = weft_index_type(r, 1), *v = weft_index_type(r, 2);
    const struct heads h = add_heads(r, q, k);
    const int row = weft_space_add(r, q->extent[2], WEFT_AXIS_PARALLEL);
    const int out = weft_space_add(r, v->extent[3], WEFT_AXIS_PARALLEL);
    const int width = weft_space_add(r, q->extent[3], WEFT_AXIS_REDUCED);
    const int key = weft_space_add(r, k->extent[2], WEFT_AXIS_REDUCED);
    /* q, k, v, mask, result, sums */
    const int last[6][2] = {{row, width}, {key, width}, {key, out}, {row, key}, {row, out}, {row}};
    if (!r->pin)
        return;
    const unsigned which = r->pin->result ? 4 + r->pin->index : r->pin->index;
    is_at(r, &h, which == 1 || which == 2, last[which]);
}

/* Scores are sums along both widths, which the results have, too: in the place of those. */
void weft_index_attention_grad(struct weft_indexing *r)
{
    const struct weft_type *q = weft_index_type(r, 1), *k = weft_index_type(r, 2), *v = weft_index_type(r, 3);
    const struct heads h = add_heads(r, q, k);
    const int row = weft_space_add(r, q->extent[2], WEFT_AXIS_PARALLEL);
    const int width = weft_space_add(r, q->extent[3], WEFT_AXIS_PARALLEL);
    const int key = weft_space_add(r, k->extent[2], WEFT_AXIS_PARALLEL);
    const int out = weft_space_add(r, v->extent[3], WEFT_AXIS_PARALLEL);
    const int all_width = weft_space_add_beside(r, q->extent[3], width);
    const int all_out = weft_space_add_beside(r, v->extent[3], out);
    /* dy, q, k, v, y, sums, mask, dq, dk, dv */
    const int last[10][2] = {{row, all_out}, {row, all_width}, {key, all_width}, {key, all_out}, {row, all_out},
                             {row},          {row, key},       {row, width},     {key, width},   {key, out}};
    if (!r->pin)
        return;
    const unsigned which = r->pin->result ? 7 + r->pin->index : r->pin->index;
    const bool is_shared[10] = {[2] = true, [3] = true, [8] = true, [9] = true};
    is_at(r, &h, is_shared[which], last[which]);
}
