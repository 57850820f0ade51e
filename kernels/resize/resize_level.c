/* SPDX-License-Identifier: Apache-2.0 */
/* resize_level.c: weighted sums of rows, compiled once per CPU level. */
#include "kernels/resize/resize.h"
#include "kernels/strip/vector.h"

void LEVEL(weft_blend_row)(float *to, const float *from, int64_t n, int64_t taps, const int64_t *place,
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
