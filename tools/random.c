/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: inputs for commands and tests that have none. splitmix64 (Steele, Lea, Flood, Fast Splittable Pseudorandom
 * Number Generators, 2014): one multiply-and-shift a number, any seed is a good one, the same numbers everywhere. */
#include "tools/tools.h"

#include "ir/ir.h"

uint64_t weft_tool_next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void weft_tool_random(struct weft_tensor *tensor, int64_t elements, double low, double high, uint64_t *state)
{
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = weft_tool_next_random(state);
        if (weft_dtype_is_float(tensor->dtype))
            weft_store_real(tensor->dtype, tensor->data, i, low + (high - low) * (double)(bits >> 11) * 0x1p-53);
        else
            weft_store_integer(tensor->dtype, tensor->data, i, (int64_t)(bits >> 63));
    }
}
