/* SPDX-License-Identifier: Apache-2.0 */
/* step_strips.c: steps that compute a group by a strip program (codegen/strips.h). What they read are the arrays of the
 * step's form. */
#include "codegen/emit.h"
#include "codegen/strips.h"
#include "sched/step.h"

static size_t bytes_of(const struct weft_step *step) { return weft_strips_bytes(step->code); }

static void bind_strips(struct weft_bind *bind, void *descriptor)
{
    const struct weft_form *form = bind->step->code;
    struct weft_tensor tensor[WEFT_PROGRAM_ARGUMENTS];
    for (uint32_t i = 0; i < form->arrays; i++)
        tensor[i] = weft_bind_tensor(bind, form->array[i].value);
    struct weft_program *program =
        weft_strips_make(form, weft_bind_cpu(bind), bind->symbols, tensor, bind->workers, descriptor);
    weft_program_stream(program, bind->target->l3);
    program->shape = weft_emit_refuse(form, program) ? 0 : weft_emit_shape(program);
    bind->parts = program->parts;
    bind->scratch = program->scratch;
    bind->shared = program->shared;
}

/* Results that may go past the caches: those that lie over nothing that is read. */
static uint64_t apart_of(const struct weft_form *form, void *const *argument)
{
    uint64_t apart = 0;
    for (uint32_t i = 0; i < form->arrays; i++) {
        bool is_apart = form->array[i].use == WEFT_FORM_OUT;
        for (uint32_t k = 0; k < form->arrays && is_apart; k++)
            is_apart = k == i || argument[k] != argument[i];
        apart |= (uint64_t)is_apart << i;
    }
    return apart;
}

static void run_strips(const void *descriptor, struct weft_call *call)
{
    const struct weft_form *form = call->step->code;
    void *argument[WEFT_PROGRAM_ARGUMENTS];
    for (uint32_t i = 0; i < form->arrays; i++)
        argument[i] = call->tensor(call, form->array[i].value).data;
    struct weft_program program = *(const struct weft_program *)descriptor;
    program.code = weft_tier_code(call->step->tier, &program);
    program.past &= program.past ? apart_of(form, argument) : 0;
    weft_program_run(&program, argument, call->scratch, call->shared, call->part, call->parts);
}

static const struct weft_program *program_strips(const void *descriptor) { return descriptor; }

static const char *name_strips(const void *descriptor, const struct weft_step *step)
{
    (void)descriptor;
    return step->code->name;
}

static uint32_t cpu_strips(const void *descriptor)
{
    const struct weft_program *program = descriptor;
    uint32_t cpu = 0;
    for (int i = 0; i < program->ops; i++)
        cpu |= program->op[i].kernel ? program->op[i].kernel->cpu
               : program->op[i].guards ? weft_look_cpu(program->cpu)
               : program->op[i].scans  ? weft_scan_cpu(&program->scan[program->op[i].fold].scan)
                                       : weft_fold_find(program->cpu)->cpu;
    return cpu;
}

enum { CALLS_SHARE = 4 }; /* of the overhead of interpreting, what compiled code has of it: one in so many */

static void account_strips(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_program *program = descriptor;
    (void)bind;
    const bool goes_along = program->folds > 0 || program->scans > 0;
    const uint8_t arithmetic = !goes_along            ? WEFT_ARITHMETIC_OP
                               : program->along_inner ? WEFT_ARITHMETIC_SUMS : WEFT_ARITHMETIC_COLUMNS;
    const bool compiles = program->shape != 0; /* what is left then are tiles and short lines */
    const double calls_ns = weft_program_overhead_ns(program) / (compiles ? CALLS_SHARE : 1);
    *ret = (struct weft_account){.overhead_ns = calls_ns + weft_program_arithmetic_ns(program) +
                                                weft_program_scan_ns(program),
                                 .signature = {.arithmetic = arithmetic}};
}

const struct weft_step_kind weft_step_strips = {
    .name = "strips", .traits = WEFT_STEP_STRIDED, .bytes = bytes_of, .bind = bind_strips, .run = run_strips,
    .kernel = name_strips, .cpu = cpu_strips, .account = account_strips, .program = program_strips};
