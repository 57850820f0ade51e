/* SPDX-License-Identifier: Apache-2.0 */
/* pool_index.c: maxima of windows, and where they stand.
 *
 *   index[n,c,o…] = place of y[n,c,o…] = max over taps t… of x[n, c, o·stride - pad + t·dilation …]
 *
 * Taps outside the array are left out. Of equal elements the first in row-major order is the maximum, and the first NaN
 * is larger than all. Fewer than three spatial axes are three with leading extents of 1. Three forms:
 *   channels   channels contiguous in the operand: vectors go across them. Windows of a row that lie inside see the
 *              same taps, one pixel's further on
 *   rows       any strides: the rows of the operand that a row of results sees become lines, which have -infinity where
 *              padding is, and with a stride are in phases, so that windows side by side read each tap side by side.
 *              A line stays for the rows of results that see it, too; those of the next row are made before this one is
 *              computed, since a load that spans two stores waits until both are in the cache
 *   each       window by window: those of more taps than lists have room for, or whose lines have none, and planes
 *              whose places do not fit into 32 bits
 * A maximum goes along with its place over all taps, so that a window of h by w costs h · w and not h + w as in pool.c:
 * columns in common would have to compare places, too. Parts are rows of results, or channels of them. */
#include "kernels/strip/pool_index.h"
#include "kernels/strip/pool.h"
#include "kernels/walk.h"

#include <math.h>
#include <string.h>

enum {
    ROOM = 8192,   /* floats of all lines: they stay in the first-level cache */
    LINES = 64,    /* of rows that are there at once, at most */
    COLUMNS = 512, /* results of a row at once, at most */
    GROUP = 16,    /* floats, of which lines are multiples: whole vectors are stored */
    GRAIN = 64     /* channels that parts do not share out */
};

/* The descriptor with exactly three spatial axes: depth, height, width. */
struct space {
    const struct weft_pool *pool;
    const struct weft_pool_index_loops *loops;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], reach[3]; /* reach: from first tap to last */
    int64_t in_step[3], out_step[3], index_step[3];
    int64_t unit[3], plane; /* from place to place; from plane to plane */
    int64_t all_taps;
};

static struct space space_of(const struct weft_pool_index *p)
{
    static const struct weft_pool_index_loops *const loops[] = {WEFT_LEVELS(&weft_pool_index_loops)};
    const struct weft_pool *const pool = &p->pool;
    struct space s = {.pool = pool, .loops = loops[weft_level_of(pool->cpu)], .all_taps = 1};
    for (int i = 0; i < 3; i++) {
        s.in[i] = weft_pool_axis(pool, pool->in_extent, i, 1);
        s.out[i] = weft_pool_axis(pool, pool->out_extent, i, 1);
        s.kernel[i] = weft_pool_axis(pool, pool->kernel, i, 1);
        s.stride[i] = weft_pool_axis(pool, pool->stride, i, 1);
        s.dilation[i] = weft_pool_axis(pool, pool->dilation, i, 1);
        s.pad[i] = weft_pool_axis(pool, pool->pad, i, 0);
        s.in_step[i] = weft_pool_axis(pool, pool->in_stride + 2, i, 0);
        s.out_step[i] = weft_pool_axis(pool, pool->out_stride + 2, i, 0);
        s.index_step[i] = weft_pool_axis(pool, p->index_stride + 2, i, 0);
        s.reach[i] = (s.kernel[i] - 1) * s.dilation[i];
        s.all_taps *= s.kernel[i];
    }
    s.unit[0] = p->column_major ? 1 : s.in[1] * s.in[2];
    s.unit[1] = p->column_major ? s.in[0] : s.in[2];
    s.unit[2] = p->column_major ? s.in[0] * s.in[1] : 1;
    s.plane = p->in_plane ? 0 : s.in[0] * s.in[1] * s.in[2];
    return s;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rounded(int64_t a, int64_t grain) { return (a + grain - 1) / grain * grain; }

/* The taps of axis i that lie inside for position o: [first, end). */
struct span {
    int64_t first, end;
};

static struct span span_at(const struct space *s, int i, int64_t o)
{
    const int64_t start = o * s->stride[i] - s->pad[i], d = s->dilation[i];
    if (start >= 0 && start + s->reach[i] < s->in[i])
        return (struct span){0, s->kernel[i]};
    struct span t = {start < 0 ? (-start + d - 1) / d : 0, start < s->in[i] ? (s->in[i] - 1 - start) / d + 1 : 0};
    t.end = least(t.end, s->kernel[i]);
    t.first = least(t.first, t.end);
    return t;
}

/* A row of results of a plane, or of an image: where it is, the taps along depth and height, the place of the first
 * tap of all of its first window, and from the first element of a plane to the row that tap (0, 0) sees. */
struct row {
    int64_t at[2];
    struct span span[2];
    int64_t start, seen;
};

/* Into memory: whoever copies it would wait for these stores. */
static void set_row(const struct space *s, int64_t depth, int64_t height, struct row *ret)
{
    ret->at[0] = depth, ret->at[1] = height;
    ret->start = -s->pad[2] * s->unit[2], ret->seen = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t first = ret->at[i] * s->stride[i] - s->pad[i];
        ret->span[i] = span_at(s, i, ret->at[i]);
        ret->start += first * s->unit[i];
        ret->seen += first * s->in_step[i];
    }
}

static struct row row_at(const struct space *s, int64_t at)
{
    struct row r;
    set_row(s, at / s->out[1], at % s->out[1], &r);
    return r;
}

static bool sees_nothing(const struct row *r)
{
    return r->span[0].first == r->span[0].end || r->span[1].first == r->span[1].end;
}

/* From the first element of a plane to that of the row that tap (z, y) sees. */
static int64_t seen_row(const struct space *s, const struct row *r, int64_t z, int64_t y)
{
    return r->seen + z * s->dilation[0] * s->in_step[0] + y * s->dilation[1] * s->in_step[1];
}

/* How far behind a window's first tap of all another one stands. */
static int64_t behind(const struct space *s, int64_t z, int64_t y, int64_t x)
{
    return z * s->dilation[0] * s->unit[0] + y * s->dilation[1] * s->unit[1] + x * s->dilation[2] * s->unit[2];
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Results [from, from + results) of rows, whose lines have room: line column 0 is data column `column`, in front of
 * which are `skip` groups of a stride each that are padding. */
struct piece {
    int64_t from, results, column, columns, skip, pitch, step;
    int64_t rows, lines;        /* heights after which a line's place comes again; of all depths */
    bool direct;                /* windows read the operand as it is */
    bool some_empty;
    int64_t tap[WEFT_POOL_TAPS]; /* floats from a line's begin to what the first window sees */
    int32_t place[WEFT_POOL_TAPS]; /* of taps along the row, from the first one's */
    int32_t first[COLUMNS + GROUP]; /* of weft_pool_windows */
    const float *made[LINES];    /* of which row each line is */
    float line[ROOM] __attribute__((aligned(64)));
};

/* Heights after which a line's place comes again. */
static int64_t rows_of(const struct space *s) { return s->reach[1] + 1 + s->stride[1]; }

static void set_piece(const struct space *s, struct piece *p, int64_t from, int64_t results)
{
    const int64_t stride = s->stride[2], start = from * stride - s->pad[2];
    const int64_t end = start + (results - 1) * stride + s->reach[2] + 1;
    const int64_t left = least(most(-start, 0), end - start); /* padding in front, if it is not all that is seen */
    p->from = from, p->results = results;
    p->direct = stride == 1 && s->in_step[2] == 1 && start >= 0 && end <= s->in[2];
    p->column = most(start, 0);
    p->columns = most(least(end, s->in[2]) - p->column, 0);
    p->skip = rounded((left + stride - 1) / stride, GROUP); /* stores are aligned */
    p->pitch = p->skip + rounded((most(end - p->column, 0) + stride - 1) / stride, GROUP);
    p->step = p->pitch * stride;
    p->rows = rows_of(s);
    p->lines = p->rows * s->kernel[0];
    for (int64_t t = 0; t < s->kernel[2]; t++) {
        p->place[t] = (int32_t)behind(s, 0, 0, t);
        const int64_t at = p->skip * stride - left + t * s->dilation[2];
        p->tap[t] = p->direct ? start + t * s->dilation[2] : at % stride * p->pitch + at / stride;
    }
}

/* Have so many results of a row room, wherever in the row they are? What they see is cut into padding and the rest,
 * which are rounded up each: a line is longer by a group than it would be without the cut. */
static bool have_room(const struct space *s, int64_t results)
{
    const int64_t stride = s->stride[2], lines = rows_of(s) * s->kernel[0];
    const bool in_place = stride == 1 && s->in_step[2] == 1 && s->pad[2] <= 0 &&
                          s->out[2] - s->pad[2] + s->reach[2] <= s->in[2];
    const int64_t pitch = rounded((results - 1) + (s->reach[2] + stride) / stride, GROUP) + GROUP;
    return results <= COLUMNS && (in_place || (lines <= LINES && pitch * stride <= ROOM / lines));
}

/* How many results of a row at once have room; 0: none has. */
static int64_t results_at_once(const struct space *s)
{
    int64_t results = least(s->out[2], COLUMNS);
    while (results > 0 && !have_room(s, results))
        results /= 2;
    return results;
}

static void open_piece(const struct space *s, struct piece *p, int64_t from, int64_t results)
{
    set_piece(s, p, from, results);
    p->some_empty = false;
    for (int64_t i = 0; i < results; i++) {
        const struct span t = span_at(s, 2, from + i);
        p->first[i] = t.first < t.end ? (int32_t)behind(s, 0, 0, t.first) : -1;
        p->some_empty |= t.first == t.end;
    }
    if (p->direct)
        return;
    assert(p->lines <= LINES && p->step <= ROOM / p->lines);
    for (int64_t i = 0; i < p->lines * p->step; i++)
        p->line[i] = -INFINITY;
    memset(p->made, 0, sizeof p->made);
}

/* Lines are a ring for each tap along depth. Where in it that of a row's tap (0, 0) would be. */
static int64_t turn_of(const struct space *s, const struct piece *p, const struct row *r)
{
    const int64_t turn = (r->at[1] * s->stride[1] - s->pad[1]) % p->rows;
    return turn < 0 ? turn + p->rows : turn;
}

/* That of tap (z, y); from the first tap to the last it is less than once around. */
static int64_t line_of(const struct space *s, const struct piece *p, int64_t turn, int64_t z, int64_t y)
{
    const int64_t at = turn + y * s->dilation[1];
    return z * p->rows + (at < p->rows ? at : at - p->rows);
}

/* The lines that a row of results sees and that are not there yet. */
static void make_lines(const struct space *s, struct piece *p, const struct row *r, const float *plane)
{
    const int64_t turn = turn_of(s, p, r);
    for (int64_t z = r->span[0].first; z < r->span[0].end; z++)
        for (int64_t y = r->span[1].first; y < r->span[1].end; y++) {
            const float *const x = plane + seen_row(s, r, z, y);
            const int64_t at = line_of(s, p, turn, z, y);
            if (p->made[at] == x)
                continue;
            p->made[at] = x;
            s->loops->line(p->line + at * p->step + p->skip, p->pitch, s->stride[2],
                           x + p->column * s->in_step[2], s->in_step[2], p->columns);
        }
}

static void clear_windows(float *out, int64_t out_step, int64_t *index, int64_t index_step, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i * out_step] = -INFINITY;
        index[i * index_step] = 0;
    }
}

static void compute_row(const struct space *s, const struct piece *p, const struct row *r, const float *plane,
                        const struct weft_pool_windows *all)
{
    const float *from[WEFT_POOL_TAPS];
    int32_t place[WEFT_POOL_TAPS];
    struct weft_pool_windows w = *all;
    w.out_step = s->out_step[2], w.index_step = s->index_step[2];
    w.out += r->at[0] * s->out_step[0] + r->at[1] * s->out_step[1] + p->from * w.out_step;
    w.index += r->at[0] * s->index_step[0] + r->at[1] * s->index_step[1] + p->from * w.index_step;
    if (sees_nothing(r)) {
        clear_windows(w.out, w.out_step, w.index, w.index_step, p->results);
        return;
    }
    const int64_t turn = turn_of(s, p, r);
    w.count = p->results, w.runs = 1;
    for (int64_t z = r->span[0].first; z < r->span[0].end; z++)
        for (int64_t y = r->span[1].first; y < r->span[1].end; y++) {
            const float *const x =
                p->direct ? plane + seen_row(s, r, z, y) : p->line + line_of(s, p, turn, z, y) * p->step;
            const int32_t above = (int32_t)behind(s, z, y, 0);
            for (int64_t t = 0; t < s->kernel[2]; t++, w.taps++) {
                from[w.taps] = x + p->tap[t];
                place[w.taps] = above + p->place[t];
            }
        }
    w.from = from, w.place = place, w.above = place[0], w.first = p->first, w.some_empty = p->some_empty;
    w.along = (int32_t)(s->stride[2] * s->unit[2]);
    w.start = (int32_t)(r->start + p->from * w.along);
    s->loops->windows(&w);
}

/* Rows [at, end) of a plane. */
static void rows_of_plane(const struct space *s, struct piece *p, const float *plane,
                          const struct weft_pool_windows *all, int64_t at, int64_t end)
{
    struct row row[2] = {row_at(s, at)}; /* this one and the next, in turn */
    bool made = p->direct;
    for (int turn = 0; at < end; at++, turn ^= 1) {
        const struct row *const r = &row[turn];
        struct row *const next = &row[turn ^ 1];
        const bool ends = at + 1 == end || r->at[1] + 1 == s->out[1];
        set_row(s, r->at[0] + ends, ends ? 0 : r->at[1] + 1, next);
        if (!made)
            make_lines(s, p, r, plane);
        if (!ends && !p->direct)
            make_lines(s, p, next, plane);
        made = !ends || p->direct;
        compute_row(s, p, r, plane, all);
    }
}

/* Rows [at, end) of all planes. */
static void some_rows(const struct space *s, float *out, int64_t *index, const struct weft_pool_index *d,
                      const float *in, int64_t at, int64_t end)
{
    const struct weft_pool *const pool = s->pool;
    const int64_t height = s->out[0] * s->out[1], once = results_at_once(s);
    struct piece p;
    for (int64_t from = 0; from < s->out[2]; from += once) {
        open_piece(s, &p, from, least(s->out[2] - from, once));
        for (int64_t i = at; i < end; i += height - i % height) {
            const int64_t plane = i / height, n = plane / pool->c, c = plane % pool->c;
            const struct weft_pool_windows all = {.base = plane * s->plane,
                                                  .out = out + n * pool->out_stride[0] + c * pool->out_stride[1],
                                                  .index = index + n * d->index_stride[0] + c * d->index_stride[1]};
            rows_of_plane(s, &p, in + n * pool->in_stride[0] + c * pool->in_stride[1], &all, i % height,
                          least(height, i % height + end - i));
        }
    }
}

/* --- channels ----------------------------------------------------------------------------------------------------- */

/* Windows [o, o + runs) of a row, which see the taps [t.first, t.end) along it. `image`: the first channel of those
 * that are wanted. `all`: what is the same for all windows of the image. */
static void some_pixels(const struct space *s, const struct weft_pool_windows *all, const struct row *r,
                        const float *image, int64_t o, int64_t runs, struct span t)
{
    const float *from[WEFT_POOL_TAPS];
    int32_t place[WEFT_POOL_TAPS];
    struct weft_pool_windows w = *all;
    w.out += r->at[0] * s->out_step[0] + r->at[1] * s->out_step[1] + o * s->out_step[2];
    w.index += r->at[0] * s->index_step[0] + r->at[1] * s->index_step[1] + o * s->index_step[2];
    if (sees_nothing(r) || t.first == t.end) {
        for (int64_t i = 0; i < runs; i++)
            clear_windows(w.out + i * s->out_step[2], w.out_step, w.index + i * s->index_step[2], w.index_step,
                          w.count);
        return;
    }
    for (int64_t z = r->span[0].first; z < r->span[0].end; z++)
        for (int64_t y = r->span[1].first; y < r->span[1].end; y++)
            for (int64_t x = t.first; x < t.end; x++, w.taps++) {
                from[w.taps] = image + seen_row(s, r, z, y) +
                               (o * s->stride[2] - s->pad[2] + x * s->dilation[2]) * s->in_step[2];
                place[w.taps] = (int32_t)behind(s, z, y, x);
            }
    w.from = from, w.place = place, w.above = place[0];
    w.runs = runs, w.from_run = s->stride[2] * s->in_step[2], w.start_run = s->stride[2] * s->unit[2];
    w.out_run = s->out_step[2], w.index_run = s->index_step[2];
    w.start = (int32_t)(r->start + o * w.start_run);
    s->loops->windows(&w);
}

/* Rows [at, end) of all images, of channels [channel, past). */
static void rows_of_pixels(const struct space *s, float *out, int64_t *index, const struct weft_pool_index *d,
                           const float *in, int64_t at, int64_t end, int64_t channel, int64_t past)
{
    const struct weft_pool *const pool = s->pool;
    const int64_t height = s->out[0] * s->out[1], width = s->out[2], stride = s->stride[2];
    const int64_t room = s->in[2] - 1 - s->reach[2] + s->pad[2];
    const int64_t first = least((s->pad[2] + stride - 1) / stride, width); /* windows [first, last) lie inside */
    const int64_t last = most(least(room < 0 ? 0 : room / stride + 1, width), first);
    for (int64_t i = at; i < end; i++) {
        const int64_t n = i / height;
        const struct row r = row_at(s, i % height);
        const float *const image = in + n * pool->in_stride[0] + channel;
        const struct weft_pool_windows w = {
            .count = past - channel, .base = (n * pool->c + channel) * s->plane, .apart = s->plane,
            .out = out + n * pool->out_stride[0] + channel * pool->out_stride[1], .out_step = pool->out_stride[1],
            .index = index + n * d->index_stride[0] + channel * d->index_stride[1], .index_step = d->index_stride[1]};
        for (int64_t o = 0; o < first; o++)
            some_pixels(s, &w, &r, image, o, 1, span_at(s, 2, o));
        if (first < last)
            some_pixels(s, &w, &r, image, first, last - first, (struct span){0, s->kernel[2]});
        for (int64_t o = last; o < width; o++)
            some_pixels(s, &w, &r, image, o, 1, span_at(s, 2, o));
    }
}

/* --- window by window --------------------------------------------------------------------------------------------- */

static void one_window(const struct space *s, float *out, int64_t *index, const float *plane, const struct row *r,
                       int64_t o, int64_t base)
{
    const struct span t = span_at(s, 2, o);
    bool any = false;
    *out = -INFINITY, *index = 0;
    for (int64_t z = r->span[0].first; z < r->span[0].end; z++)
        for (int64_t y = r->span[1].first; y < r->span[1].end; y++)
            for (int64_t k = t.first; k < t.end; k++) {
                const float x = plane[seen_row(s, r, z, y) +
                                      (o * s->stride[2] - s->pad[2] + k * s->dilation[2]) * s->in_step[2]];
                if (any && !(x > *out) && (x == x || *out != *out))
                    continue;
                any = true;
                *out = x;
                *index = base + r->start + o * s->stride[2] * s->unit[2] + behind(s, z, y, k);
            }
}

static void each_of_rows(const struct space *s, float *out, int64_t *index, const struct weft_pool_index *d,
                         const float *in, int64_t at, int64_t end)
{
    const struct weft_pool *const pool = s->pool;
    const int64_t height = s->out[0] * s->out[1];
    for (int64_t i = at; i < end; i++) {
        const int64_t plane = i / height, n = plane / pool->c, c = plane % pool->c;
        const struct row r = row_at(s, i % height);
        float *const to = out + n * pool->out_stride[0] + c * pool->out_stride[1] + r.at[0] * s->out_step[0] +
                          r.at[1] * s->out_step[1];
        int64_t *const places = index + n * d->index_stride[0] + c * d->index_stride[1] +
                                r.at[0] * s->index_step[0] + r.at[1] * s->index_step[1];
        for (int64_t o = 0; o < s->out[2]; o++)
            one_window(s, to + o * s->out_step[2], places + o * s->index_step[2],
                       in + n * pool->in_stride[0] + c * pool->in_stride[1], &r, o, plane * s->plane);
    }
}

/* --- choice and parts --------------------------------------------------------------------------------------------- */

/* Do places of all taps, inside or not, fit into 32 bits, also those that lanes behind the last window count on to? */
static bool is_small(const struct space *s)
{
    double reach = 1;
    for (int i = 0; i < 3; i++)
        reach *= (double)s->in[i] + (double)(s->pad[i] + s->reach[i] + s->stride[i]);
    return reach < INT32_MAX / 32;
}

void weft_pool_index_prepare(struct weft_pool_index *p, int workers)
{
    const struct space s = space_of(p);
    const struct weft_pool *const pool = &p->pool;
    const int64_t rows = s.out[0] * s.out[1];
    p->form = WEFT_POOL_INDEX_EACH;
    p->by_channels = false;
    if (is_small(&s) && s.all_taps <= WEFT_POOL_TAPS) {
        if (pool->c >= WEFT_POOL_INSIDE && pool->in_stride[1] == 1)
            p->form = WEFT_POOL_INDEX_CHANNELS;
        else if (results_at_once(&s) > 0)
            p->form = WEFT_POOL_INDEX_ROWS;
    }
    const int64_t results = pool->n * pool->c * rows * s.out[2];
    int64_t units = pool->n * pool->c * rows;
    const int32_t parts = weft_parts_for(4 * results * s.all_taps, workers);
    if (p->form == WEFT_POOL_INDEX_CHANNELS) {
        units = pool->n * rows;
        p->by_channels = units < parts && pool->c / GRAIN > units; /* few rows */
        units = p->by_channels ? pool->c / GRAIN : units;
    }
    p->parts = results < 1 || units < 1 ? 1 : units < parts ? (int32_t)units : parts;
}

void weft_pool_index_run(const struct weft_pool_index *p, float *out, int64_t *index, const float *in, int part,
                         int parts)
{
    const struct space s = space_of(p);
    const struct weft_pool *const pool = &p->pool;
    const bool channels = p->form == WEFT_POOL_INDEX_CHANNELS;
    int64_t at = 0, end = s.out[0] * s.out[1] * pool->n * (channels ? 1 : pool->c), channel = 0, past = pool->c;
    if (s.out[2] == 0 || end == 0 || pool->c == 0)
        return;
    if (p->by_channels)
        weft_share(past, GRAIN, part, parts, &channel, &past);
    else
        weft_share(end, 1, part, parts, &at, &end);
    if (at >= end || channel >= past)
        return;
    if (channels)
        rows_of_pixels(&s, out, index, p, in, at, end, channel, past);
    else if (p->form == WEFT_POOL_INDEX_ROWS)
        some_rows(&s, out, index, p, in, at, end);
    else
        each_of_rows(&s, out, index, p, in, at, end);
}

const char *weft_pool_index_name(const struct weft_pool_index *p)
{
    const struct space s = space_of(p);
    return p->form == WEFT_POOL_INDEX_CHANNELS ? s.loops->channels : p->form == WEFT_POOL_INDEX_ROWS ? s.loops->rows
                                               : "weft_pool_index_each_f32__ref";
}

uint32_t weft_pool_index_cpu(const struct weft_pool_index *p)
{
    return p->form == WEFT_POOL_INDEX_EACH ? 0 : space_of(p).loops->cpu;
}
