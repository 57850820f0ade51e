/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h: the loops of reductions and windows that are compiled per CPU level (fold_level.c).
 *
 * `op` is WEFT_K_SUM, WEFT_K_PROD, WEFT_K_MAX or WEFT_K_MIN; a mean is a sum that its caller divides. Extremes keep
 * NaN. */
#ifndef WEFT_STRIP_FOLD_H
#define WEFT_STRIP_FOLD_H

#include "kernels/kernels.h"

enum { WEFT_FOLD_LANES = 32 }; /* virtual lanes, the same whatever the vectors */

/* Taps of a window that lie inside the array: counts and steps (elements) outermost first. */
struct weft_window {
    int64_t taps[3], step[3];
};

struct weft_fold {
    const char *level; /* "__avx2" */
    uint32_t cpu;
    /* lanes[i mod 32] op= x[i], first to last; with `fresh` the lanes start from the identity. */
    void (*line)(int op, float *lanes, const float *x, int64_t n, bool fresh);
    /* The lanes folded: l with l + 16, then l + 8, 4, 2, 1. */
    float (*finish)(int op, const float *lanes);
    /* acc[c] op= x[r · row + c] for r in [0, rows), in that order. */
    void (*columns)(int op, float *acc, const float *x, int64_t row, int64_t rows, int64_t columns);
    /* acc[i] op= x[i · step]. */
    void (*strided)(int op, float *acc, const float *x, int64_t step, int64_t n);
    /* out[c] = (op over the taps of x[tap + c]) / divisor. */
    void (*window)(int op, float *out, const float *x, const struct weft_window *window, int64_t channels,
                   float divisor);
};
extern const struct weft_fold weft_fold__ref, weft_fold__avx2, weft_fold__avx512;
const struct weft_fold *weft_fold_find(uint32_t cpu);

/* What op leaves unchanged, and op on two numbers with the same bits as in vectors. */
static inline float weft_fold_identity(int op)
{
    return op == WEFT_K_MAX ? -__builtin_inff() : op == WEFT_K_MIN ? __builtin_inff() : op == WEFT_K_PROD ? 1.f : 0.f;
}
static inline float weft_fold_apply(int op, float a, float b)
{
    switch (op) {
    case WEFT_K_MAX:
        return a != a || a > b ? a : b;
    case WEFT_K_MIN:
        return a != a || a < b ? a : b;
    case WEFT_K_PROD:
        return a * b;
    default:
        return a + b;
    }
}

#endif
