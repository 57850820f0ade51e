/* SPDX-License-Identifier: Apache-2.0 */
/* activation.c: elementwise functions with coefficients. Written so that a NaN falls through every comparison to the
 * branch that returns it; thresholded_relu and shrink are 0 where no comparison holds, as ONNX defines them. */
#include "eval/activation.h"

#include <math.h>
#include <string.h>

#define ROOT_HALF      0.70710678118654752440
#define ROOT_2_OVER_PI 0.79788456080286535588

/* fmin and fmax lose a NaN; these keep it. */
static double at_most(double x, double bound) { return x > bound ? bound : x; }
static double at_least(double x, double bound) { return x < bound ? bound : x; }

static double gelu(double x, bool by_tanh)
{
    if (by_tanh) /* (1 + tanh u) / 2 as 1 / (1 + exp(-2 u)), for the same reason as below */
        return x / (1 + exp(-2 * ROOT_2_OVER_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x * ROOT_HALF); /* 1 + erf would cancel for x well below 0 */
}

double weft_activation_apply(int op, double x, const struct weft_activation *p)
{
    switch (op) {
    case WEFT_OP_gelu: return gelu(x, p->by_tanh);
    case WEFT_OP_swish: return x / (1 + exp(-p->alpha * x));
    case WEFT_OP_leaky_relu: return x < 0 ? p->alpha * x : x;
    case WEFT_OP_thresholded_relu: return x > p->alpha ? x : 0;
    case WEFT_OP_shrink: return x < -p->lambda ? x + p->bias : x > p->lambda ? x - p->bias : 0;
    case WEFT_OP_elu: return x < 0 ? p->alpha * expm1(x) : x;
    case WEFT_OP_celu: return x < 0 ? p->alpha * expm1(x / p->alpha) : x;
    case WEFT_OP_selu: return p->gamma * (x < 0 ? p->alpha * expm1(x) : x);
    case WEFT_OP_hard_sigmoid: return at_least(at_most(p->alpha * x + p->beta, 1), 0);
    case WEFT_OP_hard_swish: return x * at_least(at_most(x / 6 + 0.5, 1), 0);
    case WEFT_OP_clamp: /* where the bounds cross, the upper one wins */
        x = p->has_low ? at_least(x, p->low) : x;
        return p->has_high ? at_most(x, p->high) : x;
    default: return weft_eval_no_rule(op);
    }
}

struct weft_activation weft_activation_read(const struct weft_eval *eval)
{
    struct weft_activation p = {0};
    const struct {
        int key;
        double *real;
    } reals[] = {{WEFT_ATTR_alpha, &p.alpha}, {WEFT_ATTR_beta, &p.beta},     {WEFT_ATTR_gamma, &p.gamma},
                 {WEFT_ATTR_bias, &p.bias},   {WEFT_ATTR_lambda, &p.lambda}, {WEFT_ATTR_low, &p.low},
                 {WEFT_ATTR_high, &p.high}};
    const int op = weft_eval_op(eval);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        const struct weft_attr_spec *spec = weft_attr_spec_find(op, reals[i].key);
        const struct weft_attr *attr = spec ? weft_attr_find(eval->graph, eval->node, reals[i].key) : NULL;
        if (spec)
            *reals[i].real = attr ? attr->real : spec->fallback;
        p.has_low |= attr && reals[i].key == WEFT_ATTR_low && !isnan(attr->real);
        p.has_high |= attr && reals[i].key == WEFT_ATTR_high && !isnan(attr->real);
    }
    p.by_tanh = op == WEFT_OP_gelu && strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form), "tanh") == 0;
    p.negative = op == WEFT_OP_is_inf && weft_eval_int(eval, WEFT_ATTR_negative) != 0;
    p.positive = op == WEFT_OP_is_inf && weft_eval_int(eval, WEFT_ATTR_positive) != 0;
    return p;
}
