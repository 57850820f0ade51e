/* SPDX-License-Identifier: Apache-2.0 */
/* infer_contraction.c: matrix products, convolutions and windows.
 *
 * A window of k taps at distance d covers d·(k - 1) + 1 elements, so an axis of n elements with padding b and a holds
 * floor((n + b + a - d·(k - 1) - 1) / stride) + 1 windows. */
#include "ir/infer.h"

/* Operands of a product share an element type, unless both are integers and the accumulator is stated. */
bool weft_infer_product(struct weft_infer *infer, uint8_t *ret)
{
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_NUMERIC) || !weft_infer_family(infer, 1, WEFT_FAMILY_NUMERIC))
        return false;
    const int a = weft_infer_type(infer, 0)->dtype, b = weft_infer_type(infer, 1)->dtype;
    const bool integers = weft_dtype_is_int(a) && weft_dtype_is_int(b) && weft_infer_attr(infer, WEFT_ATTR_acc);
    if (!integers && !weft_infer_same_dtype(infer, 0, 1))
        return false;
    return weft_infer_accumulator(infer, a, ret) && weft_infer_accumulator(infer, b, ret);
}

bool weft_infer_matmul(struct weft_infer *infer)
{
    const struct weft_type *a = weft_infer_type(infer, 0), *b = weft_infer_type(infer, 1);
    int64_t trans_a, trans_b;
    struct weft_type result = *a;
    if (!weft_infer_product(infer, &result.dtype) || !weft_infer_int(infer, WEFT_ATTR_trans_a, 0, 1, &trans_a) ||
        !weft_infer_int(infer, WEFT_ATTR_trans_b, 0, 1, &trans_b))
        return false;
    const int rank = a->rank;
    bool fits = rank >= 2 && b->rank == rank;
    for (int axis = 0; fits && axis < rank - 2; axis++)
        fits = weft_dim_same(a->extent[axis], b->extent[axis]);
    if (!fits)
        return weft_infer_fail(
            infer, "operand 0 is %s and operand 1 is %s: both need the same rank, at least 2, and equal leading axes",
            weft_infer_type_text(infer, a), weft_infer_type_text(infer, b));
    const int row_a = rank - 2 + (int)trans_a, column_a = rank - 1 - (int)trans_a;
    const int row_b = rank - 2 + (int)trans_b, column_b = rank - 1 - (int)trans_b;
    if (!weft_dim_same(a->extent[column_a], b->extent[row_b]))
        return weft_infer_fail(infer,
                               "operand 0 is %s and operand 1 is %s: axes %d and %d are summed over and must be equal",
                               weft_infer_type_text(infer, a), weft_infer_type_text(infer, b), column_a, row_b);
    result.extent[rank - 2] = a->extent[row_a];
    result.extent[rank - 1] = b->extent[column_b];
    infer->result[0] = result;
    return true;
}

/* --- windows ----------------------------------------------------------------------------------------------- */

static weft_dim smaller(struct weft_infer *infer, weft_dim a, weft_dim b)
{
    struct weft_dims *dims = infer->graph->dims;
    int64_t lowest, highest;
    weft_dim_range(dims, weft_dim_sub(dims, b, a), &lowest, &highest);
    return lowest >= 0 ? a : highest <= 0 ? b : weft_dim_min(dims, a, b);
}

/* Number of windows along spatial axis i of operand 0. Rounding up adds one for what does not fill a window, so that
 * one alone may be larger than all that there is, by less than a stride. It may also add a window that starts in the
 * padding behind the data; such a window is dropped. */
bool weft_infer_windows(struct weft_infer *infer, unsigned i, unsigned spatial, weft_dim taps, bool round_up,
                        weft_dim *ret)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *type = weft_infer_type(infer, 0);
    const weft_dim before = weft_infer_at(infer, WEFT_ATTR_pad, i),
                   after = weft_infer_at(infer, WEFT_ATTR_pad, spatial + i);
    int64_t stride, dilation;
    if (!weft_infer_int_at(infer, WEFT_ATTR_stride, i, 1, &stride) ||
        !weft_infer_int_at(infer, WEFT_ATTR_dilation, i, 1, &dilation))
        return false;
    if (weft_infer_below(infer, before, 0) || weft_infer_below(infer, after, 0))
        return weft_infer_fail(infer, "padding %s and %s of spatial axis %u must not be negative",
                               weft_infer_dim_text(infer, before), weft_infer_dim_text(infer, after), i);
    const weft_dim reach = weft_dim_mul(dims, weft_dim_of(dilation), weft_dim_sub(dims, taps, weft_dim_of(1)));
    const weft_dim front = weft_dim_add(dims, type->extent[2 + i], before);
    const weft_dim room =
        weft_dim_sub(dims, weft_dim_sub(dims, weft_dim_add(dims, front, after), reach), weft_dim_of(1));
    const weft_dim least = round_up ? weft_dim_add(dims, room, weft_dim_of(stride - 1)) : room;
    if (weft_infer_below(infer, least, 0) || weft_infer_below(infer, taps, 1))
        return weft_infer_fail(
            infer, "operand 0 is %s, but no window of %s taps fits into spatial axis %u with padding %s and %s",
            weft_infer_type_text(infer, type), weft_infer_dim_text(infer, taps), i, weft_infer_dim_text(infer, before),
            weft_infer_dim_text(infer, after));
    const weft_dim step = weft_dim_of(stride), one = weft_dim_of(1);
    if (round_up)
        *ret = smaller(infer, weft_dim_add(dims, weft_dim_ceil_div(dims, room, step), one),
                       weft_dim_ceil_div(dims, front, step));
    else
        *ret = weft_dim_add(dims, weft_dim_div(dims, room, step), one);
    return true;
}

bool weft_infer_window_lists(struct weft_infer *infer, unsigned spatial)
{
    return weft_infer_length(infer, WEFT_ATTR_stride, spatial) &&
           weft_infer_length(infer, WEFT_ATTR_pad, 2 * spatial) &&
           weft_infer_length(infer, WEFT_ATTR_dilation, spatial);
}

bool weft_infer_conv(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *x = weft_infer_type(infer, 0), *w = weft_infer_type(infer, 1);
    struct weft_type result = {.rank = x->rank};
    int64_t groups;
    if (!weft_infer_product(infer, &result.dtype) || !weft_infer_int(infer, WEFT_ATTR_groups, 1, INT32_MAX, &groups))
        return false;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank)
        return weft_infer_fail(infer,
                               "operand 0 is %s and operand 1 is %s: both need the same rank, with 1 to 3 spatial axes",
                               weft_infer_type_text(infer, x), weft_infer_type_text(infer, w));
    const unsigned spatial = x->rank - 2u;
    weft_dim per_group;
    if (!weft_infer_window_lists(infer, spatial))
        return false;
    if (!weft_dim_same(weft_dim_mul(dims, w->extent[1], weft_dim_of(groups)), x->extent[1]) ||
        !weft_dim_divides(dims, w->extent[0], weft_dim_of(groups), &per_group))
        return weft_infer_fail(infer, "operand 0 is %s and operand 1 is %s: the channels do not fit groups=%lld",
                               weft_infer_type_text(infer, x), weft_infer_type_text(infer, w), (long long)groups);
    result.extent[0] = x->extent[0];
    result.extent[1] = w->extent[0];
    for (unsigned i = 0; i < spatial; i++)
        if (!weft_infer_windows(infer, i, spatial, w->extent[2 + i], false, &result.extent[2 + i]))
            return false;
    infer->result[0] = result;
    return true;
}

bool weft_infer_pool(struct weft_infer *infer)
{
    const int op = infer->op;
    const bool mean = op == WEFT_OP_mean_pool, index = op == WEFT_OP_max_pool_index, norm = op == WEFT_OP_norm_pool;
    const struct weft_type *x = weft_infer_type(infer, 0);
    int64_t round_up, other;
    if (!weft_infer_family(infer, 0, mean || norm ? WEFT_FAMILY_REAL : WEFT_FAMILY_NUMERIC) ||
        !weft_infer_int(infer, WEFT_ATTR_ceil, 0, 1, &round_up) ||
        (mean && !weft_infer_int(infer, WEFT_ATTR_count_pad, 0, 1, &other)) ||
        (index && !weft_infer_int(infer, WEFT_ATTR_column_major, 0, 1, &other)) ||
        (index && !weft_infer_int(infer, WEFT_ATTR_in_plane, 0, 1, &other)) ||
        (norm && !weft_infer_int(infer, WEFT_ATTR_order, 1, INT32_MAX, &other)))
        return false;
    if (x->rank < 3 || x->rank > 5)
        return weft_infer_fail(infer, "operand 0 is %s, but needs 1 to 3 spatial axes", weft_infer_type_text(infer, x));
    const unsigned spatial = x->rank - 2u;
    if (!weft_infer_length(infer, WEFT_ATTR_kernel, spatial) || !weft_infer_window_lists(infer, spatial))
        return false;
    struct weft_type result = *x;
    for (unsigned i = 0; i < spatial; i++) {
        int64_t taps;
        if (!weft_infer_int_at(infer, WEFT_ATTR_kernel, i, 1, &taps) ||
            !weft_infer_windows(infer, i, spatial, weft_dim_of(taps), round_up, &result.extent[2 + i]))
            return false;
    }
    infer->result[0] = result;
    if (index) {
        infer->result[1] = result;
        infer->result[1].dtype = WEFT_I64;
    }
    return true;
}
