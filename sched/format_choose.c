/* SPDX-License-Identifier: Apache-2.0 */
/* format_choose.c: the answer to the labelling problem of memory formats. */
#include "sched/chooser.h"

/* Entries of a table: few are tried first, which proves the best choice for nearly all graphs, in a tenth of the time;
 * many where that leaves a gap. */
enum { FEW_ENTRIES = 1 << 16, MOST_ENTRIES = 1000000 };

/* Where a list has row-major, or channels-last; the first where there is no second. */
static uint32_t find_place(const struct weft_chooser *c, uint32_t v, bool last)
{
    const struct weft_format_list *list = &c->formats->list[v];
    uint32_t row = 0;
    while (row < list->count && list->layout[row] != 0)
        row++;
    for (uint32_t i = 0; last && i < list->count; i++)
        if (weft_type_of(c->graph, (weft_val){.id = v})->rank > 2 && list->layout[i] != 0 &&
            weft_format_is_last(c->formats, (weft_val){.id = v}, list->layout[i]) &&
            (!weft_def(c->graph, (weft_val){.id = v}).id ||
             weft_format_write_ps(c->formats, (weft_val){.id = v}, list->layout[i]) < WEFT_LABEL_NEVER))
            return i;
    return row;
}

static uint32_t place_in(const struct weft_chooser *c, uint32_t v, bool last)
{
    const struct weft_formats *f = c->formats;
    const struct weft_value *value = &c->graph->value[v];
    struct weft_format_known *known = WEFT_RECALL(f, WEFT_RECALL_PLACE, f->node_kind[value->def.id], value->result,
                                                  f->kind[v], f->list[v].number, last);
    if (!known->answer) {
        uint32_t *place = weft_new(f->arena, uint32_t, 1);
        *place = find_place(c, v, last);
        known->answer = place;
    }
    return *(const uint32_t *)known->answer;
}

/* Value v is written in layout number `at` of its list, and its readers find that. */
static void choose_layout(const struct weft_chooser *c, uint32_t v, uint32_t at, uint32_t *choice)
{
    for (uint32_t i = 0; c->node[v] && i < choices_of(c, (weft_val){.id = v}); i++)
        if (written_in(c, (weft_val){.id = v}, i) == at)
            choice[c->node[v] - 1] = i;
    if (c->set[v] && at < c->formats->list[v].count)
        choice[c->set[v] - 1] = at;
}

/* One order wherever there is a choice. */
static int64_t one_order_cost(struct weft_chooser *top, bool last)
{
    uint32_t *choice = weft_new(top->formats->arena, uint32_t, top->labelling->nodes);
    for (uint32_t i = 0; i < top->formats->count; i++) {
        const struct weft_chooser *c = &top->all[i];
        for (uint32_t v = 1; v < c->graph->values; v++)
            choose_layout(c, v, c->node[v] ? place_in(c, v, last) : 0, choice);
    }
    return weft_labelling_cost(top->labelling, choice);
}

/* Where a list has the layout that a view has if its operand is stored so; its first place where it has not. */
static uint32_t place_of_view(const struct weft_chooser *c, weft_node n, uint32_t layout)
{
    const struct weft_pin from = {.node = n}, to = {.node = n, .result = true};
    const weft_val view = weft_result(c->graph, n, 0);
    const struct weft_format_list *list = list_of(c, view);
    uint32_t number = 0, at = 0;
    weft_format_carry(c->formats, from, layout, to, &number);
    while (at < list->count && list->layout[at] != number)
        at++;
    return at < list->count ? at : place_in(c, view.id, /* last= */ false);
}

/* What is computed is row-major wherever it may be, views are where their operands are, and what is given is read as it
 * lies: the graph as it stands. */
static void choose_as_it_stands(const struct weft_chooser *c, uint32_t *choice)
{
    struct weft_graph *g = c->graph;
    uint32_t *at = weft_new(c->formats->arena, uint32_t, g->values);
    for (uint32_t v = 1; v < g->values; v++)
        at[v] = c->node[v] && !c->formats->list[v].is_fact ? place_in(c, v, /* last= */ false) : 0;
    weft_foreach_node(g, n)
        if (weft_is_view(g, n)) {
            const weft_val from = weft_operand(g, n, 0);
            at[weft_result(g, n, 0).id] = place_of_view(c, n, list_of(c, from)->layout[at[from.id]]);
        }
    for (uint32_t v = 1; v < g->values; v++)
        choose_layout(c, v, at[v], choice);
}

/* What it costs to write a value as chosen, and all that read it. */
static int64_t whole_cost(const struct weft_chooser *c, const struct weft_label_links *links, const uint32_t *choice,
                          weft_val v)
{
    const uint32_t node = c->node[v.id] - 1;
    int64_t cost[WEFT_MAX_CHOICES], read[WEFT_MOST_SETS];
    weft_labelling_beside(c->labelling, links, choice, node, cost);
    if (!c->set[v.id])
        return cost[choice[node]];
    const uint32_t set = choice[c->set[v.id] - 1];
    weft_labelling_beside(c->labelling, links, choice, c->set[v.id] - 1, read);
    return cost[choice[node]] - weft_chooser_set_cost(c, v, written_in(c, v, choice[node]), set) + read[set];
}

/* Had a value been written in another layout, or by another kernel, and were it chosen anew what is converted for those
 * who read it, and for its own node. */
static void weigh_others_of(struct weft_chooser *c, const uint32_t *choice, struct weft_label_followers *followers)
{
    struct weft_formats *f = c->formats;
    for (uint32_t v = 1; v < c->graph->values; v++) {
        const uint32_t choices = c->node[v] ? choices_of(c, (weft_val){.id = v}) : 0;
        f->second[v] = f->written[v];
        f->second_own[v] = f->chosen[v];
        if (choices < 2)
            continue;
        const uint32_t chosen = choice[c->node[v] - 1];
        int64_t cost[WEFT_MAX_CHOICES], best = WEFT_LABEL_NEVER;
        weft_labelling_beside_followers(followers, c->node[v] - 1, cost);
        f->written_ps[v] = whole_cost(c, &followers->links, choice, (weft_val){.id = v});
        for (uint32_t i = 0; i < choices; i++)
            if (i != chosen && cost[i] < best) {
                best = cost[i];
                f->second[v] = f->list[v].layout[c->choice[v][i].format];
                f->second_own[v] = c->choice[v][i].own;
                f->second_ps[v] = best - cost[chosen];
                c->all->formats->weighs = true;
            }
    }
}

static void weigh_others(struct weft_chooser *top, const uint32_t *choice)
{
    struct weft_label_followers followers;
    uint8_t *is_set = weft_new(top->formats->arena, uint8_t, top->labelling->nodes);
    for (uint32_t i = 0; i < top->formats->count; i++)
        for (uint32_t v = 1; v < top->all[i].graph->values; v++)
            if (top->all[i].set[v])
                is_set[top->all[i].set[v] - 1] = 1;
    weft_labelling_follow(top->labelling, choice, is_set, &followers);
    for (uint32_t i = 0; i < top->formats->count; i++)
        weigh_others_of(&top->all[i], choice, &followers);
}

/* Is there an axis with one index at the hints, but not at all sizes? Orders that only differ there differ. */
static bool may_grow(const struct weft_graph *g, weft_val v)
{
    const struct weft_type *type = weft_type_of(g, v);
    bool grows = false;
    for (unsigned i = 0; i < type->rank; i++)
        grows |= !weft_dim_is_constant(type->extent[i]) && weft_dim_hint(g->dims, type->extent[i]) <= 1;
    return grows;
}

/* Where a body's parameter could not be as what becomes it, for want of candidates: it is, and its readers convert. */
static void take_params(struct weft_formats *f)
{
    const weft_node n = f->holder[0];
    const struct weft_formats *outer = f->outer;
    const bool loop = weft_opcode_of(outer->graph, n) == WEFT_OP_loop; /* parameter 0 is the number of the trip */
    for (uint32_t i = loop; i < f->graph->params; i++) {
        const weft_val param = f->graph->param[i];
        const uint32_t operand = i + !loop;
        const uint32_t outside =
            weft_format_is_carried(outer->graph, n, operand)
                ? outer->written[weft_result(outer->graph, n, operand - 1).id]
                : outer->read[outer->graph->node[n.id].first_operand + operand];
        const uint32_t order = weft_format_order(f, param, outside);
        if (may_grow(f->graph, param) || !weft_format_has_order(f, param, order, f->written[param.id]))
            f->written[param.id] = order;
    }
}

/* How what a body returns has to lie, now that it is known of what is around it: of a body that several nodes run, as
 * the first of them has it. */
static void take_promises(struct weft_formats *f)
{
    f->promise = weft_new(f->arena, uint32_t, f->graph->returns);
    for (uint32_t i = 0; i < f->graph->returns; i++)
        if (!weft_format_inner(f->outer, f->holder[0], i,
                               f->outer->written[weft_result(f->outer->graph, f->holder[0], i).id], &f->promise[i]))
            f->promise[i] = 0;
}

static void take_reads(struct weft_chooser *c, const struct weft_label_answer *answer, weft_node n)
{
    struct weft_formats *f = c->formats;
    for (uint32_t i = 0; i < c->graph->node[n.id].operands && c->graph->node[n.id].results; i++) {
        weft_val result;
        const struct weft_chooser *by = weft_chooser_reader(c, n, i, &result);
        const weft_val v = weft_operand(c->graph, n, i);
        const struct weft_format_list *list = list_of(c, v);
        const int64_t *price = c->read[c->graph->node[n.id].first_operand + i];
        uint32_t layout = 0;
        if (price)
            weft_chooser_read(c, v, answer->choice[found_of(c, v)],
                              price + (size_t)answer->choice[by->node[result.id] - 1] * list->count, &layout);
        f->read[c->graph->node[n.id].first_operand + i] = list->layout[layout];
    }
}

static void take_answer_of(struct weft_chooser *c, const struct weft_label_answer *answer)
{
    struct weft_formats *f = c->formats;
    struct weft_graph *g = c->graph;
    for (uint32_t v = 1; v < g->values; v++) {
        if (!c->node[v])
            continue;
        const struct weft_format_choice *choice = &c->choice[v][answer->choice[c->node[v] - 1]];
        f->written[v] = f->list[v].layout[choice->format];
        f->chosen[v] = choice->own;
    }
    weft_foreach_node(g, n)
        take_reads(c, answer, n);
    if (f->outer) {
        take_params(f);
        take_promises(f);
    }
    for (uint32_t i = 0; i < g->returns; i++) {
        const weft_val v = g->ret[i].value;
        int64_t price[WEFT_MAX_FORMATS];
        uint32_t layout;
        weft_chooser_price_return(c, i, price);
        weft_chooser_read(c, v, answer->choice[found_of(c, v)], price, &layout);
        f->given[i] = list_of(c, v)->layout[layout];
    }
}

/* Outer graphs first. */
static void take_answer(struct weft_chooser *top, const struct weft_label_answer *answer)
{
    for (uint32_t i = 0; i < top->formats->count; i++)
        take_answer_of(&top->all[i], answer);
}

/* Sets in `seen`, by value, the bit of a layout that somebody reads and its node does not write. */
static void note_read(const struct weft_formats *f, weft_val v, uint32_t layout, uint32_t *seen)
{
    const struct weft_format_list *list = &f->list[v.id];
    for (uint32_t i = 0; i < list->count && layout != f->written[v.id]; i++)
        if (list->layout[i] == layout)
            seen[v.id] |= 1u << i;
}

/* Relayouts that the answer puts into a graph: one for each layout of a value that somebody reads and its node does not
 * write, and those for functions alone. */
static uint32_t conversions_of(const struct weft_formats *f)
{
    const struct weft_graph *g = f->graph;
    uint32_t *seen = weft_new(f->arena, uint32_t, g->values), count = 0;
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; i < g->node[n.id].operands && g->node[n.id].results; i++) {
            const uint32_t read = f->read[g->node[n.id].first_operand + i];
            note_read(f, weft_operand(g, n, i), read, seen);
            count += weft_format_misses_order(f, (struct weft_pin){.node = n, .index = i}, read);
        }
        for (uint32_t i = 0; i < g->node[n.id].results; i++)
            count += weft_format_misses_order(f, (struct weft_pin){.node = n, .result = true, .index = i},
                                              f->written[weft_result(g, n, i).id]);
    }
    for (uint32_t i = 0; i < g->returns; i++) {
        uint32_t promised;
        note_read(f, g->ret[i].value, f->given[i], seen);
        count += weft_format_promised(f, i, &promised) && promised != f->given[i];
    }
    for (uint32_t v = 1; v < g->values; v++)
        count += (uint32_t)__builtin_popcount(seen[v]);
    return count;
}

static uint32_t conversions(const struct weft_formats *top)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < top->count; i++)
        count += conversions_of(top->all[i]);
    return count;
}

enum { EQUAL_PS = 1000 }; /* rules tell apart what differs by less */

/* The graph stays as it stands where the best choice is hardly better and puts in no relayout less: prices are not as
 * exact as that, and what stays as it is cannot turn out worse. */
static void doubt(struct weft_chooser *c, struct weft_label_answer *answer)
{
    struct weft_formats *f = c->formats;
    const struct weft_label_answer best = *answer;
    const uint32_t relayouts = conversions(f);
    uint32_t *const as_it_stands = weft_new(f->arena, uint32_t, c->labelling->nodes);
    for (uint32_t i = 0; i < f->count; i++)
        choose_as_it_stands(&c->all[i], as_it_stands);
    const int64_t cost = weft_labelling_cost(c->labelling, as_it_stands), more = cost - best.cost;
    if (cost >= WEFT_LABEL_NEVER || more > cost / WEFT_FORMAT_HARDLY || more < EQUAL_PS || f->target->kernel)
        return;
    answer->choice = as_it_stands;
    answer->cost += more;
    answer->bound += more;
    take_answer(c, answer);
    if (conversions(f) <= relayouts) {
        f->free_cost += more;
        return;
    }
    *answer = best;
    take_answer(c, answer);
}

static void solve_once(struct weft_chooser *c, struct weft_label_answer *ret)
{
    weft_labelling_solve(c->labelling, FEW_ENTRIES, ret);
    if (ret->bound < ret->cost)
        weft_labelling_solve(c->labelling, MOST_ENTRIES, ret);
}

/* Solves the problem without what is promised for results, for the price of the promises, and then with them. What
 * keeps the promises at no cost is the answer to both. */
static void solve(struct weft_chooser *c, struct weft_label_answer *ret)
{
    uint32_t promised;
    solve_once(c, ret);
    c->formats->free_cost = ret->cost;
    for (uint32_t i = 0; i < c->graph->returns; i++)
        if (weft_format_promised(c->formats, i, &promised))
            weft_chooser_return(c, i);
    if (ret->splits > 0 || weft_labelling_cost(c->labelling, ret->choice) != ret->cost)
        solve_once(c, ret);
}

static void open_chooser(struct weft_chooser *c, struct weft_formats *f, struct weft_labelling *labelling,
                         struct weft_chooser *all)
{
    struct weft_graph *g = f->graph;
    *c = (struct weft_chooser){.formats = f, .graph = g, .labelling = labelling, .all = all,
                               .node = weft_new(f->arena, uint32_t, g->values),
                               .set = weft_new(f->arena, uint32_t, g->values),
                               .choice = weft_new(f->arena, const struct weft_format_choice *, g->values),
                               .convert = weft_new(f->arena, const int64_t *, g->values),
                               .read = weft_new(f->arena, const int64_t *, g->slots)};
    weft_chooser_add_values(c);
}

static void open_answer(struct weft_formats *f)
{
    const struct weft_graph *g = f->graph;
    f->written = weft_new(f->arena, uint32_t, g->values);
    f->read = weft_new(f->arena, uint32_t, g->slots);
    f->given = weft_new(f->arena, uint32_t, g->returns);
    f->chosen = weft_new(f->arena, const struct weft_format_own *, g->values);
    f->second = weft_new(f->arena, uint32_t, g->values);
    f->second_own = weft_new(f->arena, const struct weft_format_own *, g->values);
    f->written_ps = weft_new(f->arena, int64_t, g->values);
    f->second_ps = weft_new(f->arena, int64_t, g->values);
}

void weft_formats_choose(struct weft_formats *f)
{
    struct weft_chooser *all = weft_new(f->arena, struct weft_chooser, f->count);
    struct weft_labelling labelling;
    struct weft_label_answer answer;
    weft_labelling_open(&labelling, f->arena);
    for (uint32_t i = 0; i < f->count; i++)
        open_chooser(&all[i], f->all[i], &labelling, all);
    for (uint32_t i = 0; i < f->count; i++)
        weft_chooser_pose(&all[i]);
    solve(all, &answer);
    for (uint32_t i = 0; i < f->count; i++)
        open_answer(f->all[i]);
    f->row_major = one_order_cost(all, /* last= */ false);
    f->channels_last = one_order_cost(all, /* last= */ true);
    take_answer(all, &answer);
    doubt(all, &answer);
    f->cost = answer.cost;
    f->bound = answer.bound;
    weigh_others(all, answer.choice);
}
