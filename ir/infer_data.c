/* SPDX-License-Identifier: Apache-2.0 */
/* infer_data.c: types of ops whose results have as many elements as the data says. The symbols are those of the
 * attribute `extent`; they must be declared as computed, and no other node may define them (validate.c). */
#include "ir/infer.h"

/* Element i of `extent` is a symbol declared as data(…). */
bool weft_infer_defined(struct weft_infer *infer, unsigned i, weft_dim *ret)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_attr *extent = weft_infer_attr(infer, WEFT_ATTR_extent);
    uint32_t symbol;
    if (!extent || i >= extent->count)
        return weft_infer_fail(infer, "attribute extent names %u symbols, but needs %u", extent ? extent->count : 0,
                               i + 1);
    if (!weft_dim_is_symbol(dims, extent->integers[i], &symbol) || !weft_symbol_at(dims, symbol)->data)
        return weft_infer_fail(infer, "extent %s is not a symbol declared as data(…) in the graph's head",
                               weft_infer_dim_text(infer, extent->integers[i]));
    *ret = extent->integers[i];
    return true;
}

/* [rank, K]: a column of indices for each element that is not zero, in row-major order. */
bool weft_infer_nonzero(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    weft_dim found;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_ALL) || !weft_infer_length(infer, WEFT_ATTR_extent, 1) ||
        !weft_infer_defined(infer, 0, &found))
        return false;
    infer->result[0] =
        (struct weft_type){.dtype = WEFT_I64, .rank = 2, .extent = {weft_dim_of(x->rank), found}};
    return true;
}

/* The one symbol, and the axis; -1 where there is none and the operand counts as flat. */
static bool chosen(struct weft_infer *infer, weft_dim *ret_found, int *ret_axis)
{
    *ret_axis = -1;
    return weft_infer_length(infer, WEFT_ATTR_extent, 1) && weft_infer_defined(infer, 0, ret_found) &&
           (!weft_infer_attr(infer, WEFT_ATTR_axis) ||
            weft_infer_axis(infer, weft_infer_type(infer, 0)->rank, ret_axis));
}

static struct weft_type with_extent(const struct weft_type *x, int axis, weft_dim found)
{
    struct weft_type type = *x;
    type.rank = axis < 0 ? 1 : x->rank;
    type.extent[axis < 0 ? 0 : axis] = found;
    return type;
}

bool weft_infer_compress(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0), *condition = weft_infer_type(infer, 1);
    weft_dim found;
    int axis;
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_BOOL) || !chosen(infer, &found, &axis))
        return false;
    if (condition->rank != 1)
        return weft_infer_fail(infer, "operand 1 is %s, but must have one axis",
                               weft_infer_type_text(infer, condition));
    infer->result[0] = with_extent(x, axis, found);
    return true;
}

/* Values, their first places, the value of each place, how often each occurs. */
bool weft_infer_unique(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    weft_dim found;
    int axis;
    int64_t sorted;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_ALL) || !chosen(infer, &found, &axis) ||
        !weft_infer_int(infer, WEFT_ATTR_sorted, 0, 1, &sorted))
        return false;
    const weft_dim rows = axis < 0 ? weft_type_elements(infer->graph->dims, x) : x->extent[axis];
    infer->result[0] = with_extent(x, axis, found);
    for (unsigned i = 1; i < 4; i++)
        infer->result[i] = (struct weft_type){.dtype = WEFT_I64, .rank = 1, .extent = {i == 2 ? rows : found}};
    return true;
}

/* Boxes [n, s, 4], scores [n, c, s], and three scalars. */
bool weft_infer_nms(struct weft_infer *infer)
{
    const struct weft_type *boxes = weft_infer_type(infer, 0), *scores = weft_infer_type(infer, 1);
    weft_dim found;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, 0, 1) ||
        !weft_infer_length(infer, WEFT_ATTR_extent, 1) || !weft_infer_defined(infer, 0, &found))
        return false;
    if (boxes->rank != 3 || scores->rank != 3 || !weft_dim_is(boxes->extent[2], 4) ||
        !weft_dim_same(boxes->extent[0], scores->extent[0]) || !weft_dim_same(boxes->extent[1], scores->extent[2]))
        return weft_infer_fail(infer, "operands 0 and 1 are %s and %s, but must be boxes [n,s,4] and scores [n,c,s]",
                               weft_infer_type_text(infer, boxes), weft_infer_type_text(infer, scores));
    for (unsigned i = 2; i < 5; i++) {
        const struct weft_type wanted = {.dtype = i == 2 ? WEFT_I64 : boxes->dtype};
        if (!weft_type_same(weft_infer_type(infer, i), &wanted))
            return weft_infer_fail(infer, "operand %u is %s, but must be %s", i,
                                   weft_infer_type_text(infer, weft_infer_type(infer, i)),
                                   weft_infer_type_text(infer, &wanted));
    }
    infer->result[0] = (struct weft_type){.dtype = WEFT_I64, .rank = 2, .extent = {found, weft_dim_of(3)}};
    return true;
}
