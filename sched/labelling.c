/* SPDX-License-Identifier: Apache-2.0 */
/* labelling.c: the cheapest labels, by elimination of one node after another.
 *
 * A table says what something costs for each choice of a few nodes. To begin with there is one for each node and one
 * for each edge, from which everything that depends on one end alone has been moved to that end: many are empty then
 * and go. Each table waits in the bucket of that of its nodes which is eliminated first. When a node's turn comes, the
 * sum of its bucket, minimised over its choices, is a new table of the other nodes in it. At the end the nodes choose
 * in reverse order: all tables in a node's bucket concern it and nodes that have chosen already.
 *
 * The first node of a table (the next to go) has stride 1 in it, so that the loop over its choices is the inner one. */
#include "sched/labelling.h"

#include <string.h>

/* Entries: all tables together may have ROOM times as many as one; one, a SHARE-th of what is left, or LITTLE. */
enum { ROOM = 16, SHARE = 8, LITTLE = 256 };

struct table {
    uint32_t nodes, next;    /* next: in the same bucket, + 1 */
    uint32_t *node;          /* in order of elimination */
    const int64_t *cost;
};

struct solver {
    const struct weft_labelling *labelling;
    struct weft_arena *arena;
    const uint32_t *order;
    uint32_t *position;      /* by node: when it goes */
    int64_t **own;           /* by node: the cost of its choices alone */
    struct table *table;
    uint32_t tables, capacity;
    uint32_t *bucket;        /* by node: its first table, + 1 */
    uint32_t *member, member_capacity; /* tables of the bucket that is looked at */
    int64_t most, room;      /* entries: of the next table, and of all that are to come */
    struct weft_label_answer *answer;
};

/* --- the problem -------------------------------------------------------------------------------------------------- */

void weft_labelling_open(struct weft_labelling *labelling, struct weft_arena *arena)
{
    *labelling = (struct weft_labelling){.arena = arena};
}

uint32_t weft_labelling_node(struct weft_labelling *l, uint32_t choices, const int64_t *cost)
{
    weft_assert(choices > 0);
    int64_t *own = weft_new(l->arena, int64_t, choices);
    if (cost)
        memcpy(own, cost, choices * sizeof *cost);
    l->node = weft_grow(l->arena, l->node, &l->node_capacity, l->nodes + 1, sizeof *l->node);
    l->node[l->nodes] = (struct weft_label_node){choices, own};
    return l->nodes++;
}

struct weft_label_table *weft_labelling_table(struct weft_arena *arena, uint32_t rows, uint32_t columns)
{
    struct weft_label_table *table = weft_new(arena, struct weft_label_table, 1);
    *table = (struct weft_label_table){rows, columns, weft_new(arena, int64_t, (size_t)rows * columns), NULL};
    return table;
}

void weft_labelling_join(struct weft_labelling *l, uint32_t a, uint32_t b, struct weft_label_table *table)
{
    weft_assert(a < l->nodes && b < l->nodes && a != b);
    weft_assert(table->rows == l->node[a].choices && table->columns == l->node[b].choices);
    l->edge = weft_grow(l->arena, l->edge, &l->edge_capacity, l->edges + 1, sizeof *l->edge);
    l->edge[l->edges++] = (struct weft_label_edge){a, b, table};
}

int64_t *weft_labelling_edge(struct weft_labelling *l, uint32_t a, uint32_t b)
{
    weft_assert(a < l->nodes && b < l->nodes);
    struct weft_label_table *table = weft_labelling_table(l->arena, l->node[a].choices, l->node[b].choices);
    weft_labelling_join(l, a, b, table);
    return table->cost;
}

int64_t weft_labelling_cost(const struct weft_labelling *l, const uint32_t *choice)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->nodes; i++)
        sum = weft_label_add(sum, l->node[i].cost[choice[i]]);
    for (uint32_t i = 0; i < l->edges; i++) {
        const struct weft_label_edge *edge = &l->edge[i];
        sum = weft_label_add(sum, edge->table->cost[choice[edge->a] * edge->table->columns + choice[edge->b]]);
    }
    return sum;
}

/* --- edges without what belongs to one end ------------------------------------------------------------------------ */

/* A table as what it costs for either end alone, and the rest, in the layout of tables; NULL if nothing is left. */
struct weft_label_normal {
    int64_t *row, *column;
    int64_t *rest, *turned;  /* stride 1 for b, for a */
};

/* The least cost of a line of `count` costs, which is taken from it. */
static int64_t take_least(int64_t *cost, uint32_t count, size_t step)
{
    int64_t least = WEFT_LABEL_NEVER;
    for (uint32_t i = 0; i < count; i++)
        least = cost[i * step] < least ? cost[i * step] : least;
    for (uint32_t i = 0; i < count; i++)
        if (least == WEFT_LABEL_NEVER)
            cost[i * step] = 0;
        else if (cost[i * step] < WEFT_LABEL_NEVER)
            cost[i * step] -= least;
    return least;
}

static const struct weft_label_normal *normal_of(struct solver *s, struct weft_label_table *table)
{
    const uint32_t rows = table->rows, columns = table->columns;
    const size_t entries = (size_t)rows * columns;
    if (table->normal)
        return table->normal;
    struct weft_label_normal *normal = weft_new(s->arena, struct weft_label_normal, 1);
    int64_t *cost = weft_new(s->arena, int64_t, 2 * entries + rows + columns), *turned = cost + entries;
    *normal = (struct weft_label_normal){.row = turned + entries, .column = turned + entries + rows};
    memcpy(cost, table->cost, entries * sizeof *cost);
    for (uint32_t i = 0; i < rows; i++)
        normal->row[i] = take_least(cost + (size_t)i * columns, columns, 1);
    for (uint32_t k = 0; k < columns; k++)
        normal->column[k] = take_least(cost + k, rows, columns);
    size_t i = 0;
    while (i < entries && cost[i] == 0)
        i++;
    for (size_t at = 0; at < entries; at++)
        turned[at % columns * rows + at / columns] = cost[at];
    if (i < entries) {
        normal->rest = cost;
        normal->turned = turned;
    }
    return table->normal = normal;
}

static void add_own(struct solver *s, uint32_t node, const int64_t *cost)
{
    for (uint32_t c = 0; c < s->labelling->node[node].choices; c++)
        s->own[node][c] = weft_label_add(s->own[node][c], cost[c]);
}

static void keep_table(struct solver *s, struct table table)
{
    s->table = weft_grow(s->arena, s->table, &s->capacity, s->tables + 1, sizeof *s->table);
    table.next = s->bucket[table.node[0]];
    s->table[s->tables] = table;
    s->bucket[table.node[0]] = ++s->tables;
}

static void take_problem(struct solver *s)
{
    const struct weft_labelling *l = s->labelling;
    uint32_t *pair = weft_new(s->arena, uint32_t, 2 * (size_t)l->edges), count = 0;
    for (uint32_t i = 0; i < l->nodes; i++) {
        s->own[i] = weft_new(s->arena, int64_t, l->node[i].choices);
        memcpy(s->own[i], l->node[i].cost, l->node[i].choices * sizeof(int64_t));
    }
    for (uint32_t i = 0; i < l->edges; i++) {
        const struct weft_label_normal *normal = normal_of(s, l->edge[i].table);
        add_own(s, l->edge[i].a, normal->row);
        add_own(s, l->edge[i].b, normal->column);
        if (!normal->rest)
            continue;
        pair[2 * count] = l->edge[i].a;
        pair[2 * count + 1] = l->edge[i].b;
        count++;
    }
    s->order = weft_labelling_order(s->arena, l->nodes, pair, count);
    for (uint32_t i = 0; i < l->nodes; i++)
        s->position[s->order[i]] = i;
    for (uint32_t i = 0, k = 0; i < l->edges; i++) {
        const struct weft_label_normal *normal = l->edge[i].table->normal;
        if (!normal->rest)
            continue;
        uint32_t *node = &pair[2 * k++];
        const bool a_first = s->position[node[0]] < s->position[node[1]];
        if (!a_first) {
            node[0] = l->edge[i].b;
            node[1] = l->edge[i].a;
        }
        keep_table(s, (struct table){.nodes = 2, .node = node, .cost = a_first ? normal->turned : normal->rest});
    }
}

/* --- elimination -------------------------------------------------------------------------------------------------- */

/* Tables that are minimised together, and the nodes that they have besides the one that goes. */
struct group {
    uint32_t *member, members;
    uint32_t *node, nodes;
    int64_t entries;
};

/* The union of the group's nodes and those of a table but its first, in order of elimination, into `ret`. */
static uint32_t unite(const struct solver *s, const struct group *group, const struct table *table, uint32_t *ret,
                      int64_t *ret_entries)
{
    uint32_t count = 0, i = 0, k = 1;
    *ret_entries = 1;
    while (i < group->nodes || k < table->nodes) {
        uint32_t next;
        if (k == table->nodes ||
            (i < group->nodes && s->position[group->node[i]] <= s->position[table->node[k]])) {
            next = group->node[i++];
            k += k < table->nodes && table->node[k] == next;
        } else {
            next = table->node[k++];
        }
        ret[count++] = next;
        if (*ret_entries <= s->most)
            *ret_entries *= s->labelling->node[next].choices;
    }
    return count;
}

/* Puts tables into the first group that stays within the bound; the first of a group may be as large as it likes. */
static uint32_t divide(struct solver *s, const uint32_t *member, uint32_t members, struct group *group)
{
    uint32_t groups = 0, most = 1;
    for (uint32_t i = 0; i < members; i++)
        most += s->table[member[i]].nodes;
    uint32_t *united = weft_new(s->arena, uint32_t, most);
    for (uint32_t i = 0; i < members; i++) {
        uint32_t g = 0, count = 0;
        int64_t entries = 0;
        for (;; g++) {
            if (g == groups)
                group[groups++] = (struct group){.member = weft_new(s->arena, uint32_t, members),
                                                 .node = weft_new(s->arena, uint32_t, most), .entries = 1};
            count = unite(s, &group[g], &s->table[member[i]], united, &entries);
            if (entries <= s->most || group[g].members == 0)
                break;
        }
        group[g].member[group[g].members++] = member[i];
        memcpy(group[g].node, united, count * sizeof *united);
        group[g].nodes = count;
        group[g].entries = entries;
    }
    return groups;
}

/* Where each member of a group stands while the choices of the group's nodes are counted through. */
struct walk {
    const int64_t **at;      /* by member: the entry for choice 0 of the node that goes */
    int64_t *stride;         /* [member][node of the group] */
    uint32_t *choice;        /* [node of the group] */
};

static struct walk start_walk(struct solver *s, const struct group *group)
{
    struct walk walk = {.at = weft_new(s->arena, const int64_t *, group->members),
                        .stride = weft_new(s->arena, int64_t, (size_t)group->members * group->nodes),
                        .choice = weft_new(s->arena, uint32_t, group->nodes)};
    for (uint32_t m = 0; m < group->members; m++) {
        const struct table *table = &s->table[group->member[m]];
        int64_t stride = 1;
        walk.at[m] = table->cost;
        for (uint32_t k = 0, i = 0; k < table->nodes; k++) {
            if (k > 0) {
                while (group->node[i] != table->node[k])
                    i++;
                walk.stride[(size_t)m * group->nodes + i] = stride;
            }
            stride *= s->labelling->node[table->node[k]].choices;
        }
    }
    return walk;
}

static void step(const struct solver *s, const struct group *group, struct walk *walk)
{
    for (uint32_t i = 0; i < group->nodes; i++) {
        const uint32_t choices = s->labelling->node[group->node[i]].choices;
        const bool carries = ++walk->choice[i] == choices;
        for (uint32_t m = 0; m < group->members; m++)
            walk->at[m] += walk->stride[(size_t)m * group->nodes + i] * (carries ? 1 - (int64_t)choices : 1);
        if (!carries)
            return;
        walk->choice[i] = 0;
    }
}

/* The table of a group without the node that goes. `own`: what its choices cost alone, or NULL. */
static int64_t *minimise(struct solver *s, const struct group *group, const int64_t *own, uint32_t choices)
{
    int64_t entries = 1;
    for (uint32_t i = 0; i < group->nodes; i++)
        entries *= s->labelling->node[group->node[i]].choices;
    int64_t *cost = weft_new(s->arena, int64_t, entries);
    struct walk walk = start_walk(s, group);
    for (int64_t e = 0; e < entries; e++, step(s, group, &walk)) {
        int64_t least = WEFT_LABEL_NEVER;
        for (uint32_t c = 0; c < choices; c++) {
            int64_t sum = own ? own[c] : 0;
            for (uint32_t m = 0; m < group->members; m++)
                sum = weft_label_add(sum, walk.at[m][c]);
            least = sum < least ? sum : least;
        }
        cost[e] = least;
    }
    s->answer->largest = entries > s->answer->largest ? entries : s->answer->largest;
    s->room -= entries > LITTLE ? entries : 0;
    while (s->most > LITTLE && s->most > s->room / SHARE)
        s->most = s->most > 2 * LITTLE ? s->most / 2 : LITTLE;
    return cost;
}

/* The result of most eliminations is a table of one node, which is a cost of its own, or a number. */
static void pass_on(struct solver *s, const struct group *group, const int64_t *cost)
{
    s->answer->width = group->nodes > s->answer->width ? group->nodes : s->answer->width;
    if (group->nodes == 0)
        s->answer->bound = weft_label_add(s->answer->bound, cost[0]);
    else if (group->nodes == 1)
        add_own(s, group->node[0], cost);
    else
        keep_table(s, (struct table){.nodes = group->nodes, .node = group->node, .cost = cost});
}

static void eliminate(struct solver *s, uint32_t node)
{
    uint32_t members = 0;
    for (uint32_t t = s->bucket[node]; t; t = s->table[t - 1].next)
        members++;
    s->member = weft_grow(s->arena, s->member, &s->member_capacity, members + 1, sizeof *s->member);
    for (uint32_t t = s->bucket[node], count = members; t; t = s->table[t - 1].next)
        s->member[--count] = t - 1; /* oldest first */
    if (members == 0) { /* it chooses by itself */
        int64_t least = WEFT_LABEL_NEVER;
        for (uint32_t c = 0; c < s->labelling->node[node].choices; c++)
            least = s->own[node][c] < least ? s->own[node][c] : least;
        s->answer->largest = s->answer->largest > 0 ? s->answer->largest : 1;
        s->answer->bound = weft_label_add(s->answer->bound, least);
        return;
    }
    struct group *group = weft_new(s->arena, struct group, members);
    const uint32_t groups = divide(s, s->member, members, group);
    s->answer->splits += groups - 1;
    for (uint32_t g = 0; g < groups; g++)
        pass_on(s, &group[g],
                minimise(s, &group[g], g == 0 ? s->own[node] : NULL, s->labelling->node[node].choices));
}

/* --- choices ------------------------------------------------------------------------------------------------------ */

static void choose(struct solver *s, uint32_t node, uint32_t *choice)
{
    int64_t least = 0;
    for (uint32_t c = 0; c < s->labelling->node[node].choices; c++) {
        int64_t sum = s->own[node][c];
        for (uint32_t t = s->bucket[node]; t; t = s->table[t - 1].next) {
            const struct table *table = &s->table[t - 1];
            int64_t at = c, stride = s->labelling->node[node].choices;
            for (uint32_t i = 1; i < table->nodes; i++) {
                at += stride * choice[table->node[i]];
                stride *= s->labelling->node[table->node[i]].choices;
            }
            sum = weft_label_add(sum, table->cost[at]);
        }
        if (c == 0 || sum < least) {
            least = sum;
            choice[node] = c;
        }
    }
}

/* Where tables were split, choices are good but not best: each node in turn takes its best choice beside those of its
 * neighbours, until none changes. */
static void improve(const struct weft_labelling *l, struct weft_arena *arena, uint32_t *choice)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->nodes; i++)
        most = l->node[i].choices > most ? l->node[i].choices : most;
    const struct weft_label_links links = weft_labelling_links(l, arena);
    int64_t *cost = weft_new(arena, int64_t, most);
    bool changed = true;
    for (int round = 0; changed && round < 100; round++) {
        changed = false;
        for (uint32_t n = 0; n < l->nodes; n++) {
            uint32_t best = choice[n];
            weft_labelling_beside(l, &links, choice, n, cost);
            for (uint32_t c = 0; c < l->node[n].choices; c++)
                best = cost[c] < cost[best] ? c : best;
            changed |= best != choice[n];
            choice[n] = best;
        }
    }
}

void weft_labelling_solve(const struct weft_labelling *labelling, int64_t most, struct weft_label_answer *ret)
{
    struct weft_arena *arena = labelling->arena;
    *ret = (struct weft_label_answer){.choice = weft_new(arena, uint32_t, labelling->nodes)};
    struct solver s = {.labelling = labelling, .arena = arena, .most = most, .room = ROOM * most, .answer = ret,
                       .position = weft_new(arena, uint32_t, labelling->nodes),
                       .own = weft_new(arena, int64_t *, labelling->nodes),
                       .bucket = weft_new(arena, uint32_t, labelling->nodes)};
    take_problem(&s);
    for (uint32_t i = 0; i < labelling->nodes; i++)
        eliminate(&s, s.order[i]);
    for (uint32_t i = labelling->nodes; i > 0; i--)
        choose(&s, s.order[i - 1], ret->choice);
    if (ret->splits > 0)
        improve(labelling, arena, ret->choice);
    ret->cost = weft_labelling_cost(labelling, ret->choice);
}
