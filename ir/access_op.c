/* SPDX-License-Identifier: Apache-2.0 */
/* access_op.c: what each op does to the patches of a route, from its result back to its operands.
 *
 *   elementwise, relayout     the same indices; a route for each operand
 *   transpose, bcast          indices change places, or are forgotten
 *   slice                     start + step · index
 *   pad, concat               index - begin, of those elements that are inside
 *   reshape                   one number for all axes, divided by the extents from the innermost on
 *   gather, gather_elements   one index is hidden, and the indices around it steer; or a route to the indices
 *   reductions                up to 16 elements are operands like others: a route each
 *
 * A longer reduction is a loop of its own, and so are contractions, windows, scans, sorts and all else that computes:
 * what they read is not read along the result, and a route ends there. Ops that move elements in ways that are not in
 * the list lose the route, so that nothing is promised. */
#include "ir/access.h"

#include <string.h>

#define MOST_TERMS 16  /* of a reduction that counts as unrolled */
#define MOST_ROUTES 64

int64_t weft_access_extent(const struct weft_graph *g, weft_val v, int axis)
{
    return weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
}

static int rank_of(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->rank; }

static int64_t attr_at(const struct weft_graph *g, weft_node n, int key, int i)
{
    return weft_dim_hint(g->dims, weft_attr_at(g, n, key, (unsigned)i));
}

/* One node, and the patches of a route that stand at its result. */
struct passage {
    const struct weft_graph *g;
    weft_node node;
    const bool *wanted;
    struct weft_route from;
};

static weft_val result_of(const struct passage *p) { return weft_result(p->g, p->node, 0); }

static struct weft_linear *index_of(struct weft_patch *patch, int axis) { return &patch->of[WEFT_AT_INDEX + axis]; }

/* Makes sure that there are indices. */
static void unflatten(struct passage *p)
{
    int64_t extent[WEFT_MAX_RANK];
    for (int axis = 0; axis < rank_of(p->g, result_of(p)); axis++)
        extent[axis] = weft_access_extent(p->g, result_of(p), axis);
    weft_route_unflatten(&p->from, rank_of(p->g, result_of(p)), extent, NULL);
}

/* The indices in FRESH become those of the operand; those of axes that it does not have are zero. */
static void arrive(struct passage *p, unsigned operand)
{
    const weft_val v = weft_operand(p->g, p->node, operand);
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        const size_t bytes = WEFT_MAX_RANK * sizeof *patch->of;
        memcpy(&patch->of[WEFT_AT_INDEX], &patch->of[WEFT_AT_FRESH], bytes);
        memset(&patch->of[WEFT_AT_FRESH], 0, bytes);
        patch->at = v;
    }
}

/* Result axis `from` is operand axis `to`. */
static void carry(struct passage *p, int from, int to)
{
    for (uint32_t i = 0; i < p->from.count; i++)
        p->from.patch[i].of[WEFT_AT_FRESH + to] = *index_of(&p->from.patch[i], from);
}

static void carry_all(struct passage *p)
{
    for (int axis = 0; axis < rank_of(p->g, result_of(p)); axis++)
        carry(p, axis, axis);
}

static void shift(struct passage *p, int axis, int64_t by)
{
    for (uint32_t i = 0; i < p->from.count; i++)
        index_of(&p->from.patch[i], axis)->base += by;
}

/* --- views -------------------------------------------------------------------------------------------------------- */

static void through_bcast(struct passage *p)
{
    const weft_val operand = weft_operand(p->g, p->node, 0);
    for (int axis = 0; axis < rank_of(p->g, operand); axis++)
        if (weft_access_extent(p->g, operand, axis) != 1)
            carry(p, (int)attr_at(p->g, p->node, WEFT_ATTR_dims, axis), axis);
    arrive(p, 0);
}

static void through_transpose(struct passage *p)
{
    for (int axis = 0; axis < rank_of(p->g, result_of(p)); axis++)
        carry(p, axis, (int)attr_at(p->g, p->node, WEFT_ATTR_perm, axis));
    arrive(p, 0);
}

static void through_slice(struct passage *p)
{
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        for (int axis = 0; axis < rank_of(p->g, result_of(p)); axis++) {
            struct weft_linear *fresh = &patch->of[WEFT_AT_FRESH + axis];
            fresh->base = attr_at(p->g, p->node, WEFT_ATTR_start, axis);
            weft_linear_add(fresh, index_of(patch, axis), attr_at(p->g, p->node, WEFT_ATTR_step, axis));
        }
    }
    arrive(p, 0);
}

/* A number in row-major order is the same number in another shape. */
static void through_reshape(struct passage *p)
{
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        int64_t unit = 1;
        for (int axis = rank_of(p->g, result_of(p)) - 1; axis >= 0 && !patch->flat; axis--) {
            weft_linear_add(&patch->of[WEFT_AT_REST], index_of(patch, axis), unit);
            unit *= weft_access_extent(p->g, result_of(p), axis);
        }
        memset(&patch->of[WEFT_AT_INDEX], 0, WEFT_MAX_RANK * sizeof *patch->of);
        patch->flat = true;
        patch->at = weft_operand(p->g, p->node, 0);
    }
}

/* --- movement ----------------------------------------------------------------------------------------------------- */

static void through_pad(struct passage *p)
{
    const weft_val operand = weft_operand(p->g, p->node, 0);
    for (int axis = 0; axis < rank_of(p->g, operand); axis++) {
        shift(p, axis, -attr_at(p->g, p->node, WEFT_ATTR_pad, axis));
        weft_route_keep(&p->from, 0, WEFT_AT_INDEX + axis, 0, weft_access_extent(p->g, operand, axis));
    }
    carry_all(p);
    arrive(p, 0);
}

static void append(struct weft_route *route, const struct weft_route *more)
{
    route->lost |= more->lost;
    for (uint32_t i = 0; i < more->count && !route->lost; i++)
        weft_route_add(route, &more->patch[i]);
}

static void copy_route(struct weft_route *to, const struct weft_route *from)
{
    *to = (struct weft_route){.arena = from->arena, .lost = from->lost};
    append(to, from);
}

/* All operands have their parts in one route: blocks may reach from one into the next. */
static void through_concat(struct passage *p)
{
    const int axis = (int)weft_attr_int(p->g, p->node, WEFT_ATTR_axis);
    const struct weft_route whole = p->from;
    struct weft_route parts = {.arena = whole.arena, .lost = whole.lost};
    for (unsigned i = 0; i < p->g->node[p->node.id].operands && !parts.lost; i++) {
        const weft_val operand = weft_operand(p->g, p->node, i);
        const int64_t extent = weft_access_extent(p->g, operand, axis);
        copy_route(&p->from, &whole);
        if (p->wanted[operand.id]) {
            weft_route_keep(&p->from, 0, WEFT_AT_INDEX + axis, 0, extent);
            carry_all(p);
            arrive(p, i);
            append(&parts, &p->from);
        }
        for (uint32_t k = 0; k < whole.count; k++)
            index_of(&whole.patch[k], axis)->base -= extent;
    }
    p->from = parts;
}

/* Digits on which result axes [first, end) depend. */
static void steer(struct weft_patch *patch, int first, int end)
{
    for (int axis = first; axis < end; axis++)
        for (int j = 0; j < patch->digits; j++)
            if (index_of(patch, axis)->step[j] != 0)
                patch->flags[j] |= WEFT_DIGIT_STEERS;
}

static void hide(struct passage *p, int axis)
{
    const int64_t extent = weft_access_extent(p->g, weft_operand(p->g, p->node, 0), axis);
    for (uint32_t i = 0; i < p->from.count && extent > 1; i++) {
        const int digit = weft_patch_digit(&p->from.patch[i], extent, WEFT_DIGIT_HIDDEN);
        p->from.lost |= digit < 0;
        if (digit >= 0)
            p->from.patch[i].of[WEFT_AT_FRESH + axis].step[digit] = 1;
    }
}

static void through_gather(struct passage *p, unsigned operand)
{
    const int axis = (int)weft_attr_int(p->g, p->node, WEFT_ATTR_axis);
    const bool elements = weft_opcode_of(p->g, p->node) == WEFT_OP_gather_elements;
    const int rank = rank_of(p->g, result_of(p));
    const int first = elements ? 0 : axis, end = elements ? rank : axis + rank_of(p->g, weft_operand(p->g, p->node, 1));
    if (operand == 1) {
        for (int i = first; i < end; i++)
            carry(p, i, i - first);
        arrive(p, 1);
        return;
    }
    for (uint32_t i = 0; i < p->from.count; i++)
        steer(&p->from.patch[i], first, end);
    for (int i = 0; i < rank_of(p->g, weft_operand(p->g, p->node, 0)); i++)
        if (i != axis)
            carry(p, elements || i < axis ? i : i + (end - first) - 1, i);
    hide(p, axis);
    arrive(p, 0);
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

static bool is_reduced(const struct weft_graph *g, weft_node n, int axis)
{
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    for (unsigned i = 0; axes && i < axes->count; i++)
        if (attr_at(g, n, WEFT_ATTR_axes, (int)i) == axis)
            return true;
    return false;
}

static int64_t terms_of(const struct weft_graph *g, weft_node n)
{
    const weft_val operand = weft_operand(g, n, 0);
    int64_t terms = 1;
    for (int axis = 0; axis < rank_of(g, operand); axis++)
        terms *= is_reduced(g, n, axis) ? weft_access_extent(g, operand, axis) : 1;
    return terms;
}

static void through_reduction(struct passage *p, int64_t term)
{
    const weft_val operand = weft_operand(p->g, p->node, 0);
    const bool keep = weft_attr_int(p->g, p->node, WEFT_ATTR_keepdims) != 0;
    int from = rank_of(p->g, result_of(p));
    for (int axis = rank_of(p->g, operand) - 1; axis >= 0; axis--) {
        const int64_t extent = weft_access_extent(p->g, operand, axis);
        from -= keep || !is_reduced(p->g, p->node, axis);
        if (!is_reduced(p->g, p->node, axis)) {
            carry(p, from, axis);
            continue;
        }
        for (uint32_t i = 0; i < p->from.count; i++)
            p->from.patch[i].of[WEFT_AT_FRESH + axis].base = term % extent;
        term /= extent;
    }
    arrive(p, 0);
}

/* --- ways --------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct weft_graph *g, weft_node n, const bool *wanted, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (weft_is(weft_operand(g, n, k), weft_operand(g, n, i)))
            return false; /* the same way once more */
    return wanted[weft_operand(g, n, i).id];
}

/* How many ways lead through a node; 0: none, -1: nobody knows. */
static int64_t ways_of(const struct weft_graph *g, weft_node n, const bool *wanted)
{
    const int opcode = weft_opcode_of(g, n);
    const uint32_t traits = weft_op_of(g, n)->traits;
    switch (opcode) {
    case WEFT_OP_transpose: case WEFT_OP_bcast: case WEFT_OP_slice: case WEFT_OP_reshape: case WEFT_OP_concat:
        return 1;
    case WEFT_OP_pad:
        return strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "constant") == 0 &&
               !(wanted && wanted[weft_operand(g, n, 1).id]) ? 1 : -1;
    case WEFT_OP_gather: case WEFT_OP_gather_elements:
        return 2;
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min:
    case WEFT_OP_any: case WEFT_OP_all:
        return terms_of(g, n) <= MOST_TERMS ? terms_of(g, n) : 0;
    default:
        if ((traits & WEFT_ELEMENTWISE) || opcode == WEFT_OP_relayout)
            return g->node[n.id].operands;
        return traits & WEFT_MOVEMENT ? -1 : 0;
    }
}

bool weft_access_leads(const struct weft_graph *g, weft_node n) { return ways_of(g, n, NULL) != 0; }

/* Takes one of the ways; false if it leads nowhere. */
static bool take_way(struct passage *p, unsigned way)
{
    const struct weft_graph *g = p->g;
    const int opcode = weft_opcode_of(g, p->node);
    const bool reduces = weft_op_of(g, p->node)->traits & WEFT_REDUCTION;
    const bool computes = (weft_op_of(g, p->node)->traits & WEFT_ELEMENTWISE) || opcode == WEFT_OP_relayout;
    const bool all = reduces || opcode == WEFT_OP_concat;
    if (!all && !is_wanted(g, p->node, p->wanted, way))
        return false;
    if (opcode != WEFT_OP_reshape && !computes)
        unflatten(p);
    switch (opcode) {
    case WEFT_OP_transpose: through_transpose(p); break;
    case WEFT_OP_bcast: through_bcast(p); break;
    case WEFT_OP_slice: through_slice(p); break;
    case WEFT_OP_reshape: through_reshape(p); break;
    case WEFT_OP_concat: through_concat(p); break;
    case WEFT_OP_pad: through_pad(p); break;
    case WEFT_OP_gather: case WEFT_OP_gather_elements: through_gather(p, way); break;
    default:
        if (reduces)
            through_reduction(p, way);
        else
            for (uint32_t i = 0; i < p->from.count; i++)
                p->from.patch[i].at = weft_operand(g, p->node, way);
    }
    return true;
}

static void add_route(struct weft_routes *routes, const struct weft_route *route)
{
    routes->lost |= route->lost || routes->count == MOST_ROUTES;
    if (routes->lost)
        return;
    for (uint32_t i = 0; i < routes->count; i++) {
        const struct weft_route *other = &routes->route[i];
        if (other->count == route->count &&
            (route->count == 0 || memcmp(other->patch, route->patch, route->count * sizeof *route->patch) == 0))
            return;
    }
    routes->route = weft_grow(routes->arena, routes->route, &routes->capacity, routes->count + 1, sizeof *route);
    routes->route[routes->count++] = *route;
}

/* Copies of the patches at the value, and of the others. */
static void part(const struct weft_route *route, weft_val value, struct weft_route *here, struct weft_route *rest)
{
    *here = *rest = (struct weft_route){.arena = route->arena};
    for (uint32_t i = 0; i < route->count; i++)
        weft_route_add(weft_is(route->patch[i].at, value) ? here : rest, &route->patch[i]);
}

void weft_access_through(const struct weft_graph *g, weft_node n, const bool *wanted, struct weft_routes *routes)
{
    const struct weft_routes before = *routes;
    const int64_t ways = ways_of(g, n, wanted);
    *routes = (struct weft_routes){.arena = before.arena, .lost = before.lost};
    for (uint32_t r = 0; r < before.count && !routes->lost; r++) {
        struct weft_route here, rest;
        part(&before.route[r], weft_result(g, n, 0), &here, &rest);
        if (here.count == 0) {
            add_route(routes, &before.route[r]);
            continue;
        }
        routes->lost |= ways < 0;
        for (int64_t way = 0; way < ways && !routes->lost; way++) {
            struct passage passage = {.g = g, .node = n, .wanted = wanted};
            struct weft_route route;
            copy_route(&passage.from, &here);
            if (!take_way(&passage, (unsigned)way))
                continue;
            copy_route(&route, &rest);
            append(&route, &passage.from);
            add_route(routes, &route);
        }
    }
}
