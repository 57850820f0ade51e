/* SPDX-License-Identifier: Apache-2.0 */
/* canonicalize_identity.c: the rules of canonicalize about ops that change nothing, whatever their attributes say.
 *
 *   %a: f32[N,8,64,64] = resize %x form=linear                      %y: f32[N,8,64,64] = relu %x
 *   %b: f32[N,8,64,64] = max_pool %a kernel=[1 1]              →
 *   %y: f32[N,8,64,64] = relu %b
 *
 * A resize by a factor of 1 reads every element where it stands; a window of one tap is its element, and one that steps
 * further is a slice; a reduction or scan over an axis of extent 1 has one term; a flip of such axes moves nothing; a
 * part as large as the whole is the whole; a bound that no number of the type exceeds does not bound.
 *
 * Every bit stays. A sum begins with 0, and 0 + (-0) is 0: so the sum of one float, a mean too, is x + 0, which
 * `add_zero` drops where no element can be -0. Extents are compared as expressions: what fires holds for all sizes.
 *
 * Why here and not where the ops are imported: shapes are often known only after fold_shape, and rewrites leave such
 * ops behind too. Not done: sorts of one element, which have two results; log_sum_exp and softmax over one element,
 * whose results depend on infinities. */
#include "ir/places.h"
#include "passes/passes.h"

#include <math.h>

static const struct weft_type *type_at(const struct weft_graph *g, weft_node n, unsigned operand)
{
    return weft_type_of(g, weft_operand(g, n, operand));
}

static weft_val first_of(const struct weft_rewriting *r, weft_node n) { return weft_operand(r->graph, n, 0); }

static weft_val to_first(struct weft_rewriting *r, weft_node n) { return weft_rewrite_to(r, first_of(r, n)); }

static struct weft_type result_type(const struct weft_rewriting *r, weft_node n)
{
    return *weft_type_of(r->graph, weft_result(r->graph, n, 0));
}

/* x in the dtype and shape of the result; `sum`: plus 0. */
static weft_val one_term(struct weft_rewriting *r, weft_node n, bool sum)
{
    struct weft_graph *g = r->graph;
    struct weft_builder *b = &r->build;
    weft_val x = first_of(r, n);
    const struct weft_type to = result_type(r, n);
    const bool adds = sum && weft_dtype_is_float(to.dtype) && !weft_has_no_negative_zero(g, x);
    if (!adds && weft_type_same(weft_type_of(g, x), &to))
        return weft_rewrite_to(r, x);
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    if (weft_type_of(g, x)->dtype != to.dtype)
        x = weft_build_cast(b, x, to.dtype);
    if (!weft_type_same(weft_type_of(g, x), &to))
        x = weft_build_reshape(b, x, &to);
    return adds ? weft_build_binary(b, WEFT_OP_add, x, weft_build_splat(b, &to, 0)) : x;
}

/* --- between elements, windows ---------------------------------------------------------------------------------- */

static weft_val resize_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_type type = result_type(r, n);
    if (weft_attr_int(g, n, WEFT_ATTR_form) != WEFT_RESIZE_NEAREST && weft_dtype_bits(type.dtype) == 64 &&
        !weft_dtype_is_float(type.dtype)) /* interpolated in f64, which has fewer bits */
        return WEFT_NO_VALUE;
    for (int axis = 0; axis < type.rank; axis++)
        if (!weft_resize_keeps(g, n, axis))
            return WEFT_NO_VALUE;
    return to_first(r, n);
}

static bool all_are(const struct weft_graph *g, weft_node n, int key, unsigned count, int64_t wanted)
{
    for (unsigned i = 0; i < count; i++)
        if (!weft_dim_is(weft_attr_at(g, n, key, i), wanted))
            return false;
    return true;
}

static unsigned spatial_axes(const struct weft_graph *g, weft_node n)
{
    return weft_type_of(g, weft_result(g, n, 0))->rank - 2u; /* col2im's operand has fewer */
}

/* Windows of one tap that begin on data. */
static bool has_one_tap(const struct weft_graph *g, weft_node n)
{
    const unsigned spatial = spatial_axes(g, n);
    return all_are(g, n, WEFT_ATTR_kernel, spatial, 1) && all_are(g, n, WEFT_ATTR_pad, 2 * spatial, 0);
}

static bool moves_by_one(const struct weft_graph *g, weft_node n)
{
    return all_are(g, n, WEFT_ATTR_stride, spatial_axes(g, n), 1);
}

static weft_val pool_one(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    if (!has_one_tap(g, n) || !moves_by_one(g, n))
        return WEFT_NO_VALUE;
    if (weft_opcode_of(g, n) != WEFT_OP_norm_pool)
        return one_term(r, n, weft_opcode_of(g, n) == WEFT_OP_mean_pool);
    /* |x| by a power and a root rounds to |x| in double only if it then rounds again, and stays within its range. */
    const bool same = result_type(r, n).dtype != WEFT_F64 && weft_attr_int(g, n, WEFT_ATTR_order) <= 4;
    return same && weft_rewrite_begin(r) ? weft_build_unary(&r->build, WEFT_OP_abs, first_of(r, n)) : WEFT_NO_VALUE;
}

/* Windows of one tap that step over elements: those are left out first. Then `pool_one` finds what is left. */
static weft_val pool_steps(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_type from = *type_at(g, n, 0), to = result_type(r, n);
    if (!has_one_tap(g, n) || moves_by_one(g, n))
        return WEFT_NO_VALUE;
    weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (unsigned i = 0; i < from.rank; i++) {
        start[i] = weft_dim_of(0);
        step[i] = i < 2 ? weft_dim_of(1) : weft_attr_at(g, n, WEFT_ATTR_stride, i - 2);
        const weft_dim less = weft_dim_sub(g->dims, step[i], weft_dim_of(1)); /* as the slice rounds it up */
        if (!weft_dim_same(weft_dim_div(g->dims, weft_dim_add(g->dims, from.extent[i], less), step[i]), to.extent[i]))
            return WEFT_NO_VALUE;
        int64_t low, high; /* where no window is, none of one tap may be asked for in steps of 1 (ceil=1) */
        weft_dim_range(g->dims, to.extent[i], &low, &high);
        if (i >= 2 && high < 1)
            return WEFT_NO_VALUE;
    }
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val x = first_of(r, n);
    const struct weft_attr cut[] = {weft_attr_of_dims(WEFT_ATTR_start, from.rank, start),
                                    weft_attr_of_dims(WEFT_ATTR_end, from.rank, from.extent),
                                    weft_attr_of_dims(WEFT_ATTR_step, from.rank, step)};
    weft_replace_operand(g, n, 0, weft_build(&r->build, WEFT_OP_slice, 1, &x, 3, cut, NULL));
    weft_drop_attr(g, n, WEFT_ATTR_stride);
    return weft_result(g, n, 0);
}

static weft_val col2im_one(struct weft_rewriting *r, weft_node n)
{
    return has_one_tap(r->graph, n) && moves_by_one(r->graph, n) ? one_term(r, n, true) : WEFT_NO_VALUE;
}

/* --- reductions, scans -------------------------------------------------------------------------------------------- */

static weft_val reduce_one(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    const int op = weft_opcode_of(g, n);
    for (unsigned i = 0; i < axes->count; i++)
        if (!weft_dim_is(type_at(g, n, 0)->extent[weft_dim_value(axes->integers[i])], 1))
            return WEFT_NO_VALUE;
    return one_term(r, n, op == WEFT_OP_sum || op == WEFT_OP_mean);
}

static bool is_one_along(const struct weft_graph *g, weft_node n)
{
    return weft_dim_is(type_at(g, n, 0)->extent[weft_attr_int(g, n, WEFT_ATTR_axis)], 1);
}

static weft_val number(struct weft_rewriting *r, weft_node n, double value)
{
    const struct weft_type type = result_type(r, n);
    return weft_rewrite_begin(r) ? weft_build_splat(&r->build, &type, value) : WEFT_NO_VALUE;
}

static weft_val arg_one(struct weft_rewriting *r, weft_node n)
{
    return is_one_along(r->graph, n) ? number(r, n, 0) : WEFT_NO_VALUE;
}

static weft_val scan_one(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const int op = weft_opcode_of(g, n);
    if (!is_one_along(g, n))
        return WEFT_NO_VALUE;
    if (!weft_attr_int(g, n, WEFT_ATTR_exclusive))
        return one_term(r, n, op == WEFT_OP_cumsum);
    if (op != WEFT_OP_cumsum && op != WEFT_OP_cumprod) /* the least and the largest number of the type */
        return WEFT_NO_VALUE;
    return number(r, n, op == WEFT_OP_cumprod);
}

/* --- movement ----------------------------------------------------------------------------------------------------- */

/* Axes of extent 1 are left out, and so are those that the operand has turned already. */
static weft_val flip_less(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, first_of(r, n));
    const bool twice = weft_opcode_of(g, inner) == WEFT_OP_flip;
    const weft_val x = twice ? weft_operand(g, inner, 0) : first_of(r, n);
    const struct weft_type *type = weft_type_of(g, x);
    bool turned[WEFT_MAX_RANK] = {false};
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    for (unsigned i = 0; i < axes->count; i++)
        turned[weft_dim_value(axes->integers[i])] = true;
    const struct weft_attr *before = twice ? weft_attr_find(g, inner, WEFT_ATTR_axes) : NULL;
    for (unsigned i = 0; before && i < before->count; i++)
        turned[weft_dim_value(before->integers[i])] ^= true;
    int64_t left[WEFT_MAX_RANK];
    unsigned count = 0;
    for (unsigned i = 0; i < type->rank; i++)
        if (turned[i] && !weft_dim_is(type->extent[i], 1))
            left[count++] = i;
    if (count == 0)
        return weft_rewrite_to(r, x);
    if ((!twice && count == axes->count) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_attr attr = weft_attr_of_ints(g, WEFT_ATTR_axes, count, left);
    return weft_build(&r->build, WEFT_OP_flip, 1, &x, 1, &attr, NULL);
}

/* a <= b for all sizes? */
static bool at_most(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    int64_t low, high;
    weft_dims_try(dims);
    weft_dim_range(dims, weft_dim_sub(dims, b, a), &low, &high);
    return !weft_dims_tried(dims) && low >= 0;
}

/* Column less row goes from 1 - rows to columns - 1. */
static weft_val triangle_whole(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_type type = result_type(r, n);
    const weft_dim diagonal = weft_attr_dim(g, n, WEFT_ATTR_diagonal), one = weft_dim_of(1);
    const weft_dim least = weft_dim_sub(g->dims, one, type.extent[type.rank - 2]);
    const weft_dim most = weft_dim_sub(g->dims, type.extent[type.rank - 1], one);
    const bool upper = weft_attr_int(g, n, WEFT_ATTR_upper) != 0;
    if (upper ? at_most(g->dims, diagonal, least) : at_most(g->dims, most, diagonal))
        return to_first(r, n);
    const weft_dim next = weft_dim_add(g->dims, diagonal, one), before = weft_dim_sub(g->dims, diagonal, one);
    const bool none = upper ? at_most(g->dims, most, before) : at_most(g->dims, next, least);
    return none && !weft_dtype_is_storage_only(type.dtype) ? number(r, n, 0) : WEFT_NO_VALUE;
}

static weft_val part_is_all(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_type type = result_type(r, n);
    const bool update = weft_opcode_of(g, n) == WEFT_OP_dynamic_update; /* it is moved inwards: to the beginning */
    return weft_type_same(type_at(g, n, update ? 1 : 0), &type) ? weft_rewrite_to(r, weft_operand(g, n, update ? 1 : 0))
                                                                : WEFT_NO_VALUE;
}

static weft_val scatter_nothing(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_type *index = type_at(g, n, 1);
    const unsigned count = index->rank - (weft_opcode_of(g, n) == WEFT_OP_scatter_nd); /* the last holds one place */
    for (unsigned i = 0; i < count; i++)
        if (weft_dim_is(index->extent[i], 0))
            return to_first(r, n);
    return WEFT_NO_VALUE;
}

static weft_val reverse_one(struct weft_rewriting *r, weft_node n)
{
    struct weft_element length;
    const bool known = weft_const_splat(r->graph, weft_operand(r->graph, n, 1), &length) &&
                       type_at(r->graph, n, 1)->dtype != WEFT_U64;
    return is_one_along(r->graph, n) || (known && length.integer <= 1) ? to_first(r, n) : WEFT_NO_VALUE;
}

#define MOST_PLACES 4096

/* Is every element of an index its own place along the axis? */
static bool counts_along(const struct weft_graph *g, weft_val index, int64_t axis)
{
    const weft_node def = weft_def(g, index);
    const struct weft_type *type = weft_type_of(g, index);
    const bool repeated = weft_opcode_of(g, def) == WEFT_OP_bcast;
    const weft_node source = repeated ? weft_def(g, weft_operand(g, def, 0)) : def;
    if (weft_dtype_bits(type->dtype) < 32)
        return false;
    if (weft_opcode_of(g, source) == WEFT_OP_iota) {
        const int64_t along = weft_attr_int(g, source, WEFT_ATTR_axis);
        return repeated ? weft_dim_is(weft_attr_at(g, def, WEFT_ATTR_dims, (unsigned)along), axis) : along == axis;
    }
    const void *data = weft_const_data(g, index);
    if (!data || weft_dim_value(weft_type_elements(g->dims, type)) > MOST_PLACES)
        return false;
    int64_t inner = 1;
    for (int i = type->rank - 1; i > axis; i--)
        inner *= weft_dim_value(type->extent[i]);
    const int64_t extent = weft_dim_value(type->extent[axis]), n = weft_dim_value(weft_type_elements(g->dims, type));
    for (int64_t i = 0; i < n; i++)
        if (weft_load_integer(type->dtype, data, i) != i / inner % extent)
            return false;
    return true;
}

static weft_val gather_elements_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_type type = result_type(r, n);
    return weft_type_same(type_at(g, n, 0), &type) &&
                   counts_along(g, weft_operand(g, n, 1), weft_attr_int(g, n, WEFT_ATTR_axis))
               ? to_first(r, n) : WEFT_NO_VALUE;
}

/* --- bounds, bits ------------------------------------------------------------------------------------------------- */

/* Is the number as far up (down) as numbers of the type go, infinities included? */
static bool is_end(int dtype, double bound, bool up)
{
    if (isnan(bound))
        return true; /* and does nothing */
    if (weft_dtype_is_float(dtype)) {
        int64_t packed = 0;
        weft_store_real(dtype, &packed, 0, bound);
        return isinf(weft_load_real(dtype, &packed, 0)) && (bound > 0) == up;
    }
    const int bits = dtype == WEFT_BOOL ? 1 : (int)weft_dtype_bits(dtype), sign = weft_dtype_is_signed(dtype);
    return up ? bound >= ldexp(1, bits - sign) - (bits < 53) : bound <= (sign ? -ldexp(1, bits - 1) : 0);
}

static weft_val clamp_wide(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const struct weft_attr *low = weft_attr_find(g, n, WEFT_ATTR_low), *high = weft_attr_find(g, n, WEFT_ATTR_high);
    const int dtype = result_type(r, n).dtype;
    const bool below = low && is_end(dtype, low->real, false), above = high && is_end(dtype, high->real, true);
    if ((below || !low) && (above || !high))
        return to_first(r, n);
    if ((!below && !above) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_drop_attr(g, n, below ? WEFT_ATTR_low : WEFT_ATTR_high);
    return weft_result(g, n, 0);
}

static weft_val extreme_wide(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    struct weft_element bound;
    if (!weft_const_splat(g, weft_operand(g, n, 1), &bound) || bound.is_integer || !isinf(bound.real) ||
        (bound.real > 0) != (weft_opcode_of(g, n) == WEFT_OP_min))
        return WEFT_NO_VALUE;
    return to_first(r, n);
}

/* Each element is true where a number below 1, and not below 0, is less than it. */
static weft_val bernoulli_sure(struct weft_rewriting *r, weft_node n)
{
    struct weft_element p;
    if (!weft_const_splat(r->graph, first_of(r, n), &p) || !(p.real >= 1 || p.real <= 0))
        return WEFT_NO_VALUE;
    return number(r, n, p.real >= 1);
}

/* The bits stay: only the last dtype counts. */
static weft_val bitcast_bitcast(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, first_of(r, n));
    const bool twice = weft_opcode_of(g, inner) == WEFT_OP_bitcast;
    const weft_val x = twice ? weft_operand(g, inner, 0) : first_of(r, n);
    const struct weft_type type = result_type(r, n);
    if (weft_type_of(g, x)->dtype == type.dtype)
        return weft_rewrite_to(r, x);
    return twice && weft_rewrite_begin(r) ? weft_build(&r->build, WEFT_OP_bitcast, 1, &x, 0, NULL, &type)
                                          : WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"resize_same",       WEFT_OP_resize,           resize_same,     "no element moves"},
    {"max_pool_one",      WEFT_OP_max_pool,         pool_one,        "every window is one element"},
    {"mean_pool_one",     WEFT_OP_mean_pool,        pool_one,        "every window is one element"},
    {"norm_pool_one",     WEFT_OP_norm_pool,        pool_one,        "every window is one element"},
    {"max_pool_steps",    WEFT_OP_max_pool,         pool_steps,      "windows of one element that leave some out"},
    {"mean_pool_steps",   WEFT_OP_mean_pool,        pool_steps,      "windows of one element that leave some out"},
    {"norm_pool_steps",   WEFT_OP_norm_pool,        pool_steps,      "windows of one element that leave some out"},
    {"col2im_one",        WEFT_OP_col2im,           col2im_one,      "no windows overlap"},
    {"sum_one",           WEFT_OP_sum,              reduce_one,      "there is one term"},
    {"mean_one",          WEFT_OP_mean,             reduce_one,      "there is one term"},
    {"prod_one",          WEFT_OP_prod,             reduce_one,      "there is one factor"},
    {"reduce_max_one",    WEFT_OP_reduce_max,       reduce_one,      "there is one element"},
    {"reduce_min_one",    WEFT_OP_reduce_min,       reduce_one,      "there is one element"},
    {"any_one",           WEFT_OP_any,              reduce_one,      "there is one element"},
    {"all_one",           WEFT_OP_all,              reduce_one,      "there is one element"},
    {"arg_max_one",       WEFT_OP_arg_max,          arg_one,         "there is one element"},
    {"arg_min_one",       WEFT_OP_arg_min,          arg_one,         "there is one element"},
    {"cumsum_one",        WEFT_OP_cumsum,           scan_one,        "there is one term"},
    {"cumprod_one",       WEFT_OP_cumprod,          scan_one,        "there is one factor"},
    {"cummax_one",        WEFT_OP_cummax,           scan_one,        "there is one element"},
    {"cummin_one",        WEFT_OP_cummin,           scan_one,        "there is one element"},
    {"flip_less",         WEFT_OP_flip,             flip_less,       "these axes stay as they are"},
    {"triangle_whole",    WEFT_OP_triangle,         triangle_whole,  "all is on one side of the diagonal"},
    {"slice_all",         WEFT_OP_dynamic_slice,    part_is_all,     "the part is as large as the whole"},
    {"update_all",        WEFT_OP_dynamic_update,   part_is_all,     "the part is as large as the whole"},
    {"scatter_elements_nothing", WEFT_OP_scatter_elements, scatter_nothing, "there are no updates"},
    {"scatter_nd_nothing", WEFT_OP_scatter_nd,      scatter_nothing, "there are no updates"},
    {"reverse_one",       WEFT_OP_reverse_sequence, reverse_one,     "one element is its own reverse"},
    {"gather_elements_same", WEFT_OP_gather_elements, gather_elements_same, "each element finds itself"},
    {"bernoulli_sure",    WEFT_OP_bernoulli,        bernoulli_sure,  "all are sure, or none is"},
    {"clamp_wide",        WEFT_OP_clamp,            clamp_wide,      "no number is beyond this bound"},
    {"min_infinite",      WEFT_OP_min,              extreme_wide,    "no number is larger"},
    {"max_infinite",      WEFT_OP_max,              extreme_wide,    "no number is smaller"},
    {"bitcast_bitcast",   WEFT_OP_bitcast,          bitcast_bitcast, "only the last type counts"},
};
const struct weft_rule_set weft_canonicalize_identities = WEFT_RULE_SET(rules);
