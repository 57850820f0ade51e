/* SPDX-License-Identifier: Apache-2.0 */
/* access_op.c: what a node does to the patches of a route, from its result back to its operands: the indices of an
 * operand are those of its index map (index.h), with the result's indices in the place of the axes.
 *
 *   elementwise, relayout     the same indices; a route for each operand
 *   views, movement           as the map says. An index that is data becomes a hidden digit, and the axes that say
 *                             where it stands steer. Operands that are read at some points only (a concat's) share a
 *                             route
 *   reshape                   one number for all axes, divided by the extents from the innermost on: what no affine map
 *                             says, patches can
 *   reductions over axes      up to 16 elements are operands like others: a route each
 *
 * A longer reduction is a loop of its own, and so are contractions, windows, scans, sorts and all else that computes:
 * what they read is not read along the result, and a route ends there. Movement whose map is not affine with steps
 * upwards loses the route, so that nothing is promised. */
#include "ir/access.h"
#include "ir/index.h"

#include <string.h>

#define MOST_TERMS 16  /* of a reduction that counts as unrolled */
#define MOST_ROUTES 64

int64_t weft_access_extent(const struct weft_graph *g, weft_val v, int axis)
{
    return weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
}

static int rank_of(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->rank; }

/* One node, and the patches of a route that stand at its result. */
struct passage {
    const struct weft_graph *g;
    weft_node node;
    struct weft_route from;
    struct weft_space space;
    int result_axis[WEFT_SPACE_AXES]; /* by axis of the space: the axis of the result that it is, or -1 */
    int64_t place[WEFT_SPACE_AXES];   /* and where the term of a reduction stands */
};

static weft_val result_of(const struct passage *p) { return weft_result(p->g, p->node, 0); }

/* Makes sure that there are indices. */
static void unflatten(struct passage *p)
{
    int64_t extent[WEFT_MAX_RANK];
    for (int axis = 0; axis < rank_of(p->g, result_of(p)); axis++)
        extent[axis] = weft_access_extent(p->g, result_of(p), axis);
    weft_route_unflatten(&p->from, rank_of(p->g, result_of(p)), extent, NULL);
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

/* --- kinds of nodes ----------------------------------------------------------------------------------------------- */

enum way { NOWHERE, SAME, NUMBERED, MAPPED, FOLDED };

static enum way way_of(const struct weft_graph *g, weft_node n)
{
    const uint32_t traits = weft_op_of(g, n)->traits;
    if (traits & (WEFT_ELEMENTWISE | WEFT_PLACEMENT))
        return SAME;
    if (weft_opcode_of(g, n) == WEFT_OP_reshape)
        return NUMBERED;
    if (traits & (WEFT_VIEW | WEFT_MOVEMENT))
        return MAPPED;
    return (traits & WEFT_REDUCTION) && weft_attr_find(g, n, WEFT_ATTR_axes) ? FOLDED : NOWHERE;
}

static int64_t terms_of(const struct weft_graph *g, const struct weft_space *space)
{
    int64_t terms = 1;
    for (int i = 0; i < space->axes; i++)
        if (space->axis[i].role == WEFT_AXIS_REDUCED)
            terms *= weft_dim_hint(g->dims, space->axis[i].extent);
    return terms;
}

/* Opens the space of the node; false if nothing is known of it. */
static bool open_space(struct passage *p)
{
    struct weft_index_map map;
    if (!weft_index_space(p->g, p->node, &p->space) ||
        !weft_index_map(p->g, (struct weft_pin){p->node, .result = true}, &map))
        return false;
    for (int i = 0; i < p->space.axes; i++)
        p->result_axis[i] = -1;
    for (int i = 0; i < map.rank; i++)
        if (weft_index_axis(&map.at[i]) >= 0)
            p->result_axis[weft_index_axis(&map.at[i])] = i;
    return true;
}

/* The place of the term number `term` of a reduction. */
static void open_term(struct passage *p, int64_t term)
{
    for (int i = p->space.axes - 1; i >= 0; i--) {
        if (p->space.axis[i].role != WEFT_AXIS_REDUCED)
            continue;
        const int64_t extent = weft_dim_hint(p->g->dims, p->space.axis[i].extent);
        p->place[i] = term % extent;
        term /= extent;
    }
}

/* --- through a map ------------------------------------------------------------------------------------------------ */

/* Can patches say where the points stand? */
static bool is_said(const struct passage *p, const struct weft_index_map *map)
{
    for (int i = 0; i < map->rank; i++) {
        const struct weft_index *index = &map->at[i];
        if (index->is_near || index->border > WEFT_BORDER_SKIPPED || (index->data && index->terms))
            return false;
        for (unsigned t = 0; t < index->terms; t++)
            if (weft_dim_hint(p->g->dims, index->term[t].step) < 0)
                return false;
    }
    return true;
}

static bool is_part(const struct weft_index_map *map)
{
    for (int i = 0; i < map->rank; i++)
        if (map->at[i].border == WEFT_BORDER_SKIPPED)
            return true;
    return false;
}

/* Digits on which the places of operand `data` depend, whose elements are indices. */
static void steer(struct passage *p, unsigned data)
{
    struct weft_index_map map;
    if (!weft_index_map(p->g, (struct weft_pin){p->node, .index = data}, &map))
        return;
    for (uint32_t k = 0; k < p->from.count; k++) {
        struct weft_patch *patch = &p->from.patch[k];
        for (int i = 0; i < map.rank; i++)
            for (unsigned t = 0; t < map.at[i].terms; t++) {
                const int axis = p->result_axis[map.at[i].term[t].axis];
                for (int j = 0; j < patch->digits && axis >= 0; j++)
                    if (patch->of[WEFT_AT_INDEX + axis].step[j] != 0)
                        patch->flags[j] |= WEFT_DIGIT_STEERS;
            }
    }
}

static void hide(struct passage *p, int axis, int64_t extent)
{
    for (uint32_t i = 0; i < p->from.count && extent > 1; i++) {
        const int digit = weft_patch_digit(&p->from.patch[i], extent, WEFT_DIGIT_HIDDEN);
        p->from.lost |= digit < 0;
        if (digit >= 0)
            p->from.patch[i].of[WEFT_AT_FRESH + axis].step[digit] = 1;
    }
}

/* The index along an axis of the operand, in all patches. */
static void follow(struct passage *p, int axis, const struct weft_index *index)
{
    const struct weft_dims *dims = p->g->dims;
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        struct weft_linear *fresh = &patch->of[WEFT_AT_FRESH + axis];
        fresh->base = weft_dim_hint(dims, index->base);
        for (unsigned t = 0; t < index->terms; t++) {
            const int64_t step = weft_dim_hint(dims, index->term[t].step);
            const int from = p->result_axis[index->term[t].axis];
            if (from >= 0)
                weft_linear_add(fresh, &patch->of[WEFT_AT_INDEX + from], step);
            else
                fresh->base += step * p->place[index->term[t].axis];
        }
    }
}

/* The indices in FRESH become those of the operand. */
static void arrive(struct passage *p, weft_val operand)
{
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        const size_t bytes = WEFT_MAX_RANK * sizeof *patch->of;
        memcpy(&patch->of[WEFT_AT_INDEX], &patch->of[WEFT_AT_FRESH], bytes);
        memset(&patch->of[WEFT_AT_FRESH], 0, bytes);
        patch->at = operand;
    }
}

static void through_map(struct passage *p, unsigned operand, const struct weft_index_map *map)
{
    const weft_val v = weft_operand(p->g, p->node, operand);
    for (int i = 0; i < map->rank; i++)
        if (map->at[i].data)
            steer(p, map->at[i].data - 1u);
    for (int i = 0; i < map->rank; i++) {
        const int64_t extent = weft_access_extent(p->g, v, i);
        if (map->at[i].data) {
            hide(p, i, extent);
            continue;
        }
        follow(p, i, &map->at[i]);
        if (map->at[i].border == WEFT_BORDER_SKIPPED)
            weft_route_keep(&p->from, 0, WEFT_AT_FRESH + i, 0, extent);
    }
    arrive(p, v);
}

/* A number in row-major order is the same number in another shape. */
static void through_number(struct passage *p)
{
    for (uint32_t i = 0; i < p->from.count; i++) {
        struct weft_patch *patch = &p->from.patch[i];
        int64_t unit = 1;
        for (int axis = rank_of(p->g, result_of(p)) - 1; axis >= 0 && !patch->flat; axis--) {
            weft_linear_add(&patch->of[WEFT_AT_REST], &patch->of[WEFT_AT_INDEX + axis], unit);
            unit *= weft_access_extent(p->g, result_of(p), axis);
        }
        memset(&patch->of[WEFT_AT_INDEX], 0, WEFT_MAX_RANK * sizeof *patch->of);
        patch->flat = true;
        patch->at = weft_operand(p->g, p->node, 0);
    }
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

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

/* The routes from one that stands at the result, `here`, and elsewhere, `rest`. */
struct fork {
    struct passage passage;
    const struct weft_route *here, *rest;
    const bool *wanted;
    struct weft_routes *routes;
};

static void add_fork(struct fork *f)
{
    struct weft_route route;
    copy_route(&route, f->rest);
    append(&route, &f->passage.from);
    add_route(f->routes, &route);
}

static bool is_wanted(const struct fork *f, unsigned i)
{
    const struct weft_graph *g = f->passage.g;
    const weft_val operand = weft_operand(g, f->passage.node, i);
    return f->wanted[operand.id];
}

/* A route to each operand that is wanted, once. */
static void fork_same(struct fork *f, bool numbered)
{
    struct passage *p = &f->passage;
    for (unsigned i = 0; i < p->g->node[p->node.id].operands; i++) {
        const weft_val operand = weft_operand(p->g, p->node, i);
        bool again = false;
        for (unsigned k = 0; k < i; k++)
            again |= weft_is(weft_operand(p->g, p->node, k), operand);
        if (again || !is_wanted(f, i))
            continue;
        copy_route(&p->from, f->here);
        if (numbered)
            through_number(p);
        for (uint32_t k = 0; k < p->from.count; k++)
            p->from.patch[k].at = operand;
        add_fork(f);
    }
}

/* Operands that are read at some points only have their parts in one route: blocks may reach from one into the next. */
static void fork_mapped(struct fork *f)
{
    struct passage *p = &f->passage;
    const struct weft_graph *g = p->g;
    struct weft_route parts = {.arena = f->here->arena};
    bool any = false;
    weft_dim behind = weft_dim_of(0);
    for (unsigned i = 0; i < g->node[p->node.id].operands; i++) {
        const struct weft_pin pin = {p->node, .index = i};
        struct weft_index_map map;
        if (is_wanted(f, i)) {
            if (!weft_index_map_behind(g, pin, behind, &map) || !is_said(p, &map)) {
                f->routes->lost = true;
                return;
            }
            copy_route(&p->from, f->here);
            unflatten(p);
            through_map(p, i, &map);
            if (is_part(&map)) {
                any = true;
                append(&parts, &p->from);
            } else {
                add_fork(f);
            }
        }
        behind = weft_index_behind(g, pin, behind);
    }
    if (any) {
        p->from = parts;
        add_fork(f);
    }
}

/* A route for each term. */
static void fork_folded(struct fork *f)
{
    struct passage *p = &f->passage;
    struct weft_index_map map;
    if (!is_wanted(f, 0) || !weft_index_map(p->g, (struct weft_pin){p->node, .index = 0}, &map))
        return;
    for (int64_t term = 0; term < terms_of(p->g, &p->space) && !f->routes->lost; term++) {
        copy_route(&p->from, f->here);
        unflatten(p);
        open_term(p, term);
        through_map(p, 0, &map);
        add_fork(f);
    }
}

bool weft_access_leads(const struct weft_graph *g, weft_node n)
{
    struct weft_space space;
    const enum way way = way_of(g, n);
    return way != NOWHERE && (way != FOLDED || (weft_index_space(g, n, &space) && terms_of(g, &space) <= MOST_TERMS));
}

void weft_access_through(const struct weft_graph *g, weft_node n, const bool *wanted, struct weft_routes *routes)
{
    const struct weft_routes before = *routes;
    const enum way way = weft_access_leads(g, n) ? way_of(g, n) : NOWHERE;
    *routes = (struct weft_routes){.arena = before.arena, .lost = before.lost};
    for (uint32_t r = 0; r < before.count && !routes->lost; r++) {
        struct weft_route here, rest;
        struct fork fork = {.passage = {.g = g, .node = n}, .here = &here, .rest = &rest, .wanted = wanted,
                            .routes = routes};
        part(&before.route[r], weft_result(g, n, 0), &here, &rest);
        if (here.count == 0) {
            add_route(routes, &before.route[r]);
            continue;
        }
        if (way == SAME || way == NUMBERED)
            fork_same(&fork, way == NUMBERED);
        else if (way != NOWHERE && !open_space(&fork.passage))
            routes->lost = true;
        else if (way == MAPPED)
            fork_mapped(&fork);
        else if (way == FOLDED)
            fork_folded(&fork);
    }
}
