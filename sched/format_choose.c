/* SPDX-License-Identifier: Apache-2.0 */
/* format_choose.c: the labelling problem of memory formats.
 *
 * A node of the problem for each value: its choices are the layouts in which its node may write it. A value that is
 * read more than once has another node: its choices are the sets of layouts in which it is there to be read, so that a
 * conversion which two readers share is paid once. Edges are conversions, and what ops pay for reading in another order
 * than they write; results of one op are tied to its first.
 *
 *   written ──── (set) ──── result of reader 1
 *                  └─────── result of reader 2          with one reader: written ──── result of the reader */
#include "sched/format.h"

#include <string.h>

enum { MOST_SETS = WEFT_MAX_FORMATS * (WEFT_MAX_FORMATS + 1) / 2, MOST_ENTRIES = 1000000 };

struct chooser {
    struct weft_formats *formats;
    struct weft_graph *graph;
    struct weft_labelling labelling;
    uint32_t *node;          /* by value: of the labelling, + 1; 0: none */
    uint32_t *set;           /* by value: the node for what is read, + 1; 0: as written */
    int64_t **convert;       /* by value: [from][to] of its list */
};

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

static const struct weft_format_list *list_of(const struct chooser *c, weft_val v) { return &c->formats->list[v.id]; }

static int64_t converted(const struct chooser *c, weft_val v, uint32_t from, uint32_t to)
{
    return c->convert[v.id][from * list_of(c, v)->count + to];
}

static void price_conversions(struct chooser *c, weft_val v)
{
    const struct weft_format_list *list = list_of(c, v);
    c->convert[v.id] = weft_new(c->formats->arena, int64_t, (size_t)list->count * list->count);
    for (uint32_t from = 0; from < list->count; from++)
        for (uint32_t to = 0; to < list->count; to++)
            if (from != to)
                c->convert[v.id][from * list->count + to] =
                    weft_format_convert_ps(c->formats, v, list->layout[from], list->layout[to]);
}

/* To have all of a set where the node writes `from`. */
static int64_t set_cost(const struct chooser *c, weft_val v, uint32_t from, uint32_t set)
{
    const uint32_t count = list_of(c, v)->count, bits = set_bits(count, set);
    int64_t sum = 0;
    for (uint32_t to = 0; to < count; to++)
        if (bits >> to & 1)
            sum = weft_label_add(sum, converted(c, v, from, to));
    return sum;
}

/* Ties go to the earlier candidate: a picosecond for each place in the list. */
static void add_value(struct chooser *c, weft_val v)
{
    const struct weft_format_list *list = list_of(c, v);
    const struct weft_value *value = &c->graph->value[v.id];
    int64_t cost[WEFT_MAX_FORMATS];
    for (uint32_t i = 0; i < list->count; i++)
        cost[i] = weft_label_add((int64_t)i,
                                 value->def.id ? weft_format_write_ps(c->formats, v, list->layout[i]) : 0);
    c->node[v.id] = 1 + weft_labelling_node(&c->labelling, list->is_fact ? 1 : list->count, cost);
    price_conversions(c, v);
    if (value->uses + value->returns < 2 || list->count < 2)
        return;
    const uint32_t sets = sets_of(list->count);
    c->set[v.id] = 1 + weft_labelling_node(&c->labelling, sets, NULL);
    const uint32_t rows = c->labelling.node[c->node[v.id] - 1].choices;
    int64_t *edge = weft_labelling_edge(&c->labelling, c->node[v.id] - 1, c->set[v.id] - 1);
    for (uint32_t from = 0; from < rows; from++)
        for (uint32_t s = 0; s < sets; s++)
            edge[from * sets + s] = set_cost(c, v, from, s);
}

/* --- the edges ---------------------------------------------------------------------------------------------------- */

/* The cheapest way for a reader with prices by layout of the list, where the value is there as choice `at` of its node
 * says; and which layout it then reads. */
static int64_t best_read(const struct chooser *c, weft_val v, uint32_t at, const int64_t *price, uint32_t *ret_layout)
{
    const struct weft_format_list *list = list_of(c, v);
    const uint32_t there = c->set[v.id] ? set_bits(list->count, at) : UINT32_MAX; /* or can be converted to */
    int64_t best = WEFT_LABEL_NEVER;
    *ret_layout = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!(there >> i & 1))
            continue;
        const int64_t whole = c->set[v.id] ? price[i] : weft_label_add(price[i], converted(c, v, at, i));
        if (whole < best) {
            best = whole;
            *ret_layout = i;
        }
    }
    return best;
}

/* The labelling's node for what readers of v find. */
static uint32_t found_of(const struct chooser *c, weft_val v)
{
    return (c->set[v.id] ? c->set[v.id] : c->node[v.id]) - 1;
}

static void add_operand(struct chooser *c, weft_node n, uint32_t index)
{
    const struct weft_pin pin = {.node = n, .index = index};
    const weft_val v = weft_operand(c->graph, n, index), result = weft_result(c->graph, n, 0);
    const struct weft_format_list *list = list_of(c, v), *results = list_of(c, result);
    const uint32_t from = found_of(c, v), to = c->node[result.id] - 1, rows = c->labelling.node[from].choices;
    int64_t price[WEFT_MAX_FORMATS];
    uint32_t layout;
    if (rows == 1 && results->count == 1)
        return;
    int64_t *edge = weft_labelling_edge(&c->labelling, from, to);
    for (uint32_t r = 0; r < results->count; r++) {
        for (uint32_t i = 0; i < list->count; i++)
            price[i] = weft_format_read_ps(c->formats, pin, list->layout[i], results->layout[r]);
        for (uint32_t at = 0; at < rows; at++)
            edge[at * results->count + r] = best_read(c, v, at, price, &layout);
    }
}

static void add_return(struct chooser *c, uint32_t i)
{
    const weft_val v = c->graph->ret[i].value;
    const struct weft_format_list *list = list_of(c, v);
    const uint32_t found = found_of(c, v);
    int64_t price[WEFT_MAX_FORMATS];
    uint32_t layout;
    for (uint32_t k = 0; k < list->count; k++)
        price[k] = weft_format_return_ps(c->formats, i, list->layout[k]);
    for (uint32_t at = 0; at < c->labelling.node[found].choices; at++)
        c->labelling.node[found].cost[at] =
            weft_label_add(c->labelling.node[found].cost[at], best_read(c, v, at, price, &layout));
}

/* Results of one node are written by one loop: those beyond the first pay for another order as a conversion would. */
static void tie_results(struct chooser *c, weft_node n)
{
    for (uint32_t i = 1; i < c->graph->node[n.id].results; i++) {
        const weft_val first = weft_result(c->graph, n, 0), v = weft_result(c->graph, n, i);
        const struct weft_format_list *a = list_of(c, first), *b = list_of(c, v);
        int64_t *edge = weft_labelling_edge(&c->labelling, c->node[first.id] - 1, c->node[v.id] - 1);
        for (uint32_t k = 0; k < a->count; k++)
            for (uint32_t m = 0; m < b->count; m++)
                if (a->layout[k] != b->layout[m])
                    edge[k * b->count + m] = weft_format_convert_ps(c->formats, v, b->layout[m], 0) +
                                             weft_format_convert_ps(c->formats, first, a->layout[k], 0);
    }
}

static void pose(struct chooser *c)
{
    struct weft_graph *g = c->graph;
    for (uint32_t i = 0; i < g->params; i++)
        add_value(c, g->param[i]);
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; i < g->node[n.id].results; i++)
            add_value(c, weft_result(g, n, i));
        for (uint32_t i = 0; i < g->node[n.id].operands && g->node[n.id].results; i++)
            add_operand(c, n, i);
        tie_results(c, n);
    }
    for (uint32_t i = 0; i < g->returns; i++)
        add_return(c, i);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* Row-major wherever there is a choice. */
static int64_t row_major_cost(struct chooser *c)
{
    uint32_t *choice = weft_new(c->formats->arena, uint32_t, c->labelling.nodes);
    for (uint32_t v = 1; v < c->graph->values; v++) {
        const struct weft_format_list *list = &c->formats->list[v];
        uint32_t row = 0;
        while (row < list->count && list->layout[row] != 0)
            row++;
        if (c->node[v] && !list->is_fact && row < list->count)
            choice[c->node[v] - 1] = row;
        if (c->set[v] && row < list->count)
            choice[c->set[v] - 1] = row;
    }
    return weft_labelling_cost(&c->labelling, choice);
}

/* Had a value been written in another layout, and were its readers to choose anew what they read of it. */
static void weigh_others(struct chooser *c, uint32_t *choice)
{
    struct weft_formats *f = c->formats;
    const struct weft_label_links links = weft_labelling_links(&c->labelling, f->arena);
    for (uint32_t v = 1; v < c->graph->values; v++) {
        const struct weft_format_list *list = &f->list[v];
        f->second[v] = f->written[v];
        if (!c->node[v] || list->is_fact || list->count < 2)
            continue;
        const uint32_t node = c->node[v] - 1, chosen = choice[node];
        int64_t cost[WEFT_MAX_FORMATS], read[MOST_SETS], best = WEFT_LABEL_NEVER;
        weft_labelling_beside(&c->labelling, &links, choice, node, cost);
        for (uint32_t i = 0; c->set[v] && i < list->count; i++) {
            const uint32_t set = c->set[v] - 1;
            int64_t least = WEFT_LABEL_NEVER;
            choice[node] = i;
            weft_labelling_beside(&c->labelling, &links, choice, set, read);
            for (uint32_t s = 0; s < c->labelling.node[set].choices; s++)
                least = read[s] < least ? read[s] : least;
            cost[i] = cost[i] < WEFT_LABEL_NEVER && least < WEFT_LABEL_NEVER
                          ? cost[i] - set_cost(c, (weft_val){v}, i, choice[set]) + least : WEFT_LABEL_NEVER;
        }
        choice[node] = chosen;
        for (uint32_t i = 0; i < list->count; i++)
            if (i != chosen && cost[i] < best) {
                best = cost[i];
                f->second[v] = list->layout[i];
                f->second_ps[v] = best - cost[chosen];
            }
    }
}

static void take_answer(struct chooser *c, const struct weft_label_answer *answer)
{
    struct weft_formats *f = c->formats;
    struct weft_graph *g = c->graph;
    for (uint32_t v = 1; v < g->values; v++)
        if (c->node[v])
            f->written[v] = f->list[v].layout[answer->choice[c->node[v] - 1]];
    weft_foreach_node(g, n)
        for (uint32_t i = 0; i < g->node[n.id].operands && g->node[n.id].results; i++) {
            const struct weft_pin pin = {.node = n, .index = i};
            const weft_val v = weft_operand(g, n, i);
            const struct weft_format_list *list = list_of(c, v);
            int64_t price[WEFT_MAX_FORMATS];
            uint32_t layout;
            for (uint32_t k = 0; k < list->count; k++)
                price[k] = weft_format_read_ps(f, pin, list->layout[k], f->written[weft_result(g, n, 0).id]);
            best_read(c, v, answer->choice[found_of(c, v)], price, &layout);
            f->read[g->node[n.id].first_operand + i] = list->layout[layout];
        }
}

void weft_formats_choose(struct weft_formats *f)
{
    struct weft_graph *g = f->graph;
    struct chooser c = {.formats = f, .graph = g,
                        .node = weft_new(f->arena, uint32_t, g->values),
                        .set = weft_new(f->arena, uint32_t, g->values),
                        .convert = weft_new(f->arena, int64_t *, g->values)};
    weft_labelling_open(&c.labelling, f->arena);
    pose(&c);
    struct weft_label_answer answer;
    weft_labelling_solve(&c.labelling, MOST_ENTRIES, &answer);
    f->cost = answer.cost;
    f->bound = answer.bound;
    if (f->unbound)
        return;
    f->written = weft_new(f->arena, uint32_t, g->values);
    f->read = weft_new(f->arena, uint32_t, g->slots);
    f->second = weft_new(f->arena, uint32_t, g->values);
    f->second_ps = weft_new(f->arena, int64_t, g->values);
    f->row_major = row_major_cost(&c);
    take_answer(&c, &answer);
    weigh_others(&c, answer.choice);
}
