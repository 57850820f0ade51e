/* SPDX-License-Identifier: Apache-2.0 */
/* attention_level.c: what attention does between its two products, at one CPU level.
 *
 * The factor costs nothing where scores are as they came from the product: exp(factor · s - factor · m) is one
 * multiply-add and the exponential, and that factor · m is rounded changes all weights of a row alike. With a mask or a
 * bound, a pass over the row stores what the scores come to first. */
#include "kernels/attention/decode.h"
#include "kernels/strip/vector.h"
#include "kernels/strip/functions.h"

enum { CHAINS = WEFT_ATTENTION_CHAINS, VECTORS = CHAINS / LANES };

/* Lanes l and l + half, then half of that, down to one. */
INLINE float sum_of_lanes(vf x)
{
#if LANES == 16
    x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif LANES == 8
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1);
    x += __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
    return x[0];
}
INLINE float most_of_lanes(vf x)
{
#if LANES == 16
    x = vmax_x86(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
#elif LANES == 8
    x = vmax_x86(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
#else
    x = vmax_x86(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
    x = vmax_x86(x, __builtin_shufflevector(x, x, 1, 0, 3, 2));
#endif
    return x[0];
}

INLINE int some_of(int64_t left) { return left < LANES ? (int)left : LANES; }

/* What the score comes to, in the place of it. */
static void modify(const struct weft_attention_rows *r, float *s, const float *mask, int64_t n)
{
    for (int64_t j = 0; j < n; j += LANES) {
        const int some = some_of(n - j);
        vf x = vloadm(s + j, some, 0) * r->factor;
        if (r->softcap > 0)
            x = vtanh(x / r->softcap) * r->softcap;
        if (mask) {
            const vf m = vloadm(mask + j, some, 0), sum = x + m;
            x = vsel(m <= WEFT_ATTENTION_HIDES, m, sum);
        }
        vstorem(s + j, some, x);
    }
}

/* A NaN is as good as lost here: it makes weights NaN all the same. */
static float most(const float *s, int64_t n)
{
    vf m[4];
    UNROLL for (int i = 0; i < 4; i++)
        m[i] = vall(-__builtin_inff());
    int64_t j = 0;
    for (; j + 4 * LANES <= n; j += 4 * LANES) {
        UNROLL for (int i = 0; i < 4; i++)
            m[i] = vmax_x86(m[i], vload(s + j + i * LANES));
    }
    for (; j + LANES <= n; j += LANES)
        m[0] = vmax_x86(m[0], vload(s + j));
    if (j < n)
        m[1] = vmax_x86(m[1], vloadm(s + j, (int)(n - j), -__builtin_inff()));
    return most_of_lanes(vmax_x86(vmax_x86(m[0], m[1]), vmax_x86(m[2], m[3])));
}

/* exp(factor · s - centre), in the place of s; the sum. */
static float weigh_row(float *s, int64_t n, float factor, float centre)
{
    vf sum[VECTORS];
    UNROLL for (int i = 0; i < VECTORS; i++)
        sum[i] = vall(0);
    const vf c = vall(factor), m = vall(-centre);
    int64_t j = 0;
    for (; j + CHAINS <= n; j += CHAINS) {
        UNROLL for (int i = 0; i < VECTORS; i++) {
            const vf w = vexp_below(vfma(vload(s + j + i * LANES), c, m));
            vstore(s + j + i * LANES, w);
            sum[i] += w;
        }
    }
    UNROLL for (int i = 0; i < VECTORS; i++) {
        const int64_t left = n - j - i * LANES;
        if (left > 0) {
            const int some = some_of(left);
            const vf w = vexp_below(vfma(vloadm(s + j + i * LANES, some, -__builtin_inff()), c, m)); /* 0 behind n */
            vstorem(s + j + i * LANES, some, w);
            sum[i] += w;
        }
    }
    for (int half = VECTORS / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    }
    return sum_of_lanes(sum[0]);
}

static void weigh(const struct weft_attention_rows *r)
{
    const bool as_they_are = !r->mask && r->softcap == 0 && r->factor > 0;
    for (int64_t i = 0; i < r->rows; i++) {
        float *const s = r->score + i * r->score_row;
        const int64_t see = r->seen + i * r->step, n = see < 0 ? 0 : see < r->keys ? see : r->keys;
        if (!as_they_are)
            modify(r, s, r->mask ? r->mask + i * r->mask_row : NULL, n);
        const float factor = as_they_are ? r->factor : 1, top = most(s, n);
        r->centre[i] = top * factor;
        r->sum[i] = weigh_row(s, n, factor, top == -__builtin_inff() ? 0 : top * factor);
        for (int64_t j = n; j < r->keys; j++)
            s[j] = 0;
    }
}

static float log_sum(float centre, float sum) { return centre + vlog(vall(sum))[0]; }

static void scale(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns,
                  const float *inverse)
{
    for (int64_t i = 0; i < rows; i++, to += to_row, from += from_row) {
        const bool is_zero = inverse[i] == 0;
        for (int64_t j = 0; j < columns; j += LANES) {
            const int some = some_of(columns - j);
            vstorem(to + j, some, is_zero ? vall(0) : vloadm(from + j, some, 0) * inverse[i]);
        }
    }
}

const struct weft_attention_code LEVEL(weft_attention_f32) = {
    .name = "weft_attention_f32" LEVEL_TEXT, .cpu = LEVEL_CPU, .weigh = weigh,
    .log_sum = log_sum, .scale = scale, .decode = &LEVEL(weft_decode_f32)};
