/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_other.c: what weft's own kernels have no family for: functions and bodies of the caller's, and what is left
 * to plain kernels or to the reference evaluator. */
#include "sched/format.h"
#include "sched/select.h"

bool weft_schedule_none(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    return weft_schedule_refuse(step, "the op has no kernel");
}

const struct weft_scheduler weft_scheduler_other = {.name = "other", .choose = weft_schedule_none};
const struct weft_scheduler weft_scheduler_custom = {
    .name = "custom", .choose = weft_schedule_none, .own_pins = true, .result_ps = weft_format_custom_ps,
    .read_ps = weft_format_custom_read_ps};
