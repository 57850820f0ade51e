/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c: attributes of lstm, gru and rnn. A list of functions is one word, names joined by underscores, since no
 * name has one; their numbers stand in two lists of equal length. */
#include "ir/recurrent.h"

#include "ir/ops.h"

#include <string.h>

const struct weft_gate_row weft_gate_rows[] = {
    {.name = "sigmoid", .opcode = WEFT_OP_sigmoid},
    {.name = "tanh", .opcode = WEFT_OP_tanh},
    {.name = "relu", .opcode = WEFT_OP_relu},
    {.name = "softsign", .opcode = WEFT_OP_softsign},
    {.name = "softplus", .opcode = WEFT_OP_softplus},
    {.name = "leakyrelu", .opcode = WEFT_OP_leaky_relu, .numbers = 1, .alpha = 0.01},
    {.name = "thresholdedrelu", .opcode = WEFT_OP_thresholded_relu, .numbers = 1, .alpha = 1},
    {.name = "elu", .opcode = WEFT_OP_elu, .numbers = 1, .alpha = 1},
    {.name = "hardsigmoid", .opcode = WEFT_OP_hard_sigmoid, .numbers = 2, .alpha = 0.2, .beta = 0.5},
    {.name = "affine", .numbers = 2, .alpha = 1},
    {.name = "scaledtanh", .scaled = true, .numbers = 2, .alpha = 1, .beta = 1},
    {0},
};

const struct weft_gate_row *weft_gate_find(const char *name, size_t length)
{
    for (const struct weft_gate_row *row = weft_gate_rows; row->name; row++)
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

static const struct weft_attr *find(const struct weft_attr *attr, unsigned attrs, int key)
{
    for (unsigned i = 0; i < attrs; i++)
        if (attr[i].key == key)
            return &attr[i];
    return NULL;
}

static bool is_set(const struct weft_attr *attr, unsigned attrs, int key)
{
    const struct weft_attr *found = find(attr, attrs, key);
    return found && !weft_dim_is(found->integer, 0);
}

static bool read_functions(const char *words, struct weft_recurrence *ret)
{
    unsigned count = 0;
    for (const char *word = words; word; count++) {
        const size_t length = strcspn(word, "_");
        const struct weft_gate_row *row = weft_gate_find(word, length);
        if (!row || count == ret->functions * ret->directions)
            return false;
        ret->function[count] = (struct weft_gate_function){row, row->alpha, row->beta};
        word = word[length] ? word + length + 1 : NULL;
    }
    return count == ret->functions * ret->directions;
}

bool weft_recurrence_read(int op, const struct weft_attr *attr, unsigned attrs, struct weft_recurrence *ret,
                          const char **ret_message)
{
    static const char *const usual[] = {"sigmoid_tanh_tanh", "sigmoid_tanh_tanh_sigmoid_tanh_tanh"};
    static const char *const usual_gru[] = {"sigmoid_tanh", "sigmoid_tanh_sigmoid_tanh"};
    static const char *const usual_rnn[] = {"tanh", "tanh_tanh"};
    const bool lstm = op == WEFT_OP_lstm, gru = op == WEFT_OP_gru;
    const struct weft_attr *direction = find(attr, attrs, WEFT_ATTR_direction);
    const struct weft_attr *functions = find(attr, attrs, WEFT_ATTR_activations);
    const struct weft_attr *alphas = find(attr, attrs, WEFT_ATTR_alphas), *betas = find(attr, attrs, WEFT_ATTR_betas);
    const struct weft_attr *clip = find(attr, attrs, WEFT_ATTR_clip);
    const bool both = direction && strcmp(direction->word, "bidirectional") == 0;
    *ret = (struct weft_recurrence){.gates = lstm ? 4 : gru ? 3 : 1,
                                    .states = lstm ? 2 : 1,
                                    .directions = both ? 2 : 1,
                                    .reverse = {direction && strcmp(direction->word, "reverse") == 0, both},
                                    .functions = lstm ? 3 : gru ? 2 : 1,
                                    .clip = clip ? clip->real : 0,
                                    .input_forget = is_set(attr, attrs, WEFT_ATTR_input_forget),
                                    .linear_before_reset = is_set(attr, attrs, WEFT_ATTR_linear_before_reset)};
    const char *words = functions ? functions->word : (lstm ? usual : gru ? usual_gru : usual_rnn)[both];
    const unsigned count = ret->functions * ret->directions;
    *ret_message = "activations must name as many functions as there are in all directions, joined by underscores";
    if (!read_functions(words, ret))
        return false;
    *ret_message = "alphas and betas must have a number for each function";
    if ((alphas && alphas->count != count) || (betas && betas->count != count))
        return false;
    for (unsigned i = 0; i < count; i++) {
        ret->function[i].alpha = alphas ? alphas->reals[i] : ret->function[i].alpha;
        ret->function[i].beta = betas ? betas->reals[i] : ret->function[i].beta;
    }
    *ret_message = "clip must not be negative";
    return ret->clip >= 0;
}

struct weft_recurrence weft_recurrence_of(const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = &graph->node[node.id];
    struct weft_recurrence ret;
    const char *message;
    const bool right = weft_recurrence_read(info->op, info->attr, info->attrs, &ret, &message);
    weft_assert(right);
    return ret;
}

static unsigned find_operand(const struct weft_graph *graph, weft_node node, bool floats)
{
    const struct weft_node_info *info = &graph->node[node.id];
    for (unsigned i = info->op == WEFT_OP_lstm ? WEFT_CELL_C + 1 : WEFT_CELL_C; i < info->operands; i++)
        if (weft_dtype_is_float(weft_type_of(graph, weft_operand(graph, node, i))->dtype) == floats)
            return i;
    return 0;
}

unsigned weft_recurrence_peepholes(const struct weft_graph *graph, weft_node node)
{
    return find_operand(graph, node, true);
}

unsigned weft_recurrence_lengths(const struct weft_graph *graph, weft_node node)
{
    return find_operand(graph, node, false);
}
