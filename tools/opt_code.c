/* SPDX-License-Identifier: Apache-2.0 */
/* opt_code.c: weft opt --print=c: the C of every group that a plan computes by one kernel, at the sizes of the hints: a
 * file each, one behind the other. Of a contraction's group also what its kernel does in registers before that. */
#include "codegen/emit.h"
#include "sched/epilogue.h"
#include "tools/explain.h"
#include "tools/tools.h"

static void print_registers(const struct weft_plan *plan, const struct weft_step *step, struct weft_text *text)
{
    const struct weft_epilogue *const e = step->epilogue;
    if (!e || (!e->bias.id && !e->residual.id && !e->clamp.given))
        return;
    weft_text_add(text, ", in registers:");
    if (e->bias.id)
        weft_text_format(text, " + bias %%%s", plan->label[e->bias.id]);
    if (e->residual.id)
        weft_text_format(text, " + residual %%%s", plan->label[e->residual.id]);
    if (e->clamp.given)
        weft_text_format(text, " within %g to %g", (double)e->clamp.low, (double)e->clamp.high);
}

static void print_step(const struct weft_plan *plan, const struct weft_step *step, struct weft_arena *arena,
                       struct weft_text *text)
{
    const struct weft_places places = weft_plan_places(plan);
    const struct weft_select select = weft_plan_select(plan, &places, arena);
    weft_text_format(text, "/* %%%s", plan->label[step->out[step->outs - 1].id]);
    print_registers(plan, step, text);
    if (!weft_step_form(step)) {
        weft_text_add(text, " */\n\n");
        return;
    }
    struct weft_bind bind = weft_select_bind(&select, step, plan->hint);
    bind.packed = step->pack ? plan->pack[step->pack].packing : NULL;
    void *const descriptor = weft_arena_new(arena, weft_step_bytes(step));
    step->kind->bind(&bind, descriptor);
    const struct weft_form *const form = weft_step_form(step);
    const struct weft_program *const program = step->kind->program(descriptor);
    const char *const why = weft_emit_refuse(form, program);
    if (why) {
        weft_text_format(text, "; stays on strips: the kernel %s */\n\n", why);
        return;
    }
    weft_text_add(text, " */\n");
    weft_emit_includes(program->cpu, text);
    weft_emit_kernel(form, program, text);
    weft_text_add(text, "\n");
}

bool weft_opt_step_code(const struct weft_plan *plan, const struct weft_step *step, struct weft_arena *arena,
                        struct weft_text *text)
{
    if (!weft_step_form(step) && !step->epilogue)
        return false;
    print_step(plan, step, arena, text);
    return true;
}

void weft_opt_print_code(const struct weft_plan *plan, struct weft_arena *arena, struct weft_text *text)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        (void)weft_opt_step_code(plan, &plan->step[i], arena, text);
    for (uint32_t i = 1; i < plan->controls; i++) /* bodies: as deep as they are nested */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            weft_opt_print_code(plan->control[i].body[k], arena, text);
}
