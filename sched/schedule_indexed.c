/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_indexed.c: ops whose elements are picked, or placed, by other operands. */
#include "sched/alias.h"
#include "sched/select.h"

static bool choose_scatter(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_is_update(s->graph, step->node))
        return weft_schedule_refuse(step, "its kernel stores, and combines f32, but no other type");
    return weft_schedule_move(s, step, kind);
}

const struct weft_scheduler weft_scheduler_indexed = {.name = "indexed", .choose = weft_schedule_move};
const struct weft_scheduler weft_scheduler_scatter = {.name = "scatter", .choose = choose_scatter};
