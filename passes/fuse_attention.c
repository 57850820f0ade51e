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
 * Walks back from the second product. On the way, each once or not at all: a choice of 0 where the softmax is NaN
 * (`empty=clear`); reshapes that take the axes of heads apart and put them together (heads that share keys, which
 * canonicalize makes rows of one product); an addition of a mask; factors of the scores, of queries and of keys, also
 * in front of their transposes and broadcasts. Keys and values that are broadcast along the last of the leading axes
 * are keys and values of groups.
 *
 * Keeps the function and rounds elsewhere: factors are multiplied with each other and with the scores; terms are added
 * in the order of kernels/attention/attention.h.
 *
 * Why not a pattern over the opened softmax: it has two readers of one exponential and two broadcasts, which other
 * passes may have joined with their neighbours by then.
 * Whatever the sizes are: it takes 0.4 to 1.05 times as long as the products apart, one query a head 0.4 to 1.25
 * (bench/README.md).
 * Refused: scores or weights that others read too; other types than f32 (16-bit ones come in f32 between casts only if
 * their softmax does); masks that are not of all axes.
 * Needs: canonicalize; a softmax that nobody opened.
 * Not done: bounds by tanh, choices by a mask of truth values, causal masks that are constants (they are read). */
#include "passes/passes.h"

#include <math.h>

struct found {
    weft_val q, k, v, mask;   /* mask may be none */
    double factor;
    bool clears;
    bool k_turned, v_turned;  /* [.., width, keys], as the products have them */
};

/* --- walking back ------------------------------------------------------------------------------------------------ */

static bool is_op(const struct weft_graph *g, weft_val v, int op)
{
    const weft_node n = weft_def(g, v);
    return weft_opcode_of(g, n) == op && !weft_is_decided(g, n);
}

static weft_val operand_of(const struct weft_graph *g, weft_val v, unsigned i)
{
    return weft_operand(g, weft_def(g, v), i);
}

/* The number by which v is multiplied or divided, other operand to ret; false: by none. */
static bool is_scaled(const struct weft_graph *g, weft_val v, weft_val *ret, double *ret_factor)
{
    struct weft_element number;
    const bool divides = is_op(g, v, WEFT_OP_div);
    if (!divides && !is_op(g, v, WEFT_OP_mul))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        if ((divides && i == 0) || !weft_const_splat(g, operand_of(g, v, i), &number))
            continue;
        *ret = operand_of(g, v, 1 - i);
        *ret_factor = divides ? 1 / number.real : number.real;
        return isfinite(*ret_factor) && *ret_factor != 0;
    }
    return false;
}

/* Is there a factor in front of v or of what it is a view of? */
static bool has_factor(const struct weft_graph *g, weft_val v, int depth)
{
    weft_val inner;
    double factor;
    if (is_scaled(g, v, &inner, &factor))
        return true;
    const int op = weft_def_opcode(g, v);
    return depth > 0 && (op == WEFT_OP_transpose || op == WEFT_OP_reshape || op == WEFT_OP_bcast) &&
           !weft_is_decided(g, weft_def(g, v)) && has_factor(g, operand_of(g, v, 0), depth - 1);
}

enum { VIEWS = 4 }; /* so many between a product and a factor */

/* v without its factors, which go into *factor. Views of them are built again. */
static weft_val unscaled(struct weft_rewriting *r, weft_val v, int depth, double *factor)
{
    struct weft_graph *const g = r->graph;
    weft_val inner;
    double here;
    while (is_scaled(g, v, &inner, &here)) {
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

/* Through a reshape that keeps the last two axes, which only this reads. */
static weft_val through_reshape(const struct weft_graph *g, weft_val v)
{
    if (!is_op(g, v, WEFT_OP_reshape) || !weft_has_one_use(g, v))
        return v;
    const weft_val x = operand_of(g, v, 0);
    const struct weft_type *from = weft_type_of(g, x), *to = weft_type_of(g, v);
    if (from->rank < 2 || to->rank < 2)
        return v;
    for (int i = 1; i <= 2; i++)
        if (!weft_dim_same(from->extent[from->rank - i], to->extent[to->rank - i]))
            return v;
    return x;
}

/* The softmax whose NaNs v replaces by 0, or v. */
static weft_val through_clearing(const struct weft_graph *g, weft_val v, bool *ret_clears)
{
    struct weft_element zero;
    if (!is_op(g, v, WEFT_OP_select) || !weft_has_one_use(g, v))
        return v;
    const weft_val condition = operand_of(g, v, 0), x = operand_of(g, v, 2);
    if (!is_op(g, condition, WEFT_OP_is_nan) || operand_of(g, condition, 0).id != x.id ||
        !weft_has_one_use(g, condition) || !weft_const_splat(g, operand_of(g, v, 1), &zero) || zero.real != 0)
        return v;
    *ret_clears = true;
    return x;
}

/* Is the second product's left operand a softmax of a product that nobody else reads? */
static bool find(const struct weft_graph *g, weft_node n, struct found *ret)
{
    *ret = (struct found){.factor = 1, .v = weft_operand(g, n, 1),
                          .v_turned = weft_attr_int(g, n, WEFT_ATTR_trans_b) != 0};
    const weft_val weights = weft_operand(g, n, 0);
    weft_val x = through_clearing(g, through_reshape(g, weights), &ret->clears);
    if (weft_attr_int(g, n, WEFT_ATTR_trans_a) || !is_op(g, x, WEFT_OP_softmax) ||
        (!ret->clears && !weft_has_one_use(g, x)))
        return false;
    if (ret->clears && g->value[x.id].uses != 2)
        return false;
    const weft_node softmax = weft_def(g, x);
    const struct weft_type *type = weft_type_of(g, x);
    if (weft_attr_int(g, softmax, WEFT_ATTR_axis) != type->rank - 1 || type->dtype != WEFT_F32)
        return false;
    x = weft_operand(g, softmax, 0);
    for (int step = 0; step < 6 && weft_has_one_use(g, x); step++) {
        weft_val inner;
        double factor;
        if (is_op(g, x, WEFT_OP_matmul)) {
            const weft_node scores = weft_def(g, x);
            ret->q = weft_operand(g, scores, 0), ret->k = weft_operand(g, scores, 1);
            ret->k_turned = !weft_attr_int(g, scores, WEFT_ATTR_trans_b);
            return !weft_attr_int(g, scores, WEFT_ATTR_trans_a) &&
                   weft_type_same(weft_type_of(g, x), weft_type_of(g, weights));
        }
        if (is_scaled(g, x, &inner, &factor)) {
            ret->factor *= factor;
            x = inner;
        } else if (is_op(g, x, WEFT_OP_add) && !ret->mask.id && ret->factor == 1) {
            weft_val a = operand_of(g, x, 0), b = operand_of(g, x, 1);
            const bool first = is_op(g, through_reshape(g, a), WEFT_OP_matmul) || is_scaled(g, a, &inner, &factor);
            ret->mask = first ? b : a;
            x = first ? a : b;
        } else {
            const weft_val before = through_reshape(g, x);
            if (before.id == x.id)
                return false;
            x = before;
        }
    }
    return false;
}

/* --- axes -------------------------------------------------------------------------------------------------------- */

/* Leading axes are `batch` of them, then one of groups, then `repeated` along which keys and values are broadcast. */
struct axes {
    int batch, repeated;
    bool has_groups; /* or there is no leading axis */
};

/* How many of the last leading axes v is broadcast along; its other axes are those of the operand. */
static int repeats_of(const struct weft_graph *g, weft_val v)
{
    if (!is_op(g, v, WEFT_OP_bcast))
        return 0;
    const weft_node n = weft_def(g, v);
    const int rank = weft_type_of(g, v)->rank, inner = weft_type_of(g, weft_operand(g, n, 0))->rank;
    const int count = rank - inner;
    for (int i = 0; i < inner; i++) {
        const int64_t axis = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
        if (axis != (i < inner - 2 ? i : i + count))
            return 0;
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
    for (int i = 0; i < axes->batch; i++)
        ret.extent[0] = weft_dim_mul(g->dims, ret.extent[0], type->extent[i]);
    for (int i = axes->batch; i < axes->batch + axes->has_groups + repeated; i++)
        ret.extent[1] = weft_dim_mul(g->dims, ret.extent[1], type->extent[i]);
    ret.extent[2] = type->extent[leading], ret.extent[3] = type->extent[leading + 1];
    return ret;
}

static weft_val turned(struct weft_builder *b, weft_val v)
{
    const int rank = weft_type_of(b->graph, v)->rank;
    int perm[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return weft_build_transpose(b, v, perm);
}

/* Keys or values [batch, groups, ...] of a matrix for each of the leading axes. */
static weft_val of_groups(struct weft_builder *b, weft_val v, bool is_turned, const struct axes *axes)
{
    const weft_val all = axes->repeated ? operand_of(b->graph, v, 0) : v, x = is_turned ? turned(b, all) : all;
    const struct weft_type type = in_four(b->graph, weft_type_of(b->graph, x), axes, 0);
    return weft_build_reshape(b, x, &type);
}

/* The mask as [batch, heads, rows, keys], or none if it has not those axes. */
static bool fits_mask(const struct weft_graph *g, weft_val mask, const struct weft_type *scores)
{
    const struct weft_type *type = weft_type_of(g, mask);
    if (type->rank > 4)
        return false;
    for (int i = 1; i <= 4; i++) {
        const weft_dim extent = i <= type->rank ? type->extent[type->rank - i] : weft_dim_of(1);
        if (!weft_dim_same(extent, scores->extent[4 - i]))
            return false;
    }
    return true;
}

/* --- the rule ---------------------------------------------------------------------------------------------------- */

static weft_val attention(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *const g = r->graph;
    struct weft_builder *const b = &r->build;
    const weft_val result = weft_result(g, n, 0);
    const struct weft_type type = *weft_type_of(g, result);
    struct found f;
    if (type.dtype != WEFT_F32 || !find(g, n, &f) || weft_type_of(g, f.q)->dtype != WEFT_F32 ||
        weft_type_of(g, f.k)->dtype != WEFT_F32 || weft_type_of(g, f.v)->dtype != WEFT_F32)
        return WEFT_NO_VALUE;
    const struct weft_type q_type = *weft_type_of(g, f.q);
    const int leading = type.rank - 2, repeats = repeats_of(g, f.v);
    struct axes axes = {.has_groups = leading > 0};
    axes.repeated = repeats == repeats_of(g, f.k) && repeats < leading ? repeats : 0;
    axes.batch = leading > 0 ? leading - 1 - axes.repeated : 0;
    struct weft_type query = in_four(g, &q_type, &axes, axes.repeated), scores = query;
    const struct weft_type *const keys = weft_type_of(g, f.k);
    scores.extent[3] = keys->extent[keys->rank - (f.k_turned ? 1 : 2)];
    if (f.mask.id && !fits_mask(g, f.mask, &scores)) {
        weft_refuse(g, r->pass, result, "the mask has not the axes batch, head, row and key");
        return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val q = unscaled(r, f.q, VIEWS, &f.factor), k = unscaled(r, f.k, VIEWS, &f.factor);
    const weft_val operand[] = {weft_build_reshape(b, q, &query), of_groups(b, k, f.k_turned, &axes),
                                of_groups(b, f.v, f.v_turned, &axes),
                                f.mask.id ? weft_build_reshape(b, f.mask, &scores) : WEFT_NO_VALUE};
    const struct weft_attr attr[] = {weft_attr_of_real(WEFT_ATTR_factor, f.factor),
                                     weft_attr_of_word(WEFT_ATTR_empty, f.clears ? "clear" : "nan")};
    const weft_val y = weft_build(b, WEFT_OP_attention, f.mask.id ? 4 : 3, operand, 2, attr, NULL);
    return weft_build_reshape(b, y, &type);
}

static const struct weft_rule rules[] = {
    {"matmul", WEFT_OP_matmul, attention, "softmax(q * k') * v, whose scores need not be stored"},
};

bool weft_pass_fuse_attention(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    return weft_apply_rules(graph, "fuse_attention", sets, 1);
}
