/* SPDX-License-Identifier: Apache-2.0 */
/* strip_plain.c: the scalar strip kernels of strip_plain.def. Any strides, one loop each; such ops work on shapes,
 * masks and indices, a few elements at a time, and the compiler's code for the plain loop is what they deserve. */
#include "kernels/strip/strip.h"

typedef float type_f32;
typedef double type_f64;
typedef int64_t type_i64;
typedef int32_t type_i32;
typedef uint8_t type_truth, type_u8;
typedef int8_t type_i8;
enum {
    DTYPE_f32 = WEFT_K_F32,
    DTYPE_f64 = WEFT_K_F64,
    DTYPE_i64 = WEFT_K_I64,
    DTYPE_i32 = WEFT_K_I32,
    DTYPE_truth = WEFT_K_BOOL,
    DTYPE_u8 = WEFT_K_U8,
    DTYPE_i8 = WEFT_K_I8
};

static int64_t to_i64(double x) { return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x; }

static int32_t to_i32(double x)
{
    return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

#define P1(id, op, from, to, result)                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const type_##from *const in = args->in[0];                                                                     \
        type_##to *const out = args->out;                                                                              \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = in[i * args->stride[1]];                                                             \
            out[i * args->stride[0]] = result;                                                                         \
        }                                                                                                              \
    }
#define P2(id, op, from, to, result)                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const type_##from *const a = args->in[0], *const b = args->in[1];                                              \
        type_##to *const out = args->out;                                                                              \
        for (int64_t i = 0; i < args->n; i++) {                                                                        \
            const type_##from x = a[i * args->stride[1]], y = b[i * args->stride[2]];                                  \
            out[i * args->stride[0]] = result;                                                                         \
        }                                                                                                              \
    }
#define PS(id, type)                                                                                                   \
    static void weft_strip_##id##__ref(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        const uint8_t *const mask = args->in[0];                                                                       \
        const type_##type *const a = args->in[1], *const b = args->in[2];                                              \
        type_##type *const out = args->out;                                                                            \
        for (int64_t i = 0; i < args->n; i++)                                                                          \
            out[i * args->stride[0]] = mask[i * args->stride[1]] ? a[i * args->stride[2]] : b[i * args->stride[3]];    \
    }
#include "kernels/strip/strip_plain.def"

#define P1(id, op, from, to, result)                                                                                   \
    {op, DTYPE_##from, DTYPE_##to, 0, "weft_strip_" #id "__ref", weft_strip_##id##__ref},
#define P2(id, op, from, to, result) P1(id, op, from, to, result)
#define PS(id, type)                 P1(id, "select", type, type, 0)
const struct weft_strip_kernel weft_strip_table_plain__ref[] = {
#include "kernels/strip/strip_plain.def"
    {0},
};
