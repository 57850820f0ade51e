/* SPDX-License-Identifier: Apache-2.0 */
/* strip_rows_level.c: the strip kernels of strip_rows.def at one CPU level. Compiled once per level.
 *
 * A kernel is one plain loop over unit strides, which the compiler vectorises: it is told that no iteration depends on
 * another, since the result is an operand or nothing that overlaps. All other strides, 0 included, go through
 * weft_strip_strided in chunks. */
#include "kernels/strip/rows.h"
#include "kernels/strip/vector.h"

#include <math.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* at O2, gcc vectorises no loop whose length it does not know */
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* of loops that only copy, which become calls */
#endif

INLINE double at_most(double x, double bound) { return x > bound ? bound : x; }
INLINE double at_least(double x, double bound) { return x < bound ? bound : x; }

/* A bound in an integer type of so many bits: rounded inwards, and no further than the end of the type. NaN is no
 * bound. */
static uint64_t integer_bound(double bound, int bits, bool has_sign, bool is_low)
{
    const double least = has_sign ? -ldexp(1, bits - 1) : 0, past = ldexp(1, has_sign ? bits - 1 : bits);
    const double whole = is_low ? ceil(bound) : floor(bound);
    const uint64_t lowest = has_sign ? (uint64_t)1 << (bits - 1) : 0;
    const uint64_t highest = UINT64_MAX >> (64 - bits) >> has_sign;
    if (whole != whole)
        return is_low ? lowest : highest;
    return whole <= least ? lowest : whole >= past ? highest : has_sign ? (uint64_t)(int64_t)whole : (uint64_t)whole;
}

INLINE bool unit_strides(const struct weft_strip_args *args, int inputs)
{
    bool unit = true;
    for (int i = 0; i <= inputs; i++)
        unit &= args->stride[i] == 1;
    return unit;
}

#define BITS (8 * (int)sizeof(bare))
#define KERNEL(id, from, to, inputs, ...)                                                                              \
    static void LEVEL(weft_strip_##id)(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        typedef wide_##from wide __attribute__((unused));                                                              \
        typedef bare_##from bare __attribute__((unused));                                                              \
        if (!unit_strides(args, inputs)) {                                                                             \
            static const int8_t sizes[1 + WEFT_K_MAX_IN] = {sizeof(type_##to), sizeof(type_##from),                    \
                                                            sizeof(type_##from), sizeof(type_##from)};                 \
            weft_strip_strided(args, LEVEL(weft_strip_##id), inputs, sizes);                                           \
            return;                                                                                                    \
        }                                                                                                              \
        type_##to *const out = args->out;                                                                              \
        const int64_t n = args->n;                                                                                     \
        __VA_ARGS__                                                                                                    \
    }
#define P1(id, op, from, to, result)                                                                                   \
    KERNEL(id, from, to, 1, const type_##from *const a = args->in[0];                                                  \
           const double p = args->param[0], q = args->param[1]; (void)p, (void)q;                                      \
           INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                               \
               const type_##from x = a[i];                                                                             \
               out[i] = (type_##to)(result);                                                                           \
           })
#define P2(id, op, from, to, result)                                                                                   \
    KERNEL(id, from, to, 2, const type_##from *const a = args->in[0]; const type_##from *const b = args->in[1];        \
           INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                               \
               const type_##from x = a[i], y = b[i];                                                                   \
               (void)y;                                                                                                \
               out[i] = (type_##to)(result);                                                                           \
           })
#define P3(id, op, from, to, result)                                                                                   \
    KERNEL(id, from, to, 3, const type_##from *const a = args->in[0]; const type_##from *const b = args->in[1];        \
           const type_##from *const c = args->in[2];                                                                   \
           INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                               \
               const type_##from x = a[i], y = b[i], z = c[i];                                                         \
               out[i] = (type_##to)(result);                                                                           \
           })
#define PC(id, type)                                                                                                   \
    KERNEL(id, type, type, 1, const type_##type *const a = args->in[0];                                                \
           const bool has_sign = (type_##type)-1 < (type_##type)1;                                                     \
           const type_##type low = (type_##type)integer_bound(args->param[0], BITS, has_sign, true);                   \
           const type_##type high = (type_##type)integer_bound(args->param[1], BITS, has_sign, false);                 \
           INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                               \
               const type_##type x = a[i] < low ? low : a[i];                                                          \
               out[i] = x > high ? high : x;                                                                           \
           })
#define PS(id, type)                                                                                                   \
    static void LEVEL(weft_strip_##id)(const struct weft_strip_args *args)                                             \
    {                                                                                                                  \
        if (!unit_strides(args, 3)) {                                                                                  \
            static const int8_t sizes[] = {sizeof(type_##type), 1, sizeof(type_##type), sizeof(type_##type)};          \
            weft_strip_strided(args, LEVEL(weft_strip_##id), 3, sizes);                                                \
            return;                                                                                                    \
        }                                                                                                              \
        const uint8_t *const mask = args->in[0];                                                                       \
        const type_##type *const a = args->in[1];                                                                      \
        const type_##type *const b = args->in[2];                                                                      \
        type_##type *const out = args->out;                                                                            \
        const int64_t n = args->n;                                                                                     \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                                                    \
        {                                                                                                              \
            const type_##type x = a[i], y = b[i];                                                                      \
            out[i] = mask[i] ? x : y;                                                                                  \
        }                                                                                                              \
    }
#include "kernels/strip/strip_rows.def"

#define P1(id, op, from, to, result)                                                                                   \
    {op, DTYPE_##from, DTYPE_##to, LEVEL_CPU, "weft_strip_" #id LEVEL_TEXT, LEVEL(weft_strip_##id)},
#define P2(id, op, from, to, result) P1(id, op, from, to, result)
#define P3(id, op, from, to, result) P1(id, op, from, to, result)
#define PS(id, type)                 P1(id, "select", type, type, 0)
#define PC(id, type)                 P1(id, "clamp", type, type, 0)
const struct weft_strip_kernel LEVEL(weft_strip_table_rows)[] = {
#include "kernels/strip/strip_rows.def"
    {0},
};
