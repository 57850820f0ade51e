/* SPDX-License-Identifier: Apache-2.0 */
/* grad_winograd_level.c: the transforms of grad_winograd.h, compiled once per CPU level. */
#include "kernels/grad_weight/grad_winograd.h"
#include "kernels/strip/vector.h"

enum { SIDE = 4, COLUMNS = 2 * LANES };

/* --- one-dimensional: the lines of grad_winograd.h ---------------------------------------------------------------- */

INLINE void line_x(const vf *d, vf *out)
{
    out[0] = d[0] - d[2], out[1] = d[1] + d[2], out[2] = d[2] - d[1], out[3] = d[1] - d[3];
}

INLINE void line_dy(const vf *d, vf *out)
{
    out[0] = d[0], out[1] = d[0] + d[1], out[2] = d[0] - d[1], out[3] = d[1];
}

INLINE void line_taps(const vf *d, vf *out)
{
    const vf half = vall(0.5f) * (d[1] + d[2]);
    out[0] = d[0] + half, out[1] = vall(0.5f) * (d[1] - d[2]), out[2] = half - d[3];
}

/* --- of tiles ----------------------------------------------------------------------------------------------------- */

/* The two columns that neighbours share are transformed once. */
INLINE void transform_x(const float *from, int64_t from_row, int64_t from_column, float *to, int64_t to_point,
                        int64_t to_tile, int64_t tiles)
{
    vf half[SIDE][SIDE], line[SIDE], out[SIDE];
    UNROLL for (int j = 0; j < 2; j++) {
        UNROLL for (int i = 0; i < SIDE; i++)
            line[i] = vload(from + i * from_row + j * from_column);
        line_x(line, out);
        UNROLL for (int i = 0; i < SIDE; i++)
            half[i][j] = out[i];
    }
    for (int64_t t = 0; t < tiles; t++, from += 2 * from_column, to += to_tile) {
        UNROLL for (int j = 2; j < SIDE; j++) {
            UNROLL for (int i = 0; i < SIDE; i++)
                line[i] = vload(from + i * from_row + j * from_column);
            line_x(line, out);
            UNROLL for (int i = 0; i < SIDE; i++)
                half[i][j] = out[i];
        }
        UNROLL for (int i = 0; i < SIDE; i++) {
            line_x(half[i], out);
            UNROLL for (int j = 0; j < SIDE; j++)
                vstore(to + (i * SIDE + j) * to_point, out[j]);
            half[i][0] = half[i][2], half[i][1] = half[i][3];
        }
    }
}

INLINE void transform_dy(const float *from, int64_t from_row, int64_t from_column, float *to, int64_t to_point)
{
    vf half[SIDE][2], out[SIDE];
    UNROLL for (int j = 0; j < 2; j++) {
        const vf line[2] = {vload(from + j * from_column), vload(from + from_row + j * from_column)};
        line_dy(line, out);
        UNROLL for (int i = 0; i < SIDE; i++)
            half[i][j] = out[i];
    }
    UNROLL for (int i = 0; i < SIDE; i++) {
        line_dy(half[i], out);
        UNROLL for (int j = 0; j < SIDE; j++)
            vstore(to + (i * SIDE + j) * to_point, out[j]);
    }
}

INLINE void taps(const float *from, int64_t from_point, float *to)
{
    vf half[3][SIDE], line[SIDE], out[3];
    UNROLL for (int j = 0; j < SIDE; j++) {
        UNROLL for (int i = 0; i < SIDE; i++)
            line[i] = vload(from + (i * SIDE + j) * from_point);
        line_taps(line, out);
        UNROLL for (int i = 0; i < 3; i++)
            half[i][j] = out[i];
    }
    UNROLL for (int i = 0; i < 3; i++) {
        line_taps(half[i], out);
        UNROLL for (int j = 0; j < 3; j++)
            vstore(to + (i * 3 + j) * COLUMNS, out[j]);
    }
}

/* --- what the loops call ------------------------------------------------------------------------------------------ */

void LEVEL(weft_grad_transform_x)(const float *from, int64_t from_row, int64_t from_column, float *to,
                                  int64_t to_point, int64_t to_tile, int64_t tiles, int64_t lanes)
{
    for (int64_t l = 0; l < lanes; l += LANES)
        transform_x(from + l, from_row, from_column, to + l, to_point, to_tile, tiles);
}

void LEVEL(weft_grad_transform_dy)(const float *from, int64_t from_row, int64_t from_column, float *to,
                                   int64_t to_point, int64_t to_tile, int64_t tiles, int64_t lanes)
{
    for (int64_t l = 0; l < lanes; l += LANES)
        for (int64_t t = 0; t < tiles; t++)
            transform_dy(from + 2 * t * from_column + l, from_row, from_column, to + t * to_tile + l, to_point);
}

void LEVEL(weft_grad_taps)(const float *from, int64_t from_point, float *to, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < COLUMNS; l += LANES)
            taps(from + r * COLUMNS + l, from_point, to + r * 9 * COLUMNS + l);
}
