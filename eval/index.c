/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: ops that reverse, choose and replace elements by indices.
 *
 * Data decides which element is meant, so every index is checked where it is read: a negative one counts from the end;
 * of one that still lies outside, a gather takes the nearest element and a scatter drops the update. Updates are
 * applied in row-major order of the indices, each rounded to the type, so that duplicates have one result. */
#include "eval/rule.h"

#include <math.h>
#include <string.h>

/* Index `place` of a tensor, counted from the front; false if it lies outside of [0, extent). */
static bool read_index(const struct weft_tensor *index, int64_t place, int64_t extent, int64_t *ret)
{
    union weft_number x;
    weft_eval_load(index, place, 0, 1, &x);
    const bool huge = index->dtype == WEFT_U64 && x.integer < 0;
    *ret = huge ? INT64_MAX : x.integer < 0 ? x.integer + extent : x.integer;
    return *ret >= 0 && *ret < extent;
}

static int64_t clamped(int64_t i, int64_t low, int64_t high) { return i < low ? low : i > high ? high : i; }

static bool is_empty(const struct weft_tensor *tensor) { return weft_tensor_count(tensor) == 0; }

/* The tensor without its first `count` axes. */
static struct weft_tensor inner_of(const struct weft_tensor *tensor, int count)
{
    struct weft_tensor inner = *tensor;
    inner.rank = tensor->rank - count;
    memmove(inner.extent, tensor->extent + count, (size_t)inner.rank * sizeof *inner.extent);
    memmove(inner.stride, tensor->stride + count, (size_t)inner.rank * sizeof *inner.stride);
    return inner;
}

/* Its first `count` axes. */
static struct weft_tensor outer_of(const struct weft_tensor *tensor, int count)
{
    struct weft_tensor outer = *tensor;
    outer.rank = count;
    return outer;
}

/* The whole index of element i of a walk's run. */
static void full_index(const struct weft_walk *walk, int64_t i, int64_t *ret)
{
    memcpy(ret, walk->index, sizeof walk->index);
    ret[walk->outer] = i;
}

static int64_t place_of(const struct weft_tensor *tensor, const int64_t *index)
{
    int64_t place = 0;
    for (int axis = 0; axis < tensor->rank; axis++)
        place += index[axis] * tensor->stride[axis];
    return place;
}

/* --- reversing and masking -------------------------------------------------------------------------------------- */

void weft_eval_diagonal(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0];
    const int64_t first = weft_eval_at(eval, WEFT_ATTR_axes, 0), second = weft_eval_at(eval, WEFT_ATTR_axes, 1);
    struct weft_tensor view = eval->out[0];
    view.data = in->data;
    for (int i = 0, axis = 0; i < in->rank; i++)
        if (i != first && i != second)
            view.stride[axis++] = in->stride[i];
    view.stride[view.rank - 1] = in->stride[first] + in->stride[second];
    weft_tensor_copy(&eval->out[0], 0, &view, 0);
}

void weft_eval_flip(struct weft_eval *eval)
{
    struct weft_tensor view = eval->in[0];
    const struct weft_attr *axes = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_axes);
    int64_t place = 0;
    for (unsigned i = 0; i < axes->count; i++) {
        const int64_t axis = weft_dim_value(axes->integers[i]);
        place += (view.extent[axis] - 1) * view.stride[axis];
        view.stride[axis] = -view.stride[axis];
    }
    weft_tensor_copy(&eval->out[0], 0, &view, place);
}

void weft_eval_triangle(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t diagonal = weft_eval_int(eval, WEFT_ATTR_diagonal);
    const bool upper = weft_eval_int(eval, WEFT_ATTR_upper);
    const int64_t zero = 0;
    struct weft_tensor zeros = *out;
    zeros.data = (void *)(uintptr_t)&zero; /* only read */
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk)) {
        /* elements [0, kept) of the run lie on one side of the border, the others on the other */
        const int64_t border = walk.index[walk.outer - 1] + diagonal + !upper;
        const int64_t kept = clamped(border, 0, walk.run);
        weft_tensor_copy_run(out, walk.place[0], walk.step[0], upper ? &zeros : in, upper ? 0 : walk.place[1],
                             upper ? 0 : walk.step[1], kept);
        weft_tensor_copy_run(out, walk.place[0] + kept * walk.step[0], walk.step[0], upper ? in : &zeros,
                             upper ? walk.place[1] + kept * walk.step[1] : 0, upper ? walk.step[1] : 0,
                             walk.run - kept);
    }
}

void weft_eval_reverse_sequence(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *length = &eval->in[1], *out = &eval->out[0];
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis), batch = (int)weft_eval_int(eval, WEFT_ATTR_batch_axis);
    struct weft_tensor to = *out, from = *in; /* of one element of the batch */
    to.extent[batch] = from.extent[batch] = 1;
    for (int64_t b = 0; b < out->extent[batch]; b++) {
        union weft_number x;
        weft_eval_load(length, b * length->stride[0], 0, 1, &x);
        const bool huge = length->dtype == WEFT_U64 && x.integer < 0;
        const int64_t turned = huge ? in->extent[axis] : clamped(x.integer, 0, in->extent[axis]);
        struct weft_tensor view = from;
        int64_t to_place = b * out->stride[batch], from_place = b * in->stride[batch];
        view.stride[axis] = -from.stride[axis];
        to.extent[axis] = view.extent[axis] = turned;
        weft_tensor_copy(&to, to_place, &view, from_place + (turned - 1) * in->stride[axis]);
        to.extent[axis] = from.extent[axis] = in->extent[axis] - turned;
        weft_tensor_copy(&to, to_place + turned * out->stride[axis], &from, from_place + turned * in->stride[axis]);
    }
}

/* --- gathers ---------------------------------------------------------------------------------------------------- */

static void fill_zero(const struct weft_tensor *out)
{
    const int64_t zero = 0;
    struct weft_tensor one = *out;
    one.data = (void *)(uintptr_t)&zero; /* only read */
    memset(one.stride, 0, sizeof one.stride);
    weft_tensor_copy(out, 0, &one, 0);
}

void weft_eval_gather_elements(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *index = &eval->in[1], *out = &eval->out[0];
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    if (is_empty(in)) {
        fill_zero(out);
        return;
    }
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, index}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t at[WEFT_MAX_RANK];
            full_index(&walk, i, at);
            read_index(index, walk.place[1] + i * walk.step[1], in->extent[axis], &at[axis]);
            for (int k = 0; k < in->rank; k++)
                at[k] = clamped(at[k], 0, in->extent[k] - 1);
            weft_tensor_copy_run(out, walk.place[0] + i * walk.step[0], 0, in, place_of(in, at), 0, 1);
        }
}

/* The place in x that the index at `place` of `index` names, behind `batch` axes; false if a number of it lies outside.
 * Numbers are clamped, so the place is right to read in any case. */
static bool tuple_place(const struct weft_tensor *in, int batch, const struct weft_tensor *index, int64_t place,
                        int64_t *ret)
{
    const int last = index->rank - 1;
    bool inside = true;
    for (int64_t k = 0; k < index->extent[last]; k++) {
        const int64_t extent = in->extent[batch + k];
        int64_t at;
        inside &= read_index(index, place + k * index->stride[last], extent, &at);
        *ret += clamped(at, 0, extent - 1) * in->stride[batch + k];
    }
    return inside;
}

void weft_eval_gather_nd(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *index = &eval->in[1], *out = &eval->out[0];
    const int batch = (int)weft_eval_int(eval, WEFT_ATTR_batch), tuples = index->rank - 1;
    if (is_empty(in)) {
        fill_zero(out);
        return;
    }
    const struct weft_tensor part = inner_of(in, batch + (int)index->extent[tuples]), to = inner_of(out, tuples),
                             each = outer_of(index, tuples), place = outer_of(out, tuples);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){&place, &each}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t at[WEFT_MAX_RANK], from = 0;
            full_index(&walk, i, at);
            for (int k = 0; k < batch; k++)
                from += at[k] * in->stride[k];
            tuple_place(in, batch, index, walk.place[1] + i * walk.step[1], &from);
            weft_tensor_copy(&to, walk.place[0] + i * walk.step[0], &part, from);
        }
}

void weft_eval_one_hot(struct weft_eval *eval)
{
    const struct weft_tensor *index = &eval->in[0], *values = &eval->in[1], *out = &eval->out[0];
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    struct weft_tensor off = *out, place = *index;
    off.data = values->data;
    memset(off.stride, 0, sizeof off.stride);
    weft_tensor_copy(out, 0, &off, 0);
    for (int i = 0; i < index->rank; i++)
        place.stride[i] = out->stride[i + (i >= axis)];
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){index, &place}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t at;
            if (read_index(index, walk.place[0] + i * walk.step[0], out->extent[axis], &at))
                weft_tensor_copy_run(out, walk.place[1] + i * walk.step[1] + at * out->stride[axis], 0, values,
                                     values->stride[0], 0, 1);
        }
}

/* --- scatters --------------------------------------------------------------------------------------------------- */

enum combine { REPLACE, ADD, MULTIPLY, LEAST, GREATEST };

static enum combine combine_of(const struct weft_eval *eval)
{
    const char *form = weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form);
    return strcmp(form, "none") == 0  ? REPLACE
           : strcmp(form, "add") == 0 ? ADD
           : strcmp(form, "mul") == 0 ? MULTIPLY
           : strcmp(form, "min") == 0 ? LEAST
                                      : GREATEST;
}

static double combined_real(enum combine how, double x, double y)
{
    if (how == ADD)
        return x + y;
    if (how == MULTIPLY)
        return x * y;
    if (isnan(x) || isnan(y))
        return isnan(x) ? x : y;
    return (how == LEAST) == (y < x) ? y : x;
}

static uint64_t combined_integer(enum combine how, int dtype, uint64_t x, uint64_t y)
{
    if (how == ADD)
        return x + y;
    if (how == MULTIPLY)
        return x * y;
    const bool less = weft_dtype_is_signed(dtype) ? (int64_t)y < (int64_t)x : y < x;
    return (how == LEAST) == less ? y : x;
}

static void combine(const struct weft_tensor *out, int64_t place, const struct weft_tensor *update,
                    int64_t update_place, enum combine how)
{
    if (how == REPLACE) {
        weft_tensor_copy_run(out, place, 0, update, update_place, 0, 1);
        return;
    }
    union weft_number x, y;
    weft_eval_load(out, place, 0, 1, &x);
    weft_eval_load(update, update_place, 0, 1, &y);
    if (weft_dtype_is_float(out->dtype))
        x.real = combined_real(how, x.real, y.real);
    else
        x.bits = combined_integer(how, out->dtype, x.bits, y.bits);
    weft_eval_store(out, place, 0, 1, &x);
}

void weft_eval_scatter_elements(struct weft_eval *eval)
{
    const struct weft_tensor *index = &eval->in[1], *update = &eval->in[2], *out = &eval->out[0];
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    const enum combine how = combine_of(eval);
    weft_tensor_copy(out, 0, &eval->in[0], 0);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){index, update}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t at[WEFT_MAX_RANK];
            full_index(&walk, i, at);
            bool inside = read_index(index, walk.place[0] + i * walk.step[0], out->extent[axis], &at[axis]);
            for (int k = 0; k < out->rank; k++)
                inside = inside && at[k] < out->extent[k];
            if (inside)
                combine(out, place_of(out, at), update, walk.place[1] + i * walk.step[1], how);
        }
}

void weft_eval_scatter_nd(struct weft_eval *eval)
{
    const struct weft_tensor *index = &eval->in[1], *update = &eval->in[2], *out = &eval->out[0];
    const int tuples = index->rank - 1;
    const enum combine how = combine_of(eval);
    weft_tensor_copy(out, 0, &eval->in[0], 0);
    if (is_empty(out))
        return;
    const struct weft_tensor each = outer_of(index, tuples), first = outer_of(update, tuples),
                             part = inner_of(update, tuples), target = inner_of(out, (int)index->extent[tuples]);
    struct weft_walk walk, inner;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){&each, &first}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t to = 0;
            if (!tuple_place(out, 0, index, walk.place[0] + i * walk.step[0], &to))
                continue;
            const int64_t from = walk.place[1] + i * walk.step[1];
            for (weft_walk_open(&inner, 2, (const struct weft_tensor *const[]){&part, &target}); !inner.done;
                 weft_walk_next(&inner))
                for (int64_t k = 0; k < inner.run; k++)
                    combine(out, to + inner.place[1] + k * inner.step[1], update, from + inner.place[0] +
                            k * inner.step[0], how);
        }
}

/* --- slices at a place known at run time ------------------------------------------------------------------------ */

/* The place in `whole` of a part that begins at the given starts, moved so that it lies within; the part's extents are
 * cut to those of the whole. */
static int64_t part_place(const struct weft_tensor *whole, struct weft_tensor *part, const struct weft_tensor *start)
{
    int64_t place = 0;
    for (int axis = 0; axis < whole->rank; axis++) {
        union weft_number x;
        weft_eval_load(start, axis * start->stride[0], 0, 1, &x);
        if (part->extent[axis] > whole->extent[axis])
            part->extent[axis] = whole->extent[axis];
        const int64_t most = whole->extent[axis] - part->extent[axis];
        const bool huge = start->dtype == WEFT_U64 && x.integer < 0;
        place += (huge ? most : clamped(x.integer, 0, most)) * whole->stride[axis];
    }
    return place;
}

void weft_eval_dynamic_slice(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0];
    struct weft_tensor part = eval->out[0];
    const int64_t place = part_place(in, &part, &eval->in[1]);
    weft_tensor_copy(&part, 0, in, place);
}

void weft_eval_dynamic_update(struct weft_eval *eval)
{
    const struct weft_tensor *out = &eval->out[0];
    struct weft_tensor part = eval->in[1];
    const int64_t place = part_place(out, &part, &eval->in[2]);
    struct weft_tensor target = *out;
    memcpy(target.extent, part.extent, sizeof target.extent);
    weft_tensor_copy(out, 0, &eval->in[0], 0);
    weft_tensor_copy(&target, place, &part, 0);
}
