/* SPDX-License-Identifier: Apache-2.0 */
/* format_pose.c: the labelling problem of memory formats.
 *
 * A node of the problem for each value: its choices are the layouts in which its node may write it, and the kernels of
 * the caller's that may do it. A value that is read more than once has another node: its choices are the sets of
 * layouts in which it is there to be read, so that a conversion which two readers share is paid once. Edges are
 * conversions, and what ops pay for reading in another order than they write; results of one op are tied to its first.
 *
 * A body is run as often as its loop has trips, and so often its costs count; what goes into it and out of it is in
 * format_pose_port.c.
 *
 *   written ──── (set) ──── result of reader 1
 *                  └─────── result of reader 2          with one reader: written ──── result of the reader */
#include "sched/chooser.h"
#include "sched/epilogue.h"

/* --- sets of layouts, as bits of a value's list ------------------------------------------------------------------- */

/* The layouts of set number s of a list of `count`: first the single ones, then all pairs. */
static uint32_t set_bits(uint32_t count, uint32_t s)
{
    if (s < count)
        return 1u << s;
    uint32_t larger = 1;
    for (s -= count; s >= larger; larger++)
        s -= larger;
    return 1u << larger | 1u << s;
}

static uint32_t sets_of(uint32_t count) { return count + count * (count - 1) / 2; }

/* --- the nodes ---------------------------------------------------------------------------------------------------- */

static int64_t converted(const struct weft_chooser *c, weft_val v, uint32_t from, uint32_t to)
{
    return c->convert[v.id][from * list_of(c, v)->count + to];
}

/* Would the only reader of a contraction's result finish it in the contraction's kernel (sched/epilogue.h), if it is
 * not converted before? */
static bool is_finished(const struct weft_graph *g, weft_val v)
{
    const weft_node def = weft_def(g, v);
    const uint32_t use = g->value[v.id].first_use;
    if (!def.id || !weft_epilogue_takes(g, def) || g->value[v.id].returns || !use || g->slot[use - 1].next)
        return false;
    const weft_node reader = g->slot[use - 1].node;
    return (weft_op_of(g, reader)->traits & WEFT_ELEMENTWISE) && !g->value[weft_result(g, reader, 0).id].stated;
}

/* What the reader takes as a kernel of its own: it is converted behind the reader rather than in front of it. */
static int64_t apart_ps(const struct weft_formats *f, weft_val v)
{
    return is_finished(f->graph, v)
               ? weft_format_rate_ps(f, (double)weft_format_bytes(f, v), WEFT_PRICE_read_private) +
                     weft_format_rate_ps(f, (double)weft_format_bytes(f, v), WEFT_PRICE_write_private) : 0;
}

/* Where a node may convert on its way what a step of its own might convert ahead, at the same price, it is the node:
 * then there is one value less. */
static void price_conversions(struct weft_chooser *c, weft_val v)
{
    const struct weft_format_list *list = list_of(c, v);
    const int64_t apart = apart_ps(c->formats, v);
    struct weft_format_known *known =
        WEFT_RECALL(c->formats, WEFT_RECALL_CONVERSIONS, c->formats->kind[v.id], list->number,
                    (uint64_t)c->formats->weight, (uint64_t)apart);
    if (!known->answer) {
        const bool once = weft_format_converts_once(c->formats, v);
        int64_t *ps = weft_new(c->formats->arena, int64_t, (size_t)list->count * list->count);
        for (uint32_t i = 0; i < list->count * list->count; i++) {
            const uint32_t from = list->layout[i / list->count], to = list->layout[i % list->count];
            const int64_t convert = once ? 0 : weft_format_convert_ps(c->formats, v, from, to) + apart;
            ps[i] = from == to ? 0 : weft_format_weighted(c->formats, WEFT_FORMAT_TIE + convert);
        }
        known->answer = ps;
    }
    c->convert[v.id] = known->answer;
}

int64_t weft_chooser_set_cost(const struct weft_chooser *c, weft_val v, uint32_t from, uint32_t set)
{
    const uint32_t count = list_of(c, v)->count, bits = set_bits(count, set);
    int64_t sum = 0;
    for (uint32_t to = 0; to < count; to++)
        if (bits >> to & 1)
            sum = weft_label_add(sum, converted(c, v, from, to));
    return sum;
}

/* The ways to write a value and what they cost. */
struct ways {
    uint32_t count;
    struct weft_format_choice choice[WEFT_MAX_CHOICES];
    int64_t cost[WEFT_MAX_CHOICES];
};

/* Ties go to the earlier candidate: a picosecond for each place in the list. */
static const struct ways *ways_of(const struct weft_chooser *c, weft_val v)
{
    const struct weft_formats *f = c->formats;
    const struct weft_value *value = &c->graph->value[v.id];
    struct weft_format_known *known = WEFT_RECALL(f, WEFT_RECALL_WRITE, f->node_kind[value->def.id], value->result,
                                                  f->kind[v.id], list_of(c, v)->number, (uint64_t)f->weight);
    if (known->answer)
        return known->answer;
    struct ways *ways = weft_new(f->arena, struct ways, 1);
    ways->count = weft_format_choices(f, v, ways->choice);
    for (uint32_t i = 0; i < ways->count; i++) {
        const struct weft_format_choice *choice = &ways->choice[i];
        const int64_t ps = choice->own     ? choice->own->ps
                           : value->def.id ? weft_format_write_ps(f, v, list_of(c, v)->layout[choice->format]) : 0;
        ways->cost[i] = weft_label_add(i, weft_format_weighted(f, ps));
    }
    return known->answer = ways;
}

static struct weft_label_table *edge_to_set(const struct weft_chooser *c, weft_val v)
{
    const uint32_t sets = sets_of(list_of(c, v)->count), rows = choices_of(c, v);
    struct weft_format_known *known =
        WEFT_RECALL(c->formats, WEFT_RECALL_SETS, c->formats->kind[v.id], list_of(c, v)->number,
                    (uint64_t)c->formats->weight);
    if (known->answer)
        return known->answer;
    struct weft_label_table *edge = weft_labelling_table(c->formats->arena, rows, sets);
    for (uint32_t from = 0; from < rows; from++)
        for (uint32_t s = 0; s < sets; s++)
            edge->cost[from * sets + s] = weft_chooser_set_cost(c, v, written_in(c, v, from), s);
    return known->answer = edge;
}

static void add_value(struct weft_chooser *c, weft_val v)
{
    const struct weft_format_list *list = list_of(c, v);
    const struct weft_value *value = &c->graph->value[v.id];
    const struct ways *ways = ways_of(c, v);
    c->choice[v.id] = ways->choice;
    c->node[v.id] = 1 + weft_labelling_node(c->labelling, ways->count, ways->cost);
    price_conversions(c, v);
    if (value->uses + value->returns < 2 || list->count < 2)
        return;
    c->set[v.id] = 1 + weft_labelling_node(c->labelling, sets_of(list->count), NULL);
    weft_labelling_join(c->labelling, c->node[v.id] - 1, c->set[v.id] - 1, edge_to_set(c, v));
}

/* --- the edges ---------------------------------------------------------------------------------------------------- */

int64_t weft_chooser_read(const struct weft_chooser *c, weft_val v, uint32_t at, const int64_t *price,
                          uint32_t *ret_layout)
{
    const struct weft_format_list *list = list_of(c, v);
    const uint32_t there = c->set[v.id] ? set_bits(list->count, at) : UINT32_MAX; /* or can be converted to */
    int64_t best = WEFT_LABEL_NEVER;
    *ret_layout = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!(there >> i & 1))
            continue;
        const int64_t whole =
            c->set[v.id] ? price[i] : weft_label_add(price[i], converted(c, v, written_in(c, v, at), i));
        if (whole < best) {
            best = whole;
            *ret_layout = i;
        }
    }
    return best;
}

const struct weft_chooser *weft_chooser_reader(const struct weft_chooser *c, weft_node n, uint32_t index, weft_val *ret)
{
    return &c->all[weft_format_handed_to(c->formats, n, index, ret)->index];
}

/* What reading an operand costs by layout of its list, where the reader's value is as `choice` says, in layout
 * `result`. */
static void price_read(const struct weft_chooser *c, struct weft_pin pin, const struct weft_format_choice *choice,
                       uint32_t result, int64_t *ret_price)
{
    const struct weft_format_list *list = list_of(c, weft_pin_value(c->graph, pin));
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t wanted = choice->own ? choice->own->layout[pin.index] : 0;
        const int64_t ps = !choice->own ? weft_format_read_ps(c->formats, pin, list->layout[i], result)
                           : wanted == WEFT_ANY_FORMAT || wanted == list->layout[i] ? 0 : WEFT_LABEL_NEVER;
        ret_price[i] = weft_format_weighted(c->formats, ps);
    }
}

/* The same for each way to write the reader's value. */
static const struct weft_format_known *price_reads(const struct weft_chooser *c, struct weft_pin pin)
{
    const struct weft_formats *f = c->formats;
    weft_val result;
    const struct weft_chooser *by = weft_chooser_reader(c, pin.node, pin.index, &result);
    const weft_val v = weft_pin_value(c->graph, pin);
    const uint32_t layouts = list_of(c, v)->count, results = choices_of(by, result);
    struct weft_format_known *known = WEFT_RECALL(f, WEFT_RECALL_READS, f->node_kind[pin.node.id], pin.index,
                                                  list_of(c, v)->number, list_of(by, result)->number,
                                                  (uint64_t)f->weight);
    if (known->answer)
        return known;
    int64_t *price = weft_new(f->arena, int64_t, (size_t)layouts * results);
    for (uint32_t r = 0; r < results; r++)
        price_read(c, pin, &by->choice[result.id][r], list_of(by, result)->layout[written_in(by, result, r)],
                   price + r * layouts);
    known->answer = price;
    return known;
}

static void add_operand(struct weft_chooser *c, weft_node n, uint32_t index)
{
    weft_val result;
    const struct weft_chooser *by = weft_chooser_reader(c, n, index, &result);
    const weft_val v = weft_operand(c->graph, n, index);
    const uint32_t from = found_of(c, v), to = by->node[result.id] - 1, rows = c->labelling->node[from].choices,
                   results = choices_of(by, result), layouts = list_of(c, v)->count;
    if (layouts == 1 && results == 1)
        return;
    const struct weft_format_known *reads = price_reads(c, (struct weft_pin){.node = n, .index = index});
    const int64_t *price = c->read[c->graph->node[n.id].first_operand + index] = reads->answer;
    struct weft_format_known *known = WEFT_RECALL(c->formats, WEFT_RECALL_EDGE, reads->number, c->set[v.id] != 0);
    if (!known->answer) {
        uint32_t layout;
        struct weft_label_table *edge = weft_labelling_table(c->formats->arena, rows, results);
        for (uint32_t r = 0; r < results; r++)
            for (uint32_t at = 0; at < rows; at++)
                edge->cost[at * results + r] = weft_chooser_read(c, v, at, price + r * layouts, &layout);
        known->answer = edge;
    }
    weft_labelling_join(c->labelling, from, to, known->answer);
}

void weft_chooser_price_return(const struct weft_chooser *c, uint32_t i, int64_t *ret_price)
{
    const struct weft_format_list *list = list_of(c, c->graph->ret[i].value);
    for (uint32_t k = 0; k < list->count; k++)
        ret_price[k] = weft_format_weighted(c->formats, weft_format_return_ps(c->formats, i, list->layout[k]));
}

void weft_chooser_return(struct weft_chooser *c, uint32_t i)
{
    const weft_val v = c->graph->ret[i].value;
    const uint32_t found = found_of(c, v);
    int64_t price[WEFT_MAX_FORMATS];
    uint32_t layout;
    weft_chooser_price_return(c, i, price);
    for (uint32_t at = 0; at < c->labelling->node[found].choices; at++)
        c->labelling->node[found].cost[at] =
            weft_label_add(c->labelling->node[found].cost[at], weft_chooser_read(c, v, at, price, &layout));
}

/* Results of one node are written by one loop: those beyond the first pay for another order as a conversion would.
 * Kernels of the caller's say how they write each. */
static int64_t tie_ps(const struct weft_chooser *c, weft_val first, const struct weft_format_choice *choice, weft_val v,
                      uint32_t layout)
{
    const uint32_t with = list_of(c, first)->layout[choice->format];
    const uint32_t operands = c->graph->node[weft_def(c->graph, v).id].operands;
    const int op = weft_def_opcode(c->graph, v);
    if (!choice->own && (op == WEFT_OP_attention_sums || op == WEFT_OP_attention_grad))
        return 0; /* their kernels write any strides */
    if (choice->own)
        return choice->own->layout[operands + c->graph->value[v.id].result] == layout ? 0 : WEFT_LABEL_NEVER;
    return with == layout ? 0 : weft_format_convert_ps(c->formats, v, layout, 0) +
                                weft_format_convert_ps(c->formats, first, with, 0);
}

static void tie_results(struct weft_chooser *c, weft_node n)
{
    for (uint32_t i = 1; i < c->graph->node[n.id].results; i++) {
        const weft_val first = weft_result(c->graph, n, 0), v = weft_result(c->graph, n, i);
        const uint32_t rows = choices_of(c, first), columns = choices_of(c, v);
        int64_t *edge = weft_labelling_edge(c->labelling, c->node[first.id] - 1, c->node[v.id] - 1);
        for (uint32_t k = 0; k < rows; k++)
            for (uint32_t m = 0; m < columns; m++)
                edge[k * columns + m] = weft_format_weighted(
                    c->formats,
                    tie_ps(c, first, &c->choice[first.id][k], v, list_of(c, v)->layout[written_in(c, v, m)]));
    }
}

void weft_chooser_add_values(struct weft_chooser *c)
{
    struct weft_graph *g = c->graph;
    for (uint32_t i = 0; i < g->params; i++)
        add_value(c, g->param[i]);
    weft_foreach_node(g, n)
        for (uint32_t i = 0; i < g->node[n.id].results; i++)
            add_value(c, weft_result(g, n, i));
}

void weft_chooser_pose(struct weft_chooser *c)
{
    struct weft_graph *g = c->graph;
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; i < g->node[n.id].operands && g->node[n.id].results; i++)
            add_operand(c, n, i);
        if (weft_op_of(g, n)->traits & WEFT_CONTROL)
            weft_chooser_tie_bodies(c, n);
        else
            tie_results(c, n);
    }
}
