/* SPDX-License-Identifier: Apache-2.0 */
/* sink_plan.c: what a node looks like when its turned operands are given straight.
 *
 *   %t: f32[4,2,3] = transpose %x perm=[2 0 1]                     %s: f32[4,3] … = sum %x axes=[0]
 *   %y: f32[4,3] = sum %t axes=[1]                      →          %y: f32[4,3] = transpose %s perm=[1 0]
 *
 * Axes in attributes are renamed, lists with an entry for each axis are put into the order of the straight form, and a
 * stated type likewise. What is computed for an element stays the same, term by term: a reduction of floats over
 * several axes moves only if these keep their order among each other, since sums round. So every bit of the result
 * stays.
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
    struct weft_sink_plan *plan;
};

static void set_axis(struct planning *p, unsigned axis)
{
    p->plan->attr[p->plan->attrs++] = weft_attr_of_int(WEFT_ATTR_axis, axis);
}

/* A list with an entry for each axis of operand 0, or with several times that many. */
static void set_list(struct planning *p, int key, unsigned times)
{
    weft_dim *list = p->plan->list[p->plan->attrs];
    const unsigned rank = p->from->rank;
    for (unsigned t = 0; t < times; t++)
        for (unsigned i = 0; i < rank; i++)
            list[t * rank + p->turn->axis[i]] = weft_attr_at(p->graph, p->node, key, t * rank + i);
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(key, times * rank, list);
}

/* All that are turned agree with `turn`, and the others are free. */
static bool plan_alike(struct planning *p, const struct weft_turn *const *turn)
{
    struct weft_graph *g = p->graph;
    for (unsigned i = 0; i < g->node[p->node.id].operands; i++) {
        const weft_val v = weft_operand(g, p->node, i);
        if (turn[i] ? !weft_turn_agrees(weft_type_of(g, v), turn[i], p->turn)
                    : !weft_sink_is_free(g, v, p->turn))
            return false;
    }
    p->plan->all = true;
    p->plan->raw = *p->turn;
    return true;
}

/* An operand that is long along the axis knows best how the result is turned. */
static bool plan_concat(struct planning *p, const struct weft_turn *const *turn)
{
    const unsigned axis = (unsigned)weft_attr_int(p->graph, p->node, WEFT_ATTR_axis);
    for (unsigned i = p->graph->node[p->node.id].operands; i > 0; i--)
        if (turn[i - 1] && !is_unit(weft_type_of(p->graph, weft_operand(p->graph, p->node, i - 1)), axis))
            p->turn = turn[i - 1];
    set_axis(p, p->turn->axis[axis]);
    return plan_alike(p, turn);
}

/* May terms be taken in any order? */
static bool order_matters(const struct planning *p)
{
    const int op = weft_opcode_of(p->graph, p->node);
    return op != WEFT_OP_reduce_max && op != WEFT_OP_reduce_min && weft_dtype_is_float(p->from->dtype);
}

/* The result of a reduction: reduced axes vanish or have extent 1. */
static void drop_axes(struct planning *p, const bool *reduced, bool keepdims)
{
    struct weft_turn raw = weft_turn_none();
    for (unsigned i = 0, to = 0; i < p->from->rank; i++) {
        unsigned before = 0;
        for (unsigned j = 0; j < p->from->rank; j++)
            before += reduced[j] && p->turn->axis[j] < p->turn->axis[i];
        if (!reduced[i] || keepdims)
            raw.axis[to++] = (uint8_t)(p->turn->axis[i] - (keepdims ? 0 : before));
    }
    p->plan->raw = raw;
}

static bool plan_reduce(struct planning *p)
{
    const struct weft_attr *axes = weft_attr_find(p->graph, p->node, WEFT_ATTR_axes);
    weft_dim *list = p->plan->list[0];
    bool reduced[WEFT_MAX_RANK] = {false};
    unsigned places[WEFT_MAX_RANK] = {0}, count = 0;
    int previous = -1;
    for (unsigned i = 0; i < axes->count; i++) {
        const unsigned axis = (unsigned)weft_dim_value(axes->integers[i]);
        const int place = p->turn->axis[axis];
        if (!is_unit(p->from, axis) && place < previous && order_matters(p))
            return false;
        previous = is_unit(p->from, axis) ? previous : place;
        reduced[axis] = true;
        places[place] = 1;
    }
    for (unsigned place = 0; place < WEFT_MAX_RANK; place++)
        if (places[place])
            list[count++] = weft_dim_of(place);
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(WEFT_ATTR_axes, count, list);
    drop_axes(p, reduced, weft_attr_int(p->graph, p->node, WEFT_ATTR_keepdims) != 0);
    return true;
}

static bool plan_arg(struct planning *p)
{
    const unsigned axis = (unsigned)weft_attr_int(p->graph, p->node, WEFT_ATTR_axis);
    bool reduced[WEFT_MAX_RANK] = {false};
    reduced[axis] = true;
    set_axis(p, p->turn->axis[axis]);
    drop_axes(p, reduced, weft_attr_int(p->graph, p->node, WEFT_ATTR_keepdims) != 0);
    return true;
}

static bool plan_along_axis(struct planning *p)
{
    set_axis(p, p->turn->axis[weft_attr_int(p->graph, p->node, WEFT_ATTR_axis)]);
    p->plan->raw = *p->turn;
    return true;
}

static bool plan_flip(struct planning *p)
{
    const struct weft_attr *axes = weft_attr_find(p->graph, p->node, WEFT_ATTR_axes);
    unsigned count = 0;
    for (unsigned place = 0; place < p->from->rank; place++)
        for (unsigned i = 0; i < axes->count; i++)
            if (p->turn->axis[weft_dim_value(axes->integers[i])] == place)
                p->plan->list[0][count++] = weft_dim_of(place);
    p->plan->attr[p->plan->attrs++] = weft_attr_of_dims(WEFT_ATTR_axes, count, p->plan->list[0]);
    p->plan->raw = *p->turn;
    return true;
}

/* The axes from `first` on stay what they are: operands 1 and 2 have their shape. */
static bool plan_norm(struct planning *p, unsigned first, unsigned end)
{
    for (unsigned axis = first; axis < end; axis++)
        if (p->turn->axis[axis] != axis)
            return false;
    p->plan->raw = *p->turn;
    return true;
}

static bool plan_slice(struct planning *p)
{
    set_list(p, WEFT_ATTR_start, 1);
    set_list(p, WEFT_ATTR_end, 1);
    set_list(p, WEFT_ATTR_step, 1);
    p->plan->raw = *p->turn;
    return true;
}

static bool plan_pad(struct planning *p)
{
    set_list(p, WEFT_ATTR_pad, 2);
    p->plan->raw = *p->turn;
    return true;
}

/* The axes of the indices stand in the place of one axis. */
static bool plan_gather(struct planning *p)
{
    const unsigned axis = (unsigned)weft_attr_int(p->graph, p->node, WEFT_ATTR_axis), place = p->turn->axis[axis];
    const unsigned more = weft_type_of(p->graph, weft_operand(p->graph, p->node, 1))->rank;
    struct weft_turn raw = weft_turn_none();
    for (unsigned i = 0; i < p->from->rank; i++) {
        const unsigned to = p->turn->axis[i];
        if (i != axis)
            raw.axis[i < axis ? i : i + more - 1] = (uint8_t)(to < place ? to : to + more - 1);
    }
    for (unsigned i = 0; i < more; i++)
        raw.axis[axis + i] = (uint8_t)(place + i);
    set_axis(p, place);
    p->plan->raw = raw;
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
    return weft_sink_reshape(p->graph->dims, p->from, p->turn, p->to, &p->plan->raw);
}

static bool plan_by_op(struct planning *p)
{
    switch (weft_opcode_of(p->graph, p->node)) {
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min:
    case WEFT_OP_any: case WEFT_OP_all: case WEFT_OP_log_sum_exp: case WEFT_OP_variance:
        return plan_reduce(p);
    case WEFT_OP_arg_max: case WEFT_OP_arg_min: return plan_arg(p);
    case WEFT_OP_softmax: case WEFT_OP_log_softmax: case WEFT_OP_hardmax:
    case WEFT_OP_cumsum: case WEFT_OP_cumprod: case WEFT_OP_cummax: case WEFT_OP_cummin:
        return plan_along_axis(p);
    case WEFT_OP_flip: return plan_flip(p);
    case WEFT_OP_batch_norm: return plan_norm(p, 1, 2);
    case WEFT_OP_layer_norm: case WEFT_OP_rms_norm:
        return plan_norm(p, (unsigned)weft_attr_int(p->graph, p->node, WEFT_ATTR_axis), p->from->rank);
    case WEFT_OP_slice: return plan_slice(p);
    case WEFT_OP_pad: return plan_pad(p);
    case WEFT_OP_gather: return plan_gather(p);
    case WEFT_OP_bcast: return plan_bcast(p);
    case WEFT_OP_reshape: return plan_reshape(p);
    default: return false;
    }
}

bool weft_sink_plan(struct weft_graph *graph, weft_node n, const struct weft_turn *const *turn,
                    struct weft_sink_plan *ret)
{
    const unsigned operands = graph->node[n.id].operands;
    const struct weft_type *to = weft_type_of(graph, weft_result(graph, n, 0));
    struct planning p = {.graph = graph, .node = n, .to = to, .plan = ret};
    unsigned turned = 0;
    *ret = (struct weft_sink_plan){.stated = *to};
    for (unsigned i = operands; i > 0; i--)
        if (turn[i - 1]) {
            p.turn = turn[i - 1];
            turned++;
        }
    p.from = weft_type_of(graph, weft_operand(graph, n, 0));
    const int op = weft_opcode_of(graph, n);
    const bool alike = (weft_op_of(graph, n)->traits & WEFT_ELEMENTWISE) || op == WEFT_OP_concat;
    if (!alike && (turned != 1 || !turn[0]))
        return false;
    const bool fits = op == WEFT_OP_concat ? plan_concat(&p, turn) : alike ? plan_alike(&p, turn) : plan_by_op(&p);
    if (!fits)
        return false;
    ret->want = *p.turn;
    ret->turn = weft_turn_settle(to, &ret->raw);
    if (op == WEFT_OP_reshape)
        ret->raw = ret->turn;
    ret->stated = weft_turn_straight(to, &ret->raw);
    return true;
}
