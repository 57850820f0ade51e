/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c: from the layout of one pin of a node to that of another. */
#include "sched/pins.h"

/* Only the order of the storage axes and their splits. */
static struct weft_layout order_of(const struct weft_layout *layout)
{
    struct weft_layout order = {.kind = WEFT_STORED, .axes = layout->axes, .dense = true};
    for (int i = 0; i < layout->axes; i++)
        order.axis[i] = layout->axis[i];
    return order;
}

static void append(struct weft_layout *layout, struct weft_axis digit)
{
    layout->axis[layout->axes++] = digit;
}

static int axis_with(const int *dim, int rank, int wanted)
{
    for (int i = 0; i < rank; i++)
        if (dim[i] == wanted)
            return i;
    return -1;
}

/* The axes of `to` that `from` does not have, in logical order, from `first` on. */
static void append_new(struct weft_layout *layout, const int *from, int from_rank, const int *to, int first, int end)
{
    for (int i = first; i < end; i++)
        if (axis_with(from, from_rank, to[i]) < 0)
            append(layout, (struct weft_axis){.axis = (uint8_t)i, .div = 1});
}

/* Axes of the result that a gathered axis of the data becomes: all of them lie where it lay. They begin at *ret_first;
 * 0 of all other pins. */
static int gathered_axes(const struct weft_graph *g, struct weft_pin from, struct weft_pin to, int *ret_first)
{
    if (weft_opcode_of(g, to.node) != WEFT_OP_gather || from.result || from.index != 0 || !to.result)
        return 0;
    *ret_first = (int)weft_attr_int(g, to.node, WEFT_ATTR_axis);
    return weft_type_of(g, weft_operand(g, to.node, 1))->rank;
}

static bool carry_mapped(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                         struct weft_pin to, enum weft_new_axes place, struct weft_layout *ret)
{
    int from_dim[WEFT_MAX_RANK], to_dim[WEFT_MAX_RANK];
    if (weft_pin_dims(g, from, from_dim) != WEFT_PIN_MAPPED || weft_pin_dims(g, to, to_dim) != WEFT_PIN_MAPPED)
        return false;
    const int from_rank = weft_type_of(g, weft_pin_value(g, from))->rank;
    const int to_rank = weft_type_of(g, weft_pin_value(g, to))->rank;
    struct weft_layout result = {.kind = WEFT_STORED, .dense = true};
    if (layout->axes + to_rank > WEFT_MAX_STORAGE)
        return false;
    int first = 0;
    const int gathered = gathered_axes(g, from, to, &first);
    if (place == WEFT_NEW_OUTERMOST && !gathered)
        append_new(&result, from_dim, from_rank, to_dim, 0, to_rank);
    for (int i = 0; i < layout->axes; i++) {
        const int axis = axis_with(to_dim, to_rank, from_dim[layout->axis[i].axis]);
        struct weft_axis digit = layout->axis[i];
        digit.axis = (uint8_t)axis;
        if (axis >= 0)
            append(&result, digit);
        if (axis >= 0 && gathered && axis == first)
            append_new(&result, from_dim, from_rank, to_dim, first, first + gathered);
    }
    if (place == WEFT_NEW_INNERMOST && !gathered)
        append_new(&result, from_dim, from_rank, to_dim, 0, to_rank);
    *ret = result;
    return true;
}

bool weft_carry_layout(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                       struct weft_pin to, enum weft_new_axes place, struct weft_layout *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_pin_value(g, to));
    if (layout->kind != WEFT_STORED)
        return false;
    if (weft_opcode_of(g, from.node) == WEFT_OP_reshape) {
        const struct weft_layout order = order_of(layout);
        weft_dim stride[WEFT_MAX_RANK]; /* kernels read no views with split axes */
        if (!weft_layout_reshape(g->dims, &order, weft_type_of(g, weft_pin_value(g, from)), type, ret) ||
            !weft_layout_logical_strides(g->dims, ret, type, stride))
            return false;
        *ret = order_of(ret);
    } else if (!carry_mapped(g, from, layout, to, place, ret)) {
        return false;
    }
    if (weft_layout_check(ret, type)) /* the blocks of the one are not those of the other */
        return false;
    weft_layout_canonical(g->dims, ret, type);
    return true;
}
