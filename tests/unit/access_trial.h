/* SPDX-License-Identifier: Apache-2.0 */
/* access_trial.h: random graphs whose author knows where each element comes from, and what a walk needs, counted
 * element by element: what test_access.c holds answers to. */
#ifndef WEFT_TEST_ACCESS_TRIAL_H
#define WEFT_TEST_ACCESS_TRIAL_H

#include "builder_support.h"

#include <stdio.h>

#define MOST_ELEMENTS 1024
#define MOST_VALUES 12
#define MOST_PATHS 24

/* A value, and where its elements come from: of each path, for each element, the element of value 0 or -1. */
struct known {
    weft_val id;
    int rank;
    int64_t extent[WEFT_MAX_RANK], stride[WEFT_MAX_RANK], dense[WEFT_MAX_RANK];
    int order[WEFT_MAX_RANK];
    int paths;
    int32_t from[MOST_PATHS][MOST_ELEMENTS];
};

struct trial {
    struct builder builder;
    struct known known[MOST_VALUES];
    int values;
    weft_val zero;
    bool guesses; /* something is read by indices: the drawn ones may allow more than all do */
};

static uint64_t seed;
static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static int64_t elements_of(const struct known *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->extent[i];
    return n;
}

static void unravel(const struct known *v, int64_t n, int64_t *index)
{
    for (int i = v->rank - 1; i >= 0; i--) {
        index[i] = n % v->extent[i];
        n /= v->extent[i];
    }
}

static int64_t ravel(const struct known *v, const int64_t *index)
{
    int64_t n = 0;
    for (int i = 0; i < v->rank; i++)
        n = n * v->extent[i] + index[i];
    return n;
}

/* Adds a node; its elements come from those of `from` that `source` names, by element (-1: none), on all its paths. */
static bool append(struct trial *t, const char *op, const weft_val *operand, size_t operands,
                   const struct weft_attribute *attribute, size_t attributes, struct known *v, bool stated)
{
    weft_dim extent[WEFT_MAX_RANK];
    for (int i = 0; i < v->rank; i++)
        extent[i] = weft_extent(v->extent[i]);
    const struct weft_op made = {.size = sizeof made, .op = op, .operand = operand, .operands = operands,
                                 .attribute = attribute, .attributes = attributes, .dtype = stated ? WEFT_F32 : 0,
                                 .rank = stated ? v->rank : 0, .extent = extent};
    if (weft_append(t->builder.graph, &made, &v->id) != WEFT_OK)
        fail_msg("%s: %s", op, weft_last_error(t->builder.context));
    t->values++;
    return true;
}

static void follow(struct known *to, const struct known *from, const int32_t *source)
{
    for (int p = 0; p < from->paths && to->paths < MOST_PATHS; p++, to->paths++)
        for (int64_t n = 0; n < elements_of(to); n++)
            to->from[to->paths][n] = source[n] < 0 ? -1 : from->from[p][source[n]];
}

static int32_t source[MOST_ELEMENTS];

static bool add_reshape(struct trial *t, const struct known *x, struct known *y)
{
    int64_t rest = elements_of(x);
    y->rank = 0;
    while (rest > 1 && y->rank < 4) {
        int64_t factor = 1 + draw(rest);
        while (rest % factor)
            factor--;
        y->extent[y->rank++] = factor;
        rest /= factor;
    }
    if (rest > 1)
        y->extent[y->rank++] = rest;
    for (int64_t n = 0; n < elements_of(y); n++)
        source[n] = (int32_t)n;
    follow(y, x, source);
    return append(t, "reshape", &x->id, 1, NULL, 0, y, true);
}

static bool add_transpose(struct trial *t, const struct known *x, struct known *y)
{
    weft_dim perm[WEFT_MAX_RANK];
    int axis[WEFT_MAX_RANK];
    y->rank = x->rank;
    for (int i = 0; i < x->rank; i++)
        axis[i] = i;
    for (int i = x->rank - 1; i > 0; i--) {
        const int64_t other = draw(i + 1);
        const int moved = axis[i];
        axis[i] = axis[other];
        axis[other] = moved;
    }
    for (int i = 0; i < x->rank; i++) {
        perm[i] = weft_extent(axis[i]);
        y->extent[i] = x->extent[axis[i]];
    }
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
        unravel(y, n, to);
        for (int i = 0; i < x->rank; i++)
            from[axis[i]] = to[i];
        source[n] = (int32_t)ravel(x, from);
    }
    follow(y, x, source);
    const struct weft_attribute attribute = {.name = "perm", .integers = perm, .count = (size_t)x->rank};
    return append(t, "transpose", &x->id, 1, &attribute, 1, y, false);
}

static bool add_slice(struct trial *t, const struct known *x, struct known *y)
{
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    int64_t first[WEFT_MAX_RANK], by[WEFT_MAX_RANK];
    y->rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        first[i] = draw(3) ? 0 : draw(x->extent[i]);
        by[i] = draw(6) ? 1 : 1 + draw(3);
        const int64_t last = draw(3) ? x->extent[i] : first[i] + 1 + draw(x->extent[i] - first[i]);
        y->extent[i] = (last - first[i] + by[i] - 1) / by[i];
        start[i] = weft_extent(first[i]);
        end[i] = weft_extent(last);
        step[i] = weft_extent(by[i]);
    }
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t index[WEFT_MAX_RANK];
        unravel(y, n, index);
        for (int i = 0; i < x->rank; i++)
            index[i] = first[i] + by[i] * index[i];
        source[n] = (int32_t)ravel(x, index);
    }
    follow(y, x, source);
    const struct weft_attribute attribute[] = {{.name = "start", .integers = start, .count = (size_t)x->rank},
                                               {.name = "end", .integers = end, .count = (size_t)x->rank},
                                               {.name = "step", .integers = step, .count = (size_t)x->rank}};
    return append(t, "slice", &x->id, 1, attribute, 3, y, false);
}

static bool add_pad(struct trial *t, const struct known *x, struct known *y)
{
    weft_dim pad[2 * WEFT_MAX_RANK];
    int64_t before[WEFT_MAX_RANK];
    y->rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        before[i] = draw(2) ? 0 : draw(6) - 1;
        int64_t after = draw(2) ? 0 : draw(6) - 1;
        if (x->extent[i] + before[i] + after < 1)
            after = 1 - x->extent[i] - before[i];
        y->extent[i] = x->extent[i] + before[i] + after;
        pad[i] = weft_extent(before[i]);
        pad[x->rank + i] = weft_extent(after);
    }
    if (elements_of(y) > MOST_ELEMENTS)
        return false;
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t index[WEFT_MAX_RANK];
        bool inside = true;
        unravel(y, n, index);
        for (int i = 0; i < x->rank; i++) {
            index[i] -= before[i];
            inside = inside && index[i] >= 0 && index[i] < x->extent[i];
        }
        source[n] = inside ? (int32_t)ravel(x, index) : -1;
    }
    follow(y, x, source);
    const weft_val operand[] = {x->id, t->zero};
    const struct weft_attribute attribute = {.name = "pad", .integers = pad, .count = 2 * (size_t)x->rank};
    return append(t, "pad", operand, 2, &attribute, 1, y, false);
}

/* Along two axes only the elements at equal indices are left, as the last axis. */
static bool add_diagonal(struct trial *t, const struct known *x, struct known *y)
{
    if (x->rank < 2)
        return false;
    const int first = (int)draw(x->rank - 1), second = first + 1 + (int)draw(x->rank - 1 - first);
    const weft_dim axes[] = {weft_extent(first), weft_extent(second)};
    y->rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != first && i != second)
            y->extent[y->rank++] = x->extent[i];
    y->extent[y->rank++] = x->extent[first] < x->extent[second] ? x->extent[first] : x->extent[second];
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
        unravel(y, n, to);
        for (int i = 0, at = 0; i < x->rank; i++)
            from[i] = i == first || i == second ? to[y->rank - 1] : to[at++];
        source[n] = (int32_t)ravel(x, from);
    }
    follow(y, x, source);
    const struct weft_attribute attribute = {.name = "axes", .integers = axes, .count = 2};
    return append(t, "diagonal", &x->id, 1, &attribute, 1, y, false);
}

static bool add_bcast(struct trial *t, const struct known *x, struct known *y)
{
    if (x->rank >= 4 || elements_of(x) > MOST_ELEMENTS / 6)
        return false;
    weft_dim dims[WEFT_MAX_RANK];
    const int fresh = (int)draw(x->rank + 1);
    y->rank = x->rank + 1;
    y->extent[fresh] = 1 + draw(6);
    for (int i = 0; i < x->rank; i++) {
        y->extent[i < fresh ? i : i + 1] = x->extent[i];
        dims[i] = weft_extent(i < fresh ? i : i + 1);
    }
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
        unravel(y, n, to);
        for (int i = 0; i < x->rank; i++)
            from[i] = to[i < fresh ? i : i + 1];
        source[n] = (int32_t)ravel(x, from);
    }
    follow(y, x, source);
    const struct weft_attribute attribute = {.name = "dims", .integers = dims, .count = (size_t)x->rank};
    return append(t, "bcast", &x->id, 1, &attribute, 1, y, true);
}

static bool add_sum(struct trial *t, const struct known *x, struct known *y)
{
    const int axis = (int)draw(x->rank + 1) - 1;
    if (axis < 0 || x->extent[axis] > 6)
        return false;
    y->rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            y->extent[y->rank++] = x->extent[i];
    for (int64_t term = 0; term < x->extent[axis]; term++) {
        for (int64_t n = 0; n < elements_of(y); n++) {
            int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
            unravel(y, n, to);
            for (int i = 0, k = 0; i < x->rank; i++)
                from[i] = i == axis ? term : to[k++];
            source[n] = (int32_t)ravel(x, from);
        }
        follow(y, x, source);
    }
    const weft_dim axes[] = {weft_extent(axis)};
    const struct weft_attribute attribute = {.name = "axes", .integers = axes, .count = 1};
    return append(t, "sum", &x->id, 1, &attribute, 1, y, false);
}

static bool add_concat(struct trial *t, const struct known *x, struct known *y)
{
    const struct known *other = &t->known[draw(t->values)];
    const int axis = (int)draw(x->rank + 1) - 1;
    if (axis < 0 || other->rank != x->rank || x->paths > 1 || other->paths > 1)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (i != axis && other->extent[i] != x->extent[i])
            return false;
    y->rank = x->rank;
    memcpy(y->extent, x->extent, sizeof y->extent);
    y->extent[axis] += other->extent[axis];
    if (elements_of(y) > MOST_ELEMENTS)
        return false;
    y->paths = 1;
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t index[WEFT_MAX_RANK];
        unravel(y, n, index);
        const bool first = index[axis] < x->extent[axis];
        index[axis] -= first ? 0 : x->extent[axis];
        y->from[0][n] = first ? x->from[0][ravel(x, index)] : other->from[0][ravel(other, index)];
    }
    const weft_val operand[] = {x->id, other->id};
    const struct weft_attribute attribute = {.name = "axis", .integer = axis};
    return append(t, "concat", operand, 2, &attribute, 1, y, false);
}

static bool add_elementwise(struct trial *t, const struct known *x, struct known *y)
{
    const struct known *other = &t->known[draw(t->values)];
    bool same = other->rank == x->rank;
    for (int i = 0; i < x->rank && same; i++)
        same = other->extent[i] == x->extent[i];
    y->rank = x->rank;
    memcpy(y->extent, x->extent, sizeof y->extent);
    for (int64_t n = 0; n < elements_of(y); n++)
        source[n] = (int32_t)n;
    follow(y, x, source);
    if (same && other != x)
        follow(y, other, source);
    const weft_val operand[] = {x->id, other->id};
    return append(t, same ? "add" : "relu", operand, same ? 2 : 1, NULL, 0, y, false);
}

/* By indices that are parameters: what is promised must hold for those that are drawn here. */
static bool add_gather(struct trial *t, const struct known *x, struct known *y)
{
    const int axis = (int)draw(x->rank + 1) - 1;
    if (axis < 0 || draw(2))
        return false;
    int64_t chosen[8];
    weft_val operand[] = {x->id, {0}};
    y->rank = x->rank;
    memcpy(y->extent, x->extent, sizeof y->extent);
    y->extent[axis] = 1 + draw(8);
    if (elements_of(y) > MOST_ELEMENTS)
        return false;
    for (int64_t i = 0; i < y->extent[axis]; i++)
        chosen[i] = draw(x->extent[axis]);
    for (int64_t n = 0; n < elements_of(y); n++) {
        int64_t index[WEFT_MAX_RANK] = {0};
        unravel(y, n, index);
        index[axis] = chosen[index[axis]];
        source[n] = (int32_t)ravel(x, index);
    }
    follow(y, x, source);
    const weft_dim extent = weft_extent(y->extent[axis]);
    assert_int_equal(weft_param(t->builder.graph, NULL, WEFT_I64, 1, &extent, &operand[1]), WEFT_OK);
    const struct weft_attribute attribute = {.name = "axis", .integer = axis};
    t->guesses = true;
    return append(t, "gather", operand, 2, &attribute, 1, y, false);
}

/* A layout of its own: an order of axes, perhaps with gaps. */
static void lay_out(struct trial *t, struct known *v)
{
    char text[200] = "{";
    for (int i = 0; i < v->rank; i++)
        v->order[i] = i;
    for (int i = v->rank - 1; i > 0 && draw(2); i--) {
        const int64_t other = draw(i + 1);
        const int moved = v->order[i];
        v->order[i] = v->order[other];
        v->order[other] = moved;
    }
    int64_t stride = draw(8) ? 1 : 2, dense = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        v->stride[v->order[i]] = stride;
        v->dense[v->order[i]] = dense;
        dense *= v->extent[v->order[i]];
        stride = stride * v->extent[v->order[i]] + (draw(4) ? 0 : 1 + draw(4));
    }
    for (int i = 0; i < v->rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "", v->order[i]);
    strcat(text, v->rank ? " |" : "");
    for (int i = 0; i < v->rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %lld", (long long)v->stride[v->order[i]]);
    strcat(text, " align=64}");
    if (weft_set_layout(t->builder.graph, v->id, text) != WEFT_OK)
        fail_msg("%s", weft_last_error(t->builder.context));
}

static void make(struct trial *t)
{
    static bool (*const add[])(struct trial *, const struct known *, struct known *) = {
        add_reshape, add_transpose, add_slice, add_pad, add_bcast, add_sum, add_concat, add_gather, add_elementwise,
        add_diagonal};
    weft_dim extent[WEFT_MAX_RANK];
    struct known *x = &t->known[0];
    t->builder = open_builder();
    t->guesses = false;
    x->rank = 1 + (int)draw(3);
    for (int i = 0; i < x->rank; i++) {
        x->extent[i] = 1 + draw(draw(2) ? 4 : 9);
        extent[i] = weft_extent(x->extent[i]);
    }
    assert_int_equal(weft_param(t->builder.graph, "x", WEFT_F32, x->rank, extent, &x->id), WEFT_OK);
    assert_int_equal(weft_splat(t->builder.graph, WEFT_F32, 0, NULL, 0, &t->zero), WEFT_OK);
    x->paths = 1;
    for (int64_t n = 0; n < elements_of(x); n++)
        x->from[0][n] = (int32_t)n;
    t->values = 1;
    for (int steps = 1 + (int)draw(8); steps > 0 && t->values < MOST_VALUES; steps--) {
        struct known *y = &t->known[t->values];
        memset(y, 0, sizeof *y);
        add[draw(sizeof add / sizeof *add)](t, &t->known[draw(4) ? t->values - 1 : draw(t->values)], y);
    }
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* A value's elements in the order in which they lie; axes of extent 1 do not matter. */
static void in_order(const struct known *v, int32_t *walk)
{
    for (int64_t n = 0; n < elements_of(v); n++) {
        int64_t index[WEFT_MAX_RANK], at = 0;
        unravel(v, n, index);
        for (int i = 0; i < v->rank; i++)
            at += index[i] * v->dense[i];
        walk[at] = (int32_t)n;
    }
}

/* Places of the elements that one path needs, step by step; -1: none. */
static bool is_good(const struct known *value, const int32_t *needed, int64_t steps, int64_t k, bool dense)
{
    for (int64_t b = 0; b < steps; b += k) {
        int64_t place = -1;
        for (int64_t j = 0; j < k; j++) {
            int64_t index[WEFT_MAX_RANK], at = 0, number = 0;
            if ((needed[b] < 0) != (needed[b + j] < 0))
                return false;
            if (needed[b] < 0)
                continue;
            unravel(value, needed[b + j], index);
            for (int i = 0; i < value->rank; i++) {
                at += index[i] * value->stride[i];
                number += index[i] * value->dense[i];
            }
            if (j == 0 && (dense ? number : at) % k != 0)
                return false;
            if (j > 0 && at != place + j)
                return false;
            place = j == 0 ? at : place;
        }
    }
    return true;
}

/* What each step of the walk needs on a path; false where an element would be needed twice. */
static bool needs(const struct known *value, const struct known *along, const int32_t *from, bool back, int32_t *ret)
{
    static int32_t walk[MOST_ELEMENTS], found[MOST_ELEMENTS];
    in_order(along, walk);
    if (back) {
        for (int64_t n = 0; n < elements_of(along); n++)
            found[n] = -1;
        for (int64_t n = 0; n < elements_of(value); n++) {
            if (from[n] >= 0 && found[from[n]] >= 0)
                return false;
            if (from[n] >= 0)
                found[from[n]] = (int32_t)n;
        }
        from = found;
    }
    for (int64_t n = 0; n < elements_of(along); n++)
        ret[n] = from[walk[n]];
    return true;
}

#endif
