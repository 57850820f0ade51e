/* SPDX-License-Identifier: Apache-2.0 */
/* draw_movement.c: views, movement, what is found by an index, and results as large as the data says. */
#include "tests/property/random_graph.h"

#include <stdio.h>

static struct weft_attr dims_attr(int key, unsigned n, const weft_dim *list) { return weft_attr_of_dims(key, n, list); }

/* --- views -------------------------------------------------------------------------------------------------------- */

void weft_draw_transpose(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    const int rank = weft_drawn_type(m, x)->rank;
    int64_t perm[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = 1; i < rank; i++) {
        const unsigned other = weft_draw(m, (unsigned)i + 1); /* 0: swap with the first */
        const int64_t kept = perm[i];
        perm[i] = perm[other];
        perm[other] = kept;
    }
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_perm, (unsigned)rank, perm);
    weft_emit(m, op, 1, &x, 1, &attr, NULL);
}

/* Neighbouring axes become one, one becomes two, ones come and go. */
void weft_draw_reshape(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    const struct weft_type from = *weft_drawn_type(m, x);
    struct weft_dims *dims = m->graph->dims;
    struct weft_type to = {.dtype = from.dtype};
    for (int i = 0; i < from.rank && to.rank < WEFT_MAX_RANK - 1; i++) {
        const unsigned how = weft_draw(m, 5);
        weft_dim quotient;
        if (how == 1 && to.rank > 0) {
            to.extent[to.rank - 1] = weft_dim_mul(dims, to.extent[to.rank - 1], from.extent[i]);
        } else if (how == 2 && weft_dim_divides(dims, from.extent[i], weft_dim_of(2), &quotient)) {
            to.extent[to.rank++] = weft_draw(m, 2) ? weft_dim_of(2) : quotient;
            to.extent[to.rank] = weft_dim_is(to.extent[to.rank - 1], 2) ? quotient : weft_dim_of(2);
            to.rank++;
        } else if (how == 3 && weft_dim_is(from.extent[i], 1)) {
            continue;
        } else {
            to.extent[to.rank++] = from.extent[i];
            if (how == 4 && to.rank < WEFT_MAX_RANK - 1)
                to.extent[to.rank++] = weft_dim_of(1);
        }
    }
    weft_emit(m, op, 1, &x, 0, NULL, &to);
}

/* Along new axes, along those of extent 1, and in another order. */
void weft_draw_bcast(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, 4);
    const struct weft_type from = *weft_drawn_type(m, x);
    struct weft_type to = {.dtype = from.dtype};
    int64_t dims[WEFT_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        if (weft_draw(m, 3) == 2 && to.rank < 6)
            to.extent[to.rank++] = weft_draw_dim(m);
        dims[i] = to.rank;
        to.extent[to.rank++] = weft_dim_is(from.extent[i], 1) ? weft_draw_dim(m) : from.extent[i];
    }
    if (weft_draw(m, 2) || to.rank == 0)
        to.extent[to.rank++] = weft_draw_dim(m);
    if (from.rank > 1 && weft_draw(m, 4) == 3) {
        const int64_t first = dims[0];
        const weft_dim extent = to.extent[first];
        to.extent[first] = to.extent[dims[1]];
        to.extent[dims[1]] = extent;
        dims[0] = dims[1];
        dims[1] = first;
    }
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_dims, from.rank, dims);
    weft_emit(m, op, 1, &x, 1, &attr, &to);
}

void weft_draw_slice(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    const struct weft_type type = *weft_drawn_type(m, x);
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        const unsigned how = weft_draw(m, 5), least = (unsigned)weft_least(m, type.extent[i]);
        if (how == 4) { /* a half, which is an expression where the extent is one */
            const weft_dim half = weft_dim_div(m->graph->dims, type.extent[i], weft_dim_of(2));
            const bool second = weft_draw(m, 2);
            start[i] = second ? half : weft_dim_of(0);
            end[i] = second ? type.extent[i] : half;
            step[i] = weft_dim_of(1 + weft_draw(m, 2));
            continue;
        }
        start[i] = weft_dim_of(how > 1 ? weft_draw(m, least + 1) : 0);
        end[i] = how == 3 ? weft_dim_of(weft_dim_value(start[i]) +
                                        weft_draw(m, least + 1 - (unsigned)weft_dim_value(start[i])))
                          : type.extent[i];
        step[i] = weft_dim_of(1 + (how == 1 ? weft_draw(m, 3) : 0));
    }
    const struct weft_attr attr[] = {dims_attr(WEFT_ATTR_start, type.rank, start),
                                     dims_attr(WEFT_ATTR_end, type.rank, end),
                                     dims_attr(WEFT_ATTR_step, type.rank, step)};
    weft_emit(m, op, 1, &x, 3, attr, NULL);
}

/* --- movement ----------------------------------------------------------------------------------------------------- */

void weft_draw_concat(struct weft_maker *m, int op)
{
    weft_val operand[4] = {weft_draw_value(m, WEFT_DRAW_ANY, 1, WEFT_MAX_RANK)};
    const int axis = weft_draw_axis(m, operand[0]);
    const unsigned operands = 1 + weft_draw(m, 4);
    for (unsigned i = 1; i < operands; i++) {
        struct weft_type type = *weft_drawn_type(m, operand[0]);
        if (weft_draw(m, 2))
            type.extent[axis] = weft_draw_dim(m);
        operand[i] = weft_draw(m, 3) ? weft_obtain(m, &type) : operand[0];
    }
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    weft_emit(m, op, operands, operand, 1, &attr, NULL);
}

void weft_draw_pad(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 1, 5);
    const struct weft_type *type = weft_drawn_type(m, x);
    const unsigned rank = type->rank;
    weft_dim pad[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < 2 * rank; i++)
        pad[i] = weft_dim_of(weft_draw(m, 2) ? (int64_t)weft_draw(m, 5) - 1 : 0);
    if (weft_draw(m, 4) == 3)
        pad[weft_draw(m, 2 * rank)] = weft_dim_div(m->graph->dims, weft_draw_dim(m), weft_dim_of(2));
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = dims_attr(WEFT_ATTR_pad, 2 * rank, pad);
    const weft_val with = weft_obtain_fixed(m, type->dtype, 0, NULL);
    weft_emit(m, op, 2, (const weft_val[]){x, with}, attrs, attr, NULL);
}

void weft_draw_flip(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    for (int i = 0; i < weft_drawn_type(m, x)->rank; i++)
        if (weft_draw(m, 2))
            axis[axes++] = i;
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, axes, axis);
    weft_emit(m, op, 1, &x, 1, &attr, NULL);
}

void weft_draw_diagonal(struct weft_maker *m, int op)
{
    const weft_dim n = weft_draw_dim(m), extent[] = {weft_draw_dim(m), n, n};
    const weft_val x = weft_obtain_with(m, weft_draw_dtype(m, WEFT_DRAW_ALL), 3, extent);
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, 2, (const int64_t[]){1, 2});
    weft_emit(m, op, 1, &x, 1, &attr, NULL);
}

void weft_draw_triangle(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 2, WEFT_MAX_RANK);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = weft_attr_of_int(WEFT_ATTR_diagonal, (int64_t)weft_draw(m, 6) - 2);
    weft_emit(m, op, 1, &x, attrs, attr, NULL);
}

void weft_draw_relayout(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    const weft_node node = weft_emit(m, op, 1, &x, 0, NULL, NULL);
    const int rank = weft_drawn_type(m, x)->rank;
    if (!node.id || rank == 0)
        return;
    int order[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    const struct weft_layout layout = weft_layout_order(rank, order);
    weft_set_value_layout(m->graph, weft_result(m->graph, node, 0), &layout);
}

/* --- by index ----------------------------------------------------------------------------------------------------- */

void weft_draw_gather(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 1, 4);
    const weft_val index = weft_draw_value(m, WEFT_DRAW_INTEGER, 0, 3);
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, weft_draw_axis(m, x));
    weft_emit(m, op, 2, (const weft_val[]){x, index}, 1, &attr, NULL);
}

void weft_draw_reverse_sequence(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 2, 5);
    const struct weft_type *type = weft_drawn_type(m, x);
    const unsigned axis = weft_draw(m, type->rank), batch = (axis + 1 + weft_draw(m, type->rank - 1u)) % type->rank;
    const weft_val length = weft_obtain_with(m, weft_draw_dtype(m, WEFT_DRAW_INTEGER), 1, &type->extent[batch]);
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_axis, axis),
                                     weft_attr_of_int(WEFT_ATTR_batch_axis, batch)};
    weft_emit(m, op, 2, (const weft_val[]){x, length}, 2, attr, NULL);
}

/* Also scatter_elements, which has the updates as a third operand. */
void weft_draw_gather_elements(struct weft_maker *m, int op)
{
    const bool scatter = op == WEFT_OP_scatter_elements;
    const weft_val x = weft_draw_value(m, scatter ? WEFT_DRAW_ALL : WEFT_DRAW_ANY, 1, 5);
    struct weft_type type = *weft_drawn_type(m, x);
    const int dtype = type.dtype, axis = weft_draw_axis(m, x);
    type.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_INTEGER);
    if (weft_draw(m, 2))
        type.extent[axis] = weft_draw_dim(m);
    const int other = weft_draw_axis(m, x);
    if (other != axis && weft_draw(m, 3) == 2)
        type.extent[other] = weft_dim_of(weft_draw(m, (unsigned)weft_least(m, type.extent[other]) + 1));
    weft_val operand[3] = {x, weft_obtain(m, &type)};
    type.dtype = (uint8_t)dtype;
    if (scatter)
        operand[2] = weft_obtain(m, &type);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = weft_attr_of_int(WEFT_ATTR_axis, axis);
    weft_emit(m, op, 2 + scatter, operand, attrs, attr, NULL);
}

/* Also scatter_nd. */
void weft_draw_gather_nd(struct weft_maker *m, int op)
{
    const bool scatter = op == WEFT_OP_scatter_nd;
    const weft_val x = weft_draw_value(m, scatter ? WEFT_DRAW_ALL : WEFT_DRAW_ANY, 1, 4);
    const struct weft_type from = *weft_drawn_type(m, x);
    struct weft_type index = {.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_INTEGER)}, update = {.dtype = from.dtype};
    const unsigned batch = scatter ? 0 : weft_draw(m, from.rank), length = 1 + weft_draw(m, from.rank - batch);
    for (unsigned i = 0; i < batch; i++)
        index.extent[index.rank++] = from.extent[i];
    if (weft_draw(m, 3))
        index.extent[index.rank++] = weft_draw_dim(m);
    for (int i = 0; i < index.rank; i++)
        update.extent[update.rank++] = index.extent[i];
    index.extent[index.rank++] = weft_dim_of(length);
    for (unsigned i = batch + length; i < from.rank; i++)
        update.extent[update.rank++] = from.extent[i];
    const weft_val operand[3] = {x, weft_obtain(m, &index), scatter ? weft_obtain(m, &update) : WEFT_NO_VALUE};
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    if (!scatter)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_batch, batch);
    weft_emit(m, op, 2 + scatter, operand, attrs, attr, NULL);
}

void weft_draw_one_hot(struct weft_maker *m, int op)
{
    const weft_val index = weft_draw_value(m, WEFT_DRAW_INTEGER, 0, 3);
    const weft_val values = weft_obtain_fixed(m, weft_draw_dtype(m, WEFT_DRAW_ALL), 1, (const int64_t[]){2});
    const struct weft_attr attr[] = {
        {.key = WEFT_ATTR_depth, .kind = WEFT_ATTR_INT, .count = 1, .integer = weft_draw_dim(m)},
        weft_attr_of_int(WEFT_ATTR_axis, weft_draw(m, weft_drawn_type(m, index)->rank + 1u))};
    weft_emit(m, op, 2, (const weft_val[]){index, values}, 2, attr, NULL);
}

/* dynamic_slice and dynamic_update. */
void weft_draw_dynamic(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 1, 5);
    struct weft_type part = *weft_drawn_type(m, x);
    for (int i = 0; i < part.rank; i++)
        if (weft_draw(m, 2))
            part.extent[i] = weft_dim_of(weft_draw(m, (unsigned)weft_least(m, part.extent[i]) + 1));
    const weft_val start =
        weft_obtain_fixed(m, weft_draw_dtype(m, WEFT_DRAW_INTEGER), 1, (const int64_t[]){part.rank});
    if (op == WEFT_OP_dynamic_slice)
        weft_emit(m, op, 2, (const weft_val[]){x, start}, 0, NULL, &part);
    else
        weft_emit(m, op, 3, (const weft_val[]){x, weft_obtain(m, &part), start}, 0, NULL, NULL);
}

/* --- as large as the data says ------------------------------------------------------------------------------------ */

static weft_dim new_extent(struct weft_maker *m, weft_dim bound)
{
    char name[16];
    snprintf(name, sizeof name, "K%u", weft_symbol_count(m->graph->dims));
    const weft_dim symbol = weft_symbol_add_data(m->graph->dims, name, bound);
    weft_symbols_at_bounds(m->graph->dims, m->symbols);
    return symbol;
}

/* Once a node defines the symbol, shapes may have it, unless it may be so long that three such axes take for ever. */
static void offer_extent(struct weft_maker *m, weft_node defined, weft_dim symbol)
{
    if (defined.id && m->dims < WEFT_MOST_DIMS && weft_dim_evaluate(m->graph->dims, symbol, m->symbols) <= 32)
        m->dim[m->dims++] = symbol;
}

/* nonzero, compress and unique. */
void weft_draw_data(struct weft_maker *m, int op)
{
    struct weft_dims *dims = m->graph->dims;
    weft_val operand[2] = {weft_draw_value(m, WEFT_DRAW_ALL, 0, 4)};
    const struct weft_type type = *weft_drawn_type(m, operand[0]);
    const bool flat = op == WEFT_OP_nonzero || type.rank == 0 || weft_draw(m, 2) == 0;
    const int axis = flat ? -1 : weft_draw_axis(m, operand[0]);
    const weft_dim bound = flat ? weft_type_elements(dims, &type) : type.extent[axis];
    const struct weft_type mask = {.dtype = WEFT_BOOL, .rank = 1, .extent = {bound}};
    if (op == WEFT_OP_compress)
        operand[1] = weft_obtain(m, &mask);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    int64_t least, most;
    weft_dim_range(dims, bound, &least, &most);
    if (least < 0) /* sizes that the graph refuses: a bound must say what it is for all */
        return;
    const weft_dim found = new_extent(m, bound);
    attr[attrs++] = weft_attr_of_dims(WEFT_ATTR_extent, 1, &found);
    if (!flat)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_axis, axis);
    offer_extent(m, weft_emit(m, op, 1 + (op == WEFT_OP_compress), operand, attrs, attr, NULL), found);
}

void weft_draw_nms(struct weft_maker *m, int op)
{
    const weft_dim images = weft_dim_of(1 + weft_draw(m, 2)), boxes = weft_draw_dim(m), classes = weft_dim_of(2);
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_REAL);
    const weft_dim box[] = {images, boxes, weft_dim_of(4)}, score[] = {images, classes, boxes};
    weft_val operand[5] = {weft_obtain_with(m, dtype, 3, box), weft_obtain_with(m, dtype, 3, score)};
    for (int i = 2; i < 5; i++)
        operand[i] = weft_obtain_fixed(m, i == 2 ? WEFT_I64 : dtype, 0, NULL);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    const weft_dim pairs = weft_dim_mul(m->graph->dims, images, classes);
    const weft_dim found = new_extent(m, weft_dim_mul(m->graph->dims, boxes, pairs));
    attr[attrs++] = weft_attr_of_dims(WEFT_ATTR_extent, 1, &found);
    offer_extent(m, weft_emit(m, op, 5, operand, attrs, attr, NULL), found);
}
