/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.c: from strip programs to compiled code while a plan runs. The contract: tiers.h.
 *
 * Sources are written for the programs as they are at the hints; kernels of equal source, of which a network has one a
 * layer, are compiled once. A frame for other sizes has programs of the same shape, or interprets. */
#include "plan/tiers.h"

#include "codegen/compiler.h"
#include "codegen/emit.h"
#include "codegen/strips.h"

#include <pthread.h>
#include <string.h>

enum state { IDLE, RUNNING, DONE };

struct weft_tiers {
    pthread_mutex_t lock;      /* of `code` and `compiled`, and of who changes `state` */
    _Atomic int state;
    struct weft_code *code;
    struct weft_source *source;
    struct user {
        struct weft_tier *tier;
        uint32_t source;
        uint64_t shape;
    } *user;                   /* steps with a source */
    const char *prelude;
    uint32_t sources, users, source_capacity, user_capacity;
    int32_t groups, compiled;  /* steps that run programs; those of them with code */
    const char *why;           /* constant, or the code's */
    bool doubles;              /* does a source compute in double? */
};

/* --- sources, while the plan is made ------------------------------------------------------------------------------ */

/* Kernels of equal source are one. */
static uint32_t add_source(struct weft_plan *root, const struct weft_form *form, const struct weft_program *program)
{
    struct weft_tiers *const t = root->tiers;
    struct weft_arena *const arena = root->graph->arena;
    struct weft_text text = {.context = root->context, .arena = &root->graph->root->scratch};
    weft_emit_member(form, program, &text);
    for (uint32_t i = 0; i < t->sources; i++)
        if (strcmp(t->source[i].text, text.data) == 0)
            return i;
    char *const function = weft_arena_new(arena, WEFT_EMIT_NAME);
    weft_emit_name(form, function);
    t->source = weft_grow(arena, t->source, &t->source_capacity, t->sources + 1, sizeof *t->source);
    t->source[t->sources] = (struct weft_source){
        .text = weft_arena_copy(arena, text.data, text.length), .function = function, .cpu = program->cpu};
    t->doubles |= weft_emit_is_double(form);
    return t->sources++;
}

static void add_step(struct weft_plan *root, struct weft_step *step, const struct weft_program *program)
{
    struct weft_tiers *const t = root->tiers;
    const char *const why = weft_emit_refuse(step->code, program);
    t->groups++;
    if (why) {
        t->why = why;
        return;
    }
    step->tier = weft_new(root->graph->arena, struct weft_tier, 1);
    t->user = weft_grow(root->graph->arena, t->user, &t->user_capacity, t->users + 1, sizeof *t->user);
    t->user[t->users++] = (struct user){step->tier, add_source(root, step->code, program), weft_emit_shape(program)};
}

static void add_steps(struct weft_plan *root, struct weft_plan *plan, const struct weft_frame *frame)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].kind == &weft_step_strips)
            add_step(root, &plan->step[i], weft_frame_descriptor(frame, &plan->step[i]));
    for (uint32_t i = 1; i < plan->controls; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            add_steps(root, plan->control[i].body[k], frame->control[i].body[k]);
}

void weft_tiers_open(struct weft_plan *plan, const struct weft_frame *frame)
{
    struct weft_tiers *const t = weft_new(plan->graph->arena, struct weft_tiers, 1);
    if (pthread_mutex_init(&t->lock, NULL) != 0)
        return;
    plan->tiers = t;
    add_steps(plan, plan, frame);
    if (t->sources == 0)
        return;
    struct weft_text prelude = {.context = plan->context, .arena = plan->graph->arena};
    weft_emit_prelude(plan->target.cpu, t->doubles, &prelude);
    t->prelude = prelude.data;
}

void weft_tiers_close(struct weft_plan *plan)
{
    if (!plan->tiers)
        return;
    weft_code_drop(plan->tiers->code);
    pthread_mutex_destroy(&plan->tiers->lock);
    plan->tiers = NULL;
}

/* --- compilers ---------------------------------------------------------------------------------------------------- */

static int start_compilers(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    struct weft_compiler *compiler = NULL;
    int status = weft_compiler_open(plan->context, NULL, &compiler);
    if (status == WEFT_OK)
        status = weft_compiler_begin(compiler, &(struct weft_sources){.prelude = t->prelude, .source = t->source,
                                                                     .count = (int32_t)t->sources}, &t->code);
    weft_compiler_drop(compiler); /* the code holds it */
    return status;
}

/* --- taking over -------------------------------------------------------------------------------------------------- */

static void publish(struct weft_tiers *t)
{
    for (uint32_t i = 0; i < t->users; i++) {
        const struct user *user = &t->user[i];
        const weft_function function = weft_code_function(t->code, (int32_t)user->source);
        if (!function) {
            t->why = weft_code_reason(t->code, (int32_t)user->source);
            continue;
        }
        user->tier->shape = user->shape;
        atomic_store_explicit(&user->tier->code, (weft_program_code *)function, memory_order_release);
        t->compiled++;
    }
    atomic_store(&t->state, DONE);
}

/* With the lock held. */
static int begin(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    if (atomic_load(&t->state) != IDLE)
        return WEFT_OK;
    const int status = t->sources > 0 ? start_compilers(plan) : WEFT_OK;
    atomic_store(&t->state, status == WEFT_OK && t->sources > 0 ? RUNNING : DONE);
    return status;
}

int weft_tiers_begin(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    if (!t || atomic_load(&t->state) != IDLE)
        return WEFT_OK;
    pthread_mutex_lock(&t->lock);
    const int status = begin(plan);
    pthread_mutex_unlock(&t->lock);
    return status;
}

void weft_tiers_poll(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    if (!t || atomic_load_explicit(&t->state, memory_order_relaxed) != RUNNING || pthread_mutex_trylock(&t->lock) != 0)
        return;
    if (atomic_load(&t->state) == RUNNING && weft_code_poll(t->code))
        publish(t);
    pthread_mutex_unlock(&t->lock);
}

int weft_tiers_wait(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    if (!t)
        return WEFT_OK;
    pthread_mutex_lock(&t->lock);
    int status = begin(plan);
    if (status == WEFT_OK && atomic_load(&t->state) == RUNNING) {
        status = weft_code_wait(t->code);
        publish(t);
    }
    pthread_mutex_unlock(&t->lock);
    return status;
}

void weft_tiers_count(const struct weft_plan *plan, int32_t *ret_compiled, int32_t *ret_groups, const char **ret_why)
{
    struct weft_tiers *const t = plan->tiers;
    *ret_compiled = *ret_groups = 0;
    *ret_why = NULL;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    *ret_compiled = t->compiled;
    *ret_groups = t->groups;
    *ret_why = t->compiled < t->groups ? t->why : NULL;
    pthread_mutex_unlock(&t->lock);
}
