/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: reads through a table per axis. The innermost axes that the operand has as the result has them make a block,
 * as the channels of a pixel do; lines go along the next axis, block by block. Where the innermost axis itself is
 * repeated or padded lines are of elements: by places that are looked up, or, where the caller knows them (a padding by
 * reflection has three), by spans: neighbours that are copied, go backwards or stand still. A line like the one before
 * is copied from there, where that takes less than to make it. Parts are ranges of blocks and may cut a line. */
#include "kernels/gather/gather.h"
#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

#include <string.h>

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Does axis a belong outside of b? Those of one element go outermost. */
static bool is_outer(const struct weft_table *t, int a, int b)
{
    const int64_t far = t->extent[a] == 1 ? INT64_MAX : magnitude(t->out_stride[a]);
    return far > (t->extent[b] == 1 ? INT64_MAX : magnitude(t->out_stride[b]));
}

void weft_table_prepare(struct weft_table *t, int workers)
{
    int64_t bytes = 2 * t->bytes;
    for (int i = 0; i < t->rank; i++) {
        bytes *= t->extent[i];
        int place = i;
        for (; place > 0 && is_outer(t, i, t->order[place - 1]); place--)
            t->order[place] = t->order[place - 1];
        t->order[place] = i;
    }
    t->parts = weft_parts_for(bytes, workers);
}

const char *weft_table_name(const struct weft_table *t)
{
    const struct weft_gather_loops *const loops = weft_gather_loops_find(t->cpu);
    return t->spans ? loops->spans : loops->table;
}

uint32_t weft_table_cpu(const struct weft_table *t) { return weft_gather_loops_find(t->cpu)->cpu; }

/* What a line is made of, and where it stands. */
struct lines {
    const struct weft_table *t;
    const struct weft_gather_loops *loops;
    const struct weft_mover *mover;
    const int64_t *const *places;
    int axes;                         /* outside of the line: order[0] to order[axes - 1] */
    int64_t n, stride;                /* blocks of a line, and elements from one to the next in the result */
    const int64_t *place;             /* of the line */
    const struct weft_table_span *span; /* or NULL */
    struct weft_repeat block;
    bool pairs, near, copies;         /* what may be done with lines of elements; like lines are copied */
    int64_t at[WEFT_K_RANK], to, from; /* elements */
};

static void copy_one(char *to, const char *from, int bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 2)
        memcpy(to, from, 2);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        *to = *from;
}

/* Results [first, first + n) of a line of spans. */
static void run_spans(const struct lines *l, char *to, const char *from, int64_t first, int64_t n)
{
    const struct weft_table *const t = l->t;
    const struct weft_table_span *span = l->span;
    for (; first >= span->count; span++)
        first -= span->count;
    for (; n > 0; span++, first = 0) {
        const int64_t count = span->count - first < n ? span->count - first : n;
        const char *const begin = from + (span->place + first * span->step) * t->bytes;
        if (count == 1)
            copy_one(to, begin, t->bytes);
        else if (l->stride == 1 && span->step == 1)
            l->mover->rows(to, 0, begin, 0, 1, count * t->bytes, false);
        else if (l->stride == 1)
            l->mover->spread(to, 0, begin, 0, 1, count, span->step, t->bytes);
        else
            weft_copy_strided(t->bytes, to, l->stride, begin, span->step, count);
        to += count * l->stride * t->bytes;
        n -= count;
    }
}

static void seek(struct lines *l, int64_t line)
{
    for (int i = l->axes - 1; i >= 0; i--) {
        const int axis = l->t->order[i];
        l->at[i] = line % l->t->extent[axis];
        line /= l->t->extent[axis];
        l->to += l->at[i] * l->t->out_stride[axis];
        l->from += l->places[axis][l->at[i]];
    }
}

static void next(struct lines *l)
{
    for (int i = l->axes - 1; i >= 0; i--) {
        const int axis = l->t->order[i];
        const int64_t old = l->at[i];
        l->at[i] = old + 1 < l->t->extent[axis] ? old + 1 : 0;
        l->to += (l->at[i] - old) * l->t->out_stride[axis];
        l->from += l->places[axis][l->at[i]] - l->places[axis][old];
        if (l->at[i])
            return;
    }
}

static bool are_neighbours(const int64_t *place, int64_t n, int64_t step)
{
    bool all = true;
    for (int64_t i = 1; i < n && all; i++)
        all = place[i] == place[0] + i * step;
    return all;
}

/* Is axis order[i] one with the block inside of it, in the result and in the operand? */
static bool is_in_block(const struct lines *l, int i, int64_t block, const struct weft_table_span *span)
{
    const int axis = l->t->order[i];
    const int64_t extent = l->t->extent[axis];
    if (extent == 1)
        return true;
    if (l->t->out_stride[axis] != block)
        return false;
    if (l->t->spans && i + 1 == l->t->rank)
        return span->step == 1 && span->count == extent;
    return are_neighbours(l->places[axis], extent, block);
}

static int64_t place_0(const struct lines *l, int i, const struct weft_table_span *span)
{
    return l->t->spans && i + 1 == l->t->rank ? span->place : l->places[l->t->order[i]][0];
}

/* Joins the innermost axes to a block, as long as that leaves enough blocks for all parts. */
static int64_t join_axes(struct lines *l, int64_t total, int parts, const struct weft_table_span *span)
{
    enum { BLOCKS_OF_A_PART = 16 };
    const int64_t fewest = parts > 1 ? (int64_t)parts * BLOCKS_OF_A_PART : 1;
    int64_t block = 1;
    l->axes = l->t->rank;
    for (; l->axes > 0 && is_in_block(l, l->axes - 1, block, span); l->axes--) {
        const int64_t extent = l->t->extent[l->t->order[l->axes - 1]];
        if (extent > 1 && total / (block * extent) < fewest)
            break;
        l->from += place_0(l, l->axes - 1, span);
        block *= extent;
    }
    return block;
}

static const int64_t nowhere_else[1] = {0};

/* Lines of blocks. Of blocks of a cache line and more, reading the operand takes less than reading the result. */
static void set_blocks(struct lines *l, int64_t block)
{
    enum { COPIED_BLOCK = 64, COPIED_LINE = 32768 };
    const int bytes = l->t->bytes;
    int64_t last = l->place[0];
    for (int64_t i = 1; i < l->n; i++)
        last = l->place[i] > last ? l->place[i] : last;
    l->block = (struct weft_repeat){bytes, block, block * bytes, l->stride * bytes, last};
    l->copies = l->stride == block && block * bytes < COPIED_BLOCK && l->n * block * bytes <= COPIED_LINE;
}

/* Lines of elements. */
static void set_elements(struct lines *l)
{
    bool pairs = !l->span && l->stride == 1 && l->t->bytes <= 4, near = pairs && l->t->bytes == 4;
    for (int64_t i = 1; i < l->n && (pairs || near); i++) {
        const int64_t step = l->place[i] - l->place[i - 1];
        pairs &= step == (i % 2 ? 0 : 1);
        near &= step == 0 || step == 1;
    }
    l->pairs = pairs;
    l->near = near && l->place[l->n - 1] - l->place[0] >= WEFT_NEAR;
    l->copies = l->stride == 1;
}

/* Elements [first, first + n) of a line. */
static void run_elements(const struct lines *l, char *to, const char *from, int64_t first, int64_t n)
{
    const int bytes = l->t->bytes;
    if (l->near && !l->pairs) {
        const int64_t made = l->loops->near((float *)(void *)to, (const float *)(const void *)from, l->place + first,
                                            l->place[l->n - 1], n);
        to += made * bytes, first += made, n -= made;
    } else if (l->pairs && n > 2) {
        const int64_t odd = first % 2, pairs = (n - odd) / 2;
        if (odd)
            memcpy(to, from + l->place[first] * bytes, (size_t)bytes);
        l->loops->pairs(bytes, to + odd * bytes, from + l->place[first + odd] * bytes, pairs);
        to += (odd + 2 * pairs) * bytes, first += odd + 2 * pairs, n -= odd + 2 * pairs;
    }
    if (n > 0)
        l->loops->look_up(bytes, to, l->stride, from, l->place + first, n);
}

static void run_line(const struct lines *l, char *to, const char *from, int64_t first, int64_t n)
{
    if (l->block.size)
        l->loops->repeat(&l->block, to, from, l->place + first, n);
    else if (l->span)
        run_spans(l, to, from, first, n);
    else
        run_elements(l, to, from, first, n);
}

/* A line of the result again. */
static void copy_line(const struct lines *l, char *to, const char *from, int64_t bytes)
{
    const struct weft_repeat one = {.bytes = 1, .block = bytes, .size = bytes, .step = bytes};
    l->loops->repeat(&one, to, from, nowhere_else, 1);
}

void weft_table_run(const struct weft_table *t, void *out, const void *in, const int64_t *const *places,
                    const struct weft_table_span *span, int part, int parts)
{
    struct lines l = {.t = t, .places = places, .loops = weft_gather_loops_find(t->cpu),
                      .mover = weft_mover_find(t->cpu), .n = 1, .place = nowhere_else};
    int64_t total = 1, at, end;
    for (int i = 0; i < t->rank; i++)
        total *= t->extent[i];
    if (total == 0)
        return;
    const int64_t block = join_axes(&l, total, parts, span);
    enum { GRAIN = 64 };
    weft_share(total / block, block < GRAIN ? GRAIN / block : 1, part, parts, &at, &end);
    if (at >= end)
        return;
    const bool inner = l.axes == t->rank; /* lines are of the innermost axis */
    l.stride = block;
    if (l.axes > 0) {
        const int axis = t->order[--l.axes];
        l.n = t->extent[axis], l.stride = t->out_stride[axis], l.place = places[axis];
    }
    const struct weft_table_span whole = {t->spans && inner ? 0 : l.place[0], 1, l.n};
    if (inner && t->spans)
        l.span = span;
    else if (block == 1 && are_neighbours(l.place, l.n, 1))
        l.span = &whole;
    if (block > 1)
        set_blocks(&l, block);
    else
        set_elements(&l);
    seek(&l, at / l.n);
    const int64_t size = block * t->bytes;
    const char *like = NULL; /* the line before, if it is whole, and where it was read */
    int64_t like_from = 0;
    int64_t first = at % l.n;
    for (; at < end; next(&l), first = 0) {
        const int64_t count = l.n - first < end - at ? l.n - first : end - at;
        char *const to = (char *)out + (l.to + first * l.stride) * t->bytes;
        if (like && like_from == l.from && count == l.n)
            copy_line(&l, to, like, count * size);
        else
            run_line(&l, to, (const char *)in + l.from * t->bytes, first, count);
        like = l.copies && count == l.n ? to : NULL;
        like_from = l.from;
        at += count;
    }
}
