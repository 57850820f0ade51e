/* SPDX-License-Identifier: Apache-2.0 */
/* resize_level.c: weighted sums of rows and of neighbours in a row, compiled once per CPU level. */
#include "kernels/resize/resize.h"
#include "kernels/strip/vector.h"

static void blend_row(float *to, const float *from, int64_t n, int64_t taps, const int64_t *place,
                      const float *weight)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf sum = vall(weight[0]) * vload(from + place[0] + i);
        for (int64_t k = 1; k < taps; k++)
            sum = sum + vall(weight[k]) * vload(from + place[k] + i);
        vstore(to + i, sum);
    }
    if (i == n)
        return;
    const int rest = (int)(n - i);
    vf sum = vall(weight[0]) * vloadm(from + place[0] + i, rest, 0.f);
    for (int64_t k = 1; k < taps; k++)
        sum = sum + vall(weight[k]) * vloadm(from + place[k] + i, rest, 0.f);
    vstorem(to + i, rest, sum);
}

#if WEFT_LEVEL > 0 && !defined __clang__
#if WEFT_LEVEL == 2
INLINE vf pick(vf x, vi at) { return __builtin_ia32_permvarsf512_mask(x, at, x, WEFT_ALL_LANES); }
#else
INLINE vf pick(vf x, vi at) { return __builtin_ia32_permvarsf256(x, at); }
#endif

static void blend_pairs(float *out, const float *from, const struct weft_blend_pairs *p)
{
    const vf x = vload(from + p->base);
    const vf one = vload(p->first_weight) * pick(x, viload(p->first));
    const vf two = one + vload(p->second_weight) * pick(x, viload(p->second));
    vstore(out, vsel(viload(p->both), two, one));
}
#define PAIRS LANES, blend_row, blend_pairs
#else
#define PAIRS 0, blend_row, NULL
#endif

const struct weft_blend_level LEVEL(weft_blend_level) = {"weft_blend_f32" LEVEL_TEXT, LEVEL_CPU, PAIRS};
