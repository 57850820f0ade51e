/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: reads through a table per axis. Lines go along the axis in which the result is innermost: by places that are
 * looked up, or, where the caller knows them (a padding by reflection has three), by spans: neighbours that are copied,
 * go backwards or stand still. Parts are ranges of elements and may cut a line. */
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

/* Results [first, first + n) of a line of spans. */
static void run_spans(const struct weft_table *t, const struct weft_mover *mover, char *to, int64_t stride,
                      const char *from, const struct weft_table_span *span, int64_t first, int64_t n)
{
    for (; first >= span->count; span++)
        first -= span->count;
    for (; n > 0; span++, first = 0) {
        const int64_t count = span->count - first < n ? span->count - first : n;
        const char *const begin = from + (span->place + first * span->step) * t->bytes;
        if (stride == 1 && span->step == 1)
            mover->rows(to, 0, begin, 0, 1, count * t->bytes, false);
        else if (stride == 1)
            mover->spread(to, 0, begin, 0, 1, count, span->step, t->bytes);
        else
            weft_copy_strided(t->bytes, to, stride, begin, span->step, count);
        to += count * stride * t->bytes;
        n -= count;
    }
}

struct lines {
    const struct weft_table *t;
    const int64_t *const *places;
    int64_t at[WEFT_K_RANK], to, from; /* elements */
};

static void seek(struct lines *l, int64_t line)
{
    for (int i = l->t->rank - 2; i >= 0; i--) {
        const int axis = l->t->order[i];
        l->at[i] = line % l->t->extent[axis];
        line /= l->t->extent[axis];
        l->to += l->at[i] * l->t->out_stride[axis];
        l->from += l->places[axis][l->at[i]];
    }
}

static void next(struct lines *l)
{
    for (int i = l->t->rank - 2; i >= 0; i--) {
        const int axis = l->t->order[i];
        const int64_t old = l->at[i];
        l->at[i] = old + 1 < l->t->extent[axis] ? old + 1 : 0;
        l->to += (l->at[i] - old) * l->t->out_stride[axis];
        l->from += l->places[axis][l->at[i]] - l->places[axis][old];
        if (l->at[i])
            return;
    }
}

static bool are_neighbours(const int64_t *place, int64_t n)
{
    bool all = true;
    for (int64_t i = 1; i < n && all; i++)
        all = place[i] == place[0] + i;
    return all;
}

void weft_table_run(const struct weft_table *t, void *out, const void *in, const int64_t *const *places,
                    const struct weft_table_span *span, int part, int parts)
{
    const int inner = t->order[t->rank - 1];
    const int64_t n = t->extent[inner], stride = t->out_stride[inner];
    int64_t total = 1, at, end;
    for (int i = 0; i < t->rank; i++)
        total *= t->extent[i];
    weft_share(total, 64, part, parts, &at, &end);
    if (at >= end)
        return;
    const struct weft_gather_loops *const loops = weft_gather_loops_find(t->cpu);
    const struct weft_mover *const mover = weft_mover_find(t->cpu);
    const struct weft_table_span whole = {t->spans ? 0 : places[inner][0], 1, n};
    if (!t->spans && are_neighbours(places[inner], n))
        span = &whole;
    struct lines line = {.t = t, .places = places};
    seek(&line, at / n);
    for (; at < end; next(&line)) {
        const int64_t first = at % n, count = n - first < end - at ? n - first : end - at;
        char *const to = (char *)out + (line.to + first * stride) * t->bytes;
        const char *const from = (const char *)in + line.from * t->bytes;
        if (span)
            run_spans(t, mover, to, stride, from, span, first, count);
        else
            loops->look_up(t->bytes, to, stride, from, places[inner] + first, count);
        at += count;
    }
}
