/* SPDX-License-Identifier: Apache-2.0 */
/* lower_recurrent: open lstm, gru and rnn into a product for all times at once, and a loop.
 *
 *   %y: f32[T,1,B,H], %h: f32[1,B,H] = rnn %x, %w, %r, %b, %h0
 *   →
 *   %p: f32[T*B,H] = matmul %x', %w' trans_b=1      W x of all times and directions, + biases
 *   loop: %wx = gather %p', %i axis=0               a time's rows of it
 *         %q = matmul %h, %r' trans_b=1 …           R h, and the cell
 *
 * The product does not depend on the states, so it is one matmul before the loop, wide enough for all threads. A
 * reverse direction takes the rows from the last to the first, and what it collects is turned around; where sequences
 * have lengths of their own, rows are turned around within each length instead, states stand still behind it, and what
 * is collected there is 0. Up to 4 times are written out without a loop.
 *
 * The two halves of b are added to W x where that is the same. It is not for the candidate of a gru, whose half of R
 * may be scaled by the reset gate. In 16-bit types all is computed in f32 between casts.
 *
 * Needs: nothing. Not done: both directions in one loop; one product of R for equal sequences. */
#include "passes/lower_recurrent.h"
#include "sched/target.h"

#include <stdlib.h>
#include <string.h>

#define MAX_UNROLLED 4 /* times */

struct net {
    struct weft_builder *b;
    struct weft_recurrence cell;
    weft_dim times, batch, hidden, rows; /* rows: gates · hidden, of one direction */
    weft_val operand[8];
    weft_val peephole, lengths;
    weft_val wx;     /* [T,B,D·G·H] */
    uint32_t *cells; /* the number of the next body */
};

static weft_val reshaped(struct weft_builder *b, weft_val x, unsigned rank, const weft_dim *extent)
{
    struct weft_type type = {.dtype = weft_type_of(b->graph, x)->dtype, .rank = (uint8_t)rank};
    memcpy(type.extent, extent, rank * sizeof *extent);
    return weft_build_reshape(b, x, &type);
}

static weft_val of_direction(const struct net *net, weft_val x, unsigned d)
{
    return weft_cell_part(net->b, x, 0, weft_dim_of(d), weft_dim_of(1), true);
}

static bool is_zero(const struct weft_graph *graph, weft_val v)
{
    struct weft_element element;
    return weft_const_splat(graph, v, &element) && element.real == 0;
}

/* --- before the loop ---------------------------------------------------------------------------------------------- */

/* What is added to W x, [D·G·H]: both halves of b, without that of a gru's candidate. */
static weft_val input_bias(const struct net *net)
{
    struct weft_builder *b = net->b;
    struct weft_dims *dims = b->graph->dims;
    const weft_val bias = net->operand[WEFT_CELL_B];
    const weft_dim all = weft_dim_mul(dims, weft_dim_of(net->cell.directions), net->rows);
    weft_val r = weft_cell_part(b, bias, 1, net->rows, net->rows, false);
    if (net->cell.gates == 3) {
        const weft_dim two = weft_dim_mul(dims, weft_dim_of(2), net->hidden);
        struct weft_type none = *weft_type_of(b->graph, bias);
        none.extent[1] = net->hidden;
        const weft_val parts[] = {weft_cell_part(b, r, 1, weft_dim_of(0), two, false), weft_build_splat(b, &none, 0)};
        const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 1);
        r = weft_build(b, WEFT_OP_concat, 2, parts, 1, &axis, NULL);
    }
    const weft_val w = weft_cell_part(b, bias, 1, weft_dim_of(0), net->rows, false);
    return reshaped(b, weft_build_binary(b, WEFT_OP_add, w, r), 1, &all);
}

static void multiply_inputs(struct net *net)
{
    struct weft_builder *b = net->b;
    struct weft_dims *dims = b->graph->dims;
    const weft_dim inputs = weft_type_of(b->graph, net->operand[WEFT_CELL_X])->extent[2];
    const weft_dim all = weft_dim_mul(dims, weft_dim_of(net->cell.directions), net->rows);
    const weft_dim flat[] = {weft_dim_mul(dims, net->times, net->batch), inputs}, rows[] = {all, inputs};
    const weft_dim timed[] = {net->times, net->batch, all};
    const weft_val weights = reshaped(b, net->operand[WEFT_CELL_W], 2, rows);
    weft_val product = weft_cell_product(b, reshaped(b, net->operand[WEFT_CELL_X], 2, flat), weights);
    if (!is_zero(b->graph, net->operand[WEFT_CELL_B]))
        product = weft_cell_with(b, WEFT_OP_add, product, input_bias(net));
    net->wx = reshaped(b, product, 3, timed);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

static weft_val unrolled(const struct net *net, unsigned d, bool backwards, struct weft_cell_step *s)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const weft_dim one[] = {weft_dim_of(1), net->batch, net->hidden};
    const weft_val wx = s->wx;
    const unsigned times = (unsigned)weft_dim_value(net->times);
    weft_val collected[MAX_UNROLLED];
    for (unsigned t = 0; t < times; t++) {
        s->index = net->lengths.id ? weft_build_splat(net->b, &scalar, t) : WEFT_NO_VALUE;
        s->wx = weft_cell_part(net->b, wx, 0, weft_dim_of(backwards ? times - 1 - t : t), weft_dim_of(1), true);
        collected[t] = reshaped(net->b, weft_cell_take_step(net->b, &net->cell, d, s), 3, one);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    return weft_build(net->b, WEFT_OP_concat, times, collected, 1, &axis, NULL);
}

/* Bodies are called cell, cell.1, cell.2, …: the first number that no body of the graph has, nor any behind it. */
static uint32_t first_free_cell(const struct weft_graph *graph)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < graph->bodies; i++) {
        const char *name = graph->body[i]->name;
        if (strncmp(name, "cell", 4) != 0 || (name[4] && name[4] != '.'))
            continue;
        const unsigned long taken = name[4] ? strtoul(name + 5, NULL, 10) : 0;
        if (taken >= number && taken < UINT32_MAX - graph->nodes)
            number = (uint32_t)taken + 1;
    }
    return number;
}

static struct weft_graph *new_body(struct weft_graph *graph, uint32_t *cells)
{
    const uint32_t number = (*cells)++;
    return weft_graph_new_body(graph, number ? weft_arena_format(graph->arena, "cell.%u", number) : "cell");
}

/* The rows of a trip: of time i, or of the time as far from the end. */
static weft_val rows_of_trip(const struct net *net, struct weft_builder *b, weft_val wx, weft_val index, bool backwards)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    const weft_dim last = weft_dim_sub(b->graph->dims, net->times, weft_dim_of(1));
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &last);
    if (backwards)
        index = weft_build_binary(b, WEFT_OP_sub, weft_build(b, WEFT_OP_extents, 0, NULL, 1, &value, &scalar), index);
    return weft_build(b, WEFT_OP_gather, 2, (const weft_val[]){wx, index}, 1, &axis, NULL);
}

static weft_val looped(const struct net *net, unsigned d, bool backwards, struct weft_cell_step *s)
{
    struct weft_graph *graph = net->b->graph, *body = new_body(graph, net->cells);
    struct weft_builder inside = {.graph = body};
    const struct weft_type scalar = {.dtype = WEFT_I64};
    struct weft_cell_step step = {.index = weft_add_param(body, NULL, &scalar)};
    weft_val *const outer[] = {&s->h, &s->c, &s->wx, &s->r, &s->bias, &s->peephole, &s->lengths};
    weft_val *const inner[] = {&step.h, &step.c, &step.wx, &step.r, &step.bias, &step.peephole, &step.lengths};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &net->times);
    weft_val operands[8] = {weft_build(net->b, WEFT_OP_extents, 0, NULL, 1, &value, &scalar)};
    unsigned count = 1;
    for (unsigned i = 0; i < sizeof outer / sizeof *outer; i++)
        if (outer[i]->id) {
            const struct weft_type type = *weft_type_of(graph, *outer[i]);
            operands[count++] = *outer[i];
            *inner[i] = weft_add_param(body, NULL, &type);
        }
    step.wx = rows_of_trip(net, &inside, step.wx, step.index, backwards);
    const weft_val collected = weft_cell_take_step(&inside, &net->cell, d, &step);
    weft_add_return(body, step.h, WEFT_NO_VALUE);
    if (step.c.id)
        weft_add_return(body, step.c, WEFT_NO_VALUE);
    weft_add_return(body, collected, WEFT_NO_VALUE);
    body->returned = true;
    struct weft_attr attrs[] = {{.key = WEFT_ATTR_body, .kind = WEFT_ATTR_GRAPH, .graph = body},
                                weft_attr_of_int(WEFT_ATTR_carried, net->cell.states),
                                weft_attr_of_int(WEFT_ATTR_length, 0)};
    attrs[2].integer = net->times;
    s->h = weft_build(net->b, WEFT_OP_loop, count, operands, 3, attrs, NULL);
    if (s->c.id)
        s->c = (weft_val){.id = s->h.id + 1};
    return (weft_val){.id = s->h.id + net->cell.states};
}

/* --- directions --------------------------------------------------------------------------------------------------- */

static weft_val turned_within(const struct net *net, weft_val x)
{
    const struct weft_attr attrs[] = {weft_attr_of_int(WEFT_ATTR_axis, 0), weft_attr_of_int(WEFT_ATTR_batch_axis, 1)};
    return weft_build(net->b, WEFT_OP_reverse_sequence, 2, (const weft_val[]){x, net->lengths}, 2, attrs, NULL);
}

/* Runs one direction: what is collected, [T,B,H], and the last states in *s. */
static weft_val run_direction(const struct net *net, unsigned d, struct weft_cell_step *s)
{
    struct weft_builder *b = net->b;
    struct weft_dims *dims = b->graph->dims;
    const bool reverse = net->cell.reverse[d], backwards = reverse && !net->lengths.id;
    const weft_dim zero = weft_dim_of(0);
    *s = (struct weft_cell_step){.h = of_direction(net, net->operand[WEFT_CELL_H], d),
                                 .r = of_direction(net, net->operand[WEFT_CELL_R], d),
                                 .lengths = net->lengths};
    if (net->cell.states == 2)
        s->c = of_direction(net, net->operand[WEFT_CELL_C], d);
    if (net->peephole.id)
        s->peephole = of_direction(net, net->peephole, d);
    if (net->cell.gates == 3 && !is_zero(b->graph, net->operand[WEFT_CELL_B]))
        s->bias = weft_cell_part(b, of_direction(net, net->operand[WEFT_CELL_B], d), 0,
                                 weft_dim_mul(dims, weft_dim_of(5), net->hidden), net->hidden, false);
    s->wx = weft_cell_part(b, net->wx, 2, weft_dim_mul(dims, weft_dim_of(d), net->rows), net->rows, false);
    if (reverse && net->lengths.id)
        s->wx = turned_within(net, s->wx);
    const bool few = weft_dim_is_constant(net->times) && weft_dim_value(net->times) <= MAX_UNROLLED &&
                     weft_dim_value(net->times) > 0;
    const weft_val collected = few ? unrolled(net, d, backwards, s) : looped(net, d, backwards, s);
    if (!reverse)
        return collected;
    const struct weft_attr axes = weft_attr_of_dims(WEFT_ATTR_axes, 1, &zero);
    return net->lengths.id ? turned_within(net, collected) : weft_build(b, WEFT_OP_flip, 1, &collected, 1, &axes, NULL);
}

/* What the directions made, along a new axis. */
static weft_val stacked(const struct net *net, const weft_val *each, unsigned axis)
{
    weft_val parts[2];
    for (unsigned d = 0; d < net->cell.directions; d++) {
        struct weft_type type = *weft_type_of(net->b->graph, each[d]);
        memmove(type.extent + axis + 1, type.extent + axis, (type.rank - axis) * sizeof *type.extent);
        type.extent[axis] = weft_dim_of(1);
        type.rank++;
        parts[d] = weft_build_reshape(net->b, each[d], &type);
    }
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return net->cell.directions == 1 ? parts[0] : weft_build(net->b, WEFT_OP_concat, 2, parts, 1, &attr, NULL);
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static void open_net(struct weft_builder *b, weft_node node, uint32_t *cells, struct net *net)
{
    struct weft_graph *graph = b->graph;
    *net = (struct net){.b = b, .cell = weft_recurrence_of(graph, node), .cells = cells};
    for (unsigned i = 0; i < graph->node[node.id].operands; i++)
        net->operand[i] = weft_widen(b, weft_operand(graph, node, i));
    const unsigned peephole = weft_recurrence_peepholes(graph, node), lengths = weft_recurrence_lengths(graph, node);
    net->peephole = peephole ? net->operand[peephole] : WEFT_NO_VALUE;
    net->lengths = lengths ? net->operand[lengths] : WEFT_NO_VALUE;
    const struct weft_type *x = weft_type_of(graph, net->operand[WEFT_CELL_X]);
    net->times = x->extent[0];
    net->batch = x->extent[1];
    net->hidden = weft_type_of(graph, net->operand[WEFT_CELL_R])->extent[2];
    net->rows = weft_dim_mul(graph->dims, weft_dim_of(net->cell.gates), net->hidden);
}

static void lower(struct weft_graph *graph, weft_node node, uint32_t *cells)
{
    struct weft_builder b = {.graph = graph, .before = node};
    const uint32_t first_new = graph->nodes;
    const int dtype = weft_type_of(graph, weft_result(graph, node, 0))->dtype;
    struct net net;
    weft_val collected[2], state[2][2];
    open_net(&b, node, cells, &net);
    multiply_inputs(&net);
    for (unsigned d = 0; d < net.cell.directions; d++) {
        struct weft_cell_step s;
        collected[d] = run_direction(&net, d, &s);
        state[0][d] = s.h;
        state[1][d] = s.c;
    }
    weft_val result[3] = {stacked(&net, collected, 1)};
    for (unsigned i = 0; i < net.cell.states; i++)
        result[i + 1] = stacked(&net, state[i], 0);
    for (unsigned i = 0; i <= net.cell.states; i++)
        result[i] = weft_narrow(&b, result[i], dtype);
    for (uint32_t id = first_new; id < graph->nodes; id++) {
        graph->node[id].name = graph->node[node.id].name;
        graph->node[id].line = graph->node[node.id].line;
    }
    for (unsigned i = 0; i <= net.cell.states; i++)
        if (weft_can_substitute(graph, weft_result(graph, node, i), result[i]))
            weft_substitute(graph, weft_result(graph, node, i), result[i]);
    weft_erase_unused(graph, node);
}

static bool is_open(const struct weft_graph *graph, weft_node node)
{
    if (!(weft_op_of(graph, node)->traits & WEFT_RECURRENT) || weft_is_decided(graph, node))
        return false;
    for (unsigned i = 0; i < graph->node[node.id].results; i++) {
        const struct weft_value *result = weft_value_of(graph, weft_result(graph, node, i));
        if (result->uses > 0 || result->returns > 0)
            return true;
    }
    return false;
}

bool weft_pass_lower_recurrent(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = false;
    if (graph->depth == WEFT_MAX_DEPTH) /* no room for the body of a loop */
        return false;
    uint32_t cells = first_free_cell(graph);
    for (weft_node node = graph->first, next; node.id; node = next) {
        next = graph->node[node.id].next;
        const weft_val result = weft_result(graph, node, 0);
        if (!is_open(graph, node) || weft_target_computes(target, graph, node) ||
            !weft_permit(graph, "lower_recurrent", result))
            continue;
        if (weft_value_of(graph, result)->name)
            weft_add_remark(graph, "lower_recurrent", result, "done", "the inputs of all times are one product, and a "
                            "time is a trip of a loop, or written out where there are up to %d", MAX_UNROLLED);
        lower(graph, node, &cells);
        changed = true;
    }
    return changed;
}
