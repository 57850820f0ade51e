/* SPDX-License-Identifier: Apache-2.0 */
/* scale_weights: scale the weights of a convolution or matmul instead of what it reads, where they are fewer.
 *
 *   %b: f32[1,96,56,56] = bcast %g dims=[0 1 2 3]          %r: f32[96] = reshape %g
 *   %s: f32[1,96,56,56] = mul %x, %b                       %b: f32[24,96,1,1] = bcast %r dims=[1]
 *   %y: f32[1,24,56,56] = conv %s, %w                →     %s: f32[24,96,1,1] = mul %b, %w
 *                                                          %y: f32[1,24,56,56] = conv %x, %s
 *
 * A factor for each term of the sums that a contraction adds up belongs to either operand. Gates of channels (squeeze
 * and excite) are made from all of x, so no kernel that makes x can scale it on the way, and x is gone over once more;
 * in front of a convolution of 1x1, weights are often a hundredth of that.
 *
 * What it takes is priced by bytes, as layouts are: reading x and writing %s before; reading and writing the weights
 * afterwards, and packing them in each run, where the kernel reads constant ones that were packed when the plan was
 * made. Where x is the smaller, everything stays.
 *
 * Rounds elsewhere: x·(g·w) instead of (x·g)·w, one rounding for each term either way. A product beyond the range of
 * f32 may be infinite or 0 where the other was not; and an infinite factor of a weight of 0 gives NaN, as that of an x
 * of 0 did. f32 only: 16 bits would round a factor more than it was.
 * Why not where x has one reader: whoever makes it scales it on the way, in a group. Why not for larger windows: their
 * weights are transformed, too, and padding would meet infinite weights.
 * Needs: layouts, which say how the kernel reads its operands. Before fuse.
 * Not done: factors that differ between images or matrices, constant factors (they could go into constant weights),
 * weights in batches, groups of channels. */
#include "passes/passes.h"
#include "sched/format.h"
#include "sched/select.h"

/* A contraction and the scale in front of it. */
struct scaling {
    weft_node node, scale;    /* conv or matmul; the mul */
    weft_val x, factor;       /* the factor as it is before it is repeated */
    weft_node bcast;
    weft_val weights;
    int axis, weight_axis;    /* that are added up: of x, of the weights */
};

/* --- recognising -------------------------------------------------------------------------------------------------- */

static bool is_f32(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->dtype == WEFT_F32; }

/* A convolution of 1x1, or a matmul by one matrix. */
static bool find_axes(const struct weft_graph *g, weft_node n, struct scaling *ret)
{
    const bool conv = weft_opcode_of(g, n) == WEFT_OP_conv;
    ret->node = n;
    ret->weights = weft_operand(g, n, 1);
    const struct weft_type *x = weft_type_of(g, weft_operand(g, n, 0)), *weights = weft_type_of(g, ret->weights);
    bool fits = weft_step_is_f32(g, n) && is_f32(g, ret->weights) && weft_type_is_constant(weights);
    if (!conv) {
        ret->axis = 1 - (int)weft_attr_int(g, n, WEFT_ATTR_trans_a);
        ret->weight_axis = (int)weft_attr_int(g, n, WEFT_ATTR_trans_b);
        return fits && x->rank == 2;
    }
    ret->axis = ret->weight_axis = 1;
    for (int i = 2; i < weights->rank; i++)
        fits = fits && weft_dim_is(weights->extent[i], 1) &&
               weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_pad, (unsigned)(i - 2)), 0);
    return fits && weft_attr_int(g, n, WEFT_ATTR_groups) == 1;
}

/* Is it the same everywhere but along the axis that is added up? */
static bool is_factor(const struct weft_graph *g, weft_val v, struct scaling *ret)
{
    const weft_node def = weft_def(g, v);
    if (!def.id || weft_opcode_of(g, def) != WEFT_OP_bcast || weft_is_decided(g, def))
        return false;
    ret->bcast = def;
    ret->factor = weft_operand(g, def, 0);
    const struct weft_type *const type = weft_type_of(g, ret->factor);
    bool goes_along = false;
    for (int i = 0; i < type->rank; i++) {
        if (weft_dim_is(type->extent[i], 1))
            continue;
        if (!weft_dim_is(weft_attr_at(g, def, WEFT_ATTR_dims, (unsigned)i), ret->axis))
            return false;
        goes_along = true;
    }
    return goes_along && !weft_is_const(g, ret->factor) && weft_is_dense(g, ret->factor);
}

static bool find_scaling(const struct weft_graph *g, weft_node n, struct scaling *ret)
{
    const weft_val scaled = weft_operand(g, n, 0);
    ret->scale = weft_def(g, scaled);
    if (!ret->scale.id || weft_opcode_of(g, ret->scale) != WEFT_OP_mul || weft_is_decided(g, ret->scale) ||
        !weft_has_one_use(g, scaled) || !find_axes(g, n, ret))
        return false;
    for (unsigned k = 0; k < 2; k++) {
        ret->x = weft_operand(g, ret->scale, 1 - k);
        if (is_factor(g, weft_operand(g, ret->scale, k), ret))
            return true;
    }
    return false;
}

/* --- prices ------------------------------------------------------------------------------------------------------- */

static int64_t pass_ps(const struct weft_formats *f, weft_val from, weft_val to)
{
    const int64_t in = weft_format_bytes(f, from), out = weft_format_bytes(f, to);
    return weft_format_rate_ps(f, (double)in, weft_format_level(f->target, WEFT_PRICE_read_private, in)) +
           weft_format_rate_ps(f, (double)out, weft_format_level(f->target, WEFT_PRICE_write_private, out));
}

/* Bytes of the weights as the kernel packs them, or 0: it reads them where they are. -1: nobody knows. */
static int64_t packed_bytes(const struct weft_formats *f, const struct scaling *s)
{
    const struct weft_graph *g = f->graph;
    const uint32_t x = g->value[weft_operand(g, s->node, 0).id].layout;
    const uint32_t y = g->value[weft_result(g, s->node, 0).id].layout;
    struct weft_conv conv;
    struct weft_gemm gemm;
    if (weft_opcode_of(g, s->node) == WEFT_OP_conv) {
        if (!weft_format_conv(f, s->node, x, y, &conv))
            return -1;
        conv.w_packed = true;
        weft_conv_prepare(&conv, f->target->threads);
        return (int64_t)weft_conv_pack_bytes(&conv);
    }
    if (!weft_format_gemm(f, s->node, x, g->value[s->weights.id].layout, y, &gemm))
        return -1;
    gemm.b_packed = gemm.batch == 1;
    weft_gemm_prepare(&gemm, f->target->threads);
    return gemm.b_packed ? (int64_t)weft_gemm_pack_bytes(&gemm) : 0;
}

/* What constant and static weights need not pay: each part packs what it reads, maybe all of them. */
static int64_t packing_ps(const struct weft_formats *f, int64_t bytes)
{
    return f->target->threads * weft_format_move_ps(f, bytes, WEFT_PRICE_convert_transpose_near);
}

/* NULL, or why everything stays. */
static const char *check(const struct weft_formats *f, const struct scaling *s)
{
    struct weft_graph *g = f->graph;
    const weft_val scaled = weft_operand(g, s->node, 0);
    const struct weft_layout from = weft_layout_of(g, s->x), to = weft_layout_of(g, scaled);
    if (weft_has_one_use(g, s->x) && weft_def(g, s->x).id)
        return "the producer of the scaled operand can apply the scale";
    if (from.kind != WEFT_STORED || to.kind != WEFT_STORED ||
        !weft_layout_equal(g->dims, &from, &to, weft_type_of(g, scaled)))
        return "the scaled operand has another layout";
    if (g->value[s->weights.id].layout)
        return "the weights are not row-major";
    const struct weft_step_kind *const kind = weft_select_kind(weft_opcode_of(g, s->node));
    const int64_t packed = weft_select_packs(g, kind, s->weights) ? packed_bytes(f, s) : 0;
    if (packed < 0)
        return "it is stored in blocks";
    const int64_t before = pass_ps(f, s->x, scaled), weights = pass_ps(f, s->weights, s->weights);
    const int64_t packing = packed ? packing_ps(f, packed) : 0;
    if (weights + packing >= before)
        return weft_arena_format(f->arena, "scaling takes %.3f us, of the weights %.3f us%s", (double)before * 1e-6,
                                 (double)(weights + packing) * 1e-6, packing ? " with packing them in each run" : "");
    return NULL;
}

/* --- rewriting ---------------------------------------------------------------------------------------------------- */

static weft_val scale_weights(struct weft_rewriting *r, const struct scaling *s)
{
    struct weft_graph *g = r->graph;
    const struct weft_type type = *weft_type_of(g, s->weights);
    const struct weft_type vector = {.dtype = WEFT_F32, .rank = 1, .extent = {type.extent[s->weight_axis]}};
    const weft_val factor = weft_type_of(g, s->factor)->rank == 1
                                ? s->factor : weft_build_reshape(&r->build, s->factor, &vector);
    const weft_val repeated = weft_build_bcast(&r->build, factor, &type, &s->weight_axis);
    return weft_build_binary(&r->build, WEFT_OP_mul, repeated, s->weights); /* constants stand right */
}

static weft_val of_operand(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_formats f = {.graph = g, .target = r->facts, .arena = &g->root->scratch};
    struct scaling s;
    if (!find_scaling(g, n, &s))
        return WEFT_NO_VALUE;
    const char *const why = check(&f, &s);
    if (why) {
        weft_refuse(g, r->pass, weft_result(g, n, 0), "%s", why);
        return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val weights = scale_weights(r, &s);
    weft_replace_operand(g, n, 1, weights);
    weft_replace_operand(g, n, 0, s.x);
    weft_erase_node(g, s.scale);
    weft_erase_unused(g, s.bcast);
    return weft_result(g, n, 0);
}

static const struct weft_rule rules[] = {
    {"conv",   WEFT_OP_conv,   of_operand, "a factor of each term may be of either operand, and the weights are fewer"},
    {"matmul", WEFT_OP_matmul, of_operand, "a factor of each term may be of either operand, and the weights are fewer"},
};

bool weft_pass_scale_weights(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules_with(graph, "scale_weights", sets, 1, target);
}
