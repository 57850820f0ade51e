/* SPDX-License-Identifier: Apache-2.0 */
/* access.c: weft_access: how wide a value can be accessed while another, or it itself, is walked.
 *
 * The later of the two values, in the order of execution, is where the patches begin: a box of its storage digits. They
 * are moved back through the nodes, in reverse order, to the earlier one, whose layout says the rest. Which of them is
 * walked and which is accessed does not matter until then: the relation is the same from both sides. So a producer that
 * walks its operand can be asked about its result as well.
 *
 * Only values that depend on the earlier one take part. The cost is one look at each node between the two, and of those
 * that depend a few operations for each patch. */
#include "ir/access.h"
#include "ir/public.h"

#include <string.h>

#define VECTOR_BITS 128
#define OWN_ALIGNMENT 64 /* bytes, of what weft allocates */

/* --- layouts as numbers ------------------------------------------------------------------------------------------- */

/* A storage axis: a digit of a logical index, with its weight in each of the functions that a layout knows. */
struct storage_axis {
    int axis;
    int64_t div, length;
    int64_t walk, place, number;
};

/* The layout of a value, axes that have no place in memory outermost. */
struct storage {
    int axes;
    struct storage_axis axis[WEFT_MAX_STORAGE];
};

static struct weft_layout layout_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_layout layout = weft_layout_of(g, v);
    return layout.kind == WEFT_STORED ? layout : weft_layout_row_major(weft_type_of(g, v)->rank);
}

static struct storage storage_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_layout layout = layout_of(g, v);
    struct storage_axis axis[WEFT_MAX_STORAGE];
    int64_t dense = 1;
    for (int i = layout.axes - 1; i >= 0; i--) {
        const struct weft_axis *digit = &layout.axis[i];
        const int64_t extent = weft_access_extent(g, v, digit->axis);
        const int64_t length = digit->mod ? digit->mod : (extent + digit->div - 1) / digit->div;
        const int64_t place = layout.dense ? dense : weft_dim_hint(g->dims, layout.stride[i]);
        axis[i] = (struct storage_axis){.axis = digit->axis, .div = digit->div, .length = length, .place = place};
        dense *= length;
    }
    struct storage s = {0};
    for (int kept = 0; kept < 2; kept++)
        for (int i = 0; i < layout.axes; i++)
            if ((axis[i].length > 1 && axis[i].place != 0) == (kept == 1))
                s.axis[s.axes++] = axis[i];
    int64_t walk = 1, number = 1;
    for (int i = s.axes - 1; i >= 0; i--) {
        const bool is_free = s.axis[i].length == 1 || s.axis[i].place == 0;
        s.axis[i].walk = walk;
        s.axis[i].number = is_free ? 0 : number;
        walk *= s.axis[i].length;
        number *= is_free ? 1 : s.axis[i].length;
    }
    return s;
}

/* Bytes that the first element is surely a multiple of. */
static int64_t alignment_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_layout layout = layout_of(g, v);
    const unsigned bits = weft_dtype_bits(weft_type_of(g, v)->dtype);
    if (layout.align)
        return layout.align;
    return !g->value[v.id].is_param ? OWN_ALIGNMENT : bits < 8 ? 1 : bits / 8;
}

/* --- the two ends ------------------------------------------------------------------------------------------------- */

struct question {
    const struct weft_graph *graph;
    const struct weft_access *asked;
    weft_val value, along;
    struct weft_routes routes;
    struct weft_access_width result;
};

static void weigh(struct weft_patch *patch, const struct weft_linear *digit, const struct storage_axis *axis,
                  bool walks, bool reads)
{
    weft_linear_add(&patch->of[WEFT_AT_WALK], digit, walks ? axis->walk : 0);
    weft_linear_add(&patch->of[WEFT_AT_PLACE], digit, reads ? axis->place : 0);
    weft_linear_add(&patch->of[WEFT_AT_NUMBER], digit, reads ? axis->number : 0);
}

/* The patch that begins at the later value: all its elements. */
static void begin(struct question *q, weft_val v)
{
    const struct weft_graph *g = q->graph;
    const struct storage s = storage_of(g, v);
    struct weft_route route = {.arena = q->routes.arena};
    struct weft_patch patch;
    memset(&patch, 0, sizeof patch); /* with what lies between members: patches are compared by their bytes */
    patch.at = v;
    for (int i = 0; i < s.axes; i++) {
        if (s.axis[i].length == 1)
            continue;
        const int digit = weft_patch_digit(&patch, s.axis[i].length, 0);
        struct weft_linear one = {0};
        one.step[digit] = 1;
        weigh(&patch, &one, &s.axis[i], weft_is(v, q->along), weft_is(v, q->value));
        patch.of[WEFT_AT_INDEX + s.axis[i].axis].step[digit] = s.axis[i].div;
    }
    weft_route_add(&route, &patch);
    for (int axis = 0; axis < weft_type_of(g, v)->rank; axis++) /* blocks may be padded */
        weft_route_keep(&route, 0, WEFT_AT_INDEX + axis, 0, weft_access_extent(g, v, axis));
    q->routes.route = weft_grow(q->routes.arena, NULL, &q->routes.capacity, 1, sizeof route);
    q->routes.route[q->routes.count++] = route;
}

/* Axes that lie, and are walked, like one with the axis behind them. */
static void find_joined(const struct question *q, weft_val v, const struct storage *s, bool *ret_joined)
{
    const int rank = weft_type_of(q->graph, v)->rank;
    const bool walks = weft_is(v, q->along), reads = weft_is(v, q->value);
    const struct storage_axis *of[WEFT_MAX_RANK] = {NULL};
    for (int i = 0; i < s->axes; i++)
        of[s->axis[i].axis] = &s->axis[i];
    for (int axis = 0; axis + 1 < rank && s->axes == rank; axis++) {
        const struct storage_axis *a = of[axis], *b = of[axis + 1];
        ret_joined[axis] = (!walks || a->walk == b->walk * b->length) &&
                           (!reads || (a->place == b->place * b->length && a->number == b->number * b->length));
    }
}

/* Indices of the earlier value become what its layout says. */
static void end(struct question *q, weft_val v, struct weft_route *route)
{
    const struct storage s = storage_of(q->graph, v);
    int64_t extent[WEFT_MAX_RANK];
    bool joined[WEFT_MAX_RANK] = {false};
    for (int axis = 0; axis < weft_type_of(q->graph, v)->rank; axis++)
        extent[axis] = weft_access_extent(q->graph, v, axis);
    find_joined(q, v, &s, joined);
    weft_route_unflatten(route, weft_type_of(q->graph, v)->rank, extent, joined);
    for (int axis = 0; axis < weft_type_of(q->graph, v)->rank; axis++) {
        for (int64_t below = INT64_MAX;;) { /* the digits of this axis, largest div first */
            const struct storage_axis *digit = NULL;
            for (int i = 0; i < s.axes; i++)
                if (s.axis[i].axis == axis && s.axis[i].div < below && (!digit || s.axis[i].div > digit->div))
                    digit = &s.axis[i];
            if (!digit)
                break;
            below = digit->div;
            weft_route_divide(route, 0, WEFT_AT_INDEX + axis, digit->div, WEFT_AT_REST, WEFT_AT_INDEX + axis);
            for (uint32_t i = 0; i < route->count; i++)
                weigh(&route->patch[i], &route->patch[i].of[WEFT_AT_REST], digit, weft_is(v, q->along),
                      weft_is(v, q->value));
        }
    }
}

/* --- the way between ---------------------------------------------------------------------------------------------- */

/* Flags, by value id, of what depends on a value by ways that can be walked, up to `last`. */
static bool *dependents(const struct weft_graph *g, struct weft_arena *arena, weft_val first, weft_val last)
{
    bool *depends = weft_new(arena, bool, g->values);
    depends[first.id] = true;
    weft_foreach_node(g, n) {
        bool any = false;
        for (unsigned i = 0; i < g->node[n.id].operands && !any; i++)
            any = depends[weft_operand(g, n, i).id];
        if (any && g->node[n.id].results == 1 && weft_access_leads(g, n))
            depends[weft_result(g, n, 0).id] = true;
        if (depends[last.id])
            break;
    }
    return depends;
}

static void walk_back(struct question *q, weft_val earlier, weft_val later, const bool *depends)
{
    const struct weft_graph *g = q->graph;
    for (weft_node n = weft_def(g, later); n.id && n.id != weft_def(g, earlier).id; n = g->node[n.id].previous)
        if (depends[weft_result(g, n, 0).id] && !q->routes.lost)
            weft_access_through(g, n, depends, &q->routes);
}

/* The steps that blocks divide: all of the walk, or those of its innermost axes. -1: the axes are others. */
static int64_t steps_of(const struct question *q)
{
    const struct storage s = storage_of(q->graph, q->along);
    const uint32_t axes = q->asked->axes ? q->asked->axes : UINT32_MAX;
    int64_t steps = 1;
    bool inside = true;
    for (int i = s.axes - 1; i >= 0; i--) {
        if (s.axis[i].length == 1)
            continue;
        const bool asked = axes >> s.axis[i].axis & 1;
        if (asked && !inside)
            return -1;
        inside = asked;
        steps *= asked ? s.axis[i].length : 1;
    }
    return steps;
}

static bool is_empty(const struct weft_graph *g, weft_val v)
{
    for (int axis = 0; axis < weft_type_of(g, v)->rank; axis++)
        if (weft_access_extent(g, v, axis) == 0)
            return true;
    return false;
}

static void measure(struct question *q, weft_val earlier, int64_t steps)
{
    int64_t place = steps, number = steps;
    for (uint32_t i = 0; i < q->routes.count && !q->routes.lost; i++) {
        struct weft_route *route = &q->routes.route[i];
        int64_t by_place, by_number;
        if (!weft_is(earlier, q->value) || !weft_is(earlier, q->along))
            end(q, earlier, route);
        q->routes.lost |= route->lost;
        for (uint32_t k = 0; k < route->count && q->asked->align; k++)
            route->patch[k].of[WEFT_AT_PLACE].base += q->asked->offset;
        weft_route_blocks(route, steps, &by_place, &by_number);
        place = weft_gcd(place, by_place);
        number = weft_gcd(number, by_number);
    }
    const unsigned bits = weft_dtype_bits(weft_type_of(q->graph, q->value)->dtype);
    const int64_t align = q->asked->align ? q->asked->align : alignment_of(q->graph, q->value);
    q->result = (struct weft_access_width){.width = 1, .inner = q->routes.lost ? 1 : number};
    for (int64_t k = 2; k * bits <= VECTOR_BITS && !q->routes.lost; k *= 2)
        if (place % k == 0 && align * 8 % (k * bits) == 0)
            q->result.width = k;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

static int ask(void *arg)
{
    struct question *q = arg;
    const struct weft_graph *g = q->graph;
    q->value = q->asked->value;
    q->along = q->asked->along.id ? q->asked->along : q->value;
    if (!weft_value_is_in(g, q->value) || !weft_value_is_in(g, q->along))
        return weft_wrong(g->context, g->name, "the value is %s",
                          weft_stranger(g, weft_value_is_in(g, q->value) ? q->along : q->value));
    q->value.graph = q->along.graph = 0;
    if (is_empty(g, q->value) || is_empty(g, q->along)) {
        q->result = (struct weft_access_width){0};
        return WEFT_OK;
    }
    if (q->asked->offset < 0 || (q->asked->align & (q->asked->align - 1)))
        return weft_wrong(g->context, g->name, "an offset is at least 0, and an alignment a power of two");
    const int64_t steps = steps_of(q);
    if (steps < 0)
        return weft_wrong(g->context, weft_value_text(g, q->along), "these axes are not the innermost of its layout");
    struct weft_arena *arena = &g->root->scratch;
    q->routes.arena = arena;
    weft_val earlier = q->value, later = q->along;
    const bool *depends = dependents(g, arena, earlier, later);
    if (!depends[later.id]) {
        earlier = q->along;
        later = q->value;
        depends = dependents(g, arena, earlier, later);
    }
    if (!depends[later.id])
        return weft_wrong(g->context, weft_value_text(g, q->value), "is not read along with the other value");
    begin(q, later);
    walk_back(q, earlier, later, depends);
    measure(q, earlier, steps);
    weft_arena_close(arena);
    return WEFT_OK;
}

int weft_access(const struct weft_graph *graph, const struct weft_access *access, struct weft_access_width *ret_width)
{
    struct weft_access own;
    if (!graph || !access || !ret_width || !weft_take_options(&own, sizeof own, access))
        return weft_missing(graph ? graph->context : NULL);
    struct question q = {.graph = graph, .asked = &own};
    const int status = weft_protected_graph(graph, ask, &q);
    return status == WEFT_OK ? weft_give_facts(ret_width, &q.result, sizeof q.result) : status;
}
