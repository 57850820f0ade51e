/* SPDX-License-Identifier: Apache-2.0 */
/* import_order.c: ops along one axis: arguments of extremes, running sums, the largest elements. */
#include "onnx/cut.h"

static weft_val result_of(struct onnx_op *op, weft_val first, unsigned i)
{
    return op->failed || !first.id ? WEFT_NO_VALUE : weft_result(op->graph, weft_def(op->graph, first), i);
}

static void import_arg(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", 0), weft_onnx_type(op, x).rank);
    const bool last = weft_onnx_int(op, "select_last_index", 0) != 0;
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_axis, axis),
                                     weft_attr_of_int(WEFT_ATTR_keepdims, weft_onnx_int(op, "keepdims", 1) != 0),
                                     weft_attr_of_word(WEFT_ATTR_ties, last ? "last" : "first")};
    op->output[0] = weft_onnx_make(op, op->row->opcode, 1, &x, 3, attr, NULL);
}

static void import_scan(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned along = weft_onnx_axis(op, weft_onnx_known_int(op, 1, "axis"), weft_onnx_type(op, x).rank);
    const struct weft_attr attr[] = {
        weft_attr_of_int(WEFT_ATTR_axis, along),
        weft_attr_of_int(WEFT_ATTR_exclusive, weft_onnx_int(op, "exclusive", 0) != 0),
        weft_attr_of_int(WEFT_ATTR_reverse, weft_onnx_int(op, "reverse", 0) != 0)};
    op->output[0] = weft_onnx_make(op, op->row->opcode, 1, &x, 3, attr, NULL);
}

static void top_k(struct onnx_op *op, weft_dim k)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), weft_onnx_type(op, x).rank);
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_axis, axis),
                                     {.key = WEFT_ATTR_k, .kind = WEFT_ATTR_INT, .integer = k},
                                     weft_attr_of_int(WEFT_ATTR_largest, weft_onnx_int(op, "largest", 1) != 0),
                                     weft_attr_of_int(WEFT_ATTR_sorted, weft_onnx_int(op, "sorted", 1) != 0)};
    op->output[0] = weft_onnx_make(op, WEFT_OP_top_k, 1, &x, 4, attr, NULL);
    if (op->outputs > 1)
        op->output[1] = result_of(op, op->output[0], 1);
}

static void import_top_k_attribute(struct onnx_op *op) { top_k(op, weft_dim_of(weft_onnx_int(op, "k", -1))); }

/* K is known at run time only: everything is sorted, and the first K of it are taken. */
static void top_k_of_data(struct onnx_op *op)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const weft_val none = weft_onnx_splat(op, &scalar, 0);
    const weft_val k = weft_onnx_binary(op, WEFT_OP_max, weft_onnx_number_at(op, 1, 0), none);
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), type.rank);
    if (op->failed)
        return;
    top_k(op, type.extent[axis]);
    const weft_val first = weft_onnx_positions(op, type.extent[axis], none, k, WEFT_NO_VALUE);
    for (unsigned i = 0; i < op->outputs && i < 2; i++)
        op->output[i] = weft_onnx_take(op, op->output[i], first, axis);
}

static void import_top_k(struct onnx_op *op)
{
    unsigned count;
    if (weft_onnx_can_cut(op) && !weft_onnx_elements(op, weft_onnx_input(op, 1), &count))
        top_k_of_data(op);
    else
        top_k(op, weft_onnx_known_single(op, 1, "K"));
}

const struct onnx_row weft_onnx_order[] = {
    {"ArgMax", 1, 1, 1, WEFT_OP_arg_max, import_arg},
    {"ArgMin", 1, 1, 1, WEFT_OP_arg_min, import_arg},
    {"CumProd", 1, 2, 2, WEFT_OP_cumprod, import_scan},
    {"CumSum", 1, 2, 2, WEFT_OP_cumsum, import_scan},
    {"TopK", 1, 1, 1, 0, import_top_k_attribute},
    {"TopK", 10, 2, 2, 0, import_top_k},
    {0},
};
