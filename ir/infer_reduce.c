/* SPDX-License-Identifier: Apache-2.0 */
/* infer_reduce.c: reductions over axes, and ops along one axis: arguments of extremes, scans, orders. */
#include "ir/infer.h"

/* --- reductions -------------------------------------------------------------------------------------------- */

/* The operand's type without the axes in `reduced`, or with extents of 1 in their places. */
static void reduced_type(const struct weft_type *type, const bool *reduced, bool keepdims, struct weft_type *ret)
{
    *ret = (struct weft_type){.dtype = type->dtype};
    for (int axis = 0; axis < type->rank; axis++)
        if (!reduced[axis])
            ret->extent[ret->rank++] = type->extent[axis];
        else if (keepdims)
            ret->extent[ret->rank++] = weft_dim_of(1);
}

static bool reduced_over_axes(struct weft_infer *infer, unsigned families)
{
    int64_t keepdims, correction;
    if (!weft_infer_family(infer, 0, families) ||
        !weft_infer_int(infer, WEFT_ATTR_keepdims, 0, 1, &keepdims) ||
        (infer->op == WEFT_OP_variance && !weft_infer_int(infer, WEFT_ATTR_correction, 0, INT32_MAX, &correction)))
        return false;
    const struct weft_type *type = weft_infer_type(infer, 0);
    const struct weft_attr *axes = weft_infer_attr(infer, WEFT_ATTR_axes);
    bool reduced[WEFT_MAX_RANK] = {false};
    int64_t previous = -1;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t axis;
        if (!weft_infer_int_at(infer, WEFT_ATTR_axes, i, 0, &axis))
            return false;
        if (axis >= type->rank || axis <= previous)
            return weft_infer_fail(infer, "axes must rise and exist in operand 0, which is %s; element %u is %lld",
                                   weft_infer_type_text(infer, type), i, (long long)axis);
        reduced[axis] = true;
        previous = axis;
    }
    reduced_type(type, reduced, keepdims, &infer->result[0]);
    return infer->result[0].dtype == WEFT_BOOL ||
           weft_infer_accumulator(infer, type->dtype, &infer->result[0].dtype);
}

bool weft_infer_reduce(struct weft_infer *infer) { return reduced_over_axes(infer, WEFT_FAMILY_NUMERIC); }
bool weft_infer_reduce_logic(struct weft_infer *infer) { return reduced_over_axes(infer, WEFT_FAMILY_BOOL); }
bool weft_infer_reduce_real(struct weft_infer *infer) { return reduced_over_axes(infer, WEFT_FAMILY_REAL); }

/* One number for each chunk of an axis; the last chunk may be shorter. */
bool weft_infer_fold_chunks(struct weft_infer *infer)
{
    int64_t chunk;
    int axis;
    struct weft_type *const result = &infer->result[0];
    *result = *weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_axis(infer, result->rank, &axis) ||
        !weft_infer_int(infer, WEFT_ATTR_chunk, 1, INT64_MAX, &chunk))
        return false;
    result->extent[axis] = weft_dim_ceil_div(infer->graph->dims, result->extent[axis], weft_dim_of(chunk));
    return weft_infer_accumulator(infer, result->dtype, &result->dtype);
}

bool weft_infer_arg(struct weft_infer *infer)
{
    int64_t keepdims;
    int axis;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_axis(infer, type->rank, &axis) ||
        !weft_infer_int(infer, WEFT_ATTR_keepdims, 0, 1, &keepdims))
        return false;
    bool reduced[WEFT_MAX_RANK] = {false};
    reduced[axis] = true;
    reduced_type(type, reduced, keepdims, &infer->result[0]);
    infer->result[0].dtype = WEFT_I64;
    return true;
}

/* --- along an axis ----------------------------------------------------------------------------------------- */

bool weft_infer_scan(struct weft_infer *infer)
{
    int64_t flag;
    int axis;
    infer->result[0] = *weft_infer_type(infer, 0);
    return weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) && weft_infer_axis(infer, infer->result[0].rank, &axis) &&
           weft_infer_int(infer, WEFT_ATTR_exclusive, 0, 1, &flag) &&
           weft_infer_int(infer, WEFT_ATTR_reverse, 0, 1, &flag);
}

/* Values and where they were. */
bool weft_infer_sort(struct weft_infer *infer)
{
    int64_t flag;
    int axis;
    infer->result[0] = infer->result[1] = *weft_infer_type(infer, 0);
    infer->result[1].dtype = WEFT_I64;
    return weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) && weft_infer_axis(infer, infer->result[0].rank, &axis) &&
           weft_infer_int(infer, WEFT_ATTR_descending, 0, 1, &flag);
}

bool weft_infer_search_sorted(struct weft_infer *infer)
{
    const struct weft_type *line = weft_infer_type(infer, 0), *x = weft_infer_type(infer, 1);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_same_dtype(infer, 0, 1))
        return false;
    bool fits = line->rank == x->rank && line->rank > 0;
    for (int i = 0; fits && i < line->rank - 1; i++)
        fits = weft_dim_same(line->extent[i], x->extent[i]);
    if (!fits)
        return weft_infer_fail(infer, "operand 1 is %s, but must have the axes of operand 0, %s, up to the last one",
                               weft_infer_type_text(infer, x), weft_infer_type_text(infer, line));
    infer->result[0] = *x;
    infer->result[0].dtype = WEFT_I64;
    return true;
}

bool weft_infer_top_k(struct weft_infer *infer)
{
    int64_t flag;
    int axis;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_axis(infer, type->rank, &axis) ||
        !weft_infer_int(infer, WEFT_ATTR_largest, 0, 1, &flag) || !weft_infer_int(infer, WEFT_ATTR_sorted, 0, 1, &flag))
        return false;
    const weft_dim k = weft_infer_dim(infer, WEFT_ATTR_k), extent = type->extent[axis];
    if (weft_infer_below(infer, k, 0))
        return weft_infer_fail(infer, "attribute k is %s, but must not be negative", weft_infer_dim_text(infer, k));
    if (weft_infer_below(infer, weft_dim_sub(infer->graph->dims, extent, k), 0))
        return weft_infer_fail(infer, "attribute k is %s, but axis %d of operand 0 has %s elements",
                               weft_infer_dim_text(infer, k), axis, weft_infer_dim_text(infer, extent));
    infer->result[0] = *type;
    infer->result[0].extent[axis] = k;
    infer->result[1] = infer->result[0];
    infer->result[1].dtype = WEFT_I64;
    return true;
}
