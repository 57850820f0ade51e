/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c: sources, views and movement: ops that place elements and compute none. Each view is the operand seen
 * with other extents and strides, and then a copy. */
#include "eval/rule.h"

#include <string.h>

/* --- sources ----------------------------------------------------------------------------------------------- */

static void fill(const struct weft_tensor *out, const void *element)
{
    struct weft_tensor one = *out;
    one.data = (void *)(uintptr_t)element; /* only read */
    memset(one.stride, 0, sizeof one.stride);
    weft_tensor_copy(out, 0, &one, 0);
}

void weft_eval_const(struct weft_eval *eval)
{
    const struct weft_constant *constant = weft_node_of(eval->graph, eval->node)->constant;
    const struct weft_tensor *out = &eval->out[0];
    if (constant->kind == WEFT_CONST_SPLAT) {
        double element = 0; /* room for any element */
        if (constant->integer)
            weft_store_integer(out->dtype, &element, 0, constant->splat);
        else
            weft_store_real(out->dtype, &element, 0, constant->real);
        fill(out, &element);
        return;
    }
    struct weft_tensor packed = *out;
    weft_tensor_dense(&packed);
    packed.data = weft_eval_scratch(eval, (int64_t)weft_tensor_bytes(&packed), 1);
    if (!packed.data)
        return;
    weft_const_write(eval->graph, weft_result(eval->graph, eval->node, 0), packed.data);
    weft_tensor_copy(out, 0, &packed, 0);
    weft_eval_drop(eval, packed.data, (int64_t)weft_tensor_bytes(&packed), 1);
}

void weft_eval_extents(struct weft_eval *eval)
{
    struct weft_walk walk;
    unsigned element = 0;
    const struct weft_tensor *out = &eval->out[0];
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++)
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 0, 1,
                            &(union weft_number){.integer = weft_eval_at(eval, WEFT_ATTR_value, element++)});
}

void weft_eval_iota(struct weft_eval *eval)
{
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    const struct weft_tensor *out = &eval->out[0];
    const bool real = weft_dtype_is_float(out->dtype);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            const int64_t index = axis == walk.outer ? i : walk.index[axis];
            const union weft_number x =
                real ? (union weft_number){.real = (double)index} : (union weft_number){.integer = index};
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 0, 1, &x);
        }
}

/* --- views ------------------------------------------------------------------------------------------------- */

void weft_eval_transpose(struct weft_eval *eval)
{
    struct weft_tensor view = eval->in[0];
    for (int i = 0; i < view.rank; i++) {
        const int64_t axis = weft_eval_at(eval, WEFT_ATTR_perm, (unsigned)i);
        view.extent[i] = eval->in[0].extent[axis];
        view.stride[i] = eval->in[0].stride[axis];
    }
    weft_tensor_copy(&eval->out[0], 0, &view, 0);
}

void weft_eval_bcast(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0];
    struct weft_tensor view = eval->out[0];
    view.data = in->data;
    memset(view.stride, 0, sizeof view.stride);
    for (int i = 0; i < in->rank; i++)
        if (in->extent[i] != 1)
            view.stride[weft_eval_at(eval, WEFT_ATTR_dims, (unsigned)i)] = in->stride[i];
    weft_tensor_copy(&eval->out[0], 0, &view, 0);
}

/* Sizes that the graph could not check are checked by whoever runs it; here an axis that is cut outside of the operand
 * is cut at its ends, so that no wrong address is ever read. */
void weft_eval_slice(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0];
    struct weft_tensor view = eval->out[0];
    int64_t place = 0;
    view.data = in->data;
    for (int i = 0; i < in->rank; i++) {
        const int64_t step = weft_eval_at(eval, WEFT_ATTR_step, (unsigned)i);
        int64_t start = weft_eval_at(eval, WEFT_ATTR_start, (unsigned)i);
        if (start < 0 || start + (view.extent[i] - 1) * step >= in->extent[i]) {
            start = 0;
            const int64_t held = (in->extent[i] + step - 1) / step;
            view.extent[i] = view.extent[i] < held ? view.extent[i] : held;
        }
        view.stride[i] = in->stride[i] * step;
        place += start * in->stride[i];
    }
    struct weft_tensor out = eval->out[0];
    memcpy(out.extent, view.extent, sizeof out.extent);
    weft_tensor_copy(&out, 0, &view, place);
}

/* Both sides are packed here, in the same order of elements: reading packs the operand, storing unpacks it. */
void weft_eval_reshape(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct weft_tensor packed = *in;
    weft_tensor_dense(&packed);
    const int64_t bytes = (int64_t)weft_tensor_bytes(&packed);
    packed.data = weft_eval_scratch(eval, bytes, 1);
    if (!packed.data)
        return;
    weft_tensor_copy(&packed, 0, in, 0);
    struct weft_tensor view = *out;
    weft_tensor_dense(&view);
    view.data = packed.data;
    weft_tensor_copy(out, 0, &view, 0);
    weft_eval_drop(eval, packed.data, bytes, 1);
}
