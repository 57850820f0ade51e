/* SPDX-License-Identifier: Apache-2.0 */
/* index_reshape.c: the index map of a reshape: axes of operand and result as products of common factors.
 *
 *   %y: f32[6,4] = reshape %x: f32[2,12]          space a0 in 2, a1 in 3, a2 in 4
 *                                                 %y [3·a0 + a1, a2]   %x [a0, 4·a1 + a2]
 *
 * Both are walked from the outermost axis on. Of what is left of an axis on either side, the smaller is a factor if it
 * divides the larger for all sizes. Where neither divides the other ([4,6] and [6,4]), axes are taken on both sides
 * until the products agree; the result's are axes of the space then, and indices of the operand are near all of
 * them. */
#include "ir/index_rules.h"

/* One side. */
struct side {
    const struct weft_type *type;
    int axis;         /* the one that is being taken apart */
    weft_dim left;    /* what is left of it */
    bool is_asked;    /* its map is asked for */
};

static void enter(struct side *s)
{
    while (s->axis < s->type->rank && weft_dim_is(s->type->extent[s->axis], 1))
        s->axis++;
    s->left = s->axis < s->type->rank ? s->type->extent[s->axis] : weft_dim_of(1);
}

static void leave(struct side *s)
{
    s->axis++;
    enter(s);
}

/* Axis `axis` of the space is the next factor; behind it, `left` of the side's axis is left. */
static void take(struct weft_indexing *r, struct side *s, int axis, weft_dim left)
{
    if (s->is_asked)
        weft_index_term(r, s->axis, axis, left);
    s->left = left;
    if (weft_dim_is(left, 1))
        leave(s);
}

/* Takes axes on both sides until their products agree, as few as do; all that are left where none do. */
static void take_block(struct weft_indexing *r, struct side *x, struct side *y)
{
    struct weft_dims *dims = r->graph->dims;
    int last_x = x->type->rank - 1, last_y = y->type->rank - 1, first = r->space.axes;
    weft_dim product_x = x->left;
    for (int i = x->axis; i < x->type->rank && last_x == x->type->rank - 1; i++) {
        product_x = i > x->axis ? weft_dim_mul(dims, product_x, x->type->extent[i]) : product_x;
        weft_dim product_y = y->left;
        for (int j = y->axis; j < y->type->rank; j++) {
            product_y = j > y->axis ? weft_dim_mul(dims, product_y, y->type->extent[j]) : product_y;
            if (weft_dim_same(product_x, product_y)) {
                last_x = i, last_y = j;
                break;
            }
        }
    }
    for (; y->axis <= last_y && y->axis < y->type->rank; leave(y)) {
        const int axis = weft_space_add(r, y->left, WEFT_AXIS_PARALLEL);
        if (y->is_asked)
            weft_index_is(r, y->axis, axis);
    }
    for (; x->axis <= last_x && x->axis < x->type->rank; leave(x)) {
        for (int axis = first; x->is_asked && axis < r->space.axes; axis++)
            weft_index_is(r, x->axis, axis);
        if (x->is_asked)
            r->map.at[x->axis].is_near = true;
    }
}

void weft_index_reshape(struct weft_indexing *r)
{
    struct weft_dims *dims = r->graph->dims;
    struct side x = {.type = weft_index_type(r, 0), .is_asked = weft_index_is_operand(r, 0)};
    struct side y = {.type = weft_index_result_type(r), .is_asked = weft_index_is_result(r)};
    enter(&x);
    enter(&y);
    while (x.axis < x.type->rank || y.axis < y.type->rank) {
        const bool empty = weft_dim_is(x.left, 0) || weft_dim_is(y.left, 0);
        weft_dim quotient = weft_dim_of(0);
        if (weft_dim_same(x.left, y.left)) {
            const int axis = weft_space_add(r, x.left, WEFT_AXIS_PARALLEL);
            take(r, &x, axis, weft_dim_of(1));
            take(r, &y, axis, weft_dim_of(1));
        } else if (!empty && x.axis < x.type->rank && y.axis < y.type->rank &&
                   weft_dim_divides(dims, x.left, y.left, &quotient)) {
            const int axis = weft_space_add(r, y.left, WEFT_AXIS_PARALLEL);
            take(r, &x, axis, quotient);
            take(r, &y, axis, weft_dim_of(1));
        } else if (!empty && x.axis < x.type->rank && y.axis < y.type->rank &&
                   weft_dim_divides(dims, y.left, x.left, &quotient)) {
            const int axis = weft_space_add(r, x.left, WEFT_AXIS_PARALLEL);
            take(r, &x, axis, weft_dim_of(1));
            take(r, &y, axis, quotient);
        } else {
            take_block(r, &x, &y);
        }
    }
}
