/* SPDX-License-Identifier: Apache-2.0 */
/* choices.c: the sequence of numbers that a graph is made of. What was drawn is kept reduced, so that a smaller number
 * in the sequence is an earlier alternative. */
#include "tests/property/random_graph.h"

#include <stdlib.h>

unsigned weft_choose(struct weft_draws *choices, unsigned n)
{
    if (choices->replay)
        return choices->next < choices->count ? choices->value[choices->next++] % n : 0;
    choices->state = choices->state * 6364136223846793005u + 1442695040888963407u;
    const unsigned chosen = (unsigned)(choices->state >> 33) % n;
    if (choices->count == choices->capacity) {
        const size_t capacity = choices->capacity ? 2 * choices->capacity : 256;
        uint32_t *grown = realloc(choices->value, capacity * sizeof *grown);
        if (!grown)
            return 0;
        choices->value = grown;
        choices->capacity = capacity;
    }
    choices->value[choices->count++] = chosen;
    choices->next = choices->count;
    return chosen;
}

void weft_choices_seed(struct weft_draws *choices, uint64_t seed)
{
    *choices = (struct weft_draws){.state = (seed + 1) * 0x9E3779B97F4A7C15u};
    for (int i = 0; i < 3; i++)
        choices->state = choices->state * 6364136223846793005u + 1442695040888963407u;
}

void weft_choices_free(struct weft_draws *choices)
{
    free(choices->value);
    *choices = (struct weft_draws){0};
}
