/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_time.c: jobs timed in turns.
 *
 * What else a machine does comes and goes within seconds; so all jobs are timed once, then all again, and each has the
 * median of its rounds. A sample is as many runs as take the time of one; the gang forks once a sample, and only jobs
 * whose price has a barrier in it meet after each run. */
#include "tools/calibrate.h"
#include "tools/tools.h"

#include <stdlib.h>

enum { MOST_REPEATS = 1 << 20 };

struct calibrate_job *calibrate_add(struct calibrate *c, enum weft_price price, enum calibrate_how how, double units)
{
    weft_assert(c->jobs < CALIBRATE_JOBS);
    struct calibrate_job *const j = &c->job[c->jobs++];
    *j = (struct calibrate_job){.price = price, .how = how, .units = units, .beside = -1, .in = c->in, .out = c->out,
                                .ns = weft_new(&c->arena, double, c->rounds)};
    return j;
}

struct sample {
    const struct calibrate *calibrate;
    const struct calibrate_job *job;
    size_t scratch;          /* bytes a worker */
    int repeats;
};

static void work(void *user, int worker, int workers)
{
    struct sample *const s = user;
    const struct calibrate_job *const j = s->job;
    void *const scratch = (char *)s->calibrate->scratch + s->scratch * (size_t)worker;
    for (int r = 0; r < s->repeats; r++) {
        for (int part = worker; part < j->parts; part += workers)
            j->run(j, scratch, part, j->parts);
        if (j->meets)
            weft_barrier_wait(s->calibrate->context->barrier, worker, workers);
    }
}

/* Nanoseconds a run. */
static double take_sample(struct calibrate *c, const struct calibrate_job *job, size_t scratch, int repeats)
{
    struct sample sample = {.calibrate = c, .job = job, .scratch = scratch, .repeats = repeats};
    const double before = weft_tool_now_ms();
    weft_gang_run(c->context, c->workers, work, &sample);
    return (weft_tool_now_ms() - before) * 1e6 / repeats;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void calibrate_time(struct calibrate *c, void (*progress)(int round, int rounds))
{
    size_t scratch = 64;
    for (int i = 0; i < c->jobs; i++)
        scratch = c->job[i].scratch > scratch ? c->job[i].scratch : scratch;
    scratch = (scratch + 63) / 64 * 64;
    c->scratch = weft_arena_new(&c->arena, scratch * (size_t)c->workers + 64);
    c->scratch = (char *)c->scratch + (-(uintptr_t)c->scratch & 63);
    for (int round = -1; round < c->rounds; round++) { /* the round before the first finds out how many runs */
        progress(round + 1, c->rounds + 1);
        for (int i = 0; i < c->jobs; i++) {
            struct calibrate_job *const j = &c->job[i];
            const double ns = take_sample(c, j, scratch, j->repeats ? 1 + j->repeats / 8 : 2); /* fills the caches */
            if (round >= 0)
                j->ns[round] = take_sample(c, j, scratch, j->repeats);
            else
                j->repeats = ns * MOST_REPEATS > c->sample_ns ? 1 + (int)(c->sample_ns / ns) : MOST_REPEATS;
            j->repeats = j->repeats < j->least ? j->least : j->repeats;
        }
    }
    for (int i = 0; i < c->jobs; i++) {
        struct calibrate_job *const j = &c->job[i];
        qsort(j->ns, (size_t)c->rounds, sizeof *j->ns, by_number);
        j->median = j->ns[c->rounds / 2];
        j->spread = (j->ns[c->rounds * 3 / 4] - j->ns[c->rounds / 4]) / j->median;
    }
}
