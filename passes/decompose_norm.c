/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_norm.c: the rules of decompose for normalisations.
 *
 *   %y: f32[4,9] = layer_norm %x, %s axis=1     →     %m: f32[4] = mean %x axes=[1]
 *                                                     %d: f32[4,9] = sub %x, bcast %m
 *                                                     %v: f32[4] = mean (mul %d, %d) axes=[1]
 *                                                     %r: f32[4] = rsqrt (add %v, epsilon)
 *                                                     %y: f32[4,9] = mul (mul %d, bcast %r), bcast %s
 *
 * The variance is that of the differences: subtracting the square of the mean from the mean of the squares has a step
 * less over the data, and loses all digits where the mean is large. group_norm makes one axis of what is normalised
 * together, and is then the same.
 *
 * batch_norm becomes (x - mean) * (scale / sqrt(var + epsilon)) + bias, with everything per channel computed on one
 * axis. Why not x * a + (bias - mean * a), which has one step less: where mean is large, the two terms cancel and
 * digits are lost; and a step in an elementwise chain costs nothing once the chain is one kernel. The form with two
 * constants is fold_batchnorm's, where it is free. */
#include "passes/passes.h"

/* --- statistics of the elements themselves ---------------------------------------------------------------------- */

/* What the reduction over all axes from `first` on lost is repeated along them. */
static weft_val spread(struct weft_builder *b, weft_val v, const struct weft_type *type)
{
    static const int same[WEFT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    return weft_build_bcast(b, v, type, same);
}

static weft_val mean_from(struct weft_builder *b, weft_val x, int first)
{
    int axes[WEFT_MAX_RANK], count = 0;
    for (int axis = first; axis < weft_type_of(b->graph, x)->rank; axis++)
        axes[count++] = axis;
    return weft_build_reduce(b, WEFT_OP_mean, x, (unsigned)count, axes, /* keepdims= */ false);
}

/* x over its deviation, from its own mean if it is centred, along all axes from `first` on. */
static weft_val normalise(struct weft_builder *b, weft_val x, int first, bool centred, double epsilon)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    const weft_val difference =
        centred ? weft_build_binary(b, WEFT_OP_sub, x, spread(b, mean_from(b, x, first), &type)) : x;
    const weft_val square = weft_build_binary(b, WEFT_OP_mul, difference, difference);
    const weft_val variance = mean_from(b, square, first);
    const struct weft_type rest = *weft_type_of(b->graph, variance);
    const weft_val moved = weft_build_binary(b, WEFT_OP_add, variance, weft_build_splat(b, &rest, epsilon));
    const weft_val factor = weft_build_unary(b, WEFT_OP_rsqrt, moved);
    return weft_build_binary(b, WEFT_OP_mul, difference, spread(b, factor, &type));
}

/* x · scale + bias with what is given of them, whose axis i is axis first + i of x. */
static weft_val affine(struct weft_rewriting *r, weft_node n, weft_val x, int first)
{
    struct weft_builder *b = &r->build;
    static const int steps[] = {0, WEFT_OP_mul, WEFT_OP_add};
    const struct weft_type type = *weft_type_of(r->graph, x);
    int axes[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        axes[i] = first + i;
    for (unsigned i = 1; i < weft_node_of(r->graph, n)->operands; i++) {
        const weft_val number = weft_widen(b, weft_operand(r->graph, n, i));
        x = weft_build_binary(b, steps[i], x, weft_build_bcast(b, number, &type, axes));
    }
    return x;
}

static weft_val layer_norm(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    const weft_val x = weft_widen(&r->build, weft_operand(g, n, 0));
    const weft_val normal = normalise(&r->build, x, axis, weft_opcode_of(g, n) == WEFT_OP_layer_norm,
                                      weft_attr_real(g, n, WEFT_ATTR_epsilon));
    return weft_narrow(&r->build, affine(r, n, normal, axis), dtype);
}

static weft_val group_norm(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const weft_val x = weft_widen(b, weft_operand(g, n, 0));
    const struct weft_type type = *weft_type_of(g, x);
    const weft_dim groups = weft_attr_dim(g, n, WEFT_ATTR_groups);
    weft_dim together = weft_dim_div(g->dims, type.extent[1], groups);
    for (int axis = 2; axis < type.rank; axis++)
        together = weft_dim_mul(g->dims, together, type.extent[axis]);
    const struct weft_type flat = {.dtype = type.dtype, .rank = 3, .extent = {type.extent[0], groups, together}};
    const weft_val normal =
        normalise(b, weft_build_reshape(b, x, &flat), 2, true, weft_attr_real(g, n, WEFT_ATTR_epsilon));
    return weft_narrow(b, affine(r, n, weft_build_reshape(b, normal, &type), 1), dtype);
}

/* --- given statistics ------------------------------------------------------------------------------------------- */

static weft_val batch_norm(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    weft_val in[5]; /* x, scale, bias, mean, variance */
    for (unsigned i = 0; i < 5; i++)
        in[i] = weft_widen(b, weft_operand(g, n, i));
    const struct weft_type type = *weft_type_of(g, in[0]), per_channel = *weft_type_of(g, in[1]);
    const int channels = 1;

    const weft_val epsilon = weft_build_splat(b, &per_channel, weft_attr_real(g, n, WEFT_ATTR_epsilon));
    const weft_val deviation = weft_build_unary(b, WEFT_OP_sqrt, weft_build_binary(b, WEFT_OP_add, in[4], epsilon));
    const weft_val factor = weft_build_binary(b, WEFT_OP_div, in[1], deviation);
    const weft_val centred = weft_build_binary(b, WEFT_OP_sub, in[0], weft_build_bcast(b, in[3], &type, &channels));
    const weft_val scaled = weft_build_binary(b, WEFT_OP_mul, centred, weft_build_bcast(b, factor, &type, &channels));
    const weft_val moved = weft_build_binary(b, WEFT_OP_add, scaled, weft_build_bcast(b, in[2], &type, &channels));
    return weft_narrow(b, moved, dtype);
}

static const struct weft_rule rules[] = {
    {"batch_norm", WEFT_OP_batch_norm, batch_norm, "(x - mean) * (scale / sqrt(variance + epsilon)) + bias"},
    {"layer_norm", WEFT_OP_layer_norm, layer_norm, "x - mean over its deviation, then scale and bias"},
    {"rms_norm",   WEFT_OP_rms_norm,   layer_norm, "x over the root of the mean of its squares, then scale"},
    {"group_norm", WEFT_OP_group_norm, group_norm, "as layer_norm, a group of channels a row"},
};
const struct weft_rule_set weft_decompose_norms = WEFT_RULE_SET(rules);
