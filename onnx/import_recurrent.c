/* SPDX-License-Identifier: Apache-2.0 */
/* import_recurrent.c: LSTM, GRU and RNN, as products and a loop.
 *
 *   W x of all times at once is one product before the loop; a trip takes its rows of it, adds R h, and applies the
 *   cell. A direction at a time: a reverse one runs over the sequence back to front, and its results are put in order
 *   again; where sequences have lengths of their own, each is turned around within its length, its state stands still
 *   behind it, and what is collected there is 0. Few trips are written out without a loop.
 *
 * The two halves of B are added to W x where that is the same. It is not for the candidate of a GRU, whose half of R is
 * scaled by the reset gate with linear_before_reset. */
#include "onnx/recurrent.h"

#include <string.h>

#define MAX_UNROLLED 4 /* times */

static unsigned states_of(const struct onnx_recurrence *cell) { return cell->kind == ONNX_CELL_LSTM ? 2 : 1; }

static weft_val swap_axes(struct onnx_op *op, weft_val x, unsigned a, unsigned b)
{
    unsigned perm[WEFT_MAX_RANK];
    for (unsigned i = 0; i < WEFT_MAX_RANK; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return weft_onnx_transpose(op, x, perm);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

static weft_val unrolled(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned direction,
                         struct onnx_step *s)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const weft_dim extent[] = {weft_dim_of(1), cell->batch, cell->hidden};
    const unsigned times = (unsigned)weft_dim_value(cell->times);
    weft_val collected[MAX_UNROLLED];
    for (unsigned t = 0; t < times; t++) {
        s->index = weft_onnx_splat(op, &scalar, t);
        collected[t] = weft_onnx_reshape(op, weft_onnx_take_step(op, cell, direction, s), 3, extent);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    return weft_onnx_make(op, WEFT_OP_concat, times, collected, 1, &axis, NULL);
}

static weft_val looped(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned direction, struct onnx_step *s)
{
    struct weft_graph *body = weft_onnx_new_body(op, "cell");
    if (op->failed || !body) {
        op->failed = true;
        return WEFT_NO_VALUE;
    }
    const struct weft_type scalar = {.dtype = WEFT_I64};
    struct onnx_op inner = *op;
    inner.graph = body;
    struct onnx_step within = {.index = weft_add_param(body, NULL, &scalar)};
    weft_val *const outer[] = {&s->h, &s->c, &s->wx, &s->r, &s->bias, &s->peephole, &s->lengths};
    weft_val *const inside[] = {&within.h,    &within.c,        &within.wx,     &within.r,
                                &within.bias, &within.peephole, &within.lengths};
    weft_val operands[8];
    unsigned count = 1;
    for (unsigned i = 0; i < 7; i++)
        if (outer[i]->id) {
            const struct weft_type type = *weft_type_of(op->graph, *outer[i]);
            operands[count++] = *outer[i];
            *inside[i] = weft_add_param(body, NULL, &type);
        }
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &cell->times);
    operands[0] = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
    const weft_val collected = weft_onnx_take_step(&inner, cell, direction, &within);
    op->failed = op->failed || inner.failed;
    if (op->failed)
        return WEFT_NO_VALUE;
    weft_add_return(body, within.h, WEFT_NO_VALUE);
    if (within.c.id)
        weft_add_return(body, within.c, WEFT_NO_VALUE);
    weft_add_return(body, collected, WEFT_NO_VALUE);
    struct weft_attr attrs[] = {{.key = WEFT_ATTR_body, .kind = WEFT_ATTR_GRAPH, .graph = body},
                                weft_attr_of_int(WEFT_ATTR_carried, states_of(cell)),
                                weft_attr_of_int(WEFT_ATTR_length, 0)};
    attrs[2].integer = cell->times;
    s->h = weft_onnx_make(op, WEFT_OP_loop, count, operands, 3, attrs, NULL);
    if (s->c.id)
        s->c = (weft_val){s->h.id + 1};
    return op->failed ? WEFT_NO_VALUE : (weft_val){s->h.id + states_of(cell)};
}

/* --- directions --------------------------------------------------------------------------------------------------- */

/* Back to front, each sequence within its length. */
static weft_val turned(struct onnx_op *op, const struct onnx_recurrence *cell, weft_val x)
{
    const weft_dim zero = weft_dim_of(0);
    const struct weft_attr axes = weft_attr_of_dims(WEFT_ATTR_axes, 1, &zero);
    const struct weft_attr attrs[] = {weft_attr_of_int(WEFT_ATTR_axis, 0), weft_attr_of_int(WEFT_ATTR_batch_axis, 1)};
    if (!cell->lengths.id)
        return weft_onnx_make(op, WEFT_OP_flip, 1, &x, 1, &axes, NULL);
    return weft_onnx_make(op, WEFT_OP_reverse_sequence, 2, (const weft_val[]){x, cell->lengths}, 2, attrs, NULL);
}

static weft_val of_direction(struct onnx_op *op, weft_val x, unsigned direction)
{
    return weft_onnx_part(op, x, 0, weft_dim_of(direction), weft_dim_of(1), true);
}

/* B is [W's, R's], each a gate behind the other. Adds to W x what belongs there, and leaves the rest to the step. */
static void add_bias(struct onnx_op *op, const struct onnx_recurrence *cell, weft_val bias, struct onnx_step *s)
{
    const weft_val w = weft_onnx_part(op, bias, 0, weft_dim_of(0), cell->gates, false);
    weft_val r = weft_onnx_part(op, bias, 0, cell->gates, cell->gates, false);
    if (cell->kind == ONNX_CELL_GRU) {
        const weft_dim two = weft_dim_mul(op->graph->dims, weft_dim_of(2), cell->hidden);
        s->bias = weft_onnx_part(op, r, 0, two, cell->hidden, false);
        const weft_val parts[] = {weft_onnx_part(op, r, 0, weft_dim_of(0), two, false),
                                  weft_onnx_scalar_like(op, s->bias, 0)};
        const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
        r = weft_onnx_make(op, WEFT_OP_concat, 2, parts, 1, &axis, NULL);
    }
    s->wx = weft_onnx_with(op, WEFT_OP_add, s->wx, weft_onnx_binary(op, WEFT_OP_add, w, r));
}

static weft_val initial_state(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned input,
                              unsigned direction)
{
    const struct weft_type type = {
        .dtype = (uint8_t)cell->dtype, .rank = 2, .extent = {cell->batch, cell->hidden}};
    if (!weft_onnx_has(op, input))
        return weft_onnx_splat(op, &type, 0);
    const weft_val given = cell->by_batch ? swap_axes(op, op->input[input], 0, 1) : op->input[input];
    return of_direction(op, given, direction);
}

/* Runs one direction: collected [times, batch, hidden], and the last states in *s. */
static weft_val run_direction(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned direction, bool reverse,
                              struct onnx_step *s)
{
    const weft_val x = reverse ? turned(op, cell, cell->x) : cell->x;
    const struct weft_type type = weft_onnx_type(op, x);
    const weft_dim rows[] = {weft_dim_mul(op->graph->dims, cell->times, cell->batch), type.extent[2]};
    const weft_dim extent[] = {cell->times, cell->batch, cell->gates};
    *s = (struct onnx_step){.r = of_direction(op, weft_onnx_input(op, 2), direction), .lengths = cell->lengths};
    const weft_val w = of_direction(op, weft_onnx_input(op, 1), direction);
    s->wx = weft_onnx_reshape(op, weft_onnx_product_transposed(op, weft_onnx_reshape(op, x, 2, rows), w), 3, extent);
    if (weft_onnx_has(op, 3))
        add_bias(op, cell, of_direction(op, op->input[3], direction), s);
    s->h = initial_state(op, cell, 5, direction);
    if (cell->kind == ONNX_CELL_LSTM)
        s->c = initial_state(op, cell, 6, direction);
    if (cell->kind == ONNX_CELL_LSTM && weft_onnx_has(op, 7))
        s->peephole = of_direction(op, op->input[7], direction);
    if (op->failed)
        return WEFT_NO_VALUE;
    const bool few = weft_dim_is_constant(cell->times) && weft_dim_value(cell->times) <= MAX_UNROLLED &&
                     weft_dim_value(cell->times) > 0;
    const weft_val collected = few ? unrolled(op, cell, direction, s) : looped(op, cell, direction, s);
    return reverse ? turned(op, cell, collected) : collected;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void read_recurrence(struct onnx_op *op, struct onnx_recurrence *cell, int *ret_direction)
{
    cell->kind = op->row->opcode;
    cell->x = weft_onnx_input(op, 0);
    cell->clip = weft_onnx_real(op, "clip", 0);
    cell->by_batch = op->importer->opset >= 14 && weft_onnx_int(op, "layout", 0) != 0;
    cell->linear_before_reset = cell->kind == ONNX_CELL_GRU && weft_onnx_int(op, "linear_before_reset", 0) != 0;
    cell->input_forget = cell->kind == ONNX_CELL_LSTM && weft_onnx_int(op, "input_forget", 0) != 0;
    weft_onnx_ignore(op, "hidden_size"); /* the weights say it */
    *ret_direction = weft_onnx_word(op, "direction", "forward reverse bidirectional");
    cell->directions = *ret_direction == 2 ? 2 : 1;
    weft_onnx_read_activations(op, cell);
    const struct weft_type w = weft_onnx_type(op, weft_onnx_input(op, 1));
    const struct weft_type r = weft_onnx_type(op, weft_onnx_input(op, 2));
    if (!op->failed && (w.rank != 3 || r.rank != 3 || weft_onnx_type(op, cell->x).rank != 3))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "X, W and R must have 3 axes");
    if (cell->by_batch)
        cell->x = swap_axes(op, cell->x, 0, 1);
    const struct weft_type x = weft_onnx_type(op, cell->x);
    if (op->failed)
        return;
    cell->dtype = x.dtype;
    cell->times = x.extent[0];
    cell->batch = x.extent[1];
    cell->hidden = r.extent[2];
    cell->gates = weft_dim_mul(op->graph->dims, weft_dim_of(cell->kind), cell->hidden);
    if (!weft_dim_same(w.extent[1], cell->gates) || !weft_dim_same(r.extent[1], cell->gates) ||
        !weft_dim_is(w.extent[0], cell->directions))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "W and R do not fit %d gates and %u directions", cell->kind,
                       cell->directions);
    if (weft_onnx_has(op, 4))
        cell->lengths = weft_onnx_cast(op, op->input[4], WEFT_I64);
}

/* What the directions made, along a new axis. */
static weft_val stacked(struct onnx_op *op, const struct onnx_recurrence *cell, const weft_val *each, unsigned axis)
{
    weft_val parts[2];
    for (unsigned d = 0; d < cell->directions; d++) {
        struct weft_type type = weft_onnx_type(op, each[d]);
        memmove(type.extent + axis + 1, type.extent + axis, (type.rank - axis) * sizeof *type.extent);
        type.extent[axis] = weft_dim_of(1);
        parts[d] = weft_onnx_reshape(op, each[d], type.rank + 1u, type.extent);
    }
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return cell->directions == 1 ? parts[0] : weft_onnx_make(op, WEFT_OP_concat, 2, parts, 1, &attr, NULL);
}

static void import_recurrent(struct onnx_op *op)
{
    struct onnx_recurrence cell = {0};
    int direction;
    weft_val collected[2], h[2], c[2];
    read_recurrence(op, &cell, &direction);
    for (unsigned d = 0; d < cell.directions && !op->failed; d++) {
        struct onnx_step s;
        collected[d] = run_direction(op, &cell, d, direction == 1 || d == 1, &s);
        h[d] = s.h;
        c[d] = s.c;
    }
    if (op->failed)
        return;
    op->output[0] = stacked(op, &cell, collected, 1);
    if (cell.by_batch) /* [times, directions, batch, hidden] to [batch, times, directions, hidden] */
        op->output[0] = weft_onnx_transpose(op, op->output[0], (const unsigned[]){2, 0, 1, 3});
    for (unsigned i = 1; i < op->outputs && i <= states_of(&cell); i++) {
        op->output[i] = stacked(op, &cell, i == 1 ? h : c, 0);
        if (cell.by_batch)
            op->output[i] = swap_axes(op, op->output[i], 0, 1);
    }
}

const struct onnx_row weft_onnx_recurrent[] = {
    {"GRU", 7, 3, 6, ONNX_CELL_GRU, import_recurrent},
    {"LSTM", 7, 3, 8, ONNX_CELL_LSTM, import_recurrent},
    {"RNN", 7, 3, 6, ONNX_CELL_RNN, import_recurrent},
    {0},
};
