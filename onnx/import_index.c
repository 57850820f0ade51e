/* SPDX-License-Identifier: Apache-2.0 */
/* import_index.c: ops that choose and replace elements by indices, and masks made of indices. */
#include "onnx/import.h"

#include <string.h>

static struct weft_attr axis_attr(struct onnx_op *op, const char *name, int64_t fallback, unsigned rank)
{
    return weft_attr_of_int(WEFT_ATTR_axis, weft_onnx_axis(op, weft_onnx_int(op, name, fallback), rank));
}

/* --- gathers and scatters --------------------------------------------------------------------------------------- */

static void import_gather_elements(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_attr axis = axis_attr(op, "axis", 0, weft_onnx_type(op, operands[0]).rank);
    op->output[0] = weft_onnx_make(op, WEFT_OP_gather_elements, 2, operands, 1, &axis, NULL);
}

static void import_gather_nd(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_attr batch = weft_attr_of_int(WEFT_ATTR_batch, weft_onnx_int(op, "batch_dims", 0));
    op->output[0] = weft_onnx_make(op, WEFT_OP_gather_nd, 2, operands, 1, &batch, NULL);
}

/* `reduction` came with opset 16, its minima and maxima with 18; older files do not have the attribute. */
static struct weft_attr reduction_attr(struct onnx_op *op)
{
    static const char *const words[] = {"none", "add", "mul", "min", "max"};
    return weft_attr_of_word(WEFT_ATTR_form, words[weft_onnx_word(op, "reduction", "none add mul min max")]);
}

/* A scatter whose attribute 0 is the reduction. Bools are combined as bytes: a sum or a maximum of them is "or", a
 * product or a minimum "and". */
static void scatter(struct onnx_op *op, int opcode, unsigned attrs, struct weft_attr *attr)
{
    weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1), weft_onnx_input(op, 2)};
    attr[0] = reduction_attr(op);
    const bool logic = weft_onnx_type(op, operands[0]).dtype == WEFT_BOOL && strcmp(attr[0].word, "none") != 0;
    if (logic) {
        const bool either = strcmp(attr[0].word, "add") == 0 || strcmp(attr[0].word, "max") == 0;
        attr[0] = weft_attr_of_word(WEFT_ATTR_form, either ? "max" : "min");
        operands[0] = weft_onnx_cast(op, operands[0], WEFT_U8);
        operands[2] = weft_onnx_cast(op, operands[2], WEFT_U8);
    }
    const weft_val result = weft_onnx_make(op, opcode, 3, operands, attrs, attr, NULL);
    op->output[0] = logic ? weft_onnx_cast(op, result, WEFT_BOOL) : result;
}

static void import_scatter_elements(struct onnx_op *op)
{
    struct weft_attr attrs[2];
    attrs[1] = axis_attr(op, "axis", 0, weft_onnx_type(op, weft_onnx_input(op, 0)).rank);
    scatter(op, WEFT_OP_scatter_elements, 2, attrs);
}

static void import_scatter_nd(struct onnx_op *op)
{
    struct weft_attr form;
    scatter(op, WEFT_OP_scatter_nd, 1, &form);
}

/* An index per element of `type` along `axis`. */
static weft_val indices_along(struct onnx_op *op, const struct weft_type *type, unsigned axis)
{
    const struct weft_type line = {.dtype = WEFT_I64, .rank = 1, .extent = {type->extent[axis]}};
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, 0);
    const weft_val index = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &along, &line);
    return weft_onnx_broadcast_axes(op, index, type, 1, &axis);
}

/* A cache of keys or values gets the update of each sequence where that one ends: rows of a scatter along the axis. */
static void import_tensor_scatter(struct onnx_op *op)
{
    const weft_val cache = weft_onnx_input(op, 0), update = weft_onnx_input(op, 1);
    const struct weft_type whole = weft_onnx_type(op, cache), part = weft_onnx_type(op, update);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", -2), whole.rank);
    const bool circular = weft_onnx_word(op, "mode", "linear circular") == 1;
    if (axis == 0 || part.rank != whole.rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u cannot be updated", axis);
    struct weft_type type = part;
    type.dtype = WEFT_I64;
    weft_val index = indices_along(op, &type, axis);
    if (weft_onnx_has(op, 2)) {
        const weft_val start = weft_onnx_cast(op, op->input[2], WEFT_I64);
        const weft_val each = weft_onnx_broadcast_axes(op, start, &type, 1, (const unsigned[]){0});
        index = weft_onnx_binary(op, WEFT_OP_add, index, each);
    }
    if (circular && !op->failed) {
        const struct weft_type scalar = {.dtype = WEFT_I64};
        const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &whole.extent[axis]);
        const weft_val length = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
        index = weft_onnx_binary(op, WEFT_OP_mod, index, weft_onnx_broadcast(op, length, &type));
    }
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, axis);
    op->output[0] =
        weft_onnx_make(op, WEFT_OP_scatter_elements, 3, (const weft_val[]){cache, index, update}, 1, &along, NULL);
}

/* --- masks ------------------------------------------------------------------------------------------------------ */

static void import_one_hot(struct onnx_op *op)
{
    const weft_val given = weft_onnx_input(op, 0), values = weft_onnx_input(op, 2);
    struct weft_element real;
    const bool is_real = weft_onnx_has(op, 1) && weft_dtype_is_float(weft_onnx_type(op, op->input[1]).dtype) &&
                         weft_const_splat(op->graph, weft_onnx_folded(op, op->input[1]), &real) && real.real >= 0 &&
                         real.real < 0x1p40; /* ONNX takes a depth of any type */
    const weft_dim depth = is_real ? weft_dim_of((int64_t)real.real) : weft_onnx_known_single(op, 1, "depth");
    const struct weft_type type = weft_onnx_type(op, given);
    const weft_val index = weft_dtype_is_int(type.dtype) ? given : weft_onnx_cast(op, given, WEFT_I64);
    const struct weft_attr attrs[] = {{.key = WEFT_ATTR_depth, .kind = WEFT_ATTR_INT, .integer = depth},
                                      axis_attr(op, "axis", -1, type.rank + 1u)};
    op->output[0] = weft_onnx_make(op, WEFT_OP_one_hot, 2, (const weft_val[]){index, values}, 2, attrs, NULL);
}

static void import_trilu(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const int64_t k = weft_onnx_has(op, 1) ? weft_onnx_known_int(op, 1, "k") : 0;
    const int64_t limit = INT32_MAX; /* further than any diagonal */
    const struct weft_attr attrs[] = {
        weft_attr_of_int(WEFT_ATTR_diagonal, k > limit ? limit : k < -limit ? -limit : k),
        weft_attr_of_int(WEFT_ATTR_upper, weft_onnx_int(op, "upper", 1) != 0)};
    op->output[0] = weft_onnx_make(op, WEFT_OP_triangle, 1, &x, 2, attrs, NULL);
}

/* Where the column's number is the row's plus k. */
static void import_eye_like(struct onnx_op *op)
{
    struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const int dtype = weft_onnx_attribute(op, "dtype", ONNX_INT)
                          ? weft_onnx_dtype((int32_t)weft_onnx_int(op, "dtype", 0)) : type.dtype;
    const int64_t k = weft_onnx_int(op, "k", 0);
    if (type.rank != 2 || !dtype)
        weft_onnx_fail(op, WEFT_ERR_INVALID, !dtype ? "attribute dtype is no element type" : "the input is no matrix");
    type.dtype = WEFT_I64;
    const weft_val row = indices_along(op, &type, 0), column = indices_along(op, &type, 1);
    const weft_val moved = weft_onnx_binary(op, WEFT_OP_add, row, weft_onnx_splat(op, &type, (double)k));
    op->output[0] = weft_onnx_cast(op, weft_onnx_binary(op, WEFT_OP_eq, moved, column), dtype);
}

static void import_reverse_sequence(struct onnx_op *op)
{
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const unsigned rank = weft_onnx_type(op, operands[0]).rank;
    const struct weft_attr attrs[] = {
        axis_attr(op, "time_axis", 0, rank),
        weft_attr_of_int(WEFT_ATTR_batch_axis, weft_onnx_axis(op, weft_onnx_int(op, "batch_axis", 1), rank))};
    op->output[0] = weft_onnx_make(op, WEFT_OP_reverse_sequence, 2, operands, 2, attrs, NULL);
}

const struct onnx_row weft_onnx_index[] = {
    {"EyeLike", 9, 1, 1, 0, import_eye_like},
    {"GatherElements", 11, 2, 2, 0, import_gather_elements},
    {"GatherND", 11, 2, 2, 0, import_gather_nd},
    {"OneHot", 9, 3, 3, 0, import_one_hot},
    {"ReverseSequence", 10, 2, 2, 0, import_reverse_sequence},
    {"Scatter", 9, 3, 3, 0, import_scatter_elements},
    {"ScatterElements", 11, 3, 3, 0, import_scatter_elements},
    {"ScatterND", 11, 3, 3, 0, import_scatter_nd},
    {"TensorScatter", 24, 2, 3, 0, import_tensor_scatter},
    {"Trilu", 14, 1, 2, 0, import_trilu},
    {0},
};
