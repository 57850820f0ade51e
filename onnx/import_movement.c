/* SPDX-License-Identifier: Apache-2.0 */
/* import_movement.c: ops that carry elements from one place to another. */
#include "onnx/import.h"

#include <string.h>

static void import_transpose(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned count, perm[WEFT_MAX_RANK];
    const int64_t *given = weft_onnx_ints(op, "perm", &count);
    if (given && count != rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute perm has %u elements for %u axes", count, rank);
    for (unsigned i = 0; i < rank && !op->failed; i++)
        perm[i] = given ? weft_onnx_axis(op, given[i], rank) : rank - 1 - i;
    op->output[0] = rank ? weft_onnx_transpose(op, x, rank, perm) : x;
}

static void import_concat(struct onnx_op *op)
{
    const unsigned rank = weft_onnx_type(op, weft_onnx_input(op, 0)).rank;
    if (!weft_onnx_attribute(op, "axis", ONNX_INT))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute axis is missing");
    const struct weft_attr axis =
        weft_attr_of_int(WEFT_ATTR_axis, weft_onnx_axis(op, weft_onnx_int(op, "axis", 0), rank));
    op->output[0] = op->inputs == 1 ? weft_onnx_input(op, 0)
                                    : weft_onnx_make(op, WEFT_OP_concat, op->inputs, op->input, 1, &axis, NULL);
}

/* --- gathering, padding, repeating -------------------------------------------------------------------------------- */

static void import_gather(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_type type = weft_onnx_type(op, operands[0]);
    const struct weft_attr axis =
        weft_attr_of_int(WEFT_ATTR_axis, weft_onnx_axis(op, weft_onnx_int(op, "axis", 0), type.rank));
    op->output[0] = weft_onnx_make(op, WEFT_OP_gather, 2, operands, 1, &axis, NULL);
}

/* `pads` holds all befores, then all afters, for the axes in `axes` (all of them where it is NULL). */
static void pad_by(struct onnx_op *op, unsigned count, const weft_dim *pads, const int64_t *axes, weft_val value,
                   const char *form)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim list[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < 2 * WEFT_MAX_RANK; i++)
        list[i] = weft_dim_of(0);
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const unsigned axis = weft_onnx_axis(op, axes ? axes[i] : (int64_t)i, type.rank);
        list[axis] = pads[i];
        list[type.rank + axis] = pads[count + i];
    }
    const struct weft_attr attrs[] = {weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, list),
                                      weft_attr_of_word(WEFT_ATTR_form, form)};
    op->output[0] = weft_onnx_make(op, WEFT_OP_pad, 2, (const weft_val[]){x, value}, 2, attrs, NULL);
}

static void pad(struct onnx_op *op, unsigned count, const weft_dim *pads, const int64_t *axes, weft_val value)
{
    static const char *const forms[] = {"constant", "edge", "reflect", "wrap"};
    const char *form = forms[weft_onnx_word(op, "mode", "constant edge reflect wrap")];
    pad_by(op, count, pads, axes, value, form);
}

static void import_pad_attributes(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0)), scalar = {.dtype = type.dtype};
    unsigned count;
    const int64_t *pads = weft_onnx_ints(op, "pads", &count);
    weft_dim list[2 * WEFT_MAX_RANK];
    if (!pads || count != 2u * type.rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute pads must have two elements for each axis");
    for (unsigned i = 0; i < count && !op->failed; i++) {
        if (pads[i] > INT32_MAX || pads[i] < -INT32_MAX)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "padding %lld is impossible", (long long)pads[i]);
        list[i] = weft_dim_of(pads[i]);
    }
    pad(op, type.rank, list, NULL, weft_onnx_splat(op, &scalar, weft_onnx_real(op, "value", 0)));
}

static void import_pad(struct onnx_op *op)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0)), scalar = {.dtype = type.dtype};
    unsigned count, axes_count = type.rank;
    weft_dim *list = weft_onnx_known(op, 1, "pads", &count);
    const int64_t *axes = weft_onnx_has(op, 3) ? weft_onnx_known_ints(op, 3, "axes", &axes_count) : NULL;
    if (op->failed)
        return;
    if (count != 2 * axes_count || axes_count > WEFT_MAX_RANK) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input pads must have two elements for each axis");
        return;
    }
    const weft_val value =
        weft_onnx_has(op, 2) ? weft_onnx_reshape(op, op->input[2], 0, NULL) : weft_onnx_splat(op, &scalar, 0);
    pad(op, axes_count, list, axes, value);
}

/* What is too long is cut on both sides, what is too short is padded; of an odd difference the larger half is at the
 * end. */
static void import_center_crop_pad(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x), scalar = {.dtype = type.dtype};
    unsigned count, given;
    weft_dim pads[2 * WEFT_MAX_RANK];
    const int64_t *axes = weft_onnx_ints(op, "axes", &given);
    const int64_t *shape = weft_onnx_known_ints(op, 1, "shape", &count);
    if (!shape)
        return;
    if (count != (axes ? given : type.rank))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u extents are given for %u axes", count, axes ? given : type.rank);
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const weft_dim extent = type.extent[weft_onnx_axis(op, axes ? axes[i] : (int64_t)i, type.rank)];
        if (!weft_dim_is_constant(extent) || shape[i] < 0 || shape[i] > INT32_MAX)
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "extent %u must be known before and after", i);
        const int64_t more = op->failed ? 0 : shape[i] - weft_dim_value(extent);
        const int64_t before = more < 0 ? -(-more / 2) : more / 2;
        pads[i] = weft_dim_of(before);
        pads[count + i] = weft_dim_of(more - before);
    }
    if (!op->failed)
        pad_by(op, count, pads, axes, weft_onnx_splat(op, &scalar, 0), "constant");
}

/* The same elements in two axes: those outside of an axis, and it and those inside. */
static weft_val cut_in_two(struct onnx_op *op, weft_val x, unsigned axis)
{
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim two[2] = {weft_dim_of(1), weft_dim_of(1)};
    for (unsigned i = 0; i < type.rank; i++)
        two[i >= axis] = weft_dim_mul(op->graph->dims, two[i >= axis], type.extent[i]);
    return weft_onnx_reshape(op, x, 2, two);
}

/* Repeats one axis: [a b] to [a r b] to [a r*b]. An axis at a time, so that no rank is too large. */
static weft_val repeat(struct onnx_op *op, weft_val x, unsigned axis, weft_dim times)
{
    struct weft_type type = weft_onnx_type(op, x), whole = type;
    whole.extent[axis] = weft_dim_mul(op->graph->dims, times, type.extent[axis]);
    if (type.rank == WEFT_MAX_RANK) { /* no room for one more */
        x = cut_in_two(op, x, axis);
        type = weft_onnx_type(op, x);
        axis = 1;
    }
    struct weft_type wide = {.dtype = type.dtype, .rank = (uint8_t)(type.rank + 1)};
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++) {
        axes[i] = i + (i >= axis);
        wide.extent[axes[i]] = type.extent[i];
    }
    wide.extent[axis] = times;
    return weft_onnx_reshape(op, weft_onnx_broadcast_axes(op, x, &wide, type.rank, axes), whole.rank, whole.extent);
}

static void import_tile(struct onnx_op *op)
{
    weft_val x = weft_onnx_input(op, 0);
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned count;
    const weft_dim *repeats = weft_onnx_known(op, 1, "repeats", &count);
    if (!repeats)
        return;
    if (count != rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u repeats are given for %u axes", count, rank);
    for (unsigned i = rank; i-- > 0 && !op->failed;) /* the small ones inside first: less is moved */
        if (!weft_dim_is(repeats[i], 1))
            x = repeat(op, x, i, repeats[i]);
    op->output[0] = x;
}

/* --- depth and space ---------------------------------------------------------------------------------------------- */

/* [n c h w] to channels and blocks of b*b and back, through six axes. */
static weft_val through_six(struct onnx_op *op, weft_val x, const weft_dim *six, const unsigned *perm,
                            const weft_dim *four)
{
    return weft_onnx_reshape(op, weft_onnx_transpose(op, weft_onnx_reshape(op, x, 6, six), 6, perm), 4, four);
}

static void import_depth_to_space(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct weft_dims *dims = op->graph->dims;
    const int64_t size = weft_onnx_int(op, "blocksize", 0);
    const bool column_first = op->importer->opset >= 11 && weft_onnx_word(op, "mode", "DCR CRD") == 1;
    weft_dim depth = weft_dim_of(1);
    if (type.rank != 4 || size < 1 || size > INT16_MAX ||
        !weft_dim_divides(dims, type.extent[1], weft_dim_of(size * size), &depth))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a blocksize of %lld does not fit the input", (long long)size);
    if (op->failed)
        return;
    const weft_dim b = weft_dim_of(size), n = type.extent[0], h = type.extent[2], w = type.extent[3];
    const weft_dim four[] = {n, depth, weft_dim_mul(dims, h, b), weft_dim_mul(dims, w, b)};
    op->output[0] =
        column_first
            ? through_six(op, x, (const weft_dim[]){n, depth, b, b, h, w}, (const unsigned[]){0, 1, 4, 2, 5, 3}, four)
            : through_six(op, x, (const weft_dim[]){n, b, b, depth, h, w}, (const unsigned[]){0, 3, 4, 1, 5, 2}, four);
}

static void import_space_to_depth(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct weft_dims *dims = op->graph->dims;
    const int64_t size = weft_onnx_int(op, "blocksize", 0);
    weft_dim h = weft_dim_of(1), w = weft_dim_of(1);
    if (type.rank != 4 || size < 1 || size > INT16_MAX ||
        !weft_dim_divides(dims, type.extent[2], weft_dim_of(size), &h) ||
        !weft_dim_divides(dims, type.extent[3], weft_dim_of(size), &w))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a blocksize of %lld does not fit the input", (long long)size);
    if (op->failed)
        return;
    const weft_dim b = weft_dim_of(size), n = type.extent[0], c = type.extent[1];
    const weft_dim four[] = {n, weft_dim_mul(dims, c, weft_dim_of(size * size)), h, w};
    op->output[0] =
        through_six(op, x, (const weft_dim[]){n, c, h, b, w, b}, (const unsigned[]){0, 3, 5, 1, 2, 4}, four);
}

const struct onnx_row weft_onnx_movement[] = {
    {"CenterCropPad", 18, 2, 2, 0, import_center_crop_pad},
    {"Concat", 4, 1, -1, 0, import_concat},
    {"DepthToSpace", 1, 1, 1, 0, import_depth_to_space},
    {"Gather", 1, 2, 2, 0, import_gather},
    {"Pad", 2, 1, 1, 0, import_pad_attributes},
    {"Pad", 11, 2, 3, 0, import_pad},
    {"Pad", 18, 2, 4, 0, import_pad},
    {"SpaceToDepth", 1, 1, 1, 0, import_space_to_depth},
    {"Tile", 6, 2, 2, 0, import_tile},
    {"Transpose", 1, 1, 1, 0, import_transpose},
    {0},
};
