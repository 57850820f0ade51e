/* SPDX-License-Identifier: Apache-2.0 */
/* draw_looked.c: what is put together, turned around or repeated, and computed with: operands of kernels that look
 * elements up. Pieces are parameters, mostly, as where there is nothing that could compute them in place; elementwise
 * ops and a reduction or scan follow. Random ops seldom meet so, and their values are short.
 *
 * Drawn behind all else, so that graphs of earlier seeds begin as they did. */
#include "tests/property/random_graph.h"

enum { LONG_LINE = 45, SHORT_LINE = 5 };

static weft_val make(struct weft_maker *m, int op, unsigned operands, const weft_val *x, unsigned attrs,
                     const struct weft_attr *attr, const struct weft_type *stated)
{
    return weft_draw_made(m, weft_emit(m, op, operands, x, attrs, attr, stated));
}

/* What nodes find in data is no size of a parameter. */
static bool is_found(const struct weft_maker *m, weft_dim dim)
{
    bool found = false;
    for (uint32_t s = 0; s < weft_symbol_count(m->graph->dims); s++)
        found |= weft_symbol_at(m->graph->dims, s)->data && weft_dim_mentions(m->graph->dims, dim, s);
    return found;
}

static weft_dim draw_extent(struct weft_maker *m, bool is_long)
{
    const weft_dim dim = weft_draw(m, 8) == 7 ? weft_draw_dim(m) : weft_dim_of(0);
    if (!weft_dim_is(dim, 0) && !is_found(m, dim))
        return dim;
    return weft_dim_of(1 + weft_draw(m, is_long ? LONG_LINE : SHORT_LINE));
}

static struct weft_type draw_type(struct weft_maker *m)
{
    static const uint8_t dtypes[] = {WEFT_F32, WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_F32, WEFT_BOOL, WEFT_I32, WEFT_F64};
    struct weft_type type = {.dtype = dtypes[weft_draw(m, 8)], .rank = (uint8_t)(1 + weft_draw(m, 4))};
    for (int i = 0; i < type.rank; i++)
        type.extent[i] = draw_extent(m, i + 1 == type.rank || weft_draw(m, 4) == 3);
    return type;
}

/* A parameter, as it is or seen in another order; an earlier value, if there is one. */
static weft_val draw_source(struct weft_maker *m, const struct weft_type *type)
{
    const unsigned how = weft_draw(m, 6);
    if (how == 5)
        return weft_obtain(m, type);
    if (how < 4 || type->rank < 2) {
        const weft_val v = weft_add_param(m->graph, NULL, type);
        weft_keep_value(m, v);
        return v;
    }
    struct weft_type turned = *type;
    int64_t perm[WEFT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        perm[i] = (i + type->rank - 1) % type->rank; /* channels last */
        turned.extent[perm[i]] = type->extent[i];
    }
    const weft_val v = weft_add_param(m->graph, NULL, &turned);
    weft_keep_value(m, v);
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_perm, type->rank, perm);
    return make(m, WEFT_OP_transpose, 1, &v, 1, &attr, NULL);
}

static weft_val join(struct weft_maker *m)
{
    enum { MOST = 6 };
    struct weft_type type = draw_type(m);
    weft_val piece[MOST];
    const unsigned pieces = 2 + weft_draw(m, MOST - 1);
    const int axis = (int)weft_draw(m, type.rank);
    for (unsigned i = 0; i < pieces; i++) {
        if (i > 0 && weft_draw(m, 6) == 5) {
            piece[i] = piece[0];
            continue;
        }
        type.extent[axis] = draw_extent(m, axis + 1 == type.rank);
        piece[i] = draw_source(m, &type);
        if (!piece[i].id)
            return piece[i];
    }
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return make(m, WEFT_OP_concat, pieces, piece, 1, &attr, NULL);
}

static weft_val flip(struct weft_maker *m)
{
    const struct weft_type type = draw_type(m);
    const weft_val x = draw_source(m, &type);
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    for (int i = 0; i < type.rank; i++)
        if (weft_draw(m, 2) || (i + 1 == type.rank && axes == 0))
            axis[axes++] = i;
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, axes, axis);
    return x.id ? make(m, WEFT_OP_flip, 1, &x, 1, &attr, NULL) : x;
}

/* By factors of 2 and 3, to any size, and half of it. */
static weft_val resize(struct weft_maker *m)
{
    static const char *const coordinates[] = {"asymmetric", "half_pixel", "half_pixel_symmetric", "align_corners",
                                              "pytorch_half_pixel", "tf_half_pixel_for_nn"};
    static const char *const nearest[] = {"floor", "prefer_floor", "prefer_ceil", "ceil"};
    const struct weft_type type = draw_type(m);
    struct weft_type to = type;
    const weft_val x = draw_source(m, &type);
    bool any = false;
    for (int i = 0; i < type.rank; i++) {
        const unsigned how = weft_draw(m, 5);
        any |= how > 0;
        if (how > 0 && how < 3)
            to.extent[i] = weft_dim_mul(m->graph->dims, type.extent[i], weft_dim_of(1 + (int64_t)how));
        else if (how > 2)
            to.extent[i] = how == 4 && weft_dim_is_constant(type.extent[i])
                               ? weft_dim_of(1 + weft_draw(m, LONG_LINE))
                               : weft_dim_ceil_div(m->graph->dims, type.extent[i], weft_dim_of(2));
    }
    if (!any)
        to.extent[type.rank - 1] = weft_dim_mul(m->graph->dims, type.extent[type.rank - 1], weft_dim_of(2));
    const struct weft_attr attr[] = {
        weft_attr_of_word(WEFT_ATTR_form, "nearest"),
        weft_attr_of_word(WEFT_ATTR_coordinates, coordinates[weft_draw(m, 3) ? weft_draw(m, 2) : weft_draw(m, 6)]),
        weft_attr_of_word(WEFT_ATTR_nearest, nearest[weft_draw(m, 4)])};
    return x.id ? make(m, WEFT_OP_resize, 1, &x, 3, attr, &to) : x;
}

static weft_val draw_looked_up(struct weft_maker *m)
{
    const unsigned how = weft_draw(m, 4);
    return how < 2 ? join(m) : how == 2 ? flip(m) : resize(m);
}

static weft_val compute(struct weft_maker *m, weft_val x)
{
    static const int real[] = {WEFT_OP_add, WEFT_OP_mul, WEFT_OP_sigmoid, WEFT_OP_sub, WEFT_OP_relu, WEFT_OP_exp};
    static const int whole[] = {WEFT_OP_add, WEFT_OP_mul, WEFT_OP_sub, WEFT_OP_max, WEFT_OP_add, WEFT_OP_neg};
    static const int logic[] = {WEFT_OP_and, WEFT_OP_or, WEFT_OP_xor, WEFT_OP_and, WEFT_OP_not, WEFT_OP_not};
    const struct weft_type type = *weft_drawn_type(m, x);
    const bool is_real = weft_dtype_is_float(type.dtype);
    const int op = (is_real ? real : type.dtype == WEFT_BOOL ? logic : whole)[weft_draw(m, 6)];
    const bool two = weft_ops[op].min_operands == 2;
    const weft_val both[] = {x, two ? weft_obtain(m, &type) : WEFT_NO_VALUE};
    if (two && !both[1].id)
        return x;
    const weft_val y = make(m, op, 1 + two, both, 0, NULL, NULL);
    return y.id ? y : x;
}

static weft_val finish(struct weft_maker *m, weft_val x)
{
    static const int real[] = {WEFT_OP_sum, WEFT_OP_reduce_max, WEFT_OP_mean, WEFT_OP_layer_norm, WEFT_OP_softmax,
                               WEFT_OP_cumsum};
    static const int whole[] = {WEFT_OP_sum, WEFT_OP_reduce_max, WEFT_OP_reduce_min, WEFT_OP_sum, WEFT_OP_cummax,
                                WEFT_OP_cumsum};
    const struct weft_type *const type = weft_drawn_type(m, x);
    const bool is_real = weft_dtype_is_float(type->dtype);
    const int op = type->dtype == WEFT_BOOL ? WEFT_OP_any : (is_real ? real : whole)[weft_draw(m, 6)];
    const int64_t axis = weft_draw(m, 3) == 2 ? weft_draw_axis(m, x) : type->rank - 1;
    if (weft_attr_spec_find(op, WEFT_ATTR_axis)) {
        const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
        return make(m, op, 1, &x, 1, &attr, NULL);
    }
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, 1, &axis);
    return make(m, op, 1, &x, 1, &attr, NULL);
}

static void compute_with(struct weft_maker *m)
{
    const weft_val x = draw_looked_up(m);
    if (!x.id || !weft_draw_fits(m, weft_drawn_type(m, x)))
        return;
    weft_val y = x;
    for (unsigned i = weft_draw(m, 4); i > 0; i--)
        y = compute(m, y);
    const weft_val z = weft_draw(m, 2) ? finish(m, y) : WEFT_NO_VALUE;
    const weft_val end[] = {z.id ? z : y, weft_draw(m, 4) == 3 ? y : WEFT_NO_VALUE,
                            weft_draw(m, 5) == 4 ? x : WEFT_NO_VALUE};
    for (int i = 0; i < 3; i++)
        if (end[i].id && !weft_value_of(m->graph, end[i])->returns)
            weft_add_return(m->graph, end[i], WEFT_NO_VALUE);
}

void weft_draw_looked(struct weft_maker *m)
{
    const uint32_t params = m->graph->params;
    if (weft_draw(m, 3) != 2)
        return;
    compute_with(m);
    for (uint32_t p = params; p < m->graph->params; p++)
        if (weft_value_of(m->graph, m->graph->param[p])->is_mut)
            weft_add_return(m->graph, m->graph->param[p], m->graph->param[p]);
}
