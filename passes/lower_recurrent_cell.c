/* SPDX-License-Identifier: Apache-2.0 */
/* lower_recurrent_cell.c: one time of an lstm, gru or rnn, in the graph that it is written into: that of a loop's body,
 * or the node's own where times are written out. */
#include "passes/lower_recurrent.h"

#include <string.h>

/* --- words -------------------------------------------------------------------------------------------------------- */

weft_val weft_cell_product(struct weft_builder *b, weft_val x, weft_val y)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_trans_b, 1);
    return weft_build(b, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 1, &attr, NULL);
}

weft_val weft_cell_part(struct weft_builder *b, weft_val x, unsigned axis, weft_dim first, weft_dim count, bool squeeze)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    struct weft_type rest = {.dtype = type.dtype};
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++) {
        start[i] = i == axis ? first : weft_dim_of(0);
        end[i] = i == axis ? weft_dim_add(b->graph->dims, first, count) : type.extent[i];
        if (i != axis)
            rest.extent[rest.rank++] = type.extent[i];
    }
    const struct weft_attr attrs[] = {weft_attr_of_dims(WEFT_ATTR_start, type.rank, start),
                                      weft_attr_of_dims(WEFT_ATTR_end, type.rank, end)};
    if (!weft_dim_same(count, type.extent[axis]))
        x = weft_build(b, WEFT_OP_slice, 1, &x, 2, attrs, NULL);
    return squeeze ? weft_build_reshape(b, x, &rest) : x;
}

static weft_val gate(struct weft_builder *b, const struct weft_cell_step *s, weft_val all, unsigned axis,
                     unsigned number)
{
    const weft_dim hidden = weft_type_of(b->graph, s->h)->extent[1];
    return weft_cell_part(b, all, axis, weft_dim_mul(b->graph->dims, weft_dim_of(number), hidden), hidden, false);
}

weft_val weft_cell_with(struct weft_builder *b, int op, weft_val x, weft_val y)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    return weft_build_binary(b, op, x, weft_build_bcast(b, y, &type, (const int[]){type.rank - 1}));
}

static weft_val with_number(struct weft_builder *b, int op, weft_val x, double number)
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    return weft_build_binary(b, op, x, weft_build_splat(b, &type, number));
}

static weft_val rest_of(struct weft_builder *b, weft_val x) /* 1 - x */
{
    const struct weft_type type = *weft_type_of(b->graph, x);
    return weft_build_binary(b, WEFT_OP_sub, weft_build_splat(b, &type, 1), x);
}

static weft_val apply(struct weft_builder *b, const struct weft_recurrence *cell, unsigned function, weft_val x,
                      bool clips)
{
    const struct weft_gate_function *f = &cell->function[function];
    const struct weft_attr bounds[] = {weft_attr_of_real(WEFT_ATTR_low, -cell->clip),
                                       weft_attr_of_real(WEFT_ATTR_high, cell->clip)};
    const struct weft_attr numbers[] = {weft_attr_of_real(WEFT_ATTR_alpha, f->alpha),
                                        weft_attr_of_real(WEFT_ATTR_beta, f->beta)};
    if (clips && cell->clip > 0)
        x = weft_build(b, WEFT_OP_clamp, 1, &x, 2, bounds, NULL);
    if (f->row->opcode)
        return weft_build(b, f->row->opcode, 1, &x, f->row->numbers, numbers, NULL);
    if (f->row->scaled)
        x = weft_build_unary(b, WEFT_OP_tanh, with_number(b, WEFT_OP_mul, x, f->beta));
    x = with_number(b, WEFT_OP_mul, x, f->alpha);
    return f->row->scaled ? x : with_number(b, WEFT_OP_add, x, f->beta);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* x + peephole · c */
static weft_val peep(struct weft_builder *b, const struct weft_cell_step *s, unsigned number, weft_val x)
{
    if (!s->peephole.id)
        return x;
    return weft_build_binary(b, WEFT_OP_add, x,
                             weft_cell_with(b, WEFT_OP_mul, s->c, gate(b, s, s->peephole, 0, number)));
}

/* Gates i o f c; peepholes i o f. */
static void step_lstm(struct weft_builder *b, const struct weft_recurrence *cell, unsigned first,
                      struct weft_cell_step *s)
{
    const weft_val all = weft_build_binary(b, WEFT_OP_add, s->wx, weft_cell_product(b, s->h, s->r));
    const weft_val in = apply(b, cell, first, peep(b, s, 0, gate(b, s, all, 1, 0)), true);
    const weft_val forget = cell->input_forget ? rest_of(b, in)
                                               : apply(b, cell, first, peep(b, s, 2, gate(b, s, all, 1, 2)), true);
    const weft_val candidate = apply(b, cell, first + 1, gate(b, s, all, 1, 3), true);
    const weft_val added = weft_build_binary(b, WEFT_OP_mul, in, candidate);
    s->c = weft_build_binary(b, WEFT_OP_add, weft_build_binary(b, WEFT_OP_mul, forget, s->c), added);
    const weft_val out = apply(b, cell, first, peep(b, s, 1, gate(b, s, all, 1, 1)), true);
    s->h = weft_build_binary(b, WEFT_OP_mul, out, apply(b, cell, first + 2, s->c, false));
}

/* Gates z r h. */
static void step_gru(struct weft_builder *b, const struct weft_recurrence *cell, unsigned first,
                     struct weft_cell_step *s)
{
    const weft_dim zero = weft_dim_of(0), hidden = weft_type_of(b->graph, s->h)->extent[1];
    const weft_dim two = weft_dim_mul(b->graph->dims, weft_dim_of(2), hidden);
    const weft_val turned = weft_cell_product(b, s->h, weft_cell_part(b, s->r, 0, zero, two, false));
    const weft_val both = weft_build_binary(b, WEFT_OP_add, weft_cell_part(b, s->wx, 1, zero, two, false), turned);
    const weft_val update = apply(b, cell, first, gate(b, s, both, 1, 0), true);
    const weft_val reset = apply(b, cell, first, gate(b, s, both, 1, 1), true);
    const weft_val scaled = cell->linear_before_reset ? s->h : weft_build_binary(b, WEFT_OP_mul, reset, s->h);
    weft_val turn = weft_cell_product(b, scaled, gate(b, s, s->r, 0, 2));
    if (s->bias.id)
        turn = weft_cell_with(b, WEFT_OP_add, turn, s->bias);
    if (cell->linear_before_reset)
        turn = weft_build_binary(b, WEFT_OP_mul, reset, turn);
    const weft_val candidate =
        apply(b, cell, first + 1, weft_build_binary(b, WEFT_OP_add, gate(b, s, s->wx, 1, 2), turn), true);
    const weft_val kept = weft_build_binary(b, WEFT_OP_mul, update, s->h);
    s->h = weft_build_binary(b, WEFT_OP_add, weft_build_binary(b, WEFT_OP_mul, rest_of(b, update), candidate), kept);
}

static weft_val chosen(struct weft_builder *b, weft_val goes_on, weft_val next, weft_val last)
{
    return weft_build(b, WEFT_OP_select, 3, (const weft_val[]){goes_on, next, last}, 0, NULL, NULL);
}

weft_val weft_cell_take_step(struct weft_builder *b, const struct weft_recurrence *cell, unsigned d,
                             struct weft_cell_step *s)
{
    const struct weft_cell_step before = *s;
    if (cell->gates == 4)
        step_lstm(b, cell, d * cell->functions, s);
    else if (cell->gates == 3)
        step_gru(b, cell, d * cell->functions, s);
    else
        s->h = apply(b, cell, d, weft_build_binary(b, WEFT_OP_add, s->wx, weft_cell_product(b, s->h, s->r)), true);
    if (!s->lengths.id)
        return s->h;
    /* a sequence that has ended keeps its states, and 0 is collected of it */
    struct weft_type shape = *weft_type_of(b->graph, before.h);
    const struct weft_type lengths = *weft_type_of(b->graph, s->lengths);
    const weft_val zero = weft_build_splat(b, &shape, 0);
    shape.dtype = WEFT_BOOL;
    const weft_val now = weft_build_bcast(b, s->index, &lengths, NULL);
    const weft_val goes_on = weft_build_bcast(b, weft_build_binary(b, WEFT_OP_lt, now, s->lengths), &shape,
                                              (const int[]){0});
    const weft_val collected = chosen(b, goes_on, s->h, zero);
    s->h = chosen(b, goes_on, s->h, before.h);
    if (s->c.id)
        s->c = chosen(b, goes_on, s->c, before.c);
    return collected;
}
