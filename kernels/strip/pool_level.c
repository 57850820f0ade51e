/* SPDX-License-Identifier: Apache-2.0 */
/* pool_level.c: the inner loops of windows. Compiled once per CPU level. Sums and maxima only; the order of terms is in
 * pool.h. */
#include "kernels/strip/pool.h"
#include "kernels/relayout/relayout.h"
#include "kernels/strip/even_odd.h"

/* One copy of `loop` per op, so that the op is a constant inside. */
#define EITHER(op, loop, ...)                                                                                          \
    do {                                                                                                               \
        if ((op) == WEFT_K_SUM)                                                                                        \
            loop(WEFT_K_SUM, __VA_ARGS__);                                                                             \
        else                                                                                                           \
            loop(WEFT_K_MAX, __VA_ARGS__);                                                                             \
    } while (0)

/* What comes is the first operand of a maximum: whether it is a NaN is then known before its turn. */
INLINE vf apply(int op, vf acc, vf x) { return op == WEFT_K_SUM ? acc + x : vmax(x, acc); }
INLINE vf divide(int op, vf a, float divisor) { return op == WEFT_K_SUM ? a / divisor : a; }

/* Up to four vectors go side by side. `last` is how many lanes the last of them has, or WHOLE where that is known to be
 * all. */
enum { WHOLE = -1 };
INLINE vf load(const float *p, int v, int vectors, int last)
{
    return last == WHOLE || v + 1 < vectors ? vload(p + v * LANES) : vloadm(p + v * LANES, last, 0.f);
}
INLINE void store(float *p, int v, int vectors, int last, vf x)
{
    if (last == WHOLE || v + 1 < vectors)
        vstore(p + v * LANES, x);
    else
        vstorem(p + v * LANES, last, x);
}
/* some(op, at, vectors, last, …) for [0, n), four vectors at a time and then what is left. */
#define BY_VECTORS(n, some, ...)                                                                                       \
    do {                                                                                                               \
        int64_t at = 0;                                                                                                \
        for (; at + 4 * LANES <= (n); at += 4 * LANES)                                                                 \
            some(op, at, 4, WHOLE, __VA_ARGS__);                                                                       \
        const int left = (int)((n)-at), last = left % LANES ? left % LANES : LANES;                                    \
        if (left > 3 * LANES)                                                                                          \
            some(op, at, 4, last, __VA_ARGS__);                                                                        \
        else if (left > 2 * LANES)                                                                                     \
            some(op, at, 3, last, __VA_ARGS__);                                                                        \
        else if (left > LANES)                                                                                         \
            some(op, at, 2, last, __VA_ARGS__);                                                                        \
        else if (left > 0)                                                                                             \
            some(op, at, 1, last, __VA_ARGS__);                                                                        \
    } while (0)

/* --- columns ------------------------------------------------------------------------------------------------------ */

INLINE void fold_columns(int op, vf *acc, const float *x, int vectors, int last, const struct weft_taps *taps)
{
    UNROLL for (int v = 0; v < vectors; v++) acc[v] = vall(weft_fold_identity(op));
    for (int64_t d = 0; d < taps->count[0]; d++) {
        const float *p = x + d * taps->step[0];
        for (int64_t h = 0; h < taps->count[1]; h++, p += taps->step[1]) {
            UNROLL for (int v = 0; v < vectors; v++) acc[v] = apply(op, acc[v], load(p, v, vectors, last));
        }
    }
}

INLINE void some_columns(int op, int64_t at, int vectors, int last, float *column, const float *x,
                         const struct weft_taps *taps)
{
    vf acc[4];
    fold_columns(op, acc, x + at, vectors, last, taps);
    UNROLL for (int v = 0; v < vectors; v++) store(column + at, v, vectors, last, acc[v]);
}

INLINE void columns_of(int op, float *column, const float *x, const struct weft_taps *taps, int64_t step, int64_t n)
{
    if (step == 1) {
        BY_VECTORS(n, some_columns, column, x, taps);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float all = weft_fold_identity(op);
        for (int64_t d = 0; d < taps->count[0]; d++)
            for (int64_t h = 0; h < taps->count[1]; h++)
                all = weft_fold_apply(op, x[d * taps->step[0] + h * taps->step[1] + i * step], all);
        column[i] = all;
    }
}

static void columns(int op, float *column, const float *x, const struct weft_taps *taps, int64_t step, int64_t n)
{
    EITHER(op, columns_of, column, x, taps, step, n);
}

/* --- along a row -------------------------------------------------------------------------------------------------- */

static void phases(float *phase, int64_t pitch, const float *column, int64_t stride, int64_t n)
{
    int64_t i = 0, to = 0;
    if (stride == 2)
        for (; i < n; i += 2 * LANES, to += LANES) {
            const vf a = vload(column + i), b = vload(column + i + LANES);
            vstore(phase + to, __builtin_shufflevector(a, b, EVEN));
            vstore(phase + pitch + to, __builtin_shufflevector(a, b, ODD));
        }
    if (stride == 4)
        for (; i < n; i += 4 * LANES, to += LANES) {
            const vf a = vload(column + i), b = vload(column + i + LANES);
            const vf c = vload(column + i + 2 * LANES), d = vload(column + i + 3 * LANES);
            const vf even = __builtin_shufflevector(a, b, EVEN), more_even = __builtin_shufflevector(c, d, EVEN);
            const vf odd = __builtin_shufflevector(a, b, ODD), more_odd = __builtin_shufflevector(c, d, ODD);
            vstore(phase + to, __builtin_shufflevector(even, more_even, EVEN));
            vstore(phase + pitch + to, __builtin_shufflevector(odd, more_odd, EVEN));
            vstore(phase + 2 * pitch + to, __builtin_shufflevector(even, more_even, ODD));
            vstore(phase + 3 * pitch + to, __builtin_shufflevector(odd, more_odd, ODD));
        }
    for (; i + stride <= n; i += stride, to++)
        for (int64_t p = 0; p < stride; p++)
            phase[p * pitch + to] = column[i + p];
    for (int64_t p = 0; i + p < n; p++)
        phase[p * pitch + to] = column[i + p];
}

INLINE void some_slide(int op, int64_t first, int vectors, int last, float *out, const float *phase, int64_t pitch,
                       int64_t stride, int64_t taps, int64_t dilation, const float *count, float counted)
{
    const int64_t turn = dilation % stride, far = dilation / stride;
    int64_t at = 0; /* the phase of the tap */
    const float *p = phase + first;
    vf acc[4];
    UNROLL for (int v = 0; v < vectors; v++) acc[v] = vall(weft_fold_identity(op));
    for (int64_t t = 0; t < taps; t++) {
        UNROLL for (int v = 0; v < vectors; v++) acc[v] = apply(op, acc[v], load(p, v, vectors, last));
        at += turn, p += turn * pitch + far;
        if (at >= stride)
            at -= stride, p += 1 - stride * pitch;
    }
    UNROLL for (int v = 0; v < vectors; v++)
    {
        if (op == WEFT_K_SUM)
            acc[v] /= load(count + first, v, vectors, last) * vall(counted); /* exact below 2^24 taps */
        store(out + first, v, vectors, last, acc[v]);
    }
}

INLINE void slide_of(int op, float *out, const float *phase, int64_t pitch, int64_t stride, int64_t taps,
                     int64_t dilation, int64_t n, const float *count, float counted)
{
    BY_VECTORS(n, some_slide, out, phase, pitch, stride, taps, dilation, count, counted);
}

static void slide(int op, float *out, const float *phase, int64_t pitch, int64_t stride, int64_t taps, int64_t dilation,
                  int64_t n, const float *count, float counted)
{
    if (stride == 1)
        EITHER(op, slide_of, out, phase, 0, 1, taps, dilation, n, count, counted);
    else
        EITHER(op, slide_of, out, phase, pitch, stride, taps, dilation, n, count, counted);
}

#if LANES > 4
#include "kernels/strip/pool_strips.inc"
#endif

INLINE void rows_of(int op, const struct weft_pool_line *l, float *out, const float *in,
                    const struct weft_pool_row *row, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        columns_of(op, l->column + r * l->step + l->left, in + row[r].in, &row[r].taps, 1, l->inside);
    if (l->stride == 1) {
        for (int64_t r = 0; r < rows; r++)
            slide_of(op, out + row[r].out, l->column + r * l->step, 0, 1, l->taps, l->dilation, l->results, l->count,
                     row[r].counted);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        phases(l->phase + r * l->step, l->pitch, l->column + r * l->step, l->stride, l->span);
    for (int64_t r = 0; r < rows; r++)
        slide_of(op, out + row[r].out, l->phase + r * l->step, l->pitch, l->stride, l->taps, l->dilation, l->results,
                 l->count, row[r].counted);
}

static void rows(int op, const struct weft_pool_line *line, float *out, const float *in,
                 const struct weft_pool_row *row, int64_t count)
{
#if LANES > 4
    if (line->index) {
        EITHER(op, strips_of, line, out, in, row, count);
        return;
    }
#endif
    EITHER(op, rows_of, line, out, in, row, count);
}

#include "kernels/strip/pool_channels.inc"

/* --- planes ------------------------------------------------------------------------------------------------------- */

/* The columns of LANES planes, then a transpose, so that the chains over columns run side by side. */
INLINE void planes_some(int op, float *ret, const float *const *plane, const struct weft_taps *taps, float divisor)
{
    float column[LANES][LANES] __attribute__((aligned(64))), turned[LANES][LANES] __attribute__((aligned(64)));
    vf acc = vall(weft_fold_identity(op));
    for (int64_t w = 0; w < taps->count[2]; w += LANES) {
        const int live = taps->count[2] - w < LANES ? (int)(taps->count[2] - w) : LANES;
        for (int p = 0; p < LANES; p++) {
            vf sum[1];
            if (live == LANES)
                fold_columns(op, sum, plane[p] + w, 1, WHOLE, taps);
            else
                fold_columns(op, sum, plane[p] + w, 1, live, taps);
            vstore(column[p], sum[0]);
        }
        LEVEL(weft_relayout_tile_32)(&(struct weft_tile){.out = (char *)turned, .in = (const char *)column,
                                                         .out_step = sizeof turned[0], .in_step = sizeof column[0],
                                                         .rows = LANES, .columns = LANES}, false);
        for (int i = 0; i < live; i++)
            acc = apply(op, acc, vload(turned[i]));
    }
    vstore(ret, divide(op, acc, divisor));
}

static void planes(int op, float *ret, const float *const *plane, const struct weft_taps *taps, float divisor)
{
    for (int p = 0; p < WEFT_POOL_PLANES; p += LANES)
        EITHER(op, planes_some, ret + p, plane + p, taps, divisor);
}

const struct weft_pool_loops LEVEL(weft_pool_loops) = {
    columns, phases, slide, LANES > 4 ? 2 * LANES : 0, rows, channels, planes};
