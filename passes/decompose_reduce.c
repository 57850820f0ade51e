/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_reduce.c: the rules of decompose for reductions that need two passes over their terms.
 *
 *   log_sum_exp   m + log(sum(exp(x - m))), m = the largest, or 0 where that is infinite or NaN: inf - inf would be NaN
 *   variance      sum((x - mean)²) / (count - correction), which is a mean where nothing is corrected. Not
 *                 mean(x²) - mean²: where the mean is large, that is the difference of two large numbers */
#include "passes/passes.h"

/* A reduction over the axes of a composite, and what it needs on the way. */
struct reduction {
    struct weft_builder *b;
    struct weft_type type;                       /* of x */
    weft_val x;
    unsigned axes;
    int axis[WEFT_MAX_RANK], kept[WEFT_MAX_RANK]; /* kept[i]: where axis i of a result without keepdims lies in x */
};

static struct reduction begin(struct weft_rewriting *r, weft_node n)
{
    struct reduction f = {.b = &r->build, .x = weft_widen(&r->build, weft_operand(r->graph, n, 0))};
    const struct weft_attr *axes = weft_attr_find(r->graph, n, WEFT_ATTR_axes);
    f.type = *weft_type_of(r->graph, f.x);
    int kept = 0;
    for (int i = 0; i < f.type.rank; i++)
        if (f.axes < axes->count && weft_dim_is(axes->integers[f.axes], i))
            f.axis[f.axes++] = i;
        else
            f.kept[kept++] = i;
    return f;
}

static weft_val over(struct reduction *f, int op, weft_val x)
{
    return weft_build_reduce(f->b, op, x, f->axes, f->axis, /* keepdims= */ false);
}

static weft_val spread(struct reduction *f, weft_val v) { return weft_build_bcast(f->b, v, &f->type, f->kept); }

/* The dtype and, with keepdims, the shape of the result. */
static weft_val finish(struct weft_rewriting *r, weft_node n, weft_val v)
{
    const struct weft_type type = *weft_type_of(r->graph, weft_result(r->graph, n, 0));
    v = weft_narrow(&r->build, v, type.dtype);
    return weft_type_same(weft_type_of(r->graph, v), &type) ? v : weft_build_reshape(&r->build, v, &type);
}

static weft_val log_sum_exp(struct weft_rewriting *r, weft_node n)
{
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    struct reduction f = begin(r, n);
    struct weft_builder *b = f.b;
    const weft_val largest = over(&f, WEFT_OP_reduce_max, f.x);
    const struct weft_type type = *weft_type_of(r->graph, largest);
    const weft_val zero = weft_build_splat(b, &type, 0);
    const weft_val finite = weft_build_binary(b, WEFT_OP_eq, weft_build_binary(b, WEFT_OP_sub, largest, largest), zero);
    const weft_val choice[] = {finite, largest, zero};
    const weft_val centre = weft_build(b, WEFT_OP_select, 3, choice, 0, NULL, NULL);
    const weft_val power =
        weft_build_unary(b, WEFT_OP_exp, weft_build_binary(b, WEFT_OP_sub, f.x, spread(&f, centre)));
    const weft_val logarithm = weft_build_unary(b, WEFT_OP_log, over(&f, WEFT_OP_sum, power));
    return finish(r, n, weft_build_binary(b, WEFT_OP_add, logarithm, centre));
}

/* The number of terms less `correction`, at least 0, as values of `type`. */
static weft_val divisor(struct reduction *f, const struct weft_type *type, int64_t correction)
{
    struct weft_dims *dims = f->b->graph->dims;
    weft_dim count = weft_dim_of(1);
    for (unsigned i = 0; i < f->axes; i++)
        count = weft_dim_mul(dims, count, f->type.extent[f->axis[i]]);
    count = weft_dim_max(dims, weft_dim_sub(dims, count, weft_dim_of(correction)), weft_dim_of(0));
    return weft_build_size(f->b, type, count);
}

static weft_val variance(struct weft_rewriting *r, weft_node n)
{
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    struct reduction f = begin(r, n);
    const int64_t correction = weft_attr_int(r->graph, n, WEFT_ATTR_correction);
    const weft_val centred =
        weft_build_binary(f.b, WEFT_OP_sub, f.x, spread(&f, over(&f, WEFT_OP_mean, f.x)));
    const weft_val square = weft_build_binary(f.b, WEFT_OP_mul, centred, centred);
    if (correction == 0)
        return finish(r, n, over(&f, WEFT_OP_mean, square));
    const weft_val sum = over(&f, WEFT_OP_sum, square);
    const struct weft_type type = *weft_type_of(r->graph, sum);
    return finish(r, n, weft_build_binary(f.b, WEFT_OP_div, sum, divisor(&f, &type, correction)));
}

static const struct weft_rule rules[] = {
    {"log_sum_exp", WEFT_OP_log_sum_exp, log_sum_exp, "m + log of the sum of exp(x - m)"},
    {"variance",    WEFT_OP_variance,    variance,    "mean of squared distances from the mean"},
};
const struct weft_rule_set weft_decompose_reductions = WEFT_RULE_SET(rules);
