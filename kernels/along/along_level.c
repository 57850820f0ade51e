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
