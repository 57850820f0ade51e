/* SPDX-License-Identifier: Apache-2.0 */
/* import_data.c: ops that find out how much they have to say. Each becomes a node that defines a symbol, `k1`, `k2`, …,
 * whose bound follows from the extents of its inputs. */
#include "onnx/import.h"

#include <stdio.h>

static weft_val result_of(struct onnx_op *op, weft_val first, unsigned i)
{
    return op->failed || !first.id ? WEFT_NO_VALUE : weft_result(op->graph, weft_def(op->graph, first), i);
}

static weft_dim product(struct onnx_op *op, const struct weft_type *type)
{
    return weft_type_elements(op->graph->dims, type);
}

weft_val weft_onnx_make_sized(struct onnx_op *op, int opcode, unsigned operands, const weft_val *operand,
                              weft_dim bound, unsigned attrs, struct weft_attr *attr)
{
    weft_dim known;
    char name[16];
    if (op->graph != op->graph->root)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "its size comes out of data, which is not possible in a subgraph");
    if (op->failed)
        return WEFT_NO_VALUE;
    do
        snprintf(name, sizeof name, "k%u", ++op->importer->last_size);
    while (weft_symbol_find(op->graph->dims, name, &known));
    const weft_dim extent = weft_symbol_add_data(op->graph->dims, name, bound);
    attr[attrs] = weft_attr_of_dims(WEFT_ATTR_extent, 1, &extent);
    return weft_onnx_make(op, opcode, operands, operand, attrs + 1, attr, NULL);
}

static void import_nonzero(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct weft_attr attr[1];
    op->output[0] = weft_onnx_make_sized(op, WEFT_OP_nonzero, 1, &x, product(op, &type), 0, attr);
}

/* The axis as an attribute, if there is one; the rows that it has. */
static unsigned read_axis(struct onnx_op *op, const struct weft_type *type, struct weft_attr *attr, weft_dim *ret_rows)
{
    const struct onnx_attribute *given = weft_onnx_attribute(op, "axis", ONNX_INT);
    *ret_rows = product(op, type);
    if (!given)
        return 0;
    const unsigned axis = weft_onnx_axis(op, given->integer, type->rank);
    *ret_rows = op->failed ? weft_dim_of(0) : type->extent[axis];
    attr[0] = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return 1;
}

static void import_compress(struct onnx_op *op)
{
    const weft_val operand[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_type type = weft_onnx_type(op, operand[0]), condition = weft_onnx_type(op, operand[1]);
    struct weft_attr attr[2];
    weft_dim rows;
    const unsigned attrs = read_axis(op, &type, attr, &rows);
    if (!op->failed && condition.rank == 1)
        rows = weft_onnx_min(op, rows, condition.extent[0]);
    op->output[0] = weft_onnx_make_sized(op, WEFT_OP_compress, 2, operand, rows, attrs, attr);
}

static void import_unique(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct weft_attr attr[3];
    weft_dim rows;
    unsigned attrs = read_axis(op, &type, attr, &rows);
    attr[attrs++] = weft_attr_of_int(WEFT_ATTR_sorted, weft_onnx_int(op, "sorted", 1) != 0);
    op->output[0] = weft_onnx_make_sized(op, WEFT_OP_unique, 1, &x, rows, attrs, attr);
    for (unsigned i = 1; i < op->outputs; i++)
        op->output[i] = result_of(op, op->output[0], i);
}

/* An optional input of one element, as a scalar. */
static weft_val scalar_or(struct onnx_op *op, unsigned input, int dtype, double otherwise)
{
    const struct weft_type type = {.dtype = (uint8_t)dtype};
    if (!weft_onnx_has(op, input))
        return weft_onnx_splat(op, &type, otherwise);
    return weft_onnx_cast(op, weft_onnx_reshape(op, weft_onnx_input(op, input), 0, NULL), dtype);
}

static void import_nms(struct onnx_op *op)
{
    const weft_val boxes = weft_onnx_input(op, 0), scores = weft_onnx_input(op, 1);
    const struct weft_type type = weft_onnx_type(op, scores);
    struct weft_attr attr[2] = {weft_attr_of_word(
        WEFT_ATTR_form, weft_onnx_int(op, "center_point_box", 0) ? "centre" : "corners")};
    weft_dim most, bound = product(op, &type);
    if (weft_onnx_has(op, 2) && weft_onnx_single(op, op->input[2], &most) && type.rank == 3) {
        const weft_dim each = weft_onnx_min(op, weft_onnx_max(op, most, weft_dim_of(0)), type.extent[2]);
        bound = weft_dim_mul(op->graph->dims, weft_dim_mul(op->graph->dims, type.extent[0], type.extent[1]), each);
    }
    const weft_val operand[] = {boxes, scores, scalar_or(op, 2, WEFT_I64, 0), scalar_or(op, 3, type.dtype, 0),
                                scalar_or(op, 4, type.dtype, -__builtin_inf())};
    op->output[0] = weft_onnx_make_sized(op, WEFT_OP_nms, 5, operand, bound, 1, attr);
}

const struct onnx_row weft_onnx_data[] = {
    {"Compress", 9, 2, 2, 0, import_compress},
    {"NonMaxSuppression", 10, 2, 5, 0, import_nms},
    {"NonZero", 9, 1, 1, 0, import_nonzero},
    {"Unique", 11, 1, 1, 0, import_unique},
    {0},
};
