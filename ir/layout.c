/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: allocation domains: what is a legal one, and the form in which equal ones look equal.
 *
 * A layout lists storage axes from outermost to innermost. Each is a digit of a logical index, so that blocking is
 * part of the same idea as permuting: NCHW16c is {0 1/16 2 3 1%16}. The digits of an axis together are the whole
 * index: sorted by div, each takes up where its predecessor ends. Where an extent is no multiple of a split, the
 * last block is padding.
 *
 * layout_access.c computes places, layout_view.c answers which views need no copy, layout_text.c reads and writes.
 *
 * Canonical form. Digits that only cut what lies together are merged (not where padding would change), explicit
 * strides are sorted from outermost to innermost where they are numbers, with broadcast axes (stride 0) outermost;
 * axes of extent 1, whose place in the order means nothing, stand behind their logical predecessor; strides that are
 * those of a packed array are not written down. Where memory overlaps, strides say nothing about the order in which it
 * is walked, so the stated one stays. Not done: the order of symbolic strides stays as it was stated, too. */
#include "ir/layout_digits.h"

#include <string.h>

#define AXIS(i) {.axis = (i), .div = 1}
#define ROWS(rank, ...) [rank] = {.axes = (rank), .dense = true, .axis = {__VA_ARGS__}}
const struct weft_layout weft_layout_rows[WEFT_MAX_RANK + 1] = {
    [0] = {.dense = true},
    ROWS(1, AXIS(0)),
    ROWS(2, AXIS(0), AXIS(1)),
    ROWS(3, AXIS(0), AXIS(1), AXIS(2)),
    ROWS(4, AXIS(0), AXIS(1), AXIS(2), AXIS(3)),
    ROWS(5, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4)),
    ROWS(6, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5)),
    ROWS(7, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5), AXIS(6)),
    ROWS(8, AXIS(0), AXIS(1), AXIS(2), AXIS(3), AXIS(4), AXIS(5), AXIS(6), AXIS(7)),
};
#undef ROWS
#undef AXIS
_Static_assert(sizeof weft_layout_rows / sizeof *weft_layout_rows == 9, "a row for each rank");

struct weft_layout weft_layout_row_major(int rank)
{
    weft_assert(rank >= 0 && rank <= WEFT_MAX_RANK);
    return weft_layout_rows[rank];
}

struct weft_layout weft_layout_order(int rank, const int *order)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    for (int i = 0; i < rank; i++) {
        weft_assert(order[i] >= 0 && order[i] < rank);
        layout.axis[i].axis = (uint8_t)order[i];
    }
    return layout;
}

bool weft_layout_is_row_major(const struct weft_layout *layout)
{
    if (layout->kind != WEFT_STORED || !layout->dense || !weft_dim_is(layout->offset, 0))
        return false;
    for (int i = 0; i < layout->axes; i++)
        if (layout->axis[i].axis != i || layout->axis[i].div != 1 || layout->axis[i].mod != 0)
            return false;
    return true;
}

int weft_layout_digits(const struct weft_layout *layout, int axis, int *ret_storage_axis)
{
    int count = 0;
    for (int i = 0; i < layout->axes; i++) {
        if (layout->axis[i].axis != axis)
            continue;
        int at = count++;
        for (; at > 0 && layout->axis[ret_storage_axis[at - 1]].div > layout->axis[i].div; at--)
            ret_storage_axis[at] = ret_storage_axis[at - 1];
        ret_storage_axis[at] = i;
    }
    return count;
}

/* --- legality ----------------------------------------------------------------------------------------------------- */

static const char *check_axis(const struct weft_layout *layout, int axis)
{
    int digit[WEFT_MAX_STORAGE];
    const int count = weft_layout_digits(layout, axis, digit);
    if (count == 0)
        return "the layout leaves out an axis of the type";
    if (layout->axis[digit[0]].div != 1)
        return "the innermost digit of an axis must not be divided";
    for (int k = 0; k < count; k++) {
        const struct weft_axis *low = &layout->axis[digit[k]];
        if (k == count - 1)
            return low->mod == 0 ? NULL : "the outermost digit of an axis must have no modulus";
        const struct weft_axis *high = &layout->axis[digit[k + 1]];
        if (low->mod < 2 || high->div % low->div != 0 || high->div / low->div != low->mod)
            return "the digits of an axis do not cover its index exactly once";
    }
    return NULL;
}

static bool is_negative(weft_dim d)
{
    return weft_dim_is_constant(d) && weft_dim_value(d) < 0;
}

/* Do the strides of axes that have a place in memory exceed, from the innermost outwards, what is inside of them? With
 * `sorted`: in some order. True where symbols leave it open. */
static bool strides_nest(const struct weft_layout *layout, const struct weft_type *type, bool sorted)
{
    int64_t stride[WEFT_MAX_STORAGE], length[WEFT_MAX_STORAGE];
    int count = 0;
    for (int i = 0; i < layout->axes; i++) { /* outermost first */
        const struct weft_axis *axis = &layout->axis[i];
        const weft_dim extent = type->extent[axis->axis];
        if (!weft_dim_is_constant(layout->stride[i]) || !weft_dim_is_constant(extent))
            return true;
        const int64_t step = weft_dim_value(layout->stride[i]), whole = weft_dim_value(extent);
        const int64_t digits = axis->mod ? axis->mod : whole / axis->div + (whole % axis->div != 0);
        if (step == 0 || digits <= 1)
            continue;
        int at = count++;
        for (; sorted && at > 0 && stride[at - 1] < step; at--) {
            stride[at] = stride[at - 1];
            length[at] = length[at - 1];
        }
        stride[at] = step;
        length[at] = digits;
    }
    for (int i = 0; i + 1 < count; i++)
        if (stride[i] / length[i + 1] < stride[i + 1])
            return false;
    return true;
}

const char *weft_layout_check(const struct weft_layout *layout, const struct weft_type *type)
{
    if (layout->kind != WEFT_STORED)
        return NULL;
    if (layout->axes > WEFT_MAX_STORAGE)
        return "a layout has at most 16 storage axes";
    uint32_t whole = 0; /* axes that are not split */
    for (int i = 0; i < layout->axes; i++) {
        if (layout->axis[i].axis >= type->rank)
            return "the layout names an axis that the type does not have";
        if (layout->axis[i].div < 1 || layout->axis[i].mod < 0)
            return "an axis is split by a number below 1";
        if (!layout->dense && is_negative(layout->stride[i]))
            return "a stride is negative";
        if (layout->axis[i].div == 1 && layout->axis[i].mod == 0)
            whole |= 1u << layout->axis[i].axis;
    }
    const bool splits = layout->axes != type->rank || whole != (1u << type->rank) - 1;
    for (int axis = 0; axis < type->rank && splits; axis++) {
        const char *message = check_axis(layout, axis);
        if (message)
            return message;
    }
    if (is_negative(layout->offset))
        return "the offset is negative";
    if (!layout->dense && !strides_nest(layout, type, /* sorted= */ false) &&
        strides_nest(layout, type, /* sorted= */ true))
        return "the strides do not fall from the outermost axis to the innermost";
    return layout->align & (layout->align - 1) ? "the alignment is no power of two" : NULL;
}

bool weft_layout_overlaps(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type)
{
    int64_t stride[WEFT_MAX_STORAGE], length[WEFT_MAX_STORAGE];
    int count = 0;
    if (layout->kind != WEFT_STORED || layout->dense)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (weft_dim_is(type->extent[i], 0))
            return false;
    for (int i = 0; i < layout->axes; i++) { /* sorted by insertion, the smallest stride first */
        const struct weft_axis *axis = &layout->axis[i];
        int64_t low, high;
        weft_dim_range(dims, type->extent[axis->axis], &low, &high);
        low = low / axis->div + (low % axis->div != 0);
        if (axis->mod && low > axis->mod)
            low = axis->mod;
        if (high <= axis->div || !weft_dim_is_constant(layout->stride[i]))
            continue;
        const int64_t step = weft_dim_value(layout->stride[i]);
        if (step == 0)
            return true;
        int at = low > 1 ? count++ : -1;
        for (; at > 0 && stride[at - 1] > step; at--) {
            stride[at] = stride[at - 1];
            length[at] = length[at - 1];
        }
        if (at >= 0) {
            stride[at] = step;
            length[at] = low;
        }
    }
    int64_t reach = 0; /* of the smaller strides together */
    for (int i = 0; i < count; i++) {
        int64_t more;
        if (stride[i] <= reach)
            return true;
        if (__builtin_mul_overflow(length[i] - 1, stride[i], &more) || __builtin_add_overflow(reach, more, &reach))
            reach = INT64_MAX;
    }
    return false;
}

/* --- canonical form ----------------------------------------------------------------------------------------------- */

static void remove_axis(struct weft_layout *layout, int at)
{
    layout->axes--;
    memmove(&layout->axis[at], &layout->axis[at + 1], sizeof *layout->axis * (size_t)(layout->axes - at));
    memmove(&layout->stride[at], &layout->stride[at + 1], sizeof *layout->stride * (size_t)(layout->axes - at));
}

static void insert_axis(struct weft_layout *layout, int at, struct weft_axis axis)
{
    memmove(&layout->axis[at + 1], &layout->axis[at], sizeof *layout->axis * (size_t)(layout->axes - at));
    memmove(&layout->stride[at + 1], &layout->stride[at], sizeof *layout->stride * (size_t)(layout->axes - at));
    layout->axis[at] = axis;
    layout->axes++;
}

/* Strides are explicit here. True if two digits of the axis became one. */
static bool merge_digits(struct weft_dims *dims, struct weft_layout *layout, const struct weft_type *type, int axis)
{
    int digit[WEFT_MAX_STORAGE];
    const int count = weft_layout_digits(layout, axis, digit);
    for (int k = 0; k + 1 < count; k++) {
        const int inner = digit[k], outer = digit[k + 1];
        struct weft_axis *low = &layout->axis[inner];
        const struct weft_axis *high = &layout->axis[outer];
        weft_dim blocks;
        if (high->mod == 0 && !weft_dim_divides(dims, type->extent[axis], weft_dim_of(high->div), &blocks))
            continue; /* the last block is padded */
        const weft_dim next = weft_dim_mul(dims, layout->stride[inner], weft_dim_of(low->mod));
        const bool single = high->mod == 0 && weft_dim_is(blocks, 1);
        if (!single && !weft_dim_same(layout->stride[outer], next))
            continue;
        low->mod = high->mod ? low->mod * high->mod : 0;
        remove_axis(layout, outer);
        return true;
    }
    return false;
}

/* Broadcast axes first, then numbers from large to small; a symbolic stride stays between its neighbours. */
static void sort_strides(struct weft_layout *layout)
{
    for (int end = layout->axes - 1; end > 0; end--) {
        for (int i = 0; i < end; i++) {
            const weft_dim a = layout->stride[i], b = layout->stride[i + 1];
            if (!weft_dim_is_constant(a) || !weft_dim_is_constant(b) || weft_dim_is(a, 0))
                continue;
            if (!weft_dim_is(b, 0) && weft_dim_value(b) <= weft_dim_value(a))
                continue;
            const struct weft_axis axis = layout->axis[i];
            layout->axis[i] = layout->axis[i + 1];
            layout->axis[i + 1] = axis;
            layout->stride[i] = b;
            layout->stride[i + 1] = a;
        }
    }
}

static void move_single_axes(struct weft_layout *layout, const struct weft_type *type)
{
    for (int axis = 0; axis < type->rank; axis++) {
        if (!weft_dim_is(type->extent[axis], 1))
            continue;
        int digit[WEFT_MAX_STORAGE];
        if (weft_layout_digits(layout, axis, digit) == 1)
            remove_axis(layout, digit[0]);
    }
    uint32_t present = 0;
    for (int i = 0; i < layout->axes; i++)
        present |= 1u << layout->axis[i].axis;
    for (int axis = 0; axis < type->rank; axis++) {
        int at = 0;
        if (present >> axis & 1)
            continue;
        while (axis > 0 && layout->axis[at].axis != axis - 1)
            at++;
        insert_axis(layout, axis > 0 ? at + 1 : 0, (struct weft_axis){.axis = (uint8_t)axis, .div = 1});
    }
}

/* Of an order: then there is nothing to move. */
static bool has_single_axes_in_place(const struct weft_layout *layout, const struct weft_type *type)
{
    bool in_place = true;
    uint32_t present = 0;
    for (int i = 0; i < layout->axes && in_place; i++) {
        const int axis = layout->axis[i].axis;
        present |= 1u << axis;
        if (weft_dim_is(type->extent[axis], 1))
            in_place = axis == 0 ? i == 0 : i > 0 && layout->axis[i - 1].axis == axis - 1;
    }
    return in_place && present == (1u << type->rank) - 1;
}

/* Packed, and no axis in pieces: all there is to it is an order. */
static bool is_order(const struct weft_layout *layout, const struct weft_type *type)
{
    return layout->dense && layout->axes == type->rank;
}

void weft_layout_canonical(struct weft_dims *dims, struct weft_layout *layout, const struct weft_type *type)
{
    if (layout->kind != WEFT_STORED) {
        *layout = (struct weft_layout){.kind = layout->kind, .strength = layout->strength, .dense = true};
        return;
    }
    if (is_order(layout, type)) { /* strides, which may be long expressions, would only be dropped again */
        if (!has_single_axes_in_place(layout, type))
            move_single_axes(layout, type);
        memset(layout->stride, 0, sizeof layout->stride);
        memset(&layout->axis[layout->axes], 0, sizeof *layout->axis * (WEFT_MAX_STORAGE - layout->axes));
        return;
    }
    const bool was_dense = layout->dense;
    weft_dim stride[WEFT_MAX_STORAGE], extent[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, layout, type, stride);
    memcpy(layout->stride, stride, sizeof *stride * layout->axes);
    for (int axis = 0; axis < type->rank; axis++)
        while (merge_digits(dims, layout, type, axis))
            ;
    if (!was_dense && strides_nest(layout, type, /* sorted= */ true))
        sort_strides(layout);
    move_single_axes(layout, type);
    for (int i = layout->axes - 1; i >= 0; i--) {
        extent[i] = weft_layout_axis_extent(dims, layout, i, type);
        if (weft_dim_is(extent[i], 1)) /* any stride would do; this one cannot keep the others from being packed */
            layout->stride[i] = i + 1 == layout->axes ? weft_dim_of(1)
                                                      : weft_dim_mul(dims, layout->stride[i + 1], extent[i + 1]);
    }
    weft_layout_packed(dims, layout->axes, extent, stride);
    layout->dense = true;
    for (int i = 0; i < layout->axes; i++)
        layout->dense = layout->dense && weft_dim_same(stride[i], layout->stride[i]);
    for (int i = layout->dense ? 0 : layout->axes; i < WEFT_MAX_STORAGE; i++)
        layout->stride[i] = weft_dim_of(0);
    for (int i = layout->axes; i < WEFT_MAX_STORAGE; i++)
        layout->axis[i] = (struct weft_axis){0};
}

bool weft_layout_same(const struct weft_layout *a, const struct weft_layout *b)
{
    if (a->kind != b->kind || a->axes != b->axes || a->dense != b->dense || !weft_dim_same(a->offset, b->offset))
        return false;
    for (int i = 0; i < a->axes; i++) {
        if (a->axis[i].axis != b->axis[i].axis || a->axis[i].div != b->axis[i].div || a->axis[i].mod != b->axis[i].mod)
            return false;
        if (!a->dense && !weft_dim_same(a->stride[i], b->stride[i]))
            return false;
    }
    return true;
}
