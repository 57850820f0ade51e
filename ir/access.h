/* SPDX-License-Identifier: Apache-2.0 */
/* access.h: how wide one value can be read or written while another is walked (access.c, access_*.c).
 *
 * The relation between the elements of two values, seen through the ops between them, is a set of *patches*. A patch is
 * a box of digits with linear functions of them: where the walk stands, where the element lies, which index it has in
 * the value that has been reached on the way from the later value back to the earlier one:
 *
 *   %y: f32[6] = reshape %x                 digits   a in [0, 2), b in [0, 3)
 *   walk %y, read %x: f32[2,3]{1 0}         walk     3a + b
 *                                           index    [a, b]
 *                                           place    a + 2b
 *
 * Digits are those of a mixed radix: a reshape splits and merges them, a slice or a padding restricts them, a concat
 * deals patches out to its operands, a broadcast forgets some. What cannot be said with the digits there are is said
 * with more patches. A *route* is the set of patches of one path between the values; where a result needs several
 * operands, or several elements of one, routes fork. */
#ifndef WEFT_ACCESS_H
#define WEFT_ACCESS_H

#include "ir/graph.h"

#define WEFT_PATCH_DIGITS 24
#define WEFT_ROUTE_PATCHES 256 /* a route that needs more is lost: then nothing wider than an element is promised */

/* base + Σ step[j] · digit j. Steps are never negative. */
struct weft_linear {
    int64_t base, step[WEFT_PATCH_DIGITS];
};

/* The functions of a patch. WALK, PLACE and NUMBER become known at the end whose layout they come from; NUMBER is the
 * place that the element had if its value were dense. FRESH: indices in the making. */
enum { WEFT_AT_WALK, WEFT_AT_PLACE, WEFT_AT_NUMBER, WEFT_AT_INDEX, WEFT_AT_FRESH = WEFT_AT_INDEX + WEFT_MAX_RANK,
       WEFT_AT_REST = WEFT_AT_FRESH + WEFT_MAX_RANK, WEFT_AT_COUNT };

/* A digit may be *hidden*: an index that comes out of data, so that nobody knows which elements of the walk have which
 * value of it. The digits that it depends on *steer*. */
enum { WEFT_DIGIT_HIDDEN = 1, WEFT_DIGIT_STEERS = 2 };

struct weft_patch {
    weft_val at;         /* the value that INDEX speaks of */
    int32_t digits;
    bool flat;           /* INDEX is not known yet; REST is the number of the element in row-major order */
    int64_t length[WEFT_PATCH_DIGITS]; /* at least 2 */
    uint8_t flags[WEFT_PATCH_DIGITS];
    struct weft_linear of[WEFT_AT_COUNT];
};

struct weft_route {
    struct weft_arena *arena;
    struct weft_patch *patch;
    uint32_t count, capacity;
    bool lost;
};

/* --- access_patch.c: patches by themselves ------------------------------------------------------------------------ */

/* Adds a copy of the patch; its number. The route is lost instead when there are too many. */
uint32_t weft_route_add(struct weft_route *route, const struct weft_patch *patch);
void weft_route_remove(struct weft_route *route, uint32_t i);
/* A new digit, which no function knows yet; -1 when there are too many. */
int weft_patch_digit(struct weft_patch *patch, int64_t length, uint8_t flags);
/* Of patches that are flat: finds INDEX out, for a value of these extents. An axis that is `joined` to the next one has
 * index 0, and the last of those that are joined the number that they make up. */
void weft_route_unflatten(struct weft_route *route, int rank, const int64_t *extent, const bool *joined);
/* to += factor · from */
void weft_linear_add(struct weft_linear *to, const struct weft_linear *from, int64_t factor);
/* Of patch i and all behind it: keeps those elements, and their patches, for which low <= function < high. */
void weft_route_keep(struct weft_route *route, uint32_t i, int function, int64_t low, int64_t high);
/* Of patch i and all behind it: `quotient` and `rest` become function / by and function % by, which takes more patches
 * where the digits do not say it. They may be the same function as `function`. */
void weft_route_divide(struct weft_route *route, uint32_t i, int function, int64_t by, int quotient, int rest);

/* --- access_op.c: from a result to its operands ------------------------------------------------------------------- */

struct weft_routes {
    struct weft_arena *arena;
    struct weft_route *route;
    uint32_t count, capacity;
    bool lost;           /* one of them, or there are too many */
};
/* Does any way lead from an element of the result to elements of operands that are read with it? */
bool weft_access_leads(const struct weft_graph *g, weft_node n);
/* Moves what routes have at the node's result on to those operands that `wanted` (by value id) names. A route becomes
 * as many as the node has ways. */
void weft_access_through(const struct weft_graph *g, weft_node n, const bool *wanted, struct weft_routes *routes);
/* Extents are numbers: those of symbols with their hints. */
int64_t weft_access_extent(const struct weft_graph *g, weft_val v, int axis);

/* --- access_width.c: what a route allows -------------------------------------------------------------------------- */

/* The largest numbers k, divisors of `total`, such that each block of k steps of the walk needs k neighbours in memory,
 * the first of them at a PLACE, or with a NUMBER, that is a multiple of k; or nothing at all. The route is not lost. */
void weft_route_blocks(const struct weft_route *route, int64_t total, int64_t *ret_place, int64_t *ret_number);

#endif
