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
    const struct weft_select select = weft_plan_select(plan, &places, arena);
    struct weft_bind bind = weft_select_bind(&select, step, plan->hint);
    bind.packed = step->pack ? plan->pack[step->pack].packing : NULL;
    void *const descriptor = weft_arena_new(arena, weft_step_bytes(step));
    step->kind->bind(&bind, descriptor);
    const struct weft_form *const form = weft_step_form(step);
    const struct weft_program *const program = step->kind->program(descriptor);
    const char *const why = weft_emit_refuse(form, program);
    weft_text_format(text, "/* %%%s", plan->label[step->out[step->outs - 1].id]);
    if (why) {
        weft_text_format(text, " stays on strips: the kernel %s */\n\n", why);
        return;
    }
    weft_text_add(text, " */\n");
    weft_emit_includes(program->cpu, text);
    weft_emit_kernel(form, program, text);
    weft_text_add(text, "\n");
}

void weft_opt_print_code(const struct weft_plan *plan, struct weft_arena *arena, struct weft_text *text)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        if (weft_step_form(&plan->step[i]))
            print_step(plan, &plan->step[i], arena, text);
    for (uint32_t i = 1; i < plan->controls; i++) /* bodies: as deep as they are nested */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            weft_opt_print_code(plan->control[i].body[k], arena, text);
}
