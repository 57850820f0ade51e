/* SPDX-License-Identifier: Apache-2.0 */
/* meetings.c: behind which steps all workers wait for each other.
 *
 * Steps between two meetings are a phase: a worker goes from its parts of one step to its parts of the next, so that
 * nobody stands about where parts are of different lengths, and all of a step's parts may run beside those of another.
 * A step begins a new phase if it reads or writes memory that one of the phase writes, or writes what one of it reads:
 * a value's storage as a whole, a place in the arena that another value had, the memory that parts share. Steps of one
 * part are done by worker 0 one after the other, and need no meeting between them.
 *
 *   %q = matmul %x, %a    parts=8  ┐
 *   %k = matmul %x, %b    parts=8  ┘ meeting: the next one reads both
 *   %s = matmul %q, %k    parts=8
 *
 * Nobody knows what functions of the caller's touch, or whether tensors that the caller gives for results overlap with
 * others: these are taken to be in each other's way. Bodies, whose sizes may change from trip to trip, meet behind each
 * step that is cut into parts or comes before one (weft_frame_meets). */
#include "plan/plan.h"

enum { MOST_STEPS = 16 };

struct places {
    const struct weft_plan *plan;
    const struct weft_frame *frame;
    bool guesses;           /* that memory of the caller's may overlap */
};

static bool is_callers(const struct weft_storage *storage)
{
    return storage->kind == WEFT_IN_PARAM || storage->kind == WEFT_IN_RETURN || storage->kind == WEFT_IN_ROW;
}

/* Might one write change what is in the other? */
static bool overlap(const struct places *p, uint32_t a, uint32_t b)
{
    const struct weft_storage *const x = &p->plan->storage[a], *const y = &p->plan->storage[b];
    if (a == b || (p->guesses && is_callers(x) && is_callers(y)))
        return true;
    return x->kind == WEFT_IN_ARENA && y->kind == WEFT_IN_ARENA &&
           p->frame->place[a] < p->frame->place[b] + p->frame->room[b] &&
           p->frame->place[b] < p->frame->place[a] + p->frame->room[a];
}

static uint32_t storage_of(const struct places *p, weft_val v) { return p->plan->home[v.id].storage; }

/* What the step writes: one storage for each result; what it reads: those of its arguments and of its node's operands,
 * which functions that ask for tensors may look at; a step of a concat has one of them to itself. */
static uint32_t written(const struct places *p, const struct weft_step *step, uint32_t i)
{
    return step->to ? step->to : storage_of(p, step->out[i]);
}

static uint32_t reads_of(const struct places *p, const struct weft_step *step)
{
    const bool asks = step->node.id && step->kind != &weft_step_concat;
    return 1 + step->ins + (asks ? p->plan->graph->node[step->node.id].operands : 0);
}

static uint32_t read(const struct places *p, const struct weft_step *step, uint32_t i)
{
    if (i == 0)
        return step->from;
    if (i <= step->ins)
        return storage_of(p, step->in[i - 1]);
    return storage_of(p, weft_operand(p->plan->graph, step->node, i - 1 - step->ins));
}

/* Does `step` write what `other` reads? */
static bool disturbs_reads(const struct places *p, const struct weft_step *step, const struct weft_step *other)
{
    for (uint32_t i = 0; i < step->outs; i++)
        for (uint32_t k = 0, reads = reads_of(p, other); k < reads; k++) {
            const uint32_t mine = written(p, step, i), theirs = read(p, other, k);
            if (theirs && overlap(p, mine, theirs))
                return true;
        }
    return false;
}

static bool write_alike(const struct places *p, const struct weft_step *step, const struct weft_step *other)
{
    for (uint32_t i = 0; i < step->outs; i++)
        for (uint32_t k = 0; k < other->outs; k++)
            if (overlap(p, written(p, step, i), written(p, other, k)))
                return true;
    return false;
}

static bool is_unknown(const struct weft_step *step) { return step->control || step->custom || step->own; }

/* Steps of one unit hand things on in ways of their own; but each operand of a concat goes to a place for itself. */
static bool are_beside(const struct weft_step *step, const struct weft_step *other)
{
    return step->kind == &weft_step_concat && other->kind == &weft_step_concat;
}

/* Does the second step have to wait for the first? */
static bool must_wait(const struct places *p, uint32_t first, uint32_t second)
{
    const struct weft_frame_step *const bound = p->frame->step;
    const struct weft_step *const one = &p->plan->step[first], *const other = &p->plan->step[second];
    if (bound[first].parts <= 1 && bound[second].parts <= 1)
        return false;
    if (one->unit && one->unit == other->unit) {
        const struct places known = {p->plan, p->frame, /* guesses= */ false}; /* the caller knows of one concat */
        return !are_beside(one, other) || disturbs_reads(&known, one, other) || disturbs_reads(&known, other, one);
    }
    return is_unknown(one) || is_unknown(other) || (bound[first].shares && bound[second].shares) ||
           write_alike(p, one, other) || disturbs_reads(p, one, other) || disturbs_reads(p, other, one);
}

void weft_frame_plan_meetings(const struct weft_plan *plan, struct weft_frame *frame)
{
    const struct places p = {plan, frame, /* guesses= */ true};
    int32_t parts = 0;      /* of the phase so far: its next step begins with the worker whose turn it would be */
    for (uint32_t i = 0, first = 0; i < plan->steps && i < plan->late; i++) {
        struct weft_frame_step *const bound = &frame->step[i];
        bool meets = i - first == MOST_STEPS;
        for (uint32_t k = first; k < i && !meets; k++)
            meets = must_wait(&p, k, i);
        if (i > 0)
            frame->step[i - 1].behind = meets ? WEFT_BEHIND_MEET : WEFT_BEHIND_GO_ON;
        if (meets)
            first = i, parts = 0;
        bound->first = bound->parts > 1 ? parts % plan->workers : 0;
        parts += bound->parts;
    }
}
