/* SPDX-License-Identifier: Apache-2.0 */
/* index.h: index maps: which elements of its operands each element of a node's results is computed from (index.c; a
 * rule for each op in index_*.c, named by the column `index` of ops.def).
 *
 * A node runs over the points of a *space*, a box of axes. An *index map* says at which index of an operand or result a
 * point stands, for each axis of it. Axes that no result has are *reduced*: an element of a result is computed from all
 * points that stand at it.
 *
 *   %y = matmul %a, %b                            space a0 in 8, a1 in 16, reduced a2 in 32
 *                                                 %y [a0, a1]   %a [a0, a2]   %b [a2, a1]
 *   %y = conv %x, %w stride=[2 2] pad=[1 1 1 1]   space a0 … a3, reduced a4 (channels), a5, a6 (taps)
 *                                                 %y [a0, a1, a2, a3]   %w [a1, a4, a5, a6]
 *                                                 %x [a0, a4, 2·a2 + a5 - 1 ?, 2·a3 + a6 - 1 ?] (? inside)
 *   %y: f32[6,4] = reshape %x: f32[2,12]          space a0 in 2, a1 in 3, a2 in 4
 *                                                 %y [3·a0 + a1, a2]   %x [a0, 4·a1 + a2]
 *   %y = gather %x, %i axis=1                     space a0, a1, a2     %y [a0, a1, a2]   %i [a1]   %x [a0, @1, a2]
 *
 * What a map promises: no element of a result depends on elements of an operand beside those that points of it stand
 * at. Ops that only move elements (traits WEFT_VIEW and WEFT_MOVEMENT) have at each point in the result what the
 * operand has there; so their maps are their meaning, but for what fills up where no operand is inside.
 *
 * Layout transfer, aliases, access widths, moving transposes and fusion read these maps; nobody else knows axes of
 * ops. All functions here are of the caller's thread, allocate nothing but expressions of extents, and take time in the
 * number of axes; for an operand of a concat, also of operands before it (but see weft_index_map_behind). */
#ifndef WEFT_INDEX_H
#define WEFT_INDEX_H

#include "ir/graph.h"
#include "ir/text.h"

/* An operand or a result of a node. */
struct weft_pin {
    weft_node node;
    bool result;
    uint32_t index;
};
static inline weft_val weft_pin_value(const struct weft_graph *g, struct weft_pin pin)
{
    return pin.result ? weft_result(g, pin.node, pin.index) : weft_operand(g, pin.node, pin.index);
}

enum { WEFT_SPACE_AXES = 2 * WEFT_MAX_RANK, WEFT_INDEX_TERMS = WEFT_MAX_RANK };

/* What an axis of the space does. */
enum weft_axis_role {
    WEFT_AXIS_PARALLEL, /* tells elements of the results apart */
    WEFT_AXIS_SCANNED,  /* the same, and an element depends on those before it, too; or behind it (reverse=1) */
    WEFT_AXIS_REDUCED,  /* folded: elements of a result are computed from all of it */
};
struct weft_space_axis {
    weft_dim extent;
    uint8_t role;
    int8_t beside; /* of a reduced axis: the parallel one that a result has in its place (softmax, sort, channels of a
                    * convolution), or -1 */
};
struct weft_space {
    int axes;
    struct weft_space_axis axis[WEFT_SPACE_AXES];
};

/* What an index means that lies outside of the operand. */
enum weft_index_border {
    WEFT_BORDER_NONE,    /* there is none */
    WEFT_BORDER_SKIPPED, /* the point does not read this operand: zeros, the fill of a pad, other parts of a concat */
    WEFT_BORDER_EDGE, WEFT_BORDER_REFLECT, WEFT_BORDER_WRAP, /* as `pad` reads it by these forms */
};
/* The index along one axis: base + Σ step · point[axis]. */
struct weft_index {
    bool is_near;   /* no: it is some index that is computed from the point's places on the axes of `term` (resize) */
    uint8_t data;   /* not 0: what operand data - 1 says is added, so that nobody knows it but from elements */
    uint8_t border; /* enum weft_index_border */
    uint8_t kept;   /* of a result, not 0: its one index is in the place of the reduced axis kept - 1 (keepdims) */
    uint8_t terms;
    int64_t over;   /* not 0: of kernel forms alone: the sum is divided by it, and rounded down */
    weft_dim base;
    struct weft_index_term {
        weft_dim step; /* not 0 */
        int8_t axis;   /* rising */
    } term[WEFT_INDEX_TERMS];
};
struct weft_index_map {
    int rank;
    struct weft_index at[WEFT_MAX_RANK];
};

/* The space of a node. False where nothing is known: control, functions of the caller's, results whose extents are
 * found in data; then each element may depend on all. */
bool weft_index_space(const struct weft_graph *g, weft_node node, struct weft_space *ret);
/* Where points stand in an operand or a result; false as above, and for single operands of which nothing is known. */
bool weft_index_map(const struct weft_graph *g, struct weft_pin pin, struct weft_index_map *ret);
/* The same for walks over all operands, of which a concat may have many: `behind` is 0 for the first one, and
 * weft_index_behind says what it is for the next. */
bool weft_index_map_behind(const struct weft_graph *g, struct weft_pin pin, weft_dim behind,
                           struct weft_index_map *ret);
weft_dim weft_index_behind(const struct weft_graph *g, struct weft_pin pin, weft_dim behind);

/* The one axis of the space that the index is, as it stands: no offset, no step, no border; or -1. */
int weft_index_axis(const struct weft_index *index);
/* Which axis of result 0 an axis of an operand runs with: the one that a point moves along if it moves along this one,
 * or the one beside that (`beside`, `kept`). What `data` says follows the axes of the operand that says it, but those
 * that have a place of their own here:
 *
 *   %y = gather %x, %i axis=1       %x [a0, @1, a3], %i [a1, a2]:    x runs with y's axes 0, 1 and 2, 3 */
struct weft_follow {
    int8_t axis;  /* -1: none */
    uint8_t axes; /* how many of them, from that on */
};
/* Of all axes of the pin; those of a result run with themselves. False where nothing is known of it. */
bool weft_index_follow(const struct weft_graph *g, struct weft_pin pin, struct weft_follow ret[WEFT_MAX_RANK]);
/* The index at a point, for these values of the symbols; data counts as 0. */
int64_t weft_index_at(const struct weft_dims *dims, const struct weft_index *index, const int64_t *symbols,
                      const int64_t *point);

/* "[a0, 2*a1 + a4 - 1 ?, @1]": ? skipped outside, ?edge ?reflect ?wrap as pad reads it, @1 + … what operand 1 says,
 * ~a1 near. "a0 in N, a1 in 16, reduced a2 in 32 beside a1". The text is closed by the caller. */
void weft_index_print_map(const struct weft_dims *dims, const struct weft_index_map *map, struct weft_text *text);
void weft_index_print_space(const struct weft_dims *dims, const struct weft_space *space, struct weft_text *text);

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* A node being described. A rule adds all axes of the space, and fills the map of the one pin that is asked for, if
 * any. */
struct weft_indexing {
    const struct weft_graph *graph;
    weft_node node;
    const struct weft_pin *pin; /* NULL: the space only */
    weft_dim behind;            /* of an operand of a concat */
    struct weft_space space;
    struct weft_index_map map;  /* all zero: index 0 along each axis */
    bool lost;                  /* nothing is known of this pin */
};

#endif
