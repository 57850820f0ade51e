/* SPDX-License-Identifier: Apache-2.0 */
/* import_elementwise.c: ops that map element to element, with numpy's broadcasting made explicit. */
#include "onnx/import.h"

static void import_unary(struct onnx_op *op)
{
    op->output[0] = weft_onnx_unary(op, op->row->opcode, weft_onnx_input(op, 0));
}

static void import_alias(struct onnx_op *op) { op->output[0] = weft_onnx_input(op, 0); }

/* Folds any number of inputs of one common shape from the left. */
static weft_val fold_inputs(struct onnx_op *op, int opcode)
{
    struct weft_type shape;
    weft_onnx_common_shape(op, op->inputs, op->input, &shape);
    weft_val result = weft_onnx_broadcast(op, weft_onnx_input(op, 0), &shape);
    for (unsigned i = 1; i < op->inputs; i++)
        result = weft_onnx_binary(op, opcode, result, weft_onnx_broadcast(op, weft_onnx_input(op, i), &shape));
    return result;
}

/* One node of two or three inputs, which are repeated to their common shape. */
static void import_together(struct onnx_op *op, int opcode, const struct weft_attr *attr)
{
    struct weft_type shape;
    weft_val operand[3];
    const unsigned operands = op->inputs < 3 ? op->inputs : 3;
    weft_onnx_common_shape(op, operands, op->input, &shape);
    for (unsigned i = 0; i < operands; i++)
        operand[i] = weft_onnx_broadcast(op, weft_onnx_input(op, i), &shape);
    op->output[0] = weft_onnx_make(op, opcode, operands, operand, attr ? 1 : 0, attr, NULL);
}

static void import_fold(struct onnx_op *op) { op->output[0] = fold_inputs(op, op->row->opcode); }

/* Before opset 7, the second operand broadcast only where `broadcast` said so, and its axes were a run of the first's
 * that began at `axis`, or its last ones. */
static void import_aligned(struct onnx_op *op)
{
    weft_onnx_ignore(op, "consumed_inputs");
    const weft_val x = weft_onnx_input(op, 0), y = weft_onnx_input(op, 1);
    const struct weft_type shape = weft_onnx_type(op, x);
    const unsigned rank = weft_onnx_type(op, y).rank;
    const bool broadcasts = weft_onnx_int(op, "broadcast", 0) != 0;
    const int64_t last = (int64_t)shape.rank - rank, axis = weft_onnx_int(op, "axis", last < 0 ? 0 : last);
    if (axis < 0 || axis > last || (!broadcasts && rank != shape.rank)) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input 1 has %u axes, which do not fit the %u axes of input 0", rank,
                       (unsigned)shape.rank);
        return;
    }
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        axes[i] = (unsigned)axis + i;
    op->output[0] = weft_onnx_binary(op, op->row->opcode, x, weft_onnx_broadcast_axes(op, y, &shape, rank, axes));
}

static void import_mean(struct onnx_op *op)
{
    const weft_val sum = fold_inputs(op, WEFT_OP_add);
    op->output[0] = weft_onnx_binary(op, WEFT_OP_div, sum, weft_onnx_scalar_like(op, sum, op->inputs));
}

/* A type that holds base and exponent: the result has the base's, but an exponent that is rounded is another one. An
 * integer base with a float exponent is a float power, in f64 where f32 does not hold every base. */
static int power_dtype(int base, int exponent)
{
    if (!weft_dtype_is_float(base) && weft_dtype_is_float(exponent))
        return weft_dtype_bits(base) > 16 ? WEFT_F64 : WEFT_F32;
    if (weft_dtype_is_float(base) && !weft_dtype_is_float(exponent))
        return weft_dtype_bits(base) == 16 && weft_dtype_bits(exponent) > 8 ? WEFT_F32 : base;
    if (weft_dtype_bits(base) != weft_dtype_bits(exponent))
        return weft_dtype_bits(base) > weft_dtype_bits(exponent) ? base : exponent;
    return base == exponent || !weft_dtype_is_float(base) ? base : WEFT_F32; /* f16 and bf16 */
}

static void import_pow(struct onnx_op *op)
{
    struct weft_type shape;
    weft_onnx_common_shape(op, 2, op->input, &shape);
    weft_val base = weft_onnx_input(op, 0), exponent = weft_onnx_input(op, 1);
    const int base_type = weft_onnx_type(op, base).dtype, exponent_type = weft_onnx_type(op, exponent).dtype;
    const int type = power_dtype(base_type, exponent_type);
    base = weft_onnx_broadcast(op, weft_onnx_cast(op, base, type), &shape);
    exponent = weft_onnx_broadcast(op, weft_onnx_cast(op, exponent, type), &shape);
    op->output[0] = weft_onnx_cast(op, weft_onnx_binary(op, WEFT_OP_pow, base, exponent), base_type);
}

static void import_mod(struct onnx_op *op)
{
    const bool truncating = weft_onnx_int(op, "fmod", 0) != 0;
    const struct weft_attr form = weft_attr_of_word(WEFT_ATTR_form, truncating ? "trunc" : "floor");
    import_together(op, WEFT_OP_mod, &form);
}

static void import_bit_shift(struct onnx_op *op)
{
    const bool right = weft_onnx_word(op, "direction", "LEFT RIGHT") == 1;
    op->output[0] = fold_inputs(op, right ? WEFT_OP_shift_right : WEFT_OP_shift_left);
}

static void import_is_inf(struct onnx_op *op)
{
    struct weft_attr attrs[2];
    unsigned count = 0;
    if (!weft_onnx_int(op, "detect_negative", 1))
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_negative, 0);
    if (!weft_onnx_int(op, "detect_positive", 1))
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_positive, 0);
    const weft_val x = weft_onnx_input(op, 0);
    op->output[0] = weft_onnx_make(op, WEFT_OP_is_inf, 1, &x, count, attrs, NULL);
}

static void import_where(struct onnx_op *op) { import_together(op, WEFT_OP_select, NULL); }

/* --- types -------------------------------------------------------------------------------------------------------- */

/* `saturate` matters to 8-bit floats only, and is 1 by default here as there. */
static weft_val cast_to(struct onnx_op *op, weft_val x, int dtype)
{
    const struct weft_attr overflow = weft_attr_of_int(WEFT_ATTR_saturate, 0);
    const bool saturate = weft_onnx_int(op, "saturate", 1) != 0;
    weft_onnx_ignore(op, "round_mode"); /* of float8e8m0, which is refused */
    struct weft_type type = weft_onnx_type(op, x);
    if (saturate || type.dtype == dtype || (dtype != WEFT_F8E4M3 && dtype != WEFT_F8E5M2))
        return weft_onnx_cast(op, x, dtype);
    type.dtype = (uint8_t)dtype;
    return weft_onnx_make(op, WEFT_OP_cast, 1, &x, 1, &overflow, &type);
}

/* The attribute `to`, or 0 after an error. */
static int wanted_type(struct onnx_op *op)
{
    const int64_t to = weft_onnx_int(op, "to", 0);
    const int32_t number = to > 0 && to < INT32_MAX ? (int32_t)to : 0;
    const int dtype = weft_onnx_dtype(number);
    if (!dtype)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "type %s (%lld) is not supported", weft_onnx_dtype_name(number),
                       (long long)to);
    return dtype;
}

static void import_cast(struct onnx_op *op)
{
    const int dtype = wanted_type(op);
    op->output[0] = cast_to(op, weft_onnx_input(op, 0), dtype);
}

static void import_cast_like(struct onnx_op *op)
{
    op->output[0] = cast_to(op, weft_onnx_input(op, 0), weft_onnx_type(op, weft_onnx_input(op, 1)).dtype);
}

static void import_bit_cast(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    struct weft_type type = weft_onnx_type(op, x);
    type.dtype = (uint8_t)wanted_type(op);
    op->output[0] = weft_onnx_make(op, WEFT_OP_bitcast, 1, &x, 0, NULL, &type);
}

const struct onnx_row weft_onnx_elementwise[] = {
    /* name, since opset, inputs from, to, opcode, function */
    {"Abs", 1, 1, 1, WEFT_OP_abs, import_unary},
    {"Acos", 7, 1, 1, WEFT_OP_acos, import_unary},
    {"Acosh", 9, 1, 1, WEFT_OP_acosh, import_unary},
    {"Add", 1, 2, 2, WEFT_OP_add, import_aligned},
    {"Add", 7, 2, 2, WEFT_OP_add, import_fold},
    {"And", 1, 2, 2, WEFT_OP_and, import_aligned},
    {"And", 7, 2, 2, WEFT_OP_and, import_fold},
    {"Asin", 7, 1, 1, WEFT_OP_asin, import_unary},
    {"Asinh", 9, 1, 1, WEFT_OP_asinh, import_unary},
    {"Atan", 7, 1, 1, WEFT_OP_atan, import_unary},
    {"Atanh", 9, 1, 1, WEFT_OP_atanh, import_unary},
    {"BitCast", 26, 1, 1, 0, import_bit_cast},
    {"BitShift", 11, 2, 2, 0, import_bit_shift},
    {"BitwiseAnd", 18, 2, 2, WEFT_OP_bit_and, import_fold},
    {"BitwiseNot", 18, 1, 1, WEFT_OP_bit_not, import_unary},
    {"BitwiseOr", 18, 2, 2, WEFT_OP_bit_or, import_fold},
    {"BitwiseXor", 18, 2, 2, WEFT_OP_bit_xor, import_fold},
    {"Cast", 6, 1, 1, 0, import_cast},
    {"CastLike", 15, 2, 2, 0, import_cast_like},
    {"Ceil", 1, 1, 1, WEFT_OP_ceil, import_unary},
    {"Cos", 7, 1, 1, WEFT_OP_cos, import_unary},
    {"Cosh", 9, 1, 1, WEFT_OP_cosh, import_unary},
    {"Div", 1, 2, 2, WEFT_OP_div, import_aligned},
    {"Div", 7, 2, 2, WEFT_OP_div, import_fold},
    {"Equal", 1, 2, 2, WEFT_OP_eq, import_aligned},
    {"Equal", 7, 2, 2, WEFT_OP_eq, import_fold},
    {"Erf", 9, 1, 1, WEFT_OP_erf, import_unary},
    {"Exp", 1, 1, 1, WEFT_OP_exp, import_unary},
    {"Floor", 1, 1, 1, WEFT_OP_floor, import_unary},
    {"Greater", 1, 2, 2, WEFT_OP_gt, import_aligned},
    {"Greater", 7, 2, 2, WEFT_OP_gt, import_fold},
    {"GreaterOrEqual", 12, 2, 2, WEFT_OP_ge, import_fold},
    {"Identity", 1, 1, 1, 0, import_alias},
    {"IsInf", 10, 1, 1, 0, import_is_inf},
    {"IsNaN", 9, 1, 1, WEFT_OP_is_nan, import_unary},
    {"Less", 1, 2, 2, WEFT_OP_lt, import_aligned},
    {"Less", 7, 2, 2, WEFT_OP_lt, import_fold},
    {"LessOrEqual", 12, 2, 2, WEFT_OP_le, import_fold},
    {"Log", 1, 1, 1, WEFT_OP_log, import_unary},
    {"Max", 6, 1, -1, WEFT_OP_max, import_fold},
    {"Mean", 6, 1, -1, 0, import_mean},
    {"Min", 6, 1, -1, WEFT_OP_min, import_fold},
    {"Mod", 10, 2, 2, 0, import_mod},
    {"Mul", 1, 2, 2, WEFT_OP_mul, import_aligned},
    {"Mul", 7, 2, 2, WEFT_OP_mul, import_fold},
    {"Neg", 1, 1, 1, WEFT_OP_neg, import_unary},
    {"Not", 1, 1, 1, WEFT_OP_not, import_unary},
    {"Or", 1, 2, 2, WEFT_OP_or, import_aligned},
    {"Or", 7, 2, 2, WEFT_OP_or, import_fold},
    {"Pow", 1, 2, 2, WEFT_OP_pow, import_aligned},
    {"Pow", 7, 2, 2, 0, import_pow},
    {"Reciprocal", 1, 1, 1, WEFT_OP_recip, import_unary},
    {"Relu", 1, 1, 1, WEFT_OP_relu, import_unary},
    {"Round", 11, 1, 1, WEFT_OP_round, import_unary},
    {"Sigmoid", 1, 1, 1, WEFT_OP_sigmoid, import_unary},
    {"Sign", 9, 1, 1, WEFT_OP_sign, import_unary},
    {"Sin", 7, 1, 1, WEFT_OP_sin, import_unary},
    {"Sinh", 9, 1, 1, WEFT_OP_sinh, import_unary},
    {"Sqrt", 1, 1, 1, WEFT_OP_sqrt, import_unary},
    {"Sub", 1, 2, 2, WEFT_OP_sub, import_aligned},
    {"Sub", 7, 2, 2, WEFT_OP_sub, import_fold},
    {"Sum", 6, 1, -1, WEFT_OP_add, import_fold},
    {"Tan", 7, 1, 1, WEFT_OP_tan, import_unary},
    {"Tanh", 1, 1, 1, WEFT_OP_tanh, import_unary},
    {"Where", 9, 3, 3, 0, import_where},
    {"Xor", 1, 2, 2, WEFT_OP_xor, import_aligned},
    {"Xor", 7, 2, 2, WEFT_OP_xor, import_fold},
    {0},
};
