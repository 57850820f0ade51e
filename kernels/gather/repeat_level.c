/* SPDX-License-Identifier: Apache-2.0 */
/* repeat_level.c: blocks and elements of which neighbours often are the same, as where a picture is made larger.
 * Compiled once per CPU level.
 *
 * A block is loaded once, as a power of two of bytes or as vectors of which the last overlaps the one before, and
 * stored as often as it is repeated. Below a vector, a block that others follow is stored with what lies behind it,
 * which the next one overwrites. Neighbours that are neighbours in the operand, too, are copied in one piece.
 *
 * Elements: a vector of results is a permutation of a vector of operands where all of its places lie in that, which is
 * so for a result with no fewer elements than the operand. */
#include "kernels/gather/gather.h"
#include "kernels/strip/vector.h"

#include <string.h>

#define VECTOR (4 * LANES)

typedef uint8_t v_8 __attribute__((vector_size(VECTOR)));
typedef vf vf_odd __attribute__((aligned(1), may_alias));
typedef v_8 v_whole __attribute__((aligned(1), may_alias));
typedef uint32_t v_quarter __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t v_half __attribute__((vector_size(32), aligned(1), may_alias));

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Places of a line from i on that are the same as place i, or its neighbours, `block` elements apart. */
INLINE int64_t equals_at(const int64_t *place, int64_t i, int64_t n)
{
    int64_t end = i + 1;
    while (end < n && place[end] == place[i])
        end++;
    return end - i;
}

static int64_t neighbours_at(const int64_t *place, int64_t block, int64_t i, int64_t n)
{
    int64_t end = i + 1;
    while (end < n && place[end] == place[end - 1] + block)
        end++;
    return end - i;
}

/* A block in two pieces that may overlap, `run` times. */
#define STORE_HALVES(type)                                                                                             \
    {                                                                                                                  \
        const int64_t end = b->size - (int64_t)sizeof(type);                                                          \
        const type first = *(const type *)(const void *)block, last = *(const type *)(const void *)(block + end);      \
        for (int64_t k = 0; k < run; k++, to += b->step)                                                               \
            *(type *)(void *)to = first, *(type *)(void *)(to + end) = last;                                           \
    }

typedef uint16_t loose_16 __attribute__((aligned(1), may_alias));
typedef uint32_t loose_32 __attribute__((aligned(1), may_alias));
typedef uint64_t loose_64 __attribute__((aligned(1), may_alias));

static void store_exactly(const struct weft_repeat *b, char *to, const char *block, int64_t run)
{
    if (b->size < 2)
        for (int64_t k = 0; k < run; k++, to += b->step)
            *to = *block;
    else if (b->size < 4)
        STORE_HALVES(loose_16)
    else if (b->size < 8)
        STORE_HALVES(loose_32)
    else if (b->size < 16)
        STORE_HALVES(loose_64)
#if LANES >= 16
    else if (b->size >= 32)
        STORE_HALVES(v_half)
#endif
    else
        STORE_HALVES(v_quarter)
}

/* Blocks of up to `width` bytes, stored as `width` bytes where others follow, or where they have so many. */
#define REPEAT_WIDE(name, type)                                                                                        \
    static void name(const struct weft_repeat *b, char *to, const char *from, const int64_t *place, int64_t n)         \
    {                                                                                                                  \
        const int64_t width = sizeof(type), more = width - b->size;                                                    \
        const bool dense = b->step == b->size;                                                                         \
        const char *const last = from + b->last * b->bytes - more; /* from where no `width` bytes can be read */       \
        const int64_t wide = !more ? n : dense ? n - (more + b->size - 1) / b->size : 0;                               \
        int64_t i = 0, run;                                                                                            \
        for (; i < n; i += run, to += run * b->step) {                                                                 \
            const char *const block = from + place[i] * b->bytes;                                                      \
            run = 1;                                                                                                   \
            if (i + 1 < n && place[i + 1] == place[i]) {                                                               \
                run = equals_at(place, i, n);                                                                          \
            } else if (dense && i + 2 < n && place[i + 1] == place[i] + b->block &&                                    \
                       place[i + 2] == place[i + 1] + b->block) {                                                      \
                run = neighbours_at(place, b->block, i, n);                                                            \
                memcpy(to, block, (size_t)(run * b->size));                                                            \
                continue;                                                                                              \
            }                                                                                                          \
            if (i + run > wide || (more && block > last)) {                                                            \
                store_exactly(b, to, block, run);                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            const type x = *(const type *)(const void *)block;                                                         \
            for (int64_t k = 0; k < run; k++)                                                                          \
                *(type *)(void *)(to + k * b->step) = x;                                                               \
        }                                                                                                              \
    }
REPEAT_WIDE(repeat_2, loose_16)
REPEAT_WIDE(repeat_4, loose_32)
REPEAT_WIDE(repeat_8, loose_64)
REPEAT_WIDE(repeat_16, v_quarter)
#if LANES >= 8
REPEAT_WIDE(repeat_32, v_half)
#endif
#if LANES >= 16
REPEAT_WIDE(repeat_64, v_whole)
#endif

/* `bytes` of a block, which fill the last of `count` vectors at least in part; it is at least a vector. */
INLINE void store_vectors(const int count, char *to, int64_t step, const char *from, int64_t bytes, int64_t run)
{
    v_8 x[4];
    UNROLL for (int k = 0; k < count; k++)
        x[k] = *(const v_whole *)(const void *)(from + (k < count - 1 ? k * VECTOR : bytes - VECTOR));
    for (int64_t r = 0; r < run; r++, to += step) {
        UNROLL for (int k = 0; k < count; k++)
            *(v_whole *)(void *)(to + (k < count - 1 ? k * VECTOR : bytes - VECTOR)) = x[k];
    }
}

INLINE void store_long(char *to, int64_t step, const char *from, int64_t bytes, int64_t run)
{
    for (; bytes > 4 * VECTOR; bytes -= 4 * VECTOR, to += 4 * VECTOR, from += 4 * VECTOR)
        store_vectors(4, to, step, from, 4 * VECTOR, run);
    if (bytes > 3 * VECTOR)
        store_vectors(4, to, step, from, bytes, run);
    else if (bytes > 2 * VECTOR)
        store_vectors(3, to, step, from, bytes, run);
    else if (bytes > VECTOR)
        store_vectors(2, to, step, from, bytes, run);
    else
        store_vectors(1, to + bytes - VECTOR, step, from + bytes - VECTOR, VECTOR, run);
}

enum { COPIED = 4096 }; /* bytes from which on the C library copies faster */

/* Blocks of more than a vector; `count` vectors, or 0: any. */
INLINE void repeat_vectors(const int count, const struct weft_repeat *b, char *to, const char *from,
                           const int64_t *place, int64_t n)
{
    for (int64_t i = 0, run; i < n; i += run, to += run * b->step) {
        const char *const block = from + place[i] * b->bytes;
        run = 1;
        if (i + 1 < n && place[i + 1] == place[i]) {
            run = equals_at(place, i, n);
        } else if (i + 2 < n && b->step == b->size && place[i + 1] == place[i] + b->block &&
                   place[i + 2] == place[i + 1] + b->block) {
            run = neighbours_at(place, b->block, i, n);
            memcpy(to, block, (size_t)(run * b->size));
            continue;
        }
        if (count)
            store_vectors(count, to, b->step, block, b->size, run);
        else if (run == 1 && b->size >= COPIED)
            memcpy(to, block, (size_t)b->size);
        else
            store_long(to, b->step, block, b->size, run);
    }
}

void LEVEL(weft_repeat_blocks)(const struct weft_repeat *b, char *to, const char *from, const int64_t *place, int64_t n)
{
    if (b->size <= 2)
        repeat_2(b, to, from, place, n);
    else if (b->size <= 4)
        repeat_4(b, to, from, place, n);
    else if (b->size <= 8)
        repeat_8(b, to, from, place, n);
    else if (b->size <= 16)
        repeat_16(b, to, from, place, n);
#if LANES >= 8
    else if (b->size <= 32)
        repeat_32(b, to, from, place, n);
#endif
#if LANES >= 16
    else if (b->size <= 64)
        repeat_64(b, to, from, place, n);
#endif
    else if (b->size <= 2 * VECTOR)
        repeat_vectors(2, b, to, from, place, n);
    else if (b->size <= 4 * VECTOR && b->size > 3 * VECTOR)
        repeat_vectors(4, b, to, from, place, n);
    else
        repeat_vectors(0, b, to, from, place, n);
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* Vectors of 16 bytes, too, for lines shorter than a vector. */
typedef uint32_t u_4 __attribute__((vector_size(16)));
typedef uint64_t q_4 __attribute__((vector_size(16)));
typedef u_4 u_4_odd __attribute__((aligned(1), may_alias));
typedef vu vu_odd __attribute__((aligned(1), may_alias));

#define LOW_TWICE_4  0, 0, 1, 1
#define HIGH_TWICE_4 2, 2, 3, 3
#if LANES == 16
#define LOW_TWICE  0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7
#define HIGH_TWICE 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15
#elif LANES == 8
#define LOW_TWICE  0, 0, 1, 1, 2, 2, 3, 3
#define HIGH_TWICE 4, 4, 5, 5, 6, 6, 7, 7
#else
#define LOW_TWICE  LOW_TWICE_4
#define HIGH_TWICE HIGH_TWICE_4
#endif

/* twice: of 32 bits twice, those of each element twice: of "abab" of 16 bits "aabb", of that the same of 8. pairs: a
 * line of at least a vector; the last goes back over what is there. */
#define PAIRS(twice, pairs, v_32, v_64, v_odd, low_twice, high_twice)                                                  \
    INLINE v_32 twice(v_32 x, const int bytes)                                                                         \
    {                                                                                                                  \
        if (bytes < 4) {                                                                                               \
            const v_64 q = (v_64)x, low = q & 0xffff, high = q & 0xffff000000000000;                                   \
            x = (v_32)(low | low << 16 | high | high >> 16);                                                           \
        }                                                                                                              \
        if (bytes < 2) {                                                                                               \
            const v_32 low = x & 0xff, high = x & 0xff000000;                                                          \
            x = low | low << 8 | high | high >> 8;                                                                     \
        }                                                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    INLINE void pairs(char *to, const char *from, int64_t n, const int bytes)                                          \
    {                                                                                                                  \
        const int64_t lanes = (int64_t)sizeof(v_32) / bytes;                                                           \
        for (int64_t i = 0; i < n; i += lanes) {                                                                       \
            const int64_t at = n - i < lanes ? n - lanes : i;                                                          \
            const v_32 x = *(const v_odd *)(const void *)(from + at * bytes);                                          \
            const v_32 low = __builtin_shufflevector(x, x, low_twice);                                                 \
            const v_32 high = __builtin_shufflevector(x, x, high_twice);                                               \
            *(v_odd *)(void *)(to + 2 * at * bytes) = twice(low, bytes);                                               \
            *(v_odd *)(void *)(to + 2 * at * bytes + (int64_t)sizeof(v_32)) = twice(high, bytes);                      \
        }                                                                                                              \
    }
PAIRS(twice, pairs_wide, vu, vq, vu_odd, LOW_TWICE, HIGH_TWICE)
PAIRS(twice_4, pairs_narrow, u_4, q_4, u_4_odd, LOW_TWICE_4, HIGH_TWICE_4)

INLINE void pairs_of(char *to, const char *from, int64_t n, const int bytes)
{
    if (n * bytes >= VECTOR)
        pairs_wide(to, from, n, bytes);
    else if (n * bytes >= 16)
        pairs_narrow(to, from, n, bytes);
    else
        for (int64_t i = 0; i < 2 * n; i++)
            __builtin_memcpy(to + i * bytes, from + i / 2 * bytes, (size_t)bytes);
}

void LEVEL(weft_repeat_pairs)(int bytes, void *to, const void *from, int64_t n)
{
    if (bytes == 1)
        pairs_of(to, from, n, 1);
    else if (bytes == 2)
        pairs_of(to, from, n, 2);
    else
        pairs_of(to, from, n, 4);
}

#if LANES >= 8
typedef vl v_places __attribute__((aligned(8), may_alias));

#if LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
INLINE vf permute(vf x, vi index) { return vpick(x, index, x); }
#else
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
INLINE vf permute(vf x, vi index) { return __builtin_ia32_permvarsf256(x, index); }
#endif
#endif

/* Results of 4 bytes. */
int64_t LEVEL(weft_repeat_near)(float *to, const float *from, const int64_t *place, int64_t last, int64_t n)
{
    int64_t i = 0;
#if LANES >= 8
    for (; i + LANES <= n; i += LANES) {
        const int64_t first = place[i] < last - (LANES - 1) ? place[i] : last - (LANES - 1);
        const vl low = *(const v_places *)(place + i) - first;
        const vl high = *(const v_places *)(place + i + LANES / 2) - first;
        const vi index = __builtin_shufflevector((vi)low, (vi)high, EVEN);
        *(vf_odd *)(to + i) = permute(*(const vf_odd *)(from + first), index);
    }
#else
    (void)to, (void)from, (void)place, (void)last, (void)n; /* nothing permutes: all are looked up */
#endif
    return i;
}
