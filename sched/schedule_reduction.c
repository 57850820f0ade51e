/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_reduction.c: ops along axes: sums, means, extremes; scans; arguments of extremes, orders. */
#include "sched/format.h"
#include "sched/select.h"

static bool choose_reduction(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    const struct weft_graph *g = s->graph;
    const int in = weft_type_of(g, weft_operand(g, step->node, 0))->dtype, out = weft_type_of(g, step->out[0])->dtype;
    if (!weft_reduce_supports(in, out, s->target->cpu))
        return weft_schedule_refuse(step, "no reduction kernel takes these element types");
    step->kind = kind;
    return true;
}

static int64_t read_reduction(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return weft_format_reduce_ps(f, operand, layout) + weft_format_across_ps(f, operand, layout, result);
}

static bool choose_along(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_step_is_along(s->graph, step->node))
        return weft_schedule_refuse(step, "no kernel along an axis takes this element type or length");
    step->kind = kind;
    return true;
}

const struct weft_scheduler weft_scheduler_reduction = {
    .name = "reduction", .choose = choose_reduction, .read_ps = read_reduction};
const struct weft_scheduler weft_scheduler_scan = {
    .name = "scan", .choose = choose_along, .read_ps = weft_format_scan_ps};
const struct weft_scheduler weft_scheduler_along = {.name = "along", .choose = choose_along};
