/* SPDX-License-Identifier: Apache-2.0 */
/* along_level.c: scans and arguments of extremes at one CPU level, for each element type. Compiled once per level, by a
 * compiler that makes vectors of what lines that are neighbours do side by side. */
#include "kernels/along/along.h"
#include "kernels/strip/vector.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* at O2, gcc vectorises no loop whose length it does not know */
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* of lines that are not neighbours */
#endif

#define ELEMENT      double
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_f64
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#include "kernels/along/along.inc"

#define ELEMENT      float
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_f32
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#include "kernels/along/along.inc"

#define ELEMENT      int64_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i64
#define IS_FLOAT     false
#define LOWEST       INT64_MIN
#define HIGHEST      INT64_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int32_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i32
#define IS_FLOAT     false
#define LOWEST       INT32_MIN
#define HIGHEST      INT32_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int16_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i16
#define IS_FLOAT     false
#define LOWEST       INT16_MIN
#define HIGHEST      INT16_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int8_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i8
#define IS_FLOAT     false
#define LOWEST       INT8_MIN
#define HIGHEST      INT8_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint64_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u64
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT64_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint32_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u32
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT32_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint16_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u16
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT16_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint8_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u8
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT8_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

/* --- lines whose elements are neighbours, f32 --------------------------------------------------------------------- */

/* A bit for each lane of a mask. */
INLINE unsigned lanes_of(vi mask)
{
#if WEFT_LEVEL == 2
    return __builtin_ia32_cvtd2mask512(mask);
#elif WEFT_LEVEL == 1
    return (unsigned)__builtin_ia32_movmskps256((vf)mask);
#else
    return (unsigned)__builtin_ia32_movmskps((vf)mask);
#endif
}

/* Where in [begin, end) is `best`, or a NaN, for the first or the last time? It is there. */
INLINE int64_t find(bool last, bool nan, const float *in, float best, int64_t begin, int64_t end)
{
    int64_t found = begin;
    for (int64_t i = begin; i < end; i += LANES) {
        const int live = end - i < LANES ? (int)(end - i) : LANES;
        const vf x = vloadm(in + i, live, 0.f);
        const unsigned bits = lanes_of(nan ? x != x : x == vall(best)) & ((1u << live) - 1);
        if (bits && !last)
            return i + __builtin_ctz(bits);
        if (bits)
            found = i + 31 - __builtin_clz(bits);
    }
    return found;
}

enum { ARG_BLOCK = 1024, ARG_CHAINS = 4 }; /* elements: the extreme of a block, then where in the best block it is */

/* The extreme of a block without its NaNs, and whether it has any. */
INLINE float block_extreme(bool largest, const float *in, int64_t n, bool *ret_nan)
{
    const float worst = largest ? -__builtin_inff() : __builtin_inff();
    vf chain[ARG_CHAINS];
    vi nan = {0};
    int64_t i = 0;
    UNROLL for (int k = 0; k < ARG_CHAINS; k++) chain[k] = vall(worst);
    for (; i + ARG_CHAINS * LANES <= n; i += ARG_CHAINS * LANES)
        UNROLL for (int k = 0; k < ARG_CHAINS; k++) {
            const vf x = vload(in + i + k * LANES);
            nan |= x != x;
            chain[k] = largest ? vmax_x86(x, chain[k]) : vmin_x86(x, chain[k]);
        }
    for (; i < n; i += LANES) {
        const vf x = vloadm(in + i, n - i < LANES ? (int)(n - i) : LANES, worst);
        nan |= x != x;
        chain[0] = largest ? vmax_x86(x, chain[0]) : vmin_x86(x, chain[0]);
    }
    UNROLL for (int k = 1; k < ARG_CHAINS; k++)
        chain[0] = largest ? vmax_x86(chain[k], chain[0]) : vmin_x86(chain[k], chain[0]);
    float extreme = worst;
    for (int lane = 0; lane < LANES; lane++)
        extreme = (largest ? chain[0][lane] > extreme : chain[0][lane] < extreme) ? chain[0][lane] : extreme;
    *ret_nan = lanes_of(nan) != 0;
    return extreme;
}

INLINE int64_t arg_line(bool largest, bool last, const float *in, int64_t n)
{
    float best = largest ? -__builtin_inff() : __builtin_inff();
    int64_t block = 0;
    bool nan = false;
    for (int64_t begin = 0; begin < n && (last || !nan); begin += ARG_BLOCK) {
        bool here;
        const float extreme = block_extreme(largest, in + begin, n - begin < ARG_BLOCK ? n - begin : ARG_BLOCK, &here);
        const bool better = (largest ? extreme > best : extreme < best) || (last && extreme == best);
        if (here || (better && !nan)) {
            block = begin;
            best = extreme;
        }
        nan |= here;
    }
    return find(last, nan, in, best, block, n - block < ARG_BLOCK ? n : block + ARG_BLOCK);
}

static void arg_neighbours_f32(const struct weft_along *along, void *out, const void *in, int64_t out_line,
                               int64_t in_line, int64_t lines)
{
    if (along->in_step != 1) {
        arg_f32(along, out, in, out_line, in_line, lines);
        return;
    }
    for (int64_t j = 0; j < lines; j++) {
        const float *const line = (const float *)in + j * in_line;
        const bool last = along->last;
        int64_t *const to = (int64_t *)out + j * out_line;
        if (along->op == WEFT_K_ARG_MAX)
            *to = last ? arg_line(true, true, line, along->n) : arg_line(true, false, line, along->n);
        else
            *to = last ? arg_line(false, true, line, along->n) : arg_line(false, false, line, along->n);
    }
}
#define arg_f32 arg_neighbours_f32

#define LOOPS(DTYPE, id, type)                                                                                         \
    [DTYPE] = {sizeof(type), "weft_along_scan_" #id LEVEL_TEXT, "weft_along_arg_" #id LEVEL_TEXT, scan_##id, arg_##id, \
               totals_##id, chunks_##id},
const struct weft_along_loops LEVEL(weft_along_loops)[WEFT_K_U8 + 1] = {
    LOOPS(WEFT_K_F64, f64, double)
    LOOPS(WEFT_K_F32, f32, float)
    LOOPS(WEFT_K_I64, i64, int64_t)
    LOOPS(WEFT_K_I32, i32, int32_t)
    LOOPS(WEFT_K_I16, i16, int16_t)
    LOOPS(WEFT_K_I8, i8, int8_t)
    LOOPS(WEFT_K_U64, u64, uint64_t)
    LOOPS(WEFT_K_U32, u32, uint32_t)
    LOOPS(WEFT_K_U16, u16, uint16_t)
    LOOPS(WEFT_K_U8, u8, uint8_t)
};
