/* SPDX-License-Identifier: Apache-2.0 */
/* access.h: what loops over strips share beyond arithmetic: masks and 16-bit elements in memory, whole vectors and
 * tails, and the 32 virtual lanes of folds. Strip kernels, folds and emitted C (codegen/emit.h) are made of it.
 *
 * In memory a mask is a byte for each lane, 0 or 1; what is loaded may be any number but 0 for true. The forms of tails
 * touch the first n elements alone, 0 <= n <= LANES. */
#ifndef WEFT_STRIP_ACCESS_H
#define WEFT_STRIP_ACCESS_H

#include "kernels/strip/vector.h"

/* --- memory ------------------------------------------------------------------------------------------------------- */

INLINE void store_mask(uint8_t *out, vi mask) { vbstore(out, (vb) __builtin_convertvector(mask, vsb) & 1); }
INLINE void store_mask_tail(uint8_t *out, int n, vi mask)
{
    const vb bytes = (vb) __builtin_convertvector(mask, vsb) & 1;
    for (int lane = 0; lane < n; lane++)
        out[lane] = bytes[lane];
}
INLINE vi load_mask(const uint8_t *p) { return vwiden(vbload(p)) != 0; }
INLINE vi load_mask_tail(const uint8_t *p, int n)
{
    uint8_t rest[LANES] = {0};
    for (int lane = 0; lane < n; lane++)
        rest[lane] = p[lane];
    return load_mask(rest);
}

#if WEFT_LEVEL == 2 && !defined __clang__
INLINE vh load_16_tail(const uint16_t *p, int n)
{
    return (vh)__builtin_ia32_loaddquhi256_mask((const short *)p, (v16s){0}, vtail(n));
}
INLINE void store_16_tail(uint16_t *out, int n, vh x)
{
    __builtin_ia32_storedquhi256_mask((short *)out, (v16s)x, vtail(n));
}
#else
INLINE vh load_16_tail(const uint16_t *p, int n)
{
    uint16_t rest[LANES] = {0};
    for (int lane = 0; lane < n; lane++)
        rest[lane] = p[lane];
    return vhload(rest);
}
INLINE void store_16_tail(uint16_t *out, int n, vh x)
{
    uint16_t rest[LANES];
    vhstore(rest, x);
    for (int lane = 0; lane < n; lane++)
        out[lane] = rest[lane];
}
#endif
INLINE vi load_i32_tail(const int32_t *p, int n)
{
    int32_t rest[LANES] = {0};
    for (int lane = 0; lane < n; lane++)
        rest[lane] = p[lane];
    return viload(rest);
}

/* The first n lanes of x; in the others `fill`. */
INLINE vf vfirst(vf x, int n, float fill)
{
#if LANES == 16
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif LANES == 8
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
    const vi lane = {0, 1, 2, 3};
#endif
    return vsel(lane < viall(n), x, vall(fill));
}

/* Stores past the caches, of lines that begin where STREAM_LINE says: two vectors, 64 bytes at most. `past` is the same
 * for a whole line of elements, so that asking costs next to nothing. */
#define STREAM_LINE(bytes) (2 * LANES * (bytes) < 64 ? 2 * LANES * (bytes) : 64)
INLINE int64_t stream_first(const void *p, int64_t bytes) /* elements ahead of the first such line */
{
    return (int64_t)(-(uintptr_t)p & (uintptr_t)(STREAM_LINE(bytes) - 1)) / bytes;
}
INLINE int stream_fits(const void *p, int64_t bytes) { return stream_first(p, bytes) == 0; }
INLINE void vput(float *p, vf x, int past)
{
    if (past)
        vstream(p, x);
    else
        vstore(p, x);
}
INLINE void vhput(uint16_t *p, vh x, int past)
{
    if (past)
        vhstream(p, x);
    else
        vhstore(p, x);
}
#define FETCH_POINTS 4096 /* of rows that are short enough to be asked for while the one before is written */
#define FETCH_AHEAD  1024 /* so many points, where rows are shorter; and of rows whose stages go side by side */
INLINE void stream_end(int64_t past) /* such stores are not in order with others */
{
    if (past)
        __builtin_ia32_sfence();
}

/* n times x. */
INLINE void fill_floats(float *p, int64_t n, float x)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vstore(p + i, vall(x));
    if (i < n)
        vstorem(p + i, (int)(n - i), vall(x));
}

/* --- folds -------------------------------------------------------------------------------------------------------- */

/* A line of terms is folded in as many lanes whatever the vectors are, side by side in this many of them. */
#define FOLD_LANES  32
#define FOLD_CHAINS (FOLD_LANES / LANES)

INLINE vf vadd(vf a, vf b) { return a + b; }
INLINE vf vmul(vf a, vf b) { return a * b; }

#if LANES == 16
#define UPPER_8(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
#define UPPER_4(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7)
#define UPPER_2(x) __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3)
#define FOLD_VECTOR(f, x) (x = f(x, UPPER_8(x)), x = f(x, UPPER_4(x)), x = f(x, UPPER_2(x)), f(x, vall(x[1])))
#elif LANES == 8
#define UPPER_4(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7)
#define UPPER_2(x) __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3)
#define FOLD_VECTOR(f, x) (x = f(x, UPPER_4(x)), x = f(x, UPPER_2(x)), f(x, vall(x[1])))
#else
#define UPPER_2(x) __builtin_shufflevector(x, x, 2, 3, 2, 3)
#define FOLD_VECTOR(f, x) (x = f(x, UPPER_2(x)), f(x, vall(x[1])))
#endif

/* The lanes folded by f: l with l + 16, then with l + 8, down to one, which all lanes of the result hold. */
#define FOLD_BY(name, f)                                                                                               \
    INLINE vf name(const vf lanes[FOLD_CHAINS])                                                                        \
    {                                                                                                                  \
        vf x[FOLD_CHAINS];                                                                                             \
        UNROLL for (int v = 0; v < FOLD_CHAINS; v++) x[v] = lanes[v];                                                  \
        UNROLL for (int half = FOLD_CHAINS / 2; half > 0; half /= 2)                                                   \
        {                                                                                                              \
            UNROLL for (int v = 0; v < half; v++) x[v] = f(x[v], x[half + v]);                                         \
        }                                                                                                              \
        vf one = x[0];                                                                                                 \
        one = FOLD_VECTOR(f, one);                                                                                     \
        return vall(one[0]);                                                                                           \
    }
FOLD_BY(vfold_sum, vadd)
FOLD_BY(vfold_prod, vmul)
FOLD_BY(vfold_max, vmax)
FOLD_BY(vfold_min, vmin)
FOLD_BY(vfold_max_x86, vmax_x86)
FOLD_BY(vfold_min_x86, vmin_x86)

/* Are the numbers 0, 1, 2 and so on? Where the rows are many, it is worth asking once. */
INLINE int counts_up(const float *p, int64_t n)
{
    vf count = vall(0.f), wrong = vall(0.f);
    for (int lane = 0; lane < LANES; lane++)
        count[lane] = (float)lane;
    for (int64_t i = 0; i < n; i += LANES) {
        const int live = n - i < LANES ? (int)(n - i) : LANES;
        wrong = vsel(vloadm(p + i, live, 0.f) == vfirst(count, live, 0.f), wrong, vall(1.f));
        count += (float)LANES;
    }
    return n <= 1 << 24 && !vany_from((vu)wrong, 1);
}
/* Where such numbers are x, or -1. */
INLINE int64_t place_of(float x, int64_t n)
{
    return x >= 0.f && x < (float)n && (float)(int64_t)x == x ? (int64_t)x : -1;
}

/* An extreme of numbers in one instruction a vector, where vmax and vmin wait for a comparison first: whether there was
 * a NaN is looked at beside it. The same bits but for which NaN it is. */
#if WEFT_LEVEL == 2 && !defined __clang__
typedef uint16_t vseen;
INLINE vseen vsee_nan(vseen seen, vf x) { return seen | WEFT_NAN(x); }
INLINE int vseen_any(vseen seen) { return seen != 0; }
#else
typedef vi vseen;
INLINE vseen vsee_nan(vseen seen, vf x) { return seen | (x != x); }
INLINE int vseen_any(vseen seen) { return vany_from((vu)seen, 1); }
#endif
INLINE vf vfold_max_seen(const vf lanes[FOLD_CHAINS], vseen seen)
{
    return vseen_any(seen) ? vall(__builtin_nanf("")) : vfold_max_x86(lanes);
}
INLINE vf vfold_min_seen(const vf lanes[FOLD_CHAINS], vseen seen)
{
    return vseen_any(seen) ? vall(__builtin_nanf("")) : vfold_min_x86(lanes);
}
#endif
