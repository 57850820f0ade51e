/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c: on a machine with more runnable threads than cores, is a run worth its workers? The contract: runtime.h.
 *
 * Workers meet at a barrier behind most steps, and one that waits for a core makes the others wait at each: a run of
 * 0.13 ms took 7 to 33 ms beside a program of four threads, and 0.22 ms by one worker. So where runs take several
 * times their least time, twice in a row, the next few are done by one worker. Then a run by all is tried again: as
 * long as it takes longer than one worker did, the number of runs by one doubles. If one worker was no better, runs
 * are longer for another reason, such as their data: what all took is their time from then on, and one worker is not
 * tried again for a while. */
#include "runtime/runtime.h"

enum { SLOW_TIMES = 4, SLACK_NS = 200000, FIRST_ALONE = 4, MOST_ALONE = 1024, FIRST_REST = 64, MOST_REST = 4096 };

int weft_pace_workers(const struct weft_pace *pace, int workers) { return pace->alone > 0 ? 1 : workers; }

static void tell_alone(struct weft_pace *p, int64_t ns)
{
    p->alone_ns += ns / p->next;
    if (--p->alone > 0 || p->alone_ns < p->last_ns)
        return;
    p->least_ns = p->last_ns;
    p->next = 0;
    p->rest = p->last_rest = p->last_rest == 0            ? FIRST_REST
                             : 2 * p->last_rest < MOST_REST ? 2 * p->last_rest : MOST_REST;
}

static void go_alone(struct weft_pace *p, int32_t runs)
{
    p->alone = p->next = runs < MOST_ALONE ? runs : MOST_ALONE;
    p->alone_ns = 0;
}

void weft_pace_tell(struct weft_pace *p, int workers, int64_t ns)
{
    if (workers == 1 && p->alone > 0) {
        tell_alone(p, ns);
        return;
    }
    const bool was_slow = p->slow, is_trial = p->next > 0;
    p->least_ns = p->least_ns == 0 || ns < p->least_ns ? ns : p->least_ns;
    p->last_ns = ns;
    p->rest -= p->rest > 0;
    p->slow = ns > SLOW_TIMES * p->least_ns + SLACK_NS;
    if (is_trial && ns > p->alone_ns)
        go_alone(p, 2 * p->next);
    else if (!is_trial && p->slow && was_slow && p->rest == 0)
        go_alone(p, FIRST_ALONE);
    else
        p->next = 0;
}
