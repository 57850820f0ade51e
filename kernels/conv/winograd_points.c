/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_points.c: the transform of Winograd's weights, compiled once per CPU level: U = G w Gt (winograd.h), in f64
 * and rounded once, for 16 results side by side. */
#include "kernels/conv/winograd.h"
#include "kernels/strip/vector.h"

static const double line_2[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
static const double line_4[6][3] = {{1 / 4.0, 0, 0},
                                    {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                    {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                    {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                    {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                    {0, 0, 1}};

/* As many results at a time as fill a vector of doubles; below AVX2 two of them. */
enum { ACROSS = LANES / 2 };
typedef double several __attribute__((vector_size(ACROSS * sizeof(double))));
typedef float singles __attribute__((vector_size(ACROSS * sizeof(float)), aligned(4), may_alias));

INLINE void transform(const double (*line)[3], int a, const float *w, float *to, int64_t step)
{
    several half[WEFT_WINOGRAD_SIDE][3];
    UNROLL for (int j = 0; j < 3; j++) {
        several row[3];
        UNROLL for (int i = 0; i < 3; i++)
            row[i] = __builtin_convertvector(*(const singles *)(w + (3 * i + j) * WEFT_WINOGRAD_TOGETHER), several);
        UNROLL for (int i = 0; i < a; i++)
            half[i][j] = line[i][0] * row[0] + line[i][1] * row[1] + line[i][2] * row[2];
    }
    UNROLL for (int i = 0; i < a; i++) {
        UNROLL for (int j = 0; j < a; j++) {
            const several u = line[j][0] * half[i][0] + line[j][1] * half[i][1] + line[j][2] * half[i][2];
            *(singles *)(to + (i * a + j) * step) = __builtin_convertvector(u, singles);
        }
    }
}

void LEVEL(weft_winograd_points)(int m, const float *w, float *to, int64_t step)
{
    for (int i = 0; i < WEFT_WINOGRAD_TOGETHER; i += ACROSS) {
        if (m == 2)
            transform(line_2, 4, w + i, to + i, step);
        else
            transform(line_4, 6, w + i, to + i, step);
    }
}
