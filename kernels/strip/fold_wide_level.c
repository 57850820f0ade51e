/* SPDX-License-Identifier: Apache-2.0 */
/* fold_wide_level.c: the inner loops of reductions in f64 and in integers of 64 bits. Compiled once per CPU level; the
 * text is fold_wide.inc, once for each type. Integers wrap, so they are unsigned wherever they are added or multiplied;
 * signed ones differ in their extremes only. */
#include "kernels/strip/fold.h"
#include "kernels/strip/vector.h"

enum { WIDE_LANES = WEFT_FOLD_BYTES / 8, WIDE_VECTOR = LANES / 2, WIDE_CHAINS = WIDE_LANES / WIDE_VECTOR };

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

#define SCALAR       double
#define VECTOR       vd
#define SUFFIX(name) name##_f64
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(a)    ((a) != (a))
#include "kernels/strip/fold_wide.inc"

#define SCALAR       int64_t
#define VECTOR       vl
#define SUFFIX(name) name##_i64
#define LOWEST       INT64_MIN
#define HIGHEST      INT64_MAX
#define IS_NAN(a)    ((a) & 0)
#include "kernels/strip/fold_wide.inc"

#define SCALAR       uint64_t
#define VECTOR       vq
#define SUFFIX(name) name##_u64
#define LOWEST       0
#define HIGHEST      UINT64_MAX
#define IS_NAN(a)    ((a) & 0)
#include "kernels/strip/fold_wide.inc"

/* Sums and products of i64 are those of u64, which may wrap. */
static void line_signed(int op, void *lanes, const void *x, int64_t n, bool fresh)
{
    (op == WEFT_K_SUM || op == WEFT_K_PROD ? line_u64 : line_i64)(op, lanes, x, n, fresh);
}

static void finish_signed(int op, const void *lanes, void *ret)
{
    (op == WEFT_K_SUM || op == WEFT_K_PROD ? finish_u64 : finish_i64)(op, lanes, ret);
}

static void columns_signed(int op, void *acc, const void *x, int64_t row, int64_t rows, int64_t width)
{
    (op == WEFT_K_SUM || op == WEFT_K_PROD ? columns_u64 : columns_i64)(op, acc, x, row, rows, width);
}

const struct weft_fold_loops LEVEL(weft_fold_wide)[3] = {
    {sizeof(double), line_f64, finish_f64, columns_f64, NULL, NULL, NULL, NULL},
    {sizeof(int64_t), line_signed, finish_signed, columns_signed, NULL, NULL, NULL, NULL},
    {sizeof(uint64_t), line_u64, finish_u64, columns_u64, NULL, NULL, NULL, NULL},
};
