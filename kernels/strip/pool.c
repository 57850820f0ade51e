/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: maxima and means over windows.
 *
 *   y[n,c,o…] = op over taps t… of x[n, c, o·stride - pad + t·dilation …], taps outside the array left out
 *
 * Fewer than three spatial axes are three with leading extents of 1. Two forms:
 *   channels   channels contiguous on both sides: for each position, vectors of channels stay in registers over all
 *              taps
 *   rows       any strides: for each row of positions, a buffer of results, to which each tap adds a whole row of the
 *              operand; only positions for which that tap lies inside take part, so there is no test per element. In a
 *              contiguous row, positions away from its ends stay in registers over all taps
 * Both take the taps of a result in the same order, so layouts do not change bits either. Parts are rows of positions.
 *
 * Not done: sharing work between overlapping windows (separable maxima, running sums): kernels are 2 or 3 wide in
 * practice, and running sums would round differently. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/fold.h"
#include "kernels/walk.h"

#define CHUNK 512 /* positions of a row at a time */

/* The descriptor with exactly three spatial axes: depth, height, width. */
struct space {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_after[3];
    int64_t in_step[3], out_step[3];
};

static struct space space_of(const struct weft_pool *pool)
{
    struct space s;
    for (int i = 0; i < 3; i++) {
        const int axis = i - (3 - pool->spatial);
        const bool real = axis >= 0;
        s.in[i] = real ? pool->in_extent[axis] : 1;
        s.out[i] = real ? pool->out_extent[axis] : 1;
        s.kernel[i] = real ? pool->kernel[axis] : 1;
        s.stride[i] = real ? pool->stride[axis] : 1;
        s.dilation[i] = real ? pool->dilation[axis] : 1;
        s.pad[i] = real ? pool->pad[axis] : 0;
        s.pad_after[i] = real ? pool->pad_after[axis] : 0;
        s.in_step[i] = real ? pool->in_stride[2 + axis] : 0;
        s.out_step[i] = real ? pool->out_stride[2 + axis] : 0;
    }
    return s;
}

static bool by_channels(const struct weft_pool *pool)
{
    return pool->c >= 4 && pool->in_stride[1] == 1 && pool->out_stride[1] == 1;
}

const char *weft_pool_name(const struct weft_pool *pool)
{
    static const char *const names[] = {
#define POOL(id, level, cpu) "weft_pool_" #id "__" #level,
#include "kernels/strip/pool.def"
    };
    const struct weft_fold *const fold = weft_fold_find(pool->cpu);
    return names[2 * (fold == &weft_fold__avx512 ? 2 : fold == &weft_fold__avx2 ? 1 : 0) + by_channels(pool)];
}

static int64_t rows_of(const struct weft_pool *pool, const struct space *s)
{
    return pool->n * s->out[0] * s->out[1] * (by_channels(pool) ? 1 : pool->c);
}

void weft_pool_prepare(struct weft_pool *pool, int workers)
{
    const struct space s = space_of(pool);
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t results = pool->n * pool->c * s.out[0] * s.out[1] * s.out[2], rows = rows_of(pool, &s);
    const int32_t parts = weft_parts_for(4 * results * taps, workers);
    pool->parts = rows < 1 ? 1 : rows < parts ? (int32_t)rows : parts;
}

/* ceil(a / b) for b > 0, not below 0. */
static int64_t ceil_or_zero(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The taps of axis i that lie inside for position o: [first, end). How many a mean divides by. */
struct taps {
    int64_t first, end, counted;
};

static struct taps taps_at(const struct weft_pool *pool, const struct space *s, int i, int64_t o)
{
    const int64_t start = o * s->stride[i] - s->pad[i];
    struct taps t;
    t.first = least(ceil_or_zero(-start, s->dilation[i]), s->kernel[i]);
    t.end = least(ceil_or_zero(s->in[i] - start, s->dilation[i]), s->kernel[i]);
    if (t.end < t.first)
        t.end = t.first;
    t.counted = pool->count_pad ? least(ceil_or_zero(s->in[i] + s->pad_after[i] - start, s->dilation[i]), s->kernel[i])
                                : t.end - t.first;
    return t;
}

static void row_of_channels(const struct weft_pool *pool, const struct space *s, const struct weft_fold *fold,
                            float *out, const float *in, int64_t depth, int64_t height)
{
    struct taps t[3] = {taps_at(pool, s, 0, depth), taps_at(pool, s, 1, height)};
    const int op = pool->mean ? WEFT_K_SUM : WEFT_K_MAX;
    const int64_t o[2] = {depth, height};
    for (int64_t width = 0; width < s->out[2]; width++) {
        t[2] = taps_at(pool, s, 2, width);
        struct weft_window window;
        const float *from = in;
        for (int i = 0; i < 3; i++) {
            const int64_t start = (i < 2 ? o[i] : width) * s->stride[i] - s->pad[i];
            window.taps[i] = t[i].end - t[i].first;
            window.step[i] = s->dilation[i] * s->in_step[i];
            if (window.taps[i] > 0)
                from += (start + t[i].first * s->dilation[i]) * s->in_step[i];
        }
        const float divisor = (float)(t[0].counted * t[1].counted * t[2].counted);
        fold->window(op, out + width * s->out_step[2], from, &window, pool->c, divisor);
    }
}

/* Positions [from, to) of a row, tap by tap. */
static void some_positions(const struct weft_pool *pool, const struct space *s, const struct weft_fold *fold,
                           float *out, const float *in, int64_t depth, int64_t height, int64_t from, int64_t to)
{
    const struct taps td = taps_at(pool, s, 0, depth), th = taps_at(pool, s, 1, height);
    const int op = pool->mean ? WEFT_K_SUM : WEFT_K_MAX;
    float acc[CHUNK];
    for (int64_t w = from; w < to; w += CHUNK) {
        const int64_t n = least(CHUNK, to - w);
        for (int64_t i = 0; i < n; i++)
            acc[i] = weft_fold_identity(op);
        for (int64_t d = td.first; d < td.end; d++)
            for (int64_t h = th.first; h < th.end; h++) {
                const float *const row = in + (depth * s->stride[0] - s->pad[0] + d * s->dilation[0]) * s->in_step[0] +
                                         (height * s->stride[1] - s->pad[1] + h * s->dilation[1]) * s->in_step[1];
                for (int64_t t = 0; t < s->kernel[2]; t++) { /* this tap is inside for positions [first, end) */
                    const int64_t shift = t * s->dilation[2] - s->pad[2];
                    const int64_t first = least(ceil_or_zero(-shift - w * s->stride[2], s->stride[2]), n);
                    const int64_t end = least(ceil_or_zero(s->in[2] - shift - w * s->stride[2], s->stride[2]), n);
                    if (first < end)
                        fold->strided(op, acc + first, row + ((w + first) * s->stride[2] + shift) * s->in_step[2],
                                      s->stride[2] * s->in_step[2], end - first);
                }
            }
        if (pool->mean)
            for (int64_t i = 0; i < n; i++)
                acc[i] /= (float)(td.counted * th.counted * taps_at(pool, s, 2, w + i).counted);
        weft_copy_strided(sizeof *acc, out + w * s->out_step[2], s->out_step[2], acc, 1, n);
    }
}

/* The positions all of whose taps along the row lie inside stay in registers over their taps, if the row is contiguous;
 * those at the ends go tap by tap. */
static void row_of_positions(const struct weft_pool *pool, const struct space *s, const struct weft_fold *fold,
                             float *out, const float *in, int64_t depth, int64_t height)
{
    const struct taps t[2] = {taps_at(pool, s, 0, depth), taps_at(pool, s, 1, height)};
    const int64_t room = s->in[2] + s->pad[2] - (s->kernel[2] - 1) * s->dilation[2];
    const int64_t first = least(ceil_or_zero(s->pad[2], s->stride[2]), s->out[2]);
    const int64_t end = least(ceil_or_zero(room, s->stride[2]), s->out[2]);
    if (s->in_step[2] != 1 || s->out_step[2] != 1 || s->stride[2] > 2 || end <= first || t[0].end == t[0].first ||
        t[1].end == t[1].first) {
        some_positions(pool, s, fold, out, in, depth, height, 0, s->out[2]);
        return;
    }
    struct weft_window window = {.taps = {t[0].end - t[0].first, t[1].end - t[1].first, s->kernel[2]},
                                 .step = {s->dilation[0] * s->in_step[0], s->dilation[1] * s->in_step[1],
                                          s->dilation[2]}};
    const float *const from = in + (depth * s->stride[0] - s->pad[0] + t[0].first * s->dilation[0]) * s->in_step[0] +
                              (height * s->stride[1] - s->pad[1] + t[1].first * s->dilation[1]) * s->in_step[1] +
                              first * s->stride[2] - s->pad[2];
    const float divisor = (float)(t[0].counted * t[1].counted * s->kernel[2]);
    some_positions(pool, s, fold, out, in, depth, height, 0, first);
    fold->positions(pool->mean ? WEFT_K_SUM : WEFT_K_MAX, out + first, from, &window, s->stride[2], end - first,
                    divisor);
    some_positions(pool, s, fold, out, in, depth, height, end, s->out[2]);
}

void weft_pool_run(const struct weft_pool *pool, float *out, const float *in, int part, int parts)
{
    const struct space s = space_of(pool);
    const struct weft_fold *const fold = weft_fold_find(pool->cpu);
    const bool channels = by_channels(pool);
    const int64_t planes = channels ? 1 : pool->c;
    int64_t at, end;
    weft_share(rows_of(pool, &s), 1, part, parts, &at, &end);
    for (; at < end; at++) {
        const int64_t height = at % s.out[1], depth = at / s.out[1] % s.out[0];
        const int64_t c = at / s.out[1] / s.out[0] % planes, n = at / s.out[1] / s.out[0] / planes;
        const float *const from = in + n * pool->in_stride[0] + c * pool->in_stride[1];
        float *const to =
            out + n * pool->out_stride[0] + c * pool->out_stride[1] + depth * s.out_step[0] + height * s.out_step[1];
        (channels ? row_of_channels : row_of_positions)(pool, &s, fold, to, from, depth, height);
    }
}
