/* SPDX-License-Identifier: Apache-2.0 */
/* access_patch.c: patches: cutting them at a number, and dividing a function by one.
 *
 * Both rest on digits that nest: with the digits of a function sorted by step, each step is at least as large as what
 * the smaller ones reach together, plus one. Indices begin like that, and every op keeps it. So a cut goes through one
 * value of the largest digit, below which everything is on one side and above which on the other, and goes on within
 * it: a patch becomes at most two for each digit.
 *
 * f / n and f % n are linear if the steps that n divides are taken by the quotient and all others together, with the
 * base, stay below n. Until they do, the largest of the others is refined: cut where f passes a multiple of n, or split
 * into two digits, the upper with a step that n divides. Where its step and n have little in common, it is split up
 * into the values that it has until they repeat.
 *
 * All this makes patches, and of what is cut apart not everything comes together again. So digits that are one in all
 * functions are made one before, and what a reshape numbers anew stays a number until somebody asks for its digits. */
#include "ir/access.h"

#include <string.h>

uint32_t weft_route_add(struct weft_route *route, const struct weft_patch *patch)
{
    if (route->count == WEFT_ROUTE_PATCHES) {
        route->lost = true;
        return route->count - 1;
    }
    const struct weft_patch copy = *patch; /* it may be of this route, and move */
    route->patch = weft_grow(route->arena, route->patch, &route->capacity, route->count + 1, sizeof *route->patch);
    route->patch[route->count] = copy;
    return route->count++;
}

void weft_route_remove(struct weft_route *route, uint32_t i)
{
    route->count--;
    memmove(&route->patch[i], &route->patch[i + 1], sizeof *route->patch * (route->count - i));
}

int weft_patch_digit(struct weft_patch *patch, int64_t length, uint8_t flags)
{
    if (patch->digits == WEFT_PATCH_DIGITS)
        return -1;
    patch->length[patch->digits] = length;
    patch->flags[patch->digits] = flags;
    return patch->digits++;
}

void weft_linear_add(struct weft_linear *to, const struct weft_linear *from, int64_t factor)
{
    to->base += factor * from->base;
    for (int j = 0; j < WEFT_PATCH_DIGITS; j++)
        to->step[j] += factor * from->step[j];
}

/* --- digits ------------------------------------------------------------------------------------------------------- */

/* Only the values from `first` on, `length` of them, are left of a digit; one alone is none. */
static void restrict_digit(struct weft_patch *p, int digit, int64_t first, int64_t length)
{
    for (int f = 0; f < WEFT_AT_COUNT; f++)
        p->of[f].base += first * p->of[f].step[digit];
    p->length[digit] = length;
    if (length > 1)
        return;
    const int last = --p->digits;
    p->length[digit] = p->length[last];
    p->flags[digit] = p->flags[last];
    p->length[last] = p->flags[last] = 0; /* what is not there is zero: equal patches have equal bytes */
    for (int f = 0; f < WEFT_AT_COUNT; f++) {
        p->of[f].step[digit] = p->of[f].step[last];
        p->of[f].step[last] = 0;
    }
}

/* A digit becomes two: its quotient by `inner`, which divides its length, and its rest. */
static bool split_digit(struct weft_patch *p, int digit, int64_t inner)
{
    const int64_t outer = p->length[digit] / inner;
    const int upper = weft_patch_digit(p, outer, p->flags[digit]);
    if (upper < 0)
        return false;
    p->length[digit] = inner;
    for (int f = 0; f < WEFT_AT_COUNT; f++)
        p->of[f].step[upper] = p->of[f].step[digit] * inner;
    if (outer == 1)
        restrict_digit(p, upper, 0, 1);
    return true;
}

/* The part of a function that a cut is about: digits with steps below `below` that `by` does not divide. */
struct part {
    int function;
    int64_t below, by;
};

static bool is_of(const struct weft_patch *p, const struct part *part, int digit)
{
    const int64_t step = p->of[part->function].step[digit];
    return step < part->below && step % part->by != 0;
}

/* The most that the part can be, and the digit with the largest step (-1: none). */
static int64_t most_of(const struct weft_patch *p, const struct part *part, int *ret_largest)
{
    const int64_t *step = p->of[part->function].step;
    int64_t most = 0;
    *ret_largest = -1;
    for (int j = 0; j < p->digits; j++) {
        if (!is_of(p, part, j))
            continue;
        most += (p->length[j] - 1) * step[j];
        if (*ret_largest < 0 || step[j] > step[*ret_largest])
            *ret_largest = j;
    }
    return most;
}

static int64_t between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* Patch i becomes patches for which the part is surely below `at`, or surely not. The first stays at i, if it is not
 * empty; the others go to the end. */
static void cut(struct weft_route *route, uint32_t i, struct part part, int64_t at)
{
    struct weft_patch middle = route->patch[i];
    bool placed = false;
    for (;;) {
        int digit;
        const int64_t most = most_of(&middle, &part, &digit);
        if (digit < 0 || most < at || at <= 0)
            break;
        const int64_t step = middle.of[part.function].step[digit], length = middle.length[digit];
        const int64_t lower = most - (length - 1) * step; /* of the other digits */
        const int64_t low = between(0, ceil_div(at - lower, step), length);
        const int64_t high = between(low, ceil_div(at, step), length);
        const int64_t range[2][2] = {{0, low}, {high, length - high}};
        for (int side = 0; side < 2; side++) {
            if (range[side][1] == 0)
                continue;
            struct weft_patch piece = middle;
            restrict_digit(&piece, digit, range[side][0], range[side][1]);
            if (placed)
                weft_route_add(route, &piece);
            else
                route->patch[i] = piece;
            placed = true;
        }
        if (high == low)
            return;
        if (high - low > 1) {
            route->lost = true; /* the digits do not nest */
            return;
        }
        restrict_digit(&middle, digit, low, 1);
        at -= low * step;
    }
    if (placed)
        weft_route_add(route, &middle);
    else
        route->patch[i] = middle;
}

/* --- what ops ask for --------------------------------------------------------------------------------------------- */

static void range_of(const struct weft_patch *p, int function, int64_t *ret_low, int64_t *ret_high)
{
    const struct weft_linear *f = &p->of[function];
    *ret_low = *ret_high = f->base;
    for (int j = 0; j < p->digits; j++)
        *ret_high += (p->length[j] - 1) * f->step[j];
}

void weft_route_keep(struct weft_route *route, uint32_t i, int function, int64_t low, int64_t high)
{
    const struct part all = {.function = function, .below = INT64_MAX, .by = INT64_MAX};
    while (i < route->count && !route->lost) {
        int64_t least, most;
        range_of(&route->patch[i], function, &least, &most);
        if (most < low || least >= high)
            weft_route_remove(route, i);
        else if (least < low)
            cut(route, i, all, low - route->patch[i].of[function].base);
        else if (most >= high)
            cut(route, i, all, high - route->patch[i].of[function].base);
        else
            i++;
    }
}

/* Patch i becomes two or more in which the digit has only a part of its values. */
static void take_apart(struct weft_route *route, uint32_t i, int digit, int64_t first)
{
    struct weft_patch behind = route->patch[i];
    restrict_digit(&behind, digit, first, behind.length[digit] - first);
    restrict_digit(&route->patch[i], digit, 0, first);
    weft_route_add(route, &behind);
}

/* A step that `by` divides comes out of so many values of a digit together. */
static void split_off(struct weft_route *route, uint32_t i, int digit, int64_t period)
{
    const int64_t length = route->patch[i].length[digit];
    if (length % period)
        take_apart(route, i, digit, length - length % period);
    else if (!split_digit(&route->patch[i], digit, period))
        route->lost = true;
}

/* One step towards a patch whose quotient and rest are linear; true if they are. */
static bool refine(struct weft_route *route, uint32_t i, int function, int64_t by)
{
    struct weft_patch *p = &route->patch[i];
    const struct part others = {.function = function, .below = INT64_MAX, .by = by};
    int digit;
    const int64_t base = p->of[function].base % by, most = base + most_of(p, &others, &digit);
    if (most < by)
        return true;
    if (most < 2 * by) {
        cut(route, i, others, by - base);
        return false;
    }
    const int64_t step = p->of[function].step[digit], length = p->length[digit];
    const int64_t period = by / weft_gcd(step, by);
    if (by % step != 0) {
        if (length > period)
            split_off(route, i, digit, period);
        else
            take_apart(route, i, digit, 1);
        return false;
    }
    const struct part lower = {.function = function, .below = step, .by = by};
    int unused;
    if (base % step + most_of(p, &lower, &unused) >= step)
        cut(route, i, lower, step - base % step); /* they carry into the digit */
    else if (base / step != 0)
        take_apart(route, i, digit, period - base / step);
    else
        split_off(route, i, digit, period);
    return false;
}

void weft_route_divide(struct weft_route *route, uint32_t i, int function, int64_t by, int quotient, int rest)
{
    for (; i < route->count; i++) {
        while (!route->lost && !refine(route, i, function, by))
            ;
        if (route->lost)
            return;
        struct weft_patch *p = &route->patch[i];
        const struct weft_linear f = p->of[function];
        p->of[quotient].base = f.base / by;
        p->of[rest].base = f.base % by;
        for (int j = 0; j < WEFT_PATCH_DIGITS; j++) {
            const bool whole = f.step[j] % by == 0;
            p->of[quotient].step[j] = whole ? f.step[j] / by : 0;
            p->of[rest].step[j] = whole ? 0 : f.step[j];
        }
    }
}

/* --- flat patches ------------------------------------------------------------------------------------------------- */

/* Does digit `upper` go on where `lower` ends, in all functions? */
static bool goes_on(const struct weft_patch *p, int lower, int upper)
{
    for (int f = 0; f < WEFT_AT_COUNT; f++)
        if (p->of[f].step[upper] != p->of[f].step[lower] * p->length[lower])
            return false;
    return p->flags[lower] == p->flags[upper];
}

static void merge_digits(struct weft_patch *p)
{
    for (int lower = 0; lower < p->digits; lower++) {
        for (int upper = 0; upper < p->digits; upper++) {
            if (upper == lower || !goes_on(p, lower, upper))
                continue;
            p->length[lower] *= p->length[upper];
            restrict_digit(p, upper, 0, 1);
            lower = -1; /* start over */
            break;
        }
    }
}

void weft_route_unflatten(struct weft_route *route, int rank, const int64_t *extent, const bool *joined)
{
    struct weft_route flat = {.arena = route->arena};
    for (uint32_t i = 0; i < route->count;) {
        if (!route->patch[i].flat) {
            i++;
            continue;
        }
        merge_digits(&route->patch[i]);
        route->patch[i].flat = false;
        weft_route_add(&flat, &route->patch[i]);
        weft_route_remove(route, i);
    }
    for (int axis = rank - 1, last; axis >= 0; axis = last - 1) {
        int64_t size = extent[axis];
        for (last = axis; last > 0 && joined && joined[last - 1]; last--)
            size *= extent[last - 1];
        weft_route_divide(&flat, 0, WEFT_AT_REST, size, WEFT_AT_REST, WEFT_AT_INDEX + axis);
    }
    route->lost |= flat.lost;
    for (uint32_t i = 0; i < flat.count; i++) {
        memset(&flat.patch[i].of[WEFT_AT_REST], 0, sizeof *flat.patch[i].of);
        weft_route_add(route, &flat.patch[i]);
    }
}
