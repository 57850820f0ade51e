/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_contraction.c: the rules of decompose for composites that hold a contraction.
 *
 *   conv_transpose   where kernels have none: phase by phase (decompose_phases.c). Where that cannot be, a conv of x
 *                    with stride - 1 zeros behind each element, and the mirrored weights. The kernel of f32 has
 *                    vectors along the results of a group, so in groups it is left those that fill half of one.
 *   matmul, conv     of 16-bit floats: in f32 between casts, for as long as no kernel reads 16 bits itself
 *
 * Needs and keeps: nothing. */
#include "passes/decompose.h"

/* --- conv_transpose --------------------------------------------------------------------------------------------- */

static weft_val padded(struct weft_builder *b, weft_val x, const weft_dim *pad)
{
    const struct weft_type type = *weft_type_of(b->graph, x), scalar = {.dtype = type.dtype};
    const weft_val operand[] = {x, weft_build_splat(b, &scalar, 0)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
    return weft_build(b, WEFT_OP_pad, 2, operand, 1, &attr, NULL);
}

/* x with stride - 1 zeros behind each element of each spatial axis. */
static weft_val dilated(struct weft_builder *b, weft_val x, weft_node n)
{
    struct weft_graph *g = b->graph;
    struct weft_type type = *weft_type_of(g, x), split = {.dtype = type.dtype};
    weft_dim pad[2 * WEFT_MAX_RANK];
    bool any = false;
    for (unsigned i = 0; i < type.rank; i++) {
        const int64_t stride = i < 2 ? 1 : weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_stride, i - 2));
        split.extent[split.rank++] = type.extent[i];
        if (stride == 1)
            continue;
        split.extent[split.rank++] = weft_dim_of(1);
        type.extent[i] = weft_dim_mul(g->dims, type.extent[i], weft_dim_of(stride));
        any = true;
    }
    if (!any)
        return x;
    for (unsigned i = 0; i < 2u * split.rank; i++)
        pad[i] = weft_dim_of(0);
    for (unsigned i = 0, at = 0; i < type.rank; i++, at++) {
        const int64_t stride = i < 2 ? 1 : weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_stride, i - 2));
        if (stride > 1)
            pad[split.rank + ++at] = weft_dim_of(stride - 1);
    }
    return weft_build_reshape(b, padded(b, weft_build_reshape(b, x, &split), pad), &type);
}

/* [c, o / g, taps…] → [o, c / g, taps…], taps in reverse order. */
static weft_val mirrored(struct weft_builder *b, weft_val w, int64_t groups)
{
    struct weft_graph *g = b->graph;
    const struct weft_type type = *weft_type_of(g, w);
    struct weft_type split = {.dtype = type.dtype, .rank = (uint8_t)(type.rank + 1)}, merged = type;
    int perm[WEFT_MAX_RANK] = {0, 2, 1};
    int64_t axes[WEFT_MAX_RANK];
    unsigned count = 0;
    split.extent[0] = weft_dim_of(groups);
    split.extent[1] = weft_dim_div(g->dims, type.extent[0], weft_dim_of(groups));
    for (int i = 1; i < type.rank; i++)
        split.extent[i + 1] = type.extent[i];
    for (int i = 3; i < split.rank; i++)
        perm[i] = i;
    merged.extent[0] = weft_dim_mul(g->dims, type.extent[1], weft_dim_of(groups));
    merged.extent[1] = split.extent[1];
    const weft_val turned = weft_build_transpose(b, weft_build_reshape(b, w, &split), perm);
    const weft_val whole = weft_build_reshape(b, turned, &merged);
    for (int i = 2; i < type.rank; i++)
        if (!weft_dim_is(type.extent[i], 1))
            axes[count++] = i;
    const struct weft_attr attr = weft_attr_of_ints(g, WEFT_ATTR_axes, count, axes);
    return count ? weft_build(b, WEFT_OP_flip, 1, &whole, 1, &attr, NULL) : whole;
}

static weft_val conv_transpose(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    const weft_val x = weft_operand(g, n, 0), w = weft_operand(g, n, 1);
    const struct weft_type type = *weft_type_of(g, x), taps = *weft_type_of(g, w);
    const struct weft_type result = *weft_type_of(g, weft_result(g, n, 0));
    const bool f32 = type.dtype == WEFT_F32 && taps.dtype == WEFT_F32 && result.dtype == WEFT_F32;
    int64_t fewest, results;
    weft_dim_range(g->dims, taps.extent[1], &fewest, &results);
    const int64_t groups = weft_attr_int(g, n, WEFT_ATTR_groups);
    if ((f32 && (groups == 1 || fewest >= 8)) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    for (int i = 0; i < result.rank; i++) {
        int64_t least, most;
        weft_dim_range(g->dims, result.extent[i], &least, &most);
        if (most <= 0) /* a convolution has at least one window for some sizes */
            return weft_build_splat(b, &result, 0);
    }
    if (weft_has_phases(g, n))
        return weft_build_phases(b, n, mirrored(b, w, groups));
    const unsigned spatial = type.rank - 2u;
    weft_dim pad[2 * WEFT_MAX_RANK], dilation[WEFT_MAX_RANK];
    for (unsigned i = 0; i < 2u * type.rank; i++)
        pad[i] = weft_dim_of(0);
    for (unsigned i = 0; i < spatial; i++) {
        dilation[i] = weft_attr_at(g, n, WEFT_ATTR_dilation, i);
        const weft_dim reach =
            weft_dim_mul(g->dims, dilation[i], weft_dim_sub(g->dims, taps.extent[2 + i], weft_dim_of(1)));
        const weft_dim behind = weft_dim_sub(g->dims, weft_attr_at(g, n, WEFT_ATTR_out_pad, i),
                                             weft_dim_sub(g->dims, weft_attr_at(g, n, WEFT_ATTR_stride, i),
                                                          weft_dim_of(1))); /* the last element's zeros go */
        pad[2 + i] = weft_dim_sub(g->dims, reach, weft_attr_at(g, n, WEFT_ATTR_pad, i));
        pad[type.rank + 2 + i] = weft_dim_add(
            g->dims, weft_dim_sub(g->dims, reach, weft_attr_at(g, n, WEFT_ATTR_pad, spatial + i)), behind);
    }
    const weft_val spread = padded(b, dilated(b, x, n), pad), mirror = mirrored(b, w, groups);
    struct weft_attr attr[3] = {weft_attr_of_int(WEFT_ATTR_groups, groups),
                                weft_attr_of_dims(WEFT_ATTR_dilation, spatial, dilation)};
    const struct weft_attr *acc = weft_attr_find(g, n, WEFT_ATTR_acc);
    if (acc)
        attr[2] = *acc;
    return weft_build(b, WEFT_OP_conv, 2, (const weft_val[]){spread, mirror}, acc ? 3 : 2, attr, NULL);
}

/* --- 16-bit products -------------------------------------------------------------------------------------------- */

static weft_val in_f32(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    const weft_val left = weft_operand(g, n, 0), right = weft_operand(g, n, 1);
    const int from = weft_type_of(g, left)->dtype, to = weft_type_of(g, weft_result(g, n, 0))->dtype;
    struct weft_attr attr[8];
    unsigned count = 0;
    if (!weft_dtype_is_half(from) || (to != from && to != WEFT_F32) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    for (unsigned i = 0; i < g->node[n.id].attrs; i++)
        if (g->node[n.id].attr[i].key != WEFT_ATTR_acc)
            attr[count++] = g->node[n.id].attr[i];
    const int op = weft_opcode_of(g, n);
    const weft_val x = weft_widen(b, left), y = weft_widen(b, right);
    return weft_narrow(b, weft_build(b, op, 2, (const weft_val[]){x, y}, count, attr, NULL), to);
}

static const struct weft_rule rules[] = {
    {"matmul",         WEFT_OP_matmul,         in_f32,         "16-bit products in f32"},
    {"conv",           WEFT_OP_conv,           in_f32,         "16-bit products in f32"},
    {"conv_transpose", WEFT_OP_conv_transpose, conv_transpose, "convolutions of its phases, or of the dilated operand"},
};
const struct weft_rule_set weft_decompose_contractions = WEFT_RULE_SET(rules);
