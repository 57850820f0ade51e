/* SPDX-License-Identifier: Apache-2.0 */
/* draw_control.c: recurrent networks, and ops with bodies. A body is drawn like a graph, from parameters alone. */
#include "tests/property/random_graph.h"

#include <stdio.h>

/* Of what the trip of a loop is handed, the row of its number, from one end or the other. */
static void draw_row(struct weft_maker *body, weft_val from)
{
    const struct weft_type type = *weft_drawn_type(body, from), scalar = {.dtype = WEFT_I64};
    if (type.rank == 0 || weft_dtype_bits(type.dtype) < 8 || weft_draw(body, 3) == 0)
        return;
    const unsigned axis = weft_draw(body, type.rank);
    const weft_dim last = weft_dim_sub(body->graph->dims, type.extent[axis], weft_dim_of(1));
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, axis);
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &last);
    weft_val index = body->graph->param[0];
    if (weft_draw(body, 2)) {
        const weft_val end = weft_draw_made(body, weft_emit(body, WEFT_OP_extents, 0, NULL, 1, &value, &scalar));
        index = weft_draw_made(body, weft_emit(body, WEFT_OP_sub, 2, (const weft_val[]){end, index}, 0, NULL, NULL));
    }
    weft_emit(body, WEFT_OP_gather, 2, (const weft_val[]){from, index}, 1, &along, NULL);
}

/* A body with parameters of these types, and nodes; those from number `first_row` on may be read by rows. Nothing is
 * returned yet. NULL: too deep. */
static bool open_body(struct weft_maker *m, struct weft_maker *ret, unsigned params, const struct weft_type *type,
                      unsigned first_row, unsigned nodes)
{
    char name[32];
    snprintf(name, sizeof name, "body%u", m->graph->bodies);
    *ret = (struct weft_maker){.choices = m->choices, .outer = m, .most_elements = m->most_elements,
                               .symbols = m->symbols, .drawn = m->drawn, .dims = m->dims,
                               .graph = weft_graph_new_body(m->graph, name)};
    if (!ret->graph)
        return false;
    for (int i = 0; i < m->dims; i++)
        ret->dim[i] = m->dim[i];
    for (unsigned i = 0; i < params; i++)
        weft_keep_value(ret, weft_add_param(ret->graph, NULL, &type[i]));
    for (unsigned i = first_row; i < params; i++)
        draw_row(ret, ret->graph->param[i]);
    if (params > 0)
        weft_draw_nodes(ret, nodes);
    return true;
}

/* lstm, gru and rnn, which become loops. */
void weft_draw_recurrent(struct weft_maker *m, int op)
{
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_REAL);
    const int64_t gates = op == WEFT_OP_lstm ? 4 : op == WEFT_OP_gru ? 3 : 1, hidden = 1 + weft_draw(m, 3);
    const unsigned direction = weft_draw(m, 3);
    const weft_dim d = weft_dim_of(direction == 2 ? 2 : 1), rows = weft_dim_of(gates * hidden);
    const weft_dim h = weft_dim_of(hidden), times = weft_draw_dim(m), batch = weft_draw_dim(m);
    const weft_dim in = weft_dim_of(1 + weft_draw(m, 3));
    const weft_dim x[] = {times, batch, in}, w[] = {d, rows, in}, r[] = {d, rows, h}, state[] = {d, batch, h};
    const weft_dim b[] = {d, weft_dim_of(2 * gates * hidden)}, holes[] = {d, weft_dim_of(3 * hidden)};
    weft_val operand[8] = {weft_obtain_with(m, dtype, 3, x), weft_obtain_with(m, dtype, 3, w),
                           weft_obtain_with(m, dtype, 3, r), weft_obtain_with(m, dtype, 2, b),
                           weft_obtain_with(m, dtype, 3, state)};
    unsigned operands = 5;
    if (op == WEFT_OP_lstm)
        operand[operands++] = weft_obtain_with(m, dtype, 3, state);
    if (op == WEFT_OP_lstm && weft_draw(m, 2))
        operand[operands++] = weft_obtain_with(m, dtype, 2, holes);
    if (weft_draw(m, 2))
        operand[operands++] = weft_obtain_with(m, WEFT_I64, 1, &batch);
    static const char *const words[] = {"forward", "reverse", "bidirectional"};
    const struct weft_attr attr[] = {weft_attr_of_word(WEFT_ATTR_direction, words[direction]),
                                     weft_attr_of_real(WEFT_ATTR_clip, weft_draw(m, 3) == 2 ? 2 : 0)};
    weft_emit(m, op, operands, operand, 2, attr, NULL);
}

enum { MOST_HANDED = 3 };

static bool draw_if(struct weft_maker *m, int op)
{
    weft_val operand[1 + MOST_HANDED] = {weft_obtain_fixed(m, WEFT_BOOL, 0, NULL)};
    struct weft_type type[MOST_HANDED];
    const unsigned handed = 1 + weft_draw(m, MOST_HANDED), results = 1 + weft_draw(m, 2);
    for (unsigned i = 0; i < handed; i++) {
        operand[1 + i] = weft_draw_value(m, WEFT_DRAW_ALL, 0, 4);
        type[i] = *weft_drawn_type(m, operand[1 + i]);
    }
    struct weft_maker yes, no;
    if (!open_body(m, &yes, handed, type, handed, 1 + weft_draw(m, 4)))
        return false;
    struct weft_type returned[2];
    for (unsigned i = 0; i < results; i++) {
        const weft_val v = yes.value[(unsigned)yes.values - 1 - weft_draw(&yes, (unsigned)yes.values)];
        returned[i] = *weft_drawn_type(&yes, v);
        weft_add_return(yes.graph, v, WEFT_NO_VALUE);
    }
    if (!open_body(m, &no, handed, type, handed, weft_draw(m, 4)))
        return false;
    for (unsigned i = 0; i < results; i++)
        weft_add_return(no.graph, weft_obtain(&no, &returned[i]), WEFT_NO_VALUE);
    const struct weft_attr attr[] = {
        {.key = WEFT_ATTR_then, .kind = WEFT_ATTR_GRAPH, .count = 1, .graph = yes.graph},
        {.key = WEFT_ATTR_else, .kind = WEFT_ATTR_GRAPH, .count = 1, .graph = no.graph}};
    return weft_emit(m, op, 1 + handed, operand, 2, attr, NULL).id != 0;
}

/* At most some trips, whatever the data says. */
static weft_val draw_trips(struct weft_maker *m)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    struct weft_builder build = {.graph = m->graph};
    const weft_val most = weft_build_splat(&build, &scalar, weft_draw(m, 4));
    if (weft_draw(m, 2) == 0)
        return most;
    const weft_val given = weft_obtain(m, &scalar);
    return weft_draw_made(m, weft_emit(m, WEFT_OP_min, 2, (const weft_val[]){given, most}, 0, NULL, NULL));
}

static bool draw_loop(struct weft_maker *m, int op)
{
    struct weft_type type[2 + MOST_HANDED] = {{.dtype = WEFT_I64}};
    weft_val operand[1 + 1 + MOST_HANDED] = {draw_trips(m)};
    const unsigned condition = weft_draw(m, 3) == 2, others = 1 + weft_draw(m, MOST_HANDED);
    const unsigned handed = condition + others, carried = condition + 1 + weft_draw(m, others);
    for (unsigned i = 0; i < handed; i++) {
        operand[1 + i] = condition && i == 0 ? weft_obtain_fixed(m, WEFT_BOOL, 0, NULL)
                                             : weft_draw_value(m, WEFT_DRAW_ALL, 0, 3);
        type[1 + i] = *weft_drawn_type(m, operand[1 + i]);
    }
    struct weft_maker body;
    if (!open_body(m, &body, 1 + handed, type, 1 + carried, 1 + weft_draw(m, 4)))
        return false;
    for (unsigned i = 0; i < carried; i++)
        weft_add_return(body.graph, weft_obtain(&body, &type[1 + i]), WEFT_NO_VALUE);
    struct weft_attr attr[4] = {{.key = WEFT_ATTR_body, .kind = WEFT_ATTR_GRAPH, .count = 1, .graph = body.graph},
                                weft_attr_of_int(WEFT_ATTR_carried, carried)};
    unsigned attrs = 2;
    if (condition)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_while, 1);
    if (weft_draw(m, 2)) {
        const weft_val last = body.graph->ret[carried - 1].value, /* often what is carried is collected, too */
                       any = body.value[(unsigned)body.values - 1 - weft_draw(m, (unsigned)body.values)];
        weft_add_return(body.graph, weft_draw(m, 2) ? last : any, WEFT_NO_VALUE);
        attr[attrs++] = (struct weft_attr){.key = WEFT_ATTR_length, .kind = WEFT_ATTR_INT, .count = 1,
                                           .integer = weft_draw_dim(m)};
    }
    return weft_emit(m, op, 1 + handed, operand, attrs, attr, NULL).id != 0;
}

/* A graph has no bodies that nobody uses. */
void weft_draw_if(struct weft_maker *m, int op)
{
    const uint32_t bodies = m->graph->bodies;
    if (!draw_if(m, op))
        m->graph->bodies = bodies;
}

void weft_draw_loop(struct weft_maker *m, int op)
{
    const uint32_t bodies = m->graph->bodies;
    if (!draw_loop(m, op))
        m->graph->bodies = bodies;
}
