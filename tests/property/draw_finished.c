/* SPDX-License-Identifier: Apache-2.0 */
/* draw_finished.c: what stands behind a contraction: chains of elementwise ops, of which any value may have other
 * readers; second sweeps over the same results; casts; reductions and norms of rows. */
#include "tests/property/random_graph.h"

static weft_val make(struct weft_maker *m, int op, unsigned operands, weft_val x, weft_val y, unsigned attrs,
                     const struct weft_attr *attr, const struct weft_type *stated)
{
    return weft_draw_made(m, weft_emit(m, op, operands, (const weft_val[]){x, y}, attrs, attr, stated));
}

/* One op further, or where it was. */
static weft_val go_on(struct weft_maker *m, weft_val x)
{
    static const int ops[] = {WEFT_OP_add, WEFT_OP_relu, WEFT_OP_sigmoid, WEFT_OP_mul, WEFT_OP_silu, WEFT_OP_sub};
    const int op = ops[weft_draw(m, 6)];
    const bool two = op == WEFT_OP_add || op == WEFT_OP_mul || op == WEFT_OP_sub;
    const struct weft_type type = *weft_drawn_type(m, x);
    const weft_val y = make(m, op, 1 + two, x, two ? weft_obtain(m, &type) : WEFT_NO_VALUE, 0, NULL, NULL);
    return y.id ? y : x;
}

static void narrow(struct weft_maker *m, weft_val x)
{
    static const uint8_t dtypes[] = {WEFT_BF16, WEFT_F16, WEFT_F64, WEFT_I8, WEFT_BOOL};
    struct weft_type type = *weft_drawn_type(m, x);
    type.dtype = dtypes[weft_draw(m, 5)];
    make(m, WEFT_OP_cast, 1, x, WEFT_NO_VALUE, 0, NULL, &type);
}

/* By the numbers of rows, mostly; of another axis now and then, which no row has whole. */
static void reduce(struct weft_maker *m, weft_val x)
{
    static const int ops[] = {WEFT_OP_sum, WEFT_OP_reduce_max, WEFT_OP_mean, WEFT_OP_layer_norm, WEFT_OP_softmax};
    const int op = ops[weft_draw(m, 5)], rank = weft_drawn_type(m, x)->rank;
    const int64_t axis = weft_draw(m, 5) == 4 ? weft_draw_axis(m, x) : rank - 1;
    if (op == WEFT_OP_layer_norm || op == WEFT_OP_softmax) {
        const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
        make(m, op, 1, x, WEFT_NO_VALUE, 1, &attr, NULL);
        return;
    }
    const struct weft_attr attr[] = {weft_attr_of_ints(m->graph, WEFT_ATTR_axes, 1, &axis),
                                     weft_attr_of_int(WEFT_ATTR_keepdims, weft_draw(m, 2))};
    make(m, op, 1, x, WEFT_NO_VALUE, 2, attr, NULL);
}

void weft_draw_finished(struct weft_maker *m, weft_node contraction)
{
    const weft_val c = weft_draw_made(m, contraction);
    if (!c.id || weft_drawn_type(m, c)->dtype != WEFT_F32 || weft_draw(m, 2) == 0)
        return;
    weft_val x = c;
    for (unsigned i = weft_draw(m, 4); i > 0; i--)
        x = go_on(m, x);
    for (unsigned ends = 1 + weft_draw(m, 2); ends > 0; ends--) {
        const unsigned how = weft_draw(m, 4);
        if (how == 0)
            go_on(m, c);
        else if (how == 1)
            narrow(m, x);
        else
            reduce(m, how == 2 ? x : c);
    }
}
