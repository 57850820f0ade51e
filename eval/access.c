/* SPDX-License-Identifier: Apache-2.0 */
/* access.c: elements of strided tensors. Every rule of the evaluator reads and writes through this file, so the
 * rules themselves know neither strides nor storage formats. */
#include "eval/rule.h"

#include <string.h>

int64_t weft_eval_int(const struct weft_eval *eval, int key)
{
    return weft_dim_evaluate(eval->graph->dims, weft_attr_dim(eval->graph, eval->node, key), eval->symbols);
}

int64_t weft_eval_at(const struct weft_eval *eval, int key, unsigned i)
{
    return weft_dim_evaluate(eval->graph->dims, weft_attr_at(eval->graph, eval->node, key, i), eval->symbols);
}

bool weft_eval_word_is(const struct weft_eval *eval, int key, const char *word)
{
    return strcmp(weft_attr_word(eval->graph, eval->node, key), word) == 0;
}

/* --- elements ---------------------------------------------------------------------------------------------- */

void weft_eval_load(const struct weft_tensor *tensor, int64_t place, int64_t step, int64_t n, union weft_number *ret)
{
    const int dtype = tensor->dtype;
    if (dtype == WEFT_F32) {
        const char *data = tensor->data;
        for (int64_t i = 0; i < n; i++) {
            float x;
            memcpy(&x, data + (place + i * step) * (int64_t)sizeof x, sizeof x);
            ret[i].real = x;
        }
    } else if (weft_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < n; i++)
            ret[i].real = weft_load_real(dtype, tensor->data, place + i * step);
    } else {
        for (int64_t i = 0; i < n; i++)
            ret[i].integer = weft_load_integer(dtype, tensor->data, place + i * step);
    }
}

void weft_eval_store(const struct weft_tensor *tensor, int64_t place, int64_t step, int64_t n,
                     const union weft_number *number)
{
    const int dtype = tensor->dtype;
    if (dtype == WEFT_F32) {
        char *data = tensor->data;
        for (int64_t i = 0; i < n; i++) {
            const float x = (float)number[i].real;
            memcpy(data + (place + i * step) * (int64_t)sizeof x, &x, sizeof x);
        }
    } else if (weft_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < n; i++)
            weft_store_real(dtype, tensor->data, place + i * step, number[i].real);
    } else {
        for (int64_t i = 0; i < n; i++)
            weft_store_integer(dtype, tensor->data, place + i * step, number[i].integer);
    }
}

/* --- scratch memory ---------------------------------------------------------------------------------------- */

void *weft_eval_scratch(struct weft_eval *eval, int64_t count, size_t element)
{
    size_t bytes;
    void *memory = NULL;
    if (!__builtin_mul_overflow((size_t)count, element, &bytes))
        memory = weft_allocate(eval->context, bytes);
    if (!memory)
        eval->failed = true;
    return memory;
}

void weft_eval_drop(struct weft_eval *eval, void *memory, int64_t count, size_t element)
{
    if (memory)
        weft_release(eval->context, memory, (size_t)count * element);
}

union weft_number *weft_eval_numbers(struct weft_eval *eval, const struct weft_tensor *tensor)
{
    union weft_number *numbers = weft_eval_scratch(eval, weft_tensor_count(tensor), sizeof *numbers);
    if (!numbers)
        return NULL;
    union weft_number *at = numbers;
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &tensor); !walk.done; weft_walk_next(&walk)) {
        weft_eval_load(tensor, walk.place[0], walk.step[0], walk.run, at);
        at += walk.run;
    }
    return numbers;
}

void weft_eval_drop_numbers(struct weft_eval *eval, union weft_number *numbers, int64_t count)
{
    weft_eval_drop(eval, numbers, count, sizeof *numbers);
}

void weft_eval_store_all(const struct weft_tensor *tensor, const union weft_number *number)
{
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &tensor); !walk.done; weft_walk_next(&walk)) {
        weft_eval_store(tensor, walk.place[0], walk.step[0], walk.run, number);
        number += walk.run;
    }
}
