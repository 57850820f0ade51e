/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c: what a plan says of itself: notes right of `!`, remarks, and its inputs and outputs. */
#include "plan/plan.h"
#include "sched/epilogue.h"

#include <stdio.h>
#include <string.h>

/* `arena`: where the blocks of a body begin. What a body returns lies where the outer plan puts it. */
static void place_text(const struct weft_plan *plan, const struct weft_frame *frame, weft_val v, int64_t arena,
                       char *text, size_t bytes)
{
    const struct weft_storage *storage = &plan->storage[plan->home[v.id].storage];
    const long long inside = weft_dtype_bytes(storage->dtype, frame->offset[v.id]);
    switch ((enum weft_storage_kind)storage->kind) {
    case WEFT_IN_RETURN:
        snprintf(text, bytes, "%s%u+%lld", plan->return_layout ? "result" : "out", storage->index, inside);
        break;
    case WEFT_IN_ROW:
    case WEFT_IN_PARAM: snprintf(text, bytes, "in%u+%lld", storage->index, inside); break;
    case WEFT_IN_ARENA:
        snprintf(text, bytes, "arena+%lld",
                 (long long)(arena + frame->place[plan->home[v.id].storage]) + inside);
        break;
    case WEFT_IN_CONSTANT: snprintf(text, bytes, "const+%lld", inside); break;
    default: snprintf(text, bytes, "-"); break;
    }
}

static void annotate_bodies(struct weft_plan *plan, const struct weft_frame *frame, uint32_t number, int64_t arena)
{
    const struct weft_control *control = &plan->control[number];
    const struct weft_frame_control *sized = &frame->control[number];
    for (uint32_t i = 0; i < control->bodies; i++) {
        weft_plan_annotate(control->body[i], sized->body[i], arena + frame->place[control->room] + sized->arena);
        plan->kernel_units += control->body[i]->kernel_units;
        plan->unexpected_units += control->body[i]->unexpected_units;
        plan->has_records |= control->body[i]->has_records;
    }
}

int64_t weft_plan_copied_bytes(const struct weft_plan *plan, const struct weft_frame *frame, const bool *bound)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        if (!weft_step_has(step, WEFT_STEP_MOVES) || (step->bound && !bound[step->bound - 1]))
            continue;
        const struct weft_copy *copy = weft_frame_descriptor(frame, step);
        int64_t bytes = copy->bytes;
        for (int axis = 0; axis < copy->rank; axis++)
            bytes *= copy->extent[axis];
        all += bytes;
    }
    return all;
}

/* A concat whose operands are all in their places has no step. */
static void annotate_placed(struct weft_plan *plan, const struct weft_frame *frame, int64_t arena)
{
    static const char *const keys[] = {"at", "steps"};
    for (uint32_t i = 1; i < plan->units.count; i++) {
        const struct weft_unit *unit = &plan->units.unit[i];
        const weft_node n = unit->first;
        if (unit->nodes > 1 || weft_opcode_of(plan->graph, n) != WEFT_OP_concat || plan->graph->node[n.id].plan)
            continue;
        char place[40];
        place_text(plan, frame, weft_result(plan->graph, n, 0), arena, place, sizeof place);
        const char *const values[] = {place, "0"};
        weft_unit_label(plan->graph, unit, "weft_placed", 2, keys, values);
    }
}

const char *weft_plan_step_name(const struct weft_plan *plan, const struct weft_step *step)
{
    const struct weft_unit *unit = &plan->units.unit[step->unit];
    return plan->label[step->unit ? weft_unit_value(&plan->units, unit).id : step->out[0].id];
}

/* What was done when the plan was made. */
static void annotate_loaded(struct weft_plan *plan, const struct weft_frame *frame)
{
    for (uint32_t i = 1; i < plan->loads; i++) {
        const weft_val v = plan->load[i].out[0];
        const struct weft_storage *storage = &plan->storage[plan->home[v.id].storage];
        const char *kernel = weft_plan_load_kernel(plan, &plan->load[i]);
        char place[40];
        place_text(plan, frame, v, 0, place, sizeof place);
        const char *const keys[] = {"when", "at"}, *const values[] = {"load", storage->data ? place : "-"};
        weft_unit_label(plan->graph, weft_unit_of(&plan->units, plan->load[i].node), kernel, 2, keys, values);
        weft_add_remark_at(plan->graph, "plan", plan->label[v.id], "loaded", "by %s when the plan is made, %s", kernel,
                           storage->data ? weft_arena_format(plan->graph->arena, "%lld bytes",
                                           (long long)weft_plan_constant_bytes(plan, storage))
                                         : "but nothing reads it: weights are packed from the constant");
    }
}

/* "packed"; "kept": and as they are too; "static": by each execution. With the type of the pack's elements where that
 * is no f32. */
static const char *weights_word(const struct weft_plan *plan, const struct weft_step *step)
{
    const char *const word = plan->pack[step->pack].by_execution ? "static" : step->plain ? "kept" : "packed";
    const struct weft_packing *const packing = plan->pack[step->pack].packing;
    return packing->dtype == WEFT_K_F32
               ? word : weft_arena_format(plan->graph->arena, "%s_%s", word, weft_dtype_name((int)packing->dtype));
}

/* "%x" or "[%x %y]": what the last `steps` steps up to one read in another order than they write; NULL: nothing. Of a
 * relayout that goes without saying. */
static const char *turned_text(const struct weft_plan *plan, const struct weft_frame *frame,
                               const struct weft_step *last, uint32_t steps)
{
    struct weft_text text = {.context = plan->context, .arena = plan->graph->arena};
    uint32_t count = 0;
    weft_val turned[WEFT_MOST_TURNED];
    if (last->node.id && weft_opcode_of(plan->graph, last->node) == WEFT_OP_relayout && !last->code)
        return NULL;
    for (const struct weft_step *step = last + 1 - steps; step <= last; step++) {
        const uint32_t more = weft_plan_list_turned(plan, frame, step, turned);
        for (uint32_t i = 0; i < more && i < WEFT_MOST_TURNED; i++)
            weft_text_format(&text, "%s%%%s", count++ ? " " : "", plan->label[turned[i].id]);
    }
    return count == 0 ? NULL : count == 1 ? text.data : weft_arena_format(plan->graph->arena, "[%s]", text.data);
}

/* `value`: of "at", "parts", "steps", "turns"; one step is not worth saying, nor that nothing is turned. */
static void annotate_step(struct weft_plan *plan, const struct weft_step *step, const char *kernel,
                          const char *const *value)
{
    const char *keys[9] = {"at", "parts"}, *values[9] = {value[0], value[1]};
    uint32_t count = 2;
    const struct weft_alias *alias = &plan->alias.of[step->out[0].id];
    if (strcmp(value[2], "1") != 0) {
        keys[count] = "steps";
        values[count++] = value[2];
    }
    if (value[3]) {
        keys[count] = "turns";
        values[count++] = value[3];
    }
    if (step->pack) {
        keys[count] = "weights";
        values[count++] = weights_word(plan, step);
    }
    if (step->epilogue && step->epilogue->residual.id) { /* what the contraction's kernel adds itself */
        keys[count] = "residual";
        values[count++] = weft_arena_format(plan->graph->arena, "%%%s", plan->label[step->epilogue->residual.id]);
    }
    if (step->epilogue && step->epilogue->is_aside) { /* its results stand in memory of the step */
        keys[count] = "raw";
        values[count++] = "aside";
    }
    if (step->epilogue && step->epilogue->rows) { /* what follows it goes over whole rows */
        keys[count] = "epilogue";
        values[count++] = "rows";
    }
    if (alias->kind != WEFT_ALIAS_OWN) {
        keys[count] = "in";
        values[count++] = weft_alias_word(plan->graph, &plan->alias, alias->in);
    }
    weft_unit_label(plan->graph, &plan->units.unit[step->unit], kernel, count, keys, values);
}

/* What the text said of kernels and places: all of that is decided anew, also where there is nothing to run. */
static void drop_notes(struct weft_graph *g)
{
    weft_foreach_node(g, n) {
        g->node[n.id].plan = NULL;
        if (g->node[n.id].group)
            weft_label_group(g, n, NULL, 0, NULL, NULL);
    }
    g->end = NULL;
}

/* What is copied when all units are done belongs to none: the return line says into which result or parameter. */
static void annotate_end(struct weft_plan *plan, const struct weft_frame *frame, uint32_t first)
{
    struct weft_graph *g = plan->graph;
    const uint32_t count = plan->steps - first;
    const char **key = weft_new(&g->root->scratch, const char *, count);
    const char **value = weft_new(&g->root->scratch, const char *, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_step *step = &plan->step[first + i];
        const struct weft_storage *to = &plan->storage[step->to];
        uint32_t number = 0;
        while (number < g->returns && plan->return_storage[number] != step->to)
            number++;
        key[i] = number == g->returns      ? weft_arena_format(&g->root->scratch, "in%u", to->index)
                 : plan->return_layout     ? weft_arena_format(&g->root->scratch, "result%u", number)
                                           : weft_arena_format(&g->root->scratch, "out%u", number);
        value[i] = step->kind->kernel(weft_frame_descriptor(frame, step), step);
    }
    g->end = weft_make_note(g, NULL, count, key, value);
}

/* Weights that take memory twice. */
static void annotate_weights(struct weft_plan *plan, const struct weft_step *step)
{
    if (!step->pack || !step->plain || plan->pack[step->pack].by_execution) /* the caller has them in any case */
        return;
    const struct weft_storage *storage = &plan->storage[plan->home[step->in[1].id].storage];
    weft_add_remark_at(plan->graph, "plan", weft_plan_step_name(plan, step), "kept",
                       "%lld bytes of weights as they are, beside what is packed for the sizes of the hints: %s",
                       (long long)weft_plan_constant_bytes(plan, storage), step->plain);
}

/* What was expected when layouts were chosen, beside what runs: of another kernel a price is no prediction. */
static void annotate_expected(struct weft_plan *plan, const struct weft_frame *frame, const struct weft_step *step,
                           const char *kernel)
{
    if (step->control || step->custom || step->own)
        return;
    const char *const expected = weft_plan_expected(plan, step, weft_frame_descriptor(frame, step));
    plan->kernel_units++;
    plan->has_records |= plan->graph->node[step->node.id].choices != NULL;
    if (!expected)
        return;
    plan->unexpected_units++;
    if (expected[0])
        weft_add_remark_at(plan->graph, "plan", weft_plan_step_name(plan, step), "unpriced",
                           "when its layouts were chosen %s was expected, and %s computes it%s", expected, kernel,
                           strcmp(expected, kernel) == 0 ? ", with weights packed otherwise or other sums" : "");
}

/* A unit of several steps (concat, pad) is named after its last and says how many they are. Recursion is as deep as
 * bodies are nested. */
void weft_plan_annotate(struct weft_plan *plan, const struct weft_frame *frame, int64_t arena)
{
    drop_notes(plan->graph);
    for (uint32_t i = 0, steps = 1; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        if (step->control)
            annotate_bodies(plan, frame, step->control, arena);
        const char *kernel = step->kind->kernel(weft_frame_descriptor(frame, step), step);
        if (!step->unit) {
            weft_add_remark_at(plan->graph, "plan", weft_plan_step_name(plan, step), "copied", "by %s into %s", kernel,
                               plan->storage[step->to].kind == WEFT_IN_PARAM ? "the mutable parameter" : "the result");
            continue;
        }
        if (i + 1 < plan->steps && plan->step[i + 1].unit == step->unit) {
            steps++;
            continue;
        }
        char place[40], parts[16], count[16];
        place_text(plan, frame, step->out[0], arena, place, sizeof place);
        snprintf(parts, sizeof parts, "%d", frame->step[i].parts);
        snprintf(count, sizeof count, "%u", steps);
        annotate_step(plan, step, kernel,
                      (const char *[]){place, parts, count, turned_text(plan, frame, step, steps)});
        steps = 1;
        const bool reference = weft_step_has(step, WEFT_STEP_EVALUATES);
        weft_add_remark_at(plan->graph, "plan", weft_plan_step_name(plan, step), reference ? "fallback" : "chose",
                           "%s%s%s", kernel, reference ? ": " : "", reference ? step->why : "");
        annotate_weights(plan, step);
        annotate_expected(plan, frame, step, kernel);
    }
    uint32_t end = plan->steps;
    while (end > 0 && !plan->step[end - 1].unit)
        end--;
    annotate_end(plan, frame, end);
    annotate_placed(plan, frame, arena);
    annotate_loaded(plan, frame);
}

int weft_plan_print(const struct weft_plan *plan, char **ret_text)
{
    return plan ? weft_print(plan->graph, ret_text) : WEFT_ERR_ARGUMENT;
}

const struct weft_graph *weft_plan_graph(const struct weft_plan *plan) { return plan ? plan->graph : NULL; }

size_t weft_plan_inputs(const struct weft_plan *plan) { return plan ? plan->graph->params : 0; }

size_t weft_plan_outputs(const struct weft_plan *plan) { return plan ? plan->graph->returns : 0; }

static const char *port_text(const struct weft_graph *g, weft_val v)
{
    struct weft_text text = {.context = g->context, .arena = g->arena};
    weft_type_print(g->dims, weft_type_of(g, v), &text);
    if (g->value[v.id].layout) {
        const struct weft_layout layout = weft_layout_of(g, v);
        weft_layout_print(g->dims, &layout, &text);
    }
    return text.data;
}

void weft_plan_describe(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    plan->input_text = weft_new(g->arena, const char *, g->params);
    plan->output_text = weft_new(g->arena, const char *, g->returns);
    for (uint32_t i = 0; i < g->params; i++)
        plan->input_text[i] = port_text(g, g->param[i]);
    for (uint32_t i = 0; i < g->returns; i++)
        plan->output_text[i] = port_text(g, g->ret[i].value);
}

static int64_t known(weft_dim d) { return weft_dim_is_constant(d) ? weft_dim_value(d) : -1; }

/* The number of the parameter whose new value this is, or -1. */
static int32_t updated_by(const struct weft_graph *g, const struct weft_return_slot *result)
{
    for (uint32_t i = 0; result->mut.id && i < g->params; i++)
        if (g->param[i].id == result->mut.id)
            return (int32_t)i;
    return -1;
}

static int port(const struct weft_plan *plan, uint32_t number, struct weft_port facts, struct weft_port *ret_port)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_storage *storage = &plan->storage[number];
    const struct weft_type *type = weft_type_of(g, storage->value);
    facts.name = facts.name ? facts.name : "";
    facts.dtype = type->dtype;
    facts.rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        facts.extent[i] = known(type->extent[i]);
        facts.stride[i] = known(storage->stride[i]);
    }
    return weft_give_facts(ret_port, &facts, sizeof facts);
}

int weft_plan_input(const struct weft_plan *plan, size_t i, struct weft_port *ret_port)
{
    if (!plan || !ret_port || i >= plan->graph->params)
        return WEFT_ERR_ARGUMENT;
    const struct weft_graph *g = plan->graph;
    return port(plan, plan->param_storage[i],
                (struct weft_port){.name = plan->input_name[i], .text = plan->input_text[i],
                                   .is_mutable = g->value[g->param[i].id].is_mut, .updates = -1,
                                   .is_static = g->value[g->param[i].id].is_static}, ret_port);
}

int weft_plan_output(const struct weft_plan *plan, size_t i, struct weft_port *ret_port)
{
    if (!plan || !ret_port || i >= plan->graph->returns)
        return WEFT_ERR_ARGUMENT;
    return port(plan, plan->return_storage[i],
                (struct weft_port){.name = plan->output_name[i], .text = plan->output_text[i],
                                   .updates = updated_by(plan->graph, &plan->graph->ret[i])}, ret_port);
}
