/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_other.c: what weft's own kernels have no family for: functions and bodies of the caller's, and what is left
 * to plain kernels or to the reference evaluator. */
#include "sched/format.h"
#include "sched/select.h"

bool weft_schedule_none(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    return weft_schedule_refuse(step, "the op has no kernel");
}

static int64_t write_custom(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return weft_format_custom_ps(f, (struct weft_pin){.node = n, .result = true}, layout);
}

static int64_t read_custom(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return weft_format_custom_ps(f, operand, layout);
}

const struct weft_scheduler weft_scheduler_other = {.name = "other", .choose = weft_schedule_none};
const struct weft_scheduler weft_scheduler_custom = {
    .name = "custom", .choose = weft_schedule_none, .own_pins = true, .write_ps = write_custom, .read_ps = read_custom};
