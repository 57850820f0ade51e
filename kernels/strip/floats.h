/* SPDX-License-Identifier: Apache-2.0 */
/* floats.h: floats of 32 and 16 bits in memory as vectors of f32, for loops that are one text for all of them. `dtype`:
 * WEFT_K_F32, WEFT_K_BF16 or WEFT_K_F16, a constant where these are called. */
#ifndef WEFT_STRIP_FLOATS_H
#define WEFT_STRIP_FLOATS_H

#include "kernels/kernels.h"
#include "kernels/strip/access.h"

/* LANES of them from element i on. */
INLINE vf floats_at(int dtype, const void *in, int64_t i)
{
    if (dtype == WEFT_K_F32)
        return vload((const float *)in + i);
    const vh x = vhload((const uint16_t *)in + i);
    return dtype == WEFT_K_BF16 ? vfrom_bf16(x) : vfrom_f16(x);
}

/* The first n, 0 < n <= LANES, others being `fill`. */
INLINE vf some_floats_at(int dtype, const void *in, int64_t i, int n, float fill)
{
    if (n == LANES)
        return floats_at(dtype, in, i);
    if (dtype == WEFT_K_F32)
        return vloadm((const float *)in + i, n, fill);
    const vh x = load_16_tail((const uint16_t *)in + i, n);
    return vfirst(dtype == WEFT_K_BF16 ? vfrom_bf16(x) : vfrom_f16(x), n, fill);
}

#endif
