/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_attention: two products with a softmax between them become attention, whose scores never are in memory.
 *
 *   %s: f32[1,12,S,T] = matmul %q, %k trans_b=1                    %y: f32[1,12,S,64] = attention %q, %k, %v, %m
 *   %f: f32[1,12,S,T] = mul %s, %eighth                                 factor=0.125 empty=nan
 *   %a: f32[1,12,S,T] = add %f, %m                           →     return %y
 *   %w: f32[1,12,S,T] = softmax %a axis=3
 *   %y: f32[1,12,S,64] = matmul %w, %v
 *   return %y
 *
 * match_attention.c walks back from the second product and lists what is known on the way; match_causal.c reads
 * constant masks. Here: factors of queries and of keys, also in front of their transposes and broadcasts; axes. Keys
 * and values that are broadcast along the last of the leading axes are keys and values of groups.
 *
 * Keeps the function and rounds elsewhere: factors are multiplied with each other and with the scores; terms are added
 * in the order of kernels/attention/attention.h, masks to each other before; 16-bit floats are rounded at the end only.
 * Where -1e30 or less is added to a score that is NaN or infinite, primitives have a row of NaN; attention hides it.
 *
 * Why not a pattern over the opened softmax: it has two readers of one exponential and two broadcasts, which other
 * passes may have joined with their neighbours by then.
 * Whatever the sizes are: it takes 0.4 to 1.05 times as long as the products apart, one query a head 0.4 to 1.25
 * (bench/README.md).
 * Refused, with a remark: scores or weights that others read too, or whose layout is stated; other types than f32, f16
 * and bf16; what match_attention.c does not know.
 * Needs: canonicalize; a softmax that nobody opened, or in the pieces that it is made of.
 * Not done: causal masks of open sizes, which are computed from positions, and windows of keys are read as masks. */
#include "passes/match_attention.h"
#include "sched/target.h"

/* --- factors ----------------------------------------------------------------------------------------------------- */

/* Is there a factor in front of v or of what it is a view of? */
static bool has_factor(const struct weft_graph *g, weft_val v, int depth)
{
    weft_val inner;
    double factor;
    if (weft_match_scaled(g, v, &inner, &factor))
        return true;
    const int op = weft_def_opcode(g, v);
    return depth > 0 && (op == WEFT_OP_transpose || op == WEFT_OP_reshape || op == WEFT_OP_bcast) &&
           !weft_is_decided(g, weft_def(g, v)) && has_factor(g, weft_operand(g, weft_def(g, v), 0), depth - 1);
}

enum {
    VIEWS = 4,  /* so many between a product and a factor */
    PARTS = 32, /* so many values, at most, are said to be parts of an attention */
};

/* v without its factors, which go into *factor. Views of them are built again. */
static weft_val unscaled(struct weft_rewriting *r, weft_val v, int depth, double *factor)
{
    struct weft_graph *const g = r->graph;
    weft_val inner;
    double here;
    while (weft_match_scaled(g, v, &inner, &here)) {
        *factor *= here;
        v = inner;
    }
    if (depth == 0 || !has_factor(g, v, depth))
        return v;
    const weft_node n = weft_def(g, v);
    const struct weft_type type = *weft_type_of(g, v);
    struct weft_attr attr[4];
    const unsigned attrs = g->node[n.id].attrs, op = (unsigned)weft_opcode_of(g, n);
    for (unsigned i = 0; i < attrs; i++)
        attr[i] = g->node[n.id].attr[i];
    const weft_val operand = unscaled(r, weft_operand(g, n, 0), depth - 1, factor);
    return weft_build(&r->build, (int)op, 1, &operand, attrs, attr, op == WEFT_OP_transpose ? NULL : &type);
}

/* --- axes -------------------------------------------------------------------------------------------------------- */

/* Leading axes are `batch` of them, then one of groups, then `repeated` along which keys and values are broadcast. */
struct axes {
    int batch, repeated;
    bool has_groups; /* or there is no leading axis */
    bool given;      /* what is repeated apart, leading axes are merged and split into these two */
    weft_dim lead[2];
};

/* How many of the last leading axes v is broadcast along; its other axes are those of the operand. */
static int repeats_of(const struct weft_graph *g, weft_val v)
{
    const weft_node n = weft_def(g, v);
    if (weft_opcode_of(g, n) != WEFT_OP_bcast || weft_is_decided(g, n))
        return 0;
    const struct weft_type *const to = weft_type_of(g, v), *const from = weft_type_of(g, weft_operand(g, n, 0));
    const int inner = from->rank, count = to->rank - inner;
    for (int i = 0; i < inner; i++) {
        const int64_t axis = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
        if (axis != (i < inner - 2 ? i : i + count) || !weft_dim_same(from->extent[i], to->extent[axis]))
            return 0; /* an axis of 1 that is stretched is no axis of groups */
    }
    return inner >= 3 ? count : 0;
}

/* Extents [batch, heads or groups, rows, columns] of a value whose leading axes are these; `repeated` of them belong to
 * the heads. */
static struct weft_type in_four(struct weft_graph *g, const struct weft_type *type, const struct axes *axes,
                                int repeated)
{
    struct weft_type ret = {.dtype = type->dtype, .rank = 4, .extent = {weft_dim_of(1), weft_dim_of(1)}};
    const int leading = type->rank - 2;
    ret.extent[2] = type->extent[leading], ret.extent[3] = type->extent[leading + 1];
    if (axes->given) {
        ret.extent[0] = axes->lead[0], ret.extent[1] = axes->lead[1];
        return ret;
    }
    for (int i = 0; i < axes->batch; i++)
        ret.extent[0] = weft_dim_mul(g->dims, ret.extent[0], type->extent[i]);
    for (int i = axes->batch; i < axes->batch + axes->has_groups + repeated; i++)
        ret.extent[1] = weft_dim_mul(g->dims, ret.extent[1], type->extent[i]);
    return ret;
}

/* Keys or values [batch, groups, ...] of a matrix for each of the leading axes. */
static weft_val of_groups(struct weft_builder *b, weft_val v, bool is_turned, const struct axes *axes)
{
    const weft_val all = axes->repeated ? weft_operand(b->graph, weft_def(b->graph, v), 0) : v,
                   x = is_turned ? weft_build_turned(b, all) : all;
    const struct weft_type type = in_four(b->graph, weft_type_of(b->graph, x), axes, 0);
    return weft_widen(b, weft_build_reshape(b, x, &type));
}

static weft_dim extent_behind(const struct weft_graph *g, weft_val v, bool is_turned)
{
    const struct weft_type *type = weft_type_of(g, v);
    return type->extent[type->rank - (is_turned ? 1 : 2)];
}

/* Has a mask of these axes the elements of all scores, and in their order? If it has axes of its own for batches and
 * heads, and nothing is shared by heads, attention gets those. */
static bool fits_mask(struct weft_graph *g, const struct weft_attention_match *f, const struct weft_type *scores,
                      struct axes *axes)
{
    if (f->terms == 0)
        return true;
    const struct weft_type *mask = weft_type_of(g, f->term[0].value);
    if (!weft_dim_same(weft_type_elements(g->dims, mask), weft_type_elements(g->dims, scores)))
        return false;
    if (mask->rank == 4 && axes->repeated == 0 &&
        weft_dim_same(weft_dim_mul(g->dims, mask->extent[0], mask->extent[1]),
                      weft_dim_mul(g->dims, scores->extent[0], scores->extent[1]))) {
        axes->given = true;
        axes->lead[0] = mask->extent[0], axes->lead[1] = mask->extent[1];
    }
    return true;
}

static struct axes axes_of(const struct weft_graph *g, const struct weft_attention_match *f, int rank)
{
    const int leading = rank - 2, repeats = repeats_of(g, f->v);
    struct axes axes = {.has_groups = leading > 0};
    axes.repeated = repeats == repeats_of(g, f->k) && repeats < leading ? repeats : 0;
    axes.batch = leading > 0 ? leading - 1 - axes.repeated : 0;
    return axes;
}

/* --- the rule ---------------------------------------------------------------------------------------------------- */

/* Queries by the factor of their rows. */
static weft_val scaled(struct weft_builder *b, weft_val q, const struct weft_attention_match *f)
{
    struct weft_graph *const g = b->graph;
    const weft_node spread = weft_def(g, f->scale);
    const weft_val scale = weft_widen(b, weft_operand(g, spread, 0));
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < weft_type_of(g, scale)->rank; i++)
        axis[i] = (int)weft_dim_value(weft_attr_at(g, spread, WEFT_ATTR_dims, (unsigned)i));
    struct weft_type type = *weft_type_of(g, q);
    type.dtype = WEFT_F32;
    const int op = f->scale_divides ? WEFT_OP_div : WEFT_OP_mul;
    const weft_val scales = weft_build_bcast(b, scale, &type, axis);
    return weft_build_binary(b, op, weft_widen(b, q), scales);
}

/* Of operands that have four axes, but for queries, keys and values themselves. */
static weft_val build(struct weft_rewriting *r, struct weft_attention_match *f, const struct axes *axes,
                      const struct weft_type *query, const struct weft_type *scores)
{
    struct weft_graph *const g = r->graph;
    struct weft_builder *const b = &r->build;
    const weft_val all = unscaled(r, f->q, VIEWS, &f->factor), q = f->scale.id ? scaled(b, all, f) : all;
    const weft_val k = unscaled(r, f->k, VIEWS, &f->factor);
    struct weft_type rows = *query;
    rows.dtype = weft_type_of(g, q)->dtype;
    const weft_val mask = weft_build_attention_mask(b, f);
    const weft_val operand[] = {weft_widen(b, weft_build_reshape(b, f->q_turned ? weft_build_turned(b, q) : q, &rows)),
                                of_groups(b, k, f->k_turned, axes), of_groups(b, f->v, f->v_turned, axes),
                                mask.id ? weft_build_reshape(b, mask, scores) : WEFT_NO_VALUE};
    struct weft_attr attr[5] = {weft_attr_of_real(WEFT_ATTR_factor, f->factor),
                                weft_attr_of_word(WEFT_ATTR_empty, f->empty)};
    unsigned attrs = 2;
    if (f->softcap != 0)
        attr[attrs++] = weft_attr_of_real(WEFT_ATTR_softcap, f->softcap);
    if (f->causal) {
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_causal, 1);
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_offset, f->offset);
    }
    const weft_val y = weft_build(b, WEFT_OP_attention, mask.id ? 4 : 3, operand, attrs, attr, NULL);
    if (f->weight_factor == 1)
        return y;
    return weft_build_binary(b, WEFT_OP_mul, y, weft_build_splat(b, weft_type_of(g, y), f->weight_factor));
}

/* Values that attention computes on the way, from the result back. */
struct parts {
    weft_val value[PARTS];
    unsigned count;
};

static bool is_operand(const struct weft_attention_match *f, weft_val v)
{
    bool is = v.id == f->q.id || v.id == f->k.id || v.id == f->v.id || v.id == f->scale.id;
    for (unsigned i = 0; i < f->terms; i++)
        is |= v.id == f->term[i].value.id;
    return is;
}

/* Each once: an opened softmax reads scores and exponentials twice. */
static void add_part(struct parts *parts, const struct weft_graph *g, const struct weft_attention_match *f, weft_val v)
{
    bool known = parts->count == PARTS || is_operand(f, v) || (weft_op_of(g, weft_def(g, v))->traits & WEFT_SOURCE);
    for (unsigned i = 0; i < parts->count && !known; i++)
        known = parts->value[i].id == v.id;
    if (!known)
        parts->value[parts->count++] = v;
}

/* Says of all that stands between the operands that were matched and the result that attention computes it. */
static void say_joined(struct weft_rewriting *r, const struct weft_attention_match *f, weft_val result)
{
    struct weft_graph *const g = r->graph;
    struct parts parts = {.value = {result}, .count = 1};
    for (unsigned at = 0; at < parts.count; at++) {
        const weft_node n = weft_def(g, parts.value[at]);
        for (uint32_t i = 0; i < g->node[n.id].operands; i++)
            add_part(&parts, g, f, weft_operand(g, n, i));
        if (at > 0 && g->value[parts.value[at].id].name)
            weft_add_remark(g, r->pass, parts.value[at], "joined", "part of the attention that computes %s",
                            weft_value_text(g, result));
    }
}

static weft_val attention(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    const weft_val result = weft_result(g, n, 0);
    const struct weft_type type = *weft_type_of(g, result);
    struct weft_attention_match f;
    if (!weft_match_attention(g, n, &f)) {
        if (f.why)
            weft_refuse(g, r->pass, result, "%s", f.why);
        return WEFT_NO_VALUE;
    }
    struct axes axes = axes_of(g, &f, type.rank);
    struct weft_type rows = *weft_type_of(g, f.q), scores;
    if (f.q_turned) {
        rows.extent[rows.rank - 1] = rows.extent[rows.rank - 2];
        rows.extent[rows.rank - 2] = extent_behind(g, f.q, true);
    }
    rows.dtype = WEFT_F32;
    scores = in_four(g, &rows, &axes, axes.repeated);
    scores.extent[3] = extent_behind(g, f.k, f.k_turned);
    const bool fits = fits_mask(g, &f, &scores, &axes);
    struct weft_type query = in_four(g, &rows, &axes, axes.repeated);
    scores.extent[0] = query.extent[0], scores.extent[1] = query.extent[1];
    query.dtype = weft_type_of(g, f.q)->dtype;
    if (!fits) {
        weft_refuse(g, r->pass, result, "the mask has not the axes batch, head, row and key");
        return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    say_joined(r, &f, result);
    const weft_val y = build(r, &f, &axes, &query, &scores);
    struct weft_type whole = type;
    whole.dtype = WEFT_F32;
    if (f.result_turned) {
        whole.extent[type.rank - 1] = type.extent[type.rank - 2];
        whole.extent[type.rank - 2] = type.extent[type.rank - 1];
    }
    const weft_val shaped = weft_build_reshape(&r->build, y, &whole);
    return weft_narrow(&r->build, f.result_turned ? weft_build_turned(&r->build, shaped) : shaped, type.dtype);
}

static const struct weft_rule rules[] = {
    {"matmul", WEFT_OP_matmul, attention, "softmax(q * k') * v, whose scores need not be stored"},
};

bool weft_pass_fuse_attention(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_target_has(target, WEFT_OP_attention) && weft_apply_rules(graph, "fuse_attention", sets, 1);
}
