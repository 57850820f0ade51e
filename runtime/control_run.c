/* SPDX-License-Identifier: Apache-2.0 */
/* control_run.c: running bodies, on the same workers and in the same parallel region as the steps around them.
 *
 * Where a step of a body is cut into parts, all workers walk through the body, and meet behind each trip. Worker 0
 * decides whether there is another, and where it finds and leaves its values: ahead, at the beginning of the trip
 * before, while others may be on their way already, since even and odd trips have addresses of their own; where a
 * condition decides, behind that trip, and then all meet again. A body without such a step is walked by worker 0 alone,
 * without meeting anybody. Nothing is allocated, nothing carried is copied from trip to trip. */
#include "kernels/gather/gather.h"
#include "runtime/runtime.h"

/* A step with bodies while it runs, as worker 0 sees it. */
struct control_run {
    const struct weft_scope *scope;
    const struct weft_step *step;
    const struct weft_control *control;
    struct weft_frame_control *sized;
    char *room;
};

static struct control_run look_at(const struct weft_scope *scope, uint32_t number)
{
    const struct weft_step *step = &scope->plan->step[number];
    const struct weft_control *control = &scope->plan->control[step->control];
    return (struct control_run){.scope = scope, .step = step, .control = control,
                                .sized = &scope->frame->control[step->control], .room = scope->base[control->room]};
}

/* The body in even trips (0) or odd ones (1); of an `if`: 0. */
static struct weft_scope body_of(const struct control_run *run, unsigned odd)
{
    const uint32_t k = run->sized->chosen;
    return (struct weft_scope){run->control->body[k], run->sized->body[k], run->sized->body[k]->base[odd]};
}

static struct weft_tensor outer_tensor(const struct control_run *run, weft_val v)
{
    const struct weft_scope *scope = run->scope;
    struct weft_tensor t = scope->frame->tensor[v.id];
    const int64_t size = weft_dtype_bits(t.dtype) / 8;
    t.data = (char *)scope->base[scope->plan->home[v.id].storage] + scope->frame->offset[v.id] * size;
    return t;
}

static struct weft_tensor operand(const struct control_run *run, unsigned i)
{
    return outer_tensor(run, weft_operand(run->scope->plan->graph, run->step->node, i));
}

static struct weft_tensor result(const struct control_run *run, unsigned i)
{
    return outer_tensor(run, weft_result(run->scope->plan->graph, run->step->node, i));
}

static struct weft_tensor second_place(const struct control_run *run, uint32_t i)
{
    struct weft_tensor t = result(run, i);
    t.data = run->room + weft_control_place(run->scope->plan, run->scope->frame, run->step, i);
    return t;
}

/* Where odd trips, or even ones, write carried value i. */
static struct weft_tensor place_of(const struct control_run *run, uint32_t i, bool odd)
{
    return odd == run->sized->result_first ? second_place(run, i) : result(run, i);
}

static bool same_places(const struct weft_tensor *a, const struct weft_tensor *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return true;
}

static void **param(const struct weft_scope *body, uint32_t i) { return &body->base[body->plan->param_storage[i]]; }

static void **returned(const struct weft_scope *body, uint32_t i) { return &body->base[body->plan->return_storage[i]]; }

static void place_blocks(const struct control_run *run, const struct weft_scope *body)
{
    for (uint32_t i = 1; i < body->plan->storages; i++)
        if (body->plan->storage[i].kind == WEFT_IN_ARENA)
            body->base[i] = weft_frame_block(body->plan, body->frame, i, run->room + run->sized->arena);
}

/* --- if ----------------------------------------------------------------------------------------------------------- */

static void open_if(const struct control_run *run)
{
    const struct weft_tensor condition = operand(run, 0);
    run->sized->chosen = *(const uint8_t *)condition.data ? 0 : 1;
    const struct weft_scope body = body_of(run, 0);
    place_blocks(run, &body);
    for (uint32_t i = 0; i < body.plan->graph->params; i++)
        *param(&body, i) = operand(run, i + 1).data;
    for (uint32_t i = 0; i < body.plan->graph->returns; i++)
        *returned(&body, i) = result(run, i).data;
}

/* --- loop --------------------------------------------------------------------------------------------------------- */

static char *element_of(const struct weft_tensor *whole, int axis, int64_t index)
{
    return (char *)whole->data + index * whole->stride[axis] * (int64_t)(weft_dtype_bits(whole->dtype) / 8);
}

/* What the trip collects, and what it reads by its number. */
static void aim(const struct control_run *run, const struct weft_scope *body, int64_t trip)
{
    const struct weft_plan *const plan = body->plan;
    for (uint32_t i = run->control->carried; i < plan->graph->returns; i++) {
        const struct weft_tensor whole = result(run, i);
        *returned(body, i) = element_of(&whole, 0, trip);
    }
    for (uint32_t i = 0; i < run->control->carried; i++)
        if (plan->trip->twin[i] != i)
            *returned(body, i) = *returned(body, plan->trip->twin[i]);
    for (uint32_t i = plan->trip->first_row; i < plan->trip->end_row; i++) {
        const struct weft_storage *const row = &plan->storage[i];
        struct weft_tensor from = body->frame->tensor[row->value.id];
        const int64_t rows = from.extent[row->axis], number = row->from_end ? rows - 1 - trip : trip;
        from.data = *param(body, row->index);
        body->base[i] = element_of(&from, row->axis, weft_gather_nearest(number, rows));
    }
}

static bool happens(const struct control_run *run, const struct weft_scope *body, int64_t trip,
                    const struct weft_run *all)
{
    return trip < run->sized->trips && !weft_run_stopped(all) &&
           (!run->control->condition || *(const uint8_t *)*param(body, 1));
}

/* The first trip reads the operand itself, unless that lies otherwise than what is carried. The number of trips is
 * known unless there is a condition; then the last trip writes the results in place. */
static void open_loop(const struct control_run *run, const struct weft_run *all)
{
    const struct weft_scope body = body_of(run, 0), second = body_of(run, 1);
    struct weft_frame_control *sized = run->sized;
    const uint32_t carried = run->control->carried, returns = body.plan->graph->returns;
    place_blocks(run, &body);
    place_blocks(run, &second);
    sized->trips = *(const int64_t *)operand(run, 0).data;
    if (returns > carried && sized->trips > result(run, carried).extent[0])
        sized->trips = result(run, carried).extent[0];
    sized->result_first = run->control->condition || sized->trips % 2 != 0;
    *param(&body, 0) = &sized->trip[0].number;
    *param(&second, 0) = &sized->trip[1].number;
    for (uint32_t i = 1; i < body.plan->graph->params; i++) {
        struct weft_tensor given = operand(run, i);
        if (i <= carried) {
            const struct weft_tensor even = place_of(run, i - 1, false), odd = place_of(run, i - 1, true);
            if (!same_places(&given, &odd)) {
                weft_tensor_copy(&odd, 0, &given, 0);
                given = odd;
            }
            *returned(&body, i - 1) = even.data;
        } else {
            *param(&second, i) = given.data;
        }
        *param(&body, i) = given.data;
    }
    sized->trip[0] = (struct weft_frame_trip){.number = 0, .happens = happens(run, &body, 0, all)};
    if (sized->trip[0].happens)
        aim(run, &body, 0);
}

/* Trip number `next`: what it carries on is where the one before leaves it. */
static void open_trip(const struct control_run *run, int64_t next, const struct weft_run *all)
{
    const struct weft_scope before = body_of(run, (next - 1) & 1), body = body_of(run, next & 1);
    struct weft_frame_trip *const trip = &run->sized->trip[next & 1];
    for (uint32_t i = 0; i < run->control->carried; i++) {
        *param(&body, i + 1) = *returned(&before, i);
        if (body.plan->trip->twin[i] == i)
            *returned(&body, i) = place_of(run, i, next & 1).data;
    }
    *trip = (struct weft_frame_trip){.number = next, .happens = happens(run, &body, next, all)};
    if (trip->happens)
        aim(run, &body, next);
}

static void clear_element(const struct weft_tensor *whole, int64_t index)
{
    struct weft_tensor element = *whole;
    element.extent[0] = 1;
    weft_tensor_clear(&element, index * whole->stride[0]);
}

/* What is carried stands where the last trip wrote it, or where it was given; trips that did not happen collect 0. */
static void close_loop(const struct control_run *run, int64_t trips)
{
    const struct weft_scope body = body_of(run, trips & 1);
    for (uint32_t i = 0; i < run->control->carried; i++) {
        const struct weft_tensor to = result(run, i);
        struct weft_tensor from = trips == 0 ? operand(run, i + 1) : to;
        if (trips > 0)
            from.data = *param(&body, i + 1);
        if (from.data != to.data)
            weft_tensor_copy(&to, 0, &from, 0);
    }
    for (uint32_t i = run->control->carried; i < body.plan->graph->returns; i++) {
        const struct weft_tensor whole = result(run, i);
        for (int64_t trip = trips; trip < whole.extent[0]; trip++)
            clear_element(&whole, trip);
    }
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static void run_loop(const struct weft_walker *walker, const struct control_run *run)
{
    int64_t trip = 0;
    if (walker->worker == 0)
        open_loop(run, walker->run);
    weft_walker_meet(walker);
    for (; run->sized->trip[trip & 1].happens; trip++) {
        const struct weft_scope body = body_of(run, trip & 1);
        const bool known = !run->control->condition;
        if (known && walker->worker == 0)
            open_trip(run, trip + 1, walker->run);
        weft_walk_steps(walker, &body);
        weft_walker_meet(walker);
        if (!known && walker->worker == 0)
            open_trip(run, trip + 1, walker->run);
        if (!known)
            weft_walker_meet(walker);
    }
    if (walker->worker == 0 && !weft_run_stopped(walker->run))
        close_loop(run, trip);
}

void weft_run_control(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t step)
{
    const struct control_run run = look_at(scope, step);
    struct weft_walker walks = *walker;
    if (scope->frame->step[step].parts == 1) {
        if (walker->worker > 0)
            return;
        walks.workers = 1;
        walks.alone = true;
    }
    if (run.control->loop) {
        run_loop(&walks, &run);
        return;
    }
    if (walks.worker == 0)
        open_if(&run);
    weft_walker_meet(&walks);
    const struct weft_scope body = body_of(&run, 0);
    weft_walk_steps(&walks, &body);
}
