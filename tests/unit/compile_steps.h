/* SPDX-License-Identifier: Apache-2.0 */
/* compile_steps.h: groups of a plan as compiled C, where there is C for them; equal sources are compiled once. */
#ifndef WEFT_TEST_COMPILE_STEPS_H
#define WEFT_TEST_COMPILE_STEPS_H

#include "codegen/strips.h"
#include "compile_support.h"
#include "plan_support.h"

#include <xxhash.h>

static struct known {
    uint64_t source;
    weft_program_code *code;
} known[8192];
static unsigned knows;
static long compiled, not_compiled;

static inline weft_program_code *code_of(struct weft_context *context, const struct weft_form *form,
                                         const struct weft_program *program)
{
    struct weft_text text = {.context = context};
    char name[WEFT_EMIT_NAME];
    weft_emit_source(form, program, &text);
    weft_emit_name(form, name);
    const uint64_t source = XXH3_64bits(text.data, text.length);
    unsigned i = 0;
    while (i < knows && known[i].source != source)
        i++;
    assert_true(i < sizeof known / sizeof *known);
    if (i == knows)
        known[knows++] = (struct known){source, compile_code(text.data, name, program->cpu)};
    weft_text_close(&text);
    return known[i].code;
}

/* From the next run on, groups that there is C for run as that. */
static inline void compile_steps(const struct weft_execution *e)
{
    for (uint32_t i = 0; i < e->plan->steps; i++) {
        const struct weft_step *const step = &e->plan->step[i];
        const struct weft_form *const form = weft_step_form(step);
        struct weft_program *const program =
            form ? (struct weft_program *)step->kind->program(weft_frame_descriptor(e->frame, step)) : NULL;
        if (!program)
            continue;
        const bool takes = !weft_emit_refuse(form, program);
        *(takes ? &compiled : &not_compiled) += 1;
        if (takes)
            program->code = code_of(e->plan->context, form, program);
    }
}

#endif
