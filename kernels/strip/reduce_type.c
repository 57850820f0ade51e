/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_type.c: element types of reductions. f32 and the floats of 16 bits are added up in f32, f64 in f64, integers
 * and bool in 64 bits, whose lower bits are right for every width. So there are four kinds of loops and not thirteen;
 * what is narrower widens a strip at a time, in L1. */
#include "kernels/strip/reduce_type.h"

static int64_t bytes_of(int dtype)
{
    static const int8_t bytes[] = {0, 8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};
    return bytes[dtype];
}

static bool is_float(int dtype) { return dtype <= WEFT_K_F16; }

const struct weft_fold_loops *weft_fold_loops_find(enum weft_fold_kind kind, uint32_t cpu)
{
    static const struct weft_fold_loops *const wide[] = {WEFT_LEVELS(weft_fold_wide)};
    static const struct weft_fold_loops *const single[] = {WEFT_LEVELS(&weft_fold_single)};
    const int level = weft_level_of(cpu);
    return kind ? &wide[level][kind - 1] : single[level];
}

bool weft_reduce_type_of(int in_dtype, int out_dtype, uint32_t cpu, struct weft_reduce_type *ret)
{
    *ret = (struct weft_reduce_type){.in_bytes = bytes_of(in_dtype), .out_bytes = bytes_of(out_dtype)};
    if (is_float(in_dtype) != is_float(out_dtype))
        return false;
    if (is_float(in_dtype))
        ret->kind = in_dtype == WEFT_K_F64 || out_dtype == WEFT_K_F64 ? WEFT_FOLD_F64 : WEFT_FOLD_F32;
    else
        ret->kind = in_dtype == WEFT_K_U64 || out_dtype == WEFT_K_U64 ? WEFT_FOLD_U64 : WEFT_FOLD_I64;
    ret->loops = weft_fold_loops_find(ret->kind, cpu);
    if (!is_float(in_dtype)) {
        ret->widens = bytes_of(in_dtype) != 8;
        return true;
    }
    const int acc = ret->kind == WEFT_FOLD_F64 ? WEFT_K_F64 : WEFT_K_F32;
    ret->widens = in_dtype != acc;
    ret->cast = ret->widens ? weft_strip_find("cast", in_dtype, acc, cpu) : NULL;
    ret->narrow = out_dtype != acc ? weft_strip_find("cast", acc, out_dtype, cpu) : NULL;
    return (!ret->widens || ret->cast) && (out_dtype == acc || ret->narrow);
}

/* --- terms -------------------------------------------------------------------------------------------------------- */

#define GATHER(to, from, type, value)                                                                                  \
    do {                                                                                                               \
        const type *const x = (from);                                                                                  \
        if (stride == 1)                                                                                               \
            for (int64_t i = 0; i < n; i++)                                                                            \
                (to)[i] = value(x[i]);                                                                                 \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                (to)[i] = value(x[i * stride]);                                                                        \
    } while (0)
#define SAME(x)  (x)
#define TRUTH(x) ((x) != 0)

static void load_integers(int dtype, int64_t *to, const void *from, int64_t stride, int64_t n)
{
    switch (dtype) {
    case WEFT_K_I32: GATHER(to, from, int32_t, SAME); break;
    case WEFT_K_I16: GATHER(to, from, int16_t, SAME); break;
    case WEFT_K_I8: GATHER(to, from, int8_t, SAME); break;
    case WEFT_K_U32: GATHER(to, from, uint32_t, SAME); break;
    case WEFT_K_U16: GATHER(to, from, uint16_t, SAME); break;
    case WEFT_K_U8: GATHER(to, from, uint8_t, SAME); break;
    case WEFT_K_BOOL: GATHER(to, from, uint8_t, TRUTH); break;
    default: GATHER(to, from, int64_t, SAME); break;
    }
}

void weft_reduce_load(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to, const void *from,
                      int64_t stride, int64_t n)
{
    if (type->cast)
        type->cast->fn(&(struct weft_strip_args){.n = n, .out = to, .in = {from}, .stride = {1, stride}});
    else if (type->kind == WEFT_FOLD_F32)
        GATHER((float *)to, from, float, SAME);
    else if (type->kind == WEFT_FOLD_F64)
        GATHER((double *)to, from, double, SAME);
    else
        load_integers(reduce->in_dtype, to, from, stride, n);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static uint64_t divided(const struct weft_reduce *reduce, uint64_t x)
{
    if (reduce->op != WEFT_K_MEAN || reduce->divisor == 0)
        return x;
    if (reduce->in_dtype >= WEFT_K_U64)
        return x / (uint64_t)reduce->divisor;
    return (uint64_t)((int64_t)x / reduce->divisor);
}

static void store_integers(const struct weft_reduce *reduce, char *to, int64_t stride, const uint64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t x = divided(reduce, from[i]);
        switch (reduce->out_dtype) {
        case WEFT_K_I64: case WEFT_K_U64: ((uint64_t *)(void *)to)[i * stride] = x; break;
        case WEFT_K_I32: case WEFT_K_U32: ((uint32_t *)(void *)to)[i * stride] = (uint32_t)x; break;
        case WEFT_K_I16: case WEFT_K_U16: ((uint16_t *)(void *)to)[i * stride] = (uint16_t)x; break;
        case WEFT_K_BOOL: to[i * stride] = x != 0; break;
        default: to[i * stride] = (char)(uint8_t)x; break;
        }
    }
}

static void store_f64(const struct weft_reduce *reduce, double *to, int64_t stride, const double *from, int64_t n)
{
    const double divisor = reduce->op == WEFT_K_MEAN ? (double)reduce->divisor : 1;
    for (int64_t i = 0; i < n; i++)
        to[i * stride] = from[i] / divisor;
}

void weft_reduce_store(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to, int64_t stride,
                       const void *from, int64_t n)
{
    enum { STRIP = 64 };
    if (type->kind == WEFT_FOLD_F64) {
        store_f64(reduce, to, stride, from, n);
        return;
    }
    if (type->kind != WEFT_FOLD_F32) {
        store_integers(reduce, to, stride, from, n);
        return;
    }
    const float divisor = reduce->op == WEFT_K_MEAN ? (float)reduce->divisor : 1.f;
    const float *const x = from;
    for (int64_t i = 0; i < n; i += STRIP) {
        float strip[STRIP], *const single = (float *)to + i * stride;
        const int64_t length = n - i < STRIP ? n - i : STRIP, step = type->narrow ? 1 : stride;
        float *const result = type->narrow ? strip : single;
        for (int64_t j = 0; j < length; j++)
            result[j * step] = x[i + j] / divisor;
        if (type->narrow)
            type->narrow->fn(&(struct weft_strip_args){
                .n = length, .out = (char *)to + i * stride * type->out_bytes, .in = {strip}, .stride = {stride, 1}});
    }
}

/* --- identities --------------------------------------------------------------------------------------------------- */

void weft_reduce_identity(const struct weft_reduce_type *type, int op, void *to, int64_t n)
{
    union {
        float single;
        double wide;
        int64_t integer;
        uint64_t bits;
    } x = {.bits = op == WEFT_K_PROD};
    const bool most = op == WEFT_K_MAX, least = op == WEFT_K_MIN;
    if (type->kind == WEFT_FOLD_F32)
        x.single = weft_fold_identity(op);
    else if (type->kind == WEFT_FOLD_F64)
        x.wide = (double)weft_fold_identity(op);
    else if (most || least)
        x.bits = type->kind == WEFT_FOLD_U64 ? (most ? 0 : UINT64_MAX) : (uint64_t)(most ? INT64_MIN : INT64_MAX);
    if (type->kind == WEFT_FOLD_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = x.single;
    else
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)to)[i] = x.bits;
}

/* The least and the largest of a narrow type are not those of 64 bits. */
void weft_reduce_nothing(const struct weft_reduce *reduce, const struct weft_reduce_type *type, void *to)
{
    const int op = reduce->op == WEFT_K_MEAN ? WEFT_K_SUM : (int)reduce->op, dtype = reduce->out_dtype;
    weft_reduce_identity(type, op, to, 1);
    if (is_float(dtype) || (op != WEFT_K_MAX && op != WEFT_K_MIN))
        return;
    const bool has_sign = dtype < WEFT_K_U64;
    const unsigned unused = dtype == WEFT_K_BOOL ? 63 : 64 - 8 * (unsigned)bytes_of(dtype);
    const uint64_t largest = UINT64_MAX >> unused >> has_sign, least = has_sign ? ~largest : 0;
    *(uint64_t *)to = op == WEFT_K_MAX ? least : largest;
}
