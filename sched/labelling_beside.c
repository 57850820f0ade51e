/* SPDX-License-Identifier: Apache-2.0 */
/* labelling_beside.c: what other choices of one node cost beside an answer, all else as it is, or nearly: some nodes
 * follow. A follower is there for its neighbours only and takes what is best for them (the layouts in which a value is
 * there to be read), so that the answer's choice for it says little about what another choice beside it is worth.
 *
 *   what choice i of node n costs = own cost + edges to those that stay
 *                                   + for each follower beside n, the least that it costs with all its edges
 *
 * What each choice of a follower costs is kept as a sum, with pairs that must not be counted apart: then the edges to
 * one neighbour can be taken out and others put in, and the work is proportional to the edges. */
#include "sched/labelling.h"

#include <string.h>

struct weft_label_links weft_labelling_links(const struct weft_labelling *l, struct weft_arena *arena)
{
    struct weft_label_links links = {.first = weft_new(arena, uint32_t, l->nodes),
                                     .next = weft_new(arena, uint32_t, 2 * (size_t)l->edges)};
    for (uint32_t i = 0; i < 2 * l->edges; i++) {
        const uint32_t node = i & 1 ? l->edge[i / 2].b : l->edge[i / 2].a;
        links.next[i] = links.first[node];
        links.first[node] = i + 1;
    }
    return links;
}

void weft_labelling_beside(const struct weft_labelling *l, const struct weft_label_links *links, const uint32_t *choice,
                           uint32_t node, int64_t *ret_cost)
{
    const uint32_t choices = l->node[node].choices;
    memcpy(ret_cost, l->node[node].cost, choices * sizeof *ret_cost);
    for (uint32_t i = links->first[node]; i; i = links->next[i - 1]) {
        const struct weft_label_edge *edge = &l->edge[(i - 1) / 2];
        const bool is_a = !((i - 1) & 1);
        const uint32_t columns = edge->table->columns, other = choice[is_a ? edge->b : edge->a];
        const int64_t *cost = edge->table->cost;
        for (uint32_t c = 0; c < choices; c++)
            ret_cost[c] = weft_label_add(ret_cost[c], cost[is_a ? c * columns + other : other * columns + c]);
    }
}

/* --- followers ---------------------------------------------------------------------------------------------------- */

struct weft_label_sum {
    int64_t sum;
    uint32_t nevers;
};

static void count_in(struct weft_label_sum *sum, int64_t cost, int times)
{
    if (cost >= WEFT_LABEL_NEVER)
        sum->nevers += (uint32_t)times;
    else
        sum->sum += cost * times;
}

static int64_t total(struct weft_label_sum sum)
{
    return sum.nevers || sum.sum >= WEFT_LABEL_NEVER ? WEFT_LABEL_NEVER : sum.sum;
}

static int64_t cost_at(const struct weft_label_table *table, bool a_is_first, uint32_t first, uint32_t second)
{
    return table->cost[a_is_first ? first * table->columns + second : second * table->columns + first];
}

void weft_labelling_follow(const struct weft_labelling *l, const uint32_t *choice, const uint8_t *follows,
                           struct weft_label_followers *ret)
{
    *ret = (struct weft_label_followers){.labelling = l, .choice = choice,
                                         .links = weft_labelling_links(l, l->arena),
                                         .sum = weft_new(l->arena, struct weft_label_sum *, l->nodes),
                                         .seen = weft_new(l->arena, uint64_t, l->nodes)};
    for (uint32_t n = 0; n < l->nodes; n++) {
        if (!follows[n])
            continue;
        ret->sum[n] = weft_new(l->arena, struct weft_label_sum, l->node[n].choices);
        for (uint32_t c = 0; c < l->node[n].choices; c++)
            count_in(&ret->sum[n][c], l->node[n].cost[c], 1);
    }
    for (uint32_t i = 0; i < l->edges; i++) {
        const struct weft_label_edge *edge = &l->edge[i];
        weft_assert(!follows[edge->a] || !follows[edge->b]);
        if (!follows[edge->a] && !follows[edge->b])
            continue;
        const uint32_t n = follows[edge->a] ? edge->a : edge->b, other = n == edge->a ? edge->b : edge->a;
        for (uint32_t c = 0; c < l->node[n].choices; c++)
            count_in(&ret->sum[n][c], cost_at(edge->table, n == edge->a, c, choice[other]), 1);
    }
}

static int64_t least_of(const struct weft_label_followers *f, uint32_t follower)
{
    int64_t least = WEFT_LABEL_NEVER;
    for (uint32_t c = 0; c < f->labelling->node[follower].choices; c++)
        least = total(f->sum[follower][c]) < least ? total(f->sum[follower][c]) : least;
    return least;
}

/* All followers beside a node find it choosing otherwise. */
static void tell(const struct weft_label_followers *f, uint32_t node, uint32_t former, uint32_t choice)
{
    for (uint32_t i = f->links.first[node]; i; i = f->links.next[i - 1]) {
        const struct weft_label_edge *edge = &f->labelling->edge[(i - 1) / 2];
        const bool is_a = !((i - 1) & 1);
        const uint32_t other = is_a ? edge->b : edge->a;
        for (uint32_t c = 0; f->sum[other] && c < f->labelling->node[other].choices; c++) {
            count_in(&f->sum[other][c], cost_at(edge->table, is_a, former, c), -1);
            count_in(&f->sum[other][c], cost_at(edge->table, is_a, choice, c), 1);
        }
    }
}

void weft_labelling_beside_followers(struct weft_label_followers *f, uint32_t node, int64_t *ret_cost)
{
    const struct weft_labelling *l = f->labelling;
    for (uint32_t c = 0; c < l->node[node].choices; c++) {
        ret_cost[c] = l->node[node].cost[c];
        tell(f, node, f->choice[node], c);
        f->turn++;
        for (uint32_t i = f->links.first[node]; i; i = f->links.next[i - 1]) {
            const struct weft_label_edge *edge = &l->edge[(i - 1) / 2];
            const bool is_a = !((i - 1) & 1);
            const uint32_t other = is_a ? edge->b : edge->a;
            if (!f->sum[other])
                ret_cost[c] = weft_label_add(ret_cost[c], cost_at(edge->table, is_a, c, f->choice[other]));
            else if (f->seen[other] != f->turn) /* there may be two edges between two nodes */
                ret_cost[c] = weft_label_add(ret_cost[c], least_of(f, other));
            f->seen[other] = f->turn;
        }
        tell(f, node, c, f->choice[node]);
    }
}
