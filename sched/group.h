/* SPDX-License-Identifier: Apache-2.0 */
/* group.h: what runs together: the engine of the pass `fuse` (group.c, group_join.c, group_price.c, group_order.c).
 *
 * At first each node that a kernel of several may have is a group by itself. Groups are joined along values that one
 * makes and the other reads, in the order of execution, where
 *   - the kernel form has a kernel for the union (codegen/lower.h),
 *   - nothing outside needs the one and is needed by the other, and
 *   - what folds has enough rows for all workers.
 * Of two contractions that a node reads, it finishes the later one: what the earlier one makes is there by then, and
 * each term of a long sum is added while the sum is near.
 *
 * Then those that share no more than what they read (*beside* each other), if they stand near each other and go over
 * the same points, and are predicted to take less time as one than as two.
 *
 * Then the kernel of each group is chosen, and its predicted time is compared with that of its nodes one by one: if it
 * is no shorter, they stay alone. The nodes of the others are brought together and become groups. What was not joined,
 * and why, is a remark; so is each group. Groups that are there before stay as they are.
 *
 * Joining looks at most at 512 nodes between two groups, and a group has at most 64, 12 where nodes come beside each
 * other: so it takes time as nodes and operands do. */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include "codegen/lower.h"
#include "kernels/strip/program.h"
#include "sched/epilogue.h"
#include "sched/format.h"
#include "sched/target.h"

enum { WEFT_GROUP_COLUMNS = WEFT_PROGRAM_COLUMNS }; /* long folds of fewer columns stay alone: a pass may split them */

/* Joins nodes of a graph whose layouts are decided; bodies are graphs of their own. `who` makes the remarks. True if
 * anything changed. */
bool weft_group_nodes(struct weft_graph *graph, const struct weft_target *target, const char *who);

/* --- what the files of the engine share --------------------------------------------------------------------------- */

struct weft_choices;

struct weft_cluster {
    weft_node *node;        /* in order of execution */
    uint32_t count, first, last; /* positions of the first and the last one */
    bool fixed;             /* a group that was there before */
    bool priced;            /* since it is what it is: what follows is set */
    const struct weft_choices *choices; /* its kernel, or NULL */
    const char *why;        /* it has none, or none that pays */
    int64_t ps, alone;      /* as one, if that pays, or one by one; one by one */
};
/* Why two nodes were not joined when that was tried. */
struct weft_refusal {
    weft_node reader, other;
    const char *reason;
};
struct weft_grouping {
    struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_arena *arena;
    const char *who;
    struct weft_formats formats; /* their arena: of the pass while nodes are joined, then the graph's */
    const int64_t *symbols; /* hints */
    struct weft_members *members;
    uint32_t *position;     /* by node id: in the order of execution */
    uint32_t *of;           /* by node id: its cluster, or 0: it stays alone */
    struct weft_cluster *cluster; /* [1, clusters); of count 0: it went into another */
    uint32_t clusters;
    uint32_t *visit, visits; /* by node id: of the last search that came by */
    const char **text, **label; /* by value: its name, for remarks; without % */
    struct weft_refusal *refusal; /* what has come together all the same in the end is no remark */
    uint32_t refusals, refusal_capacity;
    weft_node *list, *open; /* room: nodes of a union; nodes that a search has yet to look at */
    uint32_t list_capacity, open_capacity;
};
/* group_join.c: joins clusters; what they are to have is in `cluster` then. */
void weft_group_join(struct weft_grouping *grouping);
/* group_price.c: the kernel of a cluster, and what it takes. */
void weft_group_price(struct weft_grouping *grouping, struct weft_cluster *cluster);
/* group_order.c: puts the nodes of each cluster next to each other, everything else as it was as far as that goes.
 * Views that a cluster has taken in and that others read too are there twice then. Clusters that need each other are
 * opened. */
void weft_group_bring_together(struct weft_grouping *grouping);

#endif
