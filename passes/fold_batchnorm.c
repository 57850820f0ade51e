/* SPDX-License-Identifier: Apache-2.0 */
/* fold_batchnorm: scale a convolution's or matmul's constant weights instead of its result.
 *
 *   %c: f32[N,8,H,W] = conv %x, %w                                 %c: f32[N,8,H,W] = conv %x, %w1
 *   %y: f32[N,8,H,W] = batch_norm %c, %s, %b, %m, %v         →     %a: f32[N,8,H,W] = bcast %b1 dims=[1]
 *   return %y                                                      %y: f32[N,8,H,W] = add %c, %a
 *                                                                  return %y
 *
 * A contraction is linear in its weights, so a factor per output channel c may be applied to them once, at compile
 * time:
 *
 *   factor[c] = s[c] / sqrt(v[c] + epsilon)
 *   w1[c] = w[c] * factor[c]
 *   b1[c] = (bias[c] - m[c]) * factor[c] + b[c]
 *
 * where bias is that of an `add` between the two, else 0. The same for a multiplication or division by a constant per
 * channel. Two biases in a row become one. Constants per channel are uniform constants, or broadcasts of a vector
 * along the channel axis, which is what canonicalize makes of every other form. Everything is computed in double and
 * rounded once to the type of the weights.
 *
 * Why the result must have one user: another would need the unscaled result, so the contraction would be done
 * twice.
 * Refused, with a remark: another user; parameters that are not constant; factors that make a weight or a bias
 * infinite or NaN; weights of a narrower type than the result, which would round the factor more than it was; weights
 * that others read, if a second copy takes more than 64 KiB; weights of a product of few rows that a type smaller
 * than f32 holds (scale_result.c).
 * Needs: nothing.
 * Not done: a norm before the contraction (padding is in the way); scales along the rows of a matmul; batched
 * weights. */
#include "passes/passes.h"

#include <math.h>
#include <string.h>

#define COPY_BYTES ((int64_t)64 << 10)

/* A contraction with constant weights, perhaps an addition of a constant bias, and then the node that a rule looks
 * at. */
struct linear {
    weft_node node;    /* conv or matmul */
    weft_node bias;    /* the addition, or none */
    weft_val result;   /* of the last of them */
    weft_val weights;
    int weight_axis;   /* of the weights, that is the channel */
    int channel_axis;  /* of the result */
    int64_t channels;
};

/* --- recognising ------------------------------------------------------------------------------------------------ */

static bool is_contraction(const struct weft_graph *g, weft_val v, struct linear *ret)
{
    const weft_node node = weft_def(g, v);
    const int op = weft_opcode_of(g, node);
    if ((op != WEFT_OP_conv && op != WEFT_OP_matmul) || weft_is_decided(g, node))
        return false;
    *ret = (struct linear){.node = node, .result = v, .weights = weft_operand(g, node, 1), .channel_axis = 1};
    const struct weft_type *weights = weft_type_of(g, ret->weights);
    if (!weft_is_const(g, ret->weights) || !weft_type_is_constant(weights) || !weft_dtype_is_float(weights->dtype) ||
        (op == WEFT_OP_matmul && weights->rank != 2))
        return false;
    ret->weight_axis = op == WEFT_OP_matmul && !weft_attr_int(g, node, WEFT_ATTR_trans_b);
    ret->channels = weft_dim_value(weights->extent[ret->weight_axis]);
    return true;
}

/* Is v the same for all elements of a channel, and constant? Its elements to ret[channels], unless NULL. */
static bool is_per_channel(struct weft_graph *g, weft_val v, const struct linear *linear, double *ret)
{
    struct weft_element uniform;
    if (weft_const_splat(g, v, &uniform)) {
        for (int64_t c = 0; ret && c < linear->channels; c++)
            ret[c] = uniform.real;
        return true;
    }
    const weft_node def = weft_def(g, v);
    if (weft_opcode_of(g, def) != WEFT_OP_bcast)
        return false;
    const weft_val vector = weft_operand(g, def, 0);
    const struct weft_type *type = weft_type_of(g, vector);
    if (!weft_is_const(g, vector) || type->rank != 1 || !weft_dim_is(type->extent[0], linear->channels) ||
        !weft_dim_is(weft_attr_at(g, def, WEFT_ATTR_dims, 0), linear->channel_axis))
        return false;
    if (ret)
        weft_read_reals(g, vector, ret);
    return true;
}

static bool find_linear(struct weft_graph *g, weft_val v, struct linear *ret)
{
    if (is_contraction(g, v, ret))
        return true;
    const weft_node add = weft_def(g, v);
    if (weft_opcode_of(g, add) != WEFT_OP_add || weft_is_decided(g, add) ||
        !is_contraction(g, weft_operand(g, add, 0), ret) || !is_per_channel(g, weft_operand(g, add, 1), ret, NULL))
        return false;
    ret->bias = add;
    ret->result = v;
    return true;
}

/* Both steps serve the node under the rule only. */
static bool has_other_users(const struct weft_graph *g, const struct linear *linear)
{
    return !weft_has_one_use(g, linear->result) ||
           (linear->bias.id && !weft_has_one_use(g, weft_result(g, linear->node, 0)));
}

/* --- new constants ---------------------------------------------------------------------------------------------- */

/* What is to be built: factors for the weights, or NULL, and the bias, or NULL. */
struct change {
    const double *factor, *bias;
};

/* Rounds a real to element i of `data`; false if it is not finite then. */
static bool store(int dtype, void *data, int64_t i, double real)
{
    weft_store_real(dtype, data, i, real);
    return isfinite(weft_load_real(dtype, data, i)) != 0;
}

/* weights[…, c, …] * factor[c]; NULL if one is not finite. The blob is held by the graph. */
static struct weft_blob *scale_weights(struct weft_graph *g, const struct linear *linear, const double *factor)
{
    const struct weft_type *type = weft_type_of(g, linear->weights);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < type->rank; i++)
        *(i < linear->weight_axis ? &outer : &inner) *= i == linear->weight_axis ? 1 : weft_dim_value(type->extent[i]);
    const int64_t n = outer * linear->channels * inner;
    const void *old = weft_elements(g, linear->weights);
    struct weft_blob *blob = weft_blob_new(g->context, (size_t)weft_dtype_bytes(type->dtype, n));
    if (!blob)
        weft_out_of_memory(g->context);
    weft_graph_hold(g, blob);
    bool finite = true;
    for (int64_t i = 0; i < n; i++)
        finite &= store(type->dtype, blob->data, i,
                        weft_load_real(type->dtype, old, i) * factor[i / inner % linear->channels]);
    return finite ? blob : NULL;
}

static weft_val build_bias(struct weft_builder *b, const struct linear *linear, const struct weft_type *type,
                           const void *packed)
{
    const struct weft_type vector = {.dtype = type->dtype, .rank = 1, .extent = {weft_dim_of(linear->channels)}};
    return weft_build_bcast(b, weft_build_const(b, &vector, packed), type, &linear->channel_axis);
}

/* The contraction with other weights. */
static weft_val rebuild(struct weft_rewriting *r, const struct linear *linear, struct weft_blob *blob)
{
    struct weft_graph *g = r->graph;
    const struct weft_node_info old = g->node[linear->node.id];
    const struct weft_type type = *weft_type_of(g, linear->weights);
    const weft_val weights = weft_build_blob(&r->build, &type, blob);
    const weft_val operand[] = {weft_operand(g, linear->node, 0), weights};
    const weft_val result = weft_build(&r->build, old.op, 2, operand, old.attrs, old.attr, NULL);
    g->node[weft_def(g, result).id].name = old.name;
    g->node[weft_def(g, result).id].line = old.line;
    return result;
}

/* The old contraction and bias go, and leave their names. From here to the result of the rule nothing allocates, since
 * the node under the rule now reads what is scaled already. */
static void replace(struct weft_graph *g, const struct linear *linear, weft_val product)
{
    const weft_val old = weft_result(g, linear->node, 0);
    if (!weft_is(old, product)) {
        const weft_val weights = weft_operand(g, weft_def(g, product), 1);
        weft_replace_uses(g, old, product);
        weft_erase_node(g, linear->node);
        if (g->value[linear->weights.id].uses == 0 && g->value[linear->weights.id].returns == 0) {
            weft_replace_uses(g, linear->weights, weights); /* for its name only */
            weft_erase_node(g, weft_def(g, linear->weights));
        }
    }
    if (linear->bias.id) {
        weft_replace_uses(g, linear->result, product);
        weft_erase_node(g, linear->bias);
    }
}

static weft_val refuse(struct weft_rewriting *r, const char *reason)
{
    char who[64] = "fold_batchnorm.";
    strncat(who, r->rule->name, sizeof who - strlen(who) - 1);
    weft_refuse(r->graph, who, weft_result(r->graph, r->node, 0), "%s", reason);
    return WEFT_NO_VALUE;
}

/* Puts contraction and bias in the place of the node under the rule. */
static weft_val apply(struct weft_rewriting *r, const struct linear *linear, const struct change *change)
{
    struct weft_graph *g = r->graph;
    if (has_other_users(g, linear))
        return refuse(r, "what it follows has other users");
    if (change->factor && weft_keeps_small_weights(g, r->facts, linear->node))
        return refuse(r, "the product reads its weights in a type smaller than f32, which scaled ones would not fit");
    if (change->factor && !weft_has_one_use(g, linear->weights) && weft_constant_bytes(g, linear->weights) > COPY_BYTES)
        return refuse(r, "the weights have other users, and a second copy would be large");
    const struct weft_type type = *weft_type_of(g, weft_result(g, r->node, 0));
    if (change->factor && weft_dtype_bits(type.dtype) > weft_dtype_bits(weft_type_of(g, linear->weights)->dtype))
        return refuse(r, "the weights are of a narrower type than the result");
    void *bias = weft_arena_new(&g->root->scratch, (size_t)weft_dtype_bytes(type.dtype, linear->channels));
    for (int64_t c = 0; change->bias && c < linear->channels; c++)
        if (!store(type.dtype, bias, c, change->bias[c]))
            return refuse(r, "a bias would not be finite");
    struct weft_blob *blob = change->factor ? scale_weights(g, linear, change->factor) : NULL;
    if (change->factor && !blob)
        return refuse(r, "a weight would not be finite");
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val product = blob ? rebuild(r, linear, blob) : weft_result(g, linear->node, 0);
    const weft_val result =
        change->bias ? weft_build_binary(&r->build, WEFT_OP_add, product, build_bias(&r->build, linear, &type, bias))
                     : product;
    replace(g, linear, product);
    return result;
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

static double *new_reals(struct weft_graph *g, const struct linear *linear)
{
    return weft_new(&g->root->scratch, double, linear->channels);
}

/* Zeros if there is none. */
static double *old_bias(struct weft_graph *g, const struct linear *linear)
{
    double *bias = new_reals(g, linear);
    if (linear->bias.id)
        is_per_channel(g, weft_operand(g, linear->bias, 1), linear, bias);
    return bias;
}

static weft_val batch_norm(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct linear linear;
    if (!find_linear(g, weft_operand(g, n, 0), &linear))
        return WEFT_NO_VALUE;
    double *parameter[4]; /* scale, bias, mean, variance */
    for (unsigned i = 0; i < 4; i++) {
        if (!weft_is_const(g, weft_operand(g, n, i + 1)))
            return refuse(r, "its parameters are not constant");
        parameter[i] = new_reals(g, &linear);
        weft_read_reals(g, weft_operand(g, n, i + 1), parameter[i]);
    }
    const double epsilon = weft_attr_real(g, n, WEFT_ATTR_epsilon);
    double *factor = new_reals(g, &linear), *bias = old_bias(g, &linear);
    for (int64_t c = 0; c < linear.channels; c++) {
        factor[c] = parameter[0][c] / sqrt(parameter[3][c] + epsilon);
        bias[c] = (bias[c] - parameter[2][c]) * factor[c] + parameter[1][c];
    }
    return apply(r, &linear, &(struct change){factor, bias});
}

/* (w x + b) * s and (w x + b) / s, s constant per channel. */
static weft_val scale(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct linear linear;
    if (!find_linear(g, weft_operand(g, n, 0), &linear) || !is_per_channel(g, weft_operand(g, n, 1), &linear, NULL))
        return WEFT_NO_VALUE;
    double *factor = new_reals(g, &linear), *bias = old_bias(g, &linear);
    is_per_channel(g, weft_operand(g, n, 1), &linear, factor);
    for (int64_t c = 0; c < linear.channels; c++) {
        factor[c] = weft_opcode_of(g, n) == WEFT_OP_div ? 1 / factor[c] : factor[c];
        bias[c] *= factor[c];
    }
    return apply(r, &linear, &(struct change){factor, linear.bias.id ? bias : NULL});
}

/* (w x + b) + c and (w x + b) - c, both constant per channel. */
static weft_val bias_bias(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct linear linear;
    if (!find_linear(g, weft_operand(g, n, 0), &linear) || !linear.bias.id ||
        !is_per_channel(g, weft_operand(g, n, 1), &linear, NULL))
        return WEFT_NO_VALUE;
    double *more = new_reals(g, &linear), *bias = old_bias(g, &linear);
    is_per_channel(g, weft_operand(g, n, 1), &linear, more);
    for (int64_t c = 0; c < linear.channels; c++)
        bias[c] += weft_opcode_of(g, n) == WEFT_OP_sub ? -more[c] : more[c];
    return apply(r, &linear, &(struct change){NULL, bias});
}

static const struct weft_rule rules[] = {
    {"batch_norm", WEFT_OP_batch_norm, batch_norm, "a contraction is linear in its weights"},
    {"mul",        WEFT_OP_mul,        scale,      "a contraction is linear in its weights"},
    {"div",        WEFT_OP_div,        scale,      "a contraction is linear in its weights"},
    {"add",        WEFT_OP_add,        bias_bias,  "two biases are one"},
    {"sub",        WEFT_OP_sub,        bias_bias,  "two biases are one"},
};

bool weft_pass_fold_batchnorm(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules_with(graph, "fold_batchnorm", sets, 1, target);
}
