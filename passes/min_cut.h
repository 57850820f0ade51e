/* SPDX-License-Identifier: Apache-2.0 */
/* min_cut.h: the cheapest way to divide a set of places in two.
 *
 * Place 0 is on the near side and place 1 on the far side; each of the others goes where it likes. An edge a → b costs
 * its capacity if a is near and b is far. So a → b with WEFT_CUT_NEVER says: if a is near, then so is b.
 *
 *   0 ──5──▶ 2 ──3──▶ 3 ──∞──▶ 1        3 must be far, because the edge to 1 may not be cut. To cut 2 → 3 costs 3 and
 *                                       to cut 0 → 2 costs 5: so 2 is near, and the cut costs 3. */
#ifndef WEFT_MIN_CUT_H
#define WEFT_MIN_CUT_H

#include "ir/ir.h"

#define WEFT_CUT_NEVER ((int64_t)1 << 60) /* more than all that may be cut together */

struct weft_cut_edge {
    uint32_t to, next;   /* the next edge of the same place, + 1; edge i ^ 1 is the same one backwards */
    int64_t left;        /* of its capacity */
};
struct weft_cut {
    struct weft_arena *arena;
    uint32_t places, edges, capacity;
    uint32_t *first;     /* by place: its first edge, + 1 */
    uint32_t *depth;     /* by place: of the breadth-first search, + 1; 0: not reached */
    uint32_t *cursor;    /* by place: the edge to try next, + 1 */
    uint32_t *path;      /* edges of the path that is being built */
    struct weft_cut_edge *edge;
};
void weft_cut_open(struct weft_cut *cut, struct weft_arena *arena, uint32_t places);
void weft_cut_edge(struct weft_cut *cut, uint32_t from, uint32_t to, int64_t capacity);
/* Of all cheapest cuts, the one with most places on the near side; then weft_cut_is_near tells. False if it would take
 * more than a bounded number of steps for each edge. */
bool weft_cut_solve(struct weft_cut *cut);
bool weft_cut_is_near(const struct weft_cut *cut, uint32_t place);

#endif
