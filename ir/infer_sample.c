/* SPDX-License-Identifier: Apache-2.0 */
/* infer_sample.c: ops that read between elements: resizing, sampling at given points, overlapping windows. */
#include "ir/infer.h"

#include <math.h>
#include <string.h>

/* `values` numbers a list must have where it is present, all finite, and positive if asked for. */
static bool reals(struct weft_infer *infer, int key, unsigned values, bool positive)
{
    const struct weft_attr *attr = weft_infer_attr(infer, key);
    if (!weft_infer_length(infer, key, values))
        return false;
    for (unsigned i = 0; attr && i < values; i++)
        if (!isfinite(attr->reals[i]) || (positive && !(attr->reals[i] > 0)))
            return weft_infer_fail(infer, "element %u of attribute %s is %g, but must be a %s number", i,
                                   weft_attr_names[key], attr->reals[i], positive ? "positive" : "finite");
    return true;
}

static bool flag(struct weft_infer *infer, int key)
{
    int64_t ignored;
    return weft_infer_int(infer, key, 0, 1, &ignored);
}

bool weft_infer_resize(struct weft_infer *infer)
{
    const struct weft_type *from = weft_infer_type(infer, 0), *to = &infer->result[0];
    if (from->dtype != to->dtype || from->rank != to->rank)
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: they may differ in extents only",
                               weft_infer_type_text(infer, from), weft_infer_type_text(infer, to));
    if (!reals(infer, WEFT_ATTR_scale, from->rank, true) || !reals(infer, WEFT_ATTR_region, 2u * from->rank, false) ||
        !flag(infer, WEFT_ATTR_antialias) || !flag(infer, WEFT_ATTR_exclude))
        return false;
    const bool nearest = strcmp(weft_infer_word(infer, WEFT_ATTR_form), "nearest") == 0;
    if (!nearest && !weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC))
        return false;
    if (strcmp(weft_infer_word(infer, WEFT_ATTR_coordinates), "tf_crop_and_resize") == 0 &&
        !weft_infer_attr(infer, WEFT_ATTR_region))
        return weft_infer_fail(infer, "attribute region is missing, which coordinates=tf_crop_and_resize crops to");
    for (int i = 0; i < from->rank; i++)
        if (weft_dim_is(from->extent[i], 0) && !weft_dim_is(to->extent[i], 0))
            return weft_infer_fail(infer, "operand 0 is %s: axis %d has no elements to make %s from",
                                   weft_infer_type_text(infer, from), i, weft_infer_dim_text(infer, to->extent[i]));
    return true;
}

bool weft_infer_grid_sample(struct weft_infer *infer)
{
    const struct weft_type *type = weft_infer_type(infer, 0), *grid = weft_infer_type(infer, 1);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_family(infer, 1, WEFT_FAMILY_REAL) ||
        !flag(infer, WEFT_ATTR_corners))
        return false;
    if (type->rank < 3 || grid->rank != type->rank || !weft_dim_is(grid->extent[grid->rank - 1], type->rank - 2) ||
        !weft_dim_same(grid->extent[0], type->extent[0]))
        return weft_infer_fail(infer, "operand 1 is %s, but must be [n, points…, %d] for operand 0, which is %s",
                               weft_infer_type_text(infer, grid), type->rank - 2, weft_infer_type_text(infer, type));
    struct weft_type result = *type;
    for (int i = 2; i < type->rank; i++)
        result.extent[i] = grid->extent[i - 1];
    infer->result[0] = result;
    return true;
}

/* Windows along an axis of the image, padding included. */
static bool windows_of(struct weft_infer *infer, int axis, int spatial, weft_dim *windows, int64_t *taps)
{
    struct weft_dims *dims = infer->graph->dims;
    int64_t stride, dilation, kernel, before, after;
    const unsigned i = (unsigned)axis;
    if (!weft_infer_int_at(infer, WEFT_ATTR_kernel, i, 1, &kernel) ||
        !weft_infer_int_at(infer, WEFT_ATTR_stride, i, 1, &stride) ||
        !weft_infer_int_at(infer, WEFT_ATTR_dilation, i, 1, &dilation) ||
        !weft_infer_int_at(infer, WEFT_ATTR_pad, i, 0, &before) ||
        !weft_infer_int_at(infer, WEFT_ATTR_pad, i + (unsigned)spatial, 0, &after))
        return false;
    const weft_dim free = weft_dim_add(dims, infer->result[0].extent[2 + axis],
                                       weft_dim_of(before + after - dilation * (kernel - 1) - 1));
    *windows = weft_dim_mul(dims, *windows, weft_dim_add(dims, weft_dim_div(dims, free, weft_dim_of(stride)),
                                                         weft_dim_of(1)));
    return !__builtin_mul_overflow(*taps, kernel, taps) ||
           weft_infer_fail(infer, "the windows have too many elements");
}

bool weft_infer_col2im(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *type = weft_infer_type(infer, 0), *image = &infer->result[0];
    const int spatial = image->rank - 2;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC))
        return false;
    if (type->rank != 3 || spatial < 1 || type->dtype != image->dtype)
        return weft_infer_fail(infer, "operand 0 is %s and the result %s, but they must be [n, c·taps, windows] and "
                                      "[n, c, image…]", weft_infer_type_text(infer, type),
                               weft_infer_type_text(infer, image));
    const unsigned axes = (unsigned)spatial;
    if (!weft_infer_length(infer, WEFT_ATTR_kernel, axes) || !weft_infer_length(infer, WEFT_ATTR_stride, axes) ||
        !weft_infer_length(infer, WEFT_ATTR_dilation, axes) || !weft_infer_length(infer, WEFT_ATTR_pad, 2 * axes))
        return false;
    weft_dim windows = weft_dim_of(1);
    int64_t taps = 1;
    for (int i = 0; i < spatial; i++)
        if (!windows_of(infer, i, spatial, &windows, &taps))
            return false;
    const weft_dim rows = weft_dim_mul(dims, image->extent[1], weft_dim_of(taps));
    if (!weft_dim_same(type->extent[0], image->extent[0]) || !weft_dim_same(type->extent[1], rows) ||
        !weft_dim_same(type->extent[2], windows))
        return weft_infer_fail(infer, "operand 0 is %s, but the windows of %s make %s by %s elements",
                               weft_infer_type_text(infer, type), weft_infer_type_text(infer, image),
                               weft_infer_dim_text(infer, rows), weft_infer_dim_text(infer, windows));
    return true;
}
