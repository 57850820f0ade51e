/* SPDX-License-Identifier: Apache-2.0 */
/* relayout_level.c: transposing tiles of 4-byte elements through registers. Compiled once per CPU level.
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

void LEVEL(weft_relayout_tile_32)(float *out, int64_t out_stride, const float *in, int64_t in_stride, int64_t rows,
                                  int64_t columns, bool stream)
{
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
