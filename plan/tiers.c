/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.c: from strip programs to compiled code while a plan runs. The contract: tiers.h.
 *
 * Sources are written when compilers start, for the programs as they are at the hints: a plan that nobody compiles
 * costs nothing. Kernels of equal source, of which a network has one a layer, are compiled once. A frame for other
 * sizes has programs of the same shape, or interprets. */
#include "plan/tiers.h"

#include "codegen/compiler.h"
#include "codegen/emit.h"
#include "codegen/strips.h"

#include <pthread.h>
#include <string.h>

enum state { IDLE, RUNNING, DONE };

struct weft_tiers {
    pthread_mutex_t lock;      /* of all but `state`, `groups` and `compiled` */
    _Atomic int state;
    _Atomic int32_t compiled;  /* steps that have code */
    int32_t groups;            /* steps that run programs */
    struct weft_code *code;
    struct user {
        struct weft_tier *tier;
        uint32_t source;
        uint64_t shape;
    } *user;                   /* steps with a source; room for all groups */
    uint32_t users;
    const char *why;           /* constant, or the code's */
};

/* Steps of a plan and of the bodies in it that run programs get a tier; how many. */
static int32_t open_steps(struct weft_plan *root, struct weft_plan *plan)
{
    int32_t count = 0;
    for (uint32_t i = 0; i < plan->steps; i++)
        if (weft_step_form(&plan->step[i]) || weft_step_makes_form(&plan->step[i])) {
            plan->step[i].tier = weft_new(root->graph->arena, struct weft_tier, 2);
            count += (weft_step_form(&plan->step[i]) != NULL) + (weft_step_makes_form(&plan->step[i]) != NULL);
        }
    for (uint32_t i = 1; i < plan->controls; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            count += open_steps(root, plan->control[i].body[k]);
    return count;
}

void weft_tiers_open(struct weft_plan *plan)
{
    struct weft_tiers *const t = weft_new(plan->graph->arena, struct weft_tiers, 1);
    t->groups = open_steps(plan, plan);
    t->user = weft_new(plan->graph->arena, struct user, (uint32_t)t->groups);
    if (t->groups > 0 && pthread_mutex_init(&t->lock, NULL) == 0)
        plan->tiers = t;
}

void weft_tiers_close(struct weft_plan *plan)
{
    if (!plan->tiers)
        return;
    weft_code_drop(plan->tiers->code);
    pthread_mutex_destroy(&plan->tiers->lock);
    plan->tiers = NULL;
}

/* --- sources ------------------------------------------------------------------------------------------------------ */

/* Written with a context and memory of their own, since the plan's context may be at work on another thread. */
struct writing {
    const struct weft_plan *plan;
    const struct weft_frame *frame;
    struct weft_arena *arena;
    struct weft_source *source;
    uint32_t sources, capacity;
    bool doubles;              /* does a source compute in double? */
    struct weft_text prelude;
};

/* Kernels of equal source are one. */
static uint32_t add_source(struct writing *w, const struct weft_form *form, const struct weft_program *program)
{
    struct weft_text text = {.context = w->arena->context, .arena = w->arena};
    weft_emit_member(form, program, &text);
    for (uint32_t i = 0; i < w->sources; i++)
        if (strcmp(w->source[i].text, text.data) == 0)
            return i;
    char *const function = weft_arena_new(w->arena, WEFT_EMIT_NAME);
    weft_emit_name(form, function);
    w->source = weft_grow(w->arena, w->source, &w->capacity, w->sources + 1, sizeof *w->source);
    w->source[w->sources] = (struct weft_source){.text = text.data, .function = function, .cpu = program->cpu};
    w->doubles |= weft_emit_is_double(form);
    return w->sources++;
}

/* A program that a step runs, if it does. */
static void add_program(struct writing *w, const struct weft_form *form, const struct weft_program *program,
                        struct weft_tier *tier)
{
    struct weft_tiers *const t = w->plan->tiers;
    const char *const why = program ? weft_emit_refuse(form, program) : NULL;
    if (why)
        t->why = why;
    else if (program)
        t->user[t->users++] = (struct user){tier, add_source(w, form, program), program->shape};
}

static void add_steps(struct writing *w, const struct weft_plan *plan, const struct weft_frame *frame)
{
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        const struct weft_form *const form = weft_step_form(step), *const makes = weft_step_makes_form(step);
        if (form && step->kind->program)
            add_program(w, form, step->kind->program(weft_frame_descriptor(frame, step)), step->tier);
        if (makes && step->kind->makes)
            add_program(w, makes, step->kind->makes(weft_frame_descriptor(frame, step)), step->tier + 1);
    }
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            add_steps(w, plan->control[i].body[k], frame->control[i].body[k]);
}

static int write_sources(void *arg)
{
    struct writing *const w = arg;
    add_steps(w, w->plan, w->frame);
    w->prelude = (struct weft_text){.context = w->arena->context, .arena = w->arena};
    weft_emit_prelude(w->plan->target.cpu, w->doubles, &w->prelude);
    return WEFT_OK;
}

/* --- compilers ---------------------------------------------------------------------------------------------------- */

static int start_compilers(const struct weft_plan *plan, const struct writing *w)
{
    struct weft_compiler *compiler = NULL;
    int status = weft_compiler_open(plan->context, NULL, &compiler);
    if (status == WEFT_OK)
        status = weft_compiler_begin(compiler, &(struct weft_sources){.prelude = w->prelude.data, .source = w->source,
                                                                     .count = (int32_t)w->sources},
                                     &plan->tiers->code);
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
        atomic_fetch_add(&t->compiled, 1);
    }
    atomic_store(&t->state, DONE);
}

/* With the lock held. */
static int begin(const struct weft_plan *plan)
{
    struct weft_tiers *const t = plan->tiers;
    struct weft_context own = {.allocator = plan->context->allocator};
    own.errors.context = &own;
    struct weft_arena arena;
    if (atomic_load(&t->state) != IDLE)
        return WEFT_OK;
    weft_arena_open(&arena, &own);
    struct weft_frame *const frame = weft_frame_new(plan, plan->hint, NULL);
    struct writing w = {.plan = plan, .frame = frame, .arena = &arena};
    int status = frame ? weft_protected(&own, write_sources, &w) : WEFT_ERR_NOMEM;
    if (status == WEFT_OK && w.sources > 0)
        status = start_compilers(plan, &w); /* copies all texts */
    weft_frame_free(plan, frame);
    weft_arena_close(&arena);
    weft_text_close(&own.errors);
    atomic_store(&t->state, status == WEFT_OK && w.sources > 0 ? RUNNING : DONE);
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
    *ret_compiled = atomic_load(&t->compiled);
    *ret_groups = t->groups;
    if (*ret_compiled == t->groups || pthread_mutex_trylock(&t->lock) != 0)
        return; /* somebody waits: there is no reason yet */
    *ret_why = t->why;
    pthread_mutex_unlock(&t->lock);
}
