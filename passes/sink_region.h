/* SPDX-License-Identifier: Apache-2.0 */
/* sink_region.h: regions of turned values, and which of their nodes are straightened (sink_choice.c).
 *
 *   %t: f32[4,3] = transpose %x perm=[1 0]     member 0, a source
 *   %e: f32[4,3] = exp %t                      member 1, of the same region: if it moves, %t is no longer wanted
 *
 * Nobody but sink_transpose.c and sink_choice.c includes it. */
#ifndef WEFT_SINK_REGION_H
#define WEFT_SINK_REGION_H

#include "passes/sink_transpose.h"

/* A turned value. */
struct weft_sink_member {
    weft_val value;
    struct weft_turn turn;
    bool is_source;          /* the result of a transpose that nobody else moves */
    bool moves;              /* decided: its node is straightened */
    uint32_t parent;         /* towards the first member of its region */
    uint32_t next, last;     /* the next of its region, + 1; of the first member: the last one */
    uint32_t place;          /* in the cut: its node is straightened; place + 1: nobody wants the value itself */
    weft_val straight;       /* built */
};
struct weft_sinking {
    struct weft_graph *graph;
    struct weft_sink_member *member;
    uint32_t members, capacity;
    uint32_t *member_of;     /* by value id: + 1 */
    uint32_t values;         /* how many there were at the start of the round */
};

static inline struct weft_sink_member *weft_sink_member_of(const struct weft_sinking *s, weft_val v)
{
    return v.id < s->values && s->member_of[v.id] ? &s->member[s->member_of[v.id] - 1] : NULL;
}

/* The member that a node reads or makes, unless it is its own straight form. */
static inline struct weft_sink_member *weft_sink_turned_member(const struct weft_sinking *s, weft_val v)
{
    struct weft_sink_member *m = weft_sink_member_of(s, v);
    return m && !weft_turn_is_none(&m->turn) ? m : NULL;
}

/* Who reads a value of a region. */
enum weft_sink_reader {
    WEFT_READER_MEMBER,    /* a node that may be straightened along */
    WEFT_READER_TRANSPOSE, /* merges with what turns the value */
    WEFT_READER_ABSORBS,   /* a matmul that can read it the other way round */
    WEFT_READER_OTHER,     /* wants the value as it is */
};
enum weft_sink_reader weft_sink_reader_of(const struct weft_sinking *s, const struct weft_sink_member *m,
                                          const struct weft_operand *use);
/* The turn of a transpose of m's value, seen from m's straight form. */
struct weft_turn weft_sink_merged_turn(const struct weft_graph *g, weft_node transpose,
                                       const struct weft_sink_member *m);
/* The number of the first member of the region of member i. */
uint32_t weft_sink_first_of(struct weft_sinking *s, uint32_t i);
/* Sets `moves` for the region whose first member is number `first`, whose members have places below `places`; gives the
 * value of the first that moves, or none. */
weft_val weft_sink_choose(struct weft_sinking *s, uint32_t first, uint32_t places);

#endif
