/* SPDX-License-Identifier: Apache-2.0 */
/* control.c: the bodies of `if` and `loop` as plans within a plan.
 *
 * A body is a graph of its own, so it gets a plan of its own: homes, steps, packed weights. What differs is where its
 * ports lie. A parameter lies where the outer operand does, strides and all: nothing is copied in. A result lies where
 * the outer result does; what a loop collects, at its place along axis 0. A carried value has two places of one layout,
 * the outer result's own and a second one in the room; trips read one and write the other.
 *
 *   %s: f32[3] = loop %n, %x body=@b       trip 0 reads %x, writes the place that makes the last trip write %s
 *                                          trip 1 reads that, writes the other place, and so on
 *
 * The room is one block of the outer arena, alive while the step runs: the second places, then the arena of the body.
 * control_frame.c gives it sizes, control_run.c runs it. */
#include "plan/plan.h"

/* Where an outer value lies, as seen from its first element. */
static struct weft_layout layout_of(const struct weft_plan *plan, weft_val v)
{
    struct weft_layout layout = *plan->home[v.id].layout;
    layout.offset = weft_dim_of(0);
    return layout;
}

/* One element along axis 0. */
static struct weft_layout element_of(const struct weft_plan *plan, weft_val v)
{
    const struct weft_home *home = &plan->home[v.id];
    const int rank = weft_type_of(plan->graph, v)->rank - 1;
    struct weft_layout layout = weft_layout_row_major(rank);
    if (weft_layout_is_row_major(home->layout))
        return layout;
    layout.dense = false;
    for (int i = 0; i < rank; i++)
        layout.stride[i] = home->stride[i + 1];
    return layout;
}

static struct weft_trip *open_trip(const struct weft_plan *body, const struct weft_graph *outer, weft_node loop,
                                   const struct weft_control *control)
{
    const struct weft_attr *const length = weft_attr_find(outer, loop, WEFT_ATTR_length);
    struct weft_trip *const trip = weft_new(body->graph->arena, struct weft_trip, 1);
    *trip = (struct weft_trip){.carried = control->carried,
                               .collects = length && body->graph->returns > control->carried};
    if (trip->collects)
        trip->length = length->integer;
    return trip;
}

/* A loop hands its number and the operands behind the first to the body; an if the operands behind the first. */
static void plan_body(struct weft_plan *plan, weft_node node, struct weft_control *control, struct weft_graph *graph)
{
    struct weft_graph *outer = plan->graph;
    struct weft_plan *body = weft_new(outer->arena, struct weft_plan, 1);
    *body = (struct weft_plan){
        .context = plan->context, .target = plan->target, .workers = plan->workers, .graph = graph, .hint = plan->hint};
    body->keeps_constants = plan->keeps_constants;
    body->pick = plan->pick;
    control->body[control->bodies++] = body; /* from here on, dropped with the outer plan */
    struct weft_layout *param = weft_new(outer->arena, struct weft_layout, graph->params + 1);
    struct weft_layout *result = weft_new(outer->arena, struct weft_layout, graph->returns + 1);
    for (uint32_t i = 0; i < graph->returns; i++) {
        const weft_val v = weft_result(outer, node, i);
        result[i] = control->loop && i >= control->carried ? element_of(plan, v) : layout_of(plan, v);
    }
    for (uint32_t i = 0; i < graph->params; i++)
        param[i] = !control->loop ? layout_of(plan, weft_operand(outer, node, i + 1))
                   : i == 0       ? weft_layout_row_major(0)
                   : i <= control->carried ? result[i - 1]
                                           : layout_of(plan, weft_operand(outer, node, i));
    body->param_layout = param;
    body->return_layout = result;
    if (control->loop) {
        body->trip = open_trip(body, outer, node, control);
        weft_trip_find_twins(body);
    }
    weft_plan_fill(body, false);
    plan->fallbacks += body->fallbacks;
    plan->relayouts += body->relayouts;
    plan->constant_bytes += body->constant_bytes;
    for (int kind = 0; kind < WEFT_ALIAS_KINDS; kind++)
        plan->alias.marked[kind] += body->alias.marked[kind];
    plan->inner_steps += (int32_t)body->steps + body->inner_steps;
}

uint32_t weft_plan_add_control(struct weft_plan *plan, weft_node node)
{
    struct weft_graph *g = plan->graph;
    plan->control =
        weft_grow(g->arena, plan->control, &plan->control_capacity, plan->controls + 1, sizeof *plan->control);
    const uint32_t number = plan->controls++;
    struct weft_control *control = &plan->control[number];
    *control = (struct weft_control){.loop = weft_opcode_of(g, node) == WEFT_OP_loop};
    control->room = weft_home_room(plan, number);
    if (control->loop) {
        const struct weft_attr *carried = weft_attr_find(g, node, WEFT_ATTR_carried);
        control->carried = carried ? (uint32_t)weft_dim_value(carried->integer) : g->node[node.id].operands - 1;
        control->condition = weft_attr_int(g, node, WEFT_ATTR_while) != 0;
        plan_body(plan, node, control, weft_attr_find(g, node, WEFT_ATTR_body)->graph);
    } else {
        plan_body(plan, node, control, weft_attr_find(g, node, WEFT_ATTR_then)->graph);
        plan_body(plan, node, control, weft_attr_find(g, node, WEFT_ATTR_else)->graph);
    }
    return number;
}

void weft_plan_drop_controls(struct weft_plan *plan)
{
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++) {
            struct weft_plan *body = plan->control[i].body[k];
            weft_plan_drop_controls(body);
            weft_release(body->context, body->temporary.data, body->temporary.bytes);
            for (uint32_t pack = 1; pack < body->packs; pack++)
                weft_plan_free_pack(body->context, &body->pack[pack]);
        }
}

/* --- as kinds of steps, which have no kernel of their own --------------------------------------------------------- */

static const char *name_if(const void *descriptor, const struct weft_step *step) { return "weft_if"; }

static const char *name_loop(const void *descriptor, const struct weft_step *step) { return "weft_loop"; }

const struct weft_step_kind weft_step_if = {.name = "if", .kernel = name_if};
const struct weft_step_kind weft_step_loop = {.name = "loop", .kernel = name_loop};
