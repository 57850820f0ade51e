/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_group.c: groups: which kernel computes several nodes as one, or why none does. */
#include "codegen/strips.h"
#include "sched/epilogue.h"
#include "sched/select.h"

#include <string.h>

/* What a kernel writes; a view lies nowhere. */
static const char *check_outs(const struct weft_graph *g, const struct weft_unit *unit)
{
    if (unit->outs == 0)
        return "its results have no reader";
    for (uint32_t i = 0; i < unit->outs; i++)
        if (weft_is_view(g, weft_def(g, unit->out[i])))
            return "others read a view that it makes";
    return NULL;
}

static uint32_t list_nodes(const struct weft_graph *g, const struct weft_unit *unit, weft_node *node)
{
    uint32_t count = 0;
    for (weft_node n = unit->first; count < unit->nodes; n = g->node[n.id].next)
        node[count++] = n;
    return count;
}

bool weft_select_fitting(const struct weft_scheduling *s, struct weft_members *members,
                         const struct weft_group_fit *group, uint32_t outs, const weft_val *out, struct weft_step *step)
{
    const struct weft_fit *const fit = &group->fit;
    if (group->head.id)
        return weft_epilogue_choose(s, members, group, outs, out, step);
    *step = (struct weft_step){.node = fit->node[0], .out = out, .outs = outs, .kind = &weft_step_strips};
    step->code = weft_lower(members, fit, s->arena);
    step->why = weft_strips_refuse(step->code);
    weft_val *const in = weft_new(s->arena, weft_val, step->code->arrays);
    for (uint32_t i = 0; i < step->code->arrays; i++)
        if (step->code->array[i].use == WEFT_FORM_IN)
            in[step->ins++] = step->code->array[i].value;
    step->in = in;
    return !step->why;
}

bool weft_select_group(const struct weft_scheduling *s, const struct weft_unit *unit, struct weft_step *step)
{
    struct weft_members *const members = weft_members_open(s->graph, s->target->cpu, s->arena);
    weft_node *const node = weft_new(s->arena, weft_node, unit->nodes);
    struct weft_group_fit fit;
    weft_val where;
    step->why = check_outs(s->graph, unit);
    const char *const misfit =
        step->why ? NULL : weft_group_fit_find(members, node, list_nodes(s->graph, unit, node), &fit, &where);
    if (misfit)
        step->why = weft_arena_format(s->arena, "%s %s", weft_value_text(s->graph, where), misfit);
    if (step->why)
        return false;
    weft_val *const out = weft_new(s->arena, weft_val, unit->outs); /* the step may outlive the units */
    memcpy(out, unit->out, unit->outs * sizeof *out);
    return weft_select_fitting(s, members, &fit, unit->outs, out, step);
}

/* --- a node by itself --------------------------------------------------------------------------------------------- */

static bool choose_chunks(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    struct weft_members *const members = weft_members_open(s->graph, s->target->cpu, s->arena);
    weft_node *const node = weft_new(s->arena, weft_node, 1);
    struct weft_group_fit fit;
    weft_val where;
    *node = step->node;
    const char *const why = weft_group_fit_find(members, node, 1, &fit, &where);
    if (why)
        return weft_schedule_refuse(step, why);
    const struct weft_step before = *step;
    if (!weft_select_fitting(s, members, &fit, before.outs, before.out, step)) {
        const char *const refused = step->why;
        *step = before;
        return weft_schedule_refuse(step, refused);
    }
    step->kind = kind;
    return true;
}

const struct weft_scheduler weft_scheduler_chunks = {.name = "chunks", .choose = choose_chunks};
