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
    const unsigned long *calls; /* how often it was called, counted in its own object */
} known[8192];
static unsigned knows;
static long compiled, not_compiled;

/* The function `name` of the text, through one of that name with `counted_` before it, which counts its calls. */
static inline struct known compile_counted(struct weft_text *text, const char *name, uint32_t cpu, uint64_t source)
{
    char counted[sizeof "counted_" + WEFT_EMIT_NAME];
    snprintf(counted, sizeof counted, "counted_%s", name);
    weft_text_format(text,
                     "\nunsigned long calls;\n"
                     "void %s(const struct weft_program_tile *tile);\n"
                     "void %s(const struct weft_program_tile *tile)\n"
                     "{\n"
                     "    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);\n"
                     "    %s(tile);\n"
                     "}\n",
                     counted, counted, name);
    void *const object = compile_object(text->data, cpu);
    return (struct known){source, function_in(object, counted), dlsym(object, "calls")};
}

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
        known[knows++] = compile_counted(&text, name, program->cpu, source);
    weft_text_close(&text);
    return known[i].code;
}

/* From the next run on, groups that there is C for run as that: it is put where the plan's own tiers would put it.
 * How many. */
static inline long compile_steps(const struct weft_execution *e)
{
    const long before = compiled;
    for (uint32_t i = 0; i < e->plan->steps; i++) {
        const struct weft_step *const step = &e->plan->step[i];
        const struct weft_form *const form = weft_step_form(step);
        const struct weft_program *const program =
            form ? step->kind->program(weft_frame_descriptor(e->frame, step)) : NULL;
        if (!program)
            continue;
        const bool takes = !weft_emit_refuse(form, program);
        *(takes ? &compiled : &not_compiled) += 1;
        if (!takes)
            continue;
        assert_non_null(step->tier);
        step->tier->shape = program->shape;
        atomic_store(&step->tier->code, code_of(e->plan->context, form, program));
    }
    return compiled - before;
}

/* Calls of compiled code so far: a test that compiles and counts none has run something else. */
static inline unsigned long compiled_calls(void)
{
    unsigned long sum = 0;
    for (unsigned i = 0; i < knows; i++)
        sum += *known[i].calls;
    return sum;
}

#endif
