/* SPDX-License-Identifier: Apache-2.0 */
/* along_level.c: scans and arguments of extremes at one CPU level, for each element type. Compiled once per level, by a
 * compiler that makes vectors of what lines that are neighbours do side by side. */
#include "kernels/along/along.h"
#include "kernels/small.h"
#include "kernels/strip/floats.h"
#include "kernels/strip/vector.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* at O2, gcc vectorises no loop whose length it does not know */
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* of lines that are not neighbours */
#endif

/* One small float. Rounding once: see small.h. */
INLINE float from_bf16(uint16_t x) { return weft_float_of((uint32_t)x << 16); }
INLINE uint16_t to_bf16(double x)
{
    const uint32_t bits = weft_bits_of(weft_odd_f64(x));
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
INLINE float from_f16(uint16_t x) { return vfrom_f16((vh){x})[0]; }
INLINE uint16_t to_f16(double x) { return vto_f16((vf){weft_odd_f64(x)})[0]; }

#define ELEMENT      double
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_f64
#define MEMBER       real
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#include "kernels/along/along.inc"

#define ELEMENT      float
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_f32
#define MEMBER       real
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#include "kernels/along/along.inc"

#define ELEMENT      uint16_t
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_bf16
#define MEMBER       real
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#define VALUE        float
#define VALUE_OF(x)  from_bf16(x)
#define WIDEN(x)     ((double)from_bf16(x))
#define NARROW(x)    to_bf16(x)
#include "kernels/along/along.inc"

#define ELEMENT      uint16_t
#define WIDE         double
#define SIGNED       double
#define SUFFIX(name) name##_f16
#define MEMBER       real
#define IS_FLOAT     true
#define LOWEST       (-__builtin_inf())
#define HIGHEST      __builtin_inf()
#define IS_NAN(x)    ((x) != (x))
#define VALUE        float
#define VALUE_OF(x)  from_f16(x)
#define WIDEN(x)     ((double)from_f16(x))
#define NARROW(x)    to_f16(x)
#include "kernels/along/along.inc"

#define ELEMENT      int64_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i64
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       INT64_MIN
#define HIGHEST      INT64_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int32_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i32
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       INT32_MIN
#define HIGHEST      INT32_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int16_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i16
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       INT16_MIN
#define HIGHEST      INT16_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      int8_t
#define WIDE         uint64_t
#define SIGNED       int64_t
#define SUFFIX(name) name##_i8
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       INT8_MIN
#define HIGHEST      INT8_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint64_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u64
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT64_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint32_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u32
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT32_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint16_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u16
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT16_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

#define ELEMENT      uint8_t
#define WIDE         uint64_t
#define SIGNED       uint64_t
#define SUFFIX(name) name##_u8
#define MEMBER       bits
#define IS_FLOAT     false
#define LOWEST       0
#define HIGHEST      UINT8_MAX
#define IS_NAN(x)    false
#include "kernels/along/along.inc"

/* --- lines of floats whose elements are neighbours ---------------------------------------------------------------- */

/* A bit for each lane of a mask. */
INLINE unsigned lanes_of(vi mask)
{
#if WEFT_LEVEL == 2
    return __builtin_ia32_cvtd2mask512(mask);
#elif WEFT_LEVEL == 1
    return (unsigned)__builtin_ia32_movmskps256((vf)mask);
#else
    return (unsigned)vlanes(mask);
#endif
}

enum {
    ARG_BLOCK = 1024, /* elements: the extreme of a block, then where in the best block it is */
    ARG_CHAINS = 4,
    ARG_AHEAD = 16384 /* bytes: while a block is looked through again, memory would have nothing to do */
};

/* Lanes of `best`, or of NaN. */
INLINE unsigned lanes_with(bool nan, vf x, float best)
{
#if WEFT_LEVEL == 2 && !defined __clang__ /* gcc 12 makes a vector of the mask in between */
    return nan ? __builtin_ia32_cmpps512_mask(x, x, 3 /* unordered */, WEFT_ALL_LANES, WEFT_CURRENT)
               : __builtin_ia32_cmpps512_mask(x, vall(best), 0 /* equal */, WEFT_ALL_LANES, WEFT_CURRENT);
#else
    return lanes_of(nan ? x != x : x == vall(best));
#endif
}

/* Where in [begin, end) is `best`, or a NaN, for the first or the last time? It is there. Several vectors are asked at
 * once, as long as none has it. */
INLINE int64_t find(int dtype, bool last, bool nan, const void *in, float best, int64_t begin, int64_t end)
{
    const int64_t stride = ARG_CHAINS * LANES;
    int64_t found = begin, i = begin;
    for (; !last && i + stride <= end; i += stride) {
        unsigned bits = 0;
        UNROLL for (int k = 0; k < ARG_CHAINS; k++)
            bits |= lanes_with(nan, floats_at(dtype, in, i + k * LANES), best);
        if (bits)
            break;
    }
    for (; i < end; i += LANES) {
        const int live = end - i < LANES ? (int)(end - i) : LANES;
        const unsigned bits = lanes_with(nan, some_floats_at(dtype, in, i, live, 0.f), best) & ((1u << live) - 1);
        if (bits && !last)
            return i + __builtin_ctz(bits);
        if (bits)
            found = i + 31 - __builtin_clz(bits);
    }
    return found;
}

/* The extreme of a block without its NaNs, and whether it has any. */
INLINE float block_extreme(int dtype, bool largest, const void *in, int64_t begin, int64_t end, bool *ret_nan)
{
    const float worst = largest ? -__builtin_inff() : __builtin_inff();
    const int64_t bytes = dtype == WEFT_K_F32 ? 4 : 2;
    vf chain[ARG_CHAINS];
    vi nan = {0};
    int64_t i = begin;
    UNROLL for (int k = 0; k < ARG_CHAINS; k++) chain[k] = vall(worst);
    for (; i + ARG_CHAINS * LANES <= end; i += ARG_CHAINS * LANES) {
        UNROLL for (int64_t line = 0; line < ARG_CHAINS * LANES * bytes; line += 64)
            __builtin_prefetch((const char *)in + i * bytes + ARG_AHEAD + line);
        UNROLL for (int k = 0; k < ARG_CHAINS; k++) {
            const vf x = floats_at(dtype, in, i + k * LANES);
            nan |= x != x;
            chain[k] = largest ? vmax_x86(x, chain[k]) : vmin_x86(x, chain[k]);
        }
    }
    for (; i < end; i += LANES) {
        const vf x = some_floats_at(dtype, in, i, end - i < LANES ? (int)(end - i) : LANES, worst);
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

INLINE int64_t arg_line(int dtype, bool largest, bool last, const void *in, int64_t n)
{
    float best = largest ? -__builtin_inff() : __builtin_inff();
    int64_t block = 0;
    bool nan = false;
    for (int64_t begin = 0; begin < n && (last || !nan); begin += ARG_BLOCK) {
        bool here;
        const int64_t end = n - begin < ARG_BLOCK ? n : begin + ARG_BLOCK;
        const float extreme = block_extreme(dtype, largest, in, begin, end, &here);
        const bool better = (largest ? extreme > best : extreme < best) || (last && extreme == best);
        if (here || (better && !nan)) {
            block = begin;
            best = extreme;
        }
        nan |= here;
    }
    return find(dtype, last, nan, in, best, block, n - block < ARG_BLOCK ? n : block + ARG_BLOCK);
}

#define ARG_NEIGHBOURS(DTYPE, id, type)                                                                                \
    static void arg_neighbours_##id(const struct weft_along *along, void *out, const void *in, int64_t out_line,       \
                                    int64_t in_line, int64_t lines)                                                    \
    {                                                                                                                  \
        if (along->in_step != 1) {                                                                                     \
            arg_##id(along, out, in, out_line, in_line, lines);                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < lines; j++) {                                                                          \
            const type *const line = (const type *)in + j * in_line;                                                   \
            const bool last = along->last;                                                                             \
            int64_t *const to = (int64_t *)out + j * out_line;                                                         \
            if (along->op == WEFT_K_ARG_MAX)                                                                           \
                *to = last ? arg_line(DTYPE, true, true, line, along->n)                                               \
                           : arg_line(DTYPE, true, false, line, along->n);                                             \
            else                                                                                                       \
                *to = last ? arg_line(DTYPE, false, true, line, along->n)                                              \
                           : arg_line(DTYPE, false, false, line, along->n);                                            \
        }                                                                                                              \
    }
ARG_NEIGHBOURS(WEFT_K_F32, f32, float)
ARG_NEIGHBOURS(WEFT_K_BF16, bf16, uint16_t)
ARG_NEIGHBOURS(WEFT_K_F16, f16, uint16_t)
#define arg_f32  arg_neighbours_f32
#define arg_bf16 arg_neighbours_bf16
#define arg_f16  arg_neighbours_f16

#define LOOPS(DTYPE, id, type)                                                                                         \
    [DTYPE] = {sizeof(type), "weft_along_arg_" #id LEVEL_TEXT, scan_##id, arg_##id, beside_##id,                       \
               {"weft_along_scan_" #id LEVEL_TEXT, start_##id, total_##id, join_##id, piece_##id, go_on_##id}},
const struct weft_along_loops LEVEL(weft_along_loops)[WEFT_K_U8 + 1] = {
    LOOPS(WEFT_K_F64, f64, double)
    LOOPS(WEFT_K_F32, f32, float)
    LOOPS(WEFT_K_BF16, bf16, uint16_t)
    LOOPS(WEFT_K_F16, f16, uint16_t)
    LOOPS(WEFT_K_I64, i64, int64_t)
    LOOPS(WEFT_K_I32, i32, int32_t)
    LOOPS(WEFT_K_I16, i16, int16_t)
    LOOPS(WEFT_K_I8, i8, int8_t)
    LOOPS(WEFT_K_U64, u64, uint64_t)
    LOOPS(WEFT_K_U32, u32, uint32_t)
    LOOPS(WEFT_K_U16, u16, uint16_t)
    LOOPS(WEFT_K_U8, u8, uint8_t)
};
