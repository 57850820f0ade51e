/* SPDX-License-Identifier: Apache-2.0 */
/* labelling.h: one choice for each node of a graph, such that the sum of all costs is least.
 *
 * A node has a cost for each of its choices, and an edge one for each pair of choices of its two ends. Layouts are
 * chosen this way: nodes are ops and values, choices are ways to store and to compute them, edges are conversions.
 *
 *      a ─── b ─── c        choices 0 row-major, 1 channels-last
 *      a: 0 9   b: 0 0   c: 5 0          an edge costs 3 where its ends differ
 *
 *      a=0 b=0 c=0 costs 5;  a=0 b=0 c=1 costs 3, and so does a=0 b=1 c=1: the first of two equals is taken
 *
 * Solved by bounded variable elimination (bucket elimination of Dechter, 1999, in min-fill order): a node goes when a
 * table has been made of what its best choice costs for each choice of its neighbours. Where such a table would be
 * larger than a bound, the tables that it is made from are minimised in groups, each on its own (mini-buckets, Dechter
 * and Rish, 2003): what comes out then is a solution and a lower bound. Graphs of tensors are nearly trees, and tables
 * stay small: research on 26 networks found all but three exact below 10^6 entries.
 *
 * Costs are whole numbers, so that equal inputs give equal answers everywhere. */
#ifndef WEFT_LABELLING_H
#define WEFT_LABELLING_H

#include "ir/ir.h"

/* A pair or a choice that must not be. All other costs of a problem together are less. */
#define WEFT_LABEL_NEVER ((int64_t)1 << 48)

struct weft_label_node {
    uint32_t choices;    /* at least 1 */
    int64_t *cost;       /* [choices] */
};
/* What pairs of choices cost; many edges may share a table. The solver keeps its normal form with it. */
struct weft_label_table {
    uint32_t rows, columns;
    int64_t *cost;       /* [choice of a][choice of b]; not to be changed once it was solved with */
    struct weft_label_normal *normal;
};
struct weft_label_edge {
    uint32_t a, b;
    struct weft_label_table *table;
};
struct weft_labelling {
    struct weft_arena *arena;
    uint32_t nodes, edges, node_capacity, edge_capacity;
    struct weft_label_node *node;
    struct weft_label_edge *edge;
};
struct weft_label_answer {
    uint32_t *choice;    /* by node, in the arena */
    int64_t cost, bound; /* of the answer, and what no answer is below; equal: the answer is proved best. Both are
                          * WEFT_LABEL_NEVER where every answer has a pair that must not be */
    uint32_t width;      /* most neighbours that a node had when it went */
    uint32_t splits;     /* tables that were too large */
    int64_t largest;     /* entries of the largest table */
};

void weft_labelling_open(struct weft_labelling *labelling, struct weft_arena *arena);
/* Costs are copied; NULL: all 0. */
uint32_t weft_labelling_node(struct weft_labelling *labelling, uint32_t choices, const int64_t *cost);
/* Between two nodes, which may have more edges than one. Returns its table [choices of a][choices of b], all 0, to be
 * filled by the caller. */
int64_t *weft_labelling_edge(struct weft_labelling *labelling, uint32_t a, uint32_t b);
/* The same in two steps, for edges that share a table. */
struct weft_label_table *weft_labelling_table(struct weft_arena *arena, uint32_t rows, uint32_t columns);
void weft_labelling_join(struct weft_labelling *labelling, uint32_t a, uint32_t b, struct weft_label_table *table);
/* `most`: entries that a table may have; all together may have sixteen times as many, beside tables of a few hundred.
 * The problem is not changed. */
void weft_labelling_solve(const struct weft_labelling *labelling, int64_t most, struct weft_label_answer *ret);
/* What these choices cost. */
int64_t weft_labelling_cost(const struct weft_labelling *labelling, const uint32_t *choice);

/* --- labelling_beside.c ------------------------------------------------------------------------------------------- */

/* The edges at each node, as lists: edge i is met as 2 * i from its a and as 2 * i + 1 from its b. */
struct weft_label_links {
    uint32_t *first, *next; /* of nodes, of ends of edges; + 1, 0 ends */
};
struct weft_label_links weft_labelling_links(const struct weft_labelling *labelling, struct weft_arena *arena);
/* What each choice of one node costs, with its edges, while the other nodes choose as in `choice`. */
void weft_labelling_beside(const struct weft_labelling *labelling, const struct weft_label_links *links,
                           const uint32_t *choice, uint32_t node, int64_t *ret_cost);

/* An answer in which some nodes, no two of them neighbours, choose anew with each choice that is tried. */
struct weft_label_followers {
    const struct weft_labelling *labelling;
    const uint32_t *choice;
    struct weft_label_links links;
    struct weft_label_sum **sum; /* of a follower, by its choices; else NULL */
    uint64_t *seen, turn;        /* by node: when a sum was last taken */
};
/* `follows`, by node. The choices are the caller's, and are not to change; all memory is the problem's arena's. */
void weft_labelling_follow(const struct weft_labelling *labelling, const uint32_t *choice, const uint8_t *follows,
                           struct weft_label_followers *ret);
/* What each choice of a node costs beside those of its neighbours, with all that followers among them cost then. */
void weft_labelling_beside_followers(struct weft_label_followers *followers, uint32_t node, int64_t *ret_cost);

static inline int64_t weft_label_add(int64_t a, int64_t b)
{
    return a >= WEFT_LABEL_NEVER || b >= WEFT_LABEL_NEVER || a + b >= WEFT_LABEL_NEVER ? WEFT_LABEL_NEVER : a + b;
}

/* --- labelling_order.c -------------------------------------------------------------------------------------------- */

/* An order in which to eliminate nodes whose neighbours are pair[2 * i] and pair[2 * i + 1] for each of `pairs` edges:
 * always the one that makes the fewest new neighbours (min-fill; by number where equal). Near-linear: for nodes of many
 * neighbours the fill is estimated. */
uint32_t *weft_labelling_order(struct weft_arena *arena, uint32_t nodes, const uint32_t *pair, uint32_t pairs);

#endif
