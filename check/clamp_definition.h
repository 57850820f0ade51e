/* SPDX-License-Identifier: Apache-2.0 */
/* clamp_definition.h: the clamp that contractions end with, as their checks draw and define it. */
#ifndef WEFT_CLAMP_DEFINITION_H
#define WEFT_CLAMP_DEFINITION_H

#include "check/check.h"
#include "kernels/kernels.h"

#include <math.h>

/* None, a relu, bounds on both sides, or one of them; bounds that cross. */
static inline struct weft_clamp clamp_drawn(struct weft_check *check)
{
    switch (weft_check_between(check, 0, 7)) {
    case 0: return (struct weft_clamp){true, 0, INFINITY, 0.0f};
    case 1: return (struct weft_clamp){true, 0, 6, -0.0f};
    case 2: return (struct weft_clamp){true, -INFINITY, (float)weft_check_between(check, -2, 2), -0.0f};
    case 3: return (struct weft_clamp){true, (float)weft_check_between(check, -2, 2), 0.5f, -0.0f};
    default: return (struct weft_clamp){.given = false};
    }
}

static inline float clamp_defined(const struct weft_clamp *clamp, float x)
{
    if (!clamp->given)
        return x;
    const float above = x < clamp->low ? clamp->low : x;
    return (above > clamp->high ? clamp->high : above) + clamp->zero;
}

#endif
