/* SPDX-License-Identifier: Apache-2.0 */
/* strip_cast_level.c: casts by way of f32, at one CPU level: of f32 to integers, and all from and to 16-bit floats but
 * those of f32, which strip_level.c has. Compiled once per level.
 *
 * The operand is turned into f32 by chunks that stay in the first-level cache, and from there into the result. f32
 * holds operands of up to 16 bits exactly. Others are rounded to odd, which 16 bits cannot tell from the operand
 * (kernels/small.h). */
#include "kernels/small.h"
#include "kernels/strip/halves.h"
#include "kernels/strip/rows.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* at O2, gcc vectorises no loop whose length it does not know */
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#endif

enum { CHUNK = 256 };

/* --- to f32: n of `in` ------------------------------------------------------------------------------------------- */

#define FROM_16(id)                                                                                                    \
    static const float *from_##id(float *buffer, const type_##id *in, int64_t n)                                       \
    {                                                                                                                  \
        widen_##id(buffer, in, n);                                                                                     \
        return buffer;                                                                                                 \
    }
#define FROM(id, value)                                                                                                \
    static const float *from_##id(float *buffer, const type_##id *in, int64_t n)                                       \
    {                                                                                                                  \
        INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                                  \
            const type_##id x = in[i];                                                                                 \
            buffer[i] = value;                                                                                         \
        }                                                                                                              \
        return buffer;                                                                                                 \
    }

/* As an f64 that rounds to the same 16 bits: beyond 53 bits, the last that f64 holds says whether any was lost. */
INLINE double nearly(int64_t x)
{
    const bool fits = x < (int64_t)1 << 53 && x > -((int64_t)1 << 53);
    return (double)(fits || !(x & 0x7ff) ? x : (x & ~(int64_t)0x7ff) | 0x400);
}

static const float *from_f32(float *buffer, const float *in, int64_t n) { return in; }
FROM_16(bf16)
FROM_16(f16)
FROM(f64, weft_odd_f64(x))
FROM(i64, weft_odd_f64(nearly(x)))
FROM(i32, weft_odd_f64(x))
FROM(i8, x)
FROM(u8, x)
FROM(truth, x ? 1.f : 0.f)

/* --- from f32 ----------------------------------------------------------------------------------------------------- */

static void to_bf16(type_bf16 *out, const float *x, int64_t n) { narrow_bf16(out, x, n); }
static void to_f16(type_f16 *out, const float *x, int64_t n) { narrow_f16(out, x, n); }

/* Cut to whole numbers; false where one is not of 32 bits. */
static bool cut_all(int32_t *out, const float *x, int64_t n)
{
    vi beyond = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf v = vload(x + i);
        beyond |= ~(vi)(vabs(v) < 0x1p31f);
        vistore(out + i, __builtin_convertvector(v, vi));
    }
    bool fit = !vany_from((vu)beyond, 1);
    for (; i < n; i++) {
        fit &= fabsf(x[i]) < 0x1p31f;
        out[i] = fabsf(x[i]) < 0x1p31f ? (int32_t)x[i] : 0;
    }
    return fit;
}

#define TO_INTEGER(id)                                                                                                 \
    static void to_##id(type_##id *out, const float *x, int64_t n)                                                     \
    {                                                                                                                  \
        int32_t cut[CHUNK];                                                                                            \
        const bool fit = cut_all(cut, x, n); /* before anything is written over x */                                   \
        const int64_t fast = fit ? n : 0;                                                                              \
        INDEPENDENT for (int64_t i = 0; i < fast; i++)                                                                 \
            out[i] = (type_##id)cut[i];                                                                                \
        for (int64_t i = fast; i < n; i++)                                                                             \
            out[i] = (type_##id)(uint64_t)weft_whole_part((double)x[i]);                                               \
    }
TO_INTEGER(i64)
TO_INTEGER(i32)
TO_INTEGER(i8)
TO_INTEGER(u8)

#define TO(id, value)                                                                                                  \
    static void to_##id(type_##id *out, const float *x, int64_t n)                                                     \
    {                                                                                                                  \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                                                    \
            out[i] = value;                                                                                            \
    }
TO(f64, (double)x[i])
TO(truth, x[i] != 0)

/* --- both --------------------------------------------------------------------------------------------------------- */

#define BY(from, to)                                                                                                   \
    static void LEVEL(weft_strip_cast_##from##_##to)(const struct weft_strip_args *args)                               \
    {                                                                                                                  \
        static const int8_t sizes[1 + WEFT_K_MAX_IN] = {sizeof(type_##to), sizeof(type_##from)};                       \
        if (args->stride[0] != 1 || args->stride[1] != 1) {                                                            \
            weft_strip_strided(args, LEVEL(weft_strip_cast_##from##_##to), 1, sizes);                                  \
            return;                                                                                                    \
        }                                                                                                              \
        const type_##from *const in = args->in[0];                                                                     \
        type_##to *const out = args->out;                                                                              \
        for (int64_t i = 0; i < args->n; i += CHUNK) {                                                                 \
            _Alignas(64) float buffer[CHUNK];                                                                          \
            const int64_t n = args->n - i < CHUNK ? args->n - i : CHUNK;                                               \
            to_##to(out + i, from_##from(buffer, in + i, n), n);                                                       \
        }                                                                                                              \
    }
#include "kernels/strip/strip_cast_by.def"

#define BY(from, to)                                                                                                   \
    {"cast", DTYPE_##from, DTYPE_##to, LEVEL_CPU, "weft_strip_cast_" #from "_" #to LEVEL_TEXT,                         \
     LEVEL(weft_strip_cast_##from##_##to)},
const struct weft_strip_kernel LEVEL(weft_strip_table_cast_by)[] = {
#include "kernels/strip/strip_cast_by.def"
    {0},
};
