/* SPDX-License-Identifier: Apache-2.0 */
/* import_elementwise.c: ops that map element to element, with numpy's broadcasting made explicit. */
#include "onnx/import.h"

#include <float.h>

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

static void import_fold(struct onnx_op *op) { op->output[0] = fold_inputs(op, op->row->opcode); }

static void import_mean(struct onnx_op *op)
{
    const weft_val sum = fold_inputs(op, WEFT_OP_add);
    op->output[0] = weft_onnx_binary(op, WEFT_OP_div, sum, weft_onnx_scalar_like(op, sum, op->inputs));
}

/* Base and exponent may differ in type; the result has that of the base. An integer base with a float exponent is a
 * float power that is cast back. */
static void import_pow(struct onnx_op *op)
{
    struct weft_type shape;
    weft_onnx_common_shape(op, 2, op->input, &shape);
    weft_val base = weft_onnx_input(op, 0), exponent = weft_onnx_input(op, 1);
    const int base_type = weft_onnx_type(op, base).dtype, exponent_type = weft_onnx_type(op, exponent).dtype;
    const bool widen = !weft_dtype_is_float(base_type) && weft_dtype_is_float(exponent_type);
    const int type = widen ? exponent_type : base_type;
    base = weft_onnx_broadcast(op, weft_onnx_cast(op, base, type), &shape);
    exponent = weft_onnx_broadcast(op, weft_onnx_cast(op, exponent, type), &shape);
    op->output[0] = weft_onnx_cast(op, weft_onnx_binary(op, WEFT_OP_pow, base, exponent), base_type);
}

static void import_mod(struct onnx_op *op)
{
    const bool truncating = weft_onnx_int(op, "fmod", 0) != 0;
    struct weft_type shape;
    weft_onnx_common_shape(op, 2, op->input, &shape);
    const weft_val operands[] = {weft_onnx_broadcast(op, weft_onnx_input(op, 0), &shape),
                                 weft_onnx_broadcast(op, weft_onnx_input(op, 1), &shape)};
    const struct weft_attr form = weft_attr_of_word(WEFT_ATTR_form, truncating ? "trunc" : "floor");
    op->output[0] = weft_onnx_make(op, WEFT_OP_mod, 2, operands, 1, &form, NULL);
}

static void import_where(struct onnx_op *op)
{
    struct weft_type shape;
    weft_onnx_common_shape(op, 3, op->input, &shape);
    weft_val operands[3];
    for (unsigned i = 0; i < 3; i++)
        operands[i] = weft_onnx_broadcast(op, weft_onnx_input(op, i), &shape);
    op->output[0] = weft_onnx_make(op, WEFT_OP_select, 3, operands, 0, NULL, NULL);
}

/* x where x >= 0, else x * slope; the slope broadcasts to x and never the other way. */
static void import_prelu(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type shape = weft_onnx_type(op, x);
    const weft_val slope = weft_onnx_broadcast(op, weft_onnx_input(op, 1), &shape);
    const weft_val negative = weft_onnx_binary(op, WEFT_OP_lt, x, weft_onnx_scalar_like(op, x, 0));
    const weft_val operands[] = {negative, weft_onnx_binary(op, WEFT_OP_mul, x, slope), x};
    op->output[0] = weft_onnx_make(op, WEFT_OP_select, 3, operands, 0, NULL, NULL);
}

/* --- functions with coefficients ---------------------------------------------------------------------------------- */

static weft_val with_reals(struct onnx_op *op, int opcode, unsigned count, const struct weft_attr *attrs)
{
    const weft_val x = weft_onnx_input(op, 0);
    return weft_onnx_make(op, opcode, 1, &x, count, attrs, NULL);
}

static void import_leaky_relu(struct onnx_op *op)
{
    const struct weft_attr alpha = weft_attr_of_real(WEFT_ATTR_alpha, weft_onnx_real(op, "alpha", (double)0.01f));
    op->output[0] = with_reals(op, WEFT_OP_leaky_relu, 1, &alpha);
}

static void import_hard_sigmoid(struct onnx_op *op)
{
    const struct weft_attr attrs[] = {weft_attr_of_real(WEFT_ATTR_alpha, weft_onnx_real(op, "alpha", (double)0.2f)),
                                      weft_attr_of_real(WEFT_ATTR_beta, weft_onnx_real(op, "beta", 0.5))};
    op->output[0] = with_reals(op, WEFT_OP_hard_sigmoid, 2, attrs);
}

static void import_gelu(struct onnx_op *op)
{
    const bool tanh_form = weft_onnx_word(op, "approximate", "none tanh") == 1;
    const struct weft_attr form = weft_attr_of_word(WEFT_ATTR_form, tanh_form ? "tanh" : "erf");
    op->output[0] = with_reals(op, WEFT_OP_gelu, 1, &form);
}

/* Bounds as attributes. The defaults are the ends of float32: no bounds at all. */
static void import_clip_attributes(struct onnx_op *op)
{
    const double low = weft_onnx_real(op, "min", -(double)FLT_MAX), high = weft_onnx_real(op, "max", (double)FLT_MAX);
    struct weft_attr attrs[2];
    unsigned count = 0;
    if (low > -(double)FLT_MAX)
        attrs[count++] = weft_attr_of_real(WEFT_ATTR_low, low);
    if (high < (double)FLT_MAX)
        attrs[count++] = weft_attr_of_real(WEFT_ATTR_high, high);
    op->output[0] = count ? with_reals(op, WEFT_OP_clamp, count, attrs) : weft_onnx_input(op, 0);
}

/* Is the bound a constant of a float type, which clamp takes as an attribute, or absent? */
static bool is_constant_bound(struct onnx_op *op, unsigned input, double *ret)
{
    struct weft_element element = {0};
    if (!weft_onnx_has(op, input))
        return true;
    const bool is_constant = weft_dtype_is_float(weft_onnx_type(op, op->input[input]).dtype) &&
                             weft_const_splat(op->graph, op->input[input], &element);
    *ret = element.real;
    return is_constant;
}

/* Bounds as inputs: attributes of clamp where they are constants of a float type, else min and max. */
static void import_clip(struct onnx_op *op)
{
    weft_val x = weft_onnx_input(op, 0);
    const struct weft_type shape = weft_onnx_type(op, x);
    double low = 0, high = 0;
    if (is_constant_bound(op, 1, &low) && is_constant_bound(op, 2, &high)) {
        struct weft_attr attrs[2];
        unsigned count = 0;
        if (weft_onnx_has(op, 1))
            attrs[count++] = weft_attr_of_real(WEFT_ATTR_low, low);
        if (weft_onnx_has(op, 2))
            attrs[count++] = weft_attr_of_real(WEFT_ATTR_high, high);
        op->output[0] = count ? with_reals(op, WEFT_OP_clamp, count, attrs) : x;
        return;
    }
    if (weft_onnx_has(op, 1))
        x = weft_onnx_binary(op, WEFT_OP_max, x, weft_onnx_broadcast(op, op->input[1], &shape));
    if (weft_onnx_has(op, 2))
        x = weft_onnx_binary(op, WEFT_OP_min, x, weft_onnx_broadcast(op, op->input[2], &shape));
    op->output[0] = x;
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static void import_cast(struct onnx_op *op)
{
    const int64_t to = weft_onnx_int(op, "to", 0);
    const int dtype = to > 0 && to < INT32_MAX ? weft_onnx_dtype((int32_t)to) : 0;
    if (weft_onnx_int(op, "saturate", 1) != 1)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute saturate is 0");
    if (!dtype)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "type %s (%lld) is not supported",
                       weft_onnx_dtype_name(to > 0 && to < INT32_MAX ? (int32_t)to : 0), (long long)to);
    op->output[0] = weft_onnx_cast(op, weft_onnx_input(op, 0), dtype);
}

static void import_cast_like(struct onnx_op *op)
{
    if (weft_onnx_int(op, "saturate", 1) != 1)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute saturate is 0");
    op->output[0] = weft_onnx_cast(op, weft_onnx_input(op, 0), weft_onnx_type(op, weft_onnx_input(op, 1)).dtype);
}

/* Dropout drops nothing when a model is run. The mask then says that everything was kept. */
static void import_dropout(struct onnx_op *op)
{
    weft_onnx_ignore(op, "ratio");
    weft_onnx_ignore(op, "seed");
    weft_dim training[WEFT_MAX_CONTENT];
    unsigned count;
    if (weft_onnx_has(op, 2) && weft_onnx_known(op, 2, "training_mode", training, &count) &&
        (count != 1 || !weft_dim_is(training[0], 0)))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "training_mode is set");
    op->output[0] = weft_onnx_input(op, 0);
    if (op->outputs < 2 || !op->node->output.item[1].length)
        return;
    struct weft_type type = weft_onnx_type(op, op->output[0]);
    if (op->importer->opset >= 10)
        type.dtype = WEFT_BOOL;
    op->output[1] = weft_onnx_splat(op, &type, 1);
}

const struct onnx_row weft_onnx_elementwise[] = {
    /* name, since opset, inputs from, to, opcode, function */
    {"Abs", 1, 1, 1, WEFT_OP_abs, import_unary},
    {"Add", 7, 2, 2, WEFT_OP_add, import_fold},
    {"And", 7, 2, 2, WEFT_OP_and, import_fold},
    {"Cast", 6, 1, 1, 0, import_cast},
    {"CastLike", 15, 2, 2, 0, import_cast_like},
    {"Ceil", 1, 1, 1, WEFT_OP_ceil, import_unary},
    {"Clip", 6, 1, 1, 0, import_clip_attributes},
    {"Clip", 11, 1, 3, 0, import_clip},
    {"Cos", 7, 1, 1, WEFT_OP_cos, import_unary},
    {"Div", 7, 2, 2, WEFT_OP_div, import_fold},
    {"Dropout", 7, 1, 1, 0, import_dropout},
    {"Dropout", 12, 1, 3, 0, import_dropout},
    {"Equal", 7, 2, 2, WEFT_OP_eq, import_fold},
    {"Erf", 9, 1, 1, WEFT_OP_erf, import_unary},
    {"Exp", 1, 1, 1, WEFT_OP_exp, import_unary},
    {"Floor", 1, 1, 1, WEFT_OP_floor, import_unary},
    {"Gelu", 20, 1, 1, 0, import_gelu},
    {"Greater", 7, 2, 2, WEFT_OP_gt, import_fold},
    {"GreaterOrEqual", 12, 2, 2, WEFT_OP_ge, import_fold},
    {"HardSigmoid", 6, 1, 1, 0, import_hard_sigmoid},
    {"HardSwish", 14, 1, 1, WEFT_OP_hard_swish, import_unary},
    {"Identity", 1, 1, 1, 0, import_alias},
    {"IsNaN", 9, 1, 1, WEFT_OP_is_nan, import_unary},
    {"LeakyRelu", 6, 1, 1, 0, import_leaky_relu},
    {"Less", 7, 2, 2, WEFT_OP_lt, import_fold},
    {"LessOrEqual", 12, 2, 2, WEFT_OP_le, import_fold},
    {"Log", 1, 1, 1, WEFT_OP_log, import_unary},
    {"Max", 6, 1, -1, WEFT_OP_max, import_fold},
    {"Mean", 6, 1, -1, 0, import_mean},
    {"Min", 6, 1, -1, WEFT_OP_min, import_fold},
    {"Mod", 10, 2, 2, 0, import_mod},
    {"Mul", 7, 2, 2, WEFT_OP_mul, import_fold},
    {"Neg", 1, 1, 1, WEFT_OP_neg, import_unary},
    {"Not", 1, 1, 1, WEFT_OP_not, import_unary},
    {"Or", 7, 2, 2, WEFT_OP_or, import_fold},
    {"PRelu", 7, 2, 2, 0, import_prelu},
    {"Pow", 7, 2, 2, 0, import_pow},
    {"Reciprocal", 1, 1, 1, WEFT_OP_recip, import_unary},
    {"Relu", 1, 1, 1, WEFT_OP_relu, import_unary},
    {"Round", 11, 1, 1, WEFT_OP_round, import_unary},
    {"Sigmoid", 1, 1, 1, WEFT_OP_sigmoid, import_unary},
    {"Sign", 9, 1, 1, WEFT_OP_sign, import_unary},
    {"Sin", 7, 1, 1, WEFT_OP_sin, import_unary},
    {"Sqrt", 1, 1, 1, WEFT_OP_sqrt, import_unary},
    {"Sub", 7, 2, 2, WEFT_OP_sub, import_fold},
    {"Sum", 6, 1, -1, WEFT_OP_add, import_fold},
    {"Tanh", 1, 1, 1, WEFT_OP_tanh, import_unary},
    {"Where", 9, 3, 3, 0, import_where},
    {"Xor", 7, 2, 2, WEFT_OP_xor, import_fold},
    {0},
};
