/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: units. A unit is a node, or all nodes of a group: what is planned, explained and timed as one.
 *
 *   graph @f(%x: f32[4,64], %b: f32[64]) {            unit   nodes   in        out
 *     %e: f32[4,64] = exp %x                          1      1       %x        %e
 *     fuse @rows {                                    2      4       %e, %b    %d, %y
 *       %m: f32[4,64]{-} = bcast %b dims=[1]              inside: %m, {-}
 *       %d: f32[4,64] = sub %e, %m                        seen by unit 3
 *       %s: f32[4,64]{-} = mul %d, %e                     %e once more, which is in the list already
 *       %y: f32[4,64] = tanh %s                           returned
 *     }
 *     %n: f32[4,64] = neg %d                          3      1       %d        %n
 *     return %n, %y
 *   }
 *
 * Units are numbered in the order of execution, so that of two the earlier has the smaller number, and a value is dead
 * behind the last unit that reads it. Constants and views are units of one node like all others. A body of an `if` or
 * `loop` is a graph with units of its own; the node that runs it is one. */
#ifndef WEFT_UNIT_H
#define WEFT_UNIT_H

#include "ir/ir.h"

struct weft_unit {
    weft_node first, last;  /* neighbours in the order of nodes */
    uint32_t group;         /* of the graph; 0: none, and the unit is one node. A group may have one node, too */
    uint32_t nodes;         /* how many */
    uint32_t position;      /* among the units of the graph: its own number */
    uint32_t ins, outs;
    const weft_val *in;     /* what it reads from outside, each once, in order of first use */
    const weft_val *out;    /* its results that are seen outside: read by other units, or returned; in order. Others are
                             * its own affair: inside of a group they need no memory */
};

struct weft_units {
    const struct weft_graph *graph;
    struct weft_unit *unit; /* [1, count) in the order of execution */
    uint32_t *of;           /* by node id: the number of the node's unit */
    uint32_t count;
};

/* All units of a graph, bodies left out, as its order and its groups are now. Takes time as nodes and operands do. */
struct weft_units weft_units_find(const struct weft_graph *graph, struct weft_arena *arena);
/* The unit of a node. */
static inline const struct weft_unit *weft_unit_of(const struct weft_units *units, weft_node node)
{
    return &units->unit[units->of[node.id]];
}
/* Does the value have memory: is it a parameter, a result of a unit of one node, or an output of a larger one? */
bool weft_unit_stores(const struct weft_units *units, weft_val value);
/* What stands right of `!`: at the node of a unit of one, else behind the name of the group. No kernel and no pairs: no
 * note. */
void weft_unit_label(struct weft_graph *graph, const struct weft_unit *unit, const char *kernel, uint32_t count,
                     const char *const *key, const char *const *value);
/* The value by whose name remarks, profiles and pictures go: the first result of a unit of one node, the last output of
 * others. */
weft_val weft_unit_value(const struct weft_units *units, const struct weft_unit *unit);

#endif
