/* SPDX-License-Identifier: Apache-2.0 */
/* import_recurrent.c: LSTM, GRU and RNN, as weft's composites; passes/lower_recurrent.c opens them.
 *
 * What ONNX leaves out is said: biases and first states of 0. A batch that is the outer axis (layout=1) is a transpose
 * before and after. The numbers of ONNX's functions stand in a list without the functions that have none; here each
 * function has its own. */
#include "ir/recurrent.h"
#include "onnx/import.h"

#include <string.h>

static weft_val swap_axes(struct onnx_op *op, weft_val x)
{
    return weft_onnx_transpose(op, x, 3, (const unsigned[]){1, 0, 2});
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* ONNX's names are weft's with capitals. */
static const struct weft_gate_row *find_function(struct onnx_op *op, struct onnx_string name)
{
    char word[32];
    for (size_t i = 0; i < name.length && i < sizeof word; i++)
        word[i] = (char)(name.data[i] >= 'A' && name.data[i] <= 'Z' ? name.data[i] - 'A' + 'a' : name.data[i]);
    const struct weft_gate_row *row = name.length <= sizeof word ? weft_gate_find(word, name.length) : NULL;
    if (!row)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "activation \"%s\" is not supported",
                       weft_onnx_text(op->importer, name));
    return row;
}

/* Numbers are handed out in order to the functions that take some. */
static void read_functions(struct onnx_op *op, unsigned wanted, struct weft_attr *attr, unsigned *attrs)
{
    const struct onnx_attribute *names = weft_onnx_attribute(op, "activations", ONNX_STRINGS);
    const struct onnx_attribute *alphas = weft_onnx_attribute(op, "activation_alpha", ONNX_FLOATS);
    const struct onnx_attribute *betas = weft_onnx_attribute(op, "activation_beta", ONNX_FLOATS);
    if (!names)
        return;
    if (names->strings.count != wanted)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute activations has %u elements instead of %u",
                       names->strings.count, wanted);
    uint32_t taken[2] = {0};
    double *alpha = weft_new(op->importer->reader.arena, double, wanted);
    double *beta = weft_new(op->importer->reader.arena, double, wanted);
    struct weft_text words = {.context = op->importer->reader.context, .arena = op->importer->reader.arena};
    for (unsigned i = 0; i < wanted && !op->failed; i++) {
        const struct weft_gate_row *row = find_function(op, names->strings.item[i]);
        if (!row)
            return;
        weft_text_format(&words, "%s%s", i ? "_" : "", row->name);
        alpha[i] = row->numbers > 0 && alphas && taken[0] < alphas->count ? (double)alphas->reals[taken[0]++]
                                                                          : row->alpha;
        beta[i] = row->numbers > 1 && betas && taken[1] < betas->count ? (double)betas->reals[taken[1]++] : row->beta;
    }
    attr[(*attrs)++] = weft_attr_of_word(WEFT_ATTR_activations, words.data);
    if (taken[0] > 0)
        attr[(*attrs)++] = (struct weft_attr){
            .key = WEFT_ATTR_alphas, .kind = WEFT_ATTR_REALS, .count = wanted, .reals = alpha};
    if (taken[1] > 0)
        attr[(*attrs)++] = (struct weft_attr){
            .key = WEFT_ATTR_betas, .kind = WEFT_ATTR_REALS, .count = wanted, .reals = beta};
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

static weft_val given_or_zero(struct onnx_op *op, unsigned input, const struct weft_type *type, bool by_batch)
{
    if (!weft_onnx_has(op, input))
        return weft_onnx_splat(op, type, 0);
    return by_batch ? swap_axes(op, op->input[input]) : op->input[input];
}

/* Returns how many there are. `gates` says which op it is. */
static unsigned read_operands(struct onnx_op *op, unsigned gates, unsigned directions, bool by_batch, weft_val *ret)
{
    struct weft_dims *dims = op->graph->dims;
    for (unsigned i = 0; i < 3; i++) {
        ret[i] = weft_onnx_input(op, i);
        if (!op->failed && weft_onnx_type(op, ret[i]).rank != 3)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "X, W and R must have 3 axes");
    }
    if (by_batch)
        ret[0] = swap_axes(op, ret[0]);
    const struct weft_type x = weft_onnx_type(op, ret[0]), r = weft_onnx_type(op, ret[2]);
    if (op->failed)
        return 0;
    const weft_dim first = weft_dim_of(directions), hidden = r.extent[2];
    const struct weft_type bias = {
        .dtype = x.dtype, .rank = 2, .extent = {first, weft_dim_mul(dims, weft_dim_of(2 * gates), hidden)}};
    const struct weft_type state = {.dtype = x.dtype, .rank = 3, .extent = {first, x.extent[1], hidden}};
    unsigned count = WEFT_CELL_B;
    ret[count++] = given_or_zero(op, 3, &bias, false);
    ret[count++] = given_or_zero(op, 5, &state, by_batch);
    if (gates == 4)
        ret[count++] = given_or_zero(op, 6, &state, by_batch);
    if (gates == 4 && weft_onnx_has(op, 7))
        ret[count++] = op->input[7];
    if (weft_onnx_has(op, 4))
        ret[count++] = weft_onnx_cast(op, op->input[4], WEFT_I64);
    return count;
}

static void import_recurrent(struct onnx_op *op)
{
    static const char *const ways[] = {"forward", "reverse", "bidirectional"};
    const int opcode = op->row->opcode;
    const bool lstm = opcode == WEFT_OP_lstm, gru = opcode == WEFT_OP_gru;
    struct weft_attr attr[8];
    unsigned attrs = 0;
    const int way = weft_onnx_word(op, "direction", "forward reverse bidirectional");
    const unsigned directions = way == 2 ? 2 : 1;
    const bool by_batch = op->importer->opset >= 14 && weft_onnx_int(op, "layout", 0) != 0;
    attr[attrs++] = weft_attr_of_word(WEFT_ATTR_direction, ways[way < 0 ? 0 : way]);
    attr[attrs++] = weft_attr_of_real(WEFT_ATTR_clip, weft_onnx_real(op, "clip", 0));
    if (lstm)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_input_forget, weft_onnx_int(op, "input_forget", 0) != 0);
    if (gru)
        attr[attrs++] =
            weft_attr_of_int(WEFT_ATTR_linear_before_reset, weft_onnx_int(op, "linear_before_reset", 0) != 0);
    weft_onnx_ignore(op, "hidden_size"); /* the weights say it */
    read_functions(op, directions * (lstm ? 3 : gru ? 2 : 1), attr, &attrs);
    weft_val operand[8];
    const unsigned operands = read_operands(op, lstm ? 4 : gru ? 3 : 1, directions, by_batch, operand);
    if (op->failed)
        return;
    const weft_val first = weft_onnx_make(op, opcode, operands, operand, attrs, attr, NULL);
    if (op->failed)
        return;
    /* [times, directions, batch, hidden] to [batch, times, directions, hidden] */
    op->output[0] = by_batch ? weft_onnx_transpose(op, first, 4, (const unsigned[]){2, 0, 1, 3}) : first;
    for (unsigned i = 1; i < op->outputs && i <= (lstm ? 2 : 1); i++) {
        op->output[i] = (weft_val){.id = first.id + i};
        if (by_batch)
            op->output[i] = swap_axes(op, op->output[i]);
    }
}

const struct onnx_row weft_onnx_recurrent[] = {
    {"GRU", 7, 3, 6, WEFT_OP_gru, import_recurrent},
    {"LSTM", 7, 3, 8, WEFT_OP_lstm, import_recurrent},
    {"RNN", 7, 3, 6, WEFT_OP_rnn, import_recurrent},
    {0},
};
