/* SPDX-License-Identifier: Apache-2.0 */
/* import_activation.c: functions with coefficients or bounds. */
#include "onnx/import.h"

#include <float.h>
#include <math.h>

/* The slope broadcasts to x and never the other way. */
static void import_prelu(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type shape = weft_onnx_type(op, x);
    const weft_val slope = weft_onnx_broadcast(op, weft_onnx_input(op, 1), &shape);
    op->output[0] = weft_onnx_binary(op, WEFT_OP_prelu, x, slope);
}

static void import_plain(struct onnx_op *op)
{
    op->output[0] = weft_onnx_unary(op, op->row->opcode, weft_onnx_input(op, 0));
}

/* Before opset 7 a slope was one number, or one a channel. */
static void import_prelu_by_channel(struct onnx_op *op)
{
    weft_onnx_ignore(op, "consumed_inputs");
    const weft_val x = weft_onnx_input(op, 0), slope = weft_onnx_input(op, 1);
    const struct weft_type shape = weft_onnx_type(op, x), own = weft_onnx_type(op, slope);
    const unsigned channels = 1;
    if (own.rank != 1 || weft_dim_is(own.extent[0], 1) || shape.rank < 2)
        import_prelu(op);
    else
        op->output[0] = weft_onnx_binary(op, WEFT_OP_prelu, x,
                                         weft_onnx_broadcast_axes(op, slope, &shape, 1, &channels));
}

static weft_val with_reals(struct onnx_op *op, int opcode, unsigned count, const struct weft_attr *attrs)
{
    const weft_val x = weft_onnx_input(op, 0);
    return weft_onnx_make(op, opcode, 1, &x, count, attrs, NULL);
}

/* An attribute of an ONNX file is a float, so its default is one too. */
static void import_with_alpha(struct onnx_op *op, float otherwise)
{
    const struct weft_attr alpha = weft_attr_of_real(WEFT_ATTR_alpha, weft_onnx_real(op, "alpha", (double)otherwise));
    op->output[0] = with_reals(op, op->row->opcode, 1, &alpha);
}

static void import_leaky_relu(struct onnx_op *op) { import_with_alpha(op, 0.01f); }
static void import_alpha_one(struct onnx_op *op) { import_with_alpha(op, 1); }

static void import_swish(struct onnx_op *op)
{
    const double alpha = weft_onnx_real(op, "alpha", 1);
    const struct weft_attr attr = weft_attr_of_real(WEFT_ATTR_alpha, alpha);
    op->output[0] = alpha == 1 ? with_reals(op, WEFT_OP_silu, 0, NULL) : with_reals(op, WEFT_OP_swish, 1, &attr);
}

/* Nothing is broadcast: the shapes are equal. */
static void import_swiglu(struct onnx_op *op)
{
    import_swish(op);
    op->output[0] = weft_onnx_binary(op, WEFT_OP_mul, op->output[0], weft_onnx_input(op, 1));
}

static void import_selu(struct onnx_op *op)
{
    const struct weft_attr attrs[] = {
        weft_attr_of_real(WEFT_ATTR_alpha, weft_onnx_real(op, "alpha", 1.67326319217681884765625)),
        weft_attr_of_real(WEFT_ATTR_gamma, weft_onnx_real(op, "gamma", 1.05070102214813232421875))};
    op->output[0] = with_reals(op, WEFT_OP_selu, 2, attrs);
}

static weft_val select(struct onnx_op *op, weft_val condition, weft_val yes, weft_val no)
{
    return weft_onnx_make(op, WEFT_OP_select, 3, (const weft_val[]){condition, yes, no}, 0, NULL, NULL);
}

/* Of 64 bits, of which f64 does not hold all: only compared in f64, moved by a whole number as they are. */
static weft_val shrink_wide(struct onnx_op *op, weft_val x, double bias, double lambda)
{
    weft_val up = x, down = x;
    if (bias != 0) {
        const weft_val by = weft_onnx_scalar_like(op, x, fabs(bias));
        up = weft_onnx_binary(op, bias > 0 ? WEFT_OP_add : WEFT_OP_sub, x, by);
        down = weft_onnx_binary(op, bias > 0 ? WEFT_OP_sub : WEFT_OP_add, x, by);
    }
    const weft_val real = weft_onnx_cast(op, x, WEFT_F64);
    const weft_val below = weft_onnx_binary(op, WEFT_OP_lt, real, weft_onnx_scalar_like(op, real, -lambda));
    const weft_val above = weft_onnx_binary(op, WEFT_OP_gt, real, weft_onnx_scalar_like(op, real, lambda));
    return select(op, below, up, select(op, above, down, weft_onnx_scalar_like(op, x, 0)));
}

/* On integers, too: by way of f64. */
static void import_shrink(struct onnx_op *op)
{
    const double bias = weft_onnx_real(op, "bias", 0), lambda = weft_onnx_real(op, "lambd", 0.5);
    const struct weft_attr attrs[] = {weft_attr_of_real(WEFT_ATTR_bias, bias),
                                      weft_attr_of_real(WEFT_ATTR_lambda, lambda)};
    weft_val x = weft_onnx_input(op, 0);
    const int dtype = weft_onnx_type(op, x).dtype;
    if ((dtype == WEFT_I64 || dtype == WEFT_U64) && floor(bias) == bias && fabs(bias) <= 0x1p53) {
        op->output[0] = shrink_wide(op, x, bias, lambda);
        return;
    }
    x = weft_onnx_cast(op, x, weft_dtype_is_float(dtype) ? dtype : WEFT_F64);
    op->output[0] = weft_onnx_cast(op, weft_onnx_make(op, WEFT_OP_shrink, 1, &x, 2, attrs, NULL), dtype);
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
                             weft_const_splat(op->graph, weft_onnx_folded(op, op->input[input]), &element);
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

const struct onnx_row weft_onnx_activation[] = {
    /* name, since opset, inputs from, to, opcode, function */
    {"Celu", 12, 1, 1, WEFT_OP_celu, import_alpha_one},
    {"Clip", 6, 1, 1, 0, import_clip_attributes},
    {"Clip", 11, 1, 3, 0, import_clip},
    {"Elu", 6, 1, 1, WEFT_OP_elu, import_alpha_one},
    {"Gelu", 20, 1, 1, 0, import_gelu},
    {"HardSigmoid", 6, 1, 1, 0, import_hard_sigmoid},
    {"HardSwish", 14, 1, 1, WEFT_OP_hard_swish, import_plain},
    {"LeakyRelu", 6, 1, 1, WEFT_OP_leaky_relu, import_leaky_relu},
    {"Mish", 18, 1, 1, WEFT_OP_mish, import_plain},
    {"PRelu", 1, 2, 2, 0, import_prelu_by_channel},
    {"PRelu", 7, 2, 2, 0, import_prelu},
    {"Selu", 6, 1, 1, 0, import_selu},
    {"Shrink", 9, 1, 1, 0, import_shrink},
    {"Softplus", 1, 1, 1, WEFT_OP_softplus, import_plain},
    {"Softsign", 1, 1, 1, WEFT_OP_softsign, import_plain},
    {"SwiGLU", 28, 2, 2, 0, import_swiglu},
    {"Swish", 24, 1, 1, 0, import_swish},
    {"ThresholdedRelu", 10, 1, 1, WEFT_OP_thresholded_relu, import_alpha_one},
    {0},
};
