/* SPDX-License-Identifier: Apache-2.0 */
/* range.h: which numbers can occur.
 *
 *   %m: bool[N] = lt %a, %b                  0 to 1
 *   %c: i64[N]  = cast %m                    0 to 1
 *   %s: i64[]   = sum %c axes=[0]            0 to N, which is at most 2^31 - 1
 *   %x: f32[4]                               anything: not whole */
#ifndef WEFT_RANGE_H
#define WEFT_RANGE_H

#include "ir/ir.h"

struct weft_range {
    bool whole;          /* each element is an integer from low to high: no NaN, no infinity; else nothing is known */
    bool negative_zero;  /* it may be -0 */
    int64_t low, high;
};
/* Of all values of this moment, in scratch memory. They hold as long as no value changes, whatever reads it. */
struct weft_ranges {
    const struct weft_graph *graph;
    struct weft_range *range;    /* by value id */
    uint32_t values;
};
struct weft_ranges weft_find_ranges(struct weft_graph *graph);
/* What was found; of a younger value what its type says. */
struct weft_range weft_range_of(const struct weft_ranges *ranges, weft_val value);
/* Does the type hold each integer between low and high as it is? */
bool weft_dtype_holds(int dtype, int64_t low, int64_t high);

#endif
