/* SPDX-License-Identifier: Apache-2.0 */
/* combine_level.c: rows that are combined with rows at places: the sums of a scatter, products, least and greatest.
 * Compiled once per CPU level.
 *
 * A row goes in vectors, then in halves and quarters of one: rows of graph networks have 8 to 64 numbers (heads,
 * channels), and neighbours in the list may fall upon one place, so rows are not taken side by side. */
#include "kernels/gather/gather.h"
#include "kernels/strip/vector.h"

#define COMBINE(name, lanes)                                                                                           \
    typedef float name##_f __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));                           \
    typedef int32_t name##_i __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));                         \
    INLINE void name(const int combine, float *to, const float *from)                                                  \
    {                                                                                                                  \
        const name##_f x = *(const name##_f *)to, y = *(const name##_f *)from;                                         \
        if (combine == WEFT_COMBINE_ADD) {                                                                             \
            *(name##_f *)to = x + y;                                                                                   \
        } else if (combine == WEFT_COMBINE_MULTIPLY) {                                                                 \
            *(name##_f *)to = x * y;                                                                                   \
        } else {                                                                                                       \
            const name##_i closer = combine == WEFT_COMBINE_LEAST ? y < x : x < y;                                     \
            const name##_i take = closer | ((y != y) & (x == x));                                                      \
            *(name##_i *)to = ((name##_i)y & take) | ((name##_i)x & ~take);                                            \
        }                                                                                                              \
    }
COMBINE(combine_16, 16)
COMBINE(combine_8, 8)
COMBINE(combine_4, 4)

INLINE void combine_rows(const int combine, const struct weft_combining *c, float *to, const float *from,
                         const int64_t *place, const int64_t *row, int64_t n)
{
    if (c->block == 1) {
        for (int64_t i = 0; i < n; i++)
            to[place[i]] = weft_combined(combine, to[place[i]], from[row[i] * c->step]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float *const x = to + place[i];
        const float *const y = from + row[i] * c->step;
        int64_t k = 0;
        for (; k + 16 <= c->block; k += 16)
            combine_16(combine, x + k, y + k);
        if (k + 8 <= c->block) {
            combine_8(combine, x + k, y + k);
            k += 8;
        }
        if (k + 4 <= c->block) {
            combine_4(combine, x + k, y + k);
            k += 4;
        }
        for (; k < c->block; k++)
            x[k] = weft_combined(combine, x[k], y[k]);
    }
}

void LEVEL(weft_combine_rows)(const struct weft_combining *c, float *to, const float *from, const int64_t *place,
                              const int64_t *row, int64_t n)
{
    if (c->combine == WEFT_COMBINE_ADD)
        combine_rows(WEFT_COMBINE_ADD, c, to, from, place, row, n);
    else if (c->combine == WEFT_COMBINE_MULTIPLY)
        combine_rows(WEFT_COMBINE_MULTIPLY, c, to, from, place, row, n);
    else if (c->combine == WEFT_COMBINE_LEAST)
        combine_rows(WEFT_COMBINE_LEAST, c, to, from, place, row, n);
    else
        combine_rows(WEFT_COMBINE_GREATEST, c, to, from, place, row, n);
}
