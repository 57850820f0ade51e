/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: maxima and means over windows.
 *
 *   y[n,c,o…] = op over taps t… of x[n, c, o·stride - pad + t·dilation …], taps outside the array left out
 *
 * Fewer than three spatial axes are three with leading extents of 1. Three forms:
 *   channels   channels contiguous on both sides: for each position, vectors of channels stay in registers over all
 *              taps; windows that overlap much share columns (pool_channels.inc)
 *   planes     one result for each channel, rows contiguous (global pooling): the columns of 16 planes are folded, and
 *              their chains then run side by side
 *   rows       any strides: for each row of results, the operand's rows are folded into one line of columns, which has
 *              the identity where padding is; the results slide over that line. So there is no test per element, edges
 *              cost what the middle does, and a window of h by w costs h + w and not h · w. Rows of few results stay
 *              in registers instead (pool_strips.inc)
 * All take the terms of a result in the same order (pool.h), so layouts do not change bits either. Parts are rows of
 * results, or planes.
 *
 * Not done: running sums, which would round differently from row to row. */
#include "kernels/strip/pool.h"
#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

#define ROOM  240 /* more elements that a line in phases may need */
#define BATCH 32  /* rows of a plane that are folded together */
#define CHANNEL_GRAIN 256 /* channels that parts do not share out: threads that write next to each other are slow */
#define ROWS_ENOUGH   4   /* for each part, so that none has much more than another */

/* The descriptor with exactly three spatial axes: depth, height, width. */
struct space {
    const struct weft_pool *pool;
    const struct weft_pool_loops *loops;
    int op;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_after[3];
    int64_t in_step[3], out_step[3];
};

static struct space space_of(const struct weft_pool *pool)
{
    static const struct weft_pool_loops *const loops[] = {WEFT_LEVELS(&weft_pool_loops)};
    struct space s = {.pool = pool, .loops = loops[weft_level_of(pool->cpu)],
                      .op = pool->mean ? WEFT_K_SUM : WEFT_K_MAX};
    for (int i = 0; i < 3; i++) {
        s.in[i] = weft_pool_axis(pool, pool->in_extent, i, 1);
        s.out[i] = weft_pool_axis(pool, pool->out_extent, i, 1);
        s.kernel[i] = weft_pool_axis(pool, pool->kernel, i, 1);
        s.stride[i] = weft_pool_axis(pool, pool->stride, i, 1);
        s.dilation[i] = weft_pool_axis(pool, pool->dilation, i, 1);
        s.pad[i] = weft_pool_axis(pool, pool->pad, i, 0);
        s.pad_after[i] = weft_pool_axis(pool, pool->pad_after, i, 0);
        s.in_step[i] = weft_pool_axis(pool, pool->in_stride + 2, i, 0);
        s.out_step[i] = weft_pool_axis(pool, pool->out_stride + 2, i, 0);
    }
    return s;
}

enum weft_pool_form weft_pool_form(const struct weft_pool *pool)
{
    int64_t results = 1;
    for (int i = 0; i < pool->spatial; i++)
        results *= pool->out_extent[i];
    if (pool->c >= WEFT_POOL_INSIDE && pool->in_stride[1] == 1 && pool->out_stride[1] == 1)
        return WEFT_POOL_CHANNELS;
    const int width = pool->spatial - 1;
    const bool one = results == 1 && pool->in_stride[2 + width] == 1 && pool->dilation[width] == 1;
    return one ? WEFT_POOL_PLANES_OF_ONE : WEFT_POOL_ROWS;
}

const char *weft_pool_name(const struct weft_pool *pool)
{
    static const char *const names[] = {
#define POOL(id, level, cpu) "weft_pool_" #id "__" #level,
#include "kernels/strip/pool.def"
    };
    return names[WEFT_POOL_FORMS * weft_level_of(pool->cpu) + (int)weft_pool_form(pool)];
}

uint32_t weft_pool_cpu(const struct weft_pool *pool) { return weft_fold_find(pool->cpu)->cpu; }

/* What parts share out. */
static int64_t units_of(const struct space *s, enum weft_pool_form form)
{
    const int64_t planes = s->pool->n * s->pool->c, rows = s->out[0] * s->out[1];
    if (form == WEFT_POOL_CHANNELS && s->pool->n * rows > 0) {
        const int64_t grains = s->pool->c / CHANNEL_GRAIN;
        return s->pool->n * rows > grains ? s->pool->n * rows : grains;
    }
    return form == WEFT_POOL_PLANES_OF_ONE ? planes : planes * rows;
}

int64_t weft_pool_taps(const struct weft_pool *pool)
{
    const struct space s = space_of(pool);
    return pool->n * pool->c * s.out[0] * s.out[1] * s.out[2] * (s.kernel[0] * s.kernel[1] + s.kernel[2]);
}

int32_t weft_pool_parts(const struct weft_pool *pool, enum weft_pool_form form, int64_t taps, int workers)
{
    const struct space s = space_of(pool);
    const int64_t units = units_of(&s, form);
    const int32_t parts = weft_parts_for(4 * taps, workers);
    return units < 1 ? 1 : units < parts ? (int32_t)units : parts;
}

void weft_pool_prepare(struct weft_pool *pool, int workers)
{
    pool->parts = weft_pool_parts(pool, weft_pool_form(pool), weft_pool_taps(pool), workers);
}

/* --- taps --------------------------------------------------------------------------------------------------------- */

/* ceil(a / b) for b > 0, not below 0. */
static int64_t ceil_or_zero(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The taps of axis i that lie inside for position o: [first, end). How many a mean divides by. */
struct span {
    int64_t first, end, counted;
};

static struct span span_at(const struct space *s, int i, int64_t o)
{
    const int64_t start = o * s->stride[i] - s->pad[i], reach = (s->kernel[i] - 1) * s->dilation[i];
    if (start >= 0 && start + reach < s->in[i])
        return (struct span){0, s->kernel[i], s->kernel[i]};
    struct span t;
    t.first = least(ceil_or_zero(-start, s->dilation[i]), s->kernel[i]);
    t.end = least(ceil_or_zero(s->in[i] - start, s->dilation[i]), s->kernel[i]);
    if (t.end < t.first)
        t.end = t.first;
    t.counted = s->pool->count_pad
                    ? least(ceil_or_zero(s->in[i] + s->pad_after[i] - start, s->dilation[i]), s->kernel[i])
                    : t.end - t.first;
    return t;
}

/* Where the first tap inside of axis i lies, in elements of the operand. */
static int64_t place_of(const struct space *s, int i, int64_t o, const struct span *t)
{
    return t->end > t->first ? (o * s->stride[i] - s->pad[i] + t->first * s->dilation[i]) * s->in_step[i] : 0;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* How many results have columns that fit into a line; 0 if none has. */
static int64_t results_of_line(const struct space *s)
{
    const int64_t reach = (s->kernel[2] - 1) * s->dilation[2];
    return reach >= WEFT_POOL_LINE ? 0 : (WEFT_POOL_LINE - 1 - reach) / s->stride[2] + 1;
}

/* Results [from, to) of a row, whose columns fit into a line, and as many lines as there is room for. */
struct piece {
    struct weft_pool_line line;
    int64_t from, lines;
};

/* Rows of few results go by strips: from the two vectors of columns that a strip may see, as many results as these
 * suffice for. False for longer rows: lines fold each column once, and the next row's columns are made while stores of
 * this one are on their way. */
static bool set_strips(const struct space *s, struct weft_pool_line *l, int32_t *index)
{
    const int64_t columns = s->loops->strip_columns, reach = (s->kernel[2] - 1) * s->dilation[2];
    const int64_t lanes = columns / 2, most = reach < columns ? (columns - 1 - reach) / s->stride[2] + 1 : 0;
    if (!columns || s->out[2] > lanes || s->in_step[2] != 1 || s->out_step[2] != 1 || most < 3 * lanes / 4)
        return false;
    l->strip = least(most, lanes), l->first = -s->pad[2], l->width = s->in[2], l->reach = reach, l->index = index;
    for (int64_t t = 0; t < s->kernel[2]; t++)
        for (int64_t o = 0; o < WEFT_POOL_STRIP; o++)
            index[t * WEFT_POOL_STRIP + o] = o < l->strip ? (int32_t)(o * s->stride[2] + t * s->dilation[2]) : 0;
    return true;
}

/* The ends of lines and the counts are set here once and for all rows. */
static void set_piece(const struct space *s, struct piece *p, int64_t from, int64_t to)
{
    struct weft_pool_line *const l = &p->line;
    const int64_t stride = s->stride[2], start = from * stride - s->pad[2];
    p->from = from, l->results = to - from;
    l->stride = stride, l->taps = s->kernel[2], l->dilation = s->dilation[2];
    l->span = (l->results - 1) * stride + (s->kernel[2] - 1) * s->dilation[2] + 1;
    l->left = least(start < 0 ? -start : 0, l->span);
    const int64_t end = least(s->in[2] - start, l->span);
    l->inside = end > l->left ? end - l->left : 0;
    l->pitch = ((l->span + stride - 1) / stride + 15) / 16 * 16;
    l->phased = stride > 1 && l->pitch * stride <= WEFT_POOL_LINE + ROOM;
    l->step = l->phased ? l->pitch * stride : (l->span + 15) / 16 * 16;
    p->lines = least(WEFT_POOL_LINE / l->step, BATCH);
    if (p->lines < 1)
        p->lines = 1;
    for (float *line = l->column; line < l->column + p->lines * l->step; line += l->step) {
        for (int64_t i = 0; i < l->left; i++)
            line[i] = weft_fold_identity(s->op);
        for (int64_t i = l->left + l->inside; i < l->span; i++)
            line[i] = weft_fold_identity(s->op);
    }
    for (int64_t i = 0; s->pool->mean && i < l->results; i++)
        l->count[i] = (float)span_at(s, 2, from + i).counted;
}

/* Arrays whose rows are not contiguous, or strides with more phases than there is room for. */
static void strided_row(const struct space *s, const struct piece *p, float *out, const float *in,
                        const struct weft_pool_row *row)
{
    const struct weft_pool_line *const l = &p->line;
    float buffer[256];
    if (l->inside)
        s->loops->columns(s->op, l->column + l->left, in + row->in, &row->taps, s->in_step[2], l->inside);
    if (l->phased)
        s->loops->phases(l->phase, l->pitch, l->column, l->stride, l->span);
    for (int64_t i = 0; i < l->results; i += 256) {
        const int64_t n = least(l->results - i, 256);
        if (l->phased || l->stride == 1)
            s->loops->slide(s->op, buffer, (l->phased ? l->phase : l->column) + i, l->pitch, l->stride, l->taps,
                            l->dilation, n, l->count + i, row->counted);
        else
            for (int64_t k = 0; k < n; k++)
                s->loops->slide(s->op, buffer + k, l->column + (i + k) * l->stride, 0, 1, l->taps, l->dilation, 1,
                                l->count + i + k, row->counted);
        weft_copy_strided(sizeof *buffer, out + row->out + i * s->out_step[2], s->out_step[2], buffer, 1, n);
    }
}

/* At most p->lines rows of one plane. */
static void rows_of_piece(const struct space *s, const struct piece *p, float *out, const float *in,
                          const struct weft_pool_row *row, int64_t rows)
{
    const int64_t start = p->from * s->stride[2] - s->pad[2] + p->line.left;
    out += p->from * s->out_step[2];
    if (p->line.inside && !p->line.index)
        in += start * s->in_step[2];
    if (s->in_step[2] == 1 && s->out_step[2] == 1 && (p->line.phased || p->line.stride == 1 || p->line.index))
        s->loops->rows(s->op, &p->line, out, in, row, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            strided_row(s, p, out, in, &row[r]);
}

/* One result of a window wider than a line: its chain goes on from line to line. */
static void wide_result(const struct space *s, float *column, float *out, const float *in,
                        const struct weft_pool_row *row, int64_t o)
{
    const struct span w = span_at(s, 2, o);
    const int64_t first = o * s->stride[2] - s->pad[2] + w.first * s->dilation[2];
    const int64_t span = w.end > w.first ? (w.end - 1 - w.first) * s->dilation[2] + 1 : 0;
    const int64_t most = (WEFT_POOL_LINE - 1) / s->dilation[2] * s->dilation[2] + 1; /* ends at a tap */
    float all = weft_fold_identity(s->op);
    for (int64_t i = 0; i < span; i += most + s->dilation[2] - 1) {
        const int64_t n = least(span - i, most);
        s->loops->columns(s->op, column, in + row->in + (first + i) * s->in_step[2], &row->taps, s->in_step[2], n);
        for (int64_t k = 0; k < n; k += s->dilation[2])
            all = weft_fold_apply(s->op, column[k], all);
    }
    out[row->out + o * s->out_step[2]] = s->pool->mean ? all / (row->counted * (float)w.counted) : all;
}

/* A row of which no line holds all columns. */
static void long_row(const struct space *s, struct piece *p, float *out, const float *in,
                     const struct weft_pool_row *row)
{
    const int64_t most = results_of_line(s);
    for (int64_t o = 0; most == 0 && o < s->out[2]; o++)
        wide_result(s, p->line.column, out, in, row, o);
    for (int64_t from = 0; most > 0 && from < s->out[2]; from += most) {
        set_piece(s, p, from, least(from + most, s->out[2]));
        rows_of_piece(s, p, out, in, row, 1);
    }
}

/* Row `at` of a plane. */
static struct weft_pool_row row_at(const struct space *s, int64_t at)
{
    const int64_t depth = at / s->out[1], height = at % s->out[1];
    const struct span d = span_at(s, 0, depth), h = span_at(s, 1, height);
    return (struct weft_pool_row){depth * s->out_step[0] + height * s->out_step[1],
                                  place_of(s, 0, depth, &d) + place_of(s, 1, height, &h),
                                  {{d.end - d.first, h.end - h.first, 0},
                                   {s->dilation[0] * s->in_step[0], s->dilation[1] * s->in_step[1], 0}},
                                  (float)(d.counted * h.counted)};
}

/* --- channels ----------------------------------------------------------------------------------------------------- */

/* Do results share columns? In loads and stores for a vector of results. */
static bool shares_columns(const struct space *s)
{
    const int64_t height = s->kernel[0] * s->kernel[1], width = s->kernel[2], apart = least(s->stride[2], width);
    return (width - 1) * s->dilation[2] < WEFT_POOL_COLUMNS / 2 && apart * (height + 1) + width < height * width;
}

/* Rows [at, end) of all images. */
static void rows_of_pixels(const struct space *s, float *out, const float *in, int64_t channels, int64_t at,
                           int64_t end)
{
    const struct weft_pool *const pool = s->pool;
    const int64_t height = s->out[0] * s->out[1], most = WEFT_POOL_LINE;
    float line[WEFT_POOL_COLUMNS * 4 * WEFT_POOL_PLANES] __attribute__((aligned(64))), count[WEFT_POOL_LINE];
    struct weft_pool_pixels p = {.channels = channels, .in_step = s->in_step[2], .out_step = s->out_step[2],
                                 .taps = s->kernel[2], .stride = s->stride[2], .dilation = s->dilation[2],
                                 .width = s->in[2], .count = count, .line = shares_columns(s) ? line : NULL};
    for (int64_t from = 0; from < s->out[2]; from += most) {
        p.results = least(s->out[2] - from, most), p.pad = s->pad[2] - from * s->stride[2];
        for (int64_t o = 0; o < p.results; o++)
            count[o] = pool->mean ? (float)span_at(s, 2, from + o).counted : 1.f;
        for (int64_t i = at; i < end; i++) {
            const struct weft_pool_row row = row_at(s, i % height);
            s->loops->channels(s->op, &p, out + i / height * pool->out_stride[0] + from * s->out_step[2],
                               in + i / height * pool->in_stride[0], &row);
        }
    }
}

/* Few rows are shared out by channels. */
static struct weft_pool_share share_of_pixels(const struct space *s, int part, int parts)
{
    const int64_t rows = s->pool->n * s->out[0] * s->out[1], channels = s->pool->c;
    struct weft_pool_share share = {.end = rows, .past = channels};
    if (rows >= ROWS_ENOUGH * parts || channels < CHANNEL_GRAIN * parts)
        weft_share(rows, 1, part, parts, &share.at, &share.end);
    else
        weft_share(channels, CHANNEL_GRAIN, part, parts, &share.channel, &share.past);
    return share;
}

/* --- planes ------------------------------------------------------------------------------------------------------- */

/* Planes [at, at + count) of all images. */
static void some_planes(const struct space *s, float *out, const float *in, int64_t at, int64_t count)
{
    const struct weft_pool *const pool = s->pool;
    struct span span[3];
    struct weft_taps taps;
    int64_t counted = 1, place = 0;
    for (int i = 0; i < 3; i++) {
        span[i] = span_at(s, i, 0);
        taps.count[i] = span[i].end - span[i].first;
        taps.step[i] = s->dilation[i] * s->in_step[i];
        counted *= span[i].counted;
        place += place_of(s, i, 0, &span[i]);
    }
    const float *plane[WEFT_POOL_PLANES];
    float ret[WEFT_POOL_PLANES];
    float *to[WEFT_POOL_PLANES];
    int64_t n = at / pool->c, c = at % pool->c;
    for (int p = 0; p < WEFT_POOL_PLANES; p++) { /* those past the end are the last once more */
        plane[p] = in + n * pool->in_stride[0] + c * pool->in_stride[1] + place;
        to[p] = out + n * pool->out_stride[0] + c * pool->out_stride[1];
        if (p + 1 < count && ++c == pool->c)
            c = 0, n++;
    }
    s->loops->planes(s->op, ret, plane, &taps, (float)counted);
    for (int p = 0; p < count; p++)
        *to[p] = ret[p];
}

/* Rows [at, end) of all planes. */
static void some_rows(const struct space *s, float *out, const float *in, int64_t at, int64_t end)
{
    /* Lines of both arrays must not be a multiple of 4096 bytes apart: loads take such places for one. */
    float memory[2 * WEFT_POOL_LINE + ROOM + 32] __attribute__((aligned(64))), count[WEFT_POOL_LINE];
    struct piece piece = {.line = {.column = memory, .phase = memory + WEFT_POOL_LINE + 32, .count = count}};
    int32_t index[2 * WEFT_POOL_STRIP * WEFT_POOL_STRIP] __attribute__((aligned(64)));
    struct weft_pool_row row[BATCH];
    const struct weft_pool *const pool = s->pool;
    const bool whole = results_of_line(s) >= s->out[2];
    const int64_t height = s->out[0] * s->out[1];
    int64_t first = -1, rows = 0, most = 1; /* the rows that are in row[] */
    if (whole) {
        set_piece(s, &piece, 0, s->out[2]);
        most = set_strips(s, &piece.line, index) ? BATCH : piece.lines;
    }
    for (; at < end; at += rows) {
        const int64_t n = at / height / pool->c, c = at / height % pool->c, from = at % height;
        const int64_t here = least(least(height - from, end - at), most);
        float *const to = out + n * pool->out_stride[0] + c * pool->out_stride[1];
        const float *const plane = in + n * pool->in_stride[0] + c * pool->in_stride[1];
        for (int64_t r = 0; (first != from || rows != here) && r < here; r++)
            row[r] = row_at(s, from + r);
        first = from, rows = here;
        if (!whole)
            long_row(s, &piece, to, plane, row);
        else
            rows_of_piece(s, &piece, to, plane, row, rows);
    }
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

struct weft_pool_share weft_pool_share(const struct weft_pool *pool, enum weft_pool_form form, int part, int parts)
{
    const struct space s = space_of(pool);
    struct weft_pool_share share = {.past = 1};
    if (s.out[2] == 0) /* perhaps there are no rows at all, or no columns: places have no quotients */
        return share;
    if (form == WEFT_POOL_CHANNELS)
        return share_of_pixels(&s, part, parts);
    weft_share(units_of(&s, form), form == WEFT_POOL_PLANES_OF_ONE ? WEFT_POOL_PLANES : 1, part, parts, &share.at,
               &share.end);
    return share;
}

void weft_pool_run_share(const struct weft_pool *pool, enum weft_pool_form form, float *out, const float *in,
                         const struct weft_pool_share *share)
{
    const struct space s = space_of(pool);
    if (share->at >= share->end || share->channel >= share->past)
        return;
    if (form == WEFT_POOL_CHANNELS)
        rows_of_pixels(&s, out + share->channel, in + share->channel, share->past - share->channel, share->at,
                       share->end);
    else if (form == WEFT_POOL_ROWS)
        some_rows(&s, out, in, share->at, share->end);
    for (int64_t at = share->at; at < share->end && form == WEFT_POOL_PLANES_OF_ONE; at += WEFT_POOL_PLANES)
        some_planes(&s, out, in, at, least(share->end - at, WEFT_POOL_PLANES));
}

void weft_pool_run(const struct weft_pool *pool, float *out, const float *in, int part, int parts)
{
    const enum weft_pool_form form = weft_pool_form(pool);
    const struct weft_pool_share share = weft_pool_share(pool, form, part, parts);
    weft_pool_run_share(pool, form, out, in, &share);
}
