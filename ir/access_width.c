/* SPDX-License-Identifier: Apache-2.0 */
/* access_width.c: how long the blocks of a route are.
 *
 * A run is a part of the walk that goes through neighbours in memory: place - walk, its shift, stays the same. Blocks
 * of k are good where no run begins or ends within one, and where the place at a multiple of k is a multiple of k too,
 * which is to say that the shift is. So the k that are good are the common divisors of a few numbers: the length of the
 * walk, the steps at which runs begin and end, and their shifts. The greatest one is good, and all its divisors are.
 *
 * The steps at which the runs of a patch begin are base + Σ step · digit, with the digits that do not go on from one
 * neighbour to the next; their greatest common divisor is that of base and steps. What steers a hidden digit ends a
 * run.
 *
 * Patches that were cut apart may yet be one run in memory: they are put together again before. Two that only differ in
 * the length of a digit, and go on in each other, are joined; so are two whose runs do. Not done: runs that go on in
 * part of the runs of another patch. Then the blocks are too short, never too long. */
#include "ir/access.h"

#include <stdlib.h>
#include <string.h>

/* A digit of runs: what the walk, the place and the number do from one run to the next. */
struct stride {
    int64_t walk, place, number, length;
    int64_t flags;
};

/* The runs of a patch. */
struct runs {
    int64_t first, place, number, length;
    int strides;
    struct stride stride[WEFT_PATCH_DIGITS];
};

static int by_walk(const void *first, const void *second)
{
    const struct stride *a = first, *b = second;
    if (a->walk != b->walk)
        return a->walk < b->walk ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static void remove_stride(struct runs *r, int at)
{
    r->strides--;
    memmove(&r->stride[at], &r->stride[at + 1], sizeof *r->stride * (size_t)(r->strides - at));
}

/* Digits that go on where a run ends lengthen it. */
static void lengthen(struct runs *r)
{
    for (int i = 0; i < r->strides; i++) {
        const struct stride *s = &r->stride[i];
        if (s->walk != r->length || s->place != r->length || s->number != r->length || s->flags)
            continue;
        r->length *= s->length;
        remove_stride(r, i);
        i = -1;
    }
}

static struct runs runs_of(const struct weft_patch *p)
{
    const struct weft_linear *walk = &p->of[WEFT_AT_WALK], *place = &p->of[WEFT_AT_PLACE];
    const struct weft_linear *number = &p->of[WEFT_AT_NUMBER];
    struct runs r = {.first = walk->base, .place = place->base, .number = number->base, .length = 1};
    for (int j = 0; j < p->digits; j++)
        r.stride[r.strides++] =
            (struct stride){walk->step[j], place->step[j], number->step[j], p->length[j], p->flags[j]};
    if (r.strides > 1)
        qsort(r.stride, (size_t)r.strides, sizeof *r.stride, by_walk);
    lengthen(&r);
    return r;
}

/* --- putting together --------------------------------------------------------------------------------------------- */

static bool same_stride(const struct stride *a, const struct stride *b, bool length)
{
    return a->walk == b->walk && a->place == b->place && a->number == b->number && a->flags == b->flags &&
           (!length || a->length == b->length);
}

/* Is b where a is after so many steps of a stride? */
static bool follows(const struct runs *a, const struct runs *b, const struct stride *s, int64_t steps)
{
    return b->first == a->first + steps * s->walk && b->place == a->place + steps * s->place &&
           b->number == a->number + steps * s->number;
}

/* Adds b to a, if it goes on where a ends. */
static bool join(struct runs *a, const struct runs *b)
{
    int i = 0, k = 0, at = -1; /* at: the one stride of a that b does not have, or not as long */
    int64_t more = 1;
    for (; i < a->strides || k < b->strides; i++, k++) {
        if (i < a->strides && k < b->strides && same_stride(&a->stride[i], &b->stride[k], /* length= */ true))
            continue;
        if (at >= 0 || i == a->strides)
            return false;
        at = i;
        if (k < b->strides && same_stride(&a->stride[i], &b->stride[k], /* length= */ false))
            more = b->stride[k].length;
        else
            k--;
    }
    if (at >= 0) {
        if (a->length != b->length || !follows(a, b, &a->stride[at], a->stride[at].length))
            return false;
        a->stride[at].length += more;
        return true;
    }
    const struct stride neighbour = {.walk = 1, .place = 1, .number = 1};
    if (!follows(a, b, &neighbour, a->length))
        return false;
    a->length += b->length;
    lengthen(a);
    return true;
}

/* The same where b is the one with the longer stride: then it is a that comes first within it. */
static bool join_before(struct runs *a, const struct runs *b)
{
    for (int i = 0; i < b->strides; i++) {
        struct runs shorter = *b;
        remove_stride(&shorter, i);
        if (shorter.strides != a->strides || shorter.length != a->length ||
            !follows(a, b, &b->stride[i], 1))
            continue;
        bool same = true;
        for (int k = 0; same && k < a->strides; k++)
            same = same_stride(&a->stride[k], &shorter.stride[k], /* length= */ true);
        if (!same)
            continue;
        const struct runs first = *a;
        *a = *b;
        a->first = first.first;
        a->place = first.place;
        a->number = first.number;
        a->stride[i].length++;
        return true;
    }
    return false;
}

/* Joins two of them, if any; the last one takes the place of the second. */
static bool join_any(struct runs *runs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++)
            if (i != k && (join(&runs[i], &runs[k]) || join_before(&runs[i], &runs[k]))) {
                runs[k] = runs[count - 1];
                return true;
            }
    return false;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

void weft_route_blocks(const struct weft_route *route, int64_t total, int64_t *ret_place, int64_t *ret_number)
{
    struct runs *runs = weft_new(route->arena, struct runs, route->count + 1);
    for (uint32_t i = 0; i < route->count; i++)
        runs[i] = runs_of(&route->patch[i]);
    uint32_t count = route->count;
    while (join_any(runs, count))
        count--;
    int64_t block = total, place = 0, number = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct runs *r = &runs[i];
        block = weft_gcd(weft_gcd(block, r->first), r->length);
        place = weft_gcd(place, r->place - r->first);
        number = weft_gcd(number, r->number - r->first);
        for (int k = 0; k < r->strides; k++) {
            block = weft_gcd(block, r->stride[k].walk);
            place = weft_gcd(place, r->stride[k].place - r->stride[k].walk);
            number = weft_gcd(number, r->stride[k].number - r->stride[k].walk);
        }
    }
    *ret_place = weft_gcd(block, place);
    *ret_number = weft_gcd(block, number);
}
