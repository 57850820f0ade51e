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

INLINE void store_mask(uint8_t *out, vi mask) { vbstore(out, vmask_bytes(mask)); }
INLINE void store_mask_tail(uint8_t *out, int n, vi mask)
{
    const vb bytes = vmask_bytes(mask);
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

/* Integers of 64 bits as floats. */
INLINE vf floats_of_i64(const int64_t *p)
{
#if WEFT_LEVEL == 2 && !defined __clang__ /* gcc 12 converts an element at a time */
    typedef long long v8q_any __attribute__((vector_size(64), aligned(8), may_alias));
    const v8q_any *const q = (const v8q_any *)p;
    const vf_half low = __builtin_ia32_cvtqq2ps512_mask(q[0], (vf_half){0}, (uint8_t)-1, WEFT_CURRENT);
    const vf_half high = __builtin_ia32_cvtqq2ps512_mask(q[1], (vf_half){0}, (uint8_t)-1, WEFT_CURRENT);
    return __builtin_shufflevector(low, high, LOW_LANES, HIGH_LANES);
#else
    vf x = {0};
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = (float)p[lane];
    return x;
#endif
}
INLINE vf floats_of_i64_tail(const int64_t *p, int n)
{
    vf x = {0};
    for (int lane = 0; lane < n; lane++)
        x[lane] = (float)p[lane];
    return x;
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

/* Where an index leads among `limit` elements, of which there are some: below 0 from the end, else to the nearest. */
INLINE int64_t place_in(int64_t index, int64_t limit)
{
    index += index < 0 ? limit : 0;
    return index < 0 ? 0 : index < limit ? index : limit - 1;
}
/* The same for all lanes, whose indices have so many bytes. */
typedef int64_t vl_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t vi_half __attribute__((vector_size(2 * LANES)));
typedef vi_half vi_half_any __attribute__((aligned(4), may_alias));
INLINE void places_in(const void *index, int width, int64_t limit, int64_t *place)
{
    const vl most = (vl){0} + (limit - 1);
    UNROLL for (int half = 0; half < LANES; half += LANES / 2)
    {
        vl at;
        if (width == 8)
            at = *(const vl_any *)((const int64_t *)index + half);
        else
            at = __builtin_convertvector(*(const vi_half_any *)((const int32_t *)index + half), vl);
        at += limit & (vl)(at < 0);
        const vl beyond = at > most;
        at &= ~(vl)(at < 0);
        *(vl_any *)(place + half) = (most & beyond) | (at & ~beyond);
    }
}
/* The first n lanes are elements that indices of so many bytes name; bound: limit, and elements from one to the next.
 * With `along` 1, each lane has its neighbour's elements. The other lanes are 0. Whole vectors are put together in
 * registers: a vector that is loaded right behind stores of its elements waits for them. */
#define AT(lane) p[(lane) * along + place[lane] * step]
#define AT_4(lane) AT(lane), AT(lane + 1), AT(lane + 2), AT(lane + 3)
#if LANES == 16
#define AT_ALL AT_4(0), AT_4(4), AT_4(8), AT_4(12)
#elif LANES == 8
#define AT_ALL AT_4(0), AT_4(4)
#else
#define AT_ALL AT_4(0)
#endif
#define LOOK_UP(name, vector, element)                                                                                 \
    INLINE vector name(const element *p, int along, const void *index, int width, int n, const int64_t *bound)         \
    {                                                                                                                  \
        const int64_t limit = bound[0], step = bound[1];                                                               \
        int64_t place[LANES];                                                                                          \
        vector found = {0};                                                                                            \
        if (n == LANES) {                                                                                              \
            places_in(index, width, limit, place);                                                                     \
            return (vector){AT_ALL};                                                                                   \
        }                                                                                                              \
        for (int lane = 0; lane < n; lane++) {                                                                         \
            const int64_t at = width == 8 ? ((const int64_t *)index)[lane] : ((const int32_t *)index)[lane];           \
            found[lane] = p[lane * along + place_in(at, limit) * step];                                                \
        }                                                                                                              \
        return found;                                                                                                  \
    }
LOOK_UP(look_up_floats, vf, float)
LOOK_UP(look_up_numbers, vi, int32_t)
LOOK_UP(look_up_halves, vh, uint16_t)
LOOK_UP(look_up_bytes, vb, uint8_t)
INLINE vi look_up_masks(const uint8_t *p, int along, const void *index, int width, int n, const int64_t *bound)
{
    return vwiden(look_up_bytes(p, along, index, width, n, bound)) != 0;
}

/* Positions that a strip has inside of [0, limit) are its points [first, end): kept so. `step` is 0 or 1. */
#define POSITION_ORIGIN ((int64_t)1 << 40)
INLINE void keep_inside(int64_t at, int step, int64_t limit, int64_t *first, int64_t *end)
{
    const int64_t low = step ? -at : at >= 0 && at < limit ? 0 : INT64_MAX, high = step ? limit - at : INT64_MAX;
    *first = low > *first ? low : *first;
    *end = high < *end ? high : *end;
}
INLINE float float_of(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
/* Points [at, at + n) of a strip, those outside of [first, end) being `fill`. */
#define INSIDE(name, vector, element, load)                                                                            \
    INLINE vector name(const element *p, int64_t at, int n, int64_t first, int64_t end, element fill)                  \
    {                                                                                                                  \
        if (n == LANES && at >= first && at + LANES <= end)                                                            \
            return load(p + at);                                                                                       \
        element found[LANES];                                                                                          \
        for (int lane = 0; lane < LANES; lane++)                                                                       \
            found[lane] = lane < n && at + lane >= first && at + lane < end ? p[at + lane] : fill;                     \
        return load(found);                                                                                            \
    }
INLINE int lanes_left(int64_t n, int most) { return n < 0 ? 0 : n < most ? (int)n : most; }
INLINE vf floats_inside(const float *p, int64_t at, int n, int64_t first, int64_t end, float fill)
{
    const int low = lanes_left(first - at, LANES), high = lanes_left(end - at, n);
    if (low == 0 && high == LANES)
        return vload(p + at);
#if WEFT_LEVEL == 2
    return __builtin_ia32_loadups512_mask(p + at, vall(fill), vtail(high) & (uint16_t)~vtail(low));
#elif WEFT_LEVEL == 1
    const vi some = vtail(high) & ~vtail(low);
    return vsel(some, __builtin_ia32_maskloadps256((const vf *)(p + at), some), vall(fill));
#else
    float found[LANES];
    for (int lane = 0; lane < LANES; lane++)
        found[lane] = lane >= low && lane < high ? p[at + lane] : fill;
    return vload(found);
#endif
}
INSIDE(numbers_inside, vi, int32_t, viload)
INSIDE(halves_inside, vh, uint16_t, vhload)
INSIDE(masks_inside, vi, uint8_t, load_mask)

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
INLINE void stream_end(uint64_t past) /* such stores are not in order with others */
{
    if (past)
        vfence();
}

/* How many rows lie between one stage and the next: of short rows several, so that no row waits for what the one before
 * comes to. A power of 2, at most as many as what is kept has memory for. */
#ifndef MOST_APART
#define MOST_APART 2
#endif
#define ROWS_HELD  64 /* four stages */
INLINE int64_t rows_apart(int64_t points, int64_t rows)
{
    int64_t apart = 1;
    while (apart < MOST_APART && 2 * apart <= rows && 16 * apart < points)
        apart *= 2;
    return apart;
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

/* Folds vectors of lanes to one, x[0]. */
#define FOLD_TO_VECTOR(f, lanes, x)                                                                                    \
    vf x[FOLD_CHAINS];                                                                                                 \
    UNROLL for (int v = 0; v < FOLD_CHAINS; v++) x[v] = lanes[v];                                                      \
    UNROLL for (int half = FOLD_CHAINS / 2; half > 0; half /= 2)                                                       \
    {                                                                                                                  \
        UNROLL for (int v = 0; v < half; v++) x[v] = f(x[v], x[half + v]);                                             \
    }
/* The lanes folded by f: l with l + 16, then with l + 8, down to one, which all lanes of the result hold. */
#define FOLD_BY(name, f)                                                                                               \
    INLINE vf name(const vf lanes[FOLD_CHAINS])                                                                        \
    {                                                                                                                  \
        FOLD_TO_VECTOR(f, lanes, x)                                                                                    \
        vf one = x[0];                                                                                                 \
        one = FOLD_VECTOR(f, one);                                                                                     \
        return vall(one[0]);                                                                                           \
    }
FOLD_BY(vfold_max, vmax)
FOLD_BY(vfold_min, vmin)

/* The same in narrower and narrower vectors, which shuffle sooner. */
typedef float vf_four __attribute__((vector_size(16)));
#if LANES > 4
typedef float vf_eight __attribute__((vector_size(32)));
#define EIGHT_ADD(a, b) ((a) + (b))
#define EIGHT_MUL(a, b) ((a) * (b))
#define EIGHT_MAX(a, b) __builtin_ia32_maxps256(a, b)
#define EIGHT_MIN(a, b) __builtin_ia32_minps256(a, b)
#endif
#define FOUR_ADD(a, b) ((a) + (b))
#define FOUR_MUL(a, b) ((a) * (b))
#ifdef __x86_64__
#define FOUR_MAX(a, b) __builtin_ia32_maxps(a, b)
#define FOUR_MIN(a, b) __builtin_ia32_minps(a, b)
#else
#define FOUR_MAX(a, b) vmax_x86(a, b)
#define FOUR_MIN(a, b) vmin_x86(a, b)
#endif
#if LANES == 16
#define FOLD_TO_FOUR(x, EIGHT, FOUR)                                                                                   \
    const vf_eight eight = EIGHT(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),                                \
                                 __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));                         \
    const vf_four four = FOUR(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),                                       \
                              __builtin_shufflevector(eight, eight, 4, 5, 6, 7))
#elif LANES == 8
#define FOLD_TO_FOUR(x, EIGHT, FOUR)                                                                                   \
    const vf_four four =                                                                                               \
        FOUR(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7))
#else
#define FOLD_TO_FOUR(x, EIGHT, FOUR) const vf_four four = x
#endif
#define FOLD_NARROW(name, f, EIGHT, FOUR)                                                                              \
    INLINE vf name(const vf lanes[FOLD_CHAINS])                                                                        \
    {                                                                                                                  \
        FOLD_TO_VECTOR(f, lanes, x)                                                                                    \
        FOLD_TO_FOUR(x[0], EIGHT, FOUR);                                                                               \
        const vf_four two = FOUR(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));                               \
        const vf_four one = FOUR(two, __builtin_shufflevector(two, two, 1, 1, 1, 1));                                  \
        return vall(one[0]);                                                                                           \
    }
FOLD_NARROW(vfold_sum, vadd, EIGHT_ADD, FOUR_ADD)
FOLD_NARROW(vfold_prod, vmul, EIGHT_MUL, FOUR_MUL)
FOLD_NARROW(vfold_max_x86, vmax_x86, EIGHT_MAX, FOUR_MAX)
FOLD_NARROW(vfold_min_x86, vmin_x86, EIGHT_MIN, FOUR_MIN)

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
