/* SPDX-License-Identifier: Apache-2.0 */
/* lower_blocks_array.c: how a value in blocks is an array of blocks. */
#include "passes/lower_blocks.h"

/* The storage axis of the digit of an axis that comes after one with this div. */
static int next_digit(const struct weft_layout *layout, int axis, int64_t div)
{
    int best = -1;
    for (int i = 0; i < layout->axes; i++)
        if (layout->axis[i].axis == axis && layout->axis[i].div < div &&
            (best < 0 || layout->axis[i].div > layout->axis[best].div))
            best = i;
    return best;
}

bool weft_blocks_find(struct weft_graph *g, weft_val v, struct weft_blocks *ret)
{
    const struct weft_type *type = weft_type_of(g, v);
    const struct weft_layout layout = weft_layout_of(g, v);
    int place[WEFT_MAX_STORAGE] = {0};
    bool any = false;
    if (layout.kind != WEFT_STORED || !layout.dense || layout.axes <= type->rank || layout.axes > WEFT_MAX_RANK)
        return false;
    *ret = (struct weft_blocks){.type = {.dtype = type->dtype}};
    for (int axis = 0; axis < type->rank; axis++) {
        ret->first[axis] = ret->type.rank;
        for (int at = next_digit(&layout, axis, INT64_MAX); at >= 0;
             at = next_digit(&layout, axis, layout.axis[at].div)) {
            place[at] = ret->type.rank;
            ret->div[ret->type.rank] = layout.axis[at].div;
            ret->type.extent[ret->type.rank++] = weft_layout_axis_extent(g->dims, &layout, at, type);
        }
        any |= ret->type.rank - ret->first[axis] > 1;
        if (ret->type.rank - ret->first[axis] > 1 && !weft_dim_is_constant(type->extent[axis]))
            return false;
    }
    ret->first[type->rank] = ret->type.rank;
    ret->layout = weft_layout_order(layout.axes, place);
    return any && weft_type_check_size(&ret->type); /* filled up it may be too large for any memory */
}

struct weft_type weft_blocks_filled(const struct weft_graph *g, const struct weft_type *type,
                                    const struct weft_blocks *b)
{
    struct weft_type full = *type;
    for (int i = 0; i < type->rank; i++)
        for (int k = b->first[i]; weft_blocks_split(b, i) && k < b->first[i + 1]; k++)
            full.extent[i] = k == b->first[i] ? b->type.extent[k]
                                              : weft_dim_mul(g->dims, full.extent[i], b->type.extent[k]);
    return full;
}
