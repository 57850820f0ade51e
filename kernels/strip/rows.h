/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: the types that the rows of strip_rows.def and strip_plain.def name. */
#ifndef WEFT_STRIP_ROWS_H
#define WEFT_STRIP_ROWS_H

#include "kernels/strip/strip.h"

typedef double type_f64;
typedef float type_f32;
typedef uint16_t type_f16, type_bf16; /* moved, not computed with */
typedef int64_t type_i64;
typedef int32_t type_i32;
typedef int16_t type_i16;
typedef int8_t type_i8;
typedef uint64_t type_u64;
typedef uint32_t type_u32;
typedef uint16_t type_u16;
typedef uint8_t type_u8, type_truth;

/* The arithmetic of an integer wraps in `wide`: shorter types would be promoted to int, which does not. `bare` is the
 * unsigned type of the same width. */
typedef uint64_t wide_i64, wide_u64;
typedef uint32_t wide_i32, wide_u32, wide_i16, wide_u16, wide_i8, wide_u8, wide_truth;
typedef double wide_f64, bare_f64;
typedef float wide_f32, bare_f32;
typedef uint64_t bare_i64, bare_u64;
typedef uint32_t bare_i32, bare_u32;
typedef uint16_t bare_i16, bare_u16;
typedef uint8_t bare_i8, bare_u8, bare_truth;

enum {
    DTYPE_f64 = WEFT_K_F64,
    DTYPE_f32 = WEFT_K_F32,
    DTYPE_bf16 = WEFT_K_BF16,
    DTYPE_f16 = WEFT_K_F16,
    DTYPE_i64 = WEFT_K_I64,
    DTYPE_i32 = WEFT_K_I32,
    DTYPE_i16 = WEFT_K_I16,
    DTYPE_i8 = WEFT_K_I8,
    DTYPE_u64 = WEFT_K_U64,
    DTYPE_u32 = WEFT_K_U32,
    DTYPE_u16 = WEFT_K_U16,
    DTYPE_u8 = WEFT_K_U8,
    DTYPE_truth = WEFT_K_BOOL,
    DTYPE_f8e4m3 = WEFT_K_F8E4M3,
    DTYPE_f8e5m2 = WEFT_K_F8E5M2
};

#endif
