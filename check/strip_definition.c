/* SPDX-License-Identifier: Apache-2.0 */
/* strip_definition.c: the reference evaluator as the definition of strip kernels, and their bounds of error.
 *
 * An f32 kernel is within `ulps` units in the last place of the exact result, or within `absolute`. A kernel of a
 * 16-bit type rounds the result of the f32 kernel once more, so it is within half a unit of its own type and the error
 * of f32. */
#include "check/strip_definition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

/* What is not listed is exact. */
static const struct {
    const char *op;
    double ulps, absolute;
} bounds[] = {
    {"sqrt", 0.5, 0},
    {"rsqrt", 1.5, 0},
    {"recip", 0.5, 0},
    {"exp", 0.77, 0},
    {"log", 0.95, 0},
    {"exp2", 0.51, 0},
    {"expm1", 1.7, 0},
    {"log2", 0.51, 0},
    {"log10", 0.51, 0},
    {"log1p", 0.51, 0},
    {"sin", 0.51, 0},
    {"cos", 0.51, 0},
    {"tan", 0.51, 0},
    {"asin", 0.51, 0},
    {"acos", 0.51, 0},
    {"atan", 0.51, 0},
    {"sinh", 0.51, 0},
    {"cosh", 0.51, 0},
    {"tanh", 0.51, 0},
    {"asinh", 0.51, 0},
    {"acosh", 0.51, 0},
    {"atanh", 0.51, 0},
    {"erf", 1.4, 0},
    {"erfc", 0.51, 0},
    {"sigmoid", 2.45, 0},
    {"softplus", 2.4, 0},
    {"log_sigmoid", 2.4, 0},
    {"gelu", 2.7, 3e-7},
    {"gelu.tanh", 4, 5e-7},
    {"silu", 3.1, 0x1p-142},
    {"swish", 0.51, 0x1p-142},
    {"mish", 3.8, 0x1p-142},
    {"softsign", 1.5, 0},
    {"leaky_relu", 0.5, 0},
    {"shrink", 0.51, 0},
    {"elu", 1.7, 0},
    {"celu", 2.3, 0},
    {"selu", 2.7, 0},
    {"hard_sigmoid", 0.51, 0},
    {"hard_swish", 2, 4e-7},
    {"prelu", 0.51, 0},
    {"add", 0.51, 0},
    {"sub", 0.51, 0},
    {"mul", 0.51, 0},
    {"div", 0.51, 0},
    {"mod", 0.51, 0},
    {"floor_div", 0.51, 0},
    {"pow", 0.51, 0},
    {"atan2", 0.51, 0},
    {"fma", 0.51, 0},
};

/* Parameters, and the attributes that give them. */
static const struct {
    const char *op, *attributes;
    double p, q;
} settings[] = {
    {"clamp", "low=-2.5 high=2.25", -2.5, 2.25},
    {"clamp", "low=1.5", 1.5, (double)INFINITY},
    {"leaky_relu", "alpha=0.25", 0.25, 0},
    {"thresholded_relu", "alpha=0.5", 0.5, 0},
    {"shrink", "bias=0.25 lambda=0.5", 0.25, 0.5},
    {"swish", "alpha=1.5", 1.5, 0},
    {"elu", "alpha=0.5", 0.5, 0},
    {"celu", "alpha=2", 2, 0},
    {"selu", "alpha=1.75 gamma=1.0625", 1.75, 1.0625},
    {"hard_sigmoid", "alpha=0.25 beta=0.5", 0.25, 0.5},
    {"is_inf", "negative=0", 1, 0},
    {"is_inf", "positive=0", 0, 1},
    {"cast", "", 1, 0},
    {"cast", "saturate=0", 0, 0},
};

static bool parse(struct strip_definition *d, const char *attributes, double p, double q)
{
    const char *const form = strchr(d->kernel->op, '.');
    const char *const result = weft_dtype_name(d->wide[0]);
    char text[512], params[128] = "", operands[64] = "";
    for (int i = 0; i < d->inputs; i++) {
        snprintf(params + strlen(params), sizeof params - strlen(params), "%s%%%c: %s[N]", i ? ", " : "", 'x' + i,
                 weft_dtype_name(d->wide[1 + i]));
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%s%%%c", i ? ", " : "", 'x' + i);
    }
    snprintf(text, sizeof text, "graph @f<N>(%s) {\n%%r: %s[N] = %.*s %s %s%s %s\nreturn %%r\n}\n", params, result,
             (int)strcspn(d->kernel->op, "."), d->kernel->op, operands, form ? "form=" : "", form ? form + 1 : "",
             attributes);
    if (weft_parse(d->context, text, strlen(text), d->kernel->name, &d->graph[d->variants]) != WEFT_OK)
        return false;
    d->param[d->variants][0] = p;
    d->param[d->variants++][1] = q;
    return true;
}

bool strip_definition_open(struct strip_definition *d, const struct weft_strip_kernel *k)
{
    const int op = weft_opcode_find(k->op, strcspn(k->op, "."));
    *d = (struct strip_definition){.kernel = k, .dtype = {k->out_dtype, k->in_dtype, k->in_dtype, k->in_dtype}};
    if (!op || weft_open(NULL, &d->context) != WEFT_OK)
        return false;
    d->inputs = weft_ops[op].min_operands;
    if (op == WEFT_OP_select)
        d->dtype[1] = WEFT_BOOL;
    const bool rounded = (k->in_dtype == WEFT_F32 || k->in_dtype == WEFT_F16 || k->in_dtype == WEFT_BF16) &&
                         op != WEFT_OP_cast && op != WEFT_OP_select;
    for (int i = 0; i <= d->inputs; i++)
        d->wide[i] = rounded && weft_dtype_is_float(d->dtype[i]) ? WEFT_F64 : d->dtype[i];
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (!strcmp(bounds[i].op, k->op)) {
            d->ulps = bounds[i].ulps;
            d->absolute = bounds[i].absolute;
        }
    bool taken = true;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].op, k->op))
            taken = taken && parse(d, settings[i].attributes, settings[i].p, settings[i].q);
    return taken && (d->variants || parse(d, "", 0, 0));
}

void strip_definition_close(struct strip_definition *d)
{
    for (int i = 0; i < d->variants; i++)
        weft_graph_destroy(d->graph[i]);
    if (d->context)
        weft_close(d->context);
}

void strip_definition_run(const struct strip_definition *d, int variant, const struct weft_strip_args *args, void *ret)
{
    struct weft_tensor in[WEFT_K_MAX_IN] = {{0}};
    struct weft_tensor out = {.data = ret, .dtype = (uint8_t)d->wide[0], .rank = 1, .extent = {args->n}, .stride = {1}};
    for (int i = 0; i < d->inputs; i++) {
        double *const wide = malloc((size_t)args->n * sizeof *wide + 1);
        in[i] = (struct weft_tensor){.dtype = (uint8_t)d->wide[1 + i], .rank = 1, .extent = {args->n}, .stride = {1}};
        const int bytes = (int)weft_dtype_bits(d->dtype[1 + i]) / 8;
        for (int64_t j = 0; j < args->n; j++)
            if (d->wide[1 + i] != d->dtype[1 + i])
                wide[j] = weft_load_real(d->dtype[1 + i], args->in[i], j * args->stride[1 + i]);
            else
                memcpy((char *)wide + j * bytes, (const char *)args->in[i] + j * args->stride[1 + i] * bytes,
                       (size_t)bytes);
        in[i].data = wide;
    }
    if (weft_evaluate(d->graph[variant], in, (size_t)d->inputs, &out, 1) != WEFT_OK)
        abort(); /* the harness reports it */
    for (int i = 0; i < d->inputs; i++)
        free(in[i].data);
}

/* Half a unit in the last place of a 16-bit float where `want` is, and the f32 kernel's error there. Where the result
 * overflows, the next power of two stands for infinity. */
static bool holds_16(const struct strip_definition *d, double got, double want)
{
    const bool half = d->dtype[0] == WEFT_F16;
    const int fraction = half ? 10 : 7, lowest = half ? -14 : -126, highest = half ? 15 : 127;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    const double top = ldexp(1, highest + 1), g = isinf(got) ? copysign(top, got) : got;
    const double w = fmin(fmax(want, -top), top), size = fabs(w);
    const int exponent = size < ldexp(1, lowest) ? lowest : size >= top ? highest : ilogb(size);
    const double unit = ldexp(1, exponent - fraction), unit_32 = ldexp(1, exponent - 23);
    return fabs(g - w) <= 0.5 * unit + d->ulps * unit_32 + d->absolute;
}

bool strip_definition_holds(const struct strip_definition *d, const void *got, int64_t place, const void *want,
                            int64_t i)
{
    const int dtype = d->dtype[0];
    if (!weft_dtype_is_float(dtype))
        return weft_load_integer(dtype, got, place) == weft_load_integer(dtype, want, i);
    const double is = weft_load_real(dtype, got, place), should = weft_load_real(d->wide[0], want, i);
    if (d->wide[0] == dtype)
        return is == should || (isnan(is) && isnan(should));
    if (dtype == WEFT_F32)
        return weft_check_ulps((float)is, should) <= d->ulps || fabs(is - should) <= d->absolute;
    return holds_16(d, is, should);
}
