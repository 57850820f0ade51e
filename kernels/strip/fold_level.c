/* SPDX-License-Identifier: Apache-2.0 */
/* fold_level.c: the inner loops of reductions. Compiled once per CPU level.
 *
 * Bits do not depend on the level because the order of operations is fixed without looking at the width of vectors:
 * along a line 32 virtual lanes (two vectors of AVX-512, four of AVX2) that are folded by halves; across lines one
 * chain for each result. 32 lanes are two chains on the widest machine, which hides most of the latency of an addition;
 * more would only lengthen the fold of short lines. */
#include "kernels/strip/floats.h"
#include "kernels/strip/fold.h"

#include <assert.h>

static_assert((int)FOLD_LANES == (int)WEFT_FOLD_LANES, "folds have as many lanes everywhere");

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
    return op == WEFT_K_SUM ? vadd(a, b) : op == WEFT_K_PROD ? vmul(a, b) : op == WEFT_K_MAX ? vmax(a, b) : vmin(a, b);
}

INLINE int live_of(int64_t rest) { return rest >= LANES ? LANES : rest > 0 ? (int)rest : 0; }

INLINE void line_of(int op, float *lanes, const float *x, int64_t n, bool fresh)
{
    vf acc[FOLD_CHAINS];
    UNROLL for (int v = 0; v < FOLD_CHAINS; v++)
        acc[v] = fresh ? vall(weft_fold_identity(op)) : vload(lanes + v * LANES);
    int64_t i = 0;
    for (; i + WEFT_FOLD_LANES <= n; i += WEFT_FOLD_LANES) {
        UNROLL for (int v = 0; v < FOLD_CHAINS; v++) acc[v] = apply(op, acc[v], vload(x + i + v * LANES));
    }
    if (i < n) {
        UNROLL for (int v = 0; v < FOLD_CHAINS; v++)
        {
            const int live = live_of(n - i - v * LANES);
            if (live)
                acc[v] = apply(op, acc[v], vloadm(x + i + v * LANES, live, weft_fold_identity(op)));
        }
    }
    UNROLL for (int v = 0; v < FOLD_CHAINS; v++) vstore(lanes + v * LANES, acc[v]);
}

static void line(int op, void *lanes, const void *x, int64_t n, bool fresh)
{
    SPECIALISE(line_of, op, lanes, x, n, fresh)
}

INLINE float fold_of(int op, vf *acc)
{
    return (op == WEFT_K_SUM    ? vfold_sum(acc)
            : op == WEFT_K_PROD ? vfold_prod(acc)
            : op == WEFT_K_MAX  ? vfold_max(acc)
                                : vfold_min(acc))[0];
}

INLINE void finish_of(int op, const float *lanes, float *ret)
{
    vf acc[FOLD_CHAINS];
    UNROLL for (int v = 0; v < FOLD_CHAINS; v++) acc[v] = vload(lanes + v * LANES);
    *ret = fold_of(op, acc);
}

static void finish(int op, const void *lanes, void *ret)
{
    SPECIALISE(finish_of, op, lanes, ret)
}

/* Twice the lanes: of a run by itself, nothing else hides how long an addition takes. */
INLINE float run_of(int op, const float *x, int64_t n)
{
    vf acc[2 * FOLD_CHAINS];
    UNROLL for (int v = 0; v < 2 * FOLD_CHAINS; v++) acc[v] = vall(weft_fold_identity(op));
    int64_t i = 0;
    for (; i + 2 * WEFT_FOLD_LANES <= n; i += 2 * WEFT_FOLD_LANES) {
        UNROLL for (int v = 0; v < 2 * FOLD_CHAINS; v++) acc[v] = apply(op, acc[v], vload(x + i + v * LANES));
    }
    if (i < n) {
        UNROLL for (int v = 0; v < 2 * FOLD_CHAINS; v++)
        {
            const int live = live_of(n - i - v * LANES);
            if (live)
                acc[v] = apply(op, acc[v], vloadm(x + i + v * LANES, live, weft_fold_identity(op)));
        }
    }
    UNROLL for (int v = 0; v < FOLD_CHAINS; v++) acc[v] = apply(op, acc[v], acc[v + FOLD_CHAINS]);
    return fold_of(op, acc);
}

static float run(int op, const float *x, int64_t n)
{
    float result = 0;
#define RUN_OF(op, ret, x, n) *(ret) = run_of(op, x, n)
    SPECIALISE(RUN_OF, op, &result, x, n)
#undef RUN_OF
    return result;
}

/* Rows a pass: the running results are loaded and stored once for so many, and what is read are as many long streams,
 * which the machine finds by itself. Asking for them ahead of time made f32 a third slower (Zen 5). */
#define ROWS 8
#define CHAINS 4

/* All rows of a pass below one another, of so many columns. */
INLINE vf rows_of(int op, int term, vf acc, const void *x, int64_t row, int64_t at, int rows, int live)
{
    UNROLL for (int k = 0; k < rows; k++) acc = apply(op, acc, some_floats_at(term, x, at + k * row, live, 0.f));
    return acc;
}

/* What is left below them. */
INLINE vf rest_of(int op, int term, vf acc, const void *x, int64_t row, int64_t at, int64_t rows, int live)
{
    for (int64_t k = 0; k < rows; k++)
        acc = apply(op, acc, some_floats_at(term, x, at + k * row, live, 0.f));
    return acc;
}

INLINE void columns_of(int op, int term, float *acc, const void *x, int64_t row, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + ROWS <= rows; r += ROWS) {
        int64_t c = 0;
        for (; c + LANES <= columns; c += LANES)
            vstore(acc + c, rows_of(op, term, vload(acc + c), x, row, r * row + c, ROWS, LANES));
        if (c < columns) {
            const int live = (int)(columns - c);
            vstorem(acc + c, live, rows_of(op, term, vloadm(acc + c, live, 0.f), x, row, r * row + c, ROWS, live));
        }
    }
    int64_t c = 0;
    for (; c + LANES <= columns && r < rows; c += LANES)
        vstore(acc + c, rest_of(op, term, vload(acc + c), x, row, r * row + c, rows - r, LANES));
    if (c < columns && r < rows) {
        const int live = (int)(columns - c);
        vstorem(acc + c, live, rest_of(op, term, vloadm(acc + c, live, 0.f), x, row, r * row + c, rows - r, live));
    }
}

#define COLUMNS(name, term)                                                                                            \
    static void name(int op, void *acc, const void *x, int64_t row, int64_t rows, int64_t width)                       \
    {                                                                                                                  \
        SPECIALISE(columns_of, op, term, acc, x, row, rows, width)                                                     \
    }
COLUMNS(columns, WEFT_K_F32)
COLUMNS(columns_bf16, WEFT_K_BF16)
COLUMNS(columns_f16, WEFT_K_F16)

/* `lines` chains side by side, which hides how long an addition takes. */
INLINE void some_chains(int op, float *to, int64_t columns_to, const float *x, int64_t row, int64_t rows, int lines,
                        int live)
{
    vf acc[CHAINS];
    UNROLL for (int l = 0; l < lines; l++) acc[l] = vall(weft_fold_identity(op));
    for (int64_t r = 0; r < rows; r++) {
        UNROLL for (int l = 0; l < lines; l++)
            acc[l] = apply(op, acc[l], some_floats_at(WEFT_K_F32, x, (l * rows + r) * row, live, 0.f));
    }
    UNROLL for (int l = 0; l < lines; l++) vstorem(to + l * columns_to, live, acc[l]);
}

INLINE void lines_of(int op, float *to, int64_t columns_to, const float *x, int64_t row, int64_t rows, int lines,
                     int64_t columns)
{
    int64_t c = 0;
    for (; c + LANES <= columns; c += LANES)
        some_chains(op, to + c, columns_to, x + c, row, rows, lines, LANES);
    if (c < columns)
        some_chains(op, to + c, columns_to, x + c, row, rows, lines, (int)(columns - c));
}

INLINE void chains_of(int op, float *to, int64_t columns_to, const float *x, int64_t row, int64_t rows, int64_t lines,
                      int64_t columns)
{
    int64_t l = 0;
    for (; l + CHAINS <= lines; l += CHAINS)
        lines_of(op, to + l * columns_to, columns_to, x + l * rows * row, row, rows, CHAINS, columns);
    for (; l < lines; l++)
        lines_of(op, to + l * columns_to, columns_to, x + l * rows * row, row, rows, 1, columns);
}

static void chains(int op, float *to, int64_t columns_to, const float *x, int64_t row, int64_t rows, int64_t lines,
                   int64_t columns)
{
    SPECIALISE(chains_of, op, to, columns_to, x, row, rows, lines, columns)
}

const struct weft_fold_loops LEVEL(weft_fold_single) = {sizeof(float), line, finish, columns, columns_bf16,
                                                        columns_f16, run, chains};
const struct weft_fold LEVEL(weft_fold) = {LEVEL_TEXT, LEVEL_CPU};
