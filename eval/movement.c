/* SPDX-License-Identifier: Apache-2.0 */
/* movement.c: ops that copy elements about. */
#include "eval/rule.h"
#include "ir/places.h"

#include <string.h>

void weft_eval_relayout(struct weft_eval *eval) { weft_tensor_copy(&eval->out[0], 0, &eval->in[0], 0); }

void weft_eval_concat(struct weft_eval *eval)
{
    const int64_t axis = weft_eval_int(eval, WEFT_ATTR_axis);
    const struct weft_tensor *out = &eval->out[0];
    int64_t place = 0;
    for (unsigned i = 0; i < weft_node_of(eval->graph, eval->node)->operands; i++) {
        struct weft_tensor part = *out;
        memcpy(part.extent, eval->in[i].extent, sizeof part.extent);
        weft_tensor_copy(&part, place, &eval->in[i], 0);
        place += eval->in[i].extent[axis] * out->stride[axis];
    }
}

/* --- pad --------------------------------------------------------------------------------------------------- */

int64_t weft_pad_source(const char *form, int64_t i, int64_t extent)
{
    if ((i >= 0 && i < extent) || extent == 0 || strcmp(form, "constant") == 0)
        return i >= 0 && i < extent ? i : -1;
    if (strcmp(form, "edge") == 0 || extent == 1)
        return i < 0 ? 0 : extent - 1;
    if (strcmp(form, "wrap") == 0)
        return (i % extent + extent) % extent;
    const int64_t period = 2 * (extent - 1);
    const int64_t within = (i % period + period) % period;
    return within < extent ? within : period - within;
}

/* Every result element looks its source up in one table per axis: the place along that axis, or -1 for the pad value.
 */
static void pad_elements(const struct weft_tensor *out, const struct weft_tensor *in, const struct weft_tensor *value,
                         int64_t *const *place)
{
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk)) {
        int64_t base = 0;
        bool outside = false;
        for (int axis = 0; axis < walk.outer; axis++) {
            outside |= place[axis][walk.index[axis]] < 0;
            base += place[axis][walk.index[axis]];
        }
        for (int64_t i = 0; i < walk.run; i++) {
            const int64_t last = out->rank > 0 ? place[out->rank - 1][i] : 0;
            const bool takes_value = outside || last < 0;
            union weft_number x;
            weft_eval_load(takes_value ? value : in, takes_value ? 0 : base + last, 0, 1, &x);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 0, 1, &x);
        }
    }
}

void weft_eval_pad(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const char *form = weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form);
    int64_t total = 0;
    for (int axis = 0; axis < out->rank; axis++)
        total += out->extent[axis];
    int64_t *table = weft_eval_scratch(eval, total, sizeof *table), *place[WEFT_MAX_RANK] = {NULL};
    if (!table)
        return;
    int64_t *at = table;
    for (int axis = 0; axis < out->rank; axis++) {
        const int64_t before = weft_eval_at(eval, WEFT_ATTR_pad, (unsigned)axis);
        place[axis] = at;
        for (int64_t i = 0; i < out->extent[axis]; i++) {
            const int64_t from = weft_pad_source(form, i - before, in->extent[axis]);
            *at++ = from < 0 ? -1 : from * in->stride[axis];
        }
    }
    pad_elements(out, in, &eval->in[1], place);
    weft_eval_drop(eval, table, total, sizeof *table);
}

/* --- gather ------------------------------------------------------------------------------------------------ */

static void drop_axes(struct weft_tensor *tensor, int first, int count)
{
    for (int axis = first; axis + count < tensor->rank; axis++) {
        tensor->extent[axis] = tensor->extent[axis + count];
        tensor->stride[axis] = tensor->stride[axis + count];
    }
    tensor->rank -= count;
}

static void fill_zero(const struct weft_tensor *out)
{
    const int64_t zero = 0;
    struct weft_tensor one = *out;
    one.data = (void *)(uintptr_t)&zero; /* only read */
    memset(one.stride, 0, sizeof one.stride);
    weft_tensor_copy(out, 0, &one, 0);
}

/* A negative index counts from the end. One outside of the axis is undefined in ONNX; it takes the nearest element, so
 * that no wrong address is read, and zeros where the axis is empty. */
void weft_eval_gather(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *index = &eval->in[1], *out = &eval->out[0];
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    const int64_t extent = in->extent[axis];
    if (extent == 0) {
        fill_zero(out);
        return;
    }
    struct weft_tensor to = *out, from = *in, target = *index; /* of one index; the results' places by index */
    drop_axes(&to, axis, index->rank);
    drop_axes(&from, axis, 1);
    memcpy(target.stride, out->stride + axis, (size_t)index->rank * sizeof *target.stride);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){index, &target}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            union weft_number x;
            weft_eval_load(index, walk.place[0] + i * walk.step[0], 0, 1, &x);
            const bool huge = index->dtype == WEFT_U64 && x.integer < 0;
            int64_t at = huge ? extent - 1 : x.integer < 0 ? x.integer + extent : x.integer;
            at = at < 0 ? 0 : at >= extent ? extent - 1 : at;
            weft_tensor_copy(&to, walk.place[1] + i * walk.step[1], &from, at * in->stride[axis]);
        }
}
