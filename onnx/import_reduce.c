/* SPDX-License-Identifier: Apache-2.0 */
/* import_reduce.c: reductions over axes, and softmax. */
#include "onnx/import.h"

/* Axes are an attribute, or an input in the rows that have two; none means all, unless noop_with_empty_axes says that
 * none means none. */
static unsigned axes_of(struct onnx_op *op, unsigned rank, unsigned ret[WEFT_MAX_RANK])
{
    const bool as_input = op->row->max_inputs == 2;
    bool chosen[WEFT_MAX_RANK];
    unsigned count = 0;
    const bool none = as_input && weft_onnx_int(op, "noop_with_empty_axes", 0) != 0;
    const bool all = !weft_onnx_axes(op, as_input, rank, chosen) && !none;
    for (unsigned i = 0; i < rank; i++)
        if (all || chosen[i])
            ret[count++] = i;
    return count;
}

struct reduction {
    unsigned axes, axis[WEFT_MAX_RANK];
    bool keepdims;
    weft_val x;
};

static struct reduction read_reduction(struct onnx_op *op)
{
    struct reduction reduction = {.x = weft_onnx_input(op, 0)};
    reduction.axes = axes_of(op, weft_onnx_type(op, reduction.x).rank, reduction.axis);
    reduction.keepdims = weft_onnx_int(op, "keepdims", 1) != 0;
    return reduction;
}

static weft_val reduce(struct onnx_op *op, const struct reduction *reduction, int opcode, weft_val x)
{
    return reduction->axes ? weft_onnx_reduction(op, opcode, x, reduction->axes, reduction->axis, reduction->keepdims)
                           : x;
}

static void import_reduce(struct onnx_op *op)
{
    const struct reduction reduction = read_reduction(op);
    op->output[0] = reduce(op, &reduction, op->row->opcode, reduction.x);
}

/* The largest of bools is "any", the smallest "all". */
static void import_reduce_extreme(struct onnx_op *op)
{
    const struct reduction reduction = read_reduction(op);
    const bool largest = op->row->opcode == WEFT_OP_reduce_max;
    const bool logic = weft_onnx_type(op, reduction.x).dtype == WEFT_BOOL;
    const int opcode = !logic ? op->row->opcode : largest ? WEFT_OP_any : WEFT_OP_all;
    op->output[0] = reduce(op, &reduction, opcode, reduction.x);
}

/* What a function of floats is computed in: 16 bits hold neither squares nor their sum, so those are computed in f32;
 * roots and logarithms of integers in f64, whose result is truncated to the type. */
static int inner_dtype(int dtype, bool is_real)
{
    if (weft_dtype_is_int(dtype) && is_real)
        return WEFT_F64;
    return dtype == WEFT_F16 || dtype == WEFT_BF16 ? WEFT_F32 : dtype;
}

/* A sum of what `before` makes of x, and then `after`; 0 is nothing. */
static void import_sum(struct onnx_op *op, int before, int after)
{
    const struct reduction reduction = read_reduction(op);
    const int dtype = weft_onnx_type(op, reduction.x).dtype;
    weft_val x = weft_onnx_cast(op, reduction.x, inner_dtype(dtype, after != 0));
    if (before == WEFT_OP_mul)
        x = weft_onnx_binary(op, WEFT_OP_mul, x, x);
    else if (before)
        x = weft_onnx_unary(op, before, x);
    x = reduce(op, &reduction, WEFT_OP_sum, x);
    op->output[0] = weft_onnx_cast(op, after ? weft_onnx_unary(op, after, x) : x, dtype);
}

static void import_reduce_l1(struct onnx_op *op) { import_sum(op, WEFT_OP_abs, 0); }
static void import_reduce_sum_square(struct onnx_op *op) { import_sum(op, WEFT_OP_mul, 0); }
static void import_reduce_l2(struct onnx_op *op) { import_sum(op, WEFT_OP_mul, WEFT_OP_sqrt); }
static void import_reduce_log_sum(struct onnx_op *op) { import_sum(op, 0, WEFT_OP_log); }

static void import_reduce_log_sum_exp(struct onnx_op *op)
{
    const struct reduction reduction = read_reduction(op);
    const int dtype = weft_onnx_type(op, reduction.x).dtype;
    if (weft_dtype_is_int(dtype))
        op->output[0] = weft_onnx_cast(op, reduce(op, &reduction, WEFT_OP_log_sum_exp,
                                                  weft_onnx_cast(op, reduction.x, inner_dtype(dtype, true))), dtype);
    else
        op->output[0] = reduce(op, &reduction, WEFT_OP_log_sum_exp, reduction.x);
}

/* --- softmax ------------------------------------------------------------------------------------------------------ */

static weft_val softmax_along(struct onnx_op *op, weft_val x, unsigned axis)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_onnx_make(op, op->row->opcode, 1, &x, 1, &attr, NULL);
}

static void import_softmax(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned rank = weft_onnx_type(op, x).rank;
    op->output[0] = softmax_along(op, x, weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), rank));
}

/* Before opset 13 the axes from `axis` on were one: [a b | c d] is [a*b c*d]. Where only one of them is longer than 1,
 * that is a softmax along it. */
static void import_softmax_flat(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", 1), type.rank);
    unsigned longer = 0, last = axis;
    weft_dim flat[2] = {weft_dim_of(1), weft_dim_of(1)};
    for (unsigned i = 0; i < type.rank; i++) {
        flat[i >= axis] = weft_dim_mul(op->graph->dims, flat[i >= axis], type.extent[i]);
        if (i >= axis && !weft_dim_is(type.extent[i], 1)) {
            longer++;
            last = i;
        }
    }
    if (longer <= 1)
        op->output[0] = softmax_along(op, x, last);
    else
        op->output[0] =
            weft_onnx_reshape(op, softmax_along(op, weft_onnx_reshape(op, x, 2, flat), 1), type.rank, type.extent);
}

const struct onnx_row weft_onnx_reduce[] = {
    {"Hardmax", 1, 1, 1, WEFT_OP_hardmax, import_softmax_flat},
    {"Hardmax", 13, 1, 1, WEFT_OP_hardmax, import_softmax},
    {"LogSoftmax", 1, 1, 1, WEFT_OP_log_softmax, import_softmax_flat},
    {"LogSoftmax", 13, 1, 1, WEFT_OP_log_softmax, import_softmax},
    {"ReduceL1", 1, 1, 1, 0, import_reduce_l1},
    {"ReduceL1", 18, 1, 2, 0, import_reduce_l1},
    {"ReduceL2", 1, 1, 1, 0, import_reduce_l2},
    {"ReduceL2", 18, 1, 2, 0, import_reduce_l2},
    {"ReduceLogSum", 1, 1, 1, 0, import_reduce_log_sum},
    {"ReduceLogSum", 18, 1, 2, 0, import_reduce_log_sum},
    {"ReduceLogSumExp", 1, 1, 1, 0, import_reduce_log_sum_exp},
    {"ReduceLogSumExp", 18, 1, 2, 0, import_reduce_log_sum_exp},
    {"ReduceMax", 1, 1, 1, WEFT_OP_reduce_max, import_reduce_extreme},
    {"ReduceMax", 18, 1, 2, WEFT_OP_reduce_max, import_reduce_extreme},
    {"ReduceMean", 1, 1, 1, WEFT_OP_mean, import_reduce},
    {"ReduceMean", 18, 1, 2, WEFT_OP_mean, import_reduce},
    {"ReduceMin", 1, 1, 1, WEFT_OP_reduce_min, import_reduce_extreme},
    {"ReduceMin", 18, 1, 2, WEFT_OP_reduce_min, import_reduce_extreme},
    {"ReduceProd", 1, 1, 1, WEFT_OP_prod, import_reduce},
    {"ReduceProd", 18, 1, 2, WEFT_OP_prod, import_reduce},
    {"ReduceSum", 1, 1, 1, WEFT_OP_sum, import_reduce},
    {"ReduceSum", 13, 1, 2, WEFT_OP_sum, import_reduce},
    {"ReduceSumSquare", 1, 1, 1, 0, import_reduce_sum_square},
    {"ReduceSumSquare", 18, 1, 2, 0, import_reduce_sum_square},
    {"Softmax", 1, 1, 1, WEFT_OP_softmax, import_softmax_flat},
    {"Softmax", 13, 1, 1, WEFT_OP_softmax, import_softmax},
    {0},
};
