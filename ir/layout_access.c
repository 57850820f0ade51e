/* SPDX-License-Identifier: Apache-2.0 */
/* layout_access.c: where elements lie: strides, places, sizes; and when two layouts are the same function. */
#include "ir/layout_digits.h"

weft_dim weft_layout_axis_extent(struct weft_dims *dims, const struct weft_layout *layout, int storage_axis,
                                 const struct weft_type *type)
{
    const struct weft_axis *axis = &layout->axis[storage_axis];
    if (axis->mod)
        return weft_dim_of(axis->mod);
    const weft_dim extent = type->extent[axis->axis];
    return axis->div == 1 ? extent : weft_dim_ceil_div(dims, extent, weft_dim_of(axis->div));
}

void weft_layout_packed(struct weft_dims *dims, int axes, const weft_dim *extent, weft_dim *ret_stride)
{
    weft_dim stride = weft_dim_of(1);
    for (int i = axes - 1; i >= 0; i--) {
        ret_stride[i] = stride;
        stride = weft_dim_mul(dims, stride, extent[i]);
    }
}

void weft_layout_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                         weft_dim *ret_stride)
{
    weft_assert(layout->kind == WEFT_STORED);
    weft_dim extent[WEFT_MAX_STORAGE];
    for (int i = 0; i < layout->axes; i++) {
        extent[i] = weft_layout_axis_extent(dims, layout, i, type);
        ret_stride[i] = layout->stride[i];
    }
    if (layout->dense)
        weft_layout_packed(dims, layout->axes, extent, ret_stride);
}

void weft_layout_pieces(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                        const weft_dim *stride, int axis, struct weft_pieces *ret)
{
    int digit[WEFT_MAX_STORAGE];
    const int count = weft_layout_digits(layout, axis, digit);
    int64_t low, high;
    weft_dim_range(dims, type->extent[axis], &low, &high);
    ret->count = 0;
    for (int k = 0; k < count; k++) {
        const int64_t div = layout->axis[digit[k]].div;
        const weft_dim step = stride[digit[k]];
        if (div >= high)
            break; /* the index never gets that far */
        if (ret->count > 0) {
            const int last = ret->count - 1;
            const weft_dim ratio = weft_dim_of(div / ret->div[last]);
            if (weft_dim_same(step, weft_dim_mul(dims, ret->stride[last], ratio)))
                continue;
        }
        ret->div[ret->count] = div;
        ret->stride[ret->count++] = step;
    }
}

bool weft_layout_logical_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 weft_dim *ret_stride)
{
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, layout, type, stride);
    for (int axis = 0; axis < type->rank; axis++) {
        struct weft_pieces pieces;
        weft_layout_pieces(dims, layout, type, stride, axis, &pieces);
        if (pieces.count > 1)
            return false;
        int digit[WEFT_MAX_STORAGE];
        weft_layout_digits(layout, axis, digit);
        ret_stride[axis] = stride[digit[0]];
    }
    return true;
}

int64_t weft_layout_place(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                          const int64_t *index)
{
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, layout, type, stride);
    weft_assert(weft_dim_is_constant(layout->offset));
    int64_t place = weft_dim_value(layout->offset);
    for (int i = 0; i < layout->axes; i++) {
        const struct weft_axis *axis = &layout->axis[i];
        weft_assert(weft_dim_is_constant(stride[i]));
        const int64_t digit = index[axis->axis] / axis->div;
        place += (axis->mod ? digit % axis->mod : digit) * weft_dim_value(stride[i]);
    }
    return place;
}

weft_dim weft_layout_elements(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type)
{
    if (layout->kind != WEFT_STORED)
        return weft_dim_of(0);
    weft_dim product = weft_dim_of(1), last = weft_dim_of(0);
    bool empty = false;
    for (int i = 0; i < layout->axes; i++) {
        const weft_dim extent = weft_layout_axis_extent(dims, layout, i, type);
        product = weft_dim_mul(dims, product, extent);
        empty = empty || weft_dim_is(extent, 0);
        if (!layout->dense)
            last = weft_dim_add(
                dims, last, weft_dim_mul(dims, weft_dim_sub(dims, extent, weft_dim_of(1)), layout->stride[i]));
    }
    if (layout->dense || empty)
        return product;
    return weft_dim_max(dims, weft_dim_add(dims, last, weft_dim_of(1)), weft_dim_of(0));
}

bool weft_layout_equal(struct weft_dims *dims, const struct weft_layout *a, const struct weft_layout *b,
                       const struct weft_type *type)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != WEFT_STORED)
        return true;
    if (!weft_dim_same(a->offset, b->offset))
        return false;
    weft_dim a_stride[WEFT_MAX_STORAGE], b_stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, a, type, a_stride);
    weft_layout_strides(dims, b, type, b_stride);
    for (int axis = 0; axis < type->rank; axis++) {
        struct weft_pieces x, y;
        weft_layout_pieces(dims, a, type, a_stride, axis, &x);
        weft_layout_pieces(dims, b, type, b_stride, axis, &y);
        if (x.count != y.count)
            return false;
        for (int k = 0; k < x.count; k++)
            if (x.div[k] != y.div[k] || !weft_dim_same(x.stride[k], y.stride[k]))
                return false;
    }
    return true;
}
