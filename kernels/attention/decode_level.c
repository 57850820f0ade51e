/* SPDX-License-Identifier: Apache-2.0 */
/* decode_level.c: dot products, values and the end of one query a head, at one CPU level.
 *
 * LANES dot products at a time are folded by one tree, whose lanes are the results: so many heads by so many keys, of
 * which heads come first, since a row of keys that holds them all is read as it lies. Sixteen chains a dot product are
 * one vector here or several, so that all levels add up alike. */
#include "kernels/attention/decode.h"
#include "kernels/strip/vector.h"
#include "kernels/strip/functions.h"

enum { CHAINS = WEFT_ATTENTION_LANES, PIECES = CHAINS / LANES };

/* --- folding ------------------------------------------------------------------------------------------------------ */

/* Lane i of fold's result is the sum of the lanes of a[i]: lanes l and l + half first, for halves of the vector down to
 * one. Each step puts the halves of two vectors into one. */
#if LANES == 16
/* By shuffles without a table; lanes are put in order at the end. o: lower halves or upper. */
#define EIGHTS(x, y, o)                                                                                                \
    __builtin_shufflevector(x, y, o, 1 + o, 2 + o, 3 + o, 4 + o, 5 + o, 6 + o, 7 + o, 16 + o, 17 + o, 18 + o, 19 + o,  \
                            20 + o, 21 + o, 22 + o, 23 + o)
#define FOURS(x, y, o)                                                                                                 \
    __builtin_shufflevector(x, y, o, 1 + o, 2 + o, 3 + o, 8 + o, 9 + o, 10 + o, 11 + o, 16 + o, 17 + o, 18 + o,        \
                            19 + o, 24 + o, 25 + o, 26 + o, 27 + o)
#define TWOS(x, y, o)                                                                                                  \
    __builtin_shufflevector(x, y, o, 16 + o, 1 + o, 17 + o, 4 + o, 20 + o, 5 + o, 21 + o, 8 + o, 24 + o, 9 + o,        \
                            25 + o, 12 + o, 28 + o, 13 + o, 29 + o)
#define ONES(x, y, o)                                                                                                  \
    __builtin_shufflevector(x, y, o, 1 + o, 16 + o, 17 + o, 4 + o, 5 + o, 20 + o, 21 + o, 8 + o, 9 + o, 24 + o,        \
                            25 + o, 12 + o, 13 + o, 28 + o, 29 + o)
INLINE vf fold(vf a[LANES])
{
    UNROLL for (int i = 0; i < 8; i++)
        a[i] = EIGHTS(a[i], a[i + 8], 0) + EIGHTS(a[i], a[i + 8], 8);
    UNROLL for (int i = 0; i < 4; i++)
        a[i] = FOURS(a[i], a[i + 4], 0) + FOURS(a[i], a[i + 4], 4);
    UNROLL for (int i = 0; i < 2; i++)
        a[i] = TWOS(a[i], a[i + 2], 0) + TWOS(a[i], a[i + 2], 2);
    const vf x = ONES(a[0], a[1], 0) + ONES(a[0], a[1], 2);
    return __builtin_shufflevector(x, x, 0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
}
#else
#if LANES == 8
#define FOURS(x, y, o) __builtin_shufflevector(x, y, o, 1 + o, 2 + o, 3 + o, 8 + o, 9 + o, 10 + o, 11 + o)
#define TWOS(x, y, o) __builtin_shufflevector(x, y, o, 1 + o, 8 + o, 9 + o, 4 + o, 5 + o, 12 + o, 13 + o)
#define ONES(x, y, o) __builtin_shufflevector(x, y, o, 8 + o, 2 + o, 10 + o, 4 + o, 12 + o, 6 + o, 14 + o)
#else
#define TWOS(x, y, o) __builtin_shufflevector(x, y, o, 1 + o, 4 + o, 5 + o)
#define ONES(x, y, o) __builtin_shufflevector(x, y, o, 4 + o, 2 + o, 6 + o)
#endif
INLINE vf fold(vf a[LANES])
{
#if LANES == 8
    UNROLL for (int i = 0; i < 4; i++)
        a[i] = FOURS(a[i], a[i + 4], 0) + FOURS(a[i], a[i + 4], 4);
#endif
    UNROLL for (int i = 0; i < 2; i++)
        a[i] = TWOS(a[i], a[i + 2], 0) + TWOS(a[i], a[i + 2], 2);
    return ONES(a[0], a[1], 0) + ONES(a[0], a[1], 1);
}
#endif

/* --- dot products ------------------------------------------------------------------------------------------------- */

INLINE void add_sixteen(vf a[PIECES], const float *q, const float *k)
{
    UNROLL for (int e = 0; e < PIECES; e++)
        a[e] = vfma(vload(q + e * LANES), vload(k + e * LANES), a[e]);
}
INLINE int some_of(int64_t left) { return left < LANES ? (int)left : LANES; }

/* The same of fewer than sixteen; the query goes on with zeros. */
INLINE void add_some(vf a[PIECES], const float *q, const float *k, int64_t some)
{
    UNROLL for (int e = 0; e < PIECES; e++) {
        if (e * LANES < some)
            a[e] = vfma(vload(q + e * LANES), vloadm(k + e * LANES, some_of(some - e * LANES), 0), a[e]);
    }
}
INLINE vf joined(const vf a[PIECES])
{
    vf sum[PIECES];
    UNROLL for (int e = 0; e < PIECES; e++)
        sum[e] = a[e];
    UNROLL for (int half = PIECES / 2; half > 0; half /= 2) {
        UNROLL for (int e = 0; e < half; e++)
            sum[e] += sum[e + half];
    }
    return sum[0];
}

/* A dot product, still in LANES lanes. A width that is known is unrolled. */
INLINE vf dot(int64_t width, const float *q, const float *k)
{
    vf a[PIECES];
    UNROLL for (int e = 0; e < PIECES; e++)
        a[e] = vall(0);
    if (__builtin_constant_p(width)) {
        UNROLL for (int64_t p = 0; p < width; p += CHAINS)
            add_sixteen(a, q + p, k + p);
        return joined(a);
    }
    int64_t p = 0;
    for (; p + CHAINS <= width; p += CHAINS)
        add_sixteen(a, q + p, k + p);
    if (p < width)
        add_some(a, q + p, k + p, width - p);
    return joined(a);
}

INLINE void ask_for(const float *row, int64_t floats)
{
    for (int64_t p = 0; p < floats; p += 16) /* a cache line */
        __builtin_prefetch(row + p);
}

/* Results [heads][keys] to their places. */
INLINE void put(const struct weft_decode_dots d, float *to, vf sum, const int heads, const int keys, int64_t some)
{
    if (heads == 1) {
        vstorem(to, (int)some, sum);
        return;
    }
    _Alignas(64) float result[LANES]; /* read element by element at once, which is slow across two lines */
    vstore(result, sum);
    for (int h = 0; h < heads; h++, to += d.to_row) {
        if (some == keys)
            __builtin_memcpy(to, result + h * keys, (size_t)keys * sizeof *result);
        for (int64_t r = 0; some < keys && r < some; r++)
            to[r] = result[h * keys + r];
    }
}

/* Some heads by so many keys at a time, LANES or fewer dot products. Behind the last key comes the last once more. */
INLINE void dots_of_heads(const struct weft_decode_dots *all, int64_t width, const int heads, const int keys)
{
    const struct weft_decode_dots d = *all; /* in registers: what is stored could be it */
    const float *k = d.k;
    for (int64_t j = 0; j < d.keys; j += keys) {
        const int64_t some = d.keys - j < keys ? d.keys - j : keys;
        for (int i = 0; d.ahead && i < heads * keys; i++)
            ask_for(k + (d.ahead + i / heads) * d.k_row + i % heads * d.k_head, width);
        vf a[LANES];
        UNROLL for (int i = 0; i < LANES; i++)
            a[i] = vall(0);
        UNROLL for (int r = 0; r < keys; r++) {
            UNROLL for (int h = 0; h < heads; h++)
                a[h * keys + r] = dot(width, d.q + h * d.q_row, k + h * d.k_head);
            k += r + 1 < some || some == keys ? d.k_row : 0;
        }
        put(d, d.to + j, fold(a), heads, keys, some);
    }
}

#if LANES == 16
/* The same of heads that share keys: the elements of a key are loaded once, and all sums are in registers. */
INLINE void add_shared(vf a[LANES], const struct weft_decode_dots d, int64_t p, const float *const *k, const int heads,
                       const int keys, const bool whole)
{
    UNROLL for (int r = 0; r < keys; r++) {
        const vf x = whole ? vload(k[r] + p) : vloadm(k[r] + p, (int)(d.width - p), 0);
        UNROLL for (int h = 0; h < heads; h++)
            a[h * keys + r] = vfma(vload(d.q + h * d.q_row + p), x, a[h * keys + r]);
    }
}
INLINE void dots_of_sharers(const struct weft_decode_dots *all, const int heads, const int keys)
{
    const struct weft_decode_dots d = *all;
    const float *row[8];
    for (int64_t j = 0; j < d.keys; j += keys) {
        const int64_t some = d.keys - j < keys ? d.keys - j : keys;
        const float *const k = d.k + j * d.k_row;
        UNROLL for (int r = 0; r < keys; r++)
            row[r] = r == 0 ? k : row[r - 1] + (r < some ? d.k_row : 0);
        for (int r = 0; d.ahead && r < keys; r++)
            ask_for(k + (d.ahead + r) * d.k_row, d.width);
        vf a[LANES];
        UNROLL for (int i = 0; i < LANES; i++)
            a[i] = vall(0);
        int64_t p = 0;
        for (; p + LANES <= d.width; p += LANES)
            add_shared(a, d, p, row, heads, keys, true);
        if (p < d.width)
            add_shared(a, d, p, row, heads, keys, false);
        put(d, d.to + j, fold(a), heads, keys, some);
    }
}
/* Of the first heads, as many as there is code for; their number. */
static int64_t share_some(const struct weft_decode_dots *d)
{
    const int64_t n = d->heads;
    if (n == 2 || n == 5)
        return dots_of_sharers(d, 2, 8), 2;
    if (n == 3 || n == 6 || n == 7 || n == 9)
        return dots_of_sharers(d, 3, 4), 3;
    return dots_of_sharers(d, 4, 4), 4;
}
#endif

INLINE int64_t do_some(const struct weft_decode_dots *d, int64_t width)
{
#if LANES == 16
    if (d->heads > 1 && d->k_head == 0)
        return share_some(d);
    if (d->heads >= 16)
        return dots_of_heads(d, width, 16, 1), 16;
    if (d->heads >= 12)
        return dots_of_heads(d, width, 12, 1), 12;
    if (d->heads >= 8)
        return dots_of_heads(d, width, 8, 2), 8;
    if (d->heads >= 4)
        return dots_of_heads(d, width, 4, 4), 4;
#elif LANES == 8
    if (d->heads >= 8)
        return dots_of_heads(d, width, 8, 1), 8;
#endif
    return dots_of_heads(d, width, 1, LANES), 1;
}
/* Rows that are walked again for the next heads are few, so that they are near. */
INLINE void dots_of_width(const struct weft_decode_dots *d, int64_t width)
{
    const bool at_once = d->heads == 1 || d->heads == 16 || d->heads == 12;
    const int64_t step = at_once ? d->keys : 16;
    struct weft_decode_dots some = *d;
    for (int64_t j = 0; j < d->keys; j += step) {
        some.keys = d->keys - j < step ? d->keys - j : step;
        for (int64_t h = 0; h < d->heads;) {
            some.q = d->q + h * d->q_row, some.to = d->to + h * d->to_row + j;
            some.k = d->k + j * d->k_row + h * d->k_head, some.heads = d->heads - h;
            h += do_some(&some, width);
        }
    }
}
static void dots(const struct weft_decode_dots *d)
{
    if (d->width == 64)
        dots_of_width(d, 64);
    else if (d->width == 128)
        dots_of_width(d, 128);
    else if (d->width == 32)
        dots_of_width(d, 32);
    else
        dots_of_width(d, d->width);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

enum { VECTORS = 4, ROWS = LANES == 16 ? 4 : LANES == 8 ? 2 : 1 };

/* Some heads that share values by some vectors of their columns, the last of `last` lanes; chains over the keys begin
 * with 0 or go on. */
INLINE void values_tile(const struct weft_decode_values *w, int64_t head, int64_t column, int64_t key, int64_t keys,
                        const int rows, const int vectors, int last)
{
    const float *const weight = w->weight + head * w->weight_row + key;
    const float *v = w->v + key * w->v_row + head * w->v_head + column;
    const int64_t weight_row = w->weight_row, v_row = w->v_row, ahead = w->ahead * v_row;
    float *const to = w->to + head * w->to_row + column;
    vf a[4][VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int e = 0; e < vectors; e++)
            a[i][e] = w->goes_on || key > 0 ? vload(to + i * w->to_row + e * LANES) : vall(0);
    }
    for (int64_t t = 0; t < keys; t++, v += v_row) {
        vf x[VECTORS];
        UNROLL for (int e = 0; e < vectors; e++)
            x[e] = e < vectors - 1 || last == LANES ? vload(v + e * LANES) : vloadm(v + e * LANES, last, 0);
        if (ahead != 0) {
            UNROLL for (int e = 0; e < vectors; e++)
                __builtin_prefetch(v + ahead + e * LANES);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            const vf y = vall(weight[i * weight_row + t]);
            UNROLL for (int e = 0; e < vectors; e++)
                a[i][e] = vfma(y, x[e], a[i][e]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int e = 0; e < vectors; e++)
            vstore(to + i * w->to_row + e * LANES, a[i][e]);
    }
}
/* All columns of some heads. */
INLINE void values_rows(const struct weft_decode_values *w, int64_t head, int64_t key, int64_t keys, const int rows)
{
    int64_t j = 0;
    for (; j + VECTORS * LANES <= w->columns; j += VECTORS * LANES)
        values_tile(w, head, j, key, keys, rows, VECTORS, LANES);
    const int left = (int)(w->columns - j);
    if (left > 3 * LANES)
        values_tile(w, head, j, key, keys, rows, 4, left - 3 * LANES);
    else if (left > 2 * LANES)
        values_tile(w, head, j, key, keys, rows, 3, left - 2 * LANES);
    else if (left > LANES)
        values_tile(w, head, j, key, keys, rows, 2, left - LANES);
    else if (left > 0)
        values_tile(w, head, j, key, keys, rows, 1, left);
}

static void values(const struct weft_decode_values *w)
{
    enum { KEYS = 4 }; /* so many rows of values are walked side by side where heads lie in them */
    int64_t i = 0;
    if (w->v_head == 0) { /* heads that share values, or one: all keys of one tile after the other */
        for (; ROWS > 3 && i + 4 <= w->heads; i += 4)
            values_rows(w, i, 0, w->keys, 4);
        for (; ROWS > 2 && i + 3 <= w->heads; i += 3)
            values_rows(w, i, 0, w->keys, 3);
        for (; ROWS > 1 && i + 2 <= w->heads; i += 2)
            values_rows(w, i, 0, w->keys, 2);
        for (; i < w->heads; i++)
            values_rows(w, i, 0, w->keys, 1);
        return;
    }
    for (int64_t t = 0; t < w->keys; t += KEYS) {
        const int64_t some = w->keys - t < KEYS ? w->keys - t : KEYS;
        for (int64_t h = 0; h < w->heads; h++)
            values_rows(w, h, t, some, 1);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Partial results of one head, chunk by chunk: to[j] = sum over chunks of exp(centre - m) · partial; m, their sum. */
static struct weft_decode_part combine(float *to, const struct weft_decode_part *part, const float *partial,
                                       int64_t row, int64_t columns, int64_t chunks)
{
    float most = -__builtin_inff(), sum = 0;
    for (int64_t c = 0; c < chunks; c++)
        most = part[c].centre > most ? part[c].centre : most;
    for (int64_t c = 0; c < chunks; c++, partial += row) {
        const vf keep = vexp_below(vall(part[c].centre - (most == -__builtin_inff() ? 0 : most)));
        sum = vfma(keep, vall(part[c].sum), vall(sum))[0];
        for (int64_t j = 0; j < columns; j += LANES)
            vstore(to + j, vfma(keep, vload(partial + j), c == 0 ? vall(0) : vload(to + j)));
    }
    return (struct weft_decode_part){most, sum};
}

const struct weft_decode_code LEVEL(weft_decode_f32) = {.dots = dots, .values = values, .combine = combine};
