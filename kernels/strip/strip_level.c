/* SPDX-License-Identifier: Apache-2.0 */
/* strip_level.c: the strip kernels of one CPU level, made from the rows of strip.def. Compiled once per level.
 *
 * A kernel takes whole vectors, two at a time so that two independent chains of a polynomial are under way, then one,
 * then a masked tail: nothing is read or written past the end. An operand of stride 0 is spread over one vector in
 * memory and read again with a step of 0, which keeps one loop for all combinations at the price of a load that hits
 * L1. Other strides go through weft_strip_strided. */
#include "kernels/strip/access.h"
#include "kernels/strip/functions.h"
#include "kernels/strip/functions_double.h"
#include "kernels/strip/halves.h"
#include "kernels/strip/strip.h"

typedef vf (*function1)(vf x, vf p, vf q);
typedef vf (*function2)(vf x, vf y);
typedef vf (*function3)(vf x, vf y, vf z);
typedef vi (*predicate1)(vf x, vf p, vf q);
typedef vi (*predicate2)(vf x, vf y);

static const int8_t sizes_f32[1 + WEFT_K_MAX_IN] = {4, 4, 4, 4}, sizes_test[1 + WEFT_K_MAX_IN] = {1, 4, 4, 4};
static const int8_t sizes_select[1 + WEFT_K_MAX_IN] = {4, 1, 4, 4};
static const int8_t sizes_from_16[1 + WEFT_K_MAX_IN] = {4, 2}, sizes_to_16[1 + WEFT_K_MAX_IN] = {2, 4};
static const int8_t sizes_from_bool[1 + WEFT_K_MAX_IN] = {4, 1};

/* An operand as the loops read it: element i is at p[i * step]. */
struct operand {
    const float *p;
    int64_t step;
};

/* True if the loops can take the strides as they are. */
INLINE bool plain_strides(const struct weft_strip_args *args, int inputs)
{
    bool plain = args->stride[0] == 1;
    for (int i = 1; i <= inputs; i++)
        plain &= args->stride[i] == 1 || args->stride[i] == 0;
    return plain;
}

INLINE struct operand operand_of(const struct weft_strip_args *args, int i, float spread[LANES])
{
    const float *const p = args->in[i];
    if (args->stride[1 + i] != 0 || args->n == 0)
        return (struct operand){p, 1};
    vstore(spread, vall(*p));
    return (struct operand){spread, 0};
}

INLINE void each1(const struct weft_strip_args *args, function1 f)
{
    const int64_t n = args->n;
    const float *const x = args->in[0];
    float *const out = args->out;
    const vf p = vall((float)args->param[0]), q = vall((float)args->param[1]);
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vf a = f(vload(x + i), p, q), b = f(vload(x + i + LANES), p, q);
        vstore(out + i, a);
        vstore(out + i + LANES, b);
    }
    for (; i < n; i += LANES) {
        const int live = n - i < LANES ? (int)(n - i) : LANES;
        vstorem(out + i, live, f(vloadm(x + i, live, 1.f), p, q));
    }
}

INLINE void each2(const struct weft_strip_args *args, function2 f)
{
    float spread[2][LANES];
    const int64_t n = args->n;
    const struct operand x = operand_of(args, 0, spread[0]), y = operand_of(args, 1, spread[1]);
    float *const out = args->out;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const int64_t j = i + LANES;
        const vf a = f(vload(x.p + i * x.step), vload(y.p + i * y.step));
        const vf b = f(vload(x.p + j * x.step), vload(y.p + j * y.step));
        vstore(out + i, a);
        vstore(out + j, b);
    }
    for (; i < n; i += LANES) {
        const int live = n - i < LANES ? (int)(n - i) : LANES;
        vstorem(out + i, live, f(vloadm(x.p + i * x.step, live, 1.f), vloadm(y.p + i * y.step, live, 1.f)));
    }
}

INLINE void each3(const struct weft_strip_args *args, function3 f)
{
    float spread[3][LANES];
    const struct operand x = operand_of(args, 0, spread[0]), y = operand_of(args, 1, spread[1]);
    const struct operand z = operand_of(args, 2, spread[2]);
    float *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= args->n; i += LANES)
        vstore(out + i, f(vload(x.p + i * x.step), vload(y.p + i * y.step), vload(z.p + i * z.step)));
    if (i < args->n) {
        const int live = (int)(args->n - i);
        const vf a = vloadm(x.p + i * x.step, live, 1.f), b = vloadm(y.p + i * y.step, live, 1.f);
        vstorem(out + i, live, f(a, b, vloadm(z.p + i * z.step, live, 1.f)));
    }
}

INLINE void test1(const struct weft_strip_args *args, predicate1 f)
{
    const int64_t n = args->n;
    const float *const x = args->in[0];
    const vf p = vall((float)args->param[0]), q = vall((float)args->param[1]);
    uint8_t *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_mask(out + i, f(vload(x + i), p, q));
    if (i < n)
        store_mask_tail(out + i, (int)(n - i), f(vloadm(x + i, (int)(n - i), 1.f), p, q));
}

INLINE void test2(const struct weft_strip_args *args, predicate2 f)
{
    float spread[2][LANES];
    const int64_t n = args->n;
    const struct operand x = operand_of(args, 0, spread[0]), y = operand_of(args, 1, spread[1]);
    uint8_t *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_mask(out + i, f(vload(x.p + i * x.step), vload(y.p + i * y.step)));
    if (i < n) {
        const int live = (int)(n - i);
        const vf a = vloadm(x.p + i * x.step, live, 1.f), b = vloadm(y.p + i * y.step, live, 1.f);
        store_mask_tail(out + i, live, f(a, b));
    }
}

/* --- one kernel a row --------------------------------------------------------------------------------------------- */

#define F1(id, op, result)                                                                                             \
    static vf value_##id(vf x, vf p, vf q)                                                                             \
    {                                                                                                                  \
        (void)p, (void)q;                                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    static void LEVEL(weft_strip_##id##_f32)(const struct weft_strip_args *args)                                       \
    {                                                                                                                  \
        if (args->stride[0] == 1 && args->stride[1] == 1)                                                              \
            each1(args, value_##id);                                                                                   \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_##id##_f32), 1, sizes_f32);                                      \
    }
#define F2(id, op, result)                                                                                             \
    static vf value_##id(vf x, vf y) { return result; }                                                                \
    static void LEVEL(weft_strip_##id##_f32)(const struct weft_strip_args *args)                                       \
    {                                                                                                                  \
        if (plain_strides(args, 2))                                                                                    \
            each2(args, value_##id);                                                                                   \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_##id##_f32), 2, sizes_f32);                                      \
    }
#define F3(id, op, result)                                                                                             \
    static vf value_##id(vf x, vf y, vf z) { return result; }                                                          \
    static void LEVEL(weft_strip_##id##_f32)(const struct weft_strip_args *args)                                       \
    {                                                                                                                  \
        if (plain_strides(args, 3))                                                                                    \
            each3(args, value_##id);                                                                                   \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_##id##_f32), 3, sizes_f32);                                      \
    }
#define C1(id, op, mask)                                                                                               \
    static vi value_##id(vf x, vf p, vf q)                                                                             \
    {                                                                                                                  \
        (void)p, (void)q;                                                                                              \
        return mask;                                                                                                   \
    }                                                                                                                  \
    static void LEVEL(weft_strip_##id##_f32)(const struct weft_strip_args *args)                                       \
    {                                                                                                                  \
        if (args->stride[0] == 1 && args->stride[1] == 1)                                                              \
            test1(args, value_##id);                                                                                   \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_##id##_f32), 1, sizes_test);                                     \
    }
#define C2(id, op, mask)                                                                                               \
    static vi value_##id(vf x, vf y) { return mask; }                                                                  \
    static void LEVEL(weft_strip_##id##_f32)(const struct weft_strip_args *args)                                       \
    {                                                                                                                  \
        if (plain_strides(args, 2))                                                                                    \
            test2(args, value_##id);                                                                                   \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_##id##_f32), 2, sizes_test);                                     \
    }
#define FN(id, op, in, out)
#include "kernels/strip/strip.def"

static void LEVEL(weft_strip_select_f32)(const struct weft_strip_args *args)
{
    if (args->stride[0] != 1 || args->stride[1] != 1 || args->stride[2] > 1 || args->stride[2] < 0 ||
        args->stride[3] > 1 || args->stride[3] < 0) {
        weft_strip_strided(args, LEVEL(weft_strip_select_f32), 3, sizes_select);
        return;
    }
    float spread[2][LANES];
    const int64_t n = args->n;
    const uint8_t *const mask = args->in[0];
    const struct operand x = operand_of(args, 1, spread[0]), y = operand_of(args, 2, spread[1]);
    float *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vstore(out + i, vsel(load_mask(mask + i), vload(x.p + i * x.step), vload(y.p + i * y.step)));
    for (; i < n; i++)
        out[i] = mask[i] ? x.p[i * x.step] : y.p[i * y.step];
}

/* --- casts between f32 and narrow types --------------------------------------------------------------------------- */

#define FROM_16(id)                                                                                                    \
    static void LEVEL(weft_strip_cast_##id##_f32)(const struct weft_strip_args *args)                                  \
    {                                                                                                                  \
        if (args->stride[0] == 1 && args->stride[1] == 1)                                                              \
            widen_##id(args->out, args->in[0], args->n);                                                               \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_cast_##id##_f32), 1, sizes_from_16);                             \
    }
#define TO_16(id)                                                                                                      \
    static void LEVEL(weft_strip_cast_f32_##id)(const struct weft_strip_args *args)                                    \
    {                                                                                                                  \
        if (args->stride[0] == 1 && args->stride[1] == 1)                                                              \
            narrow_##id(args->out, args->in[0], args->n);                                                              \
        else                                                                                                           \
            weft_strip_strided(args, LEVEL(weft_strip_cast_f32_##id), 1, sizes_to_16);                                 \
    }
FROM_16(bf16)
FROM_16(f16)
TO_16(bf16)
TO_16(f16)

static void LEVEL(weft_strip_cast_bool_f32)(const struct weft_strip_args *args)
{
    if (args->stride[0] != 1 || args->stride[1] != 1) {
        weft_strip_strided(args, LEVEL(weft_strip_cast_bool_f32), 1, sizes_from_bool);
        return;
    }
    const uint8_t *const x = args->in[0];
    float *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= args->n; i += LANES)
        vstore(out + i, vsel(load_mask(x + i), vall(1.f), vall(0.f)));
    for (; i < args->n; i++)
        out[i] = x[i] ? 1.f : 0.f;
}

static void LEVEL(weft_strip_cast_i32_f32)(const struct weft_strip_args *args)
{
    if (args->stride[0] != 1 || args->stride[1] != 1) {
        weft_strip_strided(args, LEVEL(weft_strip_cast_i32_f32), 1, sizes_f32);
        return;
    }
    const int32_t *const x = args->in[0];
    float *const out = args->out;
    int64_t i = 0;
    for (; i + LANES <= args->n; i += LANES)
        vstore(out + i, __builtin_convertvector(viload(x + i), vf));
    for (; i < args->n; i++)
        out[i] = (float)x[i];
}

/* --- 16-bit floats: widened, computed in f32, rounded ------------------------------------------------------------- */

/* The f32 result has been rounded, and is rounded again. That is the same as rounding once for + - * / and the square
 * root, since f32 has more than twice the digits of either type and two more (except below the normal numbers of bf16,
 * which are those of f32); for the rest, a result whose f32 lies on a tie may go the other way: it is off by at most
 * half a unit in its own last place, plus the error of the f32 kernel. */
static void by_f32(const struct weft_strip_args *args, weft_strip_fn fn, int inputs, weft_strip_fn widen,
                   weft_strip_fn narrow)
{
    enum { CHUNK = 256 };
    _Alignas(64) float buffer[1 + WEFT_K_MAX_IN][CHUNK];
    struct weft_strip_args part = {.stride = {1}, .param = {args->param[0], args->param[1]}};
    for (int64_t start = 0; start < args->n; start += CHUNK) {
        part.n = args->n - start < CHUNK ? args->n - start : CHUNK;
        for (int i = 0; i < inputs; i++) {
            const int64_t stride = args->stride[1 + i];
            part.in[i] = buffer[1 + i];
            part.stride[1 + i] = stride != 0;
            widen(&(struct weft_strip_args){.n = stride ? part.n : 1,
                                            .out = buffer[1 + i],
                                            .in = {(const uint16_t *)args->in[i] + start * stride},
                                            .stride = {1, stride ? stride : 1}});
        }
        const int64_t stride = args->stride[0];
        part.out = narrow ? (void *)buffer[0] : (uint8_t *)args->out + start * stride;
        part.stride[0] = narrow ? 1 : stride;
        fn(&part);
        if (narrow)
            narrow(&(struct weft_strip_args){.n = part.n,
                                             .out = (uint16_t *)args->out + start * stride,
                                             .in = {buffer[0]},
                                             .stride = {stride, 1}});
    }
}

#define BY_F32(id, inputs, small, narrow)                                                                              \
    static void LEVEL(weft_strip_##id##_##small)(const struct weft_strip_args *args)                                   \
    {                                                                                                                  \
        by_f32(args, LEVEL(weft_strip_##id##_f32), inputs, LEVEL(weft_strip_cast_##small##_f32), narrow);              \
    }
#define TO_SMALL(id, inputs)                                                                                           \
    BY_F32(id, inputs, f16, LEVEL(weft_strip_cast_f32_f16))                                                            \
    BY_F32(id, inputs, bf16, LEVEL(weft_strip_cast_f32_bf16))
#define TO_TRUTH(id, inputs) BY_F32(id, inputs, f16, NULL) BY_F32(id, inputs, bf16, NULL)
#define F1(id, op, result)   TO_SMALL(id, 1)
#define F2(id, op, result)   TO_SMALL(id, 2)
#define F3(id, op, result)   TO_SMALL(id, 3)
#define C1(id, op, mask)     TO_TRUTH(id, 1)
#define C2(id, op, mask)     TO_TRUTH(id, 2)
#define FN(id, op, in, out)
#include "kernels/strip/strip.def"

#define FN(id, op, in, out)                                                                                            \
    {op, WEFT_K_##in, WEFT_K_##out, LEVEL_CPU, "weft_strip_" #id LEVEL_TEXT, LEVEL(weft_strip_##id)},
#define F1(id, op, result) FN(id##_f32, op, F32, F32) FN(id##_f16, op, F16, F16) FN(id##_bf16, op, BF16, BF16)
#define F2(id, op, result) F1(id, op, result)
#define F3(id, op, result) F1(id, op, result)
#define C1(id, op, mask)   FN(id##_f32, op, F32, BOOL) FN(id##_f16, op, F16, BOOL) FN(id##_bf16, op, BF16, BOOL)
#define C2(id, op, mask)   C1(id, op, mask)
const struct weft_strip_kernel LEVEL(weft_strip_table)[] = {
#include "kernels/strip/strip.def"
    {0},
};
