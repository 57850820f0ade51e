/* SPDX-License-Identifier: Apache-2.0 */
/* import_cut.c: Slice and Split. Their bounds are expressions where they are constants or follow from extents; where
 * they come out of data, see cut.c. */
#include "onnx/cut.h"

#include <string.h>

/* Some exporters write 10^9 for "to the end". Of an axis whose extent is a symbol that is true if the symbol is not
 * larger, so its range ends there; a larger input is then refused, instead of being cut. */
static void bound_symbol(struct onnx_op *op, weft_dim position, weft_dim extent)
{
    struct weft_dims *dims = op->importer->root->dims;
    uint32_t symbol;
    if (!weft_dim_is_constant(position) || weft_dim_value(position) < 1000000000 ||
        !weft_dim_is_symbol(dims, extent, &symbol))
        return;
    const struct weft_symbol_info *info = weft_symbol_at(dims, symbol);
    if (weft_dim_value(position) < info->high)
        weft_symbol_add(dims, info->name, info->low, weft_dim_value(position), info->hint);
}

/* Where ONNX's `position` lies in an axis: from the back when negative, cut to [0, extent]. */
static weft_dim place_in(struct onnx_op *op, weft_dim position, weft_dim extent)
{
    int64_t low, high;
    bound_symbol(op, position, extent);
    weft_dim_range(op->graph->dims, position, &low, &high);
    if (low < 0 && high >= 0)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                       "it depends on a size whether a bound counts from the front or from the back");
    if (high < 0)
        position = weft_onnx_max(op, weft_dim_add(op->graph->dims, position, extent), weft_dim_of(0));
    return weft_onnx_min(op, position, extent);
}

/* The same for an end that is met backwards, which may be the place before the first element. */
static weft_dim place_or_before(struct onnx_op *op, weft_dim position, weft_dim extent)
{
    int64_t low, high;
    weft_dim_range(op->graph->dims, position, &low, &high);
    if (high >= 0 || low >= 0)
        return place_in(op, position, extent);
    return weft_onnx_max(op, weft_dim_add(op->graph->dims, position, extent), weft_dim_of(-1));
}

/* One axis of a slice in weft's terms. Backwards it is cut out of the reversed axis, where index i stands at
 * extent - 1 - i: from `start` down to the element behind `end`. */
static bool cut_axis(struct onnx_op *op, weft_dim extent, weft_dim *start, weft_dim *end, int64_t *step)
{
    struct weft_dims *dims = op->graph->dims;
    if (*step == 0)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a step is 0");
    if (*step > 0 || op->failed) {
        *start = place_in(op, *start, extent);
        *end = place_in(op, *end, extent);
        if (!weft_dim_same(*end, extent)) /* no start lies behind the extent */
            *end = weft_onnx_max(op, *end, *start);
        return false;
    }
    *step = -*step;
    const weft_dim last = weft_dim_sub(dims, extent, weft_dim_of(1));
    const weft_dim first =
        weft_dim_is(*start, -1) ? last : weft_onnx_min(op, place_in(op, *start, extent), last);
    const bool to_the_front = weft_dim_is_constant(*end) && weft_dim_value(*end) < -INT32_MAX;
    const weft_dim past =
        to_the_front ? weft_dim_of(-1) : weft_onnx_min(op, place_or_before(op, *end, extent), last);
    *start = weft_onnx_min(op, weft_dim_sub(dims, last, first), extent);
    *end = weft_onnx_max(op, weft_dim_sub(dims, last, past), *start);
    return true;
}

static void slice(struct onnx_op *op, unsigned count, const weft_dim *starts, const weft_dim *ends, const int64_t *axes,
                  const int64_t *steps)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    bool cut[WEFT_MAX_RANK] = {false}, turned[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < type.rank; i++) {
        start[i] = weft_dim_of(0);
        end[i] = type.extent[i];
        step[i] = weft_dim_of(1);
    }
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const unsigned axis = weft_onnx_axis(op, axes ? axes[i] : (int64_t)i, type.rank);
        int64_t by = steps ? steps[i] : 1;
        if (cut[axis])
            weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u is cut twice", axis);
        cut[axis] = true;
        start[axis] = starts[i];
        end[axis] = ends[i];
        turned[axis] = cut_axis(op, type.extent[axis], &start[axis], &end[axis], &by);
        step[axis] = weft_dim_of(by < INT32_MAX ? by : INT32_MAX); /* beyond any extent one is like another */
    }
    weft_dim list[WEFT_MAX_RANK];
    unsigned turns = 0;
    for (unsigned i = 0; i < type.rank; i++)
        if (turned[i])
            list[turns++] = weft_dim_of(i);
    const struct weft_attr flipped = weft_attr_of_dims(WEFT_ATTR_axes, turns, list);
    const weft_val from = turns ? weft_onnx_make(op, WEFT_OP_flip, 1, &x, 1, &flipped, NULL) : x;
    op->output[0] = weft_onnx_slice(op, from, start, end, step);
}

static void import_slice_attributes(struct onnx_op *op)
{
    unsigned count, ends_count, axes_count;
    const int64_t *starts = weft_onnx_ints(op, "starts", &count), *ends = weft_onnx_ints(op, "ends", &ends_count),
                  *axes = weft_onnx_ints(op, "axes", &axes_count);
    if (!starts || !ends || count != ends_count || (axes && axes_count != count) || count > WEFT_MAX_RANK) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attributes starts, ends and axes do not fit each other");
        return;
    }
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
    const int64_t limit = INT64_MAX / 4; /* what a dim can hold, and more than any extent */
    for (unsigned i = 0; i < count; i++) {
        start[i] = weft_dim_of(starts[i] > limit ? limit : starts[i] < -limit ? -limit : starts[i]);
        end[i] = weft_dim_of(ends[i] > limit ? limit : ends[i] < -limit ? -limit : ends[i]);
    }
    slice(op, count, start, end, axes, NULL);
}

/* Some bound is known at run time only: each axis is gathered where the slice has its elements. */
static void slice_by_data(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const struct weft_type list = weft_onnx_type(op, weft_onnx_input(op, 1));
    const bool sized = list.rank == 1 && weft_dim_is_constant(list.extent[0]);
    const unsigned count = sized ? (unsigned)weft_dim_value(list.extent[0]) : 0;
    unsigned named = count;
    bool cut[WEFT_MAX_RANK] = {false};
    const int64_t *axes = weft_onnx_has(op, 3) ? weft_onnx_known_ints(op, 3, "axes", &named) : NULL;
    if (count == 0 || count > type.rank || named != count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "starts, ends, axes and steps do not fit each other");
    weft_val x = weft_onnx_input(op, 0);
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const unsigned axis = weft_onnx_axis(op, axes ? axes[i] : (int64_t)i, type.rank);
        const weft_val step = weft_onnx_has(op, 4) ? weft_onnx_number_at(op, 4, i) : WEFT_NO_VALUE;
        if (cut[axis])
            weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u is cut twice", axis);
        cut[axis] = true;
        const weft_val end = weft_onnx_number_at(op, 2, i), begin = weft_onnx_number_at(op, 1, i);
        x = weft_onnx_take(op, x, weft_onnx_positions(op, type.extent[axis], begin, end, step), axis);
    }
    op->output[0] = x;
}

static bool is_open(struct onnx_op *op, unsigned input)
{
    unsigned count;
    return weft_onnx_has(op, input) && !weft_onnx_elements(op, op->input[input], &count);
}

static void import_slice(struct onnx_op *op)
{
    if (weft_onnx_can_cut(op) && (is_open(op, 1) || is_open(op, 2) || is_open(op, 4))) {
        slice_by_data(op);
        return;
    }
    unsigned count, other[3];
    const weft_dim *starts = weft_onnx_known(op, 1, "starts", &count);
    const weft_dim *ends = weft_onnx_known(op, 2, "ends", &other[0]);
    other[1] = other[2] = count;
    const int64_t *axes = weft_onnx_has(op, 3) ? weft_onnx_known_ints(op, 3, "axes", &other[1]) : NULL;
    const int64_t *steps = weft_onnx_has(op, 4) ? weft_onnx_known_ints(op, 4, "steps", &other[2]) : NULL;
    if (other[0] != count || other[1] != count || other[2] != count || count > WEFT_MAX_RANK)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "starts, ends, axes and steps do not fit each other");
    if (!op->failed)
        slice(op, count, starts, ends, axes, steps);
}

/* Cuts an axis into the outputs, `length` each, or equally where it is NULL: then the last one may be shorter. */
static void cut_outputs(struct onnx_op *op, unsigned axis, const weft_dim *length)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct weft_dims *dims = op->graph->dims;
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++) {
        start[i] = weft_dim_of(0);
        end[i] = type.extent[i];
    }
    const weft_dim equal = weft_dim_ceil_div(dims, type.extent[axis], weft_dim_of(op->outputs));
    for (unsigned i = 0; i < op->outputs && !op->failed; i++) {
        end[axis] = weft_dim_add(dims, start[axis], length ? length[i] : equal);
        if (!length)
            end[axis] = weft_onnx_min(op, end[axis], type.extent[axis]);
        op->output[i] = weft_onnx_slice(op, x, start, end, NULL);
        start[axis] = end[axis];
    }
}

/* Lengths are known at run time only. What they leave of the axis is in no output, as what they ask for beyond it. */
static void split_by_data(struct onnx_op *op, weft_dim extent, unsigned axis)
{
    const struct weft_type scalar = {.dtype = WEFT_I64}, list = weft_onnx_type(op, weft_onnx_input(op, 1));
    const weft_val none = weft_onnx_splat(op, &scalar, 0);
    weft_val start = none;
    if (!op->failed && (list.rank != 1 || !weft_dim_is(list.extent[0], op->outputs)))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input split does not have %u elements", op->outputs);
    for (unsigned i = 0; i < op->outputs && !op->failed; i++) {
        const weft_val length = weft_onnx_binary(op, WEFT_OP_max, weft_onnx_number_at(op, 1, i), none);
        const weft_val end = weft_onnx_binary(op, WEFT_OP_add, start, length);
        const weft_val part = weft_onnx_positions(op, extent, start, end, WEFT_NO_VALUE);
        op->output[i] = weft_onnx_take(op, weft_onnx_input(op, 0), part, axis);
        start = end;
    }
}

/* The lengths that the node gives, as many as there are outputs and none below 0; NULL where it gives none. */
static const weft_dim *read_lengths(struct onnx_op *op)
{
    const int64_t *given = NULL;
    weft_dim *length = NULL;
    unsigned count = 0;
    if (op->importer->opset < 13)
        given = weft_onnx_ints(op, "split", &count);
    else if (weft_onnx_has(op, 1))
        length = weft_onnx_known(op, 1, "split", &count);
    if (given)
        length = weft_new(op->importer->reader.arena, weft_dim, count + 1);
    if (length && count != op->outputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u lengths are given for %u outputs", count, op->outputs);
    for (unsigned i = 0; length && i < count && !op->failed; i++) {
        int64_t low, high;
        if (given)
            length[i] = weft_dim_of(given[i] < 0 ? -1 : given[i] > WEFT_DIM_LIMIT ? WEFT_DIM_LIMIT : given[i]);
        weft_dim_range(op->graph->dims, length[i], &low, &high);
        if (low < 0)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "length %s of part %u is impossible",
                           weft_onnx_dim_text(op, length[i]), i);
    }
    return op->failed ? NULL : length;
}

static void check_sum(struct onnx_op *op, const weft_dim *length, weft_dim extent, unsigned axis)
{
    weft_dim total = weft_dim_of(0);
    for (unsigned i = 0; i < op->outputs; i++)
        total = weft_dim_add(op->graph->dims, total, length[i]);
    const bool numbers = weft_dim_is_constant(extent) && weft_dim_is_constant(total);
    if (!weft_dim_same(total, extent))
        weft_onnx_fail(op, numbers ? WEFT_ERR_INVALID : WEFT_ERR_UNSUPPORTED,
                       "the lengths add up to %s, which is not known to be the extent of axis %u, %s",
                       weft_onnx_dim_text(op, total), axis, weft_onnx_dim_text(op, extent));
}

static void import_split(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", 0), type.rank);
    if (!op->failed && op->importer->opset >= 13 && weft_onnx_can_cut(op) && is_open(op, 1)) {
        split_by_data(op, type.extent[axis], axis);
        return;
    }
    const weft_dim *length = read_lengths(op);
    if (op->importer->opset >= 18 && !length && weft_onnx_int(op, "num_outputs", op->outputs) != op->outputs)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute num_outputs is not the number of outputs");
    weft_dim whole;
    if (!length && op->importer->opset < 18 && !op->failed &&
        !weft_dim_divides(op->graph->dims, type.extent[axis], weft_dim_of(op->outputs), &whole))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u does not split into %u equal parts", axis, op->outputs);
    if (length)
        check_sum(op, length, type.extent[axis], axis);
    if (!op->failed)
        cut_outputs(op, axis, length);
}

const struct onnx_row weft_onnx_cut[] = {
    {"Slice", 1, 1, 1, 0, import_slice_attributes},
    {"Slice", 10, 3, 5, 0, import_slice},
    {"Split", 2, 1, 1, 0, import_split},
    {"Split", 13, 1, 2, 0, import_split},
    {0},
};
