/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: extents, strides and copies of tensors. */
#include "ir/ir.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

void weft_fail(struct weft_failure *failure, int status, const char *format, ...)
{
    if (!failure || atomic_exchange(&failure->claimed, true))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    failure->status = status;
}

int64_t weft_tensor_span(const struct weft_tensor *tensor)
{
    int64_t last = 0;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->extent[i] == 0)
            return 0;
        last += (tensor->extent[i] - 1) * tensor->stride[i];
    }
    return last + 1;
}

int64_t weft_tensor_count(const struct weft_tensor *tensor)
{
    int64_t count = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        count *= tensor->extent[axis];
    return count;
}

double weft_tensor_elements(const struct weft_tensor *tensor)
{
    double elements = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->extent[axis] > 0 ? (double)tensor->extent[axis] : 0;
    return elements;
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

void weft_tensor_of(const struct weft_graph *graph, const struct weft_type *type, const int64_t *symbols,
                     struct weft_tensor *ret)
{
    *ret = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int axis = 0; axis < type->rank; axis++) {
        const int64_t extent = weft_dim_evaluate(graph->dims, type->extent[axis], symbols);
        ret->extent[axis] = extent > 0 ? extent : 0;
    }
    weft_tensor_dense(ret);
}

void weft_tensor_free(struct weft_context *context, struct weft_tensor *tensor)
{
    if (!context || !tensor || !tensor->data)
        return;
    weft_release(context, tensor->data, weft_tensor_bytes(tensor));
    tensor->data = NULL;
    weft_context_drop(context);
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

/* --- copies -------------------------------------------------------------------------------------------------- */

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

/* In every type the number 0 has no bit set. */
static void clear_one(const struct weft_tensor *tensor, int64_t place)
{
    const unsigned bits = weft_dtype_bits(tensor->dtype);
    if (bits < 8)
        weft_store_integer(tensor->dtype, tensor->data, place, 0);
    else
        memset((char *)tensor->data + place * (bits / 8), 0, bits / 8);
}

void weft_tensor_clear(const struct weft_tensor *tensor, int64_t place)
{
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++)
            clear_one(tensor, place + walk.place[0] + i * walk.step[0]);
}
