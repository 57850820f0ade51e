/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_pointwise.c: elementwise ops: a kernel for the op and its types, and what it takes besides operands. */
#include "codegen/pointwise.h"
#include "sched/format.h"
#include "sched/select.h"

static bool choose(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    step->strip = weft_pointwise_kernel(s->graph, step->node, s->target->cpu, s->arena);
    if (!step->strip)
        return weft_schedule_refuse(step, "no strip kernel takes these element types");
    step->kind = kind;
    weft_pointwise_params(s->graph, step->node, step->param);
    return true;
}

const struct weft_scheduler weft_scheduler_pointwise = {
    .name = "pointwise", .choose = choose, .write_ps = weft_format_walk_write_ps, .read_ps = weft_format_walk_read_ps};
