/* SPDX-License-Identifier: Apache-2.0 */
/* layout_view.c: which results of view ops can use the storage of their operand, and how they are laid out in it.
 *
 * transpose renames axes. broadcast adds axes of stride 0. slice moves the offset and scales strides; on a split
 * axis it needs starts at block borders and steps that fit the blocks. reshape is the interesting one
 * (layout_reshape.c).
 *
 * Results of slices are not canonical: the extents of the result are not known here. Not done: a slice that stays
 * within one block of a split axis without starting at its border. */
#include "ir/layout_digits.h"

bool weft_layout_transpose(const struct weft_layout *operand, const int *perm, struct weft_layout *ret)
{
    if (operand->kind != WEFT_STORED)
        return false;
    struct weft_layout result = *operand;
    for (int i = 0; i < operand->axes; i++) {
        int to = 0;
        while (perm[to] != operand->axis[i].axis)
            to++;
        result.axis[i].axis = (uint8_t)to;
    }
    *ret = result;
    return true;
}

bool weft_layout_untranspose(const struct weft_layout *result, const int *perm, struct weft_layout *ret)
{
    if (result->kind != WEFT_STORED)
        return false;
    struct weft_layout operand = *result;
    for (int i = 0; i < result->axes; i++)
        operand.axis[i].axis = (uint8_t)perm[result->axis[i].axis];
    *ret = operand;
    return true;
}

/* --- results in the making ---------------------------------------------------------------------------------------- */

bool weft_layout_draft_add(struct weft_layout_draft *draft, int axis, int64_t div, int64_t mod, weft_dim stride,
                           int rank)
{
    if (draft->layout.axes == WEFT_MAX_STORAGE)
        return false;
    /* Within a rank, digits come from the innermost to the outermost: each goes before those already there. */
    int at = 0;
    while (at < draft->layout.axes && draft->rank[at] < rank)
        at++;
    for (int i = draft->layout.axes++; i > at; i--) {
        draft->layout.axis[i] = draft->layout.axis[i - 1];
        draft->layout.stride[i] = draft->layout.stride[i - 1];
        draft->rank[i] = draft->rank[i - 1];
    }
    draft->layout.axis[at] = (struct weft_axis){.axis = (uint8_t)axis, .div = div, .mod = mod};
    draft->layout.stride[at] = stride;
    draft->rank[at] = rank;
    return true;
}

void weft_layout_draft_open(struct weft_layout_draft *draft, const struct weft_layout *operand)
{
    *draft = (struct weft_layout_draft){
        .layout = {.strength = operand->strength, .align = operand->align, .offset = operand->offset}};
}

/* --- slice -------------------------------------------------------------------------------------------------------- */

int weft_layout_rank_of(const struct weft_layout *layout, int axis, int64_t div)
{
    int digit[WEFT_MAX_STORAGE];
    const int count = weft_layout_digits(layout, axis, digit);
    for (int k = 0; k < count; k++)
        if (layout->axis[digit[k]].div == div)
            return digit[k];
    return digit[0];
}

/* Digits of index start + step·i, as digits of i. */
static bool slice_split_axis(struct weft_dims *dims, const struct weft_layout *operand, int axis,
                             const struct weft_pieces *pieces, int64_t start, int64_t step,
                             struct weft_layout_draft *draft)
{
    const int last = pieces->count - 1;
    int first = 0; /* digits below it keep the value that they have at `start` */
    while (first < last && step % pieces->div[first + 1] == 0)
        first++;
    if ((start - start % pieces->div[first]) % pieces->div[last] != 0)
        return false; /* some digit would begin in the middle and carry into the next */
    if (first < last && pieces->div[first + 1] % step != 0)
        return false;
    for (int k = 0; k <= last; k++) {
        const int64_t div = pieces->div[k], next = k < last ? pieces->div[k + 1] : 0;
        const int64_t digit = next ? start / div % (next / div) : start / div;
        draft->layout.offset = weft_dim_add(dims, draft->layout.offset,
                                            weft_dim_mul(dims, pieces->stride[k], weft_dim_of(digit)));
        if (k < first)
            continue;
        const int64_t low = k == first ? step : div; /* the smallest step of the index that this digit sees */
        const weft_dim stride = weft_dim_mul(dims, pieces->stride[k], weft_dim_of(low / div));
        const int rank = weft_layout_rank_of(operand, axis, div);
        if (!weft_layout_draft_add(draft, axis, low / step, next ? next / low : 0, stride, rank))
            return false;
    }
    return true;
}

static uint32_t aligned_after(struct weft_dims *dims, uint32_t align, weft_dim shift, int dtype)
{
    while (align > 1) {
        weft_dim quotient;
        const weft_dim bits = weft_dim_mul(dims, shift, weft_dim_of((int64_t)weft_dtype_bits(dtype)));
        if (weft_dim_divides(dims, bits, weft_dim_of((int64_t)align * 8), &quotient))
            break;
        align /= 2;
    }
    return (uint64_t)align * 8 <= weft_dtype_bits(dtype) ? 0 : align;
}

bool weft_layout_slice(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                       const weft_dim *start, const weft_dim *step, struct weft_layout *ret)
{
    if (operand->kind != WEFT_STORED)
        return false;
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, operand, from, stride);
    struct weft_layout_draft draft;
    weft_layout_draft_open(&draft, operand);
    for (int axis = from->rank - 1; axis >= 0; axis--) {
        struct weft_pieces pieces;
        weft_layout_pieces(dims, operand, from, stride, axis, &pieces);
        if (pieces.count > 1) {
            if (!weft_dim_is_constant(start[axis]) || !weft_dim_is_constant(step[axis]))
                return false;
            if (!slice_split_axis(dims, operand, axis, &pieces, weft_dim_value(start[axis]), weft_dim_value(step[axis]),
                                  &draft))
                return false;
            continue;
        }
        int digit[WEFT_MAX_STORAGE];
        weft_layout_digits(operand, axis, digit);
        const weft_dim along = pieces.count ? pieces.stride[0] : stride[digit[0]];
        draft.layout.offset = weft_dim_add(dims, draft.layout.offset, weft_dim_mul(dims, start[axis], along));
        if (!weft_layout_draft_add(&draft, axis, 1, 0, weft_dim_mul(dims, step[axis], along), digit[0]))
            return false;
    }
    const weft_dim shift = weft_dim_sub(dims, draft.layout.offset, operand->offset);
    if (draft.layout.align)
        draft.layout.align = aligned_after(dims, draft.layout.align, shift, from->dtype);
    *ret = draft.layout;
    return true;
}

/* --- broadcast ---------------------------------------------------------------------------------------------------- */

bool weft_layout_broadcast(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                           const struct weft_type *to, const int *result_axis, struct weft_layout *ret)
{
    if (operand->kind != WEFT_STORED)
        return false;
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, operand, from, stride);
    struct weft_layout_draft draft;
    weft_layout_draft_open(&draft, operand);
    bool carried[WEFT_MAX_RANK] = {false};
    for (int axis = from->rank - 1; axis >= 0; axis--) {
        const int result = result_axis[axis];
        if (result < 0 || !weft_dim_same(from->extent[axis], to->extent[result])) {
            if (!weft_dim_is(from->extent[axis], 1))
                return false;
            continue; /* one element for all of the result's axis */
        }
        carried[result] = true;
        int digit[WEFT_MAX_STORAGE];
        const int count = weft_layout_digits(operand, axis, digit);
        for (int k = 0; k < count; k++) {
            const struct weft_axis *part = &operand->axis[digit[k]];
            if (!weft_layout_draft_add(&draft, result, part->div, part->mod, stride[digit[k]], digit[k]))
                return false;
        }
    }
    for (int result = to->rank - 1; result >= 0; result--)
        if (!carried[result] && !weft_layout_draft_add(&draft, result, 1, 0, weft_dim_of(0), -1))
            return false;
    weft_layout_canonical(dims, &draft.layout, to);
    *ret = draft.layout;
    return true;
}
