/* SPDX-License-Identifier: Apache-2.0 */
/* array.c: a value that is stored in some layout as an array with numbers for extents and strides: what kernels get
 * whose values may lie in blocks. Makes no expressions, so that any thread may ask. */
#include "ir/tensor.h"

#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Indices along a storage axis: those of an outermost digit as far as the extent goes, filled up; of others all. */
static int64_t digits_of(const struct weft_axis *axis, int64_t extent)
{
    return axis->mod ? axis->mod : ceil_div(extent, axis->div);
}

/* Has the logical axis one storage axis, whose stride is its own? */
static bool is_whole(const struct weft_layout *layout, int axis, int *ret_place)
{
    int count = 0;
    for (int k = 0; k < layout->axes; k++)
        if (layout->axis[k].axis == axis)
            count++, *ret_place = k;
    return count == 1;
}

void weft_array_of(const struct weft_dims *dims, const struct weft_type *type, const struct weft_layout *layout,
                   const int64_t *symbols, struct weft_kernel_array *ret)
{
    int64_t stride = 1, last = 0;
    bool empty = false;
    *ret = (struct weft_kernel_array){.dtype = type->dtype, .rank = type->rank, .storage_axes = layout->axes};
    for (int i = 0; i < type->rank; i++) {
        const int64_t extent = weft_dim_evaluate(dims, type->extent[i], symbols);
        ret->extent[i] = extent > 0 ? extent : 0; /* hints need not be sizes that a graph can have */
        empty |= extent <= 0;
    }
    for (int k = layout->axes - 1; k >= 0; k--) {
        const struct weft_axis *const axis = &layout->axis[k];
        const int64_t digits = digits_of(axis, ret->extent[axis->axis]);
        ret->storage[k] = (struct weft_storage_axis){
            .axis = axis->axis, .div = axis->div, .mod = axis->mod,
            .stride = layout->dense ? stride : weft_dim_evaluate(dims, layout->stride[k], symbols)};
        last += (digits - 1) * ret->storage[k].stride;
        stride *= digits > 0 ? digits : 1;
    }
    for (int i = 0, place = 0; i < type->rank; i++) {
        if (is_whole(layout, i, &place))
            ret->stride[i] = ret->storage[place].stride;
        else
            ret->split = 1;
    }
    ret->bytes = empty ? 0 : weft_dtype_bytes(type->dtype, last + 1);
}
