/* SPDX-License-Identifier: Apache-2.0 */
/* philox.h: Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011). Four words of 32 bits
 * are a function of a counter of 128 bits and a key of 64: there is no state, so any thread computes any element. */
#ifndef WEFT_PHILOX_H
#define WEFT_PHILOX_H

#include <stdint.h>

struct weft_philox {
    uint32_t word[4];
};

static inline struct weft_philox weft_philox(const uint32_t counter[4], uint64_t seed)
{
    struct weft_philox c = {{counter[0], counter[1], counter[2], counter[3]}};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c.word[0] * 0xd2511f53u, b = (uint64_t)c.word[2] * 0xcd9e8d57u;
        c = (struct weft_philox){{(uint32_t)(b >> 32) ^ c.word[1] ^ key[0], (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c.word[3] ^ key[1], (uint32_t)a}};
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return c;
}

#endif
