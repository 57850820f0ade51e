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
    const unsigned long *calls; /* how many there were, counted in its own object */
} known[8192];
static unsigned knows;
static long compiled, several, not_compiled; /* several: of the compiled ones, with rows of several lines */

/* The function `name` of the text, called through another one, counted_<name>, which counts the calls. */
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
    const struct known k = {source, function_in(object, counted), dlsym(object, "calls")};
    assert_non_null(k.calls);
    return k;
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

/* The program of a step, as it is bound now, or NULL. */
static inline const struct weft_program *program_of(const struct weft_execution *e, uint32_t step)
{
    const struct weft_step *const s = &e->plan->step[step];
    return weft_step_form(s) ? s->kind->program(weft_frame_descriptor(e->frame, s)) : NULL;
}

static inline const struct known *known_of(weft_program_code *code)
{
    unsigned i = 0;
    while (i < knows && known[i].code != code)
        i++;
    return i < knows ? &known[i] : NULL;
}

/* A run in which groups that there is C for run as that: their code is put where the plan's own tiers would put it.
 * Fails if a group that has points did not call it, equal ones of the plan counted as one. */
static inline void run_compiled(struct weft_execution *e)
{
    const struct weft_plan *const plan = e->plan;
    static unsigned long before[sizeof known / sizeof *known];
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_program *const program = program_of(e, i);
        if (!program)
            continue;
        const struct weft_form *const form = weft_step_form(&plan->step[i]);
        const bool takes = !weft_emit_refuse(form, program);
        *(takes ? &compiled : &not_compiled) += 1;
        several += takes && program->along_inner && program->inner_rank > 1;
        if (!takes)
            continue;
        struct weft_tier *const tier = plan->step[i].tier;
        assert_non_null(tier);
        tier->shape = program->shape;
        atomic_store(&tier->code, code_of(plan->context, form, program));
    }
    for (unsigned i = 0; i < knows; i++)
        before[i] = *known[i].calls;
    assert_int_equal(weft_run(e), WEFT_OK);
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_program *const program = program_of(e, i);
        const struct known *const k = program ? known_of(weft_tier_code(plan->step[i].tier, program)) : NULL;
        assert_true(!k || program->points == 0 || *k->calls > before[k - known]);
    }
}

#endif
