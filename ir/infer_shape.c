/* SPDX-License-Identifier: Apache-2.0 */
/* infer_shape.c: sources, views and movement. */
#include "ir/infer.h"

#include <string.h>

/* --- sources ----------------------------------------------------------------------------------------------- */

bool weft_infer_const(struct weft_infer *infer)
{
    const struct weft_type *type = &infer->result[0];
    const struct weft_constant *constant = infer->constant;
    if (!constant)
        return weft_infer_fail(infer, "the elements are missing");
    if (constant->kind == WEFT_CONST_SPLAT)
        return true;
    if (!weft_type_is_constant(type))
        return weft_infer_fail(infer, "the type is %s, but only a splat may have symbolic extents",
                               weft_infer_type_text(infer, type));
    if (constant->kind == WEFT_CONST_RANDOM)
        return weft_dtype_is_float(type->dtype) ||
               weft_infer_fail(infer, "the type is %s, but random elements are floats",
                               weft_infer_type_text(infer, type));
    int64_t elements = 1;
    for (int axis = 0; axis < type->rank; axis++)
        if (__builtin_mul_overflow(elements, weft_dim_value(type->extent[axis]), &elements) ||
            elements > INT64_MAX / 64)
            return weft_infer_fail(infer, "the type %s is too large", weft_infer_type_text(infer, type));
    const uint64_t bytes = (uint64_t)weft_dtype_bytes(type->dtype, elements);
    if (!constant->blob || constant->offset > constant->blob->bytes || bytes > constant->blob->bytes - constant->offset)
        return weft_infer_fail(infer, "the type %s needs %llu bytes at offset %llu, but there are only %llu bytes",
                               weft_infer_type_text(infer, type), (unsigned long long)bytes,
                               (unsigned long long)constant->offset,
                               (unsigned long long)(constant->blob ? constant->blob->bytes : 0));
    return true;
}

bool weft_infer_extents(struct weft_infer *infer)
{
    const struct weft_type *type = &infer->result[0];
    const struct weft_attr *value = weft_infer_attr(infer, WEFT_ATTR_value);
    const bool integers = weft_dtype_is_int(type->dtype) && !weft_dtype_is_storage_only(type->dtype);
    if (!integers || !weft_dim_is(weft_type_elements(infer->graph->dims, type), value->count))
        return weft_infer_fail(infer, "the type is %s, but %u integers are given", weft_infer_type_text(infer, type),
                               value->count);
    return true;
}

bool weft_infer_iota(struct weft_infer *infer)
{
    const struct weft_type *type = &infer->result[0];
    int axis;
    if (type->dtype == WEFT_BOOL || weft_dtype_is_storage_only(type->dtype))
        return weft_infer_fail(infer, "the type is %s, but indices are floats or integers",
                               weft_infer_type_text(infer, type));
    return weft_infer_axis(infer, type->rank, &axis);
}

/* --- views ------------------------------------------------------------------------------------------------- */

bool weft_infer_transpose(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_length(infer, WEFT_ATTR_perm, type->rank))
        return false;
    bool seen[WEFT_MAX_RANK] = {false};
    struct weft_type result = {.dtype = type->dtype, .rank = type->rank};
    for (unsigned i = 0; i < type->rank; i++) {
        int64_t axis;
        if (!weft_infer_int_at(infer, WEFT_ATTR_perm, i, 0, &axis))
            return false;
        if (axis >= type->rank || seen[axis])
            return weft_infer_fail(infer,
                                   "perm is no permutation of the axes of operand 0, which is %s: element %u is %lld",
                                   weft_infer_type_text(infer, type), i, (long long)axis);
        seen[axis] = true;
        result.extent[i] = type->extent[axis];
    }
    infer->result[0] = result;
    return true;
}

bool weft_infer_reshape(struct weft_infer *infer)
{
    const struct weft_type *from = weft_infer_type(infer, 0), *to = &infer->result[0];
    const weft_dim before = weft_type_elements(infer->graph->dims, from),
                   after = weft_type_elements(infer->graph->dims, to);
    if (from->dtype != to->dtype)
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: the element types differ",
                               weft_infer_type_text(infer, from), weft_infer_type_text(infer, to));
    if (!weft_dim_same(before, after))
        return weft_infer_fail(infer, "operand 0 is %s with %s elements, but the result is %s with %s",
                               weft_infer_type_text(infer, from), weft_infer_dim_text(infer, before),
                               weft_infer_type_text(infer, to), weft_infer_dim_text(infer, after));
    return true;
}

bool weft_infer_bcast(struct weft_infer *infer)
{
    const struct weft_type *from = weft_infer_type(infer, 0), *to = &infer->result[0];
    if (from->dtype != to->dtype)
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: the element types differ",
                               weft_infer_type_text(infer, from), weft_infer_type_text(infer, to));
    if (!weft_infer_length(infer, WEFT_ATTR_dims, from->rank))
        return false;
    bool seen[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < from->rank; i++) {
        int64_t axis;
        if (!weft_infer_int_at(infer, WEFT_ATTR_dims, i, 0, &axis))
            return false;
        if (axis >= to->rank || seen[axis])
            return weft_infer_fail(infer,
                                   "dims must name different axes of the result, which is %s: element %u is %lld",
                                   weft_infer_type_text(infer, to), i, (long long)axis);
        seen[axis] = true;
        if (!weft_dim_is(from->extent[i], 1) && !weft_dim_same(from->extent[i], to->extent[axis]))
            return weft_infer_fail(
                infer, "operand 0 is %s, but the result is %s: axis %u is neither 1 nor equal to axis %lld",
                weft_infer_type_text(infer, from), weft_infer_type_text(infer, to), i, (long long)axis);
    }
    return true;
}

bool weft_infer_slice(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_length(infer, WEFT_ATTR_start, type->rank) ||
        !weft_infer_length(infer, WEFT_ATTR_end, type->rank) || !weft_infer_length(infer, WEFT_ATTR_step, type->rank))
        return false;
    struct weft_type result = {.dtype = type->dtype, .rank = type->rank};
    for (unsigned axis = 0; axis < type->rank; axis++) {
        const weft_dim start = weft_infer_at(infer, WEFT_ATTR_start, axis),
                       end = weft_infer_at(infer, WEFT_ATTR_end, axis);
        int64_t step;
        if (!weft_infer_int_at(infer, WEFT_ATTR_step, axis, 1, &step))
            return false;
        const weft_dim length = weft_dim_sub(dims, end, start);
        if (weft_infer_below(infer, start, 0) || weft_infer_below(infer, length, 0) ||
            weft_infer_below(infer, weft_dim_sub(dims, type->extent[axis], end), 0))
            return weft_infer_fail(infer, "operand 0 is %s, but axis %u is cut from %s to %s",
                                   weft_infer_type_text(infer, type), axis, weft_infer_dim_text(infer, start),
                                   weft_infer_dim_text(infer, end));
        result.extent[axis] = weft_dim_ceil_div(dims, length, weft_dim_of(step));
    }
    infer->result[0] = result;
    return true;
}

/* --- movement ---------------------------------------------------------------------------------------------- */

bool weft_infer_concat(struct weft_infer *infer)
{
    const struct weft_type *first = weft_infer_type(infer, 0);
    int axis;
    if (!weft_infer_axis(infer, first->rank, &axis))
        return false;
    struct weft_type result = *first;
    for (unsigned i = 1; i < infer->operands; i++) {
        const struct weft_type *type = weft_infer_type(infer, i);
        bool fits = type->rank == first->rank && type->dtype == first->dtype;
        for (int other = 0; fits && other < first->rank; other++)
            fits = other == axis || weft_dim_same(type->extent[other], first->extent[other]);
        if (!fits)
            return weft_infer_fail(infer, "operand %u is %s, but operand 0 is %s: they may differ in axis %d only", i,
                                   weft_infer_type_text(infer, type), weft_infer_type_text(infer, first), axis);
        result.extent[axis] = weft_dim_add(infer->graph->dims, result.extent[axis], type->extent[axis]);
    }
    infer->result[0] = result;
    return true;
}

/* Reflection needs a second element to turn at, and one turn only; an edge and a repetition need an element. */
static bool fits_form(struct weft_infer *infer, const char *form, weft_dim extent, weft_dim pad)
{
    struct weft_dims *dims = infer->graph->dims;
    int64_t lowest, highest;
    weft_dim_range(dims, pad, &lowest, &highest);
    if (lowest <= 0 || strcmp(form, "constant") == 0)
        return true;
    if (strcmp(form, "edge") == 0 || strcmp(form, "wrap") == 0)
        return !weft_infer_below(infer, extent, 1);
    return !weft_infer_below(infer, weft_dim_sub(dims, extent, pad), 1);
}

bool weft_infer_pad(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *type = weft_infer_type(infer, 0), *value = weft_infer_type(infer, 1);
    if (value->rank != 0 || value->dtype != type->dtype)
        return weft_infer_fail(infer, "operand 1 is %s, but must be one element of the type of operand 0, which is %s",
                               weft_infer_type_text(infer, value), weft_infer_type_text(infer, type));
    if (!weft_infer_length(infer, WEFT_ATTR_pad, 2u * type->rank))
        return false;
    const char *form = weft_infer_word(infer, WEFT_ATTR_form);
    struct weft_type result = *type;
    for (unsigned axis = 0; axis < type->rank; axis++) {
        const weft_dim before = weft_infer_at(infer, WEFT_ATTR_pad, axis),
                       after = weft_infer_at(infer, WEFT_ATTR_pad, type->rank + axis);
        result.extent[axis] = weft_dim_add(dims, type->extent[axis], weft_dim_add(dims, before, after));
        if (!fits_form(infer, form, type->extent[axis], before) || !fits_form(infer, form, type->extent[axis], after) ||
            weft_infer_below(infer, result.extent[axis], 0))
            return weft_infer_fail(infer, "operand 0 is %s, but axis %u cannot be padded by %s and %s with form=%s",
                                   weft_infer_type_text(infer, type), axis, weft_infer_dim_text(infer, before),
                                   weft_infer_dim_text(infer, after), form);
    }
    infer->result[0] = result;
    return true;
}

bool weft_infer_gather(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1);
    int axis;
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER) || !weft_infer_axis(infer, type->rank, &axis))
        return false;
    if (type->rank - 1 + index->rank > WEFT_MAX_RANK)
        return weft_infer_fail(infer, "operand 0 is %s and operand 1 is %s: the result would have more than %d axes",
                               weft_infer_type_text(infer, type), weft_infer_type_text(infer, index), WEFT_MAX_RANK);
    struct weft_type result = {.dtype = type->dtype};
    for (int i = 0; i < axis; i++)
        result.extent[result.rank++] = type->extent[i];
    for (int i = 0; i < index->rank; i++)
        result.extent[result.rank++] = index->extent[i];
    for (int i = axis + 1; i < type->rank; i++)
        result.extent[result.rank++] = type->extent[i];
    infer->result[0] = result;
    return true;
}
