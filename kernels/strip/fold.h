/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h: the loops of reductions that are compiled per CPU level (fold_level.c).
 *
 * `op` is WEFT_K_SUM, WEFT_K_PROD, WEFT_K_MAX or WEFT_K_MIN; a mean is a sum that its caller divides. Extremes keep
 * NaN. */
#ifndef WEFT_STRIP_FOLD_H
#define WEFT_STRIP_FOLD_H

#include "kernels/kernels.h"

enum { WEFT_FOLD_LANES = 32 }; /* virtual lanes of f32, the same whatever the vectors; of 64-bit types half as many */
enum { WEFT_FOLD_BYTES = 128 }; /* of all lanes */

/* What terms are added up in. Every dtype of 16 bits and less widens to one of these. */
enum weft_fold_kind { WEFT_FOLD_F32, WEFT_FOLD_F64, WEFT_FOLD_I64, WEFT_FOLD_U64, WEFT_FOLD_KINDS };

/* acc[c] op= x[r · row + c] for r in [0, rows), in that order. */
typedef void (*weft_fold_columns)(int op, void *acc, const void *x, int64_t row, int64_t rows, int64_t columns);

struct weft_fold_loops {
    int64_t bytes; /* of an element */
    /* lanes[i mod 32] op= x[i], first to last; with `fresh` the lanes start from the identity. */
    void (*line)(int op, void *lanes, const void *x, int64_t n, bool fresh);
    /* The lanes folded: l with l + half, then with half of that, down to one. */
    void (*finish)(int op, const void *lanes, void *ret);
    weft_fold_columns columns, columns_bf16, columns_f16; /* of terms of the type; in 16 bits, for f32 alone */
    /* For f32 alone: lanes[i mod 64] op= x[i], first to last, and the lanes folded as by finish. */
    float (*run)(int op, const float *x, int64_t n);
    /* The same: to[l · columns_to + c] = x[(l · rows + r) · row + c] over r in [0, rows), in that order. */
    void (*chains)(int op, float *to, int64_t columns_to, const float *x, int64_t row, int64_t rows, int64_t lines,
                   int64_t columns);
};

struct weft_fold {
    const char *level; /* "__avx2" */
    uint32_t cpu;
};
extern const struct weft_fold_loops weft_fold_single__ref, weft_fold_single__avx2, weft_fold_single__avx512;
/* fold_wide_level.c: of the kinds of 64 bits, in their order. */
extern const struct weft_fold_loops weft_fold_wide__ref[3], weft_fold_wide__avx2[3], weft_fold_wide__avx512[3];
extern const struct weft_fold weft_fold__ref, weft_fold__avx2, weft_fold__avx512;
const struct weft_fold *weft_fold_find(uint32_t cpu);
const struct weft_fold_loops *weft_fold_loops_find(enum weft_fold_kind kind, uint32_t cpu);

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
