/* SPDX-License-Identifier: Apache-2.0 */
/* speed.c: weft-check --bench: everything that can do a case, in turns.
 *
 * A round takes one sample of each contestant: ours, the probes of what bounds the case, our plain loops, the peers.
 * Ratios are made within a round and their median is reported, so that a slow minute of the machine weighs on all
 * alike; absolute times are medians, too. Before its sample each contestant runs once untimed, which brings its
 * operands back into the caches that the one before it has emptied. A sample repeats short calls until the clock's own
 * cost is nothing.
 *
 * On a machine with other work: one thread is timed in its own processor time; of several, a sample in which one lost
 * its core is taken again, up to a few times.
 *
 * The members of a gang stay together for a sample, with a barrier after each call, as between the steps of a plan.
 * Libraries with threads of their own are called from outside of the gang. */
#include "runtime/runtime.h"
#include "check/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_ROUNDS = 101, LEAST_ROUNDS = 5, REF_ROUNDS = 3, TRIES = 6, CONTESTANTS = 12, OWN = 0 };
#define SAMPLE_NS      5e5
#define HOPELESS_NS    5e6 /* where there is other work, so long a sample is not left alone */
#define MOST_REF_WORK  2e8 /* flops, or bytes: a quarter of a second of plain loops */
#define MOST_FMA_WORK  1e8
#define LEAST_FMA_WORK 1e6
#define MEMORY_BOUND   16.0 /* flops for a byte, above which no memory is slow enough to matter */
#define MOSTLY_READ    0.125

/* --- one sample --------------------------------------------------------------------------------------------------- */

static double now_ns(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static clockid_t clock_of(int threads) { return threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC; }

struct sample {
    const struct weft_contestant *who;
    struct weft_barrier *barrier;
    clockid_t clock;
    int repeat, members;
    double ns;
};

static void member(void *arg, int i, int n)
{
    struct sample *const s = arg;
    const int parts = s->who->parts < n ? s->who->parts : n;
    weft_barrier_wait(s->barrier, i, n);
    const double begin = i == 0 ? now_ns(s->clock) : 0;
    for (int r = 0; r < s->repeat; r++) {
        if (i < parts)
            s->who->run(s->who->user, i, parts);
        weft_barrier_wait(s->barrier, i, n);
    }
    if (i == 0)
        s->ns = now_ns(s->clock) - begin, s->members = n;
}

/* ns per call, by the wall's clock; of one thread by its own, which stands still while others have its core. */
static double take_sample(struct weft_bench *bench, const struct weft_contestant *who, int threads, int repeat)
{
    struct sample s = {.who = who, .barrier = bench->context->barrier, .clock = clock_of(threads), .repeat = repeat};
    if (who->parts > 0) {
        const int members = who->parts < threads ? who->parts : threads; /* as a plan that has no use for more */
        weft_gang_run(bench->context, members, member, &s);
        if (s.members != members) {
            fprintf(stderr, "weft-check: %d threads instead of %d\n", s.members, members);
            exit(1);
        }
        return s.ns / repeat;
    }
    const double begin = now_ns(s.clock);
    for (int r = 0; r < repeat; r++)
        who->run(who->user, 0, 1);
    return (now_ns(s.clock) - begin) / repeat;
}

/* How often threads of this process had to give up their core. */
static long times_driven_off(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

static double take_quiet_sample(struct weft_bench *bench, const struct weft_contestant *who, int threads, int repeat)
{
    double ns = 0;
    for (int i = 0; i < TRIES; i++) {
        const long before = times_driven_off();
        ns = take_sample(bench, who, threads, repeat);
        if (threads == 1 || times_driven_off() == before || ns * repeat > HOPELESS_NS)
            break;
    }
    return ns;
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

/* Who takes part, and what their samples were. */
struct contest {
    struct weft_contestant who[CONTESTANTS];
    int column[CONTESTANTS];       /* of the report; -1 - probe: a probe; OWN: ours */
    double work[CONTESTANTS];      /* of probes */
    int repeat[CONTESTANTS], most[CONTESTANTS], count;
    double *ns[CONTESTANTS];       /* by round */
    bool wrong[CONTESTANTS];       /* computes something else than we do: has no ratio */
    int rounds;
};

enum { COLUMN_REF = 1, COLUMN_BEST = 2, COLUMN_PEERS = 3 };

static void enter(struct contest *contest, struct weft_contestant who, int column, double work, int most)
{
    const int i = contest->count++;
    contest->who[i] = who, contest->column[i] = column, contest->work[i] = work, contest->most[i] = most;
}

static void enter_probe(struct weft_bench *bench, struct contest *contest, enum speed_probe probe, double work,
                        int threads)
{
    struct weft_contestant who;
    double exact;
    speed_probe_open(bench, probe, bench->options->cpu, work, threads, &who, &exact);
    enter(contest, who, -1 - (int)probe, exact, MOST_ROUNDS);
}

static void enter_probes(struct weft_bench *bench, struct contest *contest, const struct weft_problem *problem,
                         int threads)
{
    const double bytes = problem->read + problem->written;
    if (problem->flops > 0)
        enter_probe(bench, contest, PROBE_FMA, fmin(fmax(problem->flops, LEAST_FMA_WORK), MOST_FMA_WORK), threads);
    if (problem->flops > MEMORY_BOUND * bytes)
        return;
    if (problem->written < MOSTLY_READ * bytes) {
        enter_probe(bench, contest, PROBE_READ, bytes, threads);
    } else {
        enter_probe(bench, contest, PROBE_COPY, bytes, threads);
        enter_probe(bench, contest, PROBE_STREAM, bytes, threads);
    }
}

static int column_of(const struct speed_report *report, const char *name)
{
    for (int i = COLUMN_PEERS; i < report->columns; i++)
        if (!strcmp(report->column[i], name))
            return i;
    return -1;
}

static bool enter_all(struct weft_bench *bench, struct contest *contest, const struct weft_problem *problem,
                      const struct speed_report *report, int threads)
{
    const struct weft_bench_family *const family = problem->c->family;
    struct weft_contestant who = {0};
    if (!family->ours(bench, problem, bench->options->cpu, threads, &who))
        return false;
    enter(contest, who, OWN, 0, MOST_ROUNDS);
    enter_probes(bench, contest, problem, threads);
    for (const struct weft_peer *peer = family->peers; peer && peer->name; peer++) {
        who = (struct weft_contestant){0};
        if (peer->open(bench, problem, threads, &who))
            enter(contest, who, column_of(report, peer->name), 0, MOST_ROUNDS);
    }
    if (fmax(problem->flops, problem->read + problem->written) > MOST_REF_WORK)
        return true;
    who = (struct weft_contestant){0};
    if (family->ours(bench, problem, 0, threads, &who))
        enter(contest, who, COLUMN_REF, 0, REF_ROUNDS);
    return true;
}

/* Does `out` hold what `want` does? Sums of floats may differ by their roundings: a thousandth of the largest is more
 * than any order of additions, and less than any mistake. */
static bool is_same(const struct weft_problem *problem, const void *want)
{
    if (problem->exact)
        return !memcmp(want, problem->out, problem->out_bytes);
    const float *const x = want, *const y = problem->out;
    const size_t n = problem->out_bytes / sizeof *x;
    double largest = 0, error = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(x[i]));
        error = isnan(x[i]) || isnan(y[i]) ? INFINITY : fmax(error, fabs((double)x[i] - y[i]));
    }
    return error <= 1e-3 * largest;
}

/* Runs everybody once, which shows how long a call takes and whether all compute the same: who does not, or NULL. */
static const char *rehearse(struct weft_bench *bench, struct contest *contest, const struct weft_problem *problem,
                            const struct speed_report *report, int threads)
{
    const char *other = NULL;
    void *const want = weft_bench_alloc(bench, problem->out_bytes);
    for (int i = 0; i < contest->count; i++) {
        memset(problem->out, 0, problem->out_bytes);
        take_sample(bench, &contest->who[i], threads, 1);
        if (i == OWN)
            memcpy(want, problem->out, problem->out_bytes);
        else if (contest->column[i] >= 0 && !contest->who[i].elsewhere && !is_same(problem, want))
            other = report->column[contest->column[i]], contest->wrong[i] = true;
        const double once = take_sample(bench, &contest->who[i], threads, 1);
        contest->repeat[i] = once > SAMPLE_NS ? 1 : (int)(SAMPLE_NS / (once + 1)) + 1;
    }
    return other;
}

static void compete(struct weft_bench *bench, struct contest *contest, int threads)
{
    const double end = now_ns(CLOCK_MONOTONIC) + 1e9 * bench->options->seconds;
    for (int i = 0; i < contest->count; i++)
        contest->ns[i] = weft_bench_alloc(bench, MOST_ROUNDS * sizeof *contest->ns[i]);
    while (contest->rounds < MOST_ROUNDS && (contest->rounds < LEAST_ROUNDS || now_ns(CLOCK_MONOTONIC) < end)) {
        for (int i = 0; i < contest->count; i++) {
            if (contest->rounds >= contest->most[i])
                continue;
            take_sample(bench, &contest->who[i], threads, 1);
            contest->ns[i][contest->rounds] = take_quiet_sample(bench, &contest->who[i], threads, contest->repeat[i]);
        }
        contest->rounds++;
    }
}

/* The least time of a round that the machine allows for the problem, and which probe says so. */
static double bound_ns(const struct contest *contest, const struct weft_problem *problem, int round,
                       const char **ret_limit)
{
    double arithmetic = 0, memory = INFINITY;
    const char *kind = "";
    for (int i = 1; i < contest->count; i++) {
        if (contest->column[i] >= 0)
            continue;
        const enum speed_probe probe = (enum speed_probe)(-1 - contest->column[i]);
        const double per_work = contest->ns[i][round] / contest->work[i];
        if (probe == PROBE_FMA)
            arithmetic = problem->flops * per_work;
        else
            memory = fmin(memory, (problem->read + problem->written) * per_work), kind = speed_probe_names[probe];
    }
    *ret_limit = isinf(memory) || arithmetic > memory ? speed_probe_names[PROBE_FMA] : kind;
    return isinf(memory) ? arithmetic : fmax(arithmetic, memory);
}

/* Of the best peer, whichever it was. */
static void find_best(const struct speed_report *report, double ratio[SPEED_RATIOS])
{
    for (int i = COLUMN_PEERS; i < report->columns; i++)
        ratio[COLUMN_BEST] = fmin(ratio[COLUMN_BEST], ratio[i]); /* passes over NAN */
}

static double least_of(const double *x, int n)
{
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        least = fmin(least, x[i]);
    return least;
}

static void evaluate(const struct contest *contest, const struct weft_problem *problem,
                     const struct speed_report *report, struct speed_result *ret)
{
    double x[MOST_ROUNDS], bound[MOST_ROUNDS];
    const double *const own = contest->ns[OWN];
    for (int i = 0; i < SPEED_RATIOS; i++)
        ret->ratio[i] = ret->least[i] = NAN;
    ret->least_ns = least_of(own, contest->rounds);
    for (int i = 1; i < contest->count; i++) {
        const int n = contest->rounds < contest->most[i] ? contest->rounds : contest->most[i];
        for (int r = 0; r < n; r++)
            x[r] = contest->ns[i][r] / own[r];
        if (contest->column[i] > 0 && !contest->wrong[i]) {
            ret->ratio[contest->column[i]] = speed_median(x, n);
            ret->least[contest->column[i]] = least_of(contest->ns[i], n) / ret->least_ns;
        }
    }
    find_best(report, ret->ratio);
    find_best(report, ret->least);
    for (int r = 0; r < contest->rounds; r++) {
        bound[r] = bound_ns(contest, problem, r, &ret->limit);
        x[r] = bound[r] / own[r];
    }
    ret->ratio[0] = speed_median(x, contest->rounds);
    ret->least[0] = least_of(bound, contest->rounds) / ret->least_ns;
    memcpy(x, own, (size_t)contest->rounds * sizeof *x);
    ret->ns = speed_median(x, contest->rounds); /* and puts them into order */
    ret->noise = (x[contest->rounds * 3 / 4] - x[contest->rounds / 4]) / ret->ns;
    const bool arithmetic = problem->flops > 0;
    ret->rate = (arithmetic ? problem->flops : problem->read + problem->written) / ret->ns;
    ret->unit = arithmetic ? "GFLOP/s" : "GB/s";
    ret->rounds = contest->rounds;
}

/* The plain loops are right; where they are not asked, whoever differs may be. */
static bool is_trusted(const struct contest *contest)
{
    bool others_wrong = false;
    for (int i = 0; i < contest->count; i++)
        if (contest->column[i] == COLUMN_REF)
            return !contest->wrong[i];
        else
            others_wrong |= contest->wrong[i];
    return !others_wrong;
}

/* False if our result is in doubt. */
static bool bench_threads(struct weft_bench *bench, const struct weft_case *c, int threads, struct speed_report *report)
{
    struct weft_problem problem;
    struct contest contest = {0};
    struct speed_result result = {.c = c, .threads = threads};
    bool good = true;
    bench->random = bench->options->seed;
    c->family->set(bench, c, &problem);
    if (enter_all(bench, &contest, &problem, report, threads)) {
        result.kernel = contest.who[OWN].name;
        result.differs = rehearse(bench, &contest, &problem, report, threads);
        compete(bench, &contest, threads);
        evaluate(&contest, &problem, report, &result);
        speed_report_add(report, &result);
        good = is_trusted(&contest);
    } else {
        speed_report_skip(report, c, "no kernel of ours does it");
    }
    for (int i = 0; i < contest.count; i++)
        if (contest.who[i].close)
            contest.who[i].close(contest.who[i].user);
    speed_free(bench);
    return good;
}

bool speed_case(struct weft_bench *bench, const struct weft_case *c, struct speed_report *report)
{
    bool good = true;
    for (int t = 0; t < bench->options->thread_counts; t++) {
        const int threads = bench->options->threads[t];
        if (threads <= weft_gang_size(bench->context))
            good &= bench_threads(bench, c, threads, report);
        else
            speed_report_skip(report, c, "this process has fewer threads");
    }
    return good;
}
