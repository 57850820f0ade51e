/* SPDX-License-Identifier: Apache-2.0 */
/* relayout_level.c: transposing tiles through registers. Compiled once per CPU level.
 *
 * A block of LANES x LANES is transposed by log2(LANES) rounds; each round interleaves register i with register
 * i + LANES / 2. Seen as an address (row bits, then column bits), a round rotates the whole address by one bit, so
 * after log2(LANES) rounds rows and columns have changed places. One rule for all widths, at most 64 shuffles for 256
 * elements.
 *
 * The alternative, plain loops, costs a store or a load of one element at a stride: ten to twenty times more time on
 * large arrays, because a cache line is fetched or written back once per element of it. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/vector.h"

#if LANES == 16
#define INTERLEAVE_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define INTERLEAVE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define ROUNDS          4
#elif LANES == 8
#define INTERLEAVE_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define INTERLEAVE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define ROUNDS          3
#else
#define INTERLEAVE_LOW  0, 4, 1, 5
#define INTERLEAVE_HIGH 2, 6, 3, 7
#define ROUNDS          2
#endif

INLINE void transpose_block(vf r[LANES])
{
    vf t[LANES];
    UNROLL for (int round = 0; round < ROUNDS; round++)
    {
        UNROLL for (int i = 0; i < LANES / 2; i++)
        {
            t[2 * i] = __builtin_shufflevector(r[i], r[i + LANES / 2], INTERLEAVE_LOW);
            t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + LANES / 2], INTERLEAVE_HIGH);
        }
        UNROLL for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}

INLINE void full_block(float *out, int64_t out_stride, const float *in, int64_t in_stride, bool stream)
{
    vf r[LANES];
    UNROLL for (int i = 0; i < LANES; i++) r[i] = vload(in + i * in_stride);
    transpose_block(r);
    if (stream) {
        UNROLL for (int i = 0; i < LANES; i++) vstream(out + i * out_stride, r[i]);
    } else {
        UNROLL for (int i = 0; i < LANES; i++) vstore(out + i * out_stride, r[i]);
    }
}

/* At an edge. Registers of rows that do not exist hold zeros and end up in lanes that are not stored. */
static void edge_block(float *out, int64_t out_stride, const float *in, int64_t in_stride, int rows, int columns)
{
    vf r[LANES];
    UNROLL for (int i = 0; i < LANES; i++) r[i] = i < rows ? vloadm(in + i * in_stride, columns, 0.f) : vall(0.f);
    transpose_block(r);
    UNROLL for (int i = 0; i < LANES; i++)
    {
        if (i < columns)
            vstorem(out + i * out_stride, rows, r[i]);
    }
}

void LEVEL(weft_relayout_tile_32)(void *to_tile, int64_t out_stride, const void *from_tile, int64_t in_stride,
                                  int64_t rows, int64_t columns, bool stream)
{
    float *const out = to_tile;
    const float *const in = from_tile;
    /* Half lines would be merged by luck only, so narrower levels do not stream. */
    stream = stream && LANES == 16 && (uintptr_t)out % 64 == 0 && out_stride % LANES == 0;
    for (int64_t c = 0; c < columns; c += LANES)
        for (int64_t r = 0; r < rows; r += LANES) {
            float *const to = out + c * out_stride + r;
            const float *const from = in + r * in_stride + c;
            if (rows - r >= LANES && columns - c >= LANES)
                full_block(to, out_stride, from, in_stride, stream);
            else
                edge_block(to, out_stride, from, in_stride, rows - r < LANES ? (int)(rows - r) : LANES,
                           columns - c < LANES ? (int)(columns - c) : LANES);
        }
    if (stream)
        vfence();
}

/* --- elements of other sizes ------------------------------------------------------------------------------------ */

/* Bytes and 16-bit elements use vectors of 16 bytes at every level: their interleaving is one instruction there, which
 * wider ones need two for; blocks are small enough that neither loads nor stores are the limit. */
typedef uint8_t v16b __attribute__((vector_size(16)));
typedef uint16_t v8h __attribute__((vector_size(16)));
typedef uint8_t v16b_any __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t v8h_any __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t vq_any __attribute__((vector_size(4 * LANES), aligned(1), may_alias));

#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#if LANES == 16
#define LOW_Q  LOW_8
#define HIGH_Q HIGH_8
#elif LANES == 8
#define LOW_Q  0, 4, 1, 5
#define HIGH_Q 2, 6, 3, 7
#else
#define LOW_Q  0, 2
#define HIGH_Q 1, 3
#endif

/* Whole blocks by the rule above, in strips of so many rows as fill a line of the result, so that both sides' lines are
 * used up while they are in L1 whatever the strides; what is left at the edges element by element. */
#define STRIP(element) (64 / (int64_t)sizeof(element))
#define TILE(bits, element, vector, n, rounds, low, high)                                                              \
    INLINE void block_##bits(element *out, int64_t out_stride, const element *in, int64_t in_stride)                   \
    {                                                                                                                  \
        vector x[n], t[n];                                                                                             \
        UNROLL for (int i = 0; i < (n); i++) x[i] = *(const vector##_any *)(in + i * in_stride);                       \
        UNROLL for (int round = 0; round < (rounds); round++)                                                          \
        {                                                                                                              \
            UNROLL for (int i = 0; i < (n) / 2; i++)                                                                   \
            {                                                                                                          \
                t[2 * i] = __builtin_shufflevector(x[i], x[i + (n) / 2], low);                                         \
                t[2 * i + 1] = __builtin_shufflevector(x[i], x[i + (n) / 2], high);                                    \
            }                                                                                                          \
            UNROLL for (int i = 0; i < (n); i++) x[i] = t[i];                                                          \
        }                                                                                                              \
        UNROLL for (int i = 0; i < (n); i++) *(vector##_any *)(out + i * out_stride) = x[i];                           \
    }                                                                                                                  \
    void LEVEL(weft_relayout_tile_##bits)(void *to_tile, int64_t out_stride, const void *from_tile, int64_t in_stride, \
                                          int64_t rows, int64_t columns, bool stream)                                  \
    {                                                                                                                  \
        element *const out = to_tile;                                                                                  \
        const element *const in = from_tile;                                                                           \
        const int64_t whole_rows = rows / (n) * (n), whole_columns = columns / (n) * (n);                              \
        for (int64_t first = 0; first < whole_rows; first += STRIP(element)) {                                         \
            const int64_t end = first + STRIP(element) < whole_rows ? first + STRIP(element) : whole_rows;             \
            for (int64_t c = 0; c < whole_columns; c += (n))                                                           \
                for (int64_t r = first; r < end; r += (n))                                                             \
                    block_##bits(out + c * out_stride + r, out_stride, in + r * in_stride + c, in_stride);             \
        }                                                                                                              \
        for (int64_t c = 0; c < columns; c++)                                                                          \
            for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)                                        \
                out[c * out_stride + r] = in[r * in_stride + c];                                                       \
    }
TILE(64, uint64_t, vq, LANES / 2, ROUNDS - 1, LOW_Q, HIGH_Q)
#if WEFT_LEVEL < 2 /* nothing to gain from more */
TILE(8, uint8_t, v16b, 16, 4, LOW_16, HIGH_16)
TILE(16, uint16_t, v8h, 8, 3, LOW_8, HIGH_8)
#endif
