/* SPDX-License-Identifier: Apache-2.0 */
/* price.c: what scans take besides reading and writing: estimates, for who weighs them against a group that scans. */
#include "kernels/along/along.h"

/* Picoseconds of an element on one thread, data in the nearest caches. */
enum {
    SIXTEEN_PS = 150, SIXTEEN_SMALL_PS = 250, /* prefixes in vectors: 32 bits and more, and floats of 16, AVX-512 */
    EIGHT_PS = 450, EIGHT_SMALL_PS = 800,     /* AVX2 */
    PLAIN_PS = 2500,
    TOTAL_PS = 30,                            /* what chunks come to */
    BESIDE_PS = 250,                          /* element by element, lines side by side */
    CHAIN_PS = 1000                           /* and by itself */
};

static double element_ps(const struct weft_along *along, bool in_vectors, bool alone)
{
    const bool is_small = along->dtype == WEFT_K_BF16 || along->dtype == WEFT_K_F16;
    if (!in_vectors)
        return alone ? CHAIN_PS : BESIDE_PS;
    const double ps = along->cpu & WEFT_CPU_AVX512 ? (is_small ? SIXTEEN_SMALL_PS : SIXTEEN_PS)
                      : along->cpu & WEFT_CPU_AVX2 ? (is_small ? EIGHT_SMALL_PS : EIGHT_PS) : PLAIN_PS;
    return ps + (along->chunks > 1 ? TOTAL_PS : 0);
}

double weft_scan_ns(const struct weft_scan *scan, bool alone)
{
    return 1e-3 * element_ps(&scan->along, scan->in_vectors, alone);
}

double weft_along_ns(const struct weft_along *along)
{
    double elements = (double)along->n;
    for (int i = 0; i < along->rank; i++)
        elements *= (double)along->extent[i];
    if (along->op < WEFT_K_CUMSUM || along->op > WEFT_K_CUMMIN)
        return 0;
    return 1e-3 * elements * element_ps(along, weft_along_prefix_of(along) != NULL, false);
}
