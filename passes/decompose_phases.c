/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_phases.c: a transposed convolution as convolutions of its phases, for decompose_contraction.c.
 *
 *   %y: f64[1,1,6] = conv_transpose %x, %w     →     %a: f64[1,1,3] = conv %x, (taps 2 and 0 of %w) pad=[1 0]
 *       stride=[2]  # %x: f64[1,1,2] and 4 taps      %b: f64[1,1,3] = conv %x, (taps 3 and 1 of %w) pad=[1 0]
 *                                                    %y: f64[1,1,6] = %a and %b element by element in turn
 *
 * Results stride · a + f of one phase f see the same taps, at elements of x that lie side by side: element i of x goes
 * to stride · i + dilation · t - pad for each tap t. So no product has a zero between elements as a factor, of which
 * there are stride times as many along each axis, and which an infinite weight would turn into NaN.
 *
 * All phases are made equally long, and what no result has is cut off at the end. Not done: pads and lengths that are
 * not known to be numbers; more than PHASES phases; f32 channel by channel with fewer than PAYS phases, where kernels
 * are so fast that putting phases together takes longer than the products with zeros (3x3 at steps of 2: 1.7 times). */
#include "passes/decompose.h"

enum { PHASES = 64, PAYS = 16, AXES = 3 };

/* One axis, and the phase along it that is being made. */
struct axis {
    int64_t stride, dilation, pad, taps;
    int64_t longer;      /* results of a phase less elements of x */
    weft_dim phase, all; /* results of one phase, and of all together */
};

struct phase {
    int64_t first, taps, step;   /* which taps: first + i · step */
    int64_t before, behind, gap; /* pads of x, and from tap to tap in x */
};

/* False where something is not a number. */
static bool axis_of(const struct weft_graph *g, weft_node n, unsigned i, struct axis *ret)
{
    const weft_dim in = weft_type_of(g, weft_operand(g, n, 0))->extent[2 + i];
    const weft_dim taps = weft_type_of(g, weft_operand(g, n, 1))->extent[2 + i];
    const weft_dim out = weft_type_of(g, weft_result(g, n, 0))->extent[2 + i];
    const weft_dim pad = weft_attr_at(g, n, WEFT_ATTR_pad, i);
    if (!weft_dim_is_constant(pad) || !weft_dim_is_constant(taps))
        return false;
    *ret = (struct axis){.stride = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_stride, i)),
                         .dilation = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dilation, i)),
                         .pad = weft_dim_value(pad), .taps = weft_dim_value(taps)};
    ret->phase = weft_dim_ceil_div(g->dims, out, weft_dim_of(ret->stride));
    ret->all = weft_dim_mul(g->dims, ret->phase, weft_dim_of(ret->stride));
    const weft_dim longer = weft_dim_sub(g->dims, ret->phase, in);
    ret->longer = weft_dim_is_constant(longer) ? weft_dim_value(longer) : 0;
    return weft_dim_is_constant(longer);
}

/* Result stride · a + f sees x at a + (f + pad - dilation · t) / stride for those t for which that is whole. */
static struct phase phase_of(const struct axis *axis, int64_t f)
{
    const int64_t common = weft_gcd(axis->stride, axis->dilation);
    struct phase p = {.step = axis->stride / common, .gap = axis->dilation / common};
    const int64_t at = f + axis->pad;
    while (p.first < p.step && (at - axis->dilation * p.first) % axis->stride)
        p.first++;
    if (p.first == p.step || p.first >= axis->taps)
        return p;
    p.taps = (axis->taps - p.first + p.step - 1) / p.step;
    const int64_t newest = (at - axis->dilation * p.first) / axis->stride; /* what the first tap of a = 0 sees */
    p.before = (p.taps - 1) * p.gap - newest;
    p.behind = axis->longer + newest;
    return p;
}

/* Which taps of weights whose taps are in reverse order. */
static weft_val taps_of(struct weft_builder *b, weft_val mirror, const struct axis *axis, const struct phase *phase)
{
    const struct weft_type type = *weft_type_of(b->graph, mirror);
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++) {
        start[i] = weft_dim_of(0), end[i] = type.extent[i], step[i] = weft_dim_of(1);
        if (i < 2)
            continue;
        const struct phase p = phase[i - 2];
        start[i] = weft_dim_of(axis[i - 2].taps - 1 - (p.first + (p.taps - 1) * p.step));
        end[i] = weft_dim_of(axis[i - 2].taps - p.first);
        step[i] = weft_dim_of(p.step);
    }
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, type.rank, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, type.rank, end),
                                     weft_attr_of_dims(WEFT_ATTR_step, type.rank, step)};
    return weft_build(b, WEFT_OP_slice, 1, &mirror, 3, attr, NULL);
}

/* x without the elements that a negative pad takes off; the pads that are left, all befores first. Of an axis that one
 * side takes elements off both are padded here: what one side leaves may be less than nothing without the other. */
static weft_val padded_for(struct weft_builder *b, weft_val x, const struct phase *phase, unsigned spatial,
                           weft_dim *pad)
{
    const struct weft_type type = *weft_type_of(b->graph, x), scalar = {.dtype = type.dtype};
    weft_dim here[2 * WEFT_MAX_RANK];
    bool any = false;
    for (unsigned i = 0; i < 2u * type.rank; i++)
        here[i] = weft_dim_of(0);
    for (unsigned i = 0; i < spatial; i++) {
        const bool cuts = phase[i].before < 0 || phase[i].behind < 0;
        weft_dim *const before = cuts ? &here[2 + i] : &pad[i];
        weft_dim *const behind = cuts ? &here[type.rank + 2u + i] : &pad[spatial + i];
        pad[i] = pad[spatial + i] = weft_dim_of(0);
        *before = weft_dim_of(phase[i].before), *behind = weft_dim_of(phase[i].behind);
        any = any || cuts;
    }
    if (!any)
        return x;
    const weft_val operand[] = {x, weft_build_splat(b, &scalar, 0)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, here);
    return weft_build(b, WEFT_OP_pad, 2, operand, 1, &attr, NULL);
}

/* The results of phase number `index`, of this type. */
static weft_val one_phase(struct weft_builder *b, weft_node n, weft_val mirror, const struct axis *axis, int64_t index,
                          const struct weft_type *type)
{
    struct weft_graph *g = b->graph;
    const unsigned spatial = type->rank - 2u;
    struct phase phase[AXES];
    weft_dim pad[2 * AXES], gap[AXES];
    for (unsigned i = spatial; i-- > 0; index /= axis[i].stride) {
        phase[i] = phase_of(&axis[i], index % axis[i].stride);
        gap[i] = weft_dim_of(phase[i].gap);
        if (phase[i].taps == 0)
            return weft_build_splat(b, type, 0);
    }
    const weft_val x = padded_for(b, weft_operand(g, n, 0), phase, spatial, pad);
    const weft_val operand[] = {x, taps_of(b, mirror, axis, phase)};
    struct weft_attr attr[4] = {weft_attr_of_int(WEFT_ATTR_groups, weft_attr_int(g, n, WEFT_ATTR_groups)),
                                weft_attr_of_dims(WEFT_ATTR_pad, 2 * spatial, pad),
                                weft_attr_of_dims(WEFT_ATTR_dilation, spatial, gap)};
    const struct weft_attr *acc = weft_attr_find(g, n, WEFT_ATTR_acc);
    if (acc)
        attr[3] = *acc;
    return weft_build(b, WEFT_OP_conv, 2, operand, acc ? 4 : 3, attr, NULL);
}

/* [n, o, phases…, results of a phase…], phases of all axes as one axis, to [n, o, results…]. */
static weft_val woven(struct weft_builder *b, weft_val all, const struct axis *axis, const struct weft_type *type)
{
    const unsigned spatial = type->rank - 2u;
    struct weft_type split = *type, merged = *type;
    int perm[WEFT_MAX_RANK] = {0, 1};
    split.rank = (uint8_t)(2 + 2 * spatial);
    for (unsigned i = 0; i < spatial; i++) {
        split.extent[2 + i] = weft_dim_of(axis[i].stride);
        split.extent[2 + spatial + i] = axis[i].phase;
        perm[2 + 2 * i] = (int)(2 + spatial + i);
        perm[3 + 2 * i] = (int)(2 + i);
        merged.extent[2 + i] = axis[i].all;
    }
    const weft_val turned = weft_build_transpose(b, weft_build_reshape(b, all, &split), perm);
    const weft_val whole = weft_build_reshape(b, turned, &merged);
    if (weft_type_same(&merged, type))
        return whole;
    weft_dim start[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type->rank; i++)
        start[i] = weft_dim_of(0);
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, type->rank, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, type->rank, type->extent)};
    return weft_build(b, WEFT_OP_slice, 1, &whole, 2, attr, NULL);
}

bool weft_has_phases(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *const w = weft_type_of(g, weft_operand(g, n, 1));
    const unsigned spatial = w->rank - 2u;
    const bool by_channel = w->dtype == WEFT_F32 && weft_dim_is(w->extent[1], 1) &&
                            weft_dim_is(w->extent[0], weft_attr_int(g, n, WEFT_ATTR_groups));
    int64_t phases = 1;
    struct axis axis;
    for (unsigned i = 0; i < spatial; i++) {
        if (!axis_of(g, n, i, &axis) || axis.stride > PHASES)
            return false;
        phases *= axis.stride;
    }
    return phases >= (by_channel ? PAYS : 2) && phases <= PHASES;
}

weft_val weft_build_phases(struct weft_builder *b, weft_node n, weft_val mirror)
{
    struct weft_graph *g = b->graph;
    const struct weft_type type = *weft_type_of(g, weft_result(g, n, 0));
    const unsigned spatial = type.rank - 2u;
    struct axis axis[AXES];
    struct weft_type one = type, apart = type;
    weft_val part[PHASES];
    unsigned parts = 1;
    apart.rank++;
    apart.extent[2] = weft_dim_of(1);
    for (unsigned i = 0; i < spatial; i++) {
        axis_of(g, n, i, &axis[i]);
        one.extent[2 + i] = apart.extent[3 + i] = axis[i].phase;
        parts *= (unsigned)axis[i].stride;
    }
    for (unsigned i = 0; i < parts; i++)
        part[i] = weft_build_reshape(b, one_phase(b, n, mirror, axis, i, &one), &apart);
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, 2);
    return woven(b, weft_build(b, WEFT_OP_concat, parts, part, 1, &attr, NULL), axis, &type);
}
