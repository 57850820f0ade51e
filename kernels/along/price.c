/* SPDX-License-Identifier: Apache-2.0 */
/* price.c: what scans take besides reading and writing: estimates, for who weighs them against a group that scans. */
#include "kernels/along/along.h"

/* Picoseconds of an element on one thread, data in the nearest caches. Of lines of neighbours, whose prefixes are made
 * in vectors: by type, with 16 lanes, 8 and none. Of 8 lanes: 512 x 1024 and 64 x 2048 on Zen 4 (f32 600 to 609, bf16
 * 893 to 909, i32 550 to 562, f64 1875 to 1878; i64 goes element by element, 460 to 465; side by side f32, i32, i64 and
 * f64 261 to 324, bf16 2518 to 2595). The others are estimates by what scans of f32 and bf16 take with AVX-512. */
enum { LANES_16, LANES_8, LANES_1 };
static const double line_ps[WEFT_K_BOOL + 1][3] = {
    [WEFT_K_F64] = {500, 1880, 1000}, [WEFT_K_F32] = {160, 600, 2500}, [WEFT_K_BF16] = {250, 900, 2500},
    [WEFT_K_F16] = {250, 900, 2500},  [WEFT_K_I64] = {300, 460, 1000}, [WEFT_K_I32] = {160, 560, 2500},
};
enum {
    OTHER_PS = 1000,        /* of a type that is not listed */
    TOTAL_PS = 30,          /* what chunks come to */
    BESIDE_PS = 270,        /* element by element, lines side by side */
    BESIDE_16_PS = 150,     /* the same with 16 lanes */
    BESIDE_SMALL_PS = 2500, /* and of floats of 16 bits, one by one */
    CHAIN_PS = 1000         /* a line by itself */
};

static bool is_small(int dtype) { return dtype == WEFT_K_BF16 || dtype == WEFT_K_F16; }

static double beside_ps(const struct weft_along *along)
{
    return is_small(along->dtype) ? BESIDE_SMALL_PS : along->cpu & WEFT_CPU_AVX512 ? BESIDE_16_PS : BESIDE_PS;
}

static double element_ps(const struct weft_along *along, bool in_vectors, bool alone)
{
    if (!in_vectors)
        return alone ? CHAIN_PS : beside_ps(along);
    const int lanes = along->cpu & WEFT_CPU_AVX512 ? LANES_16 : along->cpu & WEFT_CPU_AVX2 ? LANES_8 : LANES_1;
    const double ps = line_ps[along->dtype][lanes];
    return (ps > 0 ? ps : OTHER_PS) + (along->chunks > 1 ? TOTAL_PS : 0);
}

struct weft_scan_rates weft_scan_rates_of(const struct weft_along *along)
{
    return (struct weft_scan_rates){
        .line_ns = 1e-3 * element_ps(along, weft_along_prefix_of(along) != NULL, weft_along_is_chain(along)),
        .beside_ns = 1e-3 * beside_ps(along)};
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
