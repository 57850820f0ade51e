/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_level.c: scans of lines whose elements are neighbours, at one CPU level, for the types that models scan.
 *
 * Elements become doubles or 64-bit integers. A block of 32 is eight quads, which go side by side: first each by
 * itself, then what the eight come to becomes prefixes in three steps, and those go in front of the elements. What a
 * block comes to goes on to the next one: one operation, the only one that waits for the block before. What a chunk
 * comes to (chunks.c) is folded in 32 lanes, element i in lane i mod 32, while it is scanned or in a pass of its own,
 * which is much faster: no number leaves the place where it was loaded. The order of operations is the same at every
 * level.
 *
 * With AVX2, turning a block of 64-bit elements takes longer than going along it element by element, which comes to the
 * same where operations are exact: those of integers, and extremes of f64.
 *
 * Some doubles may leave the range where the line itself does not: then the block is scanned one by one. Products of
 * floats, which do so in more ways, are scanned by along_level.c. */
#include "kernels/along/along.h"
#include "kernels/small.h"
#include "kernels/strip/vector.h"
#include "kernels/strip/access.h"

#include <assert.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif

enum {
    BLOCK = 32,
    EIGHT = 16 / LANES,  /* vectors that hold eight numbers of 64 bits */
    VECTORS = 4 * EIGHT, /* in a block */
    MOST = LANES == 16 ? 2 : 1, /* blocks side by side, as far as there are registers */
    GROUP = MOST * BLOCK,
    FETCH_BYTES = 4096   /* so far ahead elements are asked for */
};
static_assert((int)BLOCK == (int)WEFT_ALONG_LANES, "an element of each block in each lane");
#define PLACE(i) ((i) % 4 * 8 + (i) / 4) /* of element i in the vectors of a block */

#if WEFT_LEVEL
#define PICK(vector, mask, a, b) ((vector)visel((vi)(mask), (vi)(a), (vi)(b)))
#if LANES == 16
#ifdef __clang__
#define SOME(vector, some, a, b) ((vector)__builtin_ia32_selectpd_512(some, (vd)(a), (vd)(b)))
#else
#define SOME(vector, some, a, b) ((vector)__builtin_ia32_blendmpd_512_mask((vd)(b), (vd)(a), some))
#endif
#define TURN(x) __builtin_shufflevector(x, x, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define TURN(x) __builtin_shufflevector(x, x, 3, 2, 1, 0)
#endif

/* A NaN stays; of equals the later one. */
#if WEFT_LEVEL == 2 && !defined __clang__
#define NUMBERS(a) __builtin_ia32_cmppd512_mask(a, a, 7 /* ordered */, (uint8_t)-1, WEFT_CURRENT)
INLINE vd later_max(vd a, vd b) { return __builtin_ia32_maxpd512_mask(a, b, a, NUMBERS(a), WEFT_CURRENT); }
INLINE vd later_min(vd a, vd b) { return __builtin_ia32_minpd512_mask(a, b, a, NUMBERS(a), WEFT_CURRENT); }
#else
INLINE vd later_max(vd a, vd b) { return vdsel((a != a) | (a > b), a, b); }
INLINE vd later_min(vd a, vd b) { return vdsel((a != a) | (a < b), a, b); }
#endif

#endif

/* Did no number on the way to the sum x come near the ends of the range? */
INLINE bool is_tame(double x) { return __builtin_fabs(x) <= 0x1p1000; }

#if WEFT_LEVEL
/* --- reading and writing blocks ----------------------------------------------------------------------------------- */

typedef int32_t half_i32 __attribute__((vector_size(2 * LANES)));
typedef uint32_t half_u32 __attribute__((vector_size(2 * LANES)));
typedef double any_f64 __attribute__((vector_size(4 * LANES), aligned(8), may_alias));

/* gcc 12 converts AVX-512 vectors a quarter at a time. */
#if WEFT_LEVEL == 2 && !defined __clang__
typedef long long v8q __attribute__((vector_size(64)));
INLINE vd widen_f32(vf_half x) { return __builtin_ia32_cvtps2pd512_mask(x, (vd){0}, (uint8_t)-1, WEFT_CURRENT); }
INLINE vl widen_i32(vf_half x) { return (vl)__builtin_ia32_pmovsxdq512_mask((half_i32)x, (v8q){0}, (uint8_t)-1); }
INLINE vq widen_u32(vf_half x) { return (vq)__builtin_ia32_pmovzxdq512_mask((half_i32)x, (v8q){0}, (uint8_t)-1); }
#else
INLINE vd widen_f32(vf_half x) { return __builtin_convertvector(x, vd); }
INLINE vl widen_i32(vf_half x) { return __builtin_convertvector((half_i32)x, vl); }
INLINE vq widen_u32(vf_half x) { return __builtin_convertvector((half_u32)x, vq); }
#endif
INLINE vf_half narrow_f32(vd x) { return __builtin_convertvector(x, vf_half); }
INLINE vf_half narrow_i32(vl x) { return (vf_half)__builtin_convertvector(x, half_i32); }
INLINE vf_half narrow_u32(vq x) { return (vf_half)__builtin_convertvector(x, half_u32); }

/* 32 elements of four bytes, in the order of memory, to quads, and back: half a vector has element e of LANES / 2
 * quads. */
#if LANES == 16
INLINE void to_quads(vf_half *q, const vf *a)
{
    const vf low = __builtin_shufflevector(a[0], a[1], 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const vf high = __builtin_shufflevector(a[0], a[1], 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    q[0] = __builtin_shufflevector(low, low, LOW_LANES);
    q[1] = __builtin_shufflevector(low, low, HIGH_LANES);
    q[2] = __builtin_shufflevector(high, high, LOW_LANES);
    q[3] = __builtin_shufflevector(high, high, HIGH_LANES);
}

INLINE void from_quads(vf *a, const vf_half *q)
{
    const vf low = __builtin_shufflevector(q[0], q[1], LOW_LANES, HIGH_LANES);
    const vf high = __builtin_shufflevector(q[2], q[3], LOW_LANES, HIGH_LANES);
    a[0] = __builtin_shufflevector(low, high, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    a[1] = __builtin_shufflevector(low, high, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
}
#else
/* Rows of four in both halves, to columns, and back. */
INLINE void turn_fours(vf *r)
{
    const vf a = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const vf b = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const vf c = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const vf d = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

INLINE void to_quads(vf_half *q, const vf *a)
{
    vf r[4] = {__builtin_shufflevector(a[0], a[2], 0, 1, 2, 3, 8, 9, 10, 11),
               __builtin_shufflevector(a[0], a[2], 4, 5, 6, 7, 12, 13, 14, 15),
               __builtin_shufflevector(a[1], a[3], 0, 1, 2, 3, 8, 9, 10, 11),
               __builtin_shufflevector(a[1], a[3], 4, 5, 6, 7, 12, 13, 14, 15)};
    turn_fours(r);
    UNROLL for (int e = 0; e < 4; e++) {
        q[2 * e] = __builtin_shufflevector(r[e], r[e], LOW_LANES);
        q[2 * e + 1] = __builtin_shufflevector(r[e], r[e], HIGH_LANES);
    }
}

INLINE void from_quads(vf *a, const vf_half *q)
{
    vf r[4];
    UNROLL for (int e = 0; e < 4; e++) r[e] = __builtin_shufflevector(q[2 * e], q[2 * e + 1], LOW_LANES, HIGH_LANES);
    turn_fours(r);
    a[0] = __builtin_shufflevector(r[0], r[1], 0, 1, 2, 3, 8, 9, 10, 11);
    a[1] = __builtin_shufflevector(r[2], r[3], 0, 1, 2, 3, 8, 9, 10, 11);
    a[2] = __builtin_shufflevector(r[0], r[1], 4, 5, 6, 7, 12, 13, 14, 15);
    a[3] = __builtin_shufflevector(r[2], r[3], 4, 5, 6, 7, 12, 13, 14, 15);
}
#endif

typedef float any_half __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

#define WORDS(type, wide, element)                                                                                     \
    INLINE void widen_all_##type(wide *x, const element *p)                                                            \
    {                                                                                                                  \
        UNROLL for (int k = 0; k < VECTORS; k++) x[k] =                                                                \
            widen_##type((vf_half) * (const any_half *)(const void *)(p + k * LANES / 2));                             \
    }                                                                                                                  \
    INLINE void load_##type(wide *x, const element *p)                                                                 \
    {                                                                                                                  \
        vf a[BLOCK / LANES];                                                                                           \
        vf_half q[VECTORS];                                                                                            \
        UNROLL for (int k = 0; k < BLOCK / LANES; k++) a[k] = vload((const float *)p + k * LANES);                     \
        to_quads(q, a);                                                                                                \
        UNROLL for (int k = 0; k < VECTORS; k++) x[k] = widen_##type(q[k]);                                            \
    }                                                                                                                  \
    INLINE void store_##type(element *p, const wide *x, bool past)                                                     \
    {                                                                                                                  \
        vf a[BLOCK / LANES];                                                                                           \
        vf_half q[VECTORS];                                                                                            \
        UNROLL for (int k = 0; k < VECTORS; k++) q[k] = narrow_##type(x[k]);                                           \
        from_quads(a, q);                                                                                              \
        UNROLL for (int k = 0; k < BLOCK / LANES; k++) vput((float *)p + k * LANES, a[k], past);                       \
    }
WORDS(f32, vd, float)
WORDS(i32, vl, int32_t)
WORDS(u32, vq, uint32_t)

/* To f32 with the last bit set where digits are lost: rounded once more, it is as if it had been rounded once. Not for
 * numbers below the normal ones that have more digits than those. */
INLINE vd to_odd(vd x)
{
    const vq bits = (vq)x, lost = bits & 0x1fffffff;
    return (vd)((bits & ~(uint64_t)0x1fffffff) | ((lost + 0x1fffffff) & 0x20000000));
}

#define SMALL(type)                                                                                                    \
    INLINE void widen_all_##type(vd *x, const uint16_t *p)                                                             \
    {                                                                                                                  \
        UNROLL for (int k = 0; k < BLOCK / LANES; k++)                                                                 \
        {                                                                                                              \
            const vf a = vfrom_##type(vhload(p + k * LANES));                                                          \
            x[2 * k] = widen_f32(__builtin_shufflevector(a, a, LOW_LANES));                                            \
            x[2 * k + 1] = widen_f32(__builtin_shufflevector(a, a, HIGH_LANES));                                       \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void load_##type(vd *x, const uint16_t *p)                                                                  \
    {                                                                                                                  \
        vf a[BLOCK / LANES];                                                                                           \
        vf_half q[VECTORS];                                                                                            \
        UNROLL for (int k = 0; k < BLOCK / LANES; k++) a[k] = vfrom_##type(vhload(p + k * LANES));                     \
        to_quads(q, a);                                                                                                \
        UNROLL for (int k = 0; k < VECTORS; k++) x[k] = widen_f32(q[k]);                                               \
    }                                                                                                                  \
    INLINE void store_##type(uint16_t *p, const vd *x, bool past)                                                      \
    {                                                                                                                  \
        vf a[BLOCK / LANES];                                                                                           \
        vf_half q[VECTORS];                                                                                            \
        UNROLL for (int k = 0; k < VECTORS; k++) q[k] = narrow_f32(to_odd(x[k]));                                      \
        from_quads(a, q);                                                                                              \
        UNROLL for (int k = 0; k < BLOCK / LANES; k++) vhput(p + k * LANES, vto_##type(a[k]), past);                   \
    }
SMALL(bf16)
SMALL(f16)

/* The same of eight bytes: a vector has half as many. */
#if LANES == 16
INLINE void turn_doubles(vd *x) /* 4 vectors of two quads to 4 of eight elements */
{
    const vd a = __builtin_shufflevector(x[0], x[1], 0, 4, 8, 12, 1, 5, 9, 13);
    const vd b = __builtin_shufflevector(x[2], x[3], 0, 4, 8, 12, 1, 5, 9, 13);
    const vd c = __builtin_shufflevector(x[0], x[1], 2, 6, 10, 14, 3, 7, 11, 15);
    const vd d = __builtin_shufflevector(x[2], x[3], 2, 6, 10, 14, 3, 7, 11, 15);
    x[0] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    x[1] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    x[2] = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11);
    x[3] = __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
}

INLINE void turn_doubles_back(vd *x)
{
    const vd a = __builtin_shufflevector(x[0], x[1], 0, 8, 1, 9, 2, 10, 3, 11);
    const vd b = __builtin_shufflevector(x[2], x[3], 0, 8, 1, 9, 2, 10, 3, 11);
    const vd c = __builtin_shufflevector(x[0], x[1], 4, 12, 5, 13, 6, 14, 7, 15);
    const vd d = __builtin_shufflevector(x[2], x[3], 4, 12, 5, 13, 6, 14, 7, 15);
    x[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 2, 3, 10, 11);
    x[1] = __builtin_shufflevector(a, b, 4, 5, 12, 13, 6, 7, 14, 15);
    x[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 2, 3, 10, 11);
    x[3] = __builtin_shufflevector(c, d, 4, 5, 12, 13, 6, 7, 14, 15);
}
#else
INLINE void turn_doubles(vd *x)
{
    double from[BLOCK], to[BLOCK];
    __builtin_memcpy(from, x, sizeof from);
    UNROLL for (int i = 0; i < BLOCK; i++) to[PLACE(i)] = from[i];
    __builtin_memcpy(x, to, sizeof to);
}

INLINE void turn_doubles_back(vd *x)
{
    double from[BLOCK], to[BLOCK];
    __builtin_memcpy(from, x, sizeof from);
    UNROLL for (int i = 0; i < BLOCK; i++) to[i] = from[PLACE(i)];
    __builtin_memcpy(x, to, sizeof to);
}
#endif

#define DOUBLE_WORDS(type, wide, element)                                                                              \
    INLINE void widen_all_##type(wide *x, const element *p)                                                            \
    {                                                                                                                  \
        UNROLL for (int k = 0; k < VECTORS; k++) x[k] = (wide) * ((const any_f64 *)(const void *)p + k);               \
    }                                                                                                                  \
    INLINE void load_##type(wide *x, const element *p)                                                                 \
    {                                                                                                                  \
        vd d[VECTORS];                                                                                                 \
        UNROLL for (int k = 0; k < VECTORS; k++) d[k] = *((const any_f64 *)(const void *)p + k);                       \
        turn_doubles(d);                                                                                               \
        UNROLL for (int k = 0; k < VECTORS; k++) x[k] = (wide)d[k];                                                    \
    }                                                                                                                  \
    INLINE void store_##type(element *p, const wide *x, bool past)                                                     \
    {                                                                                                                  \
        vd d[VECTORS];                                                                                                 \
        UNROLL for (int k = 0; k < VECTORS; k++) d[k] = (vd)x[k];                                                      \
        turn_doubles_back(d);                                                                                          \
        UNROLL for (int k = 0; k < VECTORS; k++)                                                                       \
            vput((float *)(void *)p + k * LANES, (vf)d[k], past);                                                      \
    }
DOUBLE_WORDS(f64, vd, double)
DOUBLE_WORDS(i64, vl, int64_t)
DOUBLE_WORDS(u64, vq, uint64_t)

#else
/* --- one element -------------------------------------------------------------------------------------------------- */

#define load_f64(x)   (x)
#define load_f32(x)   (double)(x)
#define load_bf16(x)  (double)vfrom_bf16((vh){x})[0]
#define load_f16(x)   (double)vfrom_f16((vh){x})[0]
#define load_i64(x)   (x)
#define load_i32(x)   (int64_t)(x)
#define load_u64(x)   (x)
#define load_u32(x)   (uint64_t)(x)
#define store_f64(x)  (x)
#define store_f32(x)  (float)(x)
#define store_bf16(x) vto_bf16((vf){weft_odd_f64(x)})[0]
#define store_f16(x)  vto_f16((vf){weft_odd_f64(x)})[0]
#define store_i64(x)  (x)
#define store_i32(x)  (int32_t)(x)
#define store_u64(x)  (x)
#define store_u32(x)  (uint32_t)(x)
#endif

/* --- the types ---------------------------------------------------------------------------------------------------- */

#define ELEMENT       double
#define WIDE          double
#define VECTOR        vd
#define SUFFIX(name)  name##_f64
#define LOWEST        (-__builtin_inf())
#define HIGHEST       __builtin_inf()
#define IS_FLOAT      1
#define OVERFLOWS(op) ((op) == WEFT_K_CUMSUM)
#define CHAINS(op)    (LANES == 8 && (op) != WEFT_K_CUMSUM)
#define LOAD          load_f64
#define WIDEN_ALL     widen_all_f64
#define STORE         store_f64
#define MEMBER        real
#include "kernels/along/prefix.inc"

#define ELEMENT       float
#define WIDE          double
#define VECTOR        vd
#define SUFFIX(name)  name##_f32
#define LOWEST        (-__builtin_inf())
#define HIGHEST       __builtin_inf()
#define IS_FLOAT      1
#define OVERFLOWS(op) false
#define CHAINS(op)    false
#define LOAD          load_f32
#define WIDEN_ALL     widen_all_f32
#define STORE         store_f32
#define MEMBER        real
#include "kernels/along/prefix.inc"

#define ELEMENT       uint16_t
#define WIDE          double
#define VECTOR        vd
#define SUFFIX(name)  name##_bf16
#define LOWEST        (-__builtin_inf())
#define HIGHEST       __builtin_inf()
#define IS_FLOAT      1
#define OVERFLOWS(op) false
#define CHAINS(op)    false
#define LOAD          load_bf16
#define WIDEN_ALL     widen_all_bf16
#define STORE         store_bf16
#define MEMBER        real
#include "kernels/along/prefix.inc"

#define ELEMENT       uint16_t
#define WIDE          double
#define VECTOR        vd
#define SUFFIX(name)  name##_f16
#define LOWEST        (-__builtin_inf())
#define HIGHEST       __builtin_inf()
#define IS_FLOAT      1
#define OVERFLOWS(op) false
#define CHAINS(op)    false
#define LOAD          load_f16
#define WIDEN_ALL     widen_all_f16
#define STORE         store_f16
#define MEMBER        real
#include "kernels/along/prefix.inc"

#define ELEMENT       int64_t
#define WIDE          int64_t
#define VECTOR        vl
#define SUFFIX(name)  name##_i64
#define LOWEST        INT64_MIN
#define HIGHEST       INT64_MAX
#define IS_FLOAT      0
#define OVERFLOWS(op) false
#define CHAINS(op)    (LANES == 8)
#define LOAD          load_i64
#define WIDEN_ALL     widen_all_i64
#define STORE         store_i64
#define MEMBER        whole
#include "kernels/along/prefix.inc"

#define ELEMENT       int32_t
#define WIDE          int64_t
#define VECTOR        vl
#define SUFFIX(name)  name##_i32
#define LOWEST        INT32_MIN
#define HIGHEST       INT32_MAX
#define IS_FLOAT      0
#define OVERFLOWS(op) false
#define CHAINS(op)    (LANES == 8)
#define LOAD          load_i32
#define WIDEN_ALL     widen_all_i32
#define STORE         store_i32
#define MEMBER        whole
#include "kernels/along/prefix.inc"

#define ELEMENT       uint64_t
#define WIDE          uint64_t
#define VECTOR        vq
#define SUFFIX(name)  name##_u64
#define LOWEST        0
#define HIGHEST       UINT64_MAX
#define IS_FLOAT      0
#define OVERFLOWS(op) false
#define CHAINS(op)    (LANES == 8)
#define LOAD          load_u64
#define WIDEN_ALL     widen_all_u64
#define STORE         store_u64
#define MEMBER        bits
#include "kernels/along/prefix.inc"

#define ELEMENT       uint32_t
#define WIDE          uint64_t
#define VECTOR        vq
#define SUFFIX(name)  name##_u32
#define LOWEST        0
#define HIGHEST       UINT32_MAX
#define IS_FLOAT      0
#define OVERFLOWS(op) false
#define CHAINS(op)    (LANES == 8)
#define LOAD          load_u32
#define WIDEN_ALL     widen_all_u32
#define STORE         store_u32
#define MEMBER        bits
#include "kernels/along/prefix.inc"

#define PREFIX(dtype, id)                                                                                              \
    [dtype] = {"weft_along_prefix_" #id LEVEL_TEXT, prefix_start_##id, prefix_total_##id, prefix_join_##id,            \
               prefix_piece_##id, prefix_go_on_##id, prefix_total_in_##id, prefix_total_end_##id},
const struct weft_along_pieces LEVEL(weft_along_prefixes)[WEFT_K_U8 + 1] = {
    PREFIX(WEFT_K_F64, f64)
    PREFIX(WEFT_K_F32, f32)
    PREFIX(WEFT_K_BF16, bf16)
    PREFIX(WEFT_K_F16, f16)
    PREFIX(WEFT_K_I64, i64)
    PREFIX(WEFT_K_I32, i32)
    PREFIX(WEFT_K_U64, u64)
    PREFIX(WEFT_K_U32, u32)
};
