/* SPDX-License-Identifier: Apache-2.0 */
/* emit_support.h: kernel forms as strip programs on data of their own, interpreted and compiled from emitted C. */
#ifndef WEFT_TEST_EMIT_SUPPORT_H
#define WEFT_TEST_EMIT_SUPPORT_H

#include "codegen/strips.h"
#include "tests/unit/compile_support.h"
#include "tests/unit/form_support.h"

/* --- a form with sizes -------------------------------------------------------------------------------------------- */

enum { EMIT_ARRAYS = 8, EMIT_GUARD = 256 };

struct emit_trial {
    struct weft_form *form;
    int64_t symbols[2];         /* N, C */
    int64_t gap;                /* elements between rows */
    struct weft_tensor tensor[EMIT_ARRAYS];
    size_t bytes[EMIT_ARRAYS];
    struct weft_program *program;
    void *scratch, *shared;
};

static inline double emit_number(uint64_t *seed)
{
    static const double hostile[] = {0,     -0.,    1,   __builtin_inf(), -__builtin_inf(), __builtin_nan(""),
                                     1e-40, -104.5, 3e38};
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    const uint32_t bits = (uint32_t)(*seed >> 33);
    if (bits % 397 < 3 && *seed >> 62 == 3)
        return hostile[bits / 397 % (sizeof hostile / sizeof *hostile)];
    return ((double)(bits >> 4 & 0xffffff) / 0xffffff - 0.5) * (bits % 16 == 0 ? 100 : 5);
}

static inline void emit_fill(const struct weft_tensor *tensor, size_t bytes, bool calm)
{
    static const int8_t width[] = {[WEFT_F32] = 4, [WEFT_F16] = 2, [WEFT_BF16] = 2, [WEFT_BOOL] = 1, [WEFT_I32] = 4,
                                   [WEFT_I64] = 8, [WEFT_F64] = 8};
    uint64_t seed = 5;
    for (size_t i = 0; i < bytes / (size_t)width[tensor->dtype]; i++) {
        const double x = emit_number(&seed);
        const double number = calm && !(x > -1e3 && x < 1e3) ? 1 : x;
        if (tensor->dtype == WEFT_BOOL)
            ((uint8_t *)tensor->data)[i] = x > 0;
        else if (tensor->dtype == WEFT_I32)
            ((int32_t *)tensor->data)[i] = (int32_t)(seed >> 32);
        else if (tensor->dtype == WEFT_I64) /* of all lengths, so that floats round some */
            ((int64_t *)tensor->data)[i] = (int64_t)(seed * 0x9e3779b97f4a7c15u) >> (seed >> 58);
        else
            weft_store_real(tensor->dtype, tensor->data, (int64_t)i, number);
    }
}

/* Arrays called count hold 0, 1, 2 and so on, and those called label such numbers too, some beyond the line. */
static inline void emit_fill_counts(const struct weft_form_array *array, const struct weft_tensor *tensor,
                                    size_t bytes, int64_t line)
{
    const bool is_count = strcmp(array->name, "count") == 0, is_label = strcmp(array->name, "label") == 0;
    const size_t width = (size_t)(weft_dtype_bits(array->dtype) / 8);
    for (size_t i = 0; i < bytes / width && (is_count || is_label); i++) {
        const int64_t label = (int64_t)(i * 7919) % (line + 2) - 1;
        if (array->dtype == WEFT_I64)
            ((int64_t *)tensor->data)[i] = label;
        else
            weft_store_real(tensor->dtype, tensor->data, (int64_t)i,
                            is_count ? (double)i : (double)label + (i % 31 == 5) * 0.5);
    }
}

static inline void emit_open(struct fixture *f, struct emit_trial *t, uint32_t cpu, bool calm)
{
    for (uint32_t i = 0; i < t->form->arrays; i++) {
        const struct weft_form_array *array = &t->form->array[i];
        struct weft_tensor *const tensor = &t->tensor[i];
        *tensor = (struct weft_tensor){.dtype = array->dtype, .rank = array->rank};
        int64_t elements = 1;
        for (int d = array->rank - 1; d >= 0; d--) {
            tensor->extent[d] = weft_dim_evaluate(t->form->dims, array->extent[d], t->symbols);
            tensor->stride[d] = elements;
            elements = elements * tensor->extent[d] + (d == array->rank - 1 && array->rank > 1 ? t->gap : 0);
        }
        t->bytes[i] = (size_t)elements * (size_t)(weft_dtype_bits(array->dtype) / 8) / 4 * 4 + EMIT_GUARD;
        tensor->data = aligned_alloc(64, (t->bytes[i] + 63) / 64 * 64);
        assert_non_null(tensor->data);
        if (array->use == WEFT_FORM_IN)
            emit_fill(tensor, t->bytes[i], calm);
        emit_fill_counts(array, tensor, t->bytes[i], t->symbols[1]);
    }
    void *const memory = weft_arena_new(f->arena, weft_strips_bytes(t->form));
    t->program = weft_strips_make(t->form, cpu, t->symbols, t->tensor, 1, memory);
    t->scratch = aligned_alloc(64, (t->program->scratch + 127) / 64 * 64);
    t->shared = calloc(1, t->program->shared + 64);
    assert_true(t->scratch && t->shared);
}

static inline void emit_close(struct emit_trial *t)
{
    for (uint32_t i = 0; i < t->form->arrays; i++)
        free(t->tensor[i].data);
    free(t->scratch);
    free(t->shared);
}

/* Runs it in so many parts, into memory that holds a pattern. */
static inline void emit_run(const struct emit_trial *t, int parts)
{
    void *argument[EMIT_ARRAYS];
    for (uint32_t i = 0; i < t->form->arrays; i++) {
        argument[i] = t->tensor[i].data;
        if (t->form->array[i].use == WEFT_FORM_OUT)
            memset(argument[i], 0x5a, t->bytes[i]);
    }
    for (int part = 0; part < parts; part++)
        weft_program_run(t->program, argument, t->scratch, t->shared, part, parts);
}

static inline bool emit_same(int dtype, const void *a, const void *b, size_t bytes)
{
    if (memcmp(a, b, bytes) == 0)
        return true;
    if (dtype == WEFT_BOOL)
        return false;
    const size_t width = (size_t)(weft_dtype_bits(dtype) / 8);
    for (size_t i = 0; i < bytes / width; i++) {
        const double x = weft_load_real(dtype, a, (int64_t)i), y = weft_load_real(dtype, b, (int64_t)i);
        if (memcmp((const char *)a + i * width, (const char *)b + i * width, width) != 0 && (x == x || y == y))
            return false;
    }
    return true;
}

#endif
