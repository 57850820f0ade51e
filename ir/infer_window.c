/* SPDX-License-Identifier: Apache-2.0 */
/* infer_window.c: the relatives of convolution and pooling: transposed and deformed ones, regions, unpooling,
 * gradients of pooling. */
#include "ir/infer.h"

/* Does the operand have so many axes? */
static bool has_rank(struct weft_infer *infer, unsigned operand, int rank)
{
    const struct weft_type *type = weft_infer_type(infer, operand);
    return type->rank == rank || weft_infer_fail(infer, "operand %u is %s, but must have %d axes", operand,
                                                 weft_infer_type_text(infer, type), rank);
}

static bool has_extent(struct weft_infer *infer, unsigned operand, int axis, weft_dim wanted)
{
    const struct weft_type *type = weft_infer_type(infer, operand);
    return weft_dim_same(type->extent[axis], wanted) ||
           weft_infer_fail(infer, "operand %u is %s, but axis %d must have extent %s", operand,
                           weft_infer_type_text(infer, type), axis, weft_infer_dim_text(infer, wanted));
}

/* An axis of n elements becomes stride·(n - 1) + dilation·(taps - 1) + 1, less the padding, and what out_pad adds. */
static bool spread_axis(struct weft_infer *infer, unsigned i, unsigned spatial, weft_dim *ret)
{
    struct weft_dims *dims = infer->graph->dims;
    const weft_dim one = weft_dim_of(1);
    const struct weft_type *x = weft_infer_type(infer, 0), *w = weft_infer_type(infer, 1);
    int64_t stride, dilation;
    if (!weft_infer_int_at(infer, WEFT_ATTR_stride, i, 1, &stride) ||
        !weft_infer_int_at(infer, WEFT_ATTR_dilation, i, 1, &dilation))
        return false;
    const weft_dim steps = weft_dim_mul(dims, weft_dim_of(stride), weft_dim_sub(dims, x->extent[2 + i], one));
    const weft_dim taps = weft_dim_mul(dims, weft_dim_of(dilation), weft_dim_sub(dims, w->extent[2 + i], one));
    weft_dim extent = weft_dim_add(dims, weft_dim_add(dims, steps, taps), one);
    extent = weft_dim_sub(dims, extent, weft_infer_at(infer, WEFT_ATTR_pad, i));
    extent = weft_dim_sub(dims, extent, weft_infer_at(infer, WEFT_ATTR_pad, spatial + i));
    *ret = weft_dim_add(dims, extent, weft_infer_at(infer, WEFT_ATTR_out_pad, i));
    return !weft_infer_below(infer, *ret, 0) ||
           weft_infer_fail(infer, "operand 0 is %s, but the padding leaves %s elements of spatial axis %u",
                           weft_infer_type_text(infer, x), weft_infer_dim_text(infer, *ret), i);
}

bool weft_infer_conv_transpose(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *x = weft_infer_type(infer, 0), *w = weft_infer_type(infer, 1);
    struct weft_type result = {.rank = x->rank};
    int64_t groups;
    if (!weft_infer_product(infer, &result.dtype) || !weft_infer_int(infer, WEFT_ATTR_groups, 1, INT32_MAX, &groups))
        return false;
    if (x->rank < 3 || x->rank > 5)
        return weft_infer_fail(infer, "operand 0 is %s, but needs 1 to 3 spatial axes", weft_infer_type_text(infer, x));
    const unsigned spatial = x->rank - 2u;
    weft_dim per_group;
    if (!has_rank(infer, 1, x->rank) || !weft_infer_window_lists(infer, spatial) ||
        !weft_infer_length(infer, WEFT_ATTR_out_pad, spatial) || !has_extent(infer, 1, 0, x->extent[1]))
        return false;
    if (!weft_dim_divides(dims, x->extent[1], weft_dim_of(groups), &per_group))
        return weft_infer_fail(infer, "operand 0 is %s: its channels do not fit groups=%lld",
                               weft_infer_type_text(infer, x), (long long)groups);
    result.extent[0] = x->extent[0];
    result.extent[1] = weft_dim_mul(dims, w->extent[1], weft_dim_of(groups));
    for (unsigned i = 0; i < spatial; i++)
        if (!spread_axis(infer, i, spatial, &result.extent[2 + i]))
            return false;
    infer->result[0] = result;
    return true;
}

bool weft_infer_conv_grad_weight(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *x = weft_infer_type(infer, 0), *dy = weft_infer_type(infer, 1);
    int64_t groups;
    weft_dim per_group, unused;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, 0, 1) ||
        !weft_infer_int(infer, WEFT_ATTR_groups, 1, INT32_MAX, &groups))
        return false;
    if (x->rank < 3 || x->rank > 5)
        return weft_infer_fail(infer, "operand 0 is %s, but needs 1 to 3 spatial axes", weft_infer_type_text(infer, x));
    const unsigned spatial = x->rank - 2u;
    if (!has_rank(infer, 1, x->rank) || !weft_infer_window_lists(infer, spatial) ||
        !weft_infer_length(infer, WEFT_ATTR_kernel, spatial) || !has_extent(infer, 1, 0, x->extent[0]))
        return false;
    if (!weft_dim_divides(dims, x->extent[1], weft_dim_of(groups), &per_group) ||
        !weft_dim_divides(dims, dy->extent[1], weft_dim_of(groups), &unused))
        return weft_infer_fail(infer, "operand 0 is %s and operand 1 is %s: the channels do not fit groups=%lld",
                               weft_infer_type_text(infer, x), weft_infer_type_text(infer, dy), (long long)groups);
    struct weft_type result = {.dtype = x->dtype, .rank = x->rank, .extent = {dy->extent[1], per_group}};
    for (unsigned i = 0; i < spatial; i++) {
        int64_t taps;
        weft_dim windows;
        if (!weft_infer_int_at(infer, WEFT_ATTR_kernel, i, 1, &taps) ||
            !weft_infer_windows(infer, i, spatial, weft_dim_of(taps), false, &windows) ||
            !has_extent(infer, 1, 2 + (int)i, windows))
            return false;
        result.extent[2 + i] = weft_dim_of(taps);
    }
    infer->result[0] = result;
    return true;
}

/* Offsets are [n, 2·g·taps, out…], masks [n, g·taps, out…]: a map for each group g of channels and tap. */
static bool deformation(struct weft_infer *infer, const struct weft_type *result, weft_dim maps)
{
    struct weft_dims *dims = infer->graph->dims;
    for (unsigned operand = 2; operand < infer->operands; operand++) {
        const weft_dim channels = operand == 2 ? weft_dim_mul(dims, weft_dim_of(2), maps) : maps;
        if (!weft_infer_same_dtype(infer, 0, operand) || !has_rank(infer, operand, 4) ||
            !has_extent(infer, operand, 0, result->extent[0]) || !has_extent(infer, operand, 1, channels) ||
            !has_extent(infer, operand, 2, result->extent[2]) || !has_extent(infer, operand, 3, result->extent[3]))
            return false;
    }
    return true;
}

bool weft_infer_deform_conv(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *x = weft_infer_type(infer, 0), *w = weft_infer_type(infer, 1);
    int64_t groups, offset_groups;
    weft_dim unused;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, 0, 1) ||
        !weft_infer_int(infer, WEFT_ATTR_groups, 1, INT32_MAX, &groups) ||
        !weft_infer_int(infer, WEFT_ATTR_offset_groups, 1, INT32_MAX, &offset_groups) || !has_rank(infer, 0, 4) ||
        !has_rank(infer, 1, 4) || !weft_infer_window_lists(infer, 2))
        return false;
    if (!weft_dim_same(weft_dim_mul(dims, w->extent[1], weft_dim_of(groups)), x->extent[1]) ||
        !weft_dim_divides(dims, w->extent[0], weft_dim_of(groups), &unused) ||
        !weft_dim_divides(dims, x->extent[1], weft_dim_of(offset_groups), &unused))
        return weft_infer_fail(
            infer, "operand 0 is %s and operand 1 is %s: the channels do not fit groups=%lld and offset_groups=%lld",
            weft_infer_type_text(infer, x), weft_infer_type_text(infer, w), (long long)groups,
            (long long)offset_groups);
    struct weft_type result = {.dtype = x->dtype, .rank = 4, .extent = {x->extent[0], w->extent[0]}};
    for (unsigned i = 0; i < 2; i++)
        if (!weft_infer_windows(infer, i, 2, w->extent[2 + i], false, &result.extent[2 + i]))
            return false;
    const weft_dim taps = weft_dim_mul(dims, w->extent[2], w->extent[3]);
    if (!deformation(infer, &result, weft_dim_mul(dims, weft_dim_of(offset_groups), taps)))
        return false;
    infer->result[0] = result;
    return true;
}

bool weft_infer_regions(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0), *boxes = weft_infer_type(infer, 1);
    int64_t other;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, 0, 1) ||
        !weft_infer_family(infer, 2, WEFT_FAMILY_INTEGER) || !has_rank(infer, 0, 4) || !has_rank(infer, 1, 2) ||
        !has_rank(infer, 2, 1) || !has_extent(infer, 1, 1, weft_dim_of(4)) ||
        !has_extent(infer, 2, 0, boxes->extent[0]) || !weft_infer_length(infer, WEFT_ATTR_size, 2))
        return false;
    if (infer->op == WEFT_OP_roi_align && (!weft_infer_int(infer, WEFT_ATTR_samples, 0, INT16_MAX, &other) ||
                                           !weft_infer_int(infer, WEFT_ATTR_half_pixel, 0, 1, &other)))
        return false;
    struct weft_type result = {.dtype = x->dtype, .rank = 4, .extent = {boxes->extent[0], x->extent[1]}};
    for (unsigned i = 0; i < 2; i++) {
        int64_t size;
        if (!weft_infer_int_at(infer, WEFT_ATTR_size, i, 1, &size))
            return false;
        result.extent[2 + i] = weft_dim_of(size);
    }
    infer->result[0] = result;
    return true;
}

/* Integer places for each element of a numeric operand 0, whose dtype the result has. */
static bool elements_with_places(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_family(infer, 1, WEFT_FAMILY_INTEGER) ||
        !has_rank(infer, 1, x->rank))
        return false;
    for (int axis = 0; axis < x->rank; axis++)
        if (!has_extent(infer, 1, axis, x->extent[axis]))
            return false;
    if (infer->result[0].dtype != x->dtype)
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s", weft_infer_type_text(infer, x),
                               weft_infer_type_text(infer, &infer->result[0]));
    return true;
}

bool weft_infer_unpool(struct weft_infer *infer) { return elements_with_places(infer); }

bool weft_infer_max_pool_grad(struct weft_infer *infer)
{
    const struct weft_type *dy = weft_infer_type(infer, 0), *dx = &infer->result[0];
    if (dy->rank < 3 || dy->rank > 5)
        return weft_infer_fail(infer, "operand 0 is %s, but needs 1 to 3 spatial axes",
                               weft_infer_type_text(infer, dy));
    if (!elements_with_places(infer))
        return false;
    if (dx->rank != dy->rank || !weft_dim_same(dx->extent[0], dy->extent[0]) ||
        !weft_dim_same(dx->extent[1], dy->extent[1]))
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: the first two axes are those of both",
                               weft_infer_type_text(infer, dy), weft_infer_type_text(infer, dx));
    return true;
}
