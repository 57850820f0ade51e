/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c: what a plan tells about its values: where they live, and how often data changes its order.
 *
 * The order of two tensors over the same axes differs where one of two axes has the larger stride in the one and the
 * smaller in the other; axes of extent 1 and of stride 0 have no place in it. Copies are judged by what their kernel
 * will do, all other steps by the axes that operand and result have in common, and by the order that their layouts
 * state: where memory overlaps, strides do not say it. */
#include "codegen/form.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* --- changes of order --------------------------------------------------------------------------------------------- */

static bool order_differs(int rank, const int64_t *extent, const int64_t *a, const int64_t *b)
{
    for (int i = 0; i < rank; i++) {
        for (int k = 0; k < rank; k++) {
            const bool placed = extent[i] > 1 && extent[k] > 1 && a[i] && b[i] && a[k] && b[k];
            if (placed && llabs(a[i]) > llabs(a[k]) && llabs(b[i]) < llabs(b[k]))
                return true;
        }
    }
    return false;
}

/* Result axes that axes of operand i run with (-1: none); false where the node is not walked in the order of both. */
static bool common_axes(const struct weft_graph *g, weft_node n, unsigned operand, int *ret_axis)
{
    const uint32_t traits = weft_op_of(g, n)->traits;
    struct weft_follow follow[WEFT_MAX_RANK];
    if (traits & WEFT_CONTRACTION || (operand > 0 && !(traits & WEFT_ELEMENTWISE)) ||
        !weft_index_follow(g, (struct weft_pin){n, .index = operand}, follow))
        return false;
    for (int axis = 0; axis < weft_type_of(g, weft_operand(g, n, operand))->rank; axis++)
        ret_axis[axis] = follow[axis].axis;
    return true;
}

/* How far outside an axis is stored; 0 where it has no place. */
static int64_t outwardness(const struct weft_plan *plan, const struct weft_frame *frame, weft_val v, int axis)
{
    const struct weft_layout *layout = plan->home[v.id].layout;
    int at = 0;
    while (layout->axis[at].axis != axis)
        at++;
    return frame->tensor[v.id].stride[axis] ? layout->axes - at : 0;
}

/* Dimensions of an array that a group's kernel loads or stores, by axis of its form; -1: none. */
static void find_dimensions(const struct weft_form *form, weft_val v, int8_t ret[WEFT_FORM_AXES])
{
    memset(ret, -1, WEFT_FORM_AXES);
    for (uint32_t i = 0; i < form->ops; i++) {
        const struct weft_form_op *op = &form->op[i];
        const struct weft_index_map *map = &form->map[op->map];
        if ((op->kind != WEFT_FORM_LOAD && op->kind != WEFT_FORM_STORE) || !weft_is(form->array[op->array].value, v))
            continue;
        for (int k = 0; k < map->rank; k++)
            if (map->at[k].terms == 1)
                ret[map->at[k].term[0].axis] = (int8_t)k;
        return;
    }
}

/* A group: operand i beside the first result. */
static bool group_reads_in_other_order(const struct weft_plan *plan, const struct weft_frame *frame,
                                       const struct weft_step *step, unsigned operand)
{
    const weft_val v = step->in[operand], w = step->out[0];
    int8_t of_in[WEFT_FORM_AXES], of_out[WEFT_FORM_AXES];
    int64_t extent[WEFT_FORM_AXES], from[WEFT_FORM_AXES], to[WEFT_FORM_AXES];
    int count = 0;
    if (!plan->home[v.id].storage || !plan->home[w.id].storage)
        return false;
    find_dimensions(step->code, v, of_in);
    find_dimensions(step->code, w, of_out);
    for (uint32_t axis = 0; axis < step->code->axes; axis++) {
        if (of_in[axis] < 0 || of_out[axis] < 0)
            continue;
        extent[count] = frame->tensor[v.id].extent[of_in[axis]];
        from[count] = outwardness(plan, frame, v, of_in[axis]);
        to[count++] = outwardness(plan, frame, w, of_out[axis]);
    }
    return order_differs(count, extent, from, to);
}

static bool reads_in_other_order(const struct weft_plan *plan, const struct weft_frame *frame,
                                 const struct weft_step *step, unsigned operand)
{
    const struct weft_graph *g = plan->graph;
    const weft_val v = weft_operand(g, step->node, operand);
    int axis[WEFT_MAX_RANK], count = 0;
    int64_t extent[WEFT_MAX_RANK], from[WEFT_MAX_RANK], to[WEFT_MAX_RANK];
    for (unsigned i = 0; i < operand; i++)
        if (weft_is(weft_operand(g, step->node, i), v))
            return false; /* the same load */
    if (!plan->home[v.id].storage || !plan->home[step->out[0].id].storage || !common_axes(g, step->node, operand, axis))
        return false;
    const struct weft_tensor *in = &frame->tensor[v.id], *out = &frame->tensor[step->out[0].id];
    for (int i = 0; i < in->rank; i++) {
        if (axis[i] < 0)
            continue;
        extent[count] = in->extent[i] < out->extent[axis[i]] ? in->extent[i] : out->extent[axis[i]];
        from[count] = outwardness(plan, frame, v, i);
        to[count++] = outwardness(plan, frame, step->out[0], axis[i]);
    }
    return order_differs(count, extent, from, to);
}

static void add_turned(weft_val list[WEFT_MOST_TURNED], uint32_t *count, weft_val v)
{
    if (*count < WEFT_MOST_TURNED)
        list[*count] = v;
    ++*count;
}

uint32_t weft_plan_list_turned(const struct weft_plan *plan, const struct weft_frame *frame,
                               const struct weft_step *step, weft_val ret[WEFT_MOST_TURNED])
{
    uint32_t count = 0;
    if (weft_step_has(step, WEFT_STEP_MOVES)) {
        const struct weft_copy *copy = weft_frame_descriptor(frame, step);
        const bool by_lines = step->kind->by_lines && step->kind->by_lines(copy);
        if (by_lines || order_differs(copy->rank, copy->extent, copy->out_stride, copy->in_stride))
            add_turned(ret, &count, step->in[0]);
    } else if (step->code) {
        for (unsigned k = 0; k < step->ins; k++)
            if (group_reads_in_other_order(plan, frame, step, k))
                add_turned(ret, &count, step->in[k]);
    } else if (!step->control && step->node.id && !weft_step_has(step, WEFT_STEP_FILLS)) {
        for (unsigned k = 0; k < plan->graph->node[step->node.id].operands; k++)
            if (reads_in_other_order(plan, frame, step, k))
                add_turned(ret, &count, weft_operand(plan->graph, step->node, k));
    }
    return count;
}

int32_t weft_plan_count_order_changes(const struct weft_plan *plan, const struct weft_frame *frame)
{
    int32_t count = 0;
    weft_val turned[WEFT_MOST_TURNED];
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        const struct weft_control *control = step->control ? &plan->control[step->control] : NULL;
        for (uint32_t k = 0; control && k < control->bodies; k++)
            count += weft_plan_count_order_changes(control->body[k], frame->control[step->control].body[k]);
        count += (int32_t)weft_plan_list_turned(plan, frame, step, turned);
    }
    return count;
}

size_t weft_plan_relayouts(const struct weft_plan *plan) { return plan ? (size_t)plan->order_changes : 0; }

/* --- values ------------------------------------------------------------------------------------------------------- */

static bool is_there(const struct weft_graph *g, weft_val v)
{
    const weft_node def = weft_def(g, v);
    return def.id ? !g->node[def.id].dead : g->value[v.id].is_param;
}

static int64_t known(weft_dim d) { return weft_dim_is_constant(d) ? weft_dim_value(d) : -1; }

/* As plan_returns in plan.c makes them. */
static int32_t copies_of(const struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    int32_t copies = 0;
    for (uint32_t slot = g->value[v.id].first_return; slot; slot = g->ret[slot - 1].next)
        copies += (plan->home[v.id].storage != plan->return_storage[slot - 1] && !plan->shared[slot - 1]) +
                  (g->ret[slot - 1].mut.id && !plan->alias.ret[slot - 1].updated);
    return copies;
}

static int describe(const struct weft_plan *plan, weft_val v, struct weft_plan_value *ret_value)
{
    static const int32_t memory[] = {[WEFT_IN_NONE] = WEFT_MEMORY_NONE, [WEFT_IN_PARAM] = WEFT_MEMORY_INPUT,
                                     [WEFT_IN_RETURN] = WEFT_MEMORY_OUTPUT, [WEFT_IN_CONSTANT] = WEFT_MEMORY_CONSTANT,
                                     [WEFT_IN_ARENA] = WEFT_MEMORY_ARENA, [WEFT_IN_ROW] = WEFT_MEMORY_INPUT};
    const struct weft_home *home = &plan->home[v.id];
    const struct weft_storage *storage = &plan->storage[home->storage];
    const struct weft_type *type = weft_type_of(plan->graph, v);
    struct weft_plan_value facts = {.name = plan->label[v.id], .root = "", .storage = home->storage,
                                    .copies = copies_of(plan, v), .dtype = type->dtype, .rank = type->rank};
    if (home->storage) {
        facts.memory = memory[storage->kind];
        facts.port = (int32_t)storage->index;
        facts.root = plan->label[storage->value.id];
        facts.offset = known(home->layout->offset);
    }
    for (int i = 0; i < type->rank; i++) {
        facts.extent[i] = known(type->extent[i]);
        facts.stride[i] = home->storage && !home->split ? known(home->stride[i]) : 0;
    }
    return weft_give_facts(ret_value, &facts, sizeof facts);
}

void weft_plan_list_values(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    plan->value = weft_new(g->arena, weft_val, g->values);
    for (uint32_t i = 1; i < g->values; i++)
        if (is_there(g, (weft_val){.id = i}))
            plan->value[plan->values++] = (weft_val){.id = i};
}

size_t weft_plan_values(const struct weft_plan *plan) { return plan ? plan->values : 0; }

int weft_plan_value(const struct weft_plan *plan, size_t i, struct weft_plan_value *ret_value)
{
    if (!plan || !ret_value || i >= plan->values)
        return WEFT_ERR_ARGUMENT;
    return describe(plan, plan->value[i], ret_value);
}

int weft_plan_find(const struct weft_plan *plan, const char *name, struct weft_plan_value *ret_value)
{
    if (!plan || !name || !ret_value)
        return WEFT_ERR_ARGUMENT;
    const weft_val v = weft_value_find_heir(plan->graph, name, strlen(name));
    return v.id ? describe(plan, v, ret_value) : WEFT_ERR_ARGUMENT;
}
