/* SPDX-License-Identifier: Apache-2.0 */
/* fold_level.c: the inner loops of reductions and windows. Compiled once per CPU level.
 *
 * Bits do not depend on the level because the order of operations is fixed without looking at the width of vectors:
 * along a line 32 virtual lanes (two vectors of AVX-512, four of AVX2) that are folded by halves; across lines, and
 * over the taps of a window, one chain for each result. 32 lanes are two chains on the widest machine, which hides most
 * of the latency of an addition; more would only lengthen the fold of short lines. */
#include "kernels/strip/fold.h"
#include "kernels/strip/vector.h"

#define CHAINS (WEFT_FOLD_LANES / LANES)
/* One copy of `loop` per op, so that the op is a constant inside. */
#define SPECIALISE(loop, op, ...)                                                                                      \
    switch (op) {                                                                                                      \
    case WEFT_K_SUM:                                                                                                   \
        loop(WEFT_K_SUM, __VA_ARGS__);                                                                                 \
        break;                                                                                                         \
    case WEFT_K_PROD:                                                                                                  \
        loop(WEFT_K_PROD, __VA_ARGS__);                                                                                \
        break;                                                                                                         \
    case WEFT_K_MAX:                                                                                                   \
        loop(WEFT_K_MAX, __VA_ARGS__);                                                                                 \
        break;                                                                                                         \
    default:                                                                                                           \
        loop(WEFT_K_MIN, __VA_ARGS__);                                                                                 \
        break;                                                                                                         \
    }

INLINE vf apply(int op, vf a, vf b)
{
    return op == WEFT_K_SUM ? a + b : op == WEFT_K_PROD ? a * b : op == WEFT_K_MAX ? vmax(a, b) : vmin(a, b);
}

INLINE int live_of(int64_t rest) { return rest >= LANES ? LANES : rest > 0 ? (int)rest : 0; }

INLINE void line_of(int op, float *lanes, const float *x, int64_t n, bool fresh)
{
    vf acc[CHAINS];
    UNROLL for (int v = 0; v < CHAINS; v++) acc[v] = fresh ? vall(weft_fold_identity(op)) : vload(lanes + v * LANES);
    int64_t i = 0;
    for (; i + WEFT_FOLD_LANES <= n; i += WEFT_FOLD_LANES) {
        UNROLL for (int v = 0; v < CHAINS; v++) acc[v] = apply(op, acc[v], vload(x + i + v * LANES));
    }
    if (i < n) {
        UNROLL for (int v = 0; v < CHAINS; v++)
        {
            const int live = live_of(n - i - v * LANES);
            if (live)
                acc[v] = apply(op, acc[v], vloadm(x + i + v * LANES, live, weft_fold_identity(op)));
        }
    }
    UNROLL for (int v = 0; v < CHAINS; v++) vstore(lanes + v * LANES, acc[v]);
}

static void line(int op, void *lanes, const void *x, int64_t n, bool fresh)
{
    SPECIALISE(line_of, op, lanes, x, n, fresh)
}

INLINE void finish_of(int op, const float *lanes, float *ret)
{
    float x[WEFT_FOLD_LANES / 2];
    for (int l = 0; l < WEFT_FOLD_LANES / 2; l += LANES)
        vstore(x + l, apply(op, vload(lanes + l), vload(lanes + WEFT_FOLD_LANES / 2 + l)));
    UNROLL for (int half = WEFT_FOLD_LANES / 4; half > 0; half /= 2)
    {
        UNROLL for (int l = 0; l < half; l++) x[l] = weft_fold_apply(op, x[l], x[half + l]);
    }
    *ret = x[0];
}

static void finish(int op, const void *lanes, void *ret)
{
    SPECIALISE(finish_of, op, lanes, ret)
}

/* Four rows a pass: the running results are loaded and stored once for four rows, and memory sees few long streams. */
INLINE void columns_of(int op, float *acc, const float *x, int64_t row, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const float *const p = x + r * row;
        for (int64_t c = 0; c < columns; c += LANES) {
            const int live = live_of(columns - c);
            vf a;
            if (live == LANES) {
                a = apply(op, vload(acc + c), vload(p + c));
                a = apply(op, a, vload(p + row + c));
                a = apply(op, a, vload(p + 2 * row + c));
                vstore(acc + c, apply(op, a, vload(p + 3 * row + c)));
            } else {
                a = apply(op, vloadm(acc + c, live, 0.f), vloadm(p + c, live, 0.f));
                a = apply(op, a, vloadm(p + row + c, live, 0.f));
                a = apply(op, a, vloadm(p + 2 * row + c, live, 0.f));
                vstorem(acc + c, live, apply(op, a, vloadm(p + 3 * row + c, live, 0.f)));
            }
        }
    }
    for (; r < rows; r++)
        for (int64_t c = 0; c < columns; c += LANES) {
            const int live = live_of(columns - c);
            vstorem(acc + c, live, apply(op, vloadm(acc + c, live, 0.f), vloadm(x + r * row + c, live, 0.f)));
        }
}

static void columns(int op, void *acc, const void *x, int64_t row, int64_t rows, int64_t width)
{
    SPECIALISE(columns_of, op, acc, x, row, rows, width)
}

#if LANES == 16
#define EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define EVEN_LANES 0, 2, 4, 6, 9, 11, 13, 15
#else
#define EVEN_LANES 0, 2, 5, 7
#endif

/* Every second element of 2 LANES - 1, by two vectors that share one: the element after the last may not exist. */
INLINE vf load_even(const float *x) { return __builtin_shufflevector(vload(x), vload(x + LANES - 1), EVEN_LANES); }

INLINE vf load_even_tail(const float *x, int n)
{
    const int places = 2 * n - 1, low = places < LANES ? places : LANES - 1;
    const vf high = places > LANES ? vloadm(x + LANES - 1, places - LANES + 1, 0.f) : vall(0.f);
    return __builtin_shufflevector(vloadm(x, low, 0.f), high, EVEN_LANES);
}

INLINE void strided_of(int op, float *acc, const float *x, int64_t step, int64_t n)
{
    int64_t i = 0;
    if (step == 1)
        for (; i + LANES <= n; i += LANES)
            vstore(acc + i, apply(op, vload(acc + i), vload(x + i)));
    else if (step == 2)
        for (; i + LANES <= n; i += LANES)
            vstore(acc + i, apply(op, vload(acc + i), load_even(x + 2 * i)));
    if (step == 1 || step == 2) {
        const int live = (int)(n - i);
        if (live > 0) {
            const vf rest = step == 1 ? vloadm(x + i, live, 0.f) : load_even_tail(x + 2 * i, live);
            vstorem(acc + i, live, apply(op, vloadm(acc + i, live, 0.f), rest));
        }
        return;
    }
    for (; i < n; i++)
        acc[i] = weft_fold_apply(op, acc[i], x[i * step]);
}

static void strided(int op, float *acc, const float *x, int64_t step,
                    int64_t n){SPECIALISE(strided_of, op, acc, x, step, n)}

/* `vectors` vectors of channels at once, in registers over all taps. The last may be partial. */
INLINE void window_of(int op, float *out, const float *x, const struct weft_window *w, int vectors, int live,
                      float divisor)
{
    vf acc[4];
    UNROLL for (int v = 0; v < vectors; v++) acc[v] = vall(weft_fold_identity(op));
    for (int64_t d = 0; d < w->taps[0]; d++)
        for (int64_t h = 0; h < w->taps[1]; h++) {
            const float *p = x + d * w->step[0] + h * w->step[1];
            for (int64_t t = 0; t < w->taps[2]; t++, p += w->step[2]) {
                UNROLL for (int v = 0; v < vectors; v++) acc[v] =
                    apply(op, acc[v], live == LANES ? vload(p + v * LANES) : vloadm(p + v * LANES, live, 0.f));
            }
        }
    UNROLL for (int v = 0; v < vectors; v++)
    {
        const vf result = op == WEFT_K_SUM ? acc[v] / divisor : acc[v];
        if (live == LANES)
            vstore(out + v * LANES, result);
        else
            vstorem(out + v * LANES, live, result);
    }
}

INLINE void windows_of(int op, float *out, const float *x, const struct weft_window *w, int64_t channels, float divisor)
{
    int64_t c = 0;
    for (; c + 4 * LANES <= channels; c += 4 * LANES)
        window_of(op, out + c, x + c, w, 4, LANES, divisor);
    for (; c + LANES <= channels; c += LANES)
        window_of(op, out + c, x + c, w, 1, LANES, divisor);
    if (c < channels)
        window_of(op, out + c, x + c, w, 1, (int)(channels - c), divisor);
}

static void window(int op, float *out, const float *x, const struct weft_window *w, int64_t channels, float divisor)
{
    SPECIALISE(windows_of, op, out, x, w, channels, divisor)
}

/* `vectors` vectors of positions at once, in registers over all taps; of the only one maybe `live` lanes. */
INLINE void position_of(int op, float *out, const float *x, const struct weft_window *w, int step, int vectors,
                        int live, float divisor)
{
    vf acc[4];
    UNROLL for (int v = 0; v < vectors; v++) acc[v] = vall(weft_fold_identity(op));
    for (int64_t d = 0; d < w->taps[0]; d++)
        for (int64_t h = 0; h < w->taps[1]; h++) {
            const float *p = x + d * w->step[0] + h * w->step[1];
            for (int64_t t = 0; t < w->taps[2]; t++, p += w->step[2]) {
                UNROLL for (int v = 0; v < vectors; v++)
                {
                    const float *const q = p + v * step * LANES;
                    const vf whole = live < LANES ? (step == 1 ? vloadm(q, live, 0.f) : load_even_tail(q, live))
                                     : step == 1  ? vload(q)
                                                  : load_even(q);
                    acc[v] = apply(op, acc[v], whole);
                }
            }
        }
    UNROLL for (int v = 0; v < vectors; v++)
    {
        const vf result = op == WEFT_K_SUM ? acc[v] / divisor : acc[v];
        if (live == LANES)
            vstore(out + v * LANES, result);
        else
            vstorem(out + v * LANES, live, result);
    }
}

INLINE void positions_of(int op, float *out, const float *x, const struct weft_window *w, int step, int64_t n,
                         float divisor)
{
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        position_of(op, out + i, x + i * step, w, step, 4, LANES, divisor);
    for (; i + LANES <= n; i += LANES)
        position_of(op, out + i, x + i * step, w, step, 1, LANES, divisor);
    if (i < n)
        position_of(op, out + i, x + i * step, w, step, 1, (int)(n - i), divisor);
}

static void positions(int op, float *out, const float *x, const struct weft_window *w, int64_t step, int64_t n,
                      float divisor)
{
    if (op == WEFT_K_SUM)
        (step == 1 ? positions_of(WEFT_K_SUM, out, x, w, 1, n, divisor)
                   : positions_of(WEFT_K_SUM, out, x, w, 2, n, divisor));
    else
        (step == 1 ? positions_of(WEFT_K_MAX, out, x, w, 1, n, divisor)
                   : positions_of(WEFT_K_MAX, out, x, w, 2, n, divisor));
}

const struct weft_fold_loops LEVEL(weft_fold_single) = {sizeof(float), line, finish, columns};
const struct weft_fold LEVEL(weft_fold) = {LEVEL_TEXT, LEVEL_CPU, strided, window, positions};
