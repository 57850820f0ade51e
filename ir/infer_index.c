/* SPDX-License-Identifier: Apache-2.0 */
/* infer_index.c: ops that reverse, choose and replace elements by indices. An inequality between extents is an error
 * only where it is broken for all values of the symbols; the evaluator reads and writes nothing outside in any case. */
#include "ir/infer.h"

#include <string.h>

/* --- without operands that are indices ------------------------------------------------------------------------ */

/* The other axes stay in order, and the diagonal is the last one. */
bool weft_infer_diagonal(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    const struct weft_attr *axes = weft_infer_attr(infer, WEFT_ATTR_axes);
    int64_t axis[2] = {0, 0};
    if (!weft_infer_length(infer, WEFT_ATTR_axes, 2) || !weft_infer_int_at(infer, WEFT_ATTR_axes, 0, 0, &axis[0]) ||
        !weft_infer_int_at(infer, WEFT_ATTR_axes, 1, 0, &axis[1]))
        return false;
    if (axis[0] >= axis[1] || axis[1] >= type->rank || axes->count != 2)
        return weft_infer_fail(infer, "operand 0 is %s; two of its axes must be given rising, not %lld and %lld",
                               weft_infer_type_text(infer, type), (long long)axis[0], (long long)axis[1]);
    struct weft_type *result = &infer->result[0];
    *result = (struct weft_type){.dtype = type->dtype};
    for (int i = 0; i < type->rank; i++)
        if (i != axis[0] && i != axis[1])
            result->extent[result->rank++] = type->extent[i];
    result->extent[result->rank++] =
        weft_dim_min(infer->graph->dims, type->extent[axis[0]], type->extent[axis[1]]);
    return true;
}

bool weft_infer_flip(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    const struct weft_attr *axes = weft_infer_attr(infer, WEFT_ATTR_axes);
    int64_t last = -1;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t axis;
        if (!weft_infer_int_at(infer, WEFT_ATTR_axes, i, 0, &axis))
            return false;
        if (axis >= type->rank || axis <= last)
            return weft_infer_fail(infer, "operand 0 is %s; its axes must be given rising, but element %u of axes is "
                                          "%lld", weft_infer_type_text(infer, type), i, (long long)axis);
        last = axis;
    }
    infer->result[0] = *type;
    return true;
}

bool weft_infer_triangle(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    int64_t upper;
    if (!weft_infer_int(infer, WEFT_ATTR_upper, 0, 1, &upper))
        return false;
    if (type->rank < 2)
        return weft_infer_fail(infer, "operand 0 is %s, but a triangle needs two axes",
                               weft_infer_type_text(infer, type));
    infer->result[0] = *type;
    return true;
}

/* --- gathers -------------------------------------------------------------------------------------------------- */

/* Axes of operand b, other than `axis`, reach no further than those of operand a. */
static bool within(struct weft_infer *infer, unsigned a, unsigned b, int axis)
{
    const struct weft_type *type = weft_infer_type(infer, a), *small = weft_infer_type(infer, b);
    bool fits = type->rank == small->rank;
    for (int i = 0; fits && i < type->rank; i++)
        fits = i == axis ||
               !weft_infer_below(infer, weft_dim_sub(infer->graph->dims, type->extent[i], small->extent[i]), 0);
    return fits || weft_infer_fail(infer, "operand %u is %s, which does not lie within operand %u, %s", b,
                                   weft_infer_type_text(infer, small), a, weft_infer_type_text(infer, type));
}

bool weft_infer_gather_elements(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1);
    int axis;
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER) || !weft_infer_axis(infer, type->rank, &axis) ||
        !within(infer, 0, 1, axis))
        return false;
    infer->result[0] = *index;
    infer->result[0].dtype = type->dtype;
    return true;
}

/* How many numbers make an index: the last extent of operand 1, which must be known. */
static bool index_length(struct weft_infer *infer, int64_t batch, int64_t *ret)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1);
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER))
        return false;
    const weft_dim last = index->rank ? index->extent[index->rank - 1] : weft_dim_of(0);
    if (index->rank <= batch || !weft_dim_is_constant(last) || weft_dim_value(last) < 1 ||
        weft_dim_value(last) > type->rank - batch)
        return weft_infer_fail(infer, "operand 1 is %s, but its last axis must hold an index into operand 0, which is "
                                      "%s", weft_infer_type_text(infer, index), weft_infer_type_text(infer, type));
    *ret = weft_dim_value(last);
    return true;
}

/* All axes of the indices but the last, then what an index of `length` numbers behind `batch` axes leaves of x. */
static bool indexed_type(struct weft_infer *infer, int64_t batch, int64_t length, struct weft_type *ret)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1);
    *ret = (struct weft_type){.dtype = type->dtype};
    if (index->rank - 1 + type->rank - batch - length > WEFT_MAX_RANK)
        return weft_infer_fail(infer, "operand 0 is %s and operand 1 is %s: the result would have more than %d axes",
                               weft_infer_type_text(infer, type), weft_infer_type_text(infer, index), WEFT_MAX_RANK);
    for (int i = 0; i + 1 < index->rank; i++)
        ret->extent[ret->rank++] = index->extent[i];
    for (int64_t i = batch + length; i < type->rank; i++)
        ret->extent[ret->rank++] = type->extent[i];
    return true;
}

bool weft_infer_gather_nd(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1);
    int64_t batch, length;
    if (!weft_infer_int(infer, WEFT_ATTR_batch, 0, type->rank, &batch) || !index_length(infer, batch, &length))
        return false;
    for (int64_t i = 0; i < batch; i++)
        if (!weft_dim_same(type->extent[i], index->extent[i]))
            return weft_infer_fail(infer, "operand 0 is %s and operand 1 is %s: batch axis %lld differs",
                                   weft_infer_type_text(infer, type), weft_infer_type_text(infer, index), (long long)i);
    return indexed_type(infer, batch, length, &infer->result[0]);
}

bool weft_infer_one_hot(struct weft_infer *infer)
{
    const struct weft_type *index = weft_infer_type(infer, 0), *values = weft_infer_type(infer, 1);
    int axis;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_INTEGER) || !weft_infer_axis(infer, index->rank + 1, &axis))
        return false;
    const weft_dim depth = weft_infer_dim(infer, WEFT_ATTR_depth);
    if (index->rank == WEFT_MAX_RANK || weft_infer_below(infer, depth, 0))
        return weft_infer_fail(infer, "operand 0 is %s: an axis of extent %s cannot be added",
                               weft_infer_type_text(infer, index), weft_infer_dim_text(infer, depth));
    if (values->rank != 1 || !weft_dim_is(values->extent[0], 2))
        return weft_infer_fail(infer, "operand 1 is %s, but must be two elements: off and on",
                               weft_infer_type_text(infer, values));
    struct weft_type result = {.dtype = values->dtype, .rank = (uint8_t)(index->rank + 1)};
    for (int i = 0, from = 0; i < result.rank; i++)
        result.extent[i] = i == axis ? depth : index->extent[from++];
    infer->result[0] = result;
    return true;
}

bool weft_infer_reverse_sequence(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *length = weft_infer_type(infer, 1);
    int axis;
    int64_t batch;
    if (!weft_infer_axis(infer, type->rank, &axis) ||
        !weft_infer_int(infer, WEFT_ATTR_batch_axis, 0, type->rank - 1, &batch) ||
        !weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER))
        return false;
    if (batch == axis)
        return weft_infer_fail(infer, "axis and batch_axis are both %d", axis);
    if (length->rank != 1 || !weft_dim_same(length->extent[0], type->extent[batch]))
        return weft_infer_fail(infer, "operand 1 is %s, but must hold a length for each index of axis %lld of "
                                      "operand 0, which is %s", weft_infer_type_text(infer, length), (long long)batch,
                               weft_infer_type_text(infer, type));
    infer->result[0] = *type;
    return true;
}

/* --- scatters ------------------------------------------------------------------------------------------------- */

/* What combines elements needs numbers; what replaces them takes any. */
static bool combines(struct weft_infer *infer)
{
    return weft_infer_same_dtype(infer, 0, 2) && (strcmp(weft_infer_word(infer, WEFT_ATTR_form), "none") == 0 ||
                                                  weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC));
}

bool weft_infer_scatter_elements(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *index = weft_infer_type(infer, 1),
                           *update = weft_infer_type(infer, 2);
    int axis;
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER) || !weft_infer_axis(infer, type->rank, &axis) ||
        !within(infer, 0, 1, axis) || !combines(infer))
        return false;
    bool same = index->rank == update->rank;
    for (int i = 0; same && i < index->rank; i++)
        same = weft_dim_same(index->extent[i], update->extent[i]);
    if (!same)
        return weft_infer_fail(infer, "operand 1 is %s, but operand 2 is %s: their shapes differ",
                               weft_infer_type_text(infer, index), weft_infer_type_text(infer, update));
    infer->result[0] = *type;
    return true;
}

bool weft_infer_scatter_nd(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *update = weft_infer_type(infer, 2);
    int64_t length;
    struct weft_type wanted;
    if (!index_length(infer, 0, &length) || !combines(infer) || !indexed_type(infer, 0, length, &wanted))
        return false;
    if (!weft_type_same(update, &wanted))
        return weft_infer_fail(infer, "operand 2 is %s instead of %s", weft_infer_type_text(infer, update),
                               weft_infer_type_text(infer, &wanted));
    infer->result[0] = *type;
    return true;
}

/* --- slices at a place known at run time ------------------------------------------------------------------------ */

/* Operand i holds a start for each axis. */
static bool is_start(struct weft_infer *infer, unsigned i, int rank)
{
    const struct weft_type *start = weft_infer_type(infer, i);
    if (!weft_infer_family(infer, i, WEFT_FAMILY_INTEGER))
        return false;
    return (start->rank == 1 && weft_dim_is(start->extent[0], rank)) ||
           weft_infer_fail(infer, "operand %u is %s, but must hold %d starts, one for each axis", i,
                           weft_infer_type_text(infer, start), rank);
}

bool weft_infer_dynamic_slice(struct weft_infer *infer)
{
    const struct weft_type *from = weft_infer_type(infer, 0), *to = &infer->result[0];
    if (!is_start(infer, 1, from->rank))
        return false;
    bool fits = from->dtype == to->dtype && from->rank == to->rank;
    for (int i = 0; fits && i < from->rank; i++)
        fits = !weft_infer_below(infer, weft_dim_sub(infer->graph->dims, from->extent[i], to->extent[i]), 0);
    return fits || weft_infer_fail(infer, "operand 0 is %s, but the result is %s: it must be a part of it",
                                   weft_infer_type_text(infer, from), weft_infer_type_text(infer, to));
}

bool weft_infer_dynamic_update(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_same_dtype(infer, 0, 1) || !within(infer, 0, 1, -1) || !is_start(infer, 2, type->rank))
        return false;
    infer->result[0] = *type;
    return true;
}
