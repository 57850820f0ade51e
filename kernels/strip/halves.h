/* SPDX-License-Identifier: Apache-2.0 */
/* halves.h: n 16-bit floats as f32, and n of f32 rounded to them, side by side in memory. Widening takes two vectors an
 * iteration: with one, the loop took up to 1.27 of the time of a longer one, depending on where it lay in memory. */
#ifndef WEFT_STRIP_HALVES_H
#define WEFT_STRIP_HALVES_H

#include "kernels/strip/access.h"

#define HALVES(id)                                                                                                     \
    INLINE void widen_##id(float *to, const uint16_t *from, int64_t n)                                                 \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                                   \
            const vf low = vfrom_##id(vhload(from + i)), high = vfrom_##id(vhload(from + i + LANES));                  \
            vstore(to + i, low);                                                                                       \
            vstore(to + i + LANES, high);                                                                              \
        }                                                                                                              \
        if (i + LANES <= n) {                                                                                          \
            vstore(to + i, vfrom_##id(vhload(from + i)));                                                              \
            i += LANES;                                                                                                \
        }                                                                                                              \
        const int live = (int)(n - i);                                                                                 \
        vstorem(to + i, live, vfrom_##id(load_16_tail(from + i, live)));                                               \
    }                                                                                                                  \
    INLINE void narrow_##id(uint16_t *to, const float *from, int64_t n)                                                \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            vhstore(to + i, vto_##id(vload(from + i)));                                                                \
        const int live = (int)(n - i);                                                                                 \
        store_16_tail(to + i, live, vto_##id(vloadm(from + i, live, 0.f)));                                            \
    }
HALVES(bf16)
HALVES(f16)
#undef HALVES

#endif
