/* SPDX-License-Identifier: Apache-2.0 */
/* sink_plan.c: what a node looks like when its turned operands are given straight.
 *
 *   %t: f32[4,2,3] = transpose %x perm=[2 0 1]                     %s: f32[4,3] … = sum %x axes=[0]
 *   %y: f32[4,3] = sum %t axes=[1]                      →          %y: f32[4,3] = transpose %s perm=[1 0]
 *
 * Axes in attributes are renamed, lists with an entry for each axis are put into the order of the straight form, and a
 * stated type likewise; which ops and attributes, says sink.def. How the result is turned then says the op's index map
 * (ir/index.h): the axes of the result that run with an axis of the operand go where that goes. What is computed for an
 * element stays the same, term by term: a reduction of floats over several axes moves only if these keep their order
 * among each other, since sums round. So every bit of the result stays.
 *
 * An op on several operands asks that all are turned alike, but for those that are straightened at no cost
 * (sink_operand.c). */
#include "passes/sink_transpose.h"

struct weft_turn weft_turn_none(void)
{
    struct weft_turn turn;
    for (unsigned i = 0; i < WEFT_MAX_RANK; i++)
        turn.axis[i] = (uint8_t)i;
    return turn;
}

bool weft_turn_is_none(const struct weft_turn *turn)
{
    for (unsigned i = 0; i < WEFT_MAX_RANK; i++)
        if (turn->axis[i] != i)
            return false;
    return true;
}

struct weft_type weft_turn_straight(const struct weft_type *type, const struct weft_turn *turn)
{
    struct weft_type straight = *type;
    for (unsigned i = 0; i < type->rank; i++)
        straight.extent[turn->axis[i]] = type->extent[i];
    return straight;
}

static bool is_unit(const struct weft_type *type, unsigned axis) { return weft_dim_is(type->extent[axis], 1); }

/* The n-th axis that is longer than 1. */
static unsigned long_axis(const struct weft_type *type, unsigned n)
{
    unsigned axis = 0;
    while (is_unit(type, axis) || n-- > 0)
        axis++;
    return axis;
}

struct weft_turn weft_turn_settle(const struct weft_type *type, const struct weft_turn *raw)
{
    struct weft_turn turn = weft_turn_none();
    for (unsigned i = 0; i < type->rank; i++) {
        unsigned before = 0;
        for (unsigned j = 0; j < type->rank; j++)
            before += !is_unit(type, j) && raw->axis[j] < raw->axis[i];
        if (!is_unit(type, i))
            turn.axis[i] = (uint8_t)long_axis(type, before);
    }
    return turn;
}

struct weft_turn weft_turn_of(const struct weft_graph *graph, weft_node transpose)
{
    const struct weft_type *type = weft_type_of(graph, weft_result(graph, transpose, 0));
    struct weft_turn raw = weft_turn_none();
    for (unsigned i = 0; i < type->rank; i++)
        raw.axis[i] = (uint8_t)weft_dim_value(weft_attr_at(graph, transpose, WEFT_ATTR_perm, i));
    return weft_turn_settle(type, &raw);
}

/* --- plans ------------------------------------------------------------------------------------------------------ */

struct planning {
    struct weft_graph *graph;
    weft_node node;
    const struct weft_type *from, *to; /* types of operand 0 and of the result */
    const struct weft_turn *turn;      /* of operand 0, or of whichever operand decides */
    const struct weft_turn *const *turns; /* of all operands; NULL: not turned */
    struct weft_sink_plan *plan;
};

/* How an attribute speaks of axes of operand 0. */
static void rename_one(struct planning *p, const struct weft_attr *attr)
{
    p->plan->attr[p->plan->attrs++] = weft_attr_of_int(attr->key, p->turn->axis[weft_dim_value(attr->integer)]);
}

static void rename_set(struct planning *p, const struct weft_attr *attr)
{
    weft_dim *list = p->plan->list[p->plan->attrs];
    unsigned count = 0;
    for (unsigned place = 0; place < p->from->rank; place++)
        for (unsigned i = 0; i < attr->count; i++)
            if (p->turn->axis[weft_dim_value(attr->integers[i])] == place)
                list[count++] = weft_dim_of(place);
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(attr->key, count, list);
}

static void rename_each(struct planning *p, const struct weft_attr *attr)
{
    weft_dim *list = p->plan->list[p->plan->attrs];
    const unsigned rank = p->from->rank;
    for (unsigned i = 0; i < attr->count; i++)
        list[i - i % rank + p->turn->axis[i % rank]] = attr->integers[i];
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(attr->key, attr->count, list);
}

static void rename_axes(struct planning *p)
{
    static void (*const how[WEFT_ATTR_COUNT])(struct planning *, const struct weft_attr *) = {
#define NAMES(attribute, how) [WEFT_ATTR_##attribute] = rename_##how,
#include "passes/sink.def"
    };
    const struct weft_node_info *info = &p->graph->node[p->node.id];
    for (unsigned i = 0; i < info->attrs; i++)
        if (how[info->attr[i].key]) {
            weft_assert(p->plan->attrs < sizeof p->plan->attr / sizeof *p->plan->attr);
            how[info->attr[i].key](p, &info->attr[i]);
        }
}

/* Where axes of the result run with one of operand 0, they stand in its place, one, several or none, in the order of
 * operand 0. */
static bool plan_renamed(struct planning *p)
{
    struct weft_follow follow[WEFT_MAX_RANK];
    if (!weft_index_follow(p->graph, (struct weft_pin){.node = p->node}, follow))
        return false;
    p->plan->raw = weft_turn_none();
    for (unsigned i = 0; i < p->from->rank; i++) {
        unsigned place = 0;
        for (unsigned j = 0; j < p->from->rank; j++)
            place += p->turn->axis[j] < p->turn->axis[i] ? follow[j].axes : 0;
        for (unsigned k = 0; k < follow[i].axes; k++)
            p->plan->raw.axis[(unsigned)follow[i].axis + k] = (uint8_t)(place + k);
    }
    rename_axes(p);
    return true;
}

/* The axes of the space that the index depends on. */
static uint32_t axes_at(const struct weft_index *index)
{
    uint32_t axes = 0;
    for (unsigned t = 0; t < index->terms; t++)
        axes |= 1u << index->term[t].axis;
    return axes;
}

/* The axes of operand 0 that are reduced, and with `shared` those that another operand has, too. */
static bool find_bound(const struct planning *p, bool shared, bool *ret)
{
    struct weft_space space;
    struct weft_index_map map, other;
    uint32_t bound = 0;
    if (!weft_index_space(p->graph, p->node, &space) ||
        !weft_index_map(p->graph, (struct weft_pin){.node = p->node}, &map))
        return false;
    for (int a = 0; a < space.axes; a++)
        bound |= space.axis[a].role == WEFT_AXIS_REDUCED ? 1u << a : 0;
    for (unsigned i = 1; shared && i < p->graph->node[p->node.id].operands; i++) {
        if (!weft_index_map(p->graph, (struct weft_pin){p->node, .index = i}, &other))
            return false;
        for (int k = 0; k < other.rank; k++)
            bound |= axes_at(&other.at[k]);
    }
    for (int i = 0; i < map.rank; i++)
        ret[i] = axes_at(&map.at[i]) & bound;
    return true;
}

static bool plan_ordered(struct planning *p)
{
    bool reduced[WEFT_MAX_RANK];
    int previous = -1;
    if (!find_bound(p, /* shared= */ false, reduced))
        return false;
    for (unsigned axis = 0; axis < p->from->rank && weft_dtype_is_float(p->from->dtype); axis++) {
        const int place = p->turn->axis[axis];
        if (!reduced[axis] || is_unit(p->from, axis))
            continue;
        if (place < previous)
            return false;
        previous = place;
    }
    return plan_renamed(p);
}

static bool plan_fixed(struct planning *p)
{
    bool bound[WEFT_MAX_RANK];
    if (!find_bound(p, /* shared= */ true, bound))
        return false;
    for (unsigned axis = 0; axis < p->from->rank; axis++)
        if (bound[axis] && p->turn->axis[axis] != axis)
            return false;
    return plan_renamed(p);
}

/* All that are turned agree with `turn`, and the others are free. */
static bool plan_alike(struct planning *p)
{
    struct weft_graph *g = p->graph;
    for (unsigned i = 0; i < g->node[p->node.id].operands; i++) {
        const weft_val v = weft_operand(g, p->node, i);
        if (p->turns[i] ? !weft_turn_agrees(weft_type_of(g, v), p->turns[i], p->turn)
                        : !weft_sink_is_free(g, v, p->turn))
            return false;
    }
    p->plan->all = true;
    p->plan->raw = *p->turn;
    rename_axes(p);
    return true;
}

/* What is carried stands in the order of the straight form, at the places where carried axes stood before. Axes of
 * extent 1 stay where they are. */
static bool plan_bcast(struct planning *p)
{
    struct weft_turn raw = weft_turn_none();
    unsigned to[WEFT_MAX_RANK];
    bool carried[WEFT_MAX_RANK] = {false}; /* of the result's axes: one that is longer than 1 */
    for (unsigned i = 0; i < p->from->rank; i++) {
        to[i] = (unsigned)weft_dim_value(weft_attr_at(p->graph, p->node, WEFT_ATTR_dims, i));
        carried[to[i]] = !is_unit(p->from, i);
    }
    for (unsigned i = 0; i < p->from->rank; i++) {
        if (is_unit(p->from, i))
            continue;
        unsigned before = 0, place = 0;
        for (unsigned j = 0; j < p->from->rank; j++)
            before += !is_unit(p->from, j) && p->turn->axis[j] < p->turn->axis[i];
        while (!carried[place] || before-- > 0) /* of `before` + 1 places at least */
            place++;
        raw.axis[to[i]] = (uint8_t)place;
    }
    weft_dim *list = p->plan->list[0];
    for (unsigned i = 0; i < p->from->rank; i++)
        list[p->turn->axis[i]] = weft_dim_of(raw.axis[to[i]]);
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(WEFT_ATTR_dims, p->from->rank, list);
    p->plan->raw = raw;
    return true;
}

static bool plan_reshape(struct planning *p)
{
    if (!weft_sink_reshape(p->graph->dims, p->from, p->turn, p->to, &p->plan->raw))
        return false;
    p->plan->raw = weft_turn_settle(p->to, &p->plan->raw);
    return true;
}

static unsigned count_units(const struct weft_type *type)
{
    unsigned count = 0;
    for (unsigned i = 0; i < type->rank; i++)
        count += is_unit(type, i);
    return count;
}

/* An operand of a concat that is long along its axis knows best how the result is turned. */
static const struct weft_turn *best_turn(const struct weft_graph *g, weft_node n, const struct weft_turn *const *turn)
{
    const struct weft_turn *best = NULL;
    unsigned fewest = WEFT_MAX_RANK + 1;
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        const unsigned units = count_units(weft_type_of(g, weft_operand(g, n, i)));
        if (turn[i] && units < fewest) {
            best = turn[i];
            fewest = units;
        }
    }
    return best;
}

bool weft_sink_plan(struct weft_graph *graph, weft_node n, const struct weft_turn *const *turn,
                    struct weft_sink_plan *ret)
{
    static bool (*const rules[WEFT_OP_COUNT])(struct planning *) = {
#define SINK(op, rule) [WEFT_OP_##op] = plan_##rule,
#include "passes/sink.def"
    };
    bool (*const rule)(struct planning *) =
        weft_op_of(graph, n)->traits & WEFT_ELEMENTWISE ? plan_alike : rules[weft_opcode_of(graph, n)];
    if (!rule)
        return false;
    const struct weft_type *to = weft_type_of(graph, weft_result(graph, n, 0));
    struct planning p = {.graph = graph, .node = n, .from = weft_type_of(graph, weft_operand(graph, n, 0)), .to = to,
                         .turn = best_turn(graph, n, turn), .turns = turn, .plan = ret};
    unsigned turned = 0;
    for (unsigned i = 0; i < graph->node[n.id].operands; i++)
        turned += turn[i] != NULL;
    if (rule != plan_alike && (turned != 1 || !turn[0]))
        return false;
    *ret = (struct weft_sink_plan){.stated = *to};
    if (!rule(&p))
        return false;
    ret->want = *p.turn;
    ret->turn = weft_turn_settle(to, &ret->raw);
    ret->stated = weft_turn_straight(to, &ret->raw);
    return true;
}
