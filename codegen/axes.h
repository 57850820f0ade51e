/* SPDX-License-Identifier: Apache-2.0 */
/* axes.h: which axes of a group's nodes are one (axes.c).
 *
 *   %e = exp %x                 a0, a1           %e is read by %s at [a0, a1] and by %d at [a0, a1], and %b, which
 *   %s = sum %e axes=[1]        a0, folded a1    is %s seen along another axis, by %d at [a0, a1]: so the axes of
 *   %b = bcast %s dims=[0]      a0, a1           all nodes are two, and a1 is folded by one of them
 *   %d = div %e, %b             a0, a1
 *
 * Each node begins with axes of its own (ir/index.h). Where a node of the group reads what another one computes, the
 * axis that a dimension of that value has for the one is the axis that it has for the other; and so where two nodes
 * read one value from outside, if nothing else speaks against it. Two axes of one node never become one, be they as
 * long as each other: x + xᵀ has two. */
#ifndef WEFT_AXES_H
#define WEFT_AXES_H

#include "codegen/form.h"

/* A node as groups see it. Only such nodes are in groups whose operands and results lie along single axes: elementwise
 * ops, folds, folds of chunks, scans, and views that permute, repeat or drop axes; and gathers, paddings, concats,
 * flips and resizes to nearest elements, which look up what comes from outside. */
enum { WEFT_MEMBER_INS = 16 }; /* operands of a concat at most; of other nodes, WEFT_FORM_INS */
enum weft_member_kind {
    WEFT_MEMBER_NONE, WEFT_MEMBER_MAP, WEFT_MEMBER_FOLD, WEFT_MEMBER_SCAN, WEFT_MEMBER_VIEW, WEFT_MEMBER_CHUNKS,
    WEFT_MEMBER_LOOK_UP
};
struct weft_member {
    uint8_t kind;
    const char *why;                 /* of NONE */
    int8_t axes;                     /* of the node's space */
    uint16_t folded, scanned;        /* a bit each */
    weft_dim extent[WEFT_SPACE_AXES];
    int8_t result[WEFT_MAX_RANK];    /* by dimension: its axis, or -1: it has one index. Of CHUNKS: the axis that is cut
                                      * has -1, and the node's axes are the operand's */
    int8_t operand[WEFT_FORM_INS][WEFT_MAX_RANK]; /* see weft_member_operand */
    bool joins;                      /* of LOOK_UP: a concat, whose operands all lie along the axes of the first one */
    int8_t indexed;                  /* the dimension of operand 0 that operand 1 indexes, or -1 */
    uint8_t moved;                   /* and a bit for each one whose places are others than those on its axis, or may be
                                      * outside */
    bool guarded;                    /* it has one that is indexed or may be outside, or one that is divided: what it
                                      * finds is copied, so that it may be stored */
};
/* By dimension of operand k: its axis, or -1. */
static inline const int8_t *weft_member_operand(const struct weft_member *member, uint32_t k)
{
    return member->operand[member->joins ? 0 : k];
}

enum { WEFT_MOST_MEMBERS = 64 };      /* nodes of a group */

/* Is it an op whose nodes may be members of the kind LOOK_UP? */
bool weft_is_looked_up(int opcode);

/* What questions about one graph share. Not of several threads. */
struct weft_members {
    const struct weft_graph *graph;
    uint32_t cpu;                    /* levels that kernels may be of */
    struct weft_arena *arena;
    struct weft_member **member;     /* by node id, once somebody asked */
    uint32_t *search, *place;        /* by node id: of the last question that had it, where it stands in that */
    uint32_t *read, *reader;         /* by value id: of the last question with a reader of it, the first one:
                                      * WEFT_MEMBER_INS * place + operand */
    uint32_t searches;
    uint16_t *parent, *before;       /* of the question: forests of axes, WEFT_MOST_MEMBERS * WEFT_SPACE_AXES of each */
    int8_t (*of)[WEFT_SPACE_AXES], *number; /* what it found, until the next one */
};
struct weft_members *weft_members_open(const struct weft_graph *graph, uint32_t cpu, struct weft_arena *arena);
/* Never NULL. */
const struct weft_member *weft_member_of(struct weft_members *members, weft_node node);

struct weft_group_axes {
    uint32_t axes;
    weft_dim extent[WEFT_FORM_AXES];
    uint16_t folded, scanned;        /* axes that some node folds, or scans */
    int8_t (*of)[WEFT_SPACE_AXES];   /* by place of the node: the group's axis for each of its own; -1: none */
};
/* The axes of at most WEFT_MOST_MEMBERS nodes in order of execution, until the next question; NULL, or why they have
 * none, with the value that stands in the way. `members` knows their places from then on. */
const char *weft_group_axes_find(struct weft_members *members, const weft_node *node, uint32_t count,
                                 struct weft_group_axes *ret, weft_val *ret_where);
/* Where a node stands in the list that was asked for last, or UINT32_MAX. */
static inline uint32_t weft_member_place(const struct weft_members *m, weft_node node)
{
    return node.id && m->search[node.id] == m->searches ? m->place[node.id] : UINT32_MAX;
}

#endif
