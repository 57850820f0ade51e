/* SPDX-License-Identifier: Apache-2.0 */
/* trip.c: what the body of a loop reads and writes in place, so that a trip copies nothing.
 *
 *   graph @cell(%i: i64[], %h: f32[8,256], %x: f32[48,8,256]) {
 *     %row: f32[8,256] = gather %x, %i axis=0     a row: read where it lies in %x, of trip i, or counted from the end
 *     %t: f32[8,256] = add %h, %row               (%last - %i); no step
 *     return %t, %t                               a twin: what is carried to the next trip is read where it is
 *   }                                             collected, and written once
 *
 * Both are decided here, before anything else of the body has a home; runtime/control_run.c sets the addresses for each
 * trip. A row is always within its axis: the loop collects no more elements than the axis has, or the axis is never
 * empty and an index behind its end means its last element, as `gather` says. */
#include "passes/passes.h"
#include "plan/plan.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Is it the number of the trip, or the number of the last row less that? */
static bool counts_trips(struct weft_graph *g, weft_val index, weft_dim rows, bool *ret_from_end)
{
    const weft_node def = weft_def(g, index);
    *ret_from_end = def.id != 0;
    if (!def.id)
        return weft_is(index, g->param[0]);
    if (weft_opcode_of(g, def) != WEFT_OP_sub || !weft_is(weft_operand(g, def, 1), g->param[0]))
        return false;
    const weft_dim *const last = g->value[weft_operand(g, def, 0).id].content;
    return last && weft_dim_same(last[0], weft_dim_sub(g->dims, rows, weft_dim_of(1)));
}

/* Does the row lie in the order that was chosen for it, if its parameter does? */
static bool keeps_order(const struct weft_plan *plan, weft_node n, const struct weft_layout *row)
{
    const struct weft_layout *const from = plan->home[weft_operand(plan->graph, n, 0).id].layout;
    const int axis = (int)weft_attr_int(plan->graph, n, WEFT_ATTR_axis);
    int at = 0;
    for (int i = 0; i < from->axes; i++)
        if (from->axis[i].axis != axis &&
            (at == row->axes || row->axis[at++].axis != from->axis[i].axis - (from->axis[i].axis > axis)))
            return false;
    return at == row->axes;
}

static bool is_row(const struct weft_plan *plan, weft_node n, bool *ret_from_end)
{
    struct weft_graph *g = plan->graph;
    if (weft_opcode_of(g, n) != WEFT_OP_gather || g->node[n.id].group || plan->target.planned)
        return false;
    const weft_val from = weft_operand(g, n, 0), index = weft_operand(g, n, 1), row = weft_result(g, n, 0);
    const struct weft_type *type = weft_type_of(g, from);
    const struct weft_layout stated = weft_own_layout(g, row);
    if (!g->value[from.id].is_param || g->value[from.id].result <= plan->trip->carried || g->value[row.id].returns ||
        weft_type_of(g, index)->rank > 0 || weft_dtype_bits(type->dtype) < 8 || plan->home[from.id].split ||
        stated.align || !keeps_order(plan, n, &stated))
        return false;
    const weft_dim rows = type->extent[weft_attr_int(g, n, WEFT_ATTR_axis)];
    int64_t fewest, most;
    weft_dim_range(g->dims, rows, &fewest, &most);
    return counts_trips(g, index, rows, ret_from_end) &&
           (fewest > 0 || (plan->trip->collects && weft_dim_same(rows, plan->trip->length)));
}

/* Row 0, as its parameter lies. */
static struct weft_layout layout_of_row(const struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_home *from = &plan->home[weft_operand(g, n, 0).id];
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    struct weft_layout layout = weft_own_layout(g, weft_result(g, n, 0));
    layout.dense = false;
    layout.offset = from->layout->offset;
    for (int i = 0; i < layout.axes; i++)
        layout.stride[i] = from->stride[layout.axis[i].axis + (layout.axis[i].axis >= axis)];
    return layout;
}

static void place_row(struct weft_plan *plan, weft_node n, bool from_end)
{
    const struct weft_graph *g = plan->graph;
    const weft_val from = weft_operand(g, n, 0), row = weft_result(g, n, 0), index = weft_operand(g, n, 1);
    const struct weft_layout layout = layout_of_row(plan, n);
    const uint32_t storage = weft_home_row(plan, (struct weft_storage){
        .kind = WEFT_IN_ROW, .dtype = weft_type_of(g, row)->dtype, .index = g->value[from.id].result, .value = from,
        .axis = (uint8_t)weft_attr_int(g, n, WEFT_ATTR_axis), .from_end = from_end});
    weft_home_set(plan, row, storage, &layout);
    plan->trip->in_place[n.id] = true;
    const struct weft_value *const number = &g->value[index.id];
    if (from_end && number->uses == 1 && !number->returns && !g->node[weft_def(g, index).id].group)
        plan->trip->in_place[weft_def(g, index).id] = true; /* nobody else wants to know the number */
    weft_add_remark_at(plan->graph, "plan", plan->label[row.id], "done",
                       "read where it lies in %%%s, a row for each trip%s", plan->label[from.id],
                       from_end ? ", from the last to the first" : "");
}

void weft_trip_find_rows(struct weft_plan *plan)
{
    struct weft_graph *g = plan->graph;
    bool from_end;
    if (!plan->trip)
        return;
    plan->trip->in_place = weft_new(g->arena, bool, g->nodes);
    plan->trip->first_row = plan->storages;
    weft_foreach_node(g, n)
        if (is_row(plan, n, &from_end) && weft_permit(g, "plan.row", weft_result(g, n, 0)))
            place_row(plan, n, from_end);
    plan->trip->end_row = plan->storages;
}

/* --- twins -------------------------------------------------------------------------------------------------------- */

/* The collected result that is the same value as result i and lies the same; or i. */
static uint32_t twin_of(const struct weft_plan *plan, uint32_t i)
{
    const struct weft_graph *g = plan->graph;
    const weft_val v = g->ret[i].value;
    for (uint32_t k = plan->trip->carried; k < g->returns; k++)
        if (weft_is(g->ret[k].value, v) &&
            weft_same_places(g, weft_type_of(g, v), &plan->return_layout[i], &plan->return_layout[k]))
            return k;
    return i;
}

void weft_trip_find_twins(struct weft_plan *plan)
{
    const uint32_t returns = plan->graph->returns;
    plan->trip->twin = weft_new(plan->graph->arena, uint32_t, returns);
    for (uint32_t i = 0; i < returns; i++)
        plan->trip->twin[i] = i < plan->trip->carried ? twin_of(plan, i) : i;
}

bool weft_trip_is_written(const struct weft_plan *plan, uint32_t i)
{
    for (uint32_t k = 0; plan->trip && k < i; k++)
        if (plan->trip->twin[k] == plan->trip->twin[i])
            return true;
    return false;
}
