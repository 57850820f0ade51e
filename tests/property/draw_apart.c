/* SPDX-License-Identifier: Apache-2.0 */
/* draw_apart.c: values that are taken apart and put together in another way, as models roll windows and turn halves and
 * pairs. Random ops seldom make these by themselves, since the pieces have to fit.
 *
 * Drawn behind all else, so that graphs of earlier seeds begin as they did. */
#include "tests/property/random_graph.h"

static weft_val cut(struct weft_maker *m, weft_val x, int axis, weft_dim from, weft_dim to, int64_t by)
{
    const struct weft_type type = *weft_drawn_type(m, x);
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        start[i] = i == axis ? from : weft_dim_of(0);
        end[i] = i == axis ? to : type.extent[i];
        step[i] = weft_dim_of(i == axis ? by : 1);
    }
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, type.rank, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, type.rank, end),
                                     weft_attr_of_dims(WEFT_ATTR_step, type.rank, step)};
    return weft_draw_made(m, weft_emit(m, WEFT_OP_slice, 1, &x, 3, attr, NULL));
}

static weft_val join(struct weft_maker *m, weft_val a, weft_val b, int axis)
{
    const weft_val both[] = {a, b};
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return a.id && b.id ? weft_draw_made(m, weft_emit(m, WEFT_OP_concat, 2, both, 1, &attr, NULL)) : WEFT_NO_VALUE;
}

static weft_val binary(struct weft_maker *m, int op, weft_val a, weft_val b)
{
    const weft_val both[] = {a, b};
    return a.id && b.id ? weft_draw_made(m, weft_emit(m, op, 2, both, 0, NULL, NULL)) : WEFT_NO_VALUE;
}

static weft_val reshaped(struct weft_maker *m, weft_val x, const struct weft_type *type)
{
    return x.id ? weft_draw_made(m, weft_emit(m, WEFT_OP_reshape, 1, &x, 0, NULL, type)) : WEFT_NO_VALUE;
}

/* Along up to three axes, one behind the other; or every second element stands in front. */
static weft_val roll(struct weft_maker *m, weft_val x)
{
    const unsigned times = 1 + weft_draw(m, 3);
    for (unsigned i = 0; i < times && x.id; i++) {
        const int axis = weft_draw_axis(m, x);
        const weft_dim extent = weft_drawn_type(m, x)->extent[axis];
        const weft_dim at = weft_dim_of(weft_draw(m, (unsigned)weft_least(m, extent) + 1));
        const bool every_second = weft_draw(m, 3) == 2;
        const weft_val first = cut(m, x, axis, weft_dim_of(0), every_second ? extent : at, every_second ? 2 : 1);
        const weft_val rest = cut(m, x, axis, every_second ? weft_dim_of(1) : at, extent, every_second ? 2 : 1);
        x = join(m, rest, first, axis);
    }
    return x;
}

/* The reader of what was turned: t * a + x * b. */
static weft_val turn(struct weft_maker *m, weft_val t, weft_val x)
{
    const struct weft_type type = *weft_drawn_type(m, x);
    const weft_val u = binary(m, WEFT_OP_mul, t, weft_obtain(m, &type));
    return weft_draw(m, 2) ? binary(m, WEFT_OP_add, u, binary(m, WEFT_OP_mul, x, weft_obtain(m, &type))) : u;
}

static weft_val turn_halves(struct weft_maker *m, weft_val x, int axis)
{
    const weft_dim extent = weft_drawn_type(m, x)->extent[axis];
    const weft_dim half = weft_dim_div(m->graph->dims, extent, weft_dim_of(2));
    const weft_val b = cut(m, x, axis, half, extent, 1);
    const weft_val n = b.id ? weft_draw_made(m, weft_emit(m, WEFT_OP_neg, 1, &b, 0, NULL, NULL)) : b;
    const weft_val t = join(m, n, cut(m, x, axis, weft_dim_of(0), half, 1), axis);
    return t.id && weft_type_same(weft_drawn_type(m, t), weft_drawn_type(m, x)) ? turn(m, t, x) : t;
}

/* Of an axis whose extent is twice another. */
static weft_val turn_pairs(struct weft_maker *m, weft_val x, int axis)
{
    const struct weft_type whole = *weft_drawn_type(m, x);
    weft_dim half;
    if (whole.rank == WEFT_MAX_RANK ||
        !weft_dim_divides(m->graph->dims, whole.extent[axis], weft_dim_of(2), &half))
        return WEFT_NO_VALUE;
    struct weft_type one = whole;
    one.rank++;
    one.extent[axis] = half;
    for (int i = axis + 1; i < one.rank; i++)
        one.extent[i] = i == axis + 1 ? weft_dim_of(1) : whole.extent[i - 1];
    const weft_val a = cut(m, x, axis, weft_dim_of(1), whole.extent[axis], 2);
    const weft_val b = cut(m, x, axis, weft_dim_of(0), whole.extent[axis], 2);
    const weft_val n = a.id ? weft_draw_made(m, weft_emit(m, WEFT_OP_neg, 1, &a, 0, NULL, NULL)) : a;
    const weft_val second = reshaped(m, b, &one), first = reshaped(m, n, &one);
    const weft_val t = reshaped(m, join(m, first, second, axis + 1), &whole);
    return t.id ? turn(m, t, x) : t;
}

void weft_draw_apart(struct weft_maker *m)
{
    if (weft_draw(m, 3) != 2)
        return;
    const uint32_t params = m->graph->params;
    weft_val x = m->value[weft_draw(m, (unsigned)m->values)];
    const struct weft_type *const type = weft_drawn_type(m, x);
    if (type->rank == 0)
        return;
    const unsigned how = weft_dtype_is_float(type->dtype) && weft_dtype_bits(type->dtype) >= 16 ? weft_draw(m, 3) : 0;
    const int axis = weft_draw_axis(m, x);
    x = how == 0 ? roll(m, x) : how == 1 ? turn_halves(m, x, axis) : turn_pairs(m, x, axis);
    if (x.id && !weft_value_of(m->graph, x)->returns)
        weft_add_return(m->graph, x, WEFT_NO_VALUE);
    for (uint32_t p = params; p < m->graph->params; p++)
        if (weft_value_of(m->graph, m->graph->param[p])->is_mut)
            weft_add_return(m->graph, m->graph->param[p], m->graph->param[p]);
}
