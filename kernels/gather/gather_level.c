/* SPDX-License-Identifier: Apache-2.0 */
/* gather_level.c: indices brought into range, and elements looked up by place. Compiled once per CPU level.
 *
 * Ranges are checked half a vector of 64-bit numbers at a time. Look-ups load one element after the other, at each
 * level: instructions that gather were a sixth faster at best (Sapphire Rapids, 32 bits: 0.27 ns an element, 0.32 by
 * single loads), and several times slower on other CPUs. */
#include "kernels/gather/gather.h"
#include "kernels/strip/vector.h"

#include <string.h>

#define NUMBERS (LANES / 2)

typedef int64_t v_odd_64 __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef int32_t v_half __attribute__((vector_size(2 * LANES)));
typedef v_half v_odd_32 __attribute__((aligned(1), may_alias));

INLINE int64_t place_of(const struct weft_gather_line *l, int64_t i, int64_t number)
{
    int64_t at = number + (number < 0 ? l->limit : 0);
    if (l->strict && (at < 0 || at >= l->limit))
        return WEFT_NOWHERE;
    at = at < 0 ? 0 : at;
    at = at >= l->limit ? l->limit - 1 : at;
    return l->first + i * l->along + at * l->step;
}

INLINE vl vlall(int64_t x) { return x - (vl){0}; }

INLINE void places_of(const struct weft_gather_line *l, const bool wide, const bool plain, int64_t *place,
                      const void *index)
{
    const int64_t *const numbers = index;
    const int32_t *const narrow = index;
    const vl strict = vlall(l->strict ? -1 : 0), limit = vlall(l->limit), most = limit - 1;
    const vl along = vlall(l->along * NUMBERS);
    vl row = vlall(l->first);
    for (int i = 0; i < NUMBERS; i++)
        row[i] += i * l->along;
    int64_t i = 0;
    for (; i + NUMBERS <= l->n && l->index == 1; i += NUMBERS) {
        vl at;
        if (wide)
            at = *(const v_odd_64 *)(numbers + i);
        else
            at = __builtin_convertvector(*(const v_odd_32 *)(narrow + i), vl);
        at += limit & (vl)(at < 0);
        const vl below = at < 0, beyond = at > most;
        at &= ~below;
        at = (most & beyond) | (at & ~beyond);
        at = plain ? at : row + at * l->step;
        const vl nowhere = strict & (below | beyond);
        *(v_odd_64 *)(place + i) = (vlall(WEFT_NOWHERE) & nowhere) | (at & ~nowhere);
        row += along;
    }
    for (; i < l->n; i++)
        place[i] = place_of(l, i, wide ? numbers[i * l->index] : narrow[i * l->index]);
}

static void places_fn(const struct weft_gather_line *l, bool wide, int64_t *place, const void *index)
{
    const bool plain = l->step == 1 && l->along == 0 && l->first == 0;
    if (wide && plain)
        places_of(l, true, true, place, index);
    else if (wide)
        places_of(l, true, false, place, index);
    else if (plain)
        places_of(l, false, true, place, index);
    else
        places_of(l, false, false, place, index);
}

/* Four loads, then four stores: the compiler cannot know that they are of different arrays. */
#define LOOK_UP(name, type, loose)                                                                                     \
    INLINE void name(type *to, int64_t stride, const loose *from, const int64_t *place, int64_t n)                     \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 4 <= n; i += 4) {                                                                                   \
            const type a = from[place[i]], b = from[place[i + 1]], c = from[place[i + 2]], d = from[place[i + 3]];     \
            to[i * stride] = a;                                                                                        \
            to[(i + 1) * stride] = b;                                                                                  \
            to[(i + 2) * stride] = c;                                                                                  \
            to[(i + 3) * stride] = d;                                                                                  \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            to[i * stride] = from[place[i]];                                                                           \
    }
LOOK_UP(look_up_8, uint8_t, uint8_t)
LOOK_UP(look_up_16, uint16_t, weft_loose_u16)
LOOK_UP(look_up_32, uint32_t, weft_loose_u32)
LOOK_UP(look_up_64, uint64_t, weft_loose_u64)

static void look_up_fn(int bytes, void *to, int64_t stride, const void *from, const int64_t *place, int64_t n)
{
    if (bytes == 4 && stride == 1)
        look_up_32(to, 1, from, place, n);
    else if (bytes == 4)
        look_up_32(to, stride, from, place, n);
    else if (bytes == 8)
        look_up_64(to, stride, from, place, n);
    else if (bytes == 2)
        look_up_16(to, stride, from, place, n);
    else
        look_up_8(to, stride, from, place, n);
}

/* A block of `half` to twice as many bytes, in two pieces that may overlap; of `half` 0, any. */
INLINE void copy_each(const size_t half, int bytes, int64_t size, char *to, int64_t step, const char *from,
                      const int64_t *place, int64_t n)
{
    for (int64_t i = 0; i < n; i++, to += step) {
        const char *const block = from + place[i] * bytes;
        if (!half) {
            memcpy(to, block, (size_t)size);
            continue;
        }
        char first[32], last[32];
        memcpy(first, block, half);
        memcpy(last, block + size - half, half);
        memcpy(to, first, half);
        memcpy(to + size - half, last, half);
    }
}

static void copy_blocks_fn(int bytes, int64_t size, char *to, int64_t step, const char *from, const int64_t *place,
                           int64_t n)
{
    if (size < 4 || size > 64)
        copy_each(0, bytes, size, to, step, from, place, n);
    else if (size < 8)
        copy_each(4, bytes, size, to, step, from, place, n);
    else if (size <= 16)
        copy_each(8, bytes, size, to, step, from, place, n);
    else if (size <= 32)
        copy_each(16, bytes, size, to, step, from, place, n);
    else
        copy_each(32, bytes, size, to, step, from, place, n);
}

const struct weft_gather_loops LEVEL(weft_gather_loops) = {
    LEVEL_CPU,    "weft_gather_elements" LEVEL_TEXT, "weft_gather_blocks" LEVEL_TEXT,
    "weft_scatter_blocks" LEVEL_TEXT, "weft_scatter_combine_f32" LEVEL_TEXT, "weft_spans" LEVEL_TEXT,
    "weft_table" LEVEL_TEXT,
    places_fn, look_up_fn, copy_blocks_fn, LEVEL(weft_repeat_blocks), LEVEL(weft_repeat_pairs),
    LEVEL(weft_repeat_near), LEVEL(weft_combine_rows)};
