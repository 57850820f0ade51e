/* SPDX-License-Identifier: Apache-2.0 */
/* strip_cast.c: casts between all types of whole bytes, in scalar C. The frequent ones have vectors (strip.def,
 * strip_cast_by.def), and win since their tables come first.
 *
 * A cast goes by way of one number that holds the operand exactly, or as much of it as the result can tell:
 *
 *   to an integer      64 bits: floats truncate, saturating; then the low bits
 *   to f64, f32        the operand itself, converted by the compiler, which rounds once
 *   to smaller floats  an f32 rounded to odd: where digits were lost, the last bit says so, and the second rounding
 *                      cannot meet a tie that the first one made
 *   to bool            is it not 0? */
#include "kernels/small.h"
#include "kernels/strip/rows.h"

#include <math.h>
#include <string.h>

typedef uint8_t type_f8e4m3, type_f8e5m2;

/* --- rounding to odd ---------------------------------------------------------------------------------------------- */

/* Cut to 24 bits, any of the others kept in the last of them. */
static float odd_u64(uint64_t x)
{
    if (x >> 24 == 0)
        return (float)x;
    const int shift = 40 - __builtin_clzll(x);
    const uint64_t rest = x & (((uint64_t)1 << shift) - 1);
    return ldexpf((float)((x >> shift) | (rest != 0)), shift);
}

static float odd_i64(int64_t x) { return x < 0 ? -odd_u64(0 - (uint64_t)x) : odd_u64((uint64_t)x); }

/* --- small floats ------------------------------------------------------------------------------------------------- */

/* `saturate` is the parameter of a cast to 8 bits. */
static uint32_t narrow_8(struct weft_small f, float largest, bool saturate, float x)
{
    return weft_small_narrow(f, saturate && x > largest ? largest : saturate && x < -largest ? -largest : x);
}

/* --- an operand as each of the numbers ---------------------------------------------------------------------------- */

#define REAL_f64(x)     (x)
#define REAL_f32(x)     (x)
#define REAL_bf16(x)    weft_small_widen(weft_small_bf16, x)
#define REAL_f16(x)     weft_small_widen(weft_small_f16, x)
#define REAL_f8e4m3(x)  weft_small_widen(weft_small_f8e4m3, x)
#define REAL_f8e5m2(x)  weft_small_widen(weft_small_f8e5m2, x)
#define REAL_i64(x)     (x)
#define REAL_i32(x)     (x)
#define REAL_i16(x)     (x)
#define REAL_i8(x)      (x)
#define REAL_u64(x)     (x)
#define REAL_u32(x)     (x)
#define REAL_u16(x)     (x)
#define REAL_u8(x)      (x)
#define REAL_truth(x)   ((x) != 0)

#define ODD_f64(x)      weft_odd_f64(x)
#define ODD_f32(x)      (x)
#define ODD_bf16(x)     REAL_bf16(x)
#define ODD_f16(x)      REAL_f16(x)
#define ODD_f8e4m3(x)   REAL_f8e4m3(x)
#define ODD_f8e5m2(x)   REAL_f8e5m2(x)
#define ODD_i64(x)      odd_i64(x)
#define ODD_i32(x)      odd_i64(x)
#define ODD_i16(x)      ((float)(x))
#define ODD_i8(x)       ((float)(x))
#define ODD_u64(x)      odd_u64(x)
#define ODD_u32(x)      odd_u64(x)
#define ODD_u16(x)      ((float)(x))
#define ODD_u8(x)       ((float)(x))
#define ODD_truth(x)    ((float)((x) != 0))

#define WHOLE_f64(x)    weft_whole_part(x)
#define WHOLE_f32(x)    weft_whole_part((double)(x))
#define WHOLE_bf16(x)   weft_whole_part((double)REAL_bf16(x))
#define WHOLE_f16(x)    weft_whole_part((double)REAL_f16(x))
#define WHOLE_f8e4m3(x) weft_whole_part((double)REAL_f8e4m3(x))
#define WHOLE_f8e5m2(x) weft_whole_part((double)REAL_f8e5m2(x))
#define WHOLE_i64(x)    (x)
#define WHOLE_i32(x)    (x)
#define WHOLE_i16(x)    (x)
#define WHOLE_i8(x)     (x)
#define WHOLE_u64(x)    (x)
#define WHOLE_u32(x)    (x)
#define WHOLE_u16(x)    (x)
#define WHOLE_u8(x)     (x)
#define WHOLE_truth(x)  ((x) != 0)

#define UNSIGNED_f64(x)    weft_whole_u64(x)
#define UNSIGNED_f32(x)    weft_whole_u64((double)(x))
#define UNSIGNED_bf16(x)   weft_whole_u64((double)REAL_bf16(x))
#define UNSIGNED_f16(x)    weft_whole_u64((double)REAL_f16(x))
#define UNSIGNED_f8e4m3(x) weft_whole_u64((double)REAL_f8e4m3(x))
#define UNSIGNED_f8e5m2(x) weft_whole_u64((double)REAL_f8e5m2(x))
#define UNSIGNED_i64(x)    (x)
#define UNSIGNED_i32(x)    (x)
#define UNSIGNED_i16(x)    (x)
#define UNSIGNED_i8(x)     (x)
#define UNSIGNED_u64(x)    (x)
#define UNSIGNED_u32(x)    (x)
#define UNSIGNED_u16(x)    (x)
#define UNSIGNED_u8(x)     (x)
#define UNSIGNED_truth(x)  ((x) != 0)

/* --- the result --------------------------------------------------------------------------------------------------- */

#define TO_f64(from, x)    ((double)REAL_##from(x))
#define TO_f32(from, x)    ((float)REAL_##from(x))
#define TO_bf16(from, x)   ((uint16_t)weft_small_narrow(weft_small_bf16, ODD_##from(x)))
#define TO_f16(from, x)    ((uint16_t)weft_small_narrow(weft_small_f16, ODD_##from(x)))
#define TO_f8e4m3(from, x) ((uint8_t)narrow_8(weft_small_f8e4m3, 448, saturate, ODD_##from(x)))
#define TO_f8e5m2(from, x) ((uint8_t)narrow_8(weft_small_f8e5m2, 57344, saturate, ODD_##from(x)))
#define TO_i64(from, x)    ((int64_t)(uint64_t)WHOLE_##from(x))
#define TO_i32(from, x)    ((int32_t)(uint64_t)WHOLE_##from(x))
#define TO_i16(from, x)    ((int16_t)(uint64_t)WHOLE_##from(x))
#define TO_i8(from, x)     ((int8_t)(uint64_t)WHOLE_##from(x))
#define TO_u64(from, x)    ((uint64_t)UNSIGNED_##from(x))
#define TO_u32(from, x)    ((uint32_t)(uint64_t)WHOLE_##from(x))
#define TO_u16(from, x)    ((uint16_t)(uint64_t)WHOLE_##from(x))
#define TO_u8(from, x)     ((uint8_t)(uint64_t)WHOLE_##from(x))
#define TO_truth(from, x)  (REAL_##from(x) != 0)

#define CAST(from, to)                                                                                                 \
    static void weft_strip_cast_##from##_##to##__ref(const struct weft_strip_args *args)                               \
    {                                                                                                                  \
        const type_##from *const in = args->in[0];                                                                     \
        type_##to *const out = args->out;                                                                              \
        const bool saturate = args->param[0] != 0, same = DTYPE_##from == DTYPE_##to;                                  \
        (void)saturate;                                                                                                \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = in[i * args->stride[1]];                                                             \
            out[i * args->stride[0]] = same ? (type_##to)x : (type_##to)TO_##to(from, x);                              \
        }                                                                                                              \
    }
#include "kernels/strip/strip_cast.def"

#define CAST(from, to)                                                                                                 \
    {"cast", DTYPE_##from, DTYPE_##to, 0, "weft_strip_cast_" #from "_to_" #to "__ref",                                \
     weft_strip_cast_##from##_##to##__ref},
const struct weft_strip_kernel weft_strip_table_cast__ref[] = {
#include "kernels/strip/strip_cast.def"
    {0},
};
