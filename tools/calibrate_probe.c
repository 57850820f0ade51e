/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_probe.c: the shared arrays of all jobs, and the few jobs that say what a machine reaches at this moment:
 * the lines of a roofline, beside which times of the same minute stand. */
#include "tools/calibrate.h"

#include <math.h>
#include <stdlib.h>

enum {
    APART = 1040, /* floats by which results are off a page: as in plans, they share no sets with operands */
    LEAST_RATE = 20, /* bytes or products a nanosecond that every machine reaches in its caches */
};

bool calibrate_open(struct calibrate *c)
{
    weft_arena_open(&c->arena, c->context);
    c->floats = calibrate_memory_floats(&c->cpu);
    c->in = weft_allocate(c->context, c->floats * sizeof *c->in);
    c->memory = weft_allocate(c->context, (c->floats + APART) * sizeof *c->out);
    if (!c->in || !c->memory)
        return false;
    c->out = c->memory + APART;
    for (size_t i = 0; i < c->floats; i++) {
        c->in[i] = (float)(i % 31) / 32 - 0.5f;
        c->out[i] = 0;
    }
    return true;
}

void calibrate_close(struct calibrate *c)
{
    weft_release(c->context, c->in, c->floats * sizeof *c->in);
    weft_release(c->context, c->memory, (c->floats + APART) * sizeof *c->out);
    weft_arena_close(&c->arena);
}

static void show_nothing(int round, int rounds)
{
}

static int probe(void *user)
{
    struct calibrate *const c = user;
    if (!calibrate_open(c))
        return WEFT_ERR_NOMEM;
    calibrate_add_products(c);
    calibrate_add_readings(c);
    for (int i = 0; i < c->jobs; i++) /* on a busy machine the first run would take a thread's start for work */
        c->job[i].least = (int)(c->sample_ns * LEAST_RATE / c->job[i].units);
    calibrate_time(c, show_nothing);
    return WEFT_OK;
}

/* The fastest sample of the best job of a price: a roof is what can be reached. */
static double rate_of(const struct calibrate *c, enum weft_price price, struct calibrate_rates *rates)
{
    double best = 0;
    for (int i = 0; i < c->jobs; i++) {
        const struct calibrate_job *const j = &c->job[i];
        if (j->price != price)
            continue;
        best = fmax(best, j->units / j->ns[0]); /* calibrate_time sorts them */
        rates->spread = fmax(rates->spread, j->spread);
    }
    return best;
}

int calibrate_probe(struct weft_context *context, struct calibrate_rates *ret_rates)
{
    struct calibrate *const c = calloc(1, sizeof *c);
    if (!c)
        return WEFT_ERR_NOMEM;
    *c = (struct calibrate){.context = context, .workers = weft_gang_size(context), .rounds = 5, .sample_ns = 3e6};
    weft_cpu_detect(&c->cpu);
    const int status = weft_protected(context, probe, c);
    *ret_rates = (struct calibrate_rates){0};
    if (status == WEFT_OK) {
        ret_rates->gflops = 2 * rate_of(c, WEFT_PRICE_product, ret_rates);
        ret_rates->memory = rate_of(c, WEFT_PRICE_read_memory, ret_rates);
        ret_rates->cache = rate_of(c, WEFT_PRICE_read_private, ret_rates);
    }
    calibrate_close(c);
    free(c);
    return status;
}
