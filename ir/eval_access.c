/* SPDX-License-Identifier: Apache-2.0 */
/* eval_access.c: elements of strided tensors. Every rule of the evaluator reads and writes through this file, so the
 * rules themselves know neither strides nor storage formats. */
#include "ir/eval.h"

#include <string.h>

int64_t weft_tensor_count(const struct weft_tensor *tensor)
{
    int64_t count = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        count *= tensor->extent[axis];
    return count;
}

size_t weft_tensor_bytes(const struct weft_tensor *tensor)
{
    const int64_t bytes = weft_dtype_bytes(tensor->dtype, weft_tensor_count(tensor));
    return bytes > 0 ? (size_t)bytes : 1;
}

void weft_tensor_dense(struct weft_tensor *tensor)
{
    int64_t stride = 1;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        tensor->stride[axis] = stride;
        stride *= tensor->extent[axis];
    }
}

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

/* --- walking ----------------------------------------------------------------------------------------------- */

void weft_walk_open(struct weft_walk *walk, int tensors, const struct weft_tensor *const *tensor)
{
    *walk = (struct weft_walk){.tensors = tensors, .run = 1};
    const int rank = tensor[0]->rank;
    walk->done = weft_tensor_count(tensor[0]) == 0;
    if (rank == 0)
        return;
    walk->outer = rank - 1;
    walk->run = tensor[0]->extent[rank - 1];
    for (int axis = 0; axis < rank - 1; axis++)
        walk->extent[axis] = tensor[0]->extent[axis];
    for (int t = 0; t < tensors; t++) {
        walk->step[t] = tensor[t]->stride[rank - 1];
        for (int axis = 0; axis < rank - 1; axis++)
            walk->stride[t][axis] = tensor[t]->stride[axis];
    }
}

void weft_walk_next(struct weft_walk *walk)
{
    for (int axis = walk->outer - 1; axis >= 0; axis--) {
        const bool wraps = ++walk->index[axis] == walk->extent[axis];
        const int64_t move = wraps ? 1 - walk->extent[axis] : 1;
        for (int t = 0; t < walk->tensors; t++)
            walk->place[t] += move * walk->stride[t][axis];
        if (!wraps)
            return;
        walk->index[axis] = 0;
    }
    walk->done = true;
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

void weft_tensor_copy_run(const struct weft_tensor *out, int64_t out_place, int64_t out_step,
                          const struct weft_tensor *in, int64_t in_place, int64_t in_step, int64_t n)
{
    const unsigned bits = weft_dtype_bits(out->dtype);
    if (bits < 8) {
        for (int64_t i = 0; i < n; i++)
            weft_store_integer(out->dtype, out->data, out_place + i * out_step,
                               weft_load_integer(in->dtype, in->data, in_place + i * in_step));
        return;
    }
    const int64_t size = bits / 8;
    char *to = (char *)out->data + out_place * size;
    const char *from = (const char *)in->data + in_place * size;
    if (out_step == 1 && in_step == 1) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * out_step * size, from + i * in_step * size, (size_t)size);
}

void weft_tensor_copy(const struct weft_tensor *out, int64_t out_place, const struct weft_tensor *in, int64_t in_place)
{
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        weft_tensor_copy_run(out, out_place + walk.place[0], walk.step[0], in, in_place + walk.place[1], walk.step[1],
                             walk.run);
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
