/* SPDX-License-Identifier: Apache-2.0 */
/* shrink.c: a failing sequence of choices made smaller: pieces left out, the longest first, then single choices made
 * zero, halved, one less, until nothing of all that fails any more or enough was tried: so many
 * sequences, or a minute. */
#include "tests/property/random_graph.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_TRIALS = 3000, MOST_SECONDS = 60 };

struct shrinking {
    struct weft_draws *best;
    bool (*fails)(void *user, struct weft_draws *choices);
    void *user;
    int trials;
    time_t end;
};

/* Takes the sequence if it still fails. */
static bool try_sequence(struct shrinking *s, const uint32_t *value, size_t count)
{
    if (s->trials++ >= MOST_TRIALS || time(NULL) > s->end)
        return false;
    struct weft_draws trial = {.replay = true, .count = count, .capacity = count + 1};
    trial.value = malloc((count + 1) * sizeof *value);
    if (!trial.value)
        return false;
    memcpy(trial.value, value, count * sizeof *value);
    const bool fails = s->fails(s->user, &trial);
    if (fails) {
        memcpy(s->best->value, value, count * sizeof *value);
        s->best->count = count;
    }
    free(trial.value);
    return fails;
}

static bool leave_out(struct shrinking *s, uint32_t *copy)
{
    bool smaller = false;
    for (size_t length = s->best->count / 2; length > 0; length = length > 8 ? length / 2 : length - 1)
        for (size_t at = s->best->count; at >= length && at > 0;) {
            at = at > length ? at - length : 0;
            if (at + length > s->best->count)
                continue;
            memcpy(copy, s->best->value, at * sizeof *copy);
            memcpy(copy + at, s->best->value + at + length, (s->best->count - at - length) * sizeof *copy);
            smaller = try_sequence(s, copy, s->best->count - length) || smaller;
            if (at == 0)
                break;
        }
    return smaller;
}

static bool lower(struct shrinking *s, uint32_t *copy)
{
    bool smaller = false;
    for (size_t i = 0; i < s->best->count; i++) {
        const uint32_t now = s->best->value[i], targets[] = {0, now / 2, now - 1};
        for (int k = 0; k < 3 && now; k++) {
            if (k && targets[k] == targets[k - 1])
                continue;
            memcpy(copy, s->best->value, s->best->count * sizeof *copy);
            copy[i] = targets[k];
            if (try_sequence(s, copy, s->best->count)) {
                smaller = true;
                break;
            }
        }
    }
    return smaller;
}

void weft_shrink(struct weft_draws *choices, bool (*fails)(void *user, struct weft_draws *choices), void *user)
{
    struct shrinking s = {.best = choices, .fails = fails, .user = user, .end = time(NULL) + MOST_SECONDS};
    uint32_t *copy = malloc((choices->count + 1) * sizeof *copy);
    bool smaller = copy;
    while (smaller && s.trials < MOST_TRIALS && time(NULL) <= s.end) {
        smaller = leave_out(&s, copy);
        smaller = lower(&s, copy) || smaller;
    }
    free(copy);
}
