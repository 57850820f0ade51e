/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent_cell.c: one time of an LSTM, GRU or RNN, in the graph that it is written into: that of a loop's body, or
 * the model's where times are written out. */
#include "onnx/recurrent.h"

#include <string.h>

/* --- words -------------------------------------------------------------------------------------------------------- */

weft_val weft_onnx_product_transposed(struct onnx_op *op, weft_val x, weft_val y)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_trans_b, 1);
    return weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 1, &attr, NULL);
}

weft_val weft_onnx_part(struct onnx_op *op, weft_val x, unsigned axis, weft_dim first, weft_dim count, bool squeeze)
{
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK], extent[WEFT_MAX_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < type.rank; i++) {
        start[i] = i == axis ? first : weft_dim_of(0);
        end[i] = i == axis ? weft_dim_add(op->graph->dims, first, count) : type.extent[i];
        if (i != axis)
            extent[rank++] = type.extent[i];
    }
    const weft_val cut =
        axis < type.rank && weft_dim_same(count, type.extent[axis]) ? x : weft_onnx_slice(op, x, start, end, NULL);
    return squeeze ? weft_onnx_reshape(op, cut, rank, extent) : cut;
}

static weft_val gate(struct onnx_op *op, const struct onnx_recurrence *cell, weft_val all, unsigned axis,
                     unsigned number)
{
    const weft_dim first = weft_dim_mul(op->graph->dims, weft_dim_of(number), cell->hidden);
    return weft_onnx_part(op, all, axis, first, cell->hidden, false);
}

weft_val weft_onnx_with(struct onnx_op *op, int opcode, weft_val x, weft_val y)
{
    const struct weft_type shape = weft_onnx_type(op, x);
    return weft_onnx_binary(op, opcode, x, weft_onnx_broadcast(op, y, &shape));
}

static weft_val with_number(struct onnx_op *op, int opcode, weft_val x, double number)
{
    return weft_onnx_binary(op, opcode, x, weft_onnx_scalar_like(op, x, number));
}

/* --- activations -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int opcode;            /* 0: written out below */
    double alpha, beta;    /* defaults; 0 for what it has none of */
    uint8_t key[2];        /* attributes of the op that take alpha and beta */
    uint8_t parameters;
} known_activations[] = {
    {"Sigmoid", WEFT_OP_sigmoid, 0, 0, {0}, 0},
    {"Tanh", WEFT_OP_tanh, 0, 0, {0}, 0},
    {"Relu", WEFT_OP_relu, 0, 0, {0}, 0},
    {"Softsign", WEFT_OP_softsign, 0, 0, {0}, 0},
    {"Softplus", WEFT_OP_softplus, 0, 0, {0}, 0},
    {"LeakyRelu", WEFT_OP_leaky_relu, 0.01, 0, {WEFT_ATTR_alpha}, 1},
    {"ThresholdedRelu", WEFT_OP_thresholded_relu, 1, 0, {WEFT_ATTR_alpha}, 1},
    {"Elu", WEFT_OP_elu, 1, 0, {WEFT_ATTR_alpha}, 1},
    {"HardSigmoid", WEFT_OP_hard_sigmoid, 0.2, 0.5, {WEFT_ATTR_alpha, WEFT_ATTR_beta}, 2},
    {"Affine", 0, 1, 0, {0}, 2},
    {"ScaledTanh", 0, 1, 1, {0}, 2},
};
enum { ACTIVATIONS = sizeof known_activations / sizeof *known_activations };

static int find_activation(struct onnx_op *op, struct onnx_string name)
{
    for (int i = 0; i < ACTIVATIONS; i++)
        if (onnx_is(name, known_activations[i].name))
            return i;
    weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "activation \"%s\" is not supported", weft_onnx_text(op->importer, name));
    return 0;
}

static weft_val activate(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned number, weft_val x)
{
    const struct onnx_activation *activation = &cell->activation[number];
    const int row = find_activation(op, activation->name);
    const double numbers[] = {activation->alpha, activation->beta};
    struct weft_attr attrs[2];
    unsigned count = 0;
    if (cell->clip > 0) {
        const struct weft_attr bounds[] = {weft_attr_of_real(WEFT_ATTR_low, -cell->clip),
                                           weft_attr_of_real(WEFT_ATTR_high, cell->clip)};
        x = weft_onnx_make(op, WEFT_OP_clamp, 1, &x, 2, bounds, NULL);
    }
    if (!known_activations[row].opcode) {
        const bool tanh = onnx_is(activation->name, "ScaledTanh");
        if (tanh)
            x = weft_onnx_unary(op, WEFT_OP_tanh, with_number(op, WEFT_OP_mul, x, numbers[1]));
        const weft_val outer = with_number(op, WEFT_OP_mul, x, numbers[0]);
        return tanh ? outer : with_number(op, WEFT_OP_add, outer, numbers[1]);
    }
    for (; count < 2 && known_activations[row].key[count]; count++)
        attrs[count] = weft_attr_of_real(known_activations[row].key[count], numbers[count]);
    return weft_onnx_make(op, known_activations[row].opcode, 1, &x, count, attrs, NULL);
}

/* Numbers are handed out in order to the functions that take some. */
void weft_onnx_read_activations(struct onnx_op *op, struct onnx_recurrence *cell)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const struct onnx_attribute *names = weft_onnx_attribute(op, "activations", ONNX_STRINGS);
    const struct onnx_attribute *alphas = weft_onnx_attribute(op, "activation_alpha", ONNX_FLOATS);
    const struct onnx_attribute *betas = weft_onnx_attribute(op, "activation_beta", ONNX_FLOATS);
    const unsigned each = cell->kind == ONNX_CELL_LSTM ? 3 : cell->kind == ONNX_CELL_GRU ? 2 : 1;
    const unsigned wanted = each * cell->directions;
    uint32_t taken[2] = {0};
    if (names && names->strings.count != wanted)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute activations has %u elements instead of %u",
                       names->strings.count, wanted);
    for (unsigned i = 0; i < wanted && !op->failed; i++) {
        struct onnx_activation *activation = &cell->activation[i];
        const char *word = cell->kind == ONNX_CELL_RNN ? "Tanh" : usual[i % each];
        activation->name = names ? names->strings.item[i] : (struct onnx_string){word, strlen(word)};
        const int row = find_activation(op, activation->name);
        activation->alpha = known_activations[row].alpha;
        activation->beta = known_activations[row].beta;
        if (known_activations[row].parameters > 0 && alphas && taken[0] < alphas->count)
            activation->alpha = (double)alphas->reals[taken[0]++];
        if (known_activations[row].parameters > 1 && betas && taken[1] < betas->count)
            activation->beta = (double)betas->reals[taken[1]++];
    }
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* Gates i o f c; peepholes i o f. */
static void step_lstm(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned first, struct onnx_step *s,
                      weft_val wx)
{
    const weft_val all = weft_onnx_binary(op, WEFT_OP_add, wx, weft_onnx_product_transposed(op, s->h, s->r));
    weft_val in = gate(op, cell, all, 1, 0), out = gate(op, cell, all, 1, 1), forget = gate(op, cell, all, 1, 2);
    if (s->peephole.id) {
        const struct weft_type shape = weft_onnx_type(op, s->c);
        weft_val hole[3];
        for (unsigned i = 0; i < 3; i++)
            hole[i] = weft_onnx_broadcast(op, gate(op, cell, s->peephole, 0, i), &shape);
        in = weft_onnx_binary(op, WEFT_OP_add, in, weft_onnx_binary(op, WEFT_OP_mul, hole[0], s->c));
        forget = weft_onnx_binary(op, WEFT_OP_add, forget, weft_onnx_binary(op, WEFT_OP_mul, hole[2], s->c));
        s->peephole = hole[1];
    }
    in = activate(op, cell, first, in);
    forget = cell->input_forget ? weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_scalar_like(op, in, 1), in)
                                : activate(op, cell, first, forget);
    const weft_val candidate = activate(op, cell, first + 1, gate(op, cell, all, 1, 3));
    s->c = weft_onnx_binary(op, WEFT_OP_add, weft_onnx_binary(op, WEFT_OP_mul, forget, s->c),
                            weft_onnx_binary(op, WEFT_OP_mul, in, candidate));
    if (s->peephole.id)
        out = weft_onnx_binary(op, WEFT_OP_add, out, weft_onnx_binary(op, WEFT_OP_mul, s->peephole, s->c));
    struct onnx_recurrence unclipped = *cell;
    unclipped.clip = 0;
    s->h = weft_onnx_binary(op, WEFT_OP_mul, activate(op, cell, first, out), activate(op, &unclipped, first + 2, s->c));
}

/* Gates z r h; `bias` is that of R for h. */
static void step_gru(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned first, struct onnx_step *s,
                     weft_val wx)
{
    const weft_dim two = weft_dim_mul(op->graph->dims, weft_dim_of(2), cell->hidden), zero = weft_dim_of(0);
    const weft_val first_two = weft_onnx_part(op, s->r, 0, zero, two, false);
    const weft_val both = weft_onnx_binary(op, WEFT_OP_add, weft_onnx_part(op, wx, 1, zero, two, false),
                                           weft_onnx_product_transposed(op, s->h, first_two));
    const weft_val update = activate(op, cell, first, gate(op, cell, both, 1, 0));
    const weft_val reset = activate(op, cell, first, gate(op, cell, both, 1, 1));
    const weft_val r = gate(op, cell, s->r, 0, 2);
    weft_val turn = cell->linear_before_reset ? s->h : weft_onnx_binary(op, WEFT_OP_mul, reset, s->h);
    turn = weft_onnx_product_transposed(op, turn, r);
    if (s->bias.id)
        turn = weft_onnx_with(op, WEFT_OP_add, turn, s->bias);
    if (cell->linear_before_reset)
        turn = weft_onnx_binary(op, WEFT_OP_mul, reset, turn);
    const weft_val candidate =
        activate(op, cell, first + 1, weft_onnx_binary(op, WEFT_OP_add, gate(op, cell, wx, 1, 2), turn));
    const weft_val rest = weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_scalar_like(op, update, 1), update);
    s->h = weft_onnx_binary(op, WEFT_OP_add, weft_onnx_binary(op, WEFT_OP_mul, rest, candidate),
                            weft_onnx_binary(op, WEFT_OP_mul, update, s->h));
}

static void step_rnn(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned first, struct onnx_step *s,
                     weft_val wx)
{
    const weft_val turn = weft_onnx_product_transposed(op, s->h, s->r);
    s->h = activate(op, cell, first, weft_onnx_binary(op, WEFT_OP_add, wx, turn));
}

/* Sequences that have ended keep their state. */
static weft_val kept(struct onnx_op *op, weft_val goes_on, weft_val next, weft_val last)
{
    return weft_onnx_make(op, WEFT_OP_select, 3, (const weft_val[]){goes_on, next, last}, 0, NULL, NULL);
}

weft_val weft_onnx_take_step(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned direction,
                             struct onnx_step *s)
{
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    const struct onnx_step before = *s;
    const weft_val wx = weft_onnx_make(op, WEFT_OP_gather, 2, (const weft_val[]){s->wx, s->index}, 1, &axis, NULL);
    if (cell->kind == ONNX_CELL_LSTM)
        step_lstm(op, cell, 3 * direction, s, wx);
    else if (cell->kind == ONNX_CELL_GRU)
        step_gru(op, cell, 2 * direction, s, wx);
    else
        step_rnn(op, cell, direction, s, wx);
    s->peephole = before.peephole;
    if (!s->lengths.id)
        return s->h;
    struct weft_type shape = weft_onnx_type(op, before.h);
    const struct weft_type lengths = weft_onnx_type(op, s->lengths);
    const weft_val now = weft_onnx_broadcast(op, s->index, &lengths);
    const weft_val goes_on = weft_onnx_broadcast_axes(op, weft_onnx_binary(op, WEFT_OP_lt, now, s->lengths), &shape,
                                                      (const unsigned[]){0});
    const weft_val collected = kept(op, goes_on, s->h, weft_onnx_scalar_like(op, s->h, 0));
    s->h = kept(op, goes_on, s->h, before.h);
    if (s->c.id)
        s->c = kept(op, goes_on, s->c, before.c);
    return collected;
}

