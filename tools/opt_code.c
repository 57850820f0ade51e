/* SPDX-License-Identifier: Apache-2.0 */
/* opt_code.c: weft opt --print=c: the C of every group that a plan computes by one kernel, at the sizes of the hints: a
 * file each, one behind the other. */
#include "codegen/emit.h"
#include "tools/explain.h"
#include "tools/tools.h"

static void print_step(const struct weft_plan *plan, const struct weft_step *step, struct weft_arena *arena,
                       struct weft_text *text)
{
    const struct weft_places places = weft_plan_places(plan);
    struct weft_bind bind = weft_plan_bind(plan, step, &places, plan->hint);
    struct weft_program *const program = weft_arena_new(arena, weft_step_bytes(step));
    step->kind->bind(&bind, program);
    const char *const why = weft_emit_refuse(step->code, program);
    weft_text_format(text, "/* %%%s", plan->label[step->out[step->outs - 1].id]);
    if (why) {
        weft_text_format(text, " stays on strips: the kernel %s */\n\n", why);
        return;
    }
    weft_text_add(text, " */\n");
    weft_emit_includes(program->cpu, text);
    weft_emit_kernel(step->code, program, text);
    weft_text_add(text, "\n");
}

void weft_opt_print_code(const struct weft_plan *plan, struct weft_arena *arena, struct weft_text *text)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].code)
            print_step(plan, &plan->step[i], arena, text);
    for (uint32_t i = 1; i < plan->controls; i++) /* bodies: as deep as they are nested */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            weft_opt_print_code(plan->control[i].body[k], arena, text);
}
