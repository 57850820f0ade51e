/* SPDX-License-Identifier: Apache-2.0 */
/* relayout_level.c: transposing tiles through registers. Compiled once per CPU level.
 *
 * A block is as many rows as make a vector of the result: LANES of 4 bytes, twice as many of 2, four times of 1, half
 * as many of 8. So both sides move whole vectors (at the highest level whole cache lines, which are then read once and
 * written once whatever the strides: rows whose addresses collide in a cache cost nothing), and all sizes share one
 * core, since
 *
 *   1 and 2 bytes   interleaving the bytes of 4 rows, or the halves of 2, makes elements of 4 bytes that already hold
 *                   a column's part of these rows; four (two) transposes of such elements do the rest
 *   4 bytes         two rounds of interleaving pairs transpose the 4 x 4 squares inside of 128-bit lanes;
 *   8 bytes         one round, of 2 x 2 squares;
 *   all             then whole lanes change places among registers
 *
 * The alternative, plain loops, costs a store or a load of one element at a stride: ten to twenty times more time on
 * large arrays, because a cache line is fetched or written back once per element of it. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/vector.h"

#define VECTOR (4 * LANES) /* bytes */
#define SQUARE (LANES / 4) /* 128-bit lanes */

typedef uint16_t v_16 __attribute__((vector_size(VECTOR)));
typedef uint8_t v_8 __attribute__((vector_size(VECTOR)));
typedef float v_odd __attribute__((vector_size(VECTOR), aligned(1), may_alias)); /* at any address */

/* Places for a shuffle of two vectors of n elements, lane by lane. */
#if LANES == 16
#define BY_LANE(lane, step, n) lane(0, n), lane(step, n), lane(2 * (step), n), lane(3 * (step), n)
#elif LANES == 8
#define BY_LANE(lane, step, n) lane(0, n), lane(step, n)
#else
#define BY_LANE(lane, step, n) lane(0, n)
#endif
#define ONE(i, n)  i, (n) + (i)
#define TWO(i, n)  ONE(i, n), ONE((i) + 1, n)
#define FOUR(i, n) TWO(i, n), TWO((i) + 2, n)
#define LOW_8(i, n)   FOUR(i, n), FOUR((i) + 4, n)
#define HIGH_8(i, n)  FOUR((i) + 8, n), FOUR((i) + 12, n)
#define HIGH_16(i, n) FOUR((i) + 4, n)
#define HIGH_32(i, n) TWO((i) + 2, n)
#define LOW_64(i, n)  i, (i) + 1, (n) + (i), (n) + (i) + 1
#define HIGH_64(i, n) (i) + 2, (i) + 3, (n) + (i) + 2, (n) + (i) + 3
#define INTERLEAVE(type, n, step, lane, a, b)                                                                          \
    (vf) __builtin_shufflevector((type)(a), (type)(b), BY_LANE(lane, step, n))

INLINE vf low_8(vf a, vf b) { return INTERLEAVE(v_8, VECTOR, 16, LOW_8, a, b); }
INLINE vf high_8(vf a, vf b) { return INTERLEAVE(v_8, VECTOR, 16, HIGH_8, a, b); }
INLINE vf low_16(vf a, vf b) { return INTERLEAVE(v_16, VECTOR / 2, 8, FOUR, a, b); }
INLINE vf high_16(vf a, vf b) { return INTERLEAVE(v_16, VECTOR / 2, 8, HIGH_16, a, b); }
INLINE vf low_32(vf a, vf b) { return INTERLEAVE(vf, LANES, 4, TWO, a, b); }
INLINE vf high_32(vf a, vf b) { return INTERLEAVE(vf, LANES, 4, HIGH_32, a, b); }
INLINE vf low_64(vf a, vf b) { return INTERLEAVE(vf, LANES, 4, LOW_64, a, b); }
INLINE vf high_64(vf a, vf b) { return INTERLEAVE(vf, LANES, 4, HIGH_64, a, b); }

/* Register group · g + c holds in lane l what belongs into lane g of register group · l + c. */
INLINE void exchange_lanes(vf *r, const int group)
{
#if LANES == 16
#define LANE_PAIR(a, b, p, q, s, t)                                                                                    \
    __builtin_shufflevector(a, b, 4 * (p), 4 * (p) + 1, 4 * (p) + 2, 4 * (p) + 3, 4 * (q), 4 * (q) + 1, 4 * (q) + 2,   \
                            4 * (q) + 3, 4 * (s), 4 * (s) + 1, 4 * (s) + 2, 4 * (s) + 3, 4 * (t), 4 * (t) + 1,         \
                            4 * (t) + 2, 4 * (t) + 3)
    UNROLL for (int c = 0; c < group; c++)
    {
        const vf a = LANE_PAIR(r[c], r[group + c], 0, 1, 4, 5), b = LANE_PAIR(r[c], r[group + c], 2, 3, 6, 7);
        const vf d = LANE_PAIR(r[2 * group + c], r[3 * group + c], 0, 1, 4, 5);
        const vf e = LANE_PAIR(r[2 * group + c], r[3 * group + c], 2, 3, 6, 7);
        r[c] = LANE_PAIR(a, d, 0, 2, 4, 6);
        r[group + c] = LANE_PAIR(a, d, 1, 3, 5, 7);
        r[2 * group + c] = LANE_PAIR(b, e, 0, 2, 4, 6);
        r[3 * group + c] = LANE_PAIR(b, e, 1, 3, 5, 7);
    }
#elif LANES == 8
    UNROLL for (int c = 0; c < group; c++)
    {
        const vf a = r[c], b = r[group + c];
        r[c] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        r[group + c] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
#endif
}

INLINE void transpose_32(vf r[LANES])
{
    UNROLL for (int g = 0; g < LANES; g += 4)
    {
        const vf a = low_32(r[g], r[g + 1]), b = high_32(r[g], r[g + 1]);
        const vf c = low_32(r[g + 2], r[g + 3]), d = high_32(r[g + 2], r[g + 3]);
        r[g] = low_64(a, c), r[g + 1] = high_64(a, c), r[g + 2] = low_64(b, d), r[g + 3] = high_64(b, d);
    }
    exchange_lanes(r, 4);
}

INLINE void transpose_64(vf r[LANES / 2])
{
    UNROLL for (int g = 0; g < LANES / 2; g += 2)
    {
        const vf a = r[g], b = r[g + 1];
        r[g] = low_64(a, b), r[g + 1] = high_64(a, b);
    }
    exchange_lanes(r, 2);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The first n bytes, n >= 0; whatever is behind them in the vector. */
#if LANES == 16
typedef char v_chars __attribute__((vector_size(64)));
INLINE uint64_t first_bytes(int64_t n) { return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1; }
INLINE vf load_some(const char *p, int64_t n)
{
    return (vf)__builtin_ia32_loaddquqi512_mask((const void *)p, (v_chars){0}, first_bytes(n));
}
INLINE void store_some(char *p, int64_t n, vf x)
{
    __builtin_ia32_storedquqi512_mask((void *)p, (v_chars)x, first_bytes(n));
}
#else
INLINE vf load_some(const char *p, int64_t n)
{
    vf x = {0};
    __builtin_memcpy(&x, p, (size_t)(n < VECTOR ? n : VECTOR));
    return x;
}
INLINE void store_some(char *p, int64_t n, vf x) { __builtin_memcpy(p, &x, (size_t)(n < VECTOR ? n : VECTOR)); }
#endif

struct block {
    char *out;
    const char *in;
    int64_t out_step, in_step, rows, columns; /* there are; used if the block is not whole */
    int bytes;
    bool whole, stream;
};

INLINE vf load_row(const struct block *b, int row)
{
    const char *const p = b->in + row * b->in_step;
    if (b->whole)
        return *(const v_odd *)p;
    return row < b->rows ? load_some(p, b->columns * b->bytes) : (vf){0};
}

INLINE void store_column(const struct block *b, int column, vf x)
{
    char *const p = b->out + column * b->out_step;
    if (!b->whole) {
        if (column < b->columns)
            store_some(p, b->rows * b->bytes, x);
    } else if (b->stream) {
        vstream((float *)(void *)p, x);
    } else {
        *(v_odd *)p = x;
    }
}

/* --- blocks: b->bytes, whole and stream are constants wherever this is expanded ----------------------------------- */

INLINE void wide_block(const struct block *b)
{
    const int size = VECTOR / b->bytes;
    vf r[LANES];
    UNROLL for (int i = 0; i < size; i++) r[i] = load_row(b, i);
    if (b->bytes == 4)
        transpose_32(r);
    else if (b->bytes == 8)
        transpose_64(r);
    else
        exchange_lanes(r, 1);
    UNROLL for (int i = 0; i < size; i++) store_column(b, i, r[i]);
}

INLINE void interleave_2(const struct block *b, int i, vf part[][LANES])
{
    const vf x = load_row(b, 2 * i), y = load_row(b, 2 * i + 1);
    part[0][i] = low_16(x, y), part[1][i] = high_16(x, y);
}

INLINE void interleave_4(const struct block *b, int i, vf part[][LANES])
{
    const vf x = load_row(b, 4 * i), y = load_row(b, 4 * i + 1), z = load_row(b, 4 * i + 2), w = load_row(b, 4 * i + 3);
    const vf xy = low_8(x, y), zw = low_8(z, w), more_xy = high_8(x, y), more_zw = high_8(z, w);
    part[0][i] = low_16(xy, zw), part[1][i] = high_16(xy, zw);
    part[2][i] = low_16(more_xy, more_zw), part[3][i] = high_16(more_xy, more_zw);
}

INLINE void narrow_block(const struct block *b)
{
    vf part[4][LANES];
    const int parts = 4 / b->bytes;
    for (int i = 0; i < LANES; i++) {
        if (parts == 2)
            interleave_2(b, i, part);
        else
            interleave_4(b, i, part);
    }
    for (int q = 0; q < parts; q++) {
        transpose_32(part[q]);
        UNROLL for (int j = 0; j < LANES; j++) store_column(b, j / 4 * (4 * parts) + 4 * q + j % 4, part[q][j]);
    }
}

INLINE void one_block(const struct weft_tile *t, int64_t r, int64_t c, const int bytes, const bool whole,
                      const bool stream)
{
    const struct block b = {t->out + c * t->out_step + r * bytes,
                            t->in + r * t->in_step + c * bytes,
                            t->out_step,
                            t->in_step,
                            t->rows - r,
                            t->columns - c,
                            bytes,
                            whole,
                            stream};
    if (bytes < 4)
        narrow_block(&b);
    else
        wide_block(&b);
}

/* Down the rows, so that lines of the result are finished one after another. */
INLINE void tile_of(const struct weft_tile *t, const int bytes, const bool stream)
{
    const int size = VECTOR / bytes;
    for (int64_t c = 0; c < t->columns; c += size)
        for (int64_t r = 0; r < t->rows; r += size) {
            if (t->ahead && c * bytes % WEFT_LINE == 0)
                for (int i = 0; i < size; i++)
                    __builtin_prefetch(t->ahead + (r + i) * t->in_step + c * bytes, 0, 2);
            if (t->rows - r >= size && t->columns - c >= size)
                one_block(t, r, c, bytes, true, stream);
            else
                one_block(t, r, c, bytes, false, false);
        }
}

#define TILE(bits)                                                                                                     \
    void LEVEL(weft_relayout_tile_##bits)(const struct weft_tile *tile, bool stream)                                   \
    {                                                                                                                  \
        if (stream && LANES == 16)                                                                                     \
            tile_of(tile, (bits) / 8, true);                                                                           \
        else                                                                                                           \
            tile_of(tile, (bits) / 8, false);                                                                          \
    }
TILE(8)
TILE(16)
TILE(32)
TILE(64)
TILE(128)
