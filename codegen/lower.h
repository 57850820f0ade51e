/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h: from the nodes of a group to the kernel form (fit.c, lower.c).
 *
 * A group that has one kernel goes over one box of points. Its nodes are of two kinds: those that have a number for
 * each point (*inside*), and those that have one for each point of the axes that no node folds (*outside*): what folds
 * make, and what is computed of that. All folds remove the same axes. `fold_chunks` goes the other way: over one of
 * the axes that folds leave, a chunk at a time; it has a result for each chunk and each point of the axes that folds
 * remove, which nobody in the group reads.
 *
 * A scan is a node inside. It goes over the one axis that folds remove, or, where nothing is folded, over one that is
 * then not outside. Scans that begin at the end of the axis are in other stages than folds and other scans.
 *
 * A node that has fewer axes than its kind, such as a scale that all rows share, is computed again at each point; how
 * long that takes, `again_ns` says. Where nothing is folded and that is long, the axes of such a node are those of what
 * is outside: a gate of channels is computed once for all pixels of a channel.
 *
 * A gather is a load whose index another load has, a padding one whose index may lie outside: each stage that reads it
 * looks it up again. A concat is a chain of such loads, each of which is where it lies outside what the one before it
 * is. A flip is a load that goes backwards, a resize to nearest elements one whose index is a quotient. Their operands
 * come from outside of the group.
 *
 *   %m = mean %x axes=[1]                      inside: the fold, stage 0. Its result is outside
 *   %r = rsqrt %m                              outside, stage 0
 *   %b = bcast %r dims=[0]                     %r, along another axis
 *   %y = mul %x, %b                            inside, stage 1: it reads what stage 0 made */
#ifndef WEFT_LOWER_H
#define WEFT_LOWER_H

#include "codegen/axes.h"

struct weft_fit_member {
    uint16_t axes;         /* its value has a number for each point of these */
    bool inside;
    bool out;              /* its value, or a view of it, is read by others, or returned */
    uint8_t stage;
};
/* How the nodes of a group go together. */
struct weft_fit {
    const weft_node *node; /* in order of execution */
    uint32_t count, stages;
    struct weft_group_axes axes;
    uint16_t all, outer;   /* axes: of inside, of outside */
    int8_t cut;            /* the axis that is cut in chunks, or -1 */
    weft_dim chunk;        /* elements of a chunk */
    bool uneven;           /* nothing is folded, and yet nodes have fewer axes than others; or again_ns is above 0; or
                            * elements are looked up: prices have to say whether that pays */
    double again_ns;       /* of one worker, at the hints, for what is computed at more points than it has numbers; */
    double simple_ns;      /* of it for ops of few instructions, which weft_program_arithmetic_ns does not count */
    struct weft_fit_member member[WEFT_MOST_MEMBERS]; /* by place */
};
/* NULL, or why no kernel computes these nodes as one, with the value that stands in the way. What it finds holds until
 * the next question. */
const char *weft_fit_find(struct weft_members *members, const weft_node *node, uint32_t count, struct weft_fit *ret,
                          weft_val *ret_where);
/* How many points these axes of the box have at the hints. */
double weft_fit_points(const struct weft_members *members, const struct weft_fit *fit, uint16_t axes);
/* "weft_add_relu_f32": the name of a kernel for these nodes. */
const char *weft_lower_name(const struct weft_graph *graph, const weft_node *node, uint32_t count,
                            struct weft_arena *arena);
/* The form of what fits. Of `fit`, which the last question was about. */
struct weft_form *weft_lower(struct weft_members *members, const struct weft_fit *fit, struct weft_arena *arena);

#endif
