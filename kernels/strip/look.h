/* SPDX-License-Identifier: Apache-2.0 */
/* look.h: vectors of strips that do not lie side by side in one array: pieces of several, what is read backwards, and
 * elements that are repeated. Emitted C (codegen/emit_look.c) is made of it. */
#ifndef WEFT_STRIP_LOOK_H
#define WEFT_STRIP_LOOK_H

#include "kernels/strip/access.h"

/* Pieces of a strip, one over the other: piece k has the points [bound[2k], bound[2k + 1]), as far as no later one has
 * them; what none has is `fill`. The piece that has all of a strip; the last one that has the point `at`. */
INLINE int piece_at(const int64_t *bound, int pieces)
{
    int k = pieces - 1;
    while (k > 0 && !(bound[2 * k] == 0 && bound[2 * k + 1] > 0))
        k--;
    return k;
}
/* A vector that begins in piece k, and in no later one, has elements of that piece alone if it ends at the point
 * returned or before. Piece 0 also stands for points in front of all pieces: if there are any, no vector is its
 * alone. */
INLINE int64_t piece_stop(const int64_t *bound, int pieces, int k)
{
    int64_t stop = bound[2 * k + 1];
    for (int later = k + 1; later < pieces; later++)
        stop = bound[2 * later] < stop ? bound[2 * later] : stop;
    return k == 0 && bound[0] > 0 ? INT64_MIN : stop;
}
/* Points [at, at + n) of all pieces. */
#define JOINED(name, vector, element, load)                                                                            \
    static __attribute__((noinline, cold, unused)) void name##_into(const element *const *piece, const int64_t *bound, \
                                                                    int pieces, int64_t at, int n, element fill,       \
                                                                    element *found)                                    \
    {                                                                                                                  \
        for (int lane = 0; lane < LANES; lane++) {                                                                     \
            int k = pieces - 1;                                                                                        \
            while (k >= 0 && (at + lane < bound[2 * k] || at + lane >= bound[2 * k + 1]))                              \
                k--;                                                                                                   \
            found[lane] = lane < n && k >= 0 ? piece[k][at + lane] : fill;                                             \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE vector name(const element *const *piece, const int64_t *bound, int pieces, int64_t at, int n, element fill) \
    {                                                                                                                  \
        element found[LANES];                                                                                          \
        name##_into(piece, bound, pieces, at, n, fill, found);                                                         \
        return load(found);                                                                                            \
    }
JOINED(floats_joined, vf, float, vload)
JOINED(numbers_joined, vi, int32_t, viload)
JOINED(halves_joined, vh, uint16_t, vhload)
JOINED(masks_joined, vi, uint8_t, load_mask)

#if LANES == 16
#define LANES_BACK  15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define LANES_TWICE 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7
#elif LANES == 8
#define LANES_BACK  7, 6, 5, 4, 3, 2, 1, 0
#define LANES_TWICE 0, 0, 1, 1, 2, 2, 3, 3
#else
#define LANES_BACK  3, 2, 1, 0
#define LANES_TWICE 0, 0, 1, 1
#endif
/* Points [at, at + n) of a strip whose neighbours lie in front of each other, p being at the first one. */
#define BACK(name, vector, element, load)                                                                              \
    INLINE vector name(const element *p, int64_t at, int n)                                                            \
    {                                                                                                                  \
        vector found = {0};                                                                                            \
        if (n == LANES) {                                                                                              \
            const vector x = load(p - at - (LANES - 1));                                                               \
            return __builtin_shufflevector(x, x, LANES_BACK);                                                          \
        }                                                                                                              \
        for (int lane = 0; lane < n; lane++)                                                                           \
            found[lane] = p[-at - lane];                                                                               \
        return found;                                                                                                  \
    }
BACK(floats_back, vf, float, vload)
BACK(numbers_back, vi, int32_t, viload)
BACK(halves_back, vh, uint16_t, vhload)
BACK(bytes_back, vb, uint8_t, vbload)
INLINE vi masks_back(const uint8_t *p, int64_t at, int n) { return vwiden(bytes_back(p, at, n)) != 0; }
INLINE vf floats_of_i64_back(const int64_t *p, int64_t at, int n)
{
    vf x = {0};
    for (int lane = 0; lane < n; lane++)
        x[lane] = (float)p[-at - lane];
    return x;
}

/* Point i of a strip is element (from + i * step) / over of p, those being `apart` elements from each other: points
 * [at, at + n). Elements that are there twice are loaded once. */
#define REPEATED_AT(lane) p[(quotient + (rest + (lane) * step) / over) * apart]
#define REPEATED_4(lane) REPEATED_AT(lane), REPEATED_AT(lane + 1), REPEATED_AT(lane + 2), REPEATED_AT(lane + 3)
#if LANES == 16
#define REPEATED_ALL REPEATED_4(0), REPEATED_4(4), REPEATED_4(8), REPEATED_4(12)
#elif LANES == 8
#define REPEATED_ALL REPEATED_4(0), REPEATED_4(4)
#else
#define REPEATED_ALL REPEATED_4(0)
#endif
#define REPEATED(name, vector, element)                                                                                \
    typedef element name##_half __attribute__((vector_size(LANES / 2 * sizeof(element))));                             \
    typedef name##_half name##_half_any __attribute__((aligned(sizeof(element)), may_alias));                          \
    INLINE vector name(const element *p, int64_t from, int over, int step, int64_t apart, int64_t at, int n)           \
    {                                                                                                                  \
        const int64_t quotient = (from + at * step) / over;                                                            \
        const int rest = (int)((from + at * step) % over);                                                             \
        vector found = {0};                                                                                            \
        if (over == 2 && step == 1 && apart == 1 && rest == 0 && n == LANES) {                                         \
            const name##_half x = *(const name##_half_any *)(p + quotient);                                            \
            return __builtin_shufflevector(x, x, LANES_TWICE);                                                         \
        }                                                                                                              \
        if (n == LANES)                                                                                                \
            return (vector){REPEATED_ALL};                                                                             \
        for (int lane = 0; lane < n; lane++)                                                                           \
            found[lane] = REPEATED_AT(lane);                                                                           \
        return found;                                                                                                  \
    }
REPEATED(floats_repeated, vf, float)
REPEATED(numbers_repeated, vi, int32_t)
REPEATED(halves_repeated, vh, uint16_t)
REPEATED(bytes_repeated, vb, uint8_t)
INLINE vi masks_repeated(const uint8_t *p, int64_t from, int over, int step, int64_t apart, int64_t at, int n)
{
    return vwiden(bytes_repeated(p, from, over, step, apart, at, n)) != 0;
}

#endif
